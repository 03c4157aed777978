//! Roles: accounts that nobody logs in with, whose grants others can put on.
//!
//! A role is a locked account. GRANT role TO user writes its name beside the user's own privileges; SET ROLE, or
//! the login for default roles, makes it active in one session, whose privileges are from then on its
//! account's and its active roles' together ([`super::check::grants`]). A role that is taken away, or
//! dropped, counts no more in any session.
//!
//! MySQL 8.4 manual, 8.2.10 (Using Roles).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_sql::ast;
use serde::{Deserialize, Serialize};

use super::{Account, Accounts, Grants};
use crate::error::{Error, Result};
use crate::session::SessionState;

/// A role that is granted to an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleGrant {
    pub user: CompactString,
    pub host: CompactString,
    /// WITH ADMIN OPTION.
    #[serde(default)]
    pub admin: bool,
    /// Active after login.
    #[serde(default)]
    pub default: bool,
}

impl RoleGrant {
    pub fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.eq_ignore_ascii_case(host)
    }
}

/// A role as it is printed: `` `user`@`host` ``.
pub fn quoted(user: &str, host: &str) -> String {
    let name = crate::quote::name;
    format!("{}@{}", name(user), name(host))
}

/// Error 3530: a role that is not the account's.
pub fn not_granted(role: (&str, &str), account: (&str, &str)) -> Error {
    Error::role_not_granted(quoted(role.0, role.1), quoted(account.0, account.1))
}

/// Error 3523: no such account or role.
pub fn unknown(user: &str, host: &str) -> Error {
    Error::unknown_authorization_id(user, host)
}

/// The roles of an account and, through them, of those roles.
pub fn reached(accounts: &Accounts, account: &Account) -> Vec<Arc<Account>> {
    let mut found: Vec<Arc<Account>> = Vec::new();
    let mut grants = vec![account.grants.load_full()];
    while let Some(next) = grants.pop() {
        for role in &next.roles {
            let known = found.iter().any(|known| role.is(&known.user, &known.host));
            if let (false, Some(role)) = (known, accounts.get(&role.user, &role.host)) {
                grants.push(role.grants.load_full());
                found.push(role);
            }
        }
    }
    found
}

/// The roles that are active in a session, all of which are granted to its account still.
fn active(state: &SessionState, account: &Account) -> Vec<Arc<Account>> {
    let own = account.grants.load();
    let granted = |role: &&Arc<Account>| {
        own.roles
            .iter()
            .any(|grant| grant.is(&role.user, &role.host))
    };
    state.active_roles.iter().filter(granted).cloned().collect()
}

/// What an account and its session's active roles may do together.
pub fn with_roles(state: &SessionState, account: &Account) -> Arc<Grants> {
    let mut all = Grants::clone(&account.grants.load());
    let mut seen: Vec<Arc<Account>> = Vec::new();
    let mut waiting = active(state, account);
    while let Some(role) = waiting.pop() {
        if seen
            .iter()
            .any(|known| known.user == role.user && known.host == role.host)
        {
            continue;
        }
        let grants = role.grants.load();
        all.add_all(&grants);
        let below = state.reached_roles.iter().filter(|below| {
            grants
                .roles
                .iter()
                .any(|grant| grant.is(&below.user, &below.host))
        });
        waiting.extend(below.cloned());
        seen.push(role);
    }
    Arc::new(all)
}

/// What an account may do where nobody has logged in as it: with its default roles, and those that they have.
pub fn with_default_roles(accounts: &Accounts, account: &Account) -> Arc<Grants> {
    let own = account.grants.load_full();
    let mut waiting: Vec<RoleGrant> = own.roles.clone();
    waiting.retain(|grant| grant.default);
    if waiting.is_empty() {
        return own;
    }
    let mut all = Grants::clone(&own);
    let mut seen: Vec<RoleGrant> = Vec::new();
    while let Some(grant) = waiting.pop() {
        if seen.iter().any(|known| known.is(&grant.user, &grant.host)) {
            continue;
        }
        if let Some(role) = accounts.get(&grant.user, &grant.host) {
            let grants = role.grants.load();
            all.add_all(&grants);
            waiting.extend(grants.roles.iter().cloned());
        }
        seen.push(grant);
    }
    Arc::new(all)
}

/// CURRENT_ROLE().
pub fn current(state: &SessionState) -> String {
    let Some(account) = &state.account else {
        return "NONE".into();
    };
    let mut names: Vec<String> = active(state, account)
        .iter()
        .map(|role| quoted(&role.user, &role.host))
        .collect();
    names.sort();
    if names.is_empty() {
        "NONE".into()
    } else {
        names.join(",")
    }
}

/// A role's name and host as a statement says them.
pub fn named(role: &ast::Account) -> Result<(CompactString, CompactString)> {
    match role {
        ast::Account::Named { user, host } => Ok((
            user.0.clone(),
            host.as_ref()
                .map_or_else(|| "%".into(), |host| host.to_ascii_lowercase().into()),
        )),
        ast::Account::Current => Err(Error::unknown_authorization_id("CURRENT_USER", "")),
    }
}

/// Makes roles of the session's account active: SET ROLE.
pub fn set(state: &mut SessionState, accounts: &Accounts, roles: &ast::RoleSet) -> Result<()> {
    let Some(account) = state.account.clone() else {
        return Ok(());
    };
    let own = account.grants.load();
    let mut chosen: Vec<&RoleGrant> = Vec::new();
    let listed = |roles: &[ast::Account]| -> Result<Vec<&RoleGrant>> {
        let mut found = Vec::with_capacity(roles.len());
        for role in roles {
            let (user, host) = named(role)?;
            let grant = own.roles.iter().find(|grant| grant.is(&user, &host));
            found.push(
                grant.ok_or_else(|| not_granted((&user, &host), (&account.user, &account.host)))?,
            );
        }
        Ok(found)
    };
    match roles {
        ast::RoleSet::None => {}
        ast::RoleSet::Default => chosen.extend(own.roles.iter().filter(|grant| grant.default)),
        ast::RoleSet::All => chosen.extend(&own.roles),
        ast::RoleSet::AllExcept(roles) => {
            let except = listed(roles)?;
            chosen.extend(own.roles.iter().filter(|grant| !except.contains(grant)));
        }
        ast::RoleSet::List(roles) => chosen = listed(roles)?,
    }
    state.active_roles = chosen
        .iter()
        .filter_map(|grant| accounts.get(&grant.user, &grant.host))
        .collect();
    state.reached_roles = reached(accounts, &account);
    Ok(())
}

/// The roles that a login makes active.
pub fn log_in(state: &mut SessionState, accounts: &Accounts) -> Result<()> {
    let has_roles = state
        .account
        .as_ref()
        .is_some_and(|account| !account.grants.load().roles.is_empty());
    if !has_roles {
        return Ok(());
    }
    let all = state.activates_all_roles;
    set(
        state,
        accounts,
        if all {
            &ast::RoleSet::All
        } else {
            &ast::RoleSet::Default
        },
    )
}
