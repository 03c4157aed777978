//! Digests and random bytes (MySQL 8.4 manual, 14.13).

use porpoise_core::error::{Error, Result};
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Returns, exactly, pure, volatile,
};
use porpoise_types::{Value, convert};

use crate::encoding::to_hex;
use crate::string::{bytes, bytes_type};

pub static TABLE: &[Function] = &[
    pure(
        "MD5",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Text(32),
        Eval::Strict(|_, values| {
            use md5::Digest;
            Ok(Value::text(to_hex(
                &md5::Md5::digest(bytes(&values[0])),
                false,
            )))
        }),
    ),
    volatile(
        "RANDOM_BYTES",
        exactly(1),
        &[ArgumentKind::Integer],
        Returns::By(bytes_type),
        Eval::Strict(random_bytes),
    ),
    pure(
        "SHA",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Text(40),
        Eval::Strict(sha1),
    ),
    pure(
        "SHA1",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Text(40),
        Eval::Strict(sha1),
    ),
    pure(
        "SHA2",
        exactly(2),
        &[ArgumentKind::Bytes, ArgumentKind::Integer],
        Returns::Text(128),
        Eval::Strict(sha2),
    ),
];

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
