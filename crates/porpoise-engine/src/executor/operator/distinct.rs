//! DISTINCT.

use hashbrown::HashSet;
use porpoise_types::KeyBuf;

use crate::error::Result;
use crate::executor::Exec;
use crate::expr::Expr;
use crate::planner::plan::Node;

use super::{BoxedOperator, Operator, build, key_of};

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
