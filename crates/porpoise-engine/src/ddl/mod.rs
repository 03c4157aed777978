//! Statements that change what exists: databases, tables, indexes, views.
//!
//! 1. [`execute`] resolves names and hands the statement to its file: [`create`], [`alter`], [`drop`],
//!    [`rename`], [`database`], [`view`].
//! 2. A statement locks the schemas it changes something in, then waits for the tables and views that exist ([`lock`]).
//! 3. Definitions are edited as `TableRecord`s ([`column`], [`table`], [`foreign_keys`]).
//! 4. Rows that must move are copied into new spaces ([`copy`]).
//! 5. One `catalog::Change` makes it durable, and visible to statements that begin afterwards.
//!
//! The session commits its transaction before it calls [`execute`] where [`commits_implicitly`] says so.

pub mod alter;
pub mod canonical;
pub mod check_table;
pub mod column;
pub mod copy;
pub mod create;
pub mod database;
pub mod drop;
pub mod foreign_keys;
pub mod lock;
pub mod maintain;
pub mod rename;
pub mod table;
#[cfg(test)]
pub(crate) mod tests;
pub mod view;

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_sql::ast;
use porpoise_storage::Commit;

use crate::accounts::check::Privileged;
use crate::accounts::statement::is_account_statement;
use crate::catalog::dictionary::BUILT_IN_SCHEMAS;
use crate::catalog::{Catalog, Relation, Table};
use crate::error::{Error, Level, Result};
use crate::mdl as metadata;
use crate::reply::{Completion, Reply};
use crate::session::Session;
use crate::session_state::SessionState;
use crate::shared::Shared;
use crate::show::told::no_routine;

/// A DDL statement on its way.
pub struct Ddl<'a> {
    pub shared: &'a Shared,
    pub session: &'a mut SessionState,
    /// The text that spans of the statement point into.
    pub sql: &'a [u8],
}

/// Runs a statement that is neither a query nor a change of rows: DDL here, SHOW and accounts in their modules.
pub fn execute(
    session: &mut Session,
    statement: Privileged<'_, ast::Statement>,
    sql: &[u8],
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    let statement = statement.get();
    if commits_implicitly(statement)
        && let Some(commit) = session.commit()?
    {
        commit.wait()?;
    }
    let shared = Arc::clone(&session.shared);
    let control = Arc::clone(&session.control);
    let _changing = match is_ddl(statement) || is_account_statement(statement) {
        true => Some(session.state.begin_change(&shared.locks, &control)?),
        false => None,
    };
    let mut completion = if is_ddl(statement) {
        change(&shared, &mut session.state, sql, statement)?
    } else if is_account_statement(statement) {
        crate::accounts::statement::execute(&shared, &mut session.state, statement)?;
        Completion::default()
    } else {
        return other(session, statement, reply);
    };
    completion.warnings = session.state.warning_count();
    session.state.row_count = completion.affected_rows as i64;
    reply.ok(&completion)?;
    Ok(None)
}

/// Statements that answer with rows, and those that do nothing here.
fn other(
    session: &mut Session,
    statement: &ast::Statement,
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    use ast::Statement as S;
    match statement {
        S::Show(show) => return crate::show::show(session, show, reply),
        S::Describe { table, column } => {
            return crate::show::describe(session, table, column.as_deref(), reply);
        }
        S::Maintain {
            action,
            tables,
            options,
        } => {
            maintain::maintain(session, *action, tables, options, reply)?;
            return Ok(None);
        }
        S::LockTables(locks) => lock_tables(session, locks)?,
        // It commits only what LOCK TABLES has begun.
        S::UnlockTables if session.state.locked_tables.is_empty() => {
            session.state.global_read_lock = None;
        }
        S::UnlockTables => {
            session.state.global_read_lock = None;
            let commit = session.commit()?;
            session.state.locked_tables.clear();
            if let Some(commit) = commit {
                commit.wait()?;
            }
        }
        S::Flush { targets, .. } => {
            for target in targets {
                if let ast::FlushTarget::Other(what) = target
                    && what.eq_ignore_ascii_case("HOSTS")
                {
                    session.shared.hosts.forget();
                }
                if let ast::FlushTarget::Tables {
                    tables,
                    read_lock,
                    export,
                } = target
                    && (*read_lock || *export)
                {
                    flush_with_read_lock(session, tables)?;
                }
            }
        }
        S::Call { name, .. } => {
            return Err(no_routine(&session.state, "PROCEDURE", name));
        }
        S::DropStored {
            kind,
            if_exists,
            name,
        } => {
            if name.schema.is_none() && session.state.schema.is_none() {
                return Err(Error::no_database_selected());
            }
            let error = match *kind {
                "EVENT" if *if_exists => Error::routine_does_not_exist("Event", &name.name.0),
                kind => no_routine(&session.state, kind, name),
            };
            if !if_exists {
                return Err(error);
            }
            session.state.warn(Level::Note, error.into_condition());
        }
        S::Unsupported { what, .. } => return Err(Error::not_supported_yet(what)),
        _ => return Err(Error::not_supported_yet("this statement")),
    }
    reply.ok(&Completion {
        warnings: session.state.warning_count(),
        ..Completion::default()
    })?;
    Ok(None)
}

