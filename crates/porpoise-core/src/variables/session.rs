//! What a session's expressions read: the values of its variables, the names it came with, its
//! warnings, and the counters behind LAST_INSERT_ID(), ROW_COUNT() and FOUND_ROWS().
//!
//! Values only: what a session holds (tables, locks, an account) is the session's
//! ([`porpoise_session::session_state::SessionState`]).

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_sql::ast;
use porpoise_storage::Interrupt;
use porpoise_types::temporal::locale::Locale;
use porpoise_types::{
    BlobSize, Charset, Collation, ConvertContext, DataType, DateMode, DateTime, TimeZone, Value,
    convert,
};

use crate::error::{Condition, Error, Level, Result};
use crate::memory::{Kept, MemoryAccount};
use crate::password_validation::PasswordValidation;
use crate::variables::{
    Isolation, OptimizerTraces, PlannerSettings, RandomSequence, SqlMode, StatementContext,
};

/// What a search for a regular expression may take; every session follows the global values.
#[derive(Debug)]
pub struct RegexpLimits {
    steps: AtomicU64,
    stack_bytes: AtomicU64,
}

impl Default for RegexpLimits {
    fn default() -> RegexpLimits {
        RegexpLimits {
            steps: AtomicU64::new(32),
            stack_bytes: AtomicU64::new(8_000_000),
        }
    }
}

impl RegexpLimits {
    pub(super) fn set(&self, steps: u64, stack_bytes: u64) {
        self.steps.store(steps, Ordering::Relaxed);
        self.stack_bytes.store(stack_bytes, Ordering::Relaxed);
    }

    /// `regexp_time_limit`, in steps of the matcher, and `regexp_stack_limit`, in bytes; 0 for no
    /// limit.
    pub fn get(&self) -> (u64, u64) {
        let of = |limit: &AtomicU64| limit.load(Ordering::Relaxed);
        (of(&self.steps), of(&self.stack_bytes))
    }
}

