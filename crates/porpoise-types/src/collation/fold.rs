//! The folded collations: one weight a character, and two for a few of `latin1_german2_ci`'s.
//!
//! The weight of a character is a number that orders like the collation does; keys hold it in the
//! manner of UTF-8, so that ASCII takes a byte and the order of bytes is the order of weights. All
//! of them are PAD SPACE.

use super::{
    INVALID, KeySink, Kind, Latin1Table, PadRuns, append_codes, char_at, common_ascii,
    compare_rest_with_spaces,
};
use crate::Charset;
use crate::cancel;
use crate::charset::latin1_byte;
use std::cmp::Ordering;

#[rustfmt::skip]
static SWEDISH: [u8; 256] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F,
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3A, 0x3B, 0x3C, 0x3D, 0x3E, 0x3F,
    0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F,
    0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x5B, 0x5C, 0x5D, 0x5E, 0x5F,
    0x60, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C, 0x4D, 0x4E, 0x4F,
    0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F,
    0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F,
    0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F,
    0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF,
    0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xBB, 0xBC, 0xBD, 0xBE, 0xBF,
    0x41, 0x41, 0x41, 0x41, 0x5C, 0x5B, 0x5C, 0x43, 0x45, 0x45, 0x45, 0x45, 0x49, 0x49, 0x49, 0x49,
    0x44, 0x4E, 0x4F, 0x4F, 0x4F, 0x4F, 0x5D, 0xD7, 0xD8, 0x55, 0x55, 0x55, 0x59, 0x59, 0xDE, 0xDF,
    0x41, 0x41, 0x41, 0x41, 0x5C, 0x5B, 0x5C, 0x43, 0x45, 0x45, 0x45, 0x45, 0x49, 0x49, 0x49, 0x49,
    0x44, 0x4E, 0x4F, 0x4F, 0x4F, 0x4F, 0x5D, 0xF7, 0xD8, 0x55, 0x55, 0x55, 0x59, 0x59, 0xDE, 0xFF,
];

#[rustfmt::skip]
static GENERAL: [u8; 256] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F,
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3A, 0x3B, 0x3C, 0x3D, 0x3E, 0x3F,
    0x40, 0x41, 0x51, 0x53, 0x57, 0x5B, 0x65, 0x67, 0x69, 0x6B, 0x75, 0x77, 0x79, 0x7B, 0x7D, 0x81,
    0x8F, 0x91, 0x93, 0x95, 0x98, 0x9A, 0xA4, 0xA6, 0xA8, 0xAA, 0xAF, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7,
    0xB8, 0x41, 0x51, 0x53, 0x57, 0x5B, 0x65, 0x67, 0x69, 0x6B, 0x75, 0x77, 0x79, 0x7B, 0x7D, 0x81,
    0x8F, 0x91, 0x93, 0x95, 0x98, 0x9A, 0xA4, 0xA6, 0xA8, 0xAA, 0xAF, 0xB9, 0xBA, 0xBB, 0xBC, 0xBF,
    0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF,
    0xD0, 0xD1, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF,
    0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xEB, 0xEC, 0xED, 0xEE, 0xEF,
    0xF0, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF,
    0x43, 0x45, 0x47, 0x49, 0x4B, 0x4D, 0x4F, 0x55, 0x5D, 0x5F, 0x61, 0x63, 0x6D, 0x6F, 0x71, 0x73,
    0x59, 0x7F, 0x83, 0x85, 0x87, 0x89, 0x8B, 0xBD, 0x8D, 0x9C, 0x9E, 0xA0, 0xA2, 0xAC, 0xB1, 0x97,
    0x43, 0x45, 0x47, 0x49, 0x4B, 0x4D, 0x4F, 0x55, 0x5D, 0x5F, 0x61, 0x63, 0x6D, 0x6F, 0x71, 0x73,
    0x59, 0x7F, 0x83, 0x85, 0x87, 0x89, 0x8B, 0xBE, 0x8D, 0x9C, 0x9E, 0xA0, 0xA2, 0xAC, 0xB1, 0xAE,
];

