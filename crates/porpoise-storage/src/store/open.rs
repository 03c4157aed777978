//! Opening a store: its folder, its tree, and the replay of its log.

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::background::{self, Signal};
use super::shared::{CheckpointLimits, counter_of};
use super::{Counter, Shared, Store, StoreInner};
use crate::blocks::BlockCache;
use crate::checkpoint::{OpenedTree, Pace, TreeState, open_tree};
use crate::disk::{Disk, LockOutcome, Metadata, OpenMode};
use crate::first_start::{self, TREE, current_if_empty};
use crate::group_commit::GroupCommit;
use crate::locks::LockTable;
use crate::log::{LogFiles, LogTail, Replayed, open_log, sync_folder};
use crate::memtable::Memtable;
use crate::options::{Background, Location, Options};
use crate::payload::{Operation, decode};
use crate::snapshot::Epoch;
use crate::space_table::SpaceTable;
use crate::spill::{self, Runs, SpillFile};
use crate::tree::{DamagedSpaces, Tree};
use crate::tree_file::CheckedFile;
use crate::tree_snapshot::TreeSnapshot;
use crate::{CommitTs, Error, Lsn, Result, SpaceId};
use arc_swap::ArcSwap;
use parking_lot::Mutex;

/// Held as long as this process has the folder to itself.
pub(super) type FolderLock = Box<dyn Any + Send + Sync>;

/// A store's folder, locked.
struct OpenFolder<'a> {
    path: &'a Path,
    lock: FolderLock,
    tree_file: Arc<CheckedFile>,
}

impl Store {
    /// Opens the store, replaying what its log holds beyond the last checkpoint.
    ///
    /// Fails with [`Error::InUse`] if another process has the folder, with [`Error::Corrupt`] if
    /// log or tree aren't as they were written, with [`Error::OlderFormat`] or
    /// [`Error::NewerFormat`] if another version of this program has written them.
    pub fn open(options: &Options) -> Result<Store> {
        let cache_bytes = first_start::tree_cache_bytes(options);
        let folder = open_folder(options)?;
        let tree_file = folder.as_ref().map(|folder| Arc::clone(&folder.tree_file));
        let tree = Tree::open(tree_file.as_ref(), cache_bytes)?;
        let tree_path = folder.as_ref().map(|folder| folder.path.join(TREE));
        let recovered = recover(options, folder.as_ref(), &tree, tree_path.as_deref())?;
        let cache = Arc::new(BlockCache::new(options.cache_bytes - cache_bytes));
        let damaged = recovered.damaged;
        let snapshot = TreeSnapshot::open(&tree, Arc::clone(&cache), Arc::clone(&damaged))?;
        let snapshot = Arc::new(snapshot);
        cache.attach(&snapshot);
        let memtable = recovered.memtable;
        let has_older = !recovered.older.is_empty();
        let memtables = std::iter::once(Arc::clone(&memtable)).chain(recovered.older);
        let epoch = Epoch {
            memtables: memtables.collect(),
            tree: snapshot,
            is_oldest_merged: false,
        };
        let state = recovered.state;
        let shared = Arc::new(Shared {
            locks: LockTable::new(),
            epoch: ArcSwap::from_pointee(epoch),
            counters: recovered.counters,
            changes: SpaceTable::new(),
            next_space: AtomicU32::new(recovered.next_space),
            group: GroupCommit::new(recovered.log, memtable, recovered.last_ts),
            tree: Mutex::new(Some(tree)),
            tree_file,
            tree_cache_bytes: cache_bytes,
            loads: AtomicU64::new(0),
            damaged,
            checkpoint_ts: AtomicU64::new(state.ts.0),
            disk: Arc::clone(&options.disk),
            background: options.background,
            tree_path,
            spill_bytes: match folder {
                Some(_) => options.spill_bytes,
                None => usize::MAX,
            },
            next_spill: AtomicU64::new(recovered.next_spill),
            unclaimed_files: Mutex::new(recovered.unclaimed_files),
            lost_files: Mutex::default(),
            is_partly_merged: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            pace: Pace::default(),
            next_txn: AtomicU64::new(1),
            flush: options.flush.clone(),
            limits: CheckpointLimits {
                log_bytes: options.checkpoint_log_bytes,
                version_bytes: options.checkpoint_version_bytes,
                idle: options.checkpoint_idle,
            },
            is_over_limit: AtomicBool::new(false),
            is_checkpoint_failing: AtomicBool::new(false),
            checkpoint_lsn: AtomicU64::new(state.lsn.0),
            checkpoints: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            sync_signal: Signal::default(),
            checkpoint_signal: Signal::default(),
            checkpoint_done: Signal::default(),
        });
        shared.request_checkpoint_if_due();
        if has_older {
            shared.request_checkpoint();
        }
        let threads = match options.background {
            Background::Threads => background::start(&shared)?,
            Background::Manual => Vec::new(),
        };
        let inner = StoreInner {
            shared,
            threads: Mutex::new(threads),
            folder_lock: Mutex::new(folder.map(|folder| folder.lock)),
        };
        Ok(Store(Arc::new(inner)))
    }
}

