//! What an index holds.
//!
//! ```text
//! key    parts, each encoded                       when unique and no part is NULL
//!        parts, each encoded + primary key         otherwise
//! value  length of the primary key (u16) | primary key | indexed columns, by `index.entry_layout`
//! ```
//!
//! The value tells the row's key without decoding, and the columns that a covering scan reads
//! without the row. A part cut to a prefix is not among them: it isn't the column's value.

use porpoise_types::KeyBuf;

use crate::{Index, Table};

/// An index key of one row, and whether a part of it is NULL (NULLs never collide).
pub struct IndexKey {
    /// The encoded parts.
    pub parts: KeyBuf,
    /// Whether any part is NULL: such an entry has no duplicates in a unique index.
    pub has_null: bool,
}

/// Encodes an index's parts of a stored row.
pub fn parts_of(table: &Table, index: &Index, row: &[u8]) -> IndexKey {
    let mut key = IndexKey {
        parts: KeyBuf::new(),
        has_null: false,
    };
    for part in &index.parts {
        let column = &table.columns[part.column];
        let value = table.layout.get(row, part.column);
        key.has_null |= value.is_null();
        part.encode(column, &value, &mut key.parts);
    }
    key
}

/// The storage key of a secondary index's entry.
pub fn entry_key(index: &Index, key: &IndexKey, primary_key: &[u8]) -> KeyBuf {
    let mut out = KeyBuf::from_slice(&key.parts);
    if !index.is_unique() || key.has_null {
        out.extend_from_slice(primary_key);
    }
    out
}

/// The value of a secondary index's entry.
pub fn entry_value(
    table: &Table,
    index: &Index,
    primary_key: &[u8],
    row: &[u8],
    out: &mut Vec<u8>,
) {
    out.clear();
    out.extend_from_slice(&(primary_key.len() as u16).to_le_bytes());
    out.extend_from_slice(primary_key);
    let columns = &index.entry_columns;
    index
        .entry_layout
        .encode_columns(&table.layout, row, columns, out);
}

/// Whether an entry, a key and a value, is the one that a row, a primary key and its stored form,
/// has in the index. `room` is overwritten.
pub fn is_entry_of(
    table: &Table,
    index: &Index,
    (primary_key, row): (&[u8], &[u8]),
    (entry, held): (&[u8], &[u8]),
    room: &mut Vec<u8>,
) -> bool {
    entry_value(table, index, primary_key, row, room);
    let parts = parts_of(table, index, row);
    room == held && entry_key(index, &parts, primary_key).as_slice() == entry
}

/// Splits an entry's value into the primary key and the indexed columns.
pub fn split(entry: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = entry.split_first_chunk::<2>() else {
        return (&[], &[]);
    };
    rest.split_at_checked(u16::from_le_bytes(*length) as usize)
        .unwrap_or((&[], &[]))
}
