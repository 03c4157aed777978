//! Exclusive metadata locks: for the length of a DDL statement, and LOCK TABLES.
//!
//! A statement holds none of its tables while it waits for one of them, so it never stands in the way of those
//! it waits for. A table may be dropped, renamed or altered while a statement waits for its lock: then
//! the name is looked up again.
//!
//! LOCK TABLES … WRITE holds a table's metadata lock exclusive until UNLOCK TABLES. … READ takes it
//! exclusive for a moment, so that nobody is inside, says in the table's state that it is read-locked,
//! and goes on with a shared lock: others' reads pass, others' writes wait ([`wait_until_writable`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use compact_str::CompactString;
use porpoise_locks::{Deadline, Owner, ReaderWriter};
use porpoise_sql::ast;

use crate::catalog::{Relation, Table, TableState};
use crate::ddl::{Ddl, Name};
use crate::error::{Error, Result};
use crate::planner::plan::TableUse;
use crate::session::SessionState;

/// How often a waiting statement looks whether it was killed.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// Holds a table's metadata lock as the writer, until it is dropped.
pub struct Exclusive {
    state: Option<Arc<TableState>>,
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if let Some(state) = &self.state {
            state.metadata_lock.unlock_exclusive();
        }
    }
}

/// As whom a session writes.
fn owner(session: &SessionState) -> Owner {
    Owner::new(session.connection_id)
}

/// Waits for a table's lock.
fn wait(ddl: &Ddl<'_>, state: &Arc<TableState>) -> Result<Exclusive> {
    let session: &SessionState = ddl.session;
    let entered = || {
        Ok(Exclusive {
            state: Some(Arc::clone(state)),
        })
    };
    if state.metadata_lock.try_exclusive(owner(session)) {
        return entered();
    }
    ddl.shared.before_waiting();
    let deadline = Instant::now() + session.metadata_lock_timeout();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if state
            .metadata_lock
            .exclusive_until(owner(session), &Deadline::after(left.min(INTERRUPT_CHECK)))
        {
            return entered();
        }
        if session.interrupt.is_set() {
            return Err(session.interrupt_error());
        }
        if left.is_zero() {
            return Err(Error::lock_wait_timeout());
        }
    }
}

/// Finds a base table and locks it. Temporary tables need no lock.
pub fn table(ddl: &Ddl<'_>, name: &Name) -> Result<(Arc<Table>, Exclusive)> {
    loop {
        let table = ddl.table(name)?;
        if table.temporary {
            return Ok((table, Exclusive { state: None }));
        }
        if ddl.session.locked_tables.mode(&table.state) == Some(Mode::Write) {
            return Ok((table, Exclusive { state: None }));
        }
        let held = wait(ddl, &table.state)?;
        if ddl
            .table(name)
            .is_ok_and(|now| now.version == table.version)
        {
            return Ok((table, held));
        }
    }
}

/// Finds a base table and locks it if that needs no waiting.
fn try_table(ddl: &Ddl<'_>, name: &Name) -> Result<Option<(Arc<Table>, Exclusive)>> {
    let table = ddl.table(name)?;
    let needs_none =
        table.temporary || ddl.session.locked_tables.mode(&table.state) == Some(Mode::Write);
    if needs_none {
        return Ok(Some((table, Exclusive { state: None })));
    }
    if !table.state.metadata_lock.try_exclusive(owner(ddl.session)) {
        return Ok(None);
    }
    let held = Exclusive {
        state: Some(Arc::clone(&table.state)),
    };
    let is_current = ddl
        .table(name)
        .is_ok_and(|now| now.version == table.version);
    Ok(is_current.then_some((table, held)))
}

/// Finds and locks several base tables. Nothing is held while one is waited for: a transaction that is in
/// one of them may be waiting for another. The result is in the order asked for.
pub fn tables(ddl: &Ddl<'_>, names: &[Name]) -> Result<Vec<(Arc<Table>, Exclusive)>> {
    let mut first: Option<usize> = None;
    loop {
        let mut locked: Vec<Option<(Arc<Table>, Exclusive)>> = names.iter().map(|_| None).collect();
        if let Some(first) = first {
            locked[first] = Some(table(ddl, &names[first])?);
        }
        let mut busy = None;
        for (position, name) in names.iter().enumerate() {
            if locked[position].is_none() {
                locked[position] = try_table(ddl, name)?;
                if locked[position].is_none() {
                    busy = Some(position);
                    break;
                }
            }
        }
        if busy.is_none() {
            return Ok(locked.into_iter().flatten().collect());
        }
        first = busy;
    }
}

