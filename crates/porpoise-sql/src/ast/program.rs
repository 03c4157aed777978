//! Programs that the server keeps: procedures, functions, triggers, events, and the statements that
//! their bodies are made of (MySQL 8.4 manual, 15.6).
//!
//! A body is a tree of [`ProgramStatement`]s. Statements that also stand outside of programs
//! (SELECT, SET, CALL, SIGNAL…) are leaves: [`ProgramStep::Sql`]. Names of local variables and
//! parameters are ordinary [`Expr::Column`]s, and `NEW.a` and `OLD.a` columns of a table of that
//! name: who compiles the program knows which variables are in scope.

use porpoise_types::IntervalUnit;

use super::account::Account;
use super::data_type::DataType;
use super::expr::Expr;
use super::name::{Ident, ObjectName, Span};
use super::query::{IntoTarget, Query};
use super::statement::Statement;

/// `CREATE [DEFINER = …] PROCEDURE | FUNCTION | TRIGGER | EVENT`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateProgram {
    /// `DEFINER = …`.
    pub definer: Option<Account>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its name.
    pub name: ObjectName,
    /// Which of the four it is, with what only that kind has.
    pub kind: ProgramKind,
    /// What it does.
    pub body: ProgramStatement,
}

/// What a program is, with what only that kind has.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramKind {
    /// `PROCEDURE name (params)`.
    Procedure {
        /// Its parameters.
        parameters: Vec<Parameter>,
        /// The parameters' source text, without the parentheses.
        parameters_span: Span,
        /// `COMMENT`, `SQL SECURITY`…
        characteristics: Characteristics,
    },
    /// `FUNCTION name (params) RETURNS type`.
    Function {
        /// Its parameters, all of them [`ParameterMode::In`].
        parameters: Vec<Parameter>,
        /// The parameters' source text, without the parentheses.
        parameters_span: Span,
        /// What it returns.
        returns: ReturnType,
        /// `COMMENT`, `SQL SECURITY`…
        characteristics: Characteristics,
    },
    /// `TRIGGER name BEFORE | AFTER change ON table FOR EACH ROW`.
    Trigger {
        /// Before or after the row changes.
        time: TriggerTime,
        /// What fires it.
        event: TriggerEvent,
        /// Of which table's rows.
        table: ObjectName,
        /// `FOLLOWS` (`true`) or `PRECEDES` another trigger.
        order: Option<(bool, Ident)>,
    },
    /// `EVENT name ON SCHEDULE …`.
    Event {
        /// When it runs.
        schedule: Schedule,
        /// `ON COMPLETION [NOT] PRESERVE`: `Some(true)` with PRESERVE.
        preserve: Option<bool>,
        /// `ENABLE`, `DISABLE`, `DISABLE ON REPLICA`.
        status: Option<EventStatus>,
        /// `COMMENT`.
        comment: Option<Box<[u8]>>,
    },
}

/// A parameter of a routine.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// `IN`, `OUT`, `INOUT`.
    pub mode: ParameterMode,
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub data_type: DataType,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// The type's source text, `COLLATE` included.
    pub type_span: Span,
}

/// Which way a parameter's value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterMode {
    /// `IN`, and where nothing is written.
    In,
    /// `OUT`.
    Out,
    /// `INOUT`.
    InOut,
}

/// `RETURNS type [COLLATE …]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnType {
    /// The type.
    pub data_type: DataType,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// The source text of both.
    pub span: Span,
}

/// What CREATE and ALTER say of a routine; `None`: not written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Characteristics {
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `[NOT] DETERMINISTIC`.
    pub deterministic: Option<bool>,
    /// `NO SQL`, `READS SQL DATA`…
    pub data_access: Option<DataAccess>,
    /// `SQL SECURITY INVOKER`: `Some(true)`, `DEFINER`: `Some(false)`.
    pub invoker: Option<bool>,
}

/// What a routine says that it does with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataAccess {
    /// `CONTAINS SQL`.
    ContainsSql,
    /// `NO SQL`.
    NoSql,
    /// `READS SQL DATA`.
    ReadsSqlData,
    /// `MODIFIES SQL DATA`.
    ModifiesSqlData,
}

impl DataAccess {
    /// As it is written.
    pub fn sql(self) -> &'static str {
        match self {
            DataAccess::ContainsSql => "CONTAINS SQL",
            DataAccess::NoSql => "NO SQL",
            DataAccess::ReadsSqlData => "READS SQL DATA",
            DataAccess::ModifiesSqlData => "MODIFIES SQL DATA",
        }
    }
}

/// When a trigger runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TriggerTime {
    /// `BEFORE`.
    Before,
    /// `AFTER`.
    After,
}

/// What fires a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TriggerEvent {
    /// `INSERT`.
    Insert,
    /// `UPDATE`.
    Update,
    /// `DELETE`.
    Delete,
}

