//! The syntax tree: what a statement says, before anybody knows whether its tables exist.
//!
//! The tree is plain structs and enums. Forms that mean the same are one node, so that a planner has
//! fewer cases to know:
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
//! Names of functions that have no schema are in lower case. All other names stand as written: whether
//! they compare case-sensitively is not the parser's business.
//!
//! Parentheses leave no trace: [`std::fmt::Display`] puts them back where precedence needs them.

use compact_str::CompactString;
use std::fmt;
use std::ops::Deref;

/// Where something was written: byte offsets into the statement's text.
///
/// Spans never make two trees differ: a tree is equal to another when it says the same, wherever it was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of `sql` the span covers; empty when it lies outside.
    pub fn of<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start as usize..self.end as usize)
            .unwrap_or(&[])
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

/// A name: of a column, table, alias, variable, character set… Its `Display` quotes it with backticks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ident(pub CompactString);

impl Ident {
    /// A name from its unquoted text.
    pub fn new(text: impl AsRef<str>) -> Ident {
        Ident(CompactString::new(text))
    }

    /// The unquoted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Ident {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Ident {
    fn from(text: &str) -> Ident {
        Ident::new(text)
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.replace('`', "``"))
    }
}

/// `[schema.]name` of a table, view or routine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectName {
    /// The schema, when written.
    pub schema: Option<Ident>,
    /// The name itself.
    pub name: Ident,
}

/// `[[schema.]table.]column`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnRef {
    /// The schema, when written.
    pub schema: Option<Ident>,
    /// The table or alias, when written.
    pub table: Option<Ident>,
    /// The column.
    pub name: Ident,
}

// ---------------------------------------------------------------------------------------------------------
// Expressions
// ---------------------------------------------------------------------------------------------------------

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A value given at execution: the n-th `?` of a prepared statement, or the n-th literal of a digested
    /// statement (an index into the literals [`crate::digest`] found). A statement has the one or the other.
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
    Extract(TimeUnit, Box<Expr>),
    /// `TIMESTAMPDIFF(unit, from, to)`.
    TimestampDiff(TimeUnit, Box<(Expr, Expr)>),
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
    /// The part before the dot in `@@component.name` (`hot_cache.key_buffer_size`, plugin variables).
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
    /// `CHAR[(length)] [CHARACTER SET charset]`
    Char {
        /// In characters.
        length: Option<u32>,
        /// `None`: the connection's.
        charset: Option<Ident>,
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
    pub unit: TimeUnit,
    /// Minus.
    pub subtract: bool,
}

/// Units of `INTERVAL` and `EXTRACT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TimeUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
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
#[allow(missing_docs)]
pub enum AggregateFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    GroupConcat,
    /// `STD`, `STDDEV`, `STDDEV_POP`.
    StdDevPop,
    StdDevSamp,
    /// `VARIANCE`, `VAR_POP`.
    VarPop,
    VarSamp,
    BitAnd,
    BitOr,
    BitXor,
    JsonArrayAgg,
    JsonObjectAgg,
    AnyValue,
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
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
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
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
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
    Preceding(Box<Expr>, Option<TimeUnit>),
    /// `expr FOLLOWING`, `INTERVAL expr unit FOLLOWING`
    Following(Box<Expr>, Option<TimeUnit>),
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

// ---------------------------------------------------------------------------------------------------------
// Queries
// ---------------------------------------------------------------------------------------------------------

