//! Frames of window functions: which rows of the partition belong to the frame of a row.

use std::ops::Range;

use porpoise_core::error::{Error, Result};
use porpoise_expr::compare;
use porpoise_expr::{Domain, Expr};
use porpoise_planner::plan::{FrameBound, Window, WindowCall};
use porpoise_types::Value;

use super::Partition;
use super::results::{FunctionInput, whole_number};

/// The frames of one function in one partition.
pub(super) struct Frames<'a> {
    pub(super) call: &'a WindowCall,
    pub(super) input: &'a FunctionInput,
    pub(super) partition: &'a Partition,
    /// ROWS: how many rows the bounds are away.
    pub(super) start_rows: usize,
    pub(super) end_rows: usize,
    /// RANGE: how order values compare.
    pub(super) domain: Domain,
    pub(super) descending: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn new(
        window: &'a Window,
        call: &'a WindowCall,
        input: &'a FunctionInput,
        partition: &'a Partition,
    ) -> Result<Frames<'a>> {
        let distance = |values: &[Value]| match values.first() {
            Some(value) if call.frame.rows => whole_number(value)
                .map(|distance| usize::try_from(distance).unwrap_or(usize::MAX))
                .ok_or_else(|| Error::window_frame_illegal("<unnamed window>")),
            _ => Ok(0),
        };
        let key: Option<(&Expr, bool)> =
            window.order.first().map(|key| (&key.expr, key.descending));
        Ok(Frames {
            call,
            input,
            partition,
            start_rows: distance(&input.start)?,
            end_rows: distance(&input.end)?,
            domain: key.map_or(Domain::Integer, |(expr, _)| Domain::of(&expr.ty)),
            descending: key.is_some_and(|(_, descending)| descending),
        })
    }

    /// A row's frame: a range of positions, empty where it ends before it begins.
    pub(super) fn of(&self, row: usize) -> Range<usize> {
        let len = self.partition.len;
        let rows = self.call.frame.rows;
        let peers = &self.partition.peers[row];
        let start = match &self.call.frame.start {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => len,
            FrameBound::CurrentRow if rows => row,
            FrameBound::CurrentRow => peers.start,
            FrameBound::Preceding(_) if rows => row.saturating_sub(self.start_rows),
            FrameBound::Following(_) if rows => row.saturating_add(self.start_rows).min(len),
            _ => match self.input.start.get(row) {
                None | Some(Value::Null) => peers.start,
                Some(bound) => self.first_not_before(bound),
            },
        };
        let end = match &self.call.frame.end {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => len,
            FrameBound::CurrentRow if rows => row + 1,
            FrameBound::CurrentRow => peers.end,
            FrameBound::Preceding(_) if rows => (row + 1).saturating_sub(self.end_rows),
            FrameBound::Following(_) if rows => (row + 1).saturating_add(self.end_rows).min(len),
            _ => match self.input.end.get(row) {
                None | Some(Value::Null) => peers.end,
                Some(bound) => self.first_after(bound),
            },
        };
        start..end.max(start)
    }

    /// NULLs come first, or last where the order is descending.
    fn compare(&self, value: &Value, bound: &Value) -> std::cmp::Ordering {
        let order = match value.is_null() {
            true => std::cmp::Ordering::Less,
            false => compare::compare(value, bound, self.domain),
        };
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }

    fn first_not_before(&self, bound: &Value) -> usize {
        self.partition
            .order_values
            .partition_point(|value| self.compare(value, bound).is_lt())
    }

    fn first_after(&self, bound: &Value) -> usize {
        self.partition
            .order_values
            .partition_point(|value| self.compare(value, bound).is_le())
    }
}

pub(super) fn has_distance(bound: &FrameBound) -> bool {
    matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_))
}
