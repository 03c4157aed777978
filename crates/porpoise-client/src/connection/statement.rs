//! How a statement ended, and statements that are prepared.

use crate::results::Columns;
use porpoise_protocol::flags::Status;
use porpoise_protocol::reply::{OkPacket, StateChange};
use std::sync::Arc;

/// How a statement ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows changed; with `found_rows`, rows found.
    pub affected_rows: u64,
    /// The first value that AUTO_INCREMENT gave.
    pub last_insert_id: u64,
    /// The session's state.
    pub status: Status,
    /// The number of warnings.
    pub warnings: u16,
    /// The server's words, as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub message: String,
    /// The session's changes, encoded.
    state: Vec<u8>,
}

impl Outcome {
    pub(super) fn set(&mut self, packet: &OkPacket<'_>) {
        self.affected_rows = packet.affected_rows;
        self.last_insert_id = packet.last_insert_id;
        self.status = packet.status;
        self.warnings = packet.warnings;
        self.message.clear();
        if !packet.message.is_empty() {
            self.message
                .push_str(&String::from_utf8_lossy(packet.message));
        }
        self.state.clear();
        self.state.extend_from_slice(packet.state);
    }

    /// What changed in the session, as far as the server tracks it.
    pub fn state_changes(&self) -> impl Iterator<Item = StateChange<'_>> {
        OkPacket {
            state: &self.state,
            ..OkPacket::default()
        }
        .state_changes()
    }
}

/// A prepared statement; of use with the connection that prepared it, until that is reset.
#[derive(Clone, Debug)]
pub struct Statement {
    pub(super) id: u32,
    pub(super) parameters: usize,
    pub(super) parameter_columns: Arc<Columns>,
    pub(super) columns: Arc<Columns>,
    pub(super) warnings: u16,
}

impl Statement {
    /// The server's number for it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How many parameters it has.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// What the server knows of its parameters.
    pub fn parameter_columns(&self) -> &Columns {
        &self.parameter_columns
    }

    /// The columns of its result, as known when it was prepared.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Warnings of preparing it.
    pub fn warnings(&self) -> u16 {
        self.warnings
    }
}
