//! Prepared statements: COM_STMT_PREPARE's and PREPARE's alike.
//!
//! A statement is parsed once. It is planned when it is prepared, to tell its columns, and again
//! when it runs with parameters of other types than the plan was made for; plans are kept in the
//! statement cache under the text and the types.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use compact_str::CompactString;
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::Charge;
use porpoise_core::reply::{Reply, ResultColumn};
use porpoise_mdl::command_counts::CountedCommand;
use porpoise_mdl::process::Command;
use porpoise_planner as planner;
use porpoise_planner::plan::{Destination, Plan, PlanKind};
use porpoise_session::check;
use porpoise_session::plan_cache::{CachedPlan, PlanKey};
use porpoise_session::planning_context::hash_one;
use porpoise_session::shared::Shared;
use porpoise_sql::lexer::is_without_statement;
use porpoise_sql::{Modes, Parsed, ast, stack};
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value};

use crate::session::counted_command::command_of;
use crate::session::execute_text::TOKEN_BYTES;
use crate::session::program::OutParameters;
use crate::session::syntax_error::syntax_error_near;
use crate::session::{Session, StatementOutcome};

/// What a client learns of a statement it prepared.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What COM_STMT_EXECUTE names it by.
    pub id: u32,
    /// The placeholders, in the order of the text.
    pub parameters: Vec<ResultColumn>,
    /// The columns of the result; empty for a statement without one.
    pub columns: Vec<ResultColumn>,
    /// How many warnings preparing gave.
    pub warnings: u16,
}

/// One of the prepared statements that all sessions may have together.
struct Place(Arc<AtomicU64>);

