//! The write-ahead log: its files and their bytes.
//!
//! The log is one endless run of bytes; a position in it is an [`Lsn`](crate::Lsn). It lies in
//! segments, files of fixed length named by the position of their first byte. Each segment is
//! filled with zeros, or is an old one used again, before anything is written to it, so that a sync
//! writes the bytes and nothing else: no length, no block map. (Measured: `pwrite` + `fdatasync`
//! into such a file takes 135 µs, the same as with `O_DSYNC` or `O_DIRECT`, so the plain calls are
//! used.)
//!
//! ```text
//! log-0000000000000000      log-0000000001000000      log.spare
//! ├ header 512 bytes        ├ header                  (zeros: preallocated for the next segment)
//! ├ mark 512 bytes          ├ mark
//! ├ record                  ├ record
//! ├ record                  └ zeros, or bytes of the recycled segment
//! └ seal: the log goes on in the next segment
//!
//! header   0  "PORPLOG\0"
//!          8  u32 format version
//!         12  u32 zero
//!         16  u64 start: position of byte 0 of this file
//!         24  u64 capacity: length of this file; the next one starts at start + capacity
//!         32  u64 identity of the store
//!         40  u64 zero × 2
//!         56  u64 checksum of bytes 0..56
//!
//! mark     0  u64 synced: all before this position was on disk once
//!          8  u64 checksum of the start, the store's identity and bytes 0..8
//!
//! record   0  u32 length of the payload
//!          4  u32 kind: 1 commit, 2 seal
//!          8  u64 position of this record
//!         16  u64 timestamp of the commit
//!         24  u64 synced: all before this position was on disk when the record was made
//!         32  u32 checksum of the payload
//!         36  u32 checksum of bytes 0..36
//!         40  payload, then zeros to a multiple of 8
//! ```
//!
//! Integers are little-endian, checksums XXH3 (the low half where four bytes hold it).
//!
//! **Where the log ends.** Reading stops at the first record that is not whole or not at its own
//! position. That is the end of the log if the machine stopped there, and damage if it did not. Two
//! things tell them apart. The `synced` field of a record found behind: a record that says "all
//! before me was on disk" turns a hole before it from a torn tail into a corrupt middle. And the
//! mark, which is written to its own sector within a second or two of a sync: the log can't end
//! before it. Either way the store refuses to start. A torn tail is cut, so that its remains can
//! never be read again: what is whole goes to another file, with zeros behind it, and that file
//! replaces the segment.
//!
//! Only one kind of damage can't be told from a power cut: damage to the very last records, those
//! that no whole record follows, if the process ended within two seconds of writing them and
//! without closing the store.
//!
//! **Which files belong to the log.** A segment is completed under another name, so one that is
//! shorter than its header says was cut. The next segment exists, its name on disk, before a seal
//! says that the log goes on in it; the seal is on disk before a record is written behind it. The
//! first segment exists before the store's tree does. So a missing segment is noticed wherever it
//! is missing, and one from another store by the identity.
//!
//! **What a power cut may undo.** A file is written and synced under a temporary name, then
//! renamed, and then its folder is synced, before it holds anything that counts. A segment that was
//! recycled for the next one is not written to before the folder is synced, either: else it might
//! come back under its old name with new bytes. A start writes and syncs once more what it has
//! read: it may have seen it in the system's memory only. Segments are removed from the end, each
//! for good before the next, so that there is never a hole between two.
//!
//! | module | holds |
//! | --- | --- |
//! | `record` | records: their bytes and checksums |
//! | `segment` | segment files: names, headers, marks |
//! | `tail` | the end of the log in memory: where the next record goes |
//! | `files` | the open segments: writing, syncing, retiring |
//! | `preallocation` | the file for the next segment, made ahead of its use |
//! | `space` | whether the disk has room for the next segments |
//! | `descriptors` | file descriptors held in reserve |
//! | `rewrite` | replacing the end of the log after a failed write or a power cut |
//! | `open` | replaying the log at a start |
//! | `salvage` | reading what is left of a damaged log |

mod descriptors;
mod files;
mod open;
mod preallocation;
mod record;
mod rewrite;
mod salvage;
mod segment;
mod space;
mod tail;

pub(crate) use files::{AcknowledgedEnd, LogFiles, sync_folder};
pub(crate) use open::{Replayed, create_log, open_log, remove_unused_log};
pub(crate) use record::{Payload, PayloadSource};
pub(crate) use salvage::{SalvagedSegment, salvage_log};
pub(crate) use segment::LogSegment;
pub(crate) use space::LogSpace;
pub(crate) use tail::{LogTail, SegmentWrite};
