//! Locked spaces: all rows at once, for a transaction that has very many of them (lock escalation).
//!
//! A transaction may lock more rows than memory holds locks. With very many of one space it locks
//! the space, in the mode of its row locks, and further rows of it need no place in a shard. What
//! the shards have stays as it is, of others and its own:
//!
//! ```text
//! a row of a locked space
//! ├─ has a place in its shard:  held by whom the shard says, and by nobody else
//! └─ has none:                  held by all who have locked the space, asked for or not
//! ```
//!
//! So the rows that others have locked before are theirs, and are waited for as ever, by the holder
//! of the space, too. Who comes later to a row without a place waits for the space, if it conflicts
//! with a holder; several may wait for it at once, and each that is woken tries to lock its row
//! again. Otherwise, as with two that read, the row gets a place, and the holders of the space have it
//! there as implied, beside the newcomer. It goes when only implied holders are left.
//!
//! A row that is asked for is looked up in its shard, under the shard's mutex, with a space locked
//! or not. Therefore a glance at a counter is enough for others to notice that a space is locked:
//! whoever comes to a row after its holder has taken the shard's mutex after it, and whoever came
//! before has left a place there.
//!
//! A counter also hands on what was read and written under a lock. Of a row without a place nothing is
//! written in its shard, whose mutex therefore orders nothing between one holder of the space and
//! whoever comes to the row next. Who gives the space back lowers the counter with `Release`, and who
//! loads it, under the shard's mutex, does so with `Acquire`: where it reads that the space isn't
//! locked, it comes behind all that the holders have done. Where it reads a count, it takes the mutex
//! of the spaces, which orders the same.
//!
//! Spaces are locked in modes that don't conflict with each other, or not at all: the transaction
//! goes on with single rows then, and tries again. It does so, too, while somebody waits for the space
//! who would have to wait for one holder more, for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::{LockMode, Outcome, Waiter};
use crate::{SpaceId, TxnId};

const COUNTERS: usize = 1024;

/// How many locks there are on the spaces of each counter. They are read with each lock on a row, and
/// hardly ever written: nothing that is written more often is in their cache lines.
#[repr(align(128))]
struct Counters([AtomicU32; COUNTERS]);

type Holders = SmallVec<[(TxnId, LockMode); 2]>;

/// The spaces that are locked.
pub(super) struct SpaceLocks {
    counters: Counters,
    spaces: Mutex<HashMap<SpaceId, LockedSpace>>,
    /// How many were locked instead of rows, ever.
    pub escalations: AtomicU64,
}

#[derive(Default)]
struct LockedSpace {
    holders: Holders,
    waiters: Vec<SpaceWaiter>,
}

struct SpaceWaiter {
    txn: TxnId,
    mode: LockMode,
    waiter: Arc<Waiter>,
}

/// What a transaction that asks for a row without a place finds.
pub(super) enum Unlocked {
    /// Nobody holds it.
    Free,
    /// The transaction itself, by its lock on the space.
    Own,
    /// Others, by their locks on the space, which don't conflict.
    Beside(Holders),
    /// Others, for whom it has to wait.
    Taken,
}

impl LockedSpace {
    fn mode_of(&self, txn: TxnId) -> Option<LockMode> {
        let found = self.holders.iter().find(|(holder, _)| *holder == txn);
        found.map(|&(_, mode)| mode)
    }

    fn others(&self, txn: TxnId) -> impl Iterator<Item = (TxnId, LockMode)> {
        let holders = self.holders.iter().copied();
        holders.filter(move |(holder, _)| *holder != txn)
    }

    fn admits(&self, txn: TxnId, mode: LockMode) -> bool {
        self.others(txn).all(|(_, held)| !held.conflicts_with(mode))
    }

    /// Whether somebody waits who would wait for `txn` only if it had the space in this mode.
    fn is_awaited(&self, txn: TxnId, mode: LockMode) -> bool {
        let own = self.mode_of(txn);
        self.waiters.iter().any(|waiter| {
            waiter.mode.conflicts_with(mode)
                && own.is_none_or(|own| !waiter.mode.conflicts_with(own))
        })
    }

    /// Wakes those who need not wait any more. They don't hold the space: they try again.
    fn wake_waiters(&mut self) {
        let mut waiters = std::mem::take(&mut self.waiters);
        waiters.retain(|waiting| {
            let is_to_wait = !self.admits(waiting.txn, waiting.mode);
            if !is_to_wait {
                waiting.waiter.wake(Outcome::Granted);
            }
            is_to_wait
        });
        self.waiters = waiters;
    }
}

impl SpaceLocks {
    pub fn new() -> SpaceLocks {
        SpaceLocks {
            counters: Counters(std::array::from_fn(|_| AtomicU32::new(0))),
            spaces: Mutex::default(),
            escalations: AtomicU64::new(0),
        }
    }

