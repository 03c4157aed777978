//! JSON paths: `$.a[0].*`, `$**.b`, `$[last - 1]`, `$[1 to 3]` (MySQL 8.4 manual, 13.5, "JSON Path
//! Syntax").
//!
//! A path is `$` and legs. `[0]`, `[last]` and ranges holding them also match a value that is not
//! an array, as if it were one of one element.

use super::{JsonValue, write_quoted};
use compact_str::CompactString;
use std::collections::HashSet;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Leg>);

/// A leg of a path: one step down from a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Leg {
    /// `.name`, `."any name"`
    Member(CompactString),
    /// `.*`
    AnyMember,
    /// `[3]`, `[last - 1]`
    Cell(Index),
    /// `[*]`
    AnyCell,
    /// `[1 to last]`
    Range(Index, Index),
    /// `**`: the value itself and everything below it.
    Descend,
}

/// An array index, from the front or from the back (`last - n`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Index {
    /// The n-th from the front, beginning at 0.
    First(u32),
    /// The n-th from the back; 0 is the last.
    Last(u32),
}

/// Where an index points in an array of some length.
enum ArrayPosition {
    BeforeFront,
    At(usize),
    BeyondEnd,
}

impl Index {
    fn position_in(self, len: usize) -> ArrayPosition {
        match self {
            Index::First(n) if (n as usize) < len => ArrayPosition::At(n as usize),
            Index::First(_) => ArrayPosition::BeyondEnd,
            Index::Last(n) if (n as usize) < len => ArrayPosition::At(len - 1 - n as usize),
            Index::Last(_) => ArrayPosition::BeforeFront,
        }
    }
}

/// Invalid path expression (error 3143), around this character position, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathError {
    /// Where in the text, in bytes.
    pub position: usize,
}

impl std::fmt::Display for PathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Invalid JSON path expression. The error is around character position {}.",
            self.position
        )
    }
}

impl std::error::Error for PathError {}

/// What `JSON_SET` and its kin may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `JSON_SET`: replace or add.
    Set,
    /// `JSON_INSERT`: add only.
    Insert,
    /// `JSON_REPLACE`: replace only.
    Replace,
}

impl Change {
    fn may_replace(self) -> bool {
        self != Change::Insert
    }
    fn may_insert(self) -> bool {
        self != Change::Replace
    }
}

fn is_identifier(key: &str) -> bool {
    let mut chars = key.chars();
    chars
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// Writes a key as a path does: quoted unless it is an identifier.
pub(super) fn write_key(key: &str, out: &mut String) {
    if is_identifier(key) {
        out.push_str(key);
    } else {
        let mut quoted = Vec::new();
        write_quoted(key, &mut quoted);
        out.push_str(&String::from_utf8_lossy(&quoted));
    }
}

/// Reads a path's characters.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }
    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }
    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }
    fn error(&self) -> PathError {
        PathError {
            position: self.text[..self.at.min(self.text.len())]
                .chars()
                .count()
                .max(1),
        }
    }
    fn number(&mut self) -> Result<u32, PathError> {
        let len = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let n = self.rest()[..len].parse().map_err(|_| self.error())?;
        self.at += len;
        Ok(n)
    }
    fn index(&mut self) -> Result<Index, PathError> {
        if !self.eat("last") {
            return self.number().map(Index::First);
        }
        let before = self.at;
        self.skip_spaces();
        if !self.eat("-") {
            self.at = before;
            return Ok(Index::Last(0));
        }
        self.skip_spaces();
        self.number().map(Index::Last)
    }
    fn array_leg(&mut self) -> Result<Leg, PathError> {
        self.skip_spaces();
        let leg = if self.eat("*") {
            Leg::AnyCell
        } else {
            let from = self.index()?;
            self.skip_spaces();
            if self.eat("to") {
                self.skip_spaces();
                let to = self.index()?;
                // A range that can never hold anything is an error.
                match (from, to) {
                    (Index::First(a), Index::First(b)) if a > b => return Err(self.error()),
                    (Index::Last(a), Index::Last(b)) if a < b => return Err(self.error()),
                    _ => Leg::Range(from, to),
                }
            } else {
                Leg::Cell(from)
            }
        };
        self.skip_spaces();
        if self.eat("]") {
            Ok(leg)
        } else {
            Err(self.error())
        }
    }
    fn member(&mut self) -> Result<Leg, PathError> {
        self.skip_spaces();
        if self.eat("*") {
            return Ok(Leg::AnyMember);
        }
        if self.rest().starts_with('"') {
            let bytes = self.rest().as_bytes();
            let mut end = 1;
            while bytes.get(end).is_some_and(|&b| b != b'"') {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            let quoted = self.rest().get(..end + 1).ok_or(self.error())?;
            let Ok(JsonValue::String(key)) = super::parser::parse(quoted, false) else {
                return Err(self.error());
            };
            self.at += end + 1;
            return Ok(Leg::Member(key));
        }
        let rest = self.rest();
        let len = rest
            .find(|c: char| matches!(c, '.' | '[' | '*') || c.is_whitespace())
            .unwrap_or(rest.len());
        let key = &rest[..len];
        if !is_identifier(key) {
            return Err(self.error());
        }
        let leg = Leg::Member(key.into());
        self.at += len;
        Ok(leg)
    }
}

