//! One connection's statements: from text to the plan that runs, and what is kept between them.
//!
//! The life of a text statement:
//!
//! 1. [`Session::query`] starts the clock, clears the last statement's warnings.
//! 2. `porpoise_sql::digest` hashes the text without its literals; [`cache`] has the plan, or
//! 3. the text is parsed and planned ([`porpoise_planner::plan`]), and the plan kept.
//! 4. [`Session::run_plan`] takes the tables' metadata locks, a snapshot or the transaction, and runs the plan.
//! 5. Behind a change in autocommit mode comes the commit; the caller holds the answer back until it is durable.
//!
//! Statements that have no plan (SET, SHOW, DDL, transactions, accounts) go from the parser to [`dispatch`].

mod administer;
mod dispatch;
mod load;
mod prepared;
mod set;
pub mod transaction;

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_sql::{LiteralValue, Literals, Modes, ParamMask, ast};
use porpoise_storage::Commit;
use porpoise_types::{Collation, DataType, Decimal, Value};

pub use porpoise_session::session_state::SessionState;
pub use prepared::Prepared;

use porpoise_catalog::{Catalog, Table};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::reply::Reply;
use porpoise_core::variables::{Isolation, SqlMode};
use porpoise_executor::{Exec, View, statement};
use porpoise_mdl::process::{Command, Control};
use porpoise_mdl::{MdlContext, MdlScope, StatementTables};
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::{Plan, PlanKind};
use porpoise_planner::{self as planner, PlanningContext};
use porpoise_session::check;
use porpoise_session::check::Privileged;
use porpoise_session::plan_cache::{CachedPlan, PlanKey, SessionPlans};
use porpoise_session::plan_locks::lock_tables_of;
use porpoise_session::shared::Shared;
use prepared::PreparedStatement;
use transaction::TransactionState;

/// Who comes in, proven by the caller.
#[derive(Clone, Debug, Default)]
pub struct Login {
    pub connection_id: u64,
    /// The account that was matched: the name and host pattern of CURRENT_USER().
    pub account: Option<Arc<porpoise_accounts::Account>>,
    /// The name and host that the client came with.
    pub user: CompactString,
    pub host: CompactString,
    /// The process list's Host: with the port.
    pub peer: CompactString,
    pub schema: Option<CompactString>,
    pub collation: Option<Collation>,
    /// CLIENT_FOUND_ROWS.
    pub found_rows: bool,
    /// CLIENT_IGNORE_SPACE.
    pub ignore_space: bool,
    pub interactive: bool,
    pub attributes: Vec<(String, String)>,
}

/// What a call ran.
pub struct Ran {
    /// Where the next statement of the text begins; the text's length if there is none.
    pub rest: usize,
    /// The answer must be held back until this is durable.
    pub commit: Option<Commit>,
}

/// One connection's state.
pub struct Session {
    pub state: SessionState,
    pub(crate) shared: Arc<Shared>,
    pub(crate) transaction: TransactionState,
    pub(crate) control: Arc<Control>,
    plans: SessionPlans,
    prepared: HashMap<u32, PreparedStatement>,
    named: HashMap<CompactString, u32>,
    next_statement_id: u32,
    literals: Literals,
    parameters: Vec<Value>,
    pub(crate) login: Login,
    tracked: Tracked,
    multi_statements: bool,
    environment: Environment,
}

/// What planning depends on beside text and catalog, as it last was: it seldom changes from one statement to the next.
struct Environment {
    schema: Option<CompactString>,
    settings: Settings,
    hash: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Settings {
    sql_mode: SqlMode,
    collation: u16,
    reads_lock: bool,
    div_precision_increment: u8,
    sql_safe_updates: bool,
    sql_select_limit: u64,
}

impl Settings {
    fn of(state: &SessionState) -> Settings {
        Settings {
            sql_mode: state.sql_mode,
            collation: state.collation.id(),
            reads_lock: state.reads_lock,
            div_precision_increment: state.div_precision_increment,
            sql_safe_updates: state.sql_safe_updates,
            sql_select_limit: state.sql_select_limit,
        }
    }
}

impl Environment {
    fn of(state: &SessionState) -> Environment {
        let settings = Settings::of(state);
        Environment {
            hash: hash_one((&state.schema, &settings)),
            schema: state.schema.clone(),
            settings,
        }
    }

