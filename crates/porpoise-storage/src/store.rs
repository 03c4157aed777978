//! The store: everything that its transactions share, and the two threads behind it.
//!
//! ```text
//! folder/
//! ├ LOCK              the process that has the store open
//! ├ tree.redb         the B-trees, as of the last checkpoint, every page with a checksum
//! ├ log-…             the log since then
//! ├ log.spare         the next log segment
//! └ ….unfinished      a file that isn't what its name will say yet; a start removes it
//! ```
//!
//! `porpoise-sync` syncs once a second what no commit waited for, makes the next log segment, and has
//! a store that refused writing go on. `porpoise-fold` makes checkpoints. Neither is on the path of a
//! commit.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use smallvec::smallvec;

use crate::base::Base;
use crate::blocks::BlockCache;
use crate::commit::{Commit, GroupCommit, LeadHook, Need};
use crate::disk::{Disk, Found, LockOutcome};
use crate::first_start::{self, TREE, or_current};
use crate::locks::{BlockHook, HeldLocks, LockTable, OuterWaits};
use crate::log::{Payload, open_log, sync_folder};
use crate::options::{Background, FlushPolicy, Location, Options, Work};
use crate::overlay::Overlay;
use crate::payload::{Operation, decode, encode};
use crate::snapshot::{Epoch, Snapshot};
use crate::space_table::SpaceTable;
use crate::transaction::Transaction;
use crate::tree::{DamagedSpaces, SpaceNames, Tree};
use crate::tree_file::CheckedFile;
use crate::versions::Generation;
use crate::{CommitTs, Error, Lsn, Result, SpaceId, StoreId, TxnId, checkpoint, recovery};

const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a failed checkpoint it is tried again.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(2);
/// Commits wait for the checkpoint when versions take so many times their share of memory.
const BACKPRESSURE_FACTOR: u64 = 2;

/// An open database of ordered spaces. Clones share it; the last one dropped closes it, leaving a
/// checkpoint to `close`.
#[derive(Clone)]
pub struct Store(Arc<Handle>);

/// What a store has done since it was opened, and what it holds.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub commits: u64,
    pub syncs: u64,
    pub checkpoints: u64,
    /// How far the log has been written, and how far synced.
    pub log_written: u64,
    pub log_synced: u64,
    /// Log that a start would have to read.
    pub log_bytes: u64,
    /// Memory taken by versions not yet in the B-tree.
    pub version_bytes: u64,
    /// Memory taken by blocks of rows.
    pub block_bytes: u64,
    pub lock_waits: u64,
    pub locks_waiting: u64,
    pub deadlocks: u64,
    /// Writing is refused since a write to the log failed.
    pub is_read_only: bool,
}

pub(crate) struct Shared {
    pub locks: LockTable,
    pub epoch: ArcSwap<Epoch>,
    pub counters: SpaceTable<Counter>,
    pub next_space: AtomicU32,
    pub group: GroupCommit,
    pub tree: Mutex<Option<Tree>>,
    /// What the tree lies in; `None` for a store in memory.
    pub tree_file: Option<Arc<CheckedFile>>,
    pub tree_cache_bytes: usize,
    pub damaged: Arc<DamagedSpaces>,
    /// The newest commit that the tree has.
    pub folded_ts: AtomicU64,
    pub disk: Arc<dyn Disk>,
    /// `None` for a store in memory.
    pub background: Background,
    /// `None` for a store in memory.
    pub tree_path: Option<PathBuf>,
    next_txn: AtomicU64,
    flush: FlushPolicy,
    limits: Limits,
    is_over_limit: AtomicBool,
    is_fold_failing: AtomicBool,
    folded_to: AtomicU64,
    checkpoints: AtomicU64,
    is_stopping: AtomicBool,
    sync_bell: Bell,
    fold_bell: Bell,
    folded_bell: Bell,
}

struct Limits {
    log_bytes: u64,
    version_bytes: u64,
    idle: Duration,
}

/// An `AUTO_INCREMENT` high water mark, and how much of it the tree has.
pub(crate) struct Counter {
    pub value: AtomicU64,
    pub folded: AtomicU64,
}

/// Wakes a thread that sleeps for a while or until called.
#[derive(Default)]
struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.is_rung.lock() = true;
        self.rung.notify_all();
    }

    fn wait(&self, at_most: Duration) {
        let mut is_rung = self.is_rung.lock();
        if !*is_rung {
            self.rung.wait_for(&mut is_rung, at_most);
        }
        *is_rung = false;
    }
}

