//! Conversions between kinds of values, in MySQL's lenient way: every one gives a value, and tells
//! what was lost.
//!
//! The engine decides what a [`Loss`] means: nothing, a note, a warning or, in strict mode, an
//! error.

use crate::temporal::parse;
use crate::{
    CompactString, DataType, Date, DateMode, DateTime, Decimal, Json, JsonError, JsonValue, Time,
    Value, number_text,
};

/// What a conversion lost, in order of severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Loss {
    /// Nothing was lost.
    #[default]
    None,
    /// Digits after the point, or a time of day, were dropped or rounded: note 1265 (1292 for
    /// temporals).
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
    /// Whether nothing was lost.
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
    /// Which invalid dates are taken (`sql_mode`).
    pub dates: DateMode,
    /// `TIME_TRUNCATE_FRACTIONAL`: cut fractions of a second instead of rounding.
    pub truncate_fractions: bool,
}

/// The whole number nearest to a value, and what was lost: wide enough for every integer type, and
/// for telling how far a value lies outside. Decimals and texts round half away from zero, doubles
/// half to even.
pub fn to_wide(value: &Value) -> (i128, Loss) {
    match value {
        Value::Null => (0, Loss::None),
        Value::Int(v) => (*v as i128, Loss::None),
        Value::UInt(v) => (*v as i128, Loss::None),
        // `as` saturates, far outside every type's range.
        Value::Double(v) => (v.round_ties_even() as i128, Loss::None),
        // A moment is rounded as one: a second may carry over to the next year.
        Value::DateTime(t) if t.microsecond() > 0 => {
            let second = t.round(0).unwrap_or(*t).truncate(0);
            to_wide(&Value::DateTime(second))
        }
        other => {
            let (d, loss) = to_decimal(other);
            let clamped = if d.is_negative() {
                i128::MIN
            } else {
                i128::MAX
            };
            (d.to_i128().unwrap_or(clamped), loss)
        }
    }
}

/// To a signed integer, clamped. Numbers above the signed range say `OutOfRange`.
pub fn to_int(value: &Value) -> (i64, Loss) {
    let (v, loss) = to_wide(value);
    match i64::try_from(v) {
        Ok(v) => (v, loss),
        Err(_) => (
            if v < 0 { i64::MIN } else { i64::MAX },
            loss.or(Loss::OutOfRange),
        ),
    }
}

/// To an unsigned integer, clamped: negative numbers become 0 and say `OutOfRange`.
pub fn to_uint(value: &Value) -> (u64, Loss) {
    let (v, loss) = to_wide(value);
    match u64::try_from(v) {
        Ok(v) => (v, loss),
        Err(_) => (if v < 0 { 0 } else { u64::MAX }, loss.or(Loss::OutOfRange)),
    }
}

/// The integer a text begins with, as `CAST('12.9abc' AS SIGNED)` reads it: 12, and the rest
/// `Truncated`.
pub fn integer_prefix(text: &[u8]) -> (i128, Loss) {
    let text = text.trim_ascii();
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let magnitude = digits[..len].iter().fold(0i128, |v, d| {
        v.saturating_mul(10).saturating_add((d - b'0') as i128)
    });
    let loss = if len == digits.len() && len > 0 {
        Loss::None
    } else {
        Loss::Truncated
    };
    (if negative { -magnitude } else { magnitude }, loss)
}

