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
//! What the transaction has spilled ([`crate::spill`]) lies in its file already, and the record names
//! it. The file is synced before the record is logged, and outlives the process until the transaction
//! is rolled back, or the tree has what was committed. Who asks for what is prepared says thereby which
//! such files are needed.
//!
//! So each of the three happens as a whole or not at all, wherever the process or the machine
//! stops. While it is prepared, the transaction keeps overlay and row locks as it had them. They are
//! released when the outcome is durable: until then a failing disk may leave it prepared.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;

use crate::commit::Commit;
use crate::disk::OpenMode;
use crate::group_commit::Durability;
use crate::locks::{HeldLocks, LockMode, LockedRow};
use crate::overlay::{Overlay, Savepoint, SharedOverlay};
use crate::payload::{Operation, decode, encode, put_number, take_bytes, take_number};
use crate::snapshot::Snapshot;
use crate::spill::{self, RunPlace, Runs, SpillFile};
use crate::store::Shared;
use crate::transaction::release_locks;
use crate::{CommitTs, Direction, Error, Result, SpaceId, Store, TxnId};

const VERSION: u8 = 1;
/// With spaces that are locked.
const VERSION_WITH_SPACES: u8 = 2;
/// With those, none of them perhaps, and runs in a file.
const VERSION_WITH_RUNS: u8 = 3;
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
    /// A commit that has failed left the deletion of the record among the writes.
    deletes_record: bool,
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
            deletes_record: false,
            id: of.id,
            counters: of.counters,
            locks: of.locks,
            shared: of.shared,
        };
        prepared.overlay.0.write().forget_undo();
        match prepared.write_down(of.rests_on) {
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

    fn write_down(&mut self, rests_on: CommitTs) -> Result<()> {
        self.shared.spill_rest(&self.overlay)?;
        self.keep_file();
        let record = self.record();
        let mut written = Overlay::default();
        for chunk in record.chunks(CHUNK_BYTES) {
            let key = self.place.chunk_key(self.place.chunks);
            written.write(self.place.space, &key, Some(chunk), 1);
            self.place.chunks += 1;
        }
        drop(record);
        match self.log(Some(written), Vec::new(), rests_on, Durability::Published) {
            Ok(commit) => commit.wait().inspect_err(|_| self.lose_file()),
            Err(error) => {
                self.forget_file();
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
    pub fn commit(mut self) -> Result<(), Box<StillPrepared>> {
        let before = {
            let mut overlay = self.overlay.0.write();
            let before = overlay.savepoint();
            overlay.keep_undo();
            if !self.deletes_record {
                self.place.delete_from(&mut overlay);
            }
            before
        };
        let overlay = Some(Arc::clone(&self.overlay));
        let counters = self.counters.clone();
        let committed = self.log_shared(overlay, counters, CommitTs(0), Durability::Published);
        match committed.and_then(|commit| commit.wait()) {
            Ok(()) => {
                self.release_file();
                Ok(())
            }
            Err(error) => {
                self.undo(before);
                // What was spilled can't be undone any more.
                self.deletes_record |= self.overlay.0.read().savepoint() != before;
                Err(self.still_prepared(error))
            }
        }
    }

    /// Undoes everything but counters, and waits until that is as safe as the flush policy asks. On
    /// an error it is still prepared.
    pub fn rollback(self) -> Result<(), Box<StillPrepared>> {
        let mut overlay = Overlay::default();
        self.place.delete_from(&mut overlay);
        // As long as the record might come back it needs the file.
        let at_least = match self.file() {
            Some(_) => Durability::Synced,
            None => Durability::Published,
        };
        let rolled_back = self.log(Some(overlay), self.counters.clone(), CommitTs(0), at_least);
        match rolled_back.and_then(|commit| commit.wait()) {
            Ok(()) => {
                self.forget_file();
                Ok(())
            }
            Err(error) => Err(self.still_prepared(error)),
        }
    }

    fn still_prepared(self, error: Error) -> Box<StillPrepared> {
        Box::new(StillPrepared {
            transaction: self,
            error,
        })
    }

    /// What it has spilled to, if it has.
    fn file(&self) -> Option<Arc<SpillFile>> {
        self.overlay.0.read().runs()?.file()
    }

    /// Its file outlives the process, and commits of it that fail.
    fn keep_file(&self) {
        if let Some(file) = self.file() {
            file.set_prepared(true);
        }
    }

    /// Its file is that of a commit.
    fn release_file(&self) {
        if let Some(file) = self.file() {
            file.set_prepared(false);
        }
    }

    /// No record names its file, or will.
    fn forget_file(&self) {
        if let Some(file) = self.file() {
            file.forget();
            file.set_prepared(false);
        }
    }

    /// A record that names its file may be on disk, until the log's tail is written anew.
    fn lose_file(&self) {
        if let Some(file) = self.file() {
            file.set_prepared(false);
            let mut lost = self.shared.lost_files.lock();
            match self.shared.group.has_failed() {
                true => lost.push(file),
                false => file.forget(),
            }
        }
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
        at_least: Durability,
    ) -> Result<Commit> {
        let overlay = overlay.map(|overlay| Arc::new(SharedOverlay(RwLock::new(overlay))));
        self.log_shared(overlay, counters, rests_on, at_least)
    }

    fn log_shared(
        &self,
        overlay: Option<Arc<SharedOverlay>>,
        counters: Vec<(SpaceId, u64)>,
        rests_on: CommitTs,
        at_least: Durability,
    ) -> Result<Commit> {
        let (shared, none) = (&self.shared, HeldLocks::none(self.id));
        shared.commit_durably(overlay, counters, none, rests_on, at_least)
    }

    fn record(&self) -> Vec<u8> {
        let spaces = self.locks.spaces();
        let version = match spaces {
            _ if self.overlay.0.read().runs().is_some() => VERSION_WITH_RUNS,
            [] => VERSION,
            _ => VERSION_WITH_SPACES,
        };
        let mut record = vec![version];
        put_number(&mut record, self.label.len() as u64);
        record.extend_from_slice(&self.label);
        let locks = self.shared.locks.rows_of(&self.locks);
        put_number(&mut record, locks.len() as u64);
        for lock in &locks {
            record.extend_from_slice(&lock.to_bytes());
        }
        if version != VERSION {
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
        let recovered = records
            .into_iter()
            .map(|(place, record)| self.recover(place, &record));
        let mut recovered = recovered.collect::<Result<Vec<_>>>()?;
        let shared = self.shared();
        let mut unclaimed = std::mem::take(&mut *shared.unclaimed_files.lock());
        for (prepared, _) in &recovered {
            if let Some(file) = prepared.file() {
                unclaimed.remove(&file.number);
            }
        }
        if let Some(folder) = shared.tree_path.as_deref().and_then(Path::parent) {
            spill::remove_unclaimed(&*shared.disk, folder, &unclaimed);
        }
        for (prepared, spaces) in &mut recovered {
            let locks = &self.shared().locks;
            locks.retake_spaces(&mut prepared.locks, spaces);
        }
        Ok(recovered
            .into_iter()
            .map(|(prepared, _)| prepared)
            .collect())
    }

    /// Deletes the records of what is prepared whose writes were spilled to a file that isn't there: of
    /// a store that was [salvaged](crate::salvage), which has no such files. Gives the keys that it was
    /// prepared under.
    ///
    /// # Errors
    /// As [`recover_prepared`](Store::recover_prepared), and those of a commit.
    pub fn forget_lost_prepared(&self, space: SpaceId, prefix: &[u8]) -> Result<Vec<Box<[u8]>>> {
        let mut lost = Vec::new();
        let mut work = self.begin();
        for (place, record) in read_records(&self.snapshot(), space, prefix)? {
            let runs = Decoded::of(&record).map_or(Vec::new(), |decoded| decoded.runs);
            let is_lost = |(number, ..): &(u64, RunPlace, u64)| {
                let opened = self.shared().open_prepared_file(*number);
                opened.is_err_and(|error| error.is_not_found())
            };
            if runs.iter().any(is_lost) {
                for number in 0..place.chunks {
                    work.delete(space, &place.chunk_key(number));
                }
                lost.push(place.key);
            }
        }
        work.commit()?.wait()?;
        Ok(lost)
    }

    /// All but the spaces that it had locked.
    fn recover(
        &self,
        place: Place,
        record: &[u8],
    ) -> Result<(PreparedTransaction, Vec<(SpaceId, LockMode)>)> {
        let shared = Arc::clone(self.shared());
        let Decoded {
            label,
            rows,
            locked_spaces,
            runs,
            mut overlay,
            counters,
            next_space,
        } = Decoded::of(record).ok_or_else(|| {
            let key = String::from_utf8_lossy(&place.key);
            let what = format!("the record of the prepared transaction {key:?} makes no sense");
            let path = shared.tree_path.as_deref();
            Error::corrupt(path.unwrap_or(Path::new("")), 0, &what)
        })?;
        if !runs.is_empty() {
            let runs = Runs::open(&runs, |number| shared.open_prepared_file(number))?;
            let epoch = shared.epoch.load();
            overlay.set_runs(runs, epoch.tree.cache());
        }
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
            deletes_record: false,
            counters,
            locks,
        };
        Ok((prepared, locked_spaces))
    }
}

impl Shared {
    /// The file of something prepared.
    fn open_prepared_file(&self, number: u64) -> Result<Arc<SpillFile>> {
        let (Some(tree), Some(path)) = (&self.tree_file, &self.tree_path) else {
            return Err(Error::Closed);
        };
        let open = |path: &Path| self.disk.open(path, OpenMode::Existing);
        let opened = spill::open_any(path.parent().unwrap_or(Path::new("")), number, open);
        let (file, path) = opened.map_err(|(error, path)| Error::io("open", &path)(error))?;
        let len = file.len().map_err(Error::io("read", &path))?;
        let (disk, damaged) = (Some(Arc::clone(&self.disk)), Arc::clone(&self.damaged));
        let file = SpillFile::committed(disk, file, path, number, tree.id(), damaged);
        file.len.store(len, Ordering::Relaxed);
        file.set_prepared(true);
        Ok(Arc::new(file))
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
    /// What was spilled: numbers of files, places, and up to which change each counts.
    runs: Vec<(u64, RunPlace, u64)>,
    overlay: Overlay,
    counters: Vec<(SpaceId, u64)>,
    /// Above all spaces that it names.
    next_space: u32,
}

impl Decoded<'_> {
    fn of(record: &[u8]) -> Option<Decoded<'_>> {
        let (&version, mut rest) = record.split_first()?;
        if ![VERSION, VERSION_WITH_SPACES, VERSION_WITH_RUNS].contains(&version) {
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
            runs: Vec::new(),
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
            Operation::Run { file, place, up_to } => return self.runs.push((file, place, up_to)),
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
            for version in [VERSION, VERSION_WITH_SPACES, VERSION_WITH_RUNS] {
                let mut versioned = vec![version];
                versioned.extend(&bytes);
                let _ = Decoded::of(&versioned);
            }
        }
    }
}
