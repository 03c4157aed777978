//! Sorting that can be ended.
//!
//! The standard library sorts a slice in one go: of a hundred million rows in ten seconds, in which
//! nobody can kill the statement. Here a large slice is parted around pivots, in place, until its
//! parts are small enough to be sorted in one go; `check` is called all the while.

use std::cmp::Ordering;

use crate::error::Result;

/// How often a comparison comes between two checks, at most.
const CHECKED_EVERY: usize = 1 << 16;
/// From how many items a pivot is chosen.
const SAMPLE: usize = 31;

/// Puts items in order. `compare` must tell all of them apart: of equal rows, say, by the order in
/// which they came. `run` says how many items may be sorted without a check.
///
/// # Errors
/// What `check` fails with; the items are in some order then.
pub fn sort<T: Copy>(
    items: &mut [T],
    run: usize,
    compare: impl Fn(&T, &T) -> Ordering,
    mut check: impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut parts: Vec<&mut [T]> = vec![items];
    while let Some(part) = parts.pop() {
        check()?;
        if part.len() <= run.max(SAMPLE) {
            part.sort_unstable_by(&compare);
            continue;
        }
        choose_pivot(part, &compare);
        let middle = partition(part, &compare, &mut check)?;
        let (low, high) = part.split_at_mut(middle);
        parts.push(&mut high[1..]);
        parts.push(low);
    }
    Ok(())
}

/// Puts an item behind all others that is likely to be in the middle of them.
fn choose_pivot<T: Copy>(part: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let last = part.len() - 1;
    let step = part.len() / SAMPLE;
    let mut at: [usize; SAMPLE] = std::array::from_fn(|n| n * step);
    at.sort_unstable_by(|a, b| compare(&part[*a], &part[*b]));
    part.swap(at[SAMPLE / 2], last);
}

/// Moves the items that are less than the last to the front, and the last behind them: there it
/// stays. Returns where.
fn partition<T: Copy>(
    part: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering,
    check: &mut impl FnMut() -> Result<()>,
) -> Result<usize> {
    let last = part.len() - 1;
    let pivot = part[last];
    let mut less = 0;
    for from in (0..last).step_by(CHECKED_EVERY) {
        check()?;
        for at in from..last.min(from + CHECKED_EVERY) {
            // No branch depends on the comparison: it could not be predicted.
            let is_less = compare(&part[at], &pivot).is_lt();
            part.swap(less, at);
            less += usize::from(is_less);
        }
    }
    part.swap(less, last);
    Ok(less)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn sorted(mut items: Vec<(u64, usize)>) {
        let mut expected = items.clone();
        expected.sort_unstable();
        sort(&mut items, 100, Ord::cmp, || Ok(())).unwrap();
        assert_eq!(items, expected);
    }

    #[test]
    fn every_kind_of_order_is_sorted() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            random >> 33
        };
        for len in [0, 1, 2, 100, 101, 5000, 200_000] {
            sorted((0..len).map(|n| (next(), n)).collect());
            sorted((0..len).map(|n| (n as u64, n)).collect());
            sorted((0..len).map(|n| ((len - n) as u64, n)).collect());
            sorted((0..len).map(|n| (n as u64 % 7, n)).collect());
            sorted((0..len).map(|n| (0, n)).collect());
            sorted((0..len).map(|n| (n.min(len - n) as u64, n)).collect());
        }
    }

    #[test]
    fn a_check_that_fails_ends_it() {
        let mut items: Vec<u32> = (0..1_000_000).rev().collect();
        let mut left = 3;
        let ended = sort(&mut items, 100, Ord::cmp, || {
            left -= 1;
            match left {
                0 => Err(Error::query_interrupted()),
                _ => Ok(()),
            }
        });
        assert_eq!(ended.unwrap_err().number(), 1317);
    }
}