/// `ON SCHEDULE …`.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// `AT time`.
    At(Expr),
    /// `EVERY n unit [STARTS time] [ENDS time]`.
    Every {
        /// How many.
        count: Expr,
        /// Of what.
        unit: IntervalUnit,
        /// `STARTS`.
        starts: Option<Expr>,
        /// `ENDS`.
        ends: Option<Expr>,
    },
}

/// Whether an event is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventStatus {
    /// `ENABLE`.
    Enabled,
    /// `DISABLE`.
    Disabled,
    /// `DISABLE ON REPLICA`, `DISABLE ON SLAVE`.
    DisabledOnReplica,
}

/// `ALTER PROCEDURE | FUNCTION name characteristics`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterRoutine {
    /// FUNCTION.
    pub is_function: bool,
    /// Which.
    pub name: ObjectName,
    /// What changes.
    pub characteristics: Characteristics,
}

impl ProgramKind {
    /// `PROCEDURE`, `FUNCTION`, `TRIGGER` or `EVENT`.
    pub fn name(&self) -> &'static str {
        match self {
            ProgramKind::Procedure { .. } => "PROCEDURE",
            ProgramKind::Function { .. } => "FUNCTION",
            ProgramKind::Trigger { .. } => "TRIGGER",
            ProgramKind::Event { .. } => "EVENT",
        }
    }
}

/// `ALTER EVENT`; `None`: stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterEvent {
    /// `DEFINER = …`.
    pub definer: Option<Account>,
    /// Which.
    pub name: ObjectName,
    /// `ON SCHEDULE`.
    pub schedule: Option<Schedule>,
    /// `ON COMPLETION [NOT] PRESERVE`.
    pub preserve: Option<bool>,
    /// `RENAME TO`.
    pub rename: Option<ObjectName>,
    /// `ENABLE`…
    pub status: Option<EventStatus>,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `DO`.
    pub body: Option<ProgramStatement>,
}

/// One statement of a program, and where it stands in the text of `CREATE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramStatement {
    /// What it says.
    pub step: ProgramStep,
    /// Its source text, without the semicolon.
    pub span: Span,
}

/// What a statement of a program says.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramStep {
    /// `[label:] BEGIN … END [label]`.
    Block(Box<Block>),
    /// `IF … THEN … ELSEIF … ELSE … END IF`.
    If {
        /// Conditions, and what is done if they hold: one at least.
        arms: Vec<Arm>,
        /// `ELSE`.
        otherwise: Vec<ProgramStatement>,
    },
    /// `CASE [operand] WHEN … THEN … ELSE … END CASE`.
    Case {
        /// What is compared; without it the arms have conditions.
        operand: Option<Clause>,
        /// One at least.
        arms: Vec<Arm>,
        /// `ELSE`; `None` is error 1339 if no arm fits.
        otherwise: Option<Vec<ProgramStatement>>,
    },
    /// `[label:] LOOP … END LOOP [label]`.
    Loop {
        /// Its name.
        label: Option<Ident>,
        /// What is repeated.
        body: Vec<ProgramStatement>,
    },
    /// `[label:] WHILE condition DO … END WHILE [label]`.
    While {
        /// Its name.
        label: Option<Ident>,
        /// As long as this holds.
        condition: Clause,
        /// What is repeated.
        body: Vec<ProgramStatement>,
    },
    /// `[label:] REPEAT … UNTIL condition END REPEAT [label]`.
    Repeat {
        /// Its name.
        label: Option<Ident>,
        /// What is repeated.
        body: Vec<ProgramStatement>,
        /// Until this holds.
        until: Clause,
    },
    /// `ITERATE label`.
    Iterate(Ident),
    /// `LEAVE label`.
    Leave(Ident),
    /// `RETURN value`.
    Return(Expr),
    /// `OPEN cursor`.
    Open(Ident),
    /// `FETCH [[NEXT] FROM] cursor INTO …`.
    Fetch {
        /// The cursor.
        cursor: Ident,
        /// Where the values go.
        into: Vec<IntoTarget>,
    },
    /// `CLOSE cursor`.
    Close(Ident),
    /// `SET …` with at least one target that may be a local variable or `NEW.column`; other SETs
    /// are [`ProgramStep::Sql`].
    Set(Vec<ProgramAssignment>),
    /// Any statement that also stands by itself.
    Sql(Box<Statement>),
}

/// One assignment of a SET within a program.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramAssignment {
    /// `name = value`: a local variable if there is one of that name, or a system variable.
    Name {
        /// The name.
        name: Ident,
        /// Its value.
        value: Expr,
    },
    /// `NEW.column = value` (also `OLD.column`, which is refused: 1362).
    Row {
        /// `OLD`.
        old: bool,
        /// The column.
        column: Ident,
        /// Its value.
        value: Expr,
    },
    /// Anything else that SET takes: `@a = 1`, `@@x = 2`, `NAMES utf8mb4`.
    Other(super::session::SetItem),
}

