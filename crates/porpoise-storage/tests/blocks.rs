//! Rows that are read from the B-tree through blocks, of which only a few have room at a time.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{Direction, Error, Options, Snapshot, SpaceId, Store};

mod hooked_disk;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u32 = 3000;

fn key(number: u32) -> Vec<u8> {
    // Keys that differ early, late, and only in length.
    match number % 3 {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("a long common prefix {number:06}").into_bytes(),
        _ => vec![7; number as usize % 200],
    }
}

fn rows(
    snapshot: &Snapshot,
    space: SpaceId,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = snapshot.range(space, bounds, direction).unwrap();
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    rows
}

fn expected(
    model: &Model,
    (low, high): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_empty = match (low, high) {
        (Bound::Included(l), Bound::Included(h)) => l > h,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Excluded(h))
        | (Bound::Excluded(l), Bound::Included(h)) => l >= h,
        _ => false,
    };
    if is_empty {
        return Vec::new();
    }
    let rows = model.range::<[u8], _>((low, high));
    let owned = |(k, v): (&Vec<u8>, &Vec<u8>)| (k.clone(), v.clone());
    match direction {
        Direction::Forward => rows.map(owned).collect(),
        Direction::Backward => rows.rev().map(owned).collect(),
    }
}

/// Compares random reads of a snapshot with what it should show.
fn check(random: &mut fastrand::Rng, snapshot: &Snapshot, space: SpaceId, model: &Model) {
    for _ in 0..40 {
        let key = key(random.u32(0..KEYS));
        let found = snapshot.get(space, &key, <[u8]>::to_vec).unwrap();
        assert_eq!(found.as_ref(), model.get(&key), "{key:?}");
    }
    for _ in 0..6 {
        let ends = [key(random.u32(0..KEYS)), key(random.u32(0..KEYS))];
        let bound = |random: &mut fastrand::Rng, end: usize| match random.u8(0..3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(&ends[end][..]),
            _ => Bound::Excluded(&ends[end][..]),
        };
        let bounds = (bound(random, 0), bound(random, 1));
        for direction in [Direction::Forward, Direction::Backward] {
            let found = rows(snapshot, space, bounds, direction);
            assert_eq!(found, expected(model, bounds, direction), "{bounds:?}");
        }
    }
}

/// Room for some thirty blocks; the rows take several times that.
const SMALL_CACHE: usize = 160 << 10;

fn with_small_cache(mut options: Options) -> Store {
    options.cache_bytes = SMALL_CACHE;
    Store::open(&options).unwrap()
}

#[test]
fn what_is_read_through_blocks_is_what_was_written() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let mut options = match seed % 2 {
            0 => Options::memory(),
            _ => Options::path(folder.path().join("store")),
        };
        // With room for all rows scans make several blocks at a time.
        options.cache_bytes = if seed % 4 == 3 { 64 << 20 } else { SMALL_CACHE };
        let store = Store::open(&options).unwrap();
        let space = store.allocate_space();
        let mut model = Model::new();
        let mut kept: Vec<(Snapshot, Model)> = Vec::new();
        for round in 0..25 {
            let mut work = store.begin();
            if round == 0 {
                work.create_space(space);
            }
            for _ in 0..random.usize(1..400) {
                let key = key(random.u32(0..KEYS));
                if random.u8(0..4) == 0 {
                    work.delete(space, &key);
                    model.remove(&key);
                } else {
                    // Some need a page of several times 4 KiB.
                    let length_max = match random.u8(0..40) {
                        0 => 20_000,
                        _ => 500,
                    };
                    let value = vec![random.u8(..); random.usize(0..length_max)];
                    work.put(space, &key, &value);
                    model.insert(key, value);
                }
            }
            work.commit().unwrap().wait().unwrap();
            if random.bool() {
                store.checkpoint().unwrap();
            }
            check(&mut random, &store.snapshot(), space, &model);
            kept.push((store.snapshot(), model.clone()));
            let (old, its_model) = &kept[random.usize(0..kept.len())];
            check(&mut random, old, space, its_model);
        }
    }
}

