//! Ordered spaces of byte keys and byte values, transactional and durable.
//!
//! Storage knows nothing of SQL, tables or types: it keeps what it is given in the order of the
//! keys' bytes.
//!
//! ```
//! use porpoise_storage::{Direction, LockMode, Options, Store, Wait};
//! use std::{ops::Bound, time::Duration};
//!
//! let store = Store::open(&Options::memory())?;
//! let fish = store.allocate_space();
//! let mut work = store.begin();
//! work.create_space(fish);
//! work.insert(fish, b"cod", b"4 kg");
//! work.insert(fish, b"eel", b"1 kg");
//! work.commit()?.wait()?;
//!
//! let mut work = store.begin();
//! work.lock(fish, b"cod", LockMode::Exclusive, Wait::Timeout(Duration::from_secs(50))).unwrap();
//! work.put(fish, b"cod", b"5 kg");
//! let before = store.snapshot();
//! work.commit()?.wait()?;
//!
//! assert_eq!(before.get(fish, b"cod", |v| v.to_vec())?, Some(b"4 kg".to_vec()));
//! let mut rows =
//!     store.snapshot().range(fish, (Bound::Unbounded, Bound::Unbounded), Direction::Backward)?;
//! assert_eq!(rows.next()?, Some((&b"eel"[..], &b"1 kg"[..])));
//! assert_eq!(rows.next()?, Some((&b"cod"[..], &b"5 kg"[..])));
//! assert_eq!(rows.next()?, None);
//! # Ok::<(), porpoise_storage::Error>(())
//! ```

mod base;
mod checkpoint;
mod commit;
mod cursor;
mod error;
mod ids;
mod locks;
mod log;
mod options;
mod overlay;
mod payload;
mod snapshot;
mod space_table;
mod store;
mod transaction;
mod versions;

pub use commit::Commit;
pub use cursor::Cursor;
pub use error::{Error, LockError, Result};
pub use ids::{CommitTs, Lsn, SpaceId, TxnId};
pub use locks::{BlockHook, Blocking, Interrupt, LockMode, Locked, Wait};
pub use options::{Flush, FlushPolicy, Location, Options};
pub use overlay::Savepoint;
pub use snapshot::Snapshot;
pub use store::{Stats, Store};
pub use transaction::Transaction;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}
