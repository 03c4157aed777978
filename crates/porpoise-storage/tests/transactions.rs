//! What transactions see of each other, and what survives.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use porpoise_storage::{
    Direction, Error, Flush, LockMode, Options, Snapshot, SpaceId, Store, Transaction, Wait,
};

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

fn in_memory() -> (Store, SpaceId) {
    let store = Store::open(&Options::memory()).unwrap();
    let space = store.allocate_space();
    (store, space)
}

fn commit(store: &Store, work: impl FnOnce(&mut Transaction)) {
    let mut transaction = store.begin();
    work(&mut transaction);
    transaction.commit().unwrap().wait().unwrap();
}

fn value(snapshot: &Snapshot, space: SpaceId, key: &[u8]) -> Option<String> {
    snapshot
        .get(space, key, |v| String::from_utf8(v.to_vec()).unwrap())
        .unwrap()
}

fn listed(mut cursor: porpoise_storage::Cursor) -> String {
    let mut out = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        out.push(format!("{}={}", text(key), text(value)));
    }
    out.join(" ")
}

#[test]
fn a_snapshot_keeps_seeing_its_moment_through_checkpoints() {
    let (store, space) = in_memory();
    commit(&store, |t| t.put(space, b"a", b"1"));
    let before = store.snapshot();
    commit(&store, |t| {
        t.put(space, b"a", b"2");
        t.put(space, b"b", b"2");
    });
    store.checkpoint().unwrap();
    let between = store.snapshot();
    commit(&store, |t| t.delete(space, b"a"));
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    let now = store.snapshot();

    assert_eq!(value(&before, space, b"a").as_deref(), Some("1"));
    assert_eq!(value(&before, space, b"b"), None);
    assert_eq!(
        listed(before.range(space, ALL, Direction::Forward).unwrap()),
        "a=1"
    );
    assert_eq!(
        listed(between.range(space, ALL, Direction::Backward).unwrap()),
        "b=2 a=2"
    );
    assert_eq!(
        listed(now.range(space, ALL, Direction::Forward).unwrap()),
        "b=2"
    );
}

/// It waits 20 ms at most for those who read from what it replaces.
#[test]
fn a_checkpoint_that_replaces_what_nobody_reads_waits_for_nobody() {
    let (store, space) = in_memory();
    let took = (0..50u32).map(|number| {
        commit(&store, |t| t.put(space, &number.to_be_bytes(), b"row"));
        let start = Instant::now();
        store.checkpoint().unwrap();
        start.elapsed()
    });
    let least = took.min().unwrap();
    assert!(least < Duration::from_millis(15), "{least:?} at least");
}

#[test]
fn a_transaction_sees_its_own_writes_and_others_only_after_its_commit() {
    let (store, space) = in_memory();
    commit(&store, |t| t.put(space, b"a", b"old"));
    let mut writer = store.begin();
    writer.put(space, b"a", b"new");
    writer.put(space, b"b", b"new");
    assert_eq!(
        listed(writer.range(space, ALL, Direction::Forward).unwrap()),
        "a=new b=new"
    );
    assert_eq!(
        value(&store.snapshot(), space, b"a").as_deref(),
        Some("old")
    );
    writer.commit().unwrap().wait().unwrap();
    assert_eq!(
        value(&store.snapshot(), space, b"a").as_deref(),
        Some("new")
    );
}

#[test]
fn a_read_view_stays_until_refreshed_while_latest_reads_move_on() {
    let (store, space) = in_memory();
    let mut reader = store.begin();
    assert!(!reader.has_read_view());
    assert_eq!(reader.get(space, b"a", |_| ()).unwrap(), None);
    commit(&store, |t| t.put(space, b"a", b"1"));
    assert_eq!(reader.get(space, b"a", |_| ()).unwrap(), None);
    assert_eq!(
        reader.latest_get(space, b"a", <[u8]>::to_vec).unwrap(),
        Some(b"1".to_vec())
    );
    assert_eq!(
        listed(reader.latest_range(space, ALL, Direction::Forward).unwrap()),
        "a=1"
    );
    reader.refresh_view();
    assert_eq!(
        reader.get(space, b"a", <[u8]>::to_vec).unwrap(),
        Some(b"1".to_vec())
    );
}

#[test]
fn a_cursor_does_not_meet_writes_made_after_it_was_opened() {
    let (store, space) = in_memory();
    let mut work = store.begin();
    work.put(space, b"a", b"1");
    work.put(space, b"c", b"1");
    let mut cursor = work.range(space, ALL, Direction::Forward).unwrap();
    let mut seen = 0;
    while let Some((key, _)) = cursor.next().unwrap() {
        let longer = [key, b"!"].concat();
        work.put(space, &longer, b"2");
        seen += 1;
    }
    assert_eq!(seen, 2);
    let after = listed(work.range(space, ALL, Direction::Forward).unwrap());
    assert_eq!(after, "a=1 a!=2 c=1 c!=2");
}