/// A table of weights from groups of letters that are equal, in their order: they take the place of
/// the letters from A to Z and what comes behind them, and all other characters follow in their own.
/// Of each of the pairs the second is the same as the first, which stays where it is.
const fn ordered(groups: &[&[u8]], pairs: &[(u8, u8)]) -> [u8; 256] {
    let mut table = [0; 256];
    let mut is_placed = [false; 256];
    let mut at = 0;
    while at < groups.len() {
        let mut i = 0;
        while i < groups[at].len() {
            is_placed[groups[at][i] as usize] = true;
            i += 1;
        }
        at += 1;
    }
    let mut at = 0;
    while at < pairs.len() {
        is_placed[pairs[at].1 as usize] = true;
        at += 1;
    }
    let mut weight: usize = 0;
    let mut c = 0;
    while c < 256 {
        if c == b'A' as usize {
            let mut at = 0;
            while at < groups.len() {
                let mut i = 0;
                while i < groups[at].len() {
                    table[groups[at][i] as usize] = weight as u8;
                    i += 1;
                }
                weight += 1;
                at += 1;
            }
        }
        if !is_placed[c] {
            table[c] = weight as u8;
            weight += 1;
        }
        c += 1;
    }
    let mut at = 0;
    while at < pairs.len() {
        table[pairs[at].1 as usize] = table[pairs[at].0 as usize];
        at += 1;
    }
    table
}

#[rustfmt::skip]
static GENERAL_CS: [u8; 256] = ordered(&[
    b"A", b"a", b"\xC0", b"\xE0", b"\xC1", b"\xE1", b"\xC2", b"\xE2", b"\xC3", b"\xE3", b"\xC4",
    b"\xE4", b"\xC5", b"\xE5", b"\xC6", b"\xE6", b"B", b"b", b"C", b"c", b"\xC7", b"\xE7", b"D",
    b"d", b"\xD0", b"\xF0", b"E", b"e", b"\xC8", b"\xE8", b"\xC9", b"\xE9", b"\xCA", b"\xEA",
    b"\xCB", b"\xEB", b"F", b"f", b"G", b"g", b"H", b"h", b"I", b"i", b"\xCC", b"\xEC", b"\xCD",
    b"\xED", b"\xCE", b"\xEE", b"\xCF", b"\xEF", b"J", b"j", b"K", b"k", b"L", b"l", b"M", b"m",
    b"N", b"n", b"\xD1", b"\xF1", b"O", b"o", b"\xD2", b"\xF2", b"\xD3", b"\xF3", b"\xD4",
    b"\xF4", b"\xD5", b"\xF5", b"\xD6", b"\xF6", b"\xD8", b"\xF8", b"P", b"p", b"Q", b"q", b"R",
    b"r", b"S", b"s", b"\xDF", b"T", b"t", b"U", b"u", b"\xD9", b"\xF9", b"\xDA", b"\xFA",
    b"\xDB", b"\xFB", b"\xDC", b"\xFC", b"V", b"v", b"W", b"w", b"X", b"x", b"Y", b"y", b"\xDD",
    b"\xFD", b"\xFF", b"Z", b"z", b"\xDE", b"\xFE", b"[", b"\\", b"]", b"^", b"_", b"`", b"{", b"|", b"}", b"~", b"\xD7", b"\xF7",
], &[]);

#[rustfmt::skip]
static GERMAN1: [u8; 256] = ordered(&[
    b"Aa\xC0\xC1\xC2\xC3\xC4\xC5\xC6\xE0\xE1\xE2\xE3\xE4\xE5\xE6", b"Bb", b"Cc\xC7\xE7", b"Dd",
    b"Ee\xC8\xC9\xCA\xCB\xE8\xE9\xEA\xEB", b"Ff", b"Gg", b"Hh",
    b"Ii\xCC\xCD\xCE\xCF\xEC\xED\xEE\xEF", b"Jj", b"Kk", b"Ll", b"Mm", b"Nn\xD1\xF1",
    b"Oo\xD2\xD3\xD4\xD5\xD6\xD8\xF2\xF3\xF4\xF5\xF6\xF8", b"Pp", b"Qq", b"Rr", b"Ss\xDF", b"Tt",
    b"Uu\xD9\xDA\xDB\xDC\xF9\xFA\xFB\xFC", b"Vv", b"Ww", b"Xx", b"Yy\xDD\xFD", b"Zz",
], &[(0xD0, 0xF0), (0xDE, 0xFE)]);

