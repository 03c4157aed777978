//! When to sync: how many commits are worth waiting for.
//!
//! A sync takes some hundred microseconds, however many commits share it. Clients that were just told that their
//! commit is durable often come back with the next one within some tens. Syncing the first of them at
//! once would leave the others to the sync after it, and two halves of the clients would take turns for ever:
//!
//! ```text
//! at once    a b c d │ sync abcd ── │ sync efgh ── │ sync abcd ── │      each sync has half of the clients
//! held back  a … d e … h │ sync abcdefgh ── │ a … h │ sync ── │          the first wait a little for the others
//! ```
//!
//! So a sync is held back while fewer commits wait than were on their way when the last one ended, for
//! three quarters of what a sync takes at most. A client alone is one of one, and never waits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest time that a sync is held back after the one before it, whatever syncs take.
const HOLD_MAX: Duration = Duration::from_micros(250);

/// A sync that takes less than this isn't worth waiting for company: the disk is memory, or isn't waited for
/// (`innodb_flush_log_at_trx_commit` 0 and 2).
const SLOW: Duration = Duration::from_micros(50);

/// Commits told within this time of each other were in one sync.
const ROUND: Duration = Duration::from_micros(40);

pub(crate) struct SyncRound {
    began: Instant,
    /// When the last sync ended, in nanoseconds since `began`.
    ended_ns: AtomicU64,
    /// Commits that were on their way then: those it synced, and those that had come meanwhile.
    expected: AtomicUsize,
    /// How long syncs take lately, in nanoseconds.
    took_ns: AtomicU64,
}

impl Default for SyncRound {
    fn default() -> SyncRound {
        SyncRound {
            began: Instant::now(),
            ended_ns: AtomicU64::new(0),
            expected: AtomicUsize::new(0),
            took_ns: AtomicU64::new(0),
        }
    }
}

impl SyncRound {
    fn since_end(&self, now: Instant) -> Duration {
        let ended = self.began + Duration::from_nanos(self.ended_ns.load(Ordering::Relaxed));
        now.saturating_duration_since(ended)
    }

    /// A commit was told that it is durable, while `under_way` were on their way, itself among them.
    pub fn told(&self, now: Instant, under_way: usize) {
        if self.since_end(now) > ROUND {
            let ns = now.saturating_duration_since(self.began).as_nanos();
            self.ended_ns
                .store(u64::try_from(ns).unwrap_or(u64::MAX), Ordering::Relaxed);
            self.expected.store(under_way, Ordering::Relaxed);
        }
    }

    /// A sync took so long.
    pub fn took(&self, time: Duration) {
        let before = self.took_ns.load(Ordering::Relaxed);
        let now = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / 4;
        self.took_ns
            .store(before - before / 4 + now, Ordering::Relaxed);
    }

    /// How long syncs take lately.
    pub fn takes(&self) -> Duration {
        Duration::from_nanos(self.took_ns.load(Ordering::Relaxed))
    }

    /// Whether more commits are likely to join the `waiting` soon.
    pub fn is_worth_holding(&self, now: Instant, waiting: usize) -> bool {
        let took = self.takes();
        waiting < self.expected.load(Ordering::Relaxed)
            && took > SLOW
            && self.since_end(now) < (took * 3 / 4).min(HOLD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_alone_never_waits_and_several_wait_for_each_other_for_a_moment() {
        let round = SyncRound::default();
        for _ in 0..10 {
            round.took(Duration::from_micros(300));
        }
        let end = round.began + Duration::from_millis(1);
        round.told(end, 1);
        assert!(!round.is_worth_holding(end, 1));
        let end = end + Duration::from_millis(1);
        // The first of a batch says how many there were; the others belong to the same round.
        round.told(end, 8);
        round.told(end + Duration::from_micros(5), 7);
        assert!(round.is_worth_holding(end + Duration::from_micros(30), 4));
        assert!(!round.is_worth_holding(end + Duration::from_micros(30), 8));
        // Three quarters of 300 µs, and not longer.
        assert!(!round.is_worth_holding(end + Duration::from_micros(226), 4));
        for _ in 0..10 {
            round.took(Duration::from_micros(20));
        }
        assert!(!round.is_worth_holding(end + Duration::from_micros(30), 4));
    }
}
