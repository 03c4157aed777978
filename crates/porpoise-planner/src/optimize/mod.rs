//! From bound queries to plan nodes.
//!
//! For a query block, from the inside out:
//!
//! 1. subqueries of WHERE that can be are turned into semi-joins and anti-joins ([`semijoin`]);
//! 2. outer joins whose NULL rows no condition lets through become inner joins ([`outer`]);
//! 3. equalities are carried on: `a = b AND b = 7` means `a = 7` ([`equality`]);
//! 4. each table's access paths are found and costed: ranges over its indexes ([`ranges`], [`access`]);
//! 5. the join order is searched, with nested loops or hash joins ([`join`]);
//! 6. grouping, windows, DISTINCT, ORDER BY and LIMIT are put on top, sorting only what isn't in order yet.

mod access;
mod equality;
mod join;
mod outer;
mod ranges;
mod semijoin;

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing;
use porpoise_expr::{Arithmetic, Expr, ExprKind, Slot, SubqueryKind};
use porpoise_types::{DataType, Value};

use crate::bind::Binder;
use crate::plan::slots_of;
use crate::plan::{Group, Node, Subplan, Window};
use crate::query::{Block, Body, JoinTree, OutputColumn, Query, SourceKind, WithNode};
use crate::slot_set::SlotSet;

