//! Rows that need no table: one without columns, none, and those that VALUES lists.

use porpoise_core::error::Result;
use porpoise_expr::{EvalContext, Expr, SlotId};

use super::{Operator, project};
use crate::Exec;

pub(super) struct One {
    done: bool,
}

impl One {
    pub(super) fn new() -> One {
        One { done: true }
    }
}

impl Operator for One {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        self.done = false;
        Ok(())
    }

    fn next(&mut self, _: &mut Exec<'_>) -> Result<bool> {
        Ok(!std::mem::replace(&mut self.done, true))
    }
}

pub(super) struct Empty;

impl Operator for Empty {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, _: &mut Exec<'_>) -> Result<bool> {
        Ok(false)
    }
}

pub(super) struct Values<'p> {
    slot: SlotId,
    rows: &'p [Vec<Expr>],
    at: usize,
}

impl<'p> Values<'p> {
    pub(super) fn new(slot: SlotId, rows: &'p [Vec<Expr>]) -> Values<'p> {
        Values { slot, rows, at: 0 }
    }
}

impl Operator for Values<'_> {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(row) = self.rows.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        exec.check_interrupt()?;
        project(exec, self.slot, row)?;
        Ok(true)
    }
}
