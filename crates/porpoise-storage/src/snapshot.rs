//! A consistent view of everything committed up to one moment.
//!
//! An **epoch** names what there is to read: the memtables, newest first, and the tree snapshot
//! below them. A checkpoint replaces the epoch; a snapshot keeps its own. Taking a snapshot is
//! cloning a pointer to the epoch and reading the timestamp of the newest visible commit from the
//! epoch's newest memtable. Since that timestamp lives in the memtable and not beside it, the pair
//! always fits: whatever is visible through a memtable is in it, or below.

use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cursor::{Cursor, Layer};
use crate::memtable::{Dropped, KeyHash, Memtable, SpaceVersions, Unpublished};
use crate::tree_snapshot::TreeSnapshot;
use crate::{CommitTs, Direction, Result, SpaceId};

pub(crate) struct Epoch {
    /// Newest first; never empty.
    pub memtables: SmallVec<[Arc<Memtable>; 2]>,
    pub tree: Arc<TreeSnapshot>,
    /// The tree has the oldest memtable's rows already, but not every block does.
    pub is_oldest_merged: bool,
}

impl Epoch {
    pub fn newest(&self) -> &Arc<Memtable> {
        self.memtables
            .first()
            .expect("an epoch has a memtable that takes commits")
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

    /// What those who lock rows read: commits that have let go of their locks, too, although they
    /// may not be on disk yet. Beside it, up to where commits are visible to all.
    pub(crate) fn settled_of(epoch: Arc<Epoch>) -> (Snapshot, CommitTs) {
        let published = epoch.newest().visible();
        let ts = epoch.newest().settled();
        (Snapshot { epoch, ts }, published)
    }

    /// The newest commit this snapshot sees.
    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Calls `read` with the value of a key, if there is one, without copying it.
    pub fn get<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.get_version(space, key, read, |_| ())
    }

    /// As [`get`](Snapshot::get); calls `found_at` with the timestamp of the value, or of its
    /// deletion, if a memtable has it.
    #[inline]
    pub(crate) fn get_version<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
        found_at: impl FnOnce(u64),
    ) -> Result<Option<R>> {
        let mut hash = None;
        for memtable in &self.epoch.memtables {
            if memtable.spaces.get(space).is_none() {
                continue;
            }
            let hash = *hash.get_or_insert_with(|| KeyHash::of(space, key));
            match memtable.versions_of(space, hash, self.ts) {
                Err(Dropped) => return Ok(None),
                Ok(None) => {}
                Ok(Some(versions)) => {
                    if let Some((ts, value)) = versions.find(key, self.ts) {
                        found_at(ts);
                        return Ok(value.map(read));
                    }
                }
            }
            if let Some(runs) = memtable.runs_of(space, self.ts)
                && let Some(value) = runs.get(space, key)?
            {
                found_at(memtable.visible().0);
                return Ok(value.map(|value| read(&value)));
            }
        }
        self.epoch.tree.get(space, key, read)
    }

    /// The space's rows within the bounds, in the direction's order.
    pub fn range(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        self.range_under(None, None, space, bounds, direction)
    }

    pub(crate) fn range_under(
        &self,
        overlays: impl IntoIterator<Item = Layer>,
        unpublished: Option<Unpublished>,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        let mut layers: SmallVec<[Layer; 3]> = overlays.into_iter().collect();
        for memtable in &self.epoch.memtables {
            let Some(versions) = memtable.spaces.get(space) else {
                continue;
            };
            if versions.is_dropped(self.ts) {
                return Cursor::new(self.clone(), layers, None, bounds, direction);
            }
            layers.push(Layer::Versions(
                Arc::clone(versions),
                self.ts,
                unpublished.clone(),
            ));
            if let Some(runs) = memtable.runs_of(space, self.ts) {
                layers.push(Layer::Runs(Arc::clone(runs), space));
            }
        }
        let rows = (!is_empty_range(bounds)).then_some(space);
        Cursor::new(self.clone(), layers, rows, bounds, direction)
    }

    /// The number of rows in the space, approximately.
    pub(crate) fn approximate_len(&self, space: SpaceId) -> Result<u64> {
        use std::sync::atomic::Ordering;
        let mut layers: SmallVec<[(&Arc<Memtable>, &Arc<SpaceVersions>); 2]> = SmallVec::new();
        for memtable in &self.epoch.memtables {
            if let Some(versions) = memtable.spaces.get(space) {
                if versions.is_dropped(self.ts) {
                    return Ok(0);
                }
                layers.push((memtable, versions));
            }
        }
        if self.epoch.is_oldest_merged
            && let Some(oldest) = self.epoch.memtables.last()
            && oldest.spaces.get(space).is_some()
        {
            layers.pop();
        }
        let base = self.epoch.tree.len(space)?;
        if base == 0 {
            let spilled = |memtable: &Memtable| {
                let runs = memtable.runs();
                runs.map_or(0, |runs| runs.entries(Some(space)))
            };
            let entries = layers.iter();
            let entries = entries.map(|(memtable, v)| v.entries() as u64 + spilled(memtable));
            return Ok(entries.sum());
        }
        let net: i64 = layers
            .iter()
            .map(|(_, v)| v.net_rows.load(Ordering::Relaxed))
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
