//! Changes one row, with all its indexes.
//!
//! A row is locked by its primary key before it is written, and each unique key by its own entry
//! before it is looked up, so that two transactions that insert the same key meet there, and one
//! that inserts a key meets those that looked for it and found nothing. What is looked up is what
//! is committed now (and this transaction's own), never the read view.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use porpoise_catalog::{Index, IndexKind, Table};
use porpoise_core::error::{Error, Result};
use porpoise_planner::column_changes::ColumnChanges;
use porpoise_storage::{Direction, LockMode, SpaceId, Wait};
use porpoise_types::{KeyBuf, Value, convert, successor_of_prefix};
use smallvec::SmallVec;

use crate::Exec;
use crate::bulk_fill::Pushed;
use porpoise_catalog::index_entry;

/// What became of a row.
#[derive(Debug, PartialEq)]
pub enum Written {
    /// The row and its index entries are in the transaction.
    Done,
    /// Another row has this key: the index's position, and that row's primary key.
    Duplicate {
        /// The index's position in the table; the primary key is one of them.
        index: usize,
        /// The storage key of the row that is there.
        primary_key: KeyBuf,
    },
}

/// A stored row that gets other values in some columns.
#[derive(Clone, Copy)]
pub struct RowUpdate<'a> {
    /// The key that it is stored under.
    pub key: &'a [u8],
    /// The row before, encoded.
    pub old: &'a [u8],
    /// The row after, encoded.
    pub new: &'a [u8],
    /// In which columns the two may differ.
    pub changes: &'a ColumnChanges,
}

impl Exec<'_> {
    fn lock(&mut self, space: SpaceId, key: &[u8], mode: LockMode) -> Result<()> {
        let wait = Wait::Timeout(self.session.lock_wait_timeout());
        self.transaction()?.lock(space, key, mode, wait)?;
        self.charge_changes()
    }

    /// Locks a key that is about to be written, and was not there.
    fn lock_to_insert(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.lock(space, key, LockMode::Insert)
    }

    /// The storage key of a new row: its primary key, or the next row number.
    pub fn new_key(&mut self, table: &Table, row: &[u8]) -> Result<KeyBuf> {
        if let Some(primary) = table.primary_key() {
            return Ok(index_entry::parts_of(table, primary, row).parts);
        }
        let number = self.next_number(&table.state.row_number, table.space)?;
        Ok(KeyBuf::from_slice(&number.to_be_bytes()))
    }

    /// Takes the next value of a counter that storage keeps for a space.
    fn next_number(
        &mut self,
        counter: &std::sync::atomic::AtomicU64,
        space: SpaceId,
    ) -> Result<u64> {
        if counter.load(Ordering::Relaxed) == 0 {
            counter.fetch_max(self.engine.store.counter(space).max(1), Ordering::Relaxed);
        }
        let number = counter.fetch_add(1, Ordering::Relaxed);
        self.transaction()?.set_counter(space, number + 1);
        Ok(number)
    }

    /// Looks for another row with the same unique key. Locks the key first, then the row that has
    /// it: a transaction that has deleted the row or given it another key may still commit or not.
    fn find_duplicate(
        &mut self,
        table: &Table,
        index: &Index,
        parts: &KeyBuf,
        own: Option<&[u8]>,
    ) -> Result<Option<KeyBuf>> {
        self.lock_to_insert(index.space, parts)?;
        let mut locked: Option<KeyBuf> = None;
        loop {
            let mut found: Option<KeyBuf> = None;
            Exec::read(&self.view, index.space, parts, true, |entry| {
                let (primary_key, _) = index_entry::split(entry);
                if own != Some(primary_key) {
                    found = Some(KeyBuf::from_slice(primary_key));
                }
            })?;
            if found.is_none() || found == locked {
                return Ok(found);
            }
            if let Some(key) = &found {
                self.lock(table.space, key, LockMode::Shared)?;
            }
            locked = found;
        }
    }

    /// Inserts a row (encoded by the table's layout) under its key.
    pub fn insert_row(&mut self, table: &Table, key: &[u8], row: &[u8]) -> Result<Written> {
        match self.fill_with(table, key, row)? {
            Pushed::No => {}
            Pushed::BesideLog => return Ok(Written::Done),
            Pushed::Duplicate => {
                return Ok(Written::Duplicate {
                    index: 0,
                    primary_key: KeyBuf::from_slice(key),
                });
            }
        }
        self.lock_to_insert(table.space, key)?;
        if table.primary_key().is_some()
            && Exec::read(&self.view, table.space, key, true, |_| ())?.is_some()
        {
            return Ok(Written::Duplicate {
                index: 0,
                primary_key: KeyBuf::from_slice(key),
            });
        }
        let mut entries: SmallVec<[(usize, KeyBuf); 4]> = SmallVec::new();
        for (position, index) in table.indexes.iter().enumerate() {
            if index.kind == IndexKind::Primary {
                continue;
            }
            let index_key = index_entry::parts_of(table, index, row);
            if index.is_unique()
                && !index_key.has_null
                && let Some(primary_key) =
                    self.find_duplicate(table, index, &index_key.parts, None)?
            {
                return Ok(Written::Duplicate {
                    index: position,
                    primary_key,
                });
            }
            entries.push((position, index_entry::entry_key(index, &index_key, key)));
        }
        let mut value = Vec::new();
        let transaction = self.transaction()?;
        transaction.insert(table.space, key, row);
        let mut bytes = key.len() + row.len();
        for (position, entry) in entries {
            let index = &table.indexes[position];
            index_entry::entry_value(table, index, key, row, &mut value);
            transaction.insert(index.space, &entry, &value);
            bytes += entry.len() + value.len();
        }
        self.charge_changes()?;
        self.note_filled(table, bytes)?;
        Ok(Written::Done)
    }

    /// Replaces a row that this transaction has locked. The new row may have another primary key.
    pub fn update_row(&mut self, table: &Table, update: RowUpdate<'_>) -> Result<Written> {
        let RowUpdate {
            key,
            old,
            new,
            changes,
        } = update;
        let new_key = match table.primary_key() {
            Some(primary) if changes.moves_rows => index_entry::parts_of(table, primary, new).parts,
            _ => KeyBuf::from_slice(key),
        };
        let moved = new_key.as_slice() != key;
        if moved {
            self.lock_to_insert(table.space, &new_key)?;
            if Exec::read(&self.view, table.space, &new_key, true, |_| ())?.is_some() {
                return Ok(Written::Duplicate {
                    index: 0,
                    primary_key: new_key,
                });
            }
        }
        let mut entries: SmallVec<[(usize, KeyBuf, KeyBuf); 4]> = SmallVec::new();
        for &position in &changes.indexes {
            let index = &table.indexes[position];
            // An entry holds its columns as stored: equal keys may still differ in letter case.
            let unchanged = !moved
                && index
                    .entry_columns
                    .iter()
                    .all(|&column| table.layout.raw(old, column) == table.layout.raw(new, column))
                && index.parts.iter().all(|part| {
                    table.layout.raw(old, part.column) == table.layout.raw(new, part.column)
                });
            if unchanged {
                continue;
            }
            let before = index_entry::parts_of(table, index, old);
            let after = index_entry::parts_of(table, index, new);
            if index.is_unique()
                && !after.has_null
                && before.parts != after.parts
                && let Some(primary_key) =
                    self.find_duplicate(table, index, &after.parts, Some(key))?
            {
                return Ok(Written::Duplicate {
                    index: position,
                    primary_key,
                });
            }
            entries.push((
                position,
                index_entry::entry_key(index, &before, key),
                index_entry::entry_key(index, &after, &new_key),
            ));
        }
        let mut value = Vec::new();
        let transaction = self.transaction()?;
        if moved {
            transaction.delete(table.space, key);
            transaction.insert(table.space, &new_key, new);
        } else {
            transaction.put(table.space, key, new);
        }
        for (position, before, after) in entries {
            let index = &table.indexes[position];
            index_entry::entry_value(table, index, &new_key, new, &mut value);
            if before == after {
                transaction.put(index.space, &after, &value);
            } else {
                transaction.delete(index.space, &before);
                transaction.insert(index.space, &after, &value);
            }
        }
        self.charge_changes()?;
        Ok(Written::Done)
    }

    /// Deletes a row that this transaction has locked.
    pub fn delete_row(&mut self, table: &Table, key: &[u8], row: &[u8]) -> Result<()> {
        let entries: SmallVec<[(SpaceId, KeyBuf); 4]> = table
            .indexes
            .iter()
            .filter(|index| index.kind != IndexKind::Primary)
            .map(|index| {
                (
                    index.space,
                    index_entry::entry_key(index, &index_entry::parts_of(table, index, row), key),
                )
            })
            .collect();
        let transaction = self.transaction()?;
        transaction.delete(table.space, key);
        for (space, entry) in entries {
            transaction.delete(space, &entry);
        }
        self.charge_changes()
    }

    /// Locks a row by its key and reads what is committed now; `None` if it is gone.
    pub fn lock_and_read(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.lock(table.space, key, LockMode::Exclusive)?;
        Exec::read(&self.view, table.space, key, true, <[u8]>::to_vec)
    }
}

