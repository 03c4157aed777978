//! System variables: one table, a row each.
//!
//! A row tells name, scope, kind of value, default, and what a change does. Values lie in two arrays in
//! the table's order: the global ones, replaced as a whole when one changes, and each session's, which
//! shares the global array it started with until its first SET. What the engine reads often is kept in
//! a field of its own by the row's `apply`.
//!
//! Adding a variable is adding a row. Source: MySQL 8.4 Reference Manual, Server System Variables.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::Mutex;
use porpoise_storage::{Flush, FlushPolicy};
use porpoise_types::temporal::locale::Locale;
use porpoise_types::{Charset, Collation, DataType, TimeZone, Value, convert};

use crate::error::{Error, Level, Result};
use crate::session::SessionState;
use crate::session::transaction::Isolation;

/// What the server says it is.
pub const VERSION: &str = "8.4.7-Porpoise";

/// `sql_mode`'s flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlMode(pub u64);

macro_rules! modes {
    ($($name:literal $method:ident = $bit:literal;)*) => {
        impl SqlMode {
            /// Every mode's name and bit, in the order `@@sql_mode` prints them.
            pub const NAMES: &'static [(&'static str, u64)] = &[$(($name, 1 << $bit)),*];
            $(
                #[doc = concat!("Whether `", $name, "` is set.")]
                pub const fn $method(self) -> bool {
                    self.0 & (1 << $bit) != 0
                }
            )*
        }
    };
}

modes! {
    "REAL_AS_FLOAT" real_as_float = 0;
    "PIPES_AS_CONCAT" pipes_as_concat = 1;
    "ANSI_QUOTES" ansi_quotes = 2;
    "IGNORE_SPACE" ignore_space = 3;
    "ONLY_FULL_GROUP_BY" only_full_group_by = 5;
    "NO_UNSIGNED_SUBTRACTION" no_unsigned_subtraction = 6;
    "NO_DIR_IN_CREATE" no_dir_in_create = 7;
    "ANSI" ansi = 18;
    "NO_AUTO_VALUE_ON_ZERO" no_auto_value_on_zero = 19;
    "NO_BACKSLASH_ESCAPES" no_backslash_escapes = 20;
    "STRICT_TRANS_TABLES" strict_trans_tables = 21;
    "STRICT_ALL_TABLES" strict_all_tables = 22;
    "NO_ZERO_IN_DATE" no_zero_in_date = 23;
    "NO_ZERO_DATE" no_zero_date = 24;
    "ALLOW_INVALID_DATES" allow_invalid_dates = 25;
    "ERROR_FOR_DIVISION_BY_ZERO" error_for_division_by_zero = 26;
    "TRADITIONAL" traditional = 27;
    "HIGH_NOT_PRECEDENCE" high_not_precedence = 29;
    "NO_ENGINE_SUBSTITUTION" no_engine_substitution = 30;
    "PAD_CHAR_TO_FULL_LENGTH" pad_char_to_full_length = 31;
    "TIME_TRUNCATE_FRACTIONAL" time_truncate_fractional = 32;
}

impl SqlMode {
    /// Data errors are errors, not warnings.
    pub const fn strict(self) -> bool {
        self.strict_trans_tables() || self.strict_all_tables()
    }
}

impl Default for SqlMode {
    /// MySQL 8.4's default.
    fn default() -> SqlMode {
        SqlMode(1 << 5 | 1 << 21 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30)
    }
}

impl SqlMode {
    /// Reads a list of names, or a number. `ANSI` and `TRADITIONAL` bring others with them.
    pub fn parse(text: &str) -> Option<SqlMode> {
        if let Ok(bits) = text.trim().parse::<u64>() {
            return Some(SqlMode(bits));
        }
        let mut bits = 0;
        for name in text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            bits |= SqlMode::NAMES
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))?
                .1;
            if name.eq_ignore_ascii_case("ANSI") {
                bits |= 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5;
            }
            if name.eq_ignore_ascii_case("TRADITIONAL") {
                bits |= 1 << 21 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30;
            }
        }
        Some(SqlMode(bits))
    }

    /// The names, as `@@sql_mode` prints them.
    pub fn text(self) -> String {
        let names: Vec<&str> = SqlMode::NAMES
            .iter()
            .filter(|(_, bit)| self.0 & bit != 0)
            .map(|(name, _)| *name)
            .collect();
        names.join(",")
    }
}

/// Where a variable has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Global,
    Session,
    Both,
}

/// What values a variable takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `ON`, `OFF`, 1, 0.
    Bool,
    /// Clamped to the range with warning 1292.
    Int {
        min: i64,
        max: u64,
    },
    Real {
        min: f64,
        max: f64,
    },
    /// One of a list, by name or by position.
    Choice(&'static [&'static str]),
    Text,
    SqlMode,
    /// The name of a character set; NULL allowed for `character_set_results`.
    Charset,
    Collation,
    TimeZone,
    /// The language of days' and months' names.
    Locale,
}

/// What may be done to a variable while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It does what the manual says.
    Settable,
    /// The global value alone; sessions show what holds for them.
    SetGlobal,
    /// Set at start, or never.
    ReadOnly,
    /// It may be set, for compatibility, but nothing here depends on it: a warning says so.
    Inert,
}

