//! The statement: one variant for each that MySQL has.

use super::account::{Account, CreateUser, Grant, Revoke, RoleSet};
use super::change::{Delete, Insert, InsertSource, LoadData, Update};
use super::definition::{AlterTable, CreateTable, CreateView, DatabaseOptions, IndexDef};
use super::expr::{Expr, VariableScope};
use super::handler::Handler;
use super::hint::StatementHints;
use super::name::{Ident, ObjectName};
use super::program::{AlterEvent, AlterRoutine, CreateProgram, GetDiagnostics, Signal};
use super::query::Query;
use super::session::{
    Completion, Explain, FlushTarget, HistogramChange, IsolationLevel, LockTable, Maintenance,
    PrepareSource, SetItem,
};
use super::show::Show;
use super::xa::Xa;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `SELECT`, `TABLE`, `VALUES`, `WITH … SELECT`.
    Query(Box<Query>),
    /// `INSERT`, `REPLACE`.
    Insert(Box<Insert>),
    /// `UPDATE`.
    Update(Box<Update>),
    /// `DELETE`.
    Delete(Box<Delete>),
    /// `LOAD DATA`.
    LoadData(Box<LoadData>),
    /// `HANDLER …`.
    Handler(Box<Handler>),
    /// Comments and nothing else.
    Empty,
    /// `DO expr, …`.
    Do(Vec<Expr>),
    /// `CALL name(args)`.
    Call {
        /// The procedure.
        name: ObjectName,
        /// Its arguments.
        args: Vec<Expr>,
    },

    /// `CREATE DATABASE`.
    CreateDatabase {
        /// Its name.
        name: Ident,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// Its options.
        options: DatabaseOptions,
    },
    /// `ALTER DATABASE`.
    AlterDatabase {
        /// The current one, when not written.
        name: Option<Ident>,
        /// Its options.
        options: DatabaseOptions,
    },
    /// `DROP DATABASE`.
    DropDatabase {
        /// Its name.
        name: Ident,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `CREATE TABLE`.
    CreateTable(Box<CreateTable>),
    /// `CREATE TABLE name LIKE source`.
    CreateTableLike {
        /// `TEMPORARY`.
        temporary: bool,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// The new table.
        name: ObjectName,
        /// Its pattern.
        source: ObjectName,
    },
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE`.
    DropTable {
        /// `TEMPORARY`.
        temporary: bool,
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which.
        tables: Vec<ObjectName>,
    },
    /// `TRUNCATE [TABLE]`.
    Truncate(ObjectName),
    /// `RENAME TABLE old TO new, …`.
    RenameTable(Vec<(ObjectName, ObjectName)>),
    /// `CREATE INDEX`; [`IndexDef::name`] is set.
    CreateIndex {
        /// What.
        index: Box<IndexDef>,
        /// On what.
        table: ObjectName,
        /// `ALGORITHM = …`.
        algorithm: Option<Ident>,
        /// `LOCK = …`.
        lock: Option<Ident>,
    },
    /// `DROP INDEX name ON table`.
    DropIndex {
        /// Which; `PRIMARY` is the primary key.
        name: Ident,
        /// Of what.
        table: ObjectName,
        /// `ALGORITHM = …`.
        algorithm: Option<Ident>,
        /// `LOCK = …`.
        lock: Option<Ident>,
    },
    /// `CREATE VIEW`, `ALTER VIEW`.
    CreateView(Box<CreateView>),
    /// `DROP VIEW`.
    DropView {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which.
        views: Vec<ObjectName>,
    },

    /// `START TRANSACTION`, `BEGIN`.
    Begin {
        /// `WITH CONSISTENT SNAPSHOT`.
        consistent_snapshot: bool,
        /// `READ ONLY`: `Some(true)`, `READ WRITE`: `Some(false)`.
        read_only: Option<bool>,
    },
    /// `COMMIT`.
    Commit(Completion),
    /// `ROLLBACK`.
    Rollback(Completion),
    /// `SAVEPOINT name`.
    Savepoint(Ident),
    /// `ROLLBACK TO name`.
    RollbackTo(Ident),
    /// `RELEASE SAVEPOINT name`.
    ReleaseSavepoint(Ident),
    /// `SET [scope] TRANSACTION …`.
    SetTransaction {
        /// `None`: the next transaction only.
        scope: Option<VariableScope>,
        /// `ISOLATION LEVEL`.
        isolation: Option<IsolationLevel>,
        /// `READ ONLY`, `READ WRITE`.
        read_only: Option<bool>,
    },
    /// `XA …`.
    Xa(Box<Xa>),
    /// `LOCK TABLES`.
    LockTables(Vec<LockTable>),
    /// `UNLOCK TABLES`.
    UnlockTables,
    /// `CREATE SERVER`, `ALTER SERVER`.
    ChangeServer(Box<ChangeServer>),
    /// `DROP SERVER`.
    DropServer {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which.
        name: Ident,
    },
    /// `LOCK INSTANCE FOR BACKUP`, `UNLOCK INSTANCE`.
    LockInstance {
        /// `LOCK`.
        lock: bool,
    },

    /// `SET …`.
    Set(Vec<SetItem>),
    /// `USE database`.
    Use(Ident),
    /// `SHOW …`.
    Show(Box<Show>),
    /// `DESCRIBE table [column | 'pattern']`.
    Describe {
        /// Which.
        table: ObjectName,
        /// A column's name or pattern.
        column: Option<Box<str>>,
    },
    /// `EXPLAIN statement`.
    Explain(Box<Explain>),
    /// `HELP 'topic'`.
    Help(Box<[u8]>),
    /// `KILL [CONNECTION | QUERY] id`.
    Kill {
        /// `QUERY`: the connection lives on.
        query: bool,
        /// Which.
        id: Expr,
    },

    /// `PREPARE name FROM text`.
    Prepare {
        /// Its name.
        name: Ident,
        /// The statement's text.
        source: PrepareSource,
    },
    /// `EXECUTE name [USING @a, …]`.
    Execute {
        /// Which.
        name: Ident,
        /// User variables.
        using: Vec<Ident>,
    },
    /// `DEALLOCATE | DROP PREPARE name`.
    Deallocate(Ident),

    /// `ANALYZE | CHECK | OPTIMIZE | REPAIR | CHECKSUM TABLE …`.
    Maintain {
        /// The verb.
        action: Maintenance,
        /// Which.
        tables: Vec<ObjectName>,
        /// `QUICK`, `EXTENDED`, `FOR UPGRADE`… in upper case.
        options: Vec<Box<str>>,
    },
    /// `ANALYZE TABLE … UPDATE HISTOGRAM | DROP HISTOGRAM …`.
    Histogram(Box<HistogramChange>),
    /// `FLUSH …`.
    Flush {
        /// `NO_WRITE_TO_BINLOG`, `LOCAL`.
        local: bool,
        /// What.
        targets: Vec<FlushTarget>,
    },
    /// `ALTER INSTANCE RELOAD TLS`.
    ReloadTls {
        /// `FOR CHANNEL`.
        channel: Option<Ident>,
        /// `NO ROLLBACK ON ERROR`.
        no_rollback: bool,
    },
    /// `RESET PERSIST`.
    ResetPersist {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which variable, its component's name before a dot; `None`: all.
        name: Option<Ident>,
    },
    /// `RESET …`: what, in upper case.
    Reset(Vec<Box<str>>),

    /// `CREATE USER`.
    CreateUser(Box<CreateUser>),
    /// `ALTER USER`; as CREATE USER, with `IF EXISTS`.
    AlterUser(Box<CreateUser>),
    /// `ALTER USER … DEFAULT ROLE …`, `SET DEFAULT ROLE … TO …`.
    SetDefaultRole {
        /// Which roles.
        roles: RoleSet,
        /// Whose.
        users: Vec<Account>,
    },
    /// `DROP USER`.
    DropUser {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Whom.
        users: Vec<Account>,
    },
    /// `RENAME USER old TO new, …`.
    RenameUser(Vec<(Account, Account)>),
    /// `DROP PROCEDURE | FUNCTION | TRIGGER | EVENT`.
    DropStored {
        /// Which of the four, in upper case.
        kind: &'static str,
        /// `IF EXISTS`.
        if_exists: bool,
        /// What.
        name: ObjectName,
    },
    /// `CREATE PROCEDURE | FUNCTION | TRIGGER | EVENT`.
    CreateProgram(Box<CreateProgram>),
    /// `ALTER PROCEDURE | FUNCTION`.
    AlterRoutine(Box<AlterRoutine>),
    /// `ALTER EVENT`.
    AlterEvent(Box<AlterEvent>),
    /// `SIGNAL`, `RESIGNAL`.
    Signal(Box<Signal>),
    /// `GET DIAGNOSTICS`.
    GetDiagnostics(Box<GetDiagnostics>),
    /// `CREATE ROLE`.
    CreateRole {
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// Which.
        roles: Vec<Account>,
    },
    /// `DROP ROLE`.
    DropRole {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which.
        roles: Vec<Account>,
    },
    /// `SET ROLE …`.
    SetRole(RoleSet),
    /// `SET PASSWORD [FOR user] = 'text'`.
    SetPassword {
        /// The current user, when not written.
        user: Option<Account>,
        /// `None`: `TO RANDOM`.
        password: Option<Box<[u8]>>,
        /// `REPLACE 'current'`.
        replace: Option<Box<[u8]>>,
        /// `RETAIN CURRENT PASSWORD`.
        retain: bool,
    },
    /// `GRANT …`.
    Grant(Box<Grant>),
    /// `REVOKE …`.
    Revoke(Box<Revoke>),

    /// `INSTALL COMPONENT`, `UNINSTALL COMPONENT`.
    Component {
        /// `INSTALL`.
        install: bool,
        /// Which.
        urns: Vec<Box<str>>,
    },

    /// A statement MySQL has and this crate only recognises.
    Unsupported {
        /// What it is, as the server's error names it: `BINLOG`, `CLONE`…
        what: &'static str,
        /// The statement's text.
        text: Box<str>,
    },
}

impl Statement {
    /// The statement's optimizer hints, if it has any.
    pub fn hints(&self) -> Option<&StatementHints> {
        match self {
            Statement::Query(query) => query.hints.as_deref(),
            Statement::Insert(insert) => match &insert.source {
                InsertSource::Query(query) => insert.hints.as_deref().or(query.hints.as_deref()),
                InsertSource::Values(_) => insert.hints.as_deref(),
            },
            Statement::Update(update) => update.hints.as_deref(),
            Statement::Delete(delete) => delete.hints.as_deref(),
            _ => None,
        }
    }
}

/// `CREATE SERVER`, `ALTER SERVER`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeServer {
    /// Its name.
    pub name: Ident,
    /// `FOREIGN DATA WRAPPER`; `None`: it is altered.
    pub wrapper: Option<Ident>,
    /// `OPTIONS`.
    pub options: Vec<ServerOption>,
}

/// An option of a foreign server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOption {
    /// `HOST`.
    Host(Box<str>),
    /// `DATABASE`.
    Database(Box<str>),
    /// `USER`.
    User(Box<str>),
    /// `PASSWORD`.
    Password(Box<str>),
    /// `SOCKET`.
    Socket(Box<str>),
    /// `OWNER`.
    Owner(Box<str>),
    /// `PORT`.
    Port(u64),
}
