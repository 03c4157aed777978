//! information_schema.COLUMNS.

use std::sync::Arc;

use porpoise_catalog::create_text;
use porpoise_catalog::{Column, ColumnDefault, Index, IndexKind, Relation, Table, View};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::ResultColumn;
use porpoise_expr::typing::declared::stored_type;
use porpoise_session::check::{grants, sees_column};
use porpoise_types::{DataType, Value};

use super::*;
use crate::view_columns::view_columns;

/// The type's bare name: `varchar`, `int`, `enum`.
pub(crate) fn type_word(ty: &DataType) -> String {
    let name = ty.sql_name();
    name.split(['(', ' '])
        .next()
        .unwrap_or_default()
        .to_string()
}

/// Digits and decimals of numbers, as MySQL counts them.
pub(super) fn numeric(ty: &DataType) -> (Value, Value) {
    let precision = |digits: u64, scale: Value| (Value::UInt(digits), scale);
    match ty {
        DataType::Int {
            width, unsigned, ..
        } => {
            let digits = match (width.bits(), unsigned) {
                (8, _) => 3,
                (16, _) => 5,
                (24, _) => 7,
                (32, _) => 10,
                (_, false) => 19,
                (_, true) => 20,
            };
            precision(digits, Value::UInt(0))
        }
        DataType::Bit(bits) => precision(u64::from(*bits), Value::Null),
        DataType::Decimal {
            precision: digits,
            scale,
            ..
        } => precision(u64::from(*digits), Value::UInt(u64::from(*scale))),
        DataType::Float { digits, .. } => precision(
            digits.map_or(12, |(m, _)| u64::from(m)),
            digits.map(|(_, d)| u64::from(d)).into(),
        ),
        DataType::Double { digits, .. } => precision(
            digits.map_or(22, |(m, _)| u64::from(m)),
            digits.map(|(_, d)| u64::from(d)).into(),
        ),
        _ => (Value::Null, Value::Null),
    }
}

/// What a column's part in keys is called: PRI, UNI, MUL or nothing.
pub fn column_key(table: &Table, position: usize) -> &'static str {
    let leads = |index: &Index| {
        index
            .parts
            .first()
            .is_some_and(|part| part.column == position)
    };
    if table
        .primary_key()
        .is_some_and(|primary| primary.parts.iter().any(|part| part.column == position))
    {
        return "PRI";
    }
    // A unique key without NULLs stands in for a missing primary key.
    let candidate = table.indexes.iter().find(|index| {
        index.kind == IndexKind::Unique
            && index
                .parts
                .iter()
                .all(|part| !table.columns[part.column].nullable && part.prefix.is_none())
    });
    if table.primary_key().is_none()
        && candidate.is_some_and(|index| index.parts.iter().any(|part| part.column == position))
    {
        return "PRI";
    }
    if table
        .indexes
        .iter()
        .any(|index| index.kind == IndexKind::Unique && index.parts.len() == 1 && leads(index))
    {
        return "UNI";
    }
    if table.indexes.iter().any(leads) {
        "MUL"
    } else {
        ""
    }
}

/// DESCRIBE's Extra.
pub fn extra(column: &Column) -> String {
    let mut parts: Vec<String> = Vec::new();
    if column.auto_increment {
        parts.push("auto_increment".into());
    }
    if matches!(
        column.default,
        ColumnDefault::Now | ColumnDefault::Expression { .. }
    ) {
        parts.push("DEFAULT_GENERATED".into());
    }
    if column.on_update_now {
        parts.push(format!("on update {}", create_text::now(&column.ty)));
    }
    if let Some(generated) = &column.generated {
        parts.push(
            if generated.stored {
                "STORED GENERATED"
            } else {
                "VIRTUAL GENERATED"
            }
            .into(),
        );
    }
    if !column.visible {
        parts.push("INVISIBLE".into());
    }
    parts.join(" ")
}

pub(super) fn column_default(exec: &Exec<'_>, column: &Column) -> Value {
    match &column.default {
        ColumnDefault::None => Value::Null,
        ColumnDefault::Literal(value) => {
            some_text(create_text::default_text(value, &column.ty, exec.session).as_deref())
        }
        ColumnDefault::Now => text(create_text::now(&column.ty)),
        ColumnDefault::Expression { sql, .. } => text(sql.replace('\'', "\\'")),
    }
}

/// Columns that a type alone determines, from CHARACTER_MAXIMUM_LENGTH on to COLUMN_TYPE.
pub(crate) fn type_columns(ty: &DataType) -> Vec<Value> {
    let (characters, octets) = match ty {
        ty if ty.is_string() => {
            let characters = ty.max_chars();
            let has_charset = !ty.is_binary_string();
            let per_char = if has_charset {
                u64::from(ty.collation().charset().max_len())
            } else {
                1
            };
            let blob = matches!(ty, DataType::Text { .. } | DataType::Blob(_));
            let (characters, octets) = if blob {
                (characters / per_char, characters)
            } else {
                (characters, characters * per_char)
            };
            let characters = if blob && has_charset && matches!(ty, DataType::Text { .. }) {
                // As many as there are of the shortest.
                octets / u64::from(ty.collation().charset().min_len())
            } else {
                characters
            };
            (Value::Int(characters as i64), Value::Int(octets as i64))
        }
        _ => (Value::Null, Value::Null),
    };
    let (precision, scale) = numeric(ty);
    let fsp = match ty {
        DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
            Value::UInt(u64::from(*fsp))
        }
        _ => Value::Null,
    };
    let collation = (ty.is_string() && !ty.is_binary_string()).then(|| ty.collation());
    vec![
        characters,
        octets,
        precision,
        scale,
        fsp,
        some_text(collation.map(|collation| collation.charset().name())),
        some_text(collation.map(|collation| collation.name())),
        text(ty.sql_name()),
    ]
}

