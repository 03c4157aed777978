//! Character sets: how texts cross the edges of the database.
//!
//! Inside, every text is UTF-8. A client or a column may declare another character set; then its
//! bytes are decoded on the way in, encoded on the way out, and what the set can't hold becomes `?`
//! and is counted. `latin1` is MySQL's: Windows code page 1252, with the five bytes that code page
//! leaves undefined mapped to the control characters of the same number.
//!
//! The sets of wide units (`ucs2`, `utf16`, `utf16le`, `utf32`) are for columns, expressions and
//! results; statements can't be written in them (MySQL 8.4 manual, 12.4). Bytes that don't fill
//! their first unit are preceded by zeros, as MySQL reads `_utf16 x'61'`.

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
    /// `ucs2`: two bytes a character, the higher first.
    Ucs2,
    /// `utf16`: one or two units of two bytes, the higher first.
    Utf16,
    /// `utf16le`: one or two units of two bytes, the lower first.
    Utf16le,
    /// `utf32`: four bytes a character, the highest first.
    Utf32,
}

struct Row {
    charset: Charset,
    name: &'static str,
    description: &'static str,
    default_collation: u16,
    max_len: u8,
}

const TABLE: [Row; 9] = [
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
    Row {
        charset: Charset::Ucs2,
        name: "ucs2",
        description: "UCS-2 Unicode",
        default_collation: 35,
        max_len: 2,
    },
    Row {
        charset: Charset::Utf16,
        name: "utf16",
        description: "UTF-16 Unicode",
        default_collation: 54,
        max_len: 4,
    },
    Row {
        charset: Charset::Utf16le,
        name: "utf16le",
        description: "UTF-16LE Unicode",
        default_collation: 56,
        max_len: 4,
    },
    Row {
        charset: Charset::Utf32,
        name: "utf32",
        description: "UTF-32 Unicode",
        default_collation: 60,
        max_len: 4,
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
    pub const ALL: [Charset; 9] = [
        Charset::Utf8mb4,
        Charset::Utf8mb3,
        Charset::Latin1,
        Charset::Ascii,
        Charset::Binary,
        Charset::Ucs2,
        Charset::Utf16,
        Charset::Utf16le,
        Charset::Utf32,
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

    /// The fewest bytes a character takes: the size of a unit where units are wide.
    pub fn min_len(self) -> u8 {
        match self {
            Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le => 2,
            Charset::Utf32 => 4,
            _ => 1,
        }
    }

    /// Whether a text is encoded as it is held: as UTF-8.
    pub fn is_utf8(self) -> bool {
        matches!(self, Charset::Utf8mb4 | Charset::Utf8mb3)
    }

    /// Whether its characters are Unicode's.
    pub fn is_unicode(self) -> bool {
        self.is_utf8() || self.min_len() > 1
    }

    /// Whether it has the characters above U+FFFF.
    pub fn has_supplementary(self) -> bool {
        self.is_unicode() && !matches!(self, Charset::Utf8mb3 | Charset::Ucs2)
    }

    /// Whether ASCII characters are encoded as themselves, a byte each.
    pub fn extends_ascii(self) -> bool {
        self.min_len() == 1
    }

    /// Whether it has this character.
    pub fn can_hold(self, c: char) -> bool {
        match self {
            Charset::Utf8mb4
            | Charset::Binary
            | Charset::Utf16
            | Charset::Utf16le
            | Charset::Utf32 => true,
            Charset::Utf8mb3 | Charset::Ucs2 => (c as u32) < 0x1_0000,
            Charset::Latin1 => latin1_byte(c).is_some(),
            Charset::Ascii => c.is_ascii(),
        }
    }

    /// How many bytes of a text, as UTF-8, take at most so many bytes in this character set.
    pub fn fitting(self, text: &str, most: usize) -> usize {
        let mut encoded = Vec::with_capacity(4);
        let mut taken = 0;
        let too_far = text.char_indices().find(|(at, c)| {
            cancel::passed(*at, at + c.len_utf8());
            encoded.clear();
            self.encode(c.encode_utf8(&mut [0; 4]), &mut encoded);
            taken += encoded.len();
            taken > most
        });
        too_far.map_or(text.len(), |(at, _)| at)
    }

    /// Whether every character of `text` exists in this character set.
    pub fn can_hold_all(self, text: &str) -> bool {
        self.can_hold(char::MAX) || text.is_ascii() || cancel::chars(text).all(|c| self.can_hold(c))
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
            Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 => {
                let mut text = String::with_capacity(bytes.len());
                for (at, unit) in self.wide_chars(bytes) {
                    text.push(unit.ok_or(at)?);
                }
                Ok(Cow::Owned(text))
            }
        }
    }

    /// The characters of bytes in a set of wide units, and where each begins; `None` for a unit
    /// that is none. The first unit may lack zeros at its front.
    fn wide_chars(self, bytes: &[u8]) -> impl Iterator<Item = (usize, Option<char>)> + '_ {
        let size = usize::from(self.min_len());
        let mut at = 0;
        let unit_at = move |at: usize| {
            let short = bytes.len() % size;
            let end = match (at, short) {
                (0, 1..) => short,
                _ => at + size,
            };
            let unit = bytes.get(at..end)?;
            let join = |unit: u32, byte: &u8| unit << 8 | u32::from(*byte);
            let code = match self {
                // What is lacking is the lower byte, which comes first.
                Charset::Utf16le if unit.len() < size => unit.iter().fold(0, join) << 8,
                Charset::Utf16le => unit.iter().rev().fold(0, join),
                _ => unit.iter().fold(0, join),
            };
            Some((code, end))
        };
        std::iter::from_fn(move || {
            let begin = at;
            let (code, end) = unit_at(begin)?;
            cancel::passed(begin, end);
            at = end;
            let low = match code {
                0xD800..0xDC00 if self != Charset::Ucs2 && size == 2 => unit_at(end),
                _ => None,
            };
            Some(match low {
                Some((low @ 0xDC00..0xE000, end)) => {
                    at = end;
                    let code = 0x1_0000 + ((code - 0xD800) << 10 | (low - 0xDC00));
                    (begin, char::from_u32(code))
                }
                _ => (begin, char::from_u32(code)),
            })
        })
    }

    /// Bytes of this character set to UTF-8, with `?` for each byte that isn't valid in it.
    pub fn decode_lossy(self, bytes: &[u8]) -> String {
        if !self.extends_ascii() {
            let chars = self.wide_chars(bytes);
            return chars.map(|(_, c)| c.unwrap_or('?')).collect();
        }
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
        if matches!(self, Charset::Utf8mb4 | Charset::Binary)
            || self.extends_ascii() && text.is_ascii()
        {
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
                Charset::Utf32 => out.extend_from_slice(&u32::from(c).to_be_bytes()),
                Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le => {
                    let c = match self.can_hold(c) {
                        true => c,
                        false => {
                            lost += 1;
                            '?'
                        }
                    };
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.extend_from_slice(&match self {
                            Charset::Utf16le => unit.to_le_bytes(),
                            _ => unit.to_be_bytes(),
                        });
                    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: [Charset; 4] = [
        Charset::Ucs2,
        Charset::Utf16,
        Charset::Utf16le,
        Charset::Utf32,
    ];

    fn encoded(charset: Charset, text: &str) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let lost = charset.encode(text, &mut out);
        (out, lost)
    }

    #[test]
    fn a_text_comes_back_from_wide_units() {
        for charset in WIDE {
            for text in ["", "a", "é日", "\0\u{FFFF}"] {
                let (bytes, lost) = encoded(charset, text);
                assert_eq!((charset.decode(&bytes).as_deref(), lost), (Ok(text), 0));
                assert_eq!(charset.decode_lossy(&bytes), text);
            }
        }
        for charset in &WIDE[1..] {
            let (bytes, _) = encoded(*charset, "a😀b");
            assert_eq!(charset.decode(&bytes).as_deref(), Ok("a😀b"));
        }
        assert_eq!(encoded(Charset::Ucs2, "😀"), (vec![0, b'?'], 1));
    }

    #[test]
    fn the_first_unit_may_lack_zeros() {
        assert_eq!(Charset::Utf16.decode(b"abc").as_deref(), Ok("a\u{6263}"));
        assert_eq!(Charset::Utf16le.decode(b"a").as_deref(), Ok("\u{6100}"));
        assert_eq!(
            Charset::Utf32.decode(&[1, 0xF6, 0]).as_deref(),
            Ok("\u{1F600}")
        );
    }

    #[test]
    fn what_is_no_character_is_told_by_its_place() {
        assert_eq!(Charset::Utf16.decode(&[0, b'a', 0xD8, 0, 0, b'b']), Err(2));
        assert_eq!(
            Charset::Utf16.decode_lossy(&[0, b'a', 0xD8, 0, 0, b'b']),
            "a?b"
        );
        assert_eq!(Charset::Utf16.decode(&[0xDC, 0]), Err(0));
        assert_eq!(Charset::Utf32.decode(&[0, 0x11, 0, 0]), Err(0));
        assert_eq!(Charset::Ucs2.decode(&[0xD8, 0x3D, 0xDE, 0]), Err(0));
        // Bytes of any number and any value decode to something.
        for charset in WIDE {
            for length in 0..9 {
                for byte in [0, 0x61, 0xD8, 0xDC, 0xFF] {
                    charset.decode_lossy(&vec![byte; length]);
                }
            }
        }
    }

    #[test]
    fn a_text_is_cut_by_what_it_takes_encoded() {
        assert_eq!(Charset::Utf16.fitting("ab😀c", 4), 2);
        assert_eq!(Charset::Utf16.fitting("ab😀c", 8), 6);
        assert_eq!(Charset::Utf32.fitting("é", 4), 2);
        assert_eq!(Charset::Utf32.fitting("éa", 4), 2);
    }
}
