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
//! | [`dedicated`] | a thread that serves one connection, whose statements wait for the disk |
//!
//! Replies of one turn over sockets are sent together ([`EventLoop::send_held`]): each wakes a
//! client, who would interrupt this thread or, worse, the other core, once for each reply.
//!
//! A connection is in its slot, or checked out: being served by the thread that runs this loop, or
//! by one that has none, because its statement waits or takes long ([`crate::thread_pool`]). That
//! thread sends the connection back by message. While it is checked out, its socket is still
//! watched, so that the death of a client is noticed at once, whatever its statement does.
//!
//! [`Worker`] is the loop and whose it is: the thread that runs it lets go of it while it serves a
//! connection or syncs the log, and takes it again afterwards, unless another thread has it then.
//!
//! A commit that is not yet on disk keeps its connection in the slot, with its reply held back,
//! until a message says that it is durable.

mod acceptor;
mod connections;
mod dedicated;
mod inbox;
mod rings;
mod socket_spin;
mod wait;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use parking_lot::{Mutex, MutexGuard};
use porpoise_engine::Control;

use crate::connection::{Connection, NextState};
use crate::io_buffers::IoBuffers;
use crate::listener::Listener;
use crate::ready_queue::ReadyQueue;
use crate::server_state::ServerState;
use crate::thread_pool::{self, PoolThread};
use crate::thread_priority::thread_cpu_time;

use acceptor::{Acceptor, NothingToAccept};
use connections::{ConnectionTable, SlotState};
pub(crate) use dedicated::serve_at_disk;
pub(crate) use inbox::{WorkerInbox, WorkerMessage};
use rings::PolledRings;
use socket_spin::SocketSpin;
use wait::{CommitSync, CoreYield, Found};

const WAKE: Token = Token(usize::MAX);
/// Listeners' tokens lie below [`WAKE`], connections' from 0 up.
const FIRST_LISTENER: usize = usize::MAX - 64;
const EVENTS_MAX: usize = 256;

/// The longest time that replies wait for the other replies of their turn.
const HOLD_MAX: Duration = Duration::from_micros(200);

/// How long a thread that has just taken a loop over gets a core soon, where other programs compute
/// ([`ThreadPriority::set_prompt`](crate::thread_priority::ThreadPriority::set_prompt)): statements
/// of this loop wait for others' locks, which are held for as long as their sessions wait for a core.
/// Where nothing waits, threads that are on a core at once serve fewer clients each time.
const PROMPT_FOR: Duration = Duration::from_millis(50);

/// A connection whose last statements took more of a processor is served by a thread of its own the next time.
const LONG_MIN: Duration = Duration::from_millis(1);

/// Clients that a worker accepts before it serves those it has.
const ACCEPTS_PER_TURN: usize = 8;

/// An event loop, and the thread that runs it.
///
/// ```text
///   thread 1   ─ runs the loop ─┐release ── serves a connection ────────────┐reclaim: has lost it
///                               └─ loop: nobody's ─┐                        └─ sends the connection back
///   thread 2                                       └pass_on, run ─ runs the loop ─ …
/// ```
pub(crate) struct Worker {
    /// Odd while the thread that runs the loop has let go of it; another number each time. Changed
    /// by whoever holds the lock.
    phase: AtomicU64,
    event_loop: Mutex<EventLoop>,
    /// `None` while the loop waits for a thread.
    runner: Mutex<Option<Arc<PoolThread>>>,
    pub server: Arc<ServerState>,
    pub inbox: Arc<WorkerInbox>,
}

/// What a look at a [`Worker`] from another thread tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase(u64);

impl Phase {
    /// The worker's thread has let go of the loop: it serves a connection, or syncs the log.
    pub fn is_released(self) -> bool {
        self.0 % 2 == 1
    }
}

/// Who has a loop after its thread has let go of it.
enum Reclaimed<'a> {
    Own(MutexGuard<'a, EventLoop>),
    /// Another thread, as this one has said that it waits.
    HandedOver,
    /// Another thread, as this one took too long.
    TakenOver,
}

impl Worker {
    pub fn new(event_loop: EventLoop) -> Arc<Worker> {
        Arc::new(Worker {
            phase: AtomicU64::new(0),
            server: event_loop.server.clone(),
            inbox: event_loop.inbox.clone(),
            event_loop: Mutex::new(event_loop),
            runner: Mutex::new(None),
        })
    }

