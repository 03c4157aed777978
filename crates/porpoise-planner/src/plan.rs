//! Plans: what the planner makes and the executor runs. Immutable, shared, cached.
//!
//! A plan is a tree of [`Node`]s. Each node yields rows one at a time *into slots of the frame*
//! (see [`porpoise_expr::SlotId`]); a node's doc says which. Scans fill their own slot with the
//! stored row; a filter passes its input's slots on; a grouping, a projection or a derived table
//! encodes a row of its own into its own slot. The root's output expressions then read the slots.
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

mod access;
mod change;
mod measure;
mod traverse;

use std::num::NonZeroU64;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::program::RoutineLock;
use porpoise_catalog::{Relation, Table, TableId, View};
use porpoise_core::error::Condition;
use porpoise_core::reply::ResultColumn;
use porpoise_core::variables::SessionVars;
use porpoise_expr::aggregate::{Aggregate, AggregateFunction, SortKey};
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::stack;
use porpoise_types::json::path::JsonPath;
use porpoise_types::{Charset, DataType, Json, KeptColumns, RowLayout};

use crate::access::{Accesses, RoutineUse};
use crate::file_format::FileFormat;
use crate::foreign_keys::ForeignKeyGraph;
use crate::optimize::ExpectedLong;
pub use access::{
    Access, IndexCondition, KeyBound, KeyOperation, KeyPart, KeyRange, KeySource, OnLocked,
    RowLock, Scan, SkipScan, Taken,
};
pub use change::{
    Assignment, Delete, Insert, InsertSource, Load, LoadTarget, OnDuplicate, RowTriggers, Update,
    UpdateTarget, ViewCheck,
};
pub use measure::Measure;
pub use porpoise_mdl::TableUse;

/// A whole statement, ready to run any number of times with other parameters.
#[derive(Debug)]
pub struct Plan {
    /// What the statement does, with its operators.
    pub kind: PlanKind,
    /// How many levels deep operators and expressions nest, at most: executing, explaining and
    /// dropping the plan takes a stack of that many levels.
    pub depth: u32,
    /// How many slots the frame needs, with the layout of each.
    pub slots: Vec<SlotLayout>,
    /// How many parameters the statement has.
    pub parameter_count: usize,
    /// The catalog's version of programs that triggers and functions were looked for in.
    pub programs_version: u64,
    /// Tables the plan read, by the version it saw: the plan is stale when one has another.
    pub dependencies: Vec<(TableId, u64)>,
    /// How to take each table's metadata lock, in order of name.
    pub tables: Vec<(Arc<Table>, TableUse)>,
    /// The views that it went through.
    pub views: Vec<(Arc<View>, TableUse)>,
    /// The functions that it calls, and the routines that these and its triggers call.
    pub routine_locks: Vec<RoutineLock>,
    /// What the statement calls its tables, outside views: LOCK TABLES admits them by name.
    pub table_names: Vec<(Arc<Table>, CompactString)>,
    /// What foreign keys require of a change; `None` where it touches none.
    pub foreign_keys: Option<Arc<ForeignKeyGraph>>,
    /// The tables of `foreign_keys` that are not among `tables`, and how to take their metadata
    /// locks.
    pub foreign_key_tables: Vec<(Arc<Table>, TableUse)>,
    /// The plans of subqueries in expressions, by the number that `ExprKind::Subquery` has; nothing
    /// where the subquery became a join.
    pub subplans: Vec<Option<Subplan>>,
    /// False for statements whose plan must not be cached: it depends on what has no version.
    pub cacheable: bool,
    /// The user variables that it reads, with the types of their values: with another type it is
    /// another plan.
    pub user_variables: Vec<(CompactString, DataType)>,
    /// A query that locks rows (FOR UPDATE, FOR SHARE): it needs a transaction as a change does.
    pub locks_rows: bool,
    /// Lifted literals on whose value, not only type, the plan depends.
    pub fixed_parameters: Vec<usize>,
    /// What planning warned of: optimizer hints that can't be followed.
    pub warnings: Vec<Condition>,
    /// Whether it is likely to run for milliseconds.
    pub expected_long: ExpectedLong,
    /// What it needs privileges for.
    pub accesses: Accesses,
    /// The stored functions that it calls.
    pub routines: Vec<RoutineUse>,
    /// A program that it runs changes rows.
    pub runs_writes: bool,
    /// The tables that it uses itself, where it runs programs: these may not change them.
    pub own_tables: Vec<TableId>,
    /// Names of each slot's columns, for EXPLAIN; empty for a table's slot.
    pub column_names: Vec<Vec<CompactString>>,
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.depth > stack::SHALLOW {
            stack::reserve(self.depth, || {
                self.subplans.clear();
                self.take_kind();
            });
        }
    }
}

