//! Leaps over an index: reads that step through the values of its first parts.
//!
//! - *Group ends* (MySQL 8.4 manual, 10.2.1.17, "loose index scan"): of each group only the entries
//!   at its ends are read, where these tell all that is asked: `SELECT a, MIN(b), MAX(b) … GROUP BY
//!   a` over an index on (a, b), `SELECT DISTINCT a`, `COUNT(DISTINCT a)`. All rows may be one
//!   group: `SELECT MIN(b), MAX(b) … WHERE a = 5`.
//! - A *skip scan* (10.2.1.2) serves conditions on a part of an index whose first parts no condition
//!   fixes: `b > 5` over an index on (a, b) is read as `a = 1 AND b > 5`, `a = 2 AND b > 5` …
//!
//! Both pay where the first parts have few values: that is known of an index that was analysed, and
//! estimated by the table's sample otherwise.

use porpoise_catalog::IndexPart;
use porpoise_expr::aggregate::Aggregate;
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::ast::HintKind;
use porpoise_types::DataType;

use crate::optimize::access::{Path, TableChoice};
use crate::optimize::cost::SEEK;
use crate::optimize::ranges::{self, IndexRanges};
use crate::optimize::sargs::Sargs;
use crate::plan::{Access, KeyRange, Node, RowLock, SkipScan, Taken};
use crate::sample;

/// What a query asks of the groups of one table's rows, where the ends of each group tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEnds {
    slot: SlotId,
    /// Columns that tell groups apart; none if all rows are one group.
    keys: Vec<usize>,
    /// The column of which the least or the greatest value is wanted.
    value: Option<GroupValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupValue {
    column: usize,
    least: bool,
    greatest: bool,
}

impl GroupEnds {
    /// For SELECT DISTINCT.
    pub fn of_distinct(output: &[&Expr]) -> Option<GroupEnds> {
        let mut ends: Option<GroupEnds> = None;
        output
            .iter()
            .try_for_each(|expr| add_key(&mut ends, expr))?;
        ends
    }

    /// For GROUP BY, or aggregates of all rows: aggregates that don't depend on how often a value
    /// comes.
    pub fn of_grouping(keys: &[Expr], aggregates: &[Aggregate]) -> Option<GroupEnds> {
        let mut ends: Option<GroupEnds> = None;
        keys.iter().try_for_each(|expr| add_key(&mut ends, expr))?;
        let is_extreme = |aggregate: &&Aggregate| matches!(aggregate.function.name, "MIN" | "MAX");
        let (extremes, others): (Vec<_>, Vec<_>) = aggregates.iter().partition(is_extreme);
        for aggregate in others {
            let counts_once = matches!(aggregate.function.name, "COUNT" | "SUM" | "AVG");
            if !aggregate.distinct || !counts_once || !aggregate.order.is_empty() {
                return None;
            }
            let mut arguments = aggregate.arguments.iter();
            arguments.try_for_each(|expr| add_key(&mut ends, expr))?;
        }
        for aggregate in extremes {
            add_extreme(&mut ends, aggregate)?;
        }
        ends
    }
}

/// `None` where the order of an index isn't the aggregate's, or for a second column.
fn add_extreme(ends: &mut Option<GroupEnds>, aggregate: &Aggregate) -> Option<()> {
    let [argument] = &aggregate.arguments[..] else {
        return None;
    };
    let (slot, column) = argument.as_column()?;
    let by_name = matches!(argument.ty, DataType::Enum(_) | DataType::Set(_));
    let ends = of_slot(ends, slot);
    if slot != ends.slot || by_name {
        return None;
    }
    if ends.keys.contains(&column) {
        return Some(());
    }
    let value = ends.value.get_or_insert(GroupValue {
        column,
        least: false,
        greatest: false,
    });
    match aggregate.function.name {
        "MIN" => value.least = true,
        _ => value.greatest = true,
    }
    (value.column == column).then_some(())
}

fn of_slot(ends: &mut Option<GroupEnds>, slot: SlotId) -> &mut GroupEnds {
    ends.get_or_insert_with(|| GroupEnds {
        slot,
        keys: Vec::new(),
        value: None,
    })
}

fn add_key(ends: &mut Option<GroupEnds>, expr: &Expr) -> Option<()> {
    let (slot, column) = expr.as_column()?;
    let ends = of_slot(ends, slot);
    if !ends.keys.contains(&column) {
        ends.keys.push(column);
    }
    (ends.slot == slot).then_some(())
}

/// A leap scan that is thought of.
struct Leaps {
    position: usize,
    prefix: usize,
    /// Over the leading parts.
    outer: IndexRanges,
    /// Over those behind.
    inner: IndexRanges,
    taken: Taken,
}