    /// Runs the loop until the server ends, or until another thread has it.
    pub fn run(self: &Arc<Worker>, thread: &Arc<PoolThread>, buffers: &mut IoBuffers) {
        let monitor = &self.server.thread_pool.turn_monitor;
        thread.priority.set_prompt(monitor.has_rivals());
        let began = Instant::now();
        let mut held = self.event_loop.lock();
        *self.runner.lock() = Some(thread.clone());
        // Of the turn in which the loop was handed over.
        held.send_held();
        loop {
            held.begin_turn();
            while let Some((token, mut connection)) = held.next_to_serve(buffers) {
                self.release(held);
                let next = serve(&mut connection, buffers);
                held = match self.reclaim() {
                    Reclaimed::Own(held) => held,
                    Reclaimed::HandedOver | Reclaimed::TakenOver => {
                        let pool = &self.server.thread_pool;
                        return dedicated::go_on(pool, thread, token, connection, next, buffers);
                    }
                };
                held.served(token, connection, next);
            }
            held.send_held();
            if held.has_ended() {
                return;
            }
            let from = Instant::now();
            let mut found = held.look_for_work(from);
            if let Found::CommitsToSync(sync) = found {
                self.release(held);
                let synced = sync.run(&self.server);
                let Reclaimed::Own(again) = self.reclaim() else {
                    return;
                };
                held = again;
                found = held.record_sync(sync, synced);
            }
            if matches!(found, Found::Nothing) {
                held.wait(from);
                let is_new = from.saturating_duration_since(began) < PROMPT_FOR;
                thread.priority.set_prompt(is_new && monitor.has_rivals());
            }
            held.expire();
        }
    }

    /// Lets go of the loop, which any thread may take over from here on.
    fn release(&self, held: MutexGuard<'_, EventLoop>) {
        thread_pool::note_released(Some(self.advance()));
        drop(held);
    }

    /// Takes the loop again, unless another thread has it.
    fn reclaim(&self) -> Reclaimed<'_> {
        let Some(phase) = thread_pool::note_released(None) else {
            return Reclaimed::HandedOver;
        };
        match self.lock_in(phase) {
            Some(held) => {
                self.advance();
                Reclaimed::Own(held)
            }
            None => Reclaimed::TakenOver,
        }
    }

    /// Only for who holds the lock.
    fn advance(&self) -> Phase {
        let next = Phase(self.phase.load(Ordering::Relaxed) + 1);
        self.phase.store(next.0, Ordering::Release);
        next
    }

    /// The loop, if it is in that phase still, in which its thread has let go of it. Doesn't wait
    /// for a thread that runs the loop.
    fn lock_in(&self, phase: Phase) -> Option<MutexGuard<'_, EventLoop>> {
        while self.phase() == phase {
            if let Some(held) = self.event_loop.try_lock() {
                return (self.phase() == phase).then_some(held);
            }
            // Somebody is about to take it over, or about to find that it is too late for that.
            std::thread::yield_now();
        }
        None
    }

    // ── For other threads, and one that waits ────────────────────────────────────────────────

    pub fn phase(&self) -> Phase {
        Phase(self.phase.load(Ordering::Acquire))
    }

    /// The thread that runs the loop, or has let go of it.
    pub fn runner(&self) -> Option<Arc<PoolThread>> {
        self.runner.lock().clone()
    }

    /// Has another thread go on with the loop, if it is in that phase still, in which its thread
    /// has let go of it. `is_computing`: that thread was seen to, or is about to. Returns the session
    /// that computes.
    pub fn pass_on(self: &Arc<Worker>, phase: Phase, is_computing: bool) -> Option<Arc<Control>> {
        let mut held = self.lock_in(phase)?;
        let pool = &self.server.thread_pool;
        let served = held.control_of_served();
        // Under the lock: before the thread can find out that it has no loop any more.
        let runner = self.runner.lock().take();
        if let Some(runner) = &runner {
            let interrupt = served.as_ref().map(|control| control.interrupt.clone());
            pool.set_apart(runner, interrupt, is_computing);
        }
        self.advance();
        drop(held);
        pool.run(self.clone());
        if let Some(runner) = runner.filter(|_| is_computing) {
            // Not before: it may be this thread, and a new one has the priority of who starts it.
            pool.make_room(&runner);
        }
        served.filter(|_| is_computing)
    }
}

/// A connection was served by a thread that has no loop, or has it no more: returns it to its
/// worker.
fn give_back(token: Token, connection: Box<Connection>, next: NextState) {
    let inbox = connection.inbox().clone();
    inbox.send(WorkerMessage::StatementDone(token, connection, next));
}

