//! How much of the processors the threads get that compute apart from the event loops.
//!
//! ```text
//!   a statement has left the loop ──► has its thread run for COMPUTES_MIN since? ── yes ──► weighed with the others
//!                                           │ no: it waits for a lock, a client, a disk, or for a core
//!                                           └──► looked at again, after twice the time
//! ```
//!
//! The system shares a core out by weight: 1,024 for an ordinary thread, a fifth less with each
//! step of its niceness. A few threads that compute together weigh [`SHARE`] of what an ordinary
//! thread for each core would. So the loops and their clients keep most of each core; what these
//! leave is the computing threads', all of it.
//!
//! Of many that compute, one for each core weighs that much, in turns
//! ([`crate::compute_turns`]); others are of the class that the system runs when it has nothing
//! else to do, and take what is left of a core. They would be no heavier together if they were
//! nicer; but a thread of that class leaves its core to an ordinary one at once, while others keep
//! it to the end of their time slice. In that time a loop would wait, and with many such threads it
//! would always find one on its core. All of that class at once would be wrong, too: while other
//! programs keep every core busy, that class gets next to nothing, and their statements, with the
//! rows that they have locked, would stand still.
//!
//! A nicer thread's time slice is short ([`SLICE`]), where the system lets a thread choose it: so a
//! loop that wakes doesn't wait for the end of a longer one.
//!
//! A thread whose statement is to end, because of KILL or as its time is up, gets its priority back.
//!
//! A process that isn't privileged can lower a thread's priority and not raise it again. There
//! nobody takes turns in weight: all that run weigh the same. The thread ends with its statement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use porpoise_storage::Interrupt;

/// A thread that has run for so long since it lost its loop computes.
const COMPUTES_MIN: Duration = Duration::from_millis(1);

/// The time from leaving the loop to the first look at a thread.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
/// The longest time between two looks at a thread.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(640);

/// The weight of all threads that compute, by that of an ordinary thread for each core.
const SHARE: f64 = 0.3;

/// The weight of a thread by that of one whose niceness is one less.
const WEIGHT_STEP: f64 = 0.8;

/// How long a nicer thread keeps its core before another one that is due gets it. Since Linux 6.12
/// a thread of the ordinary class may choose.
const SLICE: Duration = Duration::from_micros(500);

/// The same of a loop's thread where others keep the cores ([`ThreadPriority::set_prompt`]): the
/// shortest that the system allows. With 500 µs, 16 clients beside two computing programs came to
/// no more transfers than with the system's 3 ms, with 100 µs to half as many again.
const PROMPT_SLICE: Duration = Duration::from_micros(100);

/// How low a thread's priority is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As when it was started.
    #[default]
    Ordinary,
    /// By so many steps nicer.
    Nicer(i32),
    /// Runs when a core has nothing else to do.
    Idle,
}

/// The priority of one thread.
pub(crate) struct ThreadPriority {
    id: system::ThreadId,
    /// Its niceness when it was started.
    base: i32,
    /// With the ordinary priority it has a [`PROMPT_SLICE`].
    is_prompt: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    apart: Option<Apart>,
    level: Level,
}

/// A thread that has no loop.
struct Apart {
    /// Its statement's, once it has logged in.
    interrupt: Option<Arc<Interrupt>>,
    /// The number of the last turn in which it computed.
    last_turn: u64,
    next_check: Instant,
    interval: Duration,
    /// How long it had run when it lost its loop.
    cpu_time_before: Duration,
    /// It has computed, whatever it does now.
    has_computed: bool,
    /// It has computed, and was on a core, or waited for one, at the last check.
    is_computing: bool,
}

impl Apart {
    fn is_ending(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|one| one.is_set())
    }

    fn is_paused(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|one| one.is_paused())
    }
}

