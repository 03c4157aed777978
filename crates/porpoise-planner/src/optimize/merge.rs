//! Index merge: rows whose keys several indexes tell (MySQL 8.4 manual, 10.2.1.3).
//!
//! - A *union* serves a condition with alternatives, each of which selects ranges of some index:
//!   `a = 1 OR b = 2`.
//! - An *intersection* serves conditions on columns of several indexes that all hold. It pays where
//!   each alone selects many rows, and all together few: an entry of an index is read much faster
//!   than a row behind it.
//!
//! Each row is read once, in the order of the table's keys. Entries of one value are in this order
//! already: they are merged, and LIMIT leaves most of them unread. The keys of other ranges are
//! collected and sorted. All conditions are checked again on the row: a locking read may find it
//! changed.

use porpoise_sql::ast::HintKind;
use smallvec::SmallVec;

use crate::optimize::access::{Path, TableChoice};
use crate::optimize::cost::{FETCH, SEEK};
use crate::optimize::ranges::{self, IndexRanges};
use crate::optimize::sargs::{Alternatives, Sargs};
use crate::plan::{Access, KeyOperation, KeySource};

/// Of more alternatives not every one is tried with every index.
const ARMS_MAX: usize = 64;
/// Reading the key of a row from an index's entry, and keeping it.
const KEY: f64 = 1.0;
/// Sorting a key, for each doubling of their number.
const KEY_SORT: f64 = 0.03;

/// A source of keys, with what is expected of it.
struct Candidate {
    source: KeySource,
    rows: f64,
    /// The conditions that its ranges are of.
    conditions: SmallVec<[usize; 4]>,
}

impl TableChoice<'_> {
    /// The unions that serve a condition with alternatives.
    pub(super) fn unions(&self, sargs: &Sargs<'_>) -> Vec<Path> {
        let alternatives = sargs.alternatives.iter();
        let few = alternatives.filter(|alternatives| alternatives.arms.len() <= ARMS_MAX);
        few.filter_map(|alternatives| self.union(sargs, alternatives))
            .collect()
    }

    /// `None` where an alternative has no index, or all have the same.
    fn union(&self, sargs: &Sargs<'_>, alternatives: &Alternatives<'_>) -> Option<Path> {
        let mut sources: Vec<KeySource> = Vec::new();
        let mut read = 0.0;
        let switches = self.binder.switches();
        let is_on = switches.index_merge()
            && (switches.index_merge_union() || switches.index_merge_sort_union());
        for arm in &alternatives.arms {
            let of_index = |position: usize| {
                let parts = &self.table.indexes[position].parts;
                let found = ranges::arm_ranges(parts, sargs, arm)?;
                let used = &parts[..found.parts];
                let of_used = arm
                    .sargs
                    .iter()
                    .chain(&sargs.single)
                    .filter(|sarg| used.iter().any(|part| part.column == sarg.column));
                let exprs: SmallVec<[_; 8]> = of_used.filter_map(|sarg| sarg.expr).collect();
                let guess = || self.guessed_rows_of_ranges(position, &found);
                Some((position, self.rows_passing(&exprs, guess), found))
            };
            let usable = self.indexes_for(HintKind::IndexMerge, is_on);
            let found = usable.filter_map(of_index);
            let (position, rows, found) = found.min_by(|a, b| a.1.total_cmp(&b.1))?;
            read += rows;
            add_source(&mut sources, position, found);
        }
        if sources.len() < 2 {
            return None;
        }
        let rows = read.min(self.rows);
        let passed = self.passed(&[alternatives.condition], rows);
        Some(self.merge(KeyOperation::Union, sources, read, rows, passed))
    }

    /// The intersection of the ranges of two or more indexes, if that is cheaper than each of them.
    pub(super) fn intersection(&self, sargs: &Sargs<'_>) -> Option<Path> {
        if sargs.single.len() < 2 {
            return None;
        }
        let switches = self.binder.switches();
        let is_on = switches.index_merge() && switches.index_merge_intersection();
        let usable = self.indexes_for(HintKind::IndexMerge, is_on);
        let candidates = usable.filter_map(|position| {
            let parts = &self.table.indexes[position].parts;
            let mut found = ranges::index_ranges(parts, sargs).into_iter();
            let found = found.find(|found| found.alternatives.is_none())?;
            let used = &parts[..found.parts];
            let of_used = sargs
                .single
                .iter()
                .filter(|sarg| used.iter().any(|part| part.column == sarg.column));
            Some(Candidate {
                rows: self.rows_of_ranges(position, &found, sargs),
                conditions: of_used.map(|sarg| sarg.condition).collect(),
                source: key_source(position, found),
            })
        });
        let mut candidates: Vec<Candidate> = candidates.collect();
        candidates.sort_by(|a, b| a.rows.total_cmp(&b.rows));
        let mut candidates = candidates.into_iter();
        let first = candidates.next()?;
        let (mut read, mut rows) = (first.rows, first.rows);
        let (mut sources, mut conditions) = (vec![first.source], first.conditions);
        for next in candidates {
            // What is said already leaves no fewer rows.
            let is_new = next
                .conditions
                .iter()
                .any(|condition| !conditions.contains(condition));
            let mut both = conditions.clone();
            both.extend(next.conditions.iter().copied());
            let exprs: SmallVec<[_; 8]> = both.iter().map(|at| self.conditions[*at]).collect();
            let guess = || (rows * next.rows / self.rows).max(1.0);
            let left = self.rows_passing(&exprs, guess).min(rows);
            if is_new && next.rows * (KEY + KEY_SORT) < (rows - left) * FETCH {
                (read, rows, conditions) = (read + next.rows, left, both);
                sources.push(next.source);
            }
        }
        if sources.len() < 2 {
            return None;
        }
        let passed = self.passed(&conditions, rows);
        Some(self.merge(KeyOperation::Intersection, sources, read, rows, passed))
    }

    /// A path that reads so many keys, and then so many rows.
    fn merge(
        &self,
        operation: KeyOperation,
        sources: Vec<KeySource>,
        read: f64,
        rows: f64,
        passed: f64,
    ) -> Path {
        let has_rows_in_order = self.table.primary_key().is_some();
        let order = has_rows_in_order
            .then(|| self.order_of(0, &IndexRanges::all()))
            .flatten();
        let seeks: usize = sources.iter().map(|source| source.ranges.len()).sum();
        let of_keys = read * (KEY + read.max(2.0).log2() * KEY_SORT);
        Path {
            cost: seeks as f64 * SEEK + of_keys + rows * (1.0 + FETCH),
            access: Access::Merge { operation, sources },
            reverse: false,
            rows,
            passed,
            exact: Vec::new(),
            parts: 0,
            in_order: order == Some(false),
            possible: Vec::new(),
        }
    }
}

fn key_source(index: usize, found: IndexRanges) -> KeySource {
    KeySource {
        index,
        ranges: found.ranges,
        parts: found.parts,
    }
}

/// Adds ranges to those of the same index.
fn add_source(sources: &mut Vec<KeySource>, index: usize, found: IndexRanges) {
    match sources.iter_mut().find(|source| source.index == index) {
        Some(source) => {
            source.ranges.extend(found.ranges);
            source.parts = source.parts.max(found.parts);
        }
        None => sources.push(key_source(index, found)),
    }
}
