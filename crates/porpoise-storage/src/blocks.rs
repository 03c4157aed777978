//! Rows of the B-tree, cached in memory as blocks.
//!
//! For every row that redb reads, a page is found by number, locked, counted and decoded. A
//! **block** is what a reader needs instead: some neighbouring rows in one buffer, with the
//! interval of keys that it covers. A key of the interval that is not in the block is not in the
//! tree either.
//!
//! ```text
//!            low                                          high
//! block       │ key key key … │ value value value …      │        immutable (`block.rs`)
//!             └── keys of this interval are here, or nowhere ──┘
//!
//! index       (a…d) (d…k)   ·gap·   (m…p) (p…∞)                     gaps are read from the tree and filled in
//! ```
//!
//! The index of a space's blocks is a B-tree of immutable nodes ([`index`]): a thread that adds or
//! removes a block copies the path to it. A reader loads the root and needs no lock after that. While
//! the cache is full, blocks wait to be added some at once ([`waiting`]).
//!
//! A checkpoint hands the blocks as they are to the next
//! [`TreeSnapshot`](crate::tree_snapshot::TreeSnapshot). Those that lack what the checkpoint wrote
//! are rewritten, a few at a time, from the block and the versions that went into the tree
//! ([`SpaceBlocks::refresh`]); meanwhile readers find these versions in the memtable, before they
//! come to the blocks. So of most rows there is one block, never a second generation of them. The
//! snapshot before keeps its own index of the blocks for transactions that still read from it,
//! until the next checkpoint at the latest.
//!
//! What was read least recently is evicted first when the memory is used up; of what scans read few
//! blocks are kept then ([`cache`]).

mod cache;
mod index;
mod read;
mod waiting;

use std::iter::Peekable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::block::Block;
use crate::leaves::SpaceTree;
use crate::tree_snapshot::SpaceRows;
use crate::{Direction, Result, SpaceId};
use cache::Eviction;
use index::{IndexNode, insert_block, remove_block};
use read::{FetchRange, Gap, read_block, read_run};
use waiting::WaitingBlocks;

pub(crate) use cache::{BlockCache, CacheLoan};
pub(crate) use read::ScanBatch;

/// How many blocks are refreshed before readers see them. A reader that adds a block waits as long.
const REFRESHED_AT_ONCE: usize = 32;

/// The block that a cursor wants next.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'k> {
    /// Forward the block covers the key, backward the keys just below it; `None` is the lowest key, or
    /// the end of all.
    pub key: Option<&'k [u8]>,
    pub direction: Direction,
    /// Those behind it are wanted next, and this one perhaps never again.
    pub is_scan: bool,
    /// A scan forward wants nothing from this key on: a block that is read ends there.
    pub end: Option<&'k [u8]>,
    /// A range that begins goes on to this key.
    pub until: Option<&'k [u8]>,
}

impl Wanted<'_> {
    /// The block, if it is in this index.
    fn find<'n>(&self, index: &'n IndexNode) -> Option<&'n Arc<Block>> {
        match (self.direction, self.key) {
            (Direction::Forward, key) => index.covering(key.unwrap_or_default()),
            (Direction::Backward, None) => index.last().filter(|block| block.high().is_none()),
            (Direction::Backward, Some(key)) => index
                .before(key)
                .filter(|block| block.high().is_none_or(|high| key <= high)),
        }
    }
}

pub(crate) struct FoundBlock {
    pub block: Arc<Block>,
    /// It had been read before.
    pub was_kept: bool,
}

/// The blocks of one space, as one redb read transaction has its rows.
#[derive(Default)]
pub(crate) struct SpaceBlocks {
    root: ArcSwap<IndexNode>,
    /// Locked to replace the root. True once a later snapshot has taken the blocks over.
    is_frozen: Mutex<bool>,
    /// Those that the index is to take, which were read while the cache was full.
    waiting: WaitingBlocks,
}

impl SpaceBlocks {
    /// Calls `read` with the value of a key, if there is one, without copying it.
    pub fn get<R>(
        &self,
        from: &BlockSource<'_>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let root = self.root.load();
        if let Some(block) = root.covering(key) {
            block.mark_referenced();
            return Ok(block.get(key).map(read));
        }
        if from.is_retired.load(Ordering::Relaxed) {
            // A block would not be kept.
            return from.rows.get(key, read);
        }
        if let Some(block) = self.waiting.find(|index| index.covering(key)) {
            block.mark_referenced();
            return Ok(block.get(key).map(read));
        }
        let gap = Gap::of(&root, key, FetchRange::Around);
        drop(root);
        let block = self.fetch(from, &gap)?;
        Ok(block.get(key).map(read))
    }