/// What tree and log have together.
struct Recovered {
    /// What the tree says about itself.
    state: TreeState,
    damaged: Arc<DamagedSpaces>,
    counters: SpaceTable<Counter>,
    next_space: u32,
    /// The newest commit.
    last_ts: CommitTs,
    /// The commits that the tree lacks.
    memtable: Arc<Memtable>,
    /// Those up to the last one that has spilled, the newest first.
    older: Vec<Arc<Memtable>>,
    /// The number of the next file that a transaction spills to.
    next_spill: u64,
    /// Files that something prepared may need.
    unclaimed_files: BTreeSet<u64>,
    /// `None` for a store in memory.
    log: Option<(LogFiles, LogTail)>,
}

/// Reads the tree's state, and replays the log from there.
fn recover(
    options: &Options,
    folder: Option<&OpenFolder<'_>>,
    tree: &Tree,
    tree_path: Option<&Path>,
) -> Result<Recovered> {
    let OpenedTree {
        state,
        counters,
        mut damaged,
    } = open_tree(tree, tree_path.unwrap_or(Path::new("")))?;
    damaged.checkpoint_read_tries = options.checkpoint_read_tries;
    let damaged = Arc::new(damaged);
    let mut replay = Replay {
        options,
        folder,
        damaged: &damaged,
        memtable: Arc::new(Memtable::after(state.ts)),
        older: Vec::new(),
        spill_files: BTreeSet::new(),
        counters: counters_of_tree(counters),
        next_space: state.next_space,
        last_ts: state.ts,
        end: state.lsn,
    };
    let mut next_spill = 1;
    let mut unclaimed_files = BTreeSet::new();
    let log = match folder {
        Some(folder) => {
            let log = replay_log(options, folder, state.lsn, &mut replay)?;
            // Also above those of files that are removed now.
            next_spill = spill::next_number(&*options.disk, folder.path, log.1.lsn())?;
            unclaimed_files =
                spill::remove_all_but(&*options.disk, folder.path, &replay.spill_files)?;
            Some(log)
        }
        None => None,
    };
    replay.memtable.publish(replay.last_ts);
    Ok(Recovered {
        state,
        counters: replay.counters,
        next_space: replay.next_space,
        last_ts: replay.last_ts,
        memtable: replay.memtable,
        older: replay.older,
        damaged,
        next_spill,
        unclaimed_files,
        log,
    })
}

/// The folder of a store, made if it is new; `None` for a store in memory.
fn open_folder(options: &Options) -> Result<Option<OpenFolder<'_>>> {
    match &options.location {
        Location::Path(path) => {
            create_folder_durably(&*options.disk, path)?;
            Ok(Some(OpenFolder {
                path,
                lock: lock_folder(&*options.disk, path)?,
                tree_file: first_start::open_tree_file(options, path)?,
            }))
        }
        Location::Memory => Ok(None),
    }
}

fn counters_of_tree(counters: Vec<(SpaceId, u64)>) -> SpaceTable<Counter> {
    let table = SpaceTable::new();
    for (space, value) in counters {
        let counter = Counter {
            value: value.into(),
            checkpointed: value.into(),
        };
        table.get_or_insert_with(space, || counter);
    }
    table
}

fn replay_log(
    options: &Options,
    folder: &OpenFolder<'_>,
    from: Lsn,
    replay: &mut Replay<'_>,
) -> Result<(LogFiles, LogTail)> {
    open_log(
        &options.disk,
        folder.path,
        folder.tree_file.id(),
        options.log_segment_bytes,
        from,
        |record| replay.apply(&record),
    )
}

/// Makes the folder and those above it, each on disk before the next.
fn create_folder_durably(disk: &dyn Disk, folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let found = disk.metadata(folder).map_err(Error::io("read", folder))?;
    if found == Some(Metadata::Folder) {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new(""));
    create_folder_durably(disk, parent)?;
    match disk.create_folder(folder) {
        Ok(()) => {}
        // Another process was faster; the lock decides which of them may use it.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Error::io("create", folder)(e)),
    }
    sync_folder(disk, current_if_empty(parent))
}

