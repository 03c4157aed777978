//! EXPLAIN: plans as people read them.
//!
//! The traditional form has a row a table, in the order in which tables are read; the tree form has a line an
//! operator, each below the one it feeds (MySQL 8.4 manual, 15.8.2 and 10.8.2). The JSON form is a module of its own.

mod json;

use std::fmt::Write;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Index, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::ResultColumn;
use porpoise_expr::aggregate::Aggregate;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{ColumnNames, Expr, ExprKind, Slot};
use porpoise_sql::ast;
use porpoise_types::{Charset, DataType, IntWidth, Value};

use crate::plan::{
    Access, FrameBound, JoinKind, KeyRange, Node, Plan, PlanKind, Scan, SetOperator, Subplan,
};
use crate::{optimize, plan};

/// The statement that is to be explained.
///
/// # Errors
/// 1235 for forms of EXPLAIN that there aren't.
pub fn explained_statement(explain: &ast::Explain) -> Result<&ast::Statement> {
    let statement = match &explain.target {
        ast::ExplainTarget::Statement(statement) => statement,
        ast::ExplainTarget::Connection(_) => {
            return Err(Error::not_supported_yet("EXPLAIN FOR CONNECTION"));
        }
    };
    if explain.analyze {
        return Err(Error::not_supported_yet("EXPLAIN ANALYZE"));
    }
    if explain.into.is_some() {
        return Err(Error::not_supported_yet("EXPLAIN INTO"));
    }
    Ok(statement)
}

/// The columns and rows of an EXPLAIN, in the format it asks for.
pub fn explain(
    plan: &Plan,
    statement: &ast::Statement,
    format: Option<ast::ExplainFormat>,
) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    let text = |text: String| {
        let column = ResultColumn::expression("EXPLAIN", DataType::varchar(16_383), false);
        (vec![column], vec![vec![Value::from(text)]])
    };
    match format {
        None | Some(ast::ExplainFormat::Traditional) => {
            (traditional_columns(), traditional(plan, statement))
        }
        Some(ast::ExplainFormat::Tree) => text(tree(plan)),
        Some(ast::ExplainFormat::Json) => text(json::json(plan, statement)),
    }
}

fn traditional_columns() -> Vec<ResultColumn> {
    let text = |name: &str, length: u32, nullable: bool| {
        ResultColumn::expression(name, DataType::varchar(length), nullable)
    };
    vec![
        ResultColumn::expression("id", DataType::BIGINT_UNSIGNED, true),
        text("select_type", 19, false),
        text("table", 64, true),
        text("partitions", 4096, true),
        text("type", 10, true),
        text("possible_keys", 4096, true),
        text("key", 64, true),
        text("key_len", 4096, true),
        text("ref", 2048, true),
        ResultColumn::expression("rows", DataType::BIGINT_UNSIGNED, true),
        ResultColumn::expression(
            "filtered",
            DataType::Double {
                unsigned: false,
                zerofill: false,
                digits: Some((5, 2)),
            },
            true,
        ),
        text("Extra", 255, true),
    ]
}

/// Names of a plan's columns: `alias.column`.
struct Names<'p> {
    plan: &'p Plan,
    tables: Vec<Option<Arc<Table>>>,
}

impl<'p> Names<'p> {
    fn new(plan: &'p Plan) -> Names<'p> {
        let mut tables = vec![None; plan.slots.len()];
        for_each_node(plan, &mut |node| {
            if let Node::Scan(scan) = node {
                tables[scan.slot.0 as usize] = Some(scan.table.clone());
            }
        });
        Names { plan, tables }
    }

    fn of(&self, slot: Slot) -> &str {
        self.plan
            .slots
            .get(slot.0 as usize)
            .map_or("", |slot| &slot.name)
    }
}

impl ColumnNames for Names<'_> {
    fn write_column(&self, slot: Slot, column: usize, out: &mut String) {
        let table = self.tables.get(slot.0 as usize).and_then(Option::as_ref);
        let name = match table {
            Some(table) => table.columns.get(column).map(|column| column.name.as_str()),
            None => self
                .plan
                .column_names
                .get(slot.0 as usize)
                .and_then(|names| names.get(column))
                .map(CompactString::as_str),
        };
        // What the grouping computed is known by what it computes.
        if name.is_none()
            && let Some(text) = self.computed(slot, column)
        {
            out.push_str(&text);
            return;
        }
        let _ = write!(out, "{}.{}", self.of(slot), name.unwrap_or("?"));
    }
}

