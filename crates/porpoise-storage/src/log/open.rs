//! Opening the log: finding its segments, replaying them, and telling a torn tail from damage.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::files::{LogFiles, UNFINISHED};
use super::preallocation::{PREALLOCATED, PREALLOCATED_UNFINISHED, Preallocated};
use super::record::{KIND_SEAL, Record, RecordHeader, record_len};
use super::rewrite::{ReplayedSegment, remove_from_the_end};
use super::segment::{
    LogSegment, MARK_AT, SEGMENT_BYTES_MIN, SEGMENT_HEADER_LEN, SegmentFile, find_segments,
    is_zeros, read_mark, segment_files, segment_name,
};
use super::tail::LogTail;
use crate::disk::{Disk, Metadata};
use crate::{CommitTs, Error, Lsn, Result, StoreId};

/// A commit's record, as a start reads it.
pub(crate) struct Replayed<'r> {
    pub ts: CommitTs,
    /// The position behind it.
    pub end: Lsn,
    pub payload: &'r [u8],
    file: &'r SegmentFile,
    offset: u64,
}

impl Replayed<'_> {
    /// The error for a record that makes no sense.
    pub fn corrupt(&self, what: String) -> Error {
        self.file.corrupt(self.offset, what)
    }
}

/// Reads the log from a position on, gives each commit to `replay`, cuts a torn tail, and leaves
/// the log ready to be written to.
///
/// Fails with [`Error::Corrupt`] if a segment is missing or damaged, or if `replay` refuses a
/// record.
pub(crate) fn open_log(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    id: StoreId,
    segment_bytes: u64,
    from: Lsn,
    replay: impl FnMut(Replayed<'_>) -> Result<()>,
) -> Result<(LogFiles, LogTail)> {
    let mut files = LogFiles::new(disk, folder, id, segment_bytes)?;
    remove_unfinished(&**disk, folder)?;
    let mut segments = find_segments(&**disk, folder, id)?;
    remove_checkpointed(&**disk, &mut segments, from)?;
    check_no_gap(&segments, folder, from)?;
    let replayed = replay_segments(&segments, folder, id, from, replay)?;
    let last = replayed.last.index;
    check_end(&segments, &replayed)?;
    // What follows the end was never acknowledged.
    let torn = segments.iter().skip(last + 1).map(|s| s.path.clone());
    remove_from_the_end(&**disk, &*files.names, folder, torn.collect())?;
    let segment = segments[last].segment;
    segments.truncate(last + 1);
    files.segments = segments;
    files.marked = replayed.marked;
    let preallocated = folder.join(PREALLOCATED);
    files.preallocated = Preallocated::find(&**disk, &preallocated, segment_bytes, &files.segments);
    files.acknowledged.lsn = Lsn(replayed.end);
    let offset = replayed.end - segment.start;
    // The process that sealed the one before may have been killed before it was synced.
    if let Some(sealed) = &replayed.sealed_before
        && offset == SEGMENT_HEADER_LEN
    {
        files.write_again(sealed)?;
    }
    match replayed.ends_in_zeros {
        true => files.write_again(&replayed.last)?,
        false => files.cut_torn_tail(&replayed.last.bytes)?,
    }
    files.note_space();
    Ok((files, LogTail::at(segment, offset, segment_bytes)))
}

/// What was read of the log.
struct ReplayedLog {
    /// The position behind the last whole record.
    end: u64,
    /// The farthest of the segments' marks.
    marked: Lsn,
    /// The segment that has the end.
    last: ReplayedSegment,
    /// The one before it.
    sealed_before: Option<ReplayedSegment>,
    /// Nothing lies behind the end: nothing to look for there, and nothing to wipe.
    ends_in_zeros: bool,
}

/// Reads records until one isn't whole, and gives each commit to `replay`.
fn replay_segments(
    segments: &VecDeque<SegmentFile>,
    folder: &Path,
    id: StoreId,
    from: Lsn,
    mut replay: impl FnMut(Replayed<'_>) -> Result<()>,
) -> Result<ReplayedLog> {
    let mut at = from.0;
    let mut marked = Lsn(0);
    let (mut last, mut sealed_before): (Option<ReplayedSegment>, Option<ReplayedSegment>) =
        (None, None);
    let mut ends_in_zeros = false;
    for (index, file) in segments.iter().enumerate() {
        let segment = file.segment;
        let mut bytes = file.read()?;
        let mark = read_mark(segment, id, &bytes)
            .ok_or_else(|| file.corrupt(MARK_AT, "the checksum of its mark is wrong"))?;
        marked = marked.max(mark);
        let needed_from = (at - segment.start).max(SEGMENT_HEADER_LEN);
        let (offset, is_sealed) = replay_records(file, &bytes, needed_from, &mut replay)?;
        at = segment.start + offset;
        if !is_sealed {
            let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
            ends_in_zeros = index + 1 == segments.len() && rest.is_some_and(is_zeros);
        }
        bytes.truncate(usize::try_from(offset).unwrap_or(usize::MAX));
        sealed_before = last.replace(ReplayedSegment {
            index,
            bytes,
            from: needed_from,
        });
        if !is_sealed {
            break;
        }
        at = segment.end();
        if index + 1 == segments.len() {
            return Err(missing(folder, at, "yet the one before it goes on there"));
        }
    }
    let Some(last) = last else {
        return Err(missing(folder, at, "and so are all others"));
    };
    Ok(ReplayedLog {
        end: at,
        marked,
        last,
        sealed_before,
        ends_in_zeros,
    })
}

/// Replays a segment's records from an offset on. Gives the offset behind the last, and whether
/// that one is the seal.
fn replay_records(
    file: &SegmentFile,
    bytes: &[u8],
    mut offset: u64,
    replay: &mut impl FnMut(Replayed<'_>) -> Result<()>,
) -> Result<(u64, bool)> {
    while let Some(record) = Record::read(bytes, file.segment.start, offset) {
        offset += record_len(record.payload.len() as u64);
        if record.kind == KIND_SEAL {
            return Ok((offset, true));
        }
        replay(Replayed {
            ts: record.ts,
            end: Lsn(file.segment.start + offset),
            payload: record.payload,
            file,
            offset,
        })?;
    }
    Ok((offset, false))
}

/// Fails if the log was on disk beyond its last whole record: it is damaged there, not torn.
fn check_end(segments: &VecDeque<SegmentFile>, replayed: &ReplayedLog) -> Result<()> {
    let last = &segments[replayed.last.index];
    if replayed.end < replayed.marked.0 {
        let what = format!(
            "no whole record is here, yet the log was on disk up to {}",
            replayed.marked
        );
        let offset = replayed.end.saturating_sub(last.segment.start);
        return Err(last.corrupt(offset, what));
    }
    if !replayed.ends_in_zeros {
        check_no_later_record(segments.range(replayed.last.index..), replayed.end)?;
    }
    Ok(())
}

/// Fails if a record behind `end` proves that `end` was once on disk: by what it says, or by lying
/// in a later segment, where nothing is written before the seal of the one before is on disk.
fn check_no_later_record<'a>(
    mut segments: impl Iterator<Item = &'a SegmentFile>,
    end: u64,
) -> Result<()> {
    let Some(last) = segments.next() else {
        return Ok(());
    };
    for (index, file) in std::iter::once(last).chain(segments).enumerate() {
        let bytes = file.read()?;
        let start = file.segment.start;
        let first = end.saturating_sub(start).max(SEGMENT_HEADER_LEN);
        for candidate in (first..bytes.len() as u64).step_by(8) {
            if let Some(header) = RecordHeader::read(&bytes, start, candidate)
                && (header.synced.0 > end || index > 0)
            {
                let what = format!(
                    "no whole record is here, yet the record at {:#x} was written after it",
                    start + candidate
                );
                let offset = end.saturating_sub(last.segment.start);
                return Err(last.corrupt(offset, what));
            }
        }
    }
    Ok(())
}

/// Fails unless there is a segment for every position from this one on, up to the last segment.
fn check_no_gap(segments: &VecDeque<SegmentFile>, folder: &Path, from: Lsn) -> Result<()> {
    let Some(first) = segments.front() else {
        return Err(missing(folder, from.0, "and so are all others"));
    };
    for (one, next) in segments.iter().zip(segments.iter().skip(1)) {
        if one.segment.end() != next.segment.start {
            let at = one.segment.end();
            let what = format!("the log segment before it, at {at:#x}, is missing");
            return Err(next.corrupt(0, what));
        }
    }
    if !(first.segment.start..=first.segment.end()).contains(&from.0) {
        let what = format!("the log starts here, but is needed from position {from}");
        return Err(first.corrupt(0, what));
    }
    Ok(())
}

fn missing(folder: &Path, position: u64, why: &str) -> Error {
    let path = folder.join(segment_name(position));
    Error::corrupt(path, 0, format!("this log segment is missing, {why}"))
}

/// Makes the first segment of a new store's log.
pub(crate) fn create_log(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    id: StoreId,
    segment_bytes: u64,
) -> Result<()> {
    let mut files = LogFiles::new(disk, folder, id, segment_bytes)?;
    files.add_segment(LogSegment {
        start: 0,
        capacity: segment_bytes.max(SEGMENT_BYTES_MIN),
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
            let what = format!("it is missing, yet {} is there", path.display());
            return Err(Error::corrupt(tree, 0, what));
        }
        disk.remove(&path).map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

/// Removes the segments that a checkpoint has put behind it. None of the rest may be missing.
fn remove_checkpointed(
    disk: &dyn Disk,
    segments: &mut VecDeque<SegmentFile>,
    from: Lsn,
) -> Result<()> {
    while segments.len() > 1 && segments[0].segment.end() <= from.0 {
        if let Some(past) = segments.pop_front() {
            let removed = disk.remove(&past.path);
            removed.map_err(Error::io("remove", &past.path))?;
        }
    }
    Ok(())
}

/// Removes what was not finished when the process ended.
fn remove_unfinished(disk: &dyn Disk, folder: &Path) -> Result<()> {
    for name in [UNFINISHED, PREALLOCATED_UNFINISHED] {
        let path = folder.join(name);
        if let Ok(Some(Metadata::File { .. })) = disk.metadata(&path) {
            let removed = disk.remove(&path);
            removed.map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}
