//! What all transactions and background threads of a store share.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::background::Signal;
use crate::checkpoint::Pace;
use crate::commit::Commit;
use crate::disk::Disk;
use crate::group_commit::{Durability, GroupCommit, Writing};
use crate::locks::{HeldLocks, LockTable};
use crate::log::{LogFiles, Payload};
use crate::memtable::Memtable;
use crate::options::{Background, FlushPolicy};
use crate::overlay::{Overlay, SharedOverlay};
use crate::payload::{LargeCommit, encode};
use crate::snapshot::{Epoch, Snapshot};
use crate::space_table::SpaceTable;
use crate::spill::{FileKind, SpillFile};
use crate::tree::{DamagedSpaces, Tree};
use crate::tree_file::CheckedFile;
use crate::{CommitTs, Error, Lsn, Result, SpaceId, TxnId, checkpoint};

/// Commits wait for the checkpoint when a memtable is filled so far, in thousandths of what makes a
/// checkpoint due: half a second at most, each.
const STOPPED_FILL: u64 = 4000;
const STOPPED_WAIT: Duration = Duration::from_millis(50);
const STOPPED_WAITS_MAX: u32 = 10;

/// What all transactions and background threads of a store share.
pub(crate) struct Shared {
    pub locks: LockTable,
    pub epoch: ArcSwap<Epoch>,
    pub counters: SpaceTable<Counter>,
    /// How many changes of rows checkpoints have written since the store was opened, by space.
    pub changes: SpaceTable<AtomicU64>,
    pub next_space: AtomicU32,
    pub group: GroupCommit,
    /// Locked to write to the tree. `None` when the store was closed, or the tree couldn't
    /// be opened anew.
    pub tree: Mutex<Option<Tree>>,
    /// The tree's file; `None` for a store in memory.
    pub tree_file: Option<Arc<CheckedFile>>,
    pub tree_cache_bytes: usize,
    /// How many times rows were written to the tree beside the log.
    pub loads: AtomicU64,
    pub damaged: Arc<DamagedSpaces>,
    /// The newest commit that the tree has.
    pub checkpoint_ts: AtomicU64,
    pub disk: Arc<dyn Disk>,
    pub background: Background,
    /// `None` for a store in memory.
    pub tree_path: Option<PathBuf>,
    /// Beyond so many bytes in memory a transaction's writes go to a file.
    pub spill_bytes: usize,
    /// The number of the next such file.
    pub(super) next_spill: AtomicU64,
    /// Files that something prepared may need, until that is [asked for](Store::recover_prepared).
    pub unclaimed_files: Mutex<BTreeSet<u64>>,
    /// Files of commits that have failed, while the log may have the record.
    pub lost_files: Mutex<Vec<Arc<SpillFile>>>,
    /// A checkpoint has written a part of a commit to the tree, and not yet all of it.
    pub is_partly_merged: AtomicBool,
    pub pace: Pace,
    pub(super) next_txn: AtomicU64,
    pub(super) flush: FlushPolicy,
    pub(super) limits: CheckpointLimits,
    pub(super) is_over_limit: AtomicBool,
    pub(super) is_checkpoint_failing: AtomicBool,
    pub(super) checkpoint_lsn: AtomicU64,
    /// How many checkpoints were made.
    pub(super) checkpoints: AtomicU64,
    pub(super) is_stopping: AtomicBool,
    /// The store is to be closed when a last checkpoint is made. That doesn't take long: what is long
    /// is left to a start.
    pub is_closing: AtomicBool,
    /// Wakes the thread that syncs.
    pub(super) sync_signal: Signal,
    /// Wakes the thread that makes checkpoints.
    pub(super) checkpoint_signal: Signal,
    /// Wakes commits that wait for a checkpoint.
    pub(super) checkpoint_done: Signal,
}

/// When a checkpoint is due.
pub(super) struct CheckpointLimits {
    pub log_bytes: u64,
    pub version_bytes: u64,
    pub idle: Duration,
}

/// An `AUTO_INCREMENT` high water mark, and how much of it the tree has.
pub(crate) struct Counter {
    pub value: AtomicU64,
    pub checkpointed: AtomicU64,
}

