//! The file that redb keeps its pages in, and the checksums that redb doesn't see.
//!
//! redb accesses its file through [`redb::StorageBackend`]; [`TreeFile`] is that trait over a
//! [`CheckedFile`], which verifies every page that is read against its checksum ([`page_checksums`]
//! has the layout). redb never gets a damaged byte.
//!
//! ```text
//! header   0  redb's header, 320 bytes           one sector: written as a whole, before and after
//!        320  "PORPTREE"                         each commit
//!        328  u32 format version
//!        332  u32 zero
//!        336  u64 identity of the store
//!        344  u64 length of the file as redb sees it
//!        352  zeros
//!        504  u64 checksum of bytes 0..504
//! ```
//!
//! The header has to be written in one piece: it is, as long as a disk writes a sector of 512 bytes
//! or doesn't. A file that is longer than its header says is left by a power cut while the file was
//! growing; a shorter one has been cut, since the length in the header shrinks before the file
//! does.
//!
//! **Damage is no I/O error to redb.** After the first error that its file returns, redb fails
//! every operation on every table. So a read that meets damage, or a sector that can't be read,
//! leaves redb by unwinding, up to [`catch_damage`], through which all reading calls go. (redb
//! holds no lock while it reads a page for a read transaction.) A write transaction that is unwound
//! leaves pages behind that nobody frees; there the error is returned, and the checkpoint opens the
//! tree anew ([`checkpoint`](crate::checkpoint)). Where a program is compiled to abort on panics,
//! an error is returned everywhere.
//!
//! redb's own file locks are not implemented: the folder's `LOCK` keeps other processes out before
//! the tree is opened.
//!
//! [`page_checksums`]: crate::page_checksums

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use twox_hash::XxHash3_64;

use crate::disk::DiskFile;
use crate::page_checksums::{
    ChecksumCache, ChecksumPage, PAGE_BYTES, StoreId, checksum_of, checksum_page_of,
    checksum_page_offset, file_len, page_offset, run_from,
};
use crate::{DamagedPlace, Error, Result};

pub(crate) const FORMAT_VERSION: u32 = 2;
const PAGE: u64 = PAGE_BYTES as u64;
const SECTOR: usize = 512;
pub(crate) const REDB_HEADER: usize = 320;
const MAGIC: &[u8; 8] = b"PORPTREE";
const REDB_MAGIC: &[u8; 4] = b"redb";

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that reads through redb. Turns damage that it meets, and a panic inside redb,
/// into errors.
pub(crate) fn catch_damage<R>(read: impl FnOnce() -> Result<R>) -> Result<R> {
    let before = IS_CATCHING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(read));
    IS_CATCHING.set(before);
    outcome.unwrap_or_else(|payload| Err(error_from_panic(payload)))
}

/// Runs something that writes through redb, or opens it. Turns a panic inside redb into an error.
pub(crate) fn catch_panic<R>(write: impl FnOnce() -> Result<R>) -> Result<R> {
    let outcome = catch_unwind(AssertUnwindSafe(write));
    outcome.unwrap_or_else(|payload| Err(error_from_panic(payload)))
}

fn error_from_panic(payload: Box<dyn Any + Send>) -> Error {
    let payload = match payload.downcast::<DamagedPlace>() {
        Ok(damage) => return (*damage).into(),
        Err(payload) => payload,
    };
    let text = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "no reason given".to_string(),
    };
    Error::TreePanicked(text.into())
}

/// Called on a thread that is about to wait for the disk, for some 100 microseconds as a rule: what
/// the thread holds back, others may go on with.
pub type ReadHook = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct ReadHookCell(ArcSwapOption<ReadHook>);

impl std::fmt::Debug for ReadHookCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ReadHookCell").finish_non_exhaustive()
    }
}

/// The tree's file, its pages verified as they are read.
#[derive(Debug)]
pub(crate) struct CheckedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    id: StoreId,
    header: Mutex<Header>,
    /// The header's length, for readers, who don't wait while the header is written.
    len: AtomicU64,
    checksums: Mutex<ChecksumCache>,
    /// Bytes of pages written that the disk was not yet told to begin with.
    unsynced: AtomicU64,
    /// How many pages have room on the disk, at most.
    room: AtomicU64,
    read_hook: ReadHookCell,
}

