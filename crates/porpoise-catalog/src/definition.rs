//! What the catalog knows of schemas, tables, columns and indexes.
//!
//! Definitions are immutable and shared (`Arc`): a plan keeps the `Arc<Table>` it was made for, and
//! DDL replaces the whole definition by one with a higher `version`. What changes without DDL (the
//! AUTO_INCREMENT counter, statistics, the metadata lock) hangs off a table as [`TableState`],
//! which all versions of the table share.
//!
//! How a table lies in storage:
//!
//! ```text
//! table.space          primary key bytes ──────────────► row, by `table.layout` (every column)
//! index.space          index key bytes [+ primary key] ─► entry: primary key bytes + indexed columns
//! ```
//!
//! A table without a primary key has a hidden 8-byte row number for one. Index entries are
//! described in [`index_entry`](crate::index_entry).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::Mutex;
use porpoise_expr::Expr;
pub use porpoise_mdl::TableId;
use porpoise_mdl::{HasFastPath, MdlFastPath, MetadataLocks, Object};
use porpoise_storage::SpaceId;
use porpoise_types::{Added, Collation, DataType, KeyBuf, RowLayout, Value, encode_key_part};

use crate::Statistics;
use crate::record::DroppedRecord;

/// A schema (database), without what is in it.
#[derive(Clone, Debug)]
pub struct Schema {
    /// As it was created, or in lower case (`lower_case_table_names=1`); compares by case.
    pub name: CompactString,
    /// The default of its tables.
    pub collation: Collation,
    /// `READ ONLY`: nothing in it may be changed.
    pub read_only: bool,
    /// `ENCRYPTION`: its new tables are to be encrypted unless they say otherwise.
    pub encrypted: bool,
}

/// A base table or a temporary table.
#[derive(Debug)]
pub struct Table {
    /// Unchanged by ALTER and RENAME TABLE; a new one after TRUNCATE TABLE or DROP and CREATE.
    pub id: TableId,
    /// Grows with every change of the definition; unique over all tables.
    pub version: u64,
    /// The name of the schema it is in.
    pub schema: CompactString,
    /// As it was created; compares by case.
    pub name: CompactString,
    /// Holds the rows under their encoded primary keys.
    pub space: SpaceId,
    /// In definition order, hidden ones last.
    pub columns: Vec<Column>,
    /// The primary key, where there is one, is the first.
    pub indexes: Vec<Index>,
    /// CHECK constraints, enforced or not, in the order of creation.
    pub checks: Vec<Check>,
    /// What the table's rows refer to. For the tables that refer to it see
    /// [`super::Catalog::children`].
    pub foreign_keys: Vec<ForeignKey>,
    /// Columns that rows still have room for.
    pub dropped: Vec<DroppedRecord>,
    /// The stored row: every column, virtual generated ones included.
    pub layout: Arc<RowLayout>,
    /// The default of its text columns.
    pub collation: Collation,
    /// Empty where there is none.
    pub comment: String,
    /// Table options to print back, such as `ROW_FORMAT=DYNAMIC`, in the order given.
    pub options: Vec<(CompactString, String)>,
    /// CREATE TEMPORARY TABLE: known to one session, and in no dictionary.
    pub temporary: bool,
    /// Seconds since 1970.
    pub created_s: i64,
    /// Shared by all versions of the definition.
    pub state: Arc<TableState>,
}

/// What is kept beside a table's, view's or routine's definition and is shared by its versions.
#[derive(Debug)]
pub struct TableState {
    /// The next AUTO_INCREMENT value; 0 until it was read from storage.
    pub auto_increment: AtomicU64,
    /// The next hidden row number of a table without a primary key; 0 until it was read.
    pub row_number: AtomicU64,
    /// Replaced as a whole by ANALYZE TABLE and by the refresh in the background.
    pub statistics: ArcSwap<Statistics>,
    /// Taken when a plan first wants it; again after the table has grown or shrunk.
    pub sample: ArcSwapOption<TableSample>,
    /// The commit that put the table's rows, or an index of them, into new spaces: older snapshots
    /// see none there.
    pub rebuilt_ts: AtomicU64,
    /// The metadata lock, as statements go through it.
    pub fast_path: MdlFastPath,
    /// What the lock is called while somebody waits for it.
    object: fn(TableId) -> Object,
}

