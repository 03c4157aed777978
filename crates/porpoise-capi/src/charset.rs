//! Character sets: what they are called, how long their characters are, and how texts are escaped
//! in them.
//!
//! Which bytes of a text are escaped is the same in every set; but in the sets of East Asia a
//! character's second byte can look like a backslash or a quote. So escaping steps over characters,
//! by the lengths that a set's row tells.

use crate::abi::{CharsetInfo, MyCharsetInfo, Text};
use std::ffi::{c_char, c_uint};

/// How long a character is, by its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One byte each.
    Single,
    Utf8 {
        longest: usize,
    },
    /// Two bytes, of which the first is in one of these ranges.
    Double([(u8, u8); 2]),
    /// As EUC: 0x8F begins three bytes, the others of the high half two.
    Euc,
    /// Units of so many bytes; no client character set.
    Wide(u32),
}

const NONE: (u8, u8) = (1, 0);

const fn row(
    nr: u32,
    charset: &'static std::ffi::CStr,
    name: &'static std::ffi::CStr,
    form: Form,
) -> Row {
    let (min, max, valid): (u32, u32, _) = match form {
        Form::Single => (1, 1, None),
        Form::Utf8 { longest } => (1, longest as u32, Some(valid_utf8 as _)),
        Form::Double(_) => (1, 2, None),
        Form::Euc => (1, 3, None),
        Form::Wide(unit) => (unit, 4, None),
    };
    Row {
        info: CharsetInfo {
            nr,
            state: 1,
            csname: charset.as_ptr(),
            name: name.as_ptr(),
            dir: std::ptr::null(),
            codepage: 0,
            encoding: charset.as_ptr(),
            char_minlen: min,
            char_maxlen: max,
            mb_charlen: None,
            mb_valid: valid,
        },
        form,
    }
}

pub struct Row {
    pub info: CharsetInfo,
    form: Form,
}

// SAFETY: its pointers lead to literals.
unsafe impl Sync for Row {}

const SINGLE: Form = Form::Single;
const UTF8: Form = Form::Utf8 { longest: 3 };
const UTF8MB4: Form = Form::Utf8 { longest: 4 };
const GBK: Form = Form::Double([(0x81, 0xFE), NONE]);
const BIG5: Form = Form::Double([(0xA1, 0xF9), NONE]);
const SJIS: Form = Form::Double([(0x81, 0x9F), (0xE0, 0xFC)]);
const EUC: Form = Form::Double([(0xA1, 0xFE), NONE]);

