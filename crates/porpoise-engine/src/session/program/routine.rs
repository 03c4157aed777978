//! Finding a procedure, and running it with the settings that it was created with.
//!
//! While it runs, its SQL mode, character sets and schema are the session's, and with SQL SECURITY
//! DEFINER the session has its definer's privileges (MySQL 8.4 manual, 15.1.17 and 27.6).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_accounts::Account;
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Reply;
use porpoise_core::variables::{self, Position};
use porpoise_programs::code::{CallStatement, Program};
use porpoise_programs::compile;
use porpoise_programs::machine::{Host, Machine, Typed};
use porpoise_session::{active_roles, check};
use porpoise_sql::ast::ParameterMode;
use porpoise_sql::{Modes, ast, stack};
use porpoise_storage::Commit;
use porpoise_types::Value;

use super::definition::{Routine, procedure};
use super::host::SessionHost;
use crate::session::Session;

/// A procedure's schema and name.
pub(super) type Key = (CompactString, CompactString);

/// What OUT parameters have in the end, by argument, and the last commit.
type Called = (Vec<(usize, Typed)>, Option<Commit>);

/// A procedure that is to be called.
pub(super) struct Procedure {
    routine: Arc<Routine>,
    program: Arc<Program>,
}

impl Procedure {
    fn name(&self) -> String {
        format!("{}.{}", self.routine.schema, self.routine.name)
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
            return Err(Error::wrong_argument_count(
                "PROCEDURE",
                self.name(),
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
}

/// What a session was before a program, where that differs.
struct Held {
    variables: Vec<(Position, Value)>,
    schema: Option<CompactString>,
    account: Option<HeldAccount>,
    scope: Option<Arc<porpoise_programs::Scope>>,
}

/// Whose privileges a session had.
struct HeldAccount {
    account: Option<Arc<Account>>,
    active_roles: Vec<Arc<Account>>,
    reached_roles: Vec<Arc<Account>>,
}

impl Session {
    /// A procedure that the session may call, compiled.
    ///
    /// # Errors
    /// 1046 without a schema, 1305 for one that isn't there, 1370 for one that the session may not
    /// execute.
    pub(super) fn find_procedure(&mut self, name: &ast::ObjectName) -> Result<Procedure> {
        let schema = self.state.schema_or_current(name.schema.as_ref())?;
        let catalog = self.shared.catalog.load_full();
        let schema = self.state.folded(&schema).into_owned();
        let full_name = || format!("{schema}.{}", name.name.as_str());
        check::check_routine(&self.state, &schema, full_name())?;
        let routine = procedure(&catalog, &schema, &name.name);
        let routine = routine.ok_or_else(|| Error::routine_does_not_exist("PROCEDURE", full_name()))?;
        let program = self.compiled(&routine)?;
        Ok(Procedure { routine, program })
    }

    /// Calls a procedure with the values of its arguments.
    pub(super) fn call(
        &mut self,
        procedure: &Procedure,
        arguments: Vec<Typed>,
        reply: &mut dyn Reply,
    ) -> Result<Called> {
        let key = Arc::new((procedure.routine.schema.clone(), procedure.routine.name.clone()));
        self.check_recursion(&key)?;
        let held = self.enter(&procedure.routine)?;
        self.programs.running.push(key);
        let called = self.run_procedure(&procedure.program, arguments, reply);
        self.programs.running.pop();
        self.leave(held);
        called
    }

    fn check_recursion(&self, key: &Key) -> Result<()> {
        let running = self.programs.running.iter();
        let depth = running.filter(|running| running.as_ref() == key).count() as u64;
        let limit = match self.state.get("max_sp_recursion_depth") {
            Value::Int(limit) => limit.unsigned_abs(),
            Value::UInt(limit) => limit,
            _ => 0,
        };
        match depth > limit {
            true => Err(Error::recursion_limit(limit, &key.1)),
            false => Ok(()),
        }
    }

    fn run_procedure(
        &mut self,
        program: &Program,
        arguments: Vec<Typed>,
        reply: &mut dyn Reply,
    ) -> Result<Called> {
        let catalog = self.shared.catalog.load_full();
        let mut host = SessionHost::new(self, catalog, reply);
        let mut values = Vec::with_capacity(program.slots.len());
        for ((value, ty), slot) in arguments.into_iter().zip(&program.slots) {
            values.push(host.convert(slot, value, &ty)?);
        }
        let mut machine = Machine::new(program, values);
        let ran = machine.run(&mut host);
        let commit = host.take_commit();
        if let Err(error) = ran {
            if let Some(commit) = commit {
                commit.wait()?;
            }
            return Err(error);
        }
        let parameters = program.parameters.iter().enumerate();
        let outs = parameters.filter(|(_, mode)| **mode != ParameterMode::In);
        let outs = outs.map(|(at, _)| {
            let value = machine.value(at).clone();
            (at, (value, program.slots[at].ty.clone()))
        });
        Ok((outs.collect(), commit))
    }

    /// The compiled form of a procedure, made when it is first called.
    fn compiled(&mut self, routine: &Arc<Routine>) -> Result<Arc<Program>> {
        let held = self.enter_settings(routine)?;
        let program = self.compiled_as_set(routine);
        self.leave(held);
        program
    }

    fn compiled_as_set(&mut self, routine: &Routine) -> Result<Arc<Program>> {
        let context_hash = self.planning_context_hash();
        if let Some(program) = routine.compiled.get(context_hash) {
            return Ok(program);
        }
        let catalog = self.shared.catalog.load_full();
        let sql: Arc<[u8]> = routine.create_text().into_bytes().into();
        let modes: Modes = self.modes();
        let broken = || Error::engine_error("an unreadable program");
        let parsed = porpoise_sql::parse_statement(&sql, 0, modes).map_err(|_| broken())?;
        let parsed = parsed.ok_or_else(broken)?;
        let program = stack::reserve(parsed.depth, || {
            let ast::Statement::CreateProgram(create) = &parsed.statement else {
                return Err(broken());
            };
            let context = self.context(&catalog, &sql, &[]);
            let program = compile::compile(create, Arc::clone(&sql), routine.collation, &context)?;
            Ok(Arc::new(program))
        })?;
        routine.compiled.keep(context_hash, Arc::clone(&program));
        Ok(program)
    }

    /// Gives the session a program's settings, and its definer's privileges.
    fn enter(&mut self, routine: &Routine) -> Result<Held> {
        let account = match routine.is_invokers() {
            true => None,
            false => self.become_definer(routine)?,
        };
        let mut held = self.enter_settings(routine)?;
        held.account = account;
        Ok(held)
    }

    fn enter_settings(&mut self, routine: &Routine) -> Result<Held> {
        let scope = self.programs.scope.take();
        let schema = self.state.schema.replace(routine.schema.clone());
        let variables = match routine.has_settings_of(&self.state) {
            true => Vec::new(),
            false => variables::exchange(routine.settings(), &mut self.state),
        };
        Ok(Held {
            variables,
            schema,
            account: None,
            scope,
        })
    }

    fn become_definer(&mut self, routine: &Routine) -> Result<Option<HeldAccount>> {
        // A program that embeds the database may do everything.
        let Some(own) = &self.state.account else {
            return Ok(None);
        };
        let (user, host) = routine.definer_name();
        if own.user == user && own.host.eq_ignore_ascii_case(host) && self.state.active_roles.is_empty()
        {
            return Ok(None);
        }
        let definer = self.shared.accounts.get(user, host);
        let definer = definer.ok_or_else(|| Error::no_such_definer(user, host))?;
        let held = HeldAccount {
            account: self.state.account.replace(definer),
            active_roles: std::mem::take(&mut self.state.active_roles),
            reached_roles: std::mem::take(&mut self.state.reached_roles),
        };
        let activated = active_roles::log_in(&mut self.state, &self.shared.accounts);
        if let Err(error) = activated {
            self.restore_account(held);
            return Err(error);
        }
        Ok(Some(held))
    }

    fn restore_account(&mut self, held: HeldAccount) {
        self.state.account = held.account;
        self.state.active_roles = held.active_roles;
        self.state.reached_roles = held.reached_roles;
    }

    /// Gives the session back what it was.
    fn leave(&mut self, held: Held) {
        if let Some(account) = held.account {
            self.restore_account(account);
        }
        variables::exchange(held.variables, &mut self.state);
        self.state.schema = held.schema;
        self.programs.scope = held.scope;
    }
}
