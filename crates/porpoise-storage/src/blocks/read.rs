//! Reading the rows of a block from the tree.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use redb::ReadOnlyTable;
use smallvec::SmallVec;

use super::index::IndexNode;
use crate::Result;
use crate::block::{BUFFER_BYTES_MAX, Block, BlockMemory, Fill, build_block};
use crate::leaves::{BoundaryKey, SpaceTree};
use crate::page_checksums::PAGE_BYTES;
use crate::tree_file::catch_damage;
use crate::tree_snapshot::SpaceRows;

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

/// Reads rows from the tree, up to the blocks on either side, into a block.
///
/// While there is room in the cache, a block for one row gets rows of both sides, as a whole table is
/// about to be read. If other blocks have to go for it, it has the rows of the leaf that the row is
/// in: more would be more reads of the disk, for rows that are wanted no sooner than those that go.
pub(super) fn read_block(
    rows: &SpaceRows,
    memory: &Arc<BlockMemory>,
    index: &IndexNode,
    key: &[u8],
    range: FetchRange,
) -> Result<Block> {
    let read = BlockRead {
        index,
        key,
        range,
        fill: Fill::new(key),
    };
    match rows {
        SpaceRows::Redb(table) => catch_damage(|| read.block(memory, table)),
        SpaceRows::Leaves(tree) => read.block(
            memory,
            &LeafSource {
                tree,
                stays_in_leaf: range == FetchRange::Around && memory.is_nearly_used(),
            },
        ),
    }
}

/// What a source of rows calls for each. `false` ends it.
type Take<'t> = dyn FnMut(&[u8], &[u8]) -> bool + 't;

/// A space's rows, of a snapshot of the tree.
trait RowSource {
    /// How many bytes of a block for one row are of rows before it, at most.
    fn bytes_before_max(&self) -> usize;

    /// Calls `take` with the rows before a key (`None`: the end of all keys) that are not below `floor`,
    /// in descending order. Gives the lowest key that was looked for if that is not `floor`.
    fn down(
        &self,
        key: Option<&[u8]>,
        floor: &[u8],
        take: &mut Take<'_>,
    ) -> Result<Option<BoundaryKey>>;

    /// Calls `take` with the rows from a key on that are below `ceiling`, in ascending order. Gives the
    /// first key that was not looked for if that is not `ceiling`.
    fn up(
        &self,
        key: &[u8],
        ceiling: Option<&[u8]>,
        take: &mut Take<'_>,
    ) -> Result<Option<BoundaryKey>>;
}

impl RowSource for ReadOnlyTable<&'static [u8], &'static [u8]> {
    fn bytes_before_max(&self) -> usize {
        BUFFER_BYTES_MAX / 2
    }

    fn down(
        &self,
        key: Option<&[u8]>,
        floor: &[u8],
        take: &mut Take<'_>,
    ) -> Result<Option<BoundaryKey>> {
        if key == Some(floor) {
            return Ok(None);
        }
        let bounds = (
            Bound::Included(floor),
            key.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let mut rows = self.range::<&[u8]>(bounds)?;
        while let Some(row) = rows.next_back() {
            let (key, value) = row?;
            if !take(key.value(), value.value()) {
                break;
            }
        }
        Ok(None)
    }

    fn up(
        &self,
        key: &[u8],
        ceiling: Option<&[u8]>,
        take: &mut Take<'_>,
    ) -> Result<Option<BoundaryKey>> {
        let end = ceiling.map_or(Bound::Unbounded, Bound::Excluded);
        for row in self.range::<&[u8]>((Bound::Included(key), end))? {
            let (key, value) = row?;
            if !take(key.value(), value.value()) {
                break;
            }
        }
        Ok(None)
    }
}

struct LeafSource<'t> {
    tree: &'t SpaceTree,
    stays_in_leaf: bool,
}

