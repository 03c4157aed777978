//! The grant tables: `mysql.user`, `mysql.db` and their kin, with MySQL 8.4's columns and a row for
//! each account and each thing that is granted. They are made from the accounts when a statement
//! reads them, and change by account statements alone.
//!
//! MySQL 8.4 manual, 8.2.3 (Grant Tables).

use std::sync::Arc;

use porpoise_accounts::policy::UNBOUNDED;
use porpoise_accounts::tls::TlsRequirement;
use porpoise_accounts::{Account, Grants, TableGrant};
use porpoise_core::privilege::{Privilege, Set};
use porpoise_types::{DateTime, EnumDef, IntWidth, Json, JsonValue};

use super::privileges::all_accounts;
use super::*;

pub const TABLES: &[VirtualSource] = &[
    source("user", USER_COLUMNS, user),
    source("db", DB_COLUMNS, db),
    source(
        "global_grants",
        &[
            ("USER", user_name, false),
            ("HOST", host_name, false),
            ("PRIV", user_name, false),
            ("WITH_GRANT_OPTION", flag_type, false),
        ],
        global_grants,
    ),
    source(
        "tables_priv",
        &[
            ("Host", host_name, false),
            ("Db", object_name, false),
            ("User", user_name, false),
            ("Table_name", object_name, false),
            ("Grantor", grantor_name, false),
            ("Timestamp", second, false),
            ("Table_priv", table_set, false),
            ("Column_priv", column_set, false),
        ],
        tables_priv,
    ),
    source(
        "columns_priv",
        &[
            ("Host", host_name, false),
            ("Db", object_name, false),
            ("User", user_name, false),
            ("Table_name", object_name, false),
            ("Column_name", object_name, false),
            ("Timestamp", second, false),
            ("Column_priv", column_set, false),
        ],
        columns_priv,
    ),
    source(
        "procs_priv",
        &[
            ("Host", host_name, false),
            ("Db", object_name, false),
            ("User", user_name, false),
            ("Routine_name", object_name, false),
            ("Routine_type", routine_type, false),
            ("Grantor", grantor_name, false),
            ("Proc_priv", routine_set, false),
            ("Timestamp", second, false),
        ],
        procs_priv,
    ),
    source(
        "proxies_priv",
        &[
            ("Host", host_name, false),
            ("User", user_name, false),
            ("Proxied_host", host_name, false),
            ("Proxied_user", user_name, false),
            ("With_grant", tiny, false),
            ("Grantor", grantor_name, false),
            ("Timestamp", second, false),
        ],
        proxies_priv,
    ),
    source(
        "role_edges",
        &[
            ("FROM_HOST", host_name, false),
            ("FROM_USER", user_name, false),
            ("TO_HOST", host_name, false),
            ("TO_USER", user_name, false),
            ("WITH_ADMIN_OPTION", flag_type, false),
        ],
        role_edges,
    ),
    source(
        "default_roles",
        &[
            ("HOST", host_name, false),
            ("USER", user_name, false),
            ("DEFAULT_ROLE_HOST", host_name, false),
            ("DEFAULT_ROLE_USER", user_name, false),
        ],
        default_roles,
    ),
    source(
        "password_history",
        &[
            ("Host", host_name, false),
            ("User", user_name, false),
            ("Password_timestamp", microsecond, false),
            ("Password", text_type, true),
        ],
        password_history,
    ),
];

const fn source(
    name: &'static str,
    columns: &'static [ColumnRow],
    rows: porpoise_executor::virtual_table::RowMaker,
) -> VirtualSource {
    VirtualSource {
        schema: "mysql",
        name,
        columns,
        rows,
    }
}

// ---------------------------------------------------------------------------------------------------------
// Types
// ---------------------------------------------------------------------------------------------------------

fn chars(length: u32, collation: Collation) -> DataType {
    DataType::Char { length, collation }
}

fn host_name() -> DataType {
    chars(255, Collation::UTF8MB3_GENERAL_CI)
}

fn user_name() -> DataType {
    chars(32, Collation::UTF8MB3_BIN)
}

fn object_name() -> DataType {
    chars(64, Collation::UTF8MB3_BIN)
}

fn grantor_name() -> DataType {
    DataType::Varchar {
        length: 288,
        collation: Collation::UTF8MB3_BIN,
    }
}

fn text_type() -> DataType {
    DataType::Text {
        size: BlobSize::Normal,
        collation: Collation::UTF8MB3_BIN,
    }
}

fn blob() -> DataType {
    DataType::Blob(BlobSize::Normal)
}

fn tiny() -> DataType {
    integer(IntWidth::Tiny, false)
}

