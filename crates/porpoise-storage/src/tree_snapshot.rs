//! One state of the B-tree, as readers use it: for each space its rows and the blocks that were made
//! of them, and a redb read transaction. Rows of a tree in memory are read through redb. Those of a
//! file are read from its pages ([`leaves`](crate::leaves)), which the transaction keeps from being
//! freed.
//!
//! To find a space's table costs microseconds, so it is done once for each space and checkpoint,
//! when a row is wanted that no block has.
//!
//! A page that turns out to be damaged fails the read that wanted it and nothing else. A tree that
//! was opened anew ([`crate::tree`]) has a snapshot of its own, and the snapshot over the tree that
//! failed sends its readers there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableDefinition, TableError};

use crate::blocks::{BlockCache, BlockSource, FoundBlock, SpaceBlocks, Wanted};
use crate::leaves::{BoundaryKey, LeafReader, LeafSpans, LeavesOfKeys, SpaceTree};
use crate::memtable::Memtable;
use crate::space_table::SpaceTable;
use crate::tree::{DamagedSpaces, Tree};
use crate::tree_file::{DatabaseState, catch_damage};
use crate::{Error, Result, SpaceId};

/// How often a reader whose tree has failed looks for the next one, a millisecond apart.
const SUCCESSOR_WAITS_MAX: u32 = 200;

/// A space's rows, as the snapshot's commit left them.
pub(crate) enum SpaceRows {
    /// Of a tree in memory.
    Redb(ReadOnlyTable<&'static [u8], &'static [u8]>),
    /// Of a tree in a file.
    Leaves(SpaceTree),
}

impl SpaceRows {
    fn len(&self) -> Result<u64> {
        match self {
            SpaceRows::Redb(table) => Ok(table.len()?),
            SpaceRows::Leaves(tree) => Ok(tree.len()),
        }
    }

    /// Calls `read` with the value of a key, if there is one.
    pub fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self {
            SpaceRows::Redb(table) => {
                let value = catch_damage(|| Ok(table.get(key)?))?;
                Ok(value.map(|value| read(value.value())))
            }
            SpaceRows::Leaves(tree) => tree.get(key, read),
        }
    }
}

pub(crate) struct TreeSnapshot {
    /// `None` once the store is closed.
    transaction: Option<ReadTransaction>,
    /// Reads the same trees from the file, while the transaction keeps their pages; `None` for a tree
    /// in memory.
    leaves: Option<Arc<LeafReader>>,
    spaces: SpaceTable<Space>,
    cache: Arc<BlockCache>,
    /// The next snapshot is made from this one.
    is_retired: AtomicBool,
    /// The snapshot that this one has its first blocks from, if anybody still reads from it.
    before: Mutex<Weak<TreeSnapshot>>,
    /// How many rows spaces had before a checkpoint wrote a part of what is to be written to them.
    lens: LensBefore,
    damaged: Arc<DamagedSpaces>,
    /// Whether redb can still use the tree's file; `None` for a tree in memory.
    database_state: Option<Arc<DatabaseState>>,
    /// The same rows over the tree that was opened when this one's failed.
    successor: OnceLock<Arc<TreeSnapshot>>,
}

/// How many rows some spaces had.
pub(crate) type LensBefore = Arc<[(SpaceId, u64)]>;

#[derive(Default)]
struct Space {
    table: OnceLock<OpenedTable>,
    blocks: SpaceBlocks,
}

/// What came of opening a space's tree.
enum OpenedTable {
    Rows(SpaceRows),
    /// No checkpoint has put anything into the space.
    Absent,
    /// A checkpoint couldn't write to it.
    Damaged(Error),
}

impl From<Option<SpaceRows>> for OpenedTable {
    fn from(found: Option<SpaceRows>) -> OpenedTable {
        found.map_or(OpenedTable::Absent, OpenedTable::Rows)
    }
}

