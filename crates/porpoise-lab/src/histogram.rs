//! Latencies, counted in buckets whose width grows with them: 64 to each power of two, so a
//! percentile is at most 1/64 off whatever its size.
//!
//! ```text
//! nanoseconds   0 … 63 one by one │ 64 … 127 one by one │ 128 … 255 in steps of 2 │ 256 … 511 in steps of 4 │ …
//! ```

use std::time::Duration;

const STEPS_BITS: u32 = 6;
const STEPS: usize = 1 << STEPS_BITS;
const BUCKETS: usize = (u64::BITS - STEPS_BITS + 1) as usize * STEPS;

/// How often each latency was seen.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; BUCKETS],
            count: 0,
        }
    }
}

fn bucket(nanoseconds: u64) -> usize {
    let magnitude = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(STEPS_BITS + 1);
    magnitude as usize * STEPS + (nanoseconds >> magnitude) as usize
}

/// The largest value of a bucket.
fn ceiling(bucket: usize) -> u64 {
    let magnitude = (bucket / STEPS).saturating_sub(1);
    let step = (bucket - magnitude * STEPS) as u128;
    u64::try_from(((step + 1) << magnitude) - 1).unwrap_or(u64::MAX)
}

impl Histogram {
    /// Counts a latency.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanoseconds)] += 1;
        self.count += 1;
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += other;
        }
        self.count += other.count;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latency that `share` of all stay within: 0.95 for the 95th percentile. Zero if none was
    /// counted.
    pub fn percentile(&self, share: f64) -> Duration {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(ceiling(bucket));
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_falls_into_a_bucket_that_ends_close_above_it() {
        let mut nanoseconds = 1u64;
        while nanoseconds < u64::MAX / 3 {
            for value in [nanoseconds - 1, nanoseconds, nanoseconds + nanoseconds / 3] {
                let ceiling = ceiling(bucket(value));
                assert!(
                    ceiling >= value && ceiling - value <= value / STEPS as u64,
                    "{value} {ceiling}"
                );
                assert_eq!(bucket(ceiling), bucket(value));
                assert!(ceiling == u64::MAX || bucket(ceiling + 1) == bucket(value) + 1);
            }
            nanoseconds *= 2;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_latencies() {
        let mut odd = Histogram::default();
        let mut even = Histogram::default();
        for microseconds in 1..=1000u64 {
            let latency = Duration::from_micros(microseconds);
            if microseconds % 2 == 0 {
                even.record(latency)
            } else {
                odd.record(latency)
            }
        }
        odd.merge(&even);
        assert_eq!(odd.count(), 1000);
        for (share, microseconds) in [(0.5, 500.0), (0.95, 950.0), (1.0, 1000.0)] {
            let seen = odd.percentile(share).as_secs_f64() * 1e6;
            assert!(
                (microseconds..microseconds * 1.02).contains(&seen),
                "{share}: {seen}"
            );
        }
        assert_eq!(Histogram::default().percentile(0.95), Duration::ZERO);
    }
}
