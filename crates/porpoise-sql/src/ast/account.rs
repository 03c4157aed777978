//! Accounts and privileges.

use super::name::{Ident, ObjectName};

/// `'user'@'host'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// `user[@host]`; the host is `%` when not written.
    Named {
        /// The user; empty is the anonymous user.
        user: Ident,
        /// The host, lower case.
        host: Option<Ident>,
    },
    /// `CURRENT_USER[()]`, `USER()`
    Current,
}

/// `CREATE USER …`, `ALTER USER …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateUser {
    /// `IF NOT EXISTS`, or for ALTER `IF EXISTS`.
    pub if_exists: bool,
    /// Whom.
    pub users: Vec<UserSpec>,
    /// `DEFAULT ROLE`.
    pub default_roles: Option<RoleSet>,
    /// `REQUIRE`.
    pub require: Option<TlsRequirement>,
    /// `WITH MAX_…_PER_HOUR n`: the name in upper case, the number.
    pub limits: Vec<(Box<str>, u64)>,
    /// `ACCOUNT LOCK`: `Some(true)`, `ACCOUNT UNLOCK`: `Some(false)`.
    pub locked: Option<bool>,
    /// `PASSWORD …`, `FAILED_LOGIN_ATTEMPTS …`, `PASSWORD_LOCK_TIME …`.
    pub password_options: Vec<PasswordOption>,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `ATTRIBUTE`.
    pub attribute: Option<Box<[u8]>>,
}

/// An option of an account's passwords or log-ins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordOption {
    /// `PASSWORD EXPIRE`: now.
    Expire,
    /// `PASSWORD EXPIRE DEFAULT`: `None`, `NEVER`: 0, `INTERVAL n DAY`.
    Lifetime(Option<u64>),
    /// `PASSWORD HISTORY DEFAULT`: `None`, or a number.
    History(Option<u64>),
    /// `PASSWORD REUSE INTERVAL DEFAULT`: `None`, or `n DAY`.
    ReuseInterval(Option<u64>),
    /// `PASSWORD REQUIRE CURRENT`: `Some(true)`, with `OPTIONAL`: `Some(false)`, with `DEFAULT`:
    /// `None`.
    RequireCurrent(Option<bool>),
    /// `FAILED_LOGIN_ATTEMPTS n`.
    FailedLogins(u64),
    /// `PASSWORD_LOCK_TIME n`; `None`: `UNBOUNDED`.
    LockTime(Option<u64>),
}

/// A user and how he authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    /// Who.
    pub account: Account,
    /// `IDENTIFIED …`.
    pub auth: Option<Auth>,
    /// `REPLACE 'current'`.
    pub replace: Option<Box<[u8]>>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain: bool,
    /// `DISCARD OLD PASSWORD`.
    pub discard_old: bool,
}

/// `IDENTIFIED [WITH plugin] [BY … | AS …]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// `WITH`.
    pub plugin: Option<Ident>,
    /// `BY`, `AS`.
    pub secret: Secret,
}

/// What an account is identified by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// Nothing written: an empty password.
    None,
    /// `BY 'password'`
    Password(Box<[u8]>),
    /// `BY RANDOM PASSWORD`
    Random,
    /// `AS 'hash'`
    Hash(Box<[u8]>),
}

/// `REQUIRE …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsRequirement {
    /// `NONE`
    None,
    /// `SSL`
    Ssl,
    /// `X509`
    X509,
    /// `CIPHER '…' AND ISSUER '…' AND SUBJECT '…'`: the word in upper case, the text.
    Specified(Vec<(Box<str>, Box<[u8]>)>),
}

/// Which roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleSet {
    /// `DEFAULT`
    Default,
    /// `NONE`
    None,
    /// `ALL`
    All,
    /// `ALL EXCEPT …`
    AllExcept(Vec<Account>),
    /// Those listed.
    List(Vec<Account>),
}

/// `GRANT …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// `GRANT privileges ON object TO users`.
    Privileges {
        /// Which.
        privileges: Vec<Privilege>,
        /// On what.
        object: GrantObject,
        /// To whom; the old `IDENTIFIED BY` is kept.
        to: Vec<UserSpec>,
        /// `WITH GRANT OPTION`.
        grant_option: bool,
        /// `AS user [WITH ROLE …]`.
        as_user: Option<Account>,
    },
    /// `GRANT PROXY ON user TO users`.
    Proxy {
        /// Whose rights.
        on: Account,
        /// To whom.
        to: Vec<Account>,
        /// `WITH GRANT OPTION`.
        grant_option: bool,
    },
    /// `GRANT roles TO users`.
    Roles {
        /// Which.
        roles: Vec<Account>,
        /// To whom.
        to: Vec<Account>,
        /// `WITH ADMIN OPTION`.
        admin_option: bool,
    },
}

/// `REVOKE [IF EXISTS] …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoke {
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `IGNORE UNKNOWN USER`.
    pub ignore_unknown: bool,
    /// What.
    pub what: RevokeWhat,
    /// From whom.
    pub from: Vec<Account>,
}

/// What REVOKE takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevokeWhat {
    /// `privileges ON object`.
    Privileges(Vec<Privilege>, GrantObject),
    /// `ALL [PRIVILEGES], GRANT OPTION`.
    Everything,
    /// `PROXY ON user`.
    Proxy(Account),
    /// `roles`.
    Roles(Vec<Account>),
}

/// `SELECT (a, b)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    /// In upper case with one space between words: `SELECT`, `ALL`, `CREATE TEMPORARY TABLES`,
    /// `BACKUP_ADMIN`. `ALL PRIVILEGES` is `ALL`.
    pub name: Box<str>,
    /// The columns, when written.
    pub columns: Vec<Ident>,
}

/// What privileges are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantObject {
    /// `*.*`
    Global,
    /// `database.*`; `None`: `*`, the current database. The name may be a LIKE pattern.
    Database(Option<Ident>),
    /// `[TABLE] table`
    Table(ObjectName),
    /// `FUNCTION name`
    Function(ObjectName),
    /// `PROCEDURE name`
    Procedure(ObjectName),
}
