//! The constants of a long IN list, sorted: looked up in, not gone through.

use std::cmp::Ordering;

use porpoise_types::Value;

use crate::compare::compare;
use crate::{Domain, Expr, ExprKind};

/// Shorter lists are gone through.
pub const SORTED_MIN: usize = 16;

/// The rows of constants of an IN list that have no NULL, in order.
#[derive(Debug)]
pub struct ValueList {
    rows: Vec<Box<[Value]>>,
    /// Some rows have a NULL; they are not among `rows`.
    has_nulls: bool,
}

/// What a list says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The row is in it.
    Yes,
    /// It is not, and no NULL leaves it open.
    No,
    /// A NULL in the row or in the list may leave it open: the list has to be gone through.
    Unknown,
}

impl ValueList {
    /// A list of rows, whose elements are compared each in its domain.
    pub fn new(mut rows: Vec<Box<[Value]>>, domains: &[Domain]) -> ValueList {
        let all = rows.len();
        rows.retain(|row| !row.iter().any(Value::is_null));
        let has_nulls = rows.len() < all;
        rows.sort_by(|a, b| order(a, b, domains));
        ValueList { rows, has_nulls }
    }

    /// Looks a row up.
    pub fn find(&self, row: &[Value], domains: &[Domain]) -> Found {
        if row.iter().any(Value::is_null) {
            return Found::Unknown;
        }
        let found = self.rows.binary_search_by(|held| order(held, row, domains));
        match (found, self.has_nulls) {
            (Ok(_), _) => Found::Yes,
            (Err(_), false) => Found::No,
            (Err(_), true) => Found::Unknown,
        }
    }
}

fn order(left: &[Value], right: &[Value], domains: &[Domain]) -> Ordering {
    if let ([left], [right], [domain]) = (left, right, domains) {
        return compare(left, right, *domain);
    }
    let pairs = left.iter().zip(right).zip(domains);
    pairs
        .map(|((left, right), domain)| compare(left, right, *domain))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The elements of a row, or the single value.
pub fn elements(item: &Expr) -> &[Expr] {
    match &item.kind {
        ExprKind::Row(elements) => elements,
        _ => std::slice::from_ref(item),
    }
}
