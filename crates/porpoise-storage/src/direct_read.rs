//! Reads that take no room in the system's cache of pages once that has none to spare.
//!
//! What is read of the tree stays in memory as blocks ([`blocks`](crate::blocks)). A page that the
//! read leaves in the system's cache has the same rows a second time. While memory is plentiful that
//! costs nothing, and helps after the next start. Where memory is short, pages that were just read
//! push out those whose rows no block has, and half of the memory does nothing.
//!
//! Memory is short where the system has had a page before and let it go, as `cachestat(2)` tells (Linux
//! 6.5). Such a page is read with `O_DIRECT`, past the system's cache, which keeps what it has: other
//! rows than the blocks. One of [`READS_PER_CACHED`] is read through it all the same, so that what it
//! has follows what is asked for.
//!
//! Each such read is waited for. Where a thread reads page after page, as redb does that frees a table's
//! pages, those behind are read through the system's cache ahead of it.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::page_checksums::PAGE_BYTES;

/// Of the pages that the system has let go of before, one of so many is read into its cache again.
const READS_PER_CACHED: usize = 16;

/// More at once is read through the system's cache: the read of a leaf is short.
const DIRECT_BYTES_MAX: usize = 16 * PAGE_BYTES;

/// Reads that follow each other in the file, until those behind them are expected; and for how many
/// pages that is done at a time.
const SEQUENTIAL_MIN: u32 = 8;
const PAGES_AHEAD: u32 = 64;

/// `cachestat` has this number on every architecture but Alpha.
const SYS_CACHESTAT: libc::c_long = 451;

/// A file's descriptor for reads past the system's cache, opened when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct DirectReads {
    /// `None`: the file system has no such reads.
    file: OnceLock<Option<File>>,
    is_refused: AtomicBool,
    /// Counts the reads of pages that the system has let go of.
    reads: AtomicUsize,
}

/// What the system's cache has of a part of a file, in pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct CachedPages {
    cached: u64,
    dirty: u64,
    under_writeback: u64,
    /// It had them, and let them go.
    evicted: u64,
    recently_evicted: u64,
}

/// A buffer as direct reads want it.
#[repr(C, align(4096))]
struct Aligned([u8; DIRECT_BYTES_MAX]);

thread_local! {
    static ALIGNED: RefCell<Option<Box<Aligned>>> = const { RefCell::new(None) };
    /// Where the thread's last read ended, and how many before it began where another ended.
    static SEQUENCE: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

impl DirectReads {
    /// Fills the buffer; calls `before_wait` first if that takes a wait for the disk.
    pub fn read_exact(
        &self,
        file: &File,
        bytes: &mut [u8],
        offset: u64,
        before_wait: &dyn Fn(),
    ) -> io::Result<()> {
        read_ahead(file, offset, bytes.len());
        if self.is_due(file, bytes.len(), offset) {
            before_wait();
            return match self.read_directly(file, bytes, offset) {
                true => Ok(()),
                // Or it tells what is wrong.
                false => file.read_exact_at(bytes, offset),
            };
        }
        let mut parts = [io::IoSliceMut::new(bytes)];
        match preadv2(file, &mut parts, offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == bytes.len() => return Ok(()),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => before_wait(),
            // The file system doesn't tell, or the call is forbidden here.
            Err(_) => {}
        }
        file.read_exact_at(bytes, offset)
    }

    /// Whether the read is to go past the system's cache.
    fn is_due(&self, file: &File, len: usize, offset: u64) -> bool {
        let is_possible = len <= DIRECT_BYTES_MAX
            && len.is_multiple_of(PAGE_BYTES)
            && offset.is_multiple_of(PAGE_BYTES as u64)
            && !self.is_refused.load(Ordering::Relaxed);
        is_possible
            && cached_pages(file, offset, len as u64)
                .is_some_and(|found| self.is_due_for(found, len / PAGE_BYTES))
    }

    fn is_due_for(&self, found: CachedPages, pages: usize) -> bool {
        found.cached < pages as u64
            && found.evicted > 0
            && !self
                .reads
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(READS_PER_CACHED)
    }

    /// Reads past the system's cache; what is in there and not yet on disk is seen. False if that
    /// wasn't possible.
    fn read_directly(&self, file: &File, bytes: &mut [u8], offset: u64) -> bool {
        let direct = self.file.get_or_init(|| {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_DIRECT);
            options.open(path).ok()
        });
        let Some(direct) = direct else {
            self.is_refused.store(true, Ordering::Relaxed);
            return false;
        };
        ALIGNED.with_borrow_mut(|aligned| {
            let aligned = aligned.get_or_insert_with(|| Box::new(Aligned([0; DIRECT_BYTES_MAX])));
            let aligned = &mut aligned.0[..bytes.len()];
            let mut parts = [io::IoSliceMut::new(aligned)];
            // The read waits for the disk all the same, but not for somebody who writes to the file.
            match preadv2(direct, &mut parts, offset, ReadWriteFlags::NOWAIT) {
                Ok(read) if read == bytes.len() => {
                    bytes.copy_from_slice(aligned);
                    true
                }
                Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                    self.is_refused.store(true, Ordering::Relaxed);
                    false
                }
                Ok(_) | Err(_) => false,
            }
        })
    }
}

