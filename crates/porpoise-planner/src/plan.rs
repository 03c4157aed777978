//! Plans: what the planner makes and the executor runs. Immutable, shared, cached.
//!
//! A plan is a tree of [`Node`]s. Each node yields rows one at a time *into slots of the frame* (see
//! [`porpoise_expr::Slot`]); a node's doc says which. Scans fill their own slot with the stored row; a
//! filter passes its input's slots on; a grouping, a projection or a derived table encodes a row of
//! its own into its own slot. The root's output expressions then read the slots.
//!
//! ```text
//! SELECT c.name, COUNT(*) FROM customer c JOIN orders o ON o.customer = c.id GROUP BY c.name
//!
//! Query      output: slot2.0, slot2.1
//!   Group      → slot2 (name, count)
//!     NestedLoop
//!       Scan customer  → slot0
//!       Scan orders by index(customer) = slot0.id → slot1
//! ```

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Index, Relation, Table, TableId, View};
use porpoise_core::reply::ResultColumn;
use porpoise_expr::aggregate::{Aggregate, AggregateFunction, SortKey};
use porpoise_expr::{Expr, Slot};
use porpoise_types::json::path::JsonPath;
use porpoise_types::{Charset, DataType, Json, RowLayout};

use crate::access::Accesses;
use crate::column_changes::ColumnChanges;
use crate::file_format::FileFormat;
use crate::relations::Relations;
pub use porpoise_mdl::TableUse;

/// A whole statement, ready to run any number of times with other parameters.
#[derive(Debug)]
pub struct Plan {
    pub kind: PlanKind,
    /// How many slots the frame needs, with the layout of each.
    pub slots: Vec<SlotLayout>,
    /// How many parameters the statement has.
    pub parameter_count: usize,
    /// Tables the plan read, by the version it saw: the plan is stale when one has another.
    pub dependencies: Vec<(TableId, u64)>,
    /// How to take each table's metadata lock, in order of name.
    pub tables: Vec<(Arc<Table>, TableUse)>,
    /// The views that it went through.
    pub views: Vec<(Arc<View>, TableUse)>,
    /// What the statement calls its tables, outside views: LOCK TABLES admits them by name.
    pub table_names: Vec<(Arc<Table>, CompactString)>,
    /// What foreign keys ask of a change, and the tables they lead to that `tables` hasn't.
    pub relations: Option<Arc<Relations>>,
    pub related: Vec<(Arc<Table>, TableUse)>,
    /// The plans of subqueries in expressions, by the number that `ExprKind::Subquery` has; nothing where the
    /// subquery became a join.
    pub subplans: Vec<Option<Subplan>>,
    /// False for statements whose plan must not be kept (they read what no version guards).
    pub cacheable: bool,
    /// A query that locks rows (FOR UPDATE, FOR SHARE): it needs a transaction as a change does.
    pub locks_rows: bool,
    /// Lifted literals on whose value, not only type, the plan depends.
    pub fixed_parameters: Vec<usize>,
    /// What it needs privileges for.
    pub accesses: Accesses,
    /// Names of each slot's columns, for EXPLAIN; empty for a table's slot.
    pub column_names: Vec<Vec<CompactString>>,
}

impl Plan {
    /// The plan of the subquery of that number, unless it became a join.
    pub fn subplan(&self, number: usize) -> Option<&Subplan> {
        self.subplans.get(number)?.as_ref()
    }

    /// Whether it needs a transaction.
    pub fn writes(&self) -> bool {
        self.locks_rows || !matches!(self.kind, PlanKind::Query(_))
    }

    /// Whether every table and view is still the one it was made for.
    pub fn is_current(&self, catalog: &porpoise_catalog::Catalog) -> bool {
        let mut tables = self.tables.iter().chain(&self.related);
        tables.all(|(table, _)| {
            table.temporary
                || matches!(
                    catalog.relation(&table.schema, &table.name),
                    Some(Relation::Table(now)) if now.version == table.version
                )
        }) && self.views.iter().all(|(view, _)| {
            matches!(
                catalog.relation(&view.schema, &view.name),
                Some(Relation::View(now)) if now.version == view.version
            )
        })
    }
}

