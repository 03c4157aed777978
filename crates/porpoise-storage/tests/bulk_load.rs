//! Filling a new space beside the log, which can be told to end.

use std::ops::Bound;
use std::sync::Arc;

use porpoise_storage::{
    BulkLoad, Direction, Error, Interrupt, InterruptCause, Options, SpaceId, Store,
};

/// More than a memtable has.
const ROWS: u32 = 40_000;

fn open(folder: &std::path::Path) -> Store {
    let mut options = Options::path(folder.join("data"));
    options.checkpoint_version_bytes = 1 << 20;
    Store::open(&options).expect("opens")
}

fn create(store: &Store) -> SpaceId {
    let space = store.allocate_space();
    let mut work = store.begin();
    work.create_space(space);
    work.commit().expect("commits").wait().expect("durable");
    space
}

fn drop_space(store: &Store, space: SpaceId) {
    let mut work = store.begin();
    work.drop_space(space);
    work.commit().expect("commits").wait().expect("durable");
}

fn fill(store: &Store, space: SpaceId, interrupt: Option<Arc<Interrupt>>) -> Result<(), Error> {
    let end_at = interrupt.clone();
    let mut load = BulkLoad::begin(store, space, interrupt)?;
    for row in 0..ROWS {
        if row == ROWS / 2
            && let Some(interrupt) = &end_at
        {
            interrupt.set(InterruptCause::Killed);
        }
        load.push(&row.to_be_bytes(), &[7; 100])?;
    }
    load.finish()
}

fn count(store: &Store, space: SpaceId) -> usize {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let snapshot = store.snapshot();
    let mut rows = snapshot
        .range(space, all, Direction::Forward)
        .expect("reads");
    let mut count = 0;
    while rows.next().expect("reads").is_some() {
        count += 1;
    }
    count
}

#[test]
fn a_load_that_may_be_interrupted_has_all_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let space = create(&store);
    let interrupt = Arc::new(Interrupt::default());
    let mut load = BulkLoad::begin(&store, space, Some(interrupt)).expect("begins");
    for row in 0..ROWS {
        load.push(&row.to_be_bytes(), &[7; 100])
            .expect("is written");
    }
    load.finish().expect("is durable");
    assert_eq!(count(&store, space), ROWS as usize);
    store.close().expect("closes");
    assert_eq!(count(&open(folder.path()), space), ROWS as usize);
}

#[test]
fn a_load_that_is_interrupted_ends_and_its_space_does_not_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    for _ in 0..8 {
        let space = create(&store);
        let interrupt = Arc::new(Interrupt::default());
        let ended = fill(&store, space, Some(Arc::clone(&interrupt)));
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
        drop_space(&store, space);
        store.checkpoint().expect("a checkpoint");
        assert_eq!(count(&store, space), 0);
        interrupt.clear();
        let other = create(&store);
        fill(&store, other, None).expect("fills");
        assert_eq!(count(&store, other), ROWS as usize);
        drop_space(&store, other);
    }
    let last = create(&store);
    fill(&store, last, None).expect("fills");
    store.close().expect("closes");
    let store = open(folder.path());
    assert_eq!(count(&store, last), ROWS as usize);
    let verified = store.verify(last, || true).expect("is read");
    assert!(verified.damage.is_empty(), "{:?}", verified.damage);
}
