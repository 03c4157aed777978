//! Access paths: how a table's rows can be reached, and what each path costs.
//!
//! Costs are in reads of a row in key order ([`cost`](crate::optimize::cost)).

use std::cell::OnceCell;
use std::sync::Arc;

use porpoise_catalog::{Index, IndexKind, Statistics, Table, TableSample};
use porpoise_expr::{Comparison, Expr, ExprKind, SlotId};
use porpoise_sql::ast::HintKind;
use smallvec::SmallVec;

use crate::bind::Binder;
use crate::json_text::{Item, Members};
use crate::known::KnownValues;
use crate::optimize::cost::{COVERED, FETCH, HASH_GET, HASH_PUT, PASS, SEEK, SORT};
use crate::optimize::dives::Counted;
use crate::optimize::entries::on_entries;
use crate::optimize::histograms::Histograms;
use crate::optimize::order::{self, InterestingOrder, Spared};
use crate::optimize::ranges::{self, IndexRanges};
use crate::optimize::sargs::{self, Sargs};
use crate::plan::{Access, KeyRange, Node, RowLock, Scan, Taken};
use crate::query::{IndexChoice, Source};
use crate::sample::{self, Trials};
use crate::slot_set::SlotSet;
use crate::trace;

/// A path to a table's rows.
#[derive(Clone, Debug)]
pub struct Path {
    pub access: Access,
    pub reverse: bool,
    /// Rows read each time the scan is opened.
    pub rows: f64,
    /// Rows that pass the conditions.
    pub passed: f64,
    /// In reads of a row in key order.
    pub cost: f64,
    /// Conditions that need not be checked again, because the access selects no other rows.
    pub exact: Vec<usize>,
    /// Index parts that conditions fix or bound.
    pub parts: usize,
    /// Rows come in the interesting order.
    pub in_order: bool,
    /// Positions of the indexes that conditions could use.
    pub possible: Vec<usize>,
}

/// A guess of the part of rows that pass some conditions.
pub fn selectivity<'e>(conditions: impl Iterator<Item = &'e Expr>) -> f64 {
    damped(conditions.map(one_selectivity).collect())
}

/// The part of rows that pass several conditions, each of which lets a part of them pass. Conditions
/// that depend on each other are more frequent than such that don't, so the product would be too
/// little: the most selective one counts wholly, the next as its square root, and so on
/// (exponential back-off).
pub fn damped(mut parts: SmallVec<[f64; 8]>) -> f64 {
    parts.sort_unstable_by(f64::total_cmp);
    let weighted = parts.iter().zip([1.0, 0.5, 0.25, 0.125]);
    let part: f64 = weighted
        .map(|(part, weight): (_, f64)| part.powf(weight))
        .product();
    part.max(1e-6)
}

fn one_selectivity(condition: &Expr) -> f64 {
    match &condition.kind {
        ExprKind::Compare {
            op: Comparison::Eq | Comparison::NullSafeEq,
            ..
        } => 0.1,
        ExprKind::Compare {
            op: Comparison::Ne, ..
        } => 0.9,
        ExprKind::Compare { .. } => 0.3333,
        ExprKind::Between { negated: false, .. } | ExprKind::Like { negated: false, .. } => 0.1111,
        ExprKind::InList {
            negated: false,
            list,
            ..
        } => (0.1 * list.len() as f64).min(0.5),
        ExprKind::IsNull { negated: false, .. } => 0.1,
        ExprKind::IsNull { negated: true, .. } => 0.9,
        ExprKind::And(parts) => selectivity(parts.iter()),
        ExprKind::Or(parts) => parts.iter().map(one_selectivity).sum::<f64>().min(1.0),
        _ => 0.5,
    }
}

/// The cheapest path to a table's rows, given the conditions that can be checked there and the
/// slots filled before. `trials` keeps what is found by trying them on a sample.
pub fn best(
    binder: &Binder<'_>,
    source: &Source,
    table: &Table,
    conditions: &[&Expr],
    available: &SlotSet,
    wanted: &InterestingOrder,
    trials: &Trials,
) -> Path {
    let mut sargs = if conditions.is_empty() {
        Sargs::default()
    } else {
        sargs::sargs(binder, source.slot, table, conditions, available)
    };
    let choice = TableChoice {
        binder,
        source,
        table,
        conditions,
        available,
        wanted,
        rows: binder.row_count(table).max(1.0),
        sample: OnceCell::new(),
        trials,
    };
    if choice.exceeds_range_memory(&sargs) {
        sargs.keep_lookups();
    }
    choice.best(&sargs)
}

