//! Group commit: how many commits share one sync, and which thread does it.
//!
//! There is no log thread. A thread that waits for a commit becomes the **leader** if there is
//! none, and does the work for all that queued up by then; a client alone never hands its commit to
//! another thread and back. Commits that arrive while a leader is at work queue for the next one.
//!
//! ```text
//! t1   queue ─ wait: leads ── write ── fdatasync ── publish ─ done
//! t2     queue ─ wait: sleeps · · · (too late for that sync)  leads ── write ── fdatasync ── …
//! t3        queue ─ wait: sleeps · · · · · · · · · · · · · ·  sleeps · · · · · · · · · · · done
//! ```
//!
//! The life of a commit:
//!
//! 1. The transaction's writes are encoded, and the checksum taken, on its own thread.
//! 2. `enqueue`: under the queue's mutex it gets its timestamp, and its record its place in the
//!    log.
//! 3. Its versions are put into the current memtable, where nobody sees them yet. When those of all
//!    commits before it are in, too, it is **settled**: its row locks are released, and whoever
//!    locks a row reads its versions.
//! 4. A leader takes the whole queue as a batch, writes it, and syncs it if one of the batch asks.
//! 5. The leader publishes the batch: one store moves the visible timestamp over all of it.
//! 6. Waiting threads are woken, callbacks run.
//!
//! So a row that many change is handed on in memory, and its changes share syncs. Whoever read a
//! version that isn't published rests on it ([`settle`]): what he commits comes later in the log,
//! and what he may tell without a commit waits in the queue as one that has nothing to write.
//!
//! A commit that brings a memtable of its own, as it has written very much, goes another way
//! ([`hand_over`]).
//!
//! Batches are published in the order of their timestamps, since there is one leader at a time. The
//! flush policy at the time of each commit says how far its batch must go; the strictest of a batch
//! decides.
//!
//! A write or sync that fails ends all writing: nobody can tell what the disk has, so the batch
//! fails, its versions stay invisible, and the store is read-only. Writing is allowed again when
//! the cause is gone ([`recovery`](crate::recovery)). A disk that is full is noticed before: a
//! commit that would need another log file is refused in step 2 while there is no room for one, and
//! nothing has happened.

mod failure;
mod hand_over;
mod resume;
mod settle;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::commit::{Commit, CommitTicket, FinishedBatch};
use crate::locks::{HeldLocks, LockTable};
use crate::log::{AcknowledgedEnd, LogFiles, LogSegment, LogSpace, LogTail, Payload, SegmentWrite};
use crate::memtable::Memtable;
use crate::options::Flush;
use crate::overlay::SharedOverlay;
use crate::store::Shared;
use crate::{CommitTs, Error, Lsn, Result};
use failure::{BackgroundSync, LostCommits, WriteFailure};
pub(crate) use hand_over::NewMemtables;
use settle::Settling;

/// With flush policy 0, so much is kept in memory before it is written.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

/// How far a commit must get before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// Visible to other transactions.
    Published,
    /// Written to the log's file, too.
    Written,
    /// On disk, too.
    Synced,
}

impl Durability {
    pub fn of(flush: Flush) -> Durability {
        match flush {
            Flush::EachSecond => Durability::Published,
            Flush::WriteAtCommit => Durability::Written,
            Flush::AtCommit => Durability::Synced,
        }
    }
}

/// What a transaction wants to write.
pub(crate) struct Writing {
    pub overlay: Option<Arc<SharedOverlay>>,
    pub payload: Payload,
    /// The newest commit that it read a version of before all could see it; 0 if there is none.
    pub rests_on: CommitTs,
}

pub(crate) struct GroupCommit {
    queue: Mutex<Queue>,
    leadership_granted: Condvar,
    /// `None` for a store in memory.
    files: Option<Mutex<LogFiles>>,
    written: AtomicU64,
    synced: AtomicU64,
    log_space: Option<Arc<LogSpace>>,
    failure: WriteFailure,
    lost: LostCommits,
    background_sync: BackgroundSync,
    leader_hook: ArcSwapOption<LeaderHook>,
    pub syncs: AtomicU64,
    pub commits: AtomicU64,
}

