//! The search for a join order.
//!
//! Up to [`SEARCH_MAX`] units the cheapest order of every set of units is kept, and extended by each
//! further unit; beyond, units are added greedily, from several first ones. A unit that no condition
//! connects with those before it comes only when no other does.
//!
//! Costs are in reads of a row in key order, as those of access paths are.

use std::cell::RefCell;

use hashbrown::HashMap;
use porpoise_expr::{Comparison, Expr, ExprKind};

use crate::bind::Binder;
use crate::optimize::cost::{HASH_GET, HASH_PUT, OPEN, PASS};
use crate::optimize::join::{Condition, Unit, take_apart};
use crate::optimize::order::InterestingOrder;
use crate::optimize::{access, expr_slots};
use crate::plan::{JoinKind, RowLock};
use crate::query::{JoinTree, SourceKind};
use crate::sample::Trials;
use crate::slot_set::SlotSet;

/// Up to this many units every order is tried.
const SEARCH_MAX: usize = 10;
/// Beyond, so many units are tried as the first.
const STARTS: usize = 5;
/// How a unit is joined to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Loop,
    Hash,
    /// The hash table is kept for the query's next execution.
    KeptHash,
}

/// A unit, joined to those before it.
#[derive(Clone, Copy, Debug)]
pub struct OrderStep {
    pub number: usize,
    pub method: Method,
    /// How many rows there are then.
    pub rows: f64,
}

