//! String functions (MySQL 8.4 manual, 14.8).
//!
//! Positions and lengths count characters for text and bytes for binary strings: [`Units`] knows the
//! difference. Results longer than `max_allowed_packet` are NULL with a warning.

use porpoise_core::error::{Error, Level, Result};
use porpoise_expr::Expr;
use porpoise_expr::function::{
    Call, Eval, Function, Returns, Want, at_least, between, exactly, pure, volatile,
};
use porpoise_expr::typing;
use porpoise_types::{
    BlobSize, Charset, Collation, CompactString, DataType, Decimal, Value, convert,
};

const STRING: &[Want] = &[Want::String];

/// Of results made of no string.
const DEFAULT_COLLATION: Collation = Collation::UTF8MB4_0900_AI_CI;

pub static TABLE: &[Function] = &[
    pure(
        "ASCII",
        exactly(1),
        &[Want::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(Value::Int(
                bytes(&values[0]).first().map_or(0, |&byte| byte.into()),
            ))
        }),
    ),
    pure(
        "BIT_LENGTH",
        exactly(1),
        &[Want::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| Ok(Value::Int(bytes(&values[0]).len() as i64 * 8))),
    ),
    pure(
        "CHAR",
        at_least(1),
        &[Want::Integer],
        Returns::By(char_type),
        Eval::Values(char),
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
        &[Want::Mixed],
        Returns::By(concat_type),
        Eval::Strict(concat),
    ),
    pure(
        "CONCAT_WS",
        at_least(2),
        &[Want::Mixed],
        Returns::By(concat_type),
        Eval::Values(concat_ws),
    ),
    pure(
        "ELT",
        at_least(2),
        &[Want::Integer, Want::Mixed],
        Returns::By(rest_type),
        Eval::Values(elt),
    ),
    pure(
        "EXPORT_SET",
        between(3, 5),
        &[
            Want::Integer,
            Want::Mixed,
            Want::Mixed,
            Want::Mixed,
            Want::Integer,
        ],
        Returns::By(long_type),
        Eval::Strict(export_set),
    ),
    pure(
        "FIELD",
        at_least(2),
        &[Want::Any],
        Returns::Int,
        Eval::Values(field),
    ),
    pure(
        "FIND_IN_SET",
        exactly(2),
        &[Want::Compared],
        Returns::Int,
        Eval::Strict(find_in_set),
    ),
    pure(
        "FORMAT",
        between(2, 3),
        &[Want::Number, Want::Integer, Want::String],
        Returns::Text(128),
        Eval::Strict(format),
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
        &[Want::Any],
        Returns::OwnText(hex_chars),
        Eval::Strict(hex),
    ),
    pure(
        "INSERT",
        exactly(4),
        &[Want::Mixed, Want::Integer, Want::Integer, Want::Mixed],
        Returns::By(concat_type),
        Eval::Strict(insert),
    ),
    pure(
        "INSTR",
        exactly(2),
        &[Want::Compared],
        Returns::Int,
        Eval::Strict(|call, values| Ok(Value::Int(locate(call, &values[0], &values[1], 1)))),
    ),
    pure(
        "LCASE",
        exactly(1),
        STRING,
        Returns::Same(0),
        Eval::Strict(lower),
    ),
    pure(
        "LEFT",
        exactly(2),
        &[Want::String, Want::Integer],
        Returns::Same(0),
        Eval::Strict(|_, values| {
            let count = count(&values[1]);
            Ok(Units::of(&values[0]).slice(0, count))
        }),
    ),
    pure(
        "LENGTH",
        exactly(1),
        &[Want::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| Ok(Value::Int(bytes(&values[0]).len() as i64))),
    ),
    pure(
        "LOCATE",
        between(2, 3),
        &[Want::Compared, Want::Compared, Want::Integer],
        Returns::Int,
        Eval::Strict(|call, values| {
            let from = values.get(2).map_or(1, |from| convert::to_int(from).0);
            Ok(Value::Int(locate(call, &values[1], &values[0], from)))
        }),
    ),
    pure(
        "LOWER",
        exactly(1),
        STRING,
        Returns::Same(0),
        Eval::Strict(lower),
    ),
    pure(
        "LPAD",
        exactly(3),
        &[Want::Mixed, Want::Integer, Want::Mixed],
        Returns::By(long_type),
        Eval::Strict(|call, values| pad(call, values, true)),
    ),
    pure(
        "LTRIM",
        exactly(1),
        STRING,
        Returns::Same(0),
        Eval::Strict(|_, values| Ok(trim(&values[0], b" ", true, false))),
    ),
    pure(
        "MAKE_SET",
        at_least(2),
        &[Want::Integer, Want::Mixed],
        Returns::By(rest_type),
        Eval::Values(make_set),
    ),
    pure(
        "MD5",
        exactly(1),
        &[Want::Bytes],
        Returns::Text(32),
        Eval::Strict(|_, values| {
            use md5::Digest;
            Ok(Value::text(to_hex(
                &md5::Md5::digest(bytes(&values[0])),
                false,
            )))
        }),
    ),
    pure(
        "MID",
        between(2, 3),
        &[Want::String, Want::Integer],
        Returns::Same(0),
        Eval::Strict(substring),
    ),
    pure(
        "OCTET_LENGTH",
        exactly(1),
        &[Want::Bytes],
        Returns::Int,
        Eval::Strict(|_, values| Ok(Value::Int(bytes(&values[0]).len() as i64))),
    ),
    pure("ORD", exactly(1), STRING, Returns::Int, Eval::Strict(ord)),
    pure(
        "QUOTE",
        exactly(1),
        STRING,
        Returns::By(long_type),
        Eval::Values(quote),
    ),
    volatile(
        "RANDOM_BYTES",
        exactly(1),
        &[Want::Integer],
        Returns::By(bytes_type),
        Eval::Strict(random_bytes),
    ),
    pure(
        "REGEXP_INSTR",
        between(2, 6),
        &[
            Want::String,
            Want::String,
            Want::Integer,
            Want::Integer,
            Want::Integer,
            Want::String,
        ],
        Returns::Int,
        Eval::Strict(super::regexp::instr),
    ),
    pure(
        "REGEXP_LIKE",
        between(2, 3),
        STRING,
        Returns::Bool,
        Eval::Strict(super::regexp::like),
    ),
    pure(
        "REGEXP_REPLACE",
        between(3, 6),
        &[
            Want::String,
            Want::String,
            Want::String,
            Want::Integer,
            Want::Integer,
            Want::String,
        ],
        Returns::By(long_type),
        Eval::Strict(super::regexp::replace),
    ),
    pure(
        "REGEXP_SUBSTR",
        between(2, 5),
        &[
            Want::String,
            Want::String,
            Want::Integer,
            Want::Integer,
            Want::String,
        ],
        Returns::By(long_type),
        Eval::Strict(super::regexp::substr),
    ),
    pure(
        "REPEAT",
        exactly(2),
        &[Want::String, Want::Integer],
        Returns::By(long_type),
        Eval::Strict(repeat),
    ),
    pure(
        "REPLACE",
        exactly(3),
        &[Want::Compared],
        Returns::By(long_type),
        Eval::Strict(replace),
    ),
    pure(
        "REVERSE",
        exactly(1),
        STRING,
        Returns::Same(0),
        Eval::Strict(reverse),
    ),
    pure(
        "RIGHT",
        exactly(2),
        &[Want::String, Want::Integer],
        Returns::Same(0),
        Eval::Strict(|_, values| {
            let units = Units::of(&values[0]);
            let length = units.len();
            Ok(units.slice(length.saturating_sub(count(&values[1])), length))
        }),
    ),
    pure(
        "RPAD",
        exactly(3),
        &[Want::Mixed, Want::Integer, Want::Mixed],
        Returns::By(long_type),
        Eval::Strict(|call, values| pad(call, values, false)),
    ),
    pure(
        "RTRIM",
        exactly(1),
        STRING,
        Returns::Same(0),
        Eval::Strict(|_, values| Ok(trim(&values[0], b" ", false, true))),
    ),
    pure(
        "SHA",
        exactly(1),
        &[Want::Bytes],
        Returns::Text(40),
        Eval::Strict(sha1),
    ),
    pure(
        "SHA1",
        exactly(1),
        &[Want::Bytes],
        Returns::Text(40),
        Eval::Strict(sha1),
    ),
    pure(
        "SHA2",
        exactly(2),
        &[Want::Bytes, Want::Integer],
        Returns::Text(128),
        Eval::Strict(sha2),
    ),
    pure(
        "SOUNDEX",
        exactly(1),
        STRING,
        Returns::By(long_type),
        Eval::Strict(soundex),
    ),
    pure(
        "SPACE",
        exactly(1),
        &[Want::Integer],
        Returns::OwnText(|_| u64::MAX),
        Eval::Strict(|call, values| repeat(call, &[Value::text(" "), values[0].clone()])),
    ),
    pure(
        "STRCMP",
        exactly(2),
        &[Want::Compared],
        Returns::Int,
        Eval::Strict(|call, values| {
            Ok(Value::Int(
                collation(call).compare(bytes(&values[0]), bytes(&values[1])) as i64,
            ))
        }),
    ),
    pure(
        "SUBSTR",
        between(2, 3),
        &[Want::String, Want::Integer],
        Returns::Same(0),
        Eval::Strict(substring),
    ),
    pure(
        "SUBSTRING",
        between(2, 3),
        &[Want::String, Want::Integer],
        Returns::Same(0),
        Eval::Strict(substring),
    ),
    pure(
        "SUBSTRING_INDEX",
        exactly(3),
        &[Want::Compared, Want::Compared, Want::Integer],
        Returns::Same(0),
        Eval::Strict(substring_index),
    ),
    pure(
        "TO_BASE64",
        exactly(1),
        &[Want::Bytes],
        Returns::OwnText(base64_chars),
        Eval::Strict(to_base64),
    ),
    pure(
        "TRIM",
        between(1, 3),
        &[Want::Compared, Want::Compared, Want::String],
        Returns::Same(0),
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
        Returns::Same(0),
        Eval::Strict(upper),
    ),
    pure(
        "UNHEX",
        exactly(1),
        STRING,
        Returns::By(bytes_type),
        Eval::Strict(unhex),
    ),
    pure(
        "UPPER",
        exactly(1),
        STRING,
        Returns::Same(0),
        Eval::Strict(upper),
    ),
    volatile(
        "UUID_SHORT",
        exactly(0),
        &[],
        Returns::UInt,
        Eval::Values(|_, _| Ok(Value::UInt(short_uuid()))),
    ),
    volatile(
        "UUID",
        exactly(0),
        &[],
        Returns::Text(36),
        Eval::Values(uuid),
    ),
    pure(
        "BIN_TO_UUID",
        between(1, 2),
        &[Want::Bytes, Want::Integer],
        Returns::Text(36),
        Eval::Strict(bin_to_uuid),
    ),
    pure(
        "UUID_TO_BIN",
        between(1, 2),
        &[Want::String, Want::Integer],
        Returns::Fixed(|| DataType::Varbinary(16)),
        Eval::Strict(uuid_to_bin),
    ),
    pure(
        "IS_UUID",
        exactly(1),
        STRING,
        Returns::Bool,
        Eval::Strict(|_, values| Ok(Value::Int(parse_uuid(bytes(&values[0])).is_some().into()))),
    ),
    pure(
        "WEIGHT_STRING",
        exactly(1),
        STRING,
        Returns::By(bytes_type),
        Eval::Strict(|call, values| {
            let mut key = Vec::new();
            collation(call).sort_key(bytes(&values[0]), &mut key);
            Ok(Value::Bytes(key))
        }),
    ),
    pure(
        "INET_ATON",
        exactly(1),
        STRING,
        Returns::UInt,
        Eval::Strict(inet_aton),
    ),
    pure(
        "INET_NTOA",
        exactly(1),
        &[Want::Integer],
        Returns::Text(15),
        Eval::Strict(|_, values| {
            Ok(
                u32::try_from(convert::to_wide(&values[0]).0).map_or(Value::Null, |v| {
                    Value::text(std::net::Ipv4Addr::from(v).to_string())
                }),
            )
        }),
    ),
    // Files of the server are nobody's to read: as with secure_file_priv=NULL.
    volatile(
        "LOAD_FILE",
        exactly(1),
        STRING,
        Returns::By(bytes_type),
        Eval::Values(|_, _| Ok(Value::Null)),
    ),
    pure(
        "IS_IPV4_COMPAT",
        exactly(1),
        &[Want::Bytes],
        Returns::Bool,
        Eval::Strict(|_, values| {
            let address = bytes(&values[0]);
            let compatible = address.len() == 16
                && address[..12].iter().all(|byte| *byte == 0)
                && address[12..] > [0, 0, 0, 1][..];
            Ok(Value::from(compatible))
        }),
    ),
    pure(
        "IS_IPV4_MAPPED",
        exactly(1),
        &[Want::Bytes],
        Returns::Bool,
        Eval::Strict(|_, values| {
            let address = bytes(&values[0]);
            let mapped = address.len() == 16
                && address[..10].iter().all(|byte| *byte == 0)
                && address[10..12] == [0xFF, 0xFF];
            Ok(Value::from(mapped))
        }),
    ),
    pure(
        "INET6_ATON",
        exactly(1),
        STRING,
        Returns::Fixed(|| DataType::Varbinary(16)),
        Eval::Strict(|_, values| {
            let address = std::str::from_utf8(bytes(&values[0]))
                .ok()
                .and_then(|text| text.parse::<std::net::IpAddr>().ok());
            Ok(match address {
                Some(std::net::IpAddr::V4(v4)) => Value::Bytes(v4.octets().to_vec()),
                Some(std::net::IpAddr::V6(v6)) => Value::Bytes(v6.octets().to_vec()),
                None => Value::Null,
            })
        }),
    ),
    pure(
        "INET6_NTOA",
        exactly(1),
        &[Want::Bytes],
        Returns::Text(39),
        Eval::Strict(|_, values| {
            let bytes = bytes(&values[0]);
            Ok(
                match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
                    (Ok(v4), _) => Value::text(std::net::Ipv4Addr::from(v4).to_string()),
                    (_, Ok(v6)) => Value::text(std::net::Ipv6Addr::from(v6).to_string()),
                    _ => Value::Null,
                },
            )
        }),
    ),
    pure(
        "IS_IPV4",
        exactly(1),
        STRING,
        Returns::Bool,
        Eval::Strict(|_, values| {
            let text = String::from_utf8_lossy(bytes(&values[0]));
            Ok(Value::Int(
                text.parse::<std::net::Ipv4Addr>().is_ok().into(),
            ))
        }),
    ),
    pure(
        "IS_IPV6",
        exactly(1),
        STRING,
        Returns::Bool,
        Eval::Strict(|_, values| {
            let text = String::from_utf8_lossy(bytes(&values[0]));
            Ok(Value::Int(
                text.parse::<std::net::Ipv6Addr>().is_ok().into(),
            ))
        }),
    ),
];

