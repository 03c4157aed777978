//! Accounts and privileges: who can log in, by what authentication, and what they may do.
//!
//! An account is a user name and a host pattern. [`Accounts::find`] picks the one that a client is
//! matched with: the most specific host first, then a user name before the anonymous one.
//! Authentication is the server's task; here are the plugin's name and the stored hash.
//!
//! Privileges are granted at four levels, and add up:
//!
//! ```text
//! *.*  ⊇  schema pattern.*  ⊇  schema.table  ⊇  columns
//! ```
//!
//! [`Grants`] hang off an account in a cell of their own, so that GRANT takes effect in open
//! sessions. A session without an account, which an embedded program opens, may do everything.
//!
//! - [`component`] has the components that are installed.
//! - [`decoy`] chooses the plugin for users that don't exist.
//! - [`policy`] has expiry, history, locks after wrong passwords, and limits.
//! - [`host`] matches hosts; [`host_cache`] counts their failed log-ins.
//! - [`role`] is about roles and who has them.
//!
//! MySQL 8.4 manual, 8.2 (Access Control and Account Management).

#![warn(missing_docs)]

pub mod component;
mod decoy;
pub mod host;
pub mod host_cache;
pub mod policy;
pub mod role;
pub mod routine;
pub mod server;
pub mod tls;

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::Mutex;
use porpoise_catalog::dictionary::{KIND_ACCOUNT, delete_record, put_record, read_kind};
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::{DYNAMIC, Privilege, Set, level};
use porpoise_storage::{Store, Transaction};
use serde::{Deserialize, Serialize};

use decoy::Decoys;
use policy::{FormerPassword, Policy, Usage};
use tls::TlsRequirement;

/// Authenticates by the operating system's user of the process at the other end of a Unix socket.
pub const AUTH_SOCKET: &str = "auth_socket";
/// Authenticates with SHA-1 over a nonce (MySQL 8.4 manual, 8.4.1.1).
pub const NATIVE_PASSWORD: &str = "mysql_native_password";
/// Authenticates with SHA-256, the default of new accounts (MySQL 8.4 manual, 8.4.1.2).
pub const CACHING_SHA2_PASSWORD: &str = "caching_sha2_password";
/// Authenticates with SHA-256 as `caching_sha2_password` does, without a cache (MySQL 8.4 manual,
/// 8.4.1.3); deprecated.
pub const SHA256_PASSWORD: &str = "sha256_password";

/// A user name and a host pattern, how it authenticates, and what it may do.
#[derive(Clone, Debug)]
pub struct Account {
    /// Empty: the anonymous user, who matches any name.
    pub user: CompactString,
    /// A host pattern, see [`host`].
    pub host: CompactString,
    /// The authentication plugin's name.
    pub plugin: CompactString,
    /// The password's hash in the plugin's own form; empty: no password.
    pub authentication_string: CompactString,
    /// ACCOUNT LOCK: nobody can log in. Roles are locked accounts.
    pub locked: bool,
    /// The session may do nothing but set a new password.
    pub password_expired: bool,
    /// What its clients' connections must be.
    pub tls: TlsRequirement,
    /// When the password was last set, in UTC microseconds since 1970; `None` where that was before
    /// the database kept it.
    pub password_changed_us: Option<i64>,
    /// The hash of the password before, which is still valid (RETAIN CURRENT PASSWORD); empty: none.
    pub second_password: CompactString,
    /// Passwords that are not to be used again, the newest first.
    pub former_passwords: Vec<FormerPassword>,
    /// Expiry, history, locks and limits.
    pub policy: Policy,
    /// The accounts as which this one may act, a row each GRANT PROXY.
    pub proxies: Vec<ProxyGrant>,
    /// What the account's clients have used. Shared by every newer version of its definition.
    pub usage: Arc<Usage>,
    /// What SHOW CREATE USER prints back, without effect here.
    pub options: Vec<String>,
    /// A JSON object, COMMENT's text in its member `comment`; `None` where CREATE USER had neither
    /// ATTRIBUTE nor COMMENT.
    pub attribute: Option<String>,
    /// Shared by all sessions of the account and by every newer version of its definition.
    pub grants: Arc<ArcSwap<Grants>>,
}