/// Makes this process the folder's only user.
fn lock_folder(disk: &dyn Disk, folder: &Path) -> Result<FolderLock> {
    let path = folder.join("LOCK");
    match disk.lock(&path).map_err(Error::io("lock", &path))? {
        LockOutcome::Held(lock) => Ok(lock),
        LockOutcome::InUse { pid } => Err(Error::InUse {
            path: folder.to_path_buf(),
            pid,
        }),
    }
}

/// Puts the commits of the log into memtables: one for each that has spilled, and one for those
/// between two of these.
struct Replay<'a> {
    options: &'a Options,
    folder: Option<&'a OpenFolder<'a>>,
    damaged: &'a Arc<DamagedSpaces>,
    memtable: Arc<Memtable>,
    /// The newest first.
    older: Vec<Arc<Memtable>>,
    /// The numbers of the files with what was spilled.
    spill_files: BTreeSet<u64>,
    counters: SpaceTable<Counter>,
    next_space: u32,
    last_ts: CommitTs,
    /// The position behind the last record.
    end: Lsn,
}

impl Replay<'_> {
    fn apply(&mut self, record: &Replayed<'_>) -> Result<()> {
        let ts = record.ts;
        if ts <= self.last_ts {
            let what = format!("commit {} follows commit {}", ts.0, self.last_ts.0);
            return Err(record.corrupt(what));
        }
        let mut places = Vec::new();
        for operation in decode(record.payload) {
            match operation.map_err(|what| record.corrupt(what))? {
                Operation::Run { file, place, up_to } => places.push((file, place, up_to)),
                // They come first.
                _ => break,
            }
        }
        if !places.is_empty() {
            let runs = Runs::open(&places, |number| self.open_spill_file(number))?;
            let next = Arc::new(Memtable::after(ts));
            self.begin_memtable(next);
            // Readers look at runs where the memtable has the space.
            for space in runs.spaces() {
                self.memtable.space(space);
                self.note_space(space);
            }
            self.memtable.set_runs(Arc::new(runs));
        }
        for operation in decode(record.payload) {
            self.apply_operation(ts, operation.map_err(|what| record.corrupt(what))?);
        }
        self.last_ts = ts;
        self.end = record.end;
        if !places.is_empty() {
            self.memtable.seal(ts, record.end);
            self.begin_memtable(Arc::new(Memtable::after(ts)));
        }
        Ok(())
    }

    fn apply_operation(&mut self, ts: CommitTs, operation: Operation<'_>) {
        let (space, write, net_rows) = match operation {
            Operation::Put { space, key, value } => (space, Some((key, Some(value))), 0),
            Operation::Delete { space, key } => (space, Some((key, None)), 0),
            Operation::Rows { space, net } => (space, None, net),
            Operation::Create { space } => (space, None, 0),
            Operation::Drop { space } => {
                self.memtable.space(space).drop_at(ts);
                (space, None, 0)
            }
            Operation::Counter { space, value } => {
                counter_of(&self.counters, space)
                    .value
                    .fetch_max(value, Ordering::Relaxed);
                return;
            }
            Operation::Run { .. } => return,
        };
        self.memtable.insert(space, ts, net_rows, write);
        self.note_space(space);
    }

    fn note_space(&mut self, space: SpaceId) {
        self.next_space = self.next_space.max(space.0.saturating_add(1));
    }

    /// Has later commits go to another memtable, which this one is older than.
    fn begin_memtable(&mut self, next: Arc<Memtable>) {
        let before = std::mem::replace(&mut self.memtable, next);
        if before.runs().is_none() {
            before.publish(self.last_ts);
            let _ = before.ends_at.set(self.end);
        }
        if !before.is_empty() {
            self.older.insert(0, before);
        }
    }

    fn open_spill_file(&mut self, number: u64) -> Result<Arc<SpillFile>> {
        let folder = self.folder.ok_or(Error::Closed)?;
        let disk = &self.options.disk;
        let open = |path: &Path| disk.open(path, OpenMode::Existing);
        let opened = spill::open_any(folder.path, number, open);
        let (file, path) = opened.map_err(|(error, path)| match error.kind() {
            io::ErrorKind::NotFound => {
                Error::corrupt(&path, 0, "it is missing, yet the log has a commit with it")
            }
            _ => Error::io("open", &path)(error),
        })?;
        self.spill_files.insert(number);
        let id = folder.tree_file.id();
        let (disk, damaged) = (Some(Arc::clone(disk)), Arc::clone(self.damaged));
        let file = SpillFile::committed(disk, file, path, number, id, damaged);
        Ok(Arc::new(file))
    }
}
