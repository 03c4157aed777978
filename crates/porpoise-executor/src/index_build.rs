//! Filling new indexes of a table that has rows: for ALTER TABLE, and behind a [`bulk_fill`](crate::bulk_fill).
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
use porpoise_expr::EvalContext;
use porpoise_expr::context::check_interrupt;
use porpoise_mdl::process::EXECUTING;
use porpoise_session::SessionTransaction;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_storage::{BulkLoad, SpaceId, Store};

use crate::row_batches::{BATCH_BYTES, in_batches, layout_of};
use crate::{Exec, View, write};

/// The buffers of a statement's sorts together.
const SORT_BUFFER_BYTES: usize = 32 << 20;
/// Each index's sort has so much of it, at least.
const SORT_BUFFER_BYTES_MIN: usize = 1 << 20;

const READING: &str = "alter table (read PK and internal sort)";
const MERGING: &str = "alter table (merge sort)";
const INSERTING: &str = "alter table (insert)";

/// The spaces of a table's rows and indexes, or those that are to become theirs.
#[derive(Clone, Debug)]
pub struct TableSpaces {
    rows: SpaceId,
    /// By position; the primary key's is that of the rows.
    indexes: Vec<SpaceId>,
}

impl TableSpaces {
    /// A table's own.
    pub fn of(table: &Table) -> TableSpaces {
        TableSpaces {
            rows: table.space,
            indexes: table.indexes.iter().map(|index| index.space).collect(),
        }
    }

    /// New ones, which are to be created.
    pub fn allocate(store: &Store, table: &Table) -> TableSpaces {
        let rows = store.allocate_space();
        let indexes = table.indexes.iter().map(|index| match index.kind {
            IndexKind::Primary => rows,
            _ => store.allocate_space(),
        });
        TableSpaces {
            rows,
            indexes: indexes.collect(),
        }
    }

    /// That of the rows.
    pub fn rows(&self) -> SpaceId {
        self.rows
    }

    /// All of them, in the order of [`Table::spaces`].
    pub fn all(&self) -> impl Iterator<Item = SpaceId> + '_ {
        let secondary = self.indexes.iter().copied();
        let secondary = secondary.filter(|space| *space != self.rows);
        std::iter::once(self.rows).chain(secondary)
    }
}

/// A table whose rows are read, and of which indexes are built.
pub struct IndexBuild<'a> {
    /// What the session shares with others.
    pub shared: &'a Shared,
    /// Whose statement it is.
    pub session: &'a mut SessionState,
    /// The definition.
    pub table: &'a Arc<Table>,
    /// Where its rows are and its entries go.
    pub spaces: &'a TableSpaces,
}

impl IndexBuild<'_> {
    /// Fills indexes (by position) from the table's rows.
    ///
    /// # Errors
    /// 1062 if a unique index would have two equal keys, 1317 if the statement was killed, 1878 if
    /// `tmpdir` has no room.
    pub fn build(&mut self, positions: &[usize]) -> Result<()> {
        let built = self.sort_and_write(positions);
        self.show_state(EXECUTING);
        built
    }

    /// Fills all indexes but the primary key from the table's rows, as [`build`](Self::build).
    ///
    /// # Errors
    /// Those of [`build`](Self::build).
    pub fn build_secondary(&mut self) -> Result<()> {
        let indexes = &self.table.indexes;
        let is_secondary = |position: &usize| indexes[*position].kind != IndexKind::Primary;
        let positions: Vec<usize> = (0..indexes.len()).filter(is_secondary).collect();
        match positions.is_empty() {
            true => Ok(()),
            false => self.build(&positions),
        }
    }

    fn sort_and_write(&mut self, positions: &[usize]) -> Result<()> {
        self.show_state(READING);
        let sorts = self.collect_entries(positions)?;
        for (sort, &position) in sorts.into_iter().zip(positions) {
            self.show_state(MERGING);
            let sorted = sort.finish(&mut || check_interrupt(&self.session.vars))?;
            self.show_state(INSERTING);
            self.write_entries(position, sorted)?;
        }
        Ok(())
    }

    fn show_state(&self, state: &'static str) {
        let sessions = &self.shared.locks.sessions;
        if let Some(control) = sessions.find(self.session.connection_id) {
            control.set_state(state);
        }
    }

    /// Reads the table once, and gives the entries of each index to its sort.
    fn collect_entries(&mut self, positions: &[usize]) -> Result<Vec<ExternalSort>> {
        let share = (SORT_BUFFER_BYTES / positions.len().max(1)).max(SORT_BUFFER_BYTES_MIN);
        let new_sort = |_: &usize| ExternalSort::new(share, &self.session.vars.memory);
        let mut sorts: Vec<ExternalSort> = positions.iter().map(new_sort).collect();
        let mut value = Vec::new();
        let (table, layout) = (self.table, layout_of(self.table));
        let source = self.spaces.rows;
        in_batches(
            self.shared,
            self.session,
            source,
            &layout,
            |exec, key, row| {
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
            },
        )?;
        Ok(sorts)
    }

    /// Writes an index's entries into its space.
    fn write_entries(&mut self, position: usize, mut sorted: SortedEntries) -> Result<()> {
        let (index, space) = (&self.table.indexes[position], self.spaces.indexes[position]);
        let is_small = sorted.bytes_in_memory().is_some_and(|b| b <= BATCH_BYTES);
        let mut destination = match is_small {
            true => {
                let transaction = SessionTransaction::begin(self.shared, self.session);
                Destination::Log(Box::new(transaction))
            }
            false => {
                let interrupt = Arc::clone(&self.session.vars.interrupt);
                let load = BulkLoad::begin(&self.shared.store, space, Some(interrupt))?;
                Destination::Tree(load)
            }
        };
        // Keys of entries with a NULL end with the row's key: no two are equal.
        let mut before: Option<Vec<u8>> = index.is_unique().then(Vec::new);
        let mut is_first = true;
        while let Some((key, value)) = sorted.next_entry()? {
            check_interrupt(&self.session.vars)?;
            if let Some(before) = &mut before {
                if !is_first && before == key {
                    let (primary_key, _) = index_entry::split(value);
                    return Err(self.duplicate(position, primary_key));
                }
                before.clear();
                before.extend_from_slice(key);
                is_first = false;
            }
            destination.write(self.session, space, key, value)?;
        }
        destination.finish()
    }

    /// Error 1062 for the second of two rows with equal keys.
    fn duplicate(&mut self, position: usize, primary_key: &[u8]) -> Error {
        let snapshot = self.shared.store.snapshot();
        let row = match snapshot.get(self.spaces.rows, primary_key, |row| row.to_vec()) {
            Ok(row) => row.unwrap_or_default(),
            Err(error) => return error.into(),
        };
        let catalog = self.shared.catalog.load_full();
        let layout = layout_of(self.table);
        let view = View::Snapshot(snapshot);
        let exec = Exec::of_rows(self.session, self.shared, &catalog, view, &layout, &[]);
        write::duplicate_entry(&exec, self.table, position, &row)
    }
}

/// Where entries go.
enum Destination {
    Log(Box<SessionTransaction>),
    Tree(BulkLoad),
}

impl Destination {
    fn write(
        &mut self,
        session: &SessionState,
        space: SpaceId,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        match self {
            Destination::Log(transaction) => {
                transaction.insert(space, key, value);
                transaction.charge(&session.vars.memory)
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
