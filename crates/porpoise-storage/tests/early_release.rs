//! Row locks are released before the disk has the commit: who sees what by then, and what may be
//! told.

use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use porpoise_storage::{
    Commit, Direction, LockMode, Locked, Options, SpaceId, Store, Transaction, Wait, Work,
};

const SPACE: SpaceId = SpaceId(1);
const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const LONG: Wait = Wait::Timeout(Duration::from_secs(50));

fn open(folder: &Path) -> Store {
    let mut options = Options::path(folder);
    options.log_segment_bytes = 8 << 10;
    Store::open(&options).unwrap()
}

fn write(store: &Store, key: &[u8], value: Option<&[u8]>) -> Commit {
    let mut work = store.begin();
    work.lock(SPACE, key, LockMode::Exclusive, LONG).unwrap();
    match value {
        Some(value) => work.put(SPACE, key, value),
        None => work.delete(SPACE, key),
    }
    work.commit().unwrap()
}

fn latest(work: &Transaction, key: &[u8]) -> Option<Vec<u8>> {
    work.latest_get(SPACE, key, <[u8]>::to_vec).unwrap()
}

fn published(store: &Store, key: &[u8]) -> Option<Vec<u8>> {
    store.snapshot().get(SPACE, key, <[u8]>::to_vec).unwrap()
}

#[test]
fn the_next_writer_goes_on_before_the_disk_has_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let first = write(&store, b"a", Some(b"1"));
    let mut second = store.begin();
    let locked = second.lock(SPACE, b"a", LockMode::Exclusive, Wait::NoWait);
    assert_eq!(locked, Ok(Locked::Granted));
    assert_eq!(latest(&second, b"a").as_deref(), Some(&b"1"[..]));
    assert!(second.is_unconfirmed());
    assert_eq!(published(&store, b"a"), None, "others see what is on disk");
    second.put(SPACE, b"a", b"2");
    let second = second.commit().unwrap();
    assert!(!first.is_done() && !second.is_done());
    let syncs = store.stats().syncs;
    second.wait().unwrap();
    assert!(first.is_durable(), "it comes before the second in the log");
    assert_eq!(store.stats().syncs, syncs + 1, "they share a sync");
    assert_eq!(published(&store, b"a").as_deref(), Some(&b"2"[..]));
}

#[test]
fn who_only_reads_is_answered_when_the_disk_has_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    write(&store, b"gone", Some(b"1")).wait().unwrap();
    write(&store, b"kept", Some(b"1")).wait().unwrap();
    let on_the_way = write(&store, b"gone", None);

    let other = store.begin();
    assert!(latest(&other, b"kept").is_some());
    assert!(latest(&other, b"never").is_none());
    assert!(!other.is_unconfirmed(), "what it has read is on disk");
    assert!(other.unconfirmed().is_none());
    assert!(other.commit().unwrap().is_done());

    let point = |work: &Transaction| assert_eq!(latest(work, b"gone"), None);
    let range = |work: &Transaction| {
        let mut rows = work.latest_range(SPACE, ALL, Direction::Backward).unwrap();
        assert_eq!(rows.next().unwrap().unwrap().0, b"kept");
        assert!(rows.next().unwrap().is_none());
    };
    let mut on_the_way = on_the_way;
    for read in [&point as &dyn Fn(&Transaction), &range] {
        let reader = store.begin();
        read(&reader);
        assert!(
            reader.is_unconfirmed(),
            "the row is gone, but may come back"
        );
        let told = reader.unconfirmed().unwrap();
        let done = reader.commit().unwrap();
        assert!(!told.is_done() && !done.is_done());
        store.sync_pending();
        assert!(told.is_durable() && done.is_durable() && on_the_way.is_durable());
        write(&store, b"gone", Some(b"1")).wait().unwrap();
        on_the_way = write(&store, b"gone", None);
    }
}

#[test]
fn reads_that_are_told_one_by_one_wait_for_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let commit = write(&store, b"a", Some(b"1"));
    let mut work = store.begin();
    work.set_confirms_reads(true);
    assert_eq!(latest(&work, b"b"), None);
    assert!(!commit.is_done());
    assert_eq!(latest(&work, b"a").as_deref(), Some(&b"1"[..]));
    assert!(commit.is_durable());
    let commit = write(&store, b"a", Some(b"2"));
    work.set_confirms_reads(false);
    assert_eq!(latest(&work, b"a").as_deref(), Some(&b"2"[..]));
    assert!(!commit.is_done());
    work.confirm().unwrap();
    assert!(commit.is_durable() && !work.is_unconfirmed());
}

