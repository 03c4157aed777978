//! What a parser says when it doesn't understand.

use std::fmt;

/// How many characters of the statement an error repeats.
const NEAR_MAX: usize = 80;

/// Why a statement could not be parsed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Why.
    pub kind: ParseErrorKind,
    /// Byte offset of the token that didn't fit.
    pub offset: usize,
    /// Its line in the statement, from 1.
    pub line: usize,
    /// The text from that token on, at most 80 characters.
    pub near: String,
}

/// Why a statement could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The token is not allowed here: error 1064.
    Syntax,
    /// Nested deeper than [`crate::parser::DEPTH_MAX`], SELECTs deeper than
    /// [`crate::parser::SELECTS_NESTED_MAX`], or a tree higher than
    /// [`crate::parser::HEIGHT_MAX`]: error 1436, `Thread stack overrun`.
    TooDeep,
    /// INTO before a set operation: error 3954.
    MisplacedInto,
    /// A name with a character beyond U+FFFF: error 1300. `near` is the name alone.
    SupplementaryInName,
    /// The statement is larger than the [`crate::Meter`] lets it be.
    Refused,
    /// A label behind END that is not the beginning's: error 1310. `near` is the label alone.
    LabelMismatch,
}

impl ParseError {
    /// An error at byte `offset`, without its line and text. The parser makes many that it never
    /// tells of, each of which would go through the statement up to there.
    pub(crate) fn unplaced(kind: ParseErrorKind, offset: usize) -> ParseError {
        ParseError {
            kind,
            offset,
            line: 0,
            near: String::new(),
        }
    }

    /// The error with its line, and with its text unless it has one, of `sql`, whose statement began
    /// at byte `start`.
    pub(crate) fn placed(mut self, sql: &[u8], start: usize) -> ParseError {
        let before = sql.get(start..self.offset).unwrap_or(&[]);
        self.line = 1 + before.iter().filter(|b| **b == b'\n').count();
        if self.near.is_empty() {
            let rest = sql.get(self.offset..).unwrap_or(&[]);
            // Four bytes are the most a character takes.
            let rest = String::from_utf8_lossy(rest.get(..NEAR_MAX * 4).unwrap_or(rest));
            self.near = rest.chars().take(NEAR_MAX).collect();
        }
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParseErrorKind::Syntax => write!(
                f,
                "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version \
                 for the right syntax to use near '{}' at line {}",
                self.near, self.line
            ),
            ParseErrorKind::MisplacedInto => {
                write!(f, "INTO must stand at the end of a UNION")
            }
            ParseErrorKind::SupplementaryInName => {
                write!(f, "Invalid character in the name {}", self.near)
            }
            ParseErrorKind::LabelMismatch => write!(f, "End-label {} without match", self.near),
            ParseErrorKind::Refused => write!(f, "The statement is too large"),
            ParseErrorKind::TooDeep => {
                write!(f, "The statement is nested too deeply near '{}'", self.near)
            }
        }
    }
}

impl std::error::Error for ParseError {}