/// A query expression: a body with what orders, limits and locks its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// `WITH …`.
    pub with: Option<With>,
    /// `SELECT …`, `… UNION …`.
    pub body: QueryBody,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`.
    pub locking: Vec<Locking>,
    /// `INTO …`, wherever it was written.
    pub into: Option<SelectInto>,
}

/// What a query's rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// `SELECT …`.
    Select(Box<Select>),
    /// `VALUES ROW(…), ROW(…)`.
    Values(Vec<Vec<Expr>>),
    /// `TABLE name`.
    Table(ObjectName),
    /// `left UNION | INTERSECT | EXCEPT right`; `INTERSECT` binds tighter.
    SetOperation(Box<SetOperation>),
    /// `(query)` with an ORDER BY, LIMIT, WITH or locking of its own.
    Query(Box<Query>),
}

/// `left UNION | INTERSECT | EXCEPT right`.
#[derive(Debug, Clone, PartialEq)]
pub struct SetOperation {
    /// Which.
    pub op: SetOperator,
    /// `ALL`; else `DISTINCT`.
    pub all: bool,
    /// The left side.
    pub left: QueryBody,
    /// The right side.
    pub right: QueryBody,
}

/// How two results become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// `WITH [RECURSIVE] name [(columns)] AS (query), …`.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// `RECURSIVE`.
    pub recursive: bool,
    /// In order.
    pub tables: Vec<CommonTable>,
}

/// One common table expression.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonTable {
    /// Its name.
    pub name: Ident,
    /// Its columns' names, when written.
    pub columns: Vec<Ident>,
    /// What it is.
    pub query: Query,
}

/// `SELECT … FROM … WHERE … GROUP BY … HAVING … WINDOW …`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// The words after SELECT.
    pub options: SelectOptions,
    /// `/*+ … */` after SELECT, as written between the signs.
    pub hints: Option<Box<str>>,
    /// The select list: never empty.
    pub items: Vec<SelectItem>,
    /// The comma-separated table references; empty without FROM and for `FROM DUAL`.
    pub from: Vec<TableRef>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `GROUP BY`.
    pub group_by: Vec<OrderItem>,
    /// `WITH ROLLUP`.
    pub rollup: bool,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// `WINDOW name AS (…), …`.
    pub windows: Vec<(Ident, Window)>,
}

/// The words after SELECT that change how, not what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct SelectOptions {
    pub high_priority: bool,
    pub straight_join: bool,
    pub sql_small_result: bool,
    pub sql_big_result: bool,
    pub sql_buffer_result: bool,
    pub sql_no_cache: bool,
    pub sql_calc_found_rows: bool,
}

/// One of the select list.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// `*`
    Wildcard,
    /// `[schema.]table.*`
    QualifiedWildcard(ObjectName),
    /// `expr [[AS] alias]`
    Expr {
        /// What is computed.
        expr: Expr,
        /// Its name, when written.
        alias: Option<Ident>,
        /// The expression's source text: without an alias, the output column's name is that text.
        /// (For a column, it is the column's name; for a string, the string.)
        span: Span,
    },
}

/// `expr [ASC | DESC]`.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// By what. An integer literal that stands alone is the ordinal of a select item.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
}

/// `LIMIT [offset,] count`, `LIMIT count OFFSET offset`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// How many: an integer literal, a parameter, or a local variable.
    pub count: Expr,
    /// How many first to skip.
    pub offset: Option<Expr>,
}

/// `FOR UPDATE | SHARE [OF tables] [NOWAIT | SKIP LOCKED]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locking {
    /// `UPDATE`; else `SHARE`, `LOCK IN SHARE MODE`.
    pub update: bool,
    /// `OF`: aliases; empty: every table.
    pub of: Vec<ObjectName>,
    /// When a row is locked.
    pub wait: LockWait,
}

/// What a locking read does at a locked row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Wait.
    #[default]
    Wait,
    /// `NOWAIT`: fail.
    NoWait,
    /// `SKIP LOCKED`: pass over it.
    SkipLocked,
}

/// `INTO …`.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectInto {
    /// `INTO @a, @b` (or a routine's local variable).
    Variables(Vec<IntoTarget>),
    /// `INTO OUTFILE 'path' …`.
    OutFile {
        /// The file.
        path: Box<[u8]>,
        /// `CHARACTER SET`.
        charset: Option<Ident>,
        /// `FIELDS … LINES …`.
        format: FileFormat,
    },
    /// `INTO DUMPFILE 'path'`.
    DumpFile(Box<[u8]>),
}

/// Where `SELECT … INTO` puts a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntoTarget {
    /// `@name`.
    User(Ident),
    /// A routine's variable.
    Local(Ident),
}

/// `FIELDS TERMINATED BY … LINES …`; `None` is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFormat {
    /// `FIELDS TERMINATED BY`: a tab.
    pub fields_terminated: Option<Box<[u8]>>,
    /// `FIELDS [OPTIONALLY] ENCLOSED BY`: nothing.
    pub fields_enclosed: Option<Box<[u8]>>,
    /// `OPTIONALLY`.
    pub optionally_enclosed: bool,
    /// `FIELDS ESCAPED BY`: a backslash.
    pub fields_escaped: Option<Box<[u8]>>,
    /// `LINES STARTING BY`: nothing.
    pub lines_starting: Option<Box<[u8]>>,
    /// `LINES TERMINATED BY`: a newline.
    pub lines_terminated: Option<Box<[u8]>>,
}

/// Something rows are read from.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A table or view.
    Table(Box<TableFactor>),
    /// `[LATERAL] (query) AS alias (columns)`.
    Derived(Box<Derived>),
    /// `JSON_TABLE(…) AS alias`.
    JsonTable(Box<JsonTable>),
    /// Two joined.
    Join(Box<Join>),
}

/// `name [PARTITION (…)] [[AS] alias] [index hints]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFactor {
    /// The table.
    pub name: ObjectName,
    /// The alias, when written.
    pub alias: Option<Ident>,
    /// `PARTITION (…)`.
    pub partitions: Vec<Ident>,
    /// `USE | FORCE | IGNORE INDEX …`.
    pub index_hints: Vec<IndexHint>,
}

/// `[LATERAL] (query) AS alias (columns)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// `LATERAL`.
    pub lateral: bool,
    /// The query.
    pub query: Query,
    /// The alias; empty when not written, which is error 1248.
    pub alias: Ident,
    /// The columns' names, when written.
    pub columns: Vec<Ident>,
}

