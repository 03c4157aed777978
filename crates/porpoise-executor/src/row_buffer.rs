//! Rows kept for later: what sorts, hash joins and materialised tables hold.
//!
//! A saved row is the state of some slots, one after the other:
//!
//! ```text
//! per slot: null flag (1) | key length (u32) | key | row length (u32) | row
//! ```
//!
//! Rows that are [put aside](RowBuffer::put_aside) go to a temporary file when they take more memory
//! than they should; a [`RowReader`] reads them from where they are.

use std::cell::RefCell;
use std::sync::Arc;

use porpoise_core::error::{Error, Result};
use porpoise_core::memory::{Arena, Buffer, Charge, MemoryAccount, Place};
use porpoise_core::temporary_file::{Part, PartReader, PartWriter};
use porpoise_expr::SlotId;

use crate::{Exec, Frame};

/// Saved rows, in the order they were pushed.
///
/// Its memory comes from a buffer that the thread has done with, and goes back there: statements
/// that sort a few rows come by the thousand, and growing a buffer from nothing takes longer than
/// filling it.
pub struct RowBuffer {
    rows: Arena,
    /// Where each row begins.
    places: Vec<Place>,
    charge: Charge,
    /// At so many bytes the account is asked whether they are too many.
    asked_at: usize,
    /// Where the rows are, if not here.
    disk: Option<Box<Disk>>,
}

/// Rows in a temporary file.
enum Disk {
    Writing(PartWriter),
    Written(Part),
}

/// So often a buffer that grows asks whether it is to go to disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;
/// Rows are written so many bytes at a time, and read, where they are read in no order.
const BLOCK_BYTES: usize = 32 << 10;

/// So much of a row is fetched before it is restored.
const FETCHED_BYTES_MAX: usize = 512;
/// So few bytes are in the processor's caches, written as they were a moment ago.
const CACHED_BYTES: usize = 256 << 10;
const CACHE_LINE_BYTES: usize = 64;

/// Buffers that a thread keeps, and how large each may be.
const SPARES_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SPARES: RefCell<Vec<(Vec<u8>, Vec<Place>)>> = const { RefCell::new(Vec::new()) };
}

impl Default for RowBuffer {
    fn default() -> RowBuffer {
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
        let (bytes, places) = spare.ok().flatten().unwrap_or_default();
        RowBuffer {
            rows: Arena::in_buffer(bytes),
            places,
            charge: Charge::default(),
            asked_at: ASKED_EVERY_BYTES,
            disk: None,
        }
    }
}

impl Drop for RowBuffer {
    fn drop(&mut self) {
        let (buffer, mut places) = (self.rows.take_buffer(), std::mem::take(&mut self.places));
        let bytes = buffer.capacity() + places.capacity() * size_of::<Place>();
        if bytes == 0 || bytes > SPARE_BYTES_MAX {
            return;
        }
        places.clear();
        // A thread that ends has no spares any more: then the buffer is just dropped.
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARES_MAX {
                spares.push((buffer, places));
            }
        });
    }
}

