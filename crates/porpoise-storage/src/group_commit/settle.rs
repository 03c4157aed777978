//! Letting go of row locks before the disk has the commit, and what rests on such a commit.
//!
//! A commit is settled when its versions, and those of all before it, are in the memtables: then
//! its row locks are released. Whoever locks a row reads up to the newest settled commit, which may
//! be beyond the newest published one:
//!
//! ```text
//! commits   1 2 3 4 5 │ 6 7 8 9 │ 10 · 12
//!           published │ settled │ 10 is still putting its versions in: 12 keeps its locks
//!           all read this
//!           who locks rows reads this too ┘
//! ```
//!
//! Each commit is whole to a reader, as nothing is settled before all of it is in. Since the reader
//! of 8 commits after 8, its record comes later in the same log: no crash leaves the second without
//! the first, and a failed write of the first fails the second. A reader that commits nothing
//! waits until 8 is published before anybody is told what it read.
//!
//! **If the log can't be written,** locking reads fall back to what is published. A transaction that
//! has read more can't commit any more: [`GroupCommit::fate_of`] knows the commits that were lost,
//! also when the store has gone on.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::{Durability, GroupCommit, Queue};
use crate::commit::{Commit, CommitTicket};
use crate::locks::{HeldLocks, LockTable};
use crate::memtable::Memtable;
use crate::store::Shared;
use crate::{CommitTs, Result};

/// Commits that have a place in the log and aren't settled.
pub(super) struct Settling {
    /// In the order of the log.
    commits: VecDeque<Unsettled>,
    /// The newest memtable that readers know. What goes to the next one is settled when they know
    /// that.
    memtable: Arc<Memtable>,
}

struct Unsettled {
    ts: CommitTs,
    memtable: Arc<Memtable>,
    locks: HeldLocks,
    is_inserted: bool,
}

impl Settling {
    pub fn into(memtable: Arc<Memtable>) -> Settling {
        Settling {
            commits: VecDeque::new(),
            memtable,
        }
    }

    pub fn begin(&mut self, ts: CommitTs, memtable: Arc<Memtable>, locks: HeldLocks) {
        self.commits.push_back(Unsettled {
            ts,
            memtable,
            locks,
            is_inserted: false,
        });
    }

    /// Takes the next commit out that is settled. If it is about to fail, as all are while writing
    /// is refused, nobody may read it.
    fn next(&mut self, has_failed: bool) -> Option<HeldLocks> {
        let first = self.commits.front()?;
        let is_known = Arc::ptr_eq(&first.memtable, &self.memtable);
        if !first.is_inserted || !(is_known || has_failed) {
            return None;
        }
        if !has_failed {
            self.memtable.settle(first.ts);
        }
        Some(self.commits.pop_front()?.locks)
    }
}

impl GroupCommit {
    /// Notes that a commit's versions are in, and settles it, and those behind it, if all before it
    /// are in.
    pub(super) fn settle(&self, ts: CommitTs, locks: &LockTable) {
        let mut queue = self.queue.lock();
        let commits = &mut queue.settling.commits;
        if let Ok(at) = commits.binary_search_by_key(&ts, |commit| commit.ts) {
            commits[at].is_inserted = true;
        }
        self.release_settled(queue, locks);
    }

    /// Goes on with a memtable that readers have come to know.
    pub(super) fn settle_into(&self, memtable: Arc<Memtable>, locks: &LockTable) {
        let mut queue = self.queue.lock();
        queue.settling.memtable = memtable;
        self.release_settled(queue, locks);
    }

    /// While writing is refused: what isn't published can't be read any more.
    pub(super) fn unsettle(&self, locks: &LockTable) {
        let queue = self.queue.lock();
        let memtable = &queue.settling.memtable;
        memtable.settle(memtable.visible());
        self.release_settled(queue, locks);
    }

    /// Releases the locks without the queue, as they may be many.
    fn release_settled(&self, mut queue: MutexGuard<'_, Queue>, locks: &LockTable) {
        let has_failed = self.failure.get().is_some();
        let settled: SmallVec<[HeldLocks; 4]> =
            std::iter::from_fn(|| queue.settling.next(has_failed)).collect();
        drop(queue);
        for held in settled {
            locks.release(held);
        }
    }

    /// What became of a commit that somebody rests on; `None` while it is on its way.
    pub fn fate_of(&self, ts: CommitTs, shared: &Shared) -> Option<Result<()>> {
        if ts == CommitTs(0) {
            return Some(Ok(()));
        }
        if shared.epoch.load().newest().visible() >= ts {
            return Some(self.lost.cause(ts).map_or(Ok(()), Err));
        }
        let cause = self.failure.get().or_else(|| self.lost.cause(ts));
        cause.map(Err)
    }

    /// A commit of nothing behind all that are queued: done when they are, failed if they fail.
    pub fn enqueue_nothing(&self, shared: &Arc<Shared>) -> Commit {
        let ticket = Arc::new(CommitTicket::default());
        let mut queue = self.queue.lock();
        queue.commits.push(Arc::clone(&ticket));
        let ts = CommitTs(queue.next_ts - 1);
        drop(queue);
        Commit::queued(Arc::clone(shared), ts, ticket)
    }

    /// Waits until a commit that the caller rests on is published: syncs on this thread if no other
    /// does, and else has `sleeping` call what waits.
    pub fn await_published(
        &self,
        ts: CommitTs,
        shared: &Arc<Shared>,
        sleeping: impl FnOnce(&dyn Fn()),
    ) -> Result<()> {
        if let Some(fate) = self.fate_of(ts, shared) {
            return fate;
        }
        if self.lead_group_commit(shared, Durability::Published)
            && let Some(fate) = self.fate_of(ts, shared)
        {
            return fate;
        }
        let commit = self.enqueue_nothing(shared);
        let outcome = std::cell::OnceCell::new();
        sleeping(&|| {
            let _ = outcome.set(commit.wait());
        });
        outcome.into_inner().unwrap_or(Ok(()))
    }
}
