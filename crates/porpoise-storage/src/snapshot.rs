//! A consistent view of everything committed up to one moment.
//!
//! An **epoch** names what there is to read: the generations of versions, newest first, and the redb
//! read transaction below them. A checkpoint replaces the epoch; a snapshot holds on to its own.
//! Taking a snapshot is cloning a pointer to the epoch and reading the timestamp of the newest
//! visible commit from the epoch's newest generation. Since that timestamp lives in the generation
//! and not beside it, the pair always fits: whatever is visible through a generation is in it, or
//! below.

use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::Base;
use crate::cursor::{Cursor, Layer};
use crate::versions::{Dropped, Generation, KeyHash, SpaceVersions};
use crate::{CommitTs, Direction, Result, SpaceId};

pub(crate) struct Epoch {
    /// Newest first; never empty.
    pub generations: SmallVec<[Arc<Generation>; 2]>,
    pub base: Arc<Base>,
    /// The tree has the oldest generation already, but not every block in memory does.
    pub is_oldest_in_tree: bool,
}

impl Epoch {
    pub fn newest(&self) -> &Arc<Generation> {
        self.generations
            .first()
            .expect("an epoch has a generation that takes commits")
    }
}

/// Everything committed up to a moment. Cheap to clone; may be kept and sent between threads, but
/// keeps old versions from being freed while it lives.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) epoch: Arc<Epoch>,
    ts: CommitTs,
}

impl Snapshot {
    pub(crate) fn newest_of(epoch: Arc<Epoch>) -> Snapshot {
        let ts = epoch.newest().visible();
        Snapshot { epoch, ts }
    }

    /// The newest commit this snapshot sees.
    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Reads one value where it lies.
    pub fn get<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut hash = None;
        for generation in &self.epoch.generations {
            if generation.spaces.get(space).is_none() {
                continue;
            }
            let hash = *hash.get_or_insert_with(|| KeyHash::of(space, key));
            match generation.versions_of(space, hash, self.ts) {
                Err(Dropped) => return Ok(None),
                Ok(None) => {}
                Ok(Some(versions)) => {
                    if let Some(value) = versions.find(key, self.ts) {
                        return Ok(value.map(read));
                    }
                }
            }
        }
        self.epoch.base.get(space, key, read)
    }

    /// The space's rows within the bounds, in the direction's order.
    pub fn range(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        self.range_under(None, space, bounds, direction)
    }

    pub(crate) fn range_under(
        &self,
        overlay: Option<Layer>,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        let mut layers: SmallVec<[Layer; 3]> = overlay.into_iter().collect();
        for generation in &self.epoch.generations {
            let Some(versions) = generation.spaces.get(space) else {
                continue;
            };
            if versions.is_dropped(self.ts) {
                return Ok(Cursor::new(self.clone(), layers, None, bounds, direction));
            }
            layers.push(Layer::Versions(Arc::clone(versions), self.ts));
        }
        let rows = (!is_empty_range(bounds)).then_some(space);
        Ok(Cursor::new(self.clone(), layers, rows, bounds, direction))
    }

    /// Rows in the space, more or less.
    pub(crate) fn approximate_len(&self, space: SpaceId) -> Result<u64> {
        use std::sync::atomic::Ordering;
        let mut layers: SmallVec<[&Arc<SpaceVersions>; 2]> = SmallVec::new();
        for generation in &self.epoch.generations {
            if let Some(versions) = generation.spaces.get(space) {
                if versions.is_dropped(self.ts) {
                    return Ok(0);
                }
                layers.push(versions);
            }
        }
        if self.epoch.is_oldest_in_tree
            && let Some(oldest) = self.epoch.generations.last()
            && oldest.spaces.get(space).is_some()
        {
            layers.pop();
        }
        let base = self.epoch.base.len(space)?;
        if base == 0 {
            return Ok(layers.iter().map(|v| v.entries() as u64).sum());
        }
        let net: i64 = layers
            .iter()
            .map(|v| v.net_rows.load(Ordering::Relaxed))
            .sum();
        Ok(base.saturating_add_signed(net))
    }
}

pub(crate) fn is_empty_range(bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match bounds {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
        _ => false,
    }
}