    fn is_of(&self, state: &SessionState) -> bool {
        self.schema == state.schema && self.settings == Settings::of(state)
    }
}

/// Changes of session state that a client may ask to be told of.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    pub schema: Option<CompactString>,
    pub variables: Vec<(CompactString, CompactString)>,
    pub transaction_state: Option<CompactString>,
    pub transaction_characteristics: Option<CompactString>,
    pub state_changed: bool,
}

fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

impl Session {
    pub(crate) fn open(shared: Arc<Shared>, login: Login) -> Result<Session> {
        let control = Arc::new(Control::new(
            login.connection_id,
            login.user.clone(),
            login.peer.clone(),
        ));
        let state = Self::beginning(&shared, &login);
        let mut session = Session {
            environment: Environment::of(&state),
            state,
            shared,
            transaction: TransactionState::default(),
            control,
            plans: SessionPlans::default(),
            prepared: HashMap::new(),
            named: HashMap::new(),
            next_statement_id: 1,
            literals: Literals::new(),
            parameters: Vec::new(),
            login: Login::default(),
            tracked: Tracked::default(),
            multi_statements: true,
        };
        session.log_in(login)?;
        session.shared.locks.sessions.add(session.control.clone());
        Ok(session)
    }

    fn beginning(shared: &Shared, login: &Login) -> SessionState {
        let globals = &shared.variables;
        SessionState::new(globals.begin_session(login.connection_id, login.collation))
    }

    /// Makes a state that has just begun somebody's.
    fn log_in(&mut self, login: Login) -> Result<()> {
        let state = &mut self.state;
        state.interrupt = self.control.interrupt.clone();
        state.bell = self.control.bell.clone();
        state.user = login.user.clone();
        state.host = login.host.clone();
        state.account = login.account.clone();
        state.must_change_password = login
            .account
            .as_ref()
            .is_some_and(|own| own.password_expired);
        state.found_rows_flag = login.found_rows;
        if login.interactive {
            porpoise_core::variables::make_interactive(state);
        }
        porpoise_session::active_roles::log_in(state, &self.shared.accounts)?;
        self.end_transaction();
        self.login = login;
        if let Some(schema) = self.login.schema.clone() {
            self.init_db(&schema)?;
        }
        Ok(())
    }

    pub fn id(&self) -> u64 {
        self.state.connection_id
    }

    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Whether a text may hold several statements (CLIENT_MULTI_STATEMENTS); it may unless switched off.
    pub fn set_multi_statements(&mut self, on: bool) {
        self.multi_statements = on;
    }

    pub fn in_transaction(&self) -> bool {
        self.transaction.open
    }

    pub fn autocommit(&self) -> bool {
        self.state.autocommit
    }

    pub fn current_schema(&self) -> Option<&str> {
        self.state.schema.as_deref()
    }

    pub fn no_backslash_escapes(&self) -> bool {
        self.state.sql_mode.no_backslash_escapes()
    }

    pub fn take_tracked(&mut self) -> Tracked {
        std::mem::take(&mut self.tracked)
    }

    pub(crate) fn track_variable(&mut self, name: &str, value: &str) {
        self.tracked.variables.push((name.into(), value.into()));
        self.tracked.state_changed = true;
    }

    /// Runs the first statement of `sql`.
    ///
    /// The answer goes to `reply`; an error comes back, after which nothing of the statement is left.
    pub fn query(&mut self, sql: &[u8], reply: &mut dyn Reply) -> Result<Ran> {
        self.begin_statement(Command::Query, sql);
        let ran = self.replanning(|session| session.query_inner(sql, reply));
        self.end_statement(&ran);
        ran
    }

