//! What is known of tables' contents: COLUMN_STATISTICS of information_schema, and
//! `mysql.innodb_table_stats` and `mysql.innodb_index_stats` (MySQL 8.4 manual, 17.8.10.1).
//!
//! Numbers of rows are those of this moment, as in TABLES; numbers of distinct values are those that
//! plans are made by.

use porpoise_catalog::{Index, Table};
use porpoise_planner::distinct_of_index;
use porpoise_types::Value;

use super::columns::is_known;
use super::*;

/// About how many distinct values the first `parts` parts of an index's keys have; the parts of the
/// primary key that follow an index's own count too.
pub(super) fn distinct(exec: &Exec<'_>, table: &Table, index: &Index, parts: usize) -> u64 {
    let store = &exec.engine.store;
    let rows = store.approximate_len(table.space);
    let known = match parts <= index.parts.len() {
        true => distinct_of_index(store, table, index, parts),
        false => {
            let statistics = table.state.statistics.load();
            statistics.distinct(index, parts, rows as f64)
        }
    };
    known.map_or(rows, |distinct| (distinct.round() as u64).min(rows))
}

pub(super) fn column_statistics(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        let statistics = table.state.statistics.load_full();
        for column in table.declared_columns() {
            let Some(histogram) = statistics.histogram(&column.name) else {
                continue;
            };
            if !is_known(exec, &table, &column.name) {
                continue;
            }
            let values = [
                text(&table.schema),
                text(&table.name),
                text(&column.name),
                Value::Json(porpoise_types::Json::new(histogram.to_json())),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

/// When a table's statistics were made: with the table, if nobody has counted since.
fn updated(exec: &Exec<'_>, table: &Table) -> Value {
    let statistics = table.state.statistics.load();
    local_time(
        exec,
        match statistics.analyzed {
            true => statistics.updated_us / 1_000_000,
            false => table.created_s,
        },
    )
}

pub(super) fn innodb_table_stats(
    exec: &mut Exec<'_>,
    lookup: &Lookup,
    row: Sink<'_>,
) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        let (rows, _, data, indexes) = sizes(exec, &table);
        let values = [
            text(&table.schema),
            text(&table.name),
            updated(exec, &table),
            Value::UInt(rows),
            Value::UInt(data / PAGE_BYTES),
            Value::UInt(indexes / PAGE_BYTES),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// The hidden column by which rows without a primary key are told apart.
const ROW_ID: &str = "DB_ROW_ID";
/// The index that holds the rows of a table without a primary key.
const HIDDEN_INDEX: &str = "GEN_CLUST_INDEX";

pub(super) fn innodb_index_stats(
    exec: &mut Exec<'_>,
    lookup: &Lookup,
    row: Sink<'_>,
) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        if table.primary_key().is_none() {
            let rows = exec.engine.store.approximate_len(table.space);
            let lines = vec![(rows, ROW_ID.to_owned())];
            index_stats(exec, &table, HIDDEN_INDEX, true, lines, row)?;
        }
        for index in &table.indexes {
            let names = key_names(&table, index);
            let lines = (1..=names.len()).map(|parts| {
                let distinct = distinct(exec, &table, index, parts);
                (distinct, names[..parts].join(","))
            });
            let lines: Vec<(u64, String)> = lines.collect();
            let is_primary = index.kind == porpoise_catalog::IndexKind::Primary;
            index_stats(exec, &table, &index.name, is_primary, lines, row)?;
        }
    }
    Ok(())
}

/// The names of what an index's keys consist of: its parts, and if it isn't unique those of the
/// primary key.
fn key_names<'t>(table: &'t Table, index: &'t Index) -> Vec<&'t str> {
    let of = |index: &'t Index| {
        let parts = index.parts.iter();
        parts.map(|part| &*table.columns[part.column].name)
    };
    let mut names: Vec<&str> = of(index).collect();
    match table.primary_key() {
        _ if index.is_unique() => {}
        Some(primary) => names.extend(of(primary)),
        None => names.push(ROW_ID),
    }
    names
}

/// How many of an index's leaf pages hold what was read of it when its values were counted. NULL if
/// nobody has counted them.
fn sampled_pages(table: &Table, pages: u64) -> Value {
    let statistics = table.state.statistics.load();
    if statistics.entries_read == 0 {
        return Value::Null;
    }
    let part = statistics.entries_read as f64 / statistics.rows.max(1) as f64;
    let sampled = (pages as f64 * part.min(1.0)).ceil() as u64;
    Value::UInt(sampled.max(1))
}

/// An index's rows: distinct values of its leading parts, with the names of these, and its size.
fn index_stats(
    exec: &mut Exec<'_>,
    table: &Table,
    index: &str,
    holds_rows: bool,
    distinct: Vec<(u64, String)>,
    row: Sink<'_>,
) -> Result<()> {
    let (_, _, data, indexes) = sizes(exec, table);
    let secondary = (table.spaces().count() as u64).saturating_sub(1).max(1);
    let pages = match holds_rows {
        true => data,
        false => indexes / secondary,
    } / PAGE_BYTES;
    let sampled = sampled_pages(table, pages);
    let lines = distinct.into_iter().enumerate();
    let lines = lines.map(|(n, (count, names))| {
        let name = format!("n_diff_pfx{:02}", n + 1);
        (name, count, sampled.clone(), names)
    });
    let leaves = (
        "n_leaf_pages".to_owned(),
        pages,
        Value::Null,
        "Number of leaf pages in the index".to_owned(),
    );
    let size = (
        "size".to_owned(),
        pages,
        Value::Null,
        "Number of pages in the index".to_owned(),
    );
    for (name, value, sampled, description) in lines.chain([leaves, size]) {
        let values = [
            text(&table.schema),
            text(&table.name),
            text(index),
            updated(exec, table),
            text(name),
            Value::UInt(value),
            sampled,
            text(description),
        ];
        row(exec, &values)?;
    }
    Ok(())
}
