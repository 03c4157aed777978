//! The files that transactions' writes are spilled to.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::tree::DamagedSpaces;
use crate::{DamagedPlace, Error, Lsn, Result, SpaceId, StoreId};

/// Whose writes a file has. Its name says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Those of a transaction that commits: a start needs the file if a record of the log names it.
    Committed,
    /// Those of one that is to be prepared: a start may also need the file for what is prepared, and
    /// doesn't know that before somebody asks for it.
    Prepared,
}

impl FileKind {
    const ALL: [FileKind; 2] = [FileKind::Committed, FileKind::Prepared];

    const fn prefix(self) -> &'static str {
        match self {
            FileKind::Committed => "spill-",
            FileKind::Prepared => "prepared-",
        }
    }

    /// The name of the file with a number, which no file of the other kind has.
    fn name(self, number: u64) -> String {
        format!("{}{number:016x}", self.prefix())
    }

    fn of_name(name: &OsStr) -> Option<(u64, FileKind)> {
        let name = name.to_str()?;
        FileKind::ALL.into_iter().find_map(|kind| {
            let digits = name.strip_prefix(kind.prefix())?;
            let number = u64::from_str_radix(digits, 16).ok()?;
            (digits.len() == 16).then_some((number, kind))
        })
    }
}

fn files(disk: &dyn Disk, folder: &Path) -> Result<BTreeMap<u64, FileKind>> {
    let names = disk.list(folder).map_err(Error::io("read", folder))?;
    Ok(names
        .iter()
        .filter_map(|name| FileKind::of_name(name))
        .collect())
}

