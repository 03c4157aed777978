//! Statements that are neither queries nor changes of rows nor the session's own: DDL, accounts,
//! SHOW, table maintenance, LOCK TABLES and FLUSH.

use std::sync::Arc;

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::password_validation;
use porpoise_core::reply::{Completion, Reply};
use porpoise_ddl::account::{self as account, is_account_statement};
use porpoise_ddl::{self as ddl, Ddl, histogram, maintain};
use porpoise_infoschema::show::{self, ShowResult, no_routine};
use porpoise_mdl as mdl;
use porpoise_planner::Variables;
use porpoise_programs::filling;
use porpoise_session::check::{self, Privileged};
use porpoise_session::session_state::StatementInputs;
use porpoise_session::set_variable::reset_persisted;
use porpoise_sql::ast;
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value};

use crate::session::{Session, event};

/// Runs a statement that changes definitions or accounts, shows or maintains something, or locks
/// tables.
pub(super) fn administer(
    session: &mut Session,
    statement: Privileged<'_, ast::Statement>,
    sql: &[u8],
    types: &[DataType],
    parameters: &[Value],
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    let statement = statement.get();
    let changes = check::changes_what_lasts(&session.state, statement);
    if changes {
        check::check_writable(&session.state, &session.shared.variables)?;
    }
    if commits_implicitly(statement)
        && let Some(commit) = session.commit()?
    {
        commit.wait()?;
    }
    if session.is_read_only() && is_for_read_write(statement) {
        return Err(Error::read_only_transaction());
    }
    let shared = Arc::clone(&session.shared);
    let control = Arc::clone(&session.control);
    let _changing = match ddl::is_ddl(statement) || is_account_statement(statement) {
        true => Some(session.state.begin_change(&shared.locks, &control)?),
        false => None,
    };
    let changes_files = match statement {
        ast::Statement::LockTables(_) => false,
        ast::Statement::Maintain { .. } => is_for_read_write(statement),
        _ => changes,
    };
    let _files = match changes_files && session.state.backup_lock.is_none() {
        true => Some(mdl::intend_change_of_files(
            session.state.requester(&shared.locks),
        )?),
        false => None,
    };
    if changes {
        // It may have waited while `read_only` was switched on.
        check::check_writable(&session.state, &shared.variables)?;
    }
    let mut completion = if event::has_schedule(statement) {
        let schedule = event::schedule(session, statement, sql)?;
        ddl::event::execute(&shared, &mut session.state, sql, statement, schedule)?
    } else if let ast::Statement::CreateTable(create) = statement
        && create.temporary
        && let Some(query) = &create.query
    {
        let parts = (statement, &**create, &**query);
        return create_from_query(session, parts, sql, (types, parameters), reply);
    } else if ddl::is_ddl(statement) {
        let scope = session.programs.scope.clone();
        let inputs = StatementInputs {
            variables: scope.as_deref().map(|scope| scope as &dyn Variables),
            types,
            values: parameters,
        };
        let executed = ddl::execute(&shared, &mut session.state, sql, statement, inputs);
        session.close_changed_handlers();
        executed?
    } else if is_account_statement(statement) {
        let generated = account::execute(&shared, &mut session.state, statement)?;
        if let Some((columns, rows)) = generated {
            session.send_rows(&columns, &rows, reply)?;
            return Ok(None);
        }
        Completion::default()
    } else {
        return other(session, statement, reply);
    };
    completion.warnings = session.state.warning_count();
    session.state.row_count = completion.affected_rows as i64;
    reply.ok(&completion)?;
    Ok(None)
}

