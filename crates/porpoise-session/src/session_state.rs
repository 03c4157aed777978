//! A session's state between its statements: its variables, and what it holds.

use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use porpoise_accounts::Account;
use porpoise_catalog::TemporaryTables;
use porpoise_core::error::Result;
use porpoise_core::variables::SessionVars;
use porpoise_mdl::process::Control;
use porpoise_mdl::{self as mdl, Changing, HeldGlobally, Locks, MdlRequester, MdlTicket, Waiter};

use crate::locked_tables::LockedTables;

/// Where LOAD DATA reads from.
pub type Source = Box<dyn Read + Send + Sync>;

/// Variables, and what the session holds: temporary tables, locked ones, its account and roles.
/// What reads variables alone takes the [`SessionVars`], which it dereferences to.
pub struct SessionState {
    /// Session values of system variables, user variables, and the state of the statement that
    /// runs.
    pub vars: SessionVars,
    /// Tables of CREATE TEMPORARY TABLE, which shadow others of the same name.
    pub temporary_tables: TemporaryTables,
    /// Woken by KILL, and by a session that hands a metadata lock over.
    pub waiter: Arc<Waiter>,
    /// CURRENT_USER().
    pub account: Option<Arc<Account>>,
    /// Its password has expired: until it has a new one, nothing else runs (1820).
    pub must_change_password: bool,
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
}

impl SessionState {
    /// A session that has variables, and nothing else yet.
    pub fn new(vars: SessionVars) -> SessionState {
        SessionState {
            vars,
            temporary_tables: TemporaryTables::new(),
            waiter: Arc::default(),
            account: None,
            must_change_password: false,
            load_source: None,
            active_roles: Vec::new(),
            reached_roles: Vec::new(),
            locked_tables: LockedTables::default(),
            global_read_lock: None,
        }
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
