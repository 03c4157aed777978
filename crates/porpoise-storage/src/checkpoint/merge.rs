//! One redb transaction that merges a memtable into the tree, behind those that merge what was spilled.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redb::WriteTransaction;

use super::ascending::{Ascending, LeavesAhead};
use super::pace::Steps;
use super::tree_state::{TreeState, write_state};
use super::{check_disk_space, show_part};
use crate::memtable::{Memtable, SpaceVersions};
use crate::spill::{Runs, RunsCursor};
use crate::store::{Counter, Shared};
use crate::tree::Tree;
use crate::tree::tables::{COUNTERS, DAMAGED};
use crate::tree_file::catch_panic;
use crate::tree_snapshot::{LensBefore, definition, table_name};
use crate::{Direction, Error, Result, SpaceId};

/// Why a merge failed, and in which space, if it was in one.
pub(super) struct MergeError {
    pub error: Error,
    pub space: Option<SpaceId>,
    /// The tree has not failed: it is what was to be written to it that can't be read.
    pub is_of_source: bool,
}

impl MergeError {
    fn of_source(error: Error) -> MergeError {
        MergeError {
            error,
            space: None,
            is_of_source: true,
        }
    }
}

impl<E: Into<Error>> From<E> for MergeError {
    fn from(error: E) -> MergeError {
        MergeError {
            error: error.into(),
            space: None,
            is_of_source: false,
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
    let ahead = |space| LeavesAhead {
        tree: Arc::clone(&shared.epoch.load().tree),
        space,
    };
    let mut steps = Steps::of(shared, memtable.entries());
    if let Some(runs) = memtable.runs() {
        merge_runs(shared, tree, (memtable, runs), ahead, &mut steps)?;
    }
    let merged = catch_panic(|| {
        let writing = tree.begin_write()?;
        for (space, versions) in memtable.spaces.iter() {
            match shared.damaged.get(space) {
                None => merge_space(
                    &writing,
                    versions,
                    ahead(space),
                    &mut steps,
                    &mut space_in_progress,
                )?,
                Some(error) => write_side_table(&writing, space, versions, &error)?,
            }
        }
        let counters = write_counters(shared, &writing)?;
        write_state(&writing, state)?;
        shared.pace.note_inserted(shared.fill_of_newest());
        writing.commit()?;
        Ok(counters)
    });
    let counters = merged.map_err(|error| MergeError {
        error,
        space: space_in_progress,
        is_of_source: false,
    })?;
    note_counters(shared, counters);
    shared.is_partly_merged.store(false, Ordering::Release);
    Ok(())
}

/// Writes what a commit has spilled, in redb transactions of their own. Before the first of them all
/// of it is read: where a part can't be, the tree stays as it is.
fn merge_runs(
    shared: &Shared,
    tree: &Tree,
    (memtable, runs): (&Memtable, &Runs),
    ahead: impl Fn(SpaceId) -> LeavesAhead,
    steps: &mut Steps<'_>,
) -> Result<(), MergeError> {
    let is_dropped = |space: &SpaceId| {
        let versions = memtable.spaces.get(*space);
        versions.is_some_and(|versions| versions.is_dropped_at_all())
    };
    let mut spaces = runs.spaces();
    spaces.retain(|space| !is_dropped(space));
    let is_long = runs.bytes() > shared.long_bytes() as u64;
    let check_goes_on = || {
        let is_over = shared.is_stopping()
            || is_long
                && shared.is_partly_merged.load(Ordering::Acquire)
                && shared.is_closing.load(Ordering::Acquire);
        // The log keeps the commit, and a start begins again.
        match is_over {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    };
    check_goes_on().map_err(MergeError::of_source)?;
    let before = Arc::clone(&shared.epoch.load().tree);
    // Of a damaged space nobody wants to know it.
    let lens = spaces.iter();
    let lens = lens.filter_map(|space| Some((*space, before.len(*space).ok()?)));
    let lens: LensBefore = lens.collect();
    drop(before);
    let verified = runs.verify(&spaces, check_goes_on);
    verified.map_err(MergeError::of_source)?;
    for space in spaces {
        let damage = shared.damaged.get(space);
        let rows = RunsCursor::new(runs, space, ALL, Direction::Forward);
        let mut rows = rows.map_err(|error| {
            runs.forget_verification();
            MergeError::of_source(error)
        })?;
        while rows.current().is_some() {
            check_goes_on().map_err(MergeError::of_source)?;
            let slice_bytes = room_for_slice(shared, runs).map_err(MergeError::of_source)?;
            shared.is_partly_merged.store(true, Ordering::Release);
            let (mut is_in_space, mut read) = (false, Ok(()));
            let written = catch_panic(|| {
                let writing = tree.begin_write()?;
                if let Some(error) = &damage {
                    note_damage(&writing, space, error)?;
                }
                let name = match damage {
                    None => table_name(space),
                    Some(_) => side_table_name(space),
                };
                let mut table = writing.open_table(definition(&name))?;
                is_in_space = true;
                let ahead = damage.is_none().then(|| ahead(space));
                let written = Ascending::new(&mut table, ahead)?.collecting(slice_bytes);
                read = write_slice(slice_bytes, written, &mut rows, damage.is_some(), steps)?;
                is_in_space = false;
                drop(table);
                match &read {
                    Ok(()) => writing.commit()?,
                    Err(_) => writing.abort()?,
                }
                Ok(())
            });
            written.map_err(|error| MergeError {
                error,
                space: (is_in_space && damage.is_none()).then_some(space),
                is_of_source: false,
            })?;
            read.map_err(|error| {
                runs.forget_verification();
                MergeError::of_source(error)
            })?;
            show_part(shared, tree, &lens)?;
        }
    }
    Ok(())
}

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// Writes rows until they are enough for one redb transaction. Gives why the next row can't be read, if
/// it can't.
fn write_slice(
    slice_bytes: usize,
    mut written: Ascending<'_, '_>,
    rows: &mut RunsCursor,
    is_side_table: bool,
    steps: &mut Steps<'_>,
) -> Result<Result<()>> {
    let mut side_row = Vec::new();
    while let Some((key, value)) = rows.current() {
        match is_side_table {
            true => written.put(key, Some(as_side_row(&mut side_row, value)))?,
            false => written.put(key, value)?,
        }
        steps.step();
        if let Err(error) = rows.advance() {
            return Ok(Err(error));
        }
        if written.written_bytes() > slice_bytes {
            break;
        }
    }
    written.finish()?;
    Ok(Ok(()))
}

/// About how many bytes of leaves the next slice may write: fewer where the disk has little room. Fails
/// where it has too little for a memtable's rows.
fn room_for_slice(shared: &Shared, runs: &Runs) -> Result<usize> {
    let (keys, total) = (runs.entries(None), runs.bytes().max(1));
    let mut bytes = shared.slice_bytes();
    loop {
        let within = total.min(bytes as u64);
        let keys = u128::from(keys) * u128::from(within) / u128::from(total);
        match check_disk_space(shared, keys as u64, within) {
            Ok(()) => return Ok(bytes),
            Err(_) if bytes > shared.memtable_bytes() => bytes /= 2,
            Err(error) => return Err(error),
        }
    }
}

/// Writes a space's newest rows. `in_progress` names the space while its own pages are being
/// changed.
fn merge_space(
    writing: &WriteTransaction,
    versions: &SpaceVersions,
    ahead: LeavesAhead,
    steps: &mut Steps<'_>,
    in_progress: &mut Option<SpaceId>,
) -> Result<()> {
    let space = ahead.space;
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
    let mut written = Ascending::new(&mut table, Some(ahead))?;
    for (key, value) in versions.newest() {
        written.put(key, value)?;
        steps.step();
    }
    written.finish()?;
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
    note_damage(writing, space, error)?;
    let name = side_table_name(space);
    if versions.is_dropped_at_all() {
        writing.delete_table(definition(&name))?;
        return Ok(());
    }
    let mut kept = writing.open_table(definition(&name))?;
    let mut row = Vec::new();
    let mut written = Ascending::new(&mut kept, None)?;
    for (key, value) in versions.newest() {
        written.put(key, Some(as_side_row(&mut row, value)))?;
    }
    written.finish()
}

fn note_damage(writing: &WriteTransaction, space: SpaceId, error: &Error) -> Result<()> {
    if let Error::Damaged(place) = error {
        let mut damaged = writing.open_table(DAMAGED)?;
        damaged.insert(space.0, (place.offset, place.what.as_str()))?;
    }
    Ok(())
}

/// What a side table has of a row.
fn as_side_row<'b>(buffer: &'b mut Vec<u8>, value: Option<&[u8]>) -> &'b [u8] {
    buffer.clear();
    buffer.push(u8::from(value.is_some()));
    buffer.extend_from_slice(value.unwrap_or_default());
    buffer
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
