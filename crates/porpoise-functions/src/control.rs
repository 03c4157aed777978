//! Control flow and comparison (MySQL 8.4 manual, 14.5 and 14.4.2).
//!
//! IF, IFNULL, COALESCE, NULLIF, GREATEST and LEAST find their common type in the planner; IF and
//! NULLIF become CASE there.

use std::cmp::Ordering;

use porpoise_core::error::Result;
use porpoise_expr::cast::cast_value;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, at_least, exactly, pure,
};
use porpoise_expr::typing::{Class, class};
use porpoise_expr::{CastKind, Domain, Expr, compare};
use porpoise_types::{DataType, Value, convert};

pub static TABLE: &[Function] = &[
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
    let is_dated = |argument: &Expr| matches!(class(&argument.ty), Class::Date | Class::DateTime);
    if class(call.ty) == Class::Text && call.arguments.iter().any(is_dated) {
        return extreme_date(call, values, wanted);
    }
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

/// The text of the least or greatest date; NULL where a string is none.
fn extreme_date(call: &mut Call<'_>, values: &[Value], wanted: Ordering) -> Result<Value> {
    let target = DataType::DateTime { fsp: 6 };
    let mut best: Option<(usize, Value)> = None;
    for (at, value) in values.iter().enumerate() {
        let from = call.arguments[at].ty.clone();
        let date = cast_value(
            call.context,
            value.clone(),
            &from,
            &target,
            CastKind::Implicit,
        )?;
        if date.is_null() {
            return Ok(Value::Null);
        }
        let is_better =
            |(_, held): &(usize, Value)| compare::compare(&date, held, Domain::DateTime) == wanted;
        if best.as_ref().is_none_or(is_better) {
            best = Some((at, date));
        }
    }
    let at = best.map_or(0, |(at, _)| at);
    let text = convert::to_compact_text(&values[at], &call.arguments[at].ty);
    Ok(Value::Text(text))
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