/// Error 1062 for a refused row.
pub fn duplicate_entry(exec: &Exec<'_>, table: &Table, index: usize, row: &[u8]) -> Error {
    let index = &table.indexes[index];
    let mut text = String::new();
    for (position, part) in index.parts.iter().enumerate() {
        if position > 0 {
            text.push('-');
        }
        let ty = &table.columns[part.column].ty;
        let value = match table.layout.get(row, part.column) {
            Value::DateTime(utc) if matches!(ty, porpoise_types::DataType::Timestamp { .. }) => {
                Value::DateTime(exec.session.from_utc(utc))
            }
            value => value,
        };
        match value {
            Value::Null => text.push_str("NULL"),
            value => text.push_str(&convert::to_text(&value, ty)),
        }
    }
    if text.chars().count() > porpoise_core::error::MESSAGE_VALUE_CHARS_MAX {
        text = text
            .chars()
            .take(porpoise_core::error::MESSAGE_VALUE_CHARS_MAX)
            .collect();
    }
    Error::duplicate_entry(text, format_args!("{}.{}", table.name, index.name))
}

/// The first entry in an index space whose key begins with `prefix`.
pub fn first_with_prefix(
    exec: &Exec<'_>,
    space: SpaceId,
    prefix: &[u8],
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut end = KeyBuf::from_slice(prefix);
    let high = if successor_of_prefix(&mut end) {
        Bound::Excluded(end.as_slice())
    } else {
        Bound::Unbounded
    };
    let mut cursor = exec.cursor(
        space,
        Bound::Included(prefix),
        high,
        Direction::Forward,
        true,
    )?;
    Ok(cursor
        .next()?
        .map(|(key, value)| (key.to_vec(), value.to_vec())))
}
