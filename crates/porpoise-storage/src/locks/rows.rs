//! The locked rows of a shard, found by their hashes.
//!
//! ```text
//! table: hash ─► position (4 bytes)      places: row and holder, in the order in which rows were locked
//!                                        entries: rows with several holders, or with waiters
//! ```
//!
//! A transaction may lock millions of rows, each by a hash that leads anywhere. The table that is
//! searched is kept small, so that it stays in the processor's caches; places are written one behind
//! the other. A row that one transaction holds and nobody waits for, as nearly all, takes 16 bytes
//! there: who holds it in which mode is one number. An entry is made for a row when a second
//! transaction comes to it.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::{LockEntry, LockMode, Locked, RowHash};
use crate::TxnId;

/// A locked row.
struct Place {
    row: RowHash,
    holder: Holder,
}

/// Who holds a row, in 8 bytes: the last bit tells an entry's number (1) from a transaction's with
/// its mode in the two bits before it (0).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Holder(u64);

enum Held {
    By(TxnId, LockMode),
    Entry(usize),
    Nobody,
}

const MODES: [LockMode; 4] = [
    LockMode::Absent,
    LockMode::Shared,
    LockMode::Exclusive,
    LockMode::Insert,
];

impl Holder {
    const NOBODY: Holder = Holder(u64::MAX);

    /// `None` for a transaction whose number is too high for it, of which there are none.
    fn of(txn: TxnId, mode: LockMode) -> Option<Holder> {
        let is_short = txn.0 < 1 << 61;
        is_short.then_some(Holder(txn.0 << 3 | (mode as u64) << 1))
    }

    fn entry(number: usize) -> Holder {
        Holder((number as u64) << 1 | 1)
    }

    fn held(self) -> Held {
        match self {
            Holder::NOBODY => Held::Nobody,
            Holder(bits) if bits & 1 == 1 => Held::Entry((bits >> 1) as usize),
            Holder(bits) => Held::By(TxnId(bits >> 3), MODES[(bits >> 1 & 3) as usize]),
        }
    }
}

/// The locked rows of a shard.
#[derive(Default)]
pub(super) struct Rows {
    table: HashTable<u32>,
    places: Vec<Place>,
    free: Vec<u32>,
    entries: Vec<LockEntry>,
    free_entries: Vec<usize>,
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

    /// Whether anybody holds a row, or waits for it.
    pub fn has(&self, row: RowHash) -> bool {
        self.position(row).is_some()
    }

    fn position(&self, row: RowHash) -> Option<usize> {
        let is_it = |at: &u32| self.places[*at as usize].row == row;
        let at = self.table.find(spread(row), is_it)?;
        Some(*at as usize)
    }

    /// The place of a row, made if there is none.
    fn place(&mut self, row: RowHash) -> &mut Place {
        let places = &self.places;
        let is_it = |at: &u32| places[*at as usize].row == row;
        let hash = |at: &u32| spread(places[*at as usize].row);
        let at = match self.table.entry(spread(row), is_it, hash) {
            Entry::Occupied(known) => *known.get() as usize,
            Entry::Vacant(new) => {
                let at = self.free.pop().unwrap_or(self.places.len() as u32);
                new.insert(at);
                let at = at as usize;
                let holder = Holder::NOBODY;
                match self.places.get_mut(at) {
                    Some(place) => *place = Place { row, holder },
                    None => self.places.push(Place { row, holder }),
                }
                at
            }
        };
        &mut self.places[at]
    }

    /// Has a transaction hold a row, if nobody else is concerned with it.
    pub fn hold_alone(&mut self, row: RowHash, txn: TxnId, mode: LockMode) -> Option<Locked> {
        let own = Holder::of(txn, mode)?;
        let place = self.place(row);
        match place.holder.held() {
            Held::Nobody => {
                place.holder = own;
                Some(Locked::Granted)
            }
            Held::By(holder, held) if holder == txn => Some(match held >= mode {
                true => Locked::AlreadyHeld,
                false => {
                    place.holder = own;
                    Locked::Upgraded
                }
            }),
            Held::By(..) | Held::Entry(_) => None,
        }
    }

