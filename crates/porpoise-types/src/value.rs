//! `Value`: one SQL value, owned and small.
//!
//! A value says what it is (an integer, a text, a date …) but not which column type it came from:
//! an ENUM's index, a SET's bit mask, a BIT and a YEAR are all `UInt`, and only the static
//! [`DataType`](crate::DataType) beside the value tells them apart. Text is always valid UTF-8,
//! whatever the character set of its column; bytes of the character set `binary` are `Bytes`.

use crate::{Date, DateTime, Decimal, Json, Time};
use compact_str::CompactString;

/// One SQL value. At most 32 bytes; short texts and decimals live inline.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// NULL.
    #[default]
    Null,
    /// Signed integers, and the truth values 0 and 1.
    Int(i64),
    /// Unsigned integers, and the number behind ENUM, SET, BIT and YEAR.
    UInt(u64),
    /// FLOAT and DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// Texts.
    Text(CompactString),
    /// Bytes of the character set `binary`.
    Bytes(Vec<u8>),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME and TIMESTAMP.
    DateTime(DateTime),
    /// JSON.
    Json(Json),
}

const _: () = assert!(size_of::<Value>() <= 32);

impl Value {
    /// 1.
    pub const TRUE: Value = Value::Int(1);
    /// 0.
    pub const FALSE: Value = Value::Int(0);

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// A text.
    pub fn text(s: impl AsRef<str>) -> Value {
        Value::Text(CompactString::new(s))
    }

    /// About how many bytes it takes beside its own size: those of a text, or of a document.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Json(json) => size_of_val(json.value()) + json.value().heap_bytes(),
            other => other.as_bytes().map_or(0, <[u8]>::len),
        }
    }

    /// The bytes of a text or binary value, borrowed.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Text(s) => Some(s.as_bytes()),
            Value::Bytes(b) => Some(b),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Value {
        Value::Int(v)
    }
}
impl From<u64> for Value {
    fn from(v: u64) -> Value {
        Value::UInt(v)
    }
}
impl From<f64> for Value {
    fn from(v: f64) -> Value {
        Value::Double(v)
    }
}
impl From<bool> for Value {
    fn from(v: bool) -> Value {
        Value::Int(v as i64)
    }
}
impl From<&str> for Value {
    fn from(v: &str) -> Value {
        Value::text(v)
    }
}
impl From<String> for Value {
    fn from(v: String) -> Value {
        Value::Text(v.into())
    }
}
impl From<Vec<u8>> for Value {
    fn from(v: Vec<u8>) -> Value {
        Value::Bytes(v)
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Into::into)
    }
}