#[derive(Clone, Debug)]
struct Header {
    redb: [u8; REDB_HEADER],
    /// The length of the file as redb sees it.
    len: u64,
}

impl CheckedFile {
    /// A new file, empty so far. `cached_checksum_pages` pages of checksums are kept in memory.
    pub fn create(
        file: Arc<dyn DiskFile>,
        path: &Path,
        id: StoreId,
        cached_checksum_pages: usize,
    ) -> CheckedFile {
        let header = Header {
            redb: [0; REDB_HEADER],
            len: 0,
        };
        CheckedFile::new(file, path, id, header, cached_checksum_pages)
    }

    /// An existing file. Fails unless its header is sound and it is as long as its header says.
    pub fn open(
        file: Arc<dyn DiskFile>,
        path: &Path,
        cached_checksum_pages: usize,
    ) -> Result<CheckedFile> {
        let (id, header) = read_header(&*file, path)?;
        let found = file.len().map_err(Error::io("read", path))?;
        if found < file_len(header.len) {
            let expected = file_len(header.len);
            let what = format!("it ends here, and was {expected} bytes long");
            return Err(Error::corrupt(path, found, what));
        }
        Ok(CheckedFile::new(
            file,
            path,
            id,
            header,
            cached_checksum_pages,
        ))
    }

    /// A file to be salvaged: its header is taken as it is, and the file as long as it is. `id` is
    /// the store's if the header doesn't tell. Gives also what is wrong with the header.
    pub fn salvage(
        file: Arc<dyn DiskFile>,
        path: &Path,
        id: Option<StoreId>,
    ) -> (CheckedFile, Option<Error>) {
        let pages = file.len().unwrap_or(0).div_ceil(PAGE);
        let (id, mut header, error) = match read_header(&*file, path) {
            Ok((id, header)) => (id, header, None),
            Err(error) => {
                let mut redb = [0; REDB_HEADER];
                let _ = file.read_exact_at(&mut redb, 0);
                (
                    id.unwrap_or(StoreId(0)),
                    Header { redb, len: 0 },
                    Some(error),
                )
            }
        };
        // This counts pages of checksums in: the length is too large then, and pages that aren't
        // there can't be read.
        header.len = header.len.max(pages * PAGE);
        (CheckedFile::new(file, path, id, header, 1 << 12), error)
    }

    fn new(
        file: Arc<dyn DiskFile>,
        path: &Path,
        id: StoreId,
        header: Header,
        cached_checksum_pages: usize,
    ) -> CheckedFile {
        CheckedFile {
            file,
            path: path.to_path_buf(),
            id,
            len: header.len.into(),
            header: Mutex::new(header),
            checksums: Mutex::new(ChecksumCache::new(cached_checksum_pages)),
            unsynced: AtomicU64::new(0),
            // No file is so long that this overflows.
            room: AtomicU64::new(u64::MAX / 2),
            read_hook: ReadHookCell::default(),
        }
    }

    /// Has `hook` called before a page is read that the system doesn't hold in memory.
    pub fn set_read_hook(&self, hook: Option<ReadHook>) {
        self.read_hook.0.store(hook.map(Arc::new));
    }

    pub fn id(&self) -> StoreId {
        self.id
    }

    /// redb's header as it was last written.
    pub fn redb_header(&self) -> [u8; REDB_HEADER] {
        self.header.lock().redb
    }

    /// The file's pages as redb counts them.
    pub fn pages(&self) -> u64 {
        self.len.load(Ordering::Acquire) / PAGE
    }

    /// What to report of one of redb's pages that isn't as it was written.
    pub fn damage(&self, page: u64, what: impl Into<String>) -> DamagedPlace {
        DamagedPlace::new(&self.path, page_offset(page), what)
    }

    /// Reads checksums from disk again.
    pub fn forget_checksums(&self) {
        self.checksums.lock().forget_unchanged();
    }

