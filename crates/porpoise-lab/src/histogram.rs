//! Latencies in an HdrHistogram: buckets whose width grows with what they hold, so that a percentile
//! is at most a hundredth off whatever its size.

use std::time::Duration;

use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// The longest latency that is told from longer ones.
const LATENCY_MAX: Duration = Duration::from_secs(3600);
/// Two digits are 35 KB a histogram, of which each client has one; three would be 270.
const SIGNIFICANT_DIGITS: u8 = 2;

/// How often each latency was seen, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        let most = LATENCY_MAX.as_nanos() as u64;
        let histogram = hdrhistogram::Histogram::new_with_max(most, SIGNIFICANT_DIGITS);
        Self(histogram.expect("the bounds are an hour and two digits"))
    }
}

impl Histogram {
    /// Counts a latency.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanoseconds);
    }

    /// Counts a latency that was seen so often.
    pub fn record_many(&mut self, latency: Duration, count: u64) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record_n(nanoseconds, count);
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that `share` of all stay within: 0.95 for the 95th percentile. Zero if none was
    /// counted.
    pub fn percentile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }

    /// The mean of all; zero if none was counted.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.0.mean() as u64)
    }

    /// The shortest of all; zero if none was counted.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.0.min())
    }

    /// The longest of all; zero if none was counted.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// The compressed form that HdrHistogram's implementations exchange (V2, in nanoseconds); its
    /// Base64 is what their tools read.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&self.0, &mut bytes);
        written.expect("a Vec takes every write");
        bytes
    }

    /// Of [`to_bytes`](Self::to_bytes)' form; nothing if it isn't that.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes).ok()?;
        let mut own = Self::default();
        own.0.add(&read).ok()?;
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mean = odd.mean().as_secs_f64() * 1e6;
        assert!((mean - 500.5).abs() < 5.0, "{mean}");
        assert_eq!(Histogram::default().percentile(0.95), Duration::ZERO);
    }

    #[test]
    fn a_histogram_comes_back_from_its_bytes() {
        let mut histogram = Histogram::default();
        for latency in [0, 1, 999, 123_456_789, u64::MAX] {
            histogram.record(Duration::from_nanos(latency));
        }
        let read = Histogram::from_bytes(&histogram.to_bytes()).unwrap();
        assert_eq!(read.count(), 5);
        assert_eq!(read.percentile(0.5), histogram.percentile(0.5));
        assert_eq!(read.max(), histogram.max());
        assert_eq!(Histogram::from_bytes(b"no histogram"), None);
    }
}
