//! What runs that differ tell: mean, interval, variation, and ratios with the interval they deserve.

use fastrand::Rng;

/// How often both sides of a ratio are drawn anew.
const RESAMPLES: usize = 10_000;
/// Of the bootstrap: the same runs give the same interval.
const SEED: u64 = 1;

/// Mean and spread of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many runs.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; 0 of a single one.
    pub deviation: f64,
    /// Half of the 95 % interval of the mean, by Student's t; 0 of a single run.
    pub half_interval: f64,
}

impl Summary {
    /// Of some runs; none without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        if count == 1 {
            return Some(Self {
                count,
                mean,
                ..Self::default()
            });
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        Some(Self {
            count,
            mean,
            deviation,
            half_interval: student_t(count - 1) * deviation / (count as f64).sqrt(),
        })
    }

    /// Standard deviation by mean.
    pub fn variation(&self) -> f64 {
        match self.mean {
            0.0 => 0.0,
            mean => self.deviation / mean,
        }
    }
}

/// The value in the middle, or the mean of the two that are; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The factor of a two-sided 95 % interval, by degrees of freedom.
fn student_t(freedom: usize) -> f64 {
    const FACTORS: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let normal: f64 = 1.960;
    match FACTORS.get(freedom.saturating_sub(1)) {
        Some(factor) => *factor,
        // Cornish and Fisher's first term, which is within 0.001 from here on.
        None => normal + (normal.powi(3) + normal) / (4.0 * freedom as f64),
    }
}

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the means.
    pub ratio: f64,
    /// The interval's ends.
    pub low: f64,
    /// The interval's ends.
    pub high: f64,
}

/// The mean of some runs by that of others, with a bootstrap interval (percentiles of the ratios of
/// resampled runs). None if either side has no runs, or the others' mean is 0.
pub fn ratio(runs: &[f64], others: &[f64]) -> Option<Ratio> {
    let (mean, other) = (Summary::of(runs)?.mean, Summary::of(others)?.mean);
    if other <= 0.0 {
        return None;
    }
    let mut random = Rng::with_seed(SEED);
    let mut resampled = |values: &[f64]| -> f64 {
        let draws = (0..values.len()).map(|_| values[random.usize(0..values.len())]);
        draws.sum::<f64>() / values.len() as f64
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| resampled(runs) / resampled(others))
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios.get((ratios.len() as f64 * share) as usize).copied();
    Some(Ratio {
        ratio: mean / other,
        low: at(0.025).unwrap_or(f64::NAN),
        high: at(0.975).unwrap_or(f64::NAN),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_the_mean_is_students() {
        let summary = Summary::of(&[10.0, 12.0, 11.0, 9.0, 13.0]).unwrap();
        assert_eq!(summary.mean, 11.0);
        assert!((summary.deviation - 1.5811).abs() < 1e-4);
        assert!((summary.half_interval - 1.9632).abs() < 1e-3, "{summary:?}");
        assert!((summary.variation() - 0.14374).abs() < 1e-4);
        assert_eq!(Summary::of(&[7.0]).unwrap().half_interval, 0.0);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 900.0]), 3.0);
        assert_eq!(median(&[4.0, 3.0, 1.0, 900.0]), 3.5);
        assert_eq!(median(&[]), 0.0);
        assert!((student_t(31) - 2.0395).abs() < 0.003);
        assert!((student_t(100) - 1.984).abs() < 0.001);
    }

    #[test]
    fn the_interval_of_a_ratio_has_the_true_one_in_most_experiments() {
        let mut random = Rng::with_seed(3);
        let mut normal = |mean: f64| {
            let sum: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            mean * (1.0 + 0.05 * sum)
        };
        let mut holds = 0;
        for _ in 0..40 {
            let runs: Vec<f64> = (0..10).map(|_| normal(150.0)).collect();
            let others: Vec<f64> = (0..10).map(|_| normal(100.0)).collect();
            let ratio = ratio(&runs, &others).unwrap();
            assert!(ratio.low < ratio.ratio && ratio.ratio < ratio.high);
            holds += u32::from((ratio.low..ratio.high).contains(&1.5));
        }
        assert!(holds >= 34, "{holds} of 40");
        assert_eq!(ratio(&[1.0], &[]), None);
        assert_eq!(ratio(&[1.0], &[0.0]), None);
        let same = ratio(&[4.0], &[2.0]).unwrap();
        assert_eq!((same.ratio, same.low, same.high), (2.0, 2.0, 2.0));
    }
}