/// The privileges on a column that COLUMNS and SHOW FULL COLUMNS list.
pub(super) fn column_privileges(
    exec: &Exec<'_>,
    schema: &str,
    table: &str,
    column: &str,
) -> String {
    const LISTED: [(Privilege, &str); 4] = [
        (Privilege::Select, "select"),
        (Privilege::Insert, "insert"),
        (Privilege::Update, "update"),
        (Privilege::References, "references"),
    ];
    let grants = grants(exec.session);
    let granted = LISTED.iter().filter(|(privilege, _)| {
        grants
            .as_ref()
            .is_none_or(|grants| grants.on_column(schema, table, column).has(*privilege))
    });
    granted.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

/// Whether the session may know of a table's column: of its own temporary tables', or if it has a
/// privilege on it.
pub(super) fn is_known(exec: &Exec<'_>, table: &Table, column: &str) -> bool {
    table.temporary || sees_column(exec.session, &table.schema, &table.name, column)
}

/// The session's temporary table of the name that is asked for: SHOW tells of it and not of what it
/// hides.
pub(super) fn hiding(exec: &Exec<'_>, lookup: &Lookup) -> Option<Arc<Table>> {
    let key = (lookup.schema.clone()?, lookup.name.clone()?);
    exec.session.temporary_tables.get(&key).cloned()
}

pub(super) fn columns(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    if let Some(table) = hiding(exec, lookup) {
        return columns_of_table(exec, &table, row);
    }
    for relation in visible(exec, lookup) {
        match relation {
            Relation::Table(table) => columns_of_table(exec, &table, row)?,
            Relation::View(view) => columns_of_view(exec, &view, row)?,
            Relation::Virtual(table) if table.schema == "mysql" => {
                if let Some(table) = own_table(exec.engine, table) {
                    columns_of_table(exec, &table, row)?;
                }
            }
            Relation::Virtual(table) => {
                for (position, (name, ty, nullable)) in table.columns.iter().enumerate() {
                    let ty = ty();
                    let mut values = vec![
                        text(CATALOG),
                        text(table.schema),
                        text(table.name),
                        text(name),
                        Value::UInt(position as u64 + 1),
                        Value::Null,
                        yes(*nullable),
                        text(type_word(&ty)),
                    ];
                    values.extend(type_columns(&ty));
                    values.extend([
                        text(""),
                        text(""),
                        text("select"),
                        text(""),
                        text(""),
                        Value::Null,
                    ]);
                    row(exec, &values)?;
                }
            }
        }
    }
    Ok(())
}

/// Also for temporary tables, which only SHOW COLUMNS shows.
pub fn columns_of_table(exec: &mut Exec<'_>, table: &Table, row: Sink<'_>) -> Result<()> {
    for (position, column) in table.declared_columns().enumerate() {
        if !is_known(exec, table, &column.name) {
            continue;
        }
        let mut values = vec![
            text(CATALOG),
            text(&table.schema),
            text(&table.name),
            text(&column.name),
            Value::UInt(position as u64 + 1),
            column_default(exec, column),
            yes(column.nullable),
            text(type_word(&column.ty)),
        ];
        values.extend(type_columns(&column.ty));
        values.extend([
            text(column_key(table, position)),
            text(extra(column)),
            text(column_privileges(
                exec,
                &table.schema,
                &table.name,
                &column.name,
            )),
            text(&column.comment),
            text(
                column
                    .generated
                    .as_ref()
                    .map_or(String::new(), |generated| {
                        generated.sql.replace('\'', "\\'")
                    }),
            ),
            Value::Null,
        ]);
        row(exec, &values)?;
    }
    Ok(())
}

/// The default of the table's column that a view's column is; NULL where it is none.
fn default_of_source(exec: &Exec<'_>, column: &ResultColumn) -> Value {
    let source = exec
        .catalog
        .relation(&column.schema, &column.original_table);
    let Some(Relation::Table(table)) = source else {
        return Value::Null;
    };
    match table.column_position(&column.original_name) {
        // A view counts nothing up: an AUTO_INCREMENT column's default is that of its type.
        Some(position) if table.columns[position].auto_increment => text("0"),
        Some(position) => column_default(exec, &table.columns[position]),
        None => Value::Null,
    }
}

pub(super) fn columns_of_view(exec: &mut Exec<'_>, view: &View, row: Sink<'_>) -> Result<()> {
    // A view whose tables are gone has no columns to tell of.
    let Ok(types) = view_columns(view, exec.catalog, exec.session, exec.engine) else {
        return Ok(());
    };
    for (position, (name, column)) in view.columns.iter().zip(types).enumerate() {
        if !sees_column(exec.session, &view.schema, &view.name, name) {
            continue;
        }
        let default = default_of_source(exec, &column);
        let ty = match column.original_name.is_empty() {
            true => stored_type(&column.ty),
            false => column.ty,
        };
        let mut values = vec![
            text(CATALOG),
            text(&view.schema),
            text(&view.name),
            text(name),
            Value::UInt(position as u64 + 1),
            default,
            yes(column.nullable),
            text(type_word(&ty)),
        ];
        values.extend(type_columns(&ty));
        values.extend([
            text(""),
            text(""),
            text(column_privileges(exec, &view.schema, &view.name, name)),
            text(""),
            text(""),
            Value::Null,
        ]);
        row(exec, &values)?;
    }
    Ok(())
}
