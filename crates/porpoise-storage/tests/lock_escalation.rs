//! Transactions with more row locks of a space than memory shall hold, which lock the space.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use porpoise_storage::LockMode::{self, Absent, Exclusive, Insert, Shared};
use porpoise_storage::{
    InterruptCause, LockError, Locked, Options, PreparedTransaction, SpaceId, Store, Transaction,
    Wait,
};
use proptest::prelude::*;

const SPACE: SpaceId = SpaceId(1);
const OTHER_SPACE: SpaceId = SpaceId(2);
const LONG: Wait = Wait::Timeout(Duration::from_secs(20));
const NOW: Wait = Wait::NoWait;
/// What a lock counts as.
const LOCK_BYTES: usize = 60;

fn store() -> Store {
    Store::open(&Options::memory()).unwrap()
}

/// A transaction that locks a space with about `rows` locks of it.
fn begin(store: &Store, rows: usize) -> Transaction {
    let mut work = store.begin();
    work.limit_lock_memory(rows * LOCK_BYTES);
    work
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

/// A transaction that has locked the space, by rows from 1000 on.
fn escalated(store: &Store, mode: LockMode) -> Transaction {
    let mut work = begin(store, 8);
    for row in 1000..1020 {
        work.lock(SPACE, &key(row), mode, NOW).unwrap();
    }
    assert!(work.locked_spaces().eq([(SPACE, mode)]));
    work
}

fn until_waiting(store: &Store, number: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while store.stats().locks_waiting < number {
        assert!(Instant::now() < deadline, "nobody went to wait");
        thread::sleep(Duration::from_millis(1));
    }
}

type Outcome = (Result<Locked, LockError>, Transaction);

/// Has another thread lock a row; what comes back is the outcome and the transaction.
fn lock_elsewhere(mut work: Transaction, row: u32, mode: LockMode) -> mpsc::Receiver<Outcome> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let outcome = work.lock(SPACE, &key(row), mode, LONG);
        let _ = sender.send((outcome, work));
    });
    receiver
}

fn outcome_of(waiting: &mpsc::Receiver<Outcome>) -> Outcome {
    waiting.recv_timeout(Duration::from_secs(20)).unwrap()
}

#[test]
fn locks_of_very_many_rows_take_no_more_than_is_allowed() {
    const ALLOWED: usize = 64 << 10;
    let store = store();
    let mut work = store.begin();
    work.limit_lock_memory(ALLOWED);
    for row in 0..50_000 {
        let granted = work.lock(SPACE, &key(row), Exclusive, NOW);
        assert_eq!(granted, Ok(Locked::Granted));
        assert!(work.held_bytes() <= ALLOWED);
    }
    assert_eq!(store.stats().lock_escalations, 1);
    // Further spaces get the rest, and then a few rows each.
    for space in 2..50 {
        for row in 0..5_000 {
            work.lock(SpaceId(space), &key(row), Exclusive, NOW)
                .unwrap();
        }
    }
    assert!(work.held_bytes() <= ALLOWED * 2, "{}", work.held_bytes());
    assert_eq!(work.locked_spaces().count(), 49);
    let mut other = store.begin();
    for row in [0, 49_999, 1 << 30] {
        let busy = other.lock(SPACE, &key(row), Shared, NOW);
        assert_eq!(busy, Err(LockError::Busy));
    }
    work.put(SPACE, b"a", b"1");
    work.commit().unwrap().wait().unwrap();
    for space in 1..50 {
        for row in 0..1000 {
            let granted = other.lock(SpaceId(space), &key(row), Exclusive, NOW);
            assert_eq!(granted, Ok(Locked::Granted));
        }
    }
}

#[test]
fn a_transaction_of_usual_size_locks_rows_alone() {
    let store = store();
    let mut work = store.begin();
    for row in 0..200_000 {
        work.lock(SPACE, &key(row), Exclusive, NOW).unwrap();
    }
    assert_eq!(store.stats().lock_escalations, 0);
    let free = store.begin().lock(SPACE, &key(200_000), Exclusive, NOW);
    assert_eq!(free, Ok(Locked::Granted));
}

