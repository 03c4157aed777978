//! What a transaction has written and not committed.
//!
//! A space's writes are an ordered map behind a reference count. A cursor takes the map as it is; a
//! later write of the same transaction copies the map if a cursor still holds it. So a statement
//! that reads a range while it writes to it never meets its own writes, and a cursor borrows
//! nothing.
//!
//! A savepoint is the number of changes so far; going back to it puts back what was written since,
//! newest first. For that each write leaves in `undo` what it replaced, from the first savepoint on
//! that was taken behind a write. Before there is one, the only moment to go back to is the
//! beginning, and that is to drop everything: a transaction of one statement, which may write
//! millions of rows, keeps no list.
//!
//! **Very many writes** take another form ([`large`]): a memtable of the transaction's own, in which
//! a write takes less than half of the memory, and that is committed as it is. Blocks of rows make
//! room for it. An overlay changes its
//! form as it grows beyond what makes a checkpoint due anyhow. Beyond what a transaction may take in
//! memory it goes on in files ([`crate::spill`]). All transactions may take so much together: of more, those
//! with more than the average change their form, and go on in files.
//!
//! The overlay lies behind a lock that only its own transaction ever takes to write: whoever reads
//! what isn't committed ([`crate::uncommitted`]) takes it to read, for a row or a batch of them.

mod large;

use std::collections::BTreeMap;
use std::ops::{Bound, Deref};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::blocks::{BlockCache, CacheLoan};
use crate::cursor::Layer;
use crate::memtable::{Key, Memtable, Value};
use crate::reclaim::reclaim;
use crate::spill::{Run, RunValue, Runs, SpillFile};
use crate::{CommitTs, Direction, Result, SpaceId};
use large::LargeWrites;

pub(crate) type Writes = BTreeMap<Key, Value>;

struct SpaceOverlay {
    space: SpaceId,
    writes: Arc<Writes>,
    net_rows: i64,
}

/// What a transaction has written, one after another.
pub(crate) enum Write<'a> {
    Put(SpaceId, &'a [u8], &'a [u8]),
    Delete(SpaceId, &'a [u8]),
    /// Behind a space's writes: how many rows it has more.
    Rows(SpaceId, i64),
}