/// Runs a DDL statement to its end, durably.
fn change(
    shared: &Shared,
    session: &mut SessionState,
    sql: &[u8],
    statement: &ast::Statement,
) -> Result<Completion> {
    let ddl = &mut Ddl {
        shared,
        session,
        sql,
    };
    use ast::Statement as S;
    let schemas = schemas_changed(ddl, statement)?;
    let _schemas = lock::schemas(ddl, &schemas, metadata::Mode::IntentionExclusive)?;
    match statement {
        S::CreateDatabase {
            name,
            if_not_exists,
            options,
        } => database::create(ddl, name, *if_not_exists, options),
        S::AlterDatabase { name, options } => database::alter(ddl, name.as_ref(), options),
        S::DropDatabase { name, if_exists } => database::drop(ddl, name, *if_exists),
        S::CreateTable(create) => create::create(ddl, create),
        S::CreateTableLike {
            temporary,
            if_not_exists,
            name,
            source,
        } => create::create_like(ddl, *temporary, *if_not_exists, name, source),
        S::AlterTable(alter) => alter::alter(ddl, &alter.table, &alter.actions),
        S::CreateIndex { index, table, .. } => {
            alter::alter(ddl, table, &[ast::AlterAction::AddIndex((**index).clone())])
        }
        S::DropIndex { name, table, .. } => {
            alter::alter(ddl, table, &[ast::AlterAction::DropIndex(name.clone())])
        }
        S::DropTable {
            temporary,
            if_exists,
            tables,
        } => drop::drop_tables(ddl, *temporary, *if_exists, tables),
        S::DropView { if_exists, views } => drop::drop_views(ddl, *if_exists, views),
        S::Truncate(name) => drop::truncate(ddl, name),
        S::RenameTable(pairs) => rename::rename(ddl, pairs),
        S::CreateView(create) => view::create(ddl, create),
        _ => Err(Error::not_supported_yet("this statement")),
    }
}

/// The schemas in which a statement makes, changes or drops something. (Statements on schemas themselves are not meant.)
fn schemas_changed(ddl: &Ddl<'_>, statement: &ast::Statement) -> Result<Vec<CompactString>> {
    use ast::Statement as S;
    let mut names: Vec<&ast::ObjectName> = Vec::new();
    match statement {
        S::CreateTable(create) if !create.temporary => names.push(&create.name),
        S::CreateTableLike {
            temporary: false,
            name,
            ..
        } => names.push(name),
        S::AlterTable(alter) => {
            names.push(&alter.table);
            names.extend(alter.actions.iter().filter_map(|action| match action {
                ast::AlterAction::RenameTable(name) => Some(name),
                _ => None,
            }));
        }
        S::CreateIndex { table, .. } | S::DropIndex { table, .. } | S::Truncate(table) => {
            names.push(table);
        }
        S::DropTable {
            temporary: false,
            tables,
            ..
        } => names.extend(tables),
        S::DropView { views, .. } => names.extend(views),
        S::RenameTable(pairs) => names.extend(pairs.iter().flat_map(|(old, new)| [old, new])),
        S::CreateView(create) => names.push(&create.name),
        _ => {}
    }
    let names = names.into_iter().map(|name| ddl.resolve(name));
    let names = names.collect::<Result<Vec<Name>>>()?;
    let is_temporary = |name: &Name| ddl.temporary(name).is_some();
    let lasting = names.into_iter().filter(|name| !is_temporary(name));
    Ok(lasting.map(|name| name.schema).collect())
}

fn lock_tables(session: &mut Session, locks: &[ast::LockTable]) -> Result<()> {
    let shared = Arc::clone(&session.shared);
    let writes = locks.iter().any(|lock| lock.write);
    let _changing = match writes {
        true => Some(
            session
                .state
                .begin_change(&shared.locks, &session.control)?,
        ),
        false => None,
    };
    lock::lock_tables(
        &mut Ddl {
            shared: &shared,
            session: &mut session.state,
            sql: b"",
        },
        locks,
    )
}

