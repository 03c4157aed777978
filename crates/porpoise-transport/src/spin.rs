//! How long to spin for something before sleeping for it.
//!
//! To wake a sleeper takes tens of microseconds; to see a word change takes tenths of one. So
//! spinning pays when what is waited for comes soon and a core is free to spin on, and wastes the
//! core otherwise. Two things decide:
//!
//! - *How long waits took lately*, whether spinning sufficed or a sleep was needed (less what the
//!   wake itself cost). While this is shorter than a sleep and a wake, a wait spins for that long;
//!   when it is longer, it polls a few times only.
//! - *Whether there are cores to spare.* A wait of more than a few microseconds yields the core
//!   between polls, which costs little while no other thread wants it. Where threads wait for a
//!   core, a poll takes the time of the thread that is waited for. Then the core is yielded after a
//!   few first polls, again and again: the threads that share it, the one waited for among them,
//!   take turns, each of which does what there is to do, and a turn costs a tenth of a sleep and a
//!   wake. But the core may also go to a thread that computes for milliseconds; where yielding is
//!   expensive, a wait spins for a short time and then sleeps. A thread notices contention by how
//!   long it has to wait for a core itself ([`Contention`]).
//!
//! ```text
//!   waits lately   0.2  0.3  0.2  55  50  0.3 …       µs      ─► spin for 100 µs
//!     contended                                               ─► first polls, then yield and poll 40 times, or spin for 5 µs
//!                  900  2000  40  1500 …                      ─► first polls, sleep
//! ```
//!
//! What yielding costs is known to all waiters of the process that begin: a connection that has just
//! come doesn't find it out anew, at a few ms each time.
//!
//! Two threads that wait for each other on one core contend for it, though there may be a core for
//! each; while they only yield, nothing separates them. So when the system says that a core is
//! idle, a thread that finds contention sleeps once: the system puts it on that core when it wakes.

use crate::sys;
use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Polls that are always affordable, before the first reading of the clock.
const FIRST_POLLS: u32 = 40;
/// The same where other threads wait for the core. With half as many, clients whose replies take a
/// third of a microsecond yielded the core before they came, in a quarter of the round trips.
const FIRST_POLLS_CONTENDED: u32 = 6;
/// After so many waits whose first polls failed, a wait polls once: the other end needs this core,
/// and a poll costs up to 30 ns.
const FAILED_FIRST_POLLS_MAX: u32 = 16;
/// Then one wait in so many has all its first polls: the other end may have found another core.
const WAITS_BETWEEN_RETRIES: u32 = 64;
/// Polls from one reading of the clock to the next.
const POLLS_PER_CLOCK: u32 = 32;
/// The longest spin with cores to spare: about as long as two ends take to wake each other.
const SPIN_MAX: Duration = Duration::from_micros(100);
/// The longest waits in which yielding again and again is better than sleeping.
const YIELDING_MAX: Duration = Duration::from_millis(1);
/// How often the core is yielded under contention.
const YIELDS: u32 = 40;
/// A thread that keeps the yielded core for longer computes: threads that wait for each other have
/// turns of microseconds.
const TURN_MAX: Duration = Duration::from_micros(500);
/// What such turns may cost a wait, on average over the last [`WAITS_AVERAGED`] or so, most of
/// which met none.
const YIELD_COST_MAX: Duration = Duration::from_micros(25);
const WAITS_AVERAGED: u32 = 512;
/// A waiter's first waits are all timed.
const FIRST_WAITS: u32 = WAITS_PER_TIMED;
/// Of so many waits under contention one is timed: reading the clock costs as much as a poll.
const WAITS_PER_TIMED: u32 = 8;
/// The longest spin without cores to spare.
const SPIN_CONTENDED_MAX: Duration = Duration::from_micros(5);
/// About what a sleep and a wake add to a wait.
const WAKE_COST: Duration = Duration::from_micros(50);
/// Waits that succeed by spinning until contention is measured again; one that doesn't measures
/// each time.
const WINS_PER_MEASUREMENT: u64 = 256;

