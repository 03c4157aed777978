//! The B-tree below the versions: one redb read transaction, and for each space a table handle and the blocks of
//! rows that were read through it.
//!
//! Opening a redb table costs microseconds, so a handle is opened once for each space and checkpoint, when a row is
//! wanted that no block has.
//!
//! A page that turns out to be damaged fails the read that wanted it and nothing else. A tree that
//! was opened anew ([`crate::tree`]) has a base of its own, and the base over the old one sends its
//! readers there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTableMetadata, TableDefinition, TableError};

use crate::block::Block;
use crate::blocks::{BlockCache, Source, SpaceBlocks};
use crate::space_table::SpaceTable;
use crate::tree::{DamagedSpaces, Tree};
use crate::tree_file::{HandleState, catch_damage};
use crate::versions::Generation;
use crate::{Direction, Error, Result, SpaceId};

/// A reader whose tree has failed waits for the next one so often, a millisecond each.
const NEXT_TREE_AWAITED: u32 = 200;

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
    damaged: Arc<DamagedSpaces>,
    /// How it stands with the tree, if that lies in a file.
    handle: Option<Arc<HandleState>>,
    /// The same rows, over the tree that was opened when this one's failed.
    successor: OnceLock<Arc<Base>>,
}

#[derive(Default)]
struct Space {
    table: OnceLock<Opened>,
    blocks: SpaceBlocks,
}

/// What came of opening a space's tree.
enum Opened {
    Rows(Table),
    /// No checkpoint has put anything into the space.
    Nothing,
    /// A checkpoint couldn't write to it.
    Refused(Error),
}

impl Base {
    pub fn open(tree: &Tree, cache: Arc<BlockCache>, damaged: Arc<DamagedSpaces>) -> Result<Base> {
        Ok(Base {
            transaction: Some(tree.begin_read()?),
            spaces: SpaceTable::new(),
            cache,
            is_retired: AtomicBool::new(false),
            before: Mutex::default(),
            damaged,
            handle: tree.handle().cloned(),
            successor: OnceLock::new(),
        })
    }

    /// The base after a checkpoint. It gets all blocks as they are: until they are brought up to date, what the checkpoint wrote
    /// must be read from above.
    pub fn after(self: &Arc<Base>, tree: &Tree) -> Result<Arc<Base>> {
        let next = Base::open(tree, Arc::clone(&self.cache), Arc::clone(&self.damaged))?;
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

    /// The base of the same rows over a tree that was opened anew. Whoever reads from this one, and
    /// finds that its tree has failed, is sent there.
    pub fn over(self: &Arc<Base>, tree: &Tree) -> Result<Arc<Base>> {
        let next = self.after(tree)?;
        let _ = self.successor.set(Arc::clone(&next));
        Ok(next)
    }

    /// Makes the blocks true again after a checkpoint that wrote this generation.
    pub fn bring_up_to_date(&self, written: &Generation) {
        for (number, versions) in written.spaces.iter() {
            let Some(space) = self.spaces.get(number) else {
                continue;
            };
            if versions.is_dropped_ever() || self.damaged.has(number) {
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
            damaged: Arc::default(),
            handle: None,
            successor: OnceLock::new(),
        }
    }

    /// The space's tree; `None` while no checkpoint has put anything into it.
    #[inline]
    fn table<'a>(&self, number: SpaceId, space: &'a Space) -> Result<Option<&'a Table>> {
        let opened = match space.table.get() {
            Some(opened) => opened,
            None => self.open_table(number, space)?,
        };
        match opened {
            Opened::Rows(table) => Ok(Some(table)),
            Opened::Nothing => Ok(None),
            Opened::Refused(error) => Err(error.clone()),
        }
    }

    #[cold]
    fn open_table<'a>(&self, number: SpaceId, space: &'a Space) -> Result<&'a Opened> {
        let name = table_name(number);
        let transaction = self.transaction.as_ref().ok_or(Error::Closed)?;
        let opened = match self.damaged.get(number) {
            Some(error) => Opened::Refused(error),
            None => catch_damage(|| match transaction.open_table(definition(&name)) {
                Ok(table) => Ok(Opened::Rows(table)),
                Err(TableError::TableDoesNotExist(_)) => Ok(Opened::Nothing),
                Err(e) => Err(e.into()),
            })?,
        };
        Ok(space.table.get_or_init(|| opened))
    }

    /// The base to read from instead, after this error: the tree may have been opened anew.
    #[cold]
    fn instead(&self, error: &Error) -> Option<&Arc<Base>> {
        if !error.is_of_tree() {
            return None;
        }
        for _ in 0..NEXT_TREE_AWAITED {
            if let Some(next) = self.successor.get() {
                return Some(next);
            }
            let is_spent = self.handle.as_ref().is_some_and(|handle| handle.is_spent());
            if !is_spent || self.damaged.of_all().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn failed<R>(
        &self,
        number: SpaceId,
        error: Error,
        again: impl FnOnce(&Base) -> Result<R>,
    ) -> Result<R> {
        match self.instead(&error) {
            Some(next) => again(next),
            None => Err(self.named(number, error)),
        }
    }

    /// An error as whoever wanted a space's rows is told of it.
    #[cold]
    fn named(&self, number: SpaceId, error: Error) -> Error {
        let cause = self.damaged.of_all().filter(|_| error.is_of_tree());
        self.damaged.met(cause.unwrap_or(error), number)
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
    #[inline]
    pub fn get<R>(
        &self,
        number: SpaceId,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        // Read once at most: after an error it has not been.
        let mut read = Some(read);
        let mut once = |value: &[u8]| read.take().map(|read| read(value));
        let mut base = self;
        loop {
            match base.try_get(number, key, &mut once) {
                Ok(found) => return Ok(found.flatten()),
                Err(error) => match base.instead(&error) {
                    Some(next) => base = next,
                    None => return Err(self.named(number, error)),
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

    /// The block that speaks for a key; see [`SpaceBlocks::block`]. `None` where the space has no rows.
    pub fn block(
        &self,
        number: SpaceId,
        key: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Arc<Block>>> {
        match self.try_block(number, key, direction) {
            Ok(block) => Ok(block),
            Err(error) => self.failed(number, error, |next| next.block(number, key, direction)),
        }
    }

    #[inline]
    fn try_block(
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
        match self.table(number, self.space(number)) {
            Ok(Some(table)) => Ok(table.len()?),
            Ok(None) => Ok(0),
            Err(error) => self.failed(number, error, |next| next.len(number)),
        }
    }
}

pub(crate) fn table_name(space: SpaceId) -> String {
    format!("s{}", space.0)
}

pub(crate) fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}
