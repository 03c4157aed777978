//! The functions, a row each: what a row says is told in [`porpoise_expr::function`].
//!
//! Adding a function is one row in the table of its family (`string.rs`, `numeric.rs`, `temporal.rs`,
//! `control.rs`, `crypt.rs`, `json.rs`, `information.rs`) and one Rust function.

#![warn(missing_docs)]

mod aggregate;
mod control;
mod crypt;
mod information;
mod json;
pub mod json_scalar;
mod numeric;
mod regexp;
mod string;
mod temporal;

use std::sync::LazyLock;

pub use aggregate::find as find_aggregate;
use hashbrown::HashMap;

use porpoise_expr::function::Function;

/// All families' tables.
static FAMILIES: &[&[Function]] = &[
    control::TABLE,
    crypt::TABLE,
    information::TABLE,
    json::TABLE,
    numeric::TABLE,
    string::TABLE,
    temporal::TABLE,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|function| (function.name, function))
        .collect()
});

/// Looks a function up by name, in any case.
pub fn find(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name.to_ascii_uppercase().as_str()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_row() {
        let rows: usize = FAMILIES.iter().map(|family| family.len()).sum();
        assert_eq!(BY_NAME.len(), rows);
        for function in FAMILIES.iter().copied().flatten() {
            assert!(find_aggregate(function.name).is_none(), "{}", function.name);
        }
    }

    #[test]
    fn every_name_the_parser_calls_a_function_by_has_a_row() {
        for (_, name) in porpoise_sql::parser::SYNONYMS {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
