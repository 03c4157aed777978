//! Tailorings: how languages order letters otherwise than Unicode's table does.
//!
//! A tailoring is a text of rules (`languages.rs`), in the form of Unicode's LDML:
//!
//! ```text
//! &z < å <<< Å < ä      å comes behind all that begins with z, then ä; Å is å but for its case
//! &y << ü               ü is y but for its accent
//! &[before 1] b < á     á comes before b, behind whatever comes before that
//! &h < ch <<< Ch        the two letters together are one
//! &ae << ä              ä is ae but for its accent
//! ș = ş                 the same
//! ```
//!
//! It is read once, when its first collation is used, into elements like those of Unicode's table.
//! A letter behind z has z's elements and one more, whose primary is greater than any letter's: so
//! it comes behind z and whatever follows, and before the next letter.
//!
//! Rules that close over composition hold for a letter with further accents, and for letters written
//! as a base and combining accents. The collations of Unicode 9.0.0 have such rules; the older ones
//! name each letter.
//!
//! Source: Unicode Technical Standard #35, part 5, 3.3 "Tailorings".

use super::uca::{Contractions, Element, Elements, untailored};
use std::collections::HashMap;

/// The first of the primaries that put a letter behind another: above those of all letters.
const BEHIND: u32 = 0xFFC0;

/// A language's rules, read.
pub(super) struct Tailoring {
    /// Elements of single characters.
    letters: HashMap<u32, Vec<Element>>,
    /// Of several characters that are one letter, by the first, longest first.
    pub contractions: Contractions,
    /// ASCII characters that have other elements here, or may be one letter with what follows.
    special: [bool; 128],
    /// Whether ASCII characters may be one letter together.
    pub contracts_ascii: bool,
}

/// How a rule's letter differs from what comes before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    Primary,
    Secondary,
    Tertiary,
    Same,
}

impl Tailoring {
    /// Reads rules.
    ///
    /// # Panics
    /// On rules that can't be read: they are part of the program, and a test reads them all.
    pub fn read(rules: &str, closes_over_composition: bool) -> Tailoring {
        let mut tailoring = Tailoring {
            letters: HashMap::new(),
            contractions: HashMap::new(),
            special: [false; 128],
            contracts_ascii: false,
        };
        let mut named = Vec::new();
        for chain in rules.split('&').map(str::trim).filter(|c| !c.is_empty()) {
            tailoring.read_chain(chain, &mut named);
        }
        if closes_over_composition {
            tailoring.close_over_composition(&named);
        }
        for all in tailoring.contractions.values_mut() {
            all.sort_by_key(|contraction| std::cmp::Reverse(contraction.rest.len()));
        }
        tailoring
    }

    /// The elements of a character that the rules name; `None` for Unicode's own.
    pub fn letter(&self, c: u32) -> Option<&[Element]> {
        self.letters.get(&c).map(Vec::as_slice)
    }

    /// Whether an ASCII character is not simply what it is in Unicode's table.
    #[inline]
    pub fn is_special(&self, ascii: u8) -> bool {
        self.special[(ascii & 0x7F) as usize]
    }

    /// One `&` and what follows it; `named` gets the letters in the order of the rules.
    fn read_chain(&mut self, chain: &str, named: &mut Vec<char>) {
        let (anchor, rules) = chain.split_at(chain.find(['<', '=']).unwrap_or(chain.len()));
        let anchor = anchor.trim();
        let anchor = match anchor.strip_prefix("[before 1]") {
            Some(letter) => vec![element_before(self.elements(letter.trim())[0])],
            None => self.elements(anchor),
        };
        let mut current = anchor.clone();
        let mut letters_behind = 0;
        let mut rest = rules;
        while !rest.is_empty() {
            let (strength, signs) = match rest {
                r if r.starts_with("<<<") => (Strength::Tertiary, 3),
                r if r.starts_with("<<") => (Strength::Secondary, 2),
                r if r.starts_with('<') => (Strength::Primary, 1),
                _ => (Strength::Same, 1),
            };
            let rule = &rest[signs..];
            let (letter, others) = rule.split_at(rule.find(['<', '=']).unwrap_or(rule.len()));
            rest = others;
            if strength == Strength::Primary {
                current.clone_from(&anchor);
                current.push(Element::new(BEHIND + letters_behind, 0x20, 2));
                letters_behind += 1;
            } else {
                differ(&mut current, strength);
            }
            self.add(letter.trim(), current.clone(), named);
        }
    }

    fn elements(&self, text: &str) -> Vec<Element> {
        assert!(!text.is_empty(), "a rule names a letter");
        Elements::of(text.as_bytes(), Some(self)).collect()
    }

