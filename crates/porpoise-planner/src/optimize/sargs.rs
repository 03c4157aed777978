//! Sargable conditions: those that select rows by a range of one column.
//!
//! A condition is *sargable* for a table when it compares a bare column, or what generates one,
//! with something known before the table's row: a constant, or columns of tables read earlier. It
//! then is a list of [`Interval`]s of the column.

use porpoise_catalog::Table;
use porpoise_expr::function::Function;
use porpoise_expr::typing::{Class, bytes_type, class, hidden, implicit, text_literal};
use porpoise_expr::{Comparison, Domain, Expr, ExprKind, SlotId};
use porpoise_types::{Collation, DataType, Value};

use crate::bind::Binder;
use crate::optimize::expr_slots;
use crate::plan::{KeyBound, KeyPart};
use crate::slot_set::SlotSet;

/// Values of a column.
#[derive(Clone, Debug)]
pub enum Interval {
    Equal(KeyPart),
    Between {
        lower: Option<KeyBound>,
        upper: Option<KeyBound>,
    },
}

/// A condition as intervals of a column.
#[derive(Clone, Debug)]
pub struct Sarg<'e> {
    /// The condition's position among those that were looked at.
    pub condition: usize,
    /// What says it, by itself: the condition, or a part of it. Of rows nothing does.
    pub expr: Option<&'e Expr>,
    pub column: usize,
    pub intervals: Vec<Interval>,
    /// The intervals select no other rows than the condition: it need not be checked again.
    pub exact: bool,
}

/// A condition of which one of several alternatives has to hold.
#[derive(Clone, Debug)]
pub struct Alternatives<'e> {
    /// The condition's position among those that were looked at.
    pub condition: usize,
    pub arms: Vec<Arm<'e>>,
}

/// One of the alternatives.
#[derive(Clone, Debug)]
pub struct Arm<'e> {
    /// What of it is sargable; never empty. All are of the same condition.
    pub sargs: Vec<Sarg<'e>>,
    /// It says nothing else.
    pub whole: bool,
}

/// The sargable conditions of a table.
#[derive(Clone, Debug, Default)]
pub struct Sargs<'e> {
    /// Those that are intervals of one column.
    pub single: Vec<Sarg<'e>>,
    pub alternatives: Vec<Alternatives<'e>>,
}

impl Sargs<'_> {
    /// Whether ranges of an index that begins with this column can be made of a condition.
    pub fn select(&self, first: usize) -> bool {
        let is_first = |sarg: &Sarg<'_>| sarg.column == first;
        self.single.iter().any(is_first)
            || self.alternatives.iter().any(|alternatives| {
                let mut arms = alternatives.arms.iter();
                arms.all(|arm| arm.sargs.iter().any(is_first))
            })
    }
}

/// The sargable conditions of a table, when `available` slots are filled before it.
pub fn sargs<'e>(
    binder: &Binder<'_>,
    slot: SlotId,
    table: &Table,
    conditions: &[&'e Expr],
    available: &SlotSet,
) -> Sargs<'e> {
    let finder = Finder {
        binder,
        slot,
        table,
        available,
    };
    let mut found = Sargs::default();
    for (condition, expr) in conditions.iter().enumerate() {
        if let Some(sarg) = finder.sarg(condition, expr) {
            found.single.push(sarg);
        } else if let Some(arms) = finder.arms(condition, expr) {
            found.alternatives.push(Alternatives { condition, arms });
        }
    }
    found
}

/// A column, what a condition selects of it, and whether that is all that the condition says.
type Intervals = (usize, Vec<Interval>, bool);

/// Looks at conditions from one table's side.
struct Finder<'a> {
    binder: &'a Binder<'a>,
    slot: SlotId,
    table: &'a Table,
    available: &'a SlotSet,
}

