//! Expressions.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_types::IntervalUnit;

use super::data_type::GeometryKind;
use super::name::{ColumnRef, Ident};
use super::query::{OrderItem, Query};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A value given at execution: the n-th `?` of a prepared statement, or the n-th literal of a
    /// digested statement (an index into the literals [`crate::digest`] found). A statement has the
    /// one or the other.
    Param(u32),
    /// A column, or anything else a name may turn out to be.
    Column(Box<ColumnRef>),
    /// `@name`.
    UserVariable(Ident),
    /// `@name := value`.
    AssignVariable(Box<(Ident, Expr)>),
    /// `@@[scope.]name`.
    SystemVariable(Box<SystemVariable>),
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// An infix operator other than `AND` and `OR`.
    Binary(BinaryOp, Box<(Expr, Expr)>),
    /// `a AND b AND …`: two or more, none of them an `And`.
    And(Vec<Expr>),
    /// `a OR b OR …`: two or more, none of them an `Or`.
    Or(Vec<Expr>),
    /// `expr IS [NOT] NULL | TRUE | FALSE | UNKNOWN`.
    Is {
        /// What is tested.
        expr: Box<Expr>,
        /// What it is tested for.
        test: IsTest,
        /// `IS NOT`.
        negated: bool,
    },
    /// `expr [NOT] BETWEEN low AND high`.
    Between {
        /// `expr`, `low`, `high`.
        operands: Box<[Expr; 3]>,
        /// `NOT BETWEEN`.
        negated: bool,
    },
    /// `expr [NOT] IN (a, b, …)`.
    In {
        /// What is looked for.
        expr: Box<Expr>,
        /// Where: never empty.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `expr [NOT] IN (SELECT …)`.
    InQuery {
        /// What is looked for.
        expr: Box<Expr>,
        /// Where.
        query: Box<Query>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `expr [NOT] LIKE pattern [ESCAPE escape]`.
    Like(Box<Like>),
    /// `expr [NOT] REGEXP pattern`.
    Regexp {
        /// `expr`, `pattern`.
        operands: Box<(Expr, Expr)>,
        /// `NOT REGEXP`.
        negated: bool,
    },
    /// `value MEMBER OF (array)`: the value, the JSON array.
    MemberOf(Box<(Expr, Expr)>),
    /// `CASE …`.
    Case(Box<Case>),
    /// `CAST(expr AS type)`.
    Cast(Box<Cast>),
    /// `CONVERT(expr USING charset)`.
    ConvertUsing(Box<(Expr, Ident)>),
    /// `expr COLLATE collation`.
    Collate(Box<(Expr, Ident)>),
    /// `expr + INTERVAL amount unit`.
    DateArithmetic(Box<DateArithmetic>),
    /// `EXTRACT(unit FROM expr)`.
    Extract(IntervalUnit, Box<Expr>),
    /// `TIMESTAMPDIFF(unit, from, to)`.
    TimestampDiff(IntervalUnit, Box<(Expr, Expr)>),
    /// `TRIM([side] [remove FROM] expr)`.
    Trim(Box<Trim>),
    /// `CHAR(codes USING charset)`; without `USING` the charset is binary.
    Char(Box<(Vec<Expr>, Option<Ident>)>),
    /// A call of a function that aggregates nothing and has no `OVER`.
    Function(Box<Function>),
    /// A call of an aggregate function without `OVER`.
    Aggregate(Box<Aggregate>),
    /// `function OVER window`.
    Window(Box<WindowCall>),
    /// `MATCH (columns) AGAINST (expr mode)`.
    Match(Box<Match>),
    /// `JSON_VALUE(doc, path RETURNING …)`.
    JsonValue(Box<JsonValue>),
    /// `(a, b, …)` or `ROW(a, b, …)`: two or more.
    Row(Vec<Expr>),
    /// `(SELECT …)` as a value or row.
    Subquery(Box<Query>),
    /// `EXISTS (SELECT …)`.
    Exists(Box<Query>),
    /// `expr op ANY | ALL (SELECT …)`.
    Quantified(Box<Quantified>),
    /// `DEFAULT` standing alone as a value of INSERT, UPDATE or SET.
    Default,
    /// `DEFAULT(column)`.
    DefaultOf(Box<ColumnRef>),
    /// `VALUES(column)`: the value INSERT would have stored.
    InsertedValue(Box<ColumnRef>),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `NULL`.
    Null,
    /// `TRUE`, `FALSE`.
    Bool(bool),
    /// A whole number without sign.
    Int(u64),
    /// A number with a decimal point, or a whole number above `u64::MAX`: digits as written.
    Decimal(CompactString),
    /// A number with an exponent.
    Double(f64),
    /// `'text'` in the connection's character set, escapes resolved.
    String(Box<[u8]>),
    /// `_charset'text'`, `_charset x'…'`, and `N'text'` as `_utf8mb3'text'`.
    Introduced(Box<Introduced>),
    /// `0x…`, `x'…'`.
    Hex(Box<[u8]>),
    /// `0b…`, `b'…'`: the bits, right-aligned in whole bytes.
    Bit(Box<[u8]>),
    /// `DATE '…'`: the text, not yet checked.
    Date(CompactString),
    /// `TIME '…'`: the text, not yet checked.
    Time(CompactString),
    /// `TIMESTAMP '…'`: the text, not yet checked.
    Timestamp(CompactString),
}

/// A string with its character set before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduced {
    /// The name without its underscore, lower case.
    pub charset: Ident,
    /// The bytes, in that character set.
    pub bytes: Box<[u8]>,
    /// Written in hexadecimal or bits, not as text.
    pub binary_form: bool,
}

