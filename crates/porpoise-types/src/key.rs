//! The key encoding: bytes that sort as the values do.
//!
//! One encoding serves index keys, sorting, grouping and hashing. A key is its parts one after the
//! other; each part knows its own end, so parts can be skipped, and a prefix of the parts is a
//! prefix of the key.
//!
//! ```text
//! ├ 0x00 ┤                        a NULL, of a nullable column
//! ├ 0x01 ┼ … ┤                    a value of a nullable column
//! ├ … ┤                           a value of a column that is NOT NULL
//! ```
//!
//! | type | bytes |
//! | --- | --- |
//! | integers | big-endian in the type's own width, sign bit flipped if signed |
//! | BIT, SET / ENUM, YEAR | u64 / u16 big-endian |
//! | FLOAT, DOUBLE | the f64's bits, sign flipped, all flipped if negative |
//! | DECIMAL | sign and exponent, then digit pairs: see [`Decimal::write_key`] |
//! | DATE, TIME, DATETIME | the packed integer big-endian, 3, 8, 8 bytes |
//! | texts | the collation's sort key, which ends itself |
//! | byte strings | the bytes with 0x00 written 00 FF, ended by 00 00 |
//! | JSON | kind, then number, text or elements: orders as `JsonValue::compare` up to objects' insides |
//!
//! A descending part is the same with every bit flipped.

use crate::{
    Collation, ConvertContext, DataType, Date, DateTime, Decimal, IntWidth, JsonValue, Time, Value,
    convert,
};
use smallvec::SmallVec;

/// A key under construction; short ones live on the stack.
pub type KeyBuf = SmallVec<[u8; 64]>;

const NULL: u8 = 0;
const NOT_NULL: u8 = 1;

