//! What a disjunction says as a whole.
//!
//! `(a AND b) OR (a AND c)` is `a AND (b OR c)`: `a` may be a join's equality, or choose an index.
//! And where every alternative says something of one table alone, that table's rows can be filtered
//! before it is joined: `(x.k = 1 AND y.k = 2) OR (x.k = 2 AND y.k = 1)` implies `x.k = 1 OR x.k =
//! 2`. A long one over one operand, `x = 1 OR x = 2 …`, is `x IN (1, 2 …)`, in which values are
//! looked up.

use porpoise_expr::typing;
use porpoise_expr::{Comparison, Domain, Expr, ExprKind};

use crate::bind::Binder;
use crate::optimize::expr_slots;
use crate::query::JoinTree;
use crate::slot_set::SlotSet;

/// Longer disjunctions are left as they are: taking them apart compares each alternative with each
/// condition of the first.
const ALTERNATIVES_MAX: usize = 64;

/// Takes apart the disjunctions among the conditions of WHERE and of joins.
pub fn simplify(binder: &Binder<'_>, tree: &mut JoinTree, conditions: &mut Vec<Expr>) {
    simplify_list(binder, conditions);
    tree.for_each_list_mut(&mut |conditions| simplify_list(binder, conditions));
}

/// Conditions that all must hold.
fn simplify_list(binder: &Binder<'_>, conditions: &mut Vec<Expr>) {
    conditions.iter_mut().for_each(as_list);
    if !conditions.iter().any(is_disjunction) {
        return;
    }
    for condition in std::mem::take(conditions) {
        if !is_disjunction(&condition) {
            conditions.push(condition);
            continue;
        }
        let (common, rest) = without_common(condition);
        conditions.extend(common);
        if let Some(rest) = rest {
            conditions.extend(implied(binder, &rest));
            conditions.push(rest);
        }
    }
}

/// Makes an IN list of a long disjunction of equalities with constants: of one operand, or of
/// several, each compared in every alternative.
fn as_list(condition: &mut Expr) {
    let ExprKind::Or(arms) = &condition.kind else {
        return;
    };
    if arms.len() <= ALTERNATIVES_MAX {
        return;
    }
    let equalities = |arm| -> Option<Vec<Equality<'_>>> {
        conjuncts(arm).iter().map(Equality::with_constant).collect()
    };
    let Some(first) = arms.first().and_then(equalities) else {
        return;
    };
    let is_plain = |equality: &Equality<'_>| {
        !equality.operand.is_volatile()
            && !equality.operand.has_subquery()
            && equality.domain == Domain::of(&equality.operand.ty)
    };
    if !first.iter().all(is_plain) {
        return;
    }
    let values = |arm| {
        let found = equalities(arm)?;
        let same = found.len() == first.len()
            && found
                .iter()
                .zip(&first)
                .all(|(a, b)| a.domain == b.domain && a.operand.same_as(b.operand, &[]));
        same.then(|| row(found.iter().map(|equality| equality.constant)))
    };
    let values: Option<Vec<Expr>> = arms.iter().map(values).collect();
    if let Some(list) = values {
        let operand = Box::new(row(first.iter().map(|equality| equality.operand)));
        let domain = first[0].domain;
        let negated = false;
        condition.kind = ExprKind::InList {
            operand,
            list,
            domain,
            negated,
        };
    }
}

/// A row of expressions, or the one there is.
fn row<'e>(elements: impl Iterator<Item = &'e Expr>) -> Expr {
    let mut elements: Vec<Expr> = elements.cloned().collect();
    match elements.len() {
        1 => elements.swap_remove(0),
        _ => typing::compare::row(elements),
    }
}

/// `operand = constant`.
struct Equality<'e> {
    operand: &'e Expr,
    constant: &'e Expr,
    domain: Domain,
}

impl Equality<'_> {
    fn with_constant(condition: &Expr) -> Option<Equality<'_>> {
        let ExprKind::Compare {
            op: Comparison::Eq,
            domain,
            left,
            right,
        } = &condition.kind
        else {
            return None;
        };
        let (operand, constant) = match (left.is_constant(), right.is_constant()) {
            (false, true) => (&**left, &**right),
            (true, false) => (&**right, &**left),
            _ => return None,
        };
        let domain = *domain;
        let is_single = !matches!(operand.kind, ExprKind::Row(_));
        is_single.then_some(Equality {
            operand,
            constant,
            domain,
        })
    }
}

fn is_disjunction(condition: &Expr) -> bool {
    matches!(&condition.kind, ExprKind::Or(arms) if (2..=ALTERNATIVES_MAX).contains(&arms.len()))
}

/// The conditions that all hold in an alternative.
fn conjuncts(arm: &Expr) -> &[Expr] {
    match &arm.kind {
        ExprKind::And(parts) => parts,
        _ => std::slice::from_ref(arm),
    }
}

/// The conditions that every alternative has, and what is left of the disjunction: nothing, if an
/// alternative has no others.
fn without_common(condition: Expr) -> (Vec<Expr>, Option<Expr>) {
    let ExprKind::Or(arms) = &condition.kind else {
        return (Vec::new(), Some(condition));
    };
    let has = |arm: &Expr, part: &Expr| conjuncts(arm).iter().any(|held| held.same_as(part, &[]));
    let (first, others) = arms.split_at(1);
    let common: Vec<Expr> = conjuncts(&first[0])
        .iter()
        .filter(|part| !part.is_volatile() && !part.has_subquery())
        .filter(|part| others.iter().all(|arm| has(arm, part)))
        .cloned()
        .collect();
    if common.is_empty() {
        return (common, Some(condition));
    }
    let is_common = |part: &&Expr| common.iter().any(|held| held.same_as(part, &[]));
    let mut left = Vec::with_capacity(arms.len());
    for arm in arms {
        let parts: Vec<Expr> = conjuncts(arm)
            .iter()
            .filter(|part| !is_common(part))
            .cloned()
            .collect();
        if parts.is_empty() {
            return (common, None);
        }
        left.push(all(parts, condition.nullable));
    }
    let rest = Expr::boolean(ExprKind::Or(left), condition.nullable);
    (common, Some(rest))
}

/// What a disjunction over several tables says of each of them alone.
fn implied(binder: &Binder<'_>, condition: &Expr) -> Vec<Expr> {
    let ExprKind::Or(arms) = &condition.kind else {
        return Vec::new();
    };
    let slots = expr_slots(binder, condition);
    if slots.iter().count() < 2 {
        return Vec::new();
    }
    let of_table = |slot| -> Option<Expr> {
        let own = SlotSet::one(slot);
        let of_arm = |arm: &Expr| {
            let parts = conjuncts(arm).iter().filter(|part| {
                !part.is_volatile() && !part.has_subquery() && expr_slots(binder, part) == own
            });
            let parts: Vec<Expr> = parts.cloned().collect();
            (!parts.is_empty()).then(|| all(parts, true))
        };
        let arms: Option<Vec<Expr>> = arms.iter().map(of_arm).collect();
        Some(Expr::boolean(ExprKind::Or(arms?), true))
    };
    slots.iter().filter_map(of_table).collect()
}

fn all(mut parts: Vec<Expr>, nullable: bool) -> Expr {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => Expr::boolean(ExprKind::And(parts), nullable),
    }
}
