//! Values as the binary protocol carries them: parameters of a prepared statement one way, binary
//! rows the other.
//!
//! ```text
//! integers   1, 2, 4 or 8 bytes by column type, little-endian    FLOAT 4, DOUBLE 8
//! DATE, DATETIME, TIMESTAMP   length 0, 4, 7 or 11 │ year 2, month, day │ hour, minute, second │ microseconds 4
//! TIME       length 0, 8 or 12 │ negative 1, days 4, hour, minute, second │ microseconds 4
//! the rest   a length-encoded string
//! ```

use crate::Error;
use crate::codes::ColumnType;
use crate::wire::{Fields, PutFields};

/// A calendar date; not checked to exist, as MySQL has dates like `2024-00-00`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub microsecond: u32,
}

/// A length of time, of either sign, to `838:59:59`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Time {
    /// Before zero.
    pub negative: bool,
    /// Whole days; the wire parts them from the hours.
    pub days: u32,
    /// 0 to 23 on the wire; more is added to the days' hours.
    pub hours: u8,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999,999.
    pub microseconds: u32,
}

impl std::fmt::Display for Date {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Date { year, month, day } = self;
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

impl std::fmt::Display for DateTime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DateTime {
            date,
            hour,
            minute,
            second,
            microsecond,
        } = self;
        write!(formatter, "{date} {hour:02}:{minute:02}:{second:02}")?;
        fmt_fraction(formatter, *microsecond)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let hours = u64::from(self.days) * 24 + u64::from(self.hours);
        write!(
            formatter,
            "{sign}{hours:02}:{:02}:{:02}",
            self.minutes, self.seconds
        )?;
        fmt_fraction(formatter, self.microseconds)
    }
}

/// Six digits, or nothing where the fraction is zero: how many a column has isn't known here.
fn fmt_fraction(formatter: &mut std::fmt::Formatter<'_>, microseconds: u32) -> std::fmt::Result {
    match microseconds {
        0 => Ok(()),
        microseconds => write!(formatter, ".{microseconds:06}"),
    }
}

/// The type of a parameter or of a column, as much as decoding its binary value needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// The type.
    pub column_type: ColumnType,
    /// Whether an integer has no sign.
    pub unsigned: bool,
}

