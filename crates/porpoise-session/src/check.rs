//! Refuses what a session may not do.
//!
//! | what is missing | error |
//! | --- | --- |
//! | a privilege on a schema | 1044 |
//! | a privilege on a table | 1142 |
//! | a privilege on a column | 1143 |
//! | a privilege of the server's administration | 1227 |
//! | a right of a view's definer or invoker | 1356 |
//! | the right to change anything on a server with `read_only` | 1290 |
//!
//! What runs a plan, or a statement that has none, takes it as a [`Privileged`], and only this
//! module makes those: [`plan`] from what the binder noted of every table and view that was named
//! ([`planner::access`](porpoise_planner::access)), [`statement`] from the statement itself. Where
//! there is no plan but an error, [`refuse`] sees to it that the error tells nothing of what the
//! session may not know.

use std::ops::Deref;
use std::sync::Arc;

use porpoise_accounts::policy::now_us;
use porpoise_accounts::role;
use porpoise_accounts::routine::RoutineName;
use porpoise_accounts::{Accounts, Grants};
use porpoise_catalog::View;
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::privilege::{Privilege, Set, level};
use porpoise_core::variables::{GlobalVariables, Variable, WriteProtection};
use porpoise_planner::access::{Access, Accesses, Authority, PlanError, RoutineUse};
use porpoise_planner::plan::Plan;
use porpoise_sql::ast;

use crate::active_roles;
use crate::session_state::{Restriction, SessionState};

/// What a session may run: it was compared with the session's privileges.
#[derive(Debug)]
pub struct Privileged<'a, T>(&'a T);

impl<T> Clone for Privileged<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Privileged<'_, T> {}

impl<T> Deref for Privileged<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<'a, T> Privileged<'a, T> {
    /// What was checked, for as long as it lives.
    pub fn get(self) -> &'a T {
        self.0
    }
}

/// The grants that count for a session; `None`: everything is allowed.
pub fn grants(state: &SessionState) -> Option<Arc<Grants>> {
    let account = state.account.as_ref()?;
    if state.active_roles.is_empty() {
        return Some(account.grants.load_full());
    }
    Some(active_roles::with_roles(state, account))
}

/// Whether a session has a privilege at the global level.
pub fn has_global(state: &SessionState, privilege: Privilege) -> bool {
    grants(state).is_none_or(|grants| grants.global.has(privilege))
}

/// Whether the session has one of a static and a dynamic privilege; error 1227 names both.
pub fn check_admin(state: &SessionState, privilege: Privilege, dynamic: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.global.has(privilege) && !grants.has_dynamic(dynamic) => {
            let names = if dynamic.is_empty() {
                privilege.name().to_string()
            } else {
                format!("{} or {dynamic}", privilege.name())
            };
            Err(Error::specific_access_denied(names))
        }
        _ => Ok(()),
    }
}

/// Whether the session has a dynamic privilege, or SUPER, which stands for it.
fn check_dynamic(state: &SessionState, name: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.has_dynamic(name) && !grants.global.has(Privilege::Super) => {
            Err(Error::specific_access_denied(format!("SUPER or {name}")))
        }
        _ => Ok(()),
    }
}

/// Whose privileges were not enough: within a program that runs with its definer's it is the
/// definer, else who logged in.
fn who(state: &SessionState) -> (&str, &str) {
    match &state.account {
        Some(account) if !state.programs.is_empty() && account.user != state.user => {
            (&account.user, &account.host)
        }
        _ => (&state.user, &state.host),
    }
}

fn denied(state: &SessionState, privilege: Privilege, table: &str) -> Error {
    let (user, host) = who(state);
    Error::table_access_denied(privilege.name(), user, host, table)
}

fn schema_denied(state: &SessionState, schema: &str) -> Error {
    let (user, host) = match &state.account {
        Some(account) => (&account.user, &account.host),
        None => (&state.user, &state.host),
    };
    Error::db_access_denied(user, host, schema)
}

/// A privilege on a schema.
pub fn check_schema(state: &SessionState, privilege: Privilege, schema: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.on_schema(schema).has(privilege) => {
            Err(schema_denied(state, schema))
        }
        _ => Ok(()),
    }
}

