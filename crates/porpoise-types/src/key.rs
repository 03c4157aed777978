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

use crate::collation::KeySink;
use crate::vector::{ElementSlice, Kind, VectorSlice};
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

/// Appends the part of a key that a text is, as [`encode_key_part`] does where it may be NULL.
pub fn encode_text_part(text: &[u8], collation: Collation, descending: bool, out: &mut KeyBuf) {
    let start = out.len();
    out.push(NOT_NULL);
    collation.sort_key(text, out);
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// What a key begins with, as a number that sorts as the keys do.
///
/// ```text
/// key    01 80 00 00 07 01 45 00            KEY_HEAD_BYTES = 16
/// bits   01 80 00 00 07 01 45 00 00 … 00    the others are 0
/// ```
///
/// Of two keys, the one of the lesser head comes first. Where the heads are equal, so are keys that
/// are no longer than them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyHead {
    bits: u128,
    /// How long the key is, as far as it was written: one more than a head has, if it is longer.
    len: u8,
}

/// How many bytes of a key its head has.
pub const KEY_HEAD_BYTES: usize = size_of::<u128>();

/// The length of all heads of longer keys.
const LONGER: u8 = KEY_HEAD_BYTES as u8 + 1;

impl KeyHead {
    /// The head of a key.
    pub fn of(key: &[u8]) -> KeyHead {
        let mut head = KeyHead::default();
        head.append(key);
        head
    }

    /// The head of a text's part of which only the first byte is known.
    #[inline]
    pub fn of_first_byte(byte: u8, descending: bool) -> KeyHead {
        let mut head = KeyHead::default();
        for byte in [NOT_NULL, byte] {
            head.put(if descending { !byte } else { byte });
        }
        head
    }

    /// The bytes, as a number.
    #[inline]
    pub fn bits(self) -> u128 {
        self.bits
    }

    /// The key's length, if that is all of it.
    #[inline]
    pub fn whole_len(self) -> Option<usize> {
        (self.len < LONGER).then_some(usize::from(self.len))
    }

    /// Whether nothing that comes behind it is of any effect.
    #[inline]
    pub fn is_full(self) -> bool {
        self.len == LONGER
    }

    /// Appends the highest bytes of a number.
    #[inline]
    fn push(&mut self, bytes: u128, len: u8) {
        // Bits beyond the last one are lost.
        self.bits |= bytes.checked_shr(8 * u32::from(self.len)).unwrap_or(0);
        self.len = (self.len + len).min(LONGER);
    }

    /// Appends the key's part that is one NULL.
    #[inline]
    pub fn push_null(&mut self, descending: bool) {
        let null = if descending { !NULL } else { NULL };
        self.push(u128::from(null) << (u128::BITS - 8), 1);
    }

    /// Appends a part that takes so many bytes, behind the one that tells that it isn't NULL.
    #[inline]
    fn push_fixed(&mut self, bytes: u64, len: u8, descending: bool) {
        let bits = 8 * u32::from(len + 1);
        let part = u128::from(NOT_NULL) << (bits - 8) | u128::from(bytes);
        let part = if descending { !part } else { part };
        self.push(part << (u128::BITS - bits), len + 1);
    }

    /// Appends a part that was encoded.
    #[inline]
    pub fn push_part(&mut self, part: &[u8]) {
        self.append(part);
    }

    /// Appends the part that a text is. What is not needed of the text is not looked at.
    pub fn push_text(&mut self, text: &[u8], collation: Collation, descending: bool) {
        let mut part = KeyHead {
            bits: 0,
            len: self.len,
        };
        part.put(NOT_NULL);
        collation.sort_key(text, &mut part);
        if descending {
            let before = u128::MAX.checked_shr(8 * u32::from(self.len));
            let behind = u128::MAX.checked_shr(8 * u32::from(part.len));
            part.bits ^= before.unwrap_or(0) & !behind.unwrap_or(0);
        }
        self.bits |= part.bits;
        self.len = part.len;
    }
}

