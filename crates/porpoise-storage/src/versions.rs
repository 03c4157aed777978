//! Committed versions that redb doesn't hold yet.
//!
//! A **generation** holds what was committed between two checkpoints. Commits go to the newest one;
//! a checkpoint starts the next, folds the one before into redb, and forgets it:
//!
//! ```text
//! time ───────────────────────────────────────────────────────────►
//! generation 7  ▓▓▓▓▓▓▓▓▓▓ folding ┄┄┄ in redb
//! generation 8             ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ folding ┄┄
//! generation 9                                  ▓▓▓▓▓▓▓▓▓▓
//! ```
//!
//! A snapshot keeps the generations (and the redb read transaction) of its own time alive by
//! reference count, so nothing is ever collected one by one: when the last snapshot that could read
//! a generation is gone, all of it is freed.
//!
//! Most reads are of rows that no generation has. A filter of a few bits a key tells so without a
//! look at the maps.
//!
//! Within a generation each space is a lock-free ordered map from (key, timestamp) to value, the
//! newest version of a key first. A reader at time `ts` seeks (key, ts): the first entry at or after
//! it is what it sees.
//!
//! ```text
//! (a, 9) (a, 4) (b, 7) (c, 8) (c, 3)      reader at 7 of c: seeks (c, 7), finds (c, 3)
//! ```

use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::ops::Bound;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry;
use twox_hash::XxHash3_64;

use crate::space_table::SpaceTable;
use crate::{CommitTs, Direction, Lsn, SpaceId};

pub(crate) type Key = Arc<[u8]>;
/// `None` is a deletion.
pub(crate) type Value = Option<Arc<[u8]>>;

/// What an entry costs beside its bytes: two `Arc` headers, the node and its tower, allocator slack.
const ENTRY_OVERHEAD_BYTES: u64 = 128;

pub(crate) struct Generation {
    pub spaces: SpaceTable<Arc<SpaceVersions>>,
    /// The newest commit that readers may see. Moves only forward, in commit order.
    visible: AtomicU64,
    bytes: AtomicU64,
    keys: KeyFilter,
    /// Once it takes no more commits: the position in the log behind its last.
    pub ends_at: OnceLock<Lsn>,
}

impl Generation {
    /// A generation for the commits after `ts`.
    pub fn after(ts: CommitTs) -> Generation {
        Generation {
            spaces: SpaceTable::new(),
            visible: AtomicU64::new(ts.0),
            bytes: AtomicU64::new(0),
            keys: KeyFilter::default(),
            ends_at: OnceLock::new(),
        }
    }

    pub fn visible(&self) -> CommitTs {
        CommitTs(self.visible.load(Ordering::Acquire))
    }

