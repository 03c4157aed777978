//! Group commit: how many commits share one sync, and who does it.
//!
//! There is no log thread. Whoever waits for a commit becomes the **leader** if there is none, and
//! does the work for all that queued up by then; a client alone never hands its commit to another
//! thread and back. Those that arrive while a leader is at it queue for the next one.
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
//! 2. `enqueue`: under the queue's mutex it gets its timestamp, and its record its place in the log.
//! 3. Its versions are put into the current generation, where nobody sees them yet.
//! 4. A leader takes the whole queue as a batch, writes it, and syncs it if one of the batch asks.
//! 5. The leader publishes the batch: one store moves the visible timestamp over all of it.
//! 6. Row locks are released, waiters woken, callbacks run.
//!
//! Batches are published in the order of their timestamps, since there is one leader at a time. How
//! far a batch must go is the flush policy's say at the time of each commit; the strictest of a
//! batch decides.
//!
//! A write or sync that fails ends all writing: nobody can tell what the disk has, so the batch is
//! refused, its versions stay invisible, and the store is read-only. It ends by itself when the cause
//! does; `recovery.rs` tells how. A disk that is full is noticed before: a commit that would need
//! another log file is refused in step 2 while there is no room for one, and nothing has happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::locks::{HeldLocks, LockTable};
use crate::log::{Extent, Good, LogFiles, Part, Payload, Room, Tail};
use crate::options::Flush;
use crate::overlay::{Overlay, SpaceChange};
use crate::store::Shared;
use crate::versions::Generation;
use crate::{CommitTs, Error, Lsn, Result};

/// With flush policy 0, so much is kept in memory before it is written.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

/// How far a commit must get before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    Publish,
    Write,
    Sync,
}

impl Need {
    pub fn of(flush: Flush) -> Need {
        match flush {
            Flush::EachSecond => Need::Publish,
            Flush::WriteAtCommit => Need::Write,
            Flush::AtCommit => Need::Sync,
        }
    }
}

pub(crate) struct GroupCommit {
    queue: Mutex<Queue>,
    lead_is_handed_over: Condvar,
    /// `None` for a store in memory.
    files: Option<Mutex<LogFiles>>,
    written: AtomicU64,
    synced: AtomicU64,
    room: Option<Arc<Room>>,
    failure: Failure,
    /// A sync is under way that no commit waits for, and its outcome not yet known.
    background_sync: BackgroundSync,
    lead_hook: ArcSwapOption<LeadHook>,
    pub syncs: AtomicU64,
    pub commits: AtomicU64,
}

/// Why writing is refused, while it is.
#[derive(Default)]
struct Failure {
    is_set: AtomicBool,
    cause: Mutex<Option<Error>>,
}

impl Failure {
    fn get(&self) -> Option<Error> {
        match self.is_set.load(Ordering::Acquire) {
            true => self.cause.lock().clone(),
            false => None,
        }
    }

    /// `false` if there was one already.
    fn set(&self, error: Error) -> bool {
        let mut cause = self.cause.lock();
        let is_first = cause.is_none();
        if is_first || matches!(error, Error::Closed) {
            *cause = Some(error);
        }
        self.is_set.store(true, Ordering::Release);
        is_first
    }

    fn clear(&self) {
        let mut cause = self.cause.lock();
        if !matches!(*cause, Some(Error::Closed)) {
            *cause = None;
            self.is_set.store(false, Ordering::Release);
        }
    }
}

/// The system tells of a failed sync once. A commit whose own sync comes right after one in the
/// background that has failed would be told that all is well, hence it asks here.
#[derive(Default)]
struct BackgroundSync {
    is_under_way: AtomicBool,
    turn: Mutex<()>,
}

impl BackgroundSync {
    /// `sync` is to have made a failure known when it returns.
    fn carry_out(&self, sync: impl FnOnce()) {
        let turn = self.turn.lock();
        self.is_under_way.store(true, Ordering::SeqCst);
        sync();
        self.is_under_way.store(false, Ordering::SeqCst);
        drop(turn);
    }

    fn await_outcome(&self) {
        if self.is_under_way.load(Ordering::SeqCst) {
            drop(self.turn.lock());
        }
    }
}

/// Called by a leader that has done its batch when others wait by callback only: somebody is to call
/// `Store::sync_pending`. Without a hook the leader goes on itself.
pub type LeadHook = Arc<dyn Fn() + Send + Sync>;

