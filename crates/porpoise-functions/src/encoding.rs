//! Strings in other spellings: hexadecimal, Base64, quoted; characters and their codes (MySQL 8.4
//! manual, 14.8).

use std::borrow::Cow;

use porpoise_core::error::{Error, Level, Result};
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Purity, Returns, at_least, between, exactly, pure,
};
use porpoise_expr::{CastKind, Expr, ExprKind, typing};
use porpoise_types::{BlobSize, Charset, DataType, Value, cancel, convert};

use crate::string::{STRING, Units, bytes, bytes_type, constant_count, count, sized, string};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encoded text is broken into lines of so many characters.
const BASE64_LINE_CHARS: usize = 76;

/// This module's rows of the table of functions.
pub static TABLE: &[Function] = &[
    pure(
        "ASCII",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(Value::Int(
                bytes(&values[0]).first().map_or(0, |&byte| byte.into()),
            ))
        }),
    ),
    pure(
        "CHAR",
        at_least(1),
        &[ArgumentKind::Integer],
        Returns::By(char_type),
        Eval::Values(char),
    ),
    pure(
        "FROM_BASE64",
        exactly(1),
        STRING,
        Returns::By(bytes_type),
        Eval::Strict(from_base64),
    ),
    pure(
        "HEX",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::OwnText(hex_chars),
        Eval::Strict(hex),
    ),
    pure("ORD", exactly(1), STRING, Returns::Int, Eval::Strict(ord)),
    pure(
        "QUOTE",
        exactly(1),
        STRING,
        Returns::By(quoted_type),
        Eval::Values(quote),
    ),
    pure(
        "TO_BASE64",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::OwnText(base64_chars),
        Eval::Strict(to_base64),
    ),
    pure(
        "UNHEX",
        exactly(1),
        STRING,
        Returns::By(unhexed_type),
        Eval::Strict(unhex),
    ),
    pure(
        "WEIGHT_STRING",
        between(1, 2),
        &[ArgumentKind::Any],
        Returns::By(weight_type),
        Eval::Strict(weight_string),
    ),
];

/// As many bytes as the longest text of the argument's type has weights, or one of the characters
/// asked for.
fn weight_type(arguments: &[Expr]) -> Result<DataType> {
    let Some(argument) = arguments.first() else {
        return Ok(DataType::Blob(BlobSize::Long));
    };
    let weight_bytes = argument.ty.collation().weight_bytes() as u64;
    let bytes_per_char = match argument.ty.is_binary_string() {
        true => 1,
        false => weight_bytes,
    };
    let chars = argument.ty.max_chars().max(floating_chars(argument));
    let chars = constant_count(arguments.get(1)).unwrap_or(chars);
    let bytes = chars.saturating_mul(bytes_per_char);
    Ok(match u32::try_from(bytes) {
        Ok(bytes) if u64::from(bytes) <= BlobSize::Normal.max_octets() => {
            DataType::Varbinary(bytes)
        }
        _ => DataType::Blob(BlobSize::holding(bytes)),
    })
}

/// How many characters a text may have that is made of numbers that float: more than it is said to
/// have, as in MySQL. 0 for other texts.
fn floating_chars(text: &Expr) -> u64 {
    let mut chars = 0;
    text.any(&mut |part| {
        if let ExprKind::Cast { operand, .. } = &part.kind
            && matches!(operand.ty, DataType::Float { .. } | DataType::Double { .. })
        {
            chars = chars.max(typing::spelled_octets(&operand.ty));
        }
        false
    });
    chars
}

/// NULL for what isn't a string. `AS CHAR(n)` cuts off what is longer, and pads what is shorter where
/// the collation does.
fn weight_string(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let arguments = call.arguments;
    let ty = &arguments[0].ty;
    if !ty.is_string() {
        return Ok(Value::Null);
    }
    let weighed = match values.get(1) {
        None => Cow::Borrowed(bytes(&values[0])),
        Some(chars) => {
            let chars = count(chars);
            if call.is_too_long(chars) {
                return Ok(Value::Null);
            }
            Cow::Owned(of_length(bytes(&values[0]), ty, chars))
        }
    };
    Ok(Value::Bytes(ty.collation().weight_string(&weighed)))
}

fn of_length(text: &[u8], ty: &DataType, count: usize) -> Vec<u8> {
    if ty.is_binary_string() {
        let mut padded = text.to_vec();
        padded.resize(count, 0);
        return padded;
    }
    let text = String::from_utf8_lossy(text);
    let mut cut: String = text.chars().take(count).collect();
    if ty.collation().pads_space() {
        let missing = count - cut.chars().count();
        cut.extend(std::iter::repeat_n(' ', missing));
    }
    cut.into_bytes()
}

