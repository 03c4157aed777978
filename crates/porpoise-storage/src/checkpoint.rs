//! Checkpoints: merging versions from memory into the B-tree, and dropping the log before them.
//!
//! ```text
//! 1. switch to the next memtable  epoch: [next, old] over tree₁   commits go to `next`
//! 2. merge `old` into redb, in one redb transaction: the newest version of each key, the counters,
//!    and the position in the log up to which the tree has everything
//! 3. open tree₂                   epoch: [next, old] over tree₂   the blocks are still those of tree₁
//! 4. refresh the blocks           epoch: [next] over tree₂        new snapshots no longer need `old`
//! 5. drop log segments before that position
//! ```
//!
//! Between 3 and 4 a block may lack what `old` wrote, or have it: readers find it in `old` before
//! they come to the blocks. The blocks are refreshed when the readers of tree₁ have finished, as a
//! rule, and each block that is replaced is freed at once.
//!
//! Writers wait only in step 1, for one turn at the log. If the machine stops before redb's commit
//! in step 2, the log still has it all; after it, redb has, and the log is read from the position
//! written in the same transaction. redb saves its allocator's state with each of these commits, so
//! that opening it after a crash takes no scan of the file.
//!
//! A merge that fails (the disk is full) leaves the memtable where it is, to be merged the next
//! time; commits go on into the log meanwhile. redb is opened anew then, since it fails every
//! operation after a failed write, reads included.
//!
//! **What a transaction has spilled** is written in slices, a redb transaction each of what redb's
//! cache holds, before the one with the position in the log. Before the first all of it is read, and
//! verified: where a part can't be, the tree stays as it is, readers go on with it, and the checkpoint
//! is tried again, less and less often. A tree with some of them is no moment that anybody may see: all that
//! take snapshots by then have the whole commit above it, those before have the tree before it, and a
//! start finds the commit in the log, which has it on disk. So readers go on with the tree of the last
//! slice, and redb writes the next slices where the pages were that it has replaced: the file keeps one state of
//! the rows, not two. A tree that has to be opened anew
//! meanwhile is none that earlier snapshots can go on with.
//!
//! **A merge that meets damage** in the pages of a space goes around it. The space is noted in the
//! table `damaged`, and what the merge would have written to it goes into a side table, `k7` for
//! space 7: `1` and the value for each row written, `0` for each row deleted. So the log can be
//! dropped, the other spaces go on, and `recover` finds what was acknowledged. Reads of such a
//! space fail from then on, for what the tree has of it is out of date; a space that is dropped is
//! forgotten, though its pages are not freed. Damage to what all spaces share (the list of tables,
//! the lists of freed pages) ends all writing, while reads go on.

mod ascending;
mod merge;
mod pace;
mod put_in_place;
mod shrink;
mod tree_state;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::commit::Commit;
use crate::disk::Metadata;
use crate::group_commit::{Durability, NewMemtables, Writing};
use crate::memtable::Memtable;
use crate::options::Background;
use crate::snapshot::Epoch;
use crate::store::Shared;
use crate::tree::Tree;
use crate::tree_file::{CheckedFile, catch_damage, catch_panic};
use crate::tree_snapshot::{LensBefore, TreeSnapshot, definition, table_name};
use crate::{Error, Lsn, Result, SpaceId, recovery};
use ascending::Ascending;
use merge::{MergeError, merge};
use tree_state::read_state;

pub(crate) use merge::side_table_name;
pub(crate) use pace::Pace;
pub(crate) use put_in_place::put_in_place;
pub(crate) use shrink::{ROUNDS_MAX, Shrinking, is_file_too_long, shrink};
pub(crate) use tree_state::{OpenedTree, TreeState, open_tree};

/// How long a checkpoint waits for statements that began before it, until it replaces the blocks
/// that they read.
const READERS_AWAITED: Duration = Duration::from_millis(20);

/// Runs one checkpoint. `false` means that there was nothing to do.
pub(crate) fn run(shared: &Shared) -> Result<bool> {
    let _hurry = shared.pace.hurry();
    run_in_background(shared)
}