impl Plan {
    /// Takes out what the plan does, and leaves a query without rows.
    pub fn take_kind(&mut self) -> PlanKind {
        let nothing = Query {
            node: Node::Empty,
            output: Vec::new(),
            columns: Vec::new(),
            name_spans: Vec::new(),
            calc_found_rows: false,
            into: Destination::Client,
            max_execution_time_ms: None,
        };
        std::mem::replace(&mut self.kind, PlanKind::Query(nothing))
    }

    /// Whether the user variables that it reads have values of the types that it was made for.
    pub fn fits_user_variables(&self, session: &SessionVars) -> bool {
        let mut read = self.user_variables.iter();
        read.all(|(name, ty)| *session.user_variable_type(name) == *ty)
    }

    /// The plan of the subquery of that number, unless it became a join.
    pub fn subplan(&self, number: usize) -> Option<&Subplan> {
        self.subplans.get(number)?.as_ref()
    }

    /// Whether it needs a transaction.
    pub fn writes(&self) -> bool {
        self.locks_rows || self.runs_writes || !matches!(self.kind, PlanKind::Query(_))
    }

    /// Whether it changes rows of tables that outlive the session, or locks them exclusively.
    pub fn changes_lasting_tables(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|(table, usage)| *usage == TableUse::Write && !table.temporary)
    }

    /// The schema that is READ ONLY and in which it changes rows, or locks them exclusively.
    pub fn read_only_schema(&self, catalog: &porpoise_catalog::Catalog) -> Option<&str> {
        let tables = self.tables.iter().chain(&self.foreign_key_tables);
        let mut written =
            tables.filter(|(table, usage)| *usage == TableUse::Write && !table.temporary);
        let is_read_only = |schema: &str| {
            let entry = catalog.schema(schema);
            entry.is_some_and(|entry| entry.schema.read_only)
        };
        let table = written.find(|(table, _)| is_read_only(&table.schema))?;
        Some(&table.0.schema)
    }

    /// Whether every table and view is still the one it was made for, what it writes may be written,
    /// and no program has changed.
    pub fn is_current(&self, catalog: &porpoise_catalog::Catalog) -> bool {
        let mut tables = self.tables.iter().chain(&self.foreign_key_tables);
        self.programs_version == catalog.programs_version
            && self.read_only_schema(catalog).is_none()
            && tables.all(|(table, _)| {
                table.temporary
                    || matches!(
                        catalog.relation(&table.schema, &table.name),
                        Some(Relation::Table(now)) if now.version == table.version
                    )
            })
            && self.views.iter().all(|(view, _)| {
                matches!(
                    catalog.relation(&view.schema, &view.name),
                    Some(Relation::View(now)) if now.version == view.version
                )
            })
    }
}

