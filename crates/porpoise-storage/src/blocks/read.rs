//! Reading the rows of a block from the tree.

use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use super::index::IndexNode;
use crate::Result;
use crate::block::{BUFFER_BYTES_MAX, Block, BlockMemory, Fill, build_block};
use crate::tree_snapshot::Table;

/// Which rows a block is to be filled with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum FetchRange {
    /// The key's, and those on both sides.
    Around,
    /// The key's and those after it.
    From,
    /// Those before the key.
    Below,
    /// The last of all.
    Last,
}

/// Rows as a scan of the tree gives them, in one buffer.
#[derive(Default)]
pub(crate) struct ScanBatch {
    bytes: Vec<u8>,
    /// Where the key and the value of each end.
    ends: Vec<(usize, usize)>,
}

impl ScanBatch {
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn row(&self, at: usize) -> (&[u8], &[u8]) {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (key_end, end) = self.ends[at];
        (&self.bytes[begin..key_end], &self.bytes[key_end..end])
    }

    pub fn rows(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + Clone {
        (0..self.ends.len()).map(|at| self.row(at))
    }

    /// How many bytes the rows have.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

type BoundaryKey = SmallVec<[u8; 24]>;

/// Reads rows from the tree, up to the blocks on either side, into a block.
pub(super) fn read_block(
    table: &Table,
    memory: &Arc<BlockMemory>,
    index: &IndexNode,
    key: &[u8],
    range: FetchRange,
) -> Result<Block> {
    let mut fill = Fill::new(key);
    let (before, low) = match range {
        FetchRange::From => (ScanBatch::default(), SmallVec::from_slice(key)),
        _ => scan_down(table, index, key, range, &mut fill)?,
    };
    let (behind, high) = match range {
        FetchRange::From | FetchRange::Around => scan_up(table, index, key, &mut fill)?,
        FetchRange::Below => (ScanBatch::default(), Some(SmallVec::from_slice(key))),
        FetchRange::Last => (ScanBatch::default(), None),
    };
    let rows = before.rows().rev().chain(behind.rows());
    Ok(build_block(memory, &low, high.as_deref(), rows))
}

/// The rows before the key, in descending order, and the lowest key that they cover.
fn scan_down(
    table: &Table,
    index: &IndexNode,
    key: &[u8],
    range: FetchRange,
    fill: &mut Fill,
) -> Result<(ScanBatch, BoundaryKey)> {
    let mut batch = ScanBatch::default();
    let bytes_max = match range {
        FetchRange::Around => BUFFER_BYTES_MAX / 2,
        _ => BUFFER_BYTES_MAX,
    };
    let (bound, last) = match range {
        FetchRange::Last => (Bound::Unbounded, index.last()),
        _ => (Bound::Excluded(key), index.before(key)),
    };
    let floor = last.and_then(|block| block.high()).unwrap_or_default();
    let mut low = SmallVec::from_slice(floor);
    let is_empty = range != FetchRange::Last && floor == key;
    let rows = (!is_empty).then(|| table.range::<&[u8]>((Bound::Included(floor), bound)));
    let mut rows = rows.transpose()?;
    while let Some(row) = rows.as_mut().and_then(|rows| rows.next_back()) {
        let (key, value) = row?;
        if !fill.admits(key.value(), value.value(), bytes_max) {
            // The row after it is the first that the block covers.
            if let Some((first, _)) = batch.rows().next_back() {
                low = SmallVec::from_slice(first);
            }
            break;
        }
        batch.push(key.value(), value.value());
    }
    Ok((batch, low))
}

/// The rows from the key on, in ascending order, and the first key that they don't cover.
fn scan_up(
    table: &Table,
    index: &IndexNode,
    key: &[u8],
    fill: &mut Fill,
) -> Result<(ScanBatch, Option<BoundaryKey>)> {
    let mut batch = ScanBatch::default();
    let ceiling = index.after(key).map(|block| block.low());
    let mut high = ceiling.map(SmallVec::from_slice);
    let end = ceiling.map_or(Bound::Unbounded, Bound::Excluded);
    for row in table.range::<&[u8]>((Bound::Included(key), end))? {
        let (key, value) = row?;
        let fits = fill.admits(key.value(), value.value(), BUFFER_BYTES_MAX);
        // The row that was asked for is in it in any case.
        if !fits && !batch.ends.is_empty() {
            high = Some(SmallVec::from_slice(key.value()));
            break;
        }
        batch.push(key.value(), value.value());
    }
    Ok((batch, high))
}
