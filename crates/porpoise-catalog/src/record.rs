//! Definitions as they are written down: names and texts only, no positions, no bound expressions.
//!
//! A [`TableRecord`] is what the dictionary keeps (as JSON: fields may be added, and old records
//! still read), what CREATE TABLE fills in, and what ALTER TABLE edits. [`TableRecord::bind`] makes
//! the [`Table`] that plans work with: names become positions, texts become expressions.
//!
//! ```text
//! CREATE TABLE ─► TableRecord ─► dictionary
//!                    │  ▲ └────► bind ─► Table ─► planner, executor
//! ALTER TABLE  ◄─────┘  └── the next start
//! ```
//!
//! Index parts name their columns, so that ALTER TABLE can reorder, add and drop columns freely.

mod type_record;

use std::collections::BTreeSet;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_core::error::Result;
use porpoise_storage::SpaceId;
use porpoise_types::{Added, Collation, DataType, RowLayout, StoredColumn, Value};
use serde::{Deserialize, Serialize};

use super::definition::*;
use super::expression::{self, BindExpression};
use type_record::TypeRecord;

/// A schema as the dictionary keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaRecord {
    /// As it was created.
    pub name: CompactString,
    /// The default collation's number (`information_schema.COLLATIONS.ID`).
    pub collation: u16,
    /// `READ ONLY`.
    #[serde(default)]
    pub read_only: bool,
    /// `ENCRYPTION`.
    #[serde(default)]
    pub encrypted: bool,
}

/// A table as the dictionary keeps it; see [`Table`] for what the fields mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// The table's [`TableId`].
    pub id: u32,
    /// The definition's version; a changed one gets a higher.
    pub version: u64,
    /// The name of the schema it is in.
    pub schema: CompactString,
    /// As it was created.
    pub name: CompactString,
    /// The [`SpaceId`] of its rows.
    pub space: u32,
    /// In definition order, hidden ones last.
    pub columns: Vec<ColumnRecord>,
    /// Columns that rows still have room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedRecord>,
    /// The primary key, where there is one, is the first.
    #[serde(default)]
    pub indexes: Vec<IndexRecord>,
    /// CHECK constraints, in the order of creation.
    #[serde(default)]
    pub checks: Vec<CheckRecord>,
    /// What its rows refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKeyRecord>,
    /// The default collation's number.
    pub collation: u16,
    /// Empty where there is none.
    #[serde(default)]
    pub comment: String,
    /// Table options to print back, in the order given.
    #[serde(default)]
    pub options: Vec<(CompactString, String)>,
    /// Seconds since 1970.
    #[serde(default)]
    pub created_s: i64,
    /// Never written: temporary tables are in no dictionary.
    #[serde(skip)]
    pub temporary: bool,
}

/// A column as the dictionary keeps it; see [`Column`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnRecord {
    /// As it was created.
    pub name: CompactString,
    /// The declared type, with its character set.
    #[serde(with = "TypeRecord")]
    pub ty: DataType,
    /// The definition has a COLLATE of its own, which SHOW CREATE TABLE repeats.
    #[serde(default, skip_serializing_if = "is_false")]
    pub explicit_collation: bool,
    /// False: NOT NULL.
    pub nullable: bool,
    /// What INSERT writes where the statement gives no value.
    #[serde(default, skip_serializing_if = "DefaultRecord::is_none")]
    pub default: DefaultRecord,
    /// `ON UPDATE CURRENT_TIMESTAMP(fsp)`, with the type's digits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_update_now: bool,
    /// INSERT makes the value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub auto_increment: bool,
    /// `Some` for a generated column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<GeneratedRecord>,
    /// INVISIBLE: left out of `*`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub invisible: bool,
    /// Made for a functional key part: nothing shows it, and no statement can name it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// ALTER TABLE added the column and left the rows as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<AddedRecord>,
    /// Where the column lies in rows: [`StoredColumn::place`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub place: u16,
    /// Where ALTER TABLE took the column from: its position in the old table.
    #[serde(skip)]
    pub origin: Option<usize>,
}

impl ColumnRecord {
    /// A column with nothing but a type: NULL is its default, if it may be.
    pub fn new(name: CompactString, ty: DataType, nullable: bool) -> ColumnRecord {
        ColumnRecord {
            name,
            ty,
            explicit_collation: false,
            nullable,
            default: match nullable {
                true => DefaultRecord::Null,
                false => DefaultRecord::None,
            },
            on_update_now: false,
            auto_increment: false,
            generated: None,
            invisible: false,
            hidden: false,
            comment: String::new(),
            added: None,
            place: 0,
            origin: None,
        }
    }
}

