//! What loops can't do for a batch, and who does it.

use porpoise_core::error::{Error, Result};
use porpoise_expr::{EvalContext, Expr, SlotId};
use porpoise_types::Value;

use super::{load_row, silently};
use crate::Exec;
use crate::condition::truth;
use crate::eval::Evaluate;

/// Computes expressions that no loop is for, row by row, and tells when the statement is to end.
pub(crate) trait Evaluator {
    /// Fails if the statement is to end.
    ///
    /// # Errors
    /// 1317.
    fn check_interrupt(&self) -> Result<()>;

    /// Goes to a row.
    fn load(&mut self, slot: SlotId, row: &[u8]);

    /// An expression's value for this row; `None`, and nothing has happened, if that isn't plain.
    fn value(&mut self, expr: &Expr) -> Option<Value>;

    /// As [`value`](Evaluator::value), of a condition.
    fn truth(&mut self, condition: &Expr) -> Option<Option<bool>>;
}

impl Evaluator for Exec<'_> {
    fn check_interrupt(&self) -> Result<()> {
        EvalContext::check_interrupt(self)
    }

    fn load(&mut self, slot: SlotId, row: &[u8]) {
        load_row(self, slot, row);
    }

    fn value(&mut self, expr: &Expr) -> Option<Value> {
        silently(self, |exec| expr.eval(exec))
    }

    fn truth(&mut self, condition: &Expr) -> Option<Option<bool>> {
        silently(self, |exec| truth(condition, exec))
    }
}

/// Of a thread that has nothing of the session: it computes by loops only.
pub(crate) struct LoopsOnly<F>(pub F);

impl<F: Fn() -> bool> Evaluator for LoopsOnly<F> {
    fn check_interrupt(&self) -> Result<()> {
        match (self.0)() {
            true => Err(Error::query_interrupted()),
            false => Ok(()),
        }
    }

    fn load(&mut self, _: SlotId, _: &[u8]) {}

    fn value(&mut self, _: &Expr) -> Option<Value> {
        None
    }

    fn truth(&mut self, _: &Expr) -> Option<Option<bool>> {
        None
    }
}
