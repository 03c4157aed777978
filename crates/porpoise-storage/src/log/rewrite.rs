//! Replacing the end of the log after a failed write or sync, or after a power cut.
//!
//! A file whose sync has failed can't be relied on any more: the failed sync may have dropped what
//! was to be written, and forgotten that there was anything. So the whole records of a segment are
//! written to another file, which replaces the segment when all of it is on disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{LogFiles, UNFINISHED};
use super::preallocation::{PREALLOCATED, Preallocated};
use super::record::RECORD_HEADER_LEN;
use super::segment::{LogSegment, fill_with_zeros, segment_header, segment_name};
use super::tail::SegmentWrite;
use crate::disk::{Disk, DiskFile, DiskFolder, Metadata, OpenMode};
use crate::{Error, Lsn, Result};

/// What a start has read of a segment.
pub(super) struct ReplayedSegment {
    /// Which of the segments.
    pub index: usize,
    /// The bytes up to the end of its last record.
    pub bytes: Vec<u8>,
    /// The offset from which on it was needed.
    pub from: u64,
}

impl LogFiles {
    /// After a failed write: makes what may have reached the file unreadable, as far as possible.
    ///
    /// From the last write on, each on disk before the one before it: no record may be left in a
    /// segment behind one that isn't sealed any more.
    pub fn erase(&mut self, writes: &[SegmentWrite]) {
        for (index, write) in writes.iter().enumerate().rev() {
            let Some(file) = self
                .segments
                .iter()
                .find(|file| file.segment == write.segment)
            else {
                continue;
            };
            // In the first segment the records behind an unreadable one are never looked for; in
            // later segments they are.
            let len = match index {
                0 => RECORD_HEADER_LEN,
                _ => write.len,
            };
            let wiped = fill_with_zeros(&*file.file, write.offset, write.offset + len);
            if wiped.and_then(|()| file.file.sync_data()).is_err() {
                return;
            }
        }
    }

    /// After a failed write or sync: makes the log end at what was acknowledged, in a new file.
    ///
    /// What the segment holds up to there is read back and verified record by record first. `from`
    /// is where a start would begin to read. Gives the segment in which the log ends now.
    pub fn rewrite_tail(&mut self, from: Lsn) -> Result<LogSegment> {
        let end = self.acknowledged.lsn.0;
        let holds_end = |s: LogSegment| s.start < end && end < s.end();
        let Some(index) = self.segments.iter().position(|s| holds_end(s.segment)) else {
            let what = "no log segment has the end of the log";
            return Err(Error::corrupt(&self.folder, end, what));
        };
        let last = &self.segments[index];
        let (segment, path) = (last.segment, last.path.clone());
        let bytes = last.read_up_to(from, end)?;
        self.empty_behind(index)?;
        let file = self.write_copy(&bytes, segment, &path)?;
        // The one after the last may be there, too: it was made, but its name was not synced.
        let made = self.segments.back().map_or(segment, |last| last.segment);
        let next = self.folder.join(segment_name(made.end()));
        let behind = self.segments.iter().skip(index + 1).map(|s| s.path.clone());
        let names = behind.chain([next]).collect();
        remove_from_the_end(&*self.disk, &*self.names, &self.folder, names)?;
        self.segments.truncate(index + 1);
        if let Some(last) = self.segments.back_mut() {
            last.file = file;
            last.is_dirty = false;
        }
        self.note_space();
        Ok(segment)
    }

    /// Puts empty segments in the place of those behind one, the last first. So whenever this is
    /// cut short the log ends in an empty segment, or where it did: a segment that is sealed has
    /// the next one, and one that isn't has no records behind it.
    fn empty_behind(&mut self, index: usize) -> Result<()> {
        for behind in (index + 1..self.segments.len()).rev() {
            let (segment, path) = {
                let file = &self.segments[behind];
                (file.segment, file.path.clone())
            };
            let header = segment_header(segment, self.id);
            let file = self.write_copy(&header, segment, &path)?;
            self.sync_names()?;
            if let Some(segment) = self.segments.get_mut(behind) {
                segment.file = file;
                segment.is_dirty = false;
            }
        }
        Ok(())
    }

    /// Writes what a start has read to a segment once more, and syncs it. It may have come from the
    /// system's memory only: the process before was killed, or had a sync fail, and then no sync
    /// will ever write it unless it is written anew.
    pub(super) fn write_again(&self, read: &ReplayedSegment) -> Result<()> {
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

    /// Ends the last segment behind these bytes, with zeros. In another file, so that a cut that
    /// fails leaves no zeros that can be seen but are not on disk; in place if there is no room for
    /// one.
    pub(super) fn cut_torn_tail(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(last) = self.segments.back() else {
            return Ok(());
        };
        let (segment, path, old) = (last.segment, last.path.clone(), Arc::clone(&last.file));
        let file = match self.write_copy(bytes, segment, &path) {
            Ok(file) => file,
            Err(error) if error.is_disk_full() => {
                let file = old;
                file.write_all_at(bytes, 0)
                    .and_then(|()| fill_with_zeros(&*file, bytes.len() as u64, segment.capacity))
                    .and_then(|()| file.sync_all())
                    .map_err(Error::io("write to", &path))?;
                file
            }
            Err(error) => return Err(error),
        };
        if let Some(last) = self.segments.back_mut() {
            last.file = file;
        }
        self.sync_names()
    }

    /// Writes a whole segment to another file, the preallocated one if there is one, and renames it
    /// over the segment.
    fn write_copy(
        &mut self,
        bytes: &[u8],
        segment: LogSegment,
        path: &Path,
    ) -> Result<Arc<dyn DiskFile>> {
        let preallocated = self.preallocated_of(segment.capacity);
        let is_preallocated = preallocated.is_some();
        let name = match is_preallocated {
            true => PREALLOCATED,
            false => UNFINISHED,
        };
        let source = self.folder.join(name);
        let make = || -> io::Result<Arc<dyn DiskFile>> {
            let file = match preallocated {
                Some(file) => file,
                None => self
                    .descriptors
                    .open(&*self.disk, &source, OpenMode::Truncated)?,
            };
            file.write_all_at(bytes, 0)?;
            fill_with_zeros(&*file, bytes.len() as u64, segment.capacity)?;
            file.sync_all()?;
            self.disk.rename(&source, path)?;
            Ok(file)
        };
        let made = make();
        match (&made, is_preallocated) {
            // A file whose sync has failed can't be relied on any more.
            (Ok(_) | Err(_), true) => self.preallocated = Preallocated::Absent,
            (Err(_), false) => {
                let _ = self.disk.remove(&source);
            }
            (Ok(_), false) => {}
        }
        self.note_space();
        made.map_err(Error::io("write to", &source))
    }
}

/// Removes segments, the last one first and each for good before the next: there is never a hole
/// between those that are found. Whatever else was renamed or removed before is on disk, too.
pub(super) fn remove_from_the_end(
    disk: &dyn Disk,
    names: &dyn DiskFolder,
    folder: &Path,
    segments: Vec<PathBuf>,
) -> Result<()> {
    let sync = || names.sync().map_err(Error::io("sync", folder));
    sync()?;
    for path in segments.iter().rev() {
        let found = disk.metadata(path).map_err(Error::io("read", path))?;
        if matches!(found, Some(Metadata::File { .. })) {
            let removed = disk.remove(path);
            removed.map_err(Error::io("remove", path))?;
            sync()?;
        }
    }
    Ok(())
}
