//! From bound queries to plan nodes.
//!
//! For a query block, from the inside out:
//!
//! 0. conditions on derived tables move into them, before these are planned ([`pushdown`]);
//! 1. subqueries of WHERE are turned, where they can be, into semi-joins and anti-joins
//!    ([`semijoin`]);
//! 2. outer joins whose NULL rows no condition lets through become inner joins ([`outer`]);
//! 3. disjunctions give what all their alternatives say ([`disjunction`]), and equalities are
//!    carried on: `a = b AND b = 7` means `a = 7` ([`equality`]);
//! 4. each table's access paths are found and costed: ranges over its indexes, of the conditions
//!    that select one ([`sargs`], [`ranges`], [`access`]), sets of keys from several indexes
//!    ([`merge`]), entries of an index with leaps between them ([`skip`]), conditions on entries
//!    ([`entries`]), some in an order that spares a sort ([`order`]);
//! 5. the join order is searched, with nested loops or hash joins ([`join`]);
//! 6. grouping, windows, DISTINCT, ORDER BY and LIMIT are put on top, sorting only what isn't in
//!    order yet ([`block`]); MIN and MAX of an indexed column read one row ([`min_max`]).
//!
//! What became of a query is told as text where somebody wants it ([`rewritten`]).

mod access;
mod block;
pub mod cost;
mod disjunction;
mod dives;
mod entries;
mod equality;
mod estimate;
mod histograms;
mod join;
mod merge;
mod min_max;
mod order;
mod outer;
mod pushdown;
mod ranges;
mod rewritten;
mod sargs;
mod semijoin;
mod skip;
pub mod split;
mod work;

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, ExprKind, SubqueryKind};
use porpoise_types::{DataType, Value};

use block::{limited, projected, select, sorted};
pub use estimate::{is_measured_scan, rows_of};
use order::InterestingOrder;
pub use outer::source_slots;
pub use rewritten::QueryTexts;
pub use semijoin::SUBQUERY_NAME;
pub use work::ExpectedLong;

use crate::bind::Binder;
use crate::bind::hints::{Others, TableOrder};
use crate::plan::{Node, RowLock, SetOperator, Subplan, slots_of};
use crate::query::{Block, Body, JoinTree, OutputColumn, Query, SourceKind, WithNode};
use crate::slot_set::SlotSet;
use crate::trace;

/// Plans a query: its node, and the expressions that make its result of the node's slots.
pub fn query(binder: &mut Binder<'_>, query: Query) -> Result<(Node, Vec<Expr>)> {
    let Query {
        body,
        mut columns,
        mut order,
        mut limit,
        mut offset,
    } = query;
    binder.check_interrupt()?;
    plan_subqueries_of(binder, limit.iter_mut().chain(&mut offset))?;
    let node = match body {
        Body::Select(block) => return select(binder, *block, columns, order, limit, offset),
        Body::Values { slot, mut rows } => {
            plan_subqueries_of(binder, rows.iter_mut().flatten())?;
            Node::Values { slot, rows }
        }
        Body::JsonTable {
            slot,
            mut doc,
            table,
        } => {
            plan_subqueries(binder, &mut doc)?;
            Node::JsonTable { slot, doc, table }
        }
        Body::SetOperation {
            slot,
            op,
            distinct,
            inputs,
        } => {
            let mut planned = Vec::with_capacity(inputs.len());
            let mut texts = Vec::new();
            for mut input in inputs {
                // The rows of each input beyond the whole's LIMIT are never asked for; sorting them
                // is for nothing.
                if input.limit.is_none() && input.offset.is_none() {
                    input.order.clear();
                }
                planned.push(self::query(binder, input)?);
                texts.push(std::mem::take(&mut binder.texts.last));
            }
            binder.keep_union_text(op, distinct, &texts);
            Node::SetOperation {
                slot,
                op,
                distinct,
                inputs: planned,
            }
        }
        Body::Recursive {
            slot,
            seed,
            step,
            distinct,
            working,
        } => {
            let (seed, seed_output) = self::query(binder, *seed)?;
            let mut texts = vec![std::mem::take(&mut binder.texts.last)];
            let (step, step_output) = self::query(binder, *step)?;
            texts.push(std::mem::take(&mut binder.texts.last));
            binder.keep_union_text(SetOperator::Union, distinct, &texts);
            let (seed, step) = (Box::new(seed), Box::new(step));
            Node::Recursive {
                slot,
                seed,
                seed_output,
                step,
                step_output,
                distinct,
                working,
            }
        }
    };
    plan_subqueries_of_columns(binder, &mut columns)?;
    plan_subqueries_of(binder, order.iter_mut().map(|key| &mut key.expr))?;
    let node = sorted(binder, node, order, limit.as_ref(), offset.as_ref());
    let node = limited(node, limit, offset);
    Ok((
        node,
        columns.into_iter().map(|column| column.expr).collect(),
    ))
}

