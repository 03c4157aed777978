//! Writing rows to a redb table in the order of their keys.
//!
//! redb's `insert` looks for the place of each row anew, and writes its leaf anew. Its cursor takes rows
//! that come in order into a gap between two others, and makes full leaves of all of them at once. So
//! rows are collected, and go through a cursor where that is worth while:
//!
//! - rows behind a table's last one: all of a load, and what is inserted with ever greater keys;
//! - a **stretch**: written rows with few others between them, as an update of a whole table has. The
//!   others are copied, the whole stretch is removed, leaf by leaf, and what it shall have goes into the
//!   gap.
//!
//! ```text
//! table      a b c d e f g h i j k l m n o p q r s t …
//! written      B C   E F G             N           S      (a deletion is one, too)
//! stretch      B C d E F G                                N and S, far from others, are inserted
//! ```

use std::ops::{Bound, Range};
use std::sync::Arc;

use redb::{ReadableTable, Table};

use crate::leaves::LeavesOfKeys;
use crate::page_checksums::PAGE_BYTES;
use crate::tree_snapshot::TreeSnapshot;
use crate::{Result, SpaceId};

type Bytes = &'static [u8];

/// So many bytes of rows behind the last one are written at once: the cursor's own measure.
const BEHIND_BYTES: usize = 1 << 20;

/// So many of rows among others: were each in a leaf of its own, redb's cache should have room for
/// these.
const AMONG_BYTES: usize = 1 << 18;

/// Longer rows have pages of their own, and nothing is gained by others beside them.
const ROW_BYTES_MAX: usize = 64 << 10;

/// A stretch has so many written rows at least: with fewer its leaves are hardly worth a cursor.
const STRETCH_MIN: usize = 64;

/// To copy a row takes about a sixteenth of the time that an `insert` does.
const COPIED_PER_WRITTEN: usize = 16;

/// Between two written rows of a stretch are no more bytes of others than a leaf has: leaves of which
/// nothing is written stay as they are.
const COPIED_BYTES_MAX: usize = PAGE_BYTES;

/// Where there was no stretch, so many rows are inserted before one is looked for again; twice as many
/// each time, up to the second number.
const INSERTED_MIN: usize = 64;
const INSERTED_MAX: usize = 4096;

/// Rows in the order of their keys.
#[derive(Default)]
struct Rows {
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    /// Where the key and where the value of each ends, and whether there is a value.
    ends: Vec<(usize, usize, bool)>,
}

impl Rows {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push((key_end, self.bytes.len(), value.is_some()));
    }

    fn row(&self, number: usize) -> (&[u8], Option<&[u8]>) {
        let begin = number
            .checked_sub(1)
            .map_or(0, |before| self.ends[before].1);
        let (key_end, value_end, has_value) = self.ends[number];
        let value = has_value.then(|| &self.bytes[key_end..value_end]);
        (&self.bytes[begin..key_end], value)
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().map_or(0, |end| end.1));
    }

    fn clear(&mut self) {
        self.truncate(0);
    }

    /// Inserts them behind the bound, where the table has none that aren't greater than all of them.
    fn insert_behind(
        &self,
        bound: Bound<&[u8]>,
        table: &mut Table<'_, Bytes, Bytes>,
    ) -> Result<()> {
        let mut gap = table.upper_bound_mut(bound)?;
        for number in 0..self.len() {
            let (key, value) = self.row(number);
            gap.insert_before(key, value.unwrap_or_default())?;
        }
        Ok(gap.close()?)
    }
}

/// Has the disk begin with leaves that rows are about to be written to: one after another, each would
/// be waited for.
pub(super) struct LeavesAhead {
    /// The space's rows before any of the rows was written: from the next of these on, its leaves are
    /// the table's.
    pub tree: Arc<TreeSnapshot>,
    pub space: SpaceId,
}

impl LeavesAhead {
    /// So many leaves are begun with at a time.
    const LEAVES: usize = 256;

    /// Finds the leaves of some rows, from a number on, and begins with them if they are to be read.
    fn find(&self, rows: &Rows, from: usize, begins_reading: bool) -> Option<LeavesOfKeys> {
        let keys = (from..rows.len()).map(|number| rows.row(number).0);
        let (space, most) = (self.space, LeavesAhead::LEAVES);
        let found = self.tree.leaves_of(space, keys, most, begins_reading);
        // Who writes the rows will find what is wrong.
        found.ok().flatten()
    }
}

