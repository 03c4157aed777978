//! Which of the connections that are ready is served next.
//!
//! ```text
//!   in the middle of something ───────────────────────────────► first, in the order they came
//!   (a login, a packet, a transaction)
//!
//!   about to begin something ──► while fewer than CROWD ───────► after them
//!                          └───► otherwise one a turn in which nobody else was ready, or who has waited for PATIENCE
//! ```
//!
//! A transaction that has begun holds row locks, a snapshot, its tables, and the processors' caches hold what it works
//! with. When hundreds of clients have transactions, one statement of each in turn makes them all slow: each finds its
//! session, its plan and its client's thread gone from the caches. So a worker finishes what it has begun before it begins
//! more, as the thread pools of MySQL Enterprise and Percona do with their queues of high and low priority. A
//! client who waits to begin waits no longer than it would have: it is the others' transactions that are shorter.
//!
//! Nobody is kept out: whenever nothing that has begun is ready, something else begins, and who has waited for long goes
//! before all. Statements that are transactions by themselves begin and end in one turn and hold nobody up: without
//! transactions of several statements, or with few, connections are served in the order they came.
//!
//! A turn is of those that were ready when it began. Who has sent statements ahead, in a transaction or not, is ready again at
//! once, and has its next turn after the others were heard.
//!
//! A transaction whose client is silent doesn't count after two [`STRETCH`]es ([`Crowd`]): any number of idle ones may be
//! open.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mio::Token;

/// So many that are in the middle of something keep a worker and its share of the clients busy, and in the caches.
const CROWD: usize = 16;

/// Who has waited for so long goes before all (as `thread_pool_prio_kickup_timer` has it in MySQL).
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection counts in the crowd for one to two of these after it was served.
const STRETCH: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Ready {
    under_way: VecDeque<Token>,
    beginning: VecDeque<(Token, Instant)>,
    /// How many of each are of this turn; those behind them have come since it began.
    turn: (usize, usize),
    pub crowd: Crowd,
}

impl Ready {
    pub fn push(&mut self, token: Token, is_under_way: bool, now: Instant) {
        if is_under_way {
            self.under_way.push_back(token);
        } else {
            self.beginning.push_back((token, now));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.beginning.is_empty()
    }

    /// From here on [`next`](Self::next) gives those that are here now. Who is ready again at once, with statements sent ahead,
    /// waits for the next turn, before which the others are heard.
    pub fn begin_turn(&mut self) {
        self.turn = (self.under_way.len(), self.beginning.len());
    }

    /// Those that are ready would only make the crowd larger: it is worth a moment to let the clients of those
    /// that are under way say something.
    pub fn is_held_up(&self) -> bool {
        self.under_way.is_empty() && !self.beginning.is_empty() && self.crowd.is_full()
    }

    /// The next to be served in this turn, `is_first` if none was before.
    pub fn next(&mut self, is_first: bool, now: Instant) -> Option<Token> {
        let waits_for_long = |since: &Instant| now.saturating_duration_since(*since) >= PATIENCE;
        let (under_way, beginning) = &mut self.turn;
        let begins = match self.beginning.front().filter(|_| *beginning > 0) {
            Some((_, since)) if waits_for_long(since) => true,
            Some(_) if *under_way == 0 => is_first || !self.crowd.is_full(),
            Some(_) | None => false,
        };
        if begins {
            *beginning -= 1;
            return self.beginning.pop_front().map(|(token, _)| token);
        }
        *under_way = under_way.checked_sub(1)?;
        self.under_way.pop_front()
    }

    /// As [`next`](Self::next) for a worker that ends: all of them, in whatever order.
    pub fn next_of_all(&mut self) -> Option<Token> {
        let beginning = &mut self.beginning;
        let first = || beginning.pop_front().map(|(token, _)| token);
        self.under_way.pop_front().or_else(first)
    }
}

/// How many connections are in the middle of something and were served lately.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// Those last served in this stretch, and in the one before.
    now: usize,
    before: usize,
    stretch: u32,
    begins: Instant,
}

/// The stretch in which a connection was last seen in the middle of something.
pub(crate) type Seen = Option<u32>;

impl Default for Crowd {
    fn default() -> Crowd {
        Crowd {
            now: 0,
            before: 0,
            stretch: 0,
            begins: Instant::now(),
        }
    }
}

impl Crowd {
    fn is_full(&self) -> bool {
        self.now + self.before >= CROWD
    }

    /// A connection was served, and is in the middle of something or not.
    pub fn note(&mut self, seen: &mut Seen, is_under_way: bool) {
        if *seen == Some(self.stretch) {
            self.now -= usize::from(!is_under_way);
        } else {
            let was_before = seen.is_some() && *seen == self.stretch.checked_sub(1);
            self.before -= usize::from(was_before);
            self.now += usize::from(is_under_way);
        }
        *seen = is_under_way.then_some(self.stretch);
    }

