//! GRANT PROXY and REVOKE PROXY: the right of an account to act as another.
//!
//! A right is a row of `mysql.proxies_priv`. The row with an empty user and host, which
//! `root@localhost` has WITH GRANT OPTION in a fresh database, is about every account.
//!
//! MySQL 8.4 manual, 8.2.19 (Proxy Users).

use porpoise_accounts::policy::now_us;
use porpoise_accounts::{Account, ProxyGrant};
use porpoise_core::error::{Error, Result};
use porpoise_sql::ast;

use super::{AccountStatement, Name};

impl AccountStatement<'_> {
    /// Whoever passes a right on must have it, WITH GRANT OPTION, or be the account itself (1698).
    fn check_may_grant_proxy(&self, on: &Name) -> Result<()> {
        let Some(own) = &self.state.account else {
            return Ok(());
        };
        let own = self.change.get(&own.user, &own.host);
        let may = |own: &Account| {
            let rights = own.proxies.iter().filter(|right| right.grantable);
            let mut rights = rights.filter(|right| right.is(&on.0, &on.1) || right.is("", ""));
            rights.next().is_some()
        };
        if self.is_own(on) || own.is_some_and(|own| may(&own)) {
            return Ok(());
        }
        let (user, host) = (&self.state.user, &self.state.host);
        Err(Error::access_denied_without_password(user, host))
    }

    /// The accounts that a statement names; 1133 if there is no such account.
    fn proxy_accounts(&self, names: &[ast::Account]) -> Result<Vec<Account>> {
        let accounts = names.iter().map(|name| {
            let name = self.name(name)?;
            let found = self.change.get(&name.0, &name.1);
            let found = found.ok_or_else(Error::password_no_match)?;
            Ok(Account::clone(&found))
        });
        accounts.collect()
    }

    pub(super) fn grant_proxy(
        &mut self,
        on: &ast::Account,
        to: &[ast::Account],
        grantable: bool,
    ) -> Result<()> {
        let on = self.name(on)?;
        self.check_may_grant_proxy(&on)?;
        let grantor = self.own_name();
        for mut account in self.proxy_accounts(to)? {
            let known = account.proxies.iter_mut();
            match known.into_iter().find(|right| right.is(&on.0, &on.1)) {
                Some(right) => right.grantable |= grantable,
                None => account.proxies.push(ProxyGrant {
                    user: on.0.clone(),
                    host: on.1.clone(),
                    grantable,
                    grantor: grantor.clone(),
                    granted_us: now_us(),
                }),
            }
            self.change.put(account)?;
        }
        Ok(())
    }

    pub(super) fn revoke_proxy(&mut self, on: &ast::Account, from: &[ast::Account]) -> Result<()> {
        let on = self.name(on)?;
        self.check_may_grant_proxy(&on)?;
        for mut account in self.proxy_accounts(from)? {
            let before = account.proxies.len();
            account.proxies.retain(|right| !right.is(&on.0, &on.1));
            if account.proxies.len() == before {
                return Err(Error::no_such_grant(&account.user, &account.host));
            }
            self.change.put(account)?;
        }
        Ok(())
    }
}
