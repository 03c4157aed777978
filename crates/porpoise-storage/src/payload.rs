//! What a commit's log record says: one operation after another.
//!
//! ```text
//! 1 put      space  key length  value length  key  value
//! 2 delete   space  key length  key
//! 3 create   space
//! 4 drop     space
//! 5 counter  space  value
//! 6 rows     space  rows added less rows removed, zigzag
//! ```
//!
//! The first byte is the operation; numbers are LEB128.

use crate::SpaceId;
use crate::overlay::{Overlay, SpaceChange};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const CREATE: u8 = 3;
const DROP: u8 = 4;
const COUNTER: u8 = 5;
const ROWS: u8 = 6;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Put {
        space: SpaceId,
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        space: SpaceId,
        key: &'a [u8],
    },
    Create {
        space: SpaceId,
    },
    Drop {
        space: SpaceId,
    },
    Counter {
        space: SpaceId,
        value: u64,
    },
    Rows {
        space: SpaceId,
        net: i64,
    },
}

pub(crate) fn encode(overlay: &Overlay, counters: &[(SpaceId, u64)]) -> Vec<u8> {
    let writes = || overlay.spaces.iter().flat_map(|s| s.writes.iter());
    let bytes: usize = writes()
        .map(|(k, v)| k.len() + v.as_ref().map_or(0, |v| v.len()) + 16)
        .sum();
    let mut out = Vec::with_capacity(bytes + 32);
    for (space, change) in &overlay.changes {
        let operation = match change {
            SpaceChange::Create => Operation::Create { space: *space },
            SpaceChange::Drop => Operation::Drop { space: *space },
        };
        operation.encode(&mut out);
    }
    for written in &overlay.spaces {
        let space = written.space;
        for (key, value) in written.writes.iter() {
            match value {
                Some(value) => Operation::Put { space, key, value }.encode(&mut out),
                None => Operation::Delete { space, key }.encode(&mut out),
            }
        }
        if written.net_rows != 0 {
            Operation::Rows {
                space,
                net: written.net_rows,
            }
            .encode(&mut out);
        }
    }
    for &(space, value) in counters {
        Operation::Counter { space, value }.encode(&mut out);
    }
    out
}

impl Operation<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (tag, space) = match self {
            Operation::Put { space, .. } => (PUT, space),
            Operation::Delete { space, .. } => (DELETE, space),
            Operation::Create { space } => (CREATE, space),
            Operation::Drop { space } => (DROP, space),
            Operation::Counter { space, .. } => (COUNTER, space),
            Operation::Rows { space, .. } => (ROWS, space),
        };
        out.push(tag);
        put_number(out, u64::from(space.0));
        match self {
            Operation::Put { key, value, .. } => {
                put_number(out, key.len() as u64);
                put_number(out, value.len() as u64);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
            Operation::Delete { key, .. } => {
                put_number(out, key.len() as u64);
                out.extend_from_slice(key);
            }
            Operation::Create { .. } | Operation::Drop { .. } => {}
            Operation::Counter { value, .. } => put_number(out, *value),
            Operation::Rows { net, .. } => {
                put_number(
                    out,
                    net.wrapping_shl(1).cast_unsigned() ^ (net >> 63).cast_unsigned(),
                );
            }
        }
    }
}

/// Reads operations one after another; an error says what is wrong with the bytes.
pub(crate) fn decode(mut bytes: &[u8]) -> impl Iterator<Item = Result<Operation<'_>, String>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let operation = take_operation(&mut bytes);
        if operation.is_none() {
            bytes = &[];
        }
        Some(operation.ok_or_else(|| "a log record holds no sensible operation".to_string()))
    })
}

fn take_operation<'a>(bytes: &mut &'a [u8]) -> Option<Operation<'a>> {
    let (&tag, rest) = bytes.split_first()?;
    *bytes = rest;
    let space = SpaceId(u32::try_from(take_number(bytes)?).ok()?);
    Some(match tag {
        PUT => {
            let (key_len, value_len) = (take_number(bytes)?, take_number(bytes)?);
            let key = take_bytes(bytes, key_len)?;
            Operation::Put {
                space,
                key,
                value: take_bytes(bytes, value_len)?,
            }
        }
        DELETE => {
            let key_len = take_number(bytes)?;
            Operation::Delete {
                space,
                key: take_bytes(bytes, key_len)?,
            }
        }
        CREATE => Operation::Create { space },
        DROP => Operation::Drop { space },
        COUNTER => Operation::Counter {
            space,
            value: take_number(bytes)?,
        },
        ROWS => {
            let zigzag = take_number(bytes)?;
            let net = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
            Operation::Rows { space, net }
        }
        _ => return None,
    })
}

pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    Some(taken)
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        if shift == 63 && low > 1 {
            return None;
        }
        number |= low << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_operation_reads_back_as_written(
            space: u32, key: Vec<u8>, value: Vec<u8>, counter: u64, net: i64,
        ) {
            let space = SpaceId(space);
            let operations = [
                Operation::Create { space },
                Operation::Put { space, key: &key, value: &value },
                Operation::Delete { space, key: &key },
                Operation::Counter { space, value: counter },
                Operation::Rows { space, net },
                Operation::Drop { space },
            ];
            let mut bytes = Vec::new();
            operations.iter().for_each(|o| o.encode(&mut bytes));
            let back: Result<Vec<_>, _> = decode(&bytes).collect();
            prop_assert_eq!(back.unwrap(), operations);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decode(&bytes).count();
        }
    }
}
