//! What a start makes of a log that is cut, torn or corrupt.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use porpoise_storage::{Error, Flush, Options, SpaceId, Store};
use proptest::prelude::*;

const SPACE: SpaceId = SpaceId(1);
const COMMITS: u32 = 20;
/// A commit's record here: header, operation, key and value, rounded up to eight.
const RECORD_BYTES: u64 = 40 + 112;
const SEGMENT_HEADER_BYTES: u64 = 1024;

fn options(folder: &Path) -> Options {
    let mut options = Options::path(folder);
    options.log_segment_bytes = 8 << 10;
    options
}

/// A folder whose log has commits 0, 1, 2 …, as a crash right after the last one would leave it.
fn crashed_store(flush: Flush) -> (tempfile::TempDir, PathBuf) {
    crashed_after(flush, Duration::ZERO)
}

/// The same, the crash so long after the last commit.
fn crashed_after(flush: Flush, quiet: Duration) -> (tempfile::TempDir, PathBuf) {
    let alive = tempfile::tempdir().unwrap();
    let options = options(alive.path());
    options.flush.set(flush);
    let store = Store::open(&options).unwrap();
    let first_mark =
        fs::read(alive.path().join("log-0000000000000000")).unwrap()[512..528].to_vec();
    for number in 0..COMMITS {
        let mut work = store.begin();
        work.put(SPACE, &number.to_be_bytes(), &[7; 100]);
        work.commit().unwrap().wait().unwrap();
    }
    // Written, if not synced.
    store.sync_pending();
    std::thread::sleep(quiet);
    let folder = tempfile::tempdir().unwrap();
    if flush == Flush::EachSecond {
        drop(store);
    }
    for entry in fs::read_dir(alive.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let log = folder.path().join("log-0000000000000000");
    if flush == Flush::EachSecond {
        // As if the machine had stopped before anything was noted of the sync.
        edit(&log, |bytes| bytes[512..528].copy_from_slice(&first_mark));
    }
    (folder, log)
}

/// How many commits are there; they must be the first ones.
fn commits_in(store: &Store) -> u32 {
    let now = store.snapshot();
    let there = |n: &u32| {
        now.get(SPACE, &n.to_be_bytes(), |v| assert_eq!(v, [7; 100]))
            .unwrap()
    };
    let count = (0..COMMITS).take_while(|n| there(n).is_some()).count() as u32;
    assert!(
        (count..COMMITS).all(|n| there(&n).is_none()),
        "a hole in the history"
    );
    count
}

/// Where and why a start is refused because of corruption.
struct Refusal {
    path: PathBuf,
    offset: usize,
    what: String,
}

fn refused_start(folder: &Path) -> Refusal {
    match Store::open(&options(folder)).map(drop) {
        Err(Error::Corrupt { path, offset, what }) => Refusal {
            path,
            offset: offset as usize,
            what,
        },
        other => panic!("a corrupt store is to be refused: {other:?}"),
    }
}

fn edit(log: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(log).unwrap();
    change(&mut bytes);
    fs::write(log, bytes).unwrap();
}

fn offset_of(commit: u32) -> usize {
    (SEGMENT_HEADER_BYTES + RECORD_BYTES * u64::from(commit)) as usize
}

#[test]
fn a_torn_tail_is_cut_and_never_comes_back() {
    let (folder, log) = crashed_store(Flush::AtCommit);
    edit(&log, |bytes| bytes[offset_of(COMMITS - 1) + 60] ^= 1);
    let store = Store::open(&options(folder.path())).unwrap();
    assert_eq!(commits_in(&store), COMMITS - 1);
    let mut work = store.begin();
    work.put(SPACE, b"new", b"1");
    work.commit().unwrap().wait().unwrap();
    drop(store);
    let store = Store::open(&options(folder.path())).unwrap();
    assert_eq!(commits_in(&store), COMMITS - 1);
    assert_eq!(
        store.snapshot().get(SPACE, b"new", |_| ()).unwrap(),
        Some(())
    );
}

#[test]
fn a_corrupt_middle_is_reported_with_its_place_and_stops_the_start() {
    for damaged in [0, 7, COMMITS - 2] {
        for byte in [0, 5, 9, 17, 30, 34, 37, 41, 90] {
            let (folder, log) = crashed_store(Flush::AtCommit);
            edit(&log, |bytes| bytes[offset_of(damaged) + byte] ^= 0x10);
            let before = fs::read(&log).unwrap();
            let refusal = refused_start(folder.path());
            assert_eq!(refusal.path, log);
            let offset = offset_of(damaged);
            assert_eq!(refusal.offset, offset, "byte {byte} of commit {damaged}");
            assert_eq!(
                fs::read(&log).unwrap(),
                before,
                "the evidence is left alone"
            );
        }
    }
}

#[test]
fn without_a_sync_between_a_lost_middle_is_a_torn_tail() {
    // No record says that an earlier one was on disk: the machine may have written them in any
    // order.
    let (folder, log) = crashed_store(Flush::EachSecond);
    edit(&log, |bytes| bytes[offset_of(7)] ^= 1);
    let store = Store::open(&options(folder.path())).unwrap();
    assert_eq!(commits_in(&store), 7);
    drop(store);
    assert_eq!(
        commits_in(&Store::open(&options(folder.path())).unwrap()),
        7
    );
}

/// A folder with a log of several segments.
fn store_of_many_segments() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    for number in 0..10u32 {
        let mut work = store.begin();
        work.put(SPACE, &number.to_be_bytes(), &[7; 3000]);
        work.commit().unwrap().wait().unwrap();
    }
    folder
}

