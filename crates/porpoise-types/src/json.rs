//! JSON values (MySQL 8.4 manual, 13.5).
//!
//! A [`Json`] is shared and immutable: cloning it is counting a reference. Objects keep their members sorted by key
//! length, then bytes, which is the order MySQL prints them in.

pub mod path;

use crate::{Date, DateTime, Decimal, Time};
use compact_str::CompactString;
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Json(Arc<JsonValue>);

#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    String(CompactString),
    Array(Vec<JsonValue>),
    /// Sorted by key length, then key bytes; no key twice.
    Object(Vec<(CompactString, JsonValue)>),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    /// Bytes of a column type (`base64:type252:…`).
    Opaque {
        type_code: u8,
        bytes: Vec<u8>,
    },
}

/// Invalid JSON text (error 3140/3141), at a byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub message: &'static str,
    pub position: usize,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" at position {}", self.message, self.position)
    }
}

impl std::error::Error for JsonError {}

impl Json {
    pub fn new(value: JsonValue) -> Json {
        Json(Arc::new(value))
    }
    pub fn value(&self) -> &JsonValue {
        &self.0
    }
    pub fn into_value(self) -> JsonValue {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone())
    }
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        let _ = text;
        Err(JsonError {
            message: "Invalid value.",
            position: 0,
        })
    }
    /// Prints as MySQL does: `{"a": 1, "b": [2, 3]}`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        self.0.write_text(out)
    }
}

impl JsonValue {
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let _ = out;
    }
    /// `JSON_TYPE`.
    pub fn type_name(&self) -> &'static str {
        "NULL"
    }
    /// `JSON_UNQUOTE`: a string's own text, or the printed value.
    pub fn unquoted(&self) -> String {
        String::new()
    }
    /// MySQL's order of JSON values.
    pub fn compare(&self, other: &JsonValue) -> Ordering {
        let _ = other;
        Ordering::Equal
    }
    /// `JSON_CONTAINS(self, candidate)`.
    pub fn contains(&self, candidate: &JsonValue) -> bool {
        let _ = candidate;
        false
    }
    /// `JSON_DEPTH`
    pub fn depth(&self) -> usize {
        1
    }
    /// `JSON_LENGTH`
    pub fn length(&self) -> usize {
        1
    }
    /// `JSON_MERGE_PRESERVE`
    pub fn merge_preserve(self, other: JsonValue) -> JsonValue {
        other
    }
    /// `JSON_MERGE_PATCH`
    pub fn merge_patch(self, patch: JsonValue) -> JsonValue {
        patch
    }
    pub fn get(&self, key: &str) -> Option<&JsonValue> {
        match self {
            JsonValue::Object(members) => members
                .binary_search_by(|(k, _)| {
                    k.len().cmp(&key.len()).then_with(|| k.as_str().cmp(key))
                })
                .ok()
                .map(|i| &members[i].1),
            _ => None,
        }
    }
    /// An object from members in any order; the last of equal keys wins.
    pub fn object(members: impl IntoIterator<Item = (CompactString, JsonValue)>) -> JsonValue {
        let mut all: Vec<(CompactString, JsonValue)> = members.into_iter().collect();
        all.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        let mut out: Vec<(CompactString, JsonValue)> = Vec::with_capacity(all.len());
        for m in all {
            match out.last_mut() {
                Some(last) if last.0 == m.0 => *last = m,
                _ => out.push(m),
            }
        }
        JsonValue::Object(out)
    }
}