/// TRIGGER on a trigger's table (1142).
pub fn check_trigger(state: &SessionState, schema: &str, table: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.on_table(schema, table).has(Privilege::Trigger) => {
            Err(denied(state, Privilege::Trigger, table))
        }
        _ => Ok(()),
    }
}

/// Whether the session may have triggers on all tables, whatever columns they read and change.
pub fn may_have_any_trigger(state: &SessionState) -> bool {
    state.account.as_ref().is_none_or(|account| {
        let global = account.grants.load().global;
        [Privilege::Trigger, Privilege::Select, Privilege::Update]
            .iter()
            .all(|privilege| global.has(*privilege))
    })
}

/// A privilege on a column (1143).
pub fn check_column(
    state: &SessionState,
    privilege: Privilege,
    schema: &str,
    table: &str,
    column: &str,
) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.on_column(schema, table, column).has(privilege) => {
            let (user, host) = who(state);
            let name = privilege.name();
            Err(Error::column_access_denied(name, user, host, column, table))
        }
        _ => Ok(()),
    }
}

/// The host pattern of the session's account, which error 1370 names.
fn account_host(state: &SessionState) -> &str {
    let account = state.account.as_ref();
    account.map_or(&*state.host, |account| &account.host)
}

/// EXECUTE on a routine (1370).
pub fn check_routine(state: &SessionState, routine: &RoutineName) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.on_routine(routine).has(Privilege::Execute) => {
            Err(routine_denied(state, "execute", routine))
        }
        _ => Ok(()),
    }
}

fn routine_denied(state: &SessionState, lacking: &str, routine: &RoutineName) -> Error {
    let named = format_args!("{}.{}", routine.schema, routine.name);
    Error::routine_access_denied(lacking, who(state).0, account_host(state), named)
}

/// EXECUTE on a function that a statement calls, itself or through a view (1370, 1356).
fn check_function(state: &SessionState, accounts: &Accounts, called: &RoutineUse) -> Result<()> {
    let Some(own) = grants(state) else {
        return Ok(());
    };
    let grants = match &called.authority {
        Authority::Session => own,
        Authority::Definer(view) => definer_grants(state, accounts, view, &own)?,
    };
    let function = RoutineName {
        schema: called.schema.clone(),
        name: called.name.clone(),
        is_function: true,
    };
    if grants.on_routine(&function).has(Privilege::Execute) {
        return Ok(());
    }
    Err(match &called.outermost_view {
        Some(view) => Error::view_invalid(&view.schema, &view.name),
        None => routine_denied(state, "execute", &function),
    })
}

/// Any privilege on a table: it may be described.
pub fn check_table_visible(state: &SessionState, schema: &str, table: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !is_open(schema) && !grants.sees_table(schema, table) => {
            Err(denied(state, Privilege::Select, table))
        }
        _ => Ok(()),
    }
}

/// Schemas that everybody may read.
fn is_open(schema: &str) -> bool {
    schema.eq_ignore_ascii_case("information_schema")
        || schema.eq_ignore_ascii_case("performance_schema")
}

/// Whether the session may know of a schema (1044).
pub fn check_schema_visible(state: &SessionState, schema: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !is_open(schema) && !grants.sees_schema(schema) => {
            Err(schema_denied(state, schema))
        }
        _ => Ok(()),
    }
}

/// Whether the session may change what outlives it (1290): `read_only` and `super_read_only`, MySQL
/// 8.4 manual, 7.1.8. Temporary tables are not what this is asked of.
#[inline]
pub fn check_writable(state: &SessionState, globals: &GlobalVariables) -> Result<()> {
    match globals.write_protection() {
        None => Ok(()),
        Some(WriteProtection::ReadOnly) if is_connection_admin(state) => Ok(()),
        Some(protection) => Err(Error::read_only_option(protection.option())),
    }
}

