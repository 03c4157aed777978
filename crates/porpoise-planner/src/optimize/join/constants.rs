//! Tables that are looked up by a whole unique key whose values are known while a statement is
//! planned (MySQL 8.4 manual, 10.8.2, "const").
//!
//! Their rows are read for the estimates alone: which value of another table is joined to tells how
//! many rows it has. A row may lead to that of a further table. Where there is no row, the other
//! tables are planned as for any: nothing of them will be read this time.

use porpoise_catalog::Table;
use porpoise_expr::Expr;
use porpoise_types::Value;

use crate::bind::Binder;
use crate::key_range;
use crate::optimize::join::{Condition, Unit};
use crate::optimize::{ranges, sargs};
use crate::plan::JoinKind;
use crate::query::{JoinTree, Source, SourceKind};
use crate::slot_set::SlotSet;

/// Looks up the rows of units, and keeps them as known.
pub(super) fn look_up(binder: &mut Binder<'_>, units: &[Unit<'_>], conditions: &[Condition]) {
    if units.len() < 2 {
        return;
    }
    let mut known = SlotSet::default();
    loop {
        let mut found = None;
        for unit in units.iter().filter(|unit| !known.intersects(&unit.slots)) {
            if let Some((source, table)) = stored_table(unit)
                && let Some(row) = row_of(binder, unit, source, table, conditions, &known)
            {
                found = Some((source.slot, row));
                break;
            }
        }
        let Some((slot, row)) = found else { return };
        known.insert(slot);
        binder.known_rows.keep(slot, row);
    }
}

fn stored_table<'t>(unit: &Unit<'t>) -> Option<(&'t Source, &'t Table)> {
    let JoinTree::Leaf(source) = unit.tree else {
        return None;
    };
    match (&source.kind, unit.kind) {
        (SourceKind::Table(table), JoinKind::Inner | JoinKind::Left) => Some((source, table)),
        _ => None,
    }
}

/// The row of a unit of which conditions give a whole unique key.
fn row_of(
    binder: &Binder<'_>,
    unit: &Unit<'_>,
    source: &Source,
    table: &Table,
    conditions: &[Condition],
    known: &SlotSet,
) -> Option<Vec<Value>> {
    let of_unit = match unit.kind {
        JoinKind::Inner => conditions,
        _ => &unit.on[..],
    };
    let with = unit.slots.union(known);
    let is_usable = |condition: &&Condition| {
        condition.slots.intersects(&unit.slots) && condition.slots.is_subset(&with)
    };
    let usable = of_unit.iter().filter(is_usable);
    let usable: Vec<&Expr> = usable.map(|condition| &condition.expr).collect();
    if usable.is_empty() {
        return None;
    }
    let sargs = sargs::sargs(binder, source.slot, table, &usable, known);
    for index in table.indexes.iter().filter(|index| index.is_unique()) {
        for found in ranges::index_ranges(&index.parts, &sargs) {
            let [range] = &found.ranges[..] else { continue };
            if !range.is_point(index) {
                continue;
            }
            let key = range.equal.iter().map(|part| &part.value);
            let key = key_range::point(&mut binder.known(), table, index, key);
            let Ok(Some(key)) = key else { continue };
            return binder.context.contents.row_of_key(table, index, &key);
        }
    }
    None
}
