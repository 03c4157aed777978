//! Dates and times moved by intervals, and the distances between them (MySQL 8.4 manual, 14.7).

use porpoise_core::error::{Error, Result};
use porpoise_expr::cast::cast_value;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, between, exactly, pure,
};
use porpoise_expr::{Expr, ExprKind};
use porpoise_types::{
    Collation, DataType, DateTime, Interval, IntervalUnit, Loss, Time, Value, convert,
};

use crate::temporal::{DAY_US, date, full_year, micros_of, moment, time, unit};

pub static TABLE: &[Function] = &[
    pure(
        "ADDDATE",
        between(2, 3),
        &[ArgumentKind::Any, ArgumentKind::Amount],
        Returns::By(shifted_type),
        Eval::Strict(|call, values| shift(call, values, false)),
    ),
    pure(
        "ADDTIME",
        exactly(2),
        &[ArgumentKind::Any, ArgumentKind::Time],
        Returns::By(add_time_type),
        Eval::Strict(|call, values| add_time(call, values, false)),
    ),
    pure(
        "DATEDIFF",
        exactly(2),
        &[ArgumentKind::Date],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(match (date(&values[0]), date(&values[1])) {
                (Some(a), Some(b)) if a.is_real() && b.is_real() => {
                    Value::Int(a.day_number() - b.day_number())
                }
                _ => Value::Null,
            })
        }),
    ),
    pure(
        "DATE_ADD",
        exactly(3),
        &[ArgumentKind::Any, ArgumentKind::Amount],
        Returns::By(shifted_type),
        Eval::Strict(|call, values| shift(call, values, false)),
    ),
    pure(
        "DATE_SUB",
        exactly(3),
        &[ArgumentKind::Any, ArgumentKind::Amount],
        Returns::By(shifted_type),
        Eval::Strict(|call, values| shift(call, values, true)),
    ),
    pure(
        "PERIOD_ADD",
        exactly(2),
        &[ArgumentKind::Integer],
        Returns::Int,
        Eval::Strict(|_, values| {
            let months = months_of("period_add", &values[0])?;
            let sum = months.saturating_add(convert::to_int(&values[1]).0);
            Ok(Value::Int(period_of(sum)))
        }),
    ),
    pure(
        "PERIOD_DIFF",
        exactly(2),
        &[ArgumentKind::Integer],
        Returns::Int,
        Eval::Strict(|_, values| {
            let months = months_of("period_diff", &values[0])?;
            Ok(Value::Int(months - months_of("period_diff", &values[1])?))
        }),
    ),
    pure(
        "SUBDATE",
        between(2, 3),
        &[ArgumentKind::Any, ArgumentKind::Amount],
        Returns::By(shifted_type),
        Eval::Strict(|call, values| shift(call, values, true)),
    ),
    pure(
        "SUBTIME",
        exactly(2),
        &[ArgumentKind::Any, ArgumentKind::Time],
        Returns::By(add_time_type),
        Eval::Strict(|call, values| add_time(call, values, true)),
    ),
    pure(
        "TIMEDIFF",
        exactly(2),
        &[ArgumentKind::Temporal],
        Returns::By(|arguments| {
            let fsp = arguments
                .iter()
                .map(|argument| argument.ty.decimals())
                .max();
            Ok(DataType::Time {
                fsp: fsp.unwrap_or(0).min(6),
            })
        }),
        Eval::Strict(time_diff),
    ),
    pure(
        "TIMESTAMPDIFF",
        exactly(3),
        &[
            ArgumentKind::String,
            ArgumentKind::DateTime,
            ArgumentKind::DateTime,
        ],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(
                match (unit(&values[0]), moment(&values[1]), moment(&values[2])) {
                    (Some(unit), Some(from), Some(to))
                        if from.date().is_real() && to.date().is_real() =>
                    {
                        Value::Int(from.difference(to, unit))
                    }
                    _ => Value::Null,
                },
            )
        }),
    ),
];

fn literal_unit(arguments: &[Expr]) -> IntervalUnit {
    match arguments.get(2).map(|argument| &argument.kind) {
        Some(ExprKind::Literal(value)) => unit(value).unwrap_or(IntervalUnit::Day),
        _ => IntervalUnit::Day,
    }
}

