//! Stored functions as the planner finds them, and what programs use.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_expr::function::StoredFunction;
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::{Plan, RowTriggers, TableUse};
use porpoise_planner::{
    self as planner, Context, FindPrograms, FunctionSignature, ProgramUses, Variables,
};
use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::code::{Expression, Instruction, Program, SqlStatement};
use crate::definition::{Routine, function, procedure, triggers};
use crate::routine::{Callee, compiled, own_variables};

/// A stored function that is called.
#[derive(Debug)]
pub struct Function(pub Callee);

impl StoredFunction for Function {
    fn name(&self) -> String {
        let routine = &self.0.routine.record;
        format!(
            "{}.{}",
            quote::name(&routine.schema),
            quote::name(&routine.name)
        )
    }

    fn is_deterministic(&self) -> bool {
        self.0.routine.record.deterministic
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

thread_local! {
    /// The routines that are being compiled, or looked through.
    static VISITED: RefCell<Vec<(CompactString, CompactString)>> = const { RefCell::new(Vec::new()) };
}

/// A visit of a routine; ends when dropped.
struct Visit;

impl Visit {
    /// `None` if the routine is being visited.
    fn begin(routine: &Routine) -> Option<Visit> {
        let key = (routine.record.schema.clone(), routine.record.name.clone());
        VISITED.with_borrow_mut(|visited| {
            let is_new = !visited.contains(&key);
            is_new.then(|| {
                visited.push(key);
                Visit
            })
        })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        VISITED.with_borrow_mut(|visited| visited.pop());
    }
}

/// How the planner finds programs.
pub static PROGRAMS: FindPrograms = FindPrograms {
    function: find_function,
    triggers: find_triggers,
};

/// The triggers of a table that changes of these kinds fire.
fn find_triggers(
    context: &Context<'_>,
    table: &Arc<Table>,
    events: &[ast::TriggerEvent],
) -> Result<Option<RowTriggers>> {
    let mut found = RowTriggers::default();
    let mut uses = ProgramUses::default();
    for (time, event, routine) in triggers(context.catalog, table) {
        if !events.contains(&event) {
            continue;
        }
        let program = compiled(&routine, context.session, context.catalog, Some(table))?;
        if let Some(_visit) = Visit::begin(&routine) {
            let own = uses_of(&routine, &program, context);
            uses.extend(&own);
        }
        let program = Arc::new(Function(Callee { routine, program }));
        found.list.push((time, event, program));
    }
    if found.list.is_empty() {
        return Ok(None);
    }
    found.uses = Arc::new(uses);
    Ok(Some(found))
}

/// The stored function of that name.
///
/// # Errors
/// 1424 for a function that is being compiled: it would call itself.
fn find_function(
    context: &Context<'_>,
    schema: &str,
    name: &str,
) -> Result<Option<FunctionSignature>> {
    let Some(routine) = function(context.catalog, schema, name) else {
        return Ok(None);
    };
    let Some(_visit) = Visit::begin(&routine) else {
        return Err(Error::recursive_function());
    };
    let program = compiled(&routine, context.session, context.catalog, None)?;
    let uses = uses_of(&routine, &program, context);
    Ok(Some(FunctionSignature {
        parameters: program.parameters.len(),
        returns: program
            .returns
            .as_ref()
            .map_or(DataType::Null, |column| column.ty.clone()),
        function: Arc::new(Function(Callee { routine, program })),
        uses,
    }))
}

/// What a program uses, found by planning its statements. What can't be planned now is found to be
/// so when it runs.
fn uses_of(routine: &Routine, program: &Program, context: &Context<'_>) -> Arc<ProgramUses> {
    if let Some(uses) = program.uses.get()
        && context.temporary_tables.is_empty()
    {
        return Arc::clone(uses);
    }
    let own = own_variables(routine, context.session);
    let own_context = Context {
        session: &own,
        parameters: &[],
        literals: &[],
        sql: &program.sql,
        trace: None,
        ..*context
    };
    let mut uses = ProgramUses::default();
    uses.routines.extend(routine.lock.clone());
    for instruction in &program.code {
        match instruction {
            Instruction::Sql(statement) => {
                // What changes a temporary table that isn't there yet can't be planned.
                uses.writes |= matches!(
                    statement.statement,
                    ast::Statement::CreateTable(_) | ast::Statement::CreateTableLike { .. }
                );
                let planned = match &statement.statement {
                    ast::Statement::CreateTable(create) => {
                        plan_rows(create, statement, &own_context)
                    }
                    _ => plan_statement(program, statement, &own_context).ok(),
                };
                add(&mut uses, planned.as_ref());
            }
            Instruction::Open { query, .. } => {
                let planned = plan_statement(program, query, &own_context);
                add(&mut uses, planned.as_ref().ok());
            }
            Instruction::Call(call) => {
                for argument in &call.arguments {
                    add_expression(&mut uses, program, &argument.value, &own_context);
                }
                add_procedure(&mut uses, &call.name, &own_context);
            }
            Instruction::Assign { value, .. }
            | Instruction::Keep { value, .. }
            | Instruction::AssignUser { value, .. }
            | Instruction::Return(value)
            | Instruction::JumpUnless {
                condition: value, ..
            } => add_expression(&mut uses, program, value, &own_context),
            _ => {}
        }
    }
    let uses = Arc::new(uses);
    if context.temporary_tables.is_empty() {
        return Arc::clone(program.uses.get_or_init(|| uses));
    }
    uses
}

/// Plans the query that a new table gets its rows from.
fn plan_rows(
    create: &ast::CreateTable,
    statement: &SqlStatement,
    context: &Context<'_>,
) -> Option<Plan> {
    let query = create.query.clone()?;
    let context = Context {
        variables: Some(&*statement.scope as &dyn Variables),
        ..*context
    };
    planner::plan(&ast::Statement::Query(query), &context).ok()
}

fn add_expression(
    uses: &mut ProgramUses,
    program: &Program,
    expression: &Expression,
    context: &Context<'_>,
) {
    if expression.bound.is_none() {
        let planned = plan_expression(program, expression, context);
        add(uses, planned.as_ref().ok());
    }
}

fn add_procedure(uses: &mut ProgramUses, name: &ast::ObjectName, context: &Context<'_>) {
    let schema = context.session.schema_or_current(name.schema.as_ref());
    let Some(routine) = schema
        .ok()
        .and_then(|schema| procedure(context.catalog, &schema, &name.name))
    else {
        return;
    };
    let Some(_visit) = Visit::begin(&routine) else {
        return;
    };
    if let Ok(program) = compiled(&routine, context.session, context.catalog, None) {
        let called = uses_of(&routine, &program, context);
        uses.extend(&called);
    }
}

fn add(uses: &mut ProgramUses, plan: Option<&Plan>) {
    let Some(plan) = plan else {
        return;
    };
    let tables = plan.tables.iter().chain(&plan.foreign_key_tables);
    uses.tables
        .extend(tables.filter(|(table, _)| !table.temporary).cloned());
    let views = plan.views.iter();
    uses.views
        .extend(views.map(|(view, _)| (Arc::clone(view), TableUse::Read)));
    uses.routines.extend(plan.routine_locks.iter().cloned());
    uses.writes |= plan.writes();
}

/// Plans a SQL statement of a program. `context` has the program's settings.
///
/// # Errors
/// As [`planner::plan`].
pub fn plan_statement(
    program: &Program,
    statement: &SqlStatement,
    context: &Context<'_>,
) -> Result<Plan, PlanError> {
    let context = Context {
        variables: Some(&*statement.scope as &dyn Variables),
        sql: &program.sql,
        ..*context
    };
    match &statement.statement {
        ast::Statement::Query(query) if statement.is_cursor => {
            planner::plan_cursor(query, &context)
        }
        written => planner::plan(written, &context),
    }
}

/// Plans an expression of a program that isn't bound; its value comes as a row of the program's.
///
/// # Errors
/// As [`planner::plan_expressions`].
pub fn plan_expression(
    program: &Program,
    expression: &Expression,
    context: &Context<'_>,
) -> Result<Plan, PlanError> {
    let context = Context {
        variables: Some(&*expression.scope as &dyn Variables),
        sql: &program.sql,
        ..*context
    };
    planner::plan_expressions(&[&expression.written], &context)
}
