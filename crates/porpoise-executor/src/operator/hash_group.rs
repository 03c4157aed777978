//! Groups by a hash table.
//!
//! When the groups take more memory than they should, no new ones are made: rows of those that are
//! there go on to be added, and of the others the keys and the aggregates' arguments are put aside,
//! divided by a hash of the keys ([`spill`](crate::spill)). Behind the last row the groups are
//! yielded, and what was put aside is grouped in the same way, a part at a time.

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, Charge};
use porpoise_core::temporary_file::{Part, PartWriter};
use porpoise_expr::{EvalContext, SlotId};
use porpoise_planner::plan::Group;
use porpoise_types::{KeyBuf, Value, saved};
use smallvec::SmallVec;

use super::Operator;
use super::group_state::{DistinctValues, GroupState, Groups, GroupsOfUnit, read_values};
use crate::Exec;
use crate::batch::{Batch, GroupProgram, GroupWork, Partition, RawRows, Tries, Units, load_row};
use crate::eval::{Evaluate, append_key};
use crate::key_map::KeyMap;
use crate::spill::{Hashing, filled, unreadable};

/// So often groups that grow ask whether they are to grow no more.
const ASKED_EVERY_BYTES: usize = 64 << 10;

pub(super) struct HashGroup<'p> {
    group: &'p Group,
    groups: Groups,
    /// The numbers of the groups.
    by_key: KeyMap,
    distinct: DistinctValues,
    charge: Charge,
    asked_at: usize,
    /// How rows are divided that are put aside, if they were before.
    hashing: Option<Hashing>,
    /// Where rows go that no group takes, when there are to be no more groups.
    aside: Option<(Hashing, PartWriter)>,
    /// What was put aside and is to be grouped.
    parts: Vec<(Hashing, Part)>,
    /// The next group to be yielded.
    at: usize,
}

