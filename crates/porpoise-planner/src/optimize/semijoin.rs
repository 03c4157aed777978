//! Subqueries of WHERE that become joins.
//!
//! | condition | becomes |
//! | --- | --- |
//! | `EXISTS (correlated)` | semi-join: the row once, if anything matches |
//! | `NOT EXISTS (correlated)` | anti-join: the row, if nothing matches |
//! | `x IN (SELECT y …)` | semi-join on `x = y`; or, where few y meet an index on x, a join with the distinct y |
//! | `x NOT IN (correlated)` | anti-join, where neither x nor y can be NULL |
//!
//! Other subqueries are evaluated as expressions: an uncorrelated one once, its result kept as a
//! set. Of a correlated `x IN (SELECT y …)` only the rows with `y = x` are looked for, as in
//! `EXISTS`, wherever that says the same ([`to_exists`]).

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::typing;
use porpoise_expr::{Comparison, Domain, Expr, ExprKind, SubqueryKind};

use crate::bind::Binder;
use crate::optimize::order::InterestingOrder;
use crate::optimize::{self, access, expr_slots, free_slots, join, outer};
use crate::plan::RowLock;
use crate::query::{
    Block, Body, IndexHints, JoinTree, LogicalJoin, Query, Source, SourceKind, SubqueryStrategies,
    WithNode,
};
use crate::sample::Trials;
use crate::slot_set::SlotSet;

/// What the rows of a subquery are called that is read before the tables it is a condition on.
pub const SUBQUERY_NAME: &str = "<subquery>";

/// Converts the conditions that can be; the others stay.
pub fn convert(
    binder: &mut Binder<'_>,
    mut tree: JoinTree,
    conditions: &mut Vec<Expr>,
) -> Result<JoinTree> {
    if !conditions
        .iter()
        .any(|condition| matches!(condition.kind, ExprKind::Subquery { .. }))
    {
        return Ok(tree);
    }
    let mut kept = Vec::with_capacity(conditions.len());
    for condition in std::mem::take(conditions) {
        let ExprKind::Subquery { number, kind } = &condition.kind else {
            kept.push(condition);
            continue;
        };
        let Some(bound) = binder.subqueries.get_mut(*number).and_then(Option::take) else {
            kept.push(condition);
            continue;
        };
        let local = outer::source_slots(&tree);
        let correlated = free_slots(binder, &bound).intersects(&local);
        let number = *number;
        let strategies = strategies_of(&bound);
        let join = SubqueryJoin::of(kind, &bound, correlated).filter(|_| strategies.semijoin);
        let Some(join) = join else {
            binder.subqueries[number] = Some(bound);
            kept.push(condition);
            continue;
        };
        if !correlated
            && strategies.materialization
            && join.kind == LogicalJoin::Semi
            && drives(binder, &tree, &kept, &join.operands, &bound)
        {
            binder.trace_transformation("IN (SELECT)", "join with distinct rows", || {
                binder.text_of(&condition)
            });
            let (source, columns) = distinct_source(binder, bound)?;
            kept.extend(join.equalities(columns));
            tree = JoinTree::Join {
                left: Box::new(tree),
                right: Box::new(JoinTree::Leaf(Box::new(source))),
                kind: LogicalJoin::Inner,
                on: Vec::new(),
            };
            continue;
        }
        if !is_simple(&bound) {
            binder.subqueries[number] = Some(bound);
            kept.push(condition);
            continue;
        }
        let Query {
            body: Body::Select(block),
            columns,
            ..
        } = bound
        else {
            kept.push(condition);
            continue;
        };
        let Block {
            from,
            conditions: mut on,
            ..
        } = *block;
        let kind = join.kind;
        let to = match kind {
            LogicalJoin::Anti => "antijoin",
            _ => "semijoin",
        };
        let from_subquery = match condition.kind {
            ExprKind::Subquery {
                kind: SubqueryKind::Exists { .. },
                ..
            } => "EXISTS (SELECT)",
            _ => "IN (SELECT)",
        };
        binder.trace_transformation(from_subquery, to, || binder.text_of(&condition));
        on.extend(join.equalities(columns.into_iter().map(|column| column.expr)));
        let mut right = from;
        right.for_each_source_mut(&mut |source| source.hints.joined_as = Some(strategies));
        optimize::prepare(binder, &mut right)?;
        let right = convert(binder, right, &mut on)?;
        tree = JoinTree::Join {
            left: Box::new(tree),
            right: Box::new(right),
            kind,
            on,
        };
    }
    *conditions = kept;
    Ok(tree)
}

/// How a subquery may be evaluated; one that is no block by itself, in any way.
fn strategies_of(query: &Query) -> SubqueryStrategies {
    match &query.body {
        Body::Select(block) => block.subquery,
        _ => SubqueryStrategies::default(),
    }
}