    /// Runs a statement, and again with a plan of its own time if its tables were changed while it waited for them: nothing
    /// has been done or answered by then.
    fn replanning<T>(&mut self, mut run: impl FnMut(&mut Session) -> Result<T>) -> Result<T> {
        /// Then DDL comes faster than statements.
        const PLANS_MAX: u32 = 100;
        let mut version = self.shared.catalog.load().version;
        let mut ran = run(self);
        for _ in 1..PLANS_MAX {
            let newest = self.shared.catalog.load().version;
            let is_stale =
                |error: &Error| error.is(ErrorKind::TableDefinitionChanged) && newest != version;
            if !ran.as_ref().is_err_and(is_stale) {
                break;
            }
            version = newest;
            ran = run(self);
        }
        ran
    }

    fn query_inner(&mut self, sql: &[u8], reply: &mut dyn Reply) -> Result<Ran> {
        let modes = self.modes();
        let mut literals = std::mem::take(&mut self.literals);
        let digest = porpoise_sql::digest(sql, modes, &mut literals);
        let Some(digest) = digest else {
            self.literals = literals;
            return self.parse_and_run(sql, modes, reply);
        };
        let catalog = self.shared.catalog.load();
        let environment = self.environment();
        let shared = self.shared.clone();
        let mut found = self.plans.find(
            &shared.plans,
            PlanKey {
                statement: digest.shape,
                environment,
            },
            catalog.version,
        );
        if found.is_none()
            && let Some(mask) = shared.plans.mask(digest.shape)
        {
            let statement = digest.key(sql, &literals, &mask);
            found = self.plans.find(
                &shared.plans,
                PlanKey {
                    statement,
                    environment,
                },
                catalog.version,
            );
        }
        let outcome = match found {
            Some(cached) => {
                let mut parameters = std::mem::take(&mut self.parameters);
                parameters.clear();
                let mask = cached.mask.clone();
                self.literal_values(sql, &literals, mask.as_ref(), modes, &mut parameters);
                let ran = self.run_cached(
                    &cached,
                    &catalog,
                    sql,
                    Some((digest, &literals)),
                    &parameters,
                    reply,
                );
                self.parameters = parameters;
                ran.map(|commit| Ran {
                    rest: sql.len(),
                    commit,
                })
            }
            None => self.plan_and_run(sql, modes, digest, &literals, &catalog, environment, reply),
        };
        literals.clear();
        self.literals = literals;
        outcome
    }

    #[allow(clippy::too_many_arguments)]
    fn plan_and_run(
        &mut self,
        sql: &[u8],
        modes: Modes,
        digest: porpoise_sql::Digest,
        literals: &Literals,
        catalog: &Arc<Catalog>,
        environment: u64,
        reply: &mut dyn Reply,
    ) -> Result<Ran> {
        let Some((parsed, mask)) =
            porpoise_sql::parse_digested(sql, modes).map_err(|error| syntax_error(sql, &error))?
        else {
            return Err(Error::empty_query());
        };
        if !porpoise_sql::digest::is_cacheable(&parsed.statement) {
            return self.parse_and_run(sql, modes, reply);
        }
        let mut parameters = Vec::new();
        self.literal_values(sql, literals, Some(&mask), modes, &mut parameters);
        let types: Vec<DataType> = literals
            .iter()
            .map(|literal| self.literal_type(literal.value(sql, modes)))
            .collect();
        let context = PlanningContext {
            literals: &parameters,
            ..self.context(catalog, sql, &types)
        };
        let plan = planner::plan(&parsed.statement, &context);
        let plan = plan.map_err(|failed| self.refuse(failed))?;
        let cacheable = plan.cacheable
            && plan.fixed_parameters.is_empty()
            && self.state.temporary_tables.is_empty();
        let cached = Arc::new(CachedPlan {
            plan,
            catalog_version: catalog.version,
            sql: sql.into(),
            source: Some((digest, literals.clone())),
            mask: Some(mask.clone()),
        });
        if cacheable {
            let key = PlanKey {
                statement: digest.key(sql, literals, &mask),
                environment,
            };
            let shared = &self.shared.plans;
            if key.statement != digest.shape {
                shared.keep_mask(digest.shape, mask);
            }
            shared.keep(key, cached.clone());
            self.plans.keep(key, cached.clone());
        }
        let commit = self.run_cached(&cached, catalog, sql, None, &parameters, reply)?;
        Ok(Ran {
            rest: sql.len(),
            commit,
        })
    }

