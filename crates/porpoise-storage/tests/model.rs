//! Random transactions against the simplest model: a map for each commit.

use std::collections::BTreeMap;
use std::ops::Bound;

use porpoise_storage::{
    Cursor, Direction, Flush, Options, Savepoint, Snapshot, SpaceId, Store, Transaction,
};
use proptest::prelude::*;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Vec<u8>, Vec<u8>),
    Delete(u8, Vec<u8>),
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    Drop(u8),
    Snapshot,
    Checkpoint,
    Reopen,
    Read(u8, Vec<u8>),
    Range(u8, Bound<Vec<u8>>, Bound<Vec<u8>>, bool),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0u8..3, 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded)
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => Just(vec![7; 5000]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0u8..2, key(), value())
            .prop_map(|(s, k, v)| Step::Put(s, k, v)),
        5 => (0u8..2, key()).prop_map(|(s, k)| Step::Delete(s, k)),
        2 => Just(Step::Savepoint),
        1 => Just(Step::RollbackTo),
        4 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => (0u8..2).prop_map(Step::Drop),
        2 => Just(Step::Snapshot),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
        5 => (0u8..2, key()).prop_map(|(s, k)| Step::Read(s, k)),
        5 => (0u8..2, bound(), bound(), any::<bool>()).prop_map(|(s, l, h, b)| Step::Range(s, l, h, b)),
    ]
}

fn as_bytes(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn drain(mut cursor: Cursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut out = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        out.push((key.to_vec(), value.to_vec()));
    }
    assert!(
        cursor.next().unwrap().is_none(),
        "past the end stays past the end"
    );
    out
}

/// The values of a range that is read many rows at a time, every now and then one.
fn drain_many(mut cursor: Cursor, at_a_time: usize) -> Vec<Vec<u8>> {
    let mut rows = porpoise_storage::Rows::default();
    let mut out = Vec::new();
    loop {
        cursor.next_rows(&mut rows, at_a_time, 1 << 16).unwrap();
        assert!(rows.len() <= at_a_time);
        let mut values = Vec::new();
        rows.append_values(&mut values);
        assert_eq!(values.len(), rows.len());
        for (number, value) in values.iter().enumerate() {
            assert_eq!(rows.value(number), *value);
        }
        out.extend(values.into_iter().map(<[u8]>::to_vec));
        match cursor.next().unwrap() {
            Some((_, value)) => out.push(value.to_vec()),
            None => return out,
        }
    }
}

fn expected(
    rows: &Rows,
    (low, high): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_in = |key: &[u8]| {
        (match low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        }) && (match high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        })
    };
    let found = rows
        .iter()
        .filter(|(key, _)| is_in(key))
        .map(|(k, v)| (k.clone(), v.clone()));
    match direction {
        Direction::Forward => found.collect(),
        Direction::Backward => found.rev().collect(),
    }
}

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

struct Run {
    store: Option<Store>,
    options: Options,
    spaces: [SpaceId; 2],
    committed: [Rows; 2],
    work: Option<Transaction>,
    working: [Rows; 2],
    drops: Vec<usize>,
    savepoints: Vec<(Savepoint, [Rows; 2], usize)>,
    snapshots: Vec<(Snapshot, [SpaceId; 2], [Rows; 2])>,
}

