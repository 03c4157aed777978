//! How long to look for something before sleeping for it.
//!
//! Waking a sleeper costs tens of microseconds; seeing a word change costs tenths of one. So looking pays when what is
//! waited for comes soon and a core is free to look with, and wastes the core otherwise. Two things decide:
//!
//! - *How long it took lately*, whether a look sufficed or a sleep was needed (less what the wake itself cost). While this is
//!   shorter than a sleep and a wake, looking goes on for that long; when it is longer, a glance is all.
//! - *Whether there are cores to spare.* Where threads wait for a core, a look takes the time of whoever is waited for, and
//!   must be short. A thread notices by how long it has to wait for a core itself ([`Crowd`]).
//!
//! ```text
//!   waits lately   0.2  0.3  0.2  55  50  0.3 …       µs      ─► look for 100 µs (5 in a crowd)
//!                  900  2000  40  1500 …                      ─► glance, sleep
//! ```

use crate::sys;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Looks that are always affordable, before the first look at the clock.
const GLANCE: u32 = 40;
/// Looks from one look at the clock to the next.
const LOOKS_A_CLOCK: u32 = 32;
/// The longest time with cores to spare: about as long as two ends take to wake each other.
const LONGEST: Duration = Duration::from_micros(100);
/// The longest time when there are none.
const LONGEST_CROWDED: Duration = Duration::from_micros(5);
/// About what a sleep and a wake add to a wait.
const WAKE_COST: Duration = Duration::from_micros(50);
/// Who loses looks at the clock, whether it is time to ask the system again; who wins, only so often.
const WINS_BETWEEN_SURVEYS: u64 = 256;

/// One waiter's experience.
#[derive(Debug)]
pub struct Spin {
    /// Moving average of how long it took lately.
    gap: Duration,
    /// When the look that was in vain ended.
    lost_at: Option<Instant>,
    won: u64,
    lost: u64,
    crowd: Crowd,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            gap: LONGEST / 2,
            lost_at: None,
            won: 0,
            lost: 0,
            crowd: Crowd::default(),
        }
    }
}

impl Spin {
    /// Looks with `there` until it says true, or until this isn't worth it any longer: then false. Who sleeps after that
    /// tells when it [`woke`](Self::woke).
    #[inline]
    pub fn wait(&mut self, mut there: impl FnMut() -> bool) -> bool {
        let mut look = |times| {
            (0..times).any(|_| {
                let there = there();
                if !there {
                    spin_loop();
                }
                there
            })
        };
        if look(GLANCE) {
            self.win(Duration::ZERO);
            return true;
        }
        let budget = self.budget();
        let began = Instant::now();
        let mut took = Duration::ZERO;
        while took < budget {
            let won = look(LOOKS_A_CLOCK);
            took = began.elapsed();
            if won {
                self.win(took);
                return true;
            }
        }
        self.lost += 1;
        self.lost_at = Some(began);
        self.crowd.survey();
        false
    }

    /// A sleep for what was looked for in vain has ended.
    pub fn woke(&mut self) {
        if let Some(lost_at) = self.lost_at.take() {
            self.learn(lost_at.elapsed().saturating_sub(WAKE_COST));
        }
    }

    fn win(&mut self, took: Duration) {
        self.won += 1;
        self.learn(took);
        if self.won.is_multiple_of(WINS_BETWEEN_SURVEYS) {
            self.crowd.survey();
        }
    }

    fn budget(&self) -> Duration {
        match self.crowd.crowded {
            _ if self.gap > LONGEST => Duration::ZERO,
            true => LONGEST_CROWDED,
            false => LONGEST,
        }
    }

    fn learn(&mut self, took: Duration) {
        // A long wait weighs no more than some short ones.
        self.gap = (self.gap * 7 + took.min(LONGEST * 4)) / 8;
    }

    /// Waits that a look sufficed for.
    pub fn won(&self) -> u64 {
        self.won
    }

    /// Waits that looking was in vain for.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Whether there are cores to spare, as a thread has experienced it: the system tells how long it was ready to run and had
/// to wait for a core.
#[derive(Clone, Copy, Debug, Default)]
struct Crowd {
    /// When the system was last asked, and what it said.
    last: Option<(Instant, Duration)>,
    crowded: bool,
}

const SURVEY_EVERY: Duration = Duration::from_millis(10);
/// A thread that waits for a core for more than this part of its time is in a crowd.
const WAITS_PART: u32 = 4;

impl Crowd {
    fn survey(&mut self) {
        let now = Instant::now();
        let due = |(at, _): &(Instant, Duration)| now - *at >= SURVEY_EVERY;
        if !self.last.as_ref().is_none_or(due) {
            return;
        }
        let waited = sys::waited_for_a_core().unwrap_or_default();
        if let Some((at, before)) = self.last {
            let lately = waited.saturating_sub(before);
            self.crowded = lately * WAITS_PART > now - at;
        }
        self.last = Some((now, waited));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_goes_on_while_waits_are_short_and_ends_when_they_are_long() {
        let mut spin = Spin::default();
        for _ in 0..40 {
            assert!(spin.wait(|| true));
        }
        assert_eq!((spin.won(), spin.lost()), (40, 0));
        // One long wait doesn't end it.
        spin.learn(Duration::from_secs(1));
        assert!(spin.budget() >= LONGEST_CROWDED);
        for _ in 0..40 {
            spin.learn(Duration::from_millis(3));
        }
        assert_eq!(spin.budget(), Duration::ZERO);
        let mut looked = 0;
        assert!(!spin.wait(|| {
            looked += 1;
            false
        }));
        assert_eq!(looked, GLANCE);
    }

    #[test]
    fn sleeps_that_end_soon_bring_looking_back() {
        let mut spin = Spin::default();
        for _ in 0..40 {
            spin.learn(Duration::from_secs(1));
        }
        assert_eq!(spin.budget(), Duration::ZERO);
        for _ in 0..100 {
            assert!(!spin.wait(|| false));
            spin.woke();
        }
        assert!(spin.budget() >= LONGEST_CROWDED);
    }
}
