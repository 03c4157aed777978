//! How long a worker looks for the next event before it sleeps, learned from how long it took lately.
//!
//! A sleeping thread is woken in [`WAKE_COST`]; a thread that still looks sees the event at once. So looking pays when
//! events come sooner than about that, and wastes a core when they don't. And while a worker looks, its core isn't idle:
//! the system puts a client that is woken on an idle core rather than where it was, and interrupts that core for it. So
//! looking pays for a few times as long as a sleep costs, which bridges a sync of the disk.
//!
//! This is for sockets, which are looked at by system calls. Rings are looked at in memory
//! ([`porpoise_transport::spin`]).

use std::time::Duration;

const SPIN_MAX: Duration = Duration::from_micros(250);
const WAKE_COST: Duration = Duration::from_micros(50);

pub(super) struct Spin {
    /// Moving average of the time from running out of work to the next event.
    gap: Duration,
}

impl Default for Spin {
    fn default() -> Spin {
        Spin { gap: SPIN_MAX * 4 }
    }
}

impl Spin {
    /// How long to look now.
    pub fn worth(&self) -> Duration {
        if self.gap > SPIN_MAX {
            Duration::ZERO
        } else {
            (self.gap * 3).min(SPIN_MAX)
        }
    }

    /// The look has found something after so long.
    pub fn won(&mut self, took: Duration) {
        self.gap = (self.gap * 7 + took.min(SPIN_MAX * 8)) / 8;
    }

    /// The look was in vain, and look and sleep together took so long.
    pub fn slept(&mut self, took: Duration) {
        self.won(took.saturating_sub(WAKE_COST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_starts_when_events_come_quickly_and_ends_when_they_dont() {
        let mut spin = Spin::default();
        assert_eq!(spin.worth(), Duration::ZERO);
        for _ in 0..40 {
            spin.slept(Duration::from_micros(65));
        }
        assert!(
            spin.worth() > Duration::from_micros(20),
            "{:?}",
            spin.worth()
        );
        for _ in 0..40 {
            spin.slept(Duration::from_millis(3));
        }
        assert_eq!(spin.worth(), Duration::ZERO);
    }
}
