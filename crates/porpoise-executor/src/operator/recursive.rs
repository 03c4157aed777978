//! A recursive common table expression: the seed's rows, then those that the step makes of the last
//! round's, until a round brings none.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

use super::{Operator, build, key_of, project, replay};
use crate::Exec;
use crate::key_map::KeyMap;
use crate::row_buffer::RowBuffer;

pub(super) struct Recursive<'p> {
    slot: SlotId,
    /// Seed and step, each with its output.
    parts: [(&'p Node, &'p [Expr]); 2],
    distinct: bool,
    working: usize,
    rows: RowBuffer,
    at: usize,
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
            rows: RowBuffer::default(),
            at: 0,
        }
    }
}

impl Operator for Recursive<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        self.rows.clear();
        let slots = [self.slot];
        let mut seen = KeyMap::default();
        let mut rounds = 0;
        let most = exec.session.cte_max_recursion_depth();
        loop {
            let (node, output) = self.parts[usize::from(rounds > 0)];
            let mut round = RowBuffer::default();
            let mut input = build(node);
            input.open(exec)?;
            while input.next(exec)? {
                exec.check_interrupt()?;
                if self.distinct {
                    let mut key = KeyBuf::new();
                    key_of(exec, output.iter().map(|expr| (expr, false)), &mut key)?;
                    if !seen.insert(&exec.session.memory, &key)?.1 {
                        continue;
                    }
                }
                project(exec, self.slot, output)?;
                self.rows.push(exec, &slots)?;
                round.push(exec, &slots)?;
            }
            if round.is_empty() {
                break;
            }
            if rounds > most {
                return Err(crate::Error::recursive_cte_depth(rounds));
            }
            rounds += 1;
            exec.kept().working.insert(self.working, Arc::new(round));
        }
        exec.kept().working.remove(&self.working);
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.at, exec, &[self.slot])
    }
}

pub(super) struct Working {
    slot: SlotId,
    working: usize,
    rows: Arc<RowBuffer>,
    at: usize,
}

impl Working {
    pub(super) fn new(slot: SlotId, working: usize) -> Working {
        Working {
            slot,
            working,
            rows: Arc::default(),
            at: 0,
        }
    }
}

impl Operator for Working {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        self.rows = exec
            .kept()
            .working
            .get(&self.working)
            .cloned()
            .unwrap_or_default();
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.at, exec, &[self.slot])
    }
}
