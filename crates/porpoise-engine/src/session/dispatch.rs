//! Statements without a plan: transactions, USE, SET, SHOW, DDL, accounts, PREPARE, KILL and the
//! rest.

use compact_str::CompactString;
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_executor::eval::Evaluate;
use porpoise_executor::{Exec, View};
use porpoise_infoschema::show::ShowContext;
use porpoise_planner as planner;
use porpoise_planner::plan::PlanKind;
use porpoise_session::check;
use porpoise_session::check::Privileged;
use porpoise_sql::ast;
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value, convert};

use super::administer::administer;
use super::program::OutParameters;
use crate::session::Session;

impl Session {
    pub(super) fn dispatch(
        &mut self,
        privileged: Privileged<'_, ast::Statement>,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        use ast::Statement as S;
        let statement = privileged.get();
        if matches!(statement, S::Show(show) if matches!(show.what, ast::ShowWhat::Warnings { .. } | ast::ShowWhat::Errors { .. }))
        {
            self.state.keep_diagnostics();
        }
        self.transaction.check_statement_in_xa(statement)?;
        let mut commit = None;
        let mut message = String::new();
        match statement {
            S::Begin {
                consistent_snapshot,
                read_only,
            } => {
                if check::changes_what_lasts(&self.state, statement) {
                    check::check_writable(&self.state, &self.shared.variables)?;
                }
                // What SET TRANSACTION said is for the transaction that begins, not for one that
                // ends here.
                if self.transaction.open || self.transaction.storage.is_some() {
                    commit = self.commit()?;
                }
                self.state.locked_tables.clear();
                self.transaction.open = true;
                // What the session's transactions are to be from now on doesn't change this one.
                let now = read_only.unwrap_or(self.is_read_only());
                self.transaction.read_only = Some(now);
                if *consistent_snapshot {
                    self.transaction
                        .storage(&self.shared, &self.state)
                        .read_view();
                }
            }
            S::Commit(completion) => {
                commit = self.commit()?;
                self.complete(completion)?;
            }
            S::Rollback(completion) => {
                commit = self.rollback();
                self.complete(completion)?;
            }
            S::Savepoint(name) => {
                if self.transaction.open || !self.state.autocommit {
                    self.transaction.open = true;
                    self.transaction
                        .set_savepoint(name, &self.shared, &self.state);
                }
            }
            S::RollbackTo(name) => self.transaction.rollback_to(name)?,
            S::ReleaseSavepoint(name) => self.transaction.release_savepoint(name)?,
            S::Xa(xa) => return self.xa(xa, reply),
            S::Handler(handler) => return self.handler(handler, sql, reply),
            S::Use(name) => self.init_db(name)?,
            S::Empty => {}
            S::Do(expressions) => {
                for expression in expressions {
                    self.evaluate(expression, sql, types, parameters)?;
                }
            }
            S::Kill { query, id } => {
                let (id, _) = self.evaluate(id, sql, types, parameters)?;
                self.kill(convert::to_uint(&id).0, *query)?;
            }
            S::Prepare { name, source } => {
                let source = match source {
                    ast::PrepareSource::Text(text) => text.to_vec(),
                    ast::PrepareSource::Variable(variable) => {
                        match self.state.user_variable(&variable.to_ascii_lowercase()) {
                            // As in MySQL, so that the error names it.
                            Value::Null => b"NULL".into(),
                            text => convert::to_bytes(&text, &DataType::varchar(0)),
                        }
                    }
                };
                self.deallocate(name);
                let prepared = self.prepare_text(&source)?;
                self.named
                    .insert(name.to_ascii_lowercase().into(), prepared.id);
                "Statement prepared".clone_into(&mut message);
            }
            S::Execute { name, using } => {
                let Some(&id) = self.named.get(name.to_ascii_lowercase().as_str()) else {
                    return Err(Error::unknown_statement_handler(&**name, "EXECUTE"));
                };
                let using = using.iter().map(|name| name.to_lowercase());
                let using: Vec<CompactString> = using.map(CompactString::from).collect();
                let values: Vec<Value> = using
                    .iter()
                    .map(|variable| self.state.user_variable(variable))
                    .collect();
                self.programs.out_parameters = OutParameters::Variables(using);
                return self.execute_prepared(id, &values, reply);
            }
            S::Deallocate(name) => {
                if !self.deallocate(name) {
                    return Err(Error::unknown_statement_handler(
                        &**name,
                        "DEALLOCATE PREPARE",
                    ));
                }
            }
            S::Call { .. } | S::Signal(_) | S::GetDiagnostics(_) => {
                return self.run_alone(statement, sql, types, parameters, reply);
            }
            S::SetTransaction { .. } | S::Set(_) => self.set(statement, sql, types, parameters)?,
            S::Explain(explain) => return self.explain(explain, sql, types, parameters, reply),
            _ => return administer(self, privileged, sql, types, parameters, reply),
        }
        self.state.row_count = 0;
        reply.ok(&Completion {
            warnings: self.state.warning_count(),
            message,
            ..Completion::default()
        })?;
        Ok(commit)
    }

