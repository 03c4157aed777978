//! Filling a new space in the order of its keys, beside the log.
//!
//! A million entries of an index that go through the log are written there, then into memtables,
//! then folded into the tree a memtable at a time: each fold changes leaves all over the index, and
//! writes them whole. Sorted entries can go into the tree at once, each leaf of it one time.
//!
//! ```text
//! 1. begin    a checkpoint: the tree has the commit that made the space, and whatever is to be said
//!             of a space that nobody owns yet
//! 2. push     as many bytes of rows as a memtable has are one redb transaction; the tree's lock is
//!             free in between, for checkpoints
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

use std::sync::Arc;

use crate::blocks::ScanBatch;
use crate::store::{Shared, Store};
use crate::{Result, SpaceId, checkpoint};

/// A new space that is being filled, in the order of its keys.
///
/// Dropping it before [`finish`](BulkLoad::finish) leaves the space with some of the rows.
pub struct BulkLoad {
    shared: Arc<Shared>,
    space: SpaceId,
    slice: ScanBatch,
}

impl BulkLoad {
    /// Makes a checkpoint and begins to fill a space.
    ///
    /// The space's creation must have been committed and nobody may read it or write to it until
    /// [`finish`](BulkLoad::finish). If that isn't reached, the caller drops the space; after a
    /// crash, too.
    ///
    /// # Errors
    /// If the checkpoint fails.
    pub fn begin(store: &Store, space: SpaceId) -> Result<BulkLoad> {
        let shared = Arc::clone(store.shared());
        checkpoint::run(&shared)?;
        Ok(BulkLoad {
            shared,
            space,
            slice: ScanBatch::default(),
        })
    }

    /// Adds a row. Its key must be greater than those before it.
    ///
    /// # Errors
    /// If the disk is full or fails.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.slice.push(key, value);
        match self.slice.bytes() < self.shared.memtable_bytes() {
            true => Ok(()),
            false => self.write_slice(),
        }
    }

    /// Makes the rows durable, and visible to those who take a snapshot from now on.
    ///
    /// # Errors
    /// If the disk is full or fails, or writing is refused.
    pub fn finish(mut self) -> Result<()> {
        self.write_slice()?;
        checkpoint::show_loaded(&self.shared, self.space)
    }

    fn write_slice(&mut self) -> Result<()> {
        checkpoint::load(
            &self.shared,
            self.space,
            self.slice.bytes() as u64,
            self.slice.rows(),
        )?;
        self.slice.clear();
        Ok(())
    }
}
