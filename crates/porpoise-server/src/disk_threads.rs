//! The threads that wait for the disk, and how many of them there may be.
//!
//! ```text
//!   loop ── a connection whose statements often read the disk ──► a thread with a place here, or the queue for one
//!     └──── any other ── its statement reads the disk ──► its thread goes on without the loop, and has a place
//! ```
//!
//! To run a statement on the loop's thread that then waits for the disk is to hand the loop over to another
//! thread, which has to get a core before anybody is served again. So the loop leaves connections whose
//! statements often read the disk to these threads.
//!
//! A disk reads as fast with [`PLACES`] reads that it has to choose from as with a thousand, and each
//! thread takes memory: its stack, its heap, the buffers of what it reads. So connections queue
//! while all places are taken. The others run on the loop meanwhile, and don't wait behind them. A statement
//! that nobody expected to read the disk has its loop handed over, and its thread comes on top of the places, until
//! there are [`CROWD`] times as many: then the loop waits for that one read. The threads beyond the places are the
//! first to end.
//!
//! Who waits for anything but the disk, or computes, gives its place up: what it waits for may be what the
//! connections that queue here are about to do. If none leaves the queue for [`STALL`] all the same,
//! another thread comes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// So many threads serve those that are expected to wait for the disk: as many reads as drives without moving
/// parts work at together.
const PLACES: usize = 64;

/// With so many times as many threads, connections of which little is known queue, too, and no loop is handed over
/// for a read.
const CROWD: usize = 2;

/// How long nothing leaves the queue before another thread comes. A drive with 64 reads to do gives the
/// first of them much sooner.
const STALL: Duration = Duration::from_millis(20);

/// The threads that wait for the disk, and what waits for one of them.
pub(crate) struct DiskThreads<T> {
    state: Mutex<State<T>>,
    /// As in the state, for those who only look.
    threads: AtomicUsize,
    queued: AtomicUsize,
}

struct State<T> {
    threads: usize,
    queue: VecDeque<T>,
    /// When one left the queue, or came into an empty one.
    moved: Instant,
}

impl<T> Default for DiskThreads<T> {
    fn default() -> DiskThreads<T> {
        DiskThreads {
            state: Mutex::new(State {
                threads: 0,
                queue: VecDeque::new(),
                moved: Instant::now(),
            }),
            threads: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
        }
    }
}

impl<T> DiskThreads<T> {
    /// Whether all places are taken.
    pub fn is_full(&self) -> bool {
        self.threads.load(Ordering::Relaxed) >= PLACES
    }

    /// Whether there are so many that no more are to come.
    pub fn is_crowded(&self) -> bool {
        self.threads.load(Ordering::Relaxed) >= CROWD * PLACES
    }

    pub fn has_queue(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    /// A thread is about to wait for the disk.
    pub fn enter(&self) {
        self.change(|state| state.threads += 1);
    }

    /// Queues a connection. It comes back if there is a place by now, which it then has.
    pub fn queue(&self, connection: T, now: Instant) -> Option<T> {
        self.change(|state| {
            if state.threads < PLACES {
                state.threads += 1;
                return Some(connection);
            }
            if state.queue.is_empty() {
                state.moved = now;
            }
            state.queue.push_back(connection);
            None
        })
    }

    /// What a thread that is done serves next; without any its place is free.
    pub fn next(&self, now: Instant) -> Option<T> {
        self.change(|state| {
            let next = match state.threads > PLACES {
                true => None,
                false => state.take(now),
            };
            state.threads -= usize::from(next.is_none());
            next
        })
    }

    /// A thread gives its place up. Gives what another thread is to serve in its stead.
    pub fn leave(&self, now: Instant) -> Option<T> {
        self.change(|state| {
            state.threads -= 1;
            let next = match state.threads < PLACES {
                true => state.take(now),
                false => None,
            };
            state.threads += usize::from(next.is_some());
            next
        })
    }

    /// What another thread is to serve as nothing has left the queue for long.
    pub fn next_of_stalled(&self, now: Instant) -> Option<T> {
        if !self.has_queue() {
            return None;
        }
        self.change(|state| {
            let is_stalled = now.saturating_duration_since(state.moved) >= STALL;
            let next = is_stalled.then(|| state.take(now)).flatten();
            state.threads += usize::from(next.is_some());
            next
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state);
        self.threads.store(state.threads, Ordering::Relaxed);
        self.queued.store(state.queue.len(), Ordering::Relaxed);
        result
    }
}

impl<T> State<T> {
    fn take(&mut self, now: Instant) -> Option<T> {
        self.moved = now;
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_place_queues_and_is_served_in_order() {
        let now = Instant::now();
        let disk = DiskThreads::default();
        for number in 0..PLACES {
            assert!(!disk.is_full());
            assert_eq!(disk.queue(number, now), Some(number));
        }
        assert!(disk.is_full() && !disk.has_queue());
        for number in [100, 101, 102] {
            assert_eq!(disk.queue(number, now), None);
        }
        // A thread more than there are places is the first to end.
        disk.enter();
        assert_eq!(disk.next(now), None);
        assert_eq!(disk.next(now), Some(100));
        assert_eq!(disk.leave(now), Some(101));
        assert_eq!(disk.next_of_stalled(now + STALL / 2), None);
        let later = now + STALL;
        assert_eq!(disk.next_of_stalled(later), Some(102));
        assert_eq!(disk.next_of_stalled(later + STALL), None);
        assert!(!disk.has_queue());
        // The one that came as the queue stalled, and the 64.
        for _ in 0..=PLACES {
            assert_eq!(disk.next(later), None);
        }
        assert_eq!(disk.queue(200, later), Some(200));
        assert_eq!(disk.leave(later), None);
        for _ in 0..CROWD * PLACES {
            assert!(!disk.is_crowded());
            disk.enter();
        }
        assert!(disk.is_crowded());
    }
}
