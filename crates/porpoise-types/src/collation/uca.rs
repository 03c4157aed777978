//! The Unicode collation algorithm, version 9.0.0 (Unicode Technical Standard #10).
//!
//! A text becomes a sequence of elements, each with a primary weight (which letter), a secondary
//! (which accent) and a tertiary (which case); 0 means "no weight on this level". Texts compare by
//! all primaries, then, if the collation has the level, by all secondaries, then by all tertiaries.
//!
//! In keys a primary weight is not written as its 16 bits. The 74 primaries that ASCII has get odd
//! one-byte codes in their order; a weight between two of them gets the even code between theirs,
//! then its 16 bits. So a key of English is as long as the text:
//!
//! ```text
//! code 0   end of the level
//!      2   below the first ASCII primary, then 2 bytes
//!      3   the first ASCII primary (TAB)
//!      4   between the first and the second, then 2 bytes
//!      5   …
//! ```

use super::tailoring::Tailoring;
use super::{
    INVALID, KeySink, PadRuns, append_codes, char_at, common_ascii, compare_rest_with_spaces,
};
use crate::cancel;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The table made by `unicode/generate.py`, which describes its layout.
static TABLE: &[u8] = include_bytes!("../../unicode/uca_9_0_0.bin");
const BLOCKS: usize = 0x1100;
const INDEX_AT: usize = 12;
const PAGES_AT: usize = INDEX_AT + 2 * BLOCKS;

const fn u32_at(at: usize) -> u32 {
    u32::from_le_bytes([TABLE[at], TABLE[at + 1], TABLE[at + 2], TABLE[at + 3]])
}

const PAGES: usize = u32_at(0) as usize;
const POOL_AT: usize = PAGES_AT + PAGES * 1024;
const POOL: usize = u32_at(4) as usize;
const CONTRACTIONS_AT: usize = POOL_AT + 4 * POOL;
const CONTRACTIONS: usize = u32_at(8) as usize;

const IMPLICIT: u32 = u32::MAX;

const fn entry(c: u32) -> u32 {
    let index_at = INDEX_AT + 2 * (c >> 8) as usize;
    let page = TABLE[index_at] as usize | (TABLE[index_at + 1] as usize) << 8;
    u32_at(PAGES_AT + page * 1024 + (c & 0xFF) as usize * 4)
}

/// A collation element: primary << 14 | secondary << 5 | tertiary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Element(u32);

impl Element {
    pub(super) const fn new(primary: u32, secondary: u32, tertiary: u32) -> Element {
        Element(primary << 14 | secondary << 5 | tertiary)
    }
    /// The weight on level 0, 1 or 2.
    #[inline]
    pub(super) fn weight(self, level: u8) -> u32 {
        match level {
            0 => self.0 >> 14,
            1 => self.0 >> 5 & 0x1FF,
            _ => self.0 & 0x1F,
        }
    }
}

/// Primaries of ASCII, ascending, each once; the rest of the array is unused.
const ASCII_PRIMARIES: ([u16; 128], usize) = {
    let mut sorted = [0u16; 128];
    let mut n = 0;
    let mut c = 0;
    while c < 128 {
        let p = (entry(c) >> 14) as u16;
        c += 1;
        let mut at = 0;
        while at < n && sorted[at] < p {
            at += 1;
        }
        if p == 0 || (at < n && sorted[at] == p) {
            continue;
        }
        let mut i = n;
        while i > at {
            sorted[i] = sorted[i - 1];
            i -= 1;
        }
        sorted[at] = p;
        n += 1;
    }
    (sorted, n)
};

