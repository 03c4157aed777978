//! Metadata locks as sessions hold them: for a statement or a transaction, and who waits for whom.
//!
//! | mode | who | for how long | lets in |
//! | --- | --- | --- | --- |
//! | SHARED_READ | reads | statement, or transaction | all shared ones |
//! | SHARED_WRITE | changes, locking reads | statement, or transaction | SHARED_READ, SHARED_WRITE |
//! | SHARED_READ_ONLY | LOCK TABLES … READ | until UNLOCK TABLES | SHARED_READ, SHARED_READ_ONLY |
//! | SHARED_NO_READ_WRITE | LOCK TABLES … WRITE | until UNLOCK TABLES | nobody |
//! | EXCLUSIVE | DDL | statement | nobody |
//!
//! Shared modes enter the table's lock as readers, the others as its writer; a session that waits for a SHARED_READ_ONLY
//! one to go is told by the table's state ([`crate::ddl::lock`]).
//!
//! On the path of an ordinary statement that is all, and one store beside: what a session holds stands in a few words of
//! its own ([`Held`]), which others read when *they* have to wait. Only who waits takes a mutex.
//!
//! Before it sleeps, a waiter looks for a cycle, through all that sessions wait for each other for:
//!
//! ```text
//! a ── waits for a table that ──► b holds, and waits for a row that ──► c holds, and waits in GET_LOCK ──► a
//! ```
//!
//! Row locks know transactions; a session says which is its own. Storage's search for cycles of row locks asks
//! [`rows_behind`] where a transaction goes on that waits for no row. Whoever closes a cycle is refused (1213). A
//! session writes down what it holds before it sleeps, so the last to join a cycle sees all of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use porpoise_locks::{Deadline, Owner, PreferReader, ReaderWriter};
use porpoise_storage::TxnId;
use smallvec::SmallVec;

use crate::catalog::{Table, TableId};
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::planner::plan::TableUse;
use crate::session::SessionState;
use crate::session::process::Control;

/// How often a waiting statement looks whether it was killed.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);
/// How often it looks whether a lock that nobody wakes it for has gone.
const PAUSE: Duration = Duration::from_millis(5);

/// How a table is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    SharedRead,
    SharedWrite,
    SharedReadOnly,
    SharedNoReadWrite,
    Exclusive,
}

impl Mode {
    const ALL: [Mode; 5] = [
        Mode::SharedRead,
        Mode::SharedWrite,
        Mode::SharedReadOnly,
        Mode::SharedNoReadWrite,
        Mode::Exclusive,
    ];

    /// As `performance_schema.metadata_locks` says it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::SharedRead => "SHARED_READ",
            Mode::SharedWrite => "SHARED_WRITE",
            Mode::SharedReadOnly => "SHARED_READ_ONLY",
            Mode::SharedNoReadWrite => "SHARED_NO_READ_WRITE",
            Mode::Exclusive => "EXCLUSIVE",
        }
    }

    /// As it says for how long.
    pub fn duration(self) -> &'static str {
        match self {
            Mode::SharedReadOnly | Mode::SharedNoReadWrite => "EXPLICIT",
            _ => "TRANSACTION",
        }
    }

    /// Whether one who wants this waits for one who holds `held`.
    pub fn waits_for(self, held: Mode) -> bool {
        use Mode::{SharedRead, SharedReadOnly, SharedWrite};
        !matches!(
            (self, held),
            (SharedRead, SharedRead | SharedWrite | SharedReadOnly)
                | (SharedWrite, SharedRead | SharedWrite)
                | (SharedReadOnly, SharedRead | SharedReadOnly)
        )
    }
}

/// A table's lock in a word; 0 stands for none.
fn encode(table: TableId, mode: Mode) -> u64 {
    (u64::from(table.0) + 1) << 8 | mode as u64
}

fn decode(word: u64) -> Option<(TableId, Mode)> {
    let mode = Mode::ALL.get((word & 0xff) as usize)?;
    let id = u32::try_from((word >> 8).checked_sub(1)?).ok()?;
    Some((TableId(id), *mode))
}