struct Queue {
    log: Option<Tail>,
    next_ts: u64,
    generation: Arc<Generation>,
    waiting: Vec<Waiting>,
    need: Need,
    /// How many of the queue are still putting their versions into the generation.
    inserting: Arc<AtomicUsize>,
    is_led: bool,
    lead: Lead,
}

/// A checkpoint's claim to lead next. It goes before all others, so that load can't keep it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    Unclaimed,
    IsAwaited,
    HandedOver,
}

struct Waiting {
    ticket: Arc<Ticket>,
    locks: HeldLocks,
}

struct Batch {
    waiting: Vec<Waiting>,
    parts: Vec<Part>,
    need: Need,
    inserting: Arc<AtomicUsize>,
    generation: Arc<Generation>,
    last_ts: CommitTs,
    end: Lsn,
}

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// One commit's outcome, and who wants to know.
#[derive(Default)]
struct Ticket {
    is_done: AtomicBool,
    state: Mutex<TicketState>,
}

#[derive(Default)]
struct TicketState {
    outcome: Option<Result<()>>,
    sleeper: Option<Thread>,
    then: Option<Callback>,
}

/// A commit that was handed to the log. Dropping it leaves the commit on its way: it is synced with
/// the next one, or within a second.
#[must_use = "a commit is durable once it was waited for"]
pub struct Commit {
    shared: Arc<Shared>,
    ts: CommitTs,
    /// `None` when there was nothing to write.
    ticket: Option<Arc<Ticket>>,
}

impl Commit {
    pub(crate) fn of_nothing(shared: Arc<Shared>, ts: CommitTs) -> Commit {
        Commit {
            shared,
            ts,
            ticket: None,
        }
    }

    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Whether it is as safe as the flush policy asks, and visible to others.
    pub fn is_durable(&self) -> bool {
        self.ticket.as_ref().is_none_or(|ticket| {
            ticket.is_done.load(Ordering::Acquire)
                && matches!(ticket.state.lock().outcome, Some(Ok(())))
        })
    }

    /// Whether `is_durable` or failed: `wait` would return at once.
    pub fn is_done(&self) -> bool {
        self.ticket
            .as_ref()
            .is_none_or(|ticket| ticket.is_done.load(Ordering::Acquire))
    }

    /// Waits until it is durable; syncs on this thread if no other is at it.
    pub fn wait(&self) -> Result<()> {
        match &self.ticket {
            Some(ticket) => self.shared.group.wait(&self.shared, ticket),
            None => Ok(()),
        }
    }

    /// Has `then` called once it is durable or has failed: now, or by the thread that finishes the
    /// sync. An event loop calls `Store::sync_pending` when it has run all that was ready.
    pub fn on_durable(&self, then: Box<dyn FnOnce(Result<()>) + Send>) {
        let Some(ticket) = &self.ticket else {
            return then(Ok(()));
        };
        let outcome = {
            let mut state = ticket.state.lock();
            match &state.outcome {
                Some(outcome) => outcome.clone(),
                None => {
                    state.then = Some(then);
                    return;
                }
            }
        };
        then(outcome);
    }
}

impl GroupCommit {
    pub fn new(
        log: Option<(LogFiles, Tail)>,
        generation: Arc<Generation>,
        last_ts: CommitTs,
    ) -> GroupCommit {
        let (mut files, tail) = log.unzip();
        let end = tail.as_ref().map_or(0, |tail| tail.lsn().0);
        if let Some(files) = &mut files {
            files.note_good(Good {
                end: Lsn(end),
                ts: last_ts,
            });
        }
        GroupCommit {
            room: files.as_ref().map(LogFiles::room),
            queue: Mutex::new(Queue {
                log: tail,
                next_ts: last_ts.0 + 1,
                generation,
                waiting: Vec::new(),
                need: Need::Publish,
                inserting: Arc::default(),
                is_led: false,
                lead: Lead::Unclaimed,
            }),
            lead_is_handed_over: Condvar::new(),
            files: files.map(Mutex::new),
            written: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            failure: Failure::default(),
            background_sync: BackgroundSync::default(),
            lead_hook: ArcSwapOption::empty(),
            syncs: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        }
    }

    /// Refuses writing from now on.
    pub fn fail(&self, error: Error) {
        if self.failure.set(error.clone()) && !matches!(error, Error::Closed) {
            tracing::error!(%error, "a write to the log failed, the store is read-only for now");
        }
    }

    /// Whether writing is refused, but not because the store was closed.
    pub fn has_failed(&self) -> bool {
        !matches!(self.failure.get(), None | Some(Error::Closed))
    }

