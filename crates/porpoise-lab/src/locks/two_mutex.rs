//! `TwoMutex`: a mutex for readers, a mutex for the gate, and an event.
//!
//! ```text
//! reader enters:  [readers]  count + 1; the first also ─► [gate]  shuts it, unless a writer is in
//! reader leaves:  [readers]  count - 1; the last also ──► [gate]  opens it, wakes
//! writer enters:                                          [gate]  writer = me, unless shut or a writer is in
//! writer leaves:                                          [gate]  wakes
//! who can't enter sleeps on the gate's event
//! ```
//!
//! Readers that are not alone take one short mutex and never meet the writers' one. The gate is
//! state, not a mutex that is held over time, so the last reader may be another thread than the
//! first.
//!
//! - Fairness: prefers readers; writers starve while readers overlap.
//! - Size: 36 bytes.
//! - Source: Courtois, Heymans, Parnas (1971), the first problem; the shape of the first repair of
//!   MySQL bug 56585.

use super::base::{self, Condvar, Deadline, Mutex};
use super::base::{Owner, ReaderWriter};

/// Two mutexes and an event. See the module's text for the algorithm.
pub struct TwoMutex {
    /// Taken before `gate`, where both are.
    readers: Mutex<u32>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

struct Gate {
    /// Readers are in.
    is_shut: bool,
    sleepers: u16,
    /// How often the writer entered; 0: none is in.
    depth: u32,
    /// Of the writer that is in, or was.
    owner: u32,
}

impl Gate {
    fn admit_writer(&mut self, owner: Owner) -> bool {
        let is_free = self.depth == 0 && !self.is_shut;
        let is_own = self.depth > 0 && self.owner == owner.number();
        if is_free || is_own {
            self.depth += 1;
            self.owner = owner.number();
        }
        is_free || is_own
    }
}

impl TwoMutex {
    /// A free lock.
    pub fn new() -> TwoMutex {
        TwoMutex {
            readers: Mutex::new(0),
            gate: Mutex::new(Gate {
                is_shut: false,
                sleepers: 0,
                depth: 0,
                owner: 0,
            }),
            changed: Condvar::new(),
        }
    }

    fn wake(&self, gate: &Gate) {
        if gate.sleepers > 0 {
            self.changed.notify_all();
        }
    }
}

impl Default for TwoMutex {
    fn default() -> TwoMutex {
        TwoMutex::new()
    }
}

impl ReaderWriter for TwoMutex {
    fn try_shared(&self) -> bool {
        let mut readers = base::lock(&self.readers);
        if *readers == 0 {
            let mut gate = base::lock(&self.gate);
            if gate.depth > 0 {
                return false;
            }
            gate.is_shut = true;
        }
        *readers += 1;
        true
    }

    fn shared_until(&self, deadline: &Deadline) -> bool {
        let mut is_late = false;
        loop {
            if self.try_shared() {
                return true;
            }
            if is_late {
                return false;
            }
            let mut gate = base::lock(&self.gate);
            while gate.depth > 0 && !is_late {
                gate.sleepers += 1;
                (gate, is_late) = base::wait(&self.changed, &self.gate, gate, deadline);
                gate.sleepers -= 1;
            }
        }
    }

    fn unlock_shared(&self) {
        let mut readers = base::lock(&self.readers);
        *readers -= 1;
        if *readers == 0 {
            let mut gate = base::lock(&self.gate);
            gate.is_shut = false;
            self.wake(&gate);
        }
    }

    fn try_exclusive(&self, owner: Owner) -> bool {
        base::lock(&self.gate).admit_writer(owner)
    }

    fn exclusive_until(&self, owner: Owner, deadline: &Deadline) -> bool {
        let mut gate = base::lock(&self.gate);
        let mut is_late = false;
        loop {
            if gate.admit_writer(owner) {
                return true;
            }
            if is_late {
                return false;
            }
            gate.sleepers += 1;
            (gate, is_late) = base::wait(&self.changed, &self.gate, gate, deadline);
            gate.sleepers -= 1;
        }
    }

    fn downgrade(&self) {
        let mut readers = base::lock(&self.readers);
        let mut gate = base::lock(&self.gate);
        *readers = 1;
        gate.is_shut = true;
        gate.depth = 0;
        self.wake(&gate);
    }

    fn unlock_exclusive(&self) {
        let mut gate = base::lock(&self.gate);
        gate.depth -= 1;
        if gate.depth == 0 {
            self.wake(&gate);
        }
    }
}