    /// What SHOW needs of the session.
    pub(super) fn show_context(&self) -> ShowContext<'_> {
        ShowContext {
            state: &self.state,
            shared: &self.shared,
        }
    }

    /// Whether the session may end other accounts' connections (CONNECTION_ADMIN).
    pub fn may_kill(&self) -> bool {
        check::may_kill(&self.state)
    }

    /// Whether `init_connect` is not for this session: it is an administrator's, or one that may
    /// only change its password.
    pub fn is_spared_init_connect(&self) -> bool {
        self.state.must_change_password() || check::is_connection_admin(&self.state)
    }

    /// AND CHAIN and RELEASE.
    fn complete(&mut self, completion: &ast::Completion) -> Result<()> {
        if completion.chain == Some(true) {
            self.transaction.open = true;
        }
        if completion.release == Some(true) {
            self.control.kill_connection();
        }
        Ok(())
    }

    fn deallocate(&mut self, name: &str) -> bool {
        match self.named.remove(name.to_ascii_lowercase().as_str()) {
            Some(id) => {
                self.close_statement(id);
                true
            }
            None => false,
        }
    }

    fn kill(&mut self, id: u64, query: bool) -> Result<()> {
        let Some(control) = self.shared.locks.sessions.find(id) else {
            return Err(Error::no_such_thread(id));
        };
        if control.user() != self.state.user && !porpoise_session::check::may_kill(&self.state) {
            return Err(Error::kill_denied(id));
        }
        if query {
            control.kill_query();
        } else {
            control.kill_connection();
        }
        if id == self.id() {
            return Err(Error::query_interrupted());
        }
        Ok(())
    }

    /// An expression's value and type, with no tables in sight. Subqueries are allowed.
    pub(crate) fn evaluate(
        &mut self,
        expr: &ast::Expr,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
    ) -> Result<(Value, DataType)> {
        let shared = &self.shared;
        let catalog = shared.catalog.load_full();
        let context = self.context(&catalog, sql, types);
        let plan = planner::plan_expressions(&[expr], &context);
        let plan = plan.map_err(|failed| self.refuse(failed))?;
        self.transaction.check_plan_in_xa(&plan)?;
        if !plan.routines.is_empty() {
            return self.evaluate_calling(&plan, &catalog, parameters);
        }
        let plan = check::plan(&self.state, &shared.accounts, &plan)?;
        let PlanKind::Query(query) = &plan.get().kind else {
            return Err(Error::engine_error("an expression's plan"));
        };
        let view = match &mut self.transaction.storage {
            Some(transaction) => View::Transaction(transaction),
            None => View::Snapshot(shared.store.snapshot()),
        };
        let mut exec = Exec::of_plan(&mut self.state, shared, &catalog, view, plan, parameters);
        let Some(bound) = query.output.first() else {
            return Err(Error::engine_error("an expression's plan"));
        };
        let value = bound.eval(&mut exec)?;
        Ok((value, bound.ty.clone()))
    }

    /// Sends rows that were made in memory.
    pub(crate) fn send_rows(
        &mut self,
        columns: &[ResultColumn],
        rows: &[Vec<Value>],
        reply: &mut dyn Reply,
    ) -> Result<()> {
        if let Some(transaction) = &self.transaction.storage {
            transaction.confirm()?;
        }
        self.state.row_count = -1;
        let shared = &self.shared;
        let catalog = shared.catalog.load_full();
        reply.begin_rows(columns)?;
        let exec = Exec::of_rows(&mut self.state, shared, &catalog, View::None, &[], &[]);
        for row in rows {
            reply.begin_row();
            for (value, column) in row.iter().zip(columns) {
                porpoise_executor::statement::write_value(&exec, value, &column.ty, reply);
            }
            reply.end_row()?;
        }
        let warnings = exec.session.warning_count();
        reply.end_rows(&Completion {
            warnings,
            ..Completion::default()
        })
    }

    /// COM_FIELD_LIST: the columns of a table that the session may know of.
    pub fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ResultColumn>> {
        let Some(schema) = self.state.schema.clone() else {
            return Err(Error::no_database_selected());
        };
        let table = &*self.state.folded(table);
        let shared = &self.shared;
        let catalog = shared.catalog.load_full();
        let sql = format!(
            "SELECT * FROM `{}`.`{}`",
            schema.replace('`', "``"),
            table.replace('`', "``")
        );
        let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
        let Ok(Some(parsed)) = parsed else {
            return Err(Error::no_such_table(schema, table));
        };
        let context = self.context(&catalog, sql.as_bytes(), &[]);
        let plan = planner::plan(&parsed.statement, &context);
        let plan = plan.map_err(|failed| self.refuse(failed))?;
        check::check_table_visible(&self.state, &schema, table)?;
        let PlanKind::Query(query) = &plan.kind else {
            return Ok(Vec::new());
        };
        let grants = check::grants(&self.state);
        let is_known = |column: &ResultColumn| {
            let held = grants
                .as_ref()
                .map(|grants| grants.on_column(&schema, table, &column.name));
            held.is_none_or(|held| !held.is_empty())
        };
        let pattern = if wildcard.is_empty() { "%" } else { wildcard };
        let matches = |column: &ResultColumn| {
            porpoise_types::like(
                column.name.as_bytes(),
                pattern.as_bytes(),
                Some('\\'),
                porpoise_types::Collation::UTF8MB4_GENERAL_CI,
            )
        };
        let columns = query.columns.iter().cloned();
        Ok(columns.filter(is_known).filter(matches).collect())
    }
}