/// A right to act as another account: a row of `mysql.proxies_priv`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyGrant {
    /// The other account's user; empty, with an empty host, for every account.
    pub user: CompactString,
    /// The other account's host.
    pub host: CompactString,
    /// WITH GRANT OPTION.
    #[serde(default)]
    pub grantable: bool,
    /// Who granted it: `user@host`, empty for the right that a fresh database has.
    #[serde(default)]
    pub grantor: CompactString,
    /// When, in UTC microseconds since 1970.
    #[serde(default)]
    pub granted_us: i64,
}

impl ProxyGrant {
    /// Whether it is about the account of this name. `host` compares in any case.
    pub fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.eq_ignore_ascii_case(host)
    }
}

/// What an account may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grants {
    /// Granted on `*.*`, static privileges only.
    pub global: Set,
    /// Dynamic privileges, and whether they may be passed on.
    #[serde(default)]
    pub dynamic: Vec<(CompactString, bool)>,
    /// Granted on schemas, a row each pattern.
    #[serde(default)]
    pub schemas: Vec<SchemaGrant>,
    /// Granted on tables and their columns, a row each table.
    #[serde(default)]
    pub tables: Vec<TableGrant>,
    /// Granted on single routines, a row each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routines: Vec<routine::RoutineGrant>,
    /// Roles granted to the account, active or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<role::RoleGrant>,
}

/// What is granted on the schemas that match a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaGrant {
    /// May hold `%` and `_`.
    pub pattern: CompactString,
    /// What is granted on each of these schemas, and on all tables in them.
    pub privileges: Set,
}

/// What is granted on one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableGrant {
    /// The schema's name as written; no pattern.
    pub schema: CompactString,
    /// The table's name. The table need not exist.
    pub table: CompactString,
    /// Granted on the table as a whole.
    pub privileges: Set,
    /// Granted on single columns, by name in any case.
    #[serde(default)]
    pub columns: Vec<(CompactString, Set)>,
    /// Who granted it last: `user@host`; empty where that wasn't kept.
    #[serde(default)]
    pub grantor: CompactString,
    /// When, in UTC microseconds since 1970; 0 where that wasn't kept.
    #[serde(default)]
    pub granted_us: i64,
}

#[derive(Serialize, Deserialize)]
struct AccountRecord {
    user: CompactString,
    host: CompactString,
    plugin: CompactString,
    authentication_string: CompactString,
    #[serde(default)]
    locked: bool,
    #[serde(default)]
    password_expired: bool,
    #[serde(default)]
    tls: TlsRequirement,
    #[serde(default)]
    password_changed_us: Option<i64>,
    #[serde(default)]
    second_password: CompactString,
    #[serde(default)]
    former_passwords: Vec<FormerPassword>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    proxies: Vec<ProxyGrant>,
    #[serde(default)]
    options: Vec<String>,
    /// Of databases that kept it beside the attribute.
    #[serde(default, skip_serializing)]
    comment: Option<String>,
    #[serde(default)]
    attribute: Option<String>,
    grants: Grants,
}

impl Account {
    /// An account that logs in by `caching_sha2_password` without a password and may do nothing. It
    /// isn't stored: see [`AccountChange::put`].
    pub fn new(user: &str, host: &str) -> Account {
        Account {
            user: user.into(),
            host: host.into(),
            plugin: CACHING_SHA2_PASSWORD.into(),
            authentication_string: CompactString::default(),
            locked: false,
            password_expired: false,
            tls: TlsRequirement::None,
            password_changed_us: None,
            second_password: CompactString::default(),
            former_passwords: Vec::new(),
            policy: Policy::default(),
            proxies: Vec::new(),
            usage: Arc::default(),
            options: Vec::new(),
            attribute: None,
            grants: Arc::default(),
        }
    }

