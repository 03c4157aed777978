//! Threads that run event loops, and what happens when one of them must wait.
//!
//! A statement runs on the thread that runs the loop. Before it waits (for a row lock, a metadata
//! lock, a slow reader) it calls [`leave_loop`]: the loop goes on on a standby thread, and the
//! waiting thread keeps nothing but its own statement.
//!
//! ```text
//!   thread 1   loop ── statement ── must wait ─ … ─ wakes ── replies ── gives its connection back ── standby
//!                                     │ loop
//!   thread 2   standby ───────────────┴──────► loop ── statement ── statement ── …
//! ```
//!
//! So a loop never waits for anything but its sockets, and a statement that doesn't wait (nearly
//! all of them) costs no hand-over: the loop lies in a thread-local while a statement runs and is taken
//! out again after it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::worker::{Desk, EventLoop};

/// Standby threads kept; more than these end when they have nothing to do.
const STANDBYS_MAX: usize = 16;

/// Stack of a thread that runs statements: expressions and subqueries nest on it.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// The loop this thread runs, while one of its statements is running.
    static LOOP: Cell<Option<Box<EventLoop>>> = const { Cell::new(None) };
}

/// The threads of one server.
#[derive(Default)]
pub(crate) struct Crew {
    state: Mutex<State>,
    wanted: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Loops that need a thread.
    loops: VecDeque<Box<EventLoop>>,
    /// Threads that need a loop.
    standbys: usize,
    threads: usize,
    created: u64,
    ending: bool,
}

impl Crew {
    /// Finds a thread for a loop: a standby, or a new one.
    pub fn run(self: &Arc<Crew>, event_loop: Box<EventLoop>) {
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
        let crew = self.clone();
        let spawned = std::thread::Builder::new()
            .name("worker".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || crew.serve());
        if let Err(error) = spawned {
            // The loop stays queued: the thread that is about to wait, or any other, takes it when it ends its statement.
            tracing::error!("can't start a thread: {error}");
            self.state.lock().threads -= 1;
        }
    }

    /// Threads that were started so far, and those that stand by.
    pub fn figures(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.created, state.standbys as u64)
    }

    fn serve(self: Arc<Crew>) {
        let mut desk = Desk::default();
        while let Some(event_loop) = self.next_loop() {
            event_loop.run(&mut desk);
            desk.tidy();
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

    /// Sends the standbys home and waits for every thread to end; false when some didn't in time.
    pub fn end(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        state.ending = true;
        self.wanted.notify_all();
        let end = std::time::Instant::now() + patience;
        while state.threads > 0 {
            if self.ended.wait_until(&mut state, end).timed_out() {
                return state.threads == 0;
            }
        }
        true
    }
}

/// Lays the loop aside while a statement runs on this thread.
pub(crate) fn lay_aside(event_loop: Box<EventLoop>) {
    LOOP.set(Some(event_loop));
}

/// Takes it back; nothing when the statement waited and another thread runs it now.
pub(crate) fn take_back() -> Option<Box<EventLoop>> {
    LOOP.take()
}

/// This thread is about to wait: another one goes on with its loop. Costs nothing on a thread that has none.
pub(crate) fn leave_loop() {
    if let Some(event_loop) = LOOP.take() {
        let crew = event_loop.crew();
        crew.run(event_loop);
    }
}
