//! How many connections each account has, where that is limited.
//!
//! `max_user_connections` is the most that any account may have at a time, unless the account has a
//! number of its own, MAX_USER_CONNECTIONS (MySQL 8.4 Reference Manual, 8.2.21). As in MySQL, connections are counted from when there is a limit: while there is
//! none, a login touches no shared memory for it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use porpoise_engine::Account;
use porpoise_engine::Error;

/// An account's user and host.
type AccountName = (String, String);

/// The connections of each account that were counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountLimits(Arc<Mutex<HashMap<AccountName, u64>>>);

/// One of an account's connections. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct AccountSlot {
    limits: AccountLimits,
    account: AccountName,
}

impl AccountLimits {
    /// A slot for one more connection of the account, of as many as it may have, or of `general`;
    /// 0 for any number, which isn't counted.
    ///
    /// # Errors
    /// 1226 if the account has as many connections as it may have, 1203 if as many as any may.
    pub fn take(&self, account: &Account, general: u64) -> Result<Option<AccountSlot>, Error> {
        let own = u64::from(account.policy.limits.user_connections);
        let most = if own > 0 { own } else { general };
        if most == 0 {
            return Ok(None);
        }
        let name = (account.user.to_string(), account.host.to_string());
        let mut counts = self.0.lock();
        let taken = counts.entry(name.clone()).or_default();
        if *taken >= most {
            return Err(match own {
                0 => Error::too_many_user_connections(&account.user),
                own => Error::user_connections_reached(&account.user, own),
            });
        }
        *taken += 1;
        Ok(Some(AccountSlot {
            limits: self.clone(),
            account: name,
        }))
    }
}

impl Drop for AccountSlot {
    fn drop(&mut self) {
        let mut counts = self.limits.0.lock();
        if let Some(taken) = counts.get_mut(&self.account) {
            *taken -= 1;
            if *taken == 0 {
                counts.remove(&self.account);
            }
        }
    }
}
