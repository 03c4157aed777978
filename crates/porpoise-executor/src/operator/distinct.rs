//! DISTINCT.

use hashbrown::HashSet;
use porpoise_core::error::Result;
use porpoise_expr::Expr;
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, build, key_of};
use crate::Exec;

pub(super) struct Distinct<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [Expr],
    seen: HashSet<Box<[u8]>>,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [Expr]) -> Distinct<'p> {
        Distinct {
            input: build(input),
            keys,
            seen: HashSet::new(),
        }
    }
}

impl Operator for Distinct<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.seen.clear();
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            key_of(exec, self.keys.iter().map(|expr| (expr, false)), &mut key)?;
            if !self.seen.contains(key.as_slice()) {
                self.seen.insert(key.as_slice().into());
                return Ok(true);
            }
        }
        Ok(false)
    }
}
