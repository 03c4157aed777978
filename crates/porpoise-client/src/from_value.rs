//! From a row's values to Rust's types. A value of the text protocol is text whatever its column's
//! type, so numbers and times are read from text as well as from their binary form.

use porpoise_protocol::value::{Date, DateTime, Time, Value};
use porpoise_types::number_text;

/// A type that a value can be turned into.
pub trait FromValue<'a>: Sized {
    /// The value, or `None` if it doesn't fit. NULL fits only `Option`.
    fn from_value(value: Value<'a>) -> Option<Self>;
}

fn text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) | Value::Decimal(bytes) => {
            std::str::from_utf8(bytes).ok()
        }
        _ => None,
    }
}

macro_rules! integer_from_value {
    ($($integer:ty)*) => {
        $(impl<'a> FromValue<'a> for $integer {
            #[inline]
            fn from_value(value: Value<'a>) -> Option<Self> {
                match value {
                    Value::Int(value) => value.try_into().ok(),
                    Value::UInt(value) => value.try_into().ok(),
                    value => text(value)?.parse().ok(),
                }
            }
        })*
    };
}

integer_from_value!(i8 i16 i32 i64 u8 u16 u32 u64 usize);

impl<'a> FromValue<'a> for bool {
    fn from_value(value: Value<'a>) -> Option<Self> {
        i64::from_value(value).map(|value| value != 0)
    }
}

impl<'a> FromValue<'a> for f64 {
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Double(value) => Some(value),
            Value::Float(value) => Some(value.into()),
            Value::Int(value) => Some(value as f64),
            Value::UInt(value) => Some(value as f64),
            value => text(value)?.parse().ok(),
        }
    }
}

impl<'a> FromValue<'a> for f32 {
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Float(value) => Some(value),
            value => f64::from_value(value).map(|value| value as f32),
        }
    }
}

impl<'a> FromValue<'a> for &'a [u8] {
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Text(bytes) | Value::Bytes(bytes) | Value::Decimal(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for Vec<u8> {
    fn from_value(value: Value<'a>) -> Option<Self> {
        <&[u8]>::from_value(value).map(<[u8]>::to_vec)
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(value: Value<'a>) -> Option<Self> {
        text(value)
    }
}

impl<'a> FromValue<'a> for String {
    /// Numbers and times come as text too, as the text protocol has them.
    fn from_value(value: Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Int(value) => value.to_string(),
            Value::UInt(value) => value.to_string(),
            Value::Float(value) => number(|out| number_text::write_float(value, out)),
            Value::Double(value) => number(|out| number_text::write_double(value, out)),
            Value::Date(value) => value.to_string(),
            Value::DateTime(value) => value.to_string(),
            Value::Time(value) => value.to_string(),
            value => text(value)?.to_owned(),
        })
    }
}

fn number(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::new();
    write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl<'a> FromValue<'a> for Date {
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Date(date) => Some(date),
            Value::DateTime(datetime) => Some(datetime.date),
            value => date(text(value)?),
        }
    }
}

impl<'a> FromValue<'a> for DateTime {
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::DateTime(datetime) => Some(datetime),
            Value::Date(date) => Some(DateTime {
                date,
                ..DateTime::default()
            }),
            value => {
                let (day, clock) = text(value)?.split_once(' ')?;
                let ([hour, minute, second], microsecond) = clock_parts(clock)?;
                Some(DateTime {
                    date: date(day)?,
                    hour: hour.try_into().ok()?,
                    minute: minute.try_into().ok()?,
                    second: second.try_into().ok()?,
                    microsecond,
                })
            }
        }
    }
}

impl<'a> FromValue<'a> for Time {
    fn from_value(value: Value<'a>) -> Option<Self> {
        let text = match value {
            Value::Time(time) => return Some(time),
            value => text(value)?,
        };
        let (clock, negative) = match text.strip_prefix('-') {
            Some(clock) => (clock, true),
            None => (text, false),
        };
        let ([hours, minutes, seconds], microseconds) = clock_parts(clock)?;
        Some(Time {
            negative,
            days: hours / 24,
            hours: (hours % 24) as u8,
            minutes: minutes.try_into().ok()?,
            seconds: seconds.try_into().ok()?,
            microseconds,
        })
    }
}

fn date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    Some(Date {
        year: parts.next()?.parse().ok()?,
        month: parts.next()?.parse().ok()?,
        day: parts.next()?.parse().ok()?,
    })
}

/// `hours:minutes:seconds[.fraction]`.
fn clock_parts(text: &str) -> Option<([u32; 3], u32)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.splitn(3, ':').map(|part| part.parse().ok());
    let clock = [parts.next()??, parts.next()??, parts.next()??];
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|&digits| digits <= 6)?;
    let microseconds = match fraction {
        "" => 0,
        fraction => fraction.parse::<u32>().ok()? * 10u32.pow(6 - digits),
    };
    Some((clock, microseconds))
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_binary_values_give_the_same() {
        let date = Date {
            year: 2024,
            month: 2,
            day: 29,
        };
        let datetime = DateTime {
            date,
            hour: 1,
            minute: 2,
            second: 3,
            microsecond: 450_000,
        };
        let time = Time {
            negative: true,
            days: 1,
            hours: 2,
            minutes: 3,
            seconds: 4,
            microseconds: 0,
        };
        assert_eq!(Date::from_value(Value::Text(b"2024-02-29")), Some(date));
        assert_eq!(Date::from_value(Value::Date(date)), Some(date));
        assert_eq!(
            DateTime::from_value(Value::Text(b"2024-02-29 01:02:03.45")),
            Some(datetime)
        );
        assert_eq!(
            DateTime::from_value(Value::DateTime(datetime)),
            Some(datetime)
        );
        assert_eq!(Time::from_value(Value::Text(b"-26:03:04")), Some(time));
        assert_eq!(Time::from_value(Value::Time(time)), Some(time));
        assert_eq!(
            String::from_value(Value::DateTime(datetime)).unwrap(),
            "2024-02-29 01:02:03.450000"
        );
        assert_eq!(String::from_value(Value::Time(time)).unwrap(), "-26:03:04");
        assert_eq!(
            i64::from_value(Value::Text(b"-7")),
            i64::from_value(Value::Int(-7))
        );
        assert_eq!(String::from_value(Value::Double(1e300)).unwrap(), "1e300");
        assert_eq!(f64::from_value(Value::Decimal(b"2.50")), Some(2.5));
    }

    #[test]
    fn what_does_not_fit_is_nothing() {
        assert_eq!(u8::from_value(Value::Int(256)), None);
        assert_eq!(i32::from_value(Value::Null), None);
        assert_eq!(Option::<i32>::from_value(Value::Null), Some(None));
        assert_eq!(i32::from_value(Value::Text(b"seven")), None);
        assert_eq!(Time::from_value(Value::Text(b"1:2")), None);
        assert_eq!(Time::from_value(Value::Text(b"1:2:3.1234567")), None);
    }
}
