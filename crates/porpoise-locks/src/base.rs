//! What the lock is built from: the standard library's atomics, mutexes and threads, and time.
//!
//! The lock names these only through this module. The interleaving tests compile the same files
//! over `loom`'s, with a deadline that may pass at any moment (`modelled`).

use std::cell::Cell;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

pub use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
pub use std::sync::{Mutex, MutexGuard};
pub use std::thread::{Thread, current as current_thread};

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

/// Locks a mutex. A panic elsewhere doesn't spoil it: no critical section here leaves its state
/// half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

/// How often a waiter tries before it parks, each time after twice as many pauses.
pub const SPIN_ROUNDS: u32 = 3;
/// And then, each time after others could run,
pub const YIELDS: u32 = 8;
/// and after so many pauses: every look takes the lock's line away from the core that works on it,
/// so who looks seldom lets whoever holds the lock through some hundred turns meanwhile.
pub const PAUSES: u32 = if cfg!(miri) { 1 } else { 128 };

macro_rules! maybe_const_fn {
    ($(#[$about:meta])* pub fn $name:ident() -> $ty:ty $body:block) => {
        $(#[$about])*
        pub const fn $name() -> $ty $body
    };
}
pub(crate) use maybe_const_fn;

/// So many threads have a lane; those beyond use a lock's word.
pub const LANES: usize = 128;
/// How many sets of lanes there are for all locks of a process.
pub const LANE_SETS_MAX: usize = 63;
const ROOMS: usize = 64;

static LANE_SETS: [LaneSet; LANE_SETS_MAX] = [const {
    LaneSet {
        taken: AtomicBool::new(false),
        drift: AtomicU32::new(0),
        openings: AtomicU32::new(0),
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
    /// The lane of a thread, and for how long it has read without writing.
    static THREAD: (Cell<u32>, Cell<u32>) = const { (Cell::new(UNKNOWN), Cell::new(0)) };
    /// Gives the lane back when the thread ends.
    static LANE_OWNED: LaneOwned = const { LaneOwned(Cell::new(NO_LANE)) };
}

const UNKNOWN: u32 = u32::MAX;
const NO_LANE: u32 = u32::MAX - 1;

/// Which lanes have a thread, and how many of them ever had.
static LANES_TAKEN: [AtomicBool; LANES] = [const { AtomicBool::new(false) }; LANES];
static LANES_IN_USE: AtomicUsize = AtomicUsize::new(0);

struct LaneOwned(Cell<u32>);

impl Drop for LaneOwned {
    fn drop(&mut self) {
        THREAD.with(|(lane, _)| lane.set(NO_LANE));
        if let Some(taken) = LANES_TAKEN.get(self.0.get() as usize) {
            taken.store(false, Release);
        }
    }
}

/// The lane of this thread, if there was one left for it.
#[inline]
pub fn lane() -> Option<usize> {
    let lane = THREAD.with(|(lane, _)| lane.get());
    let lane = if lane == UNKNOWN { take_lane() } else { lane };
    (lane < LANES as u32).then_some(lane as usize)
}

#[cold]
fn take_lane() -> u32 {
    let free = LANES_TAKEN.iter().position(|taken| {
        taken
            .compare_exchange(false, true, Acquire, Relaxed)
            .is_ok()
    });
    let lane = free.map_or(NO_LANE, |lane| lane as u32);
    // A thread that is about to end has none.
    let is_owned = LANE_OWNED.try_with(|owned| owned.0.set(lane)).is_ok();
    if let Some(free) = free {
        if !is_owned {
            LANES_TAKEN[free].store(false, Release);
            return NO_LANE;
        }
        LANES_IN_USE.fetch_max(free + 1, SeqCst);
    }
    THREAD.with(|(own, _)| own.set(lane));
    lane
}

/// The lanes from this number on never had a thread.
pub fn lanes_in_use() -> usize {
    LANES_IN_USE.load(Relaxed)
}

/// After so many entries without writing, opening a lock's lanes is worth being closed again by the
/// next writer.
const LONG: u32 = 256;

/// Counts an entry of this thread as a reader, or several for one that took long.
#[inline]
pub fn has_read_long(entries: u32) -> bool {
    THREAD.with(|(_, read)| {
        read.set(read.get() + entries);
        read.get() >= LONG
    })
}

/// Whether this thread [has read long](has_read_long); the count begins anew.
pub fn is_time_to_open() -> bool {
    THREAD.with(|(_, read)| read.get() >= LONG && read.replace(0) > 0)
}

/// This thread writes.
#[inline]
pub fn has_written() {
    THREAD.with(|(_, read)| read.set(0));
}

/// Whether the kernel puts fences on other cores for us.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Makes [`light_fence`] free of cost where the kernel can make up for it. The lock calls it before
/// it needs it; whoever uses the fences beside a lock calls it first.
pub fn prepare_fences() {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::thread::{MembarrierCommand, membarrier};
        static PREPARED: std::sync::Once = std::sync::Once::new();
        PREPARED.call_once(|| {
            let is_registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            ASYMMETRIC.store(is_registered, SeqCst);
        });
    }
}

/// A fence between a store and a load, as seen by those who call [`heavy_fence`]: of two threads
/// that store first and then look at what the other has stored, one with this between and one with
/// that, one sees the other.
#[inline]
pub fn light_fence() {
    if ASYMMETRIC.load(Relaxed) {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        fence();
    }
}

/// A fence here, and at the same time on every core that runs a thread of this process.
pub fn heavy_fence() {
    fence();
    #[cfg(all(target_os = "linux", not(miri)))]
    if ASYMMETRIC.load(Relaxed) {
        use rustix::thread::{MembarrierCommand, membarrier};
        membarrier(MembarrierCommand::PrivateExpedited)
            .expect("the kernel has let this process register for it");
    }
}

/// A fence here.
pub fn fence() {
    std::sync::atomic::fence(SeqCst);
}
