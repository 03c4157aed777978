//! String functions (MySQL 8.4 manual, 14.8).
//!
//! Positions and lengths count characters for text and bytes for binary strings: [`Units`] knows
//! the difference. Results longer than `max_allowed_packet` are NULL with a warning.

use porpoise_core::error::Result;
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, at_least, between, exactly, pure, volatile,
};
use porpoise_expr::typing;
use porpoise_expr::{Expr, ExprKind};
use porpoise_types::{BlobSize, Collation, CompactString, DataType, Value, cancel, convert};

pub(super) const STRING: &[ArgumentKind] = &[ArgumentKind::String];

/// Of results made of no string.
const DEFAULT_COLLATION: Collation = Collation::UTF8MB4_0900_AI_CI;

pub static TABLE: &[Function] = &[
    pure(
        "BIT_LENGTH",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| Ok(Value::Int(bytes(&values[0]).len() as i64 * 8))),
    ),
    pure(
        "CHARACTER_LENGTH",
        exactly(1),
        STRING,
        Returns::Int,
        Eval::Strict(char_length),
    ),
    pure(
        "CHAR_LENGTH",
        exactly(1),
        STRING,
        Returns::Int,
        Eval::Strict(char_length),
    ),
    pure(
        "CONCAT",
        at_least(1),
        &[ArgumentKind::Mixed],
        Returns::By(concat_type),
        Eval::Strict(concat),
    ),
    pure(
        "CONCAT_WS",
        at_least(2),
        &[ArgumentKind::Mixed],
        Returns::By(separated_type),
        Eval::Values(concat_ws),
    ),
    pure(
        "ELT",
        at_least(2),
        &[ArgumentKind::Integer, ArgumentKind::Mixed],
        Returns::By(longest_type),
        Eval::Values(elt),
    ),
    pure(
        "EXPORT_SET",
        between(3, 5),
        &[
            ArgumentKind::Integer,
            ArgumentKind::Mixed,
            ArgumentKind::Mixed,
            ArgumentKind::Mixed,
            ArgumentKind::Integer,
        ],
        Returns::By(exported_type),
        Eval::Strict(export_set),
    ),
    pure(
        "INSERT",
        exactly(4),
        &[
            ArgumentKind::Mixed,
            ArgumentKind::Integer,
            ArgumentKind::Integer,
            ArgumentKind::Mixed,
        ],
        Returns::By(inserted_type),
        Eval::Strict(insert),
    ),
    pure(
        "LCASE",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(lower),
    ),
    pure(
        "LEFT",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Integer],
        Returns::By(end_type),
        Eval::Strict(|_, values| {
            let count = count(&values[1]);
            Ok(Units::of(&values[0]).slice(0, count))
        }),
    ),
    pure(
        "LENGTH",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| Ok(Value::Int(bytes(&values[0]).len() as i64))),
    ),
    pure(
        "LOWER",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(lower),
    ),
    pure(
        "LPAD",
        exactly(3),
        &[
            ArgumentKind::Mixed,
            ArgumentKind::Integer,
            ArgumentKind::Mixed,
        ],
        Returns::By(padded_type),
        Eval::Strict(|call, values| pad(call, values, true)),
    ),
    pure(
        "LTRIM",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(|_, values| Ok(trim(&values[0], b" ", true, false))),
    ),
    pure(
        "MAKE_SET",
        at_least(2),
        &[ArgumentKind::Integer, ArgumentKind::Mixed],
        Returns::By(set_type),
        Eval::Values(make_set),
    ),
    pure(
        "MID",
        between(2, 3),
        &[ArgumentKind::String, ArgumentKind::Integer],
        Returns::By(part_type),
        Eval::Strict(substring),
    ),
    pure(
        "OCTET_LENGTH",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| Ok(Value::Int(bytes(&values[0]).len() as i64))),
    ),
    pure(
        "REPEAT",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Integer],
        Returns::By(repeated_type),
        Eval::Strict(repeat),
    ),
    pure(
        "REVERSE",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(reverse),
    ),
    pure(
        "RIGHT",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Integer],
        Returns::By(end_type),
        Eval::Strict(|_, values| {
            let units = Units::of(&values[0]);
            let length = units.len();
            Ok(units.slice(length.saturating_sub(count(&values[1])), length))
        }),
    ),
    pure(
        "RPAD",
        exactly(3),
        &[
            ArgumentKind::Mixed,
            ArgumentKind::Integer,
            ArgumentKind::Mixed,
        ],
        Returns::By(padded_type),
        Eval::Strict(|call, values| pad(call, values, false)),
    ),
    pure(
        "RTRIM",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(|_, values| Ok(trim(&values[0], b" ", false, true))),
    ),
    pure(
        "SOUNDEX",
        exactly(1),
        STRING,
        Returns::By(soundex_type),
        Eval::Strict(soundex),
    ),
    pure(
        "SPACE",
        exactly(1),
        &[ArgumentKind::Integer],
        Returns::OwnText(|arguments| constant_count(arguments.first()).unwrap_or(u64::MAX)),
        Eval::Strict(|call, values| repeat(call, &[Value::text(" "), values[0].clone()])),
    ),
    pure(
        "SUBSTR",
        between(2, 3),
        &[ArgumentKind::String, ArgumentKind::Integer],
        Returns::By(part_type),
        Eval::Strict(substring),
    ),
    pure(
        "SUBSTRING",
        between(2, 3),
        &[ArgumentKind::String, ArgumentKind::Integer],
        Returns::By(part_type),
        Eval::Strict(substring),
    ),
    pure(
        "TRIM",
        between(1, 3),
        &[
            ArgumentKind::Compared,
            ArgumentKind::Compared,
            ArgumentKind::String,
        ],
        Returns::By(as_long_type),
        Eval::Strict(|_, values| {
            let remove = values.get(1).map_or(&b" "[..], bytes);
            let side = values.get(2).map_or(&b"BOTH"[..], bytes);
            Ok(trim(
                &values[0],
                remove,
                side != b"TRAILING",
                side != b"LEADING",
            ))
        }),
    ),
    pure(
        "UCASE",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(upper),
    ),
    pure(
        "UPPER",
        exactly(1),
        STRING,
        Returns::By(as_long_type),
        Eval::Strict(upper),
    ),
    volatile(
        "LOAD_FILE",
        exactly(1),
        STRING,
        Returns::By(bytes_type),
        Eval::Strict(|call, values| {
            let most = call.context.vars().max_allowed_packet;
            let content = call.context.server_file(bytes(&values[0]), most);
            Ok(content.map_or(Value::Null, Value::Bytes))
        }),
    ),
];

