//! Branches of the tree's spaces, kept in memory: the way to a leaf takes no read of the disk.
//!
//! A page's number is used again after a checkpoint, for something else. So a page is kept with the
//! checksum that the page above has of it, and is found only under the same one: all snapshots share
//! the cache, and nothing has to be removed from it.
//!
//! What branches take is lent by the blocks' memory, up to half of it: a branch that is missing costs a
//! read of each of the hundred leaves below it, a block the read of one. Only branches that were read count,
//! a hundredth of the leaves that are in use.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use parking_lot::RwLock;

use crate::block::BlockMemory;
use crate::page_checksums::PAGE_BYTES;
use crate::pages::PageLink;

const SHARDS_MAX: usize = 16;
/// A shard has room for at least so much; a small cache has fewer shards.
const SHARD_BYTES_MIN: usize = 2 * (PAGE_BYTES + OVERHEAD_BYTES);
/// What a page costs beside its bytes: its places in the table and in the clock.
const OVERHEAD_BYTES: usize = 96;

pub(crate) struct BranchCache {
    shards: Box<[RwLock<Shard>]>,
    shard_bytes_max: usize,
    memory: Arc<BlockMemory>,
}

#[derive(Default)]
struct Shard {
    pages: HashMap<u64, Kept>,
    /// Pages in the order in which CLOCK's hand passes them.
    clock: VecDeque<u64>,
    bytes: usize,
}

struct Kept {
    checksum: u128,
    bytes: Arc<[u8]>,
    /// Since the hand last passed.
    was_used: AtomicBool,
}

impl BranchCache {
    pub fn new(memory: Arc<BlockMemory>) -> BranchCache {
        let bytes_max = memory.budget / 2;
        let shards = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        BranchCache {
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            shard_bytes_max: bytes_max / shards,
            memory,
        }
    }

    fn shard(&self, link: PageLink) -> &RwLock<Shard> {
        // A page's lowest bits are its place in its region.
        &self.shards[link.page.0 as usize % self.shards.len()]
    }

    /// A page that was read under the same checksum.
    pub fn get(&self, link: PageLink) -> Option<Arc<[u8]>> {
        let shard = self.shard(link).read();
        let kept = shard.pages.get(&link.page.0)?;
        if kept.checksum != link.checksum {
            return None;
        }
        // Only the first one changes the line that others read.
        if !kept.was_used.load(Ordering::Relaxed) {
            kept.was_used.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(&kept.bytes))
    }

    /// Keeps a page. Others go if there is no room left.
    pub fn admit(&self, link: PageLink, bytes: Arc<[u8]>) {
        let added = bytes.len() + OVERHEAD_BYTES;
        if added > self.shard_bytes_max {
            return;
        }
        let kept = Kept {
            checksum: link.checksum,
            bytes,
            was_used: AtomicBool::new(false),
        };
        let mut removed = 0;
        // First, so that nobody who removes it has given back what wasn't lent yet.
        self.memory.lent.fetch_add(added, Ordering::Relaxed);
        let mut guard = self.shard(link).write();
        let shard = &mut *guard;
        match shard.pages.entry(link.page.0) {
            Entry::Occupied(mut older) => {
                removed += older.insert(kept).bytes.len() + OVERHEAD_BYTES
            }
            Entry::Vacant(free) => {
                free.insert(kept);
                shard.clock.push_back(link.page.0);
            }
        }
        while shard.bytes + added - removed > self.shard_bytes_max
            && let Some(page) = shard.clock.pop_front()
        {
            let stays = shard.pages.get_mut(&page);
            if stays.is_some_and(|kept| std::mem::take(kept.was_used.get_mut())) {
                shard.clock.push_back(page);
            } else if let Some(gone) = shard.pages.remove(&page) {
                removed += gone.bytes.len() + OVERHEAD_BYTES;
            }
        }
        shard.bytes = shard.bytes + added - removed;
        drop(guard);
        self.memory.lent.fetch_sub(removed, Ordering::Relaxed);
    }
}
