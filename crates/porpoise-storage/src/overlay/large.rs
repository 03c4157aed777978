//! The writes of a transaction that has written very much: a memtable of its own.
//!
//! Each write is a version, told apart by its number in the order of the transaction's writes:
//!
//! ```text
//! row 7     4 1          a cursor that was opened behind write 3 sees what write 1 left of row 7
//! row 9     2            undoing write 4 takes the version out
//! row 12    3✗
//! ```
//!
//! Key and value lie in the memtable's arena once, and stay there when the transaction commits: the
//! memtable becomes one of those that all read from ([`crate::group_commit`]), without a copy. The
//! map needs no list of what a write replaced; to be undone a write leaves its place.
//!
//! **Spilling.** A memtable that takes too much memory is written to a file as a run
//! ([`crate::spill`]), and the writes go on in an empty one. Undoing writes of a run lowers the number
//! up to which its versions count. Numbers are never used again: where changes are undone, those to
//! come have greater ones, and [`Orders`] knows which number the change at a savepoint has.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{OwnValue, SpaceChange, SpaceOverlay};
use crate::blocks::CacheLoan;
use crate::cursor::{Layer, LayerCursor};
use crate::memtable::{Key, Memtable, Value};
use crate::spill::{Run, RunPart, RunWriter, Runs, SpillFile, filter_bytes};
use crate::version_map::WrittenEntry;
use crate::{CommitTs, Direction, Result, SpaceId};

pub(super) struct LargeWrites {
    pub memtable: Arc<Memtable>,
    /// What was spilled.
    pub runs: Arc<Runs>,
    /// The memory of the runs' indexes.
    index_bytes: usize,
    /// The number of the last change.
    last: u64,
    orders: Orders,
    /// The last changes, as far as the memtable has them.
    undo: Vec<Undo>,
    /// The numbers of those changes of spaces whose turn to be undone comes behind `undo`.
    spilled_changes: Vec<u64>,
    /// For how many bytes the cache has made room.
    borrowed: usize,
}

/// A change to be undone.
struct Undo {
    /// `None` for a change of a space.
    written: Option<WrittenEntry>,
    order: u64,
    space: SpaceId,
    net_rows: i32,
}

/// The numbers of changes by their counts: the `n`-th of those that haven't been undone.
///
/// Behind the count of each pair numbers follow each other from the pair's number on.
struct Orders(Vec<(usize, u64)>);

impl Orders {
    fn of(&self, count: usize) -> u64 {
        let behind = self.0.partition_point(|(from, _)| *from <= count);
        let pair = behind.checked_sub(1).map(|at| self.0[at]);
        pair.map_or(0, |(from, order)| order + (count - from) as u64)
    }

    /// All behind a count is undone; the next change gets the number after `last`.
    fn go_back(&mut self, count: usize, last: u64) {
        while self.0.pop_if(|(from, _)| *from >= count).is_some() {}
        self.0.push((count, last));
    }
}

/// The cache is asked to make room for so many bytes at a time.
const LOAN_STEP_BYTES: usize = 512 << 10;

/// The filters of all runs take this part of a memtable's memory at most.
const FILTER_SHARE: usize = 4;

impl LargeWrites {
    /// Takes over what was written so far, `count` changes, the last of them with what it takes to
    /// undo them.
    pub fn of(
        spaces: impl IntoIterator<Item = SpaceOverlay>,
        count: usize,
        undo: Option<&mut Vec<super::Undo>>,
        loan: CacheLoan,
    ) -> LargeWrites {
        let mut large = LargeWrites {
            memtable: Arc::new(Memtable::own(loan)),
            runs: Arc::default(),
            index_bytes: 0,
            last: 0,
            orders: Orders(vec![(0, 0)]),
            undo: Vec::new(),
            spilled_changes: Vec::new(),
            borrowed: 0,
        };
        let mut writes: BTreeMap<SpaceId, (super::Writes, i64)> = BTreeMap::new();
        for of in spaces {
            writes.insert(of.space, (Arc::unwrap_or_clone(of.writes), of.net_rows));
        }
        // What was written before anything could be undone, and then what came behind it.
        let mut later = Vec::new();
        for undo in undo.into_iter().flat_map(|undo| undo.drain(..).rev()) {
            let super::Undo::Write {
                space,
                key,
                before,
                net_rows,
            } = undo
            else {
                later.push(None);
                continue;
            };
            let (of, net) = writes.entry(space).or_default();
            *net -= net_rows;
            let value = match before {
                Some(before) => of.insert(key.clone(), before),
                None => of.remove(&key),
            };
            later.push(Some((space, key, value.flatten(), net_rows)));
        }
        large.last = (count - later.len()) as u64;
        for (space, (of, net_rows)) in writes {
            let rows = of.iter().map(|(key, value)| (&**key, value.as_deref()));
            let at = CommitTs(large.last);
            large.memtable.insert(space, at, net_rows, rows);
        }
        for change in later.into_iter().rev() {
            match change {
                Some((space, key, value, net)) => {
                    large.write(space, (&key, value.as_deref()), net, true);
                }
                None => large.note_change(true),
            }
        }
        large
    }

