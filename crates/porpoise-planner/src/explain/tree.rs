//! The tree form: a line an operator, each below the one it feeds (MySQL 8.4 manual, 15.8.2).

use std::fmt::Write;

use porpoise_catalog::{Index, Table};
use porpoise_expr::Expr;
use porpoise_expr::aggregate::SortKey;

use super::cost::{cost_of, scan_cost};
use super::names::Names;
use super::traditional::is_batched;
use crate::optimize;
use crate::plan::{
    Access, Group, JoinKind, KeyOperation, KeyRange, Measure, Node, Plan, PlanKind, Scan,
    SetOperator, Subplan, Taken, Window,
};

/// An operator's line.
pub(super) struct Line {
    pub(super) depth: usize,
    pub(super) text: String,
    /// What the planner thinks that it costs, and how many rows it yields.
    pub(super) estimate: Option<(f64, f64)>,
    /// What it did.
    pub(super) measure: Option<Measure>,
}

/// A plan as an indented tree of operators, with what they did where they were measured.
pub(super) fn tree(plan: &Plan, measures: &[Measure]) -> String {
    let mut text = String::new();
    for line in lines(plan, measures) {
        line.write(&mut text);
    }
    text
}

/// The operators of a plan, each before those below it.
pub(super) fn lines(plan: &Plan, measures: &[Measure]) -> Vec<Line> {
    let mut out = Tree {
        names: Names::new(plan),
        lines: Vec::new(),
        measures,
        number: None,
        told: Vec::new(),
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
    out.lines
}

impl Line {
    fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "{:indent$}-> {}",
            "",
            self.text,
            indent = self.depth * 4
        );
        if let Some((cost, rows)) = self.estimate {
            let _ = write!(out, "  (cost={} rows={})", figure(cost), figure(rows));
        }
        match self.measure {
            None => {}
            Some(Measure { loops: 0, .. }) => out.push_str(" (never executed)"),
            Some(measure) => {
                let [first, last] = measure.times_ms().map(significant);
                let rows = figure(measure.rows_each());
                let loops = measure.loops;
                let _ = write!(
                    out,
                    " (actual time={first}..{last} rows={rows} loops={loops})"
                );
            }
        }
        out.push('\n');
    }
}

struct Tree<'p> {
    names: Names<'p>,
    lines: Vec<Line>,
    measures: &'p [Measure],
    /// The number of the measured operator whose line comes next.
    number: Option<usize>,
    /// What is materialised, whose operators have their lines.
    told: Vec<usize>,
}

/// A number with three significant digits.
fn significant(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v if v >= 0.1 => format!("{v:.3}"),
        v if v >= 0.01 => format!("{v:.4}"),
        v if v >= 0.001 => format!("{v:.5}"),
        v => format!("{v:.6}"),
    }
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

