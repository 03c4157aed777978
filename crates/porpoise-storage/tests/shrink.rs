//! Giving room back to the disk: of the tree's file, and of the log.

use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use porpoise_storage::{Direction, Options, SpaceId, Store};

const SPACE: SpaceId = SpaceId(1);
const ROWS: u32 = 40_000;

fn fill(store: &Store, rows: impl Iterator<Item = u32>, byte: u8) {
    let rows: Vec<u32> = rows.collect();
    for part in rows.chunks(2_000) {
        let mut work = store.begin();
        for row in part {
            work.put(SPACE, &row.to_be_bytes(), &[byte; 200]);
        }
        work.commit().unwrap().wait().unwrap();
    }
}

/// What the files of a folder whose names begin so take of the disk, in bytes.
fn room(folder: &Path, name: &str) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = files.filter(|file| file.file_name().to_str().unwrap().starts_with(name));
    files
        .map(|file| file.metadata().unwrap().blocks() * 512)
        .sum()
}

fn check(store: &Store, rows: impl Iterator<Item = u32>, byte: u8) {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut cursor = store
        .snapshot()
        .range(SPACE, all, Direction::Forward)
        .unwrap();
    for row in rows {
        let expected = (&row.to_be_bytes()[..], &[byte; 200][..]);
        assert_eq!(cursor.next().unwrap(), Some(expected));
    }
    assert_eq!(cursor.next().unwrap(), None);
}

#[test]
fn room_of_deleted_rows_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    options.checkpoint_version_bytes = 1 << 20;
    let store = Store::open(&options).unwrap();
    let mut work = store.begin();
    work.create_space(SPACE);
    work.commit().unwrap().wait().unwrap();
    fill(&store, 0..ROWS, 1);
    store.checkpoint().unwrap();
    let before = room(folder.path(), "tree");
    // Every leaf keeps a few rows, so none is free before they are merged.
    let mut work = store.begin();
    for row in (0..ROWS).filter(|row| row % 8 != 0) {
        work.delete(SPACE, &row.to_be_bytes());
    }
    work.commit().unwrap().wait().unwrap();
    let view = store.snapshot();
    store.shrink(|| true).unwrap();
    drop(view);
    store.shrink(|| true).unwrap();
    let after = room(folder.path(), "tree");
    assert!(after < before / 3, "{after} of {before} bytes");
    let left = || (0..ROWS).filter(|row| row % 8 == 0);
    check(&store, left(), 1);
    // Holes are filled again.
    fill(&store, 0..ROWS, 2);
    store.checkpoint().unwrap();
    check(&store, 0..ROWS, 2);
    store.close().unwrap();
    let store = Store::open(&options).unwrap();
    check(&store, 0..ROWS, 2);
    assert!(store.verify(SPACE, &|| true).unwrap().damage.is_empty());
}

#[test]
fn a_snapshot_reads_on_while_pages_move() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::path(folder.path());
    // Nearly nothing is cached.
    options.cache_bytes = 256 << 10;
    options.checkpoint_version_bytes = 1 << 20;
    let store = Store::open(&options).unwrap();
    fill(&store, 0..ROWS, 1);
    fill(&store, (0..ROWS).rev(), 2);
    store.checkpoint().unwrap();
    let view = store.snapshot();
    let read = |from: u32| {
        let from = from.to_be_bytes();
        let bounds = (Bound::Included(&from[..]), Bound::Unbounded);
        let mut cursor = view.range(SPACE, bounds, Direction::Forward).unwrap();
        let mut rows = 0;
        while let Some((_, value)) = cursor.next().unwrap() {
            assert_eq!(value, [2; 200]);
            rows += 1;
        }
        rows
    };
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| (0..6).map(read).collect::<Vec<_>>());
        fill(&store, (0..ROWS).step_by(3), 3);
        store.shrink(|| true).unwrap();
        let expected: Vec<u32> = (0..6).map(|round| ROWS - round).collect();
        assert_eq!(reader.join().unwrap(), expected);
    });
    store.shrink(|| true).unwrap();
    assert_eq!(read(0), ROWS);
}

#[test]
fn the_log_of_a_large_transaction_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        log_segment_bytes: 256 << 10,
        ..Options::path(folder.path())
    };
    let store = Store::open(&options).unwrap();
    let mut work = store.begin();
    for row in 0..ROWS {
        work.put(SPACE, &row.to_be_bytes(), &[1; 200]);
    }
    work.commit().unwrap().wait().unwrap();
    assert!(room(folder.path(), "log") > u64::from(ROWS) * 200);
    store.checkpoint().unwrap();
    let log = room(folder.path(), "log");
    assert!(log <= 3 * (256 << 10), "{log} bytes of log");
    drop(store);
    let store = Store::open(&options).unwrap();
    check(&store, 0..ROWS, 1);
}
