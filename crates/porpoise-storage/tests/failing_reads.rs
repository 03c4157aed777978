//! A disk that can't read some of its sectors.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hooked_disk::{HookedDisk, Hooks, OpenFile};
use porpoise_storage::{Error, Options, SpaceId, Store};

mod hooked_disk;

const ONE: SpaceId = SpaceId(1);
const TWO: SpaceId = SpaceId(2);
const ROWS: u32 = 2000;

/// Refuses to read pages of the tree that have these bytes, once it is told to.
#[derive(Debug)]
struct BadSectors {
    is_bad: Arc<AtomicBool>,
    pattern: &'static [u8],
}

/// In rows of the first space.
const A_ROW: &[u8] = b"row 1:77";
/// In the lists of tables: the type of keys.
const A_TYPE: &[u8] = b"&[u8]";

impl Hooks for BadSectors {
    fn read_at(&self, of: &OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = of.file.read_at(bytes, offset)?;
        let has = |window: &[u8]| window == self.pattern;
        let is_hit = || bytes[..read].windows(self.pattern.len()).any(has);
        if of.name.starts_with("tree.redb") && self.is_bad.load(Ordering::SeqCst) && is_hit() {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(read)
    }
}

/// A fresh store over such a disk, and its switch. Nothing is cached.
fn store(folder: &Path, pattern: &'static [u8]) -> (Store, Arc<AtomicBool>) {
    let is_bad = Arc::new(AtomicBool::new(false));
    let mut options = Options::path(folder);
    options.checkpoint_read_tries = 0;
    options.cache_bytes = 128 << 10;
    options.disk = Arc::new(HookedDisk(Arc::new(BadSectors {
        is_bad: Arc::clone(&is_bad),
        pattern,
    })));
    let store = Store::open(&options).unwrap();
    for space in [ONE, TWO] {
        let mut work = store.begin();
        for row in 0..ROWS {
            let value = format!("row {}:{row} {}", space.0, "x".repeat(100));
            work.put(space, &row.to_be_bytes(), value.as_bytes());
        }
        work.commit().unwrap().wait().unwrap();
    }
    store.checkpoint().unwrap();
    (store, is_bad)
}

/// How many rows of a space can be read, and how many can't.
fn count(store: &Store, space: SpaceId) -> (u32, u32) {
    let now = store.snapshot();
    let mut counts = (0, 0);
    for row in 0..ROWS {
        match now.get(space, &row.to_be_bytes(), |_| ()) {
            Ok(found) => {
                assert!(found.is_some());
                counts.0 += 1;
            }
            Err(Error::Damaged(place)) => {
                assert_eq!(place.space, Some(space));
                assert!(place.what.contains("can't be read"), "{place}");
                counts.1 += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    counts
}

#[test]
fn a_sector_that_can_not_be_read_fails_its_rows_and_may_be_read_again_later() {
    let folder = tempfile::tempdir().unwrap();
    let (store, is_bad) = store(folder.path(), A_ROW);
    is_bad.store(true, Ordering::SeqCst);
    let (read, failed) = count(&store, ONE);
    assert!(failed > 0 && read > ROWS / 2, "{failed} failed");
    assert_eq!(count(&store, TWO), (ROWS, 0));
    is_bad.store(false, Ordering::SeqCst);
    assert_eq!(count(&store, ONE), (ROWS, 0), "nothing was given up");
}

#[test]
fn a_checkpoint_goes_around_a_sector_that_can_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (store, is_bad) = store(folder.path(), A_ROW);
    is_bad.store(true, Ordering::SeqCst);
    let old = store.snapshot();
    for space in [ONE, TWO] {
        let mut work = store.begin();
        for row in (0..ROWS).step_by(5) {
            work.put(space, &row.to_be_bytes(), b"new");
        }
        work.commit().unwrap().wait().unwrap();
    }
    // Readers go on while the tree is opened anew below them.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                assert_eq!(count(&store, TWO), (ROWS, 0));
            }
        });
        store.checkpoint().unwrap();
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(store.stats().log_bytes, 0);
    assert_eq!(count(&store, TWO), (ROWS, 0));
    let found = store
        .snapshot()
        .get(TWO, &0u32.to_be_bytes(), |v| v.to_vec());
    assert_eq!(found.unwrap().unwrap(), b"new");
    let found = old.get(TWO, &0u32.to_be_bytes(), |v| v[0]).unwrap();
    assert_eq!(found, Some(b'r'), "an older snapshot is as it was");
    let error = store.snapshot().get(ONE, &0u32.to_be_bytes(), |_| ());
    assert!(matches!(error, Err(Error::Damaged(_))));
}

#[test]
fn what_all_spaces_share_refuses_writes_by_name_and_the_log_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let (store, is_bad) = store(folder.path(), A_TYPE);
    let put = |key: &[u8]| {
        let mut work = store.begin();
        work.put(TWO, key, b"new");
        work.commit()?.wait()
    };
    put(b"before").unwrap();
    is_bad.store(true, Ordering::SeqCst);
    let error = store.checkpoint().unwrap_err();
    assert!(matches!(&error, Error::Damaged(_)), "{error:?}");
    let error = put(b"after").unwrap_err();
    assert!(matches!(&error, Error::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("tree.redb"), "{error}");
    // Reads give what there is, or tell the same.
    let now = store.snapshot();
    assert_eq!(
        now.get(TWO, b"before", |v| v.to_vec()).unwrap().unwrap(),
        b"new"
    );
    for row in 0..ROWS {
        match now.get(ONE, &row.to_be_bytes(), |v| v[0]) {
            Ok(found) => assert_eq!(found, Some(b'r')),
            Err(Error::Damaged(place)) => assert_eq!(place.space, Some(ONE)),
            Err(error) => panic!("{error:?}"),
        }
    }
    drop((now, store));
    let store = Store::open(&Options::path(folder.path())).unwrap();
    assert_eq!(count(&store, ONE), (ROWS, 0));
    let found = store
        .snapshot()
        .get(TWO, b"before", |v| v.to_vec())
        .unwrap();
    assert_eq!(found.unwrap(), b"new");
}
