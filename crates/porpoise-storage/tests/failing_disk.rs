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

/// Needs a small file system of its own: `mount -t tmpfs -o size=48m none DIR`, and its path in
/// `PORPOISE_SMALL_DISK`.
#[test]
fn a_full_disk_loses_nothing() {
    let Ok(disk) = std::env::var("PORPOISE_SMALL_DISK") else {
        return;
    };
    let folder = std::path::Path::new(&disk).join("store");
    let mut options = Options::path(&folder);
    options.log_segment_bytes = 1 << 20;
    options.checkpoint_log_bytes = 4 << 20;
    let store = Store::open(&options).unwrap();
    let value = |number: u32| vec![number as u8; 4000];
    let acknowledged = (0u32..)
        .take_while(
            |number| match put(&store, &number.to_be_bytes(), &value(*number)) {
                Ok(()) => true,
                Err(error) => {
                    assert!(error.is_disk_full(), "{error}");
                    false
                }
            },
        )
        .count() as u32;
    assert!(acknowledged > 3000, "only {acknowledged}");
    let check = |store: &Store| {
        let now = store.snapshot();
        for number in 0..acknowledged {
            let found = now
                .get(SPACE, &number.to_be_bytes(), <[u8]>::to_vec)
                .unwrap();
            assert_eq!(found, Some(value(number)), "row {number}");
        }
        assert!(!has(store, &acknowledged.to_be_bytes()));
    };
    check(&store);
    assert!(put(&store, b"more", b"1").unwrap_err().is_disk_full());
    drop(store);
    let error = Store::open(&options).map(|store| check(&store)).err();
    assert!(error.as_ref().is_none_or(Error::is_disk_full), "{error:?}");
}
