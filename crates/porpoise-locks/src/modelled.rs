//! The locks' files once more, over loom's primitives: every order in which the threads of a small scenario can run is
//! tried, stale reads included. A thread that sleeps forever is reported by the checker, so that each scenario
//! also says "no wake-up is lost".
#![allow(
    clippy::duplicate_mod,
    clippy::absurd_extreme_comparisons,
    clippy::reversed_empty_ranges,
    reason = "the same source is checked over other primitives, with no spinning"
)]
#![allow(dead_code, unused_imports, missing_docs)]

#[path = "event.rs"]
mod event;
#[path = "morrison.rs"]
mod morrison;
#[path = "native.rs"]
mod native;
#[path = "portable.rs"]
mod portable;
#[path = "prefer_reader.rs"]
mod prefer_reader;
#[path = "reader_writer.rs"]
mod reader_writer;
#[path = "spin.rs"]
mod spin;
#[path = "two_mutex.rs"]
mod two_mutex;

use morrison::Morrison;
use native::Native;
use portable::Portable;
use prefer_reader::PreferReader;
use reader_writer::{Owner, ReaderWriter};
use two_mutex::TwoMutex;

use base::Deadline;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use loom::thread;

/// The same names as the crate's `base`, over loom.
mod base {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    pub use loom::sync::{Condvar, Mutex, MutexGuard, RwLock};
    pub use loom::thread::{Thread, current as current_thread, yield_now};

    use loom::sync::Arc;
    use loom::sync::atomic::Ordering;

    use super::prefer_reader::{Lane, LaneSet, Room};

    /// A deadline that passes when some thread says so.
    #[derive(Clone, Debug)]
    pub enum Deadline {
        Never,
        When(Arc<AtomicBool>),
    }

    impl Deadline {
        fn has_passed(&self) -> bool {
            match self {
                Deadline::Never => false,
                // A change reads what is newest.
                Deadline::When(flag) => flag.fetch_or(false, Ordering::SeqCst),
            }
        }
    }

    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("no panic")
    }

    pub fn wait<'a, T>(
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        deadline: &Deadline,
    ) -> (MutexGuard<'a, T>, bool) {
        let Deadline::When(_) = deadline else {
            return (condvar.wait(guard).expect("no panic"), false);
        };
        // It wakes again and again for nothing, until notified or late: the loops around it must bear that.
        drop(guard);
        yield_now();
        (lock(mutex), deadline.has_passed())
    }

    pub fn park(deadline: &Deadline) -> bool {
        match deadline {
            Deadline::Never => loom::thread::park(),
            Deadline::When(_) => yield_now(),
        }
        deadline.has_passed()
    }

    /// A light and a heavy fence make one of two sides see the other; two light ones don't. So each thread has a word that
    /// its light fences change, and a heavy one changes them all.
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

    /// The checker can't tell a spin that ends from one that doesn't: scenarios of whole locks have a mutex instead.
    pub struct SpinLock(Mutex<()>);

    impl SpinLock {
        pub fn new() -> SpinLock {
            SpinLock(Mutex::new(()))
        }

        pub fn hold<R>(&self, f: impl FnOnce() -> R) -> R {
            let _held = lock(&self.0);
            f()
        }
    }

    pub const SPINS_MAX: u32 = 1;
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

/// A lock and what it guards: two figures that a writer changes one after the other.
struct Guarded<L> {
    lock: L,
    one: AtomicU32,
    other: AtomicU32,
}

impl<L: ReaderWriter> Guarded<L> {
    fn new(lock: L) -> Arc<Guarded<L>> {
        Arc::new(Guarded {
            lock,
            one: AtomicU32::new(0),
            other: AtomicU32::new(0),
        })
    }

    fn look(&self) {
        assert_eq!(self.one.load(Relaxed), self.other.load(Relaxed));
    }

    fn change(&self) {
        self.look();
        self.one.store(self.one.load(Relaxed) + 1, Relaxed);
        self.other.store(self.other.load(Relaxed) + 1, Relaxed);
    }

