//! GROUP BY, with ROLLUP, and its aggregates.

use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_planner::plan::Group;
use porpoise_types::{KeyBuf, Value};

use super::group_state::{DistinctValues, GroupState, GroupsOfUnit};
use super::hash_group::HashGroup;
use super::{BoxedOperator, Operator, RowOrder, build_with, replay};
use crate::Exec;
use crate::batch::{GroupProgram, GroupWork, RawRows, Tries, Units, load_row};
use crate::eval::{Evaluate, append_key};
use crate::row_buffer::{RowBuffer, RowReader};

/// The groups of a number of leading keys, of which one at a time is running.
struct Level {
    group: GroupState,
    distinct: DistinctValues,
}

impl Level {
    fn new(keys: Vec<Value>, group: &Group) -> Level {
        Level {
            group: GroupState::new(keys, &group.aggregates),
            distinct: DistinctValues::default(),
        }
    }

    fn add(&mut self, exec: &mut Exec<'_>, group: &Group) -> Result<()> {
        let state = &mut self.group;
        state.add(exec, &group.aggregates, 0, &mut self.distinct)
    }
}

/// Groups its input: by a hash table, or group after group when the input comes ordered.
///
/// ROLLUP keeps a state for each number of leading keys, from all of them down to none; a level is
/// finished when a key within it changes.
pub(super) struct GroupOperator<'p> {
    group: &'p Group,
    input: BoxedOperator<'p>,
    /// Groups in no order.
    hash: Option<HashGroup<'p>>,
    /// Finished rows not yet yielded.
    ready: RowBuffer,
    reader: RowReader,
    /// Ordered input: the state of each level (one without ROLLUP), and the encoded keys of the
    /// group.
    levels: Vec<Level>,
    level_keys: Vec<KeyBuf>,
    /// The keys of the group's last row as they are stored, if all are columns.
    stored_keys: Vec<Option<Vec<u8>>>,
    done: bool,
    /// What is computed of a batch; `None` before the first one, and where nothing is.
    program: Option<Option<GroupProgram<'p>>>,
    tries: Tries,
    /// There was a batch: units may follow.
    has_batches: bool,
    units: Units<GroupWork>,
}