impl Run {
    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn work(&mut self) -> &mut Transaction {
        if self.work.is_none() {
            self.working = self.committed.clone();
            self.savepoints.clear();
            self.drops.clear();
            let work = self.store().begin();
            work.read_view();
            self.work = Some(work);
        }
        self.work.as_mut().unwrap()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(s, key, value) => {
                let space = self.spaces[s as usize];
                self.work().put(space, &key, &value);
                self.working[s as usize].insert(key, value);
            }
            Step::Delete(s, key) => {
                let space = self.spaces[s as usize];
                self.work().delete(space, &key);
                self.working[s as usize].remove(&key);
            }
            Step::Savepoint => {
                let savepoint = self.work().savepoint();
                self.savepoints
                    .push((savepoint, self.working.clone(), self.drops.len()));
            }
            Step::RollbackTo => {
                if self.work.is_some()
                    && let Some((savepoint, rows, drops)) = self.savepoints.pop()
                {
                    self.work().rollback_to(savepoint);
                    self.working = rows;
                    self.drops.truncate(drops);
                }
            }
            Step::Commit => {
                if let Some(work) = self.work.take() {
                    work.commit().unwrap().wait().unwrap();
                    self.committed = self.working.clone();
                    for s in std::mem::take(&mut self.drops) {
                        let dropped = self.spaces[s];
                        let now = self.store().snapshot();
                        assert!(
                            drain(now.range(dropped, ALL, Direction::Forward).unwrap()).is_empty()
                        );
                        self.spaces[s] = new_space(self.store());
                        self.committed[s].clear();
                    }
                }
            }
            Step::Rollback => self.work = None,
            Step::Drop(s) => {
                let space = self.spaces[s as usize];
                self.work().drop_space(space);
                self.drops.push(s as usize);
            }
            Step::Snapshot => {
                let snapshot = self.store().snapshot();
                self.snapshots
                    .push((snapshot, self.spaces, self.committed.clone()));
            }
            Step::Checkpoint => self.store().checkpoint().unwrap(),
            Step::Reopen => {
                self.work = None;
                self.snapshots.clear();
                if matches!(self.options.location, porpoise_storage::Location::Path(_)) {
                    self.store = None;
                    self.store = Some(Store::open(&self.options).unwrap());
                }
            }
            Step::Read(s, key) => {
                let space = self.spaces[s as usize];
                let found = self.work().get(space, &key, <[u8]>::to_vec).unwrap();
                assert_eq!(found.as_ref(), self.working[s as usize].get(&key));
                for (snapshot, spaces, rows) in &self.snapshots {
                    let found = snapshot
                        .get(spaces[s as usize], &key, <[u8]>::to_vec)
                        .unwrap();
                    assert_eq!(found.as_ref(), rows[s as usize].get(&key));
                }
            }
            Step::Range(s, low, high, is_backward) => {
                let bounds = (as_bytes(&low), as_bytes(&high));
                let direction = if is_backward {
                    Direction::Backward
                } else {
                    Direction::Forward
                };
                let space = self.spaces[s as usize];
                let found = drain(self.work().range(space, bounds, direction).unwrap());
                assert_eq!(
                    found,
                    expected(&self.working[s as usize], bounds, direction)
                );
                let values: Vec<_> = found.into_iter().map(|(_, value)| value).collect();
                for at_a_time in [1, 2, 100] {
                    let cursor = self.work().range(space, bounds, direction).unwrap();
                    assert_eq!(drain_many(cursor, at_a_time), values);
                }
                for (snapshot, spaces, rows) in &self.snapshots {
                    let range = || snapshot.range(spaces[s as usize], bounds, direction);
                    let found = expected(&rows[s as usize], bounds, direction);
                    assert_eq!(drain(range().unwrap()), found);
                    let values: Vec<_> = found.into_iter().map(|(_, value)| value).collect();
                    assert_eq!(drain_many(range().unwrap(), 3), values);
                }
            }
        }
    }
}

fn new_space(store: &Store) -> SpaceId {
    let space = store.allocate_space();
    let mut work = store.begin();
    work.create_space(space);
    work.commit().unwrap().wait().unwrap();
    space
}

fn run(options: Options, steps: Vec<Step>) {
    options.flush.set(Flush::EachSecond);
    let store = Store::open(&options).unwrap();
    let spaces = [new_space(&store), new_space(&store)];
    let mut run = Run {
        store: Some(store),
        options,
        spaces,
        committed: Default::default(),
        work: None,
        working: Default::default(),
        drops: Vec::new(),
        savepoints: Vec::new(),
        snapshots: Vec::new(),
    };
    for step in steps {
        run.step(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn a_store_in_memory_does_what_the_model_does(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        run(Options::memory(), steps);
    }

    /// From its second or third write on a transaction has a memtable of its own.
    #[test]
    fn large_transactions_do_what_the_model_does(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut options = Options::memory();
        options.checkpoint_version_bytes = 200;
        run(options, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(30) })]

    #[test]
    fn a_store_in_a_folder_does_what_the_model_does(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::path(folder.path());
        options.log_segment_bytes = 4096;
        run(options, steps);
    }

    #[test]
    fn large_transactions_in_a_folder_do_what_the_model_does(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::path(folder.path());
        options.log_segment_bytes = 4096;
        options.checkpoint_version_bytes = 200;
        run(options, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    /// With its second or third write a transaction goes on in a file, and from then on with each
    /// or every few.
    #[test]
    fn transactions_that_spill_do_what_the_model_does(
        spill_bytes in 1usize..600,
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::path(folder.path());
        options.log_segment_bytes = 4096;
        options.checkpoint_version_bytes = 200;
        options.spill_bytes = spill_bytes;
        run(options, steps);
    }
}