/// Appends one part of a key. Values should be of the column's type, as [`store`](crate::store())
/// makes them; others are converted first, and clamped to the type's range.
///
/// `prefix_chars` cuts texts to so many characters and byte strings to so many bytes.
pub fn encode_key_part(
    value: &Value,
    ty: &DataType,
    nullable: bool,
    descending: bool,
    prefix_chars: Option<u32>,
    out: &mut KeyBuf,
) {
    let start = out.len();
    if nullable {
        out.push(if value.is_null() { NULL } else { NOT_NULL });
    }
    if !(nullable && value.is_null()) {
        encode_value(value, ty, prefix_chars, out);
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// Of a text that is longer, only so many bytes go into a key's head.
const TEXT_PREFIX_BYTES: usize = 24;

/// Appends what a part of a key with this text begins with: some eight bytes at least, of what
/// [`encode_key_part`] writes. True if that is all of it.
pub fn encode_text_prefix(
    text: &[u8],
    collation: Collation,
    nullable: bool,
    descending: bool,
    out: &mut KeyBuf,
) -> bool {
    let start = out.len();
    if nullable {
        out.push(NOT_NULL);
    }
    let is_whole = text.len() <= TEXT_PREFIX_BYTES;
    if is_whole {
        collation.sort_key(text, out);
    } else {
        let is_begun = |at: &usize| text[*at] & 0xC0 != 0x80 || collation.is_binary();
        let cut = (1..=TEXT_PREFIX_BYTES).rev().find(is_begun).unwrap_or(0);
        collation.sort_key_prefix(&text[..cut], out);
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
    is_whole
}

fn int_width(width: IntWidth) -> usize {
    width.bits() as usize / 8
}

fn encode_value(value: &Value, ty: &DataType, prefix_chars: Option<u32>, out: &mut KeyBuf) {
    match ty {
        DataType::Null => {}
        DataType::Int {
            width,
            unsigned: false,
            ..
        } => {
            let n = int_width(*width);
            let v = match value {
                Value::Int(v) => *v,
                other => convert::to_int(other).0,
            };
            let shift = 64 - 8 * n as u32;
            let v = v.clamp(i64::MIN >> shift, i64::MAX >> shift);
            let flipped = (v as u64) ^ (1 << (8 * n - 1));
            out.extend_from_slice(&flipped.to_be_bytes()[8 - n..]);
        }
        DataType::Int { width, .. } => {
            let n = int_width(*width);
            let v = uint_of(value).min(u64::MAX >> (64 - 8 * n as u32));
            out.extend_from_slice(&v.to_be_bytes()[8 - n..]);
        }
        DataType::Bit(_) | DataType::Set(_) => out.extend_from_slice(&uint_of(value).to_be_bytes()),
        DataType::Enum(_) | DataType::Year => {
            out.extend_from_slice(&(uint_of(value).min(u16::MAX as u64) as u16).to_be_bytes())
        }
        DataType::Float { .. } | DataType::Double { .. } => {
            encode_double(convert::to_double(value).0, out);
        }
        DataType::Decimal { .. } => match value {
            Value::Decimal(d) => d.write_key(out),
            other => convert::to_decimal(other).0.write_key(out),
        },
        DataType::Date => {
            let d = match value {
                Value::Date(d) => *d,
                other => convert::to_date(other, &ConvertContext::default())
                    .0
                    .unwrap_or(Date::ZERO),
            };
            out.extend_from_slice(&d.packed().to_be_bytes()[1..]);
        }
        DataType::Time { .. } => {
            let t = match value {
                Value::Time(t) => *t,
                other => convert::to_time(other, &ConvertContext::default())
                    .0
                    .unwrap_or(Time::ZERO),
            };
            out.extend_from_slice(&((t.micros() as u64) ^ (1 << 63)).to_be_bytes());
        }
        DataType::DateTime { .. } | DataType::Timestamp { .. } => {
            let t = match value {
                Value::DateTime(t) => *t,
                other => convert::to_datetime(other, &ConvertContext::default())
                    .0
                    .unwrap_or(DateTime::ZERO),
            };
            out.extend_from_slice(&t.packed().to_be_bytes());
        }
        DataType::Char { collation, .. }
        | DataType::Varchar { collation, .. }
        | DataType::Text { collation, .. } => match value.as_bytes() {
            Some(bytes) => encode_text(bytes, *collation, prefix_chars, out),
            None => encode_text(&convert::to_bytes(value, ty), *collation, prefix_chars, out),
        },
        DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) => {
            match value.as_bytes() {
                Some(bytes) => encode_text(bytes, Collation::BINARY, prefix_chars, out),
                None => encode_text(
                    &convert::to_bytes(value, ty),
                    Collation::BINARY,
                    prefix_chars,
                    out,
                ),
            }
        }
        DataType::Json => match value {
            Value::Json(j) => encode_json(j.value(), out),
            other => match convert::to_json(other, ty, false) {
                Ok(j) => encode_json(j.value(), out),
                Err(_) => encode_json(&JsonValue::Null, out),
            },
        },
    }
}

fn uint_of(value: &Value) -> u64 {
    match value {
        Value::UInt(v) => *v,
        other => convert::to_uint(other).0,
    }
}

fn encode_double(v: f64, out: &mut KeyBuf) {
    // -0.0 equals 0.0.
    let bits = (v + 0.0).to_bits();
    let flipped = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    out.extend_from_slice(&flipped.to_be_bytes());
}

fn decode_double(bytes: [u8; 8]) -> f64 {
    let flipped = u64::from_be_bytes(bytes);
    f64::from_bits(if flipped >> 63 == 1 {
        flipped & !(1 << 63)
    } else {
        !flipped
    })
}

fn encode_text(bytes: &[u8], collation: Collation, prefix_chars: Option<u32>, out: &mut KeyBuf) {
    let cut = match prefix_chars {
        Some(n) => &bytes[..prefix_len(bytes, collation, n as usize)],
        None => bytes,
    };
    collation.sort_key(cut, out);
}

/// How many bytes the first `chars` characters of a text take.
pub fn prefix_len(bytes: &[u8], collation: Collation, chars: usize) -> usize {
    if collation.is_binary() || bytes.len() <= chars {
        return bytes.len().min(chars);
    }
    // A character starts at every byte that is not a continuation byte.
    bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b & 0xC0 != 0x80)
        .nth(chars)
        .map_or(bytes.len(), |(at, _)| at)
}

/// The kinds of JSON values in MySQL's order, lowest first.
fn json_rank(v: &JsonValue) -> u8 {
    match v {
        JsonValue::Null => 1,
        JsonValue::Int(_) | JsonValue::UInt(_) | JsonValue::Double(_) | JsonValue::Decimal(_) => 2,
        JsonValue::String(_) => 3,
        JsonValue::Object(_) => 4,
        JsonValue::Array(_) => 5,
        JsonValue::Bool(_) => 6,
        JsonValue::Date(_) => 7,
        JsonValue::Time(_) => 8,
        JsonValue::DateTime(_) => 9,
        JsonValue::Opaque { .. } => 10,
    }
}

fn encode_json(v: &JsonValue, out: &mut KeyBuf) {
    out.push(json_rank(v));
    match v {
        JsonValue::Null => {}
        JsonValue::Int(i) => Decimal::from(*i).write_key(out),
        JsonValue::UInt(u) => Decimal::from(*u).write_key(out),
        JsonValue::Decimal(d) => d.write_key(out),
        JsonValue::Double(f) => match Decimal::from_f64(*f) {
            Some(d) => d.write_key(out),
            // Beyond 65 digits: above (or below) every decimal.
            None => out.extend_from_slice(if *f < 0.0 { &[0, 0xFF] } else { &[0xFF, 0] }),
        },
        JsonValue::String(s) => Collation::BINARY.sort_key(s.as_bytes(), out),
        JsonValue::Bool(b) => out.push(*b as u8),
        JsonValue::Array(items) => {
            items.iter().for_each(|i| encode_json(i, out));
            out.push(0);
        }
        JsonValue::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (k, v) in members {
                Collation::BINARY.sort_key(k.as_bytes(), out);
                encode_json(v, out);
            }
        }
        JsonValue::Date(d) => out.extend_from_slice(&d.packed().to_be_bytes()),
        JsonValue::Time(t) => {
            out.extend_from_slice(&((t.micros() as u64) ^ (1 << 63)).to_be_bytes())
        }
        JsonValue::DateTime(t) => out.extend_from_slice(&t.packed().to_be_bytes()),
        JsonValue::Opaque { type_code, bytes } => {
            out.push(*type_code);
            Collation::BINARY.sort_key(bytes, out);
        }
    }
}