impl TreeSnapshot {
    /// The tree of the last commit. No other may be made meanwhile.
    pub fn open(
        tree: &Tree,
        cache: Arc<BlockCache>,
        damaged: Arc<DamagedSpaces>,
    ) -> Result<TreeSnapshot> {
        Ok(TreeSnapshot {
            transaction: Some(tree.begin_read()?),
            leaves: tree.leaves(&cache.branches).map(Arc::new),
            spaces: SpaceTable::new(),
            cache,
            is_retired: AtomicBool::new(false),
            before: Mutex::default(),
            lens: Arc::default(),
            damaged,
            database_state: tree.database_state().cloned(),
            successor: OnceLock::new(),
        })
    }

    /// The snapshot after a checkpoint. It gets all blocks as they are: until
    /// [`refresh_blocks`](TreeSnapshot::refresh_blocks), what the checkpoint wrote must be read
    /// from its memtable.
    pub fn after_checkpoint(self: &Arc<TreeSnapshot>, tree: &Tree) -> Result<Arc<TreeSnapshot>> {
        self.next(tree, &[], Arc::default())
    }

    /// The snapshot after a part of a checkpoint, or of the same rows elsewhere in the file. As with
    /// [`after_checkpoint`](TreeSnapshot::after_checkpoint), what the checkpoint writes must be read from its
    /// memtable. These spaces had so many rows before.
    pub fn after_part(
        self: &Arc<TreeSnapshot>,
        tree: &Tree,
        lens: &LensBefore,
    ) -> Result<Arc<TreeSnapshot>> {
        self.next(tree, &[], Arc::clone(lens))
    }

    /// How many rows some spaces had before the checkpoint that a part of is in this tree.
    pub fn lens_before(&self) -> &LensBefore {
        &self.lens
    }

    /// The snapshot after spaces were filled beside the log. It gets the blocks of all others.
    pub fn after_load(
        self: &Arc<TreeSnapshot>,
        tree: &Tree,
        loaded: &[SpaceId],
    ) -> Result<Arc<TreeSnapshot>> {
        self.next(tree, loaded, Arc::clone(&self.lens))
    }

    fn next(
        self: &Arc<TreeSnapshot>,
        tree: &Tree,
        loaded: &[SpaceId],
        lens: LensBefore,
    ) -> Result<Arc<TreeSnapshot>> {
        let mut next =
            TreeSnapshot::open(tree, Arc::clone(&self.cache), Arc::clone(&self.damaged))?;
        next.lens = lens;
        // Those who still read from the snapshot before this one read without blocks from here on.
        if let Some(before) = std::mem::take(&mut *self.before.lock()).upgrade() {
            before
                .spaces
                .iter()
                .for_each(|(_, space)| space.blocks.clear());
        }
        // From here on no space gets a first block that the loop below has missed.
        self.is_retired.store(true, Ordering::SeqCst);
        for (number, space) in self.spaces.iter() {
            if loaded.contains(&number) {
                continue;
            }
            next.spaces.get_or_insert_with(number, || Space {
                table: OnceLock::new(),
                blocks: space.blocks.hand_over(),
            });
        }
        *next.before.lock() = Arc::downgrade(self);
        let next = Arc::new(next);
        self.cache.attach(&next);
        Ok(next)
    }

    /// The snapshot of the same rows over a tree that was opened anew. Readers of this one that
    /// find that its tree has failed go on there.
    pub fn after_reopening(self: &Arc<TreeSnapshot>, tree: &Tree) -> Result<Arc<TreeSnapshot>> {
        let next = self.after_part(tree, &self.lens)?;
        let _ = self.successor.set(Arc::clone(&next));
        Ok(next)
    }

    /// Updates the blocks after a checkpoint that merged this memtable.
    pub fn refresh_blocks(&self, written: &Memtable) {
        for (number, versions) in written.spaces.iter() {
            let Some(space) = self.spaces.get(number) else {
                continue;
            };
            if versions.is_dropped_at_all() || self.damaged.has(number) {
                space.blocks.clear();
            } else if written.runs().is_some_and(|runs| runs.has(number)) {
                space.blocks.forget_all();
            } else {
                let rows = versions.newest();
                space.blocks.refresh(number, &self.cache, rows);
            }
        }
    }