// ---------------------------------------------------------------------------------------------------------
// LOCK TABLES
// ---------------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
}

/// The tables that a session has locked by LOCK TABLES; given free when dropped.
#[derive(Default)]
pub struct LockedTables(Vec<Locked>);

/// A table that LOCK TABLES holds, by one name or several.
struct Locked {
    state: Arc<TableState>,
    mode: Mode,
    names: Vec<CompactString>,
}

impl LockedTables {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn mode(&self, state: &Arc<TableState>) -> Option<Mode> {
        self.0
            .iter()
            .find(|held| Arc::ptr_eq(&held.state, state))
            .map(|held| held.mode)
    }

    /// Refuses a name that LOCK TABLES did not say (1100): a table is locked under its aliases.
    #[inline]
    pub fn admits_name(&self, table: &Table, name: &str) -> Result<()> {
        if self.is_empty() || table.temporary {
            return Ok(());
        }
        let said = self.0.iter().any(|held| {
            Arc::ptr_eq(&held.state, &table.state) && held.names.iter().any(|known| known == name)
        });
        match said {
            true => Ok(()),
            false => Err(Error::table_not_locked(name)),
        }
    }

    /// Whether a statement may use a table, under LOCK TABLES (1099, 1100). True: its lock is held already.
    pub fn admits(&self, table: &Table, usage: TableUse) -> Result<bool> {
        if self.is_empty() || table.temporary {
            return Ok(table.temporary);
        }
        match (self.mode(&table.state), usage) {
            (None, _) => Err(Error::table_not_locked(&table.name)),
            (Some(Mode::Read), TableUse::Write) => {
                Err(Error::table_not_locked_for_write(&table.name))
            }
            _ => Ok(true),
        }
    }

    /// UNLOCK TABLES.
    pub fn clear(&mut self) {
        for Locked { state, mode, .. } in self.0.drain(..) {
            match mode {
                Mode::Write => state.metadata_lock.unlock_exclusive(),
                Mode::Read => {
                    state.read_locks.fetch_sub(1, Ordering::SeqCst);
                    state.metadata_lock.unlock_shared();
                }
            }
        }
    }
}

impl Drop for LockedTables {
    fn drop(&mut self) {
        self.clear();
    }
}

/// LOCK TABLES: all of them, in order of name, or none.
pub fn lock_tables(ddl: &mut Ddl<'_>, locks: &[ast::LockTable]) -> Result<()> {
    ddl.session.locked_tables.clear();
    let mut wanted: Vec<(Name, Mode, Vec<CompactString>)> = Vec::with_capacity(locks.len());
    for lock in locks {
        let name = ddl.resolve(&lock.table)?;
        let mode = if lock.write { Mode::Write } else { Mode::Read };
        match ddl
            .shared
            .catalog
            .load()
            .relation(&name.schema, &name.table)
        {
            _ if ddl.temporary(&name).is_some() => {}
            // A view's own tables are not locked with it.
            Some(Relation::Virtual(_) | Relation::View(_)) => {}
            _ => {
                let called = lock.alias.as_ref().unwrap_or(&lock.table.name).0.clone();
                match wanted.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, known, names)) => {
                        if mode == Mode::Write {
                            *known = mode;
                        }
                        names.push(called);
                    }
                    None => wanted.push((name, mode, vec![called])),
                }
            }
        }
    }
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut held = LockedTables::default();
    for (name, mode, names) in wanted {
        let (table, mut exclusive) = self::table(ddl, &name)?;
        // From here on `held` gives it free.
        exclusive.state = None;
        if mode == Mode::Read {
            table.state.read_locks.fetch_add(1, Ordering::SeqCst);
            table.state.metadata_lock.unlock_exclusive();
            table.state.metadata_lock.shared();
        }
        held.0.push(Locked {
            state: Arc::clone(&table.state),
            mode,
            names,
        });
    }
    ddl.session.locked_tables = held;
    Ok(())
}

/// Waits until no other session has a table locked for reading.
pub fn wait_until_writable(session: &SessionState, table: &Table) -> Result<()> {
    /// How often a waiting statement looks.
    const PAUSE: Duration = Duration::from_millis(5);
    let deadline = Instant::now() + session.metadata_lock_timeout();
    while table.state.is_read_locked() {
        if session.interrupt.is_set() {
            return Err(session.interrupt_error());
        }
        if Instant::now() >= deadline {
            return Err(Error::lock_wait_timeout());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
