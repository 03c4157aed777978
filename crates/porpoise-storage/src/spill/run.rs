//! One run: writing it, its index, and looking keys up in it.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::file::SpillFile;
use crate::little_endian::u64_at;
use crate::memtable::KeyHash;
use crate::payload::{put_number, take_bytes, take_number};
use crate::{Error, Result, SpaceId};

/// A block ends behind the key with which it gets so long.
const BLOCK_BYTES: usize = 16 << 10;
/// So much is written to the file at a time.
const WRITE_BYTES: usize = 1 << 20;
const CHECKSUM_BYTES: usize = 8;

/// Sorted writes in a file.
pub(crate) struct Run {
    pub file: Arc<SpillFile>,
    pub place: RunPlace,
    start: u64,
    /// The orders of the first and the last write that it has.
    pub orders: Range<u64>,
    /// By number.
    spaces: Vec<RunSpace>,
    /// Tells of most keys that the run doesn't have them. `None` if the run has none.
    filter: Option<RunFilter>,
    /// The block that was read last: look-ups of neighbouring keys come one after another.
    last_block: Mutex<Option<Arc<RunBlock>>>,
    /// Nothing of it counts any more.
    is_undone: AtomicBool,
}

/// A Bloom filter, as memtables have, for a number of keys that is known.
struct RunFilter(Box<[u64]>);

impl RunFilter {
    const KEYS_A_WORD: u64 = 6;

    fn words(keys: u64) -> usize {
        (keys / RunFilter::KEYS_A_WORD + 1) as usize
    }

    fn add(&mut self, hash: KeyHash) {
        let at = hash.word_of(self.0.len());
        self.0[at] |= hash.bits();
    }

    fn may_contain(&self, hash: KeyHash) -> bool {
        self.0[hash.word_of(self.0.len())] & hash.bits() == hash.bits()
    }
}

/// How much memory the filter of a run takes with so many keys.
pub(crate) fn filter_bytes(keys: u64) -> usize {
    RunFilter::words(keys) * size_of::<u64>()
}

/// Where a run's index lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunPlace {
    pub index_at: u64,
    pub index_len: u64,
}

/// What a run has of a space.
struct RunSpace {
    space: SpaceId,
    entries: u64,
    bytes: u64,
    net_rows: i64,
    last_key: Box<[u8]>,
    blocks: Vec<BlockPlace>,
}

struct BlockPlace {
    first_key: Box<[u8]>,
    at: u64,
    len: u32,
}

/// A block, read and verified.
pub(super) struct RunBlock {
    at: u64,
    bytes: Vec<u8>,
    /// By key, and of each key the newest first.
    entries: Vec<RunEntry>,
}

#[derive(Clone)]
struct RunEntry {
    key: Range<u32>,
    order: u64,
    net_rows: i64,
    value: Option<Range<u32>>,
}

/// A value within a block.
pub(crate) struct RunValue {
    block: Arc<RunBlock>,
    at: Range<u32>,
}

impl Deref for RunValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.slice(&self.at)
    }
}

impl RunBlock {
    fn decode(at: u64, bytes: Vec<u8>) -> Option<RunBlock> {
        let payload_len = bytes.len().checked_sub(CHECKSUM_BYTES)?;
        let whole = bytes.get(..payload_len)?;
        let mut rest = whole;
        let mut entries = Vec::new();
        let range = |taken: &[u8], rest: &[u8]| {
            let end = (whole.len() - rest.len()) as u32;
            end - taken.len() as u32..end
        };
        while !rest.is_empty() {
            let key_len = take_number(&mut rest)?;
            let key = take_bytes(&mut rest, key_len)?;
            let key = range(key, rest);
            let order = take_number(&mut rest)?;
            let net_rows = from_zigzag(take_number(&mut rest)?);
            let value = match take_number(&mut rest)?.checked_sub(1) {
                None => None,
                Some(len) => {
                    let value = take_bytes(&mut rest, len)?;
                    Some(range(value, rest))
                }
            };
            entries.push(RunEntry {
                key,
                order,
                net_rows,
                value,
            });
        }
        Some(RunBlock { at, bytes, entries })
    }

    fn slice(&self, at: &Range<u32>) -> &[u8] {
        &self.bytes[at.start as usize..at.end as usize]
    }

