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
//! ```
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

mod condition;
mod filter;
mod group;
mod kernels;
mod program;

use porpoise_core::error::Result;
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_planner::plan::SlotLayout;

use crate::{Exec, Row};

pub(crate) use filter::Filter;
pub(crate) use group::{Arguments, GroupProgram, Partition};

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
        Some(kept) if bytes.len() > WHOLE_BYTES_MAX => row.set_kept(bytes, layout, kept),
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
