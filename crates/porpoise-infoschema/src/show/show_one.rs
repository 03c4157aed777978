//! SHOW statements that show one thing, and those that are always empty.

use porpoise_accounts::{Account, role};
use porpoise_catalog::create_text;
use porpoise_catalog::program::ProgramKind;
use porpoise_catalog::{Relation, Table};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::quote;
use porpoise_core::reply::ResultColumn;
use porpoise_session::check::{self, check_admin};
use porpoise_session::session_state::SessionState;
use porpoise_sql::ast::{self, ShowWhat};
use porpoise_types::{DataType, Value};

use super::ShowContext;
use super::to_query;
use crate::account_text;
use crate::events;
use crate::objects::own_table;
use crate::privileges::privilege_rows;
use crate::programs;

type Rows = (Vec<ResultColumn>, Vec<Vec<Value>>);

fn texts(names: &[&str]) -> Vec<ResultColumn> {
    names
        .iter()
        .map(|name| ResultColumn::expression(*name, DataType::varchar(1024), true))
        .collect()
}

fn number(name: &str) -> ResultColumn {
    ResultColumn::expression(name, DataType::BIGINT_UNSIGNED, false)
}

/// Whether the session may ask for it (1227).
fn check_asked(context: ShowContext<'_>, what: &ShowWhat) -> Result<()> {
    let needed = match what {
        ShowWhat::BinaryLogs | ShowWhat::BinaryLogStatus | ShowWhat::ReplicaStatus => {
            Privilege::ReplicationClient
        }
        ShowWhat::BinlogEvents | ShowWhat::Replicas => Privilege::ReplicationSlave,
        _ => return Ok(()),
    };
    match check::grants(context.state) {
        Some(held) if !held.global.has(needed) && !held.global.has(Privilege::Super) => Err(
            Error::specific_access_denied(format_args!("SUPER, {}", needed.name())),
        ),
        _ => Ok(()),
    }
}

/// The answer, if the SHOW is one of these.
pub fn show_one(context: ShowContext<'_>, show: &ast::Show) -> Result<Option<Rows>> {
    check_asked(context, &show.what)?;
    Ok(Some(match &show.what {
        ShowWhat::CreateDatabase {
            name,
            if_not_exists,
        } => {
            let name = to_query::schema(context, Some(name))?;
            let catalog = context.shared.catalog.load_full();
            let entry = catalog
                .schema(&name)
                .ok_or_else(|| Error::unknown_database(&name))?;
            let row = vec![
                Value::text(&name),
                Value::from(create_text::schema(&entry.schema, *if_not_exists)),
            ];
            (texts(&["Database", "Create Database"]), vec![row])
        }
        ShowWhat::CreateTable(name) | ShowWhat::CreateView(name) => {
            create_relation(context, &show.what, name)?
        }
        ShowWhat::CreateRoutine(kind, name) => {
            let shown = match *kind {
                "PROCEDURE" => programs::show_create(context, ProgramKind::Procedure, name)?,
                "FUNCTION" => programs::show_create(context, ProgramKind::Function, name)?,
                "TRIGGER" => programs::show_create(context, ProgramKind::Trigger, name)?,
                "EVENT" => events::show_create(context, name)?,
                _ => None,
            };
            shown.ok_or_else(|| match *kind {
                // Without its schema, unlike the other statements' error.
                "PROCEDURE" | "FUNCTION" => Error::routine_does_not_exist(kind, name.name.as_str()),
                kind => no_routine(context.state, kind, name),
            })?
        }
        ShowWhat::CreateUser(account) => {
            let account = find_account(context, account)?;
            let header = format!("CREATE USER for {}@{}", account.user, account.host);
            (
                texts(&[&header]),
                vec![vec![Value::from(account_text::create_user(&account))]],
            )
        }
        ShowWhat::Grants { user, roles } => {
            let account = find_account(context, user.as_ref().unwrap_or(&ast::Account::Current))?;
            let header = format!("Grants for {}@{}", account.user, account.host);
            let is_own = matches!(user, None | Some(ast::Account::Current));
            let mut shown = match is_own {
                true => check::grants(context.state).unwrap_or_else(|| account.grants.load_full()),
                false => account.grants.load_full(),
            };
            for using in roles {
                let (user, host) = role::named(using)?;
                if !shown.roles.iter().any(|grant| grant.is(&user, &host)) {
                    let own = (account.user.as_str(), account.host.as_str());
                    return Err(role::not_granted((&user, &host), own));
                }
                if let Some(role) = context.shared.accounts.get(&user, &host) {
                    std::sync::Arc::make_mut(&mut shown).add_all(&role.grants.load());
                }
            }
            let rows = account_text::grants(&account, &shown);
            (
                texts(&[&header]),
                rows.into_iter().map(|row| vec![Value::from(row)]).collect(),
            )
        }
        ShowWhat::Warnings { count } => conditions(context, show, *count, Level::Note)?,
        ShowWhat::Errors { count } => conditions(context, show, *count, Level::Error)?,
        ShowWhat::Privileges => {
            let rows = privilege_rows()
                .map(|row| row.iter().map(Value::text).collect())
                .collect();
            (texts(&["Privilege", "Context", "Comment"]), rows)
        }
        ShowWhat::Engine(..) => {
            check_admin(context.state, Privilege::Process, "")?;
            let stats = context.shared.store.stats();
            let status = format!(
                "\n=====================================\nTRANSACTIONS\n------------\nCommits {}\nLock waits {}, waiting now {}\nDeadlocks {}\nTables and indexes locked instead of rows {}\nVersions in memory {} bytes\n",
                stats.commits,
                stats.lock_waits,
                stats.locks_waiting,
                stats.deadlocks,
                stats.lock_escalations,
                stats.version_bytes
            );
            (
                texts(&["Type", "Name", "Status"]),
                vec![vec!["InnoDB".into(), "".into(), status.into()]],
            )
        }
        ShowWhat::Profiles => (texts(&["Query_ID", "Duration", "Query"]), Vec::new()),
        ShowWhat::Profile { .. } => (texts(&["Status", "Duration"]), Vec::new()),
        ShowWhat::BinaryLogs => {
            return Err(Error::no_binary_log());
        }
        ShowWhat::BinaryLogStatus => (
            texts(&[
                "File",
                "Position",
                "Binlog_Do_DB",
                "Binlog_Ignore_DB",
                "Executed_Gtid_Set",
            ]),
            Vec::new(),
        ),
        ShowWhat::BinlogEvents => (
            texts(&[
                "Log_name",
                "Pos",
                "Event_type",
                "Server_id",
                "End_log_pos",
                "Info",
            ]),
            Vec::new(),
        ),
        ShowWhat::ReplicaStatus => (
            texts(&[
                "Replica_IO_State",
                "Source_Host",
                "Source_User",
                "Source_Port",
            ]),
            Vec::new(),
        ),
        ShowWhat::Replicas => (
            texts(&["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"]),
            Vec::new(),
        ),
        _ => return Ok(None),
    }))
}

