//! Reading a range in order, through everything a reader can see.
//!
//! The sources of a row are layers, newest first: the transaction's own overlay, the generations of
//! versions, and redb at the bottom. Each yields its keys in order; the cursor takes the smallest
//! (or, backward, the greatest), and where two layers have the same key, the newer one speaks.
//!
//! ```text
//! overlay      ·   c=9   ·   ·
//! versions     ·   c=4   ·   d=✗      forward: a=1, c=9, e=5
//! redb        a=1  c=2   ·  d=7  e=5
//! ```
//!
//! Rows of redb are lent from blocks ([`crate::block`]), versions from where they lie. The overlay is read in batches of
//! growing length, by reference count. With no layer above redb, which is the usual case, nothing is merged at all.

use std::cmp::Ordering;
use std::ops::{Bound, Range};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::block::Block;
use crate::overlay::Writes;
use crate::snapshot::{Snapshot, is_empty_range};
use crate::versions::{BoundKey, Key, SpaceVersions, Value, VersionWalk, past_high};
use crate::{CommitTs, Direction, Result, SpaceId};

/// How many rows ahead of the one that is lent values are brought near.
const ROWS_PREFETCHED: usize = 3;

const FIRST_BATCH: usize = 8;
const BATCH_MAX: usize = 128;

/// A layer of rows in memory.
pub(crate) enum Layer {
    Overlay(Arc<Writes>),
    Versions(Arc<SpaceVersions>, CommitTs),
}

/// Rows of a range, one after another. Each is lent until the next call.
///
/// A cursor owns what it reads: it may outlive the transaction it came from, and sees neither later
/// commits nor the transaction's own later writes.
pub struct Cursor {
    layers: SmallVec<[LayerCursor; 3]>,
    rows: Option<Rows>,
    row_is_spent: bool,
    winner: Winner,
    direction: Direction,
    /// Keeps the tree and the generations alive that the rest reads.
    snapshot: Snapshot,
}

/// Which source has the row to be lent.
#[derive(Clone, Copy)]
enum Winner {
    Layer(usize),
    Row,
}

impl Cursor {
    pub(crate) fn new(
        snapshot: Snapshot,
        layers: SmallVec<[Layer; 3]>,
        rows: Option<SpaceId>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Cursor {
        let layers = if is_empty_range(bounds) {
            SmallVec::new()
        } else {
            layers
                .into_iter()
                .map(|layer| LayerCursor::new(layer, bounds, direction))
                .filter(|layer| layer.head().is_some())
                .collect()
        };
        Cursor {
            layers,
            rows: rows.map(|space| Rows::new(space, bounds)),
            row_is_spent: true,
            winner: Winner::Row,
            direction,
            snapshot,
        }
    }

    /// The next row's key and value, or `None` past the end.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if !self.layers.is_empty() {
            self.merge()?;
        } else if !self
            .rows
            .as_mut()
            .is_some_and(|rows| rows.step(self.direction))
        {
            self.advance_rows()?;
        }
        Ok(match self.winner {
            Winner::Layer(at) => match self.layers[at].head() {
                Some((key, Some(value))) => Some((key, value)),
                _ => None,
            },
            Winner::Row => self.rows.as_ref().and_then(Rows::head),
        })
    }

    /// Finds the next row among all sources.
    fn merge(&mut self) -> Result<()> {
        loop {
            for layer in &mut self.layers {
                layer.advance_if_spent();
            }
            if self.row_is_spent {
                self.advance_rows()?;
            }
            self.winner = self.choose();
            let is_deleted = match self.winner {
                Winner::Layer(at) => matches!(self.layers[at].head(), Some((_, None))),
                Winner::Row => false,
            };
            if !is_deleted {
                return Ok(());
            }
        }
    }

    fn advance_rows(&mut self) -> Result<()> {
        self.row_is_spent = false;
        if let Some(rows) = &mut self.rows
            && !rows.advance(&self.snapshot, self.direction)?
        {
            self.rows = None;
        }
        Ok(())
    }

    /// Finds the nearest key, and marks every source that has it as spent. Past the end it is the rows', which are no more.
    fn choose(&mut self) -> Winner {
        let nearer = |key: &[u8], best: &[u8]| match self.direction {
            Direction::Forward => key.cmp(best),
            Direction::Backward => best.cmp(key),
        };
        let mut winner: Option<(usize, &[u8])> = None;
        // Of equal keys the newest layer's, which comes first.
        for (at, layer) in self.layers.iter().enumerate() {
            if let Some((key, _)) = layer.head()
                && winner.is_none_or(|(_, best)| nearer(key, best).is_lt())
            {
                winner = Some((at, key));
            }
        }
        let row = self.rows.as_ref().and_then(Rows::head);
        let row_order = match (winner, row) {
            (_, None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some((_, best)), Some((key, _))) => nearer(key, best),
        };
        self.row_is_spent = row_order.is_le();
        let winner = winner.filter(|_| row_order.is_ge());
        let Some((at, _)) = winner else {
            return Winner::Row;
        };
        // Those before it are newer: they would have won with the same key.
        if let Some((winner, older)) = self.layers[at..].split_first_mut() {
            let key = winner.head().map(|(key, _)| key);
            for layer in older {
                layer.is_spent = layer.head().map(|(key, _)| key) == key;
            }
            winner.is_spent = true;
        }
        Winner::Layer(at)
    }
}

