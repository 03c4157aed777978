//! From a program's syntax tree to its instructions.
//!
//! A block's variables are declared one after the other in the [`Scope`] that the expressions behind
//! them are bound in; a block that ends takes its own away. Slots are not used again: a program of
//! many blocks has as many slots as it has variables.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_expr::context::check_interrupt;
use porpoise_expr::function::Purity;
use porpoise_expr::typing::declared::{TypeContext, data_type};
use porpoise_expr::{Expr, ExprKind};
use porpoise_planner::plan::Target;
use porpoise_planner::{self as planner, Context, Variables};
use porpoise_sql::Modes;
use porpoise_sql::ast::{self, ProgramKind, ProgramStatement, ProgramStep};
use porpoise_sql::lexer::{Lexer, TokenKind, name_text};
use porpoise_types::{Collation, DataType};

use crate::Scope;
use crate::code::{
    Argument, ArgumentTarget, Asked, CallStatement, Diagnose, Expression, Handler, HandlerScope,
    Instruction, Matched, Planned, Program, RowSlot, Signal, SqlStatement, slot, value_of,
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
        compiler.declare_rows(*time, *event, table, create.body.span)?;
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
    let mut names = HashSet::new();
    for parameter in parameters {
        if !names.insert(parameter.name.to_ascii_lowercase()) {
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
    let placeholders = context.parameters.iter();
    compiler
        .program
        .slots
        .extend(placeholders.map(|ty| slot("?", ty.clone())));
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
    /// The DEFAULT of each slot that was declared with one, and what it may name.
    defaults: HashMap<usize, (Arc<Scope>, ast::Clause)>,
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
                statements: Vec::new(),
                returns: None,
                row_slots: Vec::new(),
                sets_variables: false,
                is_trigger: false,
                statistics: Arc::default(),
                uses: OnceLock::new(),
            },
            scope: Arc::default(),
            defaults: HashMap::new(),
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

    /// Has CONTINUE handlers of a condition, or of CASE's operand, go on here.
    fn resume_here(&mut self, instruction: usize) {
        let here = self.here();
        match &mut self.program.code[instruction] {
            Instruction::JumpUnless { resume, .. } | Instruction::Keep { resume, .. } => {
                *resume = here;
            }
            _ => {}
        }
    }

    fn jump_unless(&mut self, condition: &ast::Expr, span: ast::Span) -> usize {
        let condition = self.expression(condition, span);
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

    /// An expression, bound if it can be bound once for all. One that reads tables is a statement of
    /// its own, with a number.
    fn expression(&mut self, written: &ast::Expr, span: ast::Span) -> Expression {
        let (mut expression, reads_tables) = self.bind(written);
        if reads_tables {
            expression.number = Some(self.number(span));
        }
        expression
    }

    /// An expression, and whether it reads tables, or may do so as it can't be planned now.
    fn bind(&self, written: &ast::Expr) -> (Expression, bool) {
        let context = Context {
            variables: Some(&*self.scope as &dyn Variables),
            sql: &self.program.sql,
            ..*self.context
        };
        let plan = planner::plan_expressions(&[written], &context);
        let bound = match &plan {
            Ok(plan) if plan.user_variables.is_empty() => value_of(plan).cloned(),
            _ => None,
        };
        // In a procedure each statement has its own time: an expression that asks for it is planned
        // as a statement. In functions and triggers it is that of the statement around them.
        let bound = bound.filter(|bound| self.program.runs_within_statement() || !is_timed(bound));
        let reads_tables = match &plan {
            Ok(plan) => !plan.tables.is_empty() || !plan.subplans.is_empty(),
            Err(_) => true,
        };
        let expression = Expression {
            written: written.clone(),
            bound,
            number: None,
            planned: Planned::default(),
            scope: Arc::clone(&self.scope),
        };
        (expression, reads_tables)
    }

    fn statements(&mut self, statements: &[ProgramStatement]) -> Result<()> {
        statements
            .iter()
            .try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &ProgramStatement) -> Result<()> {
        check_interrupt(self.context.session)?;
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
                let exit = compiler.jump_unless(&condition.expr, condition.span);
                compiler.statements(body)?;
                compiler.emit(Instruction::Jump(start));
                compiler.land(exit);
                compiler.resume_here(exit);
                Ok(())
            }),
            ProgramStep::Repeat { label, body, until } => {
                self.repeat(label.as_ref(), |compiler, start| {
                    compiler.statements(body)?;
                    let again = compiler.jump_unless(&until.expr, until.span);
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
                let value = self.expression(value, statement.span);
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
        let mut variables = HashSet::new();
        let (mut conditions, mut cursors) = (HashSet::new(), HashSet::new());
        let (first_condition, first_cursor) = (self.conditions.len(), self.cursors.len());
        let first_cursor_number = self.program.cursors;
        let outer_handlers = self.handlers;
        let label = self.push_label(block.label.as_ref(), None)?;
        let mut exits = Vec::new();
        check_order(&block.declarations)?;
        let inner = self.handlers_of(block);
        if let Some(inner) = inner {
            self.handlers = self.push_handlers(Some(inner));
        }
        for declaration in &block.declarations {
            check_interrupt(self.context.session)?;
            match declaration {
                ast::Declaration::Variables {
                    names,
                    data_type,
                    collation,
                    default,
                } => {
                    for name in names {
                        if !variables.insert(name.to_ascii_lowercase()) {
                            return Err(Error::duplicate_variable(name.as_str()));
                        }
                        let ty = self.data_type(data_type, collation.as_ref(), name)?;
                        let visible = Arc::clone(&self.scope);
                        let slot = self.declare(name, ty);
                        if let Some(default) = default {
                            self.defaults.insert(slot, (visible, default.clone()));
                        }
                        self.set_to_default(slot);
                    }
                }
                ast::Declaration::Condition { name, value } => {
                    if !conditions.insert(name.to_ascii_lowercase()) {
                        return Err(Error::duplicate_condition(name.as_str()));
                    }
                    let matched = self.condition(value)?;
                    self.conditions.push((name.clone(), matched));
                }
                ast::Declaration::Cursor { name, query, span } => {
                    if !cursors.insert(name.to_ascii_lowercase()) {
                        return Err(Error::duplicate_cursor(name.as_str()));
                    }
                    if query.into.is_some() {
                        return Err(Error::cursor_select_into());
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
                    self.handlers = outer_handlers;
                    if let Some(scope) = inner {
                        exits.extend(self.handler(scope, *continues, conditions, body)?);
                    }
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

    /// The scope of the handlers that a block declares, if it does.
    fn handlers_of(&mut self, block: &ast::Block) -> Option<usize> {
        let is_handler = |declaration| matches!(declaration, &ast::Declaration::Handler { .. });
        let declares = block.declarations.iter().any(is_handler);
        declares.then(|| self.push_handlers(None))
    }

    /// A scope for handlers within the current one.
    fn push_handlers(&mut self, hides: Option<usize>) -> usize {
        self.program.handler_scopes.push(HandlerScope {
            parent: Some(self.handlers),
            handlers: Vec::new(),
            hides,
        });
        self.program.handler_scopes.len() - 1
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
            // It stands for success.
            ast::ConditionValue::Number(0) => {
                return Err(Error::incorrect_literal("CONDITION", 0));
            }
            ast::ConditionValue::Number(number) => Matched::Number(*number),
            ast::ConditionValue::SqlState(state) => {
                let is_character = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
                let bad = || Error::bad_sqlstate(String::from_utf8_lossy(state));
                let state = <[u8; 5]>::try_from(&**state).map_err(|_| bad())?;
                if !state.iter().all(is_character) || state.starts_with(b"00") {
                    return Err(bad());
                }
                Matched::SqlState(state)
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
            let unless = self.jump_unless(&arm.condition.expr, arm.condition.span);
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
        operand: Option<&ast::Clause>,
        arms: &[ast::Arm],
        otherwise: Option<&[ProgramStatement]>,
    ) -> Result<()> {
        let visible = self.scope.len();
        let mut conditions = Vec::with_capacity(arms.len() + 1);
        let compared = match operand {
            None => None,
            Some(operand) => {
                let value = self.expression(&operand.expr, operand.span);
                let ty = value.bound.as_ref().map(|bound| bound.ty.clone());
                // No variable that a program declares has such a name.
                let name = format!("case operand {}", self.program.slots.len());
                let slot = self.declare(&name, ty.unwrap_or(DataType::Null));
                conditions.push(self.emit(Instruction::Keep {
                    slot,
                    value,
                    resume: 0,
                }));
                Some(ast::Expr::Column(Box::new(ast::ColumnRef {
                    schema: None,
                    table: None,
                    name: ast::Ident::new(name),
                })))
            }
        };
        let mut ends = Vec::with_capacity(arms.len());
        for arm in arms {
            let ast::Clause { expr, span } = &arm.condition;
            let unless = match &compared {
                None => self.jump_unless(expr, *span),
                Some(operand) => {
                    let sides = Box::new((operand.clone(), expr.clone()));
                    self.jump_unless(&ast::Expr::Binary(ast::BinaryOp::Eq, sides), *span)
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

    /// A loop or block begins; 1309 if its label is that of one it stands in.
    fn push_label(&mut self, name: Option<&ast::Ident>, start: Option<usize>) -> Result<usize> {
        let mut known = self.labels[self.labels_from..]
            .iter()
            .filter_map(|label| label.name.as_ref());
        if let Some(name) = name
            && known.any(|known| known.eq_ignore_ascii_case(name))
        {
            return Err(Error::label_redefined(name.as_str()));
        }
        self.labels.push(Label {
            name: name.cloned(),
            start,
            leaves: Vec::new(),
        });
        Ok(self.labels.len() - 1)
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
        let label = self.push_label(name, Some(start))?;
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

    /// Gives a variable the value that it is declared with.
    fn set_to_default(&mut self, slot: usize) {
        let initial = match self.defaults.get(&slot).cloned() {
            Some((visible, default)) => {
                let here = std::mem::replace(&mut self.scope, visible);
                let value = self.expression(&default.expr, default.span);
                self.scope = here;
                Instruction::Assign { slot, value }
            }
            None => Instruction::Clear(slot),
        };
        self.emit(initial);
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
                Some(slot) if matches!(value, ast::Expr::Default) => {
                    self.set_to_default(slot);
                    Ok(())
                }
                Some(slot) => {
                    let value = self.expression(value, span);
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
                self.assign_column(*old, column, value, span)
            }
            ast::ProgramAssignment::Other(item) => {
                self.sql(&ast::Statement::Set(vec![item.clone()]), span)
            }
        }
    }

    /// Declares the columns of a trigger's rows: those whose names its text holds.
    ///
    /// Errors: 1054 for a column that the table doesn't have, 1363 for a row that there isn't.
    fn declare_rows(
        &mut self,
        time: ast::TriggerTime,
        event: ast::TriggerEvent,
        table: &Table,
        body: ast::Span,
    ) -> Result<()> {
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
                    reads: 0,
                });
            }
        }
        let modes = crate::routine::modes(self.context.session);
        let mut named = Vec::new();
        check_rows(
            body.of(&self.program.sql),
            modes,
            event,
            table,
            |row, column| named.push((row == "OLD", column)),
        )?;
        for slot in &mut self.program.row_slots {
            let same = named.iter();
            let same =
                same.filter(|(is_old, column)| (*is_old, *column) == (slot.is_old, slot.column));
            slot.reads = same.count();
        }
        Ok(())
    }

    /// `SET NEW.column = value`.
    fn assign_column(
        &mut self,
        is_old: bool,
        column: &ast::Ident,
        value: &ast::Expr,
        span: ast::Span,
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
            assigned.reads = assigned.reads.saturating_sub(1);
        }
        let value = self.expression(value, span);
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
                        let value = self.expression(value, span);
                        self.emit(Instruction::AssignUser { name, value });
                    }
                }
                return Ok(());
            }
            ast::Statement::Call { name, args } => {
                let arguments = args
                    .iter()
                    .map(|value| self.argument(value, span))
                    .collect();
                Instruction::Call(Box::new(CallStatement {
                    name: name.clone(),
                    arguments,
                    number: self.number(span),
                }))
            }
            ast::Statement::Signal(signal) => Instruction::Signal(Box::new(self.signal(signal)?)),
            ast::Statement::GetDiagnostics(get) => {
                Instruction::Diagnose(Box::new(self.diagnose(get)?))
            }
            statement => {
                self.check_allowed(statement)?;
                self.program.sets_variables |= matches!(
                    statement,
                    ast::Statement::Set(_) | ast::Statement::Execute { .. }
                );
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
            S::LockTables(_) => Some("LOCK"),
            S::UnlockTables => Some("UNLOCK"),
            S::LoadData(_) => Some("LOAD DATA"),
            S::CreateView(view) if view.alter => Some("ALTER VIEW"),
            S::Maintain {
                action: ast::Maintenance::Check,
                ..
            } => Some("CHECK"),
            S::CreateProgram(create) if matches!(create.kind, ProgramKind::Event { .. }) => {
                return Err(Error::event_recursion());
            }
            S::AlterEvent(alter) if alter.body.is_some() => return Err(Error::event_recursion()),
            S::Handler(_) => Some("HANDLER"),
            S::CreateProgram(create) => {
                return Err(Error::program_within_program(create.kind.name()));
            }
            S::AlterRoutine(alter) => {
                let kind = if alter.is_function {
                    "FUNCTION"
                } else {
                    "PROCEDURE"
                };
                return Err(Error::dropped_within_program(kind));
            }
            S::DropStored {
                kind: kind @ ("PROCEDURE" | "FUNCTION"),
                ..
            } => return Err(Error::dropped_within_program(kind)),
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
            S::Set(items) if items.iter().any(sets_autocommit) => {
                Err(Error::not_settable_in_function("autocommit"))
            }
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::Set(_) | S::Do(_) => {
                Ok(())
            }
            S::Savepoint(_) | S::RollbackTo(_) | S::ReleaseSavepoint(_) => Ok(()),
            statement if is_about_temporary_tables(statement) => Ok(()),
            statement => Err(refuse_in_function(statement)),
        }
    }

    /// The next statement's place among all.
    fn number(&mut self, span: ast::Span) -> usize {
        self.program.statements.push(span);
        self.program.statements.len() - 1
    }

    fn sql_statement(
        &mut self,
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
            number: self.number(span),
            into,
            planned: Planned::default(),
        })
    }

    fn argument(&mut self, value: &ast::Expr, span: ast::Span) -> Argument {
        let target = match value {
            ast::Expr::UserVariable(name) => {
                let name = name.0.to_lowercase();
                Some(ArgumentTarget::Variable(Target::User(name)))
            }
            ast::Expr::Param(number) => Some(ArgumentTarget::Placeholder(*number as usize)),
            ast::Expr::Column(name) => self.argument_variable(name),
            _ => None,
        };
        Argument {
            value: self.expression(value, span),
            target,
        }
    }

    /// A variable that an OUT parameter's value can go into; in a BEFORE trigger also a column of
    /// NEW.
    fn argument_variable(&mut self, name: &ast::ColumnRef) -> Option<ArgumentTarget> {
        let found = self.scope.find(name)?;
        if name.table.is_some() {
            let slots = &mut self.program.row_slots;
            let row = slots.iter_mut().find(|slot| slot.slot == found.number)?;
            let is_before = matches!(self.fired, Some((ast::TriggerTime::Before, _)));
            if row.is_old || !is_before {
                return None;
            }
            row.is_assigned = true;
        }
        Some(ArgumentTarget::Variable(Target::Local(found.number)))
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
                .map(|(item, value)| (*item, self.bind(value).0))
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
                    number: self.bind(number).0,
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

/// Whether an expression is as constant as a statement, but not longer.
fn is_timed(expr: &Expr) -> bool {
    expr.any(&mut |part| match &part.kind {
        ExprKind::Call { function, .. } => function.purity == Purity::Stable,
        _ => false,
    })
}

/// Whether an item sets `@@autocommit`.
fn sets_autocommit(item: &ast::SetItem) -> bool {
    match item {
        ast::SetItem::System { variable, .. } => {
            let is_session = !matches!(variable.scope, Some(ast::VariableScope::Global));
            is_session && variable.name.eq_ignore_ascii_case("autocommit")
        }
        _ => false,
    }
}

/// Whether a statement makes or drops temporary tables alone.
fn is_about_temporary_tables(statement: &ast::Statement) -> bool {
    match statement {
        ast::Statement::CreateTable(create) => create.temporary,
        ast::Statement::CreateTableLike { temporary, .. }
        | ast::Statement::DropTable { temporary, .. } => *temporary,
        _ => false,
    }
}

fn is_user(item: &ast::SetItem) -> bool {
    matches!(item, ast::SetItem::User { .. })
}

/// Looks through a trigger's text for columns of NEW and OLD that there aren't, and tells of those
/// that there are: the row, and the column's position.
fn check_rows(
    text: &[u8],
    modes: Modes,
    event: ast::TriggerEvent,
    table: &Table,
    mut found: impl FnMut(&'static str, usize),
) -> Result<()> {
    use ast::TriggerEvent::{Delete, Insert};
    let mut lexer = Lexer::new(text, 0, modes);
    // The row that is named, and whether a dot has come behind it.
    let mut row: Option<(&'static str, bool)> = None;
    let mut is_qualified = false;
    loop {
        let token = lexer.next();
        let written = token.text(text);
        match (token.kind, row) {
            (TokenKind::End | TokenKind::Invalid, _) => return Ok(()),
            (TokenKind::Word | TokenKind::QuotedName, Some((row_name, true))) => {
                row = None;
                match (row_name, event) {
                    ("OLD", Insert) => return Err(Error::no_such_trigger_row("OLD", "INSERT")),
                    ("NEW", Delete) => return Err(Error::no_such_trigger_row("NEW", "DELETE")),
                    _ => {}
                }
                let column = name_text(token.kind, written);
                match table.column_position(&column) {
                    Some(position) => found(row_name, position),
                    None => return Err(Error::unknown_column(&column, row_name)),
                }
            }
            (TokenKind::Word | TokenKind::QuotedName, _) if !is_qualified => {
                row = match name_text(token.kind, written) {
                    row if row.eq_ignore_ascii_case("NEW") => Some(("NEW", false)),
                    row if row.eq_ignore_ascii_case("OLD") => Some(("OLD", false)),
                    _ => None,
                };
            }
            (_, Some((row_name, false))) if written == b"." => row = Some((row_name, true)),
            _ => row = None,
        }
        is_qualified = written == b".";
    }
}

/// The error of a statement that functions and triggers don't run, by what is wrong with it
/// (MySQL 8.4 manual, 27.8).
pub fn refuse_in_function(statement: &ast::Statement) -> Error {
    use ast::Statement as S;
    match statement {
        S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => {
            Error::not_allowed_in_function("Dynamic SQL")
        }
        S::Flush { .. } => Error::not_allowed_in_function("FLUSH"),
        S::Reset(_) => Error::not_allowed_in_function("RESET"),
        S::Show(_) | S::Describe { .. } | S::Explain(_) | S::Maintain { .. } | S::Histogram(_) => {
            Error::result_set_from_function("function")
        }
        _ => Error::commit_in_function(),
    }
}
