//! Committed versions that redb doesn't hold yet.
//!
//! A **memtable** holds what was committed between two checkpoints. Commits go to the newest one; a
//! checkpoint switches to the next, merges the one before into redb, and drops it:
//!
//! ```text
//! time ───────────────────────────────────────────────────────────►
//! memtable 7  ▓▓▓▓▓▓▓▓▓▓ merging ┄┄┄ in redb
//! memtable 8             ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ merging ┄┄
//! memtable 9                                  ▓▓▓▓▓▓▓▓▓▓
//! ```
//!
//! A snapshot keeps the memtables (and the redb read transaction) of its own time alive by
//! reference count, so versions are never collected one by one: when the last snapshot that could
//! read a memtable is gone, all of it is freed.
//!
//! Most reads are of rows that no memtable has. A Bloom filter of a few bits a key tells so without
//! a search of the maps.
//!
//! Within a memtable each space is an ordered map ([`VersionMap`]) from key to its versions, the
//! newest first. A reader at time `ts` takes the first that is not newer:
//!
//! ```text
//! a: 9 4     b: 7     c: 8 3          reader at 7 of c: passes 8, takes 3
//! ```
//!
//! **One commit's own memtable.** The writes of a very large transaction are a memtable from the
//! start ([`crate::overlay`]), in which versions are told apart by the order in which the transaction
//! wrote them. It is committed as it is: once it is sealed, all of its newest versions are of that
//! one commit. What it has spilled ([`crate::spill`]) is read behind its versions, and is of the same
//! commit.

use std::ops::Bound;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use twox_hash::XxHash3_64;

use crate::blocks::CacheLoan;
use crate::space_table::SpaceTable;
use crate::spill::Runs;
use crate::version_map::{
    Arena, ENTRY_OVERHEAD_BYTES, EntryRef, VersionMap, VersionPosition, WrittenEntry,
};
use crate::{CommitTs, Direction, Lsn, SpaceId};

pub(crate) type Key = Arc<[u8]>;
/// `None` is a deletion.
pub(crate) type Value = Option<Arc<[u8]>>;

pub(crate) struct Memtable {
    pub spaces: SpaceTable<Arc<SpaceVersions>>,
    /// The newest commit that readers may see. Moves only forward, in commit order.
    visible: AtomicU64,
    /// The newest commit that those who hold locks may see: all up to it are in the memtables.
    /// Beyond `visible` it falls back when the log can't be written.
    settled: AtomicU64,
    bytes: AtomicU64,
    keys: BloomFilter,
    /// The memory of the versions of all its spaces.
    arena: Arc<Arena>,
    /// What the cache lends a transaction's own memtable.
    pub loan: Option<CacheLoan>,
    /// What the commit whose own memtable it is has spilled.
    runs: OnceLock<Arc<Runs>>,
    /// Once it takes no more commits: the position in the log behind its last.
    pub ends_at: OnceLock<Lsn>,
}

impl Memtable {
    /// A memtable for the commits after `ts`.
    pub fn after(ts: CommitTs) -> Memtable {
        Memtable {
            spaces: SpaceTable::new(),
            visible: AtomicU64::new(ts.0),
            settled: AtomicU64::new(ts.0),
            bytes: AtomicU64::new(0),
            keys: BloomFilter::default(),
            arena: Arc::default(),
            loan: None,
            runs: OnceLock::new(),
            ends_at: OnceLock::new(),
        }
    }

    /// A transaction's own memtable.
    pub fn own(loan: CacheLoan) -> Memtable {
        Memtable {
            loan: Some(loan),
            ..Memtable::after(CommitTs(0))
        }
    }

    pub fn visible(&self) -> CommitTs {
        CommitTs(self.visible.load(Ordering::Acquire))
    }

    pub fn publish(&self, ts: CommitTs) {
        self.visible.store(ts.0, Ordering::Release);
    }

    /// The newest commit that has let go of its locks; it may not be visible yet.
    pub fn settled(&self) -> CommitTs {
        CommitTs(self.settled.load(Ordering::Acquire)).max(self.visible())
    }

