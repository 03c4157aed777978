//! Rows kept for later: what sorts, hash joins and materialised tables hold.
//!
//! A saved row is the state of some slots, one after the other, in one allocation shared by all rows:
//!
//! ```text
//! per slot: null flag (1) | key length (u32) | key | row length (u32) | row
//! ```

use crate::executor::Frame;
use crate::expr::Slot;

/// Saved rows, in the order they were pushed.
#[derive(Default)]
pub struct RowBuffer {
    bytes: Vec<u8>,
    /// Where each row begins.
    starts: Vec<usize>,
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

    pub fn push(&mut self, frame: &Frame, slots: &[Slot]) {
        self.starts.push(self.bytes.len());
        save(frame, slots, &mut self.bytes);
    }

    pub fn restore(&self, row: usize, frame: &mut Frame, slots: &[Slot]) {
        restore(&self.bytes[self.starts[row]..], frame, slots);
    }
}

/// Appends the slots' rows.
pub fn save(frame: &Frame, slots: &[Slot], out: &mut Vec<u8>) {
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
pub fn restore(mut saved: &[u8], frame: &mut Frame, slots: &[Slot]) {
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
