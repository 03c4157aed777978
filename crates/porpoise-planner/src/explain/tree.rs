//! The tree form: a line an operator, each below the one it feeds (MySQL 8.4 manual, 15.8.2).

use std::fmt::Write;

use porpoise_catalog::{Index, Table};
use porpoise_expr::Expr;
use porpoise_expr::aggregate::SortKey;

use super::cost::{cost_of, scan_cost};
use super::names::Names;
use crate::optimize;
use crate::plan::{
    Access, FrameBound, Group, JoinKind, KeyRange, Node, Plan, PlanKind, Scan, SetOperator,
    Subplan, Window,
};

/// A plan as an indented tree of operators.
pub(super) fn tree(plan: &Plan) -> String {
    let mut out = Tree {
        names: Names::new(plan),
        text: String::new(),
    };
    let depth = match &plan.kind {
        PlanKind::Query(_) => 0,
        PlanKind::Insert(insert) => {
            out.line(0, &format!("Insert into {}", insert.table.name), None);
            1
        }
        PlanKind::Update(update) => {
            let names: Vec<&str> = update
                .targets
                .iter()
                .map(|target| target.table.name.as_str())
                .collect();
            out.line(0, &format!("Update {}", names.join(", ")), None);
            1
        }
        PlanKind::Delete(delete) => {
            let names: Vec<&str> = delete
                .targets
                .iter()
                .map(|(table, _)| table.name.as_str())
                .collect();
            out.line(0, &format!("Delete from {}", names.join(", ")), None);
            1
        }
    };
    if let Some((node, output)) = plan.root() {
        out.node(node, depth);
        for subplan in plan.subplans_in(output) {
            out.subquery(subplan, depth, "in projection");
        }
    }
    out.text
}

struct Tree<'p> {
    names: Names<'p>,
    text: String,
}

/// A number as the tree form prints it.
fn figure(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{v:.2e}").replace("e", "e+"),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => trimmed(format!("{v:.1}")),
        v if v >= 1.0 => trimmed(format!("{v:.2}")),
        v => trimmed(format!("{v:.3}")),
    }
}

/// Without zeros after the decimal point.
fn trimmed(text: String) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

