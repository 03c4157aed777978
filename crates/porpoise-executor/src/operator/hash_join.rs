//! Joins by a hash table of the right side.
//!
//! A right side that takes more memory than it should is divided by its keys and put on disk, and
//! the left side like it: [`disk_join`](super::disk_join) joins each part of the one with that of the
//! other.

use std::sync::Arc;

use porpoise_core::error::{Error, Result};
use porpoise_core::memory::Buffer;
use porpoise_core::temporary_file::Part;
use porpoise_expr::{EvalContext, Expr, SlotId};
use porpoise_planner::plan::{JoinKind, Node, slots_of};

use super::disk_join::DiskJoin;
use super::join_table::{JoinTable, Key, KeyForm, Link};
use super::{BoxedOperator, Operator, RowOrder, all_true, build_with};
use crate::Exec;
use crate::batch::{Batch, KeyProgram, is_whole, load_row};
use crate::row_buffer::save;
use crate::spill::Hashing;

pub(super) struct HashJoin<'p> {
    left_node: &'p Node,
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    on: JoinOn<'p>,
    /// The number under which the table is kept for the statement.
    kept: Option<usize>,
    order: RowOrder,
    built: BuiltSide,
    /// The current left row's.
    key: Key,
    ahead: LookedUp<'p>,
    matches: Option<Matches>,
    /// No row of the left side can have a match that it needs: none is read.
    yields_nothing: bool,
    /// The join of sides that are on disk, once a row was asked for.
    disk: Option<Box<DiskJoin>>,
}

/// What rows are joined on, and what comes of those that match.
pub(super) struct JoinOn<'p> {
    pub(super) kind: JoinKind,
    left_keys: &'p [Expr],
    right_keys: &'p [Expr],
    pub(super) condition: &'p [Expr],
    pub(super) right_slots: &'p [SlotId],
    pub(super) key_form: KeyForm,
}

impl JoinOn<'_> {
    /// Nothing comes of a left row without a match.
    pub(super) fn needs_match(&self) -> bool {
        matches!(self.kind, JoinKind::Inner | JoinKind::Semi)
    }
}

/// What was made of the right side.
#[derive(Clone)]
pub enum BuiltSide {
    /// It fits memory.
    Table(Arc<JoinTable>),
    /// It was divided by its keys.
    Parts(Arc<DividedSide>),
}

/// A side's rows on disk, each behind its key.
pub struct DividedSide {
    pub(super) hashing: Hashing,
    /// Those without rows included.
    pub(super) parts: Vec<Part>,
}

impl Default for BuiltSide {
    fn default() -> BuiltSide {
        BuiltSide::Table(Arc::default())
    }
}

impl BuiltSide {
    fn is_empty(&self) -> bool {
        match self {
            BuiltSide::Table(table) => table.is_empty(),
            BuiltSide::Parts(side) => side.parts.iter().all(|part| part.entries() == 0),
        }
    }
}

/// Left rows of a batch that were looked up before any of them was joined.
#[derive(Default)]
struct LookedUp<'p> {
    /// What makes keys of a batch; `None` within: they are made row by row.
    program: Option<Option<KeyProgram<'p>>>,
    /// Each row's first match. Empty where their keys aren't known.
    firsts: Vec<Link>,
    /// How many rows the batch has, and how many of them were joined.
    rows: usize,
    at: usize,
}

impl<'p> LookedUp<'p> {
    /// Looks the rows of a batch up.
    fn look_up(
        &mut self,
        exec: &mut Exec<'_>,
        on: &JoinOn<'p>,
        table: &JoinTable,
        batch: &Batch<'_>,
        key: &mut Key,
    ) -> Result<()> {
        (self.rows, self.at) = (batch.rows.len(), 0);
        self.firsts.clear();
        let new = || KeyProgram::new(exec, batch.slot, on.left_keys);
        let Some(program) = self.program.get_or_insert_with(new) else {
            return Ok(());
        };
        let layouts = exec.layouts;
        let layout = &*layouts[batch.slot.0 as usize].layout;
        let Some(keys) = program.run(exec, layout, &batch.rows)? else {
            return Ok(());
        };
        let is_integer = matches!(on.key_form, KeyForm::Integer { .. });
        if is_integer && let Some((integers, slice)) = program.integers(&keys) {
            table.first_of_each(integers, &mut self.firsts);
            let nulls = slice.nulls.iter().zip(&mut self.firsts);
            for (_, first) in nulls.filter(|(is_null, _)| **is_null) {
                *first = 0;
            }
            return Ok(());
        }
        for row in 0..self.rows {
            let has_key = key.read_of_batch(exec, (program, &keys), row, on.key_form)?;
            let first = has_key.then(|| table.first(key)).flatten();
            self.firsts.push(first.map_or(0, |row| row + 1));
        }
        Ok(())
    }

