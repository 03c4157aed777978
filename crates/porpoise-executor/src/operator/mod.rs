//! Operators: what plan nodes become when they run, a module each.
//!
//! `open` starts an operator, again and again for the right side of a nested loop; `next` puts the
//! next row into the frame and says whether there was one. After `next` has said no, it is not
//! asked again before another `open`. Who takes many rows may ask for batches of them, too
//! ([`crate::batch`]): scans have some, and groupings, hash joins and sorts take them.
//!
//! | where rows come from | what is done to them one by one | what needs all of them |
//! | --- | --- | --- |
//! | `scan`, `constant`, `virtual_table`, `materialized`, `recursive`, [`json_table`](super::json_table) | `filter`, `project`, `limit`, `distinct`, `nested_loop`, `measured` | `hash_join` (`join_table`), `group`, `sort`, `top_sort`, `set_operation`, [`window`](super::window) |

mod constant;
mod disk_join;
mod disk_sort;
mod distinct;
mod distinct_rows;
mod filter;
mod group;
mod group_state;
mod hash_group;
mod hash_join;
mod join_table;
mod leaps;
mod limit;
mod materialized;
mod measured;
mod nested_loop;
mod project;
mod recursive;
mod row_keys;
mod scan;
mod set_operation;
mod sort;
mod top_sort;
mod virtual_table;

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{EvalContext, Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::key::encode_text_part;
use porpoise_types::{KeyBuf, Value, cancel};
use smallvec::SmallVec;

use crate::Exec;
use crate::batch::{Batch, RawRows};
use crate::eval::{Evaluate, append_key};
use crate::json_table::JsonTableOperator;
use crate::row_buffer::{RowBuffer, RowReader};
use crate::window::WindowOperator;

pub use disk_sort::{DiskSort, SortedRows};
pub use limit::count_of;

use constant::{Empty, One, Values};
use distinct::Distinct;
use filter::Filter;
use group::GroupOperator;
pub use hash_join::BuiltSide;
use hash_join::HashJoin;
use limit::Limit;
use materialized::Materialized;
use measured::Measured;
use nested_loop::NestedLoop;
use project::Project;
use recursive::{Recursive, Working};
use scan::ScanOperator;
use set_operation::SetOperation;
use sort::{Extent, Sort};
use top_sort::TopSort;
use virtual_table::Virtual;

pub trait Operator {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()>;
    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool>;

    /// Whether it may have rows in batches.
    fn has_batches(&self) -> bool {
        false
    }

    /// The next rows, many at a time; none of a batch may be left. `None` where the next one, if there
    /// is one, is to be had from `next` only. The slots' current rows are none of them.
    ///
    /// # Errors
    /// As `next`.
    fn next_batch<'s>(&'s mut self, exec: &mut Exec<'_>) -> Result<Option<Batch<'s>>> {
        let _ = exec;
        Ok(None)
    }

    /// The rows that its batches have, before its conditions were looked at; none of a batch may be left.
    fn raw_rows(&mut self) -> Option<&mut dyn RawRows> {
        None
    }

    /// Makes a row of the batch that came last its slot's current one, by its place in the batch.
    fn load_of_batch(&mut self, exec: &mut Exec<'_>, place: usize) {
        let _ = (exec, place);
    }
}

pub type BoxedOperator<'p> = Box<dyn Operator + 'p>;

/// Whether the order counts in which an operator yields rows. One that puts rows on disk has to do
/// more to keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// As if nothing were on disk: a sort was left out because rows come in order, or they are read
    /// again and have to come as they did before.
    Kept,
    /// Whatever it is.
    Free,
}

/// Makes the operator of a node, and of all below it. It keeps the order of rows.
pub fn build(node: &Node) -> BoxedOperator<'_> {
    build_with(node, RowOrder::Kept)
}

