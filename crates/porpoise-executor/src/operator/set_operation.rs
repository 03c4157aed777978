//! UNION, INTERSECT and EXCEPT.
//!
//! INTERSECT and EXCEPT count the rows of their first input and strike off. When these take more
//! memory than they should, the rows of all inputs are sorted by their keys, and the rows of a key
//! counted as they come out.

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, Charge};
use porpoise_expr::EvalContext;
use porpoise_expr::key;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::{Node, SetOperator};
use porpoise_types::KeyBuf;

use super::distinct_rows::DistinctRows;
use super::{BoxedOperator, DiskSort, Operator, RowOrder, SortedRows, build_with, project};
use crate::Exec;
use crate::key_map::KeyMap;
use crate::row_buffer::{RowBuffer, restore, save};
use crate::spill::unreadable;

/// UNION streams; INTERSECT and EXCEPT read all inputs first.
pub(super) struct SetOperation<'p> {
    slot: SlotId,
    op: SetOperator,
    distinct: bool,
    inputs: &'p [(Node, Vec<Expr>)],
    order: RowOrder,
    /// What is left of the first input's rows.
    counts: Counts,
    /// UNION: the rows that came, and the input that is being read.
    seen: DistinctRows,
    current: Option<(usize, BoxedOperator<'p>)>,
}

/// How often each distinct row may pass.
#[derive(Default)]
struct Counts {
    /// The first of each, in the order in which they came.
    rows: RowBuffer,
    rest: Vec<i64>,
    charge: Charge,
    at: usize,
    sorted: Option<Box<SortedCounts>>,
}

/// The rows of all inputs by key, those of the first input before the others.
struct SortedCounts {
    rows: SortedRows,
    /// The row that was read last: of the next key.
    key: Vec<u8>,
    counted: Option<Counted>,
    /// Its row, if the first input has one of that key.
    saved: Vec<u8>,
    /// The row that passes, and how often it still may.
    current: Vec<u8>,
    left: i64,
}

/// So many rows of an input.
#[derive(Clone, Copy)]
struct Counted {
    input: u32,
    count: i64,
}

/// So often rows that grow ask whether they are to be sorted on disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;

impl<'p> SetOperation<'p> {
    pub(super) fn new(
        slot: SlotId,
        op: SetOperator,
        distinct: bool,
        inputs: &'p [(Node, Vec<Expr>)],
        order: RowOrder,
    ) -> SetOperation<'p> {
        SetOperation {
            slot,
            op,
            distinct,
            inputs,
            order,
            counts: Counts::default(),
            seen: DistinctRows::new(order),
            current: None,
        }
    }

    /// The comparable key of the slot's row: in the result's types, not in each input's own.
    fn slot_key(&self, exec: &Exec<'_>, key: &mut KeyBuf) {
        key.clear();
        let layout = &exec.layouts[self.slot.0 as usize];
        let row = &exec.frame.slots[self.slot.0 as usize].bytes;
        for (column, ty) in layout.types.iter().enumerate() {
            let value = layout.layout.get(row, column);
            key::encode_values(std::iter::once((&value, ty, false)), key);
        }
    }

    /// How many of a row's occurrences are left when an input has so many of them.
    fn left(&self, left: i64, input: usize, count: i64) -> i64 {
        match (input, self.op, self.distinct) {
            (0, _, true) => count.min(1),
            (0, _, false) => count,
            (_, SetOperator::Intersect, _) => left.min(count),
            (_, _, true) if count > 0 => 0,
            (_, _, true) => left,
            (_, _, false) => (left - count).max(0),
        }
    }

    fn count(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut key = KeyBuf::new();
        let mut positions = KeyMap::default();
        let mut asked_at = ASKED_EVERY_BYTES;
        for (number, (node, output)) in self.inputs.iter().enumerate() {
            let mut counts: Vec<i64> = vec![0; self.counts.rest.len()];
            let mut input = build_with(node, RowOrder::Free);
            input.open(exec)?;
            while input.next(exec)? {
                exec.check_interrupt()?;
                project(exec, self.slot, output)?;
                self.slot_key(exec, &mut key);
                let account = &exec.session.memory;
                if number > 0 {
                    if let Some(position) = positions.get(&key) {
                        counts[position] += 1;
                    }
                    continue;
                }
                let (position, is_new) = positions.insert(account, &key)?;
                let Counts {
                    rows, rest, charge, ..
                } = &mut self.counts;
                if is_new {
                    charge.reserve(account, &mut counts, 1)?;
                    charge.reserve(account, rest, 1)?;
                    counts.push(0);
                    rest.push(0);
                    rows.push(exec, &[self.slot])?;
                }
                counts[position] += 1;
                let bytes = rows.bytes() + charge.bytes() + positions.bytes();
                if bytes >= asked_at {
                    asked_at = bytes + ASKED_EVERY_BYTES;
                    if account.is_to_spill(Buffer::Table, bytes) {
                        drop(positions);
                        return self.sort(exec, input, &counts);
                    }
                }
            }
            for (position, count) in counts.into_iter().enumerate() {
                let left = self.counts.rest[position];
                self.counts.rest[position] = self.left(left, number, count);
            }
        }
        Ok(())
    }

    /// Sorts the rows of the first input that were counted, its others and those of the other inputs.
    #[cold]
    fn sort(
        &mut self,
        exec: &mut Exec<'_>,
        mut first: BoxedOperator<'_>,
        counts: &[i64],
    ) -> Result<()> {
        exec.count_disk_table();
        let mut sort = DiskSort::new(exec);
        let (mut key, mut saved) = (KeyBuf::new(), Vec::new());
        for (position, &count) in counts.iter().enumerate() {
            let rows = &self.counts.rows;
            rows.restore(position, &mut exec.frame, &[self.slot]);
            self.slot_key(exec, &mut key);
            self.save(exec, Counted { input: 0, count }, &mut saved);
            sort.push_saved(exec, &key, &saved)?;
        }
        self.counts = Counts::default();
        for (number, (node, output)) in self.inputs.iter().enumerate() {
            let mut opened;
            let input: &mut dyn Operator = match number {
                0 => &mut *first,
                _ => {
                    opened = build_with(node, RowOrder::Free);
                    opened.open(exec)?;
                    &mut *opened
                }
            };
            let counted = Counted {
                input: number as u32,
                count: 1,
            };
            while input.next(exec)? {
                exec.check_interrupt()?;
                project(exec, self.slot, output)?;
                self.slot_key(exec, &mut key);
                self.save(exec, counted, &mut saved);
                sort.push_saved(exec, &key, &saved)?;
            }
        }
        let mut sorted = SortedCounts {
            rows: sort.finish(exec)?,
            key: Vec::new(),
            counted: None,
            saved: Vec::new(),
            current: Vec::new(),
            left: 0,
        };
        sorted.read(exec)?;
        self.counts.sorted = Some(Box::new(sorted));
        Ok(())
    }

    /// An entry: which input, how many rows, and the row if it is of the first input.
    fn save(&self, exec: &Exec<'_>, counted: Counted, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&counted.input.to_le_bytes());
        out.extend_from_slice(&counted.count.to_le_bytes());
        if counted.input == 0 {
            save(&exec.frame, &[self.slot], out);
        }
    }

    /// UNION: begins to read an input; false if there is none of that number.
    fn begin(&mut self, exec: &mut Exec<'_>, number: usize) -> Result<bool> {
        let Some((node, _)) = self.inputs.get(number) else {
            return Ok(false);
        };
        let mut input = build_with(node, self.order);
        input.open(exec)?;
        self.current = Some((number, input));
        Ok(true)
    }

    /// The next row of INTERSECT or EXCEPT.
    fn next_counted(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if let Some(mut sorted) = self.counts.sorted.take() {
            let found = sorted.next(exec, self)?;
            self.counts.sorted = Some(sorted);
            return Ok(found);
        }
        let counts = &mut self.counts;
        while let Some(left) = counts.rest.get_mut(counts.at) {
            exec.check_interrupt()?;
            if *left > 0 {
                *left -= 1;
                counts
                    .rows
                    .restore(counts.at, &mut exec.frame, &[self.slot]);
                return Ok(true);
            }
            counts.at += 1;
        }
        Ok(false)
    }
}