/// A prefix operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `+`: does nothing.
    Plus,
    /// `~`
    BitNot,
    /// `NOT`, `!`
    Not,
}

/// An infix operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `DIV`
    IntDiv,
    /// `%`, `MOD`, `MOD(a, b)`
    Mod,
    /// `|`
    BitOr,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `=`
    Eq,
    /// `<=>`
    NullSafeEq,
    /// `<>`, `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `XOR`
    Xor,
}

/// What `IS` tests for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsTest {
    /// `NULL`
    Null,
    /// `TRUE`
    True,
    /// `FALSE`
    False,
    /// `UNKNOWN`
    Unknown,
}

/// `@@[scope.][component.]name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemVariable {
    /// The scope, when written.
    pub scope: Option<VariableScope>,
    /// The part before the dot in `@@component.name` (`hot_cache.key_buffer_size`, plugin
    /// variables).
    pub component: Option<Ident>,
    /// The name.
    pub name: Ident,
}

/// Which of a system variable's values is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `GLOBAL`
    Global,
    /// `SESSION`, `LOCAL`
    Session,
    /// `PERSIST`
    Persist,
    /// `PERSIST_ONLY`
    PersistOnly,
}

/// `expr [NOT] LIKE pattern [ESCAPE escape]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    /// What is matched.
    pub expr: Expr,
    /// With `%` and `_`.
    pub pattern: Expr,
    /// The escape character, when written.
    pub escape: Option<Expr>,
    /// `NOT LIKE`.
    pub negated: bool,
}

/// `CASE [operand] WHEN … THEN … [ELSE …] END`.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What each `WHEN` is compared with; `None` when each is a condition.
    pub operand: Option<Expr>,
    /// `WHEN`, `THEN`: one or more.
    pub branches: Vec<(Expr, Expr)>,
    /// `ELSE`.
    pub otherwise: Option<Expr>,
}

/// `CAST(expr [AT TIME ZONE zone] AS type [ARRAY])`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast {
    /// What is converted.
    pub expr: Expr,
    /// To what.
    pub to: CastType,
    /// `AT TIME ZONE [INTERVAL] 'zone'`.
    pub time_zone: Option<Box<[u8]>>,
    /// `ARRAY`: a multi-valued index's key part.
    pub array: bool,
}

/// What `CAST` converts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CastType {
    /// `BINARY[(length)]`
    Binary(Option<u32>),
    /// `CHAR[(length)] [CHARACTER SET charset] [BINARY]`
    Char {
        /// In characters.
        length: Option<u32>,
        /// `None`: the connection's.
        charset: Option<Ident>,
        /// In the character set's binary collation.
        binary: bool,
    },
    /// `NCHAR[(length)]`
    NChar(Option<u32>),
    /// `SIGNED [INTEGER]`
    Signed,
    /// `UNSIGNED [INTEGER]`
    Unsigned,
    /// `DECIMAL[(precision[, scale])]`
    Decimal(Option<(u32, Option<u32>)>),
    /// `FLOAT[(bits)]`
    Float(Option<u32>),
    /// `DOUBLE`, `REAL`
    Double,
    /// `DATE`
    Date,
    /// `TIME[(fraction digits)]`
    Time(Option<u32>),
    /// `DATETIME[(fraction digits)]`
    DateTime(Option<u32>),
    /// `YEAR`
    Year,
    /// `JSON`
    Json,
    /// `POINT`, `POLYGON`…
    Geometry(GeometryKind),
}

/// `date + INTERVAL amount unit`, `date - INTERVAL amount unit`.
#[derive(Debug, Clone, PartialEq)]
pub struct DateArithmetic {
    /// The date, time or both.
    pub date: Expr,
    /// A number or string, read by the unit.
    pub amount: Expr,
    /// The unit.
    pub unit: IntervalUnit,
    /// Minus.
    pub subtract: bool,
}

/// `TRIM([side] [remove FROM] expr)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trim {
    /// Which end.
    pub side: TrimSide,
    /// What is cut off; a space when not written.
    pub remove: Option<Expr>,
    /// What is trimmed.
    pub expr: Expr,
}

/// Which end `TRIM` cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimSide {
    /// Both ends.
    Both,
    /// The start.
    Leading,
    /// The end.
    Trailing,
}

/// A call `[schema.]name(args)`.
#[derive(Debug, Clone)]
pub struct Function {
    /// A stored function's schema, when written.
    pub schema: Option<Ident>,
    /// Lower case when there is no schema; the one name of a function that has several.
    pub name: Ident,
    /// The name as the statement has it, for messages.
    pub written: Ident,
    /// In order.
    pub args: Vec<Expr>,
}