/// Held as long as this process has the folder to itself.
type FolderLock = Box<dyn Any + Send + Sync>;

struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock_file: Mutex<Option<FolderLock>>,
}

impl Store {
    /// Opens the store, replaying what its log holds beyond the last checkpoint.
    pub fn open(options: &Options) -> Result<Store> {
        let cache_bytes = first_start::tree_cache_bytes(options);
        let (file, folder, lock_file) = match &options.location {
            Location::Path(folder) => {
                make_folder(&*options.disk, folder)?;
                let lock_file = take_folder(&*options.disk, folder)?;
                let file = first_start::tree_file(options, folder)?;
                (Some(file), Some(folder.as_path()), Some(lock_file))
            }
            Location::Memory => (None, None, None),
        };
        let tree = Tree::open(file.as_ref(), cache_bytes)?;
        let tree_path = folder.map(|f| f.join(TREE)).unwrap_or_default();
        let checkpoint::Opened {
            state,
            counters,
            mut damaged,
        } = checkpoint::open_tree(&tree, &tree_path)?;
        damaged.refused_folds_max = options.checkpoint_read_tries;
        let damaged = Arc::new(damaged);
        let generation = Arc::new(Generation::after(state.ts));
        let mut replay = Replay {
            generation: &generation,
            counters: SpaceTable::new(),
            next_space: state.next_space,
            last_ts: state.ts,
        };
        for (space, value) in counters {
            let counter = Counter {
                value: value.into(),
                folded: value.into(),
            };
            replay.counters.get_or_insert_with(space, || counter);
        }
        let log = match folder {
            Some(folder) => {
                let apply = |ts, payload: &[u8]| replay.apply(ts, payload);
                Some(open_log(
                    &options.disk,
                    folder,
                    file.as_ref().map_or(StoreId(0), |file| file.id()),
                    options.log_segment_bytes,
                    state.lsn,
                    apply,
                )?)
            }
            None => None,
        };
        generation.publish(replay.last_ts);
        let cache = Arc::new(BlockCache::new(options.cache_bytes - cache_bytes));
        let base = Arc::new(Base::open(&tree, Arc::clone(&cache), Arc::clone(&damaged))?);
        cache.serve(&base);
        let epoch = Epoch {
            generations: smallvec![Arc::clone(&generation)],
            base,
            is_oldest_in_tree: false,
        };
        let Replay {
            counters,
            next_space,
            last_ts,
            ..
        } = replay;
        let shared = Arc::new(Shared {
            locks: LockTable::new(),
            epoch: ArcSwap::from_pointee(epoch),
            counters,
            next_space: AtomicU32::new(next_space),
            group: GroupCommit::new(log, generation, last_ts),
            tree: Mutex::new(Some(tree)),
            tree_file: file,
            tree_cache_bytes: cache_bytes,
            damaged,
            folded_ts: AtomicU64::new(state.ts.0),
            disk: Arc::clone(&options.disk),
            background: options.background,
            tree_path: folder.map(|_| tree_path),
            next_txn: AtomicU64::new(1),
            flush: options.flush.clone(),
            limits: Limits {
                log_bytes: options.checkpoint_log_bytes,
                version_bytes: options.checkpoint_version_bytes,
                idle: options.checkpoint_idle,
            },
            is_over_limit: AtomicBool::new(false),
            is_fold_failing: AtomicBool::new(false),
            folded_to: AtomicU64::new(state.lsn.0),
            checkpoints: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            sync_bell: Bell::default(),
            fold_bell: Bell::default(),
            folded_bell: Bell::default(),
        });
        shared.note_growth();
        let threads = match options.background {
            Background::Threads => vec![
                spawn("porpoise-sync", &shared, sync_each_second)?,
                spawn("porpoise-fold", &shared, fold_when_due)?,
            ],
            Background::Manual => Vec::new(),
        };
        let handle = Handle {
            shared,
            threads: Mutex::new(threads),
            lock_file: Mutex::new(lock_file),
        };
        Ok(Store(Arc::new(handle)))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Everything committed so far.
    pub fn snapshot(&self) -> Snapshot {
        self.shared().snapshot()
    }

    pub fn begin(&self) -> Transaction {
        let id = TxnId(self.shared().next_txn.fetch_add(1, Ordering::Relaxed));
        Transaction::new(Arc::clone(self.shared()), id)
    }

    /// A number no space has or had. A restart remembers it once a commit has named it.
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

    /// Rows in the space, more or less: exact after a checkpoint, and as good as the writers'
    /// knowledge (`Transaction::insert`) between two.
    pub fn approximate_len(&self, space: SpaceId) -> u64 {
        self.snapshot().approximate_len(space).unwrap_or(0)
    }

    /// Has `hook` called when a sync is done and commits that came meanwhile wait, none of them by
    /// [`Commit::wait`](crate::Commit::wait): an event loop then calls `sync_pending`. So no thread
    /// syncs for others for as long as they keep committing.
    pub fn set_lead_hook(&self, hook: Option<LeadHook>) {
        self.shared().group.set_lead_hook(hook);
    }

    /// Finishes, on this thread, the commits that wait for the disk. `false` if another thread is
    /// at it: that thread will finish those with callbacks, or have the lead hook called for them.
    pub fn sync_pending(&self) -> bool {
        self.shared().group.lead(self.shared(), Need::Publish)
    }

    /// The flush policy, to be read or changed.
    pub fn flush_policy(&self) -> &FlushPolicy {
        &self.shared().flush
    }

    /// Folds all versions into the B-tree and drops the log before them.
    pub fn checkpoint(&self) -> Result<()> {
        checkpoint::run(self.shared()).map(|_| ())
    }

    /// Does a piece of background work now, on this thread; see [`Background::Manual`].
    pub fn work(&self, work: Work) -> Result<()> {
        match work {
            Work::Sync => {
                self.shared().group.sync_in_background(self.shared());
                Ok(())
            }
            Work::Spare => make_spare_segment(self.shared()),
            Work::Recover => recovery::run(self.shared()),
        }
    }

    /// Makes a checkpoint and gives the files back. What is done with the store later fails.
    pub fn close(&self) -> Result<()> {
        if self.shared().is_stopping.load(Ordering::Acquire) {
            return Ok(());
        }
        let made = self.checkpoint();
        self.0.shut();
        made
    }

    /// Has `hook` called on a thread that is about to sleep for a row lock, and when it woke.
    pub fn set_block_hook(&self, hook: Option<BlockHook>) {
        self.shared().locks.set_hook(hook);
    }

    /// Has errors of damaged pages name what the page's rows belong to.
    pub fn set_space_names(&self, names: Option<SpaceNames>) {
        self.shared().damaged.set_names(names);
    }

    /// Has deadlock detection go on through waits for other things than rows.
    pub fn set_outer_waits(&self, outer: Option<OuterWaits>) {
        self.shared().locks.set_outer_waits(outer);
    }

    /// The transactions that one waits for, for a row.
    pub fn row_lock_obstacles(&self, transaction: TxnId) -> Vec<TxnId> {
        self.shared().locks.obstacles(transaction)
    }

    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        let written = shared.group.written().0;
        Stats {
            commits: shared.group.commits.load(Ordering::Relaxed),
            syncs: shared.group.syncs.load(Ordering::Relaxed),
            checkpoints: shared.checkpoints.load(Ordering::Relaxed),
            log_written: written,
            log_synced: shared.group.synced().0,
            log_bytes: written.saturating_sub(shared.folded_to.load(Ordering::Relaxed)),
            version_bytes: shared
                .epoch
                .load()
                .generations
                .iter()
                .map(|g| g.bytes())
                .sum(),
            block_bytes: shared.epoch.load().base.block_bytes() as u64,
            lock_waits: shared.locks.waits.load(Ordering::Relaxed),
            locks_waiting: shared.locks.currently_waiting() as u64,
            deadlocks: shared.locks.deadlocks.load(Ordering::Relaxed),
            is_read_only: shared.group.check_writable().is_err(),
        }
    }
}

