//! Names and texts as statements spell them.

/// A name between backticks.
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text between quotes, in the form comments and defaults have: quotes doubled, the rest escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Comments and other free text: bytes of the connection's character set, which is UTF-8 or decoded
/// before.
pub fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
