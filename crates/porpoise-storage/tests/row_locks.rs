//! Who waits for whom, and who is refused.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use porpoise_storage::LockMode::{Absent, Exclusive, Insert, Shared};
use porpoise_storage::{
    Interrupt, InterruptCause, LockError, Locked, Options, SpaceId, Store, Transaction, Wait,
    WaitPhase,
};

const SPACE: SpaceId = SpaceId(1);
const LONG: Wait = Wait::Timeout(Duration::from_secs(20));

fn store() -> Store {
    Store::open(&Options::memory()).unwrap()
}

fn until_waiting(store: &Store, number: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while store.stats().locks_waiting < number {
        assert!(Instant::now() < deadline, "nobody went to wait");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Has another thread lock a row; what comes back is the outcome and the transaction.
fn lock_elsewhere(
    mut work: Transaction,
    key: &'static [u8],
    mode: porpoise_storage::LockMode,
) -> mpsc::Receiver<(Result<Locked, LockError>, Transaction)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let outcome = work.lock(SPACE, key, mode, LONG);
        let _ = sender.send((outcome, work));
    });
    receiver
}

#[test]
fn shared_locks_coexist_and_keep_an_exclusive_one_out() {
    let store = store();
    let (mut a, mut b, mut c) = (store.begin(), store.begin(), store.begin());
    assert_eq!(
        a.lock(SPACE, b"x", Shared, Wait::NoWait),
        Ok(Locked::Granted)
    );
    assert_eq!(
        a.lock(SPACE, b"x", Shared, Wait::NoWait),
        Ok(Locked::AlreadyHeld)
    );
    assert_eq!(
        b.lock(SPACE, b"x", Shared, Wait::NoWait),
        Ok(Locked::Granted)
    );
    assert_eq!(
        c.lock(SPACE, b"x", Exclusive, Wait::NoWait),
        Err(LockError::Busy)
    );
    let soon = Wait::Timeout(Duration::from_millis(20));
    assert_eq!(
        c.lock(SPACE, b"x", Exclusive, soon),
        Err(LockError::Timeout)
    );
    drop(b);
    assert_eq!(
        a.lock(SPACE, b"x", Exclusive, Wait::NoWait),
        Ok(Locked::Upgraded)
    );
    assert_eq!(
        a.lock(SPACE, b"x", Shared, Wait::NoWait),
        Ok(Locked::AlreadyHeld)
    );
    assert_eq!(
        c.lock(SPACE, b"x", Shared, Wait::NoWait),
        Err(LockError::Busy)
    );
    a.rollback();
    assert_eq!(
        c.lock(SPACE, b"x", Shared, Wait::NoWait),
        Ok(Locked::Granted)
    );
}

#[test]
fn each_mode_keeps_out_whom_the_table_says() {
    let store = store();
    for (held, conflicts_with) in [
        (Absent, [false, false, false, true]),
        (Shared, [false, false, true, true]),
        (Exclusive, [false, true, true, true]),
        (Insert, [true, true, true, true]),
    ] {
        for (wanted, is_kept_out) in [Absent, Shared, Exclusive, Insert]
            .into_iter()
            .zip(conflicts_with)
        {
            let (mut a, mut b) = (store.begin(), store.begin());
            a.lock(SPACE, b"x", held, Wait::NoWait).unwrap();
            let outcome = b.lock(SPACE, b"x", wanted, Wait::NoWait);
            let expected = if is_kept_out {
                Err(LockError::Busy)
            } else {
                Ok(Locked::Granted)
            };
            assert_eq!(outcome, expected, "{wanted:?} beside {held:?}");
        }
    }
}

