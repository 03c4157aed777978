//! Parameters of prepared statements: from the protocol's values to the engine's.

use porpoise_engine::{Error, Result};
use porpoise_protocol::value as wire;
use porpoise_types::{Charset, CompactString, Date, DateTime, Decimal, Time, Value};

/// A parameter as the engine takes it; `charset` is the client's.
///
/// # Errors
/// 1210 for a DECIMAL that isn't ASCII, and for a date that doesn't exist.
#[inline]
pub(super) fn engine_value(value: wire::Value<'_>, charset: Charset) -> Result<Value> {
    let invalid = || Error::wrong_arguments("mysqld_stmt_execute");
    Ok(match value {
        wire::Value::Null => Value::Null,
        wire::Value::Int(value) => Value::Int(value),
        wire::Value::UInt(value) => Value::UInt(value),
        wire::Value::Float(value) => Value::Double(f64::from(value)),
        wire::Value::Double(value) => Value::Double(value),
        wire::Value::Decimal(text) => {
            let text = std::str::from_utf8(text).map_err(|_| invalid())?;
            match text.parse::<Decimal>() {
                Ok(decimal) => Value::Decimal(decimal),
                Err(_) => Value::text(text),
            }
        }
        wire::Value::Text(bytes) if charset == Charset::Binary => Value::Bytes(bytes.to_vec()),
        // Drivers send bytes as text too: what isn't text in the charset stays bytes.
        wire::Value::Text(bytes) => match charset.decode(bytes) {
            Ok(text) => Value::Text(CompactString::from(text)),
            Err(_) => Value::Bytes(bytes.to_vec()),
        },
        wire::Value::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        wire::Value::Date(date) => Value::Date(date_of(date).ok_or_else(invalid)?),
        wire::Value::DateTime(value) => Value::DateTime(
            DateTime::new(
                date_of(value.date).ok_or_else(invalid)?,
                value.hour.into(),
                value.minute.into(),
                value.second.into(),
                value.microsecond,
            )
            .ok_or_else(invalid)?,
        ),
        wire::Value::Time(time) => {
            let hours = time
                .days
                .saturating_mul(24)
                .saturating_add(time.hours.into());
            let micros = ((i64::from(hours) * 60 + i64::from(time.minutes)) * 60
                + i64::from(time.seconds))
                * 1_000_000
                + i64::from(time.microseconds);
            Value::Time(Time::from_micros_clamped(if time.negative {
                -micros
            } else {
                micros
            }))
        }
    })
}

fn date_of(date: wire::Date) -> Option<Date> {
    Date::new(date.year.into(), date.month.into(), date.day.into())
}