    /// The account of a fresh database: the owner of its folder.
    fn root() -> Account {
        let grants = Grants {
            global: Set::all(level::GLOBAL).with(Privilege::GrantOption.set()),
            dynamic: DYNAMIC.iter().map(|name| ((*name).into(), true)).collect(),
            ..Grants::default()
        };
        Account {
            plugin: AUTH_SOCKET.into(),
            password_changed_us: Some(policy::now_us()),
            proxies: vec![ProxyGrant {
                user: CompactString::default(),
                host: CompactString::default(),
                grantable: true,
                grantor: "boot@".into(),
                granted_us: policy::now_us(),
            }],
            grants: Arc::new(ArcSwap::from_pointee(grants)),
            ..Account::new("root", "localhost")
        }
    }

    /// `'user'@'host'`.
    pub fn quoted(&self) -> String {
        format!("'{}'@'{}'", self.user, self.host)
    }

    /// Whether its password may expire: it has one that is kept here.
    pub fn keeps_password(&self) -> bool {
        self.plugin != AUTH_SOCKET
    }

    /// Whether its clients have to set a new password before anything else.
    /// `default_lifetime_days` is `default_password_lifetime`.
    pub fn must_change_password(&self, default_lifetime_days: u64) -> bool {
        let changed_us = self.password_changed_us.filter(|_| self.keeps_password());
        let now_us = policy::now_us();
        self.password_expired
            || self
                .policy
                .is_expired(changed_us, default_lifetime_days, now_us)
    }

    /// Whether it gets in when `max_connections` are in use (CONNECTION_ADMIN).
    pub fn may_use_reserved_connection(&self) -> bool {
        let grants = self.grants.load();
        grants.global.has(Privilege::Super) || grants.has_dynamic("CONNECTION_ADMIN")
    }

    fn key(&self) -> Vec<u8> {
        let mut key = self.host.as_bytes().to_vec();
        key.push(0);
        key.extend_from_slice(self.user.as_bytes());
        key
    }

    fn record(&self) -> AccountRecord {
        AccountRecord {
            user: self.user.clone(),
            host: self.host.clone(),
            plugin: self.plugin.clone(),
            authentication_string: self.authentication_string.clone(),
            locked: self.locked,
            password_expired: self.password_expired,
            tls: self.tls.clone(),
            password_changed_us: self.password_changed_us,
            second_password: self.second_password.clone(),
            former_passwords: self.former_passwords.clone(),
            policy: self.policy.clone(),
            proxies: self.proxies.clone(),
            options: self.options.clone(),
            comment: None,
            attribute: self.attribute.clone(),
            grants: (**self.grants.load()).clone(),
        }
    }
}

impl From<AccountRecord> for Account {
    fn from(mut record: AccountRecord) -> Account {
        // Where requirements once were kept.
        for (option, tls) in [
            ("REQUIRE SSL", TlsRequirement::Ssl),
            ("REQUIRE X509", TlsRequirement::X509),
        ] {
            if record.options.iter().any(|known| known == option) {
                record.tls = tls;
            }
        }
        record
            .options
            .retain(|option| !option.starts_with("REQUIRE"));
        Account {
            tls: record.tls,
            user: record.user,
            host: record.host,
            plugin: record.plugin,
            authentication_string: record.authentication_string,
            locked: record.locked,
            password_expired: record.password_expired,
            password_changed_us: record.password_changed_us,
            second_password: record.second_password,
            former_passwords: record.former_passwords,
            policy: record.policy,
            proxies: record.proxies,
            usage: Arc::default(),
            options: record.options,
            attribute: match record.comment {
                Some(comment) => Some(serde_json::json!({ "comment": comment }).to_string()),
                None => record.attribute,
            },
            grants: Arc::new(ArcSwap::from_pointee(record.grants)),
        }
    }
}

