//! One run: a store, a disk and a model, driven by one seed.
//!
//! Everything happens on one thread. What would be other threads' work happens inside the disk's
//! operations: while the store merges, makes a spare segment or syncs, the disk calls back before
//! each operation, and the run does something else with the same store, looks at what a power cut
//! would leave at this very moment, or pulls the plug.
//!
//! ```text
//! step ─► store.checkpoint() ─► disk.write ─┬─► another commit          (a step within a step)
//!                                           ├─► a copy of the disk after a cut ─► open, compare
//!                                           └─► switch off ─► … ─► cut, open, compare, go on
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use fastrand::Rng;
use porpoise_storage::{
    Background, Direction, Error, Flush, LockMode, Options, Savepoint, Snapshot, SpaceId, Store,
    Transaction, Wait, Work,
};

use crate::disk::{Cut, Faults, Lies, Operation, SimDisk};
use crate::model::{Change, Contents, Model, Place, Value};

const KEYS: u16 = 40;
const SPACES_MAX: usize = 5;
const TRANSACTIONS_MAX: usize = 4;
const TRACE_LEN: usize = 80;
pub const FOLDER: &str = "/data/store";

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub steps: u64,
    /// Chances in 1,000 for each disk operation to look at what a cut would leave.
    pub looks: u32,
    /// Chances in 100,000 for each disk operation to be the last before a crash.
    pub crashes: u32,
    pub faults: Faults,
    /// The disk gets full now and then.
    pub is_small: bool,
    pub lies: Lies,
    /// Damage of what was written is to be noticed: errors are in order, wrong rows are not.
    pub is_damaging: bool,
    /// Failing is what is expected; nothing is printed.
    pub is_quiet: bool,
}

impl Plan {
    pub fn new(seed: u64, steps: u64) -> Plan {
        Plan {
            seed,
            steps,
            looks: 0,
            crashes: 0,
            faults: Faults::default(),
            is_small: false,
            lies: Lies::default(),
            is_damaging: false,
            is_quiet: false,
        }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub steps: u64,
    pub disk_operations: u64,
    /// Disks after a cut that were opened and compared, those within recovery included.
    pub looks: u64,
    pub crashes: u64,
    pub commits: u64,
    pub failed_commits: u64,
    pub checkpoints: u64,
    pub faults: u64,
    pub recoveries: u64,
    pub trace_hash: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.steps += other.steps;
        self.disk_operations += other.disk_operations;
        self.looks += other.looks;
        self.crashes += other.crashes;
        self.commits += other.commits;
        self.failed_commits += other.failed_commits;
        self.checkpoints += other.checkpoints;
        self.faults += other.faults;
        self.recoveries += other.recoveries;
    }
}

/// What the store is in the middle of, seen from a disk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Nothing,
    Open,
    Commit,
    Fold,
    Preallocated,
    /// A sync for nobody in particular; no commit waited when it began. What was buffered is
    /// written first, under the files' lock.
    IdleSync,
}

struct OpenTransaction {
    txn: Transaction,
    view: Option<Arc<Contents>>,
    change: Change,
    savepoints: Vec<(Savepoint, Change)>,
    touched: BTreeSet<u32>,
}

struct World {
    random: Rng,
    plan: Plan,
    model: Model,
    open: Vec<OpenTransaction>,
    snapshots: Vec<(Snapshot, Arc<Contents>)>,
    /// Commits whose outcome isn't known.
    pending: BTreeSet<u64>,
    spaces: Vec<u32>,
    /// Spaces that a transaction has touched that isn't done: number of those.
    touched: BTreeMap<u32, u32>,
    within: Within,
    /// Disk operations since the store was called.
    operations_within: u32,
    /// The store is damaged where it can't start any more: the run is over.
    is_refused: bool,
    depth: u32,
    counts: Counts,
    trace: VecDeque<(&'static str, u64, u64)>,
    faults_before: u64,
    view_cache: Option<(u64, Arc<Contents>)>,
}

/// A run under way.
pub struct Run {
    disk: SimDisk,
    store: Mutex<Option<Store>>,
    world: Mutex<World>,
    /// What went wrong in a disk operation, to be told when the store has returned.
    failure: Mutex<Option<Box<dyn std::any::Any + Send>>>,
    me: Weak<Run>,
}

pub fn options(disk: &SimDisk) -> Options {
    let mut options = Options::path(FOLDER);
    options.disk = Arc::new(disk.clone());
    options.background = Background::Manual;
    options.log_segment_bytes = 8 << 10;
    options.cache_bytes = 96 << 10;
    options
}

pub fn key(number: u16) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.extend(std::iter::repeat_n(b'k', usize::from(number) % 7));
    key
}

