//! Row locks: who may change a row, and who waits.
//!
//! A transaction locks a row before it writes it, and keeps the lock to its end. A row need not
//! exist to be locked: what is locked is the pair of space and key, known here by its hash alone
//! (two rows of one hash, one pair in 2^64, would merely wait for each other).
//!
//! A key that was looked for and isn't there can be locked as absent. Any number of transactions
//! may hold it so; only one that is about to insert the key waits for them ([`LockMode`] says who
//! waits for whom).
//!
//! Waiters queue in arrival order; only a holder that upgrades its lock (shared to exclusive) goes
//! ahead. A lock on an absent key is granted before those that wait, or not at all.
//!
//! ```text
//! t1 ── holds ──► row 7 ◄── waits ── t2
//!  └─── waits ──► row 9 ◄── holds ───┘     a cycle: the cheaper of the two is refused
//! ```
//!
//! A transaction that is about to sleep first searches for a cycle: from its row to the
//! transactions that block it, to the rows they wait for, and so on. The search takes one shard's
//! mutex at a time, so what it sees is not one moment. It is enough: a transaction keeps what it
//! holds while it waits, and releases it at its end, so a cycle once closed stays closed, and the
//! last to join it sees all of it. (A lock that is released at once, because there was nothing to
//! lock after all, can at worst show a cycle that is none.) The victim is the transaction on the
//! cycle that has written least; among equals, the one that closed it.
//!
//! Transactions wait for other things than rows, too, which are unknown here: at a transaction that
//! waits for no row the search goes on with [`ExternalWaits`].
//!
//! A transaction with very many locks of one space locks the whole space instead (`spaces`). Where
//! no space is locked, which is nearly always, a lock on a row costs one load more for that.

mod held;
mod rows;
mod spaces;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use hashbrown::{HashMap, HashSet};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use twox_hash::XxHash3_64;

use self::held::Escalation;
pub(crate) use self::held::HeldLocks;
use self::rows::Rows;
use self::spaces::{SpaceLocks, Unlocked};
use crate::uncommitted::OpenWrites;
use crate::{LockError, SpaceId, TxnId};

const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 6;
/// A transaction that releases so many locks has the shards give memory back.
const MANY_LOCKS: usize = 4096;

/// How strongly a row is locked, from weak to strong: each mode conflicts with all that the one
/// before conflicts with, and more. InnoDB's record locks are the model (MySQL 8.4 manual, 17.7.1);
/// `Absent` and `Insert` take the place of gap locks.
///
/// | held | conflicts with |
/// | --- | --- |
/// | `Absent` | `Insert` |
/// | `Shared` | `Exclusive`, `Insert` |
/// | `Exclusive` | `Shared`, `Exclusive`, `Insert` |
/// | `Insert` | all |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// The key isn't there, and stays absent while the lock is held. Never waited for: while
    /// another transaction holds the key to insert it, the answer is [`LockError::Busy`].
    Absent,
    /// The row may be read, and doesn't change.
    Shared,
    /// The row may be changed.
    Exclusive,
    /// Exclusive, to write a key that isn't there.
    Insert,
}

impl LockMode {
    fn conflicts_with(self, other: LockMode) -> bool {
        match (self.min(other), self.max(other)) {
            (_, LockMode::Insert) => true,
            (LockMode::Absent, _) => false,
            (_, stronger) => stronger == LockMode::Exclusive,
        }
    }

    /// As it is written down.
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            LockMode::Absent => 0,
            LockMode::Shared => 1,
            LockMode::Exclusive => 2,
            LockMode::Insert => 3,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<LockMode> {
        Some(match byte {
            0 => LockMode::Absent,
            1 => LockMode::Shared,
            2 => LockMode::Exclusive,
            3 => LockMode::Insert,
            _ => return None,
        })
    }
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At most so long.
    Timeout(Duration),
    /// Not at all.
    NoWait,
}

/// How a row lock was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// Newly held.
    Granted,
    /// Held in a stronger mode than before.
    Upgraded,
    /// The transaction had it already.
    AlreadyHeld,
}

/// What a thread is about to do, or has done, when the wait hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPhase {
    /// It is about to sleep for a lock.
    Begin,
    /// It has woken.
    End,
}

/// Gives the transactions that a transaction waits for, other than for a row.
pub type ExternalWaits = Arc<dyn Fn(TxnId) -> Vec<TxnId> + Send + Sync>;