impl Names<'_> {
    fn computed(&self, slot: Slot, column: usize) -> Option<String> {
        let mut found = None;
        for_each_node(self.plan, &mut |node| match node {
            Node::Group(group) if group.slot == slot => {
                found = Some(match group.keys.get(column) {
                    Some(key) => self.text(key),
                    None => group
                        .aggregates
                        .get(column - group.keys.len())
                        .map_or("grouping()".to_string(), |aggregate| {
                            self.aggregate(aggregate)
                        }),
                });
            }
            Node::Window(window) if window.slot == slot => {
                found = window.functions.get(column).map(|call| match &call.kind {
                    plan::WindowKind::Aggregate(function) => {
                        format!("{}() OVER ", function.name.to_ascii_lowercase())
                    }
                    kind => format!("{kind:?}() OVER "),
                });
            }
            Node::Project {
                slot: of, output, ..
            } if *of == slot => found = output.get(column).map(|expr| self.text(expr)),
            _ => {}
        });
        found
    }

    fn text(&self, expr: &Expr) -> String {
        let mut out = String::new();
        expr.write_sql(self, &mut out);
        out
    }

    fn aggregate(&self, aggregate: &Aggregate) -> String {
        let mut out = format!("{}(", aggregate.function.name.to_ascii_lowercase());
        if aggregate.distinct {
            out.push_str("distinct ");
        }
        if aggregate.arguments.is_empty() {
            out.push('0');
        }
        let joined = aggregate
            .arguments
            .len()
            .saturating_sub(aggregate.order.len());
        out.push_str(&self.list(&aggregate.arguments[..joined], ","));
        out.push(')');
        out
    }

    fn list(&self, exprs: &[Expr], between: &str) -> String {
        exprs
            .iter()
            .map(|expr| self.text(expr))
            .collect::<Vec<_>>()
            .join(between)
    }

    fn conditions(&self, conditions: &[Expr]) -> String {
        match conditions {
            [only] => self.text(only),
            all => format!("({})", self.list(all, " and ")),
        }
    }

    fn keys(&self, keys: &[SortKey]) -> String {
        let one = |key: &SortKey| {
            format!(
                "{}{}",
                self.text(&key.expr),
                if key.descending { " DESC" } else { "" }
            )
        };
        keys.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The nodes directly below a node.
pub(super) fn children(node: &Node) -> Vec<&Node> {
    match node {
        Node::One
        | Node::Empty
        | Node::Scan(_)
        | Node::Values { .. }
        | Node::JsonTable { .. }
        | Node::Virtual { .. }
        | Node::Working { .. } => Vec::new(),
        Node::Derived { input, .. }
        | Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Limit { input, .. } => vec![input],
        Node::Recursive { seed, step, .. } => vec![seed, step],
        Node::NestedLoop { left, right, .. } | Node::HashJoin { left, right, .. } => {
            vec![left, right]
        }
        Node::Group(group) => vec![&group.input],
        Node::SetOperation { inputs, .. } => inputs.iter().map(|(node, _)| node).collect(),
        Node::Window(window) => vec![&window.input],
    }
}

/// The expressions of a node itself.
fn exprs(node: &Node) -> Vec<&Expr> {
    match node {
        Node::Scan(scan) => scan.filter.iter().collect(),
        Node::Virtual { filter, .. } => filter.iter().collect(),
        Node::Values { rows, .. } => rows.iter().flatten().collect(),
        Node::JsonTable { doc, .. } => vec![doc],
        Node::Derived { output, .. } | Node::Project { output, .. } => output.iter().collect(),
        Node::Filter { conditions, .. } => conditions.iter().collect(),
        Node::NestedLoop { condition, .. } => condition.iter().collect(),
        Node::HashJoin {
            condition,
            left_keys,
            right_keys,
            ..
        } => condition
            .iter()
            .chain(left_keys)
            .chain(right_keys)
            .collect(),
        Node::Group(group) => group
            .keys
            .iter()
            .chain(
                group
                    .aggregates
                    .iter()
                    .flat_map(|aggregate| &aggregate.arguments),
            )
            .collect(),
        Node::Sort { keys, .. } => keys.iter().map(|key| &key.expr).collect(),
        Node::Distinct { keys, .. } => keys.iter().collect(),
        Node::SetOperation { inputs, .. } => inputs.iter().flat_map(|(_, output)| output).collect(),
        _ => Vec::new(),
    }
}

/// The plans of the subqueries in expressions.
fn subplans<'p, 'e>(plan: &'p Plan, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<&'p Subplan> {
    fn add<'p>(plan: &'p Plan, expr: &Expr, found: &mut Vec<&'p Subplan>) {
        if let ExprKind::Subquery { number, .. } = expr.kind {
            found.extend(plan.subplan(number));
        }
        expr.for_each_child(&mut |child| add(plan, child, found));
    }
    let mut found = Vec::new();
    for expr in exprs {
        add(plan, expr, &mut found);
    }
    found
}

fn root(plan: &Plan) -> Option<(&Node, Vec<&Expr>)> {
    match &plan.kind {
        PlanKind::Query(query) => Some((&query.node, query.output.iter().collect())),
        PlanKind::Update(update) => {
            let values = update
                .targets
                .iter()
                .flat_map(|target| &target.assignments)
                .filter_map(|assignment| assignment.value.as_ref());
            Some((&update.node, values.collect()))
        }
        PlanKind::Delete(delete) => Some((&delete.node, Vec::new())),
        PlanKind::Insert(insert) => match &insert.source {
            plan::InsertSource::Query { node, output } => Some((node, output.iter().collect())),
            plan::InsertSource::Values(_) | plan::InsertSource::Load(_) => None,
        },
    }
}

fn for_each_node<'p>(plan: &'p Plan, visit: &mut dyn FnMut(&'p Node)) {
    fn below<'p>(plan: &'p Plan, node: &'p Node, visit: &mut dyn FnMut(&'p Node)) {
        visit(node);
        for subplan in subplans(plan, exprs(node)) {
            below(plan, &subplan.node, visit);
        }
        for child in children(node) {
            below(plan, child, visit);
        }
    }
    if let Some((node, output)) = root(plan) {
        below(plan, node, visit);
        for subplan in subplans(plan, output) {
            below(plan, &subplan.node, visit);
        }
    }
}

