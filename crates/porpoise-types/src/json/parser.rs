//! JSON text to value (RFC 8259), saying what is wrong and where as MySQL does.

use super::{DEPTH_MAX, JsonError, JsonValue};
use crate::{Decimal, cancel};
use compact_str::CompactString;

/// `is_stored`: the text is one that [`JsonValue::write_text`] wrote.
pub(super) fn parse(text: &str, is_stored: bool) -> Result<JsonValue, JsonError> {
    let mut p = Parser {
        text: text.as_bytes(),
        at: 0,
        is_stored,
    };
    p.skip_spaces();
    if p.at == p.text.len() {
        return p.fail("The document is empty.");
    }
    let value = p.value(0)?;
    p.skip_spaces();
    if p.at < p.text.len() {
        return p.fail("The document root must not be followed by other values.");
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    is_stored: bool,
}

type Parsed<T> = Result<T, JsonError>;

impl Parser<'_> {
    fn fail<T>(&self, message: &'static str) -> Parsed<T> {
        Err(JsonError {
            message,
            position: self.at,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += found as usize;
        found
    }

    fn value(&mut self, depth: usize) -> Parsed<JsonValue> {
        cancel::step();
        cancel::made(size_of::<JsonValue>());
        match self.peek() {
            Some(b'{' | b'[') if depth == DEPTH_MAX => {
                self.fail("The JSON document exceeds the maximum depth.")
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(JsonValue::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word(b"null", JsonValue::Null),
            Some(b't') => self.word(b"true", JsonValue::Bool(true)),
            Some(b'f') => self.word(b"false", JsonValue::Bool(false)),
            _ => self.fail("Invalid value."),
        }
    }

    fn word(&mut self, word: &[u8], value: JsonValue) -> Parsed<JsonValue> {
        if !self.text[self.at..].starts_with(word) {
            self.at += 1;
            return self.fail("Invalid value.");
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Parsed<JsonValue> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_spaces();
        if self.eat(b'}') {
            return Ok(JsonValue::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("Missing a name for object member.");
            }
            let key = self.string()?;
            self.skip_spaces();
            if !self.eat(b':') {
                return self.fail("Missing a colon after a name of object member.");
            }
            self.skip_spaces();
            members.push((key, self.value(depth + 1)?));
            self.skip_spaces();
            if self.eat(b'}') {
                return Ok(JsonValue::object(members));
            }
            if !self.eat(b',') {
                return self.fail("Missing a comma or } after an object member.");
            }
            self.skip_spaces();
        }
    }

    fn array(&mut self, depth: usize) -> Parsed<JsonValue> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_spaces();
        if self.eat(b']') {
            return Ok(JsonValue::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_spaces();
            if self.eat(b']') {
                return Ok(JsonValue::Array(items));
            }
            if !self.eat(b',') {
                return self.fail("Missing a comma or ] after an array element.");
            }
            self.skip_spaces();
        }
    }

    fn number(&mut self) -> Parsed<JsonValue> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') && self.digits() == 0 {
            return self.fail("Invalid value.");
        }
        let mut whole = true;
        if self.eat(b'.') {
            whole = false;
            if self.digits() == 0 {
                return self.fail("Miss fraction part in number.");
            }
        }
        if self.eat(b'e') || self.eat(b'E') {
            whole = false;
            let _ = self.eat(b'-') || self.eat(b'+');
            if self.digits() == 0 {
                return self.fail("Miss exponent in number.");
            }
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if whole {
            if let Ok(v) = text.parse() {
                return Ok(JsonValue::Int(v));
            }
            if let Ok(v) = text.parse() {
                return Ok(JsonValue::UInt(v));
            }
        }
        let double = text.parse::<f64>();
        if self.is_stored
            && let Some(decimal) = stored_decimal(text, double.as_ref().ok().copied())
        {
            return Ok(JsonValue::Decimal(decimal));
        }
        match double {
            Ok(v) if v.is_finite() => Ok(JsonValue::Double(v)),
            _ => Err(JsonError {
                message: "Number too big to be stored in double.",
                position: start,
            }),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Parsed<CompactString> {
        let quote = self.at;
        self.at += 1;
        let mut out = CompactString::default();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|b| b != b'"' && b != b'\\' && b >= 0x20)
            {
                self.at += 1;
            }
            out.push_str(std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default());
            cancel::passed(start, self.at + 1);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return self.fail("Invalid encoding in string."),
                None => {
                    return Err(JsonError {
                        message: "Missing a closing quotation mark in string.",
                        position: quote,
                    });
                }
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let escaped = self.text.get(self.at + 1).copied();
        self.at += 2;
        Ok(match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex4()?;
                let code = match high {
                    0xD800..=0xDBFF => {
                        if !(self.eat(b'\\') && self.eat(b'u')) {
                            self.at = start;
                            return self.fail("The surrogate pair in string is invalid.");
                        }
                        let low = self.hex4()?;
                        if !(0xDC00..=0xDFFF).contains(&low) {
                            self.at = start;
                            return self.fail("The surrogate pair in string is invalid.");
                        }
                        0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                    }
                    code => code,
                };
                match char::from_u32(code) {
                    Some(c) => c,
                    None => {
                        self.at = start;
                        return self.fail("The surrogate pair in string is invalid.");
                    }
                }
            }
            _ => {
                self.at = start;
                return self.fail("Invalid escape character in string.");
            }
        })
    }

    fn hex4(&mut self) -> Parsed<u32> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .and_then(|d| std::str::from_utf8(d).ok());
        match digits
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .map(|d| u32::from_str_radix(d, 16))
        {
            Some(Ok(code)) => {
                self.at += 4;
                Ok(code)
            }
            _ => self.fail("Incorrect hex digit after \\u escape in string."),
        }
    }
}

/// The DECIMAL that a stored number was, as far as its text tells: it has other digits than the
/// double would have been written with.
fn stored_decimal(text: &str, double: Option<f64>) -> Option<Decimal> {
    /// Up to so many digits, one that ends in another digit than 0 is the double's text.
    const DIGITS: usize = 15;
    if text.contains('e') || (text.len() <= DIGITS && !text.ends_with('0')) {
        return None;
    }
    let mut written = Vec::new();
    JsonValue::Double(double?).write_text(&mut written);
    if written == text.as_bytes() {
        return None;
    }
    let parsed = Decimal::parse_prefix(text.as_bytes())?;
    (parsed.read == text.len() && !parsed.overflow).then_some(parsed.value)
}
