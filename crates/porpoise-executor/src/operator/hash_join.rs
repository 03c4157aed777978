//! Joins by a hash table of the right side.

use hashbrown::HashMap;
use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::EvalContext;
use porpoise_expr::key;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::{JoinKind, Node};
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, all_true, build};
use crate::Exec;
use crate::eval::Evaluate;
use crate::row_buffer::RowBuffer;

/// What a key takes in the table beside its bytes.
const KEY_BYTES: usize = 80;

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
    charge: Charge,
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
            charge: Charge::default(),
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
        self.table = HashMap::new();
        self.charge.clear();
        self.matches = None;
        self.right.open(exec)?;
        while self.right.next(exec)? {
            let Some(key) = Self::key(exec, self.right_keys)? else {
                continue;
            };
            let number = self.rows.len() as u32;
            self.rows.push(exec, self.right_slots)?;
            let account = &exec.session.memory;
            self.charge.add(account, 2 * size_of::<u32>())?;
            match self.table.get_mut(key.as_slice()) {
                Some(rows) => rows.push(number),
                None => {
                    self.charge.add(account, key.len() + KEY_BYTES)?;
                    self.table.insert(key.as_slice().into(), vec![number]);
                }
            }
        }
        self.left.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            exec.check_interrupt()?;
            let Some((key, tried, passed)) = &mut self.matches else {
                if !self.left.next(exec)? {
                    return Ok(false);
                }
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
