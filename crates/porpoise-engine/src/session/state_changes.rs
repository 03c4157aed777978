//! Session state that a client may track: schema, system variables, the transaction (MySQL 8.4 manual,
//! 7.1.18, "Server Tracking of Client Session State").

use compact_str::CompactString;

use crate::session::Session;

/// Changes of session state since the client was last told; `None` and empty where nothing changed.
#[derive(Clone, Debug, Default)]
pub struct SessionStateChanges {
    /// The new default database.
    pub schema: Option<CompactString>,
    /// System variables that were set, of those named in session_track_system_variables, with their
    /// new values.
    pub variables: Vec<(CompactString, CompactString)>,
    /// The state of the transaction, in the eight characters of session_track_transaction_info.
    pub transaction_state: Option<CompactString>,
    /// The statements that would begin the transaction again, with its characteristics.
    pub transaction_characteristics: Option<CompactString>,
    /// Whether any state changed, for session_track_state_change.
    pub state_changed: bool,
}

impl Session {
    /// What changed since the last call, for the client to be told.
    pub fn take_state_changes(&mut self) -> SessionStateChanges {
        std::mem::take(&mut self.state_changes)
    }

    /// Notes that a system variable was set.
    pub(crate) fn track_variable(&mut self, name: &str, value: &str) {
        self.state_changes
            .variables
            .push((name.into(), value.into()));
        self.state_changes.state_changed = true;
    }
}
