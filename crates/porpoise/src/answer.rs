//! A statement's answer: rows collected, passed to a closure one by one, or discarded.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use porpoise_engine::reply::{Completion, Reply, ResultColumn};
use porpoise_engine::{Error, Result};
use porpoise_types::{Date, DateTime, Time};

use crate::connection::Outcome;
use crate::rows::{Column, Columns, Row, Rows, Slot};

/// What becomes of rows.
pub(crate) enum Sink<'f> {
    Collect,
    Discard,
    Each(&'f mut dyn FnMut(Row<'_>) -> Result<()>),
}

pub(crate) struct Answer<'f> {
    /// The rows collected, or the one under way.
    rows: Rows,
    sink: Sink<'f>,
    /// There have been rows: an OK behind them is a CALL's, and leaves the last of its results.
    has_rows: bool,
    /// What the closure panicked with, until the statement has ended in order.
    panic: Option<Box<dyn Any + Send>>,
}

impl<'f> Answer<'f> {
    /// An answer whose columns are likely to be those of the last.
    pub fn new(sink: Sink<'f>, columns: Arc<Columns>) -> Answer<'f> {
        Answer {
            rows: Rows::with_columns(columns),
            sink,
            has_rows: false,
            panic: None,
        }
    }

    /// The rows and the outcome. Resumes the closure's panic, if it panicked.
    pub fn finish(self, ran: Result<()>) -> Result<Rows> {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
        ran.map(|()| self.rows)
    }

    /// The rows that follow have these columns.
    pub fn begin(&mut self, columns: Columns) {
        self.rows.clear(Arc::new(columns));
    }

    fn put(&mut self, slot: Slot) {
        self.rows.put(slot);
    }

    fn end(&mut self, completion: &Completion) {
        self.rows.end(Outcome {
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            warnings: completion.warnings,
            message: completion.message.clone(),
        });
    }
}

impl Reply for Answer<'_> {
    fn ok(&mut self, completion: &Completion) -> Result<()> {
        if !self.has_rows {
            self.rows.clear(Arc::default());
        }
        self.end(completion);
        Ok(())
    }

    fn begin_rows(&mut self, columns: &[ResultColumn]) -> Result<()> {
        if self.has_rows || !self.rows.columns().are_of(columns) {
            self.begin(Columns::new(columns.iter().map(Column::of)));
        }
        self.has_rows = true;
        Ok(())
    }

    fn begin_row(&mut self) {}

    fn null(&mut self) {
        self.put(Slot::Null);
    }

    fn int(&mut self, value: i64) {
        self.put(Slot::Int(value));
    }

    fn uint(&mut self, value: u64) {
        self.put(Slot::UInt(value));
    }

    fn float(&mut self, value: f32) {
        self.put(Slot::Float(value));
    }

    fn double(&mut self, value: f64) {
        self.put(Slot::Double(value));
    }

    fn bytes(&mut self, value: &[u8]) {
        let Range { start, end } = self.rows.put_bytes(value);
        self.put(Slot::Bytes { start, end });
    }

    fn date(&mut self, value: Date) {
        self.put(Slot::Date(value));
    }

    fn datetime(&mut self, value: DateTime, _fsp: u8) {
        self.put(Slot::DateTime(value));
    }

    fn time(&mut self, value: Time, _fsp: u8) {
        self.put(Slot::Time(value));
    }

    fn end_row(&mut self) -> Result<()> {
        let told = match &mut self.sink {
            Sink::Collect => {
                self.rows.end_row();
                return Ok(());
            }
            Sink::Discard => Ok(()),
            Sink::Each(each) => {
                let row = self.rows.current_row();
                catch_unwind(AssertUnwindSafe(|| each(row))).unwrap_or_else(|panic| {
                    self.panic = Some(panic);
                    Err(Error::query_interrupted())
                })
            }
        };
        self.rows.forget();
        told
    }

    fn end_rows(&mut self, completion: &Completion) -> Result<()> {
        self.end(completion);
        Ok(())
    }
}