/// Serves a connection on a thread that has no loop.
pub(crate) fn serve_apart(token: Token, mut connection: Box<Connection>, buffers: &mut IoBuffers) {
    let began = thread_cpu_time();
    let next = serve(&mut connection, buffers);
    connection.takes_long = thread_cpu_time().saturating_sub(began) >= LONG_MIN;
    give_back(token, connection, next);
}

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
    core_yield: CoreYield,
    /// The server stops, and statements with it.
    is_stopping: bool,
    /// The connection that was given to this thread last.
    serving: Token,
    /// No connection was served in this turn yet.
    is_first: bool,
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
        let registry = poll.registry().try_clone()?;
        Ok((poll, Arc::new(WorkerInbox::new(waker, registry))))
    }

    pub fn with_listeners(
        server: Arc<ServerState>,
        poll: Poll,
        inbox: Arc<WorkerInbox>,
        listeners: Arc<[Listener]>,
    ) -> io::Result<EventLoop> {
        let traffic = inbox.traffic.clone();
        let acceptor = Acceptor::open(server.clone(), listeners, traffic, poll.registry())?;
        Ok(EventLoop {
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
            core_yield: CoreYield::default(),
            is_stopping: false,
            serving: WAKE,
            is_first: true,
            now: Instant::now(),
        })
    }

    fn begin_turn(&mut self) {
        self.read_messages();
        self.ready.begin_turn();
        self.is_first = true;
    }

    /// The next connection of this turn, checked out. One whose statements take long is given to a
    /// thread of its own.
    fn next_to_serve(&mut self, buffers: &mut IoBuffers) -> Option<(Token, Box<Connection>)> {
        while let Some(token) = self.next_ready() {
            self.is_first = false;
            buffers.holds_replies = !self.ready.is_empty() || !self.held_replies.tokens.is_empty();
            let Some(mut connection) = self.check_out(token) else {
                continue;
            };
            self.record_served(token);
            if connection.takes_long {
                self.server.thread_pool.serve_apart(token, connection);
                continue;
            }
            if self.is_for_disk_thread(&mut connection) {
                let turns = &self.inbox.traffic.disk_turns;
                turns.fetch_add(1, Ordering::Relaxed);
                self.server.thread_pool.serve_at_disk(token, connection);
                continue;
            }
            self.serving = token;
            return Some((token, connection));
        }
        None
    }

    /// Whether a connection is for a thread that may wait for the disk: its statements likely read it.
    fn is_for_disk_thread(&self, connection: &mut Connection) -> bool {
        let disk = &self.server.thread_pool.disk;
        let has_others = self.inbox.connections.load(Ordering::Relaxed) > 1;
        // A ring would come back after each turn, as no thread waits for it in the loop's stead.
        let is_due = has_others && (disk.is_full() || !connection.is_ring());
        connection.may_read_disk()
            && (connection.often_reads_disk() && is_due || disk.is_crowded())
            && connection.control().is_some()
            && connection.has_request()
    }

    /// A connection was served by the thread that runs this loop.
    fn served(&mut self, token: Token, connection: Box<Connection>, next: NextState) {
        if matches!(next, NextState::ReplyHeld) {
            self.record_held(token);
        }
        self.check_in(token, connection, next);
        let held = &self.held_replies;
        if !held.tokens.is_empty() && held.since.elapsed() > HOLD_MAX {
            self.send_held();
        }
    }

    /// The session whose statement the thread which has let go of the loop is at; `None` while it
    /// syncs.
    fn control_of_served(&mut self) -> Option<Arc<Control>> {
        match &self.connections.get_mut(self.serving)?.state {
            SlotState::CheckedOut(Some(control)) => Some(control.clone()),
            SlotState::CheckedOut(None) | SlotState::Resident(_) | SlotState::Free => None,
        }
    }

    fn next_ready(&mut self) -> Option<Token> {
        if self.is_stopping {
            return self.ready.pop_any();
        }
        self.ready.pop(self.is_first, self.now)
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
                WorkerMessage::Killed(token) | WorkerMessage::HostFound(token) => {
                    self.enqueue(token);
                }
                WorkerMessage::Stop => self.stop(),
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

    fn stop(&mut self) {
        self.acceptor.close(self.poll.registry());
        self.is_stopping = true;
        self.interrupt_statements();
        for index in 0..self.connections.len() {
            let token = self.connections.token_at(index);
            self.enqueue(token);
        }
    }

    /// As KILL does: a statement that syncs its commit ends by itself.
    fn interrupt_statements(&mut self) {
        for slot in self.connections.slots() {
            if let SlotState::CheckedOut(Some(control)) = &slot.state {
                control.kill_connection();
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.is_stopping && self.connections.has_no_connections() && self.inbox.close()
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
        if self.is_stopping {
            self.interrupt_statements();
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
    let served = catch_unwind(AssertUnwindSafe(|| connection.serve(buffers)));
    connection.record_turn(thread_pool::take_has_read());
    served.unwrap_or_else(|_| {
        tracing::error!(
            "connection {} was closed: its statement panicked",
            connection.id()
        );
        buffers.reset();
        connection.close_after_panic()
    })
}