/// Whether a statement without a plan changes what outlives the session: definitions and accounts,
/// but not temporary tables.
pub fn changes_what_lasts(state: &SessionState, statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    let check = StatementCheck { state };
    let any_lasts =
        |names: &[ast::ObjectName]| names.iter().any(|name| check.lasting(name).is_some());
    match statement {
        S::CreateTable(create) => !create.temporary,
        S::CreateTableLike { temporary, .. } => !temporary,
        S::DropTable {
            temporary, tables, ..
        } => !temporary && any_lasts(tables),
        S::AlterTable(alter) => check.lasting(&alter.table).is_some(),
        S::CreateIndex { table, .. } | S::DropIndex { table, .. } | S::Truncate(table) => {
            check.lasting(table).is_some()
        }
        S::LockTables(locks) => locks
            .iter()
            .any(|lock| lock.write && check.lasting(&lock.table).is_some()),
        S::CreateDatabase { .. } | S::AlterDatabase { .. } | S::DropDatabase { .. } => true,
        S::DropView { .. } | S::RenameTable(_) | S::CreateView(_) | S::DropStored { .. } => true,
        S::CreateProgram(_) | S::AlterRoutine(_) | S::AlterEvent(_) => true,
        S::CreateUser(_) | S::AlterUser(_) | S::DropUser { .. } | S::RenameUser(_) => true,
        S::CreateRole { .. } | S::DropRole { .. } | S::SetDefaultRole { .. } => true,
        S::SetPassword { .. } | S::Grant(_) | S::Revoke(_) | S::Component { .. } => true,
        S::ChangeServer(_) | S::DropServer { .. } => true,
        S::Begin { read_only, .. } => *read_only == Some(false),
        _ => false,
    }
}

/// Whether the session's account has CONNECTION_ADMIN, or SUPER.
pub fn is_connection_admin(state: &SessionState) -> bool {
    grants(state).is_none_or(|grants| {
        grants.global.has(Privilege::Super) || grants.has_dynamic("CONNECTION_ADMIN")
    })
}

/// Whether the session may kill others' (CONNECTION_ADMIN).
pub fn may_kill(state: &SessionState) -> bool {
    is_connection_admin(state)
}

/// Whether the session may list prepared branches (1227).
pub fn check_xa_recover(state: &SessionState) -> Result<()> {
    const PRIVILEGE: &str = "XA_RECOVER_ADMIN";
    match grants(state) {
        Some(grants) if !grants.has_dynamic(PRIVILEGE) => {
            Err(Error::specific_access_denied(PRIVILEGE))
        }
        _ => Ok(()),
    }
}

/// Whether the session may set global variables (1227).
pub fn check_set_global(state: &SessionState) -> Result<()> {
    check_admin(state, Privilege::Super, "SYSTEM_VARIABLES_ADMIN")
}

/// Whether the session may keep a value for the next start: of a variable that can't be set while
/// the database is open, it needs another privilege (1227, 3630).
pub fn check_persist(state: &SessionState, variable: &Variable) -> Result<()> {
    if variable.is_dynamic() {
        return check_set_global(state);
    }
    let may = |name: &str| check_admin(state, Privilege::Super, name).is_ok();
    match may("SYSTEM_VARIABLES_ADMIN") && may("PERSIST_RO_VARIABLES_ADMIN") {
        true => Ok(()),
        false => Err(Error::persist_read_only_denied()),
    }
}

/// Session variables that not every session may set (MySQL 8.4 manual, 7.1.9.1, and the variables'
/// own pages; ours that protects others), by name.
const RESTRICTED: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "bulk_insert_buffer_size",
    "character_set_database",
    "character_set_filesystem",
    "collation_database",
    "connection_memory_chunk_size",
    "connection_memory_limit",
    "global_connection_memory_tracking",
    "gtid_next",
    "pseudo_slave_mode",
    "pseudo_thread_id",
    "sql_log_bin",
    "sql_log_off",
    "statement_memory_limit",
];

/// Whether the session may set its value of a variable (1227).
pub fn check_set_session(state: &SessionState, variable: &str) -> Result<()> {
    if RESTRICTED.binary_search(&variable).is_err() {
        return Ok(());
    }
    match grants(state) {
        Some(grants)
            if !grants.global.has(Privilege::Super)
                && !grants.has_dynamic("SYSTEM_VARIABLES_ADMIN")
                && !grants.has_dynamic("SESSION_VARIABLES_ADMIN") =>
        {
            Err(Error::specific_access_denied(
                "SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN",
            ))
        }
        _ => Ok(()),
    }
}

