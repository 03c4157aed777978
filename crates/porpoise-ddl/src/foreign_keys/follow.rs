//! Takes a table's new definition and name to the tables that foreign keys tie to it.

use std::sync::Arc;

use compact_str::format_compact;
use porpoise_catalog::record::TableRecord;
use porpoise_catalog::{CatalogChange, Table};
use porpoise_core::error::Result;
use porpoise_planner::bind_table_expression;

use super::Renames;
use crate::{Ddl, Name};

/// Renames what a table's own record says of itself in its keys.
pub fn rename_in_record(record: &mut TableRecord, new: &Name) {
    let prefix = format!("{}_ibfk_", record.name);
    for key in &mut record.foreign_keys {
        if let Some(number) = key.name.strip_prefix(prefix.as_str())
            && number.parse::<u32>().is_ok()
        {
            key.name = format_compact!("{}_ibfk_{number}", new.table);
        }
        if key.parent_table == record.name && key.parent_schema == record.schema {
            key.parent_table = new.table.clone();
            key.parent_schema = new.schema.clone();
        }
    }
}

/// Tells the tables that keys tie to this one what it is now. The table is in its new place
/// already.
pub fn follow(
    ddl: &Ddl<'_>,
    change: &mut CatalogChange<'_>,
    record: &TableRecord,
    old: &Name,
    renames: &Renames,
) -> Result<()> {
    let is_renamed = old.table != record.name || old.schema != record.schema;
    // Children that know the table by its old name.
    for child in change.catalog().children(&old.schema, &old.table) {
        if child.id.0 == record.id {
            continue;
        }
        let mut changed = TableRecord::of(&child);
        for key in &mut changed.foreign_keys {
            if key.parent_table == old.table && key.parent_schema == old.schema {
                key.parent_schema = record.schema.clone();
                key.parent_table = record.name.clone();
                for column in &mut key.parent_columns {
                    *column = renames.now(column);
                }
            }
        }
        if is_renamed || !renames.columns.is_empty() {
            put(ddl, change, changed, &child)?;
        }
    }
    // Tables that a new key ties to it, and children that waited for one of this name.
    let mut tied: Vec<Arc<Table>> = record
        .foreign_keys
        .iter()
        .filter(|key| !key.is_old)
        .filter_map(|key| {
            change
                .catalog()
                .base_table(&key.parent_schema, &key.parent_table)
        })
        .collect();
    tied.extend(change.catalog().children(&record.schema, &record.name));
    tied.retain(|table| table.id.0 != record.id);
    tied.sort_by_key(|table| table.id);
    tied.dedup_by_key(|table| table.id);
    for table in tied {
        put(ddl, change, TableRecord::of(&table), &table)?;
    }
    Ok(())
}

fn put(
    ddl: &Ddl<'_>,
    change: &mut CatalogChange<'_>,
    mut record: TableRecord,
    table: &Arc<Table>,
) -> Result<()> {
    record.version = ddl.shared.dictionary.next_version();
    let bound = Arc::new(record.bind(Arc::clone(&table.state), bind_table_expression)?);
    change.put_table(&record, bound)
}
