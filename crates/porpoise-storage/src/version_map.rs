//! An ordered map that only grows: of each key its versions, the newest first.
//!
//! Keys are in a list, and each has a chain of versions. An entry is one piece of memory, with its link, its key and
//! its first version side by side, so a scan reads on in the same line, and adding an entry takes no allocation of its own:
//!
//! ```text
//! entry   │ first 8 bytes of key │ newest │ next │ length │ key │ version │
//!
//! guide       a b │ c d                a B-tree that says where to begin ([`guide`])
//!             │ │   │ │
//! list    ──► a ──► b ─► c ──► d ─► ·
//!             │     │    │     │
//! versions    9     7    8     5       value or deletion, by timestamp
//!             4          3
//! ```
//!
//! Entries and versions lie in an [`Arena`], which gives memory in large pieces and frees all of it at once: nothing is
//! ever taken out of the map. That makes its concurrency simple. A writer prepares an entry that nobody sees, then puts
//! it in by a compare-and-swap of its predecessor's link: there it is, and is then entered in the guide. A version of a key that is
//! there already goes into its chain in the same way. Readers load links, and never wait.
//!
//! Two writers never add versions of one key at the same time if readers are to be sure to see the second: row locks see to it, which
//! are held until the versions are in.

mod guide;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering as Order;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::prefetch::prefetch;
use crate::prefix::{Probe, prefix};
use guide::{Guide, SLOT_BYTES};

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

/// An entry with a version of two hundred bytes.
const PREFETCHED_BYTES: usize = 256;

/// The length of a value that isn't there.
const DELETED: u32 = u32::MAX;

/// How often a search that was led astray by changes under way begins anew.
const SEARCHES_MAX: usize = 8;

/// What stands before an entry's key.
#[repr(C)]
struct Entry {
    prefix: u64,
    newest: AtomicPtr<Version>,
    next: AtomicPtr<Entry>,
    key_len: u32,
}

/// What stands before a version's value.
#[repr(C)]
struct Version {
    older: AtomicPtr<Version>,
    ts: u64,
    value_len: u32,
}

/// What a version takes beside its key and value, if it is the first of its key.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 =
    (size_of::<Entry>() + size_of::<Version>() + SLOT_BYTES) as u64;

fn length(bytes: &[u8]) -> u32 {
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len < DELETED);
    len.expect("keys and values are shorter than 4 GiB")
}

/// An entry's place, with the right to read all of its memory. It lives as long as its arena.
#[derive(Clone, Copy, PartialEq, Eq)]
struct At(NonNull<Entry>);

