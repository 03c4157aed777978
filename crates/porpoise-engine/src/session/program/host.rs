//! The session as the host of a program.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Catalog, Column};
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::MemoryAccount;
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_core::variables::{self, SessionVars, StatementContext};
use porpoise_executor::eval::Evaluate;
use porpoise_executor::{Exec, column_value};
use porpoise_expr::Expr;
use porpoise_mdl::command_counts::CountedCommand;
use porpoise_planner::Context;
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::Plan;
use porpoise_programs::code::{
    CallStatement, Expression, KeptPlan, Planned, Program, SqlStatement,
};
use porpoise_programs::functions::{plan_expression, plan_statement};
use porpoise_programs::machine::{Host, Rows, Typed};
use porpoise_programs::routine::{Callee, find_procedure};
use porpoise_sql::{ast, stack};
use porpoise_storage::Commit;
use porpoise_types::{DataType, Date, DateTime, Time, Value};

use crate::session::Session;
use crate::session::counted_command::command_of;
use crate::session::execute_text::now_us;

/// A session that runs a program.
pub(in crate::session) struct SessionHost<'s> {
    session: &'s mut Session,
    catalog: Arc<Catalog>,
    reply: &'s mut dyn Reply,
    /// The last commit: what comes next waits for it.
    commit: Option<Commit>,
    /// The statement that failed last has begun to send rows.
    has_begun_rows: bool,
}

impl<'s> SessionHost<'s> {
    pub fn new(
        session: &'s mut Session,
        catalog: Arc<Catalog>,
        reply: &'s mut dyn Reply,
    ) -> SessionHost<'s> {
        SessionHost {
            session,
            catalog,
            reply,
            commit: None,
            has_begun_rows: false,
        }
    }

    /// The last commit, which may not be durable yet.
    pub fn take_commit(&mut self) -> Option<Commit> {
        self.commit.take()
    }

    /// Waits for the last statement's commit: the next one sees what it wrote.
    fn settle(&mut self) -> Result<()> {
        let Some(commit) = self.commit.take() else {
            return Ok(());
        };
        if !commit.is_durable() {
            self.session.shared.locks.before_waiting();
        }
        commit.wait()?;
        Ok(())
    }

    /// Begins a statement of the program: its own time, its own diagnostics, its own variables.
    fn begin(&mut self, scope: &Arc<porpoise_programs::Scope>) -> Result<()> {
        self.settle()?;
        let session = &mut *self.session;
        let started_us = session.state.fixed_timestamp_us.unwrap_or_else(now_us);
        let reads_lock = session.reads_lock();
        session.state.statement = StatementContext::new(started_us, reads_lock);
        session.programs.scope = Some(Arc::clone(scope));
        Ok(())
    }
}

