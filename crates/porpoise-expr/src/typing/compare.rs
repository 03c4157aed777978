//! Comparisons, and what is built of them: BETWEEN, IN, LIKE (MySQL 8.4 manual, 14.3 and 14.4.2).
//!
//! | left, right | compared as |
//! | --- | --- |
//! | integers | integers |
//! | exact numbers | decimals |
//! | an exact number, a string | decimals, which have room for all digits |
//! | a BIGINT column, a constant of floating point | decimals |
//! | strings | text in their common collation, bytes if one is binary |
//! | an ENUM column, equality with a constant string | numbers of members |
//! | a date or time, a string or constant number | dates and times |
//! | JSON, anything | JSON |
//! | anything else | doubles |

use compact_str::CompactString;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_types::{Collation, DataType, Decimal, Value};

use crate::typing::{Class, class, coerce, collation, hidden, implicit, text_or_bytes, text_type};
use crate::{Comparison, Domain, Expr, ExprKind};

/// The domain in which two expressions are compared.
pub fn domain(left: &Expr, right: &Expr, operation: &str, session: &SessionVars) -> Result<Domain> {
    let (a, b) = (class(&left.ty), class(&right.ty));
    Ok(match (a, b) {
        (Class::Null, Class::Null) => Domain::Integer,
        (Class::Null, other) | (other, Class::Null) => own_domain(
            other,
            if a == Class::Null {
                &right.ty
            } else {
                &left.ty
            },
        ),
        (Class::Json, _) | (_, Class::Json) => Domain::Json,
        _ if a.is_string() && b.is_string() => {
            match collation::aggregate([left, right], operation, session.collation)? {
                Collation::BINARY => Domain::Bytes,
                common => Domain::Text(common),
            }
        }
        (Class::Integer | Class::Member, Class::Integer) | (Class::Integer, Class::Member) => {
            Domain::Integer
        }
        (
            Class::Integer | Class::Decimal | Class::Member,
            Class::Integer | Class::Decimal | Class::Member,
        ) => Domain::Decimal,
        (Class::Date, Class::Date) => Domain::Date,
        (Class::Time, Class::Time) => Domain::Time,
        _ if a.is_temporal() && b.is_temporal() => Domain::DateTime,
        (Class::Time, Class::Text | Class::Bytes) => beside_time(right),
        (Class::Text | Class::Bytes, Class::Time) => beside_time(left),
        (Class::Date | Class::DateTime, Class::Text | Class::Bytes)
        | (Class::Text | Class::Bytes, Class::Date | Class::DateTime) => Domain::DateTime,
        _ if a.is_temporal() && b.is_number() && right.is_constant() => constant_number_domain(a),
        _ if b.is_temporal() && a.is_number() && left.is_constant() => constant_number_domain(b),
        _ => Domain::Double,
    })
}

/// Only a constant string is compared as a time; others are compared with a time's text.
fn beside_time(text: &Expr) -> Domain {
    match class(&text.ty) {
        _ if text.is_constant() => Domain::Time,
        Class::Bytes => Domain::Bytes,
        _ => Domain::Text(text.ty.collation()),
    }
}

fn constant_number_domain(temporal: Class) -> Domain {
    if temporal == Class::Time {
        Domain::Time
    } else {
        Domain::DateTime
    }
}

/// What `CASE left WHEN right` asks. A JSON document is compared with a string as its text, with a
/// number as a number: only the operators compare documents. Of a quotient all digits are compared.
pub fn case_condition(left: Expr, right: Expr, session: &SessionVars) -> Result<Expr> {
    let op = Comparison::Eq;
    let (left, right) = case_operands(left, right);
    if width(&left) != 1 || width(&right) != 1 {
        return compare(op, left, right, session);
    }
    let left = beside(left, &right);
    let right = beside(right, &left);
    let domain = domain(&left, &right, op.sign(), session)?;
    let left = with_all_digits(left, domain);
    let right = with_all_digits(right, domain);
    Ok(compared(op, domain, left, right))
}

fn case_operands(left: Expr, right: Expr) -> (Expr, Expr) {
    let against = |expr: Expr, other: Class| match (class(&expr.ty), other) {
        (Class::Json, Class::Text | Class::Bytes | Class::Member) => {
            let ty = text_type(expr.ty.max_chars(), expr.ty.collation());
            implicit(expr, ty)
        }
        (Class::Json, other) if other.is_number() => implicit(expr, DataType::DOUBLE),
        // One that is no date equals none.
        (Class::Text | Class::Bytes, Class::Date | Class::DateTime) => {
            implicit(expr, DataType::DateTime { fsp: 6 })
        }
        _ => expr,
    };
    let (a, b) = (class(&left.ty), class(&right.ty));
    (against(left, b), against(right, a))
}

