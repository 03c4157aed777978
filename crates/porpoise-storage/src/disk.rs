//! The file operations that storage is built on, as traits.
//!
//! Log, tree and lock file reach the operating system through a [`Disk`] and nothing else, hence a
//! test can put a disk of its own below a store: one that loses what was not synced, writes half,
//! or fails. [`OsDisk`] is the real one, and the default of [`Options`](crate::Options).
//!
//! What storage may expect of a disk, and what it may not:
//!
//! | operation | after it returned | on the disk for certain |
//! | --- | --- | --- |
//! | `write_at`, `set_len`, `discard` | seen by every reader | after `sync_data` or `sync_all` of that file |
//! | `open` that creates, `rename`, `remove`, `create_folder` | seen by everybody | after `sync_folder` of the folder that holds the name |
//!
//! Until then a power cut may keep any part of it: single sectors of a write, a length without the
//! bytes, one rename of two. A file's sync says nothing about its name, and a folder's nothing
//! about the files' bytes. A sync that failed may have dropped what it was to write, and the next
//! one then succeeds without it: nothing in a file can be relied on after its sync has failed.

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use crate::direct_read::{DirectReads, begin_reading, is_cached};

/// A file system. Errors are the system's.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, replacing the file that had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name. The file stays for those who have it open.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in no order.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// What lies at a path; `None` if nothing does.
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>>;

    /// Makes a folder in an existing one.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Opens a folder, to sync it later without another descriptor.
    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFolder>>;

    /// Waits until the names in a folder are on disk as they are now.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.open_folder(folder)?.sync()
    }

    /// The free room on the disk of a folder or file, in bytes; `None` if it can't be told.
    fn free_bytes(&self, path: &Path) -> Option<u64>;

    /// Makes this process the only user of what the file at `path` stands for.
    fn lock(&self, path: &Path) -> io::Result<LockOutcome>;
}

/// A folder that is open.
pub trait DiskFolder: Debug + Send + Sync + 'static {
    /// Waits until the names in it are on disk as they are now.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is open for reading and writing.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// One read of the system: how many bytes it gave; 0 at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// One write of the system: how many bytes it took.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Waits until the bytes, and the length that it takes to read them, are on disk.
    fn sync_data(&self) -> io::Result<()>;

    /// Waits until all of the file is on disk, but not its name.
    fn sync_all(&self) -> io::Result<()>;

    /// Gives the room of a part of the file back, as far as the file system can. It may hold zeros
    /// then, or what it held; the file's length stays.
    fn discard(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// Has the system begin to read a part of the file, without waiting for it: a read that follows
    /// has less to wait for. A hint that tells of no failure.
    fn begin_reading(&self, _offset: u64, _len: u64) {}

    /// Whether the system holds a part of the file in memory. So it is said, too, where it doesn't tell.
    fn is_cached(&self, _offset: u64, _len: u64) -> bool {
        true
    }

    /// Has the system begin to write what it holds of the file to the disk, without waiting for it:
    /// a later sync has less to wait for. A hint that tells of no failure.
    fn begin_writing_back(&self) {}

    /// Whether the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Fills the buffer, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.read_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    offset += read as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// As [`read_exact_at`](DiskFile::read_exact_at); calls `before_wait` first if it waits for the
    /// disk. Where nobody can tell, it isn't called.
    fn read_exact_telling(
        &self,
        bytes: &mut [u8],
        offset: u64,
        _before_wait: &dyn Fn(),
    ) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    /// Writes all bytes, or fails with some of them written.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The whole file.
    fn read_all(&self) -> io::Result<Vec<u8>> {
        let len = self.len()?;
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// What an open does about a file that exists, or doesn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file is created, or truncated if it exists.
    Truncated,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// A file.
    File {
        /// Its length in bytes.
        len: u64,
    },
    /// A folder.
    Folder,
}

/// The outcome of a try to lock a folder.
#[derive(Debug)]
pub enum LockOutcome {
    /// Locked by this process until this is dropped.
    Held(Box<dyn Any + Send + Sync>),
    /// Another process has it.
    InUse {
        /// Its id, if it has left one.
        pid: Option<u32>,
    },
}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let is_made = mode == OpenMode::Truncated;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.create(is_made).truncate(is_made);
        Ok(Arc::new(OsFile {
            file: options.open(path)?,
            #[cfg(target_os = "linux")]
            direct_reads: DirectReads::default(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Some(Metadata::Folder)),
            Ok(found) => Ok(Some(Metadata::File { len: found.len() })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn open_folder(&self, folder: &Path) -> io::Result<Arc<dyn DiskFolder>> {
        Ok(Arc::new(File::open(folder)?))
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn lock(&self, path: &Path) -> io::Result<LockOutcome> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let pid = holder.trim().parse().ok();
                return Ok(LockOutcome::InUse { pid });
            }
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
        // The process's id is for people to read; the lock itself lasts as long as the file is
        // open.
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(LockOutcome::Held(Box::new(file)))
    }
}

impl DiskFolder for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A file of the operating system.
#[derive(Debug)]
struct OsFile {
    file: File,
    #[cfg(target_os = "linux")]
    direct_reads: DirectReads,
}

impl DiskFile for OsFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, hole, offset, len) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn begin_reading(&self, offset: u64, len: u64) {
        begin_reading(&self.file, offset, len);
    }

    #[cfg(target_os = "linux")]
    fn is_cached(&self, offset: u64, len: u64) -> bool {
        is_cached(&self.file, offset, len)
    }

    #[cfg(target_os = "linux")]
    fn begin_writing_back(&self) {
        crate::write_back::begin(&self.file);
    }

    #[cfg(target_os = "linux")]
    fn read_exact_telling(
        &self,
        bytes: &mut [u8],
        offset: u64,
        before_wait: &dyn Fn(),
    ) -> io::Result<()> {
        self.direct_reads
            .read_exact(&self.file, bytes, offset, before_wait)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