impl Place {
    /// Takes a place (1461 if `max_prepared_stmt_count` are taken).
    fn take(shared: &Shared) -> Result<Place> {
        let most = shared.variables.get_u64("max_prepared_stmt_count");
        let place = Place(Arc::clone(&shared.prepared_statements));
        match place.0.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(place),
            false => Err(Error::max_prepared_statements(most)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct PreparedStatement {
    _place: Place,
    /// What of the session's memory it is charged with.
    bytes: usize,
    statement: Arc<ast::Statement>,
    /// How deep the statement nests.
    depth: u32,
    sql: Arc<[u8]>,
    /// The schema in which it looks for names, whichever is current as it runs.
    schema: Option<CompactString>,
    placeholders: usize,
    /// What each execution counts as.
    command: Option<CountedCommand>,
    /// The plan that ran last, and the parameters' types it was made for.
    last: Option<(Vec<DataType>, u64, Arc<CachedPlan>)>,
}

impl PreparedStatement {
    fn is_call(&self) -> bool {
        matches!(*self.statement, ast::Statement::Call { .. })
    }
}

impl Drop for PreparedStatement {
    fn drop(&mut self) {
        if self.depth > stack::SHALLOW {
            let nothing = Arc::new(ast::Statement::Do(Vec::new()));
            let statement = std::mem::replace(&mut self.statement, nothing);
            stack::reserve(self.depth, || drop(statement));
        }
    }
}

impl Session {
    /// Prepares the only statement of `sql`.
    pub fn prepare(&mut self, sql: &[u8]) -> Result<Prepared> {
        let decoded = self.decoded(sql);
        let sql = decoded.as_deref().map_or(sql, str::as_bytes);
        self.begin_statement(Command::Prepare, sql);
        let prepared = self.prepare_text(sql);
        if let Err(error) = &prepared {
            self.state.keep_error(error.condition().clone());
            if error.closes_connection() {
                self.control.kill_connection();
            }
        }
        self.control.end(self.state.statement.started_us);
        prepared
    }

    pub(crate) fn prepare_text(&mut self, sql: &[u8]) -> Result<Prepared> {
        self.count(Some(CountedCommand::StmtPrepare));
        let modes: Modes = self.modes();
        let mut charge = Charge::default();
        let parsed = self.parse_charged(&mut charge, |meter| {
            porpoise_sql::parse_metered(sql, 0, modes, meter)
        });
        let Some(parsed) = parsed? else {
            return Err(Error::empty_query());
        };
        stack::reserve(parsed.depth, || self.prepare_parsed(parsed, sql))
    }

    fn prepare_parsed(&mut self, parsed: Parsed, sql: &[u8]) -> Result<Prepared> {
        if !is_without_statement(sql, parsed.next, self.modes()) {
            return Err(syntax_error_near(sql, parsed.next));
        }
        if matches!(
            parsed.statement,
            ast::Statement::Prepare { .. }
                | ast::Statement::Execute { .. }
                | ast::Statement::Deallocate(_)
                | ast::Statement::Xa(_)
                | ast::Statement::Handler(_)
        ) {
            return Err(Error::unsupported_in_prepared());
        }
        let placeholders = parsed.placeholders as usize;
        let columns = if plannable(&parsed.statement) {
            let types = vec![DataType::Null; placeholders];
            let catalog = self.shared.catalog.load();
            let context = self.context(&catalog, sql, &types);
            let plan = planner::plan(&parsed.statement, &context);
            let plan = plan.map_err(|failed| self.refuse(failed))?;
            check::plan(&self.state, &self.shared.accounts, &plan)?;
            match &plan.kind {
                PlanKind::Query(query) if matches!(query.into, Destination::Client) => {
                    query.columns.clone()
                }
                _ => Vec::new(),
            }
        } else {
            self.check_unplanned(&parsed.statement, sql, placeholders)?;
            // Those of SHOW and the like are known when they are executed.
            Vec::new()
        };
        // Its plan has the text too.
        let bytes = size_of::<PreparedStatement>() + 2 * sql.len() + parsed.tokens * TOKEN_BYTES;
        let place = Place::take(&self.shared)?;
        self.kept_statements.add(&self.state.memory, bytes)?;
        let id = self.next_statement_id;
        self.next_statement_id = self.next_statement_id.wrapping_add(1).max(1);
        let statement = PreparedStatement {
            command: command_of(&parsed.statement),
            _place: place,
            bytes,
            statement: Arc::new(parsed.statement),
            depth: parsed.depth,
            sql: sql.into(),
            schema: self.state.schema.clone(),
            placeholders,
            last: None,
        };
        self.prepared.insert(id, statement);
        if self.state.warning_count() == 0 {
            // What is prepared may be about the diagnostics of the statement before.
            self.state.keep_diagnostics();
        }
        let parameter = ResultColumn::expression("?", DataType::varchar(0), true);
        Ok(Prepared {
            id,
            parameters: vec![parameter; placeholders],
            columns,
            warnings: self.state.warning_count(),
        })
    }

    /// Whether the session may run a statement that has no plan of its own, and what is planned
    /// within it.
    fn check_unplanned(
        &self,
        statement: &ast::Statement,
        sql: &[u8],
        placeholders: usize,
    ) -> Result<()> {
        check::statement(&self.state, statement)?;
        let types = vec![DataType::Null; placeholders];
        let shared = &self.shared;
        let catalog = shared.catalog.load_full();
        let context = self.context(&catalog, sql, &types);
        let parts = match statement {
            ast::Statement::CreateTable(create) => match &create.query {
                Some(query) => planner::plan(&ast::Statement::Query(query.clone()), &context),
                None => return Ok(()),
            },
            ast::Statement::CreateView(create) => {
                let planned = planner::plan_view(&create.query, &context);
                if planned
                    .as_ref()
                    .is_ok_and(|(plan, _)| plan.parameter_count > 0)
                {
                    return Err(Error::view_select_variable());
                }
                planned.map(|(plan, _)| plan)
            }
            ast::Statement::Explain(explain) => {
                let ast::ExplainTarget::Statement(statement) = &explain.target else {
                    return Ok(());
                };
                planner::explain::check_explainable(explain, statement)?;
                if matches!(statement, ast::Statement::Call { .. }) {
                    return Ok(());
                }
                let plan = planner::plan(statement, &context);
                let plan = plan.map_err(|failed| self.refuse(failed))?;
                return check::explained(&self.state, &shared.accounts, &plan).map(drop);
            }
            statement => planner::plan_expressions(&expressions_of(statement), &context),
        };
        let parts = parts.map_err(|failed| self.refuse(failed))?;
        check::plan(&self.state, &shared.accounts, &parts).map(drop)
    }

    /// Runs a prepared statement.
    pub fn execute(
        &mut self,
        id: u32,
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<StatementOutcome> {
        let Some(prepared) = self.prepared.get(&id) else {
            return Err(Error::unknown_statement_handler(id, "mysqld_stmt_execute"));
        };
        let sql = prepared.sql.clone();
        let is_call = prepared.is_call();
        self.begin_statement(Command::Execute, &sql);
        if is_call {
            self.programs.out_parameters = OutParameters::Rows;
        }
        let ran = self.replan_if_stale(|session| session.execute_prepared(id, parameters, reply));
        let ran = ran.map(|commit| StatementOutcome {
            rest: sql.len(),
            commit,
        });
        self.end_statement(&ran);
        ran
    }

    /// Runs a prepared statement in the schema that was current when it was prepared.
    pub(crate) fn execute_prepared(
        &mut self,
        id: u32,
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let context_hash = self.state.planning_context_hash();
        let Some(prepared) = self.prepared.get(&id) else {
            return Err(Error::unknown_statement_handler(id, "EXECUTE"));
        };
        if prepared.schema != self.state.schema {
            let schema = prepared.schema.clone();
            return self.execute_elsewhere(schema, id, parameters, reply);
        }
        if prepared.placeholders != parameters.len() {
            return Err(Error::wrong_arguments("EXECUTE"));
        }
        self.count(Some(CountedCommand::StmtExecute));
        self.count(prepared.command);
        let hints = prepared.statement.hints();
        let sets_variables = hints.is_some_and(ast::StatementHints::sets_variables);
        let is_traced = self.state.optimizer_traces.is_enabled;
        if sets_variables || is_traced || !plannable(&prepared.statement) {
            let (statement, sql) = (prepared.statement.clone(), prepared.sql.clone());
            let depth = prepared.depth;
            let types: Vec<DataType> = parameters
                .iter()
                .map(|value| type_of(value, &self.state))
                .collect();
            return stack::reserve(depth, || {
                self.execute_statement(&statement, &sql, &types, parameters, reply)
            });
        }
        let catalog = self.shared.catalog.load();
        // The plan that ran last fits unless types, catalog or planning context changed, or it is
        // retired.
        if let Some((types, for_context, cached)) = &prepared.last {
            let fits = cached.is_good(catalog.version)
                && *for_context == context_hash
                && cached.plan.fits_user_variables(&self.state)
                && types
                    .iter()
                    .zip(parameters)
                    .all(|(ty, value)| same_class(ty, value));
            if fits {
                let cached = cached.clone();
                return self.execute_cached_plan(&cached, &catalog, &[], None, parameters, reply);
            }
        }
        let types: Vec<DataType> = parameters
            .iter()
            .map(|value| type_of(value, &self.state))
            .collect();
        let [high, low] = [1u64, 2].map(|half| hash_one((half, &prepared.sql, &types)));
        let statement = u128::from(high) << 64 | u128::from(low);
        let key = PlanKey {
            statement,
            context_hash,
        };
        let shared = &self.shared;
        let cached = match self.plans.find(&shared.plans, key, catalog.version) {
            Some(cached) => cached,
            None => {
                let context = self.context(&catalog, &prepared.sql, &types);
                let plan = || planner::plan(&prepared.statement, &context);
                let plan = stack::reserve(prepared.depth, plan);
                let plan: Plan = plan.map_err(|failed| self.refuse(failed))?;
                let keep = plan.cacheable
                    && plan.user_variables.is_empty()
                    && self.state.temporary_tables.is_empty();
                if prepared.last.is_some() {
                    self.count(Some(CountedCommand::StmtReprepare));
                }
                let cached = Arc::new(CachedPlan {
                    text_lengths: Box::default(),
                    plan,
                    command: prepared.command,
                    catalog_version: catalog.version,
                    sql: (&*prepared.sql).into(),
                    source: None,
                    mask: None,
                    is_retired: AtomicBool::new(false),
                });
                if keep {
                    shared.plans.keep(key, cached.clone());
                }
                cached
            }
        };
        if cached.plan.cacheable
            && self.state.temporary_tables.is_empty()
            && let Some(prepared) = self.prepared.get_mut(&id)
        {
            prepared.last = Some((types, context_hash, cached.clone()));
        }
        self.execute_cached_plan(&cached, &catalog, &[], None, parameters, reply)
    }

    /// Runs a prepared statement in its own schema, which isn't the current one.
    #[cold]
    fn execute_elsewhere(
        &mut self,
        schema: Option<CompactString>,
        id: u32,
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let told = self.state_changes.schema.take();
        let held = self.enter_schema(schema);
        let ran = self.execute_prepared(id, parameters, reply);
        self.leave_schema(held);
        self.state_changes.schema = told;
        ran
    }

    /// Forgets a prepared statement: COM_STMT_CLOSE. A number that is not known is passed over.
    pub fn close_statement(&mut self, id: u32) {
        self.count(Some(CountedCommand::StmtClose));
        if let Some(closed) = self.prepared.remove(&id) {
            self.kept_statements.sub(closed.bytes);
        }
        self.named.retain(|_, named| *named != id);
    }

    /// How many parameters a prepared statement has.
    pub fn parameter_count(&self, id: u32) -> Option<usize> {
        self.prepared.get(&id).map(|prepared| prepared.placeholders)
    }

    /// The text of a prepared statement.
    pub fn prepared_text(&self, id: u32) -> Option<&[u8]> {
        self.prepared.get(&id).map(|prepared| &*prepared.sql)
    }

    /// Whether a prepared statement's rows may wait to be fetched; a CALL's are sent.
    pub fn opens_cursor(&self, id: u32) -> bool {
        let prepared = self.prepared.get(&id);
        prepared.is_some_and(|prepared| !prepared.is_call())
    }

    /// How many statements are prepared.
    pub fn prepared_count(&self) -> usize {
        self.prepared.len()
    }
}

/// The expressions that a statement without a plan computes when it runs.
fn expressions_of(statement: &ast::Statement) -> Vec<&ast::Expr> {
    match statement {
        ast::Statement::Do(expressions) => expressions.iter().collect(),
        ast::Statement::Kill { id, .. } => vec![id],
        ast::Statement::Set(items) => items.iter().filter_map(value_of).collect(),
        _ => Vec::new(),
    }
}

/// What an item of SET computes; a word is a word.
fn value_of(item: &ast::SetItem) -> Option<&ast::Expr> {
    match item {
        ast::SetItem::User { value, .. } => Some(value),
        ast::SetItem::System { value, .. } => {
            let is_word = matches!(value, ast::Expr::Default | ast::Expr::Column(_));
            (!is_word).then_some(value)
        }
        ast::SetItem::Names { .. } | ast::SetItem::Charset(_) => None,
    }
}

fn plannable(statement: &ast::Statement) -> bool {
    matches!(
        statement,
        ast::Statement::Query(_)
            | ast::Statement::Insert(_)
            | ast::Statement::Update(_)
            | ast::Statement::Delete(_)
    )
}

/// Whether a value may stand where the plan expects a parameter of a type.
fn same_class(ty: &DataType, value: &Value) -> bool {
    match (ty, value) {
        (DataType::Null, Value::Null)
        | (
            DataType::Int {
                unsigned: false, ..
            },
            Value::Int(_),
        )
        | (DataType::Int { unsigned: true, .. }, Value::UInt(_))
        | (DataType::Double { .. }, Value::Double(_))
        | (DataType::Varchar { .. }, Value::Text(_))
        | (DataType::Varbinary(_), Value::Bytes(_))
        | (DataType::Date, Value::Date(_))
        | (DataType::Time { .. }, Value::Time(_))
        | (DataType::DateTime { .. }, Value::DateTime(_))
        | (DataType::Json, Value::Json(_)) => true,
        (DataType::Decimal { scale, .. }, Value::Decimal(value)) => value.scale() == *scale,
        _ => false,
    }
}

/// The type a parameter's value stands for. Lengths don't matter: they would make plans of their
/// own.
pub(crate) fn type_of(
    value: &Value,
    state: &porpoise_session::session_state::SessionState,
) -> DataType {
    /// Longer than any parameter.
    const LENGTH: u32 = 65_535;
    match value {
        Value::Null => DataType::Null,
        Value::Int(_) => DataType::BIGINT,
        Value::UInt(_) => DataType::BIGINT_UNSIGNED,
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(value) => DataType::decimal(65, value.scale()),
        Value::Text(_) => DataType::Varchar {
            length: LENGTH,
            collation: state.collation,
        },
        Value::Bytes(_) => DataType::Varbinary(LENGTH),
        Value::Date(_) => DataType::Date,
        Value::Time(_) => DataType::Time { fsp: 6 },
        Value::DateTime(_) => DataType::DateTime { fsp: 6 },
        Value::Json(_) => DataType::Json,
    }
}