#[rustfmt::skip]
static DANISH: [u8; 256] = ordered(&[
    b"Aa\xC0\xC1\xC2\xC3\xE0\xE1\xE2\xE3", b"Bb", b"Cc\xC7\xE7", b"Dd\xD0\xF0",
    b"Ee\xC8\xC9\xCA\xCB\xE8\xE9\xEA\xEB", b"Ff", b"Gg", b"Hh",
    b"Ii\xCC\xCD\xCE\xCF\xEC\xED\xEE\xEF", b"Jj", b"Kk", b"Ll", b"Mm", b"Nn\xD1\xF1",
    b"Oo\xD2\xD3\xD4\xD5\xF2\xF3\xF4\xF5", b"Pp", b"Qq", b"Rr", b"Ss", b"Tt",
    b"Uu\xD9\xDA\xDB\xF9\xFA\xFB", b"Vv", b"Ww", b"Xx", b"Yy\xDC\xDD\xFC\xFD", b"Zz",
    b"[\xC4\xC6\xE4\xE6", b"\\\xD6\xD8\xF8\xF6", b"]\xC5\xE5",
], &[(0xDE, 0xFE)]);

#[rustfmt::skip]
static SPANISH: [u8; 256] = ordered(&[
    b"Aa\xC0\xC1\xC2\xC3\xC4\xC5\xC6\xE0\xE1\xE2\xE3\xE4\xE5\xE6", b"Bb", b"Cc\xC7\xE7",
    b"Dd\xD0\xF0", b"Ee\xC8\xC9\xCA\xCB\xE8\xE9\xEA\xEB", b"Ff", b"Gg", b"Hh",
    b"Ii\xCC\xCD\xCE\xCF\xEC\xED\xEE\xEF", b"Jj", b"Kk", b"Ll", b"Mm", b"Nn", b"\xD1\xF1",
    b"Oo\xD2\xD3\xD4\xD5\xD6\xD8\xF2\xF3\xF4\xF5\xF6\xF8", b"Pp", b"Qq", b"Rr", b"Ss", b"\xDF",
    b"Tt", b"Uu\xD9\xDA\xDB\xDC\xF9\xFA\xFB\xFC", b"Vv", b"Ww", b"Xx", b"Yy\xDD\xFD\xFF", b"Zz",
    b"\xDE\xFE", b"[", b"\\", b"]", b"^", b"_", b"`", b"{", b"|", b"}", b"~", b"\xD7", b"\xF7",
], &[]);

/// `latin1_german2_ci` (DIN-2) where a character is looked at alone, as LIKE does: letters that are
/// compared as two are equal only to themselves in the other case.
#[rustfmt::skip]
static GERMAN2: [u8; 256] = {
    let groups: [&[u8]; 26] = [
        b"Aa\xC0\xC1\xC2\xC3\xC5\xE0\xE1\xE2\xE3\xE5", b"Bb", b"Cc\xC7\xE7", b"Dd\xD0\xF0",
        b"Ee\xC8\xC9\xCA\xCB\xE8\xE9\xEA\xEB", b"Ff", b"Gg", b"Hh",
        b"Ii\xCC\xCD\xCE\xCF\xEC\xED\xEE\xEF", b"Jj", b"Kk", b"Ll", b"Mm", b"Nn\xD1\xF1",
        b"Oo\xD2\xD3\xD4\xD5\xF2\xF3\xF4\xF5", b"Pp", b"Qq", b"Rr", b"Ss", b"Tt",
        b"Uu\xD9\xDA\xDB\xF9\xFA\xFB", b"Vv", b"Ww", b"Xx", b"Yy\xDD\xFD\xFF", b"Zz",
    ];
    let pairs: [&[u8]; 6] = [
        b"\\\xC6\xE6", b"\xC4\xE4", b"\xD6\xF6", b"\xDC\xFC", b"\xD8\xF8", b"\xDE\xFE",
    ];
    folded(&pairs, folded(&groups, IDENTITY_256))
};

