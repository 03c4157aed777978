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
//! connections that queue here are about to do. If nothing has moved for [`STALL`] all the same, as where
//! long scans have all places, there is one place more, for a while. Each takes longer to come than the one
//! before: a machine whose cores are all taken gets nothing done sooner with more threads.

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

/// How long none of the threads is done before there is a place more, times one more than have been added. A
/// drive with 64 reads to do gives the first of them much sooner.
const STALL: Duration = Duration::from_millis(20);

/// After so long half of the places that have been added are taken away again. Where they are still needed,
/// the queue stalls once more.
const ADDED_FOR: Duration = Duration::from_secs(1);

/// The threads that wait for the disk, and what waits for one of them.
pub(crate) struct DiskThreads<T> {
    state: Mutex<State<T>>,
    /// As in the state, for those who only look.
    threads: AtomicUsize,
    queued: AtomicUsize,
}

struct State<T> {
    threads: usize,
    /// How many of them may take connections from the queue: [`PLACES`], or more where those don't get on.
    places: usize,
    /// When that changed.
    changed: Instant,
    queue: VecDeque<T>,
    /// When a thread came or was done, or a connection into an empty queue.
    moved: Instant,
}

impl<T> Default for DiskThreads<T> {
    fn default() -> DiskThreads<T> {
        let now = Instant::now();
        DiskThreads {
            state: Mutex::new(State {
                threads: 0,
                places: PLACES,
                changed: now,
                queue: VecDeque::new(),
                moved: now,
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
            if state.threads < state.places {
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

    /// A thread is done, or gives its place up. Gives what it, or another one, is to serve in its place.
    pub fn leave(&self, now: Instant) -> Option<T> {
        self.change(|state| {
            state.threads -= 1;
            state.take(now)
        })
    }

    /// What another thread is to serve as none has been done for long.
    pub fn next_of_stalled(&self, now: Instant) -> Option<T> {
        if !self.has_queue() {
            return None;
        }
        self.change(|state| {
            let added = state.threads.saturating_sub(PLACES) as u32;
            if now.saturating_duration_since(state.moved) < STALL * (added + 1) {
                return None;
            }
            state.set_places(state.threads + 1, now);
            state.take(now)
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
    /// The next of the queue, if there is a place for it, which it then has.
    fn take(&mut self, now: Instant) -> Option<T> {
        self.moved = now;
        let added = self.places - PLACES;
        if added > 0 && now.saturating_duration_since(self.changed) >= ADDED_FOR {
            self.set_places(PLACES + added / 2, now);
        }
        let next = match self.threads < self.places {
            true => self.queue.pop_front(),
            false => None,
        };
        self.threads += usize::from(next.is_some());
        next
    }

    fn set_places(&mut self, places: usize, now: Instant) {
        self.places = places.max(PLACES);
        self.changed = now;
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
        assert_eq!(disk.leave(now), None);
        assert_eq!(disk.leave(now), Some(100));
        // A stalled queue has a place more.
        assert_eq!(disk.next_of_stalled(now + STALL / 2), None);
        let stalled = now + STALL;
        assert_eq!(disk.next_of_stalled(stalled), Some(101));
        assert_eq!(disk.next_of_stalled(stalled + STALL), None);
        assert_eq!(disk.leave(stalled), Some(102));
        assert!(!disk.has_queue());
        // The place is there for a while.
        assert_eq!(disk.leave(stalled), None);
        assert_eq!(disk.queue(103, stalled), Some(103));
        assert_eq!(disk.queue(104, stalled), None);
        let later = stalled + ADDED_FOR;
        assert_eq!(disk.leave(later), None);
        assert_eq!(disk.leave(later), Some(104));
        for _ in 0..PLACES {
            assert_eq!(disk.leave(later), None);
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
