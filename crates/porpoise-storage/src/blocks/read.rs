//! Reading the rows of a block from the tree.

use std::ops::Bound;
use std::sync::Arc;

use redb::ReadOnlyTable;
use smallvec::SmallVec;

use super::Wanted;
use super::index::IndexNode;
use crate::block::{BUFFER_BYTES_MAX, Block, BlockMemory, Fill, build_block};
use crate::leaves::{BoundaryKey, SpaceTree};
use crate::tree_file::catch_damage;
use crate::tree_snapshot::SpaceRows;
use crate::{Direction, Result};

/// Which rows a block is to be filled with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum FetchRange {
    /// The key's, and those on both sides.
    Around,
    /// The key's and those after it; others may be in it, too.
    From,
    /// Those before the key, at least.
    Below,
    /// The last of all, at least.
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

    fn to_rows(&self) -> Vec<(&[u8], &[u8])> {
        self.rows().collect()
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

/// Where the index has no block.
pub(super) struct Gap<'k> {
    /// The key that is looked for.
    key: &'k [u8],
    range: FetchRange,
    /// The first key that the blocks before the key don't cover.
    floor: BoundaryKey,
    /// The first key that the next block covers.
    ceiling: Option<BoundaryKey>,
    /// Whether a scan has come to it, which wants the rows behind it next.
    is_scan: bool,
    /// Whether the disk is to begin with what comes next.
    reads_ahead: bool,
    /// A range begins here, and goes on to this key.
    until: Option<&'k [u8]>,
}

impl<'k> Gap<'k> {
    pub fn of(index: &IndexNode, key: &'k [u8], range: FetchRange) -> Gap<'k> {
        let (at, after) = match range {
            FetchRange::Last => (index.last(), None),
            FetchRange::Around | FetchRange::From | FetchRange::Below => index.around(key),
        };
        let (before, after) = match (range, at) {
            // The key itself may have a block.
            (FetchRange::Below, Some(block)) if block.low() == key => (index.before(key), at),
            _ => (at, after),
        };
        let ceiling = after.map(|block| block.low());
        let floor = before.and_then(|block| block.high()).unwrap_or_default();
        Gap {
            key,
            range,
            floor: SmallVec::from_slice(floor),
            ceiling: ceiling.map(SmallVec::from_slice),
            is_scan: false,
            reads_ahead: false,
            until: None,
        }
    }

    /// The same, as far as a cursor wants it.
    pub fn limited_to(mut self, wanted: &Wanted<'k>) -> Gap<'k> {
        self.is_scan = wanted.is_scan;
        self.until = wanted.until;
        // Who knows the end has had the disk begin with all of it.
        self.reads_ahead = wanted.is_scan && wanted.end.is_none();
        if let Some(end) = wanted.end
            && self.ceiling.as_deref().is_none_or(|ceiling| end < ceiling)
        {
            self.ceiling = Some(BoundaryKey::from_slice(end));
        }
        self
    }

    pub fn is_scan(&self) -> bool {
        self.is_scan
    }

    /// Has the disk begin with the leaves of a range that begins here, as far as no block has their rows: one
    /// wait for all of them.
    pub fn begin_reading(&self, rows: &SpaceRows) -> Result<()> {
        let (Some(until), SpaceRows::Leaves(tree)) = (self.until, rows) else {
            return Ok(());
        };
        match (self.range, self.ceiling.as_deref()) {
            (FetchRange::From, Some(ceiling)) => {
                tree.begin_reading_up(self.key, until.min(ceiling))
            }
            (FetchRange::From, None) => tree.begin_reading_up(self.key, until),
            (FetchRange::Below, _) => tree.begin_reading_down(self.key, until.max(&self.floor)),
            (FetchRange::Around | FetchRange::Last, _) => Ok(()),
        }
    }

    /// Whether a scan has come to it that goes on to greater keys.
    pub fn is_upward_scan(&self) -> bool {
        self.is_scan && self.range == FetchRange::From
    }
}

/// Reads rows from the tree, up to the blocks on either side, into a block.
///
/// While there is room in the cache, a block is as large as it may be, as the whole table is about to
/// be read. If other blocks have to go for it, `is_leaf_enough`, and it has the rows of one leaf: for
/// a single row, more would be more reads of the disk, for rows that are wanted no sooner than those
/// that go; and a scan reads each leaf once.
pub(super) fn read_block(
    rows: &SpaceRows,
    memory: &Arc<BlockMemory>,
    gap: &Gap<'_>,
    is_leaf_enough: bool,
) -> Result<Block> {
    let read = BlockRead {
        memory,
        gap,
        fill: Fill::new(gap.key),
    };
    match rows {
        SpaceRows::Redb(table) => catch_damage(|| read.block(table)),
        SpaceRows::Leaves(tree) if is_leaf_enough => match read.leaf(tree)? {
            Some(block) => Ok(block),
            None => read.block(tree),
        },
        SpaceRows::Leaves(tree) => read.block(tree),
    }
}

/// A leaf of more rows takes memory for the list of them.
const ROWS_OF_A_LEAF: usize = 64;

/// So many blocks a scan has read at once.
const BLOCKS_OF_A_RUN: usize = 16;

/// Reads the rows of a gap that a scan goes through upwards into some blocks, side by side from the
/// key on: one block at least. To read them one by one would be to read the leaves twice that two of
/// them share.
pub(super) fn read_run(
    tree: &SpaceTree,
    memory: &Arc<BlockMemory>,
    gap: &Gap<'_>,
) -> Result<Vec<Block>> {
    let ceiling = gap.ceiling.as_deref();
    let mut rows = match gap.reads_ahead {
        true => tree.up(gap.key, ceiling, true)?,
        false => tree.scan(gap.key, ceiling)?,
    };
    let mut blocks = Vec::with_capacity(BLOCKS_OF_A_RUN);
    let (mut low, mut fill) = (BoundaryKey::from_slice(gap.key), Fill::new(gap.key));
    let mut batch = ScanBatch::default();
    loop {
        let (key, value) = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            // Who goes on with the rows behind the last block is told.
            Err(_) if !blocks.is_empty() => return Ok(blocks),
            Err(error) => return Err(error),
        };
        if !fill.admits(key, value, BUFFER_BYTES_MAX) {
            blocks.push(build_block(memory, &low, Some(key), &batch.to_rows()));
            if blocks.len() == BLOCKS_OF_A_RUN {
                return Ok(blocks);
            }
            batch.clear();
            low = BoundaryKey::from_slice(key);
            fill = Fill::new(key);
            fill.admits(key, value, BUFFER_BYTES_MAX);
        }
        batch.push(key, value);
    }
    blocks.push(build_block(memory, &low, ceiling, &batch.to_rows()));
    Ok(blocks)
}

/// What a source of rows calls for each. `false` ends it.
type Take<'t> = dyn FnMut(&[u8], &[u8]) -> bool + 't;

/// A space's rows, of a snapshot of the tree.
trait RowSource {
    /// Calls `take` with the rows before a key (`None`: the end of all keys) that are not below
    /// `floor`, in descending order.
    fn down(
        &self,
        key: Option<&[u8]>,
        floor: &[u8],
        reads_ahead: bool,
        take: &mut Take<'_>,
    ) -> Result<()>;