/// FLUSH TABLES … WITH READ LOCK: the tables named, or everything.
fn flush_with_read_lock(session: &mut Session, tables: &[ast::ObjectName]) -> Result<()> {
    if !session.state.locked_tables.is_empty() {
        return Err(Error::locked_or_in_transaction());
    }
    if !tables.is_empty() {
        let read = |table: &ast::ObjectName| ast::LockTable {
            table: table.clone(),
            alias: None,
            write: false,
            local: false,
        };
        let locks: Vec<ast::LockTable> = tables.iter().map(read).collect();
        return lock_tables(session, &locks);
    }
    if session.state.global_read_lock.is_none() {
        let requester = session.state.requester(&session.shared.locks);
        let held = metadata::take_global_read_lock(requester)?;
        session.state.global_read_lock = Some(held);
    }
    Ok(())
}

/// Whether [`execute`] knows the statement.
pub fn is_ddl(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    matches!(
        statement,
        S::CreateDatabase { .. }
            | S::AlterDatabase { .. }
            | S::DropDatabase { .. }
            | S::CreateTable(_)
            | S::CreateTableLike { .. }
            | S::AlterTable(_)
            | S::CreateIndex { .. }
            | S::DropIndex { .. }
            | S::DropTable { .. }
            | S::DropView { .. }
            | S::Truncate(_)
            | S::RenameTable(_)
            | S::CreateView(_)
    )
}

/// Whether a statement commits the transaction before and after itself (MySQL 8.4 manual, 15.3.3).
pub fn commits_implicitly(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    match statement {
        S::CreateTable(create) => !create.temporary,
        S::CreateTableLike { temporary, .. } | S::DropTable { temporary, .. } => !temporary,
        S::Maintain { .. } | S::Flush { .. } | S::Reset(_) | S::LockTables(_) => true,
        S::CreateUser(_)
        | S::AlterUser(_)
        | S::DropUser { .. }
        | S::RenameUser(_)
        | S::CreateRole { .. }
        | S::DropRole { .. }
        | S::SetPassword { .. }
        | S::SetDefaultRole { .. }
        | S::Grant(_)
        | S::Revoke(_) => true,
        statement => is_ddl(statement),
    }
}

/// A table's full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub schema: CompactString,
    pub table: CompactString,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

impl Ddl<'_> {
    /// Puts the current schema where none was written.
    pub fn resolve(&self, name: &ast::ObjectName) -> Result<Name> {
        let schema = self.session.schema_or_current(name.schema.as_ref())?;
        Ok(Name {
            schema,
            table: name.name.0.clone(),
        })
    }

    /// A schema that DDL may change things in.
    pub fn check_schema(&self, catalog: &Catalog, schema: &str) -> Result<()> {
        if is_built_in(schema) {
            return Err(Error::db_access_denied(
                &self.session.user,
                &self.session.host,
                schema,
            ));
        }
        catalog
            .schema(schema)
            .map(|_| ())
            .ok_or_else(|| Error::unknown_database(schema))
    }

    /// The session's temporary table of that name.
    pub fn temporary(&self, name: &Name) -> Option<Arc<Table>> {
        self.session
            .temporary_tables
            .get(&(name.schema.clone(), name.table.clone()))
            .cloned()
    }

    /// A base table, temporary ones first.
    pub fn table(&self, name: &Name) -> Result<Arc<Table>> {
        if let Some(table) = self.temporary(name) {
            return Ok(table);
        }
        match self
            .shared
            .catalog
            .load()
            .relation(&name.schema, &name.table)
        {
            Some(Relation::Table(table)) => Ok(table),
            Some(Relation::View(_)) => Err(Error::not_base_table(&name.schema, &name.table)),
            Some(Relation::Virtual(_)) => Err(Error::db_access_denied(
                &self.session.user,
                &self.session.host,
                &name.schema,
            )),
            None if self.shared.catalog.load().schema(&name.schema).is_none() => {
                Err(Error::unknown_database(&name.schema))
            }
            None => Err(Error::no_such_table(&name.schema, &name.table)),
        }
    }

    /// The time of the statement, in UTC microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.session.statement_started_us
    }
}

pub fn is_built_in(schema: &str) -> bool {
    BUILT_IN_SCHEMAS
        .iter()
        .any(|name| name.eq_ignore_ascii_case(schema))
}

/// Checks the name of a table or view (MySQL 8.4 manual, 11.2).
pub fn check_table_name(name: &str) -> Result<()> {
    if name.chars().count() > 64 {
        return Err(Error::identifier_too_long(name));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(Error::wrong_table_name(name));
    }
    Ok(())
}
