//! Conditions on derived tables, checked inside them.
//!
//! A derived table or view that can't be merged (GROUP BY, DISTINCT, UNION, windows) is computed as
//! a whole. A condition on its columns alone may say which of its rows, or of its groups, have to be
//! made at all:
//!
//! | the derived table has | its columns in the condition are | the condition becomes part of |
//! | --- | --- | --- |
//! | DISTINCT, or nothing of these | any | WHERE |
//! | GROUP BY | grouped by | WHERE |
//! | GROUP BY, or aggregates alone | any | HAVING |
//! | windows | in every window's PARTITION BY | WHERE |
//! | UNION, INTERSECT, EXCEPT | of the same type in each query | each query |
//!
//! With LIMIT, and in recursive tables, nothing is.

use porpoise_expr::typing::{self, Class};
use porpoise_expr::{Domain, Expr, ExprKind, SlotId};
use porpoise_sql::ast::HintKind;

use crate::bind::Binder;
use crate::optimize::{equality, expr_slots, semijoin};
use crate::query::{Block, Body, Grouping, JoinTree, OutputColumn, Query, SourceKind};
use crate::slot_set::SlotSet;

/// Moves the conditions of WHERE that can be into the derived tables of a join tree, before these
/// are planned.
pub fn into_derived(binder: &Binder<'_>, tree: &mut JoinTree, conditions: &mut Vec<Expr>) {
    let mut has_derived = false;
    tree.for_each_source(&mut |source| {
        has_derived |= matches!(source.kind, SourceKind::Derived { .. });
    });
    if !has_derived {
        return;
    }
    equality::propagate(conditions);
    conditions.retain(|condition| {
        let moved = is_moved(binder, tree, condition);
        if moved {
            binder.trace_transformation("condition", "condition inside the derived table", || {
                binder.text_of(condition)
            });
        }
        !moved
    });
}

/// Whether a condition needs no more be checked outside: it was moved into the one table that it
/// reads.
fn is_moved(binder: &Binder<'_>, tree: &mut JoinTree, condition: &Expr) -> bool {
    if condition.is_volatile() || condition.has_subquery() || !is_alike_for_equals(condition) {
        return false;
    }
    let slots = expr_slots(binder, condition);
    let mut reads = slots.iter();
    let (Some(slot), None) = (reads.next(), reads.next()) else {
        return false;
    };
    if semijoin::is_null_side(tree, slot) {
        return false;
    }
    let mut moved = false;
    tree.for_each_source_mut(&mut |source| {
        let pushes = binder.switches().derived_condition_pushdown();
        if source.slot == slot
            && (source.hints).is_on(HintKind::DerivedConditionPushdown, None, pushes)
            && let SourceKind::Derived { query } = &mut source.kind
        {
            moved = push(query, slot, condition);
        }
    });
    moved
}

/// Whether a condition is the same for texts that their collation holds equal, of which a group
/// shows one.
fn is_alike_for_equals(condition: &Expr) -> bool {
    let is_text =
        |expr: &Expr| expr.as_column().is_some() && matches!(typing::class(&expr.ty), Class::Text);
    let has_text = |expr: &Expr| expr.any(&mut |part| is_text(part));
    let mut operands: Vec<&Expr> = Vec::new();
    condition.for_each_child(&mut |child| operands.push(child));
    match &condition.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().all(is_alike_for_equals),
        ExprKind::Not(operand) => is_alike_for_equals(operand),
        ExprKind::IsNull { operand, .. } if operand.as_column().is_some() => true,
        ExprKind::Compare { domain, .. }
        | ExprKind::Between { domain, .. }
        | ExprKind::InList { domain, .. } => operands.into_iter().all(|operand| {
            !has_text(operand)
                || (is_text(operand) && *domain == Domain::Text(operand.ty.collation()))
        }),
        _ => !has_text(condition),
    }
}

