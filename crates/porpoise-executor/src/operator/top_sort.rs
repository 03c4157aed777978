//! The first rows of an order: ORDER BY with LIMIT.
//!
//! Where LIMIT counts rows that a join makes of these, nobody knows how many of them it takes. Some
//! more than expected are kept, and if they were too few, the next ones are looked for:
//!
//! ```text
//! 1. read all rows, keep the first n
//! 2. yield them; if no more are asked for, that was all
//! 3. read all rows again, keep those that come behind the last one yielded: 16 n of them
//! 4. when these were too few as well, sort all rows, and go on behind those yielded
//! ```
//!
//! A row's place is its key and, among equal keys, when it came, which is the same each time.

use std::collections::BinaryHeap;
use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, Charge};
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;
use porpoise_types::key::KeyHead;

use super::disk_sort::{DiskSort, SortedRows};
use super::sort::{Extent, Sort, head_of_key, is_of_columns};
use super::{BoxedOperator, Operator, RowOrder, build_with, count_of, sort_key_of};
use crate::batch::{Batch, OrderProgram, load_row};
use crate::{Exec, row_buffer};

struct SortedRow {
    key: Box<[u8]>,
    /// Arrival order: equal keys keep it.
    number: u64,
    row: Box<[u8]>,
}

impl PartialEq for SortedRow {
    fn eq(&self, other: &SortedRow) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SortedRow {}

impl PartialOrd for SortedRow {
    fn partial_cmp(&self, other: &SortedRow) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortedRow {
    fn cmp(&self, other: &SortedRow) -> std::cmp::Ordering {
        self.key
            .cmp(&other.key)
            .then(self.number.cmp(&other.number))
    }
}

/// The first so many rows are kept in a heap; of more than that, all rows are sorted.
const HEAP_MAX: usize = 1 << 16;
/// Where more rows may be asked for, no fewer are kept: so many cost next to nothing.
const KEPT_MIN: f64 = 100.0;
/// So often rows that grow ask whether they are to go to disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;
/// By this factor more are kept than are expected to be asked for.
const RESERVE: f64 = 2.0;
/// When they were too few, so many times more are kept.
const GROWTH: usize = 16;

impl SortedRow {
    fn bytes(&self) -> usize {
        size_of::<SortedRow>() + self.key.len() + self.row.len()
    }
}

/// Rows that may be read again have to come in the same order each time.
fn input_order(refill: Option<f64>) -> RowOrder {
    match refill {
        Some(_) => RowOrder::Kept,
        None => RowOrder::Free,
    }
}

/// Keeps the first rows of an order, and no more, if they are not too many.
pub(super) struct TopSort<'p> {
    node: &'p Node,
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    limit: &'p Expr,
    /// `limit` counts rows that are each made of so many of these.
    refill: Option<f64>,
    slots: &'p [SlotId],
    rows: Vec<SortedRow>,
    charge: Charge,
    /// Sorts all rows, where that is better.
    whole: Option<Sort<'p>>,
    /// Has the rows, where those that are kept are too much for memory.
    on_disk: Option<Box<SortedRows>>,
    /// So many rows are kept.
    most: usize,
    at: usize,
    /// How many rows were yielded before those that are kept.
    yielded: u64,
    /// The input has rows behind those that are kept.
    has_more: bool,
}

impl<'p> TopSort<'p> {
    pub(super) fn new(
        input: &'p Node,
        keys: &'p [SortKey],
        limit: &'p Expr,
        refill: Option<f64>,
        slots: &'p [SlotId],
    ) -> TopSort<'p> {
        TopSort {
            node: input,
            input: build_with(input, input_order(refill)),
            keys,
            limit,
            refill,
            slots,
            rows: Vec::new(),
            charge: Charge::default(),
            whole: None,
            on_disk: None,
            most: 0,
            at: 0,
            yielded: 0,
            has_more: false,
        }
    }

    /// How many rows to keep at first.
    fn most_at_first(&self, exec: &mut Exec<'_>) -> Result<usize> {
        let most = count_of(exec, self.limit)?;
        Ok(match self.refill {
            Some(for_each) => (most as f64 * for_each * RESERVE).max(KEPT_MIN) as usize,
            None => usize::try_from(most).unwrap_or(usize::MAX),
        })
    }