/// Has the system begin with what is behind a read, if the thread goes on so.
fn read_ahead(file: &File, offset: u64, len: usize) {
    let end = offset + len as u64;
    let count = SEQUENCE.with(|sequence| {
        let (last_end, count) = sequence.get();
        let count = if last_end == offset { count + 1 } else { 0 };
        sequence.set((end, count));
        count
    });
    let is_time = count
        .checked_sub(SEQUENTIAL_MIN)
        .is_some_and(|more| more.is_multiple_of(PAGES_AHEAD));
    // The next time there are half of these left.
    let ahead = 2 * u64::from(PAGES_AHEAD) * PAGE_BYTES as u64;
    if is_time && !is_cached(file, end, ahead) {
        begin_reading(file, end, ahead);
    }
}

/// Has the system begin to read a part of a file.
pub(crate) fn begin_reading(file: &File, offset: u64, len: u64) {
    use rustix::fs::Advice;
    // A hint: where it isn't taken, the read that follows is as slow as ever.
    let len = std::num::NonZero::new(len);
    let _ = rustix::fs::fadvise(file, offset, len, Advice::WillNeed);
}

/// Whether the system's cache has a part of a file. So it is said, too, where the system doesn't tell.
pub(crate) fn is_cached(file: &File, offset: u64, len: u64) -> bool {
    let pages = len / PAGE_BYTES as u64;
    cached_pages(file, offset, len).is_none_or(|found| found.cached >= pages)
}

