//! Moving versions from memory into the B-tree, and letting go of the log before them.
//!
//! ```text
//! 1. start the next generation    epoch: [next, old] over tree₁   commits go to `next`
//! 2. fold `old` into redb, one redb transaction: the newest version of each key, the counters,
//!    and the position in the log that is reached with them
//! 3. open tree₂                   epoch: [next, old] over tree₂   the blocks in memory are still those of tree₁
//! 4. bring the blocks up to date  epoch: [next] over tree₂        new snapshots no longer need `old`
//! 5. drop log segments before that position
//! ```
//!
//! Between 3 and 4 a block may lack what `old` wrote, or have it: readers find it in `old` before they come to the blocks.
//! Blocks are brought up to date when those who read from tree₁ are through, as a rule, and each that is replaced
//! is freed at once.
//!
//! Writers wait only in step 1, for one turn at the log. If the machine stops before redb's commit
//! in step 2, the log still has it all; after it, redb has, and the log is read from the position
//! written beside it. redb saves its allocator's state with each of these commits, so that opening
//! it again after a crash takes no walk through the file.
//!
//! A fold that fails (the disk is full) leaves the generation where it is, to be folded the next
//! time; commits go on into the log meanwhile.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use smallvec::SmallVec;

use crate::base::{Base, definition, table_name};
use crate::disk::Found;
use crate::options::Background;
use crate::snapshot::Epoch;
use crate::store::{Counter, Shared};
use crate::versions::Generation;
use crate::{CommitTs, Error, Lsn, Result, SpaceId, recovery};

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const COUNTERS: TableDefinition<u32, u64> = TableDefinition::new("counters");

const FORMAT_VERSION: u64 = 1;

/// How long a checkpoint waits for statements that were under way before it replaces the blocks that they read.
const READERS_AWAITED: Duration = Duration::from_millis(20);

/// What the tree says about itself: where the log takes over, and what is numbered from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeState {
    pub ts: CommitTs,
    pub lsn: Lsn,
    pub next_space: u32,
}

impl TreeState {
    const NEW: TreeState = TreeState {
        ts: CommitTs(0),
        lsn: Lsn(0),
        next_space: 1,
    };
}

