//! The hint SET_VAR: a statement's own values of system variables, while it is planned and runs.

use porpoise_core::error::{Error, Level};
use porpoise_core::variables::HeldVariables;
use porpoise_session::check;
use porpoise_sql::ast::{HintArguments, HintValue, StatementHints};
use porpoise_types::Value;

use crate::session::Session;

impl Session {
    /// Sets what a statement's hints say. What can't be set is a warning. The caller restores what
    /// is returned.
    pub(super) fn set_hinted_variables(&mut self, hints: &StatementHints) -> HeldVariables {
        let mut held = HeldVariables::of(&self.state);
        for comment in &hints.comments {
            for hint in &comment.hints {
                let HintArguments::Assignment { variable, value } = &hint.arguments else {
                    continue;
                };
                let name = &*variable.to_ascii_lowercase();
                // A variable is set once, and by the statement itself, not by a subquery.
                let is_ignored = comment.block != 1 || held.has(name);
                let set = match is_ignored {
                    true => {
                        // With a space of its own, as MySQL 8.4 has it.
                        let hint = format_args!("SET_VAR({name}={value}) ");
                        Err(Error::hint_conflict(hint))
                    }
                    false => check::check_set_session(&self.state, name).and_then(|()| {
                        let globals = &self.shared.variables;
                        held.set(name, value_of(value), &mut self.state, globals)
                    }),
                };
                if let Err(error) = set {
                    self.state.warn(Level::Warning, error.into_condition());
                }
            }
        }
        held
    }
}

/// A hint's value as SET would have it.
fn value_of(value: &HintValue) -> Value {
    match value {
        HintValue::Number(number) => {
            i64::try_from(*number).map_or(Value::UInt(*number), Value::Int)
        }
        HintValue::Real(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::Double(number),
            _ => Value::text(text),
        },
        HintValue::Text(text) => Value::text(text),
    }
}
