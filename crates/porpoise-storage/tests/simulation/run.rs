//! One run: a store, a disk and a model, driven by one seed.
//!
//! Everything happens on one thread. What would be other threads' work happens inside the disk's
//! operations: while the store makes a checkpoint, preallocates a log segment or syncs, the disk calls
//! back before each operation, and the run does something else with the same store, opens a copy of
//! the disk as a power cut would leave it at this very moment, or cuts the power.
//!
//! ```text
//! step ─► store.checkpoint() ─► disk.write ─┬─► another commit          (a step within a step)
//!                                           ├─► a copy of the disk after a cut ─► open, compare
//!                                           └─► switch off ─► … ─► cut, open, compare, go on
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use fastrand::Rng;
use porpoise_storage::{
    Background, Error, Flush, Options, Savepoint, Snapshot, Store, Transaction,
};

use crate::compare::{check_after_cut, compare};
use crate::disk::{Faults, Operation, PowerCut, SimDisk};
use crate::model::{Change, Contents, Model};
use crate::plan::{Counts, Plan};
use crate::prepared::PreparedWork;

const TRACE_LEN: usize = 80;
pub const FOLDER: &str = "/data/store";

/// The call of the store that a disk operation happens in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCall {
    None,
    Open,
    Commit,
    Checkpoint,
    Shrink,
    Preallocate,
    /// A sync that no commit waited for when it began. What was buffered is written first, under the
    /// files' lock.
    IdleSync,
}

pub struct OpenTransaction {
    pub txn: Transaction,
    /// If it has spilled, too.
    pub may_be_prepared: bool,
    pub view: Option<Arc<Contents>>,
    pub change: Change,
    pub savepoints: Vec<(Savepoint, Change)>,
    pub spaces_in_use: BTreeSet<u32>,
    /// Commits on their way that it has read from.
    pub rests_on: BTreeSet<u64>,
}

pub struct RunState {
    pub random: Rng,
    pub plan: Plan,
    pub model: Model,
    pub open: Vec<OpenTransaction>,
    pub prepared: Vec<PreparedWork>,
    /// The newest commit when the store was opened.
    pub opened_ts: u64,
    pub snapshots: Vec<(Snapshot, Arc<Contents>)>,
    /// Commits whose outcome isn't known.
    pub pending: BTreeSet<u64>,
    /// Commits that have failed: nothing that is acknowledged may rest on them.
    pub lost: BTreeSet<u64>,
    pub spaces: Vec<u32>,
    /// Spaces that unfinished transactions have used: the number of these transactions.
    pub spaces_in_use: BTreeMap<u32, u32>,
    pub call: StoreCall,
    /// Disk operations since the store was called.
    pub operations_in_call: u32,
    /// The store is damaged so that it can't start any more: the run is over.
    pub is_refused: bool,
    pub depth: u32,
    pub counts: Counts,
    pub trace: VecDeque<(&'static str, u64, u64)>,
    pub faults_before: u64,
    pub view_cache: Option<(u64, Arc<Contents>)>,
}

/// A run under way.
pub struct Run {
    pub disk: SimDisk,
    pub store: Mutex<Option<Store>>,
    pub state: Mutex<RunState>,
    /// The panic of a check in a disk operation, to be resumed when the store has returned.
    pub failure: Mutex<Option<Box<dyn std::any::Any + Send>>>,
    pub me: Weak<Run>,
}

pub fn options(disk: &SimDisk) -> Options {
    let mut options = Options::path(FOLDER);
    options.disk = Arc::new(disk.clone());
    options.background = Background::Manual;
    options.log_segment_bytes = 8 << 10;
    options.cache_bytes = 96 << 10;
    // One that writes 2 KiB, as they are counted, commits as a memtable of its own.
    options.checkpoint_version_bytes = 1 << 10;
    // With so much in memory it goes on in a file.
    options.spill_bytes = 3000;
    options
}

pub fn key(number: u16) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.extend(std::iter::repeat_n(b'k', usize::from(number) % 7));
    key
}

impl Run {
    /// Runs a plan to its end. A failure prints the seed and the last steps, and panics.
    pub fn carry_out(plan: Plan) -> Counts {
        let disk = SimDisk::new(plan.seed);
        disk.place_folder(std::path::Path::new("/data"));
        disk.set_ignored_syncs(plan.ignored_syncs);
        Run::carry_out_on(plan, disk)
    }