fn small() -> DataType {
    integer(IntWidth::Small, true)
}

fn integer(width: IntWidth, unsigned: bool) -> DataType {
    DataType::Int {
        width,
        unsigned,
        zerofill: false,
        display_width: None,
    }
}

fn second() -> DataType {
    DataType::Timestamp { fsp: 0 }
}

fn microsecond() -> DataType {
    DataType::Timestamp { fsp: 6 }
}

fn members(names: &[&str]) -> Arc<EnumDef> {
    Arc::new(EnumDef {
        members: names.iter().map(|name| (*name).into()).collect(),
        collation: Collation::UTF8MB3_GENERAL_CI,
    })
}

fn flag_type() -> DataType {
    DataType::Enum(members(&["N", "Y"]))
}

fn tls_type() -> DataType {
    DataType::Enum(members(&["", "ANY", "X509", "SPECIFIED"]))
}

fn routine_type() -> DataType {
    DataType::Enum(members(&["FUNCTION", "PROCEDURE"]))
}

pub(super) fn routine_set() -> DataType {
    DataType::Set(members(&ROUTINE_SET.map(|(name, _)| name)))
}

pub(super) fn table_set() -> DataType {
    DataType::Set(members(&TABLE_SET.map(|(name, _)| name)))
}

pub(super) fn column_set() -> DataType {
    DataType::Set(members(&COLUMN_SET.map(|(name, _)| name)))
}

/// The members of `Table_priv`.
/// The members of `Proc_priv`.
pub(super) const ROUTINE_SET: [(&str, Privilege); 3] = [
    ("Execute", Privilege::Execute),
    ("Alter Routine", Privilege::AlterRoutine),
    ("Grant", Privilege::GrantOption),
];

pub(super) const TABLE_SET: [(&str, Privilege); 13] = [
    ("Select", Privilege::Select),
    ("Insert", Privilege::Insert),
    ("Update", Privilege::Update),
    ("Delete", Privilege::Delete),
    ("Create", Privilege::Create),
    ("Drop", Privilege::Drop),
    ("Grant", Privilege::GrantOption),
    ("References", Privilege::References),
    ("Index", Privilege::Index),
    ("Alter", Privilege::Alter),
    ("Create View", Privilege::CreateView),
    ("Show view", Privilege::ShowView),
    ("Trigger", Privilege::Trigger),
];

/// The members of `Column_priv`.
pub(super) const COLUMN_SET: [(&str, Privilege); 4] = [
    ("Select", Privilege::Select),
    ("Insert", Privilege::Insert),
    ("Update", Privilege::Update),
    ("References", Privilege::References),
];

/// A value of a SET whose members stand for privileges.
pub(super) fn set_value(members: &[(&str, Privilege)], held: Set) -> Value {
    let bits = members.iter().enumerate();
    let held = bits.filter(|(_, (_, privilege))| held.has(*privilege));
    Value::UInt(held.fold(0, |bits, (at, _)| bits | 1 << at))
}

/// 'N' or 'Y'.
fn flag(is: bool) -> Value {
    Value::UInt(u64::from(is) + 1)
}

fn moment_at(exec: &Exec<'_>, utc_us: i64) -> Value {
    let utc = DateTime::from_unix_micros(utc_us);
    let zone = &exec.session.time_zone;
    utc.map_or(Value::Null, |utc| Value::DateTime(zone.from_utc(utc)))
}

fn second_at(exec: &Exec<'_>, utc_us: i64) -> Value {
    moment_at(exec, utc_us - utc_us.rem_euclid(1_000_000))
}

fn number(value: Option<u32>) -> Value {
    value.map_or(Value::Null, |value| Value::UInt(value.into()))
}

// ---------------------------------------------------------------------------------------------------------
// user and db
// ---------------------------------------------------------------------------------------------------------