/// What a session's statements read and change of it.
pub struct SessionVars {
    /// CONNECTION_ID().
    pub connection_id: u64,
    /// The current schema.
    pub schema: Option<CompactString>,
    /// USER(): the name and host the client came with.
    pub user: CompactString,
    /// `@@proxy_user`.
    pub proxy_user: Option<CompactString>,
    /// The host part of USER().
    pub host: CompactString,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `time_zone`, of TIMESTAMP columns and NOW().
    pub time_zone: TimeZone,
    /// `collation_connection`: of literals.
    pub collation: Collation,
    /// `character_set_results`; `None` sends what is stored.
    pub results_charset: Option<Charset>,
    /// `@name`: values, with the type that each was assigned as.
    pub user_variables: HashMap<CompactString, (Value, DataType)>,
    kept_variables: Kept,
    /// LAST_INSERT_ID(): the first value that the last INSERT generated, or what the session set.
    pub last_insert_id: u64,
    /// RAND()'s state.
    pub random: u64,
    /// RAND()'s sequence, once `rand_seed1` or `rand_seed2` was set.
    pub seeded_random: Option<RandomSequence>,
    /// ROW_COUNT() of the statement before; -1 after a query.
    pub row_count: i64,
    /// FOUND_ROWS() of the last query.
    pub found_rows: u64,
    /// The running statement, or the last one that ran.
    pub statement: StatementContext,
    /// What the running statement has warned of, at most `max_error_count`.
    pub warnings: Vec<(Level, Condition)>,
    /// Warnings of the statement, those not kept included.
    pub warnings_total: usize,
    /// What the statement before left: SHOW WARNINGS brings it back, `@@warning_count` counts it.
    pub diagnostics_before: Diagnostics,
    /// What the handlers of programs that run now were begun with, the innermost last.
    pub handled: Vec<Diagnostics>,
    /// CLIENT_FOUND_ROWS: affected rows are matched rows.
    pub found_rows_flag: bool,
    /// Set by KILL and time limits; storage's waits end by it too.
    pub interrupt: Arc<Interrupt>,
    /// What the statement's buffers take of memory, and may take.
    pub memory: Arc<MemoryAccount>,
    /// What a search for a regular expression may take: the global values.
    pub regexp_limits: Arc<RegexpLimits>,
    /// Whether passwords have to satisfy a policy, and which; the same for all sessions.
    pub password_validation: Arc<PasswordValidation>,
    /// `innodb_lock_wait_timeout`, in seconds.
    pub lock_wait_timeout_s: u64,
    /// `auto_increment_increment`: the distance of generated values.
    pub auto_increment_increment: u64,
    /// `auto_increment_offset`: the first of them.
    pub auto_increment_offset: u64,
    /// `cte_max_recursion_depth`, in rounds.
    pub cte_max_recursion_depth: u64,
    /// `div_precision_increment`: how many digits a quotient has more than its dividend.
    pub div_precision_increment: u8,
    /// `batch_scan_min_rows`: a scan that has read so many rows one by one reads the rest in batches.
    pub batch_scan_min_rows: u64,
    /// `join_buffer_size`, in bytes: a batch of rows whose keys are looked up in order.
    pub join_buffer_size: u64,
    /// `group_concat_max_len`, in bytes.
    pub group_concat_max_len: u64,
    /// `max_allowed_packet`, in bytes: no function's result is longer.
    pub max_allowed_packet: u64,
    /// `lc_time_names`: in which language days and months are named.
    pub locale: &'static Locale,
    /// `autocommit`: a statement outside BEGIN is a transaction of its own.
    pub autocommit: bool,
    /// Every system variable's session value, in the table's order.
    pub variables: Arc<Vec<Value>>,
    /// `character_set_client`: of statements' texts.
    pub client_charset: Charset,
    /// `default_week_format`: WEEK()'s mode, 0 to 7.
    pub default_week_format: u8,
    /// `max_error_count`: how many warnings are kept.
    pub max_error_count: usize,
    /// `long_query_time`, in microseconds: statements that take longer are in the slow query log.
    pub long_query_time_us: u64,
    /// `min_examined_row_limit`: statements that read fewer rows are not in the slow query log.
    pub min_examined_row_limit: u64,
    /// `sql_log_off`: the general log is not told of this session.
    pub general_log_off: bool,
    /// `innodb_parallel_read_threads`: how many threads read rows for one scan.
    pub innodb_parallel_read_threads: u64,
    /// `histogram_generation_max_mem_size`, in bytes.
    pub histogram_generation_max_mem_size: u64,
    /// 0: no limit.
    pub max_execution_time_ms: u64,
    /// `wait_timeout`: after how long without a statement the server closes the connection.
    pub wait_timeout_s: u64,
    /// `interactive_timeout`: `wait_timeout` of clients that a person sits at.
    pub interactive_timeout_s: u64,
    /// `net_read_timeout`: how long the rest of a packet may take to come.
    pub net_read_timeout_s: u64,
    /// `net_write_timeout`: how long a client may leave a reply unread.
    pub net_write_timeout_s: u64,
    /// `sql_notes`: notes are kept among the warnings.
    pub sql_notes: bool,
    /// `max_join_size`: how many combinations of rows a SELECT may examine by the planner's estimates,
    /// without `big_selects` (1104).
    pub max_join_size: u64,
    /// `sql_big_selects`: `max_join_size` is no limit.
    pub big_selects: bool,
    /// `sql_safe_updates`: UPDATE and DELETE need a key or a LIMIT (1175).
    pub sql_safe_updates: bool,
    /// `sql_select_limit`: rows of a SELECT that has no LIMIT; `u64::MAX` for all.
    pub sql_select_limit: u64,
    /// `foreign_key_checks`: changes of rows and definitions keep to foreign keys.
    pub foreign_key_checks: bool,
    /// A new foreign key must refer to a whole unique key.
    pub restrict_fk_on_non_standard_key: bool,
    /// `insert_id`: what the next AUTO_INCREMENT value shall be; 0: the counter's.
    pub next_insert_id: u64,
    /// `timestamp`: what NOW() shall be.
    pub fixed_timestamp_us: Option<i64>,
    /// `transaction_isolation`, of the transactions that begin from now on.
    pub isolation: Isolation,
    /// `transaction_read_only`: transactions from now on may only read (1792).
    pub transaction_read_only: bool,
    /// `lock_wait_timeout`, in seconds: for metadata locks.
    pub metadata_lock_timeout_s: u64,
    /// `activate_all_roles_on_login`.
    pub activates_all_roles: bool,
    /// `lower_case_table_names` is 1: names of schemas and tables are in lower case.
    pub lower_case_names: bool,
    /// What the planner goes by: `optimizer_switch` and its like.
    pub planner: PlannerSettings,
    /// Which optimizer traces are kept, and these.
    pub optimizer_traces: OptimizerTraces,
}

