//! Accounts and privileges.

use compact_str::CompactString;

use crate::error::Result;
use crate::planner::plan::Plan;
use crate::session::SessionState;

/// An account: a user name and a host pattern, how it proves itself, and what it may do.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: CompactString,
    pub host: CompactString,
    pub plugin: CompactString,
    pub authentication_string: CompactString,
}

impl Account {
    /// Whether it gets in when `max_connections` are in use (CONNECTION_ADMIN).
    pub fn may_use_reserved_connection(&self) -> bool {
        self.user == "root"
    }
}

/// Whether the session may run a plan (1142, 1143).
pub fn check_plan(_state: &SessionState, _plan: &Plan) -> Result<()> {
    Ok(())
}

/// Whether the session may know of a schema (1044).
pub fn check_schema_visible(_state: &SessionState, _schema: &str) -> Result<()> {
    Ok(())
}

/// Whether the session may kill others' (CONNECTION_ADMIN).
pub fn may_kill(_state: &SessionState) -> bool {
    true
}

/// Whether the session may set global variables (1227).
pub fn check_set_global(_state: &SessionState) -> Result<()> {
    Ok(())
}
