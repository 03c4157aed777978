//! JSON values (MySQL 8.4 manual, 13.5).
//!
//! A [`Json`] is shared and immutable: cloning it is counting a reference. Objects keep their
//! members sorted by key length, then bytes, which is the order MySQL prints them in.

//!
//! - [`parse`](Json::parse): text to value, with the position of the first error
//! - [`path`]: `$.a[0]`, and what `JSON_EXTRACT`, `JSON_SET` and their kin do with it
//!
//! Values order by kind first, from NULL up to BLOB, then within their kind (manual, "Comparison
//! and Ordering").

mod parser;
pub mod path;

use crate::{Date, DateTime, Decimal, Time, cancel, number_text};
use compact_str::CompactString;
use std::cmp::Ordering;
use std::sync::Arc;

/// A JSON document. Clones share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Json(Arc<JsonValue>);

/// A value in a JSON document.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number that fits `i64`.
    Int(i64),
    /// A whole number that fits only `u64`.
    UInt(u64),
    /// A number with a point or an exponent.
    Double(f64),
    /// A DECIMAL of SQL.
    Decimal(Decimal),
    /// A text.
    String(CompactString),
    /// An array.
    Array(Vec<JsonValue>),
    /// Sorted by key length, then key bytes; no key twice.
    Object(Vec<(CompactString, JsonValue)>),
    /// A DATE of SQL.
    Date(Date),
    /// A TIME of SQL.
    Time(Time),
    /// A DATETIME or TIMESTAMP of SQL.
    DateTime(DateTime),
    /// Bytes of a column type (`base64:type252:…`).
    Opaque {
        /// MySQL's number of the column type.
        type_code: u8,
        /// The value's bytes.
        bytes: Vec<u8>,
    },
}

impl JsonValue {
    /// About how many bytes it takes beside its own size: texts, elements, members.
    pub fn heap_bytes(&self) -> usize {
        match self {
            JsonValue::String(text) => text.len(),
            JsonValue::Opaque { bytes, .. } => bytes.len(),
            JsonValue::Array(items) => {
                let item = |item: &JsonValue| size_of::<JsonValue>() + item.heap_bytes();
                items.iter().map(item).sum()
            }
            JsonValue::Object(members) => {
                let member = |(name, value): &(CompactString, JsonValue)| {
                    size_of::<(CompactString, JsonValue)>() + name.len() + value.heap_bytes()
                };
                members.iter().map(member).sum()
            }
            _ => 0,
        }
    }
}

/// Invalid JSON text (error 3140/3141), at a byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong, in MySQL's words.
    pub message: &'static str,
    /// Where in the text, in bytes.
    pub position: usize,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" at position {}", self.message, self.position)
    }
}

impl std::error::Error for JsonError {}

/// The deepest nesting of arrays and objects (error 3157 beyond).
pub const DEPTH_MAX: usize = 100;

impl Json {
    /// A document of this value.
    pub fn new(value: JsonValue) -> Json {
        Json(Arc::new(value))
    }

    /// The document's value.
    pub fn value(&self) -> &JsonValue {
        &self.0
    }

    /// The value itself, copied only if others share it.
    pub fn into_value(self) -> JsonValue {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone())
    }

    /// Reads JSON text (RFC 8259); fails at the first byte that is out of place.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        parser::parse(text, false).map(Json::new)
    }

    /// Reads what [`Json::write_text`] wrote, decimals included.
    pub fn parse_stored(text: &str) -> Result<Json, JsonError> {
        parser::parse(text, true).map(Json::new)
    }

    /// Prints as MySQL does: `{"a": 1, "b": [2, 3]}`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        self.0.write_text(out)
    }
}

impl std::fmt::Display for JsonValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::new();
        self.write_text(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&*self.0, f)
    }
}

