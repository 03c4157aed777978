//! An ordered map that only grows: of each key its versions, the newest first.
//!
//! Keys are in a skip list, and each has a chain of versions. An entry is one piece of memory, with its links, its key and
//! its first version side by side, so a search touches one cache line an entry, a scan reads on in the same line, and
//! adding an entry takes no allocation of its own:
//!
//! ```text
//! entry   │ first 8 bytes of key │ newest │ lengths │ next₀ next₁ … │ key │ version │
//!
//! next₂   ─────────────────────► c ───────────► ·
//! next₁   ────────► b ─────────► c ───────────► ·
//! next₀   ──► a ──► b ─────────► c ──► d ─────► ·
//!             │     │            │     │
//! versions    9     7            8     5            value or deletion, by timestamp
//!             4                  3
//! ```
//!
//! Entries and versions lie in an [`Arena`], which gives memory in large pieces and frees all of it at once: nothing is
//! ever taken out of the map. That makes its concurrency simple. A writer prepares an entry that nobody sees, then puts
//! it in, one level after the other from below, by a compare-and-swap of its predecessor's link; it is there once
//! the lowest link is set. A version of a key that is there already goes into its chain in the same way. Readers load
//! links, and never wait or retry.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering as Order;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::prefetch::prefetch;
use crate::prefix::{Probe, prefix};

// ── Memory ───────────────────────────────────────────────────────────────────────────────────

/// The first piece of an arena; each later one is twice as large, up to the largest.
const CHUNK_BYTES_MIN: usize = 16 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

const ALIGNMENT: usize = align_of::<Entry>();

/// Memory that is given out in small pieces by any thread, and freed all at once.
#[derive(Default)]
pub(crate) struct Arena {
    /// Where pieces come from now; owned by `chunks`.
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Vec<NonNull<Chunk>>>,
}

struct Chunk {
    memory: NonNull<u8>,
    len: usize,
    /// How much is given out; beyond `len` once it is full.
    used: AtomicUsize,
}

impl Arena {
    fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: chunks are freed only with the arena, which is borrowed.
            if let Some(chunk) = unsafe { current.as_ref() }
                && let Some(piece) = chunk.take(bytes)
            {
                return piece;
            }
            let mut chunks = self.chunks.lock();
            if self.current.load(Ordering::Relaxed) != current {
                continue;
            }
            if bytes > CHUNK_BYTES_MAX / 4 {
                // It would waste most of a piece: it gets its own, and small ones go on where they are.
                let chunk = Chunk::new(bytes);
                let piece = chunk.memory;
                chunk.used.store(bytes, Ordering::Relaxed);
                chunks.push(NonNull::from(Box::leak(Box::new(chunk))));
                return piece;
            }
            let len = CHUNK_BYTES_MIN << chunks.len().min(16);
            let chunk = Box::leak(Box::new(Chunk::new(len.clamp(bytes, CHUNK_BYTES_MAX))));
            let chunk = NonNull::from(chunk);
            chunks.push(chunk);
            self.current.store(chunk.as_ptr(), Ordering::Release);
        }
    }
}

// SAFETY: the pointers in it are to memory that it owns and that is changed by atomics alone, or by whoever was given a piece.
unsafe impl Send for Arena {}
// SAFETY: as above; `chunks` is behind a mutex.
unsafe impl Sync for Arena {}

impl Drop for Arena {
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut() {
            // SAFETY: `chunks` owns what was leaked into it; whoever had a piece borrowed the arena.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

impl Chunk {
    fn new(len: usize) -> Chunk {
        let layout = Chunk::layout(len);
        // SAFETY: the layout isn't empty: an entry has a head.
        let memory = unsafe { alloc(layout) };
        Chunk {
            memory: NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout)),
            len,
            used: AtomicUsize::new(0),
        }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, ALIGNMENT).expect("a piece is smaller than the address space")
    }

    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        let at = self.used.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: the piece lies within the chunk's memory.
        (at <= self.len && bytes <= self.len - at).then(|| unsafe { self.memory.add(at) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout by `new`.
        unsafe { dealloc(self.memory.as_ptr(), Chunk::layout(self.len)) };
    }
}

