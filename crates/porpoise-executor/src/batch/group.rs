//! The keys of groups and the arguments of aggregates, for a batch of rows.

use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_expr::aggregate::{Accumulator, Aggregate};
use porpoise_expr::{Expr, SlotId};
use porpoise_types::vector::{ElementSlice, Kind, VectorSlice};
use porpoise_types::{KeyBuf, RowLayout};

use super::ROWS_MAX;
use super::program::{Program, Register, Vectors};
use crate::Exec;
use crate::eval::append_key;

/// What a grouping computes of a batch.
pub(crate) struct GroupProgram<'p> {
    keys: Program<'p>,
    /// Each key's expression, and its vector.
    key_registers: Vec<(&'p Expr, Register)>,
    arguments: Program<'p>,
    /// Each aggregate's argument; `None` for one that takes none.
    argument_registers: Vec<Option<Register>>,
}

/// The arguments of aggregates for some rows.
pub(crate) struct Arguments<'r>(Vectors<'r>);

/// The keys of groups for some rows.
pub(crate) struct Keys<'r>(Vectors<'r>);

/// What an aggregate without arguments gets.
const NOTHING: [i64; ROWS_MAX] = [0; ROWS_MAX];

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
            keys: Program::new(slot),
            key_registers: Vec::with_capacity(keys.len()),
            arguments: Program::new(slot),
            argument_registers: Vec::with_capacity(aggregates.len()),
        };
        for key in keys {
            let register = program.keys.add(exec, key)?;
            program.key_registers.push((key, register));
        }
        for aggregate in aggregates {
            if aggregate.distinct || !aggregate.function.is_silent {
                return None;
            }
            let register = match &aggregate.arguments[..] {
                [] => None,
                [argument] if aggregate.function.name == "COUNT" => {
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

    /// The rows' keys; `None`: something is out of the ordinary, and nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn keys<'r>(
        &self,
        exec: &mut Exec<'_>,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Keys<'r>>> {
        let registers = self.key_registers.iter().map(|(_, register)| *register);
        let vectors = outputs(&self.keys, registers, exec, layout, rows)?;
        Ok(vectors.map(Keys))
    }

    /// As [`keys`](Self::keys), the aggregates' arguments.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn arguments<'r>(
        &self,
        exec: &mut Exec<'_>,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Arguments<'r>>> {
        let registers = self.argument_registers.iter().flatten().copied();
        let vectors = outputs(&self.arguments, registers, exec, layout, rows)?;
        Ok(vectors.map(Arguments))
    }

    /// Replaces `out` by bytes that are the same for two rows only if their keys are: rows of one
    /// group may have different ones.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn key_bytes(
        &self,
        exec: &mut Exec<'_>,
        keys: &Keys<'_>,
        row: usize,
        out: &mut KeyBuf,
    ) -> Result<()> {
        out.clear();
        for (expr, register) in &self.key_registers {
            let Some(vector) = keys.0.vector(*register) else {
                continue;
            };
            let slice = vector.slice(row..row + 1);
            let is_null = slice.is_null(0);
            out.push(u8::from(is_null));
            if is_null {
                continue;
            }
            match slice.elements {
                ElementSlice::Integers(v) => out.extend_from_slice(&v[0].to_le_bytes()),
                ElementSlice::Doubles(v) => out.extend_from_slice(&v[0].to_le_bytes()),
                ElementSlice::Texts(v) => {
                    out.extend_from_slice(&(v[0].len() as u32).to_le_bytes());
                    out.extend_from_slice(v[0]);
                }
                ElementSlice::Values(v) => append_key(exec, &v[0], &expr.ty, false, out)?,
            }
        }
        Ok(())
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
        let register = self.argument_registers[aggregate];
        let slice = match register.and_then(|register| arguments.0.vector(register)) {
            Some(vector) => vector.slice(rows),
            None => VectorSlice {
                kind: Kind::Int,
                elements: ElementSlice::Integers(&NOTHING[rows]),
                nulls: &[],
            },
        };
        if accumulator.add_vector(slice)? {
            return Ok(());
        }
        for row in 0..slice.len() {
            accumulator.add(exec, &[slice.value(row)])?;
        }
        Ok(())
    }
}

/// Runs a program, and has the constants among its results as vectors.
fn outputs<'r>(
    program: &Program<'_>,
    registers: impl Iterator<Item = Register>,
    exec: &mut Exec<'_>,
    layout: &'r RowLayout,
    rows: &[&'r [u8]],
) -> Result<Option<Vectors<'r>>> {
    let Some(mut vectors) = program.run(exec, layout, rows)? else {
        return Ok(None);
    };
    for register in registers {
        if program.output(&mut vectors, register).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(vectors))
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
