//! Values between the wire and a program's buffers: every column type to and from every
//! `buffer_type`.
//!
//! ```text
//!                 integer          FLOAT, DOUBLE    MYSQL_TIME            string, blob
//! integer         width checked    exactness        20240131 ► date       decimal, ZEROFILL
//! FLOAT, DOUBLE   cut, checked     nearest          ERROR                 shortest digits or the column's decimals
//! text, DECIMAL   leading number   leading number   parsed, or ERROR      itself
//! date, time      20240131120000   20240131120000   the part asked for    2024-01-31 12:00:00
//! BIT             its bits         its bits         ERROR                 its bytes
//! ```
//!
//! [`deliver`] says whether something was lost: an integer out of its type's range, what follows a
//! text's number, or bytes that didn't fit. That is what a bind's `error` tells, and what makes
//! `mysql_stmt_fetch()` return `MYSQL_DATA_TRUNCATED`. A fraction that is cut from a DOUBLE, a day
//! that a TIME doesn't have, or a text that is no date counts as little as with the original, whose
//! programs don't expect to be told.

use crate::abi::{Bind, Field, Time, bytes_of, put, put_bytes, take, time_type};
use crate::failure::{self, Failure};
use porpoise_client::codes::ColumnType as T;
use porpoise_client::{Date, DateTime, Time as WireTime, Value};
use porpoise_types::number_text;
use std::ffi::{c_int, c_uint, c_ulong};
use std::io::Write;

const ZEROFILL: c_uint = 64;

/// From here on a column has no fixed number of decimals.
const NOT_FIXED: c_uint = 31;

/// What lies in a program's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    Null,
    /// So many bytes.
    Integer(usize),
    Float,
    Double,
    /// `MYSQL_TIME`, of which this type counts.
    Time(T),
    /// Characters, in the connection's character set.
    Text,
    /// A number as text.
    Decimal,
    Bytes,
}

impl Buffer {
    /// What `buffer_type` says; none for a type that there is no buffer for.
    #[inline]
    pub fn of(buffer_type: c_uint) -> Option<Buffer> {
        let known = T::from_byte(u8::try_from(buffer_type).ok()?)?;
        Some(match known {
            T::Null => Buffer::Null,
            T::Tiny => Buffer::Integer(1),
            T::Short | T::Year => Buffer::Integer(2),
            T::Long | T::Int24 => Buffer::Integer(4),
            T::LongLong => Buffer::Integer(8),
            T::Float => Buffer::Float,
            T::Double => Buffer::Double,
            T::Date | T::NewDate => Buffer::Time(T::Date),
            T::Time => Buffer::Time(T::Time),
            T::DateTime | T::Timestamp => Buffer::Time(T::DateTime),
            T::VarChar | T::VarString | T::String | T::Enum | T::Set | T::Json => Buffer::Text,
            T::OldDecimal | T::NewDecimal => Buffer::Decimal,
            T::TinyBlob | T::MediumBlob | T::LongBlob | T::Blob | T::Bit | T::Geometry => {
                Buffer::Bytes
            }
            _ => return None,
        })
    }

    pub fn is_string(self) -> bool {
        matches!(self, Buffer::Text | Buffer::Decimal | Buffer::Bytes)
    }
}

// ── Parameters ───────────────────────────────────────────────────────────────────────────────

/// A parameter from where the program bound it.
#[inline]
pub fn parameter<'a>(bind: &Bind) -> Result<Value<'a>, Failure> {
    let is_null = take(bind.is_null).unwrap_or(bind.is_null_value) != 0;
    if is_null || (bind.buffer.is_null() && bind.long_data_used == 0) {
        return Ok(Value::Null);
    }
    let buffer = Buffer::of(bind.buffer_type)
        .ok_or_else(|| Failure::of(failure::UNSUPPORTED_PARAMETER_TYPE))?;
    let unsigned = bind.is_unsigned != 0;
    macro_rules! integer {
        ($signed:ty, $unsigned:ty) => {
            if unsigned {
                Value::UInt(
                    take::<$unsigned>(bind.buffer.cast())
                        .unwrap_or_default()
                        .into(),
                )
            } else {
                Value::Int(
                    take::<$signed>(bind.buffer.cast())
                        .unwrap_or_default()
                        .into(),
                )
            }
        };
    }
    Ok(match buffer {
        Buffer::Null => Value::Null,
        Buffer::Integer(1) => integer!(i8, u8),
        Buffer::Integer(2) => integer!(i16, u16),
        Buffer::Integer(4) => integer!(i32, u32),
        Buffer::Integer(_) => integer!(i64, u64),
        Buffer::Float => Value::Float(take(bind.buffer.cast()).unwrap_or_default()),
        Buffer::Double => Value::Double(take(bind.buffer.cast()).unwrap_or_default()),
        Buffer::Time(kind) => time_parameter(take(bind.buffer.cast()).unwrap_or_default(), kind),
        Buffer::Text => Value::Text(parameter_bytes(bind)),
        Buffer::Decimal => Value::Decimal(parameter_bytes(bind)),
        Buffer::Bytes => Value::Bytes(parameter_bytes(bind)),
    })
}

