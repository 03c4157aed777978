//! The running aggregates of a group, and the distinct values that memory doesn't hold.
//!
//! An aggregate with DISTINCT keeps the values that its group has had. When these sets are too large
//! they grow no more: a value that no set has is put aside, and what was put aside is told apart when
//! all rows have come, a part at a time.

use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, ITEMS_MANY, reclaim};
use porpoise_core::temporary_file::{Part, PartWriter};
use porpoise_expr::aggregate::{Accumulator, Aggregate};
use porpoise_expr::{EvalContext, SlotId};
use porpoise_types::vector::{ElementSlice, VectorSlice};
use porpoise_types::{KeyBuf, Value, saved};
use smallvec::SmallVec;

use crate::Exec;
use crate::batch::{self, GroupProgram};
use crate::eval::{Evaluate, append_key, cancellable, may_take_long};
use crate::key_map::KeyMap;
use crate::spill::{Hashing, filled, unreadable};

/// The running aggregates of one group.
#[derive(Default)]
pub(super) struct GroupState {
    keys: Vec<Value>,
    accumulators: Vec<Running>,
}

/// The groups of a hash. Each is several allocations: many are freed by another thread.
#[derive(Default)]
pub(super) struct Groups(pub(super) Vec<GroupState>);

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

pub(super) type Arguments = SmallVec<[Value; 2]>;

impl GroupState {
    /// About how many bytes a group takes, beside what its aggregates collect.
    pub(super) fn bytes(key: &[u8], keys: usize, aggregates: &[Aggregate]) -> usize {
        /// An accumulator's own state, and the allocation of it.
        const STATE_BYTES: usize = 64;
        size_of::<GroupState>()
            + key.len()
            + keys * size_of::<Value>()
            + aggregates.len() * (size_of::<Running>() + STATE_BYTES)
    }

    pub(super) fn new(keys: Vec<Value>, aggregates: &[Aggregate]) -> GroupState {
        let accumulators = aggregates
            .iter()
            .map(|aggregate| Running {
                accumulator: (aggregate.function.start)(aggregate),
                seen: aggregate.distinct.then(Box::default),
            })
            .collect();
        GroupState { keys, accumulators }
    }

    /// Takes the current row. `group` is the group's number among those that share `distinct`.
    pub(super) fn add(
        &mut self,
        exec: &mut Exec<'_>,
        aggregates: &[Aggregate],
        group: usize,
        distinct: &mut DistinctValues,
    ) -> Result<()> {
        for (number, aggregate) in aggregates.iter().enumerate() {
            let mut arguments = Arguments::new();
            for argument in &aggregate.arguments {
                arguments.push(argument.eval(exec)?);
            }
            self.take(exec, aggregate, [group, number], &arguments, distinct)?;
        }
        Ok(())
    }

    /// Takes rows of a batch, whose arguments are at hand.
    pub(super) fn add_batch(
        &mut self,
        exec: &mut Exec<'_>,
        aggregates: &[Aggregate],
        (program, arguments): (&GroupProgram<'_>, &batch::Arguments<'_>),
        (group, rows): (usize, Range<usize>),
        distinct: &mut DistinctValues,
    ) -> Result<()> {
        for (number, aggregate) in aggregates.iter().enumerate() {
            if aggregate.distinct {
                let slice = program.argument(arguments, rows.clone(), number);
                self.take_slice(exec, aggregate, [group, number], slice, distinct)?;
            } else {
                let accumulator = &mut *self.accumulators[number].accumulator;
                program.add(exec, arguments, rows.clone(), number, accumulator)?;
            }
        }
        Ok(())
    }

    /// Takes the argument that an aggregate with DISTINCT has in each row.
    fn take_slice(
        &mut self,
        exec: &mut Exec<'_>,
        aggregate: &Aggregate,
        place: [usize; 2],
        slice: VectorSlice<'_>,
        distinct: &mut DistinctValues,
    ) -> Result<()> {
        for row in 0..slice.len() {
            // In an index's order, equal ones are neighbours.
            let is_as_before = row > 0
                && !slice.is_null(row - 1)
                && match slice.elements {
                    ElementSlice::Integers(v) => v[row] == v[row - 1],
                    ElementSlice::Texts(v) => v[row] == v[row - 1],
                    _ => false,
                };
            if slice.is_null(row) || is_as_before {
                continue;
            }
            self.take(exec, aggregate, place, &[slice.value(row)], distinct)?;
        }
        Ok(())
    }

