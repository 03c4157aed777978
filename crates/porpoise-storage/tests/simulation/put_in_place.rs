//! Loaded spaces that take the place of empty ones, while others commit: cut, killed and refused at
//! every single place.
//!
//! A table has a space of rows and one of entries. They are filled, emptied and filled again. Whatever
//! happens, both have all rows of one filling, or both have none.

use std::ops::Bound;
use std::sync::{Arc, Mutex};

use porpoise_storage::{
    BulkLoad, Direction, Error, Flush, LoadedSpace, SpaceId, Store, Work, put_in_place,
};

use crate::cuts::{at_place, empty_disk, fault_of};
use crate::disk::{Faults, Operation, PowerCut, SimDisk};
use crate::loads::{commit, new_space, open, small_loads};

/// Has a row for each space without an owner.
const MARKS: SpaceId = SpaceId(1);
const TABLE: [SpaceId; 2] = [SpaceId(2), SpaceId(3)];
const OTHERS: SpaceId = SpaceId(4);
const ROWS: u64 = 90;

/// Loads rows of one byte beside the table, and puts them in its place.
fn fill(store: &Store, byte: u8) -> Result<(), Error> {
    let new = [new_space(store, OTHERS), new_space(store, OTHERS)];
    commit(store, |work| {
        for space in new {
            work.create_space(space);
            work.put(MARKS, &space.0.to_be_bytes(), b"");
        }
    })?;
    for space in new {
        let mut load = BulkLoad::begin(store, space, None)?;
        for row in 0..ROWS {
            load.push(&row.to_be_bytes(), &[byte; 90])?;
            if row % 50 == 25 {
                commit(store, |work| work.put(OTHERS, &[byte], &[byte; 300]))?;
            }
        }
        load.finish()?;
    }
    let loaded = [0, 1].map(|at| LoadedSpace {
        from: new[at],
        into: TABLE[at],
        rows: ROWS,
    });
    put_in_place(store, &loaded)
}

/// Deletes all rows of the table, and what a start drops.
fn empty(store: &Store) -> Result<(), Error> {
    drop_unclaimed(store)?;
    let found = [rows(store, TABLE[0])?, rows(store, TABLE[1])?];
    commit(store, |work| {
        for (space, rows) in TABLE.into_iter().zip(found) {
            for (key, _) in rows {
                work.delete(space, &key);
            }
        }
    })
}

fn drop_unclaimed(store: &Store) -> Result<(), Error> {
    let marked = rows(store, MARKS)?;
    commit(store, |work| {
        for (number, _) in marked {
            let space = u32::from_be_bytes(number.as_slice().try_into().unwrap());
            work.drop_space(SpaceId(space));
            work.delete(MARKS, &number);
        }
    })
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rows(store: &Store, space: SpaceId) -> Result<Rows, Error> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let snapshot = store.snapshot();
    let mut cursor = snapshot.range(space, all, Direction::Forward)?;
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        rows.push((key.to_vec(), value.to_vec()));
    }
    Ok(rows)
}

/// The byte of the rows that both spaces have; `None` if they have none.
fn filling(store: &Store, what: &str) -> Option<u8> {
    let found = TABLE.map(|space| rows(store, space).unwrap());
    assert!(found[0] == found[1], "{what}: the spaces differ");
    let byte = found[0].first()?.1[0];
    let expected: Vec<_> = (0..ROWS)
        .map(|row| (row.to_be_bytes().to_vec(), vec![byte; 90]))
        .collect();
    assert!(found[0] == expected, "{what}: {} rows", found[0].len());
    for space in TABLE {
        let last = store
            .snapshot()
            .get(space, &expected[89].0, |value| value[0]);
        assert_eq!(last.unwrap(), Some(byte), "{what}");
    }
    Some(byte)
}

/// Opens what is left, and fills the table again.
fn check(disk: &SimDisk, allowed: &[Option<u8>], what: &str) {
    let store = open(disk);
    let found = filling(&store, what);
    assert!(allowed.contains(&found), "{what}: {found:?} of {allowed:?}");
    empty(&store).unwrap();
    assert_eq!(filling(&store, what), None, "{what}");
    fill(&store, 200).unwrap();
    assert_eq!(filling(&store, what), Some(200), "{what}");
    drop(store);
    let store = open(&disk.after_cut(PowerCut::LosesAll, 1));
    assert_eq!(filling(&store, what), Some(200), "{what}");
    assert_eq!(TABLE.map(|space| store.approximate_len(space)), [ROWS; 2]);
    drop_unclaimed(&store).unwrap();
    assert_eq!(filling(&store, what), Some(200), "{what}");
}

/// What is done, one step behind the other, and what the table has after it.
const STEPS: [Option<u8>; 4] = [Some(1), None, Some(2), None];

