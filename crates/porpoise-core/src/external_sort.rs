//! Sorting more than memory holds.
//!
//! Entries, a key and a value each, are collected in a buffer of bounded size. A buffer that is full
//! is sorted and written to a file as a **run**; at the end the runs are merged.
//!
//! ```text
//! push ─► buffer ─ full ─► sorted ─► run 1 │ run 2 │ run 3     one file, without a name
//!                                      └───────┴───┬───┘
//!                                        merge, the least first ─► next
//! ```
//!
//! An entry in the file is the length of its key (u32), the length of its value (u32), the key and the
//! value. The file has no name from the beginning: it is gone with the process, however that ends. A
//! sort whose entries fit the buffer makes no file.
//!
//! Entries of equal keys come out in the order in which they were pushed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::{Error, Result};
use crate::memory::{Charge, MemoryAccount};
use crate::sort;
use crate::temporary_file::TemporaryFile;

/// Before each entry: the lengths of its key and its value.
const HEAD_BYTES: usize = 8;
/// A run is read so many bytes at a time, at least.
const READ_BYTES_MIN: usize = 64 << 10;
/// More would not make reading faster.
const READ_BYTES_MAX: usize = 1 << 20;
/// So many entries are sorted without a check.
const UNCHECKED_ENTRIES: usize = 1 << 16;

/// Called all the while that a sort computes: its error ends the sort.
pub type Check<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Entries that are being collected to be sorted.
pub struct ExternalSort {
    buffer_bytes: usize,
    account: Arc<MemoryAccount>,
    buffer: Buffer,
    runs: Option<RunFile>,
}

/// Entries in memory.
#[derive(Default)]
struct Buffer {
    /// As they are in a run.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    charge: Charge,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The key's first bytes: most comparisons need no more.
    prefix: u64,
    at: usize,
}

impl ExternalSort {
    /// A sort with a buffer of about so many bytes.
    pub fn new(buffer_bytes: usize, account: &Arc<MemoryAccount>) -> ExternalSort {
        ExternalSort {
            buffer_bytes,
            account: Arc::clone(account),
            buffer: Buffer::default(),
            runs: None,
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// 1037, 4081 and 4082 beyond a limit of memory, 1878 if the file can't be written, what `check`
    /// fails with.
    pub fn push(&mut self, key: &[u8], value: &[u8], check: Check<'_>) -> Result<()> {
        let bytes = HEAD_BYTES + key.len() + value.len();
        if !self.buffer.entries.is_empty()
            && self.buffer.used_bytes() + bytes + size_of::<Entry>() > self.buffer_bytes
        {
            self.write_run(check)?;
        }
        self.buffer.push(&self.account, key, value)
    }

    fn write_run(&mut self, check: Check<'_>) -> Result<()> {
        self.buffer.sort(check)?;
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => self.runs.insert(RunFile::create(&self.account)?),
        };
        let mut run = runs.begin_run();
        for entry in &self.buffer.entries {
            let (key, value) = self.buffer.entry(entry.at);
            run.push(key, value)?;
        }
        let run = run.finish()?;
        runs.runs.push(run);
        self.buffer.clear();
        check()
    }

    /// Sorts what was pushed, and merges runs until the others can be read at once.
    ///
    /// # Errors
    /// As [`push`](ExternalSort::push), and what reading the file fails with.
    pub fn finish(mut self, check: Check<'_>) -> Result<SortedEntries> {
        if self.runs.is_none() {
            self.buffer.sort(check)?;
            return Ok(SortedEntries(Source::Buffer {
                buffer: self.buffer,
                next: 0,
            }));
        }
        if !self.buffer.entries.is_empty() {
            self.write_run(check)?;
        }
        // The runs are read with the memory that the buffer had.
        drop(std::mem::take(&mut self.buffer));
        let Some(mut runs) = self.runs.take() else {
            return Err(Error::temporary_file_write_failure());
        };
        let merged_at_once = (self.buffer_bytes / READ_BYTES_MIN).max(2);
        let mut at = 0;
        while runs.runs.len() > merged_at_once {
            // Neighbours are merged, of like lengths as far as that goes.
            if at + 1 >= runs.runs.len() {
                at = 0;
            }
            let surplus = runs.runs.len() - merged_at_once;
            let end = runs.runs.len().min(at + merged_at_once.min(surplus + 1));
            let mut merge = self.merge(&runs.file, &runs.runs[at..end])?;
            let mut writer = runs.begin_run();
            while let Some((key, value)) = merge.next()? {
                writer.push(key, value)?;
                check()?;
            }
            let merged = writer.finish()?;
            runs.runs.splice(at..end, [merged]);
            at += 1;
        }
        Ok(SortedEntries(Source::Runs(
            self.merge(&runs.file, &runs.runs)?,
        )))
    }

    fn merge(&self, file: &Arc<TemporaryFile>, runs: &[Run]) -> Result<Merge> {
        let share = self.buffer_bytes / runs.len().max(1);
        let read_bytes = share.clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        let mut charge = Charge::default();
        charge.add(&self.account, read_bytes * runs.len())?;
        let spaces = [
            self.account.space().counts(),
            self.account.pool().space().counts(),
        ];
        for counts in spaces {
            counts.merge_passes.fetch_add(1, Relaxed);
        }
        let mut readers = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter().enumerate() {
            let mut reader = RunReader::new(Arc::clone(file), *run, number, read_bytes);
            if reader.advance()? {
                readers.push(reader);
            }
        }
        Ok(Merge {
            readers,
            has_yielded: false,
            _charge: charge,
        })
    }
}

impl Buffer {
    fn used_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    fn push(&mut self, account: &Arc<MemoryAccount>, key: &[u8], value: &[u8]) -> Result<()> {
        let len = HEAD_BYTES + key.len() + value.len();
        self.charge.reserve(account, &mut self.bytes, len)?;
        self.charge.reserve(account, &mut self.entries, 1)?;
        self.entries.push(Entry {
            prefix: prefix(key),
            at: self.bytes.len(),
        });
        append(&mut self.bytes, key, value);
        Ok(())
    }