const USER_COLUMNS: &[ColumnRow] = &[
    ("Host", host_name, false),
    ("User", user_name, false),
    ("Select_priv", flag_type, false),
    ("Insert_priv", flag_type, false),
    ("Update_priv", flag_type, false),
    ("Delete_priv", flag_type, false),
    ("Create_priv", flag_type, false),
    ("Drop_priv", flag_type, false),
    ("Reload_priv", flag_type, false),
    ("Shutdown_priv", flag_type, false),
    ("Process_priv", flag_type, false),
    ("File_priv", flag_type, false),
    ("Grant_priv", flag_type, false),
    ("References_priv", flag_type, false),
    ("Index_priv", flag_type, false),
    ("Alter_priv", flag_type, false),
    ("Show_db_priv", flag_type, false),
    ("Super_priv", flag_type, false),
    ("Create_tmp_table_priv", flag_type, false),
    ("Lock_tables_priv", flag_type, false),
    ("Execute_priv", flag_type, false),
    ("Repl_slave_priv", flag_type, false),
    ("Repl_client_priv", flag_type, false),
    ("Create_view_priv", flag_type, false),
    ("Show_view_priv", flag_type, false),
    ("Create_routine_priv", flag_type, false),
    ("Alter_routine_priv", flag_type, false),
    ("Create_user_priv", flag_type, false),
    ("Event_priv", flag_type, false),
    ("Trigger_priv", flag_type, false),
    ("Create_tablespace_priv", flag_type, false),
    ("ssl_type", tls_type, false),
    ("ssl_cipher", blob, false),
    ("x509_issuer", blob, false),
    ("x509_subject", blob, false),
    ("max_questions", uint, false),
    ("max_updates", uint, false),
    ("max_connections", uint, false),
    ("max_user_connections", uint, false),
    ("plugin", object_name, false),
    ("authentication_string", text_type, true),
    ("password_expired", flag_type, false),
    ("password_last_changed", second, true),
    ("password_lifetime", small, true),
    ("account_locked", flag_type, false),
    ("Create_role_priv", flag_type, false),
    ("Drop_role_priv", flag_type, false),
    ("Password_reuse_history", small, true),
    ("Password_reuse_time", small, true),
    ("Password_require_current", flag_type, true),
    ("User_attributes", json, true),
];

const DB_COLUMNS: &[ColumnRow] = &[
    ("Host", host_name, false),
    ("Db", object_name, false),
    ("User", user_name, false),
    ("Select_priv", flag_type, false),
    ("Insert_priv", flag_type, false),
    ("Update_priv", flag_type, false),
    ("Delete_priv", flag_type, false),
    ("Create_priv", flag_type, false),
    ("Drop_priv", flag_type, false),
    ("Grant_priv", flag_type, false),
    ("References_priv", flag_type, false),
    ("Index_priv", flag_type, false),
    ("Alter_priv", flag_type, false),
    ("Create_tmp_table_priv", flag_type, false),
    ("Lock_tables_priv", flag_type, false),
    ("Create_view_priv", flag_type, false),
    ("Show_view_priv", flag_type, false),
    ("Create_routine_priv", flag_type, false),
    ("Alter_routine_priv", flag_type, false),
    ("Execute_priv", flag_type, false),
    ("Event_priv", flag_type, false),
    ("Trigger_priv", flag_type, false),
];

/// `mysql.user`'s privilege columns up to Create_tablespace_priv, in order.
const USER_ORDER: [Privilege; 29] = {
    use Privilege::*;
    [
        Select,
        Insert,
        Update,
        Delete,
        Create,
        Drop,
        Reload,
        Shutdown,
        Process,
        File,
        GrantOption,
        References,
        Index,
        Alter,
        ShowDatabases,
        Super,
        CreateTemporaryTables,
        LockTables,
        Execute,
        ReplicationSlave,
        ReplicationClient,
        CreateView,
        ShowView,
        CreateRoutine,
        AlterRoutine,
        CreateUser,
        Event,
        Trigger,
        CreateTablespace,
    ]
};

/// `mysql.db`'s privilege columns, in order.
const DB_ORDER: [Privilege; 19] = {
    use Privilege::*;
    [
        Select,
        Insert,
        Update,
        Delete,
        Create,
        Drop,
        GrantOption,
        References,
        Index,
        Alter,
        CreateTemporaryTables,
        LockTables,
        CreateView,
        ShowView,
        CreateRoutine,
        AlterRoutine,
        Execute,
        Event,
        Trigger,
    ]
};

/// The columns about REQUIRE: the kind, then cipher, issuer and subject.
fn requirement(account: &Account) -> [Value; 4] {
    let kind = match account.tls {
        TlsRequirement::None => 1,
        TlsRequirement::Ssl => 2,
        TlsRequirement::X509 => 3,
        TlsRequirement::Specified { .. } => 4,
    };
    let [cipher, issuer, subject] = account.tls.specified();
    [Value::UInt(kind), text(cipher), text(issuer), text(subject)]
}