/// How values of one class are compared among themselves.
fn own_domain(class: Class, ty: &DataType) -> Domain {
    match class {
        Class::Null | Class::Integer => Domain::Integer,
        Class::Decimal => Domain::Decimal,
        Class::Double => Domain::Double,
        Class::Text | Class::Member => Domain::Text(ty.collation()),
        Class::Bytes => Domain::Bytes,
        Class::Date => Domain::Date,
        Class::Time => Domain::Time,
        Class::DateTime => Domain::DateTime,
        Class::Json => Domain::Json,
    }
}

/// Converts an operand to its comparison's domain. Numbers of any kind compare with each other, and
/// a DATE with a DATETIME: those stay as they are.
pub fn into_domain(expr: Expr, domain: Domain) -> Expr {
    let from = class(&expr.ty);
    match domain {
        _ if from == Class::Null => expr,
        // A quotient is compared as it would be shown, without the digits kept for further
        // computing.
        Domain::Decimal if super::has_hidden_digits(&expr) => {
            let (ty, nullable) = (expr.ty.clone(), expr.nullable);
            let operand = Box::new(expr);
            let kind = crate::CastKind::Implicit;
            Expr::new(ExprKind::Cast { operand, kind }, ty, nullable)
        }
        Domain::Integer | Domain::Decimal | Domain::Double => match from {
            Class::Integer | Class::Decimal | Class::Double | Class::Member => expr,
            _ => implicit(expr, DataType::DOUBLE),
        },
        Domain::Text(_) | Domain::Bytes => match from {
            // Between bytes and a text stands the text's encoding in its character set.
            Class::Bytes
                if let Domain::Text(collation) = domain
                    && !collation.charset().is_utf8() =>
            {
                let ty = text_type(expr.ty.max_chars(), collation);
                implicit(expr, ty)
            }
            Class::Text if domain == Domain::Bytes && !expr.ty.collation().charset().is_utf8() => {
                let ty = super::bytes_type(expr.ty.max_chars());
                implicit(expr, ty)
            }
            Class::Text | Class::Bytes => expr,
            _ => {
                let ty = text_type(expr.ty.max_chars(), expr.ty.collation());
                implicit(expr, ty)
            }
        },
        Domain::Date | Domain::DateTime => match from {
            Class::Date | Class::DateTime => expr,
            Class::Text | Class::Bytes => {
                let nullable = expr.nullable;
                let kind = crate::CastKind::MomentOrZero;
                converted(expr, DataType::DateTime { fsp: 6 }, kind, nullable)
            }
            _ => implicit(expr, DataType::DateTime { fsp: 6 }),
        },
        Domain::Time => match from {
            Class::Time => expr,
            _ => implicit(expr, DataType::Time { fsp: 6 }),
        },
        Domain::Json => match from {
            Class::Json => expr,
            _ => implicit(expr, DataType::Json),
        },
    }
}

/// An operand of BETWEEN or of an IN list: those compare all digits of what is computed of a
/// quotient.
fn listed(expr: Expr, domain: Domain) -> Expr {
    use crate::Arithmetic::{Add, Multiply, Subtract};
    match &expr.kind {
        ExprKind::Arithmetic {
            op: Add | Subtract | Multiply,
            ..
        }
        | ExprKind::Negate(_) => with_all_digits(expr, domain),
        _ => into_domain(expr, domain),
    }
}

/// An operand in the comparison's domain; a quotient keeps the digits that it doesn't show.
fn with_all_digits(expr: Expr, domain: Domain) -> Expr {
    match domain {
        Domain::Decimal if class(&expr.ty) == Class::Decimal => expr,
        _ => into_domain(expr, domain),
    }
}