/// Yields a query's first row only when all are computed: a statement that writes a table must not
/// read the rows it writes.
pub fn buffered(binder: &mut Binder<'_>, node: Node, output: Vec<Expr>) -> (Node, Vec<Expr>) {
    let (node, output, _) = projected(binder, node, output, Vec::new());
    let slots = slots_of(&node);
    let node = Node::Sort {
        input: Box::new(node),
        keys: Vec::new(),
        limit: None,
        refill: None,
        distinct: false,
        slots,
    };
    (node, output)
}

/// Plans the rows that UPDATE or DELETE changes.
pub fn rows(
    binder: &mut Binder<'_>,
    block: Block,
    mut order: Vec<SortKey>,
    limit: Option<&Expr>,
) -> Result<Node> {
    plan_subqueries_of(binder, order.iter_mut().map(|key| &mut key.expr))?;
    let wanted = InterestingOrder::of_sort(&order, limit, None);
    let joined = from(
        binder,
        block.from,
        block.conditions,
        block.straight,
        &wanted,
    )?;
    if joined.in_order && !order.is_empty() {
        return Ok(joined.node);
    }
    Ok(sorted(binder, joined.node, order, limit, None))
}

/// Plans the subqueries inside an expression.
pub fn plan_subqueries(binder: &mut Binder<'_>, expr: &mut Expr) -> Result<()> {
    let mut failed = Ok(());
    expr.for_each_child_mut(&mut |child| {
        if failed.is_ok() {
            failed = plan_subqueries(binder, child);
        }
    });
    failed?;
    semijoin::to_exists(binder, expr, false);
    let ExprKind::Subquery { number, ref kind } = expr.kind else {
        return Ok(());
    };
    // An alias repeats an expression; its subquery is planned once.
    let taken = binder.subqueries.get_mut(number).and_then(Option::take);
    let Some(mut bound) = taken else {
        return Ok(());
    };
    let free = free_slots(binder, &bound);
    if binder.subquery_slots.len() <= number {
        binder.subquery_slots.resize(number + 1, SlotSet::default());
    }
    binder.subquery_slots[number] = free.clone();
    let exists = matches!(kind, SubqueryKind::Exists { .. });
    if exists || (matches!(kind, SubqueryKind::Quantified { .. }) && bound.limit.is_none()) {
        // Which rows come first changes nothing.
        bound.order.clear();
    }
    if exists && bound.limit.is_none() {
        bound.limit = Some(Expr::literal(Value::Int(1), DataType::BIGINT));
    }
    let outer_columns = outer_columns(binder, &bound, &free);
    let executions = match free.is_empty() {
        true => 1.0,
        false => binder.executions * binder.block_rows.max(1.0),
    };
    let joined = binder.hold_joined_text();
    let planned = for_executions(binder, executions, |binder| query(binder, bound));
    let (node, output) = planned?;
    binder.keep_subquery_text(number);
    binder.return_joined_text(joined);
    binder
        .subplans
        .resize_with(binder.subqueries.len(), || None);
    binder.subplans[number] = Some(Subplan {
        number,
        node,
        output,
        correlated: !free.is_empty(),
        outer_columns,
    });
    Ok(())
}

/// Plans something that is expected to run so many times.
fn for_executions<'b, R>(
    binder: &mut Binder<'b>,
    executions: f64,
    plan: impl FnOnce(&mut Binder<'b>) -> R,
) -> R {
    let held = (binder.executions, binder.block_rows);
    (binder.executions, binder.block_rows) = (executions, 1.0);
    let planned = plan(binder);
    (binder.executions, binder.block_rows) = held;
    planned
}

/// Plans the subqueries inside expressions.
pub fn plan_subqueries_of<'e>(
    binder: &mut Binder<'_>,
    exprs: impl IntoIterator<Item = &'e mut Expr>,
) -> Result<()> {
    exprs
        .into_iter()
        .try_for_each(|expr| plan_subqueries(binder, expr))
}

fn plan_subqueries_of_columns(binder: &mut Binder<'_>, columns: &mut [OutputColumn]) -> Result<()> {
    plan_subqueries_of(binder, columns.iter_mut().map(|column| &mut column.expr))
}

/// The slots that an expression reads, subqueries' outer references included.
pub fn expr_slots(binder: &Binder<'_>, expr: &Expr) -> SlotSet {
    let mut slots = SlotSet::default();
    add_slots(binder, expr, &mut slots);
    slots
}