/// Runs one checkpoint, at a pace that leaves others room.
pub(crate) fn run_in_background(shared: &Shared) -> Result<bool> {
    let mut guard = shared.tree.lock();
    reopen_if_failed(shared, &mut guard)?;
    let tree = &mut *guard;
    if tree.is_none() {
        return Err(recovery::no_tree(shared));
    }
    // What an earlier, failed checkpoint left comes first.
    let did_work = merge_all(shared, tree)?;
    let newest = Arc::clone(shared.epoch.load().newest());
    let is_needed = !newest.is_empty()
        || shared.has_new_counters()
        || !shared.group.is_idle()
        || shared.group.can_leave_segment();
    if !is_needed {
        return Ok(did_work);
    }
    switch_memtable(shared)?;
    merge_oldest(shared, tree)
}

/// Lets commits go to the next memtable.
fn switch_memtable(shared: &Shared) -> Result<()> {
    switch_memtable_over(shared, None)
}

/// Lets commits go to the next memtable, above another tree if one is given.
fn switch_memtable_over(shared: &Shared, tree: Option<&Arc<TreeSnapshot>>) -> Result<()> {
    shared.group.check_writable()?;
    shared.group.switch_memtable(shared, |next| {
        let epoch = shared.epoch.load();
        let memtables = std::iter::once(next)
            .chain(epoch.memtables.iter().cloned())
            .collect();
        shared.epoch.store(Arc::new(Epoch {
            memtables,
            tree: Arc::clone(tree.unwrap_or(&epoch.tree)),
            is_oldest_merged: false,
        }));
    })
}

/// Commits a transaction whose writes are a memtable of their own: readers come to know it as it is.
///
/// # Errors
/// As those of [`GroupCommit::hand_over`](crate::group_commit::GroupCommit::hand_over).
pub(crate) fn hand_over(
    shared: &Arc<Shared>,
    writing: Writing,
    own: Arc<Memtable>,
    durability: Durability,
) -> Result<Commit> {
    let _hurry = shared.pace.hurry();
    let _tree = shared.tree.lock();
    let publish = |new: NewMemtables| {
        let epoch = shared.epoch.load();
        let older = epoch.memtables.iter().skip(1).cloned();
        let before = (!new.before.is_empty()).then_some(new.before);
        shared.epoch.store(Arc::new(Epoch {
            memtables: [new.next, new.own]
                .into_iter()
                .chain(before)
                .chain(older)
                .collect(),
            tree: Arc::clone(&epoch.tree),
            is_oldest_merged: false,
        }));
    };
    let group = &shared.group;
    let file = own.runs().and_then(|runs| runs.file());
    let commit = group.hand_over(shared, writing, own, durability, publish)?;
    match file {
        // Of the record a part may be on disk, or all of it, until the log's tail is written anew.
        Some(file) if !commit.is_durable() => shared.lost_files.lock().push(file),
        _ => {}
    }
    shared.request_checkpoint();
    Ok(commit)
}

/// Writes rows into a space that nobody reads, beside the log, in one redb transaction. Their keys
/// ascend, and have so many bytes with their values. Nothing is written once `is_over` is set.
pub(crate) fn load<'r>(
    shared: &Shared,
    space: SpaceId,
    bytes: u64,
    rows: impl Iterator<Item = (&'r [u8], &'r [u8])>,
    is_over: &AtomicBool,
) -> Result<()> {
    let _hurry = shared.pace.hurry();
    let mut guard = shared.tree.lock();
    reopen_if_failed(shared, &mut guard)?;
    let tree = guard.as_ref().ok_or_else(|| recovery::no_tree(shared))?;
    shared.loads.fetch_add(1, Ordering::Relaxed);
    check_disk_space(shared, 0, bytes)?;
    let written = catch_panic(|| {
        let writing = tree.begin_write()?;
        let name = table_name(space);
        let mut table = writing.open_table(definition(&name))?;
        let mut written = Ascending::new(&mut table, None)?;
        for (key, value) in rows {
            if is_over.load(Ordering::SeqCst) {
                drop(written);
                drop(table);
                writing.abort()?;
                return Ok(false);
            }
            written.put(key, Some(value))?;
        }
        written.finish()?;
        drop(table);
        writing.commit()?;
        Ok(true)
    });
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Interrupted),
        Err(error) => {
            reopen_or_fail(shared, &mut guard)?;
            Err(error)
        }
    }
}

