//! What every lock promises, as scenarios of two or three threads: the model checker tries every
//! order in which they can run. The parent module has the lock's files, over `loom`'s primitives,
//! as `base` and `reader_writer`.

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use loom::thread;

use super::base::Deadline;
use super::reader_writer::{Owner, ReaderWriter};

/// A lock and what it guards: two figures that a writer changes one after the other.
pub struct Guarded<L> {
    pub lock: L,
    one: AtomicU32,
    other: AtomicU32,
}

impl<L: ReaderWriter> Guarded<L> {
    pub fn new(lock: L) -> Arc<Guarded<L>> {
        Arc::new(Guarded {
            lock,
            one: AtomicU32::new(0),
            other: AtomicU32::new(0),
        })
    }

    pub fn look(&self) {
        assert_eq!(self.one.load(Relaxed), self.other.load(Relaxed));
    }

    pub fn change(&self) {
        self.look();
        self.one.store(self.one.load(Relaxed) + 1, Relaxed);
        self.other.store(self.other.load(Relaxed) + 1, Relaxed);
    }

    pub fn read(&self) {
        self.lock.shared();
        self.look();
        self.lock.unlock_shared();
    }

    pub fn write(&self, owner: u64) {
        self.lock.exclusive(Owner::new(owner));
        self.change();
        self.lock.unlock_exclusive();
    }
}

/// With `LOOM_MAX_PREEMPTIONS` in the environment, threads are interrupted more often than twice at
/// places where they needn't be.
pub fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.check(test);
}

pub fn readers_and_writers_exclude_each_other<L: ReaderWriter + 'static>(new: fn() -> L) {
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

pub fn a_reader_recurses_while_a_writer_waits<L: ReaderWriter + 'static>(new: fn() -> L) {
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

pub fn the_owner_recurses_and_leaves_with_its_last_exit<L: ReaderWriter + 'static>(new: fn() -> L) {
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
pub fn a_wait_ends_at_its_deadline_and_the_others_go_on<L: ReaderWriter + 'static>(new: fn() -> L) {
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

pub fn a_reader_gives_up_while_a_writer_is_inside<L: ReaderWriter + 'static>(new: fn() -> L) {
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
pub fn anybody_may_leave<L: ReaderWriter + 'static>(new: fn() -> L) {
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
pub fn of_two_readers_that_leave_at_once_one_wakes_the_writer<L: ReaderWriter + 'static>(
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

pub fn a_writer_becomes_a_reader_and_no_other_writes_in_between<L: ReaderWriter + 'static>(
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
pub fn a_writer_that_becomes_a_reader_lets_readers_in<L: ReaderWriter + 'static>(new: fn() -> L) {
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
pub fn a_writer_that_gives_up_lets_newcomers_in<L: ReaderWriter + 'static>(new: fn() -> L) {
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

/// A module of tests: each scenario named, of the locks that an expression makes.
macro_rules! scenarios {
    ($lock:ident, $new:expr, $($scenario:ident),* $(,)?) => {
        mod $lock {
            use super::*;
            $(
                #[test]
                fn $scenario() {
                    super::scenarios::$scenario($new);
                }
            )*
        }
    };
}
pub(super) use scenarios;

/// What a lock that prefers readers promises.
macro_rules! promises {
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
            of_two_readers_that_leave_at_once_one_wakes_the_writer,
        );)*
    };
}
pub(super) use promises;
