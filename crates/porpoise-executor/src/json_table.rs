//! JSON_TABLE: rows found in a document (MySQL 8.4 manual, 14.17.6).
//!
//! Each value that the table's path finds gives a row. Where there are nested paths, it gives a row
//! for each value that one of them finds in it, the columns of the others being NULL; and one row
//! if none finds any.

use porpoise_core::error::{Error, Result};
use porpoise_expr::{EvalContext, Expr, SlotId};
use porpoise_functions::json_scalar::{cast_name, scalar_of, stored};
use porpoise_planner::plan::{JsonColumn, JsonOtherwise, JsonSource, JsonTable};
use porpoise_types::{DataType, Json, JsonValue, Loss, Value};

use crate::Exec;
use crate::eval::Evaluate;
use crate::operator::{Operator, replay};
use crate::row_buffer::{RowBuffer, RowReader};

pub struct JsonTableOperator<'p> {
    slot: SlotId,
    doc: &'p Expr,
    table: &'p JsonTable,
    rows: RowBuffer,
    reader: RowReader,
}

impl<'p> JsonTableOperator<'p> {
    pub fn new(slot: SlotId, doc: &'p Expr, table: &'p JsonTable) -> JsonTableOperator<'p> {
        JsonTableOperator {
            slot,
            doc,
            table,
            rows: RowBuffer::default(),
            reader: RowReader::default(),
        }
    }
}

impl Operator for JsonTableOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.reader = RowReader::default();
        self.rows.clear();
        let doc = match self.doc.eval(exec)? {
            Value::Null => return Ok(()),
            Value::Json(doc) => doc,
            Value::Text(text) => Json::parse(&text).map_err(|error| {
                Error::invalid_json_text_in_parameter(
                    1,
                    "json_table",
                    error.message,
                    error.position,
                )
            })?,
            _ => return Err(Error::invalid_type_for_json(1, "json_table")),
        };
        let mut row = vec![Value::Null; width(self.table)];
        let mut finding = Finding {
            slot: self.slot,
            rows: &mut self.rows,
        };
        finding.rows_of(exec, self.table, doc.value(), &mut row)?;
        self.rows.finish()
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.reader, exec, &[self.slot])
    }
}

fn width(table: &JsonTable) -> usize {
    table.columns.len() + table.nested.iter().map(width).sum::<usize>()
}

struct Finding<'r> {
    slot: SlotId,
    rows: &'r mut RowBuffer,
}

impl Finding<'_> {
    /// Adds the rows that a path finds in a value; tells how many values it found.
    fn rows_of(
        &mut self,
        exec: &mut Exec<'_>,
        table: &JsonTable,
        value: &JsonValue,
        row: &mut [Value],
    ) -> Result<usize> {
        let found = table.path.find(value);
        for (number, item) in (1..).zip(&found) {
            exec.check_interrupt()?;
            for column in &table.columns {
                row[column.position] = column_value(exec, column, item, number)?;
            }
            let mut nested_rows = 0;
            for nested in &table.nested {
                nested_rows += self.rows_of(exec, nested, item, row)?;
                forget(nested, row);
            }
            if nested_rows == 0 {
                exec.fill(self.slot, row)?;
                self.rows.put_aside(exec, &[self.slot])?;
            }
        }
        Ok(found.len())
    }
}

/// Sets a path's columns to NULL again.
fn forget(table: &JsonTable, row: &mut [Value]) {
    for column in &table.columns {
        row[column.position] = Value::Null;
    }
    table.nested.iter().for_each(|nested| forget(nested, row));
}

fn column_value(
    exec: &mut Exec<'_>,
    column: &JsonColumn,
    item: &JsonValue,
    number: u64,
) -> Result<Value> {
    match &column.source {
        JsonSource::Ordinality => Ok(Value::UInt(number)),
        JsonSource::Exists(path) => {
            let exists = JsonValue::Int((!path.find(item).is_empty()).into());
            converted(exec, column, &exists)
        }
        JsonSource::Value {
            path,
            on_empty,
            on_error,
        } => match path.find(item).as_slice() {
            [] => respond(exec, column, on_empty, || {
                Error::missing_json_table_value(&column.name)
            }),
            [value] => converted(exec, column, value)
                .or_else(|error| respond(exec, column, on_error, || error)),
            _ => respond(exec, column, on_error, || {
                Error::wrong_json_table_value(&column.name)
            }),
        },
    }
}

fn respond(
    exec: &mut Exec<'_>,
    column: &JsonColumn,
    response: &JsonOtherwise,
    error: impl FnOnce() -> Error,
) -> Result<Value> {
    match response {
        JsonOtherwise::Null => Ok(Value::Null),
        JsonOtherwise::Error => Err(error()),
        JsonOtherwise::Default(value) => converted(exec, column, value.value()),
    }
}

/// A JSON value as a value of the column's type.
fn converted(exec: &Exec<'_>, column: &JsonColumn, value: &JsonValue) -> Result<Value> {
    if column.ty == DataType::Json {
        return Ok(Value::Json(Json::new(value.clone())));
    }
    let scalar = match scalar_of(value, &column.ty) {
        Some(Value::Null) => return Ok(Value::Null),
        Some(scalar) => scalar,
        None => return Err(Error::wrong_json_table_value(&column.name)),
    };
    stored(exec, &column.ty, scalar).map_err(|loss| match loss {
        Loss::OutOfRange | Loss::TooLong => Error::json_table_value_out_of_range(&column.name),
        _ => Error::invalid_json_value_for_cast(cast_name(&column.ty), &column.name, 1),
    })
}
