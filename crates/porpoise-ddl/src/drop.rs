//! DROP TABLE, DROP VIEW, TRUNCATE.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use porpoise_catalog::dictionary::{create_unclaimed, drop_unclaimed};
use porpoise_catalog::record::TableRecord;
use porpoise_catalog::{CatalogChange, IndexKind, Relation, Table};
use porpoise_core::error::{Error, ErrorKind, Level, Result};
use porpoise_core::reply::Completion;
use porpoise_mdl::{MdlTicket, Mode};
use porpoise_planner::bind_table_expression;
use porpoise_sql::ast;

use crate::{Ddl, Name, foreign_keys, has_users_tables, lock};

/// Drops all of the tables or, if one is missing, none.
pub fn drop_tables(
    ddl: &mut Ddl<'_>,
    temporary_only: bool,
    if_exists: bool,
    tables: &[ast::ObjectName],
) -> Result<Completion> {
    let mut names: Vec<Name> = Vec::with_capacity(tables.len());
    for table in tables {
        let name = ddl.resolve(table)?;
        if names.contains(&name) {
            return Err(Error::not_unique_table(&name.table));
        }
        names.push(name);
    }
    let (mut temporary, mut base, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let mut logs = Vec::new();
    let catalog = ddl.shared.catalog.load_full();
    for name in names {
        if ddl.temporary(&name).is_some() {
            temporary.push(name);
            continue;
        }
        match catalog.relation(&name.schema, &name.table) {
            Some(Relation::Table(_)) if !temporary_only => base.push(name),
            Some(Relation::Virtual(own)) if ddl.shared.is_logged_to(own) && !temporary_only => {
                return Err(Error::bad_log_statement("DROP"));
            }
            Some(Relation::Virtual(own)) if own.is_log() && !temporary_only => logs.push(name),
            Some(Relation::Virtual(_))
                if if_exists && !temporary_only && has_users_tables(&name.schema) =>
            {
                ddl.set_aside(name);
            }
            Some(Relation::Virtual(_)) => {
                return Err(Error::db_access_denied(
                    &ddl.session.user,
                    &ddl.session.host,
                    &name.schema,
                ));
            }
            _ => missing.push(name.to_string()),
        }
    }
    if !missing.is_empty() && !if_exists {
        return Err(Error::unknown_table(missing.join(",")));
    }
    for name in &missing {
        ddl.session
            .warn(Level::Note, Error::unknown_table(name).into_condition());
    }
    for name in &base {
        let locked = &ddl.session.locked_tables;
        locked.admits_change(&name.schema, &name.table)?;
    }
    if !base.is_empty() {
        let (dropped, held) = match lock::tables(ddl, &base, Mode::Exclusive) {
            Err(error) if error.is(ErrorKind::NoSuchTable) && if_exists => {
                (Vec::new(), MdlTicket::default())
            }
            locked => locked?,
        };
        let mut change = CatalogChange::begin(ddl.shared.definitions());
        foreign_keys::check_unreferenced(ddl, change.catalog(), &dropped)?;
        for table in &dropped {
            change.drop_relation(&table.schema, &table.name);
        }
        change.commit()?;
        std::mem::drop(held);
        ddl.session.locked_tables.forget(&dropped);
    }
    for name in temporary {
        drop_temporary(ddl, &name)?;
    }
    for name in logs {
        // The table of the server's own stays, empty, as after RENAME TABLE.
        if let Some(log) = ddl.shared.log_tables.named(&name.schema, &name.table) {
            log.clear().map_err(Error::engine_error)?;
        }
        ddl.set_aside(name);
    }
    Ok(Completion::default())
}

/// Drops a session's temporary table at once.
pub fn drop_temporary(ddl: &mut Ddl<'_>, name: &Name) -> Result<()> {
    match ddl
        .session
        .temporary_tables
        .remove(&(name.schema.clone(), name.table.clone()))
    {
        Some(table) => drop_temporary_spaces(ddl.shared, &table),
        None => Ok(()),
    }
}

/// Gives back what a temporary table holds; also for sessions that end.
pub fn drop_temporary_spaces(
    shared: &porpoise_session::shared::Shared,
    table: &Table,
) -> Result<()> {
    drop_unclaimed(&shared.store, &table.spaces().collect::<Vec<_>>())
}

pub fn drop_views(
    ddl: &mut Ddl<'_>,
    if_exists: bool,
    views: &[ast::ObjectName],
) -> Result<Completion> {
    let names = views
        .iter()
        .map(|view| ddl.resolve(view))
        .collect::<Result<Vec<Name>>>()?;
    let _held = lock::relations(ddl, &names)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    let mut missing = Vec::new();
    for name in &names {
        match change.catalog().relation(&name.schema, &name.table) {
            Some(Relation::View(_)) => change.drop_relation(&name.schema, &name.table),
            Some(Relation::Virtual(_)) if ddl.is_set_aside(name) => missing.push(name.to_string()),
            Some(_) => return Err(Error::not_view(&name.schema, &name.table)),
            None => missing.push(name.to_string()),
        }
    }
    if !missing.is_empty() && !if_exists {
        return Err(Error::unknown_table(missing.join(",")));
    }
    for name in &missing {
        ddl.session
            .warn(Level::Note, Error::unknown_table(name).into_condition());
    }
    change.commit()?;
    Ok(Completion::default())
}

/// Puts empty spaces in place of the table's. AUTO_INCREMENT begins again.
pub fn truncate(ddl: &mut Ddl<'_>, name: &ast::ObjectName) -> Result<Completion> {
    let name = ddl.resolve(name)?;
    if name.schema.eq_ignore_ascii_case("performance_schema")
        && name.table.eq_ignore_ascii_case("host_cache")
    {
        ddl.shared.hosts.clear();
        return Ok(Completion::default());
    }
    if let Some(log) = ddl.shared.log_tables.named(&name.schema, &name.table) {
        log.clear().map_err(Error::engine_error)?;
        return Ok(Completion::default());
    }
    let (table, _held) = lock::table(ddl, &name)?;
    if !table.temporary {
        let locked = &ddl.session.locked_tables;
        locked.admits_change(&name.schema, &name.table)?;
    }
    foreign_keys::check_truncated(ddl, &table)?;
    let mut record = TableRecord::of(&table);
    record.version = ddl.shared.dictionary.next_version();
    record.space = ddl.shared.store.allocate_space().0;
    record.forget_alterations();
    for index in &mut record.indexes {
        index.space = match index.kind {
            IndexKind::Primary => record.space,
            _ => ddl.shared.store.allocate_space().0,
        };
    }
    let emptied = Arc::new(record.bind(Arc::clone(&table.state), bind_table_expression)?);
    if table.temporary {
        create_unclaimed(&ddl.shared.store, &emptied.spaces().collect::<Vec<_>>())?;
        ddl.session
            .temporary_tables
            .insert((name.schema, name.table), emptied);
        drop_temporary_spaces(ddl.shared, &table)?;
    } else {
        let mut change = CatalogChange::begin(ddl.shared.definitions());
        for space in emptied.spaces() {
            change.transaction().create_space(space);
        }
        for space in table.spaces() {
            change.transaction().drop_space(space);
        }
        change.put_table(&record, emptied)?;
        change.commit()?;
    }
    let newest = ddl.shared.store.snapshot().ts();
    table.state.rebuilt_ts.store(newest.0, Ordering::Release);
    table.state.auto_increment.store(0, Ordering::Relaxed);
    table.state.row_number.store(0, Ordering::Relaxed);
    Ok(Completion::default())
}