/// The number a text begins with, exponent included. `NotANumber` if there is none, `Truncated` if
/// more than spaces follow.
pub fn text_to_double(text: &[u8]) -> (f64, Loss) {
    let start = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let text = &text[start..];
    let digits = |from: usize| {
        text.get(from..)
            .map_or(0, |t| t.iter().take_while(|b| b.is_ascii_digit()).count())
    };
    let sign = matches!(text.first(), Some(b'-' | b'+')) as usize;
    let integer = digits(sign);
    let mut end = sign + integer;
    let mut fraction = 0;
    if text.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if integer + fraction == 0 {
        return (0.0, Loss::NotANumber);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = matches!(text.get(end + 1), Some(b'-' | b'+')) as usize;
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let value: f64 = std::str::from_utf8(&text[..end])
        .ok()
        .and_then(|t| t.parse().ok())
        .unwrap_or(0.0);
    let loss = if text[end..].trim_ascii().is_empty() {
        Loss::None
    } else {
        Loss::Truncated
    };
    if value.is_finite() {
        (value, loss)
    } else {
        (f64::MAX.copysign(value), loss.or(Loss::OutOfRange))
    }
}

fn text_to_decimal(text: &[u8]) -> (Decimal, Loss) {
    match Decimal::parse_prefix(text) {
        None => (Decimal::ZERO, Loss::NotANumber),
        Some(p) => {
            let rest = text.get(p.read..).unwrap_or_default();
            let loss = if rest.trim_ascii().is_empty() {
                Loss::None
            } else {
                Loss::Truncated
            };
            (
                p.value,
                if p.overflow {
                    loss.or(Loss::OutOfRange)
                } else {
                    loss
                },
            )
        }
    }
}

/// A temporal as the number it prints as: 20240131101112.5.
fn temporal_decimal(whole: i64, micros: u32) -> Decimal {
    if micros == 0 {
        return Decimal::from(whole);
    }
    let micros = if whole < 0 {
        -(micros as i128)
    } else {
        micros as i128
    };
    Decimal::from_i128(whole as i128 * 1_000_000 + micros, 6)
}

/// The double nearest to a value; of a text the number that it begins with, 0 if there is none.
pub fn to_double(value: &Value) -> (f64, Loss) {
    match value {
        Value::Null => (0.0, Loss::None),
        Value::Int(v) => (*v as f64, Loss::None),
        Value::UInt(v) => (*v as f64, Loss::None),
        Value::Double(v) => (*v, Loss::None),
        Value::Decimal(v) => (v.to_f64(), Loss::None),
        Value::Text(s) => text_to_double(s.as_bytes()),
        Value::Bytes(b) => text_to_double(b),
        Value::Json(j) => match j.value() {
            JsonValue::Double(v) => (*v, Loss::None),
            JsonValue::String(s) => text_to_double(s.as_bytes()),
            _ => {
                let (d, loss) = to_decimal(value);
                (d.to_f64(), loss)
            }
        },
        other => (to_decimal(other).0.to_f64(), Loss::None),
    }
}

/// Doubles beyond 65 digits become the largest decimal and say `OutOfRange`.
pub fn to_decimal(value: &Value) -> (Decimal, Loss) {
    let from_double = |v: f64| match Decimal::from_f64(v) {
        Some(d) => (d, Loss::None),
        None => {
            let max = Decimal::max(crate::decimal::MAX_DIGITS as u8, 0);
            (if v < 0.0 { max.neg() } else { max }, Loss::OutOfRange)
        }
    };
    match value {
        Value::Null => (Decimal::ZERO, Loss::None),
        Value::Int(v) => (Decimal::from(*v), Loss::None),
        Value::UInt(v) => (Decimal::from(*v), Loss::None),
        Value::Double(v) => from_double(*v),
        Value::Decimal(v) => (v.clone(), Loss::None),
        Value::Text(s) => text_to_decimal(s.as_bytes()),
        Value::Bytes(b) => text_to_decimal(b),
        Value::Date(d) => (Decimal::from(d.to_number()), Loss::None),
        Value::Time(t) => {
            let whole = temporal_decimal(t.to_number().abs(), t.microsecond());
            (
                if t.is_negative() { whole.neg() } else { whole },
                Loss::None,
            )
        }
        Value::DateTime(t) => (temporal_decimal(t.to_number(), t.microsecond()), Loss::None),
        Value::Json(j) => match j.value() {
            JsonValue::Int(v) => (Decimal::from(*v), Loss::None),
            JsonValue::UInt(v) => (Decimal::from(*v), Loss::None),
            JsonValue::Double(v) => from_double(*v),
            JsonValue::Decimal(d) => (d.clone(), Loss::None),
            JsonValue::Bool(b) => (Decimal::from(*b as i64), Loss::None),
            JsonValue::String(s) => text_to_decimal(s.as_bytes()),
            JsonValue::Date(d) => to_decimal(&Value::Date(*d)),
            JsonValue::Time(t) => to_decimal(&Value::Time(*t)),
            JsonValue::DateTime(t) => to_decimal(&Value::DateTime(*t)),
            _ => (Decimal::ZERO, Loss::NotANumber),
        },
    }
}

/// Truth in WHERE, AND, IF: `None` for NULL.
pub fn to_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::Int(v) => Some(*v != 0),
        Value::UInt(v) => Some(*v != 0),
        Value::Decimal(d) => Some(!d.is_zero()),
        v => Some(to_double(v).0 != 0.0),
    }
}

