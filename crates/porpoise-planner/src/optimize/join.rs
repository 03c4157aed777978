//! Join order and join methods.
//!
//! A join tree is taken apart into *units*: tables that may stand anywhere in the order, and the
//! right sides of outer joins, semi-joins and anti-joins, which come after what their conditions
//! read. The order is searched over sets of units (all orders up to [`SEARCH_MAX`] units, greedily
//! beyond), each unit joined to those before it by the cheaper of
//!
//! - a nested loop, which opens the unit anew for each row, by an index where conditions give one;
//! - a hash join, which reads the unit once and looks matches up.
//!
//! A query that runs for each row of an enclosing one is planned for so many executions
//! ([`Binder::executions`]): a hash table of what doesn't depend on the enclosing row is made in
//! the first of them and kept for the others, even where it is all that the query reads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use porpoise_expr::typing::compare::key_pair;
use porpoise_expr::{Comparison, Expr, ExprKind};

use crate::bind::Binder;
use crate::optimize::order::InterestingOrder;
use crate::optimize::{Joined, access, expr_slots, filtered, is_false, outer};
use crate::plan::slots_of;
use crate::plan::{JoinKind, Node, RowLock};
use crate::query::{JoinTree, LogicalJoin, Source, SourceKind};
use crate::slot_set::SlotSet;

/// Up to this many units every order is tried.
const SEARCH_MAX: usize = 7;
/// Putting a row into a hash table, and looking one up.
const HASH_PUT: f64 = 2.0;
const HASH_GET: f64 = 1.5;
/// Opening an operator again.
const OPEN: f64 = 1.0;

struct Unit<'t> {
    tree: &'t JoinTree,
    kind: JoinKind,
    /// Conditions of an outer, semi- or anti-join.
    on: Vec<Expr>,
    slots: SlotSet,
    /// Slots of other units that must come before.
    after: SlotSet,
}

struct Condition {
    expr: Expr,
    slots: SlotSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Loop,
    Hash,
    /// The hash table is kept for the query's next execution.
    KeptHash,
}

/// What joining the trees inside a join costs, as far as it was worked out: cost and rows by tree
/// and by the slots filled before that the tree's conditions read.
type InnerCosts = RefCell<HashMap<(*const JoinTree, SlotSet), (f64, f64)>>;

/// Units joined one after the other.
#[derive(Clone, Debug)]
struct Order {
    steps: Vec<(usize, Method)>,
    available: SlotSet,
    rows: f64,
    cost: f64,
}

impl Default for Order {
    /// No unit: one empty row.
    fn default() -> Order {
        Order {
            steps: Vec::new(),
            available: SlotSet::default(),
            rows: 1.0,
            cost: 0.0,
        }
    }
}

/// Plans a join tree under some conditions; `outer` slots are filled already.
pub fn plan(
    binder: &mut Binder<'_>,
    tree: &JoinTree,
    conditions: Vec<Expr>,
    outer: &SlotSet,
    straight: bool,
    wanted: &InterestingOrder,
) -> Joined {
    if conditions.iter().any(is_false) {
        return Joined {
            node: Node::Empty,
            in_order: true,
        };
    }
    // One table is the usual case. If it is read again and again, a hash table may be better.
    if let JoinTree::Leaf(source) = tree
        && (binder.executions <= 1.0 || outer.is_empty())
    {
        let slots = SlotSet::one(source.slot);
        let (here, before) = split(binder, conditions, &slots);
        let (node, in_order) = build_source(binder, source, here, outer, wanted);
        return Joined {
            node: guarded(before, node),
            in_order,
        };
    }
    let (units, conditions) = take_apart(binder, tree, conditions, straight);
    let all: SlotSet = units
        .iter()
        .fold(SlotSet::default(), |all, unit| all.union(&unit.slots));
    let (conditions, before): (Vec<Condition>, Vec<Condition>) = conditions
        .into_iter()
        .partition(|condition| condition.slots.intersects(&all));
    let order = search(binder, &units, &conditions, outer, &InnerCosts::default());
    let (node, in_order) = build(binder, &units, conditions, &order, outer, wanted);
    let before = before.into_iter().map(|condition| condition.expr).collect();
    Joined {
        node: guarded(before, node),
        in_order,
    }
}