/// Called on a thread that is about to sleep for a row lock, and again when it has woken.
pub type WaitHook = Arc<dyn Fn(WaitPhase) + Send + Sync>;

/// Why a statement is to end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InterruptCause {
    /// Its time was up (`max_execution_time`).
    TimeExceeded = 0b01,
    /// Somebody wants it to end: KILL, a shutdown, or a client that is gone.
    Killed = 0b10,
}

/// Ends a transaction's wait from outside (`KILL`). Once set, waits end at once with
/// [`LockError::Interrupted`], later ones too, until it is cleared.
///
/// A statement that computes can be made to pause, too: it sleeps when it looks next, until it may
/// go on, or is to end.
#[derive(Default)]
pub struct Interrupt {
    /// The bits of [`InterruptCause`]s, and [`Interrupt::PAUSED`].
    signals: AtomicU8,
    waiting: Mutex<Option<Arc<Waiter>>>,
    /// Held by who changes signals for which a paused statement wakes.
    pause: Mutex<()>,
    resumed: Condvar,
    /// What its waits have taken since somebody asked, in nanoseconds.
    waited_ns: AtomicU64,
}

impl Interrupt {
    const CAUSES: u8 = InterruptCause::TimeExceeded as u8 | InterruptCause::Killed as u8;
    const PAUSED: u8 = 0b100;

    /// Ends the current wait, and all later ones. Of several causes a kill is the one that stands.
    pub fn set(&self, cause: InterruptCause) {
        let before = self.signals.fetch_or(cause as u8, Ordering::SeqCst);
        if let Some(waiter) = &*self.waiting.lock() {
            waiter.wake(Outcome::Refused(LockError::Interrupted));
        }
        if before & Interrupt::PAUSED != 0 {
            self.wake_paused();
        }
    }

    /// Allows waits again.
    pub fn clear(&self) {
        self.signals.fetch_and(!Interrupt::CAUSES, Ordering::SeqCst);
    }

    /// Whether waits end at once.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.signals.load(Ordering::SeqCst) & Interrupt::CAUSES != 0
    }

    /// Why waits end at once; `None` if they don't.
    pub fn cause(&self) -> Option<InterruptCause> {
        let signals = self.signals.load(Ordering::SeqCst);
        [InterruptCause::Killed, InterruptCause::TimeExceeded]
            .into_iter()
            .find(|cause| signals & *cause as u8 != 0)
    }

    /// A wait for a lock has ended, which began at `began`.
    pub fn note_wait(&self, began: Instant) {
        let waited = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waited_ns.fetch_add(waited, Ordering::Relaxed);
    }

    /// How long the waits for locks took that have ended since this was last asked.
    pub fn take_waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.swap(0, Ordering::Relaxed))
    }

    // ── Statements that compute by turns ─────────────────────────────────────────────────────

    /// Whether there is anything to do for a statement that looks: to pause, or to end.
    #[inline]
    pub fn is_signalled(&self) -> bool {
        self.signals.load(Ordering::SeqCst) != 0
    }

    /// The statement is to pause when it looks next.
    pub fn pause(&self) {
        self.signals.fetch_or(Interrupt::PAUSED, Ordering::SeqCst);
    }

    /// The statement may go on.
    pub fn resume(&self) {
        let paused = Interrupt::PAUSED;
        if self.signals.fetch_and(!paused, Ordering::SeqCst) & paused != 0 {
            self.wake_paused();
        }
    }

    /// Whether the statement is to pause when it looks next, or pauses.
    pub fn is_paused(&self) -> bool {
        self.signals.load(Ordering::SeqCst) & Interrupt::PAUSED != 0
    }

    /// Sleeps while the statement is to pause, and isn't to end.
    #[cold]
    pub fn wait_while_paused(&self) {
        let mut pause = self.pause.lock();
        while self.signals.load(Ordering::SeqCst) == Interrupt::PAUSED {
            self.resumed.wait(&mut pause);
        }
    }

    fn wake_paused(&self) {
        // Who is about to sleep has looked at the signals under the lock.
        drop(self.pause.lock());
        self.resumed.notify_all();
    }
}

/// The hash that stands for a row. Prepared transactions are kept with their rows' hashes, so it
/// stays as it is from version to version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RowHash(u64);

