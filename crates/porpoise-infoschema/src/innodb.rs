//! information_schema's INNODB_* tables: what the engine knows of tables, columns, indexes and
//! foreign keys (MySQL 8.4 manual, 28.4). All ask for PROCESS.
//!
//! What this engine has none of has no rows: pages and a buffer pool of them, tablespaces of single
//! tables, compression, full-text indexes. Spaces stand for InnoDB's tablespaces and index numbers.

use std::fmt::Write;
use std::sync::Arc;

use porpoise_catalog::{Column, Index, IndexKind, IndexPart, ReferenceAction, Relation, Table};
use porpoise_core::privilege::Privilege;
use porpoise_session::check::has_global;
use porpoise_types::{BlobSize, Charset, DataType, IntWidth, Value};

use super::*;
use crate::objects::{PAGE_BYTES, next_auto_increment, sizes};

mod columns;

use columns::*;

const fn table(
    name: &'static str,
    columns: &'static [ColumnRow],
    rows: fn(&mut Exec<'_>, &Lookup, Sink<'_>) -> Result<()>,
) -> VirtualSource {
    VirtualSource {
        schema: "information_schema",
        name,
        columns,
        rows,
    }
}

pub const TABLES: &[VirtualSource] = &[
    table("INNODB_TABLES", TABLES_COLUMNS, tables),
    table("INNODB_COLUMNS", COLUMNS_COLUMNS, columns),
    table("INNODB_INDEXES", INDEXES_COLUMNS, indexes),
    table("INNODB_FIELDS", FIELDS_COLUMNS, fields),
    table("INNODB_FOREIGN", FOREIGN_COLUMNS, foreign),
    table("INNODB_FOREIGN_COLS", FOREIGN_COLS_COLUMNS, foreign_cols),
    table("INNODB_TABLESTATS", TABLESTATS_COLUMNS, tablestats),
    table("INNODB_VIRTUAL", VIRTUAL_COLUMNS, virtual_columns),
    table(
        "INNODB_TEMP_TABLE_INFO",
        TEMP_TABLE_COLUMNS,
        temporary_tables,
    ),
    table("INNODB_CMP", CMP_COLUMNS, compression),
    table("INNODB_CMP_RESET", CMP_COLUMNS, compression),
    table("INNODB_CMPMEM", CMPMEM_COLUMNS, none),
    table("INNODB_CMPMEM_RESET", CMPMEM_COLUMNS, none),
    table("INNODB_CMP_PER_INDEX", CMP_PER_INDEX_COLUMNS, none),
    table("INNODB_CMP_PER_INDEX_RESET", CMP_PER_INDEX_COLUMNS, none),
    table("INNODB_TRX", TRX_COLUMNS, none),
    table("INNODB_METRICS", METRICS_COLUMNS, none),
    table("INNODB_TABLESPACES", TABLESPACES_COLUMNS, none),
    table("INNODB_TABLESPACES_BRIEF", TABLESPACES_BRIEF_COLUMNS, none),
    table("INNODB_DATAFILES", DATAFILES_COLUMNS, none),
    table(
        "INNODB_SESSION_TEMP_TABLESPACES",
        SESSION_TEMP_COLUMNS,
        none,
    ),
    table("INNODB_CACHED_INDEXES", CACHED_INDEXES_COLUMNS, none),
    table("INNODB_BUFFER_PAGE", BUFFER_PAGE_COLUMNS, none),
    table("INNODB_BUFFER_PAGE_LRU", BUFFER_PAGE_LRU_COLUMNS, none),
    table("INNODB_BUFFER_POOL_STATS", BUFFER_POOL_COLUMNS, none),
    table("INNODB_FT_CONFIG", FT_CONFIG_COLUMNS, none),
    table("INNODB_FT_BEING_DELETED", FT_DELETED_COLUMNS, none),
    table("INNODB_FT_DELETED", FT_DELETED_COLUMNS, none),
    table(
        "INNODB_FT_DEFAULT_STOPWORD",
        FT_STOPWORD_COLUMNS,
        stop_words,
    ),
    table("INNODB_FT_INDEX_CACHE", FT_INDEX_COLUMNS, none),
    table("INNODB_FT_INDEX_TABLE", FT_INDEX_COLUMNS, none),
];

