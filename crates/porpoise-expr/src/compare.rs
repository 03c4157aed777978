//! Comparison of values, in the domain that typing chose for them.

use std::cmp::Ordering;

use porpoise_types::{DataType, Value, convert};

use super::{Comparison, Domain};

/// Compares in a domain; `None` if a side is NULL.
pub fn comparison(op: Comparison, left: &Value, right: &Value, domain: Domain) -> Option<bool> {
    if left.is_null() || right.is_null() {
        return (op == Comparison::NullSafeEq).then(|| left.is_null() && right.is_null());
    }
    Some(op.holds(compare(left, right, domain)))
}

/// The order of two values that are not NULL, in a domain.
pub fn compare(left: &Value, right: &Value, domain: Domain) -> Ordering {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Int(a), Value::UInt(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::UInt(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Date(a), Value::DateTime(b)) => a.at_midnight().cmp(b),
        (Value::DateTime(a), Value::Date(b)) => a.cmp(&b.at_midnight()),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Json(a), Value::Json(b)) => a.value().compare(b.value()),
        _ => match (left.as_bytes(), right.as_bytes(), domain) {
            (Some(a), Some(b), Domain::Text(collation)) => collation.compare(a, b),
            (Some(a), Some(b), _) => a.cmp(b),
            // Numbers of different kinds: one of them was lifted out of the statement as a
            // parameter.
            _ => match domain {
                Domain::Decimal | Domain::Integer => convert::to_decimal(left)
                    .0
                    .cmp(&convert::to_decimal(right).0),
                _ => convert::to_double(left)
                    .0
                    .partial_cmp(&convert::to_double(right).0)
                    .unwrap_or(Ordering::Equal),
            },
        },
    }
}

impl Comparison {
    /// Whether it is true of two values in this order.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq | Comparison::NullSafeEq => order == Ordering::Equal,
            Comparison::Ne => order != Ordering::Equal,
            Comparison::Lt => order == Ordering::Less,
            Comparison::Le => order != Ordering::Greater,
            Comparison::Gt => order == Ordering::Greater,
            Comparison::Ge => order != Ordering::Less,
        }
    }
}

impl Domain {
    /// The domain in which two values of one type are compared.
    pub fn of(ty: &DataType) -> Domain {
        match ty {
            DataType::Int { .. }
            | DataType::Bit(_)
            | DataType::Year
            | DataType::Enum(_)
            | DataType::Set(_) => Domain::Integer,
            DataType::Decimal { .. } => Domain::Decimal,
            DataType::Float { .. } | DataType::Double { .. } => Domain::Double,
            DataType::Date => Domain::Date,
            DataType::Time { .. } => Domain::Time,
            DataType::DateTime { .. } | DataType::Timestamp { .. } => Domain::DateTime,
            DataType::Json => Domain::Json,
            other if other.is_binary_string() => Domain::Bytes,
            other => Domain::Text(other.collation()),
        }
    }
}
