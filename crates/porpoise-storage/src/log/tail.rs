//! The end of the log in memory: where the next record goes, and records not yet written to a file.

use std::io;

use super::record::{
    Content, KIND_COMMIT, KIND_SEAL, Payload, RECORD_HEADER_LEN, RecordHeader, checksum, record_len,
};
use super::segment::{LogSegment, SEGMENT_BYTES_MIN, SEGMENT_HEADER_LEN, fill_with_zeros};
use crate::disk::DiskFile;
use crate::{CommitTs, Lsn};

/// Records that are so long are not copied together with others.
const LARGE_BYTES: usize = 1 << 20;

/// A run of bytes to be written to one segment.
pub(crate) struct SegmentWrite {
    pub(super) segment: LogSegment,
    pub(super) offset: u64,
    pub(super) content: Content,
    pub(super) len: u64,
}

impl SegmentWrite {
    /// Writes the bytes to the segment's file, those that a source gives with zeros up to the next
    /// record.
    pub(super) fn write_to(&self, file: &dyn DiskFile) -> io::Result<()> {
        let source = match &self.content {
            Content::Bytes(bytes) => return file.write_all_at(bytes, self.offset),
            Content::Source(source) => source,
        };
        let mut at = self.offset;
        source.write_to(&mut |piece| {
            file.write_all_at(piece, at)?;
            at += piece.len() as u64;
            Ok(())
        })?;
        fill_with_zeros(file, at, self.offset + self.len)
    }
}

/// Where the next record goes, and the records not yet handed to a file.
pub(crate) struct LogTail {
    segment: LogSegment,
    offset: u64,
    segment_bytes: u64,
    writes: Vec<SegmentWrite>,
    buffered: u64,
}

impl LogTail {
    /// A tail that goes on at an offset of a segment. New segments are `segment_bytes` long.
    pub fn at(segment: LogSegment, offset: u64, segment_bytes: u64) -> LogTail {
        LogTail {
            segment,
            offset,
            segment_bytes,
            writes: Vec::new(),
            buffered: 0,
        }
    }

    /// Goes back to a position, and forgets what was to be written behind it.
    pub fn rewind(&mut self, segment: LogSegment, end: Lsn) {
        self.segment = segment;
        self.offset = end.0 - segment.start;
        self.writes.clear();
        self.buffered = 0;
    }

    /// The position of the next record.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.segment.start + self.offset)
    }

    /// How many bytes [`take_writes`](LogTail::take_writes) would give.
    pub fn buffered_bytes(&self) -> u64 {
        self.buffered
    }

    /// The bytes that are not yet written, in the order of the log.
    pub fn take_writes(&mut self) -> Vec<SegmentWrite> {
        self.buffered = 0;
        std::mem::take(&mut self.writes)
    }

    /// The segment that this record would begin; `None` if it fits into the current one.
    pub fn next_segment(&self, payload: &Payload) -> Option<LogSegment> {
        let needed = record_len(payload.len);
        let least = SEGMENT_HEADER_LEN + needed + RECORD_HEADER_LEN;
        // A segment always keeps room for its seal.
        let fits = self.offset + needed + RECORD_HEADER_LEN <= self.segment.capacity;
        (!fits).then(|| LogSegment {
            start: self.segment.end(),
            capacity: self.segment_bytes.max(least.next_multiple_of(4096)),
        })
    }

    /// The segment to go on in, if the log ends in one that was made for a large record.
    pub fn after_oversized(&self) -> Option<LogSegment> {
        let usual = self.segment_bytes.max(SEGMENT_BYTES_MIN);
        let is_oversized = self.segment.capacity > usual && self.offset > SEGMENT_HEADER_LEN;
        is_oversized.then(|| LogSegment {
            start: self.segment.end(),
            capacity: usual,
        })
    }

    /// Seals the segment, though it has room left, and has the log go on in the next.
    pub fn go_on_in(&mut self, next: LogSegment, ts: CommitTs, synced: Lsn) {
        self.push(KIND_SEAL, ts, synced, &[], checksum(&[]));
        self.segment = next;
        self.offset = SEGMENT_HEADER_LEN;
        // Its file has to be there when the seal is.
        self.writes.push(SegmentWrite {
            segment: next,
            offset: self.offset,
            content: Content::Bytes(Vec::new()),
            len: 0,
        });
    }

    /// Adds a commit's record, and before it the seal of a segment that it doesn't fit into.
    pub fn append(&mut self, ts: CommitTs, synced: Lsn, payload: Payload) {
        if let Some(next) = self.next_segment(&payload) {
            self.push(KIND_SEAL, ts, synced, &[], checksum(&[]));
            self.segment = next;
            self.offset = SEGMENT_HEADER_LEN;
        }
        match &payload.content {
            Content::Bytes(bytes) if bytes.len() < LARGE_BYTES => {
                self.push(KIND_COMMIT, ts, synced, bytes, payload.checksum);
            }
            _ => self.push_large(ts, synced, payload),
        }
    }

    /// Adds a record whose payload is written from where it lies.
    fn push_large(&mut self, ts: CommitTs, synced: Lsn, payload: Payload) {
        let header = RecordHeader {
            payload_len: payload.len,
            kind: KIND_COMMIT,
            ts,
            synced,
            payload_checksum: payload.checksum,
        };
        let len = record_len(payload.len);
        let header = header.to_bytes(self.lsn());
        self.writes.push(SegmentWrite {
            segment: self.segment,
            offset: self.offset,
            len: RECORD_HEADER_LEN,
            content: Content::Bytes(header.to_vec()),
        });
        let len_behind = len - RECORD_HEADER_LEN;
        let content = match payload.content {
            Content::Bytes(mut bytes) => {
                bytes.resize(len_behind as usize, 0);
                Content::Bytes(bytes)
            }
            source => source,
        };
        self.writes.push(SegmentWrite {
            segment: self.segment,
            offset: self.offset + RECORD_HEADER_LEN,
            len: len_behind,
            content,
        });
        self.offset += len;
        self.buffered += len;
    }

    fn push(
        &mut self,
        kind: u32,
        ts: CommitTs,
        synced: Lsn,
        payload: &[u8],
        payload_checksum: u32,
    ) {
        let (segment, offset) = (self.segment, self.offset);
        let goes_on = |write: &SegmentWrite| {
            let is_short = write.len < LARGE_BYTES as u64;
            write.segment == segment && is_short && matches!(write.content, Content::Bytes(_))
        };
        if !self.writes.last().is_some_and(goes_on) {
            self.writes.push(SegmentWrite {
                segment,
                offset,
                len: 0,
                content: Content::Bytes(Vec::new()),
            });
        }
        let Some(SegmentWrite {
            content: Content::Bytes(bytes),
            len: write_len,
            ..
        }) = self.writes.last_mut()
        else {
            return;
        };
        let header = RecordHeader {
            payload_len: payload.len() as u64,
            kind,
            ts,
            synced,
            payload_checksum,
        };
        let len = record_len(payload.len() as u64);
        let end = bytes.len() + len as usize;
        bytes.reserve(len as usize);
        bytes.extend_from_slice(&header.to_bytes(Lsn(segment.start + offset)));
        bytes.extend_from_slice(payload);
        bytes.resize(end, 0);
        *write_len += len;
        self.offset += len;
        self.buffered += len;
    }
}
