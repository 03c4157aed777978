//! Interesting orders: those of rows that spare a sort or a hash table (MySQL 8.4 manual,
//! 10.2.1.16).

use porpoise_catalog::{Index, IndexKind, Table};
use porpoise_expr::SlotId;
use porpoise_expr::aggregate::SortKey;

use crate::optimize::ranges::IndexRanges;
use crate::optimize::skip::GroupEnds;

/// An order that would spare a sort.
#[derive(Clone, Debug, Default)]
pub struct InterestingOrder {
    /// Slot, column, and whether it descends. Empty: no order is of use.
    pub keys: Vec<(SlotId, usize, bool)>,
    /// All keys, in this order and direction (ORDER BY); else any order that keeps equal keys
    /// together (GROUP BY).
    pub whole: bool,
    /// LIMIT: few of the rows will be asked for.
    pub limited: bool,
    /// Of the rows of a group, those at its ends suffice. Of a query of one table alone.
    pub ends: Option<GroupEnds>,
}

impl InterestingOrder {
    /// ORDER BY, if all its keys are columns.
    pub fn of_sort(order: &[SortKey], limited: bool) -> InterestingOrder {
        let key = |key: &SortKey| {
            let (slot, column) = key.expr.as_column()?;
            Some((slot, column, key.descending))
        };
        let keys: Option<Vec<_>> = order.iter().map(key).collect();
        match keys {
            Some(keys) if !keys.is_empty() => InterestingOrder {
                keys,
                whole: true,
                limited,
                ends: None,
            },
            _ => InterestingOrder::default(),
        }
    }
}

/// Whether the primary key's order is the interesting one (`true`: read backward).
pub fn of_primary(table: &Table, slot: SlotId, wanted: &InterestingOrder) -> Option<bool> {
    table.primary_key()?;
    of_index(table, slot, 0, &IndexRanges::all(), wanted)
}

/// Whether an index's rows come in the interesting order (`true`: read backward).
pub fn of_index(
    table: &Table,
    slot: SlotId,
    index: usize,
    found: &IndexRanges,
    wanted: &InterestingOrder,
) -> Option<bool> {
    if wanted.keys.is_empty() {
        return None;
    }
    let definition = &table.indexes[index];
    let single = found.ranges.len() <= 1;
    let fixed = found.equal_parts();
    let parts = columns_after(table, definition, fixed);
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
/// they descend: its further parts, up to one that is a prefix, then the primary key's.
fn columns_after(table: &Table, index: &Index, fixed: usize) -> Vec<(usize, bool)> {
    let mut parts: Vec<(usize, bool)> = Vec::new();
    for part in index.parts.iter().skip(fixed) {
        if part.prefix.is_some() {
            break;
        }
        parts.push((part.column, part.descending));
    }
    let complete = parts.len() + fixed == index.parts.len();
    if complete
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