/// Some of a table's rows, by which the planner estimates how many of all pass a condition.
#[derive(Debug, Default)]
pub struct TableSample {
    /// About how many rows the table had when the sample was taken.
    pub table_rows: u64,
    /// The version of the table's rows that it was taken of: another one has other columns.
    pub layout: Option<Arc<RowLayout>>,
    /// How many rows the sample has.
    pub rows: usize,
    /// Their values, by column; none of columns that hold long values. TIMESTAMPs are in UTC.
    pub columns: Vec<Vec<Value>>,
    /// About how many different values some columns of the table have together, as far as somebody
    /// asked.
    pub distinct: Mutex<HashMap<Vec<usize>, f64>>,
}

/// A column of a base or temporary table.
#[derive(Debug)]
pub struct Column {
    /// As it was created; compares in any case.
    pub name: CompactString,
    /// The declared type, with its character set.
    pub ty: DataType,
    /// The definition has a COLLATE of its own, which SHOW CREATE TABLE repeats.
    pub explicit_collation: bool,
    /// False: NOT NULL, declared or because the primary key holds it.
    pub nullable: bool,
    /// What INSERT writes where the statement gives no value.
    pub default: ColumnDefault,
    /// `ON UPDATE CURRENT_TIMESTAMP(fsp)`.
    pub on_update_now: bool,
    /// INSERT makes the value where it gets none, NULL or 0.
    pub auto_increment: bool,
    /// `Some`: the value is computed and can't be assigned.
    pub generated: Option<Generated>,
    /// False: INVISIBLE, left out of `*` and of INSERT without a column list.
    pub visible: bool,
    /// Made for a functional key part, and behind all others: not visible either, and no statement
    /// can name it.
    pub hidden: bool,
    /// Empty where there is none.
    pub comment: String,
    /// ALTER TABLE added it and left the rows as they were.
    pub added: Option<Added>,
    /// Where it lies in rows: [`StoredColumn::place`](porpoise_types::StoredColumn::place).
    pub place: u16,
}

impl Column {
    /// Its value in a row that nothing was written to: MySQL's record of a table before it is read.
    pub fn unwritten(&self) -> Value {
        match &self.default {
            ColumnDefault::Literal(value) => value.clone(),
            _ if self.nullable => Value::Null,
            _ => self.ty.implicit_default(),
        }
    }
}

/// What a column gets where INSERT gives no value.
#[derive(Debug)]
pub enum ColumnDefault {
    /// Neither given nor NULL: error 1364 in strict mode.
    None,
    /// A value of the column's type; NULL for `DEFAULT NULL` and for nullable columns without a
    /// default.
    Literal(Value),
    /// `CURRENT_TIMESTAMP(fsp)`.
    Now,
    /// `DEFAULT (expression)`: over the row's earlier columns, slot 0 of the frame.
    Expression {
        /// As SHOW CREATE TABLE prints it.
        sql: String,
        /// The bound expression.
        expr: Arc<Expr>,
    },
}

/// A generated column. Both kinds are stored in the row here; the difference is only shown.
#[derive(Debug)]
pub struct Generated {
    /// As SHOW CREATE TABLE prints it.
    pub sql: String,
    /// Over the row itself, slot 0 of the frame.
    pub expr: Arc<Expr>,
    /// STORED, not VIRTUAL.
    pub stored: bool,
}

/// A CHECK constraint.
#[derive(Debug)]
pub struct Check {
    /// As declared, or made by the server (`t_chk_1`); unique in the schema.
    pub name: CompactString,
    /// The condition as SHOW CREATE TABLE prints it.
    pub sql: String,
    /// Over the row itself, slot 0 of the frame.
    pub expr: Arc<Expr>,
    /// False: NOT ENFORCED, kept for SHOW CREATE TABLE only.
    pub enforced: bool,
}

/// `FOREIGN KEY (columns) REFERENCES parent (parent_columns)`. The parent is known by name: with
/// foreign_key_checks=0 it may come later than the child, and go earlier.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// The constraint's name, unique in the schema.
    pub name: CompactString,
    /// Positions in `table.columns`.
    pub columns: Vec<usize>,
    /// The referenced table's schema.
    pub parent_schema: CompactString,
    /// The referenced table's name.
    pub parent_table: CompactString,
    /// The referenced columns, in the order of `columns`.
    pub parent_columns: Vec<CompactString>,
    /// What happens when the parent row is deleted.
    pub on_delete: ReferenceAction,
    /// What happens when the parent row's referenced columns change.
    pub on_update: ReferenceAction,
}