impl RowBuffer {
    pub fn len(&self) -> usize {
        match self.disk.as_deref() {
            None => self.places.len(),
            Some(Disk::Writing(rows)) => rows.entries(0) as usize,
            Some(Disk::Written(rows)) => rows.entries() as usize,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.charge.bytes()
    }

    pub fn clear(&mut self) {
        self.disk = None;
        self.asked_at = ASKED_EVERY_BYTES;
        self.clear_memory();
    }

    fn clear_memory(&mut self) {
        self.rows.clear();
        if self.places.capacity() * size_of::<Place>() > SPARE_BYTES_MAX {
            self.places = Vec::new();
        }
        self.places.clear();
        self.charge.clear();
    }

    /// Keeps the slots' current rows.
    ///
    /// # Errors
    /// Where the statement would take more memory than it may.
    pub fn push(&mut self, exec: &Exec<'_>, slots: &[SlotId]) -> Result<()> {
        let account = &exec.session.memory;
        self.charge.reserve(account, &mut self.places, 1)?;
        let len = saved_len(&exec.frame, slots);
        let (place, bytes) = self.rows.room(account, len)?;
        save(&exec.frame, slots, bytes);
        self.places.push(place);
        Ok(())
    }

    /// Keeps a row of a slot that isn't its current one.
    ///
    /// # Errors
    /// As [`push`](RowBuffer::push).
    pub fn push_row(&mut self, account: &Arc<MemoryAccount>, row: &[u8]) -> Result<()> {
        self.charge.reserve(account, &mut self.places, 1)?;
        let (place, bytes) = self.rows.room(account, HEAD_BYTES + row.len())?;
        save_slot(false, &[], row, bytes);
        self.places.push(place);
        Ok(())
    }

    /// Keeps a row that was saved.
    ///
    /// # Errors
    /// Where the statement would take more memory than it may.
    pub fn push_saved(&mut self, account: &Arc<MemoryAccount>, saved: &[u8]) -> Result<()> {
        self.charge.reserve(account, &mut self.places, 1)?;
        let place = self.rows.push(account, saved)?;
        self.places.push(place);
        Ok(())
    }

    /// Makes a row the slots' current one. The rows must be in memory, as they are when they were
    /// all pushed.
    pub fn restore(&self, row: usize, frame: &mut Frame, slots: &[SlotId]) {
        restore(self.rows.from(self.places[row]), frame, slots);
    }

    /// Has the processor fetch rows, which are in memory, all at once: those that are restored in no order
    /// are each waited for otherwise.
    pub fn fetch(&self, rows: impl Iterator<Item = usize>) {
        if self.rows.bytes() < CACHED_BYTES {
            return;
        }
        let mean_bytes = self.rows.bytes() / self.places.len().max(1);
        let mut read = 0;
        for row in rows {
            let saved = self.rows.from(self.places[row]);
            for at in (0..mean_bytes.min(FETCHED_BYTES_MAX)).step_by(CACHE_LINE_BYTES) {
                read ^= saved.get(at).copied().unwrap_or(0);
            }
        }
        std::hint::black_box(read);
    }

    /// A row as it is kept, of so many slots. The rows must be in memory.
    pub fn saved(&self, row: usize, slots: usize) -> &[u8] {
        cut(self.rows.from(self.places[row]), slots)
    }

    /// Keeps the slots' current rows, in memory or, where that is short, on disk. Behind the last
    /// one comes [`finish`](RowBuffer::finish).
    ///
    /// # Errors
    /// Where the statement would take more memory or disk than it may, or the disk fails.
    pub fn put_aside(&mut self, exec: &Exec<'_>, slots: &[SlotId]) -> Result<()> {
        if let Some(Disk::Writing(rows)) = self.disk.as_deref_mut() {
            return rows.push(0, |out| save(&exec.frame, slots, out));
        }
        self.push(exec, slots)?;
        match self.bytes() < self.asked_at {
            true => Ok(()),
            false => self.ask(exec, slots.len()),
        }
    }

    #[cold]
    fn ask(&mut self, exec: &Exec<'_>, slots: usize) -> Result<()> {
        let account = &exec.session.memory;
        self.asked_at = self.bytes() + ASKED_EVERY_BYTES;
        if !account.is_to_spill(Buffer::Table, self.bytes()) {
            return Ok(());
        }
        exec.count_disk_table();
        let mut writer = PartWriter::create(account, 1, BLOCK_BYTES)?;
        for row in 0..self.places.len() {
            let saved = self.saved(row, slots);
            writer.push(0, |out| out.extend_from_slice(saved))?;
        }
        self.disk = Some(Box::new(Disk::Writing(writer)));
        self.clear_memory();
        Ok(())
    }

    /// Whatever was put aside can be read.
    ///
    /// # Errors
    /// As [`put_aside`](RowBuffer::put_aside).
    pub fn finish(&mut self) -> Result<()> {
        let Some(disk) = self.disk.take() else {
            return Ok(());
        };
        self.disk = Some(match *disk {
            Disk::Writing(rows) => {
                let mut parts = rows.finish()?;
                let rows = parts.pop().ok_or_else(unfinished)?;
                Box::new(Disk::Written(rows))
            }
            Disk::Written(_) => disk,
        });
        Ok(())
    }
}

fn unfinished() -> Error {
    Error::engine_error("rows that are still being put aside")
}

/// Reads a buffer's rows, one after the other or by their numbers.
#[derive(Default)]
pub struct RowReader {
    /// The number of the next row.
    at: usize,
    disk: Option<Box<PartReader>>,
}

impl RowReader {
    /// Makes the next row the slots' current one; false if there is none.
    ///
    /// # Errors
    /// What reading the disk fails with.
    #[inline]
    pub fn next(&mut self, rows: &RowBuffer, frame: &mut Frame, slots: &[SlotId]) -> Result<bool> {
        if rows.disk.is_none() {
            let Some(place) = rows.places.get(self.at) else {
                return Ok(false);
            };
            self.at += 1;
            restore(rows.rows.from(*place), frame, slots);
            return Ok(true);
        }
        self.next_on_disk(rows, frame, slots)
    }