impl Finder<'_> {
    fn sarg<'e>(&self, condition: usize, expr: &'e Expr) -> Option<Sarg<'e>> {
        let (column, intervals, exact) = self.intervals(expr)?;
        Some(Sarg {
            condition,
            expr: Some(expr),
            column,
            intervals,
            exact,
        })
    }

    /// The alternatives of a condition, if each has something sargable.
    fn arms<'e>(&self, condition: usize, expr: &'e Expr) -> Option<Vec<Arm<'e>>> {
        match &expr.kind {
            ExprKind::Or(parts) => {
                let mut arms = Vec::with_capacity(parts.len());
                for part in parts {
                    match self.arms(condition, part) {
                        Some(several) => arms.extend(several),
                        None => arms.push(self.conjunction(condition, part)?),
                    }
                }
                Some(arms)
            }
            ExprKind::InList {
                operand,
                list,
                negated: false,
                ..
            } => {
                let operands = row_elements(operand)?;
                let arm = |item| self.equal_rows(condition, operands, row_elements(item)?);
                list.iter().map(arm).collect()
            }
            ExprKind::Compare {
                op: op @ (Comparison::Lt | Comparison::Le | Comparison::Gt | Comparison::Ge),
                left,
                right,
                ..
            } => self.ordered_rows(condition, *op, row_elements(left)?, row_elements(right)?),
            _ => None,
        }
    }

    /// Conditions that all hold in one alternative.
    fn conjunction<'e>(&self, condition: usize, expr: &'e Expr) -> Option<Arm<'e>> {
        let parts = match &expr.kind {
            ExprKind::And(parts) => &parts[..],
            _ => std::slice::from_ref(expr),
        };
        let sargs: Vec<Sarg<'e>> = parts
            .iter()
            .filter_map(|part| self.sarg(condition, part))
            .collect();
        arm(sargs, parts.len())
    }

    /// One of the rows of an IN list.
    fn equal_rows(&self, condition: usize, left: &[Expr], right: &[Expr]) -> Option<Arm<'static>> {
        let pairs = left.iter().zip(right);
        let sargs = pairs
            .filter_map(|(left, right)| self.pair(condition, Comparison::Eq, left, right))
            .collect();
        arm(sargs, left.len())
    }

    /// Rows compare by the first elements that differ: as many alternatives as there are elements.
    fn ordered_rows(
        &self,
        condition: usize,
        op: Comparison,
        left: &[Expr],
        right: &[Expr],
    ) -> Option<Vec<Arm<'static>>> {
        let strictly = match op {
            Comparison::Lt | Comparison::Le => Comparison::Lt,
            _ => Comparison::Gt,
        };
        let of_element = |differs: usize| {
            let op_of = |at: usize| match at {
                _ if at < differs => Comparison::Eq,
                _ if differs + 1 < left.len() => strictly,
                _ => op,
            };
            let pairs = left.iter().zip(right).enumerate().take(differs + 1);
            let sargs = pairs
                .filter_map(|(at, (left, right))| self.pair(condition, op_of(at), left, right))
                .collect();
            arm(sargs, differs + 1)
        };
        (0..left.len()).map(of_element).collect()
    }

    /// The comparison of two rows' elements of one place.
    fn pair(
        &self,
        condition: usize,
        op: Comparison,
        left: &Expr,
        right: &Expr,
    ) -> Option<Sarg<'static>> {
        let domain = Domain::of(&left.ty);
        let (column, intervals, exact) = self.comparison(op, domain, left, right)?;
        Some(Sarg {
            condition,
            expr: None,
            column,
            intervals,
            exact,
        })
    }

    fn intervals(&self, condition: &Expr) -> Option<Intervals> {
        match &condition.kind {
            ExprKind::Compare {
                op,
                domain,
                left,
                right,
            } => self.comparison(*op, *domain, left, right),
            ExprKind::Between {
                operand,
                low,
                high,
                domain,
                negated: false,
            } => self.between(operand, low, high, *domain),
            ExprKind::InList {
                operand,
                list,
                domain,
                negated: false,
            } => self.in_list(operand, list, *domain),
            ExprKind::IsNull {
                operand,
                negated: false,
            } => self.is_null(operand),
            ExprKind::Like {
                operand,
                pattern,
                escape,
                collation,
                negated: false,
            } => self.like(operand, pattern, *escape, *collation),
            ExprKind::Or(parts) => self.disjunction(parts),
            _ => None,
        }
    }

    /// The table's column that an expression is, or that it generates.
    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr.as_column() {
            Some((of, column)) => (of == self.slot).then_some(column),
            None => generated_column(self.slot, self.table, expr),
        }
    }

    /// Whether an expression has its value before the table's row is read.
    fn is_known(&self, expr: &Expr) -> bool {
        (expr.is_constant() || expr_slots(self.binder, expr).is_subset(self.available))
            && !expr.is_volatile()
    }

    fn comparison(
        &self,
        op: Comparison,
        domain: Domain,
        left: &Expr,
        right: &Expr,
    ) -> Option<Intervals> {
        let (column, value, op) = match (self.column(left), self.column(right)) {
            (Some(column), _) if self.is_known(right) => (column, right, op),
            (_, Some(column)) if self.is_known(left) => (column, left, op.flipped()),
            _ => return None,
        };
        let ty = &self.table.columns[column].ty;
        let (value, exact) = key_value(ty, value, domain)?;
        let interval = match op {
            Comparison::Eq => equals(ty, value, domain),
            Comparison::NullSafeEq if is_ambiguous(ty, domain) => return None,
            Comparison::NullSafeEq => equal(value, true),
            Comparison::Lt => between(None, Some((value, false))),
            Comparison::Le => between(None, Some((value, true))),
            Comparison::Gt => between(Some((value, false)), None),
            Comparison::Ge => between(Some((value, true)), None),
            Comparison::Ne => return None,
        };
        Some((column, vec![interval], exact))
    }

    fn between(
        &self,
        operand: &Expr,
        low: &Expr,
        high: &Expr,
        domain: Domain,
    ) -> Option<Intervals> {
        let column = self.column(operand)?;
        if !self.is_known(low) || !self.is_known(high) {
            return None;
        }
        let ty = &self.table.columns[column].ty;
        let (low, low_exact) = key_value(ty, low, domain)?;
        let (high, high_exact) = key_value(ty, high, domain)?;
        let interval = between(Some((low, true)), Some((high, true)));
        Some((column, vec![interval], low_exact && high_exact))
    }

    fn in_list(&self, operand: &Expr, list: &[Expr], domain: Domain) -> Option<Intervals> {
        let column = self.column(operand)?;
        let mut intervals = Vec::with_capacity(list.len());
        let mut exact = true;
        for item in list {
            if !self.is_known(item) {
                return None;
            }
            let ty = &self.table.columns[column].ty;
            let (value, item_exact) = key_value(ty, item, domain)?;
            exact &= item_exact;
            intervals.push(equals(ty, value, domain));
        }
        Some((column, intervals, exact))
    }

    fn is_null(&self, operand: &Expr) -> Option<Intervals> {
        let column = self.column(operand)?;
        let definition = &self.table.columns[column];
        if !definition.nullable {
            return None;
        }
        let value = Expr::literal(Value::Null, definition.ty.clone());
        Some((column, vec![equal(value, true)], true))
    }

    /// LIKE: from the least to the greatest text that a pattern's fixed beginning allows.
    fn like(
        &self,
        operand: &Expr,
        pattern: &Expr,
        escape: Option<char>,
        collation: Collation,
    ) -> Option<Intervals> {
        let column = self.column(operand)?;
        let ty = &self.table.columns[column].ty;
        let comparable = match class(ty) {
            Class::Text => ty.collation() == collation,
            Class::Bytes => true,
            _ => false,
        };
        if !comparable
            || !self.is_known(pattern)
            || class(&pattern.ty) != class(ty)
            || begins_wild(self.binder, pattern, escape)
        {
            return None;
        }
        let bound_type = match class(ty) {
            Class::Text => pattern.ty.with_collation(collation),
            _ => pattern.ty.clone(),
        };
        let escape = match escape.filter(char::is_ascii) {
            Some(escape) => text_literal(escape.encode_utf8(&mut [0; 4])),
            None => text_literal(""),
        };
        let edge = |function: &'static Function| {
            let call = ExprKind::Call {
                function,
                arguments: vec![pattern.clone(), escape.clone()],
            };
            Some((Expr::new(call, bound_type.clone(), true), true))
        };
        let interval = between(edge(&hidden::LIKE_LOW), edge(&hidden::LIKE_HIGH));
        Some((column, vec![interval], false))
    }

    /// OR of conditions on the same column.
    fn disjunction(&self, parts: &[Expr]) -> Option<Intervals> {
        let mut all: Option<Intervals> = None;
        for part in parts {
            let (column, intervals, exact) = self.intervals(part)?;
            all = Some(match all {
                None => (column, intervals, exact),
                Some((held, _, _)) if held != column => return None,
                Some((held, mut known, was_exact)) => {
                    known.extend(intervals);
                    (held, known, was_exact && exact)
                }
            });
        }
        all
    }
}

