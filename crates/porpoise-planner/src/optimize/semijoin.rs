//! Subqueries of WHERE that become joins.
//!
//! | condition | becomes |
//! | --- | --- |
//! | `EXISTS (correlated)` | semi-join: the row once, if anything matches |
//! | `NOT EXISTS (correlated)` | anti-join: the row, if nothing matches |
//! | `x IN (SELECT y …)` | semi-join on `x = y`; or, where few y meet an index on x, a join with the distinct y |
//! | `x NOT IN (SELECT y …)` | anti-join, where neither x nor y can be NULL |
//!
//! `EXISTS (… AND y = x)` that depends on the row in nothing else is `x IN (SELECT y …)`. A
//! semi-join that finds one row at most, by a unique key, is an inner join, which may stand anywhere
//! in the order. So are found the conditions of ON and of merged derived tables and views.
//!
//! Other subqueries are evaluated as expressions: an uncorrelated one once, its result kept as a
//! set. Of a correlated `x IN (SELECT y …)` only the rows with `y = x` are looked for, as in
//! `EXISTS`, wherever that says the same ([`to_exists`]).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_core::error::Result;
use porpoise_expr::typing;
use porpoise_expr::typing::compare::key_pair;
use porpoise_expr::{Comparison, Domain, Expr, ExprKind, SubqueryKind};