/// Whether the session may know of a column: it has some privilege on it.
pub fn sees_column(state: &SessionState, schema: &str, table: &str, column: &str) -> bool {
    let of_columns = Set::all(level::COLUMN);
    let has_one = |grants: Arc<Grants>| grants.on_column(schema, table, column).meets(of_columns);
    is_open(schema) || grants(state).is_none_or(has_one)
}

/// A privilege on a table as a whole, whichever: its definition may be shown.
pub fn check_table_shown(state: &SessionState, schema: &str, table: &str) -> Result<()> {
    let of_tables = Set::all(level::TABLE);
    match grants(state) {
        Some(grants) if !is_open(schema) && !grants.on_table(schema, table).meets(of_tables) => {
            let (user, host) = who(state);
            Err(Error::table_access_denied("SHOW", user, host, table))
        }
        _ => Ok(()),
    }
}

// ---------------------------------------------------------------------------------------------------------
// Plans
// ---------------------------------------------------------------------------------------------------------

/// A plan that the session may run (1142, 1143, 1356).
pub fn plan<'a>(
    state: &SessionState,
    accounts: &Accounts,
    plan: &'a Plan,
) -> Result<Privileged<'a, Plan>> {
    if state.restriction != Restriction::None {
        check_restriction(state, plan.writes())?;
    }
    check_accesses(state, accounts, &plan.accesses)?;
    for called in &plan.routines {
        check_function(state, accounts, called)?;
    }
    Ok(Privileged(plan))
}

/// What the session is told where there is no plan: that it may not name what the statement names,
/// or why there is none.
pub fn refuse(state: &SessionState, accounts: &Accounts, failed: PlanError) -> Error {
    if state.must_change_password() {
        return Error::must_change_password();
    }
    failed.after_check(|accesses| check_accesses(state, accounts, accesses))
}

/// A plan that the session may have explained: SHOW VIEW on its views, and SELECT on what is behind
/// them (1345).
pub fn explained<'a>(
    state: &SessionState,
    accounts: &Accounts,
    explained: &'a Plan,
) -> Result<Privileged<'a, Plan>> {
    let privileged = plan(state, accounts, explained).map_err(|denied| match denied.kind() {
        ErrorKind::ViewInvalid => Error::view_no_explain(),
        _ => denied,
    })?;
    let Some(grants) = grants(state) else {
        return Ok(privileged);
    };
    let is_view = |access: &Access| {
        let named = |view: &Arc<View>| view.schema == access.schema && view.name == access.name;
        explained.views.iter().any(|(view, _)| named(view))
    };
    let hidden = explained.accesses.iter().any(|access| {
        let held = grants.on_table(&access.schema, &access.name);
        (is_view(access) && !held.has(Privilege::ShowView))
            || (access.outermost_view.is_some() && missing(&grants, access).is_some())
    });
    if hidden {
        return Err(Error::view_no_explain());
    }
    Ok(privileged)
}

fn check_accesses(state: &SessionState, accounts: &Accounts, accesses: &Accesses) -> Result<()> {
    let Some(account) = &state.account else {
        return Ok(());
    };
    if accesses.are_allowed_by(account.grants.load().global) {
        return Ok(());
    }
    let own = grants(state).unwrap_or_default();
    for access in accesses.iter() {
        let of_definer;
        let grants = match &access.authority {
            Authority::Session => &own,
            Authority::Definer(view) => {
                of_definer = definer_grants(state, accounts, view, &own)?;
                &of_definer
            }
        };
        let Some(missing) = missing(grants, access) else {
            continue;
        };
        return Err(match &access.outermost_view {
            Some(view) => Error::view_invalid(&view.schema, &view.name),
            None => missing.error(state, access),
        });
    }
    for view in accesses.of_definers() {
        definer_grants(state, accounts, view, &own)?;
    }
    Ok(())
}

