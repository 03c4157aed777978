//! Values for columns that a statement gives none: DEFAULT, explicit and implicit (MySQL 8.4
//! manual, 13.6).

use porpoise_catalog::{Column, ColumnDefault, Table};
use porpoise_core::error::{Error, Result};
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, SlotId};
use porpoise_planner::plan::Insert;
use porpoise_types::{DataType, Value};

use crate::Exec;
use crate::column_value::{fires_before, store};
use crate::eval::Evaluate;
use crate::insert::Given;
use crate::row_check::compute_generated;

/// All columns' values: the given ones, and defaults for the others where asked.
pub fn with_defaults(
    exec: &mut Exec<'_>,
    plan: &Insert,
    given: &[Given],
    strict: bool,
) -> Result<Vec<Value>> {
    let table = &plan.table;
    let mut values: Vec<Value> = vec![Value::Null; table.columns.len()];
    let mut set = vec![false; table.columns.len()];
    for (&column, value) in plan.columns.iter().zip(given) {
        if let Some(value) = value {
            values[column] = value.clone();
            set[column] = true;
        }
    }
    let mut missing = false;
    for (position, column) in table.columns.iter().enumerate() {
        if set[position] || column.generated.is_some() {
            continue;
        }
        if column.auto_increment {
            if !strict && !column.nullable {
                values[position] = column.ty.implicit_default();
            }
            continue;
        }
        match &column.default {
            ColumnDefault::Expression { .. } => missing = true,
            ColumnDefault::None if fires_before(plan) => {}
            _ => values[position] = default_value(exec, column, plan.slot, strict)?,
        }
    }
    if missing && strict {
        let is_missing = |position: usize| !set[position];
        compute_defaults(exec, table, plan.slot, &mut values, is_missing)?;
    }
    Ok(values)
}

/// Computes the default expressions of the columns that are missing, one after the other: each
/// reads the row as it is by then, the generated columns before it included.
pub fn compute_defaults(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: SlotId,
    values: &mut [Value],
    is_missing: impl Fn(usize) -> bool,
) -> Result<()> {
    exec.fill(slot, values)?;
    for (position, column) in table.columns.iter().enumerate() {
        if column.generated.is_some() {
            compute_generated(exec, table, slot, [position])?;
        } else if let ColumnDefault::Expression { expr, .. } = &column.default
            && is_missing(position)
        {
            let value = eval_in(exec, expr, slot)?;
            let value = store(exec, column, value, &expr.ty)?;
            exec.set_column(slot, position, &value);
            values[position] = value;
        }
    }
    Ok(())
}

/// Evaluates an expression of the table's definition, which reads its row in slot 0, over another
/// slot.
pub fn eval_in(exec: &mut Exec<'_>, expr: &Expr, slot: SlotId) -> Result<Value> {
    if slot.0 == 0 {
        return expr.eval(exec);
    }
    let layouts = exec.layouts;
    exec.frame.slots.swap(0, slot.0 as usize);
    exec.layouts = &layouts[slot.0 as usize..];
    let value = expr.eval(exec);
    exec.layouts = layouts;
    exec.frame.slots.swap(0, slot.0 as usize);
    value
}

/// The default of a column that no value was given for; an expression reads the row in the slot.
/// Without a default, strict mode refuses (1364).
pub fn default_value(
    exec: &mut Exec<'_>,
    column: &Column,
    slot: SlotId,
    strict: bool,
) -> Result<Value> {
    Ok(match &column.default {
        ColumnDefault::Literal(value) => value.clone(),
        ColumnDefault::Now => now_for(exec, &column.ty),
        ColumnDefault::Expression { expr, .. } => {
            let value = eval_in(exec, expr, slot)?;
            store(exec, column, value, &expr.ty)?
        }
        ColumnDefault::None if column.nullable => Value::Null,
        ColumnDefault::None if !strict => column.ty.implicit_default(),
        ColumnDefault::None => {
            if let DataType::Enum(_) = column.ty {
                // An ENUM that takes no NULL has its first member for a default.
                return Ok(Value::UInt(1));
            }
            // The warning of a column that is left out comes once, not for every row.
            if exec.row_number <= 1 || !exec.is_lenient() {
                exec.data_error(Error::no_default_for_field(&column.name))?;
            }
            column.ty.implicit_default()
        }
    })
}

/// CURRENT_TIMESTAMP as a column of the type holds it.
pub fn now_for(exec: &Exec<'_>, ty: &DataType) -> Value {
    Value::DateTime(exec.now().truncate(ty.decimals()))
}