impl<'p> GroupOperator<'p> {
    pub(super) fn new(group: &'p Group) -> GroupOperator<'p> {
        let is_hash = !group.ordered && !group.rollup && !group.keys.is_empty();
        let order = match group.keys.is_empty() || is_hash {
            true => RowOrder::Free,
            false => RowOrder::Kept,
        };
        GroupOperator {
            group,
            input: build_with(&group.input, order),
            hash: is_hash.then(|| HashGroup::new(group)),
            ready: RowBuffer::default(),
            reader: RowReader::default(),
            levels: Vec::new(),
            level_keys: Vec::new(),
            stored_keys: Vec::new(),
            done: false,
            program: None,
            tries: Tries::default(),
            has_batches: false,
            units: Units::new(),
        }
    }

    /// Groups the rows of the input's next unit, all of which are one group; `false` where the next
    /// rows are to be had from the input itself.
    fn add_unit(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(scan) = self.input.raw_rows() else {
            return Ok(false);
        };
        let group = self.group;
        let program =
            |exec: &mut Exec<'_>, scan: &mut dyn RawRows| GroupWork::new(exec, group, scan);
        let Some(unit) = self.units.next(exec, scan, program)? else {
            return Ok(false);
        };
        let computed = unit.computed()?;
        scan.count_raw(exec, computed.examined, computed.passed);
        if computed.passed > 0 {
            if self.levels.is_empty() {
                self.levels.push(Level::new(Vec::new(), self.group));
            }
            for level in &mut self.levels {
                let mut groups = GroupsOfUnit {
                    groups: std::slice::from_mut(&mut level.group),
                    numbers: &[],
                };
                computed.give(exec, &mut groups)?;
            }
        }
        Ok(true)
    }

    /// Groups the rows of the next batch, all of which are one group; `false` if there is none.
    fn add_batch(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(batch) = self.input.next_batch(exec)? else {
            return Ok(false);
        };
        if batch.rows.is_empty() {
            return Ok(true);
        }
        let group = self.group;
        let new = || GroupProgram::new(exec, batch.slot, &[], &group.aggregates);
        let program = self.program.get_or_insert_with(new);
        if self.levels.is_empty() {
            self.levels.push(Level::new(Vec::new(), group));
        }
        let layouts = exec.layouts;
        let layout = &*layouts[batch.slot.0 as usize].layout;
        if let Some(by_vectors) = program {
            let arguments = by_vectors.arguments(exec, layout, &batch.rows)?;
            if let Some(arguments) = &arguments {
                for level in &mut self.levels {
                    let all = 0..batch.rows.len();
                    let Level {
                        group: state,
                        distinct,
                    } = level;
                    let values = (&*by_vectors, arguments);
                    state.add_batch(exec, &group.aggregates, values, (0, all), distinct)?;
                }
            }
            let is_plain = arguments.is_some();
            if !self.tries.note(is_plain) {
                *program = None;
            }
            if is_plain {
                return Ok(true);
            }
        }
        for row in &batch.rows {
            exec.check_interrupt()?;
            load_row(exec, batch.slot, row);
            for level in &mut self.levels {
                level.add(exec, group)?;
            }
        }
        Ok(true)
    }

    fn keys(&self, exec: &mut Exec<'_>) -> Result<(Vec<Value>, Vec<KeyBuf>)> {
        let mut values = Vec::with_capacity(self.group.keys.len());
        let mut encoded = Vec::with_capacity(self.group.keys.len());
        for expr in &self.group.keys {
            let value = expr.eval(exec)?;
            let mut key = KeyBuf::new();
            append_key(exec, &value, &expr.ty, false, &mut key)?;
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
            let Level { group, distinct } = &mut level;
            distinct.settle(exec, &self.group.aggregates, std::slice::from_mut(group))?;
            group.finish(exec, self.group.slot, kept, self.group.rollup)?;
            self.ready.put_aside(exec, &[self.group.slot])?;
        }
        Ok(())
    }

    /// Reads on until a group is finished.
    fn ordered(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let keys = self.group.keys.len();
        let takes_batches = keys == 0 && !self.group.rollup && self.input.has_batches();
        while self.ready.is_empty() && !self.done {
            if takes_batches
                && ((self.has_batches && self.add_unit(exec)?) || self.add_batch(exec)?)
            {
                self.has_batches = true;
                continue;
            }
            if !self.input.next(exec)? {
                if self.units.are_left() {
                    continue;
                }
                self.done = true;
                // The total of no rows.
                if self.levels.is_empty() && (self.group.scalar || self.group.rollup) {
                    let keys = vec![Value::Null; keys];
                    self.levels.push(Level::new(keys, self.group));
                }
                self.finish_levels(exec, usize::MAX)?;
                break;
            }
            if !self.levels.is_empty() && self.has_same_bytes(exec) {
                for level in &mut self.levels {
                    level.add(exec, self.group)?;
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
                self.levels.push(Level::new(values.clone(), self.group));
            }
            self.level_keys = encoded;
            for level in &mut self.levels {
                level.add(exec, self.group)?;
            }
        }
        Ok(())
    }
}

impl Operator for GroupOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.ready.clear();
        self.reader = RowReader::default();
        self.levels.clear();
        self.level_keys.clear();
        self.stored_keys.clear();
        self.done = false;
        self.program = None;
        self.tries = Tries::default();
        self.has_batches = false;
        self.units = Units::new();
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if let Some(hash) = &mut self.hash {
            if !std::mem::replace(&mut self.done, true) {
                hash.read(exec, &mut *self.input)?;
            }
            return hash.next(exec);
        }
        loop {
            if replay(&self.ready, &mut self.reader, exec, &[self.group.slot])? {
                return Ok(true);
            }
            if self.done {
                return Ok(false);
            }
            self.ready.clear();
            self.reader = RowReader::default();
            self.ordered(exec)?;
            self.ready.finish()?;
        }
    }
}
