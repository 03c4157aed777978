//! Join order and join methods.
//!
//! A join tree is taken apart into *units*: tables that may stand anywhere in the order, and the
//! right sides of outer joins, semi-joins and anti-joins, which come after what their conditions
//! read. Units are joined one after the other, in the order that [`search`] finds, each by the
//! cheapest of
//!
//! - a nested loop, which opens the unit anew for each row, by an index where conditions give one;
//! - a hash join, which reads the unit once and looks matches up.
//!
//! A query that runs for each row of an enclosing one is planned for so many executions
//! ([`Binder::executions`]): a hash table of what doesn't depend on the enclosing row is made in
//! the first of them and kept for the others, even where it is all that the query reads.

mod constants;
mod parts;
mod search;
mod weedout;

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing::compare::key_pair;
use porpoise_expr::{Comparison, Expr, ExprKind};
use porpoise_sql::ast::HintKind;

use crate::bind::Binder;
use crate::bind::hints::Others;
use crate::optimize::block::sorted;
use crate::optimize::join::parts::Parts;
use crate::optimize::join::search::{Method, Order};
use crate::optimize::order::InterestingOrder;
use crate::optimize::{self, Joined, access, expr_slots, filtered, is_false, rows_of};
use crate::plan::slots_of;
use crate::plan::{Access, JoinKind, Node, RowLock};
use crate::query::{JoinTree, LogicalJoin, Source, SourceKind};
use crate::sample::Trials;
use crate::slot_set::SlotSet;

struct Unit<'t> {
    tree: &'t JoinTree,
    kind: JoinKind,
    /// Conditions of an outer, semi- or anti-join.
    on: Vec<Condition>,
    slots: SlotSet,
    /// Slots of other units that must come before.
    after: SlotSet,
}

#[derive(Clone)]
struct Condition {
    expr: Expr,
    /// What it reads.
    slots: SlotSet,
    /// What the sides of an equality read.
    sides: Option<[SlotSet; 2]>,
}

/// Which side of an equality is the unit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitSide {
    Left,
    Right,
}

impl Condition {
    fn new(binder: &Binder<'_>, expr: Expr) -> Condition {
        let sides = match &expr.kind {
            ExprKind::Compare {
                op: Comparison::Eq,
                left,
                right,
                ..
            } if !matches!(left.kind, ExprKind::Row(_)) => {
                Some([expr_slots(binder, left), expr_slots(binder, right)])
            }
            _ => None,
        };
        let slots = match &sides {
            Some([left, right]) => left.union(right),
            None => expr_slots(binder, &expr),
        };
        Condition { expr, slots, sides }
    }

    /// Whether it is an equality of a unit with what comes before it, and which side is the unit's.
    fn joins(&self, unit: &SlotSet, before: &SlotSet) -> Option<UnitSide> {
        let [left, right] = self.sides.as_ref()?;
        let fits = |inner: &SlotSet, outer: &SlotSet| {
            inner.intersects(unit)
                && !inner.intersects(before)
                && outer.intersects(before)
                && !outer.intersects(unit)
        };
        match (fits(right, left), fits(left, right)) {
            (true, _) => Some(UnitSide::Right),
            (_, true) => Some(UnitSide::Left),
            _ => None,
        }
    }

    /// The keys of a hash join by this equality: of those before, of the unit.
    fn hash_keys(&self, unit: &SlotSet, before: &SlotSet) -> Option<(Expr, Expr)> {
        let side = self.joins(unit, before)?;
        let ExprKind::Compare {
            domain,
            left,
            right,
            ..
        } = &self.expr.kind
        else {
            return None;
        };
        let (outer, inner) = match side {
            UnitSide::Right => (left, right),
            UnitSide::Left => (right, left),
        };
        Some(key_pair((**outer).clone(), (**inner).clone(), *domain))
    }
}

