//! Date and time functions (MySQL 8.4 manual, 14.7).
//!
//! An interval's unit comes as a text literal, the last argument (`DATE_ADD(d, 1, 'DAY')`) or the
//! first (`EXTRACT('YEAR', d)`), which the planner writes there. Bad dates are NULL with warning
//! 1292, which the conversion of the argument gives.

use crate::date_format::formatted_chars;
use porpoise_core::error::{Error, Result};
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Purity, Returns, between, exactly, pure, stable,
};
use porpoise_expr::{Expr, ExprKind, typing};
use porpoise_types::temporal::format::date_format;
use porpoise_types::{
    Collation, DataType, Date, DateTime, Decimal, Interval, IntervalUnit, Time, TimeZone, Value,
    convert,
};

pub(super) const MICROS: i64 = 1_000_000;
/// The longest name of a day or a month in any language.
const NAME_CHARS_MAX: u32 = 30;
pub(super) const DAY_US: i64 = 86_400 * MICROS;

macro_rules! date_part {
    ($name:literal, $part:expr) => {
        date_part!($name, Returns::Int, $part)
    };
    ($name:literal, $returns:expr, $part:expr) => {
        pure(
            $name,
            exactly(1),
            &[ArgumentKind::LooseDate],
            $returns,
            Eval::Strict(|_, values| Ok(date(&values[0]).map_or(Value::Null, |date| $part(date)))),
        )
    };
}

macro_rules! time_part {
    ($name:literal, $part:expr) => {
        pure(
            $name,
            exactly(1),
            &[ArgumentKind::Time],
            Returns::Int,
            Eval::Strict(|_, values| {
                Ok(time(&values[0]).map_or(Value::Null, |time| Value::Int($part(time) as i64)))
            }),
        )
    };
}

