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
        if !traces.is_enabled {
            let context = self.context(catalog, sql, types);
            let plan = planner::plan(statement, &context);
            return plan.map_err(|failed| self.refuse(failed));
        }
        let trace = Trace::new(TraceOptions {
            is_one_line: traces.is_one_line,
            search: traces.search,
            access: traces.access,
            bytes_max: traces.bytes_max,
        });
        let plan = self.plan_telling(statement, catalog, sql, types, &trace)?;
        if !trace.is_unwanted() {
            self.keep_trace(sql, &plan, &trace);
        }
        Ok(plan)
    }

    /// Plans a statement that is explained; returns a query's text, rewritten, too.
    pub(super) fn plan_explained(
        &mut self,
        statement: &ast::Statement,
        catalog: &Catalog,
        sql: &[u8],
        types: &[DataType],
    ) -> Result<(Plan, String)> {
        if self.state.optimizer_traces.is_enabled {
            self.plan_traced(statement, catalog, sql, types)?;
        }
        let trace = Trace::new(TraceOptions::default());
        let plan = self.plan_telling(statement, catalog, sql, types, &trace)?;
        Ok((plan, trace.query()))
    }

    fn plan_telling(
        &self,
        statement: &ast::Statement,
        catalog: &Catalog,
        sql: &[u8],
        types: &[DataType],
        trace: &Trace,
    ) -> Result<Plan> {
        let context = Context {
            trace: Some(trace),
            ..self.context(catalog, sql, types)
        };
        let plan = planner::plan(statement, &context);
        plan.map_err(|failed| self.refuse(failed))
    }

    /// Keeps a trace, which shows what EXPLAIN shows.
    fn keep_trace(&mut self, sql: &[u8], plan: &Plan, trace: &Trace) {
        let explained = check::explained(&self.state, &self.shared.accounts, plan);
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
}
