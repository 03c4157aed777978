//! A table's definition as a whole: keys, checks, options, and the rules that tie them together.
//!
//! CREATE TABLE and ALTER TABLE both edit a [`TableRecord`] with the functions here and call
//! [`complete`] at the end, which names what has no name, puts the keys in order, and refuses what can't be.

use compact_str::{CompactString, format_compact};
use porpoise_catalog::expression;
use porpoise_catalog::record::*;
use porpoise_catalog::{IndexKind, Table};
use porpoise_core::error::{Error, ErrorKind, Level, Result};
use porpoise_core::quote::text;
use porpoise_expr::typing::declared::resolve_collation;
use porpoise_planner::bind_table_expression;
use porpoise_session::session_state::SessionState;
use porpoise_sql::ast;
use porpoise_types::{Collation, DataType};

use crate::column;

const COLUMNS_MAX: usize = 4096;
/// Without counting the primary key.
const KEYS_MAX: usize = 64;
const KEY_PARTS_MAX: usize = 16;
/// Of one key, in bytes.
pub const KEY_BYTES_MAX: u64 = 3072;
/// Of a row without its BLOBs and TEXTs.
const ROW_BYTES_MAX: u64 = 65_535;
const TABLE_COMMENT_CHARS_MAX: usize = 2048;
const INDEX_COMMENT_CHARS_MAX: usize = 1024;

/// Engines that MySQL has; all of them mean ours.
const KNOWN_ENGINES: [&str; 12] = [
    "InnoDB",
    "MyISAM",
    "MEMORY",
    "HEAP",
    "CSV",
    "ARCHIVE",
    "BLACKHOLE",
    "MRG_MYISAM",
    "MERGE",
    "FEDERATED",
    "Aria",
    "Porpoise",
];

/// Options that are kept and printed back, without effect.
const PRINTED_OPTIONS: [&str; 8] = [
    "MIN_ROWS",
    "MAX_ROWS",
    "AVG_ROW_LENGTH",
    "PACK_KEYS",
    "CHECKSUM",
    "DELAY_KEY_WRITE",
    "ROW_FORMAT",
    "KEY_BLOCK_SIZE",
];

// ---------------------------------------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------------------------------------

/// What table options say together.
#[derive(Default)]
pub struct Options {
    pub charset: Option<CompactString>,
    pub collation: Option<CompactString>,
    pub auto_increment: Option<u64>,
    pub comment: Option<String>,
    pub engine: bool,
    pub printed: Vec<(CompactString, String)>,
}

impl Options {
    pub fn read<'a>(
        options: impl IntoIterator<Item = &'a ast::TableOption>,
        table: &str,
        session: &mut SessionState,
    ) -> Result<Options> {
        let mut read = Options::default();
        for option in options {
            match option {
                ast::TableOption::Engine(name) => {
                    check_engine(name, table, session)?;
                    read.engine = true;
                }
                ast::TableOption::Charset(name) if name.eq_ignore_ascii_case("default") => {}
                ast::TableOption::Charset(name) => read.charset = Some(name.as_str().into()),
                ast::TableOption::Collation(name) => read.collation = Some(name.as_str().into()),
                ast::TableOption::AutoIncrement(next) => read.auto_increment = Some(*next),
                ast::TableOption::Comment(comment) => {
                    let comment = text(Some(comment));
                    if comment.chars().count() > TABLE_COMMENT_CHARS_MAX {
                        return Err(Error::comment_too_long(
                            "table",
                            table,
                            TABLE_COMMENT_CHARS_MAX,
                        ));
                    }
                    read.comment = Some(comment);
                }
                ast::TableOption::RowFormat(format) => {
                    read.print("ROW_FORMAT", format.to_ascii_uppercase())
                }
                ast::TableOption::Other(name, value) => read.print(name, text(Some(value))),
            }
        }
        Ok(read)
    }

    fn print(&mut self, name: &str, value: String) {
        if PRINTED_OPTIONS
            .iter()
            .any(|printed| printed.eq_ignore_ascii_case(name))
        {
            let name = CompactString::new(name.to_ascii_uppercase());
            self.printed.retain(|(known, _)| *known != name);
            if !value.eq_ignore_ascii_case("default") {
                self.printed.push((name, value));
            }
        }
    }

    /// The table's collation, over the schema's or the table's old one.
    pub fn collation(&self, inherited: Collation) -> Result<Collation> {
        resolve_collation(
            self.charset.as_deref(),
            self.collation.as_deref(),
            inherited,
        )
    }
}

