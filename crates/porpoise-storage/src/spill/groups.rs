//! Which of many runs can have a key.
//!
//! A transaction that writes in the order of the keys, as an UPDATE of a whole table does, has runs of
//! which each covers keys of its own. Those are a **group**: one search in their first keys tells which
//! run is to be asked.
//!
//! ```text
//! runs, the oldest first   a–f  g–m  n–z  c–h  k–p
//! groups                   └───────────┘  └──────┘      a key is looked for in two runs at most
//! ```
//!
//! A group has runs that were written one after another. So of all groups the newest that has a key has
//! its newest version, and within a group it doesn't matter which run is newer.

use crate::SpaceId;

/// The groups of all spaces, by number.
pub(super) struct RunGroups(Vec<(SpaceId, Vec<Group>)>);

/// Runs that cover no key of each other, in the order of their keys.
#[derive(Default)]
struct Group(Vec<Member>);

struct Member {
    first_key: Box<[u8]>,
    last_key: Box<[u8]>,
    /// The run's place in the list of all.
    part: usize,
}

impl RunGroups {
    /// The groups of runs, of which the newest comes first. Each tells its spaces, with the first and the
    /// last key that it has of each.
    pub fn of<'r, R>(runs: impl DoubleEndedIterator<Item = R> + ExactSizeIterator) -> RunGroups
    where
        R: Iterator<Item = (SpaceId, &'r [u8], &'r [u8])>,
    {
        let mut spaces: Vec<(SpaceId, Vec<Group>)> = Vec::new();
        for (part, ranges) in runs.enumerate().rev() {
            for (space, first_key, last_key) in ranges {
                let member = Member {
                    first_key: first_key.into(),
                    last_key: last_key.into(),
                    part,
                };
                let at = spaces.binary_search_by_key(&space, |(of, _)| *of);
                let at = at.unwrap_or_else(|at| {
                    spaces.insert(at, (space, Vec::new()));
                    at
                });
                let groups = &mut spaces[at].1;
                let left_over = match groups.last_mut() {
                    Some(newest) => newest.add(member),
                    None => Some(member),
                };
                groups.extend(left_over.map(|member| Group(vec![member])));
            }
        }
        RunGroups(spaces)
    }

    /// The places of the runs that may have a key, the newest first.
    pub fn that_may_have(&self, space: SpaceId, key: &[u8]) -> impl Iterator<Item = usize> {
        let at = self.0.binary_search_by_key(&space, |(of, _)| *of).ok();
        let groups = at.map_or(&[][..], |at| &self.0[at].1);
        groups
            .iter()
            .rev()
            .filter_map(move |group| group.that_may_have(key))
    }
}

impl Group {
    /// Adds a run, or gives it back if it covers a key that another does.
    fn add(&mut self, member: Member) -> Option<Member> {
        let at = self.behind(&member.last_key);
        let before = at.checked_sub(1).map(|before| &self.0[before]);
        if before.is_some_and(|before| before.last_key >= member.first_key) {
            return Some(member);
        }
        self.0.insert(at, member);
        None
    }

    /// How many begin at a key or before it.
    fn behind(&self, key: &[u8]) -> usize {
        self.0.partition_point(|member| &*member.first_key <= key)
    }

    fn that_may_have(&self, key: &[u8]) -> Option<usize> {
        let member = &self.0[self.behind(key).checked_sub(1)?];
        (key <= &*member.last_key).then_some(member.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_are_told_whose_range_has_the_key_the_newest_first() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..200 {
            // Sometimes long ranges, sometimes many of a single key.
            let len_max = 1 << random.u32(0..8);
            let mut range = || {
                let first = random.u8(..);
                let last = first.saturating_add(random.u8(0..=(len_max - 1) as u8));
                (SpaceId(random.u32(0..3)), [first], [last])
            };
            let runs: Vec<Vec<_>> = (0..40).map(|_| vec![range()]).collect();
            let groups = RunGroups::of(runs.iter().map(|run| {
                let ranges = run.iter();
                ranges.map(|(space, first, last)| (*space, &first[..], &last[..]))
            }));
            for key in (0..=u8::MAX).map(|key| [key]) {
                for space in (0..4).map(SpaceId) {
                    let has = |range: &(SpaceId, [u8; 1], [u8; 1])| {
                        range.0 == space && (range.1..=range.2).contains(&key)
                    };
                    let expected = (0..40).filter(|run| runs[*run].iter().any(has));
                    let told = groups.that_may_have(space, &key);
                    assert_eq!(told.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn runs_that_follow_each_other_are_one_group() {
        let keys: Vec<[u8; 1]> = (0..100).map(|key| [key]).collect();
        let range = |key: usize| std::iter::once((SpaceId(1), &keys[key][..], &keys[key + 1][..]));
        for step in [2, 1] {
            let upward = RunGroups::of((0..99).step_by(step).map(range));
            let downward = RunGroups::of((0..99).step_by(step).rev().map(range));
            for groups in [upward, downward] {
                // Where the last key of one is the first of another they are none.
                let count = groups.0[0].1.len();
                assert_eq!(count == 1, step == 2, "{count}");
            }
        }
    }
}
