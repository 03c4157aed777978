//! Index dives: the entries of ranges are counted while a statement is planned (MySQL 8.4 manual,
//! 10.2.1.2, "equality range optimization" and "limiting memory use for range optimization").
//!
//! A sample of some hundred rows tells of a value that every tenth row has. Of one that few of its
//! rows have, or none, the index itself tells whether it has no rows, three, or too many to count.

use crate::key_range;
use crate::optimize::access::TableChoice;
use crate::optimize::ranges::IndexRanges;
use crate::optimize::sargs::{Interval, Sarg, Sargs};
use crate::plan::KeyRange;

/// What the entries of some ranges were counted to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Counted {
    Exactly(f64),
    /// There are more.
    AtLeast(f64),
}

/// So many entries are counted.
const ENTRIES_MAX: usize = 64;
/// What an alternative of ranges takes, and a condition that is one range, as the manual has it.
const ALTERNATIVE_BYTES: u64 = 230;
const CONDITION_BYTES: u64 = 125;

impl TableChoice<'_> {
    /// Whether an index's ranges are so many single keys that the number of their entries is told by
    /// what is known of all keys (`eq_range_index_dive_limit`).
    pub(super) fn goes_by_statistics(&self, found: &IndexRanges) -> bool {
        let limit = self.binder.session().planner.index_dive_limit;
        let is_equal = |range: &&KeyRange| !range.equal.is_empty() && !range.is_bounded();
        limit > 0 && found.ranges.iter().filter(is_equal).count() as u64 >= u64::from(limit)
    }

    /// Counts the entries of ranges. `None` where their ends aren't known yet.
    pub(super) fn count_entries(&self, position: usize, found: &IndexRanges) -> Option<Counted> {
        let (table, index) = (self.table, &self.table.indexes[position]);
        let mut known = self.binder.known();
        let bounds = key_range::all_bounds(&mut known, table, &index.parts, &found.ranges).ok()?;
        let mut count = 0;
        for bounds in &bounds {
            let contents = self.binder.context.contents;
            count += contents.entries(table, index, bounds, ENTRIES_MAX - count)?;
            if count == ENTRIES_MAX {
                return Some(Counted::AtLeast(count as f64));
            }
        }
        Some(Counted::Exactly(count as f64))
    }

    /// Whether the ranges that conditions select take more memory than
    /// `range_optimizer_max_mem_size`; then the statement says so, and no ranges are made.
    pub(super) fn exceeds_range_memory(&self, sargs: &Sargs<'_>) -> bool {
        let most = self.binder.session().planner.range_bytes_max;
        if most == 0 {
            return false;
        }
        let bytes = self
            .usable_indexes()
            .map(|position| self.range_bytes(position, sargs));
        let exceeds = bytes.fold(0, u64::saturating_add) > most;
        if exceeds {
            self.binder.exceeds_range_memory.set(true);
        }
        exceeds
    }

    /// What the ranges of one index take. Lists of values of several parts are multiplied.
    fn range_bytes(&self, position: usize, sargs: &Sargs<'_>) -> u64 {
        let parts = &self.table.indexes[position].parts;
        let (mut ranges, mut used) = (1u64, 0);
        for part in parts {
            let of_part = sargs
                .single
                .iter()
                .filter(|sarg| sarg.column == part.column);
            let Some(sarg) = of_part.min_by_key(|sarg| sarg.intervals.len()) else {
                break;
            };
            ranges = ranges.saturating_mul(sarg.intervals.len() as u64);
            used += 1;
            if !is_of_values(sarg) {
                break;
            }
        }
        let of_single = match ranges {
            0 | 1 => used * CONDITION_BYTES,
            ranges => ranges.saturating_mul(ALTERNATIVE_BYTES),
        };
        let first = parts.first().map(|part| part.column);
        let arms = sargs.alternatives.iter().flat_map(|of| &of.arms);
        let arms = arms.filter(|arm| arm.sargs.iter().any(|sarg| Some(sarg.column) == first));
        of_single + arms.count() as u64 * ALTERNATIVE_BYTES
    }
}

fn is_of_values(sarg: &Sarg<'_>) -> bool {
    let mut intervals = sarg.intervals.iter();
    intervals.all(|interval| matches!(interval, Interval::Equal(_)))
}

impl Sargs<'_> {
    /// Of the conditions those that are one value of a column: a look-up is no range.
    pub(super) fn keep_lookups(&mut self) {
        self.single
            .retain(|sarg| matches!(sarg.intervals[..], [Interval::Equal(_)]));
        self.alternatives.clear();
    }
}
