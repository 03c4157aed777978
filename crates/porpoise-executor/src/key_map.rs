//! Keys that are told apart: what groups, DISTINCT and set operations look rows up by.
//!
//! ```text
//! key ──hash──► table ──► place in the arena, number
//! ```
//!
//! A key's bytes lie in an arena, and beside its place stands its hash. So a map of many keys grows
//! without looking at them again, and is freed at once. Beyond some tens of thousands it is split
//! into many small tables: none of them takes long to grow, and the statement can be ended in
//! between.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::{Arena, Charge, MemoryAccount, Place, reclaim};
use smallvec::{SmallVec, smallvec};

/// A single table holds so many keys before it is split.
const WHOLE_MAX: usize = 1 << 16;
const PARTS: usize = 64;

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    place: Place,
    len: u32,
    number: u32,
}

/// Distinct keys, numbered from 0 in the order in which they came.
pub struct KeyMap {
    /// One, or [`PARTS`] of them.
    tables: SmallVec<[HashTable<Entry>; 1]>,
    keys: Arena,
    len: usize,
    charge: Charge,
    hasher: DefaultHashBuilder,
}

impl Default for KeyMap {
    fn default() -> KeyMap {
        KeyMap {
            tables: smallvec![HashTable::new()],
            keys: Arena::default(),
            len: 0,
            charge: Charge::default(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl Drop for KeyMap {
    fn drop(&mut self) {
        // Returning so much to the system takes milliseconds.
        if self.tables.len() > 1 {
            reclaim(std::mem::take(&mut self.tables));
        }
    }
}

impl KeyMap {
    /// The number of a key; `None` if it has none.
    pub fn get(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let table = &self.tables[part_of(hash, self.tables.len())];
        let found = table.find(hash, |entry| is_key(&self.keys, entry, hash, key));
        found.map(|entry| entry.number as usize)
    }

    /// The number of a key, which it is given if it had none, and whether it had none.
    ///
    /// # Errors
    /// As [`Charge::add`].
    pub fn insert(&mut self, account: &Arc<MemoryAccount>, key: &[u8]) -> Result<(usize, bool)> {
        let hash = self.hasher.hash_one(key);
        let part = part_of(hash, self.tables.len());
        let keys = &self.keys;
        let found = self.tables[part].find(hash, |entry| is_key(keys, entry, hash, key));
        if let Some(entry) = found {
            return Ok((entry.number as usize, false));
        }
        let number = u32::try_from(self.len);
        let (Ok(number), Ok(len)) = (number, u32::try_from(key.len())) else {
            return Err(Error::engine_error("a hash table of too many rows"));
        };
        let place = self.keys.push(account, key)?;
        let table = &mut self.tables[part];
        if table.len() == table.capacity() {
            let growth = table.allocation_size().max(8 * size_of::<Entry>());
            self.charge.add(account, growth)?;
        }
        let entry = Entry {
            hash,
            place,
            len,
            number,
        };
        table.insert_unique(hash, entry, |entry| entry.hash);
        self.len += 1;
        if self.len == WHOLE_MAX {
            self.split();
        }
        Ok((number as usize, true))
    }

    fn split(&mut self) {
        let whole = std::mem::take(&mut self.tables);
        self.tables = (0..PARTS).map(|_| HashTable::new()).collect();
        for entry in whole.into_iter().flatten() {
            let table = &mut self.tables[part_of(entry.hash, PARTS)];
            table.insert_unique(entry.hash, entry, |entry| entry.hash);
        }
    }

    /// How much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.charge.bytes()
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.tables.truncate(1);
        for table in &mut self.tables {
            match table.capacity() > WHOLE_MAX / PARTS {
                true => *table = HashTable::new(),
                false => table.clear(),
            }
        }
        self.keys.clear();
        self.charge.clear();
        self.len = 0;
    }
}

fn is_key(keys: &Arena, entry: &Entry, hash: u64, key: &[u8]) -> bool {
    entry.hash == hash
        && entry.len as usize == key.len()
        && keys.from(entry.place)[..key.len()] == *key
}

/// The table that a hash belongs to. Bits from the middle say it: those at the ends tell entries of
/// one table apart.
fn part_of(hash: u64, parts: usize) -> usize {
    (hash >> 32) as usize % parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_numbers_however_many_there_are() {
        let account = Arc::default();
        let mut map = KeyMap::default();
        let count = 3 * WHOLE_MAX;
        for number in 0..count {
            let key = number.to_le_bytes();
            assert_eq!(map.get(&key), None);
            assert_eq!(map.insert(&account, &key).unwrap(), (number, true));
        }
        for number in 0..count {
            let key = number.to_le_bytes();
            assert_eq!(map.insert(&account, &key).unwrap(), (number, false));
            assert_eq!(map.get(&key), Some(number));
        }
        assert_eq!(map.insert(&account, b"").unwrap(), (count, true));
        assert!(account.used() > 8 * count as u64);
        map.clear();
        assert_eq!(account.used(), 0);
        assert_eq!(map.get(&0usize.to_le_bytes()), None);
        assert_eq!(map.insert(&account, b"again").unwrap(), (0, true));
    }

    #[test]
    fn a_map_takes_no_more_than_its_account_allows() {
        let account = Arc::new(MemoryAccount::default());
        account.set_statement_limit(4 << 20);
        let mut map = KeyMap::default();
        let refused = (0..1_000_000usize)
            .find_map(|number| map.insert(&account, &number.to_le_bytes()).err());
        assert_eq!(refused.unwrap().number(), 1037);
    }
}