/// Lets readers see what [`load`] has written: first the tree, then a memtable for the commit that
/// tells them of it.
pub(crate) fn show_loaded(shared: &Shared, space: SpaceId) -> Result<()> {
    let _hurry = shared.pace.hurry();
    let mut guard = shared.tree.lock();
    reopen_if_failed(shared, &mut guard)?;
    let tree = &mut *guard;
    merge_all(shared, tree)?;
    let loaded = tree.as_ref().ok_or_else(|| recovery::no_tree(shared))?;
    let epoch = shared.epoch.load_full();
    let snapshot = epoch.tree.after_load(loaded, &[space])?;
    shared.epoch.store(Arc::new(Epoch {
        memtables: epoch.memtables.clone(),
        tree: snapshot,
        is_oldest_merged: epoch.is_oldest_merged,
    }));
    drop(epoch);
    switch_memtable(shared)?;
    merge_oldest(shared, tree).map(|_| ())
}

/// Lets readers read from the tree as it is now, which has the same rows as before.
fn show_tree(shared: &Shared, tree: &Tree) -> Result<()> {
    let epoch = shared.epoch.load_full();
    let before = Arc::downgrade(&epoch.tree);
    show_part(shared, tree, epoch.tree.lens_before())?;
    drop(epoch);
    wait_for_readers(shared, &before);
    Ok(())
}

/// Lets readers read from the tree as it is now: all that differs from before is in a memtable, too. These
/// spaces had so many rows before the memtable's were written to them.
fn show_part(shared: &Shared, tree: &Tree, lens: &LensBefore) -> Result<()> {
    let epoch = shared.epoch.load_full();
    shared.epoch.store(Arc::new(Epoch {
        memtables: epoch.memtables.clone(),
        tree: epoch.tree.after_part(tree, lens)?,
        is_oldest_merged: epoch.is_oldest_merged,
    }));
    Ok(())
}

/// Opens the tree anew if redb has failed, or an earlier try to open it has.
pub(crate) fn reopen_if_failed(shared: &Shared, tree: &mut Option<Tree>) -> Result<()> {
    if shared.tree_file.is_none() || shared.is_stopping() || is_usable(tree) {
        return Ok(());
    }
    reopen(shared, tree)?;
    tracing::warn!("the tree is open again after its file had failed");
    Ok(())
}

/// Whether the tree is open, and redb hasn't failed.
pub(crate) fn is_usable(tree: &Option<Tree>) -> bool {
    let database_state = tree.as_ref().map(Tree::database_state);
    database_state.is_some_and(|database_state| {
        database_state.is_none_or(|database_state| !database_state.is_unusable())
    })
}

/// Merges all memtables that take no more commits. `false` means that there was none.
pub(crate) fn merge_all(shared: &Shared, tree: &mut Option<Tree>) -> Result<bool> {
    let mut did_work = false;
    while merge_oldest(shared, tree)? {
        did_work = true;
    }
    Ok(did_work)
}

