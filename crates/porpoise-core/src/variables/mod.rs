//! System variables: what `@@x` reads and what SET does.
//!
//! 1. [`table`] has a row a variable. Adding a variable is adding a row.
//! 2. [`kind`] knows what values a row takes and how they are shown; [`sql_mode`] those of the one
//!    that is a set of flags.
//! 3. [`start_up`] takes the values that a server is started with, and tells of those that have no
//!    effect; [`unsupported`] has the options of other servers that are no variables here.
//! 4. [`globals`] holds the global values, and hands new sessions theirs.
//! 5. [`session`] holds what a session's values are read as, [`statement`] what lives as long as a
//!    statement of it, [`traces`] what the optimizer told of its last ones.
//! 6. [`random`]: the numbers of seeded RAND().
//! 7. [`hintable`]: what a statement sets for itself.
//! 8. Here: which of a variable's values is meant, reading it, and changing it.
//!
//! Values lie in two arrays in the table's order: the global ones, and each session's, which shares
//! the global array it started with until its first SET. What the engine reads often is kept in a
//! field of its own by the row's `apply`.
//!
//! Source: MySQL 8.4 Reference Manual, Server System Variables.

mod globals;
mod hintable;
mod isolation;
mod kind;
mod optimizer;
mod random;
mod session;
mod sql_mode;
mod start_up;
mod statement;
mod table;
mod traces;
pub mod unsupported;

use std::sync::Arc;

use porpoise_types::{Charset, Collation, Value, convert};

pub use globals::{GlobalVariables, WriteProtection};
pub use hintable::HeldVariables;
pub use isolation::Isolation;
pub use kind::{Kind, parse_size};
use kind::{text, unsigned};
pub use optimizer::{Flag, FlagSet, PlannerSettings, Switches};
pub use random::RandomSequence;
pub use session::{
    Diagnostics, RegexpLimits, SessionVars, random_step, user_variable_type, user_variable_value,
};
pub use sql_mode::SqlMode;
pub use start_up::{OptionKind, check_start_up, option};
pub use statement::StatementContext;
pub use table::{Position, Scope, Use, VARIABLES, Variable, find};
pub use traces::{OptimizerTraces, StatementTrace};

use crate::error::{Error, Level, Result};
use crate::password_validation::VARIABLE_PREFIX;

/// What the server says it is.
pub const VERSION: &str = "8.4.7-Porpoise";

/// Which value of a variable `@@x`, `@@session.x` or `@@global.x` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The session's own.
    Session,
    /// The one that new sessions begin with.
    Global,
}

impl Variable {
    /// Whether a session may know of it: a component's variables are there while it is installed.
    pub fn is_there(&self, state: &SessionVars) -> bool {
        !self.name.starts_with(VARIABLE_PREFIX) || state.password_validation.is_installed()
    }
}

/// Finds what `@@[scope.]name` stands for: 1193 for an unknown name, 1238 for the wrong scope.
pub fn resolve(name: &str, scope: Option<Reads>) -> Result<(Position, Reads)> {
    let position = find(name).ok_or_else(|| Error::unknown_system_variable(name))?;
    let variable = &VARIABLES[position];
    match (variable.scope, scope) {
        (Scope::Global, Some(Reads::Session)) => Err(Error::incorrect_global_local_variable(
            variable.name,
            "GLOBAL",
        )),
        (Scope::Session, Some(Reads::Global)) => Err(Error::incorrect_global_local_variable(
            variable.name,
            "SESSION",
        )),
        (Scope::Global, _) => Ok((position, Reads::Global)),
        (_, scope) => Ok((position, scope.unwrap_or(Reads::Session))),
    }
}

