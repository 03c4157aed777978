//! Prepared transactions: ready to commit, and waiting to be told whether to (XA PREPARE).
//!
//! A transaction is prepared by an ordinary commit that writes down what it would commit: its
//! writes, its counters, and its row locks, as a few rows in a space of the caller's choice.
//! Everything that holds for rows holds for these: the log has them when `prepare` returns,
//! checkpoints move them into the tree, a start finds them again. Log, checkpoint and recovery know
//! nothing of prepared transactions.
//!
//! ```text
//! prepare    one commit:  space[key 0], space[key 1] …  =  label, locks, operations
//! commit     one commit:  the writes themselves, and space[key …] deleted
//! rollback   one commit:  space[key …] deleted
//! start      space[…] is read, the writes are an overlay again, the locks are taken again
//! ```
//!
//! So each of the three happens as a whole or not at all, wherever the process or the machine
//! stops. While it is prepared, the transaction keeps overlay and row locks as it had them. They are
//! released when the outcome is durable: until then a failing disk may leave it prepared.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;

use crate::locks::{HeldLocks, LockMode, LockedRow};
use crate::overlay::{Overlay, Savepoint, SharedOverlay};
use crate::payload::{Operation, decode, encode, put_number, take_bytes, take_number};
use crate::snapshot::Snapshot;
use crate::store::Shared;
use crate::transaction::release_locks;
use crate::{CommitTs, Direction, Error, Result, SpaceId, Store, TxnId};

const VERSION: u8 = 1;
/// With spaces that are locked.
const VERSION_WITH_SPACES: u8 = 2;
/// A long record is kept as rows of this length.
const CHUNK_BYTES: usize = 1 << 20;

/// A transaction that was prepared. Nothing of it is visible to readers, its row locks are held.
///
/// Dropped without `commit` or `rollback` it releases its locks, and is prepared again at the next
/// start: that is for a store that is being closed.
pub struct PreparedTransaction {
    shared: Arc<Shared>,
    id: TxnId,
    place: Place,
    label: Box<[u8]>,
    overlay: Arc<SharedOverlay>,
    counters: Vec<(SpaceId, u64)>,
    locks: HeldLocks,
}

/// A prepared transaction that could not be ended, and why.
pub struct StillPrepared {
    /// As it was before.
    pub transaction: PreparedTransaction,
    /// Why it could not be ended.
    pub error: Error,
}

/// What a transaction leaves to the prepared one that it becomes.
pub(crate) struct Unprepared {
    pub shared: Arc<Shared>,
    pub id: TxnId,
    pub overlay: Option<Arc<SharedOverlay>>,
    pub counters: Vec<(SpaceId, u64)>,
    pub locks: HeldLocks,
    pub rests_on: CommitTs,
}

/// Where a prepared transaction is written down.
struct Place {
    space: SpaceId,
    key: Box<[u8]>,
    /// How many rows it takes.
    chunks: u32,
}

impl Place {
    fn chunk_key(&self, number: u32) -> Vec<u8> {
        let mut key = self.key.to_vec();
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    fn delete_from(&self, overlay: &mut Overlay) {
        for number in 0..self.chunks {
            overlay.write(self.space, &self.chunk_key(number), None, -1);
        }
    }
}

impl PreparedTransaction {
    /// Writes a transaction down, and waits until that is as safe as the flush policy asks. On an
    /// error it is rolled back.
    pub(crate) fn prepare(
        of: Unprepared,
        (space, key): (SpaceId, &[u8]),
        label: &[u8],
    ) -> Result<PreparedTransaction> {
        let mut prepared = PreparedTransaction {
            place: Place {
                space,
                key: key.into(),
                chunks: 0,
            },
            label: label.into(),
            overlay: of.overlay.unwrap_or_default(),
            id: of.id,
            counters: of.counters,
            locks: of.locks,
            shared: of.shared,
        };
        prepared.overlay.0.write().forget_undo();
        let record = prepared.record();
        let mut written = Overlay::default();
        for chunk in record.chunks(CHUNK_BYTES) {
            let key = prepared.place.chunk_key(prepared.place.chunks);
            written.write(space, &key, Some(chunk), 1);
            prepared.place.chunks += 1;
        }
        drop(record);
        match prepared.log(Some(written), Vec::new(), of.rests_on) {
            Ok(()) => Ok(prepared),
            Err(error) => {
                let counters = std::mem::take(&mut prepared.counters);
                if !counters.is_empty() {
                    prepared.shared.log_counters(counters, prepared.id);
                }
                Err(error)
            }
        }
    }

    /// Its number, by which row locks and deadlock detection know it.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// The key that it was prepared under.
    pub fn key(&self) -> &[u8] {
        &self.place.key
    }

    /// What was said of it when it was prepared.
    pub fn label(&self) -> &[u8] {
        &self.label
    }

