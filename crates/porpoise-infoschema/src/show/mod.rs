//! SHOW and DESCRIBE.
//!
//! Most of them are SELECTs on `information_schema`, with the column names that SHOW has: so LIKE
//! and WHERE are the executor's work ([`to_query`]). Those that show one thing only, such as SHOW
//! CREATE TABLE, are made by code ([`show_one`]).
//!
//! ```text
//! SHOW FULL TABLES FROM d LIKE 't%'
//!   ─► SELECT * FROM (SELECT TABLE_NAME AS `Tables_in_d (t%)`, TABLE_TYPE AS `Table_type`
//!                     FROM information_schema.TABLES WHERE TABLE_SCHEMA='d') `show`
//!      WHERE `Tables_in_d (t%)` LIKE 't%'
//! ```

mod show_one;
mod to_query;

pub use show_one::no_routine;

use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_core::reply::ResultColumn;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_sql::ast::{self, ShowFilter};
use porpoise_types::Value;

/// What a SHOW statement is answered from.
#[derive(Clone, Copy)]
pub struct ShowContext<'a> {
    /// The session's state, by which is decided what it may see.
    pub state: &'a SessionState,
    /// What all sessions share.
    pub shared: &'a Shared,
}

/// What a SHOW shows: rows, or a query that gives them.
pub enum ShowResult {
    /// The columns of the result, and its rows.
    Rows(Vec<ResultColumn>, Vec<Vec<Value>>),
    /// A query over virtual tables, to be planned and executed like any other.
    Query {
        /// The query's syntax tree.
        statement: ast::Statement,
        /// The text that spans of the statement point into.
        sql: String,
    },
}

/// What SHOW shows.
///
/// # Errors
/// 1227 and its kin where the session may not know, 1049 and 1146 for what isn't there, 1235 for
/// what can't be shown.
pub fn show(context: ShowContext<'_>, show: &ast::Show) -> Result<ShowResult> {
    if let Some((columns, rows)) = show_one::show_one(context, show)? {
        if show.filter.is_some() {
            return Err(Error::not_supported_yet("LIKE or WHERE in this SHOW"));
        }
        return Ok(ShowResult::Rows(columns, rows));
    }
    let pattern = match &show.filter {
        Some(ShowFilter::Like(pattern)) => Some(String::from_utf8_lossy(pattern).into_owned()),
        _ => None,
    };
    let query = to_query::to_query(context, &show.what, pattern.as_deref())?;
    filtered(&query, show.filter.as_ref())
}

/// What DESCRIBE shows: SHOW COLUMNS, of those whose names match.
///
/// # Errors
/// As [`show`].
pub fn describe(
    context: ShowContext<'_>,
    table: &ast::ObjectName,
    column: Option<&str>,
) -> Result<ShowResult> {
    let what = ast::ShowWhat::Columns {
        extended: false,
        full: false,
        table: table.clone(),
    };
    let filter = column.map(|pattern| ShowFilter::Like(pattern.as_bytes().into()));
    let query = to_query::to_query(context, &what, None)?;
    filtered(&query, filter.as_ref())
}

/// The query with SHOW's filter over it.
fn filtered(query: &to_query::ShowQuery, filter: Option<&ShowFilter>) -> Result<ShowResult> {
    let mut sql = format!("SELECT * FROM ({}) `show`", query.sql);
    if let Some(ShowFilter::Like(pattern)) = filter {
        let pattern = String::from_utf8_lossy(pattern);
        sql.push_str(&format!(
            " WHERE {} LIKE {}",
            quote::name(&query.matched),
            quote::quoted(&pattern)
        ));
    }
    let mut statement = parse(&sql)?;
    if let (Some(ShowFilter::Where(condition)), ast::Statement::Query(query)) =
        (filter, &mut statement)
        && let ast::QueryBody::Select(select) = &mut query.body
    {
        select.selection = Some((**condition).clone());
    }
    Ok(ShowResult::Query { statement, sql })
}

fn parse(sql: &str) -> Result<ast::Statement> {
    let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
    match parsed {
        Ok(Some(parsed)) => Ok(parsed.statement),
        _ => Err(Error::engine_error(format!("unreadable statement: {sql}"))),
    }
}