/// A condition that lets some single values of a column pass.
struct Equality {
    column: usize,
    /// How many values.
    values: f64,
    /// The values are those of rows of other tables, not constants.
    joins: bool,
}

/// Paths to choose from.
enum Offered {
    /// The only one that needs to be looked at.
    Best(Path),
    /// Paths, and the indexes that conditions could use.
    Paths(Vec<Path>, Vec<usize>),
}

/// What part of a table's rows pass some conditions.
pub(super) struct Part<'e> {
    pub(super) part: f64,
    /// It was found by more than the lack of rows that pass.
    is_sound: bool,
    /// The conditions that it doesn't take into account.
    untried: SmallVec<[&'e Expr; 8]>,
}

/// A table whose access path is to be chosen.
pub(super) struct TableChoice<'a> {
    pub(super) binder: &'a Binder<'a>,
    pub(super) source: &'a Source,
    pub(super) table: &'a Table,
    pub(super) conditions: &'a [&'a Expr],
    /// The slots filled before.
    available: &'a SlotSet,
    pub(super) wanted: &'a InterestingOrder,
    /// How many rows the table has.
    pub(super) rows: f64,
    /// Some of them, if somebody has asked.
    sample: OnceCell<Option<Arc<TableSample>>>,
    trials: &'a Trials,
}

