//! One transaction: what it reads, what it has written, what it has locked.
//!
//! ```text
//! begin ─► read_view (at the first read) ─► lock, put, delete … ─► commit ─► Commit
//!               ▲ refresh_view: newest commits       │ savepoint, rollback_to
//! ```
//!
//! Reads come in two kinds. `get` and `range` see the read view: what was committed when it was
//! taken. `latest_get` and `latest_range` see what is committed now, as a statement must that has
//! locked a row to change it. Both see the transaction's own writes first.
//!
//! Row locks are released when a commit has its place in the log, before the disk has it. So what
//! is committed now may still be lost, with all that comes after it. A transaction knows the newest
//! such commit that it has read from. Its own commit comes later in the log; before anybody is told
//! what was read without a commit, [`confirm`](Transaction::confirm) waits.
//!
//! Nothing here checks that a row was locked before it was written: if two transactions write a row
//! without locking it, both commit, and the later commit wins.

use std::cell::{Cell, OnceCell};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::commit::Commit;
use crate::cursor::{Cursor, Layer};
use crate::locks::{HeldLocks, Interrupt, LockMode, Locked, Wait};
use crate::memtable::Unpublished;
use crate::overlay::{BORROWED_FROM, Overlay, Savepoint, SharedOverlay, SpaceChange};
use crate::prepared::{PreparedTransaction, Unprepared};
use crate::reclaim::release_soon;
use crate::snapshot::Snapshot;
use crate::spill::{FileKind, SpillFile};
use crate::store::Shared;
use crate::uncommitted::Uncommitted;
use crate::{CommitTs, Direction, Error, LockError, Result, SpaceId, TxnId};

/// A unit of work. Dropped without `commit`, it is rolled back.
pub struct Transaction {
    shared: Arc<Shared>,
    id: TxnId,
    view: OnceCell<Snapshot>,
    /// What it reads in place of the view, at READ UNCOMMITTED.
    uncommitted: Option<Uncommitted>,
    /// `None` until it writes.
    overlay: Option<Arc<SharedOverlay>>,
    size: OverlaySize,
    /// A savepoint was taken behind the first write, which may be gone back to.
    has_savepoint: Cell<bool>,
    counters: Vec<(SpaceId, u64)>,
    locks: HeldLocks,
    interrupt: Arc<Interrupt>,
    /// The newest commit that it has read from before all could.
    rests_on: OnceCell<Arc<AtomicU64>>,
    confirms_reads: bool,
    spilling: Spilling,
}

/// What a transaction knows of its writes in a file.
struct Spilling {
    /// `None` until it spills.
    file: Option<Arc<SpillFile>>,
    kind: FileKind,
    /// Beyond so many bytes in memory it does.
    from_bytes: usize,
    /// With more bytes in memory it looks how much all transactions have.
    looks_at: usize,
    /// Why it couldn't.
    failure: Option<Error>,
}

/// Behind so many bytes more it looks again.
const LOOK_STEP: usize = 64 << 10;

impl Spilling {
    fn from(from_bytes: usize) -> Spilling {
        Spilling {
            file: None,
            kind: FileKind::Committed,
            from_bytes,
            looks_at: BORROWED_FROM,
            failure: None,
        }
    }
}

/// How large the overlay is: asked for at every row.
#[derive(Clone, Copy)]
struct OverlaySize {
    held_bytes: usize,
    savepoint: Savepoint,
}

impl OverlaySize {
    fn of(overlay: &Overlay) -> OverlaySize {
        OverlaySize {
            held_bytes: overlay.held_bytes(),
            savepoint: overlay.savepoint(),
        }
    }
}

impl Transaction {
    pub(crate) fn new(shared: Arc<Shared>, id: TxnId) -> Transaction {
        Transaction {
            spilling: Spilling::from(shared.spill_bytes),
            shared,
            id,
            view: OnceCell::new(),
            uncommitted: None,
            overlay: None,
            size: OverlaySize::of(&Overlay::default()),
            has_savepoint: Cell::new(false),
            counters: Vec::new(),
            locks: HeldLocks::none(id),
            interrupt: Arc::default(),
            rests_on: OnceCell::new(),
            confirms_reads: false,
        }
    }

