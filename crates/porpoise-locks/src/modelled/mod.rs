//! The lock's files once more, over loom's primitives: every order in which the threads of a small
//! scenario can run is tried, stale reads included. A thread that sleeps forever is reported by the
//! checker, so that each scenario also says "no wake-up is lost".
#![allow(
    clippy::duplicate_mod,
    clippy::absurd_extreme_comparisons,
    clippy::reversed_empty_ranges,
    reason = "the same source is checked over other primitives, with no spinning"
)]
#![allow(dead_code, unused_imports)]

#[path = "../prefer_reader.rs"]
mod prefer_reader;
mod primitives;
#[path = "../published.rs"]
mod published;
#[path = "../reader_writer.rs"]
mod reader_writer;
mod scenarios;

use prefer_reader::PreferReader;
use published::Published;
use reader_writer::{Owner, ReaderWriter};
use scenarios::{Guarded, check, promises, scenarios};

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use loom::thread;

/// The same names as the crate's `base`, over loom.
mod base {
    use loom::sync::atomic::Ordering;

    use super::prefer_reader::{Lane, LaneSet, Room};
    pub use super::primitives::*;

    /// A light and a heavy fence make one of two sides see the other; two light ones don't. So each
    /// thread has a word that its light fences change, and a heavy one changes them all.
    pub fn light_fence() {
        THREAD.with(|own| FENCES[*own].fetch_add(1, Ordering::AcqRel));
    }

    pub fn heavy_fence() {
        fence();
        for word in FENCES.iter() {
            word.fetch_add(1, Ordering::AcqRel);
        }
        fence();
    }

    pub fn fence() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }

    pub fn prepare_fences() {}

    pub const SPIN_ROUNDS: u32 = 0;
    pub const YIELDS: u32 = 0;
    pub const PAUSES: u32 = 0;
    /// A scenario has no more.
    const THREADS_MAX: usize = 3;
    pub const LANES: usize = THREADS_MAX;
    pub const LANE_SETS_MAX: usize = 1;

    macro_rules! maybe_const_fn {
        ($(#[$about:meta])* pub fn $name:ident() -> $ty:ty $body:block) => {
            $(#[$about])*
            pub fn $name() -> $ty $body
        };
    }
    pub(crate) use maybe_const_fn;

    loom::lazy_static! {
        static ref LANE_SETS: [LaneSet; LANE_SETS_MAX] = std::array::from_fn(|_| LaneSet {
            taken: AtomicBool::new(false),
            drift: AtomicU32::new(0),
            openings: AtomicU32::new(0),
            lanes: std::array::from_fn(|_| Lane(AtomicU32::new(0))),
        });
        static ref ROOM: Room = Room(Mutex::new(Vec::new()));
        static ref FENCES: [AtomicU32; THREADS_MAX] = std::array::from_fn(|_| AtomicU32::new(0));
        static ref CROWDED_OUT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(usize::MAX);
        static ref NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    }

    loom::thread_local! {
        static THREAD: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }

    pub fn lane_sets() -> &'static [LaneSet] {
        &*LANE_SETS
    }

    pub fn room(_: usize) -> &'static Room {
        &ROOM
    }

    pub fn lane() -> Option<usize> {
        let own = THREAD.with(|own| *own);
        (own != CROWDED_OUT.load(std::sync::atomic::Ordering::Relaxed)).then_some(own)
    }

    /// From now on the calling thread has no lane.
    pub fn leave_no_lane() {
        let own = THREAD.with(|own| *own);
        CROWDED_OUT.store(own, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn lanes_in_use() -> usize {
        LANES
    }

    pub fn has_read_long(entries: u32) -> bool {
        entries > 1
    }

    pub fn is_time_to_open() -> bool {
        true
    }

    pub fn has_written() {}
}

/// A lock whose readers begin on the lanes.
fn spread() -> PreferReader {
    let lock = PreferReader::new();
    lock.open_now();
    lock
}

/// A lock whose readers begin on the lanes, where the first thread has none.
fn crowded() -> PreferReader {
    base::leave_no_lane();
    spread()
}

/// The fair policy, beginning on the lanes.
fn spread_fair() -> PreferReader<true> {
    let lock = PreferReader::fair();
    lock.open_now();
    lock
}

promises! {
    of_prefer_reader PreferReader::new;
    of_spread_prefer_reader spread;
    of_crowded_prefer_reader crowded;
}

macro_rules! fair_scenarios {
    ($($lock:ident $new:expr;)*) => {
        $(scenarios!(
            $lock, $new,
            readers_and_writers_exclude_each_other,
            the_owner_recurses_and_leaves_with_its_last_exit,
            a_wait_ends_at_its_deadline_and_the_others_go_on,
            a_reader_gives_up_while_a_writer_is_inside,
            a_writer_becomes_a_reader_and_no_other_writes_in_between,
            a_writer_that_becomes_a_reader_lets_readers_in,
            a_writer_that_gives_up_lets_newcomers_in,
            anybody_may_leave,
            of_two_readers_that_leave_at_once_one_wakes_the_writer
        );)*
    };
}

fair_scenarios! {
    of_fair_prefer_reader PreferReader::fair;
    of_spread_fair_prefer_reader spread_fair;
}

/// What is published is there for as long as somebody looks at it. The model checker notices who
/// looks while the owner changes it.
#[test]
fn nothing_is_withdrawn_while_somebody_looks() {
    check(|| {
        let shared = Arc::new((
            Published::default(),
            [
                loom::cell::UnsafeCell::new(0),
                loom::cell::UnsafeCell::new(0),
            ],
        ));
        let looker = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (published, used) = &*shared;
                published.look(|address| used[address - 1].with(|_| ()));
            }
        });
        let (published, used) = &*shared;
        used[0].with_mut(|_| ());
        let outer = published.publish(1);
        used[1].with_mut(|_| ());
        let inner = published.publish(2);
        published.withdraw(inner);
        used[1].with_mut(|_| ());
        published.withdraw(outer);
        used[0].with_mut(|_| ());
        looker.join().unwrap();
    });
}

