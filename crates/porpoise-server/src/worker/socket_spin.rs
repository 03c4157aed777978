//! How long a worker spins before it sleeps, learned from how soon events came lately.
//!
//! A sleeping thread is woken in [`WAKE_COST`]; a thread that still polls sees the event at once.
//! So spinning pays when events come sooner than about that, and wastes a core when they don't. And
//! while a worker spins, its core isn't idle: the system puts a client that is woken on an idle
//! core rather than where it was, and interrupts that core for it. So spinning pays for a few times
//! as long as a sleep costs, which bridges a sync of the disk.
//!
//! This is for sockets, which are polled by system calls. Rings are polled in memory
//! ([`porpoise_transport::spin`]).

use std::time::Duration;

const SPIN_MAX: Duration = Duration::from_micros(250);
const WAKE_COST: Duration = Duration::from_micros(50);

pub(super) struct SocketSpin {
    /// Moving average of the time from running out of work to the next event.
    gap: Duration,
}

impl Default for SocketSpin {
    fn default() -> SocketSpin {
        SocketSpin { gap: SPIN_MAX * 4 }
    }
}

impl SocketSpin {
    /// How long to spin now.
    pub fn budget(&self) -> Duration {
        if self.gap > SPIN_MAX {
            Duration::ZERO
        } else {
            (self.gap * 3).min(SPIN_MAX)
        }
    }

    /// Spinning has found an event after this time.
    pub fn record_found(&mut self, took: Duration) {
        self.gap = (self.gap * 7 + took.min(SPIN_MAX * 8)) / 8;
    }

    /// Spinning was in vain; spin and sleep together took this time.
    pub fn record_slept(&mut self, took: Duration) {
        self.record_found(took.saturating_sub(WAKE_COST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_starts_when_events_come_quickly_and_ends_when_they_dont() {
        let mut spin = SocketSpin::default();
        assert_eq!(spin.budget(), Duration::ZERO);
        for _ in 0..40 {
            spin.record_slept(Duration::from_micros(65));
        }
        assert!(
            spin.budget() > Duration::from_micros(20),
            "{:?}",
            spin.budget()
        );
        for _ in 0..40 {
            spin.record_slept(Duration::from_millis(3));
        }
        assert_eq!(spin.budget(), Duration::ZERO);
    }
}
