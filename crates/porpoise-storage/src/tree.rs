//! The redb database, and how to have it anew.
//!
//! redb gives itself up at the first I/O error, reads included, and a write transaction that a
//! panic went through leaves pages behind that nobody frees. So after a checkpoint that failed the
//! database is opened anew over the same file: it is the tree of the last commit then, and nothing
//! else is lost. The old one is cut off from the file first. Who still reads from it is sent on to
//! the new one (`base.rs`).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redb::ReadableDatabase;

use crate::tree_file::{CheckedFile, HandleState, TreeFile, catch_damage, catch_panic};
use crate::{Error, Result, SpaceId, SpaceOwner};

/// The tables that the tree has beside those of spaces.
pub(crate) mod tables {
    use redb::TableDefinition;

    /// What the tree says about itself.
    pub const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
    pub const COUNTERS: TableDefinition<u32, u64> = TableDefinition::new("counters");
    /// Spaces that a checkpoint couldn't write to, and where they are damaged.
    pub const DAMAGED: TableDefinition<u32, (u64, &str)> = TableDefinition::new("damaged");
}

pub(crate) struct Tree {
    database: Option<redb::Database>,
    /// `None` in memory.
    handle: Option<Arc<HandleState>>,
}

impl Tree {
    /// Opens the tree in a file, or in memory if there is none.
    pub fn open(file: Option<&Arc<CheckedFile>>, cache_bytes: usize) -> Result<Tree> {
        let mut builder = redb::Builder::new();
        builder.set_cache_size(cache_bytes);
        catch_panic(|| {
            let (database, handle) = match file {
                Some(file) => {
                    let file = TreeFile::new(Arc::clone(file));
                    let handle = Arc::clone(file.state());
                    (builder.create_with_backend(file)?, Some(handle))
                }
                None => {
                    let backend = redb::backends::InMemoryBackend::new();
                    (builder.create_with_backend(backend)?, None)
                }
            };
            Ok(Tree {
                database: Some(database),
                handle,
            })
        })
    }

    fn database(&self) -> Result<&redb::Database> {
        self.database.as_ref().ok_or(Error::Closed)
    }

    pub fn handle(&self) -> Option<&Arc<HandleState>> {
        self.handle.as_ref()
    }

    pub fn begin_read(&self) -> Result<redb::ReadTransaction> {
        catch_damage(|| Ok(self.database()?.begin_read()?))
    }

    /// A transaction whose commit is on disk before anything refers to it, with redb's allocator
    /// state: opening the tree again after a crash takes no walk through it.
    pub fn begin_write(&self) -> Result<redb::WriteTransaction> {
        let mut writing = self.database()?.begin_write()?;
        writing.set_quick_repair(true);
        Ok(writing)
    }

    /// Lets go of the file without writing to it any more.
    pub fn abandon(self) {
        if let Some(handle) = &self.handle {
            handle.cut_off();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let database = self.database.take();
        // A panic that went through redb once may have left locks behind that make it panic again.
        let closed = catch_panic(|| {
            drop(database);
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the tree was not closed in order");
        }
    }
}

/// Tells what a space is, if it is anything.
pub type SpaceNames = Arc<dyn Fn(SpaceId) -> Option<SpaceOwner> + Send + Sync>;

/// What is known of damage.
#[derive(Default)]
pub(crate) struct DamagedSpaces {
    /// The spaces that are damaged where a checkpoint had to write. They are refused as a whole
    /// from then on: what the tree has of them is older than what was committed.
    refused: Mutex<BTreeMap<SpaceId, Error>>,
    /// What keeps the tree from being opened anew, if it can't be.
    of_all: Mutex<Option<Error>>,
    /// Places that the log tells of already.
    reported: Mutex<HashSet<u64>>,
    /// Checkpoints since the last good one that the disk refused to read something for.
    refused_folds: AtomicU32,
    /// How many there may be.
    pub refused_folds_max: u32,
    names: ArcSwapOption<SpaceNames>,
}

impl DamagedSpaces {
    /// A checkpoint was made.
    pub fn note_fold(&self) {
        self.refused_folds.store(0, Ordering::Relaxed);
    }

    /// The disk refused to read something for a checkpoint: whether to wait for it to give it yet.
    pub fn may_pass(&self) -> bool {
        self.refused_folds.fetch_add(1, Ordering::Relaxed) < self.refused_folds_max
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

    /// Notes whether the tree could be opened anew.
    pub fn note_of_all(&self, error: Option<Error>) {
        *self.of_all.lock() = error;
    }

    pub fn of_all(&self) -> Option<Error> {
        self.of_all.lock().clone()
    }

    pub fn set_names(&self, names: Option<SpaceNames>) {
        self.names.store(names.map(Arc::new));
    }

    /// An error that was met on behalf of a space, with the space named. Damage is logged once for
    /// each place.
    pub fn met(&self, error: Error, space: SpaceId) -> Error {
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