/// Units joined one after the other.
#[derive(Clone, Debug)]
pub struct Order {
    pub steps: Vec<OrderStep>,
    pub rows: f64,
    /// Slots that the units fill.
    available: SlotSet,
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

/// What opening a tree costs, and how many rows come, by tree and by the slots filled before that
/// conditions on it read: as far as it was worked out.
type Costs = RefCell<HashMap<(*const JoinTree, SlotSet), (f64, f64)>>;

/// The cheapest order found.
pub fn best_order(
    binder: &Binder<'_>,
    units: &[Unit<'_>],
    conditions: &[Condition],
    outer: &SlotSet,
) -> Order {
    best_order_of_some(binder, units, conditions, outer, &Costs::default())
}

fn best_order_of_some(
    binder: &Binder<'_>,
    units: &[Unit<'_>],
    conditions: &[Condition],
    outer: &SlotSet,
    costs: &Costs,
) -> Order {
    let mut local = SlotSet::default();
    units.iter().for_each(|unit| local.add(&unit.slots));
    let candidates = units
        .iter()
        .map(|unit| Candidate::new(binder, unit, conditions));
    let search = Search {
        binder,
        candidates: candidates.collect(),
        outer,
        costs,
        trials: Trials::default(),
        local,
    };
    if units.len() <= SEARCH_MAX
        && let Some(order) = search.exhaustive()
    {
        return order;
    }
    search.greedy()
}

/// A unit, with what the search asks of it.
struct Candidate<'a, 't> {
    unit: &'a Unit<'t>,
    /// The conditions that may be checked when it is joined.
    conditions: Vec<&'a Condition>,
    /// What its conditions and its inside read.
    reads: SlotSet,
    /// What its inside reads of other units and of enclosing queries.
    reads_inside: SlotSet,
    /// Its rows, apart from the conditions, are the same for all rows of the enclosing queries.
    is_independent: bool,
}

impl<'a, 't> Candidate<'a, 't> {
    fn new(
        binder: &Binder<'_>,
        unit: &'a Unit<'t>,
        conditions: &'a [Condition],
    ) -> Candidate<'a, 't> {
        let conditions: Vec<&Condition> = match unit.kind {
            JoinKind::Inner => {
                let touching = conditions.iter();
                touching
                    .filter(|c| c.slots.intersects(&unit.slots))
                    .collect()
            }
            _ => unit.on.iter().collect(),
        };
        let reads_inside = reads_inside(binder, unit);
        let mut reads = reads_inside.clone();
        conditions.iter().for_each(|c| reads.add(&c.slots));
        let mut is_independent = reads_inside.is_empty();
        unit.tree.for_each_source(&mut |source| {
            is_independent &=
                source.lock == RowLock::None && !matches!(source.kind, SourceKind::Working { .. });
        });
        Candidate {
            unit,
            conditions,
            reads,
            reads_inside,
            is_independent,
        }
    }

    /// Whether a condition connects it with what is joined already, or needs nothing of that.
    fn is_connected(&self, available: &SlotSet) -> bool {
        self.reads.intersects(available)
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

/// An order's next step, before it is taken.
struct Step {
    number: usize,
    method: Method,
    cost: f64,
    rows: f64,
}

struct Search<'a, 't> {
    binder: &'a Binder<'a>,
    candidates: Vec<Candidate<'a, 't>>,
    outer: &'a SlotSet,
    costs: &'a Costs,
    trials: Trials,
    /// The slots of all units.
    local: SlotSet,
}

impl Search<'_, '_> {
    /// Whether all units that must come before a unit are joined.
    fn is_ready(&self, unit: &Unit<'_>, available: &SlotSet) -> bool {
        let mut after = unit.after.iter();
        after.all(|slot| !self.local.contains(slot) || available.contains(slot))
    }

    /// The units that may come next: those that something connects with the order, if there are
    /// any.
    fn next_units(&self, order: &Order, is_placed: impl Fn(usize) -> bool) -> Vec<usize> {
        let numbers = 0..self.candidates.len();
        let is_ready = |number: &usize| {
            let unit = self.candidates[*number].unit;
            !is_placed(*number) && self.is_ready(unit, &order.available)
        };
        let mut ready: Vec<usize> = numbers.filter(is_ready).collect();
        let is_connected = |number: &usize| self.candidates[*number].is_connected(&order.available);
        if !order.steps.is_empty() && ready.iter().any(is_connected) {
            ready.retain(is_connected);
        }
        ready
    }

    /// Joins one more unit by the cheapest method.
    fn step(&self, order: &Order, number: usize) -> Step {
        let candidate = &self.candidates[number];
        let before = order.available.union(self.outer);
        let (open, passed) = self.open_cost(candidate, &before);
        let mut method = (Method::Loop, order.rows * (open + OPEN));
        let mut consider = |other: Method, cost: Option<f64>| {
            if let Some(cost) = cost.filter(|cost| *cost < method.1) {
                method = (other, cost);
            }
        };
        if !order.steps.is_empty() {
            let cost = self.hash_cost(order, candidate, &order.available, self.outer, 1.0);
            consider(Method::Hash, cost);
        }
        let executions = self.binder.executions;
        if executions > 1.0 && !self.outer.is_empty() && candidate.is_independent {
            let none = SlotSet::default();
            let cost = self.hash_cost(order, candidate, &before, &none, executions);
            consider(Method::KeptHash, cost);
        }
        let rows = match candidate.unit.kind {
            JoinKind::Inner => order.rows * passed,
            JoinKind::Left => order.rows * passed.max(1.0),
            JoinKind::Semi => order.rows * passed.min(1.0),
            JoinKind::Anti => order.rows * (1.0 - passed).clamp(0.1, 1.0),
        };
        Step {
            number,
            method: method.0,
            cost: order.cost + method.1 + rows * PASS,
            rows,
        }
    }

    fn extended(&self, order: &Order, step: Step) -> Order {
        let unit = self.candidates[step.number].unit;
        let mut steps = Vec::with_capacity(order.steps.len() + 1);
        steps.extend_from_slice(&order.steps);
        steps.push(OrderStep {
            number: step.number,
            method: step.method,
            rows: step.rows,
        });
        let available = match unit.kind {
            JoinKind::Inner | JoinKind::Left => order.available.union(&unit.slots),
            JoinKind::Semi | JoinKind::Anti => order.available.clone(),
        };
        Order {
            steps,
            available,
            rows: step.rows,
            cost: step.cost,
        }
    }

    /// What a hash join of a unit to an order's rows costs in each execution of the query, by
    /// equalities with the slots in `probing`, when the table is made once for so many executions
    /// with the slots in `filled` at hand. `None` without such an equality.
    fn hash_cost(
        &self,
        order: &Order,
        candidate: &Candidate<'_, '_>,
        probing: &SlotSet,
        filled: &SlotSet,
        executions: f64,
    ) -> Option<f64> {
        let slots = &candidate.unit.slots;
        let mut conditions = candidate.conditions.iter();
        if candidate.reads_inside.intersects(probing)
            || !conditions.any(|condition| condition.joins(slots, probing).is_some())
        {
            return None;
        }
        let (open, read) = self.open_cost(candidate, filled);
        let made = (open + read * HASH_PUT) / executions;
        Some(made + order.rows * HASH_GET)
    }

    /// What opening a unit and reading it to its end costs, and how many rows come, when some slots
    /// are filled before.
    fn open_cost(&self, candidate: &Candidate<'_, '_>, filled: &SlotSet) -> (f64, f64) {
        let tree = candidate.unit.tree;
        let key = (
            std::ptr::from_ref(tree),
            candidate.reads.intersection(filled),
        );
        if let Some(known) = self.costs.borrow().get(&key) {
            return *known;
        }
        let with = candidate.unit.slots.union(filled);
        let conditions = candidate.conditions.iter();
        let conditions: Vec<&Expr> = conditions
            .filter(|condition| condition.slots.is_subset(&with))
            .map(|condition| &condition.expr)
            .collect();
        let cost = match tree {
            JoinTree::One => (0.0, 1.0),
            JoinTree::Leaf(source) => match &source.kind {
                SourceKind::Table(table) => {
                    let wanted = InterestingOrder::default();
                    let (binder, trials) = (self.binder, &self.trials);
                    let path =
                        access::best(binder, source, table, &conditions, filled, &wanted, trials);
                    (path.cost, path.passed)
                }
                SourceKind::Planned { rows, .. } => {
                    let part = derived_selectivity(&conditions, *rows);
                    (*rows, (rows * part).max(0.01))
                }
                _ => {
                    let part = access::selectivity(conditions.iter().copied());
                    (200.0, (100.0 * part).max(1.0))
                }
            },
            tree => {
                let conditions = conditions.into_iter().cloned().collect();
                let (units, conditions) = take_apart(self.binder, tree, conditions, false);
                let order =
                    best_order_of_some(self.binder, &units, &conditions, filled, self.costs);
                (order.cost, order.rows)
            }
        };
        self.costs.borrow_mut().insert(key, cost);
        cost
    }

    /// Tries every order, keeping the cheapest of each set of units. `None` where no order lets
    /// every unit come after what it needs.
    fn exhaustive(&self) -> Option<Order> {
        let full = (1usize << self.candidates.len()) - 1;
        let mut best: Vec<Option<Order>> = vec![None; full + 1];
        best[0] = Some(Order::default());
        for set in 0..full {
            let Some(held) = best[set].take() else {
                continue;
            };
            for number in self.next_units(&held, |number| set >> number & 1 == 1) {
                let step = self.step(&held, number);
                let slot = &mut best[set | 1 << number];
                if slot
                    .as_ref()
                    .is_none_or(|other| step.cost < other.cost * (1.0 - 1e-9))
                {
                    *slot = Some(self.extended(&held, step));
                }
            }
        }
        best.pop().flatten()
    }

    /// The cheapest of some orders that begin with different units.
    fn greedy(&self) -> Order {
        let empty = Order::default();
        let ready = self.next_units(&empty, |_| false);
        let mut starts: Vec<Step> = ready.iter().map(|n| self.step(&empty, *n)).collect();
        starts.sort_by(|a, b| (a.cost + a.rows).total_cmp(&(b.cost + b.rows)));
        let orders = starts
            .into_iter()
            .take(STARTS)
            .map(|step| self.greedy_from(self.extended(&empty, step)));
        let cheapest = orders.min_by(|a, b| a.cost.total_cmp(&b.cost));
        cheapest.unwrap_or_else(|| self.greedy_from(empty))
    }

    /// Joins the unit next that is cheapest now, with the fewest rows.
    fn greedy_from(&self, mut order: Order) -> Order {
        while order.steps.len() < self.candidates.len() {
            let is_placed = |number| order.steps.iter().any(|step| step.number == number);
            let mut choices = self.next_units(&order, is_placed);
            if choices.is_empty() {
                let mut left = (0..self.candidates.len()).filter(|number| !is_placed(*number));
                choices.extend(left.next());
            }
            let steps = choices.into_iter().map(|number| self.step(&order, number));
            match steps.min_by(|a, b| (a.cost + a.rows).total_cmp(&(b.cost + b.rows))) {
                Some(step) => order = self.extended(&order, step),
                None => break,
            }
        }
        order
    }
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
