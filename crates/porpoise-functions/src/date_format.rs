//! Dates and times as texts of a given format, and back (MySQL 8.4 manual, 14.7).

use porpoise_core::error::{Error, Result};
use porpoise_expr::function::{ArgumentKind, Call, Eval, Function, Returns, exactly, pure};
use porpoise_expr::{Expr, ExprKind};
use porpoise_types::temporal::format::{
    ParsedByFormat, date_format, format_parts, str_to_date, time_format,
};
use porpoise_types::{DataType, Value};

use crate::temporal::{moment, text, time};

/// What two characters of a format become is shorter than this.
const PART_CHARS: u64 = 20;

/// How long a text of the second argument's format may be.
pub(crate) fn formatted_chars(arguments: &[Expr]) -> u64 {
    const LEAST: u64 = 255;
    let format = arguments.get(1).map_or(0, |format| format.ty.max_chars());
    LEAST.max(format.saturating_mul(PART_CHARS / 2))
}

pub static TABLE: &[Function] = &[
    pure(
        "DATE_FORMAT",
        exactly(2),
        &[ArgumentKind::LooseDate, ArgumentKind::String],
        Returns::TextOf(formatted_chars),
        Eval::Strict(|call, values| {
            Ok(moment(&values[0])
                .filter(|_| !text(&values[1]).is_empty())
                .and_then(|moment| {
                    date_format(moment, text(&values[1]), call.context.vars().locale)
                })
                .map_or(Value::Null, Value::text))
        }),
    ),
    pure(
        "GET_FORMAT",
        exactly(2),
        &[ArgumentKind::String],
        Returns::Text(17),
        Eval::Strict(get_format),
    ),
    pure(
        "STR_TO_DATE",
        exactly(2),
        &[ArgumentKind::String],
        Returns::By(str_to_date_type),
        Eval::Strict(parse_by_format),
    ),
    pure(
        "TIME_FORMAT",
        exactly(2),
        &[ArgumentKind::Time, ArgumentKind::String],
        Returns::TextOf(formatted_chars),
        Eval::Strict(|_, values| {
            Ok(time(&values[0])
                .filter(|_| !text(&values[1]).is_empty())
                .and_then(|time| time_format(time, text(&values[1])))
                .map_or(Value::Null, Value::text))
        }),
    ),
];

fn get_format(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let kind = text(&values[0]).to_ascii_uppercase();
    let place = text(&values[1]).to_ascii_uppercase();
    let row = match kind.as_str() {
        "DATE" => ["%m.%d.%Y", "%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"],
        "TIME" => ["%h:%i:%s %p", "%H:%i:%s", "%H:%i:%s", "%H.%i.%s", "%H%i%s"],
        _ => [
            "%Y-%m-%d %H.%i.%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H.%i.%s",
            "%Y%m%d%H%i%s",
        ],
    };
    let column = ["USA", "JIS", "ISO", "EUR", "INTERNAL"]
        .iter()
        .position(|known| *known == place);
    Ok(column.map_or(Value::Null, |column| Value::text(row[column])))
}

fn str_to_date_type(arguments: &[Expr]) -> Result<DataType> {
    let pattern = match &arguments[1].kind {
        ExprKind::Literal(Value::Text(pattern)) => pattern.as_str(),
        _ => return Ok(DataType::DateTime { fsp: 6 }),
    };
    let (has_date, has_time, has_micros) = format_parts(pattern);
    let fsp = if has_micros { 6 } else { 0 };
    Ok(match (has_date, has_time) {
        (true, true) => DataType::DateTime { fsp },
        (false, true) => DataType::Time { fsp },
        (_, false) => DataType::Date,
    })
}

fn parse_by_format(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let mode = call.context.vars().date_mode();
    let as_time = matches!(call.ty, DataType::Time { .. });
    let parsed = str_to_date(text(&values[0]), text(&values[1]), as_time, mode);
    let Some((parsed, is_longer)) = parsed else {
        let warning = Error::wrong_value_for_function("datetime", text(&values[0]), "str_to_date");
        call.context.vars_mut().warn_or_fail(warning)?;
        return Ok(Value::Null);
    };
    if is_longer {
        let kind = match call.ty {
            DataType::Time { .. } => "time",
            DataType::Date => "date",
            _ => "datetime",
        };
        let warning = Error::truncated_wrong_value_truncated(kind, text(&values[0]));
        call.context.vars_mut().warn_or_fail(warning)?;
    }
    Ok(match (parsed, call.ty) {
        (ParsedByFormat::Time(time), _) => Value::Time(time),
        (ParsedByFormat::DateTime(moment), DataType::Date) => Value::Date(moment.date()),
        (ParsedByFormat::DateTime(moment), _) => Value::DateTime(moment),
    })
}
