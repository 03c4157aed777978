//! Plans that are measured as they run (EXPLAIN ANALYZE): each operator is wrapped in one that counts
//! and times it. Plans that nobody measures have no such operators.

use super::{Node, Plan, PlanKind, RowLock};

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
        let mut next = 0;
        match &mut self.kind {
            PlanKind::Query(query) => {
                query.into.clear();
                query.calc_found_rows = false;
                wrap(&mut query.node, &mut next);
            }
            PlanKind::Update(update) => wrap(&mut update.node, &mut next),
            PlanKind::Delete(delete) => wrap(&mut delete.node, &mut next),
            PlanKind::Insert(_) => {}
        }
        for subplan in self.subplans.iter_mut().flatten() {
            wrap(&mut subplan.node, &mut next);
        }
    }
}

/// Wraps a node and all below it.
fn wrap(node: &mut Node, next: &mut usize) {
    take_filter_out(node);
    for child in node.children_mut() {
        wrap(child, next);
    }
    let number = *next;
    *next += 1;
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