/// What a waiter has learned from its waits.
#[derive(Debug)]
pub struct Spin {
    /// Moving average of how long waits took lately.
    gap: Duration,
    /// How long the last timed wait took.
    took: Duration,
    /// The number of waits; it wraps.
    waits: u32,
    /// Waits in a row whose first polls failed.
    failed_first_polls: u32,
    /// When the last wait began that ended in sleep.
    lost_at: Option<Instant>,
    /// Moving average of what a wait cost in yielding the core to threads that compute.
    yield_cost: Duration,
    won: u64,
    lost: u64,
    contention: Contention,
}

impl Default for Spin {
    fn default() -> Self {
        let now = Instant::now();
        let is_contended = Contention::lately(now).unwrap_or_default();
        let mut spin = Spin::begin(is_contended);
        if yields_were_dear(now) {
            spin.yield_cost = YIELD_COST_MAX * 2;
        }
        spin
    }
}

impl Spin {
    fn begin(is_contended: bool) -> Self {
        Spin {
            gap: SPIN_MAX / 2,
            took: Duration::ZERO,
            waits: 0,
            failed_first_polls: 0,
            lost_at: None,
            yield_cost: Duration::ZERO,
            won: 0,
            lost: 0,
            contention: Contention {
                is_contended,
                sleeps_once: false,
            },
        }
    }
}

impl Spin {
    /// As one that has found what yielding costs beside threads that compute.
    #[cfg(test)]
    pub(crate) fn beside_computing_threads() -> Self {
        Spin {
            yield_cost: YIELD_COST_MAX * 2,
            ..Spin::begin(true)
        }
    }

    /// Polls `is_ready` until it returns true, or until this isn't worth it any longer: then false.
    /// A caller that sleeps after that calls [`woke`](Self::woke).
    #[inline]
    pub fn wait(&mut self, mut is_ready: impl FnMut() -> bool) -> bool {
        self.waits = self.waits.wrapping_add(1);
        if self.waits.is_multiple_of(WAITS_PER_TIMED) && !self.yield_cost.is_zero() {
            self.yield_cost -= self.yield_cost * WAITS_PER_TIMED / WAITS_AVERAGED;
        }
        if poll_times(self.first_polls(), &mut is_ready) {
            self.failed_first_polls = 0;
            self.win(Some(Duration::ZERO));
            return true;
        }
        self.failed_first_polls = self.failed_first_polls.saturating_add(1);
        let mut budget = self.budget();
        if std::mem::take(&mut self.contention.sleeps_once) {
            budget = Duration::ZERO;
        }
        if self.yields(budget) {
            return self.yield_until(&mut is_ready);
        }
        let began = Instant::now();
        let mut took = Duration::ZERO;
        while took < budget {
            let won = poll_times(POLLS_PER_CLOCK, &mut is_ready);
            took = began.elapsed();
            if won {
                self.win(Some(took));
                return true;
            }
            if took > SPIN_CONTENDED_MAX && took < budget {
                // The thread that is waited for may want the core by now.
                sys::yield_core();
            }
        }
        self.lose(began)
    }

    /// Yields the core again and again, until `is_ready` returns true.
    #[inline]
    fn yield_until(&mut self, is_ready: &mut impl FnMut() -> bool) -> bool {
        let is_timed = self.waits <= FIRST_WAITS || self.waits.is_multiple_of(WAITS_PER_TIMED);
        let began = is_timed.then(Instant::now);
        let mut took = Duration::ZERO;
        for _ in 0..YIELDS {
            sys::yield_core();
            // The thread that had the core has done what there was to do.
            let won = poll_times(1, is_ready);
            let mut computes_beside = false;
            if let Some(began) = began {
                let before = std::mem::replace(&mut took, began.elapsed());
                let turn = took - before;
                if turn > TURN_MAX {
                    self.yield_cost += turn * WAITS_PER_TIMED / WAITS_AVERAGED;
                    computes_beside = self.yield_cost > YIELD_COST_MAX;
                }
            }
            if won {
                self.win(began.map(|_| took));
                return true;
            }
            if computes_beside {
                note_dear_yields(Instant::now());
                break;
            }
        }
        self.lose(began.unwrap_or_else(Instant::now))
    }