const fn rank(primary: u32) -> usize {
    let mut low = 0;
    let mut high = ASCII_PRIMARIES.1;
    while low < high {
        let middle = (low + high) / 2;
        if (ASCII_PRIMARIES.0[middle] as u32) < primary {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The one-byte code of each ASCII character; 0 for those without a weight.
static ASCII_CODE: [u8; 128] = {
    let mut codes = [0; 128];
    let mut c = 0;
    while c < 128 {
        let p = entry(c) >> 14;
        if p != 0 {
            codes[c as usize] = 2 * rank(p) as u8 + 3;
        }
        c += 1;
    }
    codes
};

const SPACE_CODE: u8 = ASCII_CODE[b' ' as usize];
const SPACE_PRIMARY: u32 = entry(b' ' as u32) >> 14;
const _: () = assert!(2 * ASCII_PRIMARIES.1 + 3 < 256);

/// Characters that have elements together.
pub(super) struct Contraction {
    /// The characters after the first.
    pub rest: Vec<u32>,
    pub elements: Vec<Element>,
}

/// Contractions by their first character, longest first.
pub(super) type Contractions = HashMap<u32, Vec<Contraction>>;

/// Those of Unicode's table.
static CONTRACTION_TABLE: LazyLock<Contractions> = LazyLock::new(|| {
    let mut table = Contractions::new();
    let mut at = CONTRACTIONS_AT;
    for _ in 0..CONTRACTIONS {
        let (points, elements) = (TABLE[at] as usize, TABLE[at + 1] as usize);
        at += 2;
        let word = |i: usize| u32_at(at + 4 * i);
        let rest = (1..points).map(word).collect();
        let elements_of = (points..points + elements)
            .map(|i| Element(word(i)))
            .collect();
        table.entry(word(0)).or_default().push(Contraction {
            rest,
            elements: elements_of,
        });
        at += 4 * (points + elements);
    }
    table
        .values_mut()
        .for_each(|all| all.sort_by_key(|c| std::cmp::Reverse(c.rest.len())));
    table
});

/// How a collation of this family compares.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// 1: letters; 2: accents, too; 3: case, too.
    pub levels: u8,
    /// PAD SPACE.
    pub pad: bool,
    /// A language's.
    pub tailoring: Option<&'static Tailoring>,
}

impl Rules {
    /// The one-byte code of an ASCII character; 0 for those without a weight, and those of which the
    /// language has something to say.
    #[inline]
    pub fn ascii_code(self, byte: u8) -> u8 {
        match self.tailoring {
            Some(tailoring) if tailoring.is_special(byte) => 0,
            _ => ASCII_CODE[byte as usize],
        }
    }

    /// Whether the elements of an ASCII character may depend on what follows it.
    pub fn may_contract(self, byte: u8) -> bool {
        byte | 0x20 == b'l' || self.tailoring.is_some_and(|t| t.is_special(byte))
    }
}

/// The elements that Unicode gives a character.
pub(super) fn untailored(c: u32) -> Vec<Element> {
    let mut utf8 = [0; 4];
    let c = char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
    Elements::of(c.encode_utf8(&mut utf8).as_bytes(), None).collect()
}

/// The elements of a text, one after the other.
pub(super) struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    pending: Pending<'a>,
    tailoring: Option<&'a Tailoring>,
}

#[derive(Clone, Copy)]
enum Pending<'a> {
    None,
    /// Elements of the pool, from and to.
    Pool(u32, u32),
    One(Element),
    /// Hangul's second and third letters; 0 for none.
    Jamo(u32, u32),
    Listed(&'a [Element]),
}

impl<'a> Elements<'a> {
    pub(super) fn of(text: &'a [u8], tailoring: Option<&'a Tailoring>) -> Elements<'a> {
        Elements {
            text,
            at: 0,
            pending: Pending::None,
            tailoring,
        }
    }

    fn contraction(&mut self, of: &'a Contractions, first: u32) -> Option<&'a [Element]> {
        of.get(&first)?.iter().find_map(|c| {
            let mut at = self.at;
            for &expected in &c.rest {
                if at >= self.text.len() {
                    return None;
                }
                let (found, next) = char_at(self.text, at);
                if found != expected {
                    return None;
                }
                at = next;
            }
            self.at = at;
            Some(&c.elements[..])
        })
    }

    /// What a language says of the character behind which the text is at now, perhaps with those that
    /// follow.
    fn tailored(&mut self, tailoring: &'a Tailoring, c: u32) -> Option<&'a [Element]> {
        if u8::try_from(c).is_ok_and(|byte| byte.is_ascii() && !tailoring.is_special(byte)) {
            return None;
        }
        let contracted = self.contraction(&tailoring.contractions, c);
        contracted.or_else(|| tailoring.letter(c))
    }

    /// The first of some elements; the others come next.
    fn listed(&mut self, elements: &'a [Element]) -> Option<Element> {
        let (first, rest) = elements.split_first().unwrap_or((&Element(0), &[]));
        self.pending = Pending::Listed(rest);
        Some(*first)
    }

    fn of_char(&mut self, c: u32) -> Element {
        if c >= INVALID {
            return Element::new(0xFFFF, c - INVALID, 1);
        }
        match entry(c) {
            IMPLICIT => self.implicit(c),
            e if e >> 31 == 1 => {
                let (count, first) = (e >> 24 & 0x7F, e & 0xFF_FFFF);
                self.pending = Pending::Pool(first + 1, first + count);
                element_at(first)
            }
            e => Element(e),
        }
    }

    fn implicit(&mut self, c: u32) -> Element {
        if let 0xAC00..=0xD7A3 = c {
            let s = c - 0xAC00;
            let (l, v, t) = (0x1100 + s / 588, 0x1161 + s % 588 / 28, 0x11A7 + s % 28);
            self.pending = Pending::Jamo(v, if t == 0x11A7 { 0 } else { t });
            return Element(entry(l));
        }
        let (first, second) = match c {
            0x17000..=0x18AFF => (0xFB00, c - 0x17000),
            0x4E00..=0x9FD5
            | 0xFA0E
            | 0xFA0F
            | 0xFA11
            | 0xFA13
            | 0xFA14
            | 0xFA1F
            | 0xFA21
            | 0xFA23
            | 0xFA24
            | 0xFA27..=0xFA29 => (0xFB40 + (c >> 15), c & 0x7FFF),
            0x3400..=0x4DB5
            | 0x20000..=0x2A6D6
            | 0x2A700..=0x2B734
            | 0x2B740..=0x2B81D
            | 0x2B820..=0x2CEA1 => (0xFB80 + (c >> 15), c & 0x7FFF),
            _ => (0xFBC0 + (c >> 15), c & 0x7FFF),
        };
        self.pending = Pending::One(Element::new(second | 0x8000, 0, 0));
        Element::new(first, 0x20, 2)
    }
}

fn element_at(at: u32) -> Element {
    Element(u32_at(POOL_AT + 4 * at as usize))
}

impl Iterator for Elements<'_> {
    type Item = Element;

    fn next(&mut self) -> Option<Element> {
        match self.pending {
            Pending::None => {}
            Pending::Pool(at, end) => {
                self.pending = if at + 1 < end {
                    Pending::Pool(at + 1, end)
                } else {
                    Pending::None
                };
                return Some(element_at(at));
            }
            Pending::One(e) => {
                self.pending = Pending::None;
                return Some(e);
            }
            Pending::Jamo(v, t) => {
                self.pending = if t == 0 {
                    Pending::None
                } else {
                    Pending::Jamo(t, 0)
                };
                return Some(Element(entry(v)));
            }
            Pending::Listed(rest) => {
                if let Some((first, rest)) = rest.split_first() {
                    self.pending = Pending::Listed(rest);
                    return Some(*first);
                }
                self.pending = Pending::None;
            }
        }
        if self.at >= self.text.len() {
            return None;
        }
        let (c, next) = char_at(self.text, self.at);
        cancel::passed(self.at, next);
        self.at = next;
        if let Some(tailoring) = self.tailoring
            && let Some(elements) = self.tailored(tailoring, c)
        {
            return self.listed(elements);
        }
        // No contraction begins with ASCII except those of L, or continues with ASCII.
        if self.text.get(next).is_some_and(|b| !b.is_ascii())
            && (c >= 0x80 || c | 0x20 == b'l' as u32)
            && let Some(elements) = self.contraction(&CONTRACTION_TABLE, c)
        {
            return self.listed(elements);
        }
        Some(self.of_char(c))
    }
}

fn weights(text: &[u8], level: u8, rules: Rules) -> impl Iterator<Item = u32> {
    Elements::of(text, rules.tailoring)
        .map(move |e| e.weight(level))
        .filter(|&w| w != 0)
}

pub(super) fn compare(a: &[u8], b: &[u8], rules: Rules) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let Rules { levels, pad, .. } = rules;
    let mut at = common_ascii(a, b);
    for (&x, &y) in a[at..].iter().zip(&b[at..]) {
        if !(x | y).is_ascii() {
            break;
        }
        let (x, y) = (rules.ascii_code(x), rules.ascii_code(y));
        if x != y || x == 0 {
            if x != 0 && y != 0 && levels == 1 && !(contracts(a, at) || contracts(b, at)) {
                return x.cmp(&y);
            }
            break;
        }
        cancel::passed(at, at + 1);
        at += 1;
    }
    // The last character that was equal might contract with the next, in one of the texts only.
    let at = match rules.tailoring {
        Some(tailoring) if tailoring.contracts_ascii => 0,
        _ => at.saturating_sub(1),
    };
    for level in 0..levels {
        // What the loop passed is equal on the first level only.
        let from = if level == 0 { at } else { 0 };
        let [a, b] = [a, b].map(|text| weights(&text[from..], level, rules));
        let order = compare_level(a, b, pad);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Whether the ASCII character at `at` might contract with what follows it.
fn contracts(text: &[u8], at: usize) -> bool {
    text[at] | 0x20 == b'l' && text.get(at + 1).is_some_and(|b| !b.is_ascii())
}

fn compare_level(
    mut a: impl Iterator<Item = u32>,
    mut b: impl Iterator<Item = u32>,
    pad: bool,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (None, None) => return Ordering::Equal,
            (Some(x), None) if pad => {
                return compare_rest_with_spaces(std::iter::once(x).chain(a), SPACE_PRIMARY);
            }
            (None, Some(y)) if pad => {
                return compare_rest_with_spaces(std::iter::once(y).chain(b), SPACE_PRIMARY)
                    .reverse();
            }
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
        }
    }
}

