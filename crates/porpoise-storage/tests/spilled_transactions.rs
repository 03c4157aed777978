//! Transactions that write more than memory shall hold: their writes go on in a file.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use porpoise_storage::{
    Background, Cursor, Direction, Error, Flush, FlushPolicy, LockMode, Options,
    PreparedTransaction, Salvage, Snapshot, SpaceId, SpaceOwner, Store, Transaction, Wait, salvage,
};

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const ROWS: u32 = 2000;

fn options(folder: &Path) -> Options {
    let mut options = Options::path(folder);
    options.background = Background::Manual;
    options.checkpoint_version_bytes = 16 << 10;
    options.spill_bytes = 40 << 10;
    options
}

fn space_of(store: &Store) -> SpaceId {
    let space = store.allocate_space();
    let mut work = store.begin();
    work.create_space(space);
    work.commit().unwrap().wait().unwrap();
    space
}

type Rows = BTreeMap<u32, Vec<u8>>;

fn key(row: u32) -> [u8; 4] {
    // Not in the order in which they are written.
    row.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

fn rows(mut cursor: Cursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    rows
}

fn expected(rows: &Rows) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = rows
        .iter()
        .map(|(row, value)| (key(*row).to_vec(), value.clone()));
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

fn check_snapshot(snapshot: &Snapshot, space: SpaceId, wanted: &Rows) {
    let mut found = rows(snapshot.range(space, ALL, Direction::Forward).unwrap());
    assert_eq!(found, expected(wanted));
    found.reverse();
    let backward = rows(snapshot.range(space, ALL, Direction::Backward).unwrap());
    assert_eq!(backward, found);
    for row in (0..ROWS + 10).step_by(37) {
        let value = snapshot.get(space, &key(row), <[u8]>::to_vec).unwrap();
        assert_eq!(value.as_ref(), wanted.get(&row), "row {row}");
    }
}

fn check_own(work: &Transaction, space: SpaceId, wanted: &Rows) {
    let found = rows(work.range(space, ALL, Direction::Forward).unwrap());
    assert_eq!(found, expected(wanted));
    for row in (0..ROWS + 10).step_by(37) {
        let value = work.get(space, &key(row), <[u8]>::to_vec).unwrap();
        assert_eq!(value.as_ref(), wanted.get(&row), "row {row}");
    }
}

/// Writes each row, and deletes every tenth.
fn write(work: &mut Transaction, space: SpaceId, byte: u8, model: &mut Rows) {
    for row in 0..ROWS {
        let value = vec![byte; 20 + row as usize % 90];
        work.put(space, &key(row), &value);
        model.insert(row, value);
    }
    for row in (0..ROWS).step_by(10) {
        work.delete(space, &key(row));
        model.remove(&row);
    }
}

fn files(folder: &Path, prefix: &str) -> usize {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with(prefix))
        .count()
}

fn spill_files(folder: &Path) -> usize {
    files(folder, "spill-")
}

fn prepared_files(folder: &Path) -> usize {
    files(folder, "prepared-")
}

/// The folder as a process leaves it that is killed.
fn copy(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[test]
fn others_see_all_of_it_when_it_is_committed_and_after_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let space = space_of(&store);
    let mut first = Rows::new();
    let mut work = store.begin();
    write(&mut work, space, b'a', &mut first);
    assert!(work.has_spilled());
    assert_eq!(spill_files(folder.path()), 1);
    check_own(&work, space, &first);
    check_snapshot(&store.snapshot(), space, &Rows::new());
    let before = store.snapshot();
    work.commit().unwrap().wait().unwrap();
    check_snapshot(&store.snapshot(), space, &first);
    check_snapshot(&before, space, &Rows::new());
    // A change above it, and a second one that spills.
    let mut second = first.clone();
    let mut work = store.begin();
    work.put(space, &key(5), b"later");
    second.insert(5, b"later".to_vec());
    work.commit().unwrap().wait().unwrap();
    let between = store.snapshot();
    let mut third = second.clone();
    let mut work = store.begin();
    write(&mut work, space, b'b', &mut third);
    work.commit().unwrap().wait().unwrap();
    assert_eq!(spill_files(folder.path()), 2);
    let check_all = |store: &Store| {
        check_snapshot(&store.snapshot(), space, &third);
        check_snapshot(&between, space, &second);
        check_snapshot(&before, space, &Rows::new());
    };
    check_all(&store);
    // As after a kill: what the log has must be found.
    let copy = copy(folder.path());
    std::fs::write(copy.path().join("spill-00000000000000ff"), b"of nobody").unwrap();
    let started = Store::open(&options(copy.path())).unwrap();
    assert_eq!(spill_files(copy.path()), 2);
    check_snapshot(&started.snapshot(), space, &third);
    started.checkpoint().unwrap();
    check_snapshot(&started.snapshot(), space, &third);
    assert_eq!(spill_files(copy.path()), 0);
    drop(started);
    let started = Store::open(&options(copy.path())).unwrap();
    check_snapshot(&started.snapshot(), space, &third);
    // The checkpoint of the store itself, beside older snapshots.
    store.checkpoint().unwrap();
    check_all(&store);
    drop((before, between));
    store.checkpoint().unwrap();
    assert_eq!(spill_files(folder.path()), 0);
}

