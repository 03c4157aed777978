//! Error 1064, and what else the parser refuses, as clients see it.

use porpoise_core::error::Error;
use porpoise_sql::{ParseError, ParseErrorKind};

/// The error that a client gets for what the parser refused.
pub(super) fn syntax_error(error: &ParseError) -> Error {
    match error.kind {
        ParseErrorKind::Syntax => Error::syntax_error(&error.near, error.line),
        // Whoever meters the parser knows why it is refused.
        ParseErrorKind::TooDeep | ParseErrorKind::Refused => Error::statement_too_deep(),
        ParseErrorKind::MisplacedInto => Error::misplaced_into(),
        ParseErrorKind::SupplementaryInName => {
            Error::warn_invalid_character_string("utf8mb4", bytes_shown(&error.near))
        }
        ParseErrorKind::LabelMismatch => Error::label_mismatch(&error.near),
    }
}

/// A text with each byte in hexadecimal that isn't ASCII's.
fn bytes_shown(text: &str) -> String {
    let mut shown = String::new();
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' => shown.push(char::from(byte)),
            byte => shown.push_str(&format!("\\x{byte:02X}")),
        }
    }
    shown
}

/// Error 1064 with the text at the position or behind the spaces there, and its line.
pub(super) fn syntax_error_near(sql: &[u8], position: usize) -> Error {
    /// How much of the rest of the statement the message shows.
    const NEAR_CHARS_MAX: usize = 80;
    let position = position.min(sql.len());
    let spaces = sql[position..]
        .iter()
        .take_while(|b| b.is_ascii_whitespace());
    let position = position + spaces.count();
    let line = 1 + sql[..position]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count();
    let near: String = String::from_utf8_lossy(&sql[position..])
        .chars()
        .take(NEAR_CHARS_MAX)
        .collect();
    Error::syntax_error(near, line)
}