/// Plans a query: its node, and the expressions that make its result of the node's slots.
pub fn query(binder: &mut Binder<'_>, query: Query) -> Result<(Node, Vec<Expr>)> {
    let Query {
        body,
        mut columns,
        mut order,
        mut limit,
        mut offset,
    } = query;
    finish_all(binder, limit.iter_mut().chain(&mut offset))?;
    let node = match body {
        Body::Select(block) => return select(binder, *block, columns, order, limit, offset),
        Body::Values { slot, mut rows } => {
            finish_all(binder, rows.iter_mut().flatten())?;
            Node::Values { slot, rows }
        }
        Body::JsonTable {
            slot,
            mut doc,
            table,
        } => {
            finish_expr(binder, &mut doc)?;
            Node::JsonTable { slot, doc, table }
        }
        Body::SetOperation {
            slot,
            op,
            distinct,
            inputs,
        } => {
            let mut planned = Vec::with_capacity(inputs.len());
            for mut input in inputs {
                // The rows of each input beyond the whole's LIMIT are never asked for; sorting them is for nothing.
                if input.limit.is_none() && input.offset.is_none() {
                    input.order.clear();
                }
                planned.push(self::query(binder, input)?);
            }
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
            let (step, step_output) = self::query(binder, *step)?;
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
    finish_columns(binder, &mut columns)?;
    finish_all(binder, order.iter_mut().map(|key| &mut key.expr))?;
    let node = sorted(binder, node, order, limit.as_ref(), offset.as_ref());
    let node = limited(node, limit, offset);
    Ok((
        node,
        columns.into_iter().map(|column| column.expr).collect(),
    ))
}

/// Lets a query's first row out only when all are computed: who writes what it reads must not feed it.
pub fn at_once(binder: &mut Binder<'_>, node: Node, output: Vec<Expr>) -> (Node, Vec<Expr>) {
    let (node, output, _) = projected(binder, node, output, Vec::new());
    let slots = slots_of(&node);
    let node = Node::Sort {
        input: Box::new(node),
        keys: Vec::new(),
        limit: None,
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
    finish_all(binder, order.iter_mut().map(|key| &mut key.expr))?;
    let wanted = Wanted {
        keys: order.iter().filter_map(wanted_key).collect(),
        whole: true,
        limited: limit.is_some(),
    };
    let wanted = if wanted.keys.len() == order.len() {
        wanted
    } else {
        Wanted::default()
    };
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
pub fn finish_expr(binder: &mut Binder<'_>, expr: &mut Expr) -> Result<()> {
    let mut failed = Ok(());
    expr.for_each_child_mut(&mut |child| {
        if failed.is_ok() {
            failed = finish_expr(binder, child);
        }
    });
    failed?;
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
    let (mut node, output) = query(binder, bound)?;
    if exists && !matches!(node, Node::Limit { .. }) {
        let one = Expr::literal(Value::Int(1), DataType::BIGINT);
        node = Node::Limit {
            input: Box::new(node),
            offset: None,
            count: Some(Box::new(one)),
        };
    }
    binder
        .subplans
        .resize_with(binder.subqueries.len(), || None);
    binder.subplans[number] = Some(Subplan {
        number,
        node,
        output,
        correlated: !free.is_empty(),
    });
    Ok(())
}

pub fn finish_exprs(binder: &mut Binder<'_>, exprs: &mut [Expr]) -> Result<()> {
    finish_all(binder, exprs.iter_mut())
}

fn finish_all<'e>(
    binder: &mut Binder<'_>,
    exprs: impl IntoIterator<Item = &'e mut Expr>,
) -> Result<()> {
    exprs
        .into_iter()
        .try_for_each(|expr| finish_expr(binder, expr))
}

fn finish_columns(binder: &mut Binder<'_>, columns: &mut [OutputColumn]) -> Result<()> {
    finish_all(binder, columns.iter_mut().map(|column| &mut column.expr))
}

/// The slots that an expression reads, subqueries' outer references included.
pub fn expr_slots(binder: &Binder<'_>, expr: &Expr) -> SlotSet {
    let mut slots = SlotSet::default();
    add_slots(binder, expr, &mut slots);
    slots
}

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

/// An order that would spare a sort.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub keys: Vec<(Slot, usize, bool)>,
    /// All keys, in this order and direction (ORDER BY); else any order that keeps equal keys together (GROUP BY).
    pub whole: bool,
    /// Few of the rows will be asked for.
    pub limited: bool,
}

/// A planned FROM and WHERE.
pub struct Joined {
    pub node: Node,
    /// The rows come in the wanted order.
    pub in_order: bool,
}

fn wanted_key(key: &SortKey) -> Option<(Slot, usize, bool)> {
    key.expr
        .as_column()
        .map(|(slot, column)| (slot, column, key.descending))
}

/// Plans FROM and WHERE.
fn from(
    binder: &mut Binder<'_>,
    mut tree: JoinTree,
    mut conditions: Vec<Expr>,
    straight: bool,
    wanted: &Wanted,
) -> Result<Joined> {
    if let JoinTree::One = tree {
        finish_all(binder, &mut conditions)?;
        let node = filtered(Node::One, conditions);
        return Ok(Joined {
            node,
            in_order: true,
        });
    }
    prepare(binder, &mut tree)?;
    let tree = semijoin::convert(binder, tree, &mut conditions)?;
    let mut tree = outer::simplify(binder, tree, &mut conditions);
    finish_all(binder, &mut conditions)?;
    let mut failed = Ok(());
    tree.for_each_on_mut(&mut |condition| {
        if failed.is_ok() {
            failed = finish_expr(binder, condition);
        }
    });
    failed?;
    equality::propagate(&mut conditions);
    Ok(join::plan(
        binder,
        &tree,
        conditions,
        &SlotSet::default(),
        straight,
        wanted,
    ))
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
            let (node, output) = self::query(binder, *query)?;
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
            }
        }
        SourceKind::Common { number } => {
            if let Some(query) = binder.commons.get_mut(number).and_then(Option::take) {
                let free = free_slots(binder, &query);
                let (node, output) = self::query(binder, query)?;
                binder.materializations += 1;
                let rows = rows_of(&node);
                binder.planned_commons.push((
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
            match binder
                .planned_commons
                .iter()
                .find(|planned| planned.0 == number)
            {
                Some((_, plan, materialize, rows, free)) => SourceKind::Planned {
                    plan: plan.clone(),
                    materialize: *materialize,
                    rows: *rows,
                    free: free.clone(),
                },
                None => SourceKind::Common { number },
            }
        }
        other => other,
    })
}

/// A guess of how many rows a node yields.
pub fn rows_of(node: &Node) -> f64 {
    match node {
        Node::One => 1.0,
        Node::Empty => 0.0,
        Node::Scan(scan) => (scan.rows_estimate * scan.filtered).max(1.0),
        Node::Values { rows, .. } => rows.len() as f64,
        Node::JsonTable { .. } => 10.0,
        Node::Virtual { .. } | Node::Working { .. } => 100.0,
        Node::Derived { input, .. }
        | Node::Project { input, .. }
        | Node::Sort {
            input,
            limit: None,
            distinct: false,
            ..
        } => rows_of(input),
        Node::Recursive { seed, .. } => rows_of(seed) * 10.0,
        Node::Filter { input, conditions } => {
            (rows_of(input) * access::selectivity(conditions.iter())).max(1.0)
        }
        Node::NestedLoop {
            left, right, kind, ..
        }
        | Node::HashJoin {
            left, right, kind, ..
        } => {
            use crate::plan::JoinKind;
            match kind {
                JoinKind::Inner | JoinKind::Left => {
                    let factor = match node {
                        Node::HashJoin { .. } => (rows_of(right) * 0.1).max(1.0),
                        _ => rows_of(right),
                    };
                    rows_of(left) * factor
                }
                JoinKind::Semi | JoinKind::Anti => (rows_of(left) * 0.5).max(1.0),
            }
        }
        Node::Group(group) if group.scalar => 1.0,
        Node::Group(group) => (rows_of(&group.input) * 0.1).max(1.0),
        Node::Distinct { input, .. }
        | Node::Sort {
            input,
            distinct: true,
            ..
        } => (rows_of(input) * 0.3).max(1.0),
        Node::Sort {
            input,
            limit: Some(limit),
            ..
        } => limit_value(limit).map_or(rows_of(input), |most| most.min(rows_of(input))),
        Node::Limit { input, count, .. } => match count.as_deref().and_then(limit_value) {
            Some(most) => rows_of(input).min(most),
            None => rows_of(input),
        },
        Node::SetOperation { inputs, .. } => inputs.iter().map(|(node, _)| rows_of(node)).sum(),
        Node::Window(window) => rows_of(&window.input),
    }
}

fn limit_value(limit: &Expr) -> Option<f64> {
    match &limit.kind {
        ExprKind::Literal(Value::Int(v)) => Some(*v as f64),
        ExprKind::Literal(Value::UInt(v)) => Some(*v as f64),
        _ => None,
    }
}

pub fn filtered(node: Node, conditions: Vec<Expr>) -> Node {
    if conditions.is_empty() {
        return node;
    }
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

fn sorted(
    binder: &Binder<'_>,
    node: Node,
    order: Vec<SortKey>,
    limit: Option<&Expr>,
    offset: Option<&Expr>,
) -> Node {
    let order: Vec<SortKey> = order
        .into_iter()
        .filter(|key| !key.expr.is_constant())
        .collect();
    if order.is_empty() {
        return node;
    }
    let slots = slots_of(&node);
    let limit = if binder.counts_all {
        None
    } else {
        top(limit, offset)
    };
    Node::Sort {
        input: Box::new(node),
        keys: order,
        limit: limit.map(Box::new),
        distinct: false,
        slots,
    }
}

/// How many rows a sort below LIMIT has to keep.
fn top(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<Expr> {
    let limit = limit?;
    let Some(offset) = offset else {
        return Some(limit.clone());
    };
    if limit.ty.is_unsigned() || offset.ty.is_unsigned() {
        // The sum may be beyond all numbers.
        return None;
    }
    let (left, right) = (Box::new(offset.clone()), Box::new(limit.clone()));
    Some(Expr::new(
        ExprKind::Arithmetic {
            op: Arithmetic::Add,
            left,
            right,
        },
        DataType::BIGINT_UNSIGNED,
        false,
    ))
}

fn limited(node: Node, limit: Option<Expr>, offset: Option<Expr>) -> Node {
    if limit.is_none() && offset.is_none() {
        return node;
    }
    Node::Limit {
        input: Box::new(node),
        offset: offset.map(Box::new),
        count: limit.map(Box::new),
    }
}

/// Plans a query block with its ORDER BY and LIMIT.
fn select(
    binder: &mut Binder<'_>,
    block: Block,
    mut columns: Vec<OutputColumn>,
    mut order: Vec<SortKey>,
    limit: Option<Expr>,
    offset: Option<Expr>,
) -> Result<(Node, Vec<Expr>)> {
    let Block {
        from: tree,
        conditions,
        group,
        mut having,
        windows,
        distinct,
        straight,
    } = block;
    finish_columns(binder, &mut columns)?;
    finish_all(binder, &mut having)?;
    finish_all(binder, order.iter_mut().map(|key| &mut key.expr))?;
    let mut wanted = Wanted::default();
    match &group {
        Some(group) => {
            let keys: Vec<_> = group
                .keys
                .iter()
                .filter_map(|key| key.as_column())
                .map(|(slot, column)| (slot, column, false))
                .collect();
            if keys.len() == group.keys.len() && !keys.is_empty() {
                wanted = Wanted {
                    keys,
                    whole: group.rollup,
                    limited: false,
                };
            }
        }
        None if windows.is_empty() => {
            let keys: Vec<_> = order.iter().filter_map(wanted_key).collect();
            if keys.len() == order.len() && !keys.is_empty() {
                wanted = Wanted {
                    keys,
                    whole: true,
                    limited: limit.is_some() && !binder.counts_all,
                };
            }
        }
        None => {}
    }
    let wanted_order = wanted.whole && group.is_none() && !wanted.keys.is_empty();
    let joined = from(binder, tree, conditions, straight, &wanted)?;
    let mut in_order = wanted_order && joined.in_order;
    let mut node = joined.node;
    if let Some(mut group) = group {
        finish_all(binder, &mut group.keys)?;
        for aggregate in &mut group.aggregates {
            finish_all(binder, &mut aggregate.arguments)?;
            finish_all(binder, aggregate.order.iter_mut().map(|key| &mut key.expr))?;
            let order = aggregate.order.iter().map(|key| key.expr.clone());
            aggregate.arguments.extend(order);
        }
        let scalar = group.keys.is_empty();
        let ordered = !scalar && !wanted.keys.is_empty() && joined.in_order;
        if group.rollup && !ordered {
            let keys = group
                .keys
                .iter()
                .map(|key| SortKey {
                    expr: key.clone(),
                    descending: false,
                })
                .collect();
            node = sorted(binder, node, keys, None, None);
        }
        if scalar {
            node = access::first_row(node, &group.aggregates);
        }
        let planned = Group {
            input: node,
            slot: group.slot,
            keys: group.keys,
            aggregates: group.aggregates,
            ordered: ordered || group.rollup,
            rollup: group.rollup,
            scalar,
        };
        node = Node::Group(Box::new(planned));
        in_order = false;
    }
    node = filtered(node, having);
    for mut window in windows {
        finish_all(binder, &mut window.partition)?;
        finish_all(binder, window.order.iter_mut().map(|key| &mut key.expr))?;
        for call in &mut window.functions {
            finish_all(binder, &mut call.arguments)?;
        }
        let slots = slots_of(&node);
        let planned = Window {
            input: node,
            slot: window.slot,
            partition: window.partition,
            order: window.order,
            functions: window.functions,
            slots,
        };
        node = Node::Window(Box::new(planned));
    }
    let mut output: Vec<Expr> = columns.into_iter().map(|column| column.expr).collect();
    let sorts = !order.is_empty() && !in_order;
    // What gives another value each time is computed once, before it is sorted or compared.
    if (distinct || sorts)
        && output
            .iter()
            .chain(order.iter().map(|key| &key.expr))
            .any(Expr::is_volatile)
    {
        (node, output, order) = projected(binder, node, output, order);
    }
    // What is sorted by all that has to be distinct needs no table to find what was there before.
    let is_sort_distinct = distinct
        && sorts
        && limit.is_none()
        && output.len() == order.len()
        && order.iter().all(|key| {
            !key.expr.is_constant() && output.iter().any(|expr| expr.same_as(&key.expr, &[]))
        })
        && output
            .iter()
            .all(|expr| order.iter().any(|key| expr.same_as(&key.expr, &[])));
    if distinct && !is_sort_distinct {
        node = Node::Distinct {
            input: Box::new(node),
            keys: output.clone(),
        };
    }
    if sorts {
        node = sorted(binder, node, order, limit.as_ref(), offset.as_ref());
    }
    if let Node::Sort { distinct, .. } = &mut node
        && is_sort_distinct
    {
        *distinct = true;
    }
    node = limited(node, limit, offset);
    Ok((node, output))
}

/// Computes the output and the sort keys into a slot of their own.
fn projected(
    binder: &mut Binder<'_>,
    node: Node,
    output: Vec<Expr>,
    order: Vec<SortKey>,
) -> (Node, Vec<Expr>, Vec<SortKey>) {
    let mut exprs = output;
    let width = exprs.len();
    let mut positions = Vec::with_capacity(order.len());
    for key in &order {
        let held = exprs[..width]
            .iter()
            .position(|expr| expr.same_as(&key.expr, &[]) || same_volatile(expr, &key.expr));
        positions.push(held.unwrap_or(exprs.len()));
        if held.is_none() {
            exprs.push(key.expr.clone());
        }
    }
    let types: Vec<DataType> = exprs
        .iter()
        .map(|expr| typing::slot_type(&expr.ty))
        .collect();
    let slot = binder.new_slot("<temporary>", types.clone(), Vec::new());
    let column = |at: usize| Expr::column(slot, at, types[at].clone(), exprs[at].nullable);
    let output = (0..width).map(column).collect();
    let order = order
        .iter()
        .zip(positions)
        .map(|(key, at)| SortKey {
            expr: column(at),
            descending: key.descending,
        })
        .collect();
    (
        Node::Project {
            input: Box::new(node),
            slot,
            output: exprs,
        },
        output,
        order,
    )
}

/// `SELECT RAND() AS r … ORDER BY r`: the alias stands for the very same call.
fn same_volatile(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (
            ExprKind::Call {
                function: f,
                arguments: x,
            },
            ExprKind::Call {
                function: g,
                arguments: y,
            },
        ) => {
            std::ptr::eq(*f, *g)
                && x.len() == y.len()
                && x.iter().zip(y).all(|(x, y)| x.same_as(y, &[]))
        }
        _ => false,
    }
}