#[test]
fn a_savepoint_undoes_what_was_spilled_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let space = space_of(&store);
    let mut model = Rows::new();
    let mut work = store.begin();
    work.insert(space, &key(1), b"small");
    model.insert(1, b"small".to_vec());
    let small = (work.savepoint(), model.clone());
    write(&mut work, space, b'a', &mut model);
    for row in 0..100 {
        work.put(space, &key(row), b"again");
        model.insert(row, b"again".to_vec());
    }
    let spilled = (work.savepoint(), model.clone());
    let cursor = work.range(space, ALL, Direction::Forward).unwrap();
    for (round, byte) in (b'b'..=b'e').enumerate() {
        write(&mut work, space, byte, &mut model);
        check_own(&work, space, &model);
        if round % 2 == 1 {
            work.rollback_to(spilled.0);
            model = spilled.1.clone();
            check_own(&work, space, &model);
        }
    }
    assert_eq!(rows(cursor), expected(&spilled.1));
    work.put(space, &key(3), b"kept");
    model.insert(3, b"kept".to_vec());
    let kept = (work.savepoint(), model.clone());
    let other = store.allocate_space();
    work.create_space(other);
    work.put(other, b"a", b"1");
    write(&mut work, space, b'f', &mut model);
    work.rollback_to(kept.0);
    check_own(&work, space, &kept.1);
    let mut beside = store.begin();
    beside.read_uncommitted();
    check_own(&beside, space, &kept.1);
    drop(beside);
    work.commit().unwrap().wait().unwrap();
    check_snapshot(&store.snapshot(), space, &kept.1);
    assert_eq!(store.snapshot().get(other, b"a", |_| ()).unwrap(), None);
    store.checkpoint().unwrap();
    check_snapshot(&store.snapshot(), space, &kept.1);
    assert_eq!(spill_files(folder.path()), 0);
    // All the way back to where there was no file.
    let mut model = kept.1;
    let mut work = store.begin();
    work.put(space, &key(1), &small.1[&1]);
    model.insert(1, small.1[&1].clone());
    let small = (work.savepoint(), model.clone());
    write(&mut work, space, b'g', &mut model);
    work.rollback_to(small.0);
    check_own(&work, space, &small.1);
    work.commit().unwrap().wait().unwrap();
    check_snapshot(&store.snapshot(), space, &small.1);
}

#[test]
fn the_file_is_gone_with_a_transaction_that_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let space = space_of(&store);
    let mut work = store.begin();
    let first = work.savepoint();
    write(&mut work, space, b'a', &mut Rows::new());
    assert_eq!(spill_files(folder.path()), 1);
    work.rollback_to(first);
    assert_eq!(spill_files(folder.path()), 0);
    write(&mut work, space, b'a', &mut Rows::new());
    assert_eq!(spill_files(folder.path()), 1);
    drop(work);
    assert_eq!(spill_files(folder.path()), 0);
    check_snapshot(&store.snapshot(), space, &Rows::new());
}

#[test]
fn one_that_has_spilled_is_only_prepared_if_it_was_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let (space, place) = (space_of(&store), space_of(&store));
    let mut work = store.begin();
    write(&mut work, space, b'a', &mut Rows::new());
    let refused = work.prepare((place, b"x"), b"label").err().unwrap();
    assert!(matches!(refused, Error::TransactionTooLarge { .. }));
    assert_eq!(spill_files(folder.path()), 0);
}

