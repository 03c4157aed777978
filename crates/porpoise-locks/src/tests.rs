//! What the locks promise, on real threads: the stress test is short, so that miri can run it too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::{AnyLock, Deadline, Kind, Owner, Portable, PreferReader, ReaderWriter};

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(5))
}

fn each(test: impl Fn(&AnyLock)) {
    for kind in Kind::ALL {
        test(&AnyLock::new(kind));
    }
}

#[test]
fn names_lead_to_kinds() {
    for kind in Kind::ALL {
        assert_eq!(Kind::by_name(&kind.name().to_uppercase()), Some(kind));
        assert_eq!(AnyLock::new(kind).kind(), kind);
    }
    assert_eq!(Kind::by_name("pthread"), None);
}

#[test]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<PreferReader>(), 8);
    assert_eq!(size_of::<Portable>(), 32);
    assert_eq!(size_of::<crate::Native>(), 44);
    assert_eq!(size_of::<crate::TwoMutex>(), 36);
    assert_eq!(size_of::<crate::Morrison>(), 32);
}

#[test]
fn readers_recurse_and_a_writer_waits_for_the_last() {
    each(|lock| {
        lock.shared();
        lock.shared();
        thread::scope(|scope| {
            let writer = scope.spawn(|| lock.exclusive(Owner::new(1)));
            thread::sleep(Duration::from_millis(5));
            assert!(lock.try_shared(), "{lock:?}");
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
    });
}

#[test]
fn a_writer_is_the_owner_on_any_thread() {
    each(|lock| {
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
    });
}

#[test]
fn a_reader_that_panics_leaves() {
    let lock = PreferReader::new();
    let panics = std::panic::AssertUnwindSafe(|| lock.read(|| panic!("inside")));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(lock.try_exclusive(Owner::new(1)));
}

#[test]
fn newcomers_wait_behind_a_writer_under_the_fair_policy() {
    let lock = PreferReader::fair();
    lock.shared();
    thread::scope(|scope| {
        let writer = scope.spawn(|| lock.exclusive(Owner::new(1)));
        while lock.try_shared() {
            lock.unlock_shared();
            thread::yield_now();
        }
        assert!(!lock.shared_until(&soon()));
        lock.unlock_shared();
        writer.join().unwrap();
        let reader = scope.spawn(|| lock.shared());
        lock.unlock_exclusive();
        reader.join().unwrap();
    });
}

#[test]
fn a_fair_writer_that_gives_up_lets_the_newcomers_in() {
    let lock = PreferReader::fair();
    lock.shared();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            lock.exclusive_until(Owner::new(1), &Deadline::after(Duration::from_millis(30)))
        });
        let reader = scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            lock.shared()
        });
        assert!(!writer.join().unwrap());
        reader.join().unwrap();
    });
}

/// Locks that spread give their lanes back: there are fewer sets than locks here.
#[test]
fn lanes_go_from_lock_to_lock() {
    let locks = if cfg!(miri) { 3 } else { 200 };
    for _ in 0..locks {
        let lock = PreferReader::new();
        lock.open_now();
        assert!(format!("{lock:?}").contains("open: true"));
        lock.shared();
        assert!(!lock.try_exclusive(Owner::new(1)));
        lock.unlock_shared();
        assert!(lock.try_exclusive(Owner::new(1)));
        assert!(lock.try_exclusive(Owner::new(1)));
        lock.unlock_exclusive();
        assert!(!lock.try_shared());
        lock.unlock_exclusive();
        assert!(lock.try_shared());
        lock.unlock_shared();
    }
}

/// Readers enter on one thread's lane and leave by another's, with writers between.
#[test]
fn only_the_sum_of_the_lanes_counts() {
    let lock = PreferReader::new();
    let rounds: u64 = if cfg!(miri) { 4 } else { 20 };
    for round in 0..rounds {
        lock.open_now();
        for _ in 0..5 {
            lock.shared();
        }
        assert!(!lock.try_exclusive(Owner::new(1)));
        if round % 2 == 0 {
            lock.open_now();
        }
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| lock.unlock_shared());
            }
        });
        lock.exclusive(Owner::new(round));
        lock.unlock_exclusive();
    }
}

/// How often each thread of the stress test comes; `PORPOISE_LOCK_ROUNDS` makes it longer.
fn rounds() -> u64 {
    let asked = std::env::var("PORPOISE_LOCK_ROUNDS").ok();
    let usual = if cfg!(miri) { 20 } else { 3_000 };
    asked.map_or(usual, |rounds| rounds.parse().expect("a number"))
}

/// `outside` runs now and then, on threads that are not inside.
fn stress(lock: &(impl ReaderWriter + ?Sized), what: &str, outside: impl Fn() + Sync) {
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

#[test]
fn many_threads_never_see_half_a_change() {
    for kind in Kind::ALL {
        stress(&AnyLock::new(kind), kind.name(), || ());
    }
    stress(&PreferReader::fair(), "fair", || ());
}

/// Far more often than readers would do it.
#[test]
fn nor_while_the_lanes_are_opened_again_and_again() {
    let lock = PreferReader::new();
    stress(&lock, "opened", || lock.open_now());
    let fair = PreferReader::fair();
    stress(&fair, "opened, fair", || fair.open_now());
}