    /// Whether writing is refused because the tree can't be written to any more.
    pub fn is_held_up_by_damage(&self) -> bool {
        matches!(self.failure.get(), Some(Error::Damaged(_)))
    }

    pub fn check_writable(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(Error::Closed) => Err(Error::Closed),
            Some(cause) => Err(Error::ReadOnly {
                cause: Arc::new(cause),
            }),
        }
    }

    /// Steps 2 and 3: a place in the log, and versions that nobody sees yet. Refused if the log has no room for it.
    pub fn enqueue(
        &self,
        shared: &Arc<Shared>,
        overlay: Overlay,
        payload: &Payload,
        locks: HeldLocks,
        need: Need,
    ) -> Result<Commit> {
        let ticket = Arc::new(Ticket::default());
        let (ts, generation, inserting) = {
            let mut queue = self.queue.lock();
            let next = queue.log.as_ref().and_then(|log| log.next_segment(payload));
            if let Some(segment) = next
                && let Err(error) = self.check_room(segment)
            {
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
            queue.need = queue.need.max(need);
            queue.waiting.push(Waiting {
                ticket: Arc::clone(&ticket),
                locks,
            });
            queue.inserting.fetch_add(1, Ordering::Relaxed);
            (
                ts,
                Arc::clone(&queue.generation),
                Arc::clone(&queue.inserting),
            )
        };
        apply(&generation, ts, overlay);
        inserting.fetch_sub(1, Ordering::Release);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(Commit {
            shared: Arc::clone(shared),
            ts,
            ticket: Some(ticket),
        })
    }

    fn check_room(&self, up_to: Extent) -> Result<()> {
        match &self.room {
            Some(room) => room.check(up_to),
            None => Ok(()),
        }
    }

    fn wait(&self, shared: &Shared, ticket: &Ticket) -> Result<()> {
        loop {
            let queue = self.queue.lock();
            let mut state = ticket.state.lock();
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            if queue.is_led {
                state.sleeper = Some(thread::current());
                drop((state, queue));
                thread::park();
            } else {
                drop(state);
                self.lead_from(queue, shared, Need::Publish);
            }
        }
    }

    /// Takes the lead unless another thread has it. `false` means that one has.
    pub fn lead(&self, shared: &Shared, at_least: Need) -> bool {
        let queue = self.queue.lock();
        if queue.is_led {
            return false;
        }
        self.lead_from(queue, shared, at_least);
        true
    }

    fn lead_from<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, shared: &Shared, at_least: Need) {
        loop {
            let has_buffered = queue
                .log
                .as_ref()
                .is_some_and(|log| log.buffered_bytes() > 0);
            if queue.waiting.is_empty() && !(has_buffered && at_least > Need::Publish) {
                return;
            }
            queue.is_led = true;
            let batch = queue.take_batch(at_least);
            drop(queue);
            let finished = self.carry_out(batch, &shared.locks);
            shared.note_growth();
            let goes_on = self.leave_lead(self.queue.lock());
            finished.tell();
            if !goes_on || self.hand_on_lead() {
                return;
            }
            queue = self.queue.lock();
            if queue.is_led {
                return;
            }
        }
    }

    pub fn set_lead_hook(&self, hook: Option<LeadHook>) {
        self.lead_hook.store(hook.map(Arc::new));
    }

    /// Tells whoever waits by callback to lead. `false` when nobody is to be told.
    fn hand_on_lead(&self) -> bool {
        match &*self.lead_hook.load() {
            Some(hook) => {
                hook();
                true
            }
            None => false,
        }
    }

    /// Wakes the next leader. Returns whether there is work that nobody sleeps for, only callbacks.
    fn leave_lead(&self, mut queue: MutexGuard<'_, Queue>) -> bool {
        if queue.lead == Lead::IsAwaited {
            queue.lead = Lead::HandedOver;
            self.lead_is_handed_over.notify_one();
            return false;
        }
        queue.is_led = false;
        let mut has_callback = false;
        for waiting in &queue.waiting {
            let mut state = waiting.ticket.state.lock();
            if let Some(sleeper) = state.sleeper.take() {
                drop(state);
                drop(queue);
                sleeper.unpark();
                return false;
            }
            has_callback |= state.then.is_some();
        }
        has_callback
    }

    /// Steps 4 to 6, up to waking those who wait.
    fn carry_out(&self, batch: Batch, locks: &LockTable) -> Finished {
        let outcome = self.make_safe(&batch);
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
            Ok(()) => batch.generation.publish(batch.last_ts),
            Err(error) => self.fail(error.clone()),
        }
        let mut tickets = Vec::with_capacity(batch.waiting.len());
        for Waiting {
            ticket,
            locks: held,
        } in batch.waiting
        {
            locks.release(held);
            tickets.push(ticket);
        }
        Finished { tickets, outcome }
    }

    fn make_safe(&self, batch: &Batch) -> Result<()> {
        if let Some(error) = self.failure.get() {
            return Err(error);
        }
        let (Some(files), Need::Write | Need::Sync) = (&self.files, batch.need) else {
            return Ok(());
        };
        let mut files = files.lock();
        let mut write = || {
            files.write(&batch.parts)?;
            self.written.store(batch.end.0, Ordering::Release);
            if batch.need == Need::Sync {
                files.sync()?;
                self.background_sync.await_outcome();
                if let Some(error) = self.failure.get() {
                    return Err(error);
                }
                self.synced.fetch_max(batch.end.0, Ordering::AcqRel);
                self.syncs.fetch_add(1, Ordering::Relaxed);
            }
            files.note_good(Good {
                end: batch.end,
                ts: batch.last_ts,
            });
            Ok(())
        };
        let outcome = write();
        if outcome.is_err() {
            files.disown(&batch.parts);
        }
        outcome
    }

    /// Once a second: whatever is not on disk yet goes there, without holding up who commits.
    pub fn sync_in_background(&self, shared: &Shared) {
        let Some(files) = &self.files else {
            self.lead(shared, Need::Publish);
            return;
        };
        self.lead(shared, Need::Write);
        let written = self.written.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) >= written {
            return;
        }
        let dirty = files.lock().dirty_file();
        self.background_sync.carry_out(|| {
            let outcome = match dirty {
                Some((file, path)) => file.sync_data().map_err(Error::io("sync", path)),
                None => Ok(()),
            };
            match outcome {
                Ok(()) => {
                    self.synced.fetch_max(written, Ordering::AcqRel);
                    self.syncs.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => self.fail(error),
            }
        });
    }

    /// Once a second: notes on disk how far the log is there.
    pub fn mark_synced(&self) -> Result<()> {
        if self.failure.get().is_some() {
            return Ok(());
        }
        let marked = self.with_files(|files| files.mark(self.synced()));
        match marked.transpose()?.flatten() {
            Some((file, path)) => file.sync_data().map_err(Error::io("sync", path)),
            None => Ok(()),
        }
    }

    /// Ends the current generation behind all that is queued, and has later commits go to the next.
    /// `publish_next` is called when the old one is complete, and before anything of the next is
    /// visible.
    pub fn start_generation(
        &self,
        shared: &Shared,
        publish_next: impl FnOnce(Arc<Generation>),
    ) -> Result<()> {
        let mut queue = self.queue.lock();
        if queue.is_led {
            queue.lead = Lead::IsAwaited;
            while queue.lead != Lead::HandedOver {
                self.lead_is_handed_over.wait(&mut queue);
            }
        }
        queue.lead = Lead::Unclaimed;
        queue.is_led = true;
        let batch = queue.take_batch(Need::Write);
        let next = Arc::new(Generation::after(batch.last_ts));
        let old = std::mem::replace(&mut queue.generation, Arc::clone(&next));
        drop(queue);
        let finished = self.carry_out(batch, &shared.locks);
        let outcome = finished.outcome.clone();
        if outcome.is_ok() {
            let end = Lsn(self.written.load(Ordering::Acquire));
            let _ = old.ends_at.set(end);
            publish_next(next);
        }
        let goes_on = self.leave_lead(self.queue.lock());
        finished.tell();
        if goes_on && !self.hand_on_lead() {
            self.lead(shared, Need::Publish);
        }
        outcome
    }

    /// Has commits go on after a failure; see `recovery.rs`. `replace` is to put two generations in the
    /// newest one's place, `fold` to write all but the first into the tree. `false` if somebody else
    /// is at the log, or there is nothing to end.
    pub fn resume(
        &self,
        shared: &Shared,
        replace: impl FnOnce(Arc<Generation>, Arc<Generation>),
        fold: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let mut queue = self.queue.lock();
        if queue.is_led || !self.has_failed() {
            return Ok(false);
        }
        queue.is_led = true;
        drop(queue);
        let outcome = self.resume_as_leader(shared, replace, fold);
        if outcome.is_ok() {
            self.failure.clear();
        }
        let goes_on = self.leave_lead(self.queue.lock());
        if goes_on && !self.hand_on_lead() {
            self.lead(shared, Need::Publish);
        }
        outcome.map(|()| true)
    }

    fn resume_as_leader(
        &self,
        shared: &Shared,
        replace: impl FnOnce(Arc<Generation>, Arc<Generation>),
        fold: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        drop(self.refuse_queued(shared));
        let (segment, good) = {
            let mut files = files.lock();
            (files.rewrite_tail(shared.folded_to())?, files.good())
        };
        let mut queue = self.refuse_queued(shared);
        if let Some(log) = &mut queue.log {
            log.rewind(segment, good.end);
        }
        queue.need = Need::Publish;
        self.written.store(good.end.0, Ordering::Release);
        self.synced.store(good.end.0, Ordering::Release);
        let newest = Arc::clone(shared.epoch.load().newest());
        let visible = newest.visible();
        if !newest.is_untouched() {
            let copy = newest.visible_copy();
            let _ = copy.ends_at.set(good.end);
            let next = Arc::new(Generation::after(visible));
            queue.generation = Arc::clone(&next);
            replace(Arc::new(copy), next);
        } else {
            queue.generation = newest;
        }
        drop(queue);
        if visible > good.ts {
            fold()?;
            let end = good.end;
            files.lock().note_good(Good { end, ts: visible });
        }
        Ok(())
    }

    /// Refuses all commits that are queued, as it must while writing is refused. None is queued, nor
    /// puts versions anywhere, as long as the guard that it gives is held.
    fn refuse_queued(&self, shared: &Shared) -> MutexGuard<'_, Queue> {
        loop {
            let mut queue = self.queue.lock();
            if queue.waiting.is_empty() {
                return queue;
            }
            let batch = queue.take_batch(Need::Publish);
            drop(queue);
            self.carry_out(batch, &shared.locks).tell();
        }
    }

    pub fn with_files<R>(&self, work: impl FnOnce(&mut LogFiles) -> R) -> Option<R> {
        self.files.as_ref().map(|files| work(&mut files.lock()))
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        let queue = self.queue.lock();
        queue.waiting.is_empty() && !queue.is_led
    }

    pub fn has_log(&self) -> bool {
        self.files.is_some()
    }

    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    pub fn synced(&self) -> Lsn {
        Lsn(self.synced.load(Ordering::Acquire))
    }
}

