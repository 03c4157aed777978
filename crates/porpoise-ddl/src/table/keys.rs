//! Keys of a table: as they are written, with the hidden columns of functional key parts, and what
//! they must be when the definition is complete.

use compact_str::{CompactString, format_compact};
use porpoise_catalog::IndexKind;
use porpoise_catalog::expression;
use porpoise_catalog::record::*;
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::quote::text;
use porpoise_expr::typing::declared;
use porpoise_planner::bind_table_expression;
use porpoise_session::session_state::SessionState;
use porpoise_sql::ast;
use porpoise_types::DataType;

/// Without counting the primary key.
const KEYS_MAX: usize = 64;

const KEY_PARTS_MAX: usize = 16;

/// Of one key, in bytes.
pub const KEY_BYTES_MAX: u64 = 3072;

const INDEX_COMMENT_CHARS_MAX: usize = 1024;

/// Adds an index. Its name is empty until [`complete`] where none was written, unless it has
/// functional parts.
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

/// Adds the hidden column that a functional key part is of; [`complete`] gives it its type. Returns
/// its name.
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
        default: DefaultRecord::None,
        generated: Some(GeneratedRecord {
            sql: crate::canonical::expression(expr),
            stored: false,
        }),
        invisible: true,
        hidden: true,
        ..ColumnRecord::new(name.clone(), DataType::Null, true)
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
pub(super) fn stored_bytes(ty: &DataType) -> u64 {
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

/// Hidden columns go with their keys, stand behind all others, and have the types that their
/// expressions have now.
pub(super) fn complete_hidden(record: &mut TableRecord) -> Result<()> {
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
            let disallowed = || Error::functional_key_function_not_allowed(&index.name);
            let expr = expression::bind(
                &generated.sql,
                &plain,
                "functional index",
                bind_table_expression,
            )
            .map_err(|refusal| refusal.into_error(|_| disallowed()))?;
            if !expression::is_deterministic(&expr) {
                return Err(disallowed());
            }
            if auto.is_some_and(|auto| expression::columns(&expr).contains(&auto)) {
                return Err(Error::functional_key_refers_auto_increment(&index.name));
            }
            column.ty = declared::stored_type(&expr.ty);
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

/// Names and checks the keys, makes the primary key's columns NOT NULL, and puts the keys in order.
pub(super) fn complete_keys(
    record: &mut TableRecord,
    explicit_null: &[CompactString],
    session: &mut SessionState,
) -> Result<()> {
    let is_primary = |index: &&IndexRecord| index.kind == IndexKind::Primary;
    let primary_keys = record.indexes.iter().filter(is_primary).count();
    if primary_keys > 1 {
        return Err(Error::multiple_primary_key());
    }
    if record.indexes.len() - primary_keys > KEYS_MAX {
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
    forbid_nulls_in_primary_key(record, explicit_null)?;
    warn_of_duplicates(record, session);
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

/// Makes the primary key's columns NOT NULL; refuses those that are written as NULL (1171).
fn forbid_nulls_in_primary_key(
    record: &mut TableRecord,
    explicit_null: &[CompactString],
) -> Result<()> {
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
    Ok(())
}

/// Warns of new keys that are the same as earlier ones (1831).
fn warn_of_duplicates(record: &TableRecord, session: &mut SessionState) {
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
}
