//! Deadlines of many connections, cheap for deadlines that keep being postponed and for connections
//! that soon end.
//!
//! An active connection's deadline moves with every statement. Only its slot's `deadline` moves
//! then; the heap keeps one entry from before. When that entry comes up, and the deadline has moved
//! on, the entry is inserted again for the new time. So a connection costs the heap one visit a
//! timeout, and nothing a statement.
//!
//! Entries are of slots, not of the connections in them: the next connection in a slot takes over
//! the entry that the one before has left. So there are about as many entries as there ever were
//! connections at once, however fast they come and go. A deadline that is brought forward costs an
//! entry, which comes up within ten minutes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// The time from making an entry until it comes up, at most. What large replies over rings bring
/// forward to give memory back, and put off again, leaves an entry each time.
const ENTRY_AHEAD_MAX: Duration = Duration::from_secs(600);

/// The heap of deadlines.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Times and slots.
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
}

/// The deadline of the connection in a slot, and the time its earliest entry in the heap comes up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    due: Option<Instant>,
    entry: Option<Instant>,
}

impl Deadline {
    /// Forgets the deadline of a connection that has left the slot; the entry stays for the next
    /// one.
    pub fn clear(&mut self) {
        self.due = None;
    }

    pub fn is_over(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

impl Timers {
    /// Moves a deadline. Only one that is earlier than its entry costs another entry; the entry that
    /// it leaves behind is gone after [`ENTRY_AHEAD_MAX`].
    pub fn set(&mut self, slot: usize, deadline: &mut Deadline, due: Option<Instant>) {
        deadline.due = due;
        if let Some(due) = due
            && deadline.entry.is_none_or(|entry| due < entry)
        {
            let entry = due.min(Instant::now() + ENTRY_AHEAD_MAX);
            deadline.entry = Some(entry);
            self.heap.push(Reverse((entry, slot)));
        }
    }

    /// The next slot whose entry is up, and the entry's time. The caller checks whether the
    /// deadline is over, and if not, [inserts the entry again](Self::reinsert).
    pub fn pop(&mut self, now: Instant) -> Option<(usize, Instant)> {
        let &Reverse((at, slot)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((slot, at))
    }

    /// After [`pop`](Self::pop) of the entry for `at`: a new entry if the deadline is still ahead.
    pub fn reinsert(&mut self, slot: usize, deadline: &mut Deadline, at: Instant) {
        // Entries that an earlier deadline overtook are not this deadline's own any more.
        if deadline.entry != Some(at) {
            return;
        }
        deadline.entry = None;
        self.set(slot, deadline, deadline.due);
    }

    /// How long until the next entry is up; `None` if there is none.
    pub fn time_to_next(&self, now: Instant) -> Option<Duration> {
        self.heap
            .peek()
            .map(|Reverse((at, _))| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_brought_forward_and_put_off_leave_no_entries_for_long() {
        let start = Instant::now();
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        for _ in 0..100 {
            for timeout in [Duration::from_secs(8 * 3600), Duration::from_secs(1)] {
                timers.set(0, &mut deadline, Some(start + timeout));
                deadline.clear();
                deadline.entry = None;
            }
        }
        assert!(timers.heap.len() > 100);
        let later = start + ENTRY_AHEAD_MAX + Duration::from_secs(60);
        while let Some((slot, at)) = timers.pop(later) {
            timers.reinsert(slot, &mut deadline, at);
        }
        assert!(timers.heap.is_empty());
    }

    #[test]
    fn a_deadline_postponed_many_times_is_one_entry() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        for s in 10..20 {
            timers.set(1, &mut deadline, Some(at(s)));
        }
        assert_eq!(timers.heap.len(), 1);
        let (slot, entry) = timers.pop(at(10)).unwrap();
        assert!(!deadline.is_over(at(10)));
        timers.reinsert(slot, &mut deadline, entry);
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
        timers.set(1, &mut deadline, Some(at(100)));
        timers.set(1, &mut deadline, Some(at(5)));
        assert_eq!(timers.pop(at(5)), Some((1, at(5))));
        assert!(deadline.is_over(at(5)));
        timers.set(1, &mut deadline, None);
        timers.reinsert(1, &mut deadline, at(5));
        let (slot, entry) = timers.pop(at(100)).unwrap();
        timers.reinsert(slot, &mut deadline, entry);
        assert!(timers.heap.is_empty());
    }

    #[test]
    fn connections_that_come_and_go_leave_one_entry_a_slot() {
        let start = Instant::now();
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        for ms in 0..1000 {
            timers.set(
                3,
                &mut deadline,
                Some(start + Duration::from_millis(10_000 + ms)),
            );
            deadline.clear();
        }
        assert_eq!(timers.heap.len(), 1);
        // NothingToAccept is there when it comes up, and nothing is left of it.
        let (slot, entry) = timers.pop(start + Duration::from_secs(10)).unwrap();
        assert!(!deadline.is_over(start + Duration::from_secs(100)));
        timers.reinsert(slot, &mut deadline, entry);
        assert!(timers.heap.is_empty());
        // The next one there has an entry of its own.
        timers.set(3, &mut deadline, Some(start + Duration::from_secs(20)));
        assert_eq!(timers.heap.len(), 1);
    }
}
