//! The conditions of a scan, for a batch of rows.

use porpoise_core::error::Result;
use porpoise_expr::{Expr, SlotId};

use super::condition::Condition;
use super::is_repeatable;
use super::kernels::Truth;
use super::program::Program;
use crate::Exec;

/// Conditions that all have to be true, one after the other, each for the rows that have passed those
/// before it.
pub(crate) struct Filter<'p> {
    conditions: Vec<(Program<'p>, Condition<'p>)>,
}

impl<'p> Filter<'p> {
    /// `None` where a condition can't be computed in batches, or their vectors are more than the
    /// statement may have.
    pub(crate) fn new(
        exec: &mut Exec<'_>,
        slot: SlotId,
        conditions: &'p [Expr],
    ) -> Option<Filter<'p>> {
        if !conditions.iter().all(is_repeatable) {
            return None;
        }
        let compile = |condition: &'p Expr| {
            let mut program = Program::new(slot);
            let condition = Condition::compile(&mut program, exec, condition);
            (program, condition)
        };
        let mut conditions: Vec<_> = conditions.iter().map(compile).collect();
        let mut programs = conditions.iter_mut();
        let are_charged = programs.all(|(program, _)| program.charge(exec));
        are_charged.then_some(Filter { conditions })
    }

    /// Whether loops compute a part of it: otherwise rows are better gone through one by one.
    pub(crate) fn has_loops(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|(_, condition)| condition.has_loops())
    }

    /// Leaves the rows that pass, and their numbers. `false`: something is out of the ordinary, and
    /// nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn run(
        &self,
        exec: &mut Exec<'_>,
        rows: &mut Vec<&[u8]>,
        numbers: &mut Vec<u32>,
    ) -> Result<bool> {
        let layouts = exec.layouts;
        for (program, condition) in &self.conditions {
            if rows.is_empty() {
                break;
            }
            let layout = &*layouts[program.slot.0 as usize].layout;
            let truths = match program.run(exec, layout, rows)? {
                Some(vectors) => condition.truths(exec, program, layout, rows, &vectors, None)?,
                None => None,
            };
            let Some(truths) = truths else {
                return Ok(false);
            };
            let mut passes = truths.iter().map(|truth| *truth == Truth::Yes);
            rows.retain(|_| passes.next() == Some(true));
            let mut passes = truths.iter().map(|truth| *truth == Truth::Yes);
            numbers.retain(|_| passes.next() == Some(true));
        }
        Ok(true)
    }
}