/// A row of the table.
pub struct Variable {
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    pub default: &'static str,
    pub usage: Use,
    /// Puts a session's new value where the engine reads it.
    apply: Option<fn(&mut SessionState, &Value)>,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn row(
    name: &'static str,
    scope: Scope,
    kind: Kind,
    default: &'static str,
    usage: Use,
) -> Variable {
    Variable {
        name,
        scope,
        kind,
        default,
        usage,
        apply: None,
    }
}

const fn applied(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    apply: fn(&mut SessionState, &Value),
) -> Variable {
    Variable {
        name,
        scope: Scope::Both,
        kind,
        default,
        usage: Use::Settable,
        apply: Some(apply),
    }
}

const fn int(min: i64, max: u64) -> Kind {
    Kind::Int { min, max }
}

fn unsigned(value: &Value) -> u64 {
    convert::to_uint(value).0
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

use Kind::{Bool, Choice, Text};
use Scope::{Both, Global, Session};
use Use::{Inert, ReadOnly, SetGlobal, Settable};

const U32: u64 = u32::MAX as u64;
const U64: u64 = u64::MAX;
/// In a start-up value: the server finds the size.
const AUTOSIZED: i64 = -1;
const YEAR_S: u64 = 31_536_000;

/// All variables, by name.
pub static VARIABLES: &[Variable] = &[
    Variable {
        scope: Global,
        ..applied("activate_all_roles_on_login", Bool, "0", |s, v| {
            s.activates_all_roles = unsigned(v) != 0
        })
    },
    row("authentication_policy", Global, Text, "*,,", Inert),
    applied("auto_increment_increment", int(1, 65_535), "1", |s, v| {
        s.auto_increment_increment = unsigned(v)
    }),
    applied("auto_increment_offset", int(1, 65_535), "1", |s, v| {
        s.auto_increment_offset = unsigned(v)
    }),
    applied("autocommit", Bool, "1", |s, v| {
        s.autocommit = unsigned(v) != 0
    }),
    row("back_log", Global, int(AUTOSIZED, 65_535), "-1", ReadOnly),
    row("basedir", Global, Text, "/usr/", ReadOnly),
    row("big_tables", Both, Bool, "0", Inert),
    row("bind_address", Global, Text, "127.0.0.1", ReadOnly),
    row(
        "block_encryption_mode",
        Both,
        Choice(&[
            "aes-128-ecb",
            "aes-192-ecb",
            "aes-256-ecb",
            "aes-128-cbc",
            "aes-192-cbc",
            "aes-256-cbc",
            "aes-128-cfb1",
            "aes-192-cfb1",
            "aes-256-cfb1",
            "aes-128-cfb8",
            "aes-192-cfb8",
            "aes-256-cfb8",
            "aes-128-cfb128",
            "aes-192-cfb128",
            "aes-256-cfb128",
            "aes-128-ofb",
            "aes-192-ofb",
            "aes-256-ofb",
        ]),
        "aes-128-ecb",
        Settable,
    ),
    row(
        "bulk_insert_buffer_size",
        Both,
        int(0, U64),
        "8388608",
        Inert,
    ),
    applied("character_set_client", Kind::Charset, "utf8mb4", |s, v| {
        s.client_charset = Charset::by_name(text(v)).unwrap_or(Charset::Utf8mb4)
    }),
    applied(
        "character_set_connection",
        Kind::Charset,
        "utf8mb4",
        |_, _| (),
    ),
    row(
        "character_set_database",
        Both,
        Kind::Charset,
        "utf8mb4",
        Settable,
    ),
    row(
        "character_set_filesystem",
        Both,
        Kind::Charset,
        "binary",
        Inert,
    ),
    applied("character_set_results", Kind::Charset, "utf8mb4", |s, v| {
        s.results_charset = Charset::by_name(text(v))
    }),
    row(
        "character_set_server",
        Both,
        Kind::Charset,
        "utf8mb4",
        Settable,
    ),
    row(
        "character_set_system",
        Global,
        Kind::Charset,
        "utf8mb3",
        ReadOnly,
    ),
    row("character_sets_dir", Global, Text, "", ReadOnly),
    applied(
        "collation_connection",
        Kind::Collation,
        "utf8mb4_0900_ai_ci",
        |s, v| s.collation = Collation::by_name(text(v)).unwrap_or(Collation::UTF8MB4_0900_AI_CI),
    ),
    row(
        "collation_database",
        Both,
        Kind::Collation,
        "utf8mb4_0900_ai_ci",
        Settable,
    ),
    row(
        "collation_server",
        Both,
        Kind::Collation,
        "utf8mb4_0900_ai_ci",
        Settable,
    ),
    row(
        "completion_type",
        Both,
        Choice(&["NO_CHAIN", "CHAIN", "RELEASE"]),
        "NO_CHAIN",
        Inert,
    ),
    row(
        "concurrent_insert",
        Global,
        Choice(&["NEVER", "AUTO", "ALWAYS"]),
        "AUTO",
        Inert,
    ),
    row("connect_timeout", Global, int(2, YEAR_S), "10", Settable),
    applied("cte_max_recursion_depth", int(0, U32), "1000", |s, v| {
        s.cte_max_recursion_depth = unsigned(v)
    }),
    row("datadir", Global, Text, "", ReadOnly),
    row(
        "default_collation_for_utf8mb4",
        Both,
        Kind::Collation,
        "utf8mb4_0900_ai_ci",
        Inert,
    ),
    row("default_storage_engine", Both, Text, "InnoDB", Inert),
    row("default_tmp_storage_engine", Both, Text, "InnoDB", Inert),
    applied("default_week_format", int(0, 7), "0", |s, v| {
        s.default_week_format = unsigned(v) as u8
    }),
    row(
        "delay_key_write",
        Global,
        Choice(&["OFF", "ON", "ALL"]),
        "ON",
        Inert,
    ),
    row("disabled_storage_engines", Global, Text, "", ReadOnly),
    applied("div_precision_increment", int(0, 30), "4", |s, v| {
        s.div_precision_increment = unsigned(v) as u8
    }),
    row("end_markers_in_json", Both, Bool, "0", Inert),
    row(
        "enforce_gtid_consistency",
        Global,
        Choice(&["OFF", "ON", "WARN"]),
        "OFF",
        ReadOnly,
    ),
    row("eq_range_index_dive_limit", Both, int(0, U32), "200", Inert),
    row("error_count", Session, int(0, U32), "0", ReadOnly),
    row(
        "event_scheduler",
        Global,
        Choice(&["OFF", "ON", "DISABLED"]),
        "DISABLED",
        ReadOnly,
    ),
    row("explicit_defaults_for_timestamp", Both, Bool, "1", ReadOnly),
    row("flush", Global, Bool, "0", ReadOnly),
    applied("foreign_key_checks", Bool, "1", |s, v| {
        s.foreign_key_checks = unsigned(v) != 0
    }),
    row("ft_max_word_len", Global, int(10, 84), "84", ReadOnly),
    row("ft_min_word_len", Global, int(1, 84), "4", ReadOnly),
    row(
        "ft_query_expansion_limit",
        Global,
        int(0, 1000),
        "20",
        ReadOnly,
    ),
    row("ft_stopword_file", Global, Text, "(built-in)", ReadOnly),
    row("general_log", Global, Bool, "0", ReadOnly),
    row("general_log_file", Global, Text, "", ReadOnly),
    row(
        "generated_random_password_length",
        Both,
        int(5, 255),
        "20",
        Inert,
    ),
    applied("group_concat_max_len", int(4, U64), "1024", |s, v| {
        s.group_concat_max_len = unsigned(v)
    }),
    row("gtid_executed", Global, Text, "", ReadOnly),
    row(
        "gtid_mode",
        Global,
        Choice(&["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]),
        "OFF",
        ReadOnly,
    ),
    row("gtid_next", Session, Text, "AUTOMATIC", ReadOnly),
    row("gtid_purged", Global, Text, "", ReadOnly),
    row("have_compress", Global, Text, "NO", ReadOnly),
    row("have_dynamic_loading", Global, Text, "NO", ReadOnly),
    row("have_geometry", Global, Text, "NO", ReadOnly),
    row("have_openssl", Global, Text, "DISABLED", ReadOnly),
    row("have_profiling", Global, Text, "NO", ReadOnly),
    row("have_query_cache", Global, Text, "NO", ReadOnly),
    row("have_ssl", Global, Text, "DISABLED", ReadOnly),
    row("have_symlink", Global, Text, "DISABLED", ReadOnly),
    row("host_cache_size", Global, int(0, 65_536), "279", Settable),
    row("hostname", Global, Text, "localhost", ReadOnly),
    row("identity", Session, int(0, U64), "0", Settable),
    row(
        "information_schema_stats_expiry",
        Both,
        int(0, YEAR_S),
        "86400",
        Inert,
    ),
    row("init_connect", Global, Text, "", ReadOnly),
    row("init_file", Global, Text, "", ReadOnly),
    row("innodb_autoinc_lock_mode", Global, int(0, 2), "2", ReadOnly),
    row(
        "innodb_buffer_pool_size",
        Global,
        int(5_242_880, U64),
        "37748736",
        ReadOnly,
    ),
    row(
        "innodb_default_row_format",
        Global,
        Choice(&["redundant", "compact", "dynamic"]),
        "dynamic",
        ReadOnly,
    ),
    row("innodb_file_per_table", Global, Bool, "1", ReadOnly),
    row(
        "innodb_flush_log_at_trx_commit",
        Global,
        int(0, 2),
        "1",
        Settable,
    ),
    row("innodb_flush_method", Global, Text, "fsync", ReadOnly),
    applied(
        "innodb_lock_wait_timeout",
        int(1, 1_073_741_824),
        "50",
        |s, v| s.lock_wait_timeout_s = unsigned(v),
    ),
    row(
        "innodb_page_size",
        Global,
        int(4096, 65_536),
        "16384",
        ReadOnly,
    ),
    row("innodb_print_all_deadlocks", Global, Bool, "0", ReadOnly),
    row("innodb_read_only", Global, Bool, "0", ReadOnly),
    row(
        "innodb_redo_log_capacity",
        Global,
        int(8_388_608, U64),
        "67108864",
        ReadOnly,
    ),
    row("innodb_rollback_on_timeout", Global, Bool, "0", ReadOnly),
    row("innodb_stats_on_metadata", Global, Bool, "0", ReadOnly),
    row("innodb_strict_mode", Both, Bool, "1", Inert),
    row("innodb_table_locks", Both, Bool, "1", Inert),
    row("innodb_version", Global, Text, "8.4.7", ReadOnly),
    row("insert_id", Session, int(0, U64), "0", Settable),
    applied("interactive_timeout", int(1, YEAR_S), "28800", |s, v| {
        s.interactive_timeout_s = unsigned(v)
    }),
    row("join_buffer_size", Both, int(128, U64), "262144", Inert),
    row("keep_files_on_create", Both, Bool, "0", Inert),
    row("key_buffer_size", Global, int(0, U64), "8388608", Inert),
    row("large_page_size", Global, int(0, 65_535), "0", ReadOnly),
    row("large_pages", Global, Bool, "0", ReadOnly),
    row("last_insert_id", Session, int(0, U64), "0", Settable),
    row("lc_messages", Both, Text, "en_US", Inert),
    applied("lc_time_names", Kind::Locale, "en_US", |s, v| {
        s.locale = Locale::by_name(text(v)).unwrap_or(Locale::english())
    }),
    row("license", Global, Text, "MIT OR Apache-2.0", ReadOnly),
    row("local_infile", Global, Bool, "0", Settable),
    applied("lock_wait_timeout", int(1, YEAR_S), "31536000", |s, v| {
        s.metadata_lock_timeout_s = unsigned(v)
    }),
    row("locked_in_memory", Global, Bool, "0", ReadOnly),
    row("log_bin", Global, Bool, "0", ReadOnly),
    row("log_bin_trust_function_creators", Global, Bool, "0", Inert),
    row("log_error", Global, Text, "stderr", ReadOnly),
    row("log_output", Global, Text, "FILE", ReadOnly),
    row("log_queries_not_using_indexes", Global, Bool, "0", ReadOnly),
    row(
        "long_query_time",
        Both,
        Kind::Real {
            min: 0.0,
            max: 31_536_000.0,
        },
        "10.000000",
        Inert,
    ),
    row("loopback_fast_path", Global, Bool, "0", Settable),
    row("low_priority_updates", Both, Bool, "0", Inert),
    row("lower_case_file_system", Global, Bool, "0", ReadOnly),
    row("lower_case_table_names", Global, int(0, 2), "0", ReadOnly),
    applied(
        "max_allowed_packet",
        int(1024, 1_073_741_824),
        "67108864",
        |s, v| s.max_allowed_packet = unsigned(v),
    ),
    row("max_connect_errors", Global, int(1, U64), "100", Settable),
    row("max_connections", Global, int(1, 100_000), "151", Settable),
    row(
        "max_digest_length",
        Global,
        int(0, 1_048_576),
        "1024",
        ReadOnly,
    ),
    applied("max_error_count", int(0, 65_535), "1024", |s, v| {
        s.max_error_count = unsigned(v) as usize
    }),
    applied("max_execution_time", int(0, U32), "0", |s, v| {
        s.max_execution_time_ms = unsigned(v)
    }),
    row(
        "max_heap_table_size",
        Both,
        int(16_384, U64),
        "16777216",
        Inert,
    ),
    row(
        "max_insert_delayed_threads",
        Both,
        int(0, 16_384),
        "20",
        Inert,
    ),
    row(
        "max_join_size",
        Both,
        int(1, U64),
        "18446744073709551615",
        Inert,
    ),
    row(
        "max_length_for_sort_data",
        Both,
        int(4, 8_388_608),
        "4096",
        Inert,
    ),
    row(
        "max_points_in_geometry",
        Both,
        int(3, 1_048_576),
        "65536",
        Inert,
    ),
    row(
        "max_prepared_stmt_count",
        Global,
        int(0, 4_194_304),
        "16382",
        Settable,
    ),
    row(
        "max_seeks_for_key",
        Both,
        int(1, U64),
        "18446744073709551615",
        Inert,
    ),
    row("max_sort_length", Both, int(4, 8_388_608), "1024", Inert),
    row("max_sp_recursion_depth", Both, int(0, 255), "0", Inert),
    row("max_user_connections", Both, int(0, U32), "0", SetGlobal),
    row(
        "metadata_lock_kind",
        Global,
        Choice(porpoise_locks::Kind::NAMES),
        "prefer_reader",
        ReadOnly,
    ),
    row("min_examined_row_limit", Both, int(0, U64), "0", Inert),
    row(
        "net_buffer_length",
        Both,
        int(1024, 1_048_576),
        "16384",
        Inert,
    ),
    applied("net_read_timeout", int(1, YEAR_S), "30", |s, v| {
        s.net_read_timeout_s = unsigned(v)
    }),
    row("net_retry_count", Both, int(1, U64), "10", Inert),
    applied("net_write_timeout", int(1, YEAR_S), "60", |s, v| {
        s.net_write_timeout_s = unsigned(v)
    }),
    row("new", Both, Bool, "0", Inert),
    row("old_alter_table", Both, Bool, "0", Inert),
    row("open_files_limit", Global, int(0, U64), "1048576", ReadOnly),
    row("optimizer_prune_level", Both, int(0, 1), "1", Inert),
    row("optimizer_search_depth", Both, int(0, 62), "62", Inert),
    row(
        "optimizer_switch",
        Both,
        Text,
        "index_merge=off,block_nested_loop=on,batched_key_access=off,materialization=on,semijoin=on,derived_merge=on,hash_join=on",
        Inert,
    ),
    row(
        "optimizer_trace",
        Both,
        Text,
        "enabled=off,one_line=off",
        Inert,
    ),
    row("password_history", Global, int(0, U32), "0", ReadOnly),
    row("password_require_current", Global, Bool, "0", ReadOnly),
    row(
        "password_reuse_interval",
        Global,
        int(0, U32),
        "0",
        ReadOnly,
    ),
    row("performance_schema", Global, Bool, "1", ReadOnly),
    row("persisted_globals_load", Global, Bool, "1", ReadOnly),
    row("pid_file", Global, Text, "", ReadOnly),
    row("plugin_dir", Global, Text, "", ReadOnly),
    row("port", Global, int(0, 65_535), "3306", ReadOnly),
    row(
        "preload_buffer_size",
        Both,
        int(1024, 1_073_741_824),
        "32768",
        Inert,
    ),
    row("profiling", Both, Bool, "0", Inert),
    row("profiling_history_size", Both, int(0, 100), "15", Inert),
    row("protocol_version", Global, int(0, U32), "10", ReadOnly),
    row("pseudo_slave_mode", Session, Bool, "0", Inert),
    row("pseudo_thread_id", Session, int(0, U64), "0", Inert),
    row(
        "query_alloc_block_size",
        Both,
        int(1024, U32),
        "8192",
        Inert,
    ),
    row("query_prealloc_size", Both, int(8192, U64), "8192", Inert),
    row(
        "range_optimizer_max_mem_size",
        Both,
        int(0, U64),
        "8388608",
        Inert,
    ),
    row(
        "read_buffer_size",
        Both,
        int(8192, 2_147_479_552),
        "131072",
        Inert,
    ),
    row("read_only", Global, Bool, "0", ReadOnly),
    row(
        "read_rnd_buffer_size",
        Both,
        int(1, 2_147_483_647),
        "262144",
        Inert,
    ),
    row("require_secure_transport", Global, Bool, "0", ReadOnly),
    applied("restrict_fk_on_non_standard_key", Bool, "1", |s, v| {
        s.restrict_fk_on_non_standard_key = unsigned(v) != 0
    }),
    row("secure_file_priv", Global, Text, "NULL", ReadOnly),
    row("server_id", Global, int(0, U32), "1", ReadOnly),
    row("server_uuid", Global, Text, "", ReadOnly),
    row(
        "session_track_gtids",
        Both,
        Choice(&["OFF", "OWN_GTID", "ALL_GTIDS"]),
        "OFF",
        Inert,
    ),
    row("session_track_schema", Both, Bool, "1", Settable),
    row("session_track_state_change", Both, Bool, "0", Settable),
    row(
        "session_track_system_variables",
        Both,
        Text,
        "time_zone,autocommit,character_set_client,character_set_results,character_set_connection",
        Settable,
    ),
    row(
        "session_track_transaction_info",
        Both,
        Choice(&["OFF", "STATE", "CHARACTERISTICS"]),
        "OFF",
        Settable,
    ),
    row("shared_memory", Global, Bool, "0", ReadOnly),
    row("shared_memory_base_name", Global, Text, "MYSQL", ReadOnly),
    row("show_create_table_verbosity", Both, Bool, "0", Inert),
    row(
        "show_gipk_in_create_table_and_information_schema",
        Both,
        Bool,
        "1",
        Inert,
    ),
    row("skip_external_locking", Global, Bool, "1", ReadOnly),
    row("skip_name_resolve", Global, Bool, "1", ReadOnly),
    row("skip_networking", Global, Bool, "0", ReadOnly),
    row("skip_show_database", Global, Bool, "0", ReadOnly),
    row("slow_query_log", Global, Bool, "0", ReadOnly),
    row("slow_query_log_file", Global, Text, "", ReadOnly),
    row("socket", Global, Text, "/tmp/mysql.sock", ReadOnly),
    row("sort_buffer_size", Both, int(32_768, U64), "262144", Inert),
    row("sql_auto_is_null", Both, Bool, "0", Inert),
    row("sql_big_selects", Both, Bool, "1", Inert),
    row("sql_buffer_result", Both, Bool, "0", Inert),
    row("sql_generate_invisible_primary_key", Both, Bool, "0", Inert),
    row("sql_log_bin", Session, Bool, "1", Inert),
    row("sql_log_off", Both, Bool, "0", Inert),
    applied(
        "sql_mode",
        Kind::SqlMode,
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        |s, v| s.sql_mode = SqlMode::parse(text(v)).unwrap_or_default(),
    ),
    applied("sql_notes", Bool, "1", |s, v| {
        s.sql_notes = unsigned(v) != 0
    }),
    applied("sql_quote_show_create", Bool, "1", |_, _| ()),
    row("sql_require_primary_key", Both, Bool, "0", Inert),
    applied("sql_safe_updates", Bool, "0", |s, v| {
        s.sql_safe_updates = unsigned(v) != 0
    }),
    applied(
        "sql_select_limit",
        int(0, U64),
        "18446744073709551615",
        |s, v| s.sql_select_limit = unsigned(v),
    ),
    row("sql_warnings", Both, Bool, "0", Inert),
    row("ssl_ca", Global, Text, "", ReadOnly),
    row("ssl_cert", Global, Text, "", ReadOnly),
    row("ssl_cipher", Global, Text, "", ReadOnly),
    row("ssl_key", Global, Text, "", ReadOnly),
    row(
        "stored_program_cache",
        Global,
        int(16, 524_288),
        "256",
        Inert,
    ),
    row("super_read_only", Global, Bool, "0", ReadOnly),
    row("sync_binlog", Global, int(0, U32), "1", Inert),
    row("system_time_zone", Global, Text, "UTC", ReadOnly),
    row(
        "table_definition_cache",
        Global,
        int(400, 524_288),
        "2000",
        Inert,
    ),
    row("table_open_cache", Global, int(1, 524_288), "4000", Inert),
    row("thread_cache_size", Global, int(0, 16_384), "9", Inert),
    row("thread_handling", Global, Text, "workers", ReadOnly),
    row(
        "thread_stack",
        Global,
        int(131_072, U64),
        "1048576",
        ReadOnly,
    ),
    applied("time_zone", Kind::TimeZone, "SYSTEM", |s, v| {
        s.time_zone = TimeZone::parse(text(v)).unwrap_or_else(TimeZone::system)
    }),
    row(
        "timestamp",
        Session,
        Kind::Real {
            min: 0.0,
            max: 2_147_483_647.0,
        },
        "0",
        Settable,
    ),
    row("tls_version", Global, Text, "", ReadOnly),
    row("tmp_table_size", Both, int(1024, U64), "16777216", Inert),
    row("tmpdir", Global, Text, "/tmp", ReadOnly),
    row(
        "transaction_alloc_block_size",
        Both,
        int(1024, 131_072),
        "8192",
        Inert,
    ),
    applied(
        "transaction_isolation",
        Choice(&[
            "READ-UNCOMMITTED",
            "READ-COMMITTED",
            "REPEATABLE-READ",
            "SERIALIZABLE",
        ]),
        "REPEATABLE-READ",
        |s, v| s.isolation = Isolation::by_name(text(v)).unwrap_or_default(),
    ),
    row(
        "transaction_prealloc_size",
        Both,
        int(1024, 131_072),
        "4096",
        Inert,
    ),
    applied("transaction_read_only", Bool, "0", |s, v| {
        s.transaction_read_only = unsigned(v) != 0
    }),
    row("unique_checks", Both, Bool, "1", Inert),
    row("updatable_views_with_limit", Both, Bool, "1", Inert),
    row("version", Global, Text, "", ReadOnly),
    row("version_comment", Global, Text, "Porpoise", ReadOnly),
    row("version_compile_machine", Global, Text, "x86_64", ReadOnly),
    row("version_compile_os", Global, Text, "Linux", ReadOnly),
    row("version_compile_zlib", Global, Text, "", ReadOnly),
    applied("wait_timeout", int(1, YEAR_S), "28800", |s, v| {
        s.wait_timeout_s = unsigned(v)
    }),
    row("warning_count", Session, int(0, U32), "0", ReadOnly),
    row("windowing_use_high_precision", Both, Bool, "1", Inert),
    row("worker_threads", Global, int(0, 1024), "0", ReadOnly),
    row("xa_detach_on_prepare", Both, Bool, "1", Inert),
];

/// A variable's position in the table, which is its position in the arrays of values.
pub type Position = usize;

static BY_NAME: LazyLock<HashMap<&'static str, Position>> = LazyLock::new(|| {
    VARIABLES
        .iter()
        .enumerate()
        .map(|(position, variable)| (variable.name, position))
        .collect()
});

/// Finds a variable by name, in any case.
pub fn find(name: &str) -> Option<Position> {
    BY_NAME
        .get(name)
        .or_else(|| BY_NAME.get(name.to_ascii_lowercase().as_str()))
        .copied()
}

impl Variable {
    /// The type of `@@name`.
    pub fn ty(&self) -> DataType {
        match self.kind {
            Kind::Bool => DataType::BIGINT,
            Kind::Int { min, .. } if min < 0 => DataType::BIGINT,
            Kind::Int { .. } => DataType::BIGINT_UNSIGNED,
            Kind::Real { .. } => DataType::DOUBLE,
            _ => DataType::Varchar {
                length: 1024,
                collation: Collation::UTF8MB4_0900_AI_CI,
            },
        }
    }

    /// Reads a value from a text: a start-up option's, or the default's.
    fn parse(&self, given: &str) -> Option<Value> {
        Some(match self.kind {
            Kind::Bool => match given.to_ascii_lowercase().as_str() {
                "1" | "on" | "true" | "yes" | "" => Value::Int(1),
                "0" | "off" | "false" | "no" => Value::Int(0),
                _ => return None,
            },
            Kind::Int { .. } => {
                let (digits, factor) = match given.as_bytes().last()? {
                    b'k' | b'K' => (&given[..given.len() - 1], 1 << 10),
                    b'm' | b'M' => (&given[..given.len() - 1], 1 << 20),
                    b'g' | b'G' => (&given[..given.len() - 1], 1 << 30),
                    _ => (given, 1u64),
                };
                self.clamp(
                    digits
                        .parse::<i64>()
                        .ok()
                        .map_or_else(
                            || digits.parse::<u64>().map(i128::from),
                            |v| Ok(i128::from(v)),
                        )
                        .ok()?
                        .checked_mul(i128::from(factor))?,
                )
                .0
            }
            Kind::Real { min, max } => Value::Double(given.parse::<f64>().ok()?.clamp(min, max)),
            _ => self.check(Value::text(given)).ok()?,
        })
    }

    /// An integer within the range, and whether it had to be moved.
    fn clamp(&self, value: i128) -> (Value, bool) {
        let Kind::Int { min, max } = self.kind else {
            return (Value::Null, false);
        };
        let within = value.clamp(i128::from(min), i128::from(max));
        let held = if min < 0 {
            Value::Int(within as i64)
        } else {
            Value::UInt(within as u64)
        };
        (held, within != value)
    }

    /// Turns a value into one the variable can hold, or says 1231 or 1232. Integers are not clamped here.
    fn check(&self, value: Value) -> Result<Value> {
        let refuse = |value: &Value| {
            let shown = if value.is_null() {
                "NULL".to_owned()
            } else {
                convert::to_text(value, &DataType::varchar(0))
            };
            Error::wrong_value_for_variable(self.name, shown)
        };
        match self.kind {
            Kind::Bool => match &value {
                Value::Int(0 | 1) => Ok(value),
                Value::UInt(v @ (0 | 1)) => Ok(Value::Int(*v as i64)),
                Value::Text(text) => match text.to_ascii_lowercase().as_str() {
                    "on" | "true" => Ok(Value::Int(1)),
                    "off" | "false" => Ok(Value::Int(0)),
                    _ => Err(refuse(&value)),
                },
                Value::Decimal(_) | Value::Double(_) => {
                    Err(Error::wrong_type_for_variable(self.name))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Int { .. } => match value {
                Value::Int(_) | Value::UInt(_) => Ok(value),
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::Real { min, max } => match value {
                Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
                    Ok(Value::Double(convert::to_double(&value).0.clamp(min, max)))
                }
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::Choice(choices) => match &value {
                Value::Text(text) => choices
                    .iter()
                    .find(|choice| choice.eq_ignore_ascii_case(text))
                    .map(Value::text)
                    .ok_or_else(|| refuse(&value)),
                Value::Int(_) | Value::UInt(_) => usize::try_from(unsigned(&value))
                    .ok()
                    .and_then(|position| choices.get(position))
                    .map(Value::text)
                    .ok_or_else(|| refuse(&value)),
                _ => Err(refuse(&value)),
            },
            Kind::Text => match value {
                Value::Text(_) | Value::Null => Ok(value),
                _ => Err(Error::wrong_type_for_variable(self.name)),
            },
            Kind::SqlMode => {
                let given = convert::to_text(&value, &DataType::varchar(0));
                match SqlMode::parse(&given) {
                    Some(mode) if !value.is_null() => Ok(Value::text(mode.text())),
                    _ => Err(refuse(&value)),
                }
            }
            Kind::Charset => match &value {
                Value::Null if self.name == "character_set_results" => Ok(value),
                Value::Text(name) => {
                    let charset =
                        Charset::by_name(name).ok_or_else(|| Error::unknown_character_set(name))?;
                    Ok(Value::text(charset.name()))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Collation => match &value {
                Value::Text(name) => {
                    let collation =
                        Collation::by_name(name).ok_or_else(|| Error::unknown_collation(name))?;
                    Ok(Value::text(collation.name()))
                }
                _ => Err(refuse(&value)),
            },
            Kind::TimeZone => match &value {
                Value::Text(name) => {
                    let zone =
                        TimeZone::parse(name).ok_or_else(|| Error::unknown_time_zone(name))?;
                    Ok(Value::text(zone.name()))
                }
                _ => Err(refuse(&value)),
            },
            Kind::Locale => match &value {
                Value::Text(name) => Locale::canonical(name)
                    .map(Value::text)
                    .ok_or_else(|| Error::unknown_locale(name)),
                _ => Err(refuse(&value)),
            },
        }
    }

    /// As SHOW VARIABLES prints a value.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Null) => String::new(),
            (Kind::Bool, value) => if unsigned(value) != 0 { "ON" } else { "OFF" }.to_owned(),
            (Kind::Real { .. }, Value::Double(v)) => format!("{v:.6}"),
            (_, value) => convert::to_text(value, &self.ty()),
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
    connect_timeout_s: AtomicU64,
    loopback_fast_path: AtomicU64,
    max_user_connections: AtomicU64,
    pub started_us: i64,
}

impl GlobalVariables {
    /// Defaults, and the start-up values over them. Names may be written with dashes.
    ///
    /// # Errors
    /// 1193 for an unknown name, 1231 for a value it doesn't take.
    pub fn new(start_up: &[(String, String)]) -> Result<GlobalVariables> {
        let mut values: Vec<Value> = VARIABLES
            .iter()
            .map(|variable| match variable.default {
                "" if variable.kind == Kind::Text => Value::text(""),
                "NULL" if variable.kind == Kind::Text => Value::Null,
                default => variable.parse(default).unwrap_or(Value::Null),
            })
            .collect();
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
        for (name, given) in start_up {
            let name = name.replace('-', "_").to_ascii_lowercase();
            let position = find(&name).ok_or_else(|| Error::unknown_system_variable(&name))?;
            let value = VARIABLES[position]
                .parse(given)
                .ok_or_else(|| Error::wrong_value_for_variable(&name, given))?;
            values[position] = value;
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
            connect_timeout_s: AtomicU64::new(0),
            loopback_fast_path: AtomicU64::new(0),
            max_user_connections: AtomicU64::new(0),
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
        self.max_user_connections
            .store(self.get_u64("max_user_connections"), Ordering::Relaxed);
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

    pub fn get(&self, name: &str) -> Value {
        find(name).map_or(Value::Null, |position| self.values.load()[position].clone())
    }

    pub fn get_u64(&self, name: &str) -> u64 {
        unsigned(&self.get(name))
    }

    pub fn get_text(&self, name: &str) -> CompactString {
        match self.get(name) {
            Value::Text(text) => text,
            _ => CompactString::default(),
        }
    }

    fn set(&self, position: Position, value: Value) {
        let _changing = self.changing.lock();
        let mut values = Vec::clone(&self.values.load());
        values[position] = value;
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

    /// `metadata_lock_kind`: which lock guards each table's definition.
    pub fn metadata_lock_kind(&self) -> porpoise_locks::Kind {
        porpoise_locks::Kind::by_name(&self.get_text("metadata_lock_kind")).unwrap_or_default()
    }

    /// `innodb_redo_log_capacity`: how much log is written before a checkpoint drops it.
    pub fn log_bytes(&self) -> u64 {
        self.get_u64("innodb_redo_log_capacity")
    }

    pub fn max_connections(&self) -> u64 {
        self.max_connections.load(Ordering::Relaxed)
    }

    /// How many connections a user may have; 0 for any number.
    pub fn max_user_connections(&self) -> u64 {
        self.max_user_connections.load(Ordering::Relaxed)
    }

    pub fn connect_timeout(&self) -> u64 {
        self.connect_timeout_s.load(Ordering::Relaxed)
    }

    /// Whether TCP clients on this machine that ask for it move to shared memory.
    pub fn loopback_fast_path(&self) -> bool {
        self.loopback_fast_path.load(Ordering::Relaxed) != 0
    }

    /// The state of a session that begins now, with the global values for its own, and all three character sets those
    /// of the `collation` if there is one.
    ///
    /// Sessions begin alike until a global is set: what is derived from the values is derived once, then copied.
    pub fn begin_session(&self, connection_id: u64, collation: Option<Collation>) -> SessionState {
        let values = self.values.load();
        let beginnings = self.beginnings.load();
        let known = beginnings
            .iter()
            .find(|(of, beginning)| *of == collation && Arc::ptr_eq(&beginning.globals, &values));
        if let Some((_, beginning)) = known {
            return beginning.state.for_connection(connection_id);
        }
        let beginning = Arc::new(Beginning::new(values.clone(), collation));
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

/// A state to begin sessions with.
struct Beginning {
    /// The global values that it was made from.
    globals: Arc<Vec<Value>>,
    state: SessionState,
}

impl Beginning {
    fn new(globals: Arc<Vec<Value>>, collation: Option<Collation>) -> Beginning {
        let mut state = SessionState::new(0);
        state.variables = globals.clone();
        for (variable, value) in VARIABLES.iter().zip(globals.iter()) {
            if let Some(apply) = variable.apply {
                apply(&mut state, value);
            }
        }
        if let Some(collation) = collation {
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

/// Which value of a variable `@@x`, `@@session.x` or `@@global.x` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    Session,
    Global,
}

/// Finds what `@@[scope.]name` stands for: 1193 for an unknown name, 1238 for the wrong scope.
pub fn resolve(name: &str, scope: Option<Reads>) -> Result<(Position, Reads)> {
    let position = find(name).ok_or_else(|| Error::unknown_system_variable(name))?;
    let variable = &VARIABLES[position];
    match (variable.scope, scope) {
        (Scope::Global, Some(Reads::Session)) => Err(Error::incorrect_global_local_variable(
            variable.name,
            "GLOBAL",
        )),
        (Scope::Session, Some(Reads::Global)) => Err(Error::incorrect_global_local_variable(
            variable.name,
            "SESSION",
        )),
        (Scope::Global, _) => Ok((position, Reads::Global)),
        (_, scope) => Ok((position, scope.unwrap_or(Reads::Session))),
    }
}

/// A variable's value now.
pub fn read(
    position: Position,
    reads: Reads,
    state: &SessionState,
    globals: &GlobalVariables,
) -> Value {
    if reads == Reads::Global {
        return globals.values.load()[position].clone();
    }
    match VARIABLES[position].name {
        "last_insert_id" | "identity" => Value::UInt(state.last_insert_id),
        "warning_count" => Value::UInt(state.diagnostics_before.total as u64),
        "error_count" => Value::UInt(
            state
                .diagnostics_before
                .warnings
                .iter()
                .filter(|(level, _)| *level == Level::Error)
                .count() as u64,
        ),
        "pseudo_thread_id" => Value::UInt(state.connection_id),
        "timestamp" => Value::Double(state.statement_started_us as f64 / 1e6),
        "autocommit" => Value::Int(state.autocommit.into()),
        _ => state.variables[position].clone(),
    }
}

/// SET: checks, clamps, warns, stores, applies. `None` is DEFAULT.
///
/// # Errors
/// 1228, 1229 for the wrong scope, 1238 for a read-only variable, 1231, 1232 for a value it doesn't take.
pub fn set(
    position: Position,
    scope: Reads,
    value: Option<Value>,
    state: &mut SessionState,
    globals: &GlobalVariables,
) -> Result<()> {
    let variable = &VARIABLES[position];
    match (variable.usage, variable.scope, scope) {
        (Use::ReadOnly, ..) => {
            return Err(Error::incorrect_global_local_variable(
                variable.name,
                "read only",
            ));
        }
        (Use::SetGlobal, _, Reads::Session) => {
            return Err(Error::variable_is_read_only(
                "SESSION",
                variable.name,
                "GLOBAL",
            ));
        }
        (_, Scope::Global, Reads::Session) => return Err(Error::global_variable(variable.name)),
        (_, Scope::Session, Reads::Global) => return Err(Error::local_variable(variable.name)),
        _ => {}
    }
    let value = match value {
        Some(value) => variable.check(value)?,
        None if scope == Reads::Session && variable.scope == Scope::Both => {
            globals.values.load()[position].clone()
        }
        None => variable.parse(variable.default).unwrap_or(Value::Null),
    };
    let value = match (variable.kind, &value) {
        (Kind::Int { .. }, Value::Int(_) | Value::UInt(_)) => {
            let wanted = match value {
                Value::Int(v) => i128::from(v),
                Value::UInt(v) => i128::from(v),
                _ => 0,
            };
            let (within, moved) = variable.clamp(wanted);
            if moved {
                state.warn(
                    Level::Warning,
                    Error::truncated_wrong_value_truncated(variable.name, wanted).into_condition(),
                );
            }
            within
        }
        _ => value,
    };
    let before = if scope == Reads::Global {
        globals.values.load()[position].clone()
    } else {
        state.variables[position].clone()
    };
    if variable.usage == Use::Inert && before != value {
        let text = format!(
            "Variable '{}' has no effect in this version of Porpoise",
            variable.name
        );
        state.warn(
            Level::Warning,
            Error::new(1235, "42000", text).into_condition(),
        );
    }
    if scope == Reads::Global {
        globals.set(position, value);
        return Ok(());
    }
    match variable.name {
        "last_insert_id" | "identity" => state.last_insert_id = unsigned(&value),
        "insert_id" => state.next_insert_id = unsigned(&value),
        "timestamp" => {
            let seconds = convert::to_double(&value).0;
            state.fixed_timestamp_us = (seconds > 0.0).then_some((seconds * 1e6) as i64);
        }
        _ => {}
    }
    if let Some(apply) = variable.apply {
        apply(state, &value);
    }
    Arc::make_mut(&mut state.variables)[position] = value;
    // A character set and its collation go together.
    let companion = match variable.name {
        "character_set_connection" => Some((
            "collation_connection",
            Charset::by_name(text(&state.variables[position]))
                .map(|charset| charset.default_collation().name()),
        )),
        "collation_connection" => Some((
            "character_set_connection",
            Some(state.collation.charset().name()),
        )),
        "character_set_server" => Some((
            "collation_server",
            Charset::by_name(text(&state.variables[position]))
                .map(|charset| charset.default_collation().name()),
        )),
        "character_set_database" => Some((
            "collation_database",
            Charset::by_name(text(&state.variables[position]))
                .map(|charset| charset.default_collation().name()),
        )),
        _ => None,
    };
    if let Some((name, Some(value))) = companion
        && let Some(position) = find(name)
    {
        let value = Value::text(value);
        if let Some(apply) = VARIABLES[position].apply {
            apply(state, &value);
        }
        Arc::make_mut(&mut state.variables)[position] = value;
    }
    Ok(())
}

/// SET NAMES: the three character sets of a connection at once.
pub fn set_names(charset: Charset, collation: Collation, state: &mut SessionState) {
    for (name, value) in [
        ("character_set_client", charset.name()),
        ("character_set_results", charset.name()),
        ("character_set_connection", charset.name()),
        ("collation_connection", collation.name()),
    ] {
        if let Some(position) = find(name) {
            let value = Value::text(value);
            // Sessions that ask for the defaults share the global values.
            if state.variables[position] == value {
                continue;
            }
            if let Some(apply) = VARIABLES[position].apply {
                apply(state, &value);
            }
            Arc::make_mut(&mut state.variables)[position] = value;
        }
    }
}

/// CLIENT_INTERACTIVE: a person at the other end is given `interactive_timeout` to think.
pub fn make_interactive(state: &mut SessionState) {
    if let Some(position) = find("wait_timeout")
        && state.wait_timeout_s != state.interactive_timeout_s
    {
        state.wait_timeout_s = state.interactive_timeout_s;
        Arc::make_mut(&mut state.variables)[position] = Value::UInt(state.interactive_timeout_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_defaults_are_values() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].name < pair[1].name));
        for variable in VARIABLES {
            assert!(
                variable.default == "NULL"
                    || variable.default.is_empty()
                    || variable.parse(variable.default).is_some(),
                "{}",
                variable.name
            );
        }
    }

    #[test]
    fn sizes_take_suffixes_and_ranges_clamp() {
        let globals = GlobalVariables::new(&[
            ("max-allowed-packet".into(), "16M".into()),
            ("max_connections".into(), "0".into()),
        ]);
        let globals = globals.expect("start-up values");
        assert_eq!(globals.get_u64("max_allowed_packet"), 16 << 20);
        assert_eq!(globals.max_connections(), 1);
        assert!(GlobalVariables::new(&[("no_such".into(), "1".into())]).is_err());
    }
}