#[test]
fn a_missing_log_segment_stops_the_start() {
    let folder = store_of_many_segments();
    fs::remove_file(folder.path().join("log-0000000000002000")).unwrap();
    let what = refused_start(folder.path()).what;
    assert!(what.contains("missing"), "{what}");
}

#[test]
fn a_segment_missing_at_the_end_stops_the_start() {
    let folder = store_of_many_segments();
    let mut logs: Vec<PathBuf> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("/log-"))
        .collect();
    logs.sort();
    while let Some(last) = logs.pop() {
        fs::remove_file(&last).unwrap();
        let Refusal { path, what, .. } = refused_start(folder.path());
        assert_eq!(path, last);
        assert!(what.contains("this log segment is missing"), "{what}");
    }
}

#[test]
fn a_log_cut_short_stops_the_start() {
    for len in [2300, 1024, 100, 0, 8191] {
        let (folder, log) = crashed_store(Flush::AtCommit);
        edit(&log, |bytes| bytes.truncate(len));
        assert_eq!(refused_start(folder.path()).path, log, "{len} bytes");
        assert_eq!(fs::metadata(&log).unwrap().len(), len as u64);
    }
}

#[test]
fn a_segment_of_another_store_stops_the_start() {
    let (folder, log) = crashed_store(Flush::AtCommit);
    let (_other, others) = crashed_store(Flush::AtCommit);
    fs::copy(others, &log).unwrap();
    let Refusal { path, what, .. } = refused_start(folder.path());
    assert_eq!(path, log);
    assert!(what.contains("another store"), "{what}");
}

#[test]
fn a_tree_of_another_store_or_none_at_all_stops_the_start() {
    let (folder, log) = crashed_store(Flush::AtCommit);
    let (other, _) = crashed_store(Flush::AtCommit);
    let tree = folder.path().join("tree.redb");
    fs::copy(other.path().join("tree.redb"), &tree).unwrap();
    refused_start(folder.path());
    fs::remove_file(&tree).unwrap();
    let Refusal { path, what, .. } = refused_start(folder.path());
    assert_eq!(path, tree);
    assert!(what.contains("it is missing"), "{what}");
    assert!(log.exists(), "the evidence is left alone");
}

#[test]
fn a_first_start_that_was_cut_short_starts_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(&options(folder.path())).unwrap());
    fs::rename(
        folder.path().join("tree.redb"),
        folder.path().join("tree.redb.unfinished"),
    )
    .unwrap();
    let store = Store::open(&options(folder.path())).unwrap();
    assert_eq!(commits_in(&store), 0);
    let mut work = store.begin();
    work.put(SPACE, &0u32.to_be_bytes(), &[7; 100]);
    work.commit().unwrap().wait().unwrap();
    drop(store);
    assert_eq!(
        commits_in(&Store::open(&options(folder.path())).unwrap()),
        1
    );
}

#[test]
fn two_seconds_after_a_commit_its_record_can_not_be_lost_unnoticed() {
    let quiet = Duration::from_millis(2500);
    for damage in [Damage::Flip, Damage::Zeros] {
        let (folder, log) = crashed_after(Flush::AtCommit, quiet);
        edit(&log, |bytes| match damage {
            Damage::Flip => bytes[offset_of(COMMITS - 1) + 60] ^= 1,
            // The mark, too.
            Damage::Zeros => bytes[512..].fill(0),
        });
        assert_eq!(refused_start(folder.path()).path, log);
    }
}

enum Damage {
    Flip,
    Zeros,
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (folder, log) = crashed_store(Flush::AtCommit);
    edit(&log, |bytes| bytes[8] = 9);
    let error = Store::open(&options(folder.path())).err().unwrap();
    assert!(
        matches!(
            error,
            Error::NewerFormat {
                found: 9,
                supported: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_log_is_refused() {
    let (folder, log) = crashed_store(Flush::AtCommit);
    edit(&log, |bytes| bytes[..8].copy_from_slice(b"notalog!"));
    refused_start(folder.path());
    edit(&log, |bytes| bytes.truncate(10));
    refused_start(folder.path());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn any_damage_yields_a_prefix_of_the_history_or_an_error(
        flips in proptest::collection::vec((0usize..8192, 1u8..), 0..4),
        cut in proptest::option::of(0usize..8192),
        noise in proptest::option::of((0usize..8192, proptest::collection::vec(any::<u8>(), 1..300))),
    ) {
        let (folder, log) = crashed_store(Flush::EachSecond);
        edit(&log, |bytes| {
            for (at, mask) in &flips {
                bytes[*at] ^= mask;
            }
            if let Some((at, noise)) = &noise {
                let end = (at + noise.len()).min(bytes.len());
                bytes[*at..end].copy_from_slice(&noise[..end - at]);
            }
            if let Some(cut) = cut {
                bytes.truncate(cut);
            }
        });
        if let Ok(store) = Store::open(&options(folder.path())) {
            let found = commits_in(&store);
            drop(store);
            let again = Store::open(&options(folder.path())).unwrap();
            prop_assert_eq!(commits_in(&again), found);
        }
    }
}
