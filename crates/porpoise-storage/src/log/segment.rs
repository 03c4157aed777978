//! Segment files of the log: names, headers and marks.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::record::{Record, record_len};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::little_endian::{u32_at, u64_at};
use crate::{Error, Lsn, Result, StoreId};

const FORMAT_VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"PORPLOG\0";
/// A segment's header, in a sector of its own, and its mark, in another.
pub(super) const SEGMENT_HEADER_LEN: u64 = 1024;
/// No segment is shorter.
pub(super) const SEGMENT_BYTES_MIN: u64 = 8192;
const HEADER_FIELDS_LEN: usize = 64;
/// Where the mark begins.
pub(super) const MARK_AT: u64 = 512;
const MARK_LEN: usize = 512;

/// Where a segment lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogSegment {
    /// The position of the file's first byte.
    pub(super) start: u64,
    /// The length of the file.
    pub(super) capacity: u64,
}

impl LogSegment {
    /// The position of the next segment's first byte.
    pub fn end(self) -> u64 {
        self.start + self.capacity
    }
}

/// A segment's file.
pub(super) struct SegmentFile {
    pub segment: LogSegment,
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Written to since its last sync.
    pub is_dirty: bool,
}

impl SegmentFile {
    pub fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corrupt(&self.path, offset, what)
    }

    pub fn sync(&mut self) -> Result<()> {
        let synced = self.file.sync_data();
        synced.map_err(Error::io("sync", &self.path))?;
        self.is_dirty = false;
        Ok(())
    }

    /// The bytes up to the position `end`; fails unless they are whole records from `from` to
    /// exactly there.
    pub fn read_up_to(&self, from: Lsn, end: u64) -> Result<Vec<u8>> {
        let mut bytes = self.read()?;
        let len = end - self.segment.start;
        let first = from.0.saturating_sub(self.segment.start);
        let mut offset = first.clamp(SEGMENT_HEADER_LEN, len);
        while offset < len
            && let Some(record) = Record::read(&bytes, self.segment.start, offset)
        {
            offset += record_len(record.payload.len() as u64);
        }
        if offset != len || bytes.len() as u64 != self.segment.capacity {
            return Err(self.corrupt(offset, "what was written here can't be read back"));
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }

    pub fn read(&self) -> Result<Vec<u8>> {
        self.file.read_all().map_err(Error::io("read", &self.path))
    }
}

/// The file name of the segment that begins at a position.
pub(super) fn segment_name(start: u64) -> String {
    format!("log-{start:016x}")
}

/// The position in a segment's file name; `None` for other files' names.
pub(super) fn position_in_name(name: &std::ffi::OsStr) -> Option<u64> {
    let position = name.to_str()?.strip_prefix("log-")?;
    u64::from_str_radix(position, 16).ok()
}