    /// Calls `take` with the rows from a key on that are below `ceiling`, in ascending order.
    fn up(
        &self,
        key: &[u8],
        ceiling: Option<&[u8]>,
        reads_ahead: bool,
        take: &mut Take<'_>,
    ) -> Result<()>;
}

impl RowSource for ReadOnlyTable<&'static [u8], &'static [u8]> {
    fn down(
        &self,
        key: Option<&[u8]>,
        floor: &[u8],
        _reads_ahead: bool,
        take: &mut Take<'_>,
    ) -> Result<()> {
        if key == Some(floor) {
            return Ok(());
        }
        let end = key.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rows = self.range::<&[u8]>((Bound::Included(floor), end))?;
        while let Some(row) = rows.next_back() {
            let (key, value) = row?;
            if !take(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    fn up(
        &self,
        key: &[u8],
        ceiling: Option<&[u8]>,
        _reads_ahead: bool,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let end = ceiling.map_or(Bound::Unbounded, Bound::Excluded);
        for row in self.range::<&[u8]>((Bound::Included(key), end))? {
            let (key, value) = row?;
            if !take(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }
}

impl RowSource for SpaceTree {
    fn down(
        &self,
        key: Option<&[u8]>,
        floor: &[u8],
        reads_ahead: bool,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let mut rows = SpaceTree::down(self, key, floor, reads_ahead)?;
        while let Some((key, value)) = rows.next()? {
            if !take(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn up(
        &self,
        key: &[u8],
        ceiling: Option<&[u8]>,
        reads_ahead: bool,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let mut rows = SpaceTree::up(self, key, ceiling, reads_ahead)?;
        while let Some((key, value)) = rows.next()? {
            if !take(key, value) {
                break;
            }
        }
        Ok(())
    }
}

/// How a block is filled.
struct BlockRead<'a> {
    memory: &'a Arc<BlockMemory>,
    gap: &'a Gap<'a>,
    fill: Fill,
}

impl BlockRead<'_> {
    /// A block of the rows of one leaf; `None` if they are too many for a block.
    fn leaf(&self, tree: &SpaceTree) -> Result<Option<Block>> {
        let leaf = match self.gap.range {
            FetchRange::From | FetchRange::Around => tree.leaf_of(self.gap.key)?,
            FetchRange::Below => tree.leaf_before(Some(self.gap.key))?,
            FetchRange::Last => tree.leaf_before(None)?,
        };
        let Some(leaf) = leaf.filter(|leaf| leaf.rows().bytes() <= BUFFER_BYTES_MAX) else {
            return Ok(None);
        };
        match self.gap.range {
            FetchRange::From if self.gap.reads_ahead => leaf.read_ahead(Direction::Forward),
            FetchRange::Below | FetchRange::Last if self.gap.reads_ahead => {
                leaf.read_ahead(Direction::Backward);
            }
            _ => {}
        }
        let (leaf_low, leaf_high) = (leaf.low(), leaf.high());
        let low = self.gap.floor.as_slice().max(&leaf_low);
        let high = match (leaf_high.as_deref(), self.gap.ceiling.as_deref()) {
            (Some(leaf_high), Some(ceiling)) => Some(leaf_high.min(ceiling)),
            (leaf_high, ceiling) => leaf_high.or(ceiling),
        };
        let rows = leaf.rows();
        let end = high.map_or(rows.len(), |high| rows.lower_bound(high));
        let begin = rows.lower_bound(low).min(end);
        let rows: SmallVec<[_; ROWS_OF_A_LEAF]> = rows.rows_in(begin..end).collect();
        Ok(Some(build_block(self.memory, low, high, &rows)))
    }

    /// A block of as many rows as have room.
    fn block(mut self, rows: &impl RowSource) -> Result<Block> {
        let key = SmallVec::from_slice(self.gap.key);
        let (before, low) = match self.gap.range {
            FetchRange::From => (ScanBatch::default(), key),
            _ => self.scan_down(rows)?,
        };
        let (behind, high) = match self.gap.range {
            FetchRange::From | FetchRange::Around => self.scan_up(rows)?,
            FetchRange::Below => (
                ScanBatch::default(),
                Some(SmallVec::from_slice(self.gap.key)),
            ),
            FetchRange::Last => (ScanBatch::default(), None),
        };
        let rows: Vec<_> = before.rows().rev().chain(behind.rows()).collect();
        Ok(build_block(self.memory, &low, high.as_deref(), &rows))
    }

    /// The rows before the key, in descending order, and the lowest key that they cover.
    fn scan_down(&mut self, rows: &impl RowSource) -> Result<(ScanBatch, BoundaryKey)> {
        let bytes_max = match self.gap.range {
            FetchRange::Around => BUFFER_BYTES_MAX / 2,
            _ => BUFFER_BYTES_MAX,
        };
        let key = (self.gap.range != FetchRange::Last).then_some(self.gap.key);
        let floor = &self.gap.floor[..];
        let mut batch = ScanBatch::default();
        let mut is_full = false;
        rows.down(key, floor, self.gap.reads_ahead, &mut |key, value| {
            is_full = !self.fill.admits(key, value, bytes_max);
            if !is_full {
                batch.push(key, value);
            }
            !is_full
        })?;
        // The row after the one that had no room is the first that the block covers.
        let first = batch.rows().next_back().filter(|_| is_full);
        let low = SmallVec::from_slice(first.map_or(floor, |(first, _)| first));
        Ok((batch, low))
    }

    /// The rows from the key on, in ascending order, and the first key that they don't cover.
    fn scan_up(&mut self, rows: &impl RowSource) -> Result<(ScanBatch, Option<BoundaryKey>)> {
        let ceiling = self.gap.ceiling.as_deref();
        let mut batch = ScanBatch::default();
        let mut next = None;
        rows.up(
            self.gap.key,
            ceiling,
            self.gap.reads_ahead,
            &mut |key, value| {
                let fits = self.fill.admits(key, value, BUFFER_BYTES_MAX);
                // The row that was asked for is in it in any case.
                let is_taken = fits || batch.ends.is_empty();
                match is_taken {
                    true => batch.push(key, value),
                    false => next = Some(SmallVec::from_slice(key)),
                }
                is_taken
            },
        )?;
        Ok((batch, next.or_else(|| ceiling.map(SmallVec::from_slice))))
    }
}
