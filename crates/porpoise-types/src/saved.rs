//! Values as bytes, to be read again by this process alone: what statements put into temporary
//! files.
//!
//! Unlike a row's columns these values have no declared type: a quotient keeps all of its digits, a
//! JSON document its dates. A value is a byte that says its kind, then what that kind needs; numbers
//! are little-endian, and whatever has a length has it before (u32).

use compact_str::CompactString;

use crate::{Date, DateTime, Decimal, Json, JsonValue, Time, Value};

/// The kinds. Those of documents' own values come behind those of values.
mod kind {
    pub const NULL: u8 = 0;
    pub const INT: u8 = 1;
    pub const UINT: u8 = 2;
    pub const DOUBLE: u8 = 3;
    pub const DECIMAL: u8 = 4;
    pub const TEXT: u8 = 5;
    pub const BYTES: u8 = 6;
    pub const DATE: u8 = 7;
    pub const TIME: u8 = 8;
    pub const DATE_TIME: u8 = 9;
    pub const JSON: u8 = 10;
    pub const FALSE: u8 = 11;
    pub const TRUE: u8 = 12;
    pub const ARRAY: u8 = 13;
    pub const OBJECT: u8 = 14;
}

/// Appends a value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(kind::NULL),
        Value::Int(v) => write_8(kind::INT, v.to_le_bytes(), out),
        Value::UInt(v) => write_8(kind::UINT, v.to_le_bytes(), out),
        Value::Double(v) => write_8(kind::DOUBLE, v.to_le_bytes(), out),
        Value::Decimal(v) => write_decimal(v, out),
        Value::Text(v) => write_bytes(kind::TEXT, v.as_bytes(), out),
        Value::Bytes(v) => write_bytes(kind::BYTES, v, out),
        Value::Date(v) => write_8(kind::DATE, u64::from(v.packed()).to_le_bytes(), out),
        Value::Time(v) => write_8(kind::TIME, v.micros().to_le_bytes(), out),
        Value::DateTime(v) => write_8(kind::DATE_TIME, v.packed().to_le_bytes(), out),
        Value::Json(v) => {
            out.push(kind::JSON);
            write_json(v.value(), out);
        }
    }
}

fn write_8(kind: u8, bytes: [u8; 8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&bytes);
}

fn write_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn write_decimal(value: &Decimal, out: &mut Vec<u8>) {
    out.push(kind::DECIMAL);
    out.push(value.scale());
    let at = out.len();
    out.push(0);
    value.write_mantissa_le(out);
    out[at] = (out.len() - at - 1) as u8;
}

fn write_json(value: &JsonValue, out: &mut Vec<u8>) {
    match value {
        JsonValue::Null => out.push(kind::NULL),
        JsonValue::Bool(v) => out.push(if *v { kind::TRUE } else { kind::FALSE }),
        JsonValue::Int(v) => write_8(kind::INT, v.to_le_bytes(), out),
        JsonValue::UInt(v) => write_8(kind::UINT, v.to_le_bytes(), out),
        JsonValue::Double(v) => write_8(kind::DOUBLE, v.to_le_bytes(), out),
        JsonValue::Decimal(v) => write_decimal(v, out),
        JsonValue::String(v) => write_bytes(kind::TEXT, v.as_bytes(), out),
        JsonValue::Date(v) => write_8(kind::DATE, u64::from(v.packed()).to_le_bytes(), out),
        JsonValue::Time(v) => write_8(kind::TIME, v.micros().to_le_bytes(), out),
        JsonValue::DateTime(v) => write_8(kind::DATE_TIME, v.packed().to_le_bytes(), out),
        JsonValue::Opaque { type_code, bytes } => {
            write_bytes(kind::BYTES, bytes, out);
            out.push(*type_code);
        }
        JsonValue::Array(items) => {
            out.push(kind::ARRAY);
            out.extend_from_slice(&(items.len() as u32).to_le_bytes());
            items.iter().for_each(|item| write_json(item, out));
        }
        JsonValue::Object(members) => {
            out.push(kind::OBJECT);
            out.extend_from_slice(&(members.len() as u32).to_le_bytes());
            for (name, value) in members {
                write_bytes(kind::TEXT, name.as_bytes(), out);
                write_json(value, out);
            }
        }
    }
}

