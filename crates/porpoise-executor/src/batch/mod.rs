//! Batches: what is done to many rows at once.
//!
//! A scan that has read some rows one by one reads the rest in batches of up to 1,024, and from there
//! on conditions, expressions and aggregates are computed for a batch at a time:
//!
//! ```text
//! storage    Rows        the values of rows, borrowed from blocks
//! scan       Filter      leaves those that pass: condition by condition, over what is left
//! group      Program     columns and expressions as vectors, each computed once
//!            Accumulator::add_vector
//! hash join  KeyProgram  keys as vectors, looked up one behind the other
//! sort       OrderProgram  what keys begin with, of vectors: rows are compared by it
//! ```
//!
//! Of a large scan other threads take a part where cores are idle: they filter some batches, and
//! aggregate what is left where rows are grouped; what comes of it is taken in the order of the rows
//! ([`units`]).
//!
//! A [`Program`] is a list of steps, each of which makes a vector of the vectors before it: columns
//! are read into vectors ([`RowLayout::read_column`](porpoise_types::RowLayout::read_column)), and
//! loops compute with them (`kernels`). What no loop is for is computed by the row evaluator, row by
//! row, into a vector that others can use.
//!
//! # Semantics
//!
//! They stay in one place, the row evaluator. What is computed for a batch has no effects until it is
//! known that no row of it is out of the ordinary: that nothing overflows, is divided by zero, warns
//! or fails. Otherwise what was computed is dropped, and the rows of the batch are gone through one by
//! one, as if there were no batches: so errors and warnings come of the same rows, in the same order.
//! Expressions with effects, or with another value each time, and those with subqueries, are not
//! computed in batches at all ([`is_repeatable`]).
//!
//! # Memory
//!
//! What the vectors of a batch take at most is charged to the statement as long as its scan lasts.
//! Where that is more than it may have, rows are gone through one by one.

mod columns;
mod condition;
mod evaluator;
mod filter;
mod filter_work;
mod group;
mod group_work;
mod kernels;
mod keys;
mod order;
mod program;
mod units;

use porpoise_core::error::{Error, Result};
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_planner::plan::SlotLayout;
use porpoise_storage::Rows;

use crate::{Exec, Row};

pub(crate) use columns::Accumulators;
pub(crate) use filter::Filter;
pub(crate) use filter_work::FilterWork;
pub(crate) use group::{Arguments, GroupProgram, Partition};
pub(crate) use group_work::GroupWork;
pub(crate) use keys::{KeyProgram, Keys};
pub(crate) use order::OrderProgram;
pub(crate) use units::Units;
pub use units::units_of_others;

/// How many rows a batch has at most, and about how many bytes.
pub(crate) const ROWS_MAX: usize = 1024;
pub(crate) const BYTES_MAX: usize = 256 << 10;

/// Rows that a scan hands out at once: they have passed its conditions.
pub(crate) struct Batch<'b> {
    /// The slot that they are rows of.
    pub slot: SlotId,
    /// Each as the slot's layout has it.
    pub rows: Vec<&'b [u8]>,
}

/// How many batches a unit of work for other threads has, and about how many bytes.
const UNIT_BATCHES: usize = 16;
const UNIT_BYTES: usize = 2 << 20;
const UNIT_ROWS_MAX: usize = UNIT_BATCHES * ROWS_MAX;

/// What of a stored entry is the row that its slot's layout has; `None`: all of it.
pub(crate) type RowOf = Option<fn(&[u8]) -> &[u8]>;

