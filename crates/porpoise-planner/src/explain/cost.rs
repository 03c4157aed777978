//! The costs that EXPLAIN prints, close to MySQL's measure. The optimizer chooses by its own
//! figures ([`crate::optimize`]), not by these.

use crate::optimize;
use crate::plan::{Access, Node, Scan};

/// A scan's cost in MySQL's measure, about.
pub(super) fn scan_cost(scan: &Scan) -> f64 {
    match &scan.access {
        Access::Full => scan.rows_estimate * 0.1 + 0.25,
        Access::Point { .. } => 0.35,
        Access::Index { covering: true, .. } => scan.rows_estimate * 0.1 + 0.25,
        Access::Index { index, .. } if *index == 0 && scan.table.primary_key().is_some() => {
            scan.rows_estimate * 0.1 + 0.35
        }
        Access::Skip(skip) if skip.covering => scan.rows_estimate * 0.1 + 0.25,
        Access::Index { .. } | Access::Merge { .. } | Access::Skip(_) => {
            scan.rows_estimate * 0.35 + 0.35
        }
    }
}

/// A node's cost in MySQL's measure, about.
pub(super) fn cost_of(node: &Node) -> f64 {
    match node {
        Node::Scan(scan) => scan_cost(scan),
        Node::One | Node::Empty => 0.0,
        Node::Measured { input, .. } => cost_of(input),
        Node::Filter { input, .. } if optimize::is_measured_scan(input) => cost_of(input),
        Node::NestedLoop { left, right, .. } => {
            cost_of(left) + optimize::rows_of(left) * cost_of(right)
        }
        node => {
            node.children().into_iter().map(cost_of).sum::<f64>() + optimize::rows_of(node) * 0.1
        }
    }
}
