//! Names, and where they were written.

use compact_str::CompactString;
use std::fmt;
use std::ops::Deref;

/// Where something was written: byte offsets into the statement's text.
///
/// Spans never make two trees differ: a tree is equal to another when it says the same, wherever it
/// was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of `sql` the span covers; empty when it lies outside.
    pub fn of<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start as usize..self.end as usize)
            .unwrap_or(&[])
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

/// A name: of a column, table, alias, variable, character set… Its `Display` quotes it with
/// backticks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ident(pub CompactString);

impl Ident {
    /// A name from its unquoted text.
    pub fn new(text: impl AsRef<str>) -> Ident {
        Ident(CompactString::new(text))
    }

    /// The unquoted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Ident {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Ident {
    fn from(text: &str) -> Ident {
        Ident::new(text)
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.replace('`', "``"))
    }
}

/// `[schema.]name` of a table, view or routine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectName {
    /// The schema, when written.
    pub schema: Option<Ident>,
    /// The name itself.
    pub name: Ident,
}

/// `[[schema.]table.]column`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnRef {
    /// The schema, when written.
    pub schema: Option<Ident>,
    /// The table or alias, when written.
    pub table: Option<Ident>,
    /// The column.
    pub name: Ident,
}