impl<'p> HashGroup<'p> {
    pub(super) fn new(group: &'p Group) -> HashGroup<'p> {
        HashGroup {
            group,
            groups: Groups::default(),
            by_key: KeyMap::default(),
            distinct: DistinctValues::default(),
            charge: Charge::default(),
            asked_at: ASKED_EVERY_BYTES,
            hashing: None,
            aside: None,
            parts: Vec::new(),
            at: 0,
        }
    }

    /// Forgets the groups.
    fn clear(&mut self) {
        self.groups = Groups::default();
        self.by_key.clear();
        self.distinct = DistinctValues::default();
        self.charge.clear();
        self.asked_at = ASKED_EVERY_BYTES;
        self.aside = None;
        self.at = 0;
    }

    /// Groups all rows of the input.
    pub(super) fn read(&mut self, exec: &mut Exec<'_>, input: &mut dyn Operator) -> Result<()> {
        self.clear();
        self.hashing = None;
        self.parts.clear();
        let mut key = KeyBuf::new();
        let takes_batches = input.has_batches();
        let mut batches = None;
        let mut units = Units::new();
        loop {
            // Behind a first batch units may follow.
            if batches.is_some()
                && self.add_unit(exec, input, &mut units, &mut batches, &mut key)?
            {
                continue;
            }
            if takes_batches && let Some(batch) = input.next_batch(exec)? {
                let group = self.group;
                let new = || BatchGroups::new(exec, batch.slot, group);
                let batches = batches.get_or_insert_with(new);
                self.add_batch(exec, batches.as_mut(), batch, &mut key)?;
                continue;
            }
            if !input.next(exec)? {
                match units.are_left() {
                    true => continue,
                    false => break,
                }
            }
            self.add_row(exec, &mut key)?;
        }
        if self.groups.0.is_empty() && self.group.scalar {
            let group = GroupState::new(Vec::new(), &self.group.aggregates);
            self.groups.0.push(group);
        }
        self.finish(exec)
    }

    /// Groups the rows of the input's next unit; `false` where the next rows are to be had from the
    /// input itself.
    fn add_unit(
        &mut self,
        exec: &mut Exec<'_>,
        input: &mut dyn Operator,
        units: &mut Units<GroupWork>,
        batches: &mut Option<Option<BatchGroups<'p>>>,
        key: &mut KeyBuf,
    ) -> Result<bool> {
        let Some(scan) = input.raw_rows() else {
            return Ok(false);
        };
        if self.aside.is_some() {
            units.end(scan);
            return Ok(false);
        }
        let group = self.group;
        let program =
            |exec: &mut Exec<'_>, scan: &mut dyn RawRows| GroupWork::new(exec, group, scan);
        let Some(unit) = units.next(exec, scan, program)? else {
            return Ok(false);
        };
        let (work, computed) = (unit.work(), unit.computed()?);
        let new = || BatchGroups::new(exec, work.slot(), group);
        let batches = batches.get_or_insert_with(new);
        let mut numbers = Vec::with_capacity(computed.groups);
        for group in 0..computed.groups {
            let (spelled, row) = work.key(&unit, computed, group);
            let number = match batches {
                Some(batches) => batches.find(exec, self, spelled, key, |exec| {
                    load_row(exec, work.slot(), row);
                })?,
                None => {
                    load_row(exec, work.slot(), row);
                    self.find(exec, key, &mut SmallVec::new())?
                }
            };
            let Some(number) = number else {
                // From here on there are no new groups: rows of others are put aside one by one.
                scan.put_back(unit.into_rows());
                units.end(scan);
                return Ok(true);
            };
            numbers.push(number);
        }
        let mut groups = GroupsOfUnit {
            groups: &mut self.groups.0,
            numbers: &numbers,
        };
        computed.give(exec, &mut groups)?;
        scan.count_raw(exec, computed.examined, computed.passed);
        Ok(true)
    }

    /// Groups the current row. `key` is overwritten.
    fn add_row(&mut self, exec: &mut Exec<'_>, key: &mut KeyBuf) -> Result<()> {
        let values = &mut SmallVec::new();
        let Some(number) = self.find(exec, key, values)? else {
            return self.put_aside(exec, key, values);
        };
        let group = &mut self.groups.0[number];
        group.add(exec, &self.group.aggregates, number, &mut self.distinct)
    }

    /// The number of the current row's group, with its key and the values that it was made of.
    fn find(
        &mut self,
        exec: &mut Exec<'_>,
        key: &mut KeyBuf,
        values: &mut SmallVec<[Value; 4]>,
    ) -> Result<Option<usize>> {
        key.clear();
        for expr in &self.group.keys {
            let value = expr.eval(exec)?;
            append_key(exec, &value, &expr.ty, false, key)?;
            values.push(value);
        }
        self.number_of(exec, key, values)
    }

    /// Groups the rows of a batch.
    fn add_batch(
        &mut self,
        exec: &mut Exec<'_>,
        batches: Option<&mut BatchGroups<'p>>,
        batch: Batch<'_>,
        key: &mut KeyBuf,
    ) -> Result<()> {
        let mut done = 0;
        if let Some(batches) = batches
            && !batches.is_hopeless
            && self.aside.is_none()
        {
            done = batches.add(exec, self, &batch, key)?;
        }
        for row in &batch.rows[done..] {
            exec.check_interrupt()?;
            load_row(exec, batch.slot, row);
            self.add_row(exec, key)?;
        }
        Ok(())
    }

    /// The number of a key's group, which is made if it may be.
    #[inline]
    fn number_of(
        &mut self,
        exec: &Exec<'_>,
        key: &[u8],
        values: &mut SmallVec<[Value; 4]>,
    ) -> Result<Option<usize>> {
        if self.aside.is_some() {
            return Ok(self.by_key.get(key));
        }
        let account = &exec.session.memory;
        let (number, is_new) = self.by_key.insert(account, key)?;
        if is_new {
            let values = std::mem::take(values);
            let aggregates = &self.group.aggregates;
            let bytes = GroupState::bytes(key, values.len(), aggregates);
            self.charge.add(account, bytes)?;
            self.groups
                .0
                .push(GroupState::new(values.into_vec(), aggregates));
            let bytes = self.by_key.bytes() + self.charge.bytes() + self.distinct.bytes();
            if bytes >= self.asked_at {
                self.asked_at = bytes + ASKED_EVERY_BYTES;
                if account.is_to_spill(Buffer::Table, bytes) {
                    self.stop_growing(exec)?;
                }
            }
        }
        Ok(Some(number))
    }

    /// From here on there are no new groups.
    #[cold]
    fn stop_growing(&mut self, exec: &Exec<'_>) -> Result<()> {
        let account = &exec.session.memory;
        let hashing = self
            .hashing
            .unwrap_or_else(|| Hashing::new(account, Buffer::Table));
        if self.hashing.is_none() {
            exec.count_disk_table();
        }
        self.aside = Some((hashing, hashing.create(account)?));
        if self.group.aggregates.iter().any(|a| a.distinct) {
            self.distinct.put_aside(exec)?;
        }
        Ok(())
    }

    /// Puts the current row aside.
    fn put_aside(&mut self, exec: &mut Exec<'_>, key: &[u8], keys: &[Value]) -> Result<()> {
        let mut arguments: SmallVec<[Value; 4]> = SmallVec::new();
        let aggregates = self.group.aggregates.iter();
        for argument in aggregates.flat_map(|aggregate| &aggregate.arguments) {
            arguments.push(argument.eval(exec)?);
        }
        let Some((hashing, aside)) = &mut self.aside else {
            return Ok(());
        };
        aside.push(hashing.part_of(key), |out| {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            for value in keys.iter().chain(&arguments) {
                saved::write(value, out);
            }
        })
    }

    /// All rows have come.
    fn finish(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        if let Some((hashing, aside)) = self.aside.take() {
            let parts = filled(aside.finish()?).into_iter();
            self.parts
                .extend(parts.map(|part| (hashing.deeper(), part)));
        }
        self.by_key.clear();
        self.distinct
            .settle(exec, &self.group.aggregates, &mut self.groups.0)
    }

    /// Groups the rows of a part.
    fn read_part(&mut self, exec: &mut Exec<'_>, hashing: Hashing, part: &Part) -> Result<()> {
        self.clear();
        self.hashing = Some(hashing);
        let mut reader = part.reader();
        while let Some(entry) = reader.next_entry()? {
            exec.check_interrupt()?;
            let (key, mut row) = split_entry(entry).ok_or_else(unreadable)?;
            let keys = read_values(&mut row, self.group.keys.len())?;
            let mut keys = keys.into_iter().collect();
            let Some(number) = self.number_of(exec, key, &mut keys)? else {
                if let Some((hashing, aside)) = &mut self.aside {
                    aside.push(hashing.part_of(key), |out| out.extend_from_slice(entry))?;
                }
                continue;
            };
            let (group, aggregates) = (&mut self.groups.0[number], &self.group.aggregates);
            group.add_saved(exec, aggregates, number, &mut self.distinct, row)?;
        }
        self.finish(exec)
    }

    /// Leaves the next group in its slot; false if there is none.
    pub(super) fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            if let Some(group) = self.groups.0.get_mut(self.at) {
                exec.check_interrupt()?;
                self.at += 1;
                let mut group = std::mem::take(group);
                group.finish(exec, self.group.slot, usize::MAX, false)?;
                return Ok(true);
            }
            let Some((hashing, part)) = self.parts.pop() else {
                self.clear();
                return Ok(false);
            };
            self.read_part(exec, hashing, &part)?;
        }
    }
}

