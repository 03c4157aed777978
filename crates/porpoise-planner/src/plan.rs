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

mod measure;
mod traverse;

use std::num::NonZeroU64;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Index, IndexKind, Relation, Table, TableId, View};
use porpoise_core::error::Condition;
use porpoise_core::reply::ResultColumn;
use porpoise_expr::aggregate::{Aggregate, AggregateFunction, SortKey};
use porpoise_expr::function::StoredFunction;
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_sql::stack;
use porpoise_types::json::path::JsonPath;
use porpoise_types::{Charset, DataType, Json, RowLayout};

use crate::ProgramUses;
use crate::access::Accesses;
use crate::column_changes::ColumnChanges;
use crate::file_format::FileFormat;
use crate::foreign_keys::ForeignKeyGraph;
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
    /// A query that locks rows (FOR UPDATE, FOR SHARE): it needs a transaction as a change does.
    pub locks_rows: bool,
    /// Lifted literals on whose value, not only type, the plan depends.
    pub fixed_parameters: Vec<usize>,
    /// What planning warned of: optimizer hints that can't be followed.
    pub warnings: Vec<Condition>,
    /// What it needs privileges for.
    pub accesses: Accesses,
    /// The stored functions that it calls: schema and name.
    pub routines: Vec<(CompactString, CompactString)>,
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

    /// Whether every table and view is still the one it was made for, and no program has changed.
    pub fn is_current(&self, catalog: &porpoise_catalog::Catalog) -> bool {
        let mut tables = self.tables.iter().chain(&self.foreign_key_tables);
        self.programs_version == catalog.programs_version
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

/// How a scan locks the rows that it yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLock {
    /// Not at all: a consistent read of the snapshot.
    #[default]
    None,
    /// FOR SHARE.
    Shared(OnLocked),
    /// FOR UPDATE, and what UPDATE and DELETE read.
    Exclusive(OnLocked),
}

/// What a locking read does with a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLocked {
    /// Waits until the lock is free or `innodb_lock_wait_timeout` is over (error 1205).
    Wait,
    /// NOWAIT: error 3572.
    Fail,
    /// SKIP LOCKED: passes over the row.
    Skip,
}

/// A part of an index: rows between two bounds of its leading parts.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Leading parts fixed to a value (`=`, or IS NULL when the flag is set: `<=>`).
    pub equal: Vec<KeyPart>,
    /// Bounds on the part after them.
    pub lower: Option<KeyBound>,
    /// The upper bound; `None`: to the end of what `equal` selects.
    pub upper: Option<KeyBound>,
}

impl KeyRange {
    /// The whole index.
    pub const ALL: KeyRange = KeyRange {
        equal: Vec::new(),
        lower: None,
        upper: None,
    };

    /// Whether it is the whole index.
    pub(crate) fn is_all(&self) -> bool {
        self.equal.is_empty() && !self.is_bounded()
    }

    /// Whether it has a bound beside its fixed parts.
    pub(crate) fn is_bounded(&self) -> bool {
        self.lower.is_some() || self.upper.is_some()
    }

    /// Whether it holds one key at most: every part of a unique index is fixed, and none may be
    /// NULL.
    pub fn is_point(&self, index: &Index) -> bool {
        index.is_unique()
            && self.equal.len() == index.parts.len()
            && self.equal.iter().all(|part| !part.null_safe)
            && index.parts.iter().all(|part| part.prefix.is_none())
    }
}

/// A leading index part that is fixed to a value.
#[derive(Clone, Debug)]
pub struct KeyPart {
    /// Evaluated once a scan is opened; reads slots filled before it.
    pub value: Expr,
    /// `<=>`: NULL matches NULL. Otherwise a NULL makes the range empty.
    pub null_safe: bool,
}

/// A bound of a range.
#[derive(Clone, Debug)]
pub struct KeyBound {
    /// Evaluated once a scan is opened; reads slots filled before it.
    pub value: Expr,
    /// `<=` or `>=`, not `<` or `>`.
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
        /// Position in `table.indexes`.
        index: usize,
        /// What is read, in the index's order.
        ranges: Vec<KeyRange>,
        /// The index's entries hold every column that the statement reads: rows are not looked up.
        covering: bool,
    },
    /// At most one row: every part of a unique index is fixed and none is NULL.
    Point {
        /// Position in `table.indexes`.
        index: usize,
        /// A value each part of the index.
        key: Vec<Expr>,
        /// The index's entry holds every column that the statement reads.
        covering: bool,
    },
    /// The rows that parts of several indexes lead to, each once, in the order of the table's
    /// keys. All keys are collected before the first row is read.
    Merge {
        /// Which of the keys are wanted.
        operation: KeyOperation,
        /// Where the keys come from: two or more.
        sources: Vec<KeySource>,
    },
    /// Rows of an index whose leading parts no condition fixes, or the ends of groups.
    Skip(Box<SkipScan>),
}

