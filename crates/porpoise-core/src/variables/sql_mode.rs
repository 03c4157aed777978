//! `sql_mode`: its flags, their names and what the combined ones bring with them.
//!
//! Source: MySQL 8.4 Reference Manual, Server SQL Modes.

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

/// Modes that MySQL 8 has no more because they can't be switched off. MariaDB's default has one, and
/// so do all of its dumps with programs.
fn is_always_so(name: &str) -> bool {
    name.eq_ignore_ascii_case("NO_AUTO_CREATE_USER")
}

impl Default for SqlMode {
    /// MySQL 8.4's default.
    fn default() -> SqlMode {
        SqlMode(1 << 5 | 1 << 21 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30)
    }
}

impl SqlMode {
    /// Data errors are errors, not warnings.
    pub const fn strict(self) -> bool {
        self.strict_trans_tables() || self.strict_all_tables()
    }

    /// Reads a list of names, or a number. `ANSI` and `TRADITIONAL` bring others with them.
    pub fn parse(text: &str) -> Option<SqlMode> {
        if let Ok(bits) = text.trim().parse::<u64>() {
            return Some(SqlMode(bits));
        }
        let mut bits = 0;
        let names = text.split(',').map(str::trim);
        for name in names.filter(|name| !name.is_empty() && !is_always_so(name)) {
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