    /// Its number, by which row locks and deadlock detection know it.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Whether a commit would change anything.
    pub fn has_writes(&self) -> bool {
        self.overlay
            .as_ref()
            .is_some_and(|own| !own.0.read().is_empty())
            || !self.counters.is_empty()
    }

    /// Whether its writes are so many that they are a memtable of their own: its commit waits for a
    /// checkpoint that is under way.
    pub fn is_large(&self) -> bool {
        let own = self.overlay.as_ref();
        own.is_some_and(|own| own.0.read().large().is_some())
    }

    /// How many rows it has locked one by one; see [`limit_lock_memory`](Transaction::limit_lock_memory).
    pub fn locks_held(&self) -> usize {
        self.locks.len()
    }

    /// How many bytes of memory its writes and locks take until it ends, COMMIT's log record
    /// included. What
    /// is undone doesn't count any more, unless the writes are so many that they have a memtable: that
    /// keeps its memory to the end.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.size.held_bytes + self.locks.held_bytes()
    }

    /// How many bytes of memory its row locks should take, at most. With half of that in one space it
    /// locks the space instead: it holds further rows of it, asked for or not, unless another
    /// transaction has locked them before. What it has already stays as it is.
    pub fn limit_lock_memory(&mut self, bytes: usize) {
        self.locks.set_bytes_max(bytes);
    }

    /// The spaces that it has locked instead of their rows.
    pub fn locked_spaces(&self) -> impl Iterator<Item = (SpaceId, LockMode)> {
        self.locks.spaces().iter().copied()
    }

    /// What ends this transaction's waits from outside.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// Uses an interrupt that outlives the transaction, such as a session's.
    pub fn set_interrupt(&mut self, interrupt: Arc<Interrupt>) {
        self.interrupt = interrupt;
    }

    /// The snapshot that `get` and `range` read from, taken now if there is none.
    pub fn read_view(&self) -> &Snapshot {
        self.view.get_or_init(|| self.shared.snapshot())
    }

    /// Whether a read view was taken and is kept.
    pub fn has_read_view(&self) -> bool {
        self.view.get().is_some()
    }

    /// Takes a new read view, as READ COMMITTED does for each statement.
    pub fn refresh_view(&mut self) -> &Snapshot {
        self.view = OnceCell::new();
        self.read_view()
    }

    /// Drops the read view; the next read takes a new one.
    pub fn forget_view(&mut self) {
        self.view = OnceCell::new();
        self.uncommitted = None;
    }

    /// Has `get` and `range` read what is newest, committed or not, until `forget_view`.
    pub fn read_uncommitted(&mut self) {
        self.view = OnceCell::new();
        self.uncommitted = Some(Uncommitted::beside(&self.shared, Some(self.id)));
    }

    /// Whether `get` and `range` read what isn't committed.
    #[inline]
    pub fn reads_uncommitted(&self) -> bool {
        self.uncommitted.is_some()
    }

    /// Calls `read` with the value of a key, if there is one, as the transaction's own writes and its
    /// read view have it.
    pub fn get<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if let Some(own) = &self.overlay
            && let Some(value) = own.0.read().get(space, key)?
        {
            return Ok(value.map(|value| read(&value)));
        }
        match &self.uncommitted {
            None => self.read_view().get(space, key, read),
            Some(newest) => newest.get(space, key, read),
        }
    }

    /// The space's rows within the bounds, as the transaction's own writes and its read view have
    /// them.
    pub fn range(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        let own = self.own_layers(space);
        match &self.uncommitted {
            None => {
                let view = self.read_view();
                view.range_under(own, None, space, bounds, direction)
            }
            Some(newest) => newest.range_under(own, space, bounds, direction),
        }
    }

    /// As [`get`](Transaction::get), but reads what is committed now, not what the read view shows.
    pub fn latest_get<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if let Some(own) = &self.overlay
            && let Some(value) = own.0.read().get(space, key)?
        {
            return Ok(value.map(|value| read(&value)));
        }
        self.get_settled(space, key, read)
    }

    fn get_settled<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (snapshot, published) = Snapshot::settled_of(self.shared.epoch.load_full());
        let mut is_unpublished = false;
        let found = snapshot.get_version(space, key, read, |ts| {
            if ts > published.0 {
                is_unpublished = true;
                self.newest_seen().fetch_max(ts, Ordering::Relaxed);
            }
        })?;
        if is_unpublished && self.confirms_reads {
            self.confirm()?;
        }
        Ok(found)
    }

    /// As [`range`](Transaction::range), but reads what is committed at this call, not what the
    /// read view shows.
    pub fn latest_range(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        if self.confirms_reads {
            let own = self.own_layers(space);
            let snapshot = self.shared.snapshot();
            return snapshot.range_under(own, None, space, bounds, direction);
        }
        let (snapshot, published) = Snapshot::settled_of(self.shared.epoch.load_full());
        let unpublished = (snapshot.ts() > published).then(|| Unpublished {
            published,
            newest_seen: Arc::clone(self.newest_seen()),
        });
        let own = self.own_layers(space);
        snapshot.range_under(own, unpublished, space, bounds, direction)
    }

    fn newest_seen(&self) -> &Arc<AtomicU64> {
        self.rests_on.get_or_init(Arc::default)
    }

    // ── What it rests on ─────────────────────────────────────────────────────────────────────

    fn rests_on(&self) -> CommitTs {
        let newest = self.rests_on.get();
        CommitTs(newest.map_or(0, |newest| newest.load(Ordering::Relaxed)))
    }

    /// Whether it has read from a commit that is still on its way to the disk, or was lost.
    pub fn is_unconfirmed(&self) -> bool {
        let rests_on = self.rests_on();
        rests_on.0 > 0
            && !matches!(
                self.shared.group.fate_of(rests_on, &self.shared),
                Some(Ok(()))
            )
    }

    /// Waits until all that it has read is as safe as the flush policy asks; calls the store's wait
    /// hook before it sleeps. Fails if that is lost, as the log could not be written.
    pub fn confirm(&self) -> Result<()> {
        match self.rests_on() {
            CommitTs(0) => Ok(()),
            rests_on => self.shared.await_published(rests_on),
        }
    }

    /// For a statement that tells what it reads: ranges have what is safe by then, and reads of
    /// single rows are confirmed one by one.
    pub fn set_confirms_reads(&mut self, confirms: bool) {
        self.confirms_reads = confirms;
    }

    /// What to wait for before anybody is told that it was rolled back, and may take what it read
    /// for true. `None` if that is safe.
    pub fn unconfirmed(&self) -> Option<Commit> {
        self.is_unconfirmed()
            .then(|| self.shared.await_queued(self.rests_on()))
    }

    fn own_layers(&self, space: SpaceId) -> impl Iterator<Item = Layer> + use<> {
        let layers = match &self.overlay {
            Some(own) => own.0.read().layers(space),
            None => [None, None],
        };
        layers.into_iter().flatten()
    }

    // ── Writes ───────────────────────────────────────────────────────────────────────────────

    /// Changes the overlay, made at the first write: from then on others may read it.
    fn change(&mut self, change: impl FnOnce(&mut Overlay)) {
        let own = self.overlay.get_or_insert_with(|| {
            let own = Arc::default();
            self.locks.note_writes(&self.shared.locks, &own);
            own
        });
        let mut overlay = own.0.write();
        if self.has_savepoint.get() {
            overlay.keep_undo();
        }
        change(&mut overlay);
        let mut is_over_share = false;
        if overlay.held_bytes() > self.spilling.looks_at {
            self.spilling.looks_at = overlay.held_bytes() + LOOK_STEP;
            let epoch = self.shared.epoch.load();
            let cache = epoch.tree.cache();
            let borrowed = overlay.borrow_from(cache);
            let share = cache.share_of_writer(self.shared.spill_bytes);
            // One that can't spill isn't asked with each write.
            is_over_share = share.is_some_and(|share| borrowed >= share)
                && self.spilling.from_bytes == self.shared.spill_bytes;
        }
        if is_over_share || overlay.held_bytes() > self.shared.large_bytes() {
            overlay.enlarge(self.shared.epoch.load().tree.cache());
        }
        self.size = OverlaySize::of(&overlay);
        let bytes = overlay.bytes_to_spill();
        drop(overlay);
        if bytes > self.spilling.from_bytes || is_over_share && bytes > BORROWED_FROM / 2 {
            self.spill();
        }
    }

    /// Writes what is in memory to a file.
    #[cold]
    fn spill(&mut self) {
        let Some(own) = &self.overlay else { return };
        let file = match &self.spilling.file {
            Some(file) => Ok(Arc::clone(file)),
            None => self.shared.create_spill_file(self.spilling.kind),
        };
        let spilled = file.and_then(|file| {
            self.shared.spill(own, &file)?;
            Ok(file)
        });
        self.spilling.looks_at = BORROWED_FROM;
        match spilled {
            Ok(file) => self.spilling.file = Some(file),
            Err(error) => {
                // Not tried again with each write.
                self.spilling.from_bytes = self.spilling.from_bytes.saturating_mul(2);
                self.spilling.failure = Some(error);
            }
        }
        self.size = OverlaySize::of(&own.0.read());
    }

    /// Why writes that memory shall not hold could not be written to a file, once for each time. What
    /// was written stays in memory: the statement is to be rolled back.
    #[inline]
    pub fn take_spill_failure(&mut self) -> Option<Error> {
        self.spilling.failure.take()
    }

    /// It may have to be [prepared](Transaction::prepare): what it spills is to be found after a start.
    /// To be called before it writes.
    pub fn may_be_prepared(&mut self) {
        self.spilling.kind = FileKind::Prepared;
    }

    /// Whether some of its writes are in a file.
    pub fn has_spilled(&self) -> bool {
        let own = self.overlay.as_ref();
        own.is_some_and(|own| own.0.read().runs().is_some())
    }

    /// Writes a row, whether it exists or not.
    pub fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) {
        self.change(|overlay| overlay.write(space, key, Some(value), 0));
    }

    /// Writes a row that the caller knows to be new, which keeps `Store::approximate_len` accurate.
    pub fn insert(&mut self, space: SpaceId, key: &[u8], value: &[u8]) {
        self.change(|overlay| overlay.write(space, key, Some(value), 1));
    }

    /// Deletes a row. Does nothing if there is none, but for `Store::approximate_len`.
    pub fn delete(&mut self, space: SpaceId, key: &[u8]) {
        self.change(|overlay| overlay.write(space, key, None, -1));
    }

    /// Creates the space at commit. Rows may be written to it before.
    pub fn create_space(&mut self, space: SpaceId) {
        self.change(|overlay| overlay.change(space, SpaceChange::Create));
    }

    /// Drops the space and all in it at commit. The time it takes doesn't depend on the number of
    /// its rows.
    pub fn drop_space(&mut self, space: SpaceId) {
        self.change(|overlay| overlay.change(space, SpaceChange::Drop));
    }

    /// Raises the space's counter to at least `value`: visible to all at once, durable with the
    /// commit or soon after the rollback, never lowered (`AUTO_INCREMENT`).
    pub fn set_counter(&mut self, space: SpaceId, value: u64) {
        self.shared.raise_counter(space, value);
        match self.counters.iter_mut().find(|(known, _)| *known == space) {
            Some((_, highest)) => *highest = (*highest).max(value),
            None => self.counters.push((space, value)),
        }
    }

    /// Locks a row to the end of the transaction, whether there is such a row or not. Fails as
    /// [`LockError`] says; the transaction is as before then. A row that it holds by a lock on the
    /// space is [`Locked::Granted`] each time.
    pub fn lock(
        &mut self,
        space: SpaceId,
        key: &[u8],
        mode: LockMode,
        wait: Wait,
    ) -> Result<Locked, LockError> {
        let weight = self.size.savepoint.weight();
        let interrupt = &self.interrupt;
        self.shared
            .locks
            .lock(&mut self.locks, (space, key), mode, wait, weight, interrupt)
    }

    /// Releases a lock that turned out to be of no use: the row that was to be locked doesn't exist
    /// (any more). Only for a lock that was [`Locked::Granted`], with nothing written and nothing
    /// waited for since. Where the transaction has locked the space, the row stays locked by that.
    pub fn unlock(&mut self, space: SpaceId, key: &[u8]) {
        self.shared.locks.unlock(&mut self.locks, (space, key));
    }

    /// A moment to go back to: take one for each statement. It costs nothing before the first write;
    /// the first one behind that has later writes keep what they replace.
    pub fn savepoint(&self) -> Savepoint {
        let savepoint = self.size.savepoint;
        if !savepoint.is_first() {
            self.has_savepoint.set(true);
        }
        savepoint
    }

    /// Undoes every write and space change since the savepoint. Locks and counters stay.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        /// How many changes are undone while readers wait.
        const PART: usize = 256;
        let Some(own) = &self.overlay else { return };
        if savepoint.is_first() {
            // Nobody waits for what is freed.
            let undone = std::mem::take(&mut *own.0.write());
            undone.discard();
            self.has_savepoint.set(false);
            self.spilling.file = None;
        } else {
            while own.0.write().roll_back(savepoint, PART) {}
        }
        self.size = OverlaySize::of(&own.0.read());
        self.spilling.failure = None;
        self.spilling.from_bytes = self.shared.spill_bytes;
        self.spilling.looks_at = BORROWED_FROM;
    }

    /// Hands the writes to the log as one commit, and releases the row locks. Others see the writes
    /// once the returned `Commit` is done; those who lock a row to change it see them before. A
    /// [large](Transaction::is_large) one is done when this returns. On an error nothing was written:
    /// [`Error::ReadOnly`](crate::Error::ReadOnly),
    /// [`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge), a full disk, or
    /// [`Error::Closed`](crate::Error::Closed).
    pub fn commit(mut self) -> Result<Commit> {
        let overlay = self.overlay.take();
        let counters = std::mem::take(&mut self.counters);
        let locks = std::mem::replace(&mut self.locks, HeldLocks::none(self.id));
        let rests_on = self.rests_on();
        self.shared.commit(overlay, counters, locks, rests_on)
    }

    /// Writes down under a key of a space what a commit would do, and keeps the locks until it is
    /// told to do it, across restarts ([`Store::recover_prepared`](crate::Store::recover_prepared)).
    /// The key has to be free, and no other one that was prepared may begin with it. Waits until
    /// that is as safe as the flush policy asks; on an error the transaction is rolled back.
    ///
    /// # Errors
    /// Those of [`commit`](Transaction::commit), and of the disk.
    /// [`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge) if it has
    /// [spilled](Transaction::has_spilled) and nobody said that it
    /// [may be prepared](Transaction::may_be_prepared).
    pub fn prepare(mut self, place: (SpaceId, &[u8]), label: &[u8]) -> Result<PreparedTransaction> {
        if self.spilling.kind != FileKind::Prepared
            && let Some(own) = &self.overlay
            && let Some(runs) = own.0.read().runs()
        {
            return Err(Error::TransactionTooLarge {
                bytes: runs.bytes(),
                limit: self.shared.spill_bytes as u64,
            });
        }
        let unprepared = Unprepared {
            shared: Arc::clone(&self.shared),
            id: self.id,
            overlay: self.overlay.take(),
            counters: std::mem::take(&mut self.counters),
            locks: std::mem::replace(&mut self.locks, HeldLocks::none(self.id)),
            rests_on: self.rests_on(),
        };
        PreparedTransaction::prepare(unprepared, place, label)
    }

    /// Undoes everything but counters, and releases the locks.
    pub fn rollback(self) {}
}

