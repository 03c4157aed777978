//! Queries: `SELECT` and what it consists of.

use std::sync::Arc;

use super::data_type::DataType;
use super::expr::{Expr, JsonResponse, Window};
use super::hint::StatementHints;
use super::name::{Ident, ObjectName, Span};

/// A query expression: a body with what orders, limits and locks its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// `WITH …`.
    pub with: Option<With>,
    /// `SELECT …`, `… UNION …`.
    pub body: QueryBody,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`.
    pub locking: Vec<Locking>,
    /// `INTO …`, wherever it was written.
    pub into: Option<SelectInto>,
    /// The optimizer hints of the whole statement, where the query is one.
    pub hints: Option<Box<StatementHints>>,
}

/// What a query's rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// `SELECT …`.
    Select(Box<Select>),
    /// `VALUES ROW(…), ROW(…)`.
    Values(Vec<Vec<Expr>>),
    /// `TABLE name`.
    Table(ObjectName),
    /// `left UNION | INTERSECT | EXCEPT right`; `INTERSECT` binds tighter.
    SetOperation(Box<SetOperation>),
    /// `(query)` with an ORDER BY, LIMIT, WITH or locking of its own.
    Query(Box<Query>),
}

/// `left UNION | INTERSECT | EXCEPT right`.
#[derive(Debug, Clone, PartialEq)]
pub struct SetOperation {
    /// Which.
    pub op: SetOperator,
    /// `ALL`; else `DISTINCT`.
    pub all: bool,
    /// The left side.
    pub left: QueryBody,
    /// The right side.
    pub right: QueryBody,
}

/// How two results become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    /// `UNION`.
    Union,
    /// `INTERSECT`.
    Intersect,
    /// `EXCEPT`.
    Except,
}

/// `WITH [RECURSIVE] name [(columns)] AS (query), …`.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// `RECURSIVE`.
    pub recursive: bool,
    /// In order.
    pub tables: Vec<Arc<CommonTable>>,
}

/// One common table expression.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonTable {
    /// Its name.
    pub name: Ident,
    /// Its columns' names, when written.
    pub columns: Vec<Ident>,
    /// What it is.
    pub query: Query,
}

/// `SELECT … FROM … WHERE … GROUP BY … HAVING … WINDOW …`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// The words after SELECT.
    pub options: SelectOptions,
    /// The number of the query block, by which optimizer hints know it: from 1, the outermost one
    /// first, then in the order of the text.
    pub number: u32,
    /// `/*+ … */` after SELECT, as written between the signs.
    pub hints: Option<Box<str>>,
    /// The select list: never empty.
    pub items: Vec<SelectItem>,
    /// The comma-separated table references; empty without FROM and for `FROM DUAL`.
    pub from: Vec<TableRef>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `GROUP BY`.
    pub group_by: Vec<OrderItem>,
    /// `WITH ROLLUP`.
    pub rollup: bool,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// `WINDOW name AS (…), …`.
    pub windows: Vec<(Ident, Window)>,
}

/// The words after SELECT that change how, not what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelectOptions {
    /// `HIGH_PRIORITY`.
    pub high_priority: bool,
    /// `STRAIGHT_JOIN`.
    pub straight_join: bool,
    /// `SQL_SMALL_RESULT`.
    pub sql_small_result: bool,
    /// `SQL_BIG_RESULT`.
    pub sql_big_result: bool,
    /// `SQL_BUFFER_RESULT`.
    pub sql_buffer_result: bool,
    /// `SQL_NO_CACHE`.
    pub sql_no_cache: bool,
    /// `SQL_CALC_FOUND_ROWS`.
    pub sql_calc_found_rows: bool,
}

/// One of the select list.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// `*`
    Wildcard,
    /// `[schema.]table.*`
    QualifiedWildcard(ObjectName),
    /// `expr [[AS] alias]`
    Expr {
        /// What is computed.
        expr: Expr,
        /// Its name, when written.
        alias: Option<Ident>,
        /// The expression's source text: without an alias, the output column's name is that text.
        /// (For a column, it is the column's name; for a string, the string.)
        span: Span,
    },
}

/// `expr [ASC | DESC]`.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// By what. An integer literal that stands alone is the ordinal of a select item.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
}

/// `LIMIT [offset,] count`, `LIMIT count OFFSET offset`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// How many: an integer literal, a parameter, or a local variable.
    pub count: Expr,
    /// How many first to skip.
    pub offset: Option<Expr>,
}

/// `FOR UPDATE | SHARE [OF tables] [NOWAIT | SKIP LOCKED]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locking {
    /// `UPDATE`; else `SHARE`, `LOCK IN SHARE MODE`.
    pub update: bool,
    /// `OF`: aliases; empty: every table.
    pub of: Vec<ObjectName>,
    /// When a row is locked.
    pub wait: LockWait,
}

/// What a locking read does at a locked row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Wait.
    #[default]
    Wait,
    /// `NOWAIT`: fail.
    NoWait,
    /// `SKIP LOCKED`: pass over it.
    SkipLocked,
}