/// How many rows a join yields.
pub fn estimate(binder: &Binder<'_>, tree: &JoinTree, conditions: &[Expr]) -> f64 {
    if matches!(tree, JoinTree::One) {
        return 1.0;
    }
    let (units, conditions) = take_apart(binder, tree, conditions.to_vec(), false);
    let costs = InnerCosts::default();
    search(binder, &units, &conditions, &SlotSet::default(), &costs).rows
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
        right: Box::new(node),
        kind: JoinKind::Inner,
        condition: Vec::new(),
    }
}

/// A tree's units, and all conditions that may be checked anywhere.
fn take_apart<'t>(
    binder: &Binder<'_>,
    tree: &'t JoinTree,
    conditions: Vec<Expr>,
    straight: bool,
) -> (Vec<Unit<'t>>, Vec<Condition>) {
    let mut units = Vec::new();
    let mut all = conditions;
    flatten(binder, tree, &mut units, &mut all, straight);
    let conditions = all.into_iter().map(|expr| {
        let slots = expr_slots(binder, &expr);
        Condition { expr, slots }
    });
    (units, conditions.collect())
}

/// Collects a tree's units, and adds the conditions of its inner joins to those of WHERE.
fn flatten<'t>(
    binder: &Binder<'_>,
    tree: &'t JoinTree,
    units: &mut Vec<Unit<'t>>,
    conditions: &mut Vec<Expr>,
    straight: bool,
) {
    match tree {
        JoinTree::One => {}
        JoinTree::Leaf(source) => {
            let mut after = match &source.kind {
                SourceKind::Planned { free, .. } => free.clone(),
                _ => SlotSet::default(),
            };
            if straight {
                units.iter().for_each(|unit| after.add(&unit.slots));
            }
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
            flatten(binder, tree, units, conditions, straight);
            conditions.extend(own.iter().cloned());
        }
        JoinTree::Join {
            left,
            right,
            kind: LogicalJoin::Inner | LogicalJoin::Straight,
            on,
        } => {
            flatten(binder, left, units, conditions, straight);
            let first_right = units.len();
            flatten(binder, right, units, conditions, straight);
            if let JoinTree::Join {
                kind: LogicalJoin::Straight,
                ..
            } = tree
            {
                let of_left = outer::source_slots(left);
                units[first_right..]
                    .iter_mut()
                    .for_each(|unit| unit.after.add(&of_left));
            }
            conditions.extend(on.iter().cloned());
        }
        JoinTree::Join {
            left,
            right,
            kind,
            on,
        } => {
            flatten(binder, left, units, conditions, straight);
            let kind = match kind {
                LogicalJoin::Semi => JoinKind::Semi,
                LogicalJoin::Anti => JoinKind::Anti,
                _ => JoinKind::Left,
            };
            units.push(dependent_unit(binder, left, right, kind, on, straight));
        }
    }
}

/// The right side of an outer, semi- or anti-join: a unit that comes after what its conditions
/// read.
fn dependent_unit<'t>(
    binder: &Binder<'_>,
    left: &JoinTree,
    right: &'t JoinTree,
    kind: JoinKind,
    on: &[Expr],
    straight: bool,
) -> Unit<'t> {
    let slots = outer::source_slots(right);
    let mut after = SlotSet::default();
    on.iter()
        .for_each(|condition| after.add(&expr_slots(binder, condition)));
    right.for_each_expr(&mut |expr| after.add(&expr_slots(binder, expr)));
    right.for_each_source(&mut |source| {
        if let SourceKind::Planned { free, .. } = &source.kind {
            after.add(free);
        }
    });
    after.remove(&slots);
    let of_left = outer::source_slots(left);
    if !after.intersects(&of_left) || straight {
        after.add(&of_left);
    }
    Unit {
        tree: right,
        kind,
        on: on.to_vec(),
        slots,
        after,
    }
}