/// Called by a leader that has done its batch when all commits that are queued by then wait by
/// callback: a thread has to call [`Store::sync_pending`](crate::Store::sync_pending). Without a
/// hook the leader goes on itself.
pub type LeaderHook = Arc<dyn Fn() + Send + Sync>;

/// The commits that the next batch is made of.
struct Queue {
    /// `None` for a store in memory.
    log: Option<LogTail>,
    next_ts: u64,
    memtable: Arc<Memtable>,
    commits: Vec<Arc<CommitTicket>>,
    durability: Durability,
    /// How many of the queued commits are still putting their versions into the memtable.
    inserting: Arc<AtomicUsize>,
    has_leader: bool,
    checkpoint_claim: LeadershipClaim,
    settling: Settling,
}

/// The claim to lead next of a checkpoint, or of a commit that brings its own memtable. It is served before all others, so that load can't keep a
/// checkpoint out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeadershipClaim {
    None,
    Waiting,
    Granted,
}

/// Commits that are written, synced and published together.
struct Batch {
    commits: Vec<Arc<CommitTicket>>,
    writes: Vec<SegmentWrite>,
    durability: Durability,
    inserting: Arc<AtomicUsize>,
    memtable: Arc<Memtable>,
    last_ts: CommitTs,
    end: Lsn,
}

impl GroupCommit {
    /// `log` is `None` for a store in memory; `last_ts` is the newest commit that `memtable` or the
    /// tree has.
    pub fn new(
        log: Option<(LogFiles, LogTail)>,
        memtable: Arc<Memtable>,
        last_ts: CommitTs,
    ) -> GroupCommit {
        let (mut files, tail) = log.unzip();
        let end = tail.as_ref().map_or(0, |tail| tail.lsn().0);
        if let Some(files) = &mut files {
            files.note_acknowledged(AcknowledgedEnd {
                lsn: Lsn(end),
                ts: last_ts,
            });
        }
        GroupCommit {
            log_space: files.as_ref().map(LogFiles::space),
            queue: Mutex::new(Queue {
                log: tail,
                next_ts: last_ts.0 + 1,
                settling: Settling::into(Arc::clone(&memtable)),
                memtable,
                commits: Vec::new(),
                durability: Durability::Published,
                inserting: Arc::default(),
                has_leader: false,
                checkpoint_claim: LeadershipClaim::None,
            }),
            leadership_granted: Condvar::new(),
            files: files.map(Mutex::new),
            written: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            failure: WriteFailure::default(),
            lost: LostCommits::default(),
            background_sync: BackgroundSync::default(),
            leader_hook: ArcSwapOption::empty(),
            syncs: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        }
    }

    /// Refuses writing from now on.
    pub fn fail(&self, error: Error, locks: &LockTable) {
        if self.failure.set(error.clone()) && !matches!(error, Error::Closed) {
            tracing::error!(%error, "a write to the log failed, the store is read-only for now");
        }
        self.unsettle(locks);
    }

