//! Vectors: the values that many rows have of one column or expression, side by side.
//!
//! Exact numbers, dates and moments are an integer each, so that loops over them are machine
//! arithmetic:
//!
//! | kind | elements | a value is |
//! | --- | --- | --- |
//! | `Int` | integers | `Value::Int` |
//! | `UInt` | integers, none negative | `Value::UInt` |
//! | `Decimal(scale)` | integers: mantissas at the scale | `Value::Decimal` |
//! | `Date`, `DateTime` | integers: packed, and so in order | `Value::Date`, `Value::DateTime` |
//! | `Double` | doubles | `Value::Double` |
//! | `Text` | bytes where they lie | `Value::Text` |
//! | `Any` | values | what it is |
//!
//! A value that doesn't fit its kind's element has no place in a vector: who makes one looks out for
//! BIGINT UNSIGNED beyond the signed range, and for mantissas of more than 64 bits.

use compact_str::CompactString;

use crate::{Date, DateTime, Decimal, Value};

/// What the elements of a vector stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Signed integers.
    Int,
    /// Unsigned integers below 2^63.
    UInt,
    /// Decimals, all of this scale.
    Decimal(u8),
    /// Dates, packed.
    Date,
    /// Moments without a time zone, packed.
    DateTime,
    /// FLOAT and DOUBLE.
    Double,
    /// Texts.
    Text,
    /// Values of any kind.
    Any,
}

impl Kind {
    /// The digits after the point of an exact number; `None` of all else.
    pub fn scale(self) -> Option<u8> {
        match self {
            Kind::Int | Kind::UInt => Some(0),
            Kind::Decimal(scale) => Some(scale),
            _ => None,
        }
    }

    /// The value that an integer of this kind stands for.
    pub fn value_of(self, integer: i64) -> Value {
        match self {
            Kind::UInt => Value::UInt(integer as u64),
            Kind::Decimal(scale) => Value::Decimal(Decimal::new(integer, scale)),
            Kind::Date => {
                let date = u32::try_from(integer).ok().and_then(Date::from_packed);
                Value::Date(date.unwrap_or(Date::ZERO))
            }
            Kind::DateTime => {
                let moment = DateTime::from_packed(integer as u64);
                Value::DateTime(moment.unwrap_or(DateTime::ZERO))
            }
            _ => Value::Int(integer),
        }
    }

    /// The integer that stands for a value of this kind; `None` for a value that isn't, or that has
    /// none.
    pub fn integer_of(self, value: &Value) -> Option<i64> {
        match (self, value) {
            (Kind::Int, Value::Int(v)) => Some(*v),
            (Kind::UInt, Value::UInt(v)) => i64::try_from(*v).ok(),
            (Kind::Decimal(scale), Value::Decimal(v)) if v.scale() == scale => {
                i64::try_from(v.mantissa_i128()?).ok()
            }
            (Kind::Date, Value::Date(v)) => Some(i64::from(v.packed())),
            (Kind::DateTime, Value::DateTime(v)) => i64::try_from(v.packed()).ok(),
            _ => None,
        }
    }
}

/// The elements of a vector. Where a row's value is NULL there is an element too, of no meaning.
#[derive(Clone, Debug)]
pub enum Elements<'r> {
    /// Of exact numbers, dates and moments.
    Integers(Vec<i64>),
    /// Of approximate numbers.
    Doubles(Vec<f64>),
    /// Of texts.
    Texts(Vec<&'r [u8]>),
    /// Of anything.
    Values(Vec<Value>),
}

/// The values of many rows.
#[derive(Clone, Debug)]
pub struct Vector<'r> {
    /// What the elements are.
    pub kind: Kind,
    /// One for each row.
    pub elements: Elements<'r>,
    /// Which rows' values are NULL; empty where none is.
    pub nulls: Vec<bool>,
}

impl Vector<'_> {
    /// A vector that has the same value for each of so many rows; `None` where it is in no vector.
    pub fn repeat(value: &Value, kind: Kind, rows: usize) -> Option<Vector<'static>> {
        let nulls = match value.is_null() {
            true => vec![true; rows],
            false => Vec::new(),
        };
        let elements = match (kind, value) {
            (Kind::Any, _) => Elements::Values(vec![value.clone(); rows]),
            (Kind::Text, _) => return None,
            (Kind::Double, Value::Double(v)) => Elements::Doubles(vec![*v; rows]),
            (Kind::Double, _) => Elements::Doubles(vec![0.0; rows]),
            (_, Value::Null) => Elements::Integers(vec![0; rows]),
            _ => Elements::Integers(vec![kind.integer_of(value)?; rows]),
        };
        Some(Vector {
            kind,
            elements,
            nulls,
        })
    }

    /// The values of some of the rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> VectorSlice<'_> {
        VectorSlice {
            kind: self.kind,
            elements: match &self.elements {
                Elements::Integers(v) => ElementSlice::Integers(&v[rows.clone()]),
                Elements::Doubles(v) => ElementSlice::Doubles(&v[rows.clone()]),
                Elements::Texts(v) => ElementSlice::Texts(&v[rows.clone()]),
                Elements::Values(v) => ElementSlice::Values(&v[rows.clone()]),
            },
            nulls: match self.nulls.is_empty() {
                true => &[],
                false => &self.nulls[rows],
            },
        }
    }
}

/// A part of a vector's elements.
#[derive(Clone, Copy, Debug)]
pub enum ElementSlice<'v> {
    /// See [`Elements::Integers`].
    Integers(&'v [i64]),
    /// See [`Elements::Doubles`].
    Doubles(&'v [f64]),
    /// See [`Elements::Texts`].
    Texts(&'v [&'v [u8]]),
    /// See [`Elements::Values`].
    Values(&'v [Value]),
}

/// A part of a vector.
#[derive(Clone, Copy, Debug)]
pub struct VectorSlice<'v> {
    /// What the elements are.
    pub kind: Kind,
    /// One for each row.
    pub elements: ElementSlice<'v>,
    /// Which rows' values are NULL; empty where none is.
    pub nulls: &'v [bool],
}

impl VectorSlice<'_> {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self.elements {
            ElementSlice::Integers(v) => v.len(),
            ElementSlice::Doubles(v) => v.len(),
            ElementSlice::Texts(v) => v.len(),
            ElementSlice::Values(v) => v.len(),
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row's value is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.get(row).copied().unwrap_or(false)
    }

    /// How many rows' values are not NULL.
    pub fn count(&self) -> usize {
        self.len() - self.nulls.iter().filter(|is_null| **is_null).count()
    }

    /// The value of a row; NULL where there is no such row.
    pub fn value(&self, row: usize) -> Value {
        if self.is_null(row) {
            return Value::Null;
        }
        let value = match self.elements {
            ElementSlice::Integers(v) => v.get(row).map(|v| self.kind.value_of(*v)),
            ElementSlice::Doubles(v) => v.get(row).map(|v| Value::Double(*v)),
            ElementSlice::Texts(v) => v.get(row).map(|v| text_value(v)),
            ElementSlice::Values(v) => v.get(row).cloned(),
        };
        value.unwrap_or(Value::Null)
    }
}

/// A stored text's value.
pub fn text_value(text: &[u8]) -> Value {
    match CompactString::from_utf8(text) {
        Ok(text) => Value::Text(text),
        Err(_) => Value::Bytes(text.to_vec()),
    }
}