fn parameter_bytes<'a>(bind: &Bind) -> &'a [u8] {
    let length = take(bind.length).unwrap_or(bind.buffer_length);
    bytes_of(bind.buffer.cast(), length as usize)
}

fn time_parameter(time: Time, kind: T) -> Value<'static> {
    let date = Date {
        year: time.year as u16,
        month: time.month as u8,
        day: time.day as u8,
    };
    match kind {
        T::Date => Value::Date(date),
        T::Time => {
            let hours = u64::from(time.day) * 24 + u64::from(time.hour);
            Value::Time(WireTime {
                negative: time.neg != 0,
                days: u32::try_from(hours / 24).unwrap_or(u32::MAX),
                hours: (hours % 24) as u8,
                minutes: time.minute as u8,
                seconds: time.second as u8,
                microseconds: time.second_part as u32,
            })
        }
        _ => Value::DateTime(DateTime {
            date,
            hour: time.hour as u8,
            minute: time.minute as u8,
            second: time.second as u8,
            microsecond: time.second_part as u32,
        }),
    }
}

// ── Results ──────────────────────────────────────────────────────────────────────────────────

/// Puts a value where the program wants it, strings from `offset` on. True: something was lost.
#[inline]
pub fn deliver(value: Value<'_>, field: &Field, bind: &mut Bind, offset: usize) -> bool {
    let is_null = value == Value::Null;
    if bind.is_null.is_null() {
        bind.is_null_value = is_null.into();
    } else {
        put(bind.is_null, is_null.into());
    }
    if is_null {
        return note(bind, false);
    }
    let buffer = Buffer::of(bind.buffer_type).unwrap_or(Buffer::Null);
    let unsigned = bind.is_unsigned != 0;
    let (length, lost) = match buffer {
        Buffer::Null => (0, false),
        Buffer::Integer(width) => (
            width,
            put_integer(number_of(value, field), width, unsigned, bind),
        ),
        Buffer::Float => {
            let number = number_of(value, field);
            let nearest = number.double().0 as f32;
            put(bind.buffer.cast(), nearest);
            let lost = matches!(number, Number::Whole(whole) if nearest as i128 != whole);
            (4, lost)
        }
        Buffer::Double => {
            let (number, exact) = number_of(value, field).double();
            put(bind.buffer.cast(), number);
            (8, !exact)
        }
        Buffer::Time(kind) => {
            put(bind.buffer.cast(), time_of(value, kind));
            (size_of::<Time>(), false)
        }
        Buffer::Text | Buffer::Decimal | Buffer::Bytes => {
            let lost = match value {
                Value::Text(bytes) | Value::Decimal(bytes) | Value::Bytes(bytes) => {
                    put_string(bytes, bind, offset)
                }
                value => {
                    let mut text = Vec::with_capacity(32);
                    write_text(value, field, &mut text);
                    put_string(&text, bind, offset)
                }
            };
            return note(bind, lost);
        }
    };
    put_length(bind, length);
    note(bind, lost)
}

fn note(bind: &mut Bind, lost: bool) -> bool {
    if bind.error.is_null() {
        bind.error_value = lost.into();
    } else {
        put(bind.error, lost.into());
    }
    lost
}

fn put_length(bind: &mut Bind, length: usize) {
    if bind.length.is_null() {
        bind.length_value = length as c_ulong;
    } else {
        put(bind.length, length as c_ulong);
    }
}

fn put_string(bytes: &[u8], bind: &mut Bind, offset: usize) -> bool {
    put_length(bind, bytes.len());
    let rest = bytes.get(offset..).unwrap_or_default();
    let room = bind.buffer_length as usize;
    let fits = rest.len().min(room);
    let to: *mut u8 = bind.buffer.cast();
    put_bytes(to, &rest[..fits]);
    if fits < room && !to.is_null() {
        put(to.wrapping_add(fits), 0);
    }
    rest.len() > room
}

