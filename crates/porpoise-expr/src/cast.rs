//! Conversions inside expressions: CAST, CONVERT, and those the planner puts in by itself.
//!
//! `porpoise_types::convert` knows how; here is to which kind of value each target type leads, and
//! how MySQL words what got lost.

use porpoise_core::error::{Error, Level, Result};
use porpoise_types::{
    ConvertContext, DataType, DateTime, EnumDef, JsonError, Loss, Rounding, Value, convert,
};

use super::{CastKind, EvalContext};

/// What a cast lost, with the kind of value that MySQL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// "Truncated incorrect INTEGER value".
    Truncated(&'static str),
    /// More characters or bytes than `CHAR(n)` or `BINARY(n)` takes.
    Cut(&'static str, u32),
    /// "Incorrect datetime value".
    Incorrect(&'static str),
    /// A number had more digits than the DECIMAL; it became the greatest or the least.
    OutOfRange,
}

/// A converted value, and what was lost of the text it was made from.
pub type Cast = (Value, Option<(Lost, String)>);

/// Converts to a type, as CAST does or as an expression does by itself.
///
/// # Errors
/// What the cast loses, where strict mode guards a change; 3141 for a text that isn't JSON.
pub fn cast_value(
    context: &mut (impl EvalContext + ?Sized),
    value: Value,
    from: &DataType,
    to: &DataType,
    kind: CastKind,
) -> Result<Value> {
    if value.is_null() {
        return Ok(value);
    }
    if let DataType::Binary(length) = to
        && u64::from(*length) > context.vars().max_allowed_packet
    {
        let most = context.vars().max_allowed_packet;
        let warning = Error::result_truncated("cast_as_binary", most);
        context
            .vars_mut()
            .warn(Level::Warning, warning.into_condition());
        return Ok(Value::Null);
    }
    let cx = context.conversion_of(&value);
    let (value, loss) = cast(value, from, to, kind, &cx).map_err(|error| {
        Error::invalid_json_text_in_parameter(1, "cast_as_json", error.message, error.position)
    })?;
    if let Some((kind_name, text)) = loss
        && kind != CastKind::Silent
    {
        let condition = match kind_name {
            Lost::Truncated(kind) => Error::truncated_wrong_value_truncated(kind, text),
            Lost::Cut(kind, length) => {
                Error::truncated_wrong_value_truncated(format_args!("{kind}({length})"), text)
            }
            Lost::Incorrect(_) if let CastKind::Moment(name) = kind => {
                return Err(Error::incorrect_literal(name, text));
            }
            Lost::Incorrect(kind) => Error::truncated_wrong_value(kind, text),
            Lost::OutOfRange => Error::truncated_wrong_value_truncated("DECIMAL", text),
        };
        context.vars_mut().warn_or_fail(condition)?;
    }
    if kind == CastKind::MomentOrZero && value.is_null() {
        return Ok(Value::DateTime(DateTime::ZERO));
    }
    Ok(value)
}

/// Converts a value that is not NULL. The second part is for a warning.
pub fn cast(
    value: Value,
    from: &DataType,
    to: &DataType,
    kind: CastKind,
    cx: &ConvertContext,
) -> Result<Cast, JsonError> {
    let lost = |loss: Loss, what: Lost, value: &Value| match loss {
        Loss::None | Loss::Rounded | Loss::SpacesCut => None,
        _ => Some((what, convert::to_text(value, from))),
    };
    // ENUM, SET, BIT and YEAR hold integers, but are text (BIT: bytes) to whoever wants text.
    if let (DataType::Year, Value::Int(_) | Value::UInt(_)) = (from, &value)
        && matches!(
            to,
            DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. }
        )
        && !matches!(kind, CastKind::Comparable { .. })
    {
        return Ok((first_day(&value, to), None));
    }
    // A member is the date or the time that its text is, not the one that its number is.
    let value = match (from, to) {
        (
            DataType::Enum(_) | DataType::Set(_),
            DataType::Date
            | DataType::Time { .. }
            | DataType::DateTime { .. }
            | DataType::Timestamp { .. },
        ) => Value::text(convert::to_text(&value, from)),
        _ => value,
    };
    Ok(match to {
        DataType::Null => (value, None),
        DataType::Int { .. } | DataType::Bit(_) | DataType::Year
            if matches!(value, Value::Int(_) | Value::UInt(_))
                && !(kind == CastKind::Explicit && matches!(to, DataType::Year)) =>
        {
            (integer_as(value, is_unsigned(to)), None)
        }
        // Text is an integer up to the first character that isn't a digit: no fraction, no
        // exponent.
        DataType::Int { .. } if matches!(value, Value::Text(_)) => {
            let (number, loss) = convert::integer_prefix(value.as_bytes().unwrap_or_default());
            let note = lost(loss, Lost::Truncated("INTEGER"), &value);
            let fits = match is_unsigned(to) {
                true => number.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) as u64,
                false => number.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) as i64 as u64,
            };
            let note = note.or_else(|| {
                let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
                (!range.contains(&number))
                    .then(|| (Lost::Truncated("INTEGER"), convert::to_text(&value, from)))
            });
            match is_unsigned(to) {
                true => (Value::UInt(fits), note),
                false if number > i128::from(u64::MAX) => (Value::Int(i64::MAX), note),
                false => (Value::Int(fits as i64), note),
            }
        }
        DataType::Year if kind == CastKind::Explicit => {
            let text = convert::to_text(&value, from);
            match porpoise_types::store(value, from, to, cx) {
                Ok((year, Loss::None | Loss::Rounded | Loss::SpacesCut)) => (year, None),
                Ok((year, Loss::NotANumber | Loss::Truncated)) => {
                    (year, Some((Lost::Truncated("YEAR"), text)))
                }
                _ => (Value::Null, Some((Lost::Truncated("YEAR"), text))),
            }
        }
        DataType::Int { .. } | DataType::Bit(_) | DataType::Year => {
            let number = numeric_text(value, from);
            let of = match number {
                Value::Decimal(_) => "DECIMAL",
                _ => "INTEGER",
            };
            if is_unsigned(to) {
                let (converted, loss) = convert::to_uint(&number);
                if loss == Loss::OutOfRange {
                    // Negative text becomes its two's complement, as a negative number does.
                    let (signed, loss) = convert::to_int(&number);
                    if loss != Loss::OutOfRange {
                        return Ok((
                            Value::UInt(signed as u64),
                            lost(loss, Lost::Truncated(of), &number),
                        ));
                    }
                }
                (
                    Value::UInt(converted),
                    lost(loss, Lost::Truncated(of), &number),
                )
            } else {
                let (converted, loss) = convert::to_int(&number);
                // Only a text's number wraps around.
                if loss == Loss::OutOfRange && converted > 0 && matches!(number, Value::Text(_)) {
                    let (unsigned, loss) = convert::to_uint(&number);
                    if loss != Loss::OutOfRange {
                        return Ok((
                            Value::Int(unsigned as i64),
                            lost(loss, Lost::Truncated(of), &number),
                        ));
                    }
                }
                (
                    Value::Int(converted),
                    lost(loss, Lost::Truncated(of), &number),
                )
            }
        }
        DataType::Double { .. } => {
            let number = numeric_text(value, from);
            let (converted, loss) = convert::to_double(&number);
            (
                Value::Double(converted),
                lost(loss, Lost::Truncated("DOUBLE"), &number),
            )
        }
        DataType::Float { .. } => {
            let number = numeric_text(value, from);
            let (converted, loss) = convert::to_double(&number);
            (
                Value::Double(f64::from(converted as f32)),
                lost(loss, Lost::Truncated("FLOAT"), &number),
            )
        }
        DataType::Decimal { .. } if kind == CastKind::Exact => {
            let number = numeric_text(value, from);
            let (converted, loss) = exact_decimal(&number);
            let note = lost(loss, Lost::Truncated("DOUBLE"), &number);
            (Value::Decimal(converted), note)
        }
        DataType::Decimal {
            precision, scale, ..
        } => {
            let number = numeric_text(value, from);
            let (converted, loss) = convert::to_decimal(&number);
            let mut note = lost(loss, Lost::Truncated("DECIMAL"), &number);
            let mut rounded = converted.rescale(*scale, Rounding::HalfAwayFromZero);
            if rounded.integer_digits() > u32::from(*precision - *scale) {
                let most = porpoise_types::Decimal::max(*precision, *scale);
                rounded = if rounded.is_negative() {
                    most.neg()
                } else {
                    most
                };
                note = Some((Lost::OutOfRange, convert::to_text(&number, from)));
            }
            (Value::Decimal(rounded), note)
        }
        DataType::Date => {
            let (converted, loss) = convert::to_date_within_day(&value, cx);
            (
                converted.map_or(Value::Null, Value::Date),
                temporal_loss(
                    converted.is_none(),
                    loss,
                    // What is no date at all was looked for as a moment.
                    if converted.is_none() {
                        "datetime"
                    } else {
                        "date"
                    },
                    &value,
                    from,
                ),
            )
        }
        DataType::DateTime { .. } if let CastKind::Comparable { of_dates } = kind => {
            let moment = convert::to_comparable_datetime(&value, of_dates, cx);
            (Value::DateTime(moment), None)
        }
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
            let (converted, loss) = convert::to_datetime(&value, cx);
            let note = temporal_loss(converted.is_none(), loss, "datetime", &value, from);
            let rounded = converted.and_then(|moment| {
                if cx.truncate_fractions {
                    Some(moment.truncate(*fsp))
                } else {
                    moment.round(*fsp)
                }
            });
            (rounded.map_or(Value::Null, Value::DateTime), note)
        }
        DataType::Time { fsp } => {
            let (converted, loss) = match convert::to_time(&value, cx) {
                // A number is no time beyond the range, where a text is its end.
                (_, Loss::OutOfRange) if !from.is_string() => (None, Loss::BadTemporal),
                converted => converted,
            };
            let note = temporal_loss(converted.is_none(), loss, "time", &value, from);
            let rounded = converted.map(|time| {
                if cx.truncate_fractions {
                    time.truncate(*fsp)
                } else {
                    time.round(*fsp)
                }
            });
            (rounded.map_or(Value::Null, Value::Time), note)
        }
        // Only CAST reads a text; one that is compared with JSON is a JSON string.
        DataType::Json => (
            Value::Json(convert::to_json(
                &value,
                from,
                kind == CastKind::Explicit && from.is_string() && !from.is_binary_string(),
            )?),
            None,
        ),
        DataType::Binary(length) => {
            let text = convert::to_text(&value, from);
            let mut bytes = bytes_of(value, from);
            let note =
                (bytes.len() > *length as usize).then_some((Lost::Cut("BINARY", *length), text));
            bytes.resize(*length as usize, 0);
            (Value::Bytes(bytes), note)
        }
        DataType::Varbinary(length) => {
            let mut bytes = bytes_of(value, from);
            if kind == CastKind::Explicit {
                bytes.truncate(*length as usize);
            }
            (Value::Bytes(bytes), None)
        }
        DataType::Blob(_) => (Value::Bytes(bytes_of(value, from)), None),
        DataType::Char { length, .. } | DataType::Varchar { length, .. } => {
            let text = text_of(value, from, to);
            if matches!(kind, CastKind::Implicit | CastKind::Whole) {
                return Ok((Value::Text(text), None));
            }
            match text.char_indices().nth(*length as usize) {
                Some((end, _)) => {
                    let cut = Value::text(&text[..end]);
                    (cut, Some((Lost::Cut("CHAR", *length), text.to_string())))
                }
                None => (Value::Text(text), None),
            }
        }
        DataType::Text { .. } => (Value::Text(text_of(value, from, to)), None),
        DataType::Enum(def) if kind == CastKind::Member => {
            (Value::UInt(number_of_member(&value, def)), None)
        }
        DataType::Enum(_) | DataType::Set(_) => {
            match porpoise_types::store(value.clone(), from, to, cx) {
                Ok((stored, _)) => (stored, None),
                Err(_) => (value, None),
            }
        }
    })
}

