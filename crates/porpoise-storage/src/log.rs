//! The write-ahead log: its files and their bytes.
//!
//! The log is one endless run of bytes; a position in it is an `Lsn`. It lies in segments, files of
//! fixed length named by the position of their first byte. Each segment is filled with zeros, or is
//! an old one used again, before anything is written to it, so that a sync writes the bytes and
//! nothing else: no length, no block map. (Measured: `pwrite` + `fdatasync` into such a file takes
//! 135 µs here, the same as with `O_DSYNC` or `O_DIRECT`, so it is the plain one.)
//!
//! ```text
//! log-0000000000000000      log-0000000001000000      log.spare
//! ├ header 512 bytes        ├ header                  (zeros, the next segment)
//! ├ mark 512 bytes          ├ mark
//! ├ record                  ├ record
//! ├ record                  └ zeros, or the bytes of a segment's former life
//! └ seal: goes on in the next
//!
//! header   0  "PORPLOG\0"
//!          8  u32 format version
//!         12  u32 zero
//!         16  u64 start: position of byte 0 of this file
//!         24  u64 capacity: length of this file; the next one starts at start + capacity
//!         32  u64 identity of the store
//!         40  u64 zero × 2
//!         56  u64 checksum of bytes 0..56
//!
//! mark     0  u64 synced: all before this position was on disk once
//!          8  u64 checksum of the start, the store's identity and bytes 0..8
//!
//! record   0  u32 length of the payload
//!          4  u32 kind: 1 commit, 2 seal
//!          8  u64 position of this record
//!         16  u64 timestamp of the commit
//!         24  u64 synced: all before this position was on disk when the record was made
//!         32  u32 checksum of the payload
//!         36  u32 checksum of bytes 0..36
//!         40  payload, then zeros to a multiple of 8
//! ```
//!
//! Integers are little-endian, checksums XXH3 (the low half where four bytes hold it).
//!
//! **Where the log ends.** Reading stops at the first record that is not whole or not at its own
//! position. That is the end of the log if the machine stopped there, and damage if it did not. Two
//! things tell them apart. The `synced` field of whatever is found behind: a record that says "all
//! before me was on disk" turns a hole before it from a torn tail into a corrupt middle. And the
//! mark, which is written anew in its own sector within a second or two of a sync: the log can't
//! end before it. Either way the store refuses to start. A torn tail is cut, so that its remains can
//! never be read again: what is good goes to another file, with zeros behind, which takes the
//! segment's name over.
//!
//! What can't be told from a power cut, then, is damage to the very last records, those that no
//! whole record follows, if the process ended within two seconds of writing them and without
//! closing the store.
//!
//! **Which files belong to it.** A segment is made whole under another name, so one that is shorter
//! than its header says was cut. The next one is there, its name on disk, before a seal says that
//! the log goes on in it; the seal is on disk before a record is written behind it. The first one
//! is there before the store's tree is. So a missing segment is noticed wherever it is missing, and
//! one from another store by the identity.
//!
//! **What a power cut may undo.** A file is written and synced under a name that means nothing, then
//! renamed, and then its folder is synced, before anything is put into it that counts. A segment that
//! has become the spare is not written to before the folder is synced, either: else it might come
//! back under its old name with new bytes. What a start has read it writes and syncs once more: it
//! may have seen it in the system's memory only. Segments are removed from the end, each for good
//! before the next, so that there is never a hole between two.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_64;

use crate::disk::{Disk, DiskFile, DiskFolder, Found, OpenMode};
use crate::{CommitTs, Error, Lsn, Result, StoreId};

pub(crate) const FORMAT_VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"PORPLOG\0";
/// A segment's header, in a sector of its own, and its mark, in another.
pub(crate) const SEGMENT_HEADER_LEN: u64 = 1024;
const HEADER_FIELDS_LEN: usize = 64;
const MARK_AT: u64 = 512;
const MARK_LEN: usize = 512;
pub(crate) const RECORD_HEADER_LEN: u64 = 40;
/// A payload's length fits its field, with room to round up.
pub(crate) const PAYLOAD_LEN_MAX: u64 = u32::MAX as u64 - 7;
const SPARE: &str = "log.spare";
const UNFINISHED: &str = "log.unfinished";
const SPARE_UNFINISHED: &str = "log.spare.unfinished";

/// What a file of zeros may take beside its length.
const SLACK_BYTES: u64 = 256 << 10;

const KIND_COMMIT: u32 = 1;
const KIND_SEAL: u32 = 2;

/// A run of bytes for one segment.
pub(crate) struct Part {
    segment: Extent,
    offset: u64,
    bytes: Vec<u8>,
}

/// Where a segment lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    start: u64,
    capacity: u64,
}

impl Extent {
    fn end(self) -> u64 {
        self.start + self.capacity
    }
}

/// Where the next record goes, and the records not yet handed to a file.
pub(crate) struct Tail {
    segment: Extent,
    offset: u64,
    segment_bytes: u64,
    parts: Vec<Part>,
    buffered: u64,
}

/// A commit's payload with its checksum, made before the log's mutex is taken.
pub(crate) struct Payload {
    bytes: Vec<u8>,
    checksum: u32,
}

impl Payload {
    pub fn new(bytes: Vec<u8>) -> Result<Payload> {
        let len = bytes.len() as u64;
        if len > PAYLOAD_LEN_MAX {
            return Err(Error::TransactionTooLarge {
                bytes: len,
                limit: PAYLOAD_LEN_MAX,
            });
        }
        let checksum = checksum(&bytes);
        Ok(Payload { bytes, checksum })
    }
}

impl Tail {
    /// Goes back to a place, forgetting what was to follow.
    pub fn rewind(&mut self, segment: Extent, end: Lsn) {
        self.segment = segment;
        self.offset = end.0 - segment.start;
        self.parts.clear();
        self.buffered = 0;
    }