/// The bytes of a string value.
pub(super) fn bytes(value: &Value) -> &[u8] {
    value.as_bytes().unwrap_or_default()
}

/// A length or count: negative is none.
fn count(value: &Value) -> usize {
    match value {
        Value::Int(v) => usize::try_from(*v).unwrap_or(0),
        Value::UInt(v) => usize::try_from(*v).unwrap_or(usize::MAX),
        _ => 0,
    }
}

fn collation(call: &Call<'_>) -> Collation {
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
            Units::Text(text) if text.is_ascii() => unit.min(text.len()),
            Units::Text(text) => text
                .char_indices()
                .nth(unit)
                .map_or(text.len(), |(offset, _)| offset),
            Units::Bytes(bytes) => unit.min(bytes.len()),
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
    fn is_boundary(self, offset: usize) -> bool {
        match self {
            Units::Text(text) => text.is_char_boundary(offset),
            Units::Bytes(_) => true,
        }
    }

    /// Where the unit that begins at a byte ends.
    fn next(self, offset: usize) -> usize {
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

    fn empty(self) -> Value {
        match self {
            Units::Text(_) => Value::text(""),
            Units::Bytes(_) => Value::Bytes(Vec::new()),
        }
    }
}

/// A value of the call's type: bytes, or text.
fn string(call: &Call<'_>, out: Vec<u8>) -> Value {
    if call.ty.is_binary_string() {
        return Value::Bytes(out);
    }
    Value::Text(
        CompactString::from_utf8(&out).unwrap_or_else(|_| CompactString::from_utf8_lossy(&out)),
    )
}

fn too_long(call: &mut Call<'_>, length: usize, name: &str) -> bool {
    let most = call.context.vars().max_allowed_packet;
    if length as u64 <= most {
        return false;
    }
    let warning = Error::result_truncated(name, most);
    call.context
        .vars_mut()
        .warn(Level::Warning, warning.into_condition());
    true
}

fn long_text(collation: Collation) -> DataType {
    if collation == Collation::BINARY {
        DataType::Blob(BlobSize::Long)
    } else {
        DataType::Text {
            size: BlobSize::Long,
            collation,
        }
    }
}

/// The common kind and collation of string arguments, with the length given.
fn sized(arguments: &[Expr], chars: u64) -> Result<DataType> {
    let strings = arguments.iter().filter(|argument| argument.ty.is_string());
    // Numbers that were written out are in the connection's collation.
    let first = strings.clone().next().map(|first| first.ty.collation());
    let default = first.unwrap_or(DEFAULT_COLLATION);
    let collation = typing::collation::mixed(strings, "concat", default)?;
    Ok(match u32::try_from(chars) {
        Ok(chars) if chars <= 16_383 && collation == Collation::BINARY => {
            DataType::Varbinary(chars)
        }
        Ok(chars) if chars <= 16_383 => DataType::Varchar {
            length: chars,
            collation,
        },
        _ => long_text(collation),
    })
}

fn concat_type(arguments: &[Expr]) -> Result<DataType> {
    sized(
        arguments,
        arguments
            .iter()
            .map(|argument| argument.ty.max_chars())
            .fold(0, u64::saturating_add),
    )
}

fn rest_type(arguments: &[Expr]) -> Result<DataType> {
    concat_type(arguments.get(1..).unwrap_or_default())
}

fn long_type(arguments: &[Expr]) -> Result<DataType> {
    sized(arguments, u64::MAX)
}

/// Four characters for three bytes, in lines of 76.
fn base64_chars(arguments: &[Expr]) -> u64 {
    let bytes = arguments
        .first()
        .map_or(0, |argument| argument.ty.max_chars());
    let chars = bytes.div_ceil(3).saturating_mul(4);
    chars.saturating_add(chars / 76)
}

fn bytes_type(_: &[Expr]) -> Result<DataType> {
    Ok(DataType::Blob(BlobSize::Long))
}

fn char_type(arguments: &[Expr]) -> Result<DataType> {
    Ok(DataType::Varbinary(arguments.len() as u32 * 4))
}

fn hex_chars(arguments: &[Expr]) -> u64 {
    arguments
        .first()
        .map_or(0, |argument| argument.ty.max_octets(Charset::Utf8mb4))
        .saturating_mul(2)
        .max(16)
}

/// Numbers become bytes, the highest first, without leading zeros.
fn char(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let mut out = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let code = convert::to_int(value).0 as u32;
        let bytes = code.to_be_bytes();
        let skip = bytes.iter().take(3).take_while(|&&byte| byte == 0).count();
        out.extend_from_slice(&bytes[skip..]);
    }
    Ok(Value::Bytes(out))
}

