//! Expressions, computed for each row.

use porpoise_core::error::Result;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;

use super::{BoxedOperator, Operator, RowOrder, build_with, project};
use crate::Exec;

pub(super) struct Project<'p> {
    input: BoxedOperator<'p>,
    slot: SlotId,
    output: &'p [Expr],
}

impl<'p> Project<'p> {
    pub(super) fn new(
        input: &'p Node,
        slot: SlotId,
        output: &'p [Expr],
        order: RowOrder,
    ) -> Project<'p> {
        Project {
            input: build_with(input, order),
            slot,
            output,
        }
    }
}

impl Operator for Project<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if !self.input.next(exec)? {
            return Ok(false);
        }
        project(exec, self.slot, self.output)?;
        Ok(true)
    }
}