/// See [`CastKind::Member`].
fn number_of_member(text: &Value, def: &EnumDef) -> u64 {
    let text = text.as_bytes().unwrap_or_default();
    let is_equal = |member: &str| def.collation.eq(member.as_bytes(), text);
    let position = def.members.iter().position(|member| is_equal(member));
    let none = if is_equal("") {
        0
    } else {
        def.members.len() + 1
    };
    position.map_or(none, |position| position + 1) as u64
}

/// The first day of a YEAR, as a date or its midnight; NULL for the year 0000.
fn first_day(year: &Value, to: &DataType) -> Value {
    let year = u32::try_from(convert::to_int(year).0).unwrap_or(0);
    match (porpoise_types::Date::new(year, 1, 1), to) {
        (None, _) => Value::Null,
        _ if year == 0 => Value::Null,
        (Some(day), DataType::Date) => Value::Date(day),
        (Some(day), _) => Value::DateTime(day.at_midnight()),
    }
}

/// A number with all its digits. Whole doubles have more than their shortest text tells.
fn exact_decimal(number: &Value) -> (porpoise_types::Decimal, Loss) {
    /// The whole doubles up to here fit into an `i128`.
    const WHOLE_MAX: f64 = 1e38;
    match number {
        Value::Double(v) if v.trunc() == *v && v.abs() < WHOLE_MAX => {
            let whole = porpoise_types::Decimal::from_i128(*v as i128, 0);
            (whole, Loss::None)
        }
        other => convert::to_decimal(other),
    }
}

