//! The columns of a view, as a query of it finds them.

use porpoise_catalog::{Catalog, View};
use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_core::reply::ResultColumn;
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::PlanKind;
use porpoise_planner::{self as planner, Context};
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;

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
    let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
    let Ok(Some(parsed)) = parsed else {
        return Err(Error::engine_error(format!("unreadable statement: {sql}")));
    };
    let context = Context {
        catalog,
        session,
        temporary_tables: &session.temporary_tables,
        parameters: &[],
        literals: &[],
        sql: sql.as_bytes(),
        contents: &engine.store,
        trace: None,
    };
    let plan = planner::plan(&parsed.statement, &context);
    match &plan.map_err(PlanError::of_definition)?.kind {
        PlanKind::Query(query) => Ok(query.columns.clone()),
        _ => Ok(Vec::new()),
    }
}
