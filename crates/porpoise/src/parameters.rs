//! Parameters: Rust's values for a statement's `?`.
//!
//! A [`Parameter`] is seen as a [`Value`], the type that values of rows are too; [`bind`] turns it
//! into the engine's.

use porpoise_engine::{Error, Result};
use porpoise_types as types;

use crate::{Date, DateTime, Time, Value};

/// A value that can stand for a `?`.
pub trait Parameter {
    /// The value, borrowed.
    fn value(&self) -> Value<'_>;
}

/// Values for all of a statement's `?`, in order: `()`, a tuple, or a slice or array of one type
/// (of [`Value`]s, if they differ).
pub trait Parameters {
    /// Calls `take` with each.
    fn each(&self, take: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()>;
}

macro_rules! parameter {
    ($($ty:ty)*) => {
        $(impl Parameter for $ty {
            fn value(&self) -> Value<'_> {
                Value::from(*self)
            }
        })*
    };
}

parameter!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool);

impl Parameter for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_bytes())
    }
}

impl Parameter for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_bytes())
    }
}

impl Parameter for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<const N: usize> Parameter for [u8; N] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Parameter for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Parameter for Date {
    fn value(&self) -> Value<'_> {
        Value::Date(*self)
    }
}

impl Parameter for DateTime {
    fn value(&self) -> Value<'_> {
        Value::DateTime(*self)
    }
}

impl Parameter for Time {
    fn value(&self) -> Value<'_> {
        Value::Time(*self)
    }
}

impl Parameter for Value<'_> {
    fn value(&self) -> Value<'_> {
        *self
    }
}

impl<T: Parameter + ?Sized> Parameter for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Parameter::value)
    }
}

impl Parameters for () {
    fn each(&self, _: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

impl<T: Parameter> Parameters for [T] {
    fn each(&self, take: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()> {
        self.iter()
            .try_for_each(|parameter| take(parameter.value()))
    }
}

impl<T: Parameter, const N: usize> Parameters for [T; N] {
    fn each(&self, take: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()> {
        self.as_slice().each(take)
    }
}

impl<P: Parameters + ?Sized> Parameters for &P {
    fn each(&self, take: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()> {
        (**self).each(take)
    }
}

macro_rules! tuple {
    ($($name:ident)*) => {
        impl<$($name: Parameter),*> Parameters for ($($name,)*) {
            #[allow(non_snake_case)]
            fn each(&self, take: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()> {
                let ($($name,)*) = self;
                $(take($name.value())?;)*
                Ok(())
            }
        }
    };
}

tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
tuple!(A B C D E F G H I);
tuple!(A B C D E F G H I J);
tuple!(A B C D E F G H I J K);
tuple!(A B C D E F G H I J K L);

/// The engine's values for parameters, in place of those in `bound`.
pub(crate) fn bind(parameters: &impl Parameters, bound: &mut Vec<types::Value>) -> Result<()> {
    bound.clear();
    parameters.each(&mut |value| {
        bound.push(engine_value(value)?);
        Ok(())
    })
}

fn engine_value(value: Value<'_>) -> Result<types::Value> {
    let converted = match value {
        Value::Null => Some(types::Value::Null),
        Value::Int(value) => Some(types::Value::Int(value)),
        Value::UInt(value) => Some(types::Value::UInt(value)),
        // Infinity and NaN are no values of SQL.
        Value::Float(value) => value
            .is_finite()
            .then(|| types::Value::Double(value.into())),
        Value::Double(value) => value.is_finite().then_some(types::Value::Double(value)),
        Value::Decimal(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok())
            .map(types::Value::Decimal),
        // A text that isn't well-formed is bytes.
        Value::Text(text) => Some(match std::str::from_utf8(text) {
            Ok(text) => types::Value::text(text),
            Err(_) => types::Value::Bytes(text.to_vec()),
        }),
        Value::Bytes(bytes) => Some(types::Value::Bytes(bytes.to_vec())),
        Value::Date(value) => date(value).map(types::Value::Date),
        Value::DateTime(value) => datetime(value).map(types::Value::DateTime),
        Value::Time(value) => time(value).map(types::Value::Time),
    };
    converted.ok_or_else(|| Error::incorrect_literal("parameter", format_args!("{value:?}")))
}

pub(crate) fn date(value: Date) -> Option<types::Date> {
    types::Date::new(value.year.into(), value.month.into(), value.day.into())
}

pub(crate) fn datetime(value: DateTime) -> Option<types::DateTime> {
    types::DateTime::new(
        date(value.date)?,
        value.hour.into(),
        value.minute.into(),
        value.second.into(),
        value.microsecond,
    )
}

pub(crate) fn time(value: Time) -> Option<types::Time> {
    let hours = value
        .days
        .checked_mul(24)?
        .checked_add(value.hours.into())?;
    types::Time::new(
        value.negative,
        hours,
        value.minutes.into(),
        value.seconds.into(),
        value.microseconds,
    )
}

/// The text of an engine's value that goes over the wire as text.
pub(crate) fn text_of(value: &types::Value) -> String {
    match value {
        types::Value::Decimal(value) => value.to_string(),
        types::Value::Json(value) => value.to_string(),
        _ => String::new(),
    }
}

/// An engine's value as a parameter for another process; `text` is its [`text_of`].
pub(crate) fn wire_value<'a>(value: &'a types::Value, text: &'a str) -> Value<'a> {
    match value {
        types::Value::Null => Value::Null,
        types::Value::Int(value) => Value::Int(*value),
        types::Value::UInt(value) => Value::UInt(*value),
        types::Value::Double(value) => Value::Double(*value),
        types::Value::Decimal(_) => Value::Decimal(text.as_bytes()),
        types::Value::Json(_) => Value::Text(text.as_bytes()),
        types::Value::Text(value) => Value::Text(value.as_bytes()),
        types::Value::Bytes(value) => Value::Bytes(value),
        types::Value::Date(value) => Value::Date(crate::rows::date(*value)),
        types::Value::DateTime(value) => Value::DateTime(crate::rows::datetime(*value)),
        types::Value::Time(value) => Value::Time(crate::rows::time(*value)),
    }
}
