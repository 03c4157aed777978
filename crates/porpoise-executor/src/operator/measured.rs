//! EXPLAIN ANALYZE: what an operator does, counted and timed.

use std::time::Instant;

use porpoise_core::error::{Error, Result};
use porpoise_expr::SlotId;
use porpoise_planner::plan::{Measure, Node};
use porpoise_storage::Rows;

use super::{BoxedOperator, Operator, RowOrder, build_with};
use crate::Exec;
use crate::batch::{Batch, Filter, RawRows, RowOf};

pub struct Measured<'p> {
    input: BoxedOperator<'p>,
    number: usize,
    /// No row was asked for since it was opened.
    is_new: bool,
}

impl<'p> Measured<'p> {
    pub fn new(input: &'p Node, number: usize, order: RowOrder) -> Measured<'p> {
        Measured {
            input: build_with(input, order),
            number,
            is_new: false,
        }
    }
}

/// Adds to the figures, also where the operator failed.
fn note(number: usize, exec: &mut Exec<'_>, since: Instant, note: impl FnOnce(&mut Measure, u64)) {
    let spent_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let measures = &mut exec.kept().measures;
    if measures.len() <= number {
        measures.resize(number + 1, Measure::default());
    }
    let measure = &mut measures[number];
    measure.total_ns += spent_ns;
    note(measure, spent_ns);
}

impl Operator for Measured<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let begun = Instant::now();
        let opened = self.input.open(exec);
        self.is_new = true;
        note(self.number, exec, begun, |measure, spent_ns| {
            measure.loops += 1;
            measure.first_row_ns += spent_ns;
        });
        opened
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let begun = Instant::now();
        let found = self.input.next(exec);
        let is_first = std::mem::take(&mut self.is_new);
        let is_row = matches!(found, Ok(true));
        note(self.number, exec, begun, |measure, spent_ns| {
            measure.rows += u64::from(is_row);
            if is_first {
                measure.first_row_ns += spent_ns;
            }
        });
        found
    }

    fn has_batches(&self) -> bool {
        self.input.has_batches()
    }

    fn next_batch<'s>(&'s mut self, exec: &mut Exec<'_>) -> Result<Option<Batch<'s>>> {
        let begun = Instant::now();
        let number = self.number;
        let found = self.input.next_batch(exec);
        let rows = match &found {
            Ok(Some(batch)) => batch.rows.len() as u64,
            Ok(None) | Err(_) => 0,
        };
        let is_first = rows > 0 && std::mem::take(&mut self.is_new);
        note(number, exec, begun, |measure, spent_ns| {
            measure.rows += rows;
            if is_first {
                measure.first_row_ns += spent_ns;
            }
        });
        found
    }

    fn raw_rows(&mut self) -> Option<&mut dyn RawRows> {
        match self.input.raw_rows().is_some() {
            true => Some(self),
            false => None,
        }
    }

    fn load_of_batch(&mut self, exec: &mut Exec<'_>, place: usize) {
        self.input.load_of_batch(exec, place);
    }
}

/// What its input's rows are measured by: [`Operator::raw_rows`] has asked whether there are some.
impl RawRows for Measured<'_> {
    fn is_large(&mut self, exec: &mut Exec<'_>) -> bool {
        let rows = self.input.raw_rows();
        rows.is_some_and(|rows| rows.is_large(exec))
    }

    fn raw(&mut self, exec: &mut Exec<'_>) -> Option<(SlotId, Filter<'static>, RowOf)> {
        self.input.raw_rows()?.raw(exec)
    }

    fn next_raw(&mut self, exec: &mut Exec<'_>, rows: &mut Rows) -> Result<bool> {
        let begun = Instant::now();
        let found = match self.input.raw_rows() {
            Some(input) => input.next_raw(exec, rows),
            None => Ok(false),
        };
        let is_first = matches!(found, Ok(true)) && std::mem::take(&mut self.is_new);
        note(self.number, exec, begun, |measure, spent_ns| {
            if is_first {
                measure.first_row_ns += spent_ns;
            }
        });
        found
    }

    fn count_raw(&mut self, exec: &mut Exec<'_>, examined: usize, passed: usize) {
        if let Some(input) = self.input.raw_rows() {
            input.count_raw(exec, examined, passed);
        }
        note(self.number, exec, Instant::now(), |measure, _| {
            measure.rows += passed as u64;
        });
    }

    fn put_back(&mut self, rows: Vec<Rows>) {
        if let Some(input) = self.input.raw_rows() {
            input.put_back(rows);
        }
    }

    fn has_put_back(&mut self) -> bool {
        let rows = self.input.raw_rows();
        rows.is_some_and(|rows| rows.has_put_back())
    }

    fn end_raw(&mut self, error: Option<Error>) {
        if let Some(input) = self.input.raw_rows() {
            input.end_raw(error);
        }
    }
}