/// Where RAND()'s sequence begins: elsewhere for each connection, and for each process.
fn first_random(connection_id: u64) -> u64 {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| u64::from(std::process::id()));
    connection_id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ *PROCESS
}

impl SessionVars {
    /// A schema's or table's name as it counts: in lower case where names are.
    pub fn folded<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.lower_case_names {
            true => Cow::Owned(name.to_lowercase()),
            false => Cow::Borrowed(name),
        }
    }

    /// The values that a session has before any variable is applied: MySQL's defaults.
    pub fn new(connection_id: u64) -> SessionVars {
        SessionVars {
            connection_id,
            schema: None,
            user: CompactString::default(),
            proxy_user: None,
            host: CompactString::default(),
            sql_mode: SqlMode::default(),
            time_zone: TimeZone::system(),
            collation: Collation::UTF8MB4_0900_AI_CI,
            results_charset: Some(Charset::Utf8mb4),
            user_variables: HashMap::new(),
            kept_variables: Kept::default(),
            last_insert_id: 0,
            random: first_random(connection_id),
            seeded_random: None,
            row_count: 0,
            found_rows: 0,
            statement: StatementContext::new(0, false),
            warnings: Vec::new(),
            warnings_total: 0,
            diagnostics_before: Diagnostics::default(),
            handled: Vec::new(),
            found_rows_flag: false,
            interrupt: Arc::default(),
            memory: Arc::default(),
            regexp_limits: Arc::default(),
            password_validation: Arc::default(),
            lock_wait_timeout_s: 50,
            lower_case_names: false,
            auto_increment_increment: 1,
            auto_increment_offset: 1,
            cte_max_recursion_depth: 1000,
            div_precision_increment: 4,
            batch_scan_min_rows: 128,
            join_buffer_size: 256 << 10,
            group_concat_max_len: 1024,
            max_allowed_packet: 64 << 20,
            locale: Locale::english(),
            autocommit: true,
            variables: Arc::default(),
            client_charset: Charset::Utf8mb4,
            default_week_format: 0,
            max_error_count: 1024,
            long_query_time_us: 10_000_000,
            min_examined_row_limit: 0,
            general_log_off: false,
            innodb_parallel_read_threads: 4,
            histogram_generation_max_mem_size: 20_000_000,
            max_execution_time_ms: 0,
            wait_timeout_s: 28_800,
            interactive_timeout_s: 28_800,
            net_read_timeout_s: 30,
            net_write_timeout_s: 60,
            sql_notes: true,
            max_join_size: u64::MAX,
            big_selects: true,
            sql_safe_updates: false,
            sql_select_limit: u64::MAX,
            foreign_key_checks: true,
            restrict_fk_on_non_standard_key: true,
            next_insert_id: 0,
            fixed_timestamp_us: None,
            isolation: Isolation::default(),
            transaction_read_only: false,
            metadata_lock_timeout_s: 31_536_000,
            activates_all_roles: false,
            planner: PlannerSettings::default(),
            optimizer_traces: OptimizerTraces::default(),
        }
    }

    /// The values of a new session that begins with this one's settings, and with nothing else of
    /// it.
    pub fn for_connection(&self, connection_id: u64) -> SessionVars {
        SessionVars {
            connection_id,
            schema: None,
            user: CompactString::default(),
            proxy_user: None,
            host: CompactString::default(),
            time_zone: self.time_zone.clone(),
            user_variables: HashMap::new(),
            kept_variables: Kept::default(),
            random: first_random(connection_id),
            seeded_random: None,
            warnings: Vec::new(),
            diagnostics_before: Diagnostics::default(),
            handled: Vec::new(),
            interrupt: Arc::default(),
            memory: Arc::new(self.memory.with_same_limits()),
            regexp_limits: Arc::clone(&self.regexp_limits),
            password_validation: Arc::clone(&self.password_validation),
            variables: self.variables.clone(),
            optimizer_traces: self.optimizer_traces.without_traces(),
            ..*self
        }
    }

    /// The schema that a name says, or the current one.
    pub fn schema_or_current(&self, named: Option<&ast::Ident>) -> Result<CompactString> {
        named
            .map(|name| name.0.clone())
            .or_else(|| self.schema.clone())
            .ok_or_else(Error::no_database_selected)
    }

    /// Keeps a warning for SHOW WARNINGS; only counts it beyond `max_error_count`.
    pub fn warn(&mut self, level: Level, condition: Condition) {
        if level == Level::Note && !self.sql_notes {
            return;
        }
        self.warnings_total += 1;
        if self.warnings.len() < self.max_error_count {
            self.warnings.push((level, condition));
        }
    }

    /// Keeps what planning a statement warned of.
    #[inline]
    pub fn warn_all(&mut self, conditions: &[Condition]) {
        for condition in conditions {
            self.warn(Level::Warning, condition.clone());
        }
    }

    /// The conditions of the statement that runs.
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            warnings: self.warnings.clone(),
            total: self.warnings_total,
        }
    }

    /// A statement begins: what the last one left is set aside.
    pub fn begin_diagnostics(&mut self) {
        std::mem::swap(&mut self.warnings, &mut self.diagnostics_before.warnings);
        self.diagnostics_before.total = self.warnings_total;
        self.warnings.clear();
        self.warnings_total = 0;
    }

    /// The statement that began is about the last one's diagnostics, and keeps them.
    pub fn keep_diagnostics(&mut self) {
        std::mem::swap(&mut self.warnings, &mut self.diagnostics_before.warnings);
        self.warnings_total = self.diagnostics_before.total;
        self.statement.keeps_diagnostics = true;
    }

    /// A condition that an expression met: an error where strict mode guards a change, else a
    /// warning.
    pub fn warn_or_fail(&mut self, error: Error) -> Result<()> {
        let statement = self.statement;
        if statement.changes_rows && self.sql_mode.strict() && !statement.ignores_errors {
            return Err(error);
        }
        self.warn(Level::Warning, error.into_condition());
        Ok(())
    }

    /// As an OK packet counts them: those of this statement.
    pub fn warning_count(&self) -> u16 {
        if self.statement.keeps_diagnostics {
            return 0;
        }
        u16::try_from(self.warnings_total).unwrap_or(u16::MAX)
    }

    /// A moment (UTC microseconds since 1970) in the session's time zone.
    pub fn to_local(&self, utc_us: i64) -> DateTime {
        DateTime::from_unix_micros(utc_us)
            .map_or_else(DateTime::default, |utc| self.time_zone.from_utc(utc))
    }

    /// A TIMESTAMP's stored moment in the session's time zone. Zero stays zero.
    pub fn from_utc(&self, utc: DateTime) -> DateTime {
        if utc == DateTime::default() {
            utc
        } else {
            self.time_zone.from_utc(utc)
        }
    }

    /// A local time as TIMESTAMP stores it; `None` beyond 1970-2038.
    pub fn to_utc(&self, local: DateTime) -> Option<DateTime> {
        /// 2038-01-19 03:14:07.999999 UTC.
        const TIMESTAMP_MAX_US: i64 = 2_147_483_647_999_999;
        if local == DateTime::default() {
            return Some(local);
        }
        let utc = self.time_zone.to_utc(local)?;
        (1_000_000..=TIMESTAMP_MAX_US)
            .contains(&utc.unix_micros())
            .then_some(utc)
    }

    /// What conversions need to know: today, and which dates the SQL mode allows.
    pub fn conversion(&self, now_us: i64) -> ConvertContext {
        ConvertContext {
            today: self.to_local(now_us).date(),
            ..self.conversion_without_today()
        }
    }

    /// What conversions of anything but a TIME need to know.
    pub fn conversion_without_today(&self) -> ConvertContext {
        ConvertContext {
            today: Default::default(),
            dates: self.date_mode(),
            truncate_fractions: self.sql_mode.time_truncate_fractional(),
        }
    }

    /// Which incomplete and impossible dates the SQL mode lets pass.
    pub fn date_mode(&self) -> DateMode {
        DateMode {
            no_zero_date: self.sql_mode.no_zero_date(),
            no_zero_in_date: self.sql_mode.no_zero_in_date(),
            allow_invalid_dates: self.sql_mode.allow_invalid_dates(),
        }
    }

    /// The session's value of a system variable that nothing else keeps; NULL if there is none of
    /// that name.
    pub fn get(&self, name: &str) -> Value {
        let value = super::find(name).and_then(|position| self.variables.get(position));
        value.cloned().unwrap_or(Value::Null)
    }

    /// The value of `@name`; NULL if it was never set.
    pub fn user_variable(&self, name: &str) -> Value {
        self.user_variables
            .get(name)
            .map_or(Value::Null, |(value, _)| value.clone())
    }

    /// The type of the value of `@name`.
    pub fn user_variable_type(&self, name: &str) -> &DataType {
        let found = self.user_variables.get(name);
        found.map_or(&DataType::Null, |(_, ty)| ty)
    }

    /// Sets `@name`, with the type its value was computed as.
    ///
    /// # Errors
    /// As [`Kept::add`]; the variable has its old value.
    pub fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType) -> Result<()> {
        /// An entry of the map.
        const ENTRY_BYTES: usize = size_of::<(CompactString, (Value, DataType))>() * 2;
        let value = user_variable_value(value, &ty);
        let ty = user_variable_type(&ty);
        let now = value.heap_bytes();
        if let Some(variable) = self.user_variables.get_mut(name) {
            let sizes = (variable.0.heap_bytes(), now);
            self.kept_variables.exchange(&self.memory, sizes)?;
            *variable = (value, ty);
            return Ok(());
        }
        let bytes = name.len() + ENTRY_BYTES + now;
        self.kept_variables.add(&self.memory, bytes)?;
        self.user_variables.insert(name.into(), (value, ty));
        Ok(())
    }

    /// A division by zero: NULL with a warning, or an error where a strict mode wants one.
    pub fn division_by_zero(&mut self) -> Result<()> {
        match self.sql_mode.error_for_division_by_zero() {
            true => self.warn_or_fail(Error::division_by_zero()),
            false => Ok(()),
        }
    }

    /// The next of RAND()'s numbers: at least 0, less than 1.
    pub fn random(&mut self) -> f64 {
        match &mut self.seeded_random {
            Some(sequence) => sequence.next(),
            None => random_step(&mut self.random),
        }
    }

    /// How long to wait for a row lock.
    pub fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(self.lock_wait_timeout_s)
    }

    /// How long to wait for a metadata lock.
    pub fn metadata_lock_timeout(&self) -> Duration {
        Duration::from_secs(self.metadata_lock_timeout_s)
    }

    /// Puts the error that ended a statement among its warnings, as SHOW WARNINGS and SHOW ERRORS
    /// show it.
    pub fn keep_error(&mut self, condition: Condition) {
        self.warn(Level::Error, condition);
    }

    /// How many rounds a recursive common table expression may take (3636).
    pub fn cte_max_recursion_depth(&self) -> u64 {
        self.cte_max_recursion_depth
    }

    /// `auto_increment_increment` and `auto_increment_offset`.
    pub fn auto_increment_grid(&self) -> (u64, u64) {
        (self.auto_increment_increment, self.auto_increment_offset)
    }

    /// The value of a string in a statement's text, whose character set is the connection's. With
    /// `binary` it is what the client sent, byte for byte. What the connection's character set can't
    /// hold becomes `?`. Nothing is converted where the client's character set is the connection's,
    /// or `binary`: what isn't well-formed there is bytes, as drivers send them into BLOB and BIT
    /// columns.
    #[inline]
    pub fn string_value(&self, bytes: Cow<'_, [u8]>) -> Value {
        let charset = self.collation.charset();
        if charset == Charset::Binary {
            return Value::Bytes(self.as_sent(&bytes).into_owned());
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) if charset.can_hold_all(text) && self.client_charset.can_hold_all(text) => {
                Value::text(text)
            }
            _ if [charset, Charset::Binary].contains(&self.client_charset) => {
                Value::Bytes(bytes.into_owned())
            }
            _ => Value::text(charset.lossy(&self.client_charset.decode_lossy(&bytes))),
        }
    }

    /// Part of a statement's text as the client sent it: statements are decoded to UTF-8 from
    /// character sets that encode otherwise.
    pub fn as_sent<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.client_charset != Charset::Latin1 || bytes.is_ascii() {
            return Cow::Borrowed(bytes);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                let mut sent = Vec::with_capacity(text.len());
                self.client_charset.encode(text, &mut sent);
                Cow::Owned(sent)
            }
            Err(_) => Cow::Borrowed(bytes),
        }
    }

    /// The character set that texts of a type travel in as results, if they are held in another
    /// encoding. Where results aren't converted they travel as their columns' own character sets
    /// have them.
    #[inline]
    pub fn result_encoding(&self, ty: &DataType) -> Option<Charset> {
        let charset = match self.results_charset {
            Some(Charset::Utf8mb4) => return None,
            Some(charset) if charset != Charset::Binary => charset,
            _ => match ty.collation().charset() {
                Charset::Latin1 => Charset::Latin1,
                wide if !wide.extends_ascii() => wide,
                _ => return None,
            },
        };
        // Numbers and dates are digits, a byte each.
        let is_converted = match charset.extends_ascii() {
            true => !ty.is_binary_string(),
            false => !ty.is_binary_string() && (ty.is_string() || *ty == DataType::Json),
        };
        is_converted.then_some(charset)
    }
}

