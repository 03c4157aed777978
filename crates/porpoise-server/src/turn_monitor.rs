//! Takes event loops away from threads whose statements take long.
//!
//! ```text
//!   every tick, for each worker:   its thread has the loop, or is at another statement than before ──► nothing
//!                                  it is at the same statement for TURN_MAX ──► another thread takes the loop
//! ```
//!
//! A worker's thread counts what it serves, on its own cache line, and this thread looks at the
//! count: so a statement needs no look at a clock. While all workers sleep, the monitor does, too;
//! the first that wakes wakes it.
//!
//! What a statement does doesn't matter: it may compute, write a long result, copy a table, or wait
//! where nothing tells of it, as for a latch of the storage or for the disk. Nor does a worker's
//! other clients' time depend on how many commands one of them has sent at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};
use std::{io, mem};

use parking_lot::Mutex;

use crate::compute_turns::ComputeTurns;
use crate::thread_pool::ThreadPool;
use crate::worker::{Phase, Worker};

/// The time from one look at the workers to the next.
const TICK: Duration = Duration::from_millis(2);

/// The same while no worker that is awake has more than one connection: nobody waits for another
/// one's statement, but for a client that logs in. Each look interrupts a thread that spins.
const LONE_TICK: Duration = Duration::from_millis(20);

/// For how long a thread is found at the same statement before another one takes the loop.
const TURN_MAX: Duration = Duration::from_micros(1500);

/// The same where statements compute already, on all cores: more of them are likely.
const TURN_IN_CROWD_MAX: Duration = Duration::from_micros(500);

/// How long all workers must have slept before the monitor does.
const IDLE_TICKS_MAX: u32 = 50;

/// A tick that comes so much too late was kept waiting for a core.
const LATE_MIN: Duration = Duration::from_millis(1);

/// So many late ticks of the last [`LATE_TICKS_AVERAGED`] or so tell of rivals. Beside two programs
/// that compute 4 to 30 were late while 32 clients of sysbench kept two cores busy, without them
/// 0 to 2.
const LATE_TICKS_MIN: f64 = 4.0;
const LATE_TICKS_AVERAGED: f64 = 256.0;

/// The monitor, as other threads see it.
#[derive(Default)]
pub(crate) struct TurnMonitor {
    /// It sleeps until a worker wakes it.
    is_asleep: AtomicBool,
    is_ending: AtomicBool,
    is_crowded: AtomicBool,
    has_rivals: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    handle: std::sync::OnceLock<Thread>,
}

impl TurnMonitor {
    /// Begins to look at these workers.
    pub fn start(&self, workers: Vec<Arc<Worker>>, pool: Arc<ThreadPool>) -> io::Result<()> {
        let builder = thread::Builder::new().name("turn_monitor".to_string());
        let thread = builder.spawn(move || Watch::new(workers).run(&pool))?;
        // It is started once.
        let _ = self.handle.set(thread.thread().clone());
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// More statements compute than there are cores: a thread that yields its core gets it back
    /// late, where one that sleeps gets it as soon as it wakes.
    pub fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Threads keep the cores for so long, those of other programs most likely, that a thread of
    /// this server waits for a core when it wakes.
    pub fn has_rivals(&self) -> bool {
        self.has_rivals.load(Ordering::Relaxed)
    }

    /// A worker has slept, and is awake again.
    pub fn worker_awoke(&self) {
        // The worker says that it is awake, then looks whether the monitor sleeps; the monitor does
        // the opposite. With sequentially consistent order one of the two sees what the other did.
        if self.is_asleep.load(Ordering::SeqCst)
            && self.is_asleep.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.handle.get()
        {
            thread.unpark();
        }
    }

    /// Ends the monitor.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        thread.thread().unpark();
        if thread.join().is_err() {
            tracing::error!("the thread that looks after turns has panicked");
        }
    }
}

/// A worker, and what the last looks at it told.
struct Watched {
    worker: Arc<Worker>,
    phase: Phase,
    /// When a look found this phase for the first time, and how long its thread had run then.
    since: Instant,
    cpu_time_before: Option<Duration>,
}

impl Watched {
    /// Looks at the worker, and has another thread take its loop over if it was found in the same
    /// phase for so long.
    fn look(&mut self, now: Instant, turn_max: Duration) {
        let phase = self.worker.phase();
        if !phase.is_released() {
            self.phase = phase;
            return;
        }
        if mem::replace(&mut self.phase, phase) != phase {
            self.since = now;
            self.cpu_time_before = self.cpu_time();
            return;
        }
        let passed = now.saturating_duration_since(self.since);
        if passed < turn_max {
            return;
        }
        // A thread that gets no core, or waits for something, doesn't compute.
        let before = self.cpu_time_before;
        let ran = before.and_then(|before| self.cpu_time()?.checked_sub(before));
        let is_computing = ran.is_some_and(|ran| ran >= passed / 4);
        if let Some(session) = self.worker.pass_on(phase, is_computing) {
            // The next statement with its plan leaves the loop before it begins.
            porpoise_engine::expect_long(&session);
        }
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.worker.runner()?.priority.cpu_time()
    }
}

