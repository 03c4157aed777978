//! The global values, replaced as a whole when one changes, and what sessions begin with.
//!
//! What is asked for often (seats, time limits, how commits are flushed) is kept beside them, to be
//! read without a look in the array ([`GlobalVariables::derive`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use compact_str::CompactString;
use parking_lot::Mutex;
use porpoise_storage::{Flush, FlushPolicy};
use porpoise_types::{Collation, Value};

use super::kind::unsigned;
use super::start_up::StartUp;
use super::table::{Position, VARIABLES, find};
use super::{RegexpLimits, SessionVars, VERSION, companion, set_names};
use crate::error::Result;
use crate::memory::{MemoryAccount, MemoryPool};
use crate::password_validation::{PasswordPolicy, PasswordValidation};

/// Why the server refuses changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteProtection {
    /// `read_only`: accounts with CONNECTION_ADMIN may change what they like.
    ReadOnly,
    /// `super_read_only`: nobody may.
    SuperReadOnly,
}

impl WriteProtection {
    /// The option, as error 1290 names it.
    pub fn option(self) -> &'static str {
        match self {
            WriteProtection::ReadOnly => "--read-only",
            WriteProtection::SuperReadOnly => "--super-read-only",
        }
    }
}

/// The global values, and what is derived from them for readers without a lock.
pub struct GlobalVariables {
    values: ArcSwap<Vec<Value>>,
    /// What sessions begin with, by the collation that their clients ask for.
    beginnings: ArcSwap<Vec<(Option<Collation>, Arc<Beginning>)>>,
    /// SETs of globals one after the other.
    changing: Mutex<()>,
    flush: FlushPolicy,
    max_connections: AtomicU64,
    /// What `max_connections` may be set to: as many as the system bears.
    max_connections_most: AtomicU64,
    connect_timeout_s: AtomicU64,
    loopback_fast_path: AtomicU64,
    require_secure_transport: AtomicBool,
    read_only: AtomicBool,
    super_read_only: AtomicBool,
    general_log: AtomicBool,
    logs_to_file: AtomicBool,
    logs_to_table: AtomicBool,
    slow_query_log: AtomicBool,
    log_queries_not_using_indexes: AtomicBool,
    /// How often the logs' files were to be opened anew.
    log_generation: AtomicU64,
    max_user_connections: AtomicU64,
    memory: Arc<MemoryPool>,
    regexp_limits: Arc<RegexpLimits>,
    /// Whether passwords have to satisfy a policy, and which.
    pub password_validation: Arc<PasswordValidation>,
    /// What to tell the administrator of the start-up values: those that have no effect, and those
    /// that were out of range.
    pub start_up_warnings: Vec<String>,
    /// When the server started, in UTC microseconds since 1970.
    pub started_us: i64,
}

