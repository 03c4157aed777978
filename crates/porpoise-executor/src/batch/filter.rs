//! The conditions of a scan, for a batch of rows.

use porpoise_core::error::Result;
use porpoise_expr::{Expr, SlotId};
use porpoise_types::RowLayout;

use super::condition::Condition;
use super::evaluator::Evaluator;
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

    /// Whether there are no conditions.
    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The same without what it borrows of the plan, for another thread; `None` where the row
    /// evaluator computes a part. Nothing is charged for it.
    pub(crate) fn detached(&self) -> Option<Filter<'static>> {
        let conditions = self.conditions.iter();
        let conditions = conditions.map(|(program, condition)| {
            let condition = condition.detached()?;
            Some((program.detached()?, condition))
        });
        Some(Filter {
            conditions: conditions.collect::<Option<_>>()?,
        })
    }

    /// What the vectors of a batch take at most, in bytes.
    pub(super) fn vectors_bytes(&self) -> usize {
        let programs = self.conditions.iter().map(|(program, _)| program);
        programs.map(Program::vectors_bytes).sum()
    }

    /// Leaves the rows that pass, and their numbers. `false`: something is out of the ordinary, and
    /// nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn run(
        &self,
        by: &mut dyn Evaluator,
        layout: &RowLayout,
        rows: &mut Vec<&[u8]>,
        numbers: &mut Vec<u32>,
    ) -> Result<bool> {
        for (program, condition) in &self.conditions {
            if rows.is_empty() {
                break;
            }
            let truths = match program.run(by, layout, rows)? {
                Some(vectors) => condition.truths(by, program, layout, rows, &vectors, None)?,
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
