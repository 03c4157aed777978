//! The fast path of an object's metadata lock: unobtrusive locks are counted here, and meet nobody
//! until an obtrusive lock closes it. (The terms are MySQL's: unobtrusive modes are compatible with
//! each other and taken by statements, obtrusive ones are taken by DDL.)
//!
//! ```text
//!              ┌──────────┬──────────┬──────┐
//!   fast path  │ readers  │ writers  │ gate │   a reader-writer lock each, and a byte
//!              └──────────┴──────────┴──────┘
//! unobtrusive                                   obtrusive (`queue`)
//! 1. takes `readers` or `writers` shared        1. closes the gate
//!    light fence (the lock's own)                  heavy fence
//! 2. gate open? then the lock is granted        2. `readers`, `writers` free? then the lock is granted
//!    else it releases the lock, and queues         else it waits until a holder releases
//!
//! on release: releases the lock, light fence, gate watched? then it wakes the waiters
//! ```
//!
//! Each side writes first what the other reads second, so at least one of the two sees the other.
//! Unobtrusive are SHARED_READ and SHARED_WRITE on a table or view, and INTENTION_EXCLUSIVE on
//! everything; each takes one of the locks once. The other modes are tickets in [`super::queue`].
//! The reader-writer locks only count holders: the queue decides who goes first, and nobody sleeps
//! in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use porpoise_locks::{Owner, PreferReader, ReaderWriter, heavy_fence, light_fence};

use super::mode::{Mode, TableId, TableUse};
use super::queue::{MetadataLocks, Object};

/// Readers queue.
const BARS_READERS: u8 = 1;
/// Writers queue.
const BARS_WRITERS: u8 = 2;
/// A request waits for the readers inside to leave,
const WATCHES_READERS: u8 = BARS_READERS << WATCH_SHIFT;
/// or for the writers.
const WATCHES_WRITERS: u8 = BARS_WRITERS << WATCH_SHIFT;
const WATCH_SHIFT: u32 = 2;

/// Where unobtrusive locks of one object are counted.
#[derive(Debug)]
pub struct MdlFastPath {
    readers: PreferReader,
    writers: PreferReader,
    gate: AtomicU8,
    locks: Arc<MetadataLocks>,
}

/// Which of the two locks an unobtrusive mode takes; `None` for an obtrusive one.
pub(super) fn side(mode: Mode) -> Option<TableUse> {
    match mode {
        Mode::SharedRead => Some(TableUse::Read),
        Mode::SharedWrite | Mode::IntentionExclusive => Some(TableUse::Write),
        _ => None,
    }
}

/// The gate's bits while an obtrusive lock is held.
fn bars_held(mode: Mode) -> u8 {
    bits(|many| many.waits_for(mode))
}

/// And when it is waited for.
fn bars_wanted(mode: Mode) -> u8 {
    bits(|many| many.stands_behind(mode))
}

fn bits(is_barred: impl Fn(Mode) -> bool) -> u8 {
    let readers = if is_barred(Mode::SharedRead) {
        BARS_READERS
    } else {
        0
    };
    let writers = is_barred(Mode::SharedWrite) || is_barred(Mode::IntentionExclusive);
    readers | if writers { BARS_WRITERS } else { 0 }
}

/// The gate's bits that have releases reported to the queue, for an obtrusive lock that is
/// requested.
fn watches(mode: Mode) -> u8 {
    match side(mode) {
        None => bars_held(mode) << WATCH_SHIFT,
        Some(_) => 0,
    }
}

/// Whether a lock is compatible only once some unobtrusive locks are released.
pub(super) fn drains(mode: Mode) -> bool {
    watches(mode) != 0
}

/// The gate that follows from the modes held and requested.
pub(super) fn gate(held: impl Iterator<Item = Mode>, wanted: impl Iterator<Item = Mode>) -> Gate {
    let held = held.fold(0, |bits, mode| bits | bars_held(mode));
    Gate(wanted.fold(held, |bits, mode| bits | bars_wanted(mode) | watches(mode)))
}

/// What a gate is to be.
pub(super) struct Gate(u8);

/// An object whose metadata lock has a fast path.
pub trait HasFastPath: Send + Sync {
    /// Where its unobtrusive locks are counted.
    fn fast_path(&self) -> &MdlFastPath;

    /// What the queue calls the object of that number.
    fn object(&self, id: TableId) -> Object {
        Object::Table(id)
    }
}

impl HasFastPath for MdlFastPath {
    fn fast_path(&self) -> &MdlFastPath {
        self
    }
}