impl ThreadPriority {
    /// Of this thread.
    pub fn of_this_thread() -> ThreadPriority {
        let id = system::this_thread();
        let base = system::niceness(id);
        ThreadPriority {
            base,
            id,
            is_prompt: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// How long it has run on a core so far, where the system tells.
    pub fn cpu_time(&self) -> Option<Duration> {
        system::cpu_time(self.id)
    }

    /// Its statement, of the session with this interrupt, runs apart from here on; `is_computing`: it
    /// was seen to. If another did before, that one is done.
    pub fn begin_apart(&self, interrupt: Option<Arc<Interrupt>>, is_computing: bool) {
        let mut state = self.state.lock();
        self.end_statement(&mut state);
        state.apart = Some(Apart {
            interrupt,
            last_turn: 0,
            next_check: Instant::now() + FIRST_INTERVAL,
            interval: FIRST_INTERVAL,
            cpu_time_before: self.cpu_time().unwrap_or_default(),
            has_computed: is_computing,
            is_computing,
        });
    }

    /// Its statement runs apart, and has computed.
    pub fn is_computing(&self) -> bool {
        let state = self.state.lock();
        state.apart.as_ref().is_some_and(|apart| apart.has_computed)
    }

    /// Its statement is done: it gets its priority back. False if it can't.
    pub fn end_apart(&self) -> bool {
        let mut state = self.state.lock();
        self.end_statement(&mut state);
        state.level == Level::Ordinary
    }

    fn end_statement(&self, state: &mut State) {
        if let Some(Some(interrupt)) = state.apart.take().map(|apart| apart.interrupt) {
            interrupt.resume();
        }
        self.raise(state);
    }

    fn raise(&self, state: &mut State) {
        if state.level != Level::Ordinary && self.set(Level::Ordinary) {
            state.level = Level::Ordinary;
        }
    }

    /// Whether it is to be on a core soon after it wakes, where other threads keep the cores for
    /// whole time slices: for that its own are the shortest. Its share of the cores stays.
    #[inline]
    pub fn set_prompt(&self, is_prompt: bool) {
        if self.is_prompt.load(Ordering::Relaxed) != is_prompt {
            self.change_prompt(is_prompt);
        }
    }

    #[cold]
    fn change_prompt(&self, is_prompt: bool) {
        let state = self.state.lock();
        self.is_prompt.store(is_prompt, Ordering::Relaxed);
        if state.level == Level::Ordinary {
            system::set_slice(self.id, is_prompt.then_some(PROMPT_SLICE));
        }
    }

    fn set(&self, level: Level) -> bool {
        let prompt = || {
            self.is_prompt
                .load(Ordering::Relaxed)
                .then_some(PROMPT_SLICE)
        };
        match level {
            Level::Ordinary => system::set_ordinary(self.id, self.base, prompt()),
            Level::Nicer(steps) => system::set_ordinary(self.id, self.base + steps, Some(SLICE)),
            Level::Idle => system::set_idle_class(self.id),
        }
    }

    /// Looks what it does, if it is time. True if it computes.
    pub fn computes(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let Some(apart) = &mut state.apart else {
            return false;
        };
        if apart.is_ending() {
            // It frees what it has, and others may wait for that.
            self.raise(&mut state);
            return false;
        }
        if now >= apart.next_check && !apart.is_paused() {
            apart.interval = (apart.interval * 2).min(CHECK_INTERVAL_MAX);
            apart.next_check = now + apart.interval;
            let cpu_time = self.cpu_time().unwrap_or_default();
            let ran = cpu_time.saturating_sub(apart.cpu_time_before);
            apart.has_computed |= ran >= COMPUTES_MIN;
            apart.is_computing = apart.has_computed && system::is_runnable(self.id);
        }
        apart.is_computing
    }

    // ── Turns ────────────────────────────────────────────────────────────────────────────────

    /// Whether its statement is to pause, or pauses.
    pub fn is_paused(&self) -> bool {
        self.state
            .lock()
            .apart
            .as_ref()
            .is_some_and(Apart::is_paused)
    }

    /// The number of the last turn in which it computed; 0 if there was none.
    pub fn last_turn(&self) -> u64 {
        let state = self.state.lock();
        state.apart.as_ref().map_or(0, |apart| apart.last_turn)
    }

    /// Its statement has computed in this turn.
    pub fn record_turn(&self, number: u64) {
        if let Some(apart) = &mut self.state.lock().apart {
            apart.last_turn = number;
        }
    }

    /// Has its statement pause, if it still computes, or go on.
    pub fn set_paused(&self, is_paused: bool) {
        let state = self.state.lock();
        let Some(apart) = &state.apart else {
            return;
        };
        match &apart.interrupt {
            // Another statement may have begun: nobody would have that one go on.
            Some(interrupt) if is_paused && apart.is_computing => interrupt.pause(),
            Some(interrupt) if !is_paused => interrupt.resume(),
            _ => {}
        }
    }

    /// Sets how low its priority is, if it still computes.
    pub fn set_level(&self, level: Level) {
        let mut state = self.state.lock();
        let computes = state.apart.as_ref().is_some_and(|apart| apart.is_computing);
        if computes && state.level != level && self.set(level) {
            state.level = level;
        }
    }

    /// How low its priority is.
    pub fn level(&self) -> Level {
        self.state.lock().level
    }
}

/// The level of each of so many threads that weigh the same, and [`SHARE`] of an ordinary thread for
/// each core together; of fewer than there are cores each weighs that share of one core.
pub(crate) fn level_of_each(threads: usize, cores: usize) -> Level {
    let weight_of_each = SHARE * cores as f64 / threads.max(cores) as f64;
    Level::Nicer((weight_of_each.ln() / WEIGHT_STEP.ln()).ceil() as i32)
}

/// The level of those of very many threads that have no share of the cores: what is left is theirs.
/// Who can't be raised again, or would get nothing as other programs keep the cores busy, isn't lowered so far,
/// and has its part of this share.
pub(crate) fn level_without_share(share: Level, has_rivals: bool) -> Level {
    match has_level_without_share(has_rivals) {
        true => Level::Idle,
        false => share,
    }
}

/// Whether some have no share of the cores.
pub(crate) fn has_level_without_share(has_rivals: bool) -> bool {
    may_raise() && !has_rivals
}

/// Whether this process may raise a thread's priority that it has lowered.
pub(crate) fn may_raise() -> bool {
    static MAY_RAISE: OnceLock<bool> = OnceLock::new();
    *MAY_RAISE.get_or_init(probe_raising)
}

fn probe_raising() -> bool {
    // A thread that can't be raised again ends at once.
    let probe = || {
        let thread = ThreadPriority::of_this_thread();
        thread.set(Level::Idle) && thread.set(level_of_each(1, 1)) && thread.set(Level::Ordinary)
    };
    let thread = std::thread::Builder::new().name("priority_probe".to_string());
    thread
        .spawn(probe)
        .is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// The processor time that this thread has spent.
pub(crate) fn thread_cpu_time() -> Duration {
    // Not by rustix, which calls into a page of the system's that valgrind doesn't map.
    let mut spent = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the system writes the time, which is this function's own. It has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut spent) };
    Duration::new(
        spent.tv_sec.try_into().unwrap_or(0),
        spent.tv_nsec.try_into().unwrap_or(0),
    )
}

/// What the system is asked.
#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use rustix::process::{Pid, getpriority_process};

    pub type ThreadId = Pid;

    pub fn this_thread() -> ThreadId {
        rustix::thread::gettid()
    }

    pub fn niceness(id: ThreadId) -> i32 {
        getpriority_process(Some(id)).unwrap_or(0)
    }

    /// Puts a thread into the ordinary class, with this niceness, and this time slice where the
    /// system knows a thread's own (it ignores it elsewhere); its usual one for `None`.
    pub fn set_ordinary(id: ThreadId, niceness: i32, slice: Option<Duration>) -> bool {
        set_attributes(id, libc::SCHED_OTHER, niceness, slice)
    }

    /// Gives a thread of the ordinary class this time slice, its usual one for `None`. Its class and
    /// niceness, which its user may have changed, stay.
    pub fn set_slice(id: ThreadId, slice: Option<Duration>) -> bool {
        // SAFETY: asks for a class, and touches no memory.
        let class = unsafe { libc::sched_getscheduler(id.as_raw_nonzero().get()) };
        class == libc::SCHED_OTHER && set_attributes(id, class, niceness(id), slice)
    }

    /// Puts it into the class of threads that run when a core has nothing else to do.
    pub fn set_idle_class(id: ThreadId) -> bool {
        set_attributes(id, libc::SCHED_IDLE, 0, None)
    }

    fn set_attributes(id: ThreadId, class: i32, niceness: i32, slice: Option<Duration>) -> bool {
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: class as u32,
            sched_flags: 0,
            sched_nice: niceness,
            sched_priority: 0,
            sched_runtime: slice.map_or(0, |slice| slice.as_nanos() as u64),
            sched_deadline: 0,
            sched_period: 0,
        };
        let id = id.as_raw_nonzero().get();
        // SAFETY: the attributes are read during the call alone, and are as large as they say. The
        // thread is this one's own process', and lives; a priority touches no memory of it in any
        // case.
        unsafe { libc::syscall(libc::SYS_sched_setattr, id, &raw const attributes, 0) == 0 }
    }

    /// How long a thread has run. Its clock's number is made of the thread's as
    /// `pthread_getcpuclockid` makes it.
    pub fn cpu_time(id: ThreadId) -> Option<Duration> {
        /// The clock is a thread's, and counts the time that it runs.
        const THREAD_RUNS: libc::clockid_t = 4 | 2;
        let clock = (!id.as_raw_nonzero().get() << 3) | THREAD_RUNS;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the system writes the time, which is this function's own.
        let told = unsafe { libc::clock_gettime(clock, &mut time) };
        let seconds = u64::try_from(time.tv_sec).ok().filter(|_| told == 0)?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
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
    use std::time::Duration;

    pub type ThreadId = ();

    pub fn this_thread() -> ThreadId {}

    pub fn niceness(_: ThreadId) -> i32 {
        0
    }

    pub fn set_ordinary(_: ThreadId, _: i32, _: Option<Duration>) -> bool {
        false
    }

    pub fn set_idle_class(_: ThreadId) -> bool {
        false
    }

    pub fn set_slice(_: ThreadId, _: Option<Duration>) -> bool {
        false
    }

    pub fn is_runnable(_: ThreadId) -> bool {
        false
    }

    pub fn cpu_time(_: ThreadId) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_threads_weigh_the_same_the_less_each_weighs() {
        let Level::Nicer(steps) = level_of_each(1, 2) else {
            panic!("{:?}", level_of_each(1, 2));
        };
        assert!((1..10).contains(&steps), "{steps}");
        assert_eq!(level_of_each(2, 2), Level::Nicer(steps));
        assert!(level_of_each(4, 2) > level_of_each(2, 2));
        for threads in 2..=16 {
            let Level::Nicer(steps) = level_of_each(threads, 2) else {
                panic!("{threads}");
            };
            let weight = WEIGHT_STEP.powi(steps) * threads as f64;
            assert!(weight <= 2.0 * SHARE, "{threads}: {weight}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_prompt_thread_keeps_its_class_and_its_niceness() {
        let outcome = std::thread::spawn(|| {
            let thread = ThreadPriority::of_this_thread();
            let nicer = thread.base + 3;
            // Somebody has made it nicer since.
            assert!(system::set_ordinary(thread.id, nicer, None));
            thread.set_prompt(true);
            let after_prompt = system::niceness(thread.id);
            assert!(system::set_idle_class(thread.id));
            let changed = system::set_slice(thread.id, None);
            (after_prompt == nicer, changed)
        });
        assert_eq!(outcome.join().unwrap(), (true, false));
    }

    #[test]
    fn a_statement_begins_without_the_pause_that_was_for_the_one_before() {
        let interrupt: Arc<Interrupt> = Arc::default();
        let thread = ThreadPriority::of_this_thread();
        thread.begin_apart(Some(interrupt.clone()), true);
        thread.set_paused(true);
        assert!(thread.is_paused());
        thread.begin_apart(Some(interrupt.clone()), false);
        assert!(!thread.is_paused() && !interrupt.is_paused());
        // Who found that the one before computes comes late.
        thread.set_paused(true);
        assert!(!interrupt.is_paused());
        assert!(thread.end_apart());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_computes_is_lowered_and_one_that_waits_is_not() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        let stop = Arc::new(AtomicBool::new(false));
        let begin = |computes: bool| {
            let (tell, told) = std::sync::mpsc::channel();
            let (wait, waits) = std::sync::mpsc::channel::<()>();
            let stop = stop.clone();
            let thread = std::thread::spawn(move || {
                let priority = Arc::new(ThreadPriority::of_this_thread());
                priority.begin_apart(None, false);
                tell.send(priority).unwrap();
                while computes && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                // It fails when the other end is dropped.
                let _ = waits.recv();
            });
            (told.recv().unwrap(), wait, thread)
        };
        let (computing, computing_end, first) = begin(true);
        let (waiting, waiting_end, second) = begin(false);
        while computing.cpu_time() < Some(COMPUTES_MIN * 2) {
            std::thread::yield_now();
        }
        let later = Instant::now() + CHECK_INTERVAL_MAX;
        assert!(computing.computes(later) && !waiting.computes(later));
        assert!(computing.is_computing() && !waiting.is_computing());
        for one in [&computing, &waiting] {
            one.set_level(level_of_each(1, 2));
        }
        assert_eq!(waiting.level(), Level::Ordinary);
        assert_eq!(computing.level(), level_of_each(1, 2));
        assert!(system::niceness(computing.id) > computing.base);
        computing.set_level(Level::Idle);
        assert_eq!(computing.level(), Level::Idle);
        // Whether it can be raised again is up to the process' privileges.
        let is_raised = computing.end_apart();
        assert_eq!(is_raised, may_raise());
        assert_eq!(system::niceness(computing.id) == computing.base, is_raised);
        assert!(waiting.end_apart());
        stop.store(true, Ordering::Relaxed);
        drop((computing_end, waiting_end));
        first.join().unwrap();
        second.join().unwrap();
    }
}