#[test]
fn each_mode_keeps_out_whom_the_table_of_modes_says() {
    for (held, conflicts_with) in [
        (Absent, [false, false, false, true]),
        (Shared, [false, false, true, true]),
        (Exclusive, [false, true, true, true]),
        (Insert, [true, true, true, true]),
    ] {
        let store = store();
        let holder = escalated(&store, held);
        let wanted = [Absent, Shared, Exclusive, Insert].into_iter();
        for (wanted, is_kept_out) in wanted.zip(conflicts_with) {
            let mut other = store.begin();
            let outcome = other.lock(SPACE, &key(7), wanted, NOW);
            let expected = if is_kept_out {
                Err(LockError::Busy)
            } else {
                Ok(Locked::Granted)
            };
            assert_eq!(outcome, expected, "{wanted:?} beside {held:?}");
            let elsewhere = other.lock(OTHER_SPACE, &key(7), Insert, NOW);
            assert_eq!(elsewhere, Ok(Locked::Granted));
        }
        drop(holder);
        let free = store.begin().lock(SPACE, &key(7), Insert, NOW);
        assert_eq!(free, Ok(Locked::Granted));
    }
}

#[test]
fn rows_that_others_have_locked_before_are_theirs() {
    let store = store();
    let mut other = store.begin();
    other.lock(SPACE, &key(1), Exclusive, NOW).unwrap();
    other.lock(SPACE, &key(2), Shared, NOW).unwrap();
    let mut holder = escalated(&store, Exclusive);
    for row in [1, 2] {
        let busy = holder.lock(SPACE, &key(row), Exclusive, NOW);
        assert_eq!(busy, Err(LockError::Busy));
    }
    // It may do with them what it may do without the other.
    let upgraded = other.lock(SPACE, &key(2), Exclusive, NOW);
    assert_eq!(upgraded, Ok(Locked::Upgraded));
    let held = other.lock(SPACE, &key(1), Exclusive, NOW);
    assert_eq!(held, Ok(Locked::AlreadyHeld));
    let waiting = lock_elsewhere(holder, 1, Exclusive);
    until_waiting(&store, 1);
    drop(other);
    let (outcome, _holder) = outcome_of(&waiting);
    assert_eq!(outcome, Ok(Locked::Granted));
    // And what nobody has any more is the holder's, too.
    let busy = store.begin().lock(SPACE, &key(2), Shared, NOW);
    assert_eq!(busy, Err(LockError::Busy));
}

#[test]
fn a_row_that_is_asked_for_the_first_time_is_granted_so_that_it_is_read_again() {
    let store = store();
    let mut holder = escalated(&store, Shared);
    let before = holder.lock(SPACE, &key(1000), Shared, NOW);
    assert_eq!(before, Ok(Locked::AlreadyHeld));
    assert_eq!(
        holder.lock(SPACE, &key(7), Shared, NOW),
        Ok(Locked::Granted)
    );
    // Also where it has a place by now, as another has come to it.
    let mut other = store.begin();
    other.lock(SPACE, &key(8), Shared, NOW).unwrap();
    assert_eq!(
        holder.lock(SPACE, &key(8), Shared, NOW),
        Ok(Locked::Granted)
    );
    // What is given back may have been locked before, and stays.
    for row in [7, 8] {
        holder.lock(SPACE, &key(row), Shared, NOW).unwrap();
        holder.unlock(SPACE, &key(row));
        let busy = other.lock(SPACE, &key(row), Exclusive, NOW);
        assert_eq!(busy, Err(LockError::Busy));
    }
}

#[test]
fn a_reader_beside_one_who_has_locked_the_space_waits_for_it_to_write() {
    let store = store();
    let mut holder = escalated(&store, Shared);
    holder.lock(SPACE, &key(7), Shared, NOW).unwrap();
    let mut other = store.begin();
    other.lock(SPACE, &key(7), Shared, NOW).unwrap();
    let busy = other.lock(SPACE, &key(7), Exclusive, NOW);
    assert_eq!(busy, Err(LockError::Busy));
    drop(other);
    // The other's lock leaves no trace.
    let busy = store.begin().lock(SPACE, &key(7), Exclusive, NOW);
    assert_eq!(busy, Err(LockError::Busy));
    let other = store.begin();
    let waiting = lock_elsewhere(other, 7, Exclusive);
    until_waiting(&store, 1);
    drop(holder);
    assert_eq!(outcome_of(&waiting).0, Ok(Locked::Granted));
}

