//! Metadata locks that DDL takes, and LOCK TABLES.
//!
//! A statement asks for all of its tables and views at once, and holds none of them while it waits:
//! it stands in front of newcomers on each of them ([`porpoise_mdl::queue`]). A table may be
//! dropped, renamed or altered meanwhile: then the names are looked up again.
//!
//! ```text
//! ALTER TABLE      SHARED_UPGRADABLE ──► SHARED_NO_WRITE ──► EXCLUSIVE      thinks, copies rows, puts the new in place
//! other DDL                                                  EXCLUSIVE
//! LOCK TABLES      SHARED_READ_ONLY, SHARED_NO_READ_WRITE                   until UNLOCK TABLES
//! ```
//!
//! Before any of them stands the schema: INTENTION_EXCLUSIVE for what changes something in it,
//! EXCLUSIVE for CREATE, ALTER and DROP DATABASE ([`schemas`]). FLUSH TABLES … WITH READ LOCK is
//! LOCK TABLES … READ of the tables it names.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::program::RoutineLock;
use porpoise_catalog::{Catalog, Relation, Table, TableId, TableState, TemporaryTables};
use porpoise_core::error::{Error, Result};
use porpoise_mdl::{
    self as metadata, Duration, HasFastPath, MdlRequest, MdlRequester, MdlTicket, Object,
};
use porpoise_planner::plan::TableUse;
use porpoise_planner::{Context, UnknownContents};
use porpoise_programs::functions::PROGRAMS;
use porpoise_session::locked_tables::{Locked, LockedMode, LockedTables};
use porpoise_sql::ast;

use crate::{Ddl, Name};

/// What can be locked of a relation.
fn lockable(relation: &Relation) -> Option<(TableId, &Arc<TableState>)> {
    match relation {
        Relation::Table(table) => Some((table.id, &table.state)),
        Relation::View(view) => Some((view.id, &view.state)),
        Relation::Virtual(_) => None,
    }
}

fn want(
    id: TableId,
    state: &Arc<TableState>,
    mode: metadata::Mode,
    duration: Duration,
) -> MdlRequest {
    let fast_path: Arc<dyn HasFastPath> = Arc::<TableState>::clone(state);
    MdlRequest {
        object: state.object(id),
        mode,
        duration,
        fast_path: Some(fast_path),
    }
}

fn schema_want(schema: &CompactString, mode: metadata::Mode, duration: Duration) -> MdlRequest {
    MdlRequest {
        object: Object::Schema(schema.clone()),
        mode,
        duration,
        fast_path: None,
    }
}

impl Ddl<'_> {
    fn requester(&self) -> MdlRequester<'_> {
        self.session.requester(&self.shared.locks)
    }

    fn acquire(&self, wants: Vec<MdlRequest>) -> Result<MdlTicket> {
        self.shared.locks.metadata.acquire(self.requester(), wants)
    }

    /// Makes locks stronger.
    pub fn upgrade(&self, grant: &mut MdlTicket, mode: metadata::Mode) -> Result<()> {
        grant.upgrade(self.requester(), mode)
    }
}

/// Locks schemas, that need not exist.
pub fn schemas<'n>(
    ddl: &Ddl<'_>,
    names: impl IntoIterator<Item = &'n CompactString>,
    mode: metadata::Mode,
) -> Result<MdlTicket> {
    let mut names: Vec<&CompactString> = names.into_iter().collect();
    names.sort();
    names.dedup();
    let want = |name: &CompactString| schema_want(name, mode, Duration::Transaction);
    ddl.acquire(names.into_iter().map(want).collect())
}

