//! SHOW and DESCRIBE.
//!
//! Most of them are SELECTs on `information_schema`, with the column names that SHOW has: so LIKE and
//! WHERE are the executor's work ([`select`]). Those that tell of one thing only, such as SHOW CREATE
//! TABLE, are made here ([`told`]).
//!
//! ```text
//! SHOW FULL TABLES FROM d LIKE 't%'
//!   ─► SELECT * FROM (SELECT TABLE_NAME AS `Tables_in_d (t%)`, TABLE_TYPE AS `Table_type`
//!                     FROM information_schema.TABLES WHERE TABLE_SCHEMA='d') `show`
//!      WHERE `Tables_in_d (t%)` LIKE 't%'
//! ```

mod select;
#[cfg(test)]
mod tests;
pub(crate) mod told;

use porpoise_sql::ast::{self, ShowFilter};
use porpoise_storage::Commit;

use crate::catalog::{Catalog, View};
use crate::error::{Error, Result};
use crate::executor::Exec;
use crate::planner::access::PlanError;
use crate::planner::plan::PlanKind;
use crate::planner::{self, Context};
use crate::quote;
use crate::reply::{Reply, ResultColumn};
use crate::session::Session;
use crate::session_state::SessionState;
use crate::shared::Shared;

/// Runs SHOW.
pub fn show(
    session: &mut Session,
    show: &ast::Show,
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    if let Some((columns, rows)) = told::tell(session, show)? {
        if show.filter.is_some() {
            return Err(Error::not_supported_yet("LIKE or WHERE in this SHOW"));
        }
        session.reply_rows(&columns, &rows, reply)?;
        return Ok(None);
    }
    let pattern = match &show.filter {
        Some(ShowFilter::Like(pattern)) => Some(String::from_utf8_lossy(pattern).into_owned()),
        _ => None,
    };
    let select = select::of(session, &show.what, pattern.as_deref())?;
    run(session, &select, show.filter.as_ref(), reply)
}

/// Runs DESCRIBE: SHOW COLUMNS, of those whose names match.
pub fn describe(
    session: &mut Session,
    table: &ast::ObjectName,
    column: Option<&str>,
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    let what = ast::ShowWhat::Columns {
        extended: false,
        full: false,
        table: table.clone(),
    };
    let filter = column.map(|pattern| ShowFilter::Like(pattern.as_bytes().into()));
    let select = select::of(session, &what, None)?;
    run(session, &select, filter.as_ref(), reply)
}

/// Plans and runs a SELECT with SHOW's filter over it.
fn run(
    session: &mut Session,
    select: &select::Select,
    filter: Option<&ShowFilter>,
    reply: &mut dyn Reply,
) -> Result<Option<Commit>> {
    let mut sql = format!("SELECT * FROM ({}) `show`", select.sql);
    if let Some(ShowFilter::Like(pattern)) = filter {
        let pattern = String::from_utf8_lossy(pattern);
        sql.push_str(&format!(
            " WHERE {} LIKE {}",
            quote::name(&select.first),
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
    session.run_parsed(&statement, sql.as_bytes(), &[], &[], reply)
}

fn parse(sql: &str) -> Result<ast::Statement> {
    let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
    match parsed {
        Ok(Some(parsed)) => Ok(parsed.statement),
        _ => Err(Error::engine_error(format!("unreadable statement: {sql}"))),
    }
}

/// The columns that a view has now, as a query of it finds them.
pub fn view_columns(exec: &mut Exec<'_>, view: &View) -> Result<Vec<ResultColumn>> {
    columns_now(view, exec.catalog, exec.session, exec.engine)
}

/// The same, outside of a running statement: error 1356 where the view's tables are gone.
fn columns_now(
    view: &View,
    catalog: &Catalog,
    session: &SessionState,
    engine: &Shared,
) -> Result<Vec<ResultColumn>> {
    let sql = format!(
        "SELECT * FROM {}.{}",
        quote::name(&view.schema),
        quote::name(&view.name)
    );
    let statement = parse(&sql)?;
    let context = Context {
        catalog,
        session,
        temporary_tables: &session.temporary_tables,
        parameters: &[],
        literals: &[],
        sql: sql.as_bytes(),
        row_counts: &engine.store,
    };
    let plan = planner::plan(&statement, &context).map_err(PlanError::of_definition)?;
    match plan.kind {
        PlanKind::Query(query) => Ok(query.columns),
        _ => Ok(Vec::new()),
    }
}