    /// Takes a row whose arguments were put aside, those of one aggregate after the other.
    pub(super) fn add_saved(
        &mut self,
        exec: &mut Exec<'_>,
        aggregates: &[Aggregate],
        group: usize,
        distinct: &mut DistinctValues,
        mut row: &[u8],
    ) -> Result<()> {
        for (number, aggregate) in aggregates.iter().enumerate() {
            let arguments = read_values(&mut row, aggregate.arguments.len())?;
            self.take(exec, aggregate, [group, number], &arguments, distinct)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        exec: &mut Exec<'_>,
        aggregate: &Aggregate,
        place: [usize; 2],
        arguments: &[Value],
        distinct: &mut DistinctValues,
    ) -> Result<()> {
        let running = &mut self.accumulators[place[1]];
        if let Some(seen) = &mut running.seen
            && !distinct.is_new(exec, seen, aggregate, place, arguments)?
        {
            return Ok(());
        }
        running.accumulator.add(exec, arguments)
    }

    /// The group's row: keys (NULL from `keep` on, for ROLLUP's sums), then aggregates.
    /// With ROLLUP, the mask of the keys that are rolled up comes last.
    pub(super) fn finish(
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
        match values.iter().any(may_take_long) {
            true => cancellable(exec, |exec| exec.fill(slot, &values)),
            false => exec.fill(slot, &values),
        }
    }
}

/// The groups that a unit's groups are.
pub(super) struct GroupsOfUnit<'g> {
    pub(super) groups: &'g mut [GroupState],
    /// By the number that a group has within the unit; without any, all are the first.
    pub(super) numbers: &'g [usize],
}

impl batch::Accumulators for GroupsOfUnit<'_> {
    fn of(&mut self, group: usize, aggregate: usize) -> &mut dyn Accumulator {
        let number = self.numbers.get(group).copied().unwrap_or(0);
        &mut *self.groups[number].accumulators[aggregate].accumulator
    }
}

/// Takes values that were put aside.
pub(super) fn read_values(row: &mut &[u8], count: usize) -> Result<Arguments> {
    let values = (0..count).map(|_| saved::read(row));
    values.collect::<Option<_>>().ok_or_else(unreadable)
}

/// So often sets that grow ask whether they are to grow no more.
const ASKED_EVERY_BYTES: usize = 64 << 10;

/// The distinct values of some groups' aggregates.
#[derive(Default)]
pub(super) struct DistinctValues {
    /// How much memory the sets take, in bytes.
    bytes: usize,
    asked_at: usize,
    /// Where values go that the sets don't have, when these grow no more.
    aside: Option<(Hashing, PartWriter)>,
}

impl DistinctValues {
    /// How much memory the sets take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a group's aggregate takes a row's arguments: it has not had them. If that isn't known
    /// yet, they are put aside.
    fn is_new(
        &mut self,
        exec: &mut Exec<'_>,
        seen: &mut KeyMap,
        aggregate: &Aggregate,
        place: [usize; 2],
        arguments: &[Value],
    ) -> Result<bool> {
        // Only whole combinations count: one NULL and the row is left out.
        let counted = aggregate
            .arguments
            .len()
            .saturating_sub(aggregate.order.len());
        if arguments[..counted].iter().any(Value::is_null) {
            return Ok(false);
        }
        let mut key = KeyBuf::new();
        for (value, expr) in arguments[..counted].iter().zip(&aggregate.arguments) {
            append_key(exec, value, &expr.ty, false, &mut key)?;
        }
        if let Some((hashing, aside)) = &mut self.aside {
            if seen.get(&key).is_none() {
                let part = hashing.part_of((place, key.as_slice()));
                aside.push(part, |out| write_entry(place, &key, arguments, out))?;
            }
            return Ok(false);
        }
        let before = seen.bytes();
        let is_new = seen.insert(&exec.session.memory, &key)?.1;
        self.bytes += seen.bytes() - before;
        if self.bytes >= self.asked_at {
            self.asked_at = self.bytes + ASKED_EVERY_BYTES;
            if exec.session.memory.is_to_spill(Buffer::Table, self.bytes) {
                exec.count_disk_table();
                self.put_aside(exec)?;
            }
        }
        Ok(is_new)
    }