    /// The position of the next record.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.segment.start + self.offset)
    }

    pub fn buffered_bytes(&self) -> u64 {
        self.buffered
    }

    pub fn take_parts(&mut self) -> Vec<Part> {
        self.buffered = 0;
        std::mem::take(&mut self.parts)
    }

    /// The segment that this record would begin, if it doesn't fit into the one before.
    pub fn next_segment(&self, payload: &Payload) -> Option<Extent> {
        let needed = record_len(payload.bytes.len() as u64);
        let least = SEGMENT_HEADER_LEN + needed + RECORD_HEADER_LEN;
        // A segment always keeps room for its seal.
        let fits = self.offset + needed + RECORD_HEADER_LEN <= self.segment.capacity;
        (!fits).then(|| Extent {
            start: self.segment.end(),
            capacity: self.segment_bytes.max(least.next_multiple_of(4096)),
        })
    }

    pub fn append(&mut self, ts: CommitTs, synced: Lsn, payload: &Payload) {
        if let Some(next) = self.next_segment(payload) {
            self.push(KIND_SEAL, ts, synced, &[], checksum(&[]));
            self.segment = next;
            self.offset = SEGMENT_HEADER_LEN;
        }
        self.push(KIND_COMMIT, ts, synced, &payload.bytes, payload.checksum);
    }

    fn push(&mut self, kind: u32, ts: CommitTs, synced: Lsn, payload: &[u8], payload_sum: u32) {
        let (segment, offset) = (self.segment, self.offset);
        if self.parts.last().is_none_or(|part| part.segment != segment) {
            self.parts.push(Part {
                segment,
                offset,
                bytes: Vec::new(),
            });
        }
        let Some(part) = self.parts.last_mut() else {
            return;
        };
        let mut header = [0; RECORD_HEADER_LEN as usize];
        header[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[8..16].copy_from_slice(&(segment.start + offset).to_le_bytes());
        header[16..24].copy_from_slice(&ts.0.to_le_bytes());
        header[24..32].copy_from_slice(&synced.0.to_le_bytes());
        header[32..36].copy_from_slice(&payload_sum.to_le_bytes());
        let header_sum = checksum(&header[..36]);
        header[36..40].copy_from_slice(&header_sum.to_le_bytes());
        let len = record_len(payload.len() as u64);
        let end = part.bytes.len() + len as usize;
        part.bytes.reserve(len as usize);
        part.bytes.extend_from_slice(&header);
        part.bytes.extend_from_slice(payload);
        part.bytes.resize(end, 0);
        self.offset += len;
        self.buffered += len;
    }
}

/// A record's length in the log, with its header and padding.
pub(crate) fn record_len(payload_len: u64) -> u64 {
    RECORD_HEADER_LEN + payload_len.next_multiple_of(8)
}

fn checksum(bytes: &[u8]) -> u32 {
    XxHash3_64::oneshot(bytes) as u32
}

/// The log's files.
pub(crate) struct LogFiles {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The folder, open: a new name must be on disk even if there is no descriptor left.
    names: Arc<dyn DiskFolder>,
    id: StoreId,
    segment_bytes: u64,
    /// What the last mark says.
    marked: Lsn,
    /// Oldest first; the last is the one written to.
    segments: VecDeque<Segment>,
    spare: Spare,
    /// How far the log is known to hold what was acknowledged.
    good: Good,
    room: Arc<Room>,
    reserve: Reserve,
}

/// An end of the log behind which everything was written, and synced if that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Good {
    pub end: Lsn,
    /// The last commit before it.
    pub ts: CommitTs,
}

/// Up to which position there are files for the log. Looked at without a lock: a commit that wants
/// a place in the log must not wait for whoever syncs it.
pub(crate) struct Room {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    made: AtomicU64,
}

impl Room {
    /// Fails if the disk has no room for the segments that are still to be made, up to this one. Who
    /// is refused now has written nothing; a disk that turns out to be full while a batch is written
    /// ends all writing for a while.
    pub fn check(&self, up_to: Extent) -> Result<()> {
        let needed = up_to
            .end()
            .saturating_sub(self.made.load(Ordering::Acquire));
        let free = || self.disk.free_bytes(&self.folder);
        if needed == 0 || free().is_none_or(|free| free >= needed + SLACK_BYTES) {
            return Ok(());
        }
        let full = io::Error::from(io::ErrorKind::StorageFull);
        Err(Error::io("make room for the log in", &self.folder)(full))
    }
}

/// Descriptors held for the log's next files, so that a process full of connections can still go on
/// writing. Each is the log's folder, opened once more; one is closed when an open is refused for
/// want of descriptors.
struct Reserve {
    held: Vec<Arc<dyn DiskFolder>>,
}

const RESERVED_DESCRIPTORS: usize = 4;

impl Reserve {
    fn fill(&mut self, disk: &dyn Disk, folder: &Path) {
        while self.held.len() < RESERVED_DESCRIPTORS {
            let Ok(held) = disk.open_folder(folder) else {
                return;
            };
            self.held.push(held);
        }
    }

    /// Opens a file, giving up reserved descriptors for it if there are no others.
    fn open(
        &mut self,
        disk: &dyn Disk,
        path: &Path,
        mode: OpenMode,
    ) -> io::Result<Arc<dyn DiskFile>> {
        loop {
            match disk.open(path, mode) {
                Err(e) if is_out_of_descriptors(&e) && self.held.pop().is_some() => {}
                outcome => return outcome,
            }
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(
        errno,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
    )
}

/// The file that is to become the next segment, held open, so that it takes no descriptor then.
enum Spare {
    Absent,
    /// Somebody is at it, without holding up those who write to the log.
    InTheMaking,
    Ready(Arc<dyn DiskFile>),
}

/// Segments that the log no longer needs, taken out of it and still to be removed.
pub(crate) struct Retired {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    names: Arc<dyn DiskFolder>,
    spare: Option<Segment>,
    rest: Vec<Segment>,
}

impl Retired {
    pub fn has_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Renames the one that is used again, and removes the others. Gives the spare.
    ///
    /// The spare must have left its old name for good before anybody writes to it: a power cut that
    /// takes the renaming back would leave another segment's bytes under that name.
    pub fn remove(self) -> Result<Option<Arc<dyn DiskFile>>> {
        for segment in &self.rest {
            let removed = self.disk.remove(&segment.path);
            removed.map_err(Error::io("remove", &segment.path))?;
        }
        let Some(segment) = self.spare else {
            return Ok(None);
        };
        let renamed = self.disk.rename(&segment.path, &self.folder.join(SPARE));
        renamed.map_err(Error::io("rename", &segment.path))?;
        let synced = self.names.sync();
        synced.map_err(Error::io("sync", &self.folder))?;
        Ok(Some(segment.file))
    }
}

struct Segment {
    extent: Extent,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    is_dirty: bool,
}

impl Segment {
    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            offset,
            what: what.into(),
        }
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.file.sync_data();
        synced.map_err(Error::io("sync", &self.path))?;
        self.is_dirty = false;
        Ok(())
    }