impl Tree<'_> {
    /// A line at a depth, with the cost and rows of `node` where given.
    fn line(&mut self, depth: usize, text: &str, node: Option<&Node>) {
        let _ = write!(self.text, "{:indent$}-> {text}", "", indent = depth * 4);
        if let Some(node) = node {
            let rows = optimize::rows_of(node);
            let _ = write!(
                self.text,
                "  (cost={} rows={})",
                figure(cost_of(node)),
                figure(rows)
            );
        }
        self.text.push('\n');
    }

    fn subquery(&mut self, subplan: &Subplan, depth: usize, place: &str) {
        let how = if subplan.correlated {
            "dependent"
        } else {
            "run only once"
        };
        self.line(
            depth,
            &format!("Select #{} (subquery {place}; {how})", subplan.number + 2),
            None,
        );
        self.node(&subplan.node, depth + 1);
    }

    fn subqueries_of(&mut self, conditions: &[Expr], depth: usize) {
        for subplan in self.names.plan.subplans_in(conditions) {
            self.subquery(subplan, depth, "in condition");
        }
    }

    fn node(&mut self, node: &Node, depth: usize) {
        match node {
            Node::One => self.line(depth, "Rows fetched before execution", Some(node)),
            Node::Empty => self.line(depth, "Zero rows (Impossible WHERE)", Some(node)),
            Node::Scan(scan) => self.scan(scan, node, depth),
            Node::Values { .. } => self.line(depth, "Rows fetched before execution", Some(node)),
            Node::JsonTable { .. } => self.line(depth, "Materialize table function", Some(node)),
            Node::Virtual { table, filter, .. } => {
                let depth = self.filter(filter, node, depth);
                self.line(depth, &format!("Table scan on {}", table.name), Some(node));
            }
            Node::Derived {
                slot,
                input,
                materialize,
                correlated,
                ..
            } => {
                let name = self.names.of(*slot).to_string();
                self.line(depth, &format!("Table scan on {name}"), Some(node));
                let how = match (materialize, correlated) {
                    (_, true) => "Materialize (invalidate on row from outer query)",
                    (Some(_), _) => "Materialize",
                    (None, _) => "Stream results",
                };
                self.line(depth + 1, how, Some(node));
                self.node(input, depth + 2);
            }
            Node::Recursive {
                seed,
                step,
                distinct,
                ..
            } => {
                let how = if *distinct {
                    "Materialize recursive CTE with deduplication"
                } else {
                    "Materialize recursive CTE"
                };
                self.line(depth, how, Some(node));
                self.node(seed, depth + 1);
                self.line(depth + 1, "Repeat until convergence", None);
                self.node(step, depth + 2);
            }
            Node::Working { slot, .. } => {
                let name = self.names.of(*slot).to_string();
                self.line(depth, &format!("Scan new records on {name}"), Some(node));
            }
            Node::Filter { input, conditions } => {
                let depth = self.filter(conditions, node, depth);
                self.node(input, depth);
                self.subqueries_of(conditions, depth);
            }
            Node::NestedLoop {
                left,
                right,
                kind,
                condition,
                ..
            } => {
                let depth = self.filter(condition, node, depth);
                let kind = match kind {
                    JoinKind::Inner => "Nested loop inner join",
                    JoinKind::Left => "Nested loop left join",
                    JoinKind::Semi => "Nested loop semijoin",
                    JoinKind::Anti => "Nested loop antijoin",
                };
                self.line(depth, kind, Some(node));
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            Node::HashJoin { .. } => self.hash_join(node, depth),
            Node::Group(group) => self.group(group, node, depth),
            Node::Project { input, .. } => {
                self.line(depth, "Stream results", Some(node));
                self.node(input, depth + 1);
            }
            Node::Sort { input, keys, .. } if keys.is_empty() => {
                self.line(depth, "Table scan on <temporary>", Some(node));
                self.line(depth + 1, "Temporary table", Some(node));
                self.node(input, depth + 2);
            }
            Node::Sort {
                input,
                keys,
                limit,
                distinct,
                ..
            } => {
                let text = self.sort(keys, limit.as_deref(), *distinct);
                self.line(depth, &text, Some(node));
                self.node(input, depth + 1);
            }
            Node::Distinct { input, .. } => {
                self.line(depth, "Table scan on <temporary>", Some(node));
                self.line(depth + 1, "Temporary table with deduplication", Some(node));
                self.node(input, depth + 2);
            }
            Node::Limit {
                input,
                offset,
                count,
            } => {
                let count = count
                    .as_deref()
                    .map_or("all".to_string(), |count| self.names.text(count));
                let text = match offset {
                    None => format!("Limit: {count} row(s)"),
                    Some(offset) => {
                        format!("Limit/Offset: {count}/{} row(s)", self.names.text(offset))
                    }
                };
                self.line(depth, &text, Some(node));
                self.node(input, depth + 1);
            }
            Node::SetOperation {
                op,
                distinct,
                inputs,
                ..
            } => {
                let depth = self.set_operation(*op, *distinct, node, depth);
                for (input, _) in inputs {
                    self.node(input, depth + 1);
                }
            }
            Node::Window(window) => self.window(window, node, depth),
        }
    }

    /// A filter's line above a node, if there is something to filter; the depth below it.
    fn filter(&mut self, conditions: &[Expr], node: &Node, depth: usize) -> usize {
        if conditions.is_empty() {
            return depth;
        }
        let text = format!("Filter: {}", self.names.conditions(conditions));
        self.line(depth, &text, Some(node));
        depth + 1
    }

    fn hash_join(&mut self, node: &Node, depth: usize) {
        let Node::HashJoin {
            left,
            right,
            kind,
            left_keys,
            right_keys,
            condition,
            ..
        } = node
        else {
            return;
        };
        let kind = match kind {
            JoinKind::Inner => "Inner hash join",
            JoinKind::Left => "Left hash join",
            JoinKind::Semi => "Hash semijoin",
            JoinKind::Anti => "Hash antijoin",
        };
        let pairs: Vec<String> = left_keys
            .iter()
            .zip(right_keys)
            .map(|(a, b)| format!("({} = {})", self.names.text(a), self.names.text(b)))
            .collect();
        let mut text = format!("{kind} {}", pairs.join(", "));
        if !condition.is_empty() {
            let _ = write!(
                text,
                ", extra conditions: {}",
                self.names.conditions(condition)
            );
        }
        self.line(depth, &text, Some(node));
        self.node(left, depth + 1);
        self.line(depth + 1, "Hash", None);
        self.node(right, depth + 2);
    }

    fn group(&mut self, group: &Group, node: &Node, depth: usize) {
        let aggregates: Vec<String> = group
            .aggregates
            .iter()
            .map(|aggregate| self.names.aggregate(aggregate))
            .collect();
        let list = aggregates.join(", ");
        let text = match (group.scalar, group.ordered) {
            (true, _) => format!("Aggregate: {list}"),
            (false, true) if list.is_empty() => "Group (no aggregates)".to_string(),
            (false, true) if group.rollup => format!("Group aggregate with rollup: {list}"),
            (false, true) => format!("Group aggregate: {list}"),
            (false, false) => "Table scan on <temporary>".to_string(),
        };
        self.line(depth, &text, Some(node));
        let hashed = !group.scalar && !group.ordered;
        if hashed {
            let text = if list.is_empty() {
                "Temporary table with deduplication"
            } else {
                "Aggregate using temporary table"
            };
            self.line(depth + 1, text, None);
        }
        self.node(&group.input, depth + 1 + usize::from(hashed));
    }

    fn sort(&self, keys: &[SortKey], limit: Option<&Expr>, distinct: bool) -> String {
        let sort = if distinct {
            "Sort with duplicate removal"
        } else {
            "Sort"
        };
        let mut text = format!("{sort}: {}", self.names.keys(keys));
        if let Some(limit) = limit {
            let _ = write!(
                text,
                ", limit input to {} row(s) per chunk",
                self.names.text(limit)
            );
        }
        text
    }

    /// A set operation's lines; the depth of the last one.
    fn set_operation(
        &mut self,
        op: SetOperator,
        distinct: bool,
        node: &Node,
        depth: usize,
    ) -> usize {
        let mut depth = depth;
        match (op, distinct) {
            (SetOperator::Union, false) => self.line(depth, "Append", Some(node)),
            _ => {
                let (table, what) = match op {
                    SetOperator::Union => ("<union temporary>", "Union materialize"),
                    SetOperator::Intersect => ("<intersect temporary>", "Intersect materialize"),
                    SetOperator::Except => ("<except temporary>", "Except materialize"),
                };
                self.line(depth, &format!("Table scan on {table}"), Some(node));
                depth += 1;
                let how = if distinct { " with deduplication" } else { "" };
                self.line(depth, &format!("{what}{how}"), Some(node));
            }
        }
        depth
    }

    fn window(&mut self, window: &Window, node: &Node, depth: usize) {
        let mut text = "Window aggregate".to_string();
        let buffered = window
            .functions
            .iter()
            .any(|call| !matches!(call.frame.end, FrameBound::CurrentRow));
        if buffered {
            text.push_str(" with buffering");
        }
        self.line(depth, &text, Some(node));
        let mut keys: Vec<SortKey> = window
            .partition
            .iter()
            .map(|expr| SortKey {
                expr: expr.clone(),
                descending: false,
            })
            .collect();
        keys.extend(window.order.iter().cloned());
        let sorted = !keys.is_empty();
        if sorted {
            self.line(
                depth + 1,
                &format!("Sort: {}", self.names.keys(&keys)),
                None,
            );
        }
        self.node(&window.input, depth + 1 + usize::from(sorted));
    }

    fn scan(&mut self, scan: &Scan, node: &Node, depth: usize) {
        let below = self.filter(&scan.filter, node, depth);
        let name = self.names.of(scan.slot).to_string();
        let text = self.access(scan, &name);
        let reverse = if scan.reverse && !matches!(scan.access, Access::Point { .. }) {
            " (reverse)"
        } else {
            ""
        };
        let cost = scan_cost(scan);
        let _ = write!(
            self.text,
            "{:indent$}-> {text}{reverse}",
            "",
            indent = below * 4
        );
        let _ = writeln!(
            self.text,
            "  (cost={} rows={})",
            figure(cost),
            figure(scan.rows_estimate.max(1.0))
        );
        self.subqueries_of(&scan.filter, depth + 1);
    }

    /// How a scan reaches its rows.
    fn access(&self, scan: &Scan, name: &str) -> String {
        let table = &scan.table;
        let covering = |covering: bool, plain: &str| match covering {
            true => format!(
                "Covering {}{}",
                plain[..1].to_ascii_lowercase(),
                &plain[1..]
            ),
            false => plain.to_string(),
        };
        match &scan.access {
            Access::Full => format!("Table scan on {name}"),
            Access::Point {
                index,
                key,
                covering: covers,
            } => {
                let index = &table.indexes[*index];
                let pairs: Vec<String> = index
                    .parts
                    .iter()
                    .zip(key)
                    .map(|(part, value)| {
                        format!("{}={}", part.display_text(table), self.names.text(value))
                    })
                    .collect();
                let what = if *covers {
                    "Single-row covering index lookup"
                } else {
                    "Single-row index lookup"
                };
                format!(
                    "{what} on {name} using {} ({})",
                    index.name,
                    pairs.join(", ")
                )
            }
            Access::Index {
                index,
                ranges,
                covering: covers,
            } => {
                let index = &table.indexes[*index];
                match &ranges[..] {
                    [range] if range.is_all() => {
                        format!(
                            "{} on {name} using {}",
                            covering(*covers, "Index scan"),
                            index.name
                        )
                    }
                    [range] if !range.is_bounded() => {
                        let pairs = index.parts.iter().zip(&range.equal);
                        let pairs: Vec<String> = pairs
                            .map(|(part, value)| {
                                format!(
                                    "{}={}",
                                    part.display_text(table),
                                    self.names.text(&value.value)
                                )
                            })
                            .collect();
                        format!(
                            "{} on {name} using {} ({})",
                            covering(*covers, "Index lookup"),
                            index.name,
                            pairs.join(", ")
                        )
                    }
                    ranges => {
                        let texts: Vec<String> = ranges
                            .iter()
                            .take(3)
                            .map(|range| self.range(table, index, range))
                            .collect();
                        let more = if ranges.len() > 3 {
                            format!(" OR ({} more)", ranges.len() - 3)
                        } else {
                            String::new()
                        };
                        format!(
                            "{} on {name} using {} over {}{more}",
                            covering(*covers, "Index range scan"),
                            index.name,
                            texts.join(" OR ")
                        )
                    }
                }
            }
        }
    }

    /// A range as a condition on the index's parts.
    fn range(&self, table: &Table, index: &Index, range: &KeyRange) -> String {
        let column = |at: usize| {
            index
                .parts
                .get(at)
                .map_or("?", |part| part.display_text(table))
        };
        let mut parts: Vec<String> = range
            .equal
            .iter()
            .enumerate()
            .map(|(at, part)| format!("{} = {}", column(at), self.names.text(&part.value)))
            .collect();
        let next = column(range.equal.len());
        let sign = |inclusive: bool| if inclusive { "<=" } else { "<" };
        let lower = range.lower.as_ref().map(|bound| {
            format!(
                "{} {} ",
                self.names.text(&bound.value),
                sign(bound.inclusive)
            )
        });
        let upper = range.upper.as_ref().map(|bound| {
            format!(
                " {} {}",
                sign(bound.inclusive),
                self.names.text(&bound.value)
            )
        });
        if lower.is_some() || upper.is_some() {
            parts.push(format!(
                "{}{next}{}",
                lower.unwrap_or_default(),
                upper.unwrap_or_default()
            ));
        }
        format!("({})", parts.join(" AND "))
    }
}
