//! Writing rows to a redb table in the order of their keys.
//!
//! redb's `insert` looks for the place of each row anew, and writes its leaf anew. Its cursor takes rows
//! that come in order into a gap between two others, and makes full leaves of all of them at once. So
//! rows behind a table's last one are collected, and go through a cursor: all of a load, and what is
//! inserted with ever greater keys.

use std::ops::Bound;

use redb::{ReadableTable, Table};

use crate::Result;

type Bytes = &'static [u8];

/// So many bytes of rows are written at once: the cursor's own measure.
const COLLECTED_BYTES: usize = 1 << 20;

/// Longer rows have pages of their own, and nothing is gained by others beside them.
const ROW_BYTES_MAX: usize = 64 << 10;

/// Writes rows, and deletes others, whose keys ascend.
///
/// Dropped without [`finish`](Ascending::finish) it leaves the table with some of them.
pub(super) struct Ascending<'t, 'w> {
    table: &'t mut Table<'w, Bytes, Bytes>,
    /// The key of the last row that the table had, if it had rows.
    last: Option<Vec<u8>>,
    /// Rows behind it that aren't in the table yet, keys and values one after the other.
    bytes: Vec<u8>,
    /// Where the key and where the value of each of these ends.
    ends: Vec<(usize, usize)>,
}

impl<'t, 'w> Ascending<'t, 'w> {
    /// # Errors
    /// If the tree can't be read.
    pub fn new(table: &'t mut Table<'w, Bytes, Bytes>) -> Result<Ascending<'t, 'w>> {
        let last = table.last()?.map(|(key, _)| key.value().to_vec());
        Ok(Ascending {
            table,
            last,
            bytes: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Writes a row; without a value, deletes it if it is there. Its key is greater than those before.
    ///
    /// # Errors
    /// If the disk is full or fails.
    pub fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let is_behind = self.last.as_deref().is_none_or(|last| key > last);
        match value {
            Some(value) if !is_behind => drop(self.table.insert(key, value)?),
            Some(value) if key.len() + value.len() > ROW_BYTES_MAX => {
                self.write_collected()?;
                self.table.insert(key, value)?;
            }
            Some(value) => {
                self.bytes.extend_from_slice(key);
                let key_end = self.bytes.len();
                self.bytes.extend_from_slice(value);
                self.ends.push((key_end, self.bytes.len()));
                if self.bytes.len() >= COLLECTED_BYTES {
                    self.write_collected()?;
                }
            }
            None if !is_behind => drop(self.table.remove(key)?),
            None => {}
        }
        Ok(())
    }

    fn write_collected(&mut self) -> Result<()> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let mut end = self.table.upper_bound_mut(Bound::<&[u8]>::Unbounded)?;
        let mut begin = 0;
        for &(key_end, value_end) in &self.ends {
            end.insert_before(&self.bytes[begin..key_end], &self.bytes[key_end..value_end])?;
            begin = value_end;
        }
        end.close()?;
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }

    /// # Errors
    /// If the disk is full or fails.
    pub fn finish(mut self) -> Result<()> {
        self.write_collected()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use redb::backends::InMemoryBackend;
    use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};

    use super::*;

    const ROWS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("rows");

    #[test]
    fn a_table_has_what_a_map_has_that_is_written_alike() {
        let tree = Database::builder()
            .create_with_backend(InMemoryBackend::new())
            .unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        for round in 0..60u32 {
            // Further than the last row more and more often; sometimes megabytes.
            let range = (round + 1) * 300;
            let most = [3, 200, 6000][random.usize(0..3)];
            let count = random.usize(0..most);
            let mut changes = BTreeMap::new();
            for _ in 0..count {
                let key = random.u32(0..range).to_be_bytes().to_vec();
                let is_long = random.u8(0..100) == 0;
                let len = random.usize(0..if is_long { 3 * ROW_BYTES_MAX } else { 400 });
                let value = (random.u8(0..4) > 0).then(|| vec![random.u8(..); len]);
                changes.insert(key, value);
            }
            let writing = tree.begin_write().unwrap();
            let mut table = writing.open_table(ROWS).unwrap();
            let mut written = Ascending::new(&mut table).unwrap();
            for (key, value) in &changes {
                written.put(key, value.as_deref()).unwrap();
            }
            written.finish().unwrap();
            drop(table);
            writing.commit().unwrap();
            for (key, value) in changes {
                match value {
                    Some(value) => drop(model.insert(key, value)),
                    None => drop(model.remove(&key)),
                }
            }
            let reading = tree.begin_read().unwrap();
            let table = reading.open_table(ROWS).unwrap();
            assert_eq!(table.len().unwrap(), model.len() as u64);
            for (row, (key, value)) in table.iter().unwrap().zip(&model) {
                let row = row.unwrap();
                assert_eq!((row.0.value(), row.1.value()), (&key[..], &value[..]));
            }
        }
        assert!(model.len() > 5000);
    }

    #[test]
    fn rows_in_order_fill_their_leaves() {
        let tree = Database::builder()
            .create_with_backend(InMemoryBackend::new())
            .unwrap();
        let writing = tree.begin_write().unwrap();
        let mut table = writing.open_table(ROWS).unwrap();
        let mut written = Ascending::new(&mut table).unwrap();
        for row in 0..50_000u32 {
            written.put(&row.to_be_bytes(), Some(&[7; 100])).unwrap();
        }
        written.finish().unwrap();
        let leaves = table.stats().unwrap().leaf_pages();
        let least = 50_000 * (100 + 4 + 8) / 4096;
        assert!(leaves < least + least / 20, "{leaves}, at least {least}");
    }
}
