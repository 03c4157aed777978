//! Threads of the process that help where a core has nothing else to do.
//!
//! ```text
//! statement   divides its work into units    offer, offer, offer
//!                                               │      │
//! threads                                    help()  help()     each takes a unit, if one is left
//! ```
//!
//! They are of the class that runs when a core is idle (`SCHED_IDLE`), so that they take nothing from
//! other statements or other programs. One may therefore stop in the middle of its work for as long as
//! others compute: nobody may wait for it for more than a moment, nor hold anything that it needs.
//! There is one for each core but one. They end when there has been nothing to do for some seconds.
//!
//! What they help with they hold while they do, and no longer: what was offered and is not wanted any
//! more is gone when its owner drops it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// A thread that has had nothing to do for so long ends.
const IDLE_MAX: Duration = Duration::from_secs(3);

/// Address space alone, as far as it isn't needed.
const STACK_BYTES: usize = 8 << 20;

/// So many offers wait at most. Where no core is idle, those of statements that have ended lie here.
const OFFERS_MAX: usize = 1024;

/// Who offers work waits no longer for those who take it; then nobody is told of it.
const LOCKED_MAX: Duration = Duration::from_micros(200);

/// Work that others can take a part of.
pub trait Help: Send + Sync + 'static {
    /// Does one unit, if one is left. Called on another thread, at most once for each offer.
    fn help(&self);
}

/// How many threads there may be: none on one core, or where the system doesn't let them wait for idle
/// ones.
pub fn threads_max() -> usize {
    pool().threads_max
}

/// Has the thread that is free first help with a unit.
pub fn offer<W: Help>(work: &Arc<W>) {
    let offered: Weak<W> = Arc::downgrade(work);
    pool().add(offered);
}

struct Pool {
    threads_max: usize,
    work: Mutex<Work>,
    has_come: Condvar,
}

#[derive(Default)]
struct Work {
    /// What was offered, once for each unit.
    offers: VecDeque<Weak<dyn Help>>,
    /// The system doesn't let threads wait for idle cores.
    is_refused: bool,
    threads: usize,
    idle: usize,
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool {
        threads_max: match cfg!(target_os = "linux") {
            true => std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1),
            false => 0,
        },
        work: Mutex::default(),
        has_come: Condvar::new(),
    })
}

impl Pool {
    fn add(&'static self, offered: Weak<dyn Help>) {
        // A thread that has the lock may have been stopped there.
        let Some(mut work) = self.work.try_lock_for(LOCKED_MAX) else {
            return;
        };
        if work.is_refused || work.offers.len() >= OFFERS_MAX {
            return;
        }
        work.offers.push_back(offered);
        if work.idle > 0 {
            drop(work);
            self.has_come.notify_one();
        } else if work.threads < self.threads_max {
            work.threads += 1;
            drop(work);
            let thread = std::thread::Builder::new()
                .name("porpoise-ahead".to_string())
                .stack_size(STACK_BYTES);
            // Who offers the work does what nobody else does.
            if thread.spawn(move || self.run()).is_err() {
                let mut work = self.work.lock();
                work.threads -= 1;
                if work.threads == 0 {
                    work.offers.clear();
                }
            }
        }
    }

    fn run(&self) {
        let may_run = join_idle_class();
        let mut work = self.work.lock();
        if may_run {
            self.help(&mut work);
        } else {
            work.is_refused = true;
            work.offers.clear();
        }
        work.threads -= 1;
    }

    /// Helps until there has been nothing to do for some time.
    fn help(&self, work: &mut MutexGuard<'_, Work>) {
        loop {
            if let Some(offered) = work.offers.pop_front() {
                MutexGuard::unlocked(work, || {
                    if let Some(work) = offered.upgrade() {
                        // Who has offered it comes to the same place, and panics where it is noticed.
                        let _ = catch_unwind(AssertUnwindSafe(|| work.help()));
                    }
                });
                continue;
            }
            work.idle += 1;
            let waited = self.has_come.wait_for(work, IDLE_MAX);
            work.idle -= 1;
            if waited.timed_out() && work.offers.is_empty() {
                return;
            }
        }
    }
}

/// Lets this thread run only where a core has nothing else to do. False where the system doesn't.
#[cfg(target_os = "linux")]
fn join_idle_class() -> bool {
    let attributes = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is read during the call alone; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const attributes) == 0 }
}

/// Lets this thread run only where a core has nothing else to do. False where the system doesn't.
#[cfg(not(target_os = "linux"))]
fn join_idle_class() -> bool {
    false
}