/// Adds the slots that an expression reads.
fn add_slots(binder: &Binder<'_>, expr: &Expr, slots: &mut SlotSet) {
    match &expr.kind {
        ExprKind::Column { slot, .. } => slots.insert(*slot),
        ExprKind::Subquery { number, .. } => match binder.subqueries.get(*number) {
            Some(Some(query)) => slots.add(&free_slots(binder, query)),
            _ => {
                if let Some(free) = binder.subquery_slots.get(*number) {
                    slots.add(free);
                }
            }
        },
        _ => {}
    }
    expr.for_each_child(&mut |child| add_slots(binder, child, slots));
}

/// The slots that a query reads and doesn't fill: its outer references.
pub fn free_slots(binder: &Binder<'_>, query: &Query) -> SlotSet {
    let mut slots = SlotSet::default();
    query.for_each_expr(&mut |expr| add_slots(binder, expr, &mut slots));
    query.for_each_slot(&mut |slot| {
        let own = SlotSet::one(slot);
        slots.remove(&own);
    });
    slots
}

/// The columns of enclosing queries that a query reads, which are all that its result depends on.
/// `None` where it depends on more: it changes from call to call, or locks what it reads.
fn outer_columns(binder: &Binder<'_>, query: &Query, free: &SlotSet) -> Option<Vec<Expr>> {
    let mut found = Vec::new();
    let depends_on_these = add_outer_columns(binder, query, free, &mut found);
    depends_on_these.then_some(found)
}

fn add_outer_columns(
    binder: &Binder<'_>,
    query: &Query,
    free: &SlotSet,
    found: &mut Vec<Expr>,
) -> bool {
    let mut depends_on_these = true;
    query.for_each_source(&mut |source| {
        depends_on_these &= source.lock == RowLock::None
            && !matches!(
                source.kind,
                SourceKind::Common { .. } | SourceKind::Working { .. }
            );
    });
    query.for_each_expr(&mut |expr| {
        depends_on_these &= !expr.is_volatile();
        expr.any(&mut |part| {
            match &part.kind {
                ExprKind::Column { slot, .. } if free.contains(*slot) => {
                    if !found.iter().any(|held: &Expr| held.same_as(part, &[])) {
                        found.push(part.clone());
                    }
                }
                ExprKind::Subquery { number, .. } => match binder.subqueries.get(*number) {
                    Some(Some(inner)) => {
                        depends_on_these &= add_outer_columns(binder, inner, free, found);
                    }
                    // An alias of one that is planned already.
                    _ => depends_on_these = false,
                },
                _ => {}
            }
            false
        });
    });
    depends_on_these
}

/// A planned FROM and WHERE.
pub struct Joined {
    pub node: Node,
    /// The rows come in the wanted order.
    pub in_order: bool,
}

/// Plans FROM and WHERE.
fn from(
    binder: &mut Binder<'_>,
    mut tree: JoinTree,
    mut conditions: Vec<Expr>,
    straight: bool,
    wanted: &InterestingOrder,
) -> Result<Joined> {
    if let JoinTree::One = tree {
        plan_subqueries_of(binder, &mut conditions)?;
        binder.keep_joined_text(&tree, &conditions);
        let node = filtered(Node::One, conditions);
        return Ok(Joined {
            node,
            in_order: true,
        });
    }
    if straight {
        fix_order(binder, &tree);
    }
    pushdown::into_derived(binder, &mut tree, &mut conditions);
    let splits = split::splits(binder, &tree, &conditions);
    prepare(binder, &mut tree)?;
    tree.for_each_source_mut(&mut |source| {
        if let SourceKind::Planned { splits: of, .. } = &mut source.kind
            && let Some((_, offered)) = splits.iter().find(|(slot, _)| *slot == source.slot)
        {
            of.clone_from(offered);
        }
    });
    let tree = outer::simplify(binder, tree, &mut conditions);
    let tree = semijoin::convert(binder, tree, &mut conditions)?;
    let mut tree = outer::simplify(binder, tree, &mut conditions);
    disjunction::simplify(binder, &mut tree, &mut conditions);
    let has_subquery = |expr: &Expr| expr.has_subquery();
    if conditions.iter().any(has_subquery) || tree.any_on(&mut |on| on.has_subquery()) {
        let plain = conditions
            .iter()
            .filter(|condition| !condition.has_subquery());
        let plain: Vec<Expr> = plain.cloned().collect();
        binder.block_rows = join::estimate(binder, &tree, &plain);
        let mut to_exists = |condition: &mut Expr| semijoin::to_exists(binder, condition, true);
        conditions.iter_mut().for_each(&mut to_exists);
        tree.for_each_on_mut(&mut to_exists);
    }
    plan_subqueries_of(binder, &mut conditions)?;
    let mut failed = Ok(());
    tree.for_each_on_mut(&mut |condition| {
        if failed.is_ok() {
            failed = plan_subqueries(binder, condition);
        }
    });
    failed?;
    equality::propagate(&mut conditions);
    binder.keep_joined_text(&tree, &conditions);
    binder.trace("condition_processing", || {
        let resulting = conditions.iter().map(|condition| binder.text_of(condition));
        vec![
            ("condition", trace::text("WHERE")),
            ("resulting_conditions", trace::texts(resulting)),
        ]
    });
    let outer = outer_slots(binder, &tree, &conditions);
    join::plan(binder, &tree, conditions, &outer, wanted)
}

