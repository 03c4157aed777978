//! Errors and warnings, with MySQL's numbers, SQLSTATEs and words.
//!
//! One table, a row an error: a constructor's name, the number, the SQLSTATE and the message with
//! `{}` where its arguments go. `Error::duplicate_entry(value, key)` makes error 1062. A warning is
//! the same thing with a lower [`Level`], so that strict mode can turn one into the other.
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
    /// The statement ended, or would have ended if it were not a diagnostic statement.
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
    /// MySQL's error number; what clients tell errors apart by.
    pub number: u16,
    /// Five letters and digits: the error's class by the SQL standard, and its subclass.
    pub sqlstate: &'static str,
    /// The text for people, its arguments filled in.
    pub message: String,
}

/// A result whose error is this crate's, unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of any number.
    pub fn new(number: u16, sqlstate: &'static str, message: impl Into<String>) -> Error {
        Error(Box::new(Condition {
            number,
            sqlstate,
            message: message.into(),
        }))
    }

    /// An error that another process told of. A SQLSTATE is five letters and digits, of which there are few different ones.
    pub fn told(number: u16, sqlstate: [u8; 5], message: String) -> Error {
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
        Error::new(number, sqlstate, message)
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

    /// The message; for an error of storage, storage's own words, without those that wrap them for clients.
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

macro_rules! errors {
    ($($name:ident($($arg:ident),*) = $number:literal $state:literal $text:literal;)*) => {
        impl Error {
            $(
                #[doc = concat!("Error ", $number, " (", $state, "): ", $text)]
                pub fn $name($($arg: impl fmt::Display),*) -> Error {
                    Error::new($number, $state, format!($text $(, $arg)*))
                }
            )*
        }
        /// Numbers by name, to compare with [`Error::number`].
        #[allow(non_upper_case_globals)]
        pub mod number {
            $(
                #[doc = concat!("Error ", $number, ": ", $text)]
                pub const $name: u16 = $number;
            )*
        }
    };
}

errors! {
    database_exists(name) = 1007 "HY000" "Can't create database '{}'; database exists";
    cannot_drop_database(name) = 1008 "HY000" "Can't drop database '{}'; database doesn't exist";
    server_shutdown() = 1053 "08S01" "Server shutdown in progress";
    folder_in_use(text) = 1015 "HY000" "{}";
    disk_full(file) = 1021 "HY000" "Disk full ({}); waiting for someone to free some space...";
    dup_key(table) = 1022 "23000" "Can't write; duplicate key in table '{}'";
    not_key_file(table, place) = 1034 "HY000" "Incorrect key file for table '{}'; try to repair it ({})";
    index_corrupt(index, place) = 1712 "HY000" "Index {} is corrupted ({})";
    engine_error(code) = 1030 "HY000" "Got error {} from storage engine";
    out_of_memory() = 1037 "HY001" "Out of memory; restart server and try again";
    too_many_connections() = 1040 "08004" "Too many connections";
    host_is_blocked(host) = 1129 "HY000" "Host '{}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'";
    host_not_privileged(host) = 1130 "HY000" "Host '{}' is not allowed to connect to this MySQL server";
    must_change_password() = 1820 "HY000" "You must reset your password using ALTER USER statement before executing this statement.";
    password_has_expired() = 1862 "HY000" "Your password has expired. To log in you must change it using a client that supports expired passwords.";
    too_many_user_connections(user) = 1203 "42000" "User {} already has more than 'max_user_connections' active connections";
    variable_is_read_only(scope, name, instead) = 1621 "HY000" "{} variable '{}' is read-only. Use SET {} to assign the value";
    handshake_error() = 1043 "08S01" "Bad handshake";
    db_access_denied(user, host, db) = 1044 "42000" "Access denied for user '{}'@'{}' to database '{}'";
    access_denied(user, host, using_password) = 1045 "28000" "Access denied for user '{}'@'{}' (using password: {})";
    no_database_selected() = 1046 "3D000" "No database selected";
    unknown_command() = 1047 "08S01" "Unknown command";
    column_cannot_be_null(column) = 1048 "23000" "Column '{}' cannot be null";
    unknown_database(name) = 1049 "42000" "Unknown database '{}'";
    table_exists(name) = 1050 "42S01" "Table '{}' already exists";
    unknown_table(name) = 1051 "42S02" "Unknown table '{}'";
    ambiguous_column(column, clause) = 1052 "23000" "Column '{}' in {} is ambiguous";
    unknown_column(column, clause) = 1054 "42S22" "Unknown column '{}' in '{}'";
    not_in_group_by(expression) = 1055 "42000" "'{}' isn't in GROUP BY";
    cannot_group_on(expression) = 1056 "42000" "Can't group on '{}'";
    column_count_mismatch(row) = 1136 "21S01" "Column count doesn't match value count at row {}";
    identifier_too_long(name) = 1059 "42000" "Identifier name '{}' is too long";
    duplicate_column(column) = 1060 "42S21" "Duplicate column name '{}'";
    duplicate_key_name(key) = 1061 "42000" "Duplicate key name '{}'";
    duplicate_entry(value, key) = 1062 "23000" "Duplicate entry '{}' for key '{}'";
    wrong_column_specifier(column) = 1063 "42000" "Incorrect column specifier for column '{}'";
    syntax_error(near, line) = 1064 "42000" "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line {}";
    empty_query() = 1065 "42000" "Query was empty";
    not_unique_table(name) = 1066 "42000" "Not unique table/alias: '{}'";
    invalid_default(column) = 1067 "42000" "Invalid default value for '{}'";
    multiple_primary_key() = 1068 "42000" "Multiple primary key defined";
    too_many_keys(most) = 1069 "42000" "Too many keys specified; max {} keys allowed";
    too_many_key_parts(most) = 1070 "42000" "Too many key parts specified; max {} parts allowed";
    key_too_long(bytes) = 1071 "42000" "Specified key was too long; max key length is {} bytes";
    key_column_missing(column) = 1072 "42000" "Key column '{}' doesn't exist in table";
    blob_cannot_be_key(column) = 1073 "42000" "BLOB column '{}' can't be used in key specification with the used table type";
    column_length_too_big(column, most) = 1074 "42000" "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead";
    wrong_auto_key() = 1075 "42000" "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    forcing_close(id, user) = 1080 "08S01" "Forcing close of thread {}  user: '{}'";
    wrong_sub_key() = 1089 "HY000" "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    cannot_remove_all_fields() = 1090 "42000" "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    cannot_drop_field_or_key(name) = 1091 "42000" "Can't DROP '{}'; check that column/key exists";
    update_table_used(table) = 1093 "HY000" "You can't specify target table '{}' for update in FROM clause";
    no_such_thread(id) = 1094 "HY000" "Unknown thread id: {}";
    kill_denied(id) = 1095 "HY000" "You are not owner of thread {}";
    no_tables_used() = 1096 "HY000" "No tables used";
    too_big_set(column) = 1097 "HY000" "Too many strings for column {} and SET";
    table_not_locked_for_write(table) = 1099 "HY000" "Table '{}' was locked with a READ lock and can't be updated";
    table_not_locked(table) = 1100 "HY000" "Table '{}' was not locked with LOCK TABLES";
    blob_cannot_have_default(column) = 1101 "42000" "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value";
    wrong_db_name(name) = 1102 "42000" "Incorrect database name '{}'";
    wrong_table_name(name) = 1103 "42000" "Incorrect table name '{}'";
    too_big_select() = 1104 "42000" "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    unknown_procedure(name) = 1106 "42000" "Unknown procedure '{}'";
    unknown_table_in(table, clause) = 1109 "42S02" "Unknown table '{}' in {}";
    field_specified_twice(column) = 1110 "42000" "Column '{}' specified twice";
    invalid_group_function_use() = 1111 "HY000" "Invalid use of group function";
    using_other_engine(engine, table) = 1266 "HY000" "Using storage engine {} for table '{}'";
    wrong_column_name(name) = 1166 "42000" "Incorrect column name '{}'";
    wrong_index_name(name) = 1280 "42000" "Incorrect index name '{}'";
    comment_too_long(what, name, most) = 1629 "HY000" "Comment for {} '{}' is too long (max = {})";
    too_big_scale(scale, column, most) = 1425 "42000" "Too big scale {} specified for column '{}'. Maximum is {}.";
    too_big_precision(precision, column, most) = 1426 "42000" "Too-big precision {} specified for '{}'. Maximum is {}.";
    scale_over_precision(column) = 1427 "42000" "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').";
    display_width_out_of_range(column, most) = 1439 "42000" "Display width out of range for column '{}' (max = {})";
    invalid_field_size(column) = 3013 "HY000" "Invalid size for column '{}'.";
    converted_to_text(column, from, to) = 1246 "HY000" "Converting column '{}' from {} to {}";
    key_part_zero(column) = 1391 "HY000" "Key part '{}' length cannot be 0";
    no_visible_column() = 4028 "HY000" "A table must have at least one visible column.";
    duplicate_index(index, schema, table) = 1831 "HY000" "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and will be disallowed in a future release.";
    check_unknown_column(check, column) = 3820 "HY000" "Check constraint '{}' refers to non-existing column '{}'.";
    check_other_column(check) = 3813 "HY000" "Column check constraint '{}' references other column.";
    check_function_not_allowed(check, function) = 3814 "HY000" "An expression of a check constraint '{}' contains disallowed function: {}.";
    check_uses_column(check, column) = 3959 "HY000" "Check constraint '{}' uses column '{}', hence column cannot be dropped or renamed.";
    default_function_not_allowed(column) = 3770 "HY000" "Default value expression of column '{}' contains a disallowed function.";
    not_base_table(schema, table) = 1347 "HY000" "'{}.{}' is not BASE TABLE";
    not_view(schema, table) = 1347 "HY000" "'{}.{}' is not VIEW";
    cannot_drop_needed_index(index) = 1553 "HY000" "Cannot drop index '{}': needed in a foreign key constraint";
    invalid_use_of_null() = 1138 "22004" "Invalid use of NULL value";
    functional_key_of_json() = 3753 "HY000" "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
    functional_key_refers_auto_increment(index) = 3754 "HY000" "Functional index '{}' cannot refer to an auto-increment column.";
    functional_primary_key() = 3756 "HY000" "The primary key cannot be a functional index";
    functional_key_of_blob() = 3757 "HY000" "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.";
    functional_key_function_not_allowed(index) = 3758 "HY000" "Expression of functional index '{}' contains a disallowed function.";
    functional_key_of_column() = 3762 "HY000" "Functional index on a column is not supported. Consider using a regular index instead.";
    dependent_functional_index(column) = 3837 "HY000" "Column '{}' has a functional index dependency and cannot be dropped or renamed.";
    primary_invisible() = 3522 "HY000" "A primary key index cannot be invisible";
    alter_not_supported(what, why, instead) = 1846 "0A000" "{} is not supported. Reason: {}. Try {}.";
    constraint_not_found(name) = 3940 "HY000" "Constraint '{}' does not exist.";
    undeclared_variable(name) = 1327 "42000" "Undeclared variable: {}";
    view_no_explain() = 1345 "HY000" "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
    no_such_definer(user, host) = 1449 "HY000" "The user specified as a definer ('{}'@'{}') does not exist";
    view_invalid(schema, view) = 1356 "HY000" "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
    db_access_system(name) = 3552 "HY000" "Access to system schema '{}' is rejected.";
    system_table_access(schema, name) = 3554 "HY000" "Access to system table '{}.{}' is rejected.";
    table_definition_changed() = 1412 "HY000" "Table definition has changed, please retry transaction";
    table_must_have_columns() = 1113 "42000" "A table must have at least 1 column";
    unknown_character_set(name) = 1115 "42000" "Unknown character set: '{}'";
    too_many_columns() = 1117 "HY000" "Too many columns";
    row_too_big(bytes) = 1118 "42000" "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    primary_cannot_have_null() = 1171 "42000" "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    wrong_value_count() = 1222 "21000" "The used SELECT statements have a different number of columns";
    mix_of_group_and_fields(position, column) = 1140 "42000" "In aggregated query without GROUP BY, expression #{} of SELECT list contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by";
    only_full_group_by(position, clause, column) = 1055 "42000" "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    no_such_grant(user, host) = 1141 "42000" "There is no such grant defined for user '{}' on host '{}'";
    table_access_denied(command, user, host, table) = 1142 "42000" "{} command denied to user '{}'@'{}' for table '{}'";
    column_access_denied(command, user, host, column, table) = 1143 "42000" "{} command denied to user '{}'@'{}' for column '{}' in table '{}'";
    illegal_grant_for_table() = 1144 "42000" "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    no_such_table(schema, table) = 1146 "42S02" "Table '{}.{}' doesn't exist";
    no_such_table_grant(user, host, table) = 1147 "42000" "There is no such grant defined for user '{}' on host '{}' on table '{}'";
    packet_too_large() = 1153 "08S01" "Got a packet bigger than 'max_allowed_packet' bytes";
    string_too_long() = 1162 "42000" "Result string is longer than 'max_allowed_packet' bytes";
    duplicate_key_on_alter(key) = 1169 "23000" "Can't write, because of unique constraint, to table '{}'";
    key_without_length(column) = 1170 "42000" "BLOB/TEXT column '{}' used in key specification without a key length";
    too_many_rows() = 1172 "42000" "Result consisted of more than one row";
    requires_primary_key() = 1173 "42000" "This table type requires a primary key";
    update_without_key() = 1175 "HY000" "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column. ";
    key_does_not_exist(key, table) = 1176 "42000" "Key '{}' doesn't exist in table '{}'";
    error_during_commit(text) = 1180 "HY000" "Got error {} during COMMIT";
    unknown_system_variable(name) = 1193 "HY000" "Unknown system variable '{}'";
    new_abort_warning(id, db, user, host, why) = 1184 "08S01" "Aborted connection {} to db: '{}' user: '{}' host: '{}' ({})";
    lock_wait_timeout() = 1205 "HY000" "Lock wait timeout exceeded; try restarting transaction";
    wrong_arguments(function) = 1210 "HY000" "Incorrect arguments to {}";
    conflicting_read_lock() = 1223 "HY000" "Can't execute the query because you have a conflicting read lock";
    locked_or_in_transaction() = 1192 "HY000" "Can't execute the given command because you have active locked tables or an active transaction";
    deadlock() = 1213 "40001" "Deadlock found when trying to get lock; try restarting transaction";
    cannot_add_foreign_key() = 1215 "HY000" "Cannot add foreign key constraint";
    no_referenced_row(constraint) = 1452 "23000" "Cannot add or update a child row: a foreign key constraint fails ({})";
    row_is_referenced(constraint) = 1451 "23000" "Cannot delete or update a parent row: a foreign key constraint fails ({})";
    view_check_failed(view) = 1369 "HY000" "CHECK OPTION failed '{}'";
    view_field_has_no_default(view) = 1423 "HY000" "Field of view '{}' underlying table doesn't have a default value";
    not_insertable(table, statement) = 1471 "HY000" "The target table {} of the {} is not insertable-into";
    unknown_authorization_id(user, host) = 3523 "HY000" "Unknown authorization ID `{}`@`{}`";
    role_not_granted(role, user) = 3530 "HY000" "{} is not granted to {}";
    role_loop(user, role) = 3538 "HY000" "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop";
    cannot_stat(path, number, why) = 13 "HY000" "Can't get stat of '{}' (OS errno {} - {})";
    wrong_field_terminators() = 1083 "42000" "Field separator argument is not what is expected; check the manual";
    row_has_more_fields(row) = 1262 "01000" "Row {} was truncated; it contained more data than there were input columns";
    local_data_disabled() = 3948 "42000" "Loading local data is disabled; this must be enabled on both the client and server sides";
    wrong_foreign_key(name, why) = 1239 "42000" "Incorrect foreign key definition for '{}': {}";
    truncate_referenced(constraint) = 1701 "42000" "Cannot truncate a table referenced in a foreign key constraint ({})";
    foreign_key_duplicate(table, record, child, key) = 1761 "23000" "Foreign key constraint for table '{}', record '{}' would lead to a duplicate entry in table '{}', key '{}'";
    foreign_key_no_index(name, parent) = 1822 "HY000" "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'";
    foreign_key_no_parent(parent) = 1824 "HY000" "Failed to open the referenced table '{}'";
    duplicate_foreign_key(name) = 1826 "HY000" "Duplicate foreign key constraint name '{}'";
    foreign_key_column_dropped(column, name) = 1828 "HY000" "Cannot drop column '{}': needed in a foreign key constraint '{}'";
    foreign_key_parent_column_dropped(column, name, child) = 1829 "HY000" "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{}'";
    foreign_key_column_not_null(column, name) = 1830 "HY000" "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL";
    foreign_key_column_changed(column, name) = 1832 "HY000" "Cannot change column '{}': used in a foreign key constraint '{}'";
    foreign_key_parent_column_changed(column, name, child) = 1833 "HY000" "Cannot change column '{}': used in a foreign key constraint '{}' of table '{}'";
    foreign_key_too_deep() = 3008 "HY000" "Foreign key cascade delete/update exceeds max depth of 15.";
    drop_referenced(table, name, child) = 3730 "HY000" "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.";
    foreign_key_virtual_column(name, column) = 3733 "HY000" "Foreign key '{}' uses virtual column '{}' which is not supported.";
    foreign_key_no_column(column, name, parent) = 3734 "HY000" "Failed to add the foreign key constraint. Missing column '{}' for constraint '{}' in the referenced table '{}'";
    foreign_key_incompatible(column, parent_column, name) = 3780 "HY000" "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.";
    foreign_key_generated_column(option) = 3104 "HY000" "Cannot define foreign key with {} clause on a generated column.";
    foreign_key_no_unique(name, parent) = 6125 "HY000" "Failed to add the foreign key constraint. Missing unique key for constraint '{}' in the referenced table '{}'";
    wrong_usage(a, b) = 1221 "HY000" "Incorrect usage of {} and {}";
    specific_access_denied(privilege) = 1227 "42000" "Access denied; you need (at least one of) the {} privilege(s) for this operation";
    local_variable(name) = 1228 "HY000" "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL";
    global_variable(name) = 1229 "HY000" "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL";
    no_default(name) = 1230 "42000" "Variable '{}' doesn't have a default value";
    wrong_value_for_variable(name, value) = 1231 "42000" "Variable '{}' can't be set to the value of '{}'";
    wrong_type_for_variable(name) = 1232 "42000" "Incorrect argument type to variable '{}'";
    variable_cannot_be_read(name) = 1233 "HY000" "Variable '{}' can only be set, not read";
    not_supported_yet(feature) = 1235 "42000" "This version of Porpoise doesn't yet support '{}'";
    incorrect_global_local_variable(name, kind) = 1238 "HY000" "Variable '{}' is a {} variable";
    operand_columns(count) = 1241 "21000" "Operand should contain {} column(s)";
    subquery_returns_many_rows() = 1242 "21000" "Subquery returns more than 1 row";
    unknown_statement_handler(id, command) = 1243 "HY000" "Unknown prepared statement handler ({}) given to {}";
    illegal_reference(name, why) = 1247 "42S22" "Reference '{}' not supported ({})";
    derived_must_have_alias() = 1248 "42000" "Every derived table must have its own alias";
    table_not_in_from(table, clause) = 1250 "42000" "Table '{}' from one of the SELECTs cannot be used in {}";
    collation_charset_mismatch(collation, charset) = 1253 "42000" "COLLATION '{}' is not valid for CHARACTER SET '{}'";
    row_lacks_fields(row) = 1261 "01000" "Row {} doesn't contain data for all columns";
    null_to_not_null(column, row) = 1263 "22004" "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}";
    out_of_range_column(column, row) = 1264 "22003" "Out of range value for column '{}' at row {}";
    data_truncated(column, row) = 1265 "01000" "Data truncated for column '{}' at row {}";
    cannot_aggregate_collations(a, ca, b, cb, operation) = 1267 "HY000" "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'";
    cannot_aggregate_three_collations(a, ca, b, cb, c, cc, operation) = 1270 "HY000" "Illegal mix of collations ({},{}), ({},{}), ({},{}) for operation '{}'";
    cannot_aggregate_many_collations(operation) = 1271 "HY000" "Illegal mix of collations for operation '{}'";
    unknown_collation(name) = 1273 "HY000" "Unknown collation: '{}'";
    too_big_row_group() = 1118 "42000" "Row size too large";
    unknown_storage_engine(name) = 1286 "42000" "Unknown storage engine '{}'";
    deprecated_syntax(what, instead) = 1287 "HY000" "'{}' is deprecated and will be removed in a future release. Please use {} instead";
    non_updatable_table(table, statement) = 1288 "HY000" "The target table {} of the {} is not updatable";
    read_only_option(option) = 1290 "HY000" "The MySQL server is running with the {} option so it cannot execute this statement";
    duplicated_value_in_type(column, value, kind) = 1291 "HY000" "Column '{}' has duplicated value '{}' in {}";
    truncated_wrong_value(kind, value) = 1292 "22007" "Incorrect {} value: '{}'";
    truncated_wrong_value_truncated(kind, value) = 1292 "22007" "Truncated incorrect {} value: '{}'";
    invalid_on_update(column) = 1294 "HY000" "Invalid ON UPDATE clause for '{}' column";
    unsupported_in_prepared() = 1295 "HY000" "This command is not supported in the prepared statement protocol yet";
    unknown_time_zone(name) = 1298 "HY000" "Unknown or incorrect time zone: '{}'";
    warn_invalid_character_string(charset, value) = 1300 "HY000" "Invalid {} character string: '{}'";
    savepoint_does_not_exist(name) = 1305 "42000" "SAVEPOINT {} does not exist";
    routine_does_not_exist(kind, name) = 1305 "42000" "{} {} does not exist";
    query_interrupted() = 1317 "70100" "Query execution was interrupted";
    column_count_of_view() = 1353 "HY000" "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts";
    no_default_for_field(column) = 1364 "HY000" "Field '{}' doesn't have a default value";
    division_by_zero() = 1365 "22012" "Division by 0";
    incorrect_value_for_column(kind, value, column, row) = 1366 "HY000" "Incorrect {} value: '{}' for column '{}' at row {}";
    truncated_value_for_column(kind, value, column, row) = 1292 "22007" "Incorrect {} value: '{}' for column '{}' at row {}";
    illegal_value_for_type(kind, value) = 1367 "22007" "Illegal {} '{}' value found during parsing";
    password_no_match() = 1133 "42000" "Can't find any matching row in the user table";
    cannot_create_user(operation, who) = 1396 "HY000" "Operation {} failed for {}";
    account_does_not_exist(user, host) = 3162 "HY000" "Authorization ID '{}'@'{}' does not exist.";
    account_exists(user, host) = 3163 "HY000" "Authorization ID '{}'@'{}' already exists.";
    data_too_long(column, row) = 1406 "22001" "Data too long for column '{}' at row {}";
    datetime_overflow(function) = 1441 "22008" "Datetime function: {} field overflow";
    not_allowed_in_transaction() = 1179 "25000" "You are not allowed to execute this command in a transaction";
    read_only_transaction() = 1792 "25006" "Cannot execute statement in a READ ONLY transaction.";
    transaction_characteristics() = 1568 "25001" "Transaction characteristics can't be changed while a transaction is in progress";
    parameter_count(function) = 1582 "42000" "Incorrect parameter count in the call to native function '{}'";
    function_does_not_exist(schema, name) = 1305 "42000" "FUNCTION {}.{} does not exist";
    wrong_parameters_to_native(function) = 1583 "42000" "Incorrect parameters in the call to native function '{}'";
    unknown_locale(name) = 1649 "HY000" "Unknown locale: '{}'";
    value_out_of_range(kind, expression) = 1690 "22003" "{} value is out of range in '{}'";
    spatial_not_null() = 1252 "42000" "All parts of a SPATIAL index must be NOT NULL";
    unknown_explain_format(name) = 1791 "HY000" "Unknown EXPLAIN format name: '{}'";
    generated_column_not_allowed(column, table) = 3105 "HY000" "The value specified for generated column '{}' in table '{}' is not allowed.";
    unsupported_on_generated(what) = 3106 "HY000" "'{}' is not supported for generated columns.";
    generated_refers_forward() = 3107 "HY000" "Generated column can refer only to generated columns defined prior to it.";
    generated_refers_auto_increment(column) = 3109 "HY000" "Generated column '{}' cannot refer to auto-increment column.";
    dependent_generated_column(column) = 3108 "HY000" "Column '{}' has a generated column dependency.";
    generated_function_not_allowed(column) = 3102 "HY000" "Expression of generated column '{}' contains a disallowed function.";
    invalid_json_text(position, message) = 3140 "22032" "Invalid JSON text: \"{1}\" at position {0} in value for column.";
    invalid_json_text_in_parameter(parameter, function, message, position) = 3141 "22032" "Invalid JSON text in argument {} to function {}: \"{}\" at position {}.";
    invalid_json_path(position) = 3143 "42000" "Invalid JSON path expression. The error is around character position {}.";
    invalid_type_for_json(parameter, function) = 3146 "22032" "Invalid data type for JSON data in argument {} to function {}; a JSON string or JSON type is required.";
    json_in_key(column) = 3152 "42000" "JSON column '{}' supports indexing only via generated columns on a specified JSON path.";
    json_null_key() = 3158 "22032" "JSON documents may not contain NULL member names.";
    incorrect_argument_type(parameter, function) = 3064 "HY000" "Incorrect type for argument {} in function {}.";
    wrong_user_lock_name(name) = 3057 "42000" "Incorrect user-level lock name '{}'.";
    user_lock_deadlock() = 3058 "HY000" "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition.";
    invalid_json_charset(charset) = 3144 "22032" "Cannot create a JSON value from a string with CHARACTER SET '{}'.";
    json_path_wild() = 3149 "42000" "In this situation, path expressions may not contain the * and ** tokens or an array range.";
    json_path_vacuous() = 3153 "42000" "The path expression '$' is not allowed in this context.";
    json_one_or_all(function) = 3154 "42000" "The oneOrAll argument to {} may take these values: 'one' or 'all'.";
    json_too_deep() = 3157 "22032" "The JSON document exceeds the maximum depth.";
    json_path_not_cell() = 3165 "42000" "A path expression is not a path to a cell in an array.";
    missing_json_value(function) = 3966 "22035" "No value was found by '{}' on the specified path.";
    multiple_json_values(function) = 3967 "22034" "More than one value was found by '{}' on the specified path.";
    missing_json_table_value(column) = 3665 "22035" "Missing value for JSON_TABLE column '{}'";
    wrong_json_table_value(column) = 3666 "2203F" "Can't store an array or an object in the scalar JSON_TABLE column '{}'";
    table_function_must_have_alias() = 3667 "42000" "Every table function must have an alias.";
    json_table_value_out_of_range(column) = 3669 "22003" "Value is out of range for JSON_TABLE's column '{}'";
    invalid_json_value_for_cast(kind, column, row) = 3156 "22018" "Invalid JSON value for CAST to {} from column {} at row {}";
    window_frame_illegal(window) = 3586 "HY000" "Window '{}': frame start or end is negative, NULL or of non-integral type";
    check_violated(name) = 3819 "HY000" "Check constraint '{}' is violated.";
    check_not_found(name) = 3821 "HY000" "Check constraint '{}' is not found in the table.";
    duplicate_check(name) = 3822 "HY000" "Duplicate check constraint name '{}'.";
    check_refers_auto_increment(name) = 3818 "HY000" "Check constraint '{}' cannot refer to an auto-increment column.";
    lock_nowait() = 3572 "HY000" "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    query_timeout() = 3024 "HY000" "Query execution was interrupted, maximum statement execution time exceeded";
    invalid_group_order_position(position) = 1054 "42S22" "Unknown column '{}' in 'order clause'";
    recursive_cte_depth(count) = 3636 "HY000" "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.";
    net_error_on_write() = 1160 "08S01" "Got an error writing communication packets";
    net_read_error() = 1158 "08S01" "Got an error reading communication packets";
    net_read_interrupted() = 1159 "08S01" "Got timeout reading communication packets";
    packets_out_of_order() = 1156 "08S01" "Got packets out of order";
    malformed_packet() = 1835 "HY000" "Malformed communication packet.";
    too_many_parameters() = 1390 "HY000" "Prepared statement contains too many placeholders";
    statement_has_no_open_cursor(id) = 1421 "HY000" "The statement ({}) has no open cursor.";
    long_data_too_large() = 1105 "HY000" "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes";
    change_user_denied(user, host, using_password) = 1873 "28000" "Access denied trying to change to user '{}'@'{}' (using password: {}). Disconnecting.";
    account_locked(user, host) = 3118 "HY000" "Access denied for user '{}'@'{}'. Account is locked.";
    plugin_not_loaded(name) = 1524 "HY000" "Plugin '{}' is not loaded";
    not_supported_auth_mode() = 1251 "08004" "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
    idle_timeout() = 4031 "HY000" "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.";
    gipk_invisible_column(column) = 4028 "HY000" "A table must have at least one visible column: '{}'";
    server_is_read_only(why) = 1836 "HY000" "Running in read-only mode: {}";
}
