//! EXPLAIN: a statement's plan, and with ANALYZE what its operators do when it runs.

use std::sync::Arc;

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::{Completion, Reply, ResultColumn, Unread};
use porpoise_planner as planner;
use porpoise_planner::explain::check_explainable;
use porpoise_planner::plan::Plan;
use porpoise_session::check;
use porpoise_sql::ast;
use porpoise_sql::parser::is_explainable;
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value};

use crate::session::Session;

impl Session {
    /// EXPLAIN, in the schema and with the variables that the explained statement has.
    pub(super) fn explain(
        &mut self,
        explain: &ast::Explain,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let statement = match &explain.target {
            ast::ExplainTarget::Statement(statement) => statement,
            ast::ExplainTarget::Connection(id) => {
                return self.explain_connection(explain, *id, reply);
            }
        };
        check_explainable(explain, statement)?;
        let hints = statement.hints().filter(|hints| hints.sets_variables());
        let held = hints.map(|hints| self.set_hinted_variables(hints));
        let outer = self.state.schema.clone();
        if let Some(schema) = &explain.schema {
            self.state.schema = Some(schema.0.clone());
        }
        let explained = self.explain_as_set(explain, statement, sql, types, parameters, reply);
        self.state.schema = outer;
        if let Some(held) = held {
            held.restore(&mut self.state);
        }
        explained
    }

    fn explain_as_set(
        &mut self,
        explain: &ast::Explain,
        statement: &ast::Statement,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let format = planner::explain::format(explain, &self.state)?;
        if let ast::Statement::Call { name, .. } = statement {
            return self.explain_call(name, format, reply).map(|()| None);
        }
        let catalog = self.shared.catalog.load_full();
        let (mut plan, query) = self.plan_explained(statement, &catalog, sql, types)?;
        check::explained(&self.state, &self.shared.accounts, &plan)?;
        let (measures, commit) = match explain.analyze {
            true => {
                plan.measure();
                let catalog = Arc::clone(&catalog);
                self.execute_measured(&plan, &catalog, parameters, &mut Unread)?
            }
            false => {
                self.state.warn_all(&plan.warnings);
                (Vec::new(), None)
            }
        };
        // The answer is no OK, which could be held back.
        if let Some(commit) = commit {
            commit.wait()?;
        }
        if !query.is_empty() {
            let note = Error::rewritten_query(query);
            self.state.warn(Level::Note, note.into_condition());
        }
        let text = String::from_utf8_lossy(sql);
        let (columns, rows) = planner::explain::explain(&plan, &text, format, &measures);
        match &explain.into {
            None => self.send_rows(&columns, &rows, reply)?,
            Some(name) => self.keep_explained(name, &columns, rows, reply)?,
        }
        Ok(None)
    }

    /// FOR CONNECTION: the plan that another session executes at the moment, prepared statements and
    /// those of stored programs included (MySQL 8.4 manual, 10.8.4). A session that executes nothing
    /// is answered with OK.
    ///
    /// # Errors
    /// 1094 for a session that there isn't or that is another user's, to whom PROCESS isn't granted;
    /// 3012 where the statement has no plan; those of EXPLAIN, of privileges above all.
    fn explain_connection(
        &mut self,
        explain: &ast::Explain,
        id: u64,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        if explain.analyze {
            return Err(Error::not_supported_yet("EXPLAIN ANALYZE FOR CONNECTION"));
        }
        if explain.into.is_some() {
            return Err(Error::not_supported_yet("EXPLAIN INTO FOR CONNECTION"));
        }
        let format = planner::explain::format(explain, &self.state)?;
        let control = self.shared.locks.sessions.find(id);
        let control = control.filter(|control| {
            control.user() == self.state.user || check::has_global(&self.state, Privilege::Process)
        });
        let control = control.ok_or_else(|| Error::no_such_thread(id))?;
        let process = control.process();
        let Some(sql) = process.sql else {
            reply.ok(&Completion::default())?;
            return Ok(None);
        };
        let explained = control.look_at_plan(|plan: &Plan| -> Result<_> {
            check::explained(&self.state, &self.shared.accounts, plan)?;
            Ok(planner::explain::explain(plan, &sql, format, &[]))
        });
        let (columns, rows) = match explained {
            Some(explained) => explained?,
            None if is_explainable(sql.as_bytes(), self.modes()) => {
                planner::explain::explain_unplanned(format)
            }
            None => return Err(Error::explain_not_supported()),
        };
        self.send_rows(&columns, &rows, reply)?;
        Ok(None)
    }

    /// INTO @name.
    fn keep_explained(
        &mut self,
        name: &ast::Ident,
        columns: &[ResultColumn],
        rows: Vec<Vec<Value>>,
        reply: &mut dyn Reply,
    ) -> Result<()> {
        let mut values = rows.into_iter().flatten();
        if let (Some(value), Some(column)) = (values.next(), columns.first()) {
            let name = name.to_ascii_lowercase();
            self.state
                .set_user_variable(&name, value, column.ty.clone())?;
        }
        reply.ok(&Completion {
            affected_rows: 1,
            warnings: self.state.warning_count(),
            ..Completion::default()
        })
    }
}
