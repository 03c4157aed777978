//! Row locks: who may change a row, and who waits.
//!
//! A transaction locks a row before it writes it, and keeps the lock to its end. A row need not
//! exist to be locked: what is locked is the pair of space and key, known here by its hash alone
//! (two rows of one hash, one pair in 2^64, would merely wait for each other).
//!
//! A key that was looked for and isn't there can be held as absent. Any number of transactions may hold it so;
//! only who is about to insert the key waits for them ([`LockMode`] says who waits for whom).
//!
//! Waiters queue in arrival order; only a holder that wants more (shared to exclusive) goes ahead. Who asks
//! for an absent key gets it before those that wait, or not at all.
//!
//! ```text
//! t1 ── holds ──► row 7 ◄── waits ── t2
//!  └─── waits ──► row 9 ◄── holds ───┘     a cycle: the cheaper of the two is refused
//! ```
//!
//! Whoever is about to sleep first searches for a cycle: from its row to those in its way, to the
//! rows they wait for, and so on. The search takes one shard's mutex at a time, so what it sees is
//! not one moment. It is enough: a transaction keeps what it holds while it waits, and releases it at its end, so a cycle
//! once closed stays closed, and the last to join it sees all of it. (A lock that is given back at once, because there was
//! nothing to lock after all, can at worst show a cycle that is none.) The victim is the transaction on the
//! cycle that has written least; among equals, the one who closed it.
//!
//! Transactions wait for other things than rows, too, of which nothing is known here. Whoever knows is asked
//! ([`OuterWaits`]) where the search goes on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use hashbrown::{HashMap, HashSet};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use twox_hash::XxHash3_64;

use crate::{LockError, SpaceId, TxnId};

const SHARDS: usize = 64;

/// From weak to strong: each keeps out whom the one before it does, and more.
///
/// | held | keeps out |
/// | --- | --- |
/// | `Absent` | `Insert` |
/// | `Shared` | `Exclusive`, `Insert` |
/// | `Exclusive` | `Shared`, `Exclusive`, `Insert` |
/// | `Insert` | all |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// The key isn't there, and shall stay so. Never waited for: while somebody has the key to insert it, it is busy.
    Absent,
    Shared,
    Exclusive,
    /// Exclusive, to write a key that isn't there.
    Insert,
}

impl LockMode {
    fn keeps_out(self, other: LockMode) -> bool {
        match (self.min(other), self.max(other)) {
            (_, LockMode::Insert) => true,
            (LockMode::Absent, _) => false,
            (_, stronger) => stronger == LockMode::Exclusive,
        }
    }
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Timeout(Duration),
    NoWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// Newly held.
    Granted,
    /// Held more strongly than before.
    Strengthened,
    /// The transaction had it already.
    AlreadyHeld,
}

/// Called on the thread that is about to sleep for a lock, and when it woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    Begin,
    End,
}

/// Asked where a transaction that waits for no row goes on: the transactions that it waits for otherwise.
pub type OuterWaits = Arc<dyn Fn(TxnId) -> Vec<TxnId> + Send + Sync>;

pub type BlockHook = Arc<dyn Fn(Blocking) + Send + Sync>;

/// A way to end a transaction's wait from outside (`KILL`). Once set, waits end at once, those to
/// come too, until it is cleared.
#[derive(Default)]
pub struct Interrupt {
    is_set: AtomicBool,
    waiting: Mutex<Option<Arc<Sleeper>>>,
}

impl Interrupt {
    pub fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        if let Some(sleeper) = &*self.waiting.lock() {
            sleeper.wake(Outcome::Refused(LockError::Interrupted));
        }
    }

    pub fn clear(&self) {
        self.is_set.store(false, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }
}

/// The hash that stands for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row(u64);

impl Row {
    fn of(space: SpaceId, key: &[u8]) -> Row {
        Row(XxHash3_64::oneshot_with_seed(u64::from(space.0) + 1, key))
    }