/// The bytes of a string value.
pub(super) fn bytes(value: &Value) -> &[u8] {
    value.as_bytes().unwrap_or_default()
}

/// A length or count: negative is none.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Int(v) => usize::try_from(*v).unwrap_or(0),
        Value::UInt(v) => usize::try_from(*v).unwrap_or(usize::MAX),
        _ => 0,
    }
}

pub(super) fn collation(call: &Call<'_>) -> Collation {
    let types = call.arguments.iter().map(|argument| &argument.ty);
    types
        .clone()
        .find(|ty| ty.is_binary_string())
        .or_else(|| types.clone().find(|ty| ty.is_string()))
        .map_or(Collation::BINARY, DataType::collation)
}

/// A string by its units: characters of text, bytes of a binary string.
#[derive(Clone, Copy)]
pub(super) enum Units<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Units<'a> {
    pub(super) fn of(value: &'a Value) -> Units<'a> {
        match value {
            Value::Text(text) => Units::Text(text),
            other => Units::Bytes(bytes(other)),
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Units::Text(text) if text.is_ascii() => text.len(),
            Units::Text(text) => text.chars().count(),
            Units::Bytes(bytes) => bytes.len(),
        }
    }

    /// The byte offset of a unit, or of the end.
    pub(super) fn offset(self, unit: usize) -> usize {
        match self {
            Units::Text(text) => match text.as_bytes().get(..unit) {
                // There are no more units than bytes.
                None => text.len(),
                Some(head) if head.is_ascii() => unit,
                _ => text
                    .char_indices()
                    .nth(unit)
                    .map_or(text.len(), |(offset, _)| offset),
            },
            Units::Bytes(bytes) => unit.min(bytes.len()),
        }
    }

    /// What follows so many units.
    pub(super) fn after(self, count: usize) -> Units<'a> {
        let start = self.offset(count);
        match self {
            Units::Text(text) => Units::Text(&text[start..]),
            Units::Bytes(bytes) => Units::Bytes(&bytes[start..]),
        }
    }

    /// So many units, or all.
    pub(super) fn first(self, count: usize) -> Units<'a> {
        let end = self.offset(count);
        match self {
            Units::Text(text) => Units::Text(&text[..end]),
            Units::Bytes(bytes) => Units::Bytes(&bytes[..end]),
        }
    }

    pub(super) fn value(self) -> Value {
        match self {
            Units::Text(text) => Value::text(text),
            Units::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        }
    }

    /// Units `from` up to `to`.
    pub(super) fn slice(self, from: usize, to: usize) -> Value {
        if to <= from {
            return self.empty();
        }
        let (start, end) = (self.offset(from), self.offset(to));
        match self {
            Units::Text(text) => Value::text(&text[start..end]),
            Units::Bytes(bytes) => Value::Bytes(bytes[start..end].to_vec()),
        }
    }

    /// Whether a unit begins (or the last one ends) at a byte.
    pub(super) fn is_boundary(self, offset: usize) -> bool {
        match self {
            Units::Text(text) => text.is_char_boundary(offset),
            Units::Bytes(_) => true,
        }
    }

    /// Where the unit that begins at a byte ends.
    pub(super) fn next(self, offset: usize) -> usize {
        (offset + 1..)
            .find(|end| self.is_boundary(*end) || *end >= self.bytes_len())
            .unwrap_or(offset)
    }

    fn bytes_len(self) -> usize {
        match self {
            Units::Text(text) => text.len(),
            Units::Bytes(bytes) => bytes.len(),
        }
    }

    pub(super) fn empty(self) -> Value {
        match self {
            Units::Text(_) => Value::text(""),
            Units::Bytes(_) => Value::Bytes(Vec::new()),
        }
    }
}

