//! What wakes the thread that runs events.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Rung when an event was created, changed or dropped, when one has run, and when `event_scheduler`
/// was set. What is rung while nobody waits is heard by the next wait.
#[derive(Debug, Default)]
pub struct EventBell {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct BellState {
    has_rung: bool,
    has_ended: bool,
}

impl EventBell {
    /// Wakes the thread.
    pub fn ring(&self) {
        self.state.lock().has_rung = true;
        self.rung.notify_all();
    }

    /// Wakes the thread for the last time: the database is closed.
    pub fn end(&self) {
        self.state.lock().has_ended = true;
        self.rung.notify_all();
    }

    /// Waits for the bell, at most so long. False once it has ended.
    pub fn wait(&self, longest: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.has_rung && !state.has_ended {
            self.rung.wait_for(&mut state, longest);
        }
        state.has_rung = false;
        !state.has_ended
    }
}
