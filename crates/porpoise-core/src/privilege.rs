//! The table of privileges: a row each, in the order SHOW GRANTS prints them.
//!
//! MySQL 8.4 manual, 8.2.2 (Privileges Provided by MySQL).

use serde::{Deserialize, Serialize};

/// Where a privilege can be granted.
pub mod level {
    /// `ON *.*`
    pub const GLOBAL: u8 = 1;
    /// `ON schema.*`
    pub const SCHEMA: u8 = 2;
    /// `ON schema.table`
    pub const TABLE: u8 = 4;
    /// `(column) ON schema.table`
    pub const COLUMN: u8 = 8;
    /// `ON PROCEDURE schema.name`, `ON FUNCTION schema.name`
    pub const ROUTINE: u8 = 16;
}

use level::*;

/// One static privilege.
pub struct Row {
    /// Which one the row is about; the row's position is its number.
    pub privilege: Privilege,
    /// As GRANT spells it.
    pub name: &'static str,
    /// Where it can be granted: bits of [`level`].
    pub levels: u8,
    /// As SHOW PRIVILEGES spells it.
    pub shown: &'static str,
    /// SHOW PRIVILEGES' Context.
    pub context: &'static str,
    /// SHOW PRIVILEGES' Comment.
    pub comment: &'static str,
}

macro_rules! privileges {
    ($($variant:ident $name:literal $levels:expr, $shown:literal $context:literal $comment:literal;)*) => {
        /// A static privilege. Its number is its bit in a [`Set`] and its row in [`PRIVILEGES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Privilege {
            $(
                #[doc = concat!("`", $name, "`: ", $comment, ".")]
                $variant
            ),*
        }
        /// The table, in the order SHOW GRANTS prints it.
        pub const PRIVILEGES: &[Row] = &[
            $(Row { privilege: Privilege::$variant, name: $name, levels: $levels, shown: $shown, context: $context, comment: $comment }),*
        ];
    };
}

privileges! {
    Select "SELECT" GLOBAL | SCHEMA | TABLE | COLUMN, "Select" "Tables" "To retrieve rows from table";
    Insert "INSERT" GLOBAL | SCHEMA | TABLE | COLUMN, "Insert" "Tables" "To insert data into tables";
    Update "UPDATE" GLOBAL | SCHEMA | TABLE | COLUMN, "Update" "Tables" "To update existing rows";
    Delete "DELETE" GLOBAL | SCHEMA | TABLE, "Delete" "Tables" "To delete existing rows";
    Create "CREATE" GLOBAL | SCHEMA | TABLE, "Create" "Databases,Tables,Indexes" "To create new databases and tables";
    Drop "DROP" GLOBAL | SCHEMA | TABLE, "Drop" "Databases,Tables" "To drop databases, tables, and views";
    Reload "RELOAD" GLOBAL, "Reload" "Server Admin" "To reload or refresh tables, logs and privileges";
    Shutdown "SHUTDOWN" GLOBAL, "Shutdown" "Server Admin" "To shut down the server";
    Process "PROCESS" GLOBAL, "Process" "Server Admin" "To view the plain text of currently executing queries";
    File "FILE" GLOBAL, "File" "File access on server" "To read and write files on the server";
    References "REFERENCES" GLOBAL | SCHEMA | TABLE | COLUMN, "References" "Databases,Tables" "To have references on tables";
    Index "INDEX" GLOBAL | SCHEMA | TABLE, "Index" "Tables" "To create or drop indexes";
    Alter "ALTER" GLOBAL | SCHEMA | TABLE, "Alter" "Tables" "To alter the table";
    ShowDatabases "SHOW DATABASES" GLOBAL, "Show databases" "Server Admin" "To see all databases with SHOW DATABASES";
    Super "SUPER" GLOBAL, "Super" "Server Admin" "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc.";
    CreateTemporaryTables "CREATE TEMPORARY TABLES" GLOBAL | SCHEMA, "Create temporary tables" "Databases" "To use CREATE TEMPORARY TABLE";
    LockTables "LOCK TABLES" GLOBAL | SCHEMA, "Lock tables" "Databases" "To use LOCK TABLES (together with SELECT privilege)";
    Execute "EXECUTE" GLOBAL | SCHEMA | ROUTINE, "Execute" "Functions,Procedures" "To execute stored routines";
    ReplicationSlave "REPLICATION SLAVE" GLOBAL, "Replication slave" "Server Admin" "To read binary log events from the master";
    ReplicationClient "REPLICATION CLIENT" GLOBAL, "Replication client" "Server Admin" "To ask where the slave or master servers are";
    CreateView "CREATE VIEW" GLOBAL | SCHEMA | TABLE, "Create view" "Tables" "To create new views";
    ShowView "SHOW VIEW" GLOBAL | SCHEMA | TABLE, "Show view" "Tables" "To see views with SHOW CREATE VIEW";
    CreateRoutine "CREATE ROUTINE" GLOBAL | SCHEMA, "Create routine" "Databases" "To use CREATE FUNCTION/PROCEDURE";
    AlterRoutine "ALTER ROUTINE" GLOBAL | SCHEMA | ROUTINE, "Alter routine" "Functions,Procedures" "To alter or drop stored functions/procedures";
    CreateUser "CREATE USER" GLOBAL, "Create user" "Server Admin" "To create new users";
    Event "EVENT" GLOBAL | SCHEMA, "Event" "Server Admin" "To create, alter, drop and execute events";
    Trigger "TRIGGER" GLOBAL | SCHEMA | TABLE, "Trigger" "Tables" "To use triggers";
    CreateTablespace "CREATE TABLESPACE" GLOBAL, "Create tablespace" "Server Admin" "To create/alter/drop tablespaces";
    CreateRole "CREATE ROLE" GLOBAL, "Create role" "Server Admin" "To create new roles";
    DropRole "DROP ROLE" GLOBAL, "Drop role" "Server Admin" "To drop roles";
    GrantOption "GRANT OPTION" GLOBAL | SCHEMA | TABLE | ROUTINE, "Grant option" "Databases,Tables,Functions,Procedures" "To give to other users those privileges you possess";
}