/// What happens to the rows that refer to a row that is deleted or gets another key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceAction {
    /// Refuses the change; also what applies where no action is declared.
    #[default]
    NoAction,
    /// Refuses the change; as NO ACTION, but printed as it was declared.
    Restrict,
    /// Deletes the referring rows, or gives them the new key.
    Cascade,
    /// Sets the referring columns to NULL.
    SetNull,
}

impl ReferenceAction {
    /// Refuses the change: at once, in both forms.
    pub fn refuses(self) -> bool {
        matches!(self, ReferenceAction::NoAction | ReferenceAction::Restrict)
    }

    /// As statements and `information_schema` spell it.
    pub fn name(self) -> &'static str {
        match self {
            ReferenceAction::NoAction => "NO ACTION",
            ReferenceAction::Restrict => "RESTRICT",
            ReferenceAction::Cascade => "CASCADE",
            ReferenceAction::SetNull => "SET NULL",
        }
    }
}

/// An index; the primary key is one too.
#[derive(Debug)]
pub struct Index {
    /// `PRIMARY` for the primary key; compares in any case.
    pub name: CompactString,
    /// Holds the entries. The primary key's is the table's own.
    pub space: SpaceId,
    /// Primary, unique or neither.
    pub kind: IndexKind,
    /// What its keys consist of, the most significant part first.
    pub parts: Vec<IndexPart>,
    /// False: INVISIBLE, maintained but not used by the optimizer.
    pub visible: bool,
    /// Empty where there is none.
    pub comment: String,
    /// `USING …` as written; printed back, without effect.
    pub algorithm: Option<CompactString>,
    /// Made by the server for a foreign key: dropped when an index that serves it as well is
    /// created.
    pub implicit: bool,
    /// Positions of the table's columns that an entry of a secondary index holds whole (no prefix),
    /// primary key columns included, in the order of `entry_layout`. Empty for the primary key.
    pub entry_columns: Vec<usize>,
    /// The encoding of an entry's columns. Empty for the primary key.
    pub entry_layout: Arc<RowLayout>,
}

/// What an index requires of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// PRIMARY KEY: unique and without NULLs. Its space holds the rows themselves.
    Primary,
    /// UNIQUE: no two rows have an equal key without NULL in it.
    Unique,
    /// Any number of rows may have the same key.
    NonUnique,
}

/// A part of an index's key: a column, or the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// Position in `table.columns`.
    pub column: usize,
    /// In characters (bytes for binary strings).
    pub prefix: Option<u32>,
    /// DESC: the part sorts in descending order.
    pub descending: bool,
}

impl IndexPart {
    /// Appends a value of the part's column, as the index has it, to a key.
    #[inline]
    pub fn encode(&self, column: &Column, value: &Value, key: &mut KeyBuf) {
        let (ty, nullable) = (&column.ty, column.nullable);
        encode_key_part(value, ty, nullable, self.descending, self.prefix, key);
    }

    /// A functional key part's expression, as SHOW CREATE TABLE prints it.
    pub fn expression<'a>(&self, table: &'a Table) -> Option<&'a str> {
        let column = table
            .columns
            .get(self.column)
            .filter(|column| column.hidden)?;
        Some(column.generated.as_ref()?.sql.as_str())
    }

    /// What the key part is of, as SHOW and EXPLAIN print it: the expression, or the column's name.
    pub fn display_text<'a>(&self, table: &'a Table) -> &'a str {
        self.expression(table)
            .unwrap_or_else(|| &table.columns[self.column].name)
    }
}

impl Index {
    /// Whether two rows can't have the same key; true for the primary key.
    pub fn is_unique(&self) -> bool {
        self.kind != IndexKind::NonUnique
    }
}

impl Table {
    /// Whether it is one of the server's own, whose rows are made by code
    /// ([`system_table`](crate::system_table)): it has no spaces.
    pub fn is_made_by_code(&self) -> bool {
        self.id == TableId(0)
    }

    /// In how many steps columns were added to rows that stayed as they were, or dropped from them.
    pub fn row_versions(&self) -> usize {
        let mut dropped: Vec<u16> = self.dropped.iter().map(|column| column.step).collect();
        dropped.dedup();
        self.layout.steps() + dropped.len()
    }