    /// The bytes up to `end`, if they are whole records up to exactly there.
    fn good_part(&self, from: Lsn, end: u64) -> Result<Vec<u8>> {
        let mut bytes = self.read()?;
        let len = end - self.extent.start;
        let first = from.0.saturating_sub(self.extent.start);
        let mut offset = first.clamp(SEGMENT_HEADER_LEN, len);
        while offset < len
            && let Some(record) = Record::read(&bytes, self.extent.start, offset)
        {
            offset += record_len(record.payload.len() as u64);
        }
        if offset != len || bytes.len() as u64 != self.extent.capacity {
            return Err(self.corrupt(offset, "what was written here can't be read back"));
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }

    fn read(&self) -> Result<Vec<u8>> {
        self.file.read_all().map_err(Error::io("read", &self.path))
    }
}

impl LogFiles {
    /// No files yet.
    fn new(disk: &Arc<dyn Disk>, folder: &Path, id: StoreId, segment_bytes: u64) -> Result<Self> {
        let names = disk.open_folder(folder);
        let mut files = LogFiles {
            disk: Arc::clone(disk),
            folder: folder.to_path_buf(),
            names: names.map_err(Error::io("open", folder))?,
            id,
            segment_bytes,
            marked: Lsn(0),
            segments: VecDeque::new(),
            spare: Spare::Absent,
            good: Good {
                end: Lsn(0),
                ts: CommitTs(0),
            },
            room: Arc::new(Room {
                disk: Arc::clone(disk),
                folder: folder.to_path_buf(),
                made: AtomicU64::new(0),
            }),
            reserve: Reserve { held: Vec::new() },
        };
        files.fill_reserve();
        Ok(files)
    }

    /// Writes the parts to their files, making those that don't exist yet.
    pub fn write(&mut self, parts: &[Part]) -> Result<()> {
        for (index, part) in parts.iter().enumerate() {
            self.add_if_missing(part.segment)?;
            let next = parts.get(index + 1);
            if let Some(next) = next {
                // Before this part says that the log goes on there.
                self.add_if_missing(next.segment)?;
            }
            let Some(segment) = self.segments.iter_mut().rfind(|s| s.extent == part.segment) else {
                continue;
            };
            segment.is_dirty = true;
            segment
                .file
                .write_all_at(&part.bytes, part.offset)
                .map_err(Error::io("write to", &segment.path))?;
            if next.is_some() {
                // Before the next part is written.
                segment.sync()?;
            }
        }
        Ok(())
    }

    fn add_if_missing(&mut self, extent: Extent) -> Result<()> {
        match self.segments.iter().rfind(|s| s.extent == extent) {
            Some(_) => Ok(()),
            None => self.add_segment(extent),
        }
    }

    pub fn room(&self) -> Arc<Room> {
        Arc::clone(&self.room)
    }

    fn note_room(&self) {
        let made = self.segments.back().map_or(0, |last| last.extent.end());
        let spare = match self.spare {
            Spare::Ready(_) => self.segment_bytes,
            Spare::Absent | Spare::InTheMaking => 0,
        };
        self.room.made.store(made + spare, Ordering::Release);
    }

    pub fn good(&self) -> Good {
        self.good
    }

    /// What was written up to here is as safe as was asked for.
    pub fn note_good(&mut self, good: Good) {
        self.good = good;
    }

    /// Takes back the descriptors that it had to give up.
    pub fn fill_reserve(&mut self) {
        self.reserve.fill(&*self.disk, &self.folder);
    }

    /// Waits until everything written is on disk.
    pub fn sync(&mut self) -> Result<()> {
        match self.segments.back_mut() {
            Some(last) if last.is_dirty => last.sync(),
            _ => Ok(()),
        }
    }

    /// Notes in the last segment how far the log is on disk. Gives the file to be synced, without
    /// holding the files, unless there is nothing new to note.
    pub fn mark(&mut self, synced: Lsn) -> Result<Option<(Arc<dyn DiskFile>, PathBuf)>> {
        let Some(last) = self.segments.back() else {
            return Ok(None);
        };
        if synced <= self.marked || synced.0 < last.extent.start {
            return Ok(None);
        }
        write_mark(&*last.file, last.extent, self.id, synced)
            .map_err(Error::io("write to", &last.path))?;
        self.marked = synced;
        Ok(Some((Arc::clone(&last.file), last.path.clone())))
    }

    /// The file written to, if it was since the last sync, to be synced without holding the files.
    pub fn dirty_file(&self) -> Option<(Arc<dyn DiskFile>, PathBuf)> {
        let last = self.segments.back().filter(|last| last.is_dirty)?;
        Some((Arc::clone(&last.file), last.path.clone()))
    }

    /// After a failed write: makes what may have reached the file unreadable, as far as possible.
    ///
    /// From the last part on, each on disk before the one before it: no record may be left in a segment behind one that
    /// isn't sealed any more.
    pub fn disown(&mut self, parts: &[Part]) {
        for (index, part) in parts.iter().enumerate().rev() {
            let Some(segment) = self.segments.iter().find(|s| s.extent == part.segment) else {
                continue;
            };
            // In the first segment what can't be reached is not there; in others it would be looked for.
            let len = match index {
                0 => RECORD_HEADER_LEN,
                _ => part.bytes.len() as u64,
            };
            let wiped = fill_with_zeros(&*segment.file, part.offset, part.offset + len);
            if wiped.and_then(|()| segment.file.sync_data()).is_err() {
                return;
            }
        }
    }