/// The join that a condition on a subquery is.
struct SubqueryJoin {
    kind: LogicalJoin,
    /// What the subquery's columns must equal, and in which domain each is compared.
    operands: Vec<Expr>,
    domains: Vec<Domain>,
}

impl SubqueryJoin {
    /// `None`: the condition has to be evaluated as an expression.
    fn of(kind: &SubqueryKind, query: &Query, correlated: bool) -> Option<SubqueryJoin> {
        let (operands, domains, kind) = match kind {
            SubqueryKind::Exists { negated } if correlated && is_simple(query) => {
                let kind = match negated {
                    true => LogicalJoin::Anti,
                    false => LogicalJoin::Semi,
                };
                (Vec::new(), Vec::new(), kind)
            }
            SubqueryKind::Quantified {
                operand,
                op: Comparison::Eq,
                all: false,
                domains,
            } => (items(operand), domains.clone(), LogicalJoin::Semi),
            SubqueryKind::Quantified {
                operand,
                op: Comparison::Ne,
                all: true,
                domains,
            } if correlated
                && is_simple(query)
                && !operand.nullable
                && query.columns.iter().all(|column| !column.expr.nullable) =>
            {
                (items(operand), domains.clone(), LogicalJoin::Anti)
            }
            _ => return None,
        };
        if operands.iter().any(Expr::has_subquery) || operands.iter().any(Expr::is_volatile) {
            return None;
        }
        Some(SubqueryJoin {
            kind,
            operands,
            domains,
        })
    }

    /// The join's conditions on the subquery's columns.
    fn equalities(self, columns: impl IntoIterator<Item = Expr>) -> impl Iterator<Item = Expr> {
        let pairs = self.operands.into_iter().zip(self.domains);
        pairs
            .zip(columns)
            .map(|((operand, domain), column)| equal(operand, column, domain))
    }
}

/// Turns correlated `x IN (SELECT y …)` inside an expression into `EXISTS (SELECT … AND y = x)`, and
/// NOT IN into NOT EXISTS. In a condition, NULL says the same as false; elsewhere x and y must not
/// be NULL.
pub fn to_exists(binder: &mut Binder<'_>, expr: &mut Expr, in_condition: bool) {
    let inner = in_condition && matches!(expr.kind, ExprKind::And(_) | ExprKind::Or(_));
    expr.for_each_child_mut(&mut |child| to_exists(binder, child, inner));
    let ExprKind::Subquery { number, kind } = &expr.kind else {
        return;
    };
    let SubqueryKind::Quantified {
        operand,
        op,
        all,
        domains,
    } = kind
    else {
        return;
    };
    let negated = match (op, all) {
        (Comparison::Eq, false) => false,
        (Comparison::Ne, true) => true,
        _ => return,
    };
    let number = *number;
    let Some(Some(bound)) = binder.subqueries.get(number) else {
        // An alias repeats an expression that was planned before.
        if binder.exists_forms.contains(&number) {
            expr.kind = ExprKind::Subquery {
                number,
                kind: SubqueryKind::Exists { negated },
            };
        }
        return;
    };
    let operands = items(operand);
    let is_null = |expr: &Expr| expr.nullable;
    let nullable =
        operands.iter().any(is_null) || bound.columns.iter().any(|column| is_null(&column.expr));
    if (nullable && !in_condition)
        || !is_simple(bound)
        || operands.iter().any(|x| x.has_subquery() || x.is_volatile())
        || (free_slots(binder, bound).is_empty() && !strategies_of(bound).into_exists)
    {
        return;
    }
    binder.trace_transformation("IN (SELECT)", "EXISTS (CORRELATED SELECT)", || {
        binder.text_of(expr)
    });
    let columns = bound.columns.iter().map(|column| &column.expr);
    let pairs = operands.into_iter().zip(columns).zip(domains);
    let looked_for: Vec<Expr> = pairs
        .map(|((x, y), domain)| match negated {
            true => may_equal(x, y.clone(), *domain),
            false => equal(x, y.clone(), *domain),
        })
        .collect();
    if let Some(Some(Query {
        body: Body::Select(block),
        ..
    })) = binder.subqueries.get_mut(number)
    {
        block.conditions.extend(looked_for);
        binder.exists_forms.push(number);
        let kind = SubqueryKind::Exists { negated };
        expr.kind = ExprKind::Subquery { number, kind };
        expr.nullable = false;
    }
}

/// Whether `x <> y` is not true.
fn may_equal(x: Expr, y: Expr, domain: Domain) -> Expr {
    let is_null = |operand: &Expr| {
        let operand = Box::new(operand.clone());
        let negated = false;
        Expr::boolean(ExprKind::IsNull { operand, negated }, false)
    };
    let nullable = [&x, &y].into_iter().filter(|side| side.nullable);
    let mut ways: Vec<Expr> = nullable.map(is_null).collect();
    if ways.is_empty() {
        return equal(x, y, domain);
    }
    ways.insert(0, equal(x, y, domain));
    Expr::boolean(ExprKind::Or(ways), true)
}