fn json_key_len(key: &[u8]) -> Option<usize> {
    let rest = key.get(1..)?;
    Some(
        1 + match key[0] {
            1 => 0,
            2 => match rest.first()? {
                0 | 0xFF => 2,
                _ => Decimal::key_len(rest)?,
            },
            3 => Collation::BINARY.sort_key_len(rest)?,
            4 => {
                let count = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
                let mut at = 4;
                for _ in 0..count {
                    at += Collation::BINARY.sort_key_len(rest.get(at..)?)?;
                    at += json_key_len(rest.get(at..)?)?;
                }
                at
            }
            5 => {
                let mut at = 0;
                while *rest.get(at)? != 0 {
                    at += json_key_len(&rest[at..])?;
                }
                at + 1
            }
            6 => 1,
            7 => 4,
            8 | 9 => 8,
            10 => 1 + Collation::BINARY.sort_key_len(rest.get(1..)?)?,
            _ => return None,
        },
    )
}

/// The bytes of a value that always takes as many, or `None`.
fn fixed_len(ty: &DataType) -> Option<usize> {
    Some(match ty {
        DataType::Null => 0,
        DataType::Int { width, .. } => int_width(*width),
        DataType::Bit(_) | DataType::Set(_) => 8,
        DataType::Enum(_) | DataType::Year => 2,
        DataType::Float { .. } | DataType::Double { .. } => 8,
        DataType::Date => 3,
        DataType::Time { .. } | DataType::DateTime { .. } | DataType::Timestamp { .. } => 8,
        _ => return None,
    })
}

