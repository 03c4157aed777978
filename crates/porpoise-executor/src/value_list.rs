//! The sorted lists of a statement's IN conditions.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::value_list::{SORTED_MIN, ValueList, elements};
use porpoise_expr::{Domain, Expr};

use crate::Exec;
use crate::eval::Evaluate;

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
        for item in list {
            let mut row = Vec::with_capacity(domains.len());
            for element in elements(item) {
                row.push(element.eval(self)?);
            }
            rows.push(row.into_boxed_slice());
        }
        Ok(ValueList::new(rows, domains))
    }
}