/// A column that ALTER TABLE dropped while it left the rows as they were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DroppedRecord {
    /// What its values were.
    #[serde(with = "TypeRecord")]
    pub ty: DataType,
    /// ALTER TABLE had added it in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<AddedRecord>,
    /// Where it lies in rows: [`StoredColumn::place`].
    pub place: u16,
    /// Those of one ALTER TABLE have the same number; later ones a higher.
    pub step: u16,
}

/// A column's default as the dictionary keeps it; see [`ColumnDefault`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum DefaultRecord {
    /// No default.
    #[default]
    None,
    /// `DEFAULT NULL`, declared or because the column is nullable.
    Null,
    /// The value as a row of this one column.
    Literal(Vec<u8>),
    /// `CURRENT_TIMESTAMP(fsp)`, with the type's digits.
    Now,
    /// The expression's canonical text.
    Expression(String),
}

/// How a column came to rows that were there; see [`Added`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddedRecord {
    /// Columns of one ALTER TABLE have the same.
    pub step: u16,
    /// The value in rows that were written before, as a row of this one column; `None`: NULL.
    pub value: Option<Vec<u8>>,
}

/// What a generated column computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratedRecord {
    /// The expression's canonical text.
    pub sql: String,
    /// STORED, not VIRTUAL.
    pub stored: bool,
}

/// A CHECK constraint as the dictionary keeps it; see [`Check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The constraint's name.
    pub name: CompactString,
    /// The condition's canonical text.
    pub sql: String,
    /// False: NOT ENFORCED.
    pub enforced: bool,
}

/// A foreign key as the dictionary keeps it; see [`ForeignKey`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKeyRecord {
    /// The constraint's name.
    pub name: CompactString,
    /// The referring columns' names.
    pub columns: Vec<CompactString>,
    /// The referenced table's schema.
    pub parent_schema: CompactString,
    /// The referenced table's name.
    pub parent_table: CompactString,
    /// The referenced columns' names, in the order of `columns`.
    pub parent_columns: Vec<CompactString>,
    /// What happens when the parent row is deleted.
    #[serde(with = "ReferenceActionRecord")]
    pub on_delete: ReferenceAction,
    /// What happens when the parent row's referenced columns change.
    #[serde(with = "ReferenceActionRecord")]
    pub on_update: ReferenceAction,
    /// ALTER TABLE found it in the old table.
    #[serde(skip)]
    pub is_old: bool,
}

/// Serde's view of a reference's action.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ReferenceAction")]
enum ReferenceActionRecord {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
}

/// An index as the dictionary keeps it; see [`Index`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexRecord {
    /// `PRIMARY` for the primary key.
    pub name: CompactString,
    /// The [`SpaceId`] of its entries; for the primary key, the table's.
    pub space: u32,
    /// Primary, unique or neither.
    #[serde(with = "IndexKindRecord")]
    pub kind: IndexKind,
    /// What its keys consist of.
    pub parts: Vec<PartRecord>,
    /// INVISIBLE: not used by the optimizer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub invisible: bool,
    /// Empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// `USING` was written: printed back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<CompactString>,
    /// Made by the server for a foreign key.
    #[serde(default, skip_serializing_if = "is_false")]
    pub implicit: bool,
    /// Where ALTER TABLE took the index from: its position in the old table.
    #[serde(skip)]
    pub origin: Option<usize>,
}

/// A part of an index's key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartRecord {
    /// The column's name.
    pub column: CompactString,
    /// Only so many characters count (bytes for binary strings); `None`: the whole value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<u32>,
    /// DESC.
    #[serde(default, skip_serializing_if = "is_false")]
    pub descending: bool,
}

/// A view as the dictionary keeps it; see [`View`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewRecord {
    /// The name of the schema it is in.
    pub schema: CompactString,
    /// As it was created.
    pub name: CompactString,
    /// The definition's version.
    pub version: u64,
    /// The SELECT in canonical form.
    pub sql: String,
    /// The columns' names.
    pub columns: Vec<CompactString>,
    /// `user@host`.
    pub definer: String,
    /// SQL SECURITY INVOKER, not DEFINER.
    #[serde(default)]
    pub invoker: bool,
    /// UNDEFINED, MERGE or TEMPTABLE.
    #[serde(default)]
    pub algorithm: CompactString,
    /// CASCADED, LOCAL or empty.
    #[serde(default)]
    pub check_option: CompactString,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl DefaultRecord {
    /// For serde: a column without a default is written without the field.
    pub fn is_none(&self) -> bool {
        matches!(self, DefaultRecord::None)
    }

    /// The record of a value that is already of the column's type.
    pub fn literal(value: Value, ty: &DataType) -> DefaultRecord {
        match one_column_row(value, ty) {
            None => DefaultRecord::Null,
            Some(row) => DefaultRecord::Literal(row),
        }
    }
}

