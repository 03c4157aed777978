//! Scans of what isn't in memory: what the disk begins with before they come there, and what they
//! leave in memory.

use std::collections::HashSet;
use std::io;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, Mutex};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{Direction, Options, SpaceId, Store};

mod hooked_disk;

const SPACE: SpaceId = SpaceId(1);
const ROWS: u32 = 30_000;
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
struct Reads {
    begun: HashSet<u64>,
    begun_twice: usize,
    read: HashSet<u64>,
    /// Pages that were asked for before they were read.
    read_after_begun: usize,
}

/// Tells which pages of the tree were read, and which had been asked for before.
#[derive(Debug)]
struct Watch(Arc<Mutex<Reads>>);

fn pages(offset: u64, len: u64) -> Range<u64> {
    offset / PAGE..(offset + len).div_ceil(PAGE)
}

impl Hooks for Watch {
    fn read_at(&self, of: &OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if of.name.starts_with("tree.redb") {
            let mut reads = self.0.lock().unwrap();
            for page in pages(offset, bytes.len() as u64) {
                let is_new = reads.read.insert(page);
                let was_begun = reads.begun.contains(&page);
                reads.read_after_begun += usize::from(is_new && was_begun);
            }
        }
        of.file.read_at(bytes, offset)
    }

    fn begin_reading(&self, of: &OpenFile, offset: u64, len: u64) {
        if of.name.starts_with("tree.redb") {
            let mut reads = self.0.lock().unwrap();
            for page in pages(offset, len) {
                let is_new = reads.begun.insert(page);
                reads.begun_twice += usize::from(!is_new);
            }
        }
    }
}

/// A store with rows of which nothing is in memory, since it was opened anew.
fn store(folder: &Path, cache_bytes: usize) -> (Store, Arc<Mutex<Reads>>) {
    let reads = Arc::new(Mutex::new(Reads::default()));
    let mut options = Options::path(folder);
    options.cache_bytes = cache_bytes;
    options.disk = Arc::new(HookedDisk(Arc::new(Watch(Arc::clone(&reads)))));
    let open = || Store::open(&options).unwrap();
    let filling = open();
    // Every second row first, so that neighbours don't come to lie beside each other.
    for part in 0..2 {
        let mut work = filling.begin();
        for row in (part..ROWS).step_by(2) {
            work.put(SPACE, &row.to_be_bytes(), &[row as u8; 120]);
        }
        work.commit().unwrap().wait().unwrap();
        filling.checkpoint().unwrap();
    }
    filling.close().unwrap();
    let store = open();
    *reads.lock().unwrap() = Reads::default();
    (store, reads)
}

fn count(store: &Store, bounds: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> usize {
    let mut rows = store.snapshot().range(SPACE, bounds, direction).unwrap();
    let mut count = 0;
    while rows.next().unwrap().is_some() {
        count += 1;
    }
    count
}

#[test]
fn a_scan_asks_for_leaves_before_it_comes_to_them() {
    // Of blocks with one leaf each, and of larger ones.
    for cache_bytes in [128 << 10, 64 << 20] {
        for direction in [Direction::Forward, Direction::Backward] {
            let folder = tempfile::tempdir().unwrap();
            let (store, reads) = store(folder.path(), cache_bytes);
            let all = (Bound::Unbounded, Bound::Unbounded);
            assert_eq!(count(&store, all, direction), ROWS as usize);
            let reads = reads.lock().unwrap();
            let (read, begun) = (reads.read.len(), reads.begun.len());
            let leaves = ROWS as usize * 124 / PAGE as usize;
            assert!(read > leaves, "{read} pages read");
            assert!(
                reads.read_after_begun > leaves * 9 / 10,
                "{} of {read} pages asked for before",
                reads.read_after_begun
            );
            assert!(begun < read + read / 10, "{begun} begun, {read} read");
            assert!(
                reads.begun_twice < begun / 10,
                "{} of {begun} twice",
                reads.begun_twice
            );
        }
    }
}

#[test]
fn reads_of_some_rows_ask_for_no_more() {
    for cache_bytes in [128 << 10, 64 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let (store, reads) = store(folder.path(), cache_bytes);
        for number in 0..500u32 {
            let key = (number * 7919 % (ROWS - 100)).to_be_bytes();
            let found = store.snapshot().get(SPACE, &key, |value| value.len());
            assert_eq!(found.unwrap(), Some(120));
            let end = (u32::from_be_bytes(key) + 100).to_be_bytes();
            let hundred = (Bound::Included(&key[..]), Bound::Excluded(&end[..]));
            for direction in [Direction::Forward, Direction::Backward] {
                assert_eq!(count(&store, hundred, direction), 100);
            }
        }
        let reads = reads.lock().unwrap();
        assert!(reads.begun.is_empty() && reads.read.len() > 100);
    }
}

/// How many pages are read by what `act` does.
fn reads_of(reads: &Mutex<Reads>, act: impl FnOnce()) -> usize {
    *reads.lock().unwrap() = Reads::default();
    act();
    reads.lock().unwrap().read.len()
}

/// Reads single rows, about one of each leaf, of a part of all.
fn read_some(store: &Store, rows: Range<u32>) {
    for row in rows.step_by(20) {
        let found = store.snapshot().get(SPACE, &row.to_be_bytes(), |v| v.len());
        assert_eq!(found.unwrap(), Some(120));
    }
}

#[test]
fn a_scan_of_more_than_the_cache_holds_leaves_there_what_is_read_often() {
    let folder = tempfile::tempdir().unwrap();
    let (store, reads) = store(folder.path(), 1 << 20);
    let all = (Bound::Unbounded, Bound::Unbounded);
    // The cache is full of other rows when these come.
    count(&store, all, Direction::Forward);
    let some = 12_000..14_000;
    let cold = reads_of(&reads, || read_some(&store, some.clone()));
    assert!(cold > 30, "{cold}");
    for _ in 0..10 {
        let scan = reads_of(&reads, || {
            count(&store, all, Direction::Forward);
        });
        assert!(scan > 500, "{scan}: the scan doesn't fit into the cache");
        let warm = reads_of(&reads, || read_some(&store, some.clone()));
        assert!(warm < cold / 4, "{warm} of {cold} pages are read again");
    }
}

#[test]
fn a_part_that_is_scanned_again_and_again_has_its_place_in_a_full_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (store, reads) = store(folder.path(), 1 << 20);
    read_some(&store, 0..ROWS);
    let (low, high) = (20_000u32.to_be_bytes(), 24_000u32.to_be_bytes());
    let part = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
    let first = reads_of(&reads, || {
        count(&store, part, Direction::Forward);
    });
    assert!(first > 60, "{first}");
    for _ in 0..40 {
        count(&store, part, Direction::Forward);
    }
    let last = reads_of(&reads, || {
        count(&store, part, Direction::Forward);
    });
    assert!(last < first / 4, "{last} of {first} pages are read again");
}