#[test]
fn a_key_that_is_not_there_stays_absent_beside_one_who_has_locked_the_space() {
    let store = store();
    let mut holder = escalated(&store, Exclusive);
    holder.lock(SPACE, &key(7), Absent, NOW).unwrap();
    let mut other = store.begin();
    other.lock(SPACE, &key(7), Absent, NOW).unwrap();
    let busy = other.lock(SPACE, &key(7), Insert, NOW);
    assert_eq!(busy, Err(LockError::Busy));
    let busy = holder.lock(SPACE, &key(7), Insert, NOW);
    assert_eq!(busy, Err(LockError::Busy), "the other has it absent");
    drop(other);
    let inserted = holder.lock(SPACE, &key(7), Insert, NOW);
    assert!(inserted.is_ok());
}

#[test]
fn all_who_wait_for_a_space_get_their_rows_in_the_end() {
    let store = store();
    let mut holder = escalated(&store, Exclusive);
    holder.put(SPACE, &key(3), b"written");
    let waiting: Vec<_> = [(3, Shared), (3, Shared), (4, Exclusive), (5, Insert)]
        .into_iter()
        .map(|(row, mode)| lock_elsewhere(store.begin(), row, mode))
        .collect();
    until_waiting(&store, 4);
    assert!(waiting[0].recv_timeout(Duration::from_millis(20)).is_err());
    holder.commit().unwrap().wait().unwrap();
    for waiting in waiting {
        assert_eq!(outcome_of(&waiting).0, Ok(Locked::Granted));
    }
    assert_eq!(store.stats().locks_waiting, 0);
}

#[test]
fn a_wait_for_a_space_ends_when_it_is_killed_or_its_time_is_up() {
    let store = store();
    let holder = escalated(&store, Exclusive);
    let work = store.begin();
    let interrupt = work.interrupt().clone();
    let waiting = lock_elsewhere(work, 3, Exclusive);
    until_waiting(&store, 1);
    interrupt.set(InterruptCause::Killed);
    let (outcome, mut work) = outcome_of(&waiting);
    assert_eq!(outcome, Err(LockError::Interrupted));
    interrupt.clear();
    let soon = Wait::Timeout(Duration::from_millis(20));
    let late = work.lock(SPACE, &key(3), Exclusive, soon);
    assert_eq!(late, Err(LockError::Timeout));
    assert_eq!(store.stats().locks_waiting, 0);
    drop(holder);
    let granted = work.lock(SPACE, &key(3), Exclusive, NOW);
    assert_eq!(granted, Ok(Locked::Granted));
}

#[test]
fn the_time_for_a_row_is_not_begun_anew_behind_a_space() {
    const RIVALS: u64 = 8;
    let is_late = || {
        let store = store();
        let holder = escalated(&store, Exclusive);
        let mut late = store.begin();
        let late = thread::spawn(move || {
            let began = Instant::now();
            let limit = Wait::Timeout(Duration::from_secs(2));
            let outcome = late.lock(SPACE, &key(3), Exclusive, limit);
            (outcome, began.elapsed())
        });
        let rivals: Vec<_> = (0..RIVALS)
            .map(|_| lock_elsewhere(store.begin(), 3, Exclusive))
            .collect();
        until_waiting(&store, RIVALS + 1);
        thread::sleep(Duration::from_secs(1));
        drop(holder);
        // Whoever comes to the row first keeps it.
        let (outcome, elapsed) = late.join().unwrap();
        drop(rivals);
        match outcome {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error, LockError::Timeout);
                assert!(elapsed < Duration::from_millis(2900), "{elapsed:?}");
                true
            }
        }
    };
    assert!((0..20).any(|_| is_late()));
}

#[test]
fn a_cycle_through_a_locked_space_is_found_by_whoever_closes_it() {
    for closes_at_space in [true, false] {
        let store = store();
        let mut other = store.begin();
        other.lock(SPACE, &key(1), Exclusive, NOW).unwrap();
        let mut holder = escalated(&store, Exclusive);
        holder.put(SPACE, &key(1000), b"1");
        // Both wait for each other: the one for a row, the other for the space.
        let (holder, other) = if closes_at_space {
            let holder = lock_elsewhere(holder, 1, Exclusive);
            until_waiting(&store, 1);
            let refused = other.lock(SPACE, &key(7), Exclusive, LONG);
            assert_eq!(refused, Err(LockError::Deadlock));
            (holder, other)
        } else {
            let other = lock_elsewhere(other, 7, Exclusive);
            until_waiting(&store, 1);
            // The one that has written less is refused.
            let holder = lock_elsewhere(holder, 1, Exclusive);
            let (refused, other) = outcome_of(&other);
            assert_eq!(refused, Err(LockError::Deadlock));
            (holder, other)
        };
        drop(other);
        assert_eq!(outcome_of(&holder).0, Ok(Locked::Granted));
        assert_eq!(store.stats().deadlocks, 1);
    }
}

