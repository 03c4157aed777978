//! `store`: a value on its way into a column. Range checks, rounding, lengths, members, dates that
//! exist.
//!
//! What does not fit is made to fit, as MySQL does outside strict mode, and the [`Loss`] says how;
//! in strict mode the engine turns the graver losses into errors (MySQL 8.4 manual, 7.1.11). A
//! TIMESTAMP is still local time here: [`TimeZone::to_timestamp`](crate::TimeZone::to_timestamp)
//! takes it to UTC and checks its range.

use crate::{
    BlobSize, Charset, Collation, CompactString, ConvertContext, DataType, Date, DateTime, Decimal,
    EnumDef, JsonError, Loss, Rounding, Time, Value, convert, number_text,
};

/// What can't be stored at all, in any mode.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// 3140
    InvalidJson(JsonError),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreError::InvalidJson(e) => write!(f, "Invalid JSON text: {e}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// Converts a value of type `from` to a value of type `to`, as an assignment to a column does. NULL
/// stays NULL: whether the column takes it is for the caller to check.
pub fn store(
    value: Value,
    from: &DataType,
    to: &DataType,
    cx: &ConvertContext,
) -> Result<(Value, Loss), StoreError> {
    if value.is_null() {
        return Ok((Value::Null, Loss::None));
    }
    // A member's name, not its number, goes into another text, ENUM, SET or JSON.
    let value = match (&value, from) {
        (Value::UInt(_), DataType::Enum(_) | DataType::Set(_))
            if from != to && !to.is_numeric() =>
        {
            Value::Text(convert::to_compact_text(&value, from))
        }
        _ => value,
    };
    Ok(match to {
        DataType::Null => (value, Loss::None),
        DataType::Int {
            width, unsigned, ..
        } => store_int(&value, width.range(*unsigned), *unsigned),
        DataType::Bit(bits) => store_bit(&value, *bits),
        DataType::Decimal {
            precision,
            scale,
            unsigned,
            ..
        } => store_decimal(value, *precision, *scale, *unsigned),
        DataType::Float {
            unsigned, digits, ..
        } => {
            let (v, loss) = store_double(&value, *unsigned, *digits, f32::MAX as f64);
            (Value::Double(v as f32 as f64), loss)
        }
        DataType::Double {
            unsigned, digits, ..
        } => {
            let (v, loss) = store_double(&value, *unsigned, *digits, f64::MAX);
            (Value::Double(v), loss)
        }
        DataType::Char { length, collation } => {
            let (mut text, loss) = store_text(value, from, *length as usize, *collation);
            // CHAR columns read back without trailing spaces.
            text.truncate(text.trim_end_matches(' ').len());
            (
                Value::Text(text),
                if loss == Loss::SpacesCut {
                    Loss::None
                } else {
                    loss
                },
            )
        }
        DataType::Varchar { length, collation } => {
            let (text, loss) = store_text(value, from, *length as usize, *collation);
            (Value::Text(text), loss)
        }
        DataType::Text { size, collation } => {
            let (text, loss) = store_text(value, from, usize::MAX, *collation);
            let (text, cut) = cut_octets(text, *size, collation.charset());
            (Value::Text(text), loss.or(cut))
        }
        DataType::Binary(n) => {
            let (mut bytes, loss) = store_bytes(value, from, *n as usize);
            bytes.resize(*n as usize, 0);
            (Value::Bytes(bytes), loss)
        }
        DataType::Varbinary(n) => {
            let (bytes, loss) = store_bytes(value, from, *n as usize);
            (Value::Bytes(bytes), loss)
        }
        DataType::Blob(size) => {
            let (bytes, loss) = store_bytes(value, from, size.max_octets() as usize);
            (Value::Bytes(bytes), loss)
        }
        DataType::Date => {
            let (v, loss) = convert::to_date(&value, cx);
            (
                Value::Date(v.unwrap_or(Date::ZERO)),
                loss_of_temporal(v.is_none(), loss),
            )
        }
        DataType::Time { fsp } => {
            let (v, loss) = convert::to_time(&value, cx);
            let dropped = if matches!(value, Value::DateTime(_)) {
                Loss::Rounded
            } else {
                Loss::None
            };
            let t = v.unwrap_or(Time::ZERO);
            let t = if cx.truncate_fractions {
                t.truncate(*fsp)
            } else {
                t.round(*fsp)
            };
            (
                Value::Time(t),
                loss_of_temporal(v.is_none(), loss.or(dropped)),
            )
        }
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
            let (v, loss) = convert::to_datetime(&value, cx);
            let rounded = match v {
                Some(t) if cx.truncate_fractions => Some(t.truncate(*fsp)),
                Some(t) => t.round(*fsp),
                None => None,
            };
            (
                Value::DateTime(rounded.unwrap_or(DateTime::ZERO)),
                loss_of_temporal(rounded.is_none(), loss),
            )
        }
        DataType::Year => store_year(&value),
        DataType::Enum(def) => store_enum(&value, from, to, def),
        DataType::Set(def) => store_set(&value, from, to, def),
        DataType::Json => {
            let json = match &value {
                Value::Bytes(b) => match std::str::from_utf8(b) {
                    Ok(text) => convert::to_json(&Value::text(text), from, true),
                    Err(e) => Err(JsonError {
                        message: "Invalid encoding in string.",
                        position: e.valid_up_to(),
                    }),
                },
                _ => convert::to_json(&value, from, true),
            };
            (
                Value::Json(json.map_err(StoreError::InvalidJson)?),
                Loss::None,
            )
        }
    })
}