    fn key(&self, at: usize) -> &[u8] {
        self.slice(&self.entries[at].key)
    }

    /// An entry's key and value.
    pub fn row(&self, at: usize) -> (&[u8], Option<&[u8]>) {
        let entry = &self.entries[at];
        let value = entry.value.as_ref().map(|value| self.slice(value));
        (self.slice(&entry.key), value)
    }

    pub fn first_key(&self) -> Option<&[u8]> {
        Some(self.slice(&self.entries.first()?.key))
    }

    pub fn last_key(&self) -> Option<&[u8]> {
        Some(self.slice(&self.entries.last()?.key))
    }

    /// Of each key the newest version that counts, by the numbers of the entries.
    pub fn visible(&self, up_to: u64) -> Vec<u32> {
        let mut visible: Vec<u32> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let last = visible.last().map(|last| self.key(*last as usize));
            if entry.order <= up_to && last != Some(self.slice(&entry.key)) {
                visible.push(at as u32);
            }
        }
        visible
    }
}

pub(super) fn zigzag(number: i64) -> u64 {
    number.wrapping_shl(1).cast_unsigned() ^ (number >> 63).cast_unsigned()
}

fn from_zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

impl Run {
    fn space(&self, space: SpaceId) -> Option<&RunSpace> {
        let at = self.spaces.binary_search_by_key(&space, |of| of.space);
        self.spaces.get(at.ok()?)
    }

    pub fn has(&self, space: SpaceId) -> bool {
        self.space(space).is_some()
    }

    pub fn space_numbers(&self) -> impl Iterator<Item = SpaceId> {
        self.spaces.iter().map(|of| of.space)
    }

    /// Of each space the first and the last key that it has.
    pub fn ranges(&self) -> impl Iterator<Item = (SpaceId, &[u8], &[u8])> {
        self.spaces.iter().filter_map(|of| {
            let first_key = &of.blocks.first()?.first_key;
            Some((of.space, &**first_key, &*of.last_key))
        })
    }

    pub fn entries(&self, space: Option<SpaceId>) -> u64 {
        let spaces = self.spaces.iter();
        let spaces = spaces.filter(|of| space.is_none_or(|space| space == of.space));
        spaces.map(|of| of.entries).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.spaces.iter().map(|of| of.bytes).sum()
    }

    /// How many rows the run's writes have added, by space.
    pub fn net_rows(&self) -> impl Iterator<Item = (SpaceId, i64)> {
        self.spaces.iter().map(|of| (of.space, of.net_rows))
    }

    /// The memory of index and filter.
    pub fn index_bytes(&self) -> usize {
        let blocks = self.spaces.iter().flat_map(|of| &of.blocks);
        let blocks = blocks.map(|block| size_of::<BlockPlace>() + block.first_key.len() + 16);
        blocks.sum::<usize>() + self.filter_bytes()
    }

    /// The memory of the filter.
    pub fn filter_bytes(&self) -> usize {
        self.filter
            .as_ref()
            .map_or(0, |filter| size_of_val(&*filter.0))
    }

    /// How many rows were added by the writes behind one order, up to another, by space.
    pub fn net_rows_between(&self, behind: u64, up_to: u64) -> Result<Vec<(SpaceId, i64)>> {
        let orders = behind + 1..=up_to;
        let mut found = Vec::new();
        for of in &self.spaces {
            let mut net = 0;
            for at in 0..of.blocks.len() {
                let block = self.read_block(of, at)?;
                let entries = block.entries.iter();
                let within = entries.filter(|entry| orders.contains(&entry.order));
                net += within.map(|entry| entry.net_rows).sum::<i64>();
            }
            found.push((of.space, net));
        }
        Ok(found)
    }

