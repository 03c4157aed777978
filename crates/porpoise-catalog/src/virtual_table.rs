//! Tables whose rows are made by code: their definitions. What makes the rows is registered with
//! the executor.

use std::sync::OnceLock;

use porpoise_types::DataType;

/// A read-only table whose rows are made by code when a statement reads it.
pub struct VirtualTable {
    /// A built-in schema; see
    /// [`dictionary::BUILT_IN_SCHEMAS`](crate::dictionary::BUILT_IN_SCHEMAS).
    pub schema: &'static str,
    /// As MySQL spells it; compares in any case.
    pub name: &'static str,
    /// Name, type, nullable.
    pub columns: &'static [VirtualColumn],
}

/// A column's name, type, and whether it can be NULL.
pub type VirtualColumn = (&'static str, fn() -> DataType, bool);

/// Every virtual table of the program. The code that makes their rows registers them before the
/// first database opens.
static REGISTERED: OnceLock<Vec<VirtualTable>> = OnceLock::new();

/// Makes virtual tables known. The first call counts: they are the same for all databases of a
/// process.
pub fn register(tables: impl IntoIterator<Item = VirtualTable>) {
    REGISTERED.get_or_init(|| tables.into_iter().collect());
}

/// Every virtual table.
pub fn all() -> impl Iterator<Item = &'static VirtualTable> {
    REGISTERED.get().into_iter().flatten()
}

/// Finds a virtual table, in any case.
pub fn find(schema: &str, name: &str) -> Option<&'static VirtualTable> {
    all().find(|table| {
        table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name)
    })
}

impl VirtualTable {
    /// The storage engine that MySQL 8.4 has it in; `None` for a view of information_schema.
    pub fn engine(&self) -> Option<&'static str> {
        match (self.schema, self.name) {
            _ if self.is_log() => Some("CSV"),
            ("mysql", _) => Some("InnoDB"),
            ("performance_schema", _) => Some("PERFORMANCE_SCHEMA"),
            _ => None,
        }
    }

    /// Whether it is the general log or the slow query log.
    pub fn is_log(&self) -> bool {
        self.schema == "mysql" && matches!(self.name, "general_log" | "slow_log")
    }

    /// What MySQL 8.4 says that it holds.
    pub fn comment(&self) -> &'static str {
        const COMMENTS: &[(&str, &str)] = &[
            ("columns_priv", "Column privileges"),
            ("component", "Components"),
            ("db", "Database privileges"),
            ("default_roles", "Default roles"),
            ("func", "User defined functions"),
            ("general_log", "General log"),
            ("global_grants", "Extended global grants"),
            ("help_category", "help categories"),
            ("help_keyword", "help keywords"),
            ("help_relation", "keyword-topic relation"),
            ("help_topic", "help topics"),
            ("password_history", "Password history for user accounts"),
            ("plugin", "MySQL plugins"),
            ("procs_priv", "Procedure privileges"),
            ("proxies_priv", "User proxy privileges"),
            ("role_edges", "Role hierarchy and role grants"),
            ("servers", "MySQL Foreign Servers table"),
            ("slow_log", "Slow log"),
            ("tables_priv", "Table privileges"),
            ("time_zone", "Time zones"),
            (
                "time_zone_leap_second",
                "Leap seconds information for time zones",
            ),
            ("time_zone_name", "Time zone names"),
            ("time_zone_transition", "Time zone transitions"),
            ("time_zone_transition_type", "Time zone transition types"),
            ("user", "Users and global privileges"),
        ];
        let found = COMMENTS.iter().find(|(name, _)| *name == self.name);
        match found.filter(|_| self.schema == "mysql") {
            Some((_, comment)) => comment,
            None => "",
        }
    }

    /// Whether MySQL 8.4 has it as a view of its data dictionary. Results name the columns of these
    /// as the view does, in capitals, however a statement spells them.
    pub fn is_view(&self) -> bool {
        const TABLES: &[&str] = &[
            "COLUMN_PRIVILEGES",
            "ENGINES",
            "OPTIMIZER_TRACE",
            "PLUGINS",
            "PROCESSLIST",
            "PROFILING",
            "SCHEMA_PRIVILEGES",
            "TABLESPACES",
            "TABLE_PRIVILEGES",
            "USER_PRIVILEGES",
        ];
        const INNODB_VIEWS: &[&str] = &[
            "INNODB_DATAFILES",
            "INNODB_FIELDS",
            "INNODB_FOREIGN",
            "INNODB_FOREIGN_COLS",
            "INNODB_TABLESPACES_BRIEF",
        ];
        self.schema == "information_schema"
            && !TABLES.contains(&self.name)
            && (!self.name.starts_with("INNODB_") || INNODB_VIEWS.contains(&self.name))
    }

    /// Whether everybody may read it, because it shows each user only what that user may know.
    /// Other virtual tables need SELECT.
    pub fn is_open_to_all(&self) -> bool {
        const OPEN: &[&str] = &[
            "global_status",
            "global_variables",
            "processlist",
            "session_account_connect_attrs",
            "session_status",
            "session_variables",
        ];
        match self.schema {
            "information_schema" => true,
            "performance_schema" => OPEN.contains(&self.name),
            _ => false,
        }
    }
}

impl std::fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}
