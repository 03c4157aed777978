//! The roles that are active in a session: SET ROLE, those of a log-in, and what they add to the
//! session's privileges.

use std::sync::Arc;

use porpoise_accounts::role::{RoleGrant, named, not_granted, quoted, reachable};
use porpoise_accounts::{Account, Accounts, Grants};
use porpoise_core::error::Result;
use porpoise_sql::ast;

use crate::session_state::SessionState;

/// The roles that are active in a session, all of which are granted to its account still.
pub fn active(state: &SessionState, account: &Account) -> Vec<Arc<Account>> {
    let own = account.grants.load();
    let granted = |role: &&Arc<Account>| {
        own.roles
            .iter()
            .any(|grant| grant.is(&role.user, &role.host))
    };
    state.active_roles.iter().filter(granted).cloned().collect()
}

/// The roles whose privileges the session has: its active ones, and those that these have.
pub fn enabled(state: &SessionState, account: &Account) -> Vec<Arc<Account>> {
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
        let below = state.reached_roles.iter().filter(|below| {
            grants
                .roles
                .iter()
                .any(|grant| grant.is(&below.user, &below.host))
        });
        waiting.extend(below.cloned());
        seen.push(role);
    }
    seen
}

/// What an account and its session's active roles may do together.
pub fn with_roles(state: &SessionState, account: &Account) -> Arc<Grants> {
    let mut all = Grants::clone(&account.grants.load());
    for role in enabled(state, account) {
        all.add_all(&role.grants.load());
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
    state.reached_roles = reachable(accounts, &account);
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
