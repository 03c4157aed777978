//! Transactions that go on in a file, on a disk with little room, or one that fails.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{Background, Options, SpaceId, Store, Transaction, Work, salvage};

mod hooked_disk;

const SPACE: SpaceId = SpaceId(1);
const ROWS: u32 = 2000;

/// What a disk is told to do.
#[derive(Debug)]
struct Orders {
    free: AtomicU64,
    /// Writes to spill files fail behind this length.
    spill_end: AtomicU64,
    fails_log_syncs: AtomicBool,
}

impl Hooks for Orders {
    fn write_at(&self, of: &OpenFile, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let end = self.spill_end.load(Ordering::SeqCst);
        if !of.name.starts_with("spill-") || offset + bytes.len() as u64 <= end {
            return of.file.write_at(bytes, offset);
        }
        match end.checked_sub(offset).filter(|room| *room > 0) {
            Some(room) => of.file.write_at(&bytes[..room as usize], offset),
            None => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn check_sync(&self, of: &OpenFile) -> io::Result<()> {
        let fails = self.fails_log_syncs.load(Ordering::SeqCst);
        match fails && of.name.starts_with("log") {
            true => Err(io::Error::from_raw_os_error(5)),
            false => Ok(()),
        }
    }

    fn free_bytes(&self, _path: &Path) -> Option<u64> {
        Some(self.free.load(Ordering::SeqCst))
    }
}

fn store(folder: &Path) -> (Store, Arc<Orders>) {
    let orders = Arc::new(Orders {
        free: AtomicU64::new(1 << 40),
        spill_end: AtomicU64::new(u64::MAX),
        fails_log_syncs: AtomicBool::new(false),
    });
    let mut options = Options::path(folder);
    options.background = Background::Manual;
    options.checkpoint_version_bytes = 16 << 10;
    options.spill_bytes = 200 << 10;
    options.log_segment_bytes = 1 << 20;
    options.disk = Arc::new(HookedDisk(Arc::clone(&orders)));
    let store = Store::open(&options).unwrap();
    if store.snapshot().ts().0 == 0 {
        let space = store.allocate_space();
        assert_eq!(space, SPACE);
        let mut work = store.begin();
        work.create_space(space);
        work.commit().unwrap().wait().unwrap();
    }
    (store, orders)
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

fn put_all(work: &mut Transaction, byte: u8) {
    for row in 0..ROWS {
        work.put(SPACE, &key(row), &[byte; 400]);
    }
}

fn put(store: &Store, row: u32, value: &[u8]) {
    let mut work = store.begin();
    work.put(SPACE, &key(row), value);
    work.commit().unwrap().wait().unwrap();
}

fn value(store: &Store, row: u32) -> Option<Vec<u8>> {
    let now = store.snapshot();
    now.get(SPACE, &key(row), <[u8]>::to_vec).unwrap()
}

fn spill_files(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap();
    let paths = names.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().contains("spill-"))
        .collect()
}

#[test]
fn a_transaction_leaves_room_for_the_log_and_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (store, orders) = store(folder.path());
    // A file of all that it writes would fit.
    orders.free.store(3 << 20, Ordering::SeqCst);
    let mut work = store.begin();
    put_all(&mut work, 1);
    assert!(work.take_spill_failure().unwrap().is_disk_full());
    assert!(!work.has_spilled());
    assert!(spill_files(folder.path()).is_empty());
    put(&store, ROWS, b"beside");
    drop(work);
    orders.free.store(1 << 40, Ordering::SeqCst);
    let mut work = store.begin();
    put_all(&mut work, 2);
    assert!(work.take_spill_failure().is_none() && work.has_spilled());
    work.commit().unwrap().wait().unwrap();
    // Much less than twice what there is to merge, and more than a slice of it.
    orders.free.store(3 << 19, Ordering::SeqCst);
    store.checkpoint().unwrap();
    assert_eq!(value(&store, 77), Some(vec![2; 400]));
    assert!(spill_files(folder.path()).is_empty());
}

#[test]
fn a_run_that_could_not_be_written_takes_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let (store, orders) = store(folder.path());
    let mut work = store.begin();
    put_all(&mut work, 1);
    assert!(work.has_spilled());
    let file = spill_files(folder.path()).remove(0);
    let before = fs::metadata(&file).unwrap().len();
    orders.spill_end.store(before + 5000, Ordering::SeqCst);
    let statement = work.savepoint();
    put_all(&mut work, 2);
    assert!(work.take_spill_failure().unwrap().is_disk_full());
    assert_eq!(fs::metadata(&file).unwrap().len(), before);
    orders.spill_end.store(u64::MAX, Ordering::SeqCst);
    work.rollback_to(statement);
    work.commit().unwrap().wait().unwrap();
    assert_eq!(value(&store, 77), Some(vec![1; 400]));
}