/// `USE | FORCE | IGNORE INDEX [FOR …] (indexes)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexHint {
    /// The verb.
    pub action: IndexHintAction,
    /// `FOR …`.
    pub scope: Option<IndexHintScope>,
    /// May be empty for USE.
    pub indexes: Vec<Ident>,
}

/// The verb of an index hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintAction {
    Use,
    Force,
    Ignore,
}

/// What an index hint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintScope {
    Join,
    OrderBy,
    GroupBy,
}

/// `left JOIN right ON …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// The left side.
    pub left: TableRef,
    /// The right side.
    pub right: TableRef,
    /// Which rows are kept.
    pub kind: JoinKind,
    /// `ON`, `USING`, `NATURAL`.
    pub condition: JoinCondition,
}

/// Which rows a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// `JOIN`, `INNER JOIN`, `CROSS JOIN`.
    Inner,
    /// `STRAIGHT_JOIN`: inner, the left side first.
    Straight,
    /// `LEFT [OUTER] JOIN`.
    Left,
    /// `RIGHT [OUTER] JOIN`.
    Right,
}

/// How a join's sides are matched.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinCondition {
    /// Every row with every row.
    None,
    /// `ON expr`.
    On(Expr),
    /// `USING (columns)`.
    Using(Vec<Ident>),
    /// `NATURAL`.
    Natural,
}

/// `JSON_TABLE(doc, path COLUMNS (…)) AS alias`.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTable {
    /// The document.
    pub doc: Expr,
    /// The path of the rows.
    pub path: Box<[u8]>,
    /// The columns.
    pub columns: Vec<JsonTableColumn>,
    /// The alias.
    pub alias: Ident,
}

/// A column of `JSON_TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTableColumn {
    /// `name FOR ORDINALITY`.
    Ordinality(Ident),
    /// `name type [EXISTS] PATH path [on_empty] [on_error]`.
    Path {
        /// Its name.
        name: Ident,
        /// Its type.
        data_type: DataType,
        /// `COLLATE`.
        collation: Option<Ident>,
        /// `EXISTS`.
        exists: bool,
        /// Its path.
        path: Box<[u8]>,
        /// When the path finds nothing.
        on_empty: Option<JsonResponse>,
        /// When the value can't be had.
        on_error: Option<JsonResponse>,
    },
    /// `NESTED [PATH] path COLUMNS (…)`.
    Nested {
        /// The path of the inner rows.
        path: Box<[u8]>,
        /// The inner columns.
        columns: Vec<JsonTableColumn>,
    },
}

// ---------------------------------------------------------------------------------------------------------
// Changing rows
// ---------------------------------------------------------------------------------------------------------

/// `INSERT …`, `REPLACE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// `REPLACE`.
    pub replace: bool,
    /// `LOW_PRIORITY`, `DELAYED`, `HIGH_PRIORITY`.
    pub priority: Priority,
    /// `IGNORE`.
    pub ignore: bool,
    /// Into what.
    pub table: ObjectName,
    /// `PARTITION (…)`.
    pub partitions: Vec<Ident>,
    /// The columns named; `None`: no list, every column. With `SET`, the columns it sets.
    pub columns: Option<Vec<ColumnRef>>,
    /// The rows.
    pub source: InsertSource,
    /// `AS alias`.
    pub row_alias: Option<Ident>,
    /// `AS alias (columns)`.
    pub column_aliases: Vec<Ident>,
    /// `ON DUPLICATE KEY UPDATE`.
    pub on_duplicate: Vec<Assignment>,
}

/// Where INSERT's rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), (…)`, `SET …` as one row, `VALUES ROW(…)`. A row is empty in `VALUES ()`.
    Values(Vec<Vec<Expr>>),
    /// `SELECT …`.
    Query(Box<Query>),
}

/// How urgent a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Priority {
    #[default]
    Normal,
    Low,
    High,
    Delayed,
}

/// `column = value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The column.
    pub column: ColumnRef,
    /// Its new value, or [`Expr::Default`].
    pub value: Expr,
}