impl Shared {
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::newest_of(self.epoch.load_full())
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Up to where the tree has the log; a start reads from here.
    pub fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.checkpoint_lsn.load(Ordering::Acquire))
    }

    /// Adds to the count of changes what a memtable has of them.
    pub fn count_changes(&self, memtable: &Memtable) {
        for (space, versions) in memtable.spaces.iter() {
            let count = self.changes.get_or_insert_with(space, AtomicU64::default);
            let changes = versions.changes.load(Ordering::Relaxed);
            count.fetch_add(changes, Ordering::Relaxed);
        }
    }

    /// Raises a space's counter to at least this value.
    pub fn raise_counter(&self, space: SpaceId, value: u64) {
        counter_of(&self.counters, space)
            .value
            .fetch_max(value, Ordering::AcqRel);
    }

    /// Whether the tree lacks the value of any counter.
    pub fn has_new_counters(&self) -> bool {
        self.counters.iter().any(|(_, counter)| {
            counter.value.load(Ordering::Relaxed) > counter.checkpointed.load(Ordering::Relaxed)
        })
    }

    /// Hands a transaction's writes to the log; on an error it has released the locks.
    pub fn commit(
        self: &Arc<Self>,
        overlay: Option<Arc<SharedOverlay>>,
        counters: Vec<(SpaceId, u64)>,
        locks: HeldLocks,
        rests_on: CommitTs,
    ) -> Result<Commit> {
        self.commit_durably(overlay, counters, locks, rests_on, Durability::Published)
    }

    /// As [`commit`](Shared::commit); the commit isn't done before it is as durable as that, whatever the
    /// flush policy asks.
    pub fn commit_durably(
        self: &Arc<Self>,
        overlay: Option<Arc<SharedOverlay>>,
        counters: Vec<(SpaceId, u64)>,
        locks: HeldLocks,
        rests_on: CommitTs,
        at_least: Durability,
    ) -> Result<Commit> {
        let overlay = overlay.filter(|overlay| !overlay.0.read().is_empty());
        if overlay.is_none() && counters.is_empty() {
            self.locks.release(locks);
            if rests_on.0 > 0 {
                return Ok(self.await_queued(rests_on));
            }
            let ts = self.epoch.load().newest().visible();
            return Ok(Commit::of_nothing(Arc::clone(self), ts));
        }
        let admitted = self
            .group
            .check_writable()
            .and_then(|()| match &overlay {
                Some(overlay) => {
                    overlay.0.write().give_up_undo();
                    self.spill_rest(overlay)
                }
                None => Ok(()),
            })
            .and_then(|()| self.payload(overlay.as_ref(), &counters));
        let payload = match admitted {
            Ok(payload) => payload,
            Err(error) => {
                if let Some(runs) = overlay.as_ref().and_then(|o| o.0.read().runs().cloned()) {
                    runs.forget_file();
                }
                self.locks.release(locks);
                return Err(error);
            }
        };
        let mut own_memtable = None;
        if let Some(overlay) = &overlay {
            let overlay = overlay.0.read();
            own_memtable = overlay.large().cloned();
            if let (Some(own), Some(runs)) = (&own_memtable, overlay.runs()) {
                own.set_runs(Arc::clone(runs));
            }
        }
        self.apply_backpressure();
        let need = Durability::of(self.flush.get()).max(at_least);
        let writing = Writing {
            overlay,
            payload,
            rests_on,
        };
        if let Some(own) = own_memtable {
            return self.hand_over(writing, own, locks, need);
        }
        let commit = self.group.enqueue(self, writing, locks, need)?;
        if need < Durability::Synced {
            self.group.lead_group_commit(self, Durability::Published);
        }
        Ok(commit)
    }

    /// Commits a transaction whose writes are a memtable of their own, and waits until that is as safe
    /// as it has to be; calls the wait hook meanwhile.
    fn hand_over(
        self: &Arc<Self>,
        writing: Writing,
        own: Arc<Memtable>,
        locks: HeldLocks,
        need: Durability,
    ) -> Result<Commit> {
        let (writing, outcome) = (Cell::new(Some(writing)), Cell::new(None));
        // A checkpoint may write a part of what was spilled to the tree: the log must have it by then.
        let need = match own.runs() {
            Some(_) => Durability::Synced,
            None => need,
        };
        self.locks.sleep_elsewhere(&|| {
            if let Some(writing) = writing.take() {
                let own = Arc::clone(&own);
                outcome.set(Some(checkpoint::hand_over(self, writing, own, need)));
            }
        });
        self.locks.release(locks);
        let outcome = outcome.into_inner().unwrap_or(Err(Error::Closed));
        if let (Err(_), Some(runs)) = (&outcome, own.runs()) {
            runs.forget_file();
        }
        outcome
    }

    /// A file for what a transaction spills.
    pub fn create_spill_file(&self, kind: FileKind) -> Result<Arc<SpillFile>> {
        let (Some(tree), Some(path)) = (&self.tree_file, &self.tree_path) else {
            return Err(Error::Closed);
        };
        self.group.check_writable()?;
        // The descriptor that it takes is not one that the log has lent.
        self.group.with_files(LogFiles::fill_descriptors);
        let number = self.next_spill.fetch_add(1, Ordering::Relaxed);
        let folder = path.parent().unwrap_or(Path::new(""));
        let damaged = Arc::clone(&self.damaged);
        SpillFile::create(&self.disk, folder, (number, kind), tree.id(), damaged).map(Arc::new)
    }

    /// Writes what a transaction has in memory to the end of its file. On an error it still has it, and
    /// the file is as before.
    pub fn spill(&self, overlay: &SharedOverlay, file: &Arc<SpillFile>) -> Result<()> {
        let writes = overlay.0.read();
        let spilled = writes.runs().map_or(0, |runs| runs.bytes());
        checkpoint::check_room_to_spill(self, writes.bytes_to_spill() as u64, spilled)?;
        let run = writes.write_run(file).inspect_err(|_| file.cut())?;
        drop(writes);
        let epoch = self.epoch.load();
        let freed = overlay.0.write().spilled(run, epoch.tree.cache());
        drop(freed);
        Ok(())
    }

    /// Has all of a transaction's writes be on disk that has spilled some.
    pub fn spill_rest(&self, overlay: &SharedOverlay) -> Result<()> {
        let file = match overlay.0.read().runs() {
            Some(runs) => runs.file(),
            None => return Ok(()),
        };
        let Some(file) = file else { return Ok(()) };
        let outcome = Cell::new(Ok(()));
        self.locks.sleep_elsewhere(&|| {
            let spilled = self.spill(overlay, &file);
            outcome.set(spilled.and_then(|()| file.sync_and_keep()));
        });
        outcome.into_inner()
    }

    /// A commit of nothing that is done when one is published that somebody has read from, and
    /// fails if that is lost.
    pub fn await_queued(self: &Arc<Self>, rests_on: CommitTs) -> Commit {
        match self.group.fate_of(rests_on, self) {
            Some(fate) => Commit::finished(Arc::clone(self), rests_on, fate),
            None => {
                let commit = self.group.enqueue_nothing(self);
                if Durability::of(self.flush.get()) < Durability::Synced {
                    self.group.lead_group_commit(self, Durability::Published);
                }
                commit
            }
        }
    }

    /// Waits until a commit is published that somebody has read from; calls the wait hook if it
    /// sleeps. Fails if the commit is lost.
    pub fn await_published(self: &Arc<Self>, rests_on: CommitTs) -> Result<()> {
        self.group.await_published(rests_on, self, |wait| {
            self.locks.sleep_elsewhere(wait);
        })
    }

    /// Logs the counters of a transaction that was rolled back. Nobody waits for them.
    pub fn log_counters(self: &Arc<Self>, counters: Vec<(SpaceId, u64)>, txn: TxnId) {
        if self.group.check_writable().is_ok()
            && let Ok(payload) = self.payload(None, &counters)
        {
            let locks = HeldLocks::none(txn);
            let writing = Writing {
                overlay: None,
                payload,
                rests_on: CommitTs(0),
            };
            drop(
                self.group
                    .enqueue(self, writing, locks, Durability::Published),
            );
        }
    }

    fn payload(
        &self,
        overlay: Option<&Arc<SharedOverlay>>,
        counters: &[(SpaceId, u64)],
    ) -> Result<Payload> {
        if !self.group.has_log() {
            return Payload::new(Vec::new());
        }
        let Some(overlay) = overlay else {
            return Payload::new(encode(&Overlay::default(), counters));
        };
        let writes = overlay.0.read();
        if writes.large().is_none() || writes.runs().is_some() {
            return Payload::new(encode(&writes, counters));
        }
        drop(writes);
        Payload::of_source(Arc::new(LargeCommit {
            overlay: Arc::clone(overlay),
            counters: counters.to_vec(),
        }))
    }

    /// From how many bytes on a transaction's writes are a memtable of their own: about as many as
    /// make a checkpoint due by themselves.
    pub fn large_bytes(&self) -> usize {
        self.memtable_bytes().saturating_mul(2)
    }

    /// Starts a checkpoint.
    pub fn request_checkpoint(&self) {
        if !self.is_over_limit.swap(true, Ordering::AcqRel) {
            self.checkpoint_signal.notify();
        }
    }

    /// Starts a checkpoint if the log or the versions have grown beyond their limits.
    pub fn request_checkpoint_if_due(&self) {
        let log_bytes = self
            .group
            .written()
            .0
            .saturating_sub(self.checkpoint_lsn.load(Ordering::Relaxed));
        let is_over = log_bytes > self.limits.log_bytes
            || self.epoch.load().newest().bytes() > self.limits.version_bytes;
        if is_over {
            self.request_checkpoint();
        }
    }

    /// How many bytes of versions a memtable has when a checkpoint is due.
    pub fn memtable_bytes(&self) -> usize {
        usize::try_from(self.limits.version_bytes).unwrap_or(usize::MAX)
    }

    /// About how many bytes of leaves one redb transaction writes, where there may be several. Half of
    /// redb's cache is for pages that wait for the commit: those that it can't hold are written, and read
    /// again then.
    pub fn slice_bytes(&self) -> usize {
        // With fewer each transaction would wait for the disk more than it writes.
        const MIN: usize = 1 << 20;
        (self.tree_cache_bytes / 3).max(MIN).min(self.long_bytes())
    }

    /// With more rows than so many bytes have, closing the store doesn't wait until all that was spilled
    /// is in the tree.
    pub fn long_bytes(&self) -> usize {
        self.memtable_bytes().saturating_mul(16)
    }

    /// Notes that a checkpoint was made, and how far the tree has the log now.
    pub fn note_checkpoint(&self, lsn: Lsn) {
        self.checkpoint_lsn.fetch_max(lsn.0, Ordering::AcqRel);
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.checkpoint_done.notify();
    }

    /// How full the newest memtable is, in thousandths of what makes a checkpoint due.
    pub fn fill_of_newest(&self) -> u64 {
        let bytes = self.epoch.load().newest().bytes();
        bytes.saturating_mul(1000) / self.limits.version_bytes.max(1)
    }

    /// Delays a commit while versions pile up faster than checkpoints merge them: a little at
    /// first, so that commits come to go as fast as checkpoints do.
    fn apply_backpressure(&self) {
        // A checkpoint that fails must not hold commits up as well.
        if !self.is_over_limit.load(Ordering::Acquire)
            || self.background == Background::Manual
            || self.is_checkpoint_failing.load(Ordering::Acquire)
        {
            return;
        }
        let Some(delay) = self.pace.delay(self.fill_of_newest()) else {
            return;
        };
        self.locks.sleep_elsewhere(&|| {
            std::thread::sleep(delay);
            for _ in 0..STOPPED_WAITS_MAX {
                let is_too_much = self.fill_of_newest() > STOPPED_FILL
                    && self.is_over_limit.load(Ordering::Acquire)
                    && !self.is_checkpoint_failing.load(Ordering::Acquire);
                if !is_too_much {
                    break;
                }
                self.checkpoint_done.wait(STOPPED_WAIT);
            }
        });
    }
}

/// A space's counter, made if there is none.
pub(super) fn counter_of(counters: &SpaceTable<Counter>, space: SpaceId) -> &Counter {
    counters.get_or_insert_with(space, || Counter {
        value: AtomicU64::new(0),
        checkpointed: AtomicU64::new(0),
    })
}