/// What a view's definer may do, default roles included. Error 1449 if there is no such account,
/// for who may know.
fn definer_grants(
    state: &SessionState,
    accounts: &Accounts,
    view: &View,
    own: &Grants,
) -> Result<Arc<Grants>> {
    let (user, host) = view.definer_name();
    match accounts.get(user, host) {
        Some(definer) => Ok(role::with_default_roles(accounts, &definer)),
        None if own.global.has(Privilege::Super) => Err(Error::no_such_definer(user, host)),
        None => Err(Error::access_denied(&state.user, &state.host, "YES")),
    }
}

/// What an access lacks.
enum Missing {
    /// Privileges on the table as a whole.
    Table(Set),
    Column(Set, compact_str::CompactString),
    /// Any privilege that a view's column may stand for.
    Any,
    /// A privilege to change the rows that are to be locked.
    Lock,
}

fn missing(grants: &Grants, access: &Access) -> Option<Missing> {
    let of_table = grants.table(&access.schema, &access.name);
    let on_schema = grants.on_schema(&access.schema);
    let on_table = on_schema.with(of_table.map_or(Set::NONE, |grant| grant.privileges));
    let on_column = |column: &str| {
        let own = of_table.map_or(Set::NONE, |grant| grant.on_column(column));
        on_table.with(own)
    };
    let on_columns = of_table.map_or(Set::NONE, |grant| {
        let columns = grant.columns.iter().map(|(_, set)| *set);
        columns.fold(Set::NONE, Set::with)
    });
    let anywhere = on_table.with(on_columns);
    if !access.any_of.is_empty() && !anywhere.meets(access.any_of) {
        return Some(Missing::Any);
    }
    let lacking = access
        .whole
        .without(on_table)
        .with(access.somewhere.without(anywhere));
    if !lacking.is_empty() {
        return Some(Missing::Table(lacking));
    }
    for (column, needed) in &access.columns {
        let held = on_column(column);
        let lacking = needed.without(held);
        if lacking.meets(access.unnamed) {
            return Some(Missing::Table(lacking));
        }
        if !lacking.is_empty() {
            return Some(Missing::Column(lacking, column.clone()));
        }
    }
    for column in &access.shown {
        let held = on_column(column);
        if !held.meets(Set::OF_VIEWS) {
            return Some(Missing::Column(Set::NONE, column.clone()));
        }
    }
    let may_lock = [Privilege::Update, Privilege::Delete, Privilege::LockTables]
        .iter()
        .any(|privilege| anywhere.has(*privilege));
    (access.locks_rows && !may_lock).then_some(Missing::Lock)
}

impl Missing {
    fn error(self, state: &SessionState, access: &Access) -> Error {
        let (user, host) = who(state);
        let table = |command: &str| Error::table_access_denied(command, user, host, &access.name);
        match self {
            Missing::Table(lacking) => table(&command(lacking)),
            Missing::Any => table("ANY"),
            Missing::Lock => table("SELECT with locking clause"),
            Missing::Column(lacking, column) => Error::column_access_denied(
                match lacking.is_empty() {
                    true => "ANY".to_string(),
                    false => command(lacking),
                },
                user,
                host,
                column,
                &access.name,
            ),
        }
    }
}

/// Privileges as errors 1142 and 1143 name them.
fn command(lacking: Set) -> String {
    lacking.names().collect::<Vec<_>>().join(", ")
}

// ---------------------------------------------------------------------------------------------------------
// Statements without a plan
// ---------------------------------------------------------------------------------------------------------

/// A statement that the session may run, as far as the statement itself tells: what its expressions
/// and queries read is seen when they are planned, what its subject is (a variable, a connection,
/// an account) by who knows the subject.
pub fn statement<'a>(
    state: &SessionState,
    statement: &'a ast::Statement,
) -> Result<Privileged<'a, ast::Statement>> {
    let changes_password = matches!(
        statement,
        ast::Statement::AlterUser(_) | ast::Statement::SetPassword { .. }
    );
    if state.restriction != Restriction::None
        && !(state.must_change_password() && changes_password)
        && !has_plan(statement)
    {
        check_restriction(state, changes_what_lasts(state, statement))?;
    }
    if state.account.is_some() {
        StatementCheck { state }.statement(statement)?;
    }
    Ok(Privileged(statement))
}

/// Whether a statement is counted, and refused, when its plan is checked.
fn has_plan(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    matches!(
        statement,
        S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::LoadData(_)
    )
}