fn check_engine(name: &str, table: &str, session: &mut SessionState) -> Result<()> {
    if name.eq_ignore_ascii_case("InnoDB") {
        return Ok(());
    }
    let known = KNOWN_ENGINES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name));
    if !known {
        let error = Error::unknown_storage_engine(name);
        if session.sql_mode.no_engine_substitution() {
            return Err(error);
        }
        session.warn(Level::Warning, error.into_condition());
    }
    session.warn(
        Level::Warning,
        Error::using_other_engine("InnoDB", table).into_condition(),
    );
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------
// Keys
// ---------------------------------------------------------------------------------------------------------

/// Adds an index. Its name is empty until [`complete`] where none was written, unless it has functional parts.
pub fn add_index(record: &mut TableRecord, def: &ast::IndexDef) -> Result<()> {
    let kind = match def.kind {
        ast::IndexKind::Primary => IndexKind::Primary,
        ast::IndexKind::Unique => IndexKind::Unique,
        ast::IndexKind::Index => IndexKind::NonUnique,
        ast::IndexKind::FullText => return Err(Error::not_supported_yet("FULLTEXT indexes")),
        ast::IndexKind::Spatial => return Err(Error::not_supported_yet("SPATIAL indexes")),
    };
    let name = match (kind, def.name.as_ref().or(def.constraint.as_ref())) {
        (IndexKind::Primary, _) => CompactString::new("PRIMARY"),
        (_, None) => CompactString::default(),
        (_, Some(name))
            if name.eq_ignore_ascii_case("PRIMARY") || name.is_empty() || name.ends_with(' ') =>
        {
            return Err(Error::wrong_index_name(name.as_str()));
        }
        (_, Some(name)) if name.chars().count() > 64 => {
            return Err(Error::identifier_too_long(name.as_str()));
        }
        (_, Some(name)) => name.as_str().into(),
    };
    let comment = text(def.options.comment.as_deref());
    if comment.chars().count() > INDEX_COMMENT_CHARS_MAX {
        return Err(Error::comment_too_long(
            "index",
            &name,
            INDEX_COMMENT_CHARS_MAX,
        ));
    }
    let is_functional = |part: &ast::KeyPart| matches!(part.target, ast::KeyTarget::Expr(_));
    let name = match def.parts.iter().any(is_functional) {
        true if kind == IndexKind::Primary => return Err(Error::functional_primary_key()),
        true if name.is_empty() => free_name(record, "functional_index"),
        _ => name,
    };
    let mut parts = Vec::with_capacity(def.parts.len());
    for (position, part) in def.parts.iter().enumerate() {
        let (column, prefix) = match &part.target {
            ast::KeyTarget::Column { name, length } => (name.as_str().into(), *length),
            ast::KeyTarget::Expr(ast::Expr::Column(_)) => {
                return Err(Error::functional_key_of_column());
            }
            ast::KeyTarget::Expr(expr) => (add_hidden(record, &name, position, expr), None),
        };
        parts.push(PartRecord {
            column,
            prefix,
            descending: part.descending,
        });
    }
    record.indexes.push(IndexRecord {
        name,
        space: 0,
        kind,
        parts,
        invisible: def.options.visible == Some(false),
        comment,
        algorithm: def
            .options
            .algorithm
            .as_ref()
            .map(|name| name.to_ascii_uppercase().into()),
        implicit: false,
        origin: None,
    });
    Ok(())
}

/// Adds the hidden column that a functional key part is of; [`complete`] gives it its type. Returns its name.
fn add_hidden(
    record: &mut TableRecord,
    index: &str,
    part: usize,
    expr: &ast::Expr,
) -> CompactString {
    let name = (0..)
        .map(|count| format_compact!("!hidden!{index}!{part}!{count}"))
        .find(|name| record.column_position(name).is_none())
        .unwrap_or_default();
    record.columns.push(ColumnRecord {
        name: name.clone(),
        ty: DataType::Null,
        nullable: true,
        default: DefaultRecord::None,
        on_update_now: false,
        auto_increment: false,
        generated: Some(GeneratedRecord {
            sql: super::canonical::expression(expr),
            stored: false,
        }),
        invisible: true,
        hidden: true,
        comment: String::new(),
        origin: None,
    });
    name
}

