//! Deadlines of many connections, cheap for those that keep being put off.
//!
//! An active connection's deadline moves with every statement. Only its slot's `deadline` moves
//! then; the heap keeps one entry from before. When that entry comes up, and the deadline has moved on,
//! the entry is put back for the new time. So a connection costs the heap one visit a timeout, and
//! nothing a statement.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use mio::Token;

#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Token)>>,
}

/// One connection's deadline, and the time its earliest entry in the heap comes up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    due: Option<Instant>,
    entry: Option<Instant>,
}

impl Deadline {
    pub fn is_over(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

impl Timers {
    /// Moves a deadline. Only one that comes sooner than the heap will look is an entry more.
    pub fn set(&mut self, token: Token, deadline: &mut Deadline, due: Option<Instant>) {
        deadline.due = due;
        if let Some(due) = due
            && deadline.entry.is_none_or(|entry| due < entry)
        {
            deadline.entry = Some(due);
            self.heap.push(Reverse((due, token)));
        }
    }

    /// The next connection whose entry is up. The caller looks whether its deadline is over, and if
    /// not, [puts it back](Self::put_back).
    pub fn pop(&mut self, now: Instant) -> Option<(Token, Instant)> {
        let &Reverse((at, token)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((token, at))
    }

    /// After [`pop`](Self::pop) of the entry for `at`: a new entry if the deadline is still ahead.
    pub fn put_back(&mut self, token: Token, deadline: &mut Deadline, at: Instant) {
        // Entries that an earlier deadline overtook are not this deadline's own any more.
        if deadline.entry != Some(at) {
            return;
        }
        deadline.entry = None;
        self.set(token, deadline, deadline.due);
    }

    /// How long the loop may sleep.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        self.heap
            .peek()
            .map(|Reverse((at, _))| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_put_off_many_times_is_one_entry() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        for s in 10..20 {
            timers.set(Token(1), &mut deadline, Some(at(s)));
        }
        assert_eq!(timers.heap.len(), 1);
        let (token, entry) = timers.pop(at(10)).unwrap();
        assert!(!deadline.is_over(at(10)));
        timers.put_back(token, &mut deadline, entry);
        assert_eq!(timers.pop(at(18)), None);
        let (_, entry) = timers.pop(at(19)).unwrap();
        assert!(deadline.is_over(at(19)));
        assert_eq!(entry, at(19));
    }

    #[test]
    fn a_deadline_brought_forward_comes_up_in_time_and_once() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        timers.set(Token(1), &mut deadline, Some(at(100)));
        timers.set(Token(1), &mut deadline, Some(at(5)));
        assert_eq!(timers.pop(at(5)), Some((Token(1), at(5))));
        assert!(deadline.is_over(at(5)));
        timers.set(Token(1), &mut deadline, None);
        timers.put_back(Token(1), &mut deadline, at(5));
        let (token, entry) = timers.pop(at(100)).unwrap();
        timers.put_back(token, &mut deadline, entry);
        assert!(timers.heap.is_empty());
    }
}