// ---------------------------------------------------------------------------------------------------------
// The traditional form
// ---------------------------------------------------------------------------------------------------------

/// A row of the traditional form.
#[derive(Default)]
struct Row {
    id: Option<u64>,
    select_type: &'static str,
    table: Option<String>,
    access: Option<&'static str>,
    possible_keys: Vec<String>,
    key: Option<String>,
    key_len: Option<usize>,
    reference: Vec<String>,
    rows: Option<f64>,
    filtered: Option<f64>,
    extra: Vec<String>,
}

struct Traditional<'p> {
    names: Names<'p>,
    rows: Vec<Row>,
    next_id: u64,
}

fn traditional(plan: &Plan, statement: &ast::Statement) -> Vec<Vec<Value>> {
    let mut out = Traditional {
        names: Names::new(plan),
        rows: Vec::new(),
        next_id: 2,
    };
    let kind = match statement {
        ast::Statement::Update(_) => "UPDATE",
        ast::Statement::Delete(_) => "DELETE",
        ast::Statement::Insert(insert) => {
            let name = insert.table.name.to_string();
            let select_type = if insert.replace { "REPLACE" } else { "INSERT" };
            let table = name.trim_matches('`').to_string();
            out.rows.push(Row::all_of(1, select_type, table));
            "SIMPLE"
        }
        _ => "SIMPLE",
    };
    if let Some((node, output)) = root(plan) {
        let simple = !has_blocks(node) && output.iter().all(|expr| !expr.has_subquery());
        let select_type = if kind == "SIMPLE" && !simple {
            "PRIMARY"
        } else {
            kind
        };
        out.block(node, &output, 1, select_type);
    }
    out.rows.into_iter().map(Row::values).collect()
}

/// Whether a plan has more than one query block.
fn has_blocks(node: &Node) -> bool {
    matches!(
        node,
        Node::Derived { .. } | Node::SetOperation { .. } | Node::Recursive { .. }
    ) || exprs(node).iter().any(|expr| expr.has_subquery())
        || children(node).into_iter().any(has_blocks)
}

/// A query block to be told of after the one that holds it: what makes its rows, what it gives, its number and its kind.
type Pending<'n> = (&'n Node, Vec<&'n Expr>, u64, &'static str);

