//! Rows of the B-tree, kept in memory as readers want them.
//!
//! A redb page has to be found by number, locked, counted and decoded for every row that is read from it. A
//! **block** is what a reader wants instead: some neighbouring rows in one piece of memory, with the
//! interval of keys for which it speaks. What is in the interval and not in the block is not in the tree either.
//!
//! ```text
//!            low                                          high
//! block       │ key key key … │ value value value …      │        a page of rows, never changed (`block.rs`)
//!             └── keys of this interval are here, or nowhere ──┘
//!
//! index       (a…d) (d…k)   ·gap·   (m…p) (p…∞)                     gaps are read from redb and filled in
//! ```
//!
//! The blocks of a space hang in a B-tree whose nodes are never changed either: whoever adds or drops a block
//! copies the path to it. A reader takes the root and needs no lock after that.
//!
//! A checkpoint hands the blocks on as they are to the next [`Base`](crate::base::Base). Those that it made untrue are
//! written anew, a few at a time, from the block and the versions that went into the tree ([`SpaceBlocks::bring_up_to_date`]);
//! meanwhile readers still have these versions above the blocks. So of most rows there is one block, never a second
//! generation of them. The base before keeps its own index of the blocks for transactions that still read from it, until
//! the next checkpoint at the latest.
//!
//! What is read least lately goes first when the [`Room`] is used up (CLOCK: a block that was read since the hand
//! last passed gets another round).

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::base::{Base, Table};
use crate::block::{Block, Fill, PIECE_BYTES_MAX, Room, pack};
use crate::prefix::prefix;
use crate::tree_file::catch_damage;
use crate::{Direction, Result, SpaceId};

/// The clock has room for as many blocks again as there were when it was last full, and at least for these.
const CLOCK_LEN_MIN: usize = 256;

/// Children of a node of the index.
const FANOUT: usize = 64;

/// So many blocks are brought up to date before readers see them. A reader that adds a block waits so long.
const REWRITTEN_AT_ONCE: usize = 32;

// ── The index ────────────────────────────────────────────────────────────────────────────────

#[derive(Clone)]
struct Node {
    /// Of each child's lowest key.
    prefixes: Vec<u64>,
    children: Children,
}

#[derive(Clone)]
enum Children {
    Blocks(Vec<Hung>),
    Nodes(Vec<Arc<Node>>),
}

/// A block in its place. Whoever looks for a row in it has two pieces of memory brought near at once, the block and its rows.
#[derive(Clone)]
struct Hung {
    block: Arc<Block>,
    /// Where its rows begin, to be prefetched.
    rows_at: usize,
}

impl Hung {
    fn new(block: Arc<Block>) -> Hung {
        let rows_at = block.rows_at();
        Hung { block, rows_at }
    }

    /// The block, of which keys are looked at next.
    #[inline]
    fn approach(&self) -> &Arc<Block> {
        Block::prefetch_keys(self.rows_at);
        &self.block
    }
}

impl Default for Node {
    fn default() -> Node {
        Node {
            prefixes: Vec::new(),
            children: Children::Blocks(Vec::new()),
        }
    }
}

impl Node {
    fn low_of(&self, child: usize) -> &[u8] {
        match &self.children {
            Children::Blocks(blocks) => blocks[child].block.low(),
            Children::Nodes(nodes) => nodes[child].low_of(0),
        }
    }