impl Grants {
    /// Adds another's privileges, not its roles.
    pub fn add_all(&mut self, other: &Grants) {
        self.global = self.global.with(other.global);
        for (name, passes_on) in &other.dynamic {
            match self.dynamic.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known |= passes_on,
                None => self.dynamic.push((name.clone(), *passes_on)),
            }
        }
        for grant in &other.schemas {
            let known = self
                .schemas
                .iter_mut()
                .find(|known| known.pattern == grant.pattern);
            match known {
                Some(known) => known.privileges = known.privileges.with(grant.privileges),
                None => self.schemas.push(grant.clone()),
            }
        }
        for grant in &other.tables {
            let known = self
                .tables
                .iter_mut()
                .find(|known| known.schema == grant.schema && known.table == grant.table);
            match known {
                Some(known) => {
                    known.privileges = known.privileges.with(grant.privileges);
                    known.columns.extend(grant.columns.iter().cloned());
                }
                None => self.tables.push(grant.clone()),
            }
        }
        for grant in &other.routines {
            self.add_on_routine(grant.clone());
        }
    }

    /// Whether a dynamic privilege is granted. `name` is in upper case.
    pub fn has_dynamic(&self, name: &str) -> bool {
        self.dynamic.iter().any(|(known, _)| known == name)
    }

    /// What is granted on a schema: globally, or by a pattern that matches it.
    pub fn on_schema(&self, schema: &str) -> Set {
        let matching = self
            .schemas
            .iter()
            .filter(|grant| host::like(schema, &grant.pattern));
        matching.fold(self.global, |set, grant| set.with(grant.privileges))
    }

    /// The grant on exactly this table, without what schemas and `*.*` grant.
    pub fn table(&self, schema: &str, table: &str) -> Option<&TableGrant> {
        self.tables
            .iter()
            .find(|grant| grant.schema == schema && grant.table == table)
    }

    /// What is granted on a table as a whole.
    pub fn on_table(&self, schema: &str, table: &str) -> Set {
        self.on_schema(schema).with(
            self.table(schema, table)
                .map_or(Set::NONE, |grant| grant.privileges),
        )
    }

    /// What is granted on a column: on itself, its table, its schema or globally.
    pub fn on_column(&self, schema: &str, table: &str, column: &str) -> Set {
        let own = self.table(schema, table);
        let own = own.map_or(Set::NONE, |grant| grant.on_column(column));
        self.on_table(schema, table).with(own)
    }

    /// Whether anything at all is granted on a table or a column of it.
    pub fn sees_table(&self, schema: &str, table: &str) -> bool {
        self.on_table(schema, table).meets(Set::all(level::TABLE))
            || self
                .table(schema, table)
                .is_some_and(|grant| !grant.columns.is_empty())
    }

    /// Whether anything at all is granted on a schema or in it.
    pub fn sees_schema(&self, schema: &str) -> bool {
        let here = self.on_schema(schema);
        let useful = Set::all(level::SCHEMA).with(Privilege::ShowDatabases.set());
        here.0 & useful.0 != 0
            || self.tables.iter().any(|grant| grant.schema == schema)
            || self.has_routine_in(schema)
    }
}

impl TableGrant {
    /// What is granted on a column alone.
    pub fn on_column(&self, column: &str) -> Set {
        let own = self.columns.iter();
        let own = own.filter(|(name, _)| name.eq_ignore_ascii_case(column));
        own.fold(Set::NONE, |set, (_, privileges)| set.with(*privileges))
    }
}

/// Every account of a database.
pub struct Accounts {
    index: ArcSwap<AccountIndex>,
    decoys: Decoys,
    change: Mutex<()>,
}

/// The accounts of one moment, indexed so that a lookup's time tells neither how many there are nor
/// whether one is among them.
struct AccountIndex {
    /// The most specific first.
    all: Vec<Arc<Account>>,
    /// The positions in `all` of each user's accounts, in that order.
    by_user: HashMap<CompactString, Vec<usize>>,
    /// Each host pattern once.
    hosts: Vec<CompactString>,
    /// The plugins that ask for a password and that some account has.
    plugins: Vec<&'static str>,
    /// Some account has a second password.
    any_second_password: bool,
}