/// STRAIGHT_JOIN: the tables of a tree are read in the order written, those of subqueries that
/// become joins behind them.
fn fix_order(binder: &mut Binder<'_>, tree: &JoinTree) {
    let mut tables = Vec::new();
    tree.for_each_source(&mut |source| tables.push(SlotSet::one(source.slot)));
    binder.fixed_orders.push(TableOrder {
        others: Others::Behind,
        tables,
        number: None,
    });
}

/// The slots that conditions on a join tree read and that are filled already: those of enclosing
/// queries.
fn outer_slots(binder: &Binder<'_>, tree: &JoinTree, conditions: &[Expr]) -> SlotSet {
    let mut slots = SlotSet::default();
    conditions
        .iter()
        .for_each(|condition| add_slots(binder, condition, &mut slots));
    tree.for_each_expr(&mut |condition| add_slots(binder, condition, &mut slots));
    slots.remove(&outer::source_slots(tree));
    slots
}

/// Plans the derived tables of a join tree, each by itself.
fn prepare(binder: &mut Binder<'_>, tree: &mut JoinTree) -> Result<()> {
    let mut failed = Ok(());
    tree.for_each_source_mut(&mut |source| {
        if failed.is_err() {
            return;
        }
        let kind = std::mem::replace(&mut source.kind, SourceKind::Working { working: 0 });
        match prepare_source(binder, kind) {
            Ok(kind) => source.kind = kind,
            Err(error) => failed = Err(error),
        }
    });
    failed
}

fn prepare_source(binder: &mut Binder<'_>, kind: SourceKind) -> Result<SourceKind> {
    Ok(match kind {
        SourceKind::Derived { query } => {
            let free = free_slots(binder, &query);
            let (node, output) = prepared(binder, *query, &free)?;
            binder.keep_derived_text(binder.materializations);
            binder.materializations += 1;
            let rows = rows_of(&node);
            SourceKind::Planned {
                plan: WithNode {
                    node: Arc::new(node),
                    output,
                },
                materialize: binder.materializations - 1,
                rows,
                free,
                splits: Vec::new(),
            }
        }
        SourceKind::Common { number } => {
            if let Some(query) = binder.common_tables.get_mut(number).and_then(Option::take) {
                let free = free_slots(binder, &query);
                let (node, output) = prepared(binder, query, &free)?;
                binder.keep_derived_text(binder.materializations);
                binder.materializations += 1;
                let rows = rows_of(&node);
                binder.planned_common_tables.push((
                    number,
                    WithNode {
                        node: Arc::new(node),
                        output,
                    },
                    binder.materializations - 1,
                    rows,
                    free,
                ));
            }
            let mut planned = binder.planned_common_tables.iter();
            let copied = planned.find(|planned| planned.0 == number);
            if let Some(node) = copied.map(|(_, plan, ..)| Arc::clone(&plan.node)) {
                binder.count_copy(&node)?;
            }
            match binder
                .planned_common_tables
                .iter()
                .find(|planned| planned.0 == number)
            {
                Some((_, plan, materialize, rows, free)) => SourceKind::Planned {
                    plan: plan.clone(),
                    materialize: *materialize,
                    rows: *rows,
                    free: free.clone(),
                    splits: Vec::new(),
                },
                None => SourceKind::Common { number },
            }
        }
        other => other,
    })
}

/// Plans a derived table's query. One that reads nothing of the enclosing queries runs once.
fn prepared(binder: &mut Binder<'_>, query: Query, free: &SlotSet) -> Result<(Node, Vec<Expr>)> {
    let executions = match free.is_empty() {
        true => 1.0,
        false => binder.executions,
    };
    for_executions(binder, executions, |binder| self::query(binder, query))
}

pub fn filtered(node: Node, mut conditions: Vec<Expr>) -> Node {
    if conditions.is_empty() {
        return node;
    }
    let of_conditions = conditions.iter_mut();
    of_conditions.for_each(Expr::compute_constants_once);
    if conditions.iter().any(is_false) {
        return Node::Empty;
    }
    Node::Filter {
        input: Box::new(node),
        conditions,
    }
}

/// Whether a condition can never be true.
pub fn is_false(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Literal(value) => porpoise_types::convert::to_bool(value) != Some(true),
        _ => false,
    }
}

fn is_true(condition: &Expr) -> bool {
    matches!(&condition.kind, ExprKind::Literal(value) if porpoise_types::convert::to_bool(value) == Some(true))
}
