//! Which blocks stay in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::SpaceId;
use crate::block::{Block, BlockMemory};
use crate::branch_cache::BranchCache;
use crate::tree_snapshot::TreeSnapshot;

/// The clock has capacity for twice as many blocks as there were when it was last full, and at
/// least for these.
const CLOCK_LEN_MIN: usize = 256;

/// How many blocks are evicted at once: they share the copies of the index's upper nodes.
const EVICTED_AT_ONCE: usize = 32;

/// A reader who adds a block evicts so many batches at most. More would take it long, and a thread that
/// takes long waits for those that don't: with an index in its hands, and thus all of its blocks.
const BATCHES_OF_A_READER: usize = 2;

/// Of the blocks that scans read, one of so many is kept once the cache is nearly full. A scan of
/// more than the cache holds would evict what others read again and again, and be none the faster
/// next time; a table that is scanned often has its place after some scans.
const SCANNED_PER_KEPT: usize = 8;

/// Which blocks of all spaces stay in memory: CLOCK, in which a block that was read since the hand
/// last passed stays for another round.
pub(crate) struct BlockCache {
    pub(super) memory: Arc<BlockMemory>,
    /// The tree's branches, on the way to what no block has.
    pub branches: Arc<BranchCache>,
    /// Blocks in the order in which the clock's hand passes them.
    clock: Mutex<VecDeque<(SpaceId, Weak<Block>)>>,
    /// The snapshot whose blocks they are now.
    snapshot: Mutex<Weak<TreeSnapshot>>,
    /// Held by who evicts.
    evicting: Mutex<()>,
    /// Blocks that scans have read while the cache was nearly full.
    scanned: AtomicUsize,
}

impl BlockCache {
    /// A cache of so many bytes.
    pub fn new(budget: usize) -> BlockCache {
        let memory = Arc::new(BlockMemory::new(budget));
        BlockCache {
            branches: Arc::new(BranchCache::new(Arc::clone(&memory))),
            memory,
            clock: Mutex::default(),
            snapshot: Mutex::default(),
            evicting: Mutex::default(),
            scanned: AtomicUsize::new(0),
        }
    }

    /// Whether to keep a block that was just read.
    pub(super) fn is_worth_keeping(&self, is_of_a_scan: bool) -> bool {
        !is_of_a_scan
            || !self.memory.is_nearly_used()
            || self
                .scanned
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(SCANNED_PER_KEPT)
    }

    /// Whether there is room for another block. Evicts some if eviction lags behind; false if it still
    /// does.
    pub(super) fn makes_room(&self) -> bool {
        if self.memory.is_far_over_budget() {
            self.evict(BATCHES_OF_A_READER);
        }
        !self.memory.is_far_over_budget()
    }

    /// A loan of nothing yet.
    pub fn lend(self: &Arc<BlockCache>) -> CacheLoan {
        CacheLoan {
            cache: Arc::clone(self),
            bytes: AtomicUsize::new(0),
        }
    }

    /// How much of what all transactions' writes take a transaction may have, if they take more than so many
    /// bytes; `None` if they don't.
    pub fn share_of_writer(&self, bytes_max: usize) -> Option<usize> {
        let written = self.memory.written.load(Ordering::Relaxed);
        let writers = self.memory.writers.load(Ordering::Relaxed);
        (written > bytes_max).then(|| written / writers.max(1))
    }

    /// How many bytes it may have.
    pub fn budget(&self) -> usize {
        self.memory.budget
    }

