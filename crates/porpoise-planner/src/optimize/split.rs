//! Derived tables that are computed for some of their groups at a time.
//!
//! ```sql
//! SELECT c.name, d.total FROM customers c JOIN
//!   (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) d ON d.customer = c.id
//! WHERE c.city = 'Ghent'
//! ```
//!
//! Computed as a whole, `d` reads all orders. Where few customers are asked for, and an index finds
//! the orders of one, it is better computed for each of them with `customer = c.id` among its
//! conditions, as if LATERAL stood before it. Which is cheaper the search for a join order decides
//! ([`super::join`]): a [`Split`] is what it may choose.
//!
//! The equality must be true of every row that the join needs, and say which groups, partitions or
//! distinct rows are needed, of UNION and the other set operations in each of their queries
//! ([`super::pushdown`]).

use porpoise_expr::{Comparison, Expr, ExprKind, SlotId};

use crate::bind::Binder;
use crate::optimize::cost::HASH_PUT;
use crate::optimize::join;
use crate::optimize::{expr_slots, free_slots, outer, pushdown};
use crate::plan::RowLock;
use crate::query::{Body, JoinTree, LogicalJoin, Query, Source, SourceKind};
use crate::slot_set::SlotSet;

/// A derived table's query with conditions that read other tables of FROM.
#[derive(Clone, Debug)]
pub struct Split {
    /// Not planned yet. It fills the same slots as the query without the conditions.
    pub query: Query,
    /// The slots that have to be filled before.
    pub reads: SlotSet,
    /// What each execution costs, in reads of a row in key order.
    pub cost: f64,
    /// What it costs to compute the whole table, once.
    pub whole_cost: f64,
}

/// The splits of each derived table of a join tree that can be split, before these are planned.
pub fn splits(
    binder: &Binder<'_>,
    tree: &JoinTree,
    conditions: &[Expr],
) -> Vec<(SlotId, Vec<Split>)> {
    let mut found = Vec::new();
    collect(binder, tree, &conditions.iter().collect(), &mut found);
    found
}

/// Goes through a tree with the conditions that are true of each row that is needed of it.
fn collect(
    binder: &Binder<'_>,
    tree: &JoinTree,
    conditions: &Vec<&Expr>,
    found: &mut Vec<(SlotId, Vec<Split>)>,
) {
    match tree {
        JoinTree::One => {}
        JoinTree::Leaf(source) => {
            if let SourceKind::Derived { query } = &source.kind {
                let splits = splits_of(binder, source, query, conditions);
                if !splits.is_empty() {
                    found.push((source.slot, splits));
                }
            }
        }
        JoinTree::Filtered {
            tree,
            conditions: own,
        } => {
            let conditions = conditions.iter().copied().chain(own).collect();
            collect(binder, tree, &conditions, found);
        }
        JoinTree::Join {
            left,
            right,
            kind,
            on,
        } => {
            let of_right = conditions.iter().copied().chain(on).collect();
            let of_left = match kind {
                LogicalJoin::Inner | LogicalJoin::Straight | LogicalJoin::Semi => &of_right,
                // What ON says of an outer join's rows it doesn't say of those of the left side.
                LogicalJoin::Left | LogicalJoin::Anti => conditions,
            };
            collect(binder, left, of_left, found);
            collect(binder, right, &of_right, found);
        }
    }
}

fn splits_of(
    binder: &Binder<'_>,
    source: &Source,
    query: &Query,
    conditions: &[&Expr],
) -> Vec<Split> {
    let own = SlotSet::one(source.slot);
    let equalities: Vec<(&Expr, SlotSet)> = conditions
        .iter()
        .filter_map(|condition| Some((*condition, reads_of_equality(binder, condition, &own)?)))
        .collect();
    if equalities.is_empty() || !is_simple(binder, query) {
        return Vec::new();
    }
    let mut whole = SlotSet::default();
    equalities.iter().for_each(|(_, reads)| whole.add(reads));
    let mut sets = vec![whole];
    for (_, reads) in &equalities {
        if !sets.contains(reads) {
            sets.push(reads.clone());
        }
    }
    let mut splits: Vec<Split> = Vec::new();
    for reads in sets {
        let ready = equalities.iter().filter(|(_, of)| of.is_subset(&reads));
        let mut split = query.clone();
        let mut is_split = false;
        for (condition, _) in ready {
            is_split |= pushdown::push_below_groups(&mut split, source.slot, condition);
        }
        if let (true, Some(cost), Some(whole_cost)) = (
            is_split,
            cost_of(binder, &split, &reads),
            cost_of(binder, query, &SlotSet::default()),
        ) {
            splits.push(Split {
                query: split,
                reads,
                cost,
                whole_cost,
            });
        }
    }
    splits
}

/// What an equality of a table's column with something of other tables reads of those.
fn reads_of_equality(binder: &Binder<'_>, condition: &Expr, own: &SlotSet) -> Option<SlotSet> {
    let ExprKind::Compare {
        op: Comparison::Eq,
        left,
        right,
        ..
    } = &condition.kind
    else {
        return None;
    };
    if condition.is_volatile() || condition.has_subquery() {
        return None;
    }
    let (left, right) = (expr_slots(binder, left), expr_slots(binder, right));
    let reads = match (left == *own, right == *own) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    (!reads.is_empty() && !reads.intersects(own)).then_some(reads)
}

/// Whether a query joins stored tables and then groups their rows, drops equal ones, or computes
/// windows, or is a set operation of such queries: its costs are known before it is planned.
fn is_simple(binder: &Binder<'_>, query: &Query) -> bool {
    let mut is_simple = has_simple_blocks(query);
    query.for_each_source(&mut |source| {
        is_simple &= source.lock == RowLock::None && matches!(source.kind, SourceKind::Table(_));
    });
    query.for_each_expr(&mut |expr| is_simple &= !expr.has_subquery() && !expr.is_volatile());
    is_simple && free_slots(binder, query).is_empty()
}

/// Whether a query is of blocks that LIMIT leaves whole.
fn has_simple_blocks(query: &Query) -> bool {
    query.limit.is_none()
        && query.offset.is_none()
        && match &query.body {
            Body::Select(_) => true,
            Body::SetOperation { inputs, .. } => inputs.iter().all(has_simple_blocks),
            Body::Values { .. } | Body::JsonTable { .. } | Body::Recursive { .. } => false,
        }
}

/// What a query costs each time it is executed.
fn cost_of(binder: &Binder<'_>, query: &Query, filled: &SlotSet) -> Option<f64> {
    let block = match &query.body {
        Body::Select(block) => block,
        Body::SetOperation { inputs, .. } => {
            let costs = inputs.iter().map(|input| cost_of(binder, input, filled));
            return costs.sum();
        }
        _ => return None,
    };
    let mut conditions = block.conditions.clone();
    let mut tree = block.from.clone();
    tree = outer::simplify(binder, tree, &mut conditions);
    let (cost, rows) = join::cost(binder, &tree, conditions, filled);
    Some(cost + rows * HASH_PUT)
}
