//! Looking for a string in others, and comparing strings (MySQL 8.4 manual, 14.8 and 14.8.1).
//!
//! What is equal is said by the arguments' common collation. Regular expressions are in
//! [`crate::regexp`].

use memchr::memmem;
use porpoise_core::error::Result;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, at_least, between, exactly, pure,
};
use porpoise_expr::typing::{Class, class};
use porpoise_expr::{Expr, ExprKind, Pace};
use porpoise_types::{DataType, Value, cancel, convert};

use crate::regexp;
use crate::string::{STRING, Units, bytes, collation, long_type, sized, string};

pub static TABLE: &[Function] = &[
    pure(
        "FIELD",
        at_least(2),
        &[ArgumentKind::Any],
        Returns::Int,
        Eval::Values(field),
    ),
    pure(
        "FIND_IN_SET",
        exactly(2),
        &[ArgumentKind::Compared],
        Returns::Int,
        Eval::Strict(find_in_set),
    ),
    pure(
        "INSTR",
        exactly(2),
        &[ArgumentKind::Compared],
        Returns::Int,
        Eval::Strict(|call, values| Ok(Value::Int(locate(call, &values[0], &values[1], 1)?))),
    ),
    pure(
        "LOCATE",
        between(2, 3),
        &[
            ArgumentKind::Compared,
            ArgumentKind::Compared,
            ArgumentKind::Integer,
        ],
        Returns::Int,
        Eval::Strict(|call, values| {
            let from = values.get(2).map_or(1, |from| convert::to_int(from).0);
            Ok(Value::Int(locate(call, &values[1], &values[0], from)?))
        }),
    ),
    pure(
        "REGEXP_INSTR",
        between(2, 6),
        &[
            ArgumentKind::String,
            ArgumentKind::String,
            ArgumentKind::Integer,
            ArgumentKind::Integer,
            ArgumentKind::Integer,
            ArgumentKind::String,
        ],
        Returns::Int,
        Eval::Strict(regexp::instr),
    ),
    pure(
        "REGEXP_LIKE",
        between(2, 3),
        STRING,
        Returns::Bool,
        Eval::Strict(regexp::like),
    ),
    pure(
        "REGEXP_REPLACE",
        between(3, 6),
        &[
            ArgumentKind::String,
            ArgumentKind::String,
            ArgumentKind::String,
            ArgumentKind::Integer,
            ArgumentKind::Integer,
            ArgumentKind::String,
        ],
        Returns::By(long_type),
        Eval::Strict(regexp::replace),
    ),
    pure(
        "REGEXP_SUBSTR",
        between(2, 5),
        &[
            ArgumentKind::String,
            ArgumentKind::String,
            ArgumentKind::Integer,
            ArgumentKind::Integer,
            ArgumentKind::String,
        ],
        Returns::By(long_type),
        Eval::Strict(regexp::substr),
    ),
    pure(
        "REPLACE",
        exactly(3),
        &[ArgumentKind::Compared],
        Returns::By(replaced_type),
        Eval::Strict(replace),
    ),
    pure(
        "STRCMP",
        exactly(2),
        &[ArgumentKind::Compared],
        Returns::Int,
        Eval::Strict(|call, values| {
            Ok(Value::Int(
                collation(call).compare(bytes(&values[0]), bytes(&values[1])) as i64,
            ))
        }),
    ),
    pure(
        "SUBSTRING_INDEX",
        exactly(3),
        &[
            ArgumentKind::Compared,
            ArgumentKind::Compared,
            ArgumentKind::Integer,
        ],
        Returns::Same(0),
        Eval::Strict(substring_index),
    ),
];

/// Compares as strings if all are, as numbers if all are, else as DOUBLE.
fn field(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Int(0));
    }
    // NULL is compared as anything.
    let types = || call.arguments.iter().map(|argument| &argument.ty);
    let strings = types().all(|ty| ty.is_string() || *ty == DataType::Null);
    let exact =
        types().all(|ty| matches!(class(ty), Class::Integer | Class::Decimal | Class::Null));
    let collation = collation(call);
    let found = values[1..].iter().position(|value| {
        if value.is_null() {
            return false;
        }
        if strings {
            return collation.eq(bytes(value), bytes(&values[0]));
        }
        if exact {
            return convert::to_decimal(value).0 == convert::to_decimal(&values[0]).0;
        }
        convert::to_double(value).0 == convert::to_double(&values[0]).0
    });
    Ok(Value::Int(found.map_or(0, |position| position as i64 + 1)))
}