/// Plans a join tree under some conditions; `outer` slots are filled already.
pub fn plan(
    binder: &mut Binder<'_>,
    tree: &JoinTree,
    conditions: Vec<Expr>,
    outer: &SlotSet,
    wanted: &InterestingOrder,
) -> Result<Joined> {
    binder.check_interrupt()?;
    if conditions.iter().any(is_false) {
        return Ok(Joined {
            node: Node::Empty,
            in_order: true,
        });
    }
    // One table is the usual case. If it is read again and again, a hash table may be better.
    if let JoinTree::Leaf(source) = tree
        && (binder.executions <= 1.0 || outer.is_empty())
    {
        let slots = SlotSet::one(source.slot);
        let (here, before) = split(binder, conditions, &slots);
        let (node, in_order) = build_source(binder, source, here, outer, wanted);
        return Ok(Joined {
            node: guarded(before, node),
            in_order,
        });
    }
    // A row that isn't at an end of its group may be the one that joins.
    let wanted = &InterestingOrder {
        ends: None,
        ..wanted.clone()
    };
    let parts = Parts::default();
    let (conditions, before) = split_off_constants(binder, &parts, tree, conditions);
    let none = SlotSet::default();
    let (units, taken) = take_apart(binder, &parts, tree, conditions.clone(), &none);
    constants::look_up(binder, &units, &taken);
    let order = search::best_order_for_result(binder, &parts, &units, &taken, outer, wanted);
    let found = (&units[..], &order);
    let weeded = weedout::cheaper(binder, &parts, tree, found, &conditions, outer, wanted);
    let (node, in_order) = match weeded {
        Some(weeded) => weeded.build(binder, outer, wanted)?,
        None => build(binder, &units, taken, &order, outer, wanted)?,
    };
    Ok(Joined {
        node: guarded(before, node),
        in_order,
    })
}

/// How many rows a join yields.
pub fn estimate(binder: &Binder<'_>, tree: &JoinTree, conditions: &[Expr]) -> f64 {
    if matches!(tree, JoinTree::One) {
        return 1.0;
    }
    let parts = Parts::default();
    let none = SlotSet::default();
    let (units, conditions) = take_apart(binder, &parts, tree, conditions.to_vec(), &none);
    search::best_order(binder, &parts, &units, &conditions, &SlotSet::default()).rows
}

/// What a join costs each time it is executed with `outer` slots filled, in reads of a row in key
/// order, and how many rows it yields.
pub fn cost(
    binder: &Binder<'_>,
    tree: &JoinTree,
    conditions: Vec<Expr>,
    outer: &SlotSet,
) -> (f64, f64) {
    let parts = Parts::default();
    let none = SlotSet::default();
    let (units, conditions) = take_apart(binder, &parts, tree, conditions, &none);
    let order = search::best_order(binder, &parts, &units, &conditions, outer);
    (order.cost, order.rows)
}

/// The conditions that read tables of a tree, and those that don't.
fn split_off_constants(
    binder: &Binder<'_>,
    parts: &Parts,
    tree: &JoinTree,
    conditions: Vec<Expr>,
) -> (Vec<Expr>, Vec<Expr>) {
    let own = &parts.inside(binder, tree).slots;
    conditions
        .into_iter()
        .partition(|condition| expr_slots(binder, condition).intersects(own))
}

/// Conditions that read some slots, and those that don't.
fn split(binder: &Binder<'_>, conditions: Vec<Expr>, slots: &SlotSet) -> (Vec<Expr>, Vec<Expr>) {
    if conditions.iter().all(|condition| {
        condition.any(&mut |part| {
            part.as_column()
                .is_some_and(|(slot, _)| slots.contains(slot))
        })
    }) {
        return (conditions, Vec::new());
    }
    conditions.into_iter().partition(|condition| {
        expr_slots(binder, condition).intersects(slots) || condition.is_volatile()
    })
}

/// Checks conditions that read nothing of the node once, before it is opened.
fn guarded(conditions: Vec<Expr>, node: Node) -> Node {
    if conditions.is_empty() {
        return node;
    }
    let left = Box::new(filtered(Node::One, conditions));
    Node::NestedLoop {
        left,
        rows_estimate: rows_of(&node),
        right: Box::new(node),
        kind: JoinKind::Inner,
        condition: Vec::new(),
    }
}

