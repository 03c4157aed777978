//! A commit that was handed to the log, and how its outcome reaches those who wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use parking_lot::Mutex;

use crate::store::Shared;
use crate::{CommitTs, Result};

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// One commit's outcome, and who waits for it.
#[derive(Default)]
pub(crate) struct CommitTicket {
    pub is_done: AtomicBool,
    pub state: Mutex<TicketState>,
}

#[derive(Default)]
pub(crate) struct TicketState {
    pub outcome: Option<Result<()>>,
    /// The thread that waits in [`Commit::wait`].
    pub waiting_thread: Option<Thread>,
    /// What [`Commit::on_durable`] was given.
    pub callback: Option<Callback>,
}

/// A commit that was handed to the log. Dropping it leaves the commit on its way: it is synced with
/// the next one, or within a second.
#[must_use = "a commit is durable once it was waited for"]
pub struct Commit {
    shared: Arc<Shared>,
    ts: CommitTs,
    /// `None` when there was nothing to write.
    ticket: Option<Arc<CommitTicket>>,
}

impl Commit {
    pub(crate) fn of_nothing(shared: Arc<Shared>, ts: CommitTs) -> Commit {
        Commit {
            shared,
            ts,
            ticket: None,
        }
    }

    /// One whose outcome is known.
    pub(crate) fn finished(shared: Arc<Shared>, ts: CommitTs, outcome: Result<()>) -> Commit {
        let ticket = CommitTicket::default();
        ticket.state.lock().outcome = Some(outcome);
        ticket.is_done.store(true, Ordering::Release);
        Commit::queued(shared, ts, Arc::new(ticket))
    }

    pub(crate) fn queued(shared: Arc<Shared>, ts: CommitTs, ticket: Arc<CommitTicket>) -> Commit {
        Commit {
            shared,
            ts,
            ticket: Some(ticket),
        }
    }

    /// The commit's place in the order of all commits; that of the newest visible one if there was
    /// nothing to write.
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

    /// Whether it is durable or has failed: `wait` would return at once.
    pub fn is_done(&self) -> bool {
        self.ticket
            .as_ref()
            .is_none_or(|ticket| ticket.is_done.load(Ordering::Acquire))
    }

    /// Waits until it is durable; syncs on this thread if no other does. Fails if the log could not
    /// be written or synced: the commit is not visible then.
    pub fn wait(&self) -> Result<()> {
        match &self.ticket {
            Some(ticket) => self.shared.group.wait(&self.shared, ticket),
            None => Ok(()),
        }
    }

    /// Calls `then` once it is durable or has failed: now, or on the thread that finishes the sync.
    /// An event loop calls `Store::sync_pending` when it has run all that was ready.
    pub fn on_durable(&self, then: Box<dyn FnOnce(Result<()>) + Send>) {
        let Some(ticket) = &self.ticket else {
            return then(Ok(()));
        };
        let outcome = {
            let mut state = ticket.state.lock();
            match &state.outcome {
                Some(outcome) => outcome.clone(),
                None => {
                    state.callback = Some(then);
                    return;
                }
            }
        };
        then(outcome);
    }
}

/// A batch whose outcome is known, and those still to be notified of it.
pub(crate) struct FinishedBatch {
    pub tickets: Vec<Arc<CommitTicket>>,
    pub outcome: Result<()>,
}

impl FinishedBatch {
    /// Wakes the threads that wait, then runs the callbacks.
    pub fn notify(self) {
        let mut callbacks = Vec::new();
        for ticket in self.tickets {
            let waiting_thread = {
                let mut state = ticket.state.lock();
                state.outcome = Some(self.outcome.clone());
                ticket.is_done.store(true, Ordering::Release);
                callbacks.extend(state.callback.take());
                state.waiting_thread.take()
            };
            if let Some(thread) = waiting_thread {
                thread.unpark();
            }
        }
        for callback in callbacks {
            callback(self.outcome.clone());
        }
    }
}