impl At {
    /// An entry with no successor and one version.
    fn make(arena: &Arena, key: &[u8], ts: u64, value: Option<&[u8]>) -> At {
        let version_at = size_of::<Entry>() + key.len().next_multiple_of(ALIGNMENT);
        let piece = arena.allocate(version_at + VersionAt::len(value));
        // SAFETY: the piece is as large as all that is written, aligned for all of it, and nobody else's yet.
        unsafe {
            let version = VersionAt::write(piece.add(version_at), ts, value);
            let at = piece.cast::<Entry>();
            at.write(Entry {
                prefix: prefix(key),
                newest: AtomicPtr::new(version.0.as_ptr()),
                next: AtomicPtr::new(ptr::null_mut()),
                key_len: length(key),
            });
            let body = piece.add(size_of::<Entry>());
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
        // SAFETY: `make` has written these bytes behind the head, and they aren't changed after it.
        unsafe {
            let body = self.0.add(1).cast::<u8>();
            std::slice::from_raw_parts(body.as_ptr(), entry.key_len as usize)
        }
    }

    fn next(&self) -> Option<At> {
        NonNull::new(self.entry().next.load(Ordering::Acquire)).map(At)
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
    /// Comes before every entry.
    head: At,
    guide: Guide,
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
        let head = At::make(&arena, &[], 0, None);
        VersionMap {
            guide: Guide::new(&arena, head),
            arena,
            head,
            len: AtomicUsize::new(0),
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub fn insert(&self, key: &[u8], ts: u64, value: Option<&[u8]>) {
        let probe = Probe::new(key);
        let Place {
            mut before,
            mut behind,
            is_equal,
            is_sure,
        } = self.place_of(&probe);
        if let Some(entry) = behind.filter(|_| is_equal) {
            entry.push(VersionAt::make(&self.arena, ts, value));
            if !is_sure {
                self.guide.enter(&self.arena, entry);
            }
            return;
        }
        let new = At::make(&self.arena, key, ts, value);
        loop {
            let after = behind.map_or(ptr::null_mut(), |at| at.0.as_ptr());
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
            (before, behind) = self.walk(&probe, before, None);
            if let Some(at) = behind.filter(|at| probe.compare_entry(*at).is_eq()) {
                // Somebody else was faster to add the key: the version that came with it is of use.
                let version = new.entry().newest.load(Ordering::Relaxed);
                at.push(VersionAt(NonNull::new(version).expect("made with one")));
                self.guide.enter(&self.arena, at);
                return;
            }
        }
        self.len.fetch_add(1, Ordering::Relaxed);
        self.guide.enter(&self.arena, new);
    }

    /// The last entry before the probe, beginning at one that is before it, and the one behind that. `known` isn't before it.
    fn walk(&self, probe: &Probe<'_>, from: At, known: Option<At>) -> (At, Option<At>) {
        let mut before = from;
        let mut behind = before.next();
        while let Some(at) =
            behind.filter(|at| Some(*at) != known && probe.compare_entry(*at).is_lt())
        {
            before = at;
            behind = at.next();
        }
        (before, behind)
    }

    /// Where the probe is, or would be.
    #[inline]
    fn place_of(&self, probe: &Probe<'_>) -> Place {
        let is_at = |at: At| probe.compare_entry(at).is_eq();
        if let Some(located) = self.guide.locate(probe)
            && located.is_sure
        {
            return Place {
                before: located.before,
                behind: located.behind,
                is_equal: located.may_be_equal && located.behind.is_some_and(is_at),
                is_sure: true,
            };
        }
        self.place_in_list(probe)
    }

    /// As [`place_of`](Self::place_of), where the guide is being changed, or has gaps.
    #[cold]
    fn place_in_list(&self, probe: &Probe<'_>) -> Place {
        let from = (0..SEARCHES_MAX)
            .filter_map(|_| self.guide.locate(probe))
            .map(|located| located.before)
            .find(|at| probe.compare_entry(*at).is_lt());
        let (before, behind) = self.walk(probe, from.unwrap_or(self.head), None);
        Place {
            before,
            behind,
            is_equal: behind.is_some_and(|at| probe.compare_entry(at).is_eq()),
            is_sure: false,
        }
    }

    fn found(&self, at: Option<At>) -> Option<Found<'_>> {
        let at = at.filter(|at| *at != self.head)?;
        Some(Found { at, map: self })
    }

    pub fn get(&self, key: &[u8]) -> Option<Found<'_>> {
        let place = self.place_of(&Probe::new(key));
        self.found(place.behind.filter(|_| place.is_equal))
    }

    pub fn first(&self) -> Option<Found<'_>> {
        self.found(self.head.next())
    }