    /// Reads pages, from this one on, and verifies each.
    pub fn read_pages(&self, first: u64, out: &mut [u8]) -> Result<(), DamagedPlace> {
        let (mut page, mut rest) = (first, out);
        while !rest.is_empty() {
            let run = run_from(page).min(rest.len() as u64 / PAGE).max(1);
            let (now, later) = rest.split_at_mut((run as usize * PAGE_BYTES).min(rest.len()));
            self.read_run(page, now)?;
            (page, rest) = (page + run, later);
        }
        Ok(())
    }

    /// Has the disk begin to read pages, from this one on, which are about to be read.
    pub fn begin_reading(&self, first: u64, count: u64) {
        let end = page_offset(first + count);
        let begin = page_offset(first);
        self.file.begin_reading(begin, end.saturating_sub(begin));
    }

    /// Whether the system has these pages in memory. So it is said, too, where it doesn't tell.
    pub fn is_cached(&self, first: u64, count: u64) -> bool {
        let end = page_offset(first + count);
        let begin = page_offset(first);
        self.file.is_cached(begin, end.saturating_sub(begin))
    }

    fn read_run(&self, first: u64, out: &mut [u8]) -> Result<(), DamagedPlace> {
        self.read_raw(first, out)?;
        let (number, place) = checksum_page_of(first);
        let expected: SmallVec<[u64; 4]> = {
            let checksums = self.group(number)?;
            let (mut checksums, count) = (checksums, out.len() / PAGE_BYTES);
            let group = checksums.get(number);
            (place..place + count)
                .map(|place| group.map_or(0, |group| group.get(place)))
                .collect()
        };
        for (at, bytes) in out.chunks_mut(PAGE_BYTES).enumerate() {
            let page = first + at as u64;
            if checksum_of(self.id, page, bytes) == expected[at] {
                continue;
            }
            // What was read wrong once may have been damaged in transfer.
            self.read_raw(page, bytes)?;
            if checksum_of(self.id, page, bytes) != expected[at] {
                return Err(self.damage(page, describe(expected[at], bytes)));
            }
        }
        Ok(())
    }