    /// Forgets those that have been silent.
    pub fn pass(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.begins);
        if passed < STRETCH {
            return;
        }
        // After two at once nobody is left.
        let is_next = passed < STRETCH * 2;
        self.before = if is_next { self.now } else { 0 };
        self.stretch = self.stretch.wrapping_add(if is_next { 1 } else { 2 });
        self.now = 0;
        self.begins = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn served(ready: &mut Ready, now: Instant) -> Vec<usize> {
        let mut served = Vec::new();
        ready.begin_turn();
        while let Some(Token(token)) = ready.next(served.is_empty(), now) {
            served.push(token);
        }
        served
    }

    fn fill(crowd: &mut Crowd, count: usize) -> Vec<Seen> {
        let mut seen = vec![None; count];
        seen.iter_mut().for_each(|seen| crowd.note(seen, true));
        seen
    }

    #[test]
    fn what_has_begun_goes_before_what_begins() {
        let mut ready = Ready::default();
        let now = Instant::now();
        for token in 0..6 {
            ready.push(Token(token), token % 2 == 1, now);
        }
        assert_eq!(served(&mut ready, now), [1, 3, 5, 0, 2, 4]);
        assert!(ready.is_empty());
    }

    #[test]
    fn who_is_ready_again_at_once_waits_for_the_next_turn() {
        let mut ready = Ready::default();
        let now = Instant::now();
        ready.push(Token(0), true, now);
        ready.push(Token(1), false, now);
        for _ in 0..3 {
            ready.begin_turn();
            assert_eq!(ready.next(true, now), Some(Token(0)));
            ready.push(Token(0), true, now);
            assert_eq!(ready.next(false, now), Some(Token(1)));
            ready.push(Token(1), false, now);
            assert_eq!(ready.next(false, now), None);
        }
    }

    #[test]
    fn a_crowd_lets_one_begin_in_a_turn_in_which_nobody_else_is_ready() {
        let mut ready = Ready::default();
        let now = Instant::now();
        let mut seen = fill(&mut ready.crowd, CROWD);
        for token in 0..3 {
            ready.push(Token(token), false, now);
        }
        ready.push(Token(7), true, now);
        assert!(!ready.is_held_up());
        assert_eq!(served(&mut ready, now), [7]);
        assert!(ready.is_held_up());
        assert_eq!(served(&mut ready, now), [0]);
        assert_eq!(served(&mut ready, now), [1]);
        // One of the crowd is done.
        ready.crowd.note(&mut seen[0], false);
        ready.push(Token(3), false, now);
        assert!(!ready.is_held_up());
        assert_eq!(served(&mut ready, now), [2, 3]);
    }

    #[test]
    fn who_has_waited_for_long_goes_before_all() {
        let mut ready = Ready::default();
        let then = Instant::now();
        let now = then + PATIENCE;
        let _seen = fill(&mut ready.crowd, CROWD);
        ready.push(Token(0), false, then);
        ready.push(Token(1), false, now);
        ready.push(Token(2), true, now);
        assert_eq!(served(&mut ready, now), [0, 2]);
    }

    #[test]
    fn idle_transactions_are_no_crowd() {
        let mut ready = Ready::default();
        let now = Instant::now();
        let mut seen = fill(&mut ready.crowd, CROWD);
        assert!(ready.crowd.is_full());
        ready.crowd.pass(now + STRETCH);
        assert!(ready.crowd.is_full());
        // One says something, the others don't.
        ready.crowd.note(&mut seen[0], true);
        ready.crowd.pass(now + STRETCH * 2);
        assert_eq!(ready.crowd.now + ready.crowd.before, 1);
        // An idle one that ends takes nobody else's place.
        ready.crowd.note(&mut seen[1], false);
        assert_eq!(ready.crowd.now + ready.crowd.before, 1);
        ready.crowd.pass(now + STRETCH * 5);
        assert_eq!(ready.crowd.now + ready.crowd.before, 0);
        ready.crowd.note(&mut seen[0], false);
        assert_eq!(ready.crowd.now + ready.crowd.before, 0);
    }

    proptest! {
        /// Against a count of those seen in this stretch or the one before.
        #[test]
        fn the_crowd_is_counted(steps in proptest::collection::vec((0usize..8, any::<bool>(), 0u32..3), 1..200)) {
            let mut crowd = Crowd::default();
            let mut now = crowd.begins;
            let mut seen = [None; 8];
            let mut last = [None; 8];
            let mut stretch = 2;
            for (who, is_under_way, passes) in steps {
                now += STRETCH * passes;
                crowd.pass(now);
                stretch += passes;
                crowd.note(&mut seen[who], is_under_way);
                last[who] = is_under_way.then_some(stretch);
                let counted = last.iter().flatten().filter(|at| **at + 1 >= stretch).count();
                prop_assert_eq!(crowd.now + crowd.before, counted);
            }
        }
    }
}