impl RowHash {
    fn of(space: SpaceId, key: &[u8]) -> RowHash {
        RowHash(XxHash3_64::oneshot_with_seed(u64::from(space.0) + 1, key))
    }

    fn shard(self) -> usize {
        (self.0 >> (u64::BITS - SHARD_BITS)) as usize % SHARDS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Granted,
    Refused(LockError),
}

/// A thread that sleeps for a lock. The first outcome given to it stands.
struct Waiter {
    outcome: Mutex<Option<Outcome>>,
    woken: Condvar,
}

impl Waiter {
    fn new() -> Arc<Waiter> {
        Arc::new(Waiter {
            outcome: Mutex::new(None),
            woken: Condvar::new(),
        })
    }

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

struct QueuedRequest {
    txn: TxnId,
    mode: LockMode,
    is_upgrade: bool,
    waiter: Arc<Waiter>,
}

/// A transaction that holds a row.
#[derive(Clone, Copy)]
struct RowHolder {
    txn: TxnId,
    mode: LockMode,
    /// As it has locked the space, whether it has asked for this row or not.
    is_implied: bool,
}

/// The locks of a row with which more than one transaction is concerned.
#[derive(Default)]
struct LockEntry {
    holders: SmallVec<[RowHolder; 1]>,
    queue: Queue,
}

/// Who waits for a row, in order. Often nobody: a deque in place would be half of an entry.
#[derive(Default)]
#[expect(
    clippy::box_collection,
    reason = "an entry without waiters stays small"
)]
struct Queue(Option<Box<VecDeque<QueuedRequest>>>);

impl Queue {
    fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|queue| queue.is_empty())
    }

    fn iter(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.0.iter().flat_map(|queue| queue.iter())
    }

    fn get(&self, at: usize) -> Option<&QueuedRequest> {
        self.0.as_ref()?.get(at)
    }

    fn insert(&mut self, at: usize, request: QueuedRequest) {
        self.0.get_or_insert_default().insert(at, request);
    }

    fn push_back(&mut self, request: QueuedRequest) {
        self.0.get_or_insert_default().push_back(request);
    }

    fn pop_front(&mut self) -> Option<QueuedRequest> {
        self.0.as_mut()?.pop_front()
    }

    fn retain(&mut self, is_kept: impl FnMut(&QueuedRequest) -> bool) {
        if let Some(queue) = &mut self.0 {
            queue.retain(is_kept);
        }
    }
}

impl LockEntry {
    /// Whether nobody else holds the row, or waits for it.
    fn is_only_of(&self, txn: TxnId) -> bool {
        self.queue.is_empty() && matches!(&*self.holders, [holder] if holder.txn == txn)
    }

    /// Whether nobody waits for the row, or holds it otherwise than by a lock on the space.
    fn is_free(&self) -> bool {
        self.queue.is_empty() && self.holders.iter().all(|holder| holder.is_implied)
    }

    fn holder(&self, txn: TxnId) -> Option<RowHolder> {
        let found = self.holders.iter().find(|holder| holder.txn == txn);
        found.copied()
    }

    fn admits(&self, txn: TxnId, mode: LockMode) -> bool {
        self.holders
            .iter()
            .all(|holder| holder.txn == txn || !holder.mode.conflicts_with(mode))
    }

    fn hold(&mut self, txn: TxnId, mode: LockMode) {
        match self.holders.iter_mut().find(|holder| holder.txn == txn) {
            Some(holder) if holder.mode >= mode => {}
            Some(holder) => {
                holder.mode = mode;
                holder.is_implied = false;
            }
            None => self.holders.push(RowHolder {
                txn,
                mode,
                is_implied: false,
            }),
        }
    }

    /// Has a transaction that has locked the space hold the row, beside others.
    fn hold_implied(&mut self, txn: TxnId, mode: LockMode) {
        if self.holder(txn).is_none() {
            self.holders.push(RowHolder {
                txn,
                mode,
                is_implied: true,
            });
        }
    }

    /// Queues a request of a transaction that holds the row in the mode `own`, if it holds it.
    fn enqueue(&mut self, txn: TxnId, mode: LockMode, own: Option<LockMode>) -> Arc<Waiter> {
        let waiter = Waiter::new();
        let request = QueuedRequest {
            txn,
            mode,
            is_upgrade: own.is_some(),
            waiter: Arc::clone(&waiter),
        };
        if let Some(own) = own {
            // Behind earlier upgrades, but ahead of those that wait for what this transaction holds.
            let is_ahead = |w: &&QueuedRequest| w.is_upgrade && !own.conflicts_with(w.mode);
            let place = self.queue.iter().take_while(is_ahead).count();
            self.queue.insert(place, request);
        } else {
            self.queue.push_back(request);
        }
        waiter
    }

