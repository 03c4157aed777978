//! Reading a range in order, through everything a reader can see.
//!
//! The sources of a row are layers, newest first: the transaction's own overlay, those of others at
//! READ UNCOMMITTED, the memtables, what a commit has spilled, and redb at the bottom. Each yields its keys in order; the cursor takes the smallest (or, backward,
//! the greatest), and where two layers have the same key, the newer one wins.
//!
//! ```text
//! overlay      ·   c=9   ·   ·
//! memtable     ·   c=4   ·   d=✗      forward: a=1, c=9, e=5
//! redb        a=1  c=2   ·  d=7  e=5
//! ```
//!
//! Rows of redb are lent from blocks ([`crate::block`]), versions from the memtable. The overlay is
//! read in batches of growing length, by reference count. With no layer above redb, which is the
//! usual case, nothing is merged at all.

use std::cmp::Ordering;
use std::ops::{Bound, Range};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::block::Block;
use crate::blocks::Wanted;
use crate::memtable::{
    BoundKey, Key, SpaceVersions, Unpublished, Value, VersionCursor, is_past_high,
};
use crate::overlay::{SharedOverlay, Writes, copy_writes};
use crate::rows::Rows;
use crate::scan_ahead::ScanAhead;
use crate::snapshot::{Snapshot, is_empty_range};
use crate::spill::{Runs, RunsCursor};
use crate::{CommitTs, Direction, Result, SpaceId};

/// How many rows ahead of the current one a value is prefetched.
const ROWS_PREFETCHED: usize = 3;

/// Blocks that a cursor has read when it counts as a scan, for which the disk reads ahead and few
/// blocks are kept: ranges of some rows have come to their end by then.
const BLOCKS_OF_RANGES: u32 = 8;

/// A scan that has read so often what nobody had read before has others read ahead of it.
const READ_BEFORE_AHEAD: u32 = 2;

/// So many times as often where others had no time for it.
const LATER_AFTER_WAITS: u32 = 8;

/// How many other threads read ahead of a scan, unless it is told.
const THREADS_AHEAD: usize = 3;

/// Longer values of layers are not copied: rows that are read many at a time end ahead of them.
const COPIED_BYTES_MAX: usize = 4096;

const FIRST_BATCH: usize = 8;
const BATCH_MAX: usize = 128;

/// A layer of rows above the tree.
pub(crate) enum Layer {
    Overlay(Arc<Writes>),
    /// One that its transaction may be writing to.
    Open(Arc<SharedOverlay>, SpaceId),
    Versions(Arc<SpaceVersions>, CommitTs, Option<Unpublished>),
    /// What a transaction has spilled.
    Runs(Arc<Runs>, SpaceId),
}

/// Rows of a range, one after another. Each is lent until the next call.
///
/// A cursor owns what it reads: it may outlive the transaction it came from, and sees neither later
/// commits nor the transaction's own later writes.
pub struct Cursor {
    layers: SmallVec<[LayerCursor; 3]>,
    rows: Option<TreeRows>,
    is_tree_row_consumed: bool,
    /// The current row, a layer's, was found and not yet lent.
    is_row_pending: bool,
    origin: RowOrigin,
    direction: Direction,
    /// Keeps the tree and the memtables alive that the other fields read.
    snapshot: Snapshot,
}

/// Which source has the current row.
#[derive(Clone, Copy)]
enum RowOrigin {
    Layer(usize),
    Tree,
}

impl Cursor {
    pub(crate) fn new(
        snapshot: Snapshot,
        layers: SmallVec<[Layer; 3]>,
        rows: Option<SpaceId>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        let mut open = SmallVec::new();
        if !is_empty_range(bounds) {
            for layer in layers {
                let layer = LayerCursor::new(layer, bounds, direction)?;
                if layer.current().is_some() {
                    open.push(layer);
                }
            }
        }
        Ok(Cursor {
            layers: open,
            rows: rows.map(|space| TreeRows::new(space, bounds)),
            is_tree_row_consumed: true,
            is_row_pending: false,
            origin: RowOrigin::Tree,
            direction,
            snapshot,
        })
    }

