//! Reading what isn't committed: READ UNCOMMITTED (MySQL 8.4 manual, 17.7.2.1).
//!
//! Every transaction that writes has its overlay listed until its row locks are released, which is
//! when its commit is settled, or it is rolled back. Whoever reads what isn't committed takes the
//! list, then what is settled, and finds each write in one of the two, or in both:
//!
//! ```text
//! overlays of open transactions     a=5   c=✗        read:  a=5, b=2
//! settled                           a=1   b=2   c=3
//! ```
//!
//! An overlay is read as it grows, a row or a batch at a time: a writer waits for that at most, and
//! nothing is copied for a reader. A reader that finds an index's entry may not find its row any
//! more, or another one: it has to compare them. An overlay stays with its readers when its
//! transaction ends meanwhile.

use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::cursor::{Cursor, Layer};
use crate::overlay::SharedOverlay;
use crate::snapshot::Snapshot;
use crate::store::Shared;
use crate::{Direction, Result, SpaceId, TxnId};

const SHARDS: usize = 16;

type Shard = Mutex<Vec<(TxnId, Arc<SharedOverlay>)>>;

/// The overlays of all transactions that have written and not ended.
#[derive(Default)]
pub(crate) struct OpenWrites {
    shards: [Shard; SHARDS],
}

impl OpenWrites {
    fn shard(&self, txn: TxnId) -> &Shard {
        &self.shards[txn.0 as usize % SHARDS]
    }

    pub fn add(&self, txn: TxnId, writes: Arc<SharedOverlay>) {
        self.shard(txn).lock().push((txn, writes));
    }

    pub fn remove(&self, txn: TxnId) {
        let mut shard = self.shard(txn).lock();
        let found = shard.iter().position(|(of, _)| *of == txn);
        let removed = found.map(|at| shard.swap_remove(at));
        // What it frees is freed without the lock.
        drop(shard);
        drop(removed);
    }

    /// Those of all transactions but one.
    fn but(&self, reader: Option<TxnId>) -> Vec<Arc<SharedOverlay>> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let others = shard.iter().filter(|(of, _)| Some(*of) != reader);
            found.extend(others.map(|(_, writes)| Arc::clone(writes)));
        }
        found
    }
}

/// What is newest, committed or not, of the transactions that there were when it was made. For one
/// statement: it keeps what those have written.
#[derive(Clone)]
pub struct Uncommitted {
    overlays: Vec<Arc<SharedOverlay>>,
    settled: Snapshot,
}

impl Uncommitted {
    /// What all have written, but for one transaction, which knows its own writes.
    pub(crate) fn beside(shared: &Shared, reader: Option<TxnId>) -> Uncommitted {
        // In this order: what leaves the list meanwhile is settled.
        let overlays = shared.locks.open_writes.but(reader);
        let (settled, _) = Snapshot::settled_of(shared.epoch.load_full());
        Uncommitted { overlays, settled }
    }

    /// Calls `read` with the value of a key, if there is one.
    pub fn get<R>(
        &self,
        space: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        for overlay in &self.overlays {
            let overlay = overlay.0.read();
            if let Some(value) = overlay.get(space, key)? {
                return Ok(value.map(|value| read(&value)));
            }
        }
        self.settled.get(space, key, read)
    }

    /// The space's rows within the bounds, in the direction's order.
    pub fn range(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        self.range_under([], space, bounds, direction)
    }

    pub(crate) fn range_under(
        &self,
        own: impl IntoIterator<Item = Layer>,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        let others = self.overlays.iter();
        let others = others.filter(|overlay| overlay.0.read().has(space));
        let mut layers: SmallVec<[Layer; 3]> = own.into_iter().collect();
        layers.extend(others.map(|overlay| Layer::Open(Arc::clone(overlay), space)));
        self.settled
            .range_under(layers, None, space, bounds, direction)
    }
}