/// Finds base tables and locks them, in the order asked for. Temporary ones need no lock.
pub fn tables(
    ddl: &Ddl<'_>,
    names: &[Name],
    mode: metadata::Mode,
) -> Result<(Vec<Arc<Table>>, MdlTicket)> {
    loop {
        let find = || {
            let tables = names.iter().map(|name| ddl.table(name));
            tables.collect::<Result<Vec<Arc<Table>>>>()
        };
        let tables = find()?;
        let mut wants: Vec<MdlRequest> = Vec::with_capacity(tables.len());
        for table in &tables {
            let own = ddl.session.locked_tables.mode(&table.state);
            if own == Some(LockedMode::Read) && !table.temporary {
                return Err(Error::table_not_locked_for_write(&table.name));
            }
            let is_own = own == Some(LockedMode::Write);
            let wanted = want(table.id, &table.state, mode, Duration::Transaction);
            let is_known = wants.iter().any(|known| known.object == wanted.object);
            if !table.temporary && !is_own && !is_known {
                wants.push(wanted);
            }
        }
        let grant = ddl.acquire(wants)?;
        let now = find();
        let is_current = now.is_ok_and(|now| {
            let mut pairs = now.iter().zip(&tables);
            pairs.all(|(now, table)| now.version == table.version)
        });
        if is_current {
            return Ok((tables, grant));
        }
    }
}

/// Finds a base table and locks it exclusive.
pub fn table(ddl: &Ddl<'_>, name: &Name) -> Result<(Arc<Table>, MdlTicket)> {
    let (tables, grant) = tables(ddl, std::slice::from_ref(name), metadata::Mode::Exclusive)?;
    let table = tables.into_iter().next();
    let table = table.ok_or_else(|| Error::no_such_table(&name.schema, &name.table))?;
    Ok((table, grant))
}

/// Locks exclusive what there is of these names, tables and views; temporary tables don't count.
pub fn relations(ddl: &Ddl<'_>, names: &[Name]) -> Result<MdlTicket> {
    loop {
        let find = || {
            let catalog = ddl.shared.catalog.load();
            let mut found: Vec<(TableId, Arc<TableState>)> = Vec::new();
            for name in names {
                let relation = catalog.relation(&name.schema, &name.table);
                if let Some((id, state)) = relation.as_ref().and_then(lockable)
                    && found.iter().all(|(known, _)| *known != id)
                {
                    found.push((id, Arc::clone(state)));
                }
            }
            found
        };
        let found = find();
        let is_own = |state| ddl.session.locked_tables.mode(state) == Some(LockedMode::Write);
        let wants = found.iter().filter(|(_, state)| !is_own(state));
        let exclusive = |(id, state): &(TableId, Arc<TableState>)| {
            want(*id, state, metadata::Mode::Exclusive, Duration::Transaction)
        };
        let grant = ddl.acquire(wants.map(exclusive).collect())?;
        let ids = |found: &[(TableId, _)]| found.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        if ids(&find()) == ids(&found) {
            return Ok(grant);
        }
    }
}

/// Locks routines exclusively, which `find` finds in the catalog; what is found changes while others
/// are waited for.
pub fn routines(ddl: &Ddl<'_>, find: impl Fn(&Catalog) -> Vec<RoutineLock>) -> Result<MdlTicket> {
    loop {
        let found = find(&ddl.shared.catalog.load());
        let exclusive = |routine: &RoutineLock| {
            let mode = metadata::Mode::Exclusive;
            want(routine.id, &routine.state, mode, Duration::Transaction)
        };
        let grant = ddl.acquire(found.iter().map(exclusive).collect())?;
        let ids = |found: &[RoutineLock]| found.iter().map(|lock| lock.id).collect::<Vec<_>>();
        if ids(&find(&ddl.shared.catalog.load())) == ids(&found) {
            return Ok(grant);
        }
    }
}

// ---------------------------------------------------------------------------------------------------------
// LOCK TABLES
// ---------------------------------------------------------------------------------------------------------

