//! Steps of transactions that are prepared. Each waits for its outcome, as `prepare` and its kin do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use porpoise_storage::{
    Error, LockError, LockMode, PreparedTransaction, SpaceId, Store, Wait, Work,
};

use crate::compare::{check_recovered, number_of};
use crate::disk::{Faults, Operation, PowerCut, SimDisk};
use crate::model::{Change, Contents};
use crate::run::{Run, StoreCall, options};

/// Where prepared transactions are written down: a space that holds nothing else.
pub const PREPARED_SPACE: SpaceId = SpaceId(0);

const PREPARED_MAX: usize = 4;
const NUMBERS: u16 = 1000;

/// A transaction that was prepared, and what it is to do.
pub struct PreparedWork {
    pub txn: PreparedTransaction,
    pub change: Change,
    pub spaces_in_use: BTreeSet<u32>,
}

impl Run {
    pub(crate) fn prepare_one(&self) {
        let mut state = self.state();
        if state.prepared.len() >= PREPARED_MAX {
            return;
        }
        let number = state.random.u16(..NUMBERS);
        let is_known = |work: &PreparedWork| number_of(&work.txn) == number;
        if state.prepared.iter().any(is_known) {
            return;
        }
        let Some(work) = Run::remove_open(&mut state) else {
            return;
        };
        drop(state);
        if work.txn.has_spilled() && !work.may_be_prepared {
            // It can only be committed.
            return self.put_back(work);
        }
        let has_spilled = work.txn.has_spilled();
        let (txn, change, rests_on) = (work.txn, work.change, work.rests_on);
        let spaces_in_use = work.spaces_in_use;
        let logged = Change {
            prepares: Some((number, Box::new(change.clone()))),
            ..Change::default()
        };
        let prepared = self.log_and_wait(logged, || {
            txn.prepare((PREPARED_SPACE, &number.to_be_bytes()), b"label")
        });
        match prepared {
            Ok((txn, logged)) => {
                self.check_grounds(logged, &rests_on);
                let mut state = self.state();
                state.counts.prepared += 1;
                state.counts.prepared_spilled += u64::from(has_spilled);
                state.prepared.push(PreparedWork {
                    txn,
                    change,
                    spaces_in_use,
                });
            }
            Err(error) => {
                // As after a rollback: its counters are logged.
                if !change.counters.is_empty() {
                    self.state().model.is_last_ts_certain = false;
                }
                self.not_dropped(&change);
                self.release_spaces(&spaces_in_use);
                self.expect_disturbed("prepare", &error);
            }
        }
    }

    pub(crate) fn end_prepared(&self) {
        let mut state = self.state();
        let count = state.prepared.len();
        if count == 0 {
            return;
        }
        let index = state.random.usize(..count);
        let commits = state.random.u8(..3) > 0;
        let work = state.prepared.swap_remove(index);
        drop(state);
        let counters = work.change.counters.clone();
        let logged = Change {
            ends: Some(number_of(&work.txn)),
            ..match commits {
                true => work.change.clone(),
                false => Change {
                    counters,
                    ..Change::default()
                },
            }
        };
        let (change, spaces_in_use) = (work.change, work.spaces_in_use);
        let mut is_left = None;
        let ended = self.log_and_wait(logged, || {
            let ended = match commits {
                true => work.txn.commit(),
                false => work.txn.rollback(),
            };
            ended.map_err(|left| {
                is_left = Some(left.transaction);
                left.error
            })
        });
        match ended {
            Ok(_) => {
                self.release_spaces(&spaces_in_use);
                match commits {
                    true => self.state().spaces.extend(&change.created),
                    false => self.not_dropped(&change),
                }
            }
            Err(error) => {
                let txn = is_left.expect("it is still prepared");
                self.state().prepared.push(PreparedWork {
                    txn,
                    change,
                    spaces_in_use,
                });
                self.expect_disturbed("end what is prepared", &error);
            }
        }
    }