/// `UPDATE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// `WITH …`.
    pub with: Option<With>,
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// One table, or several joined.
    pub tables: Vec<TableRef>,
    /// `SET`.
    pub assignments: Vec<Assignment>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `ORDER BY`; a single table only.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`; a single table only, no offset.
    pub limit: Option<Expr>,
}

/// `DELETE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// `WITH …`.
    pub with: Option<With>,
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `QUICK`.
    pub quick: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// `DELETE a, b FROM …`, `DELETE FROM a, b USING …`: the tables or aliases to delete from.
    /// Empty: the form for one table, which is `from`'s only one.
    pub targets: Vec<ObjectName>,
    /// The tables read.
    pub from: Vec<TableRef>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `ORDER BY`; a single table only.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`; a single table only, no offset.
    pub limit: Option<Expr>,
}

/// `LOAD DATA …`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadData {
    /// `LOAD XML`.
    pub xml: bool,
    /// `LOW_PRIORITY`, or `High` for `CONCURRENT`.
    pub priority: Priority,
    /// `LOCAL`: the client has the file.
    pub local: bool,
    /// The file.
    pub path: Box<[u8]>,
    /// At a duplicate key.
    pub duplicates: Duplicates,
    /// Into what.
    pub table: ObjectName,
    /// `PARTITION (…)`.
    pub partitions: Vec<Ident>,
    /// `CHARACTER SET`.
    pub charset: Option<Ident>,
    /// `FIELDS … LINES …`.
    pub format: FileFormat,
    /// `ROWS IDENTIFIED BY`, of `LOAD XML`.
    pub row_tag: Option<Box<[u8]>>,
    /// `IGNORE n LINES`.
    pub ignore_lines: u64,
    /// The columns and variables read into; empty: every column.
    pub columns: Vec<LoadTarget>,
    /// `SET`.
    pub assignments: Vec<Assignment>,
}

/// Where LOAD DATA puts a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A column.
    Column(Ident),
    /// `@name`.
    Variable(Ident),
}

/// What happens at a duplicate key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// The statement fails.
    #[default]
    Error,
    /// The new row is passed over.
    Ignore,
    /// The old row leaves.
    Replace,
}

// ---------------------------------------------------------------------------------------------------------
// Types and tables
// ---------------------------------------------------------------------------------------------------------

/// The type of a column, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// `TINYINT` … `BIGINT`; `BOOL` is `TINYINT(1)`.
    Integer {
        /// Its size.
        kind: IntegerKind,
        /// The display width, when written.
        width: Option<u32>,
        /// `UNSIGNED`, and implied by `ZEROFILL`.
        unsigned: bool,
        /// `ZEROFILL`.
        zerofill: bool,
    },
    /// `BIT[(width)]`
    Bit(Option<u32>),
    /// `DECIMAL`, `NUMERIC`, `DEC`, `FIXED` `[(precision[, scale])]`
    Decimal {
        /// 10 when not written.
        precision: Option<u32>,
        /// 0 when not written.
        scale: Option<u32>,
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`.
        zerofill: bool,
    },
    /// `FLOAT[(bits)]`, `FLOAT(digits, scale)`, `DOUBLE[(digits, scale)]`, `REAL`. `FLOAT(25)` and above are double.
    Float {
        /// Eight bytes; else four.
        double: bool,
        /// `(digits, scale)`.
        digits: Option<(u32, u32)>,
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`.
        zerofill: bool,
    },
    /// `DATE`
    Date,
    /// `TIME[(fraction digits)]`
    Time(Option<u32>),
    /// `DATETIME[(fraction digits)]`
    DateTime(Option<u32>),
    /// `TIMESTAMP[(fraction digits)]`
    Timestamp(Option<u32>),
    /// `YEAR`
    Year,
    /// `CHAR[(length)]`, in characters.
    Char {
        /// 1 when not written.
        length: Option<u32>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `VARCHAR(length)`, in characters.
    VarChar {
        /// In characters.
        length: u32,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `TINYTEXT` … `LONGTEXT`, `TEXT[(length)]`
    Text {
        /// Its size.
        size: LobSize,
        /// `TEXT(length)`: the smallest size that holds it is taken.
        length: Option<u32>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `BINARY[(length)]`, in bytes.
    Binary(Option<u32>),
    /// `VARBINARY(length)`, in bytes.
    VarBinary(u32),
    /// `TINYBLOB` … `LONGBLOB`, `BLOB[(length)]`
    Blob {
        /// Its size.
        size: LobSize,
        /// `BLOB(length)`: the smallest size that holds it is taken.
        length: Option<u32>,
    },
    /// `ENUM('a', 'b')`
    Enum {
        /// In order.
        members: Vec<Box<[u8]>>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `SET('a', 'b')`
    Set {
        /// In order.
        members: Vec<Box<[u8]>>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `JSON`
    Json,
    /// `GEOMETRY`, `POINT`…
    Geometry(GeometryKind),
}

/// Sizes of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntegerKind {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
}

/// Sizes of TEXT and BLOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LobSize {
    /// Up to 255 bytes.
    Tiny,
    /// Up to 65,535 bytes.
    Normal,
    /// Up to 16 MiB - 1.
    Medium,
    /// Up to 4 GiB - 1.
    Long,
}

/// Kinds of geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum GeometryKind {
    Geometry,
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
}

/// A text type's character set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CharsetSpec {
    /// `CHARACTER SET name`; `ascii` for `ASCII`, `ucs2` for `UNICODE`, `utf8mb3` for `NATIONAL`, `binary` for `BYTE`.
    pub charset: Option<Ident>,
    /// `BINARY`: the character set's `_bin` collation.
    pub binary: bool,
}

/// A column's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub data_type: DataType,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// `NULL`: `Some(true)`, `NOT NULL`: `Some(false)`.
    pub nullable: Option<bool>,
    /// `DEFAULT`: a literal (perhaps signed), `now()`, or any expression that was in parentheses.
    pub default: Option<ColumnDefault>,
    /// `ON UPDATE CURRENT_TIMESTAMP[(fraction digits)]`.
    pub on_update: Option<Expr>,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `[PRIMARY] KEY`.
    pub primary_key: bool,
    /// `UNIQUE [KEY]`.
    pub unique: bool,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `[GENERATED ALWAYS] AS (expr) [VIRTUAL | STORED]`.
    pub generated: Option<Generated>,
    /// `VISIBLE`, `INVISIBLE`.
    pub visible: Option<bool>,
    /// `COLUMN_FORMAT`.
    pub column_format: Option<Ident>,
    /// `STORAGE`.
    pub storage: Option<Ident>,
    /// `SRID`.
    pub srid: Option<u64>,
    /// `[CONSTRAINT name] CHECK (expr) [[NOT] ENFORCED]`.
    pub checks: Vec<Check>,
    /// `REFERENCES …`: MySQL parses it and ignores it.
    pub references: Option<References>,
    /// `ENGINE_ATTRIBUTE`, `SECONDARY_ENGINE_ATTRIBUTE`.
    pub engine_attribute: Option<Box<[u8]>>,
}

/// A column's default.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefault {
    /// The value.
    pub value: Expr,
    /// Written in parentheses: evaluated for each row.
    pub expression: bool,
}

/// `AS (expr) VIRTUAL | STORED`.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// How it is computed.
    pub expr: Expr,
    /// `STORED`.
    pub stored: bool,
    /// The expression's source text.
    pub span: Span,
}

/// `[CONSTRAINT [name]] CHECK (expr) [[NOT] ENFORCED]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name, when written.
    pub name: Option<Ident>,
    /// What must not be false.
    pub expr: Expr,
    /// `ENFORCED`.
    pub enforced: bool,
    /// The expression's source text.
    pub span: Span,
}

