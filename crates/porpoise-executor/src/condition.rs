//! Conditions: what is true, false or unknown.
//!
//! What compares and combines conditions has no need of the values 1, 0 and NULL in between, and
//! integers and texts are compared where they lie. Most of what a filter does is that; the rest is
//! left to [`Evaluate::eval`].

use std::cmp::Ordering;

use porpoise_core::error::{Error, Result};
use porpoise_expr::compare::{compare, comparison};
use porpoise_expr::value_list::Found;
use porpoise_expr::{Comparison, Domain, EvalContext, Expr, ExprKind};
use porpoise_types::row::stored;
use porpoise_types::{
    Collation, DataType, Date, DateTime, Decimal, Value, cancel, convert, try_like,
};
use smallvec::SmallVec;

use crate::Exec;
use crate::eval::{Evaluate, signed};

/// Whether a condition is true; `None` if that is unknown (NULL).
///
/// # Errors
/// As [`Evaluate::eval`].
pub(crate) fn truth(condition: &Expr, exec: &mut Exec<'_>) -> Result<Option<bool>> {
    match &condition.kind {
        ExprKind::Not(operand) => Ok(truth(operand, exec)?.map(|truth| !truth)),
        ExprKind::And(operands) => unless_any(false, operands, exec),
        ExprKind::Or(operands) => unless_any(true, operands, exec),
        ExprKind::Xor(left, right) => {
            let (left, right) = (truth(left, exec)?, truth(right, exec)?);
            Ok(left.zip(right).map(|(left, right)| left != right))
        }
        ExprKind::Compare {
            op,
            domain,
            left,
            right,
        } => match in_place(*op, *domain, left, right, exec) {
            Some(truth) => Ok(Some(truth)),
            None => compared(*op, *domain, left, right, exec),
        },
        ExprKind::Between {
            operand,
            low,
            high,
            domain,
            negated,
        } => {
            let is_between = between(operand, low, high, *domain, exec)?;
            Ok(is_between.map(|is_between| is_between != *negated))
        }
        ExprKind::InList {
            operand,
            list,
            domain,
            negated,
        } => {
            let is_in = match &operand.kind {
                ExprKind::Row(operand) => in_rows(operand, list, exec)?,
                _ => in_list(operand, list, *domain, exec)?,
            };
            Ok(is_in.map(|is_in| is_in != *negated))
        }
        ExprKind::IsNull { operand, negated } => {
            let is_null = match &operand.kind {
                ExprKind::Column { slot, column, .. } => {
                    exec.column_is_null(*slot, *column as usize)
                }
                _ => operand.eval(exec)?.is_null(),
            };
            Ok(Some(is_null != *negated))
        }
        ExprKind::IsTruth {
            operand,
            truth: wanted,
            negated,
        } => {
            let is = truth(operand, exec)? == Some(*wanted);
            Ok(Some(is != *negated))
        }
        ExprKind::Like {
            operand,
            pattern,
            escape,
            collation,
            negated,
        } => {
            if let Some(matches) = like_in_place(operand, pattern, *escape, *collation, exec) {
                return Ok(Some(matches? != *negated));
            }
            let (operand, pattern) = (operand.eval(exec)?, pattern.eval(exec)?);
            let (Some(text), Some(pattern)) = (operand.as_bytes(), pattern.as_bytes()) else {
                return Ok(None);
            };
            let check = || exec.check_interrupt();
            let matches = try_like(text, pattern, *escape, *collation, check)?;
            Ok(Some(matches != *negated))
        }
        _ => Ok(convert::to_bool(&condition.eval(exec)?)),
    }
}