impl<'p> Traditional<'p> {
    /// Subqueries come after the block that they are in.
    fn hold_back(&mut self, found: Vec<&'p Subplan>, pending: &mut Vec<Pending<'p>>) {
        for subplan in found {
            let kind = if subplan.correlated {
                "DEPENDENT SUBQUERY"
            } else {
                "SUBQUERY"
            };
            pending.push((
                &subplan.node,
                subplan.output.iter().collect(),
                self.take_id(),
                kind,
            ));
        }
    }

    /// A query block: its tables, then the blocks it holds.
    fn block(&mut self, node: &'p Node, output: &[&'p Expr], id: u64, select_type: &'static str) {
        let first = self.rows.len();
        let mut pending = Vec::new();
        self.tables(node, id, select_type, &mut pending);
        let mut notes = Vec::new();
        notes_of(node, &mut notes);
        match self.rows.get_mut(first) {
            Some(row) => row.extra.extend(notes.iter().map(|note| note.to_string())),
            None => {
                let extra = match node_is_empty(node) {
                    true => "Impossible WHERE",
                    false => "No tables used",
                };
                self.rows.push(Row {
                    id: Some(id),
                    select_type,
                    extra: vec![extra.to_string()],
                    ..Row::default()
                });
            }
        }
        let found = subplans(self.names.plan, output.iter().copied());
        self.hold_back(found, &mut pending);
        for (node, output, id, kind) in pending {
            self.block(node, &output, id, kind);
        }
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn tables(
        &mut self,
        node: &'p Node,
        id: u64,
        select_type: &'static str,
        pending: &mut Vec<Pending<'p>>,
    ) {
        match node {
            Node::Scan(scan) => {
                let row = self.scan(scan, id, select_type);
                self.rows.push(row);
            }
            Node::Virtual { table, filter, .. } => {
                let extra = if filter.is_empty() {
                    Vec::new()
                } else {
                    vec!["Using where".to_string()]
                };
                self.rows.push(Row {
                    extra,
                    ..Row::all_of(id, select_type, table.name.to_string())
                });
            }
            Node::Derived { input, output, .. } => {
                let inner = self.take_id();
                let rows = Some(optimize::rows_of(input));
                self.rows.push(Row {
                    rows,
                    filtered: Some(100.0),
                    ..Row::all_of(id, select_type, format!("<derived{inner}>"))
                });
                pending.push((input, output.iter().collect(), inner, "DERIVED"));
            }
            Node::SetOperation { inputs, op, .. } => {
                let mut ids = vec![id];
                for (number, (input, output)) in inputs.iter().enumerate() {
                    let exprs: Vec<&Expr> = output.iter().collect();
                    if number == 0 {
                        self.block(input, &exprs, id, select_type);
                    } else {
                        let inner = self.take_id();
                        ids.push(inner);
                        let kind = match op {
                            SetOperator::Union => "UNION",
                            SetOperator::Intersect => "INTERSECT",
                            SetOperator::Except => "EXCEPT",
                        };
                        self.block(input, &exprs, inner, kind);
                    }
                }
                let (kind, word) = match op {
                    SetOperator::Union => ("UNION RESULT", "union"),
                    SetOperator::Intersect => ("INTERSECT RESULT", "intersect"),
                    SetOperator::Except => ("EXCEPT RESULT", "except"),
                };
                let list = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
                let extra = vec!["Using temporary".to_string()];
                self.rows.push(Row {
                    extra,
                    ..Row::all_of(self.next_id, kind, format!("<{word}{list}>"))
                });
            }
            Node::Recursive {
                seed,
                step,
                seed_output,
                step_output,
                ..
            } => {
                self.block(
                    seed,
                    &seed_output.iter().collect::<Vec<_>>(),
                    id,
                    select_type,
                );
                let inner = self.take_id();
                self.block(
                    step,
                    &step_output.iter().collect::<Vec<_>>(),
                    inner,
                    "UNION",
                );
            }
            Node::Working { slot, .. } => {
                let table = self.names.of(*slot).to_string();
                self.rows.push(Row {
                    extra: vec!["Recursive".to_string()],
                    ..Row::all_of(id, select_type, table)
                });
            }
            Node::HashJoin { left, right, .. } => {
                self.tables(left, id, select_type, pending);
                let at = self.rows.len();
                self.tables(right, id, select_type, pending);
                if let Some(row) = self.rows.get_mut(at) {
                    row.extra.push("Using join buffer (hash join)".to_string());
                }
            }
            Node::NestedLoop {
                left, right, kind, ..
            } => {
                self.tables(left, id, select_type, pending);
                let at = self.rows.len();
                self.tables(right, id, select_type, pending);
                if let Some(row) = self.rows.get_mut(at) {
                    match kind {
                        JoinKind::Semi => row
                            .extra
                            .push(format!("FirstMatch({})", last_table(left, &self.names))),
                        JoinKind::Anti => row.extra.push("Not exists".to_string()),
                        JoinKind::Inner | JoinKind::Left => {}
                    }
                }
            }
            Node::Filter { input, .. } => {
                let at = self.rows.len();
                self.tables(input, id, select_type, pending);
                if let Some(row) = self.rows.get_mut(at)
                    && !row.extra.iter().any(|note| note == "Using where")
                {
                    row.extra.insert(0, "Using where".to_string());
                }
            }
            node => children(node)
                .into_iter()
                .for_each(|child| self.tables(child, id, select_type, pending)),
        }
        if !matches!(node, Node::Derived { .. } | Node::SetOperation { .. }) {
            let found = subplans(self.names.plan, exprs(node));
            self.hold_back(found, pending);
        }
    }

