//! The tree of an expression.
//!
//! Columns live in the frame: each table, derived table, grouping and so on of the *whole*
//! statement, subqueries included, has a slot of its own that holds its current row in encoded form
//! (`porpoise_types::RowLayout`). A correlated subquery therefore reads its outer query's columns
//! like any others.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_types::{Collation, DataType, Value};

use super::function::{Function, Purity, StoredFunction};
use super::typing::collation::Coercibility;

/// Where a row source keeps its current row, unique in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u16);

/// An expression whose names are resolved and whose types are known.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The type of its values.
    pub ty: DataType,
    /// Whether it can be NULL.
    pub nullable: bool,
}

/// What an expression is made of. Operands have the types that the operator needs: conversions are
/// nodes.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant in the statement's text.
    Literal(Value),
    /// The n-th parameter of the statement: a `?`, or a literal that the digest took out.
    Parameter(usize),
    /// A variable of the program that the statement belongs to: its value is among the parameters.
    Variable(usize),
    /// A column of the current row of a table, a derived table, a grouping.
    Column {
        /// Whose row.
        slot: SlotId,
        /// The position in that row.
        column: u16,
        /// How easily its collation gives way: a stored column's is IMPLICIT, a computed one's that
        /// of what it was computed from.
        strength: Coercibility,
    },
    /// `@name`.
    UserVariable(CompactString),
    /// `@@name`: a position in [`porpoise_core::variables::VARIABLES`].
    SystemVariable {
        /// Its row in the table.
        position: usize,
        /// The session's value or the global one.
        reads: porpoise_core::variables::Reads,
    },
    /// `@name := value`.
    AssignUserVariable {
        /// Without the `@`.
        name: CompactString,
        /// What is assigned; also the value of the whole.
        value: Box<Expr>,
    },
    /// Converts to the node's own type, as CAST does and as implicit conversions do.
    Cast {
        /// What is converted.
        operand: Box<Expr>,
        /// Whether the statement asked for it.
        kind: CastKind,
    },
    /// A constant that takes some work: computed when it is first asked for in an execution.
    Once(Box<Expr>),
    /// NULL for NULL.
    Not(Box<Expr>),
    /// NULL-aware, short-circuiting.
    And(Vec<Expr>),
    /// NULL-aware, short-circuiting.
    Or(Vec<Expr>),
    /// NULL if either operand is.
    Xor(Box<Expr>, Box<Expr>),
    /// `left op right`.
    Compare {
        /// Which comparison.
        op: Comparison,
        /// What both operands were cast to.
        domain: Domain,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `operand BETWEEN low AND high`, in one domain.
    Between {
        /// What is compared.
        operand: Box<Expr>,
        /// The lower bound, included.
        low: Box<Expr>,
        /// The upper bound, included.
        high: Box<Expr>,
        /// What all three were cast to.
        domain: Domain,
        /// NOT BETWEEN.
        negated: bool,
    },
    /// `operand IN (list)`; items are of the domain.
    InList {
        /// What is looked for.
        operand: Box<Expr>,
        /// Where it is looked for.
        list: Vec<Expr>,
        /// What operand and items were cast to.
        domain: Domain,
        /// NOT IN.
        negated: bool,
    },
    /// `operand IS [NOT] NULL`.
    IsNull {
        /// What is tested.
        operand: Box<Expr>,
        /// IS NOT.
        negated: bool,
    },
    /// `IS [NOT] TRUE/FALSE`.
    IsTruth {
        /// What is tested.
        operand: Box<Expr>,
        /// TRUE or FALSE.
        truth: bool,
        /// IS NOT.
        negated: bool,
    },
    /// `left op right`, in the node's own type.
    Arithmetic {
        /// Which operation.
        op: Arithmetic,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `-operand`.
    Negate(Box<Expr>),
    /// `operand [NOT] LIKE pattern ESCAPE escape`.
    Like {
        /// The text that is matched.
        operand: Box<Expr>,
        /// With `%` and `_`.
        pattern: Box<Expr>,
        /// What takes `%` and `_` their meaning; `None` for nothing.
        escape: Option<char>,
        /// Which characters count as equal.
        collation: Collation,
        /// NOT LIKE.
        negated: bool,
    },
    /// `CASE WHEN condition THEN value … ELSE …`; `CASE x WHEN y` is bound to comparisons.
    Case {
        /// Conditions in their order, each with its value.
        branches: Vec<(Expr, Expr)>,
        /// ELSE; `None` is NULL.
        otherwise: Option<Box<Expr>>,
    },
    /// A call of a scalar function.
    Call {
        /// Which function.
        function: &'static Function,
        /// Converted to the kinds that the function takes.
        arguments: Vec<Expr>,
    },
    /// A call of a stored function.
    Stored {
        /// Which function.
        function: Arc<dyn StoredFunction>,
        /// As they are: the function's parameters convert them.
        arguments: Vec<Expr>,
    },
    /// Only as an operand of a row comparison or IN.
    Row(Vec<Expr>),
    /// The statement's n-th subquery; the plan has what makes its rows.
    Subquery {
        /// Its position among the plan's subqueries.
        number: usize,
        /// What is asked of its rows.
        kind: SubqueryKind,
    },
    /// The n-th aggregate of the query block; replaced by a column of the grouping's slot.
    Aggregate(usize),
}

/// Who asked for a conversion; how it is worded and how far it goes depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    /// Lossless as far as the type allows, lenient, warns like an expression does (1292).
    Implicit,
    /// Of a user variable to a double: it tells of nothing that it loses, as MySQL's don't.
    Silent,
    /// CAST/CONVERT.
    Explicit,
    /// CAST/CONVERT to a text or bytes of no stated length: nothing is cut off, however long the
    /// type says that it is. A plan serves literals of every length.
    Whole,
    /// To DECIMAL, for a comparison: with all digits that there are, however many the type shows.
    /// Warns as if the number were a double.
    Exact,
    /// Of a constant string that is compared with a value of this temporal type: one that is no
    /// date is refused (1525).
    Moment(&'static str),
    /// Of a text to an ENUM whose members it is compared with: to the number of the one that equals
    /// it by the collation, to 0 for the empty text, and to a number that no value has if none does.
    Member,
    /// Of a string to a DATETIME that it is compared as: one that is no date is the zero date.
    MomentOrZero,
    /// Of a number to a DATETIME that it is compared as: one that is no moment lies between those
    /// whose numbers are less and those whose numbers are greater. `of_dates`: it is compared with
    /// dates, whose numbers have eight digits.
    Comparable {
        /// Compared with dates.
        of_dates: bool,
    },
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<=>`: two NULLs are equal.
    NullSafeEq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// In what kind of value two operands are compared (MySQL 8.4 manual, 14.3). Both operands have
/// been cast to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// i64/u64, mixed signs compared by value.
    Integer,
    /// Exact numbers.
    Decimal,
    /// Approximate numbers, and mixes of numbers and texts.
    Double,
    /// Texts by a collation.
    Text(Collation),
    /// Binary strings, byte by byte.
    Bytes,
    /// Days.
    Date,
    /// Times of day and durations.
    Time,
    /// Moments; a date is its midnight.
    DateTime,
    /// JSON values (MySQL 8.4 manual, 13.5, Comparison and Ordering of JSON Values).
    Json,
}

/// An operation on numbers or bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`: exact numbers yield a DECIMAL; by zero NULL with a warning (1365).
    Divide,
    /// `DIV`: the quotient without its fraction.
    IntegerDivide,
    /// `%` and `MOD`
    Modulo,
    /// `&`
    BitAnd,
    /// `
    /// `
    BitOr,
    /// `^`
    BitXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// What an expression asks of a subquery's rows.
#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// A column of its only row; NULL when empty; 1242 when there are more rows.
    Scalar {
        /// The column's position; not the first only where the subquery is a row.
        column: usize,
    },
    /// Whether there is a row.
    Exists {
        /// NOT EXISTS.
        negated: bool,
    },
    /// `operand op ANY|ALL (subquery)`; IN is `= ANY`, NOT IN is `<> ALL`. One domain a column.
    Quantified {
        /// What rows are compared with; a row where they have several columns.
        operand: Box<Expr>,
        /// How each row is compared.
        op: Comparison,
        /// ALL; else ANY.
        all: bool,
        /// What each column is compared as.
        domains: Vec<Domain>,
    },
}

/// Calls `$visit` with each operand of a `$kind`: whether to see or to change them is in how it is
/// borrowed, and in `$iter`.
macro_rules! visit_operands {
    ($kind:expr, $visit:ident, $iter:ident) => {
        match $kind {
            ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Variable(_)
            | ExprKind::Column { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable { .. }
            | ExprKind::Aggregate(_) => {}
            ExprKind::AssignUserVariable { value: operand, .. }
            | ExprKind::Cast { operand, .. }
            | ExprKind::Once(operand)
            | ExprKind::Not(operand)
            | ExprKind::IsNull { operand, .. }
            | ExprKind::IsTruth { operand, .. }
            | ExprKind::Negate(operand) => $visit(operand),
            ExprKind::And(operands)
            | ExprKind::Or(operands)
            | ExprKind::Row(operands)
            | ExprKind::Call {
                arguments: operands,
                ..
            }
            | ExprKind::Stored {
                arguments: operands,
                ..
            } => operands.$iter().for_each($visit),
            ExprKind::Xor(left, right)
            | ExprKind::Compare { left, right, .. }
            | ExprKind::Arithmetic { left, right, .. }
            | ExprKind::Like {
                operand: left,
                pattern: right,
                ..
            } => {
                $visit(left);
                $visit(right);
            }
            ExprKind::Between {
                operand, low, high, ..
            } => {
                $visit(operand);
                $visit(low);
                $visit(high);
            }
            ExprKind::InList { operand, list, .. } => {
                $visit(operand);
                list.$iter().for_each($visit);
            }
            ExprKind::Case {
                branches,
                otherwise,
            } => {
                for (condition, value) in branches {
                    $visit(condition);
                    $visit(value);
                }
                if let Some(otherwise) = otherwise {
                    $visit(otherwise);
                }
            }
            ExprKind::Subquery { kind, .. } => {
                if let SubqueryKind::Quantified { operand, .. } = kind {
                    $visit(operand);
                }
            }
        }
    };
}

impl Expr {
    /// An expression of a known type.
    pub fn new(kind: ExprKind, ty: DataType, nullable: bool) -> Expr {
        Expr { kind, ty, nullable }
    }

    /// A constant; it can be NULL only if it is.
    pub fn literal(value: Value, ty: DataType) -> Expr {
        let nullable = value.is_null();
        Expr {
            kind: ExprKind::Literal(value),
            ty,
            nullable,
        }
    }

    /// A 0-or-1 result, as conditions have.
    pub fn boolean(kind: ExprKind, nullable: bool) -> Expr {
        Expr {
            kind,
            ty: boolean_type(),
            nullable,
        }
    }

    /// A stored column of a slot.
    pub fn column(slot: SlotId, column: usize, ty: DataType, nullable: bool) -> Expr {
        Expr {
            kind: ExprKind::Column {
                slot,
                column: column as u16,
                strength: Coercibility::Implicit,
            },
            ty,
            nullable,
        }
    }

    /// The same column, of a collation that gives way as easily as that.
    pub fn of_strength(mut self, given: Coercibility) -> Expr {
        if let ExprKind::Column { strength, .. } = &mut self.kind {
            *strength = given;
        }
        self
    }

    /// The slot and position of a bare column.
    pub fn as_column(&self) -> Option<(SlotId, usize)> {
        match self.kind {
            ExprKind::Column { slot, column, .. } => Some((slot, column as usize)),
            _ => None,
        }
    }

    /// Calls `visit` with each operand, not deeper. The insides of a subquery are not operands.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit_operands!(&self.kind, visit, iter);
    }

    /// As [`Expr::for_each_child`], to change them.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit_operands!(&mut self.kind, visit, iter_mut);
    }

    /// Whether the expression or a part of it satisfies `test`.
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let mut found = false;
        self.for_each_child(&mut |child| found = found || child.any(test));
        found
    }

    /// Neither reads a row, nor a variable, nor changes from call to call: the same all through one
    /// execution.
    pub fn is_constant(&self) -> bool {
        !self.any(&mut |part| match &part.kind {
            ExprKind::Column { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::AssignUserVariable { .. }
            | ExprKind::Aggregate(_)
            | ExprKind::Stored { .. }
            | ExprKind::Subquery { .. } => true,
            ExprKind::Call { function, .. } => function.purity == Purity::Volatile,
            _ => false,
        })
    }

    /// Has each part that is constant, and takes some work, computed once an execution.
    pub fn compute_constants_once(&mut self) {
        let takes_work = matches!(
            self.kind,
            ExprKind::Cast { .. }
                | ExprKind::Call { .. }
                | ExprKind::Arithmetic { .. }
                | ExprKind::Negate(_)
                | ExprKind::Case { .. }
        );
        if takes_work && self.is_constant() {
            let computed = self.clone();
            self.kind = ExprKind::Once(Box::new(computed));
            return;
        }
        match &mut self.kind {
            // The items of long lists are computed once anyway.
            ExprKind::InList { operand, list, .. } => {
                operand.compute_constants_once();
                if list.len() < 16 {
                    list.iter_mut().for_each(Expr::compute_constants_once);
                }
            }
            ExprKind::Once(_) => {}
            _ => self.for_each_child_mut(&mut Expr::compute_constants_once),
        }
    }

    /// Gives another value each time, or has effects.
    pub fn is_volatile(&self) -> bool {
        self.any(&mut |part| match &part.kind {
            ExprKind::UserVariable(_)
            | ExprKind::AssignUserVariable { .. }
            | ExprKind::Stored { .. } => true,
            ExprKind::Call { function, .. } => function.purity == Purity::Volatile,
            _ => false,
        })
    }

    /// Whether it is or has a subquery.
    pub fn has_subquery(&self) -> bool {
        self.any(&mut |part| matches!(part.kind, ExprKind::Subquery { .. }))
    }

    /// Whether two expressions say the same. Parameters are equal where `literals` tells equal
    /// values.
    pub fn same_as(&self, other: &Expr, literals: &[Value]) -> bool {
        let all = |a: &[Expr], b: &[Expr]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_as(b, literals))
        };
        match (&self.kind, &other.kind) {
            (ExprKind::Column { .. }, ExprKind::Column { .. }) => {
                self.as_column() == other.as_column()
            }
            (ExprKind::Literal(a), ExprKind::Literal(b)) => a == b && self.ty == other.ty,
            (ExprKind::Parameter(a), ExprKind::Parameter(b)) => {
                a == b
                    || literals
                        .get(*a)
                        .is_some_and(|value| literals.get(*b) == Some(value))
            }
            (ExprKind::Variable(a), ExprKind::Variable(b)) => a == b,
            (ExprKind::UserVariable(a), ExprKind::UserVariable(b)) => a == b,
            (ExprKind::Aggregate(a), ExprKind::Aggregate(b)) => a == b,
            (
                ExprKind::Cast {
                    operand: a,
                    kind: x,
                },
                ExprKind::Cast {
                    operand: b,
                    kind: y,
                },
            ) => x == y && self.ty == other.ty && a.same_as(b, literals),
            (ExprKind::Once(a), ExprKind::Once(b))
            | (ExprKind::Not(a), ExprKind::Not(b))
            | (ExprKind::Negate(a), ExprKind::Negate(b)) => a.same_as(b, literals),
            (ExprKind::And(a), ExprKind::And(b))
            | (ExprKind::Or(a), ExprKind::Or(b))
            | (ExprKind::Row(a), ExprKind::Row(b)) => all(a, b),
            (ExprKind::Xor(a, b), ExprKind::Xor(c, d)) => {
                a.same_as(c, literals) && b.same_as(d, literals)
            }
            (
                ExprKind::Compare {
                    op: o,
                    domain: x,
                    left: a,
                    right: b,
                },
                ExprKind::Compare {
                    op: p,
                    domain: y,
                    left: c,
                    right: d,
                },
            ) => o == p && x == y && a.same_as(c, literals) && b.same_as(d, literals),
            (
                ExprKind::Arithmetic {
                    op: o,
                    left: a,
                    right: b,
                },
                ExprKind::Arithmetic {
                    op: p,
                    left: c,
                    right: d,
                },
            ) => o == p && a.same_as(c, literals) && b.same_as(d, literals),
            (
                ExprKind::Between {
                    operand: a,
                    low: b,
                    high: c,
                    negated: n,
                    ..
                },
                ExprKind::Between {
                    operand: d,
                    low: e,
                    high: f,
                    negated: m,
                    ..
                },
            ) => {
                n == m && a.same_as(d, literals) && b.same_as(e, literals) && c.same_as(f, literals)
            }
            (
                ExprKind::InList {
                    operand: a,
                    list: b,
                    negated: n,
                    ..
                },
                ExprKind::InList {
                    operand: c,
                    list: d,
                    negated: m,
                    ..
                },
            ) => n == m && a.same_as(c, literals) && all(b, d),
            (
                ExprKind::IsNull {
                    operand: a,
                    negated: n,
                },
                ExprKind::IsNull {
                    operand: b,
                    negated: m,
                },
            ) => n == m && a.same_as(b, literals),
            (
                ExprKind::IsTruth {
                    operand: a,
                    truth: t,
                    negated: n,
                },
                ExprKind::IsTruth {
                    operand: b,
                    truth: u,
                    negated: m,
                },
            ) => t == u && n == m && a.same_as(b, literals),
            (
                ExprKind::Like {
                    operand: a,
                    pattern: b,
                    escape: e,
                    negated: n,
                    ..
                },
                ExprKind::Like {
                    operand: c,
                    pattern: d,
                    escape: f,
                    negated: m,
                    ..
                },
            ) => e == f && n == m && a.same_as(c, literals) && b.same_as(d, literals),
            (
                ExprKind::Case {
                    branches: a,
                    otherwise: b,
                },
                ExprKind::Case {
                    branches: c,
                    otherwise: d,
                },
            ) => {
                a.len() == c.len()
                    && a.iter()
                        .zip(c)
                        .all(|(a, c)| a.0.same_as(&c.0, literals) && a.1.same_as(&c.1, literals))
                    && match (b, d) {
                        (None, None) => true,
                        (Some(b), Some(d)) => b.same_as(d, literals),
                        _ => false,
                    }
            }
            (
                ExprKind::Call {
                    function: f,
                    arguments: a,
                },
                ExprKind::Call {
                    function: g,
                    arguments: b,
                },
            ) => {
                std::ptr::eq(*f, *g)
                    && self.ty == other.ty
                    && f.purity != Purity::Volatile
                    && all(a, b)
            }
            (
                ExprKind::Stored {
                    function: f,
                    arguments: a,
                },
                ExprKind::Stored {
                    function: g,
                    arguments: b,
                },
            ) => f.name() == g.name() && f.is_deterministic() && all(a, b),
            // Who names an expression by its alias has its subquery as well, not another that reads
            // alike.
            (
                ExprKind::Subquery { number: a, kind: x },
                ExprKind::Subquery { number: b, kind: y },
            ) => {
                a == b
                    && match (x, y) {
                        (
                            SubqueryKind::Scalar { column: a },
                            SubqueryKind::Scalar { column: b },
                        ) => a == b,
                        (
                            SubqueryKind::Exists { negated: n },
                            SubqueryKind::Exists { negated: m },
                        ) => n == m,
                        (
                            SubqueryKind::Quantified {
                                operand: a,
                                op: o,
                                all: n,
                                ..
                            },
                            SubqueryKind::Quantified {
                                operand: b,
                                op: p,
                                all: m,
                                ..
                            },
                        ) => o == p && n == m && a.same_as(b, literals),
                        _ => false,
                    }
            }
            _ => false,
        }
    }
}

/// The type of conditions: BIGINT with one digit.
pub fn boolean_type() -> DataType {
    DataType::Int {
        width: porpoise_types::IntWidth::Big,
        unsigned: false,
        zerofill: false,
        display_width: Some(1),
    }
}

impl Comparison {
    /// The comparison with its sides swapped.
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        }
    }

    /// The comparison that is true where this one is false.
    pub fn negated(self) -> Option<Comparison> {
        Some(match self {
            Comparison::Eq => Comparison::Ne,
            Comparison::Ne => Comparison::Eq,
            Comparison::Lt => Comparison::Ge,
            Comparison::Le => Comparison::Gt,
            Comparison::Gt => Comparison::Le,
            Comparison::Ge => Comparison::Lt,
            Comparison::NullSafeEq => return None,
        })
    }

    /// As SQL writes it.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Eq => "=",
            Comparison::NullSafeEq => "<=>",
            Comparison::Ne => "<>",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }
}

impl Arithmetic {
    /// As SQL writes it.
    pub fn sign(self) -> &'static str {
        match self {
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
        }
    }
}
