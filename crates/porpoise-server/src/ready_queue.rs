//! Which of the connections that are ready is served next.
//!
//! ```text
//!   in the middle of something ──────────► high priority, in the order they came
//!   (a login, a packet, a transaction)
//!   statements by themselves ────────────► the same
//!
//!   about to begin a transaction ► while fewer than ACTIVE_MAX are active ──► after them
//!                          └───► otherwise one in a turn in which no other connection was ready,
//!                                or after it has waited for PRIORITY_KICKUP
//! ```
//!
//! A transaction that has begun holds row locks, a snapshot and its tables, and the processors'
//! caches hold what it works with. When hundreds of clients have transactions, one statement of
//! each in turn makes them all slow: each finds its session, its plan and its client's thread gone
//! from the caches. So a worker finishes what it has begun before it begins more, as the thread
//! pools of MySQL Enterprise and Percona Server do with their queues of high and low priority. A
//! client that waits to begin waits no longer than it would have: the others' transactions are
//! shorter.
//!
//! No client starves: whenever no active connection is ready, another one begins, and a connection
//! that has waited for long is served before all others. Statements that are transactions by
//! themselves begin and end in one turn and delay nobody: they wait for no transactions. Which of
//! the two a client is about to send, its last beginning tells.
//!
//! A turn is of the connections that were ready when it began. A client that has sent statements
//! ahead, in a transaction or not, is ready again at once, and is served again after the others
//! were.
//!
//! A transaction whose client is silent doesn't count after two [`ACTIVITY_WINDOW`]s
//! ([`ActiveCount`]): any number of idle ones may be open.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mio::Token;

/// So many active connections keep a worker and its share of the clients busy, and fit in the
/// caches.
const ACTIVE_MAX: usize = 16;

/// A connection that has waited for so long is served before all others (MySQL's
/// `thread_pool_prio_kickup_timer`).
const PRIORITY_KICKUP: Duration = Duration::from_secs(1);

/// A connection counts as active for one to two of these after it was served.
const ACTIVITY_WINDOW: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct ReadyQueue {
    high: VecDeque<Token>,
    /// With the time since when each has waited.
    low: VecDeque<(Token, Instant)>,
    /// How many of each queue are of this turn; those behind them have come since it began.
    high_in_turn: usize,
    low_in_turn: usize,
    pub active: ActiveCount,
}

impl ReadyQueue {
    pub fn push(&mut self, token: Token, is_high_priority: bool, now: Instant) {
        if is_high_priority {
            self.high.push_back(token);
        } else {
            self.low.push_back((token, now));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.high.is_empty() && self.low.is_empty()
    }

    /// From here on [`pop`](Self::pop) gives the connections that are ready now. A client that has
    /// sent statements ahead is ready again at once, and waits for the next turn.
    pub fn begin_turn(&mut self) {
        self.high_in_turn = self.high.len();
        self.low_in_turn = self.low.len();
    }

    /// Those that are ready would only make more connections active: it is worth a moment to let
    /// the clients of the active ones say something.
    pub fn is_throttled(&self) -> bool {
        self.high.is_empty() && !self.low.is_empty() && self.active.is_full()
    }

    /// The next to be served in this turn; `is_first`: none was served in it yet.
    pub fn pop(&mut self, is_first: bool, now: Instant) -> Option<Token> {
        let is_overdue = |since: &Instant| now.saturating_duration_since(*since) >= PRIORITY_KICKUP;
        let begins = match self.low.front().filter(|_| self.low_in_turn > 0) {
            Some((_, since)) if is_overdue(since) => true,
            Some(_) if self.high_in_turn == 0 => is_first || !self.active.is_full(),
            Some(_) | None => false,
        };
        if begins {
            self.low_in_turn -= 1;
            return self.low.pop_front().map(|(token, _)| token);
        }
        self.high_in_turn = self.high_in_turn.checked_sub(1)?;
        self.high.pop_front()
    }

    /// As [`pop`](Self::pop), for a worker that ends: all connections, whichever turn they are of.
    pub fn pop_any(&mut self) -> Option<Token> {
        let low = &mut self.low;
        let pop_low = || low.pop_front().map(|(token, _)| token);
        self.high.pop_front().or_else(pop_low)
    }
}

/// How many connections are in the middle of something and were served lately.
#[derive(Debug)]
pub(crate) struct ActiveCount {
    /// Those last served in this window.
    current: usize,
    /// Those last served in the window before.
    previous: usize,
    /// The number of this window.
    window: u32,
    window_began: Instant,
}

/// The window in which a connection was last seen in the middle of something.
pub(crate) type LastActive = Option<u32>;

impl Default for ActiveCount {
    fn default() -> ActiveCount {
        ActiveCount {
            current: 0,
            previous: 0,
            window: 0,
            window_began: Instant::now(),
        }
    }
}

impl ActiveCount {
    fn is_full(&self) -> bool {
        self.current + self.previous >= ACTIVE_MAX
    }

    /// A connection was served, and is in the middle of something or not.
    pub fn record(&mut self, last_active: &mut LastActive, is_active: bool) {
        if *last_active == Some(self.window) {
            self.current -= usize::from(!is_active);
        } else {
            let was_previous = last_active.is_some() && *last_active == self.window.checked_sub(1);
            self.previous -= usize::from(was_previous);
            self.current += usize::from(is_active);
        }
        *last_active = is_active.then_some(self.window);
    }