/// `decisive` if one of the operands is, which ends it; otherwise unknown if one is unknown.
fn unless_any(decisive: bool, operands: &[Expr], exec: &mut Exec<'_>) -> Result<Option<bool>> {
    let mut unknown = false;
    for operand in operands {
        match truth(operand, exec)? {
            Some(truth) if truth == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(!decisive))
}

/// Compares two operands without making values of them; `None` where that can't be done, which has
/// no effects then.
#[inline]
fn in_place(
    op: Comparison,
    domain: Domain,
    left: &Expr,
    right: &Expr,
    exec: &Exec<'_>,
) -> Option<bool> {
    let order = match domain {
        Domain::Integer => signed(left, exec)?.cmp(&signed(right, exec)?),
        _ => InPlace::of(left, exec)?.compare(&InPlace::of(right, exec)?, domain)?,
    };
    Some(op.holds(order))
}

/// As [`in_place`], whether a text is like a pattern.
fn like_in_place(
    text: &Expr,
    pattern: &Expr,
    escape: Option<char>,
    collation: Collation,
    exec: &Exec<'_>,
) -> Option<Result<bool>> {
    let (text, pattern) = (InPlace::of(text, exec)?, InPlace::of(pattern, exec)?);
    let (text, pattern) = (text.text()?, pattern.text()?);
    let check = || exec.check_interrupt();
    Some(try_like(text, pattern, escape, collation, check))
}

/// An operand that isn't NULL, where it lies.
enum InPlace<'a> {
    /// In a column of this type of the current row.
    Stored(&'a [u8], &'a DataType),
    /// A constant, or a parameter.
    Value(&'a Value),
}

impl<'a> InPlace<'a> {
    #[inline]
    fn of(expr: &'a Expr, exec: &'a Exec<'_>) -> Option<InPlace<'a>> {
        match &expr.kind {
            ExprKind::Column { slot, column, .. } => {
                let (stored, ty) = exec.stored(*slot, *column as usize)?;
                Some(InPlace::Stored(stored, ty))
            }
            ExprKind::Literal(value) => Some(InPlace::Value(value)),
            ExprKind::Parameter(number) | ExprKind::Variable(number) => {
                exec.parameters.get(*number).map(InPlace::Value)
            }
            ExprKind::Once(operand) => exec.known_constant(operand).map(InPlace::Value),
            _ => None,
        }
    }

    #[inline]
    fn compare(&self, other: &InPlace<'_>, domain: Domain) -> Option<Ordering> {
        match domain {
            Domain::Double => self.double()?.partial_cmp(&other.double()?),
            Domain::Decimal => Some(self.decimal()?.cmp(&other.decimal()?)),
            Domain::Date => Some(self.date()?.cmp(&other.date()?)),
            Domain::DateTime => Some(self.datetime()?.cmp(&other.datetime()?)),
            Domain::Text(collation) => {
                let (one, other) = (self.text()?, other.text()?);
                let is_short = one.len().min(other.len()) <= cancel::SHORT_BYTES;
                is_short.then(|| collation.compare(one, other))
            }
            _ => None,
        }
    }

    fn double(&self) -> Option<f64> {
        match *self {
            InPlace::Stored(bytes, DataType::Float { .. } | DataType::Double { .. }) => {
                Some(stored::double(bytes))
            }
            InPlace::Value(Value::Double(value)) => Some(*value),
            InPlace::Value(Value::Int(value)) => Some(*value as f64),
            _ => None,
        }
    }

    fn decimal(&self) -> Option<Decimal> {
        match *self {
            InPlace::Stored(bytes, DataType::Decimal { scale, .. }) => {
                Some(stored::decimal(bytes, *scale))
            }
            InPlace::Value(Value::Decimal(value)) => Some(value.clone()),
            InPlace::Value(Value::Int(value)) => Some(Decimal::new(*value, 0)),
            _ => None,
        }
    }

    fn date(&self) -> Option<Date> {
        match *self {
            InPlace::Stored(bytes, DataType::Date) => Some(stored::date(bytes)),
            InPlace::Value(Value::Date(date)) => Some(*date),
            _ => None,
        }
    }

    /// Not of a TIMESTAMP, which is stored in UTC.
    fn datetime(&self) -> Option<DateTime> {
        match *self {
            InPlace::Stored(bytes, DataType::DateTime { .. }) => Some(stored::datetime(bytes)),
            InPlace::Stored(bytes, DataType::Date) => Some(stored::date(bytes).at_midnight()),
            InPlace::Value(Value::DateTime(datetime)) => Some(*datetime),
            InPlace::Value(Value::Date(date)) => Some(date.at_midnight()),
            _ => None,
        }
    }

    fn text(&self) -> Option<&[u8]> {
        match *self {
            InPlace::Stored(
                bytes,
                DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. },
            ) => Some(bytes),
            InPlace::Value(Value::Text(text)) => Some(text.as_bytes()),
            _ => None,
        }
    }
}

fn compared(
    op: Comparison,
    domain: Domain,
    left: &Expr,
    right: &Expr,
    exec: &mut Exec<'_>,
) -> Result<Option<bool>> {
    if let (ExprKind::Row(left), ExprKind::Row(right)) = (&left.kind, &right.kind) {
        return compare_rows(exec, op, left, right);
    }
    let left = left.eval(exec)?;
    if left.is_null() && op != Comparison::NullSafeEq {
        return Ok(None);
    }
    let right = right.eval(exec)?;
    exec.comparison(op, &left, &right, domain)
}

fn between(
    operand: &Expr,
    low: &Expr,
    high: &Expr,
    domain: Domain,
    exec: &mut Exec<'_>,
) -> Result<Option<bool>> {
    let at_least = in_place(Comparison::Ge, domain, operand, low, exec);
    let at_most = in_place(Comparison::Le, domain, operand, high, exec);
    if let (Some(at_least), Some(at_most)) = (at_least, at_most) {
        return Ok(Some(at_least && at_most));
    }
    let operand = operand.eval(exec)?;
    // As in MySQL, bounds that don't count aren't computed: they could fail.
    if operand.is_null() {
        return Ok(None);
    }
    let low = low.eval(exec)?;
    let low = exec.comparison(Comparison::Ge, &operand, &low, domain)?;
    if low == Some(false) {
        return Ok(Some(false));
    }
    let high = high.eval(exec)?;
    let high = exec.comparison(Comparison::Le, &operand, &high, domain)?;
    Ok(match (low, high) {
        (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })
}

fn in_list(
    operand: &Expr,
    list: &[Expr],
    domain: Domain,
    exec: &mut Exec<'_>,
) -> Result<Option<bool>> {
    let operand = operand.eval(exec)?;
    if operand.is_null() {
        return Ok(None);
    }
    let domains = std::slice::from_ref(&domain);
    if let Some(list) = exec.value_list(list, domains)? {
        return Ok(match list.find(std::slice::from_ref(&operand), domains) {
            Found::Yes => Some(true),
            Found::No => Some(false),
            Found::Unknown => None,
        });
    }
    let mut unknown = false;
    for item in list {
        let item = item.eval(exec)?;
        match exec.comparison(Comparison::Eq, &operand, &item, domain)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(false))
}

fn in_rows(operand: &[Expr], list: &[Expr], exec: &mut Exec<'_>) -> Result<Option<bool>> {
    let is_flat = |element: &Expr| !matches!(element.kind, ExprKind::Row(_));
    if list.len() > 1 && operand.iter().all(is_flat) {
        let domains: SmallVec<[Domain; 4]> = operand.iter().map(|x| Domain::of(&x.ty)).collect();
        if let Some(list) = exec.value_list(list, &domains)? {
            let mut row: SmallVec<[Value; 4]> = SmallVec::with_capacity(operand.len());
            for element in operand {
                row.push(element.eval(exec)?);
            }
            match list.find(&row, &domains) {
                Found::Yes => return Ok(Some(true)),
                Found::No => return Ok(Some(false)),
                Found::Unknown => {}
            }
        }
    }
    let mut unknown = false;
    for item in list {
        let ExprKind::Row(item) = &item.kind else {
            return Err(Error::operand_columns(operand.len()));
        };
        match compare_rows(exec, Comparison::Eq, operand, item)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(false))
}

/// Rows compare element by element; for equality, a NULL anywhere leaves it unknown unless another
/// pair differs.
fn compare_rows(
    exec: &mut Exec<'_>,
    op: Comparison,
    left: &[Expr],
    right: &[Expr],
) -> Result<Option<bool>> {
    let mut unknown = false;
    for (left, right) in left.iter().zip(right) {
        let domain = Domain::of(&left.ty);
        let (a, b) = (left.eval(exec)?, right.eval(exec)?);
        match op {
            Comparison::NullSafeEq => {
                if comparison(op, &a, &b, domain) == Some(false) {
                    return Ok(Some(false));
                }
            }
            Comparison::Eq | Comparison::Ne => match comparison(Comparison::Eq, &a, &b, domain) {
                Some(true) => {}
                Some(false) => return Ok(Some(op == Comparison::Ne)),
                None => unknown = true,
            },
            _ if a.is_null() || b.is_null() => return Ok(None),
            _ => match compare(&a, &b, domain) {
                Ordering::Equal => {}
                order => return Ok(Some(op.holds(order))),
            },
        }
    }
    let if_equal = op.holds(Ordering::Equal);
    Ok((!unknown).then_some(if_equal))
}