/// Four characters for three bytes, in lines of 76.
fn base64_chars(arguments: &[Expr]) -> u64 {
    let bytes = arguments
        .first()
        .map_or(0, |argument| argument.ty.max_chars());
    let chars = bytes.div_ceil(3).saturating_mul(4);
    chars.saturating_add(chars / 76)
}

fn char_type(arguments: &[Expr]) -> Result<DataType> {
    Ok(DataType::Varbinary(arguments.len() as u32 * 4))
}

/// `CHAR(codes USING charset)`, whose type has the character set.
pub static CHAR_USING: Function = Function {
    name: "CHAR",
    arity: at_least(1),
    argument_kinds: &[ArgumentKind::Integer],
    returns: Returns::OwnText(|arguments| arguments.len() as u64 * 4),
    eval: Eval::Values(char_using),
    purity: Purity::Pure,
};

fn hex_chars(arguments: &[Expr]) -> u64 {
    arguments
        .first()
        .map_or(0, |argument| argument.ty.max_octets(Charset::Utf8mb4))
        .saturating_mul(2)
        .max(16)
}

/// Numbers become bytes, the highest first, without leading zeros.
fn char(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(Value::Bytes(bytes_of_codes(values, Charset::Binary)))
}

/// Each number's bytes, without zeros at the front but for those that fill a unit of the character
/// set.
fn bytes_of_codes(values: &[Value], charset: Charset) -> Vec<u8> {
    let unit = usize::from(charset.min_len());
    let mut out = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let bytes = (convert::to_int(value).0 as u32).to_be_bytes();
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let length = (bytes.len() - zeros).max(1).next_multiple_of(unit);
        out.extend_from_slice(&bytes[bytes.len() - length..]);
    }
    out
}

/// What isn't a text in the character set is NULL in strict mode, and else what is a text before it.
fn char_using(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    /// How many bytes of what isn't a text the warning shows.
    const SHOWN_MAX: usize = 3;
    let charset = call.ty.collation().charset();
    let bytes = bytes_of_codes(values, charset);
    let valid = match charset.decode(&bytes) {
        Ok(text) => return Ok(Value::text(text)),
        Err(at) => at,
    };
    let rest = &bytes[valid..];
    let shown = to_hex(&rest[..rest.len().min(SHOWN_MAX)], true);
    let warning = Error::warn_invalid_character_string(charset.name(), shown);
    let vars = call.context.vars_mut();
    vars.warn(Level::Warning, warning.into_condition());
    if vars.sql_mode.strict() {
        return Ok(Value::Null);
    }
    Ok(Value::text(charset.decode_lossy(&bytes[..valid])))
}

pub(super) fn to_hex(bytes: &[u8], upper: bool) -> String {
    let digits = if upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let digit = |digit: u8| digits[usize::from(digit)];
    let mut out = Vec::with_capacity(2 * bytes.len());
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    String::from_utf8(out).unwrap_or_default()
}

/// HEX's digits of some bytes; NULL if they are too many.
fn digits(call: &mut Call<'_>, bytes: &[u8]) -> Result<Value> {
    /// How many bytes are done between two looks whether the statement is to end.
    const PIECE_BYTES: usize = 1 << 20;
    if call.is_too_long(2 * bytes.len()) {
        return Ok(Value::Null);
    }
    let mut out = String::with_capacity(2 * bytes.len());
    for piece in bytes.chunks(PIECE_BYTES) {
        call.context.check_interrupt()?;
        out.push_str(&to_hex(piece, true));
    }
    Ok(Value::Text(out.into()))
}

fn hex(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match &values[0] {
        Value::Int(v) => Value::text(format!("{v:X}")),
        Value::UInt(v) => Value::text(format!("{v:X}")),
        Value::Double(v) => Value::text(format!("{:X}", v.round_ties_even() as i64)),
        Value::Decimal(v) => Value::text(format!("{:X}", v.round(0).to_i64().unwrap_or(i64::MAX))),
        Value::Text(text) => {
            // Text in its own character set.
            let charset = call.arguments.first().map_or(Charset::Utf8mb4, |argument| {
                argument.ty.collation().charset()
            });
            match charset {
                Charset::Binary | Charset::Utf8mb4 | Charset::Utf8mb3 => {
                    digits(call, text.as_bytes())?
                }
                charset => {
                    let mut encoded = Vec::new();
                    charset.encode(text, &mut encoded);
                    digits(call, &encoded)?
                }
            }
        }
        Value::Bytes(bytes) => digits(call, bytes)?,
        other => {
            let text = convert::to_bytes(other, &call.arguments[0].ty);
            digits(call, &text)?
        }
    })
}

