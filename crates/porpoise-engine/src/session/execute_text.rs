//! Statements that come as text: finding a kept plan by the text's digest, or making one.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use porpoise_catalog::Catalog;
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::memory::Charge;
use porpoise_core::reply::Reply;
use porpoise_core::variables::StatementContext;
use porpoise_expr::context::check_interrupt;
use porpoise_mdl::command_counts::CountedCommand;
use porpoise_mdl::process::Command;
use porpoise_planner::access::PlanError;
use porpoise_planner::{self as planner, Context};
use porpoise_session::check;
use porpoise_session::plan_cache::{CachedPlan, PlanKey};
use porpoise_sql::lexer::is_without_statement;
use porpoise_sql::{Digest, Literals, Meter, Modes, ParamMask, ParseError, Parsed, ast, stack};
use porpoise_storage::Commit;
use porpoise_types::{Charset, DataType, Value};

use crate::session::counted_command::command_of;
use crate::session::literals::{has_computed_text, lengthen, text_length};
use crate::session::syntax_error::{syntax_error, syntax_error_near};
use crate::session::{Session, StatementOutcome};

/// What a token takes of memory: its part of the tree, and of the plan that is made of it.
pub(super) const TOKEN_BYTES: usize = 64;

/// A text whose digest is known, and what its plan is looked up or made with.
pub(super) struct DigestedText<'a> {
    pub(super) sql: &'a [u8],
    pub(super) modes: Modes,
    digest: Digest,
    pub(super) literals: &'a Literals,
    catalog: &'a Arc<Catalog>,
    context_hash: u64,
}

impl DigestedText<'_> {
    /// The key of a plan for this statement in the session's present context.
    fn key(&self, statement: u128) -> PlanKey {
        PlanKey {
            statement,
            context_hash: self.context_hash,
        }
    }
}

impl Session {
    /// Executes the first statement of `sql`, and writes the result to `reply`.
    ///
    /// # Errors
    /// Whatever the statement fails with; what it wrote is taken back by then.
    pub fn query(&mut self, sql: &[u8], reply: &mut dyn Reply) -> Result<StatementOutcome> {
        if let Some(text) = self.decoded(sql) {
            let outcome = self.query_utf8(text.as_bytes(), reply);
            return outcome.map(|outcome| StatementOutcome {
                // A byte of the client's for each character.
                rest: text[..outcome.rest].chars().count(),
                ..outcome
            });
        }
        self.query_utf8(sql, reply)
    }

    fn query_utf8(&mut self, sql: &[u8], reply: &mut dyn Reply) -> Result<StatementOutcome> {
        self.begin_statement(Command::Query, sql);
        let outcome = self.replan_if_stale(|session| session.execute_text(sql, reply));
        self.end_statement(&outcome);
        outcome
    }

    /// A statement's text in UTF-8, where the client's character set has another encoding.
    pub(super) fn decoded(&self, sql: &[u8]) -> Option<String> {
        let charset = self.state.client_charset;
        if charset != Charset::Latin1 || sql.is_ascii() {
            return None;
        }
        charset.decode(sql).ok().map(Cow::into_owned)
    }

    /// Executes a statement, and again with a new plan if its tables were changed while it waited
    /// for their metadata locks: by then nothing has been done and nothing replied.
    pub(super) fn replan_if_stale<T>(
        &mut self,
        mut execute: impl FnMut(&mut Session) -> Result<T>,
    ) -> Result<T> {
        /// If so many plans are stale one after the other, the statement fails.
        const PLANS_MAX: u32 = 100;
        let mut version = self.shared.catalog.load().version;
        let mut outcome = execute(self);
        for _ in 1..PLANS_MAX {
            let newest = self.shared.catalog.load().version;
            let is_stale =
                |error: &Error| error.is(ErrorKind::TableDefinitionChanged) && newest != version;
            if !outcome.as_ref().is_err_and(is_stale) || self.programs.take_begun() {
                break;
            }
            version = newest;
            outcome = execute(self);
        }
        outcome
    }

    /// Executes a text with the plan kept for its digest, or makes the plan.
    fn execute_text(&mut self, sql: &[u8], reply: &mut dyn Reply) -> Result<StatementOutcome> {
        let modes = self.modes();
        if self.state.optimizer_traces.is_enabled {
            // A kept plan has nothing to tell.
            return self.execute_uncached(sql, modes, reply);
        }
        let mut literals = std::mem::take(&mut self.literals);
        let Some(digest) = porpoise_sql::digest(sql, modes, &mut literals) else {
            self.literals = literals;
            return self.execute_uncached(sql, modes, reply);
        };
        let catalog = self.shared.catalog.load();
        let text = DigestedText {
            sql,
            modes,
            digest,
            literals: &literals,
            catalog: &catalog,
            context_hash: self.state.planning_context_hash(),
        };
        let outcome = match self.find_plan(&text) {
            Some(cached) if self.holds_texts(&cached, &text) => {
                self.execute_found_plan(&text, &cached, reply)
            }
            outgrown => {
                let lengths = outgrown.map(|cached| cached.text_lengths.clone());
                self.execute_and_cache(&text, &lengths.unwrap_or_default(), reply)
            }
        };
        literals.clear();
        self.literals = literals;
        outcome
    }

