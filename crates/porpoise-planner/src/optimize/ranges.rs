//! Which parts of an index the sargable conditions select.
//!
//! An index's ranges are made part by part, as long as parts are fixed to single values:
//!
//! ```text
//! index (a, b, c)    a IN (1, 2) AND b = 5 AND c > 7        (1,5,7..)  (2,5,7..)
//! ```
//!
//! Of a condition with alternatives each gives ranges of its own, together with the other
//! conditions:
//!
//! ```text
//! index (a, b)       (a = 1 AND b = 2) OR a > 3             (1,2)  (3..)
//! ```

use porpoise_catalog::IndexPart;
use smallvec::SmallVec;

use crate::optimize::sargs::{Alternatives, Arm, Interval, Sarg, Sargs};
use crate::plan::KeyRange;

/// More ranges than this are not multiplied out.
const RANGES_MAX: usize = 1000;
/// Of more alternatives none is multiplied by the other conditions' lists.
const MULTIPLIED_ARMS_MAX: usize = 64;

/// The ranges of one index.
#[derive(Clone, Debug)]
pub struct IndexRanges {
    pub ranges: Vec<KeyRange>,
    /// Parts fixed or bounded, of the range that has most.
    pub parts: usize,
    /// Conditions that need not be checked again, because the ranges select no other rows.
    pub exact: Vec<usize>,
    /// The condition whose alternatives have ranges of their own.
    pub alternatives: Option<usize>,
}

impl IndexRanges {
    /// The whole index.
    pub fn all() -> IndexRanges {
        IndexRanges {
            ranges: vec![KeyRange::ALL],
            parts: 0,
            exact: Vec::new(),
            alternatives: None,
        }
    }

    /// Leading parts that all ranges fix to the same values.
    pub fn equal_parts(&self) -> usize {
        match &self.ranges[..] {
            [range] => range.equal.len(),
            _ => 0,
        }
    }
}

/// Ranges made of conditions that all hold, some of which say exactly what the ranges do.
struct Conjunction {
    ranges: Vec<KeyRange>,
    parts: usize,
    /// Positions of the conditions that need not be checked again.
    exact: SmallVec<[usize; 4]>,
}

impl Conjunction {
    /// Bounds the part after the fixed ones by conditions that are one interval each. Of several
    /// bounds on one side the first is used; the others remain conditions. False: there is no
    /// bound.
    fn bound_part<'s>(
        &mut self,
        sargs: impl Iterator<Item = (usize, &'s Sarg<'s>)>,
        whole: bool,
    ) -> bool {
        let (mut lower, mut upper) = (None, None);
        for (position, sarg) in sargs {
            let [
                Interval::Between {
                    lower: low,
                    upper: high,
                },
            ] = &sarg.intervals[..]
            else {
                continue;
            };
            let takes = (low.is_none() || lower.is_none()) && (high.is_none() || upper.is_none());
            if !takes {
                continue;
            }
            lower = low.clone().or(lower);
            upper = high.clone().or(upper);
            if sarg.exact && whole {
                self.exact.push(position);
            }
        }
        if lower.is_none() && upper.is_none() {
            return false;
        }
        self.parts += 1;
        for range in &mut self.ranges {
            range.lower = lower.clone();
            range.upper = upper.clone();
        }
        true
    }
}