#[test]
fn what_rests_on_a_commit_that_failed_fails_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    write(&store, b"a", Some(b"before")).wait().unwrap();
    // The log wants a new segment, and a folder is where its file should be.
    let obstacle = folder.path().join("log.unfinished");
    fs::create_dir(&obstacle).unwrap();
    let lost = write(&store, b"a", Some(&[7; 20_000]));
    let read = || {
        let mut work = store.begin();
        work.lock(SPACE, b"a", LockMode::Shared, LONG).unwrap();
        assert_eq!(latest(&work, b"a").unwrap().len(), 20_000);
        work
    };
    let (reader, told, mut writer, mut late_writer) = (read(), read(), read(), read());
    let queued = {
        let mut work = store.begin();
        assert_eq!(latest(&work, b"a").unwrap().len(), 20_000);
        work.put(SPACE, b"b", b"rests on a");
        work.commit().unwrap()
    };
    assert!(lost.wait().is_err() && queued.wait().is_err());

    assert!(told.confirm().is_err());
    assert!(told.unconfirmed().unwrap().wait().is_err());
    told.rollback();
    assert!(reader.commit().unwrap().wait().is_err());
    writer.put(SPACE, b"b", b"rests on a");
    assert!(writer.commit().is_err());
    let work = store.begin();
    assert_eq!(latest(&work, b"a").as_deref(), Some(&b"before"[..]));
    assert!(work.commit().unwrap().is_done(), "it rests on nothing");

    fs::remove_dir(&obstacle).unwrap();
    store.work(Work::Recover).unwrap();
    write(&store, b"c", Some(b"after")).wait().unwrap();
    assert!(late_writer.is_unconfirmed() && late_writer.confirm().is_err());
    late_writer.put(SPACE, b"b", b"rests on a");
    assert!(
        late_writer.commit().is_err(),
        "the store goes on without it"
    );
    write(&store, b"a", Some(b"after")).wait().unwrap();
    assert_eq!(published(&store, b"b"), None);
    drop((lost, queued));
    drop(store);
    let store = open(folder.path());
    assert_eq!(published(&store, b"a").as_deref(), Some(&b"after"[..]));
    assert_eq!(published(&store, b"b"), None);
}

fn amount(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Moves money between two accounts, the lower one locked first; every so often an account is
/// closed, and opened again with the same key.
fn transfer(store: &Store, random: &mut fastrand::Rng, accounts: u8) -> Commit {
    let (one, other) = (random.u8(..accounts), random.u8(..accounts));
    let mut work = store.begin();
    for key in [one.min(other), one.max(other)] {
        work.lock(SPACE, &[key], LockMode::Exclusive, LONG).unwrap();
    }
    let balance = |work: &Transaction, key: u8| latest(work, &[key]).map_or(0, |v| amount(&v));
    let from = balance(&work, one);
    let moved = match random.u8(..4) {
        0 => from,
        _ => random.u64(..=from),
    };
    match from - moved {
        0 => work.delete(SPACE, &[one]),
        rest => work.put(SPACE, &[one], &rest.to_le_bytes()),
    }
    let to = balance(&work, other) + moved;
    if to > 0 {
        work.put(SPACE, &[other], &to.to_le_bytes());
    }
    work.commit().unwrap()
}

fn sum(mut rows: porpoise_storage::Cursor) -> u64 {
    let mut sum = 0;
    while let Some((_, value)) = rows.next().unwrap() {
        sum += amount(value);
    }
    sum
}

/// Each read, settled or published, sees commits whole and none twice, through checkpoints; none is
/// lost.
fn money_is_kept(store: &Store) {
    const ACCOUNTS: u8 = 6;
    const ALL_MONEY: u64 = 1000 * ACCOUNTS as u64;
    for key in 0..ACCOUNTS {
        write(store, &[key], Some(&1000u64.to_le_bytes()))
            .wait()
            .unwrap();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..400 {
                        let commit = transfer(store, &mut random, ACCOUNTS);
                        if random.u8(..3) == 0 {
                            commit.wait().unwrap();
                        }
                    }
                })
            })
            .collect();
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                store.checkpoint().unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let work = store.begin();
                let settled = work.latest_range(SPACE, ALL, Direction::Forward).unwrap();
                assert_eq!(sum(settled), ALL_MONEY);
                let backward = work.latest_range(SPACE, ALL, Direction::Backward).unwrap();
                assert_eq!(sum(backward), ALL_MONEY);
                let published = work.range(SPACE, ALL, Direction::Forward).unwrap();
                assert_eq!(sum(published), ALL_MONEY);
                work.commit().unwrap().wait().unwrap();
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    write(store, b"last", Some(&0u64.to_le_bytes()))
        .wait()
        .unwrap();
    let rows = store.snapshot().range(SPACE, ALL, Direction::Forward);
    assert_eq!(sum(rows.unwrap()), ALL_MONEY);
}

#[test]
fn money_that_many_move_is_kept_in_memory() {
    money_is_kept(&Store::open(&Options::memory()).unwrap());
}

#[test]
fn money_that_many_move_is_kept_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    money_is_kept(&store);
    drop(store);
    let store = open(folder.path());
    let rows = store.snapshot().range(SPACE, ALL, Direction::Forward);
    assert_eq!(sum(rows.unwrap()), 6000);
}