impl AccountIndex {
    fn of(mut all: Vec<Arc<Account>>) -> AccountIndex {
        all.sort_by(|a, b| {
            host::specificity(&a.host)
                .cmp(&host::specificity(&b.host))
                .then_with(|| b.user.cmp(&a.user))
        });
        let mut by_user: HashMap<CompactString, Vec<usize>> = HashMap::new();
        for (at, account) in all.iter().enumerate() {
            by_user.entry(account.user.clone()).or_default().push(at);
        }
        let mut hosts: Vec<CompactString> = all.iter().map(|one| one.host.clone()).collect();
        // The least specific first: most look no further.
        hosts.reverse();
        hosts.dedup();
        let plugins = [CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, SHA256_PASSWORD]
            .into_iter()
            .filter(|plugin| all.iter().any(|account| account.plugin == *plugin))
            .collect();
        let any_second_password = all.iter().any(|one| !one.second_password.is_empty());
        AccountIndex {
            all,
            by_user,
            hosts,
            plugins,
            any_second_password,
        }
    }

    /// The first account of exactly that user name that matches the host.
    fn first(&self, user: &str, host: &str, ip: Option<IpAddr>) -> Option<usize> {
        let mut of_user = self.by_user.get(user)?.iter().copied();
        of_user.find(|&at| host::matches(&self.all[at].host, host, ip))
    }
}

impl Accounts {
    /// Reads the accounts; a fresh database gets `root@localhost`.
    pub fn open(store: &Store) -> Result<Accounts> {
        let records: Vec<(Vec<u8>, AccountRecord)> = read_kind(store, KIND_ACCOUNT)?;
        let mut all: Vec<Arc<Account>> = records
            .into_iter()
            .map(|(_, record)| Arc::new(Account::from(record)))
            .collect();
        if all.is_empty() {
            let root = Account::root();
            let mut transaction = store.begin();
            put_record(&mut transaction, KIND_ACCOUNT, &root.key(), &root.record())?;
            transaction.commit()?.wait()?;
            all.push(Arc::new(root));
        }
        Ok(Accounts {
            index: ArcSwap::from_pointee(AccountIndex::of(all)),
            decoys: Decoys::open(store)?,
            change: Mutex::new(()),
        })
    }

    /// The account that a user from a host is matched with.
    pub fn find(&self, user: &str, host: &str, ip: Option<IpAddr>) -> Option<Arc<Account>> {
        let index = self.index.load();
        let named = index.first(user, host, ip);
        let anonymous = index.first("", host, ip);
        let at = [named, anonymous].into_iter().flatten().min()?;
        Some(index.all[at].clone())
    }

    /// The plugin by which a user is asked for a password that has no account, or none with a
    /// password.
    pub fn decoy_plugin(&self, user: &str) -> &'static str {
        self.decoys.plugin(user, &self.index.load().plugins)
    }

    /// Whether any account has a second password.
    pub fn any_second_password(&self) -> bool {
        self.index.load().any_second_password
    }

    /// Whether there is any account for users from a host.
    pub fn accepts_host(&self, host: &str, ip: Option<IpAddr>) -> bool {
        let index = self.index.load();
        let mut hosts = index.hosts.iter();
        hosts.any(|pattern| host::matches(pattern, host, ip))
    }

    /// An account by its exact name.
    pub fn get(&self, user: &str, host: &str) -> Option<Arc<Account>> {
        let index = self.index.load();
        let mut of_user = index.by_user.get(user)?.iter().map(|&at| &index.all[at]);
        of_user
            .find(|account| account.host.eq_ignore_ascii_case(host))
            .cloned()
    }

    /// FLUSH USER_RESOURCES: every account's hour begins anew.
    pub fn forget_hour(&self) {
        let index = self.index.load();
        index.all.iter().for_each(|one| one.usage.forget_hour());
    }

    /// No account has had wrong passwords.
    pub fn forget_failures(&self) {
        let index = self.index.load();
        index.all.iter().for_each(|one| one.usage.forget_failures());
    }

    /// All accounts, by user and host.
    pub fn all(&self) -> Vec<Arc<Account>> {
        let mut all = self.index.load().all.clone();
        all.sort_by(|a, b| (&a.user, &a.host).cmp(&(&b.user, &b.host)));
        all
    }
}