/// `None` where the system doesn't tell.
fn cached_pages(file: &File, offset: u64, len: u64) -> Option<CachedPages> {
    static IS_UNKNOWN: AtomicBool = AtomicBool::new(false);
    if IS_UNKNOWN.load(Ordering::Relaxed) {
        return None;
    }
    #[repr(C)]
    struct Range {
        offset: u64,
        len: u64,
    }
    let range = Range { offset, len };
    let mut found = CachedPages::default();
    let flags = 0u32;
    // SAFETY: both structures have the layout of the system's and live until the call returns; the
    // file is open as long as it is borrowed.
    let told = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut found,
            flags,
        )
    };
    if told != 0 {
        IS_UNKNOWN.store(true, Ordering::Relaxed);
        return None;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(pages: usize) -> (File, Vec<u8>) {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..pages * PAGE_BYTES)
            .map(|at| (at * 7 % 251) as u8)
            .collect();
        file.write_all_at(&bytes, 0).unwrap();
        (file, bytes)
    }

    #[test]
    fn pages_that_the_system_let_go_of_are_read_past_its_cache_but_for_a_few() {
        let reads = DirectReads::default();
        let found = |cached, evicted| CachedPages {
            cached,
            evicted,
            ..CachedPages::default()
        };
        for _ in 0..100 {
            assert!(!reads.is_due_for(found(1, 0), 1));
            assert!(!reads.is_due_for(found(0, 0), 1));
            assert!(!reads.is_due_for(found(2, 0), 2));
        }
        let direct = (0..1600).filter(|_| reads.is_due_for(found(0, 1), 1));
        assert_eq!(direct.count(), 1500);
        let direct = (0..1600).filter(|_| reads.is_due_for(found(1, 1), 2));
        assert_eq!(direct.count(), 1500);
    }

    #[test]
    fn a_direct_read_sees_what_is_not_yet_on_disk() {
        let (file, mut written) = file_of(64);
        file.sync_all().unwrap();
        let reads = DirectReads::default();
        written[5 * PAGE_BYTES..6 * PAGE_BYTES].fill(0xA5);
        file.write_all_at(
            &written[5 * PAGE_BYTES..6 * PAGE_BYTES],
            5 * PAGE_BYTES as u64,
        )
        .unwrap();
        for pages in [1, 2, 16] {
            let mut bytes = vec![0; pages * PAGE_BYTES];
            for first in [0, 4, 5, 40] {
                let at = first * PAGE_BYTES;
                // Where there is no such read, or somebody writes, it says so and another follows.
                if reads.read_directly(&file, &mut bytes, at as u64) {
                    assert!(bytes == written[at..][..bytes.len()], "{first} {pages}");
                }
            }
        }
        let told = std::cell::Cell::new(0);
        let before_wait = || told.set(told.get() + 1);
        let mut bytes = vec![0; PAGE_BYTES];
        let end = written.len() as u64;
        let error = reads.read_exact(&file, &mut bytes, end, &before_wait);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(!reads.read_directly(&file, &mut bytes, end));
        assert!(!reads.is_refused.load(Ordering::Relaxed) || reads.file.get().unwrap().is_none());
    }

    #[test]
    fn what_is_behind_reads_that_follow_each_other_is_begun_with() {
        // Where temporary files are in memory, the system lets go of nothing.
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let written: Vec<u8> = (0..512 * PAGE_BYTES).map(|at| (at % 249) as u8).collect();
        file.write_all_at(&written, 0).unwrap();
        file.sync_all().unwrap();
        let let_go = || {
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            let found = cached_pages(&file, 0, written.len() as u64);
            found.is_some_and(|found| found.cached == 0)
        };
        let reads = DirectReads::default();
        let read = |page: usize| {
            let mut bytes = vec![0; PAGE_BYTES];
            let at = page * PAGE_BYTES;
            reads
                .read_exact(&file, &mut bytes, at as u64, &|| ())
                .unwrap();
            assert!(bytes == written[at..][..PAGE_BYTES], "{page}");
        };
        let is_begun = |page: usize| is_cached(&file, (page * PAGE_BYTES) as u64, 4096);
        if !let_go() {
            eprintln!("the system lets go of no page here");
            return;
        }
        // Every other page, and backward, are no sequence.
        (0..100).step_by(2).for_each(read);
        (200..300).rev().for_each(read);
        assert!((110..190).any(|page| !is_begun(page)));
        let_go();
        (300..310).for_each(read);
        assert!((310..430).all(is_begun));
        (310..400).for_each(read);
        assert!((400..490).all(is_begun));
        (400..512).for_each(read);
    }

    #[test]
    fn the_system_tells_what_its_cache_has() {
        let (file, written) = file_of(8);
        let Some(found) = cached_pages(&file, 0, written.len() as u64) else {
            return;
        };
        assert_eq!((found.cached, found.evicted), (8, 0));
    }
}
