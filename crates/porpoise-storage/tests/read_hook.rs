//! What is told before a read waits for the disk.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{Disk, OpenMode, Options, OsDisk, SpaceId, Store};

mod hooked_disk;

const ONE: SpaceId = SpaceId(1);
const ROWS: u32 = 2000;

/// Holds nothing of the tree in memory, or all, and counts the reads that wait.
#[derive(Debug, Default)]
struct SlowDisk {
    is_cached: AtomicBool,
    waits: AtomicUsize,
}

impl Hooks for SlowDisk {
    fn waits_for_disk(&self, of: &OpenFile) -> bool {
        let waits = of.name.starts_with("tree.redb") && !self.is_cached.load(Ordering::SeqCst);
        self.waits.fetch_add(usize::from(waits), Ordering::SeqCst);
        waits
    }
}

#[test]
fn a_hook_is_called_before_each_read_that_waits_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(SlowDisk::default());
    let mut options = Options::path(folder.path());
    options.cache_bytes = 128 << 10;
    options.disk = Arc::new(HookedDisk(Arc::clone(&disk)));
    let store = Store::open(&options).unwrap();
    let mut work = store.begin();
    for row in 0..ROWS {
        let value = format!("row {row} {}", "x".repeat(400));
        work.put(ONE, &row.to_be_bytes(), value.as_bytes());
    }
    work.commit().unwrap().wait().unwrap();
    store.checkpoint().unwrap();
    let waits_before = disk.waits.load(Ordering::SeqCst);
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    store.set_read_hook(Some(Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    })));
    let read_all = || {
        let now = store.snapshot();
        for row in 0..ROWS {
            let begins = format!("row {row} ");
            let is_right = |value: &[u8]| value.starts_with(begins.as_bytes());
            let found = now.get(ONE, &row.to_be_bytes(), is_right).unwrap();
            assert_eq!(found, Some(true), "{row}");
        }
    };
    read_all();
    let waited = told.load(Ordering::SeqCst);
    assert!(waited > 10, "{waited}");
    assert_eq!(waited, disk.waits.load(Ordering::SeqCst) - waits_before);
    disk.is_cached.store(true, Ordering::SeqCst);
    read_all();
    assert_eq!(told.load(Ordering::SeqCst), waited);
    // Without a hook nobody is told.
    disk.is_cached.store(false, Ordering::SeqCst);
    store.set_read_hook(None);
    read_all();
    assert_eq!(told.load(Ordering::SeqCst), waited);
}

/// Holds nothing of the tree in memory, or all. Notes the pages that it was to begin with, and those
/// that were read.
#[derive(Debug, Default)]
struct ColdDisk {
    is_cached: AtomicBool,
    begun: Mutex<BTreeSet<u64>>,
    read: Mutex<BTreeSet<u64>>,
}

impl Hooks for ColdDisk {
    fn read_at(&self, of: &OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if of.name == "tree.redb" {
            self.read.lock().unwrap().insert(offset / 4096);
        }
        of.file.read_at(bytes, offset)
    }

    fn begin_reading(&self, of: &OpenFile, offset: u64, len: u64) {
        assert_eq!(of.name, "tree.redb");
        let pages = offset / 4096..(offset + len) / 4096;
        self.begun.lock().unwrap().extend(pages);
    }

    fn is_cached(&self, _of: &OpenFile, _offset: u64, _len: u64) -> bool {
        self.is_cached.load(Ordering::SeqCst)
    }
}

#[test]
fn a_checkpoint_has_the_disk_begin_with_the_leaves_that_it_writes_to() {
    const MANY: u32 = 30_000;
    for every in [1, 30, 300] {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(ColdDisk::default());
        let mut options = Options::path(folder.path());
        options.cache_bytes = 4 << 20;
        options.disk = Arc::new(HookedDisk(Arc::clone(&disk)));
        let write = |store: &Store, step: usize, byte: u8| {
            let mut work = store.begin();
            for row in (0..MANY).step_by(step) {
                work.put(ONE, &row.to_be_bytes(), &[byte; 200]);
            }
            work.commit().unwrap().wait().unwrap();
        };
        let store = Store::open(&options).unwrap();
        write(&store, 1, 1);
        store.checkpoint().unwrap();
        drop(store);
        let store = Store::open(&options).unwrap();
        disk.is_cached.store(true, Ordering::SeqCst);
        write(&store, every, 2);
        store.checkpoint().unwrap();
        drop(store);
        assert_eq!(disk.begun.lock().unwrap().len(), 0, "all is in memory");

        // The tree's own cache is empty now.
        let store = Store::open(&options).unwrap();
        disk.is_cached.store(false, Ordering::SeqCst);
        disk.read.lock().unwrap().clear();
        write(&store, every, 3);
        store.checkpoint().unwrap();
        let leaves = MANY as usize / 19;
        let written = leaves.min(MANY as usize / every);
        let begun = std::mem::take(&mut *disk.begun.lock().unwrap());
        let range = written * 9 / 10..written * 12 / 10 + 10;
        assert!(range.contains(&begun.len()), "{} of {written}", begun.len());
        let unread = begun.difference(&disk.read.lock().unwrap()).count();
        assert!(unread < 10, "{unread} of {}", begun.len());
        let rows = (0..MANY).map(|row| {
            (
                row,
                if (row as usize).is_multiple_of(every) {
                    3
                } else {
                    1
                },
            )
        });
        for (row, byte) in rows {
            let is_right = |value: &[u8]| value == [byte; 200];
            let found = store.snapshot().get(ONE, &row.to_be_bytes(), is_right);
            assert_eq!(found.unwrap(), Some(true), "{row}");
        }
    }
}

#[test]
fn a_file_tells_whether_the_system_holds_what_is_asked_for() {
    const LEN: usize = 1 << 20;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    let file = OsDisk.open(&path, OpenMode::Truncated).unwrap();
    let written: Vec<u8> = (0..LEN).map(|at| (at * 7 % 251) as u8).collect();
    file.write_all_at(&written, 0).unwrap();
    file.sync_all().unwrap();
    let told = Cell::new(0);
    let before_wait = || told.set(told.get() + 1);
    let mut bytes = vec![0; 8192];
    file.read_exact_telling(&mut bytes, 4096, &before_wait)
        .unwrap();
    assert_eq!(bytes, written[4096..][..8192]);
    assert_eq!(told.get(), 0);
    // Of what begins before its end and ends behind it, nothing is given.
    let end = LEN as u64 - 100;
    let error = file.read_exact_telling(&mut bytes, end, &before_wait);
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    // Where the system has let go of the pages, it says so, if it can.
    let let_go = std::fs::File::open(&path).unwrap();
    let _ = rustix::fs::fadvise(let_go.as_fd(), 0, None, rustix::fs::Advice::DontNeed);
    for at in [65536, 65536 + 4096, 65536] {
        file.read_exact_telling(&mut bytes, at as u64, &before_wait)
            .unwrap();
        assert_eq!(bytes, written[at..][..8192]);
    }
    told.set(0);
    file.read_exact_telling(&mut bytes, 65536, &before_wait)
        .unwrap();
    assert_eq!(told.get(), 0, "it has them now");
}