impl Shared {
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::newest_of(self.epoch.load_full())
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// How far the tree has come; a start reads the log from here.
    pub fn folded_to(&self) -> Lsn {
        Lsn(self.folded_to.load(Ordering::Acquire))
    }

    pub fn raise_counter(&self, space: SpaceId, value: u64) {
        counter_in(&self.counters, space)
            .value
            .fetch_max(value, Ordering::AcqRel);
    }

    pub fn has_new_counters(&self) -> bool {
        self.counters.iter().any(|(_, counter)| {
            counter.value.load(Ordering::Relaxed) > counter.folded.load(Ordering::Relaxed)
        })
    }

    pub fn commit(
        self: &Arc<Self>,
        overlay: Overlay,
        counters: Vec<(SpaceId, u64)>,
        locks: HeldLocks,
    ) -> Result<Commit> {
        if overlay.is_empty() && counters.is_empty() {
            self.locks.release(locks);
            let ts = self.epoch.load().newest().visible();
            return Ok(Commit::of_nothing(Arc::clone(self), ts));
        }
        let admitted = self
            .group
            .check_writable()
            .and_then(|()| self.payload(&overlay, &counters));
        let payload = match admitted {
            Ok(payload) => payload,
            Err(error) => {
                self.locks.release(locks);
                return Err(error);
            }
        };
        self.wait_for_room();
        let need = Need::of(self.flush.get());
        let commit = self.group.enqueue(self, overlay, &payload, locks, need)?;
        if need < Need::Sync {
            self.group.lead(self, Need::Publish);
        }
        Ok(commit)
    }