/// Error 1227 without PROCESS.
fn check(exec: &Exec<'_>) -> Result<()> {
    match has_global(exec.session, Privilege::Process) {
        true => Ok(()),
        false => Err(porpoise_core::error::Error::specific_access_denied(
            "PROCESS",
        )),
    }
}

fn none(exec: &mut Exec<'_>, _: &Lookup, _: Sink<'_>) -> Result<()> {
    check(exec)
}

/// The words that a full-text index leaves out by default (MySQL 8.4 manual, 14.9.4).
const STOP_WORDS: &str = "a about an are as at be by com de en for from how i in is it la of on or that \
                          the this to was what when where who will with und the www";

fn stop_words(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    check(exec)?;
    for word in STOP_WORDS.split(' ') {
        row(exec, &[text(word)])?;
    }
    Ok(())
}

/// All base tables, whoever may read them, by number.
fn all(exec: &Exec<'_>) -> Result<Vec<Arc<Table>>> {
    check(exec)?;
    let schemas = exec.catalog.schemas.values();
    let relations = schemas.flat_map(|entry| entry.relations.values());
    let tables = relations.filter_map(|relation| match relation {
        Relation::Table(table) => Some(Arc::clone(table)),
        _ => None,
    });
    let mut tables: Vec<Arc<Table>> = tables.collect();
    tables.sort_by_key(|table| table.id.0);
    Ok(tables)
}

fn full_name(schema: &str, name: &str) -> Value {
    text(format!("{schema}/{name}"))
}

fn id(number: impl Into<u64>) -> Value {
    Value::UInt(number.into())
}

/// Columns that InnoDB adds to a row: its number, its transaction, its older version.
const HIDDEN_COLUMNS: i64 = 3;

