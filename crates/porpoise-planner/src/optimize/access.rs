//! Access paths: the ways to a table's rows, with what each costs.
//!
//! Costs are in reads of a row in key order, which storage does in about 125 ns.

use porpoise_catalog::{IndexKind, Table};
use porpoise_expr::aggregate::Aggregate;
use porpoise_expr::{Comparison, Expr, ExprKind, Slot};

use crate::bind::Binder;
use crate::optimize::Wanted;
use crate::optimize::ranges::{self, IndexRanges, Sarg};
use crate::plan::{Access, KeyRange, Node, RowLock, Scan};
use crate::query::Source;
use crate::slot_set::SlotSet;

/// Finding the first row of a range.
const SEEK: f64 = 6.0;
/// Fetching a row by its primary key from a secondary index.
const FETCH: f64 = 6.0;
/// A row of a covering index is shorter than a table's.
const COVERED: f64 = 0.8;
/// Sorting a row, for each doubling of their number.
const SORT: f64 = 0.15;

/// One way to a table's rows.
#[derive(Clone, Debug)]
pub struct Path {
    pub access: Access,
    pub reverse: bool,
    /// Rows read an opening, and rows that pass the conditions.
    pub rows: f64,
    pub passed: f64,
    pub cost: f64,
    /// Conditions that the access says wholly.
    pub exact: Vec<usize>,
    pub parts: usize,
    pub in_order: bool,
    pub possible: Vec<usize>,
}

