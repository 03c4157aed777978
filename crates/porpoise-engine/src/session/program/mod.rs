//! Stored programs in a session: CALL, and what a program asks of its session.
//!
//! A CALL, SIGNAL, RESIGNAL or GET DIAGNOSTICS that stands alone is a program of one instruction, so
//! that there is one way in which they work ([`Session::run_alone`]). [`host`] is the session as the
//! host of a program.

mod host;

use std::sync::Arc;

use porpoise_catalog::Catalog;
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::reply::{Completion, Reply};
use porpoise_executor::stored::ProgramRows;
use porpoise_planner::plan::Plan;
use porpoise_programs::compile;
use porpoise_programs::machine::Machine;
use porpoise_sql::ast;
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value};

use crate::session::Session;
use host::SessionHost;

/// The programs that a session runs.
#[derive(Default)]
pub(crate) struct Programs {
    /// The variables that the statement that runs may name.
    pub scope: Option<Arc<porpoise_programs::Scope>>,
    /// A program ended because a table was changed under a statement: it isn't to run again from
    /// its beginning.
    has_begun: bool,
}

impl Programs {
    /// Whether the statement that failed has run a program, which can't be run again.
    pub fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.has_begun)
    }
}

impl Session {
    /// The value of an expression that calls stored functions: what they use is locked, and what
    /// they change is committed, as a statement's.
    pub(super) fn evaluate_calling(
        &mut self,
        plan: &Plan,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
    ) -> Result<(Value, DataType)> {
        let mut reply = ProgramRows::new(Arc::clone(&self.state.memory));
        let commit = self.execute_plan(plan, catalog, parameters, None, &mut reply)?;
        if let Some(commit) = commit {
            commit.wait()?;
        }
        let value = reply.rows.into_value();
        value.ok_or_else(|| Error::engine_error("an expression without a value"))
    }

    /// Runs a statement that only programs otherwise have: CALL, SIGNAL, RESIGNAL, GET DIAGNOSTICS.
    pub(super) fn run_alone(
        &mut self,
        statement: &ast::Statement,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let is_about_diagnostics = match statement {
            ast::Statement::GetDiagnostics(_) => true,
            ast::Statement::Signal(signal) => signal.is_resignal,
            _ => false,
        };
        let is_outermost = self.state.programs.is_empty();
        if matches!(statement, ast::Statement::Call { .. }) {
            self.state.row_count = 0;
        }
        if is_about_diagnostics && is_outermost {
            self.state.keep_diagnostics();
            self.state.statement.keeps_diagnostics = false;
        }
        let catalog = self.shared.catalog.load_full();
        let context = self.context(&catalog, sql, types);
        let program = compile::compile_statement(statement, sql.into(), &context)?;
        let is_call = matches!(statement, ast::Statement::Call { .. });
        let mut machine = Machine::new(&program, parameters.to_vec());
        let mut host = SessionHost::new(self, catalog, reply);
        let ran = machine.run(&mut host);
        let commit = host.take_commit();
        if let Err(error) = ran {
            if let Some(commit) = commit {
                commit.wait()?;
            }
            self.programs.has_begun = is_call && error.is(ErrorKind::TableDefinitionChanged);
            return Err(error);
        }
        let affected = u64::try_from(self.state.row_count).unwrap_or(0);
        self.state.row_count = i64::try_from(affected).unwrap_or(i64::MAX);
        reply.ok(&Completion {
            affected_rows: match is_call {
                true => affected,
                false => 0,
            },
            warnings: self.state.warning_count(),
            ..Completion::default()
        })?;
        Ok(commit)
    }
}