/// A statement of a session that may not run every one: its password has expired (1820), or what
/// its account may do in an hour is used up (1226).
#[cold]
fn check_restriction(state: &SessionState, changes: bool) -> Result<()> {
    match (state.restriction, &state.account) {
        (Restriction::MustChangePassword, _) => Err(Error::must_change_password()),
        (Restriction::Limited, Some(account)) => {
            let limits = &account.policy.limits;
            let counted = account.usage.count_statement(limits, changes, now_us());
            counted.map_err(|reached| {
                Error::user_limit_reached(&account.user, reached.resource, reached.most)
            })
        }
        _ => Ok(()),
    }
}

struct StatementCheck<'a> {
    state: &'a SessionState,
}

impl StatementCheck<'_> {
    /// Every kind of statement has its line here: a new one doesn't compile without.
    fn statement(&self, statement: &ast::Statement) -> Result<()> {
        use Privilege as P;
        use ast::Statement as S;
        match statement {
            // They have plans, or expressions and statements within that have.
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::LoadData(_) => Ok(()),
            S::Do(_) | S::Call { .. } | S::Explain(_) => Ok(()),
            S::Empty => Ok(()),
            S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => Ok(()),
            // The session's own business.
            S::Begin { .. } | S::Commit(_) | S::Rollback(_) | S::Savepoint(_) => Ok(()),
            S::RollbackTo(_) | S::ReleaseSavepoint(_) | S::UnlockTables | S::Help(_) => Ok(()),
            // XA RECOVER is checked where it runs: what refuses it is another error.
            S::Xa(_) => Ok(()),
            // It has a plan, of a query of its table.
            S::Handler(_) => Ok(()),
            // Checked where the variable, the connection, the schema or the account is found.
            S::Set(_) | S::SetTransaction { .. } | S::Kill { .. } | S::Use(_) => Ok(()),
            S::CreateUser(_) | S::AlterUser(_) | S::DropUser { .. } | S::RenameUser(_) => Ok(()),
            S::CreateRole { .. } | S::DropRole { .. } | S::SetRole(_) => Ok(()),
            S::SetDefaultRole { .. } | S::SetPassword { .. } => Ok(()),
            S::Grant(_) | S::Revoke(_) | S::Show(_) | S::Describe { .. } => Ok(()),
            S::CreateDatabase { name, .. } => self.schema(name, P::Create),
            S::AlterDatabase { name, .. } => {
                let named = name.as_ref().map(|name| name.0.as_str());
                self.schema(
                    named.or(self.state.schema.as_deref()).unwrap_or(""),
                    P::Alter,
                )
            }
            S::DropDatabase { name, .. } => self.schema(name, P::Drop),
            S::CreateTable(create) => self.create_table(create),
            S::CreateTableLike {
                temporary,
                name,
                source,
                ..
            } => {
                self.relation(source, &[P::Select])?;
                match temporary {
                    true => self.schema_of(name, P::CreateTemporaryTables),
                    false => self.relation(name, &[P::Create]),
                }
            }
            S::AlterTable(alter) => self.alter_table(alter),
            S::CreateIndex { table, .. } | S::DropIndex { table, .. } => {
                self.relation(table, &[P::Index])
            }
            S::DropTable { tables, .. } | S::DropView { views: tables, .. } => tables
                .iter()
                .try_for_each(|name| self.relation(name, &[P::Drop])),
            S::Truncate(name) => self.relation(name, &[P::Drop]),
            S::RenameTable(pairs) => pairs.iter().try_for_each(|(old, new)| {
                self.relation(old, &[P::Alter, P::Drop])?;
                self.relation(new, &[P::Create, P::Insert])
            }),
            S::CreateView(create) if create.or_replace || create.alter => {
                self.relation(&create.name, &[P::CreateView, P::Drop])
            }
            S::CreateView(create) => self.relation(&create.name, &[P::CreateView]),
            S::CreateProgram(create) => match &create.kind {
                ast::ProgramKind::Procedure { .. } | ast::ProgramKind::Function { .. } => {
                    self.schema_of(&create.name, P::CreateRoutine)
                }
                ast::ProgramKind::Trigger { table, .. } => self.relation(table, &[P::Trigger]),
                ast::ProgramKind::Event { .. } => self.schema_of(&create.name, P::Event),
            },
            S::AlterRoutine(alter) => self.alter_routine(&alter.name, alter.is_function),
            S::AlterEvent(alter) => self.schema_of(&alter.name, P::Event),
            S::Signal(_) | S::GetDiagnostics(_) => Ok(()),
            // Checked where the trigger's table is found.
            S::DropStored {
                kind: "TRIGGER", ..
            } => Ok(()),
            S::DropStored {
                kind: "EVENT",
                name,
                ..
            } => self.schema_of(name, P::Event),
            S::DropStored { name, kind, .. } => self.alter_routine(name, *kind == "FUNCTION"),
            S::Maintain { action, tables, .. } => {
                let needed: &[P] = match action {
                    ast::Maintenance::Check | ast::Maintenance::Checksum => &[P::Select],
                    _ => &[P::Select, P::Insert],
                };
                tables
                    .iter()
                    .try_for_each(|name| self.relation(name, needed))
            }
            S::Histogram(change) => change
                .tables
                .iter()
                .try_for_each(|name| self.relation(name, &[P::Select, P::Insert])),
            S::LockTables(locks) => locks.iter().try_for_each(|lock| {
                self.schema_of(&lock.table, P::LockTables)?;
                self.relation(&lock.table, &[P::Select])
            }),
            S::ChangeServer(_) | S::DropServer { .. } => check_admin(self.state, P::Super, ""),
            S::LockInstance { .. } => check_admin(self.state, P::Super, "BACKUP_ADMIN"),
            S::Flush { targets, .. } => self.flush(targets),
            S::ReloadTls { .. } => check_dynamic(self.state, "CONNECTION_ADMIN"),
            // It depends on the variable.
            S::ResetPersist { .. } => Ok(()),
            S::Reset(_) => check_admin(self.state, P::Reload, ""),
            // INSERT and DELETE on mysql.component, which nobody has on that table alone.
            S::Component { install: true, .. } => self.schema("mysql", P::Insert),
            S::Component { install: false, .. } => self.schema("mysql", P::Delete),
            // It has no effect but its error.
            S::Unsupported { .. } => Ok(()),
        }
    }

    /// The schema and name that a statement means, unless it means a temporary table.
    fn lasting(&self, name: &ast::ObjectName) -> Option<(compact_str::CompactString, String)> {
        let named = name.schema.as_ref().map(|schema| schema.0.clone());
        let schema = named.or_else(|| self.state.schema.clone());
        let key = (schema.unwrap_or_default(), name.name.0.clone());
        let is_temporary = self.state.temporary_tables.contains_key(&key);
        (!is_temporary).then(|| (key.0, key.1.to_string()))
    }

    /// Privileges on a table or view; the error names all that are missing.
    fn relation(&self, name: &ast::ObjectName, needed: &[Privilege]) -> Result<()> {
        let Some((schema, name)) = self.lasting(name) else {
            return Ok(());
        };
        let needed = needed
            .iter()
            .fold(Set::NONE, |set, one| set.with(one.set()));
        let held = grants(self.state).unwrap_or_default();
        let lacking = needed.without(held.on_table(&schema, &name));
        if lacking.is_empty() {
            return Ok(());
        }
        let (user, host) = who(self.state);
        Err(Error::table_access_denied(
            command(lacking),
            user,
            host,
            name,
        ))
    }

    fn schema(&self, schema: &str, privilege: Privilege) -> Result<()> {
        check_schema(self.state, privilege, schema)
    }

    /// A privilege on the schema that a name is in.
    fn schema_of(&self, name: &ast::ObjectName, privilege: Privilege) -> Result<()> {
        match self.lasting(name) {
            Some((schema, _)) => self.schema(&schema, privilege),
            None => Ok(()),
        }
    }

    /// ALTER ROUTINE on a routine (1370).
    fn alter_routine(&self, name: &ast::ObjectName, is_function: bool) -> Result<()> {
        let named = name.schema.as_ref().map(|schema| schema.0.as_str());
        let schema = named.or(self.state.schema.as_deref()).unwrap_or("");
        let routine = RoutineName {
            schema: schema.into(),
            name: name.name.0.clone(),
            is_function,
        };
        let held = grants(self.state);
        match held.is_none_or(|held| held.on_routine(&routine).has(Privilege::AlterRoutine)) {
            true => Ok(()),
            false => Err(routine_denied(self.state, "alter routine", &routine)),
        }
    }

    fn create_table(&self, create: &ast::CreateTable) -> Result<()> {
        if create.temporary {
            // There may be one of this name, which it doesn't get by.
            let named = create.name.schema.as_ref().map(|schema| schema.0.as_str());
            let schema = named.or(self.state.schema.as_deref()).unwrap_or("");
            return self.schema(schema, Privilege::CreateTemporaryTables);
        }
        let needed: &[Privilege] = match &create.query {
            Some(_) => &[Privilege::Create, Privilege::Insert],
            None => &[Privilege::Create],
        };
        self.relation(&create.name, needed)?;
        let keys = create.elements.iter().filter_map(|element| match element {
            ast::TableElement::ForeignKey(key) => Some(key),
            _ => None,
        });
        keys.map(|key| self.parent(&create.name, key)).collect()
    }

    fn alter_table(&self, alter: &ast::AlterTable) -> Result<()> {
        self.relation(&alter.table, &[Privilege::Alter])?;
        alter.actions.iter().try_for_each(|action| match action {
            ast::AlterAction::RenameTable(new) => {
                self.relation(&alter.table, &[Privilege::Drop])?;
                self.relation(new, &[Privilege::Create, Privilege::Insert])
            }
            ast::AlterAction::AddForeignKey(key) => self.parent(&alter.table, key),
            _ => Ok(()),
        })
    }

    /// REFERENCES on the table that a foreign key leads to, by default in the table's own schema.
    fn parent(&self, table: &ast::ObjectName, key: &ast::ForeignKey) -> Result<()> {
        let mut parent = key.references.table.clone();
        parent.schema = parent.schema.or_else(|| table.schema.clone());
        self.relation(&parent, &[Privilege::References])
    }

    fn flush(&self, targets: &[ast::FlushTarget]) -> Result<()> {
        check_admin(self.state, Privilege::Reload, "")?;
        targets.iter().try_for_each(|target| match target {
            ast::FlushTarget::Tables {
                tables,
                read_lock,
                export,
            } if *read_lock || *export => tables.iter().try_for_each(|name| {
                self.schema_of(name, Privilege::LockTables)?;
                self.relation(name, &[Privilege::Select])
            }),
            _ => Ok(()),
        })
    }
}

