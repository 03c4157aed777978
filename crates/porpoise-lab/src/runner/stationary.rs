//! When a warm-up is over: throughput is stationary by the rule MSER-5 (White, Cobb and Spratt, 2000).
//!
//! Observations are put into batches of five, whose means are a series. Of all its beginnings, the
//! one to leave out is that which makes the mean of the rest most certain: its squared standard
//! error, the sum of squares divided by the square of the number that is left, is least. If that
//! beginning is longer than half of the series, the series is still in its transient. So there is
//! no threshold to choose, and a noisy machine doesn't warm up longer than a quiet one.

/// Observations in a batch.
const BATCH: usize = 5;
/// Of fewer batches, more than half could not be left out.
const BATCHES_MIN: usize = 20;

/// A series of throughputs, each for a part of the warm-up of the same length.
#[derive(Default)]
pub(super) struct Series {
    batch: Vec<f64>,
    means: Vec<f64>,
}

impl Series {
    /// Adds one; true if the series is stationary.
    pub(super) fn add(&mut self, throughput: f64) -> bool {
        self.batch.push(throughput);
        if self.batch.len() == BATCH {
            self.means
                .push(self.batch.iter().sum::<f64>() / BATCH as f64);
            self.batch.clear();
        }
        self.is_stationary()
    }

    /// Whether what comes is like what was.
    pub(super) fn is_stationary(&self) -> bool {
        let count = self.means.len();
        count >= BATCHES_MIN && truncation(&self.means) <= count / 2
    }
}

/// How many of the first values are best left out.
fn truncation(values: &[f64]) -> usize {
    let mut best = (0, f64::INFINITY);
    // From the end: mean and sum of squares grow by one value a step (Welford).
    let (mut mean, mut squares, mut count) = (0.0, 0.0, 0.0);
    for (first, &value) in values.iter().enumerate().rev() {
        count += 1.0;
        let off = value - mean;
        mean += off / count;
        squares += off * (value - mean);
        let error = squares / (count * count);
        // Of a few values the variance says nothing: the rule's authors leave out the last five.
        if count > BATCH as f64 && error <= best.1 {
            best = (first, error);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// When a series is stationary for the first time, in observations.
    fn ends(throughput: impl Fn(usize) -> f64, noise: f64, seed: u64) -> Option<usize> {
        let mut random = Rng::with_seed(seed);
        let mut series = Series::default();
        (0..1000).find(|&at| {
            let noise: f64 = (0..12).map(|_| random.f64() - 0.5).sum::<f64>() * noise;
            series.add(throughput(at) * (1.0 + noise))
        })
    }

    #[test]
    fn a_constant_throughput_is_stationary_as_soon_as_there_is_enough_of_it() {
        for seed in 0..20 {
            let end = ends(|_| 1000.0, 0.05, seed).unwrap();
            assert!(end < 2 * BATCH * BATCHES_MIN, "{seed}: {end}");
        }
        assert_eq!(ends(|_| 0.0, 0.0, 1), Some(BATCH * BATCHES_MIN - 1));
    }

    #[test]
    fn a_throughput_that_rises_first_is_stationary_after_that() {
        let rising = |at: usize| 1000.0 * (1.0 - (-(at as f64) / 40.0).exp());
        for seed in 0..20 {
            let end = ends(rising, 0.02, seed).unwrap();
            assert!((120..600).contains(&end), "{seed}: {end}");
        }
    }

    #[test]
    fn a_throughput_that_goes_on_rising_is_never_stationary() {
        for seed in 0..20 {
            assert_eq!(
                ends(|at| 100.0 + 10.0 * at as f64, 0.002, seed),
                None,
                "{seed}"
            );
        }
    }
}