/// One value, borrowed from the packet it came in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width, and YEAR.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, as text.
    Decimal(&'a [u8]),
    /// A character string, in the connection's character set, and JSON.
    Text(&'a [u8]),
    /// A string of bytes: BLOB (of which TEXT is one on the wire), BIT, GEOMETRY, VECTOR.
    Bytes(&'a [u8]),
    /// DATE.
    Date(Date),
    /// DATETIME and TIMESTAMP.
    DateTime(DateTime),
    /// TIME.
    Time(Time),
}

impl<'a> Value<'a> {
    /// Takes one value that isn't NULL from `fields`.
    #[inline]
    pub fn take(fields: &mut Fields<'a>, value_type: ValueType) -> Result<Self, Error> {
        use ColumnType as T;
        let ValueType {
            column_type,
            unsigned,
        } = value_type;
        Ok(match column_type {
            T::LongLong => match (fields.u64()?, unsigned) {
                (bits, true) => Value::UInt(bits),
                (bits, false) => Value::Int(bits as i64),
            },
            T::Long | T::Int24 => match (fields.u32()?, unsigned) {
                (bits, true) => Value::UInt(u64::from(bits)),
                (bits, false) => Value::Int(i64::from(bits as i32)),
            },
            T::Short => match (fields.u16()?, unsigned) {
                (bits, true) => Value::UInt(u64::from(bits)),
                (bits, false) => Value::Int(i64::from(bits as i16)),
            },
            T::Tiny | T::Bool => match (fields.u8()?, unsigned) {
                (bits, true) => Value::UInt(u64::from(bits)),
                (bits, false) => Value::Int(i64::from(bits as i8)),
            },
            T::Year => Value::UInt(u64::from(fields.u16()?)),
            T::Float => Value::Float(f32::from_bits(fields.u32()?)),
            T::Double => Value::Double(f64::from_bits(fields.u64()?)),
            T::Null => Value::Null,
            T::Date | T::NewDate => Value::Date(take_datetime(fields)?.date),
            T::DateTime | T::DateTime2 | T::Timestamp | T::Timestamp2 => {
                Value::DateTime(take_datetime(fields)?)
            }
            T::Time | T::Time2 => Value::Time(take_time(fields)?),
            T::OldDecimal | T::NewDecimal => Value::Decimal(fields.lenenc_bytes()?),
            T::VarChar | T::VarString | T::String | T::Enum | T::Set | T::Json => {
                Value::Text(fields.lenenc_bytes()?)
            }
            T::TinyBlob
            | T::MediumBlob
            | T::LongBlob
            | T::Blob
            | T::Bit
            | T::Geometry
            | T::Vector => Value::Bytes(fields.lenenc_bytes()?),
            T::TypedArray | T::Invalid => {
                return Err(Error::Malformed("a value of a type that is never sent"));
            }
        })
    }

    /// The type a client announces for it as a parameter.
    pub fn parameter_type(&self) -> ValueType {
        let column_type = match self {
            Value::Null => ColumnType::Null,
            Value::Int(_) | Value::UInt(_) => ColumnType::LongLong,
            Value::Float(_) => ColumnType::Float,
            Value::Double(_) => ColumnType::Double,
            Value::Decimal(_) => ColumnType::NewDecimal,
            Value::Text(_) => ColumnType::VarString,
            Value::Bytes(_) => ColumnType::Blob,
            Value::Date(_) => ColumnType::Date,
            Value::DateTime(_) => ColumnType::DateTime,
            Value::Time(_) => ColumnType::Time,
        };
        ValueType {
            column_type,
            unsigned: matches!(self, Value::UInt(_)),
        }
    }

    /// Appends it as a parameter of its [`parameter_type`](Self::parameter_type); NULL has no
    /// bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Value::Null => {}
            Value::Int(value) => out.put_u64(value as u64),
            Value::UInt(value) => out.put_u64(value),
            Value::Float(value) => out.put_u32(value.to_bits()),
            Value::Double(value) => out.put_u64(value.to_bits()),
            Value::Decimal(bytes) | Value::Text(bytes) | Value::Bytes(bytes) => {
                out.put_lenenc_bytes(bytes);
            }
            Value::Date(date) => put_date(out, date),
            Value::DateTime(datetime) => put_datetime(out, datetime),
            Value::Time(time) => put_time(out, time),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident as $as:ty,)*) => {
        $(impl From<$from> for Value<'_> {
            #[inline]
            fn from(value: $from) -> Self {
                Self::$variant(value as $as)
            }
        })*
    };
}

value_from! {
    i8 => Int as i64,
    i16 => Int as i64,
    i32 => Int as i64,
    i64 => Int as i64,
    u8 => UInt as u64,
    u16 => UInt as u64,
    u32 => UInt as u64,
    u64 => UInt as u64,
    bool => Int as i64,
    f32 => Float as f32,
    f64 => Double as f64,
    Date => Date as Date,
    DateTime => DateTime as DateTime,
    Time => Time as Time,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

fn take_datetime(fields: &mut Fields<'_>) -> Result<DateTime, Error> {
    let length = fields.u8()?;
    let mut datetime = DateTime::default();
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(Error::Malformed("a date of a length that no date has"));
    }
    if length >= 4 {
        datetime.date = Date {
            year: fields.u16()?,
            month: fields.u8()?,
            day: fields.u8()?,
        };
    }
    if length >= 7 {
        datetime.hour = fields.u8()?;
        datetime.minute = fields.u8()?;
        datetime.second = fields.u8()?;
    }
    if length == 11 {
        datetime.microsecond = fields.u32()?;
    }
    Ok(datetime)
}

fn take_time(fields: &mut Fields<'_>) -> Result<Time, Error> {
    let length = fields.u8()?;
    let mut time = Time::default();
    if !matches!(length, 0 | 8 | 12) {
        return Err(Error::Malformed("a time of a length that no time has"));
    }
    if length >= 8 {
        time = Time {
            negative: fields.u8()? != 0,
            days: fields.u32()?,
            hours: fields.u8()?,
            minutes: fields.u8()?,
            seconds: fields.u8()?,
            microseconds: 0,
        };
    }
    if length == 12 {
        time.microseconds = fields.u32()?;
    }
    Ok(time)
}

pub(crate) fn put_date(out: &mut Vec<u8>, Date { year, month, day }: Date) {
    if (year, month, day) == (0, 0, 0) {
        out.push(0);
        return;
    }
    out.push(4);
    out.put_u16(year);
    out.extend_from_slice(&[month, day]);
}