/// A value as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i128),
    Double(f64),
    /// What a text begins with that is no whole number.
    Text(f64),
}

impl Number {
    fn double(self) -> (f64, bool) {
        match self {
            Number::Whole(whole) => (whole as f64, whole as f64 as i128 == whole),
            Number::Double(number) | Number::Text(number) => (number, true),
        }
    }

    fn whole(self) -> (i128, bool) {
        match self {
            Number::Whole(whole) => (whole, true),
            Number::Double(number) => (number as i128, true),
            Number::Text(number) => (number as i128, false),
        }
    }
}

#[inline]
fn number_of(value: Value<'_>, field: &Field) -> Number {
    match value {
        Value::Null => Number::Whole(0),
        Value::Int(number) => Number::Whole(number.into()),
        Value::UInt(number) => Number::Whole(number.into()),
        Value::Float(number) => Number::Double(number.into()),
        Value::Double(number) => Number::Double(number),
        Value::Bytes(bits) if field.field_type == T::Bit as u8 as c_uint && bits.len() <= 8 => {
            let bits = bits
                .iter()
                .fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            Number::Whole(bits.into())
        }
        Value::Decimal(text) | Value::Text(text) | Value::Bytes(text) => number_of_text(text),
        Value::Date(date) => Number::Whole(digits_of_date(date)),
        Value::DateTime(time) => {
            let day = digits_of_date(time.date) * 1_000_000;
            let clock = digits(time.hour, time.minute, time.second);
            Number::Whole(day + clock)
        }
        Value::Time(time) => {
            let hours = i128::from(time.days) * 24 + i128::from(time.hours);
            let clock = hours * 10_000 + i128::from(time.minutes) * 100 + i128::from(time.seconds);
            Number::Whole(if time.negative { -clock } else { clock })
        }
    }
}

fn digits(high: u8, middle: u8, low: u8) -> i128 {
    i128::from(high) * 10_000 + i128::from(middle) * 100 + i128::from(low)
}

fn digits_of_date(date: Date) -> i128 {
    i128::from(date.year) * 10_000 + digits(0, date.month, date.day)
}