/// As many tables of a statement or transaction are told of without a mutex.
const FIRST: usize = 8;

/// What a session holds, as others see it. Only the session itself changes it.
#[derive(Default)]
pub struct Held {
    first: [AtomicU64; FIRST],
    more: Mutex<Vec<u64>>,
    /// By LOCK TABLES, and by a DDL statement.
    beside: Mutex<Vec<u64>>,
    /// The session's storage transaction; the last one, if there is none now; 0: there never was.
    transaction: AtomicU64,
    has_global: AtomicBool,
}

impl Held {
    /// The session holds a table of its statement's or transaction's, by its number among them.
    #[inline]
    fn put(&self, number: usize, table: TableId, mode: Mode) {
        let word = encode(table, mode);
        match self.first.get(number) {
            Some(first) => first.store(word, Ordering::Release),
            None => {
                let mut more = self.more.lock();
                more.truncate(number - FIRST);
                more.push(word);
            }
        }
    }

    /// It gave all of them back, as many as it had.
    #[inline]
    fn clear(&self, count: usize) {
        for word in self.first.iter().take(count) {
            word.store(0, Ordering::Release);
        }
        if count > FIRST {
            self.more.lock().clear();
        }
    }

    pub fn put_beside(&self, table: TableId, mode: Mode) {
        self.beside.lock().push(encode(table, mode));
    }

    pub fn remove_beside(&self, table: TableId, mode: Mode) {
        let word = encode(table, mode);
        let mut beside = self.beside.lock();
        if let Some(place) = beside.iter().position(|held| *held == word) {
            beside.swap_remove(place);
        }
    }

    /// Says which storage transaction is the session's.
    #[inline]
    pub fn set_transaction(&self, transaction: TxnId) {
        self.transaction.store(transaction.0, Ordering::Release);
    }

    fn transaction(&self) -> Option<TxnId> {
        Some(self.transaction.load(Ordering::Acquire))
            .filter(|id| *id != 0)
            .map(TxnId)
    }

    /// All that it holds of tables.
    pub fn tables(&self) -> Vec<(TableId, Mode)> {
        let mut words: Vec<u64> = self
            .first
            .iter()
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        words.extend_from_slice(&self.more.lock());
        words.extend_from_slice(&self.beside.lock());
        words.into_iter().filter_map(decode).collect()
    }

    /// FLUSH TABLES WITH READ LOCK.
    pub fn has_global(&self) -> bool {
        self.has_global.load(Ordering::Acquire)
    }
}

/// The shared locks of a statement or transaction: each table it used, by the state all the table's versions share.
#[derive(Default)]
pub struct HeldTables(Vec<Arc<Table>>);

/// Who takes locks: a session, and where it says so.
#[derive(Clone, Copy)]
pub struct Taker<'a> {
    pub shared: &'a Shared,
    pub session: &'a SessionState,
    pub control: &'a Control,
}

impl HeldTables {
    /// Takes a table's lock, once a transaction.
    #[inline]
    pub fn take(&mut self, table: &Arc<Table>, usage: TableUse, taker: Taker<'_>) -> Result<()> {
        let known = self
            .0
            .iter()
            .position(|held| Arc::ptr_eq(&held.state, &table.state));
        let number = match known {
            Some(number) => number,
            None => {
                enter(table, taker)?;
                let number = self.0.len();
                self.0.push(Arc::clone(table));
                taker.control.held.put(number, table.id, Mode::SharedRead);
                number
            }
        };
        if usage == TableUse::Write {
            if table.state.is_read_locked() {
                wait_until_writable(table, taker)?;
            }
            if number < FIRST {
                taker.control.held.put(number, table.id, Mode::SharedWrite);
            }
        }
        Ok(())
    }

    #[inline]
    pub fn release(&mut self, control: &Control) {
        if self.0.is_empty() {
            return;
        }
        control.held.clear(self.0.len());
        for table in self.0.drain(..) {
            table.state.metadata_lock.unlock_shared();
        }
    }
}

