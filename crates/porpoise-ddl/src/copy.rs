//! Moves rows from a table's old form to its new one.
//!
//! The new spaces belong to nobody yet, so nothing is locked, and rows are committed in batches
//! that bound memory. Duplicate keys, values that don't fit, NULLs and violated checks end the copy
//! with the error that INSERT would give.

use std::sync::Arc;

use porpoise_catalog::index_entry;
use porpoise_catalog::record::TableRecord;
use porpoise_catalog::{ColumnDefault, IndexKind, Table};
use porpoise_core::error::{Error, Result};
use porpoise_executor::bulk_fill::{BulkFill, Pushed};
use porpoise_executor::eval::Evaluate;
use porpoise_executor::row_batches::{in_batches, layout_of};
use porpoise_executor::{Exec, View, column_value, defaults, row_check, write};
use porpoise_expr::SlotId;
use porpoise_planner::foreign_keys::{ParentEdge, RowChange, foreign_key_graph};
use porpoise_planner::plan::SlotLayout;
use porpoise_types::{DataType, KeyBuf, Value, convert};

use crate::Ddl;

/// Writes one entry of a secondary index; error 1062 if it is unique and taken.
fn write_entry(
    exec: &mut Exec<'_>,
    table: &Table,
    position: usize,
    key: &[u8],
    row: &[u8],
    value: &mut Vec<u8>,
) -> Result<usize> {
    let index = &table.indexes[position];
    let parts = index_entry::parts_of(table, index, row);
    let entry = index_entry::entry_key(index, &parts, key);
    let unique = index.is_unique() && !parts.has_null;
    if unique && Exec::read(&exec.view, index.space, &entry, true, |_| ())?.is_some() {
        return Err(write::duplicate_entry(exec, table, position, row));
    }
    index_entry::entry_value(table, index, key, row, value);
    exec.transaction()?.insert(index.space, &entry, value);
    Ok(entry.len() + value.len())
}

/// Checks every row against the table's enforced checks.
pub fn check_rows(ddl: &mut Ddl<'_>, table: &Arc<Table>) -> Result<u64> {
    in_batches(
        ddl.shared,
        ddl.session,
        table.space,
        &layout_of(table),
        |exec, _, row| {
            exec.frame.slots[0].set(row);
            for check in table.checks.iter().filter(|check| check.enforced) {
                if convert::to_bool(&check.expr.eval(exec)?) == Some(false) {
                    return Err(Error::check_violated(&check.name));
                }
            }
            Ok(0)
        },
    )
}

/// Checks that every row refers, by these new keys, to rows that are there. Both tables are locked.
pub fn check_foreign_keys(ddl: &mut Ddl<'_>, table: &Arc<Table>, names: &[&str]) -> Result<u64> {
    let change = RowChange {
        inserts: true,
        ..RowChange::default()
    };
    let catalog = ddl.shared.catalog.load_full();
    let changes = [(Arc::clone(table), change)];
    let Some(mut found) = foreign_key_graph(&catalog, &changes, &mut |_| SlotId(0)) else {
        return Ok(0);
    };
    let Some(at) = found.node(table) else {
        return Ok(0);
    };
    let edges = std::mem::take(&mut found.nodes[at].parents);
    let is_new = |edge: &&ParentEdge| {
        let name = &table.foreign_keys[edge.foreign_key].name;
        names.contains(&name.as_str())
    };
    let edges: Vec<&ParentEdge> = edges.iter().filter(is_new).collect();
    in_batches(
        ddl.shared,
        ddl.session,
        table.space,
        &layout_of(table),
        |exec, _, row| {
            for edge in &edges {
                exec.check_parent(table, edge, row, false)?;
            }
            Ok(0)
        },
    )
}

/// What a copy found.
pub struct Copied {
    pub rows: u64,
    /// The highest value of the AUTO_INCREMENT column.
    pub auto_increment_max: u64,
}