    /// What a rolled back transaction leaves: its counters. Nobody waits for them.
    pub fn log_counters(self: &Arc<Self>, counters: Vec<(SpaceId, u64)>, txn: TxnId) {
        let overlay = Overlay::default();
        if self.group.check_writable().is_ok()
            && let Ok(payload) = self.payload(&overlay, &counters)
        {
            let locks = HeldLocks::none(txn);
            drop(
                self.group
                    .enqueue(self, overlay, &payload, locks, Need::Publish),
            );
        }
    }

    fn payload(&self, overlay: &Overlay, counters: &[(SpaceId, u64)]) -> Result<Payload> {
        match self.group.has_log() {
            true => Payload::new(encode(overlay, counters)),
            false => Payload::new(Vec::new()),
        }
    }

    /// Has the checkpoint start if there is enough for it.
    pub fn note_growth(&self) {
        let log_bytes = self
            .group
            .written()
            .0
            .saturating_sub(self.folded_to.load(Ordering::Relaxed));
        let is_over = log_bytes > self.limits.log_bytes
            || self.epoch.load().newest().bytes() > self.limits.version_bytes;
        if is_over && !self.is_over_limit.swap(true, Ordering::AcqRel) {
            self.fold_bell.ring();
        }
    }

    pub fn note_fold(&self, lsn: Lsn) {
        self.folded_to.fetch_max(lsn.0, Ordering::AcqRel);
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.folded_bell.ring();
    }

    /// Holds a commit back while versions pile up faster than they are folded.
    fn wait_for_room(&self) {
        if self.background == Background::Manual {
            return;
        }
        let limit = self
            .limits
            .version_bytes
            .saturating_mul(BACKPRESSURE_FACTOR);
        let is_crowded = || {
            // A checkpoint that fails must not hold commits up as well.
            self.is_over_limit.load(Ordering::Acquire)
                && !self.is_fold_failing.load(Ordering::Acquire)
                && self.epoch.load().newest().bytes() > limit
        };
        for _ in 0..10 {
            if !is_crowded() {
                return;
            }
            self.folded_bell.wait(Duration::from_millis(50));
        }
    }
}

fn counter_in(counters: &SpaceTable<Counter>, space: SpaceId) -> &Counter {
    counters.get_or_insert_with(space, || Counter {
        value: AtomicU64::new(0),
        folded: AtomicU64::new(0),
    })
}

impl Handle {
    /// Stops the threads, syncs the log and lets the files go.
    fn shut(&self) {
        if self.shared.is_stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        self.shared.sync_bell.ring();
        self.shared.fold_bell.ring();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        self.shared.group.sync_in_background(&self.shared);
        if let Err(error) = self.shared.group.mark_synced() {
            tracing::warn!(%error, "cannot note how far the log is on disk");
        }
        self.shared.group.fail(Error::Closed);
        let generation = Arc::new(Generation::after(CommitTs(0)));
        let closed = Epoch {
            generations: smallvec![generation],
            base: Arc::new(Base::closed()),
            is_oldest_in_tree: false,
        };
        // A checkpoint that still runs ends first.
        let mut database = self.shared.tree.lock();
        self.shared.epoch.store(Arc::new(closed));
        drop(database.take());
        drop(database);
        drop(self.lock_file.lock().take());
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shut();
    }
}

/// Makes the folder and those above it, each on disk before the next.
fn make_folder(disk: &dyn Disk, folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let found = disk.find(folder).map_err(Error::io("read", folder))?;
    if found == Some(Found::Folder) {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new(""));
    make_folder(disk, parent)?;
    match disk.create_folder(folder) {
        Ok(()) => {}
        // Somebody else was faster; who may use it is settled by the lock.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Error::io("create", folder)(e)),
    }
    sync_folder(disk, or_current(parent))
}

