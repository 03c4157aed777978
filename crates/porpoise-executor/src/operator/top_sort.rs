//! The first rows of an order: ORDER BY with LIMIT.

use std::collections::BinaryHeap;

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

use super::sort::{Extent, Sort};
use super::{BoxedOperator, Operator, build, count_of, sort_key_of};
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

impl SortedRow {
    fn bytes(&self) -> usize {
        size_of::<SortedRow>() + self.key.len() + self.row.len()
    }
}

/// Keeps the first rows of an order, and no more, if they are not too many.
pub(super) struct TopSort<'p> {
    node: &'p Node,
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    limit: &'p Expr,
    slots: &'p [SlotId],
    rows: Vec<SortedRow>,
    charge: Charge,
    /// Sorts all rows, where that is better.
    whole: Option<Sort<'p>>,
    most: usize,
    at: usize,
}

impl<'p> TopSort<'p> {
    pub(super) fn new(
        input: &'p Node,
        keys: &'p [SortKey],
        limit: &'p Expr,
        slots: &'p [SlotId],
    ) -> TopSort<'p> {
        TopSort {
            node: input,
            input: build(input),
            keys,
            limit,
            slots,
            rows: Vec::new(),
            charge: Charge::default(),
            whole: None,
            most: 0,
            at: 0,
        }
    }
}

impl Operator for TopSort<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.charge.clear();
        self.at = 0;
        let most = usize::try_from(count_of(exec, self.limit)?).unwrap_or(usize::MAX);
        self.most = most;
        if most > HEAP_MAX {
            let whole = Sort::new(self.node, self.keys, false, self.slots, Extent::All);
            return self.whole.insert(whole).open(exec);
        }
        self.whole = None;
        self.input.open(exec)?;
        let mut heap = BinaryHeap::new();
        let (mut key, mut saved, mut number) = (KeyBuf::new(), Vec::new(), 0);
        while self.input.next(exec)? {
            sort_key_of(exec, self.keys, &mut key)?;
            number += 1;
            if heap.len() >= most
                && heap
                    .peek()
                    .is_none_or(|worst: &SortedRow| *worst.key <= *key)
            {
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
            if heap.len() > most {
                let dropped = heap.pop();
                self.charge
                    .sub(dropped.as_ref().map_or(0, SortedRow::bytes));
            }
        }
        self.rows = heap.into_sorted_vec();
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.at == self.most {
            return Ok(false);
        }
        self.at += 1;
        if let Some(whole) = &mut self.whole {
            return whole.next(exec);
        }
        let Some(row) = self.rows.get(self.at - 1) else {
            return Ok(false);
        };
        exec.check_interrupt()?;
        row_buffer::restore(&row.row, &mut exec.frame, self.slots);
        Ok(true)
    }
}
