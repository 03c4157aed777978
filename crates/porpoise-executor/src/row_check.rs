//! What a row needs before it is written: generated columns, and what NOT NULL, CHECK and WITH
//! CHECK OPTION demand.

use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_expr::SlotId;
use porpoise_planner::plan::ViewCheck;
use porpoise_types::{Value, convert};

use crate::Exec;
use crate::column_value::store;
use crate::defaults::eval_in;
use crate::eval::Evaluate;

/// Encodes a new row into its slot: computes generated columns, checks NULLs and CHECKs.
pub fn finish_row(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: SlotId,
    values: &[Value],
) -> Result<()> {
    exec.fill(slot, values)?;
    complete(exec, table, slot)?;
    let checks = table.checks.iter().enumerate();
    let enforced = checks.filter(|(_, check)| check.enforced);
    check_row(exec, table, slot, enforced.map(|(number, _)| number))
}

/// Computes the generated columns of a row in its slot, and checks all columns for NULL: first those
/// that are given, which may become defaults that others are computed of.
pub fn complete(exec: &mut Exec<'_>, table: &Table, slot: SlotId) -> Result<()> {
    let columns = 0..table.columns.len();
    let is_generated = |at: &usize| table.columns[*at].generated.is_some();
    let given = columns.clone().filter(|at| !is_generated(at));
    check_nulls(exec, table, slot, given)?;
    compute_generated(exec, table, slot, columns.clone())?;
    check_nulls(exec, table, slot, columns.filter(is_generated))
}

/// Computes those of the columns that are generated, from the row in the slot, one after the other.
pub fn compute_generated(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: SlotId,
    columns: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for number in columns {
        let column = &table.columns[number];
        if let Some(generated) = &column.generated {
            let value = eval_in(exec, &generated.expr, slot)?;
            let value = store(exec, column, value, &generated.expr.ty)?;
            exec.set_column(slot, number, &value);
        }
    }
    Ok(())
}

/// Error 1048 if one of the columns is NULL and must not be; outside strict mode it gets a default,
/// unless the statement inserts one row alone.
pub fn check_nulls(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: SlotId,
    columns: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for number in columns {
        let column = &table.columns[number];
        if !column.nullable && exec.column_is_null(slot, number) {
            let error = Error::column_cannot_be_null(&column.name);
            if exec.session.statement.refuses_null && column.generated.is_none() {
                return Err(error);
            }
            exec.data_error(error)?;
            exec.set_column(slot, number, &column.ty.implicit_default());
        }
    }
    Ok(())
}

/// Error 3819 if the row in the slot violates one of these CHECKs.
pub fn check_row(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: SlotId,
    checks: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for number in checks {
        let check = &table.checks[number];
        if convert::to_bool(&eval_in(exec, &check.expr, slot)?) == Some(false) {
            return Err(Error::check_violated(&check.name));
        }
    }
    Ok(())
}

/// Error 1369 if a row in its slot is not one that the views it goes through would show.
pub fn check_views(exec: &mut Exec<'_>, checks: &[ViewCheck]) -> Result<()> {
    for check in checks {
        for condition in &check.conditions {
            if convert::to_bool(&condition.eval(exec)?) != Some(true) {
                return Err(Error::view_check_failed(&check.view));
            }
        }
    }
    Ok(())
}