/// Adds the keys that a column's definition asks for.
pub fn add_column_keys(record: &mut TableRecord, def: &ast::ColumnDef) -> Result<()> {
    let mut key = |kind| {
        let name = if kind == IndexKind::Primary {
            CompactString::new("PRIMARY")
        } else {
            CompactString::default()
        };
        record.indexes.push(IndexRecord {
            name,
            space: 0,
            kind,
            parts: vec![PartRecord {
                column: def.name.as_str().into(),
                prefix: None,
                descending: false,
            }],
            invisible: false,
            comment: String::new(),
            algorithm: None,
            implicit: false,
            origin: None,
        });
    };
    if def.primary_key {
        key(IndexKind::Primary);
    }
    if def.unique {
        key(IndexKind::Unique);
    }
    Ok(())
}

/// Adds a check. An empty name is filled in by [`complete`].
pub fn add_check(record: &mut TableRecord, check: &ast::Check) {
    record.checks.push(CheckRecord {
        name: check
            .name
            .as_ref()
            .map_or_else(CompactString::default, |name| name.as_str().into()),
        sql: super::canonical::expression(&check.expr),
        enforced: check.enforced,
    });
}

/// Bytes a key's part takes at most.
fn part_bytes(part: &PartRecord, ty: &DataType) -> u64 {
    let per_char = match ty {
        DataType::Char { collation, .. }
        | DataType::Varchar { collation, .. }
        | DataType::Text { collation, .. } => u64::from(collation.charset().max_len()),
        _ => 1,
    };
    match (part.prefix, ty) {
        (Some(prefix), _) => u64::from(prefix) * per_char,
        (None, DataType::Char { length, .. } | DataType::Varchar { length, .. }) => {
            u64::from(*length) * per_char
        }
        (None, ty) => stored_bytes(ty),
    }
}

/// Bytes a column takes at most in a row, as MySQL counts them.
fn stored_bytes(ty: &DataType) -> u64 {
    let fraction = |fsp: u8| u64::from(fsp.div_ceil(2));
    let decimal = |digits: u64| digits / 9 * 4 + (digits % 9).div_ceil(2);
    match ty {
        DataType::Null => 0,
        DataType::Int { width, .. } => u64::from(width.bits() / 8),
        DataType::Bit(bits) => u64::from(bits.div_ceil(8)),
        DataType::Decimal {
            precision, scale, ..
        } => decimal(u64::from(precision - scale)) + decimal(u64::from(*scale)),
        DataType::Float { .. } => 4,
        DataType::Double { .. } => 8,
        DataType::Char { length, collation } => {
            u64::from(*length) * u64::from(collation.charset().max_len())
        }
        DataType::Varchar { length, collation } => {
            let bytes = u64::from(*length) * u64::from(collation.charset().max_len());
            bytes + if bytes > 255 { 2 } else { 1 }
        }
        DataType::Binary(length) => u64::from(*length),
        DataType::Varbinary(length) => u64::from(*length) + if *length > 255 { 2 } else { 1 },
        DataType::Text { size, .. } | DataType::Blob(size) => 9 + *size as u64,
        DataType::Json => 12,
        DataType::Date => 3,
        DataType::Time { fsp } => 3 + fraction(*fsp),
        DataType::DateTime { fsp } => 5 + fraction(*fsp),
        DataType::Timestamp { fsp } => 4 + fraction(*fsp),
        DataType::Year => 1,
        DataType::Enum(def) => 1 + u64::from(def.members.len() > 255),
        DataType::Set(def) => match def.members.len().div_ceil(8) as u64 {
            bytes @ 0..=4 => bytes.max(1),
            _ => 8,
        },
    }
}

