//! What the catalog holds: schemas, tables, columns, indexes, constraints, views.

use std::sync::Arc;

use porpoise_catalog::create_text;
use porpoise_catalog::{
    Column, ColumnDefault, Index, IndexKind, Relation, SchemaEntry, Table, View,
};
use porpoise_core::privilege::Privilege;
use porpoise_planner::foreign_keys;
use porpoise_session::check::{grants, sees_column};
use porpoise_types::{DataType, Value};

use super::*;
use crate::view_columns::view_columns;

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "information_schema",
        name: "SCHEMATA",
        columns: &[
            ("CATALOG_NAME", name, false),
            ("SCHEMA_NAME", exact, false),
            ("DEFAULT_CHARACTER_SET_NAME", name, false),
            ("DEFAULT_COLLATION_NAME", name, false),
            ("SQL_PATH", name, true),
            ("DEFAULT_ENCRYPTION", yes_no, false),
        ],
        rows: schemata,
    },
    VirtualSource {
        schema: "information_schema",
        name: "TABLES",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("TABLE_TYPE", name, false),
            ("ENGINE", name, true),
            ("VERSION", int, true),
            ("ROW_FORMAT", name, true),
            ("TABLE_ROWS", ubig, true),
            ("AVG_ROW_LENGTH", ubig, true),
            ("DATA_LENGTH", ubig, true),
            ("MAX_DATA_LENGTH", ubig, true),
            ("INDEX_LENGTH", ubig, true),
            ("DATA_FREE", ubig, true),
            ("AUTO_INCREMENT", ubig, true),
            ("CREATE_TIME", moment, true),
            ("UPDATE_TIME", moment, true),
            ("CHECK_TIME", moment, true),
            ("TABLE_COLLATION", name, true),
            ("CHECKSUM", big, true),
            ("CREATE_OPTIONS", word, true),
            ("TABLE_COMMENT", wide, true),
        ],
        rows: tables,
    },
    VirtualSource {
        schema: "information_schema",
        name: "COLUMNS",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, true),
            ("ORDINAL_POSITION", uint, false),
            ("COLUMN_DEFAULT", long, true),
            ("IS_NULLABLE", yes_no, false),
            ("DATA_TYPE", long, true),
            ("CHARACTER_MAXIMUM_LENGTH", big, true),
            ("CHARACTER_OCTET_LENGTH", big, true),
            ("NUMERIC_PRECISION", ubig, true),
            ("NUMERIC_SCALE", ubig, true),
            ("DATETIME_PRECISION", uint, true),
            ("CHARACTER_SET_NAME", name, true),
            ("COLLATION_NAME", name, true),
            ("COLUMN_TYPE", medium, false),
            ("COLUMN_KEY", yes_no, false),
            ("EXTRA", word, true),
            ("PRIVILEGES", word, true),
            ("COLUMN_COMMENT", wide, false),
            ("GENERATION_EXPRESSION", long, false),
            ("SRS_ID", uint, true),
        ],
        rows: columns,
    },
    VirtualSource {
        schema: "information_schema",
        name: "STATISTICS",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("NON_UNIQUE", int, false),
            ("INDEX_SCHEMA", exact, false),
            ("INDEX_NAME", name, true),
            ("SEQ_IN_INDEX", uint, false),
            ("COLUMN_NAME", name, true),
            ("COLLATION", yes_no, true),
            ("CARDINALITY", big, true),
            ("SUB_PART", big, true),
            ("PACKED", yes_no, true),
            ("NULLABLE", yes_no, false),
            ("INDEX_TYPE", name, false),
            ("COMMENT", name, false),
            ("INDEX_COMMENT", wide, false),
            ("IS_VISIBLE", yes_no, false),
            ("EXPRESSION", long, true),
        ],
        rows: statistics,
    },
    VirtualSource {
        schema: "information_schema",
        name: "KEY_COLUMN_USAGE",
        columns: &[
            ("CONSTRAINT_CATALOG", name, false),
            ("CONSTRAINT_SCHEMA", exact, false),
            ("CONSTRAINT_NAME", name, true),
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, true),
            ("ORDINAL_POSITION", uint, false),
            ("POSITION_IN_UNIQUE_CONSTRAINT", uint, true),
            ("REFERENCED_TABLE_SCHEMA", exact, true),
            ("REFERENCED_TABLE_NAME", exact, true),
            ("REFERENCED_COLUMN_NAME", name, true),
        ],
        rows: key_column_usage,
    },
    VirtualSource {
        schema: "information_schema",
        name: "TABLE_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", name, false),
            ("CONSTRAINT_SCHEMA", exact, false),
            ("CONSTRAINT_NAME", name, true),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("CONSTRAINT_TYPE", name, false),
            ("ENFORCED", yes_no, false),
        ],
        rows: table_constraints,
    },
    VirtualSource {
        schema: "information_schema",
        name: "REFERENTIAL_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", name, false),
            ("CONSTRAINT_SCHEMA", exact, false),
            ("CONSTRAINT_NAME", name, true),
            ("UNIQUE_CONSTRAINT_CATALOG", name, false),
            ("UNIQUE_CONSTRAINT_SCHEMA", exact, false),
            ("UNIQUE_CONSTRAINT_NAME", name, true),
            ("MATCH_OPTION", name, false),
            ("UPDATE_RULE", name, false),
            ("DELETE_RULE", name, false),
            ("TABLE_NAME", exact, false),
            ("REFERENCED_TABLE_NAME", exact, false),
        ],
        rows: referential_constraints,
    },
    VirtualSource {
        schema: "information_schema",
        name: "CHECK_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", name, false),
            ("CONSTRAINT_SCHEMA", exact, false),
            ("CONSTRAINT_NAME", name, false),
            ("CHECK_CLAUSE", long, false),
        ],
        rows: check_constraints,
    },
    VirtualSource {
        schema: "information_schema",
        name: "VIEWS",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("VIEW_DEFINITION", long, true),
            ("CHECK_OPTION", name, true),
            ("IS_UPDATABLE", yes_no, true),
            ("DEFINER", word, true),
            ("SECURITY_TYPE", name, true),
            ("CHARACTER_SET_CLIENT", name, false),
            ("COLLATION_CONNECTION", name, false),
        ],
        rows: views,
    },
    VirtualSource {
        schema: "information_schema",
        name: "PARTITIONS",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("PARTITION_NAME", name, true),
            ("SUBPARTITION_NAME", name, true),
            ("PARTITION_ORDINAL_POSITION", uint, true),
            ("SUBPARTITION_ORDINAL_POSITION", uint, true),
            ("PARTITION_METHOD", name, true),
            ("SUBPARTITION_METHOD", name, true),
            ("PARTITION_EXPRESSION", wide, true),
            ("SUBPARTITION_EXPRESSION", wide, true),
            ("PARTITION_DESCRIPTION", long, true),
            ("TABLE_ROWS", ubig, true),
            ("AVG_ROW_LENGTH", ubig, true),
            ("DATA_LENGTH", ubig, true),
            ("MAX_DATA_LENGTH", ubig, true),
            ("INDEX_LENGTH", ubig, true),
            ("DATA_FREE", ubig, true),
            ("CREATE_TIME", moment, false),
            ("UPDATE_TIME", moment, true),
            ("CHECK_TIME", moment, true),
            ("CHECKSUM", big, true),
            ("PARTITION_COMMENT", long, false),
            ("NODEGROUP", name, true),
            ("TABLESPACE_NAME", word, true),
        ],
        rows: partitions,
    },
];

