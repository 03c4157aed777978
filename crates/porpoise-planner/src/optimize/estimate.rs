//! How many rows operators yield, for choosing among them and for EXPLAIN. Guesses, no promises.

use porpoise_expr::{Expr, ExprKind};
use porpoise_types::Value;

use crate::optimize::access;
use crate::plan::Node;

/// A guess of how many rows a node yields.
pub fn rows_of(node: &Node) -> f64 {
    match node {
        Node::One => 1.0,
        Node::Empty => 0.0,
        Node::Scan(scan) => (scan.rows_estimate * scan.filtered).max(1.0),
        Node::Values { rows, .. } => rows.len() as f64,
        Node::JsonTable { .. } => 10.0,
        Node::Virtual { .. } | Node::Working { .. } => 100.0,
        Node::Derived { input, .. }
        | Node::Project { input, .. }
        | Node::Batch { input, .. }
        | Node::Measured { input, .. }
        | Node::Sort {
            input,
            limit: None,
            distinct: false,
            ..
        } => rows_of(input),
        Node::Recursive { seed, .. } => rows_of(seed) * 10.0,
        // The scan's own filter, which stands by itself: it is part of the scan's guess.
        Node::Filter { input, .. } if is_measured_scan(input) => rows_of(input),
        Node::Filter { input, conditions } => {
            (rows_of(input) * access::selectivity(conditions.iter())).max(1.0)
        }
        Node::NestedLoop { rows_estimate, .. } | Node::HashJoin { rows_estimate, .. } => {
            rows_estimate.max(1.0)
        }
        Node::Group(group) if group.scalar => 1.0,
        Node::Group(group) => (rows_of(&group.input) * 0.1).max(1.0),
        Node::Sort {
            input,
            refill: Some(_),
            ..
        } => rows_of(input),
        Node::Distinct { input, .. }
        | Node::Sort {
            input,
            distinct: true,
            ..
        } => (rows_of(input) * 0.3).max(1.0),
        Node::Sort {
            input,
            limit: Some(limit),
            refill: None,
            ..
        } => limit_value(limit).map_or(rows_of(input), |most| most.min(rows_of(input))),
        Node::Limit { input, count, .. } => match count.as_deref().and_then(limit_value) {
            Some(most) => rows_of(input).min(most),
            None => rows_of(input),
        },
        Node::SetOperation { inputs, .. } => inputs.iter().map(|(node, _)| rows_of(node)).sum(),
        Node::Window(window) => rows_of(&window.input),
    }
}

/// Whether a node is a scan that is measured.
pub fn is_measured_scan(node: &Node) -> bool {
    matches!(node, Node::Measured { input, .. } if matches!(**input, Node::Scan(_)))
}

/// How many rows LIMIT lets pass, if that is known.
pub fn limit_value(limit: &Expr) -> Option<f64> {
    match &limit.kind {
        ExprKind::Literal(Value::Int(v)) => Some(*v as f64),
        ExprKind::Literal(Value::UInt(v)) => Some(*v as f64),
        _ => None,
    }
}