/// Checks a key's parts against the columns, and drops prefixes that are the whole column.
fn check_index(
    record: &mut TableRecord,
    position: usize,
    session: &mut SessionState,
) -> Result<()> {
    let TableRecord {
        indexes, columns, ..
    } = record;
    let index = &mut indexes[position];
    if index.parts.len() > KEY_PARTS_MAX {
        return Err(Error::too_many_key_parts(KEY_PARTS_MAX));
    }
    let mut bytes = 0;
    for at in 0..index.parts.len() {
        let name = index.parts[at].column.clone();
        let Some(column) = columns
            .iter()
            .find(|column| column.name.eq_ignore_ascii_case(&name))
        else {
            return Err(Error::key_column_missing(name));
        };
        if index.parts[..at]
            .iter()
            .any(|earlier| earlier.column.eq_ignore_ascii_case(&name))
        {
            return Err(Error::duplicate_column(name));
        }
        let part = &mut index.parts[at];
        part.column = column.name.clone();
        if column.ty == DataType::Json {
            return Err(Error::json_in_key(&column.name));
        }
        if index.kind == IndexKind::Primary
            && column
                .generated
                .as_ref()
                .is_some_and(|generated| !generated.stored)
        {
            return Err(Error::unsupported_on_generated(
                "Defining a virtual generated column as primary key",
            ));
        }
        match part.prefix {
            Some(0) => return Err(Error::key_part_zero(&column.name)),
            Some(prefix) => {
                let whole = match &column.ty {
                    DataType::Char { length, .. } | DataType::Varchar { length, .. } => {
                        Some(*length)
                    }
                    DataType::Binary(length) | DataType::Varbinary(length) => Some(*length),
                    DataType::Text { .. } | DataType::Blob(_) => None,
                    _ => return Err(Error::wrong_sub_key()),
                };
                match whole {
                    Some(whole) if prefix > whole => return Err(Error::wrong_sub_key()),
                    Some(whole) if prefix == whole => part.prefix = None,
                    _ => {}
                }
            }
            None if column.ty.is_blob() => return Err(Error::key_without_length(&column.name)),
            None => {}
        }
        let part_size = part_bytes(part, &column.ty);
        if part_size > KEY_BYTES_MAX {
            let error = Error::key_too_long(KEY_BYTES_MAX);
            let per_char = part_size
                / u64::from(part.prefix.unwrap_or_else(|| column.ty.max_chars() as u32)).max(1);
            if session.sql_mode.strict() || index.kind != IndexKind::NonUnique {
                return Err(error);
            }
            session.warn(Level::Warning, error.into_condition());
            part.prefix = Some((KEY_BYTES_MAX / per_char.max(1)) as u32);
        }
        bytes += part_bytes(part, &column.ty);
    }
    if bytes > KEY_BYTES_MAX {
        return Err(Error::key_too_long(KEY_BYTES_MAX));
    }
    if index.kind == IndexKind::Primary && index.invisible {
        return Err(Error::primary_invisible());
    }
    Ok(())
}

/// The name, or with a number where a key has it already.
fn free_name(record: &TableRecord, first: &str) -> CompactString {
    std::iter::once(first.into())
        .chain((2..).map(|number| format_compact!("{first}_{number}")))
        .find(|name: &CompactString| record.index_position(name).is_none())
        .unwrap_or_default()
}

/// A name for a key that has none: its first column's, with a number where that is taken.
fn key_name(record: &TableRecord, position: usize) -> CompactString {
    let first = record.indexes[position]
        .parts
        .first()
        .map_or("", |part| part.column.as_str());
    let taken = |name: &str| {
        name.eq_ignore_ascii_case("PRIMARY")
            || record.indexes[..position]
                .iter()
                .any(|index| index.name.eq_ignore_ascii_case(name))
            || record.indexes[position..]
                .iter()
                .any(|index| index.origin.is_some() && index.name.eq_ignore_ascii_case(name))
    };
    if !taken(first) {
        return first.into();
    }
    (2..)
        .map(|number| format_compact!("{first}_{number}"))
        .find(|name| !taken(name))
        .unwrap_or_default()
}

// ---------------------------------------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------------------------------------

/// Names what has no name, orders the keys, and refuses definitions that can't be.
/// `explicit_null` are the columns that were written with NULL.
pub fn complete(
    record: &mut TableRecord,
    explicit_null: &[CompactString],
    session: &mut SessionState,
) -> Result<()> {
    if record.columns.is_empty() {
        return Err(Error::table_must_have_columns());
    }
    if record.columns.iter().all(|column| column.invisible) {
        return Err(Error::no_visible_column());
    }
    if record.columns.len() > COLUMNS_MAX {
        return Err(Error::too_many_columns());
    }
    for (position, column) in record.columns.iter().enumerate() {
        if record.columns[..position]
            .iter()
            .any(|earlier| earlier.name.eq_ignore_ascii_case(&column.name))
        {
            return Err(Error::duplicate_column(&column.name));
        }
    }
    complete_hidden(record)?;
    let row_bytes: u64 = record
        .columns
        .iter()
        .filter(|column| !column.hidden)
        .map(|column| stored_bytes(&column.ty))
        .sum();
    if row_bytes > ROW_BYTES_MAX {
        return Err(Error::row_too_big(ROW_BYTES_MAX));
    }
    complete_keys(record, explicit_null, session)?;
    let autos: Vec<usize> = (0..record.columns.len())
        .filter(|&at| record.columns[at].auto_increment)
        .collect();
    match autos.as_slice() {
        [] => {}
        [auto] => {
            let name = &record.columns[*auto].name;
            if !record
                .indexes
                .iter()
                .any(|index| index.parts.first().is_some_and(|part| part.column == *name))
            {
                return Err(Error::wrong_auto_key());
            }
        }
        _ => return Err(Error::wrong_auto_key()),
    }
    complete_checks(record)
}