// ── Entries ──────────────────────────────────────────────────────────────────────────────────

/// Enough for some 4^12 entries at one level in four.
const HEIGHT_MAX: usize = 12;

/// An entry with a version of two hundred bytes.
const PREFETCHED_BYTES: usize = 256;

/// The length of a value that isn't there.
const DELETED: u32 = u32::MAX;

/// What stands before an entry's links and key.
#[repr(C)]
struct Entry {
    prefix: u64,
    newest: AtomicPtr<Version>,
    key_len: u32,
    height: u32,
}

/// What stands before a version's value.
#[repr(C)]
struct Version {
    older: AtomicPtr<Version>,
    ts: u64,
    value_len: u32,
}

type Link = AtomicPtr<Entry>;

/// What a version takes beside its key and value, if it is the first of its key.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 =
    (size_of::<Entry>() + size_of::<Version>() + 2 * size_of::<Link>()) as u64;

fn length(bytes: &[u8]) -> u32 {
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len < DELETED);
    len.expect("keys and values are shorter than 4 GiB")
}

/// An entry's place, with the right to read all of its memory. It lives as long as its arena.
#[derive(Clone, Copy, PartialEq, Eq)]
struct At(NonNull<Entry>);

impl At {
    /// Where the key begins, behind the head and the links.
    const fn key_at(height: usize) -> usize {
        size_of::<Entry>() + height * size_of::<Link>()
    }

    /// Where the first version begins.
    fn version_at(height: usize, key: &[u8]) -> usize {
        At::key_at(height) + key.len().next_multiple_of(ALIGNMENT)
    }

    /// An entry with no successors and one version.
    fn make(arena: &Arena, key: &[u8], height: usize, ts: u64, value: Option<&[u8]>) -> At {
        let version_at = At::version_at(height, key);
        let piece = arena.allocate(version_at + VersionAt::len(value));
        // SAFETY: the piece is as large as all that is written, aligned for all of it, and nobody else's yet.
        unsafe {
            let version = VersionAt::write(piece.add(version_at), ts, value);
            let at = piece.cast::<Entry>();
            at.write(Entry {
                prefix: prefix(key),
                newest: AtomicPtr::new(version.0.as_ptr()),
                key_len: length(key),
                height: height as u32,
            });
            let links = at.add(1).cast::<Link>();
            for level in 0..height {
                links.add(level).write(Link::new(ptr::null_mut()));
            }
            let body = piece.add(At::key_at(height));
            ptr::copy_nonoverlapping(key.as_ptr(), body.as_ptr(), key.len());
            At(at)
        }
    }

    fn entry(&self) -> &Entry {
        // SAFETY: whoever holds an `At` holds the arena, too, and of an entry's head only atomics change.
        unsafe { self.0.as_ref() }
    }

    fn key(&self) -> &[u8] {
        let entry = self.entry();
        // SAFETY: `make` has written these bytes behind the links, and they aren't changed after it.
        unsafe {
            let body = self.0.cast::<u8>().add(At::key_at(entry.height as usize));
            std::slice::from_raw_parts(body.as_ptr(), entry.key_len as usize)
        }
    }

    fn link(&self, level: usize) -> &Link {
        debug_assert!(level < self.entry().height as usize);
        // SAFETY: `make` has written `height` links behind the head; they are changed by atomics alone.
        unsafe { self.0.add(1).cast::<Link>().add(level).as_ref() }
    }

    fn next(&self, level: usize) -> Option<At> {
        NonNull::new(self.link(level).load(Ordering::Acquire)).map(At)
    }

