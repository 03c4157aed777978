//! The B-tree below the versions: one redb read transaction, and a table handle for each space.
//!
//! Opening a redb table costs microseconds, so a handle is opened once for each space and checkpoint
//! and found again by number.

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableDefinition,
    TableError,
};

use crate::space_table::SpaceTable;
use crate::{Error, Result, SpaceId};

pub(crate) type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

pub(crate) struct Base {
    /// `None` once the store is closed.
    transaction: Option<ReadTransaction>,
    tables: SpaceTable<Option<Table>>,
}

impl Base {
    pub fn open(database: &redb::Database) -> Result<Base> {
        Ok(Base {
            transaction: Some(database.begin_read()?),
            tables: SpaceTable::new(),
        })
    }

    /// What is left when the store is closed.
    pub fn closed() -> Base {
        Base {
            transaction: None,
            tables: SpaceTable::new(),
        }
    }

    /// The space's tree; `None` while no checkpoint has put anything into it.
    pub fn table(&self, space: SpaceId) -> Result<Option<&Table>> {
        if let Some(table) = self.tables.get(space) {
            return Ok(table.as_ref());
        }
        let name = table_name(space);
        let transaction = self.transaction.as_ref().ok_or(Error::Closed)?;
        let opened = match transaction.open_table(definition(&name)) {
            Ok(table) => Some(table),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(e) => return Err(e.into()),
        };
        Ok(self.tables.get_or_insert_with(space, || opened).as_ref())
    }

    pub fn len(&self, space: SpaceId) -> Result<u64> {
        match self.table(space)? {
            Some(table) => Ok(table.len()?),
            None => Ok(0),
        }
    }
}

pub(crate) fn table_name(space: SpaceId) -> String {
    format!("s{}", space.0)
}

pub(crate) fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}
