//! GROUP BY, with ROLLUP, and its aggregates.

use porpoise_core::error::Result;
use porpoise_core::memory::{Charge, ITEMS_MANY, reclaim};
use porpoise_expr::aggregate::Accumulator;
use porpoise_expr::aggregate::Aggregate;
use porpoise_expr::key;
use porpoise_expr::{EvalContext, SlotId};
use porpoise_planner::plan::Group;
use porpoise_types::{KeyBuf, Value};
use smallvec::SmallVec;

use super::{BoxedOperator, Operator, build, replay};
use crate::Exec;
use crate::eval::Evaluate;
use crate::key_map::KeyMap;
use crate::row_buffer::RowBuffer;

/// The running aggregates of one group.
#[derive(Default)]
struct GroupState {
    keys: Vec<Value>,
    accumulators: Vec<Running>,
}

/// The groups of a hash. Each is several allocations: many are freed by another thread.
#[derive(Default)]
struct Groups(Vec<GroupState>);

impl Drop for Groups {
    fn drop(&mut self) {
        if self.0.len() > ITEMS_MANY {
            reclaim(std::mem::take(&mut self.0));
        }
    }
}

struct Running {
    accumulator: Box<dyn Accumulator>,
    /// Argument combinations seen, for the DISTINCT forms.
    seen: Option<Box<KeyMap>>,
}

impl GroupState {
    /// About how many bytes a group takes, beside what its aggregates collect.
    fn bytes(key: &[u8], keys: usize, aggregates: &[Aggregate]) -> usize {
        /// An accumulator's own state, and the allocation of it.
        const STATE_BYTES: usize = 64;
        size_of::<GroupState>()
            + key.len()
            + keys * size_of::<Value>()
            + aggregates.len() * (size_of::<Running>() + STATE_BYTES)
    }

    fn new(keys: Vec<Value>, aggregates: &[Aggregate]) -> GroupState {
        let accumulators = aggregates
            .iter()
            .map(|aggregate| Running {
                accumulator: (aggregate.function.start)(aggregate),
                seen: aggregate.distinct.then(Box::default),
            })
            .collect();
        GroupState { keys, accumulators }
    }

    fn add(&mut self, exec: &mut Exec<'_>, aggregates: &[Aggregate]) -> Result<()> {
        for (running, aggregate) in self.accumulators.iter_mut().zip(aggregates) {
            let mut arguments: SmallVec<[Value; 2]> = SmallVec::new();
            for argument in &aggregate.arguments {
                arguments.push(argument.eval(exec)?);
            }
            if let Some(seen) = &mut running.seen {
                // Only whole combinations count: one NULL and the row is left out.
                let counted = aggregate
                    .arguments
                    .len()
                    .saturating_sub(aggregate.order.len());
                if arguments[..counted].iter().any(Value::is_null) {
                    continue;
                }
                let mut key = KeyBuf::new();
                let typed = arguments[..counted].iter().zip(&aggregate.arguments);
                key::encode_values(
                    typed.map(|(value, expr)| (value, &expr.ty, false)),
                    &mut key,
                );
                if !seen.insert(&exec.session.memory, &key)?.1 {
                    continue;
                }
            }
            running.accumulator.add(exec, &arguments)?;
        }
        Ok(())
    }

    /// The group's row: keys (NULL from `keep` on, for ROLLUP's sums), then aggregates.
    /// With ROLLUP, the mask of the keys that are rolled up comes last.
    fn finish(
        &mut self,
        exec: &mut Exec<'_>,
        slot: SlotId,
        keep: usize,
        rollup: bool,
    ) -> Result<()> {
        let mut values: SmallVec<[Value; 8]> = SmallVec::new();
        for (position, key) in self.keys.iter().enumerate() {
            values.push(if position < keep {
                key.clone()
            } else {
                Value::Null
            });
        }
        for running in &mut self.accumulators {
            values.push(running.accumulator.finish(exec)?);
        }
        if rollup {
            let rolled_up = (keep..self.keys.len().min(64)).fold(0u64, |mask, key| mask | 1 << key);
            values.push(Value::UInt(rolled_up));
        }
        exec.fill(slot, &values)
    }
}

/// Groups its input: by a hash table, or group after group when the input comes ordered.
///
/// ROLLUP keeps a state for each number of leading keys, from all of them down to none; a level is
/// finished when a key within it changes.
pub(super) struct GroupOperator<'p> {
    group: &'p Group,
    input: BoxedOperator<'p>,
    /// Finished rows not yet yielded.
    ready: RowBuffer,
    at: usize,
    /// Ordered input: the state of each level (one without ROLLUP), and the encoded keys of the
    /// group.
    levels: Vec<GroupState>,
    level_keys: Vec<KeyBuf>,
    /// The keys of the group's last row as they are stored, if all are columns.
    stored_keys: Vec<Option<Vec<u8>>>,
    done: bool,
}

