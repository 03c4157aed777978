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

/// A small file system of its own, if this process may mount one; `PORPOISE_SMALL_DISK` names one
/// that is there already.
struct SmallDisk {
    folder: tempfile::TempDir,
    is_mounted: bool,
}

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        if let Ok(disk) = std::env::var("PORPOISE_SMALL_DISK") {
            let folder = tempfile::tempdir_in(disk).unwrap();
            return Some(SmallDisk {
                folder,
                is_mounted: false,
            });
        }
        let folder = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=48m", "none"]);
        let mounted = mount.arg(folder.path()).output().ok()?.status.success();
        mounted.then_some(SmallDisk {
            folder,
            is_mounted: true,
        })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            let mut unmount = std::process::Command::new("umount");
            let _ = unmount.arg("-l").arg(self.folder.path()).output();
        }
    }
}

#[test]
fn a_full_disk_loses_nothing_and_is_left_behind_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: no small disk can be mounted here");
        return;
    };
    let folder = disk.folder.path().join("store");
    let mut options = Options::path(&folder);
    options.log_segment_bytes = 1 << 20;
    options.checkpoint_log_bytes = 4 << 20;
    let store = Store::open(&options).unwrap();
    // A third of the disk is somebody else's, for the time being.
    let ballast = disk.folder.path().join("ballast");
    fs::write(&ballast, vec![1; 16 << 20]).unwrap();
    let value = |number: u32| vec![number as u8; 4000];
    let fill = |store: &Store, from: u32| -> u32 {
        let is_taken = |number: &u32| match put(store, &number.to_be_bytes(), &value(*number)) {
            Ok(()) => true,
            Err(error) => {
                assert!(error.is_disk_full(), "{error}");
                assert!(!matches!(error, Error::ReadOnly { .. }), "{error}");
                false
            }
        };
        (from..).take_while(is_taken).count() as u32 + from
    };
    let check = |store: &Store, acknowledged: u32| {
        let now = store.snapshot();
        for number in 0..acknowledged {
            let found = now
                .get(SPACE, &number.to_be_bytes(), <[u8]>::to_vec)
                .unwrap();
            assert_eq!(found, Some(value(number)), "row {number}");
        }
        assert!(!has(store, &acknowledged.to_be_bytes()));
    };
    let acknowledged = fill(&store, 0);
    assert!(acknowledged > 1000, "only {acknowledged}");
    check(&store, acknowledged);
    assert!(put(&store, &acknowledged.to_be_bytes(), &value(0)).is_err());
    // Room again: the same store goes on.
    fs::remove_file(&ballast).unwrap();
    let more = fill(&store, acknowledged);
    assert!(more > acknowledged + 500, "only {more}");
    check(&store, more);
    drop(store);
    // Without the checkpoint that closing would have made: the log has it all.
    let error = Store::open(&options).map(|store| check(&store, more)).err();
    assert!(error.as_ref().is_none_or(Error::is_disk_full), "{error:?}");
}