impl Host for SessionHost<'_> {
    fn vars(&self) -> &SessionVars {
        &self.session.state
    }

    fn vars_mut(&mut self) -> &mut SessionVars {
        &mut self.session.state
    }

    #[inline]
    fn evaluate(&mut self, expr: &Expr, values: &[Value]) -> Result<Value> {
        let session = &mut *self.session;
        let (state, shared) = (&mut session.state, &session.shared);
        let mut exec = Exec::of_values(state, shared, &self.catalog, values);
        expr.eval(&mut exec)
    }

    fn query_value(
        &mut self,
        program: &Program,
        expression: &Expression,
        values: &[Value],
    ) -> Result<Typed> {
        let is_strict = self.session.state.statement.changes_rows;
        self.begin(&expression.scope)?;
        self.session.state.statement.changes_rows = is_strict;
        let plan = |context: &Context<'_>| plan_expression(program, expression, context);
        let catalog = self.session.shared.catalog.load_full();
        let kept = self
            .session
            .planned(&expression.planned, None, plan, &catalog)?;
        if let Some(value) = &kept.value {
            return Ok((self.evaluate(value, values)?, value.ty.clone()));
        }
        let mut reply = StatementReply {
            inner: &mut *self.reply,
            account: Arc::clone(&self.session.state.memory),
            rows: Rows::default(),
            is_open: false,
        };
        let evaluated = self.session.replan_if_stale(|session| {
            let plan = |context: &Context<'_>| plan_expression(program, expression, context);
            session.run_planned(&expression.planned, None, plan, values, &mut reply)
        });
        let rows = reply.rows;
        self.commit = evaluated?;
        rows.into_value()
            .ok_or_else(|| Error::engine_error("an expression without a value"))
    }

    fn convert(&mut self, into: &Column, value: Value, from: &DataType) -> Result<Value> {
        let session = &mut *self.session;
        let (state, shared) = (&mut session.state, &session.shared);
        let mut exec = Exec::of_values(state, shared, &self.catalog, &[]);
        column_value::store(&mut exec, into, value, from)
    }

    fn execute(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        values: &[Value],
    ) -> Result<Rows> {
        self.begin(&statement.scope)?;
        if statement.is_about_diagnostics() {
            self.session.state.begin_diagnostics();
        }
        let mut reply = StatementReply {
            inner: &mut *self.reply,
            account: Arc::clone(&self.session.state.memory),
            rows: Rows::default(),
            is_open: false,
        };
        let executed = self.session.replan_if_stale(|session| {
            session.execute_step(program, statement, values, &mut reply)
        });
        let has_begun_rows = executed.is_err() && reply.is_open;
        let rows = reply.rows;
        self.has_begun_rows = has_begun_rows;
        let executed = executed.map(|commit| self.commit = commit);
        let rows = rows.of_ended(executed)?;
        self.catalog = self.session.shared.catalog.load_full();
        Ok(rows)
    }

    fn end_begun_rows(&mut self) -> Result<()> {
        if std::mem::take(&mut self.has_begun_rows) {
            self.reply.abandon_rows()?;
            self.reply.more_follows();
        }
        Ok(())
    }

    fn call(
        &mut self,
        program: &Program,
        call: &CallStatement,
        values: &[Value],
    ) -> Result<(Callee, Vec<(usize, Typed)>)> {
        /// What a program within a program takes of the stack, in levels of a statement.
        const LEVELS: u32 = 64;
        let mut arguments = Vec::with_capacity(call.arguments.len());
        let callee = find_procedure(&self.session.state, &self.catalog, &call.name)?;
        if self.session.login.single_result && callee.program.sends_rows() {
            return Err(Error::result_set_not_allowed(callee.name()));
        }
        let modes = callee.check_arguments(call)?;
        for (argument, mode) in call.arguments.iter().zip(modes) {
            let value = &argument.value;
            arguments.push(match (mode, &value.bound) {
                (ast::ParameterMode::Out, _) => (Value::Null, DataType::Null),
                (_, Some(bound)) => (self.evaluate(bound, values)?, bound.ty.clone()),
                (_, None) => self.query_value(program, value, values)?,
            });
        }
        self.settle()?;
        let accounts = &self.session.shared.accounts;
        let held = callee.enter(&mut self.session.state, accounts)?;
        let scope = self.session.programs.scope.take();
        let called = stack::reserve(LEVELS, || callee.run(arguments, self));
        self.session.programs.scope = scope;
        callee.leave(held, &mut self.session.state);
        self.session.forget_dropped_schema();
        Ok((callee, called?))
    }
}

impl Session {
    /// Has no current schema if a program that was called has dropped it.
    fn forget_dropped_schema(&mut self) {
        let catalog = self.shared.catalog.load();
        let is_dropped = |schema: &CompactString| catalog.schema(schema).is_none();
        if self.state.schema.as_ref().is_some_and(is_dropped) {
            self.state.schema = None;
            variables::forget_database_collation(&mut self.state);
            self.control.set_schema(None);
        }
    }