pub static TABLE: &[Function] = &[
    pure(
        "CONVERT_TZ",
        exactly(3),
        &[
            ArgumentKind::DateTime,
            ArgumentKind::String,
            ArgumentKind::String,
        ],
        Returns::By(datetime_type),
        Eval::Strict(convert_tz),
    ),
    stable(
        "CURDATE",
        exactly(0),
        &[],
        Returns::Fixed(|| DataType::Date),
        Eval::Values(|call, _| Ok(Value::Date(call.context.now().date()))),
    ),
    stable(
        "CURRENT_DATE",
        exactly(0),
        &[],
        Returns::Fixed(|| DataType::Date),
        Eval::Values(|call, _| Ok(Value::Date(call.context.now().date()))),
    ),
    stable(
        "CURRENT_TIME",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(|arguments| {
            Ok(DataType::Time {
                fsp: fsp_of(arguments)?,
            })
        }),
        Eval::Values(now_time),
    ),
    stable(
        "CURRENT_TIMESTAMP",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(now_type),
        Eval::Values(now),
    ),
    stable(
        "CURTIME",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(|arguments| {
            Ok(DataType::Time {
                fsp: fsp_of(arguments)?,
            })
        }),
        Eval::Values(now_time),
    ),
    pure(
        "DATE",
        exactly(1),
        &[ArgumentKind::Date],
        Returns::Fixed(|| DataType::Date),
        Eval::Strict(|_, values| Ok(values[0].clone())),
    ),
    date_part!("DAY", |date: Date| Value::Int(date.day().into())),
    pure(
        "DAYNAME",
        exactly(1),
        &[ArgumentKind::LooseDate],
        Returns::Text(NAME_CHARS_MAX),
        Eval::Strict(|call, values| {
            Ok(date(&values[0])
                .filter(|date| date.is_real())
                .and_then(|date| call.context.vars().locale.weekday(date.weekday()))
                .map_or(Value::Null, Value::text))
        }),
    ),
    date_part!("DAYOFMONTH", |date: Date| Value::Int(date.day().into())),
    date_part!("DAYOFWEEK", |date: Date| real(date, |date| (i64::from(
        date.weekday()
    ) + 1)
        % 7
        + 1)),
    date_part!("DAYOFYEAR", |date: Date| real(date, |date| date
        .day_of_year()
        .into())),
    pure(
        "EXTRACT",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Temporal],
        Returns::Int,
        Eval::Strict(extract),
    ),
    pure(
        "FROM_DAYS",
        exactly(1),
        &[ArgumentKind::Integer],
        Returns::Fixed(|| DataType::Date),
        Eval::Strict(|_, values| {
            Ok(day_of_number(convert::to_int(&values[0]).0).map_or(Value::Null, Value::Date))
        }),
    ),
    stable(
        "FROM_UNIXTIME",
        between(1, 2),
        &[ArgumentKind::Number, ArgumentKind::String],
        Returns::By(from_unixtime_type),
        Eval::Strict(from_unixtime),
    ),
    time_part!("HOUR", Time::hours),
    pure(
        "LAST_DAY",
        exactly(1),
        &[ArgumentKind::Date],
        Returns::Fixed(|| DataType::Date),
        Eval::Strict(|_, values| {
            Ok(date(&values[0])
                .and_then(Date::last_day)
                .map_or(Value::Null, Value::Date))
        }),
    ),
    stable(
        "LOCALTIME",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(now_type),
        Eval::Values(now),
    ),
    stable(
        "LOCALTIMESTAMP",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(now_type),
        Eval::Values(now),
    ),
    pure(
        "MAKEDATE",
        exactly(2),
        &[ArgumentKind::Integer],
        Returns::Fixed(|| DataType::Date),
        Eval::Strict(make_date),
    ),
    pure(
        "MAKETIME",
        exactly(3),
        &[
            ArgumentKind::Integer,
            ArgumentKind::Integer,
            ArgumentKind::Decimal,
        ],
        Returns::By(|arguments| {
            Ok(DataType::Time {
                fsp: arguments[2].ty.decimals().min(6),
            })
        }),
        Eval::Strict(make_time),
    ),
    time_part!("MICROSECOND", Time::microsecond),
    time_part!("MINUTE", Time::minute),
    date_part!("MONTH", |date: Date| Value::Int(date.month().into())),
    pure(
        "MONTHNAME",
        exactly(1),
        &[ArgumentKind::LooseDate],
        Returns::Text(NAME_CHARS_MAX),
        Eval::Strict(|call, values| {
            Ok(date(&values[0])
                .and_then(|date| call.context.vars().locale.month(date.month()))
                .map_or(Value::Null, Value::text))
        }),
    ),
    stable(
        "NOW",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(now_type),
        Eval::Values(now),
    ),
    date_part!("QUARTER", |date: Date| Value::Int(
        (i64::from(date.month()) + 2) / 3
    )),
    time_part!("SECOND", Time::second),
    pure(
        "SEC_TO_TIME",
        exactly(1),
        &[ArgumentKind::Number],
        Returns::By(|arguments| {
            Ok(DataType::Time {
                fsp: fraction(&arguments[0].ty),
            })
        }),
        Eval::Strict(|_, values| {
            Ok(Value::Time(Time::from_micros_clamped(micros_of(
                &values[0],
            ))))
        }),
    ),
    Function {
        name: "SYSDATE",
        arity: between(0, 1),
        argument_kinds: &[ArgumentKind::Integer],
        returns: Returns::By(now_type),
        eval: Eval::Values(sysdate),
        purity: Purity::Volatile,
    },
    pure(
        "TIME",
        exactly(1),
        &[ArgumentKind::Time],
        Returns::By(|arguments| {
            Ok(DataType::Time {
                fsp: arguments[0].ty.decimals().min(6),
            })
        }),
        Eval::Strict(|_, values| Ok(values[0].clone())),
    ),
    pure(
        "TIMESTAMP",
        between(1, 2),
        &[ArgumentKind::DateTime, ArgumentKind::Time],
        Returns::By(datetime_type),
        Eval::Strict(|_, values| {
            let added = values.get(1).and_then(time).map_or(0, Time::micros);
            Ok(moment(&values[0])
                .and_then(|moment| {
                    moment.checked_add(Interval {
                        months: 0,
                        micros: added,
                    })
                })
                .map_or(Value::Null, Value::DateTime))
        }),
    ),
    pure(
        "TIME_TO_SEC",
        exactly(1),
        &[ArgumentKind::Time],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(time(&values[0]).map_or(Value::Null, |time| Value::Int(time.micros() / MICROS)))
        }),
    ),
    date_part!("TO_DAYS", |date: Date| real(date, Date::day_number)),
    pure(
        "TO_SECONDS",
        exactly(1),
        &[ArgumentKind::DateTime],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(match moment(&values[0]) {
                Some(moment) if moment.date().is_real() => Value::Int(
                    moment.date().day_number() * 86_400 + moment.micros_of_day() / MICROS,
                ),
                _ => Value::Null,
            })
        }),
    ),
    stable(
        "UNIX_TIMESTAMP",
        between(0, 1),
        &[ArgumentKind::DateTime],
        Returns::By(unix_timestamp_type),
        Eval::Values(unix_timestamp),
    ),
    stable(
        "UTC_DATE",
        exactly(0),
        &[],
        Returns::Fixed(|| DataType::Date),
        Eval::Values(|call, _| Ok(Value::Date(utc_now(call).date()))),
    ),
    stable(
        "UTC_TIME",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(|arguments| {
            Ok(DataType::Time {
                fsp: fsp_of(arguments)?,
            })
        }),
        Eval::Values(|call, _| {
            Ok(Value::Time(
                utc_now(call).time().truncate(call.ty.decimals()),
            ))
        }),
    ),
    stable(
        "UTC_TIMESTAMP",
        between(0, 1),
        &[ArgumentKind::Integer],
        Returns::By(now_type),
        Eval::Values(|call, _| Ok(Value::DateTime(utc_now(call).truncate(call.ty.decimals())))),
    ),
    stable(
        "WEEK",
        between(1, 2),
        &[ArgumentKind::Date, ArgumentKind::Integer],
        Returns::Int,
        Eval::Strict(|call, values| {
            let mode = values
                .get(1)
                .map_or(u32::from(call.context.vars().default_week_format), |mode| {
                    convert::to_int(mode).0 as u32 & 7
                });
            Ok(date(&values[0])
                .filter(|date| date.is_real())
                .map_or(Value::Null, |date| Value::Int(date.week(mode).0.into())))
        }),
    ),
    date_part!("WEEKDAY", |date: Date| real(date, |date| date
        .weekday()
        .into())),
    date_part!("WEEKOFYEAR", |date: Date| real(date, |date| date
        .week(3)
        .0
        .into())),
    date_part!("YEAR", |date: Date| Value::Int(date.year().into())),
    pure(
        "YEARWEEK",
        between(1, 2),
        &[ArgumentKind::Date, ArgumentKind::Integer],
        Returns::Int,
        Eval::Strict(|_, values| {
            let mode = values
                .get(1)
                .map_or(0, |mode| convert::to_int(mode).0 as u32 & 7)
                | 2;
            Ok(date(&values[0])
                .filter(|date| date.is_real())
                .map_or(Value::Null, |date| {
                    let (week, year) = date.week(mode);
                    Value::Int(i64::from(year.max(0)) * 100 + i64::from(week))
                }))
        }),
    ),
];