#[test]
fn readers_see_whole_rows_while_checkpoints_replace_blocks_below_them() {
    let folder = tempfile::tempdir().unwrap();
    let location = Options::path(folder.path().join("store"));
    see_whole_rows(&with_small_cache(Options::memory()));
    see_whole_rows(&with_small_cache(location));
}

/// Reads rows that a commit changes all of, while commits and checkpoints go on.
fn see_whole_rows(store: &Store) {
    let space = store.allocate_space();
    let mut work = store.begin();
    work.create_space(space);
    for number in 0..KEYS {
        work.put(space, &number.to_be_bytes(), &[0; 120]);
    }
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    // Every row of one commit carries its number, so a snapshot shows one number
                    // everywhere.
                    let snapshot = store.snapshot();
                    let first = random.u32(0..KEYS - 200);
                    let (low, high) = (first.to_be_bytes(), (first + 200).to_be_bytes());
                    let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                    let direction = match random.bool() {
                        true => Direction::Forward,
                        false => Direction::Backward,
                    };
                    let found = rows(&snapshot, space, bounds, direction);
                    assert_eq!(found.len(), 200);
                    assert!(found.iter().all(|(_, value)| value == &found[0].1));
                    let one = random.u32(0..KEYS).to_be_bytes();
                    let value = snapshot.get(space, &one, <[u8]>::to_vec).unwrap();
                    assert_eq!(value.as_ref(), Some(&found[0].1));
                }
            });
        }
        for round in 1..60u8 {
            let mut work = store.begin();
            for number in 0..KEYS {
                work.put(space, &number.to_be_bytes(), &[round; 120]);
            }
            work.commit().unwrap().wait().unwrap();
            store.checkpoint().unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_snapshot_of_a_closed_store_reads_nothing_that_another_store_has_written() {
    const ROWS: u32 = 4000;
    let folder = tempfile::tempdir().unwrap();
    let location = Options::path(folder.path().join("store"));
    let store = with_small_cache(location.clone());
    let space = store.allocate_space();
    let write = |store: &Store, byte: u8| {
        let mut work = store.begin();
        if byte == 1 {
            work.create_space(space);
        }
        for number in 0..ROWS {
            work.put(space, &number.to_be_bytes(), &[byte; 150]);
        }
        work.commit().unwrap().wait().unwrap();
        store.checkpoint().unwrap();
    };
    write(&store, 1);
    let old = store.snapshot();
    let first = 0u32.to_be_bytes();
    assert_eq!(old.get(space, &first, |row| row[0]).unwrap(), Some(1));
    store.close().unwrap();
    let store = with_small_cache(location);
    for byte in 2..5 {
        write(&store, byte);
    }
    for number in 0..ROWS {
        match old.get(space, &number.to_be_bytes(), |row| row[0]) {
            Ok(found) => assert_eq!(found, Some(1)),
            Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
        }
    }
}

#[test]
fn who_holds_evicted_blocks_has_no_others_evicted_for_them() {
    const ROWS: u32 = 40_000;
    let mut options = Options::memory();
    options.cache_bytes = 600 << 10;
    let store = Store::open(&options).unwrap();
    let space = store.allocate_space();
    let mut work = store.begin();
    work.create_space(space);
    for number in 0..ROWS {
        work.put(space, &number.to_be_bytes(), &[1; 150]);
    }
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let mut read_some = || {
        for _ in 0..2000 {
            let key = random.u32(0..ROWS).to_be_bytes();
            let found = store.snapshot().get(space, &key, |_| ()).unwrap();
            assert!(found.is_some());
        }
    };
    read_some();
    // Within a read the index of the time when it began is held, and with it its blocks.
    let key = 7u32.to_be_bytes();
    store.snapshot().get(space, &key, |_| ()).unwrap();
    store.snapshot().get(space, &key, |_| read_some()).unwrap();
    let kept = store.stats().block_bytes;
    assert!(kept > 300 << 10, "{kept} bytes are kept");
    assert!(kept < 600 << 10, "{kept} bytes are kept");
}

#[test]
fn blocks_stay_within_their_budget_whatever_is_read_and_written() {
    const ROWS: u32 = 40_000;
    let mut options = Options::memory();
    options.cache_bytes = 600 << 10;
    options.checkpoint_version_bytes = 64 << 20;
    let store = Store::open(&options).unwrap();
    let space = store.allocate_space();
    let mut work = store.begin();
    work.create_space(space);
    for number in 0..ROWS {
        work.put(space, &number.to_be_bytes(), &[1; 150]);
    }
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    // A reader that stays keeps no blocks of its own time.
    let mut old = store.snapshot();
    let mut most = 0;
    for round in 2..12u8 {
        for _ in 0..3000 {
            let snapshot = store.snapshot();
            let key = random.u32(0..ROWS).to_be_bytes();
            assert!(snapshot.get(space, &key, |_| ()).unwrap().is_some());
            most = most.max(store.stats().block_bytes);
        }
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = old.range(space, all, Direction::Forward).unwrap();
        while scan.next().unwrap().is_some() {
            most = most.max(store.stats().block_bytes);
        }
        let mut work = store.begin();
        for _ in 0..2000 {
            let len = random.usize(50..300);
            work.put(space, &random.u32(0..ROWS).to_be_bytes(), &vec![round; len]);
        }
        work.commit().unwrap().wait().unwrap();
        store.checkpoint().unwrap();
        most = most.max(store.stats().block_bytes);
        if round % 4 == 0 {
            old = store.snapshot();
        }
    }
    let budget = options.cache_bytes as u64;
    assert!(most > budget * 3 / 4, "{most} of {budget} were used");
    assert!(most <= budget, "{most} exceed {budget}");
}

/// Counts what is read of the tree.
#[derive(Debug, Default)]
struct CountedReads(AtomicUsize);

impl Hooks for CountedReads {
    fn read_at(&self, of: &OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let is_of_tree = of.name.starts_with("tree.redb");
        self.0.fetch_add(usize::from(is_of_tree), Ordering::Relaxed);
        of.file.read_at(bytes, offset)
    }
}

#[test]
fn many_spaces_of_which_little_is_read_leave_room_for_one_that_is_read_much() {
    const SPACES: u32 = 300;
    const ROWS: u32 = 1500;
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(CountedReads::default());
    let mut options = Options::path(folder.path().join("store"));
    options.cache_bytes = 4 << 20;
    options.disk = Arc::new(HookedDisk(Arc::clone(&disk)));
    let store = Store::open(&options).unwrap();
    let spaces: Vec<SpaceId> = (0..SPACES).map(|_| store.allocate_space()).collect();
    for of_some in spaces.chunks(20) {
        let mut work = store.begin();
        for space in of_some {
            work.create_space(*space);
            for number in 0..ROWS {
                work.put(*space, &number.to_be_bytes(), &[1; 150]);
            }
        }
        work.commit().unwrap().wait().unwrap();
    }
    store.checkpoint().unwrap();
    let read = |space: SpaceId, number: u32| {
        let found = store.snapshot().get(space, &number.to_be_bytes(), |_| ());
        assert!(found.unwrap().is_some());
    };
    let mut random = fastrand::Rng::with_seed(5);
    // Of each space fewer blocks than the index takes at once, and of all more than the cache holds.
    for _ in 0..15 {
        spaces
            .iter()
            .for_each(|space| read(*space, random.u32(0..ROWS)));
    }
    // This is a tenth of it.
    let read_much = || (0..ROWS).for_each(|number| read(spaces[0], number));
    (0..3).for_each(|_| read_much());
    let before = disk.0.load(Ordering::Relaxed);
    read_much();
    let reads = disk.0.load(Ordering::Relaxed) - before;
    assert_eq!(reads, 0, "it is in the cache by now");
}