    fn shard(self) -> usize {
        (self.0 >> 58) as usize % SHARDS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Granted,
    Refused(LockError),
}

/// A thread asleep for a lock. The first outcome given to it stands.
struct Sleeper {
    outcome: Mutex<Option<Outcome>>,
    woken: Condvar,
}

impl Sleeper {
    fn wake(&self, outcome: Outcome) -> bool {
        let mut slot = self.outcome.lock();
        let is_first = slot.is_none();
        if is_first {
            *slot = Some(outcome);
            self.woken.notify_one();
        }
        is_first
    }
}

struct Waiter {
    txn: TxnId,
    mode: LockMode,
    is_upgrade: bool,
    sleeper: Arc<Sleeper>,
}

#[derive(Default)]
struct Entry {
    holders: SmallVec<[(TxnId, LockMode); 2]>,
    queue: VecDeque<Waiter>,
}

impl Entry {
    fn admits(&self, txn: TxnId, mode: LockMode) -> bool {
        self.holders
            .iter()
            .all(|&(holder, held)| holder == txn || !held.keeps_out(mode))
    }

    fn hold(&mut self, txn: TxnId, mode: LockMode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == txn) {
            Some((_, held)) => *held = (*held).max(mode),
            None => self.holders.push((txn, mode)),
        }
    }

    /// Grants what the head of the queue waits for, as far as it goes.
    fn grant_waiters(&mut self) {
        while let Some(first) = self.queue.front() {
            if !self.admits(first.txn, first.mode) {
                return;
            }
            let Some(first) = self.queue.pop_front() else {
                return;
            };
            if first.sleeper.wake(Outcome::Granted) {
                self.hold(first.txn, first.mode);
            }
        }
    }

    /// Who has to be gone before the waiter `txn` gets its turn. Those ahead of it in the queue are in
    /// its way too, but for no reason that the holders wouldn't tell; of them only `start` is looked for.
    fn in_the_way_of(&self, txn: TxnId, start: TxnId) -> Obstacles {
        let mut found = Obstacles::default();
        let Some(place) = self.queue.iter().position(|w| w.txn == txn) else {
            return found;
        };
        let mode = self.queue[place].mode;
        // Behind the last waiter ahead that conflicts, one waits for all that it waits for.
        let last_ahead = (0..place)
            .rev()
            .find(|&at| self.queue[at].mode.keeps_out(mode));
        let ahead = last_ahead.map_or(0, |at| at + 1);
        let waits_for = |held: LockMode| {
            held.keeps_out(mode)
                || self
                    .queue
                    .iter()
                    .take(ahead)
                    .any(|w| held.keeps_out(w.mode))
        };
        found.start_is_ahead = self.queue.iter().take(ahead).any(|w| w.txn == start);
        found.holders = self
            .holders
            .iter()
            .filter(|&&(holder, held)| holder != txn && waits_for(held))
            .map(|&(holder, _)| holder)
            .collect();
        found
    }
}

#[derive(Default)]
struct Obstacles {
    holders: SmallVec<[TxnId; 8]>,
    start_is_ahead: bool,
    /// The row that the transaction waits for, if it waits for one.
    row: Option<Row>,
}

/// A transaction on a cycle of waits, and the row that it waited for when the cycle was found.
struct Link {
    txn: TxnId,
    row: Option<Row>,
}

/// What a waiting transaction waits for, and what its rollback would cost.
struct Waiting {
    row: Row,
    weight: usize,
    sleeper: Arc<Sleeper>,
}

#[repr(align(64))]
#[derive(Default)]
struct Shard(Mutex<HashMap<Row, Entry>>);

pub(crate) struct LockTable {
    shards: [Shard; SHARDS],
    waiting: Mutex<HashMap<TxnId, Waiting>>,
    hook: ArcSwapOption<BlockHook>,
    outer: ArcSwapOption<OuterWaits>,
    pub waits: AtomicU64,
    pub deadlocks: AtomicU64,
}

/// The locks of one transaction.
pub(crate) struct HeldLocks {
    txn: TxnId,
    rows: SmallVec<[Row; 8]>,
}