    /// The sleep after a failed [`wait`](Self::wait) has ended.
    pub fn woke(&mut self) {
        self.woke_at(Instant::now());
    }

    fn woke_at(&mut self, now: Instant) {
        if let Some(lost_at) = self.lost_at.take() {
            self.learn((now - lost_at).saturating_sub(WAKE_COST));
        }
    }

    /// A wait succeeded by spinning; `took` if it was timed.
    fn win(&mut self, took: Option<Duration>) {
        self.won += 1;
        self.took = took.unwrap_or(self.took);
        self.learn(self.took);
        if self.won.is_multiple_of(WINS_PER_MEASUREMENT) {
            self.contention.measure();
        }
    }

    fn lose(&mut self, began: Instant) -> bool {
        self.lost += 1;
        self.lost_at = Some(began);
        self.contention.measure();
        false
    }

    /// How many polls to begin with.
    fn first_polls(&self) -> u32 {
        let skips_first_polls = self.failed_first_polls >= FAILED_FIRST_POLLS_MAX
            && !self.waits.is_multiple_of(WAITS_BETWEEN_RETRIES);
        match self.contention.is_contended {
            true if skips_first_polls => 1,
            true => FIRST_POLLS_CONTENDED,
            false => FIRST_POLLS,
        }
    }

    /// Whether to yield the core between polls.
    fn yields(&self, budget: Duration) -> bool {
        self.contention.is_contended && !budget.is_zero() && self.yield_cost <= YIELD_COST_MAX
    }

    /// Threads compute beside, each of which keeps a core that is yielded for milliseconds.
    pub fn is_yielding_dear(&self) -> bool {
        self.contention.is_contended && self.yield_cost > YIELD_COST_MAX
    }

    /// How long to spin without yielding at each poll.
    fn budget(&self) -> Duration {
        match self.contention.is_contended {
            true if self.gap > YIELDING_MAX => Duration::ZERO,
            true => SPIN_CONTENDED_MAX,
            false if self.gap > SPIN_MAX => Duration::ZERO,
            false => SPIN_MAX,
        }
    }

    fn learn(&mut self, took: Duration) {
        let worth = if self.contention.is_contended {
            YIELDING_MAX
        } else {
            SPIN_MAX
        };
        // A long wait weighs no more than some short ones.
        self.gap = (self.gap * 7 + took.min(worth * 4)) / 8;
    }

    /// The number of waits in which spinning sufficed.
    pub fn won(&self) -> u64 {
        self.won
    }