    /// Has the model know of a commit that the store makes, and waits for, in one call.
    fn log_and_wait<T>(
        &self,
        change: Change,
        act: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(T, u64), Error> {
        let store = self.store().expect("an open store");
        let policy = Some(store.flush_policy().get());
        let number = self.state().model.begin_commit(change);
        let before = store.stats().commits;
        // What it waits behind may have callbacks: they find the model as it is before it.
        let outcome = self.during(StoreCall::Commit, act);
        let stats = store.stats();
        // A failed write ends all writing, so that nothing has come behind it.
        let is_refused = outcome.is_err() && !stats.is_read_only || stats.commits == before;
        if is_refused {
            self.note("refused", number, 0);
            self.state().model.refused(number);
            return outcome.map(|made| (made, number));
        }
        let ts = self.state().opened_ts + stats.commits;
        assert!(outcome.is_err() || store.snapshot().ts().0 == ts);
        {
            let mut state = self.state();
            state.model.made(number, ts);
            state.counts.commits += 1;
        }
        let (told, made) = match outcome {
            Ok(made) => (Ok(()), Ok(made)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        self.finished(number, ts, policy, &Change::default(), told);
        made.map(|made| (made, number))
    }

    /// Goes on with what a start has found prepared. `false` if that can't be read.
    pub(crate) fn take_up_prepared(
        &self,
        store: &Store,
        contents: &Contents,
        may_fail: bool,
    ) -> bool {
        let found = match store.recover_prepared(PREPARED_SPACE, &[]) {
            Ok(found) => found,
            Err(_) if may_fail => return false,
            Err(error) => panic!("what is prepared can't be read: {error}"),
        };
        check_recovered(store, contents, &found);
        for txn in found {
            let change = contents.prepared[&number_of(&txn)].clone();
            let written = change.writes.keys().map(|(space, _)| *space);
            let spaces_in_use: BTreeSet<u32> = written.chain(change.dropped.clone()).collect();
            let mut state = self.state();
            for space in &spaces_in_use {
                *state.spaces_in_use.entry(*space).or_default() += 1;
            }
            state.spaces.retain(|space| !change.dropped.contains(space));
            state.prepared.push(PreparedWork {
                txn,
                change,
                spaces_in_use,
            });
        }
        true
    }
}

// ── A short history, cut at every place ──────────────────────────────────────────────────────────

const ROWS: SpaceId = SpaceId(1);
const BRANCHES: u64 = 12;
/// Some ten records fill a log segment.
const PADDING: usize = 700;

/// What is there after so many events: transaction `n` is prepared by event `2n - 1` and ended by
/// event `2n`, every third by a rollback.
fn expected_after(events: u64) -> (Vec<u64>, Option<u64>) {
    let ended = (1..=events / 2).filter(|number| number % 3 != 0);
    (ended.collect(), (events % 2 == 1).then_some(events / 2 + 1))
}

fn found_in(store: &Store) -> (Vec<u64>, Option<u64>) {
    let now = store.snapshot();
    let is_there = |number: &u64| {
        now.get(ROWS, &number.to_be_bytes(), |_| ())
            .unwrap()
            .is_some()
    };
    let prepared = store.recover_prepared(PREPARED_SPACE, &[]).unwrap();
    assert!(prepared.len() <= 1);
    let number = |found: &PreparedTransaction| u64::from_be_bytes(found.key().try_into().unwrap());
    let rows = (1..=BRANCHES).filter(is_there).collect();
    (rows, prepared.first().map(number))
}

fn run_events(store: &Store, done: impl Fn(u64)) -> Result<(), Error> {
    for number in 1..=BRANCHES {
        let mut work = store.begin();
        work.put(ROWS, &number.to_be_bytes(), &[number as u8; PADDING]);
        let prepared = work.prepare((PREPARED_SPACE, &number.to_be_bytes()), b"")?;
        done(2 * number - 1);
        if number % 4 == 1 {
            store.checkpoint()?;
        }
        let ended = match number % 3 {
            0 => prepared.rollback(),
            _ => prepared.commit(),
        };
        ended.map_err(|left| left.error)?;
        done(2 * number);
    }
    Ok(())
}

#[test]
fn a_prepared_transaction_is_whole_or_not_there_after_a_cut_at_any_place() {
    let disk = SimDisk::new(1);
    disk.place_folder(std::path::Path::new("/data"));
    let store = Store::open(&options(&disk)).unwrap();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (me, seen) = (disk.clone(), Arc::clone(&acknowledged));
    disk.set_hook(Some(Box::new(move |operation: &Operation| {
        let events = seen.load(Ordering::Relaxed);
        for cut in PowerCut::ALL {
            let after = me.after_cut(cut, operation.number);
            let found = found_in(&Store::open(&options(&after)).unwrap());
            let is_expected = [events, events + 1].map(expected_after).contains(&found);
            assert!(
                is_expected,
                "{cut:?} at {operation:?}, {events} events: {found:?}"
            );
        }
    })));
    run_events(&store, |event| acknowledged.store(event, Ordering::Relaxed)).unwrap();
    disk.set_hook(None);
    assert_eq!(found_in(&store), expected_after(2 * BRANCHES));
}

#[test]
fn a_transaction_whose_commit_fails_is_still_prepared_when_the_disk_works_again() {
    for spills in [false, true] {
        for fault in [
            Faults {
                sync: 100_000,
                ..Faults::default()
            },
            Faults {
                write: 100_000,
                ..Faults::default()
            },
        ] {
            commit_again_after(fault, spills);
        }
    }
}

fn commit_again_after(fault: Faults, spills: bool) {
    let disk = SimDisk::new(1);
    disk.place_folder(std::path::Path::new("/data"));
    let store = Store::open(&options(&disk)).unwrap();
    let mut work = store.begin();
    work.may_be_prepared();
    let others = || (100..200_u64).filter(|_| spills).map(u64::to_be_bytes);
    for key in others() {
        work.put(ROWS, &key, &[7; PADDING]);
    }
    assert_eq!(work.has_spilled(), spills);
    let key = 1_u64.to_be_bytes();
    work.lock(ROWS, &key, LockMode::Exclusive, Wait::NoWait)
        .unwrap();
    work.put(ROWS, &key, b"row");
    let prepared = work.prepare((PREPARED_SPACE, &key), b"").unwrap();
    disk.set_faults(fault);
    let prepared = prepared.commit().err().unwrap().transaction;
    disk.set_faults(Faults::default());
    assert_eq!(store.snapshot().get(ROWS, &key, |_| ()).unwrap(), None);
    store.work(Work::Recover).unwrap();
    let locked = store
        .begin()
        .lock(ROWS, &key, LockMode::Exclusive, Wait::NoWait);
    assert_eq!(locked, Err(LockError::Busy));
    prepared.commit().map_err(|left| left.error).unwrap();
    assert_eq!(store.snapshot().get(ROWS, &key, |_| ()).unwrap(), Some(()));
    let locked = store
        .begin()
        .lock(ROWS, &key, LockMode::Exclusive, Wait::NoWait);
    assert!(locked.is_ok());
    drop(store);
    for _ in 0..2 {
        let store = Store::open(&options(&disk)).unwrap();
        assert_eq!(found_in(&store), (vec![1], None));
        for key in others() {
            let found = store.snapshot().get(ROWS, &key, <[u8]>::len);
            assert_eq!(found.unwrap(), Some(PADDING));
        }
        store.checkpoint().unwrap();
    }
}
