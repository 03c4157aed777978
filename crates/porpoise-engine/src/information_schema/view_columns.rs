//! The columns of a view, as a query of it finds them.

use crate::catalog::{Catalog, View};
use crate::error::{Error, Result};
use crate::planner::access::PlanError;
use crate::planner::plan::PlanKind;
use crate::planner::{self, Context};
use crate::quote;
use crate::reply::ResultColumn;
use crate::session_state::SessionState;
use crate::shared::Shared;

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
        row_counts: &engine.store,
    };
    let plan = planner::plan(&parsed.statement, &context).map_err(PlanError::of_definition)?;
    match plan.kind {
        PlanKind::Query(query) => Ok(query.columns),
        _ => Ok(Vec::new()),
    }
}