    fn read_raw(&self, first: u64, out: &mut [u8]) -> Result<(), DamagedPlace> {
        let read = self.read_and_tell(page_offset(first), out);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damage(first, "the file ends before it"),
            _ => DamagedPlace {
                is_unreadable: true,
                ..self.damage(first, format!("it can't be read: {error}"))
            },
        })
    }

    /// Reads; calls the hook first if that takes a wait for the disk.
    fn read_and_tell(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let hook = self.read_hook.0.load();
        match &*hook {
            Some(hook) => self.file.read_exact_telling(out, offset, &***hook),
            None => self.file.read_exact_telling(out, offset, &|| {}),
        }
    }

    /// The cache of checksums, with this page of checksums in it.
    fn group(&self, number: u64) -> Result<MutexGuard<'_, ChecksumCache>, DamagedPlace> {
        let mut checksums = self.checksums.lock();
        if checksums.get(number).is_none() {
            let mut bytes = [0; PAGE_BYTES];
            let read = self
                .file
                .read_exact_at(&mut bytes, checksum_page_offset(number));
            read.map_err(|error| DamagedPlace {
                is_unreadable: error.kind() != io::ErrorKind::UnexpectedEof,
                ..DamagedPlace::new(
                    &self.path,
                    checksum_page_offset(number),
                    format!("the checksums here can't be read: {error}"),
                )
            })?;
            // Read under the lock: an older state can't take the place of a newer one.
            checksums.admit(number, ChecksumPage::from_bytes(&bytes));
        }
        Ok(checksums)
    }

    fn write_pages(&self, first: u64, data: &[u8]) -> io::Result<()> {
        let (mut page, mut rest) = (first, data);
        while !rest.is_empty() {
            let run = run_from(page).min(rest.len() as u64 / PAGE).max(1);
            let (now, later) = rest.split_at((run as usize * PAGE_BYTES).min(rest.len()));
            self.file.write_all_at(now, page_offset(page))?;
            let (number, place) = checksum_page_of(page);
            let sums: SmallVec<[u64; 4]> = now
                .chunks(PAGE_BYTES)
                .zip(page..)
                .map(|(bytes, page)| checksum_of(self.id, page, bytes))
                .collect();
            let mut checksums = self.group(number).map_err(io::Error::other)?;
            for (sum, place) in sums.into_iter().zip(place..) {
                checksums.set(number, place, sum);
            }
            (page, rest) = (page + run, later);
        }
        let pages = data.len() as u64 / PAGE;
        self.room.fetch_add(pages, Ordering::AcqRel);
        self.begin_writing_back(data.len() as u64);
        Ok(())
    }

    /// Has the disk begin, while much is written, with what there is by now. If a sync at the end
    /// had to write it all, the disk would be busy for a second, and commits wait for their syncs of
    /// the log behind it. To sync the parts would be worse: each flushes the disk's own cache and
    /// may end a transaction of the file system's journal, for which commits wait, too.
    fn begin_writing_back(&self, written: u64) {
        const PART: u64 = 4 << 20;
        if self.unsynced.fetch_add(written, Ordering::Relaxed) + written >= PART {
            self.unsynced.store(0, Ordering::Relaxed);
            self.file.begin_writing_back();
        }
    }

    /// How many pages have room on the disk, at most.
    pub fn room(&self) -> u64 {
        self.room.load(Ordering::Acquire).min(self.pages())
    }

    /// Gives back what pages take that no commit refers to and nobody writes to meanwhile. The
    /// file's length stays, and so do the checksums between the pages.
    pub fn discard(&self, holes: &[Range<u64>]) -> Result<()> {
        let mut given = 0;
        for hole in holes {
            let mut page = hole.start;
            while page < hole.end {
                let run = run_from(page).min(hole.end - page);
                let discarded = self.file.discard(page_offset(page), run * PAGE);
                discarded.map_err(Error::io("give back room of", &self.path))?;
                page += run;
            }
            given += hole.end - hole.start;
        }
        let room = self.pages().saturating_sub(given);
        self.room.store(room, Ordering::Release);
        Ok(())
    }

    fn write_header(&self, header: Header) -> io::Result<()> {
        let mut current = self.header.lock();
        self.file.write_all_at(&header.to_bytes(self.id), 0)?;
        self.len.store(header.len, Ordering::Release);
        *current = header;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let changed = self.checksums.lock().changed();
        let mut all_written = Vec::with_capacity(changed.len());
        for group in changed {
            let Some((written, bytes)) = self.checksums.lock().bytes_to_write(group) else {
                continue;
            };
            self.file
                .write_all_at(&bytes, checksum_page_offset(group))?;
            all_written.push(written);
        }
        self.file.sync_data()?;
        self.checksums.lock().note_synced(&all_written);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut header = self.header.lock().clone();
        let is_cut = len < header.len;
        header.len = len;
        // The file must never be shorter than the header says, also where the disk is full.
        if is_cut {
            self.write_header(header)?;
            self.sync()?;
            self.file.set_len(file_len(len))
        } else {
            self.file.set_len(file_len(len))?;
            self.len.store(len, Ordering::Release);
            *self.header.lock() = header;
            Ok(())
        }
    }
}

fn describe(expected: u64, bytes: &[u8]) -> &'static str {
    match (expected, bytes.iter().all(|byte| *byte == 0)) {
        (0, _) => "it has no checksum",
        (_, true) => "it holds nothing but zeros",
        _ => "its checksum is wrong",
    }
}

impl Header {
    fn to_bytes(&self, id: StoreId) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        sector[..REDB_HEADER].copy_from_slice(&self.redb);
        sector[320..328].copy_from_slice(MAGIC);
        sector[328..332].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        sector[336..344].copy_from_slice(&id.0.to_le_bytes());
        sector[344..352].copy_from_slice(&self.len.to_le_bytes());
        let sum = XxHash3_64::oneshot(&sector[..504]);
        sector[504..].copy_from_slice(&sum.to_le_bytes());
        sector
    }
}