/// Rows of a number of leaves.
struct PartOfRows {
    /// The number of the first row behind it.
    end: usize,
    /// `None`: nobody has counted.
    leaves: Option<usize>,
}

/// Writes rows, and deletes others, whose keys ascend.
///
/// Dropped without [`finish`](Ascending::finish) it leaves the table with some of them.
pub(super) struct Ascending<'t, 'w> {
    table: &'t mut Table<'w, Bytes, Bytes>,
    ahead: Option<LeavesAhead>,
    /// The key of the last row that the table had, if it had rows.
    last: Option<Vec<u8>>,
    /// Rows behind it that aren't in the table yet.
    behind: Rows,
    /// Rows up to it that aren't in the table yet, deletions included.
    among: Rows,
    /// What a stretch shall have.
    stretch: Rows,
    /// How many bytes of rows are collected at most.
    collected_max: usize,
    /// How many bytes of leaves were written anew, about.
    written_bytes: usize,
    /// How many of the next rows are inserted without looking for a stretch.
    inserted_next: usize,
    /// How many after the next stretch that is none.
    inserted_then: usize,
}

impl<'t, 'w> Ascending<'t, 'w> {
    /// # Errors
    /// If the tree can't be read.
    pub fn new(
        table: &'t mut Table<'w, Bytes, Bytes>,
        ahead: Option<LeavesAhead>,
    ) -> Result<Ascending<'t, 'w>> {
        let last = table.last()?.map(|(key, _)| key.value().to_vec());
        Ok(Ascending {
            table,
            ahead,
            last,
            behind: Rows::default(),
            among: Rows::default(),
            stretch: Rows::default(),
            collected_max: usize::MAX,
            written_bytes: 0,
            inserted_next: 0,
            inserted_then: INSERTED_MIN,
        })
    }

