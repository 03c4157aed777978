//! The table: a row a variable, in the order of their names.
//!
//! A row tells name, scope, kind of value, default, what a value that is given to it does
//! ([`Use`]), and what a change does to a session. What a kind of value takes is said in [`super::kind`].

use std::sync::LazyLock;

use hashbrown::HashMap;
use porpoise_types::temporal::locale::Locale;
use porpoise_types::{Charset, Collation, TimeZone, Value, convert};

use super::kind::{Kind, text, unsigned};
use super::optimizer::{TRACE_FEATURES, TRACE_FLAGS};
use super::sql_mode::SqlMode;
use super::{Isolation, SessionVars, Switches};
use crate::memory::Buffer;

/// Where a variable has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value, for all sessions.
    Global,
    /// A value for each session, and none that they begin with.
    Session,
    /// A value for each session, and a global one that they begin with.
    Both,
}

/// What a value that somebody gives to a variable does: what it claims to do, or what a warning or
/// an error says. Nothing is taken silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It works, by SET and at start.
    Settable,
    /// As `Settable`, but only the global value may be set; sessions show what holds for them.
    SetGlobal,
    /// It works at start. SET is refused (1238).
    AtStart,
    /// It shows what is so. SET is refused (1238); another value at start changes nothing, and a
    /// warning says so.
    ReadOnly,
    /// Nothing depends on it, and nobody is harmed by that: a value is kept and shown, with a
    /// warning that it has no effect.
    Inert,
    /// As `Inert`, of a variable that MySQL takes at start alone: SET is refused (1238).
    InertAtStart,
    /// Only its default is implemented, and somebody may rely on another value: that is refused,
    /// by SET (1235) as at start.
    DefaultOnly,
    /// As `DefaultOnly`, of a variable that MySQL too takes at start alone: SET is refused (1238).
    DefaultAtStart,
}

/// A row of the table.
pub struct Variable {
    /// In lower case, as SHOW VARIABLES prints it.
    pub name: &'static str,
    /// Whether there is a global value, a session's, or both.
    pub scope: Scope,
    /// What values it takes.
    pub kind: Kind,
    /// The value before start-up options, spelled as one.
    pub default: &'static str,
    /// Whether it may be set, and what that does.
    pub usage: Use,
    /// Puts a session's new value where the engine reads it.
    pub(super) apply: Option<fn(&mut SessionVars, &Value)>,
}

impl Variable {
    /// Whether SET takes a global value while the database is open.
    pub fn is_dynamic(&self) -> bool {
        !matches!(
            self.usage,
            Use::AtStart | Use::ReadOnly | Use::InertAtStart | Use::DefaultAtStart
        )
    }