    /// Runs a SQL statement of a program, with its variables as the parameters.
    fn execute_step(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        values: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        use ast::Statement as S;
        let written = &statement.statement;
        let hints = written.hints();
        let is_planned = matches!(
            written,
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_)
        );
        let sets_variables = hints.is_some_and(ast::StatementHints::sets_variables);
        if !is_planned || sets_variables || self.state.optimizer_traces.is_enabled {
            self.count(command_of(written));
            if matches!(written, S::Prepare { .. } | S::Execute { .. }) {
                // What is prepared knows nothing of the program's variables.
                self.programs.scope = None;
            }
            self.state.row_count = 0;
            return self.execute_statement(written, &program.sql, &[], values, reply);
        }
        let command = command_of(written);
        let plan = |context: &Context<'_>| plan_statement(program, statement, context);
        self.run_planned(&statement.planned, command, plan, values, reply)
    }

    /// Runs a plan that is kept with a program, made anew if it isn't good any more.
    fn run_planned(
        &mut self,
        planned: &Planned,
        command: Option<CountedCommand>,
        plan: impl FnOnce(&Context<'_>) -> Result<Plan, PlanError>,
        values: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let catalog = self.shared.catalog.load_full();
        let kept = self.planned(planned, command, plan, &catalog)?;
        self.count(kept.cached.command);
        self.execute_plan(&kept.cached.plan, &catalog, values, None, reply)
    }

    /// The plan that is kept, or a new one.
    fn planned(
        &mut self,
        planned: &Planned,
        command: Option<CountedCommand>,
        plan: impl FnOnce(&Context<'_>) -> Result<Plan, PlanError>,
        catalog: &Arc<Catalog>,
    ) -> Result<Arc<KeptPlan>> {
        let context_hash = self.state.planning_context_hash();
        if self.state.temporary_tables.is_empty()
            && let Some(kept) = planned.0.load_full()
            && kept.fits(context_hash, catalog.version, &self.state)
        {
            return Ok(kept);
        }
        let plan = plan(&self.context(catalog, &[], &[]));
        let plan = plan.map_err(|failed| self.refuse(failed))?;
        let is_kept = plan.cacheable && self.state.temporary_tables.is_empty();
        let kept = Arc::new(KeptPlan::new(context_hash, catalog.version, plan, command));
        if is_kept {
            planned.0.store(Some(Arc::clone(&kept)));
        }
        Ok(kept)
    }
}

/// The reply to a statement of a program: its rows go to the client, its OK to nobody.
struct StatementReply<'r> {
    inner: &'r mut dyn Reply,
    account: Arc<MemoryAccount>,
    /// Those that the program takes.
    rows: Rows,
    /// Rows have begun, and not ended.
    is_open: bool,
}

impl Reply for StatementReply<'_> {
    fn ok(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }

    fn begin_rows(&mut self, columns: &[ResultColumn]) -> Result<()> {
        self.is_open = true;
        self.inner.begin_rows(columns)
    }

    fn begin_row(&mut self) {
        self.inner.begin_row();
    }

    fn null(&mut self) {
        self.inner.null();
    }

    fn int(&mut self, value: i64) {
        self.inner.int(value);
    }

    fn uint(&mut self, value: u64) {
        self.inner.uint(value);
    }

    fn float(&mut self, value: f32) {
        self.inner.float(value);
    }

    fn double(&mut self, value: f64) {
        self.inner.double(value);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.inner.bytes(value);
    }

    fn date(&mut self, value: Date) {
        self.inner.date(value);
    }

    fn datetime(&mut self, value: DateTime, fsp: u8) {
        self.inner.datetime(value, fsp);
    }

    fn time(&mut self, value: Time, fsp: u8) {
        self.inner.time(value, fsp);
    }

    fn end_row(&mut self) -> Result<()> {
        self.inner.end_row()
    }

    fn end_rows(&mut self, completion: &Completion) -> Result<()> {
        self.is_open = false;
        self.inner.end_rows(completion)?;
        self.inner.more_follows();
        Ok(())
    }

    fn abandon_rows(&mut self) -> Result<()> {
        self.is_open = false;
        self.inner.abandon_rows()
    }

    fn more_follows(&mut self) {
        self.inner.more_follows();
    }

    fn values(&mut self, values: Vec<Typed>) -> Result<()> {
        self.rows.push(values, &self.account)
    }

    fn local_file(&mut self, _: &[u8]) -> Result<Vec<u8>> {
        Err(Error::local_data_disabled())
    }
}
