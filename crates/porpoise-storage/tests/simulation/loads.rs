//! A space that is filled beside the log, while others commit: cut, killed and refused at every
//! single place.
//!
//! As the catalog does, one commit makes the space and marks it as unclaimed, and one claims it when
//! it is full. A claimed space must have all its rows and no others; an unclaimed one is dropped, and
//! the next one is filled with other rows.

use std::ops::Bound;
use std::sync::{Arc, Mutex};

use porpoise_storage::{
    BulkLoad, Direction, Error, Flush, Options, SpaceId, Store, Transaction, Work,
};

use crate::cuts::{at_place, empty_disk, fault_of};
use crate::disk::{Faults, Operation, PowerCut, SimDisk};
use crate::run::options;

/// Has a row for each space: what it is, and the byte that its rows consist of.
const MARKS: SpaceId = SpaceId(1);
const OTHERS: SpaceId = SpaceId(2);
const ROWS: u64 = 150;
const UNCLAIMED: u8 = 0;
const CLAIMED: u8 = 1;

/// Some 30 rows are written at a time.
pub fn small_loads(disk: &SimDisk) -> Options {
    Options {
        checkpoint_version_bytes: 3 << 10,
        ..options(disk)
    }
}

pub fn open(disk: &SimDisk) -> Store {
    let opened = Store::open(&small_loads(disk));
    opened.unwrap_or_else(|error| panic!("the store doesn't start: {error}"))
}

pub fn commit(store: &Store, change: impl FnOnce(&mut Transaction)) -> Result<(), Error> {
    let mut work = store.begin();
    change(&mut work);
    work.commit()?.wait()
}

/// A new space: none of those with numbers up to this one's.
pub fn new_space(store: &Store, above: SpaceId) -> SpaceId {
    loop {
        let space = store.allocate_space();
        if space > above {
            return space;
        }
    }
}

/// Makes a space, fills it with rows of one byte, and claims it.
fn fill(store: &Store, byte: u8) -> Result<SpaceId, Error> {
    let space = new_space(store, OTHERS);
    let number = space.0.to_be_bytes();
    commit(store, |work| {
        work.create_space(space);
        work.put(MARKS, &number, &[UNCLAIMED, byte]);
    })?;
    let mut load = BulkLoad::begin(store, space, None)?;
    for row in 0..ROWS {
        load.push(&row.to_be_bytes(), &[byte; 90])?;
        if row % 50 == 25 {
            commit(store, |work| {
                work.put(OTHERS, &row.to_be_bytes(), &[byte; 300])
            })?;
        }
        if row == 110 {
            store.checkpoint()?;
        }
    }
    load.finish()?;
    commit(store, |work| work.put(MARKS, &number, &[CLAIMED, byte]))?;
    Ok(space)
}

fn rows(store: &Store, space: SpaceId, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut cursor = store.snapshot().range(space, all, direction).unwrap();
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    rows
}

fn check_rows(store: &Store, space: SpaceId, byte: u8, what: &str) {
    let row = |row: u64| (row.to_be_bytes().to_vec(), vec![byte; 90]);
    let mut expected: Vec<_> = (0..ROWS).map(row).collect();
    assert!(rows(store, space, Direction::Forward) == expected, "{what}");
    expected.reverse();
    assert!(
        rows(store, space, Direction::Backward) == expected,
        "{what}"
    );
    let last = store
        .snapshot()
        .get(space, &expected[0].0, |value| value[0]);
    assert_eq!(last.unwrap(), Some(byte), "{what}");
    assert_eq!(store.approximate_len(space), ROWS, "{what}");
}

/// Checks the claimed spaces and drops the others, as a start does. Gives how many were claimed.
fn check_spaces(store: &Store, what: &str) -> Result<usize, Error> {
    let mut claimed = 0;
    for (number, mark) in rows(store, MARKS, Direction::Forward) {
        let space = SpaceId(u32::from_be_bytes(number.as_slice().try_into().unwrap()));
        if mark[0] == CLAIMED {
            check_rows(store, space, mark[1], what);
            claimed += 1;
            continue;
        }
        commit(store, |work| {
            work.drop_space(space);
            work.delete(MARKS, &number);
        })?;
    }
    Ok(claimed)
}