fn items(operand: &Expr) -> Vec<Expr> {
    match &operand.kind {
        ExprKind::Row(items) => items.clone(),
        _ => vec![operand.clone()],
    }
}

fn equal(left: Expr, right: Expr, domain: Domain) -> Expr {
    let nullable = left.nullable || right.nullable;
    Expr::boolean(
        ExprKind::Compare {
            op: Comparison::Eq,
            domain,
            left: Box::new(left),
            right: Box::new(right),
        },
        nullable,
    )
}

/// Only joins and filters: its rows can be looked for one at a time.
fn is_simple(query: &Query) -> bool {
    let Body::Select(block) = &query.body else {
        return false;
    };
    block.group.is_none()
        && block.having.is_empty()
        && block.windows.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && !matches!(block.from, JoinTree::One)
        && query
            .columns
            .iter()
            .all(|column| !column.expr.is_volatile() && !column.expr.has_subquery())
}

/// Whether the subquery's rows should be read first, to look the outer table up by them.
fn drives(
    binder: &mut Binder<'_>,
    tree: &JoinTree,
    conditions: &[Expr],
    operands: &[Expr],
    query: &Query,
) -> bool {
    let Some((slot, column)) = operands.first().and_then(Expr::as_column) else {
        return false;
    };
    let mut rows_outer = None;
    tree.for_each_source(&mut |source| {
        let SourceKind::Table(table) = &source.kind else {
            return;
        };
        let indexed = table.indexes.iter().any(|index| {
            binder.sees(index)
                && index
                    .parts
                    .first()
                    .is_some_and(|part| part.column == column)
        });
        if source.slot == slot && indexed {
            let own = SlotSet::one(slot);
            let here: Vec<&Expr> = conditions
                .iter()
                .filter(|condition| expr_slots(binder, condition).is_subset(&own))
                .collect();
            let path = access::best(
                binder,
                source,
                table,
                &here,
                &SlotSet::default(),
                &InterestingOrder::default(),
                &Trials::default(),
            );
            rows_outer = Some(path.cost);
        }
    });
    // Behind an outer join the table's rows are not the query's own.
    let Some(cost_outer) = rows_outer.filter(|_| !is_null_side(tree, slot)) else {
        return false;
    };
    let rows_inner = match &query.body {
        Body::Select(block) => {
            let rows = join::estimate(binder, &block.from, &block.conditions);
            match &block.group {
                Some(group) if group.keys.is_empty() => 1.0,
                Some(_) => (rows * 0.1).max(1.0),
                None => rows,
            }
        }
        Body::Values { rows, .. } => rows.len() as f64,
        _ => 100.0,
    };
    rows_inner * 12.0 < cost_outer
}

/// Whether a slot is on the side of an outer join that may be missing.
pub fn is_null_side(tree: &JoinTree, slot: porpoise_expr::SlotId) -> bool {
    match tree {
        JoinTree::One | JoinTree::Leaf(_) => false,
        JoinTree::Filtered { tree, .. } => is_null_side(tree, slot),
        JoinTree::Join {
            left, right, kind, ..
        } => {
            let inside = outer::source_slots(right).contains(slot);
            (inside && *kind == LogicalJoin::Left)
                || is_null_side(left, slot)
                || is_null_side(right, slot)
        }
    }
}

/// A derived table of a query's distinct rows.
fn distinct_source(binder: &mut Binder<'_>, mut query: Query) -> Result<(Source, Vec<Expr>)> {
    if query.limit.is_none() {
        query.order.clear();
    }
    let types: Vec<_> = query
        .columns
        .iter()
        .map(|column| typing::slot_type(&column.expr.ty))
        .collect();
    let nullable: Vec<bool> = query
        .columns
        .iter()
        .map(|column| column.expr.nullable)
        .collect();
    let names = query
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let slot = binder.new_slot(SUBQUERY_NAME, types.clone(), names);
    let (node, output) = optimize::query(binder, query)?;
    binder.keep_derived_text(binder.materializations);
    let node = crate::plan::Node::Distinct {
        input: Box::new(node),
        keys: output.clone(),
    };
    let rows = optimize::rows_of(&node);
    binder.materializations += 1;
    let kind = SourceKind::Planned {
        plan: WithNode {
            node: Arc::new(node),
            output,
        },
        materialize: binder.materializations - 1,
        rows,
        free: SlotSet::default(),
    };
    let source = Source {
        slot,
        kind,
        hints: IndexHints::default(),
        lock: RowLock::None,
    };
    let columns = types
        .into_iter()
        .zip(nullable)
        .enumerate()
        .map(|(at, (ty, nullable))| Expr::column(slot, at, ty, nullable));
    Ok((source, columns.collect()))
}
