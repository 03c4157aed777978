//! Indexes and constraints: STATISTICS, KEY_COLUMN_USAGE, TABLE_CONSTRAINTS,
//! REFERENTIAL_CONSTRAINTS and CHECK_CONSTRAINTS of information_schema.

use porpoise_catalog::{IndexKind, Table};
use porpoise_planner::foreign_keys;
use porpoise_types::Value;

use super::columns::{hiding, is_known};
use super::statistics::distinct;
use super::*;

/// STATISTICS: a row for each part of an index.
pub(super) fn index_parts(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    if let Some(table) = hiding(exec, lookup) {
        return index_parts_of_table(exec, &table, row);
    }
    for table in visible_definitions(exec, lookup) {
        index_parts_of_table(exec, &table, row)?;
    }
    Ok(())
}

/// Also for temporary tables, which only SHOW INDEX shows.
pub fn index_parts_of_table(exec: &mut Exec<'_>, table: &Table, row: Sink<'_>) -> Result<()> {
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
                Value::Int(match table.is_made_by_code() {
                    true => 0,
                    false => distinct(exec, table, index, position + 1) as i64,
                }),
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

pub(super) fn key_column_usage(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_definitions(exec, lookup) {
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

pub(super) fn referential_constraints(
    exec: &mut Exec<'_>,
    lookup: &Lookup,
    row: Sink<'_>,
) -> Result<()> {
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

pub(super) fn table_constraints(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_definitions(exec, lookup) {
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

pub(super) fn check_constraints(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
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