/// Finds the cheapest order.
fn search(
    binder: &Binder<'_>,
    units: &[Unit<'_>],
    conditions: &[Condition],
    outer: &SlotSet,
    costs: &InnerCosts,
) -> Order {
    let search = Search {
        binder,
        units,
        conditions,
        outer,
        costs,
        local: units
            .iter()
            .fold(SlotSet::default(), |all, unit| all.union(&unit.slots)),
    };
    if units.len() <= SEARCH_MAX
        && let Some(order) = search.exhaustive()
    {
        return order;
    }
    search.greedy()
}

struct Search<'a, 't> {
    binder: &'a Binder<'a>,
    units: &'a [Unit<'t>],
    conditions: &'a [Condition],
    outer: &'a SlotSet,
    costs: &'a InnerCosts,
    /// The slots of all units.
    local: SlotSet,
}

impl Search<'_, '_> {
    /// Whether all units that must come before a unit are joined.
    fn is_ready(&self, unit: &Unit<'_>, available: &SlotSet) -> bool {
        let mut after = unit.after.iter();
        after.all(|slot| !self.local.contains(slot) || available.contains(slot))
    }

    /// The order with one more unit, joined by the cheapest method.
    fn extended(&self, order: &Order, number: usize) -> Order {
        let (binder, unit) = (self.binder, &self.units[number]);
        let before = order.available.union(self.outer);
        let here = self.conditions_at(unit, &before);
        let (open, passed) = open_cost(binder, unit.tree, &here, &before, self.costs);
        let mut steps = vec![(Method::Loop, order.rows * (open + OPEN))];
        if !order.steps.is_empty() {
            let cost = self.hash_cost(order, unit, &here, &order.available);
            steps.extend(cost.map(|cost| (Method::Hash, cost)));
        }
        if binder.executions > 1.0 && !self.outer.is_empty() && is_independent(binder, unit) {
            let cost = self.hash_cost(order, unit, &here, &before);
            steps.extend(cost.map(|cost| (Method::KeptHash, cost)));
        }
        let cheapest = steps.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let (method, cost) = cheapest.unwrap_or((Method::Loop, f64::INFINITY));
        let rows = match unit.kind {
            JoinKind::Inner => order.rows * passed,
            JoinKind::Left => order.rows * passed.max(1.0),
            JoinKind::Semi => order.rows * passed.min(1.0),
            JoinKind::Anti => order.rows * (1.0 - passed).clamp(0.1, 1.0),
        };
        let mut steps = order.steps.clone();
        steps.push((number, method));
        let available = match unit.kind {
            JoinKind::Inner | JoinKind::Left => order.available.union(&unit.slots),
            JoinKind::Semi | JoinKind::Anti => order.available.clone(),
        };
        // Each row is passed on and looked at once more.
        Order {
            steps,
            available,
            rows,
            cost: order.cost + cost + rows * 0.2,
        }
    }

