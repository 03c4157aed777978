//! What a partition has for each of its rows: a list that goes to disk where it is too long for
//! memory.

use std::cell::RefCell;
use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, Charge};
use porpoise_core::temporary_file::{PartReader, PartWriter};
use porpoise_types::{Value, saved};

use crate::Exec;
use crate::spill::unreadable;

/// An item of a [`Store`].
pub(super) trait Item: Sized {
    /// About how many bytes it takes beside its own size.
    fn heap_bytes(&self) -> usize;
    /// Appends it.
    fn save(&self, out: &mut Vec<u8>);
    /// Reads what [`save`](Item::save) appended.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Item for Value {
    fn heap_bytes(&self) -> usize {
        Value::heap_bytes(self)
    }

    fn save(&self, out: &mut Vec<u8>) {
        saved::write(self, out);
    }

    fn read(mut bytes: &[u8]) -> Option<Value> {
        saved::read(&mut bytes)
    }
}

impl Item for Vec<Value> {
    fn heap_bytes(&self) -> usize {
        let values = self.iter().map(|v| size_of_val(v) + v.heap_bytes());
        values.sum()
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| saved::write(value, out));
    }

    fn read(mut bytes: &[u8]) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            values.push(saved::read(&mut bytes)?);
        }
        Some(values)
    }
}

impl Item for Range<usize> {
    fn heap_bytes(&self) -> usize {
        0
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Range<usize>> {
        let (start, rest) = bytes.split_first_chunk::<8>()?;
        let end = rest.first_chunk::<8>()?;
        Some(usize::from_le_bytes(*start)..usize::from_le_bytes(*end))
    }
}

/// Items by number.
pub(super) struct Store<T> {
    items: Vec<T>,
    charge: Charge,
    asked_at: usize,
    disk: Option<Box<Disk<T>>>,
    /// The items were pushed from the last one to the first.
    is_reversed: bool,
}

/// Items in a temporary file.
struct Disk<T> {
    writer: Option<PartWriter>,
    len: usize,
    read: RefCell<Option<Reading<T>>>,
}

struct Reading<T> {
    reader: PartReader,
    /// The item that was read last, and its number.
    item: Option<(usize, T)>,
}

/// So often a list that grows asks whether it is to go to disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;
/// Items are written so many bytes at a time.
const BLOCK_BYTES: usize = 16 << 10;

impl<T> Default for Store<T> {
    fn default() -> Store<T> {
        Store {
            items: Vec::new(),
            charge: Charge::default(),
            asked_at: ASKED_EVERY_BYTES,
            disk: None,
            is_reversed: false,
        }
    }
}

impl<T: Item> Store<T> {
    /// An empty list, with room for so many items if these may be in memory.
    pub(super) fn with_room(exec: &Exec<'_>, items: usize) -> Result<Store<T>> {
        let mut store = Store::default();
        let account = &exec.session.memory;
        let bytes = items.saturating_mul(size_of::<T>());
        if !account.is_to_spill(Buffer::Table, bytes) {
            store.charge.reserve(account, &mut store.items, items)?;
        }
        Ok(store)
    }

    pub(super) fn len(&self) -> usize {
        match &self.disk {
            Some(disk) => disk.len,
            None => self.items.len(),
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// Where the statement would take more memory or disk than it may, or the disk fails.
    pub(super) fn push(&mut self, exec: &Exec<'_>, item: T) -> Result<()> {
        if let Some(disk) = &mut self.disk {
            return disk.push(&item);
        }
        let account = &exec.session.memory;
        self.charge.reserve(account, &mut self.items, 1)?;
        let bytes = item.heap_bytes();
        if bytes > 0 {
            self.charge.add(account, bytes)?;
        }
        self.items.push(item);
        match self.charge.bytes() < self.asked_at {
            true => Ok(()),
            false => self.ask(exec),
        }
    }

    #[cold]
    fn ask(&mut self, exec: &Exec<'_>) -> Result<()> {
        let account = &exec.session.memory;
        self.asked_at = self.charge.bytes() + ASKED_EVERY_BYTES;
        if !account.is_to_spill(Buffer::Table, self.charge.bytes()) {
            return Ok(());
        }
        exec.count_disk_table();
        let mut disk = Disk {
            writer: Some(PartWriter::create(account, 1, BLOCK_BYTES)?),
            len: 0,
            read: RefCell::new(None),
        };
        for item in std::mem::take(&mut self.items) {
            disk.push(&item)?;
        }
        self.charge.clear();
        self.disk = Some(Box::new(disk));
        Ok(())
    }

    /// All items were pushed.
    ///
    /// # Errors
    /// Where the disk fails.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(disk) = &mut self.disk
            && let Some(writer) = disk.writer.take()
        {
            let part = writer.finish()?.pop().ok_or_else(unreadable)?;
            disk.read = RefCell::new(Some(Reading {
                reader: part.reader(),
                item: None,
            }));
        }
        Ok(())
    }

    /// The items were pushed from the last one to the first.
    pub(super) fn reverse(&mut self) {
        self.is_reversed = true;
    }

    /// What a function makes of an item; of `None` where there is none of that number.
    ///
    /// # Errors
    /// Where the disk fails.
    #[inline]
    pub(super) fn with<R>(&self, number: usize, read: impl FnOnce(Option<&T>) -> R) -> Result<R> {
        let number = match self.is_reversed {
            true => self.len().wrapping_sub(1).wrapping_sub(number),
            false => number,
        };
        match &self.disk {
            None => Ok(read(self.items.get(number))),
            Some(disk) => disk.with(number, read),
        }
    }
}

impl<T: Item> Disk<T> {
    fn push(&mut self, item: &T) -> Result<()> {
        self.len += 1;
        let writer = self.writer.as_mut().ok_or_else(unreadable)?;
        writer.push(0, |out| item.save(out))
    }

    fn with<R>(&self, number: usize, read: impl FnOnce(Option<&T>) -> R) -> Result<R> {
        if number >= self.len {
            return Ok(read(None));
        }
        let mut reading = self.read.borrow_mut();
        let reading = reading.as_mut().ok_or_else(unreadable)?;
        if reading.item.as_ref().is_none_or(|(at, _)| *at != number) {
            reading.reader.seek(number as u64)?;
            let bytes = reading.reader.next_entry()?.ok_or_else(unreadable)?;
            let item = T::read(bytes).ok_or_else(unreadable)?;
            reading.item = Some((number, item));
        }
        Ok(read(reading.item.as_ref().map(|(_, item)| item)))
    }
}
