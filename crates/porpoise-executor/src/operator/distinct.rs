//! DISTINCT.

use porpoise_core::error::Result;
use porpoise_expr::Expr;
use porpoise_planner::plan::{Node, slots_of};
use porpoise_types::KeyBuf;

use super::distinct_rows::DistinctRows;
use super::{BoxedOperator, Operator, RowOrder, build_with, key_of};
use crate::Exec;

pub(super) struct Distinct<'p> {
    node: &'p Node,
    input: BoxedOperator<'p>,
    keys: &'p [Expr],
    rows: DistinctRows,
    /// The input has no more rows.
    is_read: bool,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [Expr], order: RowOrder) -> Distinct<'p> {
        Distinct {
            node: input,
            input: build_with(input, order),
            keys,
            rows: DistinctRows::new(order),
            is_read: false,
        }
    }
}

impl Operator for Distinct<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.is_read = false;
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let mut key = KeyBuf::new();
        while !self.is_read {
            if !self.input.next(exec)? {
                self.is_read = true;
                break;
            }
            key_of(exec, self.keys.iter().map(|expr| (expr, false)), &mut key)?;
            if self.rows.is_new(exec, &key, || slots_of(self.node))? {
                return Ok(true);
            }
        }
        self.rows.next_aside(exec)
    }
}
