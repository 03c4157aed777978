//! The common type of several expressions: CASE's branches, UNION's columns, COALESCE's arguments.

use porpoise_core::error::Result;
use porpoise_types::{BlobSize, Collation, DataType, IntWidth};

use crate::typing::{Class, bytes_type, class, collation, implicit, renamed, text_type};
use crate::{Expr, ExprKind};

/// The type that can hold a value of each. NULLs don't count. Only operations that compare the
/// values mind whether their collations can be mixed.
pub fn merged_type(exprs: &[&Expr], operation: &str, default: Collation) -> Result<DataType> {
    let mut merged: Option<DataType> = None;
    for expr in exprs {
        if expr.ty == DataType::Null {
            continue;
        }
        merged = Some(match merged {
            None => expr.ty.clone(),
            Some(held) if held == expr.ty => held,
            Some(held) => pair(&held, &expr.ty),
        });
    }
    let Some(merged) = merged else {
        return Ok(DataType::Null);
    };
    Ok(match class(&merged) {
        Class::Text | Class::Bytes => {
            let merged = as_long_as_any(merged, exprs);
            let operands = exprs.iter().copied();
            let common = match operation {
                "CASE" | "COALESCE" | "IFNULL" => collation::mixed(operands, operation, default)?,
                _ => collation::aggregate(operands, operation, default)?,
            };
            if merged.collation() == common {
                merged
            } else if common == Collation::BINARY {
                bytes_type(merged.max_chars().saturating_mul(4))
            } else if matches!(
                merged,
                DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_)
            ) {
                text_type(merged.max_chars(), common)
            } else {
                merged.with_collation(common)
            }
        }
        _ => without_zerofill(merged),
    })
}

/// With room for each value as it is spelled: a DECIMAL and a DOUBLE that become a text with a third
/// aren't a DOUBLE before.
fn as_long_as_any(merged: DataType, exprs: &[&Expr]) -> DataType {
    let others = exprs
        .iter()
        .filter(|expr| !matches!(class(&expr.ty), Class::Text | Class::Bytes | Class::Null));
    match &merged {
        DataType::Varchar { length, collation } => {
            let longest = others.map(|expr| super::spelled_chars(&expr.ty)).max();
            match longest {
                Some(longest) if longest > u64::from(*length) => text_type(longest, *collation),
                _ => merged,
            }
        }
        DataType::Varbinary(length) => {
            let longest = others.map(|expr| super::spelled_octets(&expr.ty)).max();
            match longest {
                Some(longest) if longest > u64::from(*length) => bytes_type(longest),
                _ => merged,
            }
        }
        _ => merged,
    }
}

/// Zeros fill a column's own values.
fn without_zerofill(mut ty: DataType) -> DataType {
    match &mut ty {
        DataType::Int { zerofill, .. }
        | DataType::Decimal { zerofill, .. }
        | DataType::Float { zerofill, .. }
        | DataType::Double { zerofill, .. } => *zerofill = false,
        _ => {}
    }
    ty
}

/// Digits before the point and behind it that a number type can have.
pub fn decimal_size(ty: &DataType) -> (u8, u8) {
    match ty {
        DataType::Decimal {
            precision, scale, ..
        } => (precision.saturating_sub(*scale), *scale),
        DataType::Int {
            display_width: Some(digits),
            zerofill: false,
            width: IntWidth::Big,
            ..
        } => (*digits, 0),
        DataType::Int {
            width, unsigned, ..
        } => match (width, unsigned) {
            (IntWidth::Tiny, _) => (3, 0),
            (IntWidth::Small, _) => (5, 0),
            (IntWidth::Medium, _) => (8, 0),
            (IntWidth::Int, _) => (10, 0),
            (IntWidth::Big, false) => (19, 0),
            (IntWidth::Big, true) => (20, 0),
        },
        DataType::Bit(bits) => ((u32::from(*bits) * 301 / 1000 + 1) as u8, 0),
        DataType::Year => (4, 0),
        DataType::Date => (8, 0),
        DataType::Time { fsp } => (7, *fsp),
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => (14, *fsp),
        DataType::Enum(_) | DataType::Set(_) => (20, 0),
        _ => (35, 30),
    }
}

/// Whether a FLOAT has room for every value of a type.
fn fits_float(ty: &DataType) -> bool {
    match ty {
        DataType::Float { .. } | DataType::Year => true,
        DataType::Int { width, .. } => {
            matches!(width, IntWidth::Tiny | IntWidth::Small | IntWidth::Medium)
        }
        _ => false,
    }
}

