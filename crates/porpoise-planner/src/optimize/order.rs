//! Interesting orders: those of rows that spare a sort or a hash table (MySQL 8.4 manual,
//! 10.2.1.16).

use porpoise_catalog::{Index, IndexKind, Table};
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, SlotId};

use crate::optimize::estimate::limit_value;
use crate::optimize::ranges::IndexRanges;
use crate::optimize::skip::GroupEnds;

/// What is to be done with rows that don't come in an order.
#[derive(Clone, Copy, Debug, Default)]
pub enum Spared {
    /// They are sorted.
    #[default]
    Sort,
    /// A hash table keeps their groups.
    Groups {
        /// The groups are sorted.
        sorted: bool,
        /// LIMIT: how many groups will be asked for. `None`: all.
        asked: Option<f64>,
    },
}

/// An order that would spare a sort, or a hash table of groups.
#[derive(Clone, Debug, Default)]
pub struct InterestingOrder {
    /// Slot, column, and whether it descends. Empty: no order is of use.
    pub keys: Vec<(SlotId, usize, bool)>,
    /// All keys, in this order and direction (ORDER BY); else any order that keeps equal keys
    /// together (GROUP BY).
    pub whole: bool,
    /// LIMIT: how many rows will be asked for, about. `None`: all.
    pub rows: Option<f64>,
    /// ORDER BY, whatever its keys are.
    pub sort: Vec<SortKey>,
    /// LIMIT and OFFSET, where they count the rows that the join yields.
    pub top: Option<(Expr, Option<Expr>)>,
    /// Of the rows of a group, those at its ends suffice. Of a query of one table alone.
    pub ends: Option<GroupEnds>,
    pub spared: Spared,
}

/// How many rows a LIMIT is taken to ask for that is not known yet.
const ROWS_OF_LIMIT: f64 = 20.0;

impl InterestingOrder {
    /// ORDER BY with LIMIT.
    pub fn of_sort(
        order: &[SortKey],
        limit: Option<&Expr>,
        offset: Option<&Expr>,
    ) -> InterestingOrder {
        let sort = order.iter().filter(|key| !key.expr.is_constant());
        let key = |key: &SortKey| {
            let (slot, column) = key.expr.as_column()?;
            Some((slot, column, key.descending))
        };
        let keys: Option<Vec<_>> = order.iter().map(key).collect();
        InterestingOrder {
            keys: keys.unwrap_or_default(),
            whole: true,
            rows: rows_asked(limit, offset),
            sort: sort.cloned().collect(),
            ..InterestingOrder::default()
        }
    }

    /// The same, where so many of a relation's rows make one of the result.
    pub fn for_each(&self, rows_of_result: f64) -> InterestingOrder {
        InterestingOrder {
            rows: self.rows.map(|rows| (rows / rows_of_result).max(1.0)),
            ..self.clone()
        }
    }
}

/// How many rows will be asked for, about. `None`: all.
pub fn rows_asked(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<f64> {
    let rows_of = |limit: &Expr| limit_value(limit).unwrap_or(ROWS_OF_LIMIT);
    limit.map(|limit| rows_of(limit) + offset.map_or(0.0, rows_of))
}

/// Whether an index's rows come in the interesting order (`true`: read backward). `extends`: the
/// primary key's columns are taken for further parts of a secondary index, as they are.
pub fn of_index(
    table: &Table,
    slot: SlotId,
    index: usize,
    found: &IndexRanges,
    wanted: &InterestingOrder,
    extends: bool,
) -> Option<bool> {
    if wanted.keys.is_empty() {
        return None;
    }
    let definition = &table.indexes[index];
    let single = found.ranges.len() <= 1;
    let fixed = found.equal_parts();
    let parts = columns_after(table, definition, fixed, extends);
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

/// The columns by which an index's entries are ordered after their first `fixed` parts, and whether
/// they descend: its further parts, up to one that is a prefix, then, if it `extends`, the primary
/// key's.
fn columns_after(table: &Table, index: &Index, fixed: usize, extends: bool) -> Vec<(usize, bool)> {
    let mut parts: Vec<(usize, bool)> = Vec::new();
    for part in index.parts.iter().skip(fixed) {
        if part.prefix.is_some() {
            break;
        }
        parts.push((part.column, part.descending));
    }
    let complete = parts.len() + fixed == index.parts.len();
    if complete
        && extends
        && index.kind != IndexKind::Primary
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
    parts
}