    /// The next row's place in its batch, and its first match, if it was looked up. Rows without one
    /// are passed over if one is needed.
    fn next(&mut self, needs_match: bool) -> Option<(usize, Option<Option<u32>>)> {
        if !self.firsts.is_empty() && needs_match {
            let rest = &self.firsts[self.at..self.rows];
            self.at += rest.iter().take_while(|first| **first == 0).count();
        }
        if self.at == self.rows {
            return None;
        }
        let place = self.at;
        self.at += 1;
        let first = self.firsts.get(place).map(|first| first.checked_sub(1));
        Some((place, first))
    }
}

/// So often a table that grows asks whether it is to go to disk.
pub(super) const ASKED_EVERY_BYTES: usize = 64 << 10;
/// So many rows of a key are tried between two looks whether the statement is to end: a look costs
/// more than a row that fails its condition at once.
pub(super) const ROWS_PER_LOOK: u32 = 64;

/// How far the current left row's matches were gone through.
pub(super) struct Matches {
    /// The next row of its key.
    pub(super) next: Option<u32>,
    /// How many were tried.
    pub(super) tried: u32,
    /// Whether one has passed.
    pub(super) passed: bool,
}

impl<'p> HashJoin<'p> {
    pub(super) fn new(
        [left, right]: [&'p Node; 2],
        kind: JoinKind,
        [left_keys, right_keys]: [&'p [Expr]; 2],
        condition: &'p [Expr],
        right_slots: &'p [SlotId],
        kept: Option<usize>,
        order: RowOrder,
    ) -> HashJoin<'p> {
        HashJoin {
            left_node: left,
            left: build_with(left, order),
            right: build_with(right, order),
            on: JoinOn {
                kind,
                left_keys,
                right_keys,
                condition,
                right_slots,
                key_form: KeyForm::of(left_keys, right_keys),
            },
            kept,
            order,
            built: BuiltSide::default(),
            key: Key::default(),
            ahead: LookedUp::default(),
            matches: None,
            yields_nothing: false,
            disk: None,
        }
    }
}

impl<'p> HashJoin<'p> {
    /// Reads the right side to its end.
    fn fill(&mut self, exec: &mut Exec<'_>) -> Result<BuiltSide> {
        let on = &self.on;
        let mut table = JoinTable::new(on.key_form);
        let mut asked_at = ASKED_EVERY_BYTES;
        self.right.open(exec)?;
        let takes_batches = self.right.has_batches();
        let mut program = None;
        loop {
            if takes_batches && let Some(batch) = self.right.next_batch(exec)? {
                let new = || KeyProgram::new(exec, batch.slot, on.right_keys);
                let program = program.get_or_insert_with(new).as_ref();
                add_batch(exec, on, &mut table, &batch, program, &mut self.key)?;
            } else if self.right.next(exec)? {
                if !on.key_form.read(exec, on.right_keys, &mut self.key)? {
                    continue;
                }
                table.add(&self.key, exec, on.right_slots)?;
            } else {
                break;
            }
            let bytes = table.bytes();
            if bytes >= asked_at {
                asked_at = bytes + ASKED_EVERY_BYTES;
                if exec.session.memory.is_to_spill(Buffer::Join, bytes) {
                    let side = self.divide_right(exec, table)?;
                    return Ok(BuiltSide::Parts(Arc::new(side)));
                }
            }
        }
        table.finish(&exec.session.memory, || exec.check_interrupt())?;
        Ok(BuiltSide::Table(Arc::new(table)))
    }

    /// Divides the rows that were read, and the others of the right side.
    #[cold]
    fn divide_right(&mut self, exec: &mut Exec<'_>, table: JoinTable) -> Result<DividedSide> {
        let on = &self.on;
        exec.count_disk_table();
        let hashing = Hashing::new(&exec.session.memory, Buffer::Join);
        let mut parts = hashing.create(&exec.session.memory)?;
        table.divide(&hashing, &mut parts, on.right_slots.len())?;
        drop(table);
        while self.right.next(exec)? {
            exec.check_interrupt()?;
            if !on.key_form.read(exec, on.right_keys, &mut self.key)? {
                continue;
            }
            let part = self.key.part(on.key_form, &hashing);
            parts.push(part, |out| {
                self.key.write(on.key_form, out);
                save(&exec.frame, on.right_slots, out);
            })?;
        }
        Ok(DividedSide {
            hashing,
            parts: parts.finish()?,
        })
    }

    /// Divides the left side as the right one was.
    #[cold]
    fn begin_on_disk(&mut self, exec: &mut Exec<'_>) -> Result<DiskJoin> {
        let (BuiltSide::Parts(right), on) = (&self.built, &self.on) else {
            return Err(Error::engine_error("a join of sides that are in memory"));
        };
        let mut join = DiskJoin::new(exec, right, on.kind, slots_of(self.left_node))?;
        while self.left.next(exec)? {
            exec.check_interrupt()?;
            let has_key = on.key_form.read(exec, on.left_keys, &mut self.key)?;
            let key = has_key.then_some(&self.key);
            join.add_left(exec, right, on.key_form, key)?;
        }
        join.begin(exec, right, on, self.order)?;
        Ok(join)
    }