    fn add(&mut self, text: &str, elements: Vec<Element>, named: &mut Vec<char>) {
        let points: Vec<u32> = text.chars().map(u32::from).collect();
        match points[..] {
            [] => panic!("a rule names a letter"),
            [one] => {
                if one < 0x80 {
                    self.special[one as usize] = true;
                }
                named.extend(text.chars());
                self.letters.insert(one, elements);
            }
            _ => self.add_contraction(&points, elements),
        }
    }

    fn add_contraction(&mut self, points: &[u32], elements: Vec<Element>) {
        // All but the last may have something to follow them.
        for &point in &points[..points.len() - 1] {
            if point < 0x80 {
                self.special[point as usize] = true;
            }
        }
        self.contracts_ascii |= points.iter().all(|point| *point < 0x80);
        let (first, rest) = (points[0], points[1..].to_vec());
        let all = self.contractions.entry(first).or_default();
        all.push(super::uca::Contraction { rest, elements });
    }

    /// Letters that Unicode composes of a letter of the rules and further accents are that letter
    /// with these; and a letter's base followed by its accents is the letter.
    fn close_over_composition(&mut self, named: &[char]) {
        // Of two letters of the rules the one with more accents has the letter with further ones.
        let mut named = named.to_vec();
        named.sort_by_key(|letter| std::cmp::Reverse(untailored((*letter).into()).len()));
        let marks = combining_marks();
        let bases = base_letters();
        let composed: Vec<(u32, Vec<Element>)> = (0xC0..0x2000)
            .filter(|c| char::from_u32(*c).is_some())
            .map(|c| (c, untailored(c)))
            .filter(|(_, elements)| elements.len() > 1 && elements[1..].iter().all(is_mark))
            .collect();
        for letter in named {
            let own = untailored(letter.into());
            let tailored = self.letters[&u32::from(letter)].clone();
            for (other, elements) in &composed {
                if let Some(more) = further_marks(elements, &own)
                    && !self.letters.contains_key(other)
                {
                    let all = tailored.iter().copied().chain(more).collect();
                    self.letters.insert(*other, all);
                }
            }
            let (Some(base), true) = (bases.get(&own[0]), own.len() > 1) else {
                continue;
            };
            let accents: Option<Vec<u32>> =
                own[1..].iter().map(|e| marks.get(e).copied()).collect();
            if let Some(accents) = accents {
                let points: Vec<u32> = std::iter::once(*base).chain(accents).collect();
                self.add_contraction(&points, tailored);
            }
        }
    }
}

/// Makes elements differ from themselves on a level.
fn differ(elements: &mut [Element], strength: Strength) {
    let last = elements.len() - 1;
    match strength {
        Strength::Secondary => {
            for element in elements.iter_mut() {
                *element = Element::new(element.weight(0), element.weight(1), 2);
            }
            let e = elements[last];
            elements[last] = Element::new(e.weight(0), e.weight(1) + 1, 2);
        }
        Strength::Tertiary => {
            let e = elements[last];
            elements[last] = Element::new(e.weight(0), e.weight(1), e.weight(2) + 1);
        }
        Strength::Primary | Strength::Same => {}
    }
}

/// The accents that a composed letter has besides those of another letter; `None` if it isn't that
/// letter with further accents.
fn further_marks(composed: &[Element], letter: &[Element]) -> Option<Vec<Element>> {
    if composed.len() <= letter.len() || composed[0] != letter[0] {
        return None;
    }
    let mut marks = composed[1..].to_vec();
    for mark in &letter[1..] {
        let at = marks.iter().position(|other| other == mark)?;
        marks.remove(at);
    }
    Some(marks)
}

fn is_mark(element: &Element) -> bool {
    element.weight(0) == 0
}

/// Every character that has a single element, with it.
fn single_elements() -> impl Iterator<Item = (u32, Element)> {
    let points = (0..0x1_1000).filter(|c| char::from_u32(*c).is_some());
    points.filter_map(|c| match untailored(c)[..] {
        [element] => Some((c, element)),
        _ => None,
    })
}

/// The element of the letter before a letter's.
fn element_before(letter: Element) -> Element {
    let primaries = single_elements().map(|(_, element)| element.weight(0));
    let before = primaries.filter(|primary| *primary < letter.weight(0));
    Element::new(before.max().unwrap_or(0), 0x20, 2)
}

/// Combining accents by their elements.
fn combining_marks() -> HashMap<Element, u32> {
    let mut marks = HashMap::new();
    for c in 0x300..0x370 {
        if let [element] = untailored(c)[..]
            && is_mark(&element)
        {
            marks.entry(element).or_insert(c);
        }
    }
    marks
}

/// Letters by their elements.
fn base_letters() -> HashMap<Element, u32> {
    let mut letters = HashMap::new();
    for (c, element) in single_elements() {
        letters.entry(element).or_insert(c);
    }
    letters
}