/// Dynamic privileges: global only, granted by name.
pub const DYNAMIC: &[&str] = &[
    "ALLOW_NONEXISTENT_DEFINER",
    "APPLICATION_PASSWORD_ADMIN",
    "AUDIT_ABORT_EXEMPT",
    "AUDIT_ADMIN",
    "AUTHENTICATION_POLICY_ADMIN",
    "BACKUP_ADMIN",
    "BINLOG_ADMIN",
    "BINLOG_ENCRYPTION_ADMIN",
    "CLONE_ADMIN",
    "CONNECTION_ADMIN",
    "ENCRYPTION_KEY_ADMIN",
    "FIREWALL_EXEMPT",
    "FLUSH_OPTIMIZER_COSTS",
    "FLUSH_PRIVILEGES",
    "FLUSH_STATUS",
    "FLUSH_TABLES",
    "FLUSH_USER_RESOURCES",
    "GROUP_REPLICATION_ADMIN",
    "GROUP_REPLICATION_STREAM",
    "INNODB_REDO_LOG_ARCHIVE",
    "INNODB_REDO_LOG_ENABLE",
    "OPTIMIZE_LOCAL_TABLE",
    "PASSWORDLESS_USER_ADMIN",
    "PERSIST_RO_VARIABLES_ADMIN",
    "REPLICATION_APPLIER",
    "REPLICATION_SLAVE_ADMIN",
    "RESOURCE_GROUP_ADMIN",
    "RESOURCE_GROUP_USER",
    "ROLE_ADMIN",
    "SENSITIVE_VARIABLES_OBSERVER",
    "SERVICE_CONNECTION_ADMIN",
    "SESSION_VARIABLES_ADMIN",
    "SET_ANY_DEFINER",
    "SHOW_ROUTINE",
    "SYSTEM_USER",
    "SYSTEM_VARIABLES_ADMIN",
    "TABLE_ENCRYPTION_ADMIN",
    "TELEMETRY_LOG_ADMIN",
    "TRANSACTION_GTID_TAG",
    "XA_RECOVER_ADMIN",
];

/// A set of static privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set(pub u64);

impl Privilege {
    /// As GRANT spells it, in capitals.
    pub fn name(self) -> &'static str {
        PRIVILEGES[self as usize].name
    }

    /// Finds a privilege by GRANT's spelling, in capitals.
    pub fn by_name(name: &str) -> Option<Privilege> {
        PRIVILEGES
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.privilege)
    }

    /// The set of this one alone.
    pub fn set(self) -> Set {
        Set(1 << self as u64)
    }
}

impl Set {
    /// No privilege: USAGE.
    pub const NONE: Set = Set(0);
    /// SELECT alone.
    pub const SELECT: Set = Set(1 << Privilege::Select as u64);
    /// What the columns of a view may be used for: CREATE VIEW wants one of these on what it shows.
    pub const OF_VIEWS: Set = Set(Set::SELECT.0
        | 1 << Privilege::Insert as u64
        | 1 << Privilege::Update as u64
        | 1 << Privilege::Delete as u64);

    /// Everything that ALL PRIVILEGES means at a level: GRANT OPTION is not among it.
    pub fn all(level: u8) -> Set {
        let rows = PRIVILEGES
            .iter()
            .filter(|row| row.levels & level != 0 && row.privilege != Privilege::GrantOption);
        rows.fold(Set::NONE, |set, row| set.with(row.privilege.set()))
    }

    /// What is in either.
    pub fn with(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// What is in this and not in the other.
    pub fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }

    /// Whether a privilege is in the set.
    pub fn has(self, privilege: Privilege) -> bool {
        self.0 & privilege.set().0 != 0
    }

    /// Whether it has one of the others, at least.
    pub fn meets(self, other: Set) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of the other's are in the set.
    pub fn contains(self, other: Set) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The privileges, GRANT OPTION left out, in the table's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        PRIVILEGES
            .iter()
            .filter(move |row| self.has(row.privilege) && row.privilege != Privilege::GrantOption)
            .map(|row| row.name)
    }
}