use crate::bind::{Binder, JOINED_TABLES_MAX};
use crate::optimize::order::InterestingOrder;
use crate::optimize::{self, access, expr_slots, free_slots, join, outer};
use crate::plan::RowLock;
use crate::query::{
    Block, Body, IndexHints, JoinTree, LogicalJoin, OutputColumn, Query, Source, SourceKind,
    SubqueryStrategies, WithNode,
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
    if tree.any_on(&mut is_subquery) {
        tree = with_own_converted(binder, tree, conditions)?;
    }
    if !conditions.iter().any(is_subquery) {
        return Ok(tree);
    }
    let mut kept = Vec::with_capacity(conditions.len());
    for condition in std::mem::take(conditions) {
        binder.check_interrupt()?;
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
        if join.kind == LogicalJoin::Semi
            && !correlated
            && strategies.materialization
            && drives(binder, &tree, &kept, &join.operands, &bound)
        {
            binder.trace_transformation("IN (SELECT)", "join with distinct rows", || {
                binder.text_of(&condition)
            });
            let (source, columns) = distinct_source(binder, bound)?;
            kept.extend(join.equalities(columns));
            tree = inner_join(tree, source);
            continue;
        }
        if !is_simple(&bound) || tree.sources() >= JOINED_TABLES_MAX {
            binder.subqueries[number] = Some(bound);
            kept.push(condition);
            continue;
        }
        let to = match join.kind {
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
        tree = joined(binder, tree, join, bound, &mut kept)?;
    }
    *conditions = kept;
    Ok(tree)
}

fn is_subquery(condition: &Expr) -> bool {
    matches!(condition.kind, ExprKind::Subquery { .. })
}

fn inner_join(left: JoinTree, right: Source) -> JoinTree {
    JoinTree::Join {
        left: Box::new(left),
        right: Box::new(JoinTree::Leaf(Box::new(right))),
        kind: LogicalJoin::Inner,
        on: Vec::new(),
    }
}

/// Adds the conditions on subqueries that a tree holds itself, in merged derived tables and ON, to
/// those of WHERE. On the side of an outer join that may be missing they are converted there.
fn with_own_converted(
    binder: &mut Binder<'_>,
    tree: JoinTree,
    conditions: &mut Vec<Expr>,
) -> Result<JoinTree> {
    let mut lift = |own: Vec<Expr>| -> Vec<Expr> {
        let (lifted, own): (Vec<Expr>, Vec<Expr>) = own.into_iter().partition(is_subquery);
        conditions.extend(lifted);
        own
    };
    Ok(match tree {
        JoinTree::One | JoinTree::Leaf(_) => tree,
        JoinTree::Filtered {
            tree,
            conditions: own,
        } => {
            let own = lift(own);
            let tree = with_own_converted(binder, *tree, conditions)?;
            JoinTree::Filtered {
                tree: Box::new(tree),
                conditions: own,
            }
        }
        JoinTree::Join {
            left,
            right,
            kind: kind @ (LogicalJoin::Inner | LogicalJoin::Straight),
            on,
        } => {
            let on = lift(on);
            let left = with_own_converted(binder, *left, conditions)?;
            let right = with_own_converted(binder, *right, conditions)?;
            JoinTree::Join {
                left: Box::new(left),
                right: Box::new(right),
                kind,
                on,
            }
        }
        JoinTree::Join {
            left,
            right,
            kind,
            on,
        } => {
            let left = with_own_converted(binder, *left, conditions)?;
            let of_left = outer::source_slots(&left);
            let is_of_right =
                |condition: &Expr| !expr_slots(binder, condition).intersects(&of_left);
            let (mut own, on): (Vec<Expr>, Vec<Expr>) = on
                .into_iter()
                .partition(|condition| is_subquery(condition) && is_of_right(condition));
            let mut right = convert(binder, *right, &mut own)?;
            if !own.is_empty() {
                right = JoinTree::Filtered {
                    tree: Box::new(right),
                    conditions: own,
                };
            }
            JoinTree::Join {
                left: Box::new(left),
                right: Box::new(right),
                kind,
                on,
            }
        }
    })
}

/// Joins the tables of a subquery of joins and filters to those of the query.
fn joined(
    binder: &mut Binder<'_>,
    tree: JoinTree,
    join: SubqueryJoin,
    subquery: Query,
    conditions: &mut Vec<Expr>,
) -> Result<JoinTree> {
    let strategies = strategies_of(&subquery);
    let Query { body, columns, .. } = subquery;
    let Body::Select(block) = body else {
        return Ok(tree);
    };
    let Block {
        number,
        from,
        conditions: mut on,
        ..
    } = *block;
    let kind = join.kind;
    on.extend(join.equalities(columns.into_iter().map(|column| column.expr)));
    let mut right = from;
    right.for_each_source_mut(&mut |source| source.hints.joined_as = Some(strategies));
    optimize::prepare(binder, &mut right)?;
    let mut right = convert(binder, right, &mut on)?;
    if kind == LogicalJoin::Semi {
        if is_found_once(binder, &right, &on) {
            conditions.append(&mut on);
            return Ok(JoinTree::Join {
                left: Box::new(tree),
                right: Box::new(right),
                kind: LogicalJoin::Inner,
                on,
            });
        }
        let own = outer::source_slots(&right);
        let of_outer = outer::source_slots(&tree);
        if let Some(pairs) = pairs_of_sides(binder, &on, &own, &of_outer) {
            let (outer_sides, columns): (Vec<Expr>, Vec<Expr>) = pairs
                .iter()
                .map(|pair| (pair.outer.clone(), pair.own.clone()))
                .unzip();
            let is_pair = |condition: &Expr| expr_slots(binder, condition).intersects(&of_outer);
            let (equalities, local): (Vec<Expr>, Vec<Expr>) =
                on.into_iter().partition(|condition| is_pair(condition));
            let mut query = distinct_candidate(number, right, local, columns);
            if strategies.materialization && drives(binder, &tree, conditions, &outer_sides, &query)
            {
                let (source, columns) = distinct_source(binder, query)?;
                let of_pairs = pairs.into_iter().zip(columns);
                conditions
                    .extend(of_pairs.map(|(pair, column)| equal(pair.outer, column, pair.domain)));
                return Ok(inner_join(tree, source));
            }
            let Body::Select(block) = &mut query.body else {
                return Ok(tree);
            };
            right = std::mem::replace(&mut block.from, JoinTree::One);
            on = std::mem::take(&mut block.conditions);
            on.extend(equalities);
        }
    }
    Ok(JoinTree::Join {
        left: Box::new(tree),
        right: Box::new(right),
        kind,
        on,
    })
}

/// A subquery's rows without what they have to equal of the outer query.
fn distinct_candidate(
    number: u32,
    from: JoinTree,
    conditions: Vec<Expr>,
    columns: Vec<Expr>,
) -> Query {
    let column = |expr| OutputColumn {
        expr,
        name: CompactString::default(),
        name_span: None,
        origin: None,
    };
    Query {
        body: Body::Select(Box::new(Block {
            number,
            from,
            conditions,
            group: None,
            having: Vec::new(),
            windows: Vec::new(),
            distinct: false,
            straight: false,
            subquery: SubqueryStrategies::default(),
        })),
        columns: columns.into_iter().map(column).collect(),
        order: Vec::new(),
        limit: None,
        offset: None,
    }
}

/// An equality of something of the outer query with something of the subquery.
struct Pair {
    outer: Expr,
    own: Expr,
    domain: Domain,
}

/// The equalities by which alone a subquery's rows depend on the outer query's. `None`: they depend
/// on more, or on nothing.
fn pairs_of_sides(
    binder: &Binder<'_>,
    conditions: &[Expr],
    own: &SlotSet,
    outer: &SlotSet,
) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    for condition in conditions {
        if !expr_slots(binder, condition).intersects(outer) {
            continue;
        }
        let ExprKind::Compare {
            op: Comparison::Eq,
            domain,
            left,
            right,
        } = &condition.kind
        else {
            return None;
        };
        if matches!(left.kind, ExprKind::Row(_)) || condition.has_subquery() {
            return None;
        }
        let (of_left, of_right) = (expr_slots(binder, left), expr_slots(binder, right));
        let is_of = |slots: &SlotSet, one: &SlotSet, other: &SlotSet| {
            slots.intersects(one) && !slots.intersects(other)
        };
        let (outer_side, own_side) = if is_of(&of_left, outer, own) && is_of(&of_right, own, outer)
        {
            (left, right)
        } else if is_of(&of_right, outer, own) && is_of(&of_left, own, outer) {
            (right, left)
        } else {
            return None;
        };
        let (outer_side, own_side) =
            key_pair((**outer_side).clone(), (**own_side).clone(), *domain);
        pairs.push(Pair {
            outer: outer_side,
            own: own_side,
            domain: *domain,
        });
    }
    (!pairs.is_empty()).then_some(pairs)
}