impl JsonPath {
    /// Reads a path; fails at the first byte that is out of place.
    pub fn parse(text: &str) -> Result<JsonPath, PathError> {
        let mut r = Reader { text, at: 0 };
        r.skip_spaces();
        if !r.eat("$") {
            return Err(r.error());
        }
        let mut legs = Vec::new();
        loop {
            r.skip_spaces();
            if r.rest().is_empty() {
                break;
            }
            let leg = if r.eat(".") {
                r.member()?
            } else if r.eat("[") {
                r.array_leg()?
            } else if r.eat("**") {
                Leg::Descend
            } else {
                return Err(r.error());
            };
            if leg == Leg::Descend && legs.last() == Some(&Leg::Descend) {
                return Err(r.error());
            }
            legs.push(leg);
        }
        if legs.last() == Some(&Leg::Descend) {
            return Err(r.error());
        }
        Ok(JsonPath(legs))
    }

    /// The legs behind `$`.
    pub fn legs(&self) -> &[Leg] {
        &self.0
    }

    /// Whether it has `*`, `**` or a range, so that it may match many values.
    pub fn is_wild(&self) -> bool {
        self.0.iter().any(|l| {
            matches!(
                l,
                Leg::AnyMember | Leg::AnyCell | Leg::Range(..) | Leg::Descend
            )
        })
    }

