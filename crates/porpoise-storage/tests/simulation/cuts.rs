//! Every single place: a short history is run again and again, and each time the power is cut, the
//! process killed, or an operation refused at the next place in it.
//!
//! Commit `n` writes `n` to one of a few keys, and to a space of its own time. So the newest number
//! that is found tells which commits must be there, and all of them are looked for.

use std::path::Path;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use porpoise_storage::{Error, Flush, SpaceId, Store, Work};

use crate::disk::{Faults, Operation, PowerCut, SimDisk};
use crate::run::{FOLDER, options};

const SPACE: SpaceId = SpaceId(1);
const KEYS: u64 = 7;
/// Some ten commits fill a log segment.
const PADDING: usize = 700;
const HISTORY: u64 = 40;
/// One in so many commits is of a transaction with a memtable of its own.
const LARGE_EVERY: u64 = 8;
const LARGE_PADDING: usize = 1000;
/// One in so many writes more than memory shall hold, and undoes a part of it.
const SPILLS_EVERY: u64 = 16;

pub fn empty_disk() -> SimDisk {
    let disk = SimDisk::new(1);
    disk.place_folder(Path::new("/data"));
    disk
}

fn open(disk: &SimDisk) -> Store {
    Store::open(&options(disk)).unwrap_or_else(|error| {
        panic!(
            "the store doesn't start: {error}\n{}",
            disk.names().join("\n")
        )
    })
}

fn commit(store: &Store, number: u64) -> Result<(), Error> {
    let mut work = store.begin();
    let mut value = number.to_le_bytes().to_vec();
    let is_large = number % LARGE_EVERY == 7;
    let padding = if is_large { LARGE_PADDING } else { PADDING };
    value.resize(8 + padding, number as u8);
    work.put(SPACE, &(number % KEYS).to_be_bytes(), &value);
    let decade = SpaceId(100 + (number / 10) as u32);
    if number.is_multiple_of(10) {
        work.create_space(decade);
        work.drop_space(SpaceId(decade.0 - 1));
    }
    work.put(decade, &number.to_be_bytes(), b"");
    work.set_counter(SPACE, number);
    if number % SPILLS_EVERY == 15 {
        let savepoint = work.savepoint();
        for key in 0..KEYS {
            work.put(SPACE, &key.to_be_bytes(), &[0xff; LARGE_PADDING]);
        }
        work.rollback_to(savepoint);
        for _ in 0..5 {
            work.put(SPACE, &(number % KEYS).to_be_bytes(), &value);
        }
    }
    assert_eq!(work.is_large(), is_large);
    work.commit()?.wait()
}

/// Commits the numbers from `next` on, with checkpoints in between. `done` hears of each that was
/// acknowledged.
fn go_on(store: &Store, next: u64, count: u64, done: impl Fn(u64)) -> Result<(), Error> {
    for number in next..next + count {
        if number % 3 == 0 {
            store.work(Work::PreallocateSegment)?;
        }
        if number % 4 == 0 {
            store.work(Work::Sync)?;
        }
        if number % 25 == 24 {
            store.checkpoint()?;
        }
        commit(store, number)?;
        done(number);
    }
    Ok(())
}

/// The newest commit, after a check_after_cut at all that must be there with it.
fn newest(store: &Store) -> u64 {
    let now = store.snapshot();
    let read = |key: u64| {
        now.get(SPACE, &key.to_be_bytes(), |value| {
            let number = u64::from_le_bytes(value[..8].try_into().unwrap());
            assert!(value[8..].iter().all(|byte| *byte == number as u8));
            number
        })
        .unwrap()
        .unwrap_or(0)
    };
    let newest = (0..KEYS).map(read).max().unwrap_or(0);
    for key in 0..KEYS {
        let last = (1..=newest).rev().find(|n| n % KEYS == key).unwrap_or(0);
        assert_eq!(read(key), last, "key {key} as of commit {newest}");
    }
    for number in 1..=newest {
        let decade = SpaceId(100 + (number / 10) as u32);
        let is_there = now
            .get(decade, &number.to_be_bytes(), |_| ())
            .unwrap()
            .is_some();
        assert_eq!(
            is_there,
            number / 10 == newest / 10,
            "the space of {number}"
        );
    }
    assert!(store.counter(SPACE) >= newest);
    newest
}

