//! Keys for a batch of rows: those that rows are grouped by, joined on, and put in order by.

use porpoise_core::error::Result;
use porpoise_expr::{Expr, SlotId};
use porpoise_types::vector::{ElementSlice, Elements, Vector, VectorSlice};
use porpoise_types::{DataType, KeyBuf, RowLayout, Value};

use super::evaluator::Evaluator;
use super::program::{Program, Register, Vectors};
use crate::Exec;
use crate::eval::append_key;

/// What makes keys of one or more parts.
pub(crate) struct KeyProgram<'p> {
    program: Program<'p>,
    /// Each part's expression, and its vector.
    parts: Vec<(&'p Expr, Register)>,
}

/// The keys of some rows.
pub(crate) struct Keys<'r>(Vectors<'r>);

impl Keys<'_> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.rows
    }
}

impl<'p> KeyProgram<'p> {
    /// `None` where a part can't be computed in batches.
    pub(super) fn compile(
        exec: &mut Exec<'_>,
        slot: SlotId,
        exprs: impl IntoIterator<Item = &'p Expr>,
    ) -> Option<KeyProgram<'p>> {
        let mut program = Program::new(slot);
        let mut parts = Vec::new();
        for expr in exprs {
            parts.push((expr, program.add(exec, expr)?));
        }
        Some(KeyProgram { program, parts })
    }

    /// `None` where a part can't be computed in batches, nothing is gained by it, or the vectors are
    /// more than the statement may have.
    pub(crate) fn new(
        exec: &mut Exec<'_>,
        slot: SlotId,
        exprs: impl IntoIterator<Item = &'p Expr>,
    ) -> Option<KeyProgram<'p>> {
        let mut keys = KeyProgram::compile(exec, slot, exprs)?;
        (keys.has_loops() && keys.charge(exec)).then_some(keys)
    }

    /// As [`Program::has_loops`].
    pub(super) fn has_loops(&self) -> bool {
        self.program.has_loops()
    }

    /// As [`Program::charge`].
    pub(super) fn charge(&mut self, exec: &Exec<'_>) -> bool {
        self.program.charge(exec)
    }

    /// The rows' keys; `None`: something is out of the ordinary, and nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn run<'r>(
        &self,
        by: &mut dyn Evaluator,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Keys<'r>>> {
        let registers = self.parts.iter().map(|(_, register)| *register);
        let vectors = self.program.outputs(registers, by, layout, rows)?;
        Ok(vectors.map(Keys))
    }

    /// The integers of keys that are one each; `None` where they aren't.
    pub(crate) fn integers<'k>(&self, keys: &'k Keys<'_>) -> Option<(&'k [i64], VectorSlice<'k>)> {
        let [(_, register)] = &self.parts[..] else {
            return None;
        };
        let slice = keys.0.vector(*register)?.slice(0..keys.0.rows);
        match slice.elements {
            ElementSlice::Integers(integers) => Some((integers, slice)),
            _ => None,
        }
    }

    /// A part of the keys, of all rows; `None` where there is no such part.
    pub(super) fn part<'k>(
        &self,
        keys: &'k Keys<'_>,
        part: usize,
    ) -> Option<(VectorSlice<'k>, &'p Expr)> {
        let (expr, register) = self.parts.get(part)?;
        let vector = keys.0.vector(*register)?;
        Some((vector.slice(0..keys.0.rows), expr))
    }

    /// The values of a row's key, each with its type.
    pub(crate) fn values<'k>(
        &'k self,
        keys: &'k Keys<'_>,
        row: usize,
    ) -> impl Iterator<Item = (Value, &'k DataType)> {
        self.parts.iter().map(move |(expr, register)| {
            let vector = keys.0.vector(*register);
            let value = vector.map(|vector| vector.slice(row..row + 1).value(0));
            (value.unwrap_or(Value::Null), &expr.ty)
        })
    }

    /// Replaces `out` by bytes that are the same for two rows only if their keys are: rows of equal
    /// keys may have different ones.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn spell(
        &self,
        exec: &mut Exec<'_>,
        keys: &Keys<'_>,
        row: usize,
        out: &mut KeyBuf,
    ) -> Result<()> {
        out.clear();
        for (expr, register) in &self.parts {
            let Some(vector) = keys.0.vector(*register) else {
                continue;
            };
            if let Some(value) = spell_part(vector, row, out) {
                append_key(exec, value, &expr.ty, false, out)?;
            }
        }
        Ok(())
    }

    /// The program and the parts' registers, without what they borrow of the plan; `None` where the row
    /// evaluator computes a part.
    pub(super) fn detached(&self) -> Option<(Program<'static>, Vec<Register>)> {
        let registers = self.parts.iter().map(|(_, register)| *register);
        Some((self.program.detached()?, registers.collect()))
    }
}

/// Appends what a part of a row's key is spelled as; a value is left to the caller.
#[inline]
pub(super) fn spell_part<'v>(
    vector: &'v Vector<'_>,
    row: usize,
    out: &mut KeyBuf,
) -> Option<&'v Value> {
    let is_null = vector.nulls.get(row).copied().unwrap_or(false);
    out.push(u8::from(is_null));
    if is_null {
        return None;
    }
    match &vector.elements {
        Elements::Integers(v) => out.extend_from_slice(&v[row].to_le_bytes()),
        Elements::Doubles(v) => out.extend_from_slice(&v[row].to_le_bytes()),
        Elements::Texts(v) => {
            out.extend_from_slice(&(v[row].len() as u32).to_le_bytes());
            out.extend_from_slice(v[row]);
        }
        Elements::Values(v) => return Some(&v[row]),
    }
    None
}
