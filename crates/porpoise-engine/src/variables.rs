//! System variables: one table, a row each.

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

/// The global values.
pub struct GlobalVariables {
    flush: porpoise_storage::FlushPolicy,
}

impl GlobalVariables {
    /// Defaults, and the start-up values over them.
    pub fn new(_start_up: &[(String, String)]) -> crate::Result<GlobalVariables> {
        Ok(GlobalVariables {
            flush: porpoise_storage::FlushPolicy::default(),
        })
    }

    /// `innodb_flush_log_at_trx_commit`, as storage watches it.
    pub fn flush_policy(&self) -> &porpoise_storage::FlushPolicy {
        &self.flush
    }

    /// `innodb_buffer_pool_size`.
    pub fn cache_bytes(&self) -> usize {
        32 << 20
    }

    /// Gives a session its own values.
    pub fn start_session(&self, _state: &mut crate::session::SessionState) {}

    pub fn max_connections(&self) -> u64 {
        151
    }

    pub fn connect_timeout(&self) -> u64 {
        10
    }
}
