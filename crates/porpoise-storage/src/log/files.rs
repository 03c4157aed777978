//! The log's open segments: writing, syncing, marking.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::descriptors::DescriptorReserve;
use super::preallocation::{PREALLOCATED, Preallocated};
use super::segment::{
    LogSegment, SEGMENT_BYTES_MIN, SegmentFile, fill_with_zeros, segment_name, write_mark,
    write_segment_header,
};
use super::space::LogSpace;
use super::tail::SegmentWrite;
use crate::disk::{Disk, DiskFile, DiskFolder, OpenMode};
use crate::{CommitTs, Error, Lsn, Result, StoreId};

/// A segment or a copy of one while it isn't complete.
pub(super) const UNFINISHED: &str = "log.unfinished";

/// The log's files.
pub(crate) struct LogFiles {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) folder: PathBuf,
    /// The folder, open: a new name must be on disk even if there is no descriptor left.
    pub(super) names: Arc<dyn DiskFolder>,
    pub(super) id: StoreId,
    /// The length of new segments.
    pub(super) segment_bytes: u64,
    /// What the last mark says.
    pub(super) marked: Lsn,
    /// Oldest first; the last is the one written to.
    pub(super) segments: VecDeque<SegmentFile>,
    pub(super) preallocated: Preallocated,
    pub(super) acknowledged: AcknowledgedEnd,
    space: Arc<LogSpace>,
    pub(super) descriptors: DescriptorReserve,
}

/// An end of the log behind which everything was written, and synced if that was asked for: how far
/// the log is known to hold what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedEnd {
    pub lsn: Lsn,
    /// The last commit before it.
    pub ts: CommitTs,
}

impl LogFiles {
    /// The log of a folder, no segment of it open yet.
    pub(super) fn new(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        id: StoreId,
        segment_bytes: u64,
    ) -> Result<Self> {
        let names = disk.open_folder(folder);
        let mut files = LogFiles {
            disk: Arc::clone(disk),
            folder: folder.to_path_buf(),
            names: names.map_err(Error::io("open", folder))?,
            id,
            segment_bytes,
            marked: Lsn(0),
            segments: VecDeque::new(),
            preallocated: Preallocated::Absent,
            acknowledged: AcknowledgedEnd {
                lsn: Lsn(0),
                ts: CommitTs(0),
            },
            space: Arc::new(LogSpace::new(disk, folder, segment_bytes)),
            descriptors: DescriptorReserve::default(),
        };
        files.fill_descriptors();
        Ok(files)
    }

    /// Writes to the segments' files, making those that don't exist yet.
    pub fn write(&mut self, writes: &[SegmentWrite]) -> Result<()> {
        for (index, write) in writes.iter().enumerate() {
            self.add_if_missing(write.segment)?;
            let next = writes.get(index + 1);
            let next = next.filter(|next| next.segment != write.segment);
            if let Some(next) = next {
                // Before this segment's seal says that the log goes on there.
                self.add_if_missing(next.segment)?;
            }
            let Some(file) = self
                .segments
                .iter_mut()
                .rfind(|file| file.segment == write.segment)
            else {
                continue;
            };
            file.is_dirty = true;
            write
                .write_to(&*file.file)
                .map_err(Error::io("write to", &file.path))?;
            if next.is_some() {
                // Before the next segment is written to.
                file.sync()?;
            }
        }
        Ok(())
    }

    fn add_if_missing(&mut self, segment: LogSegment) -> Result<()> {
        match self.segments.iter().rfind(|file| file.segment == segment) {
            Some(_) => Ok(()),
            None => self.add_segment(segment),
        }
    }

