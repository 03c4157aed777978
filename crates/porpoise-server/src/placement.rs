//! Which worker has a connection: one that wakes its client cheaply.
//!
//! A reply wakes the client that waits for it. Where the client waits on the core that the worker runs on, that is a
//! matter of a microsecond. Where it waits on another core, that core is interrupted, which on a virtual machine takes
//! ten times as long as the whole query; and the system leaves a client where it is. So the connection goes to
//! the client:
//!
//! ```text
//!   core 0   worker A ── client 1, client 2          core 1   worker B ── client 3
//!               └────────── wakes dearly ──────────────────────────────► client 4:  goes to B
//! ```
//!
//! No socket tells the core its peer runs on (`SO_INCOMING_CPU` does for TCP alone), but the cost of a wake tells whether it is
//! this one: [`Placement`] takes a sample of sends, in processor time of the thread, so that being preempted by the very
//! client that was woken doesn't count. A connection many of whose sends are dear goes to the next worker for a trial. If
//! it fares no better there, that was in vain, and the next trial waits twice as long: on a machine with a core for
//! everybody, every wake crosses cores, and moving costs next to nothing.
//!
//! Measured on two virtual cores with eight clients: a send to this core takes 1 to 1.5 us, to another core 1.5 to 3 us
//! if that has something to finish, and 13 to 15 us if it is interrupted.

use std::time::Duration;

/// When a connection goes to the next worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moves {
    /// When waking its client is dear where it is.
    #[default]
    WhenDear,
    /// Each time that it has answered all its client sent. For tests: nothing may depend on where a connection is.
    AfterEveryTurn,
}

/// One send in so many is measured: two readings of the clock take a third of a microsecond.
const SENDS_A_SAMPLE: u32 = 8;

/// Samples that a judgement is made of, and how many of them may be dear.
const SAMPLES: u32 = 32;
const DEAR_MAX: u32 = 3;

/// A send that takes longer has interrupted a core.
const DEAR: Duration = Duration::from_micros(6);

/// Judgements that a move in vain is followed by before the next move, at least and at most.
const PATIENCE_MIN: u32 = 1;
const PATIENCE_MAX: u32 = 1 << 12;

/// A connection's record of what its sends cost.
#[derive(Debug)]
pub(crate) struct Placement {
    sends: u32,
    samples: u32,
    /// Samples that were dear.
    dear: u32,
    /// How many were dear at the worker it came from, while this one is on trial.
    before: Option<u32>,
    /// Judgements until it may move again.
    waits: u32,
    patience: u32,
}

impl Default for Placement {
    fn default() -> Placement {
        Placement {
            sends: 0,
            samples: 0,
            dear: 0,
            before: None,
            waits: 0,
            patience: PATIENCE_MIN,
        }
    }
}

impl Placement {
    /// The next send is to be measured.
    pub fn takes_sample(&mut self) -> bool {
        self.sends = self.sends.wrapping_add(1);
        self.sends.is_multiple_of(SENDS_A_SAMPLE)
    }

    /// What a send has cost. True: the connection had better go to the next worker.
    pub fn cost(&mut self, of_send: Duration) -> bool {
        self.samples += 1;
        self.dear += u32::from(of_send > DEAR);
        if self.samples < SAMPLES {
            return false;
        }
        let dear = std::mem::take(&mut self.dear);
        self.samples = 0;
        match self.before.take() {
            Some(before) if dear <= before / 2 => {
                self.patience = (self.patience / 2).max(PATIENCE_MIN);
            }
            Some(before) => {
                self.patience = (self.patience * 2).min(PATIENCE_MAX);
                self.waits = self.patience;
                // Back to where it was better.
                return dear > before;
            }
            None => {}
        }
        if self.waits > 0 {
            self.waits -= 1;
            return false;
        }
        if dear <= DEAR_MAX {
            return false;
        }
        self.before = Some(dear);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends until the next move, `sends_max` at most; how many it took.
    fn sends_to_move(placement: &mut Placement, cost: Duration, sends_max: usize) -> Option<usize> {
        (1..=sends_max).find(|_| placement.takes_sample() && placement.cost(cost))
    }

    const CHEAP: Duration = Duration::from_nanos(1500);
    const CROSSING: Duration = Duration::from_micros(14);

    #[test]
    fn a_client_that_is_woken_cheaply_stays() {
        let mut placement = Placement::default();
        assert_eq!(sends_to_move(&mut placement, CHEAP, 100_000), None);
    }

    #[test]
    fn a_client_on_another_core_is_followed_and_then_stays() {
        let mut placement = Placement::default();
        assert!(sends_to_move(&mut placement, CROSSING, 300).is_some());
        assert_eq!(sends_to_move(&mut placement, CHEAP, 100_000), None);
        // It has gone to another core: it is followed again, soon.
        assert!(sends_to_move(&mut placement, CROSSING, 600).is_some());
    }

    #[test]
    fn moves_in_vain_become_rare() {
        let mut placement = Placement::default();
        let moves = (0..1_000_000)
            .filter(|_| placement.takes_sample() && placement.cost(CROSSING))
            .count();
        assert!((5..=20).contains(&moves), "{moves} moves");
    }
}
