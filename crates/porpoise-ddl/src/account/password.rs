//! Setting an account's password: IDENTIFIED …, SET PASSWORD, and what a new password has to keep
//! to.
//!
//! ```text
//! the current one given, where it has to be (3891, 3892) ─► not one of the last (3638)
//!     ─► the current one kept as the second, with RETAIN (3878, 3894, 3895) ─► hashed, and noted
//! ```
//!
//! MySQL 8.4 manual, 8.2.15 (Password Management).

use compact_str::CompactString;
use porpoise_accounts::policy::{FormerPassword, now_us, trim_history};
use porpoise_accounts::{
    AUTH_SOCKET, Account, CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, SHA256_PASSWORD,
};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::ResultColumn;
use porpoise_protocol::auth::{caching_sha2, native, sha256};
use porpoise_session::check::{check_admin, grants};
use porpoise_sql::ast;
use porpoise_types::{DataType, Value, convert};

use super::AccountStatement;

/// Plugins that accounts can have.
const PLUGINS: [&str; 4] = [
    CACHING_SHA2_PASSWORD,
    NATIVE_PASSWORD,
    SHA256_PASSWORD,
    AUTH_SOCKET,
];

/// What passwords of RANDOM PASSWORD are made of.
const RANDOM_LETTERS: &[u8] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#%&()*+,-./:;<=>?@[]^_{|}~";

/// A password that the server has made: who has it, and the password.
pub(super) struct Generated {
    user: CompactString,
    host: CompactString,
    password: String,
}

/// What a statement says of one account's password.
pub(super) struct PasswordChange<'a> {
    pub auth: Option<&'a ast::Auth>,
    /// REPLACE.
    pub current: Option<&'a [u8]>,
    /// RETAIN CURRENT PASSWORD.
    pub retain: bool,
    /// DISCARD OLD PASSWORD.
    pub discard_old: bool,
}

impl<'a> PasswordChange<'a> {
    pub fn of(spec: &'a ast::UserSpec) -> PasswordChange<'a> {
        PasswordChange {
            auth: spec.auth.as_ref(),
            current: spec.replace.as_deref(),
            retain: spec.retain,
            discard_old: spec.discard_old,
        }
    }
}

/// What a password is hashed to by a plugin; nothing if it is empty.
fn hash(plugin: &str, password: &[u8]) -> CompactString {
    match plugin {
        _ if password.is_empty() => CompactString::default(),
        NATIVE_PASSWORD => native::Stored::of(password).to_text().into(),
        SHA256_PASSWORD => CompactString::from_utf8_lossy(&sha256::Stored::of(password).to_bytes()),
        _ => CompactString::from_utf8_lossy(&caching_sha2::Stored::of(password).to_bytes()),
    }
}

/// Whether a text can be a plugin's hash.
fn is_hash(plugin: &str, hash: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(hash) else {
        return false;
    };
    match plugin {
        _ if hash.is_empty() => true,
        NATIVE_PASSWORD => native::Stored::parse(text).is_some(),
        CACHING_SHA2_PASSWORD => caching_sha2::Stored::parse(hash).is_some(),
        SHA256_PASSWORD => sha256::Stored::parse(hash).is_some(),
        _ => true,
    }
}

/// Whether a password is the one that was hashed.
fn is_password(plugin: &str, hash: &str, password: &[u8]) -> bool {
    match plugin {
        _ if hash.is_empty() => password.is_empty(),
        NATIVE_PASSWORD => {
            let stored = native::Stored::parse(hash);
            stored.is_some_and(|stored| stored == native::Stored::of(password))
        }
        SHA256_PASSWORD => {
            let stored = sha256::Stored::parse(hash.as_bytes());
            stored.is_some_and(|stored| stored.verify(password))
        }
        _ => {
            let stored = caching_sha2::Stored::parse(hash.as_bytes());
            stored.is_some_and(|stored| stored.verify(password))
        }
    }
}

fn random_password(letters: usize) -> String {
    let mut password = String::with_capacity(letters);
    // Bytes beyond the last whole multiple would make some letters more frequent.
    let limit = 256 - 256 % RANDOM_LETTERS.len();
    while password.len() < letters {
        let mut bytes = [0; 64];
        getrandom::fill(&mut bytes).expect("the operating system has random bytes");
        let even = bytes.iter().map(|byte| usize::from(*byte));
        let chosen = even.filter(|byte| *byte < limit);
        let missing = letters - password.len();
        password.extend(
            chosen
                .take(missing)
                .map(|byte| char::from(RANDOM_LETTERS[byte % RANDOM_LETTERS.len()])),
        );
    }
    password
}

/// The rows that tell of passwords that the server has made; `None` if it has made none.
pub(super) fn generated_rows(
    generated: Vec<Generated>,
) -> Option<(Vec<ResultColumn>, Vec<Vec<Value>>)> {
    if generated.is_empty() {
        return None;
    }
    let names = ["user", "host", "generated password"];
    let mut columns: Vec<ResultColumn> = names
        .iter()
        .map(|name| ResultColumn::expression(*name, DataType::varchar(255), false))
        .collect();
    columns.push(ResultColumn::expression(
        "auth_factor",
        DataType::INT,
        false,
    ));
    let rows = generated.into_iter().map(|one| {
        vec![
            Value::text(&one.user),
            Value::text(&one.host),
            Value::text(&one.password),
            Value::Int(1),
        ]
    });
    Some((columns, rows.collect()))
}

impl AccountStatement<'_> {
    /// Changes a new or an old account's plugin and passwords.
    pub(super) fn change_password(
        &mut self,
        account: &mut Account,
        change: &PasswordChange<'_>,
    ) -> Result<()> {
        let old = self.change.get(&account.user, &account.host);
        if change.retain || change.discard_old {
            self.check_may_have_two(account)?;
        }
        if change.discard_old {
            account.second_password = CompactString::default();
        }
        let Some(auth) = change.auth else {
            return Ok(());
        };
        if let Some(old) = &old {
            self.check_current(old, change.current)?;
        }
        set_plugin(account, auth)?;
        let is_old = matches!(&*account.plugin, NATIVE_PASSWORD | SHA256_PASSWORD);
        if auth.plugin.is_some() && is_old {
            let warning = Error::deprecated_syntax(&account.plugin, CACHING_SHA2_PASSWORD);
            self.state.warn(Level::Warning, warning.into_condition());
        }
        let changes_plugin = old.as_ref().is_some_and(|old| old.plugin != account.plugin);
        if changes_plugin {
            if change.retain {
                return Err(Error::retain_on_plugin_change(&account.user, &account.host));
            }
            account.second_password = CompactString::default();
            account.former_passwords.clear();
        }
        let retained = old.filter(|_| change.retain);
        if retained
            .as_ref()
            .is_some_and(|old| old.authentication_string.is_empty())
        {
            return Err(Error::second_password_empty(&account.user, &account.host));
        }
        account.password_expired = false;
        self.set_secret(account, &auth.secret, changes_plugin)?;
        match retained {
            Some(_) if account.authentication_string.is_empty() => {
                return Err(Error::retain_with_empty(&account.user, &account.host));
            }
            Some(old) => account.second_password = old.authentication_string.clone(),
            None if account.authentication_string.is_empty() => {
                account.second_password = CompactString::default();
            }
            None => {}
        }
        account.password_changed_us = Some(now_us());
        Ok(())
    }