    /// Grants what the queued requests ask for, in order, up to the first that conflicts.
    fn grant_waiters(&mut self) {
        while let Some(first) = self.queue.get(0) {
            if !self.admits(first.txn, first.mode) {
                return;
            }
            let Some(first) = self.queue.pop_front() else {
                return;
            };
            if first.waiter.wake(Outcome::Granted) {
                self.hold(first.txn, first.mode);
            }
        }
    }

    /// The transactions that must finish before the waiter `txn` is granted its lock. Those ahead
    /// of it in the queue block it too, but what they wait for is found through the holders; of
    /// them only `start` is looked for.
    fn blockers_of(&self, txn: TxnId, start: TxnId) -> Blockers {
        let mut found = Blockers::default();
        let Some(place) = self.queue.iter().position(|w| w.txn == txn) else {
            return found;
        };
        let mode_at = |at: usize| self.queue.get(at).map(|waiter| waiter.mode);
        let Some(mode) = mode_at(place) else {
            return found;
        };
        // Behind the last conflicting request ahead, `txn` waits for all that this request waits
        // for.
        let last_ahead = (0..place)
            .rev()
            .find(|&at| mode_at(at).is_some_and(|ahead| ahead.conflicts_with(mode)));
        let ahead = last_ahead.map_or(0, |at| at + 1);
        let waits_for = |held: LockMode| {
            held.conflicts_with(mode)
                || self
                    .queue
                    .iter()
                    .take(ahead)
                    .any(|w| held.conflicts_with(w.mode))
        };
        found.is_start_ahead = self.queue.iter().take(ahead).any(|w| w.txn == start);
        found.holders = self
            .holders
            .iter()
            .filter(|holder| holder.txn != txn && waits_for(holder.mode))
            .map(|holder| holder.txn)
            .collect();
        found
    }
}

#[derive(Default)]
struct Blockers {
    holders: SmallVec<[TxnId; 8]>,
    is_start_ahead: bool,
    /// What the transaction waits for, if it is known here.
    waits_for: Option<Lockable>,
}

/// What a transaction may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lockable {
    Row(RowHash),
    /// A row of a space that another transaction has locked.
    Space(SpaceId),
}

/// A transaction on a cycle of waits, and what it waited for when the cycle was found.
struct CycleLink {
    txn: TxnId,
    waits_for: Option<Lockable>,
}

/// What a waiting transaction waits for, and what its rollback would cost.
struct Waiting {
    lockable: Lockable,
    weight: usize,
    waiter: Arc<Waiter>,
}

/// A request for a row, as it was made.
#[derive(Clone, Copy)]
struct Request {
    row: RowHash,
    space: SpaceId,
    txn: TxnId,
    mode: LockMode,
    wait: Wait,
    weight: usize,
}

impl Request {
    /// How long to wait for what isn't granted at once.
    fn timeout(self) -> Result<Duration, LockError> {
        match self.wait {
            Wait::Timeout(timeout) if self.mode != LockMode::Absent => Ok(timeout),
            Wait::Timeout(_) | Wait::NoWait => Err(LockError::Busy),
        }
    }
}

/// What came of a request at once.
enum Answer {
    Locked(Locked),
    Queued(Queued),
    /// What was in its way isn't any more.
    Again,
}

/// A request that waits.
struct Queued {
    lockable: Lockable,
    waiter: Arc<Waiter>,
    timeout: Duration,
    is_upgrade: bool,
}

#[repr(align(64))]
#[derive(Default)]
struct Shard(Mutex<Rows>);

pub(crate) struct LockTable {
    shards: [Shard; SHARDS],
    spaces: SpaceLocks,
    waiting: Mutex<HashMap<TxnId, Waiting>>,
    hook: ArcSwapOption<WaitHook>,
    external: ArcSwapOption<ExternalWaits>,
    /// What is hidden behind the locks.
    pub open_writes: OpenWrites,
    pub waits: AtomicU64,
    pub deadlocks: AtomicU64,
}