/// Some rows that are there, and a transaction with a savepoint that changes them all, prepared.
fn prepared(
    store: &Store,
    (space, place): (SpaceId, SpaceId),
) -> (Rows, Rows, PreparedTransaction) {
    let mut before = Rows::new();
    let mut work = store.begin();
    work.may_be_prepared();
    write(&mut work, space, b'a', &mut before);
    work.commit().unwrap().wait().unwrap();
    let mut after = before.clone();
    let mut work = store.begin();
    work.may_be_prepared();
    write(&mut work, space, b'b', &mut after);
    let savepoint = work.savepoint();
    write(&mut work, space, b'c', &mut Rows::new());
    work.rollback_to(savepoint);
    work.put(space, &key(7), b"last");
    after.insert(7, b"last".to_vec());
    assert!(work.has_spilled());
    (
        before,
        after,
        work.prepare((place, b"x"), b"label").unwrap(),
    )
}

fn recovered(store: &Store, place: SpaceId) -> Option<PreparedTransaction> {
    let mut found = store.recover_prepared(place, b"").unwrap();
    assert!(found.len() <= 1);
    found.pop()
}

#[test]
fn a_prepared_one_that_has_spilled_is_there_after_a_start_and_commits_or_goes() {
    for commits in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&options(folder.path())).unwrap();
        let spaces @ (space, place) = (space_of(&store), space_of(&store));
        let (before, after, txn) = prepared(&store, spaces);
        check_snapshot(&store.snapshot(), space, &before);
        // Both files, that of the commit and that of what is prepared.
        assert_eq!(prepared_files(folder.path()), 2);
        let killed = copy(folder.path());
        let killed_file = killed.path().join("prepared-00000000ffffffff");
        std::fs::write(&killed_file, b"of one that was never prepared").unwrap();
        drop(txn);
        store.close().unwrap();
        // The tree has the commit.
        assert_eq!(prepared_files(folder.path()), 1);
        for folder in [folder.path(), killed.path()] {
            // A start more, at which nobody asks for it.
            Store::open(&options(folder)).unwrap().close().unwrap();
            let store = Store::open(&options(folder)).unwrap();
            check_snapshot(&store.snapshot(), space, &before);
            let txn = recovered(&store, place).unwrap();
            assert_eq!(txn.label(), b"label");
            assert!(!killed_file.exists() || folder != killed.path());
            store.checkpoint().unwrap();
            check_snapshot(&store.snapshot(), space, &before);
            let mut other = store.begin();
            let locked = other.lock(space, &key(7), LockMode::Exclusive, Wait::NoWait);
            assert!(locked.is_ok(), "rows that nobody locked aren't");
            drop(other);
            assert_eq!(prepared_files(folder), 1);
            let wanted = match commits {
                true => {
                    assert!(txn.commit().is_ok());
                    &after
                }
                false => {
                    assert!(txn.rollback().is_ok());
                    assert_eq!(prepared_files(folder), 0);
                    &before
                }
            };
            check_snapshot(&store.snapshot(), space, wanted);
            // As after a kill, before a checkpoint and behind it.
            let killed = copy(folder);
            let started = Store::open(&options(killed.path())).unwrap();
            assert!(recovered(&started, place).is_none());
            check_snapshot(&started.snapshot(), space, wanted);
            started.close().unwrap();
            store.checkpoint().unwrap();
            check_snapshot(&store.snapshot(), space, wanted);
            assert_eq!(prepared_files(folder), 0);
            store.close().unwrap();
            let started = Store::open(&options(folder)).unwrap();
            assert!(recovered(&started, place).is_none());
            check_snapshot(&started.snapshot(), space, wanted);
        }
    }
}

#[test]
fn a_rollback_of_a_prepared_one_outlives_a_kill_as_its_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.flush = FlushPolicy::new(Flush::EachSecond);
    let store = Store::open(&options).unwrap();
    let spaces @ (space, place) = (space_of(&store), space_of(&store));
    let (before, _, txn) = prepared(&store, spaces);
    store.checkpoint().unwrap();
    assert!(txn.rollback().is_ok());
    assert_eq!(prepared_files(folder.path()), 0);
    let killed = copy(folder.path());
    let started = Store::open(&Options {
        location: porpoise_storage::Location::Path(killed.path().into()),
        ..options.clone()
    });
    let started = started.unwrap();
    assert!(recovered(&started, place).is_none());
    check_snapshot(&started.snapshot(), space, &before);
}