    /// From here on the sets don't grow.
    #[cold]
    pub(super) fn put_aside(&mut self, exec: &Exec<'_>) -> Result<()> {
        if self.aside.is_none() {
            let account = &exec.session.memory;
            let hashing = Hashing::new(account, Buffer::Table);
            self.aside = Some((hashing, hashing.create(account)?));
        }
        Ok(())
    }

    /// Gives the aggregates what was put aside: all rows have come.
    pub(super) fn settle(
        &mut self,
        exec: &mut Exec<'_>,
        aggregates: &[Aggregate],
        groups: &mut [GroupState],
    ) -> Result<()> {
        let Some((hashing, aside)) = std::mem::take(self).aside else {
            return Ok(());
        };
        for running in groups.iter_mut().flat_map(|group| &mut group.accumulators) {
            if let Some(seen) = &mut running.seen {
                seen.clear();
            }
        }
        let mut parts = deeper(hashing, aside.finish()?);
        while let Some((hashing, part)) = parts.pop() {
            parts.extend(settle_part(exec, aggregates, groups, hashing, &part)?);
        }
        Ok(())
    }
}

fn deeper(hashing: Hashing, parts: Vec<Part>) -> Vec<(Hashing, Part)> {
    let parts = filled(parts).into_iter();
    parts.map(|part| (hashing.deeper(), part)).collect()
}

/// Gives the aggregates the distinct values of a part, and those that are too many for memory back
/// as parts.
fn settle_part(
    exec: &mut Exec<'_>,
    aggregates: &[Aggregate],
    groups: &mut [GroupState],
    hashing: Hashing,
    part: &Part,
) -> Result<Vec<(Hashing, Part)>> {
    let account = exec.session.memory.clone();
    let mut seen = KeyMap::default();
    let mut aside: Option<PartWriter> = None;
    let mut asked_at = ASKED_EVERY_BYTES;
    let mut reader = part.reader();
    while let Some(entry) = reader.next_entry()? {
        exec.check_interrupt()?;
        let (place, key, mut values) = read_entry(entry).ok_or_else(unreadable)?;
        let whole = &entry[..entry.len() - values.len()];
        if let Some(aside) = &mut aside {
            if seen.get(whole).is_none() {
                let part = hashing.part_of((place, key));
                aside.push(part, |out| out.extend_from_slice(entry))?;
            }
            continue;
        }
        if !seen.insert(&account, whole)?.1 {
            continue;
        }
        let [group, number] = place;
        let aggregate = aggregates.get(number).ok_or_else(unreadable)?;
        let group = groups.get_mut(group).ok_or_else(unreadable)?;
        let arguments = read_values(&mut values, aggregate.arguments.len())?;
        group.accumulators[number]
            .accumulator
            .add(exec, &arguments)?;
        if seen.bytes() >= asked_at {
            asked_at = seen.bytes() + ASKED_EVERY_BYTES;
            if account.is_to_spill(Buffer::Table, seen.bytes()) {
                aside = Some(hashing.create(&account)?);
            }
        }
    }
    match aside {
        Some(aside) => Ok(deeper(hashing, aside.finish()?)),
        None => Ok(Vec::new()),
    }
}

/// An entry: the group's and the aggregate's numbers, the key's length, the key, the arguments.
fn write_entry(place: [usize; 2], key: &[u8], arguments: &[Value], out: &mut Vec<u8>) {
    for number in [place[0], place[1], key.len()] {
        out.extend_from_slice(&(number as u32).to_le_bytes());
    }
    out.extend_from_slice(key);
    for value in arguments {
        saved::write(value, out);
    }
}

/// The numbers, the key and the arguments of an entry.
fn read_entry(entry: &[u8]) -> Option<([usize; 2], &[u8], &[u8])> {
    let mut rest = entry;
    let mut number = || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        Some(u32::from_le_bytes(*head) as usize)
    };
    let (group, aggregate, len) = (number()?, number()?, number()?);
    let (key, values) = rest.split_at_checked(len)?;
    Some(([group, aggregate], key, values))
}
