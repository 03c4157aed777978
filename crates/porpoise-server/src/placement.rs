//! Which worker has a connection: one that wakes its client cheaply.
//!
//! A reply wakes the client that waits for it. Where the client waits on the core that the worker
//! runs on, that takes a microsecond. Where it waits on another core, that core is interrupted,
//! which on a virtual machine takes ten times as long as the whole query; and the system leaves a
//! client where it is. So the connection goes to the client:
//!
//! ```text
//!   core 0   worker A ── client 1, client 2          core 1   worker B ── client 3
//!               └──────── expensive wakes ─────────────────────────────► client 4:  goes to B
//! ```
//!
//! No socket tells the core its peer runs on (`SO_INCOMING_CPU` does for TCP alone), but the cost
//! of a wake tells whether it is this one: [`Placement`] samples the cost of sends, in processor
//! time of the thread, so that being preempted by the client that was woken doesn't count. A
//! connection many of whose sends are expensive goes to the next worker for a trial. If its sends
//! are no cheaper there, that was in vain, and the next trial waits twice as long: on a machine
//! with a core for each thread, every wake crosses cores, and migrating costs next to nothing.
//!
//! Measured on two virtual cores with eight clients: a send to this core takes 1 to 1.5 µs, to
//! another core 1.5 to 3 µs if that has something to finish, and 13 to 15 µs if it is interrupted.

use std::time::Duration;

/// When a connection migrates to the next worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// When waking its client is expensive where it is.
    #[default]
    WhenWakesAreExpensive,
    /// Each time that everything its client sent was served. For tests: nothing may depend on where
    /// a connection is.
    AfterEveryTurn,
}

/// One send in so many is measured: two readings of the clock take a third of a microsecond.
const SENDS_PER_SAMPLE: u32 = 8;

/// Samples per decision.
const SAMPLES_PER_DECISION: u32 = 32;
/// How many of them may be expensive.
const EXPENSIVE_SAMPLES_MAX: u32 = 3;

/// A send that takes longer has interrupted a core.
const CHEAP_SEND_MAX: Duration = Duration::from_micros(6);

/// Decisions to skip after a migration in vain, at least and at most.
const BACKOFF_MIN: u32 = 1;
const BACKOFF_MAX: u32 = 1 << 12;

/// A connection's record of what its sends cost.
#[derive(Debug)]
pub(crate) struct Placement {
    sends: u32,
    samples: u32,
    /// Samples that were expensive.
    expensive: u32,
    /// How many were expensive at the worker it came from, while this one is on trial.
    expensive_before: Option<u32>,
    /// Decisions to skip until it may migrate again.
    skips: u32,
    /// Decisions to skip after the next migration in vain.
    backoff: u32,
}

impl Default for Placement {
    fn default() -> Placement {
        Placement {
            sends: 0,
            samples: 0,
            expensive: 0,
            expensive_before: None,
            skips: 0,
            backoff: BACKOFF_MIN,
        }
    }
}

impl Placement {
    /// Counts a send, and tells whether it is to be measured.
    pub fn is_sample_due(&mut self) -> bool {
        self.sends = self.sends.wrapping_add(1);
        self.sends.is_multiple_of(SENDS_PER_SAMPLE)
    }

    /// Records what a send has cost. True if the connection had better go to the next worker.
    pub fn record_cost(&mut self, cost: Duration) -> bool {
        self.samples += 1;
        self.expensive += u32::from(cost > CHEAP_SEND_MAX);
        if self.samples < SAMPLES_PER_DECISION {
            return false;
        }
        let expensive = std::mem::take(&mut self.expensive);
        self.samples = 0;
        match self.expensive_before.take() {
            Some(before) if expensive <= before / 2 => {
                self.backoff = (self.backoff / 2).max(BACKOFF_MIN);
            }
            Some(before) => {
                self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
                self.skips = self.backoff;
                // Back to where its sends were cheaper.
                return expensive > before;
            }
            None => {}
        }
        if self.skips > 0 {
            self.skips -= 1;
            return false;
        }
        if expensive <= EXPENSIVE_SAMPLES_MAX {
            return false;
        }
        self.expensive_before = Some(expensive);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends until the next migration, `sends_max` at most; how many it took.
    fn sends_to_migration(
        placement: &mut Placement,
        cost: Duration,
        sends_max: usize,
    ) -> Option<usize> {
        (1..=sends_max).find(|_| placement.is_sample_due() && placement.record_cost(cost))
    }

    const CHEAP: Duration = Duration::from_nanos(1500);
    const CROSSING: Duration = Duration::from_micros(14);

    #[test]
    fn a_client_that_is_woken_cheaply_stays() {
        let mut placement = Placement::default();
        assert_eq!(sends_to_migration(&mut placement, CHEAP, 100_000), None);
    }

    #[test]
    fn a_client_on_another_core_is_followed_and_then_stays() {
        let mut placement = Placement::default();
        assert!(sends_to_migration(&mut placement, CROSSING, 300).is_some());
        assert_eq!(sends_to_migration(&mut placement, CHEAP, 100_000), None);
        // It has gone to another core: it is followed again, soon.
        assert!(sends_to_migration(&mut placement, CROSSING, 600).is_some());
    }

    #[test]
    fn migrations_in_vain_become_rare() {
        let mut placement = Placement::default();
        let migrations = (0..1_000_000)
            .filter(|_| placement.is_sample_due() && placement.record_cost(CROSSING))
            .count();
        assert!((5..=20).contains(&migrations), "{migrations} migrations");
    }
}