    /// Keeps the first rows of those behind the last one that was kept.
    fn fill(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let after = self.rows.pop();
        self.rows.clear();
        self.charge.clear();
        self.at = 0;
        let mut first = First {
            keys: self.keys,
            slots: self.slots,
            is_of_columns: is_of_columns(self.keys),
            most: self.most,
            after,
            rows: BinaryHeap::new(),
            last: None,
            number: 0,
            has_more: false,
            charge: Charge::default(),
            asked_at: ASKED_EVERY_BYTES,
            key: KeyBuf::new(),
            saved: Vec::new(),
        };
        self.input.open(exec)?;
        let takes_batches = self.input.has_batches();
        let mut program = None;
        loop {
            let goes_on = if takes_batches && let Some(batch) = self.input.next_batch(exec)? {
                let new = || OrderProgram::new(exec, batch.slot, self.keys);
                let program = program.get_or_insert_with(new);
                first.offer_batch(exec, &batch, program.as_mut())?
            } else if self.input.next(exec)? {
                match first.offer(exec)? {
                    Offered::Taken => Ok(()),
                    Offered::TakenToSpill => Err(0..0),
                }
            } else {
                break;
            };
            if let Err(rest) = goes_on {
                return match self.refill {
                    Some(_) => {
                        drop(first);
                        self.sort_all(exec)
                    }
                    None => self.go_to_disk(exec, first, rest),
                };
            }
        }
        self.has_more = first.has_more;
        self.charge = first.charge;
        self.rows = first.rows.into_sorted_vec();
        Ok(())
    }

    /// Has the rows that were kept, those at these places of the batch that came last, and the rest of
    /// the input sorted on disk. Rows that were not kept come behind these.
    #[cold]
    fn go_to_disk(
        &mut self,
        exec: &mut Exec<'_>,
        first: First<'p>,
        places: Range<usize>,
    ) -> Result<()> {
        let mut sort = DiskSort::new(exec);
        let First {
            rows, mut charge, ..
        } = first;
        for row in rows.into_sorted_vec() {
            sort.push_saved(exec, &row.key, &row.row)?;
        }
        charge.clear();
        let mut key = KeyBuf::new();
        for place in places {
            self.input.load_of_batch(exec, place);
            sort_key_of(exec, self.keys, &mut key)?;
            sort.push(exec, &key, self.slots)?;
        }
        while self.input.next(exec)? {
            sort_key_of(exec, self.keys, &mut key)?;
            sort.push(exec, &key, self.slots)?;
        }
        self.on_disk = Some(Box::new(sort.finish(exec)?));
        Ok(())
    }

    /// Sorts all rows, and goes behind those that were yielded.
    fn sort_all(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.charge.clear();
        self.at = 0;
        let order = input_order(self.refill);
        let whole = Sort::new(self.node, self.keys, false, self.slots, Extent::All, order);
        let whole = self.whole.insert(whole);
        whole.open(exec)?;
        for _ in 0..self.yielded {
            whole.next(exec)?;
        }
        Ok(())
    }
}

/// The first rows of those that have come.
struct First<'p> {
    keys: &'p [SortKey],
    slots: &'p [SlotId],
    is_of_columns: bool,
    /// So many are kept.
    most: usize,
    /// Only rows behind this one are wanted.
    after: Option<SortedRow>,
    rows: BinaryHeap<SortedRow>,
    /// The head of the last one's key, once there are as many as are kept: rows behind it aren't.
    last: Option<KeyHead>,
    /// How many have come.
    number: u64,
    /// Some were not kept that are behind those that are.
    has_more: bool,
    charge: Charge,
    asked_at: usize,
    /// Are overwritten.
    key: KeyBuf,
    saved: Vec<u8>,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offered {
    /// It is kept, or not.
    Taken,
    /// So it is, and those that are kept take more memory than they should.
    TakenToSpill,
}

impl<'p> First<'p> {
    /// The current row has come.
    fn offer(&mut self, exec: &mut Exec<'_>) -> Result<Offered> {
        self.number += 1;
        // Most rows are told from the head of their key.
        if let Some(last) = self.last
            && self.is_of_columns
            && head_of_key(exec, self.keys)?.bits() > last.bits()
        {
            self.has_more = true;
            return Ok(Offered::Taken);
        }
        sort_key_of(exec, self.keys, &mut self.key)?;
        match self.is_wanted() {
            true => self.take(exec),
            false => Ok(Offered::Taken),
        }
    }

