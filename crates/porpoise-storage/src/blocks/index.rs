//! The index of a space's blocks: a B-tree of immutable nodes, from low keys to blocks.

use std::sync::Arc;

use crate::block::Block;
use crate::prefix::prefix;

/// Children of a node at most. With more, the copies of nodes that each new block takes cost more:
/// every child's count of owners is changed, which lies somewhere else.
const FANOUT: usize = 32;

/// A node of the index. Nodes that readers can see are never changed.
#[derive(Clone)]
pub(super) struct IndexNode {
    /// Of each child's lowest key.
    prefixes: Vec<u64>,
    children: Children,
}

#[derive(Clone)]
enum Children {
    Blocks(Vec<BlockSlot>),
    Nodes(Vec<Arc<IndexNode>>),
}

/// A block in the index, with a copy of the address of its rows: a look-up prefetches the block and
/// its rows at the same time.
#[derive(Clone)]
struct BlockSlot {
    block: Arc<Block>,
    /// The address of its rows.
    rows_at: usize,
}

impl BlockSlot {
    fn new(block: Arc<Block>) -> BlockSlot {
        let rows_at = block.rows_at();
        BlockSlot { block, rows_at }
    }

    /// The block, whose keys are read next.
    #[inline]
    fn prefetch_keys(&self) -> &Arc<Block> {
        Block::prefetch_keys(self.rows_at);
        &self.block
    }
}

impl Default for IndexNode {
    fn default() -> IndexNode {
        IndexNode {
            prefixes: Vec::new(),
            children: Children::Blocks(Vec::new()),
        }
    }
}

impl IndexNode {
    #[inline]
    fn low_of(&self, child: usize) -> &[u8] {
        match &self.children {
            Children::Blocks(blocks) => blocks[child].block.low(),
            Children::Nodes(nodes) => nodes[child].low_of(0),
        }
    }

    /// How many children begin at or before the key.
    #[inline]
    fn upper_bound(&self, key: &[u8]) -> usize {
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
    #[inline]
    pub fn at_or_before(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let child = self.upper_bound(key).checked_sub(1)?;
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child).map(BlockSlot::prefetch_keys),
            Children::Nodes(nodes) => nodes.get(child)?.at_or_before(key),
        }
    }

    /// The block that has the key's row, if there is one.
    #[inline]
    pub fn covering(&self, key: &[u8]) -> Option<&Arc<Block>> {
        self.at_or_before(key)
            .filter(|block| block.is_below_high(key))
    }

    /// Whether a block has keys that one of these covers.
    pub fn overlaps(&self, block: &Block) -> bool {
        let (before, after) = self.around(block.low());
        before.is_some_and(|before| before.is_below_high(block.low()))
            || after.is_some_and(|after| block.is_below_high(after.low()))
    }

    /// The last block that begins at or before the key, and the first that begins after it.
    pub fn around(&self, key: &[u8]) -> (Option<&Arc<Block>>, Option<&Arc<Block>>) {
        let next = self.upper_bound(key);
        match (&self.children, next.checked_sub(1)) {
            (_, None) => (None, self.first()),
            (Children::Blocks(blocks), Some(at)) => (
                Some(&blocks[at].block),
                blocks.get(next).map(|slot| &slot.block),
            ),
            (Children::Nodes(nodes), Some(at)) => {
                let (at, after) = nodes[at].around(key);
                (at, after.or_else(|| nodes.get(next)?.first()))
            }
        }
    }

    /// The first block that begins after the key.
    pub fn after(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let child = self.upper_bound(key);
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child).map(|slot| &slot.block),
            Children::Nodes(nodes) => child
                .checked_sub(1)
                .and_then(|before| nodes[before].after(key))
                .or_else(|| nodes.get(child)?.first()),
        }
    }

    fn first(&self) -> Option<&Arc<Block>> {
        match &self.children {
            Children::Blocks(blocks) => blocks.first().map(|slot| &slot.block),
            Children::Nodes(nodes) => nodes.first()?.first(),
        }
    }

    /// The last block that begins before the key.
    pub fn before(&self, key: &[u8]) -> Option<&Arc<Block>> {
        let found = self.at_or_before(key)?;
        if found.low() < key {
            return Some(found);
        }
        let child = self.upper_bound(key) - 1;
        match &self.children {
            Children::Blocks(blocks) => blocks.get(child.checked_sub(1)?).map(|slot| &slot.block),
            Children::Nodes(nodes) => nodes[child]
                .before(key)
                .or_else(|| nodes.get(child.checked_sub(1)?)?.last()),
        }
    }

    pub fn last(&self) -> Option<&Arc<Block>> {
        match &self.children {
            Children::Blocks(blocks) => blocks.last().map(|slot| &slot.block),
            Children::Nodes(nodes) => nodes.last()?.last(),
        }
    }

    fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Replaces the block that begins at the same key, which must be there.
    pub fn replace(&mut self, block: Arc<Block>) {
        let Some(child) = self.upper_bound(block.low()).checked_sub(1) else {
            return;
        };
        match &mut self.children {
            Children::Blocks(blocks) => blocks[child] = BlockSlot::new(block),
            Children::Nodes(nodes) => Arc::make_mut(&mut nodes[child]).replace(block),
        }
    }

    /// Adds a block that overlaps no other. Gives the right part if the node had to be split.
    fn insert(&mut self, block: Arc<Block>) -> Option<Arc<IndexNode>> {
        let at = self.upper_bound(block.low());
        match &mut self.children {
            Children::Blocks(blocks) => {
                self.prefixes.insert(at, prefix(block.low()));
                blocks.insert(at, BlockSlot::new(block));
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

    fn split(&mut self) -> IndexNode {
        // Rows are read in ascending order more often than not: the next block goes to the right
        // part.
        let at = self.len() * 3 / 4;
        IndexNode {
            prefixes: self.prefixes.split_off(at),
            children: match &mut self.children {
                Children::Blocks(blocks) => Children::Blocks(blocks.split_off(at)),
                Children::Nodes(nodes) => Children::Nodes(nodes.split_off(at)),
            },
        }
    }

    /// Removes the block that begins at `low`, which must be there.
    fn remove(&mut self, low: &[u8]) {
        let Some(child) = self.upper_bound(low).checked_sub(1) else {
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

/// Adds a block that overlaps no other, copying the nodes on the path to it.
pub(super) fn insert_block(root: &mut Arc<IndexNode>, block: Arc<Block>) {
    let Some(right) = Arc::make_mut(root).insert(block) else {
        return;
    };
    let left = std::mem::take(root);
    *root = Arc::new(IndexNode {
        prefixes: vec![prefix(left.low_of(0)), prefix(right.low_of(0))],
        children: Children::Nodes(vec![left, right]),
    });
}

/// Removes the block that begins at `low`, copying the nodes on the path to it.
pub(super) fn remove_block(root: &mut Arc<IndexNode>, low: &[u8]) {
    Arc::make_mut(root).remove(low);
    if root.len() == 0 {
        *root = Arc::default();
    }
}