    /// The plan kept for a text: under its shape, or under its shape and the literals that are no
    /// parameters.
    fn find_plan(&mut self, text: &DigestedText<'_>) -> Option<Arc<CachedPlan>> {
        let version = text.catalog.version;
        let shared = &self.shared.plans;
        let key = text.key(text.digest.shape);
        if let Some(found) = self.plans.find(shared, key, version) {
            return Some(found);
        }
        let mask = shared.mask(text.digest.shape)?;
        let key = text.key(text.digest.key(text.sql, text.literals, &mask));
        self.plans.find(shared, key, version)
    }

    /// Executes a kept plan with the text's own literals.
    fn execute_found_plan(
        &mut self,
        text: &DigestedText<'_>,
        cached: &Arc<CachedPlan>,
        reply: &mut dyn Reply,
    ) -> Result<StatementOutcome> {
        self.count(cached.command);
        let mut parameters = std::mem::take(&mut self.parameters);
        parameters.clear();
        let mask = cached.mask.as_ref();
        self.literal_values(text.sql, text.literals, mask, text.modes, &mut parameters);
        let source = Some((text.digest, text.literals));
        let catalog = text.catalog;
        let committed =
            self.execute_cached_plan(cached, catalog, text.sql, source, &parameters, reply);
        parameters.clear();
        self.parameters = parameters;
        if self.state.statement.is_misplanned {
            cached.is_retired.store(true, Ordering::Relaxed);
        }
        committed.map(|commit| StatementOutcome {
            rest: text.sql.len(),
            commit,
        })
    }

    /// Parses and plans a text with its literals as parameters, keeps the plan if others may use
    /// it, and executes it.
    fn execute_and_cache(
        &mut self,
        text: &DigestedText<'_>,
        lengths: &[u32],
        reply: &mut dyn Reply,
    ) -> Result<StatementOutcome> {
        let mut charge = Charge::default();
        let parsed = self.parse_charged(&mut charge, |meter| {
            porpoise_sql::parse_digested_metered(text.sql, text.modes, meter)
        });
        let Some((parsed, mask)) = parsed? else {
            return Err(Error::empty_query());
        };
        stack::reserve(parsed.depth, || {
            self.execute_digested(text, parsed, mask, lengths, reply)
        })
    }

    fn execute_digested(
        &mut self,
        text: &DigestedText<'_>,
        parsed: Parsed,
        mask: ParamMask,
        lengths: &[u32],
        reply: &mut dyn Reply,
    ) -> Result<StatementOutcome> {
        let &DigestedText {
            sql,
            modes,
            digest,
            literals,
            catalog,
            ..
        } = text;
        let hints = parsed.statement.hints();
        if !porpoise_sql::digest::is_cacheable(&parsed.statement)
            || hints.is_some_and(ast::StatementHints::sets_variables)
        {
            return self.execute_uncached(sql, modes, reply);
        }
        let command = command_of(&parsed.statement);
        self.count(command);
        let mut parameters = Vec::new();
        self.literal_values(sql, literals, Some(&mask), modes, &mut parameters);
        let mut types: Vec<DataType> = literals
            .iter()
            .map(|literal| self.literal_type(literal.value(sql, modes)))
            .collect();
        for (ty, length) in types.iter_mut().zip(lengths) {
            lengthen(ty, *length);
        }
        let context = Context {
            literals: &parameters,
            ..self.context(catalog, sql, &types)
        };
        let plan = planner::plan(&parsed.statement, &context);
        let plan = plan.map_err(|failed| self.refuse(failed))?;
        let cacheable = plan.cacheable
            && plan.user_variables.is_empty()
            && plan.fixed_parameters.is_empty()
            && self.state.temporary_tables.is_empty();
        let text_lengths = match has_computed_text(&plan) {
            true => types.iter().map(text_length).collect(),
            false => Box::default(),
        };
        let cached = Arc::new(CachedPlan {
            plan,
            text_lengths,
            command,
            catalog_version: catalog.version,
            sql: sql.into(),
            source: Some((digest, literals.clone())),
            mask: Some(mask.clone()),
            is_retired: AtomicBool::new(false),
        });
        if cacheable {
            let key = text.key(digest.key(sql, literals, &mask));
            let shared = &self.shared.plans;
            if key.statement != digest.shape {
                shared.keep_mask(digest.shape, mask);
            }
            shared.keep(key, cached.clone());
            self.plans.keep(key, cached.clone());
        }
        let commit = self.execute_cached_plan(&cached, catalog, sql, None, &parameters, reply)?;
        Ok(StatementOutcome {
            rest: sql.len(),
            commit,
        })
    }