#[derive(Clone, Debug)]
pub struct SlotLayout {
    /// Name for EXPLAIN.
    pub name: CompactString,
    /// The stored table whose rows it holds.
    pub table: Option<Arc<Table>>,
    pub layout: Arc<RowLayout>,
    /// Types of the layout's columns.
    pub types: Vec<DataType>,
    /// With a covering index the stored row is the index's entry: where in it each of the table's
    /// columns lies (`Expr` columns always count as the table does). `None`: as the layout has them.
    pub map: Option<Vec<u16>>,
}

impl SlotLayout {
    /// Of a table's rows as they are stored.
    pub fn of_rows(name: CompactString, table: &Table) -> SlotLayout {
        let types = table.columns.iter().map(|column| column.ty.clone());
        SlotLayout {
            name,
            table: None,
            layout: Arc::clone(&table.layout),
            types: types.collect(),
            map: None,
        }
    }

    /// Where in the stored row a column lies.
    #[inline]
    pub fn position(&self, column: usize) -> usize {
        match &self.map {
            None => column,
            Some(map) => map
                .get(column)
                .map_or(usize::MAX, |&position| position as usize),
        }
    }
}

#[derive(Debug)]
pub enum PlanKind {
    Query(Query),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
}

#[derive(Debug)]
pub struct Query {
    pub node: Node,
    pub output: Vec<Expr>,
    pub columns: Vec<ResultColumn>,
    /// Columns that are named by a piece of the statement's text which holds a lifted literal: where it is.
    pub name_spans: Vec<Option<porpoise_sql::ast::Span>>,
    /// SQL_CALC_FOUND_ROWS: run on behind the limit and count.
    pub calc_found_rows: bool,
    /// `INTO @a, @b`.
    pub into: Vec<CompactString>,
}

/// A query inside an expression.
#[derive(Debug)]
pub struct Subplan {
    /// Its position in [`Plan::subplans`], under which its result is kept too.
    pub number: usize,
    pub node: Node,
    pub output: Vec<Expr>,
    /// Reads slots of an enclosing query: must run again whenever those change.
    pub correlated: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLock {
    #[default]
    None,
    Shared(OnLocked),
    Exclusive(OnLocked),
}

/// What a locking read does with a row that somebody else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLocked {
    Wait,
    Fail,
    Skip,
}

/// A part of an index: rows between two bounds of its leading parts.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Leading parts fixed to a value (`=`, or IS NULL when the flag is set: `<=>`).
    pub equal: Vec<KeyPart>,
    /// Bounds on the part after them.
    pub lower: Option<KeyBound>,
    pub upper: Option<KeyBound>,
}

impl KeyRange {
    /// The whole index.
    pub const ALL: KeyRange = KeyRange {
        equal: Vec::new(),
        lower: None,
        upper: None,
    };

    /// Whether it holds one key at most: every part of a unique index is fixed, and none may be NULL.
    pub fn is_point(&self, index: &Index) -> bool {
        index.is_unique()
            && self.equal.len() == index.parts.len()
            && self.equal.iter().all(|part| !part.null_safe)
            && index.parts.iter().all(|part| part.prefix.is_none())
    }
}

#[derive(Clone, Debug)]
pub struct KeyPart {
    pub value: Expr,
    /// `<=>`: NULL matches NULL. Otherwise a NULL makes the range empty.
    pub null_safe: bool,
}

#[derive(Clone, Debug)]
pub struct KeyBound {
    pub value: Expr,
    pub inclusive: bool,
}