    /// Commits it, and waits until that is as safe as the flush policy asks. On an error it is still
    /// prepared.
    pub fn commit(self) -> Result<(), Box<StillPrepared>> {
        let before = {
            let mut overlay = self.overlay.0.write();
            let before = overlay.savepoint();
            overlay.keep_undo();
            self.place.delete_from(&mut overlay);
            before
        };
        let overlay = Some(Arc::clone(&self.overlay));
        let committed = self.log_shared(overlay, self.counters.clone(), CommitTs(0));
        committed.map_err(|error| {
            self.undo(before);
            self.still_prepared(error)
        })
    }

    /// Undoes everything but counters, and waits until that is as safe as the flush policy asks. On
    /// an error it is still prepared.
    pub fn rollback(self) -> Result<(), Box<StillPrepared>> {
        let mut overlay = Overlay::default();
        self.place.delete_from(&mut overlay);
        let rolled_back = self.log(Some(overlay), self.counters.clone(), CommitTs(0));
        rolled_back.map_err(|error| self.still_prepared(error))
    }

    fn still_prepared(self, error: Error) -> Box<StillPrepared> {
        Box::new(StillPrepared {
            transaction: self,
            error,
        })
    }

    fn undo(&self, to: Savepoint) {
        self.overlay.0.write().roll_back(to, usize::MAX);
    }

    /// Commits something else than its own writes.
    fn log(
        &self,
        overlay: Option<Overlay>,
        counters: Vec<(SpaceId, u64)>,
        rests_on: CommitTs,
    ) -> Result<()> {
        let overlay = overlay.map(|overlay| Arc::new(SharedOverlay(RwLock::new(overlay))));
        self.log_shared(overlay, counters, rests_on)
    }

    fn log_shared(
        &self,
        overlay: Option<Arc<SharedOverlay>>,
        counters: Vec<(SpaceId, u64)>,
        rests_on: CommitTs,
    ) -> Result<()> {
        let none = HeldLocks::none(self.id);
        let commit = self.shared.commit(overlay, counters, none, rests_on)?;
        commit.wait()
    }

    fn record(&self) -> Vec<u8> {
        let spaces = self.locks.spaces();
        let mut record = vec![match spaces {
            [] => VERSION,
            _ => VERSION_WITH_SPACES,
        }];
        put_number(&mut record, self.label.len() as u64);
        record.extend_from_slice(&self.label);
        let locks = self.shared.locks.rows_of(&self.locks);
        put_number(&mut record, locks.len() as u64);
        for lock in &locks {
            record.extend_from_slice(&lock.to_bytes());
        }
        if !spaces.is_empty() {
            put_number(&mut record, spaces.len() as u64);
            for (space, mode) in spaces {
                put_number(&mut record, u64::from(space.0));
                record.push(mode.to_byte());
            }
        }
        record.extend(encode(&self.overlay.0.read(), &self.counters));
        record
    }
}

impl Drop for PreparedTransaction {
    fn drop(&mut self) {
        let locks = std::mem::replace(&mut self.locks, HeldLocks::none(self.id));
        release_locks(&self.shared, locks);
    }
}

// ── At a start ───────────────────────────────────────────────────────────────────────────────────

impl Store {
    /// The transactions that are prepared under keys of a space that begin with `prefix`, with their
    /// row locks taken again. To be called once after a start, before anybody else locks rows or
    /// allocates spaces.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a record isn't one that [`Transaction::prepare`](crate::Transaction::prepare)
    /// writes, [`Error::Damaged`] if the space can't be read.
    pub fn recover_prepared(
        &self,
        space: SpaceId,
        prefix: &[u8],
    ) -> Result<Vec<PreparedTransaction>> {
        let records = read_records(&self.snapshot(), space, prefix)?;
        let recovered = records.into_iter().map(|(place, record)| {
            let key = String::from_utf8_lossy(&place.key).into_owned();
            self.recover(place, &record).ok_or_else(|| Error::Corrupt {
                path: self.shared().tree_path.clone().unwrap_or_default(),
                offset: 0,
                what: format!("the record of the prepared transaction {key:?} makes no sense"),
            })
        });
        let mut recovered = recovered.collect::<Result<Vec<_>>>()?;
        for (prepared, spaces) in &mut recovered {
            let locks = &self.shared().locks;
            locks.retake_spaces(&mut prepared.locks, spaces);
        }
        Ok(recovered
            .into_iter()
            .map(|(prepared, _)| prepared)
            .collect())
    }