fn char_length(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(Value::Int(Units::of(&values[0]).len() as i64))
}

fn concat(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let mut out = Vec::with_capacity(values.iter().map(|value| bytes(value).len()).sum());
    values
        .iter()
        .for_each(|value| out.extend_from_slice(bytes(value)));
    if too_long(call, out.len(), "concat") {
        return Ok(Value::Null);
    }
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
    }
    if too_long(call, out.len(), "concat_ws") {
        return Ok(Value::Null);
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
    }
    Ok(string(call, out))
}

/// Compares as strings if all are, as numbers if all are, else as DOUBLE.
fn field(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Int(0));
    }
    let strings = call
        .arguments
        .iter()
        .all(|argument| argument.ty.is_string());
    let collation = collation(call);
    let found = values[1..].iter().position(|value| {
        if value.is_null() {
            return false;
        }
        if strings {
            return collation.eq(bytes(value), bytes(&values[0]));
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
        .position(|member| collation.eq(member, wanted) && spaces(member) == spaces(wanted));
    Ok(Value::Int(found.map_or(0, |position| position as i64 + 1)))
}

/// A number with thousands separated, rounded to so many decimals.
/// How a locale writes numbers: what stands between groups of digits and before the fraction. Groups have three
/// digits; in `en_IN` those beyond the first have two.
struct NumberStyle {
    locales: &'static [&'static str],
    group: &'static str,
    point: char,
}

const NUMBER_STYLES: &[NumberStyle] = &[
    NumberStyle {
        locales: &[
            "da_DK", "de_BE", "de_DE", "de_LU", "es_ES", "hu_HU", "id_ID", "nb_NO", "ro_RO",
            "ru_RU", "tr_TR", "uk_UA", "vi_VN",
        ],
        group: ".",
        point: ',',
    },
    NumberStyle {
        locales: &[
            "de_AT", "el_GR", "fr_BE", "fr_CA", "fr_CH", "fr_FR", "fr_LU", "hr_HR", "it_IT",
            "nl_BE", "nl_NL", "pl_PL", "pt_BR", "pt_PT",
        ],
        group: "",
        point: ',',
    },
    NumberStyle {
        locales: &["cs_CZ", "fi_FI", "sk_SK", "sv_SE"],
        group: " ",
        point: ',',
    },
    NumberStyle {
        locales: &["de_CH"],
        group: "'",
        point: '.',
    },
    NumberStyle {
        locales: &["ar_SA"],
        group: "",
        point: '.',
    },
];

/// The style of `en_US` and of all locales not in the table.
const DEFAULT_STYLE: NumberStyle = NumberStyle {
    locales: &[],
    group: ",",
    point: '.',
};

fn format(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let places = convert::to_int(&values[1]).0.clamp(0, 30) as u8;
    let locale = values.get(2).map_or(&b"en_US"[..], bytes);
    let style = NUMBER_STYLES
        .iter()
        .find(|style| {
            let mut names = style.locales.iter();
            names.any(|name| name.as_bytes().eq_ignore_ascii_case(locale))
        })
        .unwrap_or(&DEFAULT_STYLE);
    let pairs = locale.eq_ignore_ascii_case(b"en_IN");
    let decimal = match &values[0] {
        Value::Double(v) => Decimal::from_f64(*v).unwrap_or(Decimal::ZERO),
        other => convert::to_decimal(other).0,
    };
    let mut text = Vec::new();
    decimal
        .rescale(places, porpoise_types::Rounding::HalfAwayFromZero)
        .write_text(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        let left = whole.len() - position;
        let begins_group = match pairs {
            true if left > 3 => (left - 3).is_multiple_of(2),
            _ => left.is_multiple_of(3),
        };
        if position > 0 && begins_group {
            out.push_str(style.group);
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push(style.point);
        out.push_str(fraction);
    }
    Ok(Value::text(out))
}

pub(super) fn to_hex(bytes: &[u8], upper: bool) -> String {
    let digits = if upper {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    bytes
        .iter()
        .flat_map(|byte| {
            [
                digits[usize::from(byte >> 4)],
                digits[usize::from(byte & 15)],
            ]
        })
        .map(char::from)
        .collect()
}

fn hex(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match &values[0] {
        Value::Int(v) => Value::text(format!("{v:X}")),
        Value::UInt(v) => Value::text(format!("{v:X}")),
        Value::Double(v) => Value::text(format!("{:X}", v.round_ties_even() as i64)),
        Value::Decimal(v) => Value::text(format!("{:X}", v.round(0).to_i64().unwrap_or(i64::MAX))),
        Value::Text(text) => {
            // Text in its own character set.
            let mut encoded = Vec::new();
            let charset = call.arguments.first().map_or(Charset::Utf8mb4, |argument| {
                argument.ty.collation().charset()
            });
            match charset {
                Charset::Binary | Charset::Utf8mb4 | Charset::Utf8mb3 => {
                    encoded.extend_from_slice(text.as_bytes())
                }
                charset => {
                    charset.encode(text, &mut encoded);
                }
            }
            Value::text(to_hex(&encoded, true))
        }
        Value::Bytes(bytes) => Value::text(to_hex(bytes, true)),
        other => {
            let text = convert::to_bytes(other, &call.arguments[0].ty);
            Value::text(to_hex(&text, true))
        }
    })
}

fn unhex(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(from_hex(bytes(&values[0])).map_or(Value::Null, Value::Bytes))
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let mut digits: Vec<u8> = Vec::with_capacity(text.len() + 1);
    if text.len() % 2 == 1 {
        digits.push(0);
    }
    for &byte in text {
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

/// The position of one string in another, from a position on; 1 is the first. What stands there must be as many bytes
/// long as what is looked for, and equal by the collation.
fn locate(call: &Call<'_>, text: &Value, wanted: &Value, from: i64) -> i64 {
    let units = Units::of(text);
    let length = units.len();
    if from < 1 || from as u64 > length as u64 + 1 {
        return 0;
    }
    let (source, wanted) = (bytes(text), bytes(wanted));
    if wanted.is_empty() {
        return from;
    }
    let collation = collation(call);
    let mut start = units.offset(from as usize - 1);
    let mut position = from;
    // In a character set of single bytes a character is as long as any other, however it lies here.
    if let Value::Text(text) = text
        && collation.charset().max_len() == 1
    {
        return match collation.find(source, wanted, start) {
            Some(found) => from + text[start..found.start].chars().count() as i64,
            None => 0,
        };
    }
    while let Some(window) = source.get(start..start + wanted.len()) {
        let whole = units.is_boundary(start + wanted.len());
        if window == wanted || (whole && collation.eq(window, wanted)) {
            return position;
        }
        start = units.next(start);
        position += 1;
    }
    0
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
    if too_long(call, wanted, if left { "lpad" } else { "rpad" }) {
        return Ok(Value::Null);
    }
    let missing = wanted - length;
    let mut fill = bytes(&values[2]).repeat(missing / filler.len());
    fill.extend_from_slice(&bytes(&values[2])[..filler.offset(missing % filler.len())]);
    let mut out = Vec::with_capacity(fill.len() + bytes(&values[0]).len());
    if left {
        out.extend_from_slice(&fill);
        out.extend_from_slice(bytes(&values[0]));
    } else {
        out.extend_from_slice(bytes(&values[0]));
        out.extend_from_slice(&fill);
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
        }
    }
    Ok(string(call, out))
}

fn substring(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let units = Units::of(&values[0]);
    let length = units.len() as i128;
    let number = |value: &Value| match value {
        Value::UInt(v) => i128::from(*v),
        other => i128::from(convert::to_int(other).0),
    };
    let position = number(&values[1]);
    let start = match position {
        0 => return Ok(units.empty()),
        1.. => position - 1,
        _ => length + position,
    };
    if start < 0 || start >= length {
        return Ok(units.empty());
    }
    let wanted = values.get(2).map_or(length, number);
    if wanted <= 0 {
        return Ok(units.empty());
    }
    Ok(units.slice(start as usize, (start + wanted).min(length) as usize))
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

fn quote(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::text("NULL"));
    }
    let mut out = vec![b'\''];
    for &byte in bytes(&values[0]) {
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

fn random_bytes(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let length = convert::to_int(&values[0]).0;
    if !(1..=1024).contains(&length) {
        return Err(Error::value_out_of_range("length", "random_bytes"));
    }
    let _ = call;
    let mut out = vec![0; length as usize];
    getrandom::fill(&mut out).map_err(Error::engine_error)?;
    Ok(Value::Bytes(out))
}

fn repeat(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let times = count(&values[1]);
    let length = bytes(&values[0]).len().saturating_mul(times);
    if too_long(call, length, "repeat") {
        return Ok(Value::Null);
    }
    Ok(string(
        call,
        bytes(&values[0]).repeat(if length == 0 { 0 } else { times }),
    ))
}

fn replace(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (source, from, to) = (bytes(&values[0]), bytes(&values[1]), bytes(&values[2]));
    if from.is_empty() {
        return Ok(values[0].clone());
    }
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        if source[at..].starts_with(from) {
            out.extend_from_slice(to);
            at += from.len();
        } else {
            out.push(source[at]);
            at += 1;
        }
        if out.len() as u64 > call.context.vars().max_allowed_packet
            && too_long(call, out.len(), "replace")
        {
            return Ok(Value::Null);
        }
    }
    Ok(string(call, out))
}

fn reverse(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match Units::of(&values[0]) {
        Units::Text(text) => Value::text(text.chars().rev().collect::<String>()),
        Units::Bytes(bytes) => Value::Bytes(bytes.iter().rev().copied().collect()),
    })
}

fn sha1(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    use sha1::Digest;
    Ok(Value::text(to_hex(
        &sha1::Sha1::digest(bytes(&values[0])),
        false,
    )))
}

fn sha2(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    use sha2::Digest;
    let source = bytes(&values[0]);
    Ok(match convert::to_int(&values[1]).0 {
        224 => Value::text(to_hex(&sha2::Sha224::digest(source), false)),
        0 | 256 => Value::text(to_hex(&sha2::Sha256::digest(source), false)),
        384 => Value::text(to_hex(&sha2::Sha384::digest(source), false)),
        512 => Value::text(to_hex(&sha2::Sha512::digest(source), false)),
        _ => Value::Null,
    })
}

/// The first letter and the others' codes. Vowels go first, then codes that follow their like.
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
    let text = String::from_utf8_lossy(bytes(&values[0])).into_owned();
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let Some(first) = letters.next() else {
        return Ok(string(call, Vec::new()));
    };
    let mut out: String = first.to_uppercase().collect();
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

fn substring_index(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (source, delimiter) = (bytes(&values[0]), bytes(&values[1]));
    let count = convert::to_int(&values[2]).0;
    if delimiter.is_empty() || count == 0 {
        return Ok(string(call, Vec::new()));
    }
    let mut starts = Vec::new();
    let mut at = 0;
    while at + delimiter.len() <= source.len() {
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

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Encoded text is broken into lines of so many characters.
const BASE64_LINE_CHARS: usize = 76;

fn to_base64(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let source = bytes(&values[0]);
    if too_long(call, source.len().saturating_mul(4) / 3, "to_base64") {
        return Ok(Value::Null);
    }
    let mut out = String::new();
    let mut column = 0;
    for chunk in source.chunks(3) {
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
    let text: Vec<u8> = bytes(&values[0])
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    if !text.len().is_multiple_of(4) {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (number, chunk) in text.as_chunks::<4>().0.iter().enumerate() {
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

/// A time-based UUID (version 1), as MySQL makes them, with a random node.
/// The seconds of the server's first call in the upper bits, then a counter: no number comes twice while it runs.
fn short_uuid() -> u64 {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    /// `server_id`, in the highest byte.
    const SERVER: u64 = 1 << 56;
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let seconds = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        AtomicU64::new(SERVER | (seconds & 0xFFFF_FFFF) << 24)
    });
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn uuid(call: &mut Call<'_>, _: &[Value]) -> Result<Value> {
    /// 100 ns steps from 1582-10-15 to 1970-01-01.
    const GREGORIAN_OFFSET: u64 = 0x01B2_1DD2_1381_4000;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64 / 100);
    let ticks = now.wrapping_add(GREGORIAN_OFFSET);
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(Error::engine_error)?;
    let _ = call;
    let node = u64::from_be_bytes(random);
    Ok(Value::text(format!(
        "{:08x}-{:04x}-1{:03x}-{:04x}-{:012x}",
        ticks as u32,
        ticks >> 32 & 0xFFFF,
        ticks >> 48 & 0x0FFF,
        (node >> 48 & 0x3FFF) | 0x8000,
        node & 0xFFFF_FFFF_FFFF | 0x0100_0000_0000
    )))
}

fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    let text = text
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"))
        .unwrap_or(text);
    let digits: Vec<u8> = match text.len() {
        32 => text.to_vec(),
        36 if [8, 13, 18, 23].iter().all(|&dash| text[dash] == b'-') => {
            text.iter().copied().filter(|&byte| byte != b'-').collect()
        }
        _ => return None,
    };
    from_hex(&digits)?.try_into().ok()
}

fn swapped(values: &[Value]) -> bool {
    values
        .get(1)
        .is_some_and(|swap| convert::to_int(swap).0 != 0)
}

fn uuid_to_bin(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let Some(uuid) = parse_uuid(bytes(&values[0])) else {
        let text = String::from_utf8_lossy(bytes(&values[0])).into_owned();
        return Err(Error::wrong_value_for_function(
            "string",
            text,
            "uuid_to_bin",
        ));
    };
    if !swapped(values) {
        return Ok(Value::Bytes(uuid.to_vec()));
    }
    Ok(Value::Bytes(
        [&uuid[6..8], &uuid[4..6], &uuid[0..4], &uuid[8..]].concat(),
    ))
}

fn bin_to_uuid(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let Ok(bin) = <[u8; 16]>::try_from(bytes(&values[0])) else {
        return Err(Error::wrong_bytes_for_function("bin_to_uuid"));
    };
    let uuid = if swapped(values) {
        [&bin[4..8], &bin[2..4], &bin[0..2], &bin[8..]].concat()
    } else {
        bin.to_vec()
    };
    let hex = to_hex(&uuid, false);
    Ok(Value::text(format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )))
}

/// Also the short forms: `127.1` is 127.0.0.1.
fn inet_aton(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let text = String::from_utf8_lossy(bytes(&values[0])).into_owned();
    let parts: Option<Vec<u64>> = text
        .split('.')
        .map(|part| part.parse::<u8>().ok().map(u64::from))
        .collect();
    Ok(match parts.as_deref() {
        Some([a]) => Value::UInt(*a),
        Some([a, b]) => Value::UInt(a << 24 | b),
        Some([a, b, c]) => Value::UInt(a << 24 | b << 16 | c),
        Some([a, b, c, d]) => Value::UInt(a << 24 | b << 16 | c << 8 | d),
        _ => Value::Null,
    })
}
