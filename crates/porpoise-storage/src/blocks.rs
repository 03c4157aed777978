//! Rows of the B-tree, kept in memory as readers want them.
//!
//! A redb page has to be found by number, locked, counted and decoded for every row that is read from it. A
//! **block** is what a reader wants instead: some neighbouring rows in one piece of memory, with the
//! interval of keys for which it speaks. What is in the interval and not in the block is not in the tree either.
//!
//! ```text
//!            low                                          high
//! block       │ key key key … │ value value value …      │        about 4 KiB of rows, never changed
//!             └── keys of this interval are here, or nowhere ──┘
//!
//! index       (a…d) (d…k)   ·gap·   (m…p) (p…∞)                     gaps are read from redb and filled in
//! ```
//!
//! The blocks of a space hang in a B-tree whose nodes are never changed either: whoever adds or drops a block
//! copies the path to it. A reader takes the root and needs no lock after that.
//!
//! A checkpoint hands its blocks on to the next [`Base`](crate::base::Base); those that it made untrue are written anew
//! from the block and the versions that went into the tree ([`SpaceBlocks::hand_on`]). What is read least lately goes
//! first when [`BlockCache`]'s room is used up (CLOCK: a block that was read since the hand last passed gets another
//! round).

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::base::{Base, Table};
use crate::version_map::prefix;
use crate::{Direction, Result, SpaceId};

/// How many bytes of rows a block gathers.
const BLOCK_BYTES: usize = 4096;

/// What a block costs beside its rows.
const BLOCK_OVERHEAD_BYTES: usize = 192;

/// The clock has room for as many blocks again as there were when it was last full, and at least for these.
const CLOCK_LEN_MIN: usize = 256;

/// Children of a node of the index.
const FANOUT: usize = 64;

/// Where a row's key and value begin within its block; each ends where the next one begins.
#[derive(Clone, Copy)]
struct RowAt {
    key: u32,
    value: u32,
}

/// Neighbouring rows, in order.
pub(crate) struct Block {
    low: Box<[u8]>,
    /// The first key it doesn't speak for; `None` past every key.
    high: Option<Box<[u8]>>,
    /// One more than there are rows: the last tells where the keys end, and the values.
    rows: Box<[RowAt]>,
    /// All keys, side by side for whoever searches them, then all values.
    bytes: Box<[u8]>,
    /// Read since the clock's hand passed.
    is_warm: AtomicBool,
}

impl Block {
    pub fn len(&self) -> usize {
        self.rows.len() - 1
    }

    pub fn low(&self) -> &[u8] {
        &self.low
    }

    pub fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        &self.bytes[self.rows[at].key as usize..self.rows[at + 1].key as usize]
    }

    #[inline]
    fn value(&self, at: usize) -> &[u8] {
        &self.bytes[self.rows[at].value as usize..self.rows[at + 1].value as usize]
    }

    #[inline]
    pub fn row(&self, at: usize) -> (&[u8], &[u8]) {
        (self.key(at), self.value(at))
    }

    /// The first row whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.partition(|found| found < key)
    }

    /// The first row whose key is above `key`.
    pub fn upper_bound(&self, key: &[u8]) -> usize {
        self.partition(|found| found <= key)
    }

    fn partition(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = (from + to) / 2;
            if is_before(self.key(middle)) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let at = self.lower_bound(key);
        (at < self.len() && self.key(at) == key).then(|| self.value(at))
    }

    fn is_below_high(&self, key: &[u8]) -> bool {
        self.high.as_deref().is_none_or(|high| key < high)
    }

    fn size(&self) -> usize {
        self.bytes.len()
            + self.low.len()
            + self.high.as_ref().map_or(0, |high| high.len())
            + self.rows.len() * size_of::<RowAt>()
            + BLOCK_OVERHEAD_BYTES
    }

    /// This block with rows of its interval replaced, added or removed: one block, or two when it has grown too large.
    fn rewritten<'w>(
        &self,
        news: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> impl Iterator<Item = Block> {
        let mut rows: Vec<(&[u8], &[u8])> = Vec::with_capacity(self.len() + 8);
        let mut at = 0;
        for (key, value) in news {
            while at < self.len() && self.key(at) < key {
                rows.push(self.row(at));
                at += 1;
            }
            if at < self.len() && self.key(at) == key {
                at += 1;
            }
            rows.extend(value.map(|value| (key, value)));
        }
        rows.extend((at..self.len()).map(|at| self.row(at)));
        let bytes: usize = rows
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let cut = if bytes > 2 * BLOCK_BYTES && rows.len() > 1 {
            rows.len() / 2
        } else {
            rows.len()
        };
        let (left, right) = rows.split_at(cut);
        let middle = right.first().map(|(key, _)| Box::<[u8]>::from(*key));
        let right = (middle.clone()).map(|middle| pack(middle, self.high.clone(), right));
        let left = pack(self.low.clone(), middle.or_else(|| self.high.clone()), left);
        // Both are as warm as the block that they come from.
        left.note_read();
        right.iter().for_each(Block::note_read);
        [Some(left), right].into_iter().flatten()
    }

    fn note_read(&self) {
        // A store by every reader would have the cores fight for the line.
        if !self.is_warm.load(Ordering::Relaxed) {
            self.is_warm.store(true, Ordering::Relaxed);
        }
    }
}

