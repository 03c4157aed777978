//! EXPLAIN: plans as people read them.
//!
//! - [`traditional`]: a row a table, in the order in which tables are read.
//! - [`tree`]: a line an operator, each below the one it feeds.
//! - [`json`]: query blocks within each other.
//! - [`names`] writes columns and expressions, [`cost`] estimates what MySQL calls cost.
//!
//! MySQL 8.4 manual, 15.8.2 (EXPLAIN) and 10.8.2 (its output).

mod cost;
mod json;
mod names;
mod traditional;
mod tree;

use porpoise_core::error::{Error, Result};
use porpoise_core::reply::ResultColumn;
use porpoise_sql::ast;
use porpoise_types::{DataType, Value};

use crate::plan::Plan;

/// The statement that is to be explained.
///
/// # Errors
/// 1235 for forms of EXPLAIN that there aren't.
pub fn explained_statement(explain: &ast::Explain) -> Result<&ast::Statement> {
    let statement = match &explain.target {
        ast::ExplainTarget::Statement(statement) => statement,
        ast::ExplainTarget::Connection(_) => {
            return Err(Error::not_supported_yet("EXPLAIN FOR CONNECTION"));
        }
    };
    if explain.analyze {
        return Err(Error::not_supported_yet("EXPLAIN ANALYZE"));
    }
    if explain.into.is_some() {
        return Err(Error::not_supported_yet("EXPLAIN INTO"));
    }
    Ok(statement)
}

/// The columns and rows of an EXPLAIN, in the format it asks for.
pub fn explain(
    plan: &Plan,
    statement: &ast::Statement,
    format: Option<ast::ExplainFormat>,
) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    let text = |text: String| {
        let column = ResultColumn::expression("EXPLAIN", DataType::varchar(16_383), false);
        (vec![column], vec![vec![Value::from(text)]])
    };
    match format {
        None | Some(ast::ExplainFormat::Traditional) => {
            (traditional::columns(), traditional::rows(plan, statement))
        }
        Some(ast::ExplainFormat::Tree) => text(tree::tree(plan)),
        Some(ast::ExplainFormat::Json) => text(json::json(plan, statement)),
    }
}
