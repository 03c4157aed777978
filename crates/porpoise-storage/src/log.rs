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
//! end before it. Either way the store refuses to start. A torn tail is overwritten with zeros, so
//! that its remains can never be read again.
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

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::disk::{Disk, DiskFile, Found, OpenMode};
use crate::{CommitTs, Error, Lsn, Result, StoreId};

pub(crate) const FORMAT_VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"PORPLOG\0";
/// A segment's header, in a sector of its own, and its mark, in another.
pub(crate) const SEGMENT_HEADER_LEN: u64 = 1024;
const HEADER_FIELDS_LEN: usize = 64;
const MARK_AT: u64 = 512;
pub(crate) const RECORD_HEADER_LEN: u64 = 40;
/// A payload's length fits its field, with room to round up.
pub(crate) const PAYLOAD_LEN_MAX: u64 = u32::MAX as u64 - 7;
const SPARE: &str = "log.spare";
const UNFINISHED: &str = "log.unfinished";

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
    id: StoreId,
    segment_bytes: u64,
    /// What the last mark says.
    marked: Lsn,
    /// Oldest first; the last is the one written to.
    segments: VecDeque<Segment>,
    has_spare: bool,
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

    fn read(&self) -> Result<Vec<u8>> {
        self.file.read_all().map_err(Error::io("read", &self.path))
    }
}

impl LogFiles {
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
            None => {
                self.sync()?;
                self.add_segment(extent)
            }
        }
    }

    /// Fails if the disk has no room for the segments that are still to be made, up to this one. Who
    /// is refused now has written nothing; a disk that turns out to be full while a batch is written
    /// ends all writing.
    pub fn check_room(&self, up_to: Extent) -> Result<()> {
        let made = self.segments.back().map_or(0, |last| last.extent.end());
        let spare = u64::from(self.has_spare) * self.segment_bytes;
        let needed = up_to.end().saturating_sub(made).saturating_sub(spare);
        let free = || self.disk.free_bytes(&self.folder);
        if needed == 0 || free().is_none_or(|free| free >= needed + SLACK_BYTES) {
            return Ok(());
        }
        let full = io::Error::from(io::ErrorKind::StorageFull);
        Err(Error::io("make room for the log in", &self.folder)(full))
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
    pub fn disown(&mut self, parts: &[Part]) {
        let Some(first) = parts.first() else { return };
        if let Some(segment) = self.segments.iter().find(|s| s.extent == first.segment) {
            let nothing = [0; RECORD_HEADER_LEN as usize];
            let _ = segment.file.write_all_at(&nothing, first.offset);
            let _ = segment.file.sync_data();
        }
    }

    fn add_segment(&mut self, extent: Extent) -> Result<()> {
        let path = self.folder.join(segment_name(extent.start));
        let spare = self.folder.join(SPARE);
        let file = if self.has_spare && extent.capacity == self.segment_bytes {
            self.has_spare = false;
            let opened = self.disk.open(&spare, OpenMode::Existing);
            let file = opened.map_err(Error::io("open", &spare))?;
            write_segment_header(&*file, extent, self.id)
                .and_then(|()| file.sync_all())
                .and_then(|()| self.disk.rename(&spare, &path))
                .map_err(Error::io("write to", &spare))?;
            file
        } else {
            let unfinished = self.folder.join(UNFINISHED);
            let make = || -> io::Result<Arc<dyn DiskFile>> {
                let file = zero_filled(&*self.disk, &unfinished, extent.capacity)?;
                write_segment_header(&*file, extent, self.id)?;
                file.sync_all()?;
                self.disk.rename(&unfinished, &path)?;
                Ok(file)
            };
            make().map_err(|e| {
                let _ = self.disk.remove(&unfinished);
                Error::io("create", &path)(e)
            })?
        };
        sync_folder(&*self.disk, &self.folder)?;
        self.segments.push_back(Segment {
            extent,
            path,
            file,
            is_dirty: false,
        });
        Ok(())
    }

    /// Drops the segments that end before the position. One is kept to be used again.
    pub fn drop_before(&mut self, lsn: Lsn) -> Result<()> {
        while self.segments.len() > 1
            && self
                .segments
                .front()
                .is_some_and(|first| first.extent.end() <= lsn.0)
        {
            let Some(first) = self.segments.pop_front() else {
                break;
            };
            if !self.has_spare && first.extent.capacity == self.segment_bytes {
                let spare = self.folder.join(SPARE);
                let renamed = self.disk.rename(&first.path, &spare);
                renamed.map_err(Error::io("rename", &first.path))?;
                self.has_spare = true;
            } else {
                let removed = self.disk.remove(&first.path);
                removed.map_err(Error::io("remove", &first.path))?;
            }
        }
        Ok(())
    }

    /// What a spare segment takes to make, if it is time to have one.
    pub fn wants_spare(&self, tail: Lsn) -> Option<(PathBuf, u64)> {
        let last = self.segments.back()?;
        let used = tail.0.saturating_sub(last.extent.start);
        let is_time = !self.has_spare && used > last.extent.capacity / 2;
        // Not with the last room that there is: commits have counted on it.
        let has_room = || {
            let free = self.disk.free_bytes(&self.folder);
            free.is_none_or(|free| free >= 2 * self.segment_bytes + SLACK_BYTES)
        };
        (is_time && has_room()).then(|| (self.folder.clone(), self.segment_bytes))
    }

    pub fn adopt_spare(&mut self, made: &Path) -> Result<()> {
        let spare = self.folder.join(SPARE);
        let renamed = self.disk.rename(made, &spare);
        renamed.map_err(Error::io("rename", made))?;
        self.has_spare = true;
        Ok(())
    }
}

