//! JSON paths: `$.a[0].*`, `$**.b`, `$[last - 1]`, `$[1 to 3]`.

use super::JsonValue;
use compact_str::CompactString;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Leg>);

#[derive(Clone, Debug, PartialEq)]
pub enum Leg {
    Member(CompactString),
    AnyMember,
    Cell(Index),
    AnyCell,
    Range(Index, Index),
    /// `**`
    Descend,
}

/// An array index, from the front or from the back (`last - n`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Index {
    First(u32),
    Last(u32),
}

/// Invalid path expression (error 3143), around this character position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathError {
    pub position: usize,
}

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

impl JsonPath {
    pub fn parse(text: &str) -> Result<JsonPath, PathError> {
        let _ = text;
        Err(PathError { position: 0 })
    }
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
    /// Every value the path matches, in document order.
    pub fn find<'a>(&self, root: &'a JsonValue) -> Vec<&'a JsonValue> {
        let _ = root;
        Vec::new()
    }
    /// `JSON_SET`, `JSON_INSERT`, `JSON_REPLACE`; the path must not be wild.
    pub fn change(&self, root: &mut JsonValue, value: JsonValue, change: Change) {
        let _ = (root, value, change);
    }
    /// `JSON_REMOVE`.
    pub fn remove(&self, root: &mut JsonValue) {
        let _ = root;
    }
    /// `JSON_ARRAY_APPEND`.
    pub fn array_append(&self, root: &mut JsonValue, value: JsonValue) {
        let _ = (root, value);
    }
    /// `JSON_ARRAY_INSERT`: the path's last leg must be a cell.
    pub fn array_insert(&self, root: &mut JsonValue, value: JsonValue) {
        let _ = (root, value);
    }
}
