//! Putting loaded spaces in the place of empty ones.
//!
//! ```text
//! 1. merge what has been committed   no memtable has versions of either space any more
//! 2. one redb transaction            the table of the loaded space gets the empty one's name, and the
//!                                    counters go with it: from here on a start finds the rows
//! 3. switch memtables over the tree  epoch: [next, old] over tree₂. Snapshots taken from here on
//!                                    have all rows of all spaces; older ones have none
//! ```
//!
//! There is no record in the log, and none is needed: step 2 is durable by itself, and the log has
//! nothing of the space that could be read again before it. Commits that come after step 3 are in a
//! memtable that older snapshots don't see, so nobody sees such a commit without the rows.
//!
//! The caller keeps writers of the empty spaces out until this is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::TableError;

use super::merge::{note_counters, write_counters};
use super::{
    merge_all, merge_oldest, reopen_if_failed, reopen_or_fail, switch_memtable,
    switch_memtable_over,
};
use crate::bulk_load::LoadedSpace;
use crate::snapshot::Epoch;
use crate::store::Shared;
use crate::tree::Tree;
use crate::tree_file::{catch_damage, catch_panic};
use crate::tree_snapshot::{definition, table_name};
use crate::{Error, Result, SpaceId, recovery};

/// Puts loaded spaces in the place of empty ones, all at once. They are gone as spaces of their own.
pub(crate) fn put_in_place(shared: &Shared, loaded: &[LoadedSpace]) -> Result<()> {
    let _hurry = shared.pace.hurry();
    let mut guard = shared.tree.lock();
    reopen_if_failed(shared, &mut guard)?;
    let tree = &mut *guard;
    if tree.is_none() {
        return Err(recovery::no_tree(shared));
    }
    let spaces = || loaded.iter().flat_map(|loaded| [loaded.from, loaded.into]);
    if let Some(error) = spaces().find_map(|space| shared.damaged.get(space)) {
        return Err(error);
    }
    merge_all(shared, tree)?;
    switch_memtable(shared)?;
    merge_all(shared, tree)?;
    let epoch = shared.epoch.load_full();
    let is_written = |space: SpaceId| {
        let mut memtables = epoch.memtables.iter();
        memtables.any(|memtable| memtable.spaces.get(space).is_some())
    };
    if let Some(space) = spaces().find(|space| is_written(*space)) {
        return Err(Error::SpaceInUse { space });
    }
    rename(shared, tree, loaded)?;
    for loaded in loaded {
        let count = || {
            shared
                .changes
                .get_or_insert_with(loaded.into, AtomicU64::default)
        };
        count().fetch_add(loaded.rows, Ordering::Relaxed);
    }
    let spaces: Vec<SpaceId> = spaces().collect();
    let renamed = tree.as_ref().ok_or(Error::Closed)?;
    let snapshot = match shared.epoch.load().tree.after_load(renamed, &spaces) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            // The next checkpoint shows the rows; blocks that have none must not outlive it.
            for space in spaces {
                epoch.tree.with_blocks(space, |blocks| blocks.clear());
            }
            return Err(error);
        }
    };
    drop(epoch);
    if let Err(error) = switch_memtable_over(shared, Some(&snapshot)) {
        // Commits of others have failed. The rows are there.
        tracing::warn!(%error, "the log fails while loaded rows are put in place");
        let epoch = shared.epoch.load_full();
        shared.epoch.store(Arc::new(Epoch {
            memtables: epoch.memtables.clone(),
            tree: snapshot,
            is_oldest_merged: epoch.is_oldest_merged,
        }));
        return Ok(());
    }
    if let Err(error) = merge_oldest(shared, tree) {
        tracing::warn!(%error, "a checkpoint failed after loaded rows were put in place");
    }
    Ok(())
}

/// The redb transaction. If it fails, its outcome is what the tree has that is opened anew.
fn rename(shared: &Shared, tree: &mut Option<Tree>, loaded: &[LoadedSpace]) -> Result<()> {
    let in_progress = tree.as_ref().ok_or(Error::Closed)?;
    let renamed = catch_panic(|| {
        let writing = in_progress.begin_write()?;
        for loaded in loaded {
            let (from, into) = (table_name(loaded.from), table_name(loaded.into));
            writing.delete_table(definition(&into))?;
            match writing.rename_table(definition(&from), definition(&into)) {
                // It has no rows.
                Ok(()) | Err(TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let counters = write_counters(shared, &writing)?;
        writing.commit()?;
        Ok(counters)
    });
    let error = match renamed {
        Ok(counters) => {
            note_counters(shared, counters);
            return Ok(());
        }
        Err(error) => error,
    };
    reopen_or_fail(shared, tree)?;
    let tree = tree.as_ref().ok_or(Error::Closed)?;
    match loaded.iter().any(|loaded| has_table(tree, loaded.from)) {
        true => Err(error),
        false => Ok(()),
    }
}

/// Whether the tree has a table for the space; so also if that can't be read.
fn has_table(tree: &Tree, space: SpaceId) -> bool {
    let found = catch_damage(|| {
        let name = table_name(space);
        match tree.begin_read()?.open_table(definition(&name)) {
            Err(TableError::TableDoesNotExist(_)) => Ok(false),
            _ => Ok(true),
        }
    });
    found.unwrap_or(true)
}
