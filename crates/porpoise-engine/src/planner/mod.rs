//! From syntax tree to plan: names, types, access paths, join order.
//!
//! 1. [`bind`] resolves names against the catalog and makes typed expressions ([`typing`]).
//! 2. [`optimize`] turns the bound query into [`plan::Node`]s: ranges, join order, semi-joins, sort elimination.
//! 3. [`explain`] prints what came out.

pub mod plan;

use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::SessionState;

/// What a statement is planned against.
pub struct Context<'a> {
    pub catalog: &'a Catalog,
    pub session: &'a SessionState,
    /// The types of the parameters' values, where they are known; a `?` of unknown type is text that
    /// compares as what it meets.
    pub parameters: &'a [DataType],
    /// The statement's text: column names come from it.
    pub sql: &'a [u8],
}

/// Plans a SELECT, INSERT, REPLACE, UPDATE or DELETE.
pub fn plan(statement: &ast::Statement, context: &Context<'_>) -> Result<plan::Plan> {
    let _ = (statement, context);
    Err(crate::Error::not_supported_yet("statements"))
}