/// The conditions that a statement left.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// At most `max_error_count`, in the order they came.
    pub warnings: Vec<(Level, Condition)>,
    /// Those not kept included.
    pub total: usize,
}

/// SplitMix64: a step of the state, and a number of it in [0, 1).
pub fn random_step(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = *state;
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ bits >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// The type that a user variable has which is given values of a type: an integer, a decimal, a
/// floating-point number or a string of any length (MySQL 8.4 manual, 11.4).
pub fn user_variable_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Int { unsigned: true, .. } => DataType::BIGINT_UNSIGNED,
        DataType::Int { .. } => DataType::BIGINT,
        DataType::Decimal {
            precision, scale, ..
        } => DataType::decimal(*precision, *scale),
        DataType::Float { .. } | DataType::Double { .. } => {
            let mut ty = ty.clone();
            if let DataType::Float { zerofill, .. } | DataType::Double { zerofill, .. } = &mut ty {
                *zerofill = false;
            }
            ty
        }
        DataType::Null | DataType::Bit(_) | DataType::Year => ty.clone(),
        ty if ty.is_binary_string() => DataType::Blob(BlobSize::Long),
        DataType::Date
        | DataType::Time { .. }
        | DataType::DateTime { .. }
        | DataType::Timestamp { .. } => DataType::Text {
            size: BlobSize::Long,
            collation: Collation::LATIN1_SWEDISH_CI,
        },
        ty => DataType::Text {
            size: BlobSize::Long,
            collation: ty.collation(),
        },
    }
}

/// A value of a type as a user variable takes it: dates, times and JSON become strings.
pub fn user_variable_value(value: Value, ty: &DataType) -> Value {
    match (&value, ty) {
        (
            Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Json(_) | Value::UInt(_),
            DataType::Date
            | DataType::Time { .. }
            | DataType::DateTime { .. }
            | DataType::Timestamp { .. }
            | DataType::Json
            | DataType::Enum(_)
            | DataType::Set(_),
        ) => Value::Text(convert::to_compact_text(&value, ty)),
        _ => value,
    }
}