/// `REFERENCES table (columns) …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    /// The table referred to.
    pub table: ObjectName,
    /// Its columns.
    pub columns: Vec<Ident>,
    /// `MATCH …`: parsed and ignored, as MySQL does.
    pub match_kind: Option<Ident>,
    /// `ON DELETE`.
    pub on_delete: Option<ReferenceAction>,
    /// `ON UPDATE`.
    pub on_update: Option<ReferenceAction>,
}

/// What happens to referring rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ReferenceAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDef {
    /// `CONSTRAINT name`, of PRIMARY KEY and UNIQUE.
    pub constraint: Option<Ident>,
    /// Its name, when written.
    pub name: Option<Ident>,
    /// PRIMARY, UNIQUE…
    pub kind: IndexKind,
    /// Never empty.
    pub parts: Vec<KeyPart>,
    /// `USING`, `COMMENT`…
    pub options: IndexOptions,
}

/// Kinds of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IndexKind {
    Primary,
    Unique,
    Index,
    FullText,
    Spatial,
}

/// `column[(length)] [DESC]`, `(expr) [DESC]`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPart {
    /// The column or expression.
    pub target: KeyTarget,
    /// `DESC`.
    pub descending: bool,
}

/// What a key part is of.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyTarget {
    /// A column, or its first `length` characters (bytes, for binary types).
    Column {
        /// The column.
        name: Ident,
        /// The prefix.
        length: Option<u32>,
    },
    /// A functional key part.
    Expr(Expr),
}

/// What follows an index's key parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexOptions {
    /// `USING BTREE | HASH`.
    pub algorithm: Option<Ident>,
    /// `KEY_BLOCK_SIZE`.
    pub key_block_size: Option<u64>,
    /// `WITH PARSER`.
    pub parser: Option<Ident>,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `VISIBLE`, `INVISIBLE`.
    pub visible: Option<bool>,
    /// `ENGINE_ATTRIBUTE`.
    pub engine_attribute: Option<Box<[u8]>>,
}

/// `[CONSTRAINT [name]] FOREIGN KEY [index] (columns) REFERENCES …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The constraint's name, when written.
    pub name: Option<Ident>,
    /// The index's name, when written.
    pub index_name: Option<Ident>,
    /// The columns.
    pub columns: Vec<Ident>,
    /// What they refer to.
    pub references: References,
}

/// One of the parenthesised list of CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // Nearly all are columns.
pub enum TableElement {
    /// A column.
    Column(ColumnDef),
    /// A key.
    Index(IndexDef),
    /// A foreign key.
    ForeignKey(ForeignKey),
    /// A check.
    Check(Check),
}