    pub fn settle(&self, ts: CommitTs) {
        self.settled.store(ts.0, Ordering::Release);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many keys it has; those that were spilled in several runs count as often.
    pub fn entries(&self) -> u64 {
        let spaces = self.spaces.iter();
        let in_memory: u64 = spaces.map(|(_, versions)| versions.entries() as u64).sum();
        in_memory + self.runs().map_or(0, |runs| runs.entries(None))
    }

    /// How many bytes it has, in memory and spilled.
    pub fn total_bytes(&self) -> u64 {
        self.bytes() + self.runs().map_or(0, |runs| runs.bytes())
    }

    /// What the commit whose own memtable it is has spilled.
    #[inline]
    pub fn runs(&self) -> Option<&Arc<Runs>> {
        self.runs.get()
    }

    /// Has it have what was spilled, before readers come to know it.
    pub fn set_runs(&self, runs: Arc<Runs>) {
        let _ = self.runs.set(runs);
    }

    /// The runs that have something of a space, for a reader at `ts`.
    pub fn runs_of(&self, space: SpaceId, ts: CommitTs) -> Option<&Arc<Runs>> {
        let runs = self.runs()?;
        (self.visible() <= ts && runs.has(space)).then_some(runs)
    }

    /// A memtable with the newest visible version of each key, and nothing of commits that failed.
    pub fn copy_of_visible(&self) -> Memtable {
        let ts = self.visible();
        let copy = Memtable::after(ts);
        for (space, versions) in self.spaces.iter() {
            let net_rows = versions.net_rows.load(Ordering::Relaxed);
            let seen = std::iter::successors(versions.map.first(), EntryRef::next)
                .filter_map(|found| Some((found.key(), found.visible(ts.0)?)));
            copy.insert(space, ts, net_rows, seen);
            if versions.is_dropped(ts) {
                copy.space(space).drop_at(ts);
            }
        }
        copy
    }

    /// The space's versions, if the key may be among them; `Err` if the space is dropped.
    pub fn versions_of(
        &self,
        space: SpaceId,
        hash: KeyHash,
        ts: CommitTs,
    ) -> Result<Option<&SpaceVersions>, Dropped> {
        match self.spaces.get(space) {
            None => Ok(None),
            Some(versions) if versions.is_dropped(ts) => Err(Dropped),
            Some(versions) => Ok(self.keys.may_contain(hash).then_some(versions)),
        }
    }

    /// Whether no commit has come here.
    pub fn is_empty(&self) -> bool {
        self.spaces.iter().next().is_none()
    }

    pub fn space(&self, space: SpaceId) -> &Arc<SpaceVersions> {
        self.spaces
            .get_or_insert_with(space, || Arc::new(SpaceVersions::new(&self.arena)))
    }

    /// Adds a space's writes of one commit. They are seen once `publish` reaches its timestamp.
    pub fn insert<'w>(
        &self,
        space: SpaceId,
        ts: CommitTs,
        net_rows: i64,
        writes: impl IntoIterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) {
        let versions = self.space(space);
        let (mut bytes, mut count) = (0, 0);
        for (key, value) in writes {
            count += 1;
            let value_len = value.map_or(0, <[u8]>::len);
            bytes += (key.len() + value_len) as u64 + ENTRY_OVERHEAD_BYTES;
            self.keys.add(KeyHash::of(space, key));
            versions.map.insert(key, ts.0, value);
        }
        versions.net_rows.fetch_add(net_rows, Ordering::Relaxed);
        versions.changes.fetch_add(count, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds one write. Only for a transaction's own memtable.
    pub fn write(
        &self,
        space: SpaceId,
        order: u64,
        net_rows: i64,
        (key, value): (&[u8], Option<&[u8]>),
    ) -> WrittenEntry {
        let versions = self.space(space);
        let value_len = value.map_or(0, <[u8]>::len);
        let bytes = (key.len() + value_len) as u64 + ENTRY_OVERHEAD_BYTES;
        self.keys.add(KeyHash::of(space, key));
        let written = versions.map.insert(key, order, value);
        versions.net_rows.fetch_add(net_rows, Ordering::Relaxed);
        versions.changes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        written
    }

    /// What a transaction's own memtable has of a key.
    pub fn newest_of(&self, space: SpaceId, key: &[u8]) -> Option<Option<&[u8]>> {
        let versions = self.spaces.get(space)?;
        if !self.keys.may_contain(KeyHash::of(space, key)) {
            return None;
        }
        versions.map.get(key)?.visible(u64::MAX)
    }

    /// Makes a transaction's own memtable that of its commit, before readers come to know it.
    pub fn seal(&self, ts: CommitTs, log_end: Lsn) {
        for (_, versions) in self.spaces.iter() {
            versions.sealed_at.store(ts.0, Ordering::Release);
        }
        self.settle(ts);
        self.publish(ts);
        let _ = self.ends_at.set(log_end);
    }
}

/// The space was dropped before the reader's moment.
pub(crate) struct Dropped;

/// A hash of a space and a key.
#[derive(Clone, Copy)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub fn of(space: SpaceId, key: &[u8]) -> KeyHash {
        KeyHash(XxHash3_64::oneshot_with_seed(u64::from(space.0), key))
    }
}

/// A Bloom filter: answers with one load that a memtable doesn't have a key, most of the time. Two
/// bits of one word stand for each key.
///
/// It grows by parts, each four times as large as the one before. A key is in one of them, and a part
/// takes no more keys when one in a hundred others is taken for one of its own.
#[derive(Default)]
struct BloomFilter {
    parts: [OnceLock<Box<[AtomicU64]>>; FILTER_PARTS],
    /// How many keys were added, those left out that it seemed to have.
    keys: AtomicU64,
}

