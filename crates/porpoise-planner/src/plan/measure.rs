//! Plans that are measured as they run (EXPLAIN ANALYZE): each operator is wrapped in one that counts
//! and times it. Plans that nobody measures have no such operators.

use hashbrown::HashMap;

use super::{Destination, Node, Plan, PlanKind, RowLock};

/// What an operator did while the statement ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// How often it was opened.
    pub loops: u64,
    /// Rows, of all loops together.
    pub rows: u64,
    /// From being opened to having the first row, or knowing that there is none, of all loops
    /// together, in nanoseconds.
    pub first_row_ns: u64,
    /// All the time spent in it and below it, in nanoseconds.
    pub total_ns: u64,
}

impl Measure {
    /// From being opened to the first row, and to the last, of each loop on average, in
    /// milliseconds.
    pub fn times_ms(&self) -> [f64; 2] {
        let loops = self.loops.max(1) as f64;
        [self.first_row_ns, self.total_ns].map(|time_ns| time_ns as f64 / 1e6 / loops)
    }

    /// Rows of each loop, on average.
    pub fn rows_each(&self) -> f64 {
        self.rows as f64 / self.loops.max(1) as f64
    }
}

impl Plan {
    /// Has all operators measured. The statement is executed for its figures alone: a query assigns
    /// no variables, and counts no rows beyond its LIMIT.
    pub fn measure(&mut self) {
        let mut numbers = Numbers::default();
        let mut wrap = |node: &mut Node, scope| wrap(node, scope, &mut 0, &mut numbers);
        match &mut self.kind {
            PlanKind::Query(query) => {
                query.into = Destination::Client;
                query.calc_found_rows = false;
                wrap(&mut query.node, Scope::Statement);
            }
            PlanKind::Update(update) => wrap(&mut update.node, Scope::Statement),
            PlanKind::Delete(delete) => wrap(&mut delete.node, Scope::Statement),
            PlanKind::Insert(_) => {}
        }
        for subplan in self.subplans.iter_mut().flatten() {
            wrap(&mut subplan.node, Scope::Subquery(subplan.number));
        }
    }
}

/// What operators belong to. References to the same common table have a copy each of the operators
/// that compute it, of which one runs: copies have the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    Statement,
    /// The subquery of that number.
    Subquery(usize),
    /// What is materialised under that number.
    Materialized(usize),
}

/// The numbers of operators, by what they belong to and which of its operators they are.
type Numbers = HashMap<(Scope, usize), usize>;

/// Wraps a node and all below it; `local` counts the operators of the scope.
fn wrap(node: &mut Node, scope: Scope, local: &mut usize, numbers: &mut Numbers) {
    take_filter_out(node);
    if let Node::Derived {
        input,
        materialize: Some(number),
        ..
    } = node
    {
        wrap(input, Scope::Materialized(*number), &mut 0, numbers);
    } else {
        for child in node.children_mut() {
            wrap(child, scope, local, numbers);
        }
    }
    let next = numbers.len();
    let number = *numbers.entry((scope, *local)).or_insert(next);
    *local += 1;
    let input = Box::new(std::mem::replace(node, Node::Empty));
    *node = Node::Measured { input, number };
}

/// A scan that filters yields fewer rows than it reads: that both may be counted, its filter becomes
/// an operator by itself. One that locks has to filter before it locks.
fn take_filter_out(node: &mut Node) {
    let Node::Scan(scan) = node else { return };
    if scan.lock != RowLock::None || scan.filter.is_empty() {
        return;
    }
    let conditions = std::mem::take(&mut scan.filter);
    let input = Box::new(std::mem::replace(node, Node::Empty));
    *node = Node::Filter { input, conditions };
}