    /// The entry of a row with which more than one transaction is concerned.
    pub fn get(&self, row: RowHash) -> Option<&LockEntry> {
        match self.places[self.position(row)?].holder.held() {
            Held::Entry(number) => self.entries.get(number),
            Held::By(..) | Held::Nobody => None,
        }
    }

    /// As [`Rows::get`].
    pub fn get_mut(&mut self, row: RowHash) -> Option<&mut LockEntry> {
        match self.places[self.position(row)?].holder.held() {
            Held::Entry(number) => self.entries.get_mut(number),
            Held::By(..) | Held::Nobody => None,
        }
    }

    /// The entry of a row, a new one where it has none.
    pub fn entry(&mut self, row: RowHash) -> &mut LockEntry {
        let mut made = LockEntry::default();
        match self.place(row).holder.held() {
            Held::Entry(number) => return &mut self.entries[number],
            Held::By(txn, mode) => made.hold(txn, mode),
            Held::Nobody => {}
        }
        let number = self.free_entries.pop().unwrap_or(self.entries.len());
        self.place(row).holder = Holder::entry(number);
        match self.entries.get_mut(number) {
            Some(entry) => *entry = made,
            None => self.entries.push(made),
        }
        &mut self.entries[number]
    }

    /// How a transaction holds a row.
    pub fn mode_of(&self, row: RowHash, txn: TxnId) -> Option<LockMode> {
        match self.places[self.position(row)?].holder.held() {
            Held::By(holder, mode) => (holder == txn).then_some(mode),
            Held::Entry(number) => Some(self.entries[number].holder(txn)?.mode),
            Held::Nobody => None,
        }
    }

    /// Gives back a row that a transaction holds otherwise than by a lock on the space, and grants it
    /// to those who wait for it. One that has locked the space, in the mode `space`, holds the row by
    /// that from then on. What comes back is how it was held.
    pub fn give_back(
        &mut self,
        row: RowHash,
        txn: TxnId,
        space: Option<LockMode>,
    ) -> Option<LockMode> {
        match self.places[self.position(row)?].holder.held() {
            Held::By(holder, mode) if holder == txn => {
                self.remove(row);
                Some(mode)
            }
            Held::Entry(number) => {
                let entry = &mut self.entries[number];
                let own = entry.holder(txn).filter(|own| !own.is_implied)?;
                entry.holders.retain(|holder| holder.txn != txn);
                if let Some(space) = space {
                    // Never more than it had: others may hold the row since before.
                    entry.hold_implied(txn, space.min(own.mode));
                }
                entry.grant_waiters();
                self.remove_if_free(row);
                Some(own.mode)
            }
            Held::By(..) | Held::Nobody => None,
        }
    }

    /// Has a transaction that has locked the space hold, beside others, each row that it may.
    pub fn imply(&mut self, txn: TxnId, mode: LockMode) {
        let others = self
            .places
            .iter()
            .filter(|place| match place.holder.held() {
                Held::By(holder, held) => holder != txn && !held.conflicts_with(mode),
                Held::Entry(number) => self.entries[number].admits(txn, mode),
                Held::Nobody => false,
            });
        let rows: Vec<RowHash> = others.map(|place| place.row).collect();
        for row in rows {
            self.entry(row).hold_implied(txn, mode);
        }
    }

    /// The rows that a transaction holds.
    pub fn held_by(&self, txn: TxnId) -> impl Iterator<Item = RowHash> {
        let places = self.places.iter();
        let own = places.filter(move |place| match place.holder.held() {
            Held::By(holder, _) => holder == txn,
            Held::Entry(number) => self.entries[number].holder(txn).is_some(),
            Held::Nobody => false,
        });
        own.map(|place| place.row)
    }

    /// Releases a row that a transaction holds, and grants it to those who wait for it.
    pub fn release(&mut self, row: RowHash, txn: TxnId) {
        let Some(at) = self.position(row) else { return };
        match self.places[at].holder.held() {
            Held::By(holder, _) if holder == txn => self.remove(row),
            Held::Entry(number) => {
                let entry = &mut self.entries[number];
                entry.holders.retain(|holder| holder.txn != txn);
                entry.grant_waiters();
                self.remove_if_free(row);
            }
            Held::By(..) | Held::Nobody => {}
        }
    }

