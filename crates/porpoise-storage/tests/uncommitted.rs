//! Reading what isn't committed, while others write, commit and roll back.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use porpoise_storage::{
    Cursor, Direction, LockMode, Options, SpaceId, Store, Transaction, Uncommitted, Wait,
};

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

fn in_memory() -> (Store, SpaceId) {
    let store = Store::open(&Options::memory()).unwrap();
    let space = store.allocate_space();
    (store, space)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn listed(mut cursor: Cursor) -> String {
    let mut out = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        out.push(format!("{}={}", text(key), text(value)));
    }
    out.join(" ")
}

fn value(newest: &Uncommitted, space: SpaceId, key: &[u8]) -> Option<String> {
    newest.get(space, key, text).unwrap()
}

fn all(store: &Store, space: SpaceId) -> String {
    let newest = store.uncommitted();
    listed(newest.range(space, ALL, Direction::Forward).unwrap())
}

fn commit(transaction: Transaction) {
    transaction.commit().unwrap().wait().unwrap();
}

#[test]
fn rows_of_open_transactions_are_read_and_their_deletions() {
    let (store, space) = in_memory();
    let mut first = store.begin();
    first.put(space, b"a", b"1");
    first.put(space, b"b", b"1");
    commit(first);
    let (mut one, mut other) = (store.begin(), store.begin());
    one.put(space, b"a", b"2");
    other.delete(space, b"b");
    other.insert(space, b"c", b"3");
    assert_eq!(all(&store, space), "a=2 c=3");
    let newest = store.uncommitted();
    assert_eq!(value(&newest, space, b"b"), None);
    let backward = newest.range(space, ALL, Direction::Backward).unwrap();
    assert_eq!(listed(backward), "c=3 a=2");
    one.rollback();
    assert_eq!(all(&store, space), "a=1 c=3");
    commit(other);
    assert_eq!(all(&store, space), "a=1 c=3");
}

#[test]
fn what_a_savepoint_undoes_is_not_read_any_more() {
    let (store, space) = in_memory();
    let mut writer = store.begin();
    writer.put(space, b"a", b"1");
    let savepoint = writer.savepoint();
    for number in 0..1000u32 {
        writer.put(space, format!("b{number}").as_bytes(), b"2");
    }
    writer.put(space, b"a", b"2");
    writer.rollback_to(savepoint);
    assert_eq!(all(&store, space), "a=1");
}

#[test]
fn a_transaction_reads_its_own_writes_over_those_of_others() {
    let (store, space) = in_memory();
    let (mut reader, mut writer) = (store.begin(), store.begin());
    reader.put(space, b"a", b"own");
    writer.put(space, b"b", b"other");
    assert_eq!(reader.get(space, b"b", text).unwrap(), None);
    reader.read_uncommitted();
    assert_eq!(reader.get(space, b"b", text).unwrap(), Some("other".into()));
    let rows = reader.range(space, ALL, Direction::Forward).unwrap();
    assert_eq!(listed(rows), "a=own b=other");
    reader.forget_view();
    assert_eq!(reader.get(space, b"b", text).unwrap(), None);
}

/// A commit leaves its overlay with those who read it: what they have found they find again.
#[test]
fn a_reader_keeps_what_is_committed_while_it_reads() {
    let (store, space) = in_memory();
    let mut writer = store.begin();
    writer.put(space, b"a", b"1");
    let newest = store.uncommitted();
    commit(writer);
    assert_eq!(value(&newest, space, b"a").as_deref(), Some("1"));
}

/// A cursor reads a growing overlay in batches, and misses nothing that was there before it.
#[test]
fn a_cursor_goes_on_while_its_overlay_grows_and_shrinks() {
    for version_bytes in [16 << 20, 50 << 10, 1] {
        let mut options = Options::memory();
        options.checkpoint_version_bytes = version_bytes;
        let store = Store::open(&options).unwrap();
        grow_and_shrink(&store);
    }
}

fn grow_and_shrink(store: &Store) {
    let space = store.allocate_space();
    let mut writer = store.begin();
    for number in (0..2000u32).step_by(2) {
        writer.put(space, &number.to_be_bytes(), b"early");
    }
    let savepoint = writer.savepoint();
    let newest = store.uncommitted();
    let mut cursor = newest.range(space, ALL, Direction::Forward).unwrap();
    let mut early = 0;
    for round in 0.. {
        if round % 50 == 0 {
            writer.rollback_to(savepoint);
        }
        writer.put(space, &(round * 2 + 1u32).to_be_bytes(), b"late");
        let Some((_, value)) = cursor.next().unwrap() else {
            break;
        };
        early += u32::from(value == b"early");
    }
    assert_eq!(early, 1000);
}

/// Each writer writes pairs of rows, one value to both, and ends by chance; whoever reads meets
/// whole values that somebody wrote to that row, and rows that nobody deletes in every scan.
#[test]
fn readers_meet_only_versions_that_there_were() {
    const WRITERS: u32 = 4;
    const ROWS: u32 = 16;
    let (store, space) = in_memory();
    let mut first = store.begin();
    let made = |row: u32, round: u32| format!("{row}:{round}:").repeat(8);
    for row in 0..ROWS {
        first.put(space, &row.to_be_bytes(), made(row, 0).as_bytes());
    }
    commit(first);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, is_done) = (&store, &is_done);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 1..1500 {
                        let mut transaction = store.begin();
                        for row in (writer..ROWS).step_by(WRITERS as usize) {
                            let key = row.to_be_bytes();
                            let (mode, wait) = (LockMode::Exclusive, Wait::NoWait);
                            transaction.lock(space, &key, mode, wait).unwrap();
                            transaction.put(space, &key, made(row, round).as_bytes());
                        }
                        match round % 3 {
                            0 => transaction.rollback(),
                            _ => commit(transaction),
                        }
                    }
                })
            })
            .collect();
        let reader = scope.spawn(move || {
            let mut scans = 0;
            while !is_done.load(Ordering::Relaxed) {
                let newest = store.uncommitted();
                let mut cursor = newest.range(space, ALL, Direction::Forward).unwrap();
                let mut rows = 0u32;
                while let Some((key, value)) = cursor.next().unwrap() {
                    assert_eq!(key, rows.to_be_bytes());
                    let value = text(value);
                    let round = value.split(':').nth(1).and_then(|round| round.parse().ok());
                    assert_eq!(value, made(rows, round.unwrap()));
                    rows += 1;
                }
                assert_eq!(rows, ROWS);
                scans += 1;
            }
            scans
        });
        for writer in writers {
            writer.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}