    /// How many children begin at or before the key.
    fn beginning_by(&self, key: &[u8]) -> usize {
        let prefix = prefix(key);
        let below = self.prefixes.partition_point(|known| *known < prefix);
        let is_equal = |known: &&u64| **known == prefix;
        let equal = self.prefixes[below..].iter().take_while(is_equal).count();
        if equal == 0 {
            return below;
        }
        let (mut from, mut to) = (below, below + equal);
        while from < to {
            let middle = (from + to) / 2;
            if self.low_of(middle) <= key {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// The last block that begins at or before the key.
    fn at_or_before(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let child = self.beginning_by(key).checked_sub(1)?;
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child).map(Hung::approach),
            Children::Nodes(nodes) => nodes.get(child)?.at_or_before(key),
        }
    }

    /// The first block that begins after the key.
    fn after(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let child = self.beginning_by(key);
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child).map(|hung| &hung.block),
            Children::Nodes(nodes) => child
                .checked_sub(1)
                .and_then(|before| nodes[before].after(key))
                .or_else(|| nodes.get(child)?.first()),
        }
    }

    fn first(&self) -> Option<&Arc<Block>> {
        match &self.children {
            Children::Blocks(blocks) => blocks.first().map(|hung| &hung.block),
            Children::Nodes(nodes) => nodes.first()?.first(),
        }
    }

    /// The last block that begins before the key.
    fn before(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let found = self.at_or_before(key)?;
        if found.low() < key {
            return Some(found);
        }
        let child = self.beginning_by(key) - 1;
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child.checked_sub(1)?).map(|hung| &hung.block),
            Children::Nodes(nodes) => nodes[child]
                .before(key)
                .or_else(|| nodes.get(child.checked_sub(1)?)?.last()),
        }
    }

    fn last(&self) -> Option<&Arc<Block>> {
        match &self.children {
            Children::Blocks(blocks) => blocks.last().map(|hung| &hung.block),
            Children::Nodes(nodes) => nodes.last()?.last(),
        }
    }

    fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Puts a block in the place of the one that begins at the same key, which is there.
    fn replace(&mut self, block: Arc<Block>) {
        let Some(child) = self.beginning_by(block.low()).checked_sub(1) else {
            return;
        };
        match &mut self.children {
            Children::Blocks(blocks) => blocks[child] = Hung::new(block),
            Children::Nodes(nodes) => Arc::make_mut(&mut nodes[child]).replace(block),
        }
    }

    /// Adds a block that overlaps no other. The right half, if the node had to be split.
    fn insert(&mut self, block: Arc<Block>) -> Option<Arc<Node>> {
        let at = self.beginning_by(block.low());
        match &mut self.children {
            Children::Blocks(blocks) => {
                self.prefixes.insert(at, prefix(block.low()));
                blocks.insert(at, Hung::new(block));
            }
            Children::Nodes(nodes) => {
                let child = at.saturating_sub(1);
                if at == 0 {
                    self.prefixes[0] = prefix(block.low());
                }
                if let Some(right) = Arc::make_mut(&mut nodes[child]).insert(block) {
                    self.prefixes.insert(child + 1, prefix(right.low_of(0)));
                    nodes.insert(child + 1, right);
                }
            }
        }
        (self.len() > FANOUT).then(|| Arc::new(self.split()))
    }

    fn split(&mut self) -> Node {
        // Rows are read in order more often than not: what comes next goes to the right.
        let at = self.len() * 3 / 4;
        Node {
            prefixes: self.prefixes.split_off(at),
            children: match &mut self.children {
                Children::Blocks(blocks) => Children::Blocks(blocks.split_off(at)),
                Children::Nodes(nodes) => Children::Nodes(nodes.split_off(at)),
            },
        }
    }

    /// Takes out the block that begins at `low`, which is there.
    fn remove(&mut self, low: &[u8]) {
        let Some(child) = self.beginning_by(low).checked_sub(1) else {
            return;
        };
        let is_empty = match &mut self.children {
            Children::Blocks(blocks) => {
                blocks.remove(child);
                true
            }
            Children::Nodes(nodes) => {
                let node = Arc::make_mut(&mut nodes[child]);
                node.remove(low);
                if node.len() > 0 {
                    self.prefixes[child] = node.prefixes[0];
                    false
                } else {
                    nodes.remove(child);
                    true
                }
            }
        };
        if is_empty {
            self.prefixes.remove(child);
        }
    }
}

fn insert_block(root: &mut Arc<Node>, block: Arc<Block>) {
    let Some(right) = Arc::make_mut(root).insert(block) else {
        return;
    };
    let left = std::mem::take(root);
    *root = Arc::new(Node {
        prefixes: vec![prefix(left.low_of(0)), prefix(right.low_of(0))],
        children: Children::Nodes(vec![left, right]),
    });
}

