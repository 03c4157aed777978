//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, roles; GRANT and REVOKE of
//! privileges are in [`grant`], of proxies in [`proxy`]; [`password`] sets passwords, [`options`]
//! the rest of what CREATE USER says.
//!
//! MySQL 8.4 manual, 15.7.1 (Account Management Statements).

mod grant;
mod options;
mod password;
mod proxy;
pub mod routine;

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_accounts::policy::now_us;
use porpoise_accounts::tls::TlsRequirement;
use porpoise_accounts::{
    Account, AccountChange, Grants,
    role::{self, RoleGrant},
};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::ResultColumn;
use porpoise_session::active_roles;
use porpoise_session::check::{check_admin, grants};
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_sql::ast;
use porpoise_types::Value;

use password::{Generated, PasswordChange};

/// The most characters of a user name and of a host name.
const USER_CHARS_MAX: usize = 32;
const HOST_CHARS_MAX: usize = 255;

/// An account statement that is being executed, and the change of accounts that it makes.
struct AccountStatement<'a> {
    state: &'a mut SessionState,
    shared: &'a Shared,
    change: AccountChange<'a>,
    /// Passwords of RANDOM PASSWORD, to be told.
    generated: Vec<Generated>,
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

/// Columns and rows of an answer.
pub type Rows = (Vec<ResultColumn>, Vec<Vec<Value>>);

/// Runs a statement on accounts, durably. All of its accounts change, or none. Returns the passwords
/// that the server has made.
pub fn execute(
    shared: &Shared,
    state: &mut SessionState,
    statement: &ast::Statement,
) -> Result<Option<Rows>> {
    let change = AccountChange::begin(&shared.accounts, &shared.store);
    let mut execution = AccountStatement {
        state,
        shared,
        change,
        generated: Vec::new(),
    };
    use ast::Statement as S;
    match statement {
        S::CreateUser(create) => execution.create(create)?,
        S::AlterUser(alter) => execution.alter(alter)?,
        S::DropUser { if_exists, users } => execution.drop(*if_exists, users)?,
        S::RenameUser(pairs) => execution.rename(pairs)?,
        S::SetPassword {
            user,
            password,
            replace,
            retain,
        } => {
            let secret = match password {
                Some(password) => ast::Secret::Password(password.clone()),
                None => ast::Secret::Random,
            };
            let auth = ast::Auth {
                plugin: None,
                secret,
            };
            let change = PasswordChange {
                auth: Some(&auth),
                current: replace.as_deref(),
                retain: *retain,
                discard_old: false,
            };
            execution.set_password(user.as_ref(), &change)?
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
            active_roles::set(state, &shared.accounts, roles)?;
            return Ok(None);
        }
        S::SetDefaultRole { roles, users } => execution.set_default_roles(roles, users)?,
        _ => return Err(Error::not_supported_yet("this statement")),
    }
    let AccountStatement {
        change,
        state,
        generated,
        ..
    } = execution;
    change.commit()?;
    if state.must_change_password()
        && let Some(own) = &state.account
    {
        let now = shared.accounts.get(&own.user, &own.host);
        let lifetime = shared.variables.get_u64("default_password_lifetime");
        if !now.is_some_and(|own| own.must_change_password(lifetime)) {
            state.password_changed();
        }
    }
    Ok(password::generated_rows(generated))
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

    /// `user@host` of the session's account, as grant tables tell of grantors; empty without one.
    fn own_name(&self) -> CompactString {
        let own = self.state.account.as_ref();
        own.map_or_else(CompactString::default, |own| {
            format!("{}@{}", own.user, own.host).into()
        })
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
            if spec.replace.is_some() || spec.retain || spec.discard_old {
                return Err(Error::syntax_error("", 1));
            }
            let mut account = Account::new(&name.0, &name.1);
            account.password_changed_us = Some(now_us());
            self.apply(&mut account, spec, create)?;
            if spec.auth.is_none() {
                self.validate("")?;
            }
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
            let is_own = self.is_own(&name);
            if self.state.must_change_password() && !is_own {
                return Err(Error::must_change_password());
            }
            if !(is_own && is_about_passwords_only(alter, spec)) {
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
            if !is_own {
                self.check_system_user(&old)?;
            }
            let mut account = (*old).clone();
            self.apply(&mut account, spec, alter)?;
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
                    self.check_system_user(&account)?;
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
            self.check_system_user(&account)?;
            self.change.remove(&account);
            self.change.put(Account {
                user: new.0,
                host: new.1,
                ..(*account).clone()
            })?;
        }
        Ok(())
    }

    fn set_password(
        &mut self,
        user: Option<&ast::Account>,
        change: &PasswordChange<'_>,
    ) -> Result<()> {
        let name = self.name(user.unwrap_or(&ast::Account::Current))?;
        let is_own = self.is_own(&name);
        if !is_own {
            if self.state.must_change_password() {
                return Err(Error::must_change_password());
            }
            self.check_create_user()?;
        }
        let Some(old) = self.change.get(&name.0, &name.1) else {
            return Err(Error::password_no_match());
        };
        if !is_own {
            self.check_system_user(&old)?;
        }
        let mut account = (*old).clone();
        self.change_password(&mut account, change)?;
        self.change.put(account)
    }

    /// Applies what CREATE USER or ALTER USER says of an account.
    fn apply(
        &mut self,
        account: &mut Account,
        spec: &ast::UserSpec,
        options: &ast::CreateUser,
    ) -> Result<()> {
        // First: a new password has to keep to the new policy.
        let expires = options::apply_password_options(account, &options.password_options)?;
        self.change_password(account, &PasswordChange::of(spec))?;
        account.password_expired = expires.unwrap_or(account.password_expired);
        apply_requirement(account, options);
        options::apply_other_options(account, options)
    }
}

/// Whether an ALTER USER changes nothing but passwords, which everybody may do with their own.
fn is_about_passwords_only(alter: &ast::CreateUser, spec: &ast::UserSpec) -> bool {
    (spec.auth.is_some() || spec.discard_old)
        && alter.default_roles.is_none()
        && alter.locked.is_none()
        && alter.require.is_none()
        && alter.limits.is_empty()
        && alter.password_options.is_empty()
        && alter.comment.is_none()
        && alter.attribute.is_none()
}

fn tls_requirement(requirement: &ast::TlsRequirement) -> TlsRequirement {
    let specified = match requirement {
        ast::TlsRequirement::None => return TlsRequirement::None,
        ast::TlsRequirement::Ssl => return TlsRequirement::Ssl,
        ast::TlsRequirement::X509 => return TlsRequirement::X509,
        ast::TlsRequirement::Specified(specified) => specified,
    };
    let text_of = |word: &str| {
        let named = specified.iter().find(|(known, _)| &**known == word);
        named.map_or(String::new(), |(_, name)| {
            String::from_utf8_lossy(name).into_owned()
        })
    };
    TlsRequirement::Specified {
        cipher: text_of("CIPHER"),
        issuer: text_of("ISSUER"),
        subject: text_of("SUBJECT"),
    }
}

/// REQUIRE.
fn apply_requirement(account: &mut Account, options: &ast::CreateUser) {
    if let Some(requirement) = &options.require {
        account.tls = tls_requirement(requirement);
    }
}