/// A table option: `name [=] value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOption {
    /// `ENGINE`
    Engine(Ident),
    /// `[DEFAULT] CHARACTER SET`
    Charset(Ident),
    /// `[DEFAULT] COLLATE`
    Collation(Ident),
    /// `AUTO_INCREMENT`
    AutoIncrement(u64),
    /// `COMMENT`
    Comment(Box<[u8]>),
    /// `ROW_FORMAT`
    RowFormat(Ident),
    /// Any other: its name in upper case and its value's text.
    Other(Ident, Box<[u8]>),
}

/// `CREATE TABLE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its name.
    pub name: ObjectName,
    /// Columns, keys and constraints.
    pub elements: Vec<TableElement>,
    /// Options.
    pub options: Vec<TableOption>,
    /// `PARTITION BY …`, as text.
    pub partition_by: Option<Box<str>>,
    /// `IGNORE`, `REPLACE` before the query.
    pub duplicates: Duplicates,
    /// `[AS] SELECT …`.
    pub query: Option<Box<Query>>,
}

/// `ALTER TABLE …`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// Which.
    pub table: ObjectName,
    /// In order.
    pub actions: Vec<AlterAction>,
    /// `ALGORITHM = …`.
    pub algorithm: Option<Ident>,
    /// `LOCK = …`.
    pub lock: Option<Ident>,
}

/// Where a column is put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPosition {
    /// `FIRST`
    First,
    /// `AFTER column`
    After(Ident),
}

/// One of the actions of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    /// `ADD [COLUMN] …`; each of a parenthesised list is an action of its own.
    AddColumn {
        /// What.
        column: Box<ColumnDef>,
        /// Where; at the end when not written.
        position: Option<ColumnPosition>,
    },
    /// `ADD INDEX | PRIMARY KEY | UNIQUE …`
    AddIndex(IndexDef),
    /// `ADD [CONSTRAINT] FOREIGN KEY …`
    AddForeignKey(ForeignKey),
    /// `ADD [CONSTRAINT] CHECK …`
    AddCheck(Check),
    /// `MODIFY [COLUMN] …`, `CHANGE [COLUMN] old …`
    ChangeColumn {
        /// The name it has.
        old_name: Ident,
        /// What it becomes.
        column: Box<ColumnDef>,
        /// Where it goes; it stays when not written.
        position: Option<ColumnPosition>,
    },
    /// `ALTER [COLUMN] name SET DEFAULT …`
    SetDefault(Ident, ColumnDefault),
    /// `ALTER [COLUMN] name DROP DEFAULT`
    DropDefault(Ident),
    /// `ALTER [COLUMN] name SET VISIBLE | INVISIBLE`
    SetColumnVisible(Ident, bool),
    /// `ALTER INDEX name VISIBLE | INVISIBLE`
    SetIndexVisible(Ident, bool),
    /// `ALTER CHECK | CONSTRAINT name [NOT] ENFORCED`
    SetEnforced(Ident, bool),
    /// `RENAME COLUMN old TO new`
    RenameColumn(Ident, Ident),
    /// `RENAME INDEX old TO new`
    RenameIndex(Ident, Ident),
    /// `RENAME [TO] name`
    RenameTable(ObjectName),
    /// `DROP [COLUMN] name`
    DropColumn(Ident),
    /// `DROP INDEX | KEY name`
    DropIndex(Ident),
    /// `DROP PRIMARY KEY`
    DropPrimaryKey,
    /// `DROP FOREIGN KEY name`
    DropForeignKey(Ident),
    /// `DROP CHECK name`
    DropCheck(Ident),
    /// `DROP CONSTRAINT name`: whichever kind has that name.
    DropConstraint(Ident),
    /// A table option.
    Option(TableOption),
    /// `CONVERT TO CHARACTER SET charset [COLLATE collation]`; `None`: `DEFAULT`.
    ConvertCharset(Option<Ident>, Option<Ident>),
    /// `ORDER BY columns`
    OrderBy(Vec<OrderItem>),
    /// `DISABLE KEYS`, `ENABLE KEYS`
    SetKeys {
        /// `ENABLE`.
        enable: bool,
    },
    /// `FORCE`
    Force,
    /// `WITH | WITHOUT VALIDATION`
    Validation(bool),
    /// `DISCARD | IMPORT TABLESPACE`, partition actions…: the text.
    Other(Box<str>),
}

/// `CREATE [OR REPLACE] … VIEW …`, `ALTER … VIEW …`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// `ALTER`.
    pub alter: bool,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `ALGORITHM = UNDEFINED | MERGE | TEMPTABLE`.
    pub algorithm: Option<Ident>,
    /// `DEFINER = …`.
    pub definer: Option<Account>,
    /// `SQL SECURITY INVOKER`: `Some(true)`, `DEFINER`: `Some(false)`.
    pub invoker: Option<bool>,
    /// Its name.
    pub name: ObjectName,
    /// Its columns' names, when written.
    pub columns: Vec<Ident>,
    /// What it is.
    pub query: Box<Query>,
    /// `WITH [CASCADED | LOCAL] CHECK OPTION`.
    pub check_option: Option<CheckOption>,
}

