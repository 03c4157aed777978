//! `EXPLAIN FORMAT=JSON`: query blocks within each other, and in each its operations down to the
//! tables.
//!
//! The members and their order are those of MySQL's first version of the format, which is its
//! default (MySQL 8.4 manual, 15.8.2 and the variable `explain_json_format_version`). A table's
//! object has what its row of the traditional form has.
//!
//! ```text
//! query_block            select_id, cost_info, then the topmost operation
//!   ordering_operation   what it does, then the operation below it
//!     nested_loop        the tables in the order in which they are read
//!       table            how it is read, its condition, the blocks of its subqueries
//! ```

use porpoise_expr::Expr;

use super::cost::cost_of;
use super::traditional::{Row, Traditional, is_batched, merge_text};
use crate::json_text::{Item, Members};
use crate::optimize;
use crate::plan::{
    Access, JoinKind, Node, OnDuplicate, Plan, PlanKind, Scan, SetOperator, Subplan,
};

/// A plan as a JSON document, indented by two spaces.
pub(super) fn json(plan: &Plan) -> String {
    let mut out = Document {
        blocks: Traditional::new(plan),
        change: match &plan.kind {
            PlanKind::Update(_) => Some("update"),
            PlanKind::Delete(_) => Some("delete"),
            PlanKind::Query(_) | PlanKind::Insert(_) => None,
        },
    };
    let mut block = match plan.root() {
        Some((node, output)) => out.block(node, &output, 1),
        None => vec![("select_id", Item::Number(1))],
    };
    if let PlanKind::Insert(insert) = &plan.kind {
        let from: Members = block
            .drain(..)
            .filter(|(name, _)| *name != "select_id")
            .collect();
        block.push(("select_id", Item::Number(1)));
        let word = match insert.duplicates {
            OnDuplicate::Replace => "replace",
            OnDuplicate::Error | OnDuplicate::Update { .. } => "insert",
        };
        let table = vec![
            (word, Item::Bool(true)),
            ("table_name", text(&insert.table.name)),
            ("access_type", text("ALL")),
        ];
        block.push(("table", Item::Object(table)));
        if !from.is_empty() {
            block.push(("insert_from", Item::Object(from)));
        }
    }
    Item::Object(vec![("query_block", Item::Object(block))]).document(Some(0))
}

/// The document of a statement that there is no plan of.
pub(super) fn message(message: &str) -> String {
    let block = vec![("message", text(message))];
    Item::Object(vec![("query_block", Item::Object(block))]).document(Some(0))
}

struct Document<'p> {
    blocks: Traditional<'p>,
    /// What happens to the rows of the statement's own block.
    change: Option<&'static str>,
}

fn text(text: &str) -> Item {
    Item::Text(text.to_string())
}

fn texts(list: Vec<String>) -> Item {
    Item::Array(list.into_iter().map(Item::Text).collect())
}

fn cost(cost: f64) -> Item {
    Item::Text(format!("{cost:.2}"))
}