const CATALOG: &str = "def";
/// What a page of a table takes at least.
const PAGE_BYTES: u64 = 16_384;

/// Schemas that the session may see and the lookup wants, by name.
fn visible_schemas(exec: &Exec<'_>, lookup: &Lookup) -> Vec<Arc<SchemaEntry>> {
    let grants = grants(exec.session);
    let mut schemas: Vec<_> = exec
        .catalog
        .schemas
        .values()
        .filter(|entry| lookup.wants_schema(&entry.schema.name))
        .filter(|entry| {
            let name = &entry.schema.name;
            let open = matches!(name.as_str(), "information_schema" | "performance_schema");
            open || grants.as_ref().is_none_or(|grants| {
                grants.global.has(Privilege::ShowDatabases) || grants.sees_schema(name)
            })
        })
        .cloned()
        .collect();
    schemas.sort_by(|a, b| a.schema.name.cmp(&b.schema.name));
    schemas
}

/// Relations that the session may see and the lookup wants, by schema and name.
fn visible(exec: &Exec<'_>, lookup: &Lookup) -> Vec<Relation> {
    let grants = grants(exec.session);
    let mut found = Vec::new();
    for entry in visible_schemas(exec, lookup) {
        let schema = &entry.schema.name;
        let mut relations: Vec<_> = match &lookup.name {
            Some(name) => entry.relations.get_key_value(name).into_iter().collect(),
            None => entry.relations.iter().collect(),
        };
        relations.sort_by(|a, b| a.0.cmp(b.0));
        for (name, relation) in relations {
            if grants
                .as_ref()
                .is_none_or(|grants| grants.sees_table(schema, name))
            {
                found.push(relation.clone());
            }
        }
        let mut built_in: Vec<_> = porpoise_catalog::virtual_table::all()
            .filter(|table| {
                table.schema == schema.as_str() && lookup.wants(table.schema, table.name)
            })
            .collect();
        built_in.sort_by_key(|table| table.name);
        found.extend(built_in.into_iter().map(Relation::Virtual));
    }
    found
}