    /// The block that a cursor wants.
    pub fn block(&self, from: &BlockSource<'_>, wanted: Wanted<'_>) -> Result<FoundBlock> {
        let root = self.root.load();
        let found = wanted.find(&root).map(Arc::clone);
        if let Some(block) = found.or_else(|| self.waiting.find(|index| wanted.find(index))) {
            block.mark_referenced();
            return Ok(FoundBlock {
                block,
                was_kept: true,
            });
        }
        let (key, range) = match (wanted.direction, wanted.key) {
            (Direction::Forward, key) => (key.unwrap_or_default(), FetchRange::From),
            (Direction::Backward, Some(key)) => (key, FetchRange::Below),
            (Direction::Backward, None) => (&[][..], FetchRange::Last),
        };
        let gap = Gap::of(&root, key, range).limited_to(&wanted);
        drop(root);
        Ok(FoundBlock {
            block: self.fetch(from, &gap)?,
            was_kept: false,
        })
    }

    /// Reads a block that the index lacks from the tree, and keeps it unless another thread was
    /// faster. The index isn't held meanwhile: with it all of its blocks would be.
    #[inline(never)]
    fn fetch(&self, from: &BlockSource<'_>, gap: &Gap<'_>) -> Result<Arc<Block>> {
        let memory = &from.cache.memory;
        let is_leaf_enough = memory.is_nearly_used() || from.is_retired.load(Ordering::Relaxed);
        if let SpaceRows::Leaves(tree) = from.rows
            && gap.is_upward_scan()
            && !is_leaf_enough
        {
            return self.fetch_run(from, tree, gap);
        }
        gap.begin_reading(from.rows)?;
        let block = Arc::new(read_block(from.rows, memory, gap, is_leaf_enough)?);
        if block.size() > memory.budget / 16
            || !from.cache.is_worth_keeping(gap.is_scan())
            || !from.cache.makes_room()
        {
            return Ok(block);
        }
        match is_leaf_enough {
            true => self.keep_soon(from, &block),
            false => self.keep(from, std::slice::from_ref(&block)),
        }
        Ok(block)
    }

    /// As [`fetch`](Self::fetch), for a scan: those behind it are read, too, while the disk and the
    /// processor are at it.
    fn fetch_run(
        &self,
        from: &BlockSource<'_>,
        tree: &SpaceTree,
        gap: &Gap<'_>,
    ) -> Result<Arc<Block>> {
        let memory = &from.cache.memory;
        let blocks = read_run(tree, memory, gap)?.into_iter().map(Arc::new);
        let blocks: SmallVec<[Arc<Block>; 16]> = blocks.collect();
        let is_small = |block: &&Arc<Block>| block.size() <= memory.budget / 16;
        let kept = blocks.iter().take_while(is_small).count();
        self.keep(from, &blocks[..kept]);
        Ok(Arc::clone(&blocks[0]))
    }

    /// Keeps blocks that were read from the tree, those that the index lacks still.
    fn keep(&self, from: &BlockSource<'_>, blocks: &[Arc<Block>]) {
        let is_frozen = self.is_frozen.lock();
        if *is_frozen || from.is_retired.load(Ordering::SeqCst) {
            return;
        }
        let kept = self.add_to_index(blocks);
        drop(is_frozen);
        for block in kept {
            from.cache.admit(from.space, block);
        }
    }

