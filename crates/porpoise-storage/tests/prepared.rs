//! Transactions that are prepared: what stays of them, and what a restart makes of that.

use std::path::Path;
use std::time::Duration;

use porpoise_storage::LockMode::{Absent, Exclusive, Shared};
use porpoise_storage::{
    LockError, Options, PreparedTransaction, SpaceId, Store, Transaction, Wait,
};

const PREPARED: SpaceId = SpaceId(0);
const ROWS: SpaceId = SpaceId(1);

fn open(folder: &Path) -> Store {
    Store::open(&Options::path(folder)).unwrap()
}

fn read(store: &Store, key: &[u8]) -> Option<Vec<u8>> {
    store.snapshot().get(ROWS, key, <[u8]>::to_vec).unwrap()
}

fn lock(work: &mut Transaction, key: &[u8]) -> Result<(), LockError> {
    work.lock(ROWS, key, Exclusive, Wait::NoWait).map(|_| ())
}

fn change(store: &Store, rows: &[(&[u8], &[u8])]) -> Transaction {
    let mut work = store.begin();
    for (key, value) in rows {
        lock(&mut work, key).unwrap();
        work.put(ROWS, key, value);
    }
    work
}

fn prepare(store: &Store, key: &[u8], rows: &[(&[u8], &[u8])]) -> PreparedTransaction {
    let work = change(store, rows);
    work.prepare((PREPARED, key), b"a label").unwrap()
}

fn recovered(store: &Store) -> Vec<PreparedTransaction> {
    store.recover_prepared(PREPARED, b"").unwrap()
}

#[test]
fn a_prepared_transaction_hides_its_writes_and_keeps_its_locks_until_it_is_told_to_commit() {
    let store = Store::open(&Options::memory()).unwrap();
    let prepared = prepare(&store, b"x", &[(b"cod", b"4 kg")]);
    assert_eq!(read(&store, b"cod"), None);
    let newest = store.uncommitted();
    assert_eq!(newest.get(ROWS, b"cod", |_| ()).unwrap(), Some(()));
    assert_eq!(lock(&mut store.begin(), b"cod"), Err(LockError::Busy));
    prepared.commit().map_err(|left| left.error).unwrap();
    assert_eq!(read(&store, b"cod"), Some(b"4 kg".to_vec()));
    assert_eq!(lock(&mut store.begin(), b"cod"), Ok(()));
    assert!(recovered(&store).is_empty());
}

#[test]
fn a_rolled_back_one_leaves_nothing_but_its_counters() {
    let store = Store::open(&Options::memory()).unwrap();
    let mut work = change(&store, &[(b"cod", b"4 kg")]);
    work.set_counter(ROWS, 7);
    let prepared = work.prepare((PREPARED, b"x"), b"").unwrap();
    prepared.rollback().map_err(|left| left.error).unwrap();
    assert_eq!(read(&store, b"cod"), None);
    assert_eq!(lock(&mut store.begin(), b"cod"), Ok(()));
    assert_eq!(store.counter(ROWS), 7);
    assert!(recovered(&store).is_empty());
}

#[test]
fn a_restart_finds_writes_counters_spaces_and_locks_again() {
    for checkpoint in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        change(&store, &[(b"ray", b"1 kg"), (b"eel", b"2 kg")])
            .commit()
            .unwrap()
            .wait()
            .unwrap();
        let mut work = change(&store, &[(b"cod", b"4 kg")]);
        lock(&mut work, b"ray").unwrap();
        work.delete(ROWS, b"ray");
        work.lock(ROWS, b"eel", Shared, Wait::NoWait).unwrap();
        work.lock(ROWS, b"gar", Absent, Wait::NoWait).unwrap();
        let space = store.allocate_space();
        work.create_space(space);
        work.insert(space, b"row", b"");
        work.set_counter(ROWS, 9);
        drop(work.prepare((PREPARED, b"x"), b"a label").unwrap());
        if checkpoint {
            store.close().unwrap();
        }
        drop(store);

        let store = open(folder.path());
        let mut found = recovered(&store);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].key(), found[0].label()),
            (&b"x"[..], &b"a label"[..])
        );
        assert_eq!(read(&store, b"cod"), None);
        assert_eq!(store.counter(ROWS), 9);
        assert!(store.allocate_space() > space);
        let mut work = store.begin();
        for key in [&b"cod"[..], b"ray", b"eel"] {
            assert_eq!(lock(&mut work, key), Err(LockError::Busy), "{key:?}");
        }
        assert!(work.lock(ROWS, b"eel", Shared, Wait::NoWait).is_ok());
        assert!(work.lock(ROWS, b"gar", Absent, Wait::NoWait).is_ok());
        drop(work);

        let prepared = found.remove(0);
        prepared.commit().map_err(|left| left.error).unwrap();
        assert_eq!(read(&store, b"cod"), Some(b"4 kg".to_vec()));
        assert_eq!(read(&store, b"ray"), None);
        assert_eq!(
            store.snapshot().get(space, b"row", |_| ()).unwrap(),
            Some(())
        );
        drop(store);
        let store = open(folder.path());
        assert!(recovered(&store).is_empty());
        assert_eq!(read(&store, b"cod"), Some(b"4 kg".to_vec()));
    }
}