/// CREATE TEMPORARY TABLE … SELECT: its rows are written in the session's transaction, if one has
/// begun.
fn create_from_query(
    session: &mut Session,
    (statement, create, query): (&ast::Statement, &ast::CreateTable, &ast::Query),
    sql: &[u8],
    (types, parameters): (&[DataType], &[Value]),
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    let shared = Arc::clone(&session.shared);
    let known = session.state.temporary_tables.len();
    let scope = session.programs.scope.clone();
    let inputs = StatementInputs {
        variables: scope.as_deref().map(|scope| scope as &dyn Variables),
        types,
        values: parameters,
    };
    let completion = ddl::execute(&shared, &mut session.state, sql, statement, inputs)?;
    if session.state.temporary_tables.len() == known {
        // IF NOT EXISTS, and it does.
        session.state.row_count = 0;
        reply.ok(&Completion {
            warnings: session.state.warning_count(),
            ..completion
        })?;
        return Ok(None);
    }
    let catalog = shared.catalog.load_full();
    let plan = filling::plan(create, query, &session.context(&catalog, sql, types));
    let plan = plan.map_err(|failed| session.refuse(failed));
    let filled =
        plan.and_then(|plan| session.execute_plan(&plan, &catalog, parameters, None, reply));
    if filled.is_err() {
        let undo = filling::undo(create);
        ddl::execute(
            &shared,
            &mut session.state,
            sql,
            &undo,
            StatementInputs::default(),
        )?;
    }
    filled
}