fn write_primary(p: u32, out: &mut impl KeySink) {
    let rank = rank(p);
    if rank < ASCII_PRIMARIES.1 && ASCII_PRIMARIES.0[rank] as u32 == p {
        out.put(2 * rank as u8 + 3);
    } else {
        out.append(&[2 * rank as u8 + 2, (p >> 8) as u8, p as u8]);
    }
}

/// Where the leading part ends whose characters are ASCII and can't contract; behind so many bytes at
/// most.
fn ascii_len(text: &[u8], most: usize, rules: Rules) -> usize {
    let window = &text[..text.len().min(most)];
    let length = match window.iter().position(|b| !b.is_ascii()) {
        Some(n) => n.saturating_sub(1),
        None if window.len() < text.len() => window.len().saturating_sub(1),
        None => text.len(),
    };
    let Some(tailoring) = rules.tailoring else {
        return length;
    };
    let special = text[..length].iter().position(|b| tailoring.is_special(*b));
    special.unwrap_or(length)
}

fn write_primaries(text: &[u8], rules: Rules, out: &mut impl KeySink) -> PadRuns {
    let pad = rules.pad;
    let mut runs = PadRuns::new(SPACE_CODE);
    let (ascii, rest) = text.split_at(ascii_len(text, out.window(), rules));
    if pad {
        for &b in cancel::parts(ascii).flatten() {
            match ASCII_CODE[b as usize] {
                0 => {}
                SPACE_CODE => runs.pending += 1,
                code => {
                    runs.before(code < SPACE_CODE, out);
                    out.put(code);
                }
            }
        }
    } else {
        for part in cancel::parts(ascii) {
            append_codes(part, &ASCII_CODE, out);
        }
    }
    if out.window() == 0 {
        return runs;
    }
    for p in weights(rest, 0, rules) {
        if out.window() == 0 {
            break;
        }
        if pad && p == SPACE_PRIMARY {
            runs.pending += 1;
        } else {
            runs.before(p < SPACE_PRIMARY, out);
            write_primary(p, out);
        }
    }
    runs
}

