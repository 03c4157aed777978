//! Changes of the session that the server told of (`mysql_session_track_get_first()` and
//! `…_next()`).

use porpoise_client::Outcome;
use porpoise_protocol::reply::StateChange;
use std::ffi::CString;

/// `enum enum_session_state_type`.
const SYSTEM_VARIABLE: u32 = 0;
const SCHEMA: u32 = 1;
const STATE: u32 = 2;
const GTIDS: u32 = 3;
const CHARACTERISTICS: u32 = 4;
const TRANSACTION: u32 = 5;

/// One change: its type, its text and the text's length. A variable is two, its name and its value.
pub type Change = (u32, CString, usize);

pub fn changes(outcome: &Outcome) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |kind: u32, text: &[u8]| {
        if let Ok(text) = CString::new(text) {
            let length = text.as_bytes().len();
            changes.push((kind, text, length));
        }
    };
    for change in outcome.state_changes() {
        match change {
            StateChange::SystemVariable { name, value } => {
                add(SYSTEM_VARIABLE, name);
                add(SYSTEM_VARIABLE, value);
            }
            StateChange::Schema(name) => add(SCHEMA, name),
            StateChange::State(changed) => add(STATE, if changed { b"1" } else { b"0" }),
            StateChange::Gtids(gtids) => add(GTIDS, gtids),
            StateChange::TransactionCharacteristics(sql) => add(CHARACTERISTICS, sql),
            StateChange::TransactionState(letters) => add(TRANSACTION, letters),
            _ => {}
        }
    }
    changes
}

/// The database that a change made the current one.
pub fn schema(changes: &[Change]) -> Option<String> {
    changes
        .iter()
        .rev()
        .find(|(kind, ..)| *kind == SCHEMA)
        .map(|(_, name, _)| name.to_string_lossy().into_owned())
}