impl GlobalVariables {
    /// Defaults, and the start-up values over them. Names may be written with dashes.
    ///
    /// # Errors
    /// 1193 for an unknown name, 1231 for a value it doesn't take, 1235 for one that isn't
    /// implemented and that somebody may rely on.
    pub fn new(start_up: &[(String, String)]) -> Result<GlobalVariables> {
        let StartUp {
            mut values,
            warnings,
        } = StartUp::new(start_up)?;
        let mut put = |name: &str, value: Value| {
            if let Some(position) = find(name) {
                values[position] = value;
            }
        };
        put("version", Value::text(VERSION));
        put(
            "version_compile_machine",
            Value::text(std::env::consts::ARCH),
        );
        put("server_uuid", Value::text(random_uuid()));
        put(
            "system_time_zone",
            Value::text(std::env::var("TZ").unwrap_or_else(|_| "UTC".to_owned())),
        );
        if let Some(position) = find("super_read_only") {
            follow_read_only(&mut values, position);
        }
        if let Some(position) = find("max_join_size")
            && unsigned(&values[position]) != u64::MAX
            && let Some((follower, value)) = companion("max_join_size", &values[position])
        {
            values[follower] = value;
        }
        // As many clients may wait to be let in as may be in.
        if let Some(position) = find("back_log")
            && !matches!(unsigned(&values[position]), 1..=65_535)
        {
            let clients = find("max_connections").map_or(0, |at| unsigned(&values[at]));
            values[position] = Value::UInt(clients.clamp(1, 65_535));
        }
        let globals = GlobalVariables {
            values: ArcSwap::from_pointee(values),
            beginnings: ArcSwap::default(),
            changing: Mutex::new(()),
            flush: FlushPolicy::default(),
            max_connections: AtomicU64::new(0),
            max_connections_most: AtomicU64::new(u64::MAX),
            connect_timeout_s: AtomicU64::new(0),
            loopback_fast_path: AtomicU64::new(0),
            require_secure_transport: AtomicBool::new(false),
            read_only: AtomicBool::new(false),
            super_read_only: AtomicBool::new(false),
            general_log: AtomicBool::new(false),
            logs_to_file: AtomicBool::new(false),
            logs_to_table: AtomicBool::new(false),
            slow_query_log: AtomicBool::new(false),
            log_queries_not_using_indexes: AtomicBool::new(false),
            log_generation: AtomicU64::new(0),
            max_user_connections: AtomicU64::new(0),
            memory: Arc::default(),
            regexp_limits: Arc::default(),
            password_validation: Arc::default(),
            start_up_warnings: warnings,
            started_us: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_micros() as i64),
        };
        globals.derive();
        Ok(globals)
    }

    /// Puts values where others read them.
    fn derive(&self) {
        self.max_connections
            .store(self.get_u64("max_connections"), Ordering::Relaxed);
        self.connect_timeout_s
            .store(self.get_u64("connect_timeout"), Ordering::Relaxed);
        self.loopback_fast_path
            .store(self.get_u64("loopback_fast_path"), Ordering::Relaxed);
        let is_on = |name| self.get_u64(name) != 0;
        let outputs = self.get_text("log_output");
        let has = |wanted: &str| outputs.split(',').any(|output| output == wanted);
        // NONE counts more than what stands beside it.
        let logs = !has("NONE");
        self.logs_to_file.store(has("FILE"), Ordering::Relaxed);
        self.logs_to_table.store(has("TABLE"), Ordering::Relaxed);
        self.general_log
            .store(logs && is_on("general_log"), Ordering::Relaxed);
        self.slow_query_log
            .store(logs && is_on("slow_query_log"), Ordering::Relaxed);
        self.log_queries_not_using_indexes
            .store(is_on("log_queries_not_using_indexes"), Ordering::Relaxed);
        self.require_secure_transport
            .store(is_on("require_secure_transport"), Ordering::Relaxed);
        self.read_only.store(is_on("read_only"), Ordering::Relaxed);
        self.super_read_only
            .store(is_on("super_read_only"), Ordering::Relaxed);
        self.max_user_connections
            .store(self.get_u64("max_user_connections"), Ordering::Relaxed);
        self.regexp_limits.set(
            self.get_u64("regexp_time_limit"),
            self.get_u64("regexp_stack_limit"),
        );
        self.password_validation.set_policy(PasswordPolicy {
            check_user_name: is_on("validate_password.check_user_name"),
            length: self.get_u64("validate_password.length"),
            mixed_case: self.get_u64("validate_password.mixed_case_count"),
            numbers: self.get_u64("validate_password.number_count"),
            special: self.get_u64("validate_password.special_char_count"),
            level: match &*self.get_text("validate_password.policy") {
                "LOW" => 0,
                "MEDIUM" => 1,
                _ => 2,
            },
            dictionary_file: self.get_text("validate_password.dictionary_file").into(),
        });
        self.memory.set_limits(
            self.get_u64("global_connection_memory_limit"),
            self.get_u64("statement_memory_limit"),
        );
        self.memory
            .set_tables_limit(self.get_u64("temptable_max_ram"));
        let space = self.memory.space();
        space.set_folder(&self.get_text("tmpdir"));
        space.set_limit(self.get_u64("max_tmp_total_space_usage"));
        self.flush
            .set(match self.get_u64("innodb_flush_log_at_trx_commit") {
                0 => Flush::EachSecond,
                2 => Flush::WriteAtCommit,
                _ => Flush::AtCommit,
            });
    }

    /// All values, in the table's order.
    pub fn all(&self) -> Arc<Vec<Value>> {
        self.values.load_full()
    }

    /// A variable's global value; NULL if there is no variable of that name.
    pub fn get(&self, name: &str) -> Value {
        find(name).map_or(Value::Null, |position| self.at(position))
    }

    /// A variable's global value as a number; 0 if there is none, or it isn't one.
    pub fn get_u64(&self, name: &str) -> u64 {
        unsigned(&self.get(name))
    }

    /// A variable's global value as a text; empty if there is none, or it isn't one.
    pub fn get_text(&self, name: &str) -> CompactString {
        match self.get(name) {
            Value::Text(text) => text,
            _ => CompactString::default(),
        }
    }

    /// The value of the variable at a position of the table.
    pub(super) fn at(&self, position: Position) -> Value {
        self.values.load()[position].clone()
    }

    pub(super) fn set(&self, position: Position, value: Value) {
        let _changing = self.changing.lock();
        let mut values = Vec::clone(&self.values.load());
        values[position] = value;
        if let Some((position, value)) = companion(VARIABLES[position].name, &values[position]) {
            values[position] = value;
        }
        follow_read_only(&mut values, position);
        self.values.store(Arc::new(values));
        self.derive();
    }

    /// Sets a value that the server itself finds out (port, socket, datadir).
    pub fn learn(&self, name: &str, value: &str) {
        if let Some((position, value)) =
            find(name).and_then(|position| Some((position, VARIABLES[position].parse(value)?)))
        {
            self.set(position, value);
        }
    }

    /// `innodb_flush_log_at_trx_commit`, as storage watches it.
    pub fn flush_policy(&self) -> &FlushPolicy {
        &self.flush
    }

    /// `innodb_buffer_pool_size`: memory for what is read of the B-tree.
    pub fn cache_bytes(&self) -> usize {
        self.get_u64("innodb_buffer_pool_size") as usize
    }

    /// `transaction_memory_size`: with more bytes of writes in memory a transaction goes on in a
    /// file, and so do the larger ones once all of them have more together. Half of the cache, unless it
    /// is set; 1 MiB at least, since each file is written in parts of that size.
    pub fn transaction_bytes(&self) -> usize {
        const LEAST: usize = 1 << 20;
        match self.get_u64("transaction_memory_size") as usize {
            0 => self.cache_bytes() / 2,
            bytes => bytes.max(LEAST),
        }
    }

    /// `innodb_redo_log_capacity`: how much log is written before a checkpoint drops it.
    pub fn log_bytes(&self) -> u64 {
        self.get_u64("innodb_redo_log_capacity")
    }

    /// How many clients may be connected at a time, one for an administrator not counted.
    pub fn max_connections(&self) -> u64 {
        self.max_connections.load(Ordering::Relaxed)
    }

    /// From here on `max_connections` is at most so many, whatever it is set to.
    pub fn limit_connections(&self, most: u64) {
        self.max_connections_most.store(most, Ordering::Relaxed);
        if self.max_connections() > most {
            self.learn("max_connections", &most.to_string());
        }
    }

    /// The most that a variable may be set to, beside what its kind says.
    pub(super) fn most(&self, name: &str) -> u64 {
        match name {
            "max_connections" => self.max_connections_most.load(Ordering::Relaxed),
            _ => u64::MAX,
        }
    }

    /// How many connections a user may have; 0 for any number.
    pub fn max_user_connections(&self) -> u64 {
        self.max_user_connections.load(Ordering::Relaxed)
    }

    /// How long a client may take to log in, in seconds.
    pub fn connect_timeout(&self) -> u64 {
        self.connect_timeout_s.load(Ordering::Relaxed)
    }

    /// Whether TCP clients on this machine that ask for it move to shared memory.
    pub fn loopback_fast_path(&self) -> bool {
        self.loopback_fast_path.load(Ordering::Relaxed) != 0
    }

    /// What statements' buffers take of memory in all sessions, and may take.
    pub fn memory(&self) -> &MemoryPool {
        &self.memory
    }

    /// Whether clients must come by a way in on which nobody listens.
    pub fn require_secure_transport(&self) -> bool {
        self.require_secure_transport.load(Ordering::Relaxed)
    }

    /// Whether the logs that are on go to files.
    pub fn logs_to_file(&self) -> bool {
        self.logs_to_file.load(Ordering::Relaxed)
    }

    /// Whether the logs that are on go to tables.
    pub fn logs_to_table(&self) -> bool {
        self.logs_to_table.load(Ordering::Relaxed)
    }

    /// Whether each command is to be logged.
    #[inline]
    pub fn general_log(&self) -> bool {
        self.general_log.load(Ordering::Relaxed)
    }

    /// Whether statements that take long are to be logged.
    #[inline]
    pub fn slow_query_log(&self) -> bool {
        self.slow_query_log.load(Ordering::Relaxed)
    }

    /// Whether the slow query log is told of statements that read whole tables, too.
    pub fn log_queries_not_using_indexes(&self) -> bool {
        self.log_queries_not_using_indexes.load(Ordering::Relaxed)
    }

    /// Has the files of the logs opened anew, which may have been renamed.
    pub fn reopen_logs(&self) {
        self.log_generation.fetch_add(1, Ordering::Relaxed);
    }

    /// A log whose file was opened at another generation has to open it anew.
    pub fn log_generation(&self) -> u64 {
        self.log_generation.load(Ordering::Relaxed)
    }

    /// The option by which the server refuses changes of what lasts, if there is one:
    /// `super_read_only` refuses everybody's, `read_only` those of ordinary accounts.
    #[inline]
    pub fn write_protection(&self) -> Option<WriteProtection> {
        if !self.read_only.load(Ordering::Relaxed) {
            return None;
        }
        Some(match self.super_read_only.load(Ordering::Relaxed) {
            true => WriteProtection::SuperReadOnly,
            false => WriteProtection::ReadOnly,
        })
    }

    /// The state of a session that begins now, with the global values for its own, and all three
    /// character sets those of the `collation` if there is one.
    ///
    /// Sessions begin alike until a global is set: what is derived from the values is derived once,
    /// then copied.
    pub fn begin_session(&self, connection_id: u64, collation: Option<Collation>) -> SessionVars {
        let values = self.values.load();
        let beginnings = self.beginnings.load();
        let known = beginnings
            .iter()
            .find(|(of, beginning)| *of == collation && Arc::ptr_eq(&beginning.globals, &values));
        if let Some((_, beginning)) = known {
            return beginning.state.for_connection(connection_id);
        }
        let beginning = Arc::new(Beginning::new(
            values.clone(),
            collation,
            &self.memory,
            &self.regexp_limits,
            &self.password_validation,
        ));
        self.beginnings.rcu(|all| {
            let mut all: Vec<_> = all
                .iter()
                .filter(|(of, other)| {
                    *of != collation && Arc::ptr_eq(&other.globals, &beginning.globals)
                })
                .cloned()
                .collect();
            all.push((collation, beginning.clone()));
            all
        });
        beginning.state.for_connection(connection_id)
    }
}