fn find_in_set(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (wanted, list) = (bytes(&values[0]), bytes(&values[1]));
    if list.is_empty() || wanted.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let collation = collation(call);
    // Spaces behind a member count, whether or not the collation pads with them.
    let spaces = |text: &[u8]| text.iter().rev().take_while(|&&byte| byte == b' ').count();
    let found = list
        .split(|&byte| byte == b',')
        .inspect(|_| cancel::step())
        .position(|member| collation.eq(member, wanted) && spaces(member) == spaces(wanted));
    Ok(Value::Int(found.map_or(0, |position| position as i64 + 1)))
}

/// The position of one string in another, from a position on; 1 is the first. What stands there
/// must be as many bytes long as what is looked for, and equal by the collation.
fn locate(call: &Call<'_>, text: &Value, wanted: &Value, from: i64) -> Result<i64> {
    let units = Units::of(text);
    let length = units.len();
    if from < 1 || from as u64 > length as u64 + 1 {
        return Ok(0);
    }
    let (source, wanted) = (bytes(text), bytes(wanted));
    if wanted.is_empty() {
        return Ok(from);
    }
    let collation = collation(call);
    let mut start = units.offset(from as usize - 1);
    let mut position = from;
    // In a character set of single bytes or units a character is as long as any other, however it
    // lies here, and printable characters of ASCII are equal one by one.
    if let Value::Text(text) = text
        && (!collation.charset().is_utf8() || is_printable(source) && is_printable(wanted))
    {
        let check = || call.context.check_interrupt();
        return Ok(match collation.find(source, wanted, start, check)? {
            Some(found) => from + Units::Text(&text[start..found.start]).len() as i64,
            None => 0,
        });
    }
    let mut pace = Pace::default();
    while let Some(window) = source.get(start..start + wanted.len()) {
        let whole = units.is_boundary(start + wanted.len());
        if window == wanted || (whole && collation.eq(window, wanted)) {
            return Ok(position);
        }
        pace.walk(call.context, wanted.len())?;
        start = units.next(start);
        position += 1;
    }
    Ok(0)
}

/// As many characters as there are if a constant is replaced wherever it may be.
fn replaced_type(arguments: &[Expr]) -> Result<DataType> {
    let [text, from, to] = arguments else {
        return long_type(arguments);
    };
    let (chars, added) = (text.ty.max_chars(), to.ty.max_chars());
    let removed = match &from.kind {
        ExprKind::Literal(value) => Units::of(value).len() as u64,
        _ if added == 0 => 0,
        _ => return long_type(arguments),
    };
    let places = if removed == 0 { 0 } else { chars / removed };
    sized(
        arguments,
        chars.saturating_add(places.saturating_mul(added.saturating_sub(removed))),
    )
}

/// Whether a text has ASCII characters only, each of which shows or is a space.
fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

fn replace(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (source, from, to) = (bytes(&values[0]), bytes(&values[1]), bytes(&values[2]));
    if from.is_empty() {
        return Ok(values[0].clone());
    }
    let mut out = Vec::with_capacity(source.len());
    let (mut at, mut pace) = (0, Pace::default());
    for found in memmem::find_iter(source, from) {
        pace.walk(call.context, found - at + from.len())?;
        out.extend_from_slice(&source[at..found]);
        out.extend_from_slice(to);
        at = found + from.len();
        if call.is_too_long(out.len()) {
            return Ok(Value::Null);
        }
    }
    out.extend_from_slice(&source[at..]);
    if call.is_too_long(out.len()) {
        return Ok(Value::Null);
    }
    Ok(string(call, out))
}

fn substring_index(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (source, delimiter) = (bytes(&values[0]), bytes(&values[1]));
    let count = convert::to_int(&values[2]).0;
    if delimiter.is_empty() || count == 0 {
        return Ok(string(call, Vec::new()));
    }
    let mut starts = Vec::new();
    let (mut at, mut pace) = (0, Pace::default());
    while at + delimiter.len() <= source.len() {
        pace.walk(call.context, delimiter.len())?;
        if source[at..].starts_with(delimiter) {
            starts.push(at);
            at += delimiter.len();
        } else {
            at += 1;
        }
    }
    let piece = if count > 0 {
        starts
            .get(count as usize - 1)
            .map_or(source, |&start| &source[..start])
    } else {
        let from_end = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match starts.len().checked_sub(from_end) {
            Some(position) => &source[starts[position] + delimiter.len()..],
            None => source,
        }
    };
    Ok(string(call, piece.to_vec()))
}