    fn entry(&self, at: usize) -> (&[u8], &[u8]) {
        split(&self.bytes[at..]).unwrap_or_default()
    }

    fn sort(&mut self, check: Check<'_>) -> Result<()> {
        let bytes = &self.bytes;
        let key = |entry: &Entry| split(&bytes[entry.at..]).unwrap_or_default().0;
        let compare = |a: &Entry, b: &Entry| {
            let prefixes = a.prefix.cmp(&b.prefix);
            prefixes
                .then_with(|| key(a).cmp(key(b)))
                .then_with(|| a.at.cmp(&b.at))
        };
        sort::sort(&mut self.entries, UNCHECKED_ENTRIES, compare, check)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

/// The first eight bytes, as a number of the same order; zeros where there are fewer.
fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}

fn append(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// The entry that the bytes begin with, if they have all of it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key_len, value_len, rest) = lengths(bytes)?;
    let (key, rest) = rest.split_at_checked(key_len)?;
    Some((key, rest.get(..value_len)?))
}

fn lengths(bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (key_len, rest) = bytes.split_first_chunk::<4>()?;
    let (value_len, rest) = rest.split_first_chunk::<4>()?;
    let len = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
    Some((len(key_len), len(value_len), rest))
}

/// The part of the file that one run has.
#[derive(Clone, Copy)]
struct Run {
    begin: u64,
    end: u64,
}

struct RunFile {
    file: Arc<TemporaryFile>,
    runs: Vec<Run>,
}

impl RunFile {
    fn create(account: &Arc<MemoryAccount>) -> Result<RunFile> {
        Ok(RunFile {
            file: Arc::new(TemporaryFile::create(account)?),
            runs: Vec::new(),
        })
    }

    fn begin_run(&self) -> RunWriter<'_> {
        RunWriter {
            begin: self.file.len(),
            file: &self.file,
            bytes: Vec::with_capacity(READ_BYTES_MAX),
        }
    }
}

struct RunWriter<'a> {
    file: &'a TemporaryFile,
    begin: u64,
    bytes: Vec<u8>,
}