    /// Fails with [`Error::Closed`] or [`Error::ReadOnly`] while writing is refused.
    pub fn check_writable(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(Error::Closed) => Err(Error::Closed),
            Some(cause) => Err(Error::ReadOnly {
                cause: Arc::new(cause),
            }),
        }
    }

    /// Steps 2 and 3: a place in the log, and versions that only those see who lock rows. Fails if
    /// the disk has no room for the log to grow, or what the writes rest on is lost.
    pub fn enqueue(
        &self,
        shared: &Arc<Shared>,
        writes: Writing,
        locks: HeldLocks,
        durability: Durability,
    ) -> Result<Commit> {
        let Writing {
            overlay,
            payload,
            rests_on,
        } = writes;
        let ticket = Arc::new(CommitTicket::default());
        let (ts, memtable, inserting) = {
            let mut queue = self.queue.lock();
            if let Err(error) = self.admit(&queue, shared, &payload, rests_on) {
                drop(queue);
                shared.locks.release(locks);
                return Err(error);
            }
            let ts = CommitTs(queue.next_ts);
            queue.next_ts += 1;
            let synced = Lsn(self.synced.load(Ordering::Acquire));
            if let Some(log) = &mut queue.log {
                log.append(ts, synced, payload);
            }
            queue.durability = queue.durability.max(durability);
            queue.commits.push(Arc::clone(&ticket));
            queue.inserting.fetch_add(1, Ordering::Relaxed);
            let memtable = Arc::clone(&queue.memtable);
            queue.settling.begin(ts, Arc::clone(&memtable), locks);
            (ts, memtable, Arc::clone(&queue.inserting))
        };
        if let Some(overlay) = overlay {
            overlay.0.read().insert_into(&memtable, ts);
        }
        // Locks are released before the batch can be published.
        self.settle(ts, &shared.locks);
        inserting.fetch_sub(1, Ordering::Release);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(Commit::queued(Arc::clone(shared), ts, ticket))
    }

    /// Fails if the disk has no room for a record, or what its writes rest on is lost.
    fn admit(
        &self,
        queue: &Queue,
        shared: &Shared,
        payload: &Payload,
        rests_on: CommitTs,
    ) -> Result<()> {
        if let Some(Err(error)) = self.fate_of(rests_on, shared) {
            return Err(error);
        }
        let next = queue.log.as_ref().and_then(|log| log.next_segment(payload));
        next.map_or(Ok(()), |segment| self.check_log_space(segment))
    }

    fn check_log_space(&self, up_to: LogSegment) -> Result<()> {
        match &self.log_space {
            Some(space) => space.check(up_to),
            None => Ok(()),
        }
    }

    /// How much room on the disk the log may need soon.
    pub fn log_reserve(&self) -> u64 {
        let space = self.log_space.as_ref();
        space.map_or(0, |space| space.reserve())
    }

    /// Waits for a commit's outcome, leading if no other thread does.
    pub fn wait(&self, shared: &Shared, ticket: &CommitTicket) -> Result<()> {
        loop {
            let queue = self.queue.lock();
            let mut state = ticket.state.lock();
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            if queue.has_leader {
                state.waiting_thread = Some(thread::current());
                drop((state, queue));
                thread::park();
            } else {
                drop(state);
                self.lead_loop(queue, shared, Durability::Published);
            }
        }
    }

    /// Leads, at least as far as `at_least`, unless another thread does. `false` means that one
    /// does.
    pub fn lead_group_commit(&self, shared: &Shared, at_least: Durability) -> bool {
        let queue = self.queue.lock();
        if queue.has_leader {
            return false;
        }
        self.lead_loop(queue, shared, at_least);
        true
    }

    fn lead_loop<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        shared: &Shared,
        at_least: Durability,
    ) {
        loop {
            let has_buffered = queue
                .log
                .as_ref()
                .is_some_and(|log| log.buffered_bytes() > 0);
            let must_write = has_buffered && at_least > Durability::Published;
            if queue.commits.is_empty() && !must_write {
                return;
            }
            queue.has_leader = true;
            let batch = queue.take_batch(at_least);
            drop(queue);
            let finished = self.commit_batch(batch, &shared.locks);
            shared.request_checkpoint_if_due();
            let has_callbacks = self.step_down(self.queue.lock());
            finished.notify();
            if !has_callbacks || self.call_leader_hook() {
                return;
            }
            queue = self.queue.lock();
            if queue.has_leader {
                return;
            }
        }
    }

    pub fn set_leader_hook(&self, hook: Option<LeaderHook>) {
        self.leader_hook.store(hook.map(Arc::new));
    }

    /// Calls the hook, which makes a thread lead. `false` when there is no hook.
    fn call_leader_hook(&self) -> bool {
        match &*self.leader_hook.load() {
            Some(hook) => {
                hook();
                true
            }
            None => false,
        }
    }

    /// Ends this thread's lead, and wakes the next leader. Returns whether commits are queued for
    /// which no thread sleeps, only callbacks wait.
    fn step_down(&self, mut queue: MutexGuard<'_, Queue>) -> bool {
        if queue.checkpoint_claim == LeadershipClaim::Waiting {
            queue.checkpoint_claim = LeadershipClaim::Granted;
            self.leadership_granted.notify_one();
            return false;
        }
        queue.has_leader = false;
        let mut has_callback = false;
        for ticket in &queue.commits {
            let mut state = ticket.state.lock();
            if let Some(thread) = state.waiting_thread.take() {
                drop(state);
                drop(queue);
                thread.unpark();
                return false;
            }
            has_callback |= state.callback.is_some();
        }
        has_callback
    }

    /// Steps 4 to 6, up to notifying those who wait.
    fn commit_batch(&self, batch: Batch, locks: &LockTable) -> FinishedBatch {
        let outcome = self.write_batch(&batch);
        let mut spins = 0;
        while batch.inserting.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins < 64 {
                std::hint::spin_loop()
            } else {
                thread::yield_now()
            }
        }
        match &outcome {
            Ok(()) => batch.memtable.publish(batch.last_ts),
            Err(error) => self.fail(error.clone(), locks),
        }
        FinishedBatch {
            tickets: batch.commits,
            outcome,
        }
    }

    /// Writes and syncs a batch, as far as it must.
    fn write_batch(&self, batch: &Batch) -> Result<()> {
        if let Some(error) = self.failure.get() {
            return Err(error);
        }
        let (Some(files), Durability::Written | Durability::Synced) =
            (&self.files, batch.durability)
        else {
            return Ok(());
        };
        let mut files = files.lock();
        let mut write = || {
            files.write(&batch.writes)?;
            self.written.store(batch.end.0, Ordering::Release);
            if batch.durability == Durability::Synced {
                files.sync()?;
                self.background_sync.await_outcome();
                if let Some(error) = self.failure.get() {
                    return Err(error);
                }
                self.synced.fetch_max(batch.end.0, Ordering::AcqRel);
                self.syncs.fetch_add(1, Ordering::Relaxed);
            }
            files.note_acknowledged(AcknowledgedEnd {
                lsn: batch.end,
                ts: batch.last_ts,
            });
            Ok(())
        };
        let outcome = write();
        if outcome.is_err() {
            files.erase(&batch.writes);
        }
        outcome
    }

    /// Once a second: syncs whatever is not on disk yet, without holding up commits.
    pub fn sync_in_background(&self, shared: &Shared) {
        let Some(files) = &self.files else {
            self.lead_group_commit(shared, Durability::Published);
            return;
        };
        self.lead_group_commit(shared, Durability::Written);
        let written = self.written.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) >= written {
            return;
        }
        let dirty = files.lock().dirty_file();
        self.background_sync.run(|| {
            let outcome = match dirty {
                Some((file, path)) => file.sync_data().map_err(Error::io("sync", path)),
                None => Ok(()),
            };
            match outcome {
                Ok(()) => {
                    self.synced.fetch_max(written, Ordering::AcqRel);
                    self.syncs.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => self.fail(error, &shared.locks),
            }
        });
    }

    /// Once a second: notes on disk how far the log is there.
    pub fn mark_synced(&self) -> Result<()> {
        // A tree that is damaged doesn't keep the log from being what it was.
        if !matches!(self.failure.get(), None | Some(Error::Damaged(_))) {
            return Ok(());
        }
        let marked = self.with_files(|files| files.mark(self.synced()));
        match marked.transpose()?.flatten() {
            Some((file, path)) => file.sync_data().map_err(Error::io("sync", path)),
            None => Ok(()),
        }
    }

    /// Ends the current memtable behind all that is queued, and has later commits go to the next.
    /// `publish_next` is called when the old one is complete, and before anything of the next is
    /// visible.
    pub fn switch_memtable(
        &self,
        shared: &Shared,
        publish_next: impl FnOnce(Arc<Memtable>),
    ) -> Result<()> {
        let mut queue = self.claim_leadership();
        self.leave_oversized_segment(&mut queue);
        let batch = queue.take_batch(Durability::Written);
        let next = Arc::new(Memtable::after(batch.last_ts));
        let old = std::mem::replace(&mut queue.memtable, Arc::clone(&next));
        drop(queue);
        let finished = self.commit_batch(batch, &shared.locks);
        let outcome = finished.outcome.clone();
        if outcome.is_ok() {
            let end = Lsn(self.written.load(Ordering::Acquire));
            let _ = old.ends_at.set(end);
            publish_next(Arc::clone(&next));
            // What has come to it meanwhile was out of all readers' sight.
            self.settle_into(next, &shared.locks);
        }
        self.end_claim(shared, self.queue.lock(), Some(finished));
        outcome
    }

    /// Leads as soon as the leader that there is has done its batch. One thread at a time: who has
    /// locked the tree.
    fn claim_leadership(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue.lock();
        if queue.has_leader {
            queue.checkpoint_claim = LeadershipClaim::Waiting;
            while queue.checkpoint_claim != LeadershipClaim::Granted {
                self.leadership_granted.wait(&mut queue);
            }
        }
        queue.checkpoint_claim = LeadershipClaim::None;
        queue.has_leader = true;
        queue
    }

    /// Ends a lead that was claimed, and notifies those of a batch.
    fn end_claim(
        &self,
        shared: &Shared,
        queue: MutexGuard<'_, Queue>,
        finished: Option<FinishedBatch>,
    ) {
        let has_callbacks = self.step_down(queue);
        if let Some(finished) = finished {
            finished.notify();
        }
        if has_callbacks && !self.call_leader_hook() {
            self.lead_group_commit(shared, Durability::Published);
        }
    }

    /// Has the log leave a segment that a large transaction needed: the checkpoint gives it back.
    /// Unless the disk is full.
    fn leave_oversized_segment(&self, queue: &mut Queue) {
        let (ts, synced) = (CommitTs(queue.next_ts), self.synced());
        let Some(log) = &mut queue.log else { return };
        if let Some(next) = log.after_oversized()
            && self.check_log_space(next).is_ok()
        {
            log.go_on_in(next, ts, synced);
        }
    }

    /// Whether the log is in a segment that a large transaction needed, and there is room for the next.
    pub fn can_leave_segment(&self) -> bool {
        let next = self
            .queue
            .lock()
            .log
            .as_ref()
            .and_then(LogTail::after_oversized);
        next.is_some_and(|next| self.check_log_space(next).is_ok())
    }

    /// Does something with the log's files, under their lock. `None` for a store in memory.
    pub fn with_files<R>(&self, work: impl FnOnce(&mut LogFiles) -> R) -> Option<R> {
        self.files.as_ref().map(|files| work(&mut files.lock()))
    }

    /// Whether no commit is on its way.
    pub fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        queue.commits.is_empty() && !queue.has_leader
    }

    pub fn has_log(&self) -> bool {
        self.files.is_some()
    }

    /// How far the log has been written.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// How far the log is on disk.
    pub fn synced(&self) -> Lsn {
        Lsn(self.synced.load(Ordering::Acquire))
    }
}

impl Queue {
    fn take_batch(&mut self, at_least: Durability) -> Batch {
        let buffered = self.log.as_ref().map_or(0, LogTail::buffered_bytes);
        let is_much = buffered > BUFFER_BYTES_MAX;
        let least = if is_much {
            at_least.max(Durability::Written)
        } else {
            at_least
        };
        let durability = std::mem::replace(&mut self.durability, Durability::Published).max(least);
        let end = self.log.as_ref().map_or(Lsn(0), LogTail::lsn);
        let writes = match &mut self.log {
            Some(log) if durability > Durability::Published => log.take_writes(),
            _ => Vec::new(),
        };
        Batch {
            commits: std::mem::take(&mut self.commits),
            writes,
            durability,
            inserting: std::mem::take(&mut self.inserting),
            memtable: Arc::clone(&self.memtable),
            last_ts: CommitTs(self.next_ts - 1),
            end,
        }
    }
}