    /// Whether the row that has come is among the first ones, by its key, which was made.
    fn is_wanted(&mut self) -> bool {
        let key = &*self.key;
        let last = match self.rows.len() < self.most {
            true => None,
            false => self.rows.peek().map(|last| &*last.key),
        };
        if last.is_some_and(|last| last <= key) || self.most == 0 {
            self.has_more = true;
            return false;
        }
        let is_behind = |last: &SortedRow| (&*last.key, last.number) < (key, self.number);
        self.after.as_ref().is_none_or(is_behind)
    }

    /// Keeps the current row, whose key was made.
    fn take(&mut self, exec: &mut Exec<'_>) -> Result<Offered> {
        self.saved.clear();
        row_buffer::save(&exec.frame, self.slots, &mut self.saved);
        let row = SortedRow {
            key: self.key.as_slice().into(),
            number: self.number,
            row: self.saved.as_slice().into(),
        };
        self.charge.add(&exec.session.memory, row.bytes())?;
        self.rows.push(row);
        if self.charge.bytes() >= self.asked_at {
            self.asked_at = self.charge.bytes() + ASKED_EVERY_BYTES;
            let account = &exec.session.memory;
            if account.is_to_spill(Buffer::Sort, self.charge.bytes()) {
                return Ok(Offered::TakenToSpill);
            }
        }
        if self.rows.len() > self.most {
            self.has_more = true;
            let dropped = self.rows.pop();
            self.charge
                .sub(dropped.as_ref().map_or(0, SortedRow::bytes));
        }
        if self.rows.len() == self.most {
            self.last = self.rows.peek().map(|last| KeyHead::of(&last.key));
        }
        Ok(Offered::Taken)
    }

    /// The rows of a batch have come. `Err`: those that are kept take more memory than they should, and
    /// the rows at these places have not been looked at.
    fn offer_batch(
        &mut self,
        exec: &mut Exec<'_>,
        batch: &Batch<'_>,
        program: Option<&mut OrderProgram<'p>>,
    ) -> Result<std::result::Result<(), Range<usize>>> {
        let rows = batch.rows.len();
        let layouts = exec.layouts;
        let layout = &layouts[batch.slot.0 as usize].layout;
        // As long as all are kept, nothing is gained.
        let made = match (program, self.last) {
            (Some(program), Some(last)) => {
                let keys = program.run(exec, layout, &batch.rows)?;
                keys.map(|keys| (program, keys, last))
            }
            _ => None,
        };
        let Some((program, keys, last)) = made else {
            for (place, row) in batch.rows.iter().enumerate() {
                exec.check_interrupt()?;
                load_row(exec, batch.slot, row);
                if self.offer(exec)? == Offered::TakenToSpill {
                    return Ok(Err(place + 1..rows));
                }
            }
            return Ok(Ok(()));
        };
        let before = self.number;
        program.find_before(exec, &keys, last)?;
        self.has_more |= program.places().len() < rows;
        for &place in program.places() {
            exec.check_interrupt()?;
            let is_behind = |last: KeyHead| program.head(place).bits() > last.bits();
            if self.last.is_some_and(is_behind) {
                self.has_more = true;
                continue;
            }
            let place = place as usize;
            self.number = before + place as u64 + 1;
            program.key(exec, &keys, place, &mut self.key)?;
            if !self.is_wanted() {
                continue;
            }
            load_row(exec, batch.slot, batch.rows[place]);
            if self.take(exec)? == Offered::TakenToSpill {
                return Ok(Err(place + 1..rows));
            }
        }
        self.number = before + rows as u64;
        Ok(Ok(()))
    }
}

impl Operator for TopSort<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.whole = None;
        self.on_disk = None;
        self.yielded = 0;
        self.most = self.most_at_first(exec)?;
        match self.most > HEAP_MAX {
            true => self.sort_all(exec),
            false => self.fill(exec),
        }
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if let Some(rows) = &mut self.on_disk {
            self.at += 1;
            return Ok(self.at <= self.most && rows.next(exec, self.slots)?);
        }
        loop {
            if let Some(whole) = &mut self.whole {
                if self.refill.is_none() && self.at == self.most {
                    return Ok(false);
                }
                self.at += 1;
                return whole.next(exec);
            }
            if let Some(row) = self.rows.get(self.at) {
                exec.check_interrupt()?;
                row_buffer::restore(&row.row, &mut exec.frame, self.slots);
                self.at += 1;
                return Ok(true);
            }
            if self.refill.is_none() || !self.has_more {
                return Ok(false);
            }
            self.yielded += self.at as u64;
            self.most *= GROWTH;
            match self.most > HEAP_MAX {
                true => self.sort_all(exec)?,
                false => self.fill(exec)?,
            }
        }
    }
}
