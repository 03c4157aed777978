//! Transactions that write so much that their writes are a memtable of their own.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use porpoise_storage::{
    Cursor, Direction, Flush, LockMode, Options, Snapshot, SpaceId, Store, Transaction, Wait,
};

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const ROWS: u32 = 3000;

fn options(folder: &tempfile::TempDir) -> Options {
    let mut options = Options::path(folder.path());
    options.checkpoint_version_bytes = 64 << 10;
    options.log_segment_bytes = 64 << 10;
    options.flush.set(Flush::WriteAtCommit);
    options
}

fn space_of(store: &Store) -> SpaceId {
    let space = store.allocate_space();
    commit(store, |work| work.create_space(space));
    space
}

fn commit(store: &Store, change: impl FnOnce(&mut Transaction)) {
    let mut work = store.begin();
    change(&mut work);
    work.commit().unwrap().wait().unwrap();
}

fn write_all(work: &mut Transaction, space: SpaceId, value: &str) {
    for row in 0..ROWS {
        let key = row.to_be_bytes();
        let wait = Wait::Timeout(std::time::Duration::from_secs(60));
        work.lock(space, &key, LockMode::Exclusive, wait).unwrap();
        work.put(space, &key, value.as_bytes());
    }
}

/// How many rows there are, by value, in the order of the keys.
fn runs(mut rows: Cursor) -> Vec<(String, u32)> {
    let mut runs: Vec<(String, u32)> = Vec::new();
    while let Some((_, value)) = rows.next().unwrap() {
        let value = String::from_utf8_lossy(value).into_owned();
        match runs.last_mut() {
            Some((last, count)) if *last == value => *count += 1,
            _ => runs.push((value, 1)),
        }
    }
    runs
}

fn runs_of(snapshot: &Snapshot, space: SpaceId) -> Vec<(String, u32)> {
    runs(snapshot.range(space, ALL, Direction::Forward).unwrap())
}

fn all(value: &str) -> Vec<(String, u32)> {
    vec![(value.into(), ROWS)]
}

#[test]
fn the_log_segment_that_it_needed_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(&folder)).unwrap();
    let space = space_of(&store);
    let longest_log = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let files = files.map(|file| file.unwrap());
        let log = files.filter(|file| file.file_name().to_string_lossy().starts_with("log"));
        log.map(|file| file.metadata().unwrap().len())
            .max()
            .unwrap()
    };
    commit(&store, |work| write_all(work, space, &"long".repeat(100)));
    assert!(longest_log() > 1_000_000, "{}", longest_log());
    for _ in 0..2 {
        store.checkpoint().unwrap();
    }
    assert!(longest_log() <= 64 << 10, "{}", longest_log());
}

#[test]
fn others_see_all_of_it_when_it_is_committed_and_nothing_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(&folder)).unwrap();
    let space = space_of(&store);
    commit(&store, |work| write_all(work, space, "first"));
    store.checkpoint().unwrap();
    let mut work = store.begin();
    write_all(&mut work, space, "second");
    assert!(work.is_large());
    work.delete(space, &7u32.to_be_bytes());
    let before = store.snapshot();
    assert_eq!(runs_of(&before, space), all("first"));
    work.commit().unwrap().wait().unwrap();
    let changed = vec![("second".to_string(), ROWS - 1)];
    for _ in 0..2 {
        assert_eq!(runs_of(&store.snapshot(), space), changed);
        assert_eq!(runs_of(&before, space), all("first"));
        let deleted = store.snapshot().get(space, &7u32.to_be_bytes(), |_| ());
        assert_eq!(deleted.unwrap(), None);
        assert_eq!(store.approximate_len(space), u64::from(ROWS) - 1);
        store.checkpoint().unwrap();
    }
    drop((before, store));
    let store = Store::open(&options(&folder)).unwrap();
    assert_eq!(runs_of(&store.snapshot(), space), changed);
}

