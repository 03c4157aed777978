//! Roles: those that are granted to the session's account, those that are active, and what the
//! active ones may do (MySQL 8.4 manual, 28.3).

use std::sync::Arc;

use porpoise_accounts::{Account, role};
use porpoise_core::privilege::Privilege;
use porpoise_session::active_roles;
use porpoise_types::Value;

use super::grant_tables::{
    COLUMN_SET, ROUTINE_SET, TABLE_SET, column_set, routine_set, set_value, table_set,
};
use super::*;

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "information_schema",
        name: "ENABLED_ROLES",
        columns: &[
            ("ROLE_NAME", word, true),
            ("ROLE_HOST", word, true),
            ("IS_DEFAULT", yes_no, true),
            ("IS_MANDATORY", yes_no, false),
        ],
        rows: enabled_roles,
    },
    VirtualSource {
        schema: "information_schema",
        name: "APPLICABLE_ROLES",
        columns: GRANTED_COLUMNS,
        rows: |exec, _, row| granted_roles(exec, false, row),
    },
    VirtualSource {
        schema: "information_schema",
        name: "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
        columns: GRANTED_COLUMNS,
        rows: |exec, _, row| granted_roles(exec, true, row),
    },
    VirtualSource {
        schema: "information_schema",
        name: "ROLE_TABLE_GRANTS",
        columns: &[
            ("GRANTOR", word, true),
            ("GRANTOR_HOST", word, true),
            ("GRANTEE", account_name, false),
            ("GRANTEE_HOST", account_host, false),
            ("TABLE_CATALOG", yes_no, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("PRIVILEGE_TYPE", table_set, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: table_grants,
    },
    VirtualSource {
        schema: "information_schema",
        name: "ROLE_COLUMN_GRANTS",
        columns: &[
            ("GRANTOR", word, true),
            ("GRANTOR_HOST", word, true),
            ("GRANTEE", account_name, false),
            ("GRANTEE_HOST", account_host, false),
            ("TABLE_CATALOG", yes_no, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, false),
            ("PRIVILEGE_TYPE", column_set, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: column_grants,
    },
    VirtualSource {
        schema: "information_schema",
        name: "ROLE_ROUTINE_GRANTS",
        columns: &[
            ("GRANTOR", word, true),
            ("GRANTOR_HOST", word, true),
            ("GRANTEE", account_name, false),
            ("GRANTEE_HOST", account_host, false),
            ("SPECIFIC_CATALOG", yes_no, false),
            ("SPECIFIC_SCHEMA", exact, false),
            ("SPECIFIC_NAME", name, false),
            ("ROUTINE_CATALOG", yes_no, false),
            ("ROUTINE_SCHEMA", exact, false),
            ("ROUTINE_NAME", name, false),
            ("PRIVILEGE_TYPE", routine_set, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: routine_grants,
    },
];

const GRANTED_COLUMNS: &[ColumnRow] = &[
    ("USER", word, true),
    ("HOST", word, true),
    ("GRANTEE", word, true),
    ("GRANTEE_HOST", word, true),
    ("ROLE_NAME", word, true),
    ("ROLE_HOST", word, true),
    ("IS_GRANTABLE", yes_no, false),
    ("IS_DEFAULT", yes_no, true),
    ("IS_MANDATORY", yes_no, false),
];

fn account_name() -> DataType {
    DataType::Char {
        length: 32,
        collation: Collation::UTF8MB3_BIN,
    }
}

fn account_host() -> DataType {
    DataType::Char {
        length: 255,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

/// The roles whose privileges the session has.
fn enabled(exec: &Exec<'_>) -> Vec<Arc<Account>> {
    let account = exec.session.account.as_ref();
    account.map_or_else(Vec::new, |account| {
        active_roles::enabled(exec.session, account)
    })
}

fn enabled_roles(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let Some(account) = exec.session.account.clone() else {
        return Ok(());
    };
    let own = account.grants.load_full();
    for role in active_roles::active(exec.session, &account) {
        let is_default = own
            .roles
            .iter()
            .any(|grant| grant.default && grant.is(&role.user, &role.host));
        let values = [
            text(&role.user),
            text(&role.host),
            yes(is_default),
            yes(false),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// The roles that the session's account has, itself or through other roles: all, or those that it
/// may grant.
fn granted_roles(exec: &mut Exec<'_>, administrable: bool, row: Sink<'_>) -> Result<()> {
    let Some(account) = exec.session.account.clone() else {
        return Ok(());
    };
    let mut grantees = vec![Arc::clone(&account)];
    grantees.extend(role::reachable(&exec.engine.accounts, &account));
    for grantee in grantees {
        let grants = grantee.grants.load_full();
        for grant in grants
            .roles
            .iter()
            .filter(|grant| grant.admin || !administrable)
        {
            let values = [
                text(&account.user),
                text(&account.host),
                text(&grantee.user),
                text(&grantee.host),
                text(&grant.user),
                text(&grant.host),
                yes(grant.admin),
                yes(grant.default),
                yes(false),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn table_grants(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for role in enabled(exec) {
        let grants = role.grants.load_full();
        for grant in &grants.tables {
            let is_empty = grant.privileges.names().next().is_none();
            if is_empty || !lookup.wants(&grant.schema, &grant.table) {
                continue;
            }
            let values = [
                Value::Null,
                Value::Null,
                text(&role.user),
                text(&role.host),
                text("def"),
                text(&grant.schema),
                text(&grant.table),
                set_value(&TABLE_SET, grant.privileges),
                yes(grant.privileges.has(Privilege::GrantOption)),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn routine_grants(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for role in enabled(exec) {
        let grants = role.grants.load_full();
        for grant in &grants.routines {
            if grant.privileges.names().next().is_none() {
                continue;
            }
            let (schema, name) = (&grant.routine.schema, &grant.routine.name);
            let values = [
                Value::Null,
                Value::Null,
                text(&role.user),
                text(&role.host),
                text("def"),
                text(schema),
                text(name),
                text("def"),
                text(schema),
                text(name),
                set_value(&ROUTINE_SET, grant.privileges),
                yes(grant.privileges.has(Privilege::GrantOption)),
            ];
            row(exec, &values)?;
        }
    }
    Ok(())
}

fn column_grants(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for role in enabled(exec) {
        let grants = role.grants.load_full();
        for grant in &grants.tables {
            if !lookup.wants(&grant.schema, &grant.table) {
                continue;
            }
            for (column, privileges) in &grant.columns {
                let values = [
                    Value::Null,
                    Value::Null,
                    text(&role.user),
                    text(&role.host),
                    text("def"),
                    text(&grant.schema),
                    text(&grant.table),
                    text(column),
                    set_value(&COLUMN_SET, *privileges),
                    yes(grant.privileges.has(Privilege::GrantOption)),
                ];
                row(exec, &values)?;
            }
        }
    }
    Ok(())
}
