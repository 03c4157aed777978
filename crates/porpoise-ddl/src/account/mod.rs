//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, roles; GRANT and REVOKE of
//! privileges are in [`grant`].
//!
//! MySQL 8.4 manual, 15.7.1 (Account Management Statements).

mod grant;

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_accounts::{
    AUTH_SOCKET, Account, AccountChange, CACHING_SHA2_PASSWORD, Grants, NATIVE_PASSWORD,
    role::{self, RoleGrant},
};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::quote::text;
use porpoise_protocol::auth::{caching_sha2, native};
use porpoise_session::active_roles;
use porpoise_session::check::{check_admin, grants};
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_sql::ast;

/// The most characters of a user name and of a host name.
const USER_CHARS_MAX: usize = 32;
const HOST_CHARS_MAX: usize = 255;

/// An account statement that is being executed, and the change of accounts that it makes.
struct AccountStatement<'a> {
    state: &'a mut SessionState,
    shared: &'a Shared,
    change: AccountChange<'a>,
}

type Name = (CompactString, CompactString);

/// Whether [`execute`] knows the statement.
pub fn is_account_statement(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    matches!(
        statement,
        S::CreateUser(_)
            | S::AlterUser(_)
            | S::DropUser { .. }
            | S::RenameUser(_)
            | S::SetPassword { .. }
            | S::Grant(_)
            | S::Revoke(_)
            | S::CreateRole { .. }
            | S::DropRole { .. }
            | S::SetRole(_)
            | S::SetDefaultRole { .. }
    )
}

/// Runs a statement on accounts, durably. All of its accounts change, or none.
pub fn execute(
    shared: &Shared,
    state: &mut SessionState,
    statement: &ast::Statement,
) -> Result<()> {
    let change = AccountChange::begin(&shared.accounts, &shared.store);
    let mut execution = AccountStatement {
        state,
        shared,
        change,
    };
    use ast::Statement as S;
    match statement {
        S::CreateUser(create) => execution.create(create)?,
        S::AlterUser(alter) => execution.alter(alter)?,
        S::DropUser { if_exists, users } => execution.drop(*if_exists, users)?,
        S::RenameUser(pairs) => execution.rename(pairs)?,
        S::SetPassword { user, password, .. } => {
            execution.set_password(user.as_ref(), password.as_deref())?
        }
        S::Grant(grant) => execution.grant(grant)?,
        S::Revoke(revoke) => execution.revoke(revoke)?,
        S::CreateRole {
            if_not_exists,
            roles,
        } => execution.create_roles(*if_not_exists, roles)?,
        S::DropRole { if_exists, roles } => execution.drop_roles(*if_exists, roles)?,
        S::SetRole(roles) => {
            drop(execution);
            return active_roles::set(state, &shared.accounts, roles);
        }
        S::SetDefaultRole { roles, users } => execution.set_default_roles(roles, users)?,
        _ => return Err(Error::not_supported_yet("this statement")),
    }
    let AccountStatement { change, state, .. } = execution;
    change.commit()?;
    if let Some(own) = &state.account {
        let now = shared.accounts.get(&own.user, &own.host);
        state.must_change_password &= now.is_some_and(|own| own.password_expired);
    }
    Ok(())
}

fn failed(operation: &str, names: &[Name]) -> Error {
    let names: Vec<String> = names
        .iter()
        .map(|(user, host)| format!("'{user}'@'{host}'"))
        .collect();
    Error::cannot_create_user(operation, names.join(","))
}

/// An error if there are names that the statement could not be executed for.
fn none_of(operation: &str, refused: &[Name]) -> Result<()> {
    match refused {
        [] => Ok(()),
        refused => Err(failed(operation, refused)),
    }
}