    fn set_secret(
        &mut self,
        account: &mut Account,
        secret: &ast::Secret,
        changes_plugin: bool,
    ) -> Result<()> {
        match secret {
            ast::Secret::None => {
                account.authentication_string = CompactString::default();
                if !changes_plugin && account.keeps_password() {
                    self.validate("")?;
                }
                // The owner has to choose one for the new plugin.
                account.password_expired = changes_plugin && account.keeps_password();
            }
            ast::Secret::Password(password) => {
                self.set_password_of(account, password)?;
            }
            ast::Secret::Random => {
                let letters = self.state.get("generated_random_password_length");
                let letters = convert::to_uint(&letters).0;
                let password = random_password(usize::try_from(letters).unwrap_or(20));
                self.hash_password(account, password.as_bytes())?;
                self.generated.push(Generated {
                    user: account.user.clone(),
                    host: account.host.clone(),
                    password,
                });
            }
            ast::Secret::Hash(hash) => {
                if !is_hash(&account.plugin, hash) {
                    return Err(Error::password_hash_format());
                }
                account.authentication_string = CompactString::from_utf8_lossy(hash);
                self.note_password(account);
            }
        }
        Ok(())
    }

    /// A password that somebody has chosen.
    fn set_password_of(&self, account: &mut Account, password: &[u8]) -> Result<()> {
        self.validate(&String::from_utf8_lossy(password))?;
        self.hash_password(account, password)
    }

    /// Whether a password is good enough (1819), where the component is installed that says so.
    pub(super) fn validate(&self, password: &str) -> Result<()> {
        let validation = &self.shared.variables.password_validation;
        let own = self.state.account.as_ref();
        let users = [&*self.state.user, own.map_or("", |own| &*own.user)];
        match validation.accepts(password, &users) {
            true => Ok(()),
            false => Err(Error::password_policy()),
        }
    }

    fn hash_password(&self, account: &mut Account, password: &[u8]) -> Result<()> {
        let (count, days) = self.history_limits(account);
        let former = &mut account.former_passwords;
        trim_history(former, count, days, now_us());
        let is_former = |one: &FormerPassword| is_password(&account.plugin, &one.hash, password);
        if !password.is_empty() && former.iter().any(is_former) {
            return Err(Error::password_reused(&account.user, &account.host));
        }
        account.authentication_string = hash(&account.plugin, password);
        self.note_password(account);
        Ok(())
    }