/// `super_read_only` is `read_only` and more: switching the one on, or the other off, switches both.
fn follow_read_only(values: &mut [Value], changed: Position) {
    let (Some(read_only), Some(super_read_only)) = (find("read_only"), find("super_read_only"))
    else {
        return;
    };
    if changed == super_read_only && unsigned(&values[super_read_only]) != 0 {
        values[read_only] = Value::Int(1);
    }
    if changed == read_only && unsigned(&values[read_only]) == 0 {
        values[super_read_only] = Value::Int(0);
    }
}

/// A state to begin sessions with.
struct Beginning {
    /// The global values that it was made from.
    globals: Arc<Vec<Value>>,
    state: SessionVars,
}

impl Beginning {
    fn new(
        globals: Arc<Vec<Value>>,
        collation: Option<Collation>,
        memory: &Arc<MemoryPool>,
        regexp_limits: &Arc<RegexpLimits>,
        password_validation: &Arc<PasswordValidation>,
    ) -> Beginning {
        let mut state = SessionVars::new(0);
        state.memory = Arc::new(MemoryAccount::new(Arc::clone(memory)));
        state.regexp_limits = Arc::clone(regexp_limits);
        state.password_validation = Arc::clone(password_validation);
        state.variables = globals.clone();
        for (variable, value) in VARIABLES.iter().zip(globals.iter()) {
            if let Some(apply) = variable.apply {
                apply(&mut state, value);
            }
        }
        let lowers = find("lower_case_table_names").map(|position| unsigned(&globals[position]));
        state.lower_case_names = lowers == Some(1);
        // One of a character set that no statement can be written in leaves the default.
        let offered = collation.filter(|offered| offered.charset().extends_ascii());
        if let Some(collation) = offered {
            set_names(collation.charset(), collation, &mut state);
        }
        Beginning { globals, state }
    }
}