/// Takes the value that the bytes begin with; `None` if they aren't what [`write`] wrote.
pub fn read(bytes: &mut &[u8]) -> Option<Value> {
    let [kind] = take(bytes)?;
    Some(match kind {
        kind::NULL => Value::Null,
        kind::INT => Value::Int(i64::from_le_bytes(take(bytes)?)),
        kind::UINT => Value::UInt(u64::from_le_bytes(take(bytes)?)),
        kind::DOUBLE => Value::Double(f64::from_le_bytes(take(bytes)?)),
        kind::DECIMAL => Value::Decimal(read_decimal(bytes)?),
        kind::TEXT => Value::Text(read_text(bytes)?),
        kind::BYTES => Value::Bytes(read_bytes(bytes)?.to_vec()),
        kind::DATE => Value::Date(read_date(bytes)?),
        kind::TIME => Value::Time(Time::from_micros(i64::from_le_bytes(take(bytes)?))?),
        kind::DATE_TIME => Value::DateTime(DateTime::from_packed(read_u64(bytes)?)?),
        kind::JSON => Value::Json(Json::new(read_json(bytes)?)),
        _ => return None,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn read_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

fn read_len(bytes: &mut &[u8]) -> Option<usize> {
    take(bytes).map(|len| u32::from_le_bytes(len) as usize)
}

fn read_bytes<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = read_len(bytes)?;
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

fn read_text(bytes: &mut &[u8]) -> Option<CompactString> {
    CompactString::from_utf8(read_bytes(bytes)?).ok()
}

fn read_decimal(bytes: &mut &[u8]) -> Option<Decimal> {
    let [scale, len] = take(bytes)?;
    let (mantissa, rest) = bytes.split_at_checked(usize::from(len))?;
    *bytes = rest;
    Some(match <[u8; 8]>::try_from(mantissa) {
        Ok(small) => Decimal::new(i64::from_le_bytes(small), scale),
        Err(_) => Decimal::from_mantissa_le(mantissa, scale),
    })
}

fn read_date(bytes: &mut &[u8]) -> Option<Date> {
    Date::from_packed(u32::try_from(read_u64(bytes)?).ok()?)
}

fn read_json(bytes: &mut &[u8]) -> Option<JsonValue> {
    let [kind] = take(bytes)?;
    Some(match kind {
        kind::NULL => JsonValue::Null,
        kind::FALSE => JsonValue::Bool(false),
        kind::TRUE => JsonValue::Bool(true),
        kind::INT => JsonValue::Int(i64::from_le_bytes(take(bytes)?)),
        kind::UINT => JsonValue::UInt(u64::from_le_bytes(take(bytes)?)),
        kind::DOUBLE => JsonValue::Double(f64::from_le_bytes(take(bytes)?)),
        kind::DECIMAL => JsonValue::Decimal(read_decimal(bytes)?),
        kind::TEXT => JsonValue::String(read_text(bytes)?),
        kind::DATE => JsonValue::Date(read_date(bytes)?),
        kind::TIME => JsonValue::Time(Time::from_micros(i64::from_le_bytes(take(bytes)?))?),
        kind::DATE_TIME => JsonValue::DateTime(DateTime::from_packed(read_u64(bytes)?)?),
        kind::BYTES => {
            let value = read_bytes(bytes)?.to_vec();
            let [type_code] = take(bytes)?;
            JsonValue::Opaque {
                type_code,
                bytes: value,
            }
        }
        kind::ARRAY => {
            let count = read_len(bytes)?;
            let items = (0..count).map(|_| read_json(bytes));
            JsonValue::Array(items.collect::<Option<_>>()?)
        }
        kind::OBJECT => {
            let count = read_len(bytes)?;
            let members = (0..count).map(|_| {
                let [_text] = take(bytes)?;
                Some((read_text(bytes)?, read_json(bytes)?))
            });
            JsonValue::Object(members.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_kind_are_read_as_they_were_written() {
        let document = JsonValue::Object(vec![
            (
                "a".into(),
                JsonValue::Array(vec![
                    JsonValue::Null,
                    JsonValue::Bool(true),
                    JsonValue::Bool(false),
                    JsonValue::Int(-5),
                    JsonValue::UInt(u64::MAX),
                    JsonValue::Double(-0.5),
                ]),
            ),
            (
                "bb".into(),
                JsonValue::Array(vec![
                    JsonValue::Decimal(Decimal::new(-12345, 3)),
                    JsonValue::String("ä".into()),
                    JsonValue::Date(Date::new(2024, 2, 30).unwrap()),
                    JsonValue::Time(Time::from_micros(-5).unwrap()),
                    JsonValue::Opaque {
                        type_code: 252,
                        bytes: vec![1, 2],
                    },
                ]),
            ),
        ]);
        let values = [
            Value::Null,
            Value::Int(i64::MIN),
            Value::UInt(u64::MAX),
            Value::Double(1e300),
            Value::Decimal(Decimal::new(-1, 2)),
            Value::Decimal(Decimal::max(65, 30)),
            Value::Decimal(Decimal::max(65, 0).neg()),
            Value::Text("".into()),
            Value::Text("a longer text than fits inline, ü".into()),
            Value::Bytes(vec![0, 255]),
            Value::Date(Date::new(0, 0, 0).unwrap()),
            Value::Time(Time::from_micros(-3_020_399_000_000).unwrap()),
            Value::DateTime(
                DateTime::new(Date::new(9999, 12, 31).unwrap(), 23, 59, 59, 1).unwrap(),
            ),
            Value::Json(Json::new(document)),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| write(value, &mut bytes));
        let mut rest = &bytes[..];
        for value in &values {
            assert_eq!(
                format!("{:?}", read(&mut rest).unwrap()),
                format!("{value:?}")
            );
        }
        assert!(rest.is_empty());
        for len in 0..bytes.len() {
            let mut cut = &bytes[..len];
            while read(&mut cut).is_some() {}
        }
    }
}
