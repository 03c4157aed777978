//! Comparing a store with the model.

use std::ops::Bound;
use std::sync::Arc;

use fastrand::Rng;
use porpoise_storage::{Direction, LockMode, PreparedTransaction, SpaceId, Store, Wait};

use crate::disk::{Operation, PowerCut, SimDisk};
use crate::model::{Change, Contents, Model, Value};
use crate::plan::Counts;
use crate::prepared::PREPARED_SPACE;
use crate::run::{key, options};

/// Opens a copy of the disk that no error may come from, and compares. Gives the newest commit.
pub fn check_after_cut(
    disk: &SimDisk,
    model: &Model,
    at_least: u64,
    random: &mut Rng,
    counts: &mut Counts,
) {
    counts.crash_checks += 1;
    // Recovery may be cut short, too, and that again.
    if random.u8(..4) == 0 {
        let stop_at = disk.operations() + random.u64(1..40);
        let cut_in = disk.clone();
        disk.set_hook(Some(Box::new(move |operation: &Operation| {
            if operation.number == stop_at {
                cut_in.switch_off();
            }
        })));
        let opened = Store::open(&options(disk));
        disk.set_hook(None);
        if opened.is_err() {
            let cut = random.choice(PowerCut::ALL).expect("a cut");
            let at_least = match random.u8(..3) {
                0 => {
                    disk.revive();
                    at_least
                }
                _ => {
                    disk.cut(cut);
                    at_least.min(model.durable)
                }
            };
            return check_after_cut(disk, model, at_least, random, counts);
        }
        drop(opened);
        disk.revive();
    }
    let store = Store::open(&options(disk)).unwrap_or_else(|error| {
        panic!(
            "the store doesn't start after a cut: {error}\n{}",
            disk.names().join("\n")
        )
    });
    let ts = store.snapshot().ts().0;
    assert!(
        ts >= at_least,
        "commit {at_least} was acknowledged, but the newest is {ts}"
    );
    compare(&store, &model.contents_at(ts), false);
    if random.bool() {
        return check_prepared(disk, &store, model.contents_at(ts), random);
    }
    // What was shown once stays.
    let again = match random.bool() {
        true => disk.after_cut(PowerCut::LosesAll, random.u64(..)),
        false => disk.after_cut(PowerCut::Random, random.u64(..)),
    };
    drop(store);
    let store = Store::open(&options(&again))
        .unwrap_or_else(|error| panic!("the store doesn't start after a second cut: {error}"));
    let found = store.snapshot().ts().0;
    assert_eq!(found, ts, "what a start has shown is gone after the next");
    compare(&store, &model.contents_at(ts), false);
    check_prepared(&again, &store, model.contents_at(ts), random);
}

/// All that is prepared, with its locks; and what becomes of it when it is told.
fn check_prepared(disk: &SimDisk, store: &Store, mut expected: Contents, random: &mut Rng) {
    // A disk that is full may refuse any commit.
    disk.set_capacity(u64::MAX);
    let found = store.recover_prepared(PREPARED_SPACE, &[]);
    let found = found.unwrap_or_else(|error| panic!("what is prepared can't be read: {error}"));
    check_recovered(store, &expected, &found);
    for prepared in found {
        let number = number_of(&prepared);
        let commits = random.bool();
        let ended = match commits {
            true => prepared.commit(),
            false => prepared.rollback(),
        };
        ended.unwrap_or_else(|left| panic!("{number} can't be ended: {}", left.error));
        let ends = Change {
            ends: Some(number),
            ..Change::default()
        };
        let change = expected.prepared.remove(&number);
        let change = change.filter(|_| commits).unwrap_or_default();
        expected.apply(&change);
        expected.apply(&ends);
    }
    compare(store, &expected, false);
}

/// The transactions that a start has found prepared are those that must be, with their locks.
pub fn check_recovered(store: &Store, expected: &Contents, found: &[PreparedTransaction]) {
    let numbers: Vec<u16> = found.iter().map(number_of).collect();
    let wanted: Vec<u16> = expected.prepared.keys().copied().collect();
    assert_eq!(numbers, wanted, "as of {:?}", store.snapshot().ts());
    let mut other = store.begin();
    for change in expected.prepared.values() {
        for (space, number) in change.writes.keys() {
            let (mode, wait) = (LockMode::Exclusive, Wait::NoWait);
            let locked = other.lock(SpaceId(*space), &key(*number), mode, wait);
            assert!(
                locked.is_err(),
                "{number} of {space} is not locked any more"
            );
        }
    }
}

/// The number in a prepared transaction's key.
pub fn number_of(prepared: &PreparedTransaction) -> u16 {
    let number = <[u8; 2]>::try_from(prepared.key());
    u16::from_be_bytes(number.expect("a key of two bytes"))
}

/// Every row, every space, every counter. `may_fail` takes errors for answers.
pub fn compare(store: &Store, expected: &Contents, may_fail: bool) -> bool {
    let now = store.snapshot();
    let mut is_whole = true;
    for space in expected.spaces.iter().chain(&expected.dropped) {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let rows = now
            .range(SpaceId(*space), bounds, Direction::Forward)
            .and_then(|mut cursor| {
                let mut rows = Vec::new();
                while let Some((key, value)) = cursor.next()? {
                    rows.push((key.to_vec(), Value::from(value)));
                }
                Ok(rows)
            });
        let rows = match rows {
            Ok(rows) => rows,
            Err(_) if may_fail => {
                is_whole = false;
                continue;
            }
            Err(error) => panic!("space {space} can't be read: {error}"),
        };
        let wanted = expected.rows.range((*space, 0)..=(*space, u16::MAX));
        let wanted: Vec<_> = wanted
            .map(|((_, number), value)| (key(*number), Arc::clone(value)))
            .collect();
        assert!(
            rows == wanted,
            "space {space} as of {:?}: {:?}\nexpected {:?}",
            now.ts(),
            short(&rows),
            short(&wanted)
        );
        let counter = expected.counters.get(space).copied().unwrap_or(0);
        assert!(
            store.counter(SpaceId(*space)) >= counter,
            "counter of {space}"
        );
    }
    is_whole
}

fn short(rows: &[(Vec<u8>, Value)]) -> Vec<(u16, usize, u8)> {
    let number = |key: &[u8]| u16::from_be_bytes([key[0], key[1]]);
    rows.iter()
        .map(|(key, value)| {
            (
                number(key),
                value.len(),
                value.first().copied().unwrap_or(0),
            )
        })
        .collect()
}
