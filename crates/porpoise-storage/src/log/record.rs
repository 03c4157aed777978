//! Records of the log: their bytes and checksums.

use std::hash::Hasher;
use std::io;
use std::path::Path;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::little_endian::{u32_at, u64_at};
use crate::{CommitTs, Error, Lsn, Result};

pub(super) const RECORD_HEADER_LEN: u64 = 40;
/// A payload's length fits its field, with room to round up.
const PAYLOAD_LEN_MAX: u64 = u32::MAX as u64 - 7;

pub(super) const KIND_COMMIT: u32 = 1;
pub(super) const KIND_SEAL: u32 = 2;

/// Gives the same bytes each time: what a record holds that is too long to be in memory.
pub(crate) trait PayloadSource: Send + Sync {
    /// Gives the bytes, piece by piece. An error of the sink ends that.
    fn write_to(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

/// Bytes to be written.
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// Encoded when they are written.
    Source(Arc<dyn PayloadSource>),
}

/// A commit's payload with its checksum, made before the queue's mutex is taken.
pub(crate) struct Payload {
    pub(super) content: Content,
    pub(super) len: u64,
    pub(super) checksum: u32,
}

impl Payload {
    /// Fails with [`Error::TransactionTooLarge`] if no record can hold so many bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Payload> {
        let len = bytes.len() as u64;
        let checksum = checksum(&bytes);
        Payload::checked(Content::Bytes(bytes), len, checksum)
    }

    /// As [`Payload::new`], for bytes that are encoded twice: for their length and checksum now, and
    /// when they are written.
    pub fn of_source(source: Arc<dyn PayloadSource>) -> Result<Payload> {
        let (mut len, mut hasher) = (0, XxHash3_64::new());
        let encoded = source.write_to(&mut |piece| {
            len += piece.len() as u64;
            hasher.write(piece);
            Ok(())
        });
        encoded.map_err(Error::io("encode a record for", Path::new("the log")))?;
        let checksum = hasher.finish() as u32;
        Payload::checked(Content::Source(source), len, checksum)
    }

    fn checked(content: Content, len: u64, checksum: u32) -> Result<Payload> {
        if len > PAYLOAD_LEN_MAX {
            return Err(Error::TransactionTooLarge {
                bytes: len,
                limit: PAYLOAD_LEN_MAX,
            });
        }
        Ok(Payload {
            content,
            len,
            checksum,
        })
    }
}

/// A record's length in the log, with its header and padding.
pub(super) fn record_len(payload_len: u64) -> u64 {
    RECORD_HEADER_LEN + payload_len.next_multiple_of(8)
}

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    XxHash3_64::oneshot(bytes) as u32
}

/// What stands before a record's payload, but for its position.
pub(super) struct RecordHeader {
    pub payload_len: u64,
    pub kind: u32,
    pub ts: CommitTs,
    /// All before this position was on disk when the record was made.
    pub synced: Lsn,
    pub payload_checksum: u32,
}

impl RecordHeader {
    /// The header's bytes, for a record at this position of the log.
    pub fn to_bytes(&self, position: Lsn) -> [u8; RECORD_HEADER_LEN as usize] {
        let mut header = [0; RECORD_HEADER_LEN as usize];
        header[0..4].copy_from_slice(&(self.payload_len as u32).to_le_bytes());
        header[4..8].copy_from_slice(&self.kind.to_le_bytes());
        header[8..16].copy_from_slice(&position.0.to_le_bytes());
        header[16..24].copy_from_slice(&self.ts.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.synced.0.to_le_bytes());
        header[32..36].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let header_checksum = checksum(&header[..36]);
        header[36..40].copy_from_slice(&header_checksum.to_le_bytes());
        header
    }

    /// The header at an offset of a segment that begins at `start`; `None` if there is none whose
    /// checksum and position are right.
    pub fn read(segment: &[u8], start: u64, offset: u64) -> Option<RecordHeader> {
        let at = usize::try_from(offset).ok()?;
        let header = segment.get(at..at.checked_add(RECORD_HEADER_LEN as usize)?)?;
        let is_own = u64_at(header, 8)? == start.checked_add(offset)?
            && u32_at(header, 36)? == checksum(&header[..36]);
        is_own.then_some(RecordHeader {
            payload_len: u64::from(u32_at(header, 0)?),
            kind: u32_at(header, 4)?,
            ts: CommitTs(u64_at(header, 16)?),
            synced: Lsn(u64_at(header, 24)?),
            payload_checksum: u32_at(header, 32)?,
        })
    }
}

/// A whole record: header and payload match their checksums.
pub(super) struct Record<'a> {
    pub kind: u32,
    pub ts: CommitTs,
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// As [`RecordHeader::read`]; `None` also if the payload isn't what was written.
    pub fn read(segment: &'a [u8], start: u64, offset: u64) -> Option<Record<'a>> {
        let header = RecordHeader::read(segment, start, offset)?;
        let from = usize::try_from(offset.checked_add(RECORD_HEADER_LEN)?).ok()?;
        let to = from.checked_add(usize::try_from(header.payload_len).ok()?)?;
        let payload = segment.get(from..to)?;
        (checksum(payload) == header.payload_checksum).then_some(Record {
            kind: header.kind,
            ts: header.ts,
            payload,
        })
    }
}