pub(super) fn date(value: &Value) -> Option<Date> {
    match value {
        Value::Date(date) => Some(*date),
        Value::DateTime(moment) => Some(moment.date()),
        _ => None,
    }
}

pub(super) fn moment(value: &Value) -> Option<DateTime> {
    match value {
        Value::Date(date) => Some(date.at_midnight()),
        Value::DateTime(moment) => Some(*moment),
        _ => None,
    }
}

pub(super) fn time(value: &Value) -> Option<Time> {
    match value {
        Value::Time(time) => Some(*time),
        Value::DateTime(moment) => Some(moment.time()),
        _ => None,
    }
}

/// A text, or a binary string that is one.
pub(super) fn text(value: &Value) -> &str {
    let bytes = value.as_bytes().unwrap_or_default();
    std::str::from_utf8(bytes).unwrap_or_default()
}

pub(super) fn unit(value: &Value) -> Option<IntervalUnit> {
    IntervalUnit::by_name(text(value))
}

fn real(date: Date, part: impl Fn(Date) -> i64) -> Value {
    if date.is_real() {
        Value::Int(part(date))
    } else {
        Value::Null
    }
}

/// The digits after the point that an argument's type has, of the six there may be.
fn fraction(ty: &DataType) -> u8 {
    match ty {
        DataType::Int { .. } => 0,
        DataType::Decimal { scale, .. } => (*scale).min(6),
        _ => 6,
    }
}