/// A tree's units, and all conditions that may be checked anywhere. Semi-joins with tables that fill
/// `pulled` slots are taken as inner joins.
fn take_apart<'t>(
    binder: &Binder<'_>,
    parts: &Parts,
    tree: &'t JoinTree,
    conditions: Vec<Expr>,
    pulled: &SlotSet,
) -> (Vec<Unit<'t>>, Vec<Condition>) {
    let mut units = Vec::new();
    let mut all = conditions;
    flatten(binder, parts, tree, pulled, &mut units, &mut all);
    keep_orders(binder, &mut units);
    let conditions = all.into_iter().map(|expr| Condition::new(binder, expr));
    (units, conditions.collect())
}

/// Collects a tree's units, and adds the conditions of its inner joins to those of WHERE.
fn flatten<'t>(
    binder: &Binder<'_>,
    parts: &Parts,
    tree: &'t JoinTree,
    pulled: &SlotSet,
    units: &mut Vec<Unit<'t>>,
    conditions: &mut Vec<Expr>,
) {
    match tree {
        JoinTree::One => {}
        JoinTree::Leaf(source) => {
            let after = match &source.kind {
                SourceKind::Planned { free, .. } => free.clone(),
                _ => SlotSet::default(),
            };
            units.push(Unit {
                tree,
                kind: JoinKind::Inner,
                on: Vec::new(),
                slots: SlotSet::one(source.slot),
                after,
            });
        }
        JoinTree::Filtered {
            tree,
            conditions: own,
        } => {
            flatten(binder, parts, tree, pulled, units, conditions);
            conditions.extend(own.iter().cloned());
        }
        JoinTree::Join {
            left,
            right,
            kind: LogicalJoin::Inner | LogicalJoin::Straight,
            on,
        } => {
            flatten(binder, parts, left, pulled, units, conditions);
            let first_right = units.len();
            flatten(binder, parts, right, pulled, units, conditions);
            if let JoinTree::Join {
                kind: LogicalJoin::Straight,
                ..
            } = tree
            {
                let of_left = &parts.inside(binder, left).slots;
                units[first_right..]
                    .iter_mut()
                    .for_each(|unit| unit.after.add(of_left));
            }
            conditions.extend(on.iter().cloned());
        }
        JoinTree::Join {
            left,
            right,
            kind,
            on,
        } => {
            flatten(binder, parts, left, pulled, units, conditions);
            let inside = &parts.inside(binder, right).slots;
            if *kind == LogicalJoin::Semi && !inside.is_empty() && inside.is_subset(pulled) {
                flatten(binder, parts, right, pulled, units, conditions);
                conditions.extend(on.iter().cloned());
                return;
            }
            let (kind, own) = match kind {
                LogicalJoin::Semi => (
                    JoinKind::Semi,
                    split_off_left(binder, parts, left, on, conditions),
                ),
                LogicalJoin::Anti => (JoinKind::Anti, on.clone()),
                _ => (JoinKind::Left, on.clone()),
            };
            units.push(dependent_unit(binder, parts, left, right, kind, &own));
        }
    }
}

/// The conditions of a semi-join but for those that read its left side alone: a row needs them
/// whatever it is joined with, and they are checked before it is, with all others.
fn split_off_left(
    binder: &Binder<'_>,
    parts: &Parts,
    left: &JoinTree,
    on: &[Expr],
    conditions: &mut Vec<Expr>,
) -> Vec<Expr> {
    let of_left = &parts.inside(binder, left).slots;
    let (of_left, joining): (Vec<Expr>, Vec<Expr>) = on.iter().cloned().partition(|condition| {
        let slots = expr_slots(binder, condition);
        !slots.is_empty() && slots.is_subset(of_left) && !condition.is_volatile()
    });
    conditions.extend(of_left);
    joining
}

