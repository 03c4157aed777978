//! The file for the next segment, made ahead of its use: a new one of zeros, or a segment that the
//! log no longer needs.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::LogFiles;
use super::segment::{SegmentFile, fill_with_zeros, read_segment_header};
use super::space::FILE_OVERHEAD_BYTES;
use crate::disk::{Disk, DiskFile, DiskFolder, Metadata, OpenMode};
use crate::{Error, Lsn, Result};

pub(super) const PREALLOCATED: &str = "log.spare";
pub(super) const PREALLOCATED_UNFINISHED: &str = "log.spare.unfinished";

/// The file that is to become the next segment, held open, so that it takes no descriptor then.
pub(super) enum Preallocated {
    Absent,
    /// A thread is making it, without holding up those that write to the log.
    InProgress,
    Ready(Arc<dyn DiskFile>),
}

impl Preallocated {
    /// The file that an earlier process has left, unless it is one of the log's segments: a power
    /// cut may have kept both names of a file that was being renamed.
    pub fn find(
        disk: &dyn Disk,
        path: &Path,
        segment_bytes: u64,
        segments: &VecDeque<SegmentFile>,
    ) -> Preallocated {
        let is_segment = |file: &dyn DiskFile| {
            let header = read_segment_header(file, path).ok();
            header.is_some_and(|(found, _)| segments.iter().any(|s| s.segment == found))
        };
        match disk.metadata(path) {
            Ok(Some(Metadata::File { len })) if len == segment_bytes => {
                match disk.open(path, OpenMode::Existing) {
                    Ok(file) if is_segment(&*file) => {
                        let _ = disk.remove(path);
                        Preallocated::Absent
                    }
                    Ok(file) => Preallocated::Ready(file),
                    Err(_) => Preallocated::Absent,
                }
            }
            Ok(Some(_)) => {
                let _ = disk.remove(path);
                Preallocated::Absent
            }
            Ok(None) | Err(_) => Preallocated::Absent,
        }
    }
}

/// A segment file to be made.
pub(crate) struct PreallocationPlan {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    capacity: u64,
    file: Arc<dyn DiskFile>,
}

impl PreallocationPlan {
    /// Makes a file of zeros that can become a segment. Slow; done where nobody waits.
    pub fn carry_out(&self) -> Result<Arc<dyn DiskFile>> {
        let path = self.folder.join(PREALLOCATED_UNFINISHED);
        let make = || {
            fill_with_zeros(&*self.file, 0, self.capacity)?;
            self.file.sync_all()?;
            self.disk.rename(&path, &self.folder.join(PREALLOCATED))?;
            Ok(Arc::clone(&self.file))
        };
        make().map_err(|e| {
            let _ = self.disk.remove(&path);
            Error::io("create", &path)(e)
        })
    }
}

/// Segments that the log no longer needs, taken out of it and still to be removed.
pub(crate) struct RetiredSegments {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    names: Arc<dyn DiskFolder>,
    /// The one to be used again.
    recycled: Option<SegmentFile>,
    rest: Vec<SegmentFile>,
}

impl RetiredSegments {
    /// Whether [`LogFiles::finish_preallocation`] has to follow.
    pub fn has_recycled(&self) -> bool {
        self.recycled.is_some()
    }

    /// Renames the one that is used again, and removes the others. Gives the renamed one's file.
    ///
    /// It must have left its old name for good before anybody writes to it: a power cut that takes
    /// the renaming back would leave another segment's bytes under that name.
    pub fn remove(self) -> Result<Option<Arc<dyn DiskFile>>> {
        for segment in &self.rest {
            let removed = self.disk.remove(&segment.path);
            removed.map_err(Error::io("remove", &segment.path))?;
        }
        let Some(segment) = self.recycled else {
            return Ok(None);
        };
        let new_path = self.folder.join(PREALLOCATED);
        let renamed = self.disk.rename(&segment.path, &new_path);
        renamed.map_err(Error::io("rename", &segment.path))?;
        let synced = self.names.sync();
        synced.map_err(Error::io("sync", &self.folder))?;
        Ok(Some(segment.file))
    }
}

impl LogFiles {
    /// Takes the segments that end before the position out of the log. One is kept to be used
    /// again, if no other is preallocated: [`finish_preallocation`](LogFiles::finish_preallocation)
    /// has to follow.
    pub fn retire_before(&mut self, lsn: Lsn) -> RetiredSegments {
        let mut retired = RetiredSegments {
            disk: Arc::clone(&self.disk),
            folder: self.folder.clone(),
            names: Arc::clone(&self.names),
            recycled: None,
            rest: Vec::new(),
        };
        while self.segments.len() > 1
            && let Some(first) = self
                .segments
                .pop_front_if(|file| file.segment.end() <= lsn.0)
        {
            let fits = first.segment.capacity == self.segment_bytes;
            if fits && matches!(self.preallocated, Preallocated::Absent) {
                self.preallocated = Preallocated::InProgress;
                retired.recycled = Some(first);
            } else {
                retired.rest.push(first);
            }
        }
        retired
    }

    /// How to make the next segment's file, if it is time to:
    /// [`finish_preallocation`](LogFiles::finish_preallocation) has to follow.
    pub fn plan_preallocation(&mut self, tail: Lsn) -> Result<Option<PreallocationPlan>> {
        let Some(last) = self.segments.back() else {
            return Ok(None);
        };
        let used = tail.0.saturating_sub(last.segment.start);
        let is_absent = matches!(self.preallocated, Preallocated::Absent);
        let is_time = is_absent && used > last.segment.capacity / 2;
        // Not with the last room that there is: commits have counted on it.
        let has_room = || {
            let free = self.disk.free_bytes(&self.folder);
            free.is_none_or(|free| free >= 2 * self.segment_bytes + FILE_OVERHEAD_BYTES)
        };
        if !is_time || !has_room() {
            return Ok(None);
        }
        let path = self.folder.join(PREALLOCATED_UNFINISHED);
        let opened = self
            .descriptors
            .open(&*self.disk, &path, OpenMode::Truncated);
        let file = opened.map_err(Error::io("create", &path))?;
        self.preallocated = Preallocated::InProgress;
        Ok(Some(PreallocationPlan {
            disk: Arc::clone(&self.disk),
            folder: self.folder.clone(),
            capacity: self.segment_bytes,
            file,
        }))
    }

    /// Ends what `plan_preallocation` or `retire_before` began; `None` if it has failed.
    pub fn finish_preallocation(&mut self, made: Option<Arc<dyn DiskFile>>) {
        if matches!(self.preallocated, Preallocated::InProgress) {
            self.preallocated = made.map_or(Preallocated::Absent, Preallocated::Ready);
        }
        self.note_space();
    }

    /// The preallocated file, if there is one of this length. It is still preallocated.
    pub(super) fn preallocated_of(&self, capacity: u64) -> Option<Arc<dyn DiskFile>> {
        match &self.preallocated {
            Preallocated::Ready(file) if capacity == self.segment_bytes => Some(Arc::clone(file)),
            _ => None,
        }
    }
}