impl Access {
    /// The index that is read, if it is one alone, and whether its entries hold all that the
    /// statement reads.
    pub fn single_index(&self) -> Option<(usize, bool)> {
        match self {
            Access::Full | Access::Merge { .. } => None,
            Access::Index {
                index, covering, ..
            }
            | Access::Point {
                index, covering, ..
            } => Some((*index, *covering)),
            Access::Skip(skip) => Some((skip.index, skip.covering)),
        }
    }

    /// Whether the statement's columns are read from an index's entries.
    pub fn is_covering(&self) -> bool {
        self.single_index().is_some_and(|(_, covering)| covering)
    }
}

/// What is read of an index whose leading parts are stepped through, one combination of their
/// values after the other.
///
/// ```text
/// index (a, b), prefix 1        a:   1         2         3
///   inner (b > 5), All          b:   6 7       9         -       a skip scan
///   inner everything, Ends      b:   1   7     4   9     2       MIN(b), MAX(b) … GROUP BY a
/// ```
#[derive(Clone, Debug)]
pub struct SkipScan {
    /// Position in `table.indexes`.
    pub index: usize,
    /// How many leading parts make a combination; at least one.
    pub prefix: usize,
    /// Which combinations: ranges over those parts.
    pub ranges: Vec<KeyRange>,
    /// Which entries of a combination: ranges over the parts behind, the same for each.
    pub inner: Vec<KeyRange>,
    /// Which of these entries are wanted.
    pub taken: Taken,
    /// The index's entries hold every column that the statement reads: rows are not looked up.
    pub covering: bool,
}

impl SkipScan {
    /// Whether it leaves entries out that conditions exclude.
    pub(crate) fn has_conditions(&self) -> bool {
        let mut ranges = self.ranges.iter().chain(&self.inner);
        !ranges.all(KeyRange::is_all)
    }
}

/// Which of a combination's entries a [`SkipScan`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All.
    All,
    /// Those at the ends, which tell of the whole group.
    Ends {
        /// The first one.
        first: bool,
        /// The last one.
        last: bool,
        /// Where there are some, of those whose part behind the fixed ones isn't NULL.
        not_null: bool,
    },
}

/// Conditions on an index's entries, checked before their rows are read.
#[derive(Clone, Debug)]
pub struct IndexCondition {
    /// Where the entry is put.
    pub slot: SlotId,
    /// All must hold; they read the entry's slot in place of the row's.
    pub conditions: Vec<Expr>,
}

/// Which keys of several sources are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    /// Those of any source.
    Union,
    /// Those of all sources.
    Intersection,
}

/// Parts of an index, of which only the keys of the rows are wanted.
#[derive(Clone, Debug)]
pub struct KeySource {
    /// Position in `table.indexes`; the primary key may be one of several sources.
    pub index: usize,
    /// What is read.
    pub ranges: Vec<KeyRange>,
    /// How many parts of the index conditions fix or bound; for EXPLAIN.
    pub parts: usize,
}

impl KeySource {
    /// Whether its entries come in the order of the table's keys: one range, which fixes every part
    /// of a secondary index.
    pub(crate) fn is_in_key_order(&self, table: &Table) -> bool {
        let index = &table.indexes[self.index];
        match &self.ranges[..] {
            [_] if index.kind == IndexKind::Primary => true,
            [range] => range.equal.len() == index.parts.len(),
            _ => false,
        }
    }
}

/// A read of one table's rows.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Where each row is put.
    pub slot: SlotId,
    /// The table as it was when the plan was made.
    pub table: Arc<Table>,
    /// How the rows are reached.
    pub access: Access,
    /// From the end of the key order to its beginning.
    pub reverse: bool,
    /// How the rows are locked.
    pub lock: RowLock,
    /// Which columns the statement reads from this slot; with a covering index, all are in its
    /// entry.
    pub columns_read: Vec<bool>,
    /// Conditions that an index's entry alone decides, where rows are looked up behind it.
    pub index_condition: Option<IndexCondition>,
    /// Conditions on this table alone (and on slots filled before), checked as soon as the row is
    /// there.
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

/// INSERT, REPLACE or LOAD DATA.
#[derive(Debug)]
pub struct Insert {
    /// The table that gets the rows.
    pub table: Arc<Table>,
    /// The row being built: every column of the table; expressions in `values` and defaults read
    /// it.
    pub slot: SlotId,
    /// Positions of the columns that the source gives, in its order.
    pub columns: Vec<usize>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// The source reads the table too: all its rows are computed before the first is written.
    pub reads_itself: bool,
    /// What happens to a row whose key another row has.
    pub duplicates: OnDuplicate,
    /// IGNORE: errors of a row become warnings.
    pub ignore: bool,
    /// WITH CHECK OPTION of the views through which the row is changed.
    pub checks: Vec<ViewCheck>,
    /// What its rows fire.
    pub triggers: Option<Arc<RowTriggers>>,
}

/// Where an INSERT gets its rows from.
#[derive(Debug)]
pub enum InsertSource {
    /// The lines of a file.
    Load(Load),
    /// `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    /// The rows of a query.
    Query {
        /// Yields the rows.
        node: Node,
        /// A value each of the insert's `columns`, over the slots that `node` fills.
        output: Vec<Expr>,
    },
}