/// The files that have a segment's name, open.
pub(super) fn segment_files(
    disk: &dyn Disk,
    folder: &Path,
) -> Result<Vec<(PathBuf, Arc<dyn DiskFile>)>> {
    let mut found = Vec::new();
    for name in disk.list(folder).map_err(Error::io("read", folder))? {
        if position_in_name(&name).is_none() {
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
pub(super) fn find_segments(
    disk: &dyn Disk,
    folder: &Path,
    id: StoreId,
) -> Result<VecDeque<SegmentFile>> {
    let mut found = Vec::new();
    for (path, file) in segment_files(disk, folder)? {
        let (segment, owner) = read_segment_header(&*file, &path)?;
        let len = file.len().map_err(Error::io("read", &path))?;
        let segment = SegmentFile {
            segment,
            path,
            file,
            is_dirty: false,
        };
        let LogSegment { start, capacity } = segment.segment;
        if owner != id {
            return Err(segment.corrupt(32, "it belongs to the log of another store"));
        }
        if !segment.path.ends_with(segment_name(start)) {
            let what = format!("its header says that it starts at {start:#x}");
            return Err(segment.corrupt(16, what));
        }
        if len != capacity {
            let what = format!("it ends here, yet its header says {capacity} bytes");
            return Err(segment.corrupt(len, what));
        }
        found.push(segment);
    }
    found.sort_by_key(|segment| segment.segment.start);
    Ok(found.into())
}

/// Writes the header and mark of a segment that has no records yet.
pub(super) fn write_segment_header(
    file: &dyn DiskFile,
    segment: LogSegment,
    id: StoreId,
) -> io::Result<()> {
    file.write_all_at(&segment_header(segment, id), 0)
}

/// The header of a segment that has no records yet, and its mark.
pub(super) fn segment_header(
    segment: LogSegment,
    id: StoreId,
) -> [u8; SEGMENT_HEADER_LEN as usize] {
    let mut header = [0; SEGMENT_HEADER_LEN as usize];
    header[0..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&segment.start.to_le_bytes());
    header[24..32].copy_from_slice(&segment.capacity.to_le_bytes());
    header[32..40].copy_from_slice(&id.0.to_le_bytes());
    let sum = XxHash3_64::oneshot(&header[..56]);
    header[56..64].copy_from_slice(&sum.to_le_bytes());
    // A recycled segment loses its old mark. There always is a mark: one of zeros is damaged.
    let mark = mark_bytes(segment, id, Lsn(segment.start));
    header[MARK_AT as usize..][..mark.len()].copy_from_slice(&mark);
    header
}

/// The segment that a file's header describes, and the store that it belongs to.
///
/// Fails with [`Error::NewerFormat`], [`Error::OlderFormat`] or [`Error::Corrupt`] if the header
/// isn't one of this version.
pub(super) fn read_segment_header(
    file: &dyn DiskFile,
    path: &Path,
) -> Result<(LogSegment, StoreId)> {
    let corrupt = |offset, what: &str| Error::corrupt(path, offset, what);
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
    if found > FORMAT_VERSION {
        return Err(Error::newer_format(path, found, FORMAT_VERSION));
    }
    if u64_at(&header, 56) != Some(XxHash3_64::oneshot(&header[..56])) {
        return Err(corrupt(56, "the checksum of its header is wrong"));
    }
    if found < FORMAT_VERSION {
        return Err(Error::older_format(path, found, FORMAT_VERSION));
    }
    match (
        u64_at(&header, 16),
        u64_at(&header, 24),
        u64_at(&header, 32),
    ) {
        (Some(start), Some(capacity), Some(id))
            if capacity >= SEGMENT_HEADER_LEN && start.checked_add(capacity).is_some() =>
        {
            Ok((LogSegment { start, capacity }, StoreId(id)))
        }
        _ => Err(corrupt(16, "its header gives no sensible extent")),
    }
}

/// Notes in a segment that the log was on disk up to a position.
pub(super) fn write_mark(
    file: &dyn DiskFile,
    segment: LogSegment,
    id: StoreId,
    synced: Lsn,
) -> io::Result<()> {
    file.write_all_at(&mark_bytes(segment, id, synced), MARK_AT)
}

/// What a segment's mark says, if its checksum is right.
pub(super) fn read_mark(segment: LogSegment, id: StoreId, bytes: &[u8]) -> Option<Lsn> {
    let at = MARK_AT as usize;
    let synced = Lsn(u64_at(bytes, at)?);
    (u64_at(bytes, at + 8)? == mark_checksum(segment, id, synced)).then_some(synced)
}

/// A whole sector, which a disk writes or doesn't.
fn mark_bytes(segment: LogSegment, id: StoreId, synced: Lsn) -> [u8; MARK_LEN] {
    let mut mark = [0; MARK_LEN];
    mark[..8].copy_from_slice(&synced.0.to_le_bytes());
    mark[8..16].copy_from_slice(&mark_checksum(segment, id, synced).to_le_bytes());
    mark
}

fn mark_checksum(segment: LogSegment, id: StoreId, synced: Lsn) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&segment.start.to_le_bytes());
    bytes[8..16].copy_from_slice(&id.0.to_le_bytes());
    bytes[16..].copy_from_slice(&synced.0.to_le_bytes());
    XxHash3_64::oneshot(&bytes)
}

pub(super) fn fill_with_zeros(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 18];
    let mut at = from;
    while at < to {
        let len = (to - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..len as usize], at)?;
        at += len;
    }
    Ok(())
}

pub(super) fn is_zeros(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|chunk| *chunk == ZEROS[..chunk.len()])
}