#[test]
fn the_last_run_has_no_version_that_only_a_savepoint_could_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = store(folder.path());
    let mut work = store.begin();
    put_all(&mut work, 1);
    let len = || fs::metadata(&spill_files(folder.path())[0]).unwrap().len();
    let before = len();
    for row in (0..ROWS).cycle() {
        work.put(SPACE, &key(row), &[2; 400]);
        if len() > before {
            break;
        }
    }
    // Nothing is in memory now.
    let before = len();
    for byte in 0..200u8 {
        let _ = work.savepoint();
        work.put(SPACE, &key(5), &[byte; 400]);
    }
    assert_eq!(len(), before);
    work.commit().unwrap().wait().unwrap();
    let rest = len() - before;
    assert!(rest < 2000, "{rest} bytes");
    assert_eq!(value(&store, 5), Some(vec![199; 400]));
}

#[test]
fn the_file_of_a_commit_that_failed_is_gone_when_the_log_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, orders) = store(folder.path());
    put(&store, 5, b"first");
    let mut work = store.begin();
    put_all(&mut work, 1);
    orders.fails_log_syncs.store(true, Ordering::SeqCst);
    let commit = work.commit().unwrap();
    assert!(commit.wait().is_err());
    assert_eq!(spill_files(folder.path()).len(), 1);
    drop(commit);
    assert!(store.work(Work::Recover).is_err());
    assert_eq!(spill_files(folder.path()).len(), 1);
    orders.fails_log_syncs.store(false, Ordering::SeqCst);
    store.work(Work::Recover).unwrap();
    assert!(spill_files(folder.path()).is_empty());
    put(&store, 6, b"second");
    drop(store);
    let (store, _) = self::store(folder.path());
    assert_eq!(value(&store, 5), Some(b"first".to_vec()));
    assert_eq!(value(&store, 6), Some(b"second".to_vec()));
    assert_eq!(value(&store, 77), None);
}

/// The log has records from before a commit whose file is gone, as the tree has it, and the tree
/// doesn't tell how far it has the log.
#[test]
fn rows_from_before_a_commit_that_the_tree_has_are_not_saved_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = store(folder.path());
    put(&store, 5, b"older");
    let mut work = store.begin();
    put_all(&mut work, 1);
    work.commit().unwrap().wait().unwrap();
    let number = spill_files(folder.path()).remove(0);
    store.checkpoint().unwrap();
    put(&store, 6, b"newer");
    drop(store);
    // The name of a file isn't used again while the log has it.
    let (store, _) = self::store(folder.path());
    assert!(spill_files(folder.path()).is_empty());
    let mut work = store.begin();
    put_all(&mut work, 2);
    assert!(spill_files(folder.path())[0] > number);
    drop(work);
    drop(store);
    let tree = folder.path().join("tree.redb");
    let mut bytes = fs::read(&tree).unwrap();
    let mut pages = 0;
    for page in bytes.chunks_mut(4096) {
        let name = b"format_version";
        if let Some(at) = page.windows(name.len()).position(|found| found == name) {
            page[at] ^= 1;
            pages += 1;
        }
    }
    assert!(pages > 0);
    fs::write(&tree, bytes).unwrap();
    let into = tempfile::tempdir().unwrap();
    let saved = salvage(folder.path(), &Options::path(into.path()), |_| ()).unwrap();
    assert!(!saved.is_whole());
    let losses = saved.losses.join("\n");
    assert!(losses.contains("all before it"), "{losses}");
    assert_eq!(saved.commits_from_log, 1);
    let store = Store::open(&Options::path(into.path())).unwrap();
    assert_eq!(value(&store, 5), Some(vec![1; 400]));
    assert_eq!(value(&store, 6), Some(b"newer".to_vec()));
}

#[test]
fn closing_leaves_what_takes_long_to_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = store(folder.path());
    let mut work = store.begin();
    put_all(&mut work, 1);
    work.commit().unwrap().wait().unwrap();
    // More than a checkpoint writes at a time.
    store.close().unwrap();
    assert_eq!(spill_files(folder.path()).len(), 1);
    drop(store);
    let (store, _) = self::store(folder.path());
    let check = |store: &Store| {
        for row in 0..ROWS {
            assert_eq!(value(store, row), Some(vec![1; 400]));
        }
    };
    check(&store);
    store.checkpoint().unwrap();
    assert!(spill_files(folder.path()).is_empty());
    check(&store);
    store.close().unwrap();
    drop(store);
    check(&self::store(folder.path()).0);
}
