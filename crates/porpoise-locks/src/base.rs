//! What the locks are built from: the standard library's atomics, mutexes and threads, and time.
//!
//! The locks name these only through this module. The interleaving tests compile the same files over `loom`'s, with
//! a deadline that may pass at any moment (`modelled`).

use std::cell::Cell;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock};
pub use std::thread::{Thread, current as current_thread};

pub use crate::spin::SpinLock;

use crate::prefer_reader::{Lane, LaneSet, Room};

/// How long to wait.
#[derive(Clone, Debug)]
pub enum Deadline {
    /// As long as it takes.
    Never,
    /// To a moment.
    At(Instant),
}

impl Deadline {
    /// A time from now. One that is too long for the clock never comes.
    pub fn after(time: Duration) -> Deadline {
        Instant::now()
            .checked_add(time)
            .map_or(Deadline::Never, Deadline::At)
    }
}

/// Locks a mutex. A panic elsewhere doesn't spoil it: no critical section here leaves its state half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until notified; true: the deadline has passed. It may also wake for nothing.
pub fn wait<'a, T>(
    condvar: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    deadline: &Deadline,
) -> (MutexGuard<'a, T>, bool) {
    match deadline {
        Deadline::Never => {
            let guard = condvar.wait(guard);
            (guard.unwrap_or_else(PoisonError::into_inner), false)
        }
        Deadline::At(moment) => {
            let left = moment.saturating_duration_since(Instant::now());
            let (guard, timed_out) = condvar
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner);
            (guard, timed_out.timed_out())
        }
    }
}

/// Sleeps until unparked; true: the deadline has passed. It may also wake for nothing.
pub fn park(deadline: &Deadline) -> bool {
    match deadline {
        Deadline::Never => {
            std::thread::park();
            false
        }
        Deadline::At(moment) => {
            let left = moment.saturating_duration_since(Instant::now());
            std::thread::park_timeout(left);
            Instant::now() >= *moment
        }
    }
}

/// Lets others run.
pub fn yield_now() {
    std::thread::yield_now();
}

/// Between a change of one word and a look at another, all of it `SeqCst`: the standard library's is in one order for all.
/// (The interleaving tests take `SeqCst` for less, and put a fence here.)
#[inline]
pub fn settle() {}

/// A spinner gives its core away after so many looks: the holder may wait for it.
pub const SPINS_MAX: u32 = 64;

/// How often a waiter tries before it parks, each time after twice as many pauses.
pub const SPIN_ROUNDS: u32 = 6;

macro_rules! maybe_const_fn {
    ($(#[$about:meta])* pub fn $name:ident() -> $ty:ty $body:block) => {
        $(#[$about])*
        pub const fn $name() -> $ty $body
    };
}
pub(crate) use maybe_const_fn;

/// So many cores read at once without meeting.
pub const LANES: usize = 8;
/// How many lanes' sets there are for all locks of a process.
pub const LANE_SETS_MAX: usize = 63;
const ROOMS: usize = 64;

static LANE_SETS: [LaneSet; LANE_SETS_MAX] = [const {
    LaneSet {
        taken: AtomicBool::new(false),
        lanes: [const { Lane(AtomicU32::new(0)) }; LANES],
    }
}; LANE_SETS_MAX];

static WAITING_ROOMS: [Room; ROOMS] = [const { Room(Mutex::new(Vec::new())) }; ROOMS];

pub fn lane_sets() -> &'static [LaneSet] {
    &LANE_SETS
}

/// The room where those wait who wait for the lock at an address.
pub fn room(address: usize) -> &'static Room {
    &WAITING_ROOMS[address.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize) >> 58]
}

thread_local! {
    /// The number of a thread, from which its lane comes, and how often it met others at a word lately.
    static THREAD: (Cell<u32>, Cell<u32>) = const { (Cell::new(u32::MAX), Cell::new(0)) };
}

/// The lane of this thread. Threads that were begun one after the other have different ones.
#[inline]
pub fn lane() -> usize {
    THREAD.with(|(number, _)| match number.get() {
        u32::MAX => number_thread(number),
        number => number as usize,
    })
}

#[cold]
fn number_thread(number: &Cell<u32>) -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let lane = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % LANES as u32;
    number.set(lane);
    lane as usize
}

/// This thread met another at a lock's word; true: often enough for the lock to spread its readers.
pub fn is_often_contended() -> bool {
    /// So many meetings pay for the lanes being closed again by the next writer.
    const MEETINGS: u32 = 32;
    THREAD.with(|(_, meetings)| {
        let now = meetings.get() + 1;
        meetings.set(now % MEETINGS);
        now == MEETINGS
    })
}