fn visible_tables(exec: &Exec<'_>, lookup: &Lookup) -> Vec<Arc<Table>> {
    let tables = visible(exec, lookup)
        .into_iter()
        .filter_map(|relation| match relation {
            Relation::Table(table) => Some(table),
            _ => None,
        });
    tables.collect()
}

fn visible_views(exec: &Exec<'_>, lookup: &Lookup) -> Vec<Arc<View>> {
    let views = visible(exec, lookup)
        .into_iter()
        .filter_map(|relation| match relation {
            Relation::View(view) => Some(view),
            _ => None,
        });
    views.collect()
}

fn schemata(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for entry in visible_schemas(exec, lookup) {
        let collation = entry.schema.collation;
        row(
            exec,
            &[
                text(CATALOG),
                text(&entry.schema.name),
                text(collation.charset().name()),
                text(collation.name()),
                Value::Null,
                text("NO"),
            ],
        )?;
    }
    Ok(())
}

/// The next AUTO_INCREMENT value of a table that has such a column.
pub fn next_auto_increment(exec: &Exec<'_>, table: &Table) -> Option<u64> {
    table.auto_increment_column()?;
    let loaded = table
        .state
        .auto_increment
        .load(std::sync::atomic::Ordering::Relaxed);
    Some(if loaded > 0 {
        loaded
    } else {
        exec.engine.store.counter(table.space).max(1)
    })
}

/// Rows, and guesses of an average row's length and of the sizes of data and indexes.
fn sizes(exec: &Exec<'_>, table: &Table) -> (u64, u64, u64, u64) {
    let rows = exec.engine.store.approximate_len(table.space);
    let row_bytes: u64 = table
        .columns
        .iter()
        .map(|column| column.ty.max_chars().min(64))
        .sum();
    let data = (rows * row_bytes).div_ceil(PAGE_BYTES).max(1) * PAGE_BYTES;
    let secondary = table.spaces().count() as u64 - 1;
    let average = if rows == 0 { 0 } else { data / rows };
    (
        rows,
        average,
        data,
        secondary * (rows * 32).div_ceil(PAGE_BYTES).max(1) * PAGE_BYTES,
    )
}