impl Document<'_> {
    /// A query block's members.
    fn block(&mut self, node: &Node, output: &[&Expr], id: u64) -> Members {
        let operation = self.operation(node, id);
        // The blocks of a set operation have a number and a cost each, the operation has none.
        let mut block = Vec::new();
        if !matches!(node, Node::SetOperation { .. } | Node::Recursive { .. }) {
            block.push(("select_id", Item::Number(id)));
            let cost_info = vec![("query_cost", cost(cost_of(node)))];
            block.push(("cost_info", Item::Object(cost_info)));
        }
        block.extend(operation);
        let found = self.blocks.names.plan.subplans_in(output.iter().copied());
        self.subqueries("select_list_subqueries", found, &mut block);
        block
    }

    /// A block that stands where a value or a table does, by itself.
    fn inner_block(&mut self, node: &Node, output: &[Expr], dependent: bool) -> Members {
        let id = self.blocks.take_id();
        let block = self.block(node, &output.iter().collect::<Vec<_>>(), id);
        Self::specification(block, dependent)
    }

    fn specification(block: Members, dependent: bool) -> Members {
        vec![
            ("dependent", Item::Bool(dependent)),
            ("cacheable", Item::Bool(!dependent)),
            ("query_block", Item::Object(block)),
        ]
    }

    fn subqueries(&mut self, place: &'static str, found: Vec<&Subplan>, into: &mut Members) {
        if found.is_empty() {
            return;
        }
        let blocks = found.into_iter().map(|subplan| {
            Item::Object(self.inner_block(&subplan.node, &subplan.output, subplan.correlated))
        });
        let told = into.iter_mut().find_map(|(name, item)| match item {
            Item::Array(told) if *name == place => Some(told),
            _ => None,
        });
        match told {
            Some(told) => told.extend(blocks),
            None => into.push((place, Item::Array(blocks.collect()))),
        }
    }

    /// An operation of a block, with those below it.
    fn operation(&mut self, node: &Node, id: u64) -> Members {
        let flag = |name, value| (name, Item::Bool(value));
        let (name, mut members, input) = match node {
            Node::One => return vec![("message", text("No tables used"))],
            Node::Empty => return vec![("message", text("Impossible WHERE"))],
            Node::Limit { input, .. } | Node::Project { input, .. } => {
                return self.operation(input, id);
            }
            Node::Sort { input, keys, .. } if keys.is_empty() => {
                return self.operation(input, id);
            }
            Node::Sort {
                input, distinct, ..
            } => {
                let name = match distinct {
                    true => "duplicates_removal",
                    false => "ordering_operation",
                };
                (name, vec![flag("using_filesort", true)], &**input)
            }
            Node::Distinct { input, .. } => {
                let how = vec![
                    flag("using_temporary_table", true),
                    flag("using_filesort", false),
                ];
                ("duplicates_removal", how, &**input)
            }
            Node::Group(group) if group.scalar => return self.operation(&group.input, id),
            Node::Group(group) => {
                let mut how = Vec::new();
                if !group.ordered {
                    how.push(flag("using_temporary_table", true));
                }
                how.push(flag("using_filesort", false));
                ("grouping_operation", how, &group.input)
            }
            Node::Window(window) => {
                let mut how = vec![("name", text("<unnamed window>"))];
                if !window.order.is_empty() || !window.partition.is_empty() {
                    how.push(flag("using_filesort", true));
                }
                let windows = Item::Array(vec![Item::Object(how)]);
                ("windowing", vec![("windows", windows)], &window.input)
            }
            Node::Filter { input, conditions } if is_above_tables(input) => {
                let mut members = self.operation(input, id);
                let found = self.blocks.names.plan.subplans_in(conditions);
                self.subqueries("having_subqueries", found, &mut members);
                return members;
            }
            Node::SetOperation {
                inputs,
                op,
                distinct,
                ..
            } => return self.set_operation(inputs, *op, *distinct, id),
            Node::Recursive {
                seed,
                seed_output,
                step,
                step_output,
                distinct,
                ..
            } => {
                let output: Vec<&Expr> = seed_output.iter().collect();
                let seed = Self::specification(self.block(seed, &output, id), false);
                let mut step = self.inner_block(step, step_output, true);
                if let Some((_, Item::Object(block))) = step.last_mut() {
                    block.insert(1, flag("recursive", true));
                }
                let union = vec![
                    flag("using_temporary_table", *distinct),
                    (
                        "query_specifications",
                        Item::Array(vec![Item::Object(seed), Item::Object(step)]),
                    ),
                ];
                return vec![("union_result", Item::Object(union))];
            }
            tables => {
                let mut list = Vec::new();
                self.tables(tables, id, &mut list);
                return match list.len() {
                    0 => Vec::new(),
                    1 => list
                        .pop()
                        .map(|table| vec![("table", Item::Object(table))])
                        .unwrap_or_default(),
                    _ => {
                        let tables = list
                            .into_iter()
                            .map(|table| Item::Object(vec![("table", Item::Object(table))]));
                        vec![("nested_loop", Item::Array(tables.collect()))]
                    }
                };
            }
        };
        members.extend(self.operation(input, id));
        vec![(name, Item::Object(members))]
    }

    fn set_operation(
        &mut self,
        inputs: &[(Node, Vec<Expr>)],
        op: SetOperator,
        distinct: bool,
        id: u64,
    ) -> Members {
        let mut ids = Vec::new();
        let mut blocks = Vec::new();
        for (number, (node, output)) in inputs.iter().enumerate() {
            let id = match number {
                0 => id,
                _ => self.blocks.take_id(),
            };
            ids.push(id.to_string());
            let block = self.block(node, &output.iter().collect::<Vec<_>>(), id);
            blocks.push(Item::Object(Self::specification(block, false)));
        }
        let (name, word) = match op {
            SetOperator::Union => ("union_result", "union"),
            SetOperator::Intersect => ("intersect_result", "intersect"),
            SetOperator::Except => ("except_result", "except"),
        };
        let temporary = distinct || op != SetOperator::Union;
        let mut result = vec![("using_temporary_table", Item::Bool(temporary))];
        if temporary {
            let table = format!("<{word}{}>", ids.join(","));
            result.push(("table_name", Item::Text(table)));
            result.push(("access_type", text("ALL")));
        }
        result.push(("query_specifications", Item::Array(blocks)));
        vec![(name, Item::Object(result))]
    }

    /// The tables below a node, in the order in which they are read.
    fn tables(&mut self, node: &Node, id: u64, list: &mut Vec<Members>) {
        match node {
            Node::One => {}
            Node::Scan(scan) => {
                let table = self.scan(scan, id);
                list.push(table);
            }
            Node::Virtual { table, filter, .. } => {
                let mut members = self.plain(table.name);
                self.condition(filter, &mut members);
                list.push(members);
            }
            Node::JsonTable { slot, .. } => {
                let name = self.blocks.names.of(*slot).to_string();
                let mut members = self.plain(&name);
                members.push(("table_function", text("json_table")));
                members.push(("using_temporary_table", Item::Bool(true)));
                list.push(members);
            }
            Node::Values { slot, .. } => {
                let name = self.blocks.names.of(*slot).to_string();
                list.push(self.plain(&name));
            }
            Node::Working { slot, .. } => {
                let name = self.blocks.names.of(*slot).to_string();
                list.push(self.plain(&name));
            }
            Node::Derived {
                slot,
                input,
                output,
                materialize,
                correlated,
            } => {
                let name = self.blocks.names.of(*slot).to_string();
                let mut members = self.plain(&name);
                members.push(("rows_examined_per_scan", rows(optimize::rows_of(input))));
                let mut made = vec![("using_temporary_table", Item::Bool(materialize.is_some()))];
                made.extend(self.inner_block(input, output, *correlated));
                members.push(("materialized_from_subquery", Item::Object(made)));
                list.push(members);
            }
            Node::Filter { input, conditions } => {
                let from = list.len();
                self.tables(input, id, list);
                if let Some(last) = list[from..].last_mut() {
                    self.condition(conditions, last);
                }
            }
            Node::NestedLoop {
                left,
                right,
                kind,
                condition,
                ..
            } => {
                self.tables(left, id, list);
                let at = list.len();
                let before = list.last().and_then(name_of);
                self.tables(right, id, list);
                if let Some(table) = list.get_mut(at) {
                    if is_batched(left) {
                        table.push(("using_join_buffer", text("Batched Key Access")));
                    }
                    match (kind, before) {
                        (JoinKind::Semi, Some(name)) => {
                            table.push(("first_match", Item::Text(name)));
                        }
                        (JoinKind::Anti, _) => table.push(("not_exists", Item::Bool(true))),
                        _ => {}
                    }
                    self.condition(condition, table);
                }
            }
            Node::HashJoin {
                left,
                right,
                left_keys,
                right_keys,
                condition,
                ..
            } => {
                self.tables(left, id, list);
                let at = list.len();
                self.tables(right, id, list);
                if let Some(table) = list.get_mut(at) {
                    table.push(("using_join_buffer", text("hash join")));
                    let names = &self.blocks.names;
                    let mut parts: Vec<String> = left_keys
                        .iter()
                        .zip(right_keys)
                        .map(|(a, b)| format!("({} = {})", names.text(b), names.text(a)))
                        .collect();
                    parts.extend(condition.iter().map(|condition| names.text(condition)));
                    attach(&parts.join(" and "), table);
                    let found = self.blocks.names.plan.subplans_in(condition);
                    self.subqueries("attached_subqueries", found, table);
                }
            }
            node => node
                .children()
                .into_iter()
                .for_each(|child| self.tables(child, id, list)),
        }
    }

    /// A table of which is known only that all its rows are read.
    fn plain(&self, name: &str) -> Members {
        vec![("table_name", text(name)), ("access_type", text("ALL"))]
    }

    fn scan(&mut self, scan: &Scan, id: u64) -> Members {
        let row: Row = self.blocks.scan(scan, id, "SIMPLE");
        let mut members = Vec::new();
        if let (1, Some(change)) = (id, self.change) {
            members.push((change, Item::Bool(true)));
        }
        members.push(("table_name", text(row.table.as_deref().unwrap_or_default())));
        members.push(("access_type", text(row.access.unwrap_or("ALL"))));
        if !row.possible_keys.is_empty() {
            members.push(("possible_keys", texts(row.possible_keys)));
        }
        if let Access::Merge { operation, sources } = &scan.access {
            let key = merge_text(&scan.table, *operation, sources);
            members.push(("key", Item::Text(key)));
        } else if let (Some(key), Some((index, _))) = (row.key, scan.access.single_index()) {
            members.push(("key", Item::Text(key)));
            let parts = match &scan.access {
                Access::Point { key, .. } => key.len(),
                _ => scan.key_parts_used,
            };
            let parts = scan.table.indexes[index].parts.iter().take(match parts {
                0 => usize::MAX,
                parts => parts,
            });
            let used = parts.map(|part| part.display_text(&scan.table).to_string());
            members.push(("used_key_parts", texts(used.collect())));
        }
        if let Some(length) = row.key_len {
            members.push(("key_length", Item::Text(length)));
        }
        if !row.reference.is_empty() {
            members.push(("ref", texts(row.reference)));
        }
        let examined = row.rows.unwrap_or(1.0);
        members.push(("rows_examined_per_scan", rows(examined)));
        members.push(("rows_produced_per_join", rows(examined * scan.filtered)));
        members.push(("filtered", cost(row.filtered.unwrap_or(100.0))));
        const FLAGS: [(&str, &str); 4] = [
            ("Backward index scan", "backward_index_scan"),
            ("Using index", "using_index"),
            ("Using index for group-by", "using_index_for_group_by"),
            ("Using index for skip scan", "using_index_for_skip_scan"),
        ];
        for (note, member) in FLAGS {
            if row.extra.iter().any(|told| told == note) {
                members.push((member, Item::Bool(true)));
            }
        }
        if let Some(of_entries) = &scan.index_condition {
            let conditions = self.blocks.names.conditions(&of_entries.conditions);
            members.push(("index_condition", Item::Text(conditions)));
        }
        let whole = cost_of(&Node::Scan(Box::new(scan.clone())));
        let cost_info = vec![("read_cost", cost(whole)), ("prefix_cost", cost(whole))];
        members.push(("cost_info", Item::Object(cost_info)));
        let used = scan.table.columns.iter().zip(&scan.columns_read);
        let used = used
            .filter(|(column, read)| **read && !column.hidden)
            .map(|(column, _)| column.name.to_string());
        members.push(("used_columns", texts(used.collect())));
        self.condition(&scan.filter, &mut members);
        let found = self.blocks.names.plan.subplans_in(scan.access.exprs());
        self.subqueries("attached_subqueries", found, &mut members);
        members
    }

    /// A condition that a table's rows have to meet, and the blocks of the subqueries in it.
    fn condition(&mut self, conditions: &[Expr], table: &mut Members) {
        if conditions.is_empty() {
            return;
        }
        attach(&self.blocks.names.conditions(conditions), table);
        let found = self.blocks.names.plan.subplans_in(conditions);
        self.subqueries("attached_subqueries", found, table);
    }
}

/// Whether a node's rows are made of those of tables, grouped or computed, so that a condition on
/// them is a HAVING.
fn is_above_tables(node: &Node) -> bool {
    match node {
        Node::Group(_) | Node::Window(_) | Node::Project { .. } | Node::SetOperation { .. } => true,
        Node::Sort { input, .. } | Node::Filter { input, .. } | Node::Limit { input, .. } => {
            is_above_tables(input)
        }
        _ => false,
    }
}

fn rows(rows: f64) -> Item {
    Item::Number(rows.round().max(1.0) as u64)
}

fn name_of(table: &Members) -> Option<String> {
    table.iter().find_map(|(name, item)| match item {
        Item::Text(text) if *name == "table_name" => Some(text.clone()),
        _ => None,
    })
}

/// Adds to the `attached_condition` of a table.
fn attach(condition: &str, table: &mut Members) {
    let told = table.iter_mut().find_map(|(name, item)| match item {
        Item::Text(text) if *name == "attached_condition" => Some(text),
        _ => None,
    });
    match told {
        Some(text) => *text = format!("({text} and {condition})"),
        None => table.push(("attached_condition", text(condition))),
    }
}
