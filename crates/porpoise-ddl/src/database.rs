//! CREATE, ALTER and DROP DATABASE.

use porpoise_catalog::program::RoutineLock;
use porpoise_catalog::{Catalog, CatalogChange, Relation, Schema, SchemaEntry};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::Completion;
use porpoise_core::variables;
use porpoise_expr::typing::declared::resolve_collation;
use porpoise_mdl::{MdlTicket, Mode};
use porpoise_sql::ast;
use porpoise_types::{Collation, DataType, convert};

use crate::{Ddl, Name, foreign_keys, is_built_in, lock, table};

fn collation(options: &ast::DatabaseOptions, inherited: Collation) -> Result<Collation> {
    let name = |name: &Option<ast::Ident>| name.as_ref().map(|name| name.as_str().to_string());
    let charset = name(&options.charset).filter(|name| !name.eq_ignore_ascii_case("default"));
    resolve_collation(
        charset.as_deref(),
        name(&options.collation).as_deref(),
        inherited,
    )
}

/// What `ENCRYPTION` says. It is the default of new tables; without a keyring these can't be made.
fn encryption(options: &ast::DatabaseOptions) -> Result<Option<bool>> {
    let option = options.encryption.as_deref();
    option.map(table::is_encrypted).transpose()
}

pub fn create(
    ddl: &mut Ddl<'_>,
    name: &ast::Ident,
    if_not_exists: bool,
    options: &ast::DatabaseOptions,
) -> Result<Completion> {
    if name.is_empty() || name.ends_with(' ') {
        return Err(Error::wrong_db_name(name.as_str()));
    }
    if name.chars().count() > 64 {
        return Err(Error::identifier_too_long(name.as_str()));
    }
    let of_server = convert::to_text(&ddl.session.get("collation_server"), &DataType::varchar(0));
    let of_server = Collation::by_name(&of_server).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
    let collation = collation(options, of_server)?;
    let _held = lock::schemas(ddl, [&name.0], Mode::Exclusive)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    if change.catalog().schema(name).is_some() || is_built_in(name) {
        let error = Error::database_exists(name.as_str());
        if !if_not_exists {
            return Err(error);
        }
        ddl.session.warn(Level::Note, error.into_condition());
        return Ok(Completion {
            affected_rows: 1,
            ..Completion::default()
        });
    }
    change.put_schema(Schema {
        name: name.0.clone(),
        collation,
        read_only: false,
        encrypted: encryption(options)?.unwrap_or_default(),
    })?;
    change.commit()?;
    Ok(Completion {
        affected_rows: 1,
        ..Completion::default()
    })
}

pub fn alter(
    ddl: &mut Ddl<'_>,
    name: Option<&ast::Ident>,
    options: &ast::DatabaseOptions,
) -> Result<Completion> {
    let name = ddl.session.schema_or_current(name)?;
    let _held = lock::schemas(ddl, [&name], Mode::Exclusive)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    check_is_users(ddl, &name)?;
    ddl.check_schema(change.catalog(), &name)?;
    let Some(entry) = change.catalog().schema(&name).cloned() else {
        return Err(Error::unknown_database(name.as_str()));
    };
    let old = &entry.schema;
    if old.read_only && options.read_only.is_none() {
        return Err(Error::schema_read_only(name.as_str()));
    }
    let altered = Schema {
        name,
        collation: collation(options, old.collation)?,
        read_only: options.read_only.unwrap_or(old.read_only),
        encrypted: encryption(options)?.unwrap_or(old.encrypted),
    };
    // Changes of its tables that have begun come first.
    let mut _changed_before = MdlTicket::default();
    if altered.read_only && !old.read_only {
        std::mem::drop(change);
        _changed_before = lock::relations(ddl, &relations(&entry))?;
        change = CatalogChange::begin(ddl.shared.definitions());
    }
    change.put_schema(altered)?;
    change.commit()?;
    Ok(Completion {
        affected_rows: 1,
        ..Completion::default()
    })
}

/// Schemas that always exist stay as they are.
///
/// # Errors
/// 3552, 1044.
fn check_is_users(ddl: &Ddl<'_>, name: &str) -> Result<()> {
    if name.eq_ignore_ascii_case("mysql") {
        return Err(Error::db_access_system(name));
    }
    match is_built_in(name) {
        true => Err(Error::db_access_denied(
            &ddl.session.user,
            &ddl.session.host,
            name,
        )),
        false => Ok(()),
    }
}

/// The names of a schema's tables and views, in order.
fn relations(entry: &SchemaEntry) -> Vec<Name> {
    let names = entry.relations.keys().map(|table| Name {
        schema: entry.schema.name.clone(),
        table: table.clone(),
    });
    let mut names: Vec<Name> = names.collect();
    names.sort();
    names
}

/// The metadata locks of a schema's routines, in order.
fn routine_locks(catalog: &Catalog, schema: &str) -> Vec<RoutineLock> {
    let programs = catalog.schema(schema).map(|entry| entry.programs.values());
    let locks = programs.into_iter().flatten();
    let mut locks: Vec<_> = locks.filter_map(|program| program.lock.clone()).collect();
    locks.sort_by_key(|lock| lock.id.0);
    locks
}

/// Drops a database with all in it. Affected rows are its tables.
pub fn drop(ddl: &mut Ddl<'_>, name: &ast::Ident, if_exists: bool) -> Result<Completion> {
    check_is_users(ddl, name)?;
    // From here on nothing comes into the schema.
    let _held = lock::schemas(ddl, [&name.0], Mode::Exclusive)?;
    let tables = loop {
        let Some(entry) = ddl.shared.catalog.load().schema(name).cloned() else {
            let error = Error::cannot_drop_database(name.as_str());
            if !if_exists {
                return Err(error);
            }
            ddl.session.warn(Level::Note, error.into_condition());
            return Ok(Completion::default());
        };
        if entry.schema.read_only {
            return Err(Error::schema_read_only(name.as_str()));
        }
        let locked = lock::relations(ddl, &relations(&entry))?;
        let routines = |catalog: &Catalog| routine_locks(catalog, name);
        let _calls_ended = lock::routines(ddl, routines)?;
        let mut change = CatalogChange::begin(ddl.shared.definitions());
        let newest = change.catalog().schema(name).cloned();
        if newest.is_some_and(|newest| std::sync::Arc::ptr_eq(&newest, &entry)) {
            let dropped: Vec<_> = entry
                .relations
                .values()
                .filter_map(|relation| match relation {
                    Relation::Table(table) => Some(std::sync::Arc::clone(table)),
                    _ => None,
                })
                .collect();
            foreign_keys::check_unreferenced(ddl, change.catalog(), &dropped)?;
            let tables = entry.relations.len() as u64;
            change.drop_schema(name);
            change.commit()?;
            std::mem::drop(locked);
            ddl.session.locked_tables.forget(&dropped);
            break tables;
        }
    };
    if ddl.session.schema.as_deref() == Some(name.as_str()) {
        ddl.session.schema = None;
        variables::forget_database_collation(ddl.session);
    }
    Ok(Completion {
        affected_rows: tables,
        ..Completion::default()
    })
}
