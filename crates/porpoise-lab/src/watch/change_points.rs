//! Where a history changes: E-divisive means, with Student's t for significance.
//!
//! A history is a list of values, one or several for each revision. E-divisive (Matteson and James,
//! 2014) splits it where the energy distance between the two sides is largest, and splits the sides
//! in turn. Its authors test a split by permutations, whose answer differs from call to call; as in
//! Hunter (Fleming, Kołaczkowski and others, 2023) it is Welch's t-test here: the same history always
//! gives the same change points, and those that are known stay as it grows, unless what follows
//! refutes them.
//!
//! ```text
//!   values   · ··· · ·· | ·· ··· ·           each side: mean, spread
//!            before       after              p below 0.001: a change point
//! ```

/// The chance that a history without any change shows one at a given place.
pub const SIGNIFICANCE: f64 = 0.001;
/// A side has so many values at least: of fewer, no spread can be told.
const SIDE_MIN: usize = 4;

/// A change, between two neighbouring values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The number of the first value after it.
    pub at: usize,
    /// The mean from the change point before to this one.
    pub before: f64,
    /// The mean from here to the next change point.
    pub after: f64,
    /// Of `after / before`: the 95 % interval's ends.
    pub ratio: (f64, f64),
    /// The chance of such a difference without a change.
    pub p: f64,
    /// The standard deviation of values on a side.
    pub spread: f64,
}

/// All changes of a history, in order.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let mut ends = vec![0, values.len()];
    split(values, 0, values.len(), &mut ends);
    ends.sort_unstable();
    // A split between parts that were split further has to hold between the parts beside it.
    loop {
        let weakest = (1..ends.len().saturating_sub(1))
            .map(|at| (at, test(values, &ends, at).p))
            .max_by(|one, other| one.1.total_cmp(&other.1));
        match weakest {
            Some((at, p)) if p > SIGNIFICANCE => ends.remove(at),
            _ => break,
        };
    }
    let inner = 1..ends.len().saturating_sub(1);
    inner.map(|at| test(values, &ends, at)).collect()
}

/// Splits a part where its sides differ most, if they do, and the sides in turn.
fn split(values: &[f64], from: usize, to: usize, ends: &mut Vec<usize>) {
    let Some(at) = best_split(&values[from..to]) else {
        return;
    };
    let at = from + at;
    if welch(&values[from..at], &values[at..to]).0 <= SIGNIFICANCE {
        ends.push(at);
        split(values, from, at, ends);
        split(values, at, to, ends);
    }
}

/// Where the energy distance between the sides, weighted by their sizes, is largest.
fn best_split(values: &[f64]) -> Option<usize> {
    let count = values.len();
    if count < 2 * SIDE_MIN {
        return None;
    }
    let distance = |i: usize, j: usize| (values[i] - values[j]).abs();
    // Sums of distances within the left side, within the right, and between: a value that goes from
    // right to left changes each by its distances to the two sides.
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..count)
        .map(|i| (0..i).map(|j| distance(i, j)).sum::<f64>())
        .sum();
    let mut best: Option<(usize, f64)> = None;
    for at in 1..count {
        let moved = at - 1;
        let to_left: f64 = (0..moved).map(|i| distance(i, moved)).sum();
        let to_right: f64 = (at..count).map(|i| distance(i, moved)).sum();
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if at < SIDE_MIN || count - at < SIDE_MIN {
            continue;
        }
        let (m, n) = (at as f64, (count - at) as f64);
        let pairs = |size: f64| size * (size - 1.0) / 2.0;
        let energy = 2.0 * between / (m * n) - left / pairs(m) - right / pairs(n);
        let weighted = energy * m * n / (m + n);
        if best.is_none_or(|(_, most)| weighted > most) {
            best = Some((at, weighted));
        }
    }
    best.map(|(at, _)| at)
}