/// A variable's value now.
pub fn read(
    position: Position,
    reads: Reads,
    state: &SessionVars,
    globals: &GlobalVariables,
) -> Value {
    if reads == Reads::Global {
        return globals.at(position);
    }
    match VARIABLES[position].name {
        "last_insert_id" | "identity" => Value::UInt(state.last_insert_id),
        "warning_count" => Value::UInt(state.diagnostics_before.total as u64),
        "error_count" => Value::UInt(
            state
                .diagnostics_before
                .warnings
                .iter()
                .filter(|(level, _)| *level == Level::Error)
                .count() as u64,
        ),
        "proxy_user" => {
            let user = state.proxy_user.as_ref();
            user.map_or(Value::Null, Value::text)
        }
        // No plugin here knows users of another system.
        "external_user" => Value::Null,
        "pseudo_thread_id" => Value::UInt(state.connection_id),
        "timestamp" => Value::Double(state.statement.started_us as f64 / 1e6),
        "autocommit" => Value::Int(state.autocommit.into()),
        // They can be set, not read (MySQL 8.4 manual, 7.1.8).
        "rand_seed1" | "rand_seed2" => Value::UInt(0),
        _ => state.variables[position].clone(),
    }
}

/// SET: checks, clamps, warns, stores, applies. `None` is DEFAULT.
///
/// # Errors
/// 1228, 1229 for the wrong scope, 1238 for a read-only variable, 1231, 1232 for a value it doesn't
/// take, 1235 for one that isn't implemented.
pub fn set(
    position: Position,
    scope: Reads,
    value: Option<Value>,
    state: &mut SessionVars,
    globals: &GlobalVariables,
) -> Result<()> {
    let variable = &VARIABLES[position];
    check_settable(variable, scope)?;
    let before = if scope == Reads::Global {
        globals.at(position)
    } else {
        state.variables[position].clone()
    };
    let value = match value {
        Some(value) => variable.check(variable.merged(&before, value)?)?,
        None if scope == Reads::Session && variable.scope == Scope::Both => globals.at(position),
        None => variable.default_value(),
    };
    let value = match (variable.kind, &value) {
        (Kind::Int { .. }, Value::Int(_) | Value::UInt(_)) => {
            let wanted = match value {
                Value::Int(v) => i128::from(v),
                Value::UInt(v) => i128::from(v),
                _ => 0,
            };
            let most = i128::from(globals.most(variable.name));
            let (within, moved) = variable.clamp(wanted.min(most));
            if moved || wanted > most {
                state.warn(
                    Level::Warning,
                    Error::truncated_wrong_value_truncated(variable.name, wanted).into_condition(),
                );
            }
            within
        }
        _ => value,
    };
    if variable.usage == Use::DefaultOnly && value != variable.default_value() {
        let shown = variable.show(&value);
        let feature = format!("{}={shown}", variable.name);
        return Err(Error::not_supported_yet(feature));
    }
    for flag in variable.flags_without_effect(&before, &value) {
        let warning = Error::flag_has_no_effect(flag, variable.name);
        state.warn(Level::Warning, warning.into_condition());
    }
    if variable.usage == Use::Inert && before != value {
        state.warn(
            Level::Warning,
            Error::variable_has_no_effect(variable.name).into_condition(),
        );
    }
    if scope == Reads::Global {
        globals.set(position, value);
        return Ok(());
    }
    match variable.name {
        "last_insert_id" | "identity" => state.last_insert_id = unsigned(&value),
        "insert_id" => state.next_insert_id = unsigned(&value),
        "timestamp" => {
            let seconds = convert::to_double(&value).0;
            state.fixed_timestamp_us = (seconds > 0.0).then_some((seconds * 1e6) as i64);
        }
        "rand_seed1" => {
            let sequence = state.seeded_random.get_or_insert_default();
            sequence.set_first(unsigned(&value));
        }
        "rand_seed2" => {
            let sequence = state.seeded_random.get_or_insert_default();
            sequence.set_second(unsigned(&value));
        }
        _ => {}
    }
    if let Some(apply) = variable.apply {
        apply(state, &value);
    }
    Arc::make_mut(&mut state.variables)[position] = value;
    if let Some((position, value)) = companion(variable.name, &state.variables[position]) {
        store(position, value, state);
    }
    Ok(())
}