    /// The newest version that is not newer than `ts`.
    fn visible(&self, ts: u64) -> Option<VersionAt> {
        let newest = self.entry().newest.load(Ordering::Acquire);
        let mut at = NonNull::new(newest).map(VersionAt);
        while let Some(version) = at.filter(|at| at.version().ts > ts) {
            at = version.older();
        }
        at
    }

    /// Adds a version to the chain. Of two of the same timestamp the later one is found.
    fn push(&self, new: VersionAt) {
        let ts = new.version().ts;
        let mut link = &self.entry().newest;
        loop {
            let next = link.load(Ordering::Acquire);
            // SAFETY: versions live as long as the arena.
            if let Some(version) = unsafe { next.as_ref() }
                && version.ts > ts
            {
                link = &version.older;
                continue;
            }
            new.version().older.store(next, Ordering::Relaxed);
            let new = new.0.as_ptr();
            let outcome = link.compare_exchange(next, new, Ordering::Release, Ordering::Relaxed);
            if outcome.is_ok() {
                return;
            }
        }
    }
}

/// A version's place, with the right to read its value. It lives as long as its arena.
#[derive(Clone, Copy)]
struct VersionAt(NonNull<Version>);

impl VersionAt {
    fn len(value: Option<&[u8]>) -> usize {
        size_of::<Version>() + value.map_or(0, <[u8]>::len)
    }

    fn make(arena: &Arena, ts: u64, value: Option<&[u8]>) -> VersionAt {
        let piece = arena.allocate(VersionAt::len(value));
        // SAFETY: the piece is large enough, aligned and nobody else's yet.
        unsafe { VersionAt::write(piece, ts, value) }
    }

    /// # Safety
    ///
    /// The piece is the caller's alone, aligned, and holds [`VersionAt::len`] bytes.
    unsafe fn write(piece: NonNull<u8>, ts: u64, value: Option<&[u8]>) -> VersionAt {
        let at = piece.cast::<Version>();
        let bytes = value.unwrap_or_default();
        // SAFETY: as the caller promises.
        unsafe {
            at.write(Version {
                older: AtomicPtr::new(ptr::null_mut()),
                ts,
                value_len: value.map_or(DELETED, length),
            });
            let body = at.add(1).cast::<u8>();
            ptr::copy_nonoverlapping(bytes.as_ptr(), body.as_ptr(), bytes.len());
        }
        VersionAt(at)
    }

    fn version(&self) -> &Version {
        // SAFETY: whoever holds a `VersionAt` holds the arena, too, and of a version's head only an atomic changes.
        unsafe { self.0.as_ref() }
    }

    fn older(&self) -> Option<VersionAt> {
        NonNull::new(self.version().older.load(Ordering::Acquire)).map(VersionAt)
    }

    fn value(&self) -> Option<&[u8]> {
        let len = self.version().value_len;
        // SAFETY: `write` has put these bytes behind the head, and they aren't changed after it.
        (len != DELETED).then(|| unsafe {
            let body = self.0.add(1).cast::<u8>();
            std::slice::from_raw_parts(body.as_ptr(), len as usize)
        })
    }
}

// ── The list ─────────────────────────────────────────────────────────────────────────────────

pub(crate) struct VersionMap {
    arena: Arc<Arena>,
    /// Comes before every entry, and has all levels.
    head: At,
    /// Levels in use.
    height: AtomicUsize,
    len: AtomicUsize,
}

// SAFETY: entries belong to the arena, which goes with the map, and are shared by atomics.
unsafe impl Send for VersionMap {}
// SAFETY: as above.
unsafe impl Sync for VersionMap {}

impl Probe<'_> {
    /// How the entry lies to the probe.
    fn compare_entry(&self, at: At) -> Order {
        self.compare_with(at.entry().prefix, || at.key())
    }
}

