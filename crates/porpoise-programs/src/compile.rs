//! From a program's syntax tree to its instructions.
//!
//! A block's variables are declared one after the other in the [`Scope`] that the expressions behind
//! them are bound in; a block that ends takes its own away. Slots are not used again: a program of
//! many blocks has as many slots as it has variables.

use std::sync::{Arc, OnceLock};

use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_expr::typing::declared::{TypeContext, data_type};
use porpoise_planner::plan::{PlanKind, Target};
use porpoise_planner::{self as planner, Context, Variables};
use porpoise_sql::ast::{self, ProgramKind, ProgramStatement, ProgramStep};
use porpoise_types::{Collation, DataType};

use crate::Scope;
use crate::code::{
    Argument, Asked, CallStatement, Diagnose, Expression, Handler, HandlerScope, Instruction,
    Matched, Planned, Program, RowSlot, Signal, SqlStatement, slot,
};

/// Compiles a program. `collation` is that of texts whose type says none: the schema's.
///
/// # Errors
/// What CREATE refuses a program for: labels, variables, conditions and cursors that aren't there,
/// or are there twice.
pub fn compile(
    create: &ast::CreateProgram,
    sql: Arc<[u8]>,
    collation: Collation,
    context: &Context<'_>,
    table: Option<&Table>,
) -> Result<Program> {
    let mut compiler = Compiler::new(sql, collation, context);
    if let (ProgramKind::Trigger { time, event, .. }, Some(table)) = (&create.kind, table) {
        compiler.declare_rows(*time, *event, table, create.body.span);
    }
    let (parameters, returns) = match &create.kind {
        ProgramKind::Procedure { parameters, .. } => (&parameters[..], None),
        ProgramKind::Function {
            parameters,
            returns,
            ..
        } => (&parameters[..], Some(returns)),
        ProgramKind::Trigger { .. } | ProgramKind::Event { .. } => (&[][..], None),
    };
    for parameter in parameters {
        if compiler.scope.declares(&parameter.name, 0) {
            return Err(Error::duplicate_parameter(parameter.name.as_str()));
        }
        let collation = parameter.collation.as_ref();
        let ty = compiler.data_type(&parameter.data_type, collation, &parameter.name)?;
        compiler.declare(&parameter.name, ty);
    }
    if let Some(returns) = returns {
        let ty = compiler.data_type(&returns.data_type, returns.collation.as_ref(), "")?;
        compiler.program.returns = Some(slot(&create.name.name, ty));
    }
    compiler.program.parameters = parameters.iter().map(|parameter| parameter.mode).collect();
    compiler.statement(&create.body)?;
    if returns.is_some() && !compiler.has_return {
        let schema = context.session.schema.as_deref().unwrap_or_default();
        let name = format!("{schema}.{}", create.name.name.as_str());
        return Err(Error::no_return_in_function(name));
    }
    Ok(compiler.program)
}

/// Compiles a statement that stands alone: SIGNAL, RESIGNAL, GET DIAGNOSTICS outside of a program.
///
/// # Errors
/// As [`compile`].
pub fn compile_statement(
    statement: &ast::Statement,
    sql: Arc<[u8]>,
    context: &Context<'_>,
) -> Result<Program> {
    let mut compiler = Compiler::new(sql, context.session.collation, context);
    compiler.sql(statement, ast::Span::default())?;
    Ok(compiler.program)
}

/// A block or loop that LEAVE and ITERATE can name.
struct Label {
    name: Option<ast::Ident>,
    /// Where ITERATE goes on; `None` for a block.
    start: Option<usize>,
    /// Jumps behind it that wait for its end to be known.
    leaves: Vec<usize>,
}

struct Compiler<'a> {
    context: &'a Context<'a>,
    collation: Collation,
    program: Program,
    scope: Arc<Scope>,
    /// The handlers in force.
    handlers: usize,
    /// Declared conditions, the innermost last.
    conditions: Vec<(ast::Ident, Matched)>,
    /// Declared cursors and their queries, the innermost last.
    cursors: Vec<(ast::Ident, usize, Arc<SqlStatement>)>,
    labels: Vec<Label>,
    /// Labels before this one can't be left: a handler's body is being compiled.
    labels_from: usize,
    has_return: bool,
    /// When and by what the trigger is fired that is being compiled.
    fired: Option<(ast::TriggerTime, ast::TriggerEvent)>,
}

