//! Exclusive metadata locks: for the length of a DDL statement, and LOCK TABLES.
//!
//! A statement holds none of its tables while it waits for one of them, so it never stands in the way of those
//! it waits for, and two that want the same tables can't wait for each other. A table may be dropped, renamed or altered
//! while a statement waits for its lock: then the name is looked up again.
//!
//! LOCK TABLES … WRITE holds a table's metadata lock exclusive until UNLOCK TABLES. … READ takes it
//! exclusive for a moment, so that nobody is inside, says in the table's state that it is read-locked,
//! and goes on with a shared lock: others' reads pass, others' writes wait (`session::metadata`).
//! FLUSH TABLES … WITH READ LOCK is the same for the tables it names.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use compact_str::CompactString;
use porpoise_locks::{Deadline, Owner, ReaderWriter};
use porpoise_sql::ast;

use crate::catalog::{Relation, Table, TableState};
use crate::ddl::{Ddl, Name};
use crate::error::{Error, Result};
use crate::planner::plan::TableUse;
use crate::session::SessionState;
use crate::session::metadata::{self, Wanted};
use crate::session::process::Control;

/// Holds a table's metadata lock as the writer, until it is dropped.
pub struct Exclusive {
    held: Option<(Arc<Table>, Option<Arc<Control>>)>,
}

impl Exclusive {
    const NONE: Exclusive = Exclusive { held: None };

    fn new(ddl: &Ddl<'_>, table: &Arc<Table>) -> Exclusive {
        let control = ddl.shared.processes.find(ddl.session.connection_id);
        if let Some(control) = &control {
            control.held.put_beside(table.id, metadata::Mode::Exclusive);
        }
        Exclusive {
            held: Some((Arc::clone(table), control)),
        }
    }

    /// Hands the lock over: whoever takes it gives it back.
    fn forget(mut self) {
        if let Some((table, Some(control))) = self.held.take() {
            control
                .held
                .remove_beside(table.id, metadata::Mode::Exclusive);
        }
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if let Some((table, control)) = self.held.take() {
            if let Some(control) = control {
                control
                    .held
                    .remove_beside(table.id, metadata::Mode::Exclusive);
            }
            table.state.metadata_lock.unlock_exclusive();
        }
    }
}

/// As whom a session writes.
fn owner(session: &SessionState) -> Owner {
    Owner::new(session.connection_id)
}

/// Waits for a table's lock.
fn wait(ddl: &Ddl<'_>, table: &Arc<Table>) -> Result<Exclusive> {
    let (lock, owner) = (&table.state.metadata_lock, owner(ddl.session));
    if !lock.try_exclusive(owner) {
        let wanted = Wanted::Table(table.id, metadata::Mode::Exclusive);
        metadata::wait(ddl.shared, ddl.session, wanted, |slice| {
            lock.exclusive_until(owner, &Deadline::after(slice))
        })?;
    }
    Ok(Exclusive::new(ddl, table))
}

/// Finds a base table and locks it. Temporary tables need no lock.
pub fn table(ddl: &Ddl<'_>, name: &Name) -> Result<(Arc<Table>, Exclusive)> {
    loop {
        let table = ddl.table(name)?;
        if table.temporary {
            return Ok((table, Exclusive::NONE));
        }
        if ddl.session.locked_tables.mode(&table.state) == Some(Mode::Write) {
            return Ok((table, Exclusive::NONE));
        }
        let held = wait(ddl, &table)?;
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
        return Ok(Some((table, Exclusive::NONE)));
    }
    if !table.state.metadata_lock.try_exclusive(owner(ddl.session)) {
        return Ok(None);
    }
    let held = Exclusive::new(ddl, &table);
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

impl Mode {
    fn shown(self) -> metadata::Mode {
        match self {
            Mode::Read => metadata::Mode::SharedReadOnly,
            Mode::Write => metadata::Mode::SharedNoReadWrite,
        }
    }
}

/// The tables that a session has locked by LOCK TABLES; given free when dropped.
#[derive(Default)]
pub struct LockedTables {
    tables: Vec<Locked>,
    control: Option<Arc<Control>>,
}

/// A table that LOCK TABLES holds, by one name or several.
struct Locked {
    table: Arc<Table>,
    mode: Mode,
    names: Vec<CompactString>,
}

impl LockedTables {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn mode(&self, state: &Arc<TableState>) -> Option<Mode> {
        self.tables
            .iter()
            .find(|held| Arc::ptr_eq(&held.table.state, state))
            .map(|held| held.mode)
    }

    /// Refuses a name that LOCK TABLES did not say (1100): a table is locked under its aliases.
    #[inline]
    pub fn admits_name(&self, table: &Table, name: &str) -> Result<()> {
        if self.is_empty() || table.temporary {
            return Ok(());
        }
        let said = self.tables.iter().any(|held| {
            Arc::ptr_eq(&held.table.state, &table.state)
                && held.names.iter().any(|known| known == name)
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
        for Locked { table, mode, .. } in self.tables.drain(..) {
            if let Some(control) = &self.control {
                control.held.remove_beside(table.id, mode.shown());
            }
            let state = &table.state;
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

/// LOCK TABLES: all of them, or none. None is held while one of them is waited for.
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
    let names: Vec<Name> = wanted.iter().map(|(name, ..)| name.clone()).collect();
    let exclusive = tables(ddl, &names)?;
    let control = ddl.shared.processes.find(ddl.session.connection_id);
    let mut held = LockedTables {
        tables: Vec::with_capacity(wanted.len()),
        control,
    };
    for ((table, exclusive), (_, mode, names)) in exclusive.into_iter().zip(wanted) {
        if let Some(control) = &held.control {
            control.held.put_beside(table.id, mode.shown());
        }
        // From here on `held` gives it free.
        exclusive.forget();
        if mode == Mode::Read {
            table.state.read_locks.fetch_add(1, Ordering::SeqCst);
            table.state.metadata_lock.downgrade();
        }
        held.tables.push(Locked { table, mode, names });
    }
    ddl.session.locked_tables = held;
    Ok(())
}
