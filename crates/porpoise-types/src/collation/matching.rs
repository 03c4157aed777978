//! `LIKE` and searching: character by character under a collation.
//!
//! Most texts and patterns are ASCII. These are matched byte by byte, equal characters by a table of
//! the collation's own ([`Alike`]), and the places where a run may begin are found with `memchr`.

use super::{Collation, char_at};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::OnceLock;

/// After how many bytes that were compared in vain a search may be ended.
const CHECKED_BYTES: usize = 1 << 16;

/// The character at `at` under the collation: a byte of `binary`.
#[inline]
fn next(text: &[u8], at: usize, bytes: bool) -> (u32, usize) {
    if bytes {
        (text[at] as u32, at + 1)
    } else {
        char_at(text, at)
    }
}

/// SQL `LIKE`: `%` matches any run, `_` any one character, and `escape` takes the character after
/// it literally (MySQL's is `\` unless the statement names another). Unlike `=`, trailing spaces
/// count.
pub fn like(text: &[u8], pattern: &[u8], escape: Option<char>, collation: Collation) -> bool {
    let check = || Ok::<(), Infallible>(());
    match try_like(text, pattern, escape, collation, check) {
        Ok(matches) => matches,
    }
}

/// As [`like`], and calls `check` every so often: a pattern that nearly matches at each character
/// of a long text takes long.
///
/// # Errors
/// What `check` fails with.
pub fn try_like<E>(
    text: &[u8],
    pattern: &[u8],
    escape: Option<char>,
    collation: Collation,
    check: impl FnMut() -> Result<(), E>,
) -> Result<bool, E> {
    if text.is_ascii() && pattern.is_ascii() {
        let escape = escape.and_then(|escape| u8::try_from(escape).ok());
        return like_ascii(text, pattern, escape, Alike::of(collation), check);
    }
    like_by_characters(text, pattern, escape, collation, check)
}

fn like_by_characters<E>(
    text: &[u8],
    pattern: &[u8],
    escape: Option<char>,
    collation: Collation,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<bool, E> {
    let mut compared = 0;
    let bytes = collation.is_binary();
    let escape = escape.map_or(u32::MAX, |e| e as u32);
    let (mut t, mut p) = (0, 0);
    // Where to go on after a mismatch: the pattern after the last `%`, and the text one character
    // further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = if p == pattern.len() {
            if t == text.len() {
                return Ok(true);
            }
            false
        } else {
            let (wanted, after) = next(pattern, p, bytes);
            if wanted == escape && after < pattern.len() {
                let (literal, after) = next(pattern, after, bytes);
                match_one(text, &mut t, literal, bytes, collation)
                    .then(|| p = after)
                    .is_some()
            } else if wanted == b'%' as u32 {
                if after == pattern.len() {
                    return Ok(true);
                }
                p = after;
                retry = Some((p, t));
                continue;
            } else if wanted == b'_' as u32 {
                if t < text.len() {
                    t = next(text, t, bytes).1;
                    p = after;
                    true
                } else {
                    false
                }
            } else {
                match_one(text, &mut t, wanted, bytes, collation)
                    .then(|| p = after)
                    .is_some()
            }
        };
        if !matched {
            let Some((pattern_at, text_at)) = retry else {
                return Ok(false);
            };
            if text_at >= text.len() {
                return Ok(false);
            }
            compared += 1 + t.saturating_sub(text_at);
            if compared >= CHECKED_BYTES {
                compared = 0;
                check()?;
            }
            t = next(text, text_at, bytes).1;
            p = pattern_at;
            retry = Some((p, t));
        }
    }
}

/// Which ASCII characters are alike to a collation.
struct Alike {
    /// The first of the characters that each is alike to.
    first: [u8; 128],
    /// By such a first one: those that are alike to it, if these are three at most.
    few: [Option<(u8, u8, u8)>; 128],
}

impl Alike {
    fn of(collation: Collation) -> &'static Alike {
        /// Collations have numbers below this.
        const COLLATIONS: usize = 512;
        static KNOWN: [OnceLock<Box<Alike>>; COLLATIONS] = [const { OnceLock::new() }; COLLATIONS];
        KNOWN[usize::from(collation.id()) % COLLATIONS].get_or_init(|| {
            let mut alike = Box::new(Alike {
                first: [0; 128],
                few: [None; 128],
            });
            for c in 0..128_u8 {
                let is_alike = |other: &u8| collation.char_eq((*other).into(), c.into());
                alike.first[c as usize] = (0..c).find(is_alike).unwrap_or(c);
                let all: Vec<u8> = (0..128).filter(is_alike).collect();
                alike.few[c as usize] = match *all {
                    [a] => Some((a, a, a)),
                    [a, b] => Some((a, b, b)),
                    [a, b, c] => Some((a, b, c)),
                    _ => None,
                };
            }
            alike
        })
    }

    #[inline]
    fn are(&self, a: u8, b: u8) -> bool {
        self.first[(a & 0x7F) as usize] == self.first[(b & 0x7F) as usize]
    }

    /// Where a character first is that is alike to this one.
    #[inline]
    fn position(&self, wanted: u8, text: &[u8]) -> Option<usize> {
        match self.few[(wanted & 0x7F) as usize] {
            Some((a, b, _)) if a == b => memchr::memchr(a, text),
            Some((a, b, c)) if b == c => memchr::memchr2(a, b, text),
            Some((a, b, c)) => memchr::memchr3(a, b, c, text),
            None => text.iter().position(|found| self.are(*found, wanted)),
        }
    }
}

/// What a byte of a pattern asks for.
enum Wanted {
    Any,
    One,
    Literal(u8),
}

