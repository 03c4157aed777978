//! Statements that change what exists: databases, tables, indexes, views.
//!
//! 1. [`execute`] resolves names and hands the statement to its file: [`create`], [`alter`],
//!    [`drop`], [`rename`], [`database`], [`view`].
//! 2. A statement locks the schemas it changes something in, then waits for the tables and views
//!    that exist ([`lock`]).
//! 3. Definitions are edited as `TableRecord`s ([`column`], [`table`], [`foreign_keys`]).
//! 4. Rows that must move are copied into new spaces ([`copy`]), new indexes are built of sorted
//!    entries (`porpoise_executor::index_build`).
//! 5. One `catalog::CatalogChange` makes it durable, and visible to statements that begin afterwards.
//!
//! The session commits its transaction before it calls [`execute`].

#![warn(missing_docs)]

pub mod account;
mod alter;
mod canonical;
mod check_table;
mod column;
mod copy;
mod create;
mod create_like;
mod database;
mod drop;
pub mod event;
mod foreign_keys;
pub mod histogram;
pub mod lock;
pub mod maintain;
mod program;
mod rename;
mod rename_logs;
pub mod statistics;
mod table;
mod view;

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::dictionary::BUILT_IN_SCHEMAS;
use porpoise_catalog::program::ProgramKind;
use porpoise_catalog::{Catalog, Relation, Table};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::Completion;
use porpoise_mdl as metadata;
use porpoise_session::session_state::{SessionState, StatementInputs};
use porpoise_session::shared::Shared;
use porpoise_sql::ast;

/// A DDL statement that is being executed.
pub struct Ddl<'a> {
    /// What all sessions share; its catalog is the one that is changed.
    pub shared: &'a Shared,
    /// The session that executes the statement.
    pub session: &'a mut SessionState,
    /// The text that spans of the statement point into.
    pub sql: &'a [u8],
    /// What a query of the statement is run with.
    pub inputs: StatementInputs<'a>,
}

/// Runs a DDL statement to its end, durably.
pub fn execute(
    shared: &Shared,
    session: &mut SessionState,
    sql: &[u8],
    statement: &ast::Statement,
    inputs: StatementInputs<'_>,
) -> Result<Completion> {
    let ddl = &mut Ddl {
        shared,
        session,
        sql,
        inputs,
    };
    use ast::Statement as S;
    let schemas = schemas_changed(ddl, statement)?;
    let _schemas = lock::schemas(ddl, &schemas, metadata::Mode::IntentionExclusive)?;
    let programs = program_schema(ddl, statement)?;
    for schema in schemas.iter().chain(&programs) {
        ddl.check_not_read_only(schema)?;
    }
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
        } => create_like::create_like(ddl, *temporary, *if_not_exists, name, source),
        S::AlterTable(alter) => {
            alter::alter(ddl, &alter.table, &alter.actions, alter.algorithm.as_ref())
        }
        S::CreateIndex { index, table, .. } => alter::alter(
            ddl,
            table,
            &[ast::AlterAction::AddIndex((**index).clone())],
            None,
        ),
        S::DropIndex { name, table, .. } => alter::alter(
            ddl,
            table,
            &[ast::AlterAction::DropIndex(name.clone())],
            None,
        ),
        S::DropTable {
            temporary,
            if_exists,
            tables,
        } => drop::drop_tables(ddl, *temporary, *if_exists, tables),
        S::DropView { if_exists, views } => drop::drop_views(ddl, *if_exists, views),
        S::Truncate(name) => drop::truncate(ddl, name),
        S::RenameTable(pairs) => rename::rename(ddl, pairs),
        S::CreateView(create) => view::create(ddl, create),
        S::CreateProgram(create) => program::create(ddl, create),
        S::AlterRoutine(alter) => program::alter(ddl, alter),
        S::DropStored {
            kind,
            if_exists,
            name,
        } if *kind == "EVENT" => event::drop(ddl, *if_exists, name),
        S::DropStored {
            kind,
            if_exists,
            name,
        } => program::drop(ddl, kept_kind(kind), *if_exists, name),
        _ => Err(Error::not_supported_yet("this statement")),
    }
}