fn remove_block(root: &mut Arc<Node>, low: &[u8]) {
    Arc::make_mut(root).remove(low);
    if root.len() == 0 {
        *root = Arc::default();
    }
}

// ── A space's blocks ─────────────────────────────────────────────────────────────────────────

/// The blocks of one space, as one redb read transaction has its rows.
#[derive(Default)]
pub(crate) struct SpaceBlocks {
    root: ArcSwap<Node>,
    /// Held by whoever replaces the root. True once a later base has taken the blocks over.
    is_handed_on: Mutex<bool>,
}

impl SpaceBlocks {
    /// Reads one value where it lies.
    pub fn get<R>(
        &self,
        from: &Source<'_>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let root = self.root.load();
        if let Some(block) = root.at_or_before(key)
            && block.is_below_high(key)
        {
            block.note_read();
            return Ok(block.get(key).map(read));
        }
        if from.is_retired.load(Ordering::Relaxed) {
            // A block would not be kept.
            let value = catch_damage(|| Ok(from.table.get(key)?))?;
            return Ok(value.map(|value| read(value.value())));
        }
        let block = self.fetch(from, &root, key, Want::Around)?;
        Ok(block.get(key).map(read))
    }

    /// The block that speaks for the key (forward), or for the keys just below it (backward; `None` is the
    /// end of all keys).
    pub fn block(
        &self,
        from: &Source<'_>,
        key: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Arc<Block>> {
        let root = self.root.load();
        let found = match (direction, key) {
            (Direction::Forward, key) => {
                let key = key.unwrap_or_default();
                root.at_or_before(key)
                    .filter(|block| block.is_below_high(key))
            }
            (Direction::Backward, None) => root.last().filter(|block| block.high().is_none()),
            (Direction::Backward, Some(key)) => root
                .before(key)
                .filter(|block| block.high().is_none_or(|high| key <= high)),
        };
        if let Some(block) = found {
            block.note_read();
            return Ok(Arc::clone(block));
        }
        let (key, want) = match (direction, key) {
            (Direction::Forward, key) => (key.unwrap_or_default(), Want::From),
            (Direction::Backward, Some(key)) => (key, Want::Below),
            (Direction::Backward, None) => (&[][..], Want::Last),
        };
        self.fetch(from, &root, key, want)
    }

    /// Reads a block that `index` lacks from the tree, and keeps it if nobody else was faster.
    #[inline(never)]
    fn fetch(&self, from: &Source<'_>, index: &Node, key: &[u8], want: Want) -> Result<Arc<Block>> {
        let room = &from.cache.room;
        let block = catch_damage(|| read_block(from.table, room, index, key, want))?;
        let block = Arc::new(block);
        if block.size() > room.budget / 16 {
            return Ok(block);
        }
        let is_handed_on = self.is_handed_on.lock();
        let mut root = self.root.load_full();
        let overlaps = root
            .at_or_before(block.low())
            .is_some_and(|before| before.is_below_high(block.low()))
            || root
                .after(block.low())
                .is_some_and(|after| block.is_below_high(after.low()));
        if *is_handed_on || from.is_retired.load(Ordering::SeqCst) || overlaps {
            return Ok(block);
        }
        insert_block(&mut root, Arc::clone(&block));
        self.root.store(root);
        drop(is_handed_on);
        from.cache.admit(from.space, &block);
        Ok(block)
    }

    /// The blocks for the base after a checkpoint, as they are. This base keeps what it has, for those who still read from
    /// it, and takes no more.
    pub fn hand_on(&self) -> SpaceBlocks {
        let mut is_handed_on = self.is_handed_on.lock();
        *is_handed_on = true;
        SpaceBlocks {
            root: ArcSwap::new(self.root.load_full()),
            is_handed_on: Mutex::new(false),
        }
    }

    /// Makes the blocks true again after a checkpoint that wrote these rows, in the order of their keys (`None`: a row that
    /// is no more). Until then readers have the rows from elsewhere.
    pub fn bring_up_to_date<'w>(
        &self,
        space: SpaceId,
        cache: &BlockCache,
        written: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) {
        let mut written = written.peekable();
        while written.peek().is_some() {
            let mut made = Vec::new();
            {
                let _changing = self.is_handed_on.lock();
                let mut root = self.root.load_full();
                for _ in 0..REWRITTEN_AT_ONCE {
                    let Some(block) = next_of(&root, &mut written) else {
                        break;
                    };
                    let news =
                        std::iter::from_fn(|| written.next_if(|(key, _)| block.is_below_high(key)));
                    // Nobody has read it lately: what it costs to bring it up to date may be in vain.
                    let pieces = match block.is_warm() {
                        true => block.rewritten(news),
                        false => {
                            news.for_each(drop);
                            Vec::new()
                        }
                    };
                    if pieces.is_empty() {
                        remove_block(&mut root, block.low());
                    }
                    for (number, piece) in pieces.into_iter().map(Arc::new).enumerate() {
                        made.push(Arc::clone(&piece));
                        match number {
                            0 => Arc::make_mut(&mut root).replace(piece),
                            _ => insert_block(&mut root, piece),
                        }
                    }
                }
                self.root.store(root);
            }
            for block in made {
                cache.admit(space, &block);
            }
        }
    }