/// `INTO …`.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectInto {
    /// `INTO @a, @b` (or a routine's local variable).
    Variables(Vec<IntoTarget>),
    /// `INTO OUTFILE 'path' …`.
    OutFile {
        /// The file.
        path: Box<[u8]>,
        /// `CHARACTER SET`.
        charset: Option<Ident>,
        /// `FIELDS … LINES …`.
        format: FileFormat,
    },
    /// `INTO DUMPFILE 'path'`.
    DumpFile(Box<[u8]>),
}

/// Where `SELECT … INTO` puts a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntoTarget {
    /// `@name`.
    User(Ident),
    /// A routine's variable.
    Local(Ident),
}

/// `FIELDS TERMINATED BY … LINES …`; `None` is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFormat {
    /// `FIELDS TERMINATED BY`: a tab.
    pub fields_terminated: Option<Box<[u8]>>,
    /// `FIELDS [OPTIONALLY] ENCLOSED BY`: nothing.
    pub fields_enclosed: Option<Box<[u8]>>,
    /// `OPTIONALLY`.
    pub optionally_enclosed: bool,
    /// `FIELDS ESCAPED BY`: a backslash.
    pub fields_escaped: Option<Box<[u8]>>,
    /// `LINES STARTING BY`: nothing.
    pub lines_starting: Option<Box<[u8]>>,
    /// `LINES TERMINATED BY`: a newline.
    pub lines_terminated: Option<Box<[u8]>>,
}

/// Something rows are read from.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A table or view.
    Table(Box<TableFactor>),
    /// `[LATERAL] (query) AS alias (columns)`.
    Derived(Box<Derived>),
    /// `JSON_TABLE(…) AS alias`.
    JsonTable(Box<JsonTable>),
    /// Two joined.
    Join(Box<Join>),
}

/// `name [PARTITION (…)] [[AS] alias] [index hints]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFactor {
    /// The table.
    pub name: ObjectName,
    /// The alias, when written.
    pub alias: Option<Ident>,
    /// `PARTITION (…)`.
    pub partitions: Vec<Ident>,
    /// `USE | FORCE | IGNORE INDEX …`.
    pub index_hints: Vec<IndexHint>,
}

/// `[LATERAL] (query) AS alias (columns)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// `LATERAL`.
    pub lateral: bool,
    /// The query.
    pub query: Query,
    /// The alias; empty when not written, which is error 1248.
    pub alias: Ident,
    /// The columns' names, when written.
    pub columns: Vec<Ident>,
}

/// `USE | FORCE | IGNORE INDEX [FOR …] (indexes)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexHint {
    /// The verb.
    pub action: IndexHintAction,
    /// `FOR …`.
    pub scope: Option<IndexHintScope>,
    /// May be empty for USE.
    pub indexes: Vec<Ident>,
}

/// The verb of an index hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHintAction {
    /// `USE INDEX`.
    Use,
    /// `FORCE INDEX`.
    Force,
    /// `IGNORE INDEX`.
    Ignore,
}

/// What an index hint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHintScope {
    /// `FOR JOIN`.
    Join,
    /// `FOR ORDER BY`.
    OrderBy,
    /// `FOR GROUP BY`.
    GroupBy,
}

/// `left JOIN right ON …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// The left side.
    pub left: TableRef,
    /// The right side.
    pub right: TableRef,
    /// Which rows are kept.
    pub kind: JoinKind,
    /// `ON`, `USING`, `NATURAL`.
    pub condition: JoinCondition,
}

/// Which rows a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// `JOIN`, `INNER JOIN`, `CROSS JOIN`.
    Inner,
    /// `STRAIGHT_JOIN`: inner, the left side first.
    Straight,
    /// `LEFT [OUTER] JOIN`.
    Left,
    /// `RIGHT [OUTER] JOIN`.
    Right,
}

/// How a join's sides are matched.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinCondition {
    /// Every row with every row.
    None,
    /// `ON expr`.
    On(Expr),
    /// `USING (columns)`.
    Using(Vec<Ident>),
    /// `NATURAL`.
    Natural,
}

/// `JSON_TABLE(doc, path COLUMNS (…)) AS alias`.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTable {
    /// The document.
    pub doc: Expr,
    /// The path of the rows.
    pub path: Box<[u8]>,
    /// The columns.
    pub columns: Vec<JsonTableColumn>,
    /// The alias.
    pub alias: Ident,
}

/// A column of `JSON_TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTableColumn {
    /// `name FOR ORDINALITY`.
    Ordinality(Ident),
    /// `name type [EXISTS] PATH path [on_empty] [on_error]`.
    Path {
        /// Its name.
        name: Ident,
        /// Its type.
        data_type: DataType,
        /// `COLLATE`.
        collation: Option<Ident>,
        /// `EXISTS`.
        exists: bool,
        /// Its path.
        path: Box<[u8]>,
        /// When the path finds nothing.
        on_empty: Option<JsonResponse>,
        /// When the value can't be had.
        on_error: Option<JsonResponse>,
    },
    /// `NESTED [PATH] path COLUMNS (…)`.
    Nested {
        /// The path of the inner rows.
        path: Box<[u8]>,
        /// The inner columns.
        columns: Vec<JsonTableColumn>,
    },
}