#[test]
fn a_prepared_one_whose_file_is_lost_is_forgotten_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let spaces @ (space, place) = (space_of(&store), space_of(&store));
    let (before, _, txn) = prepared(&store, spaces);
    drop(txn);
    store.close().unwrap();
    let into = tempfile::tempdir().unwrap();
    let found = salvage(folder.path(), &options(into.path()), |_| {}).unwrap();
    assert!(found.is_whole(), "{found:?}");
    let store = Store::open(&options(into.path())).unwrap();
    assert!(store.recover_prepared(place, b"").is_err());
    let lost = store.forget_lost_prepared(place, b"").unwrap();
    assert_eq!(lost, [Box::from(*b"x")]);
    assert!(recovered(&store, place).is_none());
    check_snapshot(&store.snapshot(), space, &before);
    assert!(store.forget_lost_prepared(place, b"").unwrap().is_empty());
}

#[test]
fn damage_of_the_file_is_noticed_and_the_rest_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let space = space_of(&store);
    let mut rows = Rows::new();
    let mut work = store.begin();
    write(&mut work, space, b'a', &mut rows);
    work.commit().unwrap().wait().unwrap();
    drop(store);
    // Whole, it is saved as a whole.
    let save = || -> (Salvage, BTreeMap<u32, Vec<u8>>) {
        let into = tempfile::tempdir().unwrap();
        let saved = salvage(folder.path(), &Options::path(into.path()), |_| ()).unwrap();
        let store = Store::open(&options(into.path())).unwrap();
        let now = store.snapshot();
        let read = |row: u32| Some((row, now.get(space, &key(row), <[u8]>::to_vec).unwrap()?));
        (saved, (0..ROWS).filter_map(read).collect())
    };
    let (saved, found) = save();
    assert!(saved.is_whole(), "{:?}", saved.losses);
    assert_eq!(found, rows);
    let names = std::fs::read_dir(folder.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let file = names
        .find(|path| path.to_string_lossy().contains("spill-"))
        .unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let read = store.snapshot().range(space, ALL, Direction::Forward);
    let read = read.and_then(|mut rows| {
        while rows.next()?.is_some() {}
        Ok(())
    });
    assert!(matches!(read, Err(Error::Damaged(_))), "{read:?}");
    assert!(store.checkpoint().is_err());
    drop(store);
    assert!(!save().0.is_whole());
    std::fs::remove_file(&file).unwrap();
    let refused = Store::open(&options(folder.path())).err().unwrap();
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    assert!(!save().0.is_whole());
}

/// The last block of what was spilled is damaged, behind more than a checkpoint writes at a time.
#[test]
fn damage_of_the_file_leaves_the_tree_and_other_spaces_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.checkpoint_version_bytes = 4 << 10;
    let store = Store::open(&options).unwrap();
    let (space, other) = (space_of(&store), space_of(&store));
    let mut work = store.begin();
    work.put(other, b"k", b"1");
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    let before = store.snapshot();
    let mut rows = Rows::new();
    let mut work = store.begin();
    write(&mut work, space, b'a', &mut rows);
    work.commit().unwrap().wait().unwrap();
    let names = std::fs::read_dir(folder.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    let file = names
        .find(|path| path.to_string_lossy().contains("spill-"))
        .unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    // In front of the last index.
    let near_end = bytes.len() - 2000;
    bytes[near_end] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    store.set_space_names(Some(Arc::new(move |of| {
        (of == space).then(|| SpaceOwner {
            table: "shop.goods".to_string(),
            index: None,
        })
    })));
    let tree = folder.path().join("tree.redb");
    let tree_before = std::fs::read(&tree).unwrap();
    for round in 0..3u8 {
        let error = store.checkpoint().unwrap_err();
        assert!(names_table(&error), "{error:?}");
        assert!(std::fs::read(&tree).unwrap() == tree_before);
        check_snapshot(&before, space, &Rows::new());
        let read = store.snapshot().range(space, ALL, Direction::Forward);
        let read = read.and_then(|mut rows| {
            while rows.next()?.is_some() {}
            Ok(())
        });
        assert!(names_table(&read.unwrap_err()));
        let mut work = store.begin();
        work.put(other, b"k", &[round]);
        work.commit().unwrap().wait().unwrap();
        let found = store.snapshot().get(other, b"k", <[u8]>::to_vec).unwrap();
        assert_eq!(found, Some(vec![round]));
        let found = before.get(other, b"k", <[u8]>::to_vec).unwrap();
        assert_eq!(found, Some(b"1".to_vec()));
    }
    // What could not be read for a while can be read again.
    bytes[near_end] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    store.checkpoint().unwrap();
    check_snapshot(&store.snapshot(), space, &rows);
    check_snapshot(&before, space, &Rows::new());
}

fn names_table(error: &Error) -> bool {
    let Error::Damaged(place) = error else {
        return false;
    };
    let owner = place.owner.as_ref();
    owner.is_some_and(|owner| owner.table == "shop.goods")
}

