//! An open store: what its users call.
//!
//! ```text
//! folder/
//! ├ LOCK              the process that has the store open
//! ├ tree.redb         the B-trees, as of the last checkpoint, every page with a checksum; has holes
//! ├ log-…             the log since then
//! ├ log.spare         the file for the next log segment
//! ├ spill-…           what a large transaction has written; a start removes those of no commit
//! ├ prepared-…        the same of one that may be prepared; needed by what is prepared, too
//! └ ….unfinished      a file that isn't complete yet; a start removes it
//! ```
//!
//! The thread `porpoise-sync` syncs once a second what no commit waited for, preallocates the next
//! log segment, and ends the state in which writing is refused. `porpoise-ckpt` makes checkpoints.
//! Neither is on the path of a commit.

mod background;
mod open;
mod shared;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use smallvec::smallvec;

use crate::group_commit::{Durability, LeaderHook};
use crate::locks::{ExternalWaits, WaitHook};
use crate::memtable::Memtable;
use crate::options::{FlushPolicy, Work};
use crate::snapshot::{Epoch, Snapshot};
use crate::transaction::Transaction;
use crate::tree::SpaceNames;
use crate::tree_file::ReadHook;
use crate::tree_snapshot::TreeSnapshot;
use crate::uncommitted::Uncommitted;
use crate::{CommitTs, Error, Result, SpaceId, TxnId, checkpoint, recovery};
use background::preallocate_segment;
use open::FolderLock;

pub(crate) use shared::{Counter, Shared};

/// An open database of ordered spaces. Clones share it; dropping the last one closes it without a
/// checkpoint.
#[derive(Clone)]
pub struct Store(Arc<StoreInner>);

/// What a store has done since it was opened, and what it holds.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Commits that were given a place in the log.
    pub commits: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    /// How far the log has been written: a position, in bytes.
    pub log_written: u64,
    /// How far the log has been synced: a position, in bytes.
    pub log_synced: u64,
    /// Log that a start would have to read, in bytes.
    pub log_bytes: u64,
    /// Memory taken by versions not yet in the B-tree, in bytes.
    pub version_bytes: u64,
    /// Memory taken by blocks of rows, in bytes.
    pub block_bytes: u64,
    /// Waits for row locks, since the store was opened.
    pub lock_waits: u64,
    /// Transactions that wait for a row lock now.
    pub locks_waiting: u64,
    /// Deadlocks that were found, since the store was opened.
    pub deadlocks: u64,
    /// How many times a transaction has locked a space instead of very many rows of it, since the
    /// store was opened.
    pub lock_escalations: u64,
    /// Writing is refused since a write to the log failed.
    pub is_read_only: bool,
}

struct StoreInner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    folder_lock: Mutex<Option<FolderLock>>,
}

impl Store {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Everything committed so far.
    pub fn snapshot(&self) -> Snapshot {
        self.shared().snapshot()
    }

    /// What is newest, committed or not, for one statement.
    pub fn uncommitted(&self) -> Uncommitted {
        Uncommitted::beside(self.shared(), None)
    }

    /// Everything that has a place in the log, after waiting until it is published: for who has
    /// just kept writers out, and wants to see what they did.
    pub fn snapshot_of_queued(&self) -> Result<Snapshot> {
        self.shared().group.enqueue_nothing(self.shared()).wait()?;
        Ok(self.snapshot())
    }

    /// Begins a transaction. It takes its read view at its first read.
    pub fn begin(&self) -> Transaction {
        let id = TxnId(self.shared().next_txn.fetch_add(1, Ordering::Relaxed));
        Transaction::new(Arc::clone(self.shared()), id)
    }

    /// A number no space has or had. A restart remembers it once a commit has used it.
    pub fn allocate_space(&self) -> SpaceId {
        SpaceId(self.shared().next_space.fetch_add(1, Ordering::Relaxed))
    }

    /// The highest value ever given to `Transaction::set_counter`; 0 if there was none.
    pub fn counter(&self, space: SpaceId) -> u64 {
        self.shared()
            .counters
            .get(space)
            .map_or(0, |c| c.value.load(Ordering::Acquire))
    }

    /// The approximate number of rows in the space: exact after a checkpoint, and as good as the
    /// writers' knowledge ([`Transaction::insert`]) between two. 0 if the space can't be read.
    pub fn approximate_len(&self, space: SpaceId) -> u64 {
        self.snapshot().approximate_len(space).unwrap_or(0)
    }

    /// About how many rows were written or deleted in the space since the store was opened. A row
    /// counts each time that it changes.
    pub fn changes(&self, space: SpaceId) -> u64 {
        let shared = self.shared();
        let written = shared.changes.get(space);
        let written = written.map_or(0, |count| count.load(Ordering::Relaxed));
        let epoch = shared.epoch.load();
        let newer = epoch.memtables.iter().filter_map(|m| m.spaces.get(space));
        let newer = newer.map(|versions| versions.changes.load(Ordering::Relaxed));
        written + newer.sum::<u64>()
    }

    /// Calls `hook` when a sync is done and other commits have queued meanwhile, none of them in
    /// [`Commit::wait`](crate::Commit::wait): an event loop then calls `sync_pending`. So no thread
    /// syncs for others for as long as they keep committing.
    pub fn set_leader_hook(&self, hook: Option<LeaderHook>) {
        self.shared().group.set_leader_hook(hook);
    }