/// What one slot of the frame holds.
#[derive(Clone, Debug)]
pub struct SlotLayout {
    /// Name for EXPLAIN.
    pub name: CompactString,
    /// The stored table whose rows it holds.
    pub table: Option<Arc<Table>>,
    /// The encoding of the slot's row.
    pub layout: Arc<RowLayout>,
    /// Types of the layout's columns.
    pub types: Vec<DataType>,
    /// With a covering index the stored row is the index's entry: where in it each of the table's
    /// columns lies (`Expr` columns always count as the table does). `None`: as the layout has
    /// them.
    pub map: Option<Vec<u16>>,
    /// What a scan that locks nothing keeps of long rows: the columns that the statement reads, and
    /// those of indexes. `None`: all of it.
    pub kept: Option<KeptColumns>,
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
            kept: None,
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

/// What a plan does when it runs.
#[derive(Debug)]
pub enum PlanKind {
    /// Returns rows: SELECT, VALUES, TABLE.
    Query(Query),
    /// Adds rows: INSERT, REPLACE, LOAD DATA.
    Insert(Insert),
    /// Changes rows.
    Update(Update),
    /// Removes rows.
    Delete(Delete),
}

impl PlanKind {
    /// The first table whose rows the statement itself changes, and which fits: not those that its
    /// triggers or its foreign keys change.
    pub fn find_target(&self, mut fits: impl FnMut(&Table) -> bool) -> Option<&Table> {
        match self {
            PlanKind::Query(_) => None,
            PlanKind::Insert(insert) => Some(&*insert.table).filter(|table| fits(table)),
            PlanKind::Update(update) => {
                let mut targets = update.targets.iter().map(|target| &*target.table);
                targets.find(|table| fits(table))
            }
            PlanKind::Delete(delete) => {
                let mut targets = delete.targets.iter().map(|(table, _)| &**table);
                targets.find(|table| fits(table))
            }
        }
    }
}

/// A query that returns rows to the client or into variables.
#[derive(Debug)]
pub struct Query {
    /// Yields the rows.
    pub node: Node,
    /// A value each result column, over the slots that `node` fills.
    pub output: Vec<Expr>,
    /// The result's columns, as the client gets them.
    pub columns: Vec<ResultColumn>,
    /// Columns that are named by a piece of the statement's text which holds a lifted literal:
    /// where it is.
    pub name_spans: Vec<Option<porpoise_sql::ast::Span>>,
    /// SQL_CALC_FOUND_ROWS: run on behind the limit and count.
    pub calc_found_rows: bool,
    /// Where the rows go.
    pub into: Destination,
    /// The time that the statement is given by a hint, in milliseconds; `None` where
    /// `max_execution_time` says it.
    pub max_execution_time_ms: Option<NonZeroU64>,
}

/// Where a query's rows go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// To the client.
    Client,
    /// `INTO @a, b`: its only row goes into variables.
    Variables(Vec<Target>),
    /// `INTO OUTFILE`, `INTO DUMPFILE`: to a file, and none to the client.
    File(Box<OutputFile>),
    /// To the program that the query belongs to, as values: a cursor's rows.
    Program,
}

/// A variable that a value goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `@name`, in lower case.
    User(CompactString),
    /// A variable of the program, by the position of its value.
    Local(usize),
}

/// A file that a query's rows are written to.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// Its path, as the statement says it.
    pub path: Box<[u8]>,
    /// How; `None` for DUMPFILE: the values of one row, one after the other.
    pub format: Option<FileFormat>,
    /// The character set that texts are converted to; by default each stays in its own.
    pub charset: Option<Charset>,
}

/// A query inside an expression.
#[derive(Debug)]
pub struct Subplan {
    /// Its position in [`Plan::subplans`], under which its result is kept too.
    pub number: usize,
    /// Yields the rows.
    pub node: Node,
    /// A value each column, over the slots that `node` fills and the enclosing query's.
    pub output: Vec<Expr>,
    /// Reads slots of an enclosing query: must run again whenever those change.
    pub correlated: bool,
    /// The columns of enclosing queries that it reads, if its result depends on nothing else.
    pub outer_columns: Option<Vec<Expr>>,
}

/// What a join does with rows that match and rows that don't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// The left row with each right row that matches.
    Inner,
    /// A row of NULLs for the right side where nothing matches.
    Left,
    /// The left row once if something matches.
    Semi,
    /// The left row if nothing matches.
    Anti,
}

