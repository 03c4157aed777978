//! Executing a plan: privileges, metadata locks, the view of storage, and the commit in autocommit
//! mode.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use porpoise_catalog::{Catalog, Table};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::reply::{Reply, ResultColumn};
use porpoise_core::variables::Isolation;
use porpoise_executor::{Exec, View, handler, statement};
use porpoise_mdl::process::Control;
use porpoise_mdl::{MdlContext, MdlScope, StatementTables};
use porpoise_planner::plan::{Measure, Plan, PlanKind};
use porpoise_planner::{self as planner, explain};
use porpoise_session::SessionTransaction;
use porpoise_session::check;
use porpoise_session::check::Privileged;
use porpoise_session::deadlines::Deadline;
use porpoise_session::plan_cache::CachedPlan;
use porpoise_session::plan_locks::lock_tables_of;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_sql::{Digest, Literals, stack};
use porpoise_storage::{Commit, InterruptCause, Savepoint};
use porpoise_types::Value;

use crate::session::Session;
use crate::session::execute_text::now_us;
use crate::session::transaction::TransactionState;

/// A session's statement was seen to compute for long: the next one with its plan is expected to, and
/// gets told of before it begins, as one that reads many rows does.
pub fn expect_long(session: &Control) {
    session.look_at_plan(|plan: &Plan| plan.expected_long.set());
}

/// A plan that the session may execute, and what it is executed with.
#[derive(Clone, Copy)]
struct Execution<'a> {
    plan: Privileged<'a, Plan>,
    catalog: &'a Catalog,
    parameters: &'a [Value],
    columns: Option<&'a [ResultColumn]>,
    rows: Rows<'a>,
    /// It begins a transaction, which ends with it.
    is_whole_transaction: bool,
}

/// What becomes of a plan's rows.
#[derive(Clone, Copy)]
enum Rows<'a> {
    /// They go where the plan says.
    Sent,
    /// They do, and the figures of a measured plan go here.
    Measured(&'a RefCell<Vec<Measure>>),
    /// HANDLER … READ reads some of them.
    Handled(&'a RefCell<handler::Read>),
}

impl Execution<'_> {
    /// Runs the plan's operators over a view of storage.
    fn run(
        self,
        state: &mut SessionState,
        shared: &Shared,
        view: View<'_>,
        reply: &mut dyn Reply,
    ) -> Result<()> {
        let mut exec = Exec::of_plan(
            state,
            shared,
            self.catalog,
            view,
            self.plan,
            self.parameters,
        );
        exec.is_whole_transaction = self.is_whole_transaction;
        if let Rows::Handled(read) = self.rows {
            return handler::read(&mut exec, self.plan, &mut read.borrow_mut(), reply);
        }
        let executed = statement::execute(&mut exec, self.plan, self.columns, reply);
        if let Rows::Measured(measures) = self.rows {
            measures.replace(exec.take_measures());
        }
        executed
    }

    /// Runs the plan, whose tables are locked, in the session's open transaction. A statement that
    /// fails takes back what it wrote; one that meets a deadlock rolls the transaction back.
    fn run_in(
        self,
        transaction: &mut TransactionState,
        state: &mut SessionState,
        shared: &Shared,
        control: &Control,
        reply: &mut dyn Reply,
    ) -> Result<()> {
        if !self.plan.tables.is_empty() {
            transaction.open = true;
        }
        check_read_view(transaction, self.plan.get())?;
        let (mut storage, savepoint) = self.begin_writing(transaction, state, shared, control)?;
        let executed = self.run(state, shared, View::Transaction(&mut storage), reply);
        match executed {
            Ok(()) => {
                if storage.reads_uncommitted() {
                    storage.forget_view();
                }
                transaction.storage = Some(storage);
                Ok(())
            }
            Err(error) if error.is(ErrorKind::Deadlock) => {
                drop(storage);
                transaction.rollback(control);
                Err(error)
            }
            Err(error) => {
                storage.rollback_to(savepoint);
                let confirmed = storage.confirm();
                transaction.storage = Some(storage);
                Err(confirmed.err().map_or(error, Error::from))
            }
        }
    }

    /// Runs a plan that writes, whose tables are locked, as a transaction by itself: it is
    /// committed, or rolled back if it fails.
    fn run_and_commit(
        self,
        transaction: &mut TransactionState,
        state: &mut SessionState,
        shared: &Shared,
        control: &Control,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        check_read_view(transaction, self.plan.get())?;
        let (mut storage, _) = self.begin_writing(transaction, state, shared, control)?;
        let executed = self.run(state, shared, View::Transaction(&mut storage), reply);
        match executed {
            Ok(()) => {
                transaction.storage = Some(storage);
                transaction.commit(control)
            }
            Err(error) => {
                let unconfirmed = storage.unconfirmed();
                drop(storage);
                transaction.rollback(control);
                let confirmed = unconfirmed.map_or(Ok(()), |read| read.wait());
                Err(confirmed.err().map_or(error, Error::from))
            }
        }
    }

    /// Takes the storage transaction for a statement, and a savepoint before the statement.
    ///
    /// What others have committed may be read before the disk has it. A change's reply is safe when
    /// the transaction has ended, which waits for that; rows and errors are told before, so they
    /// wait.
    fn begin_writing(
        self,
        transaction: &mut TransactionState,
        state: &mut SessionState,
        shared: &Shared,
        control: &Control,
    ) -> Result<(SessionTransaction, Savepoint)> {
        let tells_rows = matches!(self.plan.get().kind, PlanKind::Query(_));
        if tells_rows && let Some(storage) = &transaction.storage {
            storage.confirm()?;
        }
        let isolation = transaction.isolation;
        state.statement.keeps_absent_locks = !isolation.refreshes();
        let mut storage = transaction.take_storage(shared, state);
        storage.set_confirms_reads(tells_rows);
        control.held.set_transaction(storage.id());
        match isolation {
            Isolation::ReadUncommitted if tells_rows => storage.read_uncommitted(),
            _ if isolation.refreshes() => storage.forget_view(),
            _ => {}
        }
        storage.begin_statement(&state.memory);
        let savepoint = storage.savepoint();
        Ok((storage, savepoint))
    }
}

