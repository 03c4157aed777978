//! Statements that change definitions: tables, indexes, views, databases.

use super::account::Account;
use super::change::Duplicates;
use super::data_type::DataType;
use super::expr::Expr;
use super::name::{Ident, ObjectName, Span};
use super::query::{OrderItem, Query};

/// A column's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub data_type: DataType,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// `NULL`: `Some(true)`, `NOT NULL`: `Some(false)`.
    pub nullable: Option<bool>,
    /// `DEFAULT`: a literal (perhaps signed), `now()`, or any expression that was in parentheses.
    pub default: Option<ColumnDefault>,
    /// `ON UPDATE CURRENT_TIMESTAMP[(fraction digits)]`.
    pub on_update: Option<Expr>,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `[PRIMARY] KEY`.
    pub primary_key: bool,
    /// `UNIQUE [KEY]`.
    pub unique: bool,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `[GENERATED ALWAYS] AS (expr) [VIRTUAL | STORED]`.
    pub generated: Option<Generated>,
    /// `VISIBLE`, `INVISIBLE`.
    pub visible: Option<bool>,
    /// `COLUMN_FORMAT`.
    pub column_format: Option<Ident>,
    /// `STORAGE`.
    pub storage: Option<Ident>,
    /// `SRID`.
    pub srid: Option<u64>,
    /// `[CONSTRAINT name] CHECK (expr) [[NOT] ENFORCED]`.
    pub checks: Vec<Check>,
    /// `REFERENCES …`: MySQL parses it and ignores it.
    pub references: Option<References>,
    /// `ENGINE_ATTRIBUTE`, `SECONDARY_ENGINE_ATTRIBUTE`.
    pub engine_attribute: Option<Box<[u8]>>,
}

/// A column's default.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefault {
    /// The value.
    pub value: Expr,
    /// Written in parentheses: evaluated for each row.
    pub expression: bool,
}

/// `AS (expr) VIRTUAL | STORED`.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// How it is computed.
    pub expr: Expr,
    /// `STORED`.
    pub stored: bool,
    /// The expression's source text.
    pub span: Span,
}

/// `[CONSTRAINT [name]] CHECK (expr) [[NOT] ENFORCED]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name, when written.
    pub name: Option<Ident>,
    /// What must not be false.
    pub expr: Expr,
    /// `ENFORCED`.
    pub enforced: bool,
    /// The expression's source text.
    pub span: Span,
}

/// `REFERENCES table (columns) …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    /// The table referred to.
    pub table: ObjectName,
    /// Its columns.
    pub columns: Vec<Ident>,
    /// `MATCH …`: parsed and ignored, as MySQL does.
    pub match_kind: Option<Ident>,
    /// `ON DELETE`.
    pub on_delete: Option<ReferenceAction>,
    /// `ON UPDATE`.
    pub on_update: Option<ReferenceAction>,
}

/// What happens to referring rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceAction {
    /// `RESTRICT`: the change of the parent is refused.
    Restrict,
    /// `CASCADE`: the children are changed or deleted, too.
    Cascade,
    /// `SET NULL`: the children's columns become NULL.
    SetNull,
    /// `NO ACTION`: as RESTRICT.
    NoAction,
    /// `SET DEFAULT`, which InnoDB refuses.
    SetDefault,
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDef {
    /// `CONSTRAINT name`, of PRIMARY KEY and UNIQUE.
    pub constraint: Option<Ident>,
    /// Its name, when written.
    pub name: Option<Ident>,
    /// PRIMARY, UNIQUE…
    pub kind: IndexKind,
    /// Never empty.
    pub parts: Vec<KeyPart>,
    /// `USING`, `COMMENT`…
    pub options: IndexOptions,
}

/// Kinds of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// `PRIMARY KEY`.
    Primary,
    /// `UNIQUE [KEY | INDEX]`.
    Unique,
    /// `KEY`, `INDEX`.
    Index,
    /// `FULLTEXT [KEY | INDEX]`.
    FullText,
    /// `SPATIAL [KEY | INDEX]`.
    Spatial,
}

/// `column[(length)] [DESC]`, `(expr) [DESC]`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPart {
    /// The column or expression.
    pub target: KeyTarget,
    /// `DESC`.
    pub descending: bool,
}

/// What a key part is of.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyTarget {
    /// A column, or its first `length` characters (bytes, for binary types).
    Column {
        /// The column.
        name: Ident,
        /// The prefix.
        length: Option<u32>,
    },
    /// A functional key part.
    Expr(Expr),
}

/// What follows an index's key parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexOptions {
    /// `USING BTREE | HASH`.
    pub algorithm: Option<Ident>,
    /// `KEY_BLOCK_SIZE`.
    pub key_block_size: Option<u64>,
    /// `WITH PARSER`.
    pub parser: Option<Ident>,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `VISIBLE`, `INVISIBLE`.
    pub visible: Option<bool>,
    /// `ENGINE_ATTRIBUTE`.
    pub engine_attribute: Option<Box<[u8]>>,
}

/// `[CONSTRAINT [name]] FOREIGN KEY [index] (columns) REFERENCES …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The constraint's name, when written.
    pub name: Option<Ident>,
    /// The index's name, when written.
    pub index_name: Option<Ident>,
    /// The columns.
    pub columns: Vec<Ident>,
    /// What they refer to.
    pub references: References,
}

/// One of the parenthesised list of CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // Nearly all are columns.
pub enum TableElement {
    /// A column.
    Column(ColumnDef),
    /// A key.
    Index(IndexDef),
    /// A foreign key.
    ForeignKey(ForeignKey),
    /// A check.
    Check(Check),
}