/// A guess of the part of rows that pass some conditions.
pub fn selectivity<'e>(conditions: impl Iterator<Item = &'e Expr>) -> f64 {
    conditions.map(one_selectivity).product::<f64>().max(1e-6)
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

/// How many rows have one value in an index's first `parts` parts.
fn rows_per_key(table: &Table, index: usize, parts: usize, rows: f64) -> f64 {
    let definition = &table.indexes[index];
    if definition.is_unique() && parts >= definition.parts.len() {
        return 1.0;
    }
    let statistics = table.state.statistics.load();
    if let Some(distinct) = statistics
        .cardinality
        .get(&definition.name)
        .and_then(|distinct| distinct.get(parts.saturating_sub(1)))
        && *distinct > 0
    {
        return (rows / *distinct as f64).max(1.0);
    }
    let all = definition.parts.len().max(1) as f64;
    match definition.is_unique() {
        true => rows.powf(1.0 - parts as f64 / all).max(1.0),
        // A secondary key is taken to repeat some, and more so with fewer of its parts.
        false => rows
            .powf(0.3 + 0.3 * (1.0 - parts as f64 / all))
            .clamp(1.0, (rows * 0.1).max(1.0)),
    }
}

fn rows_of_ranges(table: &Table, index: usize, found: &IndexRanges, rows: f64) -> f64 {
    let fixed = found.parts - usize::from(found.bounded);
    let per_range = if fixed == 0 {
        rows
    } else {
        rows_per_key(table, index, fixed, rows)
    };
    let part = match (found.bounded, found.closed) {
        (false, _) => 1.0,
        (true, true) => 0.05,
        (true, false) => 0.3333,
    };
    (per_range * part * found.ranges.len() as f64).clamp(1.0, rows.max(1.0))
}

/// The best way to a table's rows, given the conditions that can be checked there and the slots filled before.
pub fn best(
    binder: &Binder<'_>,
    source: &Source,
    table: &Table,
    conditions: &[&Expr],
    available: &SlotSet,
    wanted: &Wanted,
) -> Path {
    let rows = binder.row_count(table).max(1.0);
    let sargs = if conditions.is_empty() {
        Vec::new()
    } else {
        ranges::sargs(binder, source.slot, table, conditions, available)
    };
    let passed = |exact: &[usize], read: f64| {
        let left = conditions
            .iter()
            .enumerate()
            .filter(|(number, _)| !exact.contains(number))
            .map(|(_, condition)| *condition);
        (read * selectivity(left))
            .max(if read < 1.0 { read } else { 1.0 })
            .min(read)
    };
    let mut possible = Vec::new();
    let mut paths: Vec<Path> = Vec::new();
    if !source.hints.force {
        let reverse = order_of_primary(table, source.slot, wanted);
        paths.push(Path {
            access: Access::Full,
            reverse: reverse == Some(true),
            rows,
            passed: passed(&[], rows),
            cost: rows + SEEK,
            exact: Vec::new(),
            parts: 0,
            in_order: reverse.is_some(),
            possible: Vec::new(),
        });
    }
    for (position, index) in table.indexes.iter().enumerate() {
        if !index.visible || !source.hints.allows(position) {
            continue;
        }
        let covering = source.lock == RowLock::None
            && index.kind != IndexKind::Primary
            && covers(binder, source.slot, table, position);
        let row_cost = match (index.kind, covering) {
            (IndexKind::Primary, _) => 1.0,
            (_, true) => COVERED,
            (_, false) => 1.0 + FETCH,
        };
        let found = ranges::index_ranges(index, &sargs);
        if found.is_some() {
            possible.push(position);
        }
        match found {
            Some(found) if is_point(table, position, &found) => {
                let key = found.ranges.into_iter().next().map_or(Vec::new(), |range| {
                    range.equal.into_iter().map(|part| part.value).collect()
                });
                let exact = still_exact(source, index.kind, found.exact);
                let passed = passed(&exact, 1.0);
                let path = Path {
                    access: Access::Point {
                        index: position,
                        key,
                        covering,
                    },
                    reverse: false,
                    rows: 1.0,
                    passed,
                    cost: SEEK
                        + if covering || index.kind == IndexKind::Primary {
                            0.0
                        } else {
                            FETCH
                        },
                    exact,
                    parts: found.parts,
                    in_order: true,
                    possible: Vec::new(),
                };
                if index.kind == IndexKind::Primary {
                    // Nothing beats the primary key.
                    return Path {
                        possible: possible_keys(table, source, &sargs),
                        ..path
                    };
                }
                paths.push(path);
            }
            Some(found) => {
                let read = rows_of_ranges(table, position, &found, rows);
                let order = order_of(table, source.slot, position, &found, wanted);
                let exact = still_exact(source, index.kind, found.exact);
                paths.push(Path {
                    rows: read,
                    passed: passed(&exact, read),
                    cost: found.ranges.len() as f64 * SEEK + read * row_cost,
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
                });
            }
            None => {
                let everything = IndexRanges::all();
                let order = if index.kind == IndexKind::Primary {
                    None
                } else {
                    order_of(table, source.slot, position, &everything, wanted)
                };
                if covering || order.is_some() || source.hints.force {
                    paths.push(Path {
                        rows,
                        passed: passed(&[], rows),
                        cost: SEEK + rows * row_cost,
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
                    });
                }
            }
        }
    }
    // Whoever locks locks keys that are not there, too, where it looks for single ones.
    let looks_up = |path: &Path| match &path.access {
        Access::Point { .. } => true,
        Access::Index { index, ranges, .. } => ranges
            .iter()
            .all(|range| range.is_point(&table.indexes[*index])),
        Access::Full => false,
    };
    if source.lock != RowLock::None && paths.iter().any(looks_up) {
        paths.retain(looks_up);
    }
    let total = |path: &Path| match (wanted.keys.is_empty(), path.in_order) {
        (false, true) if wanted.limited => {
            path.cost * (20.0 / path.passed.max(1.0)).clamp(0.001, 1.0) + SEEK
        }
        (false, false) => path.cost + path.passed * path.passed.max(2.0).log2() * SORT,
        _ => path.cost,
    };
    let best = paths
        .into_iter()
        .min_by(|a, b| total(a).total_cmp(&total(b)));
    let mut best = best.unwrap_or(Path {
        access: Access::Full,
        reverse: false,
        rows,
        passed: rows,
        cost: rows + SEEK,
        exact: Vec::new(),
        parts: 0,
        in_order: false,
        possible: Vec::new(),
    });
    best.possible = possible;
    best
}

fn possible_keys(table: &Table, source: &Source, sargs: &[Sarg]) -> Vec<usize> {
    let usable = |(position, index): (usize, &porpoise_catalog::Index)| {
        let first = index.parts.first()?.column;
        (index.visible
            && source.hints.allows(position)
            && sargs.iter().any(|sarg| sarg.column == first))
        .then_some(position)
    };
    table
        .indexes
        .iter()
        .enumerate()
        .filter_map(usable)
        .collect()
}

/// A row that was waited for may have changed: what a secondary index said of it must be checked again.
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
pub fn covers(binder: &Binder<'_>, slot: Slot, table: &Table, index: usize) -> bool {
    let used = &binder.slots[slot.0 as usize].used;
    let entry = &table.indexes[index].entry_columns;
    used.iter()
        .enumerate()
        .all(|(column, used)| !used || entry.contains(&column))
}

/// Whether the primary key's order is the wanted one (`true`: turned round).
fn order_of_primary(table: &Table, slot: Slot, wanted: &Wanted) -> Option<bool> {
    table.primary_key()?;
    order_of(table, slot, 0, &IndexRanges::all(), wanted)
}

/// Whether an index's rows come in the wanted order (`true`: turned round).
fn order_of(
    table: &Table,
    slot: Slot,
    index: usize,
    found: &IndexRanges,
    wanted: &Wanted,
) -> Option<bool> {
    if wanted.keys.is_empty() {
        return None;
    }
    let definition = &table.indexes[index];
    let single = found.ranges.len() <= 1;
    let fixed = if single { found.equal_parts } else { 0 };
    let mut parts: Vec<(usize, bool)> = Vec::new();
    for part in definition.parts.iter().skip(fixed) {
        if part.prefix.is_some() {
            break;
        }
        parts.push((part.column, part.descending));
    }
    let complete = parts.len() + fixed == definition.parts.len();
    if complete
        && definition.kind != IndexKind::Primary
        && let Some(primary) = table.primary_key()
    {
        parts.extend(
            primary
                .parts
                .iter()
                .filter(|part| part.prefix.is_none())
                .map(|part| (part.column, part.descending)),
        );
    }
    let is_fixed = |column: usize| {
        single
            && definition.parts[..fixed]
                .iter()
                .any(|part| part.column == column)
    };
    if !wanted.whole {
        // Grouping: the keys are the first parts, in any order.
        let keys: Vec<usize> = wanted
            .keys
            .iter()
            .map(|key| key.1)
            .filter(|column| !is_fixed(*column))
            .collect();
        let first = &parts.get(..keys.len())?;
        let same = wanted.keys.iter().all(|key| key.0 == slot)
            && first.iter().all(|part| keys.contains(&part.0));
        return same.then_some(false);
    }
    let mut reverse: Option<bool> = None;
    let mut next = parts.iter();
    for (of, column, descending) in &wanted.keys {
        if *of != slot {
            return None;
        }
        if is_fixed(*column) {
            continue;
        }
        let (part, part_descending) = next.next()?;
        if part != column {
            return None;
        }
        let turned = descending != part_descending;
        if *reverse.get_or_insert(turned) != turned {
            return None;
        }
    }
    Some(reverse.unwrap_or(false))
}

/// The scan that a path describes; `conditions` are those it doesn't say itself.
pub fn scan(
    binder: &mut Binder<'_>,
    source: &Source,
    table: &std::sync::Arc<Table>,
    path: Path,
    conditions: Vec<Expr>,
) -> Node {
    let slot = source.slot;
    let draft = &mut binder.slots[slot.0 as usize];
    let covering = match &path.access {
        Access::Index {
            index,
            covering: true,
            ..
        }
        | Access::Point {
            index,
            covering: true,
            ..
        } => Some(*index),
        _ => None,
    };
    draft.covering = covering;
    let columns_read = draft.used.clone();
    Node::Scan(Box::new(Scan {
        slot,
        table: table.clone(),
        access: path.access,
        reverse: path.reverse,
        lock: source.lock,
        columns_read,
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

/// `SELECT MIN(k)` over an index on k needs its first row alone, `MAX(k)` its last.
pub fn first_row(node: Node, aggregates: &[Aggregate]) -> Node {
    let Node::Scan(scan) = &node else { return node };
    let [aggregate] = aggregates else { return node };
    let last = match aggregate.function.name {
        "MIN" => false,
        "MAX" => true,
        _ => return node,
    };
    let [argument] = &aggregate.arguments[..] else {
        return node;
    };
    let Some((slot, column)) = argument.as_column() else {
        return node;
    };
    if slot != scan.slot || scan.lock != RowLock::None {
        return node;
    }
    let table = &scan.table;
    let wanted = Wanted {
        keys: vec![(slot, column, last)],
        whole: true,
        limited: true,
    };
    let everything = IndexRanges::all();
    let (access, reverse) = match &scan.access {
        Access::Index { index, ranges, .. } if ranges.len() == 1 => {
            let found = IndexRanges {
                ranges: ranges.clone(),
                equal_parts: ranges[0].equal.len(),
                ..everything
            };
            match order_of(table, slot, *index, &found, &wanted) {
                Some(reverse) => (scan.access.clone(), reverse),
                None => return node,
            }
        }
        Access::Full => {
            let of_index = |position: usize| order_of(table, slot, position, &everything, &wanted);
            match (0..table.indexes.len())
                .filter(|position| table.indexes[*position].visible)
                .find_map(|position| Some((position, of_index(position)?)))
            {
                Some((position, reverse)) => {
                    let ranges = vec![KeyRange::ALL];
                    (
                        Access::Index {
                            index: position,
                            ranges,
                            covering: false,
                        },
                        reverse,
                    )
                }
                None => return node,
            }
        }
        _ => return node,
    };
    let mut scan = scan.clone();
    scan.access = access;
    scan.reverse = reverse;
    if argument.nullable {
        scan.filter.push(Expr::boolean(
            ExprKind::IsNull {
                operand: Box::new(argument.clone()),
                negated: true,
            },
            false,
        ));
    }
    let one = Expr::literal(
        porpoise_types::Value::Int(1),
        porpoise_types::DataType::BIGINT,
    );
    Node::Limit {
        input: Box::new(Node::Scan(scan)),
        offset: None,
        count: Some(Box::new(one)),
    }
}

impl Binder<'_> {
    /// A guess of how many rows a table has.
    pub fn row_count(&self, table: &Table) -> f64 {
        self.cx.row_counts.rows(table) as f64
    }
}