    fn read(&self) {
        self.lock.shared();
        self.look();
        self.lock.unlock_shared();
    }

    fn write(&self, owner: u64) {
        self.lock.exclusive(Owner::new(owner));
        self.change();
        self.lock.unlock_exclusive();
    }
}

/// With `LOOM_MAX_PREEMPTIONS` in the environment, threads are interrupted more often than twice at places where they needn't be.
fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.check(test);
}

fn readers_and_writers_exclude_each_other<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        let reader = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        let writer = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.write(1)
        });
        guarded.write(2);
        reader.join().unwrap();
        writer.join().unwrap();
        guarded.lock.shared();
        assert_eq!(guarded.one.load(Relaxed), 2);
    });
}

fn a_reader_recurses_while_a_writer_waits<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        let writer = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.write(1)
        });
        guarded.lock.shared();
        guarded.read();
        guarded.look();
        guarded.lock.unlock_shared();
        writer.join().unwrap();
    });
}

fn the_owner_recurses_and_leaves_with_its_last_exit<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        let reader = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        guarded.lock.exclusive(Owner::new(1));
        guarded.one.store(1, Relaxed);
        assert!(!guarded.lock.try_exclusive(Owner::new(2)));
        guarded.lock.exclusive(Owner::new(1));
        guarded.lock.unlock_exclusive();
        assert!(!guarded.lock.try_shared());
        guarded.other.store(1, Relaxed);
        guarded.lock.unlock_exclusive();
        reader.join().unwrap();
    });
}

/// One that gives up takes nobody's wake-up with it.
fn a_wait_ends_at_its_deadline_and_the_others_go_on<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        let has_passed = Arc::new(AtomicBool::new(false));
        guarded.lock.exclusive(Owner::new(1));
        let impatient = thread::spawn({
            let guarded = Arc::clone(&guarded);
            let deadline = Deadline::When(Arc::clone(&has_passed));
            move || {
                if guarded.lock.exclusive_until(Owner::new(2), &deadline) {
                    guarded.change();
                    guarded.lock.unlock_exclusive();
                }
            }
        });
        let patient = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.write(3)
        });
        has_passed.store(true, SeqCst);
        guarded.change();
        guarded.lock.unlock_exclusive();
        impatient.join().unwrap();
        patient.join().unwrap();
        assert!(guarded.lock.try_exclusive(Owner::new(4)));
    });
}

fn a_reader_gives_up_while_a_writer_is_inside<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        let has_passed = Arc::new(AtomicBool::new(false));
        guarded.lock.exclusive(Owner::new(1));
        let reader = thread::spawn({
            let guarded = Arc::clone(&guarded);
            let deadline = Deadline::When(Arc::clone(&has_passed));
            move || guarded.lock.shared_until(&deadline)
        });
        has_passed.store(true, SeqCst);
        assert!(!reader.join().unwrap());
        guarded.lock.unlock_exclusive();
        assert!(guarded.lock.try_exclusive(Owner::new(4)));
    });
}

/// Who leaves is another thread than who entered.
fn anybody_may_leave<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        guarded.lock.shared();
        let other = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.lock.unlock_shared()
        });
        guarded.write(1);
        other.join().unwrap();
    });
}

/// Each of them may still see the other inside, but not both.
fn of_two_readers_that_leave_at_once_one_wakes_the_writer<L: ReaderWriter + 'static>(
    new: fn() -> L,
) {
    check(move || {
        let guarded = Guarded::new(new());
        guarded.lock.shared();
        guarded.lock.shared();
        let other = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.lock.unlock_shared()
        });
        let writer = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.write(1)
        });
        guarded.lock.unlock_shared();
        other.join().unwrap();
        writer.join().unwrap();
    });
}

