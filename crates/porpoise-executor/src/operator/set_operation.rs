//! UNION, INTERSECT and EXCEPT.

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::EvalContext;
use porpoise_expr::key;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::{Node, SetOperator};
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, build, project, replay};
use crate::Exec;
use crate::key_map::KeyMap;
use crate::row_buffer::RowBuffer;

/// UNION streams; INTERSECT and EXCEPT count the rows of their first input and strike off.
pub(super) struct SetOperation<'p> {
    slot: SlotId,
    op: SetOperator,
    distinct: bool,
    inputs: &'p [(Node, Vec<Expr>)],
    rows: RowBuffer,
    at: usize,
    seen: KeyMap,
    current: Option<(usize, BoxedOperator<'p>)>,
}

impl<'p> SetOperation<'p> {
    pub(super) fn new(
        slot: SlotId,
        op: SetOperator,
        distinct: bool,
        inputs: &'p [(Node, Vec<Expr>)],
    ) -> SetOperation<'p> {
        SetOperation {
            slot,
            op,
            distinct,
            inputs,
            rows: RowBuffer::default(),
            at: 0,
            seen: KeyMap::default(),
            current: None,
        }
    }
}

impl<'p> SetOperation<'p> {
    /// The comparable key of the slot's row: in the result's types, not in each input's own.
    fn slot_key(&self, exec: &Exec<'_>, key: &mut KeyBuf) {
        key.clear();
        let layout = &exec.layouts[self.slot.0 as usize];
        let row = &exec.frame.slots[self.slot.0 as usize].bytes;
        for (column, ty) in layout.types.iter().enumerate() {
            let value = layout.layout.get(row, column);
            key::encode_values(std::iter::once((&value, ty, false)), key);
        }
    }

    fn count(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut key = KeyBuf::new();
        // Each distinct row of the first input, in order, with how often it may pass.
        let mut rest: Vec<i64> = Vec::new();
        let mut firsts = RowBuffer::default();
        let mut positions = KeyMap::default();
        let mut charge = Charge::default();
        for (number, (node, output)) in self.inputs.iter().enumerate() {
            let mut counts: Vec<i64> = vec![0; rest.len()];
            let mut input = build(node);
            input.open(exec)?;
            while input.next(exec)? {
                exec.check_interrupt()?;
                project(exec, self.slot, output)?;
                self.slot_key(exec, &mut key);
                let account = &exec.session.memory;
                if number > 0 {
                    if let Some(position) = positions.get(&key) {
                        counts[position] += 1;
                    }
                    continue;
                }
                let (position, is_new) = positions.insert(account, &key)?;
                if is_new {
                    charge.reserve(account, &mut counts, 1)?;
                    charge.reserve(account, &mut rest, 1)?;
                    counts.push(0);
                    rest.push(0);
                    firsts.push(exec, &[self.slot])?;
                }
                counts[position] += 1;
            }
            for (left, &count) in rest.iter_mut().zip(&counts) {
                *left = match (number, self.op, self.distinct) {
                    (0, _, true) => 1,
                    (0, _, false) => count,
                    (_, SetOperator::Intersect, true) => (*left).min(i64::from(count > 0)),
                    (_, SetOperator::Intersect, false) => (*left).min(count),
                    (_, _, true) => {
                        if count > 0 {
                            0
                        } else {
                            *left
                        }
                    }
                    (_, _, false) => (*left - count).max(0),
                };
            }
        }
        for (position, left) in rest.into_iter().enumerate() {
            for _ in 0..left {
                exec.check_interrupt()?;
                firsts.restore(position, &mut exec.frame, &[self.slot]);
                self.rows.push(exec, &[self.slot])?;
            }
        }
        Ok(())
    }
}

impl Operator for SetOperation<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.at = 0;
        self.seen.clear();
        self.current = None;
        if self.op == SetOperator::Union {
            Ok(())
        } else {
            self.count(exec)
        }
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.op != SetOperator::Union {
            return replay(&self.rows, &mut self.at, exec, &[self.slot]);
        }
        let mut key = KeyBuf::new();
        loop {
            let Some((number, input)) = &mut self.current else {
                let Some((node, _)) = self.inputs.first() else {
                    return Ok(false);
                };
                let mut input = build(node);
                input.open(exec)?;
                self.current = Some((0, input));
                continue;
            };
            if !input.next(exec)? {
                let next = *number + 1;
                let Some((node, _)) = self.inputs.get(next) else {
                    return Ok(false);
                };
                let mut input = build(node);
                input.open(exec)?;
                self.current = Some((next, input));
                continue;
            }
            let output = &self.inputs[*number].1;
            project(exec, self.slot, output)?;
            if !self.distinct {
                return Ok(true);
            }
            self.slot_key(exec, &mut key);
            if self.seen.insert(&exec.session.memory, &key)?.1 {
                return Ok(true);
            }
        }
    }
}