impl HeldLocks {
    pub fn none(txn: TxnId) -> HeldLocks {
        HeldLocks {
            txn,
            rows: SmallVec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn granted(&mut self, row: Row, is_upgrade: bool) -> Locked {
        if is_upgrade {
            return Locked::Strengthened;
        }
        self.rows.push(row);
        Locked::Granted
    }
}

impl LockTable {
    pub fn new() -> LockTable {
        LockTable {
            shards: std::array::from_fn(|_| Shard::default()),
            waiting: Mutex::default(),
            hook: ArcSwapOption::empty(),
            outer: ArcSwapOption::empty(),
            waits: AtomicU64::new(0),
            deadlocks: AtomicU64::new(0),
        }
    }

    pub fn set_hook(&self, hook: Option<BlockHook>) {
        self.hook.store(hook.map(Arc::new));
    }

    pub fn set_outer_waits(&self, outer: Option<OuterWaits>) {
        self.outer.store(outer.map(Arc::new));
    }

    /// The transactions in the way of one that waits for a row; none, if it doesn't.
    pub fn obstacles(&self, txn: TxnId) -> Vec<TxnId> {
        self.in_the_way_of(txn, txn).holders.into_vec()
    }

    pub fn currently_waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    pub fn lock(
        &self,
        held: &mut HeldLocks,
        (space, key): (SpaceId, &[u8]),
        mode: LockMode,
        wait: Wait,
        weight: usize,
        interrupt: &Interrupt,
    ) -> Result<Locked, LockError> {
        let row = Row::of(space, key);
        let txn = held.txn;
        let (sleeper, timeout, is_upgrade) = {
            let mut shard = self.shards[row.shard()].0.lock();
            let entry = shard.entry(row).or_default();
            let own = entry
                .holders
                .iter()
                .find(|(holder, _)| *holder == txn)
                .map(|&(_, m)| m);
            if own.is_some_and(|own| own >= mode) {
                return Ok(Locked::AlreadyHeld);
            }
            let is_upgrade = own.is_some();
            let passes = is_upgrade || mode == LockMode::Absent || entry.queue.is_empty();
            if passes && entry.admits(txn, mode) {
                entry.hold(txn, mode);
                return Ok(held.granted(row, is_upgrade));
            }
            let timeout = match wait {
                Wait::Timeout(timeout) if mode != LockMode::Absent => timeout,
                Wait::Timeout(_) | Wait::NoWait => return Err(LockError::Busy),
            };
            let sleeper = Arc::new(Sleeper {
                outcome: Mutex::new(None),
                woken: Condvar::new(),
            });
            let waiter = Waiter {
                txn,
                mode,
                is_upgrade,
                sleeper: Arc::clone(&sleeper),
            };
            if let Some(own) = own {
                // Behind those that wanted more before, but for who waits for what this one holds.
                let is_ahead = |w: &&Waiter| w.is_upgrade && !own.keeps_out(w.mode);
                let place = entry.queue.iter().take_while(is_ahead).count();
                entry.queue.insert(place, waiter);
            } else {
                entry.queue.push_back(waiter);
            }
            self.waiting.lock().insert(
                txn,
                Waiting {
                    row,
                    weight,
                    sleeper: Arc::clone(&sleeper),
                },
            );
            (sleeper, timeout, is_upgrade)
        };
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.break_cycle(txn);
        let outcome = self.sleep(&sleeper, timeout, interrupt);
        self.waiting.lock().remove(&txn);
        match outcome {
            Outcome::Granted => Ok(held.granted(row, is_upgrade)),
            Outcome::Refused(error) => {
                self.leave_queue(row, &sleeper);
                Err(error)
            }
        }
    }

    fn sleep(&self, sleeper: &Arc<Sleeper>, timeout: Duration, interrupt: &Interrupt) -> Outcome {
        *interrupt.waiting.lock() = Some(Arc::clone(sleeper));
        if interrupt.is_set() {
            sleeper.wake(Outcome::Refused(LockError::Interrupted));
        }
        let hook = self
            .hook
            .load_full()
            .filter(|_| sleeper.outcome.lock().is_none());
        if let Some(hook) = &hook {
            hook(Blocking::Begin);
        }
        // A timeout too long for the clock is as good as none.
        let deadline = Instant::now().checked_add(timeout);
        let outcome = {
            let mut outcome = sleeper.outcome.lock();
            loop {
                if let Some(outcome) = *outcome {
                    break outcome;
                }
                let is_late = match deadline {
                    Some(at) => sleeper.woken.wait_until(&mut outcome, at).timed_out(),
                    None => {
                        sleeper.woken.wait(&mut outcome);
                        false
                    }
                };
                if is_late && outcome.is_none() {
                    // From here on nobody can grant it.
                    *outcome = Some(Outcome::Refused(LockError::Timeout));
                }
            }
        };
        *interrupt.waiting.lock() = None;
        if let Some(hook) = &hook {
            hook(Blocking::End);
        }
        outcome
    }

    fn leave_queue(&self, row: Row, sleeper: &Arc<Sleeper>) {
        let mut shard = self.shards[row.shard()].0.lock();
        if let Some(entry) = shard.get_mut(&row) {
            entry.queue.retain(|w| !Arc::ptr_eq(&w.sleeper, sleeper));
            entry.grant_waiters();
            if entry.holders.is_empty() && entry.queue.is_empty() {
                shard.remove(&row);
            }
        }
    }

    pub fn release(&self, held: HeldLocks) {
        for row in held.rows {
            self.release_row(held.txn, row);
        }
    }

    /// Releases one lock before the others.
    pub fn unlock(&self, held: &mut HeldLocks, (space, key): (SpaceId, &[u8])) {
        let row = Row::of(space, key);
        if let Some(place) = held.rows.iter().rposition(|&known| known == row) {
            held.rows.swap_remove(place);
            self.release_row(held.txn, row);
        }
    }

    fn release_row(&self, txn: TxnId, row: Row) {
        let mut shard = self.shards[row.shard()].0.lock();
        if let Some(entry) = shard.get_mut(&row) {
            entry.holders.retain(|(holder, _)| *holder != txn);
            entry.grant_waiters();
            if entry.holders.is_empty() && entry.queue.is_empty() {
                shard.remove(&row);
            }
        }
    }

    /// Searches for a cycle through `start`, and refuses the cheapest transaction on it, `start` among equals.
    fn break_cycle(&self, start: TxnId) {
        while let Some(cycle) = self.find_cycle(start) {
            let waiting = self.waiting.lock();
            let has_outcome = |txn: TxnId| {
                let wait = waiting.get(&txn);
                wait.is_some_and(|wait| wait.sleeper.outcome.lock().is_some())
            };
            if has_outcome(start) {
                return;
            }
            // Whoever closed it at the same time has broken it already: somebody is about to leave its queue, or has left it
            // and not yet given back what it holds.
            let is_broken = |link: &Link| {
                has_outcome(link.txn) || waiting.get(&link.txn).map(|wait| wait.row) != link.row
            };
            if cycle.iter().any(is_broken) {
                drop(waiting);
                std::thread::yield_now();
                continue;
            }
            let victim = cycle
                .iter()
                .filter_map(|link| Some((waiting.get(&link.txn)?, link.txn)))
                .min_by_key(|(wait, txn)| (wait.weight, *txn != start));
            let Some((victim, victim_txn)) = victim else {
                return;
            };
            if !victim.sleeper.wake(Outcome::Refused(LockError::Deadlock)) {
                // It got an outcome meanwhile, so this is no cycle any more; there may be another.
                drop(waiting);
                std::thread::yield_now();
                continue;
            }
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
            let (row, sleeper) = (victim.row, Arc::clone(&victim.sleeper));
            drop(waiting);
            if victim_txn == start {
                return;
            }
            // Out of the queue at once, or the next search would find it again.
            self.leave_queue(row, &sleeper);
        }
    }

    /// The transactions of a cycle through `start`.
    fn find_cycle(&self, start: TxnId) -> Option<Vec<Link>> {
        let mut seen = HashSet::new();
        let first = self.in_the_way_of(start, start);
        let mut path = vec![Link {
            txn: start,
            row: first.row,
        }];
        // Beside each transaction of the path, those in its way that are still to be visited.
        let mut frames = vec![first.holders];
        while let Some(rest) = frames.last_mut() {
            let Some(next) = rest.pop() else {
                frames.pop();
                path.pop();
                continue;
            };
            if next == start {
                return Some(path);
            }
            if seen.insert(next) {
                let obstacles = self.in_the_way_of(next, start);
                path.push(Link {
                    txn: next,
                    row: obstacles.row,
                });
                if obstacles.start_is_ahead {
                    return Some(path);
                }
                frames.push(obstacles.holders);
            }
        }
        None
    }

    fn in_the_way_of(&self, txn: TxnId, start: TxnId) -> Obstacles {
        let Some(row) = self.waiting.lock().get(&txn).map(|w| w.row) else {
            let outer = self.outer.load_full().filter(|_| txn != start);
            return Obstacles {
                holders: outer.map_or_else(SmallVec::new, |outer| outer(txn).into()),
                start_is_ahead: false,
                row: None,
            };
        };
        let shard = self.shards[row.shard()].0.lock();
        let found = shard.get(&row).map(|entry| entry.in_the_way_of(txn, start));
        Obstacles {
            row: Some(row),
            ..found.unwrap_or_default()
        }
    }
}
