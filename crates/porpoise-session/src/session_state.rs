//! A session's state between its statements: its variables, and what it holds.

use std::collections::HashSet;
use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_accounts::Account;
use porpoise_accounts::tls::ClientTls;
use porpoise_catalog::{TableId, TableName, TemporaryTables};
use porpoise_core::error::Result;
use porpoise_core::reply::Completion;
use porpoise_core::variables::SessionVars;
use porpoise_mdl::process::Control;
use porpoise_mdl::{self as mdl, Changing, HeldGlobally, Locks, MdlRequester, MdlTicket, Waiter};
use porpoise_planner::Variables;
use porpoise_sql::ast;
use porpoise_types::{DataType, Value};

use crate::locked_tables::LockedTables;
use crate::planning_context::PlanningContext;
use crate::shared::Shared;

/// Where LOAD DATA reads from.
pub type Source = Box<dyn Read + Send + Sync>;

/// Why a session may not run every statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Restriction {
    #[default]
    None,
    /// Its account's statements of an hour are limited (1226).
    Limited,
    /// The account's password has expired: until it has a new one, nothing else runs (1820).
    MustChangePassword,
}

/// A program that a session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProgram {
    /// A function or a trigger: it can't call itself, commits nothing and sends no rows.
    pub is_within_statement: bool,
    /// Its schema.
    pub schema: CompactString,
    /// Its name there.
    pub name: CompactString,
}

/// Variables, and what the session holds: temporary tables, locked ones, its account and roles.
/// What reads variables alone takes the [`SessionVars`], which it dereferences to.
pub struct SessionState {
    /// Session values of system variables, user variables, and the state of the statement that
    /// runs.
    pub vars: SessionVars,
    /// Tables of CREATE TEMPORARY TABLE, which shadow others of the same name.
    pub temporary_tables: TemporaryTables,
    /// The server's own tables that the session has dropped, as dumps do before they make them
    /// anew. The server keeps them; what is made in their place is the session's alone.
    pub set_aside: HashSet<TableName>,
    /// Woken by KILL, and by a session that hands a metadata lock over.
    pub waiter: Arc<Waiter>,
    /// CURRENT_USER().
    pub account: Option<Arc<Account>>,
    /// How its connection is encrypted; `None` if it isn't.
    pub tls: Option<Arc<ClientTls>>,
    /// By what its packets are compressed, and at which level; `None` if they aren't.
    pub compression: Option<(&'static str, u8)>,
    /// Why not every statement may run; nothing for most accounts.
    pub(crate) restriction: Restriction,
    /// The file of the LOAD DATA that runs.
    pub load_source: Option<Source>,
    /// Roles that SET ROLE or the login made active.
    pub active_roles: Vec<Arc<Account>>,
    /// All roles that were granted to the account when `active_roles` was set, directly or through
    /// other roles.
    pub reached_roles: Vec<Arc<Account>>,
    /// LOCK TABLES; empty when none is in force.
    pub locked_tables: LockedTables,
    /// FLUSH TABLES WITH READ LOCK.
    pub global_read_lock: Option<[MdlTicket; 2]>,
    /// LOCK INSTANCE FOR BACKUP.
    pub backup_lock: Option<MdlTicket>,
    /// The programs that run, the innermost last.
    pub programs: Vec<RunningProgram>,
    /// The tables that the statements use whose functions and triggers run.
    pub tables_in_use: Vec<TableId>,
    /// Carries out changes of definitions: programs within statements, which run below the crate
    /// that knows how, make temporary tables.
    pub define: Define,
    planning_context: PlanningContext,
}

/// A change of definitions: what all sessions share, the session, the statement's text, the
/// statement, and what its query is run with.
pub type Define = fn(
    &Shared,
    &mut SessionState,
    &[u8],
    &ast::Statement,
    StatementInputs<'_>,
) -> Result<Completion>;

/// What a statement is run with beside its text.
#[derive(Clone, Copy, Default)]
pub struct StatementInputs<'a> {
    /// The variables of a program that it can name, where it is part of one.
    pub variables: Option<&'a dyn Variables>,
    /// The types of its parameters.
    pub types: &'a [DataType],
    /// The values of its parameters, or of the program's variables by number.
    pub values: &'a [Value],
}

impl SessionState {
    /// A session that has variables, and nothing else yet.
    pub fn new(vars: SessionVars, define: Define) -> SessionState {
        SessionState {
            define,
            programs: Vec::new(),
            tables_in_use: Vec::new(),
            planning_context: PlanningContext::of(&vars),
            vars,
            temporary_tables: TemporaryTables::new(),
            set_aside: HashSet::new(),
            waiter: Arc::default(),
            account: None,
            tls: None,
            compression: None,
            restriction: Restriction::None,
            load_source: None,
            active_roles: Vec::new(),
            reached_roles: Vec::new(),
            locked_tables: LockedTables::default(),
            global_read_lock: None,
            backup_lock: None,
        }
    }
}

impl SessionState {
    /// The hash of what planning depends on beside text and catalog, computed anew if that has
    /// changed.
    #[inline]
    pub fn planning_context_hash(&mut self) -> u64 {
        if !self.planning_context.is_of(&self.vars) {
            self.planning_context = PlanningContext::of(&self.vars);
        }
        self.planning_context.hash
    }
}

impl SessionState {
    /// The session is an account's from now on; an embedded program has none.
    /// `default_lifetime_days` is `default_password_lifetime`.
    pub fn set_account(&mut self, account: Option<Arc<Account>>, default_lifetime_days: u64) {
        self.restriction = match &account {
            Some(own) if own.must_change_password(default_lifetime_days) => {
                Restriction::MustChangePassword
            }
            own => limited(own.as_deref()),
        };
        self.account = account;
    }

    /// The account's password has expired: until it has a new one, nothing else runs (1820).
    pub fn must_change_password(&self) -> bool {
        self.restriction == Restriction::MustChangePassword
    }

    /// The account has a new password.
    pub fn password_changed(&mut self) {
        self.restriction = limited(self.account.as_deref());
    }
}

fn limited(account: Option<&Account>) -> Restriction {
    match account {
        Some(own) if own.policy.limits.count_statements() => Restriction::Limited,
        _ => Restriction::None,
    }
}

impl SessionState {
    /// The session as a requester of metadata locks.
    pub fn requester<'a>(&'a self, locks: &'a Locks) -> MdlRequester<'a> {
        MdlRequester {
            locks,
            session: &self.vars,
            waiter: &self.waiter,
        }
    }

    /// Begins a statement that changes something; waits while another session has the global read
    /// lock.
    #[inline]
    pub fn begin_change<'a>(&self, locks: &'a Locks, control: &'a Control) -> Result<Changing<'a>> {
        mdl::begin_change(locks, self.requester(locks), self.held_globally(), control)
    }

    #[inline]
    fn held_globally(&self) -> HeldGlobally {
        if self.global_read_lock.is_some() {
            HeldGlobally::ReadLock
        } else if self.locked_tables.writes() {
            HeldGlobally::Intention
        } else {
            HeldGlobally::Nothing
        }
    }

    /// Begins the commit of a transaction.
    pub fn begin_commit<'a>(&self, locks: &'a Locks, control: &'a Control) -> Result<Changing<'a>> {
        mdl::begin_commit(locks, self.requester(locks), self.held_globally(), control)
    }
}

impl Deref for SessionState {
    type Target = SessionVars;

    fn deref(&self) -> &SessionVars {
        &self.vars
    }
}

impl DerefMut for SessionState {
    fn deref_mut(&mut self) -> &mut SessionVars {
        &mut self.vars
    }
}
