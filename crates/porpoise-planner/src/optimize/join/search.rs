//! The search for a join order.
//!
//! Up to [`SEARCH_MAX`] units, and no more than `optimizer_search_depth`, the cheapest order of every set of units is kept, and extended by each
//! further unit; beyond, units are added greedily, from several first ones. A unit that no condition
//! connects with those before it comes only when no other does.
//!
//! Costs are in reads of a row in key order, as those of access paths are.

use porpoise_expr::{Comparison, Expr, ExprKind};

use crate::bind::Binder;
use crate::json_text::Item;
use crate::optimize::cost::{FETCH, HASH_GET, HASH_PUT, OPEN, PASS, SEEK};
use crate::optimize::join::parts::Parts;
use crate::optimize::join::{Condition, Unit, take_apart};
use crate::optimize::order::InterestingOrder;
use crate::optimize::split::Split;
use crate::optimize::{access, expr_slots};
use crate::plan::JoinKind;
use crate::query::{JoinTree, SourceKind};
use crate::sample::Trials;
use crate::slot_set::SlotSet;
use crate::trace;

/// Up to this many units every order is tried.
const SEARCH_MAX: usize = 10;
/// Beyond, so many units are tried as the first.
const STARTS: usize = 5;
/// How a unit is joined to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Loop,
    /// The same, with the split of this number of a derived table.
    Split(usize),
    Hash,
    /// The hash table is kept for the query's next execution.
    KeptHash,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Loop => "nested loop",
            Method::Split(_) => "nested loop, the derived table computed for each row",
            Method::Hash => "hash join",
            Method::KeptHash => "hash join, kept for all executions",
        }
    }
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
    /// The units' slots, those of semi-joins included, whose rows nobody sees.
    placed: SlotSet,
    pub cost: f64,
    /// What of the cost comes before the first row.
    startup: f64,
    /// The first unit's rows are read in this order, or sorted where no index gives it.
    pub first_wanted: Option<InterestingOrder>,
}

impl Order {
    /// What it costs to have a part of its rows, 0 to 1.
    fn cost_of_part(&self, part: f64) -> f64 {
        self.startup + (self.cost - self.startup) * part
    }
}

impl Default for Order {
    /// No unit: one empty row.
    fn default() -> Order {
        Order {
            steps: Vec::new(),
            available: SlotSet::default(),
            placed: SlotSet::default(),
            rows: 1.0,
            cost: 0.0,
            startup: 0.0,
            first_wanted: None,
        }
    }
}