/// The right side of an outer, semi- or anti-join: a unit that comes after what its conditions
/// read.
fn dependent_unit<'t>(
    binder: &Binder<'_>,
    parts: &Parts,
    left: &JoinTree,
    right: &'t JoinTree,
    kind: JoinKind,
    on: &[Expr],
) -> Unit<'t> {
    let inside = parts.inside(binder, right);
    let on: Vec<Condition> = on
        .iter()
        .map(|expr| Condition::new(binder, expr.clone()))
        .collect();
    let mut after = inside.reads.clone();
    on.iter().for_each(|condition| after.add(&condition.slots));
    after.remove(&inside.slots);
    let of_left = &parts.inside(binder, left).slots;
    if !after.intersects(of_left) {
        after.add(of_left);
    }
    Unit {
        tree: right,
        kind,
        on,
        slots: inside.slots.clone(),
        after,
    }
}

/// Has units come in the orders that hints and STRAIGHT_JOIN ask for. An order that contradicts
/// what a unit needs, or an earlier order, is not kept.
fn keep_orders(binder: &Binder<'_>, units: &mut [Unit<'_>]) {
    let hinted = binder.hints.orders();
    for order in binder.fixed_orders.iter().cloned().chain(hinted) {
        let place = |unit: &Unit<'_>| {
            let mut tables = order.tables.iter();
            tables.position(|table| table.intersects(&unit.slots))
        };
        let places: Vec<Option<usize>> = units.iter().map(place).collect();
        if places.iter().all(Option::is_none) {
            continue;
        }
        let others = units.iter().zip(&places).filter(|(_, at)| at.is_none());
        let others = others.fold(SlotSet::default(), |all, (unit, _)| all.union(&unit.slots));
        let before = |(unit, at): (&Unit<'_>, &Option<usize>)| {
            let named = match (at, order.others) {
                (Some(at), _) => &order.tables[..*at],
                (None, Others::Behind) => &order.tables[..],
                (None, _) => &[],
            };
            let mut after = named.iter().fold(unit.after.clone(), |all, t| all.union(t));
            if at.is_some() && order.others == Others::Before {
                after.add(&others);
            }
            after.remove(&unit.slots);
            after
        };
        let after: Vec<SlotSet> = units.iter().zip(&places).map(before).collect();
        if is_possible(units, &after) {
            let units = units.iter_mut().zip(after);
            units.for_each(|(unit, after)| unit.after = after);
        } else if let Some(number) = order.number {
            binder.hints.refuse_order(number);
        }
    }
}

