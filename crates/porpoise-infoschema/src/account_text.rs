//! SHOW GRANTS and SHOW CREATE USER, as MySQL 8.4 prints them.

use porpoise_accounts::policy::{Policy, UNBOUNDED};
use porpoise_accounts::{AUTH_SOCKET, Account, Grants};
use porpoise_core::privilege::{PRIVILEGES, Privilege, Set, level};
use porpoise_core::quote::{name, quoted};

/// SHOW GRANTS: a row each.
pub fn grants(account: &Account, grants: &Grants) -> Vec<String> {
    let to = format!("{}@{}", name(&account.user), name(&account.host));
    let mut rows = Vec::new();
    let global: Vec<&str> = grants.global.names().collect();
    let global = if global.is_empty() {
        "USAGE".to_string()
    } else {
        global.join(", ")
    };
    rows.push(format!(
        "GRANT {global} ON *.* TO {to}{}",
        with_option(grants.global)
    ));
    for (passes_on, suffix) in [(false, ""), (true, " WITH GRANT OPTION")] {
        let mut names: Vec<&str> = grants
            .dynamic
            .iter()
            .filter(|(_, on)| *on == passes_on)
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        if !names.is_empty() {
            rows.push(format!("GRANT {} ON *.* TO {to}{suffix}", names.join(",")));
        }
    }
    let mut roles: Vec<_> = grants.roles.iter().collect();
    roles.sort_by(|a, b| (&a.user, &a.host).cmp(&(&b.user, &b.host)));
    let mut schemas: Vec<_> = grants.schemas.iter().collect();
    schemas.sort_by(|a, b| a.pattern.cmp(&b.pattern));
    for grant in schemas {
        let on = format!("{}.*", name(&grant.pattern));
        rows.push(format!(
            "GRANT {} ON {on} TO {to}{}",
            list(grant.privileges, level::SCHEMA),
            with_option(grant.privileges)
        ));
    }
    let mut tables: Vec<_> = grants.tables.iter().collect();
    tables.sort_by(|a, b| (&a.schema, &a.table).cmp(&(&b.schema, &b.table)));
    for grant in tables {
        let on = format!("{}.{}", name(&grant.schema), name(&grant.table));
        let mut parts: Vec<String> = Vec::new();
        for row in PRIVILEGES
            .iter()
            .filter(|row| row.privilege != Privilege::GrantOption)
        {
            if grant.privileges.has(row.privilege) {
                parts.push(row.name.to_string());
            }
            let columns: Vec<String> = grant
                .columns
                .iter()
                .filter(|(_, set)| set.has(row.privilege))
                .map(|(column, _)| name(column))
                .collect();
            if !columns.is_empty() {
                parts.push(format!("{} ({})", row.name, columns.join(", ")));
            }
        }
        let privileges =
            match grant.privileges.contains(Set::all(level::TABLE)) && grant.columns.is_empty() {
                true => "ALL PRIVILEGES".to_string(),
                false if parts.is_empty() => "USAGE".to_string(),
                false => parts.join(", "),
            };
        rows.push(format!(
            "GRANT {privileges} ON {on} TO {to}{}",
            with_option(grant.privileges)
        ));
    }
    rows.extend(routines(grants, &to));
    for right in &account.proxies {
        let on = format!("{}@{}", name(&right.user), name(&right.host));
        let suffix = if right.grantable {
            " WITH GRANT OPTION"
        } else {
            ""
        };
        rows.push(format!("GRANT PROXY ON {on} TO {to}{suffix}"));
    }
    for (admin, suffix) in [(false, ""), (true, " WITH ADMIN OPTION")] {
        let names: Vec<String> = roles
            .iter()
            .filter(|role| role.admin == admin)
            .map(|role| porpoise_accounts::role::quoted(&role.user, &role.host))
            .collect();
        if !names.is_empty() {
            rows.push(format!("GRANT {} TO {to}{suffix}", names.join(",")));
        }
    }
    rows
}

fn list(set: Set, at: u8) -> String {
    if set.contains(Set::all(at)) {
        return "ALL PRIVILEGES".to_string();
    }
    let names: Vec<&str> = set.names().collect();
    if names.is_empty() {
        "USAGE".to_string()
    } else {
        names.join(", ")
    }
}

