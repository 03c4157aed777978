//! The store's two background threads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Shared;
use crate::checkpoint::{ROUNDS_MAX, Shrinking};
use crate::{Error, Result, checkpoint, recovery};

const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a failed checkpoint it is tried again.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(2);
/// The pause doubles with each checkpoint in a row for which what a transaction has spilled can't be
/// read, or can't be written to the tree as a whole, up to so long: each reads or writes all of it up
/// to there.
const CHECKPOINT_RETRY_MAX: Duration = Duration::from_secs(300);

/// Wakes threads that sleep until they are notified, or for a limited time.
#[derive(Default)]
pub(super) struct Signal {
    is_notified: Mutex<bool>,
    notified: Condvar,
}

impl Signal {
    pub fn notify(&self) {
        *self.is_notified.lock() = true;
        self.notified.notify_all();
    }

    /// Waits until it is notified, or was since the last wait.
    pub fn wait(&self, at_most: Duration) {
        let mut is_notified = self.is_notified.lock();
        if !*is_notified {
            self.notified.wait_for(&mut is_notified, at_most);
        }
        *is_notified = false;
    }
}

/// Starts the threads: `porpoise-sync` and `porpoise-ckpt`.
pub(super) fn start(shared: &Arc<Shared>) -> Result<Vec<JoinHandle<()>>> {
    Ok(vec![
        spawn("porpoise-sync", shared, sync_each_second)?,
        spawn("porpoise-ckpt", shared, checkpoint_when_due)?,
    ])
}

fn spawn(name: &'static str, shared: &Arc<Shared>, work: fn(&Shared)) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name(name.to_string())
        .spawn(move || work(&shared))
        .map_err(Error::io("start a thread for", PathBuf::from(name)))
}

fn sync_each_second(shared: &Shared) {
    while !shared.is_stopping() {
        shared.sync_signal.wait(SYNC_INTERVAL);
        shared.group.sync_in_background(shared);
        if let Err(error) = shared.group.mark_synced() {
            tracing::warn!(%error, "cannot note how far the log is on disk");
        }
        if let Err(error) = preallocate_segment(shared) {
            tracing::warn!(%error, "cannot prepare the next log segment");
        }
        if let Err(error) = recovery::run(shared) {
            tracing::debug!(%error, "the disk still fails");
        }
    }
}

/// Makes the file for the next log segment, if it is time to.
pub(super) fn preallocate_segment(shared: &Shared) -> Result<()> {
    let tail = shared.group.written();
    let wanted = shared.group.with_files(|files| {
        files.fill_descriptors();
        files.plan_preallocation(tail)
    });
    let Some(plan) = wanted.transpose()?.flatten() else {
        return Ok(());
    };
    let made = plan.carry_out();
    let (spare, outcome) = match made {
        Ok(file) => (Some(file), Ok(())),
        Err(error) => (None, Err(error)),
    };
    shared
        .group
        .with_files(|files| files.finish_preallocation(spare));
    outcome
}

fn checkpoint_when_due(shared: &Shared) {
    let mut last_commits = 0;
    let mut quiet_since = Instant::now();
    let (mut last_loads, mut loaded_at) = (0, None);
    let mut shrinker = Shrinker::default();
    let mut retry = CHECKPOINT_RETRY;
    while !shared.is_stopping() {
        let loads = shared.loads.load(Ordering::Relaxed);
        if loads != last_loads {
            (last_loads, loaded_at) = (loads, Some(Instant::now()));
        }
        // Both would wait for each other's transactions, and the load fills what is free.
        shrinker.is_paused = loaded_at.is_some_and(|at: Instant| at.elapsed() < LOAD_PAUSE);
        if !shrinker.is_at_work() {
            shared.checkpoint_signal.wait(SYNC_INTERVAL);
        }
        let commits = shared.group.commits.load(Ordering::Relaxed);
        if commits != last_commits {
            (last_commits, quiet_since) = (commits, Instant::now());
        }
        let is_quiet = quiet_since.elapsed() >= shared.limits.idle;
        if !shared.is_over_limit.load(Ordering::Acquire) && !is_quiet {
            shrinker.go_on(shared, is_quiet);
            continue;
        }
        if shared.is_stopping() {
            return;
        }
        let outcome = checkpoint::run_in_background(shared);
        shared
            .is_checkpoint_failing
            .store(outcome.is_err(), Ordering::Release);
        retry = match &outcome {
            Err(error) if is_long(shared, error) => (retry * 2).min(CHECKPOINT_RETRY_MAX),
            _ => CHECKPOINT_RETRY,
        };
        match outcome {
            Ok(_) => {
                shared.is_over_limit.store(false, Ordering::Release);
                shared.request_checkpoint_if_due();
                shrinker.go_on(shared, is_quiet);
            }
            Err(Error::Closed | Error::ReadOnly { .. }) => {
                shared.checkpoint_signal.wait(CHECKPOINT_RETRY);
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint failed and will be tried again");
                shared.checkpoint_signal.wait(retry);
            }
        }
    }
}

/// Whether a checkpoint that has failed did work that the next has to do again.
fn is_long(shared: &Shared, error: &Error) -> bool {
    let is_of_spilled = matches!(error, Error::Damaged(place)
        if shared.tree_path.as_ref() != Some(&place.path));
    is_of_spilled || shared.is_partly_merged.load(Ordering::Acquire)
}

/// How long after the tree's file was shortened, or could not be, it is looked at again.
const PAUSE: Duration = Duration::from_secs(30);
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(600);

/// For so long after a part of a bulk load the next one is expected.
const LOAD_PAUSE: Duration = Duration::from_secs(1);

/// Shortens the tree's file when there is nothing else to do, or when it is much too long.
#[derive(Default)]
struct Shrinker {
    under_way: Option<Shrinking>,
    next_look: Option<Instant>,
    rounds: u32,
    /// It does nothing now.
    is_paused: bool,
}

impl Shrinker {
    fn is_at_work(&self) -> bool {
        self.under_way.is_some() && !self.is_paused
    }

    /// Looks now and then whether there is something to do, and does a part of it.
    fn go_on(&mut self, shared: &Shared, is_quiet: bool) {
        const LOOKS: Duration = Duration::from_secs(5);
        if self.is_paused {
            return;
        }
        if let Err(error) = self.work(shared, is_quiet) {
            tracing::warn!(%error, "the tree's file can't be shortened now");
            self.under_way = None;
            self.next_look = Some(Instant::now() + PAUSE_AFTER_ERROR);
        } else if self.under_way.is_none() {
            self.next_look.get_or_insert_with(|| Instant::now() + LOOKS);
        }
    }

    fn work(&mut self, shared: &Shared, is_quiet: bool) -> Result<()> {
        if let Some(shrinking) = &mut self.under_way {
            if shrinking.step(shared)? {
                return Ok(());
            }
            self.rounds += 1;
            self.under_way = match self.rounds < ROUNDS_MAX {
                true => Shrinking::plan(shared)?,
                false => None,
            };
            if self.under_way.is_none() {
                // What is still too long then can't be moved.
                self.next_look = Some(Instant::now() + PAUSE);
            }
            return Ok(());
        }
        let now = Instant::now();
        if self.next_look.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.next_look = None;
        if checkpoint::is_file_too_long(shared, is_quiet)? {
            self.rounds = 0;
            self.under_way = Shrinking::plan(shared)?;
        }
        Ok(())
    }
}