/// The element of the pattern at a place in it, and where the next is.
#[inline]
fn element(pattern: &[u8], at: usize, escape: Option<u8>) -> (Wanted, usize) {
    match pattern[at] {
        byte if Some(byte) == escape && at + 1 < pattern.len() => {
            (Wanted::Literal(pattern[at + 1]), at + 2)
        }
        b'%' => (Wanted::Any, at + 1),
        b'_' => (Wanted::One, at + 1),
        byte => (Wanted::Literal(byte), at + 1),
    }
}

/// [`try_like`] of a text and a pattern that are ASCII.
fn like_ascii<E>(
    text: &[u8],
    pattern: &[u8],
    escape: Option<u8>,
    alike: &Alike,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<bool, E> {
    let (mut t, mut p) = (0, 0);
    let mut compared = 0;
    // As in `try_like`.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = if p == pattern.len() {
            if t == text.len() {
                return Ok(true);
            }
            false
        } else {
            let (wanted, after) = element(pattern, p, escape);
            let matched = match wanted {
                Wanted::Any if after == pattern.len() => return Ok(true),
                Wanted::Any => {
                    p = after;
                    // The rest can't begin before its first character does.
                    if let (Wanted::Literal(wanted), _) = element(pattern, p, escape) {
                        match alike.position(wanted, &text[t..]) {
                            Some(skipped) => t += skipped,
                            None => return Ok(false),
                        }
                    }
                    retry = Some((p, t));
                    continue;
                }
                Wanted::One => t < text.len(),
                Wanted::Literal(wanted) => {
                    text.get(t).is_some_and(|found| alike.are(*found, wanted))
                }
            };
            if matched {
                (t, p) = (t + 1, after);
            }
            matched
        };
        if matched {
            continue;
        }
        let Some((pattern_at, text_at)) = retry else {
            return Ok(false);
        };
        if text_at >= text.len() {
            return Ok(false);
        }
        compared += 1 + t.saturating_sub(text_at);
        if compared >= CHECKED_BYTES {
            compared = 0;
            check()?;
        }
        (p, t) = (pattern_at, text_at + 1);
        if let (Wanted::Literal(wanted), _) = element(pattern, p, escape) {
            match alike.position(wanted, &text[t..]) {
                Some(skipped) => t += skipped,
                None => return Ok(false),
            }
        }
        retry = Some((p, t));
    }
}

/// [`find`] of a text and a needle that are ASCII.
fn find_ascii<E>(
    alike: &Alike,
    text: &[u8],
    needle: &[u8],
    from: usize,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<Option<Range<usize>>, E> {
    let Some((&first, rest)) = needle.split_first() else {
        return Ok((from <= text.len()).then_some(from..from));
    };
    let (mut start, mut compared) = (from, 0);
    loop {
        let Some(skipped) = text
            .get(start..)
            .and_then(|text| alike.position(first, text))
        else {
            return Ok(None);
        };
        start += skipped;
        let Some(found) = text.get(start + 1..start + needle.len()) else {
            return Ok(None);
        };
        let pairs = found.iter().zip(rest);
        let same = pairs
            .take_while(|(found, wanted)| alike.are(**found, **wanted))
            .count();
        if same == rest.len() {
            return Ok(Some(start..start + needle.len()));
        }
        compared += 1 + same;
        if compared >= CHECKED_BYTES {
            compared = 0;
            check()?;
        }
        start += 1;
    }
}

#[inline]
fn match_one(text: &[u8], at: &mut usize, wanted: u32, bytes: bool, collation: Collation) -> bool {
    if *at >= text.len() {
        return false;
    }
    let (found, after) = next(text, *at, bytes);
    let equal = found == wanted || collation.char_eq(found, wanted);
    if equal {
        *at = after;
    }
    equal
}

pub(super) fn find<E>(
    collation: Collation,
    text: &[u8],
    needle: &[u8],
    from: usize,
    check: impl FnMut() -> Result<(), E>,
) -> Result<Option<Range<usize>>, E> {
    if text.is_ascii() && needle.is_ascii() {
        return find_ascii(Alike::of(collation), text, needle, from, check);
    }
    find_by_characters(collation, text, needle, from, check)
}

fn find_by_characters<E>(
    collation: Collation,
    text: &[u8],
    needle: &[u8],
    from: usize,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<Option<Range<usize>>, E> {
    let bytes = collation.is_binary();
    let mut start = from;
    let mut compared = 0;
    while start <= text.len() {
        let (mut t, mut n) = (start, 0);
        loop {
            if n == needle.len() {
                return Ok(Some(start..t));
            }
            let (wanted, after) = next(needle, n, bytes);
            if !match_one(text, &mut t, wanted, bytes, collation) {
                break;
            }
            n = after;
        }
        compared += 1 + t - start;
        if compared >= CHECKED_BYTES {
            compared = 0;
            check()?;
        }
        if start == text.len() {
            break;
        }
        start = next(text, start, bytes).1;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_collation() -> impl Strategy<Value = Collation> {
        let all: Vec<Collation> = Collation::all().collect();
        proptest::sample::select(all)
    }

    proptest! {
        #[test]
        fn ascii_is_matched_as_characters_are(
            text in "[aAbBkKsS%_1\\\\\x00\x01\t ]{0,20}",
            pattern in "[aAbBkKsS%%%_1\\\\\x00\x01 ]{0,8}",
            escape in proptest::option::of(proptest::sample::select(vec!['\\', 'a', '%', '\u{e9}'])),
            from in 0..22_usize,
            collation in any_collation(),
        ) {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let check = || Ok::<(), Infallible>(());
            prop_assert_eq!(
                try_like(text, pattern, escape, collation, check),
                like_by_characters(text, pattern, escape, collation, check)
            );
            prop_assert_eq!(
                find(collation, text, pattern, from, check),
                find_by_characters(collation, text, pattern, from, check)
            );
        }
    }
}
