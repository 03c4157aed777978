//! Against a sorted map, and many threads against each other.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::thread;

use super::arena::CHUNK_BYTES_MAX;
use super::*;

fn map() -> VersionMap {
    VersionMap::new(Arc::default())
}

fn keys(map: &VersionMap) -> Vec<Vec<u8>> {
    std::iter::successors(map.first(), EntryRef::next)
        .map(|found| found.key().to_vec())
        .collect()
}

fn random_key(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = random.usize(0..12);
    (0..len).map(|_| random.u8(0..3)).collect()
}

#[test]
fn versions_are_found_as_in_a_sorted_map() {
    let map = map();
    let mut model: BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>> = BTreeMap::new();
    let mut random = fastrand::Rng::with_seed(7);
    let rounds = if cfg!(miri) { 300 } else { 20_000 };
    for _ in 0..rounds {
        let key = random_key(&mut random);
        // Not in order, and sometimes twice.
        let ts = random.u64(1..rounds);
        let value = random
            .bool()
            .then(|| vec![random.u8(..); random.usize(0..40)]);
        map.insert(&key, ts, value.as_deref());
        model.entry(key).or_default().insert(ts, value);
    }
    assert_eq!(keys(&map), model.keys().cloned().collect::<Vec<_>>());
    assert_eq!(map.len(), model.len());
    let name = |found: Option<EntryRef<'_>>| found.map(|found| found.key().to_vec());
    assert_eq!(name(map.last()), model.keys().next_back().cloned());
    for _ in 0..rounds {
        let key = random_key(&mut random);
        let ts = random.u64(0..rounds);
        let known = model.get(&key);
        assert_eq!(map.get(&key).is_some(), known.is_some());
        let expected = known.and_then(|versions| versions.range(..=ts).next_back());
        let found = map.get(&key).and_then(|found| found.visible(ts));
        assert_eq!(
            found.map(|value| value.map(<[u8]>::to_vec)),
            expected.map(|(_, value)| value.clone())
        );
        let (from, to) = (Bound::Included(&key), Bound::Excluded(&key));
        let first = |low| model.range::<Vec<u8>, _>((low, Bound::Unbounded)).next();
        let last = |high| {
            model
                .range::<Vec<u8>, _>((Bound::Unbounded, high))
                .next_back()
        };
        let copy = |row: Option<(&Vec<u8>, _)>| row.map(|(key, _)| key.clone());
        assert_eq!(name(map.at_or_above(&key)), copy(first(from)));
        assert_eq!(name(map.above(&key)), copy(first(to)));
        assert_eq!(name(map.at_or_below(&key)), copy(last(from)));
        assert_eq!(name(map.below(&key)), copy(last(to)));
    }
}

/// In whatever order keys come, each is found without a walk along the list.
#[test]
fn the_key_index_has_every_key() {
    let count: u32 = if cfg!(miri) { 300 } else { 50_000 };
    let orders: [fn(u32, u32) -> u32; 4] = [
        |number, _| number,
        |number, count| count - 1 - number,
        |number, count| (number as u64 * 7_919 % u64::from(count)) as u32,
        // Runs that end in one another's midst.
        |number, count| number / 2 + (number % 2) * (count / 2),
    ];
    for order in orders {
        for suffix in [&b""[..], b"a tail of eight bytes and more"] {
            let map = map();
            let key = |number: u32| [b"in front", &number.to_be_bytes()[..], suffix].concat();
            for number in 0..count {
                map.insert(&key(order(number, count)), 1, None);
            }
            let mut at = map.first();
            for number in 0..count {
                let (key, found) = (key(number), at.unwrap());
                assert_eq!(found.key(), key);
                let position = map.find_position(&Probe::new(&key));
                assert!(
                    position.is_exact
                        && position.is_equal
                        && position.at_or_after == Some(found.at)
                );
                let absent = [&key[..], b"0"].concat();
                let position = map.find_position(&Probe::new(&absent));
                assert!(position.is_exact && !position.is_equal && position.before == found.at);
                at = found.next();
            }
            assert!(at.is_none());
            assert_eq!(map.last().unwrap().key(), key(count - 1));
        }
    }
}

#[test]
fn what_is_there_is_found_while_others_add() {
    let map = map();
    let (writers, each) = if cfg!(miri) { (2, 40) } else { (3, 30_000) };
    let key =
        |writer: u32, number: u32| (number.wrapping_mul(2_654_435_761) ^ writer).to_be_bytes();
    thread::scope(|scope| {
        for writer in 0..writers {
            let (map, key) = (&map, &key);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(u64::from(writer));
                for number in 0..each {
                    map.insert(&key(writer, number), 1, Some(&[7]));
                    let earlier = key(writer, random.u32(0..=number));
                    let found = map.get(&earlier).expect("added before");
                    assert_eq!(found.visible(1), Some(Some(&[7][..])));
                    let from = map.at_or_above(&earlier).expect("added before");
                    assert_eq!(from.key(), earlier);
                    assert!(
                        map.below(&earlier)
                            .is_none_or(|below| below.key() < &earlier[..])
                    );
                }
            });
        }
    });
    let mut sorted: Vec<_> = (0..writers)
        .flat_map(|writer| (0..each).map(move |number| (writer, number)))
        .map(|(writer, number)| key(writer, number).to_vec())
        .collect();
    sorted.sort();
    sorted.dedup();
    assert_eq!(keys(&map), sorted);
}

#[test]
fn an_empty_map_has_nothing() {
    let map = map();
    assert!(map.first().is_none() && map.last().is_none());
    assert!(map.get(b"").is_none());
    assert!(map.at_or_below(b"a").is_none());
}

#[test]
fn large_values_get_a_piece_of_their_own() {
    let map = map();
    let large = vec![7; CHUNK_BYTES_MAX + 3];
    map.insert(b"b", 1, Some(&large));
    map.insert(b"a", 1, Some(b"small"));
    let found = map.first().unwrap();
    assert_eq!(found.visible(1), Some(Some(&b"small"[..])));
    assert_eq!(found.next().unwrap().visible(1), Some(Some(&large[..])));
}

#[test]
fn writers_side_by_side_lose_nothing_and_readers_see_an_order() {
    let map = map();
    let (writers, each) = if cfg!(miri) { (3, 60) } else { (4, 20_000) };
    thread::scope(|scope| {
        for writer in 0..writers {
            let map = &map;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(writer);
                for number in 0..each {
                    let key = random.u16(0..500).to_be_bytes();
                    let ts = number * writers + writer + 1;
                    map.insert(&key, ts, Some(&ts.to_be_bytes()));
                    // What it has put in, it finds.
                    let found = map.get(&key).and_then(|found| found.visible(ts));
                    assert_eq!(found, Some(Some(&ts.to_be_bytes()[..])));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..each / 20 {
                assert!(keys(&map).windows(2).all(|two| two[0] < two[1]));
                thread::yield_now();
            }
        });
    });
    let mut versions = 0;
    for found in std::iter::successors(map.first(), EntryRef::next) {
        let mut ts = u64::MAX;
        while let Some(value) = found.visible(ts) {
            versions += 1;
            ts = u64::from_be_bytes(value.unwrap().try_into().unwrap()) - 1;
        }
    }
    assert_eq!(versions, writers * each);
    assert_eq!(keys(&map).len(), map.len());
}