impl VersionMap {
    pub fn new(arena: Arc<Arena>) -> VersionMap {
        let head = At::make(&arena, &[], HEIGHT_MAX, 0, None);
        VersionMap {
            arena,
            head,
            height: AtomicUsize::new(1),
            len: AtomicUsize::new(0),
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub fn insert(&self, key: &[u8], ts: u64, value: Option<&[u8]>) {
        let probe = Probe::new(key);
        let mut before = [self.head; HEIGHT_MAX];
        let (_, found) = self.descend(
            |at| probe.compare_entry(at).is_lt(),
            |level, last| before[level] = last,
        );
        if let Some(entry) = found.filter(|at| probe.compare_entry(*at).is_eq()) {
            entry.push(VersionAt::make(&self.arena, ts, value));
            return;
        }
        let number = self.len.fetch_add(1, Ordering::Relaxed);
        let height = random_height(number as u64);
        let new = At::make(&self.arena, key, height, ts, value);
        for (level, before) in before.iter_mut().enumerate().take(height) {
            loop {
                let mut after = before.next(level);
                while let Some(at) = after.filter(|at| probe.compare_entry(*at).is_lt()) {
                    *before = at;
                    after = at.next(level);
                }
                if let Some(at) = after.filter(|at| level == 0 && probe.compare_entry(*at).is_eq())
                {
                    // Somebody else was faster to add the key: the version that came with it is of use.
                    self.len.fetch_sub(1, Ordering::Relaxed);
                    let version = new.entry().newest.load(Ordering::Relaxed);
                    at.push(VersionAt(NonNull::new(version).expect("made with one")));
                    return;
                }
                let after = after.map_or(ptr::null_mut(), |at| at.0.as_ptr());
                new.link(level).store(after, Ordering::Relaxed);
                let outcome = before.link(level).compare_exchange(
                    after,
                    new.0.as_ptr(),
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                if outcome.is_ok() {
                    break;
                }
            }
        }
        // Searches that don't know of the new levels yet find it on those below.
        self.height.fetch_max(height, Ordering::Relaxed);
    }

    /// The last entry for which `is_before` holds, the head if for none, and the one behind it. It must hold for all entries
    /// up to some place and for none after it. `see` gets the last one of each level.
    fn descend(
        &self,
        is_before: impl Fn(At) -> bool,
        mut see: impl FnMut(usize, At),
    ) -> (At, Option<At>) {
        let mut last = self.head;
        let mut behind = None;
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            let mut next = last.next(level);
            // What ended the level above ends this one, too.
            while let Some(at) = next.filter(|at| Some(*at) != behind && is_before(*at)) {
                last = at;
                next = at.next(level);
            }
            behind = next;
            see(level, last);
        }
        (last, behind)
    }

    fn find(&self, is_before: impl Fn(At) -> bool) -> Option<Found<'_>> {
        let (_, behind) = self.descend(is_before, |_, _| ());
        behind.map(|at| Found { at, map: self })
    }

    fn find_last(&self, is_before: impl Fn(At) -> bool) -> Option<Found<'_>> {
        let (last, _) = self.descend(is_before, |_, _| ());
        (last != self.head).then_some(Found {
            at: last,
            map: self,
        })
    }

    pub fn get(&self, key: &[u8]) -> Option<Found<'_>> {
        let probe = Probe::new(key);
        self.find(|at| probe.compare_entry(at).is_lt())
            .filter(|found| probe.compare_entry(found.at).is_eq())
    }

    pub fn first(&self) -> Option<Found<'_>> {
        let at = self.head.next(0)?;
        Some(Found { at, map: self })
    }

    pub fn last(&self) -> Option<Found<'_>> {
        self.find_last(|_| true)
    }

    /// The first key that is not below the given one.
    pub fn at_or_above(&self, key: &[u8]) -> Option<Found<'_>> {
        let probe = Probe::new(key);
        self.find(|at| probe.compare_entry(at).is_lt())
    }

    /// The first key above the given one.
    pub fn above(&self, key: &[u8]) -> Option<Found<'_>> {
        let probe = Probe::new(key);
        self.find(|at| probe.compare_entry(at).is_le())
    }

    /// The last key that is not above the given one.
    pub fn at_or_below(&self, key: &[u8]) -> Option<Found<'_>> {
        let probe = Probe::new(key);
        self.find_last(|at| probe.compare_entry(at).is_le())
    }

    /// The last key below the given one.
    pub fn below(&self, key: &[u8]) -> Option<Found<'_>> {
        let probe = Probe::new(key);
        self.find_last(|at| probe.compare_entry(at).is_lt())
    }
}