/// `WITH … CHECK OPTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CheckOption {
    Cascaded,
    Local,
}

// ---------------------------------------------------------------------------------------------------------
// Statements
// ---------------------------------------------------------------------------------------------------------

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
    /// `LOCK TABLES`.
    LockTables(Vec<LockTable>),
    /// `UNLOCK TABLES`.
    UnlockTables,
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
    /// `FLUSH …`.
    Flush {
        /// `NO_WRITE_TO_BINLOG`, `LOCAL`.
        local: bool,
        /// What.
        targets: Vec<FlushTarget>,
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

    /// A statement MySQL has and this crate only recognises.
    Unsupported {
        /// What it is, as the server's error names it: `CREATE TRIGGER`, `XA`, `HANDLER`…
        what: &'static str,
        /// The statement's text.
        text: Box<str>,
    },
}

/// Options of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatabaseOptions {
    /// `CHARACTER SET`.
    pub charset: Option<Ident>,
    /// `COLLATE`.
    pub collation: Option<Ident>,
    /// `ENCRYPTION`.
    pub encryption: Option<Box<[u8]>>,
    /// `READ ONLY = 0 | 1`; `DEFAULT` is 0.
    pub read_only: Option<bool>,
}

/// `[AND [NO] CHAIN] [[NO] RELEASE]`; `None`: as `completion_type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// A new transaction begins at once.
    pub chain: Option<bool>,
    /// The connection closes.
    pub release: Option<bool>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// `table [AS alias] READ [LOCAL] | [LOW_PRIORITY] WRITE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTable {
    /// Which.
    pub table: ObjectName,
    /// Its alias.
    pub alias: Option<Ident>,
    /// `WRITE`.
    pub write: bool,
    /// `READ LOCAL`.
    pub local: bool,
}

/// One assignment of SET.
#[derive(Debug, Clone, PartialEq)]
pub enum SetItem {
    /// `@name = expr`.
    User {
        /// The variable.
        name: Ident,
        /// Its value.
        value: Expr,
    },
    /// `[scope] name = value`, `@@[scope.]name = value`. A bare word (`= utf8mb4`, `= ON`) is a
    /// [`Expr::Column`]; [`Expr::Default`] stands for `DEFAULT`.
    System {
        /// The variable; without a scope it is the session's.
        variable: SystemVariable,
        /// Its value.
        value: Expr,
    },
    /// `NAMES charset [COLLATE collation]`; no charset: `DEFAULT`.
    Names {
        /// The character set.
        charset: Option<Ident>,
        /// Its collation, when written.
        collation: Option<Ident>,
    },
    /// `CHARACTER SET charset`; `None`: `DEFAULT`.
    Charset(Option<Ident>),
}

/// `EXPLAIN [ANALYZE] [FORMAT = …] [INTO @v] statement | FOR CONNECTION id`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// `ANALYZE`: run it.
    pub analyze: bool,
    /// `FORMAT`.
    pub format: Option<ExplainFormat>,
    /// `INTO @name`.
    pub into: Option<Ident>,
    /// What.
    pub target: ExplainTarget,
}

/// How a plan is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExplainFormat {
    Traditional,
    Tree,
    Json,
}

/// What EXPLAIN explains.
#[derive(Debug, Clone, PartialEq)]
pub enum ExplainTarget {
    /// A statement.
    Statement(Statement),
    /// `FOR CONNECTION id`.
    Connection(u64),
}

/// Where PREPARE finds its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrepareSource {
    /// `'text'`.
    Text(Box<[u8]>),
    /// `@name`.
    Variable(Ident),
}

/// Verbs of table maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Maintenance {
    Analyze,
    Check,
    Optimize,
    Repair,
    Checksum,
}

/// What FLUSH flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlushTarget {
    /// `TABLES [names] [WITH READ LOCK | FOR EXPORT]`.
    Tables {
        /// Empty: all.
        tables: Vec<ObjectName>,
        /// `WITH READ LOCK`.
        read_lock: bool,
        /// `FOR EXPORT`.
        export: bool,
    },
    /// `PRIVILEGES`, `STATUS`, `LOGS`, `BINARY LOGS`…: in upper case.
    Other(Box<str>),
}

// ---------------------------------------------------------------------------------------------------------
// SHOW
// ---------------------------------------------------------------------------------------------------------

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

// ---------------------------------------------------------------------------------------------------------
// Accounts
// ---------------------------------------------------------------------------------------------------------

/// `'user'@'host'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// `user[@host]`; the host is `%` when not written.
    Named {
        /// The user; empty is the anonymous user.
        user: Ident,
        /// The host, lower case.
        host: Option<Ident>,
    },
    /// `CURRENT_USER[()]`, `USER()`
    Current,
}

