//! The tables that a session has locked by LOCK TABLES (MySQL 8.4 manual, 15.3.6).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Table, TableState};
use porpoise_core::error::{Error, Result};
use porpoise_mdl::{self as mdl, MdlTicket, TableUse};

/// READ or WRITE, as LOCK TABLES says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedMode {
    /// Every session may read; none, not even this one, may write.
    Read,
    /// Only this session may read and write.
    Write,
}

impl LockedMode {
    /// The metadata lock that it takes.
    pub fn metadata(self) -> mdl::Mode {
        match self {
            LockedMode::Read => mdl::Mode::SharedReadOnly,
            LockedMode::Write => mdl::Mode::SharedNoReadWrite,
        }
    }
}

/// The tables that a session has locked by LOCK TABLES; given free when dropped.
#[derive(Default)]
pub struct LockedTables {
    /// Each table once, however many names it has.
    pub tables: Vec<Locked>,
    /// Holds their metadata locks.
    pub ticket: MdlTicket,
}

/// A table that LOCK TABLES holds, by one name or several.
pub struct Locked {
    /// Its definition when it was locked.
    pub table: Arc<Table>,
    /// The stronger mode, where the statement lists the table under several names.
    pub mode: LockedMode,
    /// The names it may be called by: its own, or its aliases.
    pub names: Vec<CompactString>,
}

impl LockedTables {
    /// Whether no LOCK TABLES is in force, and the session may use any table.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The mode in which LOCK TABLES holds the table of that state; `None` if it does not hold it.
    pub fn mode(&self, state: &Arc<TableState>) -> Option<LockedMode> {
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

    /// Refuses a table that LOCK TABLES did not lock, or not for what is done to it (1099, 1100).
    pub fn admits(&self, table: &Table, usage: TableUse) -> Result<()> {
        if self.is_empty() || table.temporary {
            return Ok(());
        }
        match (self.mode(&table.state), usage) {
            (None, _) => Err(Error::table_not_locked(&table.name)),
            (Some(LockedMode::Read), TableUse::Write) => {
                Err(Error::table_not_locked_for_write(&table.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to make, change or drop a table of that name that LOCK TABLES did not lock (1100).
    pub fn admits_change(&self, schema: &str, name: &str) -> Result<()> {
        let is_held = |held: &Locked| held.table.schema == schema && held.table.name == name;
        match self.is_empty() || self.tables.iter().any(is_held) {
            true => Ok(()),
            false => Err(Error::table_not_locked(name)),
        }
    }

    /// Forgets tables that were dropped. LOCK TABLES ends with the last of them.
    pub fn forget<'t>(&mut self, dropped: impl IntoIterator<Item = &'t Arc<Table>>) {
        for table in dropped {
            self.tables
                .retain(|held| !Arc::ptr_eq(&held.table.state, &table.state));
        }
        if self.tables.is_empty() {
            self.clear();
        }
    }

    /// Whether a table is locked for writing.
    pub fn writes(&self) -> bool {
        self.tables
            .iter()
            .any(|held| held.mode == LockedMode::Write)
    }

    /// UNLOCK TABLES.
    pub fn clear(&mut self) {
        *self = LockedTables::default();
    }
}