/// Appends a value as a result prints it; `ty` tells ENUM, SET, BIT, fraction digits and ZEROFILL.
/// NULL appends nothing.
pub fn write_text(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    if ty.is_zerofill() {
        return write_zerofilled(value, ty, out);
    }
    match (value, ty) {
        (Value::UInt(v), DataType::Enum(def)) => {
            out.extend_from_slice(def.enum_text(*v).as_bytes())
        }
        (Value::UInt(v), DataType::Set(def)) => def.set_text(*v, out),
        (Value::UInt(v), DataType::Bit(bits)) => {
            let len = (*bits).clamp(1, 64).div_ceil(8) as usize;
            out.extend_from_slice(&v.to_be_bytes()[8 - len..]);
        }
        (Value::UInt(v), DataType::Year) => number_text::write_padded(*v, 4, out),
        (Value::Double(v), DataType::Float { digits: None, .. }) => {
            number_text::write_float(*v as f32, out)
        }
        (
            Value::Double(v),
            DataType::Float {
                digits: Some((_, d)),
                ..
            }
            | DataType::Double {
                digits: Some((_, d)),
                ..
            },
        ) => number_text::write_fixed(*v, *d, out),
        (Value::Time(t), DataType::Time { fsp }) => t.write_text(*fsp, out),
        (Value::DateTime(t), DataType::DateTime { fsp } | DataType::Timestamp { fsp }) => {
            t.write_text(*fsp, out)
        }
        (Value::Null, _) => {}
        (Value::Int(v), _) => number_text::write_int(*v, out),
        (Value::UInt(v), _) => number_text::write_uint(*v, out),
        (Value::Double(v), _) => number_text::write_double(*v, out),
        // Quotients carry more digits than their type shows.
        (Value::Decimal(d), DataType::Decimal { scale, .. }) if d.scale() > *scale => d
            .rescale(*scale, crate::Rounding::HalfAwayFromZero)
            .write_text(out),
        (Value::Decimal(d), _) => d.write_text(out),
        (Value::Text(s), _) => out.extend_from_slice(s.as_bytes()),
        (Value::Bytes(b), _) => out.extend_from_slice(b),
        (Value::Date(d), _) => d.write_text(out),
        (Value::Time(t), _) => t.write_text(shown_fsp(t.microsecond()), out),
        (Value::DateTime(t), _) => t.write_text(shown_fsp(t.microsecond()), out),
        (Value::Json(j), _) => j.write_text(out),
    }
}

fn shown_fsp(micros: u32) -> u8 {
    if micros == 0 { 0 } else { 6 }
}

fn write_zerofilled(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let mut plain = ty.clone();
    match &mut plain {
        DataType::Int { zerofill, .. }
        | DataType::Decimal { zerofill, .. }
        | DataType::Float { zerofill, .. }
        | DataType::Double { zerofill, .. } => *zerofill = false,
        _ => {}
    }
    let mut text = Vec::new();
    write_text(value, &plain, &mut text);
    let width = if value.is_null() {
        0
    } else {
        ty.max_chars() as usize
    };
    out.resize(out.len() + width.saturating_sub(text.len()), b'0');
    out.extend_from_slice(&text);
}

/// As [`write_text`]; bytes that are not UTF-8 become replacement characters.
pub fn to_text(value: &Value, ty: &DataType) -> String {
    to_compact_text(value, ty).into_string()
}

