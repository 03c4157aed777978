//! `Native`: the platform's own lock, as the standard library offers it.
//!
//! ```text
//! scoped (`read`, `write`):   ├─ RwLock, read or write ── the caller's work ──┤
//!
//! held (`shared` … ):         ├─ RwLock, read ──┤  readers ± 1
//!                             ├─ RwLock, write ─┤  writer = me, unless anybody is in
//!                             who can't enter sleeps on an event
//! ```
//!
//! The platform's lock belongs to the thread that took it, so it can't be held by a session that
//! moves between threads. What is held over time is a count that the platform's lock guards; what
//! ends where it began ([`ReaderWriter::read`], [`ReaderWriter::write`]) runs inside the platform's
//! lock itself. The two kinds may be mixed.
//!
//! - Fairness: held, prefers readers. Scoped, the platform's: on Linux, writers go first, so a
//!   reader must not recurse.
//! - Timed forms: of the held kind only; the standard library has none.
//! - Size: 44 bytes, of which the platform's lock is 8.
//! - Source: `std::sync::RwLock` (Linux: a futex).

use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

use super::base::{AtomicU32, Deadline, RwLock};
use super::base::{Owner, ReaderWriter};
use super::event::Event;

/// The platform's own lock. See the module's text for what that means.
pub struct Native {
    platform: RwLock<Held>,
    changed: Event,
}

/// What is held over time.
struct Held {
    /// Counted under the platform's lock as a reader.
    readers: AtomicU32,
    /// Changed under the platform's lock as the writer.
    writer: Option<Owner>,
    depth: u32,
}

impl Native {
    /// A free lock.
    pub fn new() -> Native {
        Native {
            platform: RwLock::new(Held {
                readers: AtomicU32::new(0),
                writer: None,
                depth: 0,
            }),
            changed: Event::new(),
        }
    }

    fn wait_for(&self, deadline: &Deadline, enter: impl Fn() -> bool) -> bool {
        let mut is_late = false;
        loop {
            if enter() {
                return true;
            }
            if is_late {
                return false;
            }
            let ticket = self.changed.enter();
            let entered = enter();
            if !entered {
                is_late = self.changed.wait(ticket, deadline);
            }
            self.changed.leave();
            if entered {
                return true;
            }
        }
    }
}

impl Default for Native {
    fn default() -> Native {
        Native::new()
    }
}

impl ReaderWriter for Native {
    fn try_shared(&self) -> bool {
        let held = self.platform.read().unwrap_or_else(PoisonError::into_inner);
        let admitted = held.writer.is_none();
        if admitted {
            held.readers.fetch_add(1, SeqCst);
        }
        admitted
    }

    fn shared_until(&self, deadline: &Deadline) -> bool {
        self.wait_for(deadline, || self.try_shared())
    }

    fn unlock_shared(&self) {
        let held = self.platform.read().unwrap_or_else(PoisonError::into_inner);
        let is_last = held.readers.fetch_sub(1, SeqCst) == 1;
        drop(held);
        if is_last {
            self.changed.wake_all();
        }
    }

    fn try_exclusive(&self, owner: Owner) -> bool {
        let mut held = self
            .platform
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let is_free = held.writer.is_none() && held.readers.load(SeqCst) == 0;
        let admitted = is_free || held.writer == Some(owner);
        if admitted {
            held.writer = Some(owner);
            held.depth += 1;
        }
        admitted
    }

    fn exclusive_until(&self, owner: Owner, deadline: &Deadline) -> bool {
        self.wait_for(deadline, || self.try_exclusive(owner))
    }

    fn downgrade(&self) {
        let mut held = self
            .platform
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        held.writer = None;
        held.depth = 0;
        held.readers.fetch_add(1, SeqCst);
        drop(held);
        self.changed.wake_all();
    }

    fn unlock_exclusive(&self) {
        let mut held = self
            .platform
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        held.depth -= 1;
        let is_free = held.depth == 0;
        if is_free {
            held.writer = None;
        }
        drop(held);
        if is_free {
            self.changed.wake_all();
        }
    }

    fn read<R>(&self, f: impl FnOnce() -> R) -> R {
        loop {
            let held = self.platform.read().unwrap_or_else(PoisonError::into_inner);
            if held.writer.is_none() {
                return f();
            }
            drop(held);
            self.wait_for(&Deadline::Never, || {
                let held = self.platform.read().unwrap_or_else(PoisonError::into_inner);
                held.writer.is_none()
            });
        }
    }

    fn write<R>(&self, owner: Owner, f: impl FnOnce() -> R) -> R {
        loop {
            let held = self
                .platform
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if held.writer.is_none() && held.readers.load(SeqCst) == 0 {
                return f();
            }
            let is_own = held.writer == Some(owner);
            drop(held);
            if is_own {
                return f();
            }
            self.wait_for(&Deadline::Never, || {
                let held = self.platform.read().unwrap_or_else(PoisonError::into_inner);
                held.writer.is_none() && held.readers.load(SeqCst) == 0
            });
        }
    }
}