    /// A snapshot whose reads fail with [`Error::Closed`].
    pub fn closed() -> TreeSnapshot {
        TreeSnapshot {
            transaction: None,
            leaves: None,
            spaces: SpaceTable::new(),
            cache: Arc::new(BlockCache::new(0)),
            is_retired: AtomicBool::new(true),
            before: Mutex::default(),
            lens: Arc::default(),
            damaged: Arc::default(),
            database_state: None,
            successor: OnceLock::new(),
        }
    }

    /// The space's table; `None` while no checkpoint has put anything into it.
    #[inline]
    fn table<'a>(&self, number: SpaceId, space: &'a Space) -> Result<Option<&'a SpaceRows>> {
        let opened = match space.table.get() {
            Some(opened) => opened,
            None => self.open_table(number, space)?,
        };
        match opened {
            OpenedTable::Rows(table) => Ok(Some(table)),
            OpenedTable::Absent => Ok(None),
            OpenedTable::Damaged(error) => Err(error.clone()),
        }
    }

    #[cold]
    fn open_table<'a>(&self, number: SpaceId, space: &'a Space) -> Result<&'a OpenedTable> {
        let name = table_name(number);
        let transaction = self.transaction.as_ref().ok_or(Error::Closed)?;
        let opened = match self.damaged.get(number) {
            Some(error) => OpenedTable::Damaged(error),
            None => match &self.leaves {
                Some(leaves) => leaves.space(&name)?.map(SpaceRows::Leaves).into(),
                None => match transaction.open_table(definition(&name)) {
                    Ok(table) => OpenedTable::Rows(SpaceRows::Redb(table)),
                    Err(TableError::TableDoesNotExist(_)) => OpenedTable::Absent,
                    Err(e) => return Err(e.into()),
                },
            },
        };
        Ok(space.table.get_or_init(|| opened))
    }

    /// The snapshot to read from after this error, if the tree was opened anew.
    #[cold]
    fn successor_after(&self, error: &Error) -> Option<&Arc<TreeSnapshot>> {
        if !error.is_tree_failure() {
            return None;
        }
        for _ in 0..SUCCESSOR_WAITS_MAX {
            if let Some(next) = self.successor.get() {
                return Some(next);
            }
            let is_unusable = self
                .database_state
                .as_ref()
                .is_some_and(|database_state| database_state.is_unusable());
            if !is_unusable || self.damaged.whole_tree().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn retry_with_successor<R>(
        &self,
        number: SpaceId,
        error: Error,
        again: impl FnOnce(&TreeSnapshot) -> Result<R>,
    ) -> Result<R> {
        match self.successor_after(&error) {
            Some(next) => again(next),
            None => Err(self.name_space(number, error)),
        }
    }

    /// The error for a reader of this space: damage names the space.
    #[cold]
    fn name_space(&self, number: SpaceId, error: Error) -> Error {
        let cause = self
            .damaged
            .whole_tree()
            .filter(|_| error.is_tree_failure());
        self.damaged.attribute(cause.unwrap_or(error), number)
    }

    fn space(&self, number: SpaceId) -> &Space {
        self.spaces.get_or_insert_with(number, Space::default)
    }

    fn source<'a>(&'a self, number: SpaceId, space: &'a Space) -> Result<Option<BlockSource<'a>>> {
        let table = self.table(number, space)?;
        Ok(table.map(|rows| BlockSource {
            space: number,
            rows,
            cache: &self.cache,
            is_retired: &self.is_retired,
        }))
    }

    /// Calls `read` with the value of a key, if there is one, without copying it.
    #[inline]
    pub fn get<R>(
        &self,
        number: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        // Called once at most: after an error it has not been called.
        let mut read = Some(read);
        let mut once = |value: &[u8]| read.take().map(|read| read(value));
        let mut snapshot = self;
        loop {
            match snapshot.try_get(number, key, &mut once) {
                Ok(found) => return Ok(found.flatten()),
                Err(error) => match snapshot.successor_after(&error) {
                    Some(next) => snapshot = next,
                    None => return Err(self.name_space(number, error)),
                },
            }
        }
    }

    #[inline]
    fn try_get<R>(
        &self,
        number: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let space = self.space(number);
        match self.source(number, space)? {
            Some(source) => space.blocks.get(&source, key, read),
            None => Ok(None),
        }
    }

    /// The block that a cursor wants. `None` where the space has no rows.
    pub fn block(&self, number: SpaceId, wanted: Wanted<'_>) -> Result<Option<FoundBlock>> {
        match self.try_block(number, wanted) {
            Ok(block) => Ok(block),
            Err(error) => {
                self.retry_with_successor(number, error, |next| next.block(number, wanted))
            }
        }
    }

    #[inline]
    fn try_block(&self, number: SpaceId, wanted: Wanted<'_>) -> Result<Option<FoundBlock>> {
        let space = self.space(number);
        let source = self.source(number, space)?;
        source
            .map(|source| space.blocks.block(&source, wanted))
            .transpose()
    }

    /// Goes through the leaves of a space from a key on, some at a time; `None` where it has none in a
    /// file.
    pub fn spans_from(&self, number: SpaceId, key: &[u8]) -> Result<Option<LeafSpans>> {
        match self.table(number, self.space(number))? {
            Some(SpaceRows::Leaves(tree)) => tree.spans_from(key),
            _ => Ok(None),
        }
    }

    /// See [`SpaceTree::end_of_span`].
    pub fn end_of_span(
        &self,
        number: SpaceId,
        spans: &mut LeafSpans,
        leaves: usize,
    ) -> Result<Option<BoundaryKey>> {
        match self.table(number, self.space(number))? {
            Some(SpaceRows::Leaves(tree)) => tree.end_of_span(spans, leaves),
            _ => Ok(None),
        }
    }

    /// See [`SpaceTree::leaves_of`]. A tree in memory has none.
    pub fn leaves_of<'k>(
        &self,
        number: SpaceId,
        keys: impl Iterator<Item = &'k [u8]>,
        leaves_max: usize,
        begins_reading: bool,
    ) -> Result<Option<LeavesOfKeys>> {
        match self.table(number, self.space(number))? {
            Some(SpaceRows::Leaves(tree)) => tree.leaves_of(keys, leaves_max, begins_reading),
            _ => Ok(None),
        }
    }

    /// Calls `act` with the blocks of a space, those of the snapshot before first. Gives what it
    /// returned for this snapshot's.
    pub fn with_blocks<R>(&self, number: SpaceId, act: impl Fn(&SpaceBlocks) -> R) -> Option<R> {
        let before = self.before.lock().upgrade();
        if let Some(space) = before.as_ref().and_then(|before| before.spaces.get(number)) {
            act(&space.blocks);
        }
        self.spaces.get(number).map(|space| act(&space.blocks))
    }

    /// Whether a later snapshot has taken the blocks over, or is about to.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::SeqCst)
    }

    /// The cache of the blocks, of this snapshot and of others.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    pub fn block_bytes(&self) -> usize {
        self.cache.bytes()
    }

    pub fn len(&self, number: SpaceId) -> Result<u64> {
        if let Some((_, len)) = self.lens.iter().find(|(space, _)| *space == number) {
            return Ok(*len);
        }
        match self.table(number, self.space(number)) {
            Ok(Some(table)) => table.len(),
            Ok(None) => Ok(0),
            Err(error) => self.retry_with_successor(number, error, |next| next.len(number)),
        }
    }
}

pub(crate) fn table_name(space: SpaceId) -> String {
    format!("s{}", space.0)
}

/// The space whose rows a table has.
pub(crate) fn space_of_table(name: &str) -> Option<SpaceId> {
    name.strip_prefix('s')?.parse().ok().map(SpaceId)
}

pub(crate) fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}