    fn add_segment(&mut self, extent: Extent) -> Result<()> {
        let path = self.folder.join(segment_name(extent.start));
        let spare = match &self.spare {
            Spare::Ready(file) if extent.capacity == self.segment_bytes => Some(Arc::clone(file)),
            _ => None,
        };
        let file = match spare {
            Some(file) => {
                let spare = self.folder.join(SPARE);
                // If any of this fails, it is no spare any more.
                self.spare = Spare::Absent;
                write_segment_header(&*file, extent, self.id)
                    .and_then(|()| file.sync_all())
                    .and_then(|()| self.disk.rename(&spare, &path))
                    .map_err(Error::io("write to", &spare))?;
                file
            }
            None => self.make_segment(extent, &path)?,
        };
        let synced = self.names.sync();
        synced.map_err(Error::io("sync", &self.folder))?;
        self.segments.push_back(Segment {
            extent,
            path,
            file,
            is_dirty: false,
        });
        self.note_room();
        Ok(())
    }

    /// After a failed write or sync: makes the log end where it is good, in a file of its own.
    ///
    /// The file that it was in can't be relied on any more: a failed sync may have dropped what was
    /// to be written, and forgotten that there was anything. So the segment's good part is read back,
    /// verified record by record, and written to another file, which takes the name over when all of
    /// it is on disk. `from` is where a start would begin to read.
    pub fn rewrite_tail(&mut self, from: Lsn) -> Result<Extent> {
        let end = self.good.end.0;
        let holds_end = |s: &Segment| s.extent.start < end && end < s.extent.end();
        let Some(index) = self.segments.iter().position(holds_end) else {
            return Err(Error::Corrupt {
                path: self.folder.clone(),
                offset: end,
                what: "no log segment has the end of the log".to_string(),
            });
        };
        let segment = &self.segments[index];
        let (extent, path) = (segment.extent, segment.path.clone());
        let bytes = segment.good_part(from, end)?;
        self.empty_behind(index)?;
        let file = self.write_copy(&bytes, extent, &path)?;
        // The one after the last may be there, too: it was made, but its name was not synced.
        let made = self.segments.back().map_or(extent, |last| last.extent);
        let next = self.folder.join(segment_name(made.end()));
        let behind = self.segments.iter().skip(index + 1).map(|s| s.path.clone());
        let names = behind.chain([next]).collect();
        remove_from_the_end(&*self.disk, &*self.names, &self.folder, names)?;
        self.segments.truncate(index + 1);
        if let Some(last) = self.segments.back_mut() {
            last.file = file;
            last.is_dirty = false;
        }
        self.note_room();
        Ok(extent)
    }

    /// Puts empty segments in the place of those behind one, the last first. So whenever this is cut short the log ends in
    /// an empty segment, or where it did: a segment that is sealed has the next one, and one that isn't has no records behind it.
    fn empty_behind(&mut self, index: usize) -> Result<()> {
        for behind in (index + 1..self.segments.len()).rev() {
            let (extent, path) = {
                let segment = &self.segments[behind];
                (segment.extent, segment.path.clone())
            };
            let header = segment_header(extent, self.id);
            let file = self.write_copy(&header, extent, &path)?;
            let synced = self.names.sync();
            synced.map_err(Error::io("sync", &self.folder))?;
            if let Some(segment) = self.segments.get_mut(behind) {
                segment.file = file;
                segment.is_dirty = false;
            }
        }
        Ok(())
    }

    /// Writes what a start has read to a segment once more, and syncs it. It may have come from
    /// the system's memory only: the process before was killed, or had a sync fail, and then no sync
    /// will ever write it unless it is written anew.
    fn write_again(&self, read: &SegmentRead) -> Result<()> {
        let Some(segment) = self.segments.get(read.index) else {
            return Ok(());
        };
        let needed = usize::try_from(read.from).ok();
        let needed = needed.and_then(|at| read.bytes.get(at..));
        let written = segment.file.write_all_at(needed.unwrap_or(&[]), read.from);
        written
            .and_then(|()| segment.file.sync_all())
            .map_err(Error::io("write to", &segment.path))
    }

    /// Ends the last segment behind these bytes, with zeros. In another file, so that a cut that fails
    /// leaves no zeros that are there to be seen but not on disk; in place if there is no room for
    /// one.
    fn cut_torn_tail(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(last) = self.segments.back() else {
            return Ok(());
        };
        let (extent, path, old) = (last.extent, last.path.clone(), Arc::clone(&last.file));
        let file = match self.write_copy(bytes, extent, &path) {
            Ok(file) => file,
            Err(error) if error.is_disk_full() => {
                let file = old;
                file.write_all_at(bytes, 0)
                    .and_then(|()| fill_with_zeros(&*file, bytes.len() as u64, extent.capacity))
                    .and_then(|()| file.sync_all())
                    .map_err(Error::io("write to", &path))?;
                file
            }
            Err(error) => return Err(error),
        };
        if let Some(last) = self.segments.back_mut() {
            last.file = file;
        }
        let synced = self.names.sync();
        synced.map_err(Error::io("sync", &self.folder))
    }

    /// Writes a whole segment to another file, the spare one if there is one, and gives it the name.
    fn write_copy(
        &mut self,
        bytes: &[u8],
        extent: Extent,
        path: &Path,
    ) -> Result<Arc<dyn DiskFile>> {
        let spare = match &self.spare {
            Spare::Ready(file) if extent.capacity == self.segment_bytes => Some(Arc::clone(file)),
            _ => None,
        };
        let is_spare = spare.is_some();
        let source = self.folder.join(if is_spare { SPARE } else { UNFINISHED });
        let make = || -> io::Result<Arc<dyn DiskFile>> {
            let file = match spare {
                Some(file) => file,
                None => self
                    .reserve
                    .open(&*self.disk, &source, OpenMode::Truncated)?,
            };
            file.write_all_at(bytes, 0)?;
            fill_with_zeros(&*file, bytes.len() as u64, extent.capacity)?;
            file.sync_all()?;
            self.disk.rename(&source, path)?;
            Ok(file)
        };
        let made = make();
        match (&made, is_spare) {
            // A file whose sync has failed is no spare any more.
            (Ok(_) | Err(_), true) => self.spare = Spare::Absent,
            (Err(_), false) => {
                let _ = self.disk.remove(&source);
            }
            (Ok(_), false) => {}
        }
        self.note_room();
        made.map_err(Error::io("write to", &source))
    }