impl Drop for HeldTables {
    fn drop(&mut self) {
        for table in self.0.drain(..) {
            table.state.metadata_lock.unlock_shared();
        }
    }
}

/// The shared locks of a statement that is its own transaction: on its tables as its plan names them, which outlives it.
pub struct StatementTables<'a> {
    tables: SmallVec<[&'a Table; 4]>,
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
    pub fn take(&mut self, table: &'a Table, usage: TableUse, taker: Taker<'_>) -> Result<()> {
        let mode = match usage {
            TableUse::Read => Mode::SharedRead,
            TableUse::Write => Mode::SharedWrite,
        };
        enter(table, taker)?;
        self.control.held.put(self.tables.len(), table.id, mode);
        self.tables.push(table);
        if usage == TableUse::Write && table.state.is_read_locked() {
            wait_until_writable(table, taker)?;
        }
        Ok(())
    }
}

impl Drop for StatementTables<'_> {
    #[inline]
    fn drop(&mut self) {
        self.control.held.clear(self.tables.len());
        for table in &self.tables {
            table.state.metadata_lock.unlock_shared();
        }
    }
}

#[inline]
fn enter(table: &Table, taker: Taker<'_>) -> Result<()> {
    let lock = &table.state.metadata_lock;
    if lock.try_shared() {
        return Ok(());
    }
    let wanted = Wanted::Table(table.id, Mode::SharedRead);
    wait(taker.shared, taker.session, wanted, |slice| {
        lock.shared_until(&Deadline::after(slice))
    })
}

/// Waits until no other session has the table locked for reading.
#[cold]
fn wait_until_writable(table: &Table, taker: Taker<'_>) -> Result<()> {
    let wanted = Wanted::Table(table.id, Mode::SharedWrite);
    wait(taker.shared, taker.session, wanted, |slice| {
        std::thread::sleep(slice.min(PAUSE));
        !table.state.is_read_locked()
    })
}

// ---------------------------------------------------------------------------------------------------------
// FLUSH TABLES WITH READ LOCK
// ---------------------------------------------------------------------------------------------------------

/// The lock that changes of anything take shared, and FLUSH TABLES WITH READ LOCK closes.
///
/// A change enters `changes`, then looks whether somebody holds the lock. Who takes it counts itself in first, then
/// waits until no change is inside. So one of the two sees the other.
#[derive(Default)]
pub struct GlobalReadLock {
    changes: PreferReader,
    holders: AtomicUsize,
}

/// A change that runs: held for a statement, and for a commit.
pub struct Changing<'a>(&'a GlobalReadLock);

impl Drop for Changing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.changes.unlock_shared();
    }
}

/// Holds the lock for a session, until dropped.
pub struct GlobalHold {
    shared: Arc<Shared>,
    control: Arc<Control>,
}

impl Drop for GlobalHold {
    fn drop(&mut self) {
        self.control.held.has_global.store(false, Ordering::Release);
        self.shared
            .global_read_lock
            .holders
            .fetch_sub(1, Ordering::SeqCst);
    }
}

/// Begins a change; waits while a session holds the global read lock.
#[inline]
pub fn begin_change<'a>(shared: &'a Shared, session: &SessionState) -> Result<Changing<'a>> {
    let lock = &shared.global_read_lock;
    lock.changes.shared();
    let changing = Changing(lock);
    if lock.holders.load(Ordering::SeqCst) == 0 {
        return Ok(changing);
    }
    drop(changing);
    wait_for_change(shared, session)
}

#[cold]
fn wait_for_change<'a>(shared: &'a Shared, session: &SessionState) -> Result<Changing<'a>> {
    if session.global_read_lock.is_some() {
        return Err(Error::conflicting_read_lock());
    }
    let lock = &shared.global_read_lock;
    let changing = Cell::new(None);
    wait(shared, session, Wanted::Change, |slice| {
        lock.changes.shared();
        let inside = Changing(lock);
        let is_open = lock.holders.load(Ordering::SeqCst) == 0;
        if is_open {
            changing.set(Some(inside));
        } else {
            drop(inside);
            std::thread::sleep(slice.min(PAUSE));
        }
        is_open
    })?;
    changing
        .into_inner()
        .ok_or_else(|| Error::engine_error("no change"))
}