/// Rows of batches on their way to their groups.
///
/// Which group a row belongs to is looked up by the very bytes of its keys, so that a key that a
/// collation makes, as each group has it, is made once for each spelling of it.
struct BatchGroups<'p> {
    program: GroupProgram<'p>,
    /// The groups' numbers, by the numbers of such bytes.
    by_bytes: KeyMap,
    numbers: Vec<u32>,
    partition: Partition,
    /// How many rows were looked up, and how many of them were not found.
    looked_up: usize,
    missed: usize,
    tries: Tries,
    is_hopeless: bool,
}

/// So many spellings are known at most, each of so many bytes: they are no reason for groups to go to
/// disk.
const SPELLINGS_MAX: usize = 4096;
const SPELLING_BYTES_MAX: usize = 128;

impl<'p> BatchGroups<'p> {
    /// `None` where nothing is gained by it.
    fn new(exec: &mut Exec<'_>, slot: SlotId, group: &'p Group) -> Option<BatchGroups<'p>> {
        let (keys, aggregates) = (&group.keys, &group.aggregates);
        Some(BatchGroups {
            program: GroupProgram::new(exec, slot, keys, aggregates)?,
            by_bytes: KeyMap::default(),
            numbers: Vec::new(),
            partition: Partition::default(),
            looked_up: 0,
            missed: 0,
            tries: Tries::default(),
            is_hopeless: false,
        })
    }

    /// Whether looking rows up finds enough of them.
    fn looks_up(&self) -> bool {
        self.looked_up < 2 * SPELLINGS_MAX || self.missed < self.looked_up / 2
    }

    /// The number of the group that a key belongs to, by its bytes, or by one of its rows, which `load`
    /// makes the current one. `None`: it has no group, and there are to be no more.
    fn find(
        &mut self,
        exec: &mut Exec<'_>,
        groups: &mut HashGroup<'p>,
        spelled: &[u8],
        key: &mut KeyBuf,
        load: impl FnOnce(&mut Exec<'_>),
    ) -> Result<Option<usize>> {
        let mut spelling = None;
        if spelled.len() <= SPELLING_BYTES_MAX && self.looks_up() {
            self.looked_up += 1;
            spelling = match self.numbers.len() < SPELLINGS_MAX {
                true => Some(self.by_bytes.insert(&exec.session.memory, spelled)?),
                false => self.by_bytes.get(spelled).map(|number| (number, false)),
            };
            if let Some((known, false)) = spelling {
                return Ok(Some(self.numbers[known] as usize));
            }
            self.missed += 1;
        }
        load(exec);
        let group = groups.find(exec, key, &mut SmallVec::new())?;
        let number = group.and_then(|group| u32::try_from(group).ok());
        if let Some(number) = number.filter(|_| spelling.is_some()) {
            self.numbers.push(number);
        }
        Ok(number.map(|number| number as usize))
    }

    /// Adds rows to their groups; how many of them, from the first one. Those behind are to be grouped
    /// one by one.
    fn add(
        &mut self,
        exec: &mut Exec<'_>,
        groups: &mut HashGroup<'p>,
        batch: &Batch<'_>,
        key: &mut KeyBuf,
    ) -> Result<usize> {
        let layouts = exec.layouts;
        let layout = &*layouts[batch.slot.0 as usize].layout;
        let Some(keys) = self.program.keys().run(exec, layout, &batch.rows)? else {
            self.is_hopeless = !self.tries.note(false);
            return Ok(0);
        };
        let mut groups_of = Vec::with_capacity(batch.rows.len());
        let mut bytes = KeyBuf::new();
        for (number, row) in batch.rows.iter().enumerate() {
            let group = match self.looks_up() {
                true => {
                    self.program.keys().spell(exec, &keys, number, &mut bytes)?;
                    self.find(exec, groups, &bytes, key, |exec| {
                        load_row(exec, batch.slot, row);
                    })?
                }
                false => {
                    load_row(exec, batch.slot, row);
                    groups.find(exec, key, &mut SmallVec::new())?
                }
            };
            let Some(group) = group.and_then(|group| u32::try_from(group).ok()) else {
                break;
            };
            groups_of.push(group);
        }
        let done = groups_of.len();
        let mut rows = batch.rows[..done].to_vec();
        let runs = self.partition.sort(&mut rows, &groups_of);
        let arguments = self.program.arguments(exec, layout, &rows)?;
        self.is_hopeless = !self.tries.note(arguments.is_some());
        let Some(arguments) = arguments else {
            return Ok(0);
        };
        for (group, rows) in runs {
            let values = (&self.program, &arguments);
            let (state, aggregates) = (&mut groups.groups.0[group], &groups.group.aggregates);
            state.add_batch(
                exec,
                aggregates,
                values,
                (group, rows),
                &mut groups.distinct,
            )?;
        }
        Ok(done)
    }
}

/// The key of a row that was put aside, and the values.
fn split_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = entry.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}
