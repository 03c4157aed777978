//! Expressions, computed for each row.

use crate::error::Result;
use crate::executor::Exec;
use crate::expr::{Expr, Slot};
use crate::planner::plan::Node;

use super::{BoxedOperator, Operator, build, project};

pub(super) struct Project<'p> {
    input: BoxedOperator<'p>,
    slot: Slot,
    output: &'p [Expr],
}

impl<'p> Project<'p> {
    pub(super) fn new(input: &'p Node, slot: Slot, output: &'p [Expr]) -> Project<'p> {
        Project {
            input: build(input),
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
