//! One block: neighbouring rows in one buffer, with the interval of keys that it covers.
//!
//! ```text
//! buffer   │ offsets │ low │ high │ key key key … │ value value value … │ unused │
//!
//! offsets  where each key begins, where each value begins, where the last value ends: two bytes each,
//!          four in a block of more than 64 KiB
//! ```
//!
//! Buffers come in a few sizes, those that the allocator cuts its own pages into with little left
//! over. A freed buffer goes to the next block of its size, whichever thread makes it, so that
//! blocks which replace others take no additional memory. Each block is counted by [`BlockMemory`]
//! for as long as anybody holds it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::prefetch::prefetch;
use crate::prefix::Probe;

/// The sizes of buffers that are kept for the next block.
const BUFFER_BYTES: [usize; 5] = [3584, 4096, 5120, 6144, BUFFER_BYTES_MAX];

/// The largest buffer of a block of small rows. With larger ones a range has fewer blocks to find
/// (with half of this, reading a hundred rows took a third longer), but more is read for a row that
/// no block has.
pub(crate) const BUFFER_BYTES_MAX: usize = 7168;

/// How many free buffers of a size are kept at most.
const FREE_BUFFERS_MAX: usize = 32;

/// Of the memory that blocks may take, one part of so many is for those that wait for the index.
const WAITING_SHARE: usize = 16;

/// Blocks are kept until they have taken one part of so many more than they may.
const OVERDRAFT_SHARE: usize = 16;

/// What a block costs beside its buffer: itself, its slot in the index, and its place in the clock.
const BLOCK_OVERHEAD_BYTES: usize = size_of::<Block>() + 80;

/// Offsets and keys of some forty rows.
const PREFETCHED_KEYS_BYTES: usize = 384;
/// Of longer values the processor's own prefetcher fetches the rest.
const PREFETCHED_VALUE_BYTES: usize = 256;

/// A block is rewritten as so many blocks at most; one that would become more was filled by a load,
/// not by reads.
const REWRITTEN_BLOCKS_MAX: usize = 4;

// ── Memory ───────────────────────────────────────────────────────────────────────────────────

/// Counts and recycles the memory of all blocks of a store.
pub(crate) struct BlockMemory {
    /// How many bytes blocks may take before some are evicted.
    pub budget: usize,
    /// How many of these bytes something else takes that the cache lends them to.
    pub lent: AtomicUsize,
    /// How many of the lent bytes are for transactions' writes.
    pub written: AtomicUsize,
    /// For how many that have any.
    pub writers: AtomicUsize,
    used: AtomicUsize,
    /// How many of the used bytes are those of blocks that were evicted and are still held: by who
    /// reads from one, or from an older index, in which a block that waits for the disk has all.
    evicted: AtomicUsize,
    /// How many of the used bytes are those of blocks that wait for the index: no clock has them, so
    /// they can't be evicted.
    waiting: AtomicUsize,
    free: [Mutex<Vec<Box<[u8]>>>; BUFFER_BYTES.len()],
}

impl BlockMemory {
    pub fn new(budget: usize) -> BlockMemory {
        BlockMemory {
            budget,
            lent: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            writers: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            evicted: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            free: Default::default(),
        }
    }

    /// The bytes of all blocks that anybody holds.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes of blocks that were not evicted.
    fn live(&self) -> usize {
        let evicted = self.evicted.load(Ordering::Relaxed);
        self.used().saturating_sub(evicted)
    }

    /// How many bytes blocks may take.
    fn room(&self) -> usize {
        // They keep an eighth.
        let lent = self.lent.load(Ordering::Relaxed);
        self.budget - lent.min(self.budget / 8 * 7)
    }

    pub fn is_over_budget(&self) -> bool {
        self.live() > self.room()
    }

    /// Whether others will soon have to go for a block that is added.
    pub fn is_nearly_used(&self) -> bool {
        self.live() > self.room() / 8 * 7
    }