impl<'a> Write<'a> {
    fn of(space: SpaceId, key: &'a [u8], value: Option<&'a [u8]>) -> Write<'a> {
        match value {
            Some(value) => Write::Put(space, key, value),
            None => Write::Delete(space, key),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpaceChange {
    Create,
    Drop,
}

#[derive(Default)]
pub(crate) struct Overlay {
    /// The writes, unless they are `large`.
    spaces: SmallVec<[SpaceOverlay; 2]>,
    large: Option<Box<LargeWrites>>,
    pub changes: Vec<(SpaceId, SpaceChange)>,
    /// How many writes and space changes there are that haven't been undone.
    count: usize,
    /// What it takes to undo the last of them; `None` while nobody could ask for that.
    undo: Option<Vec<Undo>>,
    held_bytes: usize,
    /// Memory of the cache, from [`BORROWED_FROM`] on and until the writes are `large`, which have their own.
    loan: Option<CacheLoan>,
}

/// A transaction's overlay, and its readers'.
#[derive(Default)]
pub(crate) struct SharedOverlay(pub RwLock<Overlay>);

impl Drop for SharedOverlay {
    fn drop(&mut self) {
        std::mem::take(self.0.get_mut()).discard();
    }
}

/// Writes that take no more memory aren't counted among those of all transactions.
pub(crate) const BORROWED_FROM: usize = 1 << 20;

/// What a write takes beside its key and its value: its places in the map and in `undo`, what the
/// allocator adds, and the head of its operation in the log record.
const WRITE_BYTES: usize = 200;

/// What a write takes until the transaction ends. Key and value count twice, as COMMIT encodes them
/// into the log record: what a commit needs is counted before.
fn write_bytes(key: &Key, value: &Value) -> usize {
    WRITE_BYTES + 2 * (key.len() + value.as_ref().map_or(0, |value| value.len()))
}

enum Undo {
    Write {
        space: SpaceId,
        key: Key,
        before: Option<Value>,
        net_rows: i64,
    },
    Change,
}

/// A moment within a transaction to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

impl Savepoint {
    /// Whether nothing was written before it.
    pub(crate) fn is_first(self) -> bool {
        self.0 == 0
    }

    /// How much work would be lost by a rollback: what a deadlock's victim is chosen by.
    pub(crate) fn weight(self) -> usize {
        self.0
    }
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.large.is_none()
            && self.spaces.iter().all(|s| s.writes.is_empty())
    }

    /// How many bytes the writes take, with those that they replaced, and will take at COMMIT.
    pub fn held_bytes(&self) -> usize {
        match &self.large {
            Some(large) => large.held_bytes(),
            None => self.held_bytes,
        }
    }

    fn writes(&self, space: SpaceId) -> Option<&Arc<Writes>> {
        let found = self.spaces.iter().find(|s| s.space == space)?;
        (!found.writes.is_empty()).then_some(&found.writes)
    }

    /// Whether there are writes to a space.
    pub fn has(&self, space: SpaceId) -> bool {
        match &self.large {
            Some(large) => large.memtable.spaces.get(space).is_some(),
            None => self.writes(space).is_some(),
        }
    }

    /// A space's writes as they are now, for a cursor: the newer ones first.
    pub fn layers(&self, space: SpaceId) -> [Option<Layer>; 2] {
        match &self.large {
            Some(large) => large.layers(space),
            None => [self.writes(space).cloned().map(Layer::Overlay), None],
        }
    }

    /// What was written of a key, if anything was.
    #[inline]
    pub fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<Option<OwnValue<'_>>>> {
        if let Some(large) = &self.large {
            return large.get(space, key);
        }
        let written = self.writes(space).and_then(|writes| writes.get(key));
        Ok(written.map(|value| value.as_deref().map(OwnValue::Lent)))
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
        if let Some(large) = &self.large {
            return large.copy_writes(space, bounds, direction, len, to);
        }
        if let Some(writes) = self.writes(space) {
            copy_writes(writes, bounds, direction, len, to);
        }
        Ok(())
    }

