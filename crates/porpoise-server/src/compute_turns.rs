//! Turns of the statements that compute for long: of many one for each core has a share of it, some
//! take what is left, the others pause.
//!
//! ```text
//!              has a share   takes what is left   pauses        two cores
//!   turn 1     A B           C D E F G H          I J K …
//!   turn 2     C D           E F G H I J          K … A B       who has waited longest is next
//! ```
//!
//! Hundreds of threads that compute take most of each core together, however little each of them
//! weighs, and a loop that has had its share waits for as many of them. A few that run when a core
//! has nothing else to do take what is left of it, all of it. But nothing is left where other
//! programs compute, too: so some have a share ([`crate::thread_priority`]), each in its turn, and
//! every statement goes on. Where such programs are seen, all that don't pause have one: a thread that stood
//! still with a lock of the storage in its hands would keep all who want it.
//!
//! A statement pauses where it looks whether it was killed
//! ([`Interrupt`](porpoise_storage::Interrupt)): once a row. It keeps what it holds meanwhile, as a
//! thread does that waits for a core.

use std::time::{Duration, Instant};

use crate::thread_priority::{self, Level, ThreadPriority};

/// So many statements for each core compute at once.
const AT_ONCE_A_CORE: usize = 4;

/// Up to so many for each core have a share at once.
const SHARING_A_CORE: usize = 2;

/// How long a statement has a share before others do: much longer than it takes to fill a core's
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

    /// Has some of the statements that compute go on, and the others pause, and weighs their
    /// threads. Tells whether their turns must end: that this is called again soon. `has_rivals`: other
    /// programs keep the cores busy.
    pub fn share(
        &mut self,
        computing: &[&ThreadPriority],
        cores: usize,
        has_rivals: bool,
        now: Instant,
    ) -> bool {
        if computing.len() <= SHARING_A_CORE * cores {
            let level = thread_priority::level_of_each(computing.len(), cores);
            for one in computing {
                one.set_paused(false);
                one.set_level(level);
            }
            return false;
        }
        let at_once = match has_rivals {
            true => SHARING_A_CORE * cores,
            false => AT_ONCE_A_CORE * cores,
        };
        let sharing = match thread_priority::has_level_without_share(has_rivals) {
            true => cores,
            false => at_once,
        };
        let share = thread_priority::level_of_each(sharing.min(computing.len()), cores);
        let rest = thread_priority::level_without_share(share, has_rivals);
        let has_share = |one: &ThreadPriority| matches!(one.level(), Level::Nicer(_));
        let is_over = now.saturating_duration_since(self.began) >= TURN;
        if is_over {
            self.number += 1;
            self.began = now;
        }
        for one in computing {
            // Who has just begun to compute is behind those who have waited.
            let had_share = is_over && has_share(one) && !one.is_paused();
            if had_share || one.last_turn() == 0 {
                one.record_turn(self.number);
            }
        }
        let mut by_turn = computing.to_vec();
        // Within a turn those that have a share, or compute, go on.
        by_turn.sort_by_cached_key(|one| {
            let standing = (one.is_paused(), !has_share(one));
            ((!is_over).then_some(standing), one.last_turn())
        });
        for (place, one) in by_turn.into_iter().enumerate() {
            one.set_level(if place < sharing { share } else { rest });
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
        let (mut had, mut shared) = ([0; 7], [0; 7]);
        for _ in 0..7 {
            assert!(turns.share(&computing, 1, false, now));
            let runs = |at: usize| !interrupts[at].is_paused();
            let running: Vec<_> = (0..7).filter(|at| runs(*at)).collect();
            assert_eq!(running.len(), AT_ONCE_A_CORE);
            for at in 0..7 {
                // A process without the right to raise a priority lowers none so far.
                let is_idle = threads[at].level() == Level::Idle;
                shared[at] += u32::from(!is_idle && runs(at));
            }
            // Nothing changes within a turn.
            assert!(turns.share(&computing, 1, false, now + TURN / 2));
            assert!(running.iter().all(|at| runs(*at)));
            running.iter().for_each(|at| had[*at] += 1);
            now += TURN;
        }
        assert!(had.iter().all(|turns| (3..=5).contains(turns)), "{had:?}");
        assert!(shared.iter().all(|turns| *turns >= 1), "{shared:?}");
        if thread_priority::may_raise() {
            assert_eq!(shared, [1; 7]);
        }
        // One whose statement ends pauses no more; of few none does.
        assert!(threads[0].end_apart() && !interrupts[0].is_paused());
        assert!(turns.share(&computing[..AT_ONCE_A_CORE], 1, false, now));
        assert!(
            interrupts[..AT_ONCE_A_CORE]
                .iter()
                .all(|one| !one.is_paused())
        );
        assert!(!turns.share(&computing[..SHARING_A_CORE], 1, false, now));
        // Beside other programs none stands still but where it pauses.
        assert!(turns.share(&computing[..AT_ONCE_A_CORE], 1, true, now));
        let of_few = &computing[..AT_ONCE_A_CORE];
        assert!(of_few.iter().all(|one| one.level() != Level::Idle));
        let paused = of_few.iter().filter(|one| one.is_paused()).count();
        assert_eq!(paused, AT_ONCE_A_CORE - SHARING_A_CORE);
    }
}