#[test]
fn an_absent_key_is_locked_by_many_and_inserted_by_one() {
    let store = store();
    let (mut older, mut younger) = (store.begin(), store.begin());
    older.lock(SPACE, b"x", Absent, Wait::NoWait).unwrap();
    younger.lock(SPACE, b"x", Absent, Wait::NoWait).unwrap();
    let older = lock_elsewhere(older, b"x", Insert);
    until_waiting(&store, 1);
    let mut third = store.begin();
    assert_eq!(
        third.lock(SPACE, b"x", Absent, Wait::NoWait),
        Ok(Locked::Granted),
        "it passes the one that waits to insert"
    );
    drop(third);
    assert_eq!(
        younger.lock(SPACE, b"x", Insert, LONG),
        Err(LockError::Deadlock)
    );
    drop(younger);
    assert_eq!(older.recv().unwrap().0, Ok(Locked::Upgraded));
}

#[test]
fn a_lock_that_is_given_back_is_the_next_ones() {
    let store = store();
    let mut holder = store.begin();
    holder.lock(SPACE, b"w", Exclusive, Wait::NoWait).unwrap();
    holder.lock(SPACE, b"x", Exclusive, Wait::NoWait).unwrap();
    let waiter = lock_elsewhere(store.begin(), b"x", Exclusive);
    until_waiting(&store, 1);
    holder.unlock(SPACE, b"x");
    assert_eq!(holder.locks_held(), 1);
    let (outcome, waiter) = waiter.recv().unwrap();
    assert_eq!(outcome, Ok(Locked::Granted));
    assert_eq!(
        holder.lock(SPACE, b"x", Shared, Wait::NoWait),
        Err(LockError::Busy)
    );
    drop(waiter);
    assert_eq!(
        store.begin().lock(SPACE, b"w", Shared, Wait::NoWait),
        Err(LockError::Busy)
    );
}

#[test]
fn the_same_key_in_two_spaces_is_two_rows() {
    let store = store();
    let (mut a, mut b) = (store.begin(), store.begin());
    a.lock(SpaceId(1), b"x", Exclusive, Wait::NoWait).unwrap();
    b.lock(SpaceId(2), b"x", Exclusive, Wait::NoWait).unwrap();
}

#[test]
fn waiters_are_served_in_the_order_they_came() {
    let store = store();
    let mut holder = store.begin();
    holder.lock(SPACE, b"x", Exclusive, Wait::NoWait).unwrap();
    let first = lock_elsewhere(store.begin(), b"x", Exclusive);
    until_waiting(&store, 1);
    let second = lock_elsewhere(store.begin(), b"x", Shared);
    until_waiting(&store, 2);
    holder.commit().unwrap().wait().unwrap();
    let (outcome, first) = first.recv().unwrap();
    assert_eq!(outcome, Ok(Locked::Granted));
    assert!(second.recv_timeout(Duration::from_millis(50)).is_err());
    drop(first);
    assert_eq!(second.recv().unwrap().0, Ok(Locked::Granted));
}

#[test]
fn a_newcomer_does_not_overtake_a_waiter_it_would_hold_up() {
    let store = store();
    let mut reader = store.begin();
    reader.lock(SPACE, b"x", Shared, Wait::NoWait).unwrap();
    let writer = lock_elsewhere(store.begin(), b"x", Exclusive);
    until_waiting(&store, 1);
    let mut newcomer = store.begin();
    assert_eq!(
        newcomer.lock(SPACE, b"x", Shared, Wait::NoWait),
        Err(LockError::Busy)
    );
    drop(reader);
    assert_eq!(writer.recv().unwrap().0, Ok(Locked::Granted));
}

