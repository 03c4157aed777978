//! What an aggregate function is, a call of one, and its running state in one group.

use porpoise_core::error::Result;
use porpoise_types::{DataType, Value};

use super::function::{Arity, Want};
use super::{EvalContext, Expr};

#[derive(Clone, Debug)]
/// What rows are sorted by.
pub struct SortKey {
    pub expr: Expr,
    pub descending: bool,
}

#[derive(Clone, Debug)]
/// A call of an aggregate function.
pub struct Aggregate {
    pub function: &'static AggregateFunction,
    /// In a finished plan those of `order` follow, so that both are computed for each row.
    pub arguments: Vec<Expr>,
    pub distinct: bool,
    /// GROUP_CONCAT's ORDER BY and SEPARATOR.
    pub order: Vec<SortKey>,
    pub separator: Option<String>,
    pub ty: DataType,
    pub nullable: bool,
}

pub struct AggregateFunction {
    pub name: &'static str,
    pub arity: Arity,
    pub wants: &'static [Want],
    /// The result's type and whether it can be NULL, given the converted arguments.
    pub returns: fn(&[Expr]) -> Result<(DataType, bool)>,
    pub start: fn(&Aggregate) -> Box<dyn Accumulator>,
    /// The result depends on the order in which rows come.
    pub ordered: bool,
}

impl std::fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The running state of one aggregate in one group.
pub trait Accumulator: Send {
    /// Takes one row's arguments (converted). Rows refused by DISTINCT don't come here.
    fn add(&mut self, context: &mut dyn EvalContext, arguments: &[Value]) -> Result<()>;
    /// The aggregate of what was taken so far; more rows may follow.
    fn finish(&mut self, context: &mut dyn EvalContext) -> Result<Value>;
}