/// What `latin1_german2_ci` compares as two letters.
const GERMAN2_EXPANSIONS: &[(char, [u32; 2])] = &[
    ('Ä', [b'A' as u32, b'E' as u32]),
    ('Ö', [b'O' as u32, b'E' as u32]),
    ('Ü', [b'U' as u32, b'E' as u32]),
    ('ß', [b'S' as u32, b'S' as u32]),
    ('ä', [b'A' as u32, b'E' as u32]),
    ('ö', [b'O' as u32, b'E' as u32]),
    ('ü', [b'U' as u32, b'E' as u32]),
];

const IDENTITY_256: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = i as u8;
        i += 1;
    }
    table
};

/// A table in which the members of each group have the first one's code as their weight.
const fn folded(groups: &[&[u8]], mut table: [u8; 256]) -> [u8; 256] {
    let mut at = 0;
    while at < groups.len() {
        let mut i = 0;
        while i < groups[at].len() {
            table[groups[at][i] as usize] = groups[at][0];
            i += 1;
        }
        at += 1;
    }
    table
}

/// Blocks of 256 code points that `general_ci` folds, in the order of the table in
/// `unicode/general_ci.bin`.
const GENERAL_CI_BLOCKS: [u8; 11] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x1E, 0x1F, 0x21, 0x24, 0xFF,
];
static GENERAL_CI: &[u8; 11 * 512] = include_bytes!("../../unicode/general_ci.bin");

fn general_ci(c: u32) -> u32 {
    if c > 0xFFFF {
        // Every supplementary character is equal to every other; invalid bytes stay apart.
        return if c >= INVALID { c } else { 0xFFFD };
    }
    match GENERAL_CI_BLOCKS.iter().position(|&b| b as u32 == c >> 8) {
        Some(block) => {
            let at = block * 512 + (c & 0xFF) as usize * 2;
            u16::from_le_bytes([GENERAL_CI[at], GENERAL_CI[at + 1]]) as u32
        }
        None => c,
    }
}

fn latin1_weight(table: &[u8; 256], c: u32) -> u32 {
    match char::from_u32(c).and_then(latin1_byte) {
        Some(byte) => table[byte as usize] as u32,
        // Not in the character set: after all that are.
        None => 0x100 + c,
    }
}

/// A folded collation's weights.
pub(super) struct Table {
    ascii: &'static [u8; 128],
    wide: fn(u32) -> u32,
    /// Whether ASCII characters but the space have weights of one byte above the space's.
    ascii_is_short: bool,
    /// Characters beyond ASCII that are compared as two, with the weights of these.
    expansions: &'static [(char, [u32; 2])],
}

const fn ascii_part(table: &[u8; 256]) -> [u8; 128] {
    let mut out = [0; 128];
    let mut i = 0;
    while i < 128 {
        out[i] = table[i];
        i += 1;
    }
    out
}

const IDENTITY: [u8; 128] = {
    let mut t = [0; 128];
    let mut i = 0;
    while i < 128 {
        t[i] = i as u8;
        i += 1;
    }
    t
};
static BINARY_ASCII: [u8; 128] = IDENTITY;
static UPPER_ASCII: [u8; 128] = {
    let mut t = IDENTITY;
    t.make_ascii_uppercase();
    t
};
static GENERAL_ASCII: [u8; 128] = ascii_part(&GENERAL);