#[test]
fn of_two_that_wait_for_each_other_the_one_with_less_to_lose_is_refused() {
    let store = store();
    let (mut busy, mut idle) = (store.begin(), store.begin());
    busy.lock(SPACE, b"x", Exclusive, Wait::NoWait).unwrap();
    busy.put(SPACE, b"x", b"1");
    idle.lock(SPACE, b"y", Exclusive, Wait::NoWait).unwrap();
    let idle = lock_elsewhere(idle, b"x", Exclusive);
    until_waiting(&store, 1);
    let busy = lock_elsewhere(busy, b"y", Exclusive);
    let (outcome, idle) = idle.recv().unwrap();
    assert_eq!(outcome, Err(LockError::Deadlock));
    assert!(
        busy.recv_timeout(Duration::from_millis(20)).is_err(),
        "the victim still holds y"
    );
    drop(idle);
    assert_eq!(busy.recv().unwrap().0, Ok(Locked::Granted));
    assert_eq!(store.stats().deadlocks, 1);
}

#[test]
fn of_two_that_close_a_cycle_at_the_same_time_one_is_refused() {
    let store = store();
    let rounds = 3_000;
    let both_locked = Barrier::new(2);
    let both_done = Barrier::new(2);
    let cross = |first: &[u8], second: &[u8]| {
        let mut refused = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let mut work = store.begin();
            work.lock(SPACE, first, Exclusive, Wait::NoWait).unwrap();
            both_locked.wait();
            refused.push(work.lock(SPACE, second, Exclusive, LONG).is_err());
            drop(work);
            both_done.wait();
        }
        refused
    };
    let [one, other] = thread::scope(|scope| {
        let one = scope.spawn(|| cross(b"x", b"y"));
        let other = scope.spawn(|| cross(b"y", b"x"));
        [one, other].map(|thread| thread.join().unwrap())
    });
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    assert_eq!(store.stats().deadlocks, rounds as u64);
}

#[test]
fn two_holders_that_both_want_more_are_a_deadlock() {
    let store = store();
    let (mut older, mut younger) = (store.begin(), store.begin());
    older.lock(SPACE, b"x", Shared, Wait::NoWait).unwrap();
    younger.lock(SPACE, b"x", Shared, Wait::NoWait).unwrap();
    let older = lock_elsewhere(older, b"x", Exclusive);
    until_waiting(&store, 1);
    assert_eq!(
        younger.lock(SPACE, b"x", Exclusive, LONG),
        Err(LockError::Deadlock)
    );
    drop(younger);
    assert_eq!(older.recv().unwrap().0, Ok(Locked::Upgraded));
}