impl RunWriter<'_> {
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        append(&mut self.bytes, key, value);
        match self.bytes.len() < READ_BYTES_MAX {
            true => Ok(()),
            false => self.write(),
        }
    }

    fn write(&mut self) -> Result<()> {
        self.file.append(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Run> {
        self.write()?;
        Ok(Run {
            begin: self.begin,
            end: self.file.len(),
        })
    }
}

/// Reads a run, an entry at a time. Readers are ordered by their entries, the least last, as a heap
/// has its greatest item at the top.
struct RunReader {
    prefix: u64,
    /// Where its entry is in `bytes`.
    at: usize,
    key_len: usize,
    value_len: usize,
    bytes: Vec<u8>,
    read_bytes: usize,
    /// What of the file is not in `bytes` yet.
    left: Run,
    /// Runs were written in the order of their entries.
    number: usize,
    file: Arc<TemporaryFile>,
}

impl RunReader {
    fn new(file: Arc<TemporaryFile>, run: Run, number: usize, read_bytes: usize) -> RunReader {
        RunReader {
            prefix: 0,
            at: 0,
            key_len: 0,
            value_len: 0,
            bytes: Vec::new(),
            read_bytes,
            left: run,
            number,
            file,
        }
    }

    fn key(&self) -> &[u8] {
        let begin = self.at + HEAD_BYTES;
        &self.bytes[begin..begin + self.key_len]
    }

    fn entry(&self) -> (&[u8], &[u8]) {
        let end = self.at + HEAD_BYTES + self.key_len;
        (self.key(), &self.bytes[end..end + self.value_len])
    }

    /// Goes to the next entry; the first at the first call. `false` behind the last.
    fn advance(&mut self) -> Result<bool> {
        if !self.bytes.is_empty() {
            self.at += HEAD_BYTES + self.key_len + self.value_len;
        }
        (self.key_len, self.value_len) = (0, 0);
        let mut needed = HEAD_BYTES;
        while split(&self.bytes[self.at..]).is_none() {
            if let Some((key_len, value_len, _)) = lengths(&self.bytes[self.at..]) {
                needed = HEAD_BYTES + key_len + value_len;
            }
            if !self.read(needed)? {
                return Ok(false);
            }
        }
        if let Some((key_len, value_len, _)) = lengths(&self.bytes[self.at..]) {
            (self.key_len, self.value_len) = (key_len, value_len);
        }
        self.prefix = prefix(self.key());
        Ok(true)
    }

    /// Reads on, so that at least `needed` bytes are there from `at` on. `false` at the run's end.
    fn read(&mut self, needed: usize) -> Result<bool> {
        let left = self.left.end - self.left.begin;
        if left == 0 {
            return Ok(false);
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let kept = self.bytes.len();
        let more = self.read_bytes.max(needed).saturating_sub(kept);
        let more = more.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.bytes.resize(kept + more, 0);
        self.file.read(&mut self.bytes[kept..], self.left.begin)?;
        self.left.begin += more as u64;
        Ok(true)
    }
}

impl Ord for RunReader {
    fn cmp(&self, other: &RunReader) -> Ordering {
        let prefixes = other.prefix.cmp(&self.prefix);
        prefixes
            .then_with(|| other.key().cmp(self.key()))
            .then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for RunReader {
    fn partial_cmp(&self, other: &RunReader) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunReader {
    fn eq(&self, other: &RunReader) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunReader {}

/// Several runs, merged.
struct Merge {
    readers: BinaryHeap<RunReader>,
    /// The reader at the top has given its entry already.
    has_yielded: bool,
    _charge: Charge,
}

impl Merge {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::replace(&mut self.has_yielded, true)
            && let Some(mut top) = self.readers.peek_mut()
            && !top.advance()?
        {
            PeekMut::pop(top);
        }
        Ok(self.readers.peek().map(RunReader::entry))
    }
}

/// Entries in order.
pub struct SortedEntries(Source);

enum Source {
    /// All of them fit the buffer.
    Buffer {
        buffer: Buffer,
        next: usize,
    },
    Runs(Merge),
}

impl SortedEntries {
    /// How many bytes they have, if all of them are in memory.
    pub fn bytes_in_memory(&self) -> Option<usize> {
        match &self.0 {
            Source::Buffer { buffer, .. } => Some(buffer.bytes.len()),
            Source::Runs(_) => None,
        }
    }

    /// The next entry; `None` behind the last.
    ///
    /// # Errors
    /// What reading the file fails with.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match &mut self.0 {
            Source::Buffer { buffer, next } => {
                let found = buffer.entries.get(*next);
                *next += 1;
                Ok(found.map(|entry| buffer.entry(entry.at)))
            }
            Source::Runs(merge) => merge.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sort_of(folder: &Path, buffer_bytes: usize) -> ExternalSort {
        let account = Arc::<MemoryAccount>::default();
        let folder = folder.to_str().unwrap();
        account.pool().space().set_folder(folder);
        ExternalSort::new(buffer_bytes, &account)
    }

    fn sorted(buffer_bytes: usize, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        let mut sort = sort_of(folder.path(), buffer_bytes);
        for (key, value) in entries {
            sort.push(key, value, &mut || Ok(())).unwrap();
        }
        let mut sorted = sort.finish(&mut || Ok(())).unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 0, "the file has a name");
        let mut out = Vec::new();
        while let Some((key, value)) = sorted.next_entry().unwrap() {
            out.push((key.to_vec(), value.to_vec()));
        }
        assert!(sorted.next_entry().unwrap().is_none());
        out
    }

    /// Keys of all lengths, many of them equal in their first bytes, some in all; values tell the
    /// order in which they came.
    fn entries(count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut random = 7u64;
        let mut next = move || {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (random >> 33) as usize
        };
        let entry = |number: usize| {
            let mut key = vec![b'k'; next() % 12];
            key.extend((0..next() % 4).map(|_| (next() % 3) as u8));
            let mut value = number.to_be_bytes().to_vec();
            value.resize(8 + next() % 40, 0);
            (key, value)
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn entries_come_in_order_in_memory_from_runs_and_from_merged_runs() {
        for count in [0, 1, 2, 5_000] {
            let entries = entries(count);
            let mut expected = entries.clone();
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            // The smallest buffer has thousands of runs, which are merged two at a time.
            for buffer_bytes in [1 << 20, 20_000, 150] {
                assert!(sorted(buffer_bytes, &entries) == expected, "{buffer_bytes}");
            }
        }
    }

    #[test]
    fn an_entry_may_be_larger_than_buffer_and_reads() {
        let large = |byte: u8| (vec![byte; 3], vec![byte; 3 * READ_BYTES_MAX]);
        let entries = [large(b'c'), large(b'a'), (vec![b'b'], vec![]), large(b'd')];
        let mut expected = entries.clone();
        expected.sort();
        assert!(sorted(1000, &entries) == expected);
    }

    #[test]
    fn a_check_that_fails_ends_pushing_and_finishing() {
        let folder = tempfile::tempdir().unwrap();
        let mut sort = sort_of(folder.path(), 1000);
        let killed = &mut || Err(Error::query_interrupted());
        let ended = (0..1000u32).find_map(|n| sort.push(&n.to_be_bytes(), b"", killed).err());
        assert_eq!(ended.expect("a run is written").number(), 1317);
        let ended = sort.finish(killed).err();
        assert_eq!(ended.expect("it is checked").number(), 1317);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let mut sort = sort_of(Path::new("/nowhere/at/all"), 100);
        let go_on = &mut || Ok(());
        let ended = (0..1000u32).find_map(|n| sort.push(&n.to_be_bytes(), b"", go_on).err());
        assert!(
            ended
                .expect("no file")
                .message()
                .contains("/nowhere/at/all")
        );
    }

    #[test]
    fn memory_is_charged_and_bounded() {
        let account = Arc::new(MemoryAccount::default());
        let mut sort = ExternalSort::new(1 << 20, &account);
        for n in 0..200_000u32 {
            let key = n.wrapping_mul(0x9E37_79B1).to_be_bytes();
            sort.push(&key, &[0; 30], &mut || Ok(())).unwrap();
            assert!(account.used() < 5 << 20);
        }
        assert!(account.used() > 512 << 10);
        let mut sorted = sort.finish(&mut || Ok(())).unwrap();
        assert!(account.used() < 5 << 20);
        assert!(sorted.next_entry().unwrap().is_some());
        drop(sorted);
        assert_eq!(account.used(), 0);
    }
}