    /// Whether blocks have taken so much more than they may that no more should be kept: eviction
    /// lags behind, as whoever is at it waits for a core.
    pub fn is_far_over_budget(&self) -> bool {
        let room = self.room();
        self.live() > room + room / OVERDRAFT_SHARE
    }

    /// Whether so many bytes wait for the index that no more should.
    pub fn has_many_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.room() / WAITING_SHARE
    }

    /// A buffer of at least this length. One that is small or large for a block has exactly this
    /// length.
    fn take(&self, len: usize) -> Box<[u8]> {
        let is_small = len <= BUFFER_BYTES[0] / 2;
        let size = BUFFER_BYTES.iter().position(|size| len <= *size);
        let buffer = match size.filter(|_| !is_small) {
            Some(size) => {
                // Whoever has the lock may be a thread that was stopped until a core is idle.
                let kept = self.free[size].try_lock().and_then(|mut free| free.pop());
                kept.unwrap_or_else(|| vec![0; BUFFER_BYTES[size]].into())
            }
            None => vec![0; len].into(),
        };
        self.used
            .fetch_add(buffer.len() + BLOCK_OVERHEAD_BYTES, Ordering::Relaxed);
        buffer
    }

    fn give_back(&self, buffer: Box<[u8]>) {
        self.used
            .fetch_sub(buffer.len() + BLOCK_OVERHEAD_BYTES, Ordering::Relaxed);
        if let Some(size) = BUFFER_BYTES.iter().position(|size| buffer.len() == *size) {
            let free = self.free[size].try_lock();
            if let Some(mut free) = free.filter(|free| free.len() < FREE_BUFFERS_MAX) {
                free.push(buffer);
            }
        }
    }
}

/// A block that waits for the index, counted by its memory.
pub(crate) struct WaitingBlock(Arc<Block>);

impl WaitingBlock {
    pub fn new(block: Arc<Block>) -> WaitingBlock {
        let waiting = &block.memory.waiting;
        waiting.fetch_add(block.size(), Ordering::Relaxed);
        WaitingBlock(block)
    }

    pub fn block(&self) -> &Arc<Block> {
        &self.0
    }
}

impl Drop for WaitingBlock {
    fn drop(&mut self) {
        let waiting = &self.0.memory.waiting;
        waiting.fetch_sub(self.0.size(), Ordering::Relaxed);
    }
}

// ── The block ────────────────────────────────────────────────────────────────────────────────

/// Neighbouring rows, in order.
pub(crate) struct Block {
    buffer: Box<[u8]>,
    /// How many rows.
    len: u32,
    /// Where the low key ends, and where the high one ends; the low one begins behind the offsets.
    low_end: u32,
    high_end: u32,
    /// Whether it covers all keys from `low` on.
    is_open: bool,
    is_wide: bool,
    /// The reference bit of CLOCK: read since the hand last passed.
    is_referenced: AtomicBool,
    is_evicted: AtomicBool,
    memory: Arc<BlockMemory>,
}

impl Drop for Block {
    fn drop(&mut self) {
        if *self.is_evicted.get_mut() {
            let evicted = &self.memory.evicted;
            evicted.fetch_sub(self.size(), Ordering::Relaxed);
        }
        self.memory.give_back(std::mem::take(&mut self.buffer));
    }
}

impl Block {
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn low(&self) -> &[u8] {
        let begin = offsets_bytes(self.len(), self.is_wide);
        &self.buffer[begin..self.low_end as usize]
    }

    /// The first key that it doesn't cover; `None` if it covers all keys from `low` on.
    pub fn high(&self) -> Option<&[u8]> {
        (!self.is_open).then(|| &self.buffer[self.low_end as usize..self.high_end as usize])
    }

    /// Where its offsets, keys and values begin: for [`prefetch_keys`](Self::prefetch_keys).
    pub fn rows_at(&self) -> usize {
        self.buffer.as_ptr().addr()
    }

