//! Scans of what isn't in memory: what the disk begins with before they come there, what they leave in
//! memory, and what other threads read ahead of them.

use std::collections::HashSet;
use std::io;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{Cursor, Direction, Options, Rows, SpaceId, Store};

mod hooked_disk;

const SPACE: SpaceId = SpaceId(1);
const ROWS: u32 = 30_000;
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
struct Reads {
    begun: HashSet<u64>,
    begun_twice: usize,
    read: HashSet<u64>,
    read_twice: usize,
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
                reads.read_twice += usize::from(!is_new);
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

/// Reads the rows within bounds and counts them. Other threads don't read ahead: what they have begun when
/// the scan no longer waits for them is read twice, as often as the machine is busy.
fn count(store: &Store, bounds: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> usize {
    let mut rows = store.snapshot().range(SPACE, bounds, direction).unwrap();
    rows.set_threads_ahead(0);
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
            if direction == Direction::Forward {
                let twice = reads.read_twice;
                assert!(twice < leaves / 8, "{twice} of {read} pages read twice");
            }
            assert!(
                reads.begun_twice < begun / 10,
                "{} of {begun} twice",
                reads.begun_twice
            );
        }
    }
}

#[test]
fn a_range_asks_for_its_leaves_and_a_row_for_none() {
    for cache_bytes in [128 << 10, 64 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let (store, reads) = store(folder.path(), cache_bytes);
        let key_of = |number: u32| number * 7919 % (ROWS - 100);
        for number in 0..100 {
            let key = key_of(number).to_be_bytes();
            let found = store.snapshot().get(SPACE, &key, |value| value.len());
            assert_eq!(found.unwrap(), Some(120));
            let one = (Bound::Included(&key[..]), Bound::Included(&key[..]));
            assert_eq!(count(&store, one, Direction::Forward), 1);
        }
        let of_rows = std::mem::take(&mut *reads.lock().unwrap());
        assert!(of_rows.begun.is_empty() && of_rows.read.len() > 50);
        for number in 100..300 {
            let key = key_of(number).to_be_bytes();
            let end = (u32::from_be_bytes(key) + 100).to_be_bytes();
            let high = match number % 4 {
                0 | 1 => Bound::Excluded(&end[..]),
                _ => Bound::Included(&end[..]),
            };
            let direction = match number % 2 {
                0 => Direction::Forward,
                _ => Direction::Backward,
            };
            let rows = 100 + usize::from(matches!(high, Bound::Included(_)));
            let range = (Bound::Included(&key[..]), high);
            assert_eq!(count(&store, range, direction), rows);
        }
        let reads = reads.lock().unwrap();
        let (read, asked) = (reads.read.len(), reads.read_after_begun);
        // Branches are read, too, and what has room in a large block.
        assert!(asked > read / 2, "{asked} of {read} asked for before");
        // One of the few whose first row is the range's end.
        let begun = reads.begun.iter();
        let in_vain = begun
            .filter(|page| !reads.read.contains(page) && !of_rows.read.contains(page))
            .count();
        assert!(in_vain < asked / 20, "{in_vain} of {asked} in vain");
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

/// Large enough for rows that are read ahead.
const ROOM: usize = 64 << 20;
const AHEAD: &str = "porpoise-ahead";

/// Which threads have read leaves; and a part of the file in which what is read is damaged.
#[derive(Debug, Default)]
struct Threads {
    reads_of_others: AtomicUsize,
    damaged: Mutex<Option<Range<u64>>>,
}

impl Hooks for Arc<Threads> {
    fn read_at(&self, of: &OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = of.file.read_at(bytes, offset)?;
        if of.name.starts_with("tree.redb") {
            let is_other = std::thread::current().name() == Some(AHEAD);
            self.reads_of_others
                .fetch_add(usize::from(is_other), Ordering::Relaxed);
            if let Some(part) = &*self.damaged.lock().unwrap() {
                let within = |at: u64| (at.max(offset) - offset).min(read as u64) as usize;
                bytes[within(part.start)..within(part.end)].fill(0xee);
            }
        }
        Ok(read)
    }
}

fn many_rows(folder: &Path, rows: u32) -> (Options, Arc<Threads>) {
    let threads = Arc::new(Threads::default());
    let mut options = Options::path(folder);
    options.cache_bytes = ROOM;
    options.disk = Arc::new(HookedDisk(Arc::new(Arc::clone(&threads))));
    let store = Store::open(&options).unwrap();
    let mut work = store.begin();
    for row in 0..rows {
        // Of some leaves each row has a page of its own.
        let len = if row % 997 == 0 {
            5000
        } else {
            row as usize % 90
        };
        work.put(SPACE, &row.to_be_bytes(), &vec![row as u8; len]);
    }
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    (options, threads)
}

/// The keys and the lengths of the values that a cursor reads, row by row or many at a time, and the
/// error that it ends with.
fn read_all(mut rows: Cursor, by_the_row: bool) -> (Vec<(Option<Vec<u8>>, usize)>, Option<String>) {
    let mut read = Vec::new();
    let mut many = Rows::default();
    loop {
        if by_the_row {
            match rows.next() {
                Ok(Some((key, value))) => read.push((Some(key.to_vec()), value.len())),
                Ok(None) => return (read, None),
                Err(error) => return (read, Some(error.to_string())),
            }
            continue;
        }
        if let Err(error) = rows.next_rows(&mut many, 1000, 1 << 20) {
            return (read, Some(error.to_string()));
        }
        read.extend((0..many.len()).map(|row| (None, many.value(row).len())));
        if many.is_empty() {
            match rows.next() {
                Ok(Some((_, value))) => read.push((None, value.len())),
                Ok(None) => return (read, None),
                Err(error) => return (read, Some(error.to_string())),
            }
        }
    }
}

/// Whether more threads want to run than there are cores.
fn is_machine_busy() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next();
    load.is_some_and(|load| load.parse().is_ok_and(|load: f64| load > cores as f64))
}

/// Calls `scan` until others have read ahead for it: they do so only while a core is idle, which on a
/// busy machine may not be.
fn until_others_read(threads: &Threads, mut scan: impl FnMut()) {
    let are_there = cfg!(target_os = "linux")
        && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        scan();
        if !are_there || threads.reads_of_others.load(Ordering::Relaxed) > 10 {
            return;
        }
        if Instant::now() > deadline {
            assert!(is_machine_busy(), "nobody reads ahead");
            eprintln!("no core was idle: nobody has read ahead");
            return;
        }
    }
}

