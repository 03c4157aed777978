//! Has the system begin to write what it holds of a file, by a thread for the purpose.
//!
//! The call returns before the disk has anything, but not before the disk's queue has taken all of it,
//! which for megabytes takes as long as writing most of them. A load or a checkpoint goes on with the
//! next rows meanwhile.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Has the system begin with what it holds of the file by now, or soon.
pub(crate) fn begin(file: &File) {
    static QUEUE: OnceLock<Option<SyncSender<File>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        // One that waits; what comes then will be written with the next, or by the sync at the end.
        let (queue, files) = sync_channel(1);
        let thread = thread::Builder::new().name("porpoise-wback".to_string());
        thread.spawn(move || work(&files)).ok().map(|_| queue)
    });
    match (queue, file.try_clone()) {
        (Some(queue), Ok(file)) => {
            let _ = queue.try_send(file);
        }
        _ => begin_here(file),
    }
}

fn work(files: &Receiver<File>) {
    for file in files {
        begin_here(&file);
    }
}

fn begin_here(file: &File) {
    let (from, to_its_end) = (0, 0);
    // SAFETY: the file is open as long as it is borrowed, and no memory is passed. The system tells
    // the next sync, not this call, of what can't be written.
    unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            from,
            to_its_end,
            libc::SYNC_FILE_RANGE_WRITE,
        );
    }
}