/// The B-tree's part of the range, block by block.
struct Rows {
    space: SpaceId,
    low: Bound<BoundKey>,
    high: Bound<BoundKey>,
    block: Option<Arc<Block>>,
    /// The row that is lent, and the rows of the block that are in the range.
    at: usize,
    within: Range<usize>,
}

impl Rows {
    fn new(space: SpaceId, (low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> Rows {
        Rows {
            space,
            low: low.map(BoundKey::from_slice),
            high: high.map(BoundKey::from_slice),
            block: None,
            at: 0,
            within: 0..0,
        }
    }

    #[inline]
    fn head(&self) -> Option<(&[u8], &[u8])> {
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
            (None, Direction::Forward) => match low {
                Bound::Included(key) | Bound::Excluded(key) => Some(key),
                Bound::Unbounded => None,
            },
            (None, Direction::Backward) => match high {
                // The block of the key itself, or the one before it: either way its rows are sorted out below.
                Bound::Included(key) | Bound::Excluded(key) => Some(key),
                Bound::Unbounded => None,
            },
            (Some(block), Direction::Forward) => match block.high() {
                Some(next) if !past_high(next, high) => Some(next),
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
        let base = &snapshot.epoch.base;
        let block = match direction {
            // Rows up to and with a key: the block that speaks for the key has the last of them.
            Direction::Backward if seeks_key_itself => {
                base.block(self.space, from, Direction::Forward)?
            }
            direction => base.block(self.space, from, direction)?,
        };
        let Some(block) = block else { return Ok(false) };
        // Others may have cut the blocks anew: go on exactly where the last one ended.
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
        self.block = Some(block);
        Ok(true)
    }
}

fn as_slice(bound: &Bound<BoundKey>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

/// One layer's part of the range.
struct LayerCursor {
    walk: Walk,
    is_spent: bool,
}

enum Walk {
    Overlay(OverlayWalk),
    Versions(VersionWalk),
}

impl LayerCursor {
    fn new(layer: Layer, bounds: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> Self {
        let walk = match layer {
            Layer::Overlay(writes) => Walk::Overlay(OverlayWalk::new(writes, bounds, direction)),
            Layer::Versions(versions, ts) => {
                Walk::Versions(VersionWalk::new(versions, bounds, direction, ts))
            }
        };
        LayerCursor {
            walk,
            is_spent: false,
        }
    }

    #[inline]
    fn head(&self) -> Option<(&[u8], Option<&[u8]>)> {
        match &self.walk {
            Walk::Overlay(walk) => walk.head(),
            Walk::Versions(walk) => walk.head(),
        }
    }

    fn advance_if_spent(&mut self) {
        if std::mem::take(&mut self.is_spent) {
            match &mut self.walk {
                Walk::Overlay(walk) => walk.advance(),
                Walk::Versions(walk) => walk.advance(),
            }
        }
    }
}

/// The transaction's own writes, read ahead in batches.
struct OverlayWalk {
    writes: Arc<Writes>,
    low: Bound<Key>,
    high: Bound<Key>,
    direction: Direction,
    batch: Vec<(Key, Value)>,
    at: usize,
    batch_len: usize,
    is_last_batch: bool,
}

impl OverlayWalk {
    fn new(
        writes: Arc<Writes>,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> OverlayWalk {
        let mut walk = OverlayWalk {
            writes,
            low: low.map(Key::from),
            high: high.map(Key::from),
            direction,
            batch: Vec::new(),
            at: 0,
            batch_len: FIRST_BATCH,
            is_last_batch: false,
        };
        walk.fill();
        walk
    }

    fn head(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (key, value) = self.batch.get(self.at)?;
        Some((key, value.as_deref()))
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at >= self.batch.len() && !self.is_last_batch {
            if let Some((last, _)) = self.batch.pop() {
                match self.direction {
                    Direction::Forward => self.low = Bound::Excluded(last),
                    Direction::Backward => self.high = Bound::Excluded(last),
                }
            }
            self.batch_len = (self.batch_len * 2).min(BATCH_MAX);
            self.fill();
        }
    }

    fn fill(&mut self) {
        self.batch.clear();
        self.at = 0;
        let range = (as_bytes(&self.low), as_bytes(&self.high));
        if !is_empty_range(range) {
            let entries = self.writes.range::<[u8], _>(range);
            let owned = |(key, value): (&Key, &Value)| (key.clone(), value.clone());
            match self.direction {
                Direction::Forward => {
                    self.batch.extend(entries.take(self.batch_len).map(owned));
                }
                Direction::Backward => {
                    self.batch
                        .extend(entries.rev().take(self.batch_len).map(owned));
                }
            }
        }
        self.is_last_batch = self.batch.len() < self.batch_len;
    }
}

fn as_bytes(bound: &Bound<Key>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}