impl KeySink for KeyHead {
    #[inline]
    fn put(&mut self, byte: u8) {
        self.push(u128::from(byte) << (u128::BITS - 8), 1);
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        let mut head = [0; KEY_HEAD_BYTES];
        let len = bytes.len().min(KEY_HEAD_BYTES);
        head[..len].copy_from_slice(&bytes[..len]);
        let all = bytes.len().min(usize::from(LONGER)) as u8;
        self.push(u128::from_be_bytes(head), all);
    }

    #[inline]
    fn window(&self) -> usize {
        match self.is_full() {
            true => 0,
            // Most characters take a byte each, and what the last one is, the one behind it tells.
            false => usize::from(LONGER - self.len) + 1,
        }
    }
}

/// How the elements of a vector go into heads, where they do without being values first.
///
/// # Panics
/// Where there are fewer elements than heads.
pub fn push_elements(
    vector: VectorSlice<'_>,
    ty: &DataType,
    descending: bool,
    heads: &mut [KeyHead],
) -> bool {
    match (vector.elements, vector.kind, ty) {
        (
            ElementSlice::Integers(integers),
            Kind::Int,
            DataType::Int {
                width,
                unsigned: false,
                ..
            },
        ) => {
            let (shift, len) = (64 - width.bits(), int_width(*width) as u8);
            let encode = |v: i64| signed_key(v, shift);
            push_all(vector, integers, heads, descending, len, encode);
        }
        (
            ElementSlice::Integers(integers),
            Kind::UInt,
            DataType::Int {
                width,
                unsigned: true,
                ..
            },
        ) => {
            let (shift, len) = (64 - width.bits(), int_width(*width) as u8);
            let encode = |v: i64| unsigned_key(v as u64, shift);
            push_all(vector, integers, heads, descending, len, encode);
        }
        (ElementSlice::Integers(dates), Kind::Date, DataType::Date) => {
            push_all(vector, dates, heads, descending, 3, |v| v as u64);
        }
        (ElementSlice::Integers(moments), Kind::DateTime, DataType::DateTime { .. }) => {
            push_all(vector, moments, heads, descending, 8, |v| v as u64)
        }
        (
            ElementSlice::Doubles(doubles),
            Kind::Double,
            DataType::Float { .. } | DataType::Double { .. },
        ) => push_all(vector, doubles, heads, descending, 8, double_key),
        _ => return false,
    }
    true
}

