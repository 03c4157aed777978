//! An ordered map that only grows: of each key its versions, the newest first.
//!
//! The keys are a linked list in ascending order, and each has a chain of versions. An entry is one
//! allocation, with its link, its key and its first version side by side, so a scan reads adjacent
//! memory, and adding an entry allocates once:
//!
//! ```text
//! entry       │ first 8 bytes of key │ newest │ next │ length │ key │ version │
//!
//! key index   a b │ c d                a B-tree that says where to begin ([`key_index`])
//!             │ │   │ │
//! list    ──► a ──► b ─► c ──► d ─► ·
//!             │     │    │     │
//! versions    9     7    8     5       value or deletion, by timestamp
//!             4          3
//! ```
//!
//! Entries and versions lie in an [`Arena`], which frees all of its memory at once: no entry is ever
//! taken out of the map. That makes its concurrency simple. A writer prepares an entry that nobody
//! sees, then links it in by a compare-and-swap of its predecessor's link, and then adds it to the
//! key index. A version of a key that is there already goes into its chain in the same way. Readers
//! load links, and never wait.
//!
//! Two writers must not add versions of one key at the same time if readers are to be sure to see
//! the second: row locks, which are held until the versions are in, see to it.
//!
//! A map with a single writer, a transaction's own, can have the newest version of a key taken out
//! of its chain again. Its memory stays where it is, for those who have come to it before.

mod arena;
mod entry;
mod key_index;

use std::cmp::Ordering as Order;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prefetch::prefetch;
use crate::prefix::Probe;
use entry::{EntryPtr, VersionPtr};
use key_index::KeyIndex;

pub(crate) use arena::Arena;
pub(crate) use entry::ENTRY_OVERHEAD_BYTES;

/// An entry with a version of two hundred bytes.
const PREFETCHED_BYTES: usize = 256;

/// How often a search that concurrent changes have misled begins anew.
const SEARCHES_MAX: usize = 8;

/// The map. All of its methods may be called by many threads at once.
pub(crate) struct VersionMap {
    arena: Arc<Arena>,
    /// Comes before every entry.
    head: EntryPtr,
    key_index: KeyIndex,
    len: AtomicUsize,
}

// SAFETY: entries belong to the arena, which goes with the map, and are shared by atomics.
unsafe impl Send for VersionMap {}
// SAFETY: as above.
unsafe impl Sync for VersionMap {}

impl Probe<'_> {
    /// How the entry's key compares with the probe's.
    fn compare_entry(&self, at: EntryPtr) -> Order {
        self.compare_with(at.entry().prefix, || at.key())
    }
}