/// As [`to_text`], without allocating for short texts.
pub fn to_compact_text(value: &Value, ty: &DataType) -> CompactString {
    if let Value::Text(s) = value {
        return s.clone();
    }
    let mut out = Vec::new();
    write_text(value, ty, &mut out);
    CompactString::from_utf8_lossy(&out)
}

/// The bytes of a value as a result prints it; see [`write_text`].
pub fn to_bytes(value: &Value, ty: &DataType) -> Vec<u8> {
    let mut out = Vec::new();
    write_text(value, ty, &mut out);
    out
}

/// The date of a value; `None` where MySQL gives NULL, with the loss that caused it. A time of day
/// that is dropped says `Rounded`; a TIME is a time of today.
pub fn to_date(value: &Value, cx: &ConvertContext) -> (Option<Date>, Loss) {
    if let Value::Date(d) = value {
        return (Some(*d).filter(|d| d.is_allowed(cx.dates)), Loss::None);
    }
    let (v, loss) = to_datetime(value, cx);
    let dropped = match (value, v) {
        (Value::DateTime(_) | Value::Text(_) | Value::Bytes(_), Some(at))
            if at.micros_of_day() != 0 =>
        {
            Loss::Rounded
        }
        _ => Loss::None,
    };
    (v.map(DateTime::date), loss.or(dropped))
}

/// As [`to_date`], where a number's fraction of a second never makes it the next day: what date
/// functions and CAST see of a number, unlike a column that takes it.
pub fn to_date_within_day(value: &Value, cx: &ConvertContext) -> (Option<Date>, Loss) {
    match value {
        Value::Double(_) | Value::Decimal(_) => {
            let whole = split_fraction(value).0;
            let (at, loss) = parse::datetime_from_number(whole, 0, cx.dates);
            ((loss != Loss::BadTemporal).then(|| at.date()), loss)
        }
        _ => to_date(value, cx),
    }
}

/// The time of day, or span, of a value.
pub fn to_time(value: &Value, _: &ConvertContext) -> (Option<Time>, Loss) {
    let found = match value {
        Value::Null => return (None, Loss::None),
        Value::Time(t) => (*t, Loss::None),
        Value::DateTime(t) => (t.time(), Loss::None),
        Value::Date(_) => (Time::ZERO, Loss::None),
        Value::Int(v) => parse::time_from_number(*v, 0),
        Value::UInt(v) => parse::time_from_number(i64::try_from(*v).unwrap_or(i64::MAX), 0),
        Value::Double(_) | Value::Decimal(_) => {
            let (whole, micros) = split_fraction(value);
            let (time, loss) = parse::time_from_number(whole, micros);
            // Less than a second before zero.
            match whole == 0 && to_decimal(value).0.is_negative() {
                true => (Time::from_micros_clamped(-time.micros()), loss),
                false => (time, loss),
            }
        }
        Value::Text(s) => parse::time(s),
        Value::Bytes(b) => parse::time(&String::from_utf8_lossy(b)),
        Value::Json(j) => match json_temporal(j.value()) {
            Some(Value::Time(t)) => (t, Loss::None),
            Some(Value::DateTime(t)) => (t.time(), Loss::None),
            Some(Value::Date(_)) => (Time::ZERO, Loss::None),
            Some(Value::Text(s)) => parse::time(&s),
            _ => (Time::ZERO, Loss::BadTemporal),
        },
    };
    ((found.1 != Loss::BadTemporal).then_some(found.0), found.1)
}

