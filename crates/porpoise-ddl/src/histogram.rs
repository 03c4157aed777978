//! `ANALYZE TABLE … UPDATE HISTOGRAM` and `DROP HISTOGRAM` (MySQL 8.4 manual, 15.7.3.1).
//!
//! What can be done is done; what goes wrong with a column is a row of the result.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::statistics::{HISTOGRAM_BUCKETS_MAX, can_have};
use porpoise_catalog::{Histogram, Relation, Table};
use porpoise_core::error::{Error, Result};
use porpoise_sql::ast::{HistogramAction, HistogramChange};
use porpoise_types::{DataType, Json, JsonValue, Value};

use crate::maintain::{self, Rows};
use crate::statistics::{self, ANALYZED_ENTRIES_MAX, Effort, Wanted};
use crate::{Ddl, Name};

/// How many buckets a histogram gets where the statement doesn't say.
const BUCKETS: u64 = 100;

/// A line of the result: its kind and what it says.
type Line = (&'static str, String);

/// Runs the statement; what it tells of each column is a row.
///
/// # Errors
/// 1690 for a number of buckets out of range; 1060 for a column named twice; 1046 without a schema;
/// 1317 after a KILL.
pub fn change(ddl: &mut Ddl<'_>, change: &HistogramChange) -> Result<Rows> {
    if let HistogramAction::Build {
        buckets: Some(buckets),
        ..
    } = change.action
        && !(1..=HISTOGRAM_BUCKETS_MAX).contains(&buckets)
    {
        return Err(Error::value_out_of_range(
            "Number of buckets",
            "ANALYZE TABLE",
        ));
    }
    for (n, column) in change.columns.iter().enumerate() {
        let mut before = change.columns[..n].iter();
        if before.any(|other| other.0.eq_ignore_ascii_case(&column.0)) {
            return Err(Error::duplicate_column(&column.0));
        }
    }
    let (name, lines) = match &change.tables[..] {
        [table] => {
            let name = ddl.resolve(table)?;
            let lines = of_table(ddl, &name, change)?;
            (name.to_string(), lines)
        }
        _ => (
            String::new(),
            vec![error(
                "Only one table can be specified while modifying histogram statistics.",
            )],
        ),
    };
    let row = |(kind, text): Line| {
        vec![
            Value::from(name.clone()),
            "histogram".into(),
            kind.into(),
            text.into(),
        ]
    };
    let rows = lines.into_iter().map(row).collect();
    Ok((maintain::columns(), rows))
}

fn error(text: impl Into<String>) -> Line {
    ("Error", text.into())
}

fn status(text: impl Into<String>) -> Line {
    ("status", text.into())
}

fn of_table(ddl: &mut Ddl<'_>, name: &Name, change: &HistogramChange) -> Result<Vec<Line>> {
    if ddl.temporary(name).is_some() {
        let text = "Cannot create histogram statistics for a temporary table.";
        return Ok(vec![error(text)]);
    }
    let table = match ddl
        .shared
        .catalog
        .load()
        .relation(&name.schema, &name.table)
    {
        Some(Relation::Table(table)) => table,
        Some(_) => {
            return Ok(vec![error(
                "Cannot create histogram statistics for a view.",
            )]);
        }
        None => {
            let missing = error(format!("Table '{name}' doesn't exist"));
            return Ok(vec![missing, status("Operation failed")]);
        }
    };
    let mut columns: Vec<CompactString> = change.columns.iter().map(|c| c.0.clone()).collect();
    columns.sort();
    match &change.action {
        HistogramAction::Build {
            buckets,
            auto_update,
        } => build(
            ddl,
            &table,
            &columns,
            buckets.unwrap_or(BUCKETS),
            *auto_update,
        ),
        HistogramAction::Data(json) => take(ddl, &table, &columns, json),
        HistogramAction::Drop => drop_of(ddl, &table, &columns),
    }
}

/// The position of a column that can have a histogram, or what is wrong with it.
fn position(table: &Table, name: &str) -> Result<usize, Line> {
    let Some(column) = table.column_position(name) else {
        return Err(error(format!("The column '{name}' does not exist.")));
    };
    if !can_have(&table.columns[column].ty) {
        let text = format!("The column '{name}' has an unsupported data type.");
        return Err(error(text));
    }
    let is_alone = |index: &porpoise_catalog::Index| {
        index.is_unique() && index.parts.len() == 1 && index.parts[0].column == column
    };
    if table.indexes.iter().any(is_alone) {
        let text = format!("The column '{name}' is covered by a single-part unique index.");
        return Err(error(text));
    }
    Ok(column)
}

fn build(
    ddl: &mut Ddl<'_>,
    table: &Table,
    columns: &[CompactString],
    buckets: u64,
    auto_update: bool,
) -> Result<Vec<Line>> {
    let (mut lines, mut wanted) = (Vec::new(), Vec::new());
    for name in columns {
        match position(table, name) {
            Ok(column) => {
                lines.push(created(&table.columns[column].name));
                wanted.push(Wanted {
                    column,
                    buckets,
                    auto_update,
                });
            }
            Err(line) => lines.push(line),
        }
    }
    let effort = Effort {
        entries_max: ANALYZED_ENTRIES_MAX,
        values_bytes_max: ddl.session.histogram_generation_max_mem_size,
        check: &|| maintain::interrupted(ddl),
    };
    let store = &ddl.shared.store;
    let rows = store.approximate_len(table.space);
    let made = statistics::histograms(table, &store.snapshot(), rows, &wanted, &effort)?;
    let names = wanted
        .iter()
        .map(|wanted| &table.columns[wanted.column].name);
    let made: Vec<(CompactString, Histogram)> = names.cloned().zip(made).collect();
    keep(ddl, table, made)?;
    Ok(lines)
}

fn take(ddl: &Ddl<'_>, table: &Table, columns: &[CompactString], json: &str) -> Result<Vec<Line>> {
    let [name] = columns else {
        let text = "Only one column can be specified while modifying histogram statistics with \
                    JSON data.";
        return Ok(vec![error(text)]);
    };
    let column = match position(table, name) {
        Ok(column) => &table.columns[column],
        Err(line) => return Ok(vec![line]),
    };
    let histogram = match histogram_of(json, &column.ty) {
        Ok(histogram) => histogram,
        Err(mut lines) => {
            let (schema, table, column) = (&table.schema, &table.name, &column.name);
            let text = format!(
                "Unable to build histogram statistics for column '{column}' in table \
                 '{schema}'.'{table}'"
            );
            lines.insert(lines.len() - 1, error(text));
            return Ok(lines);
        }
    };
    keep(ddl, table, vec![(column.name.clone(), histogram)])?;
    Ok(vec![created(&column.name)])
}

/// What a histogram's document has at least.
const ATTRIBUTES: [&str; 8] = [
    "histogram-type",
    "data-type",
    "collation-id",
    "null-values",
    "buckets",
    "last-updated",
    "sampling-rate",
    "number-of-buckets-specified",
];

/// The histogram that a document describes, or what is wrong with that: the reason comes last.
fn histogram_of(json: &str, ty: &DataType) -> Result<Histogram, Vec<Line>> {
    let format_error = || error("JSON format error.");
    let json = Json::parse(json).map_err(|bad| {
        let (message, position) = (bad.message, bad.position);
        let told = Error::invalid_json_text_in_parameter(1, "UPDATE HISTOGRAM", message, position);
        vec![error(told.into_condition().message), format_error()]
    })?;
    let JsonValue::Object(_) = json.value() else {
        return Err(vec![error("JSON data is not an object")]);
    };
    let mut attributes = ATTRIBUTES.iter();
    if let Some(missing) = attributes.find(|name| json.value().get(name).is_none()) {
        let text = format!("Missing attribute at '$.\"{missing}\"'.");
        return Err(vec![error(text)]);
    }
    Histogram::of_json(json.value(), ty).ok_or_else(|| vec![format_error()])
}

fn created(column: &str) -> Line {
    status(format!(
        "Histogram statistics created for column '{column}'."
    ))
}

fn keep(ddl: &Ddl<'_>, table: &Table, made: Vec<(CompactString, Histogram)>) -> Result<()> {
    if made.is_empty() {
        return Ok(());
    }
    statistics::keep(ddl.shared, table, |statistics| {
        let made = made.into_iter().map(|(name, made)| (name, Arc::new(made)));
        statistics.histograms.extend(made);
    })
}

fn drop_of(ddl: &Ddl<'_>, table: &Table, columns: &[CompactString]) -> Result<Vec<Line>> {
    let known = table.state.statistics.load();
    let (mut lines, mut dropped) = (Vec::new(), Vec::new());
    for name in columns {
        let column = table
            .column_position(name)
            .map(|at| &table.columns[at].name);
        match column.filter(|column| known.histogram(column).is_some()) {
            Some(column) => {
                lines.push(status(format!(
                    "Histogram statistics removed for column '{column}'."
                )));
                dropped.push(column);
            }
            None => {
                let text = format!("No histogram statistics found for column '{name}'.");
                lines.push(error(text));
            }
        }
    }
    if !dropped.is_empty() {
        statistics::keep(ddl.shared, table, |statistics| {
            for column in dropped {
                statistics.histograms.remove(column);
            }
        })?;
    }
    Ok(lines)
}