impl<'p> GroupOperator<'p> {
    pub(super) fn new(group: &'p Group) -> GroupOperator<'p> {
        GroupOperator {
            group,
            input: build(&group.input),
            ready: RowBuffer::default(),
            at: 0,
            levels: Vec::new(),
            level_keys: Vec::new(),
            stored_keys: Vec::new(),
            done: false,
        }
    }

    fn keys(&self, exec: &mut Exec<'_>) -> Result<(Vec<Value>, Vec<KeyBuf>)> {
        let mut values = Vec::with_capacity(self.group.keys.len());
        let mut encoded = Vec::with_capacity(self.group.keys.len());
        for expr in &self.group.keys {
            let value = expr.eval(exec)?;
            let mut key = KeyBuf::new();
            key::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
            values.push(value);
            encoded.push(key);
        }
        Ok((values, encoded))
    }

    /// Whether the row's keys are the very bytes that the last row's were: then it is of the same
    /// group, and no key has to be made.
    fn has_same_bytes(&self, exec: &Exec<'_>) -> bool {
        let keys = &self.group.keys;
        let mut pairs = self.stored_keys.iter().zip(keys);
        self.stored_keys.len() == keys.len()
            && pairs.all(|(last, key)| exec.stored_column(key) == Some(last.as_deref()))
    }

    /// Keeps the row's keys as they are stored.
    fn keep_bytes(&mut self, exec: &Exec<'_>) {
        self.stored_keys.resize_with(self.group.keys.len(), || None);
        for (kept, key) in self.stored_keys.iter_mut().zip(&self.group.keys) {
            match exec.stored_column(key) {
                Some(Some(bytes)) => {
                    let kept = kept.get_or_insert_default();
                    kept.clear();
                    kept.extend_from_slice(bytes);
                }
                Some(None) => *kept = None,
                None => return self.stored_keys.clear(),
            }
        }
    }

    fn hash(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut groups = Groups::default();
        let groups = &mut groups.0;
        let mut by_key = KeyMap::default();
        let mut key = KeyBuf::new();
        let (mut charge, aggregates) = (Charge::default(), &self.group.aggregates);
        while self.input.next(exec)? {
            let mut values: SmallVec<[Value; 4]> = SmallVec::new();
            key.clear();
            for expr in &self.group.keys {
                let value = expr.eval(exec)?;
                key::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
                values.push(value);
            }
            let account = &exec.session.memory;
            let (number, is_new) = by_key.insert(account, &key)?;
            if is_new {
                let bytes = GroupState::bytes(&key, values.len(), aggregates);
                charge.add(account, bytes)?;
                groups.push(GroupState::new(values.into_vec(), aggregates));
            }
            groups[number].add(exec, aggregates)?;
        }
        if groups.is_empty() && self.group.scalar {
            groups.push(GroupState::new(Vec::new(), &self.group.aggregates));
        }
        for group in groups {
            exec.check_interrupt()?;
            let mut group = std::mem::take(group);
            group.finish(exec, self.group.slot, usize::MAX, false)?;
            self.ready.push(exec, &[self.group.slot])?;
        }
        self.done = true;
        Ok(())
    }

    /// Finishes the levels that keep more than `keep` keys, deepest first.
    fn finish_levels(&mut self, exec: &mut Exec<'_>, keep: usize) -> Result<()> {
        let keys = self.group.keys.len();
        while let Some(mut level) = self.levels.pop() {
            let kept = if self.group.rollup {
                self.levels.len()
            } else {
                keys
            };
            if kept <= keep && keep != usize::MAX && self.group.rollup {
                self.levels.push(level);
                break;
            }
            level.finish(exec, self.group.slot, kept, self.group.rollup)?;
            self.ready.push(exec, &[self.group.slot])?;
        }
        Ok(())
    }

    /// Reads on until a group is finished.
    fn ordered(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let keys = self.group.keys.len();
        while self.ready.is_empty() && !self.done {
            if !self.input.next(exec)? {
                self.done = true;
                // The total of no rows.
                if self.levels.is_empty() && (self.group.scalar || self.group.rollup) {
                    let keys = vec![Value::Null; keys];
                    self.levels
                        .push(GroupState::new(keys, &self.group.aggregates));
                }
                self.finish_levels(exec, usize::MAX)?;
                break;
            }
            if !self.levels.is_empty() && self.has_same_bytes(exec) {
                for level in &mut self.levels {
                    level.add(exec, &self.group.aggregates)?;
                }
                continue;
            }
            self.keep_bytes(exec);
            let (values, encoded) = self.keys(exec)?;
            let same = self
                .level_keys
                .iter()
                .zip(&encoded)
                .take_while(|(a, b)| a == b)
                .count();
            let fresh = self.levels.is_empty();
            if !fresh && same < keys {
                // Finishing writes the group's slot only; the input's current row stays in its own.
                self.finish_levels(exec, if self.group.rollup { same } else { usize::MAX })?;
            }
            let wanted = if self.group.rollup { keys + 1 } else { 1 };
            while self.levels.len() < wanted {
                self.levels
                    .push(GroupState::new(values.clone(), &self.group.aggregates));
            }
            self.level_keys = encoded;
            for level in &mut self.levels {
                level.add(exec, &self.group.aggregates)?;
            }
        }
        Ok(())
    }
}

impl Operator for GroupOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.ready.clear();
        self.at = 0;
        self.levels.clear();
        self.level_keys.clear();
        self.stored_keys.clear();
        self.done = false;
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            if replay(&self.ready, &mut self.at, exec, &[self.group.slot])? {
                return Ok(true);
            }
            if self.done {
                return Ok(false);
            }
            self.ready.clear();
            self.at = 0;
            if self.group.ordered || self.group.rollup || self.group.keys.is_empty() {
                self.ordered(exec)?;
            } else {
                self.hash(exec)?;
            }
        }
    }
}
