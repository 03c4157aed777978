//! Collations: how texts compare, sort, hash, fold and match (MySQL 8.4 manual, chapter 12).
//!
//! Texts come as UTF-8 bytes whatever the collation's character set; bytes that are not UTF-8
//! compare as characters above all others. A collation turns a text into weights and compares
//! those. Three families do all of them:
//!
//! ```text
//! folded    one weight a character, from a table of upper cases    general_ci, latin1, ascii, bin
//! bytes     the text itself                                        binary, utf8mb4_0900_bin
//! uca       zero or more elements a character, in 1 to 3 levels    utf8mb4_0900_*, *_unicode_ci
//! ```
//!
//! ASCII, which is most of what databases compare, never leaves a loop over one 128-byte table.
//!
//! **PAD SPACE** collations compare as if the shorter text went on with spaces for ever; then
//! `'a' = 'a  '` and `'a\t' < 'a'`. **NO PAD** collations don't.
//!
//! **Sort keys** order as the texts do when compared byte by byte, are equal for texts that compare
//! equal, and know their own end. A key of a PAD SPACE collation writes each run of n spaces as
//!
//! ```text
//! space  1  n        what follows is less than a space
//! space  2           the end
//! space  3  ~n       what follows is greater than a space
//! ```
//!
//! which is exactly how padded texts order. The other keys end with 0x00 (after each level) or 00
//! 00.
//!
//! The weights of the `0900` collations are Unicode's own (UCA 9.0.0, in `unicode/`), contractions
//! between adjacent characters included. The `unicode_ci` and `unicode_520_ci` collations, which
//! MySQL bases on UCA 4.0.0 and 5.2.0, use the same weights here: letters assigned or reordered by
//! Unicode since then may sort differently.

mod fold;
mod languages;
mod matching;
mod tailoring;
mod uca;

pub use languages::Language;
pub use matching::{like, try_like};

use crate::{Charset, cancel};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::ops::Range;

/// A collation, by MySQL's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collation(u16);

/// What a collation compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The text's bytes or code points.
    Binary,
    /// Unicode collation algorithm, this many levels.
    Uca {
        /// 1: letters; 2: accents, too; 3: case, too.
        levels: u8,
        /// Whose letters have an order of their own.
        language: Option<Language>,
    },
    /// One weight a code point: its upper case without accent.
    GeneralCi,
    /// One weight a Latin-1 character.
    Latin1 {
        /// Which weights.
        table: Latin1Table,
    },
    /// ASCII, case folded.
    AsciiCi,
}

/// A table of weights of Latin-1 characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Latin1Table {
    /// `latin1_swedish_ci`.
    Swedish,
    /// `latin1_general_ci`.
    General,
    /// `latin1_general_cs`.
    GeneralCs,
    /// `latin1_german1_ci`.
    German1,
    /// `latin1_german2_ci`.
    German2,
    /// `latin1_danish_ci`.
    Danish,
    /// `latin1_spanish_ci`.
    Spanish,
}

/// One row of the collation table.
#[derive(Debug)]
pub struct CollationRow {
    /// MySQL's number of it.
    pub id: u16,
    /// MySQL's name of it.
    pub name: &'static str,
    /// The character set whose texts it compares.
    pub charset: Charset,
    /// Whether it is its character set's default.
    pub is_default: bool,
    /// Whether texts compare as if the shorter one went on with spaces (PAD SPACE).
    pub pad_space: bool,
    /// What SHOW COLLATION has as `Sortlen`.
    pub sort_length: u8,
    /// How it compares.
    pub kind: Kind,
}

#[rustfmt::skip]
const fn row(id: u16, name: &'static str, charset: Charset, is_default: bool, pad_space: bool, sort_length: u8, kind: Kind) -> CollationRow {
    CollationRow { id, name, charset, is_default, pad_space, sort_length, kind }
}

impl CollationRow {
    /// How a collation of Unicode's algorithm compares.
    #[inline]
    fn uca_rules(&self) -> uca::Rules {
        let (levels, language) = match self.kind {
            Kind::Uca { levels, language } => (levels, language),
            _ => (1, None),
        };
        uca::Rules {
            levels,
            pad: self.pad_space,
            tailoring: language.map(Language::tailoring),
        }
    }
}

const UCA: Kind = Kind::Uca {
    levels: 1,
    language: None,
};

/// One level of a language's.
const fn of(language: Language) -> Kind {
    Kind::Uca {
        levels: 1,
        language: Some(language),
    }
}

/// A language's with accents and case.
const fn all_of(language: Language) -> Kind {
    Kind::Uca {
        levels: 3,
        language: Some(language),
    }
}

const fn all_levels(levels: u8) -> Kind {
    Kind::Uca {
        levels,
        language: None,
    }
}

const fn latin1(table: Latin1Table) -> Kind {
    Kind::Latin1 { table }
}
const YES: bool = true;
const NO: bool = false;
const PAD: bool = true;
const NO_PAD: bool = false;