/// What DROP names, where it may be there.
fn kept_kind(word: &str) -> ProgramKind {
    match word {
        "PROCEDURE" => ProgramKind::Procedure,
        "FUNCTION" => ProgramKind::Function,
        "TRIGGER" => ProgramKind::Trigger,
        _ => ProgramKind::Event,
    }
}

/// The schemas in which a statement makes, changes or drops something. (Statements on schemas
/// themselves are not meant.)
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

/// The schema in which a statement makes, changes or drops a stored program.
fn program_schema(ddl: &Ddl<'_>, statement: &ast::Statement) -> Result<Option<CompactString>> {
    use ast::Statement as S;
    let name = match statement {
        S::CreateProgram(create) => &create.name,
        S::AlterRoutine(alter) => &alter.name,
        S::AlterEvent(alter) => &alter.name,
        S::DropStored { name, .. } => name,
        _ => return Ok(None),
    };
    ddl.session
        .schema_or_current(name.schema.as_ref())
        .map(Some)
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
            | S::CreateProgram(_)
            | S::AlterRoutine(_)
            | S::AlterEvent(_)
            | S::DropStored { .. }
    )
}

/// A table's full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The schema's name.
    pub schema: CompactString,
    /// The name of a table or view in it.
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

    /// The whole name of a stored program.
    ///
    /// # Errors
    /// 1046, 1059, 1458.
    pub fn resolve_program(&self, name: &ast::ObjectName) -> Result<Name> {
        let resolved = self.resolve(name)?;
        let own = resolved.table.as_str();
        if own.chars().count() > 64 {
            return Err(Error::identifier_too_long(own));
        }
        if own.is_empty() || own.ends_with(' ') {
            return Err(Error::wrong_routine_name(own));
        }
        Ok(resolved)
    }

    /// # Errors
    /// 3989 where nothing in the schema may be changed.
    pub fn check_not_read_only(&self, schema: &str) -> Result<()> {
        let catalog = self.shared.catalog.load();
        match catalog.schema(schema) {
            Some(entry) if entry.schema.read_only => Err(Error::schema_read_only(schema)),
            _ => Ok(()),
        }
    }

    /// A schema that DDL may change things in: in `mysql` and `sys` what is made by users stands
    /// beside what the server has there.
    pub fn check_schema(&self, catalog: &Catalog, schema: &str) -> Result<()> {
        if is_built_in(schema) && !has_users_tables(schema) {
            return Err(Error::db_access_denied(
                &self.session.user,
                &self.session.host,
                schema,
            ));
        }
        // The catalog finds these schemas in any case of letters; definitions need their name.
        catalog
            .schema(schema)
            .filter(|entry| entry.schema.name == schema)
            .map(|_| ())
            .ok_or_else(|| Error::unknown_database(schema))
    }

    /// Lets the session make what it likes in the place of a table of the server's own, which
    /// stays as it is.
    pub fn set_aside(&mut self, name: Name) {
        self.warn_of_own_table(&name);
        self.session.set_aside.insert((name.schema, name.table));
    }

    /// Whether the session has dropped this table of the server's own.
    pub fn is_set_aside(&self, name: &Name) -> bool {
        let key = (name.schema.clone(), name.table.clone());
        self.session.set_aside.contains(&key)
    }

    /// Says that nothing is written into a table of the server's own.
    pub fn warn_of_own_table(&mut self, name: &Name) {
        let kept = Error::system_table_access(&name.schema, &name.table);
        self.session.warn(Level::Warning, kept.into_condition());
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
        self.session.statement.started_us
    }
}

pub(crate) fn is_built_in(schema: &str) -> bool {
    BUILT_IN_SCHEMAS
        .iter()
        .any(|name| name.eq_ignore_ascii_case(schema))
}

/// The built-in schemas in which accounts with the privileges for it may make, change and drop
/// things of their own.
fn has_users_tables(schema: &str) -> bool {
    ["mysql", "sys"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(schema))
}

/// Checks the name of a table or view (MySQL 8.4 manual, 11.2).
pub(crate) fn check_table_name(name: &str) -> Result<()> {
    if name.chars().count() > 64 {
        return Err(Error::identifier_too_long(name));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(Error::wrong_table_name(name));
    }
    Ok(())
}