/// Opens what is left, which must have so many claimed spaces, and fills another.
fn check(disk: &SimDisk, claimed_min: usize, what: &str) {
    let store = open(disk);
    let claimed = check_spaces(&store, what).unwrap();
    assert!(claimed >= claimed_min, "{what}: {claimed} of {claimed_min}");
    let space = fill(&store, 200).unwrap();
    check_rows(&store, space, 200, what);
    drop(store);
    let after = disk.after_cut(PowerCut::LosesAll, 1);
    let store = open(&after);
    assert_eq!(check_spaces(&store, what).unwrap(), claimed + 1, "{what}");
}

/// How many disk operations it takes to open a store and to fill two spaces.
fn places() -> u64 {
    let disk = empty_disk();
    let store = open(&disk);
    fill(&store, 1).unwrap();
    fill(&store, 2).unwrap();
    disk.operations()
}

#[test]
fn a_load_that_is_cut_leaves_all_or_nothing() {
    for flush in [Flush::AtCommit, Flush::EachSecond] {
        let disk = empty_disk();
        let claimed = Arc::new(Mutex::new(0));
        let store = open(&disk);
        store.flush_policy().set(flush);
        let (me, seen) = (disk.clone(), Arc::clone(&claimed));
        disk.set_hook(Some(Box::new(move |operation: &Operation| {
            // Each policy has its half of the places.
            if operation.number % 2 == u64::from(flush == Flush::AtCommit) {
                return;
            }
            let claimed = match flush {
                Flush::AtCommit => *seen.lock().unwrap(),
                _ => 0,
            };
            let cuts = PowerCut::ALL;
            let cut = cuts[operation.number as usize % cuts.len()];
            let after = me.after_cut(cut, operation.number);
            check(&after, claimed, &format!("{cut:?} at {operation:?}"));
        })));
        for byte in 1..4 {
            fill(&store, byte).unwrap();
            *claimed.lock().unwrap() += 1;
        }
        disk.set_hook(None);
        assert_eq!(check_spaces(&store, "in the end").unwrap(), 3);
    }
}

#[test]
fn a_load_whose_process_is_killed_leaves_all_or_nothing() {
    for flush in [Flush::AtCommit, Flush::EachSecond] {
        for place in (1..places()).step_by(3) {
            let disk = empty_disk();
            at_place(&disk, place, |disk, _| disk.switch_off());
            let mut claimed = 0;
            if let Ok(store) = Store::open(&small_loads(&disk)) {
                store.flush_policy().set(flush);
                let filled = (1..3).take_while(|byte| fill(&store, *byte).is_ok());
                claimed = filled.count();
            }
            disk.set_hook(None);
            let claimed_min = if flush == Flush::AtCommit { claimed } else { 0 };
            check(
                &disk.after_kill(),
                claimed_min,
                &format!("killed at {place}"),
            );
        }
    }
}

#[test]
fn a_load_that_the_disk_refuses_can_be_dropped_and_made_again() {
    let mut refused = 0;
    for place in 1..places() {
        let disk = empty_disk();
        at_place(&disk, place, |disk, operation| {
            disk.set_faults(fault_of(operation))
        });
        let Ok(store) = Store::open(&small_loads(&disk)) else {
            continue;
        };
        let filled = fill(&store, 1).and_then(|_| fill(&store, 2));
        disk.set_hook(None);
        disk.set_faults(Faults::default());
        let what = format!("a fault at {place}");
        if filled.is_err() {
            refused += 1;
            store.work(Work::Recover).unwrap();
        }
        check_spaces(&store, &what).unwrap();
        let space = fill(&store, 3).unwrap();
        check_rows(&store, space, 3, &what);
        drop(store);
        check(&disk.after_cut(PowerCut::LosesAll, place), 1, &what);
    }
    assert!(refused > 50, "only {refused}");
}

#[test]
fn a_full_disk_ends_a_load_and_nothing_else() {
    let disk = empty_disk();
    let store = open(&disk);
    let first = fill(&store, 1).unwrap();
    disk.set_capacity(disk.used() + (1 << 20) + 4096);
    assert!(fill(&store, 2).is_err());
    assert!(!store.stats().is_read_only);
    check_rows(&store, first, 1, "a full disk");
    disk.set_capacity(u64::MAX);
    assert_eq!(check_spaces(&store, "a full disk").unwrap(), 1);
    let next = fill(&store, 3).unwrap();
    check_rows(&store, next, 3, "there is room again");
}
