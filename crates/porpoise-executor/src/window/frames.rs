//! Frames of window functions: which rows of the partition belong to the frame of a row.

use std::cell::Cell;
use std::ops::Range;

use porpoise_core::error::{Error, Result};
use porpoise_expr::compare;
use porpoise_expr::{Domain, Expr};
use porpoise_planner::plan::{FrameBound, Window, WindowCall};
use porpoise_types::Value;

use super::Partition;
use super::results::{FunctionInput, whole_number};
use super::store::Store;

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
    /// Where the frame of the row before began and ended.
    last_start: Cell<usize>,
    last_end: Cell<usize>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(
        window: &'a Window,
        call: &'a WindowCall,
        input: &'a FunctionInput,
        partition: &'a Partition,
    ) -> Result<Frames<'a>> {
        let distance = |values: &Store<Value>| {
            values.with(0, |value| match value {
                Some(value) if call.frame.rows => whole_number(value)
                    .map(|distance| usize::try_from(distance).unwrap_or(usize::MAX))
                    .ok_or_else(|| Error::window_frame_illegal("<unnamed window>")),
                _ => Ok(0),
            })?
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
            last_start: Cell::new(0),
            last_end: Cell::new(0),
        })
    }

    /// A row's frame: a range of positions, empty where it ends before it begins.
    pub(super) fn of(&self, row: usize) -> Result<Range<usize>> {
        let len = self.partition.len;
        let rows = self.call.frame.rows;
        let peers = self.partition.peers(row)?;
        let start = match &self.call.frame.start {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => len,
            FrameBound::CurrentRow if rows => row,
            FrameBound::CurrentRow => peers.start,
            FrameBound::Preceding(_) if rows => row.saturating_sub(self.start_rows),
            FrameBound::Following(_) if rows => row.saturating_add(self.start_rows).min(len),
            _ => match self.input.start.with(row, |bound| bound.cloned())? {
                None | Some(Value::Null) => peers.start,
                Some(bound) => self.first_not_before(&bound)?,
            },
        };
        let end = match &self.call.frame.end {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => len,
            FrameBound::CurrentRow if rows => row + 1,
            FrameBound::CurrentRow => peers.end,
            FrameBound::Preceding(_) if rows => (row + 1).saturating_sub(self.end_rows),
            FrameBound::Following(_) if rows => (row + 1).saturating_add(self.end_rows).min(len),
            _ => match self.input.end.with(row, |bound| bound.cloned())? {
                None | Some(Value::Null) => peers.end,
                Some(bound) => self.first_after(&bound)?,
            },
        };
        Ok(start..end.max(start))
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

    fn first_not_before(&self, bound: &Value) -> Result<usize> {
        self.first_where(&self.last_start, |value| {
            !self.compare(value, bound).is_lt()
        })
    }

    fn first_after(&self, bound: &Value) -> Result<usize> {
        self.first_where(&self.last_end, |value| !self.compare(value, bound).is_le())
    }

    /// The first row with an order value that passes, as those of all rows behind it do. It is looked
    /// for from the last row's on, from which it is nearly always near.
    fn first_where(&self, last: &Cell<usize>, passes: impl Fn(&Value) -> bool) -> Result<usize> {
        let values = &self.partition.order_values;
        let passes = |row: usize| values.with(row, |value| value.is_none_or(&passes));
        let (mut low, mut high, mut step) = (0, values.len(), 1);
        let near = last.get().min(high);
        if near == high || passes(near)? {
            high = near;
            while high > 0 {
                let at = high.saturating_sub(step);
                if !passes(at)? {
                    low = at + 1;
                    break;
                }
                high = at;
                step *= 2;
            }
        } else {
            low = near + 1;
            while low < high {
                let at = (low + step - 1).min(high - 1);
                if passes(at)? {
                    high = at;
                    break;
                }
                low = at + 1;
                step *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match passes(middle)? {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        last.set(low);
        Ok(low)
    }
}

pub(super) fn has_distance(bound: &FrameBound) -> bool {
    matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_))
}