impl Session {
    /// Executes a kept plan. `source` is the digest and the literals of the text `sql`, if they are
    /// not those that the plan was made from.
    pub(super) fn execute_cached_plan(
        &mut self,
        cached: &Arc<CachedPlan>,
        catalog: &Arc<Catalog>,
        sql: &[u8],
        source: Option<(Digest, &Literals)>,
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        // Columns named by a text that holds literals are named by the current text.
        if let (PlanKind::Query(query), Some(to), Some((digest, literals))) =
            (&cached.plan.kind, source, &cached.source)
            && query.name_spans.iter().any(Option::is_some)
        {
            let map = porpoise_sql::SourceMap {
                from: (*digest, literals),
                to: (to.0, to.1),
            };
            let mut columns = query.columns.clone();
            for (column, span) in columns.iter_mut().zip(&query.name_spans) {
                if let Some(span) = span {
                    column.name = planner::column_name(map.map(*span).of(sql));
                }
            }
            return self.execute_plan(&cached.plan, catalog, parameters, Some(&columns), reply);
        }
        self.execute_plan(&cached.plan, catalog, parameters, None, reply)
    }

    /// Checks that the session may execute a plan, and executes it in the session's transaction, or
    /// as a transaction by itself. `columns` replace the names and types of the plan's result
    /// columns.
    pub(crate) fn execute_plan(
        &mut self,
        plan: &Plan,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        columns: Option<&[ResultColumn]>,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        stack::reserve(plan.depth, || {
            if !self.state.big_selects
                && explain::row_combinations(plan) > self.state.max_join_size as f64
            {
                return Err(Error::too_big_select());
            }
            self.execute_checked(plan, catalog, parameters, columns, Rows::Sent, reply)
        })
    }