    /// Gives each of the writes that weren't spilled, space by space, in the order of their keys.
    pub fn each_write<E>(
        &self,
        mut give: impl FnMut(Write<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for of in &self.spaces {
            for (key, value) in of.writes.iter() {
                give(Write::of(of.space, key, value.as_deref()))?;
            }
            give(Write::Rows(of.space, of.net_rows))?;
        }
        let spaces = self
            .large
            .iter()
            .flat_map(|large| large.memtable.spaces.iter());
        for (space, versions) in spaces {
            for (key, value) in versions.newest() {
                give(Write::of(space, key, value))?;
            }
            let net_rows = versions.net_rows.load(Ordering::Relaxed);
            give(Write::Rows(space, net_rows))?;
        }
        Ok(())
    }

    /// About how long the writes are in the log.
    pub fn payload_bytes(&self) -> usize {
        const HEAD_BYTES: usize = 16;
        let writes = self.spaces.iter().flat_map(|of| of.writes.iter());
        let bytes = |(key, value): (&Key, &Value)| {
            key.len() + value.as_ref().map_or(0, |value| value.len()) + HEAD_BYTES
        };
        writes.map(bytes).sum()
    }

    /// Puts the writes into a memtable, as those of one commit.
    pub fn insert_into(&self, memtable: &Memtable, ts: CommitTs) {
        for of in &self.spaces {
            let writes = of.writes.iter();
            let writes = writes.map(|(key, value)| (&**key, value.as_deref()));
            memtable.insert(of.space, ts, of.net_rows, writes);
        }
        self.change_spaces(memtable, ts);
    }

    /// Notes in a memtable which spaces a commit has created and dropped.
    pub fn change_spaces(&self, memtable: &Memtable, ts: CommitTs) {
        for (space, change) in &self.changes {
            let versions = memtable.space(*space);
            if *change == SpaceChange::Drop {
                versions.drop_at(ts);
            }
        }
    }

    /// The memtable that the writes are, if they are so many.
    pub fn large(&self) -> Option<&Arc<Memtable>> {
        Some(&self.large.as_ref()?.memtable)
    }

    /// What was spilled, if anything was.
    pub fn runs(&self) -> Option<&Arc<Runs>> {
        let runs = &self.large.as_ref()?.runs;
        (!runs.parts().is_empty()).then_some(runs)
    }

    /// Has the writes be a memtable of their own from now on.
    #[cold]
    pub fn enlarge(&mut self, cache: &Arc<BlockCache>) {
        if self.large.is_none() {
            let spaces = std::mem::take(&mut self.spaces);
            let large = LargeWrites::of(spaces, self.count, self.undo.as_mut(), cache.lend());
            self.large = Some(Box::new(large));
            self.loan = None;
        }
    }

    /// Has the cache make room for the writes. Gives how much of its memory they have.
    #[cold]
    pub fn borrow_from(&mut self, cache: &Arc<BlockCache>) -> usize {
        // Each time for more than there is, so that it isn't asked with each write.
        const STEP: usize = BORROWED_FROM / 2;
        if let Some(large) = &self.large {
            return large.borrowed_bytes();
        }
        let loan = self.loan.get_or_insert_with(|| cache.lend());
        if loan.bytes() < self.held_bytes {
            loan.grow_to(self.held_bytes + STEP);
        }
        loan.bytes()
    }

    /// How much memory spilling would free.
    pub fn bytes_to_spill(&self) -> usize {
        let large = self.large.as_ref();
        large.map_or(0, |large| large.bytes_to_spill())
    }

    /// Writes what is in memory to the end of a file. `None` if that is nothing.
    pub fn write_run(&self, file: &Arc<SpillFile>) -> Result<Option<Run>> {
        let large = self.large.as_ref();
        large.map_or(Ok(None), |large| large.write_run(file))
    }

    /// Goes on without what a run has now. Gives the memtable that had it, to be freed.
    pub fn spilled(&mut self, run: Option<Run>, cache: &Arc<BlockCache>) -> Option<Arc<Memtable>> {
        let large = self.large.as_mut()?;
        Some(large.spilled(run, cache.lend()))
    }

    fn space_mut(&mut self, space: SpaceId) -> &mut SpaceOverlay {
        let at = match self.spaces.iter().position(|s| s.space == space) {
            Some(at) => at,
            None => {
                self.spaces.push(SpaceOverlay {
                    space,
                    writes: Arc::default(),
                    net_rows: 0,
                });
                self.spaces.len() - 1
            }
        };
        &mut self.spaces[at]
    }

    pub fn write(&mut self, space: SpaceId, key: &[u8], value: Option<&[u8]>, net_rows: i64) {
        self.count += 1;
        if let Some(large) = &mut self.large {
            return large.write(space, (key, value), net_rows, self.undo.is_some());
        }
        let key: Key = key.into();
        let value: Value = value.map(Arc::from);
        self.held_bytes += write_bytes(&key, &value);
        let target = self.space_mut(space);
        let before = Arc::make_mut(&mut target.writes).insert(key.clone(), value);
        target.net_rows += net_rows;
        if let Some(undo) = &mut self.undo {
            undo.push(Undo::Write {
                space,
                key,
                before,
                net_rows,
            });
        }
    }

    pub fn change(&mut self, space: SpaceId, change: SpaceChange) {
        self.changes.push((space, change));
        self.count += 1;
        match (&mut self.undo, &mut self.large) {
            (undo, Some(large)) => large.note_change(undo.is_some()),
            (Some(undo), None) => undo.push(Undo::Change),
            (None, None) => {}
        }
    }

    /// Adds to the rows that a space has more after the commit.
    pub fn add_rows(&mut self, space: SpaceId, net: i64) {
        match &self.large {
            Some(large) => {
                let versions = large.memtable.space(space);
                versions.net_rows.fetch_add(net, Ordering::Relaxed);
            }
            None => self.space_mut(space).net_rows += net,
        }
    }

    /// These were spilled by writes that nobody can undo, before anything that is in memory was written.
    pub fn set_runs(&mut self, runs: Runs, cache: &Arc<BlockCache>) {
        let last = runs.parts().iter().map(|part| part.up_to).max();
        self.count = usize::try_from(last.unwrap_or(0)).unwrap_or(usize::MAX);
        self.enlarge(cache);
        if let Some(large) = &mut self.large {
            large.take_up(runs);
        }
    }

    /// From now on it can be gone back to this moment.
    pub fn keep_undo(&mut self) {
        self.undo.get_or_insert_default();
    }

    /// Gives up what it would take to undo the writes so far.
    pub fn forget_undo(&mut self) {
        self.undo = None;
        if let Some(large) = &mut self.large {
            large.forget_undo(0);
        }
    }

    /// Gives up, as the transaction commits, what it would take to undo very many writes: memory
    /// that the commit needs. Where some were spilled, that of all: the last run has no version then
    /// that only a savepoint could ask for.
    pub fn give_up_undo(&mut self) {
        const MANY: usize = 100_000;
        if self.runs().is_some() {
            return self.forget_undo();
        }
        if let Some(large) = &mut self.large {
            large.forget_undo(MANY);
        }
        if let Some(undo) = self.undo.take_if(|undo| undo.len() > MANY) {
            reclaim(undo);
        }
    }

    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.count)
    }

    /// Drops everything. What takes a while to free another thread frees.
    pub fn discard(self) {
        const LARGE_BYTES: usize = 16 << 20;
        let spilled = self.runs().map_or(0, |runs| runs.bytes());
        if self.held_bytes() > LARGE_BYTES || spilled > LARGE_BYTES as u64 {
            reclaim(self);
        }
    }

    /// Undoes at most `count` of the changes since the savepoint, or all that were spilled; `false`
    /// when there are no more.
    pub fn roll_back(&mut self, savepoint: Savepoint, count: usize) -> bool {
        let Some(undo) = &mut self.undo else {
            return false;
        };
        let end = savepoint.0.max(self.count.saturating_sub(count));
        while self.count > end {
            if let Some(large) = &mut self.large {
                if !large.undo_last(self.count, &mut self.changes) {
                    large.undo_spilled(savepoint.0, &mut self.changes);
                    self.count = savepoint.0;
                    return false;
                }
            } else {
                let Some(last) = undo.pop() else { break };
                let to = UndoTarget {
                    spaces: &mut self.spaces,
                    changes: &mut self.changes,
                    held_bytes: &mut self.held_bytes,
                };
                to.undo(last);
            }
            self.count -= 1;
        }
        let is_more = self.count == end && end > savepoint.0;
        if !is_more && undo.capacity() / 4 > undo.len() {
            undo.shrink_to(undo.len() * 2);
        }
        is_more
    }
}