/// The length of the first part of `key`; `None` if it is corrupt.
pub fn skip_key_part(key: &[u8], ty: &DataType, nullable: bool, descending: bool) -> Option<usize> {
    let flip = if descending { 0xFF } else { 0 };
    let marker = nullable as usize;
    if nullable && *key.first()? ^ flip == NULL {
        return Some(1);
    }
    let len = match fixed_len(ty) {
        Some(n) => n,
        None if descending => {
            let ascending: KeyBuf = key.get(marker..)?.iter().map(|b| !b).collect();
            variable_len(&ascending, ty)?
        }
        None => variable_len(key.get(marker..)?, ty)?,
    };
    (marker + len <= key.len()).then_some(marker + len)
}

fn variable_len(key: &[u8], ty: &DataType) -> Option<usize> {
    match ty {
        DataType::Decimal { .. } => Decimal::key_len(key),
        DataType::Json => json_key_len(key),
        _ => ty.collation().sort_key_len(key),
    }
}

/// The value of the first part of `key` and the part's length. `None` where the encoding can't be
/// inverted (texts of a collation, JSON) or the key is corrupt.
pub fn decode_key_part(
    key: &[u8],
    ty: &DataType,
    nullable: bool,
    descending: bool,
) -> Option<(Value, usize)> {
    let len = skip_key_part(key, ty, nullable, descending)?;
    let flip = if descending { 0xFF } else { 0 };
    let part: KeyBuf = key[..len].iter().map(|b| b ^ flip).collect();
    let bytes = match (nullable, part.first()) {
        (true, Some(&NULL)) => return Some((Value::Null, len)),
        (true, _) => part.get(1..)?,
        (false, _) => &part[..],
    };
    let mut wide = [0u8; 8];
    if bytes.len() <= 8 {
        wide[8 - bytes.len()..].copy_from_slice(bytes);
    }
    let uint = u64::from_be_bytes(wide);
    let value = match ty {
        DataType::Null => Value::Null,
        DataType::Int {
            width,
            unsigned: false,
            ..
        } => {
            let shift = 64 - width.bits();
            Value::Int((((uint ^ (1 << (width.bits() - 1))) << shift) as i64) >> shift)
        }
        DataType::Int { .. }
        | DataType::Bit(_)
        | DataType::Set(_)
        | DataType::Enum(_)
        | DataType::Year => Value::UInt(uint),
        DataType::Float { .. } | DataType::Double { .. } => Value::Double(decode_double(wide)),
        DataType::Date => Value::Date(Date::from_packed(uint as u32)?),
        DataType::Time { .. } => Value::Time(Time::from_micros((uint ^ (1 << 63)) as i64)?),
        DataType::DateTime { .. } | DataType::Timestamp { .. } => {
            Value::DateTime(DateTime::from_packed(uint)?)
        }
        DataType::Decimal { scale, .. } => Value::Decimal(Decimal::read_key(bytes, *scale)?),
        DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) => {
            let body = bytes.get(..bytes.len().checked_sub(2)?)?;
            let mut out = Vec::with_capacity(body.len());
            let mut at = 0;
            while let Some(&b) = body.get(at) {
                out.push(b);
                at += if b == 0 { 2 } else { 1 };
            }
            Value::Bytes(out)
        }
        _ => return None,
    };
    Some((value, len))
}

