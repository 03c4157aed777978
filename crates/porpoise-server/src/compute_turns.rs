//! Turns of the statements that compute for long: a few at once, the others pause.
//!
//! ```text
//!   turn 1   A B C D compute   E F G … pause
//!   turn 2   E F G H compute   I … A B C D pause          who has waited longest is next
//! ```
//!
//! Hundreds of threads that compute take most of each core together, however little each of them
//! weighs, and a loop that has had its share waits for as many of them. A few that run when a core
//! has nothing else to do take what is left of it, all of it.
//!
//! A statement pauses where it looks whether it was killed
//! ([`Interrupt`](porpoise_storage::Interrupt)): once a row. It keeps what it holds meanwhile, as a
//! thread does that waits for a core.

use std::time::{Duration, Instant};

use crate::thread_priority::ThreadPriority;

/// So many statements for each core compute at once.
const AT_ONCE_A_CORE: usize = 4;

/// How long a statement computes before others do: much longer than it takes to fill a core's
/// caches.
const TURN: Duration = Duration::from_millis(20);

/// Whose turn it is.
pub(crate) struct ComputeTurns {
    /// The number of this turn.
    number: u64,
    began: Instant,
}

impl ComputeTurns {
    pub fn new(now: Instant) -> ComputeTurns {
        ComputeTurns {
            number: 1,
            began: now,
        }
    }

    /// Has some of the statements that compute go on, and the others pause. Tells whether any pauses.
    pub fn share(&mut self, computing: &[&ThreadPriority], cores: usize, now: Instant) -> bool {
        let at_once = AT_ONCE_A_CORE * cores;
        if computing.len() <= at_once {
            computing.iter().for_each(|one| one.set_paused(false));
            return false;
        }
        let is_over = now.saturating_duration_since(self.began) >= TURN;
        if is_over {
            self.number += 1;
            self.began = now;
            let running = computing.iter().filter(|one| !one.is_paused());
            running.for_each(|one| one.record_turn(self.number));
        }
        let mut by_turn: Vec<_> = computing.iter().enumerate().collect();
        // Within a turn those that compute go on; of equals another one is the first each time.
        by_turn.sort_by_cached_key(|(place, one)| {
            let rank = (*place as u64 + self.number) % computing.len() as u64;
            (!is_over && one.is_paused(), one.last_turn(), rank)
        });
        for (place, (_, one)) in by_turn.into_iter().enumerate() {
            one.set_paused(place >= at_once);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use porpoise_storage::Interrupt;
    use std::sync::Arc;

    #[test]
    fn each_statement_has_its_turn() {
        let interrupts: Vec<Arc<Interrupt>> = (0..7).map(|_| Arc::default()).collect();
        let threads: Vec<ThreadPriority> = interrupts
            .iter()
            .map(|interrupt| {
                let thread = ThreadPriority::of_this_thread();
                thread.begin_apart(Some(interrupt.clone()), true);
                thread
            })
            .collect();
        let computing: Vec<_> = threads.iter().collect();
        let mut now = Instant::now();
        let mut turns = ComputeTurns::new(now);
        let mut had = [0; 7];
        for _ in 0..7 {
            assert!(turns.share(&computing, 1, now));
            let runs = |at: usize| !interrupts[at].is_paused();
            let running: Vec<_> = (0..7).filter(|at| runs(*at)).collect();
            assert_eq!(running.len(), AT_ONCE_A_CORE);
            // Nothing changes within a turn.
            assert!(turns.share(&computing, 1, now + TURN / 2));
            assert!(running.iter().all(|at| runs(*at)));
            running.iter().for_each(|at| had[*at] += 1);
            now += TURN;
        }
        assert!(had.iter().all(|turns| (3..=5).contains(turns)), "{had:?}");
        // One whose statement ends pauses no more; of few none does.
        assert!(threads[0].end_apart() && !interrupts[0].is_paused());
        assert!(!turns.share(&computing[..AT_ONCE_A_CORE], 1, now));
        assert!(
            interrupts[..AT_ONCE_A_CORE]
                .iter()
                .all(|one| !one.is_paused())
        );
    }
}
