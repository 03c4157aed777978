//! Going on after a write or sync of the log has failed; [`recovery`](crate::recovery) has the
//! story.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::settle::Settling;
use super::{Durability, GroupCommit, Queue};
use crate::log::AcknowledgedEnd;
use crate::memtable::Memtable;
use crate::store::Shared;
use crate::{CommitTs, Error, Result};

impl GroupCommit {
    /// Whether writing is refused, but not because the store was closed.
    pub fn has_failed(&self) -> bool {
        !matches!(self.failure.get(), None | Some(Error::Closed))
    }

    /// Whether writing is refused because the tree can't be written to any more.
    pub fn is_stopped_by_damage(&self) -> bool {
        matches!(self.failure.get(), Some(Error::Damaged(_)))
    }

    /// Allows commits again after a failure. `replace` puts two memtables in the newest one's
    /// place, `merge` writes all but the first into the tree. `false` if another thread leads, or
    /// there is no failure.
    pub fn resume(
        &self,
        shared: &Shared,
        replace: impl FnOnce(Arc<Memtable>, Arc<Memtable>),
        merge: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let mut queue = self.queue.lock();
        if queue.has_leader || !self.has_failed() {
            return Ok(false);
        }
        queue.has_leader = true;
        drop(queue);
        let outcome = self.resume_as_leader(shared, replace, merge);
        if outcome.is_ok() {
            // No record of theirs is in the log. Nobody can have committed with them again.
            for file in shared.lost_files.lock().drain(..) {
                file.forget();
            }
            self.failure.clear();
        }
        let has_callbacks = self.step_down(self.queue.lock());
        if has_callbacks && !self.call_leader_hook() {
            self.lead_group_commit(shared, Durability::Published);
        }
        outcome.map(|()| true)
    }

    fn resume_as_leader(
        &self,
        shared: &Shared,
        replace: impl FnOnce(Arc<Memtable>, Arc<Memtable>),
        merge: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        drop(self.fail_queued(shared));
        let (segment, end) = {
            let mut files = files.lock();
            (
                files.rewrite_tail(shared.checkpoint_lsn())?,
                files.acknowledged(),
            )
        };
        let mut queue = self.fail_queued(shared);
        if let Some(log) = &mut queue.log {
            log.rewind(segment, end.lsn);
        }
        let newest = Arc::clone(shared.epoch.load().newest());
        let visible = newest.visible();
        if let Some(cause) = self.failure.get() {
            self.lost.add(visible, CommitTs(queue.next_ts - 1), cause);
        }
        queue.durability = Durability::Published;
        self.written.store(end.lsn.0, Ordering::Release);
        self.synced.store(end.lsn.0, Ordering::Release);
        if !newest.is_empty() {
            let copy = newest.copy_of_visible();
            let _ = copy.ends_at.set(end.lsn);
            let next = Arc::new(Memtable::after(visible));
            queue.memtable = Arc::clone(&next);
            replace(Arc::new(copy), next);
        } else {
            queue.memtable = newest;
        }
        queue.settling = Settling::into(Arc::clone(&queue.memtable));
        drop(queue);
        if visible > end.ts {
            merge()?;
            files.lock().note_acknowledged(AcknowledgedEnd {
                lsn: end.lsn,
                ts: visible,
            });
        }
        Ok(())
    }

    /// Fails all commits that are queued, as it must while writing is refused. As long as the guard
    /// that it gives is held, none is queued, and none puts versions into a memtable.
    fn fail_queued(&self, shared: &Shared) -> MutexGuard<'_, Queue> {
        loop {
            let mut queue = self.queue.lock();
            if queue.commits.is_empty() {
                return queue;
            }
            let batch = queue.take_batch(Durability::Published);
            drop(queue);
            self.commit_batch(batch, &shared.locks).notify();
        }
    }
}