/// Opens what is left, which must be all up to `acknowledged`, goes on, and cuts again.
fn check(disk: &SimDisk, acknowledged: u64, what: &str) {
    let store = open(disk);
    let found = newest(&store);
    assert!(
        found >= acknowledged,
        "{what}: {acknowledged} was acknowledged, found {found}"
    );
    go_on(&store, found + 1, 2, |_| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
    for cut in [PowerCut::LosesAll, PowerCut::Random] {
        let after = disk.after_cut(cut, acknowledged);
        assert_eq!(newest(&open(&after)), found + 2, "{what}, then {cut:?}");
    }
}

/// Runs the history on a disk until something fails; what was acknowledged.
fn history(disk: &SimDisk, flush: Flush) -> u64 {
    let acknowledged = Mutex::new(0);
    if let Ok(store) = Store::open(&options(disk)) {
        store.flush_policy().set(flush);
        let _ = go_on(&store, 1, HISTORY, |number| {
            *acknowledged.lock().unwrap() = number
        });
    }
    acknowledged.into_inner().unwrap()
}

/// How many disk operations the history takes.
fn places(flush: Flush) -> u64 {
    let disk = empty_disk();
    assert_eq!(history(&disk, flush), HISTORY);
    disk.operations()
}

/// Stops the machine, or refuses an operation, at one place.
pub fn at_place(disk: &SimDisk, place: u64, act: impl Fn(&SimDisk, &Operation) + Send + 'static) {
    let me = disk.clone();
    disk.set_hook(Some(Box::new(move |operation: &Operation| {
        if operation.number == place {
            act(&me, operation);
        } else {
            me.set_faults(Faults::default());
        }
    })));
}

#[test]
fn a_cut_at_any_place_loses_nothing() {
    let disk = empty_disk();
    let acknowledged = Arc::new(Mutex::new(0));
    let cuts = Arc::new(Mutex::new(0));
    let spilled = Arc::new(Mutex::new(0));
    let (me, seen, count) = (disk.clone(), Arc::clone(&acknowledged), Arc::clone(&cuts));
    let writes_of_runs = Arc::clone(&spilled);
    disk.set_hook(Some(Box::new(move |operation: &Operation| {
        let is_run = operation.what == "write" && operation.file.starts_with("spill-");
        *writes_of_runs.lock().unwrap() += u32::from(is_run);
        let acknowledged = *seen.lock().unwrap();
        for cut in PowerCut::ALL {
            let after = me.after_cut(cut, operation.number);
            let store = open(&after);
            let found = newest(&store);
            assert!(
                found >= acknowledged,
                "{cut:?} at {operation:?} lost {acknowledged}"
            );
            *count.lock().unwrap() += 1;
        }
    })));
    let store = open(&disk);
    go_on(&store, 1, HISTORY, |number| {
        *acknowledged.lock().unwrap() = number
    })
    .unwrap();
    disk.set_hook(None);
    assert_eq!(*acknowledged.lock().unwrap(), HISTORY);
    assert!(*spilled.lock().unwrap() > 6);
    eprintln!("{} cuts", cuts.lock().unwrap());
}

#[test]
fn a_start_may_be_cut_short_at_any_place_and_again() {
    let mut random = Rng::with_seed(3);
    let starts = {
        let disk = empty_disk();
        drop(open(&disk));
        disk.operations()
    };
    // The first start, and one that finds a log.
    for from in [0, 33] {
        for place in 1..starts + 30 {
            let disk = empty_disk();
            if from > 0 {
                let store = open(&disk);
                go_on(&store, 1, from, |_| ()).unwrap();
                disk.switch_off();
                drop(store);
                disk.revive();
            }
            let stop = disk.operations() + place;
            at_place(&disk, stop, |disk, _| disk.switch_off());
            drop(Store::open(&options(&disk)));
            disk.set_hook(None);
            check(&disk.after_kill(), from, "killed");
            for cut in PowerCut::ALL {
                let after = disk.after_cut(cut, random.u64(..));
                check(&after, from, &format!("{cut:?} at {place} of a start"));
            }
        }
    }
}

#[test]
fn a_kill_at_any_place_loses_nothing_that_was_written_and_a_cut_after_it_nothing_that_was_shown() {
    for flush in [Flush::AtCommit, Flush::WriteAtCommit] {
        for place in 1..places(flush) {
            let disk = empty_disk();
            at_place(&disk, place, |disk, _| disk.switch_off());
            let acknowledged = history(&disk, flush);
            disk.set_hook(None);
            check(
                &disk.after_kill(),
                acknowledged,
                &format!("killed at {place}"),
            );
        }
    }
}

/// The fault that an operation can have.
pub fn fault_of(operation: &Operation) -> Faults {
    const ALWAYS: u32 = 100_000;
    let none = Faults::default();
    match operation.what {
        "open" => Faults {
            open: ALWAYS,
            ..none
        },
        "write" | "set length" => Faults {
            write: ALWAYS,
            ..none
        },
        "sync" => Faults {
            sync: ALWAYS,
            ..none
        },
        "rename" | "remove" | "sync folder" => Faults {
            name: ALWAYS,
            ..none
        },
        _ => none,
    }
}

#[test]
fn a_store_goes_on_after_a_fault_at_any_place_when_it_is_over() {
    let mut recoveries = 0;
    for place in 1..places(Flush::AtCommit) {
        let disk = empty_disk();
        at_place(&disk, place, |disk, operation| {
            disk.set_faults(fault_of(operation))
        });
        let Ok(store) = Store::open(&options(&disk)) else {
            disk.set_hook(None);
            disk.set_faults(Faults::default());
            check(&disk, 0, "a start that failed");
            continue;
        };
        let acknowledged = Mutex::new(0);
        let done = |number| *acknowledged.lock().unwrap() = number;
        let outcome = go_on(&store, 1, HISTORY, done);
        disk.set_hook(None);
        disk.set_faults(Faults::default());
        let acknowledged = *acknowledged.lock().unwrap();
        if outcome.is_err() {
            let what = format!("a fault at {place}");
            // Not known yet is whether the last one is there. It isn't seen, and after a cut it may
            // be.
            assert_eq!(newest(&store), acknowledged, "{what}");
            for cut in PowerCut::ALL {
                check(
                    &disk.after_cut(cut, place),
                    acknowledged,
                    &format!("{what}, {cut:?}"),
                );
            }
            check(&disk.after_kill(), acknowledged, &format!("{what}, killed"));
            store
                .work(Work::Recover)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            recoveries += 1;
        }
        go_on(&store, acknowledged + 1, 12, |_| ()).unwrap();
        store.checkpoint().unwrap();
        commit(&store, acknowledged + 13).unwrap();
        for cut in [PowerCut::LosesAll, PowerCut::Random, PowerCut::KeepsData] {
            check(
                &disk.after_cut(cut, place),
                acknowledged + 13,
                &format!("{place}, later"),
            );
        }
    }
    assert!(recoveries > 50, "only {recoveries}");
}

/// The system's memory shows what a failed sync has dropped from its list of things to write. A
/// start that reads it there must not take it for something that is on the disk.
#[test]
fn a_start_after_failed_syncs_relies_on_nothing_that_it_only_sees_in_memory() {
    for place in 1..places(Flush::WriteAtCommit) {
        let disk = empty_disk();
        let me = disk.clone();
        disk.set_hook(Some(Box::new(move |operation: &Operation| {
            if operation.number >= place {
                me.set_faults(fault_of(operation).only_syncs());
            }
        })));
        let acknowledged = history(&disk, Flush::WriteAtCommit);
        disk.set_hook(None);
        let what = format!("syncs fail from {place} on");
        check(&disk.after_kill(), acknowledged, &what);
    }
}

/// As many descriptors as the store has taken when it started, and not one more.
#[test]
fn the_log_goes_on_when_all_other_descriptors_are_taken() {
    let disk = empty_disk();
    let store = open(&disk);
    disk.set_descriptors(Some(disk.open_descriptors()));
    go_on(&store, 1, 300, |_| ()).unwrap();
    assert!(disk.open_descriptors() <= 16);
    drop(store);
    disk.set_descriptors(None);
    assert_eq!(newest(&open(&disk)), 300);
}

#[test]
fn without_a_descriptor_for_the_next_segment_commits_are_refused_until_there_is_one() {
    let disk = empty_disk();
    let store = open(&disk);
    // Less than it has taken: as if its reserve had been stolen.
    disk.set_descriptors(Some(0));
    let refused = (1..100).find(|number| commit(&store, *number).is_err());
    let refused = refused.expect("a segment is full at some time");
    assert!(refused > 5);
    assert!(store.stats().is_read_only);
    assert!(matches!(
        commit(&store, refused),
        Err(Error::ReadOnly { .. })
    ));
    assert!(store.work(Work::Recover).is_err());
    assert!(store.stats().is_read_only);
    disk.set_descriptors(None);
    store.work(Work::Recover).unwrap();
    assert_eq!(newest(&store), refused - 1);
    go_on(&store, refused, 50, |_| ()).unwrap();
    check(
        &disk.after_cut(PowerCut::LosesAll, 1),
        refused + 49,
        "after that",
    );
}

/// A tree is never made under its own name, so one of zeros is damage, whether there is a log
/// beside it or not.
#[test]
fn a_tree_of_zeros_is_refused() {
    let tree = Path::new(FOLDER).join("tree.redb");
    let store_of = |commits| {
        let disk = empty_disk();
        let store = open(&disk);
        go_on(&store, 1, 1 + commits, |_| ()).unwrap();
        drop(store);
        disk
    };
    for commits in [0_u64, 4] {
        let len = store_of(commits).contents(&tree).len();
        for left in [Vec::new(), vec![0; len], vec![0; 1 << 20]] {
            let disk = store_of(commits);
            disk.place(&tree, &left);
            assert!(Store::open(&options(&disk)).is_err());
        }
    }
}
