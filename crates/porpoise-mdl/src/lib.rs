//! Metadata locks as sessions hold them: for a statement or a transaction.
//!
//! 1. A statement takes the [`fast_path`] of each table, view and function that its plan names, as a reader
//!    or a writer, and notes in a few words of its own ([`Held`]) that it did. Nobody else writes
//!    there, and no mutex is taken.
//! 2. Where a fast path is closed it releases all that it took, and requests them all at once in
//!    the [`queue`].
//! 3. DDL and LOCK TABLES ask there always (`porpoise_ddl::lock`); so does FLUSH TABLES WITH READ
//!    LOCK ([`global`]).
//! 4. A session that has to wait looks for a deadlock first, through locks of every kind
//!    ([`graph`]).
//!
//! Which modes there are, and which wait for which: [`mode`].

#![warn(missing_docs)]

pub mod command_counts;
pub mod fast_path;
pub mod global;
pub mod graph;
pub mod in_use;
pub mod mode;
pub mod named_locks;
pub mod process;
pub mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use porpoise_storage::{Store, TxnId};
use smallvec::SmallVec;

pub use fast_path::{HasFastPath, MdlFastPath};
pub use global::{
    Changing, GlobalReadLock, HeldGlobally, begin_change, begin_commit, intend_change_of_files,
    intention, take_backup_lock, take_global_read_lock,
};
pub use graph::{closes_cycle, rows_behind};
pub use mode::{Mode, TableId, TableUse};
pub use queue::{Duration, MdlRequest, MdlRequester, MdlTicket, MetadataLocks, Object, Waiter};

use named_locks::NamedLocks;
use porpoise_core::error::Result;
use process::{Control, Processes};

/// A table's lock in a word; 0 stands for none.
fn encode(table: TableId, usage: TableUse) -> u64 {
    (u64::from(table.0) + 1) << 1 | u64::from(usage == TableUse::Write)
}

fn decode(word: u64) -> Option<(TableId, Mode)> {
    let id = u32::try_from((word >> 1).checked_sub(1)?).ok()?;
    let usage = match word & 1 {
        0 => TableUse::Read,
        _ => TableUse::Write,
    };
    Some((TableId(id), usage.mode()))
}

/// So many tables of a statement or transaction are noted without a mutex.
const FIRST: usize = 8;

/// The unobtrusive locks that a session holds, as others see them. Only the session itself changes
/// it. What it holds by tickets, the queue knows.
#[derive(Default)]
pub struct Held {
    first: [AtomicU64; FIRST],
    more: Mutex<Vec<u64>>,
    /// The session's storage transaction; the last one, if there is none now; 0: there never was.
    transaction: AtomicU64,
    /// A statement of its changes something.
    changes: AtomicBool,
    /// It commits.
    commits: AtomicBool,
}

impl Held {
    /// The session holds a table of its statement's or transaction's, by its number among them.
    #[inline]
    fn put(&self, number: usize, table: TableId, usage: TableUse) {
        let word = encode(table, usage);
        match self.first.get(number) {
            Some(first) => first.store(word, Ordering::Release),
            None => {
                let mut more = self.more.lock();
                more.truncate(number - FIRST);
                more.push(word);
            }
        }
    }

    /// It gave back those from a number on, of as many as it had.
    #[inline]
    fn clear(&self, from: usize, count: usize) {
        for word in self.first.iter().take(count).skip(from) {
            word.store(0, Ordering::Release);
        }
        if count > FIRST {
            self.more.lock().truncate(from.saturating_sub(FIRST));
        }
    }

    /// Says which storage transaction is the session's.
    #[inline]
    pub fn set_transaction(&self, transaction: TxnId) {
        self.transaction.store(transaction.0, Ordering::Release);
    }

    #[inline]
    fn set_changing(&self, is_commit: bool, on: bool) {
        let flag = if is_commit {
            &self.commits
        } else {
            &self.changes
        };
        flag.store(on, Ordering::Release);
    }

    fn transaction(&self) -> Option<TxnId> {
        Some(self.transaction.load(Ordering::Acquire))
            .filter(|id| *id != 0)
            .map(TxnId)
    }

    /// The tables and views that it is inside of.
    pub fn tables(&self) -> Vec<(TableId, Mode)> {
        let mut words: Vec<u64> = self
            .first
            .iter()
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        words.extend_from_slice(&self.more.lock());
        words.into_iter().filter_map(decode).collect()
    }

    /// Whether a statement of its is changing something.
    pub fn changes(&self) -> bool {
        self.changes.load(Ordering::Acquire)
    }

    /// Whether it is committing.
    pub fn commits(&self) -> bool {
        self.commits.load(Ordering::Acquire)
    }
}