/// How many digits of a second an interval can have: of seconds, as many as the amount.
fn interval_fraction(unit: IntervalUnit, amount: Option<&Expr>) -> u8 {
    if unit.name().contains("MICROSECOND") {
        return 6;
    }
    match amount.map(|amount| &amount.ty) {
        Some(DataType::Decimal { scale, .. }) if unit == IntervalUnit::Second => (*scale).min(6),
        Some(ty) if unit == IntervalUnit::Second && !ty.is_integer() && *ty != DataType::Null => 6,
        _ => 0,
    }
}

fn shifted_type(arguments: &[Expr]) -> Result<DataType> {
    let unit = literal_unit(arguments);
    let micros = interval_fraction(unit, arguments.get(1));
    Ok(match &arguments[0].ty {
        DataType::Date if !unit.has_time() => DataType::Date,
        DataType::Date => DataType::DateTime { fsp: micros },
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => DataType::DateTime {
            fsp: micros.max(*fsp),
        },
        DataType::Time { fsp } if !unit.has_days() => DataType::Time {
            fsp: micros.max(*fsp),
        },
        DataType::Time { fsp } => DataType::DateTime { fsp: *fsp },
        _ => DataType::Varchar {
            length: 29,
            collation: Collation::UTF8MB4_0900_AI_CI,
        },
    })
}

/// The amount of an interval.
fn interval(value: &Value, ty: &DataType, unit: IntervalUnit) -> Option<Interval> {
    let simple = !unit.name().contains('_');
    if !simple {
        return Interval::parse(&convert::to_text(value, ty), unit);
    }
    if unit == IntervalUnit::Second {
        return Some(Interval {
            months: 0,
            micros: micros_of(value),
        });
    }
    let count = match value {
        // A text's amount ends with its first character that is no digit.
        Value::Text(text) => convert::integer_prefix(text.as_bytes()).0 as i64,
        Value::Bytes(text) => convert::integer_prefix(text).0 as i64,
        other => convert::to_int(other).0,
    };
    Interval::from_count(count, unit)
}

fn overflow(call: &mut Call<'_>) -> Result<Value> {
    let error = Error::datetime_overflow("date_add_interval");
    call.context.vars_mut().warn_or_fail(error)?;
    Ok(Value::Null)
}

fn shift(call: &mut Call<'_>, values: &[Value], subtract: bool) -> Result<Value> {
    let unit = values
        .get(2)
        .map_or(Some(IntervalUnit::Day), unit)
        .unwrap_or(IntervalUnit::Day);
    let Some(mut interval) = interval(&values[1], &call.arguments[1].ty, unit) else {
        return overflow(call);
    };
    if subtract {
        interval = -interval;
    }
    if let (Value::Time(time), DataType::Time { .. }) = (&values[0], call.ty) {
        let sum = time.micros().saturating_add(interval.micros);
        return Time::from_micros(sum).map_or_else(|| overflow(call), |sum| Ok(Value::Time(sum)));
    }
    let (start, date_only) = match &values[0] {
        Value::Date(date) => (date.at_midnight(), true),
        Value::DateTime(moment) => (*moment, false),
        other => {
            let ty = call.arguments[0].ty.clone();
            let target = DataType::DateTime { fsp: 6 };
            let converted = cast_value(
                call.context,
                other.clone(),
                &ty,
                &target,
                porpoise_expr::CastKind::Implicit,
            )?;
            let Some(moment) = moment(&converted) else {
                return Ok(Value::Null);
            };
            // A text that is a date alone gives a date: up to three numbers, whatever is between them.
            let text = other.as_bytes().unwrap_or_default();
            let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
            let numbers = text
                .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
                .filter(|run| run[0].is_ascii_digit())
                .count();
            let dated = match other {
                Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_) => {
                    convert::to_double(other).0 < 1e8
                }
                _ => digits <= 8 && numbers <= 3,
            };
            (moment, dated)
        }
    };
    if !start.date().is_real() {
        return Ok(Value::Null);
    }
    let Some(end) = start.checked_add(interval) else {
        return overflow(call);
    };
    Ok(match call.ty {
        DataType::Date => Value::Date(end.date()),
        DataType::DateTime { .. } => Value::DateTime(end),
        _ => {
            let mut out = Vec::new();
            if date_only && !unit.has_time() {
                end.date().write_text(&mut out);
            } else {
                end.write_text(if end.microsecond() > 0 { 6 } else { 0 }, &mut out);
            }
            Value::text(String::from_utf8_lossy(&out))
        }
    })
}