/// A row that a transaction has locked, as it is written down.
#[derive(Clone, Copy)]
pub(crate) struct LockedRow {
    row: RowHash,
    mode: LockMode,
}

impl LockedRow {
    pub const BYTES: usize = 9;

    pub fn to_bytes(self) -> [u8; LockedRow::BYTES] {
        let mut bytes = [0; LockedRow::BYTES];
        bytes[..8].copy_from_slice(&self.row.0.to_le_bytes());
        bytes[8] = self.mode.to_byte();
        bytes
    }

    pub fn from_bytes(bytes: &[u8; LockedRow::BYTES]) -> Option<LockedRow> {
        let (row, mode) = bytes.split_first_chunk()?;
        let mode = LockMode::from_byte(*mode.first()?)?;
        let row = RowHash(u64::from_le_bytes(*row));
        Some(LockedRow { row, mode })
    }
}

impl LockTable {
    pub fn new() -> LockTable {
        LockTable {
            shards: std::array::from_fn(|_| Shard::default()),
            spaces: SpaceLocks::new(),
            waiting: Mutex::default(),
            hook: ArcSwapOption::empty(),
            external: ArcSwapOption::empty(),
            open_writes: OpenWrites::default(),
            waits: AtomicU64::new(0),
            deadlocks: AtomicU64::new(0),
        }
    }

    /// The rows that a transaction has locked one by one.
    pub fn rows_of(&self, held: &HeldLocks) -> Vec<LockedRow> {
        let locked = |rows: &Rows, row: RowHash| {
            let mode = rows.mode_of(row, held.txn)?;
            Some(LockedRow { row, mode })
        };
        if held.unlisted.is_none() {
            let rows = held.rows.iter();
            let rows = rows.filter_map(|row| locked(&self.shards[row.shard()].0.lock(), *row));
            return rows.collect();
        }
        let of_shard = |shard: &Shard| {
            let shard = shard.0.lock();
            let rows = shard.held_by(held.txn);
            rows.filter_map(|row| locked(&shard, row))
                .collect::<Vec<_>>()
        };
        self.shards.iter().flat_map(of_shard).collect()
    }

    /// Has a transaction hold rows as one did before a restart, when nobody else holds any but those
    /// that are taken again, too.
    pub fn retake(&self, txn: TxnId, rows: &[LockedRow]) -> HeldLocks {
        let mut held = HeldLocks::none(txn);
        for &LockedRow { row, mode } in rows {
            let mut shard = self.shards[row.shard()].0.lock();
            if shard.hold_alone(row, txn, mode).is_none() {
                shard.entry(row).hold(txn, mode);
            }
            held.add(row);
        }
        held
    }

    /// As [`LockTable::retake`], for spaces that were locked; when all rows are taken again.
    ///
    /// Others may have locked rows beside it, once it was written down what it holds. Which space
    /// they are of isn't known: it holds all that it may.
    pub fn retake_spaces(&self, held: &mut HeldLocks, spaces: &[(SpaceId, LockMode)]) {
        for &(space, mode) in spaces {
            self.spaces.retake(space, held.txn, mode);
            held.add_space(space, mode);
            for shard in &self.shards {
                shard.0.lock().imply(held.txn, mode);
            }
        }
    }

    pub fn set_hook(&self, hook: Option<WaitHook>) {
        self.hook.store(hook.map(Arc::new));
    }

    pub fn set_external_waits(&self, external: Option<ExternalWaits>) {
        self.external.store(external.map(Arc::new));
    }

    /// The transactions that block one that waits for a row; none, if it doesn't.
    pub fn blockers(&self, txn: TxnId) -> Vec<TxnId> {
        self.blockers_of(txn, txn).holders.into_vec()
    }

    pub fn currently_waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    /// How many times a transaction has locked a space instead of its rows.
    pub fn escalations(&self) -> u64 {
        self.spaces.escalations.load(Ordering::Relaxed)
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
        let request = Request {
            row: RowHash::of(space, key),
            space,
            txn: held.txn,
            mode,
            wait,
            weight,
        };
        let mut deadline = None;
        let locked = loop {
            let queued = match self.request(held, request)? {
                Answer::Locked(locked) => break locked,
                Answer::Queued(queued) => queued,
                Answer::Again => continue,
            };
            // A timeout beyond the clock's range is no timeout.
            let deadline =
                *deadline.get_or_insert_with(|| Instant::now().checked_add(queued.timeout));
            self.wait(held.txn, &queued, deadline, interrupt)?;
            if let Lockable::Row(row) = queued.lockable {
                break held.granted((space, row), mode, queued.is_upgrade);
            }
        };
        if locked == Locked::Granted
            && let Some(Escalation { is_overdue }) = held.escalation(space, mode)
            && self.spaces.lock(space, held.txn, mode, !is_overdue)
        {
            held.add_space(space, mode);
        }
        Ok(locked)
    }

