//! Statements that change rows: `INSERT`, `UPDATE`, `DELETE`, `LOAD DATA`.

use super::expr::Expr;
use super::hint::StatementHints;
use super::name::{ColumnRef, Ident, ObjectName};
use super::query::{FileFormat, OrderItem, Query, TableRef, With};

/// `INSERT …`, `REPLACE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// `REPLACE`.
    pub replace: bool,
    /// `LOW_PRIORITY`, `DELAYED`, `HIGH_PRIORITY`.
    pub priority: Priority,
    /// `IGNORE`.
    pub ignore: bool,
    /// Into what.
    pub table: ObjectName,
    /// `PARTITION (…)`.
    pub partitions: Vec<Ident>,
    /// The columns named; `None`: no list, every column. With `SET`, the columns it sets.
    pub columns: Option<Vec<ColumnRef>>,
    /// The rows.
    pub source: InsertSource,
    /// `AS alias`.
    pub row_alias: Option<Ident>,
    /// `AS alias (columns)`.
    pub column_aliases: Vec<Ident>,
    /// `ON DUPLICATE KEY UPDATE`.
    pub on_duplicate: Vec<Assignment>,
    /// The optimizer hints of the whole statement.
    pub hints: Option<Box<StatementHints>>,
}

/// Where INSERT's rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), (…)`, `SET …` as one row, `VALUES ROW(…)`. A row is empty in `VALUES ()`.
    Values(Vec<Vec<Expr>>),
    /// `SELECT …`.
    Query(Box<Query>),
}

/// How urgent a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Neither.
    #[default]
    Normal,
    /// `LOW_PRIORITY`.
    Low,
    /// `HIGH_PRIORITY`.
    High,
    /// `DELAYED`, which MySQL 8 reads as nothing.
    Delayed,
}

/// `column = value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The column.
    pub column: ColumnRef,
    /// Its new value, or [`Expr::Default`].
    pub value: Expr,
}

/// `UPDATE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// `WITH …`.
    pub with: Option<With>,
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// One table, or several joined.
    pub tables: Vec<TableRef>,
    /// `SET`.
    pub assignments: Vec<Assignment>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `ORDER BY`; a single table only.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`; a single table only, no offset.
    pub limit: Option<Expr>,
    /// The optimizer hints of the whole statement.
    pub hints: Option<Box<StatementHints>>,
}

/// `DELETE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// `WITH …`.
    pub with: Option<With>,
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `QUICK`.
    pub quick: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// `DELETE a, b FROM …`, `DELETE FROM a, b USING …`: the tables or aliases to delete from.
    /// Empty: the form for one table, which is `from`'s only one.
    pub targets: Vec<ObjectName>,
    /// The tables read.
    pub from: Vec<TableRef>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `ORDER BY`; a single table only.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`; a single table only, no offset.
    pub limit: Option<Expr>,
    /// The optimizer hints of the whole statement.
    pub hints: Option<Box<StatementHints>>,
}

/// `LOAD DATA …`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadData {
    /// `LOAD XML`.
    pub xml: bool,
    /// `LOW_PRIORITY`, or `High` for `CONCURRENT`.
    pub priority: Priority,
    /// `LOCAL`: the client has the file.
    pub local: bool,
    /// The file.
    pub path: Box<[u8]>,
    /// At a duplicate key.
    pub duplicates: Duplicates,
    /// Into what.
    pub table: ObjectName,
    /// `PARTITION (…)`.
    pub partitions: Vec<Ident>,
    /// `CHARACTER SET`.
    pub charset: Option<Ident>,
    /// `FIELDS … LINES …`.
    pub format: FileFormat,
    /// `ROWS IDENTIFIED BY`, of `LOAD XML`.
    pub row_tag: Option<Box<[u8]>>,
    /// `IGNORE n LINES`.
    pub ignore_lines: u64,
    /// The columns and variables read into; empty: every column.
    pub columns: Vec<LoadTarget>,
    /// `SET`.
    pub assignments: Vec<Assignment>,
}

/// Where LOAD DATA puts a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A column.
    Column(Ident),
    /// `@name`.
    Variable(Ident),
}

/// What happens at a duplicate key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// The statement fails.
    #[default]
    Error,
    /// The new row is passed over.
    Ignore,
    /// The old row leaves.
    Replace,
}