    /// Adds those of the blocks that overlap none, and gives them. Only for who may replace the root.
    fn add_to_index<'b>(&self, blocks: &'b [Arc<Block>]) -> SmallVec<[&'b Arc<Block>; 32]> {
        let mut root = self.root.load_full();
        let mut added = SmallVec::new();
        for block in blocks {
            if !root.overlaps(block) {
                insert_block(&mut root, Arc::clone(block));
                added.push(block);
            }
        }
        self.root.store(root);
        added
    }

    /// As [`keep`](Self::keep), for a block that is read while the cache is full: it waits for others,
    /// unless it is time for some to go, or too many wait.
    fn keep_soon(&self, from: &BlockSource<'_>, block: &Arc<Block>) {
        if from.is_retired.load(Ordering::SeqCst) {
            return;
        }
        let memory = &from.cache.memory;
        if !self.waiting.add(block) && !memory.is_over_budget() && !memory.has_many_waiting() {
            return;
        }
        // Whoever replaces the root now is about to be done; the next one who reads a block takes them along.
        let Some(is_frozen) = self.is_frozen.try_lock() else {
            return;
        };
        if *is_frozen || from.is_retired.load(Ordering::SeqCst) {
            return;
        }
        let blocks = self.waiting.all();
        let kept = self.add_to_index(&blocks);
        self.waiting.remove_first(blocks.len());
        drop(is_frozen);
        for block in kept {
            from.cache.admit(from.space, block);
        }
    }

    /// The blocks for the snapshot after a checkpoint, as they are. This snapshot keeps what it
    /// has, for those who still read from it, and adds no more.
    pub fn hand_over(&self) -> SpaceBlocks {
        let mut is_frozen = self.is_frozen.lock();
        *is_frozen = true;
        // They would be in no cache's clock.
        self.waiting.clear(true);
        SpaceBlocks {
            root: ArcSwap::new(self.root.load_full()),
            ..SpaceBlocks::default()
        }
    }

    /// Rewrites the blocks after a checkpoint that wrote these rows, in the order of their keys
    /// (`None`: a deleted row). Until then readers have the rows from the memtable.
    pub fn refresh<'w>(
        &self,
        space: SpaceId,
        cache: &BlockCache,
        written: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) {
        let mut written = written.peekable();
        while written.peek().is_some() {
            for block in self.refresh_some(&mut written) {
                cache.admit(space, &block);
            }
        }
    }

    /// Rewrites the first few blocks that have any of the rows. Gives the new blocks.
    fn refresh_some<'w>(
        &self,
        written: &mut Peekable<impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>>,
    ) -> Vec<Arc<Block>> {
        let mut all_rewritten = Vec::new();
        let _changing = self.is_frozen.lock();
        let mut root = self.root.load_full();
        for _ in 0..REFRESHED_AT_ONCE {
            let Some(block) = next_affected(&root, written) else {
                break;
            };
            let changes =
                std::iter::from_fn(|| written.next_if(|(key, _)| block.is_below_high(key)));
            // Rewriting a block that was not read lately may be in vain.
            let rewritten = match block.is_referenced() {
                true => block.rewrite(changes),
                false => {
                    changes.for_each(drop);
                    Vec::new()
                }
            };
            if rewritten.is_empty() {
                remove_block(&mut root, block.low());
            }
            for (number, block) in rewritten.into_iter().map(Arc::new).enumerate() {
                all_rewritten.push(Arc::clone(&block));
                match number {
                    0 => Arc::make_mut(&mut root).replace(block),
                    _ => insert_block(&mut root, block),
                }
            }
        }
        self.root.store(root);
        all_rewritten
    }

    /// Removes all blocks, which a checkpoint has made untrue: more than memory holds.
    pub fn forget_all(&self) {
        let _changing = self.is_frozen.lock();
        self.waiting.clear(false);
        self.root.store(Arc::default());
    }

    /// Removes all blocks: the space was dropped, or the snapshot after the next has come.
    pub fn clear(&self) {
        let mut is_frozen = self.is_frozen.lock();
        *is_frozen = true;
        self.waiting.clear(true);
        self.root.store(Arc::default());
    }

    /// Removes those of the blocks that are here.
    fn evict<'b>(&self, blocks: impl Iterator<Item = &'b Arc<Block>>) -> Eviction {
        let is_frozen = self.is_frozen.lock();
        let mut root = self.root.load_full();
        for block in blocks {
            let found = root.at_or_before(block.low());
            if found.is_some_and(|found| Arc::ptr_eq(found, block)) {
                remove_block(&mut root, block.low());
            }
        }
        self.root.store(root);
        match *is_frozen {
            true => Eviction::Partial,
            false => Eviction::Complete,
        }
    }
}

/// The first block that has any of the rows; skips those before it.
fn next_affected<'w>(
    root: &IndexNode,
    rows: &mut Peekable<impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>>,
) -> Option<Arc<Block>> {
    loop {
        let (key, _) = rows.peek()?;
        if let Some(block) = root.covering(key) {
            return Some(Arc::clone(block));
        }
        let Some(next) = root.after(key) else {
            rows.for_each(drop);
            return None;
        };
        while rows.next_if(|(key, _)| *key < next.low()).is_some() {}
    }
}

/// The tree that a space's blocks are read from, and the cache that they go to.
pub(crate) struct BlockSource<'a> {
    pub space: SpaceId,
    pub rows: &'a SpaceRows,
    pub cache: &'a BlockCache,
    /// A later snapshot takes, or took, the blocks of all spaces over: none may be added that it
    /// would miss.
    pub is_retired: &'a AtomicBool,
}