    /// Locks a row if that can be done at once, and gets in line for it otherwise.
    fn request(&self, held: &mut HeldLocks, request: Request) -> Result<Answer, LockError> {
        let Request {
            row,
            space,
            txn,
            mode,
            ..
        } = request;
        let mut shard = self.shards[row.shard()].0.lock();
        if self.spaces.may_be_locked(space) && !shard.has(row) {
            let holders = match held.has_space(space, mode) {
                true => Unlocked::Own,
                false => self.spaces.holders_of_unlocked(space, txn, mode),
            };
            match holders {
                Unlocked::Free => {}
                // Not asked for before, perhaps: the caller is to look at the row now.
                Unlocked::Own => return Ok(Answer::Locked(Locked::Granted)),
                Unlocked::Beside(others) => {
                    let entry = shard.entry(row);
                    for (other, mode) in others {
                        entry.hold_implied(other, mode);
                    }
                    entry.hold(txn, mode);
                    let granted = held.granted((space, row), mode, false);
                    return Ok(Answer::Locked(granted));
                }
                Unlocked::Taken => {
                    drop(shard);
                    return self.queue_for_space(request);
                }
            }
        }
        match shard.hold_alone(row, txn, mode) {
            Some(Locked::Granted) => {
                let granted = held.granted((space, row), mode, false);
                return Ok(Answer::Locked(granted));
            }
            Some(locked) => return Ok(Answer::Locked(locked)),
            None => {}
        }
        let entry = shard.entry(row);
        let own = entry.holder(txn);
        if let Some(own) = own
            && own.mode >= mode
        {
            return Ok(Answer::Locked(match own.is_implied {
                true => Locked::Granted,
                false => Locked::AlreadyHeld,
            }));
        }
        // What it holds only by its lock on the space was never asked for, perhaps, and isn't counted.
        let is_upgrade = own.is_some_and(|own| !own.is_implied);
        let passes = own.is_some() || mode == LockMode::Absent || entry.queue.is_empty();
        if passes && entry.admits(txn, mode) {
            entry.hold(txn, mode);
            let granted = held.granted((space, row), mode, is_upgrade);
            return Ok(Answer::Locked(granted));
        }
        let timeout = request.timeout()?;
        let waiter = entry.enqueue(txn, mode, own.map(|own| own.mode));
        let lockable = Lockable::Row(row);
        self.note_wait(request, lockable, &waiter);
        Ok(Answer::Queued(Queued {
            lockable,
            waiter,
            timeout,
            is_upgrade,
        }))
    }

    /// Gets in line for a row that others hold by their locks on its space.
    #[cold]
    fn queue_for_space(&self, request: Request) -> Result<Answer, LockError> {
        let Request {
            space, txn, mode, ..
        } = request;
        let timeout = request.timeout()?;
        let lockable = Lockable::Space(space);
        let begin = |waiter: &Arc<Waiter>| self.note_wait(request, lockable, waiter);
        let Some(waiter) = self.spaces.enqueue(space, txn, mode, begin) else {
            return Ok(Answer::Again);
        };
        Ok(Answer::Queued(Queued {
            lockable,
            waiter,
            timeout,
            is_upgrade: false,
        }))
    }

    fn note_wait(&self, request: Request, lockable: Lockable, waiter: &Arc<Waiter>) {
        let waiting = Waiting {
            lockable,
            weight: request.weight,
            waiter: Arc::clone(waiter),
        };
        self.waiting.lock().insert(request.txn, waiting);
    }

