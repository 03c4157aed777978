//! Stored programs in a session: CALL, and what a program asks of its session.
//!
//! A CALL, SIGNAL, RESIGNAL or GET DIAGNOSTICS that stands alone is a program of one instruction, so
//! that there is one way in which they work ([`Session::run_alone`]). [`host`] is the session as the
//! host of a program.

pub(super) mod host;

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::Catalog;
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_executor::stored::ProgramRows;
use porpoise_planner::plan::Plan;
use porpoise_programs::compile;
use porpoise_programs::machine::{Machine, Returned};
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
    /// What becomes of the OUT parameters that stand for placeholders of the statement that runs.
    pub out_parameters: OutParameters,
}

/// What becomes of OUT parameters that stand for a prepared statement's placeholders.
#[derive(Default)]
pub(crate) enum OutParameters {
    /// The statement has none: it came as text.
    #[default]
    None,
    /// The client is told their values in a row (COM_STMT_EXECUTE).
    Rows,
    /// They go into the variables that EXECUTE names.
    Variables(Vec<CompactString>),
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
        let out_parameters = std::mem::take(&mut self.programs.out_parameters);
        let is_about_diagnostics = match statement {
            ast::Statement::GetDiagnostics(_) => true,
            ast::Statement::Signal(signal) => signal.is_resignal,
            _ => false,
        };
        let is_outermost = self.state.programs.is_empty();
        if is_about_diagnostics && is_outermost {
            self.state.keep_diagnostics();
            self.state.statement.keeps_diagnostics = false;
        }
        let catalog = self.shared.catalog.load_full();
        let context = self.context(&catalog, sql, types);
        let program = compile::compile_statement(statement, sql.into(), &context)?;
        let is_call = matches!(statement, ast::Statement::Call { .. });
        if is_call {
            reply.expect_more();
        }
        let mut machine = Machine::new(&program, parameters.to_vec());
        let mut host = SessionHost::new(self, catalog, reply);
        let ran = machine.run(&mut host);
        let commit = host.take_commit();
        let returned = std::mem::take(&mut machine.returned);
        if let Err(error) = ran {
            if let Some(commit) = commit {
                commit.wait()?;
            }
            self.programs.has_begun = is_call && error.is(ErrorKind::TableDefinitionChanged);
            return Err(error);
        }
        self.return_out_parameters(out_parameters, returned, reply)?;
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

    /// Gives the values of OUT parameters that stand for placeholders to whoever executes the
    /// statement.
    fn return_out_parameters(
        &mut self,
        out_parameters: OutParameters,
        returned: Vec<Returned>,
        reply: &mut dyn Reply,
    ) -> Result<()> {
        match out_parameters {
            OutParameters::Variables(names) => {
                for Returned {
                    placeholder,
                    column,
                    value,
                } in returned
                {
                    if let Some(name) = names.get(placeholder) {
                        self.state.set_user_variable(name, value, column.ty)?;
                    }
                }
            }
            OutParameters::Rows if !returned.is_empty() && reply.begin_out_parameters() => {
                let values = returned.iter().map(|returned| returned.value.clone());
                let row: Vec<Value> = values.collect();
                let columns = returned.into_iter().map(|returned| returned.column);
                let columns: Vec<ResultColumn> = columns.collect();
                self.send_rows(&columns, &[row], reply)?;
                reply.more_follows();
            }
            OutParameters::Rows | OutParameters::None => {}
        }
        Ok(())
    }
}
