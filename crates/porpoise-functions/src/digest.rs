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
        Eval::Strict(|call, values| digest::<md5::Md5>(call, &values[0])),
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
        Eval::Strict(|call, values| digest::<sha1::Sha1>(call, &values[0])),
    ),
    pure(
        "SHA1",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Text(40),
        Eval::Strict(|call, values| digest::<sha1::Sha1>(call, &values[0])),
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

/// A digest in hexadecimal digits. That of a long text takes a while: it is made piece by piece, and
/// the statement may end in between.
fn digest<D: sha2::Digest>(call: &mut Call<'_>, value: &Value) -> Result<Value> {
    const PIECE_BYTES: usize = 1 << 20;
    let mut digest = D::new();
    for piece in bytes(value).chunks(PIECE_BYTES) {
        call.context.check_interrupt()?;
        digest.update(piece);
    }
    Ok(Value::text(to_hex(&digest.finalize(), false)))
}

fn sha2(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let source = &values[0];
    match convert::to_int(&values[1]).0 {
        224 => digest::<sha2::Sha224>(call, source),
        0 | 256 => digest::<sha2::Sha256>(call, source),
        384 => digest::<sha2::Sha384>(call, source),
        512 => digest::<sha2::Sha512>(call, source),
        _ => Ok(Value::Null),
    }
}
