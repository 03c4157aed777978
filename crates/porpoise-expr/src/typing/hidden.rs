//! Functions that no statement can name: what the planner says with a call.

use porpoise_core::error::{Error, Result};
use porpoise_types::temporal::parse;
use porpoise_types::{ConvertContext, DataType, Decimal, Loss, Value, convert};

use crate::function::{ArgumentKind, Call, Eval, Function, Purity, Returns, at_least, exactly};

/// `expr COLLATE c`: the value as it is; the type alone changes.
pub static COLLATE: Function = Function {
    name: "COLLATE",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Same(0),
    eval: Eval::Strict(|_, values| Ok(values[0].clone())),
    purity: Purity::Pure,
};

/// A date or moment in which months and days may be zero ([`ArgumentKind::LooseDate`]).
pub static LOOSE_DATE: Function = Function {
    name: "LOOSE_DATE",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Fixed(|| DataType::DateTime { fsp: 6 }),
    eval: Eval::Strict(|call, values| loose_date(call, &values[0])),
    purity: Purity::Stable,
};

/// As [`LOOSE_DATE`], of a text or a number, which say themselves what day they are.
pub static LOOSE_DATE_WRITTEN: Function = Function {
    name: "LOOSE_DATE",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Fixed(|| DataType::DateTime { fsp: 6 }),
    eval: Eval::Strict(|call, values| loose_date(call, &values[0])),
    purity: Purity::Pure,
};

fn loose_date(call: &mut Call<'_>, value: &Value) -> Result<Value> {
    let cx = ConvertContext {
        today: call.context.now().date(),
        ..ConvertContext::default()
    };
    match convert::to_datetime(value, &cx) {
        (Some(moment), Loss::None | Loss::Rounded | Loss::SpacesCut) => Ok(Value::DateTime(moment)),
        (moment, _) => {
            let text = convert::to_text(value, &call.arguments[0].ty);
            let warning = Error::truncated_wrong_value("datetime", text);
            call.context.vars_mut().warn_or_fail(warning)?;
            Ok(moment.map_or(Value::Null, Value::DateTime))
        }
    }
}

/// The shortest text that can be a date with a time; anything shorter is a date alone or a time
/// ([`ArgumentKind::Temporal`]).
const DATETIME_CHARS_MIN: usize = 12;

/// The least number that is a date with a time; a lesser one is a time.
const DATETIME_NUMBER_MIN: f64 = 1e10;

/// A string or number as DATETIME if it looks like one, else as TIME ([`ArgumentKind::Temporal`]).
pub static TEMPORAL: Function = Function {
    name: "TEMPORAL",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Fixed(|| DataType::DateTime { fsp: 6 }),
    eval: Eval::Strict(|call, values| {
        let text = values[0].as_bytes().unwrap_or_default();
        let separates_date = |byte: &u8| byte.is_ascii_punctuation() && !b".:".contains(byte);
        let dated = text.iter().skip(1).any(separates_date) && !text.contains(&b':');
        let long = match &values[0] {
            Value::Text(_) | Value::Bytes(_) => dated || text.len() >= DATETIME_CHARS_MIN,
            number => convert::to_double(number).0.abs() >= DATETIME_NUMBER_MIN,
        };
        let moment = convert::to_datetime(&values[0], &ConvertContext::default());
        match moment {
            (Some(moment), Loss::None | Loss::Rounded) if long => Ok(Value::DateTime(moment)),
            _ => time_of(call, &values[0]),
        }
    }),
    purity: Purity::Pure,
};

fn time_of(call: &mut Call<'_>, value: &Value) -> Result<Value> {
    let is_written = matches!(value, Value::Text(_) | Value::Bytes(_));
    match convert::to_time(value, &ConvertContext::default()) {
        // A text that is too long a time is the longest; a number is none, as for CAST.
        (Some(time), loss) if is_written || loss != Loss::OutOfRange => {
            return Ok(Value::Time(time));
        }
        _ => {}
    }
    let text = convert::to_text(value, &call.arguments[0].ty);
    let warning = Error::truncated_wrong_value("time", text);
    call.context.vars_mut().warn_or_fail(warning)?;
    Ok(Value::Null)
}

