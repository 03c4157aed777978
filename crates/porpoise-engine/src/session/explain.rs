//! EXPLAIN: a statement's plan, and with ANALYZE what its operators do when it runs.

use std::sync::Arc;

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::{Completion, Reply, ResultColumn, Unread};
use porpoise_planner as planner;
use porpoise_planner::explain::explained_statement;
use porpoise_session::check;
use porpoise_sql::ast;
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
        let hints = explained_statement(explain)?.hints();
        let hints = hints.filter(|hints| hints.sets_variables());
        let held = hints.map(|hints| self.set_hinted_variables(hints));
        let outer = self.state.schema.clone();
        if let Some(schema) = &explain.schema {
            self.state.schema = Some(schema.0.clone());
        }
        let explained = self.explain_as_set(explain, sql, types, parameters, reply);
        self.state.schema = outer;
        if let Some(held) = held {
            held.restore(&mut self.state);
        }
        explained
    }

    fn explain_as_set(
        &mut self,
        explain: &ast::Explain,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let statement = explained_statement(explain)?;
        let format = planner::explain::format(explain, &self.state)?;
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
        let (columns, rows) = planner::explain::explain(&plan, statement, &text, format, &measures);
        match &explain.into {
            None => self.send_rows(&columns, &rows, reply)?,
            Some(name) => self.keep_explained(name, &columns, rows, reply)?,
        }
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
                .set_user_variable(&name, value, column.ty.clone());
        }
        reply.ok(&Completion {
            affected_rows: 1,
            warnings: self.state.warning_count(),
            ..Completion::default()
        })
    }
}