    /// Parses and executes a statement for which no plan is kept.
    fn execute_uncached(
        &mut self,
        sql: &[u8],
        modes: Modes,
        reply: &mut dyn Reply,
    ) -> Result<StatementOutcome> {
        let mut charge = Charge::default();
        let parsed = self.parse_charged(&mut charge, |meter| {
            porpoise_sql::parse_metered(sql, 0, modes, meter)
        });
        let Some(parsed) = parsed? else {
            return Err(Error::empty_query());
        };
        stack::reserve(parsed.depth, || self.execute_parsed(parsed, sql, reply))
    }

    /// Parses a text, and charges the tree, and what is planned with it, as it grows.
    ///
    /// # Errors
    /// Those of the parser and of [`Charge::add`]; 1317 if the statement is to end.
    pub(super) fn parse_charged<T>(
        &self,
        charge: &mut Charge,
        parse: impl FnOnce(&mut Meter<'_>) -> std::result::Result<T, ParseError>,
    ) -> Result<T> {
        let mut refused = None;
        let parsed = parse(&mut |tokens| {
            let charged = charge.add(&self.state.memory, tokens * TOKEN_BYTES);
            let checked = charged.and_then(|()| check_interrupt(&self.state));
            refused = checked.err();
            refused.is_none()
        });
        match refused {
            Some(error) => Err(error),
            None => parsed.map_err(|error| syntax_error(&error)),
        }
    }

    fn execute_parsed(
        &mut self,
        parsed: Parsed,
        sql: &[u8],
        reply: &mut dyn Reply,
    ) -> Result<StatementOutcome> {
        let mut rest = parsed.next;
        if rest < sql.len() && !self.multi_statements {
            if !is_without_statement(sql, rest, self.modes()) {
                return Err(syntax_error_near(sql, rest));
            }
            rest = sql.len();
        }
        if rest < sql.len() {
            reply.expect_more();
        }
        if parsed.placeholders > 0 {
            return Err(syntax_error_near(sql, parsed.span.start as usize));
        }
        self.count(command_of(&parsed.statement));
        let commit = self.execute_statement(&parsed.statement, sql, &[], &[], reply)?;
        Ok(StatementOutcome { rest, commit })
    }

    /// Executes a parsed statement with parameters. Spans of the syntax tree point into `sql`.
    pub(crate) fn execute_statement(
        &mut self,
        statement: &ast::Statement,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let hints = statement.hints();
        let Some(hints) = hints.filter(|hints| hints.sets_variables()) else {
            return self.execute_as_set(statement, sql, types, parameters, reply);
        };
        let held = self.set_hinted_variables(hints);
        let executed = self.execute_as_set(statement, sql, types, parameters, reply);
        held.restore(&mut self.state);
        executed
    }

    /// Executes a parsed statement with the variables as they are.
    fn execute_as_set(
        &mut self,
        statement: &ast::Statement,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        match statement {
            ast::Statement::Query(_)
            | ast::Statement::Insert(_)
            | ast::Statement::Update(_)
            | ast::Statement::Delete(_) => {
                let catalog = self.shared.catalog.load_full();
                let plan = self.plan_traced(statement, &catalog, sql, types)?;
                self.execute_plan(&plan, &catalog, parameters, None, reply)
            }
            ast::Statement::LoadData(load) => {
                self.load_data(statement, load, sql, types, parameters, reply)
            }
            _ => {
                let statement = check::statement(&self.state, statement)?;
                self.dispatch(statement, sql, types, parameters, reply)
            }
        }
    }

    /// The error to return for a statement that could not be planned: it tells nothing of tables
    /// that the session may not know of.
    pub(crate) fn refuse(&self, failed: PlanError) -> Error {
        check::refuse(&self.state, &self.shared.accounts, failed)
    }

    /// Counts a statement for SHOW STATUS.
    #[inline]
    pub(super) fn count(&self, command: Option<CountedCommand>) {
        if let Some(command) = command {
            self.control.counts.count(command);
        }
    }

    /// Starts the clock, sets the diagnostics of the last statement aside, begins a statement
    /// context, and shows this one in the process list.
    pub(super) fn begin_statement(&mut self, command: Command, sql: &[u8]) {
        let now = now_us();
        self.state.begin_diagnostics();
        let started_us = self.state.fixed_timestamp_us.unwrap_or(now);
        self.state.statement = StatementContext::new(started_us, self.reads_lock());
        self.control.begin(command, sql, now);
        if self.state.interrupt.is_set() && !self.control.is_connection_killed() {
            self.state.interrupt.clear();
        }
    }

    /// Keeps the error for SHOW ERRORS, and resets what belongs to one statement.
    pub(super) fn end_statement(&mut self, outcome: &Result<StatementOutcome>) {
        if let Err(error) = outcome {
            self.state.keep_error(error.condition().clone());
            self.state.row_count = -1;
            if error.closes_connection() {
                self.control.kill_connection();
            }
        }
        self.state.load_source = None;
        self.control.end(self.state.statement.started_us);
    }
}

pub(super) fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}
