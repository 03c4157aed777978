//! CREATE TEMPORARY TABLE … SELECT: how the table that was made gets its rows.
//!
//! The table is made empty, and its rows come by an INSERT … SELECT in the transaction that the
//! session, or the statement around the program, is in: it sees what that has written.

use porpoise_planner::access::PlanError;
use porpoise_planner::plan::{Plan, PlanKind};
use porpoise_planner::{self as planner, Context};
use porpoise_sql::ast;

/// The plan that fills the table that the statement has made with the query's rows.
///
/// # Errors
/// As [`planner::plan`].
pub fn plan(
    create: &ast::CreateTable,
    query: &ast::Query,
    context: &Context<'_>,
) -> Result<Plan, PlanError> {
    let query = Box::new(query.clone());
    let read = planner::plan(&ast::Statement::Query(query.clone()), context)?;
    let columns = match &read.kind {
        PlanKind::Query(output) => &output.columns[..],
        _ => &[],
    };
    let columns = columns.iter().map(|column| ast::ColumnRef {
        schema: None,
        table: None,
        name: ast::Ident::new(&*column.name),
    });
    let insert = ast::Insert {
        replace: create.duplicates == ast::Duplicates::Replace,
        priority: ast::Priority::default(),
        ignore: create.duplicates == ast::Duplicates::Ignore,
        table: create.name.clone(),
        partitions: Vec::new(),
        columns: Some(columns.collect()),
        source: ast::InsertSource::Query(query),
        row_alias: None,
        column_aliases: Vec::new(),
        on_duplicate: Vec::new(),
        hints: None,
    };
    planner::plan(&ast::Statement::Insert(Box::new(insert)), context)
}

/// The statement that takes the table away again, if it couldn't be filled.
pub fn undo(create: &ast::CreateTable) -> ast::Statement {
    ast::Statement::DropTable {
        temporary: true,
        if_exists: true,
        tables: vec![create.name.clone()],
    }
}
