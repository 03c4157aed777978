//! Literals that were lifted out of a statement's text, as the parameters of its plan.

use porpoise_core::variables::SessionVars;
use porpoise_planner::plan::{Plan, PlanKind};
use porpoise_session::plan_cache::CachedPlan;
use porpoise_sql::{LiteralValue, Literals, Modes, ParamMask};
use porpoise_types::{DataType, Decimal, Value};

use crate::session::Session;
use crate::session::execute_text::DigestedText;

impl Session {
    /// The values of literals that are parameters, by number. A literal that is none leaves NULL in
    /// its place.
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
                literal_value(literal.value(sql, modes), &self.state)
            } else {
                Value::Null
            });
        }
    }

    /// Whether a kept plan's columns hold what this text's literals make: where it says how long they
    /// may be, none is longer.
    pub(super) fn holds_texts(&self, cached: &CachedPlan, text: &DigestedText<'_>) -> bool {
        let mut literals = text.literals.iter().zip(&cached.text_lengths);
        literals.all(|(literal, &most)| {
            // A text has no more characters than its spelling has bytes between the quotes.
            literal.end - literal.start <= most.saturating_add(2)
                || text_length(&self.literal_type(literal.value(text.sql, text.modes))) <= most
        })
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
            LiteralValue::String(bytes) => match self.state.string_value(bytes) {
                Value::Bytes(bytes) if self.state.collation.is_binary() => {
                    DataType::Varbinary(bytes.len() as u32)
                }
                value => DataType::Varchar {
                    length: chars(&value),
                    collation: self.state.collation,
                },
            },
            // The planner tells them from strings of bytes by that.
            LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => {
                DataType::Binary(bytes.len() as u32)
            }
        }
    }
}

/// Whether a plan's result has texts that it computes: how long they are said to be depends on how
/// long the literals are that it was made for.
pub(super) fn has_computed_text(plan: &Plan) -> bool {
    let PlanKind::Query(query) = &plan.kind else {
        return false;
    };
    let mut columns = query.columns.iter();
    columns.any(|column| column.schema.is_empty() && column.ty.is_string())
}

/// How many characters or bytes a text or binary literal's type holds.
pub(super) fn text_length(ty: &DataType) -> u32 {
    match ty {
        DataType::Varchar { length, .. }
        | DataType::Varbinary(length)
        | DataType::Binary(length) => *length,
        _ => 0,
    }
}

/// Has a text or binary literal's type hold `least`.
pub(super) fn lengthen(ty: &mut DataType, least: u32) {
    if let DataType::Varchar { length, .. }
    | DataType::Varbinary(length)
    | DataType::Binary(length) = ty
    {
        *length = least.max(*length);
    }
}

/// How many characters a string literal has.
fn chars(value: &Value) -> u32 {
    match value {
        Value::Text(text) => text.chars().count() as u32,
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).chars().count() as u32,
        _ => 0,
    }
}

/// A literal's value.
pub(crate) fn literal_value(value: LiteralValue<'_>, session: &SessionVars) -> Value {
    match value {
        LiteralValue::Int(v) => i64::try_from(v).map_or(Value::UInt(v), Value::Int),
        LiteralValue::Decimal(text) => Value::Decimal(parse_decimal(text)),
        LiteralValue::Double(v) => Value::Double(v),
        LiteralValue::String(bytes) => session.string_value(bytes),
        LiteralValue::Hex(bytes) | LiteralValue::Bit(bytes) => Value::Bytes(bytes),
    }
}

fn parse_decimal(text: &str) -> Decimal {
    porpoise_types::convert::to_decimal(&Value::text(text)).0
}
