//! Filling a new space in the order of its keys, beside the log.
//!
//! A million entries of an index that go through the log are written there, then into memtables,
//! then folded into the tree a memtable at a time: each fold changes leaves all over the index, and
//! writes them whole. Sorted entries can go into the tree at once, each leaf of it one time.
//!
//! ```text
//! 1. begin    a checkpoint: the tree has the commit that made the space, and whatever is to be said
//!             of a space that nobody owns yet
//! 2. push     as many bytes of rows as redb's cache holds are one redb transaction; the tree's lock is
//!             free in between, for checkpoints. Another thread makes it while the next rows come
//! 3. finish   readers get the tree as it is now, then the next memtable
//! 4.          the caller commits that the space has an owner
//! ```
//!
//! The caller has to have committed the space's creation before, with a mark by which a start drops
//! the space if there was no step 4. That is all that is needed for a crash: a space without an owner
//! may hold any part of its rows, as nobody reads it. Because of step 1 its number and its mark are
//! not lost with an unsynced log. Because of the redb commits its rows are on disk before step 4 has a
//! place in the log.
//!
//! Who takes a snapshot loads the epoch first and then the time of its newest commit. Were the
//! memtable of step 4's commit in an epoch with a tree from before step 3, a thread that stops
//! between the two could see the owner without the rows. So step 3 switches memtables behind the
//! trees.
//!
//! Instead of step 4 loaded spaces can be put in the place of empty ones that have an owner
//! ([`put_in_place`], `checkpoint::put_in_place`): readers of these see all rows from one moment on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::blocks::ScanBatch;
use crate::locks::Interrupt;
use crate::store::{Shared, Store};
use crate::{Error, Result, SpaceId, checkpoint};

/// How often a thread that waits for a write looks whether it is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A space that was loaded, and is to take the place of an empty one.
#[derive(Clone, Copy, Debug)]
pub struct LoadedSpace {
    /// What was loaded. It is no space of its own afterwards; a mark of the caller's that it has no
    /// owner is still to be removed.
    pub from: SpaceId,
    /// The empty space, which nobody writes to.
    pub into: SpaceId,
    /// How many rows it has: they count as changes of the space ([`Store::changes`]).
    pub rows: u64,
}

/// Puts loaded spaces in the place of empty ones, all at once, durably. Who takes a snapshot from then
/// on sees the rows.
///
/// Nobody may write to the empty spaces between [`BulkLoad::begin`] and the end of this. It waits for
/// the disk, and can't be interrupted.
///
/// # Errors
/// If the disk is full or fails, or writing is refused; [`Error::SpaceInUse`].
pub fn put_in_place(store: &Store, loaded: &[LoadedSpace]) -> Result<()> {
    checkpoint::put_in_place(store.shared(), loaded)
}

/// A new space that is being filled, in the order of its keys.
///
/// Dropping it before [`finish`](BulkLoad::finish) leaves the space with some of the rows.
pub struct BulkLoad {
    shared: Arc<Shared>,
    space: SpaceId,
    slice: ScanBatch,
    /// The slice before, which is being written. Its buffer comes back.
    in_progress: Option<Write<ScanBatch>>,
    /// Ends it early.
    interrupt: Option<Arc<Interrupt>>,
    /// Nothing is to be written to the space any more.
    is_over: Arc<AtomicBool>,
}

impl BulkLoad {
    /// Makes a checkpoint and begins to fill a space.
    ///
    /// The space's creation must have been committed and nobody may read it or write to it until
    /// [`finish`](BulkLoad::finish). If that isn't reached, the caller drops the space; after a
    /// crash, too.
    ///
    /// With an interrupt, the writes are another thread's, while the caller goes on with the next
    /// rows; and all calls end soon once it is set.
    ///
    /// # Errors
    /// If the checkpoint fails; [`Error::Interrupted`].
    pub fn begin(
        store: &Store,
        space: SpaceId,
        interrupt: Option<Arc<Interrupt>>,
    ) -> Result<BulkLoad> {
        let load = BulkLoad {
            shared: Arc::clone(store.shared()),
            space,
            slice: ScanBatch::default(),
            in_progress: None,
            interrupt,
            is_over: Arc::default(),
        };
        load.write(|shared, _| checkpoint::run(shared).map(|_| ()))?;
        Ok(load)
    }

    /// Adds a row. Its key must be greater than those before it.
    ///
    /// # Errors
    /// If the disk is full or fails; [`Error::Interrupted`].
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.slice.push(key, value);
        match self.slice.bytes() < self.shared.slice_bytes() {
            true => Ok(()),
            false => self.write_slice(),
        }
    }

    /// Makes the rows durable, and visible to those who take a snapshot from now on.
    ///
    /// # Errors
    /// If the disk is full or fails, or writing is refused; [`Error::Interrupted`].
    pub fn finish(mut self) -> Result<()> {
        self.write_slice()?;
        self.wait_for_slice()?;
        let space = self.space;
        self.write(move |shared, _| checkpoint::show_loaded(shared, space))
    }

    /// Has the slice written. One is, at most, while the next one fills.
    fn write_slice(&mut self) -> Result<()> {
        let written = self.wait_for_slice()?;
        let (space, slice) = (self.space, std::mem::replace(&mut self.slice, written));
        let work = move |shared: &Shared, is_over: &AtomicBool| {
            let mut slice = slice;
            checkpoint::load(shared, space, slice.bytes() as u64, slice.rows(), is_over)?;
            slice.clear();
            Ok(slice)
        };
        match self.interrupt {
            Some(_) => self.in_progress = Some(self.begin_write(work)?),
            None => self.slice = work(&self.shared, &self.is_over)?,
        }
        Ok(())
    }

    /// Waits for the slice that is being written. Gives its buffer.
    fn wait_for_slice(&mut self) -> Result<ScanBatch> {
        match (self.in_progress.take(), &self.interrupt) {
            (Some(write), Some(interrupt)) => write.wait(interrupt),
            _ => Ok(ScanBatch::default()),
        }
    }

    /// Does a write, which can take long. Who is interrupted doesn't wait for it.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match &self.interrupt {
            Some(interrupt) => self.begin_write(work)?.wait(interrupt),
            None => work(&self.shared, &self.is_over),
        }
    }

    /// Begins a write on a thread of its own.
    fn begin_write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<Write<T>> {
        // A disk may be too fast for a wait to tell.
        if self
            .interrupt
            .as_ref()
            .is_some_and(|interrupt| interrupt.is_set())
        {
            return Err(Error::Interrupted);
        }
        let (shared, is_over) = (Arc::clone(&self.shared), Arc::clone(&self.is_over));
        let (done, outcome) = channel();
        let thread = thread::Builder::new().name("porpoise-load".to_string());
        let thread = thread.spawn(move || {
            // Nobody may wait for it any more.
            let _ = done.send(work(&shared, &is_over));
        });
        let thread = thread.map_err(Error::io("start a thread for", "porpoise-load"))?;
        Ok(Write { thread, outcome })
    }
}

/// A write on a thread of its own.
struct Write<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<Result<T>>,
}

impl<T> Write<T> {
    fn wait(self, interrupt: &Interrupt) -> Result<T> {
        loop {
            match self.outcome.recv_timeout(LOOK_INTERVAL) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) if interrupt.is_set() => {
                    return Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // It has panicked.
                Err(RecvTimeoutError::Disconnected) => match self.thread.join() {
                    Ok(()) => return Err(Error::Closed),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            }
        }
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        // The space is dropped next, and must not come back.
        self.is_over.store(true, Ordering::SeqCst);
    }
}