/// The ranges of an index that begins with `parts`: those that the conditions on single columns
/// select, and those of each condition with alternatives. Empty where no condition says anything of
/// the first part.
pub fn index_ranges(parts: &[IndexPart], sargs: &Sargs<'_>) -> SmallVec<[IndexRanges; 1]> {
    let single: SmallVec<[&Sarg<'_>; 8]> = sargs.single.iter().collect();
    let of_single = conjunction(parts, &single).map(|found| IndexRanges {
        exact: found.exact.iter().map(|at| single[*at].condition).collect(),
        ranges: found.ranges,
        parts: found.parts,
        alternatives: None,
    });
    let of_alternatives = sargs.alternatives.iter();
    let of_alternatives =
        of_alternatives.filter_map(|alternatives| of_arms(parts, &single, alternatives));
    of_single.into_iter().chain(of_alternatives).collect()
}

/// The ranges of an alternative, together with those of the conditions on single columns.
pub fn arm_ranges(parts: &[IndexPart], sargs: &Sargs<'_>, arm: &Arm<'_>) -> Option<IndexRanges> {
    let single: SmallVec<[&Sarg<'_>; 8]> = sargs.single.iter().collect();
    let found = of_arm(parts, &single, arm)?;
    Some(IndexRanges {
        ranges: found.ranges,
        parts: found.parts,
        exact: Vec::new(),
        alternatives: arm.sargs.first().map(|sarg| sarg.condition),
    })
}

/// The ranges of all alternatives, if each has some.
fn of_arms(
    parts: &[IndexPart],
    single: &[&Sarg<'_>],
    alternatives: &Alternatives<'_>,
) -> Option<IndexRanges> {
    let arms = &alternatives.arms;
    let multiplied = single
        .iter()
        .copied()
        .filter(|sarg| arms.len() <= MULTIPLIED_ARMS_MAX || sarg.intervals.len() == 1);
    let single: SmallVec<[&Sarg<'_>; 8]> = multiplied.collect();
    let mut ranges = Vec::with_capacity(arms.len());
    let (mut used_parts, mut whole) = (0, true);
    let mut exact: Option<Vec<usize>> = None;
    for arm in arms {
        let found = of_arm(parts, &single, arm)?;
        let own = arm.sargs.len();
        whole &= arm.whole && (0..own).all(|position| found.exact.contains(&position));
        used_parts = used_parts.max(found.parts);
        let of_single = found.exact.iter().filter(|at| **at >= own);
        let of_single: Vec<usize> = of_single.map(|at| single[at - own].condition).collect();
        match &mut exact {
            None => exact = Some(of_single),
            Some(exact) => exact.retain(|condition| of_single.contains(condition)),
        }
        ranges.extend(found.ranges);
    }
    let mut exact = exact.unwrap_or_default();
    if whole {
        exact.push(alternatives.condition);
    }
    Some(IndexRanges {
        ranges,
        parts: used_parts,
        exact,
        alternatives: Some(alternatives.condition),
    })
}

/// The ranges of one alternative. `None` where it adds nothing to what the other conditions say of
/// the index.
fn of_arm(parts: &[IndexPart], single: &[&Sarg<'_>], arm: &Arm<'_>) -> Option<Conjunction> {
    let all: SmallVec<[&Sarg<'_>; 8]> = arm.sargs.iter().chain(single.iter().copied()).collect();
    let found = conjunction(parts, &all)?;
    let mut used = parts[..found.parts].iter();
    let is_used = used.any(|part| arm.sargs.iter().any(|sarg| sarg.column == part.column));
    is_used.then_some(found)
}

/// The ranges that conditions on single columns select, all of which hold, if they say anything of
/// the first part.
fn conjunction(parts: &[IndexPart], sargs: &[&Sarg<'_>]) -> Option<Conjunction> {
    let mut found = Conjunction {
        ranges: vec![KeyRange::ALL],
        parts: 0,
        exact: SmallVec::new(),
    };
    for (number, part) in parts.iter().enumerate() {
        let whole = part.prefix.is_none();
        let numbered = || sargs.iter().copied().enumerate();
        let of_part = || numbered().filter(|(_, sarg)| sarg.column == part.column);
        let fixed = of_part().filter(|(_, sarg)| {
            sarg.intervals
                .iter()
                .all(|interval| matches!(interval, Interval::Equal(_)))
        });
        if let Some((position, sarg)) = fixed.min_by_key(|(_, sarg)| sarg.intervals.len()) {
            if found.ranges.len() * sarg.intervals.len() > RANGES_MAX && number > 0 {
                break;
            }
            found.ranges = multiply(found.ranges, sarg);
            found.parts += 1;
            if sarg.exact && whole {
                found.exact.push(position);
            }
            continue;
        }
        if found.bound_part(of_part(), whole) {
            break;
        }
        let multiplied =
            of_part().find(|(_, sarg)| found.ranges.len() * sarg.intervals.len() <= RANGES_MAX);
        if let Some((position, sarg)) = multiplied {
            found.ranges = multiply(found.ranges, sarg);
            found.parts += 1;
            if sarg.exact && whole {
                found.exact.push(position);
            }
        }
        break;
    }
    (found.parts > 0).then_some(found)
}

/// Each range, once for each interval.
fn multiply(mut ranges: Vec<KeyRange>, sarg: &Sarg<'_>) -> Vec<KeyRange> {
    if let [Interval::Equal(part)] = &sarg.intervals[..] {
        for range in &mut ranges {
            range.equal.push(part.clone());
        }
        return ranges;
    }
    let mut all = Vec::with_capacity(ranges.len() * sarg.intervals.len());
    for range in &ranges {
        for interval in &sarg.intervals {
            let mut range = range.clone();
            match interval {
                Interval::Equal(part) => range.equal.push(part.clone()),
                Interval::Between { lower, upper } => {
                    range.lower = lower.clone();
                    range.upper = upper.clone();
                }
            }
            all.push(range);
        }
    }
    all
}