    /// Literals that are parameters, by their numbers; the others' places stay NULL.
    fn literal_values(
        &self,
        sql: &[u8],
        literals: &Literals,
        mask: Option<&ParamMask>,
        modes: Modes,
        out: &mut Vec<Value>,
    ) {
        for (number, literal) in literals.iter().enumerate() {
            let lifted = mask.is_none_or(|mask| mask.has(number as u32));
            out.push(if lifted {
                literal_value(literal.value(sql, modes))
            } else {
                Value::Null
            });
        }
    }

    fn literal_type(&self, value: LiteralValue<'_>) -> DataType {
        match value {
            LiteralValue::Int(v) if v > i64::MAX as u64 => DataType::BIGINT_UNSIGNED,
            LiteralValue::Int(_) => DataType::BIGINT,
            LiteralValue::Decimal(text) => {
                let decimal = parse_decimal(text);
                let scale = decimal.scale();
                DataType::decimal((decimal.integer_digits() as u8 + scale).clamp(1, 65), scale)
            }
            LiteralValue::Double(_) => DataType::DOUBLE,
            LiteralValue::String(bytes) => DataType::Varchar {
                length: String::from_utf8_lossy(&bytes).chars().count() as u32,
                collation: self.state.collation,
            },
            LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => {
                DataType::Varbinary(bytes.len() as u32)
            }
        }
    }

    /// The hash of what planning depends on beside text and catalog.
    fn environment(&mut self) -> u64 {
        self.state.reads_lock = self.reads_lock();
        if !self.environment.is_of(&self.state) {
            self.environment = Environment::of(&self.state);
        }
        self.environment.hash
    }

    /// Whether plain reads lock what they read: at SERIALIZABLE, but for a statement that is a transaction by itself.
    fn reads_lock(&self) -> bool {
        self.transaction.isolation == Isolation::Serializable
            && (self.transaction.open || !self.state.autocommit)
    }

    /// Takes a statement without a cached plan from the parser on.
    fn parse_and_run(&mut self, sql: &[u8], modes: Modes, reply: &mut dyn Reply) -> Result<Ran> {
        self.state.reads_lock = self.reads_lock();
        let parsed = porpoise_sql::parse_statement(sql, 0, modes)
            .map_err(|error| syntax_error(sql, &error))?;
        let Some(parsed) = parsed else {
            return Err(Error::empty_query());
        };
        let rest = parsed.next;
        if rest < sql.len() && !self.multi_statements {
            return Err(syntax_error_near(sql, rest));
        }
        if parsed.placeholders > 0 {
            return Err(syntax_error_near(sql, parsed.span.start as usize));
        }
        let commit = self.run_parsed(&parsed.statement, sql, &[], &[], reply)?;
        Ok(Ran { rest, commit })
    }

