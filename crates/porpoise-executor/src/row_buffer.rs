//! Rows kept for later: what sorts, hash joins and materialised tables hold.
//!
//! A saved row is the state of some slots, one after the other:
//!
//! ```text
//! per slot: null flag (1) | key length (u32) | key | row length (u32) | row
//! ```

use std::cell::RefCell;

use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Charge, Place};
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
}

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
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn clear(&mut self) {
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

    pub fn restore(&self, row: usize, frame: &mut Frame, slots: &[SlotId]) {
        restore(self.rows.from(self.places[row]), frame, slots);
    }
}

/// How many bytes [`save`] appends.
pub fn saved_len(frame: &Frame, slots: &[SlotId]) -> usize {
    /// The null flag, and two lengths.
    const HEAD: usize = 1 + 2 * size_of::<u32>();
    let of_slot = |slot: &SlotId| {
        let row = &frame.slots[slot.0 as usize];
        HEAD + row.key.len() + row.bytes.len()
    };
    slots.iter().map(of_slot).sum()
}

/// Appends the slots' rows.
pub fn save(frame: &Frame, slots: &[SlotId], out: &mut Vec<u8>) {
    for slot in slots {
        let row = &frame.slots[slot.0 as usize];
        out.push(row.null as u8);
        out.extend_from_slice(&(row.key.len() as u32).to_le_bytes());
        out.extend_from_slice(&row.key);
        out.extend_from_slice(&(row.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&row.bytes);
    }
}

/// Puts back what [`save`] wrote.
pub fn restore(mut saved: &[u8], frame: &mut Frame, slots: &[SlotId]) {
    fn take<'a>(saved: &mut &'a [u8]) -> &'a [u8] {
        let (length, rest) = saved.split_at(4);
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let (bytes, rest) = rest.split_at(length);
        *saved = rest;
        bytes
    }
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