/// The cheapest order found for a result that is sorted, and of which LIMIT may ask for few rows: one
/// that begins with the table that is sorted by may spare the sort of all rows, and one without hash
/// tables comes to its first rows sooner.
pub fn best_order_for_result(
    binder: &Binder<'_>,
    parts: &Parts,
    units: &[Unit<'_>],
    conditions: &[Condition],
    outer: &SlotSet,
    wanted: &InterestingOrder,
) -> Order {
    let mut search = Search::new(binder, parts, units, conditions, outer);
    let order = search.best_for_result(wanted);
    search.trace_chosen(&order);
    order
}

/// The cheapest order found.
pub fn best_order(
    binder: &Binder<'_>,
    parts: &Parts,
    units: &[Unit<'_>],
    conditions: &[Condition],
    outer: &SlotSet,
) -> Order {
    let search = Search::new(binder, parts, units, conditions, outer);
    let order = search.best();
    search.trace_chosen(&order);
    order
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
    /// Hints and `optimizer_switch` let it be joined by a hash table.
    may_hash: bool,
    /// They let it be opened anew for each row, where there is another way.
    may_loop: bool,
}

impl<'a, 't> Candidate<'a, 't> {
    fn new(
        binder: &Binder<'_>,
        parts: &Parts,
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
        let inside = parts.inside(binder, unit.tree);
        // The conditions of the join to the unit itself don't count.
        let mut reads_inside = inside.reads.clone();
        reads_inside.remove(&unit.slots);
        let mut reads = reads_inside.clone();
        conditions.iter().for_each(|c| reads.add(&c.slots));
        let is_independent = reads_inside.is_empty() && inside.is_stable;
        let is_semi = unit.kind == JoinKind::Semi;
        Candidate {
            unit,
            conditions,
            reads,
            reads_inside,
            is_independent,
            may_hash: inside.may_hash && (!is_semi || inside.may_materialize),
            may_loop: !is_semi || inside.may_match_first,
        }
    }

    /// How the unit may be computed for some rows of other units, if it is a derived table.
    fn splits(&self) -> &[Split] {
        match self.unit.tree {
            JoinTree::Leaf(source) => match &source.kind {
                SourceKind::Planned { splits, .. } => splits,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// The conditions that can be checked when some slots are filled before.
    fn ready(&self, filled: &SlotSet) -> Vec<&'a Expr> {
        let with = self.unit.slots.union(filled);
        let conditions = self.conditions.iter();
        conditions
            .filter(|condition| condition.slots.is_subset(&with))
            .map(|condition| &condition.expr)
            .collect()
    }

    /// Whether a condition connects it with what is joined already, or needs nothing of that.
    fn is_connected(&self, available: &SlotSet) -> bool {
        self.reads.intersects(available)
    }
}

/// An order's next step, before it is taken.
struct Step {
    number: usize,
    method: Method,
    cost: f64,
    startup: f64,
    rows: f64,
}

/// A unit that stands first, so that the rows come in the wanted order.
#[derive(Clone)]
struct First {
    number: usize,
    wanted: InterestingOrder,
    cost: f64,
    startup: f64,
    rows: f64,
}

struct Search<'a, 't> {
    binder: &'a Binder<'a>,
    candidates: Vec<Candidate<'a, 't>>,
    outer: &'a SlotSet,
    parts: &'a Parts,
    trials: Trials,
    /// The slots of all units.
    local: SlotSet,
    /// Which part of the rows will be asked for.
    part: f64,
    /// The unit that has to be the first.
    first: Option<First>,
}

impl<'a, 't> Search<'a, 't> {
    fn new(
        binder: &'a Binder<'a>,
        parts: &'a Parts,
        units: &'a [Unit<'t>],
        conditions: &'a [Condition],
        outer: &'a SlotSet,
    ) -> Search<'a, 't> {
        let mut local = SlotSet::default();
        units.iter().for_each(|unit| local.add(&unit.slots));
        let candidates = units
            .iter()
            .map(|unit| Candidate::new(binder, parts, unit, conditions));
        Search {
            binder,
            candidates: candidates.collect(),
            outer,
            parts,
            trials: Trials::default(),
            local,
            part: 1.0,
            first: None,
        }
    }

    /// Whether every order is tried.
    fn is_exhaustive(&self) -> bool {
        let depth = match self.binder.session().planner.search_depth {
            0 => SEARCH_MAX,
            depth => SEARCH_MAX.min(depth.into()),
        };
        self.candidates.len() <= depth
    }

    fn best(&self) -> Order {
        if self.is_exhaustive()
            && let Some(order) = self.exhaustive()
        {
            return order;
        }
        self.greedy()
    }

    /// The cheapest of the orders that suit a sorted result, or one of which few rows are asked for.
    fn best_for_result(&mut self, wanted: &InterestingOrder) -> Order {
        let order = self.best();
        if !wanted.whole || (wanted.sort.is_empty() && wanted.rows.is_none()) {
            return order;
        }
        let asked = wanted.rows.unwrap_or(f64::INFINITY);
        self.part = (asked / order.rows.max(1.0)).min(1.0);
        if wanted.sort.is_empty() {
            let quick = self.best();
            return match quick.cost_of_part(self.part) < order.cost_of_part(self.part) {
                true => quick,
                false => order,
            };
        }
        let sorted_cost = order.cost + access::sort_cost(order.rows, wanted.rows);
        self.first = self.first_in_order(wanted, order.rows);
        if self.first.is_none() {
            return order;
        }
        let in_order = self.best();
        match in_order.cost_of_part(self.part) < sorted_cost {
            true => in_order,
            false => order,
        }
    }

    /// The unit whose rows are sorted by, if it may stand first: read by an index that has the
    /// order, or sorted before the others are joined. `rows`: of the whole result.
    fn first_in_order(&self, wanted: &InterestingOrder, rows: f64) -> Option<First> {
        let mut sorted_by = SlotSet::default();
        for key in &wanted.sort {
            if key.expr.is_volatile() || key.expr.has_subquery() {
                return None;
            }
            sorted_by.add(&expr_slots(self.binder, &key.expr));
        }
        let is_sorted_by = |number: &usize| {
            let unit = self.candidates[*number].unit;
            unit.kind == JoinKind::Inner && sorted_by.is_subset(&unit.slots)
        };
        let mut ready = self.next_units(&Order::default(), |_| false).into_iter();
        let number = ready.find(is_sorted_by)?;
        let candidate = &self.candidates[number];
        let (open, passed) = self.open_cost(candidate, self.outer);
        let keeps_some = wanted.top.is_some() && candidate.is_independent;
        let wanted = wanted.for_each(rows / passed.max(1.0));
        let sort = access::sort_cost(passed, wanted.rows.filter(|_| keeps_some));
        let mut first = First {
            number,
            cost: open + sort,
            startup: open + sort,
            rows: passed,
            wanted,
        };
        if let JoinTree::Leaf(source) = candidate.unit.tree
            && let SourceKind::Table(table) = &source.kind
        {
            let conditions = candidate.ready(self.outer);
            let path = access::best(
                self.binder,
                source,
                table,
                &conditions,
                self.outer,
                &first.wanted,
                &self.trials,
            );
            if path.in_order && !first.wanted.keys.is_empty() {
                (first.cost, first.startup, first.rows) = (path.cost, 0.0, path.passed);
            }
        }
        Some(first)
    }

    /// Whether all units that must come before a unit are joined.
    fn is_ready(&self, unit: &Unit<'_>, order: &Order) -> bool {
        unit.after
            .intersection(&self.local)
            .is_subset(&order.placed)
    }

    /// The units that may come next: those that something connects with the order, if there are
    /// any.
    fn next_units(&self, order: &Order, is_placed: impl Fn(usize) -> bool) -> Vec<usize> {
        if let Some(first) = &self.first
            && order.steps.is_empty()
        {
            return vec![first.number];
        }
        let numbers = 0..self.candidates.len();
        let is_ready = |number: &usize| {
            let unit = self.candidates[*number].unit;
            !is_placed(*number) && self.is_ready(unit, order)
        };
        let mut ready: Vec<usize> = numbers.filter(is_ready).collect();
        let is_connected = |number: &usize| self.candidates[*number].is_connected(&order.available);
        let prunes = self.binder.session().planner.prunes && !order.steps.is_empty();
        if prunes && ready.iter().any(is_connected) {
            ready.retain(is_connected);
        }
        ready
    }

    /// Joins one more unit by the cheapest method.
    fn step(&self, order: &Order, number: usize) -> Step {
        if let Some(first) = &self.first
            && order.steps.is_empty()
        {
            return Step {
                number,
                method: Method::Loop,
                cost: first.cost,
                startup: first.startup,
                rows: first.rows,
            };
        }
        let candidate = &self.candidates[number];
        let before = order.available.union(self.outer);
        let (open, passed) = self.open_cost(candidate, &before);
        let made = self.made_cost(candidate);
        // What comes before the first row, and with each.
        let mut method = (Method::Loop, made, order.rows * (open + OPEN));
        let mut may_loop = candidate.may_loop;
        let total = |startup: f64, each: f64| startup + each * self.part;
        let mut consider = |other: Method, costs: Option<(f64, f64)>| {
            if let Some((startup, each)) = costs
                && (!may_loop || total(startup, each) < total(method.1, method.2))
            {
                method = (other, startup, each);
                may_loop = true;
            }
        };
        if candidate.may_hash && !order.steps.is_empty() {
            let cost = self.hash_cost(order, candidate, &order.available, self.outer, 1.0);
            consider(Method::Hash, cost.map(|(table, each)| (table + made, each)));
        }
        let executions = self.binder.executions;
        // What one look-up in an index finds needs no table that is kept.
        let is_one_lookup = open <= SEEK + FETCH;
        if candidate.may_hash
            && !is_one_lookup
            && executions > 1.0
            && !self.outer.is_empty()
            && candidate.is_independent
        {
            let none = SlotSet::default();
            let cost = self.hash_cost(order, candidate, &before, &none, executions);
            consider(
                Method::KeptHash,
                cost.map(|(table, each)| (table + made, each)),
            );
        }
        for (number, split) in candidate.splits().iter().enumerate() {
            if split.reads.is_subset(&before) {
                let each = order.rows * (split.cost + OPEN);
                consider(Method::Split(number), Some((0.0, each)));
            }
        }
        let rows = match candidate.unit.kind {
            JoinKind::Inner => order.rows * passed,
            JoinKind::Left => order.rows * passed.max(1.0),
            JoinKind::Semi => order.rows * passed.min(1.0),
            JoinKind::Anti => order.rows * (1.0 - passed).clamp(0.1, 1.0),
        };
        let step = Step {
            number,
            method: method.0,
            cost: order.cost + method.1 + method.2 + rows * PASS,
            startup: order.startup + method.1,
            rows,
        };
        self.binder.trace_search("join_step", || {
            vec![
                ("joined_before", trace::texts(self.names_in(order))),
                ("table", trace::text(self.name_of(number))),
                ("nested_loop_cost", Item::Real(order.rows * (open + OPEN))),
                ("method", trace::text(method.0.name())),
                ("cost_before_first_row", Item::Real(method.1)),
                ("cost_of_rows", Item::Real(method.2)),
                ("rows", Item::Real(rows)),
                ("cost_for_prefix", Item::Real(step.cost)),
            ]
        });
        step
    }

    /// The tables of a unit.
    fn name_of(&self, number: usize) -> String {
        let slots = &self.candidates[number].unit.slots;
        self.binder.names_of(slots).join(", ")
    }

    /// The tables of an order, in order.
    fn names_in(&self, order: &Order) -> Vec<String> {
        let numbers = order.steps.iter().map(|step| step.number);
        numbers.map(|number| self.name_of(number)).collect()
    }

    /// Tells of the order that was chosen, and why.
    fn trace_chosen(&self, order: &Order) {
        self.binder.trace_search("chosen_join_order", || {
            let steps = order.steps.iter().map(|step| {
                Item::Object(vec![
                    ("table", trace::text(self.name_of(step.number))),
                    ("method", trace::text(step.method.name())),
                ])
            });
            let how = match self.is_exhaustive() {
                true => "all orders, the cheapest of each set of tables kept",
                false => "greedy",
            };
            vec![
                ("search", trace::text(how)),
                (
                    "begins_with_sorted_table",
                    Item::Bool(order.first_wanted.is_some()),
                ),
                ("tables", Item::Array(steps.collect())),
                ("rows", Item::Real(order.rows)),
                ("cost", Item::Real(order.cost)),
            ]
        });
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
            placed: order.placed.union(&unit.slots),
            rows: step.rows,
            cost: step.cost,
            startup: step.startup,
            first_wanted: self.first.as_ref().map(|first| first.wanted.clone()),
        }
    }

    /// What it costs to compute a derived table that may be split instead, in each execution.
    fn made_cost(&self, candidate: &Candidate<'_, '_>) -> f64 {
        let made = candidate
            .splits()
            .first()
            .map_or(0.0, |split| split.whole_cost);
        made / self.binder.executions
    }

    /// What a hash join of a unit to an order's rows costs in each execution of the query, by
    /// equalities with the slots in `probing`: to make the table, once for so many executions with
    /// the slots in `filled` at hand, and to look all rows up. Without such an equality each row
    /// meets all rows of the table, which is still less than to read them anew.
    fn hash_cost(
        &self,
        order: &Order,
        candidate: &Candidate<'_, '_>,
        probing: &SlotSet,
        filled: &SlotSet,
        executions: f64,
    ) -> Option<(f64, f64)> {
        if candidate.reads_inside.intersects(probing) {
            return None;
        }
        let slots = &candidate.unit.slots;
        let mut conditions = candidate.conditions.iter();
        let has_key = conditions.any(|condition| condition.joins(slots, probing).is_some());
        let (open, read) = self.open_cost(candidate, filled);
        let made = (open + read * HASH_PUT) / executions;
        let met = if has_key { 0.0 } else { read * PASS };
        Some((made, order.rows * (HASH_GET + met)))
    }

    /// What opening a unit and reading it to its end costs, and how many rows come, when some slots
    /// are filled before.
    fn open_cost(&self, candidate: &Candidate<'_, '_>, filled: &SlotSet) -> (f64, f64) {
        let tree = candidate.unit.tree;
        let key = (
            std::ptr::from_ref(tree),
            candidate.reads.intersection(filled),
        );
        if let Some(cost) = self.parts.cost(&key) {
            return cost;
        }
        let conditions = candidate.ready(filled);
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
                let (units, conditions) = take_apart(
                    self.binder,
                    self.parts,
                    tree,
                    conditions,
                    &SlotSet::default(),
                );
                let order = best_order(self.binder, self.parts, &units, &conditions, filled);
                (order.cost, order.rows)
            }
        };
        self.parts.note_cost(key, cost);
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
                let cost = step.startup + (step.cost - step.startup) * self.part;
                if slot
                    .as_ref()
                    .is_none_or(|other| cost < other.cost_of_part(self.part) * (1.0 - 1e-9))
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