impl VersionMap {
    pub fn new(arena: Arc<Arena>) -> VersionMap {
        let head = EntryPtr::new(&arena, &[], 0, None);
        VersionMap {
            key_index: KeyIndex::new(&arena, head),
            arena,
            head,
            len: AtomicUsize::new(0),
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Adds a version; `None` is a deletion.
    pub fn insert(&self, key: &[u8], ts: u64, value: Option<&[u8]>) -> WrittenEntry {
        let probe = Probe::new(key);
        let Position {
            mut before,
            mut at_or_after,
            is_equal,
            is_exact,
        } = self.find_position(&probe);
        if let Some(entry) = at_or_after.filter(|_| is_equal) {
            entry.push(VersionPtr::new(&self.arena, ts, value));
            if !is_exact {
                self.key_index.insert(&self.arena, entry);
            }
            return WrittenEntry(entry);
        }
        let new = EntryPtr::new(&self.arena, key, ts, value);
        loop {
            let after = at_or_after.map_or(ptr::null_mut(), |at| at.0.as_ptr());
            new.entry().next.store(after, Ordering::Relaxed);
            let outcome = before.entry().next.compare_exchange(
                after,
                new.0.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if outcome.is_ok() {
                break;
            }
            (before, at_or_after) = self.walk_list(&probe, before);
            if let Some(at) = at_or_after.filter(|at| probe.compare_entry(*at).is_eq()) {
                // Another thread was faster to add the key: the version goes into that entry.
                let version = new.entry().newest.load(Ordering::Relaxed);
                at.push(VersionPtr(NonNull::new(version).expect("made with one")));
                self.key_index.insert(&self.arena, at);
                return WrittenEntry(at);
            }
        }
        self.len.fetch_add(1, Ordering::Relaxed);
        self.key_index.insert(&self.arena, new);
        WrittenEntry(new)
    }

    /// Takes the newest version of a key out. Only for the map's one writer.
    ///
    /// # Safety
    ///
    /// The entry is one of this very map.
    pub unsafe fn pop(&self, written: WrittenEntry) {
        written.0.pop();
    }

    /// The last entry before the probe, beginning at one that is before it, and the one after that.
    fn walk_list(&self, probe: &Probe<'_>, from: EntryPtr) -> (EntryPtr, Option<EntryPtr>) {
        let mut before = from;
        let mut at_or_after = before.next();
        while let Some(at) = at_or_after.filter(|at| probe.compare_entry(*at).is_lt()) {
            before = at;
            at_or_after = at.next();
        }
        (before, at_or_after)
    }

    /// Where the probe's key is, or would be.
    #[inline]
    fn find_position(&self, probe: &Probe<'_>) -> Position {
        let is_at = |at: EntryPtr| probe.compare_entry(at).is_eq();
        if let Some(located) = self.key_index.locate(probe)
            && located.is_exact
        {
            return Position {
                before: located.before,
                at_or_after: located.at_or_after,
                is_equal: located.may_be_equal && located.at_or_after.is_some_and(is_at),
                is_exact: true,
            };
        }
        self.find_position_in_list(probe)
    }

    /// As [`find_position`](Self::find_position), where the key index is being changed, or lacks
    /// entries.
    #[cold]
    fn find_position_in_list(&self, probe: &Probe<'_>) -> Position {
        let from = (0..SEARCHES_MAX)
            .filter_map(|_| self.key_index.locate(probe))
            .map(|located| located.before)
            .find(|at| probe.compare_entry(*at).is_lt());
        let (before, at_or_after) = self.walk_list(probe, from.unwrap_or(self.head));
        Position {
            before,
            at_or_after,
            is_equal: at_or_after.is_some_and(|at| probe.compare_entry(at).is_eq()),
            is_exact: false,
        }
    }

    fn found(&self, at: Option<EntryPtr>) -> Option<EntryRef<'_>> {
        let at = at.filter(|at| *at != self.head)?;
        Some(EntryRef { at, map: self })
    }

    pub fn get(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let position = self.find_position(&Probe::new(key));
        self.found(position.at_or_after.filter(|_| position.is_equal))
    }

    pub fn first(&self) -> Option<EntryRef<'_>> {
        self.found(self.head.next())
    }

    pub fn last(&self) -> Option<EntryRef<'_>> {
        let mut last = self.key_index.approximate_last().unwrap_or(self.head);
        while let Some(next) = last.next() {
            last = next;
        }
        self.found(Some(last))
    }

    /// The first key that is not below the given one.
    pub fn at_or_above(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.found(self.find_position(&Probe::new(key)).at_or_after)
    }

    /// The first key above the given one.
    pub fn above(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let position = self.find_position(&Probe::new(key));
        match position.at_or_after.filter(|_| position.is_equal) {
            Some(at) => self.found(at.next()),
            None => self.found(position.at_or_after),
        }
    }

    /// The last key that is not above the given one.
    pub fn at_or_below(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let position = self.find_position(&Probe::new(key));
        let at = position.at_or_after.filter(|_| position.is_equal);
        self.found(Some(at.unwrap_or(position.before)))
    }

    /// The last key below the given one.
    pub fn below(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.found(Some(self.find_position(&Probe::new(key)).before))
    }
}