    pub fn last(&self) -> Option<Found<'_>> {
        let mut last = self.guide.near_last().unwrap_or(self.head);
        while let Some(next) = last.next() {
            last = next;
        }
        self.found(Some(last))
    }

    /// The first key that is not below the given one.
    pub fn at_or_above(&self, key: &[u8]) -> Option<Found<'_>> {
        self.found(self.place_of(&Probe::new(key)).behind)
    }

    /// The first key above the given one.
    pub fn above(&self, key: &[u8]) -> Option<Found<'_>> {
        let place = self.place_of(&Probe::new(key));
        match place.behind.filter(|_| place.is_equal) {
            Some(at) => self.found(at.next()),
            None => self.found(place.behind),
        }
    }

    /// The last key that is not above the given one.
    pub fn at_or_below(&self, key: &[u8]) -> Option<Found<'_>> {
        let place = self.place_of(&Probe::new(key));
        let at = place.behind.filter(|_| place.is_equal);
        self.found(Some(at.unwrap_or(place.before)))
    }

    /// The last key below the given one.
    pub fn below(&self, key: &[u8]) -> Option<Found<'_>> {
        self.found(Some(self.place_of(&Probe::new(key)).before))
    }
}

/// Where a key is in the list, or would be.
struct Place {
    /// The last entry before it, or the head.
    before: At,
    /// The first entry that isn't.
    behind: Option<At>,
    /// `behind` has the very key.
    is_equal: bool,
    /// The guide has said so.
    is_sure: bool,
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
        let at = self.at.next()?;
        Some(Found { at, map: self.map })
    }

    /// Has the next key and its first version brought to this core, while there is something else to do.
    #[inline]
    pub fn prefetch_next(&self) {
        let next = self.at.entry().next.load(Ordering::Relaxed);
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

    /// In whatever order keys come, each is found without a walk along the list.
    #[test]
    fn the_guide_knows_every_key() {
        let count: u32 = if cfg!(miri) { 300 } else { 50_000 };
        let orders: [fn(u32, u32) -> u32; 4] = [
            |number, _| number,
            |number, count| count - 1 - number,
            |number, count| (number as u64 * 7_919 % u64::from(count)) as u32,
            // Runs that end in one another's midst.
            |number, count| number / 2 + (number % 2) * (count / 2),
        ];
        for order in orders {
            for behind in [&b""[..], b"a tail of eight bytes and more"] {
                let map = map();
                let key = |number: u32| [b"in front", &number.to_be_bytes()[..], behind].concat();
                for number in 0..count {
                    map.insert(&key(order(number, count)), 1, None);
                }
                let mut at = map.first();
                for number in 0..count {
                    let (key, found) = (key(number), at.unwrap());
                    assert_eq!(found.key(), key);
                    let place = map.place_of(&Probe::new(&key));
                    assert!(place.is_sure && place.is_equal && place.behind == Some(found.at));
                    let absent = [&key[..], b"0"].concat();
                    let place = map.place_of(&Probe::new(&absent));
                    assert!(place.is_sure && !place.is_equal && place.before == found.at);
                    at = found.next();
                }
                assert!(at.is_none());
                assert_eq!(map.last().unwrap().key(), key(count - 1));
            }
        }
    }

    #[test]
    fn what_is_there_is_found_while_others_add() {
        let map = map();
        let (writers, each) = if cfg!(miri) { (2, 40) } else { (3, 30_000) };
        let key =
            |writer: u32, number: u32| (number.wrapping_mul(2_654_435_761) ^ writer).to_be_bytes();
        thread::scope(|scope| {
            for writer in 0..writers {
                let (map, key) = (&map, &key);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(u64::from(writer));
                    for number in 0..each {
                        map.insert(&key(writer, number), 1, Some(&[7]));
                        let earlier = key(writer, random.u32(0..=number));
                        let found = map.get(&earlier).expect("added before");
                        assert_eq!(found.visible(1), Some(Some(&[7][..])));
                        let from = map.at_or_above(&earlier).expect("added before");
                        assert_eq!(from.key(), earlier);
                        assert!(
                            map.below(&earlier)
                                .is_none_or(|below| below.key() < &earlier[..])
                        );
                    }
                });
            }
        });
        let mut sorted: Vec<_> = (0..writers)
            .flat_map(|writer| (0..each).map(move |number| (writer, number)))
            .map(|(writer, number)| key(writer, number).to_vec())
            .collect();
        sorted.sort();
        sorted.dedup();
        assert_eq!(keys(&map), sorted);
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