impl SortedCounts {
    /// Reads the next entry; true if it is of the same key. The row of a new key is kept.
    fn read(&mut self, exec: &Exec<'_>) -> Result<bool> {
        let Some((key, entry)) = self.rows.next_entry(exec)? else {
            self.counted = None;
            return Ok(false);
        };
        let (input, rest) = entry.split_first_chunk::<4>().ok_or_else(unreadable)?;
        let (count, saved) = rest.split_first_chunk::<8>().ok_or_else(unreadable)?;
        let is_same = self.counted.is_some() && self.key == key;
        self.counted = Some(Counted {
            input: u32::from_le_bytes(*input),
            count: i64::from_le_bytes(*count),
        });
        if !is_same {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.saved.clear();
            self.saved.extend_from_slice(saved);
        }
        Ok(is_same)
    }

    fn next(&mut self, exec: &mut Exec<'_>, operation: &SetOperation<'_>) -> Result<bool> {
        exec.check_interrupt()?;
        while self.left == 0 {
            let Some(first) = self.counted else {
                return Ok(false);
            };
            std::mem::swap(&mut self.current, &mut self.saved);
            let mut counts = vec![0; operation.inputs.len()];
            counts[first.input as usize] += first.count;
            while self.read(exec)?
                && let Some(Counted { input, count }) = self.counted
            {
                counts[input as usize] += count;
            }
            let counts = counts.into_iter().enumerate();
            self.left = counts.fold(0, |left, (input, count)| operation.left(left, input, count));
        }
        self.left -= 1;
        restore(&self.current, &mut exec.frame, &[operation.slot]);
        Ok(true)
    }
}

impl Operator for SetOperation<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.counts = Counts::default();
        self.seen.clear();
        self.current = None;
        if self.op == SetOperator::Union {
            Ok(())
        } else {
            self.count(exec)
        }
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.op != SetOperator::Union {
            return self.next_counted(exec);
        }
        let mut key = KeyBuf::new();
        loop {
            let number = match &mut self.current {
                Some((number, input)) => match input.next(exec)? {
                    true => *number,
                    false => {
                        let next = *number + 1;
                        if !self.begin(exec, next)? {
                            return self.seen.next_aside(exec);
                        }
                        continue;
                    }
                },
                None => match self.begin(exec, 0)? {
                    true => continue,
                    false => return Ok(false),
                },
            };
            project(exec, self.slot, &self.inputs[number].1)?;
            if !self.distinct {
                return Ok(true);
            }
            self.slot_key(exec, &mut key);
            if self.seen.is_new(exec, &key, || vec![self.slot])? {
                return Ok(true);
            }
        }
    }
}
