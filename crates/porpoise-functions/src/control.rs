//! Control flow and comparison (MySQL 8.4 manual, 14.5 and 14.4.2).
//!
//! IF, IFNULL, COALESCE, NULLIF, GREATEST and LEAST find their common type in the planner; IF and
//! NULLIF become CASE there.

use std::cmp::Ordering;

use porpoise_core::error::Result;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, at_least, exactly, pure,
};
use porpoise_expr::{Domain, compare};
use porpoise_types::{DataType, Value};

pub static TABLE: &[Function] = &[
    // Where rows are grouped, the planner puts the aggregate in its place.
    pure(
        "ANY_VALUE",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Same(0),
        Eval::Strict(|_, values| Ok(values[0].clone())),
    ),
    pure(
        "COALESCE",
        at_least(1),
        &[ArgumentKind::Any],
        Returns::Same(0),
        Eval::Lazy(coalesce),
    ),
    pure(
        "GREATEST",
        at_least(2),
        &[ArgumentKind::Any],
        Returns::Same(0),
        Eval::Strict(|call, values| extreme(call, values, Ordering::Greater)),
    ),
    pure(
        "IF",
        exactly(3),
        &[ArgumentKind::Any],
        Returns::Same(1),
        Eval::Lazy(coalesce),
    ),
    pure(
        "IFNULL",
        exactly(2),
        &[ArgumentKind::Any],
        Returns::Same(0),
        Eval::Lazy(coalesce),
    ),
    pure(
        "INTERVAL",
        at_least(2),
        &[ArgumentKind::Double],
        Returns::Int,
        Eval::Values(interval),
    ),
    pure(
        "ISNULL",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Bool,
        Eval::Values(|_, values| Ok(Value::Int(values[0].is_null().into()))),
    ),
    pure(
        "LEAST",
        at_least(2),
        &[ArgumentKind::Any],
        Returns::Same(0),
        Eval::Strict(|call, values| extreme(call, values, Ordering::Less)),
    ),
    pure(
        "NULLIF",
        exactly(2),
        &[ArgumentKind::Any],
        Returns::Same(0),
        Eval::Lazy(coalesce),
    ),
];

fn coalesce(call: &mut Call<'_>) -> Result<Value> {
    for argument in call.arguments {
        let value = call.context.evaluate(argument)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

fn extreme(call: &mut Call<'_>, values: &[Value], wanted: Ordering) -> Result<Value> {
    let domain = Domain::of(
        call.arguments
            .first()
            .map_or(&DataType::Null, |argument| &argument.ty),
    );
    let mut best = &values[0];
    for value in &values[1..] {
        if compare::compare(value, best, domain) == wanted {
            best = value;
        }
    }
    Ok(best.clone())
}

/// How many of the sorted values are not greater than the first; -1 for NULL.
fn interval(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let Value::Double(number) = values[0] else {
        return Ok(Value::Int(-1));
    };
    let count = values[1..].iter().take_while(|value| match value {
        Value::Double(bound) => number >= *bound,
        _ => true,
    });
    Ok(Value::Int(count.count() as i64))
}