/// How a scan reaches its rows.
#[derive(Clone, Debug)]
pub enum Access {
    /// Every row, in primary key order (`reverse` turns it round).
    Full,
    /// `index` is a position in `table.indexes`. Ranges are disjoint where they are constant; the
    /// executor orders and merges them when it has the values.
    Index {
        index: usize,
        ranges: Vec<KeyRange>,
        covering: bool,
    },
    /// At most one row: every part of a unique index is fixed and none is NULL.
    Point {
        index: usize,
        key: Vec<Expr>,
        covering: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Scan {
    pub slot: Slot,
    pub table: Arc<Table>,
    pub access: Access,
    pub reverse: bool,
    pub lock: RowLock,
    /// Which columns the statement reads from this slot; with a covering index, all are in its entry.
    pub columns_read: Vec<bool>,
    /// Conditions on this table alone (and on slots filled before), checked as soon as the row is there.
    pub filter: Vec<Expr>,
    /// The planner's guess of rows read an opening, before the filter; for EXPLAIN.
    pub rows_estimate: f64,
    /// The guess of the part of them that the filter passes, 0 to 1; for EXPLAIN.
    pub filtered: f64,
    /// Indexes that conditions could use, by position; for EXPLAIN.
    pub possible_keys: Vec<usize>,
    /// How many parts of the chosen index conditions fix or bound; for EXPLAIN.
    pub key_parts_used: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    /// A row of NULLs for the right side where nothing matches.
    Left,
    /// The left row once if something matches.
    Semi,
    /// The left row if nothing matches.
    Anti,
}

#[derive(Clone, Debug)]
pub enum Node {
    /// No table: one empty row.
    One,
    /// No row (an impossible WHERE).
    Empty,
    Scan(Box<Scan>),
    /// Rows computed from expressions: VALUES ROW(…). Fills `slot`.
    Values {
        slot: Slot,
        rows: Vec<Vec<Expr>>,
    },
    /// JSON_TABLE: the rows that the table's paths find in a document. Fills `slot`.
    JsonTable {
        slot: Slot,
        doc: Expr,
        table: Arc<JsonTable>,
    },
    /// A table made by code: information_schema, performance_schema. Fills `slot`.
    Virtual {
        slot: Slot,
        table: &'static porpoise_catalog::VirtualTable,
        filter: Vec<Expr>,
    },
    /// A derived table, view or CTE: runs `input`, encodes `output` into `slot`. Materialised once an
    /// execution when `materialize` (a number shared by all references to the same CTE).
    Derived {
        slot: Slot,
        input: Box<Node>,
        output: Vec<Expr>,
        materialize: Option<usize>,
        correlated: bool,
    },
    /// WITH RECURSIVE: `seed`, then `step` over the last round's rows (which `Node::Working` reads), until none come.
    Recursive {
        slot: Slot,
        seed: Box<Node>,
        seed_output: Vec<Expr>,
        step: Box<Node>,
        step_output: Vec<Expr>,
        distinct: bool,
        working: usize,
    },
    /// The rows of the last round of the recursive table `working`.
    Working {
        slot: Slot,
        working: usize,
    },
    Filter {
        input: Box<Node>,
        conditions: Vec<Expr>,
    },
    /// For each left row, the right side opened anew. `condition` is on both sides' slots.
    NestedLoop {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        condition: Vec<Expr>,
    },
    /// Builds a hash table of the right side's rows by `right_keys`, probes with `left_keys`.
    HashJoin {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        left_keys: Vec<Expr>,
        right_keys: Vec<Expr>,
        condition: Vec<Expr>,
        right_slots: Vec<Slot>,
    },
    /// Groups by `keys`, fills `slot` with the keys and then the aggregates.
    Group(Box<Group>),
    /// Encodes expressions into `slot` (before a sort or a distinct that needs them computed).
    Project {
        input: Box<Node>,
        slot: Slot,
        output: Vec<Expr>,
    },
    /// Sorts by keys; keeps only `limit` rows where given (offset + count). Saves and restores `slots`.
    /// Without keys rows stay in their order, but none passes before all have come.
    Sort {
        input: Box<Node>,
        keys: Vec<SortKey>,
        limit: Option<Box<Expr>>,
        /// Only the first row of each key passes. Not together with `limit`.
        distinct: bool,
        slots: Vec<Slot>,
    },
    /// Lets the first row of each distinct combination pass.
    Distinct {
        input: Box<Node>,
        keys: Vec<Expr>,
    },
    Limit {
        input: Box<Node>,
        offset: Option<Box<Expr>>,
        count: Option<Box<Expr>>,
    },
    /// UNION/INTERSECT/EXCEPT: each input's output is encoded into `slot`.
    SetOperation {
        slot: Slot,
        op: SetOperator,
        distinct: bool,
        inputs: Vec<(Node, Vec<Expr>)>,
    },
    Window(Box<Window>),
}

/// What JSON_TABLE makes of each value that `path` finds: a row, or several where nested paths find more.
#[derive(Debug)]
pub struct JsonTable {
    pub path: JsonPath,
    pub columns: Vec<JsonColumn>,
    /// Each finds rows of its own; side by side the others' columns are NULL.
    pub nested: Vec<JsonTable>,
}

/// A column of JSON_TABLE, and where in the slot it lies.
#[derive(Debug)]
pub struct JsonColumn {
    pub position: usize,
    pub name: CompactString,
    pub ty: DataType,
    pub source: JsonSource,
}

#[derive(Debug)]
pub enum JsonSource {
    /// The row's number among those of its path, from 1.
    Ordinality,
    /// 1 where the path finds something, 0 where it doesn't.
    Exists(JsonPath),
    Value {
        path: JsonPath,
        on_empty: JsonOtherwise,
        on_error: JsonOtherwise,
    },
}

/// What JSON_TABLE does without a value, or with one that doesn't fit.
#[derive(Clone, Debug)]
pub enum JsonOtherwise {
    Null,
    Error,
    Default(Json),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub input: Node,
    pub slot: Slot,
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// The input comes ordered by the keys: no hash table needed.
    pub ordered: bool,
    /// WITH ROLLUP: the input comes ordered by the keys. After the aggregates `slot` has one column more, a
    /// BIGINT UNSIGNED whose bit *i* is set where key *i* is rolled up (GROUPING() reads it).
    pub rollup: bool,
    /// No GROUP BY: one row even for no input.
    pub scalar: bool,
}

/// Window functions over one window; fills `slot` with their results beside the input's slots.
#[derive(Clone, Debug)]
pub struct Window {
    pub input: Node,
    pub slot: Slot,
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub functions: Vec<WindowCall>,
    /// Slots of the input to save and restore.
    pub slots: Vec<Slot>,
}

#[derive(Clone, Debug)]
pub struct WindowCall {
    pub kind: WindowKind,
    pub arguments: Vec<Expr>,
    pub frame: WindowFrame,
    pub ty: DataType,
}

#[derive(Clone, Debug)]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(&'static AggregateFunction),
}

#[derive(Clone, Debug)]
pub struct WindowFrame {
    pub rows: bool,
    pub start: FrameBound,
    pub end: FrameBound,
}

#[derive(Clone, Debug)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

#[derive(Debug)]
pub struct Insert {
    pub table: Arc<Table>,
    /// The row being built: every column of the table; expressions in `values` and defaults read it.
    pub slot: Slot,
    /// Positions of the columns that the source gives, in its order.
    pub columns: Vec<usize>,
    pub source: InsertSource,
    /// The source reads the table too: all its rows are computed before the first is written.
    pub reads_itself: bool,
    pub duplicates: OnDuplicate,
    pub ignore: bool,
    /// What views that the row goes through want of it.
    pub checks: Vec<ViewCheck>,
}

#[derive(Debug)]
pub enum InsertSource {
    /// The lines of a file.
    Load(Load),
    /// `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    Query {
        node: Node,
        output: Vec<Expr>,
    },
}

