//! Finding a routine, and running it with the settings that it was created with.
//!
//! While it runs, its SQL mode, character sets and schema are the session's, and with SQL SECURITY
//! DEFINER the session has its definer's privileges (MySQL 8.4 manual, 15.1.17 and 27.6).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_accounts::routine::RoutineName;
use porpoise_accounts::{Account, Accounts};
use porpoise_catalog::program::ProgramKind;
use porpoise_catalog::program_statistics::StatementStatistics;
use porpoise_catalog::{Catalog, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::ResultColumn;
use porpoise_core::variables::{self, Position, SessionVars};
use porpoise_planner::{Context, UnknownContents};
use porpoise_session::session_state::{RunningProgram, SessionState};
use porpoise_session::{active_roles, check};
use porpoise_sql::ast::ParameterMode;
use porpoise_sql::{Modes, ast, stack};
use porpoise_types::Value;

use crate::code::{CallStatement, Program};
use crate::compile;
use crate::definition::{Routine, collation, definer, has_settings_of, procedure, settings};
use crate::machine::{Host, Machine, Typed, store};

/// A routine that is to be called.
#[derive(Debug)]
pub struct Callee {
    /// Its definition.
    pub routine: Arc<Routine>,
    /// Its compiled form.
    pub program: Arc<Program>,
}

/// What a session was before a program, where that differs.
pub struct Held {
    variables: Vec<(Position, Value)>,
    schema: Option<CompactString>,
    account: Option<HeldAccount>,
}

/// Whose privileges a session had.
struct HeldAccount {
    account: Option<Arc<Account>>,
    active_roles: Vec<Arc<Account>>,
    reached_roles: Vec<Arc<Account>>,
}

/// A procedure that the session may call, compiled.
///
/// # Errors
/// 1046 without a schema, 1305 for one that isn't there, 1370 for one that the session may not
/// execute.
pub fn find_procedure(
    state: &SessionState,
    catalog: &Catalog,
    name: &ast::ObjectName,
) -> Result<Callee> {
    let schema = state.schema_or_current(name.schema.as_ref())?;
    let schema = state.folded(&schema).into_owned();
    let full_name = || format!("{schema}.{}", name.name.as_str());
    let named = RoutineName {
        schema: schema.as_str().into(),
        name: name.name.0.clone(),
        is_function: false,
    };
    check::check_routine(state, &named)?;
    let routine = procedure(catalog, &schema, &name.name);
    let routine = routine.ok_or_else(|| Error::routine_does_not_exist("PROCEDURE", full_name()))?;
    let program = compiled(&routine, state, catalog, None)?;
    Ok(Callee { routine, program })
}

/// An event's body, compiled; `None` for one that isn't there.
///
/// # Errors
/// Those of compiling it.
pub fn find_event(
    state: &SessionState,
    catalog: &Catalog,
    schema: &str,
    name: &str,
) -> Result<Option<Callee>> {
    let Some(routine) = catalog.program(schema, ProgramKind::Event, name) else {
        return Ok(None);
    };
    let program = compiled(&routine, state, catalog, None)?;
    Ok(Some(Callee { routine, program }))
}

/// A routine's compiled form, made when it is first called.
pub(crate) fn compiled(
    routine: &Routine,
    session: &SessionVars,
    catalog: &Catalog,
    table: Option<&Table>,
) -> Result<Arc<Program>> {
    // What else its expressions are bound by is the routine's own.
    let digits = u64::from(session.div_precision_increment);
    if let Some(program) = routine.compiled.get::<Program>(digits, catalog.version) {
        return Ok(program);
    }
    let own = own_variables(routine, session);
    let sql: Arc<[u8]> = routine.record.sql.as_bytes().into();
    let broken = || Error::engine_error("an unreadable program");
    let parsed = porpoise_sql::parse_statement(&sql, 0, modes(&own)).map_err(|_| broken())?;
    let parsed = parsed.ok_or_else(broken)?;
    let program = stack::reserve(parsed.depth, || {
        let ast::Statement::CreateProgram(create) = &parsed.statement else {
            return Err(broken());
        };
        let context = Context {
            catalog,
            session: &own,
            temporary_tables: &porpoise_catalog::TemporaryTables::new(),
            parameters: &[],
            literals: &[],
            sql: &sql,
            contents: &UnknownContents,
            variables: None,
            programs: Some(&crate::functions::PROGRAMS),
            trace: None,
        };
        let mut program = compile::compile(
            create,
            Arc::clone(&sql),
            collation(routine),
            &context,
            table,
        )?;
        routine.statistics.by_statement.get_or_init(|| {
            let numbers = 0..program.statements.len();
            let statements = numbers.map(|number| program.source(number));
            statements
                .map(|(line, text)| StatementStatistics::new(line, text.into()))
                .collect()
        });
        program.statistics = Arc::clone(&routine.statistics);
        Ok(Arc::new(program))
    })?;
    routine
        .compiled
        .keep(digits, catalog.version, Arc::clone(&program));
    Ok(program)
}

/// A session's variables with those that a routine was created with.
pub(crate) fn own_variables(routine: &Routine, session: &SessionVars) -> SessionVars {
    let mut own = session.for_connection(session.connection_id);
    variables::exchange(settings(routine), &mut own);
    own.schema = Some(routine.record.schema.clone());
    own
}

impl Callee {
    /// Its schema and name.
    pub fn name(&self) -> String {
        format!(
            "{}.{}",
            self.routine.record.schema, self.routine.record.name
        )
    }

    /// An OUT parameter as a column of the rows that tell a client its value.
    pub fn out_column(&self, parameter: usize) -> ResultColumn {
        let record = &self.routine.record;
        let slot = &self.program.slots[parameter];
        ResultColumn {
            schema: record.schema.clone(),
            table: record.name.clone(),
            original_table: record.name.clone(),
            original_name: slot.name.clone(),
            ..ResultColumn::expression(slot.name.clone(), slot.ty.clone(), true)
        }
    }

    /// Which way each argument's value goes.
    ///
    /// # Errors
    /// 1318 where there are too few or too many, 1414 for one that takes a value and is no variable.
    pub fn check_arguments(&self, call: &CallStatement) -> Result<&[ParameterMode]> {
        let modes = &self.program.parameters;
        let given = call.arguments.len();
        if modes.len() != given {
            let expected = modes.len();
            let name = self.name();
            return Err(Error::wrong_argument_count(
                "PROCEDURE",
                name,
                expected,
                given,
            ));
        }
        for (at, (argument, mode)) in call.arguments.iter().zip(modes).enumerate() {
            if *mode != ParameterMode::In && argument.target.is_none() {
                return Err(Error::out_argument_not_variable(at + 1, self.name()));
            }
        }
        Ok(modes)
    }

    /// Gives the session the routine's settings, and its definer's privileges.
    ///
    /// # Errors
    /// 1449 for a definer that isn't there, 1456 beyond `max_sp_recursion_depth`.
    pub fn enter(&self, state: &mut SessionState, accounts: &Accounts) -> Result<Held> {
        let routine = &self.routine;
        let is_within_statement = self.program.runs_within_statement();
        let running = RunningProgram {
            is_within_statement,
            schema: routine.record.schema.clone(),
            name: routine.record.name.clone(),
        };
        let depth = state.programs.iter().filter(|other| **other == running);
        match depth.count() as u64 {
            0 => {}
            _ if is_within_statement => return Err(Error::recursive_function()),
            depth => {
                let limit = match state.get("max_sp_recursion_depth") {
                    Value::Int(limit) => limit.unsigned_abs(),
                    Value::UInt(limit) => limit,
                    _ => 0,
                };
                if depth > limit {
                    return Err(Error::recursion_limit(limit, &routine.record.name));
                }
            }
        }
        let account = match routine.record.invoker {
            true => None,
            false => become_definer(routine, state, accounts)?,
        };
        state.programs.push(running);
        // Who calls a routine has been asked for the right to; who fires a trigger has not.
        let is_fired = matches!(
            routine.record.kind,
            ProgramKind::Trigger | ProgramKind::Event
        );
        if (account.is_some() || is_fired)
            && let Err(error) = self.check_definer(state)
        {
            state.programs.pop();
            if let Some(held) = account {
                held.restore(state);
            }
            return Err(error);
        }
        let variables = match has_settings_of(routine, state) {
            true => Vec::new(),
            false => variables::exchange(settings(routine), state),
        };
        Ok(Held {
            variables,
            schema: state.schema.replace(routine.record.schema.clone()),
            account,
        })
    }

    /// Somebody may have taken from the definer, whom the session now is, the right to run the routine
    /// (1370), to have a trigger (1142) that reads and changes these columns (1143), or an event
    /// (1044).
    fn check_definer(&self, state: &SessionState) -> Result<()> {
        let record = &self.routine.record;
        let is_function = match record.kind {
            ProgramKind::Function => true,
            ProgramKind::Procedure => false,
            ProgramKind::Trigger => return self.check_trigger(state),
            ProgramKind::Event => {
                return check::check_schema(state, Privilege::Event, &record.schema);
            }
        };
        check::check_routine(
            state,
            &RoutineName {
                schema: record.schema.clone(),
                name: record.name.clone(),
                is_function,
            },
        )
    }

    fn check_trigger(&self, state: &SessionState) -> Result<()> {
        let record = &self.routine.record;
        let Some(fired) = &record.trigger else {
            return Ok(());
        };
        if check::may_have_any_trigger(state) {
            return Ok(());
        }
        check::check_trigger(state, &record.schema, &fired.table)?;
        for row in &self.program.row_slots {
            let column = &self.program.slots[row.slot].name;
            for (is_needed, privilege) in [
                (row.reads > 0, Privilege::Select),
                (row.is_assigned, Privilege::Update),
            ] {
                if is_needed {
                    check::check_column(state, privilege, &record.schema, &fired.table, column)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the session back what it was before it entered the routine. The routine's settings are
    /// its own, also those that it has changed.
    pub fn leave(&self, held: Held, state: &mut SessionState) {
        if let Some(account) = held.account {
            account.restore(state);
        }
        let is_changed = self.program.sets_variables && !has_settings_of(&self.routine, state);
        if held.variables.is_empty() && is_changed {
            variables::exchange(settings(&self.routine), state);
        }
        variables::exchange(held.variables, state);
        state.schema = held.schema;
        state.programs.pop();
    }

    /// Runs the routine, which the session has entered. What its OUT parameters have in the end, by
    /// argument.
    ///
    /// # Errors
    /// The condition that no handler took.
    pub fn run(&self, arguments: Vec<Typed>, host: &mut impl Host) -> Result<Vec<(usize, Typed)>> {
        let program = &self.program;
        let mut machine = Machine::new(program, self.given(arguments, host)?);
        machine.run(host)?;
        let parameters = program.parameters.iter().enumerate();
        let outs = parameters.filter(|(_, mode)| **mode != ParameterMode::In);
        let outs = outs.map(|(at, _)| {
            let value = machine.value(at).clone();
            (at, (value, program.slots[at].ty.clone()))
        });
        Ok(outs.collect())
    }

    /// Runs the function, which the session has entered.
    ///
    /// # Errors
    /// The condition that no handler took; 1321 where it ends without RETURN.
    pub fn run_function(&self, arguments: Vec<Typed>, host: &mut impl Host) -> Result<Value> {
        let mut machine = Machine::new(&self.program, self.given(arguments, host)?);
        let returned = machine.run(host)?;
        returned.ok_or_else(|| Error::function_without_return(&self.routine.record.name))
    }

    /// Runs the trigger, which the session has entered, with the values of its rows' columns, by
    /// slot. The columns of the new row that it may have changed.
    ///
    /// # Errors
    /// The condition that no handler took.
    pub fn run_trigger(
        &self,
        values: Vec<Value>,
        host: &mut impl Host,
    ) -> Result<Vec<(usize, Value)>> {
        let mut machine = Machine::new(&self.program, values);
        machine.run(host)?;
        let assigned = self.program.row_slots.iter().filter(|row| row.is_assigned);
        let assigned = assigned.map(|row| (row.column, machine.value(row.slot).clone()));
        Ok(assigned.collect())
    }

    /// The values of the parameters.
    fn given(&self, arguments: Vec<Typed>, host: &mut impl Host) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(self.program.slots.len());
        for ((value, ty), slot) in arguments.into_iter().zip(&self.program.slots) {
            values.push(store(host, slot, value, &ty)?);
        }
        Ok(values)
    }
}

impl HeldAccount {
    fn restore(self, state: &mut SessionState) {
        state.account = self.account;
        state.active_roles = self.active_roles;
        state.reached_roles = self.reached_roles;
    }
}

fn become_definer(
    routine: &Routine,
    state: &mut SessionState,
    accounts: &Accounts,
) -> Result<Option<HeldAccount>> {
    // A program that embeds the database may do everything.
    let Some(own) = &state.account else {
        return Ok(None);
    };
    let (user, host) = definer(routine);
    if own.user == user && own.host.eq_ignore_ascii_case(host) && state.active_roles.is_empty() {
        return Ok(None);
    }
    let found = accounts.get(user, host);
    let found = found.ok_or_else(|| Error::no_such_definer(user, host))?;
    let held = HeldAccount {
        account: state.account.replace(found),
        active_roles: std::mem::take(&mut state.active_roles),
        reached_roles: std::mem::take(&mut state.reached_roles),
    };
    match active_roles::log_in(state, accounts) {
        Ok(()) => Ok(Some(held)),
        Err(error) => {
            held.restore(state);
            Err(error)
        }
    }
}

/// How the lexer and the parser read a program's text: by its SQL mode.
pub(crate) fn modes(session: &SessionVars) -> Modes {
    let mode = session.sql_mode;
    let flags = [
        (mode.ansi_quotes(), Modes::ANSI_QUOTES),
        (mode.pipes_as_concat(), Modes::PIPES_AS_CONCAT),
        (mode.no_backslash_escapes(), Modes::NO_BACKSLASH_ESCAPES),
        (mode.high_not_precedence(), Modes::HIGH_NOT_PRECEDENCE),
        (mode.ignore_space(), Modes::IGNORE_SPACE),
        (mode.real_as_float(), Modes::REAL_AS_FLOAT),
        (session.lower_case_names, Modes::LOWER_CASE_NAMES),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    set.fold(Modes::NONE, |modes, (_, flag)| modes.with(*flag))
}