pub(crate) fn put_datetime(out: &mut Vec<u8>, datetime: DateTime) {
    let DateTime {
        date,
        hour,
        minute,
        second,
        microsecond,
    } = datetime;
    if (hour, minute, second, microsecond) == (0, 0, 0, 0) {
        put_date(out, date);
        return;
    }
    out.push(if microsecond == 0 { 7 } else { 11 });
    out.put_u16(date.year);
    out.extend_from_slice(&[date.month, date.day, hour, minute, second]);
    if microsecond != 0 {
        out.put_u32(microsecond);
    }
}

pub(crate) fn put_time(out: &mut Vec<u8>, time: Time) {
    if time == Time::default() {
        out.push(0);
        return;
    }
    out.push(if time.microseconds == 0 { 8 } else { 12 });
    out.push(u8::from(time.negative));
    out.put_u32(time.days.saturating_add(u32::from(time.hours / 24)));
    out.extend_from_slice(&[time.hours % 24, time.minutes, time.seconds]);
    if time.microseconds != 0 {
        out.put_u32(time.microseconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(column_type: ColumnType, unsigned: bool, bytes: &[u8]) -> Result<Value<'_>, Error> {
        Value::take(
            &mut Fields::new(bytes),
            ValueType {
                column_type,
                unsigned,
            },
        )
    }

    /// The examples of "Binary Protocol Resultset Row" in the MySQL protocol documentation.
    #[test]
    fn the_documented_examples_are_read() {
        use ColumnType as T;
        for (column_type, bytes, value) in [
            (T::String, &b"\x03foo"[..], Value::Text(b"foo")),
            (T::LongLong, &[1, 0, 0, 0, 0, 0, 0, 0], Value::Int(1)),
            (T::Long, &[1, 0, 0, 0], Value::Int(1)),
            (T::Short, &[1, 0], Value::Int(1)),
            (T::Tiny, &[0xFF], Value::Int(-1)),
            (
                T::Double,
                &[0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x24, 0x40],
                Value::Double(10.2),
            ),
            (T::Float, &[0x33, 0x33, 0x23, 0x41], Value::Float(10.2)),
            (
                T::Date,
                &[0x04, 0xda, 0x07, 0x0a, 0x11],
                Value::Date(Date {
                    year: 2010,
                    month: 10,
                    day: 17,
                }),
            ),
            (
                T::DateTime,
                &[
                    0x0b, 0xda, 0x07, 0x0a, 0x11, 0x13, 0x1b, 0x1e, 0x01, 0, 0, 0,
                ],
                Value::DateTime(DateTime {
                    date: Date {
                        year: 2010,
                        month: 10,
                        day: 17,
                    },
                    hour: 19,
                    minute: 27,
                    second: 30,
                    microsecond: 1,
                }),
            ),
            (
                T::Time,
                &[0x0c, 0x01, 0x78, 0, 0, 0, 0x13, 0x1b, 0x1e, 0x01, 0, 0, 0],
                Value::Time(Time {
                    negative: true,
                    days: 120,
                    hours: 19,
                    minutes: 27,
                    seconds: 30,
                    microseconds: 1,
                }),
            ),
            (T::Time, &[0], Value::Time(Time::default())),
            (T::Timestamp, &[0], Value::DateTime(DateTime::default())),
        ] {
            assert_eq!(
                take(column_type, false, bytes),
                Ok(value),
                "{column_type:?}"
            );
        }
        assert_eq!(take(T::Tiny, true, &[0xFF]), Ok(Value::UInt(255)));
    }

    #[test]
    fn what_is_put_is_taken() {
        let time = Time {
            negative: true,
            days: 34,
            hours: 22,
            minutes: 59,
            seconds: 59,
            microseconds: 0,
        };
        for value in [
            Value::Int(i64::MIN),
            Value::UInt(u64::MAX),
            Value::Float(-1.5),
            Value::Double(1e300),
            Value::Decimal(b"-12.50"),
            Value::Text("größe".as_bytes()),
            Value::Bytes(&[0, 255]),
            Value::Date(Date {
                year: 9999,
                month: 12,
                day: 31,
            }),
            Value::DateTime(DateTime {
                hour: 1,
                ..DateTime::default()
            }),
            Value::Time(time),
        ] {
            let mut out = Vec::new();
            value.put(&mut out);
            let mut fields = Fields::new(&out);
            assert_eq!(Value::take(&mut fields, value.parameter_type()), Ok(value));
            assert!(fields.is_empty());
        }
    }
}
