//! Why writing is refused, and syncs whose outcome isn't known yet.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{CommitTs, Error};

/// Why writing is refused, while it is.
#[derive(Default)]
pub(super) struct WriteFailure {
    is_set: AtomicBool,
    cause: Mutex<Option<Error>>,
}

impl WriteFailure {
    pub fn get(&self) -> Option<Error> {
        match self.is_set.load(Ordering::Acquire) {
            true => self.cause.lock().clone(),
            false => None,
        }
    }

    /// Refuses writing from now on. `false` if it was refused already.
    pub fn set(&self, error: Error) -> bool {
        let mut cause = self.cause.lock();
        let is_first = cause.is_none();
        if is_first || matches!(error, Error::Closed) {
            *cause = Some(error);
        }
        self.is_set.store(true, Ordering::Release);
        is_first
    }

    /// Allows writing again, unless the store was closed.
    pub fn clear(&self) {
        let mut cause = self.cause.lock();
        if !matches!(*cause, Some(Error::Closed)) {
            *cause = None;
            self.is_set.store(false, Ordering::Release);
        }
    }
}

/// The commits that have failed for good, as a store went on without them.
#[derive(Default)]
pub(super) struct LostCommits {
    is_any: AtomicBool,
    ranges: Mutex<Vec<LostRange>>,
}

struct LostRange {
    /// The newest commit before them.
    after: CommitTs,
    last: CommitTs,
    cause: Error,
}

impl LostCommits {
    pub fn add(&self, after: CommitTs, last: CommitTs, cause: Error) {
        if after < last {
            self.ranges.lock().push(LostRange { after, last, cause });
            self.is_any.store(true, Ordering::Release);
        }
    }

    /// Why a commit is lost, if it is.
    pub fn cause(&self, ts: CommitTs) -> Option<Error> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let ranges = self.ranges.lock();
        let lost = ranges
            .iter()
            .find(|lost| lost.after < ts && ts <= lost.last)?;
        Some(lost.cause.clone())
    }
}

/// A sync that no commit waits for.
///
/// The system reports a failed sync once. A commit whose own sync comes right after a background
/// sync that has failed would be told that all is well, hence it waits for that outcome here.
#[derive(Default)]
pub(super) struct BackgroundSync {
    is_running: AtomicBool,
    turn: Mutex<()>,
}

impl BackgroundSync {
    /// `sync` must have made a failure known when it returns.
    pub fn run(&self, sync: impl FnOnce()) {
        let turn = self.turn.lock();
        self.is_running.store(true, Ordering::SeqCst);
        sync();
        self.is_running.store(false, Ordering::SeqCst);
        drop(turn);
    }

    pub fn await_outcome(&self) {
        if self.is_running.load(Ordering::SeqCst) {
            drop(self.turn.lock());
        }
    }
}
