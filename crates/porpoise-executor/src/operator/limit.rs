//! LIMIT and OFFSET.

use porpoise_core::error::Result;
use porpoise_expr::{Expr, ExprKind};
use porpoise_planner::plan::Node;
use porpoise_types::{Value, convert};

use super::{BoxedOperator, Operator, RowOrder, build_with};
use crate::Exec;
use crate::eval::Evaluate;

pub(super) struct Limit<'p> {
    input: BoxedOperator<'p>,
    offset: Option<&'p Expr>,
    count: Option<&'p Expr>,
    left: u64,
}

impl<'p> Limit<'p> {
    pub(super) fn new(
        input: &'p Node,
        offset: Option<&'p Expr>,
        count: Option<&'p Expr>,
        order: RowOrder,
    ) -> Limit<'p> {
        Limit {
            input: build_with(input, order),
            offset,
            count,
            left: 0,
        }
    }
}

/// The value of a LIMIT or OFFSET. A parameter may be bound as a text that holds a whole number, as
/// PHP's PDO and others do it; since 8.0.22 MySQL takes these, and no fractions or floating-point
/// numbers. A program's variable is an integer of whatever value: NULL is none, and what is below
/// zero wraps around, as in MySQL.
pub fn count_of(exec: &mut Exec<'_>, expr: &Expr) -> Result<u64> {
    let value = expr.eval(exec)?;
    if let ExprKind::Variable(_) = expr.kind {
        return Ok(match value {
            Value::UInt(count) => count,
            value => convert::to_int(&value).0.cast_unsigned(),
        });
    }
    let count = match value {
        Value::Int(count) => u64::try_from(count).ok(),
        Value::UInt(count) => Some(count),
        Value::Text(text) => text.trim_ascii().parse().ok(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes.trim_ascii())
            .ok()
            .and_then(|text| text.parse().ok()),
        _ => None,
    };
    count.ok_or_else(|| crate::Error::wrong_arguments("mysqld_stmt_execute"))
}

impl Operator for Limit<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.left = match self.count {
            Some(count) => count_of(exec, count)?,
            None => u64::MAX,
        };
        let mut skip = match self.offset {
            Some(offset) => count_of(exec, offset)?,
            None => 0,
        };
        if self.left == 0 {
            return Ok(());
        }
        self.input.open(exec)?;
        while skip > 0 {
            if !self.input.next(exec)? {
                self.left = 0;
                break;
            }
            skip -= 1;
        }
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.left == 0 || !self.input.next(exec)? {
            return Ok(false);
        }
        self.left -= 1;
        Ok(true)
    }
}