impl TableChoice<'_> {
    /// The indexes that may be used to find rows by.
    pub(super) fn usable_indexes(&self) -> impl Iterator<Item = usize> {
        let indexes = self.table.indexes.iter().enumerate();
        let usable = indexes.filter(|(position, index)| {
            self.binder.sees(index) && self.source.hints.allows(*position)
        });
        usable.map(|(position, _)| position)
    }

    /// Those of them for which hints, or else a switch, let an optimisation be used.
    pub(super) fn indexes_for(&self, kind: HintKind, is_on: bool) -> impl Iterator<Item = usize> {
        let hints = &self.source.hints;
        let usable = self.usable_indexes();
        usable.filter(move |position| hints.is_on(kind, Some(*position), is_on))
    }

    /// Whether an index's entries hold all that the statement reads.
    pub(super) fn is_covering(&self, position: usize) -> bool {
        self.source.lock == RowLock::None
            && self.table.indexes[position].kind != IndexKind::Primary
            && covers(self.binder, self.source.slot, self.table, position)
    }

    /// The cheapest path of all that are offered.
    fn best(&self, sargs: &Sargs<'_>) -> Path {
        let (mut paths, mut possible) = match self.simple_paths(sargs) {
            Offered::Best(path) => return path,
            Offered::Paths(paths, possible) => (paths, possible),
        };
        paths.extend(self.unions(sargs));
        paths.extend(self.intersection(sargs));
        paths.extend(self.group_ends(sargs));
        paths.extend(self.skip_scans(sargs));
        self.keep_forced_order(&mut paths);
        // A locking read locks keys that are not there, too, where it looks for single ones.
        if self.source.lock != RowLock::None && paths.iter().any(|path| self.is_lookup(path)) {
            paths.retain(|path| self.is_lookup(path));
        }
        self.trace(&paths, None);
        let best = paths
            .into_iter()
            .min_by(|a, b| self.total_cost(a).total_cmp(&self.total_cost(b)));
        let mut best = best.unwrap_or(Path {
            reverse: false,
            passed: self.rows,
            in_order: false,
            ..self.full_scan()
        });
        match &best.access {
            Access::Skip(skip) => possible.push(skip.index),
            Access::Merge { sources, .. } => {
                possible.extend(sources.iter().map(|source| source.index));
            }
            Access::Full | Access::Index { .. } | Access::Point { .. } => {}
        }
        possible.sort_unstable();
        possible.dedup();
        best.possible = possible;
        best
    }

    /// Tells of the paths that are compared, of which the cheapest is chosen unless there is
    /// another reason.
    fn trace(&self, paths: &[Path], reason: Option<&str>) {
        if !self.binder.traces_access() {
            return;
        }
        let costs = paths.iter().map(|path| self.total_cost(path));
        let least = costs.fold(f64::INFINITY, f64::min);
        let mut is_found = false;
        let considered = paths.iter().map(|path| {
            let cost = self.total_cost(path);
            let is_chosen = !is_found && cost <= least;
            is_found |= is_chosen;
            let cause = match is_chosen {
                true => reason.unwrap_or("least cost"),
                false => "cost",
            };
            let mut members = self.path_members(path);
            members.extend([
                ("rows", Item::Real(path.rows)),
                ("rows_after_conditions", Item::Real(path.passed)),
                ("in_order", Item::Bool(path.in_order)),
                ("cost", Item::Real(path.cost)),
                ("cost_with_sort", Item::Real(cost)),
                ("chosen", Item::Bool(is_chosen)),
                ("cause", trace::text(cause)),
            ]);
            Item::Object(members)
        });
        let considered: Vec<Item> = considered.collect();
        let alias = &self.binder.slots[self.source.slot.0 as usize].name;
        let conditions = self.conditions.iter();
        let conditions = conditions.map(|condition| self.binder.text_of(condition));
        self.binder.trace("table_access", || {
            vec![
                ("table", trace::text(alias.as_str())),
                ("rows_in_table", Item::Real(self.rows)),
                (
                    "read_before",
                    trace::texts(self.binder.names_of(self.available)),
                ),
                ("conditions", trace::texts(conditions)),
                ("considered_access_paths", Item::Array(considered)),
            ]
        });
    }

    /// How a path reaches rows.
    fn path_members(&self, path: &Path) -> Members {
        let of_index = |how: &str, index: usize, covering: bool| {
            vec![
                ("access_type", trace::text(how)),
                (
                    "index",
                    trace::text(self.table.indexes[index].name.as_str()),
                ),
                ("covering", Item::Bool(covering)),
            ]
        };
        match &path.access {
            Access::Full => vec![("access_type", trace::text("scan"))],
            Access::Point {
                index, covering, ..
            } => of_index("unique_key", *index, *covering),
            Access::Index {
                index,
                ranges,
                covering,
            } => {
                let how = match &ranges[..] {
                    [range] if range.is_all() => "index_scan",
                    [range] if !range.is_bounded() => "ref",
                    _ => "range",
                };
                let mut members = of_index(how, *index, *covering);
                members.push(("ranges", Item::Number(ranges.len() as u64)));
                members
            }
            Access::Merge { sources, .. } => {
                let names = sources.iter().map(|source| {
                    let index = &self.table.indexes[source.index];
                    index.name.to_string()
                });
                vec![
                    ("access_type", trace::text("index_merge")),
                    ("indexes", trace::texts(names)),
                ]
            }
            Access::Skip(skip) => {
                let how = match skip.taken {
                    Taken::All => "skip_scan",
                    Taken::Ends { .. } => "loose_index_scan",
                };
                of_index(how, skip.index, skip.covering)
            }
        }
    }

    /// Whether hints let an index be read by such ranges. A look-up of equal keys is none.
    fn allows_ranges(&self, position: usize, found: &IndexRanges) -> bool {
        let is_lookup = matches!(&found.ranges[..], [range] if !range.is_bounded());
        let hints = &self.source.hints;
        is_lookup || hints.is_on(HintKind::RangeOptimization, Some(position), true)
    }

    /// The indexes that hints let spare the sort or the hash table.
    fn order_choice(&self) -> &IndexChoice {
        match self.wanted.sort.is_empty() {
            false => &self.source.hints.sorting,
            true => &self.source.hints.grouping,
        }
    }

    /// Whether an index's order is the wanted one (`true`: read backward), and no hint forbids its
    /// use.
    pub(super) fn order_of(&self, position: usize, found: &IndexRanges) -> Option<bool> {
        if !self.order_choice().allows(position) {
            return None;
        }
        let extends = self.binder.switches().use_index_extensions();
        let slot = self.source.slot;
        order::of_index(self.table, slot, position, found, self.wanted, extends)
    }

    /// Where a hint wants an index's order, other paths are the last resort.
    fn keep_forced_order(&self, paths: &mut Vec<Path>) {
        if !self.wanted.keys.is_empty()
            && self.order_choice().force
            && paths.iter().any(|path| path.in_order)
        {
            paths.retain(|path| path.in_order);
        }
    }

    /// A full scan, and what each index gives by itself: a point, ranges, or all its entries.
    fn simple_paths(&self, sargs: &Sargs<'_>) -> Offered {
        let (table, source) = (self.table, self.source);
        let mut possible = Vec::new();
        let mut paths: Vec<Path> = Vec::new();
        if !source.hints.rows.force {
            paths.push(self.full_scan());
        }
        for (position, index) in table.indexes.iter().enumerate() {
            if !self.binder.sees(index) {
                continue;
            }
            let covering = self.is_covering(position);
            let mut candidates = ranges::index_ranges(&index.parts, sargs);
            candidates.retain(|found| {
                source.hints.allows(position) && self.allows_ranges(position, found)
            });
            if candidates.is_empty() {
                paths.extend(self.index_scan(position, covering));
                continue;
            }
            possible.push(position);
            for found in candidates {
                if !is_point(table, position, &found) {
                    paths.push(self.range_scan(position, found, covering, sargs));
                    continue;
                }
                let path = self.point(position, found, covering);
                if index.kind == IndexKind::Primary {
                    // Nothing beats the primary key.
                    let reason = "nothing beats a whole primary key";
                    self.trace(std::slice::from_ref(&path), Some(reason));
                    let possible = possible_keys(self.binder, table, source, sargs);
                    return Offered::Best(Path { possible, ..path });
                }
                paths.push(path);
            }
        }
        Offered::Paths(paths, possible)
    }

    /// How many of the rows read pass the conditions that the access leaves to be checked.
    pub(super) fn passed(&self, exact: &[usize], read: f64) -> f64 {
        if !self.binder.switches().condition_fanout_filter() {
            return read;
        }
        let is_exact = |number: usize| exact.contains(&number);
        let conditions = self.conditions.iter().copied().enumerate();
        let left = conditions.clone().filter(|(number, _)| !is_exact(*number));
        let left: SmallVec<[&Expr; 8]> = left.map(|(_, condition)| condition).collect();
        let (mut part, left) = match self.tried(&left) {
            Some(tried) => (tried.part, tried.untried),
            None => (1.0, left),
        };
        let statistics = self.table.state.statistics.load();
        let histograms = self.histograms(&statistics);
        // Of equalities with columns that are equal themselves one says what all say.
        let mut joined: SmallVec<[usize; 4]> = SmallVec::new();
        for (_, condition) in conditions.filter(|(number, _)| is_exact(*number)) {
            joined.extend(self.equality(condition).map(|equality| equality.column));
        }
        let mut parts: SmallVec<[f64; 8]> = SmallVec::new();
        let mut joins: SmallVec<[(usize, f64); 4]> = SmallVec::new();
        for condition in left {
            if let Some(told) = histograms.part(condition) {
                parts.push(told);
                continue;
            }
            match self.equality(condition) {
                Some(equality) if equality.joins && joined.contains(&equality.column) => {}
                Some(equality) => {
                    let told = (equality.values / self.distinct_values(&equality)).min(1.0);
                    match equality.joins {
                        true => {
                            joined.push(equality.column);
                            joins.push((equality.column, told));
                        }
                        false => parts.push(told),
                    }
                }
                None => parts.push(one_selectivity(condition)),
            }
        }
        parts.extend(self.joined_by(&joins));
        part *= damped(parts);
        // A row of another table may have no match, but a query by itself is taken to find a row.
        let least = if joined.is_empty() { 1.0 } else { 0.01 };
        (read * part.max(1e-6)).max(least).min(read)
    }

    /// The parts of rows that have the values of rows of other tables, in columns with the part that
    /// each lets pass by itself: one for all together, where the sample tells how many combinations
    /// there are.
    fn joined_by(&self, joins: &[(usize, f64)]) -> SmallVec<[f64; 4]> {
        let columns: SmallVec<[usize; 4]> = joins.iter().map(|join| join.0).collect();
        let each = joins.iter().map(|join| join.1);
        let together = match columns.len() {
            0 | 1 => None,
            _ => self
                .sample()
                .and_then(|sample| sample::distinct_values(sample, self.table, &columns)),
        };
        match together {
            Some(combinations) => {
                let least = each.product::<f64>();
                SmallVec::from_slice(&[(1.0 / combinations.max(1.0)).max(least)])
            }
            None => each.collect(),
        }
    }

    /// The table's sample. Of very few rows none is taken.
    pub(super) fn sample(&self) -> Option<&TableSample> {
        /// Trying conditions on fewer rows tells less than a guess.
        const ROWS_MIN: f64 = 10.0;
        let taken = self.sample.get_or_init(|| match self.rows < ROWS_MIN {
            true => None,
            false => self.binder.context.contents.sample(self.table),
        });
        taken.as_deref()
    }

    /// The part of the table's rows that pass some conditions, as far as they can be tried on the
    /// sample; for those that few of its rows pass, histograms are asked. `None` without a sample or
    /// anything to try.
    pub(super) fn tried<'e>(&self, conditions: &[&'e Expr]) -> Option<Part<'e>> {
        /// A number of rows that is hardly chance.
        const ROWS_ENOUGH: usize = 16;
        if conditions.is_empty() {
            return None;
        }
        let sample = self.sample()?;
        let (known, slot) = (self.binder.known(), self.source.slot);
        let done = sample::try_conditions(known, sample, slot, conditions, self.trials);
        if !done.tried.contains(&true) {
            return None;
        }
        let all = sample.rows as f64;
        let is_whole = all >= self.rows;
        let pairs = conditions.iter().zip(&done.tried);
        let told = match done.passed < ROWS_ENOUGH && !is_whole {
            true => {
                self.told_by_histograms(pairs.clone().filter(|pair| *pair.1).map(|pair| *pair.0))
            }
            false => None,
        };
        let passed = done.passed as f64;
        let part = match told {
            // As many rows as would pass by chance, if no fewer or more rows of the table do.
            Some(told) => {
                let least = (passed - 2.0 * passed.sqrt()).max(0.0) / all;
                told.clamp(least, (passed + 2.0 * passed.sqrt() + 3.0) / all)
            }
            // Where none passes, half a row of the sample is taken to.
            None => passed.max(0.5) / all,
        };
        Some(Part {
            part,
            is_sound: told.is_some() || done.passed >= 2 || is_whole,
            untried: pairs.filter(|pair| !pair.1).map(|pair| *pair.0).collect(),
        })
    }

    /// The part of rows that pass conditions, by the histograms of columns that have one, and by
    /// the sample for the other conditions. `None` where no histogram tells of any.
    fn told_by_histograms<'e>(&self, conditions: impl Iterator<Item = &'e Expr>) -> Option<f64> {
        let statistics = self.table.state.statistics.load();
        let histograms = self.histograms(&statistics);
        let mut parts: SmallVec<[f64; 8]> = SmallVec::new();
        let mut others: SmallVec<[&Expr; 8]> = SmallVec::new();
        for condition in conditions {
            match histograms.part(condition) {
                Some(part) => parts.push(part.max(0.5 / self.rows)),
                None => others.push(condition),
            }
        }
        if parts.is_empty() {
            return None;
        }
        parts.extend(self.tried(&others).map(|tried| tried.part));
        Some(damped(parts))
    }

    fn histograms<'s>(&'s self, statistics: &'s Statistics) -> Histograms<'s> {
        Histograms {
            known: self.binder.known(),
            table: self.table,
            slot: self.source.slot,
            statistics,
        }
    }

    /// A condition that lets some single values of a column pass.
    fn equality(&self, condition: &Expr) -> Option<Equality> {
        let slot = self.source.slot;
        let column_of = |expr: &Expr| match expr.as_column() {
            Some((of, column)) if of == slot => Some(column),
            _ => None,
        };
        match &condition.kind {
            ExprKind::Compare {
                op: Comparison::Eq | Comparison::NullSafeEq,
                left,
                right,
                ..
            } => {
                let (column, other) = match (column_of(left), column_of(right)) {
                    (Some(column), None) => (column, right),
                    (None, Some(column)) => (column, left),
                    _ => return None,
                };
                Some(Equality {
                    column,
                    values: 1.0,
                    joins: !other.is_constant(),
                })
            }
            ExprKind::InList {
                operand,
                list,
                negated: false,
                ..
            } => Some(Equality {
                column: column_of(operand)?,
                values: list.len() as f64,
                joins: false,
            }),
            _ => None,
        }
    }

    /// How many values the column of an equality has: what an index that begins with it tells, a
    /// histogram, the sample, or a guess.
    fn distinct_values(&self, equality: &Equality) -> f64 {
        /// One of so many values is a guess for a constant, where nothing is known.
        const OF_CONSTANT: f64 = 10.0;
        let indexes = self.table.indexes.iter();
        let beginning = indexes.filter(|index| {
            let first = index.parts.first();
            first.is_some_and(|part| part.column == equality.column)
        });
        let none = || None;
        let told = beginning
            .filter_map(|index| sample::distinct_of_index(self.table, index, 1, self.rows, none));
        let name = &self.table.columns[equality.column].name;
        let statistics = self.table.state.statistics.load();
        let by_histogram = || Some(statistics.histogram(name)?.distinct().max(1.0));
        let columns = [equality.column];
        let sampled = || sample::distinct_values(self.sample()?, self.table, &columns);
        let told = told.reduce(f64::max).or_else(by_histogram);
        match told.or_else(sampled) {
            Some(distinct) => distinct,
            None if equality.joins => (self.rows / 3.0).max(OF_CONSTANT),
            None => OF_CONSTANT,
        }
    }

    /// What a row costs once the index is positioned.
    pub(super) fn row_cost(&self, index: usize, covering: bool) -> f64 {
        match (self.table.indexes[index].kind, covering) {
            (IndexKind::Primary, _) => 1.0,
            (_, true) => COVERED,
            (_, false) => 1.0 + FETCH,
        }
    }

    fn full_scan(&self) -> Path {
        let primary = self.table.primary_key();
        let reverse = primary.and_then(|_| self.order_of(0, &IndexRanges::all()));
        Path {
            access: Access::Full,
            reverse: reverse == Some(true),
            rows: self.rows,
            passed: self.passed(&[], self.rows),
            cost: self.rows + SEEK,
            exact: Vec::new(),
            parts: 0,
            in_order: reverse.is_some(),
            possible: Vec::new(),
        }
    }

    /// A look-up of one key.
    fn point(&self, position: usize, found: IndexRanges, covering: bool) -> Path {
        let kind = self.table.indexes[position].kind;
        let key = found.ranges.into_iter().next().map_or(Vec::new(), |range| {
            range.equal.into_iter().map(|part| part.value).collect()
        });
        let exact = still_exact(self.source, kind, found.exact);
        let fetch = if covering || kind == IndexKind::Primary {
            0.0
        } else {
            FETCH
        };
        Path {
            passed: self.passed(&exact, 1.0),
            access: Access::Point {
                index: position,
                key,
                covering,
            },
            reverse: false,
            rows: 1.0,
            cost: SEEK + fetch,
            exact,
            parts: found.parts,
            in_order: true,
            possible: Vec::new(),
        }
    }

    /// How many rows lie in an index's ranges: as many as the sample says, or as are counted where
    /// it has too few of them, and by guesses what is not known yet.
    pub(super) fn rows_of_ranges(
        &self,
        position: usize,
        found: &IndexRanges,
        sargs: &Sargs<'_>,
    ) -> f64 {
        let index = &self.table.indexes[position];
        let used = &index.parts[..found.parts];
        let of_used = sargs
            .single
            .iter()
            .filter(|sarg| used.iter().any(|part| part.column == sarg.column));
        let conditions = of_used.map(|sarg| sarg.condition).chain(found.alternatives);
        let conditions = conditions.map(|condition| self.conditions[condition]);
        let conditions: SmallVec<[&Expr; 8]> = conditions.collect();
        let guess = || self.guessed_rows_of_ranges(position, found);
        if self.goes_by_statistics(found) {
            return guess();
        }
        let is_told = self.tried(&conditions).is_none_or(|tried| tried.is_sound);
        let counted = match is_told {
            true => None,
            false => self.count_entries(position, found),
        };
        match counted {
            Some(Counted::Exactly(rows)) => rows.max(1.0),
            Some(Counted::AtLeast(rows)) => self.rows_passing(&conditions, guess).max(rows),
            None => self.rows_passing(&conditions, guess),
        }
    }

    /// How many of the table's rows pass some conditions: as many as the sample says, and by the
    /// guess what it can't.
    pub(super) fn rows_passing(&self, conditions: &[&Expr], guess: impl FnOnce() -> f64) -> f64 {
        let most = match self.tried(conditions) {
            // Some bounds are rows of other tables: each selects a part of what the others leave.
            Some(tried) if !tried.untried.is_empty() => {
                return guess().min(self.rows * tried.part).max(1.0);
            }
            Some(tried) if tried.is_sound => return (self.rows * tried.part).max(1.0),
            Some(tried) => self.rows * tried.part,
            None => return guess(),
        };
        // Too few rows of the sample to go by.
        guess().min(most * 2.0).max(1.0)
    }

    /// How many rows have one value in an index's first `parts` parts.
    fn rows_per_key(&self, position: usize, parts: usize) -> f64 {
        let (table, index) = (self.table, &self.table.indexes[position]);
        if index.is_unique() && parts >= index.parts.len() {
            return 1.0;
        }
        let sample = || self.sample();
        if let Some(distinct) = sample::distinct_of_index(table, index, parts, self.rows, sample) {
            return (self.rows / distinct).max(1.0);
        }
        let all = index.parts.len().max(1) as f64;
        match index.is_unique() {
            true => self.rows.powf(1.0 - parts as f64 / all).max(1.0),
            // A secondary key is taken to repeat some, and more so with fewer of its parts.
            false => self
                .rows
                .powf(0.3 + 0.3 * (1.0 - parts as f64 / all))
                .clamp(1.0, (self.rows * 0.1).max(1.0)),
        }
    }

    pub(super) fn guessed_rows_of_ranges(&self, position: usize, found: &IndexRanges) -> f64 {
        let rows = self.rows;
        // What is known of one key, by the number of its parts.
        let mut per_key: SmallVec<[Option<f64>; 8]> = SmallVec::from_elem(None, found.parts + 1);
        per_key[0] = Some(rows);
        let of_range = |range: &KeyRange| {
            let fixed = range.equal.len();
            let per_key = *per_key[fixed].get_or_insert_with(|| self.rows_per_key(position, fixed));
            let part = match (&range.lower, &range.upper) {
                (None, None) => 1.0,
                (Some(_), Some(_)) => 0.05,
                _ => 0.3333,
            };
            per_key * part
        };
        let guess: f64 = found.ranges.iter().map(of_range).sum();
        guess.clamp(1.0, rows.max(1.0))
    }

    /// A read of the ranges that conditions select.
    fn range_scan(
        &self,
        position: usize,
        found: IndexRanges,
        covering: bool,
        sargs: &Sargs<'_>,
    ) -> Path {
        let table = self.table;
        let read = self.rows_of_ranges(position, &found, sargs);
        let order = self.order_of(position, &found);
        let reading = self.reading_cost(position, covering, &found, read);
        let exact = still_exact(self.source, table.indexes[position].kind, found.exact);
        Path {
            rows: read,
            passed: self.passed(&exact, read),
            cost: found.ranges.len() as f64 * SEEK + reading,
            exact,
            parts: found.parts,
            reverse: order == Some(true),
            in_order: order.is_some(),
            access: Access::Index {
                index: position,
                ranges: found.ranges,
                covering,
            },
            possible: Vec::new(),
        }
    }

    /// A read of a whole index that no condition selects a part of. `None`: it has nothing that a
    /// full scan hasn't.
    fn index_scan(&self, position: usize, covering: bool) -> Option<Path> {
        let everything = IndexRanges::all();
        let order = if self.table.indexes[position].kind == IndexKind::Primary {
            None
        } else {
            self.order_of(position, &everything)
        };
        let hints = &self.source.hints;
        let reads_all = hints.allows(position) && (covering || hints.rows.force);
        if !reads_all && order.is_none() {
            return None;
        }
        Some(Path {
            rows: self.rows,
            passed: self.passed(&[], self.rows),
            cost: SEEK + self.rows * self.row_cost(position, covering),
            exact: Vec::new(),
            parts: 0,
            reverse: order == Some(true),
            in_order: order.is_some(),
            access: Access::Index {
                index: position,
                ranges: everything.ranges,
                covering,
            },
            possible: Vec::new(),
        })
    }

    /// Whether a path looks for single keys only.
    fn is_lookup(&self, path: &Path) -> bool {
        match &path.access {
            Access::Point { .. } => true,
            Access::Index { index, ranges, .. } => ranges
                .iter()
                .all(|range| range.is_point(&self.table.indexes[*index])),
            Access::Full | Access::Merge { .. } | Access::Skip(_) => false,
        }
    }

    /// The path's cost with that of the sort or the hash table that it doesn't spare; less where LIMIT
    /// ends it early.
    fn total_cost(&self, path: &Path) -> f64 {
        if self.wanted.keys.is_empty() {
            return path.cost;
        }
        let ends_early = self.binder.switches().prefer_ordering_index();
        let (spared, asked) = match self.wanted.spared {
            Spared::Sort => (sort_cost(path.passed, self.wanted.rows), self.wanted.rows),
            Spared::Groups { sorted, asked } => {
                let groups = self.groups(path.passed);
                let rows_of_group = path.passed / groups;
                let asked = asked.map(|asked| asked * rows_of_group);
                (grouping_cost(path.passed, groups, sorted), asked)
            }
        };
        match (path.in_order, asked.filter(|_| ends_early)) {
            (true, Some(asked)) => {
                path.cost * (asked / path.passed.max(1.0)).clamp(0.001, 1.0) + SEEK
            }
            (true, None) => path.cost,
            (false, _) => path.cost + spared,
        }
    }

    /// How many groups so many of the table's rows make.
    fn groups(&self, rows: f64) -> f64 {
        /// One of so many rows is a guess where nothing is known.
        const ROWS_OF_GROUP: f64 = 10.0;
        let keys = &self.wanted.keys;
        let is_own = keys.iter().all(|key| key.0 == self.source.slot);
        let mut columns: SmallVec<[usize; 4]> = keys.iter().map(|key| key.1).collect();
        if is_own {
            let equalities = self.conditions.iter().filter_map(|of| self.equality(of));
            let single = equalities.filter(|equality| !equality.joins && equality.values <= 1.0);
            single.for_each(|single| columns.retain(|column| *column != single.column));
        }
        let told = match (is_own, columns.is_empty()) {
            (true, true) => Some(1.0),
            (true, false) => self.combinations(&columns),
            (false, _) => None,
        };
        told.unwrap_or(rows / ROWS_OF_GROUP).min(rows).max(1.0)
    }

    /// How many different values some columns have together, as an index tells that begins with them,
    /// or the sample. `None` where nothing does.
    fn combinations(&self, columns: &[usize]) -> Option<f64> {
        let mut indexes = self.table.indexes.iter().filter(|index| {
            let first = index.parts.get(..columns.len());
            first.is_some_and(|first| {
                first
                    .iter()
                    .all(|part| part.prefix.is_none() && columns.contains(&part.column))
            })
        });
        match indexes.next() {
            Some(index) => {
                let sample = || self.sample();
                sample::distinct_of_index(self.table, index, columns.len(), self.rows, sample)
            }
            None => sample::distinct_values(self.sample()?, self.table, columns),
        }
    }
}

