//! `EXPLAIN FORMAT=JSON` in its second version: the operators of the tree form, each with those below
//! it (MySQL 8.4 manual, `explain_json_format_version`).

use super::tree::{self, Line};
use crate::json_text::{Item, Members};
use crate::plan::{Measure, Plan};

/// A plan as a JSON document, with what its operators did where they were measured.
pub(super) fn json(plan: &Plan, sql: &str, measures: &[Measure]) -> String {
    let lines = tree::lines(plan, measures);
    let mut at = 0;
    let mut roots = below(&lines, &mut at, 0);
    let mut members: Members = vec![("query", Item::Text(sql.to_string()))];
    match (roots.pop(), roots.is_empty()) {
        (Some(Item::Object(only)), true) => members.extend(only),
        (Some(last), _) => {
            roots.push(last);
            members.push(("inputs", Item::Array(roots)));
        }
        (None, _) => {}
    }
    Item::Object(members).document(Some(0))
}

/// The operators at a depth, from line `at` on, up to one that is less deep.
fn below(lines: &[Line], at: &mut usize, depth: usize) -> Vec<Item> {
    let mut found = Vec::new();
    while let Some(line) = lines.get(*at).filter(|line| line.depth >= depth) {
        *at += 1;
        let inputs = below(lines, at, line.depth + 1);
        let mut members = operator(line);
        if !inputs.is_empty() {
            members.push(("inputs", Item::Array(inputs)));
        }
        found.push(Item::Object(members));
    }
    found
}

fn operator(line: &Line) -> Members {
    let mut members: Members = vec![("operation", Item::Text(line.text.clone()))];
    if let Some((cost, rows)) = line.estimate {
        members.push(("estimated_rows", Item::Real(rows)));
        members.push(("estimated_total_cost", Item::Real(cost)));
    }
    let Some(measure) = line.measure else {
        return members;
    };
    members.push(("actual_loops", Item::Number(measure.loops)));
    if measure.loops > 0 {
        let [first, last] = measure.times_ms().map(Item::Real);
        members.push(("actual_rows", Item::Real(measure.rows_each())));
        members.push(("actual_first_row_ms", first));
        members.push(("actual_last_row_ms", last));
    }
    members
}
