//! Runs a program's instructions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use porpoise_catalog::Column;
use porpoise_core::error::{Error, ErrorKind, Level, Result};
use porpoise_core::memory::{Charge, MemoryAccount};
use porpoise_core::reply::ResultColumn;
use porpoise_core::variables::SessionVars;
use porpoise_expr::Expr;
use porpoise_expr::context::check_interrupt;
use porpoise_planner::plan::Target;
use porpoise_types::{DataType, Value, convert};

use crate::code::{ArgumentTarget, CallStatement, Expression, Instruction, Program, SqlStatement};
use crate::conditions::{self, Raised};
use crate::routine::Callee;

/// A value with its type.
pub type Typed = (Value, DataType);

/// What runs a program: a session, or a statement that calls a function or fires a trigger.
pub trait Host {
    /// The session's variables, and its diagnostics.
    fn vars(&self) -> &SessionVars;
    /// The same, to change them.
    fn vars_mut(&mut self) -> &mut SessionVars;
    /// The value of a bound expression over the program's variables.
    ///
    /// # Errors
    /// Whatever evaluating it meets.
    fn evaluate(&mut self, expr: &Expr, values: &[Value]) -> Result<Value>;
    /// Plans an expression that isn't bound, and evaluates it, as strictly as the statement does
    /// that it is of.
    ///
    /// # Errors
    /// Whatever planning and evaluating it meet.
    fn query_value(
        &mut self,
        program: &Program,
        expression: &Expression,
        values: &[Value],
    ) -> Result<Typed>;
    /// A value as a variable takes it: converted as a column's.
    ///
    /// # Errors
    /// In strict mode, where something would be lost.
    fn convert(&mut self, into: &Column, value: Value, from: &DataType) -> Result<Value>;
    /// Runs a SQL statement; returns the rows that the program takes itself.
    ///
    /// # Errors
    /// Whatever the statement fails with.
    fn execute(
        &mut self,
        program: &Program,
        statement: &SqlStatement,
        values: &[Value],
    ) -> Result<Rows>;
    /// Ends the rows that a failed statement has begun to send: a handler goes on. Where none does the
    /// error ends them.
    ///
    /// # Errors
    /// Where the client is gone.
    fn end_begun_rows(&mut self) -> Result<()> {
        Ok(())
    }
    /// Calls a procedure; returns it and what its OUT parameters have, by argument.
    ///
    /// # Errors
    /// 1305, 1318, 1370, 1414, 1456, and whatever ends the procedure.
    fn call(
        &mut self,
        program: &Program,
        call: &CallStatement,
        values: &[Value],
    ) -> Result<(Callee, Vec<(usize, Typed)>)>;
}

/// The value of an OUT parameter that stands for a placeholder.
#[derive(Debug)]
pub struct Returned {
    /// The placeholder's number.
    pub placeholder: usize,
    /// The parameter, as a column of the rows that tell a client its value.
    pub column: ResultColumn,
    /// Its value.
    pub value: Value,
}

/// Rows that a program takes: a cursor's, or the one of `SELECT … INTO`.
#[derive(Debug, Default)]
pub struct Rows {
    types: Vec<DataType>,
    rows: Vec<Vec<Value>>,
    charge: Charge,
    /// What came behind the first row: of INTO it counts before the error does.
    failure: Option<Error>,
}

