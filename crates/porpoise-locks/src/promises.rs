//! What every lock promises, on real threads: the parent module tries it on its locks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::{Deadline, Owner, ReaderWriter};

/// A deadline that a test can wait for.
pub fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(5))
}

pub fn readers_recurse_and_a_writer_waits_for_the_last(lock: &impl ReaderWriter) {
    lock.shared();
    lock.shared();
    thread::scope(|scope| {
        let writer = scope.spawn(|| lock.exclusive(Owner::new(1)));
        thread::sleep(Duration::from_millis(5));
        assert!(lock.try_shared());
        for _ in 0..3 {
            assert!(!writer.is_finished());
            lock.unlock_shared();
        }
        writer.join().unwrap();
    });
    assert!(!lock.try_shared());
    assert!(!lock.shared_until(&soon()));
    assert!(!lock.exclusive_until(Owner::new(2), &soon()));
    lock.unlock_exclusive();
    assert!(lock.try_exclusive(Owner::new(2)));
}

pub fn a_writer_is_the_owner_on_any_thread(lock: &impl ReaderWriter) {
    lock.exclusive(Owner::new(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.try_exclusive(Owner::new(1)));
            lock.unlock_exclusive();
        });
    });
    assert!(!lock.try_exclusive(Owner::new(2)));
    lock.unlock_exclusive();
    assert!(lock.try_shared());
}

/// How often each thread of the stress test comes; `PORPOISE_LOCK_ROUNDS` makes it longer.
fn rounds() -> u64 {
    let asked = std::env::var("PORPOISE_LOCK_ROUNDS").ok();
    let usual = if cfg!(miri) { 20 } else { 3_000 };
    asked.map_or(usual, |rounds| rounds.parse().expect("a number"))
}

/// `outside` runs now and then, on threads that are not inside.
pub fn stress(lock: &impl ReaderWriter, what: &str, outside: impl Fn() + Sync) {
    const THREADS: u64 = 4;
    let rounds = rounds();
    let figures = [AtomicU64::new(0), AtomicU64::new(0)];
    let written = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 1..=THREADS {
            let (figures, written, outside) = (&figures, &written, &outside);
            scope.spawn(move || {
                let owner = Owner::new(number);
                let mut random = number;
                for round in 0..rounds {
                    if round % 4 == number % 4 {
                        outside();
                    }
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let deadline = Deadline::after(Duration::from_micros(random >> 56));
                    let entered = match random >> 32 & 15 {
                        0 => lock.exclusive_until(owner, &deadline),
                        1 => lock.try_exclusive(owner),
                        2 => {
                            lock.exclusive(owner);
                            true
                        }
                        3 if !lock.shared_until(&deadline) => continue,
                        4 if !lock.try_shared() => continue,
                        choice => {
                            if choice > 4 {
                                lock.shared();
                            }
                            assert_eq!(
                                figures[0].load(Relaxed),
                                figures[1].load(Relaxed),
                                "{what}"
                            );
                            lock.unlock_shared();
                            continue;
                        }
                    };
                    if entered {
                        for figure in figures {
                            figure.store(figure.load(Relaxed) + 1, Relaxed);
                        }
                        written.fetch_add(1, Relaxed);
                        lock.unlock_exclusive();
                    }
                }
            });
        }
    });
    assert_eq!(figures[0].load(Relaxed), written.load(Relaxed), "{what}");
    assert!(lock.try_exclusive(Owner::new(99)), "{what} is free");
}