/// NOW(3)'s 3.
fn fsp_of(arguments: &[Expr]) -> Result<u8> {
    match arguments.first().map(|argument| &argument.kind) {
        None => Ok(0),
        Some(ExprKind::Literal(Value::Int(fsp @ 0..=6))) => Ok(*fsp as u8),
        Some(ExprKind::Literal(Value::UInt(fsp @ 0..=6))) => Ok(*fsp as u8),
        Some(ExprKind::Literal(value)) => {
            let given = convert::to_int(value).0;
            Err(Error::too_big_precision(given, "now", 6))
        }
        Some(_) => Ok(6),
    }
}

fn now_type(arguments: &[Expr]) -> Result<DataType> {
    Ok(DataType::DateTime {
        fsp: fsp_of(arguments)?,
    })
}

fn datetime_type(arguments: &[Expr]) -> Result<DataType> {
    let fsp = arguments
        .iter()
        .filter(|argument| argument.ty.is_temporal())
        .map(|argument| argument.ty.decimals())
        .max();
    Ok(DataType::DateTime {
        fsp: fsp.unwrap_or(6).min(6),
    })
}

fn now(call: &mut Call<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::DateTime(
        call.context.now().truncate(call.ty.decimals()),
    ))
}

fn now_time(call: &mut Call<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Time(
        call.context.now().time().truncate(call.ty.decimals()),
    ))
}

/// The time of the call, not of the statement.
fn sysdate(call: &mut Call<'_>, _: &[Value]) -> Result<Value> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64);
    Ok(Value::DateTime(
        call.context
            .vars()
            .to_local(now)
            .truncate(call.ty.decimals()),
    ))
}

fn utc_now(call: &Call<'_>) -> DateTime {
    DateTime::from_unix_micros(call.context.started_us()).unwrap_or_default()
}

/// Seconds with a fraction, in microseconds.
pub(super) fn micros_of(value: &Value) -> i64 {
    match value {
        Value::Int(v) => v.saturating_mul(MICROS),
        Value::UInt(v) => i64::try_from(*v).unwrap_or(i64::MAX).saturating_mul(MICROS),
        other => {
            let seconds = convert::to_decimal(other).0;
            seconds
                .checked_mul(&Decimal::new(MICROS, 0))
                .and_then(|micros| micros.round(0).to_i64())
                .unwrap_or(if seconds.is_negative() {
                    i64::MIN
                } else {
                    i64::MAX
                })
        }
    }
}

fn convert_tz(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (Some(moment), Some(from), Some(to)) = (
        moment(&values[0]),
        TimeZone::parse(text(&values[1])),
        TimeZone::parse(text(&values[2])),
    ) else {
        return Ok(Value::Null);
    };
    Ok(from.to_utc(moment).map_or(Value::DateTime(moment), |utc| {
        Value::DateTime(to.from_utc(utc))
    }))
}

fn extract(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let Some(unit) = unit(&values[0]) else {
        return Ok(Value::Null);
    };
    let (date, clock) = match &values[1] {
        Value::Time(time) => (None, *time),
        other => match moment(other) {
            Some(moment) => (Some(moment.date()), moment.time()),
            None => return Ok(Value::Null),
        },
    };
    let (year, month, day) = date.map_or((0, 0, 0), |date| {
        (
            i64::from(date.year()),
            i64::from(date.month()),
            i64::from(date.day()),
        )
    });
    let (hour, minute, second, micro) = (
        i64::from(clock.hours()),
        i64::from(clock.minute()),
        i64::from(clock.second()),
        i64::from(clock.microsecond()),
    );
    let value = match unit {
        IntervalUnit::Year => year,
        IntervalUnit::Quarter => (month + 2) / 3,
        IntervalUnit::Month => month,
        IntervalUnit::Week => date
            .filter(|date| date.is_real())
            .map_or(0, |date| date.week(0).0.into()),
        IntervalUnit::Day => day,
        IntervalUnit::Hour => hour,
        IntervalUnit::Minute => minute,
        IntervalUnit::Second => second,
        IntervalUnit::Microsecond => micro,
        IntervalUnit::YearMonth => year * 100 + month,
        IntervalUnit::DayHour => day * 100 + hour,
        IntervalUnit::DayMinute => (day * 100 + hour) * 100 + minute,
        IntervalUnit::DaySecond => ((day * 100 + hour) * 100 + minute) * 100 + second,
        IntervalUnit::DayMicrosecond => {
            (((day * 100 + hour) * 100 + minute) * 100 + second) * MICROS + micro
        }
        IntervalUnit::HourMinute => hour * 100 + minute,
        IntervalUnit::HourSecond => (hour * 100 + minute) * 100 + second,
        IntervalUnit::HourMicrosecond => ((hour * 100 + minute) * 100 + second) * MICROS + micro,
        IntervalUnit::MinuteSecond => minute * 100 + second,
        IntervalUnit::MinuteMicrosecond => (minute * 100 + second) * MICROS + micro,
        IntervalUnit::SecondMicrosecond => second * MICROS + micro,
    };
    Ok(Value::Int(if clock.is_negative() { -value } else { value }))
}

