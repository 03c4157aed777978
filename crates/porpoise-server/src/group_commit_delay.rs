//! When to sync: how long a group commit waits for more commits to join it.
//!
//! A sync takes some hundred microseconds, however many commits share it. Clients that were just
//! told that their commit is durable often come back with the next one within some tens. If the
//! first of them were synced at once, the others would be left to the sync after it, and two halves
//! of the clients would take turns for ever:
//!
//! ```text
//! at once    a b c d │ sync abcd ── │ sync efgh ── │ sync abcd ── │      each sync has half of the clients
//! delayed    a … d e … h │ sync abcdefgh ── │ a … h │ sync ── │          the first wait a little for the others
//! ```
//!
//! So a sync is delayed while fewer commits wait than were pending when the last one ended, for
//! three quarters of what a sync takes at most. The commit of a single client never waits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest time that a sync is delayed after the one before it, whatever syncs take.
const DELAY_MAX: Duration = Duration::from_micros(250);

/// A sync that takes less than this isn't delayed: the disk is memory, or isn't waited for
/// (`innodb_flush_log_at_trx_commit` 0 and 2).
const SLOW_SYNC_MIN: Duration = Duration::from_micros(50);

/// Commits that are told durable within this time of each other were in one sync.
const SAME_SYNC: Duration = Duration::from_micros(40);

pub(crate) struct GroupCommitDelay {
    /// What times are counted from.
    epoch: Instant,
    /// When the last sync ended, in nanoseconds since `epoch`.
    last_sync_end_ns: AtomicU64,
    /// Commits that were pending then: those it synced, and those that had come meanwhile.
    expected: AtomicUsize,
    /// Moving average of how long syncs take, in nanoseconds.
    sync_time_ns: AtomicU64,
}

impl Default for GroupCommitDelay {
    fn default() -> GroupCommitDelay {
        GroupCommitDelay {
            epoch: Instant::now(),
            last_sync_end_ns: AtomicU64::new(0),
            expected: AtomicUsize::new(0),
            sync_time_ns: AtomicU64::new(0),
        }
    }
}

impl GroupCommitDelay {
    fn since_last_sync(&self, now: Instant) -> Duration {
        let end_ns = self.last_sync_end_ns.load(Ordering::Relaxed);
        now.saturating_duration_since(self.epoch + Duration::from_nanos(end_ns))
    }

    /// A commit was told that it is durable, while `pending` commits were pending, itself among
    /// them.
    pub fn record_durable(&self, now: Instant, pending: usize) {
        if self.since_last_sync(now) > SAME_SYNC {
            let ns = now.saturating_duration_since(self.epoch).as_nanos();
            self.last_sync_end_ns
                .store(u64::try_from(ns).unwrap_or(u64::MAX), Ordering::Relaxed);
            self.expected.store(pending, Ordering::Relaxed);
        }
    }

    /// A sync took this time.
    pub fn record_sync(&self, time: Duration) {
        let before = self.sync_time_ns.load(Ordering::Relaxed);
        let now = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / 4;
        self.sync_time_ns
            .store(before - before / 4 + now, Ordering::Relaxed);
    }

    /// How long syncs have taken lately.
    pub fn sync_time(&self) -> Duration {
        Duration::from_nanos(self.sync_time_ns.load(Ordering::Relaxed))
    }

    /// Whether more commits are likely to join the `pending` ones soon.
    pub fn should_delay(&self, now: Instant, pending: usize) -> bool {
        let sync_time = self.sync_time();
        pending < self.expected.load(Ordering::Relaxed)
            && sync_time > SLOW_SYNC_MIN
            && self.since_last_sync(now) < (sync_time * 3 / 4).min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_client_never_waits_and_several_wait_for_each_other_for_a_moment() {
        let delay = GroupCommitDelay::default();
        for _ in 0..10 {
            delay.record_sync(Duration::from_micros(300));
        }
        let end = delay.epoch + Duration::from_millis(1);
        delay.record_durable(end, 1);
        assert!(!delay.should_delay(end, 1));
        let end = end + Duration::from_millis(1);
        // The first of a batch says how many there were; the others belong to the same sync.
        delay.record_durable(end, 8);
        delay.record_durable(end + Duration::from_micros(5), 7);
        assert!(delay.should_delay(end + Duration::from_micros(30), 4));
        assert!(!delay.should_delay(end + Duration::from_micros(30), 8));
        // Three quarters of 300 µs, and not longer.
        assert!(!delay.should_delay(end + Duration::from_micros(226), 4));
        for _ in 0..10 {
            delay.record_sync(Duration::from_micros(20));
        }
        assert!(!delay.should_delay(end + Duration::from_micros(30), 4));
    }
}