/// Appends parts that take so many bytes each.
#[inline]
fn push_all<T: Copy>(
    vector: VectorSlice<'_>,
    elements: &[T],
    heads: &mut [KeyHead],
    descending: bool,
    len: u8,
    encode: impl Fn(T) -> u64,
) {
    if vector.nulls.is_empty() {
        for (head, element) in heads.iter_mut().zip(elements) {
            head.push_fixed(encode(*element), len, descending);
        }
        return;
    }
    for (row, head) in heads.iter_mut().enumerate() {
        match vector.is_null(row) {
            true => head.push_null(descending),
            false => head.push_fixed(encode(elements[row]), len, descending),
        }
    }
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
            let key = signed_key(v, 64 - 8 * n as u32);
            out.extend_from_slice(&key.to_be_bytes()[8 - n..]);
        }
        DataType::Int { width, .. } => {
            let n = int_width(*width);
            let key = unsigned_key(uint_of(value), 64 - 8 * n as u32);
            out.extend_from_slice(&key.to_be_bytes()[8 - n..]);
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

/// What an integer is in a key of so many bits fewer than 64, which is clamped.
#[inline]
fn signed_key(v: i64, shift: u32) -> u64 {
    let v = v.clamp(i64::MIN >> shift, i64::MAX >> shift);
    (v as u64 ^ 1 << (63 - shift)) & u64::MAX >> shift
}

/// As [`signed_key`].
#[inline]
fn unsigned_key(v: u64, shift: u32) -> u64 {
    v.min(u64::MAX >> shift)
}

#[inline]
fn double_key(v: f64) -> u64 {
    // -0.0 equals 0.0.
    let bits = (v + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn encode_double(v: f64, out: &mut KeyBuf) {
    out.extend_from_slice(&double_key(v).to_be_bytes());
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
        fn the_head_of_a_text_is_what_its_key_begins_with(
            text in "[a-zA-Z0-9 \u{0}\u{8}\u{300}\u{df}\u{e9}\u{4e00}\u{44f}l\u{b7}-]{0,60}",
            number in any::<u16>(),
            descending in any::<bool>(),
            is_second in any::<bool>(),
        ) {
            let number = Value::Int(i64::from(number));
            for name in ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_swedish_ci", "utf8mb4_hr_0900_ai_ci", "binary"] {
                let collation = Collation::by_name(name).unwrap();
                let (mut head, mut key) = (KeyHead::default(), KeyBuf::new());
                if is_second {
                    encode_key_part(&number, &DataType::BIGINT, true, !descending, None, &mut key);
                    head.push_part(&key);
                }
                head.push_text(text.as_bytes(), collation, descending);
                let ty = DataType::Varchar { length: 100, collation };
                encode_key_part(&Value::Text(text.clone().into()), &ty, true, descending, None, &mut key);
                prop_assert_eq!(head, KeyHead::of(&key), "{} {:?}", name, text);
                let first = text.bytes().next().filter(u8::is_ascii);
                let first = first.map_or(0, |byte| collation.first_bytes()[usize::from(byte)]);
                if first != 0 && !is_second {
                    prop_assert_eq!(first ^ if descending { 0xFF } else { 0 }, key[1], "{} {:?}", name, text);
                    prop_assert!(head.bits() >= KeyHead::of_first_byte(first, descending).bits());
                }
                prop_assert_eq!(head.whole_len().is_some(), key.len() <= KEY_HEAD_BYTES);
            }
        }

        #[test]
        fn elements_have_the_heads_of_their_values(
            values in proptest::collection::vec((any::<i64>(), 0u32..64, any::<bool>()), 1..20),
            descending in any::<bool>(),
        ) {
            let int = |width, unsigned| DataType::Int { width, unsigned, zerofill: false, display_width: None };
            let integers: Vec<i64> = values.iter().map(|(v, shift, _)| v >> shift).collect();
            let doubles: Vec<f64> = integers.iter().map(|v| match v {
                -1 => -0.0,
                v => *v as f64 / 7.0,
            }).collect();
            let nulls: Vec<bool> = values.iter().map(|(.., is_null)| *is_null).collect();
            let packed: Vec<i64> = integers.iter().map(|v| 2020 << 9 | 3 << 5 | v & 15).collect();
            let moments: Vec<i64> = packed.iter().map(|v| v << 37).collect();
            let positive: Vec<i64> = integers.iter().map(|v| v & i64::MAX).collect();
            let whole = [
                (Kind::Int, int(IntWidth::Tiny, false), &integers),
                (Kind::Int, int(IntWidth::Medium, false), &integers),
                (Kind::Int, DataType::BIGINT, &integers),
                (Kind::UInt, int(IntWidth::Small, true), &positive),
                (Kind::UInt, DataType::BIGINT_UNSIGNED, &positive),
                (Kind::Date, DataType::Date, &packed),
                (Kind::DateTime, DataType::DateTime { fsp: 6 }, &moments),
            ];
            let mut vectors: Vec<_> = whole.iter().map(|(kind, ty, of)| (*kind, ty.clone(), ElementSlice::Integers(of))).collect();
            vectors.push((Kind::Double, DataType::DOUBLE, ElementSlice::Doubles(&doubles)));
            for (kind, ty, elements) in vectors {
                for nulls in [&[][..], &nulls] {
                    let vector = VectorSlice { kind, elements, nulls };
                    let mut heads = vec![KeyHead::default(); vector.len()];
                    for _ in 0..3 {
                        prop_assert!(push_elements(vector, &ty, descending, &mut heads));
                    }
                    for (row, head) in heads.iter().enumerate() {
                        let mut key = KeyBuf::new();
                        for _ in 0..3 {
                            encode_key_part(&vector.value(row), &ty, true, descending, None, &mut key);
                        }
                        prop_assert_eq!(*head, KeyHead::of(&key), "{:?} {:?}", ty, vector.value(row));
                    }
                }
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