// ── The index ────────────────────────────────────────────────────────────────────────────────

#[derive(Clone)]
struct Node {
    /// Of each child's lowest key.
    prefixes: Vec<u64>,
    children: Children,
}

#[derive(Clone)]
enum Children {
    Blocks(Vec<Arc<Block>>),
    Nodes(Vec<Arc<Node>>),
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
            Children::Blocks(blocks) => blocks[child].low(),
            Children::Nodes(nodes) => nodes[child].low_of(0),
        }
    }

    /// How many children begin at or before the key.
    fn beginning_by(&self, key: &[u8]) -> usize {
        let prefix = prefix(key);
        let below = self.prefixes.partition_point(|known| *known < prefix);
        let equal = self.prefixes[below..].partition_point(|known| *known == prefix);
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
            Children::Blocks(blocks) => blocks.get(child),
            Children::Nodes(nodes) => nodes.get(child)?.at_or_before(key),
        }
    }

    /// The first block that begins after the key.
    fn after(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let child = self.beginning_by(key);
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child),
            Children::Nodes(nodes) => child
                .checked_sub(1)
                .and_then(|before| nodes[before].after(key))
                .or_else(|| nodes.get(child)?.first()),
        }
    }

    fn first(&self) -> Option<&Arc<Block>> {
        match &self.children {
            Children::Blocks(blocks) => blocks.first(),
            Children::Nodes(nodes) => nodes.first()?.first(),
        }
    }

    /// The last block that begins before the key.
    fn before(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let found = self.at_or_before(key)?;
        if *found.low < *key {
            return Some(found);
        }
        let child = self.beginning_by(key) - 1;
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child.checked_sub(1)?),
            Children::Nodes(nodes) => nodes[child]
                .before(key)
                .or_else(|| nodes.get(child.checked_sub(1)?)?.last()),
        }
    }

    fn last(&self) -> Option<&Arc<Block>> {
        match &self.children {
            Children::Blocks(blocks) => blocks.last(),
            Children::Nodes(nodes) => nodes.last()?.last(),
        }
    }

    fn len(&self) -> usize {
        self.prefixes.len()
    }

    fn visit(&self, see: &mut impl FnMut(&Block)) {
        match &self.children {
            Children::Blocks(blocks) => blocks.iter().for_each(|block| see(block)),
            Children::Nodes(nodes) => nodes.iter().for_each(|node| node.visit(see)),
        }
    }

    /// Adds a block that overlaps no other. The right half, if the node had to be split.
    fn insert(&mut self, block: Arc<Block>) -> Option<Arc<Node>> {
        let at = self.beginning_by(block.low());
        match &mut self.children {
            Children::Blocks(blocks) => {
                self.prefixes.insert(at, prefix(block.low()));
                blocks.insert(at, block);
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
            (Direction::Backward, None) => root.last().filter(|block| block.high.is_none()),
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
    fn fetch(&self, from: &Source<'_>, index: &Node, key: &[u8], want: Want) -> Result<Arc<Block>> {
        let block = Arc::new(read_block(from.table, index, key, want)?);
        if block.size() > from.cache.budget / 16 {
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
        // Counted before a checkpoint could take it off the count.
        let held = from.cache.count(&block);
        drop(is_handed_on);
        from.cache.admit(from.space, &block, held);
        Ok(block)
    }

    /// The blocks for the base after a checkpoint that wrote these rows, in the order of their keys (`None`: a row that is
    /// no more). This base keeps what it has, for those who still read from it, and takes no more.
    pub fn hand_on<'w>(
        &self,
        space: SpaceId,
        cache: &BlockCache,
        written: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> SpaceBlocks {
        let mut is_handed_on = self.is_handed_on.lock();
        *is_handed_on = true;
        let mut root = self.root.load_full();
        let mut written = written.peekable();
        while let Some(&(key, _)) = written.peek() {
            let block = root
                .at_or_before(key)
                .filter(|block| block.is_below_high(key));
            let Some(block) = block.cloned() else {
                written.next();
                continue;
            };
            remove_block(&mut root, block.low());
            cache.bytes.fetch_sub(block.size(), Ordering::Relaxed);
            let news = std::iter::from_fn(|| written.next_if(|(key, _)| block.is_below_high(key)));
            // Nobody has read it lately: what it costs to bring it up to date may be in vain.
            if !block.is_warm.load(Ordering::Relaxed) {
                news.for_each(drop);
                continue;
            }
            for block in block.rewritten(news) {
                let block = Arc::new(block);
                insert_block(&mut root, Arc::clone(&block));
                cache.count(&block);
                cache.enlist(space, &block);
            }
        }
        SpaceBlocks {
            root: ArcSwap::new(root),
            is_handed_on: Mutex::new(false),
        }
    }

    /// Forgets them all: the space was dropped.
    pub fn forget(&self, cache: &BlockCache) {
        *self.is_handed_on.lock() = true;
        let mut bytes = 0;
        self.root.load().visit(&mut |block| bytes += block.size());
        cache.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn evict(&self, block: &Arc<Block>) -> Evicted {
        let is_handed_on = self.is_handed_on.lock();
        if *is_handed_on {
            return Evicted::NotHere;
        }
        let mut root = self.root.load_full();
        let found = root.at_or_before(block.low());
        if !found.is_some_and(|found| Arc::ptr_eq(found, block)) {
            return Evicted::Gone;
        }
        remove_block(&mut root, block.low());
        self.root.store(root);
        Evicted::Now
    }
}

enum Evicted {
    Now,
    /// A checkpoint had dropped it.
    Gone,
    /// A later base is about to have it.
    NotHere,
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

/// Gathers rows from the tree up to the blocks on either side.
fn read_block(table: &Table, index: &Node, key: &[u8], want: Want) -> Result<Block> {
    let room = match want {
        Want::Around => BLOCK_BYTES / 2,
        _ => BLOCK_BYTES,
    };
    let mut gathered: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut low: Box<[u8]> = key.into();
    if want != Want::From {
        let (bound, before) = match want {
            Want::Last => (Bound::Unbounded, index.last()),
            _ => (Bound::Excluded(key), index.before(key)),
        };
        let floor = before.and_then(|block| block.high()).unwrap_or_default();
        low = floor.into();
        let mut bytes = 0;
        let is_empty = want != Want::Last && floor == key;
        let rows = (!is_empty).then(|| table.range::<&[u8]>((Bound::Included(floor), bound)));
        let mut rows = rows.transpose()?;
        while let Some(row) = rows.as_mut().and_then(|rows| rows.next_back()) {
            let (key, value) = row?;
            if bytes >= room {
                // The row after it is the first that the block speaks for.
                if let Some((first, _)) = gathered.last() {
                    low = first.as_slice().into();
                }
                break;
            }
            bytes += key.value().len() + value.value().len();
            gathered.push((key.value().to_vec(), value.value().to_vec()));
        }
        gathered.reverse();
    }
    let mut high: Option<Box<[u8]>> = match want {
        Want::Below => Some(key.into()),
        _ => None,
    };
    if matches!(want, Want::From | Want::Around) {
        let ceiling = index.after(key).map(|block| block.low());
        high = ceiling.map(Box::from);
        let end = ceiling.map_or(Bound::Unbounded, Bound::Excluded);
        let mut bytes = 0;
        for row in table.range::<&[u8]>((Bound::Included(key), end))? {
            let (key, value) = row?;
            if bytes >= room {
                high = Some(key.value().into());
                break;
            }
            bytes += key.value().len() + value.value().len();
            gathered.push((key.value().to_vec(), value.value().to_vec()));
        }
    }
    Ok(pack(low, high, &gathered))
}

fn pack(
    low: Box<[u8]>,
    high: Option<Box<[u8]>>,
    gathered: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)],
) -> Block {
    let keys_len: usize = gathered.iter().map(|(key, _)| key.as_ref().len()).sum();
    let values_len: usize = gathered.iter().map(|(_, value)| value.as_ref().len()).sum();
    let mut bytes = Vec::with_capacity(keys_len + values_len);
    let mut rows = Vec::with_capacity(gathered.len() + 1);
    let mut at = RowAt {
        key: 0,
        value: keys_len as u32,
    };
    for (key, value) in gathered {
        rows.push(at);
        at.key += key.as_ref().len() as u32;
        at.value += value.as_ref().len() as u32;
        bytes.extend_from_slice(key.as_ref());
    }
    rows.push(at);
    for (_, value) in gathered {
        bytes.extend_from_slice(value.as_ref());
    }
    Block {
        low,
        high,
        rows: rows.into(),
        bytes: bytes.into(),
        is_warm: AtomicBool::new(false),
    }
}

// ── The room for all of them ─────────────────────────────────────────────────────────────────

/// The memory that blocks of all spaces share.
pub(crate) struct BlockCache {
    budget: usize,
    bytes: AtomicUsize,
    /// Blocks in the order in which the clock's hand comes by.
    clock: Mutex<VecDeque<(SpaceId, Weak<Block>)>>,
    /// Whose blocks they are now.
    base: Mutex<Weak<Base>>,
}

impl BlockCache {
    pub fn new(budget: usize) -> BlockCache {
        BlockCache {
            budget,
            bytes: AtomicUsize::new(0),
            clock: Mutex::default(),
            base: Mutex::default(),
        }
    }

    /// Drops the blocks of this base from now on.
    pub fn serve(&self, base: &Arc<Base>) {
        *self.base.lock() = Arc::downgrade(base);
    }

    fn count(&self, block: &Block) -> usize {
        self.bytes.fetch_add(block.size(), Ordering::Relaxed) + block.size()
    }

    /// Has the clock's hand come by.
    fn enlist(&self, space: SpaceId, block: &Arc<Block>) {
        let mut clock = self.clock.lock();
        if clock.len() == clock.capacity() {
            // Blocks that a checkpoint has replaced are gone without having been evicted.
            clock.retain(|(_, block)| block.strong_count() > 0);
            let len = clock.len();
            clock.reserve(len.max(CLOCK_LEN_MIN));
        }
        clock.push_back((space, Arc::downgrade(block)));
    }

    fn admit(&self, space: SpaceId, block: &Arc<Block>, held: usize) {
        self.enlist(space, block);
        if held > self.budget {
            self.make_room();
        }
    }

    fn make_room(&self) {
        let Some(base) = self.base.lock().upgrade() else {
            return;
        };
        // Every block gets one more round at most.
        let mut rounds = 2 * self.clock.lock().len();
        while self.bytes.load(Ordering::Relaxed) > self.budget && rounds > 0 {
            rounds -= 1;
            let next = self.clock.lock().pop_front();
            let Some((space, block)) = next else { return };
            let Some(block) = block.upgrade() else {
                continue;
            };
            let stays = block.is_warm.swap(false, Ordering::Relaxed)
                || match base.blocks(space).map(|blocks| blocks.evict(&block)) {
                    Some(Evicted::Now) => {
                        self.bytes.fetch_sub(block.size(), Ordering::Relaxed);
                        false
                    }
                    Some(Evicted::Gone) | None => false,
                    Some(Evicted::NotHere) => true,
                };
            if stays {
                let again = (space, Arc::downgrade(&block));
                self.clock.lock().push_back(again);
            }
        }
    }
}
