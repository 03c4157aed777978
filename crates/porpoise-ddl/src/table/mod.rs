//! A table's definition as a whole: keys, checks, options, and the rules that tie them together.
//!
//! CREATE TABLE and ALTER TABLE both edit a [`TableRecord`] with the functions here and call
//! [`complete`] at the end, which names what has no name, puts the keys in order, and refuses what
//! can't be.

mod keys;
mod options;

use compact_str::{CompactString, format_compact};
use porpoise_catalog::expression;
use porpoise_catalog::record::*;
use porpoise_catalog::{ColumnDefault, Table};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_planner::bind_table_expression;
use porpoise_session::session_state::SessionState;
use porpoise_sql::ast;

use crate::column;
use keys::{complete_hidden, complete_keys, stored_bytes};

pub use keys::{add_column_keys, add_index, forget_hidden};
pub use options::{Options, is_encrypted};

const COLUMNS_MAX: usize = 4096;
/// Of a row without its BLOBs and TEXTs.
const ROW_BYTES_MAX: u64 = 65_535;
// ---------------------------------------------------------------------------------------------------------
// Keys
// ---------------------------------------------------------------------------------------------------------

/// Adds a check. An empty name is filled in by [`complete`].
pub fn add_check(record: &mut TableRecord, check: &ast::Check) {
    record.checks.push(CheckRecord {
        name: check
            .name
            .as_ref()
            .map_or_else(CompactString::default, |name| name.as_str().into()),
        sql: crate::canonical::expression(&check.expr),
        enforced: check.enforced,
    });
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
    for position in 0..table.columns.len() {
        check_column_expression(&table, position)?;
    }
    let auto = table.auto_increment_column();
    for check in &table.checks {
        if auto.is_some_and(|auto| expression::columns(&check.expr).contains(&auto)) {
            return Err(Error::check_refers_auto_increment(&check.name));
        }
        if let Some(disallowed) = expression::disallowed(&check.expr) {
            return Err(disallowed.in_check(&check.name));
        }
    }
    Ok(table)
}

/// Checks what a generated column or an expression default refers to.
fn check_column_expression(table: &Table, position: usize) -> Result<()> {
    let column = &table.columns[position];
    let name = &column.name;
    let is_default = |used: usize| {
        let default = &table.columns[used].default;
        matches!(default, ColumnDefault::Expression { .. })
    };
    let is_computed = |used: usize| table.columns[used].generated.is_some();
    if let Some(generated) = &column.generated {
        for used in expression::columns(&generated.expr) {
            if Some(used) == table.auto_increment_column() {
                return Err(Error::generated_refers_auto_increment(name));
            }
            if used >= position && is_computed(used) {
                return Err(Error::generated_refers_forward());
            }
        }
        return match expression::disallowed(&generated.expr) {
            None => Ok(()),
            Some(disallowed) => Err(disallowed.in_generated(name)),
        };
    }
    if let ColumnDefault::Expression { expr, .. } = &column.default {
        for used in expression::columns(expr) {
            if Some(used) == table.auto_increment_column() {
                return Err(Error::default_refers_auto_increment(name));
            }
            if used >= position && (is_computed(used) || is_default(used)) {
                return Err(Error::default_refers_forward(name));
            }
        }
        return match expression::disallowed_in_default(expr) {
            None => Ok(()),
            Some(disallowed) => Err(disallowed.in_default(name)),
        };
    }
    Ok(())
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