/// All that the sessions of a database wait for each other for.
pub struct Locks {
    /// Locks of definitions, and who waits for them.
    pub metadata: Arc<MetadataLocks>,
    /// FLUSH TABLES WITH READ LOCK.
    pub global_read: GlobalReadLock,
    /// GET_LOCK().
    pub named: NamedLocks,
    /// Locks of rows.
    pub rows: Store,
    /// The sessions that are connected.
    pub sessions: Processes,
    hook: RwLock<Option<BlockHook>>,
    compute_hook: RwLock<Option<BlockHook>>,
}

/// Called on a thread that is about to wait for a lock, or to compute for long, so that another thread
/// takes over its event loop.
pub type BlockHook = Arc<dyn Fn() + Send + Sync>;

impl Locks {
    /// No locks, of a database whose rows are in `rows`.
    pub fn new(metadata: Arc<MetadataLocks>, rows: Store) -> Locks {
        Locks {
            global_read: GlobalReadLock::new(&metadata),
            metadata,
            named: NamedLocks::default(),
            rows,
            sessions: Processes::default(),
            hook: RwLock::new(None),
            compute_hook: RwLock::new(None),
        }
    }

    /// Has `hook` called before a thread waits.
    pub fn set_block_hook(&self, hook: BlockHook) {
        *self.hook.write() = Some(hook);
    }

    /// Has `hook` called before a thread computes for long.
    pub fn set_compute_hook(&self, hook: BlockHook) {
        *self.compute_hook.write() = Some(hook);
    }

    /// Tells the event loop that this thread is about to compute for long.
    #[cold]
    pub fn before_computing(&self) {
        if let Some(hook) = &*self.compute_hook.read() {
            hook();
        }
    }

    /// Tells the event loop that this thread is about to wait.
    pub fn before_waiting(&self) {
        if let Some(hook) = &*self.hook.read() {
            hook();
        }
    }
}

/// The session that takes locks, and where others see that it did.
#[derive(Clone, Copy)]
pub struct MdlContext<'a> {
    /// What a wait needs to know.
    pub requester: MdlRequester<'a>,
    /// Where the session's locks are seen by others.
    pub control: &'a Control,
}

/// What a statement uses, one after the other, as often as it is asked.
pub trait Uses<'a, S: 'a> {
    /// Calls `take` with each use. The same ones in the same order whenever it is called.
    fn each(&self, take: impl FnMut(Use<'a, S>));
}

/// A table, view or routine that a statement uses.
pub struct Use<'a, S> {
    /// Which one; they are numbered together.
    pub id: TableId,
    /// What the versions of its definition share, the metadata lock among it.
    pub state: &'a Arc<S>,
    /// What the statement does with its rows.
    pub usage: TableUse,
}

impl<S> Clone for Use<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Use<'_, S> {}

impl<S: HasFastPath + 'static> Use<'_, S> {
    fn want(self) -> MdlRequest {
        let fast_path: Arc<dyn HasFastPath> = Arc::<S>::clone(self.state);
        MdlRequest {
            object: self.state.object(self.id),
            mode: self.usage.mode(),
            duration: Duration::Transaction,
            fast_path: Some(fast_path),
        }
    }
}

/// The locks of a transaction: each table and view it used, by the state that all its versions
/// share.
pub struct HeldTables<S: HasFastPath>(Vec<(Arc<S>, TableUse)>);

impl<S: HasFastPath> Default for HeldTables<S> {
    fn default() -> Self {
        HeldTables(Vec::new())
    }
}

impl<S: HasFastPath> HeldTables<S> {
    /// Whether the locks held cover a use: a lock to write covers reading.
    #[inline]
    fn covers(&self, used: Use<'_, S>) -> bool {
        self.0.iter().any(|(state, usage)| {
            Arc::ptr_eq(state, used.state)
                && (*usage == TableUse::Write || used.usage == TableUse::Read)
        })
    }

    #[inline]
    fn put(&mut self, used: Use<'_, S>, control: &Control) {
        control.held.put(self.0.len(), used.id, used.usage);
        self.0.push((Arc::clone(used.state), used.usage));
    }

    #[inline]
    fn release_from(&mut self, from: usize, control: &Control) {
        control.held.clear(from, self.0.len());
        for (state, usage) in self.0.drain(from..) {
            state.fast_path().leave(usage);
        }
    }

    /// What they are, by number.
    pub fn uses(&self, control: &Control) -> Vec<(TableId, TableUse)> {
        let mut tables = control.held.tables().into_iter();
        let uses = self.0.iter().map(|(_, usage)| *usage);
        uses.filter_map(|usage| Some((tables.next()?.0, usage)))
            .collect()
    }

    /// Takes them from the session: nobody waits for it any more that waits for them.
    pub fn detach(&mut self, control: &Control) -> HeldTables<S> {
        control.held.clear(0, self.0.len());
        HeldTables(std::mem::take(&mut self.0))
    }

    /// Takes the lock of a table again that a prepared transaction had before a restart, when
    /// there are no sessions yet.
    pub fn enter(&mut self, state: Arc<S>, usage: TableUse) {
        let is_taken = state.fast_path().try_enter(usage);
        debug_assert!(is_taken, "nobody locks tables before there are sessions");
        if is_taken {
            self.0.push((state, usage));
        }
    }

