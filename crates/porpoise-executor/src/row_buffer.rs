//! Rows kept for later: what sorts, hash joins and materialised tables hold.
//!
//! A saved row is the state of some slots, one after the other, in one allocation shared by all
//! rows:
//!
//! ```text
//! per slot: null flag (1) | key length (u32) | key | row length (u32) | row
//! ```

use std::cell::RefCell;

use porpoise_expr::SlotId;

use crate::Frame;

/// Saved rows, in the order they were pushed.
///
/// Its memory comes from a buffer that the thread has done with, and goes back there: statements
/// that sort a few rows come by the thousand, and growing a buffer from nothing takes longer than
/// filling it.
pub struct RowBuffer {
    bytes: Vec<u8>,
    /// Where each row begins.
    starts: Vec<usize>,
}

/// Buffers that a thread keeps, and how large each may be.
const SPARES_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SPARES: RefCell<Vec<(Vec<u8>, Vec<usize>)>> = const { RefCell::new(Vec::new()) };
}

impl Default for RowBuffer {
    fn default() -> RowBuffer {
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
        let (bytes, starts) = spare.ok().flatten().unwrap_or_default();
        RowBuffer { bytes, starts }
    }
}

impl Drop for RowBuffer {
    fn drop(&mut self) {
        let bytes = self.bytes.capacity() + self.starts.capacity() * size_of::<usize>();
        if bytes == 0 || bytes > SPARE_BYTES_MAX {
            return;
        }
        self.clear();
        let spare = (
            std::mem::take(&mut self.bytes),
            std::mem::take(&mut self.starts),
        );
        // A thread that ends has no spares any more: then the buffer is just dropped.
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARES_MAX {
                spares.push(spare);
            }
        });
    }
}

impl RowBuffer {
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    pub fn push(&mut self, frame: &Frame, slots: &[SlotId]) {
        self.starts.push(self.bytes.len());
        save(frame, slots, &mut self.bytes);
    }

    pub fn restore(&self, row: usize, frame: &mut Frame, slots: &[SlotId]) {
        restore(&self.bytes[self.starts[row]..], frame, slots);
    }
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