/// A temporal value that became NULL was no valid one.
fn loss_of_temporal(is_null: bool, loss: Loss) -> Loss {
    if is_null {
        loss.or(Loss::BadTemporal)
    } else {
        loss
    }
}

fn store_int(value: &Value, (low, high): (i128, i128), unsigned: bool) -> (Value, Loss) {
    let (v, loss) = convert::to_wide(value);
    let clamped = v.clamp(low, high);
    // A DECIMAL below zero is out of range before it is rounded.
    let is_below = unsigned && matches!(value, Value::Decimal(d) if d.is_negative());
    let loss = if v == clamped && !is_below {
        loss
    } else {
        loss.or(Loss::OutOfRange)
    };
    (
        if unsigned {
            Value::UInt(clamped as u64)
        } else {
            Value::Int(clamped as i64)
        },
        loss,
    )
}

fn store_bit(value: &Value, bits: u8) -> (Value, Loss) {
    let max = u64::MAX >> (64 - bits.clamp(1, 64));
    let v = match value.as_bytes() {
        Some(bytes) => {
            let significant = &bytes[bytes.iter().take_while(|b| **b == 0).count()..];
            (significant.len() <= 8).then(|| significant.iter().fold(0, |v, b| v << 8 | *b as u64))
        }
        None => match convert::to_wide(value).0 {
            v @ i128::MIN..0 => Some(v as u64),
            v => u64::try_from(v).ok(),
        },
    };
    match v {
        Some(v) if v <= max => (Value::UInt(v), Loss::None),
        _ => (Value::UInt(max), Loss::TooLong),
    }
}

fn store_decimal(value: Value, precision: u8, scale: u8, unsigned: bool) -> (Value, Loss) {
    let (d, mut loss) = match value {
        Value::Decimal(d) => (d, Loss::None),
        other => convert::to_decimal(&other),
    };
    let mut stored = d.rescale(scale, Rounding::HalfAwayFromZero);
    if stored != d {
        loss = loss.or(Loss::Rounded);
    }
    if unsigned && d.is_negative() {
        return (
            Value::Decimal(Decimal::new(0, scale)),
            loss.or(Loss::OutOfRange),
        );
    }
    if stored.digits() > precision as u32 {
        let max = Decimal::max(precision, scale);
        stored = if stored.is_negative() { max.neg() } else { max };
        loss = loss.or(Loss::OutOfRange);
    }
    (Value::Decimal(stored), loss)
}

fn store_double(value: &Value, unsigned: bool, digits: Option<(u8, u8)>, max: f64) -> (f64, Loss) {
    let (v, loss) = convert::to_double(value);
    let (mut stored, mut max) = (v, max);
    if let Some((m, d)) = digits {
        let unit = 10f64.powi(d as i32);
        let rounded = (v * unit).round_ties_even() / unit;
        if rounded.is_finite() {
            stored = rounded;
        }
        max = max.min(10f64.powi(m as i32 - d as i32) - 1.0 / unit);
    }
    let min = if unsigned { 0.0 } else { -max };
    if stored < min || stored > max {
        return (stored.clamp(min, max), loss.or(Loss::OutOfRange));
    }
    (stored, loss)
}

