//! Reader-writer locks for metadata.
//!
//! What it is: locks whose readers are many, short and may recurse (statements on a table), and whose
//! writers are rare (DDL). What it is not: a general lock; there is no guarded value and no guard, because
//! a metadata lock is held by a transaction, not by a scope.
//!
//! [`MetadataLock`] prefers readers: a reader enters whenever no writer is *inside*, so a reader that
//! already holds the lock can take it again without deadlock, and a waiting writer holds up nobody.
//! A writer waits until no reader but its own is left.
//!
//! ```
//! use std::time::Duration;
//! let lock = porpoise_locks::MetadataLock::new();
//! assert!(lock.try_shared());
//! assert!(!lock.exclusive(0, Duration::from_millis(1)));
//! assert!(lock.exclusive(1, Duration::from_millis(1)));
//! lock.unlock_exclusive();
//! lock.unlock_shared();
//! ```

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The writer's bit in the state word; the bits below count readers.
const WRITER: u32 = 1 << 31;

/// One word of state and a waiting room. An uncontended reader pays one compare-and-swap.
#[derive(Debug)]
pub struct MetadataLock {
    state: AtomicU32,
    /// How many threads are in the waiting room: who releases looks here before it takes the mutex.
    waiting: AtomicU32,
    room: Mutex<()>,
    changed: Condvar,
}

impl MetadataLock {
    pub const fn new() -> MetadataLock {
        MetadataLock {
            state: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            room: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Enters as a reader, unless a writer is inside.
    pub fn try_shared(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & WRITER == 0 {
            match self.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Enters as a reader; waits for a writer inside, at most `timeout`. False when time ran out.
    pub fn shared(&self, timeout: Duration) -> bool {
        self.wait_for(timeout, || self.try_shared())
    }

    pub fn unlock_shared(&self) {
        self.state.fetch_sub(1, Ordering::SeqCst);
        self.wake();
    }

    /// Enters as the writer if nobody else is inside; the caller itself may hold `own_shared` reader's entries.
    pub fn try_exclusive(&self, own_shared: u32) -> bool {
        self.state
            .compare_exchange(
                own_shared,
                own_shared | WRITER,
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Like [`try_exclusive`](Self::try_exclusive), waiting at most `timeout`.
    pub fn exclusive(&self, own_shared: u32, timeout: Duration) -> bool {
        self.wait_for(timeout, || self.try_exclusive(own_shared))
    }

    pub fn unlock_exclusive(&self) {
        self.state.fetch_and(!WRITER, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.room.lock());
            self.changed.notify_all();
        }
    }

    fn wait_for(&self, timeout: Duration, mut enter: impl FnMut() -> bool) -> bool {
        if enter() {
            return true;
        }
        let deadline = Instant::now() + timeout;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut room = self.room.lock();
        let entered = loop {
            if enter() {
                break true;
            }
            if self.changed.wait_until(&mut room, deadline).timed_out() {
                break enter();
            }
        };
        drop(room);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        entered
    }
}

impl Default for MetadataLock {
    fn default() -> MetadataLock {
        MetadataLock::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn readers_recurse_while_a_writer_waits() {
        let lock = Arc::new(MetadataLock::new());
        assert!(lock.try_shared());
        let writer = std::thread::spawn({
            let lock = lock.clone();
            move || lock.exclusive(0, Duration::from_secs(10))
        });
        while lock.waiting.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert!(lock.try_shared());
        lock.unlock_shared();
        lock.unlock_shared();
        assert!(writer.join().expect("the writer"));
        assert!(!lock.try_shared());
        lock.unlock_exclusive();
        assert!(lock.try_shared());
    }

    #[test]
    fn a_writer_upgrades_over_its_own_readers_only() {
        let lock = MetadataLock::new();
        assert!(lock.try_shared() && lock.try_shared());
        assert!(!lock.try_exclusive(1));
        assert!(lock.try_exclusive(2));
    }

    #[test]
    fn a_wait_ends_at_its_timeout() {
        let lock = MetadataLock::new();
        assert!(lock.try_exclusive(0));
        assert!(!lock.shared(Duration::from_millis(5)));
    }
}
