//! The syntax tree: what a statement says, before anybody knows whether its tables exist.
//!
//! The tree is plain structs and enums. Forms that mean the same are one node, so that a planner
//! has fewer cases to know:
//!
//! | written | in the tree |
//! | --- | --- |
//! | `a && b`, `a AND b AND c` | [`Expr::And`], one flat list |
//! | `a <> b`, `a != b` | [`BinaryOp::Ne`] |
//! | `c->'$.x'`, `c->>'$.x'` | `json_extract(c, '$.x')`, `json_unquote(json_extract(c, '$.x'))` |
//! | `a SOUNDS LIKE b` | `soundex(a) = soundex(b)` |
//! | `BINARY a` | `CAST(a AS BINARY)` |
//! | `CONVERT(a, CHAR)` | [`Expr::Cast`] |
//! | `DATE_ADD(a, INTERVAL 1 DAY)`, `a + INTERVAL 1 DAY`, `TIMESTAMPADD(DAY, 1, a)` | [`Expr::DateArithmetic`] |
//! | `SUBSTRING(a FROM 2)`, `MID(a, 2)` | `substr(a, 2)` |
//! | `POSITION(a IN b)` | `locate(a, b)` |
//! | `CURRENT_TIMESTAMP`, `LOCALTIME`, `NOW(3)` | `now()`, `now()`, `now(3)` |
//! | `CURRENT_DATE`, `CURRENT_TIME`, `UTC_DATE`, `CURRENT_USER`, `SCHEMA()` | `curdate()`, `curtime()`, `utc_date()`, `current_user()`, `database()` |
//! | `FROM (a, b)` | an inner join without a condition |
//! | `FROM DUAL` | no tables |
//! | `DESC t` | [`Statement::Describe`] |
//!
//! Names of functions that have no schema are in lower case. All other names stand as written:
//! whether they compare case-sensitively is not the parser's business.
//!
//! Parentheses leave no trace: [`std::fmt::Display`] puts them back where precedence needs them.

mod account;
mod change;
mod data_type;
mod definition;
mod expr;
mod handler;
mod hint;
mod name;
mod program;
mod query;
mod session;
mod show;
mod statement;
mod xa;

pub use account::{
    Account, Auth, CreateUser, Grant, GrantObject, PasswordOption, Privilege, Revoke, RevokeWhat,
    RoleSet, Secret, TlsRequirement, UserSpec,
};
pub use change::{
    Assignment, Delete, Duplicates, Insert, InsertSource, LoadData, LoadTarget, Priority, Update,
};
pub use data_type::{CharsetSpec, DataType, GeometryKind, IntegerKind, LobSize};
pub use definition::{
    AlterAction, AlterTable, Check, CheckOption, ColumnDef, ColumnDefault, ColumnPosition,
    CreateTable, CreateView, DatabaseOptions, ForeignKey, Generated, IndexDef, IndexKind,
    IndexOptions, KeyPart, KeyTarget, ReferenceAction, References, TableElement, TableOption,
};
pub use expr::{
    Aggregate, AggregateFunction, BinaryOp, Case, Cast, CastType, DateArithmetic, Expr, Frame,
    FrameBound, FrameUnit, Function, Introduced, IsTest, JsonResponse, JsonValue, Like, Literal,
    Match, MatchMode, Over, Quantified, SystemVariable, Trim, TrimSide, UnaryOp, VariableScope,
    Window, WindowCall, WindowFunction,
};
pub use handler::{Handler, HandlerKey, HandlerRead, HandlerStart};
pub use hint::{
    Hint, HintArguments, HintComment, HintError, HintKind, HintTable, HintValue, StatementHints,
};
pub use name::{ColumnRef, Ident, ObjectName, Span};
pub use porpoise_types::IntervalUnit;
pub use program::{
    AlterEvent, AlterRoutine, Arm, Block, Characteristics, Clause, ConditionItem, ConditionValue,
    CreateProgram, DataAccess, Declaration, Diagnostics, EventStatus, GetDiagnostics, Parameter,
    ParameterMode, ProgramAssignment, ProgramKind, ProgramStatement, ProgramStep, ReturnType,
    Schedule, Signal, SignalItem, StatementItem, TriggerEvent, TriggerTime,
};
pub use query::{
    CommonTable, Derived, FileFormat, IndexHint, IndexHintAction, IndexHintScope, IntoTarget, Join,
    JoinCondition, JoinKind, JsonTable, JsonTableColumn, Limit, LockWait, Locking, OrderItem,
    Query, QueryBody, Select, SelectInto, SelectItem, SelectOptions, SetOperation, SetOperator,
    TableFactor, TableRef, With,
};
pub use session::{
    Completion, Explain, ExplainFormat, ExplainTarget, FlushTarget, HistogramAction,
    HistogramChange, IsolationLevel, LockTable, Maintenance, PrepareSource, SetItem,
};
pub use show::{Show, ShowFilter, ShowWhat};
pub use statement::{ChangeServer, ServerOption, Statement};
pub use xa::{Xa, XaStart, Xid};