    /// The memory that the blocks take, in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.used()
    }

    /// Evicts the blocks of this snapshot from now on.
    pub fn attach(&self, snapshot: &Arc<TreeSnapshot>) {
        *self.snapshot.lock() = Arc::downgrade(snapshot);
    }

    /// Adds a block to the clock, and evicts others if there is no memory left.
    pub(super) fn admit(&self, space: SpaceId, block: &Arc<Block>) {
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
        if self.memory.is_over_budget() {
            self.evict(BATCHES_OF_A_READER);
        }
    }

    /// Evicts blocks until the others fit, or so many batches of them.
    fn evict(&self, batches_max: usize) {
        // One at a time: others would choose as many as this one has to.
        let Some(_evicting) = self.evicting.try_lock() else {
            return;
        };
        let Some(snapshot) = self.snapshot.lock().upgrade() else {
            return;
        };
        // Every block gets one more round at most.
        let mut rounds = 2 * self.clock.lock().len();
        for _ in 0..batches_max {
            if !self.memory.is_over_budget() || rounds == 0 {
                break;
            }
            let chosen = self.next_to_evict(&mut rounds);
            for of_space in chosen.chunk_by(|(a, _), (b, _)| a == b) {
                self.evict_of_space(&snapshot, of_space);
            }
        }
    }

    /// Some blocks that were not read since the hand last passed, by space.
    fn next_to_evict(&self, rounds: &mut usize) -> Vec<(SpaceId, Arc<Block>)> {
        let mut clock = self.clock.lock();
        let count = (clock.len() / 16).clamp(1, EVICTED_AT_ONCE);
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count && *rounds > 0 {
            *rounds -= 1;
            let Some((space, weak)) = clock.pop_front() else {
                *rounds = 0;
                break;
            };
            let Some(block) = weak.upgrade() else {
                continue;
            };
            match block.take_referenced() {
                true => clock.push_back((space, weak)),
                false => chosen.push((space, block)),
            }
        }
        drop(clock);
        chosen.sort_unstable_by_key(|(space, _)| *space);
        chosen
    }

    /// Evicts blocks of one space.
    fn evict_of_space(&self, snapshot: &TreeSnapshot, blocks: &[(SpaceId, Arc<Block>)]) {
        let Some((space, _)) = blocks.first() else {
            return;
        };
        let evicted = snapshot.with_blocks(*space, |of_space| {
            of_space.evict(blocks.iter().map(|(_, block)| block))
        });
        // Those of a later snapshot may be among them.
        let is_complete = matches!(evicted, Some(Eviction::Complete) | None);
        if is_complete && !snapshot.is_retired() {
            blocks.iter().for_each(|(_, block)| block.mark_evicted());
        } else {
            let again = blocks.iter();
            let again = again.map(|(space, block)| (*space, Arc::downgrade(block)));
            self.clock.lock().extend(again);
        }
    }
}

/// Memory of a cache that a transaction's writes take: blocks are evicted for it, all but an eighth of what
/// there may be. Given back when it is dropped.
pub(crate) struct CacheLoan {
    cache: Arc<BlockCache>,
    bytes: AtomicUsize,
}

impl CacheLoan {
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Has the loan be so many bytes by now. It never gets smaller.
    pub fn grow_to(&self, bytes: usize) {
        let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        if before < bytes {
            let memory = &self.cache.memory;
            memory.lent.fetch_add(bytes - before, Ordering::Relaxed);
            memory.written.fetch_add(bytes - before, Ordering::Relaxed);
            let is_new = usize::from(before == 0);
            memory.writers.fetch_add(is_new, Ordering::Relaxed);
            if self.cache.memory.is_over_budget() {
                self.cache.evict(usize::MAX);
            }
        }
    }
}

impl Drop for CacheLoan {
    fn drop(&mut self) {
        let (memory, bytes) = (&self.cache.memory, *self.bytes.get_mut());
        memory.lent.fetch_sub(bytes, Ordering::Relaxed);
        memory.written.fetch_sub(bytes, Ordering::Relaxed);
        let was_one = usize::from(bytes > 0);
        memory.writers.fetch_sub(was_one, Ordering::Relaxed);
    }
}

/// From where a block was removed.
pub(super) enum Eviction {
    /// From every snapshot that can have it.
    Complete,
    /// From this snapshot; a later one may have it, too.
    Partial,
}

#[cfg(test)]
mod tests {
    use crate::{Options, Store};

    #[test]
    fn a_cache_that_nobody_evicts_from_takes_little_more_than_it_may() {
        const ROWS: u32 = 40_000;
        let mut options = Options::memory();
        options.cache_bytes = 4 << 20;
        let store = Store::open(&options).unwrap();
        let space = store.allocate_space();
        let mut work = store.begin();
        work.create_space(space);
        for number in 0..ROWS {
            work.put(space, &number.to_be_bytes(), &[1; 200]);
        }
        work.commit().unwrap().wait().unwrap();
        store.checkpoint().unwrap();

        let epoch = store.shared().epoch.load_full();
        let cache = epoch.tree.cache();
        let read = |number: u32| {
            let found = store.snapshot().get(space, &number.to_be_bytes(), |_| ());
            assert!(found.unwrap().is_some());
        };
        // Whoever evicts gets no core.
        let evicting = cache.evicting.lock();
        (0..ROWS).step_by(7).for_each(read);
        let budget = cache.budget();
        assert!(cache.bytes() > budget, "the rows are more than it holds");
        assert!(cache.bytes() < budget / 8 * 9, "{}", cache.bytes());
        drop(evicting);
        // It fits again soon after.
        (0..ROWS).step_by(70).for_each(read);
        assert!(cache.bytes() <= budget, "{}", cache.bytes());
    }
}
