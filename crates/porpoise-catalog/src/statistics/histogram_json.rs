//! Histograms as JSON documents: what `information_schema.COLUMN_STATISTICS` shows, what
//! `UPDATE HISTOGRAM … USING DATA` takes, and what the dictionary keeps (MySQL 8.4 manual, 10.9.6).
//!
//! ```json
//! {"buckets": [[1, 0.25], [2, 1.0]], "data-type": "int", "auto-update": false, "null-values": 0.0,
//!  "collation-id": 8, "last-updated": "2026-01-02 03:04:05.000006", "sampling-rate": 1.0,
//!  "histogram-type": "singleton", "number-of-buckets-specified": 100}
//! ```
//!
//! A bucket is `[value, part]` or `[low, high, part, distinct values]`. Texts are their bytes in
//! base64.

use porpoise_expr::Domain;
use porpoise_expr::compare::compare;
use porpoise_types::{
    CompactString, DataType, DateMode, DateTime, JsonValue, Loss, Value, convert, temporal,
};

use super::histogram::{Bucket, data_type};
use super::{Buckets, HISTOGRAM_BUCKETS_MAX, Histogram};

/// MySQL's number of the column type CHAR, which texts are marked with.
const TYPE_OF_TEXTS: u8 = 254;

/// Columns may hold dates that a session's mode would refuse.
const ANY_DATE: DateMode = DateMode {
    no_zero_date: false,
    no_zero_in_date: false,
    allow_invalid_dates: true,
};

const SINGLETON: &str = "singleton";
const EQUI_HEIGHT: &str = "equi-height";

pub(super) fn write(histogram: &Histogram) -> JsonValue {
    let text = |text: &str| JsonValue::String(text.into());
    let (kind, buckets) = match &histogram.buckets {
        Buckets::Singleton(singles) => {
            let bucket = |(value, up_to): &(Value, f64)| {
                JsonValue::Array(vec![value_to_json(value), JsonValue::Double(*up_to)])
            };
            (SINGLETON, singles.iter().map(bucket).collect())
        }
        Buckets::EquiHeight(buckets) => {
            let bucket = |bucket: &Bucket| {
                JsonValue::Array(vec![
                    value_to_json(&bucket.low),
                    value_to_json(&bucket.high),
                    JsonValue::Double(bucket.up_to),
                    JsonValue::Int(bucket.distinct as i64),
                ])
            };
            (EQUI_HEIGHT, buckets.iter().map(bucket).collect())
        }
    };
    let mut updated = Vec::new();
    if let Some(moment) = DateTime::from_unix_micros(histogram.updated_us) {
        moment.write_text(6, &mut updated);
    }
    let members = [
        ("buckets", JsonValue::Array(buckets)),
        ("data-type", text(histogram.data_type)),
        ("auto-update", JsonValue::Bool(histogram.auto_update)),
        ("null-values", JsonValue::Double(histogram.null_part)),
        ("collation-id", JsonValue::Int(histogram.collation.into())),
        ("last-updated", text(&String::from_utf8_lossy(&updated))),
        ("sampling-rate", JsonValue::Double(histogram.sampling_rate)),
        ("histogram-type", text(kind)),
        (
            "number-of-buckets-specified",
            JsonValue::Int(histogram.buckets_specified as i64),
        ),
    ];
    JsonValue::object(members.map(|(name, value)| (CompactString::from(name), value)))
}

fn value_to_json(value: &Value) -> JsonValue {
    match value {
        Value::Null => JsonValue::Null,
        Value::Int(v) => JsonValue::Int(*v),
        Value::UInt(v) => i64::try_from(*v).map_or(JsonValue::UInt(*v), JsonValue::Int),
        Value::Double(v) => JsonValue::Double(*v),
        Value::Decimal(v) => JsonValue::Decimal(v.clone()),
        Value::Date(v) => JsonValue::Date(*v),
        Value::Time(v) => JsonValue::Time(*v),
        Value::DateTime(v) => JsonValue::DateTime(*v),
        Value::Text(text) => opaque(text.as_bytes()),
        Value::Bytes(bytes) => opaque(bytes),
        Value::Json(json) => json.value().clone(),
    }
}

fn opaque(bytes: &[u8]) -> JsonValue {
    JsonValue::Opaque {
        type_code: TYPE_OF_TEXTS,
        bytes: bytes.to_vec(),
    }
}

pub(super) fn read(json: &JsonValue, ty: &DataType) -> Option<Histogram> {
    let member = |name| json.get(name);
    let (kind, of_type) = (string(member("histogram-type")?)?, data_type(ty));
    if string(member("data-type")?)? != of_type {
        return None;
    }
    let collation = u16::try_from(whole(member("collation-id")?)?).ok()?;
    let domain = Domain::of(ty);
    let null_part = part(member("null-values")?)?;
    let JsonValue::Array(rows) = member("buckets")? else {
        return None;
    };
    let buckets = match kind {
        SINGLETON => Buckets::Singleton(
            rows.iter()
                .map(|row| single(row, ty))
                .collect::<Option<_>>()?,
        ),
        EQUI_HEIGHT => Buckets::EquiHeight(
            rows.iter()
                .map(|row| bucket(row, ty))
                .collect::<Option<_>>()?,
        ),
        _ => return None,
    };
    let buckets_specified = whole(member("number-of-buckets-specified")?)?;
    let histogram = Histogram {
        buckets,
        domain,
        null_part,
        data_type: of_type,
        collation,
        sampling_rate: part(member("sampling-rate")?)?,
        buckets_specified,
        auto_update: matches!(member("auto-update"), Some(JsonValue::Bool(true))),
        updated_us: moment(string(member("last-updated")?)?)?,
    };
    is_sound(&histogram).then_some(histogram)
}