    /// Lets so many other threads at most read ahead, where cores are idle; 3 unless told.
    pub fn set_threads_ahead(&mut self, threads: usize) {
        if let Some(rows) = &mut self.rows {
            rows.threads_max = threads;
        }
    }

    /// The next row's key and value, or `None` past the end. Fails if the disk does, or with
    /// [`Error::Damaged`](crate::Error::Damaged).
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if !self.layers.is_empty() {
            if !std::mem::take(&mut self.is_row_pending) {
                self.merge()?;
            }
        } else if !self
            .rows
            .as_mut()
            .is_some_and(|rows| rows.step(self.direction))
        {
            self.advance_tree_rows()?;
        }
        Ok(match self.origin {
            RowOrigin::Layer(at) => match self.layers[at].current() {
                Some((key, Some(value))) => Some((key, value)),
                _ => None,
            },
            RowOrigin::Tree => self.rows.as_ref().and_then(TreeRows::current),
        })
    }

    /// Reads on: replaces `rows` by the next ones, up to `count` of them and about `bytes_max` bytes.
    /// What comes next may have to be read by [`next`](Cursor::next), as a long value is that would
    /// have to be copied: `rows` is empty then, as it is past the end.
    ///
    /// # Errors
    /// As [`next`](Cursor::next).
    pub fn next_rows(&mut self, rows: &mut Rows, count: usize, bytes_max: usize) -> Result<()> {
        rows.clear();
        while rows.len() < count && rows.bytes() < bytes_max {
            let is_read = match self.layers.is_empty() {
                true => self.take_run(rows, count, None)?,
                false => self.take_below_layers(rows, count)?,
            };
            if !is_read {
                break;
            }
        }
        Ok(())
    }

    /// Takes rows of the tree as long as no layer has a nearer key, else the nearest layer's row;
    /// false past the end, and where that row is not copied.
    fn take_below_layers(&mut self, rows: &mut Rows, count: usize) -> Result<bool> {
        if self.is_row_pending {
            return Ok(false);
        }
        for layer in &mut self.layers {
            layer.advance_if_consumed()?;
        }
        if !std::mem::replace(&mut self.is_tree_row_consumed, true)
            && let Some(tree) = &mut self.rows
        {
            tree.step_back(self.direction);
        }
        let keys = self.layers.iter().filter_map(LayerCursor::current);
        let keys = keys.map(|(key, _)| key);
        let nearest = match self.direction {
            Direction::Forward => keys.min(),
            Direction::Backward => keys.max(),
        };
        let nearest = nearest.map(BoundKey::from_slice);
        let before = rows.len();
        if self.take_run(rows, count, nearest.as_deref())? && rows.len() > before {
            return Ok(true);
        }
        self.merge()?;
        match self.origin {
            RowOrigin::Layer(at) => match self.layers[at].current() {
                Some((_, Some(value))) if value.len() <= COPIED_BYTES_MAX => rows.push_copy(value),
                Some(_) => {
                    self.is_row_pending = true;
                    return Ok(false);
                }
                None => return Ok(false),
            },
            RowOrigin::Tree => {
                let Some(tree) = &self.rows else {
                    return Ok(false);
                };
                if let Some(block) = &tree.block {
                    rows.push_block(block, tree.at..tree.at + 1, self.direction);
                }
            }
        }
        Ok(true)
    }

    /// Takes the rows of the current block, or of the next one, that come before a key; false past
    /// the last block.
    fn take_run(&mut self, rows: &mut Rows, count: usize, before: Option<&[u8]>) -> Result<bool> {
        let Some(tree) = &mut self.rows else {
            return Ok(false);
        };
        if tree.within.is_empty() && !tree.next_block(&self.snapshot, self.direction)? {
            self.rows = None;
            return Ok(false);
        }
        if let Some(block) = &tree.block {
            let run = tree.run(block, self.direction, count - rows.len(), before);
            rows.push_block(block, run.clone(), self.direction);
            match self.direction {
                Direction::Forward => tree.within.start = run.end,
                Direction::Backward => tree.within.end = run.start,
            }
        }
        Ok(true)
    }

    /// Finds the next row among all sources.
    fn merge(&mut self) -> Result<()> {
        loop {
            for layer in &mut self.layers {
                layer.advance_if_consumed()?;
            }
            if self.is_tree_row_consumed {
                self.advance_tree_rows()?;
            }
            self.origin = self.choose();
            let is_deleted = match self.origin {
                RowOrigin::Layer(at) => matches!(self.layers[at].current(), Some((_, None))),
                RowOrigin::Tree => false,
            };
            if !is_deleted {
                return Ok(());
            }
        }
    }

    fn advance_tree_rows(&mut self) -> Result<()> {
        self.is_tree_row_consumed = false;
        if let Some(rows) = &mut self.rows
            && !rows.advance(&self.snapshot, self.direction)?
        {
            self.rows = None;
        }
        Ok(())
    }

    /// Finds the nearest key, and marks every source that has it as consumed. Past the end that is
    /// the tree's.
    fn choose(&mut self) -> RowOrigin {
        let nearer = |key: &[u8], best: &[u8]| match self.direction {
            Direction::Forward => key.cmp(best),
            Direction::Backward => best.cmp(key),
        };
        let mut origin: Option<(usize, &[u8])> = None;
        // Of equal keys the newest layer's, which comes first.
        for (at, layer) in self.layers.iter().enumerate() {
            if let Some((key, _)) = layer.current()
                && origin.is_none_or(|(_, best)| nearer(key, best).is_lt())
            {
                origin = Some((at, key));
            }
        }
        let row = self.rows.as_ref().and_then(TreeRows::current);
        let row_order = match (origin, row) {
            (_, None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some((_, best)), Some((key, _))) => nearer(key, best),
        };
        self.is_tree_row_consumed = row_order.is_le();
        let origin = origin.filter(|_| row_order.is_ge());
        let Some((at, _)) = origin else {
            return RowOrigin::Tree;
        };
        // Those before it are newer: they would have won with the same key.
        if let Some((origin, older)) = self.layers[at..].split_first_mut() {
            let key = origin.current().map(|(key, _)| key);
            for layer in older {
                layer.is_consumed = layer.current().map(|(key, _)| key) == key;
            }
            origin.is_consumed = true;
        }
        RowOrigin::Layer(at)
    }
}

