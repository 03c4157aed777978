//! Filling new indexes of a table that has rows.
//!
//! ```text
//! rows in the order of their keys ─► entries ─► external sort ─► in order ─► new space
//!                                    of each index                └ neighbours with equal keys: 1062
//! ```
//!
//! The new spaces belong to nobody yet, so nothing is locked. Few entries are one transaction; many
//! are written beside the log ([`BulkLoad`]). The process list shows the names that InnoDB gives to
//! the stages of its builds.

use std::sync::Arc;

use porpoise_catalog::{IndexKind, Table, index_entry};
use porpoise_core::error::{Error, Result};
use porpoise_core::external_sort::{ExternalSort, SortedEntries};
use porpoise_executor::{Exec, View, write};
use porpoise_expr::EvalContext;
use porpoise_expr::context::check_interrupt;
use porpoise_mdl::process::EXECUTING;
use porpoise_session::SessionTransaction;
use porpoise_storage::{BulkLoad, SpaceId};

use crate::Ddl;
use crate::copy::{BATCH_BYTES, in_batches, layout_of};

/// The buffers of a statement's sorts together.
const SORT_BUFFER_BYTES: usize = 32 << 20;
/// Each index's sort has so much of it, at least.
const SORT_BUFFER_BYTES_MIN: usize = 1 << 20;

const READING: &str = "alter table (read PK and internal sort)";
const MERGING: &str = "alter table (merge sort)";
const INSERTING: &str = "alter table (insert)";

/// Fills indexes (by position) from the table's rows.
///
/// # Errors
/// 1062 if a unique index would have two equal keys, 1317 if the statement was killed, 1878 if
/// `tmpdir` has no room.
pub fn build_indexes(ddl: &mut Ddl<'_>, table: &Arc<Table>, positions: &[usize]) -> Result<()> {
    let built = sort_and_write(ddl, table, positions);
    show_state(ddl, EXECUTING);
    built
}

/// Fills all indexes but the primary key from the table's rows, as [`build_indexes`].
///
/// # Errors
/// Those of [`build_indexes`].
pub fn build_secondary_indexes(ddl: &mut Ddl<'_>, table: &Arc<Table>) -> Result<()> {
    let is_secondary = |position: &usize| table.indexes[*position].kind != IndexKind::Primary;
    let positions: Vec<usize> = (0..table.indexes.len()).filter(is_secondary).collect();
    match positions.is_empty() {
        true => Ok(()),
        false => build_indexes(ddl, table, &positions),
    }
}

fn sort_and_write(ddl: &mut Ddl<'_>, table: &Arc<Table>, positions: &[usize]) -> Result<()> {
    show_state(ddl, READING);
    let sorts = collect_entries(ddl, table, positions)?;
    for (sort, &position) in sorts.into_iter().zip(positions) {
        show_state(ddl, MERGING);
        let sorted = sort.finish(&mut || check_interrupt(&ddl.session.vars))?;
        show_state(ddl, INSERTING);
        write_entries(ddl, table, position, sorted)?;
    }
    Ok(())
}

fn show_state(ddl: &Ddl<'_>, state: &'static str) {
    let control = ddl.shared.locks.sessions.find(ddl.session.connection_id);
    if let Some(control) = control {
        control.set_state(state);
    }
}

/// Reads the table once, and gives the entries of each index to its sort.
fn collect_entries(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    positions: &[usize],
) -> Result<Vec<ExternalSort>> {
    let share = (SORT_BUFFER_BYTES / positions.len().max(1)).max(SORT_BUFFER_BYTES_MIN);
    let new_sort = |_: &usize| ExternalSort::new(share, &ddl.session.vars.memory);
    let mut sorts: Vec<ExternalSort> = positions.iter().map(new_sort).collect();
    let mut value = Vec::new();
    in_batches(ddl, table.space, &layout_of(table), |exec, key, row| {
        let mut bytes = 0;
        for (sort, &position) in sorts.iter_mut().zip(positions) {
            let index = &table.indexes[position];
            let parts = index_entry::parts_of(table, index, row);
            let entry = index_entry::entry_key(index, &parts, key);
            index_entry::entry_value(table, index, key, row, &mut value);
            sort.push(&entry, &value, &mut || exec.check_interrupt())?;
            bytes += entry.len() + value.len();
        }
        Ok(bytes)
    })?;
    Ok(sorts)
}

/// Writes an index's entries into its space.
fn write_entries(
    ddl: &mut Ddl<'_>,
    table: &Arc<Table>,
    position: usize,
    mut sorted: SortedEntries,
) -> Result<()> {
    let index = &table.indexes[position];
    let is_small = sorted.bytes_in_memory().is_some_and(|b| b <= BATCH_BYTES);
    let mut destination = match is_small {
        true => Destination::Log(SessionTransaction::begin(ddl.shared, ddl.session)),
        false => {
            let interrupt = Arc::clone(&ddl.session.vars.interrupt);
            let load = BulkLoad::begin(&ddl.shared.store, index.space, Some(interrupt))?;
            Destination::Tree(load)
        }
    };
    // Keys of entries with a NULL end with the row's key: no two are equal.
    let mut before: Option<Vec<u8>> = index.is_unique().then(Vec::new);
    let mut is_first = true;
    while let Some((key, value)) = sorted.next_entry()? {
        check_interrupt(&ddl.session.vars)?;
        if let Some(before) = &mut before {
            if !is_first && before == key {
                let (primary_key, _) = index_entry::split(value);
                return Err(duplicate(ddl, table, position, primary_key));
            }
            before.clear();
            before.extend_from_slice(key);
            is_first = false;
        }
        destination.write(ddl, index.space, key, value)?;
    }
    destination.finish()
}

/// Where entries go.
enum Destination {
    Log(SessionTransaction),
    Tree(BulkLoad),
}

impl Destination {
    fn write(&mut self, ddl: &Ddl<'_>, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Destination::Log(transaction) => {
                transaction.insert(space, key, value);
                transaction.charge(&ddl.session.vars.memory)
            }
            Destination::Tree(load) => Ok(load.push(key, value)?),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Destination::Log(transaction) => Ok(transaction.commit()?.wait()?),
            Destination::Tree(load) => Ok(load.finish()?),
        }
    }
}

/// Error 1062 for the second of two rows with equal keys.
fn duplicate(ddl: &mut Ddl<'_>, table: &Table, position: usize, primary_key: &[u8]) -> Error {
    let snapshot = ddl.shared.store.snapshot();
    let row = match snapshot.get(table.space, primary_key, |row| row.to_vec()) {
        Ok(row) => row.unwrap_or_default(),
        Err(error) => return error.into(),
    };
    let catalog = ddl.shared.catalog.load_full();
    let layout = layout_of(table);
    let view = View::Snapshot(snapshot);
    let exec = Exec::of_rows(ddl.session, ddl.shared, &catalog, view, &layout, &[]);
    write::duplicate_entry(&exec, table, position, &row)
}