/// A number as the year that it stands for beside a YEAR column: of two digits, one between 1970 and
/// 2069.
pub static YEAR_NUMBER: Function = Function {
    name: "YEAR_NUMBER",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Same(0),
    eval: Eval::Strict(|_, values| {
        let year = match convert::to_int(&values[0]) {
            (year @ 1..=99, Loss::None) => year as u32,
            _ => return Ok(values[0].clone()),
        };
        let year = u64::from(parse::two_digit_year(year));
        Ok(match values[0] {
            Value::Decimal(_) => Value::Decimal(Decimal::from(year)),
            Value::Double(_) => Value::Double(year as f64),
            _ => Value::UInt(year),
        })
    }),
    purity: Purity::Pure,
};

/// An average over a window: the value as it is kept, of which the type shows fewer digits.
pub static AVERAGE: Function = Function {
    name: "AVERAGE",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Same(0),
    eval: Eval::Strict(|_, values| Ok(values[0].clone())),
    purity: Purity::Pure,
};

/// The least text that matches a LIKE pattern: what stands before its first wildcard.
pub static LIKE_LOW: Function = Function {
    name: "LIKE_LOW",
    arity: exactly(2),
    argument_kinds: &[ArgumentKind::String],
    returns: Returns::Same(0),
    eval: Eval::Strict(|call, values| like_edge(call, values, false)),
    purity: Purity::Pure,
};

/// Not below any text that matches a LIKE pattern.
pub static LIKE_HIGH: Function = Function {
    name: "LIKE_HIGH",
    arity: exactly(2),
    argument_kinds: &[ArgumentKind::String],
    returns: Returns::Same(0),
    eval: Eval::Strict(|call, values| like_edge(call, values, true)),
    purity: Purity::Pure,
};

/// How many of the greatest characters stand for "anything may follow".
const TAIL_CHARS: usize = 16;

fn like_edge(call: &mut Call<'_>, values: &[Value], high: bool) -> Result<Value> {
    let (Some(pattern), Some(escape)) = (
        values[0].as_bytes(),
        values.get(1).and_then(Value::as_bytes),
    ) else {
        return Ok(Value::Null);
    };
    let escape = escape.first().copied();
    let mut prefix = Vec::new();
    let mut wild = false;
    let mut rest = pattern.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            _ if Some(byte) == escape => prefix.extend(rest.next().copied()),
            b'%' | b'_' => {
                wild = true;
                break;
            }
            _ => prefix.push(byte),
        }
    }
    let binary = matches!(values[0], Value::Bytes(_));
    if wild {
        let pads = call.ty.collation().pads_space();
        for _ in 0..TAIL_CHARS {
            match (high, binary) {
                (true, true) => prefix.push(0xFF),
                (true, false) => prefix.extend_from_slice("\u{10FFFF}".as_bytes()),
                // Under PAD SPACE what follows may be less than the space that a shorter text is
                // padded with.
                (false, false) if pads => prefix.push(0),
                (false, _) => {}
            }
        }
    }
    Ok(match binary {
        true => Value::Bytes(prefix),
        false => String::from_utf8(prefix).map_or(Value::Null, Value::from),
    })
}

/// GROUPING(key, …), until the grouping's slot is known.
pub static GROUPING: Function = Function {
    name: "GROUPING",
    arity: at_least(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::Int,
    eval: Eval::Values(|_, _| Err(Error::invalid_group_function_use())),
    purity: Purity::Pure,
};

/// The number that a string of at most eight bytes is, the first byte highest: `0x41`, `b'101'`.
pub static BYTES_NUMBER: Function = Function {
    name: "BYTES_NUMBER",
    arity: exactly(1),
    argument_kinds: &[ArgumentKind::Any],
    returns: Returns::UInt,
    eval: Eval::Strict(|_, values| {
        Ok(Value::UInt(number_of_bytes(
            values[0].as_bytes().unwrap_or_default(),
        )))
    }),
    purity: Purity::Pure,
};

/// The number that a hexadecimal literal's bytes are: its last eight, the most significant first.
pub fn number_of_bytes(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