impl AccountStatement<'_> {
    fn name(&self, account: &ast::Account) -> Result<Name> {
        let (user, host) = match account {
            ast::Account::Named { user, host } => (
                user.0.clone(),
                host.as_ref().map_or_else(
                    || "%".into(),
                    |host| CompactString::new(host.to_ascii_lowercase()),
                ),
            ),
            ast::Account::Current => match &self.state.account {
                Some(account) => (account.user.clone(), account.host.clone()),
                None => (self.state.user.clone(), self.state.host.clone()),
            },
        };
        if user.chars().count() > USER_CHARS_MAX {
            return Err(Error::account_name_too_long(
                user,
                "user name",
                USER_CHARS_MAX,
            ));
        }
        if host.chars().count() > HOST_CHARS_MAX {
            return Err(Error::account_name_too_long(
                host,
                "host name",
                HOST_CHARS_MAX,
            ));
        }
        Ok((user, host))
    }

    fn is_own(&self, name: &Name) -> bool {
        self.state
            .account
            .as_ref()
            .is_some_and(|account| account.user == name.0 && account.host == name.1)
    }

    fn check_create_user(&self) -> Result<()> {
        check_admin(self.state, Privilege::CreateUser, "")
    }

    fn create(&mut self, create: &ast::CreateUser) -> Result<()> {
        self.check_create_user()?;
        let mut refused = Vec::new();
        for spec in &create.users {
            let name = self.name(&spec.account)?;
            if self.change.get(&name.0, &name.1).is_some() {
                if create.if_exists {
                    let note = Error::account_exists(&name.0, &name.1);
                    self.state.warn(Level::Note, note.into_condition());
                } else {
                    refused.push(name);
                }
                continue;
            }
            let mut account = Account::new(&name.0, &name.1);
            if let Some(auth) = &spec.auth {
                authenticate(&mut account, auth)?;
            }
            apply_options(&mut account, create)?;
            if let Some(ast::RoleSet::List(roles)) = &create.default_roles {
                let mut grants = Grants::clone(&account.grants.load());
                for role in roles {
                    let (user, host) = role::named(role)?;
                    if self.change.get(&user, &host).is_none() {
                        return Err(role::unknown(&user, &host));
                    }
                    grants.roles.push(RoleGrant {
                        user,
                        host,
                        admin: false,
                        default: true,
                    });
                }
                account.grants.store(Arc::new(grants));
            }
            self.change.put(account)?;
        }
        none_of("CREATE USER", &refused)
    }

    fn create_roles(&mut self, if_not_exists: bool, roles: &[ast::Account]) -> Result<()> {
        if check_admin(self.state, Privilege::CreateRole, "").is_err() {
            self.check_create_user()?;
        }
        let mut refused = Vec::new();
        for role in roles {
            let name = self.name(role)?;
            if self.change.get(&name.0, &name.1).is_none() {
                self.change.put(Account {
                    locked: true,
                    password_expired: true,
                    ..Account::new(&name.0, &name.1)
                })?;
            } else if if_not_exists {
                let note = Error::account_exists(&name.0, &name.1);
                self.state.warn(Level::Note, note.into_condition());
            } else {
                refused.push(name);
            }
        }
        none_of("CREATE ROLE", &refused)
    }

    fn drop_roles(&mut self, if_exists: bool, roles: &[ast::Account]) -> Result<()> {
        if check_admin(self.state, Privilege::DropRole, "").is_err() {
            self.check_create_user()?;
        }
        self.drop_accounts("DROP ROLE", if_exists, roles)
    }

    /// Takes a role that is dropped away from all that have it.
    fn forget_role(&mut self, name: &Name) -> Result<()> {
        for account in self.change.all() {
            let mut grants = self.change.grants(&account);
            let before = grants.roles.len();
            grants.roles.retain(|role| !role.is(&name.0, &name.1));
            if grants.roles.len() != before {
                self.change.put_grants(&account, grants)?;
            }
        }
        Ok(())
    }

    fn set_default_roles(&mut self, roles: &ast::RoleSet, users: &[ast::Account]) -> Result<()> {
        for user in users {
            let name = self.name(user)?;
            if !self.is_own(&name) {
                self.check_create_user()?;
            }
            let Some(account) = self.change.get(&name.0, &name.1) else {
                return Err(role::unknown(&name.0, &name.1));
            };
            let mut grants = self.change.grants(&account);
            let all = matches!(roles, ast::RoleSet::All);
            for grant in &mut grants.roles {
                grant.default = all;
            }
            if let ast::RoleSet::List(listed) = roles {
                for role in listed {
                    let (user, host) = role::named(role)?;
                    let grant = grants.roles.iter_mut().find(|grant| grant.is(&user, &host));
                    grant
                        .ok_or_else(|| role::not_granted((&user, &host), (&name.0, &name.1)))?
                        .default = true;
                }
            }
            self.change.put_grants(&account, grants)?;
        }
        Ok(())
    }

    /// Whoever gives roles away needs ROLE_ADMIN, or each of them WITH ADMIN OPTION.
    fn check_may_grant_roles(&self, roles: &[Name]) -> Result<()> {
        let Some(own) = grants(self.state) else {
            return Ok(());
        };
        let has_all = roles.iter().all(|(user, host)| {
            own.roles
                .iter()
                .any(|grant| grant.admin && grant.is(user, host))
        });
        if has_all {
            return Ok(());
        }
        check_admin(self.state, Privilege::Super, "ROLE_ADMIN")
    }

    fn role_names(&self, roles: &[ast::Account]) -> Result<Vec<Name>> {
        let names = roles
            .iter()
            .map(role::named)
            .collect::<Result<Vec<Name>>>()?;
        self.check_may_grant_roles(&names)?;
        match names
            .iter()
            .find(|(user, host)| self.change.get(user, host).is_none())
        {
            Some((user, host)) => Err(role::unknown(user, host)),
            None => Ok(names),
        }
    }

    fn grant_roles(
        &mut self,
        roles: &[ast::Account],
        to: &[ast::Account],
        admin: bool,
    ) -> Result<()> {
        let roles = self.role_names(roles)?;
        for user in to {
            let name = self.name(user)?;
            let Some(account) = self.change.get(&name.0, &name.1) else {
                return Err(role::unknown(&name.0, &name.1));
            };
            let mut grants = self.change.grants(&account);
            for (user, host) in &roles {
                if self.reaches((user, host), &name) {
                    return Err(Error::role_loop(
                        role::quoted(&name.0, &name.1),
                        role::quoted(user, host),
                    ));
                }
                match grants.roles.iter_mut().find(|grant| grant.is(user, host)) {
                    Some(grant) => grant.admin |= admin,
                    None => grants.roles.push(RoleGrant {
                        user: user.clone(),
                        host: host.clone(),
                        admin,
                        default: false,
                    }),
                }
            }
            self.change.put_grants(&account, grants)?;
        }
        Ok(())
    }

    /// Whether a role is an account, or has it among its own roles.
    fn reaches(&self, role: (&str, &str), wanted: &Name) -> bool {
        let mut seen: Vec<Name> = Vec::new();
        let mut waiting: Vec<Name> = vec![(role.0.into(), role.1.into())];
        while let Some(next) = waiting.pop() {
            if next == *wanted {
                return true;
            }
            if seen.contains(&next) {
                continue;
            }
            if let Some(account) = self.change.get(&next.0, &next.1) {
                let grants = self.change.grants(&account);
                waiting.extend(
                    grants
                        .roles
                        .into_iter()
                        .map(|grant| (grant.user, grant.host)),
                );
            }
            seen.push(next);
        }
        false
    }

    fn revoke_roles(&mut self, roles: &[ast::Account], revoke: &ast::Revoke) -> Result<()> {
        let roles = self.role_names(roles)?;
        for user in &revoke.from {
            let name = self.name(user)?;
            let Some(account) = self.change.get(&name.0, &name.1) else {
                let error = role::unknown(&name.0, &name.1);
                if !revoke.ignore_unknown {
                    return Err(error);
                }
                self.state.warn(Level::Warning, error.into_condition());
                continue;
            };
            let mut grants = self.change.grants(&account);
            for (user, host) in &roles {
                let before = grants.roles.len();
                grants.roles.retain(|grant| !grant.is(user, host));
                if grants.roles.len() == before {
                    let error = role::not_granted((user, host), (&name.0, &name.1));
                    if !revoke.if_exists {
                        return Err(error);
                    }
                    self.state.warn(Level::Warning, error.into_condition());
                }
            }
            self.change.put_grants(&account, grants)?;
        }
        Ok(())
    }

    fn alter(&mut self, alter: &ast::CreateUser) -> Result<()> {
        let mut refused = Vec::new();
        for spec in &alter.users {
            let name = self.name(&spec.account)?;
            let only_password = alter.locked.is_none()
                && alter.require.is_none()
                && alter.limits.is_empty()
                && alter.password_options.is_empty();
            if !(self.is_own(&name) && only_password) {
                self.check_create_user()?;
            }
            let Some(old) = self.change.get(&name.0, &name.1) else {
                if alter.if_exists {
                    let note = Error::account_does_not_exist(&name.0, &name.1);
                    self.state.warn(Level::Note, note.into_condition());
                } else {
                    refused.push(name);
                }
                continue;
            };
            let mut account = (*old).clone();
            if let Some(auth) = &spec.auth {
                authenticate(&mut account, auth)?;
                account.password_expired = false;
            }
            apply_options(&mut account, alter)?;
            self.change.put(account)?;
        }
        none_of("ALTER USER", &refused)
    }

    fn drop(&mut self, if_exists: bool, users: &[ast::Account]) -> Result<()> {
        self.check_create_user()?;
        self.drop_accounts("DROP USER", if_exists, users)
    }

    fn drop_accounts(
        &mut self,
        operation: &str,
        if_exists: bool,
        users: &[ast::Account],
    ) -> Result<()> {
        let mut refused = Vec::new();
        for user in users {
            let name = self.name(user)?;
            match self.change.get(&name.0, &name.1) {
                Some(account) => {
                    self.change.remove(&account);
                    self.forget_role(&name)?;
                }
                None if if_exists => {
                    let note = Error::account_does_not_exist(&name.0, &name.1);
                    self.state.warn(Level::Note, note.into_condition());
                }
                None => refused.push(name),
            }
        }
        none_of(operation, &refused)
    }

    fn rename(&mut self, pairs: &[(ast::Account, ast::Account)]) -> Result<()> {
        self.check_create_user()?;
        for (old, new) in pairs {
            let (old, new) = (self.name(old)?, self.name(new)?);
            let account = self.change.get(&old.0, &old.1);
            let (Some(account), None) = (account, self.change.get(&new.0, &new.1)) else {
                return Err(failed("RENAME USER", &[old]));
            };
            self.change.remove(&account);
            self.change.put(Account {
                user: new.0,
                host: new.1,
                ..(*account).clone()
            })?;
        }
        Ok(())
    }

    fn set_password(&mut self, user: Option<&ast::Account>, password: Option<&[u8]>) -> Result<()> {
        let name = self.name(user.unwrap_or(&ast::Account::Current))?;
        if !self.is_own(&name) {
            self.check_create_user()?;
        }
        let Some(password) = password else {
            return Err(Error::not_supported_yet("SET PASSWORD TO RANDOM"));
        };
        let Some(old) = self.change.get(&name.0, &name.1) else {
            return Err(Error::password_no_match());
        };
        let mut account = (*old).clone();
        set_password(&mut account, password);
        account.password_expired = false;
        self.change.put(account)
    }
}

