//! Threads that run event loops, and what happens when one of them waits or takes long.
//!
//! A statement runs on the thread that runs the loop. Before it waits (for a row lock, a metadata
//! lock, a slow reader) it calls [`hand_over_loop`]: a standby thread continues the loop, and the
//! waiting thread keeps only its own statement. The same happens to a statement that takes long,
//! without its doing: the [`TurnMonitor`] has another thread take the loop over. One whose plan tells
//! that it will is handed over before it begins ([`hand_over_for_long`]). A read of the disk is a wait for
//! which the loop is handed over if it has other connections ([`hand_over_others`]); a connection whose
//! statements read it often has a thread of its own for a while ([`crate::worker`]), or queues for one
//! ([`DiskThreads`]).
//!
//! ```text
//!   thread 1   loop ── statement ── must wait ── … ── wakes ── replies ── returns its connection
//!                                     │ loop
//!   thread 2   standby ───────────────┴──────► loop ── statement ─────────────────── … ── replies
//!                                                          │ takes long: 4 ms
//!   thread 3   standby ────────────────────────────────────┴──────► loop ── statement ── …
//! ```
//!
//! So a loop never waits for anything but its sockets, and a statement that neither waits nor takes
//! long (nearly all of them) costs no hand-over: its thread lets go of the loop
//! ([`Worker`](crate::worker::Worker)) while the statement runs, and takes it again after it.
//!
//! A thread without a loop is *apart*. The next statement of its connection begins apart at once,
//! as it will likely take long, too ([`ThreadPool::serve_apart`]). There are at most as many threads
//! apart as there are connections, each in the middle of a statement. Those that compute yield to
//! the threads with loops ([`crate::thread_priority`]), and only a few at once compute
//! ([`crate::compute_turns`]).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::Token;
use parking_lot::{Condvar, Mutex};
use porpoise_storage::Interrupt;

use crate::connection::Connection;
use crate::disk_threads::DiskThreads;
use crate::io_buffers::IoBuffers;
use crate::thread_priority::{self, ThreadPriority};
use crate::turn_monitor::TurnMonitor;
use crate::worker::{self, Phase, Worker};

/// Idle threads that are kept for [`STANDBY_TIME`]; others end when they have nothing to do.
const STANDBYS_MAX: usize = 16;

/// How long an idle thread waits for work before it ends. While it sleeps, its heap keeps what other threads have freed of it,
/// and its stack what the deepest statement touched; a new thread takes some 50 µs.
const STANDBY_TIME: Duration = Duration::from_secs(1);

/// Stack of a thread that runs statements: expressions and subqueries nest on it.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// This thread runs a loop, and has let go of it in this phase.
    static RELEASED: Cell<Option<Phase>> = const { Cell::new(None) };
    /// This thread has waited for the disk since that was last asked.
    static HAS_READ: Cell<bool> = const { Cell::new(false) };
    /// The worker whose loop this thread runs, or ran last.
    static RUNNING: RefCell<Option<Arc<Worker>>> = const { RefCell::new(None) };
    /// This thread, and the pool that it is of.
    static CURRENT: RefCell<Option<(Arc<ThreadPool>, Arc<PoolThread>)>> = const { RefCell::new(None) };
}

/// The threads of one server.
#[derive(Default)]
pub(crate) struct ThreadPool {
    state: Mutex<State>,
    wanted: Condvar,
    ended: Condvar,
    pub turn_monitor: TurnMonitor,
    pub disk: DiskThreads<(Token, Box<Connection>)>,
}

#[derive(Default)]
struct State {
    /// What needs a thread.
    work: VecDeque<Work>,
    /// Threads that wait for work.
    standbys: usize,
    threads: usize,
    /// Those in the middle of a statement, and without a loop.
    apart: Vec<Arc<PoolThread>>,
    /// Threads that were started so far.
    created: u64,
    ending: bool,
}

enum Work {
    Loop(Arc<Worker>),
    /// One turn of a connection whose statements take long.
    Turn(Token, Box<Connection>),
    /// One turn of a connection whose statements read the disk, on a thread that has a place among
    /// [`DiskThreads`].
    DiskTurn(Token, Box<Connection>),
}

/// A thread of the pool.
pub(crate) struct PoolThread {
    pub priority: ThreadPriority,
    /// It has a place among [`DiskThreads`].
    is_at_disk: AtomicBool,
}

impl PoolThread {
    pub fn is_at_disk(&self) -> bool {
        self.is_at_disk.load(Ordering::Relaxed)
    }
}