/// Statements that answer with rows, and those that do nothing here.
fn other(
    session: &mut Session,
    statement: &ast::Statement,
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    use ast::Statement as S;
    let mut affected_rows = 0;
    match statement {
        S::Show(what) => {
            let shown = show::show(session.show_context(), what)?;
            return send_show_result(session, shown, reply);
        }
        S::Describe { table, column } => {
            let shown = show::describe(session.show_context(), table, column.as_deref())?;
            return send_show_result(session, shown, reply);
        }
        S::Maintain {
            action,
            tables,
            options,
        } => {
            let shared = Arc::clone(&session.shared);
            let mut ddl = Ddl {
                shared: &shared,
                session: &mut session.state,
                sql: b"",
                inputs: StatementInputs::default(),
            };
            let (columns, rows) = maintain::maintain(&mut ddl, *action, tables, options)?;
            session.send_rows(&columns, &rows, reply)?;
            return Ok(None);
        }
        S::Histogram(change) => {
            let shared = Arc::clone(&session.shared);
            let mut ddl = Ddl {
                shared: &shared,
                session: &mut session.state,
                sql: b"",
                inputs: StatementInputs::default(),
            };
            let (columns, rows) = histogram::change(&mut ddl, change)?;
            session.send_rows(&columns, &rows, reply)?;
            return Ok(None);
        }
        S::ReloadTls {
            channel,
            no_rollback,
        } => reload_tls(session, channel.as_deref(), *no_rollback)?,
        S::LockTables(locks) => lock_tables(session, locks)?,
        // It commits only what LOCK TABLES has begun.
        S::UnlockTables if session.state.locked_tables.is_empty() => {
            session.state.global_read_lock = None;
        }
        S::LockInstance { lock: true } => {
            if session.state.backup_lock.is_none() {
                let requester = session.state.requester(&session.shared.locks);
                session.state.backup_lock = Some(mdl::take_backup_lock(requester)?);
            }
        }
        S::LockInstance { lock: false } => session.state.backup_lock = None,
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
                if let ast::FlushTarget::Other(what) = target {
                    match &**what {
                        "HOSTS" => session.shared.hosts.clear(),
                        "USER_RESOURCES" => session.shared.accounts.forget_hour(),
                        "PRIVILEGES" => {
                            session.shared.accounts.forget_hour();
                            session.shared.accounts.forget_failures();
                        }
                        "STATUS" => {
                            let sessions = &session.shared.locks.sessions;
                            sessions.reset_counts(&session.control);
                        }
                        "LOGS" | "GENERAL LOGS" | "SLOW LOGS" => {
                            session.shared.variables.reopen_logs();
                        }
                        _ => {}
                    }
                }
                if matches!(target, ast::FlushTarget::Tables { .. }) {
                    session.forget_positions_of_handlers();
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
        S::ResetPersist { if_exists, name } => {
            let shared = Arc::clone(&session.shared);
            let name = name.as_deref();
            reset_persisted(&mut session.state, &shared, name, *if_exists)?;
        }
        S::ChangeServer(change) => {
            let (servers, store) = (&session.shared.servers, &session.shared.store);
            affected_rows = u64::from(servers.change(store, change)?);
        }
        S::DropServer { if_exists, name } => {
            let (servers, store) = (&session.shared.servers, &session.shared.store);
            let dropped = servers.drop(store, name)?;
            if !dropped && !if_exists {
                return Err(Error::foreign_server_does_not_exist(&**name));
            }
            affected_rows = u64::from(dropped);
        }
        S::Component { install, urns } => {
            let shared = &session.shared;
            match install {
                true => shared.components.install(&shared.store, urns)?,
                false => shared.components.uninstall(&shared.store, urns)?,
            }
            let validates = shared.components.has(password_validation::COMPONENT);
            let validation = &shared.variables.password_validation;
            validation.set_installed(validates);
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
    session.state.row_count = affected_rows as i64;
    reply.ok(&Completion {
        affected_rows,
        warnings: session.state.warning_count(),
        ..Completion::default()
    })?;
    Ok(None)
}

/// Sends what a SHOW shows.
fn send_show_result(
    session: &mut Session,
    shown: ShowResult,
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    match shown {
        ShowResult::Rows(columns, rows) => {
            session.send_rows(&columns, &rows, reply)?;
            Ok(None)
        }
        ShowResult::Query { statement, sql } => {
            session.execute_statement(&statement, sql.as_bytes(), &[], &[], reply)
        }
    }
}

fn lock_tables(session: &mut Session, locks: &[ast::LockTable]) -> Result<()> {
    let shared = Arc::clone(&session.shared);
    if session.state.global_read_lock.is_some() && locks.iter().any(|lock| lock.write) {
        return Err(Error::conflicting_read_lock());
    }
    ddl::lock::lock_tables(
        &mut Ddl {
            shared: &shared,
            session: &mut session.state,
            sql: b"",
            inputs: StatementInputs::default(),
        },
        locks,
    )?;
    if session.state.locked_tables.writes() {
        // It may have waited while `read_only` was switched on; from here on that waits.
        let writable = check::check_writable(&session.state, &shared.variables);
        writable.inspect_err(|_| session.state.locked_tables.clear())?;
    }
    Ok(())
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
        let held = mdl::take_global_read_lock(requester)?;
        session.state.global_read_lock = Some(held);
    }
    Ok(())
}

/// ALTER INSTANCE RELOAD TLS. With NO ROLLBACK ON ERROR, an error is a warning: TLS is off then.
fn reload_tls(session: &mut Session, channel: Option<&str>, no_rollback: bool) -> Result<()> {
    const MAIN_CHANNEL: &str = "mysql_main";
    if let Some(channel) = channel.filter(|name| *name != MAIN_CHANNEL) {
        return Err(Error::unknown_channel(channel));
    }
    match session.shared.reload_tls(no_rollback) {
        Ok(()) => Ok(()),
        Err(why) if no_rollback => {
            let error = Error::tls_library_error(why);
            session.state.warn(Level::Warning, error.into_condition());
            Ok(())
        }
        Err(why) => Err(Error::tls_library_error(why)),
    }
}

/// Whether a statement is refused where transactions may only read. What commits implicitly ends
/// the transaction that runs; only the session's later ones count then.
fn is_for_read_write(statement: &ast::Statement) -> bool {
    match statement {
        ast::Statement::LockTables(locks) => locks.iter().any(|lock| lock.write),
        ast::Statement::Maintain { action, .. } => matches!(
            action,
            ast::Maintenance::Optimize | ast::Maintenance::Repair
        ),
        statement => ddl::is_ddl(statement) || is_account_statement(statement),
    }
}

/// Whether a statement commits the transaction before and after itself (MySQL 8.4 manual, 15.3.3).
pub fn commits_implicitly(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    match statement {
        S::CreateTable(create) => !create.temporary,
        S::CreateTableLike { temporary, .. } | S::DropTable { temporary, .. } => !temporary,
        S::Maintain { .. } | S::Histogram(_) | S::Flush { .. } | S::Reset(_) | S::LockTables(_) => {
            true
        }
        S::Component { .. } => true,
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
        statement => ddl::is_ddl(statement),
    }
}