#[test]
fn two_who_have_locked_the_space_to_read_and_both_want_to_write_are_a_deadlock() {
    let store = store();
    let (one, mut other) = (escalated(&store, Shared), escalated(&store, Shared));
    let one = lock_elsewhere(one, 7, Exclusive);
    until_waiting(&store, 1);
    let refused = other.lock(SPACE, &key(8), Exclusive, LONG);
    assert_eq!(refused, Err(LockError::Deadlock));
    drop(other);
    let (outcome, mut one) = outcome_of(&one);
    assert!(outcome.is_ok());
    // With many more it has the space to write.
    for row in 0..100 {
        one.lock(SPACE, &key(row), Exclusive, NOW).unwrap();
    }
    assert!(one.locked_spaces().eq([(SPACE, Exclusive)]));
    let busy = store.begin().lock(SPACE, &key(200), Shared, NOW);
    assert_eq!(busy, Err(LockError::Busy));
}

#[test]
fn readers_that_come_later_do_not_lock_the_space_before_one_who_waits_to_write() {
    let store = store();
    let first = escalated(&store, Shared);
    let writer = lock_elsewhere(store.begin(), 7, Exclusive);
    until_waiting(&store, 1);
    let mut second = begin(&store, 200);
    for row in 2000..2250 {
        second.lock(SPACE, &key(row), Shared, NOW).unwrap();
    }
    assert_eq!(second.locked_spaces().count(), 0);
    drop(first);
    let (outcome, writer) = outcome_of(&writer);
    assert_eq!(outcome, Ok(Locked::Granted));
    let busy = second.lock(SPACE, &key(7), Shared, NOW);
    assert_eq!(busy, Err(LockError::Busy));
    drop(writer);
    // Its locks are bounded all the same.
    let first = escalated(&store, Shared);
    let writer = lock_elsewhere(store.begin(), 8, Exclusive);
    until_waiting(&store, 1);
    for row in 3000..4000 {
        second.lock(SPACE, &key(row), Shared, NOW).unwrap();
    }
    assert!(second.locked_spaces().eq([(SPACE, Shared)]));
    assert!(second.locks_held() < 500, "{}", second.locks_held());
    drop((first, second));
    assert_eq!(outcome_of(&writer).0, Ok(Locked::Granted));
}

#[test]
fn locks_on_spaces_end_with_a_rollback_of_many_locks_too() {
    const ROWS: u32 = 200_000;
    let store = store();
    let mut many = begin(&store, 60_000);
    for row in 0..ROWS {
        many.lock(SPACE, &key(row), Exclusive, NOW).unwrap();
    }
    assert_eq!(many.locked_spaces().count(), 1);
    let waiting = lock_elsewhere(store.begin(), ROWS + 1, Exclusive);
    until_waiting(&store, 1);
    many.rollback();
    assert_eq!(outcome_of(&waiting).0, Ok(Locked::Granted));
    let mut next = store.begin();
    for row in 0..ROWS {
        next.lock(SPACE, &key(row), Exclusive, LONG).unwrap();
    }
}

#[test]
fn a_rollback_has_released_the_space_when_it_returns() {
    const ROWS: u32 = 60_000;
    for is_prepared in [false, true] {
        let store = store();
        let mut ahead = store.begin();
        for row in 0..1_000_000_u32 {
            ahead.lock(OTHER_SPACE, &key(row), Exclusive, NOW).unwrap();
        }
        let mut many = begin(&store, ROWS as usize);
        for row in 0..ROWS {
            many.lock(SPACE, &key(row), Exclusive, NOW).unwrap();
        }
        assert_eq!(many.locked_spaces().count(), 1);
        assert!(many.locks_held() > 20_000);
        let mut next = store.begin();
        let busy = next.lock(SPACE, &key(ROWS + 1), Exclusive, NOW);
        assert_eq!(busy, Err(LockError::Busy));
        // Their row locks are released later, one transaction's after the other's.
        if is_prepared {
            let many = many.prepare((PREPARED, b"x"), b"").unwrap();
            ahead.rollback();
            many.rollback().map_err(|left| left.error).unwrap();
        } else {
            ahead.rollback();
            many.rollback();
        }
        let free = next.lock(SPACE, &key(ROWS + 1), Exclusive, NOW);
        assert_eq!(free, Ok(Locked::Granted));
    }
}