impl<'a> Compiler<'a> {
    fn new(sql: Arc<[u8]>, collation: Collation, context: &'a Context<'a>) -> Compiler<'a> {
        Compiler {
            context,
            collation,
            program: Program {
                sql,
                code: Vec::new(),
                scopes: Vec::new(),
                handler_scopes: vec![HandlerScope::default()],
                slots: Vec::new(),
                parameters: Vec::new(),
                cursors: 0,
                returns: None,
                row_slots: Vec::new(),
                is_trigger: false,
                uses: OnceLock::new(),
            },
            scope: Arc::default(),
            handlers: 0,
            conditions: Vec::new(),
            cursors: Vec::new(),
            labels: Vec::new(),
            labels_from: 0,
            has_return: false,
            fired: None,
        }
    }

    /// Where the next instruction will be.
    fn here(&self) -> usize {
        self.program.code.len()
    }

    fn emit(&mut self, instruction: Instruction) -> usize {
        self.program.code.push(instruction);
        self.program.scopes.push(self.handlers);
        self.here() - 1
    }

    /// Has a jump, which was emitted before its target was known, lead here.
    fn land(&mut self, jump: usize) {
        let here = self.here();
        match &mut self.program.code[jump] {
            Instruction::Jump(target) | Instruction::JumpUnless { target, .. } => *target = here,
            Instruction::EndHandler(target) => *target = Some(here),
            _ => {}
        }
    }

    /// Has CONTINUE handlers of a condition go on here.
    fn resume_here(&mut self, jump: usize) {
        let here = self.here();
        if let Instruction::JumpUnless { resume, .. } = &mut self.program.code[jump] {
            *resume = here;
        }
    }

    fn jump_unless(&mut self, condition: &ast::Expr) -> usize {
        let condition = self.expression(condition);
        self.emit(Instruction::JumpUnless {
            condition,
            target: 0,
            resume: 0,
        })
    }

    fn data_type(
        &self,
        written: &ast::DataType,
        collation: Option<&ast::Ident>,
        name: &str,
    ) -> Result<DataType> {
        let session = self.context.session;
        // What a column definition only warns of goes unsaid here.
        let mut unheard = SessionVars::new(session.connection_id);
        unheard.sql_mode = session.sql_mode;
        let mut context = TypeContext {
            session: &mut unheard,
            collation: self.collation,
            now_us: session.statement.started_us,
        };
        data_type(written, collation, name, &mut context)
    }

    fn declare(&mut self, name: &str, ty: DataType) -> usize {
        let number = self.program.slots.len();
        self.program.slots.push(slot(name, ty.clone()));
        Arc::make_mut(&mut self.scope).declare(name, number, ty);
        number
    }

    /// An expression, bound if it can be bound once for all.
    fn expression(&self, written: &ast::Expr) -> Expression {
        let context = Context {
            variables: Some(&*self.scope as &dyn Variables),
            sql: &self.program.sql,
            ..*self.context
        };
        let plan = planner::plan_expressions(&[written], &context);
        let is_simple = |plan: &planner::plan::Plan| {
            plan.cacheable
                && plan.tables.is_empty()
                && plan.subplans.is_empty()
                && plan.routines.is_empty()
        };
        let bound = match plan {
            Ok(mut plan) if is_simple(&plan) => match plan.take_kind() {
                PlanKind::Query(mut query) => query.output.pop(),
                _ => None,
            },
            _ => None,
        };
        Expression {
            written: written.clone(),
            bound,
            planned: Planned::default(),
            scope: Arc::clone(&self.scope),
        }
    }

    fn statements(&mut self, statements: &[ProgramStatement]) -> Result<()> {
        statements
            .iter()
            .try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &ProgramStatement) -> Result<()> {
        match &statement.step {
            ProgramStep::Block(block) => self.block(block),
            ProgramStep::If { arms, otherwise } => self.if_arms(arms, otherwise),
            ProgramStep::Case {
                operand,
                arms,
                otherwise,
            } => self.case(operand.as_ref(), arms, otherwise.as_deref()),
            ProgramStep::Loop { label, body } => self.repeat(label.as_ref(), |compiler, start| {
                compiler.statements(body)?;
                compiler.emit(Instruction::Jump(start));
                Ok(())
            }),
            ProgramStep::While {
                label,
                condition,
                body,
            } => self.repeat(label.as_ref(), |compiler, start| {
                let exit = compiler.jump_unless(condition);
                compiler.statements(body)?;
                compiler.emit(Instruction::Jump(start));
                compiler.land(exit);
                compiler.resume_here(exit);
                Ok(())
            }),
            ProgramStep::Repeat { label, body, until } => {
                self.repeat(label.as_ref(), |compiler, start| {
                    compiler.statements(body)?;
                    let again = compiler.jump_unless(until);
                    if let Instruction::JumpUnless { target, .. } =
                        &mut compiler.program.code[again]
                    {
                        *target = start;
                    }
                    compiler.resume_here(again);
                    Ok(())
                })
            }
            ProgramStep::Iterate(label) => self.leave(label, "ITERATE"),
            ProgramStep::Leave(label) => self.leave(label, "LEAVE"),
            ProgramStep::Return(value) => {
                if self.program.returns.is_none() {
                    return Err(Error::return_outside_function());
                }
                self.has_return = true;
                let value = self.expression(value);
                self.emit(Instruction::Return(value));
                Ok(())
            }
            ProgramStep::Open(name) => {
                let (cursor, query) = self.cursor(name)?;
                self.emit(Instruction::Open { cursor, query });
                Ok(())
            }
            ProgramStep::Fetch { cursor, into } => {
                let (cursor, _) = self.cursor(cursor)?;
                let into = self.targets(into)?;
                self.emit(Instruction::Fetch { cursor, into });
                Ok(())
            }
            ProgramStep::Close(name) => {
                let (cursor, _) = self.cursor(name)?;
                self.emit(Instruction::Close(cursor));
                Ok(())
            }
            ProgramStep::Set(assignments) => assignments
                .iter()
                .try_for_each(|assignment| self.assignment(assignment, statement.span)),
            ProgramStep::Sql(sql) => self.sql(sql, statement.span),
        }
    }

    fn block(&mut self, block: &ast::Block) -> Result<()> {
        let first_variable = self.scope.len();
        let (first_condition, first_cursor) = (self.conditions.len(), self.cursors.len());
        let first_cursor_number = self.program.cursors;
        let outer_handlers = self.handlers;
        let label = self.push_label(block.label.as_ref(), None);
        let mut exits = Vec::new();
        let mut inner = None;
        check_order(&block.declarations)?;
        for declaration in &block.declarations {
            match declaration {
                ast::Declaration::Variables {
                    names,
                    data_type,
                    collation,
                    default,
                } => {
                    for name in names {
                        if self.scope.declares(name, first_variable) {
                            return Err(Error::duplicate_variable(name.as_str()));
                        }
                        let ty = self.data_type(data_type, collation.as_ref(), name)?;
                        let value = default.as_ref().map(|value| self.expression(value));
                        let slot = self.declare(name, ty);
                        self.emit(match value {
                            Some(value) => Instruction::Assign { slot, value },
                            None => Instruction::Clear(slot),
                        });
                    }
                }
                ast::Declaration::Condition { name, value } => {
                    let declared = &self.conditions[first_condition..];
                    if declared
                        .iter()
                        .any(|(known, _)| known.eq_ignore_ascii_case(name))
                    {
                        return Err(Error::duplicate_condition(name.as_str()));
                    }
                    let matched = self.condition(value)?;
                    self.conditions.push((name.clone(), matched));
                }
                ast::Declaration::Cursor { name, query, span } => {
                    let declared = &self.cursors[first_cursor..];
                    if declared
                        .iter()
                        .any(|(known, ..)| known.eq_ignore_ascii_case(name))
                    {
                        return Err(Error::duplicate_cursor(name.as_str()));
                    }
                    let statement = ast::Statement::Query(query.clone());
                    let query = self.sql_statement(&statement, *span, true)?;
                    self.cursors
                        .push((name.clone(), self.program.cursors, Arc::new(query)));
                    self.program.cursors += 1;
                }
                ast::Declaration::Handler {
                    continues,
                    conditions,
                    body,
                } => {
                    let scope = *inner.get_or_insert_with(|| {
                        self.program.handler_scopes.push(HandlerScope {
                            parent: Some(outer_handlers),
                            handlers: Vec::new(),
                        });
                        self.program.handler_scopes.len() - 1
                    });
                    exits.extend(self.handler(scope, *continues, conditions, body)?);
                }
            }
        }
        let cursors = first_cursor_number..self.program.cursors;
        if !cursors.is_empty() {
            self.emit(Instruction::Forget(cursors.clone()));
        }
        self.handlers = inner.unwrap_or(outer_handlers);
        self.statements(&block.body)?;
        self.handlers = outer_handlers;
        self.pop_label(label);
        for exit in exits {
            self.land(exit);
        }
        if !cursors.is_empty() {
            self.emit(Instruction::Forget(cursors));
        }
        self.conditions.truncate(first_condition);
        self.cursors.truncate(first_cursor);
        Arc::make_mut(&mut self.scope).truncate(first_variable);
        Ok(())
    }

    /// A handler's body, which is jumped over where it stands. What is returned is to lead behind
    /// the block.
    fn handler(
        &mut self,
        scope: usize,
        continues: bool,
        conditions: &[ast::ConditionValue],
        body: &ProgramStatement,
    ) -> Result<Option<usize>> {
        let conditions = conditions.iter().map(|value| self.condition(value));
        let conditions: Vec<Matched> = conditions.collect::<Result<_>>()?;
        let declared = self.program.handler_scopes[scope].handlers.iter();
        let mut declared: Vec<Matched> = declared
            .flat_map(|known| known.conditions.clone())
            .collect();
        for condition in &conditions {
            if declared.contains(condition) {
                return Err(Error::duplicate_handler());
            }
            declared.push(*condition);
        }
        let over = self.emit(Instruction::Jump(0));
        let target = self.here();
        let labels_from = std::mem::replace(&mut self.labels_from, self.labels.len());
        self.statement(body)?;
        self.labels_from = labels_from;
        let end = self.emit(Instruction::EndHandler(None));
        self.land(over);
        self.program.handler_scopes[scope].handlers.push(Handler {
            conditions,
            continues,
            target,
        });
        Ok((!continues).then_some(end))
    }

    fn condition(&self, value: &ast::ConditionValue) -> Result<Matched> {
        Ok(match value {
            ast::ConditionValue::Number(number) => Matched::Number(*number),
            ast::ConditionValue::SqlState(state) => {
                let is_character = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
                if !state.iter().all(is_character) || state.starts_with(b"00") {
                    return Err(Error::bad_sqlstate(String::from_utf8_lossy(state)));
                }
                Matched::SqlState(*state)
            }
            ast::ConditionValue::SqlWarning => Matched::Warning,
            ast::ConditionValue::NotFound => Matched::NotFound,
            ast::ConditionValue::SqlException => Matched::Exception,
            ast::ConditionValue::Name(name) => {
                let mut declared = self.conditions.iter().rev();
                let found = declared.find(|(known, _)| known.eq_ignore_ascii_case(name));
                found
                    .ok_or_else(|| Error::undefined_condition(name.as_str()))?
                    .1
            }
        })
    }

    fn if_arms(&mut self, arms: &[ast::Arm], otherwise: &[ProgramStatement]) -> Result<()> {
        let mut ends = Vec::with_capacity(arms.len());
        let mut conditions = Vec::with_capacity(arms.len());
        for (at, arm) in arms.iter().enumerate() {
            let unless = self.jump_unless(&arm.condition);
            self.statements(&arm.body)?;
            if at + 1 < arms.len() || !otherwise.is_empty() {
                ends.push(self.emit(Instruction::Jump(0)));
            }
            self.land(unless);
            conditions.push(unless);
        }
        self.statements(otherwise)?;
        ends.into_iter().for_each(|end| self.land(end));
        conditions
            .into_iter()
            .for_each(|jump| self.resume_here(jump));
        Ok(())
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        arms: &[ast::Arm],
        otherwise: Option<&[ProgramStatement]>,
    ) -> Result<()> {
        let visible = self.scope.len();
        let compared = match operand {
            None => None,
            Some(operand) => {
                let value = self.expression(operand);
                let ty = value.bound.as_ref().map(|bound| bound.ty.clone());
                // No variable that a program declares has such a name.
                let name = format!("case operand {}", self.program.slots.len());
                let slot = self.declare(&name, ty.unwrap_or(DataType::Null));
                self.emit(Instruction::Keep { slot, value });
                Some(ast::Expr::Column(Box::new(ast::ColumnRef {
                    schema: None,
                    table: None,
                    name: ast::Ident::new(name),
                })))
            }
        };
        let mut ends = Vec::with_capacity(arms.len());
        let mut conditions = Vec::with_capacity(arms.len());
        for arm in arms {
            let unless = match &compared {
                None => self.jump_unless(&arm.condition),
                Some(operand) => {
                    let sides = (operand.clone(), arm.condition.clone());
                    self.jump_unless(&ast::Expr::Binary(ast::BinaryOp::Eq, Box::new(sides)))
                }
            };
            self.statements(&arm.body)?;
            ends.push(self.emit(Instruction::Jump(0)));
            self.land(unless);
            conditions.push(unless);
        }
        match otherwise {
            Some(statements) => self.statements(statements)?,
            None => {
                self.emit(Instruction::CaseNotFound);
            }
        }
        ends.into_iter().for_each(|end| self.land(end));
        conditions
            .into_iter()
            .for_each(|jump| self.resume_here(jump));
        Arc::make_mut(&mut self.scope).truncate(visible);
        Ok(())
    }

    fn push_label(&mut self, name: Option<&ast::Ident>, start: Option<usize>) -> usize {
        self.labels.push(Label {
            name: name.cloned(),
            start,
            leaves: Vec::new(),
        });
        self.labels.len() - 1
    }

    fn pop_label(&mut self, at: usize) {
        for label in self.labels.split_off(at) {
            label.leaves.into_iter().for_each(|jump| self.land(jump));
        }
    }

    fn repeat(
        &mut self,
        name: Option<&ast::Ident>,
        body: impl FnOnce(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        let start = self.here();
        let label = self.push_label(name, Some(start));
        body(self, start)?;
        self.pop_label(label);
        Ok(())
    }

    /// LEAVE and ITERATE.
    fn leave(&mut self, name: &ast::Ident, statement: &str) -> Result<()> {
        let iterates = statement == "ITERATE";
        let labels = self.labels[self.labels_from..].iter().enumerate().rev();
        let mut labels = labels.filter(|(_, label)| {
            let is_it = |known: &ast::Ident| known.eq_ignore_ascii_case(name);
            label.name.as_ref().is_some_and(is_it) && (!iterates || label.start.is_some())
        });
        let found = labels.next().map(|(at, label)| (at, label.start));
        let Some((at, start)) = found else {
            return Err(Error::no_matching_label(statement, name.as_str()));
        };
        let jump = self.emit(Instruction::Jump(start.unwrap_or(0)));
        if !iterates {
            let at = self.labels_from + at;
            self.labels[at].leaves.push(jump);
        }
        Ok(())
    }

    fn cursor(&self, name: &ast::Ident) -> Result<(usize, Arc<SqlStatement>)> {
        let mut declared = self.cursors.iter().rev();
        let found = declared.find(|(known, ..)| known.eq_ignore_ascii_case(name));
        match found {
            Some((_, number, query)) => Ok((*number, Arc::clone(query))),
            None => Err(Error::undefined_cursor(name.as_str())),
        }
    }

    fn target(&self, target: &ast::IntoTarget) -> Result<Target> {
        match target {
            ast::IntoTarget::User(name) => Ok(Target::User(name.0.to_lowercase())),
            ast::IntoTarget::Local(name) => match self.scope.number(name) {
                Some(number) => Ok(Target::Local(number)),
                None => Err(Error::undeclared_variable(name.as_str())),
            },
        }
    }

    fn targets(&self, targets: &[ast::IntoTarget]) -> Result<Vec<Target>> {
        targets.iter().map(|target| self.target(target)).collect()
    }

    fn assignment(&mut self, assignment: &ast::ProgramAssignment, span: ast::Span) -> Result<()> {
        match assignment {
            ast::ProgramAssignment::Name { name, value } => match self.scope.number(name) {
                Some(slot) => {
                    let value = self.expression(value);
                    self.emit(Instruction::Assign { slot, value });
                    Ok(())
                }
                None => {
                    if porpoise_core::variables::find(&name.to_ascii_lowercase()).is_none() {
                        return Err(Error::unknown_system_variable(name.as_str()));
                    }
                    let item = ast::SetItem::System {
                        variable: ast::SystemVariable {
                            scope: None,
                            component: None,
                            name: name.clone(),
                        },
                        value: value.clone(),
                    };
                    self.sql(&ast::Statement::Set(vec![item]), span)
                }
            },
            ast::ProgramAssignment::Row { old, column, value } => {
                self.assign_column(*old, column, value)
            }
            ast::ProgramAssignment::Other(item) => {
                self.sql(&ast::Statement::Set(vec![item.clone()]), span)
            }
        }
    }

    /// Declares the columns of a trigger's rows: those whose names its text holds.
    fn declare_rows(
        &mut self,
        time: ast::TriggerTime,
        event: ast::TriggerEvent,
        table: &Table,
        body: ast::Span,
    ) {
        use ast::TriggerEvent::{Delete, Insert};
        self.program.is_trigger = true;
        self.fired = Some((time, event));
        let text = String::from_utf8_lossy(body.of(&self.program.sql)).to_lowercase();
        let is_named = |name: &str| name.contains('`') || text.contains(&name.to_lowercase());
        for is_old in [false, true] {
            let is_there = if is_old {
                event != Insert
            } else {
                event != Delete
            };
            for (position, column) in table.columns.iter().enumerate() {
                if !is_there || column.hidden || !is_named(&column.name) {
                    continue;
                }
                let slot = self.program.slots.len();
                let ty = column.ty.clone();
                self.program
                    .slots
                    .push(crate::code::slot(&column.name, ty.clone()));
                Arc::make_mut(&mut self.scope).declare_column(is_old, &column.name, slot, ty);
                self.program.row_slots.push(RowSlot {
                    is_old,
                    column: position,
                    slot,
                    is_assigned: false,
                });
            }
        }
    }

    /// `SET NEW.column = value`.
    fn assign_column(
        &mut self,
        is_old: bool,
        column: &ast::Ident,
        value: &ast::Expr,
    ) -> Result<()> {
        let row = if is_old { "OLD" } else { "NEW" };
        let Some((time, event)) = self.fired else {
            return Err(Error::unknown_system_variable(column.as_str()));
        };
        if is_old {
            return Err(Error::trigger_row_not_updatable("OLD", ""));
        }
        if event == ast::TriggerEvent::Delete {
            return Err(Error::no_such_trigger_row("NEW", "DELETE"));
        }
        if time == ast::TriggerTime::After {
            return Err(Error::trigger_row_not_updatable("NEW", "after "));
        }
        let name = ast::ColumnRef {
            schema: None,
            table: Some(ast::Ident::new(row)),
            name: column.clone(),
        };
        let found = self.scope.find(&name);
        let found = found.ok_or_else(|| Error::unknown_column(column.as_str(), row))?;
        let slots = &mut self.program.row_slots;
        if let Some(assigned) = slots.iter_mut().find(|slot| slot.slot == found.number) {
            assigned.is_assigned = true;
        }
        let value = self.expression(value);
        self.emit(Instruction::Assign {
            slot: found.number,
            value,
        });
        Ok(())
    }

    /// A statement that also stands outside of programs.
    fn sql(&mut self, statement: &ast::Statement, span: ast::Span) -> Result<()> {
        let instruction = match statement {
            ast::Statement::Set(items) if items.iter().all(is_user) => {
                for item in items {
                    if let ast::SetItem::User { name, value } = item {
                        let name = name.0.to_lowercase();
                        let value = self.expression(value);
                        self.emit(Instruction::AssignUser { name, value });
                    }
                }
                return Ok(());
            }
            ast::Statement::Call { name, args } => {
                let arguments = args.iter().map(|value| self.argument(value)).collect();
                Instruction::Call(Box::new(CallStatement {
                    name: name.clone(),
                    arguments,
                }))
            }
            ast::Statement::Signal(signal) => Instruction::Signal(Box::new(self.signal(signal)?)),
            ast::Statement::GetDiagnostics(get) => {
                Instruction::Diagnose(Box::new(self.diagnose(get)?))
            }
            statement => {
                self.check_allowed(statement)?;
                Instruction::Sql(Box::new(self.sql_statement(statement, span, false)?))
            }
        };
        self.emit(instruction);
        Ok(())
    }

    /// Refuses what no program may do, and what a program within a statement may not (MySQL 8.4
    /// manual, 27.8).
    fn check_allowed(&self, statement: &ast::Statement) -> Result<()> {
        use ast::Statement as S;
        let refused = match statement {
            S::Use(_) => Some("USE"),
            S::LockTables(_) | S::UnlockTables => Some("LOCK"),
            S::LoadData(_) => Some("LOAD DATA"),
            S::CreateProgram(_) | S::AlterRoutine(_) => Some("CREATE PROCEDURE"),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(Error::not_allowed_in_program(refused));
        }
        if !self.program.runs_within_statement() {
            return Ok(());
        }
        match statement {
            S::Query(query) if query.into.is_none() => {
                let kind = if self.program.is_trigger {
                    "trigger"
                } else {
                    "function"
                };
                Err(Error::result_set_from_function(kind))
            }
            S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => {
                Err(Error::dynamic_sql_in_function())
            }
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::Set(_) | S::Do(_) => {
                Ok(())
            }
            S::Show(_) | S::Describe { .. } | S::Explain(_) => {
                Err(Error::result_set_from_function("function"))
            }
            _ => Err(Error::commit_in_function()),
        }
    }

    fn sql_statement(
        &self,
        statement: &ast::Statement,
        span: ast::Span,
        is_cursor: bool,
    ) -> Result<SqlStatement> {
        let mut into = Vec::new();
        if let ast::Statement::Query(query) = statement
            && let Some(ast::SelectInto::Variables(targets)) = &query.into
        {
            for target in self.targets(targets)? {
                if let Target::Local(slot) = target {
                    into.push(slot);
                }
            }
        }
        Ok(SqlStatement {
            statement: statement.clone(),
            is_cursor,
            scope: Arc::clone(&self.scope),
            span,
            into,
            planned: Planned::default(),
        })
    }

    fn argument(&self, value: &ast::Expr) -> Argument {
        let target = match value {
            ast::Expr::UserVariable(name) => Some(Target::User(name.0.to_lowercase())),
            ast::Expr::Column(name) => self
                .scope
                .find(name)
                .map(|found| Target::Local(found.number)),
            _ => None,
        };
        Argument {
            value: self.expression(value),
            target,
        }
    }

    fn signal(&self, signal: &ast::Signal) -> Result<Signal> {
        let condition = signal.condition.as_ref();
        let condition = condition.map(|value| self.condition(value)).transpose()?;
        if condition.is_some_and(|matched| !matches!(matched, Matched::SqlState(_))) {
            return Err(Error::signal_bad_condition());
        }
        let items = signal.items.iter();
        Ok(Signal {
            is_resignal: signal.is_resignal,
            condition,
            items: items
                .map(|(item, value)| (*item, self.expression(value)))
                .collect(),
        })
    }

    fn diagnose(&self, get: &ast::GetDiagnostics) -> Result<Diagnose> {
        let what = match &get.what {
            ast::Diagnostics::Statement(items) => {
                let items = items.iter();
                let items = items.map(|(target, item)| Ok((self.target(target)?, *item)));
                Asked::Statement(items.collect::<Result<_>>()?)
            }
            ast::Diagnostics::Condition { number, items } => {
                let items = items.iter();
                let items = items.map(|(target, item)| Ok((self.target(target)?, *item)));
                Asked::Condition {
                    number: self.expression(number),
                    items: items.collect::<Result<_>>()?,
                }
            }
        };
        Ok(Diagnose {
            is_stacked: get.is_stacked,
            what,
        })
    }
}

/// Variables and conditions are declared first, then cursors, then handlers.
fn check_order(declarations: &[ast::Declaration]) -> Result<()> {
    let (mut cursors, mut handlers) = (false, false);
    for declaration in declarations {
        match declaration {
            ast::Declaration::Cursor { .. } if handlers => {
                return Err(Error::cursor_after_handler());
            }
            ast::Declaration::Cursor { .. } => cursors = true,
            ast::Declaration::Handler { .. } => handlers = true,
            _ if cursors || handlers => return Err(Error::variable_after_cursor()),
            _ => {}
        }
    }
    Ok(())
}

fn is_user(item: &ast::SetItem) -> bool {
    matches!(item, ast::SetItem::User { .. })
}