/// An operand as what the other's keys hold, where a conversion by the domain alone would lose
/// something, so that a key has just the rows that the comparison has. What is compared with an
/// exact number is one where that keeps digits that a double has no room for: strings, and constants
/// of floating point beside a BIGINT column. A constant number beside dates is the moment that it
/// stands for, or lies between moments.
fn beside(expr: Expr, other: &Expr) -> Expr {
    // 0x41 is a number where a number is wanted.
    if super::is_hex(&expr) && class(&other.ty).is_number() {
        return super::hex_number(expr);
    }
    if other.ty == DataType::Year && other.as_column().is_some() && is_one_value(&expr) {
        return beside_year(expr);
    }
    match (class(&expr.ty), class(&other.ty)) {
        (Class::Text, Class::Integer)
            if let ExprKind::Literal(Value::Text(text)) = &expr.kind
                && let Ok(number) = text.parse::<i64>() =>
        {
            Expr::literal(Value::Int(number), DataType::BIGINT)
        }
        (Class::Text, Class::Decimal)
            if let ExprKind::Literal(Value::Text(text)) = &expr.kind
                && let Some(parsed) = Decimal::parse_prefix(text.as_bytes())
                && parsed.read == text.len()
                && !text.contains(['e', 'E']) =>
        {
            let digits = parsed.value.digits().clamp(1, 65) as u8;
            let ty = DataType::decimal(digits, parsed.value.scale());
            Expr::literal(Value::Decimal(parsed.value), ty)
        }
        (Class::Text | Class::Bytes, Class::Integer | Class::Decimal) => exact_decimal(expr),
        (from, to @ (Class::Date | Class::DateTime)) if from.is_number() && expr.is_constant() => {
            let nullable = expr.nullable;
            let kind = crate::CastKind::Comparable {
                of_dates: to == Class::Date,
            };
            converted(expr, DataType::DateTime { fsp: 6 }, kind, nullable)
        }
        (Class::Double, Class::Integer)
            if expr.is_constant()
                && other.as_column().is_some()
                && !other.ty.is_exact_in_double() =>
        {
            exact_decimal(expr)
        }
        _ => expr,
    }
}

/// Whether an expression has one value for all rows, as far as a comparison with a YEAR goes.
fn is_one_value(expr: &Expr) -> bool {
    expr.is_constant() || matches!(expr.kind, ExprKind::UserVariable(_))
}

/// What a subquery selects, as the operand that it is compared with takes it.
pub fn selected(expr: Expr, operand: &Expr) -> Expr {
    match operand.ty {
        DataType::Year => beside(expr, operand),
        _ => expr,
    }
}

/// A constant beside a YEAR column: 1 to 99 are years of two digits (MySQL 8.4 manual, 13.2.4).
fn beside_year(expr: Expr) -> Expr {
    let number = match class(&expr.ty) {
        Class::Text | Class::Bytes => exact_decimal(expr),
        Class::Integer if expr.ty != DataType::Year => expr,
        Class::Decimal | Class::Double => expr,
        _ => return expr,
    };
    let (ty, nullable) = (number.ty.clone(), number.nullable);
    let call = ExprKind::Call {
        function: &hidden::YEAR_NUMBER,
        arguments: vec![number],
    };
    Expr::new(call, ty, nullable)
}

/// An operand as the exact number that it is or begins with.
fn exact_decimal(expr: Expr) -> Expr {
    let nullable = expr.nullable;
    converted(
        expr,
        DataType::decimal(65, 30),
        crate::CastKind::Exact,
        nullable,
    )
}

fn converted(expr: Expr, ty: DataType, kind: crate::CastKind, nullable: bool) -> Expr {
    let operand = Box::new(expr);
    Expr::new(ExprKind::Cast { operand, kind }, ty, nullable)
}

/// How many columns an operand has.
pub fn width(expr: &Expr) -> usize {
    match &expr.kind {
        ExprKind::Row(items) => items.len(),
        _ => 1,
    }
}

/// A constant string that an operator compares with a date: it has to be one (1525). IN and BETWEEN
/// are more lenient.
fn moment(expr: Expr, other: &Expr) -> Expr {
    let name = match &other.ty {
        DataType::Date => "DATE",
        DataType::DateTime { .. } => "DATETIME",
        DataType::Timestamp { .. } => "TIMESTAMP",
        _ => return expr,
    };
    match class(&expr.ty) {
        Class::Text | Class::Bytes if expr.is_constant() => {
            let kind = crate::CastKind::Moment(name);
            converted(expr, DataType::DateTime { fsp: 6 }, kind, true)
        }
        _ => expr,
    }
}

/// Puts two operands into one domain.
fn align(
    left: Expr,
    right: Expr,
    operation: &str,
    session: &SessionVars,
) -> Result<(Domain, Expr, Expr)> {
    let left = beside(left, &right);
    let right = beside(right, &left);
    let domain = domain(&left, &right, operation, session)?;
    Ok((
        domain,
        into_domain(left, domain),
        into_domain(right, domain),
    ))
}

/// `left op right`. A constant string beside a date has to be one.
pub fn compare(op: Comparison, left: Expr, right: Expr, session: &SessionVars) -> Result<Expr> {
    let (left, right) = (moment(left, &right), right);
    let right = moment(right, &left);
    compare_any(op, left, right, session)
}

