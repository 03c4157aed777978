//! The table of aggregate functions, a row each.

use porpoise_types::{DataType, Value};

use crate::error::Result;
use crate::executor::Exec;
use crate::expr::Expr;
use crate::functions::{Arity, Want};
use crate::planner::plan::Aggregate;

pub struct AggregateFunction {
    pub name: &'static str,
    pub arity: Arity,
    pub wants: &'static [Want],
    /// The result's type and whether it can be NULL, given the converted arguments.
    pub returns: fn(&[Expr]) -> Result<(DataType, bool)>,
    pub start: fn(&Aggregate) -> Box<dyn Accumulator>,
}

impl std::fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The running state of one aggregate in one group.
pub trait Accumulator: Send {
    /// Takes one row's arguments (converted). Rows refused by DISTINCT don't come here.
    fn add(&mut self, exec: &mut Exec<'_>, arguments: &[Value]) -> Result<()>;
    fn finish(&mut self, exec: &mut Exec<'_>) -> Result<Value>;
}

pub fn find(name: &str) -> Option<&'static AggregateFunction> {
    AGGREGATES
        .iter()
        .find(|function| function.name.eq_ignore_ascii_case(name))
}

pub const AGGREGATES: &[AggregateFunction] = &[];