fn read_header(file: &dyn DiskFile, path: &Path) -> Result<(StoreId, Header)> {
    let corrupt = |offset, what: &str| Error::corrupt(path, offset, what);
    let mut sector = [0; SECTOR];
    match file.read_exact_at(&mut sector, 0) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(corrupt(0, "it is too short for a tree"));
        }
        Err(e) => return Err(Error::io("read", path)(e)),
    }
    let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().unwrap_or_default());
    if word(504) == XxHash3_64::oneshot(&sector[..504]) && &sector[320..328] == MAGIC {
        let found = word(328) as u32;
        if found > FORMAT_VERSION {
            return Err(Error::newer_format(path, found, FORMAT_VERSION));
        }
        let mut redb = [0; REDB_HEADER];
        redb.copy_from_slice(&sector[..REDB_HEADER]);
        let header = Header {
            redb,
            len: word(344),
        };
        return Ok((StoreId(word(336)), header));
    }
    let has_no_sums = sector[REDB_HEADER..].iter().all(|byte| *byte == 0);
    if has_no_sums && sector.starts_with(REDB_MAGIC) {
        return Err(Error::older_format(path, 1, FORMAT_VERSION));
    }
    match &sector[320..328] == MAGIC || sector.starts_with(REDB_MAGIC) {
        true => Err(corrupt(0, "the checksum of its header is wrong")),
        false => Err(corrupt(0, "it is no tree of a store")),
    }
}

/// A [`CheckedFile`] as one `redb::Database` uses it.
#[derive(Clone, Debug)]
pub(crate) struct TreeFile {
    file: Arc<CheckedFile>,
    state: Arc<DatabaseState>,
}

/// Whether a database can still use the file.
#[derive(Debug, Default)]
pub(crate) struct DatabaseState {
    /// An error was returned: the database fails every operation from then on.
    has_failed: AtomicBool,
    /// Another database uses the file now.
    is_detached: AtomicBool,
    /// The database is closed, and any other may use the file.
    is_closed: AtomicBool,
}

impl DatabaseState {
    /// Whether every operation of the database fails.
    pub fn is_unusable(&self) -> bool {
        self.has_failed.load(Ordering::Acquire) || self.is_detached.load(Ordering::Acquire)
    }

    /// Fails once the database has been detached from the file.
    pub fn check_attached(&self) -> io::Result<()> {
        match self.is_detached.load(Ordering::Acquire) {
            true => Err(io::Error::other("the tree was opened anew")),
            false => Ok(()),
        }
    }

    /// Notes that the database is closed.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Whether the database is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Refuses all further operations of the database.
    pub fn detach(&self) {
        self.is_detached.store(true, Ordering::Release);
    }
}

impl TreeFile {
    pub fn new(file: Arc<CheckedFile>) -> TreeFile {
        TreeFile {
            file,
            state: Arc::default(),
        }
    }

    pub fn state(&self) -> &Arc<DatabaseState> {
        &self.state
    }

    /// The file's pages.
    pub fn pages(&self) -> &Arc<CheckedFile> {
        &self.file
    }

    fn check_and_note<R>(&self, act: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.state.check_attached()?;
        let outcome = act();
        if outcome.is_err() {
            self.state.has_failed.store(true, Ordering::Release);
        }
        outcome
    }
}

fn is_aligned(offset: u64, len: usize) -> io::Result<()> {
    match offset.is_multiple_of(PAGE) && len.is_multiple_of(PAGE_BYTES) && offset > 0 {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

impl redb::StorageBackend for TreeFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.header.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.check_and_note(|| {
            if offset == 0 && out.len() <= REDB_HEADER {
                out.copy_from_slice(&self.file.header.lock().redb[..out.len()]);
                return Ok(());
            }
            is_aligned(offset, out.len())?;
            let Err(damage) = self.file.read_pages(offset / PAGE, out) else {
                return Ok(());
            };
            if IS_CATCHING.get() && cfg!(panic = "unwind") {
                resume_unwind(Box::new(damage));
            }
            Err(io::Error::other(damage))
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_and_note(|| self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check_and_note(|| self.file.sync())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_and_note(|| {
            if offset == 0 && data.len() == REDB_HEADER {
                let mut header = self.file.header.lock().clone();
                header.redb.copy_from_slice(data);
                return self.file.write_header(header);
            }
            is_aligned(offset, data.len())?;
            self.file.write_pages(offset / PAGE, data)
        })
    }
}
