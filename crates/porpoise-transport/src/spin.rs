//! How long to look for something before sleeping for it.
//!
//! Waking a sleeper costs tens of microseconds; seeing a word change costs tenths of one. So looking pays when what is
//! waited for comes soon and a core is free to look with, and wastes the core otherwise. Two things decide:
//!
//! - *How long it took lately*, whether a look sufficed or a sleep was needed (less what the wake itself cost). While this is
//!   shorter than a sleep and a wake, looking goes on for that long; when it is longer, a glance is all.
//! - *Whether there are cores to spare.* Whoever looks for longer than a few microseconds offers the core to others between
//!   looks, which costs little while nobody wants it. Where threads wait for a core, a look takes the time of whoever is waited for.
//!   Then the core is given up after the shortest of glances, again and again: those who share it, the one waited for among
//!   them, take turns, each of which does what there is to do, and a turn costs a tenth of a sleep and a wake. But who gets the
//!   core may also be somebody who computes for milliseconds; where giving up is dear, there is one short look and then
//!   sleep. A thread notices a crowd by how long it has to wait for a core itself ([`Crowd`]).
//!
//! ```text
//!   waits lately   0.2  0.3  0.2  55  50  0.3 …       µs      ─► look for 100 µs
//!     in a crowd                                              ─► look, yield, look, yield, … 40 times, or look for 5 µs
//!                  900  2000  40  1500 …                      ─► glance, sleep
//! ```
//!
//! Two that wait for each other on one core crowd each other, though there may be a core for each; nothing parts them while they
//! only give it up. So when the system says that a core is idle, a thread in a crowd sleeps once, and is put there when it wakes.

use crate::sys;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Looks that are always affordable, before the first look at the clock.
const GLANCE: u32 = 40;
/// The same where others wait for the core, who had better have it. With half as many, clients that get their answers in a third of a
/// microsecond gave the core up before them: a quarter of the round trips.
const GLANCE_CROWDED: u32 = 6;
/// Looks from one look at the clock to the next.
const LOOKS_A_CLOCK: u32 = 32;
/// The longest time with cores to spare: about as long as two ends take to wake each other.
const LONGEST: Duration = Duration::from_micros(100);
/// The longest waits that are worth giving up the core for, again and again, instead of sleeping.
const LONGEST_GIVING_UP: Duration = Duration::from_millis(1);
/// How often the core is given up in a crowd.
const YIELDS: u32 = 40;
/// Who keeps the core for longer, given up to it, computes: those who wait for each other have turns of microseconds.
const TURN_MAX: Duration = Duration::from_micros(500);
/// What longer turns may cost a wait, on average over the last [`WAITS_AVERAGED`] or so, most of which met none.
const YIELD_COST_MAX: Duration = Duration::from_micros(25);
const WAITS_AVERAGED: u32 = 512;
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
    /// Moving average of what a wait cost in giving up the core to those who compute.
    yield_cost: Duration,
    won: u64,
    lost: u64,
    crowd: Crowd,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            gap: LONGEST / 2,
            lost_at: None,
            yield_cost: Duration::ZERO,
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
        self.yield_cost -= self.yield_cost / WAITS_AVERAGED;
        let crowded = self.crowd.crowded;
        let glance = if crowded { GLANCE_CROWDED } else { GLANCE };
        if look(glance) {
            self.win(Duration::ZERO);
            return true;
        }
        let mut budget = self.budget();
        if std::mem::take(&mut self.crowd.sleeps_apart) {
            budget = Duration::ZERO;
        }
        let began = Instant::now();
        let mut took = Duration::ZERO;
        if self.yields(budget) {
            budget = Duration::ZERO;
            for _ in 0..YIELDS {
                sys::yield_core();
                let won = look(glance);
                let before = took;
                took = began.elapsed();
                let turn = took - before;
                if turn > TURN_MAX {
                    self.yield_cost += turn / WAITS_AVERAGED;
                }
                if won {
                    self.win(took);
                    return true;
                }
            }
        }
        while took < budget {
            let won = look(LOOKS_A_CLOCK);
            took = began.elapsed();
            if won {
                self.win(took);
                return true;
            }
            if took > LONGEST_CROWDED {
                // Nobody may have wanted the core a moment ago, and somebody now: the one waited for, perhaps.
                sys::yield_core();
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

    /// Whether to give up the core between glances.
    fn yields(&self, budget: Duration) -> bool {
        self.crowd.crowded && !budget.is_zero() && self.yield_cost <= YIELD_COST_MAX
    }

    /// How long to look without giving the core up.
    fn budget(&self) -> Duration {
        match self.crowd.crowded {
            true if self.gap > LONGEST_GIVING_UP => Duration::ZERO,
            true => LONGEST_CROWDED,
            false if self.gap > LONGEST => Duration::ZERO,
            false => LONGEST,
        }
    }

    fn learn(&mut self, took: Duration) {
        let worth = if self.crowd.crowded {
            LONGEST_GIVING_UP
        } else {
            LONGEST
        };
        // A long wait weighs no more than some short ones.
        self.gap = (self.gap * 7 + took.min(worth * 4)) / 8;
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
    /// There is a core for everybody, and some share one all the same: this one is to sleep, once.
    sleeps_apart: bool,
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
            self.sleeps_apart = self.crowded && sys::has_idle_core();
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
    fn the_core_is_given_up_in_a_crowd_while_that_is_cheap() {
        let mut spin = Spin::default();
        assert!(!spin.yields(spin.budget()), "nobody else wants it");
        spin.crowd.crowded = true;
        assert!(spin.yields(spin.budget()));
        spin.yield_cost = YIELD_COST_MAX * 2;
        assert!(!spin.yields(spin.budget()));
        // Waits that didn't need it bring it back.
        for _ in 0..2 * WAITS_AVERAGED {
            spin.wait(|| true);
        }
        spin.crowd.crowded = true;
        assert!(spin.yields(spin.budget()));
    }

    #[test]
    fn who_is_crowded_beside_an_idle_core_sleeps_once() {
        let mut spin = Spin::default();
        spin.crowd.crowded = true;
        spin.crowd.sleeps_apart = true;
        let mut looked = 0;
        let mut wait = |spin: &mut Spin| {
            looked = 0;
            assert!(!spin.wait(|| {
                looked += 1;
                false
            }));
            looked
        };
        assert_eq!(wait(&mut spin), GLANCE_CROWDED);
        spin.crowd.crowded = true;
        assert_eq!(wait(&mut spin), GLANCE_CROWDED * (1 + YIELDS));
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
