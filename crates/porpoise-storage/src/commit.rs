//! A commit on its way to the disk.

use crate::{CommitTs, Result};

/// A commit that was handed to the log.
pub struct Commit {
    ts: CommitTs,
}

impl Commit {
    pub(crate) fn done(ts: CommitTs) -> Commit {
        Commit { ts }
    }

    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Whether it is as safe as the flush policy asks, and visible to others.
    pub fn is_durable(&self) -> bool {
        true
    }

    /// Waits until it is durable.
    pub fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Has `then` called once it is durable: now, or by the thread that finishes the sync.
    pub fn on_durable(&self, then: Box<dyn FnOnce(Result<()>) + Send>) {
        then(Ok(()));
    }
}