/// A commit whose rows were all there before says nothing of how many more there are.
#[test]
fn a_start_finds_rows_that_replace_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let space = space_of(&store);
    let mut work = store.begin();
    let mut model = Rows::new();
    for row in 0..ROWS {
        work.put(space, &key(row), &[7; 50]);
        model.insert(row, vec![7; 50]);
    }
    assert!(work.has_spilled());
    work.commit().unwrap().wait().unwrap();
    drop(store);
    let store = Store::open(&options(folder.path())).unwrap();
    check_snapshot(&store.snapshot(), space, &model);
    assert_eq!(store.approximate_len(space), u64::from(ROWS));
}

/// The file keeps one state of the rows, not two: each slice takes pages that those before it have replaced. Readers
/// find the whole commit meanwhile.
#[test]
fn slices_of_a_spilled_commit_use_each_others_pages_again() {
    const MANY: u32 = 10 * ROWS;
    const FIRST: u32 = MANY / 4;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    let space = space_of(&store);
    let write = |first: u32, byte: u8, is_new: &dyn Fn(u32) -> bool| {
        let mut work = store.begin();
        for row in first..MANY {
            let (key, value) = (row.to_be_bytes(), [byte; 380]);
            match is_new(row) {
                true => work.insert(space, &key, &value),
                false => work.put(space, &key, &value),
            }
        }
        assert!(work.has_spilled());
        work.commit().unwrap().wait().unwrap();
    };
    write(FIRST, 1, &|_| true);
    store.checkpoint().unwrap();
    // A file of this size grows to twice its length, and has room for a slice or two then.
    let file_bytes = || {
        std::fs::metadata(folder.path().join("tree.redb"))
            .unwrap()
            .len()
    };
    let before = file_bytes();
    for byte in 2..5 {
        write(FIRST, byte, &|_| false);
        store.checkpoint().unwrap();
        assert_eq!(file_bytes(), before);
    }
    write(0, 2, &|row| row < FIRST);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(store.approximate_len(space), u64::from(MANY));
                let snapshot = store.snapshot();
                let found = rows(snapshot.range(space, ALL, Direction::Forward).unwrap());
                assert_eq!(found.len(), MANY as usize);
                assert!(found.iter().all(|(_, value)| value[..] == [2; 380]));
            }
        });
        let written = store.checkpoint();
        is_done.store(true, Ordering::Relaxed);
        written.unwrap();
    });
}

/// What a transaction may have in memory all of them have together: once there are more the larger ones go on in
/// their files.
#[test]
fn many_transactions_share_the_memory_of_their_writes() {
    const WRITERS: u32 = 40;
    const EACH: u32 = 8_000;
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    options.background = Background::Manual;
    options.spill_bytes = 4 << 20;
    let store = Store::open(&options).unwrap();
    let space = space_of(&store);
    let mut all: Vec<_> = (0..WRITERS).map(|_| store.begin()).collect();
    let key = |writer: u32, row: u32| (row * WRITERS + writer).to_be_bytes();
    for row in 0..EACH {
        for (writer, work) in (0..).zip(&mut all) {
            work.put(space, &key(writer, row), &[row as u8; 400]);
        }
        let in_memory: usize = all.iter().map(|work| work.held_bytes()).sum();
        // Those with less than 1 MiB aren't asked.
        assert!(in_memory < WRITERS as usize * (3 << 19), "{in_memory}");
    }
    assert!(all.iter().all(|work| work.has_spilled()));
    // One that is alone has as much memory as one may have.
    let alone = all.pop().unwrap();
    for work in all {
        work.commit().unwrap().wait().unwrap();
    }
    store.checkpoint().unwrap();
    drop(alone);
    let mut work = store.begin();
    for row in 0..EACH / 3 {
        work.put(space, &key(WRITERS - 1, row), &[row as u8; 400]);
    }
    assert!(!work.has_spilled() && work.held_bytes() > 2 << 20);
    work.rollback();
    let rows = rows(
        store
            .snapshot()
            .range(space, ALL, Direction::Forward)
            .unwrap(),
    );
    assert_eq!(rows.len(), ((WRITERS - 1) * EACH) as usize);
    for (place, (found, value)) in (0..).zip(&rows) {
        let (row, writer) = (place / (WRITERS - 1), place % (WRITERS - 1));
        assert_eq!(
            (&found[..], &value[..]),
            (&key(writer, row)[..], &[row as u8; 400][..])
        );
    }
}