fn is_unsigned(ty: &DataType) -> bool {
    match ty {
        DataType::Int { unsigned, .. } => *unsigned,
        _ => true,
    }
}

fn integer_as(value: Value, unsigned: bool) -> Value {
    match (value, unsigned) {
        (Value::Int(v), true) => Value::UInt(v as u64),
        (Value::UInt(v), false) => Value::Int(v as i64),
        (value, _) => value,
    }
}

/// Bytes in a numeric context: their text's number. (Hexadecimal literals were made integers by the
/// planner.)
fn numeric_text(value: Value, _from: &DataType) -> Value {
    match value {
        Value::Bytes(bytes) => Value::text(String::from_utf8_lossy(&bytes)),
        value => value,
    }
}

/// A value's bytes: a text's are its encoding in its character set.
fn bytes_of(value: Value, from: &DataType) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes,
        Value::Text(text) if from.is_string() && !from.is_binary_string() => {
            let mut bytes = Vec::with_capacity(text.len());
            from.collation().charset().encode(&text, &mut bytes);
            bytes
        }
        value => convert::to_bytes(&value, from),
    }
}

/// A value's text: bytes are read in the character set of the type they become.
fn text_of(value: Value, from: &DataType, to: &DataType) -> porpoise_types::CompactString {
    match value {
        Value::Text(text) => text,
        Value::Bytes(bytes) if !to.collation().charset().is_utf8() => {
            let charset = to.collation().charset();
            match charset.decode(&bytes) {
                Ok(text) => text.as_ref().into(),
                Err(_) if !charset.extends_ascii() => charset.decode_lossy(&bytes).into(),
                Err(_) => porpoise_types::CompactString::from_utf8_lossy(&bytes),
            }
        }
        Value::Bytes(bytes) => porpoise_types::CompactString::from_utf8_lossy(&bytes),
        value => convert::to_text(&value, from).into(),
    }
}

fn temporal_loss(
    is_null: bool,
    loss: Loss,
    kind: &'static str,
    value: &Value,
    from: &DataType,
) -> Option<(Lost, String)> {
    match loss {
        Loss::None | Loss::Rounded | Loss::SpacesCut => None,
        _ if is_null => Some((Lost::Incorrect(kind), convert::to_text(value, from))),
        _ => Some((Lost::Truncated(kind), convert::to_text(value, from))),
    }
}
