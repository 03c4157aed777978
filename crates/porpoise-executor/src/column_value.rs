//! A value as a column stores it: converted to the column's type, or refused.

use porpoise_catalog::Column;
use porpoise_core::error::{Error, Level, Result};
use porpoise_expr::EvalContext;
use porpoise_planner::plan::{Insert, InsertSource};
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_types::{Charset, DataType, Loss, StoreError, Value, convert};

use crate::Exec;
use crate::insert::Given;

/// Converts a value to a column's type. What gets lost is an error in strict mode, else a warning.
pub fn store(exec: &mut Exec<'_>, column: &Column, value: Value, from: &DataType) -> Result<Value> {
    if value.is_null() {
        if !column.nullable && column.generated.is_none() {
            let error = Error::column_cannot_be_null(&column.name);
            if exec.session.statement.refuses_null {
                return Err(error);
            }
            exec.data_error(error)?;
            return Ok(column.ty.implicit_default());
        }
        return Ok(value);
    }
    let cx = exec.conversion_of(&value);
    // The original is needed only for messages: kept as text when something was lost.
    let before = value.clone();
    let (stored, loss) = match porpoise_types::store(value, from, &column.ty, &cx) {
        Ok(stored) => stored,
        Err(StoreError::InvalidJson(error)) => {
            return Err(Error::invalid_json_text_in_column(
                error.message,
                error.position,
                &column.name,
            ));
        }
    };
    if let (Value::DateTime(local), DataType::Timestamp { .. }) = (&stored, &column.ty)
        && exec.session.to_utc(*local).is_none()
    {
        lost(exec, column, Loss::BadTemporal, &before, from)?;
        return Ok(Value::DateTime(porpoise_types::DateTime::default()));
    }
    if !loss.is_none() {
        lost(exec, column, loss, &before, from)?;
    }
    Ok(stored)
}

pub(crate) fn lost(
    exec: &mut Exec<'_>,
    column: &Column,
    loss: Loss,
    value: &Value,
    from: &DataType,
) -> Result<()> {
    let row = exec.row_number.max(1);
    let name = &column.name;
    let text = || {
        let text = convert::to_text(value, from);
        text.chars().take(128).collect::<String>()
    };
    let error = match loss {
        Loss::None => return Ok(()),
        Loss::Rounded | Loss::SpacesCut => {
            // A fraction of a second is rounded in silence.
            if matches!(column.ty, DataType::Decimal { .. } | DataType::Date)
                || loss == Loss::SpacesCut
            {
                exec.session.warn(
                    Level::Note,
                    Error::data_truncated(name, row).into_condition(),
                );
            }
            return Ok(());
        }
        Loss::Truncated | Loss::NotAMember => Error::data_truncated(name, row),
        Loss::NotANumber => {
            let kind = match column.ty {
                DataType::Decimal { .. } => "decimal",
                DataType::Float { .. } => "float",
                DataType::Double { .. } => "double",
                _ => "integer",
            };
            Error::incorrect_value_for_column(kind, text(), name, row)
        }
        Loss::BadText => {
            let charsets = [column.ty.collation().charset(), from.collation().charset()];
            let shown =
                escaped(&value.as_bytes().unwrap_or_default()[bad_text_at(value, charsets)..]);
            Error::incorrect_value_for_column("string", shown, name, row)
        }
        Loss::BadTemporal if exec.is_lenient() => Error::data_truncated(name, row),
        Loss::BadTemporal => {
            let kind = match column.ty {
                DataType::Date => "date",
                DataType::Time { .. } => "time",
                DataType::Year => "year",
                _ => "datetime",
            };
            Error::truncated_value_for_column(kind, text(), name, row)
        }
        Loss::TooLong if exec.is_lenient() && matches!(column.ty, DataType::Bit(_)) => {
            Error::out_of_range_column(name, row)
        }
        Loss::TooLong if exec.is_lenient() => Error::data_truncated(name, row),
        Loss::TooLong => Error::data_too_long(name, row),
        Loss::OutOfRange if matches!(column.ty, DataType::Time { .. }) && !exec.is_lenient() => {
            Error::truncated_value_for_column("time", text(), name, row)
        }
        Loss::OutOfRange => Error::out_of_range_column(name, row),
    };
    exec.data_error(error)
}

/// Where what a text holds begins that one of the character sets doesn't have; 0 if it holds no such
/// thing.
fn bad_text_at(value: &Value, charsets: [Charset; 2]) -> usize {
    let bytes = value.as_bytes().unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Err(error) => error.valid_up_to(),
        Ok(text) => {
            let mut characters = text.char_indices();
            let lacks = |c| charsets.iter().any(|charset| !charset.can_hold(c));
            characters.find(|(_, c)| lacks(*c)).map_or(0, |(at, _)| at)
        }
    }
}

/// Bytes as MySQL shows them in error 1366: the first six.
fn escaped(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 6;
    let mut out = String::new();
    for &byte in bytes.iter().take(SHOWN_MAX) {
        if (0x20..0x7F).contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("\\x{byte:02X}"));
        }
    }
    if bytes.len() > SHOWN_MAX {
        out.push_str("...");
    }
    out
}

/// Stores a value in its column's type. An AUTO_INCREMENT column takes NULL (and 0) as "the next".
pub fn store_given(
    exec: &mut Exec<'_>,
    plan: &Insert,
    column: usize,
    value: Value,
    ty: &DataType,
) -> Result<Given> {
    let definition = &plan.table.columns[column];
    if definition.auto_increment && value.is_null() {
        return Ok(None);
    }
    let single = matches!(&plan.source, InsertSource::Values(rows) if rows.len() == 1);
    let is_void = value.is_null() && !definition.nullable;
    if is_void && definition.generated.is_none() && fires_before(plan) {
        // A trigger may yet give it a value.
        return Ok(Some(value));
    }
    if single && value.is_null() && !definition.nullable && !plan.ignore {
        return Err(Error::column_cannot_be_null(&definition.name));
    }
    let value = store(exec, definition, value, ty)?;
    if definition.auto_increment
        && is_zero(&value)
        && !exec.session.sql_mode.no_auto_value_on_zero()
    {
        return Ok(None);
    }
    Ok(Some(value))
}

/// Whether triggers are fired before a row is inserted.
pub(crate) fn fires_before(plan: &Insert) -> bool {
    let triggers = plan.triggers.as_deref();
    triggers.is_some_and(|triggers| triggers.has(TriggerTime::Before, TriggerEvent::Insert))
}

pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(v) => *v == 0,
        Value::UInt(v) => *v == 0,
        Value::Double(v) => *v == 0.0,
        _ => false,
    }
}

/// An integer column's value.
pub fn number(value: &Value) -> i128 {
    match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        other => i128::from(convert::to_int(other).0),
    }
}
