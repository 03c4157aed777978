//! Bound expressions: names resolved, types known, conversions explicit.
//!
//! The planner makes them, with the constructors of [`crate::planner::typing`], which decide once what MySQL decides for
//! every row: in which domain two values are compared, which result type an operator has, where a
//! string becomes a number. Evaluation ([`crate::executor::eval`]) then only does what the tree says.
//!
//! Columns live in the frame: each table, derived table, grouping and so on of the *whole* statement,
//! subqueries included, has a slot of its own that holds its current row in encoded form
//! (`porpoise_types::RowLayout`). A correlated subquery therefore reads its outer query's columns like
//! any others.

use compact_str::CompactString;
use porpoise_types::{Collation, DataType, Value};

use crate::functions::Function;
use crate::planner::plan::Subplan;

/// Where a row source keeps its current row, unique in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u16);

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: DataType,
    pub nullable: bool,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Literal(Value),
    /// The n-th parameter of the statement: a `?`, or a literal that the digest took out.
    Parameter(usize),
    Column {
        slot: Slot,
        column: u16,
    },
    UserVariable(CompactString),
    /// `@@name`: a position in [`crate::variables::VARIABLES`].
    SystemVariable {
        position: usize,
        reads: crate::variables::Reads,
    },
    /// `@name := value`.
    AssignUserVariable {
        name: CompactString,
        value: Box<Expr>,
    },
    /// Converts to the node's own type, as CAST does and as implicit conversions do.
    Cast {
        operand: Box<Expr>,
        kind: CastKind,
    },
    Not(Box<Expr>),
    /// NULL-aware, short-circuiting.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    Compare {
        op: Comparison,
        domain: Domain,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `operand BETWEEN low AND high`, in one domain.
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        domain: Domain,
        negated: bool,
    },
    /// `operand IN (list)`; items are of the domain.
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        domain: Domain,
        negated: bool,
    },
    IsNull {
        operand: Box<Expr>,
        negated: bool,
    },
    /// `IS [NOT] TRUE/FALSE`.
    IsTruth {
        operand: Box<Expr>,
        truth: bool,
        negated: bool,
    },
    Arithmetic {
        op: Arithmetic,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Negate(Box<Expr>),
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<char>,
        collation: Collation,
        negated: bool,
    },
    /// `CASE WHEN condition THEN value … ELSE …`; `CASE x WHEN y` is bound to comparisons.
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Call {
        function: &'static Function,
        arguments: Vec<Expr>,
    },
    /// Only as an operand of a row comparison or IN.
    Row(Vec<Expr>),
    Subquery {
        subplan: Box<Subplan>,
        kind: SubqueryKind,
    },
    /// The n-th aggregate of the query block; replaced by a column of the grouping's slot.
    Aggregate(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    /// Lossless as far as the type allows, lenient, warns like an expression does (1292).
    Implicit,
    /// CAST/CONVERT.
    Explicit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// In what kind of value two operands are compared (MySQL 8.4 manual, 14.3). Both operands have been
/// cast to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// i64/u64, mixed signs compared by value.
    Integer,
    Decimal,
    Double,
    Text(Collation),
    Bytes,
    Date,
    Time,
    DateTime,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// One row, one column (or a row of them); NULL when empty; 1242 when more.
    Scalar,
    Exists {
        negated: bool,
    },
    /// `operand op ANY|ALL (subquery)`; IN is `= ANY`, NOT IN is `<> ALL`. One domain a column.
    Quantified {
        operand: Box<Expr>,
        op: Comparison,
        all: bool,
        domains: Vec<Domain>,
    },
}

impl std::fmt::Display for Expr {
    /// As error messages show an expression (1690): operators in parentheses, columns by position.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            ExprKind::Literal(value) => {
                f.write_str(&porpoise_types::convert::to_text(value, &self.ty))
            }
            ExprKind::Column { slot, column } => write!(f, "`{}`.`{column}`", slot.0),
            ExprKind::UserVariable(name) => write!(f, "@{name}"),
            ExprKind::Cast { operand, .. } => operand.fmt(f),
            ExprKind::Negate(operand) => write!(f, "-({operand})"),
            ExprKind::Arithmetic { op, left, right } => {
                let sign = match op {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Divide => "/",
                    Arithmetic::IntegerDivide => "DIV",
                    Arithmetic::Modulo => "%",
                    Arithmetic::BitAnd => "&",
                    Arithmetic::BitOr => "|",
                    Arithmetic::BitXor => "^",
                    Arithmetic::ShiftLeft => "<<",
                    Arithmetic::ShiftRight => ">>",
                };
                write!(f, "({left} {sign} {right})")
            }
            ExprKind::Call {
                function,
                arguments,
            } => {
                write!(f, "{}(", function.name.to_ascii_lowercase())?;
                for (position, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if position > 0 { "," } else { "" })?;
                }
                f.write_str(")")
            }
            _ => f.write_str("?"),
        }
    }
}
