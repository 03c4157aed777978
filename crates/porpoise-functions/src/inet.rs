//! Internet addresses as texts, numbers and bytes (MySQL 8.4 manual, 14.23).

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use porpoise_core::error::Result;
use porpoise_expr::function::{ArgumentKind, Call, Eval, Function, Returns, exactly, pure};
use porpoise_types::{DataType, Value, convert};

use crate::string::{STRING, bytes};

pub static TABLE: &[Function] = &[
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
        &[ArgumentKind::Integer],
        Returns::Text(15),
        Eval::Strict(|_, values| {
            Ok(
                u32::try_from(convert::to_wide(&values[0]).0).map_or(Value::Null, |v| {
                    Value::text(std::net::Ipv4Addr::from(v).to_string())
                }),
            )
        }),
    ),
    pure(
        "IS_IPV4_COMPAT",
        exactly(1),
        &[ArgumentKind::Bytes],
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
        &[ArgumentKind::Bytes],
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
                .and_then(address_of);
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
        &[ArgumentKind::Any],
        Returns::Text(39),
        Eval::Strict(|_, values| {
            // Text is no address.
            let Value::Bytes(bytes) = &values[0] else {
                return Ok(Value::Null);
            };
            let bytes = bytes.as_slice();
            Ok(
                match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
                    (Ok(v4), _) => Value::text(std::net::Ipv4Addr::from(v4).to_string()),
                    (_, Ok(v6)) => Value::text(ipv6_text(v6)),
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
                matches!(address_of(&text), Some(IpAddr::V4(_))).into(),
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
                matches!(address_of(&text), Some(IpAddr::V6(_))).into(),
            ))
        }),
    ),
];

/// The address that a text is. Octets may have zeros in front, up to three digits.
fn address_of(text: &str) -> Option<IpAddr> {
    if !text.contains(':') {
        return octets(text).map(|octets| IpAddr::V4(octets.into()));
    }
    let (groups, last) = text.rsplit_once(':')?;
    let text = match last.contains('.') {
        true => Cow::Owned(format!("{groups}:{}", Ipv4Addr::from(octets(last)?))),
        false => Cow::Borrowed(text),
    };
    text.parse().ok().map(IpAddr::V6)
}

fn octets(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        *octet = part.parse().ok().filter(|_| digits)?;
    }
    parts.next().is_none().then_some(octets)
}

/// The last 32 bits of an IPv4-compatible address are written as an IPv4 address.
fn ipv6_text(octets: [u8; 16]) -> String {
    let (high, low) = octets.split_at(12);
    if high.iter().all(|byte| *byte == 0)
        && low[..2] != [0, 0]
        && let Ok(v4) = <[u8; 4]>::try_from(low)
    {
        return format!("::{}", Ipv4Addr::from(v4));
    }
    Ipv6Addr::from(octets).to_string()
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
