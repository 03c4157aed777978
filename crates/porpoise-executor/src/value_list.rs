//! The sorted lists of a statement's IN conditions.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::value_list::{SORTED_MIN, ValueList, elements};
use porpoise_expr::{Domain, Expr};
use porpoise_types::Value;

use crate::Exec;
use crate::eval::Evaluate;

/// Lists as long as this are sorted if they are asked for often.
const ASKED_OFTEN_MIN: usize = 4;
const OFTEN: u32 = 16;

/// The IN lists of a statement that were looked at.
#[derive(Default)]
pub(crate) struct ValueLists {
    /// Each with where in the plan it lies.
    lists: Vec<(usize, ListUse)>,
    charge: Charge,
    /// What is computed may have to be computed again, as if it had not been: nothing is noted that
    /// anybody would miss then.
    is_frozen: bool,
}

/// What is known of a list.
enum ListUse {
    /// It was gone through so many times.
    GoneThrough(u32),
    /// Sorted; `None`: its items are not constant.
    Known(Option<Arc<ValueList>>),
}

impl Exec<'_> {
    /// The list of an IN, sorted when it is first asked for, a short one when it was asked for
    /// often. `None` if it isn't, or its items are not constant.
    pub(crate) fn value_list(
        &mut self,
        list: &[Expr],
        domains: &[Domain],
    ) -> Result<Option<Arc<ValueList>>> {
        if list.len() < ASKED_OFTEN_MIN {
            return Ok(None);
        }
        // Expressions of a plan stay where they are as long as it runs.
        let number = list.as_ptr() as usize;
        let ValueLists {
            lists, is_frozen, ..
        } = &mut self.kept().value_lists;
        let is_frozen = *is_frozen;
        let at = lists.iter().position(|(of, _)| *of == number);
        let at = at.unwrap_or_else(|| {
            lists.push((number, ListUse::GoneThrough(0)));
            lists.len() - 1
        });
        match &mut lists[at].1 {
            ListUse::Known(known) => return Ok(known.clone()),
            // Of a batch there are many rows.
            ListUse::GoneThrough(_) if is_frozen => {}
            ListUse::GoneThrough(times) if list.len() < SORTED_MIN && *times < OFTEN => {
                *times += 1;
                return Ok(None);
            }
            ListUse::GoneThrough(_) => {}
        }
        let warnings = self.session.vars.warnings_total;
        let sorted = match list.iter().all(Expr::is_constant) {
            true => Some(Arc::new(self.sorted_list(list, domains)?)),
            false => None,
        };
        // If it may have to be sorted again, it has to warn again.
        if !is_frozen || self.session.vars.warnings_total == warnings {
            self.kept().value_lists.lists[at].1 = ListUse::Known(sorted.clone());
        }
        Ok(sorted)
    }

    /// Notes nothing of lists that warn from here on, or notes it again; what was so before.
    pub(crate) fn freeze_value_lists(&mut self, is_frozen: bool) -> bool {
        std::mem::replace(&mut self.kept().value_lists.is_frozen, is_frozen)
    }

    fn sorted_list(&mut self, list: &[Expr], domains: &[Domain]) -> Result<ValueList> {
        let mut rows = Vec::with_capacity(list.len());
        for item in list {
            let mut row = Vec::with_capacity(domains.len());
            for element in elements(item) {
                row.push(element.eval(self)?);
            }
            let values = row.iter().map(|v| size_of_val(v) + v.heap_bytes());
            let bytes = values.sum::<usize>() + size_of::<Box<[Value]>>();
            let charge = &mut self.kept.get_or_insert_default().value_lists.charge;
            charge.add(&self.session.memory, bytes)?;
            rows.push(row.into_boxed_slice());
        }
        Ok(ValueList::new(rows, domains))
    }
}
