//! A session's state between its statements: its variables, and what it holds.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::accounts::Account;
use crate::catalog::TemporaryTables;
use crate::ddl::lock::LockedTables;
use crate::session::metadata::{Bell, Grant};
use crate::variables::SessionVars;

/// Variables, and what the session holds: temporary tables, locked ones, its account and roles. What reads variables alone
/// takes the [`SessionVars`], which it dereferences to.
pub struct SessionState {
    pub vars: SessionVars,
    pub temporary_tables: TemporaryTables,
    /// Rung by KILL, and by who hands over a metadata lock.
    pub bell: Arc<Bell>,
    /// CURRENT_USER().
    pub account: Option<Arc<Account>>,
    /// The file of the LOAD DATA that runs.
    pub load_source: Option<crate::executor::load::Source>,
    /// Roles that SET ROLE or the login made active, and all that the account reaches.
    pub active_roles: Vec<Arc<Account>>,
    pub reached_roles: Vec<Arc<Account>>,
    pub locked_tables: LockedTables,
    /// FLUSH TABLES WITH READ LOCK.
    pub global_read_lock: Option<[Grant; 2]>,
}

impl SessionState {
    /// A session that has variables, and nothing else yet.
    pub fn new(vars: SessionVars) -> SessionState {
        SessionState {
            vars,
            temporary_tables: TemporaryTables::new(),
            bell: Arc::default(),
            account: None,
            load_source: None,
            active_roles: Vec::new(),
            reached_roles: Vec::new(),
            locked_tables: LockedTables::default(),
            global_read_lock: None,
        }
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