    /// The conditions that can be checked when a unit is joined to what comes before it.
    fn conditions_at<'s>(&'s self, unit: &'s Unit<'_>, before: &SlotSet) -> Vec<&'s Expr> {
        if unit.kind != JoinKind::Inner {
            return unit.on.iter().collect();
        }
        let with = before.union(&unit.slots);
        let here = self.conditions.iter().filter(|condition| {
            condition.slots.intersects(&unit.slots) && condition.slots.is_subset(&with)
        });
        here.map(|condition| &condition.expr).collect()
    }

    /// What a hash join of a unit to an order's rows costs, by equalities with the slots in
    /// `probing`: the order's own, or also those of enclosing queries if the table is kept. `None`
    /// without such an equality.
    fn hash_cost(
        &self,
        order: &Order,
        unit: &Unit<'_>,
        here: &[&Expr],
        probing: &SlotSet,
    ) -> Option<f64> {
        let binder = self.binder;
        let is_key =
            |condition: &&Expr| hash_keys(binder, condition, &unit.slots, probing).is_some();
        if !here.iter().any(is_key) || reads_inside(binder, unit).intersects(probing) {
            return None;
        }
        // The table is made of rows that pass what can be checked without a row to probe with.
        let mut filled = self.outer.clone();
        filled.remove(probing);
        let alone = unit.slots.union(&filled);
        let own = here.iter().copied();
        let own: Vec<&Expr> = own
            .filter(|condition| expr_slots(binder, condition).is_subset(&alone))
            .collect();
        let (open, read) = open_cost(binder, unit.tree, &own, &filled, self.costs);
        let built = open + read * HASH_PUT;
        let builds = match probing.intersects(self.outer) {
            true => 1.0 / binder.executions,
            false => 1.0,
        };
        Some(built * builds + order.rows * HASH_GET)
    }

    /// Tries every order, keeping the cheapest of each set of units. `None` where no order lets
    /// every unit come after what it needs.
    fn exhaustive(&self) -> Option<Order> {
        let full = (1usize << self.units.len()) - 1;
        let mut best: Vec<Option<Order>> = vec![None; full + 1];
        best[0] = Some(Order::default());
        for set in 0..full {
            let Some(held) = best[set].take() else {
                continue;
            };
            for (number, unit) in self.units.iter().enumerate() {
                if set >> number & 1 == 1 || !self.is_ready(unit, &held.available) {
                    continue;
                }
                let next = self.extended(&held, number);
                let slot = &mut best[set | 1 << number];
                if slot
                    .as_ref()
                    .is_none_or(|other| next.cost < other.cost * (1.0 - 1e-9))
                {
                    *slot = Some(next);
                }
            }
        }
        best.pop().flatten()
    }

    /// Joins the unit next that is cheapest now, with the fewest rows.
    fn greedy(&self) -> Order {
        let mut order = Order::default();
        while order.steps.len() < self.units.len() {
            let placed = |number: usize| order.steps.iter().any(|step| step.0 == number);
            let candidates = (0..self.units.len()).filter(|number| !placed(*number));
            let ready: Vec<usize> = candidates
                .clone()
                .filter(|number| self.is_ready(&self.units[*number], &order.available))
                .collect();
            let choices = if ready.is_empty() {
                candidates.take(1).collect()
            } else {
                ready
            };
            let next = choices
                .into_iter()
                .map(|number| self.extended(&order, number));
            match next.min_by(|a, b| (a.cost + a.rows).total_cmp(&(b.cost + b.rows))) {
                Some(next) => order = next,
                None => break,
            }
        }
        order
    }
}

/// The slots of other units, and of enclosing queries, that a unit reads inside: a LATERAL table
/// or the conditions of joins in a subtree. Those of the join to the unit itself don't count.
fn reads_inside(binder: &Binder<'_>, unit: &Unit<'_>) -> SlotSet {
    let mut reads = SlotSet::default();
    unit.tree
        .for_each_expr(&mut |expr| reads.add(&expr_slots(binder, expr)));
    unit.tree.for_each_source(&mut |source| {
        if let SourceKind::Planned { free, .. } = &source.kind {
            reads.add(free);
        }
    });
    reads.remove(&unit.slots);
    reads
}

/// Whether a unit's rows, apart from its conditions, are the same for all rows of the enclosing
/// queries.
fn is_independent(binder: &Binder<'_>, unit: &Unit<'_>) -> bool {
    let mut is_stable = true;
    unit.tree.for_each_source(&mut |source| {
        is_stable &=
            source.lock == RowLock::None && !matches!(source.kind, SourceKind::Working { .. });
    });
    is_stable && reads_inside(binder, unit).is_empty()
}

