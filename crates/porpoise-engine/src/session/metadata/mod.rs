//! Metadata locks as sessions hold them: for a statement or a transaction.
//!
//! 1. A statement enters the [`door`] of each table and view that its plan names, as a reader or a writer, and notes in a few
//!    words of its own ([`Held`]) that it did. Nobody else writes there, and no mutex is taken.
//! 2. Where a door is barred it goes out again from all that it entered, and asks for them all at once in the [`queue`].
//! 3. DDL and LOCK TABLES ask there always ([`crate::ddl::lock`]); so does FLUSH TABLES WITH READ LOCK ([`global`]).
//! 4. Who has to wait looks for a cycle first, through all that sessions wait for each other for ([`graph`]).
//!
//! Which modes there are, and who waits for whom: [`mode`].

pub mod door;
pub mod global;
pub mod graph;
pub mod mode;
pub mod queue;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use porpoise_storage::TxnId;
use smallvec::SmallVec;

pub use door::{Door, HasDoor};
pub use global::{GlobalReadLock, begin_change, begin_commit, take_global_read_lock};
pub use graph::{closes_cycle, rows_behind};
pub use mode::Mode;
pub use queue::{Asker, Bell, Duration, Grant, MetadataLocks, Object, Want};

use crate::catalog::{Table, TableId, TableState};
use crate::engine::Shared;
use crate::error::Result;
use crate::planner::plan::{Plan, TableUse};
use crate::session::SessionState;
use crate::session::process::Control;

impl TableUse {
    /// The lock that a use takes.
    pub fn mode(self) -> Mode {
        match self {
            TableUse::Read => Mode::SharedRead,
            TableUse::Write => Mode::SharedWrite,
        }
    }
}

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

/// As many tables of a statement or transaction are told of without a mutex.
const FIRST: usize = 8;

/// What a session holds by being inside of doors, as others see it. Only the session itself changes it. What it holds by
/// tickets, the queue knows.
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

/// Who takes locks: a session, and where it says so.
#[derive(Clone, Copy)]
pub struct Taker<'a> {
    pub shared: &'a Shared,
    pub session: &'a SessionState,
    pub control: &'a Control,
}

/// A table or view that a statement uses.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    pub id: TableId,
    pub state: &'a Arc<TableState>,
    pub usage: TableUse,
}

impl<'a> Use<'a> {
    pub fn of(table: &'a Table, usage: TableUse) -> Use<'a> {
        Use {
            id: table.id,
            state: &table.state,
            usage,
        }
    }

    fn want(self) -> Want {
        let door: Arc<dyn HasDoor> = Arc::<TableState>::clone(self.state);
        Want {
            object: Object::Table(self.id),
            mode: self.usage.mode(),
            duration: Duration::Transaction,
            door: Some(door),
        }
    }
}

/// The locks of a transaction: each table and view it used, by the state that all its versions share.
#[derive(Default)]
pub struct HeldTables(Vec<(Arc<TableState>, TableUse)>);

impl HeldTables {
    /// Whether a use is covered: who may write may read.
    #[inline]
    fn covers(&self, used: Use<'_>) -> bool {
        self.0.iter().any(|(state, usage)| {
            Arc::ptr_eq(state, used.state)
                && (*usage == TableUse::Write || used.usage == TableUse::Read)
        })
    }

    #[inline]
    fn put(&mut self, used: Use<'_>, control: &Control) {
        control.held.put(self.0.len(), used.id, used.usage);
        self.0.push((Arc::clone(used.state), used.usage));
    }

    #[inline]
    fn release_from(&mut self, from: usize, control: &Control) {
        control.held.clear(from, self.0.len());
        for (state, usage) in self.0.drain(from..) {
            state.door.leave(usage);
        }
    }