/// LOAD DATA: how a file's lines become rows.
#[derive(Debug)]
pub struct Load {
    pub format: FileFormat,
    pub charset: Charset,
    pub ignore_lines: u64,
    /// Where each field goes.
    pub targets: Vec<LoadTarget>,
    /// SET: positions in the statement's columns; `None` is DEFAULT.
    pub assignments: Vec<(usize, Option<Expr>)>,
}

#[derive(Debug)]
pub enum LoadTarget {
    /// A position in the statement's columns.
    Column(usize),
    /// A user variable.
    Variable(CompactString),
}

#[derive(Debug)]
pub enum OnDuplicate {
    Error,
    Replace,
    /// Assignments over the existing row, which is put into the insert's slot, with the refused row in
    /// `new_slot` (VALUES(), row alias).
    Update {
        new_slot: Slot,
        target: Box<UpdateTarget>,
    },
}

/// `column = value`; `None` is DEFAULT.
#[derive(Debug)]
pub struct Assignment {
    pub column: usize,
    pub value: Option<Expr>,
}

/// WITH CHECK OPTION: a changed row must still be one of the view's (1369).
#[derive(Clone, Debug)]
pub struct ViewCheck {
    /// With its schema.
    pub view: String,
    /// Over the slots of the view's tables.
    pub conditions: Vec<Expr>,
}