/// `JSON_QUOTE`: a text as a JSON string.
pub fn write_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for b in cancel::parts(text.as_bytes()).flatten().copied() {
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1F => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[(b >> 4) as usize], HEX[(b & 15) as usize]]);
            }
            _ => out.push(b),
        }
    }
    out.push(b'"');
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | *b as u32) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            out.push(if i <= chunk.len() {
                ALPHABET[(word >> (18 - 6 * i) & 63) as usize]
            } else {
                b'='
            });
        }
    }
}

/// The members of two objects. `join` makes one of what both have of a key, or of what the second
/// has alone; `None` leaves the key out.
fn merge_members(
    first: Vec<(CompactString, JsonValue)>,
    second: Vec<(CompactString, JsonValue)>,
    join: impl Fn(Option<JsonValue>, JsonValue) -> Option<JsonValue>,
) -> Vec<(CompactString, JsonValue)> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let mut first = first.into_iter().peekable();
    for (key, value) in second {
        cancel::step();
        while let Some(before) = first.next_if(|(own, _)| compare_keys(own, &key).is_lt()) {
            merged.push(before);
        }
        let old = first.next_if(|(own, _)| *own == key);
        if let Some(value) = join(old.map(|(_, value)| value), value) {
            merged.push((key, value));
        }
    }
    merged.extend(first);
    merged
}