    /// Keeps an account's password among those that are not to be used again. Empty ones aren't.
    fn note_password(&self, account: &mut Account) {
        let (count, days) = self.history_limits(account);
        if (count > 0 || days > 0) && !account.authentication_string.is_empty() {
            let password = FormerPassword {
                set_us: now_us(),
                hash: account.authentication_string.clone(),
            };
            account.former_passwords.insert(0, password);
        }
        trim_history(&mut account.former_passwords, count, days, now_us());
    }

    /// How many passwords, and of how many days, are not to be used again.
    fn history_limits(&self, account: &Account) -> (u64, u64) {
        let (policy, globals) = (&account.policy, &self.shared.variables);
        let history = policy.history.map(u64::from);
        let days = policy.reuse_days.map(u64::from);
        (
            history.unwrap_or_else(|| globals.get_u64("password_history")),
            days.unwrap_or_else(|| globals.get_u64("password_reuse_interval")),
        )
    }

    fn is_privileged(&self) -> bool {
        self.check_create_user().is_ok()
    }

    /// REPLACE: the current password is right, and is given where it has to be.
    fn check_current(&self, old: &Account, current: Option<&[u8]>) -> Result<()> {
        let is_own = self.is_own(&(old.user.clone(), old.host.clone()));
        match current {
            Some(_) if !is_own => Err(Error::current_password_not_required()),
            Some(current) => {
                let right = is_password(&old.plugin, &old.authentication_string, current);
                right
                    .then_some(())
                    .ok_or_else(Error::incorrect_current_password)
            }
            None => {
                let globals = &self.shared.variables;
                let required = old.policy.require_current;
                let required =
                    required.unwrap_or_else(|| globals.get_u64("password_require_current") != 0);
                let has_one = !old.authentication_string.is_empty();
                match required && has_one && is_own && !self.is_privileged() {
                    true => Err(Error::missing_current_password()),
                    false => Ok(()),
                }
            }
        }
    }

    /// RETAIN and DISCARD need APPLICATION_PASSWORD_ADMIN for the session's own account, and CREATE
    /// USER for others.
    fn check_may_have_two(&self, account: &Account) -> Result<()> {
        if self.is_own(&(account.user.clone(), account.host.clone())) {
            return check_admin(
                self.state,
                Privilege::CreateUser,
                "APPLICATION_PASSWORD_ADMIN",
            );
        }
        self.check_create_user()
    }

    /// An account that has SYSTEM_USER is changed only by a session that has it too (1227).
    pub(super) fn check_system_user(&self, account: &Account) -> Result<()> {
        let Some(own) = grants(self.state) else {
            return Ok(());
        };
        let held = porpoise_accounts::role::with_default_roles(&self.shared.accounts, account);
        match held.has_dynamic("SYSTEM_USER") && !own.has_dynamic("SYSTEM_USER") {
            true => Err(Error::specific_access_denied("SYSTEM_USER")),
            false => Ok(()),
        }
    }
}

/// The plugin that an account logs in by from now on.
fn set_plugin(account: &mut Account, auth: &ast::Auth) -> Result<()> {
    if let Some(plugin) = &auth.plugin {
        let known = PLUGINS
            .into_iter()
            .find(|known| plugin.eq_ignore_ascii_case(known));
        account.plugin = known
            .ok_or_else(|| Error::plugin_not_loaded(plugin.as_str()))?
            .into();
    } else if account.plugin == AUTH_SOCKET && auth.secret != ast::Secret::None {
        account.plugin = CACHING_SHA2_PASSWORD.into();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_passwords_have_their_length_and_differ() {
        for letters in [5, 20, 255] {
            let password = random_password(letters);
            assert_eq!(password.len(), letters);
            assert!(password.bytes().all(|byte| RANDOM_LETTERS.contains(&byte)));
            assert_ne!(password, random_password(letters));
        }
    }

    #[test]
    fn each_plugin_knows_its_passwords_again() {
        for plugin in [CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, SHA256_PASSWORD] {
            let hash = hash(plugin, b"secret");
            assert!(is_hash(plugin, hash.as_bytes()), "{plugin}");
            assert!(is_password(plugin, &hash, b"secret"), "{plugin}");
            assert!(!is_password(plugin, &hash, b"guess"), "{plugin}");
            assert!(!is_password(plugin, "", b"guess"), "{plugin}");
            assert!(is_password(plugin, "", b""), "{plugin}");
        }
        assert!(!is_hash(
            SHA256_PASSWORD,
            b"*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29"
        ));
    }
}
