//! Privileges that come and go with a routine (`automatic_sp_privileges`, MySQL 8.4 manual, 27.2.2).

use porpoise_accounts::policy::now_us;
use porpoise_accounts::routine::{RoutineGrant, RoutineName};
use porpoise_accounts::{AccountChange, role};
use porpoise_core::error::Result;
use porpoise_core::privilege::Privilege;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;

fn is_automatic(shared: &Shared) -> bool {
    shared.variables.get_u64("automatic_sp_privileges") != 0
}

/// Grants who makes a routine, its definer or not, EXECUTE and ALTER ROUTINE on it, if they lack one of
/// them.
///
/// # Errors
/// If the grant can't be stored.
pub fn grant_to_creator(shared: &Shared, state: &SessionState, routine: RoutineName) -> Result<()> {
    let own = state.account.as_ref();
    let Some(account) = own.and_then(|own| shared.accounts.get(&own.user, &own.host)) else {
        return Ok(());
    };
    let needed = Privilege::Execute.set().with(Privilege::AlterRoutine.set());
    let is_held = role::with_default_roles(&shared.accounts, &account)
        .on_routine(&routine)
        .contains(needed);
    if !is_automatic(shared) || is_held {
        return Ok(());
    }
    let mut change = AccountChange::begin(&shared.accounts, &shared.store);
    let mut grants = change.grants(&account);
    grants.add_on_routine(RoutineGrant {
        routine,
        privileges: needed,
        grantor: format!("{}@{}", account.user, account.host).into(),
        granted_us: now_us(),
    });
    change.put_grants(&account, grants)?;
    change.commit()
}

/// Takes everybody's privileges on a routine that was dropped.
///
/// # Errors
/// If that can't be stored.
pub fn revoke_from_all(shared: &Shared, routine: &RoutineName) -> Result<()> {
    if !is_automatic(shared) {
        return Ok(());
    }
    let mut change = AccountChange::begin(&shared.accounts, &shared.store);
    let mut has_changed = false;
    for account in shared.accounts.all() {
        let mut grants = change.grants(&account);
        if grants.routine(routine).is_some() {
            grants.routines.retain(|grant| !grant.routine.is(routine));
            change.put_grants(&account, grants)?;
            has_changed = true;
        }
    }
    match has_changed {
        true => change.commit(),
        false => Ok(()),
    }
}