    fn next_on_disk(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.disk.is_none() {
            let join = self.begin_on_disk(exec)?;
            self.disk = Some(Box::new(join));
        }
        match &mut self.disk {
            Some(join) => join.next(exec, &self.on),
            None => Ok(false),
        }
    }
}

/// Adds the rows of a batch to a table.
fn add_batch(
    exec: &mut Exec<'_>,
    on: &JoinOn<'_>,
    table: &mut JoinTable,
    batch: &Batch<'_>,
    program: Option<&KeyProgram<'_>>,
    key: &mut Key,
) -> Result<()> {
    let layouts = exec.layouts;
    let slot_layout = &layouts[batch.slot.0 as usize];
    let keys = match program {
        Some(program) => program.run(exec, &slot_layout.layout, &batch.rows)?,
        None => None,
    };
    let is_only_slot = on.right_slots == [batch.slot];
    for (place, row) in batch.rows.iter().enumerate() {
        exec.check_interrupt()?;
        let is_added_from_batch = is_only_slot && is_whole(slot_layout, row);
        let has_key = match (program, &keys) {
            (Some(program), Some(keys)) => {
                key.read_of_batch(exec, (program, keys), place, on.key_form)?
            }
            _ => {
                load_row(exec, batch.slot, row);
                on.key_form.read(exec, on.right_keys, key)?
            }
        };
        if !has_key {
            continue;
        }
        if is_added_from_batch {
            table.add_row(&exec.session.memory, key, row)?;
        } else {
            load_row(exec, batch.slot, row);
            table.add(key, exec, on.right_slots)?;
        }
    }
    Ok(())
}

impl Operator for HashJoin<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.matches = None;
        self.ahead = LookedUp::default();
        self.disk = None;
        let is_kept = |(number, _): &&(usize, _)| Some(*number) == self.kept;
        self.built = match exec.kept().hash_tables.iter().find(is_kept) {
            Some((_, table)) => table.clone(),
            None => {
                // What the last opening made is not needed beside the new one.
                self.built = BuiltSide::default();
                let table = self.fill(exec)?;
                if let Some(number) = self.kept {
                    exec.kept().hash_tables.push((number, table.clone()));
                }
                table
            }
        };
        self.yields_nothing = self.on.needs_match() && self.built.is_empty();
        match self.yields_nothing {
            true => Ok(()),
            false => self.left.open(exec),
        }
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.yields_nothing {
            return Ok(false);
        }
        let BuiltSide::Table(table) = &self.built else {
            return self.next_on_disk(exec);
        };
        let on = &self.on;
        let (takes_batches, needs_match) = (self.left.has_batches(), on.needs_match());
        loop {
            let Some(matches) = &mut self.matches else {
                exec.check_interrupt()?;
                let looked_up = match self.ahead.next(needs_match) {
                    Some((place, first)) => {
                        self.left.load_of_batch(exec, place);
                        first
                    }
                    None if takes_batches && let Some(batch) = self.left.next_batch(exec)? => {
                        let key = &mut self.key;
                        self.ahead.look_up(exec, on, table, &batch, key)?;
                        continue;
                    }
                    None if self.left.next(exec)? => None,
                    None => return Ok(false),
                };
                let next = match looked_up {
                    Some(first) => first,
                    None => match on.key_form.read(exec, on.left_keys, &mut self.key)? {
                        true => table.first(&self.key),
                        false => None,
                    },
                };
                self.matches = Some(Matches {
                    next,
                    tried: 0,
                    passed: false,
                });
                continue;
            };
            if let Some(row) = matches.next {
                matches.next = table.after(row);
                matches.tried = matches.tried.wrapping_add(1);
                if matches.tried % ROWS_PER_LOOK == 0 {
                    exec.check_interrupt()?;
                }
                table.restore(row, exec, on.right_slots);
                if !all_true(on.condition, exec)? {
                    continue;
                }
                matches.passed = true;
                match on.kind {
                    JoinKind::Inner | JoinKind::Left => return Ok(true),
                    JoinKind::Semi => {
                        self.matches = None;
                        return Ok(true);
                    }
                    JoinKind::Anti => self.matches = None,
                }
            } else {
                let passed = matches.passed;
                self.matches = None;
                match on.kind {
                    JoinKind::Left if !passed => {
                        for slot in on.right_slots {
                            exec.frame.slots[slot.0 as usize].set_null();
                        }
                        return Ok(true);
                    }
                    JoinKind::Anti => return Ok(true),
                    _ => {}
                }
            }
        }
    }
}
