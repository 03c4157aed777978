//! One redb transaction that merges a memtable into the tree.

use std::sync::atomic::Ordering;

use redb::WriteTransaction;

use super::pace::Steps;
use super::tree_state::{TreeState, write_state};
use crate::memtable::{Memtable, SpaceVersions};
use crate::store::{Counter, Shared};
use crate::tree::Tree;
use crate::tree::tables::{COUNTERS, DAMAGED};
use crate::tree_file::catch_panic;
use crate::tree_snapshot::{definition, table_name};
use crate::{Error, Result, SpaceId};

/// Why a merge failed, and in which space, if it was in one.
pub(super) struct MergeError {
    pub error: Error,
    pub space: Option<SpaceId>,
}

impl<E: Into<Error>> From<E> for MergeError {
    fn from(error: E) -> MergeError {
        MergeError {
            error: error.into(),
            space: None,
        }
    }
}

/// Writes a memtable's newest versions into the tree, in one redb transaction. Spaces that are
/// known to be damaged are written to side tables.
pub(super) fn merge(
    shared: &Shared,
    tree: &Tree,
    memtable: &Memtable,
    state: TreeState,
) -> Result<(), MergeError> {
    let mut space_in_progress = None;
    let mut steps = Steps::of(shared, memtable.entries());
    let merged = catch_panic(|| {
        let writing = tree.begin_write()?;
        for (space, versions) in memtable.spaces.iter() {
            match shared.damaged.get(space) {
                None => merge_space(
                    &writing,
                    space,
                    versions,
                    &mut steps,
                    &mut space_in_progress,
                )?,
                Some(error) => write_side_table(&writing, space, versions, &error)?,
            }
        }
        let counters = write_counters(shared, &writing)?;
        write_state(&writing, state)?;
        shared.pace.note_inserted();
        writing.commit()?;
        Ok(counters)
    });
    let counters = merged.map_err(|error| MergeError {
        error,
        space: space_in_progress,
    })?;
    note_counters(shared, counters);
    Ok(())
}

/// Writes a space's newest rows. `in_progress` names the space while its own pages are being
/// changed.
fn merge_space(
    writing: &WriteTransaction,
    space: SpaceId,
    versions: &SpaceVersions,
    steps: &mut Steps<'_>,
    in_progress: &mut Option<SpaceId>,
) -> Result<()> {
    let name = table_name(space);
    if versions.is_dropped_at_all() {
        *in_progress = Some(space);
        writing.delete_table(definition(&name))?;
        *in_progress = None;
        return Ok(());
    }
    // This reads the list of tables only.
    let mut table = writing.open_table(definition(&name))?;
    *in_progress = Some(space);
    for (key, value) in versions.newest() {
        match value {
            Some(value) => table.insert(key, value)?,
            None => table.remove(key)?,
        };
        steps.step();
    }
    *in_progress = None;
    Ok(())
}

/// Writes a damaged space's newest rows to its side table.
fn write_side_table(
    writing: &WriteTransaction,
    space: SpaceId,
    versions: &SpaceVersions,
    error: &Error,
) -> Result<()> {
    if let Error::Damaged(place) = error {
        let mut damaged = writing.open_table(DAMAGED)?;
        damaged.insert(space.0, (place.offset, place.what.as_str()))?;
    }
    let name = side_table_name(space);
    if versions.is_dropped_at_all() {
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

/// The table with the rows that a damaged space can't take.
pub(crate) fn side_table_name(space: SpaceId) -> String {
    format!("k{}", space.0)
}

/// Writes the counters that the tree lacks. Once that is committed they are to be noted.
pub(super) fn write_counters(
    shared: &Shared,
    writing: &WriteTransaction,
) -> Result<Vec<(SpaceId, u64)>> {
    let mut merged = Vec::new();
    let mut counters = writing.open_table(COUNTERS)?;
    for (space, counter) in shared.counters.iter() {
        let value = counter.value.load(Ordering::Acquire);
        if value > counter.checkpointed.load(Ordering::Relaxed) {
            counters.insert(space.0, value)?;
            merged.push((space, value));
        }
    }
    Ok(merged)
}

/// Notes that the tree has these counters.
pub(super) fn note_counters(shared: &Shared, written: Vec<(SpaceId, u64)>) {
    for (space, value) in written {
        let counter: Option<&Counter> = shared.counters.get(space);
        if let Some(counter) = counter {
            counter.checkpointed.fetch_max(value, Ordering::Relaxed);
        }
    }
}
