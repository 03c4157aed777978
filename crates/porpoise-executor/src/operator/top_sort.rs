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

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, Charge};
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

use super::disk_sort::{DiskSort, SortedRows};
use super::sort::{Extent, PREFIX_BYTES, Sort, head_of_key, is_of_columns};
use super::{BoxedOperator, Operator, RowOrder, build_with, count_of, sort_key_of};
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
        self.has_more = false;
        let is_of_columns = is_of_columns(self.keys);
        let mut heap: BinaryHeap<SortedRow> = BinaryHeap::new();
        let (mut key, mut saved, mut number) = (KeyBuf::new(), Vec::new(), 0);
        let mut asked_at = ASKED_EVERY_BYTES;
        self.input.open(exec)?;
        while self.input.next(exec)? {
            number += 1;
            let worst = match heap.len() < self.most {
                true => None,
                false => heap.peek().map(|worst| &*worst.key),
            };
            // Most rows are told from the beginning of their key.
            if let Some(worst) = worst
                && is_of_columns
            {
                head_of_key(exec, self.keys, &mut key)?;
                let len = PREFIX_BYTES.min(key.len()).min(worst.len());
                if key[..len] > worst[..len] {
                    self.has_more = true;
                    continue;
                }
            }
            sort_key_of(exec, self.keys, &mut key)?;
            if worst.is_some_and(|worst| *worst <= *key) || self.most == 0 {
                self.has_more = true;
                continue;
            }
            let is_behind = |last: &SortedRow| (&*last.key, last.number) < (&*key, number);
            if !after.as_ref().is_none_or(is_behind) {
                continue;
            }
            saved.clear();
            row_buffer::save(&exec.frame, self.slots, &mut saved);
            let row = SortedRow {
                key: key.as_slice().into(),
                number,
                row: saved.as_slice().into(),
            };
            self.charge.add(&exec.session.memory, row.bytes())?;
            heap.push(row);
            if self.charge.bytes() >= asked_at {
                asked_at = self.charge.bytes() + ASKED_EVERY_BYTES;
                if exec
                    .session
                    .memory
                    .is_to_spill(Buffer::Sort, self.charge.bytes())
                {
                    return match self.refill {
                        Some(_) => {
                            drop(heap);
                            self.sort_all(exec)
                        }
                        None => self.go_to_disk(exec, heap),
                    };
                }
            }
            if heap.len() > self.most {
                self.has_more = true;
                let dropped = heap.pop();
                self.charge
                    .sub(dropped.as_ref().map_or(0, SortedRow::bytes));
            }
        }
        self.rows = heap.into_sorted_vec();
        Ok(())
    }

    /// Has the rows that were kept, and the rest of the input, sorted on disk. Rows that were not
    /// kept come behind these.
    #[cold]
    fn go_to_disk(&mut self, exec: &mut Exec<'_>, heap: BinaryHeap<SortedRow>) -> Result<()> {
        let mut sort = DiskSort::new(exec);
        for row in heap.into_sorted_vec() {
            sort.push_saved(exec, &row.key, &row.row)?;
        }
        self.charge.clear();
        let mut key = KeyBuf::new();
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