/// A secondary weight below this takes one byte in a key.
const SHORT_SECONDARY: u32 = 0xE0;

pub(super) fn sort_key(text: &[u8], rules: Rules, out: &mut impl KeySink) {
    let runs = write_primaries(text, rules, out);
    let levels = rules.levels;
    if rules.pad {
        return runs.end(out);
    }
    out.put(0);
    if levels > 1 && out.window() > 0 {
        for w in weights(text, 1, rules) {
            if out.window() == 0 {
                return;
            }
            if w < SHORT_SECONDARY {
                out.put(w as u8);
            } else {
                out.append(&[(SHORT_SECONDARY + (w >> 8)) as u8, w as u8]);
            }
        }
        out.put(0);
    }
    if levels > 2 && out.window() > 0 {
        for w in weights(text, 2, rules) {
            if out.window() == 0 {
                return;
            }
            out.put(w as u8);
        }
        out.put(0);
    }
}

/// What MySQL counts on when it tells how long the weights of a text can be.
pub(super) const ELEMENTS_MAX: usize = 8;

/// The weights, two bytes each; levels are apart by 00 00.
pub(super) fn weight_string(text: &[u8], rules: Rules) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * text.len());
    for level in 0..rules.levels {
        if level > 0 {
            out.extend_from_slice(&[0, 0]);
        }
        for weight in weights(text, level, rules) {
            out.extend_from_slice(&(weight as u16).to_be_bytes());
        }
    }
    out
}