fn tables(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for relation in visible(exec, lookup) {
        let values = match relation {
            Relation::Table(table) => {
                let (rows, average, data, indexes) = sizes(exec, &table);
                let options: Vec<String> = table
                    .options
                    .iter()
                    .map(|(name, value)| format!("{}={value}", name.to_ascii_lowercase()))
                    .collect();
                let format = table
                    .options
                    .iter()
                    .find(|(name, _)| name == "ROW_FORMAT")
                    .map_or("Dynamic", |(_, value)| match value.as_str() {
                        "COMPACT" => "Compact",
                        "COMPRESSED" => "Compressed",
                        "REDUNDANT" => "Redundant",
                        _ => "Dynamic",
                    });
                vec![
                    text(CATALOG),
                    text(&table.schema),
                    text(&table.name),
                    text("BASE TABLE"),
                    text("InnoDB"),
                    Value::Int(10),
                    text(format),
                    Value::UInt(rows),
                    Value::UInt(average),
                    Value::UInt(data),
                    Value::UInt(0),
                    Value::UInt(indexes),
                    Value::UInt(0),
                    next_auto_increment(exec, &table)
                        .filter(|next| *next > 1)
                        .into(),
                    local_time(exec, table.created_s),
                    Value::Null,
                    Value::Null,
                    text(table.collation.name()),
                    Value::Null,
                    text(options.join(" ")),
                    text(&table.comment),
                ]
            }
            Relation::View(view) => {
                bare(&view.schema, &view.name, "VIEW", Value::Null, text("VIEW"))
            }
            Relation::Virtual(table) if table.schema == "mysql" => bare(
                table.schema,
                table.name,
                "BASE TABLE",
                text("InnoDB"),
                text(""),
            ),
            Relation::Virtual(table) if table.schema == "performance_schema" => bare(
                table.schema,
                table.name,
                "BASE TABLE",
                text("PERFORMANCE_SCHEMA"),
                text(""),
            ),
            Relation::Virtual(table) => bare(
                table.schema,
                table.name,
                "SYSTEM VIEW",
                Value::Null,
                text(""),
            ),
        };
        row(exec, &values)?;
    }
    Ok(())
}

/// A row of TABLES for what has no rows of its own.
fn bare(schema: &str, name: &str, kind: &str, engine: Value, comment: Value) -> Vec<Value> {
    let mut values = vec![text(CATALOG), text(schema), text(name), text(kind), engine];
    values.resize(20, Value::Null);
    values.push(comment);
    values
}

// ---------------------------------------------------------------------------------------------------------
// Columns
// ---------------------------------------------------------------------------------------------------------

/// The type's bare name: `varchar`, `int`, `enum`.
fn type_word(ty: &DataType) -> String {
    let name = ty.sql_name();
    name.split(['(', ' '])
        .next()
        .unwrap_or_default()
        .to_string()
}