/// `User_attributes`: the second password, the lock after wrong passwords, COMMENT and ATTRIBUTE.
fn user_attributes(account: &Account) -> Value {
    let mut members = Vec::new();
    if !account.second_password.is_empty() {
        let second = JsonValue::String(account.second_password.clone());
        members.push(("additional_password".into(), second));
    }
    let policy = &account.policy;
    if policy.failed_logins > 0 || policy.lock_days > 0 {
        let days = match policy.lock_days {
            UNBOUNDED => -1,
            days => i64::from(days),
        };
        let lock = JsonValue::object([
            (
                "failed_login_attempts".into(),
                JsonValue::Int(policy.failed_logins.into()),
            ),
            ("password_lock_time_days".into(), JsonValue::Int(days)),
        ]);
        members.push(("Password_locking".into(), lock));
    }
    if let Some(attribute) = &account.attribute
        && let Ok(metadata) = Json::parse(attribute)
    {
        members.push(("metadata".into(), metadata.into_value()));
    }
    match members.is_empty() {
        true => Value::Null,
        false => Value::Json(Json::new(JsonValue::object(members))),
    }
}

fn user_row(exec: &Exec<'_>, account: &Account, grants: &Grants) -> Vec<Value> {
    let has = |privilege| flag(grants.global.has(privilege));
    let limits = account.policy.limits.named();
    let policy = &account.policy;
    let mut values = vec![text(&account.host), text(&account.user)];
    values.extend(USER_ORDER.map(has));
    values.extend(requirement(account));
    values.extend(limits.map(|(_, most)| Value::UInt(most.into())));
    values.extend([
        text(&account.plugin),
        text(&account.authentication_string),
        flag(account.password_expired),
        account
            .password_changed_us
            .map_or(Value::Null, |us| second_at(exec, us)),
        number(policy.lifetime_days),
        flag(account.locked),
        has(Privilege::CreateRole),
        has(Privilege::DropRole),
        number(policy.history),
        number(policy.reuse_days),
        policy.require_current.map_or(Value::Null, flag),
        user_attributes(account),
    ]);
    values
}

fn user(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        let values = user_row(exec, &account, &grants);
        row(exec, &values)?;
    }
    Ok(())
}

fn db(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for grant in &grants.schemas {
            let mut values = vec![
                text(&account.host),
                text(&grant.pattern),
                text(&account.user),
            ];
            values.extend(DB_ORDER.map(|privilege| flag(grant.privileges.has(privilege))));
            row(exec, &values)?;
        }
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------
// The rest
// ---------------------------------------------------------------------------------------------------------

fn global_grants(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for (name, passes_on) in &grants.dynamic {
            let values = [
                text(&account.user),
                text(&account.host),
                text(name),
                flag(*passes_on),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

/// When a grant on a table was made; the zero date where that wasn't kept.
fn granted_at(exec: &Exec<'_>, grant: &TableGrant) -> Value {
    match grant.granted_us {
        0 => Value::DateTime(DateTime::default()),
        us => second_at(exec, us),
    }
}

fn tables_priv(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for grant in &grants.tables {
            let columns = grant.columns.iter();
            let on_columns = columns.fold(Set::NONE, |set, (_, held)| set.with(*held));
            let values = [
                text(&account.host),
                text(&grant.schema),
                text(&account.user),
                text(&grant.table),
                text(&grant.grantor),
                granted_at(exec, grant),
                set_value(&TABLE_SET, grant.privileges),
                set_value(&COLUMN_SET, on_columns),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn columns_priv(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for grant in &grants.tables {
            for (column, held) in &grant.columns {
                let values = [
                    text(&account.host),
                    text(&grant.schema),
                    text(&account.user),
                    text(&grant.table),
                    text(column),
                    granted_at(exec, grant),
                    set_value(&COLUMN_SET, *held),
                ];
                row(exec, &values)?;
            }
        }
    }
    Ok(())
}

fn procs_priv(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for grant in &grants.routines {
            let kind = u64::from(!grant.routine.is_function) + 1;
            let values = [
                text(&account.host),
                text(&grant.routine.schema),
                text(&account.user),
                text(&grant.routine.name),
                Value::UInt(kind),
                text(&grant.grantor),
                set_value(&ROUTINE_SET, grant.privileges),
                second_at(exec, grant.granted_us),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn proxies_priv(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, _) in all_accounts(exec) {
        for right in &account.proxies {
            let values = [
                text(&account.host),
                text(&account.user),
                text(&right.host),
                text(&right.user),
                Value::Int(right.grantable.into()),
                text(&right.grantor),
                second_at(exec, right.granted_us),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn role_edges(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for role in &grants.roles {
            let values = [
                text(&role.host),
                text(&role.user),
                text(&account.host),
                text(&account.user),
                flag(role.admin),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn default_roles(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in all_accounts(exec) {
        for role in grants.roles.iter().filter(|role| role.default) {
            let values = [
                text(&account.host),
                text(&account.user),
                text(&role.host),
                text(&role.user),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn password_history(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, _) in all_accounts(exec) {
        for password in &account.former_passwords {
            let values = [
                text(&account.host),
                text(&account.user),
                moment_at(exec, password.set_us),
                text(&password.hash),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}
