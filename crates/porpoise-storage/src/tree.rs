//! The redb database, how it is opened anew after a failure, and which spaces are damaged.
//!
//! redb fails every operation after its first I/O error, reads included, and a write transaction
//! that a panic went through leaves pages behind that nobody frees. So after a checkpoint that
//! failed the database is opened anew over the same file: it is the tree of the last commit then,
//! and nothing else is lost. The old database is detached from the file first. Those who still read
//! from it go on with the new one ([`tree_snapshot`](crate::tree_snapshot)).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redb::ReadableDatabase;

use crate::branch_cache::BranchCache;
use crate::leaves::LeafReader;
use crate::tree_file::{CheckedFile, DatabaseState, TreeFile, catch_damage, catch_panic};
use crate::{Error, Result, SpaceId, SpaceOwner};

/// The tables that the tree has beside those of spaces.
pub(crate) mod tables {
    use redb::TableDefinition;

    /// What the tree says about itself.
    pub const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
    pub const COUNTERS: TableDefinition<u32, u64> = TableDefinition::new("counters");
    /// Spaces that a checkpoint couldn't write to: the offset of the damage, and what it is.
    pub const DAMAGED: TableDefinition<u32, (u64, &str)> = TableDefinition::new("damaged");
}

pub(crate) struct Tree {
    database: Option<redb::Database>,
    /// `None` in memory.
    file: Option<TreeFile>,
}

impl Tree {
    /// Opens the tree in a file, or in memory if there is none.
    pub fn open(file: Option<&Arc<CheckedFile>>, cache_bytes: usize) -> Result<Tree> {
        let mut builder = redb::Builder::new();
        builder.set_cache_size(cache_bytes);
        catch_panic(|| {
            let (database, file) = match file {
                Some(file) => {
                    let file = TreeFile::new(Arc::clone(file));
                    (builder.create_with_backend(file.clone())?, Some(file))
                }
                None => {
                    let backend = redb::backends::InMemoryBackend::new();
                    (builder.create_with_backend(backend)?, None)
                }
            };
            Ok(Tree {
                database: Some(database),
                file,
            })
        })
    }

    fn database(&self) -> Result<&redb::Database> {
        self.database.as_ref().ok_or(Error::Closed)
    }

    pub fn database_state(&self) -> Option<&Arc<DatabaseState>> {
        self.file.as_ref().map(TreeFile::state)
    }

    /// What reads the trees of the last commit from the file; `None` in memory.
    pub fn leaves(&self, branches: &Arc<BranchCache>) -> Option<LeafReader> {
        let file = self.file.as_ref()?;
        let (pages, state) = (Arc::clone(file.pages()), Arc::clone(file.state()));
        Some(LeafReader::new(pages, state, Arc::clone(branches)))
    }

    pub fn begin_read(&self) -> Result<redb::ReadTransaction> {
        catch_damage(|| Ok(self.database()?.begin_read()?))
    }

    /// A transaction whose commit is on disk before anything refers to it, with redb's allocator
    /// state: opening the tree again after a crash takes no scan of it.
    pub fn begin_write(&self) -> Result<redb::WriteTransaction> {
        let mut writing = self.database()?.begin_write()?;
        writing.set_quick_repair(true);
        Ok(writing)
    }

    /// Closes the database without writing to the file any more.
    pub fn abandon(self) {
        if let Some(database_state) = self.database_state() {
            database_state.detach();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let database = self.database.take();
        // A panic that went through redb may have left locks behind that make it panic again.
        let closed = catch_panic(|| {
            drop(database);
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the tree was not closed in order");
        }
        // Who still reads its pages past redb doesn't know when they are written again.
        if let Some(database_state) = self.database_state() {
            database_state.close();
        }
    }
}

/// Gives the table or index that a space belongs to; `None` if it is unknown.
pub type SpaceNames = Arc<dyn Fn(SpaceId) -> Option<SpaceOwner> + Send + Sync>;

/// Spaces that are damaged, and damage that was met.
#[derive(Default)]
pub(crate) struct DamagedSpaces {
    /// The spaces that are damaged where a checkpoint had to write. All of their reads fail from
    /// then on: what the tree has of them is older than what was committed.
    refused: Mutex<BTreeMap<SpaceId, Error>>,
    /// Why the tree couldn't be opened anew, while it can't.
    whole_tree: Mutex<Option<Error>>,
    /// The offsets of damage that was logged already.
    reported: Mutex<HashSet<u64>>,
    /// Checkpoints since the last good one that the disk failed to read something for.
    failed_read_checkpoints: AtomicU32,
    /// How many there may be until what can't be read counts as damaged.
    pub checkpoint_read_tries: u32,
    names: ArcSwapOption<SpaceNames>,
}

impl DamagedSpaces {
    /// Notes that a checkpoint was made.
    pub fn note_checkpoint(&self) {
        self.failed_read_checkpoints.store(0, Ordering::Relaxed);
    }

    /// Notes that the disk failed to read something for a checkpoint. Gives whether the checkpoint
    /// is to be tried again.
    pub fn may_retry_reads(&self) -> bool {
        self.failed_read_checkpoints.fetch_add(1, Ordering::Relaxed) < self.checkpoint_read_tries
    }

    pub fn get(&self, space: SpaceId) -> Option<Error> {
        self.refused.lock().get(&space).cloned()
    }

    pub fn add(&self, space: SpaceId, error: Error) {
        self.refused.lock().insert(space, error);
    }

    pub fn has(&self, space: SpaceId) -> bool {
        self.refused.lock().contains_key(&space)
    }

    /// Notes why the tree couldn't be opened anew; `None` if it was opened.
    pub fn set_whole_tree(&self, error: Option<Error>) {
        *self.whole_tree.lock() = error;
    }

    pub fn whole_tree(&self) -> Option<Error> {
        self.whole_tree.lock().clone()
    }

    pub fn set_names(&self, names: Option<SpaceNames>) {
        self.names.store(names.map(Arc::new));
    }

    /// Adds a space and its owner to an error of damage, and logs it once for each place. Other
    /// errors stay as they are.
    pub fn attribute(&self, error: Error, space: SpaceId) -> Error {
        let Error::Damaged(place) = error else {
            return error;
        };
        let mut place = Arc::unwrap_or_clone(place);
        place.space = Some(space);
        place.owner = self.names.load().as_ref().and_then(|names| names(space));
        if self.reported.lock().insert(place.offset) {
            let owner = place.owner.as_ref();
            tracing::error!(
                table = owner.map(|owner| owner.table.as_str()),
                index = owner.and_then(|owner| owner.index.as_deref()),
                space = space.0,
                "{place}"
            );
        }
        Error::Damaged(Arc::new(place))
    }
}