impl AddedRecord {
    /// The record of a value that is already of the column's type.
    pub fn new(step: u16, value: Value, ty: &DataType) -> AddedRecord {
        let value = one_column_row(value, ty);
        AddedRecord { step, value }
    }

    /// The record of how a column of this type was added.
    pub fn of(added: &Added, ty: &DataType) -> AddedRecord {
        AddedRecord::new(added.step, added.value.clone(), ty)
    }

    fn bound(&self, ty: &DataType) -> Added {
        let value = self.value.as_ref();
        Added {
            step: self.step,
            value: value.map_or(Value::Null, |row| value_of_row(row, ty)),
        }
    }
}

/// A value as a row of this one column; `None` for NULL.
fn one_column_row(value: Value, ty: &DataType) -> Option<Vec<u8>> {
    if value.is_null() {
        return None;
    }
    let mut row = Vec::new();
    RowLayout::new(std::slice::from_ref(ty)).encode(&[value], &mut row);
    Some(row)
}

/// The value that such a row holds.
fn value_of_row(row: &[u8], ty: &DataType) -> Value {
    RowLayout::new(std::slice::from_ref(ty)).get(row, 0)
}

/// Serde's view of an index's kind.
#[derive(Serialize, Deserialize)]
#[serde(remote = "IndexKind")]
enum IndexKindRecord {
    Primary,
    Unique,
    NonUnique,
}

