//! Statements about the session: transactions, variables, `EXPLAIN`, `PREPARE`, maintenance.

use super::expr::{Expr, SystemVariable};
use super::name::{Ident, ObjectName};
use super::statement::Statement;

/// `[AND [NO] CHAIN] [[NO] RELEASE]`; `None`: as `completion_type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// A new transaction begins at once.
    pub chain: Option<bool>,
    /// The connection closes.
    pub release: Option<bool>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IsolationLevel {
    /// `READ UNCOMMITTED`.
    ReadUncommitted,
    /// `READ COMMITTED`.
    ReadCommitted,
    /// `REPEATABLE READ`.
    RepeatableRead,
    /// `SERIALIZABLE`.
    Serializable,
}

/// `table [AS alias] READ [LOCAL] | [LOW_PRIORITY] WRITE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTable {
    /// Which.
    pub table: ObjectName,
    /// Its alias.
    pub alias: Option<Ident>,
    /// `WRITE`.
    pub write: bool,
    /// `READ LOCAL`.
    pub local: bool,
}

/// One assignment of SET.
#[derive(Debug, Clone, PartialEq)]
pub enum SetItem {
    /// `@name = expr`.
    User {
        /// The variable.
        name: Ident,
        /// Its value.
        value: Expr,
    },
    /// `[scope] name = value`, `@@[scope.]name = value`. A bare word (`= utf8mb4`, `= ON`) is a
    /// [`Expr::Column`]; [`Expr::Default`] stands for `DEFAULT`.
    System {
        /// The variable; without a scope it is the session's.
        variable: SystemVariable,
        /// Its value.
        value: Expr,
    },
    /// `NAMES charset [COLLATE collation]`; no charset: `DEFAULT`.
    Names {
        /// The character set.
        charset: Option<Ident>,
        /// Its collation, when written.
        collation: Option<Ident>,
    },
    /// `CHARACTER SET charset`; `None`: `DEFAULT`.
    Charset(Option<Ident>),
}

/// `EXPLAIN [ANALYZE] [FORMAT = …] [INTO @v] statement | FOR CONNECTION id`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// `ANALYZE`: run it.
    pub analyze: bool,
    /// `FORMAT`.
    pub format: Option<ExplainFormat>,
    /// `INTO @name`.
    pub into: Option<Ident>,
    /// `FOR SCHEMA name`: the schema of names that say none.
    pub schema: Option<Ident>,
    /// What.
    pub target: ExplainTarget,
}

/// How a plan is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExplainFormat {
    /// `FORMAT = TRADITIONAL`: a row for each table.
    Traditional,
    /// `FORMAT = TREE`.
    Tree,
    /// `FORMAT = JSON`.
    Json,
    /// Another name.
    Unknown(Box<str>),
}

/// What EXPLAIN explains.
#[derive(Debug, Clone, PartialEq)]
pub enum ExplainTarget {
    /// A statement.
    Statement(Statement),
    /// `FOR CONNECTION id`.
    Connection(u64),
}

/// Where PREPARE finds its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrepareSource {
    /// `'text'`.
    Text(Box<[u8]>),
    /// `@name`.
    Variable(Ident),
}

/// Verbs of table maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Maintenance {
    /// `ANALYZE TABLE`.
    Analyze,
    /// `CHECK TABLE`.
    Check,
    /// `OPTIMIZE TABLE`.
    Optimize,
    /// `REPAIR TABLE`.
    Repair,
    /// `CHECKSUM TABLE`.
    Checksum,
}

/// `ANALYZE TABLE … UPDATE HISTOGRAM ON … | DROP HISTOGRAM ON …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramChange {
    /// More than one is refused when it runs.
    pub tables: Vec<ObjectName>,
    /// The columns.
    pub columns: Vec<Ident>,
    /// What becomes of their histograms.
    pub action: HistogramAction,
}

/// What becomes of the histograms of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistogramAction {
    /// `UPDATE HISTOGRAM … [WITH n BUCKETS] [MANUAL | AUTO UPDATE]`.
    Build {
        /// `WITH n BUCKETS`.
        buckets: Option<u64>,
        /// `AUTO UPDATE`.
        auto_update: bool,
    },
    /// `UPDATE HISTOGRAM … USING DATA 'json'`.
    Data(Box<str>),
    /// `DROP HISTOGRAM`.
    Drop,
}

/// What FLUSH flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlushTarget {
    /// `TABLES [names] [WITH READ LOCK | FOR EXPORT]`.
    Tables {
        /// Empty: all.
        tables: Vec<ObjectName>,
        /// `WITH READ LOCK`.
        read_lock: bool,
        /// `FOR EXPORT`.
        export: bool,
    },
    /// `PRIVILEGES`, `STATUS`, `LOGS`, `BINARY LOGS`…: in upper case.
    Other(Box<str>),
}