/// Counts of a pool's threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadCounts {
    /// Started so far.
    pub created: u64,
    /// Waiting for a loop.
    pub standbys: u64,
}

impl ThreadPool {
    /// Finds a thread for a loop: a standby, or a new one.
    pub fn run(self: &Arc<ThreadPool>, worker: Arc<Worker>) {
        self.find_thread(Work::Loop(worker));
    }

    /// Serves a connection on a thread that has no loop.
    pub fn serve_apart(self: &Arc<ThreadPool>, token: Token, connection: Box<Connection>) {
        self.find_thread(Work::Turn(token, connection));
    }

    /// Serves a connection whose statements read the disk on a thread that may wait for it; it queues for
    /// one.
    pub fn serve_at_disk(self: &Arc<ThreadPool>, token: Token, connection: Box<Connection>) {
        let has_place = self.disk.queue((token, connection), Instant::now());
        self.find_disk_thread(has_place);
    }

    /// Finds a thread for a connection that has a place at the disk, if there is one.
    fn find_disk_thread(self: &Arc<ThreadPool>, next: Option<(Token, Box<Connection>)>) {
        if let Some((token, connection)) = next {
            self.find_thread(Work::DiskTurn(token, connection));
        }
    }

    /// A thread gives its place at the disk up, if it has one: it waits for something else, or computes.
    pub fn leave_disk(self: &Arc<ThreadPool>, thread: &PoolThread) {
        if thread.is_at_disk.swap(false, Ordering::Relaxed) {
            self.find_disk_thread(self.disk.leave(Instant::now()));
        }
    }

    /// Has another thread come where those at the disk don't get on.
    pub fn help_stalled(self: &Arc<ThreadPool>, now: Instant) {
        self.find_disk_thread(self.disk.next_of_stalled(now));
    }

    fn find_thread(self: &Arc<ThreadPool>, work: Work) {
        let mut state = self.state.lock();
        match work {
            // The others wait for one statement, a loop's connections all wait for it.
            Work::Loop(_) => state.work.push_front(work),
            Work::Turn(..) | Work::DiskTurn(..) => state.work.push_back(work),
        }
        if state.standbys >= state.work.len() {
            drop(state);
            self.wanted.notify_one();
            return;
        }
        state.threads += 1;
        state.created += 1;
        drop(state);
        let pool = self.clone();
        let spawned = std::thread::Builder::new()
            .name("worker".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || pool.work());
        if let Err(error) = spawned {
            // The work stays queued: the thread that is about to wait, or any other, takes it when
            // its statement has ended.
            tracing::error!("can't start a thread: {error}");
            self.state.lock().threads -= 1;
        }
    }

    pub fn counts(&self) -> ThreadCounts {
        let state = self.state.lock();
        ThreadCounts {
            created: state.created,
            standbys: state.standbys as u64,
        }
    }

    fn work(self: Arc<ThreadPool>) {
        let thread = Arc::new(PoolThread {
            priority: ThreadPriority::of_this_thread(),
            is_at_disk: AtomicBool::new(false),
        });
        CURRENT.set(Some((self.clone(), thread.clone())));
        let mut buffers = IoBuffers::default();
        while let Some(work) = self.next_disk_turn(&thread).or_else(|| self.next_work()) {
            match work {
                Work::Loop(worker) => {
                    RUNNING.set(Some(worker.clone()));
                    worker.run(&thread, &mut buffers);
                    RUNNING.set(None);
                }
                Work::Turn(token, connection) => {
                    self.begin_turn(&thread, &connection);
                    worker::serve_apart(token, connection, &mut buffers);
                }
                Work::DiskTurn(token, connection) => {
                    thread.is_at_disk.store(true, Ordering::Relaxed);
                    self.begin_turn(&thread, &connection);
                    worker::serve_at_disk(&self, &thread, token, connection, &mut buffers);
                }
            }
            buffers.reset();
            // A thread whose priority can't be raised again is of no more use.
            if !self.end_apart(&thread) {
                self.leave_disk(&thread);
                break;
            }
        }
        CURRENT.set(None);
        self.state.lock().threads -= 1;
        self.ended.notify_all();
    }

    /// A thread is about to serve a connection without a loop.
    fn begin_turn(&self, thread: &Arc<PoolThread>, connection: &Connection) {
        let control = connection.control();
        let interrupt = control.map(|control| control.interrupt.clone());
        self.set_apart(thread, interrupt, false);
    }