/// LOAD DATA: how a file's lines become rows.
#[derive(Debug)]
pub struct Load {
    /// How lines and fields are separated.
    pub format: FileFormat,
    /// The file's character set.
    pub charset: Charset,
    /// IGNORE n LINES.
    pub ignore_lines: u64,
    /// Where each field goes.
    pub targets: Vec<LoadTarget>,
    /// SET: positions in the statement's columns; `None` is DEFAULT.
    pub assignments: Vec<(usize, Option<Expr>)>,
}

/// Where LOAD DATA puts a field.
#[derive(Debug)]
pub enum LoadTarget {
    /// A position in the statement's columns.
    Column(usize),
    /// A user variable.
    Variable(CompactString),
}

/// What an INSERT does with a row whose unique key another row has.
#[derive(Debug)]
pub enum OnDuplicate {
    /// Error 1062, or with IGNORE a warning.
    Error,
    /// REPLACE: removes the other rows.
    Replace,
    /// Assignments over the existing row, which is put into the insert's slot, with the refused row
    /// in `new_slot` (VALUES(), row alias).
    Update {
        /// Where the refused row is put.
        new_slot: SlotId,
        /// The assignments, over both slots.
        target: Box<UpdateTarget>,
    },
}

/// `column = value`; `None` is DEFAULT.
#[derive(Debug)]
pub struct Assignment {
    /// Position in `table.columns`.
    pub column: usize,
    /// The new value; reads the row as the assignments before it left it.
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

/// UPDATE of one or several tables.
#[derive(Debug)]
pub struct Update {
    /// Yields the rows to change.
    pub node: Node,
    /// The tables that are changed, in the order of the statement.
    pub targets: Vec<UpdateTarget>,
    /// IGNORE: errors of a row become warnings.
    pub ignore: bool,
    /// LIMIT: how many rows are changed at most.
    pub limit: Option<Expr>,
    /// One table, no ORDER BY, and no changed row can be met again (the Halloween problem): rows
    /// may be changed while they are read, as the scan locks them. Otherwise target rows are
    /// collected first.
    pub in_place: bool,
}

/// A table whose rows get other values in some columns.
#[derive(Debug)]
pub struct UpdateTarget {
    /// The table that is changed.
    pub table: Arc<Table>,
    /// Where the row to change is, and where the new one is made.
    pub slot: SlotId,
    /// In the order of the statement.
    pub assignments: Vec<Assignment>,
    /// What follows from the assignments.
    pub changes: ColumnChanges,
    /// WITH CHECK OPTION of the views through which the row is changed.
    pub checks: Vec<ViewCheck>,
    /// What its rows fire.
    pub triggers: Option<Arc<RowTriggers>>,
}

impl UpdateTarget {
    /// Has changes of its rows fire triggers, which may assign to any column.
    pub fn fire(&mut self, triggers: Option<Arc<RowTriggers>>) {
        if let Some(found) = &triggers
            && found.has(TriggerTime::Before, TriggerEvent::Update)
        {
            let stamped = std::mem::take(&mut self.changes.stamped);
            self.changes = ColumnChanges::of_triggers(&self.table, stamped);
        }
        self.triggers = triggers;
    }

    /// Works out what follows from the assignments.
    pub fn new(
        table: Arc<Table>,
        slot: SlotId,
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
            triggers: None,
        }
    }
}

/// The triggers that changes of a table's rows fire, in their order.
#[derive(Clone, Debug, Default)]
pub struct RowTriggers {
    /// When each is fired, and the program.
    pub list: Vec<(TriggerTime, TriggerEvent, Arc<dyn StoredFunction>)>,
    /// What they use.
    pub uses: Arc<ProgramUses>,
}

impl RowTriggers {
    /// Those that a change fires.
    pub fn of(
        &self,
        time: TriggerTime,
        event: TriggerEvent,
    ) -> impl Iterator<Item = &Arc<dyn StoredFunction>> {
        let fired = self.list.iter();
        fired
            .filter(move |(when, what, _)| *when == time && *what == event)
            .map(|(.., program)| program)
    }

    /// Whether a change fires any.
    pub fn has(&self, time: TriggerTime, event: TriggerEvent) -> bool {
        self.of(time, event).next().is_some()
    }
}

/// DELETE from one or several tables.
#[derive(Debug)]
pub struct Delete {
    /// Yields the rows to delete.
    pub node: Node,
    /// The tables that lose rows, and the slots of the rows.
    pub targets: Vec<(Arc<Table>, SlotId)>,
    /// What the rows of each target fire.
    pub triggers: Vec<Option<Arc<RowTriggers>>>,
    /// IGNORE: errors of a row become warnings.
    pub ignore: bool,
    /// LIMIT: how many rows are deleted at most.
    pub limit: Option<Expr>,
    /// Rows may be deleted while they are read. Otherwise target rows are collected first.
    pub in_place: bool,
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