/// A value of the call's type: bytes, or text.
pub(super) fn string(call: &Call<'_>, out: Vec<u8>) -> Value {
    if call.ty.is_binary_string() {
        return Value::Bytes(out);
    }
    Value::Text(match String::from_utf8(out) {
        Ok(text) => text.into(),
        Err(error) => CompactString::from_utf8_lossy(error.as_bytes()),
    })
}

/// The common kind and collation of string arguments, with the length given.
pub(super) fn sized(arguments: &[Expr], chars: u64) -> Result<DataType> {
    let strings = arguments.iter().filter(|argument| argument.ty.is_string());
    // Numbers that were written out are in the connection's collation.
    let first = strings.clone().next().map(|first| first.ty.collation());
    let default = first.unwrap_or(DEFAULT_COLLATION);
    let collation = typing::collation::mixed(strings, "concat", default)?;
    Ok(typing::text_type(chars, collation))
}

fn concat_type(arguments: &[Expr]) -> Result<DataType> {
    sized(arguments, chars_of(arguments))
}

/// Characters of all of them.
fn chars_of(arguments: &[Expr]) -> u64 {
    let chars = arguments.iter().map(|argument| argument.ty.max_chars());
    chars.fold(0, u64::saturating_add)
}

/// The first argument stands between all others.
fn separated_type(arguments: &[Expr]) -> Result<DataType> {
    let separator = arguments.first().map_or(0, |first| first.ty.max_chars());
    let gaps = arguments.len().saturating_sub(2) as u64;
    let values = chars_of(arguments.get(1..).unwrap_or_default());
    sized(
        arguments,
        values.saturating_add(separator.saturating_mul(gaps)),
    )
}

/// All arguments but the first, with commas between.
fn set_type(arguments: &[Expr]) -> Result<DataType> {
    let members = arguments.get(1..).unwrap_or_default();
    let commas = members.len().saturating_sub(1) as u64;
    sized(members, chars_of(members).saturating_add(commas))
}

/// The longest argument but the first.
fn longest_type(arguments: &[Expr]) -> Result<DataType> {
    let choices = arguments.get(1..).unwrap_or_default();
    let chars = choices.iter().map(|choice| choice.ty.max_chars()).max();
    sized(choices, chars.unwrap_or(0))
}