    /// Forgets those that have been silent.
    pub fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.window_began);
        if passed < ACTIVITY_WINDOW {
            return;
        }
        // After two windows without a call nobody counts.
        let is_next = passed < ACTIVITY_WINDOW * 2;
        self.previous = if is_next { self.current } else { 0 };
        self.window = self.window.wrapping_add(if is_next { 1 } else { 2 });
        self.current = 0;
        self.window_began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn served(ready: &mut ReadyQueue, now: Instant) -> Vec<usize> {
        let mut served = Vec::new();
        ready.begin_turn();
        while let Some(Token(token)) = ready.pop(served.is_empty(), now) {
            served.push(token);
        }
        served
    }

    fn count(active: &ActiveCount) -> usize {
        active.current + active.previous
    }

    fn fill(active: &mut ActiveCount, count: usize) -> Vec<LastActive> {
        let mut last = vec![None; count];
        last.iter_mut().for_each(|last| active.record(last, true));
        last
    }

    #[test]
    fn active_connections_are_served_before_those_that_begin() {
        let mut ready = ReadyQueue::default();
        let now = Instant::now();
        for token in 0..6 {
            ready.push(Token(token), token % 2 == 1, now);
        }
        assert_eq!(served(&mut ready, now), [1, 3, 5, 0, 2, 4]);
        assert!(ready.is_empty());
    }

    #[test]
    fn a_connection_that_is_ready_again_at_once_waits_for_the_next_turn() {
        let mut ready = ReadyQueue::default();
        let now = Instant::now();
        ready.push(Token(0), true, now);
        ready.push(Token(1), false, now);
        for _ in 0..3 {
            ready.begin_turn();
            assert_eq!(ready.pop(true, now), Some(Token(0)));
            ready.push(Token(0), true, now);
            assert_eq!(ready.pop(false, now), Some(Token(1)));
            ready.push(Token(1), false, now);
            assert_eq!(ready.pop(false, now), None);
        }
    }

    #[test]
    fn with_many_active_one_begins_in_a_turn_in_which_no_other_is_ready() {
        let mut ready = ReadyQueue::default();
        let now = Instant::now();
        let mut seen = fill(&mut ready.active, ACTIVE_MAX);
        for token in 0..3 {
            ready.push(Token(token), false, now);
        }
        ready.push(Token(7), true, now);
        assert!(!ready.is_throttled());
        assert_eq!(served(&mut ready, now), [7]);
        assert!(ready.is_throttled());
        assert_eq!(served(&mut ready, now), [0]);
        assert_eq!(served(&mut ready, now), [1]);
        // One of the active ones is done.
        ready.active.record(&mut seen[0], false);
        ready.push(Token(3), false, now);
        assert!(!ready.is_throttled());
        assert_eq!(served(&mut ready, now), [2, 3]);
    }

    #[test]
    fn a_connection_that_has_waited_for_long_is_served_first() {
        let mut ready = ReadyQueue::default();
        let then = Instant::now();
        let now = then + PRIORITY_KICKUP;
        let _seen = fill(&mut ready.active, ACTIVE_MAX);
        ready.push(Token(0), false, then);
        ready.push(Token(1), false, now);
        ready.push(Token(2), true, now);
        assert_eq!(served(&mut ready, now), [0, 2]);
    }

    #[test]
    fn idle_transactions_do_not_count() {
        let mut ready = ReadyQueue::default();
        let now = Instant::now();
        let mut seen = fill(&mut ready.active, ACTIVE_MAX);
        assert!(ready.active.is_full());
        ready.active.advance(now + ACTIVITY_WINDOW);
        assert!(ready.active.is_full());
        // One says something, the others don't.
        ready.active.record(&mut seen[0], true);
        ready.active.advance(now + ACTIVITY_WINDOW * 2);
        assert_eq!(count(&ready.active), 1);
        // An idle one that ends isn't subtracted from the others.
        ready.active.record(&mut seen[1], false);
        assert_eq!(count(&ready.active), 1);
        ready.active.advance(now + ACTIVITY_WINDOW * 5);
        assert_eq!(count(&ready.active), 0);
        ready.active.record(&mut seen[0], false);
        assert_eq!(count(&ready.active), 0);
    }

    proptest! {
        /// Against a count of those seen in this window or the one before.
        #[test]
        fn active_connections_are_counted(steps in proptest::collection::vec((0usize..8, any::<bool>(), 0u32..3), 1..200)) {
            let mut active = ActiveCount::default();
            let mut now = active.window_began;
            let mut seen = [None; 8];
            let mut last = [None; 8];
            let mut window = 2;
            for (who, is_active, passes) in steps {
                now += ACTIVITY_WINDOW * passes;
                active.advance(now);
                window += passes;
                active.record(&mut seen[who], is_active);
                last[who] = is_active.then_some(window);
                let counted = last.iter().flatten().filter(|at| **at + 1 >= window).count();
                prop_assert_eq!(count(&active), counted);
            }
        }
    }
}