/// FLUSH TABLES WITH READ LOCK.
pub fn take_global_read_lock(
    shared: &Arc<Shared>,
    session: &SessionState,
    control: &Arc<Control>,
) -> Result<GlobalHold> {
    let lock = &shared.global_read_lock;
    lock.holders.fetch_add(1, Ordering::SeqCst);
    // From here on a drop gives it back.
    let hold = GlobalHold {
        shared: Arc::clone(shared),
        control: Arc::clone(control),
    };
    let owner = Owner::new(session.connection_id);
    if !lock.changes.try_exclusive(owner) {
        wait(shared, session, Wanted::Global, |slice| {
            lock.changes.exclusive_until(owner, &Deadline::after(slice))
        })?;
    }
    lock.changes.unlock_exclusive();
    control.held.has_global.store(true, Ordering::Release);
    Ok(hold)
}

// ---------------------------------------------------------------------------------------------------------
// Waiting
// ---------------------------------------------------------------------------------------------------------

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Table(TableId, Mode),
    /// That nothing changes: the global read lock.
    Global,
    /// That the global read lock goes.
    Change,
}

impl Wanted {
    fn state(self) -> &'static str {
        match self {
            Wanted::Table(..) => "Waiting for table metadata lock",
            Wanted::Global | Wanted::Change => "Waiting for global read lock",
        }
    }
}

/// Who waits for what, by connection.
#[derive(Default)]
pub struct Waits {
    count: AtomicUsize,
    waiting: Mutex<HashMap<u64, Wanted>>,
}

impl Waits {
    /// What a session waits for.
    pub fn of(&self, session: u64) -> Option<Wanted> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.waiting.lock().get(&session).copied()
    }
}

/// A session that waits, until dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    session: u64,
    control: Option<Arc<Control>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waits = &self.shared.metadata_waits;
        waits.waiting.lock().remove(&self.session);
        waits.count.fetch_sub(1, Ordering::SeqCst);
        if let Some(control) = &self.control {
            control.set_state("executing");
        }
    }
}

/// Waits until `enter` says that it has entered: it is given a time to wait for, again and again. Ends by
/// lock_wait_timeout (1205), KILL, or at once if the wait would close a cycle (1213).
#[cold]
pub fn wait(
    shared: &Shared,
    session: &SessionState,
    wanted: Wanted,
    enter: impl Fn(Duration) -> bool,
) -> Result<()> {
    let deadline = Instant::now().checked_add(session.metadata_lock_timeout());
    let waits = &shared.metadata_waits;
    waits.count.fetch_add(1, Ordering::SeqCst);
    waits.waiting.lock().insert(session.connection_id, wanted);
    let waiting = Waiting {
        shared,
        session: session.connection_id,
        control: shared.processes.find(session.connection_id),
    };
    if let Some(control) = &waiting.control {
        control.set_state(wanted.state());
    }
    // Somebody may have gone before this session could be seen to wait.
    if enter(Duration::ZERO) {
        return Ok(());
    }
    if closes_cycle(shared, session.connection_id) {
        return Err(Error::deadlock());
    }
    shared.before_waiting();
    loop {
        let left = deadline.map_or(INTERRUPT_CHECK, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        });
        if enter(left.min(INTERRUPT_CHECK)) {
            return Ok(());
        }
        if session.interrupt.is_set() {
            return Err(session.interrupt_error());
        }
        if left.is_zero() {
            return Err(Error::lock_wait_timeout());
        }
    }
}

// ---------------------------------------------------------------------------------------------------------
// The graph of waits
// ---------------------------------------------------------------------------------------------------------

/// All sessions at a moment of the search.
struct Graph<'a> {
    shared: &'a Shared,
    sessions: Vec<Arc<Control>>,
}