/// Opens the file with a number by `open`, whichever kind it is of.
///
/// # Errors
/// Of the kind `NotFound`, with the path that it might have had, if there is none.
pub(crate) fn open_any<F>(
    folder: &Path,
    number: u64,
    open: impl Fn(&Path) -> io::Result<F>,
) -> std::result::Result<(F, PathBuf), (io::Error, PathBuf)> {
    let [committed, prepared] = FileKind::ALL.map(|kind| folder.join(kind.name(number)));
    match open(&committed) {
        Ok(file) => return Ok((file, committed)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err((error, committed)),
    }
    match open(&prepared) {
        Ok(file) => Ok((file, prepared)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err((error, committed)),
        Err(error) => Err((error, prepared)),
    }
}

/// A number that no file of the folder has, and that no record of a log names that ends at a position,
/// neither of a file that is gone by now. Each number that a record names was counted from one that
/// belongs to a position before that record.
pub(crate) fn next_number(disk: &dyn Disk, folder: &Path, log_end: Lsn) -> Result<u64> {
    /// So many files at least can be made and given up again while the log doesn't grow.
    const NUMBERS_A_BYTE: u64 = 1 << 16;
    let highest = files(disk, folder)?.into_keys().max().unwrap_or(0);
    Ok(log_end.0.saturating_mul(NUMBERS_A_BYTE).max(highest + 1))
}

/// Removes the files of transactions that were never committed, or that the tree has: all but these.
/// Gives the numbers of those others that something prepared may need.
pub(crate) fn remove_all_but(
    disk: &dyn Disk,
    folder: &Path,
    needed: &BTreeSet<u64>,
) -> Result<BTreeSet<u64>> {
    let mut unclaimed = BTreeSet::new();
    for (number, kind) in files(disk, folder)? {
        match kind {
            _ if needed.contains(&number) => {}
            FileKind::Committed => remove(disk, folder, kind, number),
            FileKind::Prepared => drop(unclaimed.insert(number)),
        }
    }
    Ok(unclaimed)
}

/// Removes files that might have been needed for something prepared, and aren't.
pub(crate) fn remove_unclaimed(disk: &dyn Disk, folder: &Path, numbers: &BTreeSet<u64>) {
    for number in numbers {
        remove(disk, folder, FileKind::Prepared, *number);
    }
}

fn remove(disk: &dyn Disk, folder: &Path, kind: FileKind, number: u64) {
    let path = folder.join(kind.name(number));
    if let Err(error) = disk.remove(&path) {
        // It is of no use, but in nobody's way.
        tracing::warn!(%error, path = %path.display(), "can't remove what a transaction has left");
    }
}

/// A transaction's file. Dropped with the last of its runs, it is removed, unless it is kept.
pub(crate) struct SpillFile {
    pub file: Arc<dyn DiskFile>,
    pub path: PathBuf,
    pub number: u64,
    pub id: StoreId,
    disk: Option<Arc<dyn Disk>>,
    /// Where the next run goes.
    pub len: AtomicU64,
    is_kept: AtomicBool,
    /// It has what was prepared: it outlives the process, whatever becomes of a commit of it.
    is_prepared: AtomicBool,
    /// All of it that a checkpoint needs could be read.
    is_verified: AtomicBool,
    /// Gives names to damage.
    damaged: Arc<DamagedSpaces>,
}

impl SpillFile {
    pub fn create(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        (number, kind): (u64, FileKind),
        id: StoreId,
        damaged: Arc<DamagedSpaces>,
    ) -> Result<SpillFile> {
        let path = folder.join(kind.name(number));
        let file = disk.open(&path, OpenMode::Truncated);
        Ok(SpillFile {
            file: file.map_err(Error::io("create", &path))?,
            path,
            number,
            id,
            disk: Some(Arc::clone(disk)),
            len: AtomicU64::new(0),
            is_kept: AtomicBool::new(false),
            is_prepared: AtomicBool::new(false),
            is_verified: AtomicBool::new(false),
            damaged,
        })
    }

    /// The file of a transaction that was committed, and that the tree lacks, or that was prepared.
    /// Without a disk it is never removed.
    pub fn committed(
        disk: Option<Arc<dyn Disk>>,
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        number: u64,
        id: StoreId,
        damaged: Arc<DamagedSpaces>,
    ) -> SpillFile {
        SpillFile {
            file,
            path,
            number,
            id,
            disk,
            len: AtomicU64::new(0),
            is_kept: AtomicBool::new(true),
            is_prepared: AtomicBool::new(false),
            is_verified: AtomicBool::new(false),
            damaged,
        }
    }

    /// Waits until the file and its name are on disk. From now on it outlives the process: a record of
    /// the log may name it.
    pub fn sync_and_keep(&self) -> Result<()> {
        let synced = self.file.sync_all();
        synced.map_err(Error::io("sync", &self.path))?;
        if let (Some(disk), Some(folder)) = (&self.disk, self.path.parent()) {
            let synced = disk.sync_folder(folder);
            synced.map_err(Error::io("sync", folder))?;
        }
        self.is_kept.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes what lies behind the last run.
    pub fn cut(&self) {
        let _ = self.file.set_len(self.len.load(Ordering::Acquire));
    }

    /// Nothing of the log names it any more, or ever did: it is removed when nobody reads it any more.
    pub fn forget(&self) {
        self.is_kept.store(false, Ordering::Release);
    }

    /// What it has is prepared from now on, or isn't any more.
    pub fn set_prepared(&self, is_prepared: bool) {
        self.is_prepared.store(is_prepared, Ordering::Release);
    }

    /// A checksum of bytes at a position of the file.
    pub fn checksum(&self, bytes: &[u8], at: u64) -> u64 {
        let seed = self.id.0 ^ self.number.rotate_left(32) ^ at;
        twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes)
    }

    pub fn is_verified(&self) -> bool {
        self.is_verified.load(Ordering::Acquire)
    }

    pub fn set_verified(&self, is_verified: bool) {
        self.is_verified.store(is_verified, Ordering::Release);
    }

    /// A place that can't be read, as the system says, or isn't what was written there.
    pub fn damage(&self, at: u64, space: SpaceId, unreadable: Option<io::Error>) -> Error {
        let is_unreadable = unreadable
            .as_ref()
            .is_some_and(|error| error.kind() != io::ErrorKind::UnexpectedEof);
        let what = match unreadable {
            Some(error) => format!("it can't be read: {error}"),
            None => "a block of a transaction's writes isn't what was written".to_string(),
        };
        let place = DamagedPlace {
            is_unreadable,
            ..DamagedPlace::new(&self.path, at, what)
        };
        self.damaged.attribute(place.into(), space)
    }

    pub fn corrupt(&self, at: u64, what: &str) -> Error {
        Error::corrupt(&self.path, at, what)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut()
            && !*self.is_prepared.get_mut()
            && let Some(disk) = &self.disk
        {
            // A start removes what can't be removed now.
            let _ = disk.remove(&self.path);
        }
    }
}