impl Rows {
    /// The rows of a statement that has ended, maybe with an error. SELECT … INTO that finds a second
    /// row has given its first one, as in MySQL.
    ///
    /// # Errors
    /// Any other that it ended with.
    pub fn of_ended(mut self, executed: Result<()>) -> Result<Rows> {
        match executed {
            Err(error) if error.is(ErrorKind::TooManyRows) && !self.rows.is_empty() => {
                self.failure = Some(error);
                Ok(self)
            }
            executed => executed.map(|()| self),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As [`Charge::add`].
    pub fn push(&mut self, row: Vec<Typed>, account: &Arc<MemoryAccount>) -> Result<()> {
        let (values, types): (Vec<Value>, Vec<DataType>) = row.into_iter().unzip();
        let of_value = |value: &Value| size_of::<Value>() + value.heap_bytes();
        let bytes = values.iter().map(of_value).sum::<usize>() + size_of::<Vec<Value>>();
        self.charge.add(account, bytes)?;
        self.types = types;
        self.rows.push(values);
        Ok(())
    }

    /// The only value; `None` where there is none.
    pub fn into_value(self) -> Option<Typed> {
        self.into_row()?.pop()
    }

    /// The only row, with its types; nothing where there is none.
    fn into_row(mut self) -> Option<Vec<Typed>> {
        let values = self.rows.pop()?;
        Some(values.into_iter().zip(self.types).collect())
    }
}

/// An open cursor.
struct Cursor {
    rows: Rows,
    columns: usize,
    next: usize,
}

/// A handler that runs.
struct Handling {
    /// The scope that declares it.
    scope: usize,
    /// Where the program goes on behind it, if it continues.
    resume: usize,
}

/// One run of a program.
pub struct Machine<'p> {
    program: &'p Program,
    /// The variables' values.
    values: Vec<Value>,
    /// What they take of memory.
    charge: Charge,
    cursors: Vec<Option<Cursor>>,
    handling: Vec<Handling>,
    /// How many handlers run in the programs around this one.
    outer_handlers: usize,
    /// A RETURN whose value failed was begun: the function's value is NULL if a handler goes on.
    returns_null: bool,
    /// The values of placeholders that OUT parameters have given.
    pub returned: Vec<Returned>,
}

/// Where the program goes on.
enum Next {
    Step,
    To(usize),
    Return(Value),
}

impl<'p> Machine<'p> {
    /// A run with the values of the parameters, converted; those of OUT parameters are NULL.
    pub fn new(program: &'p Program, mut arguments: Vec<Value>) -> Machine<'p> {
        arguments.resize(program.slots.len(), Value::Null);
        let mut cursors = Vec::new();
        cursors.resize_with(program.cursors, || None);
        Machine {
            program,
            values: arguments,
            charge: Charge::default(),
            cursors,
            handling: Vec::new(),
            outer_handlers: 0,
            returns_null: false,
            returned: Vec::new(),
        }
    }

    /// The value of a slot.
    pub fn value(&self, slot: usize) -> &Value {
        &self.values[slot]
    }

    /// Runs the program to its end. What a function returns; `None` if it ends without RETURN.
    ///
    /// # Errors
    /// The condition that no handler took.
    pub fn run(&mut self, host: &mut impl Host) -> Result<Option<Value>> {
        let bytes =
            size_of_val(&*self.values) + self.values.iter().map(Value::heap_bytes).sum::<usize>();
        self.charge.add(&host.vars().memory, bytes)?;
        self.outer_handlers = host.vars().handled.len();
        let began = Instant::now();
        let ran = self.run_code(host);
        let statistics = &self.program.statistics;
        statistics.runs.add(began.elapsed());
        if ran.is_err() {
            statistics.errors.fetch_add(1, Ordering::Relaxed);
        }
        host.vars_mut().handled.truncate(self.outer_handlers);
        ran
    }

    fn run_code(&mut self, host: &mut impl Host) -> Result<Option<Value>> {
        let mut at = 0;
        while let Some(instruction) = self.program.code.get(at) {
            let next = match self.step(instruction, host) {
                Ok(Next::Step) => at + 1,
                Ok(Next::To(target)) => {
                    if target <= at {
                        check_interrupt(host.vars())?;
                    }
                    target
                }
                Ok(Next::Return(value)) => return Ok(Some(value)),
                Err(error) => {
                    at = self.handle(at, error, host)?;
                    continue;
                }
            };
            at = match host.vars().warnings_total == 0 || tells_nothing(instruction) {
                true => next,
                false => self.handle_warnings(at, next, host),
            };
        }
        Ok(self.returns_null.then_some(Value::Null))
    }

    /// Takes a statement's conditions away before the next one.
    #[inline]
    fn begin(host: &mut impl Host) {
        if host.vars().warnings_total != 0 {
            let vars = host.vars_mut();
            vars.warnings.clear();
            vars.warnings_total = 0;
        }
    }

    #[inline]
    fn step(&mut self, instruction: &Instruction, host: &mut impl Host) -> Result<Next> {
        match instruction {
            Instruction::Assign { slot, value } => {
                Self::begin(host);
                host.vars_mut().statement.changes_rows = true;
                let assigned = match &value.bound {
                    Some(bound) => host.evaluate(bound, &self.values).and_then(|value| {
                        store(host, &self.program.slots[*slot], value, &bound.ty)
                    }),
                    None => self.query_value(value, host).and_then(|(value, ty)| {
                        store(host, &self.program.slots[*slot], value, &ty)
                    }),
                };
                let value = assigned.map_err(|error| self.void(*slot, error))?;
                self.put(*slot, value, host.vars())?;
            }
            Instruction::JumpUnless {
                condition, target, ..
            } => {
                Self::begin(host);
                host.vars_mut().statement.changes_rows = false;
                let value = match &condition.bound {
                    Some(bound) => host.evaluate(bound, &self.values)?,
                    None => self.query_value(condition, host)?.0,
                };
                if convert::to_bool(&value) != Some(true) {
                    return Ok(Next::To(*target));
                }
            }
            Instruction::Jump(target) => return Ok(Next::To(*target)),
            other => return self.step_rarely(other, host),
        }
        Ok(Next::Step)
    }

    fn step_rarely(&mut self, instruction: &Instruction, host: &mut impl Host) -> Result<Next> {
        match instruction {
            // It may ask how many conditions the one before it has left.
            Instruction::Sql(sql) if !sql.is_about_diagnostics() => {
                host.vars_mut().begin_diagnostics();
            }
            other if !keeps_diagnostics(other) => Self::begin(host),
            _ => {}
        }
        match instruction {
            Instruction::Keep { slot, value, .. } => {
                let (value, _) = self.ask(value, host)?;
                self.put(*slot, value, host.vars())?;
            }
            Instruction::Clear(slot) => self.put(*slot, Value::Null, host.vars())?,
            Instruction::AssignUser { name, value } => {
                let (value, ty) = self.ask(value, host)?;
                let vars = host.vars_mut();
                vars.set_user_variable(name, value, ty)?;
                vars.row_count = 0;
            }
            Instruction::Sql(statement) => {
                check_interrupt(host.vars())?;
                let mut rows = self.execute(statement, host)?;
                let failure = rows.failure.take();
                if !statement.into.is_empty()
                    && let Some(row) = rows.into_row()
                {
                    for (slot, value) in statement.into.iter().zip(row) {
                        self.assign(&Target::Local(*slot), value, host)?;
                    }
                }
                if let Some(error) = failure {
                    return Err(error);
                }
            }
            Instruction::Call(call) => {
                check_interrupt(host.vars())?;
                host.vars_mut().statement.changes_rows = true;
                let began = Instant::now();
                let called = host.call(self.program, call, &self.values);
                let (took, failed) = (began.elapsed(), called.is_err());
                let statistics = &self.program.statistics;
                statistics.statement_ran(call.number, took, failed);
                let (callee, outs) = called?;
                for (at, value) in outs {
                    match &call.arguments[at].target {
                        Some(ArgumentTarget::Variable(target)) => {
                            self.assign(target, value, host)?;
                        }
                        Some(ArgumentTarget::Placeholder(number)) => {
                            self.returned.push(Returned {
                                placeholder: *number,
                                column: callee.out_column(at),
                                value: value.0,
                            });
                        }
                        None => {}
                    }
                }
            }
            Instruction::Signal(signal) => conditions::signal(self, signal, host)?,
            Instruction::Diagnose(asked) => conditions::diagnose(self, asked, host)?,
            Instruction::CaseNotFound => return Err(Error::case_not_found()),
            Instruction::Open { cursor, query } => {
                if self.cursors[*cursor].is_some() {
                    return Err(Error::cursor_already_open());
                }
                let rows = self.execute(query, host)?;
                self.cursors[*cursor] = Some(Cursor {
                    columns: rows.types.len(),
                    rows,
                    next: 0,
                });
            }
            Instruction::Fetch { cursor, into } => self.fetch(*cursor, into, host)?,
            Instruction::Close(cursor) => {
                if self.cursors[*cursor].take().is_none() {
                    return Err(Error::cursor_not_open());
                }
            }
            Instruction::Forget(range) => {
                for cursor in &mut self.cursors[range.clone()] {
                    *cursor = None;
                }
            }
            Instruction::EndHandler(exit) => return Ok(self.end_handler(*exit, host)),
            Instruction::Return(value) => {
                self.returns_null = true;
                host.vars_mut().statement.changes_rows = true;
                let (value, ty) = self.evaluate(value, host)?;
                let value = match &self.program.returns {
                    Some(column) => store(host, column, value, &ty)?,
                    None => value,
                };
                return Ok(Next::Return(value));
            }
            Instruction::Assign { .. } | Instruction::JumpUnless { .. } | Instruction::Jump(_) => {}
        }
        Ok(Next::Step)
    }

    fn execute(&self, statement: &SqlStatement, host: &mut impl Host) -> Result<Rows> {
        let began = Instant::now();
        let executed = host.execute(self.program, statement, &self.values);
        let (took, failed) = (began.elapsed(), executed.is_err());
        let statistics = &self.program.statistics;
        statistics.statement_ran(statement.number, took, failed);
        executed
    }

    /// The value and type of an expression that no variable is given: what strict mode makes errors
    /// of in an assignment are warnings.
    pub(crate) fn ask(&self, expression: &Expression, host: &mut impl Host) -> Result<Typed> {
        host.vars_mut().statement.changes_rows = false;
        self.evaluate(expression, host)
    }

    /// An expression's value and type.
    fn evaluate(&self, expression: &Expression, host: &mut impl Host) -> Result<Typed> {
        match &expression.bound {
            Some(bound) => Ok((host.evaluate(bound, &self.values)?, bound.ty.clone())),
            None => self.query_value(expression, host),
        }
    }

    /// The value and type of an expression that isn't bound.
    fn query_value(&self, expression: &Expression, host: &mut impl Host) -> Result<Typed> {
        let Some(number) = expression.number else {
            return host.query_value(self.program, expression, &self.values);
        };
        let began = Instant::now();
        let value = host.query_value(self.program, expression, &self.values);
        let (took, failed) = (began.elapsed(), value.is_err());
        let statistics = &self.program.statistics;
        statistics.statement_ran(number, took, failed);
        value
    }

    /// Gives a variable a value.
    pub(crate) fn assign(
        &mut self,
        target: &Target,
        (value, ty): Typed,
        host: &mut impl Host,
    ) -> Result<()> {
        match target {
            Target::User(name) => host.vars_mut().set_user_variable(name, value, ty)?,
            Target::Local(slot) => {
                let stored = store(host, &self.program.slots[*slot], value, &ty);
                let value = stored.map_err(|error| self.void(*slot, error))?;
                self.put(*slot, value, host.vars())?;
            }
        }
        Ok(())
    }

    /// A variable that can't be given its value is NULL, as in MySQL; a column of a trigger's row keeps
    /// what it has. The error that says why.
    #[cold]
    fn void(&mut self, slot: usize, error: Error) -> Error {
        if !self.program.row_slots.iter().any(|row| row.slot == slot) {
            self.charge.sub(self.values[slot].heap_bytes());
            self.values[slot] = Value::Null;
        }
        error
    }

    /// Puts a value into a slot.
    #[inline]
    fn put(&mut self, slot: usize, value: Value, vars: &SessionVars) -> Result<()> {
        let (before, now) = (self.values[slot].heap_bytes(), value.heap_bytes());
        match now > before {
            true => self.charge.add(&vars.memory, now - before)?,
            false => self.charge.sub(before - now),
        }
        self.values[slot] = value;
        Ok(())
    }

    fn fetch(&mut self, cursor: usize, into: &[Target], host: &mut impl Host) -> Result<()> {
        let Some(open) = &mut self.cursors[cursor] else {
            return Err(Error::cursor_not_open());
        };
        let Some(row) = open.rows.rows.get_mut(open.next) else {
            return Err(Error::no_data());
        };
        if open.columns != into.len() {
            return Err(Error::wrong_fetch_count());
        }
        let values = std::mem::take(row);
        open.next += 1;
        let row: Vec<Typed> = values
            .into_iter()
            .zip(open.rows.types.iter().cloned())
            .collect();
        for (target, value) in into.iter().zip(row) {
            self.assign(target, value, host)?;
        }
        Ok(())
    }

    /// Finds the handler of an error, and where its body begins; the error where there is none.
    fn handle(&mut self, at: usize, error: Error, host: &mut impl Host) -> Result<usize> {
        // What a statement that was killed meets isn't handled, and isn't why it ends.
        if error.closes_connection() {
            return Err(error);
        }
        if host.vars().interrupt.is_set() {
            return Err(match error.is(ErrorKind::QueryTimeout) {
                true => error,
                false => Error::query_interrupted(),
            });
        }
        let raised = Raised::of_error(&error);
        let Some((scope, handler)) =
            conditions::find(self.program, self.program.scopes[at], raised)
        else {
            return Err(error);
        };
        host.end_begun_rows()?;
        let vars = host.vars_mut();
        vars.warn(Level::Error, error.into_condition());
        vars.row_count = -1;
        Ok(self.begin_handler(at, at + 1, scope, handler, host))
    }

    /// Finds the handler of what a statement warned of, and where its body begins; else the program
    /// goes on.
    fn handle_warnings(&mut self, at: usize, next: usize, host: &mut impl Host) -> usize {
        let scope = self.program.scopes[at];
        if self.program.handler_scopes[scope].is_void() {
            return next;
        }
        let warnings = host.vars().warnings.iter();
        let mut found = warnings.rev().filter_map(|(level, condition)| {
            let raised = Raised {
                number: condition.number,
                sqlstate: condition.sqlstate,
                level: *level,
            };
            conditions::find(self.program, scope, raised)
        });
        match found.next() {
            Some((scope, handler)) => self.begin_handler(at, next, scope, handler, host),
            None => next,
        }
    }

    fn begin_handler(
        &mut self,
        at: usize,
        next: usize,
        scope: usize,
        handler: usize,
        host: &mut impl Host,
    ) -> usize {
        let handler = &self.program.handler_scopes[scope].handlers[handler];
        if !handler.continues {
            // The bodies of handlers within the block are left with it.
            while let Some(inner) = self.handling.last()
                && self.program.is_within(inner.scope, scope)
            {
                self.handling.pop();
            }
            let running = self.outer_handlers + self.handling.len();
            host.vars_mut().handled.truncate(running);
        }
        let resume = match &self.program.code[at] {
            Instruction::JumpUnless { resume, .. } | Instruction::Keep { resume, .. } => *resume,
            _ => next,
        };
        self.handling.push(Handling { scope, resume });
        let vars = host.vars_mut();
        vars.handled.push(vars.diagnostics());
        handler.target
    }

    fn end_handler(&mut self, exit: Option<usize>, host: &mut impl Host) -> Next {
        Self::begin(host);
        host.vars_mut().handled.pop();
        let handled = self.handling.pop();
        match (exit, handled) {
            (Some(target), _) => Next::To(target),
            (None, Some(handled)) => Next::To(handled.resume),
            (None, None) => Next::Step,
        }
    }
}

/// Steps that leave the conditions of the statement before them.
fn keeps_diagnostics(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Signal(signal) => signal.is_resignal,
        other => tells_nothing(other),
    }
}

/// Statements about conditions, and steps that are no statements: what they leave isn't theirs.
fn tells_nothing(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Diagnose(_)
        | Instruction::Jump(_)
        | Instruction::Clear(_)
        | Instruction::Forget(_)
        | Instruction::EndHandler(_) => true,
        Instruction::Sql(sql) => sql.is_about_diagnostics(),
        _ => false,
    }
}

/// A value as a variable takes it.
#[inline]
pub(crate) fn store(
    host: &mut impl Host,
    into: &Column,
    value: Value,
    from: &DataType,
) -> Result<Value> {
    match (&value, &into.ty) {
        (Value::Null, _) => return Ok(value),
        (
            Value::Int(number),
            DataType::Int {
                width,
                unsigned: false,
                ..
            },
        ) if matches!(from, DataType::Int { .. }) => {
            let (low, high) = width.range(false);
            if (low..=high).contains(&i128::from(*number)) {
                return Ok(value);
            }
        }
        _ => {}
    }
    host.convert(into, value, from)
}