    fn scan(&self, scan: &Scan, id: u64, select_type: &'static str) -> Row {
        let table = &scan.table;
        let mut row = Row {
            id: Some(id),
            select_type,
            table: Some(self.names.of(scan.slot).to_string()),
            possible_keys: scan
                .possible_keys
                .iter()
                .map(|index| table.indexes[*index].name.to_string())
                .collect(),
            rows: Some(scan.rows_estimate.max(1.0)),
            filtered: Some(scan.filtered * 100.0),
            ..Row::default()
        };
        let mut ranged = false;
        match &scan.access {
            Access::Full => row.access = Some("ALL"),
            Access::Point { index, key, .. } => {
                let constant = key.iter().all(Expr::is_constant);
                row.access = Some(if constant { "const" } else { "eq_ref" });
                self.key(&mut row, table, &table.indexes[*index], key.len());
                row.reference = key
                    .iter()
                    .map(|value| self.reference(value, table))
                    .collect();
            }
            Access::Index { index, ranges, .. } => {
                let definition = &table.indexes[*index];
                let parts = scan.key_parts_used;
                row.access = Some(match &ranges[..] {
                    [range]
                        if range.equal.is_empty()
                            && range.lower.is_none()
                            && range.upper.is_none() =>
                    {
                        "index"
                    }
                    [range] if range.lower.is_none() && range.upper.is_none() => "ref",
                    _ => "range",
                });
                ranged = row.access == Some("range");
                self.key(
                    &mut row,
                    table,
                    definition,
                    if parts == 0 {
                        definition.parts.len()
                    } else {
                        parts
                    },
                );
                if let ("ref", [range]) = (row.access.unwrap_or_default(), &ranges[..]) {
                    row.reference = range
                        .equal
                        .iter()
                        .map(|part| self.reference(&part.value, table))
                        .collect();
                }
            }
        }
        if !scan.filter.is_empty() || ranged {
            row.extra.push("Using where".to_string());
        }
        if scan.reverse && !matches!(scan.access, Access::Point { .. }) {
            row.extra.push("Backward index scan".to_string());
        }
        if let Access::Index { covering: true, .. } | Access::Point { covering: true, .. } =
            &scan.access
        {
            row.extra.push("Using index".to_string());
        }
        row
    }

    fn key(&self, row: &mut Row, table: &Table, index: &Index, parts: usize) {
        row.key = Some(index.name.to_string());
        let length = |part: &porpoise_catalog::IndexPart| {
            let column = &table.columns[part.column];
            key_length(&column.ty, part.prefix) + usize::from(column.nullable)
        };
        row.key_len = Some(index.parts.iter().take(parts).map(length).sum());
    }

    fn reference(&self, value: &Expr, table: &Table) -> String {
        if value.is_constant() {
            return "const".to_string();
        }
        match value.as_column() {
            Some(_) => format!("{}.{}", table.schema, self.names.text(value)),
            None => "func".to_string(),
        }
    }
}