/// Makes a file of zeros that can become a segment. Slow; done where nobody waits.
pub(crate) fn make_spare(disk: &dyn Disk, folder: &Path, capacity: u64) -> Result<PathBuf> {
    let path = folder.join("log.spare.unfinished");
    zero_filled(disk, &path, capacity).map_err(|e| {
        let _ = disk.remove(&path);
        Error::io("create", &path)(e)
    })?;
    Ok(path)
}

fn zero_filled(disk: &dyn Disk, path: &Path, capacity: u64) -> io::Result<Arc<dyn DiskFile>> {
    let file = disk.open(path, OpenMode::Truncated)?;
    fill_with_zeros(&*file, 0, capacity)?;
    file.sync_all()?;
    Ok(file)
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
    file.write_all_at(&header, 0)
}

fn write_mark(file: &dyn DiskFile, extent: Extent, id: StoreId, synced: Lsn) -> io::Result<()> {
    file.write_all_at(&mark_bytes(extent, id, synced), MARK_AT)
}

fn mark_bytes(extent: Extent, id: StoreId, synced: Lsn) -> [u8; 16] {
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&synced.0.to_le_bytes());
    mark[8..].copy_from_slice(&mark_sum(extent, id, synced).to_le_bytes());
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
    let mut last = 0;
    let mut marked = Lsn(0);
    // Nothing lies behind the end: nothing to look for there, and nothing to wipe.
    let mut ends_in_zeros = false;
    for (index, segment) in segments.iter().enumerate() {
        let bytes = segment.read()?;
        let mark = read_mark(segment.extent, id, &bytes)
            .ok_or_else(|| segment.corrupt(MARK_AT, "the checksum of its mark is wrong"))?;
        marked = marked.max(mark);
        let mut offset = (at - segment.extent.start).max(SEGMENT_HEADER_LEN);
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
        last = index;
        at = segment.extent.start + offset;
        if !is_sealed {
            let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
            ends_in_zeros = index + 1 == segments.len()
                && bytes.len() as u64 == segment.extent.capacity
                && rest.is_some_and(is_zeros);
            break;
        }
        at = segment.extent.end();
        if index + 1 == segments.len() {
            return Err(missing(folder, at, "yet the one before it goes on there"));
        }
    }
    if let Some(segment) = segments.get(last)
        && at < marked.0
    {
        let what = format!("no whole record is here, yet the log was on disk up to {marked}");
        return Err(segment.corrupt(at.saturating_sub(segment.extent.start), what));
    }
    if !ends_in_zeros {
        refuse_corrupt_middle(segments.range(last.min(segments.len())..), at)?;
    }
    let mut files = LogFiles {
        disk: Arc::clone(disk),
        folder: folder.to_path_buf(),
        id,
        segment_bytes,
        marked,
        segments: VecDeque::new(),
        has_spare: is_usable_spare(&**disk, &folder.join(SPARE), segment_bytes),
    };
    // What follows the end was never acknowledged.
    for torn in segments.range((last + 1).min(segments.len())..) {
        let removed = disk.remove(&torn.path);
        removed.map_err(Error::io("remove", &torn.path))?;
    }
    segments.truncate(last + 1);
    files.segments = segments;
    let (segment, offset) = match files.segments.back() {
        Some(tail) => {
            let offset = at - tail.extent.start;
            let wiped = match ends_in_zeros {
                true => Ok(()),
                false => fill_with_zeros(&*tail.file, offset, tail.extent.capacity),
            };
            // The zeros may be those of an open that was cut short: on their way to the disk only.
            wiped
                .and_then(|()| tail.file.sync_all())
                .map_err(Error::io("write to", &tail.path))?;
            (tail.extent, offset)
        }
        None => return Err(missing(folder, at, "and so are all others")),
    };
    sync_folder(&**disk, folder)?;
    let tail = Tail {
        segment,
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
    let mut files = LogFiles {
        disk: Arc::clone(disk),
        folder: folder.to_path_buf(),
        id,
        segment_bytes,
        marked: Lsn(0),
        segments: VecDeque::new(),
        has_spare: false,
    };
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

fn is_usable_spare(disk: &dyn Disk, path: &Path, segment_bytes: u64) -> bool {
    match disk.find(path) {
        Ok(Some(Found::File { len })) if len == segment_bytes => true,
        Ok(Some(_)) => {
            let _ = disk.remove(path);
            false
        }
        Ok(None) | Err(_) => false,
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
