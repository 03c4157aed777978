//! The commit of a transaction whose writes are a memtable of their own.
//!
//! It becomes one of those that all read from, as it is, with an empty one above it for the commits
//! to come:
//!
//! ```text
//! before     [ newest 7 8 9 ] [ older ]
//! after      [ next ] [ all of commit 10 ] [ newest 7 8 9 ] [ older ]
//! ```
//!
//! 1. The thread that commits becomes the leader; what is queued is written and published.
//! 2. It writes the record, and syncs it if it must. Commits that come meanwhile have their place in
//!    the log behind it, and go to `next`, which nobody knows.
//! 3. Readers come to know both memtables, and the row locks are released.
//!
//! So it is seen as a whole or not at all, and no row is copied. Unlike other commits it lets go of
//! its locks only when the disk has it.
//!
//! The order of memtables is changed by who has locked the tree, as a checkpoint does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Batch, Durability, GroupCommit, Writing};
use crate::commit::Commit;
use crate::memtable::Memtable;
use crate::store::Shared;
use crate::{CommitTs, Lsn, Result};

/// The memtables that readers come to know, the newer first. The last is the one that took commits
/// so far.
pub(crate) struct NewMemtables {
    pub next: Arc<Memtable>,
    pub own: Arc<Memtable>,
    pub before: Arc<Memtable>,
}

impl GroupCommit {
    /// Commits a transaction with its own memtable. `publish` has readers know the new memtables.
    ///
    /// On an error nothing was written; one that the commit gives as its outcome may have left a part
    /// of the record.
    pub fn hand_over(
        &self,
        shared: &Arc<Shared>,
        writing: Writing,
        own: Arc<Memtable>,
        durability: Durability,
        publish: impl FnOnce(NewMemtables),
    ) -> Result<Commit> {
        let Writing {
            overlay,
            payload,
            rests_on,
        } = writing;
        let durability = durability.max(Durability::Written);
        let mut queue = self.claim_leadership();
        let admitted = self
            .check_writable()
            .and_then(|()| self.admit(&queue, shared, &payload, rests_on));
        if let Err(error) = admitted {
            self.end_claim(shared, queue, None);
            return Err(error);
        }
        let queued = queue.take_batch(Durability::Written);
        let before = Arc::clone(&queued.memtable);
        let before_end = queued.end;
        let ts = CommitTs(queue.next_ts);
        queue.next_ts += 1;
        let synced = Lsn(self.synced.load(Ordering::Acquire));
        if let Some(log) = &mut queue.log {
            log.append(ts, synced, payload);
        }
        let next = Arc::new(Memtable::after(ts));
        queue.memtable = Arc::clone(&next);
        let record = Batch {
            commits: Vec::new(),
            inserting: Arc::new(AtomicUsize::new(0)),
            memtable: Arc::clone(&next),
            ..queue.take_batch(durability)
        };
        drop(queue);
        self.commits.fetch_add(1, Ordering::Relaxed);
        // Nothing is published where nothing is written: what came last may have been lost.
        if !queued.commits.is_empty() || !queued.writes.is_empty() {
            let finished = self.commit_batch(queued, &shared.locks);
            let outcome = finished.outcome.clone();
            finished.notify();
            if let Err(error) = outcome {
                self.end_claim(shared, self.queue.lock(), None);
                return Err(error);
            }
        }
        let end = record.end;
        let outcome = self.commit_batch(record, &shared.locks).outcome;
        if outcome.is_ok() {
            let _ = before.ends_at.set(before_end);
            own.seal(ts, end);
            if let Some(overlay) = &overlay {
                overlay.0.read().change_spaces(&own, ts);
            }
            publish(NewMemtables {
                next: Arc::clone(&next),
                own,
                before,
            });
            // What has come to it meanwhile was out of all readers' sight.
            self.settle_into(next, &shared.locks);
        }
        self.end_claim(shared, self.queue.lock(), None);
        Ok(Commit::finished(Arc::clone(shared), ts, outcome))
    }
}