/// A table option: `name [=] value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOption {
    /// `ENGINE`
    Engine(Ident),
    /// `[DEFAULT] CHARACTER SET`
    Charset(Ident),
    /// `[DEFAULT] COLLATE`
    Collation(Ident),
    /// `AUTO_INCREMENT`
    AutoIncrement(u64),
    /// `COMMENT`
    Comment(Box<[u8]>),
    /// `ROW_FORMAT`
    RowFormat(Ident),
    /// Any other: its name in upper case and its value's text.
    Other(Ident, Box<[u8]>),
}

/// `CREATE TABLE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its name.
    pub name: ObjectName,
    /// Columns, keys and constraints.
    pub elements: Vec<TableElement>,
    /// Options.
    pub options: Vec<TableOption>,
    /// `PARTITION BY …`, as text.
    pub partition_by: Option<Box<str>>,
    /// `IGNORE`, `REPLACE` before the query.
    pub duplicates: Duplicates,
    /// `[AS] SELECT …`.
    pub query: Option<Box<Query>>,
}

/// `ALTER TABLE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// Which.
    pub table: ObjectName,
    /// In order.
    pub actions: Vec<AlterAction>,
    /// `ALGORITHM = …`.
    pub algorithm: Option<Ident>,
    /// `LOCK = …`.
    pub lock: Option<Ident>,
}

/// Where a column is put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPosition {
    /// `FIRST`
    First,
    /// `AFTER column`
    After(Ident),
}

/// One of the actions of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    /// `ADD [COLUMN] …`; each of a parenthesised list is an action of its own.
    AddColumn {
        /// What.
        column: Box<ColumnDef>,
        /// Where; at the end when not written.
        position: Option<ColumnPosition>,
    },
    /// `ADD INDEX | PRIMARY KEY | UNIQUE …`
    AddIndex(IndexDef),
    /// `ADD [CONSTRAINT] FOREIGN KEY …`
    AddForeignKey(ForeignKey),
    /// `ADD [CONSTRAINT] CHECK …`
    AddCheck(Check),
    /// `MODIFY [COLUMN] …`, `CHANGE [COLUMN] old …`
    ChangeColumn {
        /// The name it has.
        old_name: Ident,
        /// What it becomes.
        column: Box<ColumnDef>,
        /// Where it goes; it stays when not written.
        position: Option<ColumnPosition>,
    },
    /// `ALTER [COLUMN] name SET DEFAULT …`
    SetDefault(Ident, ColumnDefault),
    /// `ALTER [COLUMN] name DROP DEFAULT`
    DropDefault(Ident),
    /// `ALTER [COLUMN] name SET VISIBLE | INVISIBLE`
    SetColumnVisible(Ident, bool),
    /// `ALTER INDEX name VISIBLE | INVISIBLE`
    SetIndexVisible(Ident, bool),
    /// `ALTER CHECK | CONSTRAINT name [NOT] ENFORCED`
    SetEnforced(Ident, bool),
    /// `RENAME COLUMN old TO new`
    RenameColumn(Ident, Ident),
    /// `RENAME INDEX old TO new`
    RenameIndex(Ident, Ident),
    /// `RENAME [TO] name`
    RenameTable(ObjectName),
    /// `DROP [COLUMN] name`
    DropColumn(Ident),
    /// `DROP INDEX | KEY name`
    DropIndex(Ident),
    /// `DROP PRIMARY KEY`
    DropPrimaryKey,
    /// `DROP FOREIGN KEY name`
    DropForeignKey(Ident),
    /// `DROP CHECK name`
    DropCheck(Ident),
    /// `DROP CONSTRAINT name`: whichever kind has that name.
    DropConstraint(Ident),
    /// A table option.
    Option(TableOption),
    /// `CONVERT TO CHARACTER SET charset [COLLATE collation]`; `None`: `DEFAULT`.
    ConvertCharset(Option<Ident>, Option<Ident>),
    /// `ORDER BY columns`
    OrderBy(Vec<OrderItem>),
    /// `DISABLE KEYS`, `ENABLE KEYS`
    SetKeys {
        /// `ENABLE`.
        enable: bool,
    },
    /// `FORCE`
    Force,
    /// `WITH | WITHOUT VALIDATION`
    Validation(bool),
    /// `DISCARD | IMPORT TABLESPACE`, partition actions…: the text.
    Other(Box<str>),
}

/// `CREATE [OR REPLACE] … VIEW …`, `ALTER … VIEW …`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// `ALTER`.
    pub alter: bool,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `ALGORITHM = UNDEFINED | MERGE | TEMPTABLE`.
    pub algorithm: Option<Ident>,
    /// `DEFINER = …`.
    pub definer: Option<Account>,
    /// `SQL SECURITY INVOKER`: `Some(true)`, `DEFINER`: `Some(false)`.
    pub invoker: Option<bool>,
    /// Its name.
    pub name: ObjectName,
    /// Its columns' names, when written.
    pub columns: Vec<Ident>,
    /// What it is.
    pub query: Box<Query>,
    /// `WITH [CASCADED | LOCAL] CHECK OPTION`.
    pub check_option: Option<CheckOption>,
}

/// `WITH … CHECK OPTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOption {
    /// `WITH [CASCADED] CHECK OPTION`: underlying views are checked, too.
    Cascaded,
    /// `WITH LOCAL CHECK OPTION`.
    Local,
}

/// Options of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatabaseOptions {
    /// `CHARACTER SET`.
    pub charset: Option<Ident>,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// `ENCRYPTION`.
    pub encryption: Option<Box<[u8]>>,
    /// `READ ONLY = 0 | 1`; `DEFAULT` is 0.
    pub read_only: Option<bool>,
}
