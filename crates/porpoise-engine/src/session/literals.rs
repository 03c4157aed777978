//! Literals that were lifted out of a statement's text, as the parameters of its plan.

use porpoise_sql::{LiteralValue, Literals, Modes, ParamMask};
use porpoise_types::{DataType, Decimal, Value};

use crate::session::Session;

impl Session {
    /// The values of literals that are parameters, by number. A literal that is none leaves NULL in its place.
    pub(super) fn literal_values(
        &self,
        sql: &[u8],
        literals: &Literals,
        mask: Option<&ParamMask>,
        modes: Modes,
        out: &mut Vec<Value>,
    ) {
        for (number, literal) in literals.iter().enumerate() {
            let lifted = mask.is_none_or(|mask| mask.has(number as u32));
            out.push(if lifted {
                literal_value(literal.value(sql, modes))
            } else {
                Value::Null
            });
        }
    }

    /// The type that the planner gives a parameter that stands for a literal.
    pub(super) fn literal_type(&self, value: LiteralValue<'_>) -> DataType {
        match value {
            LiteralValue::Int(v) if v > i64::MAX as u64 => DataType::BIGINT_UNSIGNED,
            LiteralValue::Int(_) => DataType::BIGINT,
            LiteralValue::Decimal(text) => {
                let decimal = parse_decimal(text);
                let scale = decimal.scale();
                DataType::decimal((decimal.integer_digits() as u8 + scale).clamp(1, 65), scale)
            }
            LiteralValue::Double(_) => DataType::DOUBLE,
            LiteralValue::String(bytes) => DataType::Varchar {
                length: String::from_utf8_lossy(&bytes).chars().count() as u32,
                collation: self.state.collation,
            },
            LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => {
                DataType::Varbinary(bytes.len() as u32)
            }
        }
    }
}

/// A literal's value. A text that isn't well-formed is bytes, as drivers send them into BLOB and BIT columns.
pub(crate) fn literal_value(value: LiteralValue<'_>) -> Value {
    match value {
        LiteralValue::Int(v) => i64::try_from(v).map_or(Value::UInt(v), Value::Int),
        LiteralValue::Decimal(text) => Value::Decimal(parse_decimal(text)),
        LiteralValue::Double(v) => Value::Double(v),
        LiteralValue::String(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) => Value::text(text),
            Err(_) => Value::Bytes(bytes.into_owned()),
        },
        LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => Value::Bytes(bytes),
    }
}

fn parse_decimal(text: &str) -> Decimal {
    porpoise_types::convert::to_decimal(&Value::text(text)).0
}