/// LOCK TABLES: all of them, or none. None is held while one of them is waited for.
pub fn lock_tables(ddl: &mut Ddl<'_>, locks: &[ast::LockTable]) -> Result<()> {
    ddl.session.locked_tables.clear();
    let mut wanted: Vec<Wanted> = Vec::with_capacity(locks.len());
    for lock in locks {
        let name = ddl.resolve(&lock.table)?;
        let mode = if lock.write {
            LockedMode::Write
        } else {
            LockedMode::Read
        };
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
                if lock.write {
                    ddl.check_not_read_only(&name.schema)?;
                }
                let called = lock.alias.as_ref().unwrap_or(&lock.table.name).0.clone();
                match wanted.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, known, names)) => {
                        if mode == LockedMode::Write {
                            *known = mode;
                        }
                        names.push(called);
                    }
                    None => wanted.push((name, mode, vec![called])),
                }
            }
        }
    }
    add_tables_of_triggers(ddl, &mut wanted)?;
    let find = |ddl: &Ddl<'_>| {
        let tables = wanted.iter().map(|(name, ..)| ddl.table(name));
        tables.collect::<Result<Vec<Arc<Table>>>>()
    };
    let (tables, grant) = loop {
        let tables = find(ddl)?;
        let mut wants: Vec<MdlRequest> = Vec::with_capacity(tables.len());
        if wanted.iter().any(|(_, mode, _)| *mode == LockedMode::Write) {
            wants.push(metadata::intention(&ddl.shared.locks));
        }
        for (table, (name, mode, _)) in tables.iter().zip(&wanted) {
            // What may be altered under the lock needs its schema.
            let intention = metadata::Mode::IntentionExclusive;
            let schema = schema_want(&name.schema, intention, Duration::Explicit);
            let is_known = wants.iter().any(|known| known.object == schema.object);
            if *mode == LockedMode::Write && !is_known {
                wants.push(schema);
            }
            wants.push(want(
                table.id,
                &table.state,
                mode.metadata(),
                Duration::Explicit,
            ));
        }
        let grant = ddl.acquire(wants)?;
        if find(ddl).is_ok_and(|now| {
            let mut pairs = now.iter().zip(&tables);
            pairs.all(|(now, table)| now.version == table.version)
        }) {
            break (tables, grant);
        }
    };
    let held = |(table, (_, mode, names))| Locked { table, mode, names };
    ddl.session.locked_tables = LockedTables {
        tables: tables.into_iter().zip(wanted).map(held).collect(),
        ticket: grant,
    };
    Ok(())
}

/// A table that LOCK TABLES locks: how, and the names it may be called by.
type Wanted = (Name, LockedMode, Vec<CompactString>);

/// Adds what the triggers of tables that are locked for writing use: statements that fire them need
/// it (MySQL 8.4 manual, 15.3.6, "LOCK TABLES and Triggers").
fn add_tables_of_triggers(ddl: &Ddl<'_>, wanted: &mut Vec<Wanted>) -> Result<()> {
    use ast::TriggerEvent::{Delete, Insert, Update};
    let catalog = ddl.shared.catalog.load_full();
    let context = Context {
        catalog: &catalog,
        session: ddl.session,
        temporary_tables: &TemporaryTables::new(),
        parameters: &[],
        literals: &[],
        sql: b"",
        contents: &UnknownContents,
        variables: None,
        programs: Some(&PROGRAMS),
        trace: None,
    };
    let mut used = Vec::new();
    for (name, mode, _) in wanted.iter() {
        if *mode != LockedMode::Write {
            continue;
        }
        let Some(Relation::Table(table)) = catalog.relation(&name.schema, &name.table) else {
            continue;
        };
        if let Some(triggers) = (PROGRAMS.triggers)(&context, &table, &[Insert, Update, Delete])? {
            used.extend(triggers.uses.tables.iter().cloned());
        }
    }
    for (table, usage) in used {
        let name = Name {
            schema: table.schema.clone(),
            table: table.name.clone(),
        };
        let mode = match usage {
            TableUse::Write => LockedMode::Write,
            TableUse::Read => LockedMode::Read,
        };
        match wanted.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, known, names)) => {
                if mode == LockedMode::Write {
                    *known = mode;
                }
                if !names.contains(&name.table) {
                    names.push(name.table);
                }
            }
            None => {
                let names = vec![name.table.clone()];
                wanted.push((name, mode, names));
            }
        }
    }
    Ok(())
}