/// An operator: yields rows into slots of the frame, as its doc says.
#[derive(Clone, Debug)]
pub enum Node {
    /// No table: one empty row.
    One,
    /// No row (an impossible WHERE).
    Empty,
    /// A stored table's rows, into the scan's slot.
    Scan(Box<Scan>),
    /// Rows computed from expressions: VALUES ROW(…). Fills `slot`.
    Values {
        /// Where the rows are put.
        slot: SlotId,
        /// A list of expressions for each row.
        rows: Vec<Vec<Expr>>,
    },
    /// JSON_TABLE: the rows that the table's paths find in a document. Fills `slot`.
    JsonTable {
        /// Where the rows are put.
        slot: SlotId,
        /// The JSON document.
        doc: Expr,
        /// The paths and columns.
        table: Arc<JsonTable>,
    },
    /// A table made by code: information_schema, performance_schema. Fills `slot`.
    Virtual {
        /// Where the rows are put.
        slot: SlotId,
        /// The table that is read.
        table: &'static porpoise_catalog::VirtualTable,
        /// Conditions on the table's columns, all of which must hold.
        filter: Vec<Expr>,
    },
    /// A derived table, view or CTE: runs `input`, encodes `output` into `slot`. Materialised once
    /// an execution when `materialize` (a number shared by all references to the same CTE).
    Derived {
        /// Where the rows are put.
        slot: SlotId,
        /// Yields the inner query's rows.
        input: Box<Node>,
        /// The inner query's columns, over the slots that `input` fills.
        output: Vec<Expr>,
        /// The materialisation's number, unique in the plan; `None`: runs anew each time it is
        /// opened.
        materialize: Option<usize>,
        /// Reads slots of an enclosing query (LATERAL, or a correlated subquery's derived table).
        correlated: bool,
    },
    /// WITH RECURSIVE: `seed`, then `step` over the last round's rows (which `Node::Working`
    /// reads), until none come.
    Recursive {
        /// Where all rows are put, of the seed and of every round.
        slot: SlotId,
        /// Yields the rows before the first round.
        seed: Box<Node>,
        /// The seed's columns.
        seed_output: Vec<Expr>,
        /// Yields a round's new rows.
        step: Box<Node>,
        /// The step's columns.
        step_output: Vec<Expr>,
        /// UNION DISTINCT: a row that has come before is dropped.
        distinct: bool,
        /// The number by which [`Node::Working`] names this table's last round.
        working: usize,
    },
    /// The rows of the last round of the recursive table `working`.
    Working {
        /// Where the rows are put.
        slot: SlotId,
        /// The number of the [`Node::Recursive`] that the rows are of.
        working: usize,
    },
    /// Lets the rows pass for which every condition is true.
    Filter {
        /// Yields the rows.
        input: Box<Node>,
        /// All must hold.
        conditions: Vec<Expr>,
    },
    /// For each left row, the right side opened anew. `condition` is on both sides' slots.
    NestedLoop {
        /// The outer side, read once.
        left: Box<Node>,
        /// The inner side; reads the left side's slots.
        right: Box<Node>,
        /// Which rows come out.
        kind: JoinKind,
        /// All must hold for a pair to match.
        condition: Vec<Expr>,
        /// A guess of how many rows come out.
        rows_estimate: f64,
    },
    /// Builds a hash table of the right side's rows by `right_keys`, probes with `left_keys`.
    HashJoin {
        /// The probing side.
        left: Box<Node>,
        /// The side that the hash table is built of.
        right: Box<Node>,
        /// Which rows come out.
        kind: JoinKind,
        /// Over the left side's slots.
        left_keys: Vec<Expr>,
        /// Over the right side's slots, in the order of `left_keys`.
        right_keys: Vec<Expr>,
        /// What must hold beside equal keys.
        condition: Vec<Expr>,
        /// The right side's slots, whose rows the hash table keeps.
        right_slots: Vec<SlotId>,
        /// The right side is the same whatever the enclosing query's rows: the hash table is made
        /// once for the statement, and kept under this number.
        kept: Option<usize>,
        /// A guess of how many rows come out.
        rows_estimate: f64,
    },
    /// Yields the rows in batches as large as `join_buffer_size`, each sorted by what an index is
    /// looked up by next: look-ups that are near each other come one after the other.
    Batch {
        /// Yields the rows.
        input: Box<Node>,
        /// What is looked up.
        keys: Vec<SortKey>,
        /// The input's slots, whose rows a batch keeps.
        slots: Vec<SlotId>,
    },
    /// Groups by `keys`, fills `slot` with the keys and then the aggregates.
    Group(Box<Group>),
    /// Encodes expressions into `slot` (before a sort or a distinct that needs them computed).
    Project {
        /// Yields the rows.
        input: Box<Node>,
        /// Where the values are put, encoded.
        slot: SlotId,
        /// Over the input's slots.
        output: Vec<Expr>,
    },
    /// Sorts by keys; keeps only `limit` rows where given (offset + count). Saves and restores
    /// `slots`. Without keys rows stay in their order, but none passes before all have come.
    Sort {
        /// Yields the rows.
        input: Box<Node>,
        /// The most significant key first.
        keys: Vec<SortKey>,
        /// How many rows to keep at most.
        limit: Option<Box<Expr>>,
        /// `limit` counts rows that are made of these later, of so many each: more may be asked
        /// for than are kept. They are read again then, and can be: they are the same each time.
        refill: Option<f64>,
        /// Only the first row of each key passes. Not together with `limit`.
        distinct: bool,
        /// The slots whose rows are saved and restored.
        slots: Vec<SlotId>,
    },
    /// Lets the first row of each distinct combination pass.
    Distinct {
        /// Yields the rows.
        input: Box<Node>,
        /// What must differ, over the input's slots.
        keys: Vec<Expr>,
        /// The keys tell rows of a semi-join's left side apart; the right side was joined to them as
        /// by an inner join.
        is_weedout: bool,
    },
    /// LIMIT and OFFSET.
    Limit {
        /// Yields the rows.
        input: Box<Node>,
        /// How many rows to pass over; `None`: 0.
        offset: Option<Box<Expr>>,
        /// How many rows to let pass; `None`: all.
        count: Option<Box<Expr>>,
    },
    /// UNION/INTERSECT/EXCEPT: each input's output is encoded into `slot`.
    SetOperation {
        /// Where the rows are put.
        slot: SlotId,
        /// Which rows of the inputs come out.
        op: SetOperator,
        /// Each row once, not ALL.
        distinct: bool,
        /// Each query's operator, and its columns over the slots that the operator fills.
        inputs: Vec<(Node, Vec<Expr>)>,
    },
    /// Window functions over sorted, partitioned rows.
    Window(Box<Window>),
    /// Counts the input's rows, and takes its time (EXPLAIN ANALYZE).
    Measured {
        /// What is measured.
        input: Box<Node>,
        /// The number that its figures are kept under, unique in the plan.
        number: usize,
    },
}