impl TableChoice<'_> {
    /// Reads of the ends of groups.
    pub(super) fn group_ends(&self, sargs: &Sargs<'_>) -> Vec<Path> {
        let Some(ends) = &self.wanted.ends else {
            return Vec::new();
        };
        if ends.slot != self.source.slot || self.source.lock != RowLock::None {
            return Vec::new();
        }
        let found = self.usable_indexes().filter_map(|position| {
            let leaps = self.ends_in(position, ends, sargs)?;
            self.leap_path(leaps)
        });
        found.collect()
    }

    /// How an index tells the ends of groups. `None` where it doesn't.
    fn ends_in(&self, position: usize, ends: &GroupEnds, sargs: &Sargs<'_>) -> Option<Leaps> {
        let parts = &self.table.indexes[position].parts;
        let last_key = |key: &usize| parts.iter().position(|part| part.column == *key);
        let places: Option<Vec<usize>> = ends.keys.iter().map(last_key).collect();
        let prefix = places?.into_iter().max().map_or(0, |last| last + 1);
        let (leading, behind) = parts.split_at(prefix);
        let is_cut = |part: &IndexPart| part.prefix.is_some();
        if leading.iter().any(is_cut) {
            return None;
        }
        let outer = first_ranges(leading, sargs);
        let (inner, taken) = match ends.value {
            None => {
                let taken = Taken::Ends {
                    first: true,
                    last: false,
                    not_null: false,
                };
                (first_ranges(behind, sargs), taken)
            }
            Some(value) => ends_of_value(self.table, behind, value, sargs)?,
        };
        let is_told = |(number, condition): (usize, &&Expr)| {
            outer.exact.contains(&number)
                || inner.exact.contains(&number)
                || self.reads_only(condition, leading)
        };
        let mut conditions = self.conditions.iter().enumerate();
        conditions.all(is_told).then_some(Leaps {
            position,
            prefix,
            outer,
            inner,
            taken,
        })
    }

    /// Whether a condition is the same for all rows that agree in these parts.
    fn reads_only(&self, condition: &Expr, parts: &[IndexPart]) -> bool {
        let mut reads_other = |part: &Expr| {
            let column = part.as_column().filter(|(of, _)| *of == self.source.slot);
            column.is_some_and(|(_, column)| parts.iter().all(|part| part.column != column))
        };
        !condition.is_volatile() && !condition.has_subquery() && !condition.any(&mut reads_other)
    }

    /// Scans for conditions on a part that is not among the first.
    pub(super) fn skip_scans(&self, sargs: &Sargs<'_>) -> Vec<Path> {
        if self.source.lock != RowLock::None || sargs.single.is_empty() {
            return Vec::new();
        }
        let of_index = |position: usize| {
            let parts = &self.table.indexes[position].parts;
            let prefixes = 1..parts.len();
            let leaps = prefixes.filter_map(move |prefix| {
                let (leading, behind) = parts.split_at(prefix);
                let outer = first_ranges(leading, sargs);
                // Where all before is fixed, plain ranges do.
                let last = outer.ranges.iter().all(|range| range.equal.len() == prefix);
                if last || leading.iter().any(|part| part.prefix.is_some()) {
                    return None;
                }
                let inner = single_ranges(behind, sargs)?;
                let taken = Taken::All;
                Some(Leaps {
                    position,
                    prefix,
                    outer,
                    inner,
                    taken,
                })
            });
            leaps.filter_map(|leaps| self.leap_path(leaps))
        };
        let is_on = self.binder.switches().skip_scan();
        let usable = self.indexes_for(HintKind::SkipScan, is_on);
        usable.flat_map(of_index).collect()
    }

    /// The path of leaps. `None` where it isn't known how many there would be.
    fn leap_path(&self, leaps: Leaps) -> Option<Path> {
        let Leaps {
            position,
            prefix,
            outer,
            inner,
            taken,
        } = leaps;
        let part = self.rows_of(position, &outer) / self.rows;
        let groups = match prefix {
            0 => 1.0,
            _ => (self.distinct_keys(position, prefix)? * part).max(1.0),
        };
        let covering = self.is_covering(position);
        let (rows, seeks) = match taken {
            Taken::All => {
                let rows = self.rows_of_leaps(&outer, &inner);
                (rows, 1 + inner.ranges.len())
            }
            Taken::Ends { first, last, .. } => {
                let ends = usize::from(first) + usize::from(last);
                // The first entry is usually the one by which the group is found.
                let seeks = 1 + usize::from(last) + usize::from(first && inner.parts > 0);
                (groups * ends as f64, seeks)
            }
        };
        let order = self.order_of(position, &outer);
        let mut exact = outer.exact;
        exact.extend(inner.exact);
        Some(Path {
            cost: groups * seeks as f64 * SEEK + rows * self.row_cost(position, covering),
            reverse: false,
            rows,
            passed: self.passed(&exact, rows),
            exact,
            parts: prefix + inner.parts,
            in_order: order == Some(false),
            access: Access::Skip(Box::new(SkipScan {
                index: position,
                prefix,
                ranges: outer.ranges,
                inner: inner.ranges,
                taken,
                covering,
            })),
            possible: Vec::new(),
        })
    }

    /// How many rows the ranges of leading parts hold.
    fn rows_of(&self, position: usize, outer: &IndexRanges) -> f64 {
        match &outer.ranges[..] {
            [range] if range.is_all() => self.rows,
            _ => {
                let exprs: Vec<&Expr> = outer.exact.iter().map(|at| self.conditions[*at]).collect();
                self.rows_passing(&exprs, || self.guessed_rows_of_ranges(position, outer))
            }
        }
    }

    /// How many rows lie in ranges of leading parts, and of those behind.
    fn rows_of_leaps(&self, outer: &IndexRanges, inner: &IndexRanges) -> f64 {
        let conditions = outer.exact.iter().chain(&inner.exact);
        let exprs: Vec<&Expr> = conditions.map(|at| self.conditions[*at]).collect();
        let guess = || {
            let of_range = |range: &KeyRange| match (&range.lower, &range.upper) {
                (None, None) => 0.1,
                (Some(_), Some(_)) => 0.05,
                _ => 0.3333,
            };
            let part: f64 = inner.ranges.iter().map(of_range).sum();
            self.rows * part.min(1.0)
        };
        self.rows_passing(&exprs, guess)
    }

    /// How many combinations of values the first parts of an index have. `None` where nothing tells.
    fn distinct_keys(&self, position: usize, parts: usize) -> Option<f64> {
        let index = &self.table.indexes[position];
        if index.is_unique() && parts >= index.parts.len() {
            return Some(self.rows);
        }
        let sample = || self.sample();
        sample::distinct_of_index(self.table, index, parts, self.rows, sample)
    }
}