    /// Prefetches what a search reads first: offsets and keys.
    #[inline]
    pub fn prefetch_keys(rows_at: usize) {
        prefetch(std::ptr::without_provenance(rows_at), PREFETCHED_KEYS_BYTES);
    }

    /// Prefetches the value of a row, if there is such a row.
    #[inline]
    pub fn prefetch_value(&self, at: usize) {
        if at < self.len() {
            let value = self.value(at);
            prefetch(value.as_ptr(), value.len().min(PREFETCHED_VALUE_BYTES));
        }
    }

    /// Where a key begins and ends; numbers from `len` on are the values'.
    #[inline]
    fn extent(&self, number: usize) -> Range<usize> {
        if self.is_wide {
            let at = 4 * number;
            let bytes = &self.buffer[at..at + 8];
            let begin = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let end = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            begin as usize..end as usize
        } else {
            let at = 2 * number;
            let bytes = &self.buffer[at..at + 4];
            let begin = u16::from_le_bytes([bytes[0], bytes[1]]);
            let end = u16::from_le_bytes([bytes[2], bytes[3]]);
            usize::from(begin)..usize::from(end)
        }
    }

    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        &self.buffer[self.extent(at)]
    }

    #[inline]
    pub fn value(&self, at: usize) -> &[u8] {
        &self.buffer[self.extent(self.len() + at)]
    }

    #[inline]
    pub fn row(&self, at: usize) -> (&[u8], &[u8]) {
        (self.key(at), self.value(at))
    }

    /// The first row whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        let probe = Probe::new(key);
        self.partition(|found| probe.compare(found).is_lt())
    }

    /// The first row whose key is above `key`.
    pub fn upper_bound(&self, key: &[u8]) -> usize {
        let probe = Probe::new(key);
        self.partition(|found| probe.compare(found).is_le())
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

    pub fn is_below_high(&self, key: &[u8]) -> bool {
        self.high().is_none_or(|high| key < high)
    }

    pub fn size(&self) -> usize {
        self.buffer.len() + BLOCK_OVERHEAD_BYTES
    }

    /// Notes that it is in no index any more: its memory counts as free, though somebody who holds it
    /// may have to let it go first.
    pub fn mark_evicted(&self) {
        if !self.is_evicted.swap(true, Ordering::Relaxed) {
            let evicted = &self.memory.evicted;
            evicted.fetch_add(self.size(), Ordering::Relaxed);
        }
    }

    pub fn is_referenced(&self) -> bool {
        self.is_referenced.load(Ordering::Relaxed)
    }

    pub fn mark_referenced(&self) {
        // A store by every reader would make the cores contend for the cache line.
        if !self.is_referenced() {
            self.is_referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was read since this was last called.
    pub fn take_referenced(&self) -> bool {
        self.is_referenced.swap(false, Ordering::Relaxed)
    }

    /// The blocks that replace this one, with rows of its interval replaced, added or removed. None
    /// if they would be many.
    pub fn rewrite<'w>(
        &self,
        changes: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> Vec<Block> {
        let mut rows: Vec<(&[u8], &[u8])> = Vec::with_capacity(self.len() + 8);
        let mut at = 0;
        let mut is_appended = true;
        for (key, value) in changes {
            while at < self.len() && self.key(at) < key {
                rows.push(self.row(at));
                at += 1;
            }
            if at < self.len() {
                is_appended = false;
                at += usize::from(self.key(at) == key);
            }
            rows.extend(value.map(|value| (key, value)));
        }
        rows.extend((at..self.len()).map(|at| self.row(at)));
        let mut whole = Fill::new(self.low());
        rows.iter().for_each(|(key, value)| whole.add(key, value));
        // Rows at the end are followed by more, as a rule; elsewhere each block keeps room for
        // those to come.
        let bytes = whole.bytes() + self.high().map_or(0, <[u8]>::len);
        let target = match bytes.div_ceil(BUFFER_BYTES_MAX) {
            0 | 1 => usize::MAX,
            _ if is_appended => BUFFER_BYTES_MAX,
            blocks => (bytes / blocks + bytes / 16).min(BUFFER_BYTES_MAX),
        };
        let mut blocks = Vec::new();
        let mut rest = &rows[..];
        let mut low = self.low();
        loop {
            let mut fill = Fill::new(low);
            let fits = |(key, value): &&(&[u8], &[u8])| fill.admits(key, value, target);
            let taken = rest.iter().take_while(fits).count();
            let (these, others) = rest.split_at(taken);
            let high = others.first().map(|(key, _)| *key);
            let block = build_block(&self.memory, low, high.or(self.high()), these);
            // They are read as often as the block that they come from.
            block.mark_referenced();
            blocks.push(block);
            let Some(high) = high else { return blocks };
            if blocks.len() == REWRITTEN_BLOCKS_MAX {
                return Vec::new();
            }
            (low, rest) = (high, others);
        }
    }
}

fn offsets_bytes(len: usize, is_wide: bool) -> usize {
    (2 * len + 1) * if is_wide { 4 } else { 2 }
}

/// How full a buffer gets as rows are added.
#[derive(Clone, Copy)]
pub(crate) struct Fill {
    len: usize,
    bytes: usize,
}

impl Fill {
    pub fn new(low: &[u8]) -> Fill {
        Fill {
            len: 0,
            bytes: low.len(),
        }
    }

    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.len += 1;
        self.bytes += key.len() + value.len();
    }

    fn bytes(&self) -> usize {
        self.bytes + offsets_bytes(self.len, false)
    }

    /// Adds the row if it is the first, or if the rows fit into `bytes_max` bytes with it. The next
    /// row's key, which may be needed as the high key, is assumed to be as long.
    pub fn admits(&mut self, key: &[u8], value: &[u8], bytes_max: usize) -> bool {
        let mut with = *self;
        with.add(key, value);
        let fits = self.len == 0 || with.bytes() + key.len() <= bytes_max;
        if fits {
            *self = with;
        }
        fits
    }
}

/// What is behind a block's offsets, while the block is made.
struct Body<'b> {
    /// Of what is not yet put in.
    bytes: &'b mut [u8],
    /// Where in the buffer they begin.
    end: usize,
}

