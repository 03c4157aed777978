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
//!     in a crowd                                              ─► glance, yield, look, yield, … 40 times, or look for 5 µs
//!                  900  2000  40  1500 …                      ─► glance, sleep
//! ```
//!
//! Two that wait for each other on one core crowd each other, though there may be a core for each; nothing parts them while they
//! only give it up. So when the system says that a core is idle, a thread in a crowd sleeps once, and is put there when it wakes.

use crate::sys;
use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Looks that are always affordable, before the first look at the clock.
const GLANCE: u32 = 40;
/// The same where others wait for the core, who had better have it. With half as many, clients that get their answers in a third of a
/// microsecond gave the core up before them: a quarter of the round trips.
const GLANCE_CROWDED: u32 = 6;
/// After so many glances in vain, one look is all: the other end needs this core, and a look costs as much as 30 ns.
const GLANCES_IN_VAIN_MAX: u32 = 16;
/// Who looks once has a glance again, now and then: the other end may have found another core.
const WAITS_BETWEEN_GLANCES: u32 = 64;
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
/// Of so many waits in a crowd one is timed: a look at the clock costs as much as one at the ring.
const WAITS_A_TIMED: u32 = 8;
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
    /// How long it took when it was last timed.
    took: Duration,
    /// Waits, as far as they fit.
    waits: u32,
    /// Glances in a crowd that were in vain, since one wasn't.
    in_vain: u32,
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
        let crowded = Crowd::lately(Instant::now()).unwrap_or_default();
        Spin::begin(crowded)
    }
}

impl Spin {
    fn begin(crowded: bool) -> Self {
        Spin {
            gap: LONGEST / 2,
            took: Duration::ZERO,
            waits: 0,
            in_vain: 0,
            lost_at: None,
            yield_cost: Duration::ZERO,
            won: 0,
            lost: 0,
            crowd: Crowd {
                crowded,
                sleeps_apart: false,
            },
        }
    }
}

impl Spin {
    /// Looks with `there` until it says true, or until this isn't worth it any longer: then false. Who sleeps after that
    /// tells when it [`woke`](Self::woke).
    #[inline]
    pub fn wait(&mut self, mut there: impl FnMut() -> bool) -> bool {
        self.waits = self.waits.wrapping_add(1);
        if self.waits.is_multiple_of(WAITS_A_TIMED) && !self.yield_cost.is_zero() {
            self.yield_cost -= self.yield_cost * WAITS_A_TIMED / WAITS_AVERAGED;
        }
        if look(self.glance(), &mut there) {
            self.in_vain = 0;
            self.win(Some(Duration::ZERO));
            return true;
        }
        self.in_vain = self.in_vain.saturating_add(1);
        let mut budget = self.budget();
        if std::mem::take(&mut self.crowd.sleeps_apart) {
            budget = Duration::ZERO;
        }
        if self.yields(budget) {
            return self.give_up(&mut there);
        }
        let began = Instant::now();
        let mut took = Duration::ZERO;
        while took < budget {
            let won = look(LOOKS_A_CLOCK, &mut there);
            took = began.elapsed();
            if won {
                self.win(Some(took));
                return true;
            }
            if took > LONGEST_CROWDED {
                // Nobody may have wanted the core a moment ago, and somebody now: the one waited for, perhaps.
                sys::yield_core();
            }
        }
        self.lose(began)
    }

    /// Gives the core up, again and again, until `there` says true.
    #[inline]
    fn give_up(&mut self, there: &mut impl FnMut() -> bool) -> bool {
        let began = (self.waits.is_multiple_of(WAITS_A_TIMED)).then(Instant::now);
        let mut took = Duration::ZERO;
        for _ in 0..YIELDS {
            sys::yield_core();
            // Whoever had the core has done what there was to do.
            let won = look(1, there);
            if let Some(began) = began {
                let before = std::mem::replace(&mut took, began.elapsed());
                let turn = took - before;
                if turn > TURN_MAX {
                    self.yield_cost += turn * WAITS_A_TIMED / WAITS_AVERAGED;
                }
            }
            if won {
                self.win(began.map(|_| took));
                return true;
            }
        }
        self.lose(began.unwrap_or_else(Instant::now))
    }

    /// A sleep for what was looked for in vain has ended.
    pub fn woke(&mut self) {
        if let Some(lost_at) = self.lost_at.take() {
            self.learn(lost_at.elapsed().saturating_sub(WAKE_COST));
        }
    }

    /// `took`: if it was timed.
    fn win(&mut self, took: Option<Duration>) {
        self.won += 1;
        self.took = took.unwrap_or(self.took);
        self.learn(self.took);
        if self.won.is_multiple_of(WINS_BETWEEN_SURVEYS) {
            self.crowd.survey();
        }
    }

    fn lose(&mut self, began: Instant) -> bool {
        self.lost += 1;
        self.lost_at = Some(began);
        self.crowd.survey();
        false
    }

