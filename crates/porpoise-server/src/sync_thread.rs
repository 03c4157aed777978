//! A thread that syncs the log for workers that have other work.
//!
//! A worker syncs the commits of its connections itself when it has nothing else to do: a single
//! client gets its reply without a hand-over to another thread and back. While other connections
//! are in the middle of transactions, these would wait for as long as the disk takes; then this
//! thread syncs. Not so where clients spin for their replies in shared memory and the disk is
//! quick: they need the core that the worker leaves, and handing over takes longer.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct SyncThread {
    state: Mutex<State>,
    requested: Condvar,
}

#[derive(Default)]
struct State {
    /// Started by the first request.
    thread: Option<JoinHandle<()>>,
    is_requested: bool,
    is_syncing: bool,
    /// A request came during a sync, which may have begun too early for its commits.
    requested_during_sync: bool,
    is_ending: bool,
}

/// What the thread does.
pub(crate) struct SyncTasks {
    /// Syncs the commits that wait.
    pub sync: Box<dyn Fn() + Send>,
    /// Tells the workers to look again whether commits wait for a sync.
    pub notify: Box<dyn Fn() + Send>,
}

impl SyncThread {
    /// Has the commits synced that wait. If a sync is under way, the workers are notified after it.
    /// False if no thread could be started. `tasks` is called by the first request.
    pub fn request(self: &Arc<SyncThread>, tasks: impl FnOnce() -> SyncTasks) -> bool {
        let mut state = self.state.lock();
        if state.thread.is_none() {
            let (sync_thread, tasks) = (Arc::clone(self), tasks());
            let builder = thread::Builder::new().name("sync_thread".to_string());
            match builder.spawn(move || sync_thread.run(&tasks)) {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => {
                    tracing::warn!("can't start a thread to sync: {error}");
                    return false;
                }
            }
        }
        if state.is_syncing {
            state.requested_during_sync = true;
        } else if !state.is_requested {
            state.is_requested = true;
            drop(state);
            self.requested.notify_one();
        }
        true
    }

    fn run(&self, tasks: &SyncTasks) {
        let mut state = self.state.lock();
        while !state.is_ending {
            if !std::mem::take(&mut state.is_requested) {
                self.requested.wait(&mut state);
                continue;
            }
            state.is_syncing = true;
            drop(state);
            (tasks.sync)();
            state = self.state.lock();
            state.is_syncing = false;
            if std::mem::take(&mut state.requested_during_sync) {
                drop(state);
                (tasks.notify)();
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
        self.requested.notify_one();
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

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// A sync_thread whose syncs begin and end when the test says so, and report it.
    struct Harness {
        sync_thread: Arc<SyncThread>,
        begun: mpsc::Receiver<()>,
        may_end: mpsc::Sender<()>,
        notified: mpsc::Receiver<()>,
        tasks: Mutex<Option<SyncTasks>>,
    }

    impl Harness {
        fn new() -> Harness {
            let (tell_begun, begun) = mpsc::channel();
            let (may_end, ends) = mpsc::channel();
            let (tell_notified, notified) = mpsc::channel();
            let tasks = SyncTasks {
                sync: Box::new(move || {
                    tell_begun.send(()).unwrap();
                    ends.recv().unwrap();
                }),
                notify: Box::new(move || tell_notified.send(()).unwrap()),
            };
            Harness {
                sync_thread: Arc::default(),
                begun,
                may_end,
                notified,
                tasks: Mutex::new(Some(tasks)),
            }
        }

        fn request(&self) {
            let tasks = || {
                self.tasks
                    .lock()
                    .take()
                    .expect("the tasks are asked for once")
            };
            assert!(self.sync_thread.request(tasks));
        }
    }

    #[test]
    fn a_request_during_a_sync_is_notified_after_it() {
        let harness = Harness::new();
        harness.request();
        harness.begun.recv_timeout(TIMEOUT).unwrap();
        // These commits may have come too late for the sync that runs.
        harness.request();
        harness.request();
        assert!(harness.notified.try_recv().is_err());
        harness.may_end.send(()).unwrap();
        harness.notified.recv_timeout(TIMEOUT).unwrap();
        // Once for all requests; a worker that is notified requests again.
        assert!(harness.notified.try_recv().is_err());
        harness.request();
        harness.begun.recv_timeout(TIMEOUT).unwrap();
        harness.may_end.send(()).unwrap();
        harness.sync_thread.end();
        assert!(harness.notified.try_recv().is_err());
    }

    #[test]
    fn requests_before_a_sync_share_it() {
        let harness = Harness::new();
        harness.request();
        harness.begun.recv_timeout(TIMEOUT).unwrap();
        harness.may_end.send(()).unwrap();
        // The thread waits, or is about to: both requests come before it looks.
        {
            let mut state = harness.sync_thread.state.lock();
            while state.is_syncing {
                drop(state);
                thread::yield_now();
                state = harness.sync_thread.state.lock();
            }
            state.is_requested = true;
        }
        harness.request();
        harness.sync_thread.requested.notify_one();
        harness.begun.recv_timeout(TIMEOUT).unwrap();
        harness.may_end.send(()).unwrap();
        harness.sync_thread.end();
        assert!(harness.begun.try_recv().is_err());
    }

    #[test]
    fn ending_waits_for_the_sync_that_runs() {
        let harness = Harness::new();
        harness.request();
        harness.begun.recv_timeout(TIMEOUT).unwrap();
        thread::scope(|scope| {
            let ending = scope.spawn(|| harness.sync_thread.end());
            thread::sleep(Duration::from_millis(30));
            assert!(!ending.is_finished());
            harness.may_end.send(()).unwrap();
        });
    }
}
