//! Conditions that an index's entry decides, before its row is read (MySQL 8.4 manual, 10.2.1.6,
//! "index condition pushdown").
//!
//! An entry holds the columns of its index and of the primary key. Reading it is much cheaper than
//! looking up the row behind it, so conditions on these columns alone are checked on the entry, which
//! has a slot of its own.

use std::sync::Arc;

use porpoise_catalog::{IndexKind, Table};
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_sql::ast::HintKind;
use smallvec::SmallVec;

use crate::bind::Binder;
use crate::optimize::access::{Path, TableChoice, selectivity};
use crate::optimize::cost::FETCH;
use crate::optimize::ranges::IndexRanges;
use crate::plan::{Access, IndexCondition, RowLock};
use crate::query::Source;

impl TableChoice<'_> {
    /// What reading so many entries of ranges costs. Rows are looked up only behind those that pass
    /// the conditions on entries.
    pub(super) fn reading_cost(
        &self,
        position: usize,
        covering: bool,
        found: &IndexRanges,
        read: f64,
    ) -> f64 {
        let index = &self.table.indexes[position];
        let each = self.row_cost(position, covering);
        if covering || index.kind == IndexKind::Primary {
            return read * each;
        }
        let used = &index.parts[..found.parts];
        let slot = self.source.slot;
        let is_range = |condition: &Expr| {
            condition.any(&mut |part| {
                let column = part.as_column().filter(|(of, _)| *of == slot);
                column.is_some_and(|(_, column)| used.iter().any(|part| part.column == column))
            })
        };
        let conditions = self.conditions.iter().copied();
        let more = conditions.filter(|condition| {
            !is_range(condition) && is_on_entry(slot, self.table, position, condition)
        });
        let more: SmallVec<[&Expr; 8]> = more.collect();
        let part = match self.tried(&more) {
            Some(tried) => tried.part,
            None => selectivity(more.into_iter()),
        };
        read * (each - FETCH) + read * part * FETCH
    }
}

/// Takes the conditions that an entry of the index decides from those on its row. A locking read
/// checks them on the row as well, which may have changed before it was locked.
pub fn on_entries(
    binder: &mut Binder<'_>,
    source: &Source,
    table: &Arc<Table>,
    (index, path): (usize, &Path),
    conditions: Vec<Expr>,
) -> (Option<IndexCondition>, Vec<Expr>) {
    let is_on = binder.switches().index_condition_pushdown();
    let hints = &source.hints;
    let looks_up_rows = hints.is_on(HintKind::IndexConditionPushdown, Some(index), is_on)
        && !matches!(path.access, Access::Point { .. })
        && table.indexes[index].kind != IndexKind::Primary;
    let is_on_entry = |condition: &Expr| is_on_entry(source.slot, table, index, condition);
    if !looks_up_rows || !conditions.iter().any(is_on_entry) {
        return (None, conditions);
    }
    let (mut of_entry, mut of_row) = (Vec::new(), Vec::new());
    for condition in conditions {
        let decided = is_on_entry(&condition);
        if !decided || source.lock != RowLock::None {
            of_row.push(condition.clone());
        }
        if decided {
            of_entry.push(condition);
        }
    }
    let slot = binder.entry_slot(source.slot, table, index);
    of_entry
        .iter_mut()
        .for_each(|condition| read_from(condition, source.slot, slot));
    let conditions = of_entry;
    (Some(IndexCondition { slot, conditions }), of_row)
}

/// Whether an entry of the index holds all columns of its row that a condition reads.
fn is_on_entry(slot: SlotId, table: &Table, index: usize, condition: &Expr) -> bool {
    let entry = &table.indexes[index].entry_columns;
    let mut reads_other = |part: &Expr| {
        let column = part.as_column().filter(|(of, _)| *of == slot);
        column.is_some_and(|(_, column)| !entry.contains(&column))
    };
    !condition.is_volatile() && !condition.has_subquery() && !condition.any(&mut reads_other)
}

/// Reads columns of a slot from another one.
fn read_from(expr: &mut Expr, from: SlotId, to: SlotId) {
    if let ExprKind::Column { slot, .. } = &mut expr.kind
        && *slot == from
    {
        *slot = to;
    }
    expr.for_each_child_mut(&mut |child| read_from(child, from, to));
}