/// The last part holds ten million keys, in 32 MiB.
const FILTER_PARTS: usize = 5;
/// The words of the first part.
const FILTER_WORDS: u64 = 1 << 14;
const KEYS_A_WORD: u64 = 3;

impl BloomFilter {
    /// A key that is added before its commit is published is found by every reader that sees the
    /// commit.
    fn add(&self, hash: KeyHash) {
        if self.may_contain(hash) {
            return;
        }
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        let (mut words, mut room) = (FILTER_WORDS, 0);
        for (at, part) in self.parts.iter().enumerate() {
            room += words * KEYS_A_WORD;
            // Who looks for a key stops at the first part that isn't there.
            let part = part.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
            if number < room || at + 1 == FILTER_PARTS {
                hash.word(part).fetch_or(hash.bits(), Ordering::Relaxed);
                return;
            }
            words *= 4;
        }
    }

    fn may_contain(&self, hash: KeyHash) -> bool {
        let bits = hash.bits();
        let parts = self.parts.iter().map_while(OnceLock::get);
        let mut words = parts.map(|words| hash.word(words).load(Ordering::Relaxed));
        words.any(|word| word & bits == bits)
    }
}

impl KeyHash {
    /// The two bits of a word that stand for the key.
    pub fn bits(self) -> u64 {
        1 << (self.0 & 63) | 1 << (self.0 >> 6 & 63)
    }

    /// Which of so many words that is.
    pub fn word_of(self, words: usize) -> usize {
        (self.0 >> 32) as usize % words
    }

    fn word(self, words: &[AtomicU64]) -> &AtomicU64 {
        &words[self.word_of(words.len())]
    }
}

/// One space's versions within a memtable.
pub(crate) struct SpaceVersions {
    map: VersionMap,
    /// Rows added less rows removed, as far as the writers knew.
    pub net_rows: AtomicI64,
    /// How many rows were written or deleted; one that changes again counts again.
    pub changes: AtomicU64,
    /// The commit that dropped the space; `u64::MAX` while there is none.
    dropped_at: AtomicU64,
    /// The commit that all versions are of; 0 where each has a commit's timestamp of its own.
    sealed_at: AtomicU64,
}

impl SpaceVersions {
    fn new(arena: &Arc<Arena>) -> SpaceVersions {
        SpaceVersions {
            map: VersionMap::new(Arc::clone(arena)),
            net_rows: AtomicI64::new(0),
            changes: AtomicU64::new(0),
            dropped_at: AtomicU64::new(u64::MAX),
            sealed_at: AtomicU64::new(0),
        }
    }

    /// The keys in order, each with its versions.
    pub fn keys(&self) -> impl Iterator<Item = EntryRef<'_>> {
        std::iter::successors(self.map.first(), EntryRef::next)
    }

    /// The newest version of each key, in order: what a checkpoint writes to the B-tree.
    pub fn newest(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        std::iter::successors(self.map.first(), EntryRef::next)
            .filter_map(|found| Some((found.key(), found.visible(u64::MAX)?)))
    }

    /// How many keys have versions.
    pub fn entries(&self) -> usize {
        self.map.len()
    }

    pub fn drop_at(&self, ts: CommitTs) {
        self.dropped_at.fetch_min(ts.0, Ordering::AcqRel);
    }

    pub fn is_dropped(&self, ts: CommitTs) -> bool {
        self.dropped_at.load(Ordering::Acquire) <= ts.0
    }

    pub fn is_dropped_at_all(&self) -> bool {
        self.is_dropped(CommitTs(u64::MAX - 1))
    }

    /// What a reader at `ts` sees of the key here: a value or a deletion (`None`), with its
    /// timestamp, or nothing.
    pub fn find(&self, key: &[u8], ts: CommitTs) -> Option<(u64, Option<&[u8]>)> {
        match self.sealed_at.load(Ordering::Acquire) {
            0 => self.map.get(key)?.version(ts.0),
            sealed if sealed <= ts.0 => Some((sealed, self.map.get(key)?.visible(u64::MAX)?)),
            _ => None,
        }
    }

    /// Takes a write back: the newest of its key.
    ///
    /// # Safety
    ///
    /// The entry is one of these versions.
    pub unsafe fn take_back(&self, written: WrittenEntry, net_rows: i64) {
        // SAFETY: as the caller promises.
        unsafe { self.map.pop(written) };
        self.net_rows.fetch_sub(net_rows, Ordering::Relaxed);
    }
}

pub(crate) type BoundKey = SmallVec<[u8; 24]>;