/// Two writers that don't wait, beside a reader that opens the lanes as often as it can: whoever
/// sums the lanes up may be held up while they are opened, stepped on and closed again.
fn who_only_tries_to_write_excludes_the_others(new: fn() -> PreferReader) {
    check(move || {
        let guarded = Guarded::new(new());
        let reader = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        let write = |owner: u64| {
            let guarded = Arc::clone(&guarded);
            move || {
                if guarded.lock.try_exclusive(Owner::new(owner)) {
                    guarded.change();
                    guarded.lock.unlock_exclusive();
                }
            }
        };
        let writer = thread::spawn(write(1));
        write(2)();
        reader.join().unwrap();
        writer.join().unwrap();
        assert!(guarded.lock.try_exclusive(Owner::new(3)));
    });
}

#[test]
fn who_only_tries_to_write_excludes_a_reader() {
    who_only_tries_to_write_excludes_the_others(PreferReader::new);
}

#[test]
fn who_only_tries_to_write_excludes_a_reader_on_a_lane() {
    who_only_tries_to_write_excludes_the_others(spread);
}

/// A gate beside a lock, as metadata locking has it: who comes enters and then looks at the gate,
/// who goes leaves and then looks at it; who raises the gate has a fence and then looks into the
/// lock.
fn a_gate_beside_the_lock_is_seen_by_who_comes_or_goes(new: fn() -> PreferReader) {
    check(move || {
        let lock = Arc::new(new());
        let (gate, inside) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let reader = thread::spawn({
            let (lock, gate, inside) = (lock.clone(), gate.clone(), inside.clone());
            move || {
                if !lock.try_shared() {
                    return true;
                }
                if gate.load(SeqCst) == 0 {
                    inside.store(1, Relaxed);
                    inside.store(0, Relaxed);
                }
                lock.unlock_shared();
                base::light_fence();
                gate.load(Relaxed) != 0
            }
        });
        gate.store(1, SeqCst);
        base::heavy_fence();
        let me = Owner::new(1);
        let was_empty = lock.try_exclusive(me);
        if was_empty {
            lock.unlock_exclusive();
            assert_eq!(inside.load(Relaxed), 0, "nobody is inside, nor comes in");
        }
        let tells = reader.join().unwrap();
        assert!(was_empty || tells, "who was seen inside tells of leaving");
        assert!(lock.try_exclusive(me));
    });
}

#[test]
fn a_gate_beside_a_lock_is_seen() {
    a_gate_beside_the_lock_is_seen_by_who_comes_or_goes(PreferReader::new);
}

#[test]
fn a_gate_beside_a_spread_lock_is_seen() {
    a_gate_beside_the_lock_is_seen_by_who_comes_or_goes(spread);
}