/// 128 random bits in a UUID's clothes.
fn random_uuid() -> String {
    use std::hash::{BuildHasher, RandomState};
    let bits =
        |n: u8| RandomState::new().hash_one((n, std::process::id(), std::time::SystemTime::now()));
    let (a, b) = (bits(0), bits(1));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xFFFF,
        a & 0xFFF,
        (b >> 48 & 0x3FFF) | 0x8000,
        b & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_suffixes_and_ranges_clamp() {
        let globals = GlobalVariables::new(&[
            ("max-allowed-packet".into(), "16M".into()),
            ("max_connections".into(), "0".into()),
            ("transaction_memory_size".into(), "1".into()),
        ]);
        let globals = globals.expect("start-up values");
        assert_eq!(globals.get_u64("max_allowed_packet"), 16 << 20);
        assert_eq!(globals.max_connections(), 1);
        assert_eq!(globals.transaction_bytes(), 1 << 20);
        assert!(GlobalVariables::new(&[("no_such".into(), "1".into())]).is_err());
    }

    #[test]
    fn max_connections_goes_down_to_what_the_system_bears_and_never_up() {
        let globals = GlobalVariables::new(&[("max_connections".into(), "2000".into())]);
        let globals = globals.expect("start-up values");
        globals.limit_connections(3000);
        assert_eq!(globals.max_connections(), 2000);
        globals.limit_connections(400);
        assert_eq!(globals.max_connections(), 400);
        assert_eq!(globals.get_u64("max_connections"), 400);
        globals.limit_connections(3000);
        assert_eq!(globals.max_connections(), 400);
    }
}
