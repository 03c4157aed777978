//! A derived table's rows, made once for the statement and read as often as it is asked for.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;

use super::{Operator, build, project, replay};
use crate::Exec;
use crate::row_buffer::{RowBuffer, RowReader};

pub(super) struct Materialized<'p> {
    slot: SlotId,
    input: &'p Node,
    output: &'p [Expr],
    number: usize,
    rows: Arc<RowBuffer>,
    reader: RowReader,
}

impl<'p> Materialized<'p> {
    pub(super) fn new(
        slot: SlotId,
        input: &'p Node,
        output: &'p [Expr],
        number: usize,
    ) -> Materialized<'p> {
        Materialized {
            slot,
            input,
            output,
            number,
            rows: Arc::default(),
            reader: RowReader::default(),
        }
    }
}

impl Operator for Materialized<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.reader = RowReader::default();
        if let Some(rows) = exec.kept().materialized.get(&self.number) {
            self.rows = rows.clone();
            return Ok(());
        }
        let mut rows = RowBuffer::default();
        let mut input = build(self.input);
        input.open(exec)?;
        while input.next(exec)? {
            project(exec, self.slot, self.output)?;
            rows.put_aside(exec, &[self.slot])?;
        }
        rows.finish()?;
        self.rows = Arc::new(rows);
        exec.kept()
            .materialized
            .insert(self.number, self.rows.clone());
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.reader, exec, &[self.slot])
    }
}
