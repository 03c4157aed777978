//! An account's options in CREATE USER and ALTER USER: password policy, limits, lock, comment and
//! attribute.
//!
//! MySQL 8.4 manual, 15.7.1.3 (CREATE USER).

use porpoise_accounts::Account;
use porpoise_accounts::policy::UNBOUNDED;
use porpoise_core::error::{Error, Result};
use porpoise_sql::ast::{self, PasswordOption};
use porpoise_types::{Json, JsonValue};

/// The most of FAILED_LOGIN_ATTEMPTS and PASSWORD_LOCK_TIME.
const ATTEMPTS_MAX: u64 = 32_767;
/// The most of what `mysql.user` keeps as SMALLINT UNSIGNED.
const SMALL_MAX: u64 = 65_535;

fn limited(value: u64, most: u64) -> Result<u32> {
    match u32::try_from(value) {
        Ok(small) if value <= most => Ok(small),
        _ => Err(Error::syntax_error(value.to_string(), 1)),
    }
}

fn small(value: Option<u64>) -> Result<Option<u32>> {
    value.map(|value| limited(value, SMALL_MAX)).transpose()
}

/// Applies the options of passwords and log-ins. Returns whether the password, the new one if there
/// is a new one, is to be expired; `None` where nothing is said of that.
pub(super) fn apply_password_options(
    account: &mut Account,
    options: &[PasswordOption],
) -> Result<Option<bool>> {
    let mut expires = None;
    let policy = &mut account.policy;
    for option in options {
        match *option {
            PasswordOption::Expire => expires = Some(true),
            PasswordOption::Lifetime(days) => {
                expires = Some(false);
                policy.lifetime_days = small(days)?;
            }
            PasswordOption::History(count) => policy.history = small(count)?,
            PasswordOption::ReuseInterval(days) => policy.reuse_days = small(days)?,
            PasswordOption::RequireCurrent(required) => policy.require_current = required,
            PasswordOption::FailedLogins(count) => {
                policy.failed_logins = limited(count, ATTEMPTS_MAX)?;
                account.usage.forget_failures();
            }
            PasswordOption::LockTime(days) => {
                policy.lock_days = match days {
                    Some(days) => limited(days, ATTEMPTS_MAX)?,
                    None => UNBOUNDED,
                };
                account.usage.forget_failures();
            }
        }
    }
    Ok(expires)
}

/// Applies ACCOUNT LOCK, `WITH MAX_…`, COMMENT and ATTRIBUTE.
pub(super) fn apply_other_options(account: &mut Account, options: &ast::CreateUser) -> Result<()> {
    if let Some(locked) = options.locked {
        account.locked = locked;
        if !locked {
            account.usage.forget_failures();
        }
    }
    for (name, limit) in &options.limits {
        let limits = &mut account.policy.limits;
        let kept = match &**name {
            "MAX_QUERIES_PER_HOUR" => &mut limits.queries,
            "MAX_UPDATES_PER_HOUR" => &mut limits.updates,
            "MAX_CONNECTIONS_PER_HOUR" => &mut limits.connections,
            _ => &mut limits.user_connections,
        };
        *kept = u32::try_from(*limit).unwrap_or(u32::MAX);
        account.usage.forget_hour();
    }
    if let Some(comment) = &options.comment {
        let comment = String::from_utf8_lossy(comment);
        let value = JsonValue::String(comment.as_ref().into());
        merge(account, JsonValue::object([("comment".into(), value)]))?;
    }
    if let Some(attribute) = &options.attribute {
        let text = String::from_utf8_lossy(attribute);
        let parsed = Json::parse(&text).map_err(|_| Error::invalid_user_attribute())?;
        merge(account, parsed.into_value())?;
    }
    Ok(())
}

/// Merges into the account's attribute as JSON_MERGE_PATCH does: NULL removes a member.
fn merge(account: &mut Account, patch: JsonValue) -> Result<()> {
    if !matches!(patch, JsonValue::Object(_)) {
        return Err(Error::invalid_user_attribute());
    }
    let empty = || JsonValue::object([]);
    let own = account.attribute.as_deref().map(Json::parse);
    let own = own.and_then(|own| own.ok()).map(Json::into_value);
    let merged = own.unwrap_or_else(empty).merge_patch(patch);
    let mut text = Vec::new();
    merged.write_text(&mut text);
    account.attribute = Some(String::from_utf8_lossy(&text).into_owned());
    Ok(())
}