fn number_of_text(text: &[u8]) -> Number {
    let text = text.trim_ascii();
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let run = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = run(sign);
    let mut end = sign + whole;
    if end == text.len()
        && whole > 0
        && let Some(number) = parsed::<i128>(text)
    {
        return Number::Whole(number);
    }
    if text.get(end) == Some(&b'.') {
        end += 1 + run(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
        let exponent = run(end + 1 + signed);
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    Number::Text(parsed(text.get(..end).unwrap_or_default()).unwrap_or(0.0))
}

fn parsed<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn put_integer(number: Number, width: usize, unsigned: bool, bind: &Bind) -> bool {
    let (whole, exact) = number.whole();
    let bits = 8 * width as u32;
    let (least, most) = if unsigned {
        (0, (1i128 << bits) - 1)
    } else {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    };
    // Beyond the range the lowest bits are left, as in C; of a number that isn't whole, the nearest
    // that is.
    let kept = match number {
        Number::Whole(whole) => whole,
        _ => whole.clamp(least, most),
    };
    put_bytes(bind.buffer.cast(), &kept.to_le_bytes()[..width]);
    !(exact && (least..=most).contains(&whole))
}

// ── Dates and times ──────────────────────────────────────────────────────────────────────────

/// A value as a date, a time or both, as `kind` asks.
fn time_of(value: Value<'_>, kind: T) -> Time {
    let time = match value {
        Value::Date(date) => of_date(date),
        Value::DateTime(time) => of_datetime(time),
        Value::Time(time) => of_time(time),
        Value::Text(text) | Value::Decimal(text) | Value::Bytes(text) => {
            parse_time(text, kind).unwrap_or(ERROR)
        }
        Value::Int(number) if number >= 0 => of_digits(number as u64, kind).unwrap_or(ERROR),
        Value::UInt(number) => of_digits(number, kind).unwrap_or(ERROR),
        Value::Null | Value::Int(_) | Value::Float(_) | Value::Double(_) => ERROR,
    };
    match (kind, time.time_type) {
        (T::Time, time_type::DATE | time_type::DATETIME) => Time {
            year: 0,
            month: 0,
            day: 0,
            time_type: time_type::TIME,
            ..time
        },
        _ => time,
    }
}

const ERROR: Time = Time {
    year: 0,
    month: 0,
    day: 0,
    hour: 0,
    minute: 0,
    second: 0,
    second_part: 0,
    neg: 0,
    time_type: time_type::ERROR,
};

fn of_kind(time_type: c_int) -> Time {
    Time { time_type, ..ERROR }
}

fn of_date(date: Date) -> Time {
    Time {
        year: date.year.into(),
        month: date.month.into(),
        day: date.day.into(),
        ..of_kind(time_type::DATE)
    }
}

fn of_datetime(time: DateTime) -> Time {
    Time {
        hour: time.hour.into(),
        minute: time.minute.into(),
        second: time.second.into(),
        second_part: time.microsecond.into(),
        time_type: time_type::DATETIME,
        ..of_date(time.date)
    }
}

fn of_time(time: WireTime) -> Time {
    Time {
        hour: time
            .days
            .saturating_mul(24)
            .saturating_add(time.hours.into()),
        minute: time.minutes.into(),
        second: time.seconds.into(),
        second_part: time.microseconds.into(),
        neg: time.negative.into(),
        ..of_kind(time_type::TIME)
    }
}

/// `20240131`, `20240131120000`, or for a time `120000`.
fn of_digits(number: u64, kind: T) -> Option<Time> {
    let two = |number: u64, shift: u64| (number / shift % 100) as c_uint;
    if kind == T::Time {
        let hour = c_uint::try_from(number / 10_000).ok()?;
        let (minute, second) = (two(number, 100), two(number, 1));
        let time = Time {
            hour,
            minute,
            second,
            ..of_kind(time_type::TIME)
        };
        return (hour <= 838 && minute < 60 && second < 60).then_some(time);
    }
    let (day, clock) = if number > 99_999_999 {
        (number / 1_000_000, number % 1_000_000)
    } else {
        (number, 0)
    };
    let time = Time {
        year: c_uint::try_from(day / 10_000).ok()?,
        month: two(day, 100),
        day: two(day, 1),
        hour: two(clock, 10_000),
        minute: two(clock, 100),
        second: two(clock, 1),
        ..of_kind(if number > 99_999_999 {
            time_type::DATETIME
        } else {
            time_type::DATE
        })
    };
    let exists = time.year <= 9999 && time.month <= 12 && time.day <= 31;
    (exists && time.hour < 24 && time.minute < 60 && time.second < 60).then_some(time)
}

/// `2024-01-31`, `2024-01-31 12:00:00.5`, `-838:59:59`, or digits alone.
fn parse_time(text: &[u8], kind: T) -> Option<Time> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: c_ulong = match fraction.get(..fraction.len().min(6))? {
        "" => 0,
        digits => digits.parse::<c_ulong>().ok()? * 10u64.pow(6 - digits.len() as u32),
    };
    let numbers = |text: &str, separator: char| -> Option<[c_uint; 3]> {
        let mut numbers = text
            .split(separator)
            .map(|number| number.parse::<c_uint>().ok());
        let three = [
            numbers.next()??,
            numbers.next()??,
            numbers.next().unwrap_or(Some(0))?,
        ];
        numbers.next().is_none().then_some(three)
    };
    if let Some((day, clock)) = whole
        .split_once([' ', 'T'])
        .or(whole.contains('-').then_some((whole, "")))
    {
        let [year, month, day] = numbers(day, '-')?;
        let date = Time {
            year,
            month,
            day,
            ..of_kind(time_type::DATE)
        };
        if clock.is_empty() {
            return Some(date);
        }
        let [hour, minute, second] = numbers(clock, ':')?;
        return Some(Time {
            hour,
            minute,
            second,
            second_part: micros,
            time_type: time_type::DATETIME,
            ..date
        });
    }
    if whole.contains(':') {
        let [hour, minute, second] = numbers(whole, ':')?;
        return Some(Time {
            hour,
            minute,
            second,
            second_part: micros,
            neg: negative.into(),
            ..of_kind(time_type::TIME)
        });
    }
    of_digits(whole.parse().ok()?, kind)
}

// ── Texts ────────────────────────────────────────────────────────────────────────────────────

/// A value as a text query would show it.
pub fn write_text(value: Value<'_>, field: &Field, out: &mut Vec<u8>) {
    let start = out.len();
    // Writing to a vector doesn't fail.
    let _ = match value {
        Value::Null => Ok(()),
        Value::UInt(year) if field.field_type == T::Year as u8 as c_uint => {
            write!(out, "{year:04}")
        }
        Value::Int(number) => {
            number_text::write_int(number, out);
            Ok(())
        }
        Value::UInt(number) => {
            number_text::write_uint(number, out);
            Ok(())
        }
        Value::Float(number) => {
            match field.decimals {
                NOT_FIXED.. => number_text::write_float(number, out),
                decimals => number_text::write_fixed(number.into(), decimals as u8, out),
            }
            Ok(())
        }
        Value::Double(number) => {
            match field.decimals {
                NOT_FIXED.. => number_text::write_double(number, out),
                decimals => number_text::write_fixed(number, decimals as u8, out),
            }
            Ok(())
        }
        Value::Decimal(text) | Value::Text(text) | Value::Bytes(text) => out.write_all(text),
        Value::Date(date) => write!(out, "{date}"),
        Value::DateTime(time) => {
            let whole = DateTime {
                microsecond: 0,
                ..time
            };
            write!(out, "{whole}").and_then(|()| write_fraction(time.microsecond, field, out))
        }
        Value::Time(time) => {
            let whole = WireTime {
                microseconds: 0,
                ..time
            };
            write!(out, "{whole}").and_then(|()| write_fraction(time.microseconds, field, out))
        }
    };
    let is_number = matches!(
        value,
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_)
    );
    let width = field.length.min(255) as usize;
    let length = out.len() - start;
    if field.flags & ZEROFILL != 0 && is_number && length < width {
        out.splice(start..start, std::iter::repeat_n(b'0', width - length));
    }
}