/// An expression that is less than a statement, and where it stands in the text of `CREATE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// The expression.
    pub expr: Expr,
    /// Its source text.
    pub span: Span,
}

/// `WHEN | IF condition THEN statements`.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// What must hold, or what the operand must equal.
    pub condition: Clause,
    /// What is done then.
    pub body: Vec<ProgramStatement>,
}

/// `[label:] BEGIN declarations statements END [label]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its name.
    pub label: Option<Ident>,
    /// In MySQL's order: variables and conditions, then cursors, then handlers.
    pub declarations: Vec<Declaration>,
    /// What it does.
    pub body: Vec<ProgramStatement>,
}

/// `DECLARE …`.
#[derive(Debug, Clone, PartialEq)]
pub enum Declaration {
    /// `DECLARE a, b type [DEFAULT value]`.
    Variables {
        /// Their names.
        names: Vec<Ident>,
        /// Their type.
        data_type: DataType,
        /// `COLLATE`.
        collation: Option<Ident>,
        /// `DEFAULT`; NULL where not written.
        default: Option<Clause>,
    },
    /// `DECLARE name CONDITION FOR …`.
    Condition {
        /// Its name.
        name: Ident,
        /// What it stands for: an error's number or a SQLSTATE.
        value: ConditionValue,
    },
    /// `DECLARE name CURSOR FOR query`.
    Cursor {
        /// Its name.
        name: Ident,
        /// Its rows.
        query: Box<Query>,
        /// The query's source text.
        span: Span,
    },
    /// `DECLARE CONTINUE | EXIT HANDLER FOR … statement`.
    Handler {
        /// CONTINUE.
        continues: bool,
        /// What it handles.
        conditions: Vec<ConditionValue>,
        /// What it does.
        body: Box<ProgramStatement>,
    },
}

/// A condition, as handlers, DECLARE CONDITION, SIGNAL and RESIGNAL name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionValue {
    /// An error's number.
    Number(u16),
    /// `SQLSTATE [VALUE] 'xxxxx'`.
    SqlState(Box<[u8]>),
    /// A declared condition.
    Name(Ident),
    /// `SQLWARNING`: SQLSTATEs of class 01.
    SqlWarning,
    /// `NOT FOUND`: class 02.
    NotFound,
    /// `SQLEXCEPTION`: all other classes but 00.
    SqlException,
}

/// `SIGNAL condition [SET …]`, `RESIGNAL [condition] [SET …]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// RESIGNAL.
    pub is_resignal: bool,
    /// A SQLSTATE or a name; only RESIGNAL may be without.
    pub condition: Option<ConditionValue>,
    /// `SET item = value, …`: simple values.
    pub items: Vec<(SignalItem, Expr)>,
}

/// What SIGNAL can say of a condition, and GET DIAGNOSTICS read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalItem {
    /// `CLASS_ORIGIN`.
    ClassOrigin,
    /// `SUBCLASS_ORIGIN`.
    SubclassOrigin,
    /// `MESSAGE_TEXT`.
    MessageText,
    /// `MYSQL_ERRNO`.
    MysqlErrno,
    /// `CONSTRAINT_CATALOG`.
    ConstraintCatalog,
    /// `CONSTRAINT_SCHEMA`.
    ConstraintSchema,
    /// `CONSTRAINT_NAME`.
    ConstraintName,
    /// `CATALOG_NAME`.
    CatalogName,
    /// `SCHEMA_NAME`.
    SchemaName,
    /// `TABLE_NAME`.
    TableName,
    /// `COLUMN_NAME`.
    ColumnName,
    /// `CURSOR_NAME`.
    CursorName,
}

/// `GET [CURRENT | STACKED] DIAGNOSTICS …`.
#[derive(Debug, Clone, PartialEq)]
pub struct GetDiagnostics {
    /// `STACKED`.
    pub is_stacked: bool,
    /// What is read.
    pub what: Diagnostics,
}

/// What GET DIAGNOSTICS reads, and where it goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Diagnostics {
    /// `target = NUMBER | ROW_COUNT, …`.
    Statement(Vec<(IntoTarget, StatementItem)>),
    /// `CONDITION number target = item, …`.
    Condition {
        /// Which, from 1.
        number: Expr,
        /// What goes where.
        items: Vec<(IntoTarget, ConditionItem)>,
    },
}

/// What GET DIAGNOSTICS tells of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementItem {
    /// `NUMBER`: how many conditions there are.
    Number,
    /// `ROW_COUNT`.
    RowCount,
}

/// What GET DIAGNOSTICS tells of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionItem {
    /// `RETURNED_SQLSTATE`.
    ReturnedSqlState,
    /// What SIGNAL can say, too.
    Signal(SignalItem),
}