    /// Every value the path matches, in document order, each once.
    pub fn find<'a>(&self, root: &'a JsonValue) -> Vec<&'a JsonValue> {
        let mut found = vec![root];
        let mut descends = false;
        for leg in &self.0 {
            let mut next = Vec::new();
            for value in found {
                step(value, leg, &mut next);
            }
            descends |= *leg == Leg::Descend;
            if descends {
                // A value is below each of those around it.
                let mut seen = HashSet::new();
                next.retain(|value| seen.insert(std::ptr::from_ref::<JsonValue>(value)));
            }
            found = next;
        }
        found
    }

    /// `JSON_SET`, `JSON_INSERT`, `JSON_REPLACE`; does nothing for a wild path, which the caller
    /// refuses.
    pub fn change(&self, root: &mut JsonValue, value: JsonValue, change: Change) {
        let Some((last, parents)) = self.0.split_last() else {
            if change.may_replace() {
                *root = value;
            }
            return;
        };
        let Some(parent) = find_mut(root, parents) else {
            return;
        };
        match last {
            Leg::Member(key) => {
                let exists = parent.get(key).is_some();
                if if exists {
                    change.may_replace()
                } else {
                    change.may_insert()
                } {
                    parent.insert(key.clone(), value);
                }
            }
            Leg::Cell(index) => {
                if let JsonValue::Array(items) = parent {
                    match index.position_in(items.len()) {
                        ArrayPosition::At(i) if change.may_replace() => items[i] = value,
                        ArrayPosition::BeyondEnd if change.may_insert() => items.push(value),
                        ArrayPosition::BeforeFront if change.may_insert() => items.insert(0, value),
                        _ => {}
                    }
                    return;
                }
                // A value that is no array is an array of one.
                match index.position_in(1) {
                    ArrayPosition::At(_) if change.may_replace() => *parent = value,
                    ArrayPosition::BeyondEnd if change.may_insert() => {
                        *parent = JsonValue::Array(vec![
                            std::mem::replace(parent, JsonValue::Null),
                            value,
                        ]);
                    }
                    ArrayPosition::BeforeFront if change.may_insert() => {
                        *parent = JsonValue::Array(vec![
                            value,
                            std::mem::replace(parent, JsonValue::Null),
                        ]);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// `JSON_REMOVE`; does nothing for `$` itself and for wild paths, which the caller refuses.
    pub fn remove(&self, root: &mut JsonValue) {
        let Some((last, parents)) = self.0.split_last() else {
            return;
        };
        match (find_mut(root, parents), last) {
            (Some(parent), Leg::Member(key)) => {
                parent.remove(key);
            }
            (Some(JsonValue::Array(items)), Leg::Cell(index)) => {
                if let ArrayPosition::At(i) = index.position_in(items.len()) {
                    items.remove(i);
                }
            }
            _ => {}
        }
    }

    /// `JSON_ARRAY_APPEND`: a value that is no array becomes one.
    pub fn array_append(&self, root: &mut JsonValue, value: JsonValue) {
        match find_mut(root, &self.0) {
            Some(JsonValue::Array(items)) => items.push(value),
            Some(other) => {
                *other = JsonValue::Array(vec![std::mem::replace(other, JsonValue::Null), value])
            }
            None => {}
        }
    }

    /// `JSON_ARRAY_INSERT`: the path's last leg must be a cell; the elements from there on move.
    pub fn array_insert(&self, root: &mut JsonValue, value: JsonValue) {
        let Some((Leg::Cell(index), parents)) = self.0.split_last() else {
            return;
        };
        if let Some(JsonValue::Array(items)) = find_mut(root, parents) {
            let at = match index.position_in(items.len()) {
                ArrayPosition::BeforeFront => 0,
                ArrayPosition::At(i) => i,
                ArrayPosition::BeyondEnd => items.len(),
            };
            items.insert(at, value);
        }
    }
}

/// What one leg leads to from a value, in document order.
fn step<'a>(value: &'a JsonValue, leg: &Leg, found: &mut Vec<&'a JsonValue>) {
    match (leg, value) {
        (Leg::Member(key), _) => found.extend(value.get(key)),
        (Leg::AnyMember, JsonValue::Object(members)) => {
            found.extend(members.iter().map(|(_, value)| value));
        }
        (Leg::AnyCell, JsonValue::Array(items)) => found.extend(items),
        (Leg::Cell(index), _) => {
            let items = elements(value);
            if let ArrayPosition::At(i) = index.position_in(items.len()) {
                found.push(&items[i]);
            }
        }
        (Leg::Range(from, to), _) => {
            let items = elements(value);
            let start = match from.position_in(items.len()) {
                ArrayPosition::BeforeFront => 0,
                ArrayPosition::At(i) => i,
                ArrayPosition::BeyondEnd => return,
            };
            let end = match to.position_in(items.len()) {
                ArrayPosition::BeforeFront => return,
                ArrayPosition::At(i) => i + 1,
                ArrayPosition::BeyondEnd => items.len(),
            };
            found.extend(items.get(start..end).unwrap_or_default());
        }
        (Leg::Descend, _) => {
            found.push(value);
            match value {
                JsonValue::Array(items) => {
                    items.iter().for_each(|value| step(value, leg, found));
                }
                JsonValue::Object(members) => {
                    members
                        .iter()
                        .for_each(|(_, value)| step(value, leg, found));
                }
                _ => {}
            }
        }
        (Leg::AnyMember | Leg::AnyCell, _) => {}
    }
}

/// An array's elements; another value as one element.
fn elements(value: &JsonValue) -> &[JsonValue] {
    match value {
        JsonValue::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

/// The one value of a path that is not wild.
fn find_mut<'a>(root: &'a mut JsonValue, legs: &[Leg]) -> Option<&'a mut JsonValue> {
    let mut at = root;
    for leg in legs {
        at = match leg {
            Leg::Member(key) => match (at.member(key), at) {
                (Ok(i), JsonValue::Object(members)) => &mut members.get_mut(i)?.1,
                _ => return None,
            },
            Leg::Cell(index) => match at {
                JsonValue::Array(items) => match index.position_in(items.len()) {
                    ArrayPosition::At(i) => items.get_mut(i)?,
                    _ => return None,
                },
                other => match index.position_in(1) {
                    ArrayPosition::At(_) => other,
                    _ => return None,
                },
            },
            _ => return None,
        };
    }
    Some(at)
}
