//! `Morrison`: a small spin lock around the state, events made only when somebody must sleep, and
//! writers behind a turn of their own.
//!
//! ```text
//!                 spin lock, a few instructions long
//! reader enters   readers + 1, unless a writer is in       else sleeps for `no_writer`
//! writer enters   takes the turn                           else sleeps for `turn_free`
//!                 is in, once readers = 0                  else sleeps for `no_readers`, keeping its turn
//! reader leaves   readers - 1; the last wakes the writer that has the turn
//! writer leaves   wakes the readers; gives the turn to the next
//! ```
//!
//! Of many writers one at a time meets the readers; without the turn each reader that leaves last
//! would wake them all, to find that one of them was first (a convoy).
//!
//! - Fairness: prefers readers; writers starve while readers overlap.
//! - Size: 32 bytes; three events of 16 bytes more once somebody had to sleep.
//! - Source: the shape of the second repair of MySQL bug 56585, after B. Morrison's reader-writer
//!   lock.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use super::base::{AtomicBool, AtomicU32, Deadline, SpinLock};
use super::base::{Owner, ReaderWriter};
use super::event::{Event, Ticket};

/// A spin lock around the state. See the module's text for the algorithm.
pub struct Morrison {
    spin: SpinLock,
    has_turn: AtomicBool,
    // Read and written under the spin lock alone; atomic only so that the compiler believes it.
    readers: AtomicU32,
    owner: AtomicU32,
    /// How often the writer entered; 0: none is in.
    depth: AtomicU32,
    events: OnceLock<Box<Events>>,
}

struct Events {
    no_writer: Event,
    turn_free: Event,
    no_readers: Event,
}

/// What a writer has to wait for.
enum Wanted {
    TurnFree,
    NoReaders,
}

impl Morrison {
    /// A free lock.
    pub fn new() -> Morrison {
        Morrison {
            spin: SpinLock::new(),
            has_turn: AtomicBool::new(false),
            readers: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            depth: AtomicU32::new(0),
            events: OnceLock::new(),
        }
    }

    /// Runs a few instructions under the spin lock.
    fn spinning<R>(&self, f: impl FnOnce() -> R) -> R {
        self.spin.hold(f)
    }

    fn events(&self) -> &Events {
        self.events.get_or_init(|| {
            Box::new(Events {
                no_writer: Event::new(),
                turn_free: Event::new(),
                no_readers: Event::new(),
            })
        })
    }

    fn admit_reader(&self) -> bool {
        if self.depth.load(Relaxed) > 0 {
            return false;
        }
        self.readers.store(self.readers.load(Relaxed) + 1, Relaxed);
        true
    }

    /// Admits a writer. One that has the turn keeps it while it waits for the readers.
    fn admit_writer(&self, owner: Owner, has_turn: &mut bool) -> Result<(), Wanted> {
        let depth = self.depth.load(Relaxed);
        if depth > 0 && self.owner.load(Relaxed) == owner.number() {
            self.depth.store(depth + 1, Relaxed);
            return Ok(());
        }
        if !*has_turn {
            if self.has_turn.load(Relaxed) {
                return Err(Wanted::TurnFree);
            }
            self.has_turn.store(true, Relaxed);
            *has_turn = true;
        }
        if self.readers.load(Relaxed) > 0 {
            return Err(Wanted::NoReaders);
        }
        self.owner.store(owner.number(), Relaxed);
        self.depth.store(1, Relaxed);
        Ok(())
    }

    fn give_turn_back(&self) {
        self.spinning(|| self.has_turn.store(false, Relaxed));
        self.wake_next_turn();
    }

    /// Wakes those who wait for an event, if somebody ever had to.
    fn wake(&self, event: impl FnOnce(&Events) -> &Event) {
        if let Some(events) = self.events.get() {
            event(events).wake_all();
        }
    }

    fn wake_next_turn(&self) {
        if let Some(events) = self.events.get() {
            events.turn_free.wake_one();
        }
    }
}

impl Default for Morrison {
    fn default() -> Morrison {
        Morrison::new()
    }
}

impl ReaderWriter for Morrison {
    fn try_shared(&self) -> bool {
        self.spinning(|| self.admit_reader())
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
            let event = &self.events().no_writer;
            let ticket: Ticket = event.enter();
            let entered = self.try_shared();
            if !entered {
                is_late = event.wait(ticket, deadline);
            }
            event.leave();
            if entered {
                return true;
            }
        }
    }

    fn unlock_shared(&self) {
        let is_last = self.spinning(|| {
            let left = self.readers.load(Relaxed) - 1;
            self.readers.store(left, Relaxed);
            left == 0
        });
        if is_last {
            self.wake(|events| &events.no_readers);
        }
    }

    fn try_exclusive(&self, owner: Owner) -> bool {
        let mut has_turn = false;
        let admitted = self.spinning(|| {
            let admitted = self.admit_writer(owner, &mut has_turn).is_ok();
            if !admitted && has_turn {
                self.has_turn.store(false, Relaxed);
            }
            admitted
        });
        if !admitted && has_turn {
            self.wake_next_turn();
        }
        admitted
    }

    fn exclusive_until(&self, owner: Owner, deadline: &Deadline) -> bool {
        let mut has_turn = false;
        let mut is_late = false;
        loop {
            let wanted = match self.spinning(|| self.admit_writer(owner, &mut has_turn)) {
                Ok(()) => return true,
                Err(wanted) => wanted,
            };
            if is_late {
                if has_turn {
                    self.give_turn_back();
                }
                return false;
            }
            let event = match wanted {
                Wanted::TurnFree => &self.events().turn_free,
                Wanted::NoReaders => &self.events().no_readers,
            };
            let ticket = event.enter();
            let still = self.spinning(|| match wanted {
                Wanted::TurnFree => self.has_turn.load(Relaxed),
                Wanted::NoReaders => self.readers.load(Relaxed) > 0,
            });
            if still {
                is_late = event.wait(ticket, deadline);
            }
            event.leave();
        }
    }

    fn downgrade(&self) {
        self.spinning(|| {
            self.depth.store(0, Relaxed);
            self.has_turn.store(false, Relaxed);
            self.readers.store(1, Relaxed);
        });
        self.wake(|events| &events.no_writer);
        self.wake_next_turn();
    }

    fn unlock_exclusive(&self) {
        let is_free = self.spinning(|| {
            let depth = self.depth.load(Relaxed) - 1;
            self.depth.store(depth, Relaxed);
            if depth == 0 {
                self.has_turn.store(false, Relaxed);
            }
            depth == 0
        });
        if is_free {
            self.wake(|events| &events.no_writer);
            self.wake_next_turn();
        }
    }
}