fn with_option(set: Set) -> &'static str {
    match set.has(Privilege::GrantOption) {
        true => " WITH GRANT OPTION",
        false => "",
    }
}

/// What is granted on routines: procedures first.
fn routines(grants: &Grants, to: &str) -> Vec<String> {
    let mut routines: Vec<_> = grants.routines.iter().collect();
    routines.sort_by_key(|grant| {
        let routine = &grant.routine;
        let name = routine.name.to_lowercase();
        (routine.is_function, routine.schema.clone(), name)
    });
    let rows = routines.into_iter().map(|grant| {
        let names: Vec<&str> = grant.privileges.names().collect();
        let kind = match grant.routine.is_function {
            true => "FUNCTION",
            false => "PROCEDURE",
        };
        let privileges = match names.is_empty() {
            true => "USAGE".to_string(),
            false => names.join(", "),
        };
        let on = format!(
            "{}.{}",
            name(&grant.routine.schema),
            name(&grant.routine.name.to_lowercase())
        );
        let option = with_option(grant.privileges);
        format!("GRANT {privileges} ON {kind} {on} TO {to}{option}")
    });
    rows.collect()
}

/// SHOW CREATE USER.
pub fn create_user(account: &Account) -> String {
    let mut out = format!(
        "CREATE USER {}@{} IDENTIFIED WITH {}",
        name(&account.user),
        name(&account.host),
        quoted(&account.plugin)
    );
    if !account.authentication_string.is_empty() && account.plugin != AUTH_SOCKET {
        out.push_str(" AS ");
        out.push_str(&quoted(&account.authentication_string));
    }
    let defaults: Vec<String> = account
        .grants
        .load()
        .roles
        .iter()
        .filter(|role| role.default)
        .map(|role| porpoise_accounts::role::quoted(&role.user, &role.host))
        .collect();
    if !defaults.is_empty() {
        out.push_str(&format!(" DEFAULT ROLE {}", defaults.join(",")));
    }
    out.push_str(" REQUIRE ");
    out.push_str(&account.tls.clause(quoted));
    for option in &account.options {
        out.push(' ');
        out.push_str(option);
    }
    let policy = &account.policy;
    let limits = policy.limits.named();
    let mut limits = limits.iter().filter(|(_, most)| *most > 0).peekable();
    if limits.peek().is_some() {
        out.push_str(" WITH");
    }
    for (name, most) in limits {
        out.push_str(&format!(" {name} {most}"));
    }
    out.push_str(" PASSWORD EXPIRE");
    match policy.lifetime_days {
        _ if account.password_expired => {}
        None => out.push_str(" DEFAULT"),
        Some(0) => out.push_str(" NEVER"),
        Some(days) => out.push_str(&format!(" INTERVAL {days} DAY")),
    }
    out.push_str(if account.locked {
        " ACCOUNT LOCK"
    } else {
        " ACCOUNT UNLOCK"
    });
    out.push_str(&password_policy(policy));
    if let Some(attribute) = &account.attribute {
        out.push_str(" ATTRIBUTE ");
        out.push_str(&quoted(attribute));
    }
    out
}

/// What passwords and log-ins have to keep to, as SHOW CREATE USER prints it.
fn password_policy(policy: &Policy) -> String {
    let history = policy.history.map(|count| count.to_string());
    let reuse = policy.reuse_days.map(|days| format!("{days} DAY"));
    let default = || "DEFAULT".to_string();
    let mut out = format!(
        " PASSWORD HISTORY {} PASSWORD REUSE INTERVAL {} PASSWORD REQUIRE CURRENT{}",
        history.unwrap_or_else(default),
        reuse.unwrap_or_else(default),
        match policy.require_current {
            None => " DEFAULT",
            Some(true) => "",
            Some(false) => " OPTIONAL",
        }
    );
    if policy.failed_logins > 0 || policy.lock_days > 0 {
        let days = match policy.lock_days {
            UNBOUNDED => "UNBOUNDED".to_string(),
            days => days.to_string(),
        };
        out.push_str(&format!(
            " FAILED_LOGIN_ATTEMPTS {} PASSWORD_LOCK_TIME {days}",
            policy.failed_logins
        ));
    }
    out
}
