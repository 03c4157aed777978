//! The locked rows of a shard, found by their hashes.
//!
//! ```text
//! table: hash ─► position (4 bytes)      places: row and entry, in the order in which rows were locked
//! ```
//!
//! A transaction may lock millions of rows, each by a hash that leads anywhere. The table that is
//! searched is kept small, so that it stays in the processor's caches; entries are written one
//! behind the other.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::{LockEntry, RowHash};

/// A place, free where it has no entry.
struct Place {
    row: RowHash,
    entry: Option<LockEntry>,
}

/// The locked rows of a shard.
#[derive(Default)]
pub(super) struct Rows {
    table: HashTable<u32>,
    places: Vec<Place>,
    free: Vec<u32>,
}

/// The bits by which rows are found: of those that a hash begins with, all of a shard are the same.
fn spread(row: RowHash) -> u64 {
    row.0.rotate_left(super::SHARD_BITS)
}

impl Rows {
    /// How many rows are locked.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn get(&self, row: RowHash) -> Option<&LockEntry> {
        let places = &self.places;
        let is_it = |at: &u32| places[*at as usize].row == row;
        let at = *self.table.find(spread(row), is_it)?;
        places[at as usize].entry.as_ref()
    }

    pub fn get_mut(&mut self, row: RowHash) -> Option<&mut LockEntry> {
        let places = &mut self.places;
        let is_it = |at: &u32| places[*at as usize].row == row;
        let at = *self.table.find(spread(row), is_it)?;
        places[at as usize].entry.as_mut()
    }

    /// The entry of a row, a new one where it has none.
    pub fn entry(&mut self, row: RowHash) -> &mut LockEntry {
        let places = &self.places;
        let is_it = |at: &u32| places[*at as usize].row == row;
        let hash = |at: &u32| spread(places[*at as usize].row);
        let at = match self.table.entry(spread(row), is_it, hash) {
            Entry::Occupied(known) => *known.get() as usize,
            Entry::Vacant(new) => {
                let at = self.free.pop().unwrap_or(self.places.len() as u32);
                new.insert(at);
                let at = at as usize;
                if at == self.places.len() {
                    self.places.push(Place { row, entry: None });
                }
                self.places[at].row = row;
                at
            }
        };
        self.places[at].entry.get_or_insert_default()
    }

    pub fn remove(&mut self, row: RowHash) {
        let places = &self.places;
        let is_it = |at: &u32| places[*at as usize].row == row;
        if let Ok(found) = self.table.find_entry(spread(row), is_it) {
            let (at, _) = found.remove();
            self.places[at as usize].entry = None;
            self.free.push(at);
        }
    }

    /// Whether all rows' entries are so.
    pub fn all(&self, mut is_so: impl FnMut(&LockEntry) -> bool) -> bool {
        let mut entries = self.places.iter().filter_map(|place| place.entry.as_ref());
        entries.all(&mut is_so)
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.places.clear();
        self.free.clear();
    }

    /// Gives memory back if there is much more than the rows need.
    pub fn shrink(&mut self) {
        let len = self.len();
        if self.places.capacity().max(self.table.capacity()) / 4 <= len {
            return;
        }
        self.places.retain(|place| place.entry.is_some());
        self.places.shrink_to(len * 2);
        self.free = Vec::new();
        self.table.clear();
        let places = &self.places;
        let hash = |at: &u32| spread(places[*at as usize].row);
        self.table.shrink_to(len * 2, hash);
        for (at, place) in places.iter().enumerate() {
            self.table.insert_unique(spread(place.row), at as u32, hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TxnId;
    use crate::locks::LockMode;

    fn holder(rows: &Rows, row: RowHash) -> Option<TxnId> {
        rows.get(row)?.holders.first().map(|(holder, _)| *holder)
    }

    /// The same as a map does, with rows locked and released at random.
    #[test]
    fn rows_are_found_as_long_as_they_are_locked() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut rows = Rows::default();
        let mut known = hashbrown::HashMap::new();
        for round in 0..200_000_u64 {
            // Of one shard, as in use.
            let row = RowHash(random.u64(..4000).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 6);
            match random.u8(..if round < 100_000 { 3 } else { 8 }) {
                0 | 1 => {
                    if known.insert(row, TxnId(round)).is_none() {
                        rows.entry(row).hold(TxnId(round), LockMode::Exclusive);
                    } else if let Some(entry) = rows.get_mut(row) {
                        entry.holders[0].0 = TxnId(round);
                    }
                }
                _ => {
                    known.remove(&row);
                    rows.remove(row);
                }
            }
            if round % 5000 == 0 {
                rows.shrink();
            }
            assert_eq!(rows.len(), known.len());
            assert_eq!(holder(&rows, row), known.get(&row).copied());
        }
        for (row, txn) in &known {
            assert_eq!(holder(&rows, *row), Some(*txn));
        }
        assert!(rows.all(|entry| entry.holders.len() == 1));
        rows.clear();
        rows.shrink();
        assert_eq!((rows.len(), rows.places.capacity()), (0, 0));
    }
}