    /// Writes a row; without a value, deletes it if it is there. Its key is greater than those before.
    ///
    /// # Errors
    /// If the disk is full or fails.
    pub fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let is_behind = self.last.as_deref().is_none_or(|last| key > last);
        if is_behind && value.is_none() {
            return Ok(());
        }
        if key.len() + value.map_or(0, <[u8]>::len) > ROW_BYTES_MAX {
            self.write_behind()?;
            return self.insert(key, value);
        }
        match is_behind {
            true => {
                self.behind.push(key, value);
                if self.behind.bytes.len() >= BEHIND_BYTES.min(self.collected_max) {
                    self.write_behind()?;
                }
            }
            false => {
                self.among.push(key, value);
                if self.among.bytes.len() >= AMONG_BYTES.min(self.collected_max) {
                    self.write_among()?;
                }
            }
        }
        Ok(())
    }

    /// Collects no more rows than so many bytes have.
    pub fn collecting(mut self, bytes: usize) -> Self {
        self.collected_max = bytes;
        self
    }

    /// About how many bytes of leaves are written anew, with the rows that are collected.
    pub fn written_bytes(&self) -> usize {
        self.written_bytes + self.behind.bytes.len() + self.among.bytes.len()
    }

    fn insert(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let row_bytes = key.len() + value.map_or(0, <[u8]>::len);
        self.written_bytes += row_bytes.max(PAGE_BYTES);
        match value {
            Some(value) => drop(self.table.insert(key, value)?),
            None => drop(self.table.remove(key)?),
        }
        Ok(())
    }

    fn write_behind(&mut self) -> Result<()> {
        if self.behind.len() > 0 {
            self.written_bytes += self.behind.bytes.len();
            self.behind.insert_behind(Bound::Unbounded, self.table)?;
            self.behind.clear();
        }
        Ok(())
    }

    fn write_among(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.among);
        let (mut written, mut begins_reading) = (0, true);
        let mut next = self.next_part(&rows, 0, &mut begins_reading);
        while written < rows.len() {
            let part = next;
            next = self.next_part(&rows, part.end, &mut begins_reading);
            let before = self.written_bytes;
            self.write_part(&rows, written..part.end)?;
            if let Some(leaves) = part.leaves {
                let rows = (written..part.end).map(|number| rows.row(number));
                let row_bytes =
                    |(key, value): (&[u8], Option<&[u8]>)| key.len() + value.map_or(0, <[u8]>::len);
                // However many rows of a leaf were written, it is one.
                let most = before + leaves * PAGE_BYTES + rows.map(row_bytes).sum::<usize>();
                self.written_bytes = self.written_bytes.min(most);
            }
            written = part.end;
        }
        self.among = rows;
        self.among.clear();
        Ok(())
    }

    /// The rows that are written next. Has the disk begin with their leaves until the system has some.
    fn next_part(&self, rows: &Rows, from: usize, begins_reading: &mut bool) -> PartOfRows {
        // Only who writes a slice wants to know how much of it there is.
        let counts = self.collected_max < usize::MAX;
        let ahead = self.ahead.as_ref();
        let ahead = ahead.filter(|_| from < rows.len() && (*begins_reading || counts));
        let found = ahead.and_then(|ahead| ahead.find(rows, from, *begins_reading));
        *begins_reading &= found.is_some_and(|found| found.is_reading);
        match found {
            Some(found) if counts || found.is_reading => PartOfRows {
                end: from + found.keys,
                leaves: Some(found.leaves),
            },
            _ => PartOfRows {
                end: rows.len(),
                leaves: None,
            },
        }
    }

    fn write_part(&mut self, rows: &Rows, part: Range<usize>) -> Result<()> {
        let mut number = part.start;
        while number < part.end {
            let end = match self.inserted_next {
                0 => self.find_stretch(rows, number..part.end)?,
                inserted => part.end.min(number + inserted),
            };
            if self.inserted_next == 0 && end - number >= STRETCH_MIN {
                self.replace_stretch(rows.row(number).0, rows.row(end - 1).0)?;
                self.inserted_then = INSERTED_MIN;
                number = end;
                continue;
            }
            for number in number..end {
                let (key, value) = rows.row(number);
                self.insert(key, value)?;
            }
            if self.inserted_next == 0 {
                self.inserted_next = self.inserted_then;
                self.inserted_then = (2 * self.inserted_then).min(INSERTED_MAX);
            } else {
                self.inserted_next -= end - number;
            }
            number = end;
        }
        Ok(())
    }

    /// The stretch that begins with the first of these rows. Gives the number of the first one behind
    /// it, and has `stretch` be what it shall have.
    fn find_stretch(&mut self, rows: &Rows, part: Range<usize>) -> Result<usize> {
        self.stretch.clear();
        let (first, mut next) = (part.start, part.start);
        // What the stretch has up to the last written row, and of rows of the table since then.
        let (mut len, mut copied, mut copied_bytes) = (0, 0, 0);
        let from = (Bound::Included(rows.row(first).0), Bound::Unbounded);
        for row in self.table.range::<&[u8]>(from)? {
            let (key, value) = row?;
            let (key, value) = (key.value(), value.value());
            let mut is_replaced = false;
            while next < part.end && rows.row(next).0 <= key {
                let (written, value) = rows.row(next);
                if value.is_some() {
                    self.stretch.push(written, value);
                }
                is_replaced = written == key;
                next += 1;
                (len, copied_bytes) = (self.stretch.len(), 0);
            }
            if next == part.end {
                break;
            }
            if !is_replaced {
                copied += 1;
                copied_bytes += key.len() + value.len();
                self.stretch.push(key, Some(value));
            }
            let is_sparse = copied > STRETCH_MIN + COPIED_PER_WRITTEN * (next - first);
            if is_sparse
                || copied_bytes > COPIED_BYTES_MAX
                || self.stretch.bytes.len() >= BEHIND_BYTES
            {
                break;
            }
        }
        self.stretch.truncate(len);
        Ok(next.max(first + 1))
    }

    /// Has the table have the stretch between these keys, and nothing else.
    fn replace_stretch(&mut self, first: &[u8], last: &[u8]) -> Result<()> {
        self.written_bytes += self.stretch.bytes.len();
        let range = (Bound::Included(first), Bound::Included(last));
        self.table.retain_in::<&[u8], _>(range, |_, _| false)?;
        if self.stretch.len() > 0 {
            let gap = Bound::Included(last);
            self.stretch.insert_behind(gap, self.table)?;
        }
        Ok(())
    }

    /// # Errors
    /// If the disk is full or fails.
    pub fn finish(mut self) -> Result<()> {
        self.write_among()?;
        self.write_behind()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use redb::backends::InMemoryBackend;
    use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};

    use super::*;

    const ROWS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("rows");

    fn in_memory() -> Database {
        Database::builder()
            .create_with_backend(InMemoryBackend::new())
            .unwrap()
    }

    #[test]
    fn a_table_has_what_a_map_has_that_is_written_alike() {
        let tree = in_memory();
        let mut random = fastrand::Rng::with_seed(7);
        let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        for round in 0..60u32 {
            // Further than the last row more and more often; sometimes megabytes.
            let range = (round + 1) * 300;
            let most = [3, 200, 6000, 60_000][random.usize(0..4)];
            let count = random.usize(0..most);
            let mut changes = BTreeMap::new();
            for _ in 0..count {
                let key = random.u32(0..range).to_be_bytes().to_vec();
                let is_long = random.u16(0..2000) < round as u16;
                let len = random.usize(0..if is_long { 3 * ROW_BYTES_MAX } else { 400 });
                let value = (random.u8(0..4) > 0).then(|| vec![random.u8(..); len]);
                changes.insert(key, value);
            }
            let writing = tree.begin_write().unwrap();
            let mut table = writing.open_table(ROWS).unwrap();
            let mut written = Ascending::new(&mut table, None).unwrap();
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
    fn a_table_keeps_full_leaves_when_all_of_its_rows_are_updated() {
        const ROWS_MAX: u32 = 50_000;
        let tree = in_memory();
        let write = |rows: &mut dyn Iterator<Item = (u32, Option<u8>)>| {
            let writing = tree.begin_write().unwrap();
            let mut table = writing.open_table(ROWS).unwrap();
            let mut written = Ascending::new(&mut table, None).unwrap();
            for (row, byte) in rows {
                let value = byte.map(|byte| [byte; 100]);
                let value = value.as_ref().map(|value| &value[..]);
                written.put(&row.to_be_bytes(), value).unwrap();
            }
            written.finish().unwrap();
            let leaves = table.stats().unwrap().leaf_pages();
            drop(table);
            writing.commit().unwrap();
            leaves
        };
        let loaded = write(&mut (0..ROWS_MAX).map(|row| (row, Some(0))));
        let updated = write(&mut (0..ROWS_MAX).map(|row| (row, Some(1))));
        assert!(updated <= loaded + loaded / 50, "{loaded}, {updated}");
        // Of every ten rows one goes; the others, which nobody wrote, stay.
        let deleted = write(&mut (0..ROWS_MAX).step_by(10).map(|row| (row, None)));
        assert!(deleted <= loaded * 92 / 100, "{loaded}, {deleted}");
        let reading = tree.begin_read().unwrap();
        let table = reading.open_table(ROWS).unwrap();
        let expected = (0..ROWS_MAX).filter(|row| row % 10 > 0);
        assert_eq!(table.len().unwrap(), u64::from(ROWS_MAX / 10 * 9));
        for (row, expected) in table.iter().unwrap().zip(expected) {
            let (key, value) = row.unwrap();
            assert_eq!(key.value(), expected.to_be_bytes());
            assert_eq!(value.value(), [1; 100]);
        }
    }

    #[test]
    fn rows_far_from_each_other_are_no_stretch() {
        let tree = in_memory();
        let writing = tree.begin_write().unwrap();
        let mut table = writing.open_table(ROWS).unwrap();
        for row in 0..10_000u32 {
            table.insert(&row.to_be_bytes()[..], &[0; 100][..]).unwrap();
        }
        let mut written = Ascending::new(&mut table, None).unwrap();
        let mut find = |step: usize| {
            let mut rows = Rows::default();
            for row in (0..10_000u32).step_by(step) {
                rows.push(&row.to_be_bytes(), Some(&[1; 100]));
            }
            (
                written.find_stretch(&rows, 0..rows.len()).unwrap(),
                rows.len(),
            )
        };
        assert_eq!(find(1), (10_000, 10_000));
        assert_eq!(find(15), (667, 667));
        // They have more than a leaf between them.
        assert_eq!(find(60), (1, 167));
        // Hardly a leaf has two.
        assert!(find(30).0 < STRETCH_MIN);
    }

    #[test]
    fn rows_in_order_fill_their_leaves() {
        let tree = in_memory();
        let writing = tree.begin_write().unwrap();
        let mut table = writing.open_table(ROWS).unwrap();
        let mut written = Ascending::new(&mut table, None).unwrap();
        for row in 0..50_000u32 {
            written.put(&row.to_be_bytes(), Some(&[7; 100])).unwrap();
        }
        written.finish().unwrap();
        let leaves = table.stats().unwrap().leaf_pages();
        let least = 50_000 * (100 + 4 + 8) / 4096;
        assert!(leaves < least + least / 20, "{leaves}, at least {least}");
    }
}
