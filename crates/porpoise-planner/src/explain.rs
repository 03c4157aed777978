//! EXPLAIN: plans as people read them.
//!
//! - [`traditional`]: a row a table, in the order in which tables are read.
//! - [`tree`]: a line an operator, each below the one it feeds.
//! - [`json`]: query blocks within each other; [`json_tree`]: operators within each other.
//! - [`names`] writes columns and expressions, [`cost`] estimates what MySQL calls cost.
//!
//! MySQL 8.4 manual, 15.8.2 (EXPLAIN) and 10.8.2 (its output).

mod cost;
mod json;
mod json_tree;
mod names;
mod traditional;
mod tree;

use porpoise_core::error::{Error, Result};
use porpoise_core::reply::ResultColumn;
use porpoise_core::variables::SessionVars;
use porpoise_sql::{ast, stack};
use porpoise_types::{DataType, Value};

use crate::plan::{Measure, Plan};

/// How many combinations of rows the plan's largest query block examines, by the planner's
/// estimates: the product of the column `rows` of the traditional form, of which the manual says that
/// `max_join_size` limits it.
pub fn row_combinations(plan: &Plan) -> f64 {
    traditional::row_combinations(plan)
}

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A row a table.
    Traditional,
    /// A line an operator.
    Tree,
    /// Query blocks as JSON.
    Json,
    /// Operators as JSON.
    JsonTree,
}

/// Checks that a statement may be explained so.
///
/// # Errors
/// 1235 for statements that ANALYZE doesn't run.
pub fn check_explainable(explain: &ast::Explain, statement: &ast::Statement) -> Result<()> {
    // Statements that MySQL's ANALYZE runs: queries, and changes of rows of several tables.
    let is_analyzable = match statement {
        ast::Statement::Query(_) => true,
        ast::Statement::Update(update) => !matches!(update.tables[..], [ast::TableRef::Table(_)]),
        ast::Statement::Delete(delete) => !delete.targets.is_empty(),
        _ => false,
    };
    match explain.analyze && !is_analyzable {
        true => Err(Error::not_supported_yet("EXPLAIN ANALYZE on this query")),
        false => Ok(()),
    }
}

/// The format that an EXPLAIN asks for, or `explain_format` (MySQL 8.4 manual, 15.8.2).
///
/// # Errors
/// 1791 for a format that there isn't, 1235 for ANALYZE and INTO in formats that they don't go with.
pub fn format(explain: &ast::Explain, session: &SessionVars) -> Result<Format> {
    let is_operators = session.get("explain_json_format_version") == Value::UInt(2);
    let json = match is_operators {
        true => Format::JsonTree,
        false => Format::Json,
    };
    let usual = match session.get("explain_format") {
        Value::Text(name) if name == "TREE" => Format::Tree,
        Value::Text(name) if name == "JSON" => json,
        _ if explain.analyze => Format::Tree,
        _ => Format::Traditional,
    };
    let format = match &explain.format {
        None => usual,
        Some(ast::ExplainFormat::Traditional) => Format::Traditional,
        Some(ast::ExplainFormat::Tree) => Format::Tree,
        Some(ast::ExplainFormat::Json) => json,
        Some(ast::ExplainFormat::Unknown(name)) => {
            return Err(Error::unknown_explain_format(name));
        }
    };
    let is_json = matches!(format, Format::Json | Format::JsonTree);
    match (explain.analyze, format) {
        (true, Format::Traditional) => Err(Error::not_supported_yet(
            "EXPLAIN ANALYZE with TRADITIONAL format",
        )),
        (true, Format::Json) => Err(Error::not_supported_yet(
            "EXPLAIN ANALYZE with JSON format of version 1",
        )),
        _ if explain.into.is_some() && !is_json => Err(Error::not_supported_yet(
            "EXPLAIN INTO with another format than JSON",
        )),
        _ => Ok(format),
    }
}

/// The operators of a plan, a line each, as the tree form has them.
pub(crate) fn operators(plan: &Plan) -> Vec<String> {
    tree::tree(plan, &[]).lines().map(str::to_string).collect()
}

/// What a statement is told to have while it has no plan, as its tables are opened or it is planned.
const NOT_READY: &str = "Plan isn't ready yet";

/// The columns and rows of an EXPLAIN. `sql` is the statement's text; `measures` what the operators
/// did, if the plan was measured.
pub fn explain(
    plan: &Plan,
    sql: &str,
    format: Format,
    measures: &[Measure],
) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    stack::reserve(plan.depth, || match format {
        Format::Traditional => (traditional::columns(), traditional::rows(plan)),
        Format::Tree => text(tree::tree(plan, measures)),
        Format::Json => text(json::json(plan)),
        Format::JsonTree => text(json_tree::json(plan, sql, measures)),
    })
}

/// The same of a statement that has no plan yet.
pub fn explain_unplanned(format: Format) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    match format {
        Format::Traditional => {
            let row = traditional::message(NOT_READY);
            (traditional::columns(), vec![row])
        }
        Format::Tree => text(format!("<{NOT_READY}>\n")),
        Format::Json | Format::JsonTree => text(json::message(NOT_READY)),
    }
}

/// A result of one text.
fn text(text: String) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    let column = ResultColumn::expression("EXPLAIN", DataType::varchar(16_383), false);
    (vec![column], vec![vec![Value::from(text)]])
}