fn tables(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    /// The flags of DYNAMIC, which is what all rows are.
    const DYNAMIC: i64 = 33;
    for table in all(exec)? {
        let values = [
            id(table.id.0),
            full_name(&table.schema, &table.name),
            Value::Int(DYNAMIC),
            Value::Int(table.columns.len() as i64 + HIDDEN_COLUMNS),
            Value::Int(table.space.0.into()),
            text("Dynamic"),
            Value::UInt(0),
            text("Single"),
            Value::Int(0),
            Value::Int(table.row_versions() as i64),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn columns(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in all(exec)? {
        for (position, column) in table.columns.iter().enumerate() {
            let values = [
                id(table.id.0),
                text(&column.name),
                id(position as u64),
                Value::Int(main_type(&column.ty)),
                Value::Int(precise_type(column)),
                Value::Int(stored_length(&column.ty)),
                Value::Int(column.added.is_some().into()),
                added_value(&table, position),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

/// INNODB_COLUMNS.DEFAULT_VALUE: the bytes, in hexadecimal, that rows have for a column that was
/// added to them.
fn added_value(table: &Table, column: usize) -> Value {
    let Some(stored) = table.layout.added_bytes(column) else {
        return Value::Null;
    };
    let mut hex = String::with_capacity(2 * stored.len());
    for byte in stored {
        // Writing to a string can't fail.
        let _ = write!(hex, "{byte:02x}");
    }
    text(&hex)
}

/// INNODB_COLUMNS.MTYPE.
fn main_type(ty: &DataType) -> i64 {
    const VARCHAR: i64 = 1;
    const CHAR: i64 = 2;
    const FIXBINARY: i64 = 3;
    const BINARY: i64 = 4;
    const BLOB: i64 = 5;
    const INT: i64 = 6;
    const FLOAT: i64 = 9;
    const DOUBLE: i64 = 10;
    const VARMYSQL: i64 = 12;
    const MYSQL: i64 = 13;
    let is_latin1 = ty.collation() == Collation::LATIN1_SWEDISH_CI;
    match ty {
        DataType::Varchar { .. } if is_latin1 => VARCHAR,
        DataType::Char { .. } if is_latin1 => CHAR,
        DataType::Varchar { .. } => VARMYSQL,
        DataType::Char { .. } => MYSQL,
        DataType::Varbinary(_) => BINARY,
        DataType::Text { .. } | DataType::Blob(_) | DataType::Json => BLOB,
        DataType::Float { .. } => FLOAT,
        DataType::Double { .. } => DOUBLE,
        DataType::Int { .. }
        | DataType::Year
        | DataType::Date
        | DataType::Enum(_)
        | DataType::Set(_) => INT,
        _ => FIXBINARY,
    }
}

/// INNODB_COLUMNS.PRTYPE: MySQL's number of the type, flags, and the character set's collation.
fn precise_type(column: &Column) -> i64 {
    const NOT_NULL: i64 = 256;
    const UNSIGNED: i64 = 512;
    const BINARY: i64 = 1024;
    /// VARCHAR whose length takes two bytes.
    const LONG: i64 = 4096;
    let ty = &column.ty;
    let code = match ty {
        DataType::Int { width, .. } => match width {
            IntWidth::Tiny => 1,
            IntWidth::Small => 2,
            IntWidth::Medium => 9,
            IntWidth::Int => 3,
            IntWidth::Big => 8,
        },
        DataType::Float { .. } => 4,
        DataType::Double { .. } => 5,
        DataType::Null => 6,
        DataType::Timestamp { .. } => 7,
        DataType::Date => 10,
        DataType::Time { .. } => 11,
        DataType::DateTime { .. } => 12,
        DataType::Year => 13,
        DataType::Varchar { .. } | DataType::Varbinary(_) => 15,
        DataType::Bit(_) => 16,
        DataType::Json => 245,
        DataType::Decimal { .. } => 246,
        DataType::Text { .. } | DataType::Blob(_) => 252,
        DataType::Char { .. } | DataType::Binary(_) | DataType::Enum(_) | DataType::Set(_) => 254,
    };
    let is_text = ty.is_string() && !ty.is_binary_string();
    let mut flags = if column.nullable { 0 } else { NOT_NULL };
    flags += if ty.is_unsigned() { UNSIGNED } else { 0 };
    flags += if is_text { 0 } else { BINARY };
    let is_long =
        matches!(ty, DataType::Varchar { .. } | DataType::Varbinary(_)) && stored_length(ty) > 255;
    flags += if is_long { LONG } else { 0 };
    let collation = if ty.is_string() {
        i64::from(ty.collation().id()) << 16
    } else {
        0
    };
    collation + flags + code
}

/// INNODB_COLUMNS.LEN: bytes at most; of texts that lie elsewhere, of their pointer and length.
fn stored_length(ty: &DataType) -> i64 {
    let blob = |size: &BlobSize| match size {
        BlobSize::Tiny => 9,
        BlobSize::Normal => 10,
        BlobSize::Medium => 11,
        BlobSize::Long => 12,
    };
    let fraction = |fsp: u8| i64::from(fsp.div_ceil(2));
    match ty {
        DataType::Int { width, .. } => i64::from(width.bits() / 8),
        DataType::Float { .. } => 4,
        DataType::Double { .. } => 8,
        DataType::Date => 3,
        DataType::Year => 1,
        DataType::Time { fsp } => 3 + fraction(*fsp),
        DataType::DateTime { fsp } => 5 + fraction(*fsp),
        DataType::Timestamp { fsp } => 4 + fraction(*fsp),
        DataType::Bit(bits) => i64::from(bits.div_ceil(8)),
        DataType::Decimal {
            precision, scale, ..
        } => decimal_bytes(precision - scale) + decimal_bytes(*scale),
        DataType::Text { size, .. } | DataType::Blob(size) => blob(size),
        DataType::Json => blob(&BlobSize::Long),
        DataType::Enum(members) => 1 + i64::from(members.members.len() > 255),
        DataType::Set(members) => match members.members.len().div_ceil(8) {
            bytes @ ..=4 => bytes as i64,
            _ => 8,
        },
        ty => {
            let charset = match ty.is_binary_string() {
                true => Charset::Binary,
                false => ty.collation().charset(),
            };
            ty.max_octets(charset) as i64
        }
    }
}

/// How many bytes DECIMAL takes for so many digits: four for nine of them.
fn decimal_bytes(digits: u8) -> i64 {
    const BYTES: [i64; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];
    i64::from(digits / 9) * 4 + BYTES[usize::from(digits % 9)]
}

/// A table's indexes as InnoDB counts them: rows without a primary key have an index of their own.
fn indexes_of(table: &Table) -> impl Iterator<Item = (u64, &str, i64, &[IndexPart])> {
    const CLUSTERED: i64 = 1;
    const UNIQUE: i64 = 2;
    let rows = table.primary_key().is_none();
    let generated = rows.then(|| {
        let none: &[IndexPart] = &[];
        (u64::from(table.space.0), "GEN_CLUST_INDEX", CLUSTERED, none)
    });
    let declared = table.indexes.iter().map(|index: &Index| {
        let kind = match index.kind {
            IndexKind::Primary => CLUSTERED + UNIQUE,
            IndexKind::Unique => UNIQUE,
            IndexKind::NonUnique => 0,
        };
        let space = u64::from(index.space.0);
        (space, index.name.as_str(), kind, index.parts.as_slice())
    });
    generated.into_iter().chain(declared)
}

fn indexes(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    /// There is no root page.
    const NO_PAGE: i64 = -1;
    const MERGE_THRESHOLD: i64 = 50;
    for table in all(exec)? {
        for (number, name, kind, parts) in indexes_of(&table) {
            let values = [
                id(number),
                text(name),
                id(table.id.0),
                Value::Int(kind),
                Value::Int(parts.len() as i64),
                Value::Int(NO_PAGE),
                Value::Int(table.space.0.into()),
                Value::Int(MERGE_THRESHOLD),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn fields(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in all(exec)? {
        for (number, _, _, parts) in indexes_of(&table) {
            for (position, part) in parts.iter().enumerate() {
                let column = &table.columns[part.column].name;
                row(
                    exec,
                    &[text(number.to_string()), text(column), id(position as u64)],
                )?;
            }
        }
    }
    Ok(())
}

fn foreign(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in all(exec)? {
        for key in &table.foreign_keys {
            let on_delete = match key.on_delete {
                ReferenceAction::Cascade => 1,
                ReferenceAction::SetNull => 2,
                ReferenceAction::NoAction => 16,
                ReferenceAction::Restrict => 0,
            };
            let on_update = match key.on_update {
                ReferenceAction::Cascade => 4,
                ReferenceAction::SetNull => 8,
                ReferenceAction::NoAction => 32,
                ReferenceAction::Restrict => 0,
            };
            let values = [
                full_name(&table.schema, &key.name),
                full_name(&table.schema, &table.name),
                full_name(&key.parent_schema, &key.parent_table),
                Value::Int(key.columns.len() as i64),
                Value::UInt(on_delete + on_update),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn foreign_cols(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in all(exec)? {
        for key in &table.foreign_keys {
            for (position, (&column, parent)) in
                key.columns.iter().zip(&key.parent_columns).enumerate()
            {
                let values = [
                    full_name(&table.schema, &key.name),
                    text(&table.columns[column].name),
                    text(parent),
                    id(position as u64),
                ];
                row(exec, &values)?;
            }
        }
    }
    Ok(())
}

fn tablestats(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in all(exec)? {
        let (rows, _, data, others) = sizes(exec, &table);
        let values = [
            id(table.id.0),
            full_name(&table.schema, &table.name),
            text("Initialized"),
            id(rows),
            id(data / PAGE_BYTES),
            id(others / PAGE_BYTES),
            id(exec.engine.store.changes(table.space)),
            id(next_auto_increment(exec, &table).unwrap_or(0)),
            Value::Int(0),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// A row for each column that a VIRTUAL column is computed of.
fn virtual_columns(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in all(exec)? {
        let mut count = 0;
        for (position, column) in table.columns.iter().enumerate() {
            let Some(generated) = column.generated.as_ref().filter(|made| !made.stored) else {
                continue;
            };
            count += 1;
            for base in porpoise_catalog::expression::columns(&generated.expr) {
                let numbered = (count << 16) + position as u64;
                row(exec, &[id(table.id.0), id(numbered), id(base as u64)])?;
            }
        }
    }
    Ok(())
}

/// The session's own: others' aren't listed anywhere.
fn temporary_tables(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    check(exec)?;
    let tables: Vec<_> = exec.session.temporary_tables.values().cloned().collect();
    for table in tables {
        let values = [
            id(table.id.0),
            text(&table.name),
            Value::UInt(table.columns.len() as u64 + HIDDEN_COLUMNS as u64),
            id(table.space.0),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// Nothing is ever compressed, in pages of any size.
fn compression(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    check(exec)?;
    for page_bytes in [1024, 2048, 4096, 8192, 16_384] {
        let mut values = vec![Value::Int(page_bytes)];
        values.resize(CMP_COLUMNS.len(), Value::Int(0));
        row(exec, &values)?;
    }
    Ok(())
}