/// Of each character set the default collation first, then others by number. Numbers: MySQL 8.4
/// manual, 12.10.
#[rustfmt::skip]
static TABLE: &[Row] = &[
    row(45,  c"utf8mb4",  c"utf8mb4_general_ci",     UTF8MB4),
    row(33,  c"utf8mb3",  c"utf8mb3_general_ci",     UTF8),
    row(8,   c"latin1",   c"latin1_swedish_ci",      SINGLE),
    row(63,  c"binary",   c"binary",                 SINGLE),
    row(11,  c"ascii",    c"ascii_general_ci",       SINGLE),
    row(1,   c"big5",     c"big5_chinese_ci",        BIG5),
    row(3,   c"dec8",     c"dec8_swedish_ci",        SINGLE),
    row(4,   c"cp850",    c"cp850_general_ci",       SINGLE),
    row(6,   c"hp8",      c"hp8_english_ci",         SINGLE),
    row(7,   c"koi8r",    c"koi8r_general_ci",       SINGLE),
    row(9,   c"latin2",   c"latin2_general_ci",      SINGLE),
    row(10,  c"swe7",     c"swe7_swedish_ci",        SINGLE),
    row(12,  c"ujis",     c"ujis_japanese_ci",       Form::Euc),
    row(13,  c"sjis",     c"sjis_japanese_ci",       SJIS),
    row(16,  c"hebrew",   c"hebrew_general_ci",      SINGLE),
    row(18,  c"tis620",   c"tis620_thai_ci",         SINGLE),
    row(19,  c"euckr",    c"euckr_korean_ci",        GBK),
    row(22,  c"koi8u",    c"koi8u_general_ci",       SINGLE),
    row(24,  c"gb2312",   c"gb2312_chinese_ci",      EUC),
    row(25,  c"greek",    c"greek_general_ci",       SINGLE),
    row(26,  c"cp1250",   c"cp1250_general_ci",      SINGLE),
    row(28,  c"gbk",      c"gbk_chinese_ci",         GBK),
    row(30,  c"latin5",   c"latin5_turkish_ci",      SINGLE),
    row(32,  c"armscii8", c"armscii8_general_ci",    SINGLE),
    row(35,  c"ucs2",     c"ucs2_general_ci",        Form::Wide(2)),
    row(36,  c"cp866",    c"cp866_general_ci",       SINGLE),
    row(37,  c"keybcs2",  c"keybcs2_general_ci",     SINGLE),
    row(38,  c"macce",    c"macce_general_ci",       SINGLE),
    row(39,  c"macroman", c"macroman_general_ci",    SINGLE),
    row(40,  c"cp852",    c"cp852_general_ci",       SINGLE),
    row(41,  c"latin7",   c"latin7_general_ci",      SINGLE),
    row(51,  c"cp1251",   c"cp1251_general_ci",      SINGLE),
    row(54,  c"utf16",    c"utf16_general_ci",       Form::Wide(2)),
    row(56,  c"utf16le",  c"utf16le_general_ci",     Form::Wide(2)),
    row(57,  c"cp1256",   c"cp1256_general_ci",      SINGLE),
    row(59,  c"cp1257",   c"cp1257_general_ci",      SINGLE),
    row(60,  c"utf32",    c"utf32_general_ci",       Form::Wide(4)),
    row(92,  c"geostd8",  c"geostd8_general_ci",     SINGLE),
    row(95,  c"cp932",    c"cp932_japanese_ci",      SJIS),
    row(97,  c"eucjpms",  c"eucjpms_japanese_ci",    Form::Euc),
    row(5,   c"latin1",   c"latin1_german1_ci",      SINGLE),
    row(15,  c"latin1",   c"latin1_danish_ci",       SINGLE),
    row(31,  c"latin1",   c"latin1_german2_ci",      SINGLE),
    row(46,  c"utf8mb4",  c"utf8mb4_bin",            UTF8MB4),
    row(47,  c"latin1",   c"latin1_bin",             SINGLE),
    row(48,  c"latin1",   c"latin1_general_ci",      SINGLE),
    row(49,  c"latin1",   c"latin1_general_cs",      SINGLE),
    row(65,  c"ascii",    c"ascii_bin",              SINGLE),
    row(83,  c"utf8mb3",  c"utf8mb3_bin",            UTF8),
    row(192, c"utf8mb3",  c"utf8mb3_unicode_ci",     UTF8),
    row(214, c"utf8mb3",  c"utf8mb3_unicode_520_ci", UTF8),
    row(224, c"utf8mb4",  c"utf8mb4_unicode_ci",     UTF8MB4),
    row(246, c"utf8mb4",  c"utf8mb4_unicode_520_ci", UTF8MB4),
    row(255, c"utf8mb4",  c"utf8mb4_0900_ai_ci",     UTF8MB4),
    row(278, c"utf8mb4",  c"utf8mb4_0900_as_cs",     UTF8MB4),
    row(305, c"utf8mb4",  c"utf8mb4_0900_as_ci",     UTF8MB4),
    row(309, c"utf8mb4",  c"utf8mb4_0900_bin",       UTF8MB4),
];

/// The character set of a program that names none.
pub fn default() -> &'static Row {
    &TABLE[0]
}

