//! What the rivals are built from: the standard library's atomics, mutexes and condition variables.
//!
//! The locks name these, and the trait that they have in common with
//! [`porpoise_locks::PreferReader`], only through this module. The interleaving tests compile the
//! same files over `loom`'s (`modelled`).

use std::sync::PoisonError;
use std::time::Instant;

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicBool, AtomicU32};
pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock};
pub use std::thread::yield_now;

pub use porpoise_locks::{Deadline, Owner, ReaderWriter};

pub use super::spin::SpinLock;

/// Locks a mutex. A panic elsewhere doesn't spoil it: no critical section here leaves its state
/// half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until notified; true: the deadline has passed. It may also wake for nothing.
pub fn wait<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    deadline: &Deadline,
) -> (MutexGuard<'a, T>, bool) {
    match deadline {
        Deadline::Never => {
            let guard = condvar.wait(guard);
            (guard.unwrap_or_else(PoisonError::into_inner), false)
        }
        Deadline::At(moment) => {
            let left = moment.saturating_duration_since(Instant::now());
            let (guard, timed_out) = condvar
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner);
            (guard, timed_out.timed_out())
        }
    }
}

/// A spinner gives its core away after so many looks: the holder may wait for it.
pub const SPINS_MAX: u32 = 64;