#[test]
fn a_cycle_of_many_through_a_queue_is_found() {
    let store = store();
    let mut works: Vec<_> = (0..4).map(|_| store.begin()).collect();
    let keys: [&'static [u8]; 4] = [b"a", b"b", b"c", b"d"];
    for (work, key) in works.iter_mut().zip(keys) {
        work.lock(SPACE, key, Exclusive, Wait::NoWait).unwrap();
    }
    let mut bystander = store.begin();
    bystander.lock(SPACE, b"z", Shared, Wait::NoWait).unwrap();
    let queued = lock_elsewhere(bystander, b"b", Shared);
    until_waiting(&store, 1);
    let mut last = works.pop().unwrap();
    let mut waiting = Vec::new();
    for (number, work) in works.into_iter().enumerate() {
        waiting.push(lock_elsewhere(work, keys[number + 1], Exclusive));
        until_waiting(&store, number as u64 + 2);
    }
    assert_eq!(
        last.lock(SPACE, b"a", Exclusive, LONG),
        Err(LockError::Deadlock),
        "the one who closes the cycle"
    );
    drop(last);
    let granted_next = [
        waiting.pop().unwrap(),
        waiting.pop().unwrap(),
        queued,
        waiting.pop().unwrap(),
    ];
    for one in granted_next {
        assert_eq!(one.recv().unwrap().0, Ok(Locked::Granted));
    }
}

#[test]
fn a_wait_ends_when_it_is_interrupted_and_leaves_no_trace() {
    let store = store();
    let mut holder = store.begin();
    holder.lock(SPACE, b"x", Exclusive, Wait::NoWait).unwrap();
    let work = store.begin();
    let interrupt = Arc::clone(work.interrupt());
    let waiting = lock_elsewhere(work, b"x", Exclusive);
    until_waiting(&store, 1);
    interrupt.set(InterruptCause::Killed);
    let (outcome, mut work) = waiting.recv().unwrap();
    assert_eq!(outcome, Err(LockError::Interrupted));
    assert_eq!(
        work.lock(SPACE, b"x", Exclusive, LONG),
        Err(LockError::Interrupted)
    );
    interrupt.clear();
    assert_eq!(
        work.lock(SPACE, b"x", Exclusive, Wait::NoWait),
        Err(LockError::Busy)
    );
    drop(holder);
    assert_eq!(work.lock(SPACE, b"x", Exclusive, LONG), Ok(Locked::Granted));
}

#[test]
fn the_block_hook_surrounds_a_wait_and_only_a_wait() {
    let store = store();
    let balance = Arc::new((AtomicI32::new(0), AtomicI32::new(0)));
    let seen = Arc::clone(&balance);
    store.set_wait_hook(Some(Arc::new(move |blocking| {
        match blocking {
            WaitPhase::Begin => &seen.0,
            WaitPhase::End => &seen.1,
        }
        .fetch_add(1, Ordering::SeqCst);
    })));
    let (mut a, mut b) = (store.begin(), store.begin());
    a.lock(SPACE, b"x", Exclusive, LONG).unwrap();
    b.lock(SPACE, b"y", Exclusive, LONG).unwrap();
    assert_eq!(balance.0.load(Ordering::SeqCst), 0);
    let _ = b.lock(
        SPACE,
        b"x",
        Exclusive,
        Wait::Timeout(Duration::from_millis(5)),
    );
    assert_eq!(balance.0.load(Ordering::SeqCst), 1);
    assert_eq!(balance.1.load(Ordering::SeqCst), 1);
}

#[test]
fn under_random_contention_everybody_gets_through_or_is_refused() {
    let store = store();
    let granted = AtomicI32::new(0);
    thread::scope(|scope| {
        for seed in 0..8u64 {
            let (store, granted) = (&store, &granted);
            scope.spawn(move || {
                let mut random = seed * 0x9e37_79b9 + 1;
                for _ in 0..500 {
                    let mut work = store.begin();
                    for _ in 0..3 {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let key = [(random % 6) as u8];
                        let mode = [Absent, Shared, Exclusive, Insert][(random >> 6) as usize % 4];
                        match work.lock(SPACE, &key, mode, LONG) {
                            Ok(locked) => {
                                if locked == Locked::Granted && random & 3 == 0 {
                                    work.unlock(SPACE, &key);
                                }
                                granted.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(LockError::Busy) if mode == Absent => {}
                            Err(LockError::Deadlock) => break,
                            Err(other) => panic!("{other}"),
                        }
                        if random & 7 == 0 {
                            thread::yield_now();
                        }
                    }
                }
            });
        }
    });
    assert!(granted.load(Ordering::Relaxed) > 4000);
    assert_eq!(store.stats().locks_waiting, 0);
    let mut last = store.begin();
    for key in 0..6 {
        assert_eq!(
            last.lock(SPACE, &[key], Exclusive, Wait::NoWait),
            Ok(Locked::Granted)
        );
    }
}

#[test]
fn a_statement_that_pauses_goes_on_when_it_may_and_when_it_is_killed() {
    let interrupt = Arc::new(Interrupt::default());
    let pause_elsewhere = || {
        interrupt.pause();
        let paused = interrupt.clone();
        thread::spawn(move || paused.wait_while_paused())
    };
    let thread = pause_elsewhere();
    assert!(interrupt.is_signalled() && !interrupt.is_set());
    interrupt.resume();
    thread.join().unwrap();
    assert!(!interrupt.is_signalled());
    let thread = pause_elsewhere();
    interrupt.set(InterruptCause::TimeExceeded);
    interrupt.set(InterruptCause::Killed);
    thread.join().unwrap();
    assert_eq!(interrupt.cause(), Some(InterruptCause::Killed));
    // The next statement begins without a cause, and pauses as long as nobody says otherwise.
    interrupt.clear();
    assert!(interrupt.is_paused() && !interrupt.is_set());
    interrupt.resume();
}

/// Those that a transaction lists, and more.
#[test]
fn a_rollback_of_many_locks_does_not_wait_for_their_release_and_loses_none() {
    for locks in [60_000, 70_000] {
        lock_many_and_roll_back(locks);
    }
}

fn lock_many_and_roll_back(locks: u32) {
    let store = store();
    let mut many = store.begin();
    for row in 0..locks {
        let key = row.to_be_bytes();
        assert_eq!(
            many.lock(SPACE, &key, Exclusive, Wait::NoWait),
            Ok(Locked::Granted)
        );
    }
    let waiting = lock_elsewhere(store.begin(), &[0, 0, 0, 0], Exclusive);
    until_waiting(&store, 1);
    many.rollback();
    let (outcome, _held) = waiting.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(outcome, Ok(Locked::Granted));
    let mut next = store.begin();
    for row in 1..locks {
        let key = row.to_be_bytes();
        assert_eq!(next.lock(SPACE, &key, Exclusive, LONG), Ok(Locked::Granted));
    }
    // A store that is closed meanwhile takes nobody's locks along.
    next.rollback();
    drop(store);
}

#[test]
fn a_transaction_of_very_many_locks_has_each_of_them_and_no_other() {
    const LOCKS: u32 = 80_000;
    let key = |row: u32| row.to_be_bytes();
    let now = Wait::NoWait;
    let store = store();
    let (mut many, mut other) = (store.begin(), store.begin());
    other.lock(SPACE, &key(LOCKS + 5), Exclusive, now).unwrap();
    other.lock(SPACE, &key(7), Shared, now).unwrap();
    for row in 0..LOCKS {
        let granted = many.lock(SPACE, &key(row), Shared, now);
        assert_eq!(granted, Ok(Locked::Granted));
    }
    assert_eq!(many.locks_held(), LOCKS as usize);
    for row in [1, LOCKS - 1] {
        let again = many.lock(SPACE, &key(row), Shared, now);
        assert_eq!(again, Ok(Locked::AlreadyHeld));
        let more = many.lock(SPACE, &key(row), Exclusive, now);
        assert_eq!(more, Ok(Locked::Upgraded));
        let busy = other.lock(SPACE, &key(row), Shared, now);
        assert_eq!(busy, Err(LockError::Busy));
    }
    let shared = many.lock(SPACE, &key(7), Exclusive, now);
    assert_eq!(shared, Err(LockError::Busy));
    many.lock(SPACE, &key(LOCKS), Exclusive, now).unwrap();
    many.unlock(SPACE, &key(LOCKS));
    many.unlock(SPACE, &key(LOCKS + 5));
    assert_eq!(many.locks_held(), LOCKS as usize);
    other.lock(SPACE, &key(LOCKS), Exclusive, now).unwrap();
    let waiting = lock_elsewhere(store.begin(), &[0, 0, 0, 9], Exclusive);
    until_waiting(&store, 1);
    many.put(SPACE, b"a", b"1");
    many.commit().unwrap().wait().unwrap();
    let (outcome, _held) = waiting.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(outcome, Ok(Locked::Granted));
    // What the other holds it holds still, and all else is free.
    let mut third = store.begin();
    for row in [7, LOCKS, LOCKS + 5] {
        let busy = third.lock(SPACE, &key(row), Exclusive, now);
        assert_eq!(busy, Err(LockError::Busy));
    }
    for row in (0..LOCKS).filter(|row| ![7, 9].contains(row)) {
        let granted = third.lock(SPACE, &key(row), Exclusive, now);
        assert_eq!(granted, Ok(Locked::Granted));
    }
}
