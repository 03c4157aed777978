//! Character sets: how texts cross the edges of the database.
//!
//! Inside, every text is UTF-8. A client or a column may declare another character set; then its
//! bytes are decoded on the way in, encoded on the way out, and what the set can't hold becomes `?`
//! and is counted. `latin1` is MySQL's: Windows code page 1252, with the five bytes that code page
//! leaves undefined mapped to the control characters of the same number.

use crate::cancel;
use std::borrow::Cow;

/// A character set that MySQL has and this crate converts (MySQL 8.4 manual, 12.9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Charset {
    /// `utf8mb4`: UTF-8 of up to four bytes a character.
    Utf8mb4,
    /// `utf8mb3`: UTF-8 of up to three bytes a character.
    Utf8mb3,
    /// `latin1`: Windows code page 1252, with its five gaps filled.
    Latin1,
    /// `ascii`: seven bits.
    Ascii,
    /// `binary`: bytes that are no text.
    Binary,
}

struct Row {
    charset: Charset,
    name: &'static str,
    description: &'static str,
    default_collation: u16,
    max_len: u8,
}

const TABLE: [Row; 5] = [
    Row {
        charset: Charset::Utf8mb4,
        name: "utf8mb4",
        description: "UTF-8 Unicode",
        default_collation: 255,
        max_len: 4,
    },
    Row {
        charset: Charset::Utf8mb3,
        name: "utf8mb3",
        description: "UTF-8 Unicode",
        default_collation: 33,
        max_len: 3,
    },
    Row {
        charset: Charset::Latin1,
        name: "latin1",
        description: "cp1252 West European",
        default_collation: 8,
        max_len: 1,
    },
    Row {
        charset: Charset::Ascii,
        name: "ascii",
        description: "US ASCII",
        default_collation: 11,
        max_len: 1,
    },
    Row {
        charset: Charset::Binary,
        name: "binary",
        description: "Binary pseudo charset",
        default_collation: 63,
        max_len: 1,
    },
];

/// The characters of bytes 0x80 to 0x9F in code page 1252.
const CP1252_HIGH: [u16; 32] = [
    0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
];

pub(crate) fn latin1_char(byte: u8) -> char {
    match byte {
        0x80..=0x9F => char::from_u32(CP1252_HIGH[(byte - 0x80) as usize] as u32).unwrap_or('?'),
        b => b as char,
    }
}

pub(crate) fn latin1_byte(c: char) -> Option<u8> {
    let code = c as u32;
    match code {
        0..=0x7F | 0xA0..=0xFF => Some(code as u8),
        _ => CP1252_HIGH
            .iter()
            .position(|&h| h as u32 == code)
            .map(|i| 0x80 + i as u8),
    }
}

impl Charset {
    /// All of them.
    pub const ALL: [Charset; 5] = [
        Charset::Utf8mb4,
        Charset::Utf8mb3,
        Charset::Latin1,
        Charset::Ascii,
        Charset::Binary,
    ];

    fn row(self) -> &'static Row {
        let row = &TABLE[self as usize];
        debug_assert!(row.charset == self);
        row
    }

    /// Finds a character set by its name, any case; `utf8` is utf8mb3, as in MySQL 8.4.
    pub fn by_name(name: &str) -> Option<Charset> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Charset::Utf8mb3);
        }
        TABLE
            .iter()
            .find(|r| r.name.eq_ignore_ascii_case(name))
            .map(|r| r.charset)
    }

    /// MySQL's name of it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The text that SHOW CHARACTER SET has of it.
    pub fn description(self) -> &'static str {
        self.row().description
    }

    /// The collation of texts that name none.
    pub fn default_collation(self) -> crate::Collation {
        crate::Collation::by_id(self.row().default_collation)
            .expect("every default collation is in the table")
    }

    /// The collation that compares code points: `utf8mb4_bin` and the like.
    pub fn binary_collation(self) -> crate::Collation {
        let name = format!("{}_bin", self.name());
        crate::Collation::by_name(&name).unwrap_or(self.default_collation())
    }

    /// The most bytes a character takes.
    pub fn max_len(self) -> u8 {
        self.row().max_len
    }

    /// Whether it has this character.
    pub fn can_hold(self, c: char) -> bool {
        match self {
            Charset::Utf8mb4 | Charset::Binary => true,
            Charset::Utf8mb3 => (c as u32) < 0x1_0000,
            Charset::Latin1 => latin1_byte(c).is_some(),
            Charset::Ascii => c.is_ascii(),
        }
    }

    /// Whether every character of `text` exists in this character set.
    pub fn can_hold_all(self, text: &str) -> bool {
        matches!(self, Charset::Utf8mb4 | Charset::Binary)
            || text.is_ascii()
            || cancel::chars(text).all(|c| self.can_hold(c))
    }

    /// Bytes of this character set to UTF-8. `Err` holds the offset of the first byte that is not
    /// valid in it. `binary` is read as UTF-8.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, usize> {
        match self {
            Charset::Utf8mb4 | Charset::Binary => std::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|e| e.valid_up_to()),
            Charset::Utf8mb3 => {
                let text = std::str::from_utf8(bytes).map_err(|e| e.valid_up_to())?;
                match text.char_indices().find(|(at, c)| {
                    cancel::passed(*at, at + c.len_utf8());
                    *c as u32 > 0xFFFF
                }) {
                    Some((at, _)) => Err(at),
                    None => Ok(Cow::Borrowed(text)),
                }
            }
            Charset::Latin1 => Ok(match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => Cow::Borrowed(text),
                _ => Cow::Owned(
                    cancel::parts(bytes)
                        .flatten()
                        .map(|&b| latin1_char(b))
                        .collect(),
                ),
            }),
            Charset::Ascii => match bytes.iter().position(|b| !b.is_ascii()) {
                Some(at) => Err(at),
                None => std::str::from_utf8(bytes)
                    .map(Cow::Borrowed)
                    .map_err(|e| e.valid_up_to()),
            },
        }
    }

    /// Bytes of this character set to UTF-8, with `?` for each byte that isn't valid in it.
    pub fn decode_lossy(self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            let valid = match self.decode(rest) {
                Ok(_) => rest.len(),
                Err(at) => at,
            };
            text.push_str(&self.decode(&rest[..valid]).unwrap_or_default());
            rest = &rest[valid..];
            if let [_, others @ ..] = rest {
                text.push('?');
                rest = others;
            }
        }
        text
    }

    /// The text with `?` for each character that doesn't exist in this character set.
    pub fn lossy(self, text: &str) -> String {
        let held = |c: char| if self.can_hold(c) { c } else { '?' };
        cancel::chars(text).map(held).collect()
    }

    /// UTF-8 text to bytes of this character set, appended to `out`; returns how many characters
    /// became `?`.
    pub fn encode(self, text: &str, out: &mut Vec<u8>) -> usize {
        if matches!(self, Charset::Utf8mb4 | Charset::Binary) || text.is_ascii() {
            out.extend_from_slice(text.as_bytes());
            return 0;
        }
        let mut lost = 0;
        for c in cancel::chars(text) {
            match self {
                Charset::Latin1 => out.push(latin1_byte(c).unwrap_or_else(|| {
                    lost += 1;
                    b'?'
                })),
                Charset::Utf8mb3 if self.can_hold(c) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => {
                    if c.is_ascii() {
                        out.push(c as u8);
                    } else {
                        lost += 1;
                        out.push(b'?');
                    }
                }
            }
        }
        lost
    }
}
