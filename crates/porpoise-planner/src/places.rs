//! Places spread over the keys of a space: where to read some rows that stand for all.
//!
//! Storage doesn't count the keys between two others, so places are spread over the keys as if these
//! were numbers. Digits of a number written as text, say, use ten of 256 bytes; so which bytes stand
//! at each position is learned first, from keys at places that were chosen without knowing, and
//! places are then numbers whose digits are these bytes. Between places without a key lies a gap, as
//! between the years of days that are written 19921231, 19930101: those count once, so that the keys
//! behind a gap aren't read for all of it.
//!
//! ```text
//! user-000 … user-999     common  'user-'      then three positions of '0' … '9'
//! ```

use std::ops::Bound;

use porpoise_core::error::Result;
use porpoise_storage::{Direction, Snapshot, SpaceId};

/// How many positions behind the common beginning of all keys tell places apart.
const POSITIONS: usize = 8;

/// So many places more are looked at than are asked for, as some lie in gaps.
const CANDIDATES: usize = 4;

/// Keys to begin reading at, in ascending order: `count` of them or fewer. None for an empty space.
pub fn spread(snapshot: &Snapshot, space: SpaceId, count: usize) -> Result<Vec<Vec<u8>>> {
    let (Some(first), Some(last)) = (
        end_of(snapshot, space, Direction::Forward)?,
        end_of(snapshot, space, Direction::Backward)?,
    ) else {
        return Ok(Vec::new());
    };
    let common = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
    let mut digits = Digits {
        common,
        bytes: vec![(u8::MIN, u8::MAX); POSITIONS],
    };
    let mut known = vec![first.clone(), last.clone()];
    known.extend(found(
        snapshot,
        space,
        &digits.places(&first, &last, count),
    )?);
    digits.learn(&known);
    let candidates = digits.places(&first, &last, count * CANDIDATES);
    let mut found = found(snapshot, space, &candidates)?;
    if found.len() > count {
        let every = found.len() as f64 / count as f64;
        let chosen = (0..count).map(|n| std::mem::take(&mut found[(n as f64 * every) as usize]));
        found = chosen.collect();
    }
    Ok(found)
}

/// The first key behind each place, if it comes before the next one.
fn found(snapshot: &Snapshot, space: SpaceId, places: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::with_capacity(places.len());
    for (n, place) in places.iter().enumerate() {
        if let Some(key) = key_from(snapshot, space, place)?
            && places.get(n + 1).is_none_or(|next| key < *next)
        {
            found.push(key);
        }
    }
    Ok(found)
}

/// The first key in the direction.
fn end_of(snapshot: &Snapshot, space: SpaceId, direction: Direction) -> Result<Option<Vec<u8>>> {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut cursor = snapshot.range(space, bounds, direction)?;
    Ok(cursor.next()?.map(|(key, _)| key.to_vec()))
}

/// The first key that isn't smaller.
fn key_from(snapshot: &Snapshot, space: SpaceId, from: &[u8]) -> Result<Option<Vec<u8>>> {
    let bounds = (Bound::Included(from), Bound::Unbounded);
    let mut cursor = snapshot.range(space, bounds, Direction::Forward)?;
    Ok(cursor.next()?.map(|(key, _)| key.to_vec()))
}

/// How keys are read as numbers.
struct Digits {
    /// How many bytes all keys begin with.
    common: usize,
    /// The smallest and the largest byte at each position behind these.
    bytes: Vec<(u8, u8)>,
}

impl Digits {
    fn learn(&mut self, keys: &[Vec<u8>]) {
        for (position, range) in self.bytes.iter_mut().enumerate() {
            let at = keys
                .iter()
                .filter_map(|key| key.get(self.common + position));
            let ends = at.clone().min().zip(at.max());
            *range = ends.map_or((0, 0), |(low, high)| (*low, *high));
        }
    }

    fn number(&self, key: &[u8]) -> u128 {
        let position = |(n, (low, high)): (usize, &(u8, u8))| {
            let byte = key.get(self.common + n).copied().unwrap_or(*low);
            let radix = u128::from(high - low) + 1;
            (radix, u128::from(byte.clamp(*low, *high) - low))
        };
        let positions = self.bytes.iter().enumerate().map(position);
        positions.fold(0, |number, (radix, digit)| number * radix + digit)
    }

    fn key(&self, beginning: &[u8], mut number: u128) -> Vec<u8> {
        let mut key = beginning[..self.common].to_vec();
        key.resize(self.common + self.bytes.len(), 0);
        for (at, (low, high)) in self.bytes.iter().enumerate().rev() {
            let radix = u128::from(high - low) + 1;
            key[self.common + at] = low + (number % radix) as u8;
            number /= radix;
        }
        key
    }

    /// Keys spread evenly from one to another.
    fn places(&self, first: &[u8], last: &[u8], count: usize) -> Vec<Vec<u8>> {
        let (from, to) = (self.number(first), self.number(last));
        let span = to.saturating_sub(from);
        let place = |n: usize| from + span / count.max(1) as u128 * n as u128;
        let mut places: Vec<Vec<u8>> = (0..count).map(|n| self.key(first, place(n))).collect();
        if let Some(place) = places.first_mut() {
            *place = first.to_vec();
        }
        places.dedup();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use porpoise_storage::{Options, Store};

    /// The parts of keys below each place, where there are `keys` in order.
    fn parts_below(keys: &[Vec<u8>]) -> Vec<f64> {
        let store = Store::open(&Options::memory()).unwrap();
        let space = store.allocate_space();
        let mut transaction = store.begin();
        transaction.create_space(space);
        for key in keys {
            transaction.insert(space, key, b"");
        }
        transaction.commit().unwrap().wait().unwrap();
        let places = spread(&store.snapshot(), space, 16).unwrap();
        let below = |place: &Vec<u8>| keys.partition_point(|key| key < place);
        places
            .iter()
            .map(|place| below(place) as f64 / keys.len() as f64)
            .collect()
    }

    fn assert_even(parts: &[f64]) {
        assert_eq!(parts.len(), 16);
        for (n, part) in parts.iter().enumerate() {
            assert!((part - n as f64 / 16.0).abs() < 0.02, "{parts:?}");
        }
    }

    #[test]
    fn places_among_numbers_are_even() {
        let keys: Vec<Vec<u8>> = (0u32..20_000).map(|n| n.to_be_bytes().to_vec()).collect();
        assert_even(&parts_below(&keys));
    }

    #[test]
    fn places_among_numbers_as_text_are_even() {
        let keys: Vec<Vec<u8>> = (0..10_000)
            .map(|n| format!("user-{n:04}").into_bytes())
            .collect();
        assert_even(&parts_below(&keys));
    }

    #[test]
    fn keys_behind_a_gap_are_not_read_for_all_of_it() {
        let days = |year: u32| {
            (1..=12).flat_map(move |m| (1..=28).map(move |d| year * 10_000 + m * 100 + d))
        };
        let days = (1992..1999).flat_map(days);
        let keys: Vec<Vec<u8>> = days.map(|day| day.to_be_bytes().to_vec()).collect();
        let parts = parts_below(&keys);
        let ahead = parts.windows(2).map(|pair| pair[1] - pair[0]);
        let most = ahead.fold(0.0, f64::max);
        assert!(parts.len() >= 8 && most < 0.25, "{parts:?}");
    }

    #[test]
    fn an_empty_space_has_no_places() {
        assert!(parts_below(&[]).is_empty());
    }
}
