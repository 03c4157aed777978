//! The rows that pass conditions.

use porpoise_core::error::Result;
use porpoise_expr::Expr;
use porpoise_planner::plan::Node;

use super::{BoxedOperator, Operator, RowOrder, all_true, build_with};
use crate::Exec;

pub(super) struct Filter<'p> {
    input: BoxedOperator<'p>,
    conditions: &'p [Expr],
}

impl<'p> Filter<'p> {
    pub(super) fn new(input: &'p Node, conditions: &'p [Expr], order: RowOrder) -> Filter<'p> {
        Filter {
            input: build_with(input, order),
            conditions,
        }
    }
}

impl Operator for Filter<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        while self.input.next(exec)? {
            if all_true(self.conditions, exec)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