    #[inline]
    pub fn release(&mut self, control: &Control) {
        if !self.0.is_empty() {
            self.release_from(0, control);
        }
    }
}

impl Drop for HeldTables {
    fn drop(&mut self) {
        for (state, usage) in self.0.drain(..) {
            state.door.leave(usage);
        }
    }
}

/// The locks of a statement that is its own transaction: on what its plan names, which outlives it.
pub struct StatementTables<'a> {
    tables: SmallVec<[(&'a TableState, TableUse); 4]>,
    control: &'a Control,
}

impl<'a> StatementTables<'a> {
    pub fn none(control: &'a Control) -> StatementTables<'a> {
        StatementTables {
            tables: SmallVec::new(),
            control,
        }
    }

    #[inline]
    fn put(&mut self, used: Use<'a>) {
        self.control
            .held
            .put(self.tables.len(), used.id, used.usage);
        self.tables.push((used.state, used.usage));
    }

    #[inline]
    fn release(&mut self) {
        self.control.held.clear(0, self.tables.len());
        for (state, usage) in &self.tables {
            state.door.leave(*usage);
        }
        self.tables.clear();
    }
}

impl Drop for StatementTables<'_> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

/// Who keeps the locks of a statement.
pub enum Keeper<'k, 'a> {
    Statement(&'k mut StatementTables<'a>),
    Transaction(&'k mut HeldTables),
}

impl<'a> Keeper<'_, 'a> {
    /// Enters a door, unless it is barred.
    #[inline]
    pub fn try_take(&mut self, used: Use<'a>, control: &Control) -> bool {
        match self {
            Keeper::Statement(tables) => {
                if !used.state.door.try_enter(used.usage) {
                    return false;
                }
                tables.put(used);
            }
            Keeper::Transaction(tables) => {
                if tables.covers(used) {
                    return true;
                }
                if !used.state.door.try_enter(used.usage) {
                    return false;
                }
                tables.put(used, control);
            }
        }
        true
    }

    fn len(&self) -> usize {
        match self {
            Keeper::Statement(_) => 0,
            Keeper::Transaction(tables) => tables.0.len(),
        }
    }

    /// Takes the locks of all that a statement uses. While it waits it holds none of them, but those of its transaction from
    /// before.
    #[inline]
    pub fn take(&mut self, plan_uses: &PlanUses<'a, '_>, taker: Taker<'_>) -> Result<()> {
        let before = self.len();
        let mut is_barred = false;
        plan_uses.each(|used| {
            is_barred = is_barred || !self.try_take(used, taker.control);
        });
        match is_barred {
            false => Ok(()),
            true => self.wait(plan_uses, before, taker),
        }
    }

    #[cold]
    fn wait(
        &mut self,
        plan_uses: &PlanUses<'a, '_>,
        before: usize,
        taker: Taker<'_>,
    ) -> Result<()> {
        match self {
            Keeper::Statement(tables) => tables.release(),
            Keeper::Transaction(tables) => tables.release_from(before, taker.control),
        }
        let mut missing: SmallVec<[Use<'a>; 8]> = SmallVec::new();
        plan_uses.each(|used| match self {
            Keeper::Transaction(tables) if tables.covers(used) => {}
            _ => missing.push(used),
        });
        let asker = Asker {
            shared: taker.shared,
            session: taker.session,
        };
        let wants = missing.iter().map(|used| used.want()).collect();
        taker.shared.metadata_locks.enter(asker, wants)?;
        for used in missing {
            match self {
                Keeper::Statement(tables) => tables.put(used),
                Keeper::Transaction(tables) => tables.put(used, taker.control),
            }
        }
        Ok(())
    }
}

/// What a plan uses that needs a lock: not what is temporary, nor what LOCK TABLES holds.
pub struct PlanUses<'a, 's> {
    plan: &'a Plan,
    session: &'s SessionState,
}

impl<'a, 's> PlanUses<'a, 's> {
    pub fn of(plan: &'a Plan, session: &'s SessionState) -> PlanUses<'a, 's> {
        PlanUses { plan, session }
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(Use<'a>)) {
        let locked = &self.session.locked_tables;
        for (table, usage) in self.plan.tables.iter().chain(&self.plan.related) {
            if !table.temporary && (locked.is_empty() || locked.mode(&table.state).is_none()) {
                take(Use::of(table, *usage));
            }
        }
        for (view, usage) in &self.plan.views {
            take(Use {
                id: view.id,
                state: &view.state,
                usage: *usage,
            });
        }
    }
}
