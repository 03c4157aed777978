//! What an account's passwords, log-ins and use have to keep to.
//!
//! [`Policy`] is what CREATE USER and ALTER USER say of an account, stored with it; where it says
//! nothing, a global variable counts. [`Usage`] is what has happened since the server started: wrong
//! passwords in a row, and what was used of the hour's allowance. As in MySQL it is forgotten by a
//! restart.
//!
//! MySQL 8.4 manual, 8.2.15 (Password Management), 8.2.21 (Setting Account Resource Limits).

use compact_str::CompactString;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

const SECOND_US: i64 = 1_000_000;
const HOUR_US: i64 = 3600 * SECOND_US;
const DAY_US: i64 = 24 * HOUR_US;

/// PASSWORD_LOCK_TIME UNBOUNDED.
pub const UNBOUNDED: u32 = u32::MAX;

/// UTC microseconds since 1970.
pub fn now_us() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

/// The options of an account. `None` stands for DEFAULT: a global variable counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// PASSWORD EXPIRE INTERVAL n DAY; 0: NEVER.
    pub lifetime_days: Option<u32>,
    /// PASSWORD HISTORY n.
    pub history: Option<u32>,
    /// PASSWORD REUSE INTERVAL n DAY.
    pub reuse_days: Option<u32>,
    /// PASSWORD REQUIRE CURRENT, or with OPTIONAL `Some(false)`.
    pub require_current: Option<bool>,
    /// FAILED_LOGIN_ATTEMPTS.
    pub failed_logins: u32,
    /// PASSWORD_LOCK_TIME in days, or [`UNBOUNDED`].
    pub lock_days: u32,
    /// `WITH MAX_…`.
    pub limits: Limits,
}

/// How much an account may use; 0: any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// MAX_QUERIES_PER_HOUR: statements of any kind.
    pub queries: u32,
    /// MAX_UPDATES_PER_HOUR: statements that change something.
    pub updates: u32,
    /// MAX_CONNECTIONS_PER_HOUR.
    pub connections: u32,
    /// MAX_USER_CONNECTIONS: at a time.
    pub user_connections: u32,
}

impl Limits {
    /// Whether statements have to be counted.
    pub fn count_statements(&self) -> bool {
        self.queries > 0 || self.updates > 0
    }

    /// Each with its name in CREATE USER.
    pub fn named(&self) -> [(&'static str, u32); 4] {
        [
            ("MAX_QUERIES_PER_HOUR", self.queries),
            ("MAX_UPDATES_PER_HOUR", self.updates),
            ("MAX_CONNECTIONS_PER_HOUR", self.connections),
            ("MAX_USER_CONNECTIONS", self.user_connections),
        ]
    }
}

impl Policy {
    /// Whether wrong passwords are counted.
    pub fn tracks_failures(&self) -> bool {
        self.failed_logins > 0 && self.lock_days > 0
    }

    /// Whether a password of this age is too old. `default_days` is `default_password_lifetime`.
    pub fn is_expired(&self, changed_us: Option<i64>, default_days: u64, now_us: i64) -> bool {
        let days = self.lifetime_days.map_or(default_days, u64::from);
        match changed_us {
            Some(changed_us) if days > 0 => {
                let lifetime_us = i64::try_from(days)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(DAY_US);
                now_us.saturating_sub(changed_us) >= lifetime_us
            }
            _ => false,
        }
    }
}

/// A password that an account once had, or has now: `mysql.password_history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerPassword {
    /// When it was set, in UTC microseconds since 1970.
    pub set_us: i64,
    /// Its hash in the form of the account's plugin.
    pub hash: CompactString,
}

/// Drops the passwords that neither limit covers any more: those before the newest `count` that are
/// older than `days`. The newest come first.
pub fn trim_history(passwords: &mut Vec<FormerPassword>, count: u64, days: u64, now_us: i64) {
    let mut position = 0;
    passwords.retain(|one| {
        position += 1;
        position <= count || is_within(one.set_us, days, now_us)
    });
}

