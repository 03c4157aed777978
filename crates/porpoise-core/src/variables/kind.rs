//! Kinds of values: what a variable takes from SET and from start-up options, and how it shows what
//! it holds.

use porpoise_types::temporal::locale::Locale;
use porpoise_types::{Charset, Collation, DataType, TimeZone, Value, convert};

use super::optimizer::FlagSet;
use super::sql_mode::SqlMode;
use super::table::Variable;
use crate::error::{Error, Result};

/// What values a variable takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `ON`, `OFF`, 1, 0.
    Bool,
    /// Clamped to the range with warning 1292.
    Int {
        /// The least value; a negative one makes the variable signed.
        min: i64,
        /// The greatest value.
        max: u64,
    },
    /// A floating-point number, clamped to the range without a warning.
    Real {
        /// The least value.
        min: f64,
        /// The greatest value.
        max: f64,
    },
    /// One of a list, by name or by position.
    Choice(&'static [&'static str]),
    /// Any text; NULL too.
    Text,
    /// A list of some of these words, one at least, with commas between them.
    Words(&'static [&'static str]),
    /// A set of some of these words, one at least: names with commas between them, or their bits as
    /// a number.
    WordSet(&'static [&'static str]),
    /// The path of a log; not that of an option file, which would take statements for options.
    LogFile,
    /// A list of SQL modes, or their bits as a number.
    SqlMode,
    /// Flags that are on or off, changed by a list of commands, or their bits as a number.
    Flags(&'static FlagSet),
    /// The name of a character set; NULL allowed for `character_set_results`.
    Charset,
    /// The name of a collation.
    Collation,
    /// `SYSTEM`, an offset such as `+02:00`, or the name of a time zone.
    TimeZone,
    /// The language of days' and months' names.
    Locale,
}

impl Variable {
    /// The type of `@@name`.
    pub fn ty(&self) -> DataType {
        match self.kind {
            Kind::Bool => DataType::BIGINT,
            Kind::Int { min, .. } if min < 0 => DataType::BIGINT,
            Kind::Int { .. } => DataType::BIGINT_UNSIGNED,
            Kind::Real { .. } => DataType::DOUBLE,
            _ => DataType::Varchar {
                length: 1024,
                collation: Collation::UTF8MB4_0900_AI_CI,
            },
        }
    }

    /// Reads a value from a text: a start-up option's, or the default's.
    pub(super) fn parse(&self, given: &str) -> Option<Value> {
        Some(match self.kind {
            Kind::Bool => match given.to_ascii_lowercase().as_str() {
                "1" | "on" | "true" | "yes" | "" => Value::Int(1),
                "0" | "off" | "false" | "no" => Value::Int(0),
                _ => return None,
            },
            Kind::Int { .. } => self.clamp(self.parse_integer(given)?).0,
            // Where NULL is a value of its own, this is how it is spelled.
            Kind::Text if self.default == "NULL" && given.eq_ignore_ascii_case("NULL") => {
                Value::Null
            }
            Kind::Choice(choices) => match given.parse::<usize>() {
                Ok(position) => Value::text(choices.get(position)?),
                Err(_) => self.check(Value::text(given)).ok()?,
            },
            Kind::Real { min, max } => Value::Double(given.parse::<f64>().ok()?.clamp(min, max)),
            _ => self.check(Value::text(given)).ok()?,
        })
    }

    /// The number that a start-up option gives an integer variable; `None` if it is no number, or
    /// the variable takes none.
    pub(super) fn parse_integer(&self, given: &str) -> Option<i128> {
        if !matches!(self.kind, Kind::Int { .. }) {
            return None;
        }
        match given.strip_prefix('-') {
            Some(magnitude) => parse_size(magnitude).map(|value| -i128::from(value)),
            None => parse_size(given).map(i128::from),
        }
    }

    /// The value before start-up options.
    pub fn default_value(&self) -> Value {
        self.parse(self.default).unwrap_or(Value::Null)
    }

