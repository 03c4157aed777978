//! The rivals' files once more, over loom's primitives, in the scenarios that `porpoise-locks`
//! tries on its own lock.
#![allow(
    clippy::duplicate_mod,
    reason = "the same source is checked over other primitives"
)]
#![allow(dead_code, unused_imports)]

#[path = "event.rs"]
mod event;
#[path = "morrison.rs"]
mod morrison;
#[path = "native.rs"]
mod native;
#[path = "portable.rs"]
mod portable;
#[path = "../../../porpoise-locks/src/modelled/primitives.rs"]
mod primitives;
#[path = "../../../porpoise-locks/src/reader_writer.rs"]
mod reader_writer;
#[path = "../../../porpoise-locks/src/modelled/scenarios.rs"]
mod scenarios;
#[path = "spin.rs"]
mod spin;
#[path = "two_mutex.rs"]
mod two_mutex;

use morrison::Morrison;
use native::Native;
use portable::Portable;
use reader_writer::{Owner, ReaderWriter};
use scenarios::{Guarded, check, promises, scenarios};
use two_mutex::TwoMutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

/// The same names as the rivals' `base`, over loom.
mod base {
    pub use super::primitives::*;
    pub use super::reader_writer::{Owner, ReaderWriter};

    /// The checker can't tell a spin that ends from one that doesn't: scenarios of whole locks have
    /// a mutex instead.
    pub struct SpinLock(Mutex<()>);

    impl SpinLock {
        pub fn new() -> SpinLock {
            SpinLock(Mutex::new(()))
        }

        pub fn hold<R>(&self, f: impl FnOnce() -> R) -> R {
            let _held = lock(&self.0);
            f()
        }
    }

    pub const SPINS_MAX: u32 = 1;
}

promises! {
    of_portable Portable::new;
    of_native Native::new;
    of_two_mutex TwoMutex::new;
    of_morrison Morrison::new;
}

#[test]
fn scoped_readers_and_writers_of_the_platforms_lock_meet_those_that_hold_it() {
    check(|| {
        let guarded = Guarded::new(Native::new());
        let scoped = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.lock.write(Owner::new(1), || guarded.change())
        });
        let held = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        guarded.write(2);
        held.join().unwrap();
        scoped.join().unwrap();
    });
}

#[test]
fn two_spinners_exclude_each_other() {
    check(|| {
        let spin = Arc::new(spin::SpinLock::new());
        let figure = Arc::new(AtomicU32::new(0));
        let count = {
            let (spin, figure) = (Arc::clone(&spin), Arc::clone(&figure));
            move || spin.hold(|| figure.store(figure.load(Relaxed) + 1, Relaxed))
        };
        let other = thread::spawn(count.clone());
        count();
        other.join().unwrap();
        assert_eq!(figure.load(Relaxed), 2);
    });
}
