//! Joins by a hash table of the right side.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::EvalContext;
use porpoise_expr::key;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::{JoinKind, Node};
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, all_true, build};
use crate::Exec;
use crate::eval::Evaluate;
use crate::key_map::KeyMap;
use crate::row_buffer::RowBuffer;

/// Rows by key.
#[derive(Default)]
pub struct HashTable {
    rows: RowBuffer,
    keys: KeyMap,
    /// The first and the last row of each key.
    ends: Vec<(u32, u32)>,
    /// By row: the next one of its key, itself if it is the last.
    next: Vec<u32>,
    charge: Charge,
}

impl HashTable {
    /// Keeps the slots' current rows.
    ///
    /// # Errors
    /// Where the statement would take more memory than it may.
    fn add(&mut self, key: &[u8], exec: &Exec<'_>, slots: &[SlotId]) -> Result<()> {
        let account = &exec.session.memory;
        let row = self.rows.len() as u32;
        self.rows.push(exec, slots)?;
        self.charge.reserve(account, &mut self.next, 1)?;
        self.next.push(row);
        let (number, is_new) = self.keys.insert(account, key)?;
        if is_new {
            self.charge.reserve(account, &mut self.ends, 1)?;
            self.ends.push((row, row));
        } else {
            let last = &mut self.ends[number].1;
            self.next[*last as usize] = row;
            *last = row;
        }
        Ok(())
    }

    fn first(&self, key: &[u8]) -> Option<u32> {
        self.keys.get(key).map(|number| self.ends[number].0)
    }

    fn after(&self, row: u32) -> Option<u32> {
        Some(self.next[row as usize]).filter(|next| *next != row)
    }
}

pub(super) struct HashJoin<'p> {
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    kind: JoinKind,
    left_keys: &'p [Expr],
    right_keys: &'p [Expr],
    condition: &'p [Expr],
    right_slots: &'p [SlotId],
    /// The number under which the table is kept for the statement.
    kept: Option<usize>,
    table: Arc<HashTable>,
    matches: Option<Matches>,
    /// No row of the left side can have a match that it needs: none is read.
    yields_nothing: bool,
}

/// So many rows of a key are tried between two looks whether the statement is to end: a look costs
/// more than a row that fails its condition at once.
const ROWS_PER_LOOK: u32 = 64;

/// How far the current left row's matches were gone through.
struct Matches {
    /// The next row of its key.
    next: Option<u32>,
    /// How many were tried.
    tried: u32,
    /// Whether one has passed.
    passed: bool,
}

impl<'p> HashJoin<'p> {
    pub(super) fn new(
        [left, right]: [&'p Node; 2],
        kind: JoinKind,
        [left_keys, right_keys]: [&'p [Expr]; 2],
        condition: &'p [Expr],
        right_slots: &'p [SlotId],
        kept: Option<usize>,
    ) -> HashJoin<'p> {
        HashJoin {
            left: build(left),
            right: build(right),
            kind,
            left_keys,
            right_keys,
            condition,
            right_slots,
            kept,
            table: Arc::default(),
            matches: None,
            yields_nothing: false,
        }
    }
}

impl HashJoin<'_> {
    /// The key, or `None` if a part of it is NULL: NULL equals nothing.
    fn key(exec: &mut Exec<'_>, exprs: &[Expr]) -> Result<Option<KeyBuf>> {
        let mut key = KeyBuf::new();
        for expr in exprs {
            let value = expr.eval(exec)?;
            if value.is_null() {
                return Ok(None);
            }
            key::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
        }
        Ok(Some(key))
    }

    /// Reads the right side to its end.
    fn fill(&mut self, exec: &mut Exec<'_>) -> Result<HashTable> {
        let mut table = HashTable::default();
        self.right.open(exec)?;
        while self.right.next(exec)? {
            if let Some(key) = Self::key(exec, self.right_keys)? {
                table.add(key.as_slice(), exec, self.right_slots)?;
            }
        }
        Ok(table)
    }
}

impl Operator for HashJoin<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.matches = None;
        let is_kept = |(number, _): &&(usize, _)| Some(*number) == self.kept;
        self.table = match exec.kept().hash_tables.iter().find(is_kept) {
            Some((_, table)) => table.clone(),
            None => {
                // What the last opening made is not needed beside the new one.
                self.table = Arc::default();
                let table = Arc::new(self.fill(exec)?);
                if let Some(number) = self.kept {
                    exec.kept().hash_tables.push((number, table.clone()));
                }
                table
            }
        };
        let needs_match = matches!(self.kind, JoinKind::Inner | JoinKind::Semi);
        self.yields_nothing = needs_match && self.table.rows.is_empty();
        match self.yields_nothing {
            true => Ok(()),
            false => self.left.open(exec),
        }
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.yields_nothing {
            return Ok(false);
        }
        loop {
            let Some(matches) = &mut self.matches else {
                exec.check_interrupt()?;
                if !self.left.next(exec)? {
                    return Ok(false);
                }
                let key = Self::key(exec, self.left_keys)?;
                let next = key.and_then(|key| self.table.first(key.as_slice()));
                self.matches = Some(Matches {
                    next,
                    tried: 0,
                    passed: false,
                });
                continue;
            };
            if let Some(row) = matches.next {
                matches.next = self.table.after(row);
                matches.tried = matches.tried.wrapping_add(1);
                if matches.tried % ROWS_PER_LOOK == 0 {
                    exec.check_interrupt()?;
                }
                let frame = &mut exec.frame;
                self.table
                    .rows
                    .restore(row as usize, frame, self.right_slots);
                if !all_true(self.condition, exec)? {
                    continue;
                }
                matches.passed = true;
                match self.kind {
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
                match self.kind {
                    JoinKind::Left if !passed => {
                        for slot in self.right_slots {
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
