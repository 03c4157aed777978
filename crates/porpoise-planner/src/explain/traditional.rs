//! The traditional form: a row a table, in the order in which tables are read (MySQL 8.4 manual,
//! 10.8.2).
//!
//! A query block's tables come first, then the blocks it holds: derived tables and subqueries.

use porpoise_catalog::{Index, IndexKind, Table};
use porpoise_core::reply::ResultColumn;
use porpoise_expr::Expr;
use porpoise_types::{Charset, DataType, IntWidth, Value};

use super::names::Names;
use crate::optimize;
use crate::optimize::SUBQUERY_NAME;
use crate::plan::{
    Access, JoinKind, KeyOperation, KeySource, Node, OnDuplicate, Plan, PlanKind, Scan,
    SetOperator, Subplan, Taken,
};

/// The columns of the traditional form (MySQL 8.4 manual, 10.8.2).
pub(super) fn columns() -> Vec<ResultColumn> {
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

/// A row of the traditional form.
#[derive(Default)]
pub(super) struct Row {
    pub(super) id: Option<u64>,
    pub(super) select_type: &'static str,
    pub(super) table: Option<String>,
    pub(super) access: Option<&'static str>,
    pub(super) possible_keys: Vec<String>,
    pub(super) key: Option<String>,
    pub(super) key_len: Option<String>,
    pub(super) reference: Vec<String>,
    pub(super) rows: Option<f64>,
    pub(super) filtered: Option<f64>,
    pub(super) extra: Vec<String>,
}

/// The rows made so far.
pub(super) struct Traditional<'p> {
    pub(super) names: Names<'p>,
    rows: Vec<Row>,
    next_id: u64,
    /// The query blocks that are materialised, by the number of what is made of them.
    derived: Vec<(usize, u64)>,
}

/// A row a table, in the order in which tables are read.
pub(super) fn rows(plan: &Plan) -> Vec<Vec<Value>> {
    rows_of(plan).into_iter().map(Row::values).collect()
}

/// The largest product of the rows of a query block's tables; 0 of a change of one table.
pub(super) fn row_combinations(plan: &Plan) -> f64 {
    let rows = rows_of(plan);
    let is_change = matches!(plan.kind, PlanKind::Update(_) | PlanKind::Delete(_));
    if is_change && rows.len() < 2 {
        return 0.0;
    }
    let mut blocks: Vec<(Option<u64>, f64)> = Vec::new();
    for (id, rows) in rows.iter().filter_map(|row| Some((row.id, row.rows?))) {
        match blocks.iter_mut().find(|(block, _)| *block == id) {
            Some((_, product)) => *product *= rows.max(1.0),
            None => blocks.push((id, rows)),
        }
    }
    blocks
        .iter()
        .map(|(_, product)| *product)
        .fold(0.0, f64::max)
}

fn rows_of(plan: &Plan) -> Vec<Row> {
    let mut out = Traditional::new(plan);
    let kind = match &plan.kind {
        PlanKind::Update(_) => "UPDATE",
        PlanKind::Delete(_) => "DELETE",
        PlanKind::Insert(insert) => {
            let select_type = match insert.duplicates {
                OnDuplicate::Replace => "REPLACE",
                OnDuplicate::Error | OnDuplicate::Update { .. } => "INSERT",
            };
            let table = insert.table.name.to_string();
            out.rows.push(Row::all_of(1, select_type, table));
            "SIMPLE"
        }
        PlanKind::Query(_) => "SIMPLE",
    };
    if let Some((node, output)) = plan.root() {
        let simple = !has_blocks(node) && output.iter().all(|expr| !expr.has_subquery());
        let select_type = if kind == "SIMPLE" && !simple {
            "PRIMARY"
        } else {
            kind
        };
        out.block(node, &output, 1, select_type);
    }
    out.rows
}

/// The row of a statement that there is no plan of.
pub(super) fn message(message: &str) -> Vec<Value> {
    let row = Row {
        id: Some(1),
        extra: vec![message.to_string()],
        ..Row::default()
    };
    row.values()
}

/// Whether a plan has more than one query block.
fn has_blocks(node: &Node) -> bool {
    let is_block = match node {
        Node::Derived { input, .. } => !matches!(**input, Node::JsonTable { .. }),
        Node::SetOperation { .. } | Node::Recursive { .. } => true,
        _ => false,
    };
    is_block
        || node.exprs().iter().any(|expr| expr.has_subquery())
        || node.children().into_iter().any(has_blocks)
}

/// A query block whose rows come after those of the block that holds it: its topmost node, its
/// output, its number and its select_type.
type Pending<'n> = (&'n Node, Vec<&'n Expr>, u64, &'static str);