// ── Locks that are given back ────────────────────────────────────────────────────────────────────

#[test]
fn locks_that_were_given_back_do_not_count() {
    let store = store();
    let mut work = begin(&store, 100);
    // So many that they aren't listed.
    for row in 0..60 {
        work.lock(OTHER_SPACE, &key(row), Exclusive, NOW).unwrap();
    }
    for row in 0..10_000 {
        for mode in [Absent, Exclusive] {
            let granted = work.lock(SPACE, &key(row), mode, NOW);
            assert_eq!(granted, Ok(Locked::Granted));
            work.unlock(SPACE, &key(row));
        }
    }
    assert_eq!(store.stats().lock_escalations, 0);
    assert_eq!(work.locks_held(), 60);
    let free = store.begin().lock(SPACE, &key(7), Insert, NOW);
    assert_eq!(free, Ok(Locked::Granted));
}

#[test]
fn a_row_that_is_given_back_stays_locked_as_its_space_is() {
    let store = store();
    let mut holder = escalated(&store, Shared);
    // It doesn't lock the space to write.
    holder.limit_lock_memory(1000 * LOCK_BYTES);
    let before = holder.locks_held();
    let mut beside = store.begin();
    beside.lock(SPACE, &key(7), Absent, NOW).unwrap();
    // The one has a place by now, the other hasn't.
    for row in [7, 8] {
        // It was never asked for: it has to be read.
        let granted = holder.lock(SPACE, &key(row), Exclusive, NOW);
        assert_eq!(granted, Ok(Locked::Granted));
        assert_eq!(holder.locks_held(), before + 1);
        let waiting = lock_elsewhere(store.begin(), row, Shared);
        until_waiting(&store, 1);
        holder.unlock(SPACE, &key(row));
        let (outcome, reader) = outcome_of(&waiting);
        assert_eq!(outcome, Ok(Locked::Granted));
        drop(reader);
        assert_eq!(holder.locks_held(), before);
        let busy = store.begin().lock(SPACE, &key(row), Exclusive, NOW);
        assert_eq!(busy, Err(LockError::Busy));
    }
}

#[test]
fn a_row_of_others_that_is_given_back_is_not_locked_more_than_before() {
    let store = store();
    let mut other = store.begin();
    other.lock(SPACE, &key(7), Exclusive, NOW).unwrap();
    let mut holder = escalated(&store, Shared);
    let granted = holder.lock(SPACE, &key(7), Absent, NOW);
    assert_eq!(granted, Ok(Locked::Granted));
    holder.unlock(SPACE, &key(7));
    let busy = holder.lock(SPACE, &key(7), Shared, NOW);
    assert_eq!(busy, Err(LockError::Busy));
    drop(other);
    let busy = store.begin().lock(SPACE, &key(7), Exclusive, NOW);
    assert_eq!(busy, Err(LockError::Busy));
}

// ── Prepared transactions ────────────────────────────────────────────────────────────────────────

const PREPARED: SpaceId = SpaceId(0);

fn recovered(store: &Store) -> Vec<PreparedTransaction> {
    store.recover_prepared(PREPARED, b"").unwrap()
}

#[test]
fn a_prepared_transaction_keeps_the_space_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Options::path(folder.path())).unwrap();
    let mut work = escalated(&store, Exclusive);
    work.put(SPACE, &key(7), b"1");
    let prepared = work.prepare((PREPARED, b"x"), b"").unwrap();
    let busy = store.begin().lock(SPACE, &key(5), Shared, NOW);
    assert_eq!(busy, Err(LockError::Busy));
    drop(prepared);
    drop(store);
    let store = Store::open(&Options::path(folder.path())).unwrap();
    let mut found = recovered(&store);
    assert_eq!(store.stats().lock_escalations, 0);
    let mut other = store.begin();
    for row in [5, 1000, 1019] {
        let busy = other.lock(SPACE, &key(row), Shared, NOW);
        assert_eq!(busy, Err(LockError::Busy));
    }
    assert!(other.lock(OTHER_SPACE, &key(5), Insert, NOW).is_ok());
    let prepared = found.pop().unwrap();
    prepared.commit().map_err(|left| left.error).unwrap();
    for row in [5, 1000, 1019] {
        assert!(other.lock(SPACE, &key(row), Exclusive, NOW).is_ok());
    }
    drop(other);
    drop(store);
    let store = Store::open(&Options::path(folder.path())).unwrap();
    assert!(recovered(&store).is_empty());
    assert!(store.begin().lock(SPACE, &key(5), Insert, NOW).is_ok());
}