/// What it costs to put rows into so many groups by a hash table, and to sort these.
fn grouping_cost(rows: f64, groups: f64, is_sorted: bool) -> f64 {
    let of_table = rows * (PASS + HASH_GET) + groups * HASH_PUT;
    match is_sorted {
        true => of_table + sort_cost(groups, None),
        false => of_table,
    }
}

/// What it costs to sort rows of which so many are asked for. Of these alone is kept what may be
/// among them: each row is compared with the last one that is, and the fewer take its place the
/// more rows have come.
pub fn sort_cost(rows: f64, asked: Option<f64>) -> f64 {
    let all = rows * rows.max(2.0).log2() * SORT;
    let Some(kept) = asked
        .map(|asked| asked.max(1.0))
        .filter(|kept| *kept < rows)
    else {
        return all;
    };
    let replaced = kept * (1.0 + (rows / kept).ln());
    let of_kept = replaced * (kept.max(2.0).log2() * SORT + HASH_PUT);
    (rows * PASS + of_kept).min(all)
}

fn possible_keys(
    binder: &Binder<'_>,
    table: &Table,
    source: &Source,
    sargs: &Sargs<'_>,
) -> Vec<usize> {
    let usable = |(position, index): (usize, &porpoise_catalog::Index)| {
        let first = index.parts.first()?.column;
        (binder.sees(index) && source.hints.allows(position) && sargs.select(first))
            .then_some(position)
    };
    table
        .indexes
        .iter()
        .enumerate()
        .filter_map(usable)
        .collect()
}