static BINARY_TABLE: Table = Table {
    ascii: &BINARY_ASCII,
    wide: |c| c,
    ascii_is_short: true,
    expansions: &[],
};
static LATIN1_BINARY_TABLE: Table = Table {
    ascii: &BINARY_ASCII,
    wide: |c| {
        char::from_u32(c)
            .and_then(latin1_byte)
            .map_or(0x100 + c, |b| b as u32)
    },
    ascii_is_short: true,
    expansions: &[],
};
static GENERAL_CI_TABLE: Table = Table {
    ascii: &UPPER_ASCII,
    wide: general_ci,
    ascii_is_short: true,
    expansions: &[],
};
static SWEDISH_TABLE: Table = Table {
    ascii: &UPPER_ASCII,
    wide: |c| latin1_weight(&SWEDISH, c),
    ascii_is_short: true,
    expansions: &[],
};
static GENERAL_TABLE: Table = Table {
    ascii: &GENERAL_ASCII,
    wide: |c| latin1_weight(&GENERAL, c),
    ascii_is_short: false,
    expansions: &[],
};
static GENERAL_CS_ASCII: [u8; 128] = ascii_part(&GENERAL_CS);
static GERMAN1_ASCII: [u8; 128] = ascii_part(&GERMAN1);
static DANISH_ASCII: [u8; 128] = ascii_part(&DANISH);
static SPANISH_ASCII: [u8; 128] = ascii_part(&SPANISH);
static GENERAL_CS_TABLE: Table = Table {
    ascii: &GENERAL_CS_ASCII,
    wide: |c| latin1_weight(&GENERAL_CS, c),
    ascii_is_short: false,
    expansions: &[],
};
static GERMAN1_TABLE: Table = Table {
    ascii: &GERMAN1_ASCII,
    wide: |c| latin1_weight(&GERMAN1, c),
    ascii_is_short: false,
    expansions: &[],
};
static GERMAN2_TABLE: Table = Table {
    ascii: &UPPER_ASCII,
    wide: |c| latin1_weight(&GERMAN2, c),
    ascii_is_short: true,
    expansions: GERMAN2_EXPANSIONS,
};
static DANISH_TABLE: Table = Table {
    ascii: &DANISH_ASCII,
    wide: |c| latin1_weight(&DANISH, c),
    ascii_is_short: false,
    expansions: &[],
};
static SPANISH_TABLE: Table = Table {
    ascii: &SPANISH_ASCII,
    wide: |c| latin1_weight(&SPANISH, c),
    ascii_is_short: false,
    expansions: &[],
};
static ASCII_TABLE: Table = Table {
    ascii: &UPPER_ASCII,
    wide: |c| c,
    ascii_is_short: true,
    expansions: &[],
};

impl Table {
    pub(super) fn of(kind: Kind, charset: Charset) -> &'static Table {
        match kind {
            Kind::Binary | Kind::Uca { .. } if charset == Charset::Latin1 => &LATIN1_BINARY_TABLE,
            Kind::Binary | Kind::Uca { .. } => &BINARY_TABLE,
            Kind::GeneralCi => &GENERAL_CI_TABLE,
            Kind::Latin1 { table } => match table {
                Latin1Table::Swedish => &SWEDISH_TABLE,
                Latin1Table::General => &GENERAL_TABLE,
                Latin1Table::GeneralCs => &GENERAL_CS_TABLE,
                Latin1Table::German1 => &GERMAN1_TABLE,
                Latin1Table::German2 => &GERMAN2_TABLE,
                Latin1Table::Danish => &DANISH_TABLE,
                Latin1Table::Spanish => &SPANISH_TABLE,
            },
            Kind::AsciiCi => &ASCII_TABLE,
        }
    }

    /// How many weights a character has at most.
    pub(super) fn weights_max(&self) -> usize {
        if self.expansions.is_empty() { 1 } else { 2 }
    }

    /// The weights of a character that is compared as two.
    #[inline]
    fn expansion(&self, c: u32) -> Option<[u32; 2]> {
        let found = self.expansions.iter().find(|(from, _)| *from as u32 == c);
        found.map(|(_, weights)| *weights)
    }

    /// What the key of a text that begins with an ASCII character begins with; 0 where that isn't known.
    pub(super) fn first_byte(&self, byte: u8) -> u8 {
        match self.ascii_is_short && (b'!'..0x80).contains(&byte) {
            true => self.ascii[byte as usize],
            false => 0,
        }
    }

    /// The weight of a character looked at alone.
    #[inline]
    pub(super) fn weight(&self, c: u32) -> u32 {
        if c < 0x80 {
            self.ascii[c as usize] as u32
        } else {
            (self.wide)(c)
        }
    }

    fn weights<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        let (mut at, mut second) = (0, None);
        std::iter::from_fn(move || {
            if second.is_some() {
                return second.take();
            }
            (at < text.len()).then(|| {
                let (c, next) = char_at(text, at);
                cancel::passed(at, next);
                at = next;
                match self.expansion(c) {
                    Some(weights) => {
                        second = Some(weights[1]);
                        weights[0]
                    }
                    None => self.weight(c),
                }
            })
        })
    }
}

