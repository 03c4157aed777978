//! The optimizer trace: planning a statement with `optimizer_trace` enabled.

use porpoise_catalog::Catalog;
use porpoise_core::error::Result;
use porpoise_core::variables::StatementTrace;
use porpoise_planner::plan::Plan;
use porpoise_planner::trace::{Trace, TraceOptions};
use porpoise_planner::{self as planner, Context};
use porpoise_session::check;
use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::session::Session;

impl Session {
    /// Plans a statement that is planned for this one execution; with a trace, if the session wants
    /// one.
    pub(super) fn plan_traced(
        &mut self,
        statement: &ast::Statement,
        catalog: &Catalog,
        sql: &[u8],
        types: &[DataType],
    ) -> Result<Plan> {
        let traces = &self.state.optimizer_traces;
        let trace = traces.is_enabled.then(|| {
            Trace::new(TraceOptions {
                is_one_line: traces.is_one_line,
                search: traces.search,
                access: traces.access,
                bytes_max: traces.bytes_max,
            })
        });
        let context = Context {
            trace: trace.as_ref(),
            ..self.context(catalog, sql, types)
        };
        let plan = planner::plan(statement, &context);
        let plan = plan.map_err(|failed| self.refuse(failed))?;
        if let Some(trace) = trace.filter(|trace| !trace.is_unwanted()) {
            // A trace shows what EXPLAIN shows.
            let explained = check::explained(&self.state, &self.shared.accounts, &plan);
            let may_know = explained.is_ok();
            self.state.optimizer_traces.add(StatementTrace {
                query: String::from_utf8_lossy(sql).into_owned(),
                trace: match may_know {
                    true => trace.text(),
                    false => String::new(),
                },
                missing_bytes: trace.missing_bytes(),
                insufficient_privileges: !may_know,
            });
        }
        Ok(plan)
    }
}
