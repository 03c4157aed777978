//! `loom`'s primitives under the names that the locks' `base` has for them.

use loom::sync::Arc;
use loom::sync::atomic::Ordering;

pub use loom::hint::spin_loop;
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
pub use loom::sync::{Condvar, Mutex, MutexGuard, RwLock};
pub use loom::thread::{Thread, current as current_thread, yield_now};

/// A deadline that passes when some thread says so.
#[derive(Clone, Debug)]
pub enum Deadline {
    Never,
    When(Arc<AtomicBool>),
}

impl Deadline {
    fn has_passed(&self) -> bool {
        match self {
            Deadline::Never => false,
            // A change reads what is newest.
            Deadline::When(flag) => flag.fetch_or(false, Ordering::SeqCst),
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic")
}

pub fn wait<'a, T>(
    condvar: &Condvar,
    mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    deadline: &Deadline,
) -> (MutexGuard<'a, T>, bool) {
    let Deadline::When(_) = deadline else {
        return (condvar.wait(guard).expect("no panic"), false);
    };
    // It wakes again and again for nothing, until notified or late: the loops around it must bear
    // that.
    drop(guard);
    yield_now();
    (lock(mutex), deadline.has_passed())
}

pub fn park(deadline: &Deadline) -> bool {
    match deadline {
        Deadline::Never => loom::thread::park(),
        Deadline::When(_) => yield_now(),
    }
    deadline.has_passed()
}
