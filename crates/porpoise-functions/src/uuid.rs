//! UUIDs (MySQL 8.4 manual, 14.23).

use porpoise_core::error::{Error, Result};
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, between, exactly, pure, volatile,
};
use porpoise_types::{DataType, Value, convert};

use crate::encoding::{from_hex, to_hex};
use crate::string::{STRING, bytes};

pub static TABLE: &[Function] = &[
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
        &[ArgumentKind::Bytes, ArgumentKind::Integer],
        Returns::Text(36),
        Eval::Strict(bin_to_uuid),
    ),
    pure(
        "UUID_TO_BIN",
        between(1, 2),
        &[ArgumentKind::String, ArgumentKind::Integer],
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
];

/// The seconds of the server's first call in the upper bits, then a counter: no number comes twice
/// while it runs.
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

/// A time-based UUID (version 1), as MySQL makes them, with a random node.
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