    pub fn publish(&self, ts: CommitTs) {
        self.visible.store(ts.0, Ordering::Release);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn entries(&self) -> u64 {
        self.spaces
            .iter()
            .map(|(_, versions)| versions.entries() as u64)
            .sum()
    }

    /// The space's versions, if the key may be among them; `Err` if the space is gone.
    pub fn versions_of(
        &self,
        space: SpaceId,
        hash: KeyHash,
        ts: CommitTs,
    ) -> Result<Option<&SpaceVersions>, Dropped> {
        match self.spaces.get(space) {
            None => Ok(None),
            Some(versions) if versions.is_dropped(ts) => Err(Dropped),
            Some(versions) => Ok(self.keys.may_have(hash).then_some(versions)),
        }
    }

    /// Whether no commit has come here.
    pub fn is_untouched(&self) -> bool {
        self.spaces.iter().next().is_none()
    }

    pub fn space(&self, space: SpaceId) -> &Arc<SpaceVersions> {
        self.spaces
            .get_or_insert_with(space, || Arc::new(SpaceVersions::new()))
    }

    /// Adds a space's writes of one commit. They are seen once `publish` reaches its timestamp.
    pub fn insert(
        &self,
        space: SpaceId,
        ts: CommitTs,
        net_rows: i64,
        writes: impl IntoIterator<Item = (Key, Value)>,
    ) {
        let versions = self.space(space);
        let mut bytes = 0;
        for (key, value) in writes {
            let value_len = value.as_ref().map_or(0, |v| v.len());
            bytes += (key.len() + value_len) as u64 + ENTRY_OVERHEAD_BYTES;
            self.keys.add(KeyHash::of(space, &key));
            versions.map.insert(VersionKey::new(key, ts.0), value);
        }
        versions.net_rows.fetch_add(net_rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
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

/// Tells at the price of one load that a generation doesn't have a key, most of the time: two bits of
/// one word stand for each key. With 50,000 keys one in a hundred others is taken for one of them.
#[derive(Default)]
struct KeyFilter(OnceLock<Box<[AtomicU64]>>);

const FILTER_WORDS: usize = 1 << 14;

impl KeyFilter {
    fn place(hash: KeyHash) -> (usize, u64) {
        let bits = 1 << (hash.0 & 63) | 1 << (hash.0 >> 6 & 63);
        ((hash.0 >> 32) as usize % FILTER_WORDS, bits)
    }

    /// What is added before a commit is published is seen by whoever sees the commit.
    fn add(&self, hash: KeyHash) {
        let make = || (0..FILTER_WORDS).map(|_| AtomicU64::new(0)).collect();
        let (word, bits) = KeyFilter::place(hash);
        self.0.get_or_init(make)[word].fetch_or(bits, Ordering::Relaxed);
    }

    fn may_have(&self, hash: KeyHash) -> bool {
        let (word, bits) = KeyFilter::place(hash);
        self.0
            .get()
            .is_some_and(|words| words[word].load(Ordering::Relaxed) & bits == bits)
    }
}

/// One space's versions within a generation.
pub(crate) struct SpaceVersions {
    map: SkipMap<VersionKey, Value>,
    /// Rows added less rows removed, as far as the writers knew.
    pub net_rows: AtomicI64,
    /// The commit that dropped the space; `u64::MAX` while there is none.
    dropped_at: AtomicU64,
}

/// How many versions of one key are stepped over before a seek is cheaper.
const STEPS_BEFORE_SEEK: usize = 4;

impl SpaceVersions {
    fn new() -> SpaceVersions {
        SpaceVersions {
            map: SkipMap::new(),
            net_rows: AtomicI64::new(0),
            dropped_at: AtomicU64::new(u64::MAX),
        }
    }

    /// The newest version of each key, in order: what the B-tree is to hold.
    pub fn newest(&self) -> impl Iterator<Item = (Key, Value)> {
        let mut last: Option<Key> = None;
        self.map.iter().filter_map(move |entry| {
            let key = &entry.key().key;
            if last.as_ref() == Some(key) {
                return None;
            }
            last = Some(key.clone());
            Some((key.clone(), entry.value().clone()))
        })
    }

    pub fn entries(&self) -> usize {
        self.map.len()
    }

    pub fn drop_at(&self, ts: CommitTs) {
        self.dropped_at.fetch_min(ts.0, Ordering::AcqRel);
    }

    pub fn is_dropped(&self, ts: CommitTs) -> bool {
        self.dropped_at.load(Ordering::Acquire) <= ts.0
    }

    pub fn is_dropped_ever(&self) -> bool {
        self.is_dropped(CommitTs(u64::MAX - 1))
    }

    /// What a reader at `ts` sees of the key here: a value, a deletion, or nothing.
    pub fn find(&self, key: &[u8], ts: CommitTs) -> Option<Entry<'_, VersionKey, Value>> {
        let entry = self.seek(Bound::Included(Probe::new(key, ts.0)))?;
        (*entry.key().key == *key).then_some(entry)
    }

    /// Appends up to `limit` visible entries of the range, in the direction's order. Fewer mean that
    /// there are no more.
    pub fn collect(
        &self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        ts: CommitTs,
        limit: usize,
        out: &mut Vec<(Key, Value)>,
    ) {
        match direction {
            Direction::Forward => self.collect_forward(range, ts.0, limit, out),
            Direction::Backward => self.collect_backward(range, ts.0, limit, out),
        }
    }

    fn collect_forward(
        &self,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        ts: u64,
        limit: usize,
        out: &mut Vec<(Key, Value)>,
    ) {
        let full = out.len() + limit;
        let mut at = self.seek(match low {
            Bound::Included(key) => Bound::Included(Probe::new(key, ts)),
            Bound::Excluded(key) => Bound::Excluded(Probe::new(key, 0)),
            Bound::Unbounded => Bound::Unbounded,
        });
        while out.len() < full {
            let Some(entry) = at else { return };
            let key = &entry.key().key;
            if past_high(key, high) {
                return;
            }
            at = if entry.key().ts > ts {
                self.step(&entry, |next| {
                    *next.key().key != **key || next.key().ts <= ts
                })
                .unwrap_or_else(|| self.seek(Bound::Included(Probe::new(key, ts))))
            } else {
                out.push((key.clone(), entry.value().clone()));
                self.step(&entry, |next| *next.key().key != **key)
                    .unwrap_or_else(|| self.seek(Bound::Excluded(Probe::new(key, 0))))
            };
        }
    }

    /// Steps on until `found`; `None` when that is not near and a seek is due.
    #[allow(clippy::option_option)]
    fn step<'a>(
        &self,
        from: &Entry<'a, VersionKey, Value>,
        found: impl Fn(&Entry<'a, VersionKey, Value>) -> bool,
    ) -> Option<Option<Entry<'a, VersionKey, Value>>> {
        let mut at = from.next();
        for _ in 0..STEPS_BEFORE_SEEK {
            match at {
                Some(entry) if !found(&entry) => at = entry.next(),
                arrived => return Some(arrived),
            }
        }
        None
    }

    fn collect_backward(
        &self,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        ts: u64,
        limit: usize,
        out: &mut Vec<(Key, Value)>,
    ) {
        let full = out.len() + limit;
        let mut at = self.seek_back(match high {
            Bound::Included(key) => Bound::Included(Probe::new(key, 0)),
            Bound::Excluded(key) => Bound::Excluded(Probe::new(key, u64::MAX)),
            Bound::Unbounded => Bound::Unbounded,
        });
        while out.len() < full {
            // Going back, the oldest version of a key comes first.
            let Some(oldest) = at else { return };
            let key = &oldest.key().key;
            if before_low(key, low) {
                return;
            }
            let newer = oldest.prev();
            if newer.as_ref().is_none_or(|newer| newer.key().key != *key) {
                if oldest.key().ts <= ts {
                    out.push((key.clone(), oldest.value().clone()));
                }
                at = newer;
                continue;
            }
            if oldest.key().ts <= ts
                && let Some(seen) = self.seek(Bound::Included(Probe::new(key, ts)))
            {
                out.push((key.clone(), seen.value().clone()));
            }
            at = self.seek_back(Bound::Excluded(Probe::new(key, u64::MAX)));
        }
    }

    fn seek(&self, from: Bound<Probe<'_>>) -> Option<Entry<'_, VersionKey, Value>> {
        self.map
            .lower_bound::<dyn Position + '_>(as_position(&from))
    }

    fn seek_back(&self, from: Bound<Probe<'_>>) -> Option<Entry<'_, VersionKey, Value>> {
        self.map
            .upper_bound::<dyn Position + '_>(as_position(&from))
    }
}

pub(crate) fn past_high(key: &[u8], high: Bound<&[u8]>) -> bool {
    match high {
        Bound::Included(high) => key > high,
        Bound::Excluded(high) => key >= high,
        Bound::Unbounded => false,
    }
}

pub(crate) fn before_low(key: &[u8], low: Bound<&[u8]>) -> bool {
    match low {
        Bound::Included(low) => key < low,
        Bound::Excluded(low) => key <= low,
        Bound::Unbounded => false,
    }
}

/// The first eight bytes of a key: nearly always enough to tell two apart, without a look at the rest.
pub(crate) fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

pub(crate) struct VersionKey {
    prefix: u64,
    ts: u64,
    key: Key,
}

impl VersionKey {
    fn new(key: Key, ts: u64) -> VersionKey {
        VersionKey {
            prefix: prefix(&key),
            ts,
            key,
        }
    }
}

/// A place in a space's versions, to be sought without an owned key.
struct Probe<'a> {
    prefix: u64,
    ts: u64,
    key: &'a [u8],
}

impl<'a> Probe<'a> {
    fn new(key: &'a [u8], ts: u64) -> Probe<'a> {
        Probe {
            prefix: prefix(key),
            ts,
            key,
        }
    }
}

trait Position {
    fn prefix(&self) -> u64;
    fn key(&self) -> &[u8];
    fn ts(&self) -> u64;
}

/// By key, and of one key the newest version first.
fn compare(a: &(impl Position + ?Sized), b: &(impl Position + ?Sized)) -> Order {
    (a.prefix().cmp(&b.prefix()))
        .then_with(|| a.key().cmp(b.key()))
        .then_with(|| b.ts().cmp(&a.ts()))
}

impl Position for VersionKey {
    fn prefix(&self) -> u64 {
        self.prefix
    }
    fn key(&self) -> &[u8] {
        &self.key
    }
    fn ts(&self) -> u64 {
        self.ts
    }
}

impl Position for Probe<'_> {
    fn prefix(&self) -> u64 {
        self.prefix
    }
    fn key(&self) -> &[u8] {
        self.key
    }
    fn ts(&self) -> u64 {
        self.ts
    }
}

fn as_position<'a, 'k>(bound: &'a Bound<Probe<'k>>) -> Bound<&'a (dyn Position + 'a)> {
    match bound {
        Bound::Included(probe) => Bound::Included(probe),
        Bound::Excluded(probe) => Bound::Excluded(probe),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl<'a> Borrow<dyn Position + 'a> for VersionKey {
    fn borrow(&self) -> &(dyn Position + 'a) {
        self
    }
}

impl Ord for dyn Position + '_ {
    fn cmp(&self, other: &Self) -> Order {
        compare(self, other)
    }
}

impl PartialOrd for dyn Position + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Position + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Position + '_ {}

impl Ord for VersionKey {
    fn cmp(&self, other: &Self) -> Order {
        compare(self, other)
    }
}

impl PartialOrd for VersionKey {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VersionKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for VersionKey {}