const SPACE: u8 = b' ';

pub(super) fn compare(a: &[u8], b: &[u8], table: &Table) -> Ordering {
    let mut at = common_ascii(a, b);
    for (&x, &y) in a[at..].iter().zip(&b[at..]) {
        if !(x | y).is_ascii() {
            return compare_wide(&a[at..], &b[at..], table);
        }
        let (x, y) = (table.ascii[x as usize], table.ascii[y as usize]);
        if x != y {
            return x.cmp(&y);
        }
        cancel::passed(at, at + 1);
        at += 1;
    }
    compare_wide(&a[at..], &b[at..], table)
}

fn compare_wide(a: &[u8], b: &[u8], table: &Table) -> Ordering {
    let (mut a, mut b) = (table.weights(a), table.weights(b));
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (None, None) => return Ordering::Equal,
            (Some(x), None) => {
                return compare_rest_with_spaces(std::iter::once(x).chain(a), SPACE as u32);
            }
            (None, Some(y)) => {
                return compare_rest_with_spaces(std::iter::once(y).chain(b), SPACE as u32)
                    .reverse();
            }
        }
    }
}

fn write_weights(text: &[u8], table: &Table, out: &mut impl KeySink) -> PadRuns {
    let mut runs = PadRuns::new(SPACE);
    let mut at = 0;
    loop {
        let window = (text.len() - at).min(out.window());
        if window == 0 {
            break;
        }
        let plain = match table.ascii_is_short {
            true => text[at..at + window]
                .iter()
                .take_while(|b| (b'!'..0x80).contains(*b))
                .count(),
            false => 0,
        };
        if plain > 0 {
            runs.before(false, out);
            append_codes(&text[at..at + plain], table.ascii, out);
            cancel::passed(at, at + plain);
            at += plain;
            continue;
        }
        let (c, next) = char_at(text, at);
        cancel::passed(at, next);
        at = next;
        if c == SPACE as u32 {
            runs.pending += 1;
            continue;
        }
        if let Some(weights) = table.expansion(c) {
            runs.before(false, out);
            for weight in weights {
                write_weight(weight, out);
            }
            continue;
        }
        let w = table.weight(c);
        runs.before(w < SPACE as u32, out);
        write_weight(w, out);
    }
    runs
}

fn write_weight(w: u32, out: &mut impl KeySink) {
    match w {
        0..=0x7F => out.put(w as u8),
        0x80..=0x7FF => out.append(&[0xC0 | (w >> 6) as u8, 0x80 | (w & 0x3F) as u8]),
        0x800..=0xFFFF => out.append(&[
            0xE0 | (w >> 12) as u8,
            0x80 | (w >> 6 & 0x3F) as u8,
            0x80 | (w & 0x3F) as u8,
        ]),
        _ => out.append(&[
            0xF0 | (w >> 18 & 7) as u8,
            0x80 | (w >> 12 & 0x3F) as u8,
            0x80 | (w >> 6 & 0x3F) as u8,
            0x80 | (w & 0x3F) as u8,
        ]),
    }
}

pub(super) fn sort_key(text: &[u8], table: &Table, out: &mut impl KeySink) {
    write_weights(text, table, out).end(out);
}

/// Each character's weight, or both of them, in so many bytes, the highest first; a greater one is cut.
pub(super) fn weight_string(text: &[u8], table: &Table, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * bytes);
    for weight in table.weights(text) {
        out.extend_from_slice(&weight.to_be_bytes()[4 - bytes..]);
    }
    out
}

pub(super) fn sort_key_prefix(text: &[u8], table: &Table, out: &mut impl KeySink) {
    write_weights(text, table, out);
}

pub(super) fn sort_key_len(key: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += key.get(at..)?.iter().position(|&b| b == SPACE)? + 1;
        match PadRuns::skip(key, at)? {
            Ok(end) => return Some(end),
            Err(next) => at = next,
        }
    }
}
