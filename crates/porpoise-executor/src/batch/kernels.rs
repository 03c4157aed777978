//! Loops over vectors. `None` says that a row's result isn't plain: it overflows, is divided by
//! zero, or warns. Then the row evaluator has to tell.

use std::cmp::Ordering;

use porpoise_expr::Comparison;

/// One side of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand<'v, T> {
    Vector(&'v [T]),
    /// The same for each row.
    Constant(T),
}

impl<T: Copy> Operand<'_, T> {
    /// A row's value.
    #[inline]
    pub(super) fn get(self, row: usize) -> T {
        match self {
            Operand::Vector(values) => values[row],
            Operand::Constant(value) => value,
        }
    }
}

/// Which rows are NULL where either side is; empty where none is.
pub(super) fn either_null(left: &[bool], right: &[bool]) -> Vec<bool> {
    match (left.is_empty(), right.is_empty()) {
        (_, true) => left.to_vec(),
        (true, false) => right.to_vec(),
        (false, false) => left.iter().zip(right).map(|(a, b)| *a || *b).collect(),
    }
}

/// Applies an operation row by row.
#[inline]
pub(super) fn combine<T: Copy, R>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    mut operation: impl FnMut(T, T) -> R,
) -> Vec<R> {
    match (left, right) {
        (Operand::Vector(a), Operand::Vector(b)) => {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| operation(*a, *b)).collect()
        }
        (Operand::Vector(a), Operand::Constant(b)) => a.iter().map(|a| operation(*a, b)).collect(),
        (Operand::Constant(a), Operand::Vector(b)) => b.iter().map(|b| operation(a, *b)).collect(),
        (Operand::Constant(a), Operand::Constant(b)) => {
            (0..rows).map(|_| operation(a, b)).collect()
        }
    }
}

/// Applies an operation that may overflow.
#[inline]
pub(super) fn checked(
    left: Operand<'_, i64>,
    right: Operand<'_, i64>,
    rows: usize,
    operation: impl Fn(i64, i64) -> (i64, bool),
) -> Option<Vec<i64>> {
    let mut overflows = false;
    let results = combine(left, right, rows, |a, b| {
        let (result, is_over) = operation(a, b);
        overflows |= is_over;
        result
    });
    (!overflows).then_some(results)
}

/// The remainder or the quotient of integers. A row whose divisor is 0 must be NULL.
pub(super) fn divided(
    left: Operand<'_, i64>,
    right: Operand<'_, i64>,
    rows: usize,
    nulls: &[bool],
    operation: impl Fn(i64, i64) -> Option<i64>,
) -> Option<Vec<i64>> {
    let results = combine(left, right, rows, operation);
    let mut row = 0..;
    let results = results.into_iter().map(|result| {
        let row = row.next().unwrap_or_default();
        match result {
            None if nulls.get(row).copied().unwrap_or(false) => Some(0),
            result => result,
        }
    });
    results.collect()
}

/// What a condition says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    No,
    Yes,
    Unknown,
}

impl Truth {
    #[inline]
    pub(super) fn of(is_true: bool) -> Truth {
        match is_true {
            true => Truth::Yes,
            false => Truth::No,
        }
    }

    #[inline]
    pub(super) fn from_option(truth: Option<bool>) -> Truth {
        truth.map_or(Truth::Unknown, Truth::of)
    }

    #[inline]
    pub(super) fn negated(self) -> Truth {
        match self {
            Truth::No => Truth::Yes,
            Truth::Yes => Truth::No,
            Truth::Unknown => Truth::Unknown,
        }
    }
}

/// Compares row by row. `order` is asked for the order of two values, which the loops for each
/// operator are made of.
#[inline]
pub(super) fn compared<T: Copy>(
    op: Comparison,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    order: impl Fn(T, T) -> Ordering,
) -> Vec<Truth> {
    match op {
        Comparison::Eq | Comparison::NullSafeEq => {
            combine(left, right, rows, |a, b| Truth::of(order(a, b).is_eq()))
        }
        Comparison::Ne => combine(left, right, rows, |a, b| Truth::of(order(a, b).is_ne())),
        Comparison::Lt => combine(left, right, rows, |a, b| Truth::of(order(a, b).is_lt())),
        Comparison::Le => combine(left, right, rows, |a, b| Truth::of(order(a, b).is_le())),
        Comparison::Gt => combine(left, right, rows, |a, b| Truth::of(order(a, b).is_gt())),
        Comparison::Ge => combine(left, right, rows, |a, b| Truth::of(order(a, b).is_ge())),
    }
}

/// Makes the rows unknown that are NULL.
pub(super) fn unknown_where(nulls: &[bool], truths: &mut [Truth]) {
    for (truth, is_null) in truths.iter_mut().zip(nulls) {
        if *is_null {
            *truth = Truth::Unknown;
        }
    }
}

/// Of `<=>`: two NULLs are equal, one is not.
pub(super) fn null_safe(left: &[bool], right: &[bool], truths: &mut [Truth]) {
    let is_null = |nulls: &[bool], row: usize| nulls.get(row).copied().unwrap_or(false);
    for (row, truth) in truths.iter_mut().enumerate() {
        match (is_null(left, row), is_null(right, row)) {
            (true, true) => *truth = Truth::Yes,
            (false, false) => {}
            _ => *truth = Truth::No,
        }
    }
}
