//! How other threads reach a worker: messages, and a wake-up if the worker sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mio::Token;
use parking_lot::Mutex;

use crate::connection::{Connection, NextState};
use crate::traffic::TrafficCounters;

/// What another thread tells a worker.
pub(crate) enum WorkerMessage {
    /// Take over a connection that another worker had.
    Adopt(Box<Connection>),
    /// A statement on a thread without the loop is done: its connection comes back.
    StatementDone(Token, Box<Connection>, NextState),
    /// The connection's commit is on disk, or never will be.
    CommitDurable(Token, porpoise_storage::Result<()>),
    /// Commits of this worker wait for a sync, and the sync that ran may have begun before them.
    SyncPending,
    /// The connection was killed: serve it, even if its client is silent.
    Killed(Token),
    /// The host of the connection's client is looked up: its login can go on.
    HostFound(Token),
    /// End: close idle connections, and interrupt statements.
    Stop,
}

/// A worker's message queue, and the counters that other threads read.
pub(crate) struct WorkerInbox {
    /// `None` once the worker has ended: nobody would read them.
    messages: Mutex<Option<Vec<WorkerMessage>>>,
    /// The worker sleeps, or is about to: a message must be followed by a wake-up.
    asleep: AtomicBool,
    waker: mio::Waker,
    /// What the worker waits on, for threads that change what is watched of a connection that they have.
    pub registry: mio::Registry,
    /// Connections that this worker has.
    pub connections: AtomicUsize,
    pub traffic: Arc<TrafficCounters>,
    /// Commits of its connections that are not on disk yet.
    pub commits: AtomicUsize,
}

impl WorkerInbox {
    pub fn new(waker: mio::Waker, registry: mio::Registry) -> WorkerInbox {
        WorkerInbox {
            messages: Mutex::new(Some(Vec::new())),
            asleep: AtomicBool::new(false),
            waker,
            registry,
            connections: AtomicUsize::new(0),
            traffic: Arc::default(),
            commits: AtomicUsize::new(0),
        }
    }

    /// Sends a message, which is dropped if the worker has ended.
    pub fn send(&self, message: WorkerMessage) {
        drop(self.try_send(message));
    }

    /// Sends a message, or gives it back if the worker has ended.
    pub fn try_send(&self, message: WorkerMessage) -> Result<(), WorkerMessage> {
        match &mut *self.messages.lock() {
            Some(messages) => messages.push(message),
            None => return Err(message),
        }
        // The worker stores `asleep` and then looks for messages; this thread does the opposite.
        // With sequentially consistent order one of the two sees what the other did.
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!("can't wake a worker: {error}");
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.messages.lock().as_ref().is_none_or(Vec::is_empty)
    }

    /// Takes all messages there are.
    pub fn take(&self) -> Vec<WorkerMessage> {
        let mut messages = self.messages.lock();
        messages.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The worker sleeps, and nobody has woken it yet.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Says whether the worker is about to sleep, or is awake again. After saying that it is about
    /// to sleep, the worker has to look once more whether there are messages.
    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
    }

    /// Refuses messages from now on. False, and nothing changes, if there are unread ones.
    pub fn close(&self) -> bool {
        let mut messages = self.messages.lock();
        let is_empty = messages.as_ref().is_none_or(Vec::is_empty);
        if is_empty {
            *messages = None;
        }
        is_empty
    }
}