/// Digits and decimals of numbers, as MySQL counts them.
fn numeric(ty: &DataType) -> (Value, Value) {
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

fn column_default(exec: &Exec<'_>, column: &Column) -> Value {
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
fn type_columns(ty: &DataType) -> Vec<Value> {
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
                octets
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
fn column_privileges(exec: &Exec<'_>, schema: &str, table: &str, column: &str) -> String {
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

/// Whether the session may know of a table's column: of its own temporary tables', or if it has a privilege on it.
fn is_known(exec: &Exec<'_>, table: &Table, column: &str) -> bool {
    table.temporary || sees_column(exec.session, &table.schema, &table.name, column)
}

/// The session's temporary table of the name that is asked for: SHOW tells of it and not of what it hides.
fn hiding(exec: &Exec<'_>, lookup: &Lookup) -> Option<Arc<Table>> {
    let key = (lookup.schema.clone()?, lookup.name.clone()?);
    exec.session.temporary_tables.get(&key).cloned()
}

fn columns(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    if let Some(table) = hiding(exec, lookup) {
        return columns_of_table(exec, &table, row);
    }
    for relation in visible(exec, lookup) {
        match relation {
            Relation::Table(table) => columns_of_table(exec, &table, row)?,
            Relation::View(view) => columns_of_view(exec, &view, row)?,
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

fn columns_of_view(exec: &mut Exec<'_>, view: &View, row: Sink<'_>) -> Result<()> {
    // A view whose tables are gone has no columns to tell of.
    let Ok(types) = view_columns(view, exec.catalog, exec.session, exec.engine) else {
        return Ok(());
    };
    for (position, (name, column)) in view.columns.iter().zip(types).enumerate() {
        if !sees_column(exec.session, &view.schema, &view.name, name) {
            continue;
        }
        let mut values = vec![
            text(CATALOG),
            text(&view.schema),
            text(&view.name),
            text(name),
            Value::UInt(position as u64 + 1),
            Value::Null,
            yes(column.nullable),
            text(type_word(&column.ty)),
        ];
        values.extend(type_columns(&column.ty));
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

// ---------------------------------------------------------------------------------------------------------
// Keys and constraints
// ---------------------------------------------------------------------------------------------------------

/// Distinct values of an index's first `parts` parts: as ANALYZE TABLE counted, or a guess.
fn cardinality(exec: &Exec<'_>, table: &Table, index: &Index, parts: usize) -> Value {
    let statistics = table.state.statistics.load();
    if let Some(count) = statistics
        .cardinality
        .get(&index.name)
        .and_then(|counts| counts.get(parts - 1))
    {
        return Value::Int(*count as i64);
    }
    let rows = exec.engine.store.approximate_len(table.space);
    let guess = if index.is_unique() && parts == index.parts.len() {
        rows
    } else {
        rows.div_ceil(10)
    };
    Value::Int(guess as i64)
}

fn statistics(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    if let Some(table) = hiding(exec, lookup) {
        return statistics_of_table(exec, &table, row);
    }
    for table in visible_tables(exec, lookup) {
        statistics_of_table(exec, &table, row)?;
    }
    Ok(())
}

/// Also for temporary tables, which only SHOW INDEX shows.
pub fn statistics_of_table(exec: &mut Exec<'_>, table: &Table, row: Sink<'_>) -> Result<()> {
    for index in &table.indexes {
        for (position, part) in index.parts.iter().enumerate() {
            let column = &table.columns[part.column];
            if !is_known(exec, table, &column.name) {
                continue;
            }
            let expression = part.expression(table);
            let values = [
                text(CATALOG),
                text(&table.schema),
                text(&table.name),
                Value::Int(i64::from(!index.is_unique())),
                text(&table.schema),
                text(&index.name),
                Value::UInt(position as u64 + 1),
                if expression.is_some() {
                    Value::Null
                } else {
                    text(&column.name)
                },
                text(if part.descending { "D" } else { "A" }),
                cardinality(exec, table, index, position + 1),
                part.prefix.map(i64::from).into(),
                Value::Null,
                text(if column.nullable { "YES" } else { "" }),
                text("BTREE"),
                text(""),
                text(&index.comment),
                yes(index.visible),
                expression.map_or(Value::Null, text),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn key_column_usage(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        for index in table.indexes.iter().filter(|index| index.is_unique()) {
            for (position, part) in index.parts.iter().enumerate() {
                let column = &table.columns[part.column].name;
                if part.expression(&table).is_some() || !is_known(exec, &table, column) {
                    continue;
                }
                let values = [
                    text(CATALOG),
                    text(&table.schema),
                    text(&index.name),
                    text(CATALOG),
                    text(&table.schema),
                    text(&table.name),
                    text(column),
                    Value::UInt(position as u64 + 1),
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ];
                row(exec, &values)?;
            }
        }
        for key in &table.foreign_keys {
            for (position, (&column, parent_column)) in
                key.columns.iter().zip(&key.parent_columns).enumerate()
            {
                if !is_known(exec, &table, &table.columns[column].name) {
                    continue;
                }
                let values = [
                    text(CATALOG),
                    text(&table.schema),
                    text(&key.name),
                    text(CATALOG),
                    text(&table.schema),
                    text(&table.name),
                    text(&table.columns[column].name),
                    Value::UInt(position as u64 + 1),
                    Value::UInt(position as u64 + 1),
                    text(&key.parent_schema),
                    text(&key.parent_table),
                    text(parent_column),
                ];
                row(exec, &values)?;
            }
        }
    }
    Ok(())
}

fn referential_constraints(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        for key in &table.foreign_keys {
            let parent = exec
                .catalog
                .base_table(&key.parent_schema, &key.parent_table);
            let unique = parent.as_ref().and_then(|parent| {
                let columns = foreign_keys::referenced_columns(key, parent)?;
                let index = &parent.indexes[parent.index_over(&columns)?];
                index.is_unique().then(|| index.name.clone())
            });
            let values = [
                text(CATALOG),
                text(&table.schema),
                text(&key.name),
                text(CATALOG),
                text(&key.parent_schema),
                unique.map_or(Value::Null, text),
                text("NONE"),
                text(key.on_update.name()),
                text(key.on_delete.name()),
                text(&table.name),
                text(&key.parent_table),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn table_constraints(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        let keys = table
            .indexes
            .iter()
            .filter(|index| index.is_unique())
            .map(|index| {
                let kind = if index.kind == IndexKind::Primary {
                    "PRIMARY KEY"
                } else {
                    "UNIQUE"
                };
                (&index.name, kind, true)
            });
        let checks = table
            .checks
            .iter()
            .map(|check| (&check.name, "CHECK", check.enforced));
        let foreign_keys = table
            .foreign_keys
            .iter()
            .map(|key| (&key.name, "FOREIGN KEY", true));
        for (name, kind, enforced) in keys.chain(foreign_keys).chain(checks) {
            let values = [
                text(CATALOG),
                text(&table.schema),
                text(name),
                text(&table.schema),
                text(&table.name),
                text(kind),
                yes(enforced),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn check_constraints(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        for check in &table.checks {
            let values = [
                text(CATALOG),
                text(&table.schema),
                text(&check.name),
                text(check.sql.replace('\'', "\\'")),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

/// Whether the session may see how a view is defined.
fn may_show(exec: &Exec<'_>, view: &View) -> bool {
    grants(exec.session).is_none_or(|grants| {
        let held = grants.on_table(&view.schema, &view.name);
        held.has(Privilege::ShowView)
    })
}

fn views(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for view in visible_views(exec, lookup) {
        let values = [
            text(CATALOG),
            text(&view.schema),
            text(&view.name),
            text(if may_show(exec, &view) { &view.sql } else { "" }),
            text(if view.check_option.is_empty() {
                "NONE"
            } else {
                &view.check_option
            }),
            text("NO"),
            text(&view.definer),
            text(if view.invoker { "INVOKER" } else { "DEFINER" }),
            text("utf8mb4"),
            text("utf8mb4_0900_ai_ci"),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn partitions(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        let (rows, average, data, indexes) = sizes(exec, &table);
        let mut values = vec![text(CATALOG), text(&table.schema), text(&table.name)];
        values.resize(12, Value::Null);
        values.extend([
            Value::UInt(rows),
            Value::UInt(average),
            Value::UInt(data),
            Value::UInt(0),
            Value::UInt(indexes),
            Value::UInt(0),
        ]);
        values.extend([
            local_time(exec, table.created_s),
            Value::Null,
            Value::Null,
            Value::Null,
            text(""),
            Value::Null,
            Value::Null,
        ]);
        row(exec, &values)?;
    }
    Ok(())
}