/// What opening a tree and reading it to its end costs, and how many rows come.
fn open_cost(
    binder: &Binder<'_>,
    tree: &JoinTree,
    conditions: &[&Expr],
    before: &SlotSet,
    costs: &InnerCosts,
) -> (f64, f64) {
    match tree {
        JoinTree::One => (0.0, 1.0),
        JoinTree::Leaf(source) => match &source.kind {
            SourceKind::Table(table) => {
                let path = access::best(
                    binder,
                    source,
                    table,
                    conditions,
                    before,
                    &InterestingOrder::default(),
                );
                (
                    path.cost,
                    join_rows(&path, conditions, binder.row_count(table)),
                )
            }
            SourceKind::Planned { rows, .. } => (
                *rows,
                (rows * derived_selectivity(conditions, *rows)).max(0.01),
            ),
            _ => (
                200.0,
                (100.0 * access::selectivity(conditions.iter().copied())).max(1.0),
            ),
        },
        tree => {
            let mut reads = SlotSet::default();
            let mut add = |expr: &Expr| reads.add(&expr_slots(binder, expr));
            conditions.iter().copied().for_each(&mut add);
            tree.for_each_expr(&mut add);
            let key = (std::ptr::from_ref(tree), reads.intersection(before));
            if let Some(known) = costs.borrow().get(&key) {
                return *known;
            }
            let conditions = conditions.iter().copied().cloned().collect();
            let (units, conditions) = take_apart(binder, tree, conditions, false);
            let order = search(binder, &units, &conditions, before, costs);
            costs.borrow_mut().insert(key, (order.cost, order.rows));
            (order.cost, order.rows)
        }
    }
}

/// Equality with another table's column matches about one row of the smaller side, not a tenth of
/// all.
fn join_rows(path: &access::Path, conditions: &[&Expr], rows: f64) -> f64 {
    let joins = conditions
        .iter()
        .enumerate()
        .filter(|(number, condition)| !path.exact.contains(number) && is_column_equality(condition))
        .count();
    let factor = (30.0 / rows.max(30.0)).powi(joins.min(2) as i32);
    (path.passed * factor).max(path.passed.min(0.01))
}

fn derived_selectivity(conditions: &[&Expr], rows: f64) -> f64 {
    conditions
        .iter()
        .map(|condition| {
            if is_column_equality(condition) {
                1.0 / rows.max(1.0)
            } else {
                access::selectivity(std::iter::once(*condition))
            }
        })
        .product()
}

fn is_column_equality(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Compare {
            op: Comparison::Eq,
            left,
            right,
            ..
        } => !left.is_constant() && !right.is_constant(),
        _ => false,
    }
}

/// An equality between a unit and what comes before it, as keys of both sides: of those before, of
/// the unit.
fn hash_keys(
    binder: &Binder<'_>,
    condition: &Expr,
    unit: &SlotSet,
    before: &SlotSet,
) -> Option<(Expr, Expr)> {
    let ExprKind::Compare {
        op: Comparison::Eq,
        domain,
        left,
        right,
    } = &condition.kind
    else {
        return None;
    };
    if matches!(left.kind, ExprKind::Row(_)) {
        return None;
    }
    let (a, b) = (expr_slots(binder, left), expr_slots(binder, right));
    let fits = |inner: &SlotSet, outer: &SlotSet| {
        inner.intersects(unit)
            && !inner.intersects(before)
            && outer.intersects(before)
            && !outer.intersects(unit)
    };
    if fits(&b, &a) {
        return Some(key_pair((**left).clone(), (**right).clone(), *domain));
    }
    if fits(&a, &b) {
        let (outer, inner) = key_pair((**right).clone(), (**left).clone(), *domain);
        return Some((outer, inner));
    }
    None
}