/// Where a key is in the list, or would be.
struct Position {
    /// The last entry before it, or the head.
    before: EntryPtr,
    /// The first entry that isn't.
    at_or_after: Option<EntryPtr>,
    /// `at_or_after` has the very key.
    is_equal: bool,
    /// The key index knows all entries around it.
    is_exact: bool,
}

/// A key in the map.
#[derive(Clone, Copy)]
pub(crate) struct EntryRef<'m> {
    at: EntryPtr,
    map: &'m VersionMap,
}

impl<'m> EntryRef<'m> {
    pub fn key(&self) -> &'m [u8] {
        let key: *const [u8] = self.at.key();
        // SAFETY: it lives as long as the map's arena.
        unsafe { &*key }
    }

    /// The value of the newest version that is not newer than `ts`, if there is such a version;
    /// `None` within is a deletion.
    #[inline]
    pub fn visible(&self, ts: u64) -> Option<Option<&'m [u8]>> {
        Some(self.value_of(self.at.visible(ts)?))
    }

    /// As [`visible`](Self::visible), with the timestamp of the version.
    #[inline]
    pub fn version(&self, ts: u64) -> Option<(u64, Option<&'m [u8]>)> {
        let version = self.at.visible(ts)?;
        Some((version.ts(), self.value_of(version)))
    }

    /// All versions, the newest first: each with its timestamp.
    pub fn versions(self) -> impl Iterator<Item = (u64, Option<&'m [u8]>)> {
        let versions = std::iter::successors(self.at.newest(), VersionPtr::older);
        versions.map(move |version| (version.ts(), self.value_of(version)))
    }

    fn value_of(&self, version: VersionPtr) -> Option<&'m [u8]> {
        let value: *const [u8] = version.value()?;
        // SAFETY: it lives as long as the map's arena.
        Some(unsafe { &*value })
    }

    pub fn next(&self) -> Option<EntryRef<'m>> {
        let at = self.at.next()?;
        Some(EntryRef { at, map: self.map })
    }

    /// Prefetches the next key and its first version.
    #[inline]
    pub fn prefetch_next(&self) {
        let next = self.at.entry().next.load(Ordering::Relaxed);
        prefetch(next.cast(), PREFETCHED_BYTES);
    }

    /// Where the key is, and its newest version that is not newer than `ts`, if there is one.
    #[inline]
    pub fn position_at(&self, ts: u64) -> Option<VersionPosition> {
        let version = self.at.visible(ts)?;
        Some(VersionPosition {
            at: self.at,
            version,
        })
    }
}

/// A key that was written to, without a borrow of its map: for a writer that keeps the map alive
/// itself.
#[derive(Clone, Copy)]
pub(crate) struct WrittenEntry(EntryPtr);

// SAFETY: it points to memory of which only atomics change, and is of no use without the map.
unsafe impl Send for WrittenEntry {}
// SAFETY: as above.
unsafe impl Sync for WrittenEntry {}

/// A key and a version of it, without a borrow of their map: for a cursor that keeps the map alive
/// itself.
#[derive(Clone, Copy)]
pub(crate) struct VersionPosition {
    at: EntryPtr,
    version: VersionPtr,
}

// SAFETY: it points to memory of which only atomics change, and is of no use without the map.
unsafe impl Send for VersionPosition {}
// SAFETY: as above.
unsafe impl Sync for VersionPosition {}

impl VersionPosition {
    /// # Safety
    ///
    /// The key was one of this very map.
    #[inline]
    pub unsafe fn found(self, map: &VersionMap) -> EntryRef<'_> {
        EntryRef { at: self.at, map }
    }

    /// The timestamp of the version.
    #[inline]
    pub fn ts(self) -> u64 {
        self.version.ts()
    }

    /// The key and its value; `None` for that is a deletion.
    ///
    /// # Safety
    ///
    /// The key was one of this very map.
    #[inline]
    pub unsafe fn row(self, map: &VersionMap) -> (&[u8], Option<&[u8]>) {
        let found = EntryRef { at: self.at, map };
        (found.key(), found.value_of(self.version))
    }
}

#[cfg(test)]
mod tests;