    /// Executes a plan that [`Plan::measure`] prepared; returns what its operators did.
    pub(super) fn execute_measured(
        &mut self,
        plan: &Plan,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<(Vec<Measure>, Option<Commit>)> {
        let measures = RefCell::default();
        let commit = stack::reserve(plan.depth, || {
            let rows = Rows::Measured(&measures);
            self.execute_checked(plan, catalog, parameters, None, rows, reply)
        })?;
        Ok((measures.into_inner(), commit))
    }

    /// Has HANDLER … READ read rows of the plan of a query.
    pub(super) fn execute_handler(
        &mut self,
        plan: &Plan,
        catalog: &Arc<Catalog>,
        read: handler::Read,
        reply: &mut dyn Reply,
    ) -> Result<(handler::Read, Option<Commit>)> {
        let read = RefCell::new(read);
        let rows = Rows::Handled(&read);
        let commit = self.execute_checked(plan, catalog, &[], None, rows, reply)?;
        Ok((read.into_inner(), commit))
    }

    fn execute_checked(
        &mut self,
        plan: &Plan,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        columns: Option<&[ResultColumn]>,
        rows: Rows<'_>,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let plan = check::plan(&self.state, &self.shared.accounts, plan)?;
        if self.is_read_only() && plan.changes_lasting_tables() {
            return Err(Error::read_only_transaction());
        }
        self.state.warn_all(&plan.get().warnings);
        let in_transaction = self.transaction.open || !self.state.autocommit;
        let execution = Execution {
            plan,
            catalog,
            parameters,
            columns,
            rows,
            is_whole_transaction: !in_transaction,
        };
        let deadline = self.deadline(plan.get());
        let expected_long = &plan.get().expected_long;
        let began = expected_long.is_set().then(Instant::now);
        if began.is_some() {
            self.shared.locks.before_computing();
        }
        let committed = self.execute_privileged(execution, in_transaction, reply);
        if let (Some(began), Ok(_)) = (began, &committed) {
            expected_long.record(began.elapsed());
        }
        drop(deadline);
        if !in_transaction {
            self.end_transaction();
        }
        committed.map_err(|error| self.name_interrupt(error))
    }

    /// Has a query interrupted when the time is up that its hint or `max_execution_time` gives it;
    /// `None` where there is no limit. Only a SELECT has one (MySQL 8.4 manual, 7.1.8).
    fn deadline(&self, plan: &Plan) -> Option<Deadline> {
        let PlanKind::Query(query) = &plan.kind else {
            return None;
        };
        let limit_ms = match (
            query.max_execution_time_ms,
            self.state.max_execution_time_ms,
        ) {
            (Some(hinted), _) => hinted.get(),
            (None, 0) => return None,
            (None, limit) => limit,
        };
        // The time counts from when the statement began: it may have been planned for a while.
        let began_us = self.control.since_us();
        let spent = Duration::from_micros(u64::try_from(now_us() - began_us).unwrap_or(0));
        let limit = Duration::from_millis(limit_ms).saturating_sub(spent);
        self.shared.deadlines.note(&self.control, limit)
    }

    /// The error of a statement that was interrupted, by why it was: 1317, or 3024 where its time
    /// was up.
    fn name_interrupt(&self, error: Error) -> Error {
        let timed_out = self.state.interrupt.cause() == Some(InterruptCause::TimeExceeded);
        match error.is(ErrorKind::QueryInterrupted) && timed_out {
            true => Error::query_timeout(),
            false => error,
        }
    }

    /// Takes the metadata locks that the plan needs, and executes it. Others may look at it meanwhile
    /// (EXPLAIN FOR CONNECTION).
    fn execute_privileged(
        &mut self,
        execution: Execution<'_>,
        in_transaction: bool,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let plan = execution.plan;
        self.plan_in_use.during(plan.get(), || {
            let shared: &Shared = &self.shared;
            let control: &Control = &self.control;
            let writes = plan.writes();
            let _changing = match writes {
                true => Some(self.state.begin_change(&shared.locks, control)?),
                false => None,
            };
            if writes && plan.changes_lasting_tables() {
                // Here nobody can switch `read_only` on, as that waits for changes that have begun.
                check::check_writable(&self.state, &shared.variables)?;
                self.transaction.changes_lasting_tables |= in_transaction;
            }
            // A statement that is a transaction by itself releases its tables when it ends.
            let mut statement_tables = StatementTables::none(control);
            let context = MdlContext {
                requester: self.state.requester(&shared.locks),
                control,
            };
            let mut scope = match in_transaction {
                true => {
                    self.transaction.check_plan_in_xa(plan.get())?;
                    MdlScope::Transaction(&mut self.transaction.tables)
                }
                false => MdlScope::Statement(&mut statement_tables),
            };
            if let Err(error) = lock_tables_of(plan.get(), &self.state, context, &mut scope) {
                if error.is(ErrorKind::Deadlock) {
                    self.transaction.rollback(control);
                }
                return Err(error);
            }
            // DDL may have come between planning and the locks.
            let newest = shared.catalog.load();
            if newest.version != execution.catalog.version && !plan.is_current(&newest) {
                return Err(Error::table_definition_changed());
            }
            drop(newest);
            if in_transaction || writes {
                let state = &mut self.state;
                let transaction = &mut self.transaction;
                return match in_transaction {
                    true => execution
                        .run_in(transaction, state, shared, control, reply)
                        .map(|()| None),
                    false => execution.run_and_commit(transaction, state, shared, control, reply),
                };
            }
            let view = if plan.tables.is_empty() {
                View::None
            } else if self.transaction.isolation == Isolation::ReadUncommitted {
                View::Uncommitted(shared.store.uncommitted())
            } else {
                View::Snapshot(shared.store.snapshot())
            };
            let executed = execution.run(&mut self.state, shared, view, reply);
            executed.map(|()| None)
        })
    }
}

/// Refuses a plan with a table whose rows were moved into a new space after the transaction's read
/// view was made: it would see none of them.
fn check_read_view(transaction: &TransactionState, plan: &Plan) -> Result<()> {
    if let Some(storage) = &transaction.storage
        && storage.has_read_view()
        && !transaction.isolation.refreshes()
    {
        let seen = storage.read_view().ts().0;
        let is_gone = |table: &Table| table.state.rebuilt_ts.load(Ordering::Acquire) > seen;
        if plan.tables.iter().any(|(table, _)| is_gone(table)) {
            return Err(Error::table_definition_changed());
        }
    }
    Ok(())
}