fn step(store: &Store, number: usize) -> Result<(), Error> {
    match STEPS[number] {
        Some(byte) => fill(store, byte),
        None => empty(store),
    }
}

/// What the table may have when so many steps are acknowledged.
fn allowed(done: usize) -> [Option<u8>; 2] {
    let after = |steps: usize| steps.checked_sub(1).and_then(|last| STEPS[last]);
    [after(done), after((done + 1).min(STEPS.len()))]
}

const ANY: [Option<u8>; 3] = [None, Some(1), Some(2)];

/// How many disk operations it takes to open a store and to do all steps.
fn places() -> u64 {
    let disk = empty_disk();
    let store = open(&disk);
    for number in 0..STEPS.len() {
        step(&store, number).unwrap();
    }
    disk.operations()
}

#[test]
fn rows_put_in_place_are_all_there_after_a_cut_or_none() {
    for flush in [Flush::AtCommit, Flush::EachSecond] {
        let disk = empty_disk();
        let done = Arc::new(Mutex::new(0));
        let store = open(&disk);
        store.flush_policy().set(flush);
        let (me, seen) = (disk.clone(), Arc::clone(&done));
        disk.set_hook(Some(Box::new(move |operation: &Operation| {
            // Each policy has its half of the places.
            if operation.number % 2 == u64::from(flush == Flush::AtCommit) {
                return;
            }
            let cut = PowerCut::ALL[operation.number as usize % PowerCut::ALL.len()];
            let after = me.after_cut(cut, operation.number);
            let what = format!("{cut:?} at {operation:?}");
            match flush {
                Flush::AtCommit => check(&after, &allowed(*seen.lock().unwrap()), &what),
                _ => check(&after, &ANY, &what),
            }
        })));
        for number in 0..STEPS.len() {
            step(&store, number).unwrap();
            *done.lock().unwrap() += 1;
        }
        disk.set_hook(None);
        assert_eq!(filling(&store, "in the end"), None);
    }
}

#[test]
fn rows_put_in_place_are_all_there_after_a_kill_or_none() {
    for place in (1..places()).step_by(3) {
        let disk = empty_disk();
        at_place(&disk, place, |disk, _| disk.switch_off());
        let mut done = 0;
        if let Ok(store) = Store::open(&small_loads(&disk)) {
            let steps = (0..STEPS.len()).take_while(|number| step(&store, *number).is_ok());
            done = steps.count();
        }
        disk.set_hook(None);
        let what = format!("killed at {place}");
        check(&disk.after_kill(), &allowed(done), &what);
    }
}

#[test]
fn rows_that_the_disk_refuses_to_put_in_place_can_be_loaded_again() {
    let mut refused = 0;
    for place in 1..places() {
        let disk = empty_disk();
        at_place(&disk, place, |disk, operation| {
            disk.set_faults(fault_of(operation))
        });
        let Ok(store) = Store::open(&small_loads(&disk)) else {
            continue;
        };
        let failed = (0..STEPS.len()).find(|number| step(&store, *number).is_err());
        disk.set_hook(None);
        disk.set_faults(Faults::default());
        let what = format!("a fault at {place}");
        if failed.is_some() {
            refused += 1;
            store.work(Work::Recover).unwrap();
        }
        let may_be = failed.map_or([None; 2], allowed);
        let found = filling(&store, &what);
        assert!(may_be.contains(&found), "{what}: {found:?} of {may_be:?}");
        empty(&store).unwrap();
        fill(&store, 3).unwrap();
        assert_eq!(filling(&store, &what), Some(3), "{what}");
        drop(store);
        let after = disk.after_cut(PowerCut::LosesAll, place);
        check(&after, &[Some(3)], &what);
    }
    assert!(refused > 50, "only {refused}");
}

#[test]
fn older_snapshots_have_none_of_the_rows_put_in_place() {
    let disk = empty_disk();
    let store = open(&disk);
    let new = new_space(&store, OTHERS);
    commit(&store, |work| work.create_space(new)).unwrap();
    let mut load = BulkLoad::begin(&store, new, None).unwrap();
    load.push(b"row", b"loaded").unwrap();
    load.finish().unwrap();
    let before = store.snapshot();
    let loaded = LoadedSpace {
        from: new,
        into: TABLE[0],
        rows: 1,
    };
    put_in_place(&store, &[loaded]).unwrap();
    let read = |of: &porpoise_storage::Snapshot| of.get(TABLE[0], b"row", <[u8]>::to_vec).unwrap();
    assert_eq!(read(&before), None, "an older snapshot keeps what it has");
    assert_eq!(read(&store.snapshot()), Some(b"loaded".to_vec()));
    commit(&store, |work| work.put(TABLE[0], b"row", b"changed")).unwrap();
    assert_eq!(read(&store.snapshot()), Some(b"changed".to_vec()));
    assert_eq!(store.changes(TABLE[0]), 2);
}