#[test]
fn rolling_back_to_a_savepoint_undoes_just_what_came_after() {
    let (store, space) = in_memory();
    commit(&store, |t| t.put(space, b"a", b"0"));
    let mut work = store.begin();
    work.put(space, b"a", b"1");
    let first = work.savepoint();
    work.put(space, b"a", b"2");
    work.delete(space, b"a");
    work.put(space, b"b", b"2");
    let second = work.savepoint();
    work.put(space, b"b", b"3");
    work.drop_space(space);
    work.rollback_to(second);
    assert_eq!(
        listed(work.range(space, ALL, Direction::Forward).unwrap()),
        "b=2"
    );
    work.rollback_to(first);
    assert_eq!(
        listed(work.range(space, ALL, Direction::Forward).unwrap()),
        "a=1"
    );
    work.commit().unwrap().wait().unwrap();
    assert_eq!(value(&store.snapshot(), space, b"a").as_deref(), Some("1"));
}

#[test]
fn a_dropped_transaction_leaves_nothing_but_its_counters() {
    let (store, space) = in_memory();
    let mut work = store.begin();
    work.put(space, b"a", b"1");
    work.set_counter(space, 7);
    work.set_counter(space, 5);
    work.lock(space, b"a", LockMode::Exclusive, Wait::NoWait)
        .unwrap();
    drop(work);
    assert_eq!(value(&store.snapshot(), space, b"a"), None);
    assert_eq!(store.counter(space), 7);
    let mut other = store.begin();
    other
        .lock(space, b"a", LockMode::Exclusive, Wait::NoWait)
        .unwrap();
}

#[test]
fn a_dropped_space_is_empty_for_new_snapshots_only() {
    let (store, space) = in_memory();
    let other = store.allocate_space();
    commit(&store, |t| {
        t.create_space(space);
        t.put(space, b"a", b"1");
        t.put(other, b"a", b"1");
    });
    store.checkpoint().unwrap();
    let before = store.snapshot();
    commit(&store, |t| t.drop_space(space));
    for _ in 0..2 {
        assert_eq!(value(&before, space, b"a").as_deref(), Some("1"));
        assert_eq!(value(&store.snapshot(), space, b"a"), None);
        assert_eq!(store.approximate_len(space), 0);
        assert_eq!(value(&store.snapshot(), other, b"a").as_deref(), Some("1"));
        store.checkpoint().unwrap();
    }
}

#[test]
fn everything_is_there_after_a_clean_close_and_after_a_drop() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::path(folder.path());
    let store = Store::open(&options).unwrap();
    let space = store.allocate_space();
    commit(&store, |t| {
        t.create_space(space);
        t.insert(space, b"a", b"1");
        t.set_counter(space, 40);
    });
    store.close().unwrap();
    assert!(matches!(
        store.snapshot().get(space, b"a", |_| ()),
        Err(Error::Closed)
    ));
    drop(store);

    let store = Store::open(&options).unwrap();
    assert_eq!(value(&store.snapshot(), space, b"a").as_deref(), Some("1"));
    assert_eq!(
        store.stats().version_bytes,
        0,
        "a clean close leaves nothing to replay"
    );
    assert_eq!(store.counter(space), 40);
    let second = store.allocate_space();
    assert!(second > space);
    commit(&store, |t| {
        t.insert(space, b"b", b"2");
        t.insert(second, b"x", b"9");
        t.delete(space, b"a");
        t.set_counter(space, 41);
    });
    drop(store);

    let store = Store::open(&options).unwrap();
    let now = store.snapshot();
    assert_eq!(
        listed(now.range(space, ALL, Direction::Forward).unwrap()),
        "b=2"
    );
    assert_eq!(
        listed(now.range(second, ALL, Direction::Forward).unwrap()),
        "x=9"
    );
    assert_eq!(store.counter(space), 41);
    assert!(store.allocate_space() > second);
}

#[test]
fn a_log_of_many_segments_is_replayed_and_dropped_by_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    options.log_segment_bytes = 16 << 10;
    options.flush.set(Flush::WriteAtCommit);
    let segments = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        names
            .filter(|e| {
                e.as_ref()
                    .unwrap()
                    .file_name()
                    .to_str()
                    .unwrap()
                    .starts_with("log-")
            })
            .count()
    };
    let store = Store::open(&options).unwrap();
    let space = store.allocate_space();
    for round in 0..50u32 {
        commit(&store, |t| {
            t.put(space, &round.to_be_bytes(), &vec![b'x'; 3000])
        });
    }
    let large = vec![b'y'; 100_000];
    commit(&store, |t| t.put(space, b"larger than a segment", &large));
    commit(&store, |t| t.put(space, b"last", b"1"));
    assert!(segments() > 8);
    drop(store);

    let store = Store::open(&options).unwrap();
    let now = store.snapshot();
    for round in 0..50u32 {
        assert_eq!(
            now.get(space, &round.to_be_bytes(), <[u8]>::len).unwrap(),
            Some(3000)
        );
    }
    assert_eq!(
        now.get(space, b"larger than a segment", <[u8]>::to_vec)
            .unwrap(),
        Some(large)
    );
    assert_eq!(value(&now, space, b"last").as_deref(), Some("1"));
    store.checkpoint().unwrap();
    assert!(segments() <= 2);
    commit(&store, |t| t.put(space, b"last", b"2"));
    drop((store, now));
    let store = Store::open(&options).unwrap();
    assert_eq!(
        value(&store.snapshot(), space, b"last").as_deref(),
        Some("2")
    );
}