/// What JSON_TABLE makes of each value that `path` finds: a row, or several where nested paths find
/// more.
#[derive(Debug)]
pub struct JsonTable {
    /// Finds the values, in the document or in the enclosing path's value.
    pub path: JsonPath,
    /// The columns of this path itself, without those of `nested`.
    pub columns: Vec<JsonColumn>,
    /// Each finds rows of its own; side by side the others' columns are NULL.
    pub nested: Vec<JsonTable>,
}

/// A column of JSON_TABLE, and where in the slot it lies.
#[derive(Debug)]
pub struct JsonColumn {
    /// The column's position in the slot.
    pub position: usize,
    /// As COLUMNS declares it.
    pub name: CompactString,
    /// As COLUMNS declares it; the value is converted to it.
    pub ty: DataType,
    /// Where the value comes from.
    pub source: JsonSource,
}

/// Where a JSON_TABLE column gets its value.
#[derive(Debug)]
pub enum JsonSource {
    /// The row's number among those of its path, from 1.
    Ordinality,
    /// 1 where the path finds something, 0 where it doesn't.
    Exists(JsonPath),
    /// What the path finds, converted to the column's type.
    Value {
        /// Relative to the row's value.
        path: JsonPath,
        /// Where the path finds nothing.
        on_empty: JsonOtherwise,
        /// Where what it finds can't be converted.
        on_error: JsonOtherwise,
    },
}

/// What JSON_TABLE does without a value, or with one that doesn't fit.
#[derive(Clone, Debug)]
pub enum JsonOtherwise {
    /// NULL.
    Null,
    /// An error: 3665 for ON EMPTY, else the conversion's.
    Error,
    /// The given JSON value, converted to the column's type.
    Default(Json),
}

/// How the rows of several queries are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    /// UNION: rows of any input.
    Union,
    /// INTERSECT: rows of all inputs.
    Intersect,
    /// EXCEPT: rows of the first input that no other has.
    Except,
}

