//! What a commit's log record says: one operation after another.
//!
//! ```text
//! 1 put      space  key length  value length  key  value
//! 2 delete   space  key length  key
//! 3 create   space
//! 4 drop     space
//! 5 counter  space  value
//! 6 rows     space  rows added less rows removed, zigzag
//! 7 run      file  position and length of the run's index there  the last order that counts
//! ```
//!
//! Runs ([`crate::spill`]) come first, the newest before the others, and a commit that has some puts
//! and deletes nothing else.
//!
//! The first byte is the operation; numbers are LEB128.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use crate::SpaceId;
use crate::log::PayloadSource;
use crate::overlay::{Overlay, SharedOverlay, SpaceChange, Write};
use crate::spill::RunPlace;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const CREATE: u8 = 3;
const DROP: u8 = 4;
const COUNTER: u8 = 5;
const ROWS: u8 = 6;
const RUN: u8 = 7;

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
    Run {
        file: u64,
        place: RunPlace,
        up_to: u64,
    },
}

pub(crate) fn encode(overlay: &Overlay, counters: &[(SpaceId, u64)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(overlay.payload_bytes() + 32);
    let encoded = each_operation(overlay, counters, |operation| {
        operation.encode(&mut out);
        Ok::<(), Infallible>(())
    });
    let Ok(()) = encoded;
    out
}

/// Gives the operations of a commit, one after another.
fn each_operation<E>(
    overlay: &Overlay,
    counters: &[(SpaceId, u64)],
    mut give: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for part in overlay.runs().into_iter().flat_map(|runs| runs.parts()) {
        give(Operation::Run {
            file: part.run.file.number,
            place: part.run.place,
            up_to: part.up_to,
        })?;
    }
    for &(space, change) in &overlay.changes {
        give(match change {
            SpaceChange::Create => Operation::Create { space },
            SpaceChange::Drop => Operation::Drop { space },
        })?;
    }
    overlay.each_write(|write| match write {
        Write::Put(space, key, value) => give(Operation::Put { space, key, value }),
        Write::Delete(space, key) => give(Operation::Delete { space, key }),
        Write::Rows(_, 0) => Ok(()),
        Write::Rows(space, net) => give(Operation::Rows { space, net }),
    })?;
    for &(space, value) in counters {
        give(Operation::Counter { space, value })?;
    }
    Ok(())
}

/// A commit that writes so much that its record is never in memory as a whole: it is encoded as it is
/// written.
pub(crate) struct LargeCommit {
    /// Nobody writes to it any more.
    pub overlay: Arc<SharedOverlay>,
    pub counters: Vec<(SpaceId, u64)>,
}

impl PayloadSource for LargeCommit {
    fn write_to(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        const PIECE_BYTES: usize = 1 << 20;
        let mut piece = Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 2));
        each_operation(&self.overlay.0.read(), &self.counters, |operation| {
            operation.encode(&mut piece);
            if piece.len() >= PIECE_BYTES {
                sink(&piece)?;
                piece.clear();
            }
            Ok::<(), io::Error>(())
        })?;
        match piece.is_empty() {
            true => Ok(()),
            false => sink(&piece),
        }
    }
}

impl Operation<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (tag, space) = match self {
            Operation::Run { file, place, up_to } => {
                out.push(RUN);
                for number in [*file, place.index_at, place.index_len, *up_to] {
                    put_number(out, number);
                }
                return;
            }
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
            Operation::Create { .. } | Operation::Drop { .. } | Operation::Run { .. } => {}
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
    if tag == RUN {
        return Some(Operation::Run {
            file: take_number(bytes)?,
            place: RunPlace {
                index_at: take_number(bytes)?,
                index_len: take_number(bytes)?,
            },
            up_to: take_number(bytes)?,
        });
    }
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
            space: u32, key: Vec<u8>, value: Vec<u8>, counter: u64, net: i64, run: [u64; 4],
        ) {
            let space = SpaceId(space);
            let operations = [
                Operation::Create { space },
                Operation::Put { space, key: &key, value: &value },
                Operation::Delete { space, key: &key },
                Operation::Counter { space, value: counter },
                Operation::Rows { space, net },
                Operation::Drop { space },
                Operation::Run {
                    file: run[0],
                    place: RunPlace { index_at: run[1], index_len: run[2] },
                    up_to: run[3],
                },
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