    /// Finishes, on this thread, the commits that wait for the disk. `false` if another thread
    /// leads: that thread finishes those with callbacks, or calls the leader hook for them.
    pub fn sync_pending(&self) -> bool {
        self.shared()
            .group
            .lead_group_commit(self.shared(), Durability::Published)
    }

    /// The flush policy, to be read or changed.
    pub fn flush_policy(&self) -> &FlushPolicy {
        &self.shared().flush
    }

    /// Merges all versions into the B-tree and drops the log before them. Fails if the disk does;
    /// the versions then stay in memory and in the log.
    pub fn checkpoint(&self) -> Result<()> {
        checkpoint::run(self.shared()).map(|_| ())
    }

    /// Gives room in the tree's file that nothing needs back to the disk, while others read and
    /// write. Makes a checkpoint first. Ends early when `goes_on` returns false.
    ///
    /// # Errors
    /// If the disk is full or fails, or what it has is damaged.
    pub fn shrink(&self, goes_on: impl FnMut() -> bool) -> Result<()> {
        self.checkpoint()?;
        checkpoint::shrink(self.shared(), goes_on)
    }

    /// Does a piece of background work now, on this thread; see
    /// [`Background::Manual`](crate::Background::Manual).
    pub fn work(&self, work: Work) -> Result<()> {
        match work {
            Work::Sync => {
                self.shared().group.sync_in_background(self.shared());
                Ok(())
            }
            Work::PreallocateSegment => preallocate_segment(self.shared()),
            Work::Shrink => checkpoint::shrink(self.shared(), || true),
            Work::Recover => recovery::run(self.shared()),
        }
    }

    /// Makes a checkpoint and closes the files, even if the checkpoint fails. Everything that is
    /// done with the store later fails with [`Error::Closed`]. Of a commit that has spilled very much
    /// the checkpoint leaves the rest to the next start.
    pub fn close(&self) -> Result<()> {
        if self.shared().is_stopping() {
            return Ok(());
        }
        self.shared().is_closing.store(true, Ordering::Release);
        let made = self.checkpoint();
        let synced = self.0.shut_down();
        match made {
            // The checkpoint was left to the next start, which needs the log.
            Err(Error::Closed) => synced,
            made => made,
        }
    }

    /// Whether the store is closed, or is being closed.
    pub fn is_closed(&self) -> bool {
        self.shared().is_stopping()
    }

    /// Calls `hook` on a thread that is about to sleep for a row lock, and again when it has woken.
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.shared().locks.set_hook(hook);
    }

    /// Calls `hook` on a thread that is about to read rows which the system doesn't hold in memory.
    pub fn set_read_hook(&self, hook: Option<ReadHook>) {
        if let Some(file) = &self.shared().tree_file {
            file.set_read_hook(hook);
        }
    }

    /// Lets errors of damaged pages name the table and index that the page's rows belong to.
    pub fn set_space_names(&self, names: Option<SpaceNames>) {
        self.shared().damaged.set_names(names);
    }

    /// Lets deadlock detection follow waits for other things than rows.
    pub fn set_external_waits(&self, external: Option<ExternalWaits>) {
        self.shared().locks.set_external_waits(external);
    }

    /// The transactions that a transaction waits for, to get a row lock. Empty if it waits for
    /// none.
    pub fn row_lock_blockers(&self, transaction: TxnId) -> Vec<TxnId> {
        self.shared().locks.blockers(transaction)
    }

    /// Counters and sizes, each read at its own moment.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        let written = shared.group.written().0;
        Stats {
            commits: shared.group.commits.load(Ordering::Relaxed),
            syncs: shared.group.syncs.load(Ordering::Relaxed),
            checkpoints: shared.checkpoints.load(Ordering::Relaxed),
            log_written: written,
            log_synced: shared.group.synced().0,
            log_bytes: written.saturating_sub(shared.checkpoint_lsn().0),
            version_bytes: shared
                .epoch
                .load()
                .memtables
                .iter()
                .map(|g| g.bytes())
                .sum(),
            block_bytes: shared.epoch.load().tree.block_bytes() as u64,
            lock_waits: shared.locks.waits.load(Ordering::Relaxed),
            locks_waiting: shared.locks.currently_waiting() as u64,
            deadlocks: shared.locks.deadlocks.load(Ordering::Relaxed),
            lock_escalations: shared.locks.escalations(),
            is_read_only: shared.group.check_writable().is_err(),
        }
    }
}

impl StoreInner {
    /// Stops the threads, syncs the log and closes the files. Fails if what was committed isn't all
    /// in the log on disk.
    fn shut_down(&self) -> Result<()> {
        if self.shared.is_stopping.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.shared.sync_signal.notify();
        self.shared.checkpoint_signal.notify();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        self.shared.group.sync_in_background(&self.shared);
        let synced = self.shared.group.check_writable();
        if let Err(error) = self.shared.group.mark_synced() {
            tracing::warn!(%error, "cannot note how far the log is on disk");
        }
        self.shared.group.fail(Error::Closed, &self.shared.locks);
        let memtable = Arc::new(Memtable::after(CommitTs(0)));
        let closed = Epoch {
            memtables: smallvec![memtable],
            tree: Arc::new(TreeSnapshot::closed()),
            is_oldest_merged: false,
        };
        // This waits for a checkpoint that is still running.
        let mut tree = self.shared.tree.lock();
        self.shared.epoch.store(Arc::new(closed));
        drop(tree.take());
        drop(tree);
        drop(self.folder_lock.lock().take());
        synced
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::error!(%error, "the log is not on disk up to its end");
        }
    }
}