/// What an undone change is undone in.
struct UndoTarget<'a> {
    spaces: &'a mut SmallVec<[SpaceOverlay; 2]>,
    changes: &'a mut Vec<(SpaceId, SpaceChange)>,
    held_bytes: &'a mut usize,
}

impl UndoTarget<'_> {
    fn undo(self, last: Undo) {
        let Undo::Write {
            space,
            key,
            before,
            net_rows,
        } = last
        else {
            self.changes.pop();
            return;
        };
        let Some(target) = self.spaces.iter_mut().find(|s| s.space == space) else {
            return;
        };
        let writes = Arc::make_mut(&mut target.writes);
        let undone = match before {
            Some(value) => writes.insert(key.clone(), value),
            None => writes.remove(&key),
        };
        let undone = undone.map_or(0, |value| write_bytes(&key, &value));
        *self.held_bytes = self.held_bytes.saturating_sub(undone);
        target.net_rows -= net_rows;
    }
}

/// A value that a transaction has written.
pub(crate) enum OwnValue<'a> {
    Lent(&'a [u8]),
    Spilled(RunValue),
}

impl Deref for OwnValue<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            OwnValue::Lent(value) => value,
            OwnValue::Spilled(value) => value,
        }
    }
}

/// Copies at most `len` of the writes within the bounds.
pub(crate) fn copy_writes(
    writes: &Writes,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    len: usize,
    to: &mut Vec<(Key, Value)>,
) {
    let entries = writes.range::<[u8], _>(bounds);
    let owned = |(key, value): (&Key, &Value)| (key.clone(), value.clone());
    match direction {
        Direction::Forward => to.extend(entries.take(len).map(owned)),
        Direction::Backward => to.extend(entries.rev().take(len).map(owned)),
    }
}