/// Whether threads keep the cores for long, by how late this thread gets one when it wakes. Clients
/// do what they have to in microseconds; programs that compute have whole time slices.
#[derive(Default)]
struct Rivals {
    /// The number of late ticks lately, each of which counts for less as others follow.
    late_ticks: f64,
    are_there: bool,
}

impl Rivals {
    /// This thread was on a core so much later than it woke. Returns whether there are rivals.
    fn record(&mut self, late: Duration) -> bool {
        self.late_ticks *= 1.0 - 1.0 / LATE_TICKS_AVERAGED;
        if late >= LATE_MIN {
            self.late_ticks += 1.0;
        }
        let least = if self.are_there {
            LATE_TICKS_MIN / 3.0
        } else {
            LATE_TICKS_MIN
        };
        self.are_there = self.late_ticks >= least;
        self.are_there
    }
}

struct Watch {
    workers: Vec<Watched>,
    idle_ticks: u32,
    turns: ComputeTurns,
    /// Statements take turns: somebody has to tell when the next ones begin.
    has_turns: bool,
    rivals: Rivals,
}

impl Watch {
    fn new(workers: Vec<Arc<Worker>>) -> Watch {
        let watched = workers.into_iter().map(|worker| Watched {
            phase: worker.phase(),
            worker,
            since: Instant::now(),
            cpu_time_before: None,
        });
        Watch {
            workers: watched.collect(),
            idle_ticks: 0,
            turns: ComputeTurns::new(Instant::now()),
            has_turns: false,
            rivals: Rivals::default(),
        }
    }

    fn run(mut self, pool: &Arc<ThreadPool>) {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let mut computing = 0;
        while !pool.turn_monitor.is_ending.load(Ordering::SeqCst) {
            self.sleep(pool);
            let turn_max = if computing >= cores {
                TURN_IN_CROWD_MAX
            } else {
                TURN_MAX
            };
            let now = Instant::now();
            for watched in &mut self.workers {
                watched.look(now, turn_max);
            }
            let mut apart = pool.apart();
            apart.retain(|thread| thread.priority.computes(now));
            apart.iter().for_each(|thread| pool.leave_disk(thread));
            pool.help_stalled(now);
            let statements: Vec<_> = apart.iter().map(|thread| &thread.priority).collect();
            let has_rivals = pool.turn_monitor.has_rivals();
            self.has_turns = self.turns.share(&statements, cores, has_rivals, now);
            computing = statements.len();
            let is_crowded = computing > cores;
            if pool.turn_monitor.is_crowded() != is_crowded {
                let told = &pool.turn_monitor.is_crowded;
                told.store(is_crowded, Ordering::Relaxed);
            }
        }
        // Nobody would tell them any more.
        for thread in pool.apart() {
            thread.priority.set_paused(false);
        }
    }

    /// Sleeps for a tick, or until a worker wakes, if all have slept for long.
    fn sleep(&mut self, pool: &ThreadPool) {
        let monitor = &pool.turn_monitor;
        let must_look = self.has_turns || pool.disk.has_queue();
        self.idle_ticks = if self.all_asleep() && !must_look {
            self.idle_ticks + 1
        } else {
            0
        };
        if self.idle_ticks < IDLE_TICKS_MAX {
            let (began, tick) = (Instant::now(), self.tick());
            thread::park_timeout(tick);
            let has_rivals = self.rivals.record(began.elapsed().saturating_sub(tick));
            if monitor.has_rivals() != has_rivals {
                monitor.has_rivals.store(has_rivals, Ordering::Relaxed);
            }
            return;
        }
        self.idle_ticks = 0;
        monitor.is_asleep.store(true, Ordering::SeqCst);
        while self.all_asleep()
            && monitor.is_asleep.load(Ordering::SeqCst)
            && !monitor.is_ending.load(Ordering::SeqCst)
        {
            thread::park();
        }
        monitor.is_asleep.store(false, Ordering::SeqCst);
    }

    fn tick(&self) -> Duration {
        let is_shared = |watched: &Watched| {
            let inbox = &watched.worker.inbox;
            inbox.connections.load(Ordering::Relaxed) > 1 && !inbox.is_asleep()
        };
        match self.workers.iter().any(is_shared) {
            true => TICK,
            false => LONE_TICK,
        }
    }

    fn all_asleep(&self) -> bool {
        let mut workers = self.workers.iter();
        workers.all(|watched| watched.worker.inbox.is_asleep())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_late_ticks_tell_of_rivals_until_none_are_late_for_long() {
        let mut rivals = Rivals::default();
        let soon = LATE_MIN / 20;
        assert!((0..1000).all(|_| !rivals.record(soon)));
        // One in 200 is late on any machine.
        assert!((0..2000).all(|tick| !rivals.record(if tick % 200 == 0 {
            LATE_MIN
        } else {
            soon
        })));
        assert!((0..5).any(|_| rivals.record(LATE_MIN)));
        assert!((0..100).all(|_| rivals.record(soon)));
        assert!((0..1000).any(|_| !rivals.record(soon)));
    }
}
