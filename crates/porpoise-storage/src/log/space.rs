//! Whether the disk has room for the log's next segments.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::segment::LogSegment;
use crate::disk::Disk;
use crate::{Error, Result};

/// What a file of zeros may take beside its length.
pub(super) const FILE_OVERHEAD_BYTES: u64 = 256 << 10;

/// Up to which position there are files for the log. Read without a lock: a commit that wants a
/// place in the log must not wait for the thread that syncs it.
pub(crate) struct LogSpace {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    segment_bytes: u64,
    made: AtomicU64,
}

impl LogSpace {
    pub(super) fn new(disk: &Arc<dyn Disk>, folder: &Path, segment_bytes: u64) -> LogSpace {
        LogSpace {
            disk: Arc::clone(disk),
            folder: folder.to_path_buf(),
            segment_bytes,
            made: AtomicU64::new(0),
        }
    }

    /// How much room the next segments may take.
    pub fn reserve(&self) -> u64 {
        2 * (self.segment_bytes + FILE_OVERHEAD_BYTES)
    }

    /// Notes that there are files up to a position.
    pub(super) fn note_made(&self, up_to: u64) {
        self.made.store(up_to, Ordering::Release);
    }

    /// Fails if the disk has no room for the segments that are still to be made, up to this one. A
    /// commit that is refused here has written nothing; a disk that turns out to be full while a
    /// batch is written ends all writing for a while.
    pub fn check(&self, up_to: LogSegment) -> Result<()> {
        let needed = up_to
            .end()
            .saturating_sub(self.made.load(Ordering::Acquire));
        let free = || self.disk.free_bytes(&self.folder);
        if needed == 0 || free().is_none_or(|free| free >= needed + FILE_OVERHEAD_BYTES) {
            return Ok(());
        }
        let full = io::Error::from(io::ErrorKind::StorageFull);
        Err(Error::io("make room for the log in", &self.folder)(full))
    }
}
