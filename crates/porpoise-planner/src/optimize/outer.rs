//! Outer joins that are equivalent to inner joins.
//!
//! `a LEFT JOIN b ON … WHERE b.x > 3`: a row without a match has NULL for `b.x`, the condition
//! isn't true, so only matches remain. Inner joins can be reordered and driven from either side.

use porpoise_expr::function::Eval;
use porpoise_expr::typing::hidden;
use porpoise_expr::{Comparison, Expr, ExprKind, SubqueryKind};

use crate::bind::Binder;
use crate::optimize::is_true;
use crate::query::{JoinTree, LogicalJoin};
use crate::slot_set::SlotSet;

/// Turns outer joins into inner ones where conditions refuse the rows of NULLs; their conditions
/// then join those of the query. Conditions that are always true are dropped.
pub fn simplify(binder: &Binder<'_>, tree: JoinTree, conditions: &mut Vec<Expr>) -> JoinTree {
    conditions.retain(|condition| !is_true(condition));
    let mut rejected = SlotSet::default();
    for condition in conditions.iter() {
        rejected.add(&null_rejecting(condition));
    }
    convert(binder, tree, rejected)
}

fn convert(binder: &Binder<'_>, tree: JoinTree, mut rejected: SlotSet) -> JoinTree {
    match tree {
        JoinTree::One | JoinTree::Leaf(_) => tree,
        JoinTree::Filtered { tree, conditions } => {
            for condition in &conditions {
                rejected.add(&null_rejecting(condition));
            }
            JoinTree::Filtered {
                tree: Box::new(convert(binder, *tree, rejected)),
                conditions,
            }
        }
        JoinTree::Join {
            left,
            right,
            kind,
            on,
        } => {
            let mut right_slots = SlotSet::default();
            right.for_each_source(&mut |source| right_slots.insert(source.slot));
            let kind = match kind {
                LogicalJoin::Left if right_slots.intersects(&rejected) => {
                    binder.trace_transformation("outer join", "inner join", || {
                        binder.names_of(&right_slots).join(", ")
                    });
                    LogicalJoin::Inner
                }
                kind => kind,
            };
            let mut inner = rejected.clone();
            if kind != LogicalJoin::Anti {
                for condition in &on {
                    inner.add(&null_rejecting(condition));
                }
            }
            // ON of an outer join says nothing of the rows of its left side.
            let of_left = if matches!(
                kind,
                LogicalJoin::Inner | LogicalJoin::Straight | LogicalJoin::Semi
            ) {
                inner.clone()
            } else {
                rejected
            };
            let left = Box::new(convert(binder, *left, of_left));
            let right = Box::new(convert(binder, *right, inner));
            JoinTree::Join {
                left,
                right,
                kind,
                on,
            }
        }
    }
}

/// The slots without whose row the condition is not true.
fn null_rejecting(condition: &Expr) -> SlotSet {
    match &condition.kind {
        ExprKind::And(parts) => {
            let mut all = SlotSet::default();
            parts.iter().for_each(|part| all.add(&null_rejecting(part)));
            all
        }
        ExprKind::Or(parts) => {
            let mut sets = parts.iter().map(null_rejecting);
            let Some(first) = sets.next() else {
                return SlotSet::default();
            };
            sets.fold(first, |held, next| {
                held.iter().filter(|slot| next.contains(*slot)).collect()
            })
        }
        ExprKind::IsNull {
            operand,
            negated: true,
        } => strict(operand),
        ExprKind::IsTruth {
            operand,
            truth: true,
            negated: false,
        } => null_rejecting(operand),
        ExprKind::IsTruth {
            operand,
            truth: false,
            negated: false,
        } => strict(operand),
        // Not true where the operand is NULL, but not always NULL either: over an empty subquery `=
        // ANY` is false, and `<> ALL` true.
        ExprKind::Subquery {
            kind:
                SubqueryKind::Quantified {
                    operand,
                    all: false,
                    ..
                },
            ..
        } => strict(operand),
        _ => strict(condition),
    }
}

/// The slots without whose row the expression is NULL.
fn strict(expr: &Expr) -> SlotSet {
    match &expr.kind {
        ExprKind::Column { slot, .. } => SlotSet::one(*slot),
        ExprKind::Compare {
            op, left, right, ..
        } if *op != Comparison::NullSafeEq => {
            if matches!(left.kind, ExprKind::Row(_)) {
                return SlotSet::default();
            }
            strict(left).union(&strict(right))
        }
        ExprKind::Xor(left, right)
        | ExprKind::Arithmetic { left, right, .. }
        | ExprKind::Like {
            operand: left,
            pattern: right,
            ..
        } => strict(left).union(&strict(right)),
        ExprKind::Between { operand, .. } | ExprKind::InList { operand, .. } => strict(operand),
        ExprKind::Not(operand) | ExprKind::Negate(operand) | ExprKind::Cast { operand, .. } => {
            strict(operand)
        }
        ExprKind::Call {
            function,
            arguments,
        } if matches!(function.eval, Eval::Strict(_))
            || std::ptr::eq(*function, &hidden::COLLATE) =>
        {
            let mut all = SlotSet::default();
            arguments
                .iter()
                .for_each(|argument| all.add(&strict(argument)));
            all
        }
        _ => SlotSet::default(),
    }
}

/// The slots of the sources in a tree.
pub fn source_slots(tree: &JoinTree) -> SlotSet {
    let mut slots = SlotSet::default();
    tree.for_each_source(&mut |source| slots.insert(source.slot));
    slots
}
