//! The functions, a row each: [`porpoise_expr::function`] says what a row is.
//!
//! | family | holds |
//! | --- | --- |
//! | `string`, `search`, `encoding`, `number_format` | strings: parts of them, looking for them, their spellings, FORMAT |
//! | `regexp` | what the REGEXP functions of `search` do |
//! | `numeric`, `control` | numbers and bits; IF, CASE's kin, comparisons |
//! | `temporal`, `date_arithmetic`, `date_format` | dates and times: parts of them, sums, texts |
//! | `json`, `json_scalar` | JSON documents, and scalars out of them |
//! | `crypt`, `digest`, `uuid`, `inet` | encryption, compression, digests, UUIDs, addresses |
//! | `information` | the session and the server; named locks |
//! | `aggregate` | COUNT, SUM and the others that make one value of many rows |
//!
//! Adding a function is one row in the table of its family and one Rust function.

#![warn(missing_docs)]

mod aggregate;
mod control;
mod crypt;
mod date_arithmetic;
mod date_format;
mod digest;
pub mod encoding;
mod inet;
mod information;
mod json;
pub mod json_scalar;
mod number_format;
mod numeric;
mod regexp;
mod search;
mod string;
mod temporal;
mod uuid;

use std::sync::LazyLock;

pub use aggregate::{AGGREGATES, find as find_aggregate};
use hashbrown::HashMap;

use porpoise_expr::function::Function;

/// All families' tables.
static FAMILIES: &[&[Function]] = &[
    control::TABLE,
    crypt::TABLE,
    date_arithmetic::TABLE,
    date_format::TABLE,
    digest::TABLE,
    encoding::TABLE,
    inet::TABLE,
    information::TABLE,
    json::TABLE,
    number_format::TABLE,
    numeric::TABLE,
    search::TABLE,
    string::TABLE,
    temporal::TABLE,
    uuid::TABLE,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|function| (function.name, function))
        .collect()
});

/// All scalar functions, in the order of their families.
pub fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().copied().flatten()
}

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
        let all = FAMILIES.iter().copied().flatten();
        // The planner puts the aggregate in the function's place where rows are grouped.
        for function in all.filter(|function| function.name != "ANY_VALUE") {
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