impl Queue {
    fn take_batch(&mut self, at_least: Need) -> Batch {
        let buffered = self.log.as_ref().map_or(0, Tail::buffered_bytes);
        let is_much = buffered > BUFFER_BYTES_MAX;
        let least = if is_much {
            at_least.max(Need::Write)
        } else {
            at_least
        };
        let need = std::mem::replace(&mut self.need, Need::Publish).max(least);
        let end = self.log.as_ref().map_or(Lsn(0), Tail::lsn);
        let parts = match &mut self.log {
            Some(log) if need > Need::Publish => log.take_parts(),
            _ => Vec::new(),
        };
        Batch {
            waiting: std::mem::take(&mut self.waiting),
            parts,
            need,
            inserting: std::mem::take(&mut self.inserting),
            generation: Arc::clone(&self.generation),
            last_ts: CommitTs(self.next_ts - 1),
            end,
        }
    }
}

/// A batch whose fate is known, to be told to those who wait.
struct Finished {
    tickets: Vec<Arc<Ticket>>,
    outcome: Result<()>,
}

impl Finished {
    fn tell(self) {
        let mut callbacks = Vec::new();
        for ticket in self.tickets {
            let sleeper = {
                let mut state = ticket.state.lock();
                state.outcome = Some(self.outcome.clone());
                ticket.is_done.store(true, Ordering::Release);
                callbacks.extend(state.then.take());
                state.sleeper.take()
            };
            if let Some(sleeper) = sleeper {
                sleeper.unpark();
            }
        }
        for then in callbacks {
            then(self.outcome.clone());
        }
    }
}

/// Puts a transaction's writes into a generation.
fn apply(generation: &Generation, ts: CommitTs, overlay: Overlay) {
    for written in overlay.spaces {
        let writes = written.writes.iter();
        let writes = writes.map(|(key, value)| (&**key, value.as_deref()));
        generation.insert(written.space, ts, written.net_rows, writes);
    }
    for (space, change) in overlay.changes {
        let versions = generation.space(space);
        if change == SpaceChange::Drop {
            versions.drop_at(ts);
        }
    }
}
