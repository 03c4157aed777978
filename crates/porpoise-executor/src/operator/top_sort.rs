//! The first rows of an order: ORDER BY with LIMIT.

use std::collections::BinaryHeap;

use porpoise_core::error::Result;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

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

/// Keeps the first rows of an order, and no more.
pub(super) struct TopSort<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    limit: &'p Expr,
    slots: &'p [SlotId],
    rows: Vec<SortedRow>,
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
            input: build(input),
            keys,
            limit,
            slots,
            rows: Vec::new(),
            at: 0,
        }
    }
}

impl Operator for TopSort<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.at = 0;
        let most = usize::try_from(count_of(exec, self.limit)?).unwrap_or(usize::MAX);
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
            heap.push(SortedRow {
                key: key.as_slice().into(),
                number,
                row: saved.as_slice().into(),
            });
            if heap.len() > most {
                heap.pop();
            }
        }
        self.rows = heap.into_sorted_vec();
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(row) = self.rows.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        row_buffer::restore(&row.row, &mut exec.frame, self.slots);
        Ok(true)
    }
}