/// Whether values and parts ascend, and parts make 1 at most.
fn is_sound(histogram: &Histogram) -> bool {
    let ends: Vec<(&Value, &Value, f64)> = match &histogram.buckets {
        Buckets::Singleton(singles) => singles.iter().map(|(v, up_to)| (v, v, *up_to)).collect(),
        Buckets::EquiHeight(buckets) => {
            buckets.iter().map(|b| (&b.low, &b.high, b.up_to)).collect()
        }
    };
    let ascend = |a: &Value, b: &Value| compare(a, b, histogram.domain).is_lt();
    let in_order = ends
        .windows(2)
        .all(|pair| ascend(pair[0].1, pair[1].0) && pair[0].2 < pair[1].2);
    let proper = ends
        .iter()
        .all(|(low, high, up_to)| !ascend(high, low) && *up_to > 0.0);
    let whole = ends.last().map_or(0.0, |(_, _, up_to)| *up_to) + histogram.null_part;
    let buckets = histogram.buckets_specified;
    in_order
        && proper
        && whole < 1.0 + 1e-6
        && (1..=HISTOGRAM_BUCKETS_MAX).contains(&buckets)
        && ends.len() as u64 <= buckets
}

fn single(row: &JsonValue, ty: &DataType) -> Option<(Value, f64)> {
    match row {
        JsonValue::Array(row) if row.len() == 2 => {
            Some((value_of_json(&row[0], ty)?, part(&row[1])?))
        }
        _ => None,
    }
}

fn bucket(row: &JsonValue, ty: &DataType) -> Option<Bucket> {
    match row {
        JsonValue::Array(row) if row.len() == 4 => Some(Bucket {
            low: value_of_json(&row[0], ty)?,
            high: value_of_json(&row[1], ty)?,
            up_to: part(&row[2])?,
            distinct: whole(&row[3])?.max(1),
        }),
        _ => None,
    }
}

/// A value of the column's type, as it is stored.
fn value_of_json(json: &JsonValue, ty: &DataType) -> Option<Value> {
    Some(match (data_type(ty), json) {
        ("int", JsonValue::Int(v)) => Value::Int(*v),
        ("uint" | "enum" | "set", json) => Value::UInt(whole(json)?),
        ("double", json) => Value::Double(number(json)?),
        ("decimal", json) => {
            let exact = match json {
                JsonValue::Decimal(v) => v.clone(),
                json => convert::to_decimal(&Value::Double(number(json)?)).0,
            };
            match ty {
                DataType::Decimal { scale, .. } => Value::Decimal(exact.round((*scale).into())),
                _ => return None,
            }
        }
        ("date", json) => Value::Date(whole_text(temporal::parse::date(string(json)?, ANY_DATE))?),
        ("time", json) => Value::Time(whole_text(temporal::parse::time(string(json)?))?),
        ("datetime", json) => Value::DateTime(whole_text(temporal::parse::datetime(
            string(json)?,
            ANY_DATE,
        ))?),
        ("string", json) => {
            let encoded = string(json)?.strip_prefix("base64:type")?;
            let bytes = decode_base64(encoded.split_once(':')?.1)?;
            match ty.is_binary_string() {
                true => Value::Bytes(bytes),
                false => Value::text(String::from_utf8(bytes).ok()?),
            }
        }
        _ => return None,
    })
}

/// What was parsed, if that was the whole text.
fn whole_text<T>((value, loss): (T, Loss)) -> Option<T> {
    loss.is_none().then_some(value)
}

fn string(json: &JsonValue) -> Option<&str> {
    match json {
        JsonValue::String(text) => Some(text),
        _ => None,
    }
}

fn whole(json: &JsonValue) -> Option<u64> {
    match json {
        JsonValue::Int(v) => u64::try_from(*v).ok(),
        JsonValue::UInt(v) => Some(*v),
        _ => None,
    }
}

fn number(json: &JsonValue) -> Option<f64> {
    match json {
        JsonValue::Int(v) => Some(*v as f64),
        JsonValue::UInt(v) => Some(*v as f64),
        JsonValue::Double(v) => Some(*v),
        _ => None,
    }
}

/// A number from 0 to 1.
fn part(json: &JsonValue) -> Option<f64> {
    number(json).filter(|part| (0.0..=1.0).contains(part))
}

/// Microseconds since 1970.
fn moment(text: &str) -> Option<i64> {
    whole_text(temporal::parse::datetime(text, ANY_DATE)).map(DateTime::unix_micros)
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut held, mut bits) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        held = held << 6 | digit(byte)?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}