/// Whether units can come in an order in which each is behind those of them that it must be behind.
fn is_possible(units: &[Unit<'_>], after: &[SlotSet]) -> bool {
    let all = units
        .iter()
        .fold(SlotSet::default(), |all, unit| all.union(&unit.slots));
    let mut placed = SlotSet::default();
    let mut left: Vec<usize> = (0..units.len()).collect();
    while !left.is_empty() {
        let count = left.len();
        left.retain(|at| {
            let is_ready = after[*at].intersection(&all).is_subset(&placed);
            if is_ready {
                placed.add(&units[*at].slots);
            }
            !is_ready
        });
        if left.len() == count {
            return false;
        }
    }
    true
}

/// Makes the nodes of an order.
fn build(
    binder: &mut Binder<'_>,
    units: &[Unit<'_>],
    mut conditions: Vec<Condition>,
    order: &Order,
    outer: &SlotSet,
    wanted: &InterestingOrder,
) -> Result<(Node, bool)> {
    let mut node: Option<Node> = None;
    let mut in_order = false;
    let mut available = SlotSet::default();
    for step in &order.steps {
        let (unit, method) = (&units[step.number], step.method);
        let before = available.union(outer);
        let with = before.union(&unit.slots);
        let here: Vec<Condition> = match unit.kind {
            JoinKind::Inner => {
                let (here, later) = conditions
                    .into_iter()
                    .partition(|condition| condition.slots.is_subset(&with));
                conditions = later;
                here
            }
            _ => unit.on.clone(),
        };
        let exprs = |conditions: Vec<Condition>| {
            let exprs = conditions.into_iter().map(|condition| condition.expr);
            exprs.collect::<Vec<Expr>>()
        };
        let left = match node.take() {
            None if method == Method::KeptHash => Some(Node::One),
            node => node,
        };
        let Some(left) = left else {
            let (first, ordered) = match method {
                Method::Split(split) => {
                    (build_split(binder, unit, split, exprs(here), 1.0)?, false)
                }
                _ => {
                    let unordered = InterestingOrder::default();
                    let wanted = match &order.first_wanted {
                        Some(wanted) => wanted,
                        None if wanted.sort.is_empty() => wanted,
                        None => &unordered,
                    };
                    build_tree(binder, unit.tree, exprs(here), outer, wanted)?
                }
            };
            let is_sorted = order.first_wanted.is_some() && !ordered;
            in_order = ordered || is_sorted;
            node = Some(match is_sorted {
                true => {
                    let keeps_all = conditions.is_empty() && follow_outer_joins(units, order);
                    sorted_first(binder, first, wanted, order, keeps_all)
                }
                false => first,
            });
            available.add(&unit.slots);
            continue;
        };
        let joined = match method {
            Method::Loop | Method::Split(_) => {
                let right = match method {
                    Method::Split(split) => {
                        let executions = rows_of(&left);
                        build_split(binder, unit, split, exprs(here), executions)?
                    }
                    _ => {
                        let wanted = InterestingOrder::default();
                        build_tree(binder, unit.tree, exprs(here), &before, &wanted)?.0
                    }
                };
                let is_free = !in_order && wanted.rows.is_none();
                let left = match is_free && may_batch(binder, unit) {
                    true => batched(left, &right, &available, binder),
                    false => left,
                };
                Node::NestedLoop {
                    left: Box::new(left),
                    right: Box::new(right),
                    kind: unit.kind,
                    condition: Vec::new(),
                    rows_estimate: step.rows,
                }
            }
            Method::Hash => {
                let table = Hashed {
                    probing: &available,
                    filled: outer,
                    kept: None,
                };
                hash_join(binder, unit, left, here, table, step.rows)?
            }
            Method::KeptHash => {
                binder.materializations += 1;
                let table = Hashed {
                    probing: &before,
                    filled: &SlotSet::default(),
                    kept: Some(binder.materializations - 1),
                };
                hash_join(binder, unit, left, here, table, step.rows)?
            }
        };
        if matches!(unit.kind, JoinKind::Inner | JoinKind::Left) {
            available.add(&unit.slots);
        }
        // Conditions of WHERE on the outer join's right side stand above it.
        let now = available.union(outer);
        let (ready, later): (Vec<Condition>, Vec<Condition>) = conditions
            .into_iter()
            .partition(|condition| condition.slots.is_subset(&now));
        conditions = later;
        node = Some(filtered(
            joined,
            ready.into_iter().map(|condition| condition.expr).collect(),
        ));
    }
    let node = node.unwrap_or(Node::One);
    // Nothing is left unless an order was not complete.
    let left = conditions.into_iter().map(|condition| condition.expr);
    Ok((filtered(node, left.collect()), in_order))
}

/// Whether nothing but outer joins comes after an order's first unit.
fn follow_outer_joins(units: &[Unit<'_>], order: &Order) -> bool {
    let mut others = order.steps.iter().skip(1).map(|step| &units[step.number]);
    others.all(|unit| unit.kind == JoinKind::Left)
}

/// Sorts the first unit's rows. No more of them are kept than LIMIT wants, where each makes at least
/// one of the result (`keeps_all`); else some more than it is expected to take, if the others can be
/// read again.
fn sorted_first(
    binder: &Binder<'_>,
    node: Node,
    wanted: &InterestingOrder,
    order: &Order,
    keeps_all: bool,
) -> Node {
    let first = order.first_wanted.as_ref();
    let for_each = match (first.and_then(|first| first.rows), wanted.rows) {
        (Some(of_first), Some(of_result)) => of_first / of_result.max(1.0),
        _ => 1.0,
    };
    let keeps_some = keeps_all || is_repeatable(&node);
    let top = wanted.top.as_ref().filter(|_| keeps_some);
    let limit = top.map(|top| &top.0);
    let offset = top.and_then(|top| top.1.as_ref());
    let mut sorted = sorted(binder, node, wanted.sort.clone(), limit, offset);
    if let Node::Sort {
        limit: Some(_),
        refill,
        ..
    } = &mut sorted
        && !keeps_all
    {
        *refill = Some(for_each);
    }
    sorted
}

/// Whether a node's rows are the same, in the same order, when it is opened again, and are not made
/// by joining others, which would take too long.
fn is_repeatable(node: &Node) -> bool {
    let is_plain = |expr: &&Expr| !expr.is_volatile() && !expr.has_subquery();
    node.exprs().iter().all(is_plain)
        && match node {
            Node::Scan(scan) => scan.lock == RowLock::None,
            Node::Filter { input, .. } => is_repeatable(input),
            Node::Derived { materialize, .. } => materialize.is_some(),
            _ => false,
        }
}

/// A hash table, as a join uses it.
struct Hashed<'a> {
    /// What is looked up in it reads these slots.
    probing: &'a SlotSet,
    /// These are filled before it is made.
    filled: &'a SlotSet,
    /// The number under which it is kept for the statement.
    kept: Option<usize>,
}

/// Joins a unit to the rows of `left` by the equalities with slots that are probed with. Conditions
/// that read the unit alone, and slots that are filled before the table is made, are checked below
/// the join, which yields about so many rows.
fn hash_join(
    binder: &mut Binder<'_>,
    unit: &Unit<'_>,
    left: Node,
    conditions: Vec<Condition>,
    table: Hashed<'_>,
    rows_estimate: f64,
) -> Result<Node> {
    let Hashed {
        probing,
        filled,
        kept,
    } = table;
    let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
    let (mut own, mut condition) = (Vec::new(), Vec::new());
    let alone = unit.slots.union(filled);
    for candidate in conditions {
        if let Some((a, b)) = candidate.hash_keys(&unit.slots, probing) {
            left_keys.push(a);
            right_keys.push(b);
        } else if candidate.slots.is_subset(&alone) {
            own.push(candidate.expr);
        } else {
            condition.push(candidate.expr);
        }
    }
    let of_conditions = condition.iter_mut();
    of_conditions.for_each(Expr::compute_constants_once);
    let (right, _) = build_tree(binder, unit.tree, own, filled, &InterestingOrder::default())?;
    let right_slots = slots_of(&right);
    Ok(Node::HashJoin {
        left: Box::new(left),
        right: Box::new(right),
        kind: unit.kind,
        left_keys,
        right_keys,
        condition,
        right_slots,
        kept,
        rows_estimate,
    })
}

/// A tree's node under conditions that all can be checked inside it.
fn build_tree(
    binder: &mut Binder<'_>,
    tree: &JoinTree,
    conditions: Vec<Expr>,
    before: &SlotSet,
    wanted: &InterestingOrder,
) -> Result<(Node, bool)> {
    match tree {
        JoinTree::Leaf(source) => Ok(build_source(binder, source, conditions, before, wanted)),
        tree => {
            let joined = plan(binder, tree, conditions, before, wanted)?;
            Ok((joined.node, joined.in_order))
        }
    }
}

/// Whether hints and `optimizer_switch` let a unit be looked up for batches of rows.
fn may_batch(binder: &Binder<'_>, unit: &Unit<'_>) -> bool {
    let JoinTree::Leaf(source) = unit.tree else {
        return false;
    };
    let switches = binder.switches();
    let is_on = switches.batched_key_access() && switches.mrr();
    source.lock == RowLock::None && source.hints.is_on(HintKind::BatchedKeyAccess, None, is_on)
}

/// The rows of `left` in batches, each in the order in which the right side looks them up in an
/// index. All rows in their own order, if it doesn't.
fn batched(left: Node, right: &Node, available: &SlotSet, binder: &Binder<'_>) -> Node {
    let Node::Scan(scan) = right else {
        return left;
    };
    let values: Vec<&Expr> = match &scan.access {
        Access::Point { key, .. } => key.iter().collect(),
        Access::Index { ranges, .. } => match &ranges[..] {
            [range] => range.equal.iter().map(|part| &part.value).collect(),
            _ => Vec::new(),
        },
        Access::Full | Access::Merge { .. } | Access::Skip(_) => Vec::new(),
    };
    let of_left = |value: &&&Expr| expr_slots(binder, value).intersects(available);
    let key = |value: &Expr| SortKey {
        expr: value.clone(),
        descending: false,
    };
    let keys: Vec<SortKey> = values
        .iter()
        .filter(of_left)
        .map(|value| key(value))
        .collect();
    if keys.is_empty() {
        return left;
    }
    let slots = slots_of(&left);
    Node::Batch {
        input: Box::new(left),
        keys,
        slots,
    }
}

/// A derived table's node that computes what some rows of other tables need of it.
fn build_split(
    binder: &mut Binder<'_>,
    unit: &Unit<'_>,
    split: usize,
    conditions: Vec<Expr>,
    executions: f64,
) -> Result<Node> {
    let JoinTree::Leaf(source) = unit.tree else {
        return Ok(Node::Empty);
    };
    let SourceKind::Planned { splits, .. } = &source.kind else {
        return Ok(Node::Empty);
    };
    let query = splits[split].query.clone();
    let executions = binder.executions * executions;
    let (input, output) =
        optimize::for_executions(binder, executions, |binder| optimize::query(binder, query))?;
    let node = Node::Derived {
        slot: source.slot,
        input: Box::new(input),
        output,
        materialize: None,
        correlated: true,
    };
    Ok(filtered(node, conditions))
}

/// A relation's node, and whether its rows come in the wanted order.
fn build_source(
    binder: &mut Binder<'_>,
    source: &Source,
    mut conditions: Vec<Expr>,
    before: &SlotSet,
    wanted: &InterestingOrder,
) -> (Node, bool) {
    if conditions.iter().any(is_false) {
        return (Node::Empty, true);
    }
    // Conditions with subqueries are expensive: they are checked last.
    conditions.sort_by_key(Expr::has_subquery);
    let node = match &source.kind {
        SourceKind::Table(table) => {
            let references: Vec<&Expr> = conditions.iter().collect();
            let own = wanted.keys.iter().all(|key| key.0 == source.slot);
            let wanted = if own {
                wanted
            } else {
                &InterestingOrder::default()
            };
            let path = access::best(
                binder,
                source,
                table,
                &references,
                before,
                wanted,
                &Trials::default(),
            );
            let in_order = path.in_order && !wanted.keys.is_empty();
            let mut number = 0;
            let exact = path.exact.clone();
            conditions.retain(|_| {
                number += 1;
                !exact.contains(&(number - 1))
            });
            return (
                access::scan(binder, source, table, path, conditions),
                in_order,
            );
        }
        SourceKind::Virtual(table) => {
            return (
                Node::Virtual {
                    slot: source.slot,
                    table,
                    filter: conditions,
                },
                false,
            );
        }
        SourceKind::Planned {
            plan,
            materialize,
            free,
            ..
        } => {
            // What it reads may lie beside it (LATERAL), or around the whole query.
            let correlated = !free.is_empty();
            let input = Box::new(Arc::unwrap_or_clone(plan.node.clone()));
            Node::Derived {
                slot: source.slot,
                input,
                output: plan.output.clone(),
                materialize: (!correlated).then_some(*materialize),
                correlated,
            }
        }
        SourceKind::Working { working } => Node::Working {
            slot: source.slot,
            working: *working,
        },
        SourceKind::Derived { .. } | SourceKind::Common { .. } => Node::Empty,
    };
    (filtered(node, conditions), false)
}
