//! What happens when the disk refuses.

use std::fs;

use porpoise_storage::{Error, Options, SpaceId, Store};

const SPACE: SpaceId = SpaceId(1);

fn put(store: &Store, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let mut work = store.begin();
    work.put(SPACE, key, value);
    work.commit()?.wait()
}

fn has(store: &Store, key: &[u8]) -> bool {
    store.snapshot().get(SPACE, key, |_| ()).unwrap().is_some()
}

#[test]
fn a_failed_write_fails_its_commit_and_makes_the_store_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    options.log_segment_bytes = 8 << 10;
    let store = Store::open(&options).unwrap();
    put(&store, b"before", b"1").unwrap();

    // The log wants a new segment, and a folder is where its file should be.
    let obstacle = folder.path().join("log.unfinished");
    fs::create_dir(&obstacle).unwrap();
    let error = put(&store, b"too much", &[7; 20_000]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Io {
                doing: "create",
                ..
            }
        ),
        "{error}"
    );
    assert!(!has(&store, b"too much"), "what failed is not visible");
    assert!(has(&store, b"before"), "reads go on");

    let error = put(&store, b"after", b"1").unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }));
    assert!(
        error
            .to_string()
            .contains("read-only since a write failed: cannot create"),
        "{error}"
    );
    assert!(store.checkpoint().is_err());
    drop(store);

    fs::remove_dir(&obstacle).unwrap();
    let store = Store::open(&options).unwrap();
    assert!(has(&store, b"before"));
    assert!(!has(&store, b"too much"));
    put(&store, b"after", b"1").unwrap();
}

#[test]
fn a_refused_commit_releases_its_row_locks() {
    use porpoise_storage::{LockMode, Wait};
    let store = Store::open(&Options::memory()).unwrap();
    let mut work = store.begin();
    work.lock(SPACE, b"a", LockMode::Exclusive, Wait::NoWait)
        .unwrap();
    work.put(SPACE, b"a", b"1");
    let mut next = store.begin();
    store.close().unwrap();
    assert!(matches!(work.commit().map(drop), Err(Error::Closed)));
    next.lock(SPACE, b"a", LockMode::Exclusive, Wait::NoWait)
        .unwrap();
}
