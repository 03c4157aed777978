//! Rows that a cursor reads many at a time.
//!
//! ```text
//! runs     │ block 7: rows 12..80 │ copied │ block 8: rows 0..3 │ copied │ …
//! numbers    0                67    68       69              71   72
//! ```
//!
//! Rows of blocks stay where they are, and the blocks are held for as long as the rows may be asked
//! for. What a layer above the tree has is lent to the cursor for one row only, and is copied.

use std::ops::Range;
use std::sync::Arc;

use crate::Direction;
use crate::block::Block;

/// A buffer for copies that has grown beyond this is not kept for the next rows.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The values of neighbouring rows, in the order in which their cursor reads them.
#[derive(Clone, Default)]
pub struct Rows {
    runs: Vec<Run>,
    /// The values that were copied, one after the other.
    copied: Vec<u8>,
    len: usize,
    /// About how many bytes the rows have.
    bytes: usize,
}

#[derive(Clone)]
struct Run {
    /// The number of its first row.
    first: usize,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Block(Arc<Block>, Range<usize>, Direction),
    Copied(Range<usize>),
}

impl Rows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// About how many bytes the rows have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lets go of all rows.
    pub fn clear(&mut self) {
        self.runs.clear();
        match self.copied.capacity() > KEPT_BYTES_MAX {
            true => self.copied = Vec::new(),
            false => self.copied.clear(),
        }
        (self.len, self.bytes) = (0, 0);
    }

    pub(crate) fn push_block(&mut self, block: &Arc<Block>, rows: Range<usize>, order: Direction) {
        if rows.is_empty() {
            return;
        }
        let first = self.len;
        self.len += rows.len();
        self.bytes += block.size() * rows.len() / block.len();
        self.runs.push(Run {
            first,
            source: Source::Block(Arc::clone(block), rows, order),
        });
    }

    pub(crate) fn push_copy(&mut self, value: &[u8]) {
        let begin = self.copied.len();
        self.copied.extend_from_slice(value);
        self.runs.push(Run {
            first: self.len,
            source: Source::Copied(begin..self.copied.len()),
        });
        self.len += 1;
        self.bytes += value.len();
    }

    /// The value of a row. Panics where there is no such row.
    pub fn value(&self, number: usize) -> &[u8] {
        let run = self.runs.partition_point(|run| run.first <= number) - 1;
        let Run { first, source } = &self.runs[run];
        match source {
            Source::Block(block, rows, Direction::Forward) => {
                block.value(rows.start + number - first)
            }
            Source::Block(block, rows, Direction::Backward) => {
                block.value(rows.end - 1 - (number - first))
            }
            Source::Copied(bytes) => &self.copied[bytes.clone()],
        }
    }

    /// Appends the values of all rows.
    pub fn append_values<'r>(&'r self, values: &mut Vec<&'r [u8]>) {
        values.reserve(self.len);
        for run in &self.runs {
            match &run.source {
                Source::Block(block, rows, Direction::Forward) => {
                    values.extend(rows.clone().map(|at| block.value(at)));
                }
                Source::Block(block, rows, Direction::Backward) => {
                    values.extend(rows.clone().rev().map(|at| block.value(at)));
                }
                Source::Copied(bytes) => values.push(&self.copied[bytes.clone()]),
            }
        }
    }
}