/// A scan whose rows are to be had before its conditions were looked at.
///
/// Once some were taken, `next` and `next_batch` have none but those that were put back, until that is
/// ended.
pub(crate) trait RawRows {
    /// Whether it has had so many rows that many more are likely to come, all in batches from here on.
    fn is_large(&mut self, exec: &mut Exec<'_>) -> bool;

    /// The slot, the conditions, and what of an entry is a row; `None` where conditions need the
    /// session.
    fn raw(&mut self, exec: &mut Exec<'_>) -> Option<(SlotId, Filter<'static>, RowOf)>;

    /// Replaces `rows` by the next entries; `false` where the next one, if there is one, is to be had
    /// from `next` only.
    ///
    /// # Errors
    /// As `next`.
    fn next_raw(&mut self, exec: &mut Exec<'_>, rows: &mut Rows) -> Result<bool>;

    /// Counts rows that were taken: so many were examined, and so many have passed.
    fn count_raw(&mut self, exec: &mut Exec<'_>, examined: usize, passed: usize);

    /// Puts rows back, behind others that were.
    fn put_back(&mut self, rows: Vec<Rows>);

    /// Whether there are rows that were put back, and neither yielded nor left out yet.
    fn has_put_back(&mut self) -> bool;

    /// No more are taken. Behind those that were put back come the others, or this error.
    fn end_raw(&mut self, error: Option<Error>);
}

/// Whether batches are worth trying: not where most have to be gone through row by row after all.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    all: u32,
    failed: u32,
}

impl Tries {
    /// So many have failed before no more are tried.
    const FAILED_MIN: u32 = 4;

    /// Notes what became of a batch; whether others are to be tried.
    pub(crate) fn note(&mut self, is_plain: bool) -> bool {
        self.all += 1;
        self.failed += u32::from(!is_plain);
        self.failed < Self::FAILED_MIN || self.failed <= self.all / 2
    }
}

/// Rows that are longer are copied without what the statement doesn't read of them.
const WHOLE_BYTES_MAX: usize = 512;

/// Whether a row in its slot has all the bytes that it has where it is stored.
#[inline]
pub(crate) fn is_whole(layout: &SlotLayout, bytes: &[u8]) -> bool {
    layout.kept.is_none() || bytes.len() <= WHOLE_BYTES_MAX
}

/// Makes a row that is not locked its slot's current one.
#[inline]
pub(crate) fn load_row(exec: &mut Exec<'_>, slot: SlotId, bytes: &[u8]) {
    let layout = &exec.layouts[slot.0 as usize];
    put_row(&mut exec.frame.slots[slot.0 as usize], layout, bytes);
}

/// As [`load_row`].
#[inline]
pub(crate) fn put_row(row: &mut Row, layout: &SlotLayout, bytes: &[u8]) {
    match &layout.kept {
        Some(kept) if !is_whole(layout, bytes) => row.set_kept(bytes, layout, kept),
        _ => row.set(bytes),
    }
}

/// Whether an expression may be computed again, or for a row for which it turns out not to be
/// needed, without anybody noticing, as long as it doesn't warn.
fn is_repeatable(expr: &Expr) -> bool {
    !expr.is_volatile()
        && !expr.any(&mut |part| {
            matches!(
                part.kind,
                ExprKind::Subquery { .. } | ExprKind::Aggregate(_)
            )
        })
}

/// Whether an expression reads the slot's row.
fn reads(expr: &Expr, slot: SlotId) -> bool {
    expr.any(&mut |part| part.as_column().is_some_and(|(of, _)| of == slot))
}

/// Computes something that may be computed again; `None`, and nothing has happened, if that warns or
/// fails.
fn silently<T>(exec: &mut Exec<'_>, compute: impl FnOnce(&mut Exec<'_>) -> Result<T>) -> Option<T> {
    let vars = &exec.session.vars;
    let (total, kept) = (vars.warnings_total, vars.warnings.len());
    let was_frozen = exec.freeze_value_lists(true);
    let constants = exec.kept().constants.len();
    let computed = compute(exec);
    exec.freeze_value_lists(was_frozen);
    let vars = &mut exec.session.vars;
    let has_warned = vars.warnings_total != total;
    if has_warned {
        vars.warnings.truncate(kept);
        vars.warnings_total = total;
    }
    let computed = computed.ok().filter(|_| !has_warned);
    if computed.is_none() {
        // A constant warns when it is computed first.
        exec.kept().constants.truncate(constants);
    }
    computed
}
