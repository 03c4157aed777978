//! What a view's definition gives: its columns, as a query of it finds them, and the tables that it
//! names.

use porpoise_catalog::{Catalog, View};
use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_core::reply::ResultColumn;
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::PlanKind;
use porpoise_planner::{self as planner, Context};
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_sql::ast;

/// The columns that a view has now.
///
/// # Errors
/// 1356 where the view's tables are gone.
pub fn view_columns(
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
    let plan = planner::plan(&statement, &context(&sql, catalog, session, engine));
    match &plan.map_err(PlanError::of_definition)?.kind {
        PlanKind::Query(query) => Ok(query.columns.clone()),
        _ => Ok(Vec::new()),
    }
}

/// The tables and views that a view's text names, each once.
///
/// # Errors
/// 1356 where one of them is gone.
pub fn view_tables(
    view: &View,
    catalog: &Catalog,
    session: &SessionState,
    engine: &Shared,
) -> Result<Vec<ast::ObjectName>> {
    let ast::Statement::Query(query) = parse(&view.sql)? else {
        return Ok(Vec::new());
    };
    let (_, names) = planner::plan_view(&query, &context(&view.sql, catalog, session, engine))
        .map_err(PlanError::of_definition)?;
    let mut tables: Vec<ast::ObjectName> = names.tables().cloned().collect();
    let key = |table: &ast::ObjectName| {
        (
            table.schema.clone().map(|name| name.0),
            table.name.0.clone(),
        )
    };
    tables.sort_by_key(key);
    tables.dedup_by_key(|table| key(table));
    Ok(tables)
}

fn parse(sql: &str) -> Result<ast::Statement> {
    let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
    match parsed {
        Ok(Some(parsed)) => Ok(parsed.statement),
        _ => Err(Error::engine_error(format!("unreadable statement: {sql}"))),
    }
}

fn context<'a>(
    sql: &'a str,
    catalog: &'a Catalog,
    session: &'a SessionState,
    engine: &'a Shared,
) -> Context<'a> {
    Context {
        catalog,
        session,
        temporary_tables: &session.temporary_tables,
        parameters: &[],
        literals: &[],
        sql: sql.as_bytes(),
        contents: &engine.store,
        variables: None,
        programs: Some(&porpoise_programs::functions::PROGRAMS),
        trace: None,
    }
}
