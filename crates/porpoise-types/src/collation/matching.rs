//! `LIKE` and searching: character by character under a collation.

use super::{Collation, char_at};
use std::convert::Infallible;
use std::ops::Range;

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