    pub fn carry_out_on(plan: Plan, disk: SimDisk) -> Counts {
        let run = Arc::new_cyclic(|me| Run {
            disk,
            store: Mutex::new(None),
            state: Mutex::new(RunState {
                random: Rng::with_seed(plan.seed ^ 0x9e37_79b9_7f4a_7c15),
                plan,
                model: Model::default(),
                open: Vec::new(),
                prepared: Vec::new(),
                opened_ts: 0,
                snapshots: Vec::new(),
                pending: BTreeSet::new(),
                lost: BTreeSet::new(),
                spaces: Vec::new(),
                spaces_in_use: BTreeMap::new(),
                call: StoreCall::None,
                operations_in_call: 0,
                is_refused: false,
                depth: 0,
                counts: Counts::default(),
                trace: VecDeque::new(),
                faults_before: 0,
                view_cache: None,
            }),
            failure: Mutex::new(None),
            me: me.clone(),
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.steps()));
        let counts = run.state().counts;
        if let Err(cause) = outcome {
            if !plan.is_silent {
                run.print_failure(plan);
            }
            run.disk.set_hook(None);
            std::panic::resume_unwind(cause);
        }
        counts
    }

    pub(crate) fn print_failure(&self, plan: Plan) {
        let state = self.state();
        eprintln!("\n{plan:?}");
        eprintln!("the last steps:");
        for (what, one, two) in &state.trace {
            eprintln!("  {what} {one} {two}");
        }
        eprintln!(
            "failed in step {} of seed {}",
            state.counts.steps, plan.seed
        );
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, RunState> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    pub(crate) fn note(&self, what: &'static str, one: u64, two: u64) {
        let mut state = self.state();
        if state.trace.len() == TRACE_LEN {
            state.trace.pop_front();
        }
        state.trace.push_back((what, one, two));
    }

    pub(crate) fn store(&self) -> Option<Store> {
        self.store.lock().unwrap().clone()
    }

    /// Errors are in order while the disk makes them.
    pub(crate) fn expect_disturbed(&self, what: &str, error: &Error) {
        let state = self.state();
        let is_disturbed =
            self.disk.injected() > state.faults_before || self.disk.is_off() || state.plan.is_small;
        drop(state);
        assert!(is_disturbed, "{what}: {error}");
    }

    pub(crate) fn steps(&self) {
        let plan = self.state().plan;
        let me = self.me.clone();
        self.disk
            .set_hook(Some(Box::new(move |operation: &Operation| {
                if let Some(run) = me.upgrade() {
                    run.watch_disk_operation(operation);
                }
            })));
        self.open();
        while self.state().counts.steps < plan.steps && !self.state().is_refused {
            self.step();
            if let Some(cause) = self.failure.lock().unwrap().take() {
                std::panic::resume_unwind(cause);
            }
            if self.disk.is_off() {
                self.crash();
            }
        }
        self.stop_faults();
        self.disk.set_hook(None);
        self.drop_store();
        let mut state = self.state();
        state.counts.disk_operations = self.disk.operations();
        state.counts.faults = self.disk.injected();
        state.counts.trace_hash = self.disk.trace_hash();
    }

    /// What goes wrong here must not unwind through redb, which would abort.
    pub(crate) fn watch_disk_operation(&self, operation: &Operation) {
        if self.failure.lock().unwrap().is_some() {
            return;
        }
        let act = std::panic::AssertUnwindSafe(|| self.on_disk_operation(operation));
        if let Err(cause) = std::panic::catch_unwind(act) {
            *self.failure.lock().unwrap() = Some(cause);
            self.note("went wrong in disk operation", operation.number, 0);
            self.disk.switch_off();
        }
    }

    pub(crate) fn on_disk_operation(&self, operation: &Operation) {
        let mut state = self.state();
        let plan = state.plan;
        state.operations_in_call += 1;
        if plan.crashes > 0 && state.random.u32(..100_000) < plan.crashes {
            drop(state);
            self.note("switched off", operation.number, 0);
            self.disk.switch_off();
            return;
        }
        let is_certain = state.model.is_certain();
        if plan.crash_checks > 0 && is_certain && state.random.u32(..1_000) < plan.crash_checks {
            let mut random = state.random.fork();
            let (cut, at_least) = match random.u8(..8) {
                0 => (None, state.model.written),
                _ => (random.choice(PowerCut::ALL), state.model.durable),
            };
            let found = match cut {
                None => self.disk.after_kill(),
                Some(cut) => self.disk.after_cut(cut, random.u64(..)),
            };
            let mut counts = Counts::default();
            check_after_cut(&found, &state.model, at_least, &mut random, &mut counts);
            state.counts.add(counts);
        }
        let may_commit = state.depth == 0
            && match state.call {
                StoreCall::Shrink => operation.file.starts_with("tree."),
                StoreCall::Checkpoint => {
                    operation.file.starts_with("tree.")
                        || operation.file.starts_with("log-")
                            && matches!(operation.what, "rename" | "remove")
                }
                // It is opened under the files' lock.
                StoreCall::Preallocate => {
                    operation.file.starts_with("log.spare.unfinished") && operation.what != "open"
                }
                StoreCall::IdleSync => operation.what == "sync" && state.operations_in_call == 1,
                StoreCall::None | StoreCall::Open | StoreCall::Commit => false,
            };
        if may_commit && state.random.u8(..8) == 0 {
            state.depth += 1;
            let call = state.call;
            let rounds = state.random.u8(1..12);
            drop(state);
            let policy = self.store().map(|store| store.flush_policy().clone());
            let usual = policy.as_ref().map(|policy| policy.get());
            if let (Some(policy), StoreCall::IdleSync) = (&policy, call) {
                // A commit that wants a sync waits for this one's outcome.
                policy.set(Flush::WriteAtCommit);
            }
            for _ in 0..rounds {
                self.step_during(call);
            }
            if let (Some(policy), Some(usual)) = (policy, usual) {
                policy.set(usual);
            }
            let mut state = self.state();
            state.depth -= 1;
            state.call = call;
        }
    }

    pub(crate) fn open(&self) {
        for tries in 1.. {
            self.state().call = StoreCall::Open;
            let mut options = options(&self.disk);
            if self.state().plan.seed % 2 == 1 {
                // One of some five writes does.
                options.checkpoint_version_bytes = 600;
            }
            match self.state().plan.seed % 4 {
                // One that has a memtable of its own goes on in a file.
                0 | 1 => options.spill_bytes = 700,
                2 => options.spill_bytes = usize::MAX,
                _ => {}
            }
            let opened = Store::open(&options);
            self.state().call = StoreCall::None;
            match opened {
                Ok(store) => {
                    let ts = store.snapshot().ts().0;
                    self.note("opened", ts, self.disk.operations());
                    *self.store.lock().unwrap() = Some(store);
                    self.check_start(ts);
                    return;
                }
                Err(error) => {
                    if let Some(cause) = self.failure.lock().unwrap().take() {
                        std::panic::resume_unwind(cause);
                    }
                    self.expect_disturbed("open", &error);
                    self.note("open failed", 0, 0);
                    let is_damaging = self.state().plan.is_damaging;
                    if is_damaging && !self.disk.is_off() && tries > 2 {
                        self.state().is_refused = true;
                        return;
                    }
                    if self.disk.is_off() {
                        self.power_on();
                    } else {
                        self.disk.set_faults(Faults::default());
                        self.disk.set_capacity(u64::MAX);
                    }
                }
            }
        }
    }

    pub(crate) fn check_start(&self, ts: u64) {
        let store = self.store().expect("just opened");
        let mut state = self.state();
        state.opened_ts = ts;
        let promised = state.model.durable.max(state.model.written);
        assert!(
            ts >= promised,
            "commit {promised} was acknowledged, the newest is {ts}"
        );
        state.model.restart_at(ts);
        state.view_cache = None;
        let contents = state.model.contents_at(ts);
        state.spaces = contents.spaces.iter().copied().collect();
        drop(state);
        let may_fail = self.is_disturbed() || self.disk.faults() != Faults::default();
        if !compare(&store, &contents, may_fail) {
            self.note("not all can be read", 0, 0);
        }
        if !self.take_up_prepared(&store, &contents, may_fail) {
            // What can't be read can't be told to commit.
            self.note("what is prepared can't be read", 0, 0);
            self.state().is_refused = true;
        }
        let mut state = self.state();
        let faults = self.disk.faults() != Faults::default();
        // Damage stays where it is when the disk does no more of it.
        if !faults && !state.plan.is_damaging {
            state.faults_before = self.disk.injected();
        }
    }

    pub(crate) fn is_disturbed(&self) -> bool {
        self.disk.is_off() || self.disk.injected() > self.state().faults_before
    }

    pub(crate) fn drop_store(&self) {
        let mut state = self.state();
        let (open, prepared, snapshots) = (
            std::mem::take(&mut state.open),
            std::mem::take(&mut state.prepared),
            std::mem::take(&mut state.snapshots),
        );
        state.spaces_in_use.clear();
        drop(state);
        drop((open, prepared, snapshots));
        let store = self.store.lock().unwrap().take();
        drop(store);
        self.state().pending.clear();
    }

    pub(crate) fn power_on(&self) {
        let mut state = self.state();
        state.counts.crashes += 1;
        let is_kill = state.random.u8(..3) == 0;
        let cut = state.random.choice(PowerCut::ALL).expect("a cut");
        // A dead process has left all that it wrote to the system, a cut what was synced.
        if !is_kill {
            state.model.written = state.model.durable;
        }
        let durable = state.model.durable;
        drop(state);
        match is_kill {
            true => self.disk.revive(),
            false => self.disk.cut(cut),
        }
        self.note(if is_kill { "killed" } else { "cut" }, cut as u64, durable);
    }

    pub(crate) fn crash(&self) {
        self.drop_store();
        self.power_on();
        self.open();
    }

    pub(crate) fn restart(&self) {
        let closes = self.state().random.bool();
        self.note("restart", u64::from(closes), 0);
        {
            let mut state = self.state();
            let open = std::mem::take(&mut state.open);
            let prepared = std::mem::take(&mut state.prepared);
            state.spaces_in_use.clear();
            drop(state);
            drop((open, prepared));
        }
        if closes && let Some(store) = self.store() {
            let visible = store.snapshot().ts().0;
            if let Err(error) = store.close() {
                self.expect_disturbed("close", &error);
            } else {
                let mut state = self.state();
                state.model.durable = state.model.durable.max(visible);
            }
        }
        self.drop_store();
        if self.disk.is_off() {
            self.power_on();
        }
        self.open();
    }

    pub(crate) fn change_policy(&self) {
        let Some(store) = self.store() else { return };
        let choice = self.state().random.u8(..6);
        store.flush_policy().set(match choice {
            0 => Flush::EachSecond,
            1 => Flush::WriteAtCommit,
            _ => Flush::AtCommit,
        });
        self.note("policy", u64::from(choice), 0);
    }

    pub(crate) fn toggle_faults(&self) {
        let mut state = self.state();
        let plan = state.plan;
        let has_faults = state.random.bool();
        let room = state.random.u64(..4) << 14;
        drop(state);
        self.disk.set_faults(match has_faults {
            true => plan.faults,
            false => Faults::default(),
        });
        let capacity = match plan.is_small && has_faults {
            true => self.disk.used() + room,
            false => u64::MAX,
        };
        self.disk.set_capacity(capacity);
        self.note("weather", u64::from(has_faults), room);
    }

    /// With a disk that does as it is told again, the store must come back by itself.
    pub(crate) fn stop_faults(&self) {
        self.disk.set_faults(Faults::default());
        self.disk.set_capacity(u64::MAX);
        if self.disk.is_off() {
            return;
        }
        let damaging = self.state().plan.is_damaging;
        self.note("calm", 0, 0);
        self.recover();
        let Some(store) = self.store() else { return };
        if self.disk.is_off() || damaging {
            return;
        }
        assert!(
            !store.stats().is_read_only,
            "nothing is wrong any more, yet it is read-only"
        );
        self.checkpoint();
        if self.disk.is_off() {
            return;
        }
        self.sync_pending();
        if self.disk.is_off() {
            return;
        }
        // Views from before the tree was opened again can't be read any more.
        let snapshots = std::mem::take(&mut self.state().snapshots);
        drop(snapshots);
        while !self.state().open.is_empty() {
            self.roll_back();
        }
        self.sync_pending();
        if self.disk.is_off() {
            return;
        }
        let state = self.state();
        assert!(
            state.pending.is_empty(),
            "commits hang: {:?}",
            state.pending
        );
        let contents = state.model.contents_at(store.snapshot().ts().0);
        drop(state);
        self.state().faults_before = self.disk.injected();
        compare(&store, &contents, false);
    }
}