fn pair(a: &DataType, b: &DataType) -> DataType {
    let (x, y) = (class(a), class(b));
    match (x, y) {
        (Class::Integer, Class::Integer) => integers(a, b),
        (Class::Integer | Class::Decimal, Class::Integer | Class::Decimal) => {
            let ((i, s), (j, t)) = (decimal_size(a), decimal_size(b));
            let scale = s.max(t);
            DataType::Decimal {
                precision: (i.max(j) + scale).min(65),
                scale,
                unsigned: a.is_unsigned() && b.is_unsigned(),
                zerofill: false,
            }
        }
        _ if x.is_number() && y.is_number() => match (a, b) {
            (DataType::Float { .. }, other) | (other, DataType::Float { .. })
                if fits_float(other) =>
            {
                DataType::FLOAT
            }
            _ => DataType::DOUBLE,
        },
        (Class::Date, Class::Date) => DataType::Date,
        (Class::Time, Class::Time) => DataType::Time {
            fsp: a.decimals().max(b.decimals()),
        },
        _ if x.is_temporal() && y.is_temporal() => DataType::DateTime {
            fsp: a.decimals().max(b.decimals()),
        },
        (Class::Json, Class::Json) => DataType::Json,
        (Class::Bytes, Class::Bytes) => {
            blobs(a, b).unwrap_or_else(|| bytes_type(a.max_chars().max(b.max_chars())))
        }
        _ => {
            let text = |ty: &DataType| matches!(class(ty), Class::Text | Class::Member);
            let common = match (text(a), text(b)) {
                (_, false) if text(a) => a.collation(),
                (false, true) => b.collation(),
                (true, true) => a.collation(),
                _ if x == Class::Bytes || y == Class::Bytes => Collation::BINARY,
                _ => Collation::UTF8MB4_0900_AI_CI,
            };
            if let (DataType::Text { size, .. }, DataType::Text { size: other, .. }) = (a, b) {
                return DataType::Text {
                    size: *size.max(other),
                    collation: common,
                };
            }
            if let (DataType::Char { length, .. }, DataType::Char { length: other, .. }) = (a, b) {
                return DataType::Varchar {
                    length: *length.max(other),
                    collation: common,
                };
            }
            if x == Class::Bytes || y == Class::Bytes {
                return bytes_type(
                    a.max_octets(porpoise_types::Charset::Utf8mb4)
                        .max(b.max_octets(porpoise_types::Charset::Utf8mb4))
                        .max(super::spelled_chars(a))
                        .max(super::spelled_chars(b)),
                );
            }
            for (this, other) in [(a, b), (b, a)] {
                if let DataType::Text { size, .. } = this
                    && other.max_chars() <= size.max_octets() / 4
                {
                    return DataType::Text {
                        size: *size,
                        collation: common,
                    };
                }
            }
            text_type(super::spelled_chars(a).max(super::spelled_chars(b)), common)
        }
    }
}

fn blobs(a: &DataType, b: &DataType) -> Option<DataType> {
    let size = |ty: &DataType| match ty {
        DataType::Blob(size) => Some(*size),
        DataType::Binary(n) | DataType::Varbinary(n) if *n <= 255 => Some(BlobSize::Tiny),
        _ => None,
    };
    match (a, b) {
        (DataType::Blob(_), _) | (_, DataType::Blob(_)) => {
            Some(DataType::Blob(size(a)?.max(size(b)?)))
        }
        _ => None,
    }
}

fn integers(a: &DataType, b: &DataType) -> DataType {
    if let (DataType::Bit(m), DataType::Bit(n)) = (a, b) {
        return DataType::Bit(*m.max(n));
    }
    if let (DataType::Year, DataType::Year) = (a, b) {
        return DataType::Year;
    }
    let width = |ty: &DataType| match ty {
        DataType::Int { width, .. } => *width,
        DataType::Year => IntWidth::Small,
        _ => IntWidth::Big,
    };
    let shown = |ty: &DataType| match ty {
        DataType::Int { display_width, .. } => *display_width,
        _ => None,
    };
    let (w, v) = (width(a), width(b));
    let display_width = match (shown(a), shown(b)) {
        (Some(m), Some(n)) if w == IntWidth::Big && v == IntWidth::Big => Some(m.max(n)),
        _ => None,
    };
    let int = |width, unsigned| DataType::Int {
        width,
        unsigned,
        zerofill: false,
        display_width,
    };
    match (a.is_unsigned(), b.is_unsigned()) {
        (true, true) => int(w.max(v), true),
        (false, false) => int(w.max(v), false),
        (a_unsigned, _) => {
            // The signed type must hold the unsigned one's greatest value.
            let (of_unsigned, of_signed) = if a_unsigned { (w, v) } else { (v, w) };
            let wider = match of_unsigned {
                IntWidth::Tiny => IntWidth::Small,
                IntWidth::Small => IntWidth::Medium,
                IntWidth::Medium => IntWidth::Int,
                IntWidth::Int => IntWidth::Big,
                IntWidth::Big => return DataType::decimal(20, 0),
            };
            int(wider.max(of_signed), false)
        }
    }
}

/// Makes an expression's values lie as `ty` says, converting where they don't already.
pub fn coerce(expr: Expr, ty: &DataType) -> Expr {
    let same = match (class(&expr.ty), class(ty)) {
        (Class::Null, _) => true,
        (Class::Integer, Class::Integer) => match (&expr.ty, ty) {
            (DataType::Int { unsigned: a, .. }, DataType::Int { unsigned: b, .. }) => a == b,
            (a, b) => a == b,
        },
        (Class::Decimal, Class::Decimal) => expr.ty.decimals() == ty.decimals(),
        (Class::Double, Class::Double) => {
            !matches!(ty, DataType::Float { .. }) || matches!(expr.ty, DataType::Float { .. })
        }
        (Class::Text, Class::Text) | (Class::Bytes, Class::Bytes) => true,
        (Class::Member, Class::Member) => expr.ty == *ty,
        (a, b) => a == b,
    };
    if !same {
        return implicit(expr, ty.clone());
    }
    // A collation that is taken on isn't the operand's own: what has none in common with it must be
    // known later.
    if class(ty) == Class::Text
        && class(&expr.ty) == Class::Text
        && expr.ty.collation() != ty.collation()
        && !matches!(
            expr.kind,
            ExprKind::Call { .. } | ExprKind::Literal(_) | ExprKind::Parameter(_)
        )
    {
        return implicit(expr, ty.clone());
    }
    let takes_name = matches!(class(ty), Class::Integer | Class::Text | Class::Bytes)
        && class(&expr.ty) == class(ty)
        && !matches!(expr.kind, ExprKind::Call { .. });
    match takes_name {
        // The same values under the wider name: keys made of them have the same bytes.
        true => renamed(expr, ty.clone()),
        false => expr,
    }
}