/// Conditions that need not be checked again. A row that was waited for may have changed: what a
/// secondary index said of it must be checked again.
fn still_exact(source: &Source, kind: IndexKind, exact: Vec<usize>) -> Vec<usize> {
    if source.lock == RowLock::None || kind == IndexKind::Primary {
        exact
    } else {
        Vec::new()
    }
}

fn is_point(table: &Table, index: usize, found: &IndexRanges) -> bool {
    let index = &table.indexes[index];
    matches!(&found.ranges[..], [range] if range.is_point(index))
}

/// Whether an index holds every column that the statement reads of the slot.
pub fn covers(binder: &Binder<'_>, slot: SlotId, table: &Table, index: usize) -> bool {
    let used = &binder.slots[slot.0 as usize].used;
    let entry = &table.indexes[index].entry_columns;
    used.iter()
        .enumerate()
        .all(|(column, used)| !used || entry.contains(&column))
}

/// The scan that a path describes; `conditions` are those it doesn't say itself.
pub fn scan(
    binder: &mut Binder<'_>,
    source: &Source,
    table: &std::sync::Arc<Table>,
    path: Path,
    mut conditions: Vec<Expr>,
) -> Node {
    let slot = source.slot;
    // A point has one row.
    if !matches!(path.access, Access::Point { .. }) {
        let of_conditions = conditions.iter_mut();
        of_conditions.for_each(Expr::compute_constants_once);
    }
    let single_index = path.access.single_index();
    let (index_condition, conditions) = match single_index {
        Some((index, false)) => on_entries(binder, source, table, (index, &path), conditions),
        _ => (None, conditions),
    };
    let draft = &mut binder.slots[slot.0 as usize];
    draft.covering = single_index.and_then(|(index, covering)| covering.then_some(index));
    let columns_read = draft.used.clone();
    Node::Scan(Box::new(Scan {
        slot,
        table: table.clone(),
        access: path.access,
        reverse: path.reverse,
        lock: source.lock,
        columns_read,
        index_condition,
        filter: conditions,
        rows_estimate: path.rows,
        filtered: if path.rows > 0.0 {
            (path.passed / path.rows).min(1.0)
        } else {
            1.0
        },
        possible_keys: path.possible,
        key_parts_used: path.parts,
    }))
}

impl Binder<'_> {
    /// Whether an index may be used at all.
    pub fn sees(&self, index: &Index) -> bool {
        index.visible || self.switches().use_invisible_indexes()
    }

    /// What expressions are known to be.
    pub fn known(&self) -> KnownValues<'_> {
        KnownValues {
            context: self.context,
            rows: &self.known_rows,
        }
    }

    /// A guess of how many rows a table has.
    pub fn row_count(&self, table: &Table) -> f64 {
        self.context.contents.rows(table) as f64
    }
}