fn unhex(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(from_hex(bytes(&values[0])).map_or(Value::Null, Value::Bytes))
}

pub(super) fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let mut digits: Vec<u8> = Vec::with_capacity(text.len() + 1);
    if text.len() % 2 == 1 {
        digits.push(0);
    }
    for &byte in cancel::parts(text).flatten() {
        digits.push(char::from(byte).to_digit(16)? as u8);
    }
    Some(
        digits
            .as_chunks()
            .0
            .iter()
            .map(|[high, low]| high << 4 | low)
            .collect(),
    )
}

/// A character in a character set.
fn encoded(charset: Charset, character: char) -> Vec<u8> {
    let mut bytes = Vec::new();
    charset.encode(character.encode_utf8(&mut [0; 4]), &mut bytes);
    bytes
}

fn ord(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let code = match Units::of(&values[0]) {
        Units::Text(text) => {
            let charset = call.arguments[0].ty.collation().charset();
            let first = text.chars().next();
            first.map_or(Vec::new(), |first| encoded(charset, first))
        }
        Units::Bytes(bytes) => bytes[..bytes.len().min(1)].to_vec(),
    };
    let number = code
        .iter()
        .fold(0, |number: i64, byte| number << 8 | i64::from(*byte));
    Ok(Value::Int(number))
}

/// Quotes around a text all of whose characters may be escaped, or `NULL`.
fn quoted_type(arguments: &[Expr]) -> Result<DataType> {
    let chars = arguments.first().map_or(0, |text| text.ty.max_chars());
    sized(arguments, chars.saturating_mul(2).saturating_add(2).max(4))
}

/// A byte for two digits.
fn unhexed_type(arguments: &[Expr]) -> Result<DataType> {
    let digits = arguments.first().map_or(0, |text| match &text.kind {
        // Of what isn't a text, with all its digits.
        ExprKind::Cast {
            operand,
            kind: CastKind::Implicit,
        } => typing::spelled_octets(&operand.ty).max(text.ty.max_chars()),
        _ => text.ty.max_chars(),
    });
    Ok(typing::bytes_type(digits.div_ceil(2)))
}

fn quote(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::text("NULL"));
    }
    let mut out = vec![b'\''];
    for &byte in cancel::parts(bytes(&values[0])).flatten() {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0 => out.extend_from_slice(b"\\0"),
            0x1A => out.extend_from_slice(b"\\Z"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
    Ok(string(call, out))
}

fn to_base64(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let source = bytes(&values[0]);
    let len = source.len().div_ceil(3) * 4;
    if call.is_too_long(len + len.saturating_sub(1) / BASE64_LINE_CHARS) {
        return Ok(Value::Null);
    }
    let mut out = String::with_capacity(len);
    let mut column = 0;
    for chunk in source.chunks(3) {
        cancel::step();
        if column == BASE64_LINE_CHARS {
            out.push('\n');
            column = 0;
        }
        let group = (0..3).fold(0u32, |group, position| {
            group << 8 | u32::from(chunk.get(position).copied().unwrap_or(0))
        });
        for position in 0..4 {
            out.push(if position <= chunk.len() {
                char::from(BASE64[(group >> (18 - 6 * position) & 63) as usize])
            } else {
                '='
            });
        }
        column += 4;
    }
    Ok(Value::text(out))
}

fn from_base64(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let text: Vec<u8> = cancel::parts(bytes(&values[0]))
        .flatten()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    if !text.len().is_multiple_of(4) {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (number, chunk) in text.as_chunks::<4>().0.iter().enumerate() {
        cancel::step();
        let padding = chunk.iter().rev().take_while(|&&byte| byte == b'=').count();
        if padding > 2 || (padding > 0 && number + 1 < groups) {
            return Ok(Value::Null);
        }
        let mut group = 0u32;
        for &byte in &chunk[..4 - padding] {
            let Some(digit) = BASE64.iter().position(|&known| known == byte) else {
                return Ok(Value::Null);
            };
            group = group << 6 | digit as u32;
        }
        group <<= 6 * padding;
        out.extend_from_slice(&group.to_be_bytes()[1..4 - padding]);
    }
    Ok(Value::Bytes(out))
}