    /// The number of waits in which spinning failed.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Whether one of so many polls returns true.
#[inline]
fn poll_times(times: u32, is_ready: &mut impl FnMut() -> bool) -> bool {
    let mut left = times;
    loop {
        if is_ready() {
            return true;
        }
        left -= 1;
        if left == 0 {
            return false;
        }
        spin_loop();
    }
}

/// Whether threads wait for cores, as a thread has experienced it: the system tells how long it was
/// ready to run and had to wait for a core.
///
/// To measure costs as much as a short sleep. So a thread measures now and then for all that it
/// waits for; and where hundreds of threads wait by turns, one measures now and then for all of
/// them, and for new threads.
#[derive(Clone, Copy, Debug, Default)]
struct Contention {
    is_contended: bool,
    /// A core is idle, though threads share one: this thread is to sleep once.
    sleeps_once: bool,
}

const MEASURE_INTERVAL: Duration = Duration::from_millis(10);
const PROCESS_MEASURE_INTERVAL: Duration = Duration::from_millis(1);
/// How long a measurement is valid.
const VALID_FOR: Duration = Duration::from_millis(100);
/// A thread that waits for a core for more than one part in so many of its time finds contention.
const WAIT_FRACTION: u32 = 4;

/// A thread's last measurement.
#[derive(Clone, Copy)]
struct Measurement {
    at: Instant,
    waited: Duration,
    is_contended: bool,
}

thread_local! {
    static LAST: Cell<Option<Measurement>> = const { Cell::new(None) };
}

/// The last measurement of any thread of this process: microseconds since [`epoch`], doubled, and a
/// bit for contention; 0 for none.
static PROCESS_MEASUREMENT: AtomicU64 = AtomicU64::new(0);

/// When a waiter of this process last gave up yielding, in microseconds since [`epoch`]; 0: never.
static YIELDS_DEAR_AT: AtomicU64 = AtomicU64::new(0);

fn note_dear_yields(now: Instant) {
    let since = now.saturating_duration_since(epoch()).as_micros() as u64;
    YIELDS_DEAR_AT.store(since.max(1), Ordering::Relaxed);
}

fn yields_were_dear(now: Instant) -> bool {
    match YIELDS_DEAR_AT.load(Ordering::Relaxed) {
        0 => false,
        at => now.saturating_duration_since(epoch() + Duration::from_micros(at)) < VALID_FOR,
    }
}

/// A time before the first measurement.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// When a thread of this process measured last, and what it has found.
fn process_measurement() -> Option<(Instant, bool)> {
    match PROCESS_MEASUREMENT.load(Ordering::Relaxed) {
        0 => None,
        word => Some((epoch() + Duration::from_micros(word >> 1), word & 1 == 1)),
    }
}

fn publish(at: Instant, is_contended: bool) {
    let since = at.saturating_duration_since(epoch()).as_micros() as u64;
    PROCESS_MEASUREMENT.store(
        since.max(1) << 1 | u64::from(is_contended),
        Ordering::Relaxed,
    );
}

impl Contention {
    /// What this thread, or another of the process, has measured lately.
    fn lately(now: Instant) -> Option<bool> {
        let is_valid = |at: Instant| now.saturating_duration_since(at) < VALID_FOR;
        let own = LAST.get().map(|own| (own.at, own.is_contended));
        let found = own
            .filter(|(at, _)| is_valid(*at))
            .or_else(process_measurement);
        found
            .filter(|(at, _)| is_valid(*at))
            .map(|(_, is_contended)| is_contended)
    }