/// An alternative of so many conditions, if some of them are sargable.
fn arm(sargs: Vec<Sarg<'_>>, conditions: usize) -> Option<Arm<'_>> {
    let whole = sargs.len() == conditions;
    (!sargs.is_empty()).then_some(Arm { sargs, whole })
}

fn row_elements(expr: &Expr) -> Option<&[Expr]> {
    match &expr.kind {
        ExprKind::Row(elements) => Some(elements),
        _ => None,
    }
}

fn equal(value: Expr, null_safe: bool) -> Interval {
    Interval::Equal(KeyPart { value, null_safe })
}

/// The values between two bounds, each with whether it is inclusive.
fn between(lower: Option<(Expr, bool)>, upper: Option<(Expr, bool)>) -> Interval {
    let bound = |(value, inclusive)| KeyBound { value, inclusive };
    Interval::Between {
        lower: lower.map(bound),
        upper: upper.map(bound),
    }
}

/// The column that an expression generates, if it has the expression's type: a key over the column
/// is one over the expression.
fn generated_column(slot: SlotId, table: &Table, expr: &Expr) -> Option<usize> {
    table.columns.iter().position(|column| {
        column.ty == expr.ty
            && column.generated.as_ref().is_some_and(|generated| {
                let mut over_slot = Expr::clone(&generated.expr);
                move_to(&mut over_slot, slot);
                over_slot.same_as(expr, &[])
            })
    })
}

/// Makes an expression over a row alone one over the row in this slot.
fn move_to(expr: &mut Expr, to: SlotId) {
    if let ExprKind::Column { slot, .. } = &mut expr.kind {
        *slot = to;
    }
    expr.for_each_child_mut(&mut |child| move_to(child, to));
}

/// Whether a pattern's first character already matches anything; a pattern not known yet is taken
/// not to.
fn begins_wild(binder: &Binder<'_>, pattern: &Expr, escape: Option<char>) -> bool {
    let value = match &pattern.kind {
        ExprKind::Literal(value) => Some(value),
        ExprKind::Parameter(number) => binder.context.literals.get(*number),
        _ => None,
    };
    let Some(bytes) = value.and_then(Value::as_bytes) else {
        return false;
    };
    matches!(bytes.first(), Some(b'%' | b'_')) && escape != bytes.first().map(|byte| *byte as char)
}

/// Whether several of the column's values may equal one value: an exact number's column has more
/// digits than the doubles that it is compared as.
fn is_ambiguous(ty: &DataType, domain: Domain) -> bool {
    domain == Domain::Double && !ty.is_exact_in_double()
}

/// What equals a value in the column.
fn equals(ty: &DataType, value: Expr, domain: Domain) -> Interval {
    match is_ambiguous(ty, domain) {
        true => between(Some((value.clone(), true)), Some((value, true))),
        false => equal(value, false),
    }
}

/// The value as a bound of the column's keys, and whether the bound says just what the comparison
/// says. `None` where the column's order is not the comparison's.
fn key_value(ty: &DataType, value: &Expr, domain: Domain) -> Option<(Expr, bool)> {
    let numbers = matches!(domain, Domain::Integer | Domain::Decimal | Domain::Double);
    let ok = match class(ty) {
        Class::Integer | Class::Decimal | Class::Double => numbers,
        Class::Member => domain == Domain::Integer,
        Class::Text => domain == Domain::Text(ty.collation()),
        Class::Bytes => domain == Domain::Bytes,
        Class::Date | Class::DateTime => matches!(domain, Domain::Date | Domain::DateTime),
        Class::Time => domain == Domain::Time,
        Class::Json | Class::Null => false,
    };
    if !ok {
        return None;
    }
    // Local time repeats an hour a year.
    let exact = !matches!(ty, DataType::Timestamp { .. }) && !is_ambiguous(ty, domain);
    let value = match (class(ty), class(&value.ty)) {
        (Class::Bytes, Class::Text) => implicit(
            value.clone(),
            bytes_type(value.ty.max_chars().saturating_mul(4)),
        ),
        _ => value.clone(),
    };
    Some((value, exact))
}