    /// What a statement is planned in, if none of its literals were lifted out.
    fn context<'a>(
        &'a self,
        catalog: &'a Catalog,
        sql: &'a [u8],
        types: &'a [DataType],
    ) -> PlanningContext<'a> {
        PlanningContext {
            catalog,
            session: &self.state,
            temporary_tables: &self.state.temporary_tables,
            parameters: types,
            literals: &[],
            sql,
            row_counts: &self.shared.store,
        }
    }

    /// Runs a parsed statement with parameters. `sql` is what its spans refer to.
    pub(crate) fn run_parsed(
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
                let context = self.context(&catalog, sql, types);
                let plan = planner::plan(statement, &context);
                let plan = plan.map_err(|failed| self.refuse(failed))?;
                self.run_plan(&plan, &catalog, parameters, None, reply)
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

    /// What the session is told where a statement has no plan.
    pub(crate) fn refuse(&self, failed: PlanError) -> Error {
        check::refuse(&self.state, &self.shared.accounts, failed)
    }

    fn run_cached(
        &mut self,
        cached: &Arc<CachedPlan>,
        catalog: &Arc<Catalog>,
        sql: &[u8],
        source: Option<(porpoise_sql::Digest, &Literals)>,
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        // Columns named by a text that holds literals are named by the current text.
        if let (PlanKind::Query(query), Some(to), Some((digest, literals))) =
            (&cached.plan.kind, source, &cached.source)
            && query.name_spans.iter().any(Option::is_some)
        {
            let map = porpoise_sql::SourceMap {
                from: (*digest, literals),
                to: (to.0, to.1),
            };
            let mut columns = query.columns.clone();
            for (column, span) in columns.iter_mut().zip(&query.name_spans) {
                if let Some(span) = span {
                    column.name = planner::column_name(map.map(*span).of(sql));
                }
            }
            return self.run_plan(&cached.plan, catalog, parameters, Some(&columns), reply);
        }
        self.run_plan(&cached.plan, catalog, parameters, None, reply)
    }

    /// Runs a plan in the session's transaction, or one of its own.
    pub(crate) fn run_plan(
        &mut self,
        plan: &Plan,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        columns: Option<&[porpoise_core::reply::ResultColumn]>,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let plan = check::plan(&self.state, &self.shared.accounts, plan)?;
        if plan.writes() && (self.transaction.read_only || self.state.transaction_read_only) {
            return Err(Error::read_only_transaction());
        }
        let in_transaction = self.transaction.open || !self.state.autocommit;
        let ran = self.run_privileged(plan, catalog, parameters, columns, in_transaction, reply);
        if !in_transaction {
            self.end_transaction();
        }
        ran
    }

    fn run_privileged(
        &mut self,
        plan: Privileged<'_, Plan>,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        columns: Option<&[porpoise_core::reply::ResultColumn]>,
        in_transaction: bool,
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let shared = self.shared.clone();
        let writes = plan.writes();
        let control: &Control = &self.control;
        let _changing = match writes {
            true => Some(self.state.begin_change(&shared.locks, control)?),
            false => None,
        };
        // A statement that is a transaction by itself gives its tables back when it ends.
        let mut statement_tables = StatementTables::none(control);
        let taker = MdlContext {
            requester: self.state.requester(&shared.locks),
            control,
        };
        let mut keeper = match in_transaction {
            true => MdlScope::Transaction(&mut self.transaction.tables),
            false => MdlScope::Statement(&mut statement_tables),
        };
        if let Err(error) = lock_tables_of(plan.get(), &self.state, taker, &mut keeper) {
            if error.is(ErrorKind::Deadlock) {
                self.transaction.rollback(control);
            }
            return Err(error);
        }
        // DDL may have come between planning and the locks.
        let newest = shared.catalog.load();
        if newest.version != catalog.version && !plan.is_current(&newest) {
            return Err(Error::table_definition_changed());
        }
        drop(newest);
        if !in_transaction && !writes {
            let view = if plan.tables.is_empty() {
                View::None
            } else {
                View::Snapshot(shared.store.snapshot())
            };
            let mut exec = Exec::of_plan(&mut self.state, &shared, catalog, view, plan, parameters);
            return statement::run(&mut exec, plan, columns, reply).map(|()| None);
        }
        if in_transaction && !plan.tables.is_empty() {
            self.transaction.open = true;
        }
        let isolation = self.transaction.isolation;
        self.state.keeps_absent_locks = !isolation.refreshes();
        if let Some(storage) = &self.transaction.storage
            && storage.has_read_view()
            && !isolation.refreshes()
        {
            let seen = storage.read_view().ts().0;
            let is_gone = |table: &Table| table.state.rebuilt_ts.load(Ordering::Acquire) > seen;
            if plan.tables.iter().any(|(table, _)| is_gone(table)) {
                return Err(Error::table_definition_changed());
            }
        }
        let mut storage = match self.transaction.storage.take() {
            Some(storage) => storage,
            None => {
                self.transaction.storage(&shared, &self.state);
                self.transaction
                    .storage
                    .take()
                    .ok_or_else(|| Error::engine_error("no transaction"))?
            }
        };
        control.held.set_transaction(storage.id());
        if isolation.refreshes() {
            storage.forget_view();
        }
        let savepoint = storage.savepoint();
        let view = View::Transaction(&mut storage);
        let mut exec = Exec::of_plan(&mut self.state, &shared, catalog, view, plan, parameters);
        let ran = statement::run(&mut exec, plan, columns, reply);
        drop(exec);
        self.state.ignore_errors = false;
        self.state.changes_rows = false;
        match ran {
            Ok(()) => {
                self.transaction.storage = Some(storage);
                if in_transaction {
                    Ok(None)
                } else {
                    self.transaction.commit(&self.control)
                }
            }
            Err(error) => {
                if !in_transaction || error.is(ErrorKind::Deadlock) {
                    drop(storage);
                    self.transaction.rollback(&self.control);
                } else {
                    storage.rollback_to(savepoint);
                    self.transaction.storage = Some(storage);
                }
                Err(error)
            }
        }
    }

    fn modes(&self) -> Modes {
        let mode = self.state.sql_mode;
        let mut modes = Modes::NONE;
        for (is_set, flag) in [
            (mode.ansi_quotes(), Modes::ANSI_QUOTES),
            (mode.pipes_as_concat(), Modes::PIPES_AS_CONCAT),
            (mode.no_backslash_escapes(), Modes::NO_BACKSLASH_ESCAPES),
            (mode.high_not_precedence(), Modes::HIGH_NOT_PRECEDENCE),
            (
                mode.ignore_space() || self.login.ignore_space,
                Modes::IGNORE_SPACE,
            ),
            (mode.real_as_float(), Modes::REAL_AS_FLOAT),
        ] {
            if is_set {
                modes = modes.with(flag);
            }
        }
        modes
    }

    fn begin_statement(&mut self, command: Command, sql: &[u8]) {
        let now = now_us();
        self.state.begin_diagnostics();
        self.state.statement_started_us = self.state.fixed_timestamp_us.unwrap_or(now);
        self.control.begin(command, sql, now);
        if self.state.interrupt.is_set() && !self.control.is_connection_killed() {
            self.state.interrupt.clear();
        }
    }

    fn end_statement(&mut self, ran: &Result<Ran>) {
        if let Err(error) = ran {
            self.state.keep_error(error.condition().clone());
            self.state.row_count = -1;
        }
        self.state.load_source = None;
        self.state.ignore_errors = false;
        self.state.changes_rows = false;
        self.control.end(self.state.statement_started_us);
    }

    /// USE, and COM_INIT_DB.
    pub fn init_db(&mut self, name: &str) -> Result<()> {
        porpoise_session::check::check_schema_visible(&self.state, name)?;
        let catalog = self.shared.catalog.load();
        let Some(schema) = catalog.schema_name(name) else {
            return Err(Error::unknown_database(name));
        };
        self.state.schema = Some(schema.clone());
        self.control.set_schema(Some(schema.clone()));
        self.tracked.schema = Some(schema);
        self.tracked.state_changed = true;
        Ok(())
    }

    /// COM_RESET_CONNECTION: as if just connected, without authenticating again.
    pub fn reset(&mut self) -> Result<()> {
        self.clear()?;
        let schema = self.state.schema.clone();
        let login = Login {
            schema: None,
            ..self.login.clone()
        };
        // With the global character sets, not with what the client said when it logged in.
        let globals = &self.shared.variables;
        self.state = SessionState::new(globals.begin_session(login.connection_id, None));
        self.log_in(login)?;
        self.state.schema = schema;
        Ok(())
    }

    /// COM_CHANGE_USER, after the new user has proven who they are.
    pub fn change_user(&mut self, login: Login) -> Result<()> {
        self.clear()?;
        self.state = Self::beginning(&self.shared, &login);
        self.control.set_user(login.user.clone());
        self.log_in(login)
    }

    fn release_named_locks(&self) {
        let locks = &self.shared.locks.named;
        locks.release_all(self.state.connection_id);
    }

    fn clear(&mut self) -> Result<()> {
        self.transaction.rollback(&self.control);
        self.release_named_locks();
        self.drop_temporary_tables()?;
        self.prepared.clear();
        self.named.clear();
        self.plans.clear();
        self.tracked = Tracked::default();
        Ok(())
    }

    pub(crate) fn drop_temporary_tables(&mut self) -> Result<()> {
        if self.state.temporary_tables.is_empty() {
            return Ok(());
        }
        let mut transaction = self.shared.store.begin();
        for (_, table) in self.state.temporary_tables.drain() {
            transaction.drop_space(table.space);
            for index in table
                .indexes
                .iter()
                .filter(|index| index.space != table.space)
            {
                transaction.drop_space(index.space);
            }
        }
        transaction.commit()?.wait()?;
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<Option<Commit>> {
        let shared = self.shared.clone();
        let control = Arc::clone(&self.control);
        let writes = self.transaction.storage.as_ref();
        let _changing = match writes.is_some_and(porpoise_storage::Transaction::has_writes) {
            true => Some(self.state.begin_commit(&shared.locks, &control)?),
            false => None,
        };
        let commit = self.transaction.commit(&control);
        self.end_transaction();
        commit
    }

    pub(crate) fn rollback(&mut self) {
        self.transaction.rollback(&self.control);
        self.end_transaction();
    }

    /// What SET TRANSACTION said of one transaction ends with it.
    fn end_transaction(&mut self) {
        self.transaction.read_only = false;
        self.transaction.isolation = self.state.isolation;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.transaction.rollback(&self.control);
        self.release_named_locks();
        // A failure here leaves spaces that nothing names: dropped at the next start.
        let _ = self.drop_temporary_tables();
        self.shared.locks.sessions.remove(self.control.id);
    }
}

/// A hash that nobody outside of the process can know.
fn hash_one(what: impl Hash) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SEED.hash_one(what)
}

