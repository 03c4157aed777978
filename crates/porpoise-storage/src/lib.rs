//! Ordered spaces of byte keys and byte values, transactional and durable.
//!
//! It is a write-ahead log that commits fast, multi-version memtables that let readers never wait,
//! and a B-tree (redb) that holds everything else. It is not a relational store: it knows nothing
//! of SQL, tables, types or constraints, and keeps what it is given in the order of the keys'
//! bytes. It doesn't check before a write that the row is locked either; locking first is the
//! caller's business.
//!
//! In the order in which a row meets them:
//!
//! | type | what it is |
//! | --- | --- |
//! | [`Store`] | an open database; creates everything else |
//! | [`Transaction`] | a unit of work: its own writes, its read view, its row locks |
//! | [`Snapshot`] | everything committed up to one moment |
//! | [`Cursor`] | the rows of a range, one after another, either way |
//! | [`Commit`] | a transaction on its way to the disk |
//! | [`PreparedTransaction`] | one that waits to be told whether to commit, across restarts |
//! | [`BulkLoad`] | a new space that is filled beside the log |
//!
//! ```text
//!  begin ─► Transaction ── put ──► overlay            get, range
//!                │ commit                                  │
//!                ▼                                         ▼
//!     queue ─► log record ─► fdatasync ─► publish ─►   memtable
//!                                                          │ checkpoint     ▲ then below
//!                                                          ▼                │
//!                                                        redb ──────────────┘
//! ```
//!
//! Where to read on:
//!
//! | module | what it explains |
//! | --- | --- |
//! | `group_commit` | the life of a commit, and which thread syncs |
//! | `log` | the log's files, byte by byte |
//! | `memtable`, `snapshot` | how readers see one moment |
//! | `blocks` | the cache of rows that readers have of the B-tree |
//! | `leaves` | how rows get there from the disk |
//! | `scan_ahead` | how other threads read ahead of a scan |
//! | `checkpoint` | how memory and log are kept short |
//! | `overlay`, `spill` | what a transaction has written: in memory, and in files |
//! | `bulk_load` | how sorted rows go into the tree without the log |
//! | `locks` | who waits for whom |
//! | `prepared` | how a transaction is kept between XA PREPARE and its outcome |
//! | `disk` | what storage expects of a file system |
//! | `recovery` | how a store goes on after its disk has failed |
//! | `page_checksums`, `tree_file` | how damage of the B-tree is noticed |
//! | `salvage` | what can be saved of a damaged store |
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

#![warn(missing_docs)]

mod block;
mod blocks;
mod branch_cache;
mod bulk_load;
mod checkpoint;
mod commit;
mod cursor;
#[cfg(target_os = "linux")]
mod direct_read;
mod disk;
mod error;
mod first_start;
mod group_commit;
pub mod idle_threads;
mod ids;
mod leaves;
mod little_endian;
mod locks;
mod log;
mod memtable;
mod options;
mod overlay;
mod page_checksums;
mod pages;
mod payload;
mod prefetch;
mod prefix;
mod prepared;
pub mod reclaim;
mod recovery;
mod rows;
mod salvage;
mod scan_ahead;
mod snapshot;
mod space_table;
mod spill;
mod store;
mod transaction;
mod tree;
mod tree_file;
mod tree_snapshot;
mod uncommitted;
mod verify;
mod version_map;
#[cfg(target_os = "linux")]
mod write_back;

pub use bulk_load::{BulkLoad, LoadedSpace, put_in_place};
pub use commit::Commit;
pub use cursor::Cursor;
pub use disk::{Disk, DiskFile, DiskFolder, LockOutcome, Metadata, OpenMode, OsDisk};
pub use error::{DamagedPlace, Error, LockError, Result, SpaceOwner};
pub use group_commit::LeaderHook;
pub use ids::{CommitTs, Lsn, SpaceId, TxnId};
pub use locks::{
    ExternalWaits, Interrupt, InterruptCause, LockMode, Locked, Wait, WaitHook, WaitPhase,
};
pub use options::{Background, Flush, FlushPolicy, Location, Options, Work};
pub use overlay::Savepoint;
pub use page_checksums::StoreId;
pub use prepared::{PreparedTransaction, StillPrepared};
pub use rows::Rows;
pub use salvage::{Gap, Salvage, SalvageProgress, SavedSpace, salvage};
pub use snapshot::Snapshot;
pub use store::{Stats, Store};
pub use transaction::Transaction;
pub use tree::SpaceNames;
pub use tree_file::ReadHook;
pub use uncommitted::Uncommitted;
pub use verify::Verified;

/// The order in which a cursor gives its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}