/// `CREATE USER …`, `ALTER USER …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateUser {
    /// `IF NOT EXISTS`, or for ALTER `IF EXISTS`.
    pub if_exists: bool,
    /// Whom.
    pub users: Vec<UserSpec>,
    /// `DEFAULT ROLE`.
    pub default_roles: Option<RoleSet>,
    /// `REQUIRE`.
    pub require: Option<TlsRequirement>,
    /// `WITH MAX_…_PER_HOUR n`: the name in upper case, the number.
    pub limits: Vec<(Box<str>, u64)>,
    /// `ACCOUNT LOCK`: `Some(true)`, `ACCOUNT UNLOCK`: `Some(false)`.
    pub locked: Option<bool>,
    /// `PASSWORD EXPIRE …`, `PASSWORD HISTORY …`, `FAILED_LOGIN_ATTEMPTS …`: each one's text.
    pub password_options: Vec<Box<str>>,
    /// `COMMENT`.
    pub comment: Option<Box<[u8]>>,
    /// `ATTRIBUTE`.
    pub attribute: Option<Box<[u8]>>,
}

/// A user and how he authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    /// Who.
    pub account: Account,
    /// `IDENTIFIED …`.
    pub auth: Option<Auth>,
    /// `REPLACE 'current'`.
    pub replace: Option<Box<[u8]>>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain: bool,
    /// `DISCARD OLD PASSWORD`.
    pub discard_old: bool,
}

/// `IDENTIFIED [WITH plugin] [BY … | AS …]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// `WITH`.
    pub plugin: Option<Ident>,
    /// `BY`, `AS`.
    pub secret: Secret,
}

/// What an account is identified by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// Nothing written: an empty password.
    None,
    /// `BY 'password'`
    Password(Box<[u8]>),
    /// `BY RANDOM PASSWORD`
    Random,
    /// `AS 'hash'`
    Hash(Box<[u8]>),
}

/// `REQUIRE …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsRequirement {
    /// `NONE`
    None,
    /// `SSL`
    Ssl,
    /// `X509`
    X509,
    /// `CIPHER '…' AND ISSUER '…' AND SUBJECT '…'`: the word in upper case, the text.
    Specified(Vec<(Box<str>, Box<[u8]>)>),
}

/// Which roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleSet {
    /// `DEFAULT`
    Default,
    /// `NONE`
    None,
    /// `ALL`
    All,
    /// `ALL EXCEPT …`
    AllExcept(Vec<Account>),
    /// Those listed.
    List(Vec<Account>),
}

/// `GRANT …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// `GRANT privileges ON object TO users`.
    Privileges {
        /// Which.
        privileges: Vec<Privilege>,
        /// On what.
        object: GrantObject,
        /// To whom; the old `IDENTIFIED BY` is kept.
        to: Vec<UserSpec>,
        /// `WITH GRANT OPTION`.
        grant_option: bool,
        /// `AS user [WITH ROLE …]`.
        as_user: Option<Account>,
    },
    /// `GRANT PROXY ON user TO users`.
    Proxy {
        /// Whose rights.
        on: Account,
        /// To whom.
        to: Vec<Account>,
        /// `WITH GRANT OPTION`.
        grant_option: bool,
    },
    /// `GRANT roles TO users`.
    Roles {
        /// Which.
        roles: Vec<Account>,
        /// To whom.
        to: Vec<Account>,
        /// `WITH ADMIN OPTION`.
        admin_option: bool,
    },
}

/// `REVOKE [IF EXISTS] …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoke {
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `IGNORE UNKNOWN USER`.
    pub ignore_unknown: bool,
    /// What.
    pub what: RevokeWhat,
    /// From whom.
    pub from: Vec<Account>,
}

/// What REVOKE takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevokeWhat {
    /// `privileges ON object`.
    Privileges(Vec<Privilege>, GrantObject),
    /// `ALL [PRIVILEGES], GRANT OPTION`.
    Everything,
    /// `PROXY ON user`.
    Proxy(Account),
    /// `roles`.
    Roles(Vec<Account>),
}

/// `SELECT (a, b)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    /// In upper case with one space between words: `SELECT`, `ALL`, `CREATE TEMPORARY TABLES`, `BACKUP_ADMIN`.
    /// `ALL PRIVILEGES` is `ALL`.
    pub name: Box<str>,
    /// The columns, when written.
    pub columns: Vec<Ident>,
}

/// What privileges are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantObject {
    /// `*.*`
    Global,
    /// `database.*`; `None`: `*`, the current database. The name may be a LIKE pattern.
    Database(Option<Ident>),
    /// `[TABLE] table`
    Table(ObjectName),
    /// `FUNCTION name`
    Function(ObjectName),
    /// `PROCEDURE name`
    Procedure(ObjectName),
}
