//! Roles: accounts that nobody logs in to, whose privileges other accounts can activate.
//!
//! A role is a locked account. GRANT role TO user writes its name beside the user's own privileges;
//! SET ROLE, or the login for default roles, makes it active in one session, whose privileges are
//! from then on its account's and its active roles' together (`porpoise_session::check`). A role
//! that is revoked or dropped has no more effect in any session.
//!
//! MySQL 8.4 manual, 8.2.10 (Using Roles).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_core::error::{Error, Result};
use porpoise_sql::ast;
use serde::{Deserialize, Serialize};

use super::{Account, Accounts, Grants};

/// A role that is granted to an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleGrant {
    /// The role's user part.
    pub user: CompactString,
    /// The role's host part, `%` where GRANT named none.
    pub host: CompactString,
    /// WITH ADMIN OPTION.
    #[serde(default)]
    pub admin: bool,
    /// Active after login.
    #[serde(default)]
    pub default: bool,
}

impl RoleGrant {
    /// Whether it grants the role of this name. `host` compares in any case.
    pub fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.eq_ignore_ascii_case(host)
    }
}

/// A role as it is printed: `` `user`@`host` ``.
pub fn quoted(user: &str, host: &str) -> String {
    let name = porpoise_core::quote::name;
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
pub fn reachable(accounts: &Accounts, account: &Account) -> Vec<Arc<Account>> {
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

/// What an account may do without a session of its own, as the definer of a view: its privileges
/// with those of its default roles, and of the roles that these have.
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

/// A role's name and host as a statement gives them.
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