/// Merges the oldest memtable, if it takes no more commits. `false` means that it takes some.
fn merge_oldest(shared: &Shared, tree: &mut Option<Tree>) -> Result<bool> {
    // The epoch itself is dropped here: its holder would count as a reader of its tree.
    let (oldest, newer) = match shared.epoch.load().memtables.split_last() {
        Some((oldest, newer)) if !newer.is_empty() => (Arc::clone(oldest), SmallVec::from(newer)),
        _ => return Ok(false),
    };
    // Each key's page is written anew, a page at most. What was spilled needs room slice by slice.
    let (keys, bytes) = match oldest.runs() {
        Some(runs) => (oldest.entries() - runs.entries(None), oldest.bytes()),
        None => (oldest.entries(), oldest.total_bytes()),
    };
    check_disk_space(shared, keys, bytes)?;
    let lsn = oldest.ends_at.get().copied().unwrap_or(Lsn(0));
    let state = TreeState {
        ts: oldest.visible(),
        lsn,
        next_space: shared.next_space.load(Ordering::Relaxed),
    };
    merge_around_damage(shared, tree, &oldest, state)?;
    shared.pace.note_written();
    shared.checkpoint_ts.store(state.ts.0, Ordering::Release);
    // The tree may have been opened anew meanwhile.
    let epoch = shared.epoch.load_full();
    let next = tree.as_ref().ok_or(Error::Closed)?;
    let snapshot = epoch.tree.after_checkpoint(next)?;
    shared.epoch.store(Arc::new(Epoch {
        memtables: epoch.memtables.clone(),
        tree: Arc::clone(&snapshot),
        is_oldest_merged: true,
    }));
    let before = Arc::downgrade(&epoch.tree);
    drop(epoch);
    wait_for_readers(shared, &before);
    snapshot.refresh_blocks(&oldest);
    shared.count_changes(&oldest);
    shared.epoch.store(Arc::new(Epoch {
        memtables: newer,
        tree: snapshot,
        is_oldest_merged: false,
    }));
    shared.pace.note_done(shared.fill_of_newest());
    shared.note_checkpoint(lsn);
    if let Some(runs) = oldest.runs() {
        runs.forget_file();
    }
    drop_log_before(shared, lsn)?;
    if before.strong_count() == 0 && oldest.total_bytes() > shared.memtable_bytes() as u64 / 2 {
        free_pages(shared, tree)?;
    }
    Ok(true)
}

/// Has redb free the pages that no reader needs any more. It does so when a commit ends: without
/// this the next merge could not use them yet, and the file would have room for one state of the
/// rows more.
fn free_pages(shared: &Shared, tree: &mut Option<Tree>) -> Result<()> {
    let in_progress = tree.as_ref().ok_or(Error::Closed)?;
    let freed = catch_panic(|| Ok(in_progress.begin_write()?.commit()?));
    if freed.is_err() {
        reopen_or_fail(shared, tree)?;
    }
    freed
}

/// Merges a memtable, going around spaces that turn out to be damaged.
fn merge_around_damage(
    shared: &Shared,
    tree: &mut Option<Tree>,
    memtable: &Memtable,
    state: TreeState,
) -> Result<()> {
    loop {
        let in_progress = tree.as_ref().ok_or(Error::Closed)?;
        let MergeError {
            error,
            space,
            is_of_source,
        } = match merge(shared, in_progress, memtable, state) {
            Ok(()) => {
                shared.damaged.note_checkpoint();
                return Ok(());
            }
            Err(failed) => failed,
        };
        if is_of_source {
            return Err(error);
        }
        reopen_or_fail(shared, tree)?;
        match (&error, space) {
            // What the disk can't read now it may read later.
            (Error::Damaged(place), _)
                if place.is_unreadable && shared.damaged.may_retry_reads() =>
            {
                return Err(error);
            }
            (Error::Damaged(_), Some(space)) if !shared.damaged.has(space) => {
                tracing::error!(%error, space = space.0, "a checkpoint goes around a damaged space");
                let error = shared.damaged.attribute(error.clone(), space);
                shared.damaged.add(space, error);
            }
            (Error::Damaged(_), _) => {
                // No checkpoint can be made, so no more is to be acknowledged.
                shared.group.fail(error.clone(), &shared.locks);
                return Err(error);
            }
            _ => return Err(error),
        }
    }
}

/// Opens the tree anew after a write that failed. Writing ends if it is damaged.
fn reopen_or_fail(shared: &Shared, tree: &mut Option<Tree>) -> Result<()> {
    let reopened = reopen(shared, tree);
    if let Err(why @ Error::Damaged(_)) = &reopened {
        shared.group.fail(why.clone(), &shared.locks);
    }
    reopened
}

/// Opens the tree anew after a write that failed.
fn reopen(shared: &Shared, tree: &mut Option<Tree>) -> Result<()> {
    if shared.tree_file.is_some() {
        if let Some(failed) = tree.take() {
            failed.abandon();
        }
        *tree = open_anew(shared)?;
    }
    Ok(())
}

