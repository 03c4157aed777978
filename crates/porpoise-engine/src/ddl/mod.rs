//! Statements that change definitions.

use porpoise_sql::ast;
use porpoise_storage::Commit;

use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::session::Session;

/// Runs a statement that is neither a query nor a change of rows.
pub fn execute(
    session: &mut Session,
    statement: &ast::Statement,
    sql: &[u8],
    text: &[u8],
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    let _ = (session, statement, sql, text, reply);
    Err(Error::not_supported_yet("this statement"))
}
