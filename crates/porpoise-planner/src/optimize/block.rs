//! Query blocks: grouping, windows, DISTINCT, ORDER BY and LIMIT on top of the joined rows.

use porpoise_core::error::Result;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing;
use porpoise_expr::{Arithmetic, Expr, ExprKind, SlotId};
use porpoise_types::DataType;

use crate::bind::Binder;
use crate::optimize::order::{InterestingOrder, Spared, rows_asked};
use crate::optimize::rewritten::BlockText;
use crate::optimize::skip::GroupEnds;
use crate::optimize::{
    filtered, from, min_max, plan_subqueries_of, plan_subqueries_of_columns, rows_of, semijoin,
    skip,
};
use crate::plan::{Group, Node, Window, slots_of};
use crate::query::{self, Block, Grouping, OutputColumn};

/// Sorts a node's rows, keeping no more than LIMIT lets pass. `limit` and `offset` are applied
/// above.
pub fn sorted(
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
    let limit = if binder.calc_found_rows {
        None
    } else {
        top(limit, offset)
    };
    Node::Sort {
        input: Box::new(node),
        keys: order,
        limit: limit.map(Box::new),
        refill: None,
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
    let is_variable = |expr: &Expr| matches!(expr.kind, ExprKind::Variable(_));
    if [limit, offset]
        .iter()
        .any(|expr| expr.ty.is_unsigned() || is_variable(expr))
    {
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

pub fn limited(node: Node, limit: Option<Expr>, offset: Option<Expr>) -> Node {
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
pub fn select(
    binder: &mut Binder<'_>,
    block: Block,
    mut columns: Vec<OutputColumn>,
    mut order: Vec<SortKey>,
    limit: Option<Expr>,
    offset: Option<Expr>,
) -> Result<(Node, Vec<Expr>)> {
    if let Some(group) = &block.group {
        binder.keep_grouping_text(group);
    }
    for window in &block.windows {
        binder.keep_window_text(window);
    }
    let (limits, offsets) = (limit.as_ref(), offset.as_ref());
    let text = BlockText::of(binder, &block, &columns, &order, limits, offsets);
    let Block {
        from: tree,
        conditions,
        group,
        mut having,
        windows,
        distinct,
        straight,
        number: _,
        subquery: _,
    } = block;
    let counts_rows = having.is_empty() && !distinct && !binder.calc_found_rows;
    let mut wanted = match &group {
        Some(group) if windows.is_empty() => {
            let asked = rows_asked(limits, offsets).filter(|_| counts_rows);
            order_for_grouping(group, &order, asked)
        }
        Some(group) => order_for_grouping(group, &[], None),
        None if windows.is_empty() => {
            let limit = limit
                .as_ref()
                .filter(|_| !binder.calc_found_rows && !distinct);
            let counted = limit.filter(|_| having.is_empty());
            InterestingOrder {
                top: counted.map(|limit| (limit.clone(), offset.clone())),
                ..InterestingOrder::of_sort(&order, limit, offset.as_ref())
            }
        }
        None => InterestingOrder::default(),
    };
    wanted.ends = match &group {
        Some(group) => GroupEnds::of_grouping(&group.keys, &group.aggregates),
        None if distinct && windows.is_empty() => {
            let output: Vec<&Expr> = columns.iter().map(|column| &column.expr).collect();
            GroupEnds::of_distinct(&output)
        }
        None => None,
    };
    let wanted_order = wanted.whole && group.is_none() && !wanted.sort.is_empty();
    let joined = from(binder, tree, conditions, straight, &wanted)?;
    let mut in_order = wanted_order && joined.in_order;
    let mut node = joined.node;
    if let Some(group) = group {
        let ordered = !wanted.keys.is_empty() && joined.in_order;
        // Rows that come in a whole order of the keys make groups that do.
        in_order = ordered && wanted.whole && !group.rollup;
        node = grouped(binder, node, group, ordered)?;
    }
    binder.block_rows = rows_of(&node);
    plan_subqueries_of_columns(binder, &mut columns)?;
    for condition in &mut having {
        semijoin::to_exists(binder, condition, true);
    }
    plan_subqueries_of(binder, &mut having)?;
    plan_subqueries_of(binder, order.iter_mut().map(|key| &mut key.expr))?;
    node = filtered(node, having);
    for window in windows {
        node = windowed(binder, node, window)?;
    }
    binder.keep_block_text(&text);
    let mut output: Vec<Expr> = columns.into_iter().map(|column| column.expr).collect();
    let distinct = distinct && !skip::are_distinct(&node, &output);
    let sorts = !order.is_empty() && !in_order;
    // A volatile expression is computed once, before it is sorted or compared.
    if (distinct || sorts)
        && output
            .iter()
            .chain(order.iter().map(|key| &key.expr))
            .any(Expr::is_volatile)
    {
        (node, output, order) = projected(binder, node, output, order);
    }
    // A sort by all that has to be distinct brings equal rows together: no table of the rows before
    // is needed.
    let is_sort_distinct = distinct && sorts && limit.is_none() && sorts_by_all(&output, &order);
    if distinct && !is_sort_distinct {
        node = Node::Distinct {
            input: Box::new(node),
            keys: output.clone(),
            is_weedout: false,
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

/// The order in which rows of a group come one after the other, if all keys are columns: that of
/// ORDER BY, where it sorts the groups by their keys. LIMIT: so many groups are `asked` for.
fn order_for_grouping(group: &Grouping, order: &[SortKey], asked: Option<f64>) -> InterestingOrder {
    let columns: Option<Vec<_>> = group.keys.iter().map(Expr::as_column).collect();
    let Some(columns) = columns.filter(|columns| !columns.is_empty()) else {
        return InterestingOrder::default();
    };
    let sorted = match group.rollup {
        true => None,
        false => keys_in_order(group, &columns, order),
    };
    let whole = group.rollup || sorted.is_some();
    // In a hash table all groups would grow at once: an order is worth more then, as much as a sort.
    let collects = (group.aggregates.iter()).any(|aggregate| aggregate.function.collects);
    let spared = match group.rollup || collects {
        true => Spared::Sort,
        false => Spared::Groups {
            sorted: sorted.is_some(),
            asked: asked.filter(|_| order.is_empty() || sorted.is_some()),
        },
    };
    let unsorted = || {
        let keys = columns.iter();
        keys.map(|(slot, column)| (*slot, *column, false)).collect()
    };
    InterestingOrder {
        keys: sorted.unwrap_or_else(unsorted),
        whole,
        spared,
        ..InterestingOrder::default()
    }
}

/// The columns of a grouping's keys, those that ORDER BY names first, with its directions. `None` if
/// it names anything else, or nothing.
fn keys_in_order(
    group: &Grouping,
    columns: &[(SlotId, usize)],
    order: &[SortKey],
) -> Option<Vec<(SlotId, usize, bool)>> {
    let mut keys = Vec::with_capacity(columns.len());
    let mut left: Vec<usize> = (0..columns.len()).collect();
    for sorted in order {
        let (slot, number) = sorted.expr.as_column()?;
        let (slot_of_key, column) = *columns.get(number).filter(|_| slot == group.slot)?;
        if left.contains(&number) {
            left.retain(|of| *of != number);
            keys.push((slot_of_key, column, sorted.descending));
        }
    }
    if keys.is_empty() {
        return None;
    }
    let rest = left.into_iter().map(|number| columns[number]);
    keys.extend(rest.map(|(slot, column)| (slot, column, false)));
    Some(keys)
}

/// Groups a node's rows; `ordered`: they come in the order of the keys.
fn grouped(
    binder: &mut Binder<'_>,
    mut node: Node,
    mut group: Grouping,
    ordered: bool,
) -> Result<Node> {
    binder.block_rows = rows_of(&node);
    plan_subqueries_of(binder, &mut group.keys)?;
    for aggregate in &mut group.aggregates {
        plan_subqueries_of(binder, &mut aggregate.arguments)?;
        plan_subqueries_of(binder, aggregate.order.iter_mut().map(|key| &mut key.expr))?;
        let order = aggregate.order.iter().map(|key| key.expr.clone());
        aggregate.arguments.extend(order);
        let arguments = aggregate.arguments.iter_mut();
        arguments.for_each(Expr::compute_constants_once);
    }
    let scalar = group.keys.is_empty();
    let ordered = !scalar && ordered;
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
        node = min_max::first_row(binder, node, &group.aggregates);
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
    Ok(Node::Group(Box::new(planned)))
}

/// Computes window functions over a node's rows.
fn windowed(binder: &mut Binder<'_>, node: Node, mut window: query::Window) -> Result<Node> {
    plan_subqueries_of(binder, &mut window.partition)?;
    plan_subqueries_of(binder, window.order.iter_mut().map(|key| &mut key.expr))?;
    for call in &mut window.functions {
        plan_subqueries_of(binder, &mut call.arguments)?;
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
    Ok(Node::Window(Box::new(planned)))
}

/// Whether the sort keys are the output columns, all of them, in any order.
fn sorts_by_all(output: &[Expr], order: &[SortKey]) -> bool {
    output.len() == order.len()
        && order.iter().all(|key| {
            !key.expr.is_constant() && output.iter().any(|expr| expr.same_as(&key.expr, &[]))
        })
        && output
            .iter()
            .all(|expr| order.iter().any(|key| expr.same_as(&key.expr, &[])))
}

/// Computes the output and the sort keys into a slot of their own.
pub fn projected(
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