    #[cold]
    fn next_on_disk(
        &mut self,
        rows: &RowBuffer,
        frame: &mut Frame,
        slots: &[SlotId],
    ) -> Result<bool> {
        let reader = match &mut self.disk {
            Some(reader) => reader,
            None => match rows.disk.as_deref() {
                Some(Disk::Written(rows)) => self.disk.insert(Box::new(rows.reader())),
                _ => return Err(unfinished()),
            },
        };
        reader.seek(self.at as u64)?;
        let Some(saved) = reader.next_entry()? else {
            return Ok(false);
        };
        self.at += 1;
        restore(saved, frame, slots);
        Ok(true)
    }
}

/// A slot's null flag, and two lengths.
const HEAD_BYTES: usize = 1 + 2 * size_of::<u32>();

/// How many bytes [`save`] appends.
pub fn saved_len(frame: &Frame, slots: &[SlotId]) -> usize {
    let of_slot = |slot: &SlotId| {
        let row = &frame.slots[slot.0 as usize];
        HEAD_BYTES + row.key.len() + row.bytes.len()
    };
    slots.iter().map(of_slot).sum()
}

/// Appends the slots' rows.
pub fn save(frame: &Frame, slots: &[SlotId], out: &mut Vec<u8>) {
    for slot in slots {
        let row = &frame.slots[slot.0 as usize];
        save_slot(row.null, &row.key, &row.bytes, out);
    }
}

#[inline]
fn save_slot(null: bool, key: &[u8], row: &[u8], out: &mut Vec<u8>) {
    out.push(u8::from(null));
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    out.extend_from_slice(row);
}

fn take<'a>(saved: &mut &'a [u8]) -> &'a [u8] {
    let (length, rest) = saved.split_at(4);
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    let (bytes, rest) = rest.split_at(length);
    *saved = rest;
    bytes
}

/// What [`save`] wrote of so many slots, without what lies behind it.
fn cut(saved: &[u8], slots: usize) -> &[u8] {
    let mut rest = saved;
    for _ in 0..slots {
        rest = &rest[1..];
        take(&mut rest);
        take(&mut rest);
    }
    &saved[..saved.len() - rest.len()]
}

/// Puts back what [`save`] wrote.
pub fn restore(mut saved: &[u8], frame: &mut Frame, slots: &[SlotId]) {
    for slot in slots {
        let row = &mut frame.slots[slot.0 as usize];
        row.null = saved[0] != 0;
        saved = &saved[1..];
        let key = take(&mut saved);
        row.key.clear();
        row.key.extend_from_slice(key);
        let bytes = take(&mut saved);
        row.bytes.clear();
        row.bytes.extend_from_slice(bytes);
    }
}