/// Releases the locks of a transaction that has ended, many of them on another thread. Spaces, of
/// which there are few, are free when this returns.
pub(crate) fn release_locks(shared: &Arc<Shared>, mut locks: HeldLocks) {
    shared.locks.hide_writes(&mut locks);
    shared.locks.release_spaces(&mut locks);
    match locks.len() > LateRelease::LOCKS_MIN {
        true => release_soon(LateRelease {
            shared: Arc::downgrade(shared),
            locks,
        }),
        false => shared.locks.release(locks),
    }
}

/// The many locks of a transaction that was rolled back, which another thread releases: whoever told
/// the transaction to end doesn't wait for that.
struct LateRelease {
    /// Where the store is closed meanwhile, nobody waits for the locks.
    shared: Weak<Shared>,
    locks: HeldLocks,
}

impl LateRelease {
    /// So many are released within some milliseconds.
    const LOCKS_MIN: usize = 20_000;
    /// How many are released while the store is kept open.
    const PART: usize = 1000;
}

impl Drop for LateRelease {
    fn drop(&mut self) {
        while let Some(shared) = self.shared.upgrade() {
            if !shared
                .locks
                .release_some(&mut self.locks, LateRelease::PART)
            {
                return shared.locks.shrink();
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let locks = std::mem::replace(&mut self.locks, HeldLocks::none(self.id));
        release_locks(&self.shared, locks);
        self.overlay = None;
        if !self.counters.is_empty() {
            self.shared
                .log_counters(std::mem::take(&mut self.counters), self.id);
        }
    }
}