/// Calls are the same however the function's name was written.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        (&self.schema, &self.name, &self.args) == (&other.schema, &other.name, &other.args)
    }
}

/// Functions over a group of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `COUNT`.
    Count,
    /// `SUM`.
    Sum,
    /// `AVG`.
    Avg,
    /// `MIN`.
    Min,
    /// `MAX`.
    Max,
    /// `GROUP_CONCAT`.
    GroupConcat,
    /// `STD`, `STDDEV`, `STDDEV_POP`.
    StdDevPop,
    /// `STDDEV_SAMP`.
    StdDevSamp,
    /// `VARIANCE`, `VAR_POP`.
    VarPop,
    /// `VAR_SAMP`.
    VarSamp,
    /// `BIT_AND`.
    BitAnd,
    /// `BIT_OR`.
    BitOr,
    /// `BIT_XOR`.
    BitXor,
    /// `JSON_ARRAYAGG`.
    JsonArrayAgg,
    /// `JSON_OBJECTAGG`.
    JsonObjectAgg,
    /// `ST_COLLECT`.
    StCollect,
}

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// `DISTINCT`.
    pub distinct: bool,
    /// Empty: `COUNT(*)`.
    pub args: Vec<Expr>,
    /// `GROUP_CONCAT`'s `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `GROUP_CONCAT`'s `SEPARATOR`; a comma when not written.
    pub separator: Option<Box<[u8]>>,
}

/// `function OVER window`.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    /// What is called.
    pub function: WindowFunction,
    /// `FROM LAST` of `NTH_VALUE`. (MySQL parses it and refuses it.)
    pub from_last: bool,
    /// `IGNORE NULLS`. (MySQL parses it and refuses it.)
    pub ignore_nulls: bool,
    /// Over what.
    pub over: Over,
}

/// What stands before `OVER`.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowFunction {
    /// An aggregate.
    Aggregate(Aggregate),
    /// `ROW_NUMBER`, `RANK`, `LAG`…
    Function(Function),
}

/// What stands after `OVER`.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// `OVER name`.
    Named(Ident),
    /// `OVER (…)`.
    Spec(Window),
}

/// `([name] [PARTITION BY …] [ORDER BY …] [frame])`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// The window this one refines.
    pub base: Option<Ident>,
    /// `PARTITION BY`.
    pub partition_by: Arc<[Expr]>,
    /// `ORDER BY`.
    pub order_by: Arc<[OrderItem]>,
    /// `ROWS | RANGE …`.
    pub frame: Option<Frame>,
}

/// `ROWS | RANGE BETWEEN start AND end`.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// In what it is counted.
    pub unit: FrameUnit,
    /// The first row.
    pub start: FrameBound,
    /// The last row; `None`: `BETWEEN` was not written, the current row.
    pub end: Option<FrameBound>,
}

/// In what a frame is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnit {
    /// `ROWS`: counted in rows.
    Rows,
    /// `RANGE`: by the value of the ordering expression.
    Range,
    /// MySQL parses it and refuses it.
    Groups,
}

/// An end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// `UNBOUNDED PRECEDING`
    UnboundedPreceding,
    /// `UNBOUNDED FOLLOWING`
    UnboundedFollowing,
    /// `CURRENT ROW`
    CurrentRow,
    /// `expr PRECEDING`, `INTERVAL expr unit PRECEDING`
    Preceding(Box<Expr>, Option<IntervalUnit>),
    /// `expr FOLLOWING`, `INTERVAL expr unit FOLLOWING`
    Following(Box<Expr>, Option<IntervalUnit>),
}

/// `MATCH (columns) AGAINST (expr mode)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The indexed columns.
    pub columns: Vec<ColumnRef>,
    /// What is searched for.
    pub against: Expr,
    /// How.
    pub mode: MatchMode,
}

/// How `MATCH` searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    /// `IN NATURAL LANGUAGE MODE`, or nothing.
    Natural,
    /// `IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION`, `WITH QUERY EXPANSION`.
    Expansion,
    /// `IN BOOLEAN MODE`.
    Boolean,
}

/// `JSON_VALUE(doc, path [RETURNING type] [on_empty] [on_error])`.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonValue {
    /// The document.
    pub doc: Expr,
    /// The path.
    pub path: Expr,
    /// The type; `CHAR(512)` when not written.
    pub returning: Option<CastType>,
    /// When the path finds nothing.
    pub on_empty: Option<JsonResponse>,
    /// When the value can't be had.
    pub on_error: Option<JsonResponse>,
}

/// `NULL | ERROR | DEFAULT value` of `ON EMPTY` and `ON ERROR`.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonResponse {
    /// `NULL`
    Null,
    /// `ERROR`
    Error,
    /// `DEFAULT value`
    Default(Box<Expr>),
}

/// `left op ANY | ALL (query)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantified {
    /// The left side.
    pub left: Expr,
    /// A comparison.
    pub op: BinaryOp,
    /// `ALL`; else `ANY`, `SOME`.
    pub all: bool,
    /// The right side.
    pub query: Query,
}