/// Opens the tree over its file, and makes readers read from it.
fn open_anew(shared: &Shared) -> Result<Option<Tree>> {
    let Some(file) = &shared.tree_file else {
        return Ok(None);
    };
    let opened = open_over(shared, file);
    if let Err(error) = &opened
        && shared.damaged.whole_tree().is_none()
    {
        tracing::error!(%error, "the tree can't be opened anew; what isn't in memory can't be read");
    }
    shared
        .damaged
        .set_whole_tree(opened.as_ref().err().cloned());
    opened.map(Some)
}

fn open_over(shared: &Shared, file: &Arc<CheckedFile>) -> Result<Tree> {
    let tree = Tree::open(Some(file), shared.tree_cache_bytes)?;
    let path = shared.tree_path.as_deref().unwrap_or(Path::new(""));
    let state = catch_damage(|| read_state(&tree, path))?;
    let epoch = shared.epoch.load_full();
    // The merge may have failed after its commit: then older snapshots can't go on with this tree.
    let is_same = state.is_some_and(|s| s.ts.0 == shared.checkpoint_ts.load(Ordering::Acquire))
        && !shared.is_partly_merged.load(Ordering::Acquire);
    let snapshot = match is_same {
        true => epoch.tree.after_reopening(&tree)?,
        false => epoch.tree.after_part(&tree, epoch.tree.lens_before())?,
    };
    shared.epoch.store(Arc::new(Epoch {
        memtables: epoch.memtables.clone(),
        tree: snapshot,
        is_oldest_merged: epoch.is_oldest_merged,
    }));
    Ok(tree)
}

/// Removes the segments before the position, without holding up writers of the log.
fn drop_log_before(shared: &Shared, lsn: Lsn) -> Result<()> {
    let Some(retired) = shared.group.with_files(|files| files.retire_before(lsn)) else {
        return Ok(());
    };
    let has_recycled = retired.has_recycled();
    let (spare, outcome) = match retired.remove() {
        Ok(spare) => (spare, Ok(())),
        Err(error) => (None, Err(error)),
    };
    if has_recycled {
        shared
            .group
            .with_files(|files| files.finish_preallocation(spare));
    }
    outcome
}

/// Waits a moment for the readers of a tree snapshot to finish.
fn wait_for_readers(shared: &Shared, snapshot: &Weak<TreeSnapshot>) {
    if shared.background == Background::Manual {
        return;
    }
    let deadline = Instant::now() + READERS_AWAITED;
    while snapshot.strong_count() > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Fails if the disk has too little room for a transaction to write more to its file: for what it is to
/// write, for the tree that is to have it and what was written before, and beside these for the log and
/// a checkpoint, so that others can go on.
pub(crate) fn check_room_to_spill(shared: &Shared, bytes: u64, spilled: u64) -> Result<()> {
    let Some(tree) = &shared.tree_path else {
        return Ok(());
    };
    let reserve = shared.group.log_reserve() + 2 * shared.memtable_bytes() as u64 + (1 << 20);
    let needed = 2 * bytes + spilled + reserve;
    if shared
        .disk
        .free_bytes(tree)
        .is_none_or(|free| free >= needed)
    {
        return Ok(());
    }
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let folder = tree.parent().unwrap_or(Path::new(""));
    Err(Error::io("make room for a transaction's writes in", folder)(full))
}

/// Fails if the disk has less room than a write to the tree may take, which writes so many old pages
/// anew and adds so many bytes. redb fails every operation after a failed write, reads included, so
/// a full disk must not be discovered by trying.
fn check_disk_space(shared: &Shared, pages: u64, bytes: u64) -> Result<()> {
    const PAGE_BYTES: u64 = 4096;
    let Some(tree) = &shared.tree_path else {
        return Ok(());
    };
    let tree_bytes = match shared.disk.metadata(tree) {
        Ok(Some(Metadata::File { len })) => len,
        _ => 0,
    };
    // The whole tree at most is written anew; new rows come on top.
    let pages = pages.saturating_mul(2 * PAGE_BYTES).min(tree_bytes);
    let needed = pages + 2 * bytes + (1 << 20);
    let free = shared.disk.free_bytes(tree);
    if free.is_some_and(|free| free < needed) {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        return Err(Error::io("make room for a checkpoint in", tree)(full));
    }
    Ok(())
}