impl Body<'_> {
    /// Appends these bytes; tells where they end.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let (here, rest) = std::mem::take(&mut self.bytes).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        self.bytes = rest;
        self.end += bytes.len();
        self.end
    }

    /// Appends the keys, then the values, and writes where each begins, and the last one ends.
    fn put_rows<const N: usize>(
        &mut self,
        rows: &[(&[u8], &[u8])],
        offsets: &mut [[u8; N]],
        encode: impl Fn(usize) -> [u8; N],
    ) {
        offsets[0] = encode(self.end);
        let (of_keys, of_values) = offsets[1..].split_at_mut(rows.len());
        for ((key, _), offset) in rows.iter().zip(of_keys) {
            *offset = encode(self.put(key));
        }
        for ((_, value), offset) in rows.iter().zip(of_values) {
            *offset = encode(self.put(value));
        }
    }
}

/// Makes a block of rows in order, which covers the keys from `low` up to but without `high`.
pub(crate) fn build_block(
    memory: &Arc<BlockMemory>,
    low: &[u8],
    high: Option<&[u8]>,
    rows: &[(&[u8], &[u8])],
) -> Block {
    let len = rows.len();
    let rows_len: usize = rows
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let body = low.len() + high.map_or(0, <[u8]>::len) + rows_len;
    let is_wide = offsets_bytes(len, false) + body > usize::from(u16::MAX);
    let begin = offsets_bytes(len, is_wide);
    let mut buffer = memory.take(begin + body);
    let (offsets, bytes) = buffer.split_at_mut(begin);
    let mut body = Body { bytes, end: begin };
    let low_end = body.put(low);
    let high_end = high.map_or(low_end, |high| body.put(high));
    if is_wide {
        let (offsets, _) = offsets.as_chunks_mut();
        body.put_rows(rows, offsets, |end| (end as u32).to_le_bytes());
    } else {
        let (offsets, _) = offsets.as_chunks_mut();
        body.put_rows(rows, offsets, |end| (end as u16).to_le_bytes());
    }
    Block {
        buffer,
        len: len as u32,
        low_end: low_end as u32,
        high_end: high_end as u32,
        is_open: high.is_none(),
        is_wide,
        is_referenced: AtomicBool::new(false),
        is_evicted: AtomicBool::new(false),
        memory: Arc::clone(memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(memory: &Arc<BlockMemory>, rows: &[(Vec<u8>, Vec<u8>)]) -> Block {
        let rows: Vec<_> = rows
            .iter()
            .map(|(key, value)| (&key[..], &value[..]))
            .collect();
        build_block(memory, b"a", Some(b"z"), &rows)
    }

    fn rows_of(block: &Block) -> Vec<(Vec<u8>, Vec<u8>)> {
        let row = |at| (block.key(at).to_vec(), block.value(at).to_vec());
        (0..block.len()).map(row).collect()
    }

    #[test]
    fn rows_lie_as_they_were_put_in_small_and_wide_blocks() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        for value_len in [0, 3, 500, 40_000] {
            let rows: Vec<_> = (0..20u8)
                .map(|n| (vec![b'b', n], vec![n; value_len]))
                .collect();
            let block = block(&memory, &rows);
            assert_eq!(rows_of(&block), rows);
            assert_eq!((block.low(), block.high()), (&b"a"[..], Some(&b"z"[..])));
            assert_eq!(block.get(&[b'b', 7]), Some(&rows[7].1[..]));
            assert_eq!(block.get(b"b"), None);
            assert_eq!(block.lower_bound(b"b"), 0);
            assert_eq!(block.upper_bound(&[b'b', 19]), 20);
        }
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn rewriting_cuts_what_grew_and_keeps_the_interval_whole() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        let rows: Vec<_> = (0..30u8).map(|n| (vec![b'b', n], vec![n; 100])).collect();
        let old = block(&memory, &rows);
        let longer = vec![9; 600];
        let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
        let changes = keys.iter().map(|key| (&key[..], Some(&longer[..])));
        let cut = old.rewrite(changes);
        assert_eq!(cut.len(), 3);
        assert!(
            cut.iter()
                .all(|block| block.size() <= BUFFER_BYTES_MAX + BLOCK_OVERHEAD_BYTES)
        );
        assert_eq!(cut[0].low(), b"a");
        assert_eq!(cut[0].high(), Some(cut[1].low()));
        assert_eq!(cut[1].high(), Some(cut[2].low()));
        assert_eq!(cut[2].high(), Some(&b"z"[..]));
        let all: Vec<_> = cut.iter().flat_map(rows_of).collect();
        assert!(all.iter().map(|(key, _)| key).eq(&keys));
        assert!(all.iter().all(|(_, value)| *value == longer));
    }

    #[test]
    fn rows_appended_leave_full_blocks_behind() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        let rows: Vec<_> = (0..30u8).map(|n| (vec![b'b', n], vec![n; 100])).collect();
        let old = block(&memory, &rows);
        let changes: Vec<_> = (0..60u8).map(|n| (vec![b'c', n], vec![n; 100])).collect();
        let cut = old.rewrite(
            changes
                .iter()
                .map(|(key, value)| (&key[..], Some(&value[..]))),
        );
        assert_eq!(cut.len(), 2);
        assert!(cut[0].len() > 65);
    }

    #[test]
    fn a_block_that_was_filled_by_thousands_of_rows_is_not_kept() {
        let memory = Arc::new(BlockMemory::new(1 << 20));
        let old = block(&memory, &[]);
        let changes: Vec<_> = (0..9999u32).map(|n| (n.to_be_bytes(), [0; 50])).collect();
        let cut = old.rewrite(
            changes
                .iter()
                .map(|(key, value)| (&key[..], Some(&value[..]))),
        );
        assert!(cut.is_empty());
    }
}
