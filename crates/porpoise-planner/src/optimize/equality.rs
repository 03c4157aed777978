//! Equality propagation: from `a = b AND b = 7` follows `a = 7`, from `a = b AND b = c` follows `a
//! = c`.
//!
//! The new conditions give more tables an index to be reached by.

use porpoise_expr::{Comparison, Domain, Expr, ExprKind, SlotId};

type Column = (SlotId, usize);

/// Of more columns that are equal not every pair is named: pairs grow with the square.
const PAIRED_MAX: usize = 16;

/// Adds implied equalities to the conditions of one query block.
pub fn propagate(conditions: &mut Vec<Expr>) {
    // Columns known to be equal, with a sample of each.
    let mut classes: Vec<(Domain, Vec<Expr>)> = Vec::new();
    let mut pairs = 0;
    for condition in conditions.iter() {
        let Some((domain, left, right)) = equality(condition) else {
            continue;
        };
        if left.as_column().is_none() || right.as_column().is_none() || left.ty != right.ty {
            continue;
        }
        pairs += 1;
        join_class(&mut classes, domain, left, right);
    }
    if pairs == 0 {
        return;
    }
    let mut implied = Vec::new();
    for condition in conditions.iter() {
        let Some((domain, left, right)) = equality(condition) else {
            continue;
        };
        let (column, constant) = match (left.as_column(), right.as_column()) {
            (Some(column), None) if right.is_constant() => (column, right),
            (None, Some(column)) if left.is_constant() => (column, left),
            _ => continue,
        };
        let Some(class) = classes
            .iter()
            .find(|(of, members)| *of == domain && contains(members, column))
        else {
            continue;
        };
        for member in class
            .1
            .iter()
            .filter(|member| member.as_column() != Some(column))
        {
            implied.push(equal(member, constant, domain));
        }
    }
    let has_pairs = |members: &[Expr]| (3..=PAIRED_MAX).contains(&members.len());
    for (domain, members) in classes.iter().filter(|(_, members)| has_pairs(members)) {
        for (at, a) in members.iter().enumerate() {
            for b in &members[at + 1..] {
                if a.as_column().map(|column| column.0) != b.as_column().map(|column| column.0) {
                    implied.push(equal(a, b, *domain));
                }
            }
        }
    }
    for condition in implied {
        let known = conditions.iter().any(|held| {
            held.same_as(&condition, &[])
                || flipped(held).is_some_and(|held| held.same_as(&condition, &[]))
        });
        if !known {
            conditions.push(condition);
        }
    }
}

fn equality(condition: &Expr) -> Option<(Domain, &Expr, &Expr)> {
    match &condition.kind {
        ExprKind::Compare {
            op: Comparison::Eq,
            domain,
            left,
            right,
        } => Some((*domain, left, right)),
        _ => None,
    }
}

fn flipped(condition: &Expr) -> Option<Expr> {
    let (domain, left, right) = equality(condition)?;
    Some(equal(right, left, domain))
}

fn equal(left: &Expr, right: &Expr, domain: Domain) -> Expr {
    let nullable = left.nullable || right.nullable;
    let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
    Expr::boolean(
        ExprKind::Compare {
            op: Comparison::Eq,
            domain,
            left,
            right,
        },
        nullable,
    )
}

fn contains(members: &[Expr], column: Column) -> bool {
    members
        .iter()
        .any(|member| member.as_column() == Some(column))
}

fn join_class(classes: &mut Vec<(Domain, Vec<Expr>)>, domain: Domain, left: &Expr, right: &Expr) {
    let position = |classes: &[(Domain, Vec<Expr>)], expr: &Expr| {
        let column = expr.as_column()?;
        classes
            .iter()
            .position(|(of, members)| *of == domain && contains(members, column))
    };
    match (position(classes, left), position(classes, right)) {
        (None, None) => classes.push((domain, vec![left.clone(), right.clone()])),
        (Some(at), None) => classes[at].1.push(right.clone()),
        (None, Some(at)) => classes[at].1.push(left.clone()),
        (Some(a), Some(b)) if a != b => {
            let (_, members) = classes.remove(a.max(b));
            classes[a.min(b)].1.extend(members);
        }
        _ => {}
    }
}
