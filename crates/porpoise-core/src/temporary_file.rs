//! Files that statements put aside what memory doesn't hold.
//!
//! A [`TemporaryFile`] has no name from the beginning: it is gone with the process, however that
//! ends. It is written at its end and read anywhere.
//!
//! Entries, byte strings of any length, go into **parts** of a file: those of one hash of a key, or
//! all of them into one. Each part has a buffer, whose content becomes a block of the file when it
//! is full; the part remembers where its blocks are and how many entries each has.
//!
//! ```text
//! push ─► buffer of part 0 ─┐
//!         buffer of part 1 ─┼─► block of 1 │ block of 0 │ block of 1 │ …      one file
//!         buffer of part 2 ─┘
//!                               entry: length (u32) │ bytes
//! ```
//!
//! A [`PartReader`] yields a part's entries in the order in which they were pushed, or from a
//! number on: so a part is also a list of rows of which any can be read. A part may be read several
//! times, by several readers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::memory::{Charge, MemoryAccount, reclaim};

/// A longer file is closed by another thread: the system takes a second to free gigabytes.
const CLOSED_HERE_BYTES_MAX: u64 = 16 << 20;

/// A file without a name, in `tmpdir`.
#[derive(Debug)]
pub struct TemporaryFile {
    /// Until it is closed.
    file: Option<File>,
    account: Arc<MemoryAccount>,
    len: AtomicU64,
}

impl TemporaryFile {
    /// Makes a file, on the account of a session.
    ///
    /// # Errors
    /// What the system says of the folder.
    pub fn create(account: &Arc<MemoryAccount>) -> Result<TemporaryFile> {
        let space = account.pool().space();
        let file =
            tempfile::tempfile_in(space.folder()).map_err(|e| io_error("create", account, e))?;
        space.count_file();
        Ok(TemporaryFile {
            file: Some(file),
            account: Arc::clone(account),
            len: AtomicU64::new(0),
        })
    }

    /// How long it is.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn file(&self) -> io::Result<&File> {
        let file = self.file.as_ref();
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Writes at the end, and tells where that was.
    ///
    /// # Errors
    /// 1114 beyond a limit of space, 1878 if the disk is full or fails.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        let count = bytes.len() as u64;
        let account = &self.account;
        account.space().take(account.pool().space(), count)?;
        let at = self.len.fetch_add(count, Ordering::Relaxed);
        let written = self.file().and_then(|file| file.write_all_at(bytes, at));
        if let Err(error) = written {
            let folder = account.pool().space().folder();
            tracing::warn!(%error, folder = %folder.display(), "a temporary file can't be written");
            return Err(Error::temporary_file_write_failure());
        }
        Ok(at)
    }

    /// Fills a buffer with what lies at a place.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        let read = self.file().and_then(|file| file.read_exact_at(bytes, at));
        read.map_err(|e| io_error("read", &self.account, e))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let account = &self.account;
        account
            .space()
            .give_back(account.pool().space(), self.len());
        if self.len() > CLOSED_HERE_BYTES_MAX {
            reclaim(self.file.take());
        }
    }
}

fn io_error(doing: &'static str, account: &MemoryAccount, source: io::Error) -> Error {
    Error::from(porpoise_storage::Error::Io {
        doing,
        path: account.pool().space().folder().join("(temporary file)"),
        source: Arc::new(source),
    })
}

/// The length before each entry.
const HEAD_BYTES: usize = size_of::<u32>();
/// Blocks that lie behind each other are read together, up to so many bytes.
const READ_BYTES: u64 = 256 << 10;

/// A block of a part.
#[derive(Clone, Copy, Debug)]
struct Block {
    at: u64,
    bytes: u64,
    /// How many entries the part has before it.
    first: u64,
}

/// Entries of a file that belong together.
#[derive(Clone, Debug)]
pub struct Part {
    file: Arc<TemporaryFile>,
    blocks: Arc<[Block]>,
    entries: u64,
    bytes: u64,
}

impl Part {
    /// How many entries it has.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads from the first entry on.
    pub fn reader(&self) -> PartReader {
        PartReader {
            part: self.clone(),
            bytes: Vec::new(),
            loaded: 0..0,
            offsets: Vec::new(),
            at: 0,
            next: 0,
        }
    }

    /// How many entries come before a block.
    fn first_of(&self, block: usize) -> u64 {
        self.blocks.get(block).map_or(self.entries, |b| b.first)
    }
}

/// A part that is being written.
#[derive(Debug, Default)]
struct Unfinished {
    buffer: Vec<u8>,
    /// How many entries are in the buffer.
    buffered: u64,
    blocks: Vec<Block>,
    entries: u64,
    bytes: u64,
}

