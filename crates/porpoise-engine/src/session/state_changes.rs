//! Session state that a client may track: schema, system variables, the transaction (MySQL 8.4
//! manual, 7.1.18, "Server Tracking of Client Session State").

use compact_str::CompactString;
use porpoise_types::{DataType, Value, convert};

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
    /// What changed since the last call.
    pub fn take_state_changes(&mut self) -> SessionStateChanges {
        std::mem::take(&mut self.state_changes)
    }

    /// What changed since the last call, as far as `session_track_schema` and
    /// `session_track_state_change` have the client told of it.
    pub fn take_tracked_changes(&mut self) -> SessionStateChanges {
        let mut changes = self.take_state_changes();
        let is_off = |name| self.state.get(name) == Value::Int(0);
        if changes.schema.is_some() && is_off("session_track_schema") {
            changes.schema = None;
        }
        if changes.state_changed && is_off("session_track_state_change") {
            changes.state_changed = false;
        }
        changes
    }

    /// Notes that a system variable was set.
    pub(crate) fn track_variable(&mut self, name: &str, value: &str) {
        self.state_changes.state_changed = true;
        let tracked = self.state.get("session_track_system_variables");
        let tracked = convert::to_text(&tracked, &DataType::varchar(0));
        let mut tracked = tracked.split(',').map(str::trim);
        if tracked.any(|tracked| tracked == "*" || tracked.eq_ignore_ascii_case(name)) {
            let change = (name.into(), value.into());
            self.state_changes.variables.push(change);
        }
    }
}