    /// Whether a value may be kept for the next start: not of what has to be known before the data
    /// folder is.
    pub fn is_persistent(&self) -> bool {
        const READ_BY_THE_ENGINE: &[&str] = &[
            "back_log",
            "disconnect_on_expired_password",
            "skip_name_resolve",
        ];
        self.is_dynamic() || READ_BY_THE_ENGINE.contains(&self.name)
    }
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
    apply: fn(&mut SessionVars, &Value),
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

use Kind::{Bool, Choice, Text, WordSet, Words};
use Scope::{Both, Global, Session};
use Use::{
    AtStart, DefaultAtStart, DefaultOnly, Inert, InertAtStart, ReadOnly, SetGlobal, Settable,
};

const I32: u64 = i32::MAX as u64;
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
    row("authentication_policy", Global, Text, "*,,", DefaultOnly),
    row("auto_generate_certs", Global, Bool, "1", AtStart),
    applied("auto_increment_increment", int(1, 65_535), "1", |s, v| {
        s.auto_increment_increment = unsigned(v)
    }),
    applied("auto_increment_offset", int(1, 65_535), "1", |s, v| {
        s.auto_increment_offset = unsigned(v)
    }),
    applied("autocommit", Bool, "1", |s, v| {
        s.autocommit = unsigned(v) != 0
    }),
    row("automatic_sp_privileges", Global, Bool, "1", Settable),
    row("back_log", Global, int(AUTOSIZED, 65_535), "-1", AtStart),
    row("basedir", Global, Text, "/usr/", ReadOnly),
    applied("batch_scan_min_rows", int(0, U64), "128", |s, v| {
        s.batch_scan_min_rows = unsigned(v)
    }),
    row("big_tables", Both, Bool, "0", Inert),
    row("bind_address", Global, Text, "127.0.0.1", AtStart),
    row(
        "binlog_format",
        Both,
        Choice(&["MIXED", "STATEMENT", "ROW"]),
        "ROW",
        Inert,
    ),
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
        Inert,
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
    row("check_proxy_users", Global, Bool, "0", Settable),
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
        Inert,
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
        DefaultOnly,
    ),
    row(
        "concurrent_insert",
        Global,
        Choice(&["NEVER", "AUTO", "ALWAYS"]),
        "AUTO",
        Inert,
    ),
    row("connect_timeout", Global, int(2, YEAR_S), "10", Settable),
    applied(
        "connection_memory_chunk_size",
        int(0, 536_870_912),
        "8192",
        |s, v| s.memory.set_chunk(unsigned(v)),
    ),
    applied(
        "connection_memory_limit",
        int(2_097_152, U64),
        "18446744073709551615",
        |s, v| s.memory.set_connection_limit(unsigned(v)),
    ),
    applied("cte_max_recursion_depth", int(0, U32), "1000", |s, v| {
        s.cte_max_recursion_depth = unsigned(v)
    }),
    row("datadir", Global, Text, "", AtStart),
    row(
        "default_collation_for_utf8mb4",
        Both,
        Kind::Collation,
        "utf8mb4_0900_ai_ci",
        DefaultOnly,
    ),
    row(
        "default_password_lifetime",
        Global,
        int(0, 65_535),
        "0",
        Settable,
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
    row("disconnect_on_expired_password", Global, Bool, "1", AtStart),
    applied("div_precision_increment", int(0, 30), "4", |s, v| {
        s.div_precision_increment = unsigned(v) as u8
    }),
    row("end_markers_in_json", Both, Bool, "0", Inert),
    row(
        "enforce_gtid_consistency",
        Global,
        Choice(&["OFF", "ON", "WARN"]),
        "OFF",
        DefaultOnly,
    ),
    applied("eq_range_index_dive_limit", int(0, U32), "200", |s, v| {
        s.planner.index_dive_limit = unsigned(v) as u32
    }),
    row("error_count", Session, int(0, U32), "0", ReadOnly),
    row(
        "event_scheduler",
        Global,
        Choice(&["OFF", "ON", "DISABLED"]),
        "OFF",
        Settable,
    ),
    row(
        "explain_format",
        Both,
        Choice(&["TRADITIONAL", "JSON", "TREE"]),
        "TRADITIONAL",
        Settable,
    ),
    row(
        "explain_json_format_version",
        Both,
        int(1, 2),
        "1",
        Settable,
    ),
    row(
        "explicit_defaults_for_timestamp",
        Both,
        Bool,
        "1",
        DefaultOnly,
    ),
    row("external_user", Session, Text, "", ReadOnly),
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
    row("general_log", Global, Bool, "0", Settable),
    row(
        "general_log_file",
        Global,
        Kind::LogFile,
        "porpoise.log",
        Settable,
    ),
    row(
        "generated_random_password_length",
        Both,
        int(5, 255),
        "20",
        Settable,
    ),
    row(
        "global_connection_memory_limit",
        Global,
        int(16_777_216, U64),
        "18446744073709551615",
        Settable,
    ),
    applied("global_connection_memory_tracking", Bool, "0", |s, v| {
        s.memory.set_tracked(unsigned(v) != 0)
    }),
    applied("group_concat_max_len", int(4, U64), "1024", |s, v| {
        s.group_concat_max_len = unsigned(v)
    }),
    row("gtid_executed", Global, Text, "", ReadOnly),
    row(
        "gtid_mode",
        Global,
        Choice(&["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]),
        "OFF",
        DefaultOnly,
    ),
    row("gtid_next", Session, Text, "AUTOMATIC", ReadOnly),
    row("gtid_purged", Global, Text, "", ReadOnly),
    row("have_compress", Global, Text, "YES", ReadOnly),
    row("have_dynamic_loading", Global, Text, "NO", ReadOnly),
    row("have_geometry", Global, Text, "NO", ReadOnly),
    row("have_openssl", Global, Text, "DISABLED", ReadOnly),
    row("have_profiling", Global, Text, "NO", ReadOnly),
    row("have_query_cache", Global, Text, "NO", ReadOnly),
    row("have_ssl", Global, Text, "DISABLED", ReadOnly),
    row("have_symlink", Global, Text, "DISABLED", ReadOnly),
    applied(
        "histogram_generation_max_mem_size",
        int(1_000_000, U64),
        "20000000",
        |s, v| s.histogram_generation_max_mem_size = unsigned(v),
    ),
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
    row("init_connect", Global, Text, "", Settable),
    row("init_file", Global, Text, "", DefaultAtStart),
    row("innodb_autoinc_lock_mode", Global, int(0, 2), "2", ReadOnly),
    row(
        "innodb_buffer_pool_size",
        Global,
        int(5_242_880, U64),
        "134217728",
        AtStart,
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
        "innodb_log_buffer_size",
        Global,
        int(262_144, U32),
        "67108864",
        Inert,
    ),
    row("innodb_log_checksums", Global, Bool, "1", Inert),
    row("innodb_log_compressed_pages", Global, Bool, "1", Inert),
    row(
        "innodb_log_file_size",
        Global,
        int(4_194_304, U64),
        "50331648",
        InertAtStart,
    ),
    row(
        "innodb_log_files_in_group",
        Global,
        int(2, 100),
        "2",
        InertAtStart,
    ),
    row("innodb_log_group_home_dir", Global, Text, "./", ReadOnly),
    row(
        "innodb_log_spin_cpu_abs_lwm",
        Global,
        int(0, U32),
        "80",
        Inert,
    ),
    row(
        "innodb_log_spin_cpu_pct_hwm",
        Global,
        int(0, 100),
        "50",
        Inert,
    ),
    row(
        "innodb_log_wait_for_flush_spin_hwm",
        Global,
        int(0, U64),
        "400",
        Inert,
    ),
    row(
        "innodb_log_write_ahead_size",
        Global,
        int(512, 16_384),
        "8192",
        Inert,
    ),
    row("innodb_log_writer_threads", Global, Bool, "0", Inert),
    row(
        "innodb_page_size",
        Global,
        int(4096, 65_536),
        "16384",
        ReadOnly,
    ),
    applied("innodb_parallel_read_threads", int(1, 256), "4", |s, v| {
        s.innodb_parallel_read_threads = unsigned(v)
    }),
    row("innodb_print_all_deadlocks", Global, Bool, "0", ReadOnly),
    row("innodb_read_only", Global, Bool, "0", DefaultAtStart),
    row(
        "innodb_redo_log_capacity",
        Global,
        int(8_388_608, U64),
        "67108864",
        AtStart,
    ),
    row(
        "innodb_rollback_on_timeout",
        Global,
        Bool,
        "0",
        DefaultAtStart,
    ),
    row("innodb_stats_auto_recalc", Global, Bool, "1", Settable),
    row("innodb_stats_on_metadata", Global, Bool, "0", ReadOnly),
    row("innodb_stats_persistent", Global, Bool, "1", Inert),
    row("innodb_strict_mode", Both, Bool, "1", Inert),
    row("innodb_table_locks", Both, Bool, "1", Inert),
    row("innodb_version", Global, Text, "8.4.7", ReadOnly),
    row("insert_id", Session, int(0, U64), "0", Settable),
    applied("interactive_timeout", int(1, YEAR_S), "28800", |s, v| {
        s.interactive_timeout_s = unsigned(v)
    }),
    applied("join_buffer_size", int(128, U64), "262144", |s, v| {
        s.join_buffer_size = unsigned(v);
        s.memory.set_buffer_bytes(Buffer::Join, unsigned(v));
    }),
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
    row("log_bin", Global, Bool, "0", DefaultAtStart),
    row("log_bin_trust_function_creators", Global, Bool, "0", Inert),
    row("log_error", Global, Text, "stderr", AtStart),
    row(
        "log_output",
        Global,
        WordSet(&["NONE", "FILE", "TABLE"]),
        "FILE",
        Settable,
    ),
    row("log_queries_not_using_indexes", Global, Bool, "0", Settable),
    applied(
        "long_query_time",
        Kind::Real {
            min: 0.0,
            max: 31_536_000.0,
        },
        "10.000000",
        |s, v| s.long_query_time_us = (convert::to_double(v).0 * 1e6) as u64,
    ),
    row("loopback_fast_path", Global, Bool, "0", Settable),
    row("low_priority_updates", Both, Bool, "0", Inert),
    row("lower_case_file_system", Global, Bool, "0", ReadOnly),
    row("lower_case_table_names", Global, int(0, 2), "0", AtStart),
    applied(
        "max_allowed_packet",
        int(1024, 1_073_741_824),
        "67108864",
        |s, v| s.max_allowed_packet = unsigned(v),
    ),
    row(
        "max_binlog_size",
        Global,
        int(4096, 1_073_741_824),
        "1073741824",
        Inert,
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
    applied(
        "max_join_size",
        int(1, U64),
        "18446744073709551615",
        |s, v| s.max_join_size = unsigned(v),
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
    row("max_sp_recursion_depth", Both, int(0, 255), "0", Settable),
    applied(
        "max_tmp_session_space_usage",
        int(0, U64),
        "1099511627776",
        |s, v| s.memory.space().set_limit(unsigned(v)),
    ),
    row(
        "max_tmp_total_space_usage",
        Global,
        int(0, U64),
        "1099511627776",
        Settable,
    ),
    row("max_user_connections", Both, int(0, U32), "0", SetGlobal),
    applied("min_examined_row_limit", int(0, U64), "0", |s, v| {
        s.min_examined_row_limit = unsigned(v)
    }),
    row(
        "mysql_native_password_proxy_users",
        Global,
        Bool,
        "0",
        Settable,
    ),
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
    row("open_files_limit", Global, int(0, U64), "1048576", AtStart),
    applied("optimizer_prune_level", int(0, 1), "1", |s, v| {
        s.planner.prunes = unsigned(v) != 0
    }),
    applied("optimizer_search_depth", int(0, 62), "62", |s, v| {
        s.planner.search_depth = unsigned(v) as u8
    }),
    applied(
        "optimizer_switch",
        Kind::Flags(Switches::FLAGS),
        "default",
        |s, v| s.planner.switches = Switches::of(text(v)),
    ),
    applied(
        "optimizer_trace",
        Kind::Flags(&TRACE_FLAGS),
        "default",
        |s, v| {
            s.optimizer_traces.is_enabled = TRACE_FLAGS.is_on("enabled", text(v));
            s.optimizer_traces.is_one_line = TRACE_FLAGS.is_on("one_line", text(v));
        },
    ),
    applied(
        "optimizer_trace_features",
        Kind::Flags(&TRACE_FEATURES),
        "default",
        |s, v| {
            s.optimizer_traces.search = TRACE_FEATURES.is_on("greedy_search", text(v));
            s.optimizer_traces.access = TRACE_FEATURES.is_on("range_optimizer", text(v));
        },
    ),
    applied("optimizer_trace_limit", int(0, I32), "1", |s, v| {
        s.optimizer_traces.limit = unsigned(v) as usize;
        s.optimizer_traces.clear();
    }),
    applied(
        "optimizer_trace_max_mem_size",
        int(0, U32),
        "1048576",
        |s, v| s.optimizer_traces.bytes_max = unsigned(v) as usize,
    ),
    applied(
        "optimizer_trace_offset",
        int(i32::MIN as i64, I32),
        "-1",
        |s, v| {
            s.optimizer_traces.offset = convert::to_int(v).0;
            s.optimizer_traces.clear();
        },
    ),
    row("password_history", Global, int(0, U32), "0", Settable),
    row("password_require_current", Global, Bool, "0", Settable),
    row(
        "password_reuse_interval",
        Global,
        int(0, U32),
        "0",
        Settable,
    ),
    row("performance_schema", Global, Bool, "1", ReadOnly),
    row(
        "performance_schema_session_connect_attrs_size",
        Global,
        int(AUTOSIZED, 1_048_576),
        "512",
        AtStart,
    ),
    row("persisted_globals_load", Global, Bool, "1", AtStart),
    row("pid_file", Global, Text, "", AtStart),
    row("plugin_dir", Global, Text, "", ReadOnly),
    row("port", Global, int(0, 65_535), "3306", AtStart),
    row(
        "preload_buffer_size",
        Both,
        int(1024, 1_073_741_824),
        "32768",
        Inert,
    ),
    row("profiling", Both, Bool, "0", Inert),
    row("profiling_history_size", Both, int(0, 100), "15", Inert),
    row(
        "protocol_compression_algorithms",
        Global,
        Words(&["zlib", "zstd", "uncompressed"]),
        "zlib,zstd,uncompressed",
        Settable,
    ),
    row("protocol_version", Global, int(0, U32), "10", ReadOnly),
    row("proxy_user", Session, Text, "", ReadOnly),
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
    row("rand_seed1", Session, int(0, U32), "0", Settable),
    row("rand_seed2", Session, int(0, U32), "0", Settable),
    applied(
        "range_optimizer_max_mem_size",
        int(0, U64),
        "8388608",
        |s, v| s.planner.range_bytes_max = unsigned(v),
    ),
    row(
        "read_buffer_size",
        Both,
        int(8192, 2_147_479_552),
        "131072",
        Inert,
    ),
    row("read_only", Global, Bool, "0", Settable),
    row(
        "read_rnd_buffer_size",
        Both,
        int(1, 2_147_483_647),
        "262144",
        Inert,
    ),
    row(
        "regexp_stack_limit",
        Global,
        int(0, 2_147_483_647),
        "8000000",
        Settable,
    ),
    row(
        "regexp_time_limit",
        Global,
        int(0, 2_147_483_647),
        "32",
        Settable,
    ),
    row("require_secure_transport", Global, Bool, "0", Settable),
    applied("restrict_fk_on_non_standard_key", Bool, "1", |s, v| {
        s.restrict_fk_on_non_standard_key = unsigned(v) != 0
    }),
    row("secure_file_priv", Global, Text, "NULL", AtStart),
    row("server_id", Global, int(0, U32), "1", Settable),
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
        DefaultOnly,
    ),
    row("sha256_password_proxy_users", Global, Bool, "0", Settable),
    row("shared_memory", Global, Bool, "0", AtStart),
    row("shared_memory_base_name", Global, Text, "MYSQL", AtStart),
    row("show_create_table_verbosity", Both, Bool, "0", Inert),
    row(
        "show_gipk_in_create_table_and_information_schema",
        Both,
        Bool,
        "1",
        Inert,
    ),
    row("skip_external_locking", Global, Bool, "1", ReadOnly),
    row("skip_name_resolve", Global, Bool, "0", AtStart),
    row("skip_networking", Global, Bool, "0", AtStart),
    row("skip_show_database", Global, Bool, "0", DefaultAtStart),
    row("slow_query_log", Global, Bool, "0", Settable),
    row(
        "slow_query_log_file",
        Global,
        Kind::LogFile,
        "porpoise-slow.log",
        Settable,
    ),
    row("socket", Global, Text, "/tmp/mysql.sock", AtStart),
    applied("sort_buffer_size", int(32_768, U64), "262144", |s, v| {
        s.memory.set_buffer_bytes(Buffer::Sort, unsigned(v))
    }),
    row("sql_auto_is_null", Both, Bool, "0", DefaultOnly),
    applied("sql_big_selects", Bool, "1", |s, v| {
        s.big_selects = unsigned(v) != 0
    }),
    row("sql_buffer_result", Both, Bool, "0", Inert),
    row(
        "sql_generate_invisible_primary_key",
        Both,
        Bool,
        "0",
        DefaultOnly,
    ),
    row("sql_log_bin", Session, Bool, "1", Inert),
    applied("sql_log_off", Bool, "0", |s, v| {
        s.general_log_off = unsigned(v) != 0
    }),
    applied(
        "sql_mode",
        Kind::SqlMode,
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        |s, v| s.sql_mode = SqlMode::parse(text(v)).unwrap_or_default(),
    ),
    applied("sql_notes", Bool, "1", |s, v| {
        s.sql_notes = unsigned(v) != 0
    }),
    row("sql_quote_show_create", Both, Bool, "1", Inert),
    row("sql_require_primary_key", Both, Bool, "0", DefaultOnly),
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
    row("ssl_ca", Global, Text, "", Settable),
    row("ssl_capath", Global, Text, "NULL", Settable),
    row("ssl_cert", Global, Text, "", Settable),
    row("ssl_cipher", Global, Text, "NULL", Settable),
    row("ssl_crl", Global, Text, "NULL", Settable),
    row("ssl_crlpath", Global, Text, "NULL", Settable),
    row("ssl_key", Global, Text, "", Settable),
    row("ssl_session_cache_mode", Global, Bool, "1", Settable),
    row(
        "ssl_session_cache_timeout",
        Global,
        int(0, 84_600),
        "300",
        Settable,
    ),
    applied("statement_memory_limit", int(0, U64), "0", |s, v| {
        s.memory.set_statement_limit(unsigned(v))
    }),
    row(
        "stored_program_cache",
        Global,
        int(16, 524_288),
        "256",
        Inert,
    ),
    row("super_read_only", Global, Bool, "0", Settable),
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
    row(
        "temptable_max_ram",
        Global,
        int(2_097_152, U64),
        "1073741824",
        Settable,
    ),
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
    row("tls_ciphersuites", Global, Text, "NULL", Settable),
    row("tls_version", Global, Text, "TLSv1.2,TLSv1.3", Settable),
    applied("tmp_table_size", int(1024, U64), "16777216", |s, v| {
        s.memory.set_buffer_bytes(Buffer::Table, unsigned(v))
    }),
    row("tmpdir", Global, Text, "/tmp", AtStart),
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
    row("transaction_memory_size", Global, int(0, U64), "0", AtStart),
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
    row(
        "validate_password.changed_characters_percentage",
        Global,
        int(0, 100),
        "0",
        DefaultOnly,
    ),
    row(
        "validate_password.check_user_name",
        Global,
        Bool,
        "1",
        Settable,
    ),
    row(
        "validate_password.dictionary_file",
        Global,
        Text,
        "",
        Settable,
    ),
    row(
        "validate_password.length",
        Global,
        int(0, I32),
        "8",
        Settable,
    ),
    row(
        "validate_password.mixed_case_count",
        Global,
        int(0, I32),
        "1",
        Settable,
    ),
    row(
        "validate_password.number_count",
        Global,
        int(0, I32),
        "1",
        Settable,
    ),
    row(
        "validate_password.policy",
        Global,
        Choice(&["LOW", "MEDIUM", "STRONG"]),
        "MEDIUM",
        Settable,
    ),
    row(
        "validate_password.special_char_count",
        Global,
        int(0, I32),
        "1",
        Settable,
    ),
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
    row("worker_threads", Global, int(0, 1024), "0", AtStart),
    row("xa_detach_on_prepare", Both, Bool, "1", Settable),
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
}
