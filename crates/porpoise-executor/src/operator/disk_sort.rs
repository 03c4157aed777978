//! Rows that are sorted on disk, by keys that are bytes.

use porpoise_core::error::Result;
use porpoise_core::external_sort::{ExternalSort, SortedEntries};
use porpoise_core::memory::Buffer;
use porpoise_expr::{EvalContext, SlotId};

use crate::Exec;
use crate::row_buffer::{restore, save};

/// Rows that are being collected.
pub struct DiskSort {
    sort: ExternalSort,
    saved: Vec<u8>,
}

impl DiskSort {
    /// A sort that takes half of what a buffer may have: what it takes over is beside it.
    pub fn new(exec: &Exec<'_>) -> DiskSort {
        let account = &exec.session.memory;
        DiskSort {
            sort: ExternalSort::new(account.buffer_bytes_max(Buffer::Sort) / 2, account),
            saved: Vec::new(),
        }
    }

    /// Adds the slots' current rows. Those of equal keys keep the order in which they come.
    ///
    /// # Errors
    /// As [`ExternalSort::push`].
    pub fn push(&mut self, exec: &Exec<'_>, key: &[u8], slots: &[SlotId]) -> Result<()> {
        self.saved.clear();
        save(&exec.frame, slots, &mut self.saved);
        self.sort
            .push(key, &self.saved, &mut || exec.check_interrupt())
    }

    /// Adds a row that was saved.
    ///
    /// # Errors
    /// As [`ExternalSort::push`].
    pub fn push_saved(&mut self, exec: &Exec<'_>, key: &[u8], saved: &[u8]) -> Result<()> {
        self.sort.push(key, saved, &mut || exec.check_interrupt())
    }

    /// Sorts.
    ///
    /// # Errors
    /// As [`ExternalSort::finish`].
    pub fn finish(self, exec: &Exec<'_>) -> Result<SortedRows> {
        let sorted = self.sort.finish(&mut || exec.check_interrupt())?;
        Ok(SortedRows(sorted))
    }
}

/// Rows in order.
pub struct SortedRows(SortedEntries);

impl SortedRows {
    /// Makes the next row the slots' current one; false if there is none.
    ///
    /// # Errors
    /// What reading the disk fails with, and 1317 where the statement is to end.
    pub fn next(&mut self, exec: &mut Exec<'_>, slots: &[SlotId]) -> Result<bool> {
        exec.check_interrupt()?;
        let Some((_, saved)) = self.0.next_entry()? else {
            return Ok(false);
        };
        restore(saved, &mut exec.frame, slots);
        Ok(true)
    }

    /// The next row's key and what was saved with it.
    ///
    /// # Errors
    /// As [`SortedRows::next`].
    pub fn next_entry(&mut self, exec: &Exec<'_>) -> Result<Option<(&[u8], &[u8])>> {
        exec.check_interrupt()?;
        self.0.next_entry()
    }
}
