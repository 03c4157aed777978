//! Who may do what: information_schema's privilege tables, and `mysql.user`, `mysql.db` and their kin.

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
    VirtualSource {
        schema: "mysql",
        name: "user",
        columns: &[
            ("Host", word, false),
            ("User", exact, false),
            ("Select_priv", yes_no, false),
            ("Insert_priv", yes_no, false),
            ("Update_priv", yes_no, false),
            ("Delete_priv", yes_no, false),
            ("Create_priv", yes_no, false),
            ("Drop_priv", yes_no, false),
            ("Reload_priv", yes_no, false),
            ("Shutdown_priv", yes_no, false),
            ("Process_priv", yes_no, false),
            ("File_priv", yes_no, false),
            ("Grant_priv", yes_no, false),
            ("References_priv", yes_no, false),
            ("Index_priv", yes_no, false),
            ("Alter_priv", yes_no, false),
            ("Show_db_priv", yes_no, false),
            ("Super_priv", yes_no, false),
            ("Create_tmp_table_priv", yes_no, false),
            ("Lock_tables_priv", yes_no, false),
            ("Execute_priv", yes_no, false),
            ("Repl_slave_priv", yes_no, false),
            ("Repl_client_priv", yes_no, false),
            ("Create_view_priv", yes_no, false),
            ("Show_view_priv", yes_no, false),
            ("Create_routine_priv", yes_no, false),
            ("Alter_routine_priv", yes_no, false),
            ("Create_user_priv", yes_no, false),
            ("Event_priv", yes_no, false),
            ("Trigger_priv", yes_no, false),
            ("Create_tablespace_priv", yes_no, false),
            ("ssl_type", name, false),
            ("ssl_cipher", long, false),
            ("x509_issuer", long, false),
            ("x509_subject", long, false),
            ("max_questions", uint, false),
            ("max_updates", uint, false),
            ("max_connections", uint, false),
            ("max_user_connections", uint, false),
            ("plugin", name, false),
            ("authentication_string", long, true),
            ("password_expired", yes_no, false),
            ("password_last_changed", moment, true),
            ("password_lifetime", uint, true),
            ("account_locked", yes_no, false),
            ("Create_role_priv", yes_no, false),
            ("Drop_role_priv", yes_no, false),
            ("Password_reuse_history", uint, true),
            ("Password_reuse_time", uint, true),
            ("Password_require_current", yes_no, true),
            ("User_attributes", long, true),
        ],
        rows: mysql_user,
    },
    VirtualSource {
        schema: "mysql",
        name: "db",
        columns: &[
            ("Host", word, false),
            ("Db", exact, false),
            ("User", exact, false),
            ("Select_priv", yes_no, false),
            ("Insert_priv", yes_no, false),
            ("Update_priv", yes_no, false),
            ("Delete_priv", yes_no, false),
            ("Create_priv", yes_no, false),
            ("Drop_priv", yes_no, false),
            ("Grant_priv", yes_no, false),
            ("References_priv", yes_no, false),
            ("Index_priv", yes_no, false),
            ("Alter_priv", yes_no, false),
            ("Create_tmp_table_priv", yes_no, false),
            ("Lock_tables_priv", yes_no, false),
            ("Create_view_priv", yes_no, false),
            ("Show_view_priv", yes_no, false),
            ("Create_routine_priv", yes_no, false),
            ("Alter_routine_priv", yes_no, false),
            ("Execute_priv", yes_no, false),
            ("Event_priv", yes_no, false),
            ("Trigger_priv", yes_no, false),
        ],
        rows: mysql_db,
    },
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

/// Accounts that the session may see, with their grants: its own, or all with SELECT on `mysql`.
fn visible_accounts(exec: &Exec<'_>) -> Vec<(Arc<Account>, Arc<Grants>)> {
    let all =
        grants(exec.session).is_none_or(|grants| grants.on_schema("mysql").has(Privilege::Select));
    let own = exec.session.account.clone();
    let accounts = exec.engine.accounts.all().into_iter().filter(|account| {
        all || own
            .as_ref()
            .is_some_and(|own| own.user == account.user && own.host == account.host)
    });
    accounts
        .map(|account| (account.clone(), account.grants.load_full()))
        .collect()
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

fn attribute(account: &Account) -> Value {
    match (&account.comment, &account.attribute) {
        (Some(comment), _) => text(serde_json::json!({ "comment": comment }).to_string()),
        (None, Some(attribute)) => text(attribute),
        (None, None) => Value::Null,
    }
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

fn letter(set: Set, privilege: Privilege) -> Value {
    text(if set.has(privilege) { "Y" } else { "N" })
}

fn flag(is: bool) -> Value {
    text(if is { "Y" } else { "N" })
}

fn mysql_user(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in visible_accounts(exec) {
        let mut values = vec![text(&account.host), text(&account.user)];
        values.extend(
            USER_ORDER
                .iter()
                .map(|privilege| letter(grants.global, *privilege)),
        );
        let requires_tls = account.options.iter().any(|option| option == "REQUIRE SSL");
        values.extend([
            text(if requires_tls { "ANY" } else { "" }),
            text(""),
            text(""),
            text(""),
        ]);
        values.extend([
            Value::UInt(0),
            Value::UInt(0),
            Value::UInt(0),
            Value::UInt(0),
        ]);
        values.extend([
            text(&account.plugin),
            text(&account.authentication_string),
            flag(account.password_expired),
            Value::Null,
            Value::Null,
            flag(account.locked),
            letter(grants.global, Privilege::CreateRole),
            letter(grants.global, Privilege::DropRole),
            Value::Null,
            Value::Null,
            Value::Null,
            attribute(&account),
        ]);
        row(exec, &values)?;
    }
    Ok(())
}

fn mysql_db(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (account, grants) in visible_accounts(exec) {
        for grant in &grants.schemas {
            let mut values = vec![
                text(&account.host),
                text(&grant.pattern),
                text(&account.user),
            ];
            values.extend(
                DB_ORDER
                    .iter()
                    .map(|privilege| letter(grant.privileges, *privilege)),
            );
            row(exec, &values)?;
        }
    }
    Ok(())
}

/// SHOW PRIVILEGES: Privilege, Context, Comment.
pub fn privilege_rows() -> impl Iterator<Item = [&'static str; 3]> {
    PRIVILEGES
        .iter()
        .map(|row| [row.shown, row.context, row.comment])
}