/// Reads the tree's state and its counters; writes the state of a new tree.
pub(crate) fn open_tree(
    database: &redb::Database,
    path: &std::path::Path,
) -> Result<(TreeState, Vec<(SpaceId, u64)>)> {
    let reading = database.begin_read()?;
    let meta = match reading.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => {
            let writing = begin(database)?;
            write_state(&writing, TreeState::NEW)?;
            writing.commit()?;
            return Ok((TreeState::NEW, Vec::new()));
        }
        Err(e) => return Err(e.into()),
    };
    let number =
        |name: &str| -> Result<u64> { Ok(meta.get(name)?.map(|found| found.value()).unwrap_or(0)) };
    let found = number("format_version")?;
    if found > FORMAT_VERSION {
        return Err(Error::NewerFormat {
            path: path.to_path_buf(),
            found: u32::try_from(found).unwrap_or(u32::MAX),
            supported: FORMAT_VERSION as u32,
        });
    }
    let next_space = u32::try_from(number("next_space")?).map_err(|_| Error::Corrupt {
        path: path.to_path_buf(),
        offset: 0,
        what: "the number of the next space is out of range".to_string(),
    })?;
    let state = TreeState {
        ts: CommitTs(number("ts")?),
        lsn: Lsn(number("lsn")?),
        next_space,
    };
    let mut counters = Vec::new();
    match reading.open_table(COUNTERS) {
        Ok(table) => {
            for row in table.iter()? {
                let (space, value) = row?;
                counters.push((SpaceId(space.value()), value.value()));
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(e) => return Err(e.into()),
    }
    Ok((state, counters))
}

fn begin(database: &redb::Database) -> Result<redb::WriteTransaction> {
    let mut writing = database.begin_write()?;
    writing.set_quick_repair(true);
    Ok(writing)
}

fn write_state(writing: &redb::WriteTransaction, state: TreeState) -> Result<()> {
    let mut meta = writing.open_table(META)?;
    meta.insert("format_version", FORMAT_VERSION)?;
    meta.insert("ts", state.ts.0)?;
    meta.insert("lsn", state.lsn.0)?;
    meta.insert("next_space", u64::from(state.next_space))?;
    Ok(())
}

/// Runs one checkpoint. `false` means that there was nothing to do.
pub(crate) fn run(shared: &Shared) -> Result<bool> {
    let mut guard = shared.database.lock();
    recovery::reopen_tree(shared, &mut guard)?;
    let database = guard.as_ref().ok_or_else(|| recovery::no_tree(shared))?;
    // What an earlier, failed checkpoint left comes first.
    let did_work = fold_all(shared, database)?;
    let newest = Arc::clone(shared.epoch.load().newest());
    if newest.is_untouched() && !shared.has_new_counters() && shared.group.is_empty() {
        return Ok(did_work);
    }
    shared.group.check_writable()?;
    shared.group.start_generation(shared, |next| {
        let epoch = shared.epoch.load();
        let generations = std::iter::once(next)
            .chain(epoch.generations.iter().cloned())
            .collect();
        shared.epoch.store(Arc::new(Epoch {
            generations,
            base: Arc::clone(&epoch.base),
            is_oldest_in_tree: false,
        }));
    })?;
    fold_oldest(shared, database)
}

/// Folds all generations that take no more commits. `false` means that there was none.
pub(crate) fn fold_all(shared: &Shared, database: &redb::Database) -> Result<bool> {
    let mut did_work = false;
    while fold_oldest(shared, database)? {
        did_work = true;
    }
    Ok(did_work)
}

/// Folds the oldest generation, if it takes no more commits.
fn fold_oldest(shared: &Shared, database: &redb::Database) -> Result<bool> {
    let epoch = shared.epoch.load_full();
    let Some((oldest, newer)) = epoch.generations.split_last() else {
        return Ok(false);
    };
    if newer.is_empty() {
        return Ok(false);
    }
    refuse_without_room(shared, oldest)?;
    let lsn = oldest.ends_at.get().copied().unwrap_or(Lsn(0));
    let ts = oldest.visible();
    let next_space = shared.next_space.load(Ordering::Relaxed);
    fold(
        shared,
        database,
        oldest,
        TreeState {
            ts,
            lsn,
            next_space,
        },
    )?;
    let base = epoch.base.after(database)?;
    shared.epoch.store(Arc::new(Epoch {
        generations: epoch.generations.clone(),
        base: Arc::clone(&base),
        is_oldest_in_tree: true,
    }));
    let (oldest, newer) = (Arc::clone(oldest), SmallVec::from(newer));
    let before = Arc::downgrade(&epoch.base);
    drop(epoch);
    wait_for_readers(shared, &before);
    base.bring_up_to_date(&oldest);
    shared.epoch.store(Arc::new(Epoch {
        generations: newer,
        base,
        is_oldest_in_tree: false,
    }));
    shared.note_fold(lsn);
    drop_log_before(shared, lsn)?;
    Ok(true)
}

/// Removes the segments before the position, without holding up who writes to the log.
fn drop_log_before(shared: &Shared, lsn: Lsn) -> Result<()> {
    let Some(retired) = shared.group.with_files(|files| files.retire_before(lsn)) else {
        return Ok(());
    };
    let has_spare = retired.has_spare();
    let (spare, outcome) = match retired.remove() {
        Ok(spare) => (spare, Ok(())),
        Err(error) => (None, Err(error)),
    };
    if has_spare {
        shared.group.with_files(|files| files.adopt_spare(spare));
    }
    outcome
}

/// Waits for those who read from a base, for a moment.
fn wait_for_readers(shared: &Shared, base: &Weak<Base>) {
    if shared.background == Background::Manual {
        return;
    }
    let deadline = Instant::now() + READERS_AWAITED;
    while base.strong_count() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Fails early if the disk has less room than the fold may take. redb gives itself up after a failed
/// write, reads included, so a full disk must not be found out by trying.
fn refuse_without_room(shared: &Shared, generation: &Generation) -> Result<()> {
    const PAGE_BYTES: u64 = 4096;
    let Some(tree) = &shared.tree_path else {
        return Ok(());
    };
    let tree_bytes = match shared.disk.find(tree) {
        Ok(Some(Found::File { len })) => len,
        _ => 0,
    };
    // Each key's page is written anew, a page at most, the whole tree at most; and what is new.
    let pages = generation
        .entries()
        .saturating_mul(2 * PAGE_BYTES)
        .min(tree_bytes);
    let needed = pages + 2 * generation.bytes() + (1 << 20);
    let free = shared.disk.free_bytes(tree);
    if free.is_some_and(|free| free < needed) {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        return Err(Error::io("make room for a checkpoint in", tree)(full));
    }
    Ok(())
}

fn fold(
    shared: &Shared,
    database: &redb::Database,
    generation: &Generation,
    state: TreeState,
) -> Result<()> {
    let writing = begin(database)?;
    for (space, versions) in generation.spaces.iter() {
        let name = table_name(space);
        if versions.is_dropped_ever() {
            writing.delete_table(definition(&name))?;
            continue;
        }
        let mut table = writing.open_table(definition(&name))?;
        for (key, value) in versions.newest() {
            match value {
                Some(value) => table.insert(key, value)?,
                None => table.remove(key)?,
            };
        }
    }
    let mut folded_counters = Vec::new();
    {
        let mut counters = writing.open_table(COUNTERS)?;
        for (space, counter) in shared.counters.iter() {
            let value = counter.value.load(Ordering::Acquire);
            if value > counter.folded.load(Ordering::Relaxed) {
                counters.insert(space.0, value)?;
                folded_counters.push((space, value));
            }
        }
    }
    write_state(&writing, state)?;
    writing.commit()?;
    for (space, value) in folded_counters {
        let counter: Option<&Counter> = shared.counters.get(space);
        if let Some(counter) = counter {
            counter.folded.fetch_max(value, Ordering::Relaxed);
        }
    }
    Ok(())
}
