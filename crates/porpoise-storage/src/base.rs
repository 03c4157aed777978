//! The B-tree below the versions: one redb read transaction, and for each space a table handle and the blocks of
//! rows that were read through it.
//!
//! Opening a redb table costs microseconds, so a handle is opened once for each space and checkpoint, when a row is
//! wanted that no block has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use redb::{
    ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableDefinition,
    TableError,
};

use crate::block::Block;
use crate::blocks::{BlockCache, Source, SpaceBlocks};
use crate::space_table::SpaceTable;
use crate::versions::Generation;
use crate::{Direction, Error, Result, SpaceId};

pub(crate) type Table = ReadOnlyTable<&'static [u8], &'static [u8]>;

pub(crate) struct Base {
    /// `None` once the store is closed.
    transaction: Option<ReadTransaction>,
    spaces: SpaceTable<Space>,
    cache: Arc<BlockCache>,
    /// The next base is made from this one.
    is_retired: AtomicBool,
    /// The base that this one has its first blocks from, if anybody still reads from it.
    before: Mutex<Weak<Base>>,
}

#[derive(Default)]
struct Space {
    /// `None` within, while no checkpoint has put anything into the space.
    table: OnceLock<Option<Table>>,
    blocks: SpaceBlocks,
}

impl Base {
    pub fn open(database: &redb::Database, cache: Arc<BlockCache>) -> Result<Base> {
        Ok(Base {
            transaction: Some(database.begin_read()?),
            spaces: SpaceTable::new(),
            cache,
            is_retired: AtomicBool::new(false),
            before: Mutex::default(),
        })
    }

    /// The base after a checkpoint. It gets all blocks as they are: until they are brought up to date, what the checkpoint wrote
    /// must be read from above.
    pub fn after(self: &Arc<Base>, database: &redb::Database) -> Result<Arc<Base>> {
        let next = Base::open(database, Arc::clone(&self.cache))?;
        // Whoever still reads from the base before this one does without blocks from here on.
        if let Some(before) = std::mem::take(&mut *self.before.lock()).upgrade() {
            before
                .spaces
                .iter()
                .for_each(|(_, space)| space.blocks.forget());
        }
        // From here on no space gets a first block that the walk below has missed.
        self.is_retired.store(true, Ordering::SeqCst);
        for (number, space) in self.spaces.iter() {
            next.spaces.get_or_insert_with(number, || Space {
                table: OnceLock::new(),
                blocks: space.blocks.hand_on(),
            });
        }
        *next.before.lock() = Arc::downgrade(self);
        let next = Arc::new(next);
        self.cache.serve(&next);
        Ok(next)
    }

    /// Makes the blocks true again after a checkpoint that wrote this generation.
    pub fn bring_up_to_date(&self, written: &Generation) {
        for (number, versions) in written.spaces.iter() {
            let Some(space) = self.spaces.get(number) else {
                continue;
            };
            if versions.is_dropped_ever() {
                space.blocks.forget();
            } else {
                let rows = versions.newest();
                space.blocks.bring_up_to_date(number, &self.cache, rows);
            }
        }
    }

    /// What is left when the store is closed.
    pub fn closed() -> Base {
        Base {
            transaction: None,
            spaces: SpaceTable::new(),
            cache: Arc::new(BlockCache::new(0)),
            is_retired: AtomicBool::new(true),
            before: Mutex::default(),
        }
    }

    /// The space's tree; `None` while no checkpoint has put anything into it.
    fn table<'a>(&self, number: SpaceId, space: &'a Space) -> Result<Option<&'a Table>> {
        if let Some(table) = space.table.get() {
            return Ok(table.as_ref());
        }
        let name = table_name(number);
        let transaction = self.transaction.as_ref().ok_or(Error::Closed)?;
        let opened = match transaction.open_table(definition(&name)) {
            Ok(table) => Some(table),
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(e) => return Err(e.into()),
        };
        Ok(space.table.get_or_init(|| opened).as_ref())
    }

    fn space(&self, number: SpaceId) -> &Space {
        self.spaces.get_or_insert_with(number, Space::default)
    }

    fn source<'a>(&'a self, number: SpaceId, space: &'a Space) -> Result<Option<Source<'a>>> {
        let table = self.table(number, space)?;
        Ok(table.map(|table| Source {
            space: number,
            table,
            cache: &self.cache,
            is_retired: &self.is_retired,
        }))
    }

    /// Reads one value where it lies.
    pub fn get<R>(
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

    /// The block that speaks for a key; see [`SpaceBlocks::block`]. `None` where the space has no rows.
    pub fn block(
        &self,
        number: SpaceId,
        key: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Arc<Block>>> {
        let space = self.space(number);
        match self.source(number, space)? {
            Some(source) => space.blocks.block(&source, key, direction).map(Some),
            None => Ok(None),
        }
    }

    /// Does something with the blocks of a space, of the base before first. What it gave for this one's.
    pub fn each_blocks<R>(&self, number: SpaceId, act: impl Fn(&SpaceBlocks) -> R) -> Option<R> {
        let before = self.before.lock().upgrade();
        if let Some(space) = before.as_ref().and_then(|base| base.spaces.get(number)) {
            act(&space.blocks);
        }
        self.spaces.get(number).map(|space| act(&space.blocks))
    }

    pub fn block_bytes(&self) -> usize {
        self.cache.bytes()
    }

    pub fn len(&self, number: SpaceId) -> Result<u64> {
        match self.table(number, self.space(number))? {
            Some(table) => Ok(table.len()?),
            None => Ok(0),
        }
    }
}

pub(crate) fn table_name(space: SpaceId) -> String {
    format!("s{}", space.0)
}

pub(crate) fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}