    /// What it has of a key, of its versions up to an order: a value, a deletion (`None`), or nothing.
    pub fn get(&self, space: SpaceId, key: &[u8], up_to: u64) -> Result<Option<Option<RunValue>>> {
        let may_have = |filter: &RunFilter| filter.may_contain(KeyHash::of(space, key));
        if !self.filter.as_ref().is_none_or(may_have) {
            return Ok(None);
        }
        let Some(of) = self.space(space).filter(|of| key <= &*of.last_key) else {
            return Ok(None);
        };
        let Some(at) = of.block_of(key) else {
            return Ok(None);
        };
        let wanted = of.blocks[at].at;
        let kept = self.last_block.lock().clone();
        let block = match kept.filter(|block| block.at == wanted) {
            Some(block) => block,
            None => {
                let block = self.read_block(of, at)?;
                *self.last_block.lock() = Some(Arc::clone(&block));
                block
            }
        };
        let entries = &block.entries;
        let first = entries.partition_point(|entry| block.slice(&entry.key) < key);
        let own = entries[first..].iter();
        let mut own = own.take_while(|entry| block.slice(&entry.key) == key);
        let Some(found) = own.find(|entry| entry.order <= up_to) else {
            return Ok(None);
        };
        let value = found.value.clone();
        Ok(Some(value.map(|at| RunValue {
            block: Arc::clone(&block),
            at,
        })))
    }

    fn read_block(&self, of: &RunSpace, at: usize) -> Result<Arc<RunBlock>> {
        let place = &of.blocks[at];
        let mut bytes = Vec::new();
        self.read_bytes(of, place, &mut bytes)?;
        RunBlock::decode(place.at, bytes)
            .map(Arc::new)
            .ok_or_else(|| self.file.damage(place.at, of.space, None))
    }

    /// Reads a block's bytes, and verifies them.
    fn read_bytes(&self, of: &RunSpace, place: &BlockPlace, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.resize(place.len as usize, 0);
        let read = self.file.file.read_exact_at(bytes, place.at);
        read.map_err(|error| self.file.damage(place.at, of.space, Some(error)))?;
        match verified(&self.file, bytes, place.at) {
            Some(_) => Ok(()),
            None => Err(self.file.damage(place.at, of.space, None)),
        }
    }

    /// Reads all blocks of some spaces, and verifies them.
    pub(super) fn verify(
        &self,
        spaces: &[SpaceId],
        check_goes_on: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for of in &self.spaces {
            if spaces.contains(&of.space) {
                for place in &of.blocks {
                    check_goes_on()?;
                    self.read_bytes(of, place, &mut bytes)?;
                }
            }
        }
        Ok(())
    }

    /// How many blocks a space has.
    pub(super) fn blocks(&self, space: SpaceId) -> usize {
        self.space(space).map_or(0, |of| of.blocks.len())
    }

    /// The block in which a key would be, if it comes behind the first of all.
    pub(super) fn block_of(&self, space: SpaceId, key: &[u8]) -> Option<usize> {
        self.space(space)?.block_of(key)
    }

    pub(super) fn block(&self, space: SpaceId, at: usize) -> Result<Option<Arc<RunBlock>>> {
        match self.space(space) {
            Some(of) if at < of.blocks.len() => self.read_block(of, at).map(Some),
            _ => Ok(None),
        }
    }

    /// Nothing of it counts any more: its room is given back when nobody reads it.
    pub fn undo(&self) {
        self.is_undone.store(true, Ordering::Release);
    }