/// As [`compare`]; what is no date equals none.
fn compare_any(op: Comparison, left: Expr, right: Expr, session: &SessionVars) -> Result<Expr> {
    match (left.kind, right.kind) {
        (ExprKind::Row(left), ExprKind::Row(right)) => {
            compare_rows(op, left, right, session, compare)
        }
        (ExprKind::Row(row), _) | (_, ExprKind::Row(row)) => Err(Error::operand_columns(row.len())),
        (left_kind, right_kind) => {
            let left = Expr {
                kind: left_kind,
                ty: left.ty,
                nullable: left.nullable,
            };
            let right = Expr {
                kind: right_kind,
                ty: right.ty,
                nullable: right.nullable,
            };
            if is_equality(op) {
                if let Some(member) = member(&right, &left, session) {
                    return Ok(compared(op, Domain::Integer, left, member));
                }
                if let Some(member) = member(&left, &right, session) {
                    return Ok(compared(op, Domain::Integer, member, right));
                }
            }
            let (domain, left, right) = align(left, right, op.sign(), session)?;
            Ok(compared(op, domain, left, right))
        }
    }
}

fn is_equality(op: Comparison) -> bool {
    matches!(op, Comparison::Eq | Comparison::Ne | Comparison::NullSafeEq)
}

/// A constant text that may equal an ENUM column's, as the number of the member that does: numbers
/// are what the column and its indexes hold.
fn member(text: &Expr, column: &Expr, session: &SessionVars) -> Option<Expr> {
    let DataType::Enum(def) = &column.ty else {
        return None;
    };
    if column.as_column().is_none() || !text.is_constant() || class(&text.ty) != Class::Text {
        return None;
    }
    // The empty text may be that of no member, which is number 0, as well.
    let is_empty = |member: &CompactString| def.collation.eq(member.as_bytes(), b"");
    let domain = domain(column, text, "=", session).ok()?;
    if domain != Domain::Text(def.collation) || def.members.iter().any(is_empty) {
        return None;
    }
    let kind = crate::CastKind::Member;
    Some(converted(
        text.clone(),
        column.ty.clone(),
        kind,
        text.nullable,
    ))
}

/// Makes a comparison of single values.
type Compare = fn(Comparison, Expr, Expr, &SessionVars) -> Result<Expr>;

/// The comparison of two operands that are in its domain.
fn compared(op: Comparison, domain: Domain, left: Expr, right: Expr) -> Expr {
    let nullable = op != Comparison::NullSafeEq && (left.nullable || right.nullable);
    let kind = ExprKind::Compare {
        op,
        domain,
        left: Box::new(left),
        right: Box::new(right),
    };
    Expr::boolean(kind, nullable)
}

fn compare_rows(
    op: Comparison,
    left: Vec<Expr>,
    right: Vec<Expr>,
    session: &SessionVars,
    compare: Compare,
) -> Result<Expr> {
    let (left, right) = flat_rows(left, right)?;
    if matches!(op, Comparison::Eq | Comparison::NullSafeEq) {
        // As a conjunction each part can use an index.
        let parts: Result<Vec<Expr>> = left
            .into_iter()
            .zip(right)
            .map(|(left, right)| compare(op, left, right, session))
            .collect();
        return Ok(and(parts?));
    }
    let (left, right) = align_rows(left, right, op.sign(), session)?;
    let nullable = left.iter().chain(&right).any(|item| item.nullable);
    let (left, right) = (row(left), row(right));
    Ok(Expr::boolean(
        ExprKind::Compare {
            op,
            domain: Domain::Integer,
            left: Box::new(left),
            right: Box::new(right),
        },
        nullable,
    ))
}

/// Two rows of one shape, without the rows inside them: rows compare by the first elements that
/// differ, however they are grouped.
fn flat_rows(left: Vec<Expr>, right: Vec<Expr>) -> Result<(Vec<Expr>, Vec<Expr>)> {
    if left.len() != right.len() {
        return Err(Error::operand_columns(left.len()));
    }
    let mut flat = (
        Vec::with_capacity(left.len()),
        Vec::with_capacity(left.len()),
    );
    for (left, right) in left.into_iter().zip(right) {
        match (left.kind, right.kind) {
            (ExprKind::Row(left), ExprKind::Row(right)) => {
                let (left, right) = flat_rows(left, right)?;
                flat.0.extend(left);
                flat.1.extend(right);
            }
            (ExprKind::Row(items), _) => return Err(Error::operand_columns(items.len())),
            (_, ExprKind::Row(_)) => return Err(Error::operand_columns(1)),
            (left_kind, right_kind) => {
                flat.0.push(Expr {
                    kind: left_kind,
                    ..left
                });
                flat.1.push(Expr {
                    kind: right_kind,
                    ..right
                });
            }
        }
    }
    Ok(flat)
}