    fn make_segment(&mut self, extent: Extent, path: &Path) -> Result<Arc<dyn DiskFile>> {
        let unfinished = self.folder.join(UNFINISHED);
        let mut make = || -> io::Result<Arc<dyn DiskFile>> {
            let file = self
                .reserve
                .open(&*self.disk, &unfinished, OpenMode::Truncated)?;
            fill_with_zeros(&*file, 0, extent.capacity)?;
            write_segment_header(&*file, extent, self.id)?;
            file.sync_all()?;
            self.disk.rename(&unfinished, path)?;
            Ok(file)
        };
        make().map_err(|e| {
            let _ = self.disk.remove(&unfinished);
            Error::io("create", path)(e)
        })
    }

    /// Takes the segments that end before the position out of the log. One is kept to be used again,
    /// if there is no other: `adopt_spare` has to follow.
    pub fn retire_before(&mut self, lsn: Lsn) -> Retired {
        let mut retired = Retired {
            disk: Arc::clone(&self.disk),
            folder: self.folder.clone(),
            names: Arc::clone(&self.names),
            spare: None,
            rest: Vec::new(),
        };
        while self.segments.len() > 1
            && let Some(first) = self.segments.pop_front_if(|s| s.extent.end() <= lsn.0)
        {
            let fits = first.extent.capacity == self.segment_bytes;
            if fits && matches!(self.spare, Spare::Absent) {
                self.spare = Spare::InTheMaking;
                retired.spare = Some(first);
            } else {
                retired.rest.push(first);
            }
        }
        retired
    }

    /// What a spare segment takes to make, if it is time to have one: `adopt_spare` has to follow.
    pub fn wants_spare(&mut self, tail: Lsn) -> Result<Option<SparePlan>> {
        let Some(last) = self.segments.back() else {
            return Ok(None);
        };
        let used = tail.0.saturating_sub(last.extent.start);
        let is_time = matches!(self.spare, Spare::Absent) && used > last.extent.capacity / 2;
        // Not with the last room that there is: commits have counted on it.
        let has_room = || {
            let free = self.disk.free_bytes(&self.folder);
            free.is_none_or(|free| free >= 2 * self.segment_bytes + SLACK_BYTES)
        };
        if !is_time || !has_room() {
            return Ok(None);
        }
        let path = self.folder.join(SPARE_UNFINISHED);
        let opened = self.reserve.open(&*self.disk, &path, OpenMode::Truncated);
        let file = opened.map_err(Error::io("create", &path))?;
        self.spare = Spare::InTheMaking;
        Ok(Some(SparePlan {
            disk: Arc::clone(&self.disk),
            folder: self.folder.clone(),
            capacity: self.segment_bytes,
            file,
        }))
    }

    /// Ends what `wants_spare` or `retire_before` began, well or not.
    pub fn adopt_spare(&mut self, made: Option<Arc<dyn DiskFile>>) {
        if matches!(self.spare, Spare::InTheMaking) {
            self.spare = made.map_or(Spare::Absent, Spare::Ready);
        }
        self.note_room();
    }
}

/// A spare segment to be made.
pub(crate) struct SparePlan {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    capacity: u64,
    file: Arc<dyn DiskFile>,
}

impl SparePlan {
    /// Makes a file of zeros that can become a segment. Slow; done where nobody waits.
    pub fn carry_out(&self) -> Result<Arc<dyn DiskFile>> {
        let path = self.folder.join(SPARE_UNFINISHED);
        let make = || {
            fill_with_zeros(&*self.file, 0, self.capacity)?;
            self.file.sync_all()?;
            self.disk.rename(&path, &self.folder.join(SPARE))?;
            Ok(Arc::clone(&self.file))
        };
        make().map_err(|e| {
            let _ = self.disk.remove(&path);
            Error::io("create", &path)(e)
        })
    }
}

fn fill_with_zeros(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 18];
    let mut at = from;
    while at < to {
        let len = (to - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..len as usize], at)?;
        at += len;
    }
    Ok(())
}

fn write_segment_header(file: &dyn DiskFile, extent: Extent, id: StoreId) -> io::Result<()> {
    file.write_all_at(&segment_header(extent, id), 0)
}

/// The header of a segment that has no records yet, and its mark.
fn segment_header(extent: Extent, id: StoreId) -> [u8; SEGMENT_HEADER_LEN as usize] {
    let mut header = [0; SEGMENT_HEADER_LEN as usize];
    header[0..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&extent.start.to_le_bytes());
    header[24..32].copy_from_slice(&extent.capacity.to_le_bytes());
    header[32..40].copy_from_slice(&id.0.to_le_bytes());
    let sum = XxHash3_64::oneshot(&header[..56]);
    header[56..64].copy_from_slice(&sum.to_le_bytes());
    // The mark of a former life goes with it. There always is one: what is zeroed is damaged.
    let mark = mark_bytes(extent, id, Lsn(extent.start));
    header[MARK_AT as usize..][..mark.len()].copy_from_slice(&mark);
    header
}

fn write_mark(file: &dyn DiskFile, extent: Extent, id: StoreId, synced: Lsn) -> io::Result<()> {
    file.write_all_at(&mark_bytes(extent, id, synced), MARK_AT)
}

/// A whole sector, which a disk writes or doesn't.
fn mark_bytes(extent: Extent, id: StoreId, synced: Lsn) -> [u8; MARK_LEN] {
    let mut mark = [0; MARK_LEN];
    mark[..8].copy_from_slice(&synced.0.to_le_bytes());
    mark[8..16].copy_from_slice(&mark_sum(extent, id, synced).to_le_bytes());
    mark
}

fn mark_sum(extent: Extent, id: StoreId, synced: Lsn) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&extent.start.to_le_bytes());
    bytes[8..16].copy_from_slice(&id.0.to_le_bytes());
    bytes[16..].copy_from_slice(&synced.0.to_le_bytes());
    XxHash3_64::oneshot(&bytes)
}

/// What a segment's mark says, if it is sound.
fn read_mark(extent: Extent, id: StoreId, bytes: &[u8]) -> Option<Lsn> {
    let at = MARK_AT as usize;
    let synced = Lsn(u64_at(bytes, at)?);
    (u64_at(bytes, at + 8)? == mark_sum(extent, id, synced)).then_some(synced)
}

fn segment_name(start: u64) -> String {
    format!("log-{start:016x}")
}