    fn counter(&self, space: SpaceId) -> &AtomicU32 {
        &self.counters.0[space.0 as usize % COUNTERS]
    }

    /// Whether the space may be locked: asked under the mutex of a row's shard, which tells the
    /// truth about that row. If it isn't, what its holders have done is seen (see the module's header).
    #[inline]
    pub fn may_be_locked(&self, space: SpaceId) -> bool {
        self.counter(space).load(Ordering::Acquire) != 0
    }

    /// Whose a row is that has no place in its shard, whose mutex the caller has.
    pub fn holders_of_unlocked(&self, space: SpaceId, txn: TxnId, mode: LockMode) -> Unlocked {
        let spaces = self.spaces.lock();
        let Some(locked) = spaces.get(&space) else {
            return Unlocked::Free;
        };
        if locked.mode_of(txn).is_some_and(|own| own >= mode) {
            return Unlocked::Own;
        }
        if !locked.admits(txn, mode) {
            return Unlocked::Taken;
        }
        let others: Holders = locked.others(txn).collect();
        match others.is_empty() {
            true => Unlocked::Free,
            false => Unlocked::Beside(others),
        }
    }

    /// Locks a space instead of its rows; `false` if others have it in a mode that conflicts, or wait
    /// for it and are let go first.
    pub fn lock(&self, space: SpaceId, txn: TxnId, mode: LockMode, lets_others: bool) -> bool {
        let mut spaces = self.spaces.lock();
        let locked = spaces.entry(space).or_default();
        if !locked.admits(txn, mode) || lets_others && locked.is_awaited(txn, mode) {
            return false;
        }
        self.add_holder(space, locked, txn, mode);
        self.escalations.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Has a transaction hold a space as it did before a restart.
    pub fn retake(&self, space: SpaceId, txn: TxnId, mode: LockMode) {
        let mut spaces = self.spaces.lock();
        self.add_holder(space, spaces.entry(space).or_default(), txn, mode);
    }

    fn add_holder(&self, space: SpaceId, locked: &mut LockedSpace, txn: TxnId, mode: LockMode) {
        match locked.holders.iter_mut().find(|(holder, _)| *holder == txn) {
            Some((_, held)) => *held = (*held).max(mode),
            None => {
                locked.holders.push((txn, mode));
                self.counter(space).fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Releases a space that a transaction has locked.
    pub fn release(&self, space: SpaceId, txn: TxnId) {
        let mut spaces = self.spaces.lock();
        let Some(locked) = spaces.get_mut(&space) else {
            return;
        };
        let before = locked.holders.len();
        locked.holders.retain(|(holder, _)| *holder != txn);
        if locked.holders.len() < before {
            self.counter(space).fetch_sub(1, Ordering::Release);
        }
        locked.wake_waiters();
        if locked.holders.is_empty() {
            spaces.remove(&space);
        }
    }

    /// Has a transaction wait until those give the space back who are in its way, and `begin` told
    /// of that first; `None` if nobody is any more.
    pub fn enqueue(
        &self,
        space: SpaceId,
        txn: TxnId,
        mode: LockMode,
        begin: impl FnOnce(&Arc<Waiter>),
    ) -> Option<Arc<Waiter>> {
        let mut spaces = self.spaces.lock();
        let locked = spaces.get_mut(&space)?;
        if locked.admits(txn, mode) {
            return None;
        }
        let waiter = Waiter::new();
        begin(&waiter);
        locked.waiters.push(SpaceWaiter {
            txn,
            mode,
            waiter: Arc::clone(&waiter),
        });
        Some(waiter)
    }

    /// A transaction waits no more.
    pub fn leave(&self, space: SpaceId, waiter: &Arc<Waiter>) {
        if let Some(locked) = self.spaces.lock().get_mut(&space) {
            locked.waiters.retain(|w| !Arc::ptr_eq(&w.waiter, waiter));
        }
    }

    /// The transactions that must give the space back before `txn` goes on, if it waits for that.
    pub fn blockers_of(&self, space: SpaceId, txn: TxnId) -> SmallVec<[TxnId; 8]> {
        let spaces = self.spaces.lock();
        let waiting = spaces.get(&space).and_then(|locked| {
            let waiter = locked.waiters.iter().find(|waiter| waiter.txn == txn)?;
            Some((locked, waiter.mode))
        });
        let Some((locked, mode)) = waiting else {
            return SmallVec::new();
        };
        let blockers = locked.others(txn);
        let blockers = blockers.filter(|(_, held)| held.conflicts_with(mode));
        blockers.map(|(holder, _)| holder).collect()
    }
}