fn store_text(
    value: Value,
    from: &DataType,
    max_chars: usize,
    collation: Collation,
) -> (CompactString, Loss) {
    let mut loss = Loss::None;
    let mut text = match value {
        Value::Text(s) => s,
        // Bytes that are no text yet are the column's own encoding.
        Value::Bytes(bytes) if from.is_binary_string() && !collation.charset().is_utf8() => {
            decoded(&bytes, collation.charset(), &mut loss)
        }
        Value::Double(v) => double_text(v, from, max_chars),
        other => match CompactString::from_utf8(convert::to_bytes(&other, from)) {
            Ok(s) => s,
            Err(_) => {
                loss = Loss::BadText;
                CompactString::from_utf8_lossy(&convert::to_bytes(&other, from))
                    .replace('\u{FFFD}', "?")
                    .into()
            }
        },
    };
    let charset = collation.charset();
    // A literal or parameter may hold what the connection's character set doesn't have.
    let source = from.collation().charset();
    let is_held = |c| charset.can_hold(c) && source.can_hold(c);
    if !charset.can_hold_all(&text) || (source != charset && !source.can_hold_all(&text)) {
        loss = Loss::BadText;
        text = text
            .chars()
            .map(|c| if is_held(c) { c } else { '?' })
            .collect();
    }
    if text.len() > max_chars
        && let Some((at, _)) = text.char_indices().nth(max_chars)
    {
        let only_spaces = text[at..].bytes().all(|b| b == b' ');
        text.truncate(at);
        loss = loss.or(if only_spaces {
            Loss::SpacesCut
        } else {
            Loss::TooLong
        });
    }
    (text, loss)
}

/// Bytes as a text in a character set; those that it hasn't become `?`.
fn decoded(bytes: &[u8], charset: Charset, loss: &mut Loss) -> CompactString {
    match charset.decode(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            *loss = Loss::BadText;
            if !charset.extends_ascii() {
                return charset.decode_lossy(bytes).into();
            }
            let ascii = |byte: &u8| if byte.is_ascii() { *byte as char } else { '?' };
            bytes.iter().map(ascii).collect()
        }
    }
}

/// A number of floating point as a text: with fewer digits where all of them are too long.
fn double_text(v: f64, from: &DataType, max_chars: usize) -> CompactString {
    let whole = convert::to_compact_text(&Value::Double(v), from);
    match number_text::double_within(v, max_chars) {
        Some(rounded) if whole.len() > max_chars => rounded,
        _ => whole,
    }
}

fn cut_octets(mut text: CompactString, size: BlobSize, charset: Charset) -> (CompactString, Loss) {
    let mut max = size.max_octets() as usize;
    if !charset.extends_ascii() {
        // What a text takes in wide units isn't what it takes here.
        max = charset.fitting(&text, max);
    }
    if text.len() <= max {
        return (text, Loss::None);
    }
    let mut at = max;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.truncate(at);
    (text, Loss::TooLong)
}

fn store_bytes(value: Value, from: &DataType, max: usize) -> (Vec<u8>, Loss) {
    let mut bytes = match value {
        Value::Bytes(b) => b,
        Value::Text(text) if !from.collation().charset().is_utf8() => {
            let mut encoded = Vec::with_capacity(text.len());
            from.collation().charset().encode(&text, &mut encoded);
            encoded
        }
        other => convert::to_bytes(&other, from),
    };
    if bytes.len() > max {
        bytes.truncate(max);
        return (bytes, Loss::TooLong);
    }
    (bytes, Loss::None)
}

fn store_year(value: &Value) -> (Value, Loss) {
    let out_of_range = (Value::UInt(0), Loss::OutOfRange);
    let (n, loss) = match value {
        Value::Date(d) => (d.year() as i128, Loss::None),
        Value::DateTime(t) => (t.date().year() as i128, Loss::None),
        other => convert::to_wide(other),
    };
    // The text '0' is 2000; the number 0 and the text '0000' are the year 0000.
    let short_text = value.as_bytes().is_some_and(|b| b.trim_ascii().len() < 4);
    let year = match n {
        0 if short_text && loss != Loss::NotANumber => 2000,
        0 => 0,
        1..=69 => 2000 + n,
        70..=99 => 1900 + n,
        1901..=2155 => n,
        _ => return out_of_range,
    };
    (Value::UInt(year as u64), loss)
}