    /// Sleeps until what was queued is granted.
    fn wait(
        &self,
        txn: TxnId,
        queued: &Queued,
        deadline: Option<Instant>,
        interrupt: &Interrupt,
    ) -> Result<(), LockError> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.resolve_deadlock(txn);
        let outcome = self.sleep(&queued.waiter, deadline, interrupt);
        self.waiting.lock().remove(&txn);
        match outcome {
            Outcome::Granted => Ok(()),
            Outcome::Refused(error) => {
                self.leave_queue(queued.lockable, &queued.waiter);
                Err(error)
            }
        }
    }

    fn sleep(
        &self,
        waiter: &Arc<Waiter>,
        deadline: Option<Instant>,
        interrupt: &Interrupt,
    ) -> Outcome {
        *interrupt.waiting.lock() = Some(Arc::clone(waiter));
        if interrupt.is_set() {
            waiter.wake(Outcome::Refused(LockError::Interrupted));
        }
        let hook = self
            .hook
            .load_full()
            .filter(|_| waiter.outcome.lock().is_none());
        if let Some(hook) = &hook {
            hook(WaitPhase::Begin);
        }
        let began = Instant::now();
        let outcome = {
            let mut outcome = waiter.outcome.lock();
            loop {
                if let Some(outcome) = *outcome {
                    break outcome;
                }
                let is_late = match deadline {
                    Some(at) => waiter.woken.wait_until(&mut outcome, at).timed_out(),
                    None => {
                        waiter.woken.wait(&mut outcome);
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
        interrupt.note_wait(began);
        if let Some(hook) = &hook {
            hook(WaitPhase::End);
        }
        outcome
    }

    /// Has the wait hook called around a wait for something else than a row.
    pub fn sleep_elsewhere(&self, wait: &dyn Fn()) {
        let hook = self.hook.load_full();
        if let Some(hook) = &hook {
            hook(WaitPhase::Begin);
        }
        wait();
        if let Some(hook) = &hook {
            hook(WaitPhase::End);
        }
    }

    fn leave_queue(&self, lockable: Lockable, waiter: &Arc<Waiter>) {
        let row = match lockable {
            Lockable::Row(row) => row,
            Lockable::Space(space) => return self.spaces.leave(space, waiter),
        };
        let mut shard = self.shards[row.shard()].0.lock();
        if let Some(entry) = shard.get_mut(row) {
            entry.queue.retain(|w| !Arc::ptr_eq(&w.waiter, waiter));
            entry.grant_waiters();
            shard.remove_if_free(row);
        }
    }

    pub fn release(&self, mut held: HeldLocks) {
        self.hide_writes(&mut held);
        if held.unlisted.is_some() {
            while self.release_some(&mut held, usize::MAX) {}
            return self.shrink();
        }
        if held.len() < MANY_LOCKS {
            for row in held.rows {
                self.release_row(held.txn, row);
            }
            return;
        }
        let are_emptied = self.empty_shards_of(&held);
        for row in held.rows {
            if !are_emptied[row.shard()] {
                self.release_row(held.txn, row);
            }
        }
        self.shrink();
    }

    /// Releases at most so many, or those of a shard; `false` if there are no more.
    pub fn release_some(&self, held: &mut HeldLocks, count: usize) -> bool {
        if held.unlisted.is_none() {
            let left = held.rows.len().saturating_sub(count);
            for row in held.rows.drain(left..) {
                self.release_row(held.txn, row);
            }
            return left > 0;
        }
        self.release_spaces(held);
        let Some(shard) = self.shards.get(held.next_shard) else {
            held.unlisted = None;
            return false;
        };
        held.next_shard += 1;
        let mut rows = shard.0.lock();
        if rows.are_all_of(held.txn) {
            rows.clear();
        } else {
            let own: Vec<RowHash> = rows.held_by(held.txn).collect();
            for row in own {
                rows.release(row, held.txn);
            }
        }
        true
    }

    /// Releases the spaces that were locked: before the rows, as who comes to a row has a holder of its
    /// space hold that, too.
    pub fn release_spaces(&self, held: &mut HeldLocks) {
        for (space, _) in held.take_spaces() {
            self.spaces.release(space, held.txn);
        }
    }

    /// Empties the shards in which nobody else holds or waits for a row: to go over a shard from its
    /// beginning takes less than to find each of many rows. Which they are.
    fn empty_shards_of(&self, held: &HeldLocks) -> [bool; SHARDS] {
        let mut counts = [0; SHARDS];
        for row in &held.rows {
            counts[row.shard()] += 1;
        }
        std::array::from_fn(|number| {
            let mut shard = self.shards[number].0.lock();
            let is_own = shard.len() <= counts[number] && shard.are_all_of(held.txn);
            if is_own {
                shard.clear();
            }
            is_own
        })
    }

    /// The transaction's writes are committed and settled, or undone: nobody reads them as not
    /// committed any more.
    pub fn hide_writes(&self, held: &mut HeldLocks) {
        if std::mem::take(&mut held.has_writes) {
            self.open_writes.remove(held.txn);
        }
    }

    /// Has the shards give memory back that they have too much of.
    pub fn shrink(&self) {
        for shard in &self.shards {
            shard.0.lock().shrink();
        }
    }

    /// Releases one lock before the others. What is held by a lock on the space stays: it may have
    /// been asked for before.
    pub fn unlock(&self, held: &mut HeldLocks, (space, key): (SpaceId, &[u8])) {
        let row = RowHash::of(space, key);
        if held.unlisted.is_none() {
            if let Some(place) = held.rows.iter().rposition(|&known| known == row) {
                held.rows.swap_remove(place);
                self.release_row(held.txn, row);
            }
            return;
        }
        let given_back = {
            let mut shard = self.shards[row.shard()].0.lock();
            shard.give_back(row, held.txn, held.mode_of_space(space))
        };
        if let Some(mode) = given_back {
            held.remove_unlisted(space, mode);
        }
    }

    fn release_row(&self, txn: TxnId, row: RowHash) {
        let mut shard = self.shards[row.shard()].0.lock();
        shard.release(row, txn);
    }

    /// Searches for a cycle through `start`, and refuses the transaction on it that has written
    /// least, `start` among equals.
    fn resolve_deadlock(&self, start: TxnId) {
        while let Some(cycle) = self.find_cycle(start) {
            let waiting = self.waiting.lock();
            let has_outcome = |txn: TxnId| {
                let wait = waiting.get(&txn);
                wait.is_some_and(|wait| wait.waiter.outcome.lock().is_some())
            };
            if has_outcome(start) {
                return;
            }
            // Another thread that closed the cycle at the same time has broken it already: one of
            // its transactions is about to leave its queue, or has left it and not yet released its
            // locks.
            let is_broken = |link: &CycleLink| {
                has_outcome(link.txn)
                    || waiting.get(&link.txn).map(|wait| wait.lockable) != link.waits_for
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
            if !victim.waiter.wake(Outcome::Refused(LockError::Deadlock)) {
                // It got an outcome meanwhile, so this is no cycle any more; there may be another.
                drop(waiting);
                std::thread::yield_now();
                continue;
            }
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
            let (lockable, waiter) = (victim.lockable, Arc::clone(&victim.waiter));
            drop(waiting);
            if victim_txn == start {
                return;
            }
            // It must leave the queue at once, or the next search would find it again.
            self.leave_queue(lockable, &waiter);
        }
    }

    /// The transactions of a cycle through `start`.
    fn find_cycle(&self, start: TxnId) -> Option<Vec<CycleLink>> {
        let mut seen = HashSet::new();
        let first = self.blockers_of(start, start);
        let mut path = vec![CycleLink {
            txn: start,
            waits_for: first.waits_for,
        }];
        // For each transaction of the path, its blockers that are still to be visited.
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
                let blockers = self.blockers_of(next, start);
                path.push(CycleLink {
                    txn: next,
                    waits_for: blockers.waits_for,
                });
                if blockers.is_start_ahead {
                    return Some(path);
                }
                frames.push(blockers.holders);
            }
        }
        None
    }

    fn blockers_of(&self, txn: TxnId, start: TxnId) -> Blockers {
        let waits_for = self.waiting.lock().get(&txn).map(|w| w.lockable);
        let found = match waits_for {
            None => {
                let external = self.external.load_full().filter(|_| txn != start);
                Blockers {
                    holders: external.map_or_else(SmallVec::new, |external| external(txn).into()),
                    ..Blockers::default()
                }
            }
            Some(Lockable::Row(row)) => {
                let shard = self.shards[row.shard()].0.lock();
                let found = shard.get(row).map(|entry| entry.blockers_of(txn, start));
                found.unwrap_or_default()
            }
            Some(Lockable::Space(space)) => Blockers {
                holders: self.spaces.blockers_of(space, txn),
                ..Blockers::default()
            },
        };
        Blockers { waits_for, ..found }
    }
}
