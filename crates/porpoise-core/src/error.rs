//! Errors and warnings, with MySQL's numbers, SQLSTATEs and words.
//!
//! One table, a row an error: its kind, its constructor, the number, the SQLSTATE and the message
//! with `{}` where its arguments go. `Error::duplicate_entry(value, key)` makes error 1062, which
//! `error.is(ErrorKind::DuplicateEntry)` recognises. A warning is the same thing with a lower
//! [`Level`], so that strict mode can turn one into the other.
//!
//! Source: MySQL 8.4 Reference Manual, Error Messages (server error message reference).

use std::fmt;

use parking_lot::Mutex;

/// How bad a condition is, as `SHOW WARNINGS` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For information; not kept where `sql_notes` is off.
    Note,
    /// The statement went on, with a value or in a way that its author may not expect.
    Warning,
    /// The statement ended with it.
    Error,
}

impl Level {
    /// The word of SHOW WARNINGS' Level column.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// An error as a client sees it. One pointer wide, so that a `Result` stays small.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Condition>);

/// A number, a SQLSTATE and a text: an error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its row of the table; what code tells errors apart by.
    pub kind: ErrorKind,
    /// MySQL's error number; what clients tell errors apart by.
    pub number: u16,
    /// Five letters and digits: the error's class by the SQL standard, and its subclass.
    pub sqlstate: &'static str,
    /// The text for people, its arguments filled in.
    pub message: String,
    /// What SIGNAL said of it beside number and text; nothing for most.
    pub items: Option<Box<SignalItems>>,
}

/// Items of a condition that SIGNAL gave a value.
pub type SignalItems = Vec<(porpoise_sql::ast::SignalItem, String)>;

/// A result whose error is this crate's, unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn new(kind: ErrorKind, number: u16, sqlstate: &'static str, message: String) -> Error {
        Error(Box::new(Condition {
            kind,
            number,
            sqlstate,
            message,
            items: None,
        }))
    }

    /// An error that another process reported. Its kind is that of the first row of its number.
    pub fn from_remote(number: u16, sqlstate: [u8; 5], message: String) -> Error {
        // A SQLSTATE is five letters and digits, of which there are few different ones.
        static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
        const KNOWN_MAX: usize = 256;
        let general = "HY000";
        let text = String::from_utf8_lossy(&sqlstate);
        let mut known = KNOWN.lock();
        let sqlstate = match known.iter().find(|state| **state == text) {
            Some(state) => state,
            None if text == general || known.len() >= KNOWN_MAX => general,
            None => {
                let state: &'static str = String::leak(text.into_owned());
                known.push(state);
                state
            }
        };
        Error::new(ErrorKind::by_number(number), number, sqlstate, message)
    }

    /// A condition that SIGNAL raises.
    pub fn signalled(number: u16, sqlstate: [u8; 5], message: String, items: SignalItems) -> Error {
        let mut error = Error::from_remote(number, sqlstate, message);
        error.0.items = (!items.is_empty()).then(|| Box::new(items));
        error
    }

    /// The same error in other words.
    pub fn with_message(mut self, message: impl Into<String>) -> Error {
        self.0.message = message.into();
        self
    }

    /// Which error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether it is an error of that kind.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.0.kind == kind
    }

    /// Whether the connection is closed after it: its session took too much memory.
    pub fn closes_connection(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::ConnectionMemoryLimit | ErrorKind::GlobalConnectionMemoryLimit
        )
    }

    /// MySQL's error number.
    pub fn number(&self) -> u16 {
        self.0.number
    }

    /// Five letters and digits, as the protocol sends them.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate
    }

    /// The text for people, without number and SQLSTATE.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The message; for an error of storage, storage's own words, without those that wrap them for
    /// clients.
    pub fn cause(&self) -> &str {
        let message = self.message();
        message
            .strip_prefix("Got error ")
            .and_then(|rest| rest.strip_suffix(" from storage engine"))
            .unwrap_or(message)
    }

    /// Number, SQLSTATE and text, to look at.
    pub fn condition(&self) -> &Condition {
        &self.0
    }

    /// Number, SQLSTATE and text, to be kept as a warning.
    pub fn into_condition(self) -> Condition {
        *self.0
    }
}

impl From<Condition> for Error {
    fn from(condition: Condition) -> Error {
        Error(Box::new(condition))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.0.number, self.0.sqlstate, self.0.message
        )
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<porpoise_storage::Error> for Error {
    fn from(error: porpoise_storage::Error) -> Error {
        if error.is_disk_full() {
            return Error::disk_full(error);
        }
        match &error {
            porpoise_storage::Error::Interrupted => Error::query_interrupted(),
            porpoise_storage::Error::InUse { .. } => Error::folder_in_use(error),
            porpoise_storage::Error::Damaged(place) => match &place.owner {
                Some(owner) => match &owner.index {
                    Some(index) => {
                        Error::index_corrupt(format_args!("{}.{index}", owner.table), place)
                    }
                    None => Error::not_key_file(&owner.table, place),
                },
                None => Error::engine_error(error),
            },
            _ => Error::engine_error(error),
        }
    }
}

impl From<porpoise_storage::LockError> for Error {
    fn from(error: porpoise_storage::LockError) -> Error {
        use porpoise_storage::LockError;
        match error {
            LockError::Deadlock => Error::deadlock(),
            LockError::Timeout => Error::lock_wait_timeout(),
            LockError::Busy => Error::lock_nowait(),
            LockError::Interrupted => Error::query_interrupted(),
        }
    }
}

/// The text of a value inside a message, cut as MySQL cuts it.
pub const MESSAGE_VALUE_CHARS_MAX: usize = 64;

/// The longest message, as `MYSQL_ERRMSG_SIZE` has it for clients with its last byte: a name or a
/// value in it may be a gigabyte long.
const MESSAGE_BYTES_MAX: usize = 511;

/// A message of at most so many bytes.
fn message(words: fmt::Arguments<'_>, most: usize) -> String {
    struct Bounded(String, usize);

    impl fmt::Write for Bounded {
        fn write_str(&mut self, words: &str) -> fmt::Result {
            let room = self.1 - self.0.len();
            let end = words.floor_char_boundary(room);
            self.0.push_str(&words[..end]);
            match end == words.len() {
                true => Ok(()),
                // What follows is left out, too.
                false => Err(fmt::Error),
            }
        }
    }

    let mut bounded = Bounded(String::new(), most);
    let _ = fmt::Write::write_fmt(&mut bounded, words);
    bounded.0
}

macro_rules! errors {
    ($($kind:ident $name:ident($($arg:ident),*) = $number:literal $state:literal $text:literal;)*) => {
        /// Which error it is: a variant for each row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            /// Another process reported it, and the table has no row of its number.
            Other,
            $(
                #[doc = concat!("Error ", $number, " (", $state, "): ", $text)]
                $kind,
            )*
        }

        impl ErrorKind {
            /// The first row of a number; several rows share one where MySQL words one error in
            /// several ways.
            fn by_number(number: u16) -> ErrorKind {
                const KINDS: &[(u16, ErrorKind)] = &[$(($number, ErrorKind::$kind)),*];
                let found = KINDS.iter().find(|(known, _)| *known == number);
                found.map_or(ErrorKind::Other, |(_, kind)| *kind)
            }
        }

        impl Error {
            $(
                #[doc = concat!("Error ", $number, " (", $state, "): ", $text)]
                pub fn $name($($arg: impl fmt::Display),*) -> Error {
                    // Some rows have no words of their own: whoever makes them bounds the text.
                    let most = if $text == "{}" { usize::MAX } else { MESSAGE_BYTES_MAX };
                    let message = message(format_args!($text $(, $arg)*), most);
                    Error::new(ErrorKind::$kind, $number, $state, message)
                }
            )*
        }
    };
}