    pub(super) fn add_segment(&mut self, segment: LogSegment) -> Result<()> {
        let path = self.folder.join(segment_name(segment.start));
        let file = match self.preallocated_of(segment.capacity) {
            Some(file) => {
                let preallocated = self.folder.join(PREALLOCATED);
                // If any of this fails, the file can't be relied on any more.
                self.preallocated = Preallocated::Absent;
                write_segment_header(&*file, segment, self.id)
                    .and_then(|()| file.sync_all())
                    .and_then(|()| self.disk.rename(&preallocated, &path))
                    .map_err(Error::io("write to", &preallocated))?;
                file
            }
            None => self.create_segment(segment, &path)?,
        };
        self.sync_names()?;
        self.segments.push_back(SegmentFile {
            segment,
            path,
            file,
            is_dirty: false,
        });
        self.note_space();
        Ok(())
    }

    fn create_segment(&mut self, segment: LogSegment, path: &Path) -> Result<Arc<dyn DiskFile>> {
        let unfinished = self.folder.join(UNFINISHED);
        let mut make = || -> io::Result<Arc<dyn DiskFile>> {
            let file = self
                .descriptors
                .open(&*self.disk, &unfinished, OpenMode::Truncated)?;
            match segment.capacity > self.segment_bytes.max(SEGMENT_BYTES_MIN) {
                // It gets one record, and one sync: nothing is gained by writing it twice.
                true => file.set_len(segment.capacity)?,
                false => fill_with_zeros(&*file, 0, segment.capacity)?,
            }
            write_segment_header(&*file, segment, self.id)?;
            file.sync_all()?;
            self.disk.rename(&unfinished, path)?;
            Ok(file)
        };
        make().map_err(|e| {
            let _ = self.disk.remove(&unfinished);
            Error::io("create", path)(e)
        })
    }

    /// Waits until the names of the log's files are on disk as they are now.
    pub(super) fn sync_names(&self) -> Result<()> {
        let synced = self.names.sync();
        synced.map_err(Error::io("sync", &self.folder))
    }

    /// Waits until everything written is on disk.
    pub fn sync(&mut self) -> Result<()> {
        match self.segments.back_mut() {
            Some(last) if last.is_dirty => last.sync(),
            _ => Ok(()),
        }
    }

    /// The file written to, if it was since the last sync, to be synced without holding the files.
    pub fn dirty_file(&self) -> Option<(Arc<dyn DiskFile>, PathBuf)> {
        let last = self.segments.back().filter(|last| last.is_dirty)?;
        Some((Arc::clone(&last.file), last.path.clone()))
    }

    /// Notes in the last segment how far the log is on disk. Gives the file to be synced, without
    /// holding the files, unless there is nothing new to note.
    pub fn mark(&mut self, synced: Lsn) -> Result<Option<(Arc<dyn DiskFile>, PathBuf)>> {
        let Some(last) = self.segments.back() else {
            return Ok(None);
        };
        if synced <= self.marked || synced.0 < last.segment.start {
            return Ok(None);
        }
        write_mark(&*last.file, last.segment, self.id, synced)
            .map_err(Error::io("write to", &last.path))?;
        self.marked = synced;
        Ok(Some((Arc::clone(&last.file), last.path.clone())))
    }

    pub fn space(&self) -> Arc<LogSpace> {
        Arc::clone(&self.space)
    }

    pub(super) fn note_space(&self) {
        let made = self.segments.back().map_or(0, |last| last.segment.end());
        let preallocated = match self.preallocated {
            Preallocated::Ready(_) => self.segment_bytes,
            Preallocated::Absent | Preallocated::InProgress => 0,
        };
        self.space.note_made(made + preallocated);
    }

    pub fn acknowledged(&self) -> AcknowledgedEnd {
        self.acknowledged
    }

    /// Notes that what was written up to here is as safe as was asked for.
    pub fn note_acknowledged(&mut self, end: AcknowledgedEnd) {
        self.acknowledged = end;
    }

    /// Takes back the descriptors that the reserve had to give up.
    pub fn fill_descriptors(&mut self) {
        self.descriptors.fill(&*self.disk, &self.folder);
    }
}

pub(crate) fn sync_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    disk.sync_folder(folder).map_err(Error::io("sync", folder))
}