    /// How many looks to begin with.
    fn glance(&self) -> u32 {
        let is_hopeless = self.in_vain >= GLANCES_IN_VAIN_MAX
            && !self.waits.is_multiple_of(WAITS_BETWEEN_GLANCES);
        match self.crowd.crowded {
            true if is_hopeless => 1,
            true => GLANCE_CROWDED,
            false => GLANCE,
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

/// Whether one of so many looks says true.
#[inline]
fn look(times: u32, there: &mut impl FnMut() -> bool) -> bool {
    let mut left = times;
    loop {
        if there() {
            return true;
        }
        left -= 1;
        if left == 0 {
            return false;
        }
        spin_loop();
    }
}

/// Whether there are cores to spare, as a thread has experienced it: the system tells how long it was ready to run and had
/// to wait for a core.
///
/// Asking costs as much as a short sleep. So a thread asks now and then for all that it waits on; and where hundreds of threads
/// wait by turns, one in a while asks, and the others, and those who have just come, take its word.
#[derive(Clone, Copy, Debug, Default)]
struct Crowd {
    crowded: bool,
    /// There is a core for everybody, and some share one all the same: this one is to sleep, once.
    sleeps_apart: bool,
}

const SURVEY_EVERY: Duration = Duration::from_millis(10);
const PROCESS_SURVEYS_EVERY: Duration = Duration::from_millis(1);
/// How long what was found counts.
const COUNTS_FOR: Duration = Duration::from_millis(100);
/// A thread that waits for a core for more than this part of its time is in a crowd.
const WAITS_PART: u32 = 4;

/// What a thread was told when it last asked.
#[derive(Clone, Copy)]
struct Survey {
    at: Instant,
    waited: Duration,
    crowded: bool,
}

thread_local! {
    static LAST: Cell<Option<Survey>> = const { Cell::new(None) };
}

/// What the thread of this process that asked last has found, and when: microseconds since [`epoch`], doubled, and a bit.
static WORD: AtomicU64 = AtomicU64::new(0);

/// Before anybody asked.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// When a thread of this process asked last, and what it has found.
fn word() -> Option<(Instant, bool)> {
    match WORD.load(Ordering::Relaxed) {
        0 => None,
        word => Some((epoch() + Duration::from_micros(word >> 1), word & 1 == 1)),
    }
}

fn tell(at: Instant, crowded: bool) {
    let since = at.saturating_duration_since(epoch()).as_micros() as u64;
    WORD.store(since.max(1) << 1 | u64::from(crowded), Ordering::Relaxed);
}

impl Crowd {
    /// As this thread, or another of the process, has lately found it.
    fn lately(now: Instant) -> Option<bool> {
        let counts = |at: Instant| now.saturating_duration_since(at) < COUNTS_FOR;
        let own = LAST.get().map(|own| (own.at, own.crowded));
        let found = own.filter(|(at, _)| counts(*at)).or_else(word);
        found
            .filter(|(at, _)| counts(*at))
            .map(|(_, crowded)| crowded)
    }

    fn survey(&mut self) {
        let now = Instant::now();
        let passed = |at: Instant| now.saturating_duration_since(at);
        let own = LAST.get();
        let is_early = own.is_some_and(|own| passed(own.at) < SURVEY_EVERY)
            || word().is_some_and(|(at, _)| passed(at) < PROCESS_SURVEYS_EVERY);
        if is_early {
            self.crowded = Crowd::lately(now).unwrap_or(self.crowded);
            return;
        }
        let waited = sys::waited_for_a_core().unwrap_or_default();
        match own {
            Some(own) => {
                let lately = waited.saturating_sub(own.waited);
                self.crowded = lately * WAITS_PART > passed(own.at);
                self.sleeps_apart = self.crowded && sys::has_idle_core();
            }
            None => self.crowded = Crowd::lately(now).unwrap_or(self.crowded),
        }
        tell(now, self.crowded);
        LAST.set(Some(Survey {
            at: now,
            waited,
            crowded: self.crowded,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_goes_on_while_waits_are_short_and_ends_when_they_are_long() {
        let mut spin = Spin::begin(false);
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
        let mut spin = Spin::begin(false);
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
        let mut spin = Spin::begin(false);
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
        assert_eq!(wait(&mut spin), GLANCE_CROWDED + YIELDS);
    }

    #[test]
    fn who_glances_in_vain_in_a_crowd_looks_once_until_a_glance_suffices_again() {
        let mut spin = Spin::begin(true);
        let looks_to_win = |spin: &mut Spin, at: u32| {
            spin.crowd.crowded = true;
            let mut looked = 0;
            assert!(spin.wait(|| {
                looked += 1;
                looked == at
            }));
            spin.in_vain
        };
        // Found at the first look after the core was given up.
        for turn in 1..=GLANCES_IN_VAIN_MAX {
            assert_eq!(looks_to_win(&mut spin, GLANCE_CROWDED + 1), turn);
        }
        assert_eq!(spin.glance(), 1);
        // The other end is somewhere else by now, and quick: it is noticed in a while.
        let waits = (0..).take_while(|_| looks_to_win(&mut spin, 2) > 0).count();
        assert!(waits <= WAITS_BETWEEN_GLANCES as usize, "{waits}");
        assert_eq!(spin.glance(), GLANCE_CROWDED);
    }

    #[test]
    fn sleeps_that_end_soon_bring_looking_back() {
        let mut spin = Spin::begin(false);
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
