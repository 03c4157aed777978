//! Whether a plan is likely to run for long, by the rows that it reads.
//!
//! A statement that runs for long keeps the other clients of its thread waiting until somebody
//! notices. Of one that reads many rows it can be told before, and of one whose plan has run for long
//! already.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::rows_of;
use crate::plan::{InsertSource, Node, PlanKind};

/// So many rows take some milliseconds to read.
const MANY_ROWS: f64 = 20_000.0;

/// A plan that runs for less was taken for a long one by mistake.
const SHORT: Duration = Duration::from_millis(1);

/// Whether a plan is expected to run for milliseconds.
#[derive(Debug)]
pub struct ExpectedLong(AtomicBool);

impl ExpectedLong {
    /// What is expected of a plan before it was run.
    pub fn of(kind: &PlanKind) -> ExpectedLong {
        let rows = match kind {
            PlanKind::Query(query) => rows_read(&query.node),
            PlanKind::Update(update) => match update.limit {
                None => rows_read(&update.node),
                Some(_) => rows_before_first(&update.node),
            },
            PlanKind::Delete(delete) => match delete.limit {
                None => rows_read(&delete.node),
                Some(_) => rows_before_first(&delete.node),
            },
            PlanKind::Insert(insert) => match &insert.source {
                InsertSource::Values(rows) => rows.len() as f64,
                InsertSource::Query { node, .. } => rows_read(node),
                InsertSource::Load(_) => MANY_ROWS,
            },
        };
        ExpectedLong(AtomicBool::new(rows >= MANY_ROWS))
    }

    /// Whether it is.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// It was seen to run for long.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// It ran for so long. Of one that was done soon nothing is expected any more: it reads fewer
    /// rows than the statistics tell.
    pub fn record(&self, took: Duration) {
        if took < SHORT {
            self.0.store(false, Ordering::Relaxed);
        }
    }
}

/// How many rows of tables an operator reads, all its rows taken; each time that it reads one counts.
fn rows_read(node: &Node) -> f64 {
    match node {
        Node::Scan(scan) => scan.rows_estimate,
        Node::Values { rows, .. } => rows.len() as f64,
        Node::NestedLoop { left, right, .. } => rows_read(left) + rows_of(left) * rows_read(right),
        // How many rows are asked for is seldom known yet.
        Node::Limit { input, count, .. } if count.is_some() => rows_before_first(input),
        node => node.children().into_iter().map(rows_read).sum(),
    }
}

/// How many rows an operator reads before it yields one.
fn rows_before_first(node: &Node) -> f64 {
    match node {
        Node::Sort { .. } | Node::Window(_) => rows_read(node),
        Node::Group(group) if !group.ordered => rows_read(node),
        Node::Derived {
            materialize: Some(_),
            ..
        } => rows_read(node),
        Node::HashJoin { left, right, .. } => rows_before_first(left) + rows_read(right),
        node => {
            let children = node.children().into_iter();
            children.map(rows_before_first).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_plan_that_is_done_soon_nothing_is_expected_any_more() {
        let expected = ExpectedLong(AtomicBool::new(true));
        expected.record(SHORT * 5);
        assert!(expected.is_set());
        expected.record(SHORT / 2);
        assert!(!expected.is_set());
        expected.record(SHORT * 5);
        assert!(!expected.is_set());
        expected.set();
        assert!(expected.is_set());
    }
}