fn set_password(account: &mut Account, password: &[u8]) {
    if account.plugin == AUTH_SOCKET {
        account.plugin = CACHING_SHA2_PASSWORD.into();
    }
    account.authentication_string = match account.plugin.as_str() {
        _ if password.is_empty() => CompactString::default(),
        NATIVE_PASSWORD => native::Stored::of(password).to_text().into(),
        _ => CompactString::from_utf8_lossy(&caching_sha2::Stored::of(password).to_bytes()),
    };
}

/// IDENTIFIED …: a plugin with a password, a stored hash, or neither.
fn authenticate(account: &mut Account, auth: &ast::Auth) -> Result<()> {
    if let Some(plugin) = &auth.plugin {
        let known = [CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, AUTH_SOCKET]
            .into_iter()
            .find(|known| plugin.eq_ignore_ascii_case(known));
        account.plugin = known
            .ok_or_else(|| Error::plugin_not_loaded(plugin.as_str()))?
            .into();
        account.authentication_string = CompactString::default();
    } else if account.plugin == AUTH_SOCKET && auth.secret != ast::Secret::None {
        account.plugin = CACHING_SHA2_PASSWORD.into();
    }
    match &auth.secret {
        ast::Secret::None => {}
        ast::Secret::Password(password) => set_password(account, password),
        ast::Secret::Random => return Err(Error::not_supported_yet("RANDOM PASSWORD")),
        ast::Secret::Hash(hash) => {
            let valid = match account.plugin.as_str() {
                _ if hash.is_empty() => true,
                NATIVE_PASSWORD => std::str::from_utf8(hash)
                    .ok()
                    .and_then(native::Stored::parse)
                    .is_some(),
                CACHING_SHA2_PASSWORD => {
                    caching_sha2::Stored::parse(hash).is_some() && std::str::from_utf8(hash).is_ok()
                }
                _ => true,
            };
            if !valid {
                return Err(Error::password_hash_format());
            }
            account.authentication_string = CompactString::from_utf8_lossy(hash);
        }
    }
    Ok(())
}

