//! EXPLAIN: plans as people read them.

use porpoise_sql::ast;
use porpoise_types::Value;

use crate::error::{Error, Result};
use crate::planner::Context;
use crate::reply::ResultColumn;

/// The rows of an EXPLAIN.
pub fn explain(
    explain: &ast::Explain,
    context: &Context<'_>,
) -> Result<(Vec<ResultColumn>, Vec<Vec<Value>>)> {
    let _ = (explain, context);
    Err(Error::not_supported_yet("EXPLAIN"))
}