impl Graph<'_> {
    fn of(shared: &Shared) -> Graph<'_> {
        Graph {
            shared,
            sessions: shared.processes.all(),
        }
    }

    /// Whom a session waits for outside of row locks.
    fn before(&self, session: u64) -> Vec<u64> {
        let Some(wanted) = self.shared.metadata_waits.of(session) else {
            return self
                .shared
                .named_locks
                .waits_for(session)
                .into_iter()
                .collect();
        };
        let others = self.sessions.iter().filter(|other| other.id != session);
        let in_the_way = others.filter(|other| match wanted {
            Wanted::Table(table, mode) => other
                .held
                .tables()
                .iter()
                .any(|&(held, other)| held == table && mode.waits_for(other)),
            Wanted::Change => other.held.has_global(),
            Wanted::Global => {
                let tables = other.held.tables();
                tables.iter().any(|(_, mode)| *mode != Mode::SharedRead)
            }
        });
        in_the_way.map(|other| other.id).collect()
    }

    fn session_of(&self, transaction: TxnId) -> Option<u64> {
        self.sessions
            .iter()
            .find(|session| session.held.transaction() == Some(transaction))
            .map(|session| session.id)
    }

    fn transaction_of(&self, session: u64) -> Option<TxnId> {
        self.sessions
            .iter()
            .find(|other| other.id == session)?
            .held
            .transaction()
    }
}

/// Whether a session that has said what it waits for waits for itself, through others.
pub fn closes_cycle(shared: &Shared, session: u64) -> bool {
    let graph = Graph::of(shared);
    let mut seen = HashSet::new();
    let mut rest = graph.before(session);
    while let Some(next) = rest.pop() {
        if next == session {
            return true;
        }
        if !seen.insert(next) {
            continue;
        }
        rest.extend(graph.before(next));
        if let Some(transaction) = graph.transaction_of(next) {
            let holders = shared.store.row_lock_obstacles(transaction);
            rest.extend(holders.into_iter().filter_map(|txn| graph.session_of(txn)));
        }
    }
    false
}

/// The transactions that one waits for, which waits for something else than a row.
pub fn rows_behind(shared: &Shared, transaction: TxnId) -> Vec<TxnId> {
    if shared.metadata_waits.count.load(Ordering::SeqCst) == 0 && !shared.named_locks.has_waiters()
    {
        return Vec::new();
    }
    let graph = Graph::of(shared);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut rest: Vec<u64> = graph.session_of(transaction).into_iter().collect();
    while let Some(next) = rest.pop() {
        for before in graph.before(next) {
            if seen.insert(before) {
                found.extend(graph.transaction_of(before));
                rest.push(before);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_a_table_and_a_mode() {
        for mode in Mode::ALL {
            assert_eq!(decode(encode(TableId(7), mode)), Some((TableId(7), mode)));
        }
        assert_eq!(decode(0), None);
    }

    #[test]
    fn others_see_all_tables_of_a_transaction() {
        let held = Held::default();
        for number in 0..FIRST + 3 {
            held.put(number, TableId(number as u32), Mode::SharedRead);
        }
        held.put_beside(TableId(99), Mode::SharedReadOnly);
        assert_eq!(held.tables().len(), FIRST + 4);
        held.clear(FIRST + 3);
        assert_eq!(held.tables(), [(TableId(99), Mode::SharedReadOnly)]);
        held.remove_beside(TableId(99), Mode::SharedReadOnly);
        assert!(held.tables().is_empty());
    }

    #[test]
    fn readers_pass_a_read_lock_and_writers_dont() {
        use Mode::*;
        assert!(!SharedRead.waits_for(SharedReadOnly));
        assert!(SharedWrite.waits_for(SharedReadOnly));
        assert!(SharedReadOnly.waits_for(SharedWrite));
        assert!(Mode::ALL.iter().all(|mode| Exclusive.waits_for(*mode)));
        assert!(
            Mode::ALL
                .iter()
                .all(|mode| mode.waits_for(SharedNoReadWrite))
        );
    }
}
