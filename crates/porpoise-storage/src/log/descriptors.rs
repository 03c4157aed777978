//! File descriptors held in reserve for the log's next files.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, DiskFolder, OpenMode};

const RESERVED_DESCRIPTORS: usize = 4;

/// Descriptors held for the log's next files, so that a process whose descriptors are all taken by
/// connections can still go on writing. Each is the log's folder, opened once more; one is closed
/// when an open is refused for want of descriptors.
#[derive(Default)]
pub(super) struct DescriptorReserve {
    held: Vec<Arc<dyn DiskFolder>>,
}

impl DescriptorReserve {
    /// Opens as many descriptors as are missing, or as the system gives.
    pub fn fill(&mut self, disk: &dyn Disk, folder: &Path) {
        while self.held.len() < RESERVED_DESCRIPTORS {
            let Ok(held) = disk.open_folder(folder) else {
                return;
            };
            self.held.push(held);
        }
    }

    /// Opens a file, closing reserved descriptors if there are no others.
    pub fn open(
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