/// The B-tree's part of the range, block by block.
struct TreeRows {
    space: SpaceId,
    low: Bound<BoundKey>,
    high: Bound<BoundKey>,
    block: Option<Arc<Block>>,
    /// How many blocks there were, up to those of a scan.
    blocks: u32,
    /// How many blocks of a scan had to be read, up to those of one that reads ahead.
    read: u32,
    read_before_ahead: u32,
    /// What others read ahead, and how many of them at most.
    ahead: Option<Box<ScanAhead>>,
    threads_max: usize,
    /// The current row, and the rows of the block that are in the range.
    at: usize,
    within: Range<usize>,
}

impl TreeRows {
    fn new(space: SpaceId, (low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> TreeRows {
        TreeRows {
            space,
            low: low.map(BoundKey::from_slice),
            high: high.map(BoundKey::from_slice),
            block: None,
            blocks: 0,
            read: 0,
            read_before_ahead: READ_BEFORE_AHEAD,
            ahead: None,
            threads_max: THREADS_AHEAD,
            at: 0,
            within: 0..0,
        }
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        Some(self.block.as_ref()?.row(self.at))
    }

    /// Goes to the next row of this block; false past its last.
    #[inline]
    fn step(&mut self, direction: Direction) -> bool {
        let next = match direction {
            Direction::Forward => self.within.next(),
            Direction::Backward => self.within.next_back(),
        };
        self.at = next.unwrap_or_default();
        if let Some(block) = &self.block
            && direction == Direction::Forward
        {
            block.prefetch_value(self.at + ROWS_PREFETCHED);
        }
        next.is_some()
    }

    /// Goes back to where the last step began.
    fn step_back(&mut self, direction: Direction) {
        match direction {
            Direction::Forward => self.within.start = self.at,
            Direction::Backward => self.within.end = self.at + 1,
        }
    }

    /// The rows of the block that come next, up to `count` of them, and those before a key only.
    fn run(
        &self,
        block: &Block,
        direction: Direction,
        count: usize,
        before: Option<&[u8]>,
    ) -> Range<usize> {
        let Range { start, end } = self.within;
        match direction {
            Direction::Forward => {
                let is_before = |key| start < end && block.row(start).0 < key;
                let bound = match before {
                    Some(key) if !is_before(key) => start,
                    Some(key) => block.lower_bound(key).min(end),
                    None => end,
                };
                start..bound.min(start.saturating_add(count))
            }
            Direction::Backward => {
                let is_before = |key| start < end && block.row(end - 1).0 > key;
                let bound = match before {
                    Some(key) if !is_before(key) => end,
                    Some(key) => block.upper_bound(key).max(start),
                    None => start,
                };
                bound.max(end.saturating_sub(count))..end
            }
        }
    }

    /// Goes to the next row; false past the last.
    fn advance(&mut self, snapshot: &Snapshot, direction: Direction) -> Result<bool> {
        while !self.step(direction) {
            if !self.next_block(snapshot, direction)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn next_block(&mut self, snapshot: &Snapshot, direction: Direction) -> Result<bool> {
        let (low, high) = (as_slice(&self.low), as_slice(&self.high));
        let from = match (&self.block, direction) {
            (None, Direction::Forward) => key_of(low),
            // The block of the key itself, or the one before it: either way rows outside the range are
            // left out below.
            (None, Direction::Backward) => key_of(high),
            (Some(block), Direction::Forward) => match block.high() {
                Some(next) if !is_past_high(next, high) => Some(next),
                _ => return Ok(false),
            },
            (Some(block), Direction::Backward) => match (block.low(), low) {
                ([], _) => return Ok(false),
                (end, Bound::Included(low) | Bound::Excluded(low)) if end <= low => {
                    return Ok(false);
                }
                (end, _) => Some(end),
            },
        };
        let seeks_key_itself = self.block.is_none() && matches!(high, Bound::Included(_));
        let wanted = Wanted {
            key: from,
            direction: match direction {
                // Rows up to and with a key: the block that covers the key has the last of them.
                Direction::Backward if seeks_key_itself => Direction::Forward,
                direction => direction,
            },
            is_scan: self.blocks == BLOCKS_OF_RANGES,
            end: None,
            until: match direction {
                Direction::Forward if self.blocks == 0 => key_of(high),
                // From the block on that lies below the key itself.
                Direction::Backward
                    if self.blocks == u32::from(matches!(high, Bound::Included(_))) =>
                {
                    key_of(low)
                }
                _ => None,
            },
        };
        let ahead = match (&mut self.ahead, from) {
            (Some(ahead), Some(from)) => ahead.block(from),
            _ => None,
        };
        let tree = &snapshot.epoch.tree;
        let block = match ahead {
            Some(block) => block,
            None => {
                let Some(found) = tree.block(self.space, wanted)? else {
                    return Ok(false);
                };
                self.read += u32::from(wanted.is_scan && !found.was_kept);
                found.block
            }
        };
        // The blocks may have been replaced: go on exactly where the last one ended.
        let (low, high) = match (&self.block, from, direction) {
            (Some(_), Some(from), Direction::Forward) => (Bound::Included(from), high),
            (Some(_), Some(from), Direction::Backward) => (low, Bound::Excluded(from)),
            _ => (low, high),
        };
        let first = match low {
            Bound::Included(key) => block.lower_bound(key),
            Bound::Excluded(key) => block.upper_bound(key),
            Bound::Unbounded => 0,
        };
        let end = match high {
            Bound::Included(key) => block.upper_bound(key),
            Bound::Excluded(key) => block.lower_bound(key),
            Bound::Unbounded => block.len(),
        };
        self.within = first..end;
        if let Some(ahead) = &self.ahead {
            if ahead.is_over() {
                if ahead.has_waited() {
                    let later = self.read_before_ahead.saturating_mul(LATER_AFTER_WAITS);
                    self.read_before_ahead = later;
                }
                self.ahead = None;
            }
        } else if self.read >= self.read_before_ahead
            && direction == Direction::Forward
            && let Some(next) = block.high().filter(|next| !is_past_high(next, high))
        {
            let (space, high) = (self.space, self.high.clone());
            let ahead = ScanAhead::begin(tree, space, next, high, self.threads_max);
            self.ahead = ahead.map(Box::new);
            self.read = 0;
        }
        self.block = Some(block);
        self.blocks = (self.blocks + 1).min(BLOCKS_OF_RANGES);
        Ok(true)
    }
}

fn key_of(bound: Bound<&[u8]>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

fn as_slice(bound: &Bound<BoundKey>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

/// One layer's part of the range.
pub(crate) struct LayerCursor {
    cursor: LayerSource,
    pub is_consumed: bool,
}

enum LayerSource {
    Overlay(OverlayCursor),
    Versions(VersionCursor),
    Runs(Box<RunsCursor>),
}

impl LayerCursor {
    pub fn new(
        layer: Layer,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Self> {
        let cursor = match layer {
            Layer::Overlay(writes) => {
                let writes = OverlaySource::Kept(writes);
                LayerSource::Overlay(OverlayCursor::new(writes, bounds, direction)?)
            }
            Layer::Open(overlay, space) => {
                let writes = OverlaySource::Open(overlay, space);
                LayerSource::Overlay(OverlayCursor::new(writes, bounds, direction)?)
            }
            Layer::Runs(runs, space) => {
                let cursor = RunsCursor::new(&runs, space, bounds, direction)?;
                LayerSource::Runs(Box::new(cursor))
            }
            Layer::Versions(versions, ts, unpublished) => {
                let cursor = VersionCursor::new(versions, bounds, direction, ts, unpublished);
                LayerSource::Versions(cursor)
            }
        };
        Ok(LayerCursor {
            cursor,
            is_consumed: false,
        })
    }

    #[inline]
    pub fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        match &self.cursor {
            LayerSource::Overlay(cursor) => cursor.current(),
            LayerSource::Versions(cursor) => cursor.current(),
            LayerSource::Runs(cursor) => cursor.current(),
        }
    }

    pub fn advance_if_consumed(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_consumed) {
            match &mut self.cursor {
                LayerSource::Overlay(cursor) => cursor.advance()?,
                LayerSource::Versions(cursor) => cursor.advance(),
                LayerSource::Runs(cursor) => cursor.advance()?,
            }
        }
        Ok(())
    }
}

/// Where an overlay's writes are read.
enum OverlaySource {
    /// As they were when the cursor was made.
    Kept(Arc<Writes>),
    /// As they are by now.
    Open(Arc<SharedOverlay>, SpaceId),
}

/// An overlay's writes, read ahead in batches.
struct OverlayCursor {
    writes: OverlaySource,
    low: Bound<Key>,
    high: Bound<Key>,
    direction: Direction,
    batch: Vec<(Key, Value)>,
    at: usize,
    batch_len: usize,
    is_last_batch: bool,
}

impl OverlayCursor {
    fn new(
        writes: OverlaySource,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<OverlayCursor> {
        let mut cursor = OverlayCursor {
            writes,
            low: low.map(Key::from),
            high: high.map(Key::from),
            direction,
            batch: Vec::new(),
            at: 0,
            batch_len: FIRST_BATCH,
            is_last_batch: false,
        };
        cursor.fill()?;
        Ok(cursor)
    }

    fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (key, value) = self.batch.get(self.at)?;
        Some((key, value.as_deref()))
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at >= self.batch.len() && !self.is_last_batch {
            if let Some((last, _)) = self.batch.pop() {
                match self.direction {
                    Direction::Forward => self.low = Bound::Excluded(last),
                    Direction::Backward => self.high = Bound::Excluded(last),
                }
            }
            self.batch_len = (self.batch_len * 2).min(BATCH_MAX);
            self.fill()?;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        self.batch.clear();
        self.at = 0;
        let range = (as_bytes(&self.low), as_bytes(&self.high));
        if !is_empty_range(range) {
            let (batch, len) = (&mut self.batch, self.batch_len);
            match &self.writes {
                OverlaySource::Kept(writes) => {
                    copy_writes(writes, range, self.direction, len, batch);
                }
                OverlaySource::Open(overlay, space) => {
                    let overlay = overlay.0.read();
                    overlay.copy_writes(*space, range, self.direction, len, batch)?;
                }
            }
        }
        self.is_last_batch = self.batch.len() < self.batch_len;
        Ok(())
    }
}

fn as_bytes(bound: &Bound<Key>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}