/// The moment of a value: a date's midnight, a TIME today.
pub fn to_datetime(value: &Value, cx: &ConvertContext) -> (Option<DateTime>, Loss) {
    let found = match value {
        Value::Null => return (None, Loss::None),
        Value::DateTime(t) => apply_date_mode(*t, cx),
        Value::Date(d) => apply_date_mode(d.at_midnight(), cx),
        Value::Time(t) => {
            match DateTime::from_linear_micros(
                cx.today
                    .at_midnight()
                    .linear_micros()
                    .saturating_add(t.micros()),
            ) {
                Some(at) => (at, Loss::None),
                None => (DateTime::ZERO, Loss::BadTemporal),
            }
        }
        Value::Int(v) => parse::datetime_from_number(*v, 0, cx.dates),
        Value::UInt(v) => {
            parse::datetime_from_number(i64::try_from(*v).unwrap_or(i64::MAX), 0, cx.dates)
        }
        Value::Double(_) | Value::Decimal(_) if to_double(value).0 < 0.0 => {
            (DateTime::ZERO, Loss::BadTemporal)
        }
        Value::Double(_) | Value::Decimal(_) => {
            let (whole, micros) = split_fraction(value);
            parse::datetime_from_number(whole, micros, cx.dates)
        }
        Value::Text(s) => parse::datetime(s, cx.dates),
        Value::Bytes(b) => parse::datetime(&String::from_utf8_lossy(b), cx.dates),
        Value::Json(j) => match json_temporal(j.value()) {
            Some(v) => return to_datetime(&v, cx),
            None => (DateTime::ZERO, Loss::BadTemporal),
        },
    };
    ((found.1 != Loss::BadTemporal).then_some(found.0), found.1)
}

/// What a number is as it is compared with moments, or with dates: the moment that it stands for,
/// else what lies among moments as the number does among their numbers.
pub fn to_comparable_datetime(value: &Value, of_dates: bool, cx: &ConvertContext) -> DateTime {
    if let (Some(moment), _) = to_datetime(value, cx) {
        return moment;
    }
    // Beyond its range a float becomes the greatest integer, or the least.
    let number = to_double(value).0.floor() as i64;
    DateTime::just_after_number(number, of_dates)
}

/// The moment, or the zero one if `sql_mode` doesn't take its date.
fn apply_date_mode(at: DateTime, cx: &ConvertContext) -> (DateTime, Loss) {
    if at.date().is_allowed(cx.dates) {
        (at, Loss::None)
    } else {
        (DateTime::ZERO, Loss::BadTemporal)
    }
}

fn json_temporal(v: &JsonValue) -> Option<Value> {
    match v {
        JsonValue::Date(d) => Some(Value::Date(*d)),
        JsonValue::Time(t) => Some(Value::Time(*t)),
        JsonValue::DateTime(t) => Some(Value::DateTime(*t)),
        JsonValue::String(s) => Some(Value::Text(s.clone())),
        _ => None,
    }
}

/// A number's integer part and its fraction in microseconds, which may round up to a whole second:
/// whoever counts the seconds carries it.
fn split_fraction(value: &Value) -> (i64, u32) {
    let d = to_decimal(value).0;
    let whole = d.truncate(0);
    let fraction = d.checked_sub(&whole).map_or(0, |f| {
        f.rescale(6, crate::Rounding::HalfAwayFromZero)
            .mantissa_i128()
            .unwrap_or(0)
    });
    let clamped = if d.is_negative() { i64::MIN } else { i64::MAX };
    (
        whole.to_i64().unwrap_or(clamped),
        fraction.unsigned_abs() as u32,
    )
}

/// To JSON. Texts are parsed when `parse` (CAST AS JSON, storing), else they become JSON strings.
pub fn to_json(value: &Value, ty: &DataType, parse: bool) -> Result<Json, JsonError> {
    let v = match (value, ty) {
        (Value::Json(j), _) => return Ok(j.clone()),
        (Value::UInt(_), DataType::Enum(_) | DataType::Set(_)) => {
            JsonValue::String(to_compact_text(value, ty))
        }
        (Value::UInt(_), DataType::Bit(_)) => JsonValue::Opaque {
            type_code: OPAQUE_BIT,
            bytes: to_bytes(value, ty),
        },
        (Value::Text(s), _) if parse => return Json::parse(s),
        (Value::Null, _) => JsonValue::Null,
        (Value::Int(v), _) => JsonValue::Int(*v),
        (Value::UInt(v), _) => JsonValue::UInt(*v),
        (Value::Double(v), _) => JsonValue::Double(*v),
        (Value::Decimal(d), _) => JsonValue::Decimal(d.clone()),
        (Value::Text(s), _) => JsonValue::String(s.clone()),
        (Value::Bytes(b), _) => JsonValue::Opaque {
            type_code: match ty {
                DataType::Binary(_) => OPAQUE_BINARY,
                DataType::Varbinary(_) => OPAQUE_VARBINARY,
                _ => OPAQUE_BLOB,
            },
            bytes: b.clone(),
        },
        (Value::Date(d), _) => JsonValue::Date(*d),
        (Value::Time(t), _) => JsonValue::Time(*t),
        (Value::DateTime(t), _) => JsonValue::DateTime(*t),
    };
    Ok(Json::new(v))
}