/// Whether the session may make a view run with an account's rights (1227), MySQL 8.4 manual, 27.6.
/// What to warn of, if there is no such account (1449).
pub fn check_definer(
    state: &SessionState,
    accounts: &Accounts,
    user: &str,
    host: &str,
) -> Result<Option<Error>> {
    let Some(own) = &state.account else {
        return Ok(None);
    };
    let is_own = own.user == user && own.host.eq_ignore_ascii_case(host);
    let held = grants(state).unwrap_or_default();
    if !is_own && !held.global.has(Privilege::Super) && !held.has_dynamic("SET_ANY_DEFINER") {
        return Err(Error::specific_access_denied("SUPER or SET_ANY_DEFINER"));
    }
    match accounts.get(user, host) {
        Some(definer) => {
            // An account with SYSTEM_USER lends its rights only to accounts that have it too.
            let powerful = role::with_default_roles(accounts, &definer).has_dynamic("SYSTEM_USER");
            match is_own || !powerful || held.has_dynamic("SYSTEM_USER") {
                true => Ok(None),
                false => Err(Error::specific_access_denied("SYSTEM_USER")),
            }
        }
        None if held.global.has(Privilege::Super)
            || held.has_dynamic("ALLOW_NONEXISTENT_DEFINER") =>
        {
            Ok(Some(Error::no_such_definer(user, host)))
        }
        None => Err(Error::specific_access_denied(
            "SUPER or ALLOW_NONEXISTENT_DEFINER",
        )),
    }
}