/// A text for each of 64 bits, with separators between.
fn exported_type(arguments: &[Expr]) -> Result<DataType> {
    let chars = |at: usize| arguments.get(at).map(|argument| argument.ty.max_chars());
    let bits = chars(1).max(chars(2)).unwrap_or(0).saturating_mul(64);
    let separators = chars(3).unwrap_or(1).saturating_mul(63);
    sized(
        arguments.get(1..arguments.len().min(4)).unwrap_or_default(),
        bits.saturating_add(separators),
    )
}

/// The text, and what is put into it.
fn inserted_type(arguments: &[Expr]) -> Result<DataType> {
    let chars = |at: usize| {
        arguments
            .get(at)
            .map_or(0, |argument| argument.ty.max_chars())
    };
    sized(arguments, chars(0).saturating_add(chars(3)))
}

/// As long as the argument at most.
fn as_long_type(arguments: &[Expr]) -> Result<DataType> {
    Ok(match arguments.first().map(|argument| &argument.ty) {
        Some(DataType::Char { length, collation }) => DataType::Varchar {
            length: *length,
            collation: *collation,
        },
        Some(DataType::Binary(length)) => DataType::Varbinary(*length),
        Some(ty) => ty.clone(),
        None => DataType::Null,
    })
}

/// Of a text no more than so many characters, if it is known how many.
fn shortened(arguments: &[Expr], most: Option<u64>) -> Result<DataType> {
    match (arguments.first(), most) {
        (Some(text), Some(most)) if text.ty.is_string() => {
            sized(&arguments[..1], most.min(text.ty.max_chars()))
        }
        _ => as_long_type(arguments),
    }
}

/// As many characters as LEFT's and RIGHT's constant count says.
fn end_type(arguments: &[Expr]) -> Result<DataType> {
    shortened(arguments, constant_count(arguments.get(1)))
}

/// As many characters as there are behind SUBSTRING's constant position, or as its constant count
/// says.
fn part_type(arguments: &[Expr]) -> Result<DataType> {
    let chars = arguments.first().map_or(0, |text| text.ty.max_chars());
    let before = constant_count(arguments.get(1)).map_or(0, |position| position.saturating_sub(1));
    let most = chars.saturating_sub(before);
    let count = constant_count(arguments.get(2));
    match count.is_some() || before > 0 {
        true => shortened(arguments, Some(count.map_or(most, |count| count.min(most)))),
        false => as_long_type(arguments),
    }
}

/// Four characters, or as many as the text has.
fn soundex_type(arguments: &[Expr]) -> Result<DataType> {
    let chars = arguments.first().map_or(0, |text| text.ty.max_chars());
    sized(arguments, chars.max(4))
}

pub(super) fn long_type(arguments: &[Expr]) -> Result<DataType> {
    sized(arguments, u64::MAX)
}

/// A count that the statement says, and nothing else decides.
pub(super) fn constant_count(argument: Option<&Expr>) -> Option<u64> {
    match argument.map(|argument| &argument.kind) {
        Some(ExprKind::Literal(Value::Int(count))) => Some(u64::try_from(*count).unwrap_or(0)),
        Some(ExprKind::Literal(Value::UInt(count))) => Some(*count),
        _ => None,
    }
}

/// As many characters as REPEAT's constant count gives.
fn repeated_type(arguments: &[Expr]) -> Result<DataType> {
    let chars = arguments
        .first()
        .map_or(0, |argument| argument.ty.max_chars());
    let count = constant_count(arguments.get(1));
    sized(
        arguments.get(..1).unwrap_or_default(),
        count.map_or(u64::MAX, |count| chars.saturating_mul(count)),
    )
}

/// As many characters as LPAD's and RPAD's constant length says.
fn padded_type(arguments: &[Expr]) -> Result<DataType> {
    sized(
        arguments,
        constant_count(arguments.get(1)).unwrap_or(u64::MAX),
    )
}

pub(super) fn bytes_type(_: &[Expr]) -> Result<DataType> {
    Ok(DataType::Blob(BlobSize::Long))
}

fn char_length(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(Value::Int(Units::of(&values[0]).len() as i64))
}