/// Opens a copy of the disk that no error may come from, and compares. Gives the newest commit.
fn look(disk: &SimDisk, model: &Model, at_least: u64, random: &mut Rng, counts: &mut Counts) {
    counts.looks += 1;
    // Recovery may be cut short, too, and that again.
    if random.u8(..4) == 0 {
        let stop_at = disk.operations() + random.u64(1..40);
        let cut_in = disk.clone();
        disk.set_hook(Some(Box::new(move |operation: &Operation| {
            if operation.number == stop_at {
                cut_in.switch_off();
            }
        })));
        let opened = Store::open(&options(disk));
        disk.set_hook(None);
        if opened.is_err() {
            let cut = random.choice(Cut::ALL).expect("a cut");
            let at_least = match random.u8(..3) {
                0 => {
                    disk.revive();
                    at_least
                }
                _ => {
                    disk.cut(cut);
                    at_least.min(model.durable)
                }
            };
            return look(disk, model, at_least, random, counts);
        }
        drop(opened);
        disk.revive();
    }
    let store = Store::open(&options(disk)).unwrap_or_else(|error| {
        panic!(
            "the store doesn't start after a cut: {error}\n{}",
            disk.names().join("\n")
        )
    });
    let ts = store.snapshot().ts().0;
    assert!(
        ts >= at_least,
        "commit {at_least} was acknowledged, but the newest is {ts}"
    );
    compare(&store, &model.contents_at(ts), false);
    if random.bool() {
        return;
    }
    // What was shown once stays.
    let again = match random.bool() {
        true => disk.after_cut(Cut::LosesAll, random.u64(..)),
        false => disk.after_cut(Cut::Random, random.u64(..)),
    };
    drop(store);
    let store = Store::open(&options(&again))
        .unwrap_or_else(|error| panic!("the store doesn't start after a second cut: {error}"));
    let found = store.snapshot().ts().0;
    assert_eq!(found, ts, "what a start has shown is gone after the next");
    compare(&store, &model.contents_at(ts), false);
}

/// Every row, every space, every counter. `may_fail` takes errors for answers.
fn compare(store: &Store, expected: &Contents, may_fail: bool) -> bool {
    let now = store.snapshot();
    let mut is_whole = true;
    for space in expected.spaces.iter().chain(&expected.dropped) {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let rows = now
            .range(SpaceId(*space), bounds, Direction::Forward)
            .and_then(|mut cursor| {
                let mut rows = Vec::new();
                while let Some((key, value)) = cursor.next()? {
                    rows.push((key.to_vec(), Value::from(value)));
                }
                Ok(rows)
            });
        let rows = match rows {
            Ok(rows) => rows,
            Err(_) if may_fail => {
                is_whole = false;
                continue;
            }
            Err(error) => panic!("space {space} can't be read: {error}"),
        };
        let wanted = expected.rows.range((*space, 0)..=(*space, u16::MAX));
        let wanted: Vec<_> = wanted
            .map(|((_, number), value)| (key(*number), Arc::clone(value)))
            .collect();
        assert!(
            rows == wanted,
            "space {space} as of {:?}: {:?}\nexpected {:?}",
            now.ts(),
            short(&rows),
            short(&wanted)
        );
        let counter = expected.counters.get(space).copied().unwrap_or(0);
        assert!(
            store.counter(SpaceId(*space)) >= counter,
            "counter of {space}"
        );
    }
    is_whole
}

fn short(rows: &[(Vec<u8>, Value)]) -> Vec<(u16, usize, u8)> {
    let number = |key: &[u8]| u16::from_be_bytes([key[0], key[1]]);
    rows.iter()
        .map(|(key, value)| {
            (
                number(key),
                value.len(),
                value.first().copied().unwrap_or(0),
            )
        })
        .collect()
}