/// A row of operands.
pub fn row(items: Vec<Expr>) -> Expr {
    let nullable = items.iter().any(|item| item.nullable);
    Expr::new(ExprKind::Row(items), DataType::Null, nullable)
}

/// Rows compare element by element: each pair is brought to one type, which tells its domain.
fn align_rows(
    left: Vec<Expr>,
    right: Vec<Expr>,
    operation: &str,
    session: &SessionVars,
) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let mut rows = (
        Vec::with_capacity(left.len()),
        Vec::with_capacity(left.len()),
    );
    for (left, right) in left.into_iter().zip(right) {
        let (domain, left, right) = align(left, right, operation, session)?;
        rows.0.push(of_domain(left, domain));
        rows.1.push(of_domain(right, domain));
    }
    Ok(rows)
}

/// Gives an operand a type that tells the domain by itself.
pub fn of_domain(expr: Expr, domain: Domain) -> Expr {
    match domain {
        Domain::Double => coerce(expr, &DataType::DOUBLE),
        Domain::Decimal if class(&expr.ty) != Class::Decimal => {
            let (digits, scale) = super::merge::decimal_size(&expr.ty);
            implicit(expr, DataType::decimal((digits + scale).min(65), scale))
        }
        Domain::Text(collation) if expr.ty.collation() != collation => {
            let ty = text_type(expr.ty.max_chars(), collation);
            super::renamed(expr, ty)
        }
        Domain::Bytes if class(&expr.ty) == Class::Text => {
            let ty = super::bytes_type(expr.ty.max_chars().saturating_mul(4));
            implicit(expr, ty)
        }
        Domain::DateTime if class(&expr.ty) != Class::DateTime => {
            implicit(expr, DataType::DateTime { fsp: 6 })
        }
        _ => expr,
    }
}

/// An operand whose truth is asked for: of a string the number that it begins with, with a warning
/// where that isn't all of it.
pub fn truth(operand: Expr) -> Expr {
    match class(&operand.ty) {
        Class::Text | Class::Bytes if super::is_hex(&operand) => super::hex_number(operand),
        Class::Text | Class::Bytes => implicit(operand, DataType::DOUBLE),
        // A document is true unless it is the number 0 (MySQL 8.4 manual, 13.5).
        Class::Json => {
            let zero = Expr::literal(Value::Int(0), DataType::BIGINT);
            let nullable = operand.nullable;
            let kind = ExprKind::Compare {
                op: Comparison::Ne,
                domain: Domain::Json,
                left: Box::new(operand),
                right: Box::new(into_domain(zero, Domain::Json)),
            };
            Expr::boolean(kind, nullable)
        }
        _ => operand,
    }
}

/// The conjunction of some conditions, flat.
pub fn and(mut parts: Vec<Expr>) -> Expr {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part.kind {
            ExprKind::And(inner) => flat.extend(inner),
            kind => flat.push(truth(Expr { kind, ..part })),
        }
    }
    let nullable = flat.iter().any(|part| part.nullable);
    Expr::boolean(ExprKind::And(flat), nullable)
}

/// OR of conditions; one alone is itself.
pub fn or(parts: Vec<Expr>) -> Expr {
    let parts: Vec<Expr> = parts.into_iter().map(truth).collect();
    let nullable = parts.iter().any(|part| part.nullable);
    Expr::boolean(ExprKind::Or(parts), nullable)
}

/// `left XOR right`.
pub fn xor(left: Expr, right: Expr) -> Expr {
    let nullable = left.nullable || right.nullable;
    let sides = (Box::new(truth(left)), Box::new(truth(right)));
    Expr::boolean(ExprKind::Xor(sides.0, sides.1), nullable)
}