pub(super) fn sort_key_prefix(text: &[u8], rules: Rules, out: &mut impl KeySink) {
    write_primaries(text, rules, out);
}

pub(super) fn sort_key_len(key: &[u8], rules: Rules) -> Option<usize> {
    let Rules { levels, pad, .. } = rules;
    let mut at = 0;
    loop {
        let code = *key.get(at)?;
        at += 1;
        if pad && code == SPACE_CODE {
            match PadRuns::skip(key, at)? {
                Ok(end) => return Some(end),
                Err(next) => at = next,
            }
        } else if code == 0 {
            break;
        } else if code % 2 == 0 {
            at += 2;
        }
    }
    for level in 1..levels {
        loop {
            let byte = *key.get(at)?;
            at += 1;
            match byte {
                0 => break,
                b if level == 1 && b as u32 >= SHORT_SECONDARY => at += 1,
                _ => {}
            }
        }
    }
    Some(at)
}

/// Whether two characters have the same weights, each by itself.
pub(super) fn char_eq(a: u32, b: u32, rules: Rules) -> bool {
    let levels = rules.levels;
    if a < 0x80 && b < 0x80 && levels == 1 && rules.tailoring.is_none() {
        let (x, y) = (ASCII_CODE[a as usize], ASCII_CODE[b as usize]);
        return x == y && x != 0;
    }
    let (Some(a), Some(b)) = (char::from_u32(a), char::from_u32(b)) else {
        return false;
    };
    let (mut x, mut y) = ([0; 4], [0; 4]);
    let (x, y) = (
        a.encode_utf8(&mut x).as_bytes(),
        b.encode_utf8(&mut y).as_bytes(),
    );
    (0..levels).all(|level| weights(x, level, rules).eq(weights(y, level, rules)))
}