/// Whether SET may give a variable a value of that scope.
fn check_settable(variable: &Variable, scope: Reads) -> Result<()> {
    match (variable.usage, variable.scope, scope) {
        (Use::ReadOnly | Use::AtStart | Use::InertAtStart | Use::DefaultAtStart, ..) => Err(
            Error::incorrect_global_local_variable(variable.name, "read only"),
        ),
        (Use::SetGlobal, _, Reads::Session) => Err(Error::variable_is_read_only(
            "SESSION",
            variable.name,
            "GLOBAL",
        )),
        (_, Scope::Global, Reads::Session) => Err(Error::global_variable(variable.name)),
        (_, Scope::Session, Reads::Global) => Err(Error::local_variable(variable.name)),
        _ => Ok(()),
    }
}

/// Gives a session a value, and has it applied.
fn store(position: Position, value: Value, state: &mut SessionVars) {
    // Sessions that ask for the defaults share the global values.
    if state.variables[position] == value {
        return;
    }
    if let Some(apply) = VARIABLES[position].apply {
        apply(state, &value);
    }
    Arc::make_mut(&mut state.variables)[position] = value;
}

/// Gives a session other values for a while, unchecked. What they were comes back, to be given back
/// in the same way.
pub fn exchange(values: Vec<(Position, Value)>, state: &mut SessionVars) -> Vec<(Position, Value)> {
    let exchanged = values.into_iter().map(|(position, value)| {
        let before = state.variables[position].clone();
        store(position, value, state);
        (position, before)
    });
    let mut before: Vec<_> = exchanged.collect();
    before.reverse();
    before
}

/// What follows from a value: a character set and its collation go together, and a limit of SELECTs
/// is one that counts (MySQL 8.4 manual, 7.1.8, `max_join_size`).
fn companion(name: &str, value: &Value) -> Option<(Position, Value)> {
    let collation = || Some(Charset::by_name(text(value))?.default_collation().name());
    let charset = || Some(Collation::by_name(text(value))?.charset().name());
    let (follower, value) = match name {
        "max_join_size" => {
            let is_unlimited = unsigned(value) == u64::MAX;
            return Some((find("sql_big_selects")?, Value::Int(is_unlimited.into())));
        }
        "character_set_connection" => ("collation_connection", collation()?),
        "character_set_server" => ("collation_server", collation()?),
        "collation_connection" => ("character_set_connection", charset()?),
        "collation_server" => ("character_set_server", charset()?),
        _ => return None,
    };
    Some((find(follower)?, Value::text(value)))
}

/// The session has no database any more: the server's collation is the database's.
pub fn forget_database_collation(state: &mut SessionVars) {
    for (name, server) in [
        ("character_set_database", "character_set_server"),
        ("collation_database", "collation_server"),
    ] {
        if let Some(position) = find(name) {
            let value = state.get(server);
            store(position, value, state);
        }
    }
}

/// USE: the session's database has this collation.
pub fn set_database_collation(collation: Collation, state: &mut SessionVars) {
    for (name, value) in [
        ("character_set_database", collation.charset().name()),
        ("collation_database", collation.name()),
    ] {
        if let Some(position) = find(name) {
            store(position, Value::text(value), state);
        }
    }
}

/// The character set, if statements can be written in it (MySQL 8.4 manual, 12.4).
pub fn client_charset(charset: Charset) -> Result<Charset> {
    match charset.extends_ascii() {
        true => Ok(charset),
        false => Err(Error::wrong_value_for_variable(
            "character_set_client",
            charset.name(),
        )),
    }
}

/// SET NAMES: the three character sets of a connection at once.
pub fn set_names(charset: Charset, collation: Collation, state: &mut SessionVars) {
    for (name, value) in [
        ("character_set_client", charset.name()),
        ("character_set_results", charset.name()),
        ("character_set_connection", charset.name()),
        ("collation_connection", collation.name()),
    ] {
        if let Some(position) = find(name) {
            store(position, Value::text(value), state);
        }
    }
}

/// CLIENT_INTERACTIVE: a person at the other end is given `interactive_timeout` to think.
pub fn make_interactive(state: &mut SessionVars) {
    if let Some(position) = find("wait_timeout")
        && state.wait_timeout_s != state.interactive_timeout_s
    {
        state.wait_timeout_s = state.interactive_timeout_s;
        Arc::make_mut(&mut state.variables)[position] = Value::UInt(state.interactive_timeout_s);
    }
}
