//! What SET names, and whether a session may set it.

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::variables::{self, Position, Reads, Scope};
use porpoise_sql::ast::{self, VariableScope};
use porpoise_types::{DataType, Value, convert};

use crate::check;
use crate::persisted::{Metadata, Persisted};
use crate::session_state::SessionState;
use crate::shared::Shared;

const EVENTS: &str = "event_scheduler";

/// A system variable that SET gives a value.
#[derive(Clone, Copy, Debug)]
pub struct Assigned {
    /// Which one.
    pub position: Position,
    /// The session's value, or the global one.
    pub scope: Reads,
    /// PERSIST, PERSIST_ONLY.
    pub persists: Persists,
}

/// Whether a value is kept for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persists {
    /// It isn't.
    No,
    /// It counts now and at the next start.
    Too,
    /// It counts at the next start alone.
    Only,
}

impl Assigned {
    /// Finds the variable that SET names.
    ///
    /// # Errors
    /// 1193 for one that isn't there.
    pub fn find(state: &SessionState, variable: &ast::SystemVariable) -> Result<Assigned> {
        let (scope, persists) = match variable.scope {
            None | Some(VariableScope::Session) => (Reads::Session, Persists::No),
            Some(VariableScope::Global) => (Reads::Global, Persists::No),
            Some(VariableScope::Persist) => (Reads::Global, Persists::Too),
            Some(VariableScope::PersistOnly) => (Reads::Global, Persists::Only),
        };
        let written = match &variable.component {
            Some(component) => format!("{}.{}", component.as_str(), variable.name.as_str()),
            None => variable.name.as_str().to_owned(),
        };
        let name = match written.to_ascii_lowercase().as_str() {
            // The old name, which many programs still use.
            "tx_isolation" => "transaction_isolation".to_owned(),
            other => other.to_owned(),
        };
        let position = variables::find(&name)
            .filter(|position| variables::VARIABLES[*position].is_there(state))
            .ok_or_else(|| Error::unknown_system_variable(&written))?;
        Ok(Assigned {
            position,
            scope,
            persists,
        })
    }

    /// The variable's name.
    pub fn name(self) -> &'static str {
        variables::VARIABLES[self.position].name
    }

    /// Whether the session may set it (1227, 3630).
    ///
    /// # Errors
    /// If it may not.
    pub fn check(self, state: &SessionState) -> Result<()> {
        match self.scope {
            Reads::Global if self.persists == Persists::Only => {
                check::check_persist(state, &variables::VARIABLES[self.position])
            }
            Reads::Global => check::check_set_global(state),
            Reads::Session => check::check_set_session(state, self.name()),
        }
    }

    /// Gives it the value, or its default.
    ///
    /// # Errors
    /// 1231, 1232, 1238; 1290 for events that were disabled at start.
    pub fn set(
        self,
        value: Option<Value>,
        state: &mut SessionState,
        shared: &Shared,
    ) -> Result<()> {
        if self.persists == Persists::Only {
            return self.persist_only(value, state, shared);
        }
        let is_of_events = self.name() == EVENTS && self.scope == Reads::Global;
        if is_of_events {
            self.check_events(value.as_ref(), shared)?;
        }
        let globals = &shared.variables;
        variables::set(self.position, self.scope, value, state, globals)?;
        if is_of_events {
            shared.events.ring();
        }
        match self.persists {
            Persists::No => Ok(()),
            _ => self.persist(&globals.get(self.name()), state, shared),
        }
    }

    /// PERSIST_ONLY: what the next start would refuse is refused now.
    fn persist_only(
        self,
        value: Option<Value>,
        state: &SessionState,
        shared: &Shared,
    ) -> Result<()> {
        let variable = &variables::VARIABLES[self.position];
        if variable.scope == Scope::Session {
            return Err(Error::local_variable(variable.name));
        }
        if !variable.is_persistent() {
            let kind = "non persistent read only";
            return Err(Error::incorrect_global_local_variable(variable.name, kind));
        }
        let value = match value {
            Some(value) => variable.check(value)?,
            None => variable.default_value(),
        };
        variables::check_start_up(variable.name, &variable.show(&value))?;
        self.persist(&value, state, shared)
    }

    fn persist(self, value: &Value, state: &SessionState, shared: &Shared) -> Result<()> {
        let variable = &variables::VARIABLES[self.position];
        let persisted = Persisted {
            value: variable.show(value).to_string(),
            metadata: Metadata {
                host: state.host.to_string(),
                user: state.user.to_string(),
                at_us: state.statement.started_us,
            },
        };
        shared.persisted.put(variable.name, persisted)
    }

    /// Events that were disabled at start stay so, and only then can they be disabled.
    fn check_events(self, value: Option<&Value>, shared: &Shared) -> Result<()> {
        if shared.variables.get_text(EVENTS) == "DISABLED" {
            return Err(Error::read_only_option(
                "--event-scheduler=DISABLED or --skip-grant-tables",
            ));
        }
        let variable = &variables::VARIABLES[self.position];
        let is_disabled = |value: &&Value| {
            let checked = variable.check((*value).clone());
            checked.is_ok_and(|value| value.as_bytes() == Some(b"DISABLED"))
        };
        match value.filter(is_disabled) {
            None => Ok(()),
            Some(value) => {
                let shown = convert::to_text(value, &DataType::varchar(0));
                Err(Error::wrong_value_for_variable(EVENTS, shown))
            }
        }
    }
}

/// The word, where an expression is one: an unqualified column's name. `SET x = ON`,
/// `SET x = utf8mb4`.
pub fn bare_word(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Column(column) if column.table.is_none() => Some(&column.name),
        _ => None,
    }
}

/// RESET PERSIST of a variable, or of all.
///
/// # Errors
/// 1227, 3630 without the privilege; 3615 for one that isn't persisted, unless `if_exists` makes it
/// a warning.
pub fn reset_persisted(
    state: &mut SessionState,
    shared: &Shared,
    name: Option<&str>,
    if_exists: bool,
) -> Result<()> {
    let Some(name) = name else {
        for (name, _) in shared.persisted.all() {
            check_reset(state, &name)?;
        }
        check::check_set_global(state)?;
        return shared.persisted.clear();
    };
    check_reset(state, name)?;
    if shared.persisted.remove(&name.to_ascii_lowercase())? {
        return Ok(());
    }
    let error = Error::persisted_variable_does_not_exist(name);
    if !if_exists {
        return Err(error);
    }
    state.warn(Level::Warning, error.into_condition());
    Ok(())
}

fn check_reset(state: &SessionState, name: &str) -> Result<()> {
    match variables::find(&name.to_ascii_lowercase()) {
        Some(position) => check::check_persist(state, &variables::VARIABLES[position]),
        None => check::check_set_global(state),
    }
}
