//! Blocks that were read from the tree and wait to be added to the index, some at once.
//!
//! While the cache is full, nearly every block that is read is the only one of its part of the index,
//! and is gone before it has neighbours. To add each by itself is to copy the nodes on the path to it, and
//! to tell all threads of another root; with some at once, the upper nodes are copied once for all, and
//! the root is replaced once. Who looks for a block that waits finds it here, after the index.
//!
//! A block that waits can't be evicted, and waits for as long as its space is not read. So all spaces
//! together have a share of the cache for them; beyond it the index takes blocks one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::index::{IndexNode, insert_block};
use crate::block::{Block, WaitingBlock};

/// So many blocks are added to the index at once.
const ADDED_AT_ONCE: usize = 32;

#[derive(Default)]
pub(super) struct WaitingBlocks {
    waiting: Mutex<Waiting>,
    /// How many there are: without any there is nothing to lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    /// In the order in which they came.
    blocks: Vec<WaitingBlock>,
    /// The same, to be found by key; nobody else has a node of it.
    index: Arc<IndexNode>,
    /// None may be added any more.
    is_closed: bool,
}

impl Waiting {
    /// Adds a block, unless it overlaps another.
    fn add(&mut self, block: &Arc<Block>) {
        if !self.index.overlaps(block) {
            insert_block(&mut self.index, Arc::clone(block));
            self.blocks.push(WaitingBlock::new(Arc::clone(block)));
        }
    }
}

impl WaitingBlocks {
    /// The block that `find` finds among those that wait.
    pub fn find(&self, find: impl FnOnce(&IndexNode) -> Option<&Arc<Block>>) -> Option<Arc<Block>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        find(&self.waiting.lock().index).map(Arc::clone)
    }

    /// Adds a block, unless it overlaps another. True if it is time to have the index take them.
    pub fn add(&self, block: &Arc<Block>) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return false;
        }
        waiting.add(block);
        let count = waiting.blocks.len();
        self.count.store(count, Ordering::Relaxed);
        count >= ADDED_AT_ONCE
    }

    /// All of them. They wait until they are [removed](Self::remove_first), when they can be found in the
    /// index.
    pub fn all(&self) -> Vec<Arc<Block>> {
        let waiting = self.waiting.lock();
        let blocks = waiting.blocks.iter();
        blocks.map(|waiting| Arc::clone(waiting.block())).collect()
    }

    /// Removes those that have waited for longest.
    pub fn remove_first(&self, count: usize) {
        let mut waiting = self.waiting.lock();
        let older = std::mem::take(&mut waiting.blocks);
        waiting.index = Arc::default();
        for block in older.iter().skip(count) {
            waiting.add(block.block());
        }
        self.count.store(waiting.blocks.len(), Ordering::Relaxed);
        drop(waiting);
    }

    /// Removes all; `is_closed`: no more may be added.
    pub fn clear(&self, is_closed: bool) {
        let mut waiting = self.waiting.lock();
        *waiting = Waiting {
            is_closed,
            ..Waiting::default()
        };
        self.count.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockMemory, build_block};

    fn block(memory: &Arc<BlockMemory>, low: &str, high: &str) -> Arc<Block> {
        let rows = [(low.as_bytes(), &b"value"[..])];
        let high = Some(high.as_bytes());
        Arc::new(build_block(memory, low.as_bytes(), high, &rows))
    }

    fn found(waiting: &WaitingBlocks, key: &str) -> Option<Arc<Block>> {
        waiting.find(|index| index.covering(key.as_bytes()))
    }

    #[test]
    fn blocks_are_found_until_the_index_has_them() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        let waiting = WaitingBlocks::default();
        assert!(found(&waiting, "c").is_none());
        let (one, two) = (block(&memory, "c", "e"), block(&memory, "a", "b"));
        assert!(!waiting.add(&one));
        assert!(!waiting.add(&two));
        assert!(!waiting.add(&block(&memory, "d", "f")), "it overlaps");
        assert!(found(&waiting, "d").is_some_and(|found| Arc::ptr_eq(&found, &one)));
        assert!(found(&waiting, "a").is_some_and(|found| Arc::ptr_eq(&found, &two)));
        assert!(found(&waiting, "b").is_none() && found(&waiting, "e").is_none());
        let all = waiting.all();
        assert!(Arc::ptr_eq(&all[0], &one) && Arc::ptr_eq(&all[1], &two) && all.len() == 2);

        waiting.remove_first(1);
        assert!(found(&waiting, "d").is_none() && found(&waiting, "a").is_some());
        waiting.add(&block(&memory, "d", "f"));
        assert!(found(&waiting, "e").is_some());
        waiting.clear(false);
        assert!(found(&waiting, "a").is_none() && waiting.all().is_empty());
        waiting.add(&two);
        assert!(found(&waiting, "a").is_some());
        waiting.clear(true);
        waiting.add(&one);
        assert!(found(&waiting, "c").is_none());
    }

    #[test]
    fn all_spaces_have_a_share_of_the_cache_for_blocks_that_wait() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        let spaces: Vec<WaitingBlocks> = (0..1000)
            .map(|_| WaitingBlocks::default())
            .take_while(|_| !memory.has_many_waiting())
            .inspect(|space| {
                space.add(&block(&memory, "a", "b"));
            })
            .collect();
        let size = block(&memory, "a", "b").size();
        assert!((1 << 16..(1 << 16) + size).contains(&(spaces.len() * size - 1)));
        spaces[0].remove_first(1);
        assert!(!memory.has_many_waiting());
        spaces[0].add(&block(&memory, "a", "b"));
        assert!(memory.has_many_waiting());
        drop(spaces);
        assert!(!memory.has_many_waiting() && memory.used() == 0);
    }

    #[test]
    fn with_enough_of_them_it_is_time_for_the_index_to_take_them() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        let waiting = WaitingBlocks::default();
        let keys: Vec<String> = (0..=ADDED_AT_ONCE).map(|n| format!("{n:04}")).collect();
        let are_due: Vec<bool> = keys
            .windows(2)
            .rev()
            .map(|keys| waiting.add(&block(&memory, &keys[0], &keys[1])))
            .collect();
        assert_eq!(are_due.iter().filter(|is_due| **is_due).count(), 1);
        assert_eq!(are_due.last(), Some(&true));
        for key in &keys[..ADDED_AT_ONCE] {
            assert!(found(&waiting, key).is_some(), "{key}");
        }
    }
}