/// The column type numbers that JSON prints for bytes.
const OPAQUE_VARBINARY: u8 = 15;
const OPAQUE_BIT: u8 = 16;
const OPAQUE_BLOB: u8 = 252;
const OPAQUE_BINARY: u8 = 254;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_front_of_texts() {
        assert_eq!(
            to_double(&Value::text(" -1.5e2x")),
            (-150.0, Loss::Truncated)
        );
        assert_eq!(to_double(&Value::text("1e")), (1.0, Loss::Truncated));
        assert_eq!(to_double(&Value::text(".5 ")), (0.5, Loss::None));
        assert_eq!(to_double(&Value::text("abc")), (0.0, Loss::NotANumber));
        assert_eq!(
            to_double(&Value::text("1e999")),
            (f64::MAX, Loss::OutOfRange)
        );
        assert_eq!(to_int(&Value::text("12.5abc")), (13, Loss::Truncated));
        assert_eq!(to_int(&Value::Double(2.5)), (2, Loss::None));
        assert_eq!(
            to_int(&Value::Decimal("2.5".parse().unwrap())),
            (3, Loss::None)
        );
        assert_eq!(to_uint(&Value::Int(-1)), (0, Loss::OutOfRange));
        assert_eq!(integer_prefix(b"12.9abc"), (12, Loss::Truncated));
        assert_eq!(
            to_decimal(&Value::text("1e2")),
            ("100".parse().unwrap(), Loss::None)
        );
    }

    #[test]
    fn temporals_are_numbers_and_texts() {
        let at = DateTime::new(Date::new(2024, 1, 31).unwrap(), 10, 11, 12, 500_000).unwrap();
        assert_eq!(
            to_decimal(&Value::DateTime(at)).0.to_string(),
            "20240131101112.500000"
        );
        assert_eq!(to_int(&Value::DateTime(at)).0, 20240131101113);
        let negative = Time::from_micros(-500_000).unwrap();
        assert_eq!(
            to_decimal(&Value::Time(negative)).0.to_string(),
            "-0.500000"
        );
        assert_eq!(
            to_text(&Value::DateTime(at), &DataType::DateTime { fsp: 1 }),
            "2024-01-31 10:11:12.5"
        );
        let cx = ConvertContext {
            today: at.date(),
            ..Default::default()
        };
        let later = to_datetime(&Value::Time(Time::new(false, 25, 0, 0, 0).unwrap()), &cx)
            .0
            .unwrap();
        assert_eq!(later.to_string(), "2024-02-01 01:00:00");
        assert_eq!(
            to_datetime(&Value::Decimal("20240131.5".parse().unwrap()), &cx)
                .0
                .unwrap()
                .to_string(),
            "2024-01-31 00:00:00"
        );
    }

    #[test]
    fn types_decide_how_values_print() {
        let zerofill = |width| DataType::Int {
            width,
            unsigned: true,
            zerofill: true,
            display_width: None,
        };
        assert_eq!(
            to_text(&Value::UInt(7), &zerofill(crate::IntWidth::Int)),
            "0000000007"
        );
        assert_eq!(to_bytes(&Value::UInt(5), &DataType::Bit(9)), [0, 5]);
        assert_eq!(to_text(&Value::UInt(0), &DataType::Year), "0000");
        assert_eq!(
            to_text(&Value::Double(0.1f32 as f64), &DataType::FLOAT),
            "0.1"
        );
        assert_eq!(
            to_text(&Value::Double(0.1f32 as f64), &DataType::DOUBLE),
            "0.10000000149011612"
        );
    }
}