    /// Reads the index of a run.
    pub fn open(file: &Arc<SpillFile>, place: RunPlace) -> Result<Run> {
        let corrupt = || {
            let what = "the index of a transaction's writes isn't what was written";
            file.corrupt(place.index_at, what)
        };
        let file_len = file.file.len().map_err(Error::io("read", &file.path))?;
        let end = place.index_at.checked_add(place.index_len);
        if end.is_none_or(|end| end > file_len) {
            return Err(corrupt());
        }
        let mut bytes = vec![0; place.index_len as usize];
        let read = file.file.read_exact_at(&mut bytes, place.index_at);
        read.map_err(Error::io("read", &file.path))?;
        let index = verified(file, &bytes, place.index_at).ok_or_else(corrupt)?;
        let spaces = decode_index(index, place.index_at).ok_or_else(corrupt)?;
        Ok(Run {
            file: Arc::clone(file),
            place,
            start: place.index_at,
            orders: 0..u64::MAX,
            spaces,
            filter: None,
            last_block: Mutex::default(),
            is_undone: AtomicBool::new(false),
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if *self.is_undone.get_mut() {
            let len = self.place.index_at + self.place.index_len - self.start;
            let _ = self.file.file.discard(self.start, len);
        }
    }
}

impl RunSpace {
    fn block_of(&self, key: &[u8]) -> Option<usize> {
        let behind = self
            .blocks
            .partition_point(|block| &*block.first_key <= key);
        behind.checked_sub(1)
    }
}

/// What the bytes hold before their checksum, if that is right.
fn verified<'b>(file: &SpillFile, bytes: &'b [u8], at: u64) -> Option<&'b [u8]> {
    let (payload, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    (u64_at(checksum, 0)? == file.checksum(payload, at)).then_some(payload)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn encode_index(spaces: &[RunSpace]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, spaces.len() as u64);
    for of in spaces {
        put_number(&mut out, u64::from(of.space.0));
        put_number(&mut out, of.entries);
        put_number(&mut out, of.bytes);
        put_number(&mut out, zigzag(of.net_rows));
        put_bytes(&mut out, &of.last_key);
        put_number(&mut out, of.blocks.len() as u64);
        for block in &of.blocks {
            put_number(&mut out, block.at);
            put_number(&mut out, u64::from(block.len));
            put_bytes(&mut out, &block.first_key);
        }
    }
    out
}

fn decode_index(mut bytes: &[u8], end: u64) -> Option<Vec<RunSpace>> {
    fn number(bytes: &mut &[u8]) -> Option<u64> {
        take_number(bytes)
    }
    fn key(bytes: &mut &[u8]) -> Option<Box<[u8]>> {
        let len = take_number(bytes)?;
        Some(take_bytes(bytes, len)?.into())
    }
    let bytes = &mut bytes;
    let mut spaces = Vec::new();
    for _ in 0..number(bytes)? {
        let mut of = RunSpace {
            space: SpaceId(u32::try_from(number(bytes)?).ok()?),
            entries: number(bytes)?,
            bytes: number(bytes)?,
            net_rows: from_zigzag(number(bytes)?),
            last_key: key(bytes)?,
            blocks: Vec::new(),
        };
        for _ in 0..number(bytes)? {
            let block = BlockPlace {
                at: number(bytes)?,
                len: u32::try_from(number(bytes)?).ok()?,
                first_key: key(bytes)?,
            };
            if block.at.checked_add(u64::from(block.len))? > end {
                return None;
            }
            of.blocks.push(block);
        }
        spaces.push(of);
    }
    bytes.is_empty().then_some(spaces)
}

/// A version of a key, the newest first: its order, the rows that it added, and its value.
pub(super) type Versions<'v> = &'v mut dyn Iterator<Item = (u64, i64, Option<&'v [u8]>)>;

/// Writes a run to the end of a file.
pub(crate) struct RunWriter {
    file: Arc<SpillFile>,
    start: u64,
    /// Where `out` goes.
    out_at: u64,
    out: Vec<u8>,
    block: Vec<u8>,
    /// The first key of the block.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    spaces: Vec<RunSpace>,
    orders: Range<u64>,
    filter: Option<RunFilter>,
}

impl RunWriter {
    /// With the number of its keys it gets a filter.
    pub fn new(file: &Arc<SpillFile>, keys: Option<u64>) -> RunWriter {
        let start = file.len.load(Ordering::Acquire);
        RunWriter {
            file: Arc::clone(file),
            start,
            out_at: start,
            out: Vec::with_capacity(WRITE_BYTES + (WRITE_BYTES >> 2)),
            block: Vec::with_capacity(BLOCK_BYTES * 2),
            first_key: Vec::new(),
            last_key: Vec::new(),
            spaces: Vec::new(),
            // Before the first write.
            orders: Range {
                start: u64::MAX,
                end: 0,
            },
            filter: keys.map(|keys| RunFilter(vec![0; RunFilter::words(keys)].into())),
        }
    }

    /// Goes on with a space. They come by number.
    pub fn begin_space(&mut self, space: SpaceId) -> Result<()> {
        self.end_space()?;
        self.spaces.push(RunSpace {
            space,
            entries: 0,
            bytes: 0,
            net_rows: 0,
            last_key: Box::default(),
            blocks: Vec::new(),
        });
        Ok(())
    }

    /// Adds a key of the space. They come in order.
    pub fn push(&mut self, key: &[u8], versions: Versions<'_>) -> Result<()> {
        let Some(of) = self.spaces.last_mut() else {
            return Ok(());
        };
        let before = self.block.len();
        let mut is_first = true;
        for (order, net_rows, value) in versions {
            put_bytes(&mut self.block, key);
            put_number(&mut self.block, order);
            put_number(&mut self.block, zigzag(net_rows));
            put_number(
                &mut self.block,
                value.map_or(0, |value| value.len() as u64 + 1),
            );
            self.block.extend_from_slice(value.unwrap_or_default());
            of.net_rows += net_rows;
            if is_first {
                of.entries += 1;
                of.bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
                is_first = false;
            }
            self.orders.start = self.orders.start.min(order);
            self.orders.end = self.orders.end.max(order);
        }
        if is_first {
            return Ok(());
        }
        if let Some(filter) = &mut self.filter {
            filter.add(KeyHash::of(of.space, key));
        }
        if before == 0 {
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        match self.block.len() < BLOCK_BYTES {
            true => Ok(()),
            false => self.end_block(),
        }
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let at = self.out_at + self.out.len() as u64;
        let checksum = self.file.checksum(&self.block, at);
        self.block.extend_from_slice(&checksum.to_le_bytes());
        let len = u32::try_from(self.block.len()).map_err(|_| {
            let what = "the versions of a row are too long for a block";
            self.file.corrupt(at, what)
        })?;
        if let Some(of) = self.spaces.last_mut() {
            of.blocks.push(BlockPlace {
                first_key: self.first_key.as_slice().into(),
                at,
                len,
            });
        }
        self.out.extend_from_slice(&self.block);
        self.block.clear();
        match self.out.len() < WRITE_BYTES {
            true => Ok(()),
            false => self.write_out(),
        }
    }

    fn end_space(&mut self) -> Result<()> {
        self.end_block()?;
        if let Some(of) = self.spaces.last_mut() {
            of.last_key = self.last_key.as_slice().into();
            if of.blocks.is_empty() {
                self.spaces.pop();
            }
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        let written = self.file.file.write_all_at(&self.out, self.out_at);
        written.map_err(Error::io("write to", &self.file.path))?;
        self.out_at += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    /// Writes the index. `None` where there was nothing to write.
    pub fn finish(mut self) -> Result<Option<Run>> {
        self.end_space()?;
        if self.spaces.is_empty() {
            return Ok(None);
        }
        let index_at = self.out_at + self.out.len() as u64;
        let mut index = encode_index(&self.spaces);
        let checksum = self.file.checksum(&index, index_at);
        index.extend_from_slice(&checksum.to_le_bytes());
        let place = RunPlace {
            index_at,
            index_len: index.len() as u64,
        };
        self.out.extend_from_slice(&index);
        self.write_out()?;
        self.file.file.begin_writing_back();
        self.file.len.store(self.out_at, Ordering::Release);
        Ok(Some(Run {
            file: self.file,
            place,
            start: self.start,
            orders: self.orders.start..self.orders.end + 1,
            spaces: self.spaces,
            filter: self.filter,
            last_block: Mutex::default(),
            is_undone: AtomicBool::new(false),
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decode_index(&bytes, u64::MAX);
            if let Some(block) = RunBlock::decode(0, bytes) {
                for at in block.visible(u64::MAX) {
                    block.row(at as usize);
                }
            }
        }

        #[test]
        fn an_index_reads_back_as_written(
            spaces in proptest::collection::btree_map(any::<u32>(), any::<(u64, i64, Vec<u8>)>(), 0..4),
            blocks in proptest::collection::vec(any::<(u32, u32, Vec<u8>)>(), 0..4),
        ) {
            let spaces: Vec<_> = spaces.into_iter().map(|(space, (entries, net_rows, last))| RunSpace {
                space: SpaceId(space),
                entries,
                bytes: entries / 2,
                net_rows,
                last_key: last.into(),
                blocks: blocks.iter().map(|(at, len, first)| BlockPlace {
                    first_key: first.as_slice().into(),
                    at: u64::from(*at),
                    len: *len,
                }).collect(),
            }).collect();
            let written = encode_index(&spaces);
            let back = decode_index(&written, 1 << 40).unwrap();
            prop_assert_eq!(encode_index(&back), written);
            prop_assert_eq!(back.len(), spaces.len());
        }
    }
}
