//! An event: sleepers wait for a state to change that something else guards.
//!
//! ```text
//! sleeper: sees, under the guard, that it must wait     changer: changes the state under the guard
//!          counts itself in, notes the epoch                     sees that somebody is counted in
//!          leaves the guard                                      epoch + 1, wakes
//!          sleeps while the epoch is the one noted
//! ```
//!
//! A change between noting and sleeping has moved the epoch, so it isn't slept through.

use std::sync::atomic::Ordering::SeqCst;

use super::base::{self, AtomicU32, Condvar, Deadline, Mutex};

pub struct Event {
    sleepers: AtomicU32,
    epoch: Mutex<u32>,
    changed: Condvar,
}

/// An epoch noted by somebody who is counted in.
pub struct Ticket(u32);

impl Event {
    pub fn new() -> Event {
        Event {
            sleepers: AtomicU32::new(0),
            epoch: Mutex::new(0),
            changed: Condvar::new(),
        }
    }

    /// Counts the caller in. It looks at the state again afterwards, then waits or
    /// [leaves](Self::leave).
    pub fn enter(&self) -> Ticket {
        self.sleepers.fetch_add(1, SeqCst);
        Ticket(*base::lock(&self.epoch))
    }

    pub fn leave(&self) {
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// Sleeps until the epoch has moved; true: the deadline has passed.
    pub fn wait(&self, ticket: Ticket, deadline: &Deadline) -> bool {
        let mut epoch = base::lock(&self.epoch);
        let mut is_late = false;
        while *epoch == ticket.0 && !is_late {
            (epoch, is_late) = base::wait(&self.changed, &self.epoch, epoch, deadline);
        }
        is_late
    }

    fn has_sleepers(&self) -> bool {
        self.sleepers.load(SeqCst) > 0
    }

    /// Wakes everybody, if there is anybody.
    pub fn wake_all(&self) {
        if self.has_sleepers() {
            let mut epoch = base::lock(&self.epoch);
            *epoch = epoch.wrapping_add(1);
            self.changed.notify_all();
        }
    }

    /// Wakes one, and those about to sleep.
    pub fn wake_one(&self) {
        if self.has_sleepers() {
            let mut epoch = base::lock(&self.epoch);
            *epoch = epoch.wrapping_add(1);
            self.changed.notify_one();
        }
    }
}
