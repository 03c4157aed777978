//! A spin lock around a few instructions. It knows no sleeping: who finds it taken looks again, and
//! gives its core away now and then, in case the holder waits for that very core.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::base::{self, AtomicBool};

pub struct SpinLock(AtomicBool);

impl SpinLock {
    pub fn new() -> SpinLock {
        SpinLock(AtomicBool::new(false))
    }

    /// Runs `f`, which must not panic, alone.
    pub fn hold<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut spins = 0u32;
        while self
            .0
            .compare_exchange_weak(false, true, Acquire, Relaxed)
            .is_err()
        {
            spins += 1;
            if spins.is_multiple_of(base::SPINS_MAX) {
                base::yield_now();
            } else {
                base::spin_loop();
            }
        }
        let result = f();
        self.0.store(false, Release);
        result
    }
}
