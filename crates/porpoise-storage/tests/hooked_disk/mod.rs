//! A disk whose operations a test looks at, or lets fail: those of the operating system, but for what
//! the test's [`Hooks`] do instead.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use porpoise_storage::{Disk, DiskFile, DiskFolder, LockOutcome, Metadata, OpenMode, OsDisk};

/// What is done instead of the operating system's operations: by default, they are done.
pub trait Hooks: Debug + Send + Sync + 'static {
    fn read_at(&self, of: &OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        of.file.read_at(bytes, offset)
    }

    /// Whether a read that is to tell waits for the disk: if so, it tells, and is done.
    fn waits_for_disk(&self, _of: &OpenFile) -> bool {
        false
    }

    fn write_at(&self, of: &OpenFile, bytes: &[u8], offset: u64) -> io::Result<usize> {
        of.file.write_at(bytes, offset)
    }

    /// Asked before each sync of a file, which fails with this error.
    fn check_sync(&self, _of: &OpenFile) -> io::Result<()> {
        Ok(())
    }

    fn begin_reading(&self, of: &OpenFile, offset: u64, len: u64) {
        of.file.begin_reading(offset, len);
    }

    fn is_cached(&self, of: &OpenFile, offset: u64, len: u64) -> bool {
        of.file.is_cached(offset, len)
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        OsDisk.free_bytes(path)
    }
}

/// A file of the operating system.
#[derive(Debug)]
pub struct OpenFile {
    pub file: Arc<dyn DiskFile>,
    /// Without its folder.
    pub name: String,
}

#[derive(Debug)]
pub struct HookedDisk<H>(pub Arc<H>);

#[derive(Debug)]
struct HookedFile<H> {
    of: OpenFile,
    hooks: Arc<H>,
}

impl<H: Hooks> Disk for HookedDisk<H> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let name = path.file_name().unwrap_or_default();
        let of = OpenFile {
            file: OsDisk.open(path, mode)?,
            name: name.to_string_lossy().into_owned(),
        };
        let hooks = Arc::clone(&self.0);
        Ok(Arc::new(HookedFile { of, hooks }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        OsDisk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        OsDisk.metadata(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        OsDisk.create_folder(path)
    }

    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFolder>> {
        OsDisk.open_folder(folder)
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        self.0.free_bytes(path)
    }

    fn lock(&self, path: &Path) -> io::Result<LockOutcome> {
        OsDisk.lock(path)
    }
}

impl<H: Hooks> DiskFile for HookedFile<H> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.hooks.read_at(&self.of, bytes, offset)
    }

    fn read_exact_telling(
        &self,
        bytes: &mut [u8],
        offset: u64,
        before_wait: &dyn Fn(),
    ) -> io::Result<()> {
        if self.hooks.waits_for_disk(&self.of) {
            before_wait();
        }
        self.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.hooks.write_at(&self.of, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.of.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.of.file.len()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hooks.check_sync(&self.of)?;
        self.of.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.hooks.check_sync(&self.of)?;
        self.of.file.sync_all()
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.of.file.discard(offset, len)
    }

    fn begin_reading(&self, offset: u64, len: u64) {
        self.hooks.begin_reading(&self.of, offset, len);
    }

    fn is_cached(&self, offset: u64, len: u64) -> bool {
        self.hooks.is_cached(&self.of, offset, len)
    }

    fn begin_writing_back(&self) {
        self.of.file.begin_writing_back();
    }
}