impl MdlFastPath {
    /// Nobody holds it and the gate is open; `locks` has the queue that goes with it.
    pub fn new(locks: &Arc<MetadataLocks>) -> MdlFastPath {
        MdlFastPath {
            readers: PreferReader::new(),
            writers: PreferReader::new(),
            gate: AtomicU8::new(0),
            locks: Arc::clone(locks),
        }
    }

    #[inline]
    fn lock(&self, usage: TableUse) -> &PreferReader {
        match usage {
            TableUse::Read => &self.readers,
            TableUse::Write => &self.writers,
        }
    }

    /// Takes an unobtrusive lock, unless the gate is closed to it.
    #[inline]
    pub fn try_enter(&self, usage: TableUse) -> bool {
        let bar = match usage {
            TableUse::Read => BARS_READERS,
            TableUse::Write => BARS_WRITERS,
        };
        if !self.lock(usage).try_shared() {
            return false;
        }
        if self.gate.load(Ordering::SeqCst) & bar == 0 {
            return true;
        }
        self.leave(usage);
        false
    }

    /// Releases an unobtrusive lock.
    #[inline]
    pub fn leave(&self, usage: TableUse) {
        self.lock(usage).unlock_shared();
        light_fence();
        let watch = match usage {
            TableUse::Read => WATCHES_READERS,
            TableUse::Write => WATCHES_WRITERS,
        };
        if self.gate.load(Ordering::Relaxed) & watch != 0 {
            self.locks.holder_released();
        }
    }

    // The rest is for the queue, which calls it one at a time.

    /// Takes an unobtrusive lock whatever the gate says: the queue has granted it.
    pub(super) fn enter(&self, usage: TableUse) {
        self.lock(usage).shared();
    }

    /// Whether the caller, who is inside as a writer, is the only one. The gate is closed.
    pub(super) fn has_one_writer(&self) -> bool {
        self.writers.unlock_shared();
        let is_only = is_empty(&self.writers);
        self.writers.shared();
        is_only
    }

    pub(super) fn set_gate(&self, gate: &Gate) {
        self.gate.store(gate.0, Ordering::SeqCst);
    }

    /// Closes the gate as if the lock was held: the holders that are seen after [`heavy_fence`] are
    /// all there are.
    pub(super) fn bar_for(&self, mode: Mode) {
        self.gate
            .fetch_or(bars_held(mode) | watches(mode), Ordering::SeqCst);
    }

    /// Whether all holders have released that a lock waits for. The gate is closed.
    pub(super) fn is_drained_for(&self, mode: Mode) -> bool {
        let bars = bars_held(mode);
        let is_empty = |bit, lock: &PreferReader| bars & bit == 0 || is_empty(lock);
        is_empty(BARS_READERS, &self.readers) && is_empty(BARS_WRITERS, &self.writers)
    }
}

/// Taking the lock exclusively for a moment proves that nobody holds it.
fn is_empty(lock: &PreferReader) -> bool {
    let is_empty = lock.try_exclusive(Owner::new(0));
    if is_empty {
        lock.unlock_exclusive();
    }
    is_empty
}

/// After [`MdlFastPath::bar_for`], before [`MdlFastPath::is_drained_for`].
pub(super) fn fence() {
    heavy_fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_bar_whom_the_modes_say() {
        let of =
            |held: &[Mode], wanted: &[Mode]| gate(held.iter().copied(), wanted.iter().copied()).0;
        let both = BARS_READERS | BARS_WRITERS;
        assert_eq!(of(&[], &[]), 0);
        assert_eq!(of(&[Mode::SharedUpgradable], &[]), 0);
        assert_eq!(of(&[], &[Mode::SharedUpgradable]), 0);
        assert_eq!(of(&[Mode::SharedReadOnly], &[]), BARS_WRITERS);
        assert_eq!(of(&[Mode::SharedNoWrite], &[]), BARS_WRITERS);
        assert_eq!(of(&[Mode::Exclusive], &[]), both);
        assert_eq!(
            of(&[], &[Mode::Exclusive]),
            both | WATCHES_READERS | WATCHES_WRITERS
        );
        assert_eq!(of(&[], &[Mode::SharedReadOnly]), WATCHES_WRITERS);
        assert_eq!(
            of(&[], &[Mode::SharedNoWrite]),
            BARS_WRITERS | WATCHES_WRITERS
        );
        assert_eq!(of(&[], &[Mode::SharedRead, Mode::SharedWrite]), 0);
        assert_eq!(of(&[Mode::Shared], &[]), BARS_WRITERS);
    }

    #[test]
    fn only_one_of_the_few_drains() {
        assert!(!drains(Mode::SharedRead) && !drains(Mode::SharedUpgradable));
        assert!(drains(Mode::SharedReadOnly) && drains(Mode::Shared) && drains(Mode::Exclusive));
    }
}