#[test]
fn what_others_read_ahead_is_what_a_scan_reads_alone() {
    const MANY: u32 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let (options, threads) = many_rows(folder.path(), MANY);
    let mut round = 0;
    until_others_read(&threads, || {
        round += 1;
        for by_the_row in [true, false] {
            let read = |others: usize| {
                let store = Store::open(&options).unwrap();
                let mut random = fastrand::Rng::with_seed(round);
                // Parts are in the cache already, and some rows are above the tree.
                for _ in 0..5 {
                    let from = random.u32(0..MANY);
                    for row in (from..(from + random.u32(0..20_000)).min(MANY)).step_by(20) {
                        let key = row.to_be_bytes();
                        store.snapshot().get(SPACE, &key, |_| ()).unwrap();
                    }
                }
                let mut work = store.begin();
                for _ in 0..random.u32(0..500) {
                    let row = random.u32(0..MANY).to_be_bytes();
                    match random.bool() {
                        true => work.put(SPACE, &row, b"changed"),
                        false => work.delete(SPACE, &row),
                    }
                }
                work.commit().unwrap().wait().unwrap();
                let bounds = match random.bool() {
                    true => (Bound::Unbounded, Bound::Unbounded),
                    false => (
                        Bound::Excluded(random.u32(0..MANY / 4).to_be_bytes()),
                        Bound::Included(random.u32(MANY / 2..MANY).to_be_bytes()),
                    ),
                };
                let bounds = (
                    bounds.0.as_ref().map(|key| &key[..]),
                    bounds.1.as_ref().map(|key| &key[..]),
                );
                let snapshot = store.snapshot();
                let mut rows = snapshot.range(SPACE, bounds, Direction::Forward).unwrap();
                rows.set_threads_ahead(others);
                // A checkpoint replaces the tree meanwhile.
                if random.bool() {
                    store.checkpoint().unwrap();
                }
                let read = read_all(rows, by_the_row);
                // The folder is free at once, whoever is still at it.
                let mut left = snapshot.range(SPACE, bounds, Direction::Forward).unwrap();
                for _ in 0..30_000 {
                    left.next().unwrap();
                }
                drop((left, snapshot));
                store.close().unwrap();
                read
            };
            let (alone, with_others) = (read(0), read(3));
            assert_eq!(alone.1, None);
            assert!(alone.0.len() > 50_000, "{}", alone.0.len());
            assert!(alone == with_others, "round {round}");
        }
    });
}

#[test]
fn damage_that_others_meet_ahead_is_the_scans_where_it_comes_there() {
    const MANY: u32 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let (options, threads) = many_rows(folder.path(), MANY);
    until_others_read(&threads, || {
        let read = |others: usize| {
            let store = Store::open(&options).unwrap();
            let all = (Bound::Unbounded, Bound::Unbounded);
            let mut rows = store
                .snapshot()
                .range(SPACE, all, Direction::Forward)
                .unwrap();
            rows.set_threads_ahead(others);
            for _ in 0..50_000 {
                rows.next().unwrap().unwrap();
            }
            // Leaves lie in the order of their keys, but for those of the largest rows.
            let len = std::fs::metadata(folder.path().join("tree.redb"))
                .unwrap()
                .len();
            let page = len / 2 / PAGE * PAGE;
            *threads.damaged.lock().unwrap() = Some(page..page + PAGE);
            let read = read_all(rows, true);
            *threads.damaged.lock().unwrap() = None;
            drop(store);
            read
        };
        let (alone, with_others) = (read(0), read(3));
        let error = alone.1.expect("damage is found");
        assert!(error.contains("damaged"), "{error}");
        assert_eq!(with_others.1, Some(error));
        // All blocks before it are read; they have other limits where others read.
        let (some, other) = (alone.0.len(), with_others.0.len());
        assert!(some > 1000 && some.abs_diff(other) < 500, "{some}, {other}");
        let both = some.min(other);
        assert!(alone.0[..both] == with_others.0[..both]);
    });
}