fn apply_options(account: &mut Account, options: &ast::CreateUser) -> Result<()> {
    if let Some(locked) = options.locked {
        account.locked = locked;
    }
    for option in &options.password_options {
        match option.to_ascii_uppercase().as_str() {
            "PASSWORD EXPIRE" => account.password_expired = true,
            _ => account.password_expired = false,
        }
    }
    match &options.require {
        None => {}
        Some(ast::TlsRequirement::None) => account
            .options
            .retain(|option| !option.starts_with("REQUIRE")),
        Some(requirement) => {
            let text = match requirement {
                ast::TlsRequirement::X509 => "REQUIRE X509".to_string(),
                ast::TlsRequirement::Specified(_) => {
                    return Err(Error::not_supported_yet(
                        "REQUIRE SUBJECT, ISSUER or CIPHER",
                    ));
                }
                _ => "REQUIRE SSL".to_string(),
            };
            account
                .options
                .retain(|option| !option.starts_with("REQUIRE"));
            account.options.insert(0, text);
        }
    }
    if options.limits.iter().any(|(_, limit)| *limit > 0) {
        return Err(Error::not_supported_yet("resource limits of accounts"));
    }
    if let Some(comment) = &options.comment {
        account.comment = Some(text(Some(comment)));
    }
    if let Some(attribute) = &options.attribute {
        account.attribute = Some(text(Some(attribute)));
    }
    Ok(())
}