fn parse_decimal(text: &str) -> Decimal {
    porpoise_types::convert::to_decimal(&Value::text(text)).0
}

/// A literal's value. A text that isn't well-formed is bytes, as drivers send them into BLOB and BIT columns.
pub(crate) fn literal_value(value: LiteralValue<'_>) -> Value {
    match value {
        LiteralValue::Int(v) => i64::try_from(v).map_or(Value::UInt(v), Value::Int),
        LiteralValue::Decimal(text) => Value::Decimal(parse_decimal(text)),
        LiteralValue::Double(v) => Value::Double(v),
        LiteralValue::String(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) => Value::text(text),
            Err(_) => Value::Bytes(bytes.into_owned()),
        },
        LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => Value::Bytes(bytes),
    }
}

/// Error 1064 with the text at the position, and its line.
fn syntax_error_near(sql: &[u8], position: usize) -> Error {
    /// How much of the rest of the statement the message shows.
    const NEAR_CHARS_MAX: usize = 80;
    let position = position.min(sql.len());
    let line = 1 + sql[..position]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count();
    let near: String = String::from_utf8_lossy(&sql[position..])
        .chars()
        .take(NEAR_CHARS_MAX)
        .collect();
    Error::syntax_error(near, line)
}

pub(crate) fn syntax_error(sql: &[u8], error: &porpoise_sql::ParseError) -> Error {
    let _ = sql;
    dispatch::parse_error(error)
}