/// Makes the operator of a node, and of all below it.
pub fn build_with(node: &Node, order: RowOrder) -> BoxedOperator<'_> {
    match node {
        Node::One => Box::new(One::new()),
        Node::Empty => Box::new(Empty),
        Node::Scan(scan) => Box::new(ScanOperator::new(scan)),
        Node::Values { slot, rows } => Box::new(Values::new(*slot, rows)),
        Node::JsonTable { slot, doc, table } => Box::new(JsonTableOperator::new(*slot, doc, table)),
        Node::Virtual {
            slot,
            table,
            filter,
        } => Box::new(Virtual::new(*slot, table, filter)),
        Node::Derived {
            slot,
            input,
            output,
            materialize: Some(number),
            correlated: false,
        } => Box::new(Materialized::new(*slot, input, output, *number)),
        Node::Derived {
            slot,
            input,
            output,
            ..
        } => Box::new(Project::new(input, *slot, output, order)),
        Node::Recursive {
            slot,
            seed,
            seed_output,
            step,
            step_output,
            distinct,
            working,
        } => {
            let parts = [(&**seed, &seed_output[..]), (&**step, &step_output[..])];
            Box::new(Recursive::new(*slot, parts, *distinct, *working))
        }
        Node::Working { slot, working } => Box::new(Working::new(*slot, *working)),
        Node::Filter { input, conditions } => Box::new(Filter::new(input, conditions, order)),
        Node::NestedLoop {
            left,
            right,
            kind,
            condition,
            ..
        } => Box::new(NestedLoop::new(left, right, *kind, condition, order)),
        Node::HashJoin {
            left,
            right,
            kind,
            left_keys,
            right_keys,
            condition,
            right_slots,
            kept,
            ..
        } => Box::new(HashJoin::new(
            [left, right],
            *kind,
            [left_keys, right_keys],
            condition,
            right_slots,
            *kept,
            order,
        )),
        Node::Group(group) => Box::new(GroupOperator::new(group)),
        Node::Project {
            input,
            slot,
            output,
        } => Box::new(Project::new(input, *slot, output, order)),
        Node::Sort {
            input,
            keys,
            limit: None,
            distinct,
            slots,
            ..
        } => {
            let order = if keys.is_empty() {
                order
            } else {
                RowOrder::Free
            };
            let sort = Sort::new(input, keys, *distinct, slots, Extent::All, order);
            Box::new(sort)
        }
        Node::Batch { input, keys, slots } => {
            Box::new(Sort::new(input, keys, false, slots, Extent::Batches, order))
        }
        Node::Sort {
            input,
            keys,
            limit: Some(limit),
            refill,
            slots,
            ..
        } => Box::new(TopSort::new(input, keys, limit, *refill, slots)),
        Node::Distinct { input, keys, .. } => Box::new(Distinct::new(input, keys, order)),
        Node::Limit {
            input,
            offset,
            count,
        } => Box::new(Limit::new(
            input,
            offset.as_deref(),
            count.as_deref(),
            order,
        )),
        Node::SetOperation {
            slot,
            op,
            distinct,
            inputs,
        } => Box::new(SetOperation::new(*slot, *op, *distinct, inputs, order)),
        Node::Window(window) => Box::new(WindowOperator::new(window)),
        Node::Measured { input, number } => Box::new(Measured::new(input, *number, order)),
    }
}

/// Whether every condition is true (neither false nor NULL).
pub fn all_true(conditions: &[Expr], exec: &mut Exec<'_>) -> Result<bool> {
    for condition in conditions {
        if !condition.eval_condition(exec)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Computes expressions and encodes them into a slot.
pub fn project(exec: &mut Exec<'_>, slot: SlotId, output: &[Expr]) -> Result<()> {
    let mut values: SmallVec<[Value; 8]> = SmallVec::with_capacity(output.len());
    let mut charge = Charge::default();
    for expr in output {
        let value = expr.eval(exec)?;
        exec.charge_long(&value, &mut charge)?;
        values.push(value);
    }
    exec.fill(slot, &values)
}

/// The comparable key of some expressions over the current row.
pub fn key_of<'p>(
    exec: &mut Exec<'_>,
    exprs: impl Iterator<Item = (&'p Expr, bool)>,
    out: &mut KeyBuf,
) -> Result<()> {
    out.clear();
    for (expr, descending) in exprs {
        if let Some((text, collation)) = exec.text_column(expr)
            && text.len() <= cancel::SHORT_BYTES
        {
            encode_text_part(text, collation, descending, out);
            continue;
        }
        let value = expr.eval(exec)?;
        append_key(exec, &value, &expr.ty, descending, out)?;
    }
    Ok(())
}

/// Where the current row stands in an order.
fn sort_key_of(exec: &mut Exec<'_>, keys: &[SortKey], out: &mut KeyBuf) -> Result<()> {
    let keys = keys.iter().map(|key| (&key.expr, key.descending));
    key_of(exec, keys, out)
}

/// Yields a buffer's next row. The rows behind an operator that discards them all are many: each is
/// a place where the statement can be ended.
pub(super) fn replay(
    rows: &RowBuffer,
    reader: &mut RowReader,
    exec: &mut Exec<'_>,
    slots: &[SlotId],
) -> Result<bool> {
    if !reader.next(rows, &mut exec.frame, slots)? {
        return Ok(false);
    }
    exec.check_interrupt()?;
    Ok(true)
}