/// NOT, driven into what it negates where that is the same.
pub fn not(operand: Expr) -> Expr {
    let Expr { kind, ty, nullable } = operand;
    match kind {
        ExprKind::Compare {
            op,
            domain,
            left,
            right,
        } if op.negated().is_some() => {
            let op = op.negated().unwrap_or(op);
            Expr::boolean(
                ExprKind::Compare {
                    op,
                    domain,
                    left,
                    right,
                },
                nullable,
            )
        }
        ExprKind::IsNull { operand, negated } => Expr::boolean(
            ExprKind::IsNull {
                operand,
                negated: !negated,
            },
            false,
        ),
        ExprKind::IsTruth {
            operand,
            truth,
            negated,
        } => Expr::boolean(
            ExprKind::IsTruth {
                operand,
                truth,
                negated: !negated,
            },
            false,
        ),
        ExprKind::Between {
            operand,
            low,
            high,
            domain,
            negated,
        } => Expr::boolean(
            ExprKind::Between {
                operand,
                low,
                high,
                domain,
                negated: !negated,
            },
            nullable,
        ),
        ExprKind::InList {
            operand,
            list,
            domain,
            negated,
        } => Expr::boolean(
            ExprKind::InList {
                operand,
                list,
                domain,
                negated: !negated,
            },
            nullable,
        ),
        ExprKind::Like {
            operand,
            pattern,
            escape,
            collation,
            negated,
        } => Expr::boolean(
            ExprKind::Like {
                operand,
                pattern,
                escape,
                collation,
                negated: !negated,
            },
            nullable,
        ),
        ExprKind::Subquery {
            number,
            kind: crate::SubqueryKind::Exists { negated },
        } => Expr::boolean(
            ExprKind::Subquery {
                number,
                kind: crate::SubqueryKind::Exists { negated: !negated },
            },
            nullable,
        ),
        ExprKind::Subquery {
            number,
            kind:
                crate::SubqueryKind::Quantified {
                    operand,
                    op,
                    all,
                    domains,
                },
        } if op.negated().is_some() => {
            let op = op.negated().unwrap_or(op);
            let kind = crate::SubqueryKind::Quantified {
                operand,
                op,
                all: !all,
                domains,
            };
            Expr::boolean(ExprKind::Subquery { number, kind }, nullable)
        }
        ExprKind::And(parts) => or(parts.into_iter().map(not).collect()),
        ExprKind::Or(parts) => and(parts.into_iter().map(not).collect()),
        kind => Expr::boolean(
            ExprKind::Not(Box::new(truth(Expr { kind, ty, nullable }))),
            nullable,
        ),
    }
}

/// `operand IS [NOT] NULL`.
pub fn is_null(operand: Expr, negated: bool) -> Result<Expr> {
    if width(&operand) != 1 {
        return Err(Error::operand_columns(1));
    }
    Ok(Expr::boolean(
        ExprKind::IsNull {
            operand: Box::new(operand),
            negated,
        },
        false,
    ))
}

/// A condition on rows, in which IS NULL finds the zero date of columns that are declared NOT NULL,
/// also where an outer join makes NULL of them (MySQL 8.4 manual, 14.4.2).
pub fn row_condition(
    condition: Expr,
    is_declared_not_null: &dyn Fn(crate::SlotId, usize) -> bool,
) -> Expr {
    let inner = |part| row_condition(part, is_declared_not_null);
    let Expr { kind, ty, nullable } = condition;
    match kind {
        ExprKind::And(parts) => and(parts.into_iter().map(inner).collect()),
        ExprKind::Or(parts) => or(parts.into_iter().map(inner).collect()),
        ExprKind::IsNull {
            operand,
            negated: false,
        } if let Some((domain, zero)) = zero_date(&operand, is_declared_not_null) => {
            let zero = Expr::literal(zero, operand.ty.clone());
            let is_zero = compared(Comparison::Eq, domain, (*operand).clone(), zero);
            match operand.nullable {
                false => is_zero,
                true => {
                    let negated = false;
                    let is_null = Expr::boolean(ExprKind::IsNull { operand, negated }, false);
                    or(vec![is_null, is_zero])
                }
            }
        }
        kind => truth(Expr { kind, ty, nullable }),
    }
}

/// The zero value of a column of dates that is declared NOT NULL.
fn zero_date(
    operand: &Expr,
    is_declared_not_null: &dyn Fn(crate::SlotId, usize) -> bool,
) -> Option<(Domain, Value)> {
    let (slot, column) = operand.as_column()?;
    if operand.nullable && !is_declared_not_null(slot, column) {
        return None;
    }
    match operand.ty {
        DataType::Date => Some((Domain::Date, Value::Date(porpoise_types::Date::ZERO))),
        DataType::DateTime { .. } => {
            let zero = porpoise_types::DateTime::ZERO;
            Some((Domain::DateTime, Value::DateTime(zero)))
        }
        _ => None,
    }
}

/// `operand IS [NOT] TRUE` or FALSE.
pub fn is_truth(operand: Expr, truth: bool, negated: bool) -> Result<Expr> {
    if width(&operand) != 1 {
        return Err(Error::operand_columns(1));
    }
    Ok(Expr::boolean(
        ExprKind::IsTruth {
            operand: Box::new(self::truth(operand)),
            truth,
            negated,
        },
        false,
    ))
}