    fn measure(&mut self) {
        let now = Instant::now();
        let passed = |at: Instant| now.saturating_duration_since(at);
        let own = LAST.get();
        let is_early = own.is_some_and(|own| passed(own.at) < MEASURE_INTERVAL)
            || process_measurement().is_some_and(|(at, _)| passed(at) < PROCESS_MEASURE_INTERVAL);
        if is_early {
            self.is_contended = Contention::lately(now).unwrap_or(self.is_contended);
            return;
        }
        let waited = sys::run_queue_wait().unwrap_or_default();
        match own {
            Some(own) => {
                let lately = waited.saturating_sub(own.waited);
                self.is_contended = lately * WAIT_FRACTION > passed(own.at);
                self.sleeps_once = self.is_contended && sys::has_idle_core();
            }
            None => self.is_contended = Contention::lately(now).unwrap_or(self.is_contended),
        }
        publish(now, self.is_contended);
        LAST.set(Some(Measurement {
            at: now,
            waited,
            is_contended: self.is_contended,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_goes_on_while_waits_are_short_and_ends_when_they_are_long() {
        let mut spin = Spin::begin(false);
        for _ in 0..40 {
            assert!(spin.wait(|| true));
        }
        assert_eq!((spin.won(), spin.lost()), (40, 0));
        // One long wait doesn't end it.
        spin.learn(Duration::from_secs(1));
        assert!(spin.budget() >= SPIN_CONTENDED_MAX);
        for _ in 0..40 {
            spin.learn(Duration::from_millis(3));
        }
        assert_eq!(spin.budget(), Duration::ZERO);
        let mut polled = 0;
        assert!(!spin.wait(|| {
            polled += 1;
            false
        }));
        assert_eq!(polled, FIRST_POLLS);
    }

    #[test]
    fn the_core_is_yielded_under_contention_while_that_is_cheap() {
        let mut spin = Spin::begin(false);
        assert!(!spin.yields(spin.budget()), "nobody else interest it");
        spin.contention.is_contended = true;
        assert!(spin.yields(spin.budget()));
        spin.yield_cost = YIELD_COST_MAX * 2;
        assert!(!spin.yields(spin.budget()));
        // Waits that didn't need it bring it back.
        for _ in 0..2 * WAITS_AVERAGED {
            spin.wait(|| true);
        }
        spin.contention.is_contended = true;
        assert!(spin.yields(spin.budget()));
    }

    #[test]
    fn who_begins_to_wait_knows_what_yielding_has_cost_others() {
        let now = Instant::now();
        note_dear_yields(now);
        assert!(yields_were_dear(now) && !yields_were_dear(now + VALID_FOR * 2));
        let mut spin = Spin::default();
        spin.contention.is_contended = true;
        assert!(spin.is_yielding_dear() && !spin.yields(spin.budget()));
    }

    #[test]
    fn a_thread_in_contention_beside_an_idle_core_sleeps_once() {
        let mut spin = Spin::begin(false);
        spin.contention.is_contended = true;
        spin.contention.sleeps_once = true;
        // What yielding costs here isn't looked at.
        spin.waits = FIRST_WAITS;
        let mut polled = 0;
        let mut wait = |spin: &mut Spin| {
            polled = 0;
            assert!(!spin.wait(|| {
                polled += 1;
                false
            }));
            polled
        };
        assert_eq!(wait(&mut spin), FIRST_POLLS_CONTENDED);
        spin.contention.is_contended = true;
        assert_eq!(wait(&mut spin), FIRST_POLLS_CONTENDED + YIELDS);
    }

    #[test]
    fn after_failed_first_polls_one_poll_is_made_until_they_suffice_again() {
        let mut spin = Spin::begin(true);
        let polls_to_win = |spin: &mut Spin, at: u32| {
            spin.contention.is_contended = true;
            let mut polled = 0;
            assert!(spin.wait(|| {
                polled += 1;
                polled == at
            }));
            spin.failed_first_polls
        };
        // Found at the first poll after the core was yielded.
        for turn in 1..=FAILED_FIRST_POLLS_MAX {
            assert_eq!(polls_to_win(&mut spin, FIRST_POLLS_CONTENDED + 1), turn);
        }
        assert_eq!(spin.first_polls(), 1);
        // The other end is on another core by now, and quick: that is noticed after a while.
        let waits = (0..).take_while(|_| polls_to_win(&mut spin, 2) > 0).count();
        assert!(waits <= WAITS_BETWEEN_RETRIES as usize, "{waits}");
        assert_eq!(spin.first_polls(), FIRST_POLLS_CONTENDED);
    }

    #[test]
    fn short_sleeps_bring_spinning_back() {
        let mut spin = Spin::begin(false);
        for _ in 0..40 {
            spin.learn(Duration::from_secs(1));
        }
        assert_eq!(spin.budget(), Duration::ZERO);
        let began = Instant::now();
        for _ in 0..100 {
            spin.lose(began);
            spin.woke_at(began + WAKE_COST);
        }
        assert!(spin.budget() >= SPIN_CONTENDED_MAX);
    }
}
