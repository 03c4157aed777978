//! Threads that run event loops, and what happens when one of them must wait.
//!
//! A statement runs on the thread that runs the loop. Before it waits (for a row lock, a metadata
//! lock, a slow reader) it calls [`hand_over_loop`]: a standby thread continues the loop, and the
//! waiting thread keeps only its own statement.
//!
//! ```text
//!   thread 1   loop ── statement ── must wait ── … ── wakes ── replies ── returns its connection
//!                                     │ loop
//!   thread 2   standby ───────────────┴──────► loop ── statement ── statement ── …
//! ```
//!
//! So a loop never waits for anything but its sockets, and a statement that doesn't wait (nearly
//! all of them) costs no hand-over: the loop is parked in a thread-local while a statement runs,
//! and reclaimed after it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::io_buffers::IoBuffers;
use crate::worker::EventLoop;

/// Idle threads that are kept; others end when they have nothing to do.
const STANDBYS_MAX: usize = 16;

/// Stack of a thread that runs statements: expressions and subqueries nest on it.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// The loop this thread runs, while one of its statements is running.
    static LOOP: Cell<Option<Box<EventLoop>>> = const { Cell::new(None) };
}

/// The threads of one server.
#[derive(Default)]
pub(crate) struct ThreadPool {
    state: Mutex<State>,
    wanted: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Loops that need a thread.
    loops: VecDeque<Box<EventLoop>>,
    /// Threads that wait for a loop.
    standbys: usize,
    threads: usize,
    /// Threads that were started so far.
    created: u64,
    ending: bool,
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
    pub fn run(self: &Arc<ThreadPool>, event_loop: Box<EventLoop>) {
        let mut state = self.state.lock();
        state.loops.push_back(event_loop);
        if state.standbys >= state.loops.len() {
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
            .spawn(move || pool.run_loops());
        if let Err(error) = spawned {
            // The loop stays queued: the thread that is about to wait, or any other, takes it when
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

    fn run_loops(self: Arc<ThreadPool>) {
        let mut buffers = IoBuffers::default();
        while let Some(event_loop) = self.next_loop() {
            event_loop.run(&mut buffers);
            buffers.reset();
        }
        self.state.lock().threads -= 1;
        self.ended.notify_all();
    }

    fn next_loop(&self) -> Option<Box<EventLoop>> {
        let mut state = self.state.lock();
        loop {
            if let Some(event_loop) = state.loops.pop_front() {
                return Some(event_loop);
            }
            if state.ending || state.standbys >= STANDBYS_MAX {
                return None;
            }
            state.standbys += 1;
            self.wanted.wait(&mut state);
            state.standbys -= 1;
        }
    }

    /// Ends the standby threads and waits for all others to end; false if some didn't in time.
    pub fn end(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        state.ending = true;
        self.wanted.notify_all();
        let end = std::time::Instant::now() + timeout;
        while state.threads > 0 {
            if self.ended.wait_until(&mut state, end).timed_out() {
                return state.threads == 0;
            }
        }
        true
    }
}

/// Parks the loop while a statement runs on this thread.
pub(crate) fn park_loop(event_loop: Box<EventLoop>) {
    LOOP.set(Some(event_loop));
}

/// Takes the parked loop back; `None` if the statement waited, and another thread runs the loop
/// now.
pub(crate) fn reclaim_loop() -> Option<Box<EventLoop>> {
    LOOP.take()
}

/// This thread is about to wait: another one continues its loop. Costs nothing on a thread that has
/// none.
pub(crate) fn hand_over_loop() {
    if let Some(event_loop) = LOOP.take() {
        event_loop.thread_pool().run(event_loop);
    }
}