/// How many levels the entry of this number has: one in four goes a level higher.
fn random_height(number: u64) -> usize {
    // The finishing steps of SplitMix64.
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    (1 + bits.trailing_zeros() as usize / 2).min(HEIGHT_MAX)
}

/// A key in the map.
#[derive(Clone, Copy)]
pub(crate) struct Found<'m> {
    at: At,
    map: &'m VersionMap,
}

impl<'m> Found<'m> {
    pub fn key(&self) -> &'m [u8] {
        let key: *const [u8] = self.at.key();
        // SAFETY: it lives as long as the map's arena.
        unsafe { &*key }
    }

    /// The value of the newest version that is not newer than `ts`, if there is such a version; `None` within is a deletion.
    #[inline]
    pub fn visible(&self, ts: u64) -> Option<Option<&'m [u8]>> {
        Some(self.value_of(self.at.visible(ts)?))
    }

    fn value_of(&self, version: VersionAt) -> Option<&'m [u8]> {
        let value: *const [u8] = version.value()?;
        // SAFETY: it lives as long as the map's arena.
        Some(unsafe { &*value })
    }

    pub fn next(&self) -> Option<Found<'m>> {
        let at = self.at.next(0)?;
        Some(Found { at, map: self.map })
    }

    /// Has the next key and its first version brought to this core, while there is something else to do.
    #[inline]
    pub fn prefetch_next(&self) {
        let next = self.at.link(0).load(Ordering::Relaxed);
        prefetch(next.cast(), PREFETCHED_BYTES);
    }

    /// Where the key is, and its newest version that is not newer than `ts`, if there is one.
    #[inline]
    pub fn bookmark(&self, ts: u64) -> Option<Bookmark> {
        let version = self.at.visible(ts)?;
        Some(Bookmark {
            at: self.at,
            version,
        })
    }
}

/// A key and a version of it, remembered beside whatever keeps their map alive.
#[derive(Clone, Copy)]
pub(crate) struct Bookmark {
    at: At,
    version: VersionAt,
}

// SAFETY: it is two places in memory of which only atomics change, and of no use without the map.
unsafe impl Send for Bookmark {}
// SAFETY: as above.
unsafe impl Sync for Bookmark {}