fn concat(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let len = values.iter().map(|value| bytes(value).len()).sum();
    if call.is_too_long(len) {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(len);
    values
        .iter()
        .for_each(|value| out.extend_from_slice(bytes(value)));
    Ok(string(call, out))
}

fn concat_ws(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let mut out = Vec::new();
    for (number, value) in values[1..]
        .iter()
        .filter(|value| !value.is_null())
        .enumerate()
    {
        if number > 0 {
            out.extend_from_slice(bytes(&values[0]));
        }
        out.extend_from_slice(bytes(value));
        if call.is_too_long(out.len()) {
            return Ok(Value::Null);
        }
    }
    Ok(string(call, out))
}

fn elt(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    match (count(&values[0]), values[0].is_null()) {
        (number @ 1.., false) => Ok(values.get(number).map_or(Value::Null, |value| {
            if value.is_null() {
                Value::Null
            } else {
                string(call, bytes(value).to_vec())
            }
        })),
        _ => Ok(Value::Null),
    }
}

fn export_set(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let bits = match &values[0] {
        Value::Int(v) => *v as u64,
        other => convert::to_uint(other).0,
    };
    let separator = values.get(3).map_or(&b","[..], bytes);
    let length = values.get(4).map_or(64, count).min(64);
    let mut out = Vec::new();
    for bit in 0..length {
        if bit > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(bytes(&values[if bits >> bit & 1 == 1 { 1 } else { 2 }]));
        if call.is_too_long(out.len()) {
            return Ok(Value::Null);
        }
    }
    Ok(string(call, out))
}

fn insert(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let units = Units::of(&values[0]);
    let (length, position) = (units.len() as i64, convert::to_int(&values[1]).0);
    if position < 1 || position > length {
        return Ok(values[0].clone());
    }
    let from = position as usize - 1;
    let removed = convert::to_int(&values[2]).0;
    let to = if removed < 0 || removed > length {
        length as usize
    } else {
        from + removed as usize
    };
    let source = bytes(&values[0]);
    let mut out = source[..units.offset(from)].to_vec();
    out.extend_from_slice(bytes(&values[3]));
    out.extend_from_slice(&source[units.offset(to)..]);
    Ok(string(call, out))
}

fn lower(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match &values[0] {
        Value::Text(text) => Value::text(call.ty.collation().lower(text)),
        other => other.clone(),
    })
}

fn upper(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match &values[0] {
        Value::Text(text) => Value::text(call.ty.collation().upper(text)),
        other => other.clone(),
    })
}

fn pad(call: &mut Call<'_>, values: &[Value], left: bool) -> Result<Value> {
    let wanted = convert::to_int(&values[1]).0;
    if wanted < 0 {
        return Ok(Value::Null);
    }
    let (units, filler) = (Units::of(&values[0]), Units::of(&values[2]));
    let (wanted, length) = (wanted as usize, units.len());
    if wanted <= length {
        return Ok(units.slice(0, wanted));
    }
    if filler.len() == 0 {
        return Ok(units.empty());
    }
    if call.is_too_long(wanted) {
        return Ok(Value::Null);
    }
    let missing = wanted - length;
    let (text, unit) = (bytes(&values[0]), bytes(&values[2]));
    let (whole, rest) = (missing / filler.len(), missing % filler.len());
    let block = unit.repeat(block_units(unit.len()).min(whole));
    let fill_bytes = unit.len() * whole;
    let mut out = Vec::with_capacity(text.len() + fill_bytes + unit.len());
    if !left {
        out.extend_from_slice(text);
    }
    in_blocks(call, fill_bytes, block.len(), |len| {
        out.extend_from_slice(&block[..len]);
    })?;
    out.extend_from_slice(&unit[..filler.offset(rest)]);
    if left {
        out.extend_from_slice(text);
    }
    Ok(string(call, out))
}

fn trim(value: &Value, remove: &[u8], leading: bool, trailing: bool) -> Value {
    let mut rest = bytes(value);
    if !remove.is_empty() {
        while leading && rest.starts_with(remove) {
            rest = &rest[remove.len()..];
        }
        while trailing && rest.ends_with(remove) {
            rest = &rest[..rest.len() - remove.len()];
        }
    }
    match value {
        Value::Text(_) => Value::text(String::from_utf8_lossy(rest)),
        _ => Value::Bytes(rest.to_vec()),
    }
}