/// Whether a subquery has one row at most for each row of the outer query, so that it can be joined
/// as any table: the conditions fix a unique key of the one table that it reads.
fn is_found_once(binder: &Binder<'_>, tree: &JoinTree, conditions: &[Expr]) -> bool {
    let JoinTree::Leaf(source) = tree else {
        return false;
    };
    let SourceKind::Table(table) = &source.kind else {
        return false;
    };
    let own = SlotSet::one(source.slot);
    let fixes = |condition: &Expr, column: usize| {
        let ExprKind::Compare {
            op: Comparison::Eq,
            domain,
            left,
            right,
        } = &condition.kind
        else {
            return false;
        };
        let is_column = |expr: &Expr| {
            expr.as_column() == Some((source.slot, column))
                && Domain::of(&table.columns[column].ty) == *domain
        };
        let is_known =
            |expr: &Expr| !expr_slots(binder, expr).intersects(&own) && !expr.is_volatile();
        (is_column(left) && is_known(right)) || (is_column(right) && is_known(left))
    };
    source.lock == RowLock::None
        && table.indexes.iter().any(|index| {
            index.is_unique()
                && index.parts.iter().all(|part| {
                    part.prefix.is_none()
                        && conditions
                            .iter()
                            .any(|condition| fixes(condition, part.column))
                })
        })
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
            } if is_simple(query)
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
    if free_slots(binder, bound).is_empty()
        && !strategies_of(bound).into_exists
        && !is_cheaper_by_row(binder, bound, &looked_for)
    {
        return;
    }
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

/// Whether to look for the rows of an uncorrelated subquery that an operand equals, for each row of
/// the outer query, costs less than to read them all once.
fn is_cheaper_by_row(binder: &Binder<'_>, query: &Query, looked_for: &[Expr]) -> bool {
    let Body::Select(block) = &query.body else {
        return false;
    };
    let mut is_known = true;
    block.from.for_each_source(&mut |source| {
        is_known &= matches!(source.kind, SourceKind::Table(_));
    });
    if !is_known || block.conditions.iter().any(Expr::has_subquery) {
        return false;
    }
    let (whole, _) = join::cost(
        binder,
        &block.from,
        block.conditions.clone(),
        &SlotSet::default(),
    );
    let mut filled = SlotSet::default();
    for condition in looked_for {
        filled.add(&expr_slots(binder, condition));
    }
    filled.remove(&outer::source_slots(&block.from));
    let conditions = block.conditions.iter().chain(looked_for).cloned();
    let (by_row, _) = join::cost(binder, &block.from, conditions.collect(), &filled);
    binder.executions * binder.block_rows.max(1.0) * by_row < whole
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
    let free = free_slots(binder, &query);
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
        is_weedout: false,
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
        free,
        splits: Vec::new(),
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