/// The whole of a text as a number, for ENUM and SET.
fn number_of(text: &str) -> Option<u64> {
    let text = text.trim();
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn store_enum(value: &Value, from: &DataType, to: &DataType, def: &EnumDef) -> (Value, Loss) {
    let in_range = |n: u64| {
        if n >= 1 && n <= def.members.len() as u64 {
            (Value::UInt(n), Loss::None)
        } else {
            (Value::UInt(0), Loss::NotAMember)
        }
    };
    match value {
        // The same column's own value, the error member included.
        Value::UInt(n) if from == to => (Value::UInt(*n), Loss::None),
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            match convert::to_double(value).0 {
                v if v >= 0.0 => in_range(v as u64),
                _ => in_range(0),
            }
        }
        other => {
            let text = convert::to_compact_text(other, from);
            match def.find(&text) {
                Some(i) => (Value::UInt(i as u64 + 1), Loss::None),
                None => in_range(number_of(&text).unwrap_or(0)),
            }
        }
    }
}

fn store_set(value: &Value, from: &DataType, to: &DataType, def: &EnumDef) -> (Value, Loss) {
    let all = match def.members.len() {
        0 => 0,
        n => u64::MAX >> (64 - n.min(64)),
    };
    let masked = |n: u64| {
        (
            Value::UInt(n & all),
            if n & !all == 0 {
                Loss::None
            } else {
                Loss::NotAMember
            },
        )
    };
    match value {
        Value::UInt(n) if from == to => (Value::UInt(*n), Loss::None),
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => masked(
            convert::to_wide(value)
                .0
                .clamp(i64::MIN as i128, u64::MAX as i128) as u64,
        ),
        other => {
            let text = convert::to_compact_text(other, from);
            if text.is_empty() {
                return (Value::UInt(0), Loss::None);
            }
            let (mut bits, mut loss) = (0, Loss::None);
            for part in text.split(',') {
                match def.find(part) {
                    Some(i) => bits |= 1 << i.min(63),
                    None => loss = Loss::NotAMember,
                }
            }
            match number_of(&text) {
                Some(n) if !loss.is_none() => masked(n),
                _ => (Value::UInt(bits), loss),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntWidth;
    use std::sync::Arc;

    fn put(value: impl Into<Value>, to: &DataType) -> (String, Loss) {
        let value = value.into();
        let from = match &value {
            Value::Bytes(_) => DataType::Varbinary(100),
            Value::Text(_) => DataType::varchar(100),
            _ => DataType::BIGINT,
        };
        let (stored, loss) = store(value, &from, to, &ConvertContext::default()).unwrap();
        (convert::to_text(&stored, to), loss)
    }

    fn check(to: &DataType, facts: &[(Value, &str, Loss)]) {
        for (value, text, loss) in facts {
            assert_eq!(
                put(value.clone(), to),
                (text.to_string(), *loss),
                "{value:?} into {}",
                to.sql_name()
            );
        }
    }

    fn dec(s: &str) -> Value {
        Value::Decimal(s.parse().unwrap())
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn numbers_are_clamped_and_rounded() {
        let tiny = DataType::Int {
            width: IntWidth::Tiny,
            unsigned: false,
            zerofill: false,
            display_width: None,
        };
        check(
            &tiny,
            &[
                ("12abc".into(), "12", Loss::Truncated),
                ("1e2".into(), "100", Loss::None),
                ("1.5".into(), "2", Loss::None),
                (dec("2.5"), "3", Loss::None),
                (Value::Double(2.5), "2", Loss::None),
                ("-1.5".into(), "-2", Loss::None),
                (300i64.into(), "127", Loss::OutOfRange),
                ("abc".into(), "0", Loss::NotANumber),
                ("".into(), "0", Loss::NotANumber),
                (" 5 ".into(), "5", Loss::None),
            ],
        );
        let unsigned = DataType::Int {
            width: IntWidth::Int,
            unsigned: true,
            zerofill: false,
            display_width: None,
        };
        check(
            &unsigned,
            &[
                ((-1i64).into(), "0", Loss::OutOfRange),
                (dec("4294967295.6"), "4294967295", Loss::OutOfRange),
                ("1e30".into(), "4294967295", Loss::OutOfRange),
            ],
        );
        check(
            &DataType::decimal(5, 2),
            &[
                (dec("1.235"), "1.24", Loss::Rounded),
                (1000i64.into(), "999.99", Loss::OutOfRange),
                ("abc".into(), "0.00", Loss::NotANumber),
                (Value::Double(1.005), "1.01", Loss::Rounded),
                ("1.2x".into(), "1.20", Loss::Truncated),
            ],
        );
    }

    /// Checked on MariaDB 10.11; the losses are MySQL's.
    #[test]
    fn bits_and_years() {
        let bit = DataType::Bit(4);
        let bits =
            |v: Value| store(v, &DataType::BIGINT, &bit, &ConvertContext::default()).unwrap();
        assert_eq!(bits(16i64.into()), (Value::UInt(15), Loss::TooLong));
        assert_eq!(bits((-1i64).into()), (Value::UInt(15), Loss::TooLong));
        assert_eq!(bits("ab".into()), (Value::UInt(15), Loss::TooLong));
        assert_eq!(bits(vec![10u8].into()), (Value::UInt(10), Loss::None));
        check(
            &DataType::Year,
            &[
                (1i64.into(), "2001", Loss::None),
                (0i64.into(), "0000", Loss::None),
                ("0".into(), "2000", Loss::None),
                ("00".into(), "2000", Loss::None),
                (70i64.into(), "1970", Loss::None),
                (69i64.into(), "2069", Loss::None),
                (100i64.into(), "0000", Loss::OutOfRange),
                (2156i64.into(), "0000", Loss::OutOfRange),
                ("abc".into(), "0000", Loss::NotANumber),
                ("2024x".into(), "2024", Loss::Truncated),
                (dec("2024.6"), "2025", Loss::None),
            ],
        );
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn texts_are_cut_and_members_found() {
        check(
            &DataType::varchar(3),
            &[
                ("abcd".into(), "abc", Loss::TooLong),
                ("abc  ".into(), "abc", Loss::SpacesCut),
                ("žlu".into(), "žlu", Loss::None),
                (12345i64.into(), "123", Loss::TooLong),
            ],
        );
        let latin1 = DataType::Varchar {
            length: 9,
            collation: Collation::LATIN1_SWEDISH_CI,
        };
        check(
            &latin1,
            &[
                ("ž".into(), "ž", Loss::None),
                ("ш".into(), "?", Loss::BadText),
            ],
        );
        let char3 = DataType::Char {
            length: 3,
            collation: Collation::UTF8MB4_0900_AI_CI,
        };
        check(
            &char3,
            &[
                ("a ".into(), "a", Loss::None),
                ("abc  ".into(), "abc", Loss::None),
            ],
        );
        check(
            &DataType::Binary(3),
            &[
                ("a".into(), "a\0\0", Loss::None),
                ("abcd".into(), "abc", Loss::TooLong),
            ],
        );
        let members = |m: &[&str]| {
            Arc::new(EnumDef {
                members: m.iter().map(|s| (*s).into()).collect(),
                collation: Collation::UTF8MB4_0900_AI_CI,
            })
        };
        check(
            &DataType::Enum(members(&["a", "b", "c"])),
            &[
                ("A".into(), "a", Loss::None),
                ("b ".into(), "b", Loss::None),
                ("2".into(), "b", Loss::None),
                (2i64.into(), "b", Loss::None),
                (4i64.into(), "", Loss::NotAMember),
                ("".into(), "", Loss::NotAMember),
                (dec("1.5"), "a", Loss::None),
                ("1.5".into(), "", Loss::NotAMember),
            ],
        );
        check(
            &DataType::Set(members(&["x", "y", "z"])),
            &[
                ("y,x,y".into(), "x,y", Loss::None),
                (5i64.into(), "x,z", Loss::None),
                ("5".into(), "x,z", Loss::None),
                (9i64.into(), "x", Loss::NotAMember),
                ("x,q".into(), "x", Loss::NotAMember),
                ("".into(), "", Loss::None),
                ("x,".into(), "x", Loss::NotAMember),
                ("X ,y".into(), "x,y", Loss::None),
            ],
        );
    }

    #[test]
    fn temporals_are_rounded_to_the_column() {
        check(
            &DataType::DateTime { fsp: 1 },
            &[
                (
                    "2024-12-31 23:59:59.95".into(),
                    "2025-01-01 00:00:00.0",
                    Loss::None,
                ),
                ("junk".into(), "0000-00-00 00:00:00.0", Loss::BadTemporal),
                (20240131i64.into(), "2024-01-31 00:00:00.0", Loss::None),
            ],
        );
        check(
            &DataType::Date,
            &[
                ("2024-02-30".into(), "0000-00-00", Loss::BadTemporal),
                ("2024-02-03 10:00:00".into(), "2024-02-03", Loss::Rounded),
            ],
        );
        check(
            &DataType::Time { fsp: 0 },
            &[("900:00:00".into(), "838:59:59", Loss::OutOfRange)],
        );
    }
}
