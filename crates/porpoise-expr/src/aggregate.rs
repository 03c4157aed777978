//! What an aggregate function is, a call of one, and its running state in one group.

use porpoise_core::error::Result;
use porpoise_types::vector::{Kind, VectorSlice};
use porpoise_types::{DataType, Value};

use super::function::{ArgumentKind, Arity};
use super::{EvalContext, Expr};

#[derive(Clone, Debug)]
/// What rows are sorted by.
pub struct SortKey {
    /// The value that rows are compared by.
    pub expr: Expr,
    /// Whether the greatest comes first.
    pub descending: bool,
}

#[derive(Clone, Debug)]
/// A call of an aggregate function.
pub struct Aggregate {
    /// Which function is called.
    pub function: &'static AggregateFunction,
    /// In a finished plan those of `order` follow, so that both are computed for each row.
    pub arguments: Vec<Expr>,
    /// Whether equal arguments are added once.
    pub distinct: bool,
    /// GROUP_CONCAT's ORDER BY and SEPARATOR.
    pub order: Vec<SortKey>,
    /// `None` outside of GROUP_CONCAT, and where it has its default, a comma.
    pub separator: Option<String>,
    /// The type of the result.
    pub ty: DataType,
    /// Whether the result can be NULL.
    pub nullable: bool,
}

/// A row of the table of aggregate functions.
pub struct AggregateFunction {
    /// In capitals, as the manual spells it.
    pub name: &'static str,
    /// How many arguments it takes.
    pub arity: Arity,
    /// What the arguments are converted to; the last entry stands for all further ones.
    pub argument_kinds: &'static [ArgumentKind],
    /// The result's type and whether it can be NULL, given the converted arguments.
    pub returns: fn(&[Expr]) -> Result<(DataType, bool)>,
    /// Makes the state of a group that has no rows yet.
    pub start: fn(&Aggregate) -> Box<dyn Accumulator>,
    /// The result depends on the order in which rows come.
    pub ordered: bool,
    /// It keeps of each row what it is given: a group grows with its rows.
    pub collects: bool,
    /// Adding a row neither fails nor warns, but for a sum of too many digits: rows may be added many
    /// at a time, those of one aggregate before those of the next.
    pub is_silent: bool,
}

impl std::fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What the arguments of some rows add up to.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    /// What the sum is.
    pub kind: Kind,
    /// Of those that are not NULL; of no meaning where they were only counted.
    pub sum: i128,
    /// How many of them are not NULL.
    pub count: u64,
}

/// The running state of one aggregate in one group.
pub trait Accumulator: Send {
    /// Takes one row's arguments (converted). Rows refused by DISTINCT don't come here.
    fn add(&mut self, context: &mut dyn EvalContext, arguments: &[Value]) -> Result<()>;
    /// Takes the only arguments of several rows, in their order, as if they came one by one. `false`
    /// if it can't: it has taken none of them then.
    ///
    /// # Errors
    /// As [`add`](Accumulator::add).
    fn add_vector(&mut self, arguments: VectorSlice<'_>) -> Result<bool> {
        let _ = arguments;
        Ok(false)
    }
    /// Takes the only arguments of several rows that somebody has added up, all exact numbers or NULL,
    /// or counted. `false` if it can't: it has taken none of them then.
    ///
    /// # Errors
    /// As [`add`](Accumulator::add).
    fn add_total(&mut self, total: Total) -> Result<bool> {
        let _ = total;
        Ok(false)
    }
    /// The aggregate of what was taken so far; more rows may follow.
    fn finish(&mut self, context: &mut dyn EvalContext) -> Result<Value>;
}
