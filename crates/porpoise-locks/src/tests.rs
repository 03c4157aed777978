//! What the lock promises, on real threads: the stress test is short, so that miri can run it too.

use std::thread;
use std::time::Duration;

use crate::{Deadline, Owner, PreferReader, Published, ReaderWriter};

#[path = "promises.rs"]
mod promises;
use promises::{soon, stress};

#[test]
fn it_is_one_word() {
    assert_eq!(size_of::<PreferReader>(), 8);
}

#[test]
fn readers_recurse_and_a_writer_waits_for_the_last() {
    promises::readers_recurse_and_a_writer_waits_for_the_last(&PreferReader::new());
}

#[test]
fn what_is_published_last_is_looked_at() {
    let published = Published::default();
    assert_eq!(published.look(|address| address), None);
    let outer = published.publish(1);
    let inner = published.publish(2);
    assert_eq!(published.look(|address| address), Some(2));
    published.withdraw(inner);
    assert_eq!(published.look(|address| address), Some(1));
    published.withdraw(outer);
    assert_eq!(published.look(|address| address), None);
}

#[test]
fn nothing_is_withdrawn_while_somebody_looks() {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    let published = Published::default();
    // A number while it is published, 0 else.
    let (used, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                published.look(|address| assert_eq!(used.load(Ordering::Relaxed), address));
            }
        });
        for address in 1..if cfg!(miri) { 50 } else { 20_000 } {
            used.store(address, Ordering::Relaxed);
            let before = published.publish(address);
            published.withdraw(before);
            used.store(0, Ordering::Relaxed);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_panic_while_looking_holds_nobody_up() {
    let published = Published::default();
    let before = published.publish(1);
    let panics = std::panic::AssertUnwindSafe(|| published.look(|_| panic!("looking")));
    assert!(std::panic::catch_unwind(panics).is_err());
    published.withdraw(before);
}

#[test]
fn a_writer_is_the_owner_on_any_thread() {
    promises::a_writer_is_the_owner_on_any_thread(&PreferReader::new());
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

#[test]
fn many_threads_never_see_half_a_change() {
    stress(&PreferReader::new(), "prefers readers", || ());
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