fn create_relation(
    context: ShowContext<'_>,
    what: &ShowWhat,
    name: &ast::ObjectName,
) -> Result<Rows> {
    let (schema, name) = to_query::table(context, name)?;
    let temporary = context
        .state
        .temporary_tables
        .get(&(schema.as_str().into(), name.as_str().into()))
        .cloned();
    let relation = match temporary {
        Some(table) => Some(Relation::Table(table)),
        None => context.shared.catalog.load().relation(&schema, &name),
    };
    let wants_view = matches!(what, ShowWhat::CreateView(_));
    if !matches!(&relation, Some(Relation::Table(table)) if table.temporary) {
        check::check_table_shown(context.state, &schema, &name)?;
    }
    match relation {
        Some(Relation::View(view)) => {
            let needed = Privilege::ShowView.set().with(Privilege::Select.set());
            if check::grants(context.state)
                .is_some_and(|grants| !grants.on_table(&schema, &name).contains(needed))
            {
                return Err(Error::table_access_denied(
                    "SHOW VIEW",
                    &context.state.user,
                    &context.state.host,
                    &name,
                ));
            }
            let text = create_text::view(&view, context.state.schema.as_deref());
            let row = vec![
                Value::text(&view.name),
                text.into(),
                "utf8mb4".into(),
                "utf8mb4_0900_ai_ci".into(),
            ];
            Ok((
                texts(&[
                    "View",
                    "Create View",
                    "character_set_client",
                    "collation_connection",
                ]),
                vec![row],
            ))
        }
        Some(_) if wants_view => Err(Error::not_view(&schema, &name)),
        Some(Relation::Table(table)) => {
            let text =
                create_text::table(&table, context.state, next_auto_increment(context, &table));
            Ok((
                texts(&["Table", "Create Table"]),
                vec![vec![Value::text(&table.name), text.into()]],
            ))
        }
        Some(Relation::Virtual(own)) if let Some(table) = own_table(context.shared, own) => {
            let engine = own.engine().unwrap_or("InnoDB");
            let text = create_text::table_in(engine, &table, context.state, 0);
            Ok((
                texts(&["Table", "Create Table"]),
                vec![vec![Value::text(&table.name), text.into()]],
            ))
        }
        Some(Relation::Virtual(table)) => {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|(name, ty, nullable)| {
                    let null = if *nullable {
                        "DEFAULT NULL"
                    } else {
                        "NOT NULL"
                    };
                    format!("  {} {} {null}", quote::name(name), ty().sql_name())
                })
                .collect();
            let (temporary, engine) = match table.engine() {
                Some(engine) => ("", engine),
                None => ("TEMPORARY ", "MEMORY"),
            };
            let text = format!(
                "CREATE {temporary}TABLE {} (\n{}\n) ENGINE={engine} DEFAULT CHARSET=utf8mb3",
                quote::name(table.name),
                columns.join(",\n")
            );
            Ok((
                texts(&["Table", "Create Table"]),
                vec![vec![Value::text(table.name), text.into()]],
            ))
        }
        None => Err(Error::no_such_table(&schema, &name)),
    }
}

