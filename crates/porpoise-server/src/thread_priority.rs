//! How much of the processors the threads get that compute apart from the event loops.
//!
//! The system shares a core out by weight: 1,024 for an ordinary thread, a fifth less with each
//! step of its niceness. All threads that compute together weigh no more than [`SHARE`] of what an
//! ordinary thread for each core would. So however many there are, the loops and their clients keep
//! most of each core, and get it as soon as they have something to do; what these leave is the
//! computing threads', all of it.
//!
//! ```text
//!   a statement leaves the loop ─ FIRST_CHECK ─► on a core, or waits for one? ── yes ──► weighed with the others
//!                                                      │ no: it waits for a lock, a client, a disk
//!                                                      └──► looked at again, after twice the time
//! ```
//!
//! A process that isn't privileged can lower a thread's priority and not raise it again. There the
//! thread ends with its statement.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a statement must have run apart before its thread is looked at.
const FIRST_CHECK: Duration = Duration::from_millis(10);
/// The longest time between two looks at a thread.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(640);

/// The weight of all threads that compute, by that of an ordinary thread for each core.
const SHARE: f64 = 0.3;

/// The weight of a thread by that of one whose niceness is one less.
const WEIGHT_STEP: f64 = 0.8;

/// The greatest niceness there is.
const NICENESS_MAX: i32 = 19;

/// The priority of one thread.
pub(crate) struct ThreadPriority {
    id: system::ThreadId,
    /// Its niceness when it was started.
    base: i32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    apart: Option<Apart>,
    /// By how much it is nicer than it was.
    lowered: i32,
}

/// A thread that has no loop.
struct Apart {
    next_check: Instant,
    interval: Duration,
    is_computing: bool,
}

impl ThreadPriority {
    pub fn of_this_thread() -> ThreadPriority {
        let id = system::this_thread();
        ThreadPriority {
            base: system::niceness(id),
            id,
            state: Mutex::default(),
        }
    }

    /// Its statement runs apart from here on.
    pub fn begin_apart(&self) {
        self.state.lock().apart = Some(Apart {
            next_check: Instant::now() + FIRST_CHECK,
            interval: FIRST_CHECK,
            is_computing: false,
        });
    }

    /// Its statement is done: it gets its priority back. False if it can't.
    pub fn end_apart(&self) -> bool {
        let mut state = self.state.lock();
        state.apart = None;
        if state.lowered > 0 && system::set_niceness(self.id, self.base) {
            state.lowered = 0;
        }
        state.lowered == 0
    }

    /// Looks what it does, if it is time. True if it computes.
    fn computes(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let Some(apart) = &mut state.apart else {
            return false;
        };
        if now >= apart.next_check {
            apart.interval = (apart.interval * 2).min(CHECK_INTERVAL_MAX);
            apart.next_check = now + apart.interval;
            apart.is_computing = system::is_runnable(self.id);
        }
        apart.is_computing
    }

    /// Lowers it by so many steps, if it isn't lower, and still computes.
    fn lower(&self, steps: i32) {
        let mut state = self.state.lock();
        let computes = state.apart.as_ref().is_some_and(|apart| apart.is_computing);
        if computes && state.lowered < steps && system::set_niceness(self.id, self.base + steps) {
            state.lowered = steps;
        }
    }
}

/// Weighs the threads that have no loop.
pub(crate) fn weigh(apart: &[&ThreadPriority], now: Instant) {
    let mut computing = apart.to_vec();
    computing.retain(|priority| priority.computes(now));
    if computing.is_empty() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let steps = steps(computing.len(), cores);
    computing.iter().for_each(|priority| priority.lower(steps));
}

/// By how many steps each of so many threads is to be nicer.
fn steps(computing: usize, cores: usize) -> i32 {
    let weight_of_each = SHARE * cores as f64 / computing.max(cores) as f64;
    let steps = (weight_of_each.ln() / WEIGHT_STEP.ln()).ceil();
    (steps as i32).min(NICENESS_MAX)
}

/// What the system is asked.
#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{Pid, getpriority_process, setpriority_process};

    pub type ThreadId = Pid;

    pub fn this_thread() -> ThreadId {
        rustix::thread::gettid()
    }

    pub fn niceness(id: ThreadId) -> i32 {
        getpriority_process(Some(id)).unwrap_or(0)
    }

    pub fn set_niceness(id: ThreadId, niceness: i32) -> bool {
        setpriority_process(Some(id), niceness).is_ok()
    }

    /// It is on a core, or waits for one.
    pub fn is_runnable(id: ThreadId) -> bool {
        let path = format!("/proc/self/task/{}/stat", id.as_raw_nonzero());
        // The name in parentheses may hold anything; the state is what follows.
        std::fs::read_to_string(path).is_ok_and(|stat| {
            let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest);
            after_name.is_some_and(|rest| rest.starts_with('R'))
        })
    }
}

/// Elsewhere threads have no priorities of their own.
#[cfg(not(target_os = "linux"))]
mod system {
    pub type ThreadId = ();

    pub fn this_thread() -> ThreadId {}

    pub fn niceness(_: ThreadId) -> i32 {
        0
    }

    pub fn set_niceness(_: ThreadId, _: i32) -> bool {
        false
    }

    pub fn is_runnable(_: ThreadId) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_threads_compute_the_nicer_each_is() {
        let steps_of = |computing| steps(computing, 2);
        let few = steps_of(1);
        assert!(few > 0 && few < 10, "{few}");
        assert_eq!(steps_of(2), few);
        assert!(steps_of(8) > few);
        assert_eq!(steps_of(200), NICENESS_MAX);
        for computing in 3..60 {
            let weight = WEIGHT_STEP.powi(steps_of(computing)) * computing as f64;
            let is_least = steps_of(computing) == NICENESS_MAX;
            assert!(weight <= 2.0 * SHARE || is_least, "{computing}: {weight}");
        }
    }
}