fn last_table(node: &Node, names: &Names<'_>) -> String {
    match node {
        Node::Scan(scan) => names.of(scan.slot).to_string(),
        node => children(node)
            .last()
            .map_or(String::new(), |child| last_table(child, names)),
    }
}

fn node_is_empty(node: &Node) -> bool {
    match node {
        Node::Empty => true,
        Node::Limit { input, .. } | Node::Sort { input, .. } | Node::Filter { input, .. } => {
            node_is_empty(input)
        }
        Node::Group(group) => node_is_empty(&group.input),
        _ => false,
    }
}

/// What the operators above a block's tables need.
fn notes_of(node: &Node, notes: &mut Vec<&'static str>) {
    let mut add = |note| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    match node {
        Node::Sort {
            input,
            keys,
            distinct,
            ..
        } => {
            if *distinct || keys.is_empty() {
                add("Using temporary");
            }
            if !keys.is_empty() {
                add("Using filesort");
            }
            notes_of(input, notes);
        }
        Node::Distinct { input, .. } | Node::Project { input, .. } => {
            add("Using temporary");
            notes_of(input, notes);
        }
        Node::Group(group) => {
            if !group.ordered && !group.scalar {
                add("Using temporary");
            }
            notes_of(&group.input, notes);
        }
        Node::Filter { input, .. } | Node::Limit { input, .. } => notes_of(input, notes),
        Node::Window(window) => {
            add("Using temporary");
            notes_of(&window.input, notes);
        }
        _ => {}
    }
}

/// Bytes of a key part as `key_len` counts them.
fn key_length(ty: &DataType, prefix: Option<u32>) -> usize {
    let fraction = |fsp: u8| usize::from(fsp.div_ceil(2));
    let digits = |digits: u8| {
        usize::from(digits / 9) * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][usize::from(digits % 9)]
    };
    match ty {
        DataType::Null => 0,
        DataType::Int { width, .. } => match width {
            IntWidth::Tiny => 1,
            IntWidth::Small => 2,
            IntWidth::Medium => 3,
            IntWidth::Int => 4,
            IntWidth::Big => 8,
        },
        DataType::Bit(bits) => usize::from(bits.div_ceil(8)),
        DataType::Decimal {
            precision, scale, ..
        } => digits(precision.saturating_sub(*scale)) + digits(*scale),
        DataType::Float { .. } => 4,
        DataType::Double { .. } => 8,
        DataType::Date => 3,
        DataType::Time { fsp } => 3 + fraction(*fsp),
        DataType::DateTime { fsp } => 5 + fraction(*fsp),
        DataType::Timestamp { fsp } => 4 + fraction(*fsp),
        DataType::Year => 1,
        DataType::Enum(def) => 1 + usize::from(def.members.len() > 255),
        DataType::Set(def) => def.members.len().div_ceil(8),
        DataType::Binary(length) => prefix.unwrap_or(*length) as usize,
        DataType::Varbinary(length) => prefix.unwrap_or(*length) as usize + 2,
        DataType::Blob(_) => prefix.unwrap_or(0) as usize + 2,
        DataType::Char { length, collation } => {
            (prefix.unwrap_or(*length) * u32::from(collation.charset().max_len())) as usize
        }
        DataType::Varchar { length, collation } => {
            (prefix.unwrap_or(*length) * u32::from(collation.charset().max_len())) as usize + 2
        }
        DataType::Text { collation, .. } => {
            (prefix.unwrap_or(0) * u32::from(collation.charset().max_len())) as usize + 2
        }
        DataType::Json => Charset::Utf8mb4.max_len() as usize,
    }
}

impl Row {
    /// For a table that is gone through from one end to the other.
    fn all_of(id: u64, select_type: &'static str, table: String) -> Row {
        Row {
            id: Some(id),
            select_type,
            table: Some(table),
            access: Some("ALL"),
            ..Row::default()
        }
    }