/// A change of several accounts, made at once or not at all.
pub struct AccountChange<'a> {
    accounts: &'a Accounts,
    store: &'a Store,
    transaction: Transaction,
    all: Vec<Arc<Account>>,
    /// Grants that take effect with the commit, in the cells that sessions hold.
    grants: Vec<(Arc<ArcSwap<Grants>>, Grants)>,
    _one_at_a_time: parking_lot::MutexGuard<'a, ()>,
}

impl<'a> AccountChange<'a> {
    /// Waits until no other change of accounts is under way. Nothing happens before
    /// [`commit`](Self::commit); dropping the change takes it back.
    pub fn begin(accounts: &'a Accounts, store: &'a Store) -> AccountChange<'a> {
        let one_at_a_time = accounts.change.lock();
        AccountChange {
            accounts,
            store,
            transaction: store.begin(),
            all: accounts.index.load().all.clone(),
            grants: Vec::new(),
            _one_at_a_time: one_at_a_time,
        }
    }

    /// Every account and role, as this change has left them so far.
    pub fn all(&self) -> Vec<Arc<Account>> {
        self.all.clone()
    }

    /// The account of exactly this name, as this change has left it so far. `host` compares in any
    /// case.
    pub fn get(&self, user: &str, host: &str) -> Option<Arc<Account>> {
        self.all
            .iter()
            .find(|account| account.user == user && account.host.eq_ignore_ascii_case(host))
            .cloned()
    }

    /// Puts an account in place, new or changed.
    pub fn put(&mut self, account: Account) -> Result<()> {
        put_record(
            &mut self.transaction,
            KIND_ACCOUNT,
            &account.key(),
            &account.record(),
        )?;
        self.all
            .retain(|old| old.user != account.user || old.host != account.host);
        self.all.push(Arc::new(account));
        Ok(())
    }

    /// Removes an account. Sessions of it go on with the privileges they have.
    pub fn remove(&mut self, account: &Account) {
        delete_record(&mut self.transaction, KIND_ACCOUNT, &account.key());
        self.all
            .retain(|old| old.user != account.user || old.host != account.host);
    }

    /// The account's grants as this change has left them so far.
    pub fn grants(&self, account: &Account) -> Grants {
        let pending = self
            .grants
            .iter()
            .rev()
            .find(|(cell, _)| Arc::ptr_eq(cell, &account.grants));
        pending.map_or_else(
            || (**account.grants.load()).clone(),
            |(_, grants)| grants.clone(),
        )
    }

    /// Replaces an account's grants. Its sessions get them with the commit.
    pub fn put_grants(&mut self, account: &Account, grants: Grants) -> Result<()> {
        let record = AccountRecord {
            grants: grants.clone(),
            ..account.record()
        };
        put_record(&mut self.transaction, KIND_ACCOUNT, &account.key(), &record)?;
        self.grants.push((Arc::clone(&account.grants), grants));
        Ok(())
    }

    /// Makes the change durable, then visible to logins and open sessions.
    pub fn commit(self) -> Result<()> {
        let _ = self.store;
        self.transaction.commit().map_err(Error::from)?.wait()?;
        for (cell, grants) in self.grants {
            cell.store(Arc::new(grants));
        }
        let index = AccountIndex::of(self.all);
        self.accounts.index.store(Arc::new(index));
        Ok(())
    }
}
