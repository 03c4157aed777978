//! Which parts of an index the sargable conditions select.
//!
//! An index's ranges are made part by part, as long as parts are fixed to single values:
//!
//! ```text
//! index (a, b, c)    a IN (1, 2) AND b = 5 AND c > 7        (1,5,7..)  (2,5,7..)
//! ```

use porpoise_catalog::Index;

use crate::optimize::sargs::{Interval, Sarg};
use crate::plan::KeyRange;

/// More ranges than this are not multiplied out.
const RANGES_MAX: usize = 1000;

/// The ranges of one index.
#[derive(Clone, Debug)]
pub struct IndexRanges {
    pub ranges: Vec<KeyRange>,
    /// Leading parts that every range fixes to one value.
    pub equal_parts: usize,
    /// Parts fixed or bounded.
    pub parts: usize,
    /// The last part used is bounded, not fixed.
    pub bounded: bool,
    /// Bounded on both sides.
    pub closed: bool,
    /// Conditions that need not be checked again, because the ranges select no other rows.
    pub exact: Vec<usize>,
}

impl IndexRanges {
    /// The whole index.
    pub fn all() -> IndexRanges {
        IndexRanges {
            ranges: vec![KeyRange::ALL],
            equal_parts: 0,
            parts: 0,
            bounded: false,
            closed: false,
            exact: Vec::new(),
        }
    }

    /// Bounds the part after the fixed ones by conditions that are one interval each. Of several
    /// bounds on one side the first is used; the others remain conditions. False: there is no
    /// bound.
    fn bound_part<'s>(&mut self, sargs: impl Iterator<Item = &'s Sarg>, whole: bool) -> bool {
        let (mut lower, mut upper) = (None, None);
        for sarg in sargs {
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
                self.exact.push(sarg.condition);
            }
        }
        if lower.is_none() && upper.is_none() {
            return false;
        }
        self.parts += 1;
        self.bounded = true;
        self.closed = lower.is_some() && upper.is_some();
        for range in &mut self.ranges {
            range.lower = lower.clone();
            range.upper = upper.clone();
        }
        true
    }
}

/// The ranges of an index that the conditions select, if they say anything of its first part.
pub fn index_ranges(index: &Index, sargs: &[Sarg]) -> Option<IndexRanges> {
    let mut found = IndexRanges::all();
    for (number, part) in index.parts.iter().enumerate() {
        let whole = part.prefix.is_none();
        let of_part = || sargs.iter().filter(|sarg| sarg.column == part.column);
        let fixed = of_part().filter(|sarg| {
            sarg.intervals
                .iter()
                .all(|interval| matches!(interval, Interval::Equal(_)))
        });
        if let Some(sarg) = fixed.min_by_key(|sarg| sarg.intervals.len()) {
            if found.ranges.len() * sarg.intervals.len() > RANGES_MAX && number > 0 {
                break;
            }
            if sarg.intervals.len() == 1 && found.equal_parts == number {
                found.equal_parts += 1;
            }
            found.ranges = multiply(&found.ranges, sarg);
            found.parts += 1;
            if sarg.exact && whole {
                found.exact.push(sarg.condition);
            }
            continue;
        }
        if found.bound_part(of_part(), whole) {
            break;
        }
        if let Some(sarg) =
            of_part().find(|sarg| found.ranges.len() * sarg.intervals.len() <= RANGES_MAX)
        {
            found.ranges = multiply(&found.ranges, sarg);
            found.parts += 1;
            found.bounded = true;
            found.closed = true;
            if sarg.exact && whole {
                found.exact.push(sarg.condition);
            }
        }
        break;
    }
    (found.parts > 0).then_some(found)
}

/// Each range, once for each interval.
fn multiply(ranges: &[KeyRange], sarg: &Sarg) -> Vec<KeyRange> {
    let mut all = Vec::with_capacity(ranges.len() * sarg.intervals.len());
    for range in ranges {
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