fn add_time_type(arguments: &[Expr]) -> Result<DataType> {
    let fsp = arguments[0]
        .ty
        .decimals()
        .max(arguments[1].ty.decimals())
        .min(6);
    Ok(match &arguments[0].ty {
        DataType::Time { .. } => DataType::Time { fsp },
        DataType::DateTime { .. } | DataType::Timestamp { .. } | DataType::Date => {
            DataType::DateTime { fsp }
        }
        _ => DataType::Varchar {
            length: 29,
            collation: Collation::UTF8MB4_0900_AI_CI,
        },
    })
}

fn add_time(call: &mut Call<'_>, values: &[Value], subtract: bool) -> Result<Value> {
    let Some(added) = time(&values[1]) else {
        return Ok(Value::Null);
    };
    let added = if subtract {
        -added.micros()
    } else {
        added.micros()
    };
    let cx = call.context.conversion();
    let is_text = matches!(call.ty, DataType::Varchar { .. });
    let start = match &values[0] {
        value @ (Value::Time(_) | Value::DateTime(_) | Value::Date(_)) => value.clone(),
        other => match convert::to_datetime(other, &cx) {
            (Some(moment), Loss::None | Loss::Rounded)
                if other.as_bytes().is_some_and(|text| text.len() > 9) =>
            {
                Value::DateTime(moment)
            }
            _ => match convert::to_time(other, &cx) {
                (Some(time), loss) if other.as_bytes().is_some() || loss != Loss::OutOfRange => {
                    Value::Time(time)
                }
                _ => Value::Null,
            },
        },
    };
    let result = match start {
        Value::Time(time) => Value::Time(Time::from_micros_clamped(
            time.micros().saturating_add(added),
        )),
        Value::Null => Value::Null,
        other => moment(&other)
            .and_then(|moment| {
                moment.checked_add(Interval {
                    months: 0,
                    micros: added,
                })
            })
            .map_or(Value::Null, Value::DateTime),
    };
    if !is_text {
        return Ok(result);
    }
    let mut out = Vec::new();
    match result {
        Value::Time(time) => time.write_text(if time.microsecond() > 0 { 6 } else { 0 }, &mut out),
        Value::DateTime(moment) => {
            moment.write_text(if moment.microsecond() > 0 { 6 } else { 0 }, &mut out)
        }
        _ => return Ok(Value::Null),
    }
    Ok(Value::text(String::from_utf8_lossy(&out)))
}

/// Months since year 0 of a period YYYYMM or YYMM, which has to have a month from 1 to 12.
fn months_of(function: &str, period: &Value) -> Result<i64> {
    let period = convert::to_int(period).0;
    if period <= 0 || !(1..=12).contains(&(period % 100)) {
        return Err(Error::wrong_arguments(function));
    }
    Ok(full_year(period / 100) * 12 + period % 100 - 1)
}

/// The period of so many months since year 0; a year that no number holds wraps.
fn period_of(months: i64) -> i64 {
    months
        .div_euclid(12)
        .wrapping_mul(100)
        .wrapping_add(months.rem_euclid(12) + 1)
}

/// Both sides must be of one kind.
fn time_diff(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let micros = |moment: DateTime| moment.date().day_number() * DAY_US + moment.micros_of_day();
    Ok(match (&values[0], &values[1]) {
        (Value::Time(a), Value::Time(b)) => {
            Value::Time(Time::from_micros_clamped(a.micros() - b.micros()))
        }
        (a @ (Value::DateTime(_) | Value::Date(_)), b @ (Value::DateTime(_) | Value::Date(_))) => {
            match (moment(a), moment(b)) {
                (Some(a), Some(b)) => Value::Time(Time::from_micros_clamped(micros(a) - micros(b))),
                _ => Value::Null,
            }
        }
        _ => Value::Null,
    })
}