pub(crate) fn sync_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    disk.sync_folder(folder).map_err(Error::io("sync", folder))
}

/// What a start read of a segment, up to its last record, and from where on it was needed.
struct SegmentRead {
    index: usize,
    bytes: Vec<u8>,
    from: u64,
}

/// Reads the log from a position on, gives each commit to `replay`, cuts a torn tail, and leaves the
/// log ready to be written to.
pub(crate) fn open_log(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    id: StoreId,
    segment_bytes: u64,
    from: Lsn,
    mut replay: impl FnMut(CommitTs, &[u8]) -> Result<(), String>,
) -> Result<(LogFiles, Tail)> {
    let mut files = LogFiles::new(disk, folder, id, segment_bytes)?;
    remove_unfinished(&**disk, folder)?;
    let mut segments = find_segments(&**disk, folder, id)?;
    // Segments that a checkpoint has put behind it may still lie here; none of the rest may be missing.
    while segments.len() > 1 && segments[0].extent.end() <= from.0 {
        if let Some(past) = segments.pop_front() {
            let removed = disk.remove(&past.path);
            removed.map_err(Error::io("remove", &past.path))?;
        }
    }
    refuse_missing(&segments, folder, from)?;
    let mut at = from.0;
    let mut marked = Lsn(0);
    // The segment read last, and the one before it.
    let (mut tail, mut sealed): (Option<SegmentRead>, Option<SegmentRead>) = (None, None);
    // Nothing lies behind the end: nothing to look for there, and nothing to wipe.
    let mut ends_in_zeros = false;
    for (index, segment) in segments.iter().enumerate() {
        let mut bytes = segment.read()?;
        let mark = read_mark(segment.extent, id, &bytes)
            .ok_or_else(|| segment.corrupt(MARK_AT, "the checksum of its mark is wrong"))?;
        marked = marked.max(mark);
        let mut offset = (at - segment.extent.start).max(SEGMENT_HEADER_LEN);
        let needed_from = offset;
        let mut is_sealed = false;
        while let Some(record) = Record::read(&bytes, segment.extent.start, offset) {
            offset += record_len(record.payload.len() as u64);
            if record.kind == KIND_SEAL {
                is_sealed = true;
                break;
            }
            replay(record.ts, record.payload).map_err(|what| Error::Corrupt {
                path: segment.path.clone(),
                offset,
                what,
            })?;
        }
        at = segment.extent.start + offset;
        if !is_sealed {
            let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
            ends_in_zeros = index + 1 == segments.len() && rest.is_some_and(is_zeros);
        }
        bytes.truncate(usize::try_from(offset).unwrap_or(usize::MAX));
        sealed = tail.replace(SegmentRead {
            index,
            bytes,
            from: needed_from,
        });
        if !is_sealed {
            break;
        }
        at = segment.extent.end();
        if index + 1 == segments.len() {
            return Err(missing(folder, at, "yet the one before it goes on there"));
        }
    }
    let Some(tail) = tail else {
        return Err(missing(folder, at, "and so are all others"));
    };
    let extent = segments[tail.index].extent;
    if at < marked.0 {
        let what = format!("no whole record is here, yet the log was on disk up to {marked}");
        return Err(segments[tail.index].corrupt(at.saturating_sub(extent.start), what));
    }
    if !ends_in_zeros {
        refuse_corrupt_middle(segments.range(tail.index..), at)?;
    }
    // What follows the end was never acknowledged.
    let torn = segments.iter().skip(tail.index + 1).map(|s| s.path.clone());
    remove_from_the_end(&**disk, &*files.names, folder, torn.collect())?;
    segments.truncate(tail.index + 1);
    files.segments = segments;
    files.marked = marked;
    files.spare = find_spare(&**disk, &folder.join(SPARE), segment_bytes);
    files.good.end = Lsn(at);
    let offset = at - extent.start;
    // Who sealed the one before may have been killed before it was synced.
    if let Some(sealed) = &sealed
        && offset == SEGMENT_HEADER_LEN
    {
        files.write_again(sealed)?;
    }
    match ends_in_zeros {
        true => files.write_again(&tail)?,
        false => files.cut_torn_tail(&tail.bytes)?,
    }
    files.note_room();
    let tail = Tail {
        segment: extent,
        offset,
        segment_bytes,
        parts: Vec::new(),
        buffered: 0,
    };
    Ok((files, tail))
}

/// Fails unless there is a segment for every position from this one on, up to the last segment.
fn refuse_missing(segments: &VecDeque<Segment>, folder: &Path, from: Lsn) -> Result<()> {
    let Some(first) = segments.front() else {
        return Err(missing(folder, from.0, "and so are all others"));
    };
    for (one, next) in segments.iter().zip(segments.iter().skip(1)) {
        if one.extent.end() != next.extent.start {
            let at = one.extent.end();
            return Err(next.corrupt(
                0,
                format!("the log segment before it, at {at:#x}, is missing"),
            ));
        }
    }
    if !(first.extent.start..=first.extent.end()).contains(&from.0) {
        let what = format!("the log starts here, but is needed from position {from}");
        return Err(first.corrupt(0, what));
    }
    Ok(())
}

fn missing(folder: &Path, position: u64, why: &str) -> Error {
    Error::Corrupt {
        path: folder.join(segment_name(position)),
        offset: 0,
        what: format!("this log segment is missing, {why}"),
    }
}

/// Makes the first segment of a new store's log.
pub(crate) fn begin_log(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    id: StoreId,
    segment_bytes: u64,
) -> Result<()> {
    let mut files = LogFiles::new(disk, folder, id, segment_bytes)?;
    files.add_segment(Extent {
        start: 0,
        capacity: segment_bytes.max(8192),
    })
}