#[test]
fn its_log_record_is_replayed_at_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder);
    options.background = porpoise_storage::Background::Manual;
    let store = Store::open(&options).unwrap();
    let (space, dropped) = (space_of(&store), space_of(&store));
    commit(&store, |work| work.put(dropped, b"a", b"1"));
    commit(&store, |work| {
        write_all(work, space, "first");
        work.drop_space(dropped);
        work.set_counter(space, 77);
    });
    assert!(store.stats().checkpoints == 0);
    assert_eq!(runs_of(&store.snapshot(), dropped), []);
    drop(store);
    let store = Store::open(&options).unwrap();
    assert_eq!(runs_of(&store.snapshot(), space), all("first"));
    assert_eq!(runs_of(&store.snapshot(), dropped), []);
    assert_eq!(store.counter(space), 77);
}

#[test]
fn a_savepoint_undoes_what_came_after_it_before_and_after_it_got_large() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(&folder)).unwrap();
    let space = space_of(&store);
    let mut work = store.begin();
    work.put(space, b"a", b"1");
    let small = work.savepoint();
    work.put(space, b"a", b"2");
    work.delete(space, b"b");
    write_all(&mut work, space, "first");
    let large = work.savepoint();
    assert!(work.is_large());
    let as_it_was = work.range(space, ALL, Direction::Forward).unwrap();
    write_all(&mut work, space, "second");
    work.put(space, b"c", b"3");
    let own = |work: &Transaction| runs(work.range(space, ALL, Direction::Forward).unwrap());
    let expected = |value: &str, last: &[(&str, u32)]| {
        let last = last
            .iter()
            .map(|(value, count)| (value.to_string(), *count));
        [(value.to_string(), ROWS)]
            .into_iter()
            .chain(last)
            .collect::<Vec<_>>()
    };
    assert_eq!(own(&work), expected("second", &[("2", 1), ("3", 1)]));
    assert_eq!(runs(as_it_was), expected("first", &[("2", 1)]));
    work.rollback_to(large);
    assert_eq!(own(&work), expected("first", &[("2", 1)]));
    work.rollback_to(small);
    assert_eq!(own(&work), [("1".to_string(), 1)]);
    work.put(space, b"b", b"4");
    let again = work.savepoint();
    work.put(space, b"b", b"5");
    work.rollback_to(again);
    work.commit().unwrap().wait().unwrap();
    let now = runs_of(&store.snapshot(), space);
    assert_eq!(now, [("1".to_string(), 1), ("4".to_string(), 1)]);
}

/// Writers of all rows, and of single rows, beside each other and beside checkpoints: the rows of a
/// large transaction are those of one moment to each reader, and no change of a single row is lost.
#[test]
fn large_and_small_transactions_commit_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(&folder)).unwrap();
    let (space, counts) = (space_of(&store), space_of(&store));
    commit(&store, |work| write_all(work, space, "0:0"));
    let is_done = AtomicBool::new(false);
    let small = thread::scope(|scope| {
        let (store, is_done) = (&store, &is_done);
        let small = scope.spawn(move || {
            let mut count = 0u32;
            while !is_done.load(Ordering::Relaxed) {
                let mut work = store.begin();
                let wait = Wait::Timeout(std::time::Duration::from_secs(60));
                work.lock(counts, b"n", LockMode::Exclusive, wait).unwrap();
                let last =
                    work.latest_get(counts, b"n", |n| u32::from_be_bytes(n.try_into().unwrap()));
                assert_eq!(last.unwrap().unwrap_or(0), count);
                count += 1;
                work.put(counts, b"n", &count.to_be_bytes());
                work.commit().unwrap().wait().unwrap();
            }
            count
        });
        let reader = scope.spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                let now = runs_of(&store.snapshot(), space);
                assert!(now.len() == 1 && now[0].1 == ROWS, "{now:?}");
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 0..15 {
                        let value = format!("{writer}:{round}");
                        commit(store, |work| write_all(work, space, &value));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        small.join().unwrap()
    });
    let last = store
        .snapshot()
        .get(counts, b"n", |n| u32::from_be_bytes(n.try_into().unwrap()));
    assert_eq!(last.unwrap(), Some(small));
    let rows = runs_of(&store.snapshot(), space);
    drop(store);
    let store = Store::open(&options(&folder)).unwrap();
    assert_eq!(runs_of(&store.snapshot(), space), rows);
}
