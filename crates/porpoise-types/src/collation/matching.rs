//! `LIKE` and searching: character by character under a collation.

use super::{Collation, char_at};
use std::ops::Range;

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
    let bytes = collation.is_binary();
    let escape = escape.map_or(u32::MAX, |e| e as u32);
    let (mut t, mut p) = (0, 0);
    // Where to go on after a mismatch: the pattern after the last `%`, and the text one character
    // further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = if p == pattern.len() {
            if t == text.len() {
                return true;
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
                    return true;
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
                return false;
            };
            if text_at >= text.len() {
                return false;
            }
            t = next(text, text_at, bytes).1;
            p = pattern_at;
            retry = Some((p, t));
        }
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

pub(super) fn find(
    collation: Collation,
    text: &[u8],
    needle: &[u8],
    from: usize,
) -> Option<Range<usize>> {
    let bytes = collation.is_binary();
    let mut start = from;
    while start <= text.len() {
        let (mut t, mut n) = (start, 0);
        loop {
            if n == needle.len() {
                return Some(start..t);
            }
            let (wanted, after) = next(needle, n, bytes);
            if !match_one(text, &mut t, wanted, bytes, collation) {
                break;
            }
            n = after;
        }
        if start == text.len() {
            break;
        }
        start = next(text, start, bytes).1;
    }
    None
}