fn is_within(set_us: i64, days: u64, now_us: i64) -> bool {
    let span_us = i64::try_from(days)
        .unwrap_or(i64::MAX)
        .saturating_mul(DAY_US);
    now_us.saturating_sub(set_us) < span_us
}

/// What has been used, shared by all versions of an account's definition.
#[derive(Debug, Default)]
pub struct Usage {
    failures: Mutex<Failures>,
    hour: Mutex<Hour>,
}

#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    locked_since_us: Option<i64>,
}

/// What was counted in the hour that began at a moment.
#[derive(Debug, Default)]
struct Hour {
    began_us: i64,
    queries: u32,
    updates: u32,
    connections: u32,
}

/// An account that too many wrong passwords have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemporaryLock {
    /// For how many days; `None`: until somebody unlocks it.
    pub days: Option<u32>,
    /// How many of them are left, the current one included.
    pub days_left: Option<u32>,
    /// After so many wrong passwords.
    pub failures: u32,
}

/// A limit that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached {
    /// The limit's column in `mysql.user`.
    pub resource: &'static str,
    /// How much it allows.
    pub most: u32,
}

fn use_one(used: &mut u32, most: u32, resource: &'static str) -> Result<(), LimitReached> {
    if most > 0 && *used >= most {
        return Err(LimitReached { resource, most });
    }
    *used = used.saturating_add(1);
    Ok(())
}

impl Usage {
    /// A wrong password was given.
    pub fn login_failed(&self, policy: &Policy, now_us: i64) {
        if !policy.tracks_failures() {
            return;
        }
        let mut failures = self.failures.lock();
        if failures.locked_since_us.is_some() {
            return;
        }
        failures.in_a_row = failures.in_a_row.saturating_add(1);
        if failures.in_a_row >= policy.failed_logins {
            failures.locked_since_us = Some(now_us);
        }
    }

    /// The right password was given, or failures no longer count: none in a row.
    pub fn forget_failures(&self) {
        *self.failures.lock() = Failures::default();
    }

    /// Whether wrong passwords have locked the account, and the time isn't up.
    pub fn temporary_lock(&self, policy: &Policy, now_us: i64) -> Option<TemporaryLock> {
        if !policy.tracks_failures() {
            return None;
        }
        let mut failures = self.failures.lock();
        let since_us = failures.locked_since_us?;
        let failed = failures.in_a_row;
        if policy.lock_days == UNBOUNDED {
            return Some(TemporaryLock {
                days: None,
                days_left: None,
                failures: failed,
            });
        }
        let end_us = since_us.saturating_add(i64::from(policy.lock_days).saturating_mul(DAY_US));
        let left_us = end_us.saturating_sub(now_us);
        if left_us <= 0 {
            *failures = Failures::default();
            return None;
        }
        let days_left = u32::try_from((left_us + DAY_US - 1) / DAY_US).unwrap_or(u32::MAX);
        Some(TemporaryLock {
            days: Some(policy.lock_days),
            days_left: Some(days_left.min(policy.lock_days)),
            failures: failed,
        })
    }

    fn with_hour<T>(&self, now_us: i64, count: impl FnOnce(&mut Hour) -> T) -> T {
        let mut hour = self.hour.lock();
        if now_us.saturating_sub(hour.began_us) >= HOUR_US {
            *hour = Hour {
                began_us: now_us,
                ..Hour::default()
            };
        }
        count(&mut hour)
    }

    /// A statement begins.
    pub fn count_statement(
        &self,
        limits: &Limits,
        changes: bool,
        now_us: i64,
    ) -> Result<(), LimitReached> {
        self.with_hour(now_us, |hour| {
            use_one(&mut hour.queries, limits.queries, "max_questions")?;
            match changes {
                true => use_one(&mut hour.updates, limits.updates, "max_updates"),
                false => Ok(()),
            }
        })
    }

    /// A client logs in.
    pub fn count_connection(&self, limits: &Limits, now_us: i64) -> Result<(), LimitReached> {
        if limits.connections == 0 {
            return Ok(());
        }
        self.with_hour(now_us, |hour| {
            use_one(
                &mut hour.connections,
                limits.connections,
                "max_connections_per_hour",
            )
        })
    }

