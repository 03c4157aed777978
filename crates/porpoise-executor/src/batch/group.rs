//! What a grouping needs of a batch of rows: keys, and the arguments of aggregates.

use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_expr::aggregate::{Accumulator, Aggregate};
use porpoise_expr::{Expr, SlotId};
use porpoise_types::RowLayout;
use porpoise_types::vector::{ElementSlice, Kind, VectorSlice};

use super::ROWS_MAX;
use super::evaluator::Evaluator;
use super::keys::KeyProgram;
use super::program::{Program, Register, Vectors};
use crate::Exec;

/// What a grouping computes of a batch.
pub(crate) struct GroupProgram<'p> {
    keys: KeyProgram<'p>,
    arguments: Program<'p>,
    /// Each aggregate's argument; `None` for one that takes none.
    argument_registers: Vec<Option<Register>>,
}

/// The arguments of aggregates for some rows.
pub(crate) struct Arguments<'r>(Vectors<'r>);

/// What an aggregate without arguments gets.
pub(super) const NOTHING: [i64; ROWS_MAX] = [0; ROWS_MAX];

impl<'p> GroupProgram<'p> {
    /// `None` where something can't be computed in batches, nothing is gained by it, or the vectors
    /// are more than the statement may have.
    pub(crate) fn new(
        exec: &mut Exec<'_>,
        slot: SlotId,
        keys: &'p [Expr],
        aggregates: &'p [Aggregate],
    ) -> Option<GroupProgram<'p>> {
        let mut program = GroupProgram {
            keys: KeyProgram::compile(exec, slot, keys)?,
            arguments: Program::new(slot),
            argument_registers: Vec::with_capacity(aggregates.len()),
        };
        for aggregate in aggregates {
            if !aggregate.function.is_silent {
                return None;
            }
            let register = match &aggregate.arguments[..] {
                [] => None,
                [argument] if aggregate.function.name == "COUNT" && !aggregate.distinct => {
                    Some(program.arguments.add_nulls(exec, argument)?)
                }
                [argument] => Some(program.arguments.add(exec, argument)?),
                _ => return None,
            };
            program.argument_registers.push(register);
        }
        let counts_only = program.argument_registers.iter().all(Option::is_none);
        let has_loops = program.keys.has_loops() || program.arguments.has_loops() || counts_only;
        let is_charged = has_loops && program.keys.charge(exec) && program.arguments.charge(exec);
        is_charged.then_some(program)
    }

    /// The keys' program and their registers, and those of the aggregates' arguments, without what they
    /// borrow of the plan; `None` where the row evaluator computes a part.
    pub(super) fn detached(
        &self,
    ) -> Option<(
        (Program<'static>, Vec<Register>),
        Program<'static>,
        Vec<Option<Register>>,
    )> {
        let (keys, arguments) = (self.keys.detached()?, self.arguments.detached()?);
        Some((keys, arguments, self.argument_registers.clone()))
    }

    /// What makes the keys.
    pub(crate) fn keys(&self) -> &KeyProgram<'p> {
        &self.keys
    }

    /// The aggregates' arguments; `None`: something is out of the ordinary, and nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn arguments<'r>(
        &self,
        by: &mut dyn Evaluator,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Arguments<'r>>> {
        let registers = self.argument_registers.iter().flatten().copied();
        let vectors = self.arguments.outputs(registers, by, layout, rows)?;
        Ok(vectors.map(Arguments))
    }

    /// The arguments of an aggregate for some of the rows.
    pub(crate) fn argument<'a>(
        &self,
        arguments: &'a Arguments<'_>,
        rows: Range<usize>,
        aggregate: usize,
    ) -> VectorSlice<'a> {
        let register = self.argument_registers[aggregate];
        match register.and_then(|register| arguments.0.vector(register)) {
            Some(vector) => vector.slice(rows),
            None => VectorSlice {
                kind: Kind::Int,
                elements: ElementSlice::Integers(&NOTHING[rows]),
                nulls: &[],
            },
        }
    }

    /// Gives some of the rows to an aggregate.
    ///
    /// # Errors
    /// Those of [`Accumulator::add`].
    pub(crate) fn add(
        &self,
        exec: &mut Exec<'_>,
        arguments: &Arguments<'_>,
        rows: Range<usize>,
        aggregate: usize,
        accumulator: &mut dyn Accumulator,
    ) -> Result<()> {
        let slice = self.argument(arguments, rows, aggregate);
        if accumulator.add_vector(slice)? {
            return Ok(());
        }
        for row in 0..slice.len() {
            accumulator.add(exec, &[slice.value(row)])?;
        }
        Ok(())
    }
}

/// Puts rows of one group side by side, each group's in the order that they came in.
///
/// ```text
/// groups    4 4 7 4 2 7          rows, in order       groups
/// rows      a b c d e f    ──►   a b d c f e          4: 0..3   7: 3..5   2: 5..6
/// ```
#[derive(Default)]
pub(crate) struct Partition {
    /// By group, how many of its rows came, and then where the next one goes.
    places: Vec<u32>,
    /// The groups that rows came of.
    groups: Vec<u32>,
}

impl Partition {
    /// Puts rows in order, each of which belongs to a group. What comes is which group's rows are
    /// where.
    pub(crate) fn sort(
        &mut self,
        rows: &mut Vec<&[u8]>,
        groups_of: &[u32],
    ) -> Vec<(usize, Range<usize>)> {
        self.groups.clear();
        for group in groups_of {
            let group = *group as usize;
            if self.places.len() <= group {
                self.places.resize(group + 1, 0);
            }
            if self.places[group] == 0 {
                self.groups.push(group as u32);
            }
            self.places[group] += 1;
        }
        let mut runs = Vec::with_capacity(self.groups.len());
        let mut begin = 0;
        for group in &self.groups {
            let place = &mut self.places[*group as usize];
            let end = begin + *place as usize;
            runs.push((*group as usize, begin..end));
            *place = begin as u32;
            begin = end;
        }
        if self.groups.len() > 1 {
            let mut sorted: Vec<&[u8]> = vec![&[]; rows.len()];
            for (row, group) in rows.iter().zip(groups_of) {
                let place = &mut self.places[*group as usize];
                sorted[*place as usize] = row;
                *place += 1;
            }
            *rows = sorted;
        }
        for group in &self.groups {
            self.places[*group as usize] = 0;
        }
        runs
    }
}