/// Copies all rows of `old` into the empty spaces of `new`, whose record knows each column's
/// origin.
pub fn rebuild(
    ddl: &mut Ddl<'_>,
    old: &Arc<Table>,
    new: &Arc<Table>,
    record: &TableRecord,
) -> Result<Copied> {
    let origins: Vec<Option<usize>> = record.columns.iter().map(|column| column.origin).collect();
    let keeps_keys = old.primary_key().is_none() && new.primary_key().is_none();
    let auto = new.auto_increment_column();
    let is_computed = |at: usize| {
        let default = &new.columns[at].default;
        origins[at].is_none() && matches!(default, ColumnDefault::Expression { .. })
    };
    let computes = (0..origins.len()).any(is_computed);
    let (mut auto_max, mut row_number) = (0u64, 0u64);
    let mut fill = None;
    let mut value = Vec::new();
    let layout = layout_of(new);
    let rows = in_batches(
        ddl.shared,
        ddl.session,
        old.space,
        &layout,
        |exec, key, row| {
            let mut values = Vec::with_capacity(new.columns.len());
            for (at, (column, origin)) in new.columns.iter().zip(&origins).enumerate() {
                values.push(match origin {
                    Some(origin) => carried(exec, old, *origin, column, row)?,
                    None if column.generated.is_some() || is_computed(at) => Value::Null,
                    None if column.auto_increment => auto_value(auto_max + 1, &column.ty),
                    None => added(exec, column)?,
                });
            }
            if computes {
                defaults::compute_defaults(exec, new, SlotId(0), &mut values, is_computed)?;
            }
            row_check::finish_row(exec, new, SlotId(0), &values)?;
            if let Some(auto) = auto {
                auto_max = auto_max.max(convert::to_uint(&values[auto]).0);
            }
            let row = exec.frame.slots[0].bytes.clone();
            let new_key = match new.primary_key() {
                Some(primary) => index_entry::parts_of(new, primary, &row).parts,
                None if keeps_keys => KeyBuf::from_slice(key),
                None => {
                    row_number += 1;
                    KeyBuf::from_slice(&row_number.to_be_bytes())
                }
            };
            let fill = match &mut fill {
                Some(fill) => fill,
                none => none.insert(BulkFill::begin(exec, new)?),
            };
            match fill.push(exec, &new_key, &row)? {
                Pushed::BesideLog => return Ok(new_key.len() + row.len()),
                Pushed::Duplicate => return Err(write::duplicate_entry(exec, new, 0, &row)),
                Pushed::No => {}
            }
            if new.primary_key().is_some()
                && Exec::read(&exec.view, new.space, &new_key, true, |_| ())?.is_some()
            {
                return Err(write::duplicate_entry(exec, new, 0, &row));
            }
            let mut written = new_key.len() + row.len();
            for position in 0..new.indexes.len() {
                if new.indexes[position].kind != IndexKind::Primary {
                    written += write_entry(exec, new, position, &new_key, &row, &mut value)?;
                }
            }
            exec.transaction()?.insert(new.space, &new_key, &row);
            fill.note_written(exec, written)?;
            Ok(written)
        },
    )?;
    finish_filling(ddl, &layout, fill)?;
    let counter = ddl.shared.store.counter(old.space);
    let mut transaction = ddl.shared.store.begin();
    transaction.set_counter(new.space, if keeps_keys { counter } else { row_number + 1 });
    transaction.commit()?.wait()?;
    Ok(Copied {
        rows,
        auto_increment_max: auto_max,
    })
}

fn finish_filling(ddl: &mut Ddl<'_>, layout: &[SlotLayout], fill: Option<BulkFill>) -> Result<()> {
    let Some(fill) = fill else { return Ok(()) };
    let catalog = ddl.shared.catalog.load_full();
    let mut exec = Exec::of_rows(ddl.session, ddl.shared, &catalog, View::None, layout, &[]);
    fill.finish(&mut exec, false).map(|_| ())
}

/// A value that moves into its column's new form.
fn carried(
    exec: &mut Exec<'_>,
    old: &Table,
    origin: usize,
    column: &porpoise_catalog::Column,
    row: &[u8],
) -> Result<Value> {
    let from = &old.columns[origin].ty;
    let value = match old.layout.get(row, origin) {
        Value::DateTime(utc) if matches!(from, DataType::Timestamp { .. }) => {
            Value::DateTime(exec.session.from_utc(utc))
        }
        value => value,
    };
    if column.generated.is_some() {
        return Ok(Value::Null);
    }
    if value.is_null() {
        if !column.nullable && exec.session.sql_mode.strict() {
            return Err(Error::invalid_use_of_null());
        }
        return Ok(value);
    }
    // An ENUM's '' stands for a value that was none of its members: it stays so.
    let is_no_member = matches!((from, &value), (DataType::Enum(_), Value::UInt(0)));
    if *from == column.ty || (is_no_member && matches!(column.ty, DataType::Enum(_))) {
        Ok(value)
    } else {
        column_value::store(exec, column, value, from)
    }
}

/// The values of new columns in rows that are there, as they lie in rows, with the columns' positions.
pub fn values_of_added(
    ddl: &mut Ddl<'_>,
    new: &Arc<Table>,
    is_new: impl Fn(usize) -> bool,
) -> Result<Vec<(usize, Value)>> {
    let layout = layout_of(new);
    let catalog = ddl.shared.catalog.load_full();
    let mut exec = Exec::of_rows(ddl.session, ddl.shared, &catalog, View::None, &layout, &[]);
    let new_columns = new.columns.iter().enumerate().filter(|(at, _)| is_new(*at));
    new_columns
        .map(|(at, column)| {
            Ok(match added(&mut exec, column)? {
                // TIMESTAMPs lie in UTC.
                Value::DateTime(local) if matches!(column.ty, DataType::Timestamp { .. }) => {
                    let utc = exec.session.to_utc(local).unwrap_or_default();
                    (at, Value::DateTime(utc))
                }
                value => (at, value),
            })
        })
        .collect()
}

/// The value of a new column in old rows.
fn added(exec: &mut Exec<'_>, column: &porpoise_catalog::Column) -> Result<Value> {
    if column.nullable || !matches!(column.default, ColumnDefault::None) {
        return defaults::default_value(exec, column, SlotId(0), false);
    }
    let refused = match column.ty {
        DataType::Date => Some(("date", "0000-00-00")),
        DataType::DateTime { .. } | DataType::Timestamp { .. } => {
            Some(("datetime", "0000-00-00 00:00:00"))
        }
        _ => None,
    };
    let mode = exec.session.sql_mode;
    match refused {
        Some((kind, zero)) if mode.no_zero_date() && mode.strict() => Err(
            Error::truncated_value_for_column(kind, zero, &column.name, exec.row_number),
        ),
        _ => Ok(column.ty.implicit_default()),
    }
}

fn auto_value(number: u64, ty: &DataType) -> Value {
    porpoise_types::store(
        Value::UInt(number),
        &DataType::BIGINT_UNSIGNED,
        ty,
        &Default::default(),
    )
    .map_or(Value::UInt(number), |(value, _)| value)
}