    /// Forgets a row that nobody holds or waits for, but for who has locked the space.
    pub fn remove_if_free(&mut self, row: RowHash) {
        if self.get(row).is_some_and(LockEntry::is_free) {
            self.remove(row);
        }
    }

    fn remove(&mut self, row: RowHash) {
        let places = &self.places;
        let is_it = |at: &u32| places[*at as usize].row == row;
        if let Ok(found) = self.table.find_entry(spread(row), is_it) {
            let (at, _) = found.remove();
            let place = &mut self.places[at as usize];
            if let Held::Entry(number) = place.holder.held() {
                self.entries[number] = LockEntry::default();
                self.free_entries.push(number);
            }
            place.holder = Holder::NOBODY;
            self.free.push(at);
        }
    }

    /// Whether nobody but a transaction holds a row, or waits for one.
    pub fn are_all_of(&self, txn: TxnId) -> bool {
        self.places.iter().all(|place| match place.holder.held() {
            Held::By(holder, _) => holder == txn,
            Held::Entry(number) => self.entries[number].is_only_of(txn),
            Held::Nobody => true,
        })
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.places.clear();
        self.free.clear();
        self.entries.clear();
        self.free_entries.clear();
    }

    /// Gives memory back if there is much more than the rows need.
    pub fn shrink(&mut self) {
        let len = self.len();
        if self.places.capacity().max(self.table.capacity()) / 4 <= len {
            return;
        }
        self.places.retain(|place| place.holder != Holder::NOBODY);
        self.places.shrink_to(len * 2);
        self.free = Vec::new();
        if self.entries.len() == self.free_entries.len() {
            self.entries = Vec::new();
            self.free_entries = Vec::new();
        }
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

    /// The same as a map does, with rows locked and released at random, some by two transactions.
    #[test]
    fn rows_are_found_as_long_as_they_are_locked() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut rows = Rows::default();
        let mut known: hashbrown::HashMap<RowHash, Vec<TxnId>> = hashbrown::HashMap::new();
        for round in 0..200_000_u64 {
            // Of one shard, as in use.
            let row = RowHash(random.u64(..4000).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 6);
            let txn = TxnId(random.u64(..3));
            let holders = known.entry(row).or_default();
            match random.u8(..if round < 100_000 { 3 } else { 8 }) {
                0 | 1 => {
                    let alone = rows.hold_alone(row, txn, LockMode::Shared);
                    let expected = match &holders[..] {
                        [] => Some(Locked::Granted),
                        [only] if *only == txn => Some(Locked::AlreadyHeld),
                        _ => None,
                    };
                    // A row that several have held keeps its entry for the last of them.
                    assert!(alone == expected || alone.is_none() && holders.len() == 1);
                    if alone.is_none() {
                        rows.entry(row).hold(txn, LockMode::Shared);
                    }
                    if !holders.contains(&txn) {
                        holders.push(txn);
                    }
                }
                _ => {
                    holders.retain(|holder| *holder != txn);
                    rows.release(row, txn);
                }
            }
            for txn in (0..3).map(TxnId) {
                let mode = holders.contains(&txn).then_some(LockMode::Shared);
                assert_eq!(rows.mode_of(row, txn), mode);
            }
            if holders.is_empty() {
                known.remove(&row);
            }
            if round % 5000 == 0 {
                rows.shrink();
            }
            assert_eq!(rows.len(), known.len());
        }
        for txn in (0..3).map(TxnId) {
            let mut held: Vec<_> = rows.held_by(txn).map(|row| row.0).collect();
            let expected = known.iter().filter(|(_, holders)| holders.contains(&txn));
            let mut expected: Vec<_> = expected.map(|(row, _)| row.0).collect();
            held.sort_unstable();
            expected.sort_unstable();
            assert_eq!(held, expected);
        }
        assert!(!rows.are_all_of(TxnId(0)));
        rows.clear();
        assert!(rows.are_all_of(TxnId(0)));
        rows.shrink();
        assert_eq!((rows.len(), rows.places.capacity()), (0, 0));
    }
}