fn a_writer_becomes_a_reader_and_no_other_writes_in_between<L: ReaderWriter + 'static>(
    new: fn() -> L,
) {
    check(move || {
        let guarded = Guarded::new(new());
        guarded.lock.exclusive(Owner::new(1));
        let writer = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.write(2)
        });
        guarded.change();
        guarded.lock.downgrade();
        assert_eq!(guarded.one.load(Relaxed), 1);
        guarded.look();
        guarded.lock.unlock_shared();
        writer.join().unwrap();
    });
}

/// Readers that waited for the writer get in beside the reader that it became.
fn a_writer_that_becomes_a_reader_lets_readers_in<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        guarded.lock.exclusive(Owner::new(1));
        let reader = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        guarded.change();
        guarded.lock.downgrade();
        reader.join().unwrap();
        assert!(!guarded.lock.try_exclusive(Owner::new(1)));
    });
}

/// Who stands behind a writer that gives up isn't forgotten there.
fn a_writer_that_gives_up_lets_newcomers_in<L: ReaderWriter + 'static>(new: fn() -> L) {
    check(move || {
        let guarded = Guarded::new(new());
        let has_passed = Arc::new(AtomicBool::new(false));
        guarded.lock.shared();
        let impatient = thread::spawn({
            let guarded = Arc::clone(&guarded);
            let deadline = Deadline::When(Arc::clone(&has_passed));
            move || guarded.lock.exclusive_until(Owner::new(2), &deadline)
        });
        let newcomer = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        has_passed.store(true, SeqCst);
        assert!(!impatient.join().unwrap());
        newcomer.join().unwrap();
        guarded.lock.unlock_shared();
        assert!(guarded.lock.try_exclusive(Owner::new(4)));
    });
}

macro_rules! scenarios {
    ($lock:ident, $new:expr, $($scenario:ident),*) => {
        mod $lock {
            use super::*;
            $(
                #[test]
                fn $scenario() {
                    super::$scenario($new);
                }
            )*
        }
    };
    ($($lock:ident $new:expr;)*) => {
        $(scenarios!(
            $lock, $new,
            readers_and_writers_exclude_each_other,
            a_reader_recurses_while_a_writer_waits,
            the_owner_recurses_and_leaves_with_its_last_exit,
            a_wait_ends_at_its_deadline_and_the_others_go_on,
            a_reader_gives_up_while_a_writer_is_inside,
            a_writer_becomes_a_reader_and_no_other_writes_in_between,
            a_writer_that_becomes_a_reader_lets_readers_in,
            anybody_may_leave,
            of_two_readers_that_leave_at_once_one_wakes_the_writer
        );)*
    };
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

scenarios! {
    of_portable Portable::new;
    of_native Native::new;
    of_two_mutex TwoMutex::new;
    of_morrison Morrison::new;
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

/// Two writers that don't wait, beside a reader that opens the lanes as often as it can: whoever sums the lanes up may be
/// held up while they are opened, stepped on and closed again.
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

/// A gate beside a lock, as metadata locking has it: who comes enters and then looks at the gate, who goes leaves and then
/// looks at it; who raises the gate has a fence and then looks into the lock.
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

#[test]
fn scoped_readers_and_writers_of_the_platforms_lock_meet_those_that_hold_it() {
    check(|| {
        let guarded = Guarded::new(Native::new());
        let scoped = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.lock.write(Owner::new(1), || guarded.change())
        });
        let held = thread::spawn({
            let guarded = Arc::clone(&guarded);
            move || guarded.read()
        });
        guarded.write(2);
        held.join().unwrap();
        scoped.join().unwrap();
    });
}

#[test]
fn two_spinners_exclude_each_other() {
    check(|| {
        let spin = Arc::new(spin::SpinLock::new());
        let figure = Arc::new(AtomicU32::new(0));
        let count = {
            let (spin, figure) = (Arc::clone(&spin), Arc::clone(&figure));
            move || spin.hold(|| figure.store(figure.load(Relaxed) + 1, Relaxed))
        };
        let other = thread::spawn(count.clone());
        count();
        other.join().unwrap();
        assert_eq!(figure.load(Relaxed), 2);
    });
}
