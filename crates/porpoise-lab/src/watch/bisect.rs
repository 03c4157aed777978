//! Which revision a change came with: by measuring between.
//!
//! The two sides of a change are known with their spread. A revision is measured until Wald's
//! sequential probability ratio test says to which side it belongs, so noise costs measurements and
//! not wrong answers. A change point may lie some revisions beside the change, so its neighbours are
//! judged first: while one is on the wrong side, the next one farther off is.
//!
//! ```text
//!   before ── lo ·········· hi ── after
//!      ◄── if lo is after   if hi is before ──►
//!              lo ··· middle ··· hi                then halves, until they are neighbours
//! ```

use std::ops::Range;

/// The chance that a revision is taken for one of the other side.
const ERROR: f64 = 0.01;
/// Of `ln(1 / ERROR)`, the most that one measurement counts: no single one decides.
const SINGLE: f64 = 0.8;
/// Measurements after which a revision stays undecided.
const MEASUREMENTS_MAX: usize = 12;

/// To which side of a change a revision belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
    /// It can't be measured, or its values lie between.
    Unknown,
}

/// The two sides of a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub before: f64,
    pub after: f64,
    /// The standard deviation of values on one side.
    pub spread: f64,
}

impl Sides {
    /// Measures one revision until it is known where it belongs. `value` gives the value of the n-th
    /// measurement, or nothing if there is none.
    pub(super) fn side<E>(
        &self,
        mut value: impl FnMut(usize) -> Result<Option<f64>, E>,
    ) -> Result<Side, E> {
        let bound = (1.0 / ERROR).ln();
        let middle = (self.before + self.after) / 2.0;
        // Values without any spread say all that one can say.
        let variance = self.spread.powi(2).max(f64::MIN_POSITIVE);
        let mut evidence: f64 = 0.0;
        for number in 0..MEASUREMENTS_MAX {
            let Some(value) = value(number)? else {
                break;
            };
            let ratio = (value - middle) * (self.after - self.before) / variance;
            evidence += ratio.clamp(-SINGLE * bound, SINGLE * bound);
            if evidence.abs() >= bound {
                return Ok(match evidence > 0.0 {
                    true => Side::After,
                    false => Side::Before,
                });
            }
        }
        Ok(Side::Unknown)
    }
}

/// The last revision before a change and the first one after it, among those from `bounds.start` to
/// before `bounds.end`, from a guess. What lies between can't be told apart.
pub(super) fn narrow<E>(
    guess: (usize, usize),
    bounds: Range<usize>,
    mut side: impl FnMut(usize) -> Result<Side, E>,
) -> Result<Option<(usize, usize)>, E> {
    let (mut lo, mut hi) = guess;
    let (mut last_before, mut first_after) = (None, None);
    let mut step = 1;
    loop {
        match side(lo)? {
            Side::Before => last_before = Some(lo),
            Side::After => first_after = Some(lo),
            Side::Unknown => {}
        }
        if last_before.is_some() || lo == bounds.start {
            break;
        }
        lo = lo.saturating_sub(step).max(bounds.start);
        step *= 2;
    }
    step = 1;
    while first_after.is_none() && hi < bounds.end {
        match side(hi)? {
            Side::Before => last_before = Some(hi),
            Side::After => first_after = Some(hi),
            Side::Unknown => {}
        }
        hi = match hi + 1 == bounds.end {
            true => bounds.end,
            false => (hi + step).min(bounds.end - 1),
        };
        step *= 2;
    }
    let (Some(mut lo), Some(mut hi)) = (last_before, first_after) else {
        return Ok(None);
    };
    let mut unknown = Vec::new();
    while let Some(middle) = nearest_to_middle(lo, hi, &unknown) {
        match side(middle)? {
            Side::Before => lo = middle,
            Side::After => hi = middle,
            Side::Unknown => unknown.push(middle),
        }
    }
    Ok(Some((lo, hi)))
}

/// The revision between that halves best, of those that aren't known to say nothing.
fn nearest_to_middle(lo: usize, hi: usize, unknown: &[usize]) -> Option<usize> {
    let between = (lo + 1..hi).filter(|at| !unknown.contains(at));
    between.min_by_key(|at| (2 * at).abs_diff(lo + hi))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    const SIDES: Sides = Sides {
        before: 1000.0,
        after: 950.0,
        spread: 20.0,
    };

    /// What is found of a change that revision `change` brought, from a guess, and by how many
    /// measurements.
    fn found(change: usize, guess: (usize, usize), seed: u64) -> (Option<(usize, usize)>, usize) {
        let mut random = Rng::with_seed(seed);
        let mut measured = 0;
        let range = narrow(guess, 0..200, |at| {
            SIDES.side(|_| {
                measured += 1;
                let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                let mean = if at < change { 1000.0 } else { 950.0 };
                Ok::<_, ()>(Some(mean + 20.0 * normal))
            })
        });
        (range.unwrap(), measured)
    }

    #[test]
    fn the_revision_is_named_wherever_the_guess_lies() {
        for guess in [(90, 110), (100, 101), (97, 98), (104, 105), (99, 100)] {
            let mut right = 0;
            let mut measurements = 0;
            for seed in 0..200 {
                let (range, measured) = found(100, guess, seed);
                right += usize::from(range == Some((99, 100)));
                measurements += measured;
            }
            println!(
                "{guess:?}: {right} of 200, {} measurements",
                measurements / 200
            );
            assert!(right >= 185, "{guess:?}: {right} of 200");
            assert!(measurements / 200 < 30);
        }
    }

    #[test]
    fn revisions_that_say_nothing_are_gone_around() {
        // 100 brought it; from 96 to 99, and 101, nothing can be built.
        let side = |at: usize| {
            Ok::<_, ()>(match at {
                96..=99 | 101 => Side::Unknown,
                100 | 102.. => Side::After,
                _ => Side::Before,
            })
        };
        assert_eq!(narrow((90, 110), 0..200, side), Ok(Some((95, 100))));
        assert_eq!(narrow((98, 101), 0..200, side), Ok(Some((95, 100))));
        let nothing = |_| Ok::<_, ()>(Side::Before);
        assert_eq!(narrow((90, 110), 0..200, nothing), Ok(None));
        let nothing = |_| Ok::<_, ()>(Side::Unknown);
        assert_eq!(narrow((90, 110), 0..120, nothing), Ok(None));
    }

    #[test]
    fn one_measurement_never_decides_and_a_spread_of_nothing_takes_two() {
        let sides = Sides {
            spread: 0.0,
            ..SIDES
        };
        let mut asked = 0;
        let side = sides.side(|_| {
            asked += 1;
            Ok::<_, ()>(Some(951.0))
        });
        assert_eq!((side, asked), (Ok(Side::After), 2));
        let between = SIDES.side(|_| Ok::<_, ()>(Some(975.0)));
        assert_eq!(between, Ok(Side::Unknown));
        assert_eq!(SIDES.side(|_| Ok::<_, ()>(None)), Ok(Side::Unknown));
    }
}
