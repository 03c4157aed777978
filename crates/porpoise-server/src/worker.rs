//! A worker: an event loop over its connections.
//!
//! ```text
//!  ┌─► messages ──► serve each ready connection (`ReadyQueue`) to the end of what it sent ──► nothing ready?
//!  │                                                                                              │
//!  │     1. poll once more without sleeping; sync the commits that wait, on this thread if there is nothing else
//!  │        to do or clients spin for their replies, otherwise on the sync thread
//!  │     2. spin for a little longer, as long as that has been worth it lately
//!  └──── 3. sleep until a socket, a message or a deadline
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`inbox`] | messages from other threads |
//! | [`acceptor`] | new clients, a few a turn |
//! | [`connections`] | the table of connections; how they enter, leave and change workers |
//! | [`rings`] | connections over shared memory, which are polled in memory |
//! | [`wait`] | polling, syncing, spinning, sleeping |
//! | [`socket_spin`] | how long to spin for sockets |
//!
//! Replies of one turn over sockets are sent together ([`EventLoop::send_held`]): each wakes a
//! client, who would interrupt this thread or, worse, the other core, once for each reply.
//!
//! A connection is in its slot, or checked out: being served by the thread that runs this loop, or
//! by one that had to hand the loop over because its statement waits ([`crate::thread_pool`]). That
//! thread sends the connection back by message. While it is checked out, its socket is still
//! watched, so that the death of a client is noticed at once, whatever its statement waits for.
//!
//! A commit that is not yet on disk keeps its connection in the slot, with its reply held back,
//! until a message says that it is durable.

mod acceptor;
mod connections;
mod inbox;
mod rings;
mod socket_spin;
mod wait;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::connection::{Connection, NextState};
use crate::io_buffers::IoBuffers;
use crate::listener::Listener;
use crate::ready_queue::ReadyQueue;
use crate::server_state::ServerState;
use crate::thread_pool::{self, ThreadPool};

use acceptor::{Acceptor, NothingToAccept};
use connections::{ConnectionTable, SlotState};
pub(crate) use inbox::{WorkerInbox, WorkerMessage};
use rings::PolledRings;
use socket_spin::SocketSpin;
use wait::CommitSync;

const WAKE: Token = Token(usize::MAX);
/// Listeners' tokens lie below [`WAKE`], connections' from 0 up.
const FIRST_LISTENER: usize = usize::MAX - 64;
const EVENTS_MAX: usize = 256;

/// The longest time that replies wait for the other replies of their turn.
const HOLD_MAX: Duration = Duration::from_micros(200);

/// Clients that a worker accepts before it serves those it has.
const ACCEPTS_PER_TURN: usize = 8;

pub(crate) struct EventLoop {
    server: Arc<ServerState>,
    inbox: Arc<WorkerInbox>,
    poll: Poll,
    events: Events,
    acceptor: Acceptor,
    connections: ConnectionTable,
    ready: ReadyQueue,
    held_replies: HeldReplies,
    rings: PolledRings,
    socket_spin: SocketSpin,
    commit_sync: CommitSync,
    /// The server stops: when statements are interrupted.
    stopping: Option<Instant>,
    now: Instant,
}

/// Connections whose replies are held back to the end of the turn.
struct HeldReplies {
    tokens: Vec<Token>,
    /// When the first of them was held back.
    since: Instant,
}

