//! The file that redb keeps its pages in.
//!
//! redb asks for its file through [`redb::StorageBackend`]; this is that trait over a [`DiskFile`].
//! redb's own file locks are left unanswered: the folder's `LOCK` keeps other processes out before
//! the tree is opened.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::DiskFile;

#[derive(Debug)]
pub(crate) struct TreeFile {
    file: Arc<dyn DiskFile>,
    /// Set when anything has failed: redb then refuses all that comes after.
    has_failed: Arc<AtomicBool>,
}

impl TreeFile {
    pub fn new(file: Arc<dyn DiskFile>, has_failed: Arc<AtomicBool>) -> TreeFile {
        TreeFile { file, has_failed }
    }

    fn watch<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.is_err() {
            self.has_failed.store(true, Ordering::Release);
        }
        outcome
    }
}

impl redb::StorageBackend for TreeFile {
    fn len(&self) -> io::Result<u64> {
        self.watch(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.watch(self.file.read_exact_at(out, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.watch(self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watch(self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.watch(self.file.write_all_at(data, offset))
    }
}