/// The domain in which one operand is compared with several others.
fn common_domain(
    operand: &Expr,
    others: &[Expr],
    operation: &str,
    session: &SessionVars,
) -> Result<Domain> {
    let mut common: Option<Domain> = None;
    for other in others {
        if class(&other.ty) == Class::Null {
            continue;
        }
        let next = domain(operand, other, operation, session)?;
        common = Some(match common {
            None => next,
            Some(held) if held == next => held,
            Some(Domain::Integer | Domain::Decimal)
                if matches!(next, Domain::Integer | Domain::Decimal) =>
            {
                Domain::Decimal
            }
            Some(Domain::Date | Domain::DateTime)
                if matches!(next, Domain::Date | Domain::DateTime) =>
            {
                Domain::DateTime
            }
            // Texts between dates are dates.
            Some(Domain::Date | Domain::DateTime)
                if matches!(next, Domain::Text(_) | Domain::Bytes) =>
            {
                Domain::DateTime
            }
            Some(Domain::Text(_) | Domain::Bytes)
                if matches!(next, Domain::Date | Domain::DateTime) =>
            {
                Domain::DateTime
            }
            Some(Domain::Text(_) | Domain::Bytes)
                if matches!(next, Domain::Text(_) | Domain::Bytes) =>
            {
                let all = std::iter::once(operand).chain(others);
                match collation::aggregate(all, operation, session.collation)? {
                    Collation::BINARY => Domain::Bytes,
                    common => Domain::Text(common),
                }
            }
            Some(_) => Domain::Double,
        });
    }
    Ok(common.unwrap_or(own_domain(class(&operand.ty), &operand.ty)))
}

/// `operand [NOT] BETWEEN low AND high`.
pub fn between(
    operand: Expr,
    low: Expr,
    high: Expr,
    negated: bool,
    session: &SessionVars,
) -> Result<Expr> {
    if [&operand, &low, &high].iter().any(|expr| width(expr) != 1) {
        return Err(Error::operand_columns(1));
    }
    let bounds = [beside(low, &operand), beside(high, &operand)];
    let domain = common_domain(&operand, &bounds, "between", session)?;
    let [low, high] = bounds.map(|bound| Box::new(listed(bound, domain)));
    let operand = Box::new(listed(operand, domain));
    let nullable = operand.nullable || low.nullable || high.nullable;
    Ok(Expr::boolean(
        ExprKind::Between {
            operand,
            low,
            high,
            domain,
            negated,
        },
        nullable,
    ))
}

/// `operand [NOT] IN (list)`. Items of different kinds are compared each in its own domain.
pub fn in_list(
    operand: Expr,
    list: Vec<Expr>,
    negated: bool,
    session: &SessionVars,
) -> Result<Expr> {
    if let ExprKind::Row(items) = &operand.kind {
        return in_rows(items.clone(), list, negated, session);
    }
    if let Some(wrong) = list.iter().find(|item| width(item) != 1) {
        let _ = wrong;
        return Err(Error::operand_columns(1));
    }
    let list: Vec<Expr> = list
        .into_iter()
        .map(|item| beside(item, &operand))
        .collect();
    if list.len() == 1 {
        let op = if negated {
            Comparison::Ne
        } else {
            Comparison::Eq
        };
        if let Some(item) = list.into_iter().next() {
            return compare(op, operand, item, session);
        }
        return Err(Error::operand_columns(1));
    }
    let of_member = |item: &Expr| match class(&item.ty) {
        Class::Null => Some(item.clone()),
        _ => member(item, &operand, session),
    };
    if let Some(members) = list.iter().map(of_member).collect() {
        return Ok(listed_in(operand, members, Domain::Integer, negated));
    }
    let mut domains = Vec::new();
    for item in list.iter().filter(|item| class(&item.ty) != Class::Null) {
        let next = domain(&operand, item, "IN", session)?;
        if !domains.contains(&next) {
            domains.push(next);
        }
    }
    let numbers = domains
        .iter()
        .all(|domain| matches!(domain, Domain::Integer | Domain::Decimal));
    if domains.len() > 1
        && !numbers
        && !domains
            .iter()
            .all(|domain| matches!(domain, Domain::Text(_) | Domain::Bytes))
    {
        let parts: Result<Vec<Expr>> = list
            .into_iter()
            .map(|item| compare_any(Comparison::Eq, operand.clone(), item, session))
            .collect();
        let any = or(parts?);
        return Ok(if negated { not(any) } else { any });
    }
    let domain = common_domain(&operand, &list, "IN", session)?;
    let operand = listed(operand, domain);
    let list: Vec<Expr> = list.into_iter().map(|item| listed(item, domain)).collect();
    Ok(listed_in(operand, list, domain, negated))
}

