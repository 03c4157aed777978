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
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A look that is always affordable.
const GLANCE: Duration = Duration::from_nanos(500);
/// The longest look with cores to spare: about as long as two ends take to wake each other.
const LONGEST: Duration = Duration::from_micros(100);
/// The longest look when there are none.
const LONGEST_CROWDED: Duration = Duration::from_micros(5);
/// About what a sleep and a wake add to a wait.
const WAKE_COST: Duration = Duration::from_micros(50);
/// Who loses looks at the clock, whether it is time to ask the system again; who wins, only so often.
const WINS_BETWEEN_SURVEYS: u64 = 256;

/// One waiter's experience.
#[derive(Debug)]
pub struct Spin {
    /// Moving average of how long it took lately, in looks.
    gap: u32,
    /// When the look that was in vain ended.
    lost_at: Option<Instant>,
    won: u64,
    lost: u64,
    crowd: Crowd,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            gap: looks(LONGEST) / 2,
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
        let budget = self.budget();
        for looked in 0..budget {
            if there() {
                self.won += 1;
                self.learn(looked);
                if self.won.is_multiple_of(WINS_BETWEEN_SURVEYS) {
                    self.crowd.survey();
                }
                return true;
            }
            spin_loop();
        }
        self.lost += 1;
        self.lost_at = Some(Instant::now());
        self.crowd.survey();
        false
    }

    /// What was looked for in vain is there now, or a sleep for it has ended.
    pub fn woke(&mut self) {
        if let Some(lost_at) = self.lost_at.take() {
            let slept = lost_at.elapsed().saturating_sub(WAKE_COST);
            self.learn(self.budget().saturating_add(looks(slept)));
        }
    }

    fn budget(&self) -> u32 {
        let longest = looks(if self.crowd.crowded {
            LONGEST_CROWDED
        } else {
            LONGEST
        });
        if self.gap <= looks(LONGEST) {
            longest
        } else {
            looks(GLANCE)
        }
    }

    fn learn(&mut self, took: u32) {
        // A long wait weighs no more than some short ones.
        let took = took.min(looks(LONGEST) * 4);
        self.gap = self.gap - self.gap / 8 + took / 8;
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

/// How many looks take so long: a processor's pause takes between ten and some fifty nanoseconds.
fn looks(time: Duration) -> u32 {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    u32::try_from(nanoseconds.saturating_mul(1000) / picoseconds_a_look()).unwrap_or(u32::MAX)
}

fn picoseconds_a_look() -> u64 {
    const SAMPLE: u32 = 1000;
    static MEASURED: OnceLock<u64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        // The shortest of some: an interrupt must not make looks seem long.
        let sample = (0..3).map(|_| {
            let began = Instant::now();
            (0..SAMPLE).for_each(|_| spin_loop());
            began.elapsed().as_nanos() as u64
        });
        sample.min().unwrap_or(0).max(1000) * 1000 / u64::from(SAMPLE)
    })
}

/// Whether there are cores to spare, as a thread has experienced it: it is told by the system how long it was ready to run
/// and had to wait for a core.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    due: Instant,
    looked: Instant,
    waited: Duration,
    crowded: bool,
}

const SURVEY_EVERY: Duration = Duration::from_millis(10);
/// A thread that waits for a core for more than this part of its time is in a crowd.
const WAITS_PART: u32 = 4;

impl Default for Crowd {
    fn default() -> Self {
        let now = Instant::now();
        Crowd {
            due: now,
            looked: now,
            waited: sys::waited_for_a_core().unwrap_or_default(),
            crowded: false,
        }
    }
}

impl Crowd {
    fn survey(&mut self) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        let waited = sys::waited_for_a_core().unwrap_or_default();
        let lately = waited.saturating_sub(self.waited);
        self.crowded = lately * WAITS_PART > now - self.looked;
        *self = Crowd {
            due: now + SURVEY_EVERY,
            looked: now,
            waited,
            crowded: self.crowded,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn win(spin: &mut Spin, after: u32) -> bool {
        let mut looked = 0;
        spin.wait(|| {
            looked += 1;
            looked > after
        })
    }

    #[test]
    fn looking_goes_on_while_waits_are_short_and_ends_when_they_are_long() {
        let mut spin = Spin::default();
        for _ in 0..40 {
            assert!(win(&mut spin, 10));
        }
        assert_eq!((spin.won(), spin.lost()), (40, 0));
        // One long wait doesn't end it.
        spin.learn(u32::MAX);
        assert!(win(&mut spin, looks(LONGEST_CROWDED) / 2));
        for _ in 0..40 {
            spin.learn(looks(Duration::from_millis(3)));
        }
        assert!(!win(&mut spin, looks(LONGEST_CROWDED) / 2));
        assert_eq!(spin.budget(), looks(GLANCE));
    }

    #[test]
    fn sleeps_that_end_soon_bring_looking_back() {
        let mut spin = Spin::default();
        for _ in 0..40 {
            spin.learn(u32::MAX);
        }
        assert_eq!(spin.budget(), looks(GLANCE));
        for _ in 0..100 {
            assert!(!spin.wait(|| false));
            spin.woke();
        }
        assert!(spin.budget() > looks(GLANCE));
    }
}
