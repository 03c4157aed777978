//! Joins by going over the right side for each row of the left.

use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::slots_of;
use porpoise_planner::plan::{JoinKind, Node};

use super::{BoxedOperator, Operator, RowOrder, all_true, build_with};
use crate::Exec;

enum LoopState {
    NeedLeft,
    /// The right side is open; whether a row of it has matched the left one.
    InRight {
        matched: bool,
    },
}

pub(super) struct NestedLoop<'p> {
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    right_slots: Vec<SlotId>,
    kind: JoinKind,
    condition: &'p [Expr],
    state: LoopState,
}

impl<'p> NestedLoop<'p> {
    pub(super) fn new(
        left: &'p Node,
        right: &'p Node,
        kind: JoinKind,
        condition: &'p [Expr],
        order: RowOrder,
    ) -> NestedLoop<'p> {
        NestedLoop {
            left: build_with(left, order),
            right: build_with(right, order),
            right_slots: slots_of(right),
            kind,
            condition,
            state: LoopState::NeedLeft,
        }
    }
}

impl Operator for NestedLoop<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.state = LoopState::NeedLeft;
        self.left.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            match self.state {
                LoopState::NeedLeft => {
                    if !self.left.next(exec)? {
                        return Ok(false);
                    }
                    self.right.open(exec)?;
                    self.state = LoopState::InRight { matched: false };
                }
                LoopState::InRight { matched } => {
                    exec.check_interrupt()?;
                    if self.right.next(exec)? {
                        if !all_true(self.condition, exec)? {
                            continue;
                        }
                        match self.kind {
                            JoinKind::Inner | JoinKind::Left => {
                                self.state = LoopState::InRight { matched: true };
                                return Ok(true);
                            }
                            JoinKind::Semi => {
                                self.state = LoopState::NeedLeft;
                                return Ok(true);
                            }
                            JoinKind::Anti => self.state = LoopState::NeedLeft,
                        }
                    } else {
                        self.state = LoopState::NeedLeft;
                        match self.kind {
                            JoinKind::Left if !matched => {
                                for slot in &self.right_slots {
                                    exec.frame.slots[slot.0 as usize].set_null();
                                }
                                return Ok(true);
                            }
                            JoinKind::Anti => return Ok(true),
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}
