//! EXPLAIN CALL, which MySQL doesn't have: the plans of a procedure's statements.
//!
//! The procedure is entered as CALL enters it, with its settings and its definer's privileges; its
//! statements are planned, and none runs. Whoever asks has to be allowed to read its text.

use std::sync::Arc;

use porpoise_core::error::{Error, Result};
use porpoise_core::reply::{Reply, ResultColumn};
use porpoise_infoschema::{Sight, sight};
use porpoise_planner::Context;
use porpoise_planner::access::PlanError;
use porpoise_planner::explain::{Format, explain};
use porpoise_planner::plan::Plan;
use porpoise_programs::Scope;
use porpoise_programs::code::{Expression, Instruction, Program, SqlStatement};
use porpoise_programs::functions::{plan_expression, plan_statement};
use porpoise_programs::routine::find_procedure;
use porpoise_session::check;
use porpoise_sql::{ast, stack};
use porpoise_types::{DataType, Value};

use crate::session::Session;

/// What EXPLAIN CALL has found: procedures, and a row for each of their statements and of the
/// expressions that read tables.
#[derive(Default)]
struct Procedures {
    /// The names of those that were explained; each is once.
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Procedures {
    /// A statement of the procedure that was found last; `plan` is empty for one without a plan.
    fn add(&mut self, name: &str, program: &Program, number: usize, plan: Option<String>) {
        let (line, text) = program.source(number);
        self.rows.push(vec![
            Value::from(name),
            Value::Int(i64::try_from(line).unwrap_or(i64::MAX)),
            Value::from(&*text),
            plan.map_or(Value::Null, Value::from),
        ]);
    }
}

impl Session {
    /// `EXPLAIN CALL name(…)`: a row for each statement of the procedure, and of those that it
    /// calls.
    pub(super) fn explain_call(
        &mut self,
        name: &ast::ObjectName,
        format: Format,
        reply: &mut dyn Reply,
    ) -> Result<()> {
        let mut found = Procedures::default();
        let format = match format {
            // Which columns a row has depends on no statement.
            Format::Traditional => Format::Tree,
            format => format,
        };
        self.explain_procedure(name, format, &mut found)?;
        let text = |name, length| ResultColumn::expression(name, DataType::varchar(length), true);
        let columns = [
            text("procedure", 129),
            ResultColumn::expression("line", DataType::INT, false),
            text("statement", 16_383),
            text("EXPLAIN", 16_383),
        ];
        self.send_rows(&columns, &found.rows, reply)
    }

    fn explain_procedure(
        &mut self,
        name: &ast::ObjectName,
        format: Format,
        found: &mut Procedures,
    ) -> Result<()> {
        /// What a procedure within a procedure takes of the stack, in levels of a statement.
        const LEVELS: u32 = 8;
        let catalog = self.shared.catalog.load_full();
        let callee = find_procedure(&self.state, &catalog, name)?;
        let name = callee.name();
        if found.names.contains(&name) {
            return Ok(());
        }
        if sight(&self.state, &callee.routine.record) != Sight::All {
            return Err(Error::specific_access_denied("SHOW_ROUTINE"));
        }
        found.names.push(name.clone());
        let held = callee.enter(&mut self.state, &self.shared.accounts)?;
        let scope = self.programs.scope.take();
        stack::reserve(LEVELS, || {
            for instruction in &callee.program.code {
                self.explain_instruction((&name, &callee.program), instruction, format, found);
            }
        });
        self.programs.scope = scope;
        callee.leave(held, &mut self.state);
        Ok(())
    }

    /// What can't be planned or called now has the error for a plan.
    fn explain_instruction(
        &mut self,
        (name, program): (&str, &Program),
        instruction: &Instruction,
        format: Format,
        found: &mut Procedures,
    ) {
        match instruction {
            Instruction::Sql(statement) => {
                let plan = self.explain_step(program, statement, format);
                found.add(name, program, statement.number, plan);
            }
            Instruction::Open { query, .. } => {
                let plan = self.explain_step(program, query, format);
                found.add(name, program, query.number, plan);
            }
            Instruction::Assign { value, .. }
            | Instruction::Keep { value, .. }
            | Instruction::AssignUser { value, .. }
            | Instruction::JumpUnless {
                condition: value, ..
            } => self.explain_value((name, program), value, format, found),
            Instruction::Call(call) => {
                for argument in &call.arguments {
                    self.explain_value((name, program), &argument.value, format, found);
                }
                found.add(name, program, call.number, None);
                let explained = self.explain_procedure(&call.name, format, found);
                if let (Err(error), Some(row)) = (explained, found.rows.last_mut()) {
                    row[3] = Value::from(error.to_string());
                }
            }
            _ => {}
        }
    }

    /// The plan of a statement of a procedure that the session has entered; `None` for one that has
    /// none.
    fn explain_step(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        format: Format,
    ) -> Option<String> {
        use ast::Statement as S;
        let written = &statement.statement;
        if !matches!(
            written,
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_)
        ) {
            return None;
        }
        let plan = |context: &Context<'_>| plan_statement(program, statement, context);
        self.explain_plan(program, statement.number, &statement.scope, format, plan)
    }

    /// An expression of a procedure, if it reads tables.
    fn explain_value(
        &mut self,
        (name, program): (&str, &Program),
        value: &Expression,
        format: Format,
        found: &mut Procedures,
    ) {
        if let Some(number) = value.number {
            let plan = |context: &Context<'_>| plan_expression(program, value, context);
            let plan = self.explain_plan(program, number, &value.scope, format, plan);
            found.add(name, program, number, plan);
        }
    }

    /// A plan as EXPLAIN shows it, or why there is none.
    fn explain_plan(
        &mut self,
        program: &Program,
        number: usize,
        scope: &Arc<Scope>,
        format: Format,
        plan: impl FnOnce(&Context<'_>) -> Result<Plan, PlanError>,
    ) -> Option<String> {
        self.programs.scope = Some(Arc::clone(scope));
        let catalog = self.shared.catalog.load_full();
        let planned = plan(&self.context(&catalog, &[], &[]));
        let planned = planned.map_err(|failed| self.refuse(failed));
        let shown = planned.and_then(|plan| {
            check::explained(&self.state, &self.shared.accounts, &plan)?;
            let (_, text) = program.source(number);
            let (_, rows) = explain(&plan, &text, format, &[]);
            Ok(rows.into_iter().flatten().next())
        });
        match shown {
            Ok(Some(Value::Text(text))) => Some(text.to_string()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    }
}
