//! Semi-joins as inner joins whose duplicates are weeded out.
//!
//! A semi-join comes after the tables that its conditions read, whose rows it lets pass or not. If
//! few rows of the subquery match few of a large table, it is better to begin with the subquery: its
//! tables are joined as those of an inner join, in any order, and of the rows that come of one row
//! of the query's own tables the first passes. Rows are told apart by the primary keys of these
//! tables (MySQL 8.4 manual, 10.2.2.1: duplicate weedout).

use porpoise_core::error::Result;
use porpoise_expr::Expr;

use super::search::{self, Order};
use super::{Condition, Unit, build, take_apart};
use crate::bind::Binder;
use crate::optimize::cost::HASH_PUT;
use crate::optimize::join::parts::Parts;
use crate::optimize::order::InterestingOrder;
use crate::plan::{JoinKind, Node, RowLock};
use crate::query::{JoinTree, LogicalJoin, Source, SourceKind};
use crate::slot_set::SlotSet;

/// Below this cost a join isn't worth looking for another.
const COST_MIN: f64 = 20.0;

/// So many semi-joins are tried one by one.
const TRIED_MAX: usize = 4;

/// A tree's units in an order that begins with subqueries' tables.
pub struct Weeded<'t> {
    pub units: Vec<Unit<'t>>,
    pub conditions: Vec<Condition>,
    pub order: Order,
    /// By what the rows of the query's own tables are told apart.
    pub keys: Vec<Expr>,
}

impl Weeded<'_> {
    /// The join's node, which lets the first row pass of those with the same rows of the query's own
    /// tables, and whether its rows come in the wanted order.
    pub fn build(
        self,
        binder: &mut Binder<'_>,
        outer: &SlotSet,
        wanted: &InterestingOrder,
    ) -> Result<(Node, bool)> {
        for (slot, column) in self.keys.iter().filter_map(Expr::as_column) {
            binder.slots[slot.0 as usize].used[column] = true;
        }
        let (units, order) = (&self.units, &self.order);
        let (input, in_order) = build(binder, units, self.conditions, order, outer, wanted)?;
        let node = Node::Distinct {
            input: Box::new(input),
            keys: self.keys,
            is_weedout: true,
        };
        Ok((node, in_order))
    }
}

/// The cheapest way to weed duplicates out, if it is cheaper than `order`, of `units`, or if hints
/// leave nothing else.
pub fn cheaper<'t>(
    binder: &Binder<'_>,
    parts: &Parts,
    tree: &'t JoinTree,
    (units, order): (&[Unit<'t>], &Order),
    conditions: &[Expr],
    outer: &SlotSet,
    wanted: &InterestingOrder,
) -> Option<Weeded<'t>> {
    let mut semi_joins = Vec::new();
    let mut is_forced = false;
    for unit in units.iter().filter(|unit| unit.kind == JoinKind::Semi) {
        let inside = parts.inside(binder, unit.tree);
        if inside.may_weed_out && inside.is_stable {
            is_forced |= !inside.may_match_first && !inside.may_materialize;
            semi_joins.push(unit.slots.clone());
        }
    }
    if semi_joins.is_empty() || (order.cost < COST_MIN && !is_forced) {
        return None;
    }
    let keys = row_keys(tree)?;
    let all = semi_joins
        .iter()
        .fold(SlotSet::default(), |all, slots| all.union(slots));
    let mut choices = vec![all];
    if (2..=TRIED_MAX).contains(&semi_joins.len()) && !is_forced {
        choices.extend(semi_joins);
    }
    let mut best: Option<(f64, Weeded<'t>)> = None;
    for pulled in choices {
        let (units, conditions) = take_apart(binder, parts, tree, conditions.to_vec(), &pulled);
        let order =
            search::best_order_for_result(binder, parts, &units, &conditions, outer, wanted);
        let cost = order.cost + order.rows * HASH_PUT;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            let keys = keys.clone();
            best = Some((
                cost,
                Weeded {
                    units,
                    conditions,
                    order,
                    keys,
                },
            ));
        }
    }
    let (cost, weeded) = best?;
    (is_forced || cost < order.cost).then_some(weeded)
}

/// The primary keys of a tree's own tables. `None` if one has none, or isn't a stored table, or locks
/// its rows: a lock is taken as a row is read.
fn row_keys(tree: &JoinTree) -> Option<Vec<Expr>> {
    let mut keys = Vec::new();
    add_row_keys(tree, false, &mut keys)?;
    Some(keys)
}

fn add_row_keys(tree: &JoinTree, may_miss: bool, keys: &mut Vec<Expr>) -> Option<()> {
    match tree {
        JoinTree::One => Some(()),
        JoinTree::Leaf(source) => add_keys_of(source, may_miss, keys),
        JoinTree::Filtered { tree, .. } => add_row_keys(tree, may_miss, keys),
        JoinTree::Join {
            left, right, kind, ..
        } => {
            add_row_keys(left, may_miss, keys)?;
            match kind {
                LogicalJoin::Inner | LogicalJoin::Straight => add_row_keys(right, may_miss, keys),
                LogicalJoin::Left => add_row_keys(right, true, keys),
                LogicalJoin::Semi | LogicalJoin::Anti => Some(()),
            }
        }
    }
}

fn add_keys_of(source: &Source, may_miss: bool, keys: &mut Vec<Expr>) -> Option<()> {
    let SourceKind::Table(table) = &source.kind else {
        return None;
    };
    if source.lock != RowLock::None {
        return None;
    }
    for part in &table.primary_key()?.parts {
        let column = table.columns.get(part.column)?;
        // The beginning of a text tells rows apart as well as all of it.
        let ty = column.ty.clone();
        keys.push(Expr::column(source.slot, part.column, ty, may_miss));
    }
    Some(())
}