/// Adds a condition on the columns of a query's result, which are those of `slot`, to the query.
/// False: it still has to be checked on the result.
fn push(query: &mut Query, slot: SlotId, condition: &Expr) -> bool {
    if query.limit.is_some() || query.offset.is_some() {
        return false;
    }
    let Some(condition) = over_columns(condition, slot, &query.columns) else {
        return false;
    };
    match &mut query.body {
        Body::Select(block) => push_into_block(block, condition),
        Body::SetOperation { slot, inputs, .. } => {
            let mut moved = true;
            for input in inputs {
                moved &= push(input, *slot, &condition);
            }
            moved
        }
        Body::Values { .. } | Body::JsonTable { .. } | Body::Recursive { .. } => false,
    }
}

/// Adds a condition on the columns of a query's result, where it says which rows the query has to
/// read, not only which of its groups count. The condition may read other tables, too.
pub fn push_below_groups(query: &mut Query, slot: SlotId, condition: &Expr) -> bool {
    if !is_alike_for_equals(condition) {
        return false;
    }
    let Some(condition) = over_columns(condition, slot, &query.columns) else {
        return false;
    };
    match &mut query.body {
        Body::Select(block) => match &block.group {
            Some(group) => match over_keys(&condition, group) {
                Some(condition) if block.windows.is_empty() => {
                    block.conditions.push(condition);
                    true
                }
                _ => false,
            },
            None => push_into_block(block, condition),
        },
        Body::SetOperation { slot, inputs, .. } => {
            let slot = *slot;
            let mut inputs = inputs.iter_mut();
            inputs.all(|input| push_below_groups(input, slot, &condition))
        }
        Body::Values { .. } | Body::JsonTable { .. } | Body::Recursive { .. } => false,
    }
}

fn push_into_block(block: &mut Block, condition: Expr) -> bool {
    match (&block.group, &block.windows[..]) {
        (None, []) => block.conditions.push(condition),
        (Some(group), []) => match over_keys(&condition, group) {
            Some(condition) => block.conditions.push(condition),
            None => block.having.push(condition),
        },
        (None, windows) => {
            let mut own = SlotSet::default();
            block.from.for_each_slot(&mut |slot| own.insert(slot));
            windows.iter().for_each(|window| own.insert(window.slot));
            let is_partitioned = |expr: &Expr| {
                let has = |partition: &[Expr]| partition.iter().any(|p| p.same_as(expr, &[]));
                let is_of_others = |(slot, _)| !own.contains(slot);
                windows.iter().all(|window| has(&window.partition))
                    || expr.as_column().is_some_and(is_of_others)
            };
            if !reads_only(&condition, &is_partitioned) {
                return false;
            }
            block.conditions.push(condition);
        }
        (Some(_), _) => return false,
    }
    true
}

/// Whether all that an expression reads are expressions that pass a test.
fn reads_only(expr: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    if test(expr) {
        return true;
    }
    let mut passes = expr.as_column().is_none();
    expr.for_each_child(&mut |child| passes = passes && reads_only(child, test));
    passes
}

/// The condition over what a query's columns are computed of. `None` where a column has another
/// type than the result has, or another value each time.
fn over_columns(condition: &Expr, slot: SlotId, columns: &[OutputColumn]) -> Option<Expr> {
    replaced(condition, slot, &|column| {
        let expr = &columns.get(column)?.expr;
        (!expr.is_volatile() && !expr.has_subquery()).then_some(expr)
    })
}

/// The condition over the rows that are grouped, if it reads nothing but what they are grouped by.
fn over_keys(condition: &Expr, group: &Grouping) -> Option<Expr> {
    if group.rollup || group.keys.is_empty() {
        return None;
    }
    replaced(condition, group.slot, &|column| {
        let key = group.keys.get(column)?;
        (!key.is_volatile() && !key.has_subquery()).then_some(key)
    })
}

/// An expression with the columns of a slot replaced by expressions of the same type.
fn replaced<'e>(expr: &Expr, slot: SlotId, by: &dyn Fn(usize) -> Option<&'e Expr>) -> Option<Expr> {
    if let ExprKind::Column {
        slot: of, column, ..
    } = &expr.kind
        && *of == slot
    {
        let new = by(*column as usize)?;
        return (new.ty == expr.ty).then(|| new.clone());
    }
    let mut whole = expr.clone();
    let mut is_whole = true;
    whole.for_each_child_mut(&mut |child| match replaced(child, slot, by) {
        Some(new) => *child = new,
        None => is_whole = false,
    });
    is_whole.then_some(whole)
}