/// Removes the log of a store whose first start was cut short. Fails if anything was ever written
/// to it: then `tree`, the tree that is missing, has been there.
pub(crate) fn remove_unused_log(disk: &dyn Disk, folder: &Path, tree: &Path) -> Result<()> {
    for (path, file) in segment_files(disk, folder)? {
        let bytes = file.read_all().map_err(Error::io("read", &path))?;
        let is_first = path.ends_with(segment_name(0));
        let records = bytes.get(SEGMENT_HEADER_LEN as usize..).unwrap_or_default();
        if !is_first || !is_zeros(records) {
            return Err(Error::Corrupt {
                path: tree.to_path_buf(),
                offset: 0,
                what: format!("it is missing, yet {} is there", path.display()),
            });
        }
        disk.remove(&path).map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

fn is_zeros(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// Removes segments, the last one first and each for good before the next: there is never a hole
/// between those that are found. Whatever else was renamed or removed before is on disk, too.
fn remove_from_the_end(
    disk: &dyn Disk,
    names: &dyn DiskFolder,
    folder: &Path,
    segments: Vec<PathBuf>,
) -> Result<()> {
    let sync = || names.sync().map_err(Error::io("sync", folder));
    sync()?;
    for path in segments.iter().rev() {
        let found = disk.find(path).map_err(Error::io("read", path))?;
        if matches!(found, Some(Found::File { .. })) {
            let removed = disk.remove(path);
            removed.map_err(Error::io("remove", path))?;
            sync()?;
        }
    }
    Ok(())
}

/// Removes what was not finished when the process ended.
fn remove_unfinished(disk: &dyn Disk, folder: &Path) -> Result<()> {
    for name in [UNFINISHED, SPARE_UNFINISHED] {
        let path = folder.join(name);
        if let Ok(Some(Found::File { .. })) = disk.find(&path) {
            let removed = disk.remove(&path);
            removed.map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

fn find_spare(disk: &dyn Disk, path: &Path, segment_bytes: u64) -> Spare {
    match disk.find(path) {
        Ok(Some(Found::File { len })) if len == segment_bytes => {
            match disk.open(path, OpenMode::Existing) {
                Ok(file) => Spare::Ready(file),
                Err(_) => Spare::Absent,
            }
        }
        Ok(Some(_)) => {
            let _ = disk.remove(path);
            Spare::Absent
        }
        Ok(None) | Err(_) => Spare::Absent,
    }
}

/// The files that bear a segment's name.
fn segment_files(disk: &dyn Disk, folder: &Path) -> Result<Vec<(PathBuf, Arc<dyn DiskFile>)>> {
    let mut found = Vec::new();
    for name in disk.list(folder).map_err(Error::io("read", folder))? {
        let position = name.to_str().and_then(|name| name.strip_prefix("log-"));
        if position.is_none_or(|start| u64::from_str_radix(start, 16).is_err()) {
            continue;
        }
        let path = folder.join(&name);
        let file = disk.open(&path, OpenMode::Existing);
        let file = file.map_err(Error::io("open", &path))?;
        found.push((path, file));
    }
    Ok(found)
}

/// The log's segments, oldest first, their headers verified.
fn find_segments(disk: &dyn Disk, folder: &Path, id: StoreId) -> Result<VecDeque<Segment>> {
    let mut found = Vec::new();
    for (path, file) in segment_files(disk, folder)? {
        let (extent, owner) = read_segment_header(&*file, &path)?;
        let len = file.len().map_err(Error::io("read", &path))?;
        let segment = Segment {
            extent,
            path,
            file,
            is_dirty: false,
        };
        if owner != id {
            return Err(segment.corrupt(32, "it belongs to the log of another store"));
        }
        if !segment.path.ends_with(segment_name(extent.start)) {
            let what = format!("its header says that it starts at {:#x}", extent.start);
            return Err(segment.corrupt(16, what));
        }
        if len != extent.capacity {
            let what = format!(
                "it ends here, yet its header says {} bytes",
                extent.capacity
            );
            return Err(segment.corrupt(len, what));
        }
        found.push(segment);
    }
    found.sort_by_key(|segment| segment.extent.start);
    Ok(found.into())
}

fn read_segment_header(file: &dyn DiskFile, path: &Path) -> Result<(Extent, StoreId)> {
    let corrupt = |offset, what: &str| Error::Corrupt {
        path: path.to_path_buf(),
        offset,
        what: what.to_string(),
    };
    let mut header = [0; HEADER_FIELDS_LEN];
    match file.read_exact_at(&mut header, 0) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(corrupt(0, "it is too short for a log segment"));
        }
        Err(e) => return Err(Error::io("read", path)(e)),
    }
    if &header[..8] != MAGIC {
        return Err(corrupt(0, "it is no log segment"));
    }
    // Newer versions may lay the rest out anew, so the version comes before the checksum.
    let found = u32_at(&header, 8).unwrap_or(0);
    let (path, supported) = (path.to_path_buf(), FORMAT_VERSION);
    if found > supported {
        return Err(Error::NewerFormat {
            path,
            found,
            supported,
        });
    }
    if u64_at(&header, 56) != Some(XxHash3_64::oneshot(&header[..56])) {
        return Err(corrupt(56, "the checksum of its header is wrong"));
    }
    if found < supported {
        return Err(Error::OlderFormat {
            path,
            found,
            supported,
        });
    }
    match (
        u64_at(&header, 16),
        u64_at(&header, 24),
        u64_at(&header, 32),
    ) {
        (Some(start), Some(capacity), Some(id))
            if capacity >= SEGMENT_HEADER_LEN && start.checked_add(capacity).is_some() =>
        {
            Ok((Extent { start, capacity }, StoreId(id)))
        }
        _ => Err(corrupt(16, "its header gives no sensible extent")),
    }
}

/// Fails if a record behind `end` proves that `end` was once on disk: by what it says, or by lying
/// in a later segment, where nothing is written before the seal of the one before is on disk.
fn refuse_corrupt_middle<'a>(segments: impl Iterator<Item = &'a Segment>, end: u64) -> Result<()> {
    let mut place: Option<(PathBuf, u64)> = None;
    for (index, segment) in segments.enumerate() {
        let bytes = segment.read()?;
        let (path, offset) = place
            .get_or_insert_with(|| {
                (
                    segment.path.clone(),
                    end.saturating_sub(segment.extent.start),
                )
            })
            .clone();
        let first = end
            .saturating_sub(segment.extent.start)
            .max(SEGMENT_HEADER_LEN);
        for candidate in (first..bytes.len() as u64).step_by(8) {
            if let Some(header) = RecordHeader::read(&bytes, segment.extent.start, candidate)
                && (header.synced > end || index > 0)
            {
                let what = format!(
                    "no whole record is here, yet the record at {:#x} was written after it",
                    segment.extent.start + candidate
                );
                return Err(Error::Corrupt { path, offset, what });
            }
        }
    }
    Ok(())
}

struct RecordHeader {
    payload_len: u64,
    kind: u32,
    ts: CommitTs,
    synced: u64,
    payload_sum: u32,
}

impl RecordHeader {
    /// The header at an offset, if one is there that belongs there.
    fn read(segment: &[u8], start: u64, offset: u64) -> Option<RecordHeader> {
        let at = usize::try_from(offset).ok()?;
        let header = segment.get(at..at.checked_add(RECORD_HEADER_LEN as usize)?)?;
        let is_own = u64_at(header, 8)? == start.checked_add(offset)?
            && u32_at(header, 36)? == checksum(&header[..36]);
        is_own.then_some(RecordHeader {
            payload_len: u64::from(u32_at(header, 0)?),
            kind: u32_at(header, 4)?,
            ts: CommitTs(u64_at(header, 16)?),
            synced: u64_at(header, 24)?,
            payload_sum: u32_at(header, 32)?,
        })
    }
}

struct Record<'a> {
    kind: u32,
    ts: CommitTs,
    payload: &'a [u8],
}

impl<'a> Record<'a> {
    fn read(segment: &'a [u8], start: u64, offset: u64) -> Option<Record<'a>> {
        let header = RecordHeader::read(segment, start, offset)?;
        let from = usize::try_from(offset.checked_add(RECORD_HEADER_LEN)?).ok()?;
        let to = from.checked_add(usize::try_from(header.payload_len).ok()?)?;
        let payload = segment.get(from..to)?;
        (checksum(payload) == header.payload_sum).then_some(Record {
            kind: header.kind,
            ts: header.ts,
            payload,
        })
    }
}

/// What can be read of a segment.
pub(crate) struct Salvaged {
    pub path: PathBuf,
    /// Whose it is, if its header tells.
    pub id: Option<StoreId>,
    /// Where it begins and ends.
    pub positions: std::ops::Range<Lsn>,
    /// Commits, with their positions.
    pub records: Vec<(Lsn, Vec<u8>)>,
    /// From which position on something is lost, in words.
    pub losses: Vec<(Lsn, String)>,
}

/// Reads whatever the segments of a damaged log have, oldest first, and writes nothing.
pub(crate) fn salvage_log(folder: &Path) -> Result<Vec<Salvaged>> {
    let mut starts = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        let position = name.to_str().and_then(|name| name.strip_prefix("log-"));
        starts.extend(position.and_then(|start| u64::from_str_radix(start, 16).ok()));
    }
    starts.sort_unstable();
    let mut log: Vec<Salvaged> = Vec::new();
    let mut expected = starts.first().copied();
    for &start in &starts {
        let path = folder.join(segment_name(start));
        let (mut salvaged, next) = salvage_segment(&path, start)?;
        if let Some(before) = log.last_mut()
            && expected.is_none()
            && !salvaged.records.is_empty()
        {
            // Nothing is written here before the seal of the segment before is on disk.
            let what = "the commits at its end can't be read";
            let what = format!("{}: {what}", before.path.display());
            before.losses.push((before.positions.end, what));
        }
        if expected.is_some_and(|expected| expected != start) {
            let what = format!("the log segment before {} is missing", path.display());
            let from = expected.unwrap_or(start);
            salvaged.losses.insert(0, (Lsn(from), what));
        }
        expected = next;
        log.push(salvaged);
    }
    // A last segment that is sealed is not the last.
    if let (Some(next), Some(last)) = (expected, log.last_mut()) {
        let what = format!("{} is missing", folder.join(segment_name(next)).display());
        last.losses.push((Lsn(next), what));
    }
    Ok(log)
}

/// A segment, and where the next one begins, if it says that there is one.
fn salvage_segment(path: &Path, start: u64) -> Result<(Salvaged, Option<u64>)> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let mut salvaged = Salvaged {
        path: path.to_path_buf(),
        id: None,
        positions: Lsn(start)..Lsn(start + bytes.len() as u64),
        records: Vec::new(),
        losses: Vec::new(),
    };
    let lose = |salvaged: &mut Salvaged, offset: u64, what: String| {
        let what = format!("{} at offset {offset}: {what}", path.display());
        salvaged.losses.push((Lsn(start + offset), what));
    };
    let header = std::fs::File::open(path).map_err(Error::io("open", path))?;
    let mut capacity = bytes.len() as u64;
    let mut marked = 0;
    match read_segment_header(&header, path) {
        Ok((extent, id)) => {
            salvaged.id = Some(id);
            capacity = extent.capacity;
            salvaged.positions.end = Lsn(extent.end());
            match read_mark(extent, id, &bytes) {
                Some(mark) => marked = mark.0,
                None => lose(&mut salvaged, MARK_AT, "its mark is damaged".to_string()),
            }
        }
        Err(error @ (Error::NewerFormat { .. } | Error::OlderFormat { .. })) => return Err(error),
        Err(error) => lose(&mut salvaged, 0, error.to_string()),
    }
    if (bytes.len() as u64) < capacity {
        let what = format!("it ends here, and was {capacity} bytes long");
        lose(&mut salvaged, bytes.len() as u64, what);
    }
    let mut offset = SEGMENT_HEADER_LEN;
    loop {
        match Record::read(&bytes, start, offset) {
            Some(record) if record.kind == KIND_SEAL => {
                return Ok((salvaged, Some(start + capacity)));
            }
            Some(record) => {
                salvaged
                    .records
                    .push((Lsn(start + offset), record.payload.to_vec()));
                offset += record_len(record.payload.len() as u64);
            }
            None => {
                let later = (offset + 8..bytes.len() as u64)
                    .step_by(8)
                    .find(|at| Record::read(&bytes, start, *at).is_some());
                let Some(next) = later else { break };
                let what = format!("{} bytes of commits can't be read", next - offset);
                lose(&mut salvaged, offset, what);
                offset = next;
            }
        }
    }
    if start + offset < marked {
        let what = format!(
            "the commits from here up to position {} are lost",
            Lsn(marked)
        );
        lose(&mut salvaged, offset, what);
    }
    Ok((salvaged, None))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
