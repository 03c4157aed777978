//! A thread that syncs for workers that have better things to do.
//!
//! A worker syncs the commits of its connections itself when they are all it has to do: a client alone is answered without
//! a hand-over to another thread and back. While other connections are in the midst of their transactions, these would
//! stand still for as long as the disk takes; then the sync is this thread's. Not so where clients look for their replies
//! in shared memory and the disk is quick: they need the core that the worker leaves, and handing over takes longer.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct Syncer {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Default)]
struct State {
    /// There is none until somebody asks.
    thread: Option<JoinHandle<()>>,
    is_asked: bool,
    is_syncing: bool,
    /// Somebody asked during a sync, which may have begun too early for what they have.
    was_missed: bool,
    is_ending: bool,
}

/// What the thread does: syncs, and tells workers to look again at what waits for a sync.
pub(crate) struct Duties {
    pub sync: Box<dyn Fn() + Send>,
    pub remind: Box<dyn Fn() + Send>,
}

impl Syncer {
    /// Has the commits that wait synced. If a sync is under way, the workers are reminded after it. False if no thread
    /// could be had.
    pub fn ask(self: &Arc<Syncer>, duties: impl FnOnce() -> Duties) -> bool {
        let mut state = self.state.lock();
        if state.thread.is_none() {
            let (syncer, duties) = (Arc::clone(self), duties());
            let builder = thread::Builder::new().name("syncer".to_string());
            match builder.spawn(move || syncer.run(&duties)) {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => {
                    tracing::warn!("can't start a thread to sync: {error}");
                    return false;
                }
            }
        }
        if state.is_syncing {
            state.was_missed = true;
        } else if !state.is_asked {
            state.is_asked = true;
            drop(state);
            self.asked.notify_one();
        }
        true
    }

    fn run(&self, duties: &Duties) {
        let mut state = self.state.lock();
        while !state.is_ending {
            if !std::mem::take(&mut state.is_asked) {
                self.asked.wait(&mut state);
                continue;
            }
            state.is_syncing = true;
            drop(state);
            (duties.sync)();
            state = self.state.lock();
            state.is_syncing = false;
            if std::mem::take(&mut state.was_missed) {
                drop(state);
                (duties.remind)();
                state = self.state.lock();
            }
        }
    }

    /// Ends the thread, after the sync that it is at.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.is_ending = true;
        let thread = state.thread.take();
        drop(state);
        self.asked.notify_one();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A syncer whose syncs begin and end when the test says so, and tell of it.
    struct Bench {
        syncer: Arc<Syncer>,
        begun: mpsc::Receiver<()>,
        may_end: mpsc::Sender<()>,
        reminded: mpsc::Receiver<()>,
        duties: Mutex<Option<Duties>>,
    }

    impl Bench {
        fn new() -> Bench {
            let (tell_begun, begun) = mpsc::channel();
            let (may_end, ends) = mpsc::channel();
            let (tell_reminded, reminded) = mpsc::channel();
            let duties = Duties {
                sync: Box::new(move || {
                    tell_begun.send(()).unwrap();
                    ends.recv().unwrap();
                }),
                remind: Box::new(move || tell_reminded.send(()).unwrap()),
            };
            Bench {
                syncer: Arc::default(),
                begun,
                may_end,
                reminded,
                duties: Mutex::new(Some(duties)),
            }
        }

        fn ask(&self) {
            let duties = || self.duties.lock().take().expect("it is asked for once");
            assert!(self.syncer.ask(duties));
        }
    }

    #[test]
    fn who_asks_during_a_sync_is_reminded_after_it() {
        let bench = Bench::new();
        bench.ask();
        bench.begun.recv_timeout(PATIENCE).unwrap();
        // What these have may have come too late for the sync that runs.
        bench.ask();
        bench.ask();
        assert!(bench.reminded.try_recv().is_err());
        bench.may_end.send(()).unwrap();
        bench.reminded.recv_timeout(PATIENCE).unwrap();
        // Once for all of them, and whoever is reminded asks again.
        assert!(bench.reminded.try_recv().is_err());
        bench.ask();
        bench.begun.recv_timeout(PATIENCE).unwrap();
        bench.may_end.send(()).unwrap();
        bench.syncer.end();
        assert!(bench.reminded.try_recv().is_err());
    }

    #[test]
    fn several_who_ask_before_a_sync_share_it() {
        let bench = Bench::new();
        bench.ask();
        bench.begun.recv_timeout(PATIENCE).unwrap();
        bench.may_end.send(()).unwrap();
        // The thread waits, or is about to: both are asked before it looks.
        {
            let mut state = bench.syncer.state.lock();
            while state.is_syncing {
                drop(state);
                thread::yield_now();
                state = bench.syncer.state.lock();
            }
            state.is_asked = true;
        }
        bench.ask();
        bench.syncer.asked.notify_one();
        bench.begun.recv_timeout(PATIENCE).unwrap();
        bench.may_end.send(()).unwrap();
        bench.syncer.end();
        assert!(bench.begun.try_recv().is_err());
    }

    #[test]
    fn the_end_waits_for_the_sync_that_runs() {
        let bench = Bench::new();
        bench.ask();
        bench.begun.recv_timeout(PATIENCE).unwrap();
        thread::scope(|scope| {
            let ending = scope.spawn(|| bench.syncer.end());
            thread::sleep(Duration::from_millis(30));
            assert!(!ending.is_finished());
            bench.may_end.send(()).unwrap();
        });
    }
}
