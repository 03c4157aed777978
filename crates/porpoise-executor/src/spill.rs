//! Rows that memory doesn't hold, divided among the parts of a temporary file by a hash of a key.
//!
//! ```text
//! rows ─► what fits is worked on in memory
//!      └► the others ─► part 0 │ part 1 │ … by their keys' hash         level 0
//!                          └─► each is worked on like the whole, and what doesn't fit divided
//!                              by another hash                          level 1 …
//! ```
//!
//! Rows of one key are in one part, in the order in which they came. GROUP BY, DISTINCT and hash
//! joins work like that.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use hashbrown::DefaultHashBuilder;
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::{Buffer, MemoryAccount};
use porpoise_core::temporary_file::{Part, PartWriter};

use crate::Exec;

/// A file has so many parts, at least and at most.
const PARTS_MIN: usize = 16;
const PARTS_MAX: usize = 128;
/// A part's buffer has so many bytes, at least and at most.
const BLOCK_BYTES_MIN: usize = 2 << 10;
const BLOCK_BYTES_MAX: usize = 32 << 10;
/// All buffers of a file together have such a part of what a buffer of rows may have.
const BUFFERS_SHARE: usize = 4;

/// Both sides of a join need the same.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Which part a key belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Hashing {
    /// How often the rows were divided before.
    level: u32,
    parts: usize,
    block_bytes: usize,
}

impl Hashing {
    /// How rows are divided for the first time.
    pub(crate) fn new(account: &MemoryAccount, buffer: Buffer) -> Hashing {
        let bytes = account.buffer_bytes_max(buffer) / BUFFERS_SHARE;
        let parts = (bytes / BLOCK_BYTES_MAX).next_power_of_two();
        let parts = parts.clamp(PARTS_MIN, PARTS_MAX);
        Hashing {
            level: 0,
            parts,
            block_bytes: (bytes / parts).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX),
        }
    }

    /// How the rows of a part are divided.
    pub(crate) fn deeper(self) -> Hashing {
        Hashing {
            level: self.level + 1,
            ..self
        }
    }

    /// How often the rows were divided before.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Makes a file that keys are divided in.
    pub(crate) fn create(self, account: &Arc<MemoryAccount>) -> Result<PartWriter> {
        PartWriter::create(account, self.parts, self.block_bytes)
    }

    /// Makes a file with one part more, for rows that have no key.
    pub(crate) fn create_with_rest(self, account: &Arc<MemoryAccount>) -> Result<PartWriter> {
        PartWriter::create(account, self.parts + 1, self.block_bytes)
    }

    /// The part of a key.
    #[inline]
    pub(crate) fn part_of(&self, key: impl Hash) -> usize {
        let hash = HASHER.hash_one((self.level, key));
        // The upper half: the lower one chooses places in hash tables.
        (hash >> 32) as usize % self.parts
    }
}

/// The parts that have entries, the last first: to be taken from the end.
pub(crate) fn filled(parts: Vec<Part>) -> Vec<Part> {
    let mut parts: Vec<Part> = parts
        .into_iter()
        .filter(|part| part.entries() > 0)
        .collect();
    parts.reverse();
    parts
}

/// An entry of a temporary file isn't what was written.
pub(crate) fn unreadable() -> Error {
    Error::engine_error("a temporary file that is not as written")
}

impl Exec<'_> {
    /// An operator begins to put its rows on disk.
    #[cold]
    pub(crate) fn count_disk_table(&self) {
        let account = &self.session.memory;
        for counts in [account.space().counts(), account.pool().space().counts()] {
            counts.disk_tables.fetch_add(1, Relaxed);
        }
    }
}