    /// All but the spaces that it had locked.
    fn recover(
        &self,
        place: Place,
        record: &[u8],
    ) -> Option<(PreparedTransaction, Vec<(SpaceId, LockMode)>)> {
        let shared = Arc::clone(self.shared());
        let Decoded {
            label,
            rows,
            locked_spaces,
            overlay,
            counters,
            next_space,
        } = Decoded::of(record)?;
        // Nothing but the record may know of the spaces that it is to create.
        shared.next_space.fetch_max(next_space, Ordering::Relaxed);
        for (space, value) in &counters {
            shared.raise_counter(*space, *value);
        }
        let id = self.begin().id();
        let overlay = Arc::new(SharedOverlay(RwLock::new(overlay)));
        let mut locks = shared.locks.retake(id, &rows);
        if !overlay.0.read().is_empty() {
            locks.note_writes(&shared.locks, &overlay);
        }
        let prepared = PreparedTransaction {
            shared,
            id,
            place,
            label: label.into(),
            overlay,
            counters,
            locks,
        };
        Some((prepared, locked_spaces))
    }
}

/// The records below a prefix, put together.
fn read_records(
    snapshot: &Snapshot,
    space: SpaceId,
    prefix: &[u8],
) -> Result<Vec<(Place, Vec<u8>)>> {
    const NUMBER_BYTES: usize = 4;
    let bounds = (Bound::Included(prefix), Bound::Unbounded);
    let mut rows = snapshot.range(space, bounds, Direction::Forward)?;
    let mut found: Vec<(Place, Vec<u8>)> = Vec::new();
    while let Some((key, value)) = rows.next()? {
        if !key.starts_with(prefix) {
            break;
        }
        let key = &key[..key.len().saturating_sub(NUMBER_BYTES)];
        match found.last_mut() {
            Some((place, record)) if *place.key == *key => {
                place.chunks += 1;
                record.extend_from_slice(value);
            }
            _ => {
                let place = Place {
                    space,
                    key: key.into(),
                    chunks: 1,
                };
                found.push((place, value.to_vec()));
            }
        }
    }
    Ok(found)
}

/// What a record says.
struct Decoded<'a> {
    label: &'a [u8],
    rows: Vec<LockedRow>,
    locked_spaces: Vec<(SpaceId, LockMode)>,
    overlay: Overlay,
    counters: Vec<(SpaceId, u64)>,
    /// Above all spaces that it names.
    next_space: u32,
}

impl Decoded<'_> {
    fn of(record: &[u8]) -> Option<Decoded<'_>> {
        let (&version, mut rest) = record.split_first()?;
        if ![VERSION, VERSION_WITH_SPACES].contains(&version) {
            return None;
        }
        let label_len = take_number(&mut rest)?;
        let label = take_bytes(&mut rest, label_len)?;
        let locks = take_number(&mut rest)?;
        let locks = take_bytes(&mut rest, locks.checked_mul(LockedRow::BYTES as u64)?)?;
        let (rows, _) = locks.as_chunks::<{ LockedRow::BYTES }>();
        let rows = rows.iter().map(LockedRow::from_bytes);
        let rows = rows.collect::<Option<_>>()?;
        let locked_spaces = match version {
            VERSION => Vec::new(),
            _ => take_locked_spaces(&mut rest)?,
        };
        let mut decoded = Decoded {
            label,
            rows,
            locked_spaces,
            overlay: Overlay::default(),
            counters: Vec::new(),
            next_space: 0,
        };
        for operation in decode(rest) {
            decoded.apply(operation.ok()?);
        }
        decoded.overlay.forget_undo();
        Some(decoded)
    }

    fn apply(&mut self, operation: Operation<'_>) {
        let space = match operation {
            Operation::Counter { space, value } => return self.counters.push((space, value)),
            // One that has spilled can't be prepared.
            Operation::Run { .. } => return,
            Operation::Put { space, key, value } => {
                self.overlay.write(space, key, Some(value), 0);
                space
            }
            Operation::Delete { space, key } => {
                self.overlay.write(space, key, None, 0);
                space
            }
            Operation::Rows { space, net } => {
                self.overlay.add_rows(space, net);
                space
            }
            Operation::Create { space } => {
                self.overlay
                    .change(space, crate::overlay::SpaceChange::Create);
                space
            }
            Operation::Drop { space } => {
                self.overlay
                    .change(space, crate::overlay::SpaceChange::Drop);
                space
            }
        };
        self.next_space = self.next_space.max(space.0.saturating_add(1));
    }
}

fn take_locked_spaces(rest: &mut &[u8]) -> Option<Vec<(SpaceId, LockMode)>> {
    let count = take_number(rest)?;
    let space = |_| {
        let space = SpaceId(u32::try_from(take_number(rest)?).ok()?);
        let (&mode, behind) = rest.split_first()?;
        *rest = behind;
        Some((space, LockMode::from_byte(mode)?))
    };
    (0..count).map(space).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_record_is_read_or_refused(bytes: Vec<u8>) {
            let _ = Decoded::of(&bytes);
            for version in [VERSION, VERSION_WITH_SPACES] {
                let mut versioned = vec![version];
                versioned.extend(&bytes);
                let _ = Decoded::of(&versioned);
            }
        }
    }
}