impl RowSource for LeafSource<'_> {
    fn bytes_before_max(&self) -> usize {
        match self.stays_in_leaf {
            // A leaf of one page has room in any case.
            true => BUFFER_BYTES_MAX - PAGE_BYTES / 2,
            false => BUFFER_BYTES_MAX / 2,
        }
    }

    fn down(
        &self,
        key: Option<&[u8]>,
        floor: &[u8],
        take: &mut Take<'_>,
    ) -> Result<Option<BoundaryKey>> {
        if key == Some(floor) {
            return Ok(None);
        }
        let mut rows = self.tree.down(key, floor, self.stays_in_leaf)?;
        loop {
            match rows.next()? {
                ControlFlow::Continue((key, value)) if take(key, value) => {}
                ControlFlow::Continue(_) => return Ok(None),
                ControlFlow::Break(low) => return Ok(low),
            }
        }
    }

    fn up(
        &self,
        key: &[u8],
        ceiling: Option<&[u8]>,
        take: &mut Take<'_>,
    ) -> Result<Option<BoundaryKey>> {
        let mut rows = self.tree.up(key, ceiling, self.stays_in_leaf)?;
        loop {
            match rows.next()? {
                ControlFlow::Continue((key, value)) if take(key, value) => {}
                ControlFlow::Continue(_) => return Ok(None),
                ControlFlow::Break(high) => return Ok(high),
            }
        }
    }
}

/// How a block is filled.
struct BlockRead<'a> {
    index: &'a IndexNode,
    key: &'a [u8],
    range: FetchRange,
    fill: Fill,
}

impl BlockRead<'_> {
    fn block(mut self, memory: &Arc<BlockMemory>, rows: &impl RowSource) -> Result<Block> {
        let key = SmallVec::from_slice(self.key);
        let (before, low) = match self.range {
            FetchRange::From => (ScanBatch::default(), key),
            _ => self.scan_down(rows)?,
        };
        let (behind, high) = match self.range {
            FetchRange::From | FetchRange::Around => self.scan_up(rows)?,
            FetchRange::Below => (ScanBatch::default(), Some(SmallVec::from_slice(self.key))),
            FetchRange::Last => (ScanBatch::default(), None),
        };
        let rows = before.rows().rev().chain(behind.rows());
        Ok(build_block(memory, &low, high.as_deref(), rows))
    }

    /// The rows before the key, in descending order, and the lowest key that they cover.
    fn scan_down(&mut self, rows: &impl RowSource) -> Result<(ScanBatch, BoundaryKey)> {
        let bytes_max = match self.range {
            FetchRange::Around => rows.bytes_before_max(),
            _ => BUFFER_BYTES_MAX,
        };
        let (key, block_before) = match self.range {
            FetchRange::Last => (None, self.index.last()),
            _ => (Some(self.key), self.index.before(self.key)),
        };
        let floor = block_before
            .and_then(|block| block.high())
            .unwrap_or_default();
        let mut batch = ScanBatch::default();
        let mut is_full = false;
        let low = rows.down(key, floor, &mut |key, value| {
            is_full = !self.fill.admits(key, value, bytes_max);
            if !is_full {
                batch.push(key, value);
            }
            !is_full
        })?;
        // The row after the one that had no room is the first that the block covers.
        let first = batch.rows().next_back().filter(|_| is_full);
        let low = match first {
            Some((first, _)) => SmallVec::from_slice(first),
            None => low.unwrap_or_else(|| SmallVec::from_slice(floor)),
        };
        Ok((batch, low))
    }

    /// The rows from the key on, in ascending order, and the first key that they don't cover.
    fn scan_up(&mut self, rows: &impl RowSource) -> Result<(ScanBatch, Option<BoundaryKey>)> {
        let ceiling = self.index.after(self.key).map(|block| block.low());
        let mut batch = ScanBatch::default();
        let mut next = None;
        let behind = rows.up(self.key, ceiling, &mut |key, value| {
            let fits = self.fill.admits(key, value, BUFFER_BYTES_MAX);
            // The row that was asked for is in it in any case.
            let is_taken = fits || batch.ends.is_empty();
            match is_taken {
                true => batch.push(key, value),
                false => next = Some(SmallVec::from_slice(key)),
            }
            is_taken
        })?;
        let high = next.or(behind);
        Ok((batch, high.or_else(|| ceiling.map(SmallVec::from_slice))))
    }
}
