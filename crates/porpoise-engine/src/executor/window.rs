//! Window functions: reads a partition at a time, computes each function for each of its rows.

use crate::error::{Error, Result};
use crate::executor::Exec;
use crate::executor::operator::Operator;
use crate::planner::plan::Window;

pub struct WindowOperator;

impl WindowOperator {
    pub fn new(_: &Window) -> WindowOperator {
        WindowOperator
    }
}

impl Operator for WindowOperator {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        Err(Error::not_supported_yet("window functions"))
    }

    fn next(&mut self, _: &mut Exec<'_>) -> Result<bool> {
        Ok(false)
    }
}