fn next_auto_increment(context: ShowContext<'_>, table: &Table) -> u64 {
    let loaded = table
        .state
        .auto_increment
        .load(std::sync::atomic::Ordering::Relaxed);
    if loaded > 0 {
        loaded
    } else {
        context.shared.store.counter(table.space)
    }
}

/// The error of a routine, trigger or event that is not there; none is.
pub fn no_routine(state: &SessionState, kind: &str, name: &ast::ObjectName) -> Error {
    let schema = name
        .schema
        .as_ref()
        .map(|schema| schema.as_str())
        .or(state.schema.as_deref())
        .unwrap_or_default();
    match kind {
        "TRIGGER" => Error::trigger_does_not_exist(),
        "EVENT" => Error::unknown_event(name.name.as_str()),
        kind => Error::routine_does_not_exist(kind, format!("{schema}.{}", name.name.as_str())),
    }
}

/// The account that SHOW names. For an account not its own, the session needs SELECT on `mysql`.
fn find_account(context: ShowContext<'_>, named: &ast::Account) -> Result<std::sync::Arc<Account>> {
    let own = context.state.account.as_ref();
    let (user, host) = match (named, own) {
        (ast::Account::Named { user, host }, _) => (
            user.0.clone(),
            host.as_ref()
                .map_or_else(|| "%".into(), |host| host.0.clone()),
        ),
        (ast::Account::Current, Some(own)) => (own.user.clone(), own.host.clone()),
        (ast::Account::Current, None) => ("root".into(), "localhost".into()),
    };
    let is_own = own.is_some_and(|own| own.user == user && own.host.eq_ignore_ascii_case(&host));
    if !is_own
        && check::grants(context.state)
            .is_some_and(|grants| !grants.on_schema("mysql").has(Privilege::Select))
    {
        return Err(Error::db_access_denied(
            &context.state.user,
            &context.state.host,
            "mysql",
        ));
    }
    let found = context.shared.accounts.get(&user, &host);
    found.ok_or_else(|| Error::no_such_grant(user, host))
}

/// SHOW WARNINGS and SHOW ERRORS: conditions of a level and above.
fn conditions(
    context: ShowContext<'_>,
    show: &ast::Show,
    count: bool,
    least: Level,
) -> Result<Rows> {
    let state = context.state;
    let wanted: Vec<_> = state
        .warnings
        .iter()
        .filter(|(level, _)| *level >= least)
        .collect();
    if count {
        let (name, total) = match least {
            Level::Error => ("@@session.error_count", wanted.len()),
            _ => ("@@session.warning_count", state.warnings_total),
        };
        return Ok((vec![number(name)], vec![vec![Value::UInt(total as u64)]]));
    }
    let bound = |expr: Option<&ast::Expr>, otherwise: usize| match expr {
        Some(ast::Expr::Literal(ast::Literal::Int(count))) => {
            Ok(usize::try_from(*count).unwrap_or(usize::MAX))
        }
        // A stored program's variable, as MySQL's grammar has it.
        Some(ast::Expr::Column(name)) => Err(Error::undeclared_variable(name.name.as_str())),
        _ => Ok(otherwise),
    };
    let skip = bound(
        show.limit.as_ref().and_then(|limit| limit.offset.as_ref()),
        0,
    )?;
    let take = bound(show.limit.as_ref().map(|limit| &limit.count), usize::MAX)?;
    let rows = wanted
        .into_iter()
        .skip(skip)
        .take(take)
        .map(|(level, condition)| {
            vec![
                level.name().into(),
                Value::UInt(u64::from(condition.number)),
                Value::text(&condition.message),
            ]
        });
    let mut columns = texts(&["Level", "Code", "Message"]);
    columns[1] = number("Code");
    Ok((columns, rows.collect()))
}