    /// What a thread that has a place at the disk serves next; otherwise it has none any more.
    fn next_disk_turn(&self, thread: &PoolThread) -> Option<Work> {
        if !thread.is_at_disk.swap(false, Ordering::Relaxed) {
            return None;
        }
        let (token, connection) = self.disk.leave(Instant::now())?;
        Some(Work::DiskTurn(token, connection))
    }

    fn next_work(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.ending || state.standbys >= STANDBYS_MAX {
                return None;
            }
            state.standbys += 1;
            let waited = self.wanted.wait_for(&mut state, STANDBY_TIME);
            state.standbys -= 1;
            if waited.timed_out() && state.work.is_empty() {
                return None;
            }
        }
    }

    // ── Threads without a loop ───────────────────────────────────────────────────────────────

    /// The thread is in the middle of a statement, and has no loop any more.
    pub fn set_apart(
        &self,
        thread: &Arc<PoolThread>,
        interrupt: Option<Arc<Interrupt>>,
        is_computing: bool,
    ) {
        thread.priority.begin_apart(interrupt, is_computing);
        self.state.lock().apart.push(thread.clone());
    }

    /// Has a thread that computes, and whose loop another one has been found for, leave its core to
    /// that one if there are many. The monitor gives it its turn.
    pub fn make_room(&self, thread: &PoolThread) {
        if self.turn_monitor.is_crowded() {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
            let share = thread_priority::level_of_each(2 * cores, cores);
            let has_rivals = self.turn_monitor.has_rivals();
            let level = thread_priority::level_without_share(share, has_rivals);
            thread.priority.set_level(level);
        }
    }

    /// The thread's statement is done. False if it can't be as prompt as other threads any more.
    fn end_apart(&self, thread: &Arc<PoolThread>) -> bool {
        let mut state = self.state.lock();
        let at = state.apart.iter().position(|one| Arc::ptr_eq(one, thread));
        if let Some(at) = at {
            state.apart.swap_remove(at);
        }
        drop(state);
        thread.priority.end_apart()
    }

    /// The threads that have no loop.
    pub fn apart(&self) -> Vec<Arc<PoolThread>> {
        self.state.lock().apart.clone()
    }

    /// Ends the standby threads and waits for all others to end; false if some didn't in time.
    pub fn end(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        state.ending = true;
        self.wanted.notify_all();
        let end = Instant::now() + timeout;
        while state.threads > 0 {
            if self.ended.wait_until(&mut state, end).timed_out() {
                return state.threads == 0;
            }
        }
        true
    }
}

/// Says in which phase of its worker this thread has let go of the loop; `None`: it is about to
/// take it again. Tells what was said last: `None` if the loop was handed over meanwhile.
pub(crate) fn note_released(phase: Option<Phase>) -> Option<Phase> {
    RELEASED.replace(phase)
}

/// This thread is about to wait: another one continues its loop. Costs nothing on a thread that has
/// none.
pub(crate) fn hand_over_loop() {
    CURRENT.with_borrow(|current| {
        if let Some((pool, thread)) = current {
            pool.leave_disk(thread);
        }
    });
    hand_over(false, |_| true);
}

/// This thread is about to wait for the disk: another one continues its loop, if that has other
/// connections, and not too many threads wait for the disk. If they do, the next statements of its connection
/// are theirs.
pub(crate) fn hand_over_others() {
    HAS_READ.set(true);
    CURRENT.with_borrow(|current| {
        let Some((pool, thread)) = current else {
            return;
        };
        if !pool.disk.is_crowded()
            && hand_over(false, has_others)
            && !thread.is_at_disk.swap(true, Ordering::Relaxed)
        {
            pool.disk.enter();
        }
    });
}

/// This thread is about to compute for long: another one continues its loop, if that has other
/// connections.
pub(crate) fn hand_over_for_long() {
    hand_over(true, has_others);
}

/// Whether this thread has waited for the disk since that was last asked.
pub(crate) fn take_has_read() -> bool {
    HAS_READ.take()
}

fn has_others(worker: &Worker) -> bool {
    worker.inbox.connections.load(Ordering::Relaxed) > 1
}

/// False if this thread has no loop, or keeps it.
fn hand_over(is_computing: bool, is_due: impl Fn(&Worker) -> bool) -> bool {
    RUNNING.with_borrow(|worker| {
        if let Some(worker) = worker.as_ref().filter(|worker| is_due(worker))
            && let Some(phase) = note_released(None)
        {
            worker.pass_on(phase, is_computing);
            return true;
        }
        false
    })
}