    /// Forgets them all: the space was dropped, or a base after the next has come.
    pub fn forget(&self) {
        let mut is_handed_on = self.is_handed_on.lock();
        *is_handed_on = true;
        self.root.store(Arc::default());
    }

    fn evict(&self, block: &Arc<Block>) -> Evicted {
        let is_handed_on = self.is_handed_on.lock();
        let mut root = self.root.load_full();
        let found = root.at_or_before(block.low());
        if found.is_some_and(|found| Arc::ptr_eq(found, block)) {
            remove_block(&mut root, block.low());
            self.root.store(root);
        }
        match *is_handed_on {
            true => Evicted::Here,
            false => Evicted::Everywhere,
        }
    }
}

enum Evicted {
    Everywhere,
    /// A later base may have it, too.
    Here,
}

/// The first block that has any of the rows; passes over those before it.
fn next_of<'w>(
    root: &Node,
    rows: &mut std::iter::Peekable<impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>>,
) -> Option<Arc<Block>> {
    loop {
        let (key, _) = rows.peek()?;
        let at = root.at_or_before(key);
        if let Some(block) = at.filter(|block| block.is_below_high(key)) {
            return Some(Arc::clone(block));
        }
        let Some(next) = root.after(key) else {
            rows.for_each(drop);
            return None;
        };
        while rows.next_if(|(key, _)| *key < next.low()).is_some() {}
    }
}

/// Where a space's blocks come from.
pub(crate) struct Source<'a> {
    pub space: SpaceId,
    pub table: &'a Table,
    pub cache: &'a BlockCache,
    /// A later base takes, or took, the blocks of all spaces over: none may be added that it would miss.
    pub is_retired: &'a AtomicBool,
}

/// Which rows a block is wanted for.
#[derive(Clone, Copy, PartialEq)]
enum Want {
    /// The key's, and those on both sides.
    Around,
    /// The key's and those after it.
    From,
    /// Those before the key.
    Below,
    /// The last of all.
    Last,
}

/// Rows as they come from the tree, in one piece.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Where the key and the value of each end.
    ends: Vec<(usize, usize)>,
}