fn write_fraction(micros: u32, field: &Field, out: &mut Vec<u8>) -> std::io::Result<()> {
    let decimals = match field.decimals {
        0 if micros == 0 => return Ok(()),
        decimals @ 1..=6 => decimals as usize,
        _ if micros == 0 => return Ok(()),
        _ => 6,
    };
    let digits = format!("{micros:06}");
    write!(out, ".{}", digits.get(..decimals).unwrap_or(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::zeroed;

    fn field(column_type: T) -> Field {
        // SAFETY: a MYSQL_FIELD is integers and pointers.
        let mut field: Field = unsafe { zeroed() };
        field.field_type = column_type as u8 as c_uint;
        field.decimals = NOT_FIXED;
        field
    }

    fn into<B: Default>(
        value: Value<'_>,
        field: &Field,
        buffer_type: T,
        unsigned: bool,
    ) -> (B, bool) {
        let mut buffer = B::default();
        // SAFETY: a MYSQL_BIND is integers, pointers and optional functions.
        let mut bind: Bind = unsafe { zeroed() };
        bind.buffer = std::ptr::from_mut(&mut buffer).cast();
        bind.buffer_type = buffer_type as u8 as c_uint;
        bind.is_unsigned = unsigned.into();
        let lost = deliver(value, field, &mut bind, 0);
        (buffer, lost)
    }

    fn text(value: Value<'_>, field: &Field, room: usize) -> (String, usize, bool) {
        let mut buffer = vec![b'#'; room];
        let mut length: c_ulong = 0;
        // SAFETY: as above.
        let mut bind: Bind = unsafe { zeroed() };
        bind.buffer = buffer.as_mut_ptr().cast();
        bind.buffer_length = room as c_ulong;
        bind.length = &mut length;
        bind.buffer_type = T::String as u8 as c_uint;
        let lost = deliver(value, field, &mut bind, 0);
        buffer.truncate(length as usize);
        (String::from_utf8(buffer).unwrap(), length as usize, lost)
    }

    #[test]
    fn an_integer_out_of_range_is_cut_and_reported() {
        let big = field(T::LongLong);
        assert_eq!(
            into::<i8>(Value::Int(-128), &big, T::Tiny, false),
            (-128, false)
        );
        assert_eq!(
            into::<i8>(Value::Int(200), &big, T::Tiny, false),
            (-56, true)
        );
        assert_eq!(
            into::<u8>(Value::Int(200), &big, T::Tiny, true),
            (200, false)
        );
        assert_eq!(
            into::<u64>(Value::Int(-1), &big, T::LongLong, true),
            (u64::MAX, true)
        );
        assert_eq!(
            into::<u64>(Value::UInt(u64::MAX), &big, T::LongLong, true),
            (u64::MAX, false)
        );
    }

    #[test]
    fn a_fraction_is_cut() {
        let double = field(T::Double);
        let long = |number| into::<i32>(Value::Double(number), &double, T::Long, false);
        assert_eq!(long(7.5), (7, false));
        assert_eq!(long(-7.5), (-7, false));
        assert_eq!(long(1e10), (i32::MAX, true));
        let float = into::<f32>(Value::Double(0.1), &double, T::Float, false);
        assert_eq!(float, (0.1, false));
    }

    #[test]
    fn a_text_gives_the_number_it_begins_with() {
        let name = field(T::VarString);
        assert_eq!(
            into::<i32>(Value::Text(b" 42"), &name, T::Long, false),
            (42, false)
        );
        assert_eq!(
            into::<i32>(Value::Text(b"42 fish"), &name, T::Long, false),
            (42, true)
        );
        assert_eq!(
            into::<i32>(Value::Text(b"fish"), &name, T::Long, false),
            (0, true)
        );
        assert_eq!(
            into::<f64>(Value::Decimal(b"-1.25e1"), &name, T::Double, false),
            (-12.5, false)
        );
    }

    #[test]
    fn numbers_are_written_as_their_column_shows_them() {
        let mut id = field(T::Long);
        (id.flags, id.length) = (ZEROFILL, 6);
        assert_eq!(text(Value::Int(42), &id, 10), ("000042".into(), 6, false));
        let mut price = field(T::Double);
        price.decimals = 2;
        assert_eq!(
            text(Value::Double(1.5), &price, 10),
            ("1.50".into(), 4, false)
        );
        assert_eq!(
            text(Value::Double(0.1), &field(T::Double), 10),
            ("0.1".into(), 3, false)
        );
        assert_eq!(
            text(Value::UInt(7), &field(T::Year), 10),
            ("0007".into(), 4, false)
        );
    }

    #[test]
    fn a_string_too_long_is_cut_and_its_length_told() {
        let name = field(T::VarString);
        assert_eq!(
            text(Value::Text(b"porpoise"), &name, 4),
            ("porp".into(), 8, true)
        );
        assert_eq!(
            text(Value::Text(b"porp"), &name, 4),
            ("porp".into(), 4, false)
        );
    }

    #[test]
    fn dates_and_times_go_to_every_kind_of_buffer() {
        let date = Date {
            year: 2024,
            month: 1,
            day: 31,
        };
        let moment = DateTime {
            date,
            hour: 12,
            minute: 30,
            second: 5,
            microsecond: 250_000,
        };
        let mut when = field(T::DateTime);
        when.decimals = 3;
        assert_eq!(
            text(Value::DateTime(moment), &when, 40).0,
            "2024-01-31 12:30:05.250"
        );
        assert_eq!(
            into::<i64>(Value::DateTime(moment), &when, T::LongLong, false).0,
            20_240_131_123_005
        );
        let (time, lost) = into::<Time>(Value::DateTime(moment), &when, T::Date, false);
        assert_eq!((time.year, time.hour, lost), (2024, 12, false));
        let (time, lost) = into::<Time>(Value::DateTime(moment), &when, T::Time, false);
        assert_eq!((time.year, time.hour, lost), (0, 12, false));
        let (time, lost) = into::<Time>(
            Value::Text(b"2024-01-31 12:30:05.25"),
            &field(T::String),
            T::DateTime,
            false,
        );
        assert_eq!((time, lost), (of_datetime(moment), false));
        let (time, lost) =
            into::<Time>(Value::Text(b"-12:30:05"), &field(T::String), T::Time, false);
        assert_eq!((time.hour, time.neg, lost), (12, 1, false));
        let (time, lost) = into::<Time>(Value::Text(b"fish"), &when, T::Date, false);
        assert_eq!((time, lost), (ERROR, false));
    }

    #[test]
    fn what_is_bound_comes_back() {
        for value in [
            Value::Int(-3),
            Value::UInt(3),
            Value::Double(2.5),
            Value::Time(WireTime {
                negative: true,
                days: 2,
                hours: 3,
                minutes: 4,
                seconds: 5,
                microseconds: 6,
            }),
        ] {
            let (buffer_type, unsigned) = match value {
                Value::Double(_) => (T::Double, false),
                Value::Time(_) => (T::Time, false),
                value => (T::LongLong, matches!(value, Value::UInt(_))),
            };
            let mut buffer = [0u64; 8];
            // SAFETY: as above.
            let mut bind: Bind = unsafe { zeroed() };
            bind.buffer = buffer.as_mut_ptr().cast();
            bind.buffer_type = buffer_type as u8 as c_uint;
            bind.is_unsigned = unsigned.into();
            assert!(!deliver(value, &field(buffer_type), &mut bind, 0));
            assert_eq!(parameter(&bind), Ok(value));
        }
    }
}