/// Takes away hidden columns that no key is over any more.
pub fn forget_hidden(record: &mut TableRecord) {
    let TableRecord {
        columns, indexes, ..
    } = record;
    let in_key = |column: &ColumnRecord| {
        let mut parts = indexes.iter().flat_map(|index| &index.parts);
        parts.any(|part| part.column == column.name)
    };
    columns.retain(|column| !column.hidden || in_key(column));
}

/// Hidden columns go with their keys, stand behind all others, and have the types that their expressions have now.
fn complete_hidden(record: &mut TableRecord) -> Result<()> {
    forget_hidden(record);
    let columns = &mut record.columns;
    columns.sort_by_key(|column| column.hidden);
    if columns.iter().all(|column| !column.hidden) {
        return Ok(());
    }
    let mut plain = record.clone();
    plain.columns.retain(|column| !column.hidden);
    for column in &mut plain.columns {
        column.generated = None;
        column.default = DefaultRecord::None;
    }
    plain.indexes.clear();
    plain.checks.clear();
    plain.foreign_keys.clear();
    let plain = plain.bind(std::sync::Arc::default(), bind_table_expression)?;
    let auto = plain.auto_increment_column();
    for index in &record.indexes {
        for part in &index.parts {
            let Some(column) = record
                .columns
                .iter_mut()
                .find(|column| column.hidden && column.name == part.column)
            else {
                continue;
            };
            let Some(generated) = &column.generated else {
                continue;
            };
            let expr = expression::bind(
                &generated.sql,
                &plain,
                "functional index",
                bind_table_expression,
            )?;
            if !expression::is_deterministic(&expr) {
                return Err(Error::functional_key_function_not_allowed(&index.name));
            }
            if auto.is_some_and(|auto| expression::columns(&expr).contains(&auto)) {
                return Err(Error::functional_key_refers_auto_increment(&index.name));
            }
            column.ty = super::create::stored_type(&expr.ty);
            column.nullable = expr.nullable;
            match column.ty {
                DataType::Json => return Err(Error::functional_key_of_json()),
                DataType::Text { .. } | DataType::Blob(_) => {
                    return Err(Error::functional_key_of_blob());
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn complete_keys(
    record: &mut TableRecord,
    explicit_null: &[CompactString],
    session: &mut SessionState,
) -> Result<()> {
    if record
        .indexes
        .iter()
        .filter(|index| index.kind == IndexKind::Primary)
        .count()
        > 1
    {
        return Err(Error::multiple_primary_key());
    }
    if record
        .indexes
        .iter()
        .filter(|index| index.kind != IndexKind::Primary)
        .count()
        > KEYS_MAX
    {
        return Err(Error::too_many_keys(KEYS_MAX));
    }
    for position in 0..record.indexes.len() {
        check_index(record, position, session)?;
        if record.indexes[position].name.is_empty() {
            record.indexes[position].name = key_name(record, position);
        } else {
            let name = &record.indexes[position].name;
            if record.indexes[..position]
                .iter()
                .any(|earlier| earlier.name.eq_ignore_ascii_case(name))
            {
                return Err(Error::duplicate_key_name(name));
            }
        }
    }
    let primary: Vec<CompactString> = record
        .indexes
        .iter()
        .filter(|index| index.kind == IndexKind::Primary)
        .flat_map(|index| index.parts.iter().map(|part| part.column.clone()))
        .collect();
    for column in record
        .columns
        .iter_mut()
        .filter(|column| primary.contains(&column.name))
    {
        if explicit_null
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&column.name))
        {
            return Err(Error::primary_cannot_have_null());
        }
        column.nullable = false;
        if column.default == DefaultRecord::Null {
            column.default = DefaultRecord::None;
        }
    }
    for (position, index) in record.indexes.iter().enumerate() {
        let same =
            |earlier: &&IndexRecord| earlier.parts == index.parts && earlier.kind == index.kind;
        if index.origin.is_none()
            && record.indexes[..position]
                .iter()
                .any(|earlier| same(&earlier))
        {
            let warning = Error::duplicate_index(&index.name, &record.schema, &record.name);
            session.warn(Level::Warning, warning.into_condition());
        }
    }
    // Primary, unique without NULLs, unique, the rest; as written within each.
    let columns = &record.columns;
    record.indexes.sort_by_key(|index| match index.kind {
        IndexKind::Primary => 0,
        IndexKind::Unique => {
            let nullable = |part: &PartRecord| {
                columns
                    .iter()
                    .any(|column| column.name == part.column && column.nullable)
            };
            1 + u8::from(index.parts.iter().any(nullable))
        }
        IndexKind::NonUnique => 3,
    });
    Ok(())
}

fn complete_checks(record: &mut TableRecord) -> Result<()> {
    let prefix = format_compact!("{}_chk_", record.name);
    let numbered = |check: &CheckRecord| {
        check
            .name
            .strip_prefix(prefix.as_str())?
            .parse::<u32>()
            .ok()
    };
    let mut next = record.checks.iter().filter_map(numbered).max().unwrap_or(0);
    for check in &mut record.checks {
        if check.name.is_empty() {
            next += 1;
            check.name = format_compact!("{prefix}{next}");
        } else {
            column::check_name_length(&check.name)?;
        }
    }
    for (position, check) in record.checks.iter().enumerate() {
        if record.checks[..position]
            .iter()
            .any(|earlier| earlier.name.eq_ignore_ascii_case(&check.name))
        {
            return Err(Error::duplicate_check(&check.name));
        }
    }
    Ok(())
}

/// Checks names of checks against those of a schema's other tables.
pub fn check_names_are_free(
    record: &TableRecord,
    schema: &porpoise_catalog::SchemaEntry,
) -> Result<()> {
    for check in &record.checks {
        let taken = schema.relations.values().any(|relation| match relation {
            porpoise_catalog::Relation::Table(table) => {
                table.id.0 != record.id
                    && table
                        .checks
                        .iter()
                        .any(|other| other.name.eq_ignore_ascii_case(&check.name))
            }
            _ => false,
        });
        if taken {
            return Err(Error::duplicate_check(&check.name));
        }
    }
    Ok(())
}

/// Binds a finished record, and checks what its expressions refer to.
pub fn bind(
    record: &TableRecord,
    state: std::sync::Arc<porpoise_catalog::TableState>,
) -> Result<Table> {
    let table = record
        .bind(state, bind_table_expression)
        .map_err(|error| name_the_check(record, error))?;
    let auto = table.auto_increment_column();
    for (position, column) in table.columns.iter().enumerate() {
        let Some(generated) = &column.generated else {
            continue;
        };
        for used in expression::columns(&generated.expr) {
            if Some(used) == auto {
                return Err(Error::generated_refers_auto_increment(&column.name));
            }
            if used >= position && table.columns[used].generated.is_some() {
                return Err(Error::generated_refers_forward());
            }
        }
        if !expression::is_deterministic(&generated.expr) {
            return Err(Error::generated_function_not_allowed(&column.name));
        }
    }
    for check in &table.checks {
        if auto.is_some_and(|auto| expression::columns(&check.expr).contains(&auto)) {
            return Err(Error::check_refers_auto_increment(&check.name));
        }
        if let Some(function) = expression::disallowed_function(&check.expr) {
            return Err(Error::check_function_not_allowed(&check.name, function));
        }
    }
    Ok(table)
}

/// An unknown column in a check has an error of its own.
fn name_the_check(record: &TableRecord, error: Error) -> Error {
    if !error.is(ErrorKind::UnknownColumn) || !error.message().contains("CHECK") {
        return error;
    }
    let Some(column) = error.message().split('\'').nth(1) else {
        return error;
    };
    let quoted = format!("`{column}`");
    match record
        .checks
        .iter()
        .find(|check| check.sql.contains(&quoted))
    {
        Some(check) => Error::check_unknown_column(&check.name, column),
        None => error,
    }
}