/// The last moment that is a Unix timestamp: 3001-01-18 23:59:59.999999 UTC.
const LAST_US: i64 = 32_536_771_199 * MICROS + 999_999;

fn from_unixtime_type(arguments: &[Expr]) -> Result<DataType> {
    Ok(match arguments.len() {
        1 => DataType::DateTime {
            fsp: fraction(&arguments[0].ty),
        },
        _ => typing::text_type(formatted_chars(arguments), Collation::UTF8MB4_0900_AI_CI),
    })
}

fn from_unixtime(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let micros = micros_of(&values[0]);
    if !(0..=LAST_US).contains(&micros) {
        return Ok(Value::Null);
    }
    let local = call.context.vars().to_local(micros);
    Ok(match values.get(1) {
        Some(pattern) => {
            let pattern = String::from_utf8_lossy(pattern.as_bytes().unwrap_or_default());
            if pattern.is_empty() {
                return Ok(Value::Null);
            }
            date_format(local, &pattern, call.context.vars().locale)
                .map_or(Value::Null, Value::text)
        }
        None => Value::DateTime(local),
    })
}

/// A day by its number; the days of year 0 are those of year 1.
fn day_of_number(number: i64) -> Option<Date> {
    match number {
        1..=365 => {
            let next = Date::from_day_number(365 + number)?;
            Date::new(0, next.month(), next.day())
        }
        number => Date::from_day_number(number),
    }
}

fn unix_timestamp_type(arguments: &[Expr]) -> Result<DataType> {
    Ok(match arguments.first().map(|argument| &argument.ty) {
        Some(DataType::DateTime { fsp } | DataType::Timestamp { fsp }) if *fsp > 0 => {
            DataType::decimal(18 + fsp, *fsp)
        }
        _ => DataType::BIGINT,
    })
}

fn unix_timestamp(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let micros = match values.first() {
        None => call.context.started_us(),
        Some(Value::Null) => return Ok(Value::Null),
        Some(value) => {
            match moment(value).and_then(|moment| call.context.vars().time_zone.to_utc(moment)) {
                Some(utc) if moment(value).is_some_and(|moment| moment.date().is_real()) => {
                    Some(utc.unix_micros())
                        .filter(|micros| (0..=LAST_US).contains(micros))
                        .unwrap_or(0)
                }
                _ => 0,
            }
        }
    };
    Ok(match call.ty {
        DataType::Decimal { scale, .. } => Value::Decimal(
            Decimal::new(micros, 6).rescale(*scale, porpoise_types::Rounding::Truncate),
        ),
        _ => Value::Int(micros / MICROS),
    })
}

/// Two-digit years are of 1970 to 2069.
pub(super) fn full_year(year: i64) -> i64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

fn make_date(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (year, day) = (convert::to_int(&values[0]).0, convert::to_int(&values[1]).0);
    if day < 1 || !(0..=9999).contains(&year) {
        return Ok(Value::Null);
    }
    let first = Date::new(full_year(year) as u32, 1, 1);
    Ok(first
        .and_then(|first| first.add_days(day - 1))
        .map_or(Value::Null, Value::Date))
}

fn make_time(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (hour, minute, second) = (
        convert::to_int(&values[0]).0,
        convert::to_int(&values[1]).0,
        micros_of(&values[2]),
    );
    if !(0..60).contains(&minute) || !(0..60 * MICROS).contains(&second) {
        return Ok(Value::Null);
    }
    let magnitude =
        hour.unsigned_abs().min(10_000) as i64 * 3600 * MICROS + minute * 60 * MICROS + second;
    Ok(Value::Time(Time::from_micros_clamped(if hour < 0 {
        -magnitude
    } else {
        magnitude
    })))
}