errors! {
    DatabaseExists database_exists(name) = 1007 "HY000" "Can't create database '{}'; database exists";
    CannotDropDatabase cannot_drop_database(name) = 1008 "HY000" "Can't drop database '{}'; database doesn't exist";
    ServerShutdown server_shutdown() = 1053 "08S01" "Server shutdown in progress";
    FolderInUse folder_in_use(text) = 1015 "HY000" "{}";
    DiskFull disk_full(file) = 1021 "HY000" "Disk full ({}); waiting for someone to free some space...";
    TemporaryFileWriteFailure temporary_file_write_failure() = 1878 "HY000" "Temporary file write failure.";
    TemporarySpaceLimit temporary_space_limit(variable) = 1114 "HY000" "The table '(temporary files, {})' is full";
    DupKey dup_key(table) = 1022 "23000" "Can't write; duplicate key in table '{}'";
    NotKeyFile not_key_file(table, place) = 1034 "HY000" "Incorrect key file for table '{}'; try to repair it ({})";
    IndexCorrupt index_corrupt(index, place) = 1712 "HY000" "Index {} is corrupted ({})";
    EngineError engine_error(code) = 1030 "HY000" "Got error {} from storage engine";
    OutOfMemory out_of_memory() = 1037 "HY001" "Out of memory; restart server and try again";
    SessionMemoryLimit session_memory_limit(bytes) = 1037 "HY001" "Out of memory; what the session keeps would take more than {} bytes (statement_memory_limit)";
    StatementMemoryLimit statement_memory_limit(bytes) = 1037 "HY001" "Out of memory; the statement's buffers would take more than {} bytes (statement_memory_limit)";
    ServerMemoryLimit server_memory_limit(bytes) = 1037 "HY001" "Out of memory; the buffers of all statements would take more than {} bytes";
    GlobalConnectionMemoryLimit global_connection_memory_limit(limit, consumed) = 4081 "HY000" "Connection closed. Global connection memory limit {} bytes exceeded. Consumed {} bytes.";
    ConnectionMemoryLimit connection_memory_limit(limit, consumed) = 4082 "HY000" "Connection closed. Connection memory limit {} bytes exceeded. Consumed {} bytes.";
    TooManyConnections too_many_connections() = 1040 "08004" "Too many connections";
    HostIsBlocked host_is_blocked(host) = 1129 "HY000" "Host '{}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'";
    HostNotPrivileged host_not_privileged(host) = 1130 "HY000" "Host '{}' is not allowed to connect to this MySQL server";
    MustChangePassword must_change_password() = 1820 "HY000" "You must reset your password using ALTER USER statement before executing this statement.";
    PasswordHasExpired password_has_expired() = 1862 "HY000" "Your password has expired. To log in you must change it using a client that supports expired passwords.";
    TooManyUserConnections too_many_user_connections(user) = 1203 "42000" "User {} already has more than 'max_user_connections' active connections";
    VariableIsReadOnly variable_is_read_only(scope, name, instead) = 1621 "HY000" "{} variable '{}' is read-only. Use SET {} to assign the value";
    HandshakeError handshake_error() = 1043 "08S01" "Bad handshake";
    DbAccessDenied db_access_denied(user, host, db) = 1044 "42000" "Access denied for user '{}'@'{}' to database '{}'";
    AccessDenied access_denied(user, host, using_password) = 1045 "28000" "Access denied for user '{}'@'{}' (using password: {})";
    NoDatabaseSelected no_database_selected() = 1046 "3D000" "No database selected";
    UnknownCommand unknown_command() = 1047 "08S01" "Unknown command";
    ColumnCannotBeNull column_cannot_be_null(column) = 1048 "23000" "Column '{}' cannot be null";
    UnknownDatabase unknown_database(name) = 1049 "42000" "Unknown database '{}'";
    TableExists table_exists(name) = 1050 "42S01" "Table '{}' already exists";
    UnknownTable unknown_table(name) = 1051 "42S02" "Unknown table '{}'";
    AmbiguousColumn ambiguous_column(column, clause) = 1052 "23000" "Column '{}' in {} is ambiguous";
    UnknownColumn unknown_column(column, clause) = 1054 "42S22" "Unknown column '{}' in '{}'";
    NotInGroupBy not_in_group_by(expression) = 1055 "42000" "'{}' isn't in GROUP BY";
    CannotGroupOn cannot_group_on(expression) = 1056 "42000" "Can't group on '{}'";
    ColumnCountMismatch column_count_mismatch(row) = 1136 "21S01" "Column count doesn't match value count at row {}";
    IdentifierTooLong identifier_too_long(name) = 1059 "42000" "Identifier name '{}' is too long";
    DuplicateColumn duplicate_column(column) = 1060 "42S21" "Duplicate column name '{}'";
    DuplicateKeyName duplicate_key_name(key) = 1061 "42000" "Duplicate key name '{}'";
    DuplicateEntry duplicate_entry(value, key) = 1062 "23000" "Duplicate entry '{}' for key '{}'";
    WrongColumnSpecifier wrong_column_specifier(column) = 1063 "42000" "Incorrect column specifier for column '{}'";
    SyntaxError syntax_error(near, line) = 1064 "42000" "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line {}";
    EmptyQuery empty_query() = 1065 "42000" "Query was empty";
    NotUniqueTable not_unique_table(name) = 1066 "42000" "Not unique table/alias: '{}'";
    InvalidDefault invalid_default(column) = 1067 "42000" "Invalid default value for '{}'";
    MultiplePrimaryKey multiple_primary_key() = 1068 "42000" "Multiple primary key defined";
    TooManyKeys too_many_keys(most) = 1069 "42000" "Too many keys specified; max {} keys allowed";
    TooManyKeyParts too_many_key_parts(most) = 1070 "42000" "Too many key parts specified; max {} parts allowed";
    KeyTooLong key_too_long(bytes) = 1071 "42000" "Specified key was too long; max key length is {} bytes";
    KeyColumnMissing key_column_missing(column) = 1072 "42000" "Key column '{}' doesn't exist in table";
    BlobCannotBeKey blob_cannot_be_key(column) = 1073 "42000" "BLOB column '{}' can't be used in key specification with the used table type";
    ColumnLengthTooBig column_length_too_big(column, most) = 1074 "42000" "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead";
    WrongAutoKey wrong_auto_key() = 1075 "42000" "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    ForcingClose forcing_close(id, user) = 1080 "08S01" "Forcing close of thread {}  user: '{}'";
    WrongSubKey wrong_sub_key() = 1089 "HY000" "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    CannotRemoveAllFields cannot_remove_all_fields() = 1090 "42000" "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    CannotDropFieldOrKey cannot_drop_field_or_key(name) = 1091 "42000" "Can't DROP '{}'; check that column/key exists";
    UpdateTableUsed update_table_used(table) = 1093 "HY000" "You can't specify target table '{}' for update in FROM clause";
    NoSuchThread no_such_thread(id) = 1094 "HY000" "Unknown thread id: {}";
    KillDenied kill_denied(id) = 1095 "HY000" "You are not owner of thread {}";
    NoTablesUsed no_tables_used() = 1096 "HY000" "No tables used";
    TooBigSet too_big_set(column) = 1097 "HY000" "Too many strings for column {} and SET";
    TableNotLockedForWrite table_not_locked_for_write(table) = 1099 "HY000" "Table '{}' was locked with a READ lock and can't be updated";
    TableNotLocked table_not_locked(table) = 1100 "HY000" "Table '{}' was not locked with LOCK TABLES";
    BlobCannotHaveDefault blob_cannot_have_default(column) = 1101 "42000" "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value";
    WrongDbName wrong_db_name(name) = 1102 "42000" "Incorrect database name '{}'";
    WrongTableName wrong_table_name(name) = 1103 "42000" "Incorrect table name '{}'";
    TooBigSelect too_big_select() = 1104 "42000" "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    UnknownProcedure unknown_procedure(name) = 1106 "42000" "Unknown procedure '{}'";
    UnknownTableIn unknown_table_in(table, clause) = 1109 "42S02" "Unknown table '{}' in {}";
    FieldSpecifiedTwice field_specified_twice(column) = 1110 "42000" "Column '{}' specified twice";
    InvalidGroupFunctionUse invalid_group_function_use() = 1111 "HY000" "Invalid use of group function";
    UsingOtherEngine using_other_engine(engine, table) = 1266 "HY000" "Using storage engine {} for table '{}'";
    WrongColumnName wrong_column_name(name) = 1166 "42000" "Incorrect column name '{}'";
    WrongIndexName wrong_index_name(name) = 1280 "42000" "Incorrect index name '{}'";
    CommentTooLong comment_too_long(what, name, most) = 1629 "HY000" "Comment for {} '{}' is too long (max = {})";
    TooBigScale too_big_scale(scale, column, most) = 1425 "42000" "Too big scale {} specified for column '{}'. Maximum is {}.";
    TooBigPrecision too_big_precision(precision, column, most) = 1426 "42000" "Too-big precision {} specified for '{}'. Maximum is {}.";
    ScaleOverPrecision scale_over_precision(column) = 1427 "42000" "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').";
    DisplayWidthOutOfRange display_width_out_of_range(column, most) = 1439 "42000" "Display width out of range for column '{}' (max = {})";
    ExplainNotSupported explain_not_supported() = 3012 "HY000" "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE";
    InvalidFieldSize invalid_field_size(column) = 3013 "HY000" "Invalid size for column '{}'.";
    ConvertedToText converted_to_text(column, from, to) = 1246 "HY000" "Converting column '{}' from {} to {}";
    KeyPartZero key_part_zero(column) = 1391 "HY000" "Key part '{}' length cannot be 0";
    NoVisibleColumn no_visible_column() = 4028 "HY000" "A table must have at least one visible column.";
    DuplicateIndex duplicate_index(index, schema, table) = 1831 "HY000" "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and will be disallowed in a future release.";
    CheckUnknownColumn check_unknown_column(check, column) = 3820 "HY000" "Check constraint '{}' refers to non-existing column '{}'.";
    CheckOtherColumn check_other_column(check) = 3813 "HY000" "Column check constraint '{}' references other column.";
    CheckFunctionNotAllowed check_function_not_allowed(check, function) = 3814 "HY000" "An expression of a check constraint '{}' contains disallowed function: {}.";
    CheckUsesColumn check_uses_column(check, column) = 3959 "HY000" "Check constraint '{}' uses column '{}', hence column cannot be dropped or renamed.";
    CheckHoldsDisallowed check_holds_disallowed(check) = 3815 "HY000" "An expression of a check constraint '{}' contains disallowed function.";
    CheckUsesVariable check_uses_variable(check) = 3816 "HY000" "An expression of a check constraint '{}' cannot refer to a user or system variable.";
    DefaultRefersForward default_refers_forward(column) = 3767 "HY000" "Default value expression of column '{}' cannot refer to a column defined after it if that column is a generated column or has an expression as default value.";
    DefaultRefersAutoIncrement default_refers_auto_increment(column) = 3768 "HY000" "Default value expression of column '{}' cannot refer to an auto-increment column.";
    DefaultHoldsDisallowed default_holds_disallowed(column) = 3769 "HY000" "Default value expression of column '{}' contains a disallowed function.";
    DefaultFunctionNotAllowed default_function_not_allowed(column, function) = 3770 "HY000" "Default value expression of column '{}' contains a disallowed function: {}.";
    DefaultUsesVariable default_uses_variable(column) = 3772 "HY000" "Default value expression of column '{}' cannot refer user or system variables.";
    DependentDefault dependent_default(column, table) = 3766 "HY000" "Column '{}' of table '{}' has a default value expression dependency and cannot be dropped or renamed.";
    NotBaseTable not_base_table(schema, table) = 1347 "HY000" "'{}.{}' is not BASE TABLE";
    NotView not_view(schema, table) = 1347 "HY000" "'{}.{}' is not VIEW";
    CannotDropNeededIndex cannot_drop_needed_index(index) = 1553 "HY000" "Cannot drop index '{}': needed in a foreign key constraint";
    InvalidUseOfNull invalid_use_of_null() = 1138 "22004" "Invalid use of NULL value";
    FunctionalKeyOfJson functional_key_of_json() = 3753 "HY000" "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
    FunctionalKeyRefersAutoIncrement functional_key_refers_auto_increment(index) = 3754 "HY000" "Functional index '{}' cannot refer to an auto-increment column.";
    FunctionalPrimaryKey functional_primary_key() = 3756 "HY000" "The primary key cannot be a functional index";
    FunctionalKeyOfBlob functional_key_of_blob() = 3757 "HY000" "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.";
    FunctionalKeyFunctionNotAllowed functional_key_function_not_allowed(index) = 3758 "HY000" "Expression of functional index '{}' contains a disallowed function.";
    FunctionalKeyOfColumn functional_key_of_column() = 3762 "HY000" "Functional index on a column is not supported. Consider using a regular index instead.";
    DependentFunctionalIndex dependent_functional_index(column) = 3837 "HY000" "Column '{}' has a functional index dependency and cannot be dropped or renamed.";
    PrimaryInvisible primary_invisible() = 3522 "HY000" "A primary key index cannot be invisible";
    AlterOperationNotSupported alter_operation_not_supported(what, instead) = 1845 "0A000" "{} is not supported for this operation. Try {}.";
    UnknownAlterAlgorithm unknown_alter_algorithm(name) = 1800 "HY000" "Unknown ALGORITHM '{}'";
    AlterNotSupported alter_not_supported(what, why, instead) = 1846 "0A000" "{} is not supported. Reason: {}. Try {}.";
    ConstraintNotFound constraint_not_found(name) = 3940 "HY000" "Constraint '{}' does not exist.";
    UndeclaredVariable undeclared_variable(name) = 1327 "42000" "Undeclared variable: {}";
    ViewNoExplain view_no_explain() = 1345 "HY000" "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
    NoSuchDefiner no_such_definer(user, host) = 1449 "HY000" "The user specified as a definer ('{}'@'{}') does not exist";
    ViewInvalid view_invalid(schema, view) = 1356 "HY000" "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
    DbAccessSystem db_access_system(name) = 3552 "HY000" "Access to system schema '{}' is rejected.";
    CantLockLogTable cant_lock_log_table() = 1556 "HY000" "You can't use locks with log tables.";
    BadLogStatement bad_log_statement(verb) = 1580 "HY000" "You cannot '{}' a log table if logging is enabled";
    CantRenameLogTable cant_rename_log_table(name, again) = 1581 "HY000" "Cannot rename '{}'. When logging enabled, rename to/from log table must rename two tables: the log table to an archive table and another table back to '{}'";
    SystemTableAccess system_table_access(schema, name) = 3554 "HY000" "Access to system table '{}.{}' is rejected.";
    TableDefinitionChanged table_definition_changed() = 1412 "HY000" "Table definition has changed, please retry transaction";
    TableMustHaveColumns table_must_have_columns() = 1113 "42000" "A table must have at least 1 column";
    UnknownCharacterSet unknown_character_set(name) = 1115 "42000" "Unknown character set: '{}'";
    TooManyColumns too_many_columns() = 1117 "HY000" "Too many columns";
    RowTooBig row_too_big(bytes) = 1118 "42000" "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    PrimaryCannotHaveNull primary_cannot_have_null() = 1171 "42000" "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    WrongValueCount wrong_value_count() = 1222 "21000" "The used SELECT statements have a different number of columns";
    MixOfGroupAndFields mix_of_group_and_fields(position, column) = 1140 "42000" "In aggregated query without GROUP BY, expression #{} of SELECT list contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by";
    OnlyFullGroupBy only_full_group_by(position, clause, column) = 1055 "42000" "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    NoSuchGrant no_such_grant(user, host) = 1141 "42000" "There is no such grant defined for user '{}' on host '{}'";
    TableAccessDenied table_access_denied(command, user, host, table) = 1142 "42000" "{} command denied to user '{}'@'{}' for table '{}'";
    ColumnAccessDenied column_access_denied(command, user, host, column, table) = 1143 "42000" "{} command denied to user '{}'@'{}' for column '{}' in table '{}'";
    IllegalGrantForTable illegal_grant_for_table() = 1144 "42000" "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    NoSuchTable no_such_table(schema, table) = 1146 "42S02" "Table '{}.{}' doesn't exist";
    NoSuchRoutineGrant no_such_routine_grant(user, host, routine) = 1403 "42000" "There is no such grant defined for user '{}' on host '{}' on routine '{}'";
    NoSuchTableGrant no_such_table_grant(user, host, table) = 1147 "42000" "There is no such grant defined for user '{}' on host '{}' on table '{}'";
    PacketTooLarge packet_too_large() = 1153 "08S01" "Got a packet bigger than 'max_allowed_packet' bytes";
    StringTooLong string_too_long() = 1162 "42000" "Result string is longer than 'max_allowed_packet' bytes";
    DuplicateKeyOnAlter duplicate_key_on_alter(key) = 1169 "23000" "Can't write, because of unique constraint, to table '{}'";
    KeyWithoutLength key_without_length(column) = 1170 "42000" "BLOB/TEXT column '{}' used in key specification without a key length";
    TooManyRows too_many_rows() = 1172 "42000" "Result consisted of more than one row";
    RequiresPrimaryKey requires_primary_key() = 1173 "42000" "This table type requires a primary key";
    UpdateWithoutKey update_without_key() = 1175 "HY000" "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column. ";
    KeyDoesNotExist key_does_not_exist(key, table) = 1176 "42000" "Key '{}' doesn't exist in table '{}'";
    ErrorDuringCommit error_during_commit(text) = 1180 "HY000" "Got error {} during COMMIT";
    UnknownSystemVariable unknown_system_variable(name) = 1193 "HY000" "Unknown system variable '{}'";
    NewAbortWarning new_abort_warning(id, db, user, host, why) = 1184 "08S01" "Aborted connection {} to db: '{}' user: '{}' host: '{}' ({})";
    LockWaitTimeout lock_wait_timeout() = 1205 "HY000" "Lock wait timeout exceeded; try restarting transaction";
    WrongArguments wrong_arguments(function) = 1210 "HY000" "Incorrect arguments to {}";
    ConflictingReadLock conflicting_read_lock() = 1223 "HY000" "Can't execute the query because you have a conflicting read lock";
    LockedOrInTransaction locked_or_in_transaction() = 1192 "HY000" "Can't execute the given command because you have active locked tables or an active transaction";
    Deadlock deadlock() = 1213 "40001" "Deadlock found when trying to get lock; try restarting transaction";
    CannotAddForeignKey cannot_add_foreign_key() = 1215 "HY000" "Cannot add foreign key constraint";
    NoReferencedRow no_referenced_row(constraint) = 1452 "23000" "Cannot add or update a child row: a foreign key constraint fails ({})";
    RowIsReferenced row_is_referenced(constraint) = 1451 "23000" "Cannot delete or update a parent row: a foreign key constraint fails ({})";
    ViewCheckFailed view_check_failed(view) = 1369 "HY000" "CHECK OPTION failed '{}'";
    ViewFieldHasNoDefault view_field_has_no_default(view) = 1423 "HY000" "Field of view '{}' underlying table doesn't have a default value";
    ViewChangesSeveral view_changes_several(view) = 1393 "HY000" "Can not modify more than one base table through a join view '{}'";
    ViewInsertsUnnamed view_inserts_unnamed(view) = 1394 "HY000" "Can not insert into join view '{}' without fields list";
    ViewOfSeveralDeletes view_of_several_deletes(view) = 1395 "HY000" "Can not delete from join view '{}'";
    NotInsertable not_insertable(table, statement) = 1471 "HY000" "The target table {} of the {} is not insertable-into";
    UnknownAuthorizationId unknown_authorization_id(user, host) = 3523 "HY000" "Unknown authorization ID `{}`@`{}`";
    RoleNotGranted role_not_granted(role, user) = 3530 "HY000" "{} is not granted to {}";
    RoleLoop role_loop(user, role) = 3538 "HY000" "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop";
    MisplacedInto misplaced_into() = 3954 "HY000" "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses.";
    CannotCreateFile cannot_create_file(path, number, why) = 1 "HY000" "Can't create/write to file '{}' (OS errno {} - {})";
    ErrorOnWrite error_on_write(path, number, why) = 3 "HY000" "Error writing file '{}' (OS errno {} - {})";
    FileExists file_exists(path) = 1086 "HY000" "File '{}' already exists";
    AmbiguousFieldTerminator ambiguous_field_terminator() = 1475 "HY000" "First character of the FIELDS TERMINATED string is ambiguous; please use non-optional and non-empty FIELDS ENCLOSED BY";
    NonAsciiSeparator non_ascii_separator() = 1638 "HY000" "Non-ASCII separator arguments are not fully supported";
    CannotStat cannot_stat(path, number, why) = 13 "HY000" "Can't get stat of '{}' (OS errno {} - {})";
    WrongFieldTerminators wrong_field_terminators() = 1083 "42000" "Field separator argument is not what is expected; check the manual";
    RowHasMoreFields row_has_more_fields(row) = 1262 "01000" "Row {} was truncated; it contained more data than there were input columns";
    LocalDataDisabled local_data_disabled() = 3948 "42000" "Loading local data is disabled; this must be enabled on both the client and server sides";
    WrongForeignKey wrong_foreign_key(name, why) = 1239 "42000" "Incorrect foreign key definition for '{}': {}";
    TruncateReferenced truncate_referenced(constraint) = 1701 "42000" "Cannot truncate a table referenced in a foreign key constraint ({})";
    ForeignKeyDuplicate foreign_key_duplicate(table, record, child, key) = 1761 "23000" "Foreign key constraint for table '{}', record '{}' would lead to a duplicate entry in table '{}', key '{}'";
    ForeignKeyNoIndex foreign_key_no_index(name, parent) = 1822 "HY000" "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'";
    ForeignKeyNoParent foreign_key_no_parent(parent) = 1824 "HY000" "Failed to open the referenced table '{}'";
    DuplicateForeignKey duplicate_foreign_key(name) = 1826 "HY000" "Duplicate foreign key constraint name '{}'";
    ForeignKeyColumnDropped foreign_key_column_dropped(column, name) = 1828 "HY000" "Cannot drop column '{}': needed in a foreign key constraint '{}'";
    ForeignKeyParentColumnDropped foreign_key_parent_column_dropped(column, name, child) = 1829 "HY000" "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{}'";
    ForeignKeyColumnNotNull foreign_key_column_not_null(column, name) = 1830 "HY000" "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL";
    ForeignKeyColumnChanged foreign_key_column_changed(column, name) = 1832 "HY000" "Cannot change column '{}': used in a foreign key constraint '{}'";
    ForeignKeyParentColumnChanged foreign_key_parent_column_changed(column, name, child) = 1833 "HY000" "Cannot change column '{}': used in a foreign key constraint '{}' of table '{}'";
    ForeignKeyTooDeep foreign_key_too_deep() = 3008 "HY000" "Foreign key cascade delete/update exceeds max depth of 15.";
    DropReferenced drop_referenced(table, name, child) = 3730 "HY000" "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.";
    ForeignKeyVirtualColumn foreign_key_virtual_column(name, column) = 3733 "HY000" "Foreign key '{}' uses virtual column '{}' which is not supported.";
    ForeignKeyNoColumn foreign_key_no_column(column, name, parent) = 3734 "HY000" "Failed to add the foreign key constraint. Missing column '{}' for constraint '{}' in the referenced table '{}'";
    ForeignKeyIncompatible foreign_key_incompatible(column, parent_column, name) = 3780 "HY000" "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.";
    ForeignKeyGeneratedColumn foreign_key_generated_column(option) = 3104 "HY000" "Cannot define foreign key with {} clause on a generated column.";
    ForeignKeyNoUnique foreign_key_no_unique(name, parent) = 6125 "HY000" "Failed to add the foreign key constraint. Missing unique key for constraint '{}' in the referenced table '{}'";
    WrongUsage wrong_usage(a, b) = 1221 "HY000" "Incorrect usage of {} and {}";
    SpecificAccessDenied specific_access_denied(privilege) = 1227 "42000" "Access denied; you need (at least one of) the {} privilege(s) for this operation";
    LocalVariable local_variable(name) = 1228 "HY000" "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL";
    GlobalVariable global_variable(name) = 1229 "HY000" "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL";
    NoDefault no_default(name) = 1230 "42000" "Variable '{}' doesn't have a default value";
    WrongValueForVariable wrong_value_for_variable(name, value) = 1231 "42000" "Variable '{}' can't be set to the value of '{}'";
    WrongTypeForVariable wrong_type_for_variable(name) = 1232 "42000" "Incorrect argument type to variable '{}'";
    VariableCannotBeRead variable_cannot_be_read(name) = 1233 "HY000" "Variable '{}' can only be set, not read";
    NotSupportedYet not_supported_yet(feature) = 1235 "42000" "This version of Porpoise doesn't yet support '{}'";
    IncorrectGlobalLocalVariable incorrect_global_local_variable(name, kind) = 1238 "HY000" "Variable '{}' is a {} variable";
    OperandColumns operand_columns(count) = 1241 "21000" "Operand should contain {} column(s)";
    SubqueryReturnsManyRows subquery_returns_many_rows() = 1242 "21000" "Subquery returns more than 1 row";
    UnknownStatementHandler unknown_statement_handler(id, command) = 1243 "HY000" "Unknown prepared statement handler ({}) given to {}";
    IllegalReference illegal_reference(name, why) = 1247 "42S22" "Reference '{}' not supported ({})";
    DerivedMustHaveAlias derived_must_have_alias() = 1248 "42000" "Every derived table must have its own alias";
    TableNotInFrom table_not_in_from(table, clause) = 1250 "42000" "Table '{}' from one of the SELECTs cannot be used in {}";
    CollationCharsetMismatch collation_charset_mismatch(collation, charset) = 1253 "42000" "COLLATION '{}' is not valid for CHARACTER SET '{}'";
    RowLacksFields row_lacks_fields(row) = 1261 "01000" "Row {} doesn't contain data for all columns";
    NullToNotNull null_to_not_null(column, row) = 1263 "22004" "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}";
    OutOfRangeColumn out_of_range_column(column, row) = 1264 "22003" "Out of range value for column '{}' at row {}";
    DataTruncated data_truncated(column, row) = 1265 "01000" "Data truncated for column '{}' at row {}";
    CannotAggregateCollations cannot_aggregate_collations(a, ca, b, cb, operation) = 1267 "HY000" "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'";
    CannotAggregateThreeCollations cannot_aggregate_three_collations(a, ca, b, cb, c, cc, operation) = 1270 "HY000" "Illegal mix of collations ({},{}), ({},{}), ({},{}) for operation '{}'";
    CannotAggregateManyCollations cannot_aggregate_many_collations(operation) = 1271 "HY000" "Illegal mix of collations for operation '{}'";
    UnknownCollation unknown_collation(name) = 1273 "HY000" "Unknown collation: '{}'";
    TooBigRowGroup too_big_row_group() = 1118 "42000" "Row size too large";
    UnknownStorageEngine unknown_storage_engine(name) = 1286 "42000" "Unknown storage engine '{}'";
    DeprecatedSyntax deprecated_syntax(what, instead) = 1287 "HY000" "'{}' is deprecated and will be removed in a future release. Please use {} instead";
    NonUpdatableTable non_updatable_table(table, statement) = 1288 "HY000" "The target table {} of the {} is not updatable";
    ViewRecursive view_recursive(schema, name) = 1462 "HY000" "`{}`.`{}` contains view recursion";
    MaxPreparedStatements max_prepared_statements(most) = 1461 "42000" "Can't create more than max_prepared_stmt_count statements (current value: {})";
    WrongCompressionAlgorithm wrong_compression_algorithm(name) = 3922 "HY000" "Invalid compression algorithm '{}'.";
    WrongCompressionLevel wrong_compression_level(name) = 3923 "HY000" "Invalid zstd compression level for algorithm '{}'.";
    TlsLibraryError tls_library_error(what) = 3888 "HY000" "Failed to set up SSL because of the following SSL library error: {}";
    UnknownChannel unknown_channel(name) = 3074 "HY000" "Channel '{}' does not exist.";
    SecureTransportRequired secure_transport_required() = 3159 "HY000" "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
    FeatureDisabled feature_disabled(feature, build) = 1289 "HY000" "The '{}' feature is disabled; you need MySQL built with '{}' to have it working";
    ReadOnlyOption read_only_option(option) = 1290 "HY000" "The MySQL server is running with the {} option so it cannot execute this statement";
    DuplicatedValueInType duplicated_value_in_type(column, value, kind) = 1291 "HY000" "Column '{}' has duplicated value '{}' in {}";
    TruncatedWrongValue truncated_wrong_value(kind, value) = 1292 "22007" "Incorrect {} value: '{}'";
    TruncatedWrongValueTruncated truncated_wrong_value_truncated(kind, value) = 1292 "22007" "Truncated incorrect {} value: '{}'";
    InvalidOnUpdate invalid_on_update(column) = 1294 "HY000" "Invalid ON UPDATE clause for '{}' column";
    UnsupportedInPrepared unsupported_in_prepared() = 1295 "HY000" "This command is not supported in the prepared statement protocol yet";
    UnknownTimeZone unknown_time_zone(name) = 1298 "HY000" "Unknown or incorrect time zone: '{}'";
    WarnInvalidCharacterString warn_invalid_character_string(charset, value) = 1300 "HY000" "Invalid {} character string: '{}'";
    SavepointDoesNotExist savepoint_does_not_exist(name) = 1305 "42000" "SAVEPOINT {} does not exist";
    RoutineDoesNotExist routine_does_not_exist(kind, name) = 1305 "42000" "{} {} does not exist";
    QueryInterrupted query_interrupted() = 1317 "70100" "Query execution was interrupted";
    ColumnCountOfView column_count_of_view() = 1353 "HY000" "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts";
    NoDefaultForField no_default_for_field(column) = 1364 "HY000" "Field '{}' doesn't have a default value";
    DivisionByZero division_by_zero() = 1365 "22012" "Division by 0";
    IncorrectValueForColumn incorrect_value_for_column(kind, value, column, row) = 1366 "HY000" "Incorrect {} value: '{}' for column '{}' at row {}";
    TruncatedValueForColumn truncated_value_for_column(kind, value, column, row) = 1292 "22007" "Incorrect {} value: '{}' for column '{}' at row {}";
    IllegalValueForType illegal_value_for_type(kind, value) = 1367 "22007" "Illegal {} '{}' value found during parsing";
    PasswordNoMatch password_no_match() = 1133 "42000" "Can't find any matching row in the user table";
    CannotCreateUser cannot_create_user(operation, who) = 1396 "HY000" "Operation {} failed for {}";
    AccountDoesNotExist account_does_not_exist(user, host) = 3162 "HY000" "Authorization ID '{}'@'{}' does not exist.";
    AccountExists account_exists(user, host) = 3163 "HY000" "Authorization ID '{}'@'{}' already exists.";
    DataTooLong data_too_long(column, row) = 1406 "22001" "Data too long for column '{}' at row {}";
    DatetimeOverflow datetime_overflow(function) = 1441 "22008" "Datetime function: {} field overflow";
    NotAllowedInTransaction not_allowed_in_transaction() = 1179 "25000" "You are not allowed to execute this command in a transaction";
    ReadOnlyTransaction read_only_transaction() = 1792 "25006" "Cannot execute statement in a READ ONLY transaction.";
    NotSettableInFunction not_settable_in_function(variable) = 1445 "HY000" "Not allowed to set {} from a stored function or trigger";
    LogChangedInFunction log_changed_in_function(variable) = 1695 "HY000" "Cannot change the {} inside a stored function or trigger";
    TransactionCharacteristics transaction_characteristics() = 1568 "25001" "Transaction characteristics can't be changed while a transaction is in progress";
    ParameterCount parameter_count(function) = 1582 "42000" "Incorrect parameter count in the call to native function '{}'";
    FunctionDoesNotExist function_does_not_exist(schema, name) = 1305 "42000" "FUNCTION {}.{} does not exist";
    WrongParametersToNative wrong_parameters_to_native(function) = 1583 "42000" "Incorrect parameters in the call to native function '{}'";
    UnknownLocale unknown_locale(name) = 1649 "HY000" "Unknown locale: '{}'";
    ValueOutOfRange value_out_of_range(kind, expression) = 1690 "22003" "{} value is out of range in '{}'";
    SpatialNotNull spatial_not_null() = 1252 "42000" "All parts of a SPATIAL index must be NOT NULL";
    UnknownExplainFormat unknown_explain_format(name) = 1791 "HY000" "Unknown EXPLAIN format name: '{}'";
    GeneratedColumnNotAllowed generated_column_not_allowed(column, table) = 3105 "HY000" "The value specified for generated column '{}' in table '{}' is not allowed.";
    UnsupportedOnGenerated unsupported_on_generated(what) = 3106 "HY000" "'{}' is not supported for generated columns.";
    GeneratedRefersForward generated_refers_forward() = 3107 "HY000" "Generated column can refer only to generated columns defined prior to it.";
    GeneratedRefersAutoIncrement generated_refers_auto_increment(column) = 3109 "HY000" "Generated column '{}' cannot refer to auto-increment column.";
    DependentGeneratedColumn dependent_generated_column(column) = 3108 "HY000" "Column '{}' has a generated column dependency.";
    GeneratedHoldsDisallowed generated_holds_disallowed(column) = 3102 "HY000" "Expression of generated column '{}' contains a disallowed function.";
    GeneratedFunctionNotAllowed generated_function_not_allowed(column, function) = 3763 "HY000" "Expression of generated column '{}' contains a disallowed function: {}.";
    GeneratedUsesVariable generated_uses_variable(column) = 3765 "HY000" "Expression of generated column '{}' cannot refer user or system variables.";
    InvalidJsonText invalid_json_text(position, message) = 3140 "22032" "Invalid JSON text: \"{1}\" at position {0} in value for column.";
    InvalidJsonTextInParameter invalid_json_text_in_parameter(parameter, function, message, position) = 3141 "22032" "Invalid JSON text in argument {} to function {}: \"{}\" at position {}.";
    InvalidJsonPath invalid_json_path(position) = 3143 "42000" "Invalid JSON path expression. The error is around character position {}.";
    InvalidTypeForJson invalid_type_for_json(parameter, function) = 3146 "22032" "Invalid data type for JSON data in argument {} to function {}; a JSON string or JSON type is required.";
    JsonInKey json_in_key(column) = 3152 "42000" "JSON column '{}' supports indexing only via generated columns on a specified JSON path.";
    JsonNullKey json_null_key() = 3158 "22032" "JSON documents may not contain NULL member names.";
    IncorrectArgumentType incorrect_argument_type(parameter, function) = 3064 "HY000" "Incorrect type for argument {} in function {}.";
    WrongUserLockName wrong_user_lock_name(name) = 3057 "42000" "Incorrect user-level lock name '{}'.";
    UserLockDeadlock user_lock_deadlock() = 3058 "HY000" "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition.";
    InvalidJsonCharset invalid_json_charset(charset) = 3144 "22032" "Cannot create a JSON value from a string with CHARACTER SET '{}'.";
    JsonPathWild json_path_wild() = 3149 "42000" "In this situation, path expressions may not contain the * and ** tokens or an array range.";
    JsonPathVacuous json_path_vacuous() = 3153 "42000" "The path expression '$' is not allowed in this context.";
    JsonOneOrAll json_one_or_all(function) = 3154 "42000" "The oneOrAll argument to {} may take these values: 'one' or 'all'.";
    JsonTooDeep json_too_deep() = 3157 "22032" "The JSON document exceeds the maximum depth.";
    JsonPathNotCell json_path_not_cell() = 3165 "42000" "A path expression is not a path to a cell in an array.";
    MissingJsonValue missing_json_value(function) = 3966 "22035" "No value was found by '{}' on the specified path.";
    MultipleJsonValues multiple_json_values(function) = 3967 "22034" "More than one value was found by '{}' on the specified path.";
    MissingJsonTableValue missing_json_table_value(column) = 3665 "22035" "Missing value for JSON_TABLE column '{}'";
    WrongJsonTableValue wrong_json_table_value(column) = 3666 "2203F" "Can't store an array or an object in the scalar JSON_TABLE column '{}'";
    TableFunctionMustHaveAlias table_function_must_have_alias() = 3667 "42000" "Every table function must have an alias.";
    JsonTableValueOutOfRange json_table_value_out_of_range(column) = 3669 "22003" "Value is out of range for JSON_TABLE's column '{}'";
    InvalidJsonValueForCast invalid_json_value_for_cast(kind, column, row) = 3156 "22018" "Invalid JSON value for CAST to {} from column {} at row {}";
    WindowFrameStartIllegal window_frame_start_illegal(window) = 3584 "HY000" "Window '{}': frame start cannot be UNBOUNDED FOLLOWING.";
    WindowFrameEndIllegal window_frame_end_illegal(window) = 3585 "HY000" "Window '{}': frame end cannot be UNBOUNDED PRECEDING.";
    WindowFrameIllegal window_frame_illegal(window) = 3586 "HY000" "Window '{}': frame start or end is negative, NULL or of non-integral type";
    CheckViolated check_violated(name) = 3819 "HY000" "Check constraint '{}' is violated.";
    CheckNotFound check_not_found(name) = 3821 "HY000" "Check constraint '{}' is not found in the table.";
    DuplicateCheck duplicate_check(name) = 3822 "HY000" "Duplicate check constraint name '{}'.";
    CheckRefersAutoIncrement check_refers_auto_increment(name) = 3818 "HY000" "Check constraint '{}' cannot refer to an auto-increment column.";
    LockNowait lock_nowait() = 3572 "HY000" "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    QueryTimeout query_timeout() = 3024 "HY000" "Query execution was interrupted, maximum statement execution time exceeded";
    RecursiveCteWithoutUnion recursive_cte_without_union(name) = 3573 "HY000" "Recursive Common Table Expression '{}' should contain a UNION";
    RecursiveCteWithoutSeed recursive_cte_without_seed(name) = 3574 "HY000" "Recursive Common Table Expression '{}' should have one or more non-recursive query blocks followed by one or more recursive ones";
    RecursiveCteAggregates recursive_cte_aggregates(name) = 3575 "HY000" "Recursive Common Table Expression '{}' can contain neither aggregation nor window functions in recursive query block";
    RecursiveCteJoinOrder recursive_cte_join_order(name) = 3576 "HY000" "In recursive query block of Recursive Common Table Expression '{}', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints";
    RecursiveCteNamedTwice recursive_cte_named_twice(name) = 3577 "HY000" "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be referenced only once, and not in any subquery";
    RecursiveCteDepth recursive_cte_depth(count) = 3636 "HY000" "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.";
    NetErrorOnWrite net_error_on_write() = 1160 "08S01" "Got an error writing communication packets";
    NetReadError net_read_error() = 1158 "08S01" "Got an error reading communication packets";
    NetReadInterrupted net_read_interrupted() = 1159 "08S01" "Got timeout reading communication packets";
    PacketsOutOfOrder packets_out_of_order() = 1156 "08S01" "Got packets out of order";
    NetUncompressError net_uncompress_error() = 1157 "08S01" "Couldn't uncompress communication packet";
    MalformedPacket malformed_packet() = 1835 "HY000" "Malformed communication packet.";
    TooManyParameters too_many_parameters() = 1390 "HY000" "Prepared statement contains too many placeholders";
    StatementHasNoOpenCursor statement_has_no_open_cursor(id) = 1421 "HY000" "The statement ({}) has no open cursor.";
    LongDataTooLarge long_data_too_large() = 1105 "HY000" "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes";
    ChangeUserDenied change_user_denied(user, host, using_password) = 1873 "28000" "Access denied trying to change to user '{}'@'{}' (using password: {}). Disconnecting.";
    ComponentWithoutScheme component_without_scheme(urn) = 3527 "HY000" "Cannot find a scheme in the component's URN: '{}'.";
    CannotLoadComponent cannot_load_component(urn) = 3529 "HY000" "Cannot load component from specified URN: '{}'.";
    ComponentNotLoaded component_not_loaded(urn) = 3537 "HY000" "Component specified by URN '{}' to unload has not been loaded before.";
    AccessDeniedNoPassword access_denied_without_password(user, host) = 1698 "28000" "Access denied for user '{}'@'{}'";
    AccountTemporarilyLocked account_temporarily_locked(user, host, days, days_left, failures) = 3955 "HY000" "Access denied for user '{}'@'{}'. Account is blocked for {} day(s) ({} day(s) remaining) due to {} consecutive failed logins.";
    UserConnectionsReached user_connections_reached(user, most) = 1226 "42000" "User '{}' has exceeded the 'max_user_connections' resource (current value: {})";
    UserHourReached user_hour_reached(user, most) = 1226 "42000" "User '{}' has exceeded the 'max_connections_per_hour' resource (current value: {})";
    UserLimitReached user_limit_reached(user, resource, most) = 1226 "42000" "User '{}' has exceeded the '{}' resource (current value: {})";
    PasswordPolicy password_policy() = 1819 "HY000" "Your password does not satisfy the current policy requirements";
    PasswordReused password_reused(user, host) = 3638 "HY000" "Cannot use these credentials for '{}@{}' because they contradict the password history policy";
    SecondPasswordEmpty second_password_empty(user, host) = 3878 "HY000" "Empty password can not be retained as second password for user '{}'@'{}'.";
    IncorrectCurrentPassword incorrect_current_password() = 3891 "HY000" "Incorrect current password. Specify the correct password which has to be replaced.";
    MissingCurrentPassword missing_current_password() = 3892 "HY000" "Current password needs to be specified in the REPLACE clause in order to change it.";
    CurrentPasswordNotRequired current_password_not_required() = 3893 "HY000" "Do not specify the current password while changing it for other users.";
    RetainOnPluginChange retain_on_plugin_change(user, host) = 3894 "HY000" "Current password can not be retained for user '{}'@'{}' because authentication plugin is being changed.";
    RetainWithEmpty retain_with_empty(user, host) = 3895 "HY000" "Current password can not be retained for user '{}'@'{}' because new password is empty.";
    InvalidUserAttribute invalid_user_attribute() = 3982 "HY000" "The user attribute must be a valid JSON object";
    AccountLocked account_locked(user, host) = 3118 "HY000" "Access denied for user '{}'@'{}'. Account is locked.";
    PluginNotLoaded plugin_not_loaded(name) = 1524 "HY000" "Plugin '{}' is not loaded";
    NotSupportedAuthMode not_supported_auth_mode() = 1251 "08004" "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
    IdleTimeout idle_timeout() = 4031 "HY000" "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.";
    GipkInvisibleColumn gipk_invisible_column(column) = 4028 "HY000" "A table must have at least one visible column: '{}'";
    ServerIsReadOnly server_is_read_only(why) = 1836 "HY000" "Running in read-only mode: {}";
    UnknownError unknown_error(text) = 1105 "HY000" "{}";
    ServerLost server_lost() = 2013 "HY000" "Lost connection to MySQL server during query";
    CommandsOutOfSync commands_out_of_sync() = 2014 "HY000" "Commands out of sync; you can't run this command now";
    CannotConnect cannot_connect(why) = 2002 "HY000" "{}";
    BitOperandsSize bit_operands_size() = 3513 "HY000" "Binary operands of bitwise operators must be of equal length";
    IncorrectLiteral incorrect_literal(kind, value) = 1525 "HY000" "Incorrect {} value: '{}'";
    ParseError parse_error(text) = 1064 "42000" "{}";
    TooManyTables too_many_tables(most) = 1116 "HY000" "Too many tables; MySQL can only use {} tables in a join";
    StatementTooDeep statement_too_deep() = 1436 "HY000" "Thread stack overrun:  the statement is nested too deeply";
    UnresolvedTableLock unresolved_table_lock(name) = 3568 "HY000" "Unresolved table name '{}' in locking clause.";
    DistinctOrderBy distinct_order_by(position, column) = 3065 "HY000" "Expression #{} of ORDER BY clause is not in SELECT list, references column '{}' which is not in SELECT list; this is incompatible with DISTINCT";
    GroupingNotInGroupBy grouping_not_in_group_by(position) = 3148 "HY000" "Argument #{} of GROUPING function is not in GROUP BY";
    WindowPosition window_position(window) = 3592 "HY000" "Window '{}': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression.";
    WindowAliasNotAllowed window_alias_not_allowed(alias) = 3594 "HY000" "You cannot use the alias '{}' of an expression containing a window function in this context.'";
    WindowFunctionNotAllowed window_function_not_allowed(name) = 3593 "HY000" "You cannot use the window function '{}' in this context.'";
    WindowDuplicateName window_duplicate_name(name) = 3591 "HY000" "Window '{}' is defined twice.";
    WindowNotDefined window_not_defined(name) = 3579 "HY000" "Window name '{}' is not defined.";
    WindowCircularity window_circularity() = 3580 "HY000" "There is a circularity in the window dependency graph.";
    WindowRedefinesPartition window_redefines_partition() = 3581 "HY000" "A window which depends on another cannot define partitioning.";
    WindowNoInheritFrame window_no_inherit_frame(name) = 3582 "HY000" "Window '{}' has a frame definition, so cannot be referenced by another window.";
    WindowRedefinesOrder window_redefines_order(window, base) = 3583 "HY000" "Window '{}' cannot inherit '{}' since both contain an ORDER BY clause.";
    WindowFrameTemporal window_frame_temporal(window) = 3588 "HY000" "Window '{}' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
    WindowFrameNumeric window_frame_numeric(window) = 3589 "HY000" "Window '{}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
    WindowRangeOrder window_range_order(window) = 3587 "HY000" "Window '{}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type";
    NoData no_data() = 1329 "02000" "No data - zero rows fetched, selected, or processed";
    InvalidJsonTextInColumn invalid_json_text_in_column(message, position, column) = 3140 "22032" "Invalid JSON text: \"{}\" at position {} in value for column '{}'.";
    AutoIncrementExhausted auto_increment_exhausted() = 1467 "HY000" "Failed to read auto-increment value from storage engine";
    FixedFieldsToVariable fixed_fields_to_variable() = 1409 "HY000" "Can't load value from file with fixed size rows to variable";
    XaUnknown xa_unknown() = 1397 "XAE04" "XAER_NOTA: Unknown XID";
    XaInvalid xa_invalid() = 1398 "XAE05" "XAER_INVAL: Invalid arguments (or unsupported command)";
    XaWrongState xa_wrong_state(state) = 1399 "XAE07" "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {} state";
    XaOutside xa_outside() = 1400 "XAE09" "XAER_OUTSIDE: Some work is done outside global transaction";
    XaFatal xa_fatal() = 1401 "XAE03" "XAER_RMERR: Fatal error occurred in the transaction branch - check your data for consistency";
    XaRolledBack xa_rolled_back() = 1402 "XA100" "XA_RBROLLBACK: Transaction branch was rolled back";
    XaDuplicate xa_duplicate() = 1440 "XAE08" "XAER_DUPID: The XID already exists";
    XaDeadlock xa_deadlock() = 1614 "XA102" "XA_RBDEADLOCK: Transaction branch was rolled back: deadlock was detected";
    XaTemporaryTable xa_temporary_table() = 4091 "HY000" "XA: Temporary tables cannot be accessed inside XA transactions when xa_detach_on_prepare=ON";
    NoBinaryLog no_binary_log() = 1381 "HY000" "You are not using binary logging";
    TriggerDoesNotExist trigger_does_not_exist() = 1360 "HY000" "Trigger does not exist";
    ForeignServerExists foreign_server_exists(name) = 1476 "HY000" "The foreign server, {}, you are trying to create already exists.";
    ForeignServerDoesNotExist foreign_server_does_not_exist(name) = 1477 "HY000" "The foreign server name you are trying to reference does not exist. Data source error:  {}";
    PersistedVariableDoesNotExist persisted_variable_does_not_exist(name) = 3615 "HY000" "Variable {} does not exist in persisted config file";
    PersistReadOnlyDenied persist_read_only_denied() = 3630 "42000" "Access denied; you need SYSTEM_VARIABLES_ADMIN and PERSIST_RO_VARIABLES_ADMIN privileges for this operation";
    WrongRoutineName wrong_routine_name(name) = 1458 "42000" "Incorrect routine name '{}'";
    EventExists event_exists(name) = 1537 "HY000" "Event '{}' already exists";
    EventInterval event_interval() = 1542 "HY000" "INTERVAL is either not positive or too big";
    EventEnds event_ends() = 1543 "HY000" "ENDS is either invalid or before STARTS";
    EventInThePastDisabled event_in_the_past_disabled() = 1544 "HY000" "Event execution time is in the past. Event has been disabled";
    SameEventName same_event_name() = 1551 "HY000" "Same old and new event name";
    EventRecursion event_recursion() = 1576 "HY000" "Recursion of EVENT DDL statements is forbidden when body is present";
    NativeFunctionName native_function_name(name) = 1585 "HY000" "This function '{}' has the same name as a native function";
    EventInThePastDropped event_in_the_past_dropped() = 1588 "HY000" "Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was dropped immediately after creation.";
    EventInThePastUnchanged event_in_the_past_unchanged() = 1589 "HY000" "Event execution time is in the past and ON COMPLETION NOT PRESERVE is set. The event was not changed. Specify a time in the future.";
    UnknownEvent unknown_event(name) = 1539 "HY000" "Unknown event '{}'";
    ViewSelectClause view_select_clause(clause) = 1350 "HY000" "View's SELECT contains a '{}' clause";
    ViewSelectVariable view_select_variable() = 1351 "HY000" "View's SELECT contains a variable or parameter";
    ViewSelectTemporaryTable view_select_temporary_table(table) = 1352 "HY000" "View's SELECT refers to a temporary table '{}'";
    ViewSchemaChange view_schema_change(from, to) = 1450 "HY000" "Changing schema from '{}' to '{}' is not allowed.";
    AccountNameTooLong account_name_too_long(name, what, most) = 1470 "HY000" "String '{}' is too long for {} (should be no longer than {})";
    PasswordHashFormat password_hash_format() = 1827 "HY000" "The password hash doesn't have the expected format.";
    IllegalPrivilegeLevel illegal_privilege_level(privilege) = 3619 "HY000" "Illegal privilege level specified for {}";
    CannotCreateUserWithGrant cannot_create_user_with_grant() = 1410 "42000" "You are not allowed to create a user with GRANT";
    CannotRevokeAll cannot_revoke_all() = 1269 "HY000" "Can't revoke all privileges for one or more of the requested users";
    InvalidLogarithmArgument invalid_logarithm_argument() = 3020 "2201E" "Invalid argument for logarithm";
    WrongValueForFunction wrong_value_for_function(kind, value, function) = 1411 "HY000" "Incorrect {} value: '{}' for function {}";
    WrongBytesForFunction wrong_bytes_for_function(function) = 1411 "HY000" "Incorrect string value for function {}";
    GroupConcatCut group_concat_cut(row) = 1260 "HY000" "Row {} was cut by GROUP_CONCAT()";
    ResultTruncated result_truncated(function, most) = 1301 "HY000" "Result of {}() was larger than max_allowed_packet ({}) - truncated";
    SchemaReadOnly schema_read_only(schema) = 3989 "HY000" "Schema '{}' is in read only mode.";
    NoMasterKey no_master_key() = 3185 "HY000" "Can't find master key from keyring, please check in the server log if a keyring is loaded and initialized successfully.";
    InvalidEncryption invalid_encryption() = 3184 "HY000" "Invalid encryption option.";
    UnknownDirectory unknown_directory() = 3121 "HY000" "The DATA DIRECTORY location must be in a known directory.";
    UnsupportedCreateOption unsupported_create_option(option) = 1478 "HY000" "Table storage engine 'InnoDB' does not support the create option '{}'";
    OptionIgnored option_ignored(option) = 1618 "HY000" "<{}> option ignored";
    InitializationVectorTooShort initialization_vector_too_short(function, least) = 1882 "HY000" "The initialization vector supplied to {} is too short. Must be at least {} bytes long";
    UncompressCorrupted uncompress_corrupted() = 1259 "HY000" "ZLIB: Input data corrupted";
    UncompressTooBig uncompress_too_big(most) = 1256 "HY000" "Uncompressed data size too large; the maximum size is {} (probably, length of uncompressed data was corrupted)";
    RegexpIllegalArgument regexp_illegal_argument() = 3685 "HY000" "Illegal argument to a regular expression.";
    RegexpIndexOutOfBounds regexp_index_out_of_bounds() = 3686 "HY000" "Index out of bounds in regular expression search.";
    RegexpRuleSyntax regexp_rule_syntax(line, character) = 3688 "HY000" "Syntax error in regular expression on line {}, character {}.";
    RegexpBadEscape regexp_bad_escape() = 3689 "HY000" "Unrecognized escape sequence in regular expression.";
    RegexpUnimplemented regexp_unimplemented(feature) = 3690 "HY000" "Regular expression feature is not implemented: {}.";
    RegexpMismatchedParenthesis regexp_mismatched_parenthesis() = 3691 "HY000" "Mismatched parenthesis in regular expression.";
    RegexpBadInterval regexp_bad_interval() = 3692 "HY000" "Incorrect description of a {{min,max}} interval.";
    RegexpIntervalMaxBelowMin regexp_interval_max_below_min() = 3693 "HY000" "The maximum is less than the minumum in a {{min,max}} interval.";
    RegexpInvalidBackReference regexp_invalid_back_reference() = 3694 "HY000" "Invalid back-reference in regular expression.";
    RegexpLookBehindLimit regexp_look_behind_limit() = 3695 "HY000" "The look-behind assertion exceeds the limit in regular expression.";
    RegexpUnclosedBracket regexp_unclosed_bracket() = 3696 "HY000" "The regular expression contains an unclosed bracket expression.";
    RegexpInvalidRange regexp_invalid_range() = 3697 "HY000" "The regular expression contains an [x-y] character range where x comes after y.";
    RegexpStackOverflow regexp_stack_overflow() = 3698 "HY000" "Overflow in the regular expression backtrack stack.";
    RegexpTimeout regexp_timeout() = 3699 "HY000" "Timeout exceeded in regular expression match.";
    RegexpTooBig regexp_too_big() = 3700 "HY000" "The regular expression pattern exceeds limits on size or complexity.";
    RegexpGroupName regexp_group_name() = 3887 "HY000" "A capture group has an invalid name.";
    UnsupportedMaxExecutionTime unsupported_max_execution_time() = 3125 "HY000" "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only";
    RewrittenQuery rewritten_query(text) = 1003 "HY000" "{}";
    HintSyntax hint_syntax(near, line) = 1064 "42000" "Optimizer hint syntax error near '{}' at line {}";
    HintConflict hint_conflict(hint) = 3126 "HY000" "Hint {} is ignored as conflicting/duplicated";
    HintBlockUnknown hint_block_unknown(block, hint) = 3127 "HY000" "Query block name {} is not found for {} hint";
    HintNameUnresolved hint_name_unresolved(name, hint) = 3128 "HY000" "Unresolved name {} for {} hint";
    RangeMemoryExceeded range_memory_exceeded(bytes) = 3170 "HY000" "Memory capacity of {} bytes for 'range_optimizer_max_mem_size' exceeded. Range optimization was not done for this query.";
    VariableNotHintable variable_not_hintable(name) = 3637 "HY000" "Variable {} cannot be set using SET_VAR hint.";
    FeatureUnsupported feature_unsupported(feature, why) = 3658 "HY000" "Feature {} is unsupported ({}).";
    HintHasNoEffect hint_has_no_effect(hint) = 1235 "42000" "Hint {} has no effect in this version of Porpoise";
    FlagHasNoEffect flag_has_no_effect(flag, variable) = 1235 "42000" "Flag '{}' of variable '{}' has no effect in this version of Porpoise";
    VariableHasNoEffect variable_has_no_effect(name) = 1235 "42000" "Variable '{}' has no effect in this version of Porpoise";
    NoMatchingLabel no_matching_label(statement, label) = 1308 "42000" "{} with no matching label: {}";
    LabelRedefined label_redefined(label) = 1309 "42000" "Redefining label {}";
    LabelMismatch label_mismatch(label) = 1310 "42000" "End-label {} without match";
    ResultSetNotAllowed result_set_not_allowed(procedure) = 1312 "0A000" "PROCEDURE {} can't return a result set in the given context";
    ReturnOutsideFunction return_outside_function() = 1313 "42000" "RETURN is only allowed in a FUNCTION";
    WrongArgumentCount wrong_argument_count(kind, routine, expected, given) = 1318 "42000" "Incorrect number of arguments for {} {}; expected {}, got {}";
    UndefinedCondition undefined_condition(name) = 1319 "42000" "Undefined CONDITION: {}";
    NoReturnInFunction no_return_in_function(function) = 1320 "42000" "No RETURN found in FUNCTION {}";
    FunctionWithoutReturn function_without_return(function) = 1321 "2F005" "FUNCTION {} ended without RETURN";
    UndefinedCursor undefined_cursor(name) = 1324 "42000" "Undefined CURSOR: {}";
    CursorAlreadyOpen cursor_already_open() = 1325 "24000" "Cursor is already open";
    CursorNotOpen cursor_not_open() = 1326 "24000" "Cursor is not open";
    WrongFetchCount wrong_fetch_count() = 1328 "HY000" "Incorrect number of FETCH variables";
    DuplicateParameter duplicate_parameter(name) = 1330 "42000" "Duplicate parameter: {}";
    DuplicateVariable duplicate_variable(name) = 1331 "42000" "Duplicate variable: {}";
    DuplicateCondition duplicate_condition(name) = 1332 "42000" "Duplicate condition: {}";
    DuplicateCursor duplicate_cursor(name) = 1333 "42000" "Duplicate cursor: {}";
    CaseNotFound case_not_found() = 1339 "20000" "Case not found for CASE statement";
    TriggerRowNotUpdatable trigger_row_not_updatable(row, time) = 1362 "HY000" "Updating of {} row is not allowed in {}trigger";
    NoSuchTriggerRow no_such_trigger_row(row, event) = 1363 "HY000" "There is no {} row in on {} trigger";
    RoutineExists routine_exists(kind, name) = 1304 "42000" "{} {} already exists";
    NotAllowedInProgram not_allowed_in_program(statement) = 1314 "0A000" "{} is not allowed in stored procedures";
    NotAllowedInFunction not_allowed_in_function(statement) = 1336 "0A000" "{} is not allowed in stored function or trigger";
    ProgramWithinProgram program_within_program(kind) = 1303 "2F003" "Can't create a {} from within another stored routine";
    DroppedWithinProgram dropped_within_program(kind) = 1357 "HY000" "Can't drop or alter a {} from within another stored routine";
    CursorSelectInto cursor_select_into() = 1323 "42000" "Cursor SELECT must not have INTO";
    VariableAfterCursor variable_after_cursor() = 1337 "42000" "Variable or condition declaration after cursor or handler declaration";
    CursorAfterHandler cursor_after_handler() = 1338 "42000" "Cursor declaration after handler declaration";
    NoTriggersOnSystemSchema no_triggers_on_system_schema() = 1465 "HY000" "Triggers can not be created on system tables";
    TriggerExists trigger_exists() = 1359 "HY000" "Trigger already exists";
    TriggerOnViewOrTemporary trigger_on_view_or_temporary(table) = 1361 "HY000" "Trigger's '{}' is view or temporary table";
    TriggerInWrongSchema trigger_in_wrong_schema() = 1435 "HY000" "Trigger in wrong schema";
    ReferencedTriggerMissing referenced_trigger_missing(name) = 3011 "HY000" "Referenced trigger '{}' for the given action time and event type does not exist.";
    RoutineAccessDenied routine_access_denied(privilege, user, host, routine) = 1370 "42000" "{} command denied to user '{}'@'{}' for routine '{}'";
    BadSqlState bad_sqlstate(text) = 1407 "42000" "Bad SQLSTATE: '{}'";
    DuplicateHandler duplicate_handler() = 1413 "42000" "Duplicate handler declared in the same block";
    OutArgumentNotVariable out_argument_not_variable(number, routine) = 1414 "42000" "OUT or INOUT argument {} for routine {} is not a variable or NEW pseudo-variable in BEFORE trigger";
    ResultSetFromFunction result_set_from_function(kind) = 1415 "0A000" "Not allowed to return a result set from a {}";
    CommitInFunction commit_in_function() = 1422 "HY000" "Explicit or implicit commit is not allowed in stored function or trigger.";
    RecursiveFunction recursive_function() = 1424 "HY000" "Recursive stored functions and triggers are not allowed.";
    TableUsedByCaller table_used_by_caller(table) = 1442 "HY000" "Can't update table '{}' in stored function/trigger because it is already used by statement which invoked this stored function/trigger.";
    RecursionLimit recursion_limit(limit, routine) = 1456 "HY000" "Recursive limit {} (as set by the max_sp_recursion_depth variable) was exceeded for routine {}";
    SignalledWarning signalled_warning() = 1642 "01000" "Unhandled user-defined warning condition";
    SignalledNotFound signalled_not_found() = 1643 "02000" "Unhandled user-defined not found condition";
    SignalledException signalled_exception() = 1644 "HY000" "Unhandled user-defined exception condition";
    ResignalWithoutHandler resignal_without_handler() = 1645 "0K000" "RESIGNAL when handler not active";
    SignalBadCondition signal_bad_condition() = 1646 "HY000" "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE";
    ConditionItemTooLong condition_item_too_long(item) = 1648 "HY000" "Data too long for condition item '{}'";
    InvalidConditionNumber invalid_condition_number() = 1758 "35000" "Invalid condition number";
    NoStackedDiagnostics no_stacked_diagnostics() = 3004 "0Z002" "GET STACKED DIAGNOSTICS when handler not active";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_511_bytes_and_whole_characters() {
        let long = "é".repeat(1 << 20);
        let error = Error::wrong_user_lock_name(&long);
        // The next é begins at the last byte.
        assert_eq!(error.message().len(), MESSAGE_BYTES_MAX - 1);
        assert!(error.message().ends_with('é'), "{error:?}");
        // Its own words are someone else's to bound.
        assert_eq!(Error::folder_in_use(&long).message(), long);
    }
}