/// Writes the parts of a file.
#[derive(Debug)]
pub struct PartWriter {
    file: TemporaryFile,
    parts: Vec<Unfinished>,
    block_bytes: usize,
    charge: Charge,
}

impl PartWriter {
    /// A file of so many parts, each with a buffer of about so many bytes.
    ///
    /// # Errors
    /// As [`TemporaryFile::create`].
    pub fn create(
        account: &Arc<MemoryAccount>,
        parts: usize,
        block_bytes: usize,
    ) -> Result<PartWriter> {
        let file = TemporaryFile::create(account)?;
        let mut unfinished = Vec::new();
        unfinished.resize_with(parts, Unfinished::default);
        Ok(PartWriter {
            file,
            parts: unfinished,
            block_bytes,
            charge: Charge::default(),
        })
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// How many entries a part has.
    pub fn entries(&self, part: usize) -> u64 {
        self.parts[part].entries
    }

    /// Adds an entry, which `write` appends to the bytes that it is given.
    ///
    /// # Errors
    /// As [`TemporaryFile::append`], and 1037 where there is no memory for a buffer.
    pub fn push(&mut self, part: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let unfinished = &mut self.parts[part];
        if unfinished.buffer.capacity() == 0 {
            let account = &self.file.account;
            self.charge
                .reserve(account, &mut unfinished.buffer, self.block_bytes)?;
        }
        let buffer = &mut unfinished.buffer;
        let begin = buffer.len();
        buffer.extend_from_slice(&[0; HEAD_BYTES]);
        write(buffer);
        let len = u32::try_from(buffer.len() - begin - HEAD_BYTES)
            .map_err(|_| Error::engine_error("a row that is too long for a temporary file"))?;
        buffer[begin..begin + HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
        unfinished.buffered += 1;
        unfinished.entries += 1;
        match unfinished.buffer.len() < self.block_bytes {
            true => Ok(()),
            false => unfinished.flush(&self.file, self.block_bytes),
        }
    }

    /// Writes what the buffers have, and gives the parts.
    ///
    /// # Errors
    /// As [`TemporaryFile::append`].
    pub fn finish(mut self) -> Result<Vec<Part>> {
        for part in &mut self.parts {
            part.flush(&self.file, 0)?;
        }
        let file = Arc::new(self.file);
        let finished = |part: Unfinished| Part {
            file: Arc::clone(&file),
            blocks: part.blocks.into(),
            entries: part.entries,
            bytes: part.bytes,
        };
        Ok(self.parts.into_iter().map(finished).collect())
    }
}

impl Unfinished {
    fn flush(&mut self, file: &TemporaryFile, keep_bytes: usize) -> Result<()> {
        if !self.buffer.is_empty() {
            let bytes = self.buffer.len() as u64;
            self.blocks.push(Block {
                at: file.append(&self.buffer)?,
                bytes,
                first: self.entries - self.buffered,
            });
            self.bytes += bytes;
        }
        self.buffered = 0;
        self.buffer.clear();
        // A long entry's room isn't kept: it was never charged.
        if self.buffer.capacity() > 2 * keep_bytes {
            self.buffer = Vec::with_capacity(keep_bytes);
        }
        Ok(())
    }
}

/// Reads the entries of a part.
#[derive(Debug)]
pub struct PartReader {
    part: Part,
    /// The bytes of the blocks that are loaded.
    bytes: Vec<u8>,
    loaded: std::ops::Range<usize>,
    /// Where in `bytes` each entry is; empty until one is looked for.
    offsets: Vec<u32>,
    /// Where in `bytes` the next entry is.
    at: usize,
    /// The number of the next entry.
    next: u64,
}

impl PartReader {
    /// The number of the entry that comes next.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The next entry; `None` behind the last.
    ///
    /// # Errors
    /// What reading the file fails with.
    pub fn next_entry(&mut self) -> Result<Option<&[u8]>> {
        if self.next >= self.part.entries {
            return Ok(None);
        }
        if self.at >= self.bytes.len() {
            self.load(self.loaded.end, READ_BYTES)?;
        }
        let (begin, end) = self.entry_at(self.at)?;
        self.at = end;
        self.next += 1;
        Ok(Some(&self.bytes[begin..end]))
    }

    /// Has the entry of a number come next.
    ///
    /// # Errors
    /// What reading the file fails with.
    pub fn seek(&mut self, entry: u64) -> Result<()> {
        if entry == self.next || entry >= self.part.entries {
            self.next = entry;
            return Ok(());
        }
        let first = self.part.first_of(self.loaded.start);
        let is_loaded =
            !self.bytes.is_empty() && (first..self.part.first_of(self.loaded.end)).contains(&entry);
        if !is_loaded {
            let behind = self.part.blocks.partition_point(|b| b.first <= entry);
            self.load(behind.saturating_sub(1), 0)?;
        }
        self.find(entry)
    }

    /// Goes to an entry of the loaded blocks.
    fn find(&mut self, entry: u64) -> Result<()> {
        if entry == self.next {
            return Ok(());
        }
        if self.offsets.is_empty() {
            let mut at = 0;
            while at < self.bytes.len() {
                self.offsets.push(at as u32);
                at = self.entry_at(at)?.1;
            }
        }
        let number = entry - self.part.first_of(self.loaded.start);
        let at = self.offsets.get(number as usize);
        let at =
            at.ok_or_else(|| Error::engine_error("a temporary file that is not as written"))?;
        (self.at, self.next) = (*at as usize, entry);
        Ok(())
    }

    /// Where the entry at a place of the loaded bytes begins and ends.
    fn entry_at(&self, at: usize) -> Result<(usize, usize)> {
        let head = self.bytes[at..].first_chunk::<HEAD_BYTES>();
        let begin = at + HEAD_BYTES;
        let end = head.map(|head| begin + u32::from_le_bytes(*head) as usize);
        match end {
            Some(end) if end <= self.bytes.len() => Ok((begin, end)),
            _ => Err(Error::engine_error(
                "a temporary file that is not as written",
            )),
        }
    }

    /// Loads a block, and those behind it that lie next to each other, up to so many bytes.
    fn load(&mut self, block: usize, bytes_max: u64) -> Result<()> {
        let blocks = &self.part.blocks;
        let first = blocks[block];
        let (mut end, mut bytes) = (block + 1, first.bytes);
        while let Some(next) = blocks.get(end)
            && next.at == first.at + bytes
            && bytes + next.bytes <= bytes_max
        {
            bytes += next.bytes;
            end += 1;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.bytes.resize(bytes, 0);
        self.part.file.read(&mut self.bytes, first.at)?;
        self.loaded = block..end;
        self.offsets.clear();
        self.at = 0;
        self.next = first.first;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Vec<u8> {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.resize(8 + (number * 37 % 300) as usize, number as u8);
        if number == 777 {
            bytes.resize(100_000, 7);
        }
        bytes
    }

    #[test]
    fn parts_have_their_entries_in_order_and_by_number() {
        let account = Arc::<MemoryAccount>::default();
        let mut writer = PartWriter::create(&account, 3, 1000).unwrap();
        for number in 0..3000 {
            let bytes = entry(number);
            writer
                .push((number % 2) as usize, |out| out.extend_from_slice(&bytes))
                .unwrap();
        }
        let parts = writer.finish().unwrap();
        assert!(account.space().used() > 400_000);
        assert_eq!(parts[2].entries(), 0);
        assert!(parts[2].reader().next_entry().unwrap().is_none());
        for (remainder, part) in parts[..2].iter().enumerate() {
            let mut reader = part.reader();
            for position in 0..1500 {
                let number = position * 2 + remainder as u64;
                assert_eq!(reader.next_entry().unwrap(), Some(&*entry(number)));
            }
            assert!(reader.next_entry().unwrap().is_none());
            for step in 0..3000 {
                let position = step * 7919 % 1500;
                reader.seek(position).unwrap();
                for position in position..(position + step % 3).min(1500) {
                    let number = position * 2 + remainder as u64;
                    assert_eq!(reader.next_entry().unwrap(), Some(&*entry(number)));
                }
            }
            reader.seek(1500).unwrap();
            assert!(reader.next_entry().unwrap().is_none());
        }
        drop(parts);
        assert_eq!(account.space().used(), 0);
        assert_eq!(account.pool().space().used(), 0);
        assert_eq!(account.used(), 0);
        assert_eq!(account.pool().space().files(), 1);
    }

    #[test]
    fn each_limit_of_space_refuses() {
        let account = Arc::<MemoryAccount>::default();
        let file = TemporaryFile::create(&account).unwrap();
        account.space().set_limit(1000);
        file.append(&[0; 600]).unwrap();
        assert_eq!(file.append(&[0; 600]).unwrap_err().number(), 1114);
        account.space().set_limit(0);
        account.pool().space().set_limit(1000);
        assert_eq!(file.append(&[0; 600]).unwrap_err().number(), 1114);
        file.append(&[0; 400]).unwrap();
        drop(file);
        assert_eq!(account.space().used(), 0);
        assert_eq!(account.pool().space().used(), 0);
    }
}