fn test(values: &[f64], ends: &[usize], at: usize) -> ChangePoint {
    let before = &values[ends[at - 1]..ends[at]];
    let after = &values[ends[at]..ends[at + 1]];
    let (p, half_interval) = welch(before, after);
    let squares = |side: &[f64]| -> f64 {
        let mean = mean(side);
        side.iter().map(|value| (value - mean).powi(2)).sum()
    };
    let freedom = (before.len() + after.len()).saturating_sub(2).max(1);
    let spread = ((squares(before) + squares(after)) / freedom as f64).sqrt();
    let (before, after) = (mean(before), mean(after));
    let difference = after - before;
    ChangePoint {
        at: ends[at],
        before,
        after,
        ratio: (
            1.0 + (difference - half_interval) / before,
            1.0 + (difference + half_interval) / before,
        ),
        p,
        spread,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Welch's t-test: the chance of such a difference of means, and half of the 95 % interval of the
/// difference.
fn welch(one: &[f64], other: &[f64]) -> (f64, f64) {
    let of = |values: &[f64]| {
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let count = values.len() as f64;
        (mean, squares / (count - 1.0).max(1.0) / count, count)
    };
    let ((one, one_error, m), (other, other_error, n)) = (of(one), of(other));
    let error = one_error + other_error;
    let difference = (one - other).abs();
    if error == 0.0 {
        return (if difference > 0.0 { 0.0 } else { 1.0 }, 0.0);
    }
    let within = one_error.powi(2) / (m - 1.0) + other_error.powi(2) / (n - 1.0);
    let freedom = error.powi(2) / within;
    let t = difference / error.sqrt();
    (two_sided(t, freedom), quantile(freedom) * error.sqrt())
}

/// The chance that Student's t is further from 0 than `t`.
fn two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Beyond which Student's t is in 5 of 100 cases.
fn quantile(freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match two_sided(middle, freedom) > 0.05 {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let tiny = 1e-300;
    let guarded = |value: f64| if value.abs() < tiny { tiny } else { value };
    let (mut c, mut d) = (1.0, 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / guarded(1.0 + term * d);
            c = guarded(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front.exp() * fraction / a).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function, by Stirling's series, for positive values.
fn ln_gamma(x: f64) -> f64 {
    // The series is good from 10 on: Γ(x) = Γ(x + 1) / x.
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// A history with changes: from which value on, and what the mean is multiplied by.
    fn history(count: usize, changes: &[(usize, f64)], noise: f64, seed: u64) -> Vec<f64> {
        let mut random = Rng::with_seed(seed);
        let value = |at: usize| {
            let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let mean: f64 = changes
                .iter()
                .filter(|(from, _)| *from <= at)
                .map(|(_, factor)| factor)
                .product();
            1000.0 * mean * (1.0 + noise * normal)
        };
        (0..count).map(value).collect()
    }

    #[test]
    fn students_distribution_is_that_of_tables() {
        for (t, freedom, p) in [
            (2.228, 10.0, 0.05),
            (4.587, 10.0, 0.001),
            (12.706, 1.0, 0.05),
            (1.984, 100.0, 0.05),
        ] {
            assert!(
                (two_sided(t, freedom) - p).abs() < 2e-4,
                "{t} {freedom}: {}",
                two_sided(t, freedom)
            );
        }
        assert!((two_sided(0.0, 5.0) - 1.0).abs() < 1e-12);
        assert!((quantile(10.0) - 2.228).abs() < 1e-3);
    }

    #[test]
    fn a_change_is_found_where_it_is_with_its_size() {
        let values = history(60, &[(25, 0.9), (45, 1.2)], 0.01, 1);
        let found = change_points(&values);
        let places: Vec<usize> = found.iter().map(|point| point.at).collect();
        assert_eq!(places, [25, 45], "{found:?}");
        let (low, high) = found[0].ratio;
        assert!(low < 0.9 && 0.9 < high && high - low < 0.03, "{found:?}");
        assert!(found.iter().all(|point| point.p < SIGNIFICANCE));
        assert_eq!(
            change_points(&values),
            found,
            "the same history gives the same points"
        );
    }

    #[test]
    fn histories_without_values_or_spread_have_no_change() {
        for values in [&[][..], &[1.0], &[1.0; 30], &[0.0; 9]] {
            assert_eq!(change_points(values), []);
        }
        let step: Vec<f64> = [vec![1.0; 10], vec![2.0; 10]].concat();
        assert_eq!(change_points(&step)[0].at, 10);
    }

    /// What is found of a change of so much, and how often one is found where there is none, in
    /// histories of 60 revisions.
    fn recall(factor: f64, noise: f64) -> (usize, usize) {
        let (mut found, mut false_alarms) = (0, 0);
        for seed in 0..200 {
            let points = change_points(&history(60, &[(40, factor)], noise, seed));
            let hits = points
                .iter()
                .filter(|point| point.at.abs_diff(40) <= 2)
                .count();
            found += usize::from(hits > 0);
            false_alarms += points.len() - hits;
        }
        (found, false_alarms)
    }

    #[test]
    fn changes_of_five_and_ten_percent_are_found_under_noise_of_two() {
        // Of 200 histories each. docs/laboratory.md tells of these figures.
        let table: Vec<(f64, f64, (usize, usize))> = [
            (0.98, 0.01),
            (0.98, 0.02),
            (0.95, 0.02),
            (0.9, 0.02),
            (0.95, 0.05),
            (0.9, 0.05),
            (1.0, 0.02),
            (1.0, 0.05),
        ]
        .into_iter()
        .map(|(factor, noise)| (factor, noise, recall(factor, noise)))
        .collect();
        for (factor, noise, (found, false_alarms)) in &table {
            println!("{factor} {noise}: found {found} of 200, false {false_alarms}");
        }
        let of = |factor: f64, noise: f64| {
            table
                .iter()
                .find(|row| row.0 == factor && row.1 == noise)
                .unwrap()
                .2
        };
        assert!(of(0.95, 0.02).0 >= 195 && of(0.9, 0.02).0 >= 195 && of(0.9, 0.05).0 >= 190);
        assert!(of(1.0, 0.02).1 <= 20 && of(1.0, 0.05).1 <= 20);
    }
}
