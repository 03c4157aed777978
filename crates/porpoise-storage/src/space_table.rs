//! A table from space number to something, read without a lock.
//!
//! Spaces are numbered from zero upwards, so the table is an array that grows: bucket 0 has room
//! for 32 spaces, each next bucket for twice as many. A bucket is allocated when its first space
//! appears and never moves, hence a reader needs two loads and no lock.
//!
//! ```text
//! bucket      0         1          2
//! spaces    0..32    32..96    96..224 …
//! ```

use std::sync::OnceLock;

use crate::SpaceId;

const FIRST_BUCKET_LEN: u64 = 32;
const BUCKETS: usize = 28;

type Bucket<T> = OnceLock<Box<[OnceLock<T>]>>;

pub(crate) struct SpaceTable<T> {
    buckets: [Bucket<T>; BUCKETS],
}

impl<T> SpaceTable<T> {
    pub fn new() -> SpaceTable<T> {
        SpaceTable {
            buckets: [const { OnceLock::new() }; BUCKETS],
        }
    }

    pub fn get(&self, space: SpaceId) -> Option<&T> {
        let (bucket, slot, _) = position(space);
        self.buckets[bucket].get()?[slot].get()
    }

    pub fn get_or_insert_with(&self, space: SpaceId, make: impl FnOnce() -> T) -> &T {
        let (bucket, slot, len) = position(space);
        let bucket =
            self.buckets[bucket].get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
        bucket[slot].get_or_init(make)
    }

    /// Every space present, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (SpaceId, &T)> {
        self.buckets.iter().enumerate().flat_map(|(bucket, slots)| {
            let first = FIRST_BUCKET_LEN * ((1 << bucket) - 1);
            slots
                .get()
                .into_iter()
                .flatten()
                .enumerate()
                .filter_map(move |(slot, item)| {
                    let space = u32::try_from(first + slot as u64).ok()?;
                    Some((SpaceId(space), item.get()?))
                })
        })
    }
}

/// Bucket, slot within it, and the bucket's length.
fn position(space: SpaceId) -> (usize, usize, usize) {
    let shifted = u64::from(space.0) + FIRST_BUCKET_LEN;
    let bucket = (shifted / FIRST_BUCKET_LEN).ilog2();
    let len = FIRST_BUCKET_LEN << bucket;
    (bucket as usize, (shifted - len) as usize, len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_space_has_a_slot_of_its_own() {
        let mut expected = (0usize, 0usize);
        for space in 0..100_000 {
            let (bucket, slot, len) = position(SpaceId(space));
            assert_eq!((bucket, slot), expected);
            expected = if slot + 1 == len {
                (bucket + 1, 0)
            } else {
                (bucket, slot + 1)
            };
        }
        let (bucket, slot, len) = position(SpaceId(u32::MAX));
        assert!(bucket < BUCKETS && slot < len);
    }

    #[test]
    fn what_was_inserted_is_found_and_listed_in_order() {
        let table = SpaceTable::new();
        for space in [700, 3, 95, 96] {
            table.get_or_insert_with(SpaceId(space), || space * 2);
        }
        assert_eq!(table.get(SpaceId(95)), Some(&190));
        assert_eq!(table.get(SpaceId(94)), None);
        assert_eq!(*table.get_or_insert_with(SpaceId(3), || 0), 6);
        let listed: Vec<_> = table.iter().map(|(space, item)| (space.0, *item)).collect();
        assert_eq!(listed, [(3, 6), (95, 190), (96, 192), (700, 1400)]);
    }
}