impl Run {
    /// Runs a plan to its end. A failure prints the seed and the last steps, and panics.
    pub fn carry_out(plan: Plan) -> Counts {
        let disk = SimDisk::new(plan.seed);
        disk.place_folder(std::path::Path::new("/data"));
        disk.set_lies(plan.lies);
        Run::carry_out_on(plan, disk)
    }

    pub fn carry_out_on(plan: Plan, disk: SimDisk) -> Counts {
        let run = Arc::new_cyclic(|me| Run {
            disk,
            store: Mutex::new(None),
            world: Mutex::new(World {
                random: Rng::with_seed(plan.seed ^ 0x9e37_79b9_7f4a_7c15),
                plan,
                model: Model::default(),
                open: Vec::new(),
                snapshots: Vec::new(),
                pending: BTreeSet::new(),
                spaces: Vec::new(),
                touched: BTreeMap::new(),
                within: Within::Nothing,
                operations_within: 0,
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
        let counts = run.world().counts;
        if let Err(cause) = outcome {
            if !plan.is_quiet {
                run.tell(plan);
            }
            run.disk.set_hook(None);
            std::panic::resume_unwind(cause);
        }
        counts
    }

    fn tell(&self, plan: Plan) {
        let world = self.world();
        eprintln!("\n{plan:?}");
        eprintln!("the last steps:");
        for (what, one, two) in &world.trace {
            eprintln!("  {what} {one} {two}");
        }
        eprintln!(
            "failed in step {} of seed {}",
            world.counts.steps, plan.seed
        );
    }

    fn world(&self) -> MutexGuard<'_, World> {
        match self.world.lock() {
            Ok(world) => world,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn note(&self, what: &'static str, one: u64, two: u64) {
        let mut world = self.world();
        if world.trace.len() == TRACE_LEN {
            world.trace.pop_front();
        }
        world.trace.push_back((what, one, two));
    }

    fn store(&self) -> Option<Store> {
        self.store.lock().unwrap().clone()
    }

    /// Errors are in order while the disk makes them.
    fn tolerate(&self, what: &str, error: &Error) {
        let world = self.world();
        let is_disturbed =
            self.disk.injected() > world.faults_before || self.disk.is_off() || world.plan.is_small;
        drop(world);
        assert!(is_disturbed, "{what}: {error}");
    }

    fn steps(&self) {
        let plan = self.world().plan;
        let me = self.me.clone();
        self.disk
            .set_hook(Some(Box::new(move |operation: &Operation| {
                if let Some(run) = me.upgrade() {
                    run.watch_disk_operation(operation);
                }
            })));
        self.open();
        while self.world().counts.steps < plan.steps && !self.world().is_refused {
            self.step();
            if let Some(cause) = self.failure.lock().unwrap().take() {
                std::panic::resume_unwind(cause);
            }
            if self.disk.is_off() {
                self.crash();
            }
        }
        self.calm_down();
        self.disk.set_hook(None);
        self.let_go();
        let mut world = self.world();
        world.counts.disk_operations = self.disk.operations();
        world.counts.faults = self.disk.injected();
        world.counts.trace_hash = self.disk.trace_hash();
    }

    /// What goes wrong here must not unwind through redb, which would abort.
    fn watch_disk_operation(&self, operation: &Operation) {
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

    fn on_disk_operation(&self, operation: &Operation) {
        let mut world = self.world();
        let plan = world.plan;
        world.operations_within += 1;
        if plan.crashes > 0 && world.random.u32(..100_000) < plan.crashes {
            drop(world);
            self.note("switched off", operation.number, 0);
            self.disk.switch_off();
            return;
        }
        let is_certain = world.model.is_certain();
        if plan.looks > 0 && is_certain && world.random.u32(..1_000) < plan.looks {
            let mut random = world.random.fork();
            let (cut, at_least) = match random.u8(..8) {
                0 => (None, world.model.written),
                _ => (random.choice(Cut::ALL), world.model.durable),
            };
            let found = match cut {
                None => self.disk.after_kill(),
                Some(cut) => self.disk.after_cut(cut, random.u64(..)),
            };
            let mut counts = Counts::default();
            look(&found, &world.model, at_least, &mut random, &mut counts);
            world.counts.add(counts);
        }
        let may_commit = world.depth == 0
            && match world.within {
                Within::Fold => {
                    operation.file.starts_with("tree.")
                        || operation.file.starts_with("log-")
                            && matches!(operation.what, "rename" | "remove")
                }
                // It is opened under the files' lock.
                Within::Preallocated => {
                    operation.file.starts_with("log.spare.unfinished") && operation.what != "open"
                }
                Within::IdleSync => operation.what == "sync" && world.operations_within == 1,
                Within::Nothing | Within::Open | Within::Commit => false,
            };
        if may_commit && world.random.u8(..8) == 0 {
            world.depth += 1;
            let within = world.within;
            let rounds = world.random.u8(1..12);
            drop(world);
            let policy = self.store().map(|store| store.flush_policy().clone());
            let usual = policy.as_ref().map(|policy| policy.get());
            if let (Some(policy), Within::IdleSync) = (&policy, within) {
                // A commit that wants a sync waits for this one's outcome.
                policy.set(Flush::WriteAtCommit);
            }
            for _ in 0..rounds {
                self.step_within(within);
            }
            if let (Some(policy), Some(usual)) = (policy, usual) {
                policy.set(usual);
            }
            let mut world = self.world();
            world.depth -= 1;
            world.within = within;
        }
    }

    /// What may happen while something else does.
    fn step_within(&self, within: Within) {
        if self.disk.is_off() {
            return;
        }
        self.world().counts.steps += 1;
        let choice = self.world().random.u8(..10);
        match (choice, within) {
            (0..4, _) => self.change_something(),
            (4..7, _) => self.commit_one(),
            (7, _) => self.sync_pending(),
            (8, Within::Fold | Within::IdleSync) => self.make_spare(),
            (8, _) => self.merge(),
            (_, Within::Fold | Within::Preallocated) => self.sync(),
            _ => self.merge(),
        }
    }

    fn step(&self) {
        let (choice, is_calm) = {
            let mut world = self.world();
            world.counts.steps += 1;
            world.model.shorten();
            (
                world.random.u16(..1000),
                world.plan.faults == Faults::default(),
            )
        };
        match choice {
            0..450 => self.change_something(),
            450..620 => self.read_something(),
            620..800 => self.commit_one(),
            800..850 => self.sync_pending(),
            850..865 => self.roll_back(),
            865..885 => self.take_snapshot(),
            885..900 => self.drop_snapshot(),
            900..930 => self.sync(),
            930..955 => self.make_spare(),
            955..970 => self.merge(),
            970..985 => self.recover(),
            985..990 => self.change_policy(),
            990..995 if !is_calm => self.change_weather(),
            995..997 => self.calm_down(),
            997..999 => self.restart(),
            _ => self.read_something(),
        }
    }

    fn open(&self) {
        for tries in 1.. {
            self.world().within = Within::Open;
            let opened = Store::open(&options(&self.disk));
            self.world().within = Within::Nothing;
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
                    self.tolerate("open", &error);
                    self.note("open failed", 0, 0);
                    let is_damaging = self.world().plan.is_damaging;
                    if is_damaging && !self.disk.is_off() && tries > 2 {
                        self.world().is_refused = true;
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

    fn check_start(&self, ts: u64) {
        let store = self.store().expect("just opened");
        let mut world = self.world();
        let promised = world.model.durable.max(world.model.written);
        assert!(
            ts >= promised,
            "commit {promised} was acknowledged, the newest is {ts}"
        );
        world.model.restart_at(ts);
        world.view_cache = None;
        let contents = world.model.contents_at(ts);
        world.spaces = contents.spaces.iter().copied().collect();
        drop(world);
        let may_fail = self.is_disturbed() || self.disk.faults() != Faults::default();
        if !compare(&store, &contents, may_fail) {
            self.note("not all can be read", 0, 0);
        }
        let mut world = self.world();
        let faults = self.disk.faults() != Faults::default();
        if !faults {
            world.faults_before = self.disk.injected();
        }
    }

    fn is_disturbed(&self) -> bool {
        self.disk.is_off() || self.disk.injected() > self.world().faults_before
    }

    fn let_go(&self) {
        let mut world = self.world();
        let (open, snapshots) = (
            std::mem::take(&mut world.open),
            std::mem::take(&mut world.snapshots),
        );
        world.touched.clear();
        drop(world);
        drop((open, snapshots));
        let store = self.store.lock().unwrap().take();
        drop(store);
        self.world().pending.clear();
    }

    fn power_on(&self) {
        let mut world = self.world();
        world.counts.crashes += 1;
        let is_kill = world.random.u8(..3) == 0;
        let cut = world.random.choice(Cut::ALL).expect("a cut");
        // A dead process has left all that it wrote to the system, a cut what was synced.
        if !is_kill {
            world.model.written = world.model.durable;
        }
        let durable = world.model.durable;
        drop(world);
        match is_kill {
            true => self.disk.revive(),
            false => self.disk.cut(cut),
        }
        self.note(if is_kill { "killed" } else { "cut" }, cut as u64, durable);
    }

    fn crash(&self) {
        self.let_go();
        self.power_on();
        self.open();
    }

    fn restart(&self) {
        let closes = self.world().random.bool();
        self.note("restart", u64::from(closes), 0);
        {
            let mut world = self.world();
            let open = std::mem::take(&mut world.open);
            world.touched.clear();
            drop(world);
            drop(open);
        }
        if closes && let Some(store) = self.store() {
            let visible = store.snapshot().ts().0;
            if let Err(error) = store.close() {
                self.tolerate("close", &error);
            } else {
                let mut world = self.world();
                world.model.durable = world.model.durable.max(visible);
            }
        }
        self.let_go();
        if self.disk.is_off() {
            self.power_on();
        }
        self.open();
    }

    fn change_policy(&self) {
        let Some(store) = self.store() else { return };
        let choice = self.world().random.u8(..6);
        store.flush_policy().set(match choice {
            0 => Flush::EachSecond,
            1 => Flush::WriteAtCommit,
            _ => Flush::AtCommit,
        });
        self.note("policy", u64::from(choice), 0);
    }

    fn change_weather(&self) {
        let mut world = self.world();
        let plan = world.plan;
        let is_stormy = world.random.bool();
        let room = world.random.u64(..4) << 14;
        drop(world);
        self.disk.set_faults(match is_stormy {
            true => plan.faults,
            false => Faults::default(),
        });
        let capacity = match plan.is_small && is_stormy {
            true => self.disk.used() + room,
            false => u64::MAX,
        };
        self.disk.set_capacity(capacity);
        self.note("weather", u64::from(is_stormy), room);
    }

    /// With a disk that does as it is told again, the store must come back by itself.
    fn calm_down(&self) {
        self.disk.set_faults(Faults::default());
        self.disk.set_capacity(u64::MAX);
        if self.disk.is_off() {
            return;
        }
        let damaging = self.world().plan.is_damaging;
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
        self.merge();
        if self.disk.is_off() {
            return;
        }
        self.sync_pending();
        if self.disk.is_off() {
            return;
        }
        // Views from before the tree was opened again can't be read any more.
        let snapshots = std::mem::take(&mut self.world().snapshots);
        drop(snapshots);
        while !self.world().open.is_empty() {
            self.roll_back();
        }
        self.sync_pending();
        if self.disk.is_off() {
            return;
        }
        let world = self.world();
        assert!(
            world.pending.is_empty(),
            "commits hang: {:?}",
            world.pending
        );
        let contents = world.model.contents_at(store.snapshot().ts().0);
        drop(world);
        self.world().faults_before = self.disk.injected();
        compare(&store, &contents, false);
    }

    fn pick_space(&self, world: &mut World) -> Option<u32> {
        let spaces = std::mem::take(&mut world.spaces);
        let space = world.random.choice(&spaces).copied();
        world.spaces = spaces;
        space
    }

    fn take_transaction(&self) -> Option<OpenTransaction> {
        let store = self.store()?;
        let mut world = self.world();
        let count = world.open.len();
        let begins = count == 0 || count < TRANSACTIONS_MAX && world.random.u8(..10) == 0;
        if !begins {
            let index = world.random.usize(..count);
            return Some(world.open.swap_remove(index));
        }
        drop(world);
        Some(OpenTransaction {
            txn: store.begin(),
            view: None,
            change: Change::default(),
            savepoints: Vec::new(),
            touched: BTreeSet::new(),
        })
    }

    fn give_back(&self, work: OpenTransaction) {
        self.world().open.push(work);
    }

    fn touch(&self, work: &mut OpenTransaction, space: u32) {
        if work.touched.insert(space) {
            *self.world().touched.entry(space).or_default() += 1;
        }
    }

    fn untouch(&self, touched: &BTreeSet<u32>) {
        let mut world = self.world();
        for space in touched {
            if let Some(count) = world.touched.get_mut(space) {
                *count = count.saturating_sub(1);
            }
        }
    }

    fn change_something(&self) {
        let Some(mut work) = self.take_transaction() else {
            return;
        };
        let (choice, space, number, len, fill) = {
            let mut world = self.world();
            let space = self.pick_space(&mut world);
            let number = world.random.u16(..KEYS);
            let len = match world.random.u16(..200) {
                0 => 12_000,
                1..4 => 3_000,
                _ => world.random.usize(..80),
            };
            (
                world.random.u16(..1000),
                space,
                number,
                len,
                world.random.u8(..),
            )
        };
        let has_room = self.world().spaces.len() < SPACES_MAX;
        match (choice, space) {
            (0..5, _) if has_room => self.create_space(&mut work),
            (5..8, Some(space)) => self.drop_space(&mut work, space),
            (8..28, _) => {
                let savepoint = work.txn.savepoint();
                work.savepoints.push((savepoint, work.change.clone()));
            }
            (28..38, _) => {
                if let Some((savepoint, change)) = work.savepoints.pop() {
                    work.txn.rollback_to(savepoint);
                    let counters = std::mem::take(&mut work.change.counters);
                    work.change = Change { counters, ..change };
                }
            }
            (38..60, Some(space)) if !work.change.dropped.contains(&space) => {
                self.touch(&mut work, space);
                let store = self.store().expect("an open store");
                let value = store.counter(SpaceId(space)) + 1;
                work.txn.set_counter(SpaceId(space), value);
                work.change.counters.insert(space, value);
            }
            (_, Some(space)) if !work.change.dropped.contains(&space) => {
                let is_deletion = choice % 4 == 0;
                let value = (!is_deletion).then(|| Value::from(vec![fill; len]));
                self.write(&mut work, (space, number), value);
            }
            (_, None) => self.create_space(&mut work),
            _ => {}
        }
        self.give_back(work);
    }

    fn write(&self, work: &mut OpenTransaction, place: Place, value: Option<Value>) {
        let (space, key) = (SpaceId(place.0), key(place.1));
        let locked = work
            .txn
            .lock(space, &key, LockMode::Exclusive, Wait::NoWait);
        if locked.is_err() {
            return;
        }
        self.touch(work, place.0);
        match &value {
            Some(value) => work.txn.put(space, &key, value),
            None => work.txn.delete(space, &key),
        }
        work.change.writes.insert(place, value);
    }

    fn create_space(&self, work: &mut OpenTransaction) {
        let Some(store) = self.store() else { return };
        let space = store.allocate_space();
        work.txn.create_space(space);
        work.change.created.push(space.0);
    }

    /// As the catalog does: nobody else may be at the space.
    fn drop_space(&self, work: &mut OpenTransaction, space: u32) {
        let mut world = self.world();
        let is_free = world.touched.get(&space).copied().unwrap_or(0) == 0;
        if !is_free {
            return;
        }
        world.spaces.retain(|s| *s != space);
        drop(world);
        self.touch(work, space);
        work.txn.drop_space(SpaceId(space));
        work.change.dropped.push(space);
    }

    fn contents_now(&self, snapshot: &Snapshot) -> Arc<Contents> {
        let ts = snapshot.ts().0;
        let mut world = self.world();
        if let Some((cached, contents)) = &world.view_cache
            && *cached == ts
        {
            return Arc::clone(contents);
        }
        let contents = Arc::new(world.model.contents_at(ts));
        world.view_cache = Some((ts, Arc::clone(&contents)));
        contents
    }

    fn read_something(&self) {
        let (choice, number, space) = {
            let mut world = self.world();
            let space = self.pick_space(&mut world);
            (world.random.u8(..10), world.random.u16(..KEYS), space)
        };
        let Some(space) = space else { return };
        match choice {
            0..5 => self.read_in_transaction(space, number),
            5..8 => self.scan_in_transaction(space, number),
            _ => self.read_in_snapshot(space, number),
        }
    }

    fn read_in_transaction(&self, space: u32, number: u16) {
        let Some(mut work) = self.take_transaction() else {
            return;
        };
        let view = self.view_of(&mut work);
        let place = (space, number);
        let own = work.change.writes.get(&place).cloned();
        let wanted = own.unwrap_or_else(|| view.rows.get(&place).cloned());
        let found = work
            .txn
            .get(SpaceId(space), &key(number), |v| Value::from(v));
        match found {
            Ok(found) => assert_eq!(
                found,
                wanted,
                "{place:?} at {:?}",
                work.txn.read_view().ts()
            ),
            Err(error) => self.tolerate("get", &error),
        }
        self.give_back(work);
    }

    fn view_of(&self, work: &mut OpenTransaction) -> Arc<Contents> {
        if work.view.is_none() {
            let snapshot = work.txn.read_view().clone();
            work.view = Some(self.contents_now(&snapshot));
        }
        Arc::clone(work.view.as_ref().expect("just set"))
    }

    fn scan_in_transaction(&self, space: u32, number: u16) {
        let Some(mut work) = self.take_transaction() else {
            return;
        };
        let view = self.view_of(&mut work);
        let mut wanted: BTreeMap<u16, Value> = view
            .rows
            .range((space, number)..=(space, u16::MAX))
            .map(|((_, number), value)| (*number, Arc::clone(value)))
            .collect();
        for ((_, number), value) in work
            .change
            .writes
            .range((space, number)..=(space, u16::MAX))
        {
            match value {
                Some(value) => wanted.insert(*number, Arc::clone(value)),
                None => wanted.remove(number),
            };
        }
        let direction = match number % 2 {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let low = key(number);
        let bounds = (Bound::Included(&low[..]), Bound::Unbounded);
        let rows = work
            .txn
            .range(SpaceId(space), bounds, direction)
            .and_then(|mut cursor| {
                let mut rows = BTreeMap::new();
                while let Some((key, value)) = cursor.next()? {
                    rows.insert(u16::from_be_bytes([key[0], key[1]]), Value::from(value));
                }
                Ok(rows)
            });
        match rows {
            Ok(rows) => assert!(
                rows == wanted,
                "scan of {space} from {number} by {direction:?}"
            ),
            Err(error) => self.tolerate("scan", &error),
        }
        self.give_back(work);
    }

    fn read_in_snapshot(&self, space: u32, number: u16) {
        let mut world = self.world();
        if world.snapshots.is_empty() {
            return;
        }
        let count = world.snapshots.len();
        let index = world.random.usize(..count);
        let (snapshot, contents) = world.snapshots[index].clone();
        drop(world);
        match snapshot.get(SpaceId(space), &key(number), |v| Value::from(v)) {
            Ok(found) => assert_eq!(found.as_ref(), contents.rows.get(&(space, number))),
            Err(error) => self.tolerate("get from a snapshot", &error),
        }
    }

    fn take_snapshot(&self) {
        let Some(store) = self.store() else { return };
        let snapshot = store.snapshot();
        let contents = self.contents_now(&snapshot);
        let mut world = self.world();
        if world.snapshots.len() < 4 {
            world.snapshots.push((snapshot, contents));
        }
    }

    fn drop_snapshot(&self) {
        let mut world = self.world();
        if world.snapshots.is_empty() {
            return;
        }
        let count = world.snapshots.len();
        let index = world.random.usize(..count);
        let dropped = world.snapshots.swap_remove(index);
        drop(world);
        drop(dropped);
    }

    fn commit_one(&self) {
        let mut world = self.world();
        let count = world.open.len();
        if count == 0 {
            return;
        }
        let index = world.random.usize(..count);
        let work = world.open.swap_remove(index);
        let within = world.within;
        if work.change.is_empty() {
            drop(world);
            return self.untouch(&work.touched);
        }
        let number = world.model.begin_commit(work.change.clone());
        if world.depth == 0 {
            world.within = Within::Commit;
        }
        drop(world);
        let policy = self.store().map(|store| store.flush_policy().get());
        let outcome = work.txn.commit();
        self.world().within = within;
        let (touched, change) = (work.touched, work.change);
        let commit = match outcome {
            Ok(commit) => commit,
            Err(error) => {
                self.note("refused", number, 0);
                self.world().model.refused(number);
                self.not_dropped(&change);
                self.untouch(&touched);
                return self.tolerate("commit", &error);
            }
        };
        let ts = commit.ts().0;
        self.note("commit", number, ts);
        {
            let mut world = self.world();
            world.model.made(number, ts);
            world.pending.insert(number);
            world.counts.commits += 1;
        }
        let me = self.me.clone();
        commit.on_durable(Box::new(move |outcome| {
            if let Some(run) = me.upgrade() {
                run.untouch(&touched);
                run.finished(number, ts, policy, &change, outcome);
            }
        }));
    }

    fn not_dropped(&self, change: &Change) {
        self.world().spaces.extend(&change.dropped);
    }

    fn finished(
        &self,
        number: u64,
        ts: u64,
        policy: Option<Flush>,
        change: &Change,
        outcome: Result<(), Error>,
    ) {
        self.note(if outcome.is_ok() { "done" } else { "failed" }, number, ts);
        let mut world = self.world();
        world.pending.remove(&number);
        match outcome {
            Ok(()) => {
                world.spaces.extend(&change.created);
                if policy == Some(Flush::AtCommit) {
                    world.model.durable = world.model.durable.max(ts);
                }
                if policy != Some(Flush::EachSecond) {
                    world.model.written = world.model.written.max(ts);
                }
            }
            Err(error) => {
                world.counts.failed_commits += 1;
                world.model.failed(number);
                world.spaces.extend(&change.dropped);
                drop(world);
                self.tolerate("commit", &error);
            }
        }
    }

    fn roll_back(&self) {
        let mut world = self.world();
        let count = world.open.len();
        if count == 0 {
            return;
        }
        let index = world.random.usize(..count);
        let work = world.open.swap_remove(index);
        if !work.change.counters.is_empty() {
            world.model.is_last_ts_certain = false;
        }
        drop(world);
        self.untouch(&work.touched);
        self.not_dropped(&work.change);
        work.txn.rollback();
    }

    fn within<R>(&self, within: Within, act: impl FnOnce() -> R) -> R {
        let before = {
            let mut world = self.world();
            let before = world.within;
            if world.depth == 0 {
                world.within = within;
                world.operations_within = 0;
            }
            before
        };
        let result = act();
        self.world().within = before;
        result
    }

    fn sync_pending(&self) {
        let Some(store) = self.store() else { return };
        self.within(Within::Commit, || store.sync_pending());
    }

    fn sync(&self) {
        let Some(store) = self.store() else { return };
        let is_idle = self.world().pending.is_empty();
        let within = match is_idle {
            true => Within::IdleSync,
            false => Within::Commit,
        };
        let visible = store.snapshot().ts().0;
        let outcome = self.within(within, || store.work(Work::Sync));
        let stats = store.stats();
        if outcome.is_ok() && !stats.is_read_only && stats.log_synced >= stats.log_written {
            self.note("synced", visible, 0);
            let mut world = self.world();
            world.model.durable = world.model.durable.max(visible);
            world.model.written = world.model.written.max(visible);
        }
    }

    fn make_spare(&self) {
        let Some(store) = self.store() else { return };
        self.note("spare", 0, 0);
        let outcome = self.within(Within::Preallocated, || {
            store.work(Work::PreallocateSegment)
        });
        if let Err(error) = outcome {
            self.tolerate("spare", &error);
        }
    }

    fn merge(&self) {
        let Some(store) = self.store() else { return };
        let visible = store.snapshot().ts().0;
        self.note("merge", visible, 0);
        match self.within(Within::Fold, || store.checkpoint()) {
            Ok(()) => {
                self.note("merged", visible, 0);
                let mut world = self.world();
                world.counts.checkpoints += 1;
                world.model.durable = world.model.durable.max(visible);
                world.model.written = world.model.written.max(visible);
            }
            Err(error) => {
                self.note("merge failed", 0, 0);
                self.tolerate("checkpoint", &error);
            }
        }
    }

    fn recover(&self) {
        let Some(store) = self.store() else { return };
        let was_read_only = store.stats().is_read_only;
        let outcome = self.within(Within::Commit, || store.work(Work::Recover));
        if let Err(error) = &outcome {
            self.note("recovery failed", 0, 0);
            self.tolerate("recovery", error);
        }
        if was_read_only && !store.stats().is_read_only {
            self.note("recovered", store.snapshot().ts().0, 0);
            let mut world = self.world();
            world.counts.recoveries += 1;
            world.model.recovered();
        }
    }
}
