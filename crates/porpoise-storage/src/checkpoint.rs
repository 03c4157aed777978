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
//! time; commits go on into the log meanwhile. redb is opened anew then, since it gives itself up
//! after a failed write, reads included.
//!
//! **A fold that meets damage** in the pages of a space goes around it. The space is noted in the
//! table `damaged`, and what the fold would have written to it goes into a table beside it, `k7`
//! for space 7: `1` and the value for each row written, `0` for each row deleted. So the log can be
//! let go of, the other spaces go on, and `recover` finds what was acknowledged. Reads of such a
//! space are refused from then on, for what the tree has of it is out of date; a space that is
//! dropped is forgotten, though its pages are not freed. Damage to what all spaces share (the list
//! of tables, the lists of freed pages) ends all writing, while reads go on.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redb::{ReadableTable, WriteTransaction};
use smallvec::SmallVec;

use crate::base::{Base, definition, table_name};
use crate::disk::Found;
use crate::options::Background;
use crate::snapshot::Epoch;
use crate::store::{Counter, Shared};
use crate::tree::tables::{COUNTERS, DAMAGED, META};
use crate::tree::{DamagedSpaces, Tree};
use crate::tree_file::{CheckedFile, catch_damage, catch_panic};
use crate::versions::{Generation, SpaceVersions};
use crate::{CommitTs, DamagedPlace, Error, Lsn, Result, SpaceId, recovery};

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

/// What a start reads of the tree.
pub(crate) struct Opened {
    pub state: TreeState,
    pub counters: Vec<(SpaceId, u64)>,
    pub damaged: DamagedSpaces,
}

/// Reads the tree's state, its counters and which spaces are damaged; writes the state of a new
/// tree.
pub(crate) fn open_tree(tree: &Tree, path: &Path) -> Result<Opened> {
    let state = match catch_damage(|| read_state(tree, path))? {
        Some(state) => state,
        None => {
            let writing = tree.begin_write()?;
            write_state(&writing, TreeState::NEW)?;
            writing.commit()?;
            TreeState::NEW
        }
    };
    catch_damage(|| {
        let reading = tree.begin_read()?;
        let mut counters = Vec::new();
        each_row(reading.open_table(COUNTERS), |space, value| {
            counters.push((SpaceId(space), value));
        })?;
        let damaged = DamagedSpaces::default();
        each_row(reading.open_table(DAMAGED), |space, (offset, what)| {
            let space = SpaceId(space);
            let place = DamagedPlace {
                path: path.to_path_buf(),
                offset,
                what: what.to_string(),
                is_refused: false,
                space: Some(space),
                owner: None,
            };
            damaged.add(space, Error::Damaged(Arc::new(place)));
        })?;
        Ok(Opened {
            state,
            counters,
            damaged,
        })
    })
}

