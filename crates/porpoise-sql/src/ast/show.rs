//! `SHOW`.

use super::account::Account;
use super::expr::Expr;
use super::name::{Ident, ObjectName};
use super::query::Limit;

/// `LIKE 'pattern'` or `WHERE expr` of SHOW.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowFilter {
    /// `LIKE`
    Like(Box<[u8]>),
    /// `WHERE`
    Where(Box<Expr>),
}

/// `SHOW …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// What.
    pub what: ShowWhat,
    /// `LIKE`, `WHERE`.
    pub filter: Option<ShowFilter>,
    /// `LIMIT`, of WARNINGS, ERRORS, BINLOG EVENTS and PROFILE.
    pub limit: Option<Limit>,
}

/// What SHOW shows.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowWhat {
    /// `DATABASES`, `SCHEMAS`
    Databases,
    /// `[EXTENDED] [FULL] TABLES [FROM database]`
    Tables {
        /// `EXTENDED`.
        extended: bool,
        /// `FULL`.
        full: bool,
        /// The current one, when not written.
        database: Option<Ident>,
    },
    /// `TABLE STATUS [FROM database]`
    TableStatus {
        /// The current one, when not written.
        database: Option<Ident>,
    },
    /// `OPEN TABLES [FROM database]`
    OpenTables {
        /// Every one, when not written.
        database: Option<Ident>,
    },
    /// `[EXTENDED] [FULL] COLUMNS | FIELDS FROM table [FROM database]`
    Columns {
        /// `EXTENDED`.
        extended: bool,
        /// `FULL`.
        full: bool,
        /// Which.
        table: ObjectName,
    },
    /// `[EXTENDED] INDEX | INDEXES | KEYS FROM table [FROM database]`
    Indexes {
        /// `EXTENDED`.
        extended: bool,
        /// Which.
        table: ObjectName,
    },
    /// `TRIGGERS [FROM database]`
    Triggers {
        /// `FULL`.
        full: bool,
        /// The current one, when not written.
        database: Option<Ident>,
    },
    /// `EVENTS [FROM database]`
    Events {
        /// The current one, when not written.
        database: Option<Ident>,
    },
    /// `CREATE DATABASE [IF NOT EXISTS] name`
    CreateDatabase {
        /// Which.
        name: Ident,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `CREATE TABLE name`
    CreateTable(ObjectName),
    /// `CREATE VIEW name`
    CreateView(ObjectName),
    /// `CREATE TRIGGER | PROCEDURE | FUNCTION | EVENT name`: the word in upper case, the name.
    CreateRoutine(&'static str, ObjectName),
    /// `CREATE USER user`
    CreateUser(Account),
    /// `[GLOBAL | SESSION] VARIABLES`
    Variables {
        /// `GLOBAL`.
        global: bool,
    },
    /// `[GLOBAL | SESSION] STATUS`
    Status {
        /// `GLOBAL`.
        global: bool,
    },
    /// `[FULL] PROCESSLIST`
    ProcessList {
        /// `FULL`.
        full: bool,
    },
    /// `GRANTS [FOR user [USING roles]]`
    Grants {
        /// The current user, when not written.
        user: Option<Account>,
        /// `USING`.
        roles: Vec<Account>,
    },
    /// `WARNINGS`
    Warnings {
        /// `COUNT(*) WARNINGS`
        count: bool,
    },
    /// `ERRORS`
    Errors {
        /// `COUNT(*) ERRORS`
        count: bool,
    },
    /// `ENGINES`, `STORAGE ENGINES`
    Engines,
    /// `ENGINE name STATUS | LOGS | MUTEX`: the engine (`None`: `ALL`), the word in upper case.
    Engine(Option<Ident>, Box<str>),
    /// `PLUGINS`
    Plugins,
    /// `PRIVILEGES`
    Privileges,
    /// `CHARACTER SET`, `CHARSET`
    CharacterSets,
    /// `COLLATION`
    Collations,
    /// `PROCEDURE STATUS`
    ProcedureStatus,
    /// `FUNCTION STATUS`
    FunctionStatus,
    /// `PROCEDURE | FUNCTION CODE name`
    RoutineCode(ObjectName),
    /// `PROFILES`
    Profiles,
    /// `PROFILE [types] [FOR QUERY n]`
    Profile {
        /// In upper case.
        types: Vec<Box<str>>,
        /// `FOR QUERY`.
        query: Option<u64>,
    },
    /// `BINARY LOGS`
    BinaryLogs,
    /// `BINARY LOG STATUS`, `MASTER STATUS`
    BinaryLogStatus,
    /// `BINLOG EVENTS`, `RELAYLOG EVENTS`
    BinlogEvents,
    /// `REPLICA STATUS`, `SLAVE STATUS`
    ReplicaStatus,
    /// `REPLICAS`, `SLAVE HOSTS`
    Replicas,
}