/// `operand IN (list)`, all of which are in the domain.
fn listed_in(operand: Expr, list: Vec<Expr>, domain: Domain, negated: bool) -> Expr {
    let nullable = operand.nullable || list.iter().any(|item| item.nullable);
    let kind = ExprKind::InList {
        operand: Box::new(operand),
        list,
        domain,
        negated,
    };
    Expr::boolean(kind, nullable)
}

fn in_rows(
    operand: Vec<Expr>,
    list: Vec<Expr>,
    negated: bool,
    session: &SessionVars,
) -> Result<Expr> {
    let compare = match list.len() {
        1 => compare,
        _ => compare_any,
    };
    let parts: Result<Vec<Expr>> = list
        .into_iter()
        .map(|item| match item.kind {
            ExprKind::Row(items) => {
                compare_rows(Comparison::Eq, operand.clone(), items, session, compare)
            }
            _ => Err(Error::operand_columns(operand.len())),
        })
        .collect();
    let mut parts = parts?;
    let any = if parts.len() == 1 {
        parts.remove(0)
    } else {
        or(parts)
    };
    Ok(if negated { not(any) } else { any })
}

/// `operand [NOT] LIKE pattern`.
pub fn like(
    operand: Expr,
    pattern: Expr,
    escape: Option<char>,
    negated: bool,
    session: &SessionVars,
) -> Result<Expr> {
    if width(&operand) != 1 || width(&pattern) != 1 {
        return Err(Error::operand_columns(1));
    }
    let common = collation::aggregate([&operand, &pattern], "like", session.collation)?;
    let text = |expr| {
        let text = text_or_bytes(expr, session);
        Box::new(super::operate::into_collation(text, common, false))
    };
    let (operand, pattern) = (text(operand), text(pattern));
    let nullable = operand.nullable || pattern.nullable;
    Ok(Expr::boolean(
        ExprKind::Like {
            operand,
            pattern,
            escape,
            collation: common,
            negated,
        },
        nullable,
    ))
}

/// Two operands as keys of one hash table or set: both of just one type, so that equal values have
/// equal bytes.
pub fn key_pair(left: Expr, right: Expr, domain: Domain) -> (Expr, Expr) {
    let (left, right) = (
        of_domain(into_domain(left, domain), domain),
        of_domain(into_domain(right, domain), domain),
    );
    match domain {
        Domain::Integer => match (left.ty.is_unsigned(), right.ty.is_unsigned()) {
            (false, false) => (
                retype(left, DataType::BIGINT),
                retype(right, DataType::BIGINT),
            ),
            (true, true) => (
                retype(left, DataType::BIGINT_UNSIGNED),
                retype(right, DataType::BIGINT_UNSIGNED),
            ),
            _ => (
                implicit(left, DataType::decimal(20, 0)),
                implicit(right, DataType::decimal(20, 0)),
            ),
        },
        Domain::Decimal => {
            let scale = left.ty.decimals().max(right.ty.decimals());
            let ty = DataType::decimal(65, scale.min(30));
            (coerce(left, &ty), coerce(right, &ty))
        }
        Domain::Double => (
            retype(left, DataType::DOUBLE),
            retype(right, DataType::DOUBLE),
        ),
        Domain::Text(collation) => (
            retype(left, text_type(255, collation)),
            retype(right, text_type(255, collation)),
        ),
        Domain::Bytes => (
            retype(left, super::bytes_type(255)),
            retype(right, super::bytes_type(255)),
        ),
        Domain::Date => (left, right),
        Domain::Time => (
            retype(left, DataType::Time { fsp: 6 }),
            retype(right, DataType::Time { fsp: 6 }),
        ),
        Domain::DateTime => (datetime_key(left), datetime_key(right)),
        Domain::Json => (left, right),
    }
}

/// Another name for a type whose values are the same. A TIMESTAMP column must keep its own: its
/// value depends on it.
fn retype(expr: Expr, ty: DataType) -> Expr {
    match expr.ty {
        DataType::Null => expr,
        _ => super::renamed(expr, ty),
    }
}

fn datetime_key(expr: Expr) -> Expr {
    match expr.ty {
        DataType::Timestamp { .. } => implicit(expr, DataType::DateTime { fsp: 6 }),
        _ => retype(expr, DataType::DateTime { fsp: 6 }),
    }
}