fn make_set(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let bits = match &values[0] {
        Value::Int(v) => *v as u64,
        other => convert::to_uint(other).0,
    };
    let mut out: Vec<u8> = Vec::new();
    let mut first = true;
    for (bit, value) in values[1..].iter().enumerate().take(64) {
        if bits >> bit & 1 == 1 && !value.is_null() {
            if !first {
                out.push(b',');
            }
            first = false;
            out.extend_from_slice(bytes(value));
            if call.is_too_long(out.len()) {
                return Ok(Value::Null);
            }
        }
    }
    Ok(string(call, out))
}

fn substring(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let units = Units::of(&values[0]);
    let number = |value: &Value| match value {
        Value::UInt(v) => i128::from(*v),
        other => i128::from(convert::to_int(other).0),
    };
    let at_most = |count: i128| usize::try_from(count).unwrap_or(usize::MAX);
    // The text is counted as far as it is looked at: a position from the end needs its length.
    let position = number(&values[1]);
    let skipped = match position {
        0 => return Ok(units.empty()),
        1.. => position - 1,
        _ => units.len() as i128 + position,
    };
    let wanted = values.get(2).map(number);
    if skipped < 0 || wanted.is_some_and(|wanted| wanted <= 0) {
        return Ok(units.empty());
    }
    let rest = units.after(at_most(skipped));
    Ok(rest.first(wanted.map_or(usize::MAX, at_most)).value())
}

fn repeat(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let times = count(&values[1]);
    let length = bytes(&values[0]).len().saturating_mul(times);
    if call.is_too_long(length) {
        return Ok(Value::Null);
    }
    let times = if length == 0 { 0 } else { times };
    Ok(match &values[0] {
        Value::Text(text) => {
            let block = text.repeat(block_units(text.len()).min(times));
            let mut out = String::with_capacity(length);
            in_blocks(call, length, block.len(), |len| out.push_str(&block[..len]))?;
            Value::Text(out.into())
        }
        other => {
            let unit = bytes(other);
            let block = unit.repeat(block_units(unit.len()).min(times));
            let mut out = Vec::with_capacity(length);
            in_blocks(call, length, block.len(), |len| {
                out.extend_from_slice(&block[..len]);
            })?;
            string(call, out)
        }
    })
}

/// How many units of so many bytes are written between two looks whether the statement is to end.
fn block_units(unit_bytes: usize) -> usize {
    const BLOCK_BYTES: usize = 1 << 20;
    (BLOCK_BYTES / unit_bytes.max(1)).max(1)
}

/// Has so many bytes written in blocks. The statement may end between two.
///
/// # Errors
/// 1317.
fn in_blocks(
    call: &mut Call<'_>,
    bytes: usize,
    block_bytes: usize,
    mut write: impl FnMut(usize),
) -> Result<()> {
    let mut left = bytes;
    while left > 0 {
        let len = left.min(block_bytes);
        write(len);
        left -= len;
        call.context.check_interrupt()?;
    }
    Ok(())
}

fn reversed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices().rev() {
        cancel::passed(at, at + c.len_utf8());
        out.push(c);
    }
    out
}

fn reverse(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match Units::of(&values[0]) {
        Units::Text(text) => Value::text(reversed(text)),
        Units::Bytes(bytes) => Value::Bytes(bytes.iter().rev().copied().collect()),
    })
}

/// The first letter and the others' codes. Vowels go first, then codes that follow their like.
/// Characters from U+00C0 on count as vowels; bytes are ASCII letters or none.
fn soundex(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let code = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        'H' | 'W' => '-',
        _ => '0',
    };
    let text = match Units::of(&values[0]) {
        Units::Text(text) => text.to_owned(),
        Units::Bytes(bytes) => bytes
            .iter()
            .copied()
            .filter(u8::is_ascii)
            .map(char::from)
            .collect(),
    };
    let is_letter = |c: &char| c.is_ascii_alphabetic() || *c >= '\u{c0}';
    let mut letters = cancel::chars(&text).filter(is_letter);
    let Some(first) = letters.next() else {
        return Ok(string(call, Vec::new()));
    };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for letter in letters {
        match code(letter) {
            '-' | '0' => {}
            digit => {
                if digit != last {
                    out.push(digit);
                }
                last = digit;
            }
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    Ok(string(call, out.into_bytes()))
}