    /// These were spilled, before it was known that there are any.
    pub fn take_up(&mut self, runs: Runs) {
        // What is written is looked for where the memtable has the space.
        for space in runs.spaces() {
            self.memtable.space(space);
        }
        self.set_runs(runs);
    }

    pub fn held_bytes(&self) -> usize {
        self.bytes_to_spill().saturating_add(self.index_bytes)
    }

    /// How much of that spilling would free.
    pub fn bytes_to_spill(&self) -> usize {
        let bytes = usize::try_from(self.memtable.bytes()).unwrap_or(usize::MAX);
        bytes.saturating_add(self.undo.len() * size_of::<Undo>())
    }

    /// How much memory of the cache it has.
    pub fn borrowed_bytes(&self) -> usize {
        let loan = self.memtable.loan.as_ref();
        loan.map_or(0, CacheLoan::bytes)
    }

    fn set_runs(&mut self, runs: Runs) {
        self.index_bytes = runs.index_bytes();
        self.runs = Arc::new(runs);
    }

    /// What sees all writes so far, and none to come.
    pub fn now(&self) -> CommitTs {
        CommitTs(self.last)
    }

    pub fn write(
        &mut self,
        space: SpaceId,
        row: (&[u8], Option<&[u8]>),
        net_rows: i64,
        keeps_undo: bool,
    ) {
        self.last += 1;
        let written = self.memtable.write(space, self.last, net_rows, row);
        let bytes = self.bytes_to_spill();
        if bytes > self.borrowed {
            self.borrowed = bytes + LOAN_STEP_BYTES;
            if let Some(loan) = &self.memtable.loan {
                loan.grow_to(self.borrowed);
            }
        }
        if keeps_undo {
            self.undo.push(Undo {
                written: Some(written),
                order: self.last,
                space,
                net_rows: net_rows as i32,
            });
        }
    }

    /// A space was created or dropped.
    pub fn note_change(&mut self, keeps_undo: bool) {
        self.last += 1;
        if keeps_undo {
            self.undo.push(Undo {
                written: None,
                order: self.last,
                space: SpaceId(0),
                net_rows: 0,
            });
        }
    }

