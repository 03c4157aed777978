//! The key encoding: bytes that sort as the values do.

use crate::{DataType, Value};
use smallvec::SmallVec;

/// A key under construction; short ones live on the stack.
pub type KeyBuf = SmallVec<[u8; 64]>;

/// Appends one part of a key. Values must be of the column's type, as [`store`](crate::store()) makes them.
pub fn encode_key_part(
    value: &Value,
    ty: &DataType,
    nullable: bool,
    descending: bool,
    prefix_chars: Option<u32>,
    out: &mut KeyBuf,
) {
    let _ = (value, ty, nullable, descending, prefix_chars, out);
}

/// The length of the first part of `key`; `None` if it is corrupt.
pub fn skip_key_part(key: &[u8], ty: &DataType, nullable: bool, descending: bool) -> Option<usize> {
    let _ = (key, ty, nullable, descending);
    None
}

/// The value of the first part of `key` and the part's length. `None` where the encoding can't be inverted
/// (texts) or the key is corrupt.
pub fn decode_key_part(
    key: &[u8],
    ty: &DataType,
    nullable: bool,
    descending: bool,
) -> Option<(Value, usize)> {
    let _ = (key, ty, nullable, descending);
    None
}

/// The smallest key above every key that starts with `prefix`; `false` if there is none (all 0xFF).
pub fn successor_of_prefix(prefix: &mut KeyBuf) -> bool {
    while let Some(last) = prefix.pop() {
        if last < 0xFF {
            prefix.push(last + 1);
            return true;
        }
    }
    false
}