/// The order of an object's keys: by length, then bytes.
fn compare_keys(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl JsonValue {
    /// Appends the document as MySQL prints it.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        self.write(out, None)
    }

    /// `JSON_PRETTY`: a member or element a line, two spaces a level.
    pub fn write_pretty(&self, out: &mut Vec<u8>) {
        self.write(out, Some(0))
    }

    fn write(&self, out: &mut Vec<u8>, indent: Option<usize>) {
        cancel::step();
        let inner = indent.map(|n| n + 2);
        let separate = |out: &mut Vec<u8>, first: bool| match inner {
            _ if first && inner.is_none() => {}
            None => out.extend_from_slice(b", "),
            Some(n) => {
                out.extend_from_slice(if first { b"\n" } else { b",\n" });
                out.resize(out.len() + n, b' ');
            }
        };
        let close = |out: &mut Vec<u8>, bracket: u8, empty: bool| {
            if let (Some(n), false) = (indent, empty) {
                out.push(b'\n');
                out.resize(out.len() + n, b' ');
            }
            out.push(bracket);
        };
        match self {
            JsonValue::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    separate(out, i == 0);
                    item.write(out, inner);
                }
                close(out, b']', items.is_empty());
            }
            JsonValue::Object(members) => {
                out.push(b'{');
                for (i, (key, value)) in members.iter().enumerate() {
                    separate(out, i == 0);
                    write_quoted(key, out);
                    out.extend_from_slice(b": ");
                    value.write(out, inner);
                }
                close(out, b'}', members.is_empty());
            }
            JsonValue::String(s) => write_quoted(s, out),
            JsonValue::Date(_)
            | JsonValue::Time(_)
            | JsonValue::DateTime(_)
            | JsonValue::Opaque { .. } => {
                out.push(b'"');
                self.write_bare(out);
                out.push(b'"');
            }
            _ => self.write_bare(out),
        }
    }

    /// A scalar without quotes.
    fn write_bare(&self, out: &mut Vec<u8>) {
        match self {
            JsonValue::Null => out.extend_from_slice(b"null"),
            JsonValue::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
            JsonValue::Int(v) => number_text::write_int(*v, out),
            JsonValue::UInt(v) => number_text::write_uint(*v, out),
            JsonValue::Double(v) => {
                let start = out.len();
                number_text::write_double(*v, out);
                // A double is told from an integer.
                if !out[start..].iter().any(|b| matches!(b, b'.' | b'e')) {
                    out.extend_from_slice(b".0");
                }
            }
            JsonValue::Decimal(d) => d.write_text(out),
            JsonValue::String(s) => out.extend_from_slice(s.as_bytes()),
            JsonValue::Date(d) => d.write_text(out),
            JsonValue::Time(t) => t.write_text(6, out),
            JsonValue::DateTime(t) => t.write_text(6, out),
            JsonValue::Opaque { type_code, bytes } => {
                out.extend_from_slice(b"base64:type");
                number_text::write_uint(*type_code as u64, out);
                out.push(b':');
                write_base64(bytes, out);
            }
            JsonValue::Array(_) | JsonValue::Object(_) => self.write_text(out),
        }
    }

    /// `JSON_TYPE`.
    pub fn type_name(&self) -> &'static str {
        match self {
            JsonValue::Null => "NULL",
            JsonValue::Bool(_) => "BOOLEAN",
            JsonValue::Int(_) => "INTEGER",
            JsonValue::UInt(_) => "UNSIGNED INTEGER",
            JsonValue::Double(_) => "DOUBLE",
            JsonValue::Decimal(_) => "DECIMAL",
            JsonValue::String(_) => "STRING",
            JsonValue::Array(_) => "ARRAY",
            JsonValue::Object(_) => "OBJECT",
            JsonValue::Date(_) => "DATE",
            JsonValue::Time(_) => "TIME",
            JsonValue::DateTime(_) => "DATETIME",
            JsonValue::Opaque { type_code: 16, .. } => "BIT",
            JsonValue::Opaque {
                type_code: 15 | 249..=252 | 254,
                ..
            } => "BLOB",
            JsonValue::Opaque { .. } => "OPAQUE",
        }
    }

    /// `JSON_UNQUOTE`: a string's own text, or the printed value.
    pub fn unquoted(&self) -> String {
        let mut out = Vec::new();
        self.write_bare(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// The place of the value's kind in the order of kinds, NULL first.
    fn rank(&self) -> u8 {
        match self {
            JsonValue::Null => 0,
            JsonValue::Int(_)
            | JsonValue::UInt(_)
            | JsonValue::Double(_)
            | JsonValue::Decimal(_) => 1,
            JsonValue::String(_) => 2,
            JsonValue::Object(_) => 3,
            JsonValue::Array(_) => 4,
            JsonValue::Bool(_) => 5,
            JsonValue::Date(_) => 6,
            JsonValue::Time(_) => 7,
            JsonValue::DateTime(_) => 8,
            JsonValue::Opaque { .. } => 9,
        }
    }

    /// MySQL's order of JSON values. Objects are equal if their members are; their order otherwise
    /// is of no meaning.
    pub fn compare(&self, other: &JsonValue) -> Ordering {
        cancel::step();
        match (self, other) {
            (JsonValue::Int(a), JsonValue::Int(b)) => a.cmp(b),
            (JsonValue::UInt(a), JsonValue::UInt(b)) => a.cmp(b),
            (JsonValue::Double(a), JsonValue::Double(b)) => {
                a.partial_cmp(b).unwrap_or(Ordering::Equal)
            }
            (JsonValue::String(a), JsonValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (JsonValue::Bool(a), JsonValue::Bool(b)) => a.cmp(b),
            (JsonValue::Date(a), JsonValue::Date(b)) => a.cmp(b),
            (JsonValue::Time(a), JsonValue::Time(b)) => a.cmp(b),
            (JsonValue::DateTime(a), JsonValue::DateTime(b)) => a.cmp(b),
            (
                JsonValue::Opaque {
                    type_code: a,
                    bytes: x,
                },
                JsonValue::Opaque {
                    type_code: b,
                    bytes: y,
                },
            ) => a.cmp(b).then_with(|| x.cmp(y)),
            (JsonValue::Array(a), JsonValue::Array(b)) => {
                let unequal = a
                    .iter()
                    .zip(b)
                    .map(|(x, y)| x.compare(y))
                    .find(|o| o.is_ne());
                unequal.unwrap_or(a.len().cmp(&b.len()))
            }
            (JsonValue::Object(a), JsonValue::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                a.iter()
                    .zip(b)
                    .map(|((ka, va), (kb, vb))| compare_keys(ka, kb).then_with(|| va.compare(vb)))
                    .find(|o| o.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            (a, b) if a.rank() == 1 && b.rank() == 1 => match (a.to_decimal(), b.to_decimal()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a
                    .to_double()
                    .partial_cmp(&b.to_double())
                    .unwrap_or(Ordering::Equal),
            },
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    fn to_decimal(&self) -> Option<Decimal> {
        match self {
            JsonValue::Int(v) => Some(Decimal::from(*v)),
            JsonValue::UInt(v) => Some(Decimal::from(*v)),
            JsonValue::Double(v) => Decimal::from_f64(*v),
            JsonValue::Decimal(d) => Some(d.clone()),
            _ => None,
        }
    }

    fn to_double(&self) -> f64 {
        match self {
            JsonValue::Double(v) => *v,
            other => other.to_decimal().map_or(0.0, |d| d.to_f64()),
        }
    }

    fn equals(&self, other: &JsonValue) -> bool {
        self.compare(other).is_eq()
    }

    /// `JSON_CONTAINS(self, candidate)`. Elements are compared each with each: `check` is called
    /// before each comparison.
    ///
    /// # Errors
    /// What `check` fails with.
    pub fn contains<E>(
        &self,
        candidate: &JsonValue,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        check()?;
        match (self, candidate) {
            (JsonValue::Array(_), JsonValue::Array(wanted)) => {
                for item in wanted {
                    if !self.has_item(|own| own.contains(item, check))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (JsonValue::Array(_), wanted) => self.has_item(|own| own.contains(wanted, check)),
            (JsonValue::Object(_), JsonValue::Object(wanted)) => {
                for (key, value) in wanted {
                    match self.get(key) {
                        Some(own) if own.contains(value, check)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            (a, b) => Ok(a.equals(b)),
        }
    }

    /// `JSON_OVERLAPS`: whether two documents have an element or a member in common. Calls `check`
    /// as [`JsonValue::contains`] does.
    ///
    /// # Errors
    /// What `check` fails with.
    pub fn overlaps<E>(
        &self,
        other: &JsonValue,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<bool, E> {
        match (self, other) {
            (JsonValue::Array(_), JsonValue::Array(_)) => {
                self.has_item(|a| other.has_item(|b| check().map(|()| a.equals(b))))
            }
            (array @ JsonValue::Array(_), one) | (one, array @ JsonValue::Array(_)) => {
                array.has_item(|item| check().map(|()| item.equals(one)))
            }
            (JsonValue::Object(members), JsonValue::Object(_)) => {
                for (key, value) in members {
                    check()?;
                    if other.get(key).is_some_and(|own| value.equals(own)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (a, b) => Ok(a.equals(b)),
        }
    }

    /// Whether it is an array with such an element.
    fn has_item<E>(
        &self,
        mut is_wanted: impl FnMut(&JsonValue) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let JsonValue::Array(items) = self else {
            return Ok(false);
        };
        for item in items {
            if is_wanted(item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `JSON_DEPTH`: 1 for scalars and empty containers.
    pub fn depth(&self) -> usize {
        cancel::step();
        let deepest = match self {
            JsonValue::Array(items) => items.iter().map(JsonValue::depth).max(),
            JsonValue::Object(members) => members.iter().map(|(_, v)| v.depth()).max(),
            _ => None,
        };
        1 + deepest.unwrap_or(0)
    }

    /// `JSON_LENGTH`: elements, members, or 1.
    pub fn length(&self) -> usize {
        match self {
            JsonValue::Array(items) => items.len(),
            JsonValue::Object(members) => members.len(),
            _ => 1,
        }
    }

    /// `JSON_MERGE_PRESERVE`: arrays are joined, objects merged, all else becomes arrays first.
    #[must_use]
    pub fn merge_preserve(self, other: JsonValue) -> JsonValue {
        match (self, other) {
            (JsonValue::Object(a), JsonValue::Object(b)) => {
                JsonValue::Object(merge_members(a, b, |old, value| {
                    Some(match old {
                        Some(old) => old.merge_preserve(value),
                        None => value,
                    })
                }))
            }
            (a, b) => {
                let mut items = a.into_items();
                items.extend(b.into_items());
                JsonValue::Array(items)
            }
        }
    }

    fn into_items(self) -> Vec<JsonValue> {
        match self {
            JsonValue::Array(items) => items,
            other => vec![other],
        }
    }

    /// `JSON_MERGE_PATCH` (RFC 7396).
    #[must_use]
    pub fn merge_patch(self, patch: JsonValue) -> JsonValue {
        let JsonValue::Object(changes) = patch else {
            return patch;
        };
        let members = match self {
            JsonValue::Object(members) => members,
            _ => Vec::new(),
        };
        JsonValue::Object(merge_members(members, changes, |old, change| {
            let wanted = change != JsonValue::Null;
            wanted.then(|| old.unwrap_or(JsonValue::Null).merge_patch(change))
        }))
    }

    fn member(&self, key: &str) -> Result<usize, usize> {
        match self {
            JsonValue::Object(members) => members.binary_search_by(|(k, _)| compare_keys(k, key)),
            _ => Err(0),
        }
    }

    /// The value of an object's member.
    pub fn get(&self, key: &str) -> Option<&JsonValue> {
        match (self, self.member(key)) {
            (JsonValue::Object(members), Ok(i)) => Some(&members[i].1),
            _ => None,
        }
    }

    /// Sets an object's member; does nothing to other values.
    pub fn insert(&mut self, key: CompactString, value: JsonValue) {
        let place = self.member(&key);
        if let JsonValue::Object(members) = self {
            match place {
                Ok(i) => members[i].1 = value,
                Err(i) => members.insert(i, (key, value)),
            }
        }
    }

    fn remove(&mut self, key: &str) -> Option<JsonValue> {
        match (self.member(key), self) {
            (Ok(i), JsonValue::Object(members)) => Some(members.remove(i).1),
            _ => None,
        }
    }

    /// An object from members in any order; the last of equal keys wins.
    pub fn object(members: impl IntoIterator<Item = (CompactString, JsonValue)>) -> JsonValue {
        let mut all: Vec<(CompactString, JsonValue)> = members.into_iter().collect();
        all.sort_by(|(a, _), (b, _)| {
            cancel::step();
            compare_keys(a, b)
        });
        let mut out: Vec<(CompactString, JsonValue)> = Vec::with_capacity(all.len());
        for m in all {
            match out.last_mut() {
                Some(last) if last.0 == m.0 => *last = m,
                _ => out.push(m),
            }
        }
        JsonValue::Object(out)
    }

    /// The paths of all strings that `matches` accepts, in document order (`JSON_SEARCH`).
    pub fn search(&self, matches: &dyn Fn(&str) -> bool) -> Vec<String> {
        self.search_within(&[self], matches)
    }

    /// As [`search`](Self::search), only at and below some of the document's values. Paths are
    /// still from the document's root.
    pub fn search_within(
        &self,
        roots: &[&JsonValue],
        matches: &dyn Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let scope = Scope { roots, matches };
        self.search_below(&mut String::from("$"), false, &scope, &mut found);
        found
    }

    fn search_below(
        &self,
        path: &mut String,
        inside: bool,
        scope: &Scope<'_>,
        found: &mut Vec<String>,
    ) {
        cancel::step();
        let len = path.len();
        let inside = inside || scope.roots.iter().any(|root| std::ptr::eq(*root, self));
        match self {
            JsonValue::String(s) if inside && (scope.matches)(s) => found.push(path.clone()),
            JsonValue::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{i}]"));
                    item.search_below(path, inside, scope, found);
                    path.truncate(len);
                }
            }
            JsonValue::Object(members) => {
                for (key, value) in members {
                    path.push('.');
                    path::write_key(key, path);
                    value.search_below(path, inside, scope, found);
                    path.truncate(len);
                }
            }
            _ => {}
        }
    }
}

/// Where a search looks and for what.
struct Scope<'a> {
    roots: &'a [&'a JsonValue],
    matches: &'a dyn Fn(&str) -> bool,
}

#[cfg(test)]
mod tests;