    /// What was written of a key, if anything was.
    pub fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<Option<OwnValue<'_>>>> {
        if let Some(value) = self.memtable.newest_of(space, key) {
            return Ok(Some(value.map(OwnValue::Lent)));
        }
        let spilled = self.runs.get(space, key)?;
        Ok(spilled.map(|value| value.map(OwnValue::Spilled)))
    }

    /// Undoes the last change, of `count` that there are, if the memtable has it; `false` if not.
    pub fn undo_last(&mut self, count: usize, changes: &mut Vec<(SpaceId, SpaceChange)>) -> bool {
        let Some(undo) = self.undo.pop() else {
            return false;
        };
        match undo.written {
            Some(written) => {
                let versions = self.memtable.space(undo.space);
                // SAFETY: the write was one of this space's versions.
                unsafe { versions.take_back(written, i64::from(undo.net_rows)) };
            }
            None => {
                changes.pop();
            }
        }
        self.orders.go_back(count - 1, self.last);
        if self.undo.capacity() / 4 > self.undo.len() {
            self.undo.shrink_to(self.undo.len() * 2);
        }
        true
    }

    /// Undoes the changes in runs behind the first `count`. The memtable has none of them any more.
    pub fn undo_spilled(&mut self, count: usize, changes: &mut Vec<(SpaceId, SpaceChange)>) {
        let last = self.orders.of(count);
        let mut parts = Vec::new();
        for part in self.runs.parts() {
            if part.up_to <= last {
                parts.push(part.clone());
                continue;
            }
            let is_all = part.run.orders.start > last;
            let undone = match is_all && part.run.orders.end <= part.up_to + 1 {
                true => Ok(part.run.net_rows().collect()),
                false => part.run.net_rows_between(last, part.up_to),
            };
            // The count is approximate; what counts as written isn't.
            for (space, net) in undone.unwrap_or_default() {
                let versions = self.memtable.space(space);
                versions.net_rows.fetch_sub(net, Ordering::Relaxed);
            }
            match is_all {
                true => part.run.undo(),
                false => parts.push(RunPart {
                    run: Arc::clone(&part.run),
                    up_to: last,
                }),
            }
        }
        self.set_runs(Runs::new(parts));
        while self.spilled_changes.pop_if(|order| *order > last).is_some() {
            changes.pop();
        }
        self.orders.go_back(count, self.last);
    }

    /// Forgets what it would take to undo writes, if those are more than so many.
    pub fn forget_undo(&mut self, many: usize) {
        if self.undo.len() > many {
            self.undo = Vec::new();
        }
    }

    /// The memtable's writes and those of the runs, as they are now: the newer first.
    pub fn layers(&self, space: SpaceId) -> [Option<Layer>; 2] {
        let versions = self.memtable.spaces.get(space);
        let versions = versions.map(Arc::clone);
        [
            versions.map(|versions| Layer::Versions(versions, self.now(), None)),
            self.runs
                .has(space)
                .then(|| Layer::Runs(Arc::clone(&self.runs), space)),
        ]
    }

    /// Copies at most `len` of a space's writes within the bounds.
    pub fn copy_writes(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        len: usize,
        to: &mut Vec<(Key, Value)>,
    ) -> Result<()> {
        let mut layers = Vec::new();
        for layer in self.layers(space).into_iter().flatten() {
            layers.push(LayerCursor::new(layer, bounds, direction)?);
        }
        while to.len() < len {
            let rows = layers.iter().filter_map(LayerCursor::current);
            // Of equal ones the first is taken, which is newer.
            let nearest = rows.min_by(|one, other| match direction {
                Direction::Forward => one.0.cmp(other.0),
                Direction::Backward => other.0.cmp(one.0),
            });
            let Some((key, value)) = nearest else {
                return Ok(());
            };
            let (key, value): (Key, Value) = (key.into(), value.map(Arc::from));
            for layer in &mut layers {
                layer.is_consumed = layer.current().is_some_and(|(own, _)| own == &*key);
                layer.advance_if_consumed()?;
            }
            to.push((key, value));
        }
        Ok(())
    }

    /// Writes what the memtable has to the end of a file. `None` if that is nothing.
    pub fn write_run(&self, file: &Arc<SpillFile>) -> Result<Option<Run>> {
        let keys = self.memtable.entries();
        let filters = self.runs.filter_bytes() + filter_bytes(keys);
        let has_filter = filters <= self.bytes_to_spill() / FILTER_SHARE;
        let mut writer = RunWriter::new(file, has_filter.then_some(keys));
        let mut spaces: Vec<_> = self.memtable.spaces.iter().collect();
        spaces.sort_unstable_by_key(|(space, _)| *space);
        // Nobody can go back to a moment before the first change that can be undone.
        let first_undone = self.undo.first().map_or(u64::MAX, |undo| undo.order);
        for (space, versions) in spaces {
            writer.begin_space(space)?;
            for entry in versions.keys() {
                let mut is_needed = true;
                let versions = entry.versions().take_while(|(order, _)| {
                    std::mem::replace(&mut is_needed, *order >= first_undone)
                });
                let mut versions =
                    versions.map(|(order, value)| (order, self.net_rows_of(order), value));
                writer.push(entry.key(), &mut versions)?;
            }
        }
        writer.finish()
    }

    /// How many rows a change added, if it can be undone.
    fn net_rows_of(&self, order: u64) -> i64 {
        let undo = &self.undo;
        let at = undo.binary_search_by_key(&order, |undo| undo.order);
        at.map_or(0, |at| i64::from(undo[at].net_rows))
    }

    /// Goes on with an empty memtable, now that a run has what this one has. Gives the memtable.
    pub fn spilled(&mut self, run: Option<Run>, loan: CacheLoan) -> Arc<Memtable> {
        let next = Memtable::own(loan);
        for (space, versions) in self.memtable.spaces.iter() {
            let (net_rows, changes) = (&versions.net_rows, &versions.changes);
            let of = next.space(space);
            of.net_rows
                .store(net_rows.load(Ordering::Relaxed), Ordering::Relaxed);
            of.changes
                .store(changes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let undo = std::mem::take(&mut self.undo);
        let changes = undo.iter().filter(|undo| undo.written.is_none());
        self.spilled_changes.extend(changes.map(|undo| undo.order));
        if let Some(run) = run {
            let part = RunPart {
                up_to: self.last,
                run: Arc::new(run),
            };
            let older = self.runs.parts().iter().cloned();
            let parts = std::iter::once(part).chain(older).collect();
            self.set_runs(Runs::new(parts));
        }
        self.borrowed = 0;
        std::mem::replace(&mut self.memtable, Arc::new(next))
    }
}