    /// FLUSH USER_RESOURCES: the hour begins anew.
    pub fn forget_hour(&self) {
        *self.hour.lock() = Hour::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy {
            failed_logins: 3,
            lock_days: 2,
            limits: Limits {
                queries: 3,
                updates: 1,
                ..Limits::default()
            },
            ..Policy::default()
        }
    }

    #[test]
    fn wrong_passwords_in_a_row_lock_until_the_time_is_up() {
        let (usage, policy) = (Usage::default(), policy());
        usage.login_failed(&policy, 0);
        usage.login_failed(&policy, 0);
        usage.forget_failures();
        for _ in 0..3 {
            assert_eq!(usage.temporary_lock(&policy, 0), None);
            usage.login_failed(&policy, 0);
        }
        let lock = |days_left| TemporaryLock {
            days: Some(2),
            days_left: Some(days_left),
            failures: 3,
        };
        assert_eq!(usage.temporary_lock(&policy, 0), Some(lock(2)));
        // More of them don't lengthen it.
        usage.login_failed(&policy, DAY_US);
        assert_eq!(usage.temporary_lock(&policy, DAY_US + 1), Some(lock(1)));
        assert_eq!(usage.temporary_lock(&policy, 2 * DAY_US), None);
        usage.login_failed(&policy, 2 * DAY_US);
        assert_eq!(usage.temporary_lock(&policy, 2 * DAY_US), None);
    }

    #[test]
    fn an_unbounded_lock_stays() {
        let usage = Usage::default();
        let policy = Policy {
            failed_logins: 1,
            lock_days: UNBOUNDED,
            ..Policy::default()
        };
        usage.login_failed(&policy, 0);
        let lock = usage
            .temporary_lock(&policy, i64::MAX)
            .map(|lock| lock.days);
        assert_eq!(lock, Some(None));
        usage.forget_failures();
        assert_eq!(usage.temporary_lock(&policy, 0), None);
    }

    #[test]
    fn an_hours_allowance_is_used_up_and_comes_back() {
        let (usage, limits) = (Usage::default(), policy().limits);
        let now_us = HOUR_US;
        let reached = |resource, most| Err(LimitReached { resource, most });
        assert_eq!(usage.count_statement(&limits, true, now_us), Ok(()));
        let updates = usage.count_statement(&limits, true, now_us);
        assert_eq!(updates, reached("max_updates", 1));
        assert_eq!(usage.count_statement(&limits, false, now_us), Ok(()));
        let queries = usage.count_statement(&limits, false, now_us);
        assert_eq!(queries, reached("max_questions", 3));
        let later = usage.count_statement(&limits, true, now_us + HOUR_US);
        assert_eq!(later, Ok(()));
        usage.forget_hour();
        assert_eq!(usage.count_statement(&limits, true, now_us), Ok(()));
    }

    #[test]
    fn a_password_expires_when_it_is_as_old_as_its_lifetime() {
        let policy = |lifetime_days| Policy {
            lifetime_days,
            ..Policy::default()
        };
        let expired = |days, default, now_us| policy(days).is_expired(Some(0), default, now_us);
        assert!(!expired(Some(2), 0, 2 * DAY_US - 1));
        assert!(expired(Some(2), 0, 2 * DAY_US));
        assert!(!expired(Some(0), 1, 9 * DAY_US));
        assert!(expired(None, 1, DAY_US));
        assert!(!expired(None, 0, i64::MAX));
        assert!(!policy(Some(1)).is_expired(None, 0, i64::MAX));
    }

    #[test]
    fn history_keeps_what_either_limit_covers() {
        let password = |set_us| FormerPassword {
            set_us,
            hash: "x".into(),
        };
        let mut passwords: Vec<_> = (0..4).rev().map(|day| password(day * DAY_US)).collect();
        trim_history(&mut passwords, 1, 2, 3 * DAY_US);
        let days: Vec<_> = passwords.iter().map(|one| one.set_us / DAY_US).collect();
        assert_eq!(days, [3, 2]);
        trim_history(&mut passwords, 0, 0, 3 * DAY_US);
        assert!(passwords.is_empty());
    }
}
