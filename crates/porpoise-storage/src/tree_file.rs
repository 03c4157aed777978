//! The file that redb keeps its pages in.
//!
//! redb asks for its file through [`redb::StorageBackend`]; this is that trait over a [`DiskFile`].
//! redb's own file locks are left unanswered: the folder's `LOCK` keeps other processes out before
//! the tree is opened.

use std::io;
use std::sync::Arc;

use crate::disk::DiskFile;

#[derive(Debug)]
pub(crate) struct TreeFile {
    file: Arc<dyn DiskFile>,
}

impl TreeFile {
    pub fn new(file: Arc<dyn DiskFile>) -> TreeFile {
        TreeFile { file }
    }
}

impl redb::StorageBackend for TreeFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}