/// A grouping with its aggregates.
#[derive(Clone, Debug)]
pub struct Group {
    /// Yields the rows to group.
    pub input: Node,
    /// Where a group's keys and aggregates are put.
    pub slot: SlotId,
    /// GROUP BY, over the input's slots; the slot's first columns.
    pub keys: Vec<Expr>,
    /// The slot's columns after the keys.
    pub aggregates: Vec<Aggregate>,
    /// The input comes ordered by the keys: no hash table needed.
    pub ordered: bool,
    /// WITH ROLLUP: the input comes ordered by the keys. After the aggregates `slot` has one column
    /// more, a BIGINT UNSIGNED whose bit *i* is set where key *i* is rolled up (GROUPING() reads
    /// it).
    pub rollup: bool,
    /// No GROUP BY: one row even for no input.
    pub scalar: bool,
}

/// Window functions over one window; fills `slot` with their results beside the input's slots.
#[derive(Clone, Debug)]
pub struct Window {
    /// Yields the rows.
    pub input: Node,
    /// Where the functions' results are put.
    pub slot: SlotId,
    /// PARTITION BY, over the input's slots; empty: one partition.
    pub partition: Vec<Expr>,
    /// The window's ORDER BY; empty: all rows of a partition are peers.
    pub order: Vec<SortKey>,
    /// The functions, in the order of the slot's columns.
    pub functions: Vec<WindowCall>,
    /// Slots of the input to save and restore.
    pub slots: Vec<SlotId>,
}

/// A call of one window function.
#[derive(Clone, Debug)]
pub struct WindowCall {
    /// Which function.
    pub kind: WindowKind,
    /// Over the input's slots.
    pub arguments: Vec<Expr>,
    /// Which rows of the partition the function sees.
    pub frame: WindowFrame,
    /// The result's type.
    pub ty: DataType,
}

/// A window function (MySQL 8.4 manual, 14.20.1).
#[derive(Clone, Debug)]
pub enum WindowKind {
    /// The row's number in its partition, from 1.
    RowNumber,
    /// The rank, with gaps after peers.
    Rank,
    /// The rank, without gaps.
    DenseRank,
    /// The rank as a fraction of the partition, 0 to 1.
    PercentRank,
    /// The part of the partition that is not behind the row, over 0 to 1.
    CumeDist,
    /// Which of so many buckets the row is in, from 1.
    Ntile,
    /// A value of the row so many rows before.
    Lag,
    /// A value of the row so many rows after.
    Lead,
    /// A value of the frame's first row.
    FirstValue,
    /// A value of the frame's last row.
    LastValue,
    /// A value of the frame's row of that number.
    NthValue,
    /// An aggregate function, over the frame's rows.
    Aggregate(&'static AggregateFunction),
}

impl WindowKind {
    /// The function's name, in lower case.
    pub fn name(&self) -> String {
        let name = match self {
            WindowKind::RowNumber => "row_number",
            WindowKind::Rank => "rank",
            WindowKind::DenseRank => "dense_rank",
            WindowKind::PercentRank => "percent_rank",
            WindowKind::CumeDist => "cume_dist",
            WindowKind::Ntile => "ntile",
            WindowKind::Lag => "lag",
            WindowKind::Lead => "lead",
            WindowKind::FirstValue => "first_value",
            WindowKind::LastValue => "last_value",
            WindowKind::NthValue => "nth_value",
            WindowKind::Aggregate(function) => return function.name.to_ascii_lowercase(),
        };
        name.to_string()
    }
}

/// The part of a partition that a window function sees from a row.
#[derive(Clone, Debug)]
pub struct WindowFrame {
    /// ROWS: bounds count rows. Otherwise RANGE: they are distances of the ORDER BY value, and
    /// include peers.
    pub rows: bool,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
}

/// One end of a frame.
#[derive(Clone, Debug)]
pub enum FrameBound {
    /// The partition's first row.
    UnboundedPreceding,
    /// So many rows, or such a distance, before the current row.
    Preceding(Box<Expr>),
    /// The row itself; with RANGE also its peers.
    CurrentRow,
    /// So many rows, or such a distance, after the current row.
    Following(Box<Expr>),
    /// The partition's last row.
    UnboundedFollowing,
}

/// The slots a node's rows live in: what has to be kept to keep its row.
pub fn slots_of(node: &Node) -> Vec<SlotId> {
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
        | Node::Measured { input, .. }
        | Node::Sort { input, .. }
        | Node::Batch { input, .. } => slots_of(input),
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
