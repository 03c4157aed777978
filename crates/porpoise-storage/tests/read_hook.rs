//! What is told before a read waits for the disk.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{DiskFile, Options, SpaceId, Store};

mod hooked_disk;

const ONE: SpaceId = SpaceId(1);
const ROWS: u32 = 2000;

/// Holds nothing of the tree in memory, or all, and counts the reads that would have waited.
#[derive(Debug, Default)]
struct SlowDisk {
    is_cached: AtomicBool,
    refused: AtomicUsize,
}

impl Hooks for SlowDisk {
    fn read_exact_if_cached(
        &self,
        of: &OpenFile,
        bytes: &mut [u8],
        offset: u64,
    ) -> Option<io::Result<bool>> {
        if !of.name.starts_with("tree.redb") {
            return None;
        }
        if self.is_cached.load(Ordering::SeqCst) {
            return Some(of.file.read_exact_at(bytes, offset).map(|()| true));
        }
        self.refused.fetch_add(1, Ordering::SeqCst);
        // What was read of it is of no use.
        let half = bytes.len() / 2;
        bytes[..half].fill(0xA5);
        Some(Ok(false))
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
    assert_eq!(waited, disk.refused.load(Ordering::SeqCst));
    disk.is_cached.store(true, Ordering::SeqCst);
    read_all();
    assert_eq!(told.load(Ordering::SeqCst), waited);
    // Without a hook nobody is asked.
    disk.is_cached.store(false, Ordering::SeqCst);
    store.set_read_hook(None);
    read_all();
    assert_eq!(disk.refused.load(Ordering::SeqCst), waited);
}

#[test]
fn a_file_tells_whether_the_system_holds_what_is_asked_for() {
    const LEN: usize = 1 << 20;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = std::fs::File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(folder.path().join("file"))
        .unwrap();
    let written: Vec<u8> = (0..LEN).map(|at| (at * 7 % 251) as u8).collect();
    file.write_all_at(&written, 0).unwrap();
    DiskFile::sync_all(&file).unwrap();
    let mut bytes = vec![0; 8192];
    assert!(file.read_exact_if_cached(&mut bytes, 4096).unwrap());
    assert_eq!(bytes, written[4096..][..8192]);
    // Behind its end there is nothing to wait for, and the read that follows tells.
    let end = LEN as u64 - 100;
    if file
        .read_exact_if_cached(&mut bytes, end)
        .is_ok_and(|is_read| is_read)
    {
        panic!("there are 100 bytes");
    }
    let error = DiskFile::read_exact_at(&file, &mut bytes, end).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    // Where the system has let go of the pages, it says so, reads them, and has them then.
    let _ = rustix::fs::fadvise(file.as_fd(), 0, None, rustix::fs::Advice::DontNeed);
    let begun = Instant::now();
    while !file.read_exact_if_cached(&mut bytes, 65536).unwrap() {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing is read");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(bytes, written[65536..][..8192]);
}
