//! Who may do what: information_schema's privilege tables.

use std::sync::Arc;

use porpoise_accounts::{Account, Grants};
use porpoise_core::privilege::{PRIVILEGES, Privilege, Set};
use porpoise_session::check::grants;
use porpoise_types::Value;

use super::*;

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "information_schema",
        name: "USER_PRIVILEGES",
        columns: &[
            ("GRANTEE", word, false),
            ("TABLE_CATALOG", name, false),
            ("PRIVILEGE_TYPE", name, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: user_privileges,
    },
    VirtualSource {
        schema: "information_schema",
        name: "SCHEMA_PRIVILEGES",
        columns: &[
            ("GRANTEE", word, false),
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("PRIVILEGE_TYPE", name, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: schema_privileges,
    },
    VirtualSource {
        schema: "information_schema",
        name: "TABLE_PRIVILEGES",
        columns: &[
            ("GRANTEE", word, false),
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("PRIVILEGE_TYPE", name, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: table_privileges,
    },
    VirtualSource {
        schema: "information_schema",
        name: "COLUMN_PRIVILEGES",
        columns: &[
            ("GRANTEE", word, false),
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, false),
            ("PRIVILEGE_TYPE", name, false),
            ("IS_GRANTABLE", yes_no, false),
        ],
        rows: column_privileges,
    },
    VirtualSource {
        schema: "information_schema",
        name: "USER_ATTRIBUTES",
        columns: &[
            ("USER", name, false),
            ("HOST", word, false),
            ("ATTRIBUTE", long, true),
        ],
        rows: user_attributes,
    },
];

/// All accounts with their grants, as the tables of `mysql` have them: who reads such a table has SELECT on
/// it, or reads through a view of somebody who has.
pub(super) fn all_accounts(exec: &Exec<'_>) -> Vec<(Arc<Account>, Arc<Grants>)> {
    let accounts = exec.engine.accounts.all().into_iter();
    accounts
        .map(|account| (account.clone(), account.grants.load_full()))
        .collect()
}

/// Accounts that the session may see, with their grants: its own, or all with SELECT on `mysql`.
fn visible_accounts(exec: &Exec<'_>) -> Vec<(Arc<Account>, Arc<Grants>)> {
    let all =
        grants(exec.session).is_none_or(|grants| grants.on_schema("mysql").has(Privilege::Select));
    let own = exec.session.account.clone();
    let mut accounts = all_accounts(exec);
    accounts.retain(|(account, _)| {
        all || own
            .as_ref()
            .is_some_and(|own| own.user == account.user && own.host == account.host)
    });
    accounts
}

fn names(set: Set) -> Vec<&'static str> {
    let names: Vec<&str> = set.names().collect();
    if names.is_empty() {
        vec!["USAGE"]
    } else {
        names
    }
}

fn user_privileges(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in visible_accounts(exec) {
        let grantable = grants.global.has(Privilege::GrantOption);
        let fixed = names(grants.global)
            .into_iter()
            .map(|name| (name.to_string(), grantable));
        let dynamic = grants
            .dynamic
            .iter()
            .map(|(name, passes_on)| (name.to_string(), *passes_on));
        for (privilege, grantable) in fixed.chain(dynamic) {
            row(
                exec,
                &[
                    text(account.quoted()),
                    text("def"),
                    text(privilege),
                    yes(grantable),
                ],
            )?;
        }
    }
    Ok(())
}

fn schema_privileges(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in visible_accounts(exec) {
        for grant in &grants.schemas {
            let grantable = grant.privileges.has(Privilege::GrantOption);
            for privilege in names(grant.privileges) {
                row(
                    exec,
                    &[
                        text(account.quoted()),
                        text("def"),
                        text(&grant.pattern),
                        text(privilege),
                        yes(grantable),
                    ],
                )?;
            }
        }
    }
    Ok(())
}

fn table_privileges(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in visible_accounts(exec) {
        for grant in grants
            .tables
            .iter()
            .filter(|grant| lookup.wants(&grant.schema, &grant.table))
        {
            let grantable = grant.privileges.has(Privilege::GrantOption);
            for privilege in grant.privileges.names() {
                let values = [
                    text(account.quoted()),
                    text("def"),
                    text(&grant.schema),
                    text(&grant.table),
                    text(privilege),
                    yes(grantable),
                ];
                row(exec, &values)?;
            }
        }
    }
    Ok(())
}

fn column_privileges(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in visible_accounts(exec) {
        for grant in grants
            .tables
            .iter()
            .filter(|grant| lookup.wants(&grant.schema, &grant.table))
        {
            let grantable = grant.privileges.has(Privilege::GrantOption);
            for (column, set) in &grant.columns {
                for privilege in set.names() {
                    let values = [
                        text(account.quoted()),
                        text("def"),
                        text(&grant.schema),
                        text(&grant.table),
                        text(column),
                        text(privilege),
                        yes(grantable),
                    ];
                    row(exec, &values)?;
                }
            }
        }
    }
    Ok(())
}

/// COMMENT and ATTRIBUTE of an account.
fn attribute(account: &Account) -> Value {
    some_text(account.attribute.as_deref())
}

fn user_attributes(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, _) in visible_accounts(exec) {
        row(
            exec,
            &[
                text(&account.user),
                text(&account.host),
                attribute(&account),
            ],
        )?;
    }
    Ok(())
}

/// SHOW PRIVILEGES: Privilege, Context, Comment.
pub fn privilege_rows() -> impl Iterator<Item = [&'static str; 3]> {
    PRIVILEGES
        .iter()
        .map(|row| [row.shown, row.context, row.comment])
}
