//! Start-up values: what a server is started with, by option files and the command line.
//!
//! Every value does what it claims to, or the start is refused, or a warning says that it has no
//! effect: which of these is a variable's [`Use`]. Options of MySQL and MariaDB that are no
//! variables here have their rows in [`super::unsupported`].

use porpoise_types::Value;

use super::kind::Kind;
use super::table::{Use, VARIABLES, Variable, find};
use super::{companion, unsupported};
use crate::error::{Error, Result};

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `--name=value` or `--name value`.
    Value,
    /// `--name`, `--name=value`, `--skip-name`: alone it stands for ON, skipped for OFF.
    Switch,
}

/// Other names that options have at start.
const ALIASES: &[(&str, &str)] = &[
    ("default_time_zone", "time_zone"),
    ("log_slow_query", "slow_query_log"),
    ("log_slow_query_file", "slow_query_log_file"),
    ("log_slow_query_time", "long_query_time"),
    ("thread_pool_size", "worker_threads"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// Values that are not for this system: names that keep their case and compare without it are for
/// file systems that do the same.
const REFUSED: &[(&str, &str)] = &[("lower_case_table_names", "2")];

/// The option of that name, in lower case with underscores: what it is called, and whether it takes
/// a value. `None` if there is no such option.
pub fn option(name: &str) -> Option<(&'static str, OptionKind)> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| *name);
    if let Some(position) = find(name) {
        let variable = &VARIABLES[position];
        return Some((variable.name, variable.option_kind()));
    }
    let option = unsupported::find(name)?;
    Some((option.name, option.kind))
}

impl Variable {
    fn option_kind(&self) -> OptionKind {
        let is_switch = match self.kind {
            Kind::Bool => true,
            Kind::Choice(choices) => choices.contains(&"ON") && choices.contains(&"OFF"),
            // `--log-error` alone names the file itself.
            Kind::Text => self.name == "log_error",
            _ => false,
        };
        match is_switch {
            true => OptionKind::Switch,
            false => OptionKind::Value,
        }
    }
}

/// Whether a start would take a value.
///
/// # Errors
/// 1193, 1231, 1235.
pub fn check_start_up(name: &str, value: &str) -> Result<()> {
    StartUp::new(&[(name.to_owned(), value.to_owned())]).map(drop)
}

/// The values that a server begins with.
pub(super) struct StartUp {
    /// In the table's order.
    pub values: Vec<Value>,
    /// Things to tell the administrator that are no errors.
    pub warnings: Vec<String>,
}

impl StartUp {
    /// The defaults, and what was given over them.
    ///
    /// # Errors
    /// 1193 for an unknown name, 1231 for a value it doesn't take, 1235 for one that somebody may
    /// rely on and that isn't implemented.
    pub fn new(given: &[(String, String)]) -> Result<StartUp> {
        let mut start_up = StartUp {
            values: VARIABLES.iter().map(Variable::default_value).collect(),
            warnings: Vec::new(),
        };
        let mut without_effect = Vec::new();
        // A collation counts more than the default one of the character set beside it.
        let is_charset = |name: &str| name.to_ascii_lowercase().starts_with("character");
        let (charsets, others) = given
            .iter()
            .partition::<Vec<_>, _>(|(name, _)| is_charset(name));
        for (name, value) in charsets.into_iter().chain(others) {
            if !start_up.take(name, value)? {
                without_effect.push(format!("{name}={value}"));
            }
        }
        if !without_effect.is_empty() {
            let options = without_effect.join(", ");
            let warning = format!("These options have no effect in Porpoise: {options}");
            start_up.warnings.push(warning);
        }
        Ok(start_up)
    }

    /// Takes a value, and says whether it has an effect.
    fn take(&mut self, given_name: &str, given: &str) -> Result<bool> {
        let name = given_name.replace('-', "_").to_ascii_lowercase();
        let (name, _) = option(&name).ok_or_else(|| Error::unknown_system_variable(given_name))?;
        let refusal = || Error::not_supported_yet(format!("{name}={given}"));
        let Some(position) = find(name) else {
            let refused = unsupported::find(name).is_some_and(|option| (option.refuses)(given));
            return match refused {
                true => Err(refusal()),
                false => Ok(false),
            };
        };
        let variable = &VARIABLES[position];
        let held = &mut self.values[position];
        let parsed = variable.parse(given);
        let is_held = parsed.as_ref() == Some(held);
        if REFUSED.contains(&(name, given)) {
            return Err(refusal());
        }
        match variable.usage {
            Use::Settable | Use::SetGlobal | Use::AtStart => {
                let wrong = || Error::wrong_value_for_variable(name, given);
                *held = parsed.ok_or_else(wrong)?;
                if variable
                    .parse_integer(given)
                    .is_some_and(|v| variable.clamp(v).1)
                {
                    let adjusted = variable.show(held);
                    let warning = format!("option '{name}': value {given} adjusted to {adjusted}");
                    self.warnings.push(warning);
                }
                if let Some((position, value)) = companion(name, &self.values[position]) {
                    self.values[position] = value;
                }
                let default = variable.default_value();
                for flag in variable.flags_without_effect(&default, &self.values[position]) {
                    let warning = format!("option '{name}': flag '{flag}' has no effect");
                    self.warnings.push(warning);
                }
                Ok(true)
            }
            Use::ReadOnly => Ok(is_held),
            Use::Inert | Use::InertAtStart => {
                if let Some(value) = parsed {
                    *held = value;
                }
                Ok(is_held)
            }
            Use::DefaultOnly | Use::DefaultAtStart if is_held => Ok(true),
            Use::DefaultOnly | Use::DefaultAtStart => Err(refusal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(given: &[(&str, &str)]) -> Result<StartUp> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        StartUp::new(&given.iter().map(owned).collect::<Vec<_>>())
    }

    fn value(start_up: &StartUp, name: &str) -> Value {
        start_up.values[find(name).unwrap()].clone()
    }

    #[test]
    fn a_value_that_somebody_may_rely_on_is_honoured_or_refuses_the_start() {
        for (name, given) in [
            ("lower_case_table_names", "2"),
            ("log_bin", "/var/log/mysql/bin"),
            ("log-bin", "ON"),
            ("skip_show_database", "ON"),
            ("skip_grant_tables", "ON"),
            ("innodb_encrypt_tables", "FORCE"),
            ("plugin_load_add", "connection_control.so"),
        ] {
            let error = start(&[(name, given)]).err().expect(name);
            assert_eq!(error.number(), 1235, "{name}");
            assert!(error.message().contains(given), "{}", error.message());
        }
        // What says no more than what is so.
        let start_up = start(&[
            ("lower_case_table_names", "0"),
            ("log_bin", "OFF"),
            ("secure_file_priv", "null"),
        ]);
        let start_up = start_up.unwrap();
        assert_eq!(start_up.warnings, Vec::<String>::new());
        assert_eq!(value(&start_up, "secure_file_priv"), Value::Null);
    }

    #[test]
    fn harmless_options_without_effect_are_told_of_in_one_line() {
        let start_up = start(&[
            ("innodb_flush_method", "O_DIRECT"),
            ("max-binlog-size", "100M"),
            ("key_buffer_size", "16M"),
            ("skip_name_resolve", "ON"),
            ("thread_handling", "no-such-thing"),
            ("innodb_autoinc_lock_mode", "seventeen"),
        ])
        .unwrap();
        assert_eq!(
            start_up.warnings,
            [
                "These options have no effect in Porpoise: innodb_flush_method=O_DIRECT, \
                 max-binlog-size=100M, key_buffer_size=16M, \
                 thread_handling=no-such-thing, innodb_autoinc_lock_mode=seventeen"
            ]
        );
        // Facts stay what they are.
        assert_eq!(
            value(&start_up, "innodb_flush_method"),
            Value::text("fsync")
        );
        assert_eq!(value(&start_up, "key_buffer_size"), Value::UInt(16 << 20));
    }

    #[test]
    fn a_value_out_of_range_is_adjusted_with_a_warning() {
        let start_up = start(&[("max_connections", "0"), ("default_time_zone", "+02:00")]).unwrap();
        assert_eq!(
            start_up.warnings,
            ["option 'max_connections': value 0 adjusted to 1"]
        );
        assert_eq!(value(&start_up, "time_zone"), Value::text("+02:00"));
        let start_up = start(&[("character_set_server", "latin1")]).unwrap();
        let collation = value(&start_up, "collation_server");
        assert_eq!(collation, Value::text("latin1_swedish_ci"));
        let given = [
            ("collation_server", "utf8mb4_general_ci"),
            ("character_set_server", "utf8mb4"),
        ];
        let collation = value(&start(&given).unwrap(), "collation_server");
        assert_eq!(collation, Value::text("utf8mb4_general_ci"));
        assert_eq!(start(&[("no_such", "1")]).err().unwrap().number(), 1193);
        assert_eq!(start(&[("port", "x")]).err().unwrap().number(), 1231);
    }

    #[test]
    fn flags_without_effect_are_told_of() {
        let given = (
            "optimizer-switch".into(),
            "mrr=off,subquery_to_derived=on".into(),
        );
        let start_up = StartUp::new(&[given]).expect("two flags");
        assert_eq!(
            start_up.warnings,
            ["option 'optimizer_switch': flag 'subquery_to_derived' has no effect"]
        );
    }
}
