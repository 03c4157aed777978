//! What a scan has whoever has time do with a unit's rows: look at its conditions.

use std::sync::Arc;

use porpoise_storage::Rows;
use porpoise_types::RowLayout;

use super::evaluator::LoopsOnly;
use super::filter::Filter;
use super::units::Work;
use super::{RawRows, RowOf, UNIT_ROWS_MAX};
use crate::Exec;

/// The conditions of a scan, for units of its rows.
pub(crate) struct FilterWork {
    layout: Arc<RowLayout>,
    row_of: RowOf,
    filter: Filter<'static>,
}

impl FilterWork {
    /// `None` where there are no conditions, or the row evaluator has to compute something.
    pub(crate) fn new(exec: &mut Exec<'_>, scan: &mut dyn RawRows) -> Option<FilterWork> {
        let (slot, filter, row_of) = scan.raw(exec)?;
        (!filter.is_empty()).then(|| FilterWork {
            layout: Arc::clone(&exec.layouts[slot.0 as usize].layout),
            row_of,
            filter,
        })
    }
}

impl Work for FilterWork {
    /// Of each batch, the numbers of the rows that pass.
    type Computed = Vec<Vec<u32>>;

    fn compute(&self, unit: &[Rows], is_over: &dyn Fn() -> bool) -> Option<Vec<Vec<u32>>> {
        let mut by = LoopsOnly(is_over);
        let filter = |batch: &Rows| {
            if is_over() {
                return None;
            }
            let mut numbers: Vec<u32> = (0..batch.len() as u32).collect();
            let mut rows = Vec::new();
            batch.append_values(&mut rows);
            if let Some(row_of) = self.row_of {
                rows.iter_mut().for_each(|row| *row = row_of(row));
            }
            let is_plain = self
                .filter
                .run(&mut by, &self.layout, &mut rows, &mut numbers);
            is_plain.ok()?.then_some(numbers)
        };
        unit.iter().map(filter).collect()
    }

    fn vectors_bytes(&self) -> usize {
        self.filter.vectors_bytes()
    }

    fn computed_bytes(&self) -> usize {
        UNIT_ROWS_MAX * size_of::<u32>()
    }
}