#[test]
fn one_that_was_prepared_later_beside_it_takes_no_row_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Options::path(folder.path())).unwrap();
    let mut first = escalated(&store, Shared);
    first.lock(SPACE, &key(7), Shared, NOW).unwrap();
    let first = first.prepare((PREPARED, b"x"), b"").unwrap();
    let mut second = store.begin();
    second.lock(SPACE, &key(7), Shared, NOW).unwrap();
    let second = second.prepare((PREPARED, b"a"), b"").unwrap();
    drop((first, second));
    drop(store);
    let store = Store::open(&Options::path(folder.path())).unwrap();
    let mut found = recovered(&store);
    assert_eq!(found.len(), 2);
    let waiting = lock_elsewhere(store.begin(), 7, Exclusive);
    until_waiting(&store, 1);
    let second = found.remove(0);
    assert_eq!(second.key(), b"a");
    second.rollback().map_err(|left| left.error).unwrap();
    assert!(waiting.recv_timeout(Duration::from_millis(50)).is_err());
    let first = found.remove(0);
    first.rollback().map_err(|left| left.error).unwrap();
    assert_eq!(outcome_of(&waiting).0, Ok(Locked::Granted));
}

// ── Against a model ──────────────────────────────────────────────────────────────────────────────

const TRANSACTIONS: usize = 4;
const MODES: [LockMode; 4] = [Absent, Shared, Exclusive, Insert];