    /// `None`: rows lie under hidden row numbers.
    pub fn primary_key(&self) -> Option<&Index> {
        self.indexes
            .first()
            .filter(|index| index.kind == IndexKind::Primary)
    }

    /// The table's own space and its secondary indexes'.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> + '_ {
        let indexes = self
            .indexes
            .iter()
            .filter(|index| index.kind != IndexKind::Primary)
            .map(|index| index.space);
        std::iter::once(self.space).chain(indexes)
    }

    /// Where a statement's column is.
    pub fn column_position(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name) && !column.hidden)
    }

    /// The columns that a statement declared, those that are INVISIBLE included: what SHOW CREATE
    /// TABLE and information_schema show.
    pub fn declared_columns(&self) -> impl Iterator<Item = &Column> + '_ {
        self.columns.iter().filter(|column| !column.hidden)
    }

    /// The position of the index of that name in `indexes`, in any case.
    pub fn index_position(&self, name: &str) -> Option<usize> {
        self.indexes
            .iter()
            .position(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// The index that finds rows by these columns, whole and in this order: a unique one that has
    /// no other parts, or any that begins with them.
    pub fn index_over(&self, columns: &[usize]) -> Option<usize> {
        let begins = |index: &Index| {
            index.parts.len() >= columns.len()
                && index
                    .parts
                    .iter()
                    .zip(columns)
                    .all(|(part, column)| part.column == *column && part.prefix.is_none())
        };
        let exact = |index: &Index| {
            index.is_unique() && index.parts.len() == columns.len() && begins(index)
        };
        self.indexes
            .iter()
            .position(exact)
            .or_else(|| self.indexes.iter().position(begins))
    }

    /// The position of the AUTO_INCREMENT column; a table has one at most.
    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }
}

impl TableState {
    /// The state of a table or view that has just been made or read from the dictionary.
    pub fn new(locks: &Arc<MetadataLocks>) -> TableState {
        TableState {
            auto_increment: AtomicU64::new(0),
            row_number: AtomicU64::new(0),
            statistics: ArcSwap::default(),
            sample: ArcSwapOption::default(),
            rebuilt_ts: AtomicU64::new(0),
            fast_path: MdlFastPath::new(locks),
            object: Object::Table,
        }
    }

    /// The state of a routine: its metadata lock.
    pub(crate) fn of_routine(locks: &Arc<MetadataLocks>, is_function: bool) -> TableState {
        TableState {
            object: match is_function {
                true => Object::Function,
                false => Object::Procedure,
            },
            ..TableState::new(locks)
        }
    }

    /// Makes the next AUTO_INCREMENT value at least `next`.
    pub fn raise_auto_increment(&self, next: u64) {
        self.auto_increment.fetch_max(next, Ordering::Relaxed);
    }
}

impl Default for TableState {
    fn default() -> TableState {
        TableState::new(&Arc::default())
    }
}

impl HasFastPath for TableState {
    fn fast_path(&self) -> &MdlFastPath {
        &self.fast_path
    }

    fn object(&self, id: TableId) -> Object {
        (self.object)(id)
    }
}

/// A view: its text, bound anew by every statement that names it.
#[derive(Clone, Debug)]
pub struct View {
    /// Views and tables are numbered together.
    pub id: TableId,
    /// Shared by all versions of the definition.
    pub state: Arc<TableState>,
    /// The name of the schema it is in.
    pub schema: CompactString,
    /// As it was created; compares by case.
    pub name: CompactString,
    /// Grows with every change of the definition; unique over all tables and views.
    pub version: u64,
    /// The SELECT in canonical form.
    pub sql: String,
    /// The columns' names, in the order of the SELECT's.
    pub columns: Vec<CompactString>,
    /// `user@host`.
    pub definer: String,
    /// SQL SECURITY INVOKER.
    pub invoker: bool,
    /// UNDEFINED, MERGE or TEMPTABLE.
    pub algorithm: CompactString,
    /// CASCADED, LOCAL or nothing.
    pub check_option: CompactString,
}

impl View {
    /// The definer's user name and host.
    pub fn definer_name(&self) -> (&str, &str) {
        self.definer
            .rsplit_once('@')
            .unwrap_or((&self.definer, "%"))
    }
}
