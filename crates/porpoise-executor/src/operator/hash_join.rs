//! Joins by a hash table of the right side.

use hashbrown::HashMap;
use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_expr::key;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::{JoinKind, Node};
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, all_true, build};
use crate::Exec;
use crate::eval::Evaluate;
use crate::row_buffer::RowBuffer;

pub(super) struct HashJoin<'p> {
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    kind: JoinKind,
    left_keys: &'p [Expr],
    right_keys: &'p [Expr],
    condition: &'p [Expr],
    right_slots: &'p [SlotId],
    rows: RowBuffer,
    table: HashMap<Box<[u8]>, Vec<u32>>,
    /// The current left row's matches: its key, how many were tried, whether one passed.
    matches: Option<(KeyBuf, usize, bool)>,
}

impl<'p> HashJoin<'p> {
    pub(super) fn new(
        [left, right]: [&'p Node; 2],
        kind: JoinKind,
        [left_keys, right_keys]: [&'p [Expr]; 2],
        condition: &'p [Expr],
        right_slots: &'p [SlotId],
    ) -> HashJoin<'p> {
        HashJoin {
            left: build(left),
            right: build(right),
            kind,
            left_keys,
            right_keys,
            condition,
            right_slots,
            rows: RowBuffer::default(),
            table: HashMap::new(),
            matches: None,
        }
    }
}

impl HashJoin<'_> {
    /// The key, or `None` if a part of it is NULL: NULL equals nothing.
    fn key(exec: &mut Exec<'_>, exprs: &[Expr]) -> Result<Option<KeyBuf>> {
        let mut key = KeyBuf::new();
        for expr in exprs {
            let value = expr.eval(exec)?;
            if value.is_null() {
                return Ok(None);
            }
            key::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
        }
        Ok(Some(key))
    }
}

impl Operator for HashJoin<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.table.clear();
        self.matches = None;
        self.right.open(exec)?;
        while self.right.next(exec)? {
            let Some(key) = Self::key(exec, self.right_keys)? else {
                continue;
            };
            let number = self.rows.len() as u32;
            self.rows.push(&exec.frame, self.right_slots);
            match self.table.get_mut(key.as_slice()) {
                Some(rows) => rows.push(number),
                None => {
                    self.table.insert(key.as_slice().into(), vec![number]);
                }
            }
        }
        self.left.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            let Some((key, tried, passed)) = &mut self.matches else {
                if !self.left.next(exec)? {
                    return Ok(false);
                }
                exec.check_interrupt()?;
                let key = Self::key(exec, self.left_keys)?;
                self.matches = Some((key.unwrap_or_default(), 0, false));
                continue;
            };
            let rows = self
                .table
                .get(key.as_slice())
                .map_or(&[][..], Vec::as_slice);
            if let Some(&row) = rows.get(*tried) {
                *tried += 1;
                self.rows
                    .restore(row as usize, &mut exec.frame, self.right_slots);
                if !all_true(self.condition, exec)? {
                    continue;
                }
                *passed = true;
                match self.kind {
                    JoinKind::Inner | JoinKind::Left => return Ok(true),
                    JoinKind::Semi => {
                        self.matches = None;
                        return Ok(true);
                    }
                    JoinKind::Anti => self.matches = None,
                }
            } else {
                let passed = *passed;
                self.matches = None;
                match self.kind {
                    JoinKind::Left if !passed => {
                        for slot in self.right_slots {
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