/// Makes the nodes of an order.
fn build(
    binder: &mut Binder<'_>,
    units: &[Unit<'_>],
    mut conditions: Vec<Condition>,
    order: &Order,
    outer: &SlotSet,
    wanted: &InterestingOrder,
) -> (Node, bool) {
    let mut node: Option<Node> = None;
    let mut in_order = false;
    let mut available = SlotSet::default();
    for &(number, method) in &order.steps {
        let unit = &units[number];
        let before = available.union(outer);
        let with = before.union(&unit.slots);
        let here: Vec<Expr> = match unit.kind {
            JoinKind::Inner => {
                let (here, later) = conditions
                    .into_iter()
                    .partition(|condition| condition.slots.is_subset(&with));
                conditions = later;
                here.into_iter()
                    .map(|condition: Condition| condition.expr)
                    .collect()
            }
            _ => unit.on.clone(),
        };
        let left = match node.take() {
            None if method == Method::KeptHash => Some(Node::One),
            node => node,
        };
        let Some(left) = left else {
            let (first, ordered) = build_tree(binder, unit.tree, here, outer, wanted);
            in_order = ordered;
            node = Some(first);
            available.add(&unit.slots);
            continue;
        };
        let joined = match method {
            Method::Loop => {
                let (right, _) = build_tree(
                    binder,
                    unit.tree,
                    here,
                    &before,
                    &InterestingOrder::default(),
                );
                Node::NestedLoop {
                    left: Box::new(left),
                    right: Box::new(right),
                    kind: unit.kind,
                    condition: Vec::new(),
                }
            }
            Method::Hash => {
                let (probing, filled) = (available.clone(), outer.clone());
                hash_join(binder, unit, left, here, &probing, &filled, None)
            }
            Method::KeptHash => {
                binder.materializations += 1;
                let kept = Some(binder.materializations - 1);
                hash_join(binder, unit, left, here, &before, &SlotSet::default(), kept)
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
    (
        filtered(
            node,
            conditions
                .into_iter()
                .map(|condition| condition.expr)
                .collect(),
        ),
        in_order,
    )
}

/// Joins a unit to the rows of `left` by the equalities with slots in `probing`. Conditions that
/// read the unit alone, and slots that are `filled` before the table is made, are checked below the
/// join.
fn hash_join(
    binder: &mut Binder<'_>,
    unit: &Unit<'_>,
    left: Node,
    conditions: Vec<Expr>,
    probing: &SlotSet,
    filled: &SlotSet,
    kept: Option<usize>,
) -> Node {
    let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
    let (mut own, mut condition) = (Vec::new(), Vec::new());
    let alone = unit.slots.union(filled);
    for expr in conditions {
        if let Some((a, b)) = hash_keys(binder, &expr, &unit.slots, probing) {
            left_keys.push(a);
            right_keys.push(b);
        } else if expr_slots(binder, &expr).is_subset(&alone) {
            own.push(expr);
        } else {
            condition.push(expr);
        }
    }
    let (right, _) = build_tree(binder, unit.tree, own, filled, &InterestingOrder::default());
    let right_slots = slots_of(&right);
    Node::HashJoin {
        left: Box::new(left),
        right: Box::new(right),
        kind: unit.kind,
        left_keys,
        right_keys,
        condition,
        right_slots,
        kept,
    }
}

/// A tree's node under conditions that all can be checked inside it.
fn build_tree(
    binder: &mut Binder<'_>,
    tree: &JoinTree,
    conditions: Vec<Expr>,
    before: &SlotSet,
    wanted: &InterestingOrder,
) -> (Node, bool) {
    match tree {
        JoinTree::Leaf(source) => build_source(binder, source, conditions, before, wanted),
        tree => {
            let joined = plan(binder, tree, conditions, before, false, wanted);
            (joined.node, joined.in_order)
        }
    }
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
            let path = access::best(binder, source, table, &references, before, wanted);
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