fn conflict(one: LockMode, other: LockMode) -> bool {
    match (one.min(other), one.max(other)) {
        (_, Insert) => true,
        (Absent, _) => false,
        (_, stronger) => stronger == Exclusive,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Lock {
        txn: usize,
        space: u32,
        row: u32,
        mode: usize,
        gives_back: bool,
    },
    End {
        txn: usize,
        commits: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let lock = (
        0..TRANSACTIONS,
        1..4_u32,
        0..40_u32,
        0..MODES.len(),
        prop::bool::weighted(0.2),
    );
    let lock = lock.prop_map(|(txn, space, row, mode, gives_back)| Step::Lock {
        txn,
        space,
        row,
        mode,
        gives_back,
    });
    let end = (0..TRANSACTIONS, any::<bool>());
    let end = end.prop_map(|(txn, commits)| Step::End { txn, commits });
    prop_oneof![60 => lock, 1 => end]
}

/// What a transaction was granted, row by row.
type Granted = HashMap<(u32, u32), LockMode>;

/// Locks of single rows that never run out: none is granted beside one of another transaction that
/// conflicts, none is lost, and who is refused is so by a row that another holds, or by a space.
fn compare_with_model(steps: Vec<Step>, allowed: [usize; TRANSACTIONS]) {
    let store = store();
    let mut works: Vec<_> = allowed.iter().map(|rows| begin(&store, *rows)).collect();
    let mut granted: Vec<Granted> = vec![Granted::new(); TRANSACTIONS];
    for step in steps {
        let (txn, space, row, mode, gives_back) = match step {
            Step::Lock {
                txn,
                space,
                row,
                mode,
                gives_back,
            } => (txn, space, row, MODES[mode], gives_back),
            Step::End { txn, commits } => {
                let ended = std::mem::replace(&mut works[txn], begin(&store, allowed[txn]));
                match commits {
                    true => drop(ended.commit().unwrap()),
                    false => ended.rollback(),
                }
                granted[txn].clear();
                continue;
            }
        };
        let outcome = works[txn].lock(SpaceId(space), &key(row), mode, NOW);
        let at = (space, row);
        let others = || (0..TRANSACTIONS).filter(|other| *other != txn);
        let by_row = others().any(|other| {
            let held = granted[other].get(&at);
            held.is_some_and(|held| conflict(*held, mode))
        });
        let own = granted[txn].get(&at).copied();
        match outcome {
            Err(error) => {
                assert_eq!(error, LockError::Busy);
                let by_space = others().any(|other| {
                    let mut spaces = works[other].locked_spaces();
                    spaces.any(|(locked, held)| locked.0 == space && conflict(held, mode))
                });
                assert!(by_row || by_space, "{txn} is refused {at:?} {mode:?}");
                assert!(own.is_none_or(|own| own < mode), "{txn} lost {at:?}");
                continue;
            }
            Ok(Locked::AlreadyHeld) => {
                assert!(own.is_some_and(|own| own >= mode), "{at:?} was never read");
            }
            Ok(Locked::Granted | Locked::Upgraded) => {
                assert!(own.is_some_and(|own| own >= mode) || !by_row);
            }
        }
        if outcome == Ok(Locked::Granted) && gives_back {
            works[txn].unlock(SpaceId(space), &key(row));
        } else {
            let held = granted[txn].entry(at).or_insert(mode);
            *held = (*held).max(mode);
        }
    }
    drop(works);
    let mut last = store.begin();
    for (space, row) in (1..4).flat_map(|space| (0..40).map(move |row| (space, row))) {
        let free = last.lock(SpaceId(space), &key(row), Insert, NOW);
        assert_eq!(free, Ok(Locked::Granted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_is_as_if_rows_were_locked_one_by_one(
        steps in prop::collection::vec(step(), 1..400),
        allowed in prop::array::uniform(prop_oneof![Just(1_usize), 4..30_usize, Just(1000)]),
    ) {
        compare_with_model(steps, allowed);
    }
}

/// Transactions of few and of many rows at once: nobody holds what another does, and all get
/// through or are refused.
#[test]
fn under_contention_nobody_has_what_another_has() {
    const ROWS: u32 = 60;
    const WRITER: i32 = -1000;
    let store = store();
    // How many read a row; `WRITER` where one may write it.
    let users: Vec<AtomicI32> = (0..ROWS).map(|_| AtomicI32::new(0)).collect();
    let (finished, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for seed in 0..6_u64 {
            let (store, users, finished, refused) = (&store, &users, &finished, &refused);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..400 {
                    let mut work = begin(store, [8, 1000][random.usize(..2)]);
                    let is_large = random.u8(..3) == 0;
                    let mut held = HashMap::new();
                    let rows = random.u32(1..if is_large { ROWS } else { 5 });
                    let start = random.u32(..ROWS);
                    let writes = random.bool();
                    for row in (0..rows).map(|at| (start + at) % ROWS) {
                        let is_writer = writes && random.u8(..4) > 0;
                        let mode = if is_writer { Exclusive } else { Shared };
                        let user = &users[row as usize];
                        let locked = match work.lock(SPACE, &key(row), mode, LONG) {
                            Ok(locked) => locked,
                            Err(LockError::Deadlock) => {
                                refused.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Err(other) => panic!("{other}"),
                        };
                        assert_ne!(locked, Locked::AlreadyHeld);
                        let change = if is_writer { WRITER } else { 1 };
                        let before = user.fetch_add(change, Ordering::SeqCst);
                        match is_writer {
                            true => assert_eq!(before, 0, "{row} was another's"),
                            false => assert!(before >= 0, "{row} was another's"),
                        }
                        if !is_writer && random.u8(..4) == 0 {
                            // Read, then written; not if another reads it, too.
                            match work.lock(SPACE, &key(row), Exclusive, NOW) {
                                Ok(_) => {
                                    let before = user.fetch_add(WRITER - 1, Ordering::SeqCst);
                                    assert_eq!(before, 1, "{row} was another's");
                                    held.insert(row, WRITER);
                                    continue;
                                }
                                Err(LockError::Busy) => {}
                                Err(other) => panic!("{other}"),
                            }
                        }
                        held.insert(row, change);
                    }
                    for (row, change) in held {
                        users[row as usize].fetch_sub(change, Ordering::SeqCst);
                    }
                    drop(work);
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(finished.into_inner(), 2400);
    assert!(store.stats().lock_escalations > 50);
    assert!(refused.into_inner() < 2400);
    assert_eq!(store.stats().locks_waiting, 0);
    let mut last = store.begin();
    for row in 0..ROWS {
        let free = last.lock(SPACE, &key(row), Insert, NOW);
        assert_eq!(free, Ok(Locked::Granted));
    }
}