fn each_row<V: redb::Value + 'static>(
    table: Result<redb::ReadOnlyTable<u32, V>, redb::TableError>,
    mut row: impl FnMut(u32, V::SelfType<'_>),
) -> Result<()> {
    match table {
        Ok(table) => {
            for found in table.iter()? {
                let (key, value) = found?;
                row(key.value(), value.value());
            }
            Ok(())
        }
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// `None` for a tree that is new.
fn read_state(tree: &Tree, path: &Path) -> Result<Option<TreeState>> {
    let reading = tree.begin_read()?;
    let meta = match reading.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
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
    Ok(Some(TreeState {
        ts: CommitTs(number("ts")?),
        lsn: Lsn(number("lsn")?),
        next_space,
    }))
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
    let mut guard = shared.tree.lock();
    reopen_tree(shared, &mut guard)?;
    let tree = &mut *guard;
    if tree.is_none() {
        return Err(recovery::no_tree(shared));
    }
    // What an earlier, failed checkpoint left comes first.
    let did_work = fold_all(shared, tree)?;
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
    fold_oldest(shared, tree)
}

/// Opens the tree anew where redb has given it up, or an earlier try has failed.
pub(crate) fn reopen_tree(shared: &Shared, tree: &mut Option<Tree>) -> Result<()> {
    if shared.tree_file.is_none() || shared.is_stopping() || is_well(tree) {
        return Ok(());
    }
    renew(shared, tree)?;
    tracing::warn!("the tree is open again after its file had failed");
    Ok(())
}

/// Whether a tree is there, and redb hasn't given it up.
pub(crate) fn is_well(tree: &Option<Tree>) -> bool {
    let handle = tree.as_ref().map(Tree::handle);
    handle.is_some_and(|handle| handle.is_none_or(|handle| !handle.is_spent()))
}

/// Folds all generations that take no more commits. `false` means that there was none.
pub(crate) fn fold_all(shared: &Shared, tree: &mut Option<Tree>) -> Result<bool> {
    let mut did_work = false;
    while fold_oldest(shared, tree)? {
        did_work = true;
    }
    Ok(did_work)
}

/// Folds the oldest generation, if it takes no more commits.
fn fold_oldest(shared: &Shared, tree: &mut Option<Tree>) -> Result<bool> {
    // The epoch itself is let go of: whoever has one counts as a reader of its base.
    let (oldest, newer) = match shared.epoch.load().generations.split_last() {
        Some((oldest, newer)) if !newer.is_empty() => (Arc::clone(oldest), SmallVec::from(newer)),
        _ => return Ok(false),
    };
    refuse_without_room(shared, &oldest)?;
    let lsn = oldest.ends_at.get().copied().unwrap_or(Lsn(0));
    let state = TreeState {
        ts: oldest.visible(),
        lsn,
        next_space: shared.next_space.load(Ordering::Relaxed),
    };
    fold_around_damage(shared, tree, &oldest, state)?;
    shared.folded_ts.store(state.ts.0, Ordering::Release);
    // The tree may have been opened anew meanwhile.
    let epoch = shared.epoch.load_full();
    let base = epoch.base.after(tree.as_ref().ok_or(Error::Closed)?)?;
    shared.epoch.store(Arc::new(Epoch {
        generations: epoch.generations.clone(),
        base: Arc::clone(&base),
        is_oldest_in_tree: true,
    }));
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

/// Folds a generation. Spaces that turn out to be damaged are gone around.
fn fold_around_damage(
    shared: &Shared,
    tree: &mut Option<Tree>,
    generation: &Generation,
    state: TreeState,
) -> Result<()> {
    loop {
        let at_work = tree.as_ref().ok_or(Error::Closed)?;
        let Failed { error, space } = match fold(shared, at_work, generation, state) {
            Ok(()) => {
                shared.damaged.note_fold();
                return Ok(());
            }
            Err(failed) => failed,
        };
        if let Err(why) = renew(shared, tree) {
            if matches!(why, Error::Damaged(_)) {
                shared.group.fail(why.clone());
            }
            return Err(why);
        }
        match (&error, space) {
            // What the disk refuses to read now it may give later.
            (Error::Damaged(place), _) if place.is_refused && shared.damaged.may_pass() => {
                return Err(error);
            }
            (Error::Damaged(_), Some(space)) if !shared.damaged.has(space) => {
                tracing::error!(%error, space = space.0, "a checkpoint goes around a damaged space");
                let error = shared.damaged.met(error.clone(), space);
                shared.damaged.add(space, error);
            }
            (Error::Damaged(_), _) => {
                // No checkpoint can be made, so no more is to be acknowledged.
                shared.group.fail(error.clone());
                return Err(error);
            }
            _ => return Err(error),
        }
    }
}

/// Opens the tree anew after a fold that failed.
fn renew(shared: &Shared, tree: &mut Option<Tree>) -> Result<()> {
    if shared.tree_file.is_some() {
        if let Some(failed) = tree.take() {
            failed.abandon();
        }
        *tree = open_again(shared)?;
    }
    Ok(())
}

/// Opens the tree over its file, and has readers read from it.
fn open_again(shared: &Shared) -> Result<Option<Tree>> {
    let Some(file) = &shared.tree_file else {
        return Ok(None);
    };
    let opened = open_over(shared, file);
    if let Err(error) = &opened
        && shared.damaged.of_all().is_none()
    {
        tracing::error!(%error, "the tree can't be opened anew; what isn't in memory can't be read");
    }
    shared.damaged.note_of_all(opened.as_ref().err().cloned());
    opened.map(Some)
}

fn open_over(shared: &Shared, file: &Arc<CheckedFile>) -> Result<Tree> {
    let tree = Tree::open(Some(file), shared.tree_cache_bytes)?;
    let path = shared.tree_path.as_deref().unwrap_or(Path::new(""));
    let state = catch_damage(|| read_state(&tree, path))?;
    let epoch = shared.epoch.load_full();
    // The fold may have failed after its commit: then older snapshots can't go on here.
    let is_same = state.is_some_and(|s| s.ts.0 == shared.folded_ts.load(Ordering::Acquire));
    let base = match is_same {
        true => epoch.base.over(&tree)?,
        false => epoch.base.after(&tree)?,
    };
    shared.epoch.store(Arc::new(Epoch {
        generations: epoch.generations.clone(),
        base,
        is_oldest_in_tree: epoch.is_oldest_in_tree,
    }));
    Ok(tree)
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

/// Why a fold failed, and in which space, if it was in one.
struct Failed {
    error: Error,
    space: Option<SpaceId>,
}

impl<E: Into<Error>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed {
            error: error.into(),
            space: None,
        }
    }
}

fn fold(
    shared: &Shared,
    tree: &Tree,
    generation: &Generation,
    state: TreeState,
) -> Result<(), Failed> {
    let mut space_at_work = None;
    let folded = catch_panic(|| {
        let writing = tree.begin_write()?;
        for (space, versions) in generation.spaces.iter() {
            match shared.damaged.get(space) {
                None => fold_space(&writing, space, versions, &mut space_at_work)?,
                Some(error) => keep_beside(&writing, space, versions, &error)?,
            }
        }
        let counters = fold_counters(shared, &writing)?;
        write_state(&writing, state)?;
        writing.commit()?;
        Ok(counters)
    });
    let counters = folded.map_err(|error| Failed {
        error,
        space: space_at_work,
    })?;
    for (space, value) in counters {
        let counter: Option<&Counter> = shared.counters.get(space);
        if let Some(counter) = counter {
            counter.folded.fetch_max(value, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Writes a space's newest rows. While it is at the space's own pages, `at_work` says so.
fn fold_space(
    writing: &WriteTransaction,
    space: SpaceId,
    versions: &SpaceVersions,
    at_work: &mut Option<SpaceId>,
) -> Result<()> {
    let name = table_name(space);
    if versions.is_dropped_ever() {
        *at_work = Some(space);
        writing.delete_table(definition(&name))?;
        *at_work = None;
        return Ok(());
    }
    // This looks into the list of tables only.
    let mut table = writing.open_table(definition(&name))?;
    *at_work = Some(space);
    for (key, value) in versions.newest() {
        match value {
            Some(value) => table.insert(key, value)?,
            None => table.remove(key)?,
        };
    }
    *at_work = None;
    Ok(())
}

/// Puts a damaged space's newest rows beside it.
fn keep_beside(
    writing: &WriteTransaction,
    space: SpaceId,
    versions: &SpaceVersions,
    error: &Error,
) -> Result<()> {
    if let Error::Damaged(place) = error {
        let mut damaged = writing.open_table(DAMAGED)?;
        damaged.insert(space.0, (place.offset, place.what.as_str()))?;
    }
    let name = kept_name(space);
    if versions.is_dropped_ever() {
        writing.delete_table(definition(&name))?;
        return Ok(());
    }
    let mut kept = writing.open_table(definition(&name))?;
    let mut row = Vec::new();
    for (key, value) in versions.newest() {
        row.clear();
        row.push(u8::from(value.is_some()));
        row.extend_from_slice(value.unwrap_or_default());
        kept.insert(key, &row[..])?;
    }
    Ok(())
}

/// Where the rows are that a damaged space can't take.
pub(crate) fn kept_name(space: SpaceId) -> String {
    format!("k{}", space.0)
}

fn fold_counters(shared: &Shared, writing: &WriteTransaction) -> Result<Vec<(SpaceId, u64)>> {
    let mut folded = Vec::new();
    let mut counters = writing.open_table(COUNTERS)?;
    for (space, counter) in shared.counters.iter() {
        let value = counter.value.load(Ordering::Acquire);
        if value > counter.folded.load(Ordering::Relaxed) {
            counters.insert(space.0, value)?;
            folded.push((space, value));
        }
    }
    Ok(folded)
}
