//! A recursive common table expression: the seed's rows, then those that the step makes of the last
//! round's, until a round brings none.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, build, key_of, project, replay};
use crate::Exec;
use crate::key_map::KeyMap;
use crate::row_buffer::{RowBuffer, RowReader};

pub(super) struct Recursive<'p> {
    slot: SlotId,
    /// Seed and step, each with its output.
    parts: [(&'p Node, &'p [Expr]); 2],
    distinct: bool,
    working: usize,
    /// The rows so far, where they have to be different.
    seen: KeyMap,
    /// The rows of the round that is being made.
    round: RowBuffer,
    rounds: u64,
    /// What makes the round's rows; `None` before it begins.
    input: Option<BoxedOperator<'p>>,
    is_at_end: bool,
}

impl<'p> Recursive<'p> {
    pub(super) fn new(
        slot: SlotId,
        parts: [(&'p Node, &'p [Expr]); 2],
        distinct: bool,
        working: usize,
    ) -> Recursive<'p> {
        Recursive {
            slot,
            parts,
            distinct,
            working,
            seen: KeyMap::default(),
            round: RowBuffer::default(),
            rounds: 0,
            input: None,
            is_at_end: false,
        }
    }

    /// Leaves the round's next row in the slot; false where there is no further one.
    fn next_of_round(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let (node, output) = self.parts[usize::from(self.rounds > 0)];
        let input = match &mut self.input {
            Some(input) => input,
            None => {
                let mut input = build(node);
                input.open(exec)?;
                self.input.insert(input)
            }
        };
        while input.next(exec)? {
            exec.check_interrupt()?;
            if self.distinct {
                let mut key = KeyBuf::new();
                key_of(exec, output.iter().map(|expr| (expr, false)), &mut key)?;
                if !self.seen.insert(&exec.session.memory, &key)?.1 {
                    continue;
                }
            }
            project(exec, self.slot, output)?;
            self.round.put_aside(exec, &[self.slot])?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// Rows are made as they are asked for: LIMIT ends the recursion.
impl Operator for Recursive<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        *self = Recursive::new(self.slot, self.parts, self.distinct, self.working);
        exec.kept().working.remove(&self.working);
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        while !self.is_at_end {
            if self.next_of_round(exec)? {
                return Ok(true);
            }
            self.input = None;
            let mut round = std::mem::take(&mut self.round);
            round.finish()?;
            if round.is_empty() {
                self.is_at_end = true;
                self.seen = KeyMap::default();
                exec.kept().working.remove(&self.working);
                break;
            }
            if self.rounds > exec.session.cte_max_recursion_depth() {
                return Err(crate::Error::recursive_cte_depth(self.rounds));
            }
            self.rounds += 1;
            exec.kept().working.insert(self.working, Arc::new(round));
        }
        Ok(false)
    }
}

pub(super) struct Working {
    slot: SlotId,
    working: usize,
    rows: Arc<RowBuffer>,
    reader: RowReader,
}

impl Working {
    pub(super) fn new(slot: SlotId, working: usize) -> Working {
        Working {
            slot,
            working,
            rows: Arc::default(),
            reader: RowReader::default(),
        }
    }
}

impl Operator for Working {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.reader = RowReader::default();
        self.rows = exec
            .kept()
            .working
            .get(&self.working)
            .cloned()
            .unwrap_or_default();
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.reader, exec, &[self.slot])
    }
}