/// The smallest key above every key that starts with `prefix`; `false` if there is none (all 0xFF).
pub fn successor_of_prefix(prefix: &mut KeyBuf) -> bool {
    while let Some(last) = prefix.pop() {
        if last < 0xFF {
            prefix.push(last + 1);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(value: &Value, ty: &DataType, descending: bool) -> KeyBuf {
        let mut out = KeyBuf::new();
        encode_key_part(value, ty, true, descending, None, &mut out);
        out
    }

    fn check_order(a: Value, b: Value, ty: &DataType, expected: std::cmp::Ordering) {
        for descending in [false, true] {
            let (mut ka, mut kb) = (key(&a, ty, descending), key(&b, ty, descending));
            let order = if descending { kb.cmp(&ka) } else { ka.cmp(&kb) };
            assert_eq!(order, expected, "{a:?} {b:?} {ka:?} {kb:?}");
            for (k, v) in [(&mut ka, &a), (&mut kb, &b)] {
                let len = k.len();
                k.extend_from_slice(&[0, 0xFF, 1, 2]);
                assert_eq!(skip_key_part(k, ty, true, descending), Some(len), "{v:?}");
                if let Some((back, n)) = decode_key_part(k, ty, true, descending) {
                    assert_eq!((&back, n), (v, len));
                }
            }
        }
    }

    #[test]
    fn nulls_sort_first_and_last_when_descending() {
        check_order(
            Value::Null,
            Value::Int(i64::MIN),
            &DataType::BIGINT,
            std::cmp::Ordering::Less,
        );
        check_order(
            Value::Null,
            Value::text(""),
            &DataType::varchar(3),
            std::cmp::Ordering::Less,
        );
    }

    #[test]
    fn a_successor_skips_trailing_ff() {
        let mut k = KeyBuf::from_slice(&[1, 0xFF, 0xFF]);
        assert!(successor_of_prefix(&mut k));
        assert_eq!(k[..], [2]);
        assert!(!successor_of_prefix(&mut KeyBuf::from_slice(&[0xFF])));
    }

    #[test]
    fn a_prefix_is_cut_at_a_character() {
        assert_eq!(
            prefix_len("žluť".as_bytes(), Collation::UTF8MB4_BIN, 2),
            "žl".len()
        );
        assert_eq!(prefix_len("žluť".as_bytes(), Collation::BINARY, 2), 2);
        assert_eq!(prefix_len("ž".as_bytes(), Collation::UTF8MB4_BIN, 5), 2);
    }

    proptest! {
        #[test]
        fn integers_sort(a in any::<i64>(), b in any::<i64>()) {
            check_order(Value::Int(a), Value::Int(b), &DataType::BIGINT, a.cmp(&b));
            check_order(Value::UInt(a as u64), Value::UInt(b as u64), &DataType::BIGINT_UNSIGNED, (a as u64).cmp(&(b as u64)));
            let (a, b) = (a >> 40, b >> 40);
            let medium = DataType::Int { width: IntWidth::Medium, unsigned: false, zerofill: false, display_width: None };
            check_order(Value::Int(a), Value::Int(b), &medium, a.cmp(&b));
        }

        #[test]
        fn doubles_sort(a in -1e300f64..1e300, b in -1.0f64..1.0) {
            check_order(Value::Double(a), Value::Double(b), &DataType::DOUBLE, a.partial_cmp(&b).unwrap());
        }

        #[test]
        fn decimals_sort(a in any::<i64>(), sa in 0u8..20, b in any::<i64>(), sb in 0u8..20, shift in 0u32..60) {
            let (a, b) = (Decimal::new(a >> shift, sa), Decimal::new(b >> shift, sb));
            let expected = a.cmp(&b);
            check_order(Value::Decimal(a), Value::Decimal(b), &DataType::decimal(65, 20), expected);
        }

        #[test]
        fn the_prefix_of_a_text_is_what_its_key_begins_with(
            text in "[a-zA-Z0-9 \u{300}\u{df}\u{e9}\u{4e00}l\u{b7}-]{0,60}",
            descending in any::<bool>(),
        ) {
            for name in ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_swedish_ci"] {
                let collation = Collation::by_name(name).unwrap();
                let (mut head, mut key) = (KeyBuf::new(), KeyBuf::new());
                let is_whole = encode_text_prefix(text.as_bytes(), collation, true, descending, &mut head);
                let ty = DataType::Varchar { length: 100, collation };
                encode_key_part(&Value::Text(text.clone().into()), &ty, true, descending, None, &mut key);
                prop_assert!(key.starts_with(&head), "{name} {text:?}");
                prop_assert!(!is_whole || key == head);
            }
        }

        #[test]
        fn byte_strings_sort(a in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..6),
                             b in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..6)) {
            let expected = a.cmp(&b);
            check_order(Value::Bytes(a), Value::Bytes(b), &DataType::Varbinary(20), expected);
        }
    }
}