#[derive(Debug)]
pub struct Update {
    pub node: Node,
    pub targets: Vec<UpdateTarget>,
    pub ignore: bool,
    pub limit: Option<Expr>,
    /// One table, no ORDER BY, and no row can come again by what it becomes: rows may be changed while they are read (the scan
    /// locks them). Otherwise target rows are collected first.
    pub in_place: bool,
}

/// A table whose rows get other values in some columns.
#[derive(Debug)]
pub struct UpdateTarget {
    pub table: Arc<Table>,
    pub slot: Slot,
    pub assignments: Vec<Assignment>,
    /// What follows from the assignments.
    pub changes: ColumnChanges,
    /// What views that the row goes through want of it.
    pub checks: Vec<ViewCheck>,
}

impl UpdateTarget {
    /// Works out what follows from the assignments.
    pub fn new(
        table: Arc<Table>,
        slot: Slot,
        assignments: Vec<Assignment>,
        checks: Vec<ViewCheck>,
    ) -> UpdateTarget {
        let assigned: Vec<usize> = assignments.iter().map(|a| a.column).collect();
        UpdateTarget {
            changes: ColumnChanges::of_assignments(&table, &assigned),
            table,
            slot,
            assignments,
            checks,
        }
    }
}

#[derive(Debug)]
pub struct Delete {
    pub node: Node,
    pub targets: Vec<(Arc<Table>, Slot)>,
    pub ignore: bool,
    pub limit: Option<Expr>,
    pub in_place: bool,
}

/// The slots a node's rows live in: what has to be kept to keep its row.
pub fn slots_of(node: &Node) -> Vec<Slot> {
    match node {
        Node::One | Node::Empty => Vec::new(),
        Node::Scan(scan) => vec![scan.slot],
        Node::Values { slot, .. }
        | Node::JsonTable { slot, .. }
        | Node::Virtual { slot, .. }
        | Node::Derived { slot, .. }
        | Node::Recursive { slot, .. }
        | Node::Working { slot, .. }
        | Node::SetOperation { slot, .. } => vec![*slot],
        Node::Group(group) => vec![group.slot],
        Node::Filter { input, .. }
        | Node::Distinct { input, .. }
        | Node::Limit { input, .. }
        | Node::Sort { input, .. } => slots_of(input),
        Node::Project { input, slot, .. } => {
            let mut slots = slots_of(input);
            slots.push(*slot);
            slots
        }
        Node::NestedLoop {
            left, right, kind, ..
        }
        | Node::HashJoin {
            left, right, kind, ..
        } => {
            let mut slots = slots_of(left);
            if matches!(kind, JoinKind::Inner | JoinKind::Left) {
                slots.extend(slots_of(right));
            }
            slots
        }
        Node::Window(window) => {
            let mut slots = slots_of(&window.input);
            slots.push(window.slot);
            slots
        }
    }
}