#[test]
fn a_folder_in_use_names_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::path(folder.path());
    let store = Store::open(&options).unwrap();
    let error = Store::open(&options).err().expect("the folder is taken");
    assert!(matches!(error, Error::InUse { pid: Some(pid), .. } if pid == std::process::id()));
    assert!(error.to_string().contains("in use by process"));
    drop(store);
    Store::open(&options).unwrap();
}

#[test]
fn callbacks_run_once_the_event_loop_syncs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Options::path(folder.path())).unwrap();
    let space = store.allocate_space();
    let done = Arc::new(AtomicUsize::new(0));
    for key in 0..10u8 {
        let mut work = store.begin();
        work.put(space, &[key], b"1");
        let counted = Arc::clone(&done);
        let commit = work.commit().unwrap();
        assert!(!commit.is_durable());
        assert_eq!(
            value(&store.snapshot(), space, &[key]),
            None,
            "not visible before it is durable"
        );
        commit.on_durable(Box::new(move |outcome| {
            outcome.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        }));
    }
    let syncs = store.stats().syncs;
    assert!(store.sync_pending());
    assert_eq!(done.load(Ordering::SeqCst), 10);
    assert_eq!(store.stats().syncs, syncs + 1, "one sync served all");
    assert_eq!(value(&store.snapshot(), space, &[9]).as_deref(), Some("1"));
}

#[test]
fn each_flush_policy_publishes_at_commit() {
    for flush in [Flush::EachSecond, Flush::WriteAtCommit, Flush::AtCommit] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::path(folder.path());
        options.flush.set(flush);
        let store = Store::open(&options).unwrap();
        let space = store.allocate_space();
        commit(&store, |t| t.put(space, b"a", b"1"));
        assert_eq!(value(&store.snapshot(), space, b"a").as_deref(), Some("1"));
        if flush == Flush::EachSecond {
            assert_eq!(store.stats().syncs, 0);
            std::thread::sleep(Duration::from_millis(1500));
            assert_eq!(store.stats().syncs, 1);
        }
        drop(store);
        let store = Store::open(&options).unwrap();
        assert_eq!(value(&store.snapshot(), space, b"a").as_deref(), Some("1"));
    }
}

#[test]
fn increments_under_row_locks_lose_nothing_while_checkpoints_run() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    options.checkpoint_log_bytes = 16 << 10;
    options.log_segment_bytes = 16 << 10;
    let store = Store::open(&options).unwrap();
    let space = store.allocate_space();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut work = store.begin();
                    let wait = Wait::Timeout(Duration::from_secs(20));
                    work.lock(space, b"n", LockMode::Exclusive, wait).unwrap();
                    let n = work.latest_get(space, b"n", number).unwrap().unwrap_or(0);
                    work.put(space, b"n", &(n + 1).to_le_bytes());
                    work.put(space, b"copy", &(n + 1).to_le_bytes());
                    work.commit().unwrap().wait().unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..2000 {
                let now = store.snapshot();
                let n = now.get(space, b"n", number).unwrap();
                std::thread::yield_now();
                assert_eq!(
                    now.get(space, b"copy", number).unwrap(),
                    n,
                    "a commit is seen whole"
                );
            }
        });
    });
    assert!(store.stats().checkpoints > 0);
    drop(store);
    let store = Store::open(&options).unwrap();
    let n = store.snapshot().get(space, b"n", number).unwrap();
    assert_eq!(n, Some(THREADS * ROUNDS));
}

#[test]
fn a_transaction_that_went_back_to_its_beginning_has_no_writes() {
    let (store, space) = in_memory();
    commit(&store, |t| t.put(space, b"a", b"1"));
    let mut transaction = store.begin();
    let beginning = transaction.savepoint();
    let large = vec![b'x'; 1 << 20];
    for row in 0..20u8 {
        transaction.put(space, &[b'b', row], &large);
    }
    transaction.put(space, b"a", b"2");
    transaction.rollback_to(beginning);
    assert!(!transaction.has_writes());
    assert_eq!(transaction.held_bytes(), 0);
    transaction.put(space, b"c", b"3");
    transaction.commit().unwrap().wait().unwrap();
    let now = store.snapshot();
    assert_eq!(
        listed(now.range(space, ALL, Direction::Forward).unwrap()),
        "a=1 c=3"
    );
}
