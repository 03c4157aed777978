//! The constants of a long IN list, sorted: looked up in, not gone through.

use std::cmp::Ordering;
use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::compare::compare;
use porpoise_expr::{Domain, Expr, ExprKind};
use porpoise_types::Value;

use crate::Exec;
use crate::eval::Evaluate;

/// Shorter lists are gone through.
const SORTED_MIN: usize = 16;

/// The rows of constants of an IN list that have no NULL, in order.
pub struct ValueList {
    rows: Vec<Box<[Value]>>,
    /// Some rows have a NULL; they are not among `rows`.
    has_nulls: bool,
}

/// What a list says of a row.
pub enum Found {
    /// The row is in it.
    Yes,
    /// It is not, and no NULL leaves it open.
    No,
    /// A NULL in the row or in the list may leave it open: the list has to be gone through.
    Unknown,
}

impl ValueList {
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
    let pairs = left.iter().zip(right).zip(domains);
    pairs
        .map(|((left, right), domain)| compare(left, right, *domain))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The elements of a row, or the single value.
fn elements(item: &Expr) -> &[Expr] {
    match &item.kind {
        ExprKind::Row(elements) => elements,
        _ => std::slice::from_ref(item),
    }
}

impl Exec<'_> {
    /// The list of an IN, sorted when it is first asked for. `None` if it is short, or its items
    /// are not constant.
    pub(crate) fn value_list(
        &mut self,
        list: &[Expr],
        domains: &[Domain],
    ) -> Result<Option<Arc<ValueList>>> {
        if list.len() < SORTED_MIN {
            return Ok(None);
        }
        // Expressions of a plan stay where they are as long as it runs.
        let number = list.as_ptr() as usize;
        if let Some((_, known)) = self.value_lists.iter().find(|(of, _)| *of == number) {
            return Ok(known.clone());
        }
        let sorted = match list.iter().all(Expr::is_constant) {
            true => Some(Arc::new(self.sorted_list(list, domains)?)),
            false => None,
        };
        self.value_lists.push((number, sorted.clone()));
        Ok(sorted)
    }

    fn sorted_list(&mut self, list: &[Expr], domains: &[Domain]) -> Result<ValueList> {
        let mut rows = Vec::with_capacity(list.len());
        let mut has_nulls = false;
        for item in list {
            let mut row = Vec::with_capacity(domains.len());
            for element in elements(item) {
                row.push(element.eval(self)?);
            }
            match row.iter().any(Value::is_null) {
                true => has_nulls = true,
                false => rows.push(row.into_boxed_slice()),
            }
        }
        rows.sort_by(|a, b| order(a, b, domains));
        Ok(ValueList { rows, has_nulls })
    }
}