impl Bookmark {
    /// # Safety
    ///
    /// The key was one of this very map.
    #[inline]
    pub unsafe fn found(self, map: &VersionMap) -> Found<'_> {
        Found { at: self.at, map }
    }

    /// The key and its value; `None` for that is a deletion.
    ///
    /// # Safety
    ///
    /// The key was one of this very map.
    #[inline]
    pub unsafe fn row(self, map: &VersionMap) -> (&[u8], Option<&[u8]>) {
        let found = Found { at: self.at, map };
        (found.key(), found.value_of(self.version))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;
    use std::thread;

    use super::*;

    fn map() -> VersionMap {
        VersionMap::new(Arc::default())
    }

    fn keys(map: &VersionMap) -> Vec<Vec<u8>> {
        std::iter::successors(map.first(), Found::next)
            .map(|found| found.key().to_vec())
            .collect()
    }

    fn random_key(random: &mut fastrand::Rng) -> Vec<u8> {
        let len = random.usize(0..12);
        (0..len).map(|_| random.u8(0..3)).collect()
    }

    #[test]
    fn versions_are_found_as_in_a_sorted_map() {
        let map = map();
        let mut model: BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>> = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(7);
        let rounds = if cfg!(miri) { 300 } else { 20_000 };
        for _ in 0..rounds {
            let key = random_key(&mut random);
            // Not in order, and sometimes twice.
            let ts = random.u64(1..rounds);
            let value = random
                .bool()
                .then(|| vec![random.u8(..); random.usize(0..40)]);
            map.insert(&key, ts, value.as_deref());
            model.entry(key).or_default().insert(ts, value);
        }
        assert_eq!(keys(&map), model.keys().cloned().collect::<Vec<_>>());
        assert_eq!(map.len(), model.len());
        let name = |found: Option<Found<'_>>| found.map(|found| found.key().to_vec());
        assert_eq!(name(map.last()), model.keys().next_back().cloned());
        for _ in 0..rounds {
            let key = random_key(&mut random);
            let ts = random.u64(0..rounds);
            let known = model.get(&key);
            assert_eq!(map.get(&key).is_some(), known.is_some());
            let expected = known.and_then(|versions| versions.range(..=ts).next_back());
            let found = map.get(&key).and_then(|found| found.visible(ts));
            assert_eq!(
                found.map(|value| value.map(<[u8]>::to_vec)),
                expected.map(|(_, value)| value.clone())
            );
            let (from, to) = (Bound::Included(&key), Bound::Excluded(&key));
            let first = |low| model.range::<Vec<u8>, _>((low, Bound::Unbounded)).next();
            let last = |high| {
                model
                    .range::<Vec<u8>, _>((Bound::Unbounded, high))
                    .next_back()
            };
            let copy = |row: Option<(&Vec<u8>, _)>| row.map(|(key, _)| key.clone());
            assert_eq!(name(map.at_or_above(&key)), copy(first(from)));
            assert_eq!(name(map.above(&key)), copy(first(to)));
            assert_eq!(name(map.at_or_below(&key)), copy(last(from)));
            assert_eq!(name(map.below(&key)), copy(last(to)));
        }
    }

    #[test]
    fn an_empty_map_has_nothing() {
        let map = map();
        assert!(map.first().is_none() && map.last().is_none());
        assert!(map.get(b"").is_none());
        assert!(map.at_or_below(b"a").is_none());
    }

    #[test]
    fn large_values_get_a_piece_of_their_own() {
        let map = map();
        let large = vec![7; CHUNK_BYTES_MAX + 3];
        map.insert(b"b", 1, Some(&large));
        map.insert(b"a", 1, Some(b"small"));
        let found = map.first().unwrap();
        assert_eq!(found.visible(1), Some(Some(&b"small"[..])));
        assert_eq!(found.next().unwrap().visible(1), Some(Some(&large[..])));
    }

    #[test]
    fn writers_side_by_side_lose_nothing_and_readers_see_an_order() {
        let map = map();
        let (writers, each) = if cfg!(miri) { (3, 60) } else { (4, 20_000) };
        thread::scope(|scope| {
            for writer in 0..writers {
                let map = &map;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(writer);
                    for number in 0..each {
                        let key = random.u16(0..500).to_be_bytes();
                        let ts = number * writers + writer + 1;
                        map.insert(&key, ts, Some(&ts.to_be_bytes()));
                        // What it has put in, it finds.
                        let found = map.get(&key).and_then(|found| found.visible(ts));
                        assert_eq!(found, Some(Some(&ts.to_be_bytes()[..])));
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..each / 20 {
                    assert!(keys(&map).windows(2).all(|two| two[0] < two[1]));
                    thread::yield_now();
                }
            });
        });
        let mut versions = 0;
        for found in std::iter::successors(map.first(), Found::next) {
            let mut ts = u64::MAX;
            while let Some(value) = found.visible(ts) {
                versions += 1;
                ts = u64::from_be_bytes(value.unwrap().try_into().unwrap()) - 1;
            }
        }
        assert_eq!(versions, writers * each);
        assert_eq!(keys(&map).len(), map.len());
    }
}
