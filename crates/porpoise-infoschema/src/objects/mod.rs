//! What the catalog holds: schemas, tables, columns, indexes, constraints, views.

mod columns;
mod constraints;
mod extensions;
mod statistics;

use std::sync::Arc;

use porpoise_catalog::{Relation, SchemaEntry, Table, View, VirtualTable, system_table};
use porpoise_core::privilege::Privilege;
use porpoise_planner::bind_table_expression;
use porpoise_session::check::grants;
use porpoise_session::shared::Shared;
use porpoise_types::Value;

use super::*;
use crate::view_columns::view_tables;
use columns::columns;
pub(crate) use columns::{type_columns, type_word};
use constraints::{
    check_constraints, index_parts, key_column_usage, referential_constraints, table_constraints,
};
use extensions::{
    columns_extensions, schemata_extensions, table_constraints_extensions, tables_extensions,
};
use statistics::{column_statistics, innodb_index_stats, innodb_table_stats};

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
        rows: index_parts,
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
        name: "VIEW_TABLE_USAGE",
        columns: &[
            ("VIEW_CATALOG", name, false),
            ("VIEW_SCHEMA", exact, false),
            ("VIEW_NAME", exact, false),
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
        ],
        rows: view_table_usage,
    },
    VirtualSource {
        schema: "information_schema",
        name: "SCHEMATA_EXTENSIONS",
        columns: &[
            ("CATALOG_NAME", name, false),
            ("SCHEMA_NAME", exact, false),
            ("OPTIONS", word, true),
        ],
        rows: schemata_extensions,
    },
    VirtualSource {
        schema: "information_schema",
        name: "TABLES_EXTENSIONS",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("ENGINE_ATTRIBUTE", json, true),
            ("SECONDARY_ENGINE_ATTRIBUTE", json, true),
        ],
        rows: tables_extensions,
    },
    VirtualSource {
        schema: "information_schema",
        name: "TABLE_CONSTRAINTS_EXTENSIONS",
        columns: &[
            ("CONSTRAINT_CATALOG", name, false),
            ("CONSTRAINT_SCHEMA", exact, false),
            ("CONSTRAINT_NAME", name, false),
            ("TABLE_NAME", exact, false),
            ("ENGINE_ATTRIBUTE", json, true),
            ("SECONDARY_ENGINE_ATTRIBUTE", json, true),
        ],
        rows: table_constraints_extensions,
    },
    VirtualSource {
        schema: "information_schema",
        name: "COLUMNS_EXTENSIONS",
        columns: &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, true),
            ("ENGINE_ATTRIBUTE", json, true),
            ("SECONDARY_ENGINE_ATTRIBUTE", json, true),
        ],
        rows: columns_extensions,
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
    VirtualSource {
        schema: "information_schema",
        name: "COLUMN_STATISTICS",
        columns: &[
            ("SCHEMA_NAME", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, false),
            ("HISTOGRAM", || DataType::Json, false),
        ],
        rows: column_statistics,
    },
    VirtualSource {
        schema: "mysql",
        name: "innodb_table_stats",
        columns: &[
            ("database_name", exact, false),
            ("table_name", stated_table, false),
            ("last_update", second, false),
            ("n_rows", ubig, false),
            ("clustered_index_size", ubig, false),
            ("sum_of_other_index_sizes", ubig, false),
        ],
        rows: innodb_table_stats,
    },
    VirtualSource {
        schema: "mysql",
        name: "innodb_index_stats",
        columns: &[
            ("database_name", exact, false),
            ("table_name", stated_table, false),
            ("index_name", exact, false),
            ("last_update", second, false),
            ("stat_name", exact, false),
            ("stat_value", ubig, false),
            ("sample_size", ubig, true),
            ("stat_description", stated, false),
        ],
        rows: innodb_index_stats,
    },
];

fn second() -> DataType {
    DataType::Timestamp { fsp: 0 }
}

/// The name of a table that statistics are kept of: a partition's is longer.
fn stated_table() -> DataType {
    varchar(199)
}

/// What a statistic is of.
fn stated() -> DataType {
    varchar(1024)
}

fn varchar(length: u32) -> DataType {
    DataType::Varchar {
        length,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub(crate) const CATALOG: &str = "def";
/// What a page of a table takes at least.
pub(crate) const PAGE_BYTES: u64 = 16_384;

/// Schemas that the session may see and the lookup wants, by name.
pub(crate) fn visible_schemas(exec: &Exec<'_>, lookup: &Lookup) -> Vec<Arc<SchemaEntry>> {
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

/// ForeignKeyGraph that the session may see and the lookup wants, by schema and name.
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

/// What [`visible_tables`] gives, and the tables of the schema `mysql` whose rows are made by code.
fn visible_definitions(exec: &Exec<'_>, lookup: &Lookup) -> Vec<Arc<Table>> {
    let tables = visible(exec, lookup)
        .into_iter()
        .filter_map(|relation| match relation {
            Relation::Table(table) => Some(table),
            Relation::Virtual(own) => own_table(exec.engine, own).map(Arc::new),
            Relation::View(_) => None,
        });
    tables.collect()
}

/// A table of the schema `mysql` as if it had rows of its own: with its defaults and keys.
pub(crate) fn own_table(shared: &Shared, own: &VirtualTable) -> Option<Table> {
    let state = Arc::new(shared.dictionary.new_state());
    let record = system_table::record(own)?;
    record.bind(state, bind_table_expression).ok()
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
                text(if entry.schema.encrypted { "YES" } else { "NO" }),
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
pub(crate) fn sizes(exec: &Exec<'_>, table: &Table) -> (u64, u64, u64, u64) {
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
            Relation::Virtual(table) => {
                let (kind, engine) = match table.engine() {
                    Some(engine) => ("BASE TABLE", text(engine)),
                    None => ("SYSTEM VIEW", Value::Null),
                };
                let comment = text(table.comment());
                bare(table.schema, table.name, kind, engine, comment)
            }
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
// Keys and constraints
// ---------------------------------------------------------------------------------------------------------

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

/// What each view's text names, views included.
fn view_table_usage(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for view in visible_views(exec, &Lookup::default()) {
        // A view whose tables are gone uses none.
        let Ok(tables) = view_tables(&view, exec.catalog, exec.session, exec.engine) else {
            continue;
        };
        for table in tables {
            let schema = table.schema.as_ref().map_or("", |schema| schema.as_str());
            let values = [
                text(CATALOG),
                text(&view.schema),
                text(&view.name),
                text(CATALOG),
                text(schema),
                text(table.name.as_str()),
            ];
            row(exec, &values)?;
        }
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