/// How a read of an index is named, with what it spares.
fn covers(covering: bool, plain: &str) -> String {
    match covering {
        true => format!(
            "Covering {}{}",
            plain[..1].to_ascii_lowercase(),
            &plain[1..]
        ),
        false => plain.to_string(),
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
        let estimate = node.map(|node| (cost_of(node), optimize::rows_of(node)));
        self.push(depth, text.to_string(), estimate);
    }

    fn push(&mut self, depth: usize, text: String, estimate: Option<(f64, f64)>) {
        let number = match estimate {
            Some(_) => self.number.take(),
            None => None,
        };
        let measure = number.map(|number| self.measures.get(number).copied().unwrap_or_default());
        self.lines.push(Line {
            depth,
            text,
            estimate,
            measure,
        });
    }

    fn subquery(&mut self, subplan: &Subplan, depth: usize, place: &str) {
        let how = match (&subplan.outer_columns, subplan.correlated) {
            (_, false) => "run only once".to_string(),
            (None, true) => "dependent".to_string(),
            (Some(columns), true) => {
                let columns: Vec<String> = columns.iter().map(|c| self.names.text(c)).collect();
                format!("dependent; results kept by {}", columns.join(", "))
            }
        };
        self.line(
            depth,
            &format!("Select #{} (subquery {place}; {how})", subplan.number + 2),
            None,
        );
        self.node(&subplan.node, depth + 1);
    }

    fn subqueries_of<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
        depth: usize,
        place: &str,
    ) {
        for subplan in self.names.plan.subplans_in(exprs) {
            self.subquery(subplan, depth, place);
        }
    }

    /// A node, those below it, and the subqueries of its expressions.
    fn node(&mut self, node: &Node, depth: usize) {
        self.operator(node, depth);
        let place = match node {
            // These have their subqueries where their conditions are.
            Node::Filter { .. } | Node::Scan(_) => return,
            Node::NestedLoop { .. } | Node::HashJoin { .. } | Node::Virtual { .. } => {
                "in condition"
            }
            _ => "in projection",
        };
        self.subqueries_of(node.exprs(), depth + 1, place);
    }

    fn operator(&mut self, node: &Node, depth: usize) {
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
                let is_told = materialize.is_some_and(|number| self.told.contains(&number));
                let how = match (materialize, correlated) {
                    (_, true) => "Stream results, anew for each row from outer query",
                    (Some(_), _) if is_told => "Materialize (query plan printed elsewhere)",
                    (Some(_), _) => "Materialize",
                    (None, _) => "Stream results",
                };
                self.line(depth + 1, how, Some(node));
                if !is_told {
                    self.told.extend(materialize);
                    self.node(input, depth + 2);
                }
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
                self.subqueries_of(conditions, depth, "in condition");
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
                    JoinKind::Inner => "inner join",
                    JoinKind::Left => "left join",
                    JoinKind::Semi => "semijoin",
                    JoinKind::Anti => "antijoin",
                };
                let kind = match is_batched(left) {
                    true => format!("Batched key access {kind}"),
                    false => format!("Nested loop {kind}"),
                };
                self.line(depth, &kind, Some(node));
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
                refill,
                distinct,
                ..
            } => {
                let mut text = self.sort(keys, limit.as_deref(), *distinct);
                if refill.is_some() {
                    text = format!(
                        "Sort: {}, as far as rows are asked for",
                        self.names.keys(keys)
                    );
                }
                self.line(depth, &text, Some(node));
                self.node(input, depth + 1);
            }
            Node::Batch { input, keys, .. } => {
                let keys: Vec<String> = keys.iter().map(|k| self.names.text(&k.expr)).collect();
                let text = format!("Batch input rows, each batch sorted by {}", keys.join(", "));
                self.line(depth, &text, Some(node));
                self.node(input, depth + 1);
            }
            Node::Distinct {
                input,
                keys,
                is_weedout,
            } => {
                let text = match is_weedout {
                    true => {
                        let rows: Vec<String> = keys.iter().map(|k| self.names.text(k)).collect();
                        let rows = rows.join(", ");
                        format!("Remove duplicate rows by {rows} using temporary table (weedout)")
                    }
                    false => "Remove duplicates by a hash table of the rows seen".to_string(),
                };
                self.line(depth, &text, Some(node));
                self.node(input, depth + 1);
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
            Node::Measured { input, number } => {
                self.number = Some(*number);
                self.node(input, depth);
                self.number = None;
            }
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
            kept,
            ..
        } = node
        else {
            return;
        };
        let hash = match kept {
            Some(_) => "Hash (kept for all executions)",
            None => "Hash",
        };
        let kind = match kind {
            JoinKind::Inner => "Inner hash join",
            JoinKind::Left => "Left hash join",
            JoinKind::Semi => "Hash semijoin",
            JoinKind::Anti => "Hash antijoin",
        };
        let pairs = left_keys.iter().zip(right_keys);
        let pairs =
            pairs.map(|(a, b)| format!("({} = {})", self.names.text(a), self.names.text(b)));
        let keys = match left_keys.is_empty() {
            true => "(no condition)".to_string(),
            false => pairs.collect::<Vec<_>>().join(", "),
        };
        let mut text = format!("{kind} {keys}");
        if !condition.is_empty() {
            let _ = write!(
                text,
                ", extra conditions: {}",
                self.names.conditions(condition)
            );
        }
        self.line(depth, &text, Some(node));
        self.node(left, depth + 1);
        self.line(depth + 1, hash, None);
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
            (SetOperator::Union, true) => {
                let text = "Append, without duplicates by a hash table of the rows seen";
                self.line(depth, text, Some(node));
            }
            (op, _) => {
                let (table, what) = match op {
                    SetOperator::Intersect => ("<intersect temporary>", "Intersect materialize"),
                    _ => ("<except temporary>", "Except materialize"),
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
        // Every function is computed for a partition at a time.
        self.line(depth, "Window aggregate with buffering", Some(node));
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
        let mut text = self.access(scan, &name);
        if scan.reverse && !matches!(scan.access, Access::Point { .. }) {
            text.push_str(" (reverse)");
        }
        if let Some(of_entries) = &scan.index_condition {
            let conditions = self.names.conditions(&of_entries.conditions);
            let _ = write!(text, ", with index condition: {conditions}");
        }
        let estimate = (scan_cost(scan), scan.rows_estimate.max(1.0));
        self.push(below, text, Some(estimate));
        if let Access::Merge { sources, .. } = &scan.access {
            for source in sources {
                let index = &scan.table.indexes[source.index];
                let ranges = self.ranges(&scan.table, index, &source.ranges);
                let text = format!(
                    "Index range scan on {name} using {} over {ranges}",
                    index.name
                );
                self.line(below + 1, &text, None);
            }
        }
        let place = match scan.filter.is_empty() && !scan.access.exprs().is_empty() {
            true => "in key",
            false => "in condition",
        };
        let exprs = scan.filter.iter().chain(scan.access.exprs());
        self.subqueries_of(exprs, depth + 1, place);
    }

    /// How a scan reaches its rows.
    fn access(&self, scan: &Scan, name: &str) -> String {
        let table = &scan.table;
        match &scan.access {
            Access::Full => format!("Table scan on {name}"),
            Access::Point {
                index,
                key,
                covering,
            } => {
                let index = &table.indexes[*index];
                let what = match covering {
                    true => "Single-row covering index lookup",
                    false => "Single-row index lookup",
                };
                let pairs = self.pairs(table, index, key.iter());
                format!("{what} on {name} using {} ({pairs})", index.name)
            }
            Access::Index {
                index,
                ranges,
                covering,
            } => {
                let index = &table.indexes[*index];
                let on = format!("on {name} using {}", index.name);
                match &ranges[..] {
                    [range] if range.is_all() => {
                        format!("{} {on}", covers(*covering, "Index scan"))
                    }
                    [range] if !range.is_bounded() => {
                        let values = range.equal.iter().map(|part| &part.value);
                        let pairs = self.pairs(table, index, values);
                        format!("{} {on} ({pairs})", covers(*covering, "Index lookup"))
                    }
                    ranges => format!(
                        "{} {on} over {}",
                        covers(*covering, "Index range scan"),
                        self.ranges(table, index, ranges)
                    ),
                }
            }
            Access::Merge { operation, sources } => {
                let in_order = sources.iter().all(|source| source.is_in_key_order(table));
                match (operation, in_order) {
                    (KeyOperation::Union, true) => "Deduplicate rows sorted by row ID",
                    (KeyOperation::Union, false) => "Sort-deduplicate by row ID",
                    (KeyOperation::Intersection, _) => "Intersect rows sorted by row ID",
                }
                .to_string()
            }
            Access::Skip(skip) => {
                let index = &table.indexes[skip.index];
                let purpose = match skip.taken {
                    Taken::All => "",
                    Taken::Ends { .. } => " for grouping",
                };
                let mut text = format!(
                    "{}{purpose} on {name} using {}",
                    covers(skip.covering, "Index skip scan"),
                    index.name
                );
                let inner = skip.inner.iter().map(|range| (skip.prefix, range));
                let bounds = skip.ranges.iter().map(|range| (0, range)).chain(inner);
                let bounds: Vec<String> = bounds
                    .filter(|(_, range)| !range.is_all())
                    .map(|(first, range)| self.range(table, index, first, range))
                    .collect();
                if !bounds.is_empty() {
                    let _ = write!(text, " over {}", bounds.join(", "));
                }
                text
            }
        }
    }

    /// Parts of an index with the values that they are looked up by.
    fn pairs<'e>(
        &self,
        table: &Table,
        index: &Index,
        values: impl Iterator<Item = &'e Expr>,
    ) -> String {
        let pairs = index.parts.iter().zip(values).map(|(part, value)| {
            let name = part.display_text(table);
            format!("{name}={}", self.names.text(value))
        });
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// The first few ranges of an index.
    fn ranges(&self, table: &Table, index: &Index, ranges: &[KeyRange]) -> String {
        const SHOWN_MAX: usize = 3;
        let shown = ranges.iter().take(SHOWN_MAX);
        let mut texts: Vec<String> = shown
            .map(|range| self.range(table, index, 0, range))
            .collect();
        if ranges.len() > SHOWN_MAX {
            texts.push(format!("({} more)", ranges.len() - SHOWN_MAX));
        }
        texts.join(" OR ")
    }

    /// A range as a condition on the index's parts, from the `first` one on.
    fn range(&self, table: &Table, index: &Index, first: usize, range: &KeyRange) -> String {
        let column = |at: usize| {
            index
                .parts
                .get(first + at)
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