/// Whether a node's rows differ in these columns already, because each is the first entry of a
/// combination of them.
pub fn are_distinct(node: &Node, output: &[Expr]) -> bool {
    let Node::Scan(scan) = node else { return false };
    let Access::Skip(skip) = &scan.access else {
        return false;
    };
    let one_each = matches!(
        skip.taken,
        Taken::Ends {
            first: true,
            last: false,
            not_null: false
        }
    );
    let is_shown = |part: &IndexPart| {
        let column = Some((scan.slot, part.column));
        output.iter().any(|expr| expr.as_column() == column)
    };
    let parts = &scan.table.indexes[skip.index].parts[..skip.prefix];
    one_each && parts.iter().all(is_shown)
}

/// The ranges of parts behind a group's, in which the ends of the part that holds the value are
/// those of the group. `None` where there is no such part.
fn ends_of_value(
    table: &porpoise_catalog::Table,
    behind: &[IndexPart],
    value: GroupValue,
    sargs: &Sargs<'_>,
) -> Option<(IndexRanges, Taken)> {
    let place = behind.iter().position(|part| part.column == value.column)?;
    let part = &behind[place];
    if part.prefix.is_some() {
        return None;
    }
    // What lies between is fixed to one value.
    let between = first_ranges(&behind[..place], sargs);
    let is_fixed = matches!(&between.ranges[..], [range] if range.equal.len() == place);
    if !is_fixed {
        return None;
    }
    let inner = first_ranges(&behind[..=place], sargs);
    let unbounded = inner
        .ranges
        .iter()
        .all(|range| range.equal.len() == place && range.lower.is_none() && range.upper.is_none());
    let (first, last) = match part.descending {
        false => (value.least, value.greatest),
        true => (value.greatest, value.least),
    };
    let nullable = table.columns[value.column].nullable;
    let taken = Taken::Ends {
        first,
        last,
        not_null: unbounded && nullable && value.least,
    };
    Some((inner, taken))
}

/// The ranges of parts by conditions on single columns, if there are any.
fn single_ranges(parts: &[IndexPart], sargs: &Sargs<'_>) -> Option<IndexRanges> {
    let mut found = ranges::index_ranges(parts, sargs).into_iter();
    found.find(|found| found.alternatives.is_none())
}

/// The same, or all.
fn first_ranges(parts: &[IndexPart], sargs: &Sargs<'_>) -> IndexRanges {
    single_ranges(parts, sargs).unwrap_or_else(IndexRanges::all)
}
