//! Stored functions in expressions: a program that runs within a statement.
//!
//! Its statements see what the statement sees: the same snapshot or transaction, the same catalog.
//! Their tables are locked already, as they are among the plan's ([`ProgramUses`]), and a statement
//! that may write has a transaction. A statement of the program that fails takes back what itself
//! wrote; the rest is the business of the statement around it.
//!
//! [`ProgramUses`]: porpoise_planner::ProgramUses

use std::sync::Arc;

use porpoise_catalog::{Column, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::MemoryAccount;
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_core::variables::{SessionVars, StatementContext};
use porpoise_expr::function::StoredFunction;
use porpoise_expr::{EvalContext, Expr};
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::{Destination, Plan, PlanKind, RowTriggers};
use porpoise_planner::{Context, Variables};
use porpoise_programs::code::{
    CallStatement, Expression, KeptPlan, Planned, Program, SqlStatement,
};
use porpoise_programs::filling;
use porpoise_programs::functions::{Function, PROGRAMS, plan_expression, plan_statement};
use porpoise_programs::machine::{Host, Rows, Typed};
use porpoise_programs::routine::{Callee, find_procedure};
use porpoise_session::check;
use porpoise_session::session_state::StatementInputs;
use porpoise_session::set_variable::bare_word;
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_sql::{ast, stack};
use porpoise_storage::Savepoint;
use porpoise_types::{DataType, Date, DateTime, Time, Value};

use crate::eval::Evaluate;
use crate::{Exec, View, column_value, statement, stored_statement};

/// What a program within a statement takes of the stack, in levels of a statement.
const LEVELS: u32 = 64;

/// Calls a stored function.
#[inline(never)]
pub(crate) fn call(
    exec: &mut Exec<'_>,
    function: &dyn StoredFunction,
    arguments: &[Expr],
) -> Result<Value> {
    let Some(Function(callee)) = function.as_any().downcast_ref::<Function>() else {
        return Err(Error::engine_error("a function of another kind"));
    };
    let mut given = Vec::with_capacity(arguments.len());
    for argument in arguments {
        given.push((argument.eval(exec)?, argument.ty.clone()));
    }
    exec.check_interrupt()?;
    let accounts = &exec.engine.accounts;
    let held = callee.enter(exec.session, accounts)?;
    let before = Before::of(exec);
    let called = stack::reserve(LEVELS, || {
        callee.run_function(given, &mut StatementHost::new(exec, "function"))
    });
    before.restore(exec);
    callee.leave(held, exec.session);
    called
}

/// Fires triggers for a row. What they have given columns of the new row.
pub(crate) fn fire(
    exec: &mut Exec<'_>,
    table: &Table,
    (triggers, time, event): (&RowTriggers, TriggerTime, TriggerEvent),
    new: Option<&[u8]>,
    old: Option<&[u8]>,
) -> Result<Vec<(usize, Value)>> {
    let mut given: Vec<(usize, Value)> = Vec::new();
    for trigger in triggers.of(time, event) {
        let Some(Function(callee)) = trigger.as_any().downcast_ref::<Function>() else {
            return Err(Error::engine_error("a trigger of another kind"));
        };
        let mut values = vec![Value::Null; callee.program.slots.len()];
        for row in &callee.program.row_slots {
            let earlier = given.iter().rev().find(|(column, _)| *column == row.column);
            values[row.slot] = match (row.is_old, earlier, new, old) {
                (false, Some((_, value)), ..) => value.clone(),
                (false, None, Some(bytes), _) | (true, _, _, Some(bytes)) => {
                    column_of(exec, table, bytes, row.column)
                }
                _ => Value::Null,
            };
        }
        exec.check_interrupt()?;
        let held = callee.enter(exec.session, &exec.engine.accounts)?;
        let before = Before::of(exec);
        let fired = stack::reserve(LEVELS, || {
            callee.run_trigger(values, &mut StatementHost::new(exec, "trigger"))
        });
        before.restore(exec);
        callee.leave(held, exec.session);
        given.extend(fired?);
    }
    Ok(given)
}

/// A column of an encoded row.
fn column_of(exec: &Exec<'_>, table: &Table, row: &[u8], column: usize) -> Value {
    match (table.layout.get(row, column), &table.columns[column].ty) {
        (Value::DateTime(utc), DataType::Timestamp { .. }) => {
            Value::DateTime(exec.session.from_utc(utc))
        }
        (value, _) => value,
    }
}

/// What a statement has that a program within it changes.
struct Before {
    statement: StatementContext,
    warnings: Vec<(porpoise_core::error::Level, porpoise_core::error::Condition)>,
    warnings_total: usize,
    found_rows: u64,
    last_insert_id: u64,
    tables_in_use: usize,
}

impl Before {
    fn of(exec: &mut Exec<'_>) -> Before {
        let state = &mut *exec.session;
        let tables_in_use = state.tables_in_use.len();
        state.tables_in_use.extend_from_slice(exec.own_tables);
        let before = Before {
            statement: state.statement,
            warnings: std::mem::take(&mut state.warnings),
            warnings_total: std::mem::take(&mut state.warnings_total),
            found_rows: state.found_rows,
            last_insert_id: state.last_insert_id,
            tables_in_use,
        };
        state.statement.ignores_errors = false;
        before
    }

    /// The statement's own state again, with what the program has warned of at last.
    fn restore(mut self, exec: &mut Exec<'_>) {
        let state = &mut *exec.session;
        let counted = state.statement;
        state.statement = StatementContext {
            rows_examined: counted.rows_examined,
            uses_no_index: counted.uses_no_index,
            ..self.statement
        };
        self.warnings_total += state.warnings_total;
        self.warnings.append(&mut state.warnings);
        state.warnings = self.warnings;
        state.warnings_total = self.warnings_total;
        state.found_rows = self.found_rows;
        state.last_insert_id = self.last_insert_id;
        state.tables_in_use.truncate(self.tables_in_use);
    }
}

/// A statement that runs a program.
struct StatementHost<'h, 'a> {
    exec: &'h mut Exec<'a>,
    /// What the program is.
    kind: &'static str,
    /// The program's own: it sees no others, and they end with it.
    savepoints: Vec<(ast::Ident, Option<Savepoint>)>,
}

impl<'h, 'a> StatementHost<'h, 'a> {
    fn new(exec: &'h mut Exec<'a>, kind: &'static str) -> StatementHost<'h, 'a> {
        StatementHost {
            exec,
            kind,
            savepoints: Vec::new(),
        }
    }
}

impl StatementHost<'_, '_> {
    /// Runs the plan of a statement of the program in the view that the statement around it has of
    /// storage.
    fn run(&mut self, plan: &Plan, values: &[Value]) -> Result<Rows> {
        let exec = &mut *self.exec;
        let privileged = check::plan(exec.session, &exec.engine.accounts, plan)?;
        let is_in_use = |table: &Table| exec.session.tables_in_use.contains(&table.id);
        if let Some(table) = plan.kind.find_target(is_in_use) {
            return Err(Error::table_used_by_caller(&table.name));
        }
        let is_result =
            |query: &porpoise_planner::plan::Query| matches!(query.into, Destination::Client);
        if matches!(&plan.kind, PlanKind::Query(query) if is_result(query)) {
            return Err(Error::result_set_from_function(self.kind));
        }
        let mut rows = ProgramRows::new(Arc::clone(&exec.session.memory));
        let savepoint = match &mut exec.view {
            View::Transaction(transaction) if plan.writes() => Some(transaction.savepoint()),
            _ => None,
        };
        let executed = stack::reserve(plan.depth, || {
            let view = exec.view.reborrow();
            let (session, engine, catalog) = (&mut *exec.session, exec.engine, exec.catalog);
            let mut inner = Exec::of_plan(session, engine, catalog, view, privileged, values);
            inner.started_us = exec.started_us;
            statement::execute(&mut inner, privileged, None, &mut rows)
        });
        if executed.is_err()
            && let Some(savepoint) = savepoint
            && let View::Transaction(transaction) = &mut exec.view
        {
            transaction.rollback_to(savepoint);
        }
        rows.rows.of_ended(executed)
    }

    fn find_savepoint(&self, name: &ast::Ident) -> Result<usize> {
        let mut savepoints = self.savepoints.iter();
        let found = savepoints.position(|(known, _)| known.eq_ignore_ascii_case(name));
        found.ok_or_else(|| Error::savepoint_does_not_exist(name.as_str()))
    }

    /// The plan that is kept, or a new one.
    fn planned(
        &mut self,
        kept: &Planned,
        plan: impl FnOnce(&Context<'_>) -> Result<Plan, PlanError>,
    ) -> Result<Arc<KeptPlan>> {
        let exec = &mut *self.exec;
        let context_hash = exec.session.planning_context_hash();
        let has_temporary = !exec.session.temporary_tables.is_empty();
        if let Some(kept) = kept.0.load_full()
            && kept.fits(context_hash, exec.catalog.version, exec.session)
            && !has_temporary
        {
            return Ok(kept);
        }
        let context = Context {
            catalog: exec.catalog,
            session: exec.session,
            temporary_tables: &exec.session.temporary_tables,
            parameters: &[],
            literals: &[],
            sql: &[],
            contents: &exec.engine.store,
            programs: Some(&PROGRAMS),
            variables: None,
            trace: None,
        };
        let accounts = &exec.engine.accounts;
        let plan =
            plan(&context).map_err(|failed| check::refuse(exec.session, accounts, failed))?;
        let is_kept = plan.cacheable && !has_temporary;
        let new = Arc::new(KeptPlan::new(
            context_hash,
            exec.catalog.version,
            plan,
            None,
        ));
        if is_kept {
            kept.0.store(Some(Arc::clone(&new)));
        }
        Ok(new)
    }
}

impl StatementHost<'_, '_> {
    /// The value of an expression of a statement that has no plan.
    fn value_of(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        expression: &ast::Expr,
        values: &[Value],
    ) -> Result<Typed> {
        let expression = Expression {
            written: expression.clone(),
            bound: None,
            number: None,
            planned: Planned::default(),
            scope: Arc::clone(&statement.scope),
        };
        self.query_value(program, &expression, values)
    }

    /// CREATE TEMPORARY TABLE … SELECT.
    fn create_from_query(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        create: &ast::CreateTable,
        values: &[Value],
    ) -> Result<Rows> {
        let Some(query) = &create.query else {
            return Err(Error::engine_error("a table without a query"));
        };
        let known = self.exec.session.temporary_tables.len();
        let inputs = StatementInputs {
            variables: Some(&*statement.scope as &dyn Variables),
            types: &[],
            values,
        };
        stored_statement::define(self.exec, &statement.statement, &program.sql, inputs)?;
        if self.exec.session.temporary_tables.len() == known {
            // IF NOT EXISTS, and it does.
            return Ok(Rows::default());
        }
        let plan = |context: &Context<'_>| {
            let context = Context {
                variables: Some(&*statement.scope as &dyn Variables),
                sql: &program.sql,
                ..*context
            };
            filling::plan(create, query, &context)
        };
        let filled = self
            .planned(&Planned::default(), plan)
            .and_then(|kept| self.run(&kept.cached.plan, values));
        if filled.is_err() {
            let undo = filling::undo(create);
            stored_statement::define(self.exec, &undo, &program.sql, StatementInputs::default())?;
        }
        filled
    }

    fn set(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        item: &ast::SetItem,
        values: &[Value],
    ) -> Result<()> {
        match item {
            ast::SetItem::User { name, value } => {
                let (value, ty) = self.value_of(program, statement, value, values)?;
                let name = name.0.to_lowercase();
                self.exec.session.set_user_variable(&name, value, ty)
            }
            ast::SetItem::System { variable, value } => {
                let given = match (value, bare_word(value)) {
                    (ast::Expr::Default, _) => None,
                    (_, Some(word)) if statement.scope.number(word).is_none() => {
                        Some(Value::text(word))
                    }
                    _ => Some(self.value_of(program, statement, value, values)?.0),
                };
                stored_statement::set_variable(self.exec, variable, given)
            }
            ast::SetItem::Names { charset, collation } => {
                stored_statement::set_names(self.exec, charset.as_ref(), collation.as_ref())
            }
            ast::SetItem::Charset(charset) => {
                stored_statement::set_names(self.exec, charset.as_ref(), None)
            }
        }
    }
}

impl Host for StatementHost<'_, '_> {
    fn vars(&self) -> &SessionVars {
        &self.exec.session.vars
    }

    fn vars_mut(&mut self) -> &mut SessionVars {
        &mut self.exec.session.vars
    }

    #[inline]
    fn evaluate(&mut self, expr: &Expr, values: &[Value]) -> Result<Value> {
        let exec = &mut *self.exec;
        let mut inner = Exec::of_values(exec.session, exec.engine, exec.catalog, values);
        inner.started_us = exec.started_us;
        expr.eval(&mut inner)
    }

    fn query_value(
        &mut self,
        program: &Program,
        expression: &Expression,
        values: &[Value],
    ) -> Result<Typed> {
        let plan = |context: &Context<'_>| plan_expression(program, expression, context);
        let kept = self.planned(&expression.planned, plan)?;
        if let Some(value) = &kept.value {
            return Ok((self.evaluate(value, values)?, value.ty.clone()));
        }
        let rows = self.run(&kept.cached.plan, values)?;
        rows.into_value()
            .ok_or_else(|| Error::engine_error("an expression without a value"))
    }

    fn convert(&mut self, into: &Column, value: Value, from: &DataType) -> Result<Value> {
        let exec = &mut *self.exec;
        let mut inner = Exec::of_values(exec.session, exec.engine, exec.catalog, &[]);
        column_value::store(&mut inner, into, value, from)
    }

    fn execute(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        values: &[Value],
    ) -> Result<Rows> {
        use ast::Statement as S;
        self.exec.session.statement.changes_rows = false;
        match &statement.statement {
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) => {
                let plan = |context: &Context<'_>| plan_statement(program, statement, context);
                let kept = self.planned(&statement.planned, plan)?;
                self.run(&kept.cached.plan, values)
            }
            S::Do(expressions) => {
                for expression in expressions {
                    self.value_of(program, statement, expression, values)?;
                }
                self.exec.session.row_count = 0;
                Ok(Rows::default())
            }
            S::Set(items) => {
                for item in items {
                    self.set(program, statement, item, values)?;
                }
                Ok(Rows::default())
            }
            S::Savepoint(name) => {
                self.savepoints
                    .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                let savepoint = match &self.exec.view {
                    View::Transaction(transaction) => Some(transaction.savepoint()),
                    _ => None,
                };
                self.savepoints.push((name.clone(), savepoint));
                Ok(Rows::default())
            }
            S::RollbackTo(name) => {
                let at = self.find_savepoint(name)?;
                if let View::Transaction(transaction) = &mut self.exec.view
                    && let Some(savepoint) = self.savepoints[at].1
                {
                    transaction.rollback_to(savepoint);
                }
                self.savepoints.truncate(at + 1);
                Ok(Rows::default())
            }
            S::ReleaseSavepoint(name) => {
                let at = self.find_savepoint(name)?;
                self.savepoints.truncate(at);
                Ok(Rows::default())
            }
            S::CreateTable(create) if create.query.is_some() => {
                self.create_from_query(program, statement, create, values)
            }
            definition => {
                let inputs = StatementInputs::default();
                stored_statement::define(self.exec, definition, &program.sql, inputs)?;
                Ok(Rows::default())
            }
        }
    }

    fn call(
        &mut self,
        program: &Program,
        call: &CallStatement,
        values: &[Value],
    ) -> Result<(Callee, Vec<(usize, Typed)>)> {
        let callee = find_procedure(self.exec.session, self.exec.catalog, &call.name)?;
        let modes = callee.check_arguments(call)?;
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for (argument, mode) in call.arguments.iter().zip(modes) {
            let value = &argument.value;
            arguments.push(match (mode, &value.bound) {
                (ast::ParameterMode::Out, _) => (Value::Null, DataType::Null),
                (_, Some(bound)) => (self.evaluate(bound, values)?, bound.ty.clone()),
                (_, None) => self.query_value(program, value, values)?,
            });
        }
        let accounts = &self.exec.engine.accounts;
        let held = callee.enter(self.exec.session, accounts)?;
        let called = stack::reserve(LEVELS, || callee.run(arguments, self));
        callee.leave(held, self.exec.session);
        Ok((callee, called?))
    }
}

/// The reply to a statement whose rows only a program takes.
pub struct ProgramRows {
    account: Arc<MemoryAccount>,
    /// The rows.
    pub rows: Rows,
}

impl ProgramRows {
    /// No rows yet; those that come are charged to an account.
    pub fn new(account: Arc<MemoryAccount>) -> ProgramRows {
        ProgramRows {
            account,
            rows: Rows::default(),
        }
    }
}

impl Reply for ProgramRows {
    fn ok(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }

    fn begin_rows(&mut self, _: &[ResultColumn]) -> Result<()> {
        Err(Error::result_set_from_function("function"))
    }

    fn begin_row(&mut self) {}

    fn null(&mut self) {}

    fn int(&mut self, _: i64) {}

    fn uint(&mut self, _: u64) {}

    fn float(&mut self, _: f32) {}

    fn double(&mut self, _: f64) {}

    fn bytes(&mut self, _: &[u8]) {}

    fn date(&mut self, _: Date) {}

    fn datetime(&mut self, _: DateTime, _: u8) {}

    fn time(&mut self, _: Time, _: u8) {}

    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }

    fn end_rows(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }

    fn values(&mut self, values: Vec<Typed>) -> Result<()> {
        self.rows.push(values, &self.account)
    }
}