    /// Releases all of them: the transaction has ended.
    #[inline]
    pub fn release(&mut self, control: &Control) {
        if !self.0.is_empty() {
            self.release_from(0, control);
        }
    }
}

impl<S: HasFastPath> Drop for HeldTables<S> {
    fn drop(&mut self) {
        for (state, usage) in self.0.drain(..) {
            state.fast_path().leave(usage);
        }
    }
}

/// The locks of a statement that is its own transaction: on what its plan names, which outlives it.
pub struct StatementTables<'a, S: HasFastPath> {
    tables: SmallVec<[(&'a S, TableUse); 4]>,
    control: &'a Control,
}

impl<'a, S: HasFastPath> StatementTables<'a, S> {
    /// No locks yet, of a statement of the session that `control` is about.
    pub fn none(control: &'a Control) -> StatementTables<'a, S> {
        StatementTables {
            tables: SmallVec::new(),
            control,
        }
    }

    #[inline]
    fn put(&mut self, used: Use<'a, S>) {
        self.control
            .held
            .put(self.tables.len(), used.id, used.usage);
        self.tables.push((used.state, used.usage));
    }

    #[inline]
    fn release(&mut self) {
        self.control.held.clear(0, self.tables.len());
        for (state, usage) in &self.tables {
            state.fast_path().leave(*usage);
        }
        self.tables.clear();
    }
}

impl<S: HasFastPath> Drop for StatementTables<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

/// What keeps the locks of a statement, and so for how long they are held.
pub enum MdlScope<'k, 'a, S: HasFastPath> {
    /// The statement is a transaction of its own.
    Statement(&'k mut StatementTables<'a, S>),
    /// The statement is part of a transaction, which keeps them to its end.
    Transaction(&'k mut HeldTables<S>),
}

impl<'a, S: HasFastPath + 'static> MdlScope<'_, 'a, S> {
    /// Takes a lock on the fast path, unless that is closed.
    #[inline]
    pub fn try_take(&mut self, used: Use<'a, S>, control: &Control) -> bool {
        match self {
            MdlScope::Statement(tables) => {
                if !used.state.fast_path().try_enter(used.usage) {
                    return false;
                }
                tables.put(used);
            }
            MdlScope::Transaction(tables) => {
                if tables.covers(used) {
                    return true;
                }
                if !used.state.fast_path().try_enter(used.usage) {
                    return false;
                }
                tables.put(used, control);
            }
        }
        true
    }

    fn len(&self) -> usize {
        match self {
            MdlScope::Statement(_) => 0,
            MdlScope::Transaction(tables) => tables.0.len(),
        }
    }

    /// Takes the locks of all that a statement uses. While it waits it holds none of them, but
    /// those of its transaction from before.
    #[inline]
    pub fn take(&mut self, uses: &impl Uses<'a, S>, context: MdlContext<'_>) -> Result<()> {
        let before = self.len();
        let mut is_barred = false;
        uses.each(|used| {
            is_barred = is_barred || !self.try_take(used, context.control);
        });
        match is_barred {
            false => Ok(()),
            true => self.wait(uses, before, context),
        }
    }

    #[cold]
    fn wait(
        &mut self,
        uses: &impl Uses<'a, S>,
        before: usize,
        context: MdlContext<'_>,
    ) -> Result<()> {
        match self {
            MdlScope::Statement(tables) => tables.release(),
            MdlScope::Transaction(tables) => tables.release_from(before, context.control),
        }
        let mut missing: SmallVec<[Use<'a, S>; 8]> = SmallVec::new();
        uses.each(|used| match self {
            MdlScope::Transaction(tables) if tables.covers(used) => {}
            _ => missing.push(used),
        });
        let wants = missing.iter().map(|used| used.want()).collect();
        context
            .requester
            .locks
            .metadata
            .enter(context.requester, wants)?;
        for used in missing {
            match self {
                MdlScope::Statement(tables) => tables.put(used),
                MdlScope::Transaction(tables) => tables.put(used, context.control),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_a_table_and_a_use() {
        for usage in [TableUse::Read, TableUse::Write] {
            let word = encode(TableId(7), usage);
            assert_eq!(decode(word), Some((TableId(7), usage.mode())));
        }
        assert_eq!(decode(0), None);
    }

    #[test]
    fn others_see_all_tables_of_a_transaction() {
        let held = Held::default();
        for number in 0..FIRST + 3 {
            held.put(number, TableId(number as u32), TableUse::Read);
        }
        assert_eq!(held.tables().len(), FIRST + 3);
        held.clear(FIRST + 1, FIRST + 3);
        assert_eq!(held.tables().len(), FIRST + 1);
        held.clear(0, FIRST + 1);
        assert!(held.tables().is_empty());
    }
}