impl EventLoop {
    /// What a loop waits on, and how other threads reach it: made before the loops, which all know
    /// each other.
    pub fn open() -> io::Result<(Poll, Arc<WorkerInbox>)> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), WAKE)?;
        Ok((poll, Arc::new(WorkerInbox::new(waker))))
    }

    pub fn with_listeners(
        server: Arc<ServerState>,
        poll: Poll,
        inbox: Arc<WorkerInbox>,
        listeners: Arc<[Listener]>,
    ) -> io::Result<Box<EventLoop>> {
        let traffic = inbox.traffic.clone();
        let acceptor = Acceptor::open(server.clone(), listeners, traffic, poll.registry())?;
        Ok(Box::new(EventLoop {
            server,
            inbox,
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            acceptor,
            connections: ConnectionTable::default(),
            ready: ReadyQueue::default(),
            held_replies: HeldReplies {
                tokens: Vec::new(),
                since: Instant::now(),
            },
            rings: PolledRings::default(),
            socket_spin: SocketSpin::default(),
            commit_sync: CommitSync::default(),
            stopping: None,
            now: Instant::now(),
        }))
    }

    pub fn thread_pool(&self) -> Arc<ThreadPool> {
        self.server.thread_pool.clone()
    }

    /// Runs until the server ends or until a statement has to wait; then another thread has the
    /// loop.
    pub fn run(mut self: Box<Self>, buffers: &mut IoBuffers) {
        // Of the turn in which the loop was handed over.
        self.send_held();
        loop {
            self.read_messages();
            self.ready.begin_turn();
            let mut is_first = true;
            while let Some(token) = self.next_ready(is_first) {
                is_first = false;
                buffers.holds_replies =
                    !self.ready.is_empty() || !self.held_replies.tokens.is_empty();
                let Some(mut connection) = self.check_out(token) else {
                    continue;
                };
                self.record_served(token);
                thread_pool::park_loop(self);
                let mut next = serve(&mut connection, buffers);
                match thread_pool::reclaim_loop() {
                    Some(back) => self = back,
                    None => {
                        // The turn that the reply would be held back for is over.
                        if matches!(next, NextState::ReplyHeld) {
                            next = connection.send_held();
                        }
                        let inbox = connection.inbox().clone();
                        inbox.send(WorkerMessage::StatementDone(token, connection, next));
                        return;
                    }
                }
                if matches!(next, NextState::ReplyHeld) {
                    self.record_held(token);
                }
                self.check_in(token, connection, next);
                let held = &self.held_replies;
                if !held.tokens.is_empty() && held.since.elapsed() > HOLD_MAX {
                    self.send_held();
                }
            }
            self.send_held();
            if self.has_ended() {
                return;
            }
            self.wait();
            self.expire();
        }
    }

    fn next_ready(&mut self, is_first: bool) -> Option<Token> {
        if self.stopping.is_some() {
            return self.ready.pop_any();
        }
        self.ready.pop(is_first, self.now)
    }

    fn record_served(&mut self, token: Token) {
        if let Some(slot) = self.connections.get_mut(token) {
            self.commit_sync.record_served(&mut slot.sync_interval);
        }
    }

    fn record_held(&mut self, token: Token) {
        if self.held_replies.tokens.is_empty() {
            self.held_replies.since = Instant::now();
        }
        self.held_replies.tokens.push(token);
    }

    /// Sends the replies that were held back for each other.
    fn send_held(&mut self) {
        let mut tokens = std::mem::take(&mut self.held_replies.tokens);
        for token in tokens.drain(..) {
            let Some(slot) = self.connections.get_mut(token) else {
                continue;
            };
            slot.reply_held = false;
            if let Some(mut connection) = self.check_out(token) {
                let next = connection.send_held();
                self.check_in(token, connection, next);
            }
        }
        self.held_replies.tokens = tokens;
    }

    // ── Messages ─────────────────────────────────────────────────────────────────────────────

    fn read_messages(&mut self) {
        for message in self.inbox.take() {
            match message {
                WorkerMessage::Adopt(connection) => self.adopt(connection),
                WorkerMessage::StatementDone(token, connection, next) => {
                    // Nobody may have taken what its socket had to say meanwhile.
                    if let Some(slot) = self.connections.get_mut(token) {
                        slot.missed_event = true;
                    }
                    self.check_in(token, connection, next);
                }
                WorkerMessage::CommitDurable(token, result) => self.commit_durable(token, result),
                // Commits are synced before this worker waits.
                WorkerMessage::SyncPending => {}
                WorkerMessage::Killed(token) => self.enqueue(token),
                WorkerMessage::Stop(grace_ends) => self.stop(grace_ends),
            }
        }
    }

    fn commit_durable(&mut self, token: Token, result: porpoise_storage::Result<()>) {
        self.inbox.commits.fetch_sub(1, Ordering::SeqCst);
        let Some(slot) = self.connections.get_mut(token) else {
            return;
        };
        if !std::mem::take(&mut slot.reply_held) {
            return;
        }
        let Some(mut connection) = self.check_out(token) else {
            return;
        };
        let next = connection.commit_durable(result);
        self.check_in(token, connection, next);
    }

    fn stop(&mut self, grace_ends: Instant) {
        self.acceptor.close(self.poll.registry());
        self.stopping = Some(grace_ends);
        for index in 0..self.connections.len() {
            let token = self.connections.token_at(index);
            self.enqueue(token);
        }
    }

    fn has_ended(&self) -> bool {
        self.stopping.is_some() && self.connections.has_no_connections() && self.inbox.close()
    }

    // ── Deadlines and new clients ────────────────────────────────────────────────────────────

    /// Deadlines that are over: the connection learns of it when it is served.
    fn expire(&mut self) {
        while let Some((index, entry)) = self.connections.timers.pop(self.now) {
            let token = self.connections.token_at(index);
            let (slot, timers) = self.connections.slot_and_timers(index);
            let is_over = slot.deadline.is_over(self.now);
            let mut expired = false;
            match &mut slot.state {
                SlotState::Free => {}
                SlotState::Resident(_) if !slot.reply_held && !is_over => {}
                SlotState::Resident(connection) if !slot.reply_held => {
                    connection.mark_expired();
                    timers.set(index, &mut slot.deadline, None);
                    expired = true;
                }
                // It gets a deadline of its own when it is back.
                SlotState::Resident(_) | SlotState::CheckedOut(_) => {
                    timers.set(index, &mut slot.deadline, None);
                }
            }
            timers.reinsert(index, &mut slot.deadline, entry);
            if expired {
                self.enqueue(token);
            }
        }
        if self
            .stopping
            .is_some_and(|grace_ends| grace_ends <= self.now)
        {
            for slot in self.connections.slots() {
                if let SlotState::CheckedOut(Some(control)) = &slot.state {
                    control.kill_connection();
                }
            }
        }
        if self.acceptor.resume(self.poll.registry(), self.now) {
            self.accept(0);
        }
    }

    /// Accepts clients that wait at a listener, a few at a time: the connections of the loop have
    /// their turn too.
    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTS_PER_TURN {
            let registry = self.poll.registry();
            match self.acceptor.accept(listener, registry, self.now) {
                Ok(Some(connection)) => self.adopt(connection),
                Ok(None) => {}
                Err(NothingToAccept) => return,
            }
        }
    }
}

/// Serves a connection; one whose statement panics is closed, and the server goes on.
fn serve(connection: &mut Connection, buffers: &mut IoBuffers) -> NextState {
    catch_unwind(AssertUnwindSafe(|| connection.serve(buffers))).unwrap_or_else(|_| {
        tracing::error!(
            "connection {} was closed: its statement panicked",
            connection.id()
        );
        buffers.reset();
        connection.close_after_panic()
    })
}