impl Gathered {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn row(&self, at: usize) -> (&[u8], &[u8]) {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (key_end, end) = self.ends[at];
        (&self.bytes[begin..key_end], &self.bytes[key_end..end])
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + Clone {
        (0..self.ends.len()).map(|at| self.row(at))
    }
}

/// Gathers rows from the tree up to the blocks on either side.
fn read_block(
    table: &Table,
    room: &Arc<Room>,
    index: &Node,
    key: &[u8],
    want: Want,
) -> Result<Block> {
    let mut fill = Fill::new(key);
    // From the key down.
    let mut before = Gathered::default();
    let mut low: SmallVec<[u8; 24]> = SmallVec::from_slice(key);
    if want != Want::From {
        let room = match want {
            Want::Around => PIECE_BYTES_MAX / 2,
            _ => PIECE_BYTES_MAX,
        };
        let (bound, last) = match want {
            Want::Last => (Bound::Unbounded, index.last()),
            _ => (Bound::Excluded(key), index.before(key)),
        };
        let floor = last.and_then(|block| block.high()).unwrap_or_default();
        low = SmallVec::from_slice(floor);
        let is_empty = want != Want::Last && floor == key;
        let rows = (!is_empty).then(|| table.range::<&[u8]>((Bound::Included(floor), bound)));
        let mut rows = rows.transpose()?;
        while let Some(row) = rows.as_mut().and_then(|rows| rows.next_back()) {
            let (key, value) = row?;
            if !fill.admits(key.value(), value.value(), room) {
                // The row after it is the first that the block speaks for.
                if let Some((first, _)) = before.rows().next_back() {
                    low = SmallVec::from_slice(first);
                }
                break;
            }
            before.push(key.value(), value.value());
        }
    }
    // From the key up.
    let mut behind = Gathered::default();
    let mut high: Option<SmallVec<[u8; 24]>> = match want {
        Want::Below => Some(SmallVec::from_slice(key)),
        _ => None,
    };
    if matches!(want, Want::From | Want::Around) {
        let ceiling = index.after(key).map(|block| block.low());
        high = ceiling.map(SmallVec::from_slice);
        let end = ceiling.map_or(Bound::Unbounded, Bound::Excluded);
        for row in table.range::<&[u8]>((Bound::Included(key), end))? {
            let (key, value) = row?;
            let fits = fill.admits(key.value(), value.value(), PIECE_BYTES_MAX);
            // What was asked for is in it in any case.
            if !fits && !behind.ends.is_empty() {
                high = Some(SmallVec::from_slice(key.value()));
                break;
            }
            behind.push(key.value(), value.value());
        }
    }
    let rows = before.rows().rev().chain(behind.rows());
    Ok(pack(room, &low, high.as_deref(), rows))
}

// ── The room for all of them ─────────────────────────────────────────────────────────────────

/// Which blocks of all spaces stay in memory.
pub(crate) struct BlockCache {
    room: Arc<Room>,
    /// Blocks in the order in which the clock's hand comes by.
    clock: Mutex<VecDeque<(SpaceId, Weak<Block>)>>,
    /// Whose blocks they are now.
    base: Mutex<Weak<Base>>,
}

impl BlockCache {
    pub fn new(budget: usize) -> BlockCache {
        BlockCache {
            room: Arc::new(Room::new(budget)),
            clock: Mutex::default(),
            base: Mutex::default(),
        }
    }

    /// What the blocks take.
    pub fn bytes(&self) -> usize {
        self.room.used()
    }

    /// Drops the blocks of this base from now on.
    pub fn serve(&self, base: &Arc<Base>) {
        *self.base.lock() = Arc::downgrade(base);
    }

    /// Has the clock's hand come by, now if there is no room left.
    fn admit(&self, space: SpaceId, block: &Arc<Block>) {
        {
            let mut clock = self.clock.lock();
            if clock.len() == clock.capacity() {
                // Blocks that a checkpoint has replaced are gone without having been evicted.
                clock.retain(|(_, block)| block.strong_count() > 0);
                let len = clock.len();
                clock.reserve(len.max(CLOCK_LEN_MIN));
            }
            clock.push_back((space, Arc::downgrade(block)));
        }
        if self.room.is_exceeded() {
            self.make_room();
        }
    }

    fn make_room(&self) {
        let Some(base) = self.base.lock().upgrade() else {
            return;
        };
        // Every block gets one more round at most.
        let mut rounds = 2 * self.clock.lock().len();
        while self.room.is_exceeded() && rounds > 0 {
            rounds -= 1;
            let next = self.clock.lock().pop_front();
            let Some((space, block)) = next else { return };
            let Some(block) = block.upgrade() else {
                continue;
            };
            let stays = block.cool() || {
                let evicted = base.each_blocks(space, |blocks| blocks.evict(&block));
                evicted.is_some_and(|evicted| matches!(evicted, Evicted::Here))
            };
            if stays {
                let again = (space, Arc::downgrade(&block));
                self.clock.lock().push_back(again);
            }
        }
    }
}