impl<'p> Traditional<'p> {
    pub(super) fn new(plan: &'p Plan) -> Traditional<'p> {
        Traditional {
            names: Names::in_full(plan),
            rows: Vec::new(),
            next_id: 2,
            derived: Vec::new(),
        }
    }

    /// Notes subqueries, whose rows come after those of the block that they are in.
    fn defer(&mut self, found: Vec<&'p Subplan>, pending: &mut Vec<Pending<'p>>) {
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
        let found = self.names.plan.subplans_in(output.iter().copied());
        self.defer(found, &mut pending);
        for (node, output, id, kind) in pending {
            self.block(node, &output, id, kind);
        }
    }

    /// The next query block's number; the outermost is 1.
    pub(super) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// The rows of the tables at and below a node, in the order in which they are read. Query
    /// blocks that come later are put into `pending`.
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
            Node::Derived { .. } => self.derived(node, id, select_type, pending),
            Node::SetOperation {
                inputs,
                op,
                distinct,
                ..
            } => self.set_operation(inputs, *op, *distinct, id, select_type),
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
            Node::HashJoin {
                left, right, kind, ..
            } => {
                self.tables(left, id, select_type, pending);
                let at = self.rows.len();
                self.tables(right, id, select_type, pending);
                if let Some(row) = self.rows.get_mut(at) {
                    if *kind == JoinKind::Anti {
                        row.extra.push("Not exists".to_string());
                    }
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
                    if is_batched(left) {
                        let text = "Using join buffer (Batched Key Access)";
                        row.extra.push(text.to_string());
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
            Node::Distinct {
                input,
                is_weedout: true,
                ..
            } => {
                let at = self.rows.len();
                self.tables(input, id, select_type, pending);
                if let Some([first, .., last]) = self.rows.get_mut(at..) {
                    first.extra.push("Start temporary".to_string());
                    last.extra.push("End temporary".to_string());
                }
            }
            node => node
                .children()
                .into_iter()
                .for_each(|child| self.tables(child, id, select_type, pending)),
        }
        if !matches!(node, Node::Derived { .. } | Node::SetOperation { .. }) {
            let found = self.names.plan.subplans_in(node.exprs());
            self.defer(found, pending);
        }
    }

    /// A derived table or common table, whose block comes later, once for all references to it; or
    /// the rows of a subquery that became a join.
    fn derived(
        &mut self,
        node: &'p Node,
        id: u64,
        select_type: &'static str,
        pending: &mut Vec<Pending<'p>>,
    ) {
        let Node::Derived {
            slot,
            input,
            output,
            materialize,
            correlated,
        } = node
        else {
            return;
        };
        if let Node::JsonTable { .. } = **input {
            let extra = ["Table function: json_table", "Using temporary"];
            let table = self.names.of(*slot).to_string();
            self.rows.push(Row {
                extra: extra.map(str::to_string).to_vec(),
                ..Row::all_of(id, select_type, table)
            });
            return;
        }
        let is_subquery = self.names.of(*slot) == SUBQUERY_NAME;
        let mut known = self.derived.iter();
        let known = known.find(|(number, _)| Some(*number) == *materialize);
        let inner = match known {
            Some((_, id)) => *id,
            None => {
                let inner = self.take_id();
                self.derived
                    .extend(materialize.map(|number| (number, inner)));
                let kind = match (is_subquery, correlated) {
                    (true, _) => "MATERIALIZED",
                    (false, true) => "DEPENDENT DERIVED",
                    (false, false) => "DERIVED",
                };
                pending.push((input, output.iter().collect(), inner, kind));
                inner
            }
        };
        let word = if is_subquery { "subquery" } else { "derived" };
        self.rows.push(Row {
            rows: Some(optimize::rows_of(input)),
            filtered: Some(100.0),
            ..Row::all_of(id, select_type, format!("<{word}{inner}>"))
        });
    }

    /// UNION, INTERSECT, EXCEPT: a block each input, then the row of the result, for which rows are
    /// kept; UNION ALL keeps none.
    fn set_operation(
        &mut self,
        inputs: &'p [(Node, Vec<Expr>)],
        op: SetOperator,
        distinct: bool,
        id: u64,
        select_type: &'static str,
    ) {
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
        if op == SetOperator::Union && !distinct {
            return;
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

    /// A stored table's row.
    pub(super) fn scan(&self, scan: &Scan, id: u64, select_type: &'static str) -> Row {
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
                row.access = Some(match &ranges[..] {
                    [range] if range.is_all() => "index",
                    [range] if !range.is_bounded() => "ref",
                    _ => "range",
                });
                self.key(&mut row, table, &table.indexes[*index], scan.key_parts_used);
                if let ("ref", [range]) = (row.access.unwrap_or_default(), &ranges[..]) {
                    row.reference = range
                        .equal
                        .iter()
                        .map(|part| self.reference(&part.value, table))
                        .collect();
                }
            }
            Access::Skip(skip) => {
                row.access = Some("range");
                self.key(
                    &mut row,
                    table,
                    &table.indexes[skip.index],
                    scan.key_parts_used,
                );
            }
            Access::Merge { sources, .. } => {
                row.access = Some("index_merge");
                row.key = Some(merged_names(table, sources));
                let lengths = sources.iter().map(|source| {
                    let index = &table.indexes[source.index];
                    key_part_lengths(table, index, source.parts).to_string()
                });
                row.key_len = Some(lengths.collect::<Vec<_>>().join(","));
            }
        }
        let ranged = match &scan.access {
            Access::Skip(skip) => skip.has_conditions(),
            _ => row.access == Some("range"),
        };
        row.extra = notes_of_scan(scan, ranged);
        row
    }

    /// Fills in the index and `key_len`, of so many of its parts; of all for 0.
    fn key(&self, row: &mut Row, table: &Table, index: &Index, parts: usize) {
        row.key = Some(index.name.to_string());
        row.key_len = Some(key_part_lengths(table, index, parts).to_string());
    }

    /// What the `ref` column says of a value that a key part is compared with.
    fn reference(&self, value: &Expr, table: &Table) -> String {
        if value.is_constant() {
            return "const".to_string();
        }
        match value.as_column() {
            Some(_) => {
                let name = Names::new(self.names.plan).text(value);
                format!("{}.{name}", table.schema)
            }
            None => "func".to_string(),
        }
    }
}

/// What the Extra column says of how a table is read.
fn notes_of_scan(scan: &Scan, ranged: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if let Access::Merge { operation, sources } = &scan.access {
        notes.push(format!(
            "Using {}",
            merge_text(&scan.table, *operation, sources)
        ));
    }
    // A range of a secondary index is a condition on its entries.
    let looks_up_rows = match scan.access.single_index() {
        Some((index, covering)) => {
            !covering && scan.table.indexes[index].kind != IndexKind::Primary
        }
        None => false,
    };
    let is_on_entries = scan.index_condition.is_some() || (ranged && looks_up_rows);
    if is_on_entries {
        notes.push("Using index condition".to_string());
    }
    if !scan.filter.is_empty() || (ranged && !is_on_entries) {
        notes.push("Using where".to_string());
    }
    if scan.reverse && !matches!(scan.access, Access::Point { .. }) {
        notes.push("Backward index scan".to_string());
    }
    match &scan.access {
        Access::Skip(skip) if skip.taken != Taken::All => {
            notes.push("Using index for group-by".to_string());
        }
        Access::Skip(_) => notes.push("Using index for skip scan".to_string()),
        access if access.is_covering() => notes.push("Using index".to_string()),
        _ => {}
    }
    notes
}

/// The names of the indexes that keys are collected from.
fn merged_names(table: &Table, sources: &[KeySource]) -> String {
    let names = sources
        .iter()
        .map(|source| table.indexes[source.index].name.as_str());
    names.collect::<Vec<_>>().join(",")
}

/// An index merge as MySQL names it: `union(a,b)`, `sort_union(a,b)`, `intersect(a,b)`.
pub(super) fn merge_text(table: &Table, operation: KeyOperation, sources: &[KeySource]) -> String {
    let in_order = sources.iter().all(|source| source.is_in_key_order(table));
    let name = match (operation, in_order) {
        (KeyOperation::Union, true) => "union",
        (KeyOperation::Union, false) => "sort_union",
        (KeyOperation::Intersection, _) => "intersect",
    };
    format!("{name}({})", merged_names(table, sources))
}

/// `key_len` of so many parts of an index; of all for 0.
fn key_part_lengths(table: &Table, index: &Index, parts: usize) -> usize {
    let length = |part: &porpoise_catalog::IndexPart| {
        let column = &table.columns[part.column];
        key_length(&column.ty, part.prefix) + usize::from(column.nullable)
    };
    let parts = if parts == 0 { usize::MAX } else { parts };
    index.parts.iter().take(parts).map(length).sum()
}

/// The name of the table that is read last.
fn last_table(node: &Node, names: &Names<'_>) -> String {
    match node {
        Node::Scan(scan) => names.of(scan.slot).to_string(),
        node => node
            .children()
            .last()
            .map_or(String::new(), |child| last_table(child, names)),
    }
}

/// Whether a join's left rows come in batches.
pub(super) fn is_batched(left: &Node) -> bool {
    match left {
        Node::Batch { .. } => true,
        Node::Measured { input, .. } => is_batched(input),
        _ => false,
    }
}

/// Whether the optimizer found that no row can pass.
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
        Node::Distinct {
            is_weedout: true, ..
        } => {}
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
            if !window.partition.is_empty() || !window.order.is_empty() {
                add("Using filesort");
            }
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
    /// A table that is read from one end to the other.
    fn all_of(id: u64, select_type: &'static str, table: String) -> Row {
        Row {
            id: Some(id),
            select_type,
            table: Some(table),
            access: Some("ALL"),
            ..Row::default()
        }
    }

    /// The row as values, in the order of [`columns`].
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
            text(self.key_len),
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