/// Makes this process the folder's only user.
fn take_folder(disk: &dyn Disk, folder: &Path) -> Result<FolderLock> {
    let path = folder.join("LOCK");
    match disk.lock(&path).map_err(Error::io("lock", &path))? {
        LockOutcome::Held(lock) => Ok(lock),
        LockOutcome::InUse { pid } => Err(Error::InUse {
            path: folder.to_path_buf(),
            pid,
        }),
    }
}

/// Puts the log's records back into memory.
struct Replay<'a> {
    generation: &'a Generation,
    counters: SpaceTable<Counter>,
    next_space: u32,
    last_ts: CommitTs,
}

impl Replay<'_> {
    fn apply(&mut self, ts: CommitTs, payload: &[u8]) -> Result<(), String> {
        if ts <= self.last_ts {
            return Err(format!("commit {} follows commit {}", ts.0, self.last_ts.0));
        }
        for operation in decode(payload) {
            let (space, write, net_rows) = match operation? {
                Operation::Put { space, key, value } => (space, Some((key, Some(value))), 0),
                Operation::Delete { space, key } => (space, Some((key, None)), 0),
                Operation::Rows { space, net } => (space, None, net),
                Operation::Create { space } => (space, None, 0),
                Operation::Drop { space } => {
                    self.generation.space(space).drop_at(ts);
                    (space, None, 0)
                }
                Operation::Counter { space, value } => {
                    counter_in(&self.counters, space)
                        .value
                        .fetch_max(value, Ordering::Relaxed);
                    continue;
                }
            };
            self.generation.insert(space, ts, net_rows, write);
            self.next_space = self.next_space.max(space.0.saturating_add(1));
        }
        self.last_ts = ts;
        Ok(())
    }
}

fn spawn(name: &'static str, shared: &Arc<Shared>, work: fn(&Shared)) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name(name.to_string())
        .spawn(move || work(&shared))
        .map_err(Error::io("start a thread for", PathBuf::from(name)))
}

fn sync_each_second(shared: &Shared) {
    while !shared.is_stopping.load(Ordering::Acquire) {
        shared.sync_bell.wait(SYNC_INTERVAL);
        shared.group.sync_in_background(shared);
        if let Err(error) = shared.group.mark_synced() {
            tracing::warn!(%error, "cannot note how far the log is on disk");
        }
        if let Err(error) = make_spare_segment(shared) {
            tracing::warn!(%error, "cannot prepare the next log segment");
        }
        if let Err(error) = recovery::run(shared) {
            tracing::debug!(%error, "the disk still fails");
        }
    }
}

fn make_spare_segment(shared: &Shared) -> Result<()> {
    let tail = shared.group.written();
    let wanted = shared.group.with_files(|files| {
        files.fill_reserve();
        files.wants_spare(tail)
    });
    let Some(plan) = wanted.transpose()?.flatten() else {
        return Ok(());
    };
    let made = plan.carry_out();
    let (spare, outcome) = match made {
        Ok(file) => (Some(file), Ok(())),
        Err(error) => (None, Err(error)),
    };
    shared.group.with_files(|files| files.adopt_spare(spare));
    outcome
}

fn fold_when_due(shared: &Shared) {
    let mut last_commits = 0;
    let mut quiet_since = Instant::now();
    while !shared.is_stopping.load(Ordering::Acquire) {
        shared.fold_bell.wait(SYNC_INTERVAL);
        let commits = shared.group.commits.load(Ordering::Relaxed);
        if commits != last_commits {
            (last_commits, quiet_since) = (commits, Instant::now());
        }
        let is_quiet = quiet_since.elapsed() >= shared.limits.idle;
        if !shared.is_over_limit.load(Ordering::Acquire) && !is_quiet {
            continue;
        }
        if shared.is_stopping.load(Ordering::Acquire) {
            return;
        }
        let outcome = checkpoint::run(shared);
        shared
            .is_fold_failing
            .store(outcome.is_err(), Ordering::Release);
        match outcome {
            Ok(_) => {
                shared.is_over_limit.store(false, Ordering::Release);
                shared.note_growth();
            }
            Err(Error::Closed | Error::ReadOnly { .. }) => {
                shared.fold_bell.wait(CHECKPOINT_RETRY);
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint failed and will be tried again");
                shared.fold_bell.wait(CHECKPOINT_RETRY);
            }
        }
    }
}