impl Row {
    fn name(&self) -> &'static [u8] {
        Text(self.info.csname).bytes().unwrap_or_default()
    }

    /// By a character set's name, any case; `utf8` is utf8mb3.
    pub fn by_name(name: &[u8]) -> Option<&'static Row> {
        let name = if name.eq_ignore_ascii_case(b"utf8") {
            b"utf8mb3"
        } else {
            name
        };
        TABLE
            .iter()
            .find(|row| row.name().eq_ignore_ascii_case(name))
    }

    /// By a collation's number.
    pub fn by_number(number: c_uint) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.info.nr == number)
    }

    /// The row that a pointer into the table belongs to.
    pub fn of(info: *const CharsetInfo) -> &'static Row {
        TABLE
            .iter()
            .find(|row| std::ptr::eq(&row.info, info))
            .unwrap_or(default())
    }

    pub fn describe(&self) -> MyCharsetInfo {
        MyCharsetInfo {
            number: self.info.nr,
            state: 0,
            csname: self.info.csname,
            name: self.info.name,
            comment: std::ptr::null(),
            dir: std::ptr::null(),
            mbminlen: self.info.char_minlen,
            mbmaxlen: self.info.char_maxlen,
        }
    }

    /// How many bytes the character at the beginning of `text` has, if it has more than one.
    fn character(&self, text: &[u8]) -> usize {
        let first = text.first().copied().unwrap_or(0);
        let length = match self.form {
            Form::Single | Form::Wide(_) => 1,
            Form::Utf8 { longest } => match first {
                0xC2..=0xDF => 2,
                0xE0..=0xEF => 3,
                0xF0..=0xF4 if longest == 4 => 4,
                _ => 1,
            },
            Form::Double(ranges) => {
                let leads = ranges
                    .iter()
                    .any(|&(from, to)| (from..=to).contains(&first));
                if leads { 2 } else { 1 }
            }
            Form::Euc => match first {
                0x8F => 3,
                0x8E | 0xA1..=0xFE => 2,
                _ => 1,
            },
        };
        let whole = match self.form {
            Form::Utf8 { .. } | Form::Euc => text
                .get(1..length)
                .is_some_and(|rest| rest.iter().all(|byte| *byte >= 0x80)),
            // The second byte of a double one is never below '@' but for sets that this library
            // doesn't know.
            _ => text
                .get(1..length)
                .is_some_and(|rest| rest.iter().all(|byte| *byte >= 0x40)),
        };
        if whole { length } else { 1 }
    }

    /// Escapes a text for a literal: with backslashes, or where those are no escapes, by doubling
    /// quotes.
    pub fn escape(&self, text: &[u8], backslashes: bool, out: &mut Vec<u8>) {
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            let length = self.character(rest);
            if length == 1 {
                let escaped = match byte {
                    0 => b'0',
                    b'\n' => b'n',
                    b'\r' => b'r',
                    0x1A => b'Z',
                    b'\'' | b'"' | b'\\' => byte,
                    _ => 0,
                };
                if backslashes && escaped != 0 {
                    out.extend_from_slice(&[b'\\', escaped]);
                } else if !backslashes && byte == b'\'' {
                    out.extend_from_slice(b"''");
                } else {
                    out.push(byte);
                }
            } else {
                out.extend_from_slice(&rest[..length]);
            }
            rest = &rest[length..];
        }
    }
}

extern "C" fn valid_utf8(start: *const c_char, end: *const c_char) -> c_uint {
    let length = (end as usize).saturating_sub(start as usize);
    let bytes = crate::abi::bytes_of(start, length);
    match default().character(bytes) {
        1 => 0,
        length => length as c_uint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(charset: &str, text: &[u8], backslashes: bool) -> Vec<u8> {
        let mut out = Vec::new();
        Row::by_name(charset.as_bytes())
            .unwrap()
            .escape(text, backslashes, &mut out);
        out
    }

    #[test]
    fn what_ends_a_literal_is_escaped() {
        assert_eq!(
            escaped("utf8", b"a'b\"c\\d\n\r\0\x1A", true),
            b"a\\'b\\\"c\\\\d\\n\\r\\0\\Z"
        );
        assert_eq!(escaped("latin1", b"a'b\\c", false), b"a''b\\c");
    }

    #[test]
    fn a_backslash_that_is_half_a_character_is_not_escaped() {
        assert_eq!(escaped("gbk", b"\xBF\x5C'", true), b"\xBF\x5C\\'");
        assert_eq!(escaped("utf8mb4", "é'".as_bytes(), true), "é\\'".as_bytes());
        // A lead byte before a quote leads nothing.
        assert_eq!(escaped("gbk", b"\xBF'", true), b"\xBF\\'");
    }

    #[test]
    fn every_character_set_is_found_by_its_name_and_number() {
        for row in TABLE {
            assert!(Row::by_name(row.name()).is_some());
            assert_eq!(
                Row::by_number(row.info.nr).map(|found| found.info.name),
                Some(row.info.name)
            );
        }
    }
}