/// Every collation, one a row.
#[rustfmt::skip]
pub static COLLATIONS: [CollationRow; 186] = [
    //  id   name                      charset           default pad    sort length, kind
    row(5,   "latin1_german1_ci",        Charset::Latin1,   NO, PAD,   1, latin1(Latin1Table::German1)),
    row(8,   "latin1_swedish_ci",        Charset::Latin1,   YES, PAD,   1, latin1(Latin1Table::Swedish)),
    row(11,  "ascii_general_ci",         Charset::Ascii,    YES, PAD,   1, Kind::AsciiCi),
    row(15,  "latin1_danish_ci",         Charset::Latin1,   NO, PAD,   1, latin1(Latin1Table::Danish)),
    row(31,  "latin1_german2_ci",        Charset::Latin1,   NO, PAD,   2, latin1(Latin1Table::German2)),
    row(33,  "utf8mb3_general_ci",       Charset::Utf8mb3,  YES, PAD,   1, Kind::GeneralCi),
    row(35,  "ucs2_general_ci",          Charset::Ucs2,    YES, PAD,   1, Kind::GeneralCi),
    row(45,  "utf8mb4_general_ci",       Charset::Utf8mb4,  NO, PAD,   1, Kind::GeneralCi),
    row(46,  "utf8mb4_bin",              Charset::Utf8mb4,  NO, PAD,   1, Kind::Binary),
    row(47,  "latin1_bin",               Charset::Latin1,   NO, PAD,   1, Kind::Binary),
    row(48,  "latin1_general_ci",        Charset::Latin1,   NO, PAD,   1, latin1(Latin1Table::General)),
    row(49,  "latin1_general_cs",        Charset::Latin1,   NO, PAD,   1, latin1(Latin1Table::GeneralCs)),
    row(54,  "utf16_general_ci",         Charset::Utf16,   YES, PAD,   1, Kind::GeneralCi),
    row(55,  "utf16_bin",                Charset::Utf16,   NO, PAD,   1, Kind::Binary),
    row(56,  "utf16le_general_ci",       Charset::Utf16le, YES, PAD,   1, Kind::GeneralCi),
    row(60,  "utf32_general_ci",         Charset::Utf32,   YES, PAD,   1, Kind::GeneralCi),
    row(61,  "utf32_bin",                Charset::Utf32,   NO, PAD,   1, Kind::Binary),
    row(62,  "utf16le_bin",              Charset::Utf16le, NO, PAD,   1, Kind::Binary),
    row(63,  "binary",                   Charset::Binary,   YES, NO_PAD, 1, Kind::Binary),
    row(65,  "ascii_bin",                Charset::Ascii,    NO, PAD,   1, Kind::Binary),
    row(83,  "utf8mb3_bin",              Charset::Utf8mb3,  NO, PAD,   1, Kind::Binary),
    row(90,  "ucs2_bin",                 Charset::Ucs2,    NO, PAD,   1, Kind::Binary),
    row(94,  "latin1_spanish_ci",        Charset::Latin1,   NO, PAD,   1, latin1(Latin1Table::Spanish)),
    row(101, "utf16_unicode_ci",         Charset::Utf16,   NO, PAD,   8, UCA),
    row(102, "utf16_icelandic_ci",       Charset::Utf16,   NO, PAD,   8, of(Language::Icelandic)),
    row(103, "utf16_latvian_ci",         Charset::Utf16,   NO, PAD,   8, of(Language::Latvian)),
    row(104, "utf16_romanian_ci",        Charset::Utf16,   NO, PAD,   8, of(Language::Romanian)),
    row(105, "utf16_slovenian_ci",       Charset::Utf16,   NO, PAD,   8, of(Language::Slovenian)),
    row(106, "utf16_polish_ci",          Charset::Utf16,   NO, PAD,   8, of(Language::Polish)),
    row(107, "utf16_estonian_ci",        Charset::Utf16,   NO, PAD,   8, of(Language::Estonian)),
    row(108, "utf16_spanish_ci",         Charset::Utf16,   NO, PAD,   8, of(Language::Spanish)),
    row(109, "utf16_swedish_ci",         Charset::Utf16,   NO, PAD,   8, of(Language::Swedish)),
    row(110, "utf16_turkish_ci",         Charset::Utf16,   NO, PAD,   8, of(Language::Turkish)),
    row(111, "utf16_czech_ci",           Charset::Utf16,   NO, PAD,   8, of(Language::Czech)),
    row(112, "utf16_danish_ci",          Charset::Utf16,   NO, PAD,   8, of(Language::Danish)),
    row(113, "utf16_lithuanian_ci",      Charset::Utf16,   NO, PAD,   8, of(Language::Lithuanian)),
    row(114, "utf16_slovak_ci",          Charset::Utf16,   NO, PAD,   8, of(Language::Slovak)),
    row(115, "utf16_spanish2_ci",        Charset::Utf16,   NO, PAD,   8, of(Language::TraditionalSpanish)),
    row(116, "utf16_roman_ci",           Charset::Utf16,   NO, PAD,   8, of(Language::Roman)),
    row(118, "utf16_esperanto_ci",       Charset::Utf16,   NO, PAD,   8, of(Language::Esperanto)),
    row(119, "utf16_hungarian_ci",       Charset::Utf16,   NO, PAD,   8, of(Language::Hungarian)),
    row(121, "utf16_german2_ci",         Charset::Utf16,   NO, PAD,   8, of(Language::GermanPhonebook)),
    row(122, "utf16_croatian_ci",        Charset::Utf16,   NO, PAD,   8, of(Language::Croatian)),
    row(123, "utf16_unicode_520_ci",     Charset::Utf16,   NO, PAD,   8, UCA),
    row(124, "utf16_vietnamese_ci",      Charset::Utf16,   NO, PAD,   8, of(Language::Vietnamese)),
    row(128, "ucs2_unicode_ci",          Charset::Ucs2,    NO, PAD,   8, UCA),
    row(129, "ucs2_icelandic_ci",        Charset::Ucs2,    NO, PAD,   8, of(Language::Icelandic)),
    row(130, "ucs2_latvian_ci",          Charset::Ucs2,    NO, PAD,   8, of(Language::Latvian)),
    row(131, "ucs2_romanian_ci",         Charset::Ucs2,    NO, PAD,   8, of(Language::Romanian)),
    row(132, "ucs2_slovenian_ci",        Charset::Ucs2,    NO, PAD,   8, of(Language::Slovenian)),
    row(133, "ucs2_polish_ci",           Charset::Ucs2,    NO, PAD,   8, of(Language::Polish)),
    row(134, "ucs2_estonian_ci",         Charset::Ucs2,    NO, PAD,   8, of(Language::Estonian)),
    row(135, "ucs2_spanish_ci",          Charset::Ucs2,    NO, PAD,   8, of(Language::Spanish)),
    row(136, "ucs2_swedish_ci",          Charset::Ucs2,    NO, PAD,   8, of(Language::Swedish)),
    row(137, "ucs2_turkish_ci",          Charset::Ucs2,    NO, PAD,   8, of(Language::Turkish)),
    row(138, "ucs2_czech_ci",            Charset::Ucs2,    NO, PAD,   8, of(Language::Czech)),
    row(139, "ucs2_danish_ci",           Charset::Ucs2,    NO, PAD,   8, of(Language::Danish)),
    row(140, "ucs2_lithuanian_ci",       Charset::Ucs2,    NO, PAD,   8, of(Language::Lithuanian)),
    row(141, "ucs2_slovak_ci",           Charset::Ucs2,    NO, PAD,   8, of(Language::Slovak)),
    row(142, "ucs2_spanish2_ci",         Charset::Ucs2,    NO, PAD,   8, of(Language::TraditionalSpanish)),
    row(143, "ucs2_roman_ci",            Charset::Ucs2,    NO, PAD,   8, of(Language::Roman)),
    row(145, "ucs2_esperanto_ci",        Charset::Ucs2,    NO, PAD,   8, of(Language::Esperanto)),
    row(146, "ucs2_hungarian_ci",        Charset::Ucs2,    NO, PAD,   8, of(Language::Hungarian)),
    row(148, "ucs2_german2_ci",          Charset::Ucs2,    NO, PAD,   8, of(Language::GermanPhonebook)),
    row(149, "ucs2_croatian_ci",         Charset::Ucs2,    NO, PAD,   8, of(Language::Croatian)),
    row(150, "ucs2_unicode_520_ci",      Charset::Ucs2,    NO, PAD,   8, UCA),
    row(151, "ucs2_vietnamese_ci",       Charset::Ucs2,    NO, PAD,   8, of(Language::Vietnamese)),
    row(160, "utf32_unicode_ci",         Charset::Utf32,   NO, PAD,   8, UCA),
    row(161, "utf32_icelandic_ci",       Charset::Utf32,   NO, PAD,   8, of(Language::Icelandic)),
    row(162, "utf32_latvian_ci",         Charset::Utf32,   NO, PAD,   8, of(Language::Latvian)),
    row(163, "utf32_romanian_ci",        Charset::Utf32,   NO, PAD,   8, of(Language::Romanian)),
    row(164, "utf32_slovenian_ci",       Charset::Utf32,   NO, PAD,   8, of(Language::Slovenian)),
    row(165, "utf32_polish_ci",          Charset::Utf32,   NO, PAD,   8, of(Language::Polish)),
    row(166, "utf32_estonian_ci",        Charset::Utf32,   NO, PAD,   8, of(Language::Estonian)),
    row(167, "utf32_spanish_ci",         Charset::Utf32,   NO, PAD,   8, of(Language::Spanish)),
    row(168, "utf32_swedish_ci",         Charset::Utf32,   NO, PAD,   8, of(Language::Swedish)),
    row(169, "utf32_turkish_ci",         Charset::Utf32,   NO, PAD,   8, of(Language::Turkish)),
    row(170, "utf32_czech_ci",           Charset::Utf32,   NO, PAD,   8, of(Language::Czech)),
    row(171, "utf32_danish_ci",          Charset::Utf32,   NO, PAD,   8, of(Language::Danish)),
    row(172, "utf32_lithuanian_ci",      Charset::Utf32,   NO, PAD,   8, of(Language::Lithuanian)),
    row(173, "utf32_slovak_ci",          Charset::Utf32,   NO, PAD,   8, of(Language::Slovak)),
    row(174, "utf32_spanish2_ci",        Charset::Utf32,   NO, PAD,   8, of(Language::TraditionalSpanish)),
    row(175, "utf32_roman_ci",           Charset::Utf32,   NO, PAD,   8, of(Language::Roman)),
    row(177, "utf32_esperanto_ci",       Charset::Utf32,   NO, PAD,   8, of(Language::Esperanto)),
    row(178, "utf32_hungarian_ci",       Charset::Utf32,   NO, PAD,   8, of(Language::Hungarian)),
    row(180, "utf32_german2_ci",         Charset::Utf32,   NO, PAD,   8, of(Language::GermanPhonebook)),
    row(181, "utf32_croatian_ci",        Charset::Utf32,   NO, PAD,   8, of(Language::Croatian)),
    row(182, "utf32_unicode_520_ci",     Charset::Utf32,   NO, PAD,   8, UCA),
    row(183, "utf32_vietnamese_ci",      Charset::Utf32,   NO, PAD,   8, of(Language::Vietnamese)),
    row(192, "utf8mb3_unicode_ci",       Charset::Utf8mb3,  NO, PAD,   8, UCA),
    row(193, "utf8mb3_icelandic_ci",     Charset::Utf8mb3,  NO, PAD,   8, of(Language::Icelandic)),
    row(194, "utf8mb3_latvian_ci",       Charset::Utf8mb3,  NO, PAD,   8, of(Language::Latvian)),
    row(195, "utf8mb3_romanian_ci",      Charset::Utf8mb3,  NO, PAD,   8, of(Language::Romanian)),
    row(196, "utf8mb3_slovenian_ci",     Charset::Utf8mb3,  NO, PAD,   8, of(Language::Slovenian)),
    row(197, "utf8mb3_polish_ci",        Charset::Utf8mb3,  NO, PAD,   8, of(Language::Polish)),
    row(198, "utf8mb3_estonian_ci",      Charset::Utf8mb3,  NO, PAD,   8, of(Language::Estonian)),
    row(199, "utf8mb3_spanish_ci",       Charset::Utf8mb3,  NO, PAD,   8, of(Language::Spanish)),
    row(200, "utf8mb3_swedish_ci",       Charset::Utf8mb3,  NO, PAD,   8, of(Language::Swedish)),
    row(201, "utf8mb3_turkish_ci",       Charset::Utf8mb3,  NO, PAD,   8, of(Language::Turkish)),
    row(202, "utf8mb3_czech_ci",         Charset::Utf8mb3,  NO, PAD,   8, of(Language::Czech)),
    row(203, "utf8mb3_danish_ci",        Charset::Utf8mb3,  NO, PAD,   8, of(Language::Danish)),
    row(204, "utf8mb3_lithuanian_ci",    Charset::Utf8mb3,  NO, PAD,   8, of(Language::Lithuanian)),
    row(205, "utf8mb3_slovak_ci",        Charset::Utf8mb3,  NO, PAD,   8, of(Language::Slovak)),
    row(206, "utf8mb3_spanish2_ci",      Charset::Utf8mb3,  NO, PAD,   8, of(Language::TraditionalSpanish)),
    row(207, "utf8mb3_roman_ci",         Charset::Utf8mb3,  NO, PAD,   8, of(Language::Roman)),
    row(209, "utf8mb3_esperanto_ci",     Charset::Utf8mb3,  NO, PAD,   8, of(Language::Esperanto)),
    row(210, "utf8mb3_hungarian_ci",     Charset::Utf8mb3,  NO, PAD,   8, of(Language::Hungarian)),
    row(212, "utf8mb3_german2_ci",       Charset::Utf8mb3,  NO, PAD,   8, of(Language::GermanPhonebook)),
    row(213, "utf8mb3_croatian_ci",      Charset::Utf8mb3,  NO, PAD,   8, of(Language::Croatian)),
    row(214, "utf8mb3_unicode_520_ci",   Charset::Utf8mb3,  NO, PAD,   8, UCA),
    row(215, "utf8mb3_vietnamese_ci",    Charset::Utf8mb3,  NO, PAD,   8, of(Language::Vietnamese)),
    row(224, "utf8mb4_unicode_ci",       Charset::Utf8mb4,  NO, PAD,   8, UCA),
    row(225, "utf8mb4_icelandic_ci",     Charset::Utf8mb4,  NO, PAD,   8, of(Language::Icelandic)),
    row(226, "utf8mb4_latvian_ci",       Charset::Utf8mb4,  NO, PAD,   8, of(Language::Latvian)),
    row(227, "utf8mb4_romanian_ci",      Charset::Utf8mb4,  NO, PAD,   8, of(Language::Romanian)),
    row(228, "utf8mb4_slovenian_ci",     Charset::Utf8mb4,  NO, PAD,   8, of(Language::Slovenian)),
    row(229, "utf8mb4_polish_ci",        Charset::Utf8mb4,  NO, PAD,   8, of(Language::Polish)),
    row(230, "utf8mb4_estonian_ci",      Charset::Utf8mb4,  NO, PAD,   8, of(Language::Estonian)),
    row(231, "utf8mb4_spanish_ci",       Charset::Utf8mb4,  NO, PAD,   8, of(Language::Spanish)),
    row(232, "utf8mb4_swedish_ci",       Charset::Utf8mb4,  NO, PAD,   8, of(Language::Swedish)),
    row(233, "utf8mb4_turkish_ci",       Charset::Utf8mb4,  NO, PAD,   8, of(Language::Turkish)),
    row(234, "utf8mb4_czech_ci",         Charset::Utf8mb4,  NO, PAD,   8, of(Language::Czech)),
    row(235, "utf8mb4_danish_ci",        Charset::Utf8mb4,  NO, PAD,   8, of(Language::Danish)),
    row(236, "utf8mb4_lithuanian_ci",    Charset::Utf8mb4,  NO, PAD,   8, of(Language::Lithuanian)),
    row(237, "utf8mb4_slovak_ci",        Charset::Utf8mb4,  NO, PAD,   8, of(Language::Slovak)),
    row(238, "utf8mb4_spanish2_ci",      Charset::Utf8mb4,  NO, PAD,   8, of(Language::TraditionalSpanish)),
    row(239, "utf8mb4_roman_ci",         Charset::Utf8mb4,  NO, PAD,   8, of(Language::Roman)),
    row(241, "utf8mb4_esperanto_ci",     Charset::Utf8mb4,  NO, PAD,   8, of(Language::Esperanto)),
    row(242, "utf8mb4_hungarian_ci",     Charset::Utf8mb4,  NO, PAD,   8, of(Language::Hungarian)),
    row(244, "utf8mb4_german2_ci",       Charset::Utf8mb4,  NO, PAD,   8, of(Language::GermanPhonebook)),
    row(245, "utf8mb4_croatian_ci",      Charset::Utf8mb4,  NO, PAD,   8, of(Language::Croatian)),
    row(246, "utf8mb4_unicode_520_ci",   Charset::Utf8mb4,  NO, PAD,   8, UCA),
    row(247, "utf8mb4_vietnamese_ci",    Charset::Utf8mb4,  NO, PAD,   8, of(Language::Vietnamese)),
    row(255, "utf8mb4_0900_ai_ci",       Charset::Utf8mb4,  YES, NO_PAD, 0, UCA),
    row(256, "utf8mb4_de_pb_0900_ai_ci", Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::De)),
    row(257, "utf8mb4_is_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Is)),
    row(258, "utf8mb4_lv_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Lv)),
    row(259, "utf8mb4_ro_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Ro)),
    row(260, "utf8mb4_sl_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Sl)),
    row(261, "utf8mb4_pl_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Pl)),
    row(262, "utf8mb4_et_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Et)),
    row(263, "utf8mb4_es_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Es)),
    row(264, "utf8mb4_sv_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Sv)),
    row(265, "utf8mb4_tr_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Tr)),
    row(266, "utf8mb4_cs_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Cs)),
    row(267, "utf8mb4_da_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Da)),
    row(268, "utf8mb4_lt_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Lt)),
    row(269, "utf8mb4_sk_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Sk)),
    row(270, "utf8mb4_es_trad_0900_ai_ci", Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::EsTrad)),
    row(271, "utf8mb4_la_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::La)),
    row(273, "utf8mb4_eo_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Eo)),
    row(274, "utf8mb4_hu_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Hu)),
    row(275, "utf8mb4_hr_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Hr)),
    row(277, "utf8mb4_vi_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Vi)),
    row(278, "utf8mb4_0900_as_cs",       Charset::Utf8mb4,  NO, NO_PAD, 0, all_levels(3)),
    row(279, "utf8mb4_de_pb_0900_as_cs", Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::De)),
    row(280, "utf8mb4_is_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Is)),
    row(281, "utf8mb4_lv_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Lv)),
    row(282, "utf8mb4_ro_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Ro)),
    row(283, "utf8mb4_sl_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Sl)),
    row(284, "utf8mb4_pl_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Pl)),
    row(285, "utf8mb4_et_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Et)),
    row(286, "utf8mb4_es_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Es)),
    row(287, "utf8mb4_sv_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Sv)),
    row(288, "utf8mb4_tr_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Tr)),
    row(289, "utf8mb4_cs_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Cs)),
    row(291, "utf8mb4_lt_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Lt)),
    row(292, "utf8mb4_sk_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Sk)),
    row(293, "utf8mb4_es_trad_0900_as_cs", Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::EsTrad)),
    row(294, "utf8mb4_la_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::La)),
    row(296, "utf8mb4_eo_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Eo)),
    row(297, "utf8mb4_hu_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Hu)),
    row(298, "utf8mb4_hr_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Hr)),
    row(300, "utf8mb4_vi_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Vi)),
    row(305, "utf8mb4_0900_as_ci",       Charset::Utf8mb4,  NO, NO_PAD, 0, all_levels(2)),
    row(309, "utf8mb4_0900_bin",         Charset::Utf8mb4,  NO, NO_PAD, 1, Kind::Binary),
    row(310, "utf8mb4_nb_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Nb)),
    row(311, "utf8mb4_nb_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Nb)),
    row(312, "utf8mb4_nn_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Nb)),
    row(313, "utf8mb4_nn_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Nb)),
    row(314, "utf8mb4_sr_latn_0900_ai_ci", Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Hr)),
    row(315, "utf8mb4_sr_latn_0900_as_cs", Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Hr)),
    row(316, "utf8mb4_bs_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Hr)),
    row(317, "utf8mb4_bs_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Hr)),
    row(320, "utf8mb4_gl_0900_ai_ci",    Charset::Utf8mb4,  NO, NO_PAD, 0, of(Language::Es)),
    row(321, "utf8mb4_gl_0900_as_cs",    Charset::Utf8mb4,  NO, NO_PAD, 0, all_of(Language::Es)),
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
    /// `utf8mb4_0900_ai_ci`, MySQL's default.
    pub const UTF8MB4_0900_AI_CI: Collation = Collation(255);
    /// `utf8mb4_0900_as_cs`.
    pub const UTF8MB4_0900_AS_CS: Collation = Collation(278);
    /// `utf8mb4_0900_bin`.
    pub const UTF8MB4_0900_BIN: Collation = Collation(309);
    /// `utf8mb4_general_ci`.
    pub const UTF8MB4_GENERAL_CI: Collation = Collation(45);
    /// `utf8mb4_bin`.
    pub const UTF8MB4_BIN: Collation = Collation(46);
    /// `utf8mb3_general_ci`, of names of tables and columns.
    pub const UTF8MB3_GENERAL_CI: Collation = Collation(33);
    /// `utf8mb3_bin`.
    pub const UTF8MB3_BIN: Collation = Collation(83);
    /// `latin1_swedish_ci`, the default of latin1.
    pub const LATIN1_SWEDISH_CI: Collation = Collation(8);
    /// `binary`: bytes compare as numbers.
    pub const BINARY: Collation = Collation(63);

    /// The collation of MySQL's number; `None` if there is no such.
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

    /// MySQL's number of it.
    pub fn id(self) -> u16 {
        self.0
    }

    /// Its row in the table of collations.
    pub fn row(self) -> &'static CollationRow {
        &COLLATIONS[ROW_OF_ID[self.0 as usize] as usize]
    }

    /// MySQL's name of it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The character set whose texts it compares.
    pub fn charset(self) -> Charset {
        self.row().charset
    }

    /// Whether it is its character set's default.
    pub fn is_default(self) -> bool {
        self.row().is_default
    }

    /// Whether texts compare as if the shorter one went on with spaces (PAD SPACE).
    pub fn pads_space(self) -> bool {
        self.row().pad_space
    }

    /// Whether it is [`Collation::BINARY`].
    pub fn is_binary(self) -> bool {
        self == Collation::BINARY
    }

    /// Compares as `ORDER BY` does.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let row = self.row();
        match row.kind {
            Kind::Binary if !row.pad_space => a.cmp(b),
            Kind::Uca { .. } => uca::compare(a, b, row.uca_rules()),
            kind => fold::compare(a, b, fold::Table::of(kind, row.charset)),
        }
    }

    /// Whether two texts compare equal.
    pub fn eq(self, a: &[u8], b: &[u8]) -> bool {
        a == b || (self != Collation::BINARY && self.compare(a, b).is_eq())
    }

    /// Appends a key whose byte order is this collation's order; equal exactly when `compare` says
    /// equal, and self-delimiting: see [`Collation::sort_key_len`].
    pub fn sort_key(self, text: &[u8], out: &mut impl KeySink) {
        let row = self.row();
        match row.kind {
            Kind::Binary if !row.pad_space => {
                write_escaped(text, out);
                out.append(&[0, 0]);
            }
            Kind::Uca { .. } => uca::sort_key(text, row.uca_rules(), out),
            kind => fold::sort_key(text, fold::Table::of(kind, row.charset), out),
        }
    }

    /// Appends what the keys of all texts that begin with `text` begin with: the lower end of the
    /// range of `LIKE 'text%'`. It may be shorter than `text` asks for, so that the range holds
    /// more.
    pub fn sort_key_prefix(self, text: &[u8], out: &mut impl KeySink) {
        let row = self.row();
        let mut text = text;
        if row.pad_space {
            // What a run of spaces is written as depends on what follows.
            text = text.trim_ascii_end();
        }
        match row.kind {
            Kind::Binary if !row.pad_space => write_escaped(text, out),
            Kind::Uca { .. } => {
                let rules = row.uca_rules();
                // What follows could contract with the last character.
                while text
                    .last()
                    .is_some_and(|b| !b.is_ascii() || rules.may_contract(*b))
                {
                    text = &text[..text.len() - 1];
                }
                if row.pad_space {
                    text = text.trim_ascii_end();
                }
                uca::sort_key_prefix(text, rules, out)
            }
            kind => fold::sort_key_prefix(text, fold::Table::of(kind, row.charset), out),
        }
    }

    /// By ASCII character, the first byte of the keys of texts that begin with it; 0 where that depends
    /// on what follows.
    pub fn first_bytes(self) -> [u8; 128] {
        let row = self.row();
        std::array::from_fn(|n| {
            let byte = n as u8;
            match row.kind {
                _ if row.pad_space && byte <= b' ' => 0,
                Kind::Binary if !row.pad_space => byte,
                Kind::Uca { .. } => {
                    let rules = row.uca_rules();
                    match rules.may_contract(byte) {
                        true => 0,
                        false => rules.ascii_code(byte),
                    }
                }
                kind => fold::Table::of(kind, row.charset).first_byte(byte),
            }
        })
    }

    /// The length of a key written by [`Collation::sort_key`] at the start of `key`; `None` if it
    /// is cut off.
    pub fn sort_key_len(self, key: &[u8]) -> Option<usize> {
        let row = self.row();
        match row.kind {
            Kind::Binary if !row.pad_space => {
                let mut at = 0;
                loop {
                    at += key.get(at..)?.iter().position(|&b| b == 0)? + 2;
                    match *key.get(at - 1)? {
                        0 => return Some(at),
                        _ => continue,
                    }
                }
            }
            Kind::Uca { .. } => uca::sort_key_len(key, row.uca_rules()),
            _ => fold::sort_key_len(key),
        }
    }

    /// The weights that `WEIGHT_STRING` shows: of each level in turn, the levels of the `0900`
    /// collations apart by 00 00. Nothing is padded or cut.
    pub fn weight_string(self, text: &[u8]) -> Vec<u8> {
        let row = self.row();
        match row.kind {
            Kind::Binary if !row.pad_space => text.to_vec(),
            Kind::Uca { .. } => uca::weight_string(text, row.uca_rules()),
            kind => {
                let table = fold::Table::of(kind, row.charset);
                let bytes = self.weight_bytes() / table.weights_max();
                fold::weight_string(text, table, bytes)
            }
        }
    }

    /// How many bytes of `weight_string` a character has at most.
    pub fn weight_bytes(self) -> usize {
        let row = self.row();
        match row.kind {
            Kind::Binary if !row.pad_space => usize::from(row.charset.max_len()),
            Kind::Uca { levels, .. } => uca::ELEMENTS_MAX * 2 * usize::from(levels),
            Kind::GeneralCi => 2,
            Kind::Latin1 { .. } | Kind::AsciiCi => {
                fold::Table::of(row.kind, row.charset).weights_max()
            }
            Kind::Binary => match row.charset {
                charset if charset.has_supplementary() => 3,
                charset if charset.is_unicode() => 2,
                _ => 1,
            },
        }
    }

    /// Feeds the hasher the same for texts that compare equal.
    pub fn hash(self, text: &[u8], state: &mut impl Hasher) {
        if self == Collation::BINARY {
            return state.write(text);
        }
        let mut key: SmallVec<[u8; 128]> = SmallVec::new();
        self.sort_key(text, &mut key);
        state.write(&key);
    }

    /// Whether two single characters are equal (for `LIKE` and searching).
    fn char_eq(self, a: u32, b: u32) -> bool {
        if a == b {
            return true;
        }
        let row = self.row();
        match row.kind {
            Kind::Binary => false,
            Kind::Uca { .. } => uca::char_eq(a, b, row.uca_rules()),
            kind => {
                let table = fold::Table::of(kind, row.charset);
                table.weight(a) == table.weight(b)
            }
        }
    }

    /// Where `needle` first occurs in `text` at or after the byte `from`, comparing character by
    /// character. Calls `check` every so often.
    ///
    /// # Errors
    /// What `check` fails with.
    pub fn find<E>(
        self,
        text: &[u8],
        needle: &[u8],
        from: usize,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Range<usize>>, E> {
        matching::find(self, text, needle, from, check)
    }

    /// Lower case, a character for a character; bytes of `binary` have none.
    pub fn lower(self, text: &str) -> String {
        if self.is_binary() {
            return text.to_string();
        }
        if text.is_ascii() {
            return text.to_ascii_lowercase();
        }
        cancel::chars(text)
            .map(|c| match c {
                '\u{130}' => 'i',
                _ => single_char_or(c.to_lowercase(), c),
            })
            .collect()
    }

    /// Upper case, a character for a character: `ß` stays.
    pub fn upper(self, text: &str) -> String {
        if self.is_binary() {
            return text.to_string();
        }
        if text.is_ascii() {
            return text.to_ascii_uppercase();
        }
        // A letter stays if its character set lacks the upper one (latin1's ÿ).
        let held = |upper: char| self.charset().can_hold(upper);
        cancel::chars(text)
            .map(|c| {
                Some(single_char_or(c.to_uppercase(), c))
                    .filter(|upper| held(*upper))
                    .unwrap_or(c)
            })
            .collect()
    }
}

fn single_char_or(mut mapped: impl ExactSizeIterator<Item = char>, own: char) -> char {
    if mapped.len() == 1 {
        mapped.next().unwrap_or(own)
    } else {
        own
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a key is written into.
pub trait KeySink {
    /// Appends a byte.
    fn put(&mut self, byte: u8);
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]);

    /// How many bytes of a text are worth writing the weights of before this is asked again: none
    /// where no more bytes are taken.
    #[inline]
    fn window(&self) -> usize {
        usize::MAX
    }
}

impl KeySink for Vec<u8> {
    #[inline]
    fn put(&mut self, byte: u8) {
        self.push(byte)
    }
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes)
    }
}

impl<A: smallvec::Array<Item = u8>> KeySink for SmallVec<A> {
    #[inline]
    fn put(&mut self, byte: u8) {
        self.push(byte)
    }
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes)
    }
}

/// Writes 0x00 as 00 FF.
fn write_escaped(text: &[u8], out: &mut impl KeySink) {
    let mut rest = &text[..text.len().min(out.window())];
    while let Some(zero) = rest.iter().position(|&b| b == 0) {
        out.append(&rest[..zero]);
        out.append(&[0, 0xFF]);
        rest = &rest[zero + 1..];
    }
    out.append(rest);
}

/// How many bytes at the front of both texts are ASCII and the same, in steps of eight.
#[inline]
fn common_ascii(a: &[u8], b: &[u8]) -> usize {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let (a, _) = a.as_chunks::<8>();
    let (b, _) = b.as_chunks::<8>();
    let same = |(x, y): &(&[u8; 8], &[u8; 8])| x == y && u64::from_ne_bytes(**x) & HIGH_BITS == 0;
    8 * a.iter().zip(b).take_while(same).count()
}

/// Appends what `code` gives for each byte, without the zeros.
#[inline]
fn append_codes(bytes: &[u8], code: &[u8; 128], out: &mut impl KeySink) {
    for chunk in bytes.chunks(64) {
        let mut codes = [0; 64];
        let mut has_zero = false;
        for (to, b) in codes.iter_mut().zip(chunk) {
            *to = code[(b & 0x7F) as usize];
            has_zero |= *to == 0;
        }
        let mut n = chunk.len();
        if has_zero {
            n = 0;
            for at in 0..chunk.len() {
                codes[n] = codes[at];
                n += (codes[n] != 0) as usize;
            }
        }
        out.append(&codes[..n]);
    }
}

/// What an invalid byte counts as: a character above all others, a different one for each byte.
const INVALID: u32 = 0x11_0000;

/// The character at `at` and where the next begins. `at` must be inside `text`.
#[inline]
fn char_at(text: &[u8], at: usize) -> (u32, usize) {
    let first = text[at];
    if first < 0x80 {
        return (first as u32, at + 1);
    }
    let rest = &text[at + 1..];
    let tail = |i: usize| {
        rest.get(i)
            .filter(|b| **b & 0xC0 == 0x80)
            .map(|b| (b & 0x3F) as u32)
    };
    let decoded = match first {
        0xC2..=0xDF => tail(0).map(|a| ((first as u32 & 0x1F) << 6 | a, 2)),
        0xE0..=0xEF => tail(0)
            .zip(tail(1))
            .map(|(a, b)| ((first as u32 & 0x0F) << 12 | a << 6 | b, 3))
            .filter(|c| c.0 >= 0x800),
        0xF0..=0xF4 => match (tail(0), tail(1), tail(2)) {
            (Some(a), Some(b), Some(c)) => {
                Some(((first as u32 & 7) << 18 | a << 12 | b << 6 | c, 4))
                    .filter(|c| (0x1_0000..0x11_0000).contains(&c.0))
            }
            _ => None,
        },
        _ => None,
    };
    match decoded {
        Some((c, len)) => (c, at + len),
        None => (INVALID + first as u32, at + 1),
    }
}

/// Writes the runs of spaces of a PAD SPACE key: see the module's header.
struct PadRuns {
    space: u8,
    pending: usize,
}

impl PadRuns {
    fn new(space: u8) -> PadRuns {
        PadRuns { space, pending: 0 }
    }

    #[inline]
    fn before(&mut self, less_than_space: bool, out: &mut impl KeySink) {
        if self.pending > 0 {
            self.flush(less_than_space, out);
        }
    }

    #[cold]
    fn flush(&mut self, less_than_space: bool, out: &mut impl KeySink) {
        let flip = if less_than_space { 0 } else { 0xFF };
        out.append(&[self.space, if less_than_space { 1 } else { 3 }]);
        let mut n = self.pending;
        while n >= 0xFF {
            out.put(0xFF ^ flip);
            n -= 0xFF;
        }
        out.put(n as u8 ^ flip);
        self.pending = 0;
    }

    fn end(self, out: &mut impl KeySink) {
        out.append(&[self.space, 2]);
    }

    /// After the space code at `at - 1`: `Ok` is where the key ends, `Err` where it goes on.
    fn skip(key: &[u8], at: usize) -> Option<Result<usize, usize>> {
        let full = match *key.get(at)? {
            2 => return Some(Ok(at + 1)),
            1 => 0xFF,
            3 => 0,
            _ => return None,
        };
        let run = key.get(at + 1..)?.iter().position(|&b| b != full)?;
        Some(Err(at + 1 + run + 1))
    }
}

/// Compares what is left of the longer text with spaces.
fn compare_rest_with_spaces(weights: impl Iterator<Item = u32>, space: u32) -> Ordering {
    weights
        .map(|w| w.cmp(&space))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests;
