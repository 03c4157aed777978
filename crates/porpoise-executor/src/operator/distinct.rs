//! DISTINCT.

use porpoise_core::error::Result;
use porpoise_expr::Expr;
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;

use super::{BoxedOperator, Operator, build, key_of};
use crate::Exec;
use crate::key_map::KeyMap;

pub(super) struct Distinct<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [Expr],
    seen: KeyMap,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [Expr]) -> Distinct<'p> {
        Distinct {
            input: build(input),
            keys,
            seen: KeyMap::default(),
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
            if self.seen.insert(&exec.session.memory, &key)?.1 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