    /// An integer within the range, and whether it had to be moved.
    pub(super) fn clamp(&self, value: i128) -> (Value, bool) {
        let Kind::Int { min, max } = self.kind else {
            return (Value::Null, false);
        };
        let within = value.clamp(i128::from(min), i128::from(max));
        let held = if min < 0 {
            Value::Int(within as i64)
        } else {
            Value::UInt(within as u64)
        };
        (held, within != value)
    }

    /// Turns a value into one the variable can hold, or says 1231 or 1232. Integers are not clamped
    /// here.
    ///
    /// # Errors
    /// As said.
    pub fn check(&self, value: Value) -> Result<Value> {
        let refuse = |value: &Value| {
            let shown = if value.is_null() {
                "NULL".to_owned()
            } else {
                convert::to_text(value, &DataType::varchar(0))
            };
            Error::wrong_value_for_variable(self.name, shown)
        };
        match self.kind {
            Kind::Bool => match &value {
                Value::Int(0 | 1) => Ok(value),
                Value::UInt(v @ (0 | 1)) => Ok(Value::Int(*v as i64)),
                Value::Text(text) => match text.to_ascii_lowercase().as_str() {
                    "on" | "true" => Ok(Value::Int(1)),
                    "off" | "false" => Ok(Value::Int(0)),
                    _ => Err(refuse(&value)),
                },
                Value::Decimal(_) | Value::Double(_) => {
                    Err(Error::wrong_type_for_variable(self.name))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Int { .. } => match value {
                Value::Int(_) | Value::UInt(_) => Ok(value),
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::Real { min, max } => match value {
                Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
                    Ok(Value::Double(convert::to_double(&value).0.clamp(min, max)))
                }
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::Choice(choices) => match &value {
                Value::Text(text) => choices
                    .iter()
                    .find(|choice| choice.eq_ignore_ascii_case(text))
                    .map(Value::text)
                    .ok_or_else(|| refuse(&value)),
                Value::Int(_) | Value::UInt(_) => usize::try_from(unsigned(&value))
                    .ok()
                    .and_then(|position| choices.get(position))
                    .map(Value::text)
                    .ok_or_else(|| refuse(&value)),
                _ => Err(refuse(&value)),
            },
            Kind::Text => match value {
                Value::Text(_) | Value::Null => Ok(value),
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::Words(words) => {
                let given = convert::to_text(&value, &DataType::varchar(0));
                let is_known = |word: &str| {
                    words
                        .iter()
                        .any(|known| known.eq_ignore_ascii_case(word.trim()))
                };
                match !value.is_null() && given.split(',').all(is_known) {
                    true => Ok(Value::text(given.to_ascii_lowercase())),
                    false => Err(refuse(&value)),
                }
            }
            Kind::WordSet(words) => {
                let bits = match &value {
                    Value::Int(_) | Value::UInt(_) => Some(unsigned(&value)),
                    Value::Text(given) => given.split(',').try_fold(0, |bits, word| {
                        let mut known = words.iter();
                        let at = known.position(|known| known.eq_ignore_ascii_case(word.trim()))?;
                        Some(bits | 1 << at)
                    }),
                    _ => None,
                };
                let bits = bits.filter(|&bits| bits != 0 && bits >> words.len() == 0);
                let bits = bits.ok_or_else(|| refuse(&value))?;
                let chosen = words
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| bits >> at & 1 == 1);
                let chosen: Vec<&str> = chosen.map(|(_, word)| *word).collect();
                Ok(Value::text(chosen.join(",")))
            }
            Kind::LogFile => match &value {
                Value::Text(path) if !is_option_file(path) => Ok(value),
                Value::Text(_) => Err(refuse(&value)),
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::SqlMode => {
                let given = convert::to_text(&value, &DataType::varchar(0));
                match SqlMode::parse(&given) {
                    Some(mode) if mode.pad_char_to_full_length() => {
                        let feature = "sql_mode=PAD_CHAR_TO_FULL_LENGTH";
                        Err(Error::not_supported_yet(feature))
                    }
                    Some(mode) if !value.is_null() => Ok(Value::text(mode.text())),
                    _ => Err(refuse(&value)),
                }
            }
            Kind::Flags(flags) => match &value {
                Value::Text(commands) => flags
                    .changed(flags.default_bits(), commands)
                    .map(|bits| Value::text(flags.text(bits)))
                    .ok_or_else(|| refuse(&value)),
                Value::Int(_) | Value::UInt(_) if unsigned(&value) >> flags.0.len() == 0 => {
                    Ok(Value::text(flags.text(unsigned(&value))))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Charset => match &value {
                Value::Null if self.name == "character_set_results" => Ok(value),
                Value::Text(name) => {
                    let charset =
                        Charset::by_name(name).ok_or_else(|| Error::unknown_character_set(name))?;
                    match self.name {
                        "character_set_client" => super::client_charset(charset)?,
                        _ => charset,
                    };
                    Ok(Value::text(charset.name()))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Collation => match &value {
                Value::Text(name) => {
                    let collation =
                        Collation::by_name(name).ok_or_else(|| Error::unknown_collation(name))?;
                    Ok(Value::text(collation.name()))
                }
                _ => Err(refuse(&value)),
            },
            Kind::TimeZone => match &value {
                Value::Text(name) => {
                    let zone =
                        TimeZone::parse(name).ok_or_else(|| Error::unknown_time_zone(name))?;
                    Ok(Value::text(zone.name()))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Locale => match &value {
                Value::Text(name) => Locale::canonical(name)
                    .map(Value::text)
                    .ok_or_else(|| Error::unknown_locale(name)),
                _ => Err(refuse(&value)),
            },
        }
    }

    /// Flags that a change gives a value which has no effect; nothing where the values are no
    /// flags.
    pub(super) fn flags_without_effect(&self, before: &Value, after: &Value) -> Vec<&'static str> {
        let Kind::Flags(flags) = self.kind else {
            return Vec::new();
        };
        let bits = |value: &Value| flags.changed(0, text(value)).unwrap_or(0);
        flags.without_effect(bits(before), bits(after)).collect()
    }

    /// A value as SET leaves it: of flags, those that it doesn't name stay as they are.
    pub(super) fn merged(&self, before: &Value, value: Value) -> Result<Value> {
        let (Kind::Flags(flags), Value::Text(commands)) = (self.kind, &value) else {
            return Ok(value);
        };
        let bits = flags.changed(0, text(before)).unwrap_or(0);
        match flags.changed(bits, commands) {
            Some(bits) => Ok(Value::text(flags.text(bits))),
            None => Err(Error::wrong_value_for_variable(self.name, commands)),
        }
    }

    /// As SHOW VARIABLES prints a value.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Null) => String::new(),
            (Kind::Bool, value) => if unsigned(value) != 0 { "ON" } else { "OFF" }.to_owned(),
            (Kind::Real { .. }, Value::Double(v)) => format!("{v:.6}"),
            (_, value) => convert::to_text(value, &self.ty()),
        }
    }
}

/// A number with one of MySQL's suffixes, K, M, G, T, P or E, of either case, or without: powers of
/// 1024. `None` if it is no number, or doesn't fit.
pub fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => {
            let power = "kmgtpe".find(letter.to_ascii_lowercase())? as u32 + 1;
            (&text[..at], 10 * power)
        }
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn is_option_file(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.is_empty() || path.ends_with(".cnf") || path.ends_with(".ini")
}

/// A value as a number, 0 for what is none.
pub(super) fn unsigned(value: &Value) -> u64 {
    convert::to_uint(value).0
}

/// A value as a text, empty for what is none.
pub(super) fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        assert_eq!(parse_size("16K"), Some(16 << 10));
        assert_eq!(parse_size("1g"), Some(1 << 30));
        assert_eq!(parse_size("12"), Some(12));
        assert_eq!(parse_size("1x"), None);
        assert_eq!(parse_size("99999999999E"), None);
        assert_eq!(parse_size(""), None);
    }
}