#[test]
fn a_record_of_many_megabytes_is_put_together_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let long = vec![7; 5 << 20];
    drop(prepare(&store, b"x", &[(b"cod", &long)]));
    drop(prepare(&store, b"y", &[(b"eel", b"1 kg")]));
    store.close().unwrap();
    drop(store);
    let store = open(folder.path());
    let keys: Vec<Vec<u8>> = recovered(&store)
        .into_iter()
        .map(|prepared| {
            let key = prepared.key().to_vec();
            prepared.commit().map_err(|left| left.error).unwrap();
            key
        })
        .collect();
    assert_eq!(keys, [b"x", b"y"]);
    assert_eq!(read(&store, b"cod"), Some(long));
    assert!(recovered(&store).is_empty());
}

/// Its writes are a memtable of their own, and it lists none of its locks.
#[test]
fn a_large_one_commits_and_is_found_again_with_all_its_locks() {
    const ROWS_MAX: u32 = 70_000;
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    options.checkpoint_version_bytes = 1 << 20;
    for commits_before_restart in [true, false] {
        let store = Store::open(&options).unwrap();
        let mut work = store.begin();
        for row in 0..ROWS_MAX {
            lock(&mut work, &row.to_be_bytes()).unwrap();
            work.put(
                ROWS,
                &row.to_be_bytes(),
                &[u8::from(commits_before_restart)],
            );
        }
        assert!(work.is_large());
        let prepared = work.prepare((PREPARED, b"x"), b"a label").unwrap();
        assert_eq!(lock(&mut store.begin(), &[0; 4]), Err(LockError::Busy));
        let (store, prepared) = match commits_before_restart {
            true => (store, prepared),
            false => {
                drop((prepared, store));
                let store = Store::open(&options).unwrap();
                let mut found = recovered(&store);
                assert_eq!(found.len(), 1);
                (store, found.remove(0))
            }
        };
        let last = (ROWS_MAX - 1).to_be_bytes();
        assert_eq!(lock(&mut store.begin(), &last), Err(LockError::Busy));
        prepared.commit().map_err(|left| left.error).unwrap();
        // Another thread releases so many.
        let wait = Wait::Timeout(Duration::from_secs(20));
        store.begin().lock(ROWS, &last, Exclusive, wait).unwrap();
        assert_eq!(
            read(&store, &last),
            Some(vec![u8::from(commits_before_restart)])
        );
        assert!(recovered(&store).is_empty());
    }
}

#[test]
fn one_that_has_only_read_is_found_again_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut work = store.begin();
    work.lock(ROWS, b"cod", Shared, Wait::NoWait).unwrap();
    drop(work.prepare((PREPARED, b"x"), b"").unwrap());
    drop(store);
    let store = open(folder.path());
    let found = recovered(&store);
    assert_eq!(found.len(), 1);
    assert_eq!(lock(&mut store.begin(), b"cod"), Err(LockError::Busy));
    for prepared in found {
        prepared.rollback().map_err(|left| left.error).unwrap();
    }
    assert_eq!(lock(&mut store.begin(), b"cod"), Ok(()));
}