    fn values(self) -> Vec<Value> {
        let list = |items: Vec<String>| {
            if items.is_empty() {
                Value::Null
            } else {
                Value::from(items.join(","))
            }
        };
        let text = |text: Option<String>| text.map_or(Value::Null, Value::from);
        vec![
            self.id.map_or(Value::Null, Value::UInt),
            Value::from(self.select_type),
            text(self.table),
            Value::Null,
            self.access.map_or(Value::Null, Value::from),
            list(self.possible_keys),
            text(self.key),
            self.key_len
                .map_or(Value::Null, |length| Value::from(length.to_string())),
            list(self.reference),
            self.rows.map_or(
                Value::Null,
                |rows| Value::UInt(rows.round().max(1.0) as u64),
            ),
            self.filtered.map_or(Value::Null, Value::Double),
            if self.extra.is_empty() {
                Value::Null
            } else {
                Value::from(self.extra.join("; "))
            },
        ]
    }
}

// ---------------------------------------------------------------------------------------------------------
// The tree form
// ---------------------------------------------------------------------------------------------------------

/// A plan as an indented tree of operators.
pub fn tree(plan: &Plan) -> String {
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
    if let Some((node, output)) = root(plan) {
        out.node(node, depth);
        for subplan in subplans(plan, output) {
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

fn trimmed(text: String) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

impl Tree<'_> {
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
        for subplan in subplans(self.names.plan, conditions) {
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
            Node::HashJoin {
                left,
                right,
                kind,
                left_keys,
                right_keys,
                condition,
                ..
            } => {
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
            Node::Group(group) => {
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
                let sort = if *distinct {
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
                let mut depth = depth;
                match (op, distinct) {
                    (SetOperator::Union, false) => self.line(depth, "Append", Some(node)),
                    _ => {
                        let (table, what) = match op {
                            SetOperator::Union => ("<union temporary>", "Union materialize"),
                            SetOperator::Intersect => {
                                ("<intersect temporary>", "Intersect materialize")
                            }
                            SetOperator::Except => ("<except temporary>", "Except materialize"),
                        };
                        self.line(depth, &format!("Table scan on {table}"), Some(node));
                        depth += 1;
                        let how = if *distinct { " with deduplication" } else { "" };
                        self.line(depth, &format!("{what}{how}"), Some(node));
                    }
                }
                for (input, _) in inputs {
                    self.node(input, depth + 1);
                }
            }
            Node::Window(window) => {
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

    fn scan(&mut self, scan: &Scan, node: &Node, depth: usize) {
        let below = self.filter(&scan.filter, node, depth);
        let name = self.names.of(scan.slot).to_string();
        let table = &scan.table;
        let covering = |covering: bool, plain: &str| match covering {
            true => format!(
                "Covering {}{}",
                plain[..1].to_ascii_lowercase(),
                &plain[1..]
            ),
            false => plain.to_string(),
        };
        let text = match &scan.access {
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
                        format!("{}={}", part.shown(table), self.names.text(value))
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
                    [range]
                        if range.equal.is_empty()
                            && range.lower.is_none()
                            && range.upper.is_none() =>
                    {
                        format!(
                            "{} on {name} using {}",
                            covering(*covers, "Index scan"),
                            index.name
                        )
                    }
                    [range] if range.lower.is_none() && range.upper.is_none() => {
                        let pairs = index.parts.iter().zip(&range.equal);
                        let pairs: Vec<String> = pairs
                            .map(|(part, value)| {
                                format!("{}={}", part.shown(table), self.names.text(&value.value))
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
        };
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

    fn range(&self, table: &Table, index: &Index, range: &KeyRange) -> String {
        let column = |at: usize| index.parts.get(at).map_or("?", |part| part.shown(table));
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

fn scan_cost(scan: &Scan) -> f64 {
    match &scan.access {
        Access::Full => scan.rows_estimate * 0.1 + 0.25,
        Access::Point { .. } => 0.35,
        Access::Index { covering: true, .. } => scan.rows_estimate * 0.1 + 0.25,
        Access::Index { index, .. } if *index == 0 && scan.table.primary_key().is_some() => {
            scan.rows_estimate * 0.1 + 0.35
        }
        Access::Index { .. } => scan.rows_estimate * 0.35 + 0.35,
    }
}

/// A node's cost in MySQL's measure, about.
fn cost_of(node: &Node) -> f64 {
    match node {
        Node::Scan(scan) => scan_cost(scan),
        Node::One | Node::Empty => 0.0,
        Node::NestedLoop { left, right, .. } => {
            cost_of(left) + optimize::rows_of(left) * cost_of(right)
        }
        node => {
            children(node).into_iter().map(cost_of).sum::<f64>() + optimize::rows_of(node) * 0.1
        }
    }
}