impl TableRecord {
    /// The position of the column of that name, in any case; hidden ones count.
    pub fn column_position(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// No row lies in the table's space that was written before its columns were what they are.
    pub fn forget_alterations(&mut self) {
        for column in &mut self.columns {
            column.added = None;
            column.place = 0;
        }
        self.dropped.clear();
    }

    /// In how many steps columns were added to rows that stayed as they were, or dropped from them.
    pub fn row_versions(&self) -> usize {
        let added = self
            .columns
            .iter()
            .filter_map(|column| column.added.as_ref());
        let dropped = self.dropped.iter();
        let gone = dropped.clone().filter_map(|column| column.added.as_ref());
        let added: BTreeSet<u16> = added.chain(gone).map(|added| added.step).collect();
        let dropped: BTreeSet<u16> = dropped.map(|column| column.step).collect();
        added.len() + dropped.len()
    }

    /// The position of the index of that name, in any case.
    pub fn index_position(&self, name: &str) -> Option<usize> {
        self.indexes
            .iter()
            .position(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// Whether the first index is the primary key; there is no other place for one.
    pub fn has_primary_key(&self) -> bool {
        self.indexes
            .first()
            .is_some_and(|index| index.kind == IndexKind::Primary)
    }

    /// The record of a bound table, every column and index knowing where it came from.
    pub fn of(table: &Table) -> TableRecord {
        TableRecord {
            id: table.id.0,
            version: table.version,
            schema: table.schema.clone(),
            name: table.name.clone(),
            space: table.space.0,
            columns: table
                .columns
                .iter()
                .enumerate()
                .map(column_record)
                .collect(),
            dropped: table.dropped.clone(),
            indexes: table
                .indexes
                .iter()
                .enumerate()
                .map(|(position, index)| index_record(table, position, index))
                .collect(),
            checks: table.checks.iter().map(check_record).collect(),
            foreign_keys: table
                .foreign_keys
                .iter()
                .map(|key| foreign_key_record(table, key))
                .collect(),
            collation: table.collation.id(),
            comment: table.comment.clone(),
            options: table.options.clone(),
            created_s: table.created_s,
            temporary: table.temporary,
        }
    }

    /// Makes the table that plans are made for. `state` is what outlives versions of the same
    /// table.
    pub fn bind(&self, state: Arc<TableState>, binder: BindExpression) -> Result<Table> {
        let columns: Vec<Column> = self.columns.iter().map(bound_column).collect();
        let layout = layout(&columns, &self.dropped);
        let mut table = Table {
            id: TableId(self.id),
            version: self.version,
            schema: self.schema.clone(),
            name: self.name.clone(),
            space: SpaceId(self.space),
            columns,
            dropped: self.dropped.clone(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: self
                .foreign_keys
                .iter()
                .map(|key| self.bound_foreign_key(key))
                .collect(),
            layout: Arc::new(layout),
            collation: Collation::by_id(self.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI),
            comment: self.comment.clone(),
            options: self.options.clone(),
            temporary: self.temporary,
            created_s: self.created_s,
            state,
        };
        table.indexes = self
            .indexes
            .iter()
            .map(|index| self.bind_index(index))
            .collect();
        self.bind_expressions(&mut table, binder)?;
        Ok(table)
    }

    fn bound_foreign_key(&self, key: &ForeignKeyRecord) -> ForeignKey {
        ForeignKey {
            name: key.name.clone(),
            columns: key
                .columns
                .iter()
                .filter_map(|column| self.column_position(column))
                .collect(),
            parent_schema: key.parent_schema.clone(),
            parent_table: key.parent_table.clone(),
            parent_columns: key.parent_columns.clone(),
            on_delete: key.on_delete,
            on_update: key.on_update,
        }
    }

    fn bind_index(&self, index: &IndexRecord) -> Index {
        let parts: Vec<IndexPart> = index
            .parts
            .iter()
            .filter_map(|part| {
                Some(IndexPart {
                    column: self.column_position(&part.column)?,
                    prefix: part.prefix,
                    descending: part.descending,
                })
            })
            .collect();
        let mut entry_columns = Vec::new();
        if index.kind != IndexKind::Primary {
            let primary = self
                .indexes
                .first()
                .filter(|first| first.kind == IndexKind::Primary);
            let primary_parts = primary.into_iter().flat_map(|primary| &primary.parts);
            for part in index
                .parts
                .iter()
                .chain(primary_parts)
                .filter(|part| part.prefix.is_none())
            {
                if let Some(column) = self
                    .column_position(&part.column)
                    .filter(|column| !entry_columns.contains(column))
                {
                    entry_columns.push(column);
                }
            }
        }
        let entry_types: Vec<DataType> = entry_columns
            .iter()
            .map(|&column| self.columns[column].ty.clone())
            .collect();
        Index {
            name: index.name.clone(),
            space: SpaceId(index.space),
            kind: index.kind,
            parts,
            visible: !index.invisible,
            comment: index.comment.clone(),
            algorithm: index.algorithm.clone(),
            implicit: index.implicit,
            entry_columns,
            entry_layout: Arc::new(RowLayout::new(&entry_types)),
        }
    }

    /// Binds expressions of defaults, generated columns and checks over the table's own columns.
    fn bind_expressions(&self, table: &mut Table, binder: BindExpression) -> Result<()> {
        for (position, column) in self.columns.iter().enumerate() {
            let name = &column.name;
            if let DefaultRecord::Expression(sql) = &column.default {
                let expr = expression::bind(sql, table, "default value expression", binder)
                    .map_err(|refusal| refusal.into_error(|what| what.in_default(name)))?;
                table.columns[position].default = ColumnDefault::Expression {
                    sql: sql.clone(),
                    expr: Arc::new(expr),
                };
            }
            if let Some(GeneratedRecord { sql, stored }) = &column.generated {
                let expr = expression::bind(sql, table, "generated column function", binder)
                    .map_err(|refusal| refusal.into_error(|what| what.in_generated(name)))?;
                table.columns[position].generated = Some(Generated {
                    sql: sql.clone(),
                    expr: Arc::new(expr),
                    stored: *stored,
                });
            }
        }
        for CheckRecord {
            name,
            sql,
            enforced,
        } in &self.checks
        {
            let expr = expression::bind(sql, table, "check constraint CHECK expression", binder)
                .map_err(|refusal| refusal.into_error(|what| what.in_check(name)))?;
            table.checks.push(Check {
                name: name.clone(),
                sql: sql.clone(),
                expr: Arc::new(expr),
                enforced: *enforced,
            });
        }
        Ok(())
    }
}

fn column_record((position, column): (usize, &Column)) -> ColumnRecord {
    ColumnRecord {
        name: column.name.clone(),
        ty: column.ty.clone(),
        explicit_collation: column.explicit_collation,
        nullable: column.nullable,
        default: match &column.default {
            ColumnDefault::None => DefaultRecord::None,
            ColumnDefault::Literal(value) => DefaultRecord::literal(value.clone(), &column.ty),
            ColumnDefault::Now => DefaultRecord::Now,
            ColumnDefault::Expression { sql, .. } => DefaultRecord::Expression(sql.clone()),
        },
        on_update_now: column.on_update_now,
        auto_increment: column.auto_increment,
        generated: column.generated.as_ref().map(|g| GeneratedRecord {
            sql: g.sql.clone(),
            stored: g.stored,
        }),
        invisible: !column.visible,
        hidden: column.hidden,
        comment: column.comment.clone(),
        added: (column.added.as_ref()).map(|added| AddedRecord::of(added, &column.ty)),
        place: column.place,
        origin: Some(position),
    }
}

fn index_record(table: &Table, position: usize, index: &Index) -> IndexRecord {
    IndexRecord {
        name: index.name.clone(),
        space: index.space.0,
        kind: index.kind,
        parts: index
            .parts
            .iter()
            .map(|part| PartRecord {
                column: table.columns[part.column].name.clone(),
                prefix: part.prefix,
                descending: part.descending,
            })
            .collect(),
        invisible: !index.visible,
        comment: index.comment.clone(),
        algorithm: index.algorithm.clone(),
        implicit: index.implicit,
        origin: Some(position),
    }
}

fn check_record(check: &Check) -> CheckRecord {
    CheckRecord {
        name: check.name.clone(),
        sql: check.sql.clone(),
        enforced: check.enforced,
    }
}

fn foreign_key_record(table: &Table, key: &ForeignKey) -> ForeignKeyRecord {
    ForeignKeyRecord {
        name: key.name.clone(),
        columns: key
            .columns
            .iter()
            .map(|&column| table.columns[column].name.clone())
            .collect(),
        parent_schema: key.parent_schema.clone(),
        parent_table: key.parent_table.clone(),
        parent_columns: key.parent_columns.clone(),
        on_delete: key.on_delete,
        on_update: key.on_update,
        is_old: true,
    }
}

/// How the rows of a table lie that has these columns, and had those that were dropped.
fn layout(columns: &[Column], dropped: &[DroppedRecord]) -> RowLayout {
    let stored = columns.iter().map(|column| StoredColumn {
        ty: &column.ty,
        added: column.added.as_ref(),
        place: column.place,
    });
    let columns: Vec<StoredColumn<'_>> = stored.collect();
    let added = dropped.iter().map(|column| {
        let added = column.added.as_ref();
        added.map(|added| added.bound(&column.ty))
    });
    let added: Vec<Option<Added>> = added.collect();
    let stored = dropped.iter().zip(&added);
    let stored = stored.map(|(column, added)| StoredColumn {
        ty: &column.ty,
        added: added.as_ref(),
        place: column.place,
    });
    RowLayout::altered(&columns, &stored.collect::<Vec<_>>())
}

/// A column without its expressions, which are bound when the table has all its columns.
fn bound_column(column: &ColumnRecord) -> Column {
    let default = match &column.default {
        DefaultRecord::Null => ColumnDefault::Literal(Value::Null),
        DefaultRecord::Literal(row) => ColumnDefault::Literal(value_of_row(row, &column.ty)),
        DefaultRecord::Now => ColumnDefault::Now,
        DefaultRecord::None | DefaultRecord::Expression(_) => ColumnDefault::None,
    };
    Column {
        name: column.name.clone(),
        ty: column.ty.clone(),
        explicit_collation: column.explicit_collation,
        nullable: column.nullable,
        default,
        on_update_now: column.on_update_now,
        auto_increment: column.auto_increment,
        generated: None,
        visible: !column.invisible,
        hidden: column.hidden,
        comment: column.comment.clone(),
        added: (column.added.as_ref()).map(|added| added.bound(&column.ty)),
        place: column.place,
    }
}

impl View {
    /// The view that a record describes.
    pub fn of(record: ViewRecord, id: TableId, state: Arc<TableState>) -> View {
        View {
            id,
            state,
            schema: record.schema,
            name: record.name,
            version: record.version,
            sql: record.sql,
            columns: record.columns,
            definer: record.definer,
            invoker: record.invoker,
            algorithm: record.algorithm,
            check_option: record.check_option,
        }
    }

    /// The record to keep for the view.
    pub fn record(&self) -> ViewRecord {
        ViewRecord {
            schema: self.schema.clone(),
            name: self.name.clone(),
            version: self.version,
            sql: self.sql.clone(),
            columns: self.columns.clone(),
            definer: self.definer.clone(),
            invoker: self.invoker,
            algorithm: self.algorithm.clone(),
            check_option: self.check_option.clone(),
        }
    }
}