/// The versions of a range that a reader sees, one after another, without copying them.
pub(crate) struct VersionCursor {
    versions: Arc<SpaceVersions>,
    ts: u64,
    /// Where the cursor ends, in its direction.
    end: Bound<BoundKey>,
    direction: Direction,
    at: Option<VersionPosition>,
    unpublished: Option<Unpublished>,
}

/// Notes that a cursor came by versions that weren't visible to all when it was opened, deletions
/// too.
#[derive(Clone)]
pub(crate) struct Unpublished {
    pub published: CommitTs,
    /// The newest of them.
    pub newest_seen: Arc<AtomicU64>,
}

impl Unpublished {
    #[inline]
    fn note(&self, ts: u64) {
        if ts > self.published.0 {
            self.newest_seen.fetch_max(ts, Ordering::Relaxed);
        }
    }
}

impl VersionCursor {
    pub fn new(
        versions: Arc<SpaceVersions>,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        ts: CommitTs,
        unpublished: Option<Unpublished>,
    ) -> VersionCursor {
        let (ts, unpublished) = match versions.sealed_at.load(Ordering::Acquire) {
            0 => (ts, unpublished),
            // It was published as it was sealed.
            sealed if sealed <= ts.0 => (CommitTs(u64::MAX), None),
            _ => (CommitTs(0), None),
        };
        let map = &versions.map;
        let first = match (direction, low, high) {
            (Direction::Forward, Bound::Included(key), _) => map.at_or_above(key),
            (Direction::Forward, Bound::Excluded(key), _) => map.above(key),
            (Direction::Forward, Bound::Unbounded, _) => map.first(),
            (Direction::Backward, _, Bound::Included(key)) => map.at_or_below(key),
            (Direction::Backward, _, Bound::Excluded(key)) => map.below(key),
            (Direction::Backward, _, Bound::Unbounded) => map.last(),
        };
        let end = match direction {
            Direction::Forward => high,
            Direction::Backward => low,
        };
        let mut cursor = VersionCursor {
            ts: ts.0,
            end: end.map(BoundKey::from_slice),
            direction,
            at: None,
            unpublished,
            versions: Arc::clone(&versions),
        };
        cursor.at = cursor.next_visible(first);
        cursor
    }

    /// The current key and its value; `None` for the value is a deletion.
    #[inline]
    pub fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        // SAFETY: a cursor's positions come from its own map.
        Some(unsafe { self.at?.row(&self.versions.map) })
    }

    pub fn advance(&mut self) {
        let Some(at) = self.at else { return };
        // SAFETY: as above.
        let found = unsafe { at.found(&self.versions.map) };
        self.at = self.next_visible(self.neighbour(found));
    }

    fn neighbour<'a>(&'a self, found: EntryRef<'a>) -> Option<EntryRef<'a>> {
        match self.direction {
            Direction::Forward => found.next(),
            Direction::Backward => self.versions.map.below(found.key()),
        }
    }

    /// The first key from here on that has a visible version; `None` past the end.
    fn next_visible<'a>(&'a self, mut at: Option<EntryRef<'a>>) -> Option<VersionPosition> {
        let end = self.end.as_ref().map(|key| &key[..]);
        loop {
            let found = at?;
            let is_over = match self.direction {
                Direction::Forward => is_past_high(found.key(), end),
                Direction::Backward => is_before_low(found.key(), end),
            };
            if is_over {
                return None;
            }
            match found.position_at(self.ts) {
                Some(seen) => {
                    if let Some(unpublished) = &self.unpublished {
                        unpublished.note(seen.ts());
                    }
                    found.prefetch_next();
                    return Some(seen);
                }
                None => at = self.neighbour(found),
            }
        }
    }
}

pub(crate) fn is_past_high(key: &[u8], high: Bound<&[u8]>) -> bool {
    match high {
        Bound::Included(high) => key > high,
        Bound::Excluded(high) => key >= high,
        Bound::Unbounded => false,
    }
}

pub(crate) fn is_before_low(key: &[u8], low: Bound<&[u8]>) -> bool {
    match low {
        Bound::Included(low) => key < low,
        Bound::Excluded(low) => key <= low,
        Bound::Unbounded => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_finds_each_key_and_few_others_however_many_there_are() {
        let hash = |number: u64| KeyHash::of(SpaceId(7), &number.to_be_bytes());
        let filter = BloomFilter::default();
        let mut added = 0..0;
        for keys in [10, 50_000, 400_000] {
            added.end = keys;
            // A key that comes again takes no room.
            added.clone().for_each(|key| filter.add(hash(key)));
            assert!(added.clone().all(|key| filter.may_contain(hash(key))));
            let others = keys..keys + 100_000;
            let taken = others.filter(|key| filter.may_contain(hash(*key))).count();
            assert!(taken < 4_000, "{taken} of 100,000, with {keys} keys");
        }
        assert!(filter.parts[2].get().is_some() && filter.parts[3].get().is_none());
    }
}
