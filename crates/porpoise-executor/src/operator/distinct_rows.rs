//! Rows of which each key's first one passes: DISTINCT and UNION.
//!
//! When the keys take more memory than they should, no more are kept: rows whose key is known are
//! dropped, and the others put aside, divided by a hash of their keys ([`spill`](crate::spill)). They
//! pass behind all others, a part at a time; where the order of rows counts, they are sorted by the
//! numbers in which they came.

use porpoise_core::error::Result;
use porpoise_core::memory::Buffer;
use porpoise_core::temporary_file::{Part, PartReader, PartWriter};
use porpoise_expr::{EvalContext, SlotId};

use super::{DiskSort, RowOrder, SortedRows};
use crate::Exec;
use crate::key_map::KeyMap;
use crate::row_buffer::{restore, save};
use crate::spill::{Hashing, filled, unreadable};

/// So often keys that grow ask whether they are to grow no more.
const ASKED_EVERY_BYTES: usize = 64 << 10;

pub(super) struct DistinctRows {
    order: RowOrder,
    seen: KeyMap,
    asked_at: usize,
    aside: Option<Box<Aside>>,
}

/// Rows that were put aside.
struct Aside {
    slots: Vec<SlotId>,
    hashing: Hashing,
    /// Where rows go while their keys can't be kept, of the input or of a part.
    writer: Option<PartWriter>,
    /// How many rows were put aside of the input.
    rows: u64,
    parts: Vec<(Hashing, Part)>,
    reader: Option<PartReader>,
    asked_at: usize,
    in_order: Option<SortedRows>,
    is_begun: bool,
    /// The number and the saved bytes of the row that passes.
    number: u64,
    saved: Vec<u8>,
}

/// What an entry has beside its row: the number in which it came, and the key.
struct Entry<'b> {
    number: u64,
    key: &'b [u8],
    saved: &'b [u8],
}

impl DistinctRows {
    pub(super) fn new(order: RowOrder) -> DistinctRows {
        DistinctRows {
            order,
            seen: KeyMap::default(),
            asked_at: ASKED_EVERY_BYTES,
            aside: None,
        }
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.asked_at = ASKED_EVERY_BYTES;
        self.aside = None;
    }

    /// Whether the current row passes: its key is new. If that can't be told yet, the slots' rows
    /// are put aside.
    #[inline]
    pub(super) fn is_new(
        &mut self,
        exec: &mut Exec<'_>,
        key: &[u8],
        slots: impl FnOnce() -> Vec<SlotId>,
    ) -> Result<bool> {
        if let Some(aside) = &mut self.aside {
            if self.seen.get(key).is_none() {
                exec.check_interrupt()?;
                aside.put(exec, key)?;
            }
            return Ok(false);
        }
        let is_new = self.seen.insert(&exec.session.memory, key)?.1;
        if self.seen.bytes() >= self.asked_at {
            self.asked_at = self.seen.bytes() + ASKED_EVERY_BYTES;
            if exec
                .session
                .memory
                .is_to_spill(Buffer::Table, self.seen.bytes())
            {
                self.aside = Some(Box::new(Aside::new(exec, slots())?));
            }
        }
        Ok(is_new)
    }

    /// The input has ended: leaves the next row of those that were put aside in the slots.
    pub(super) fn next_aside(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(aside) = &mut self.aside else {
            return Ok(false);
        };
        if !std::mem::replace(&mut aside.is_begun, true) {
            self.seen.clear();
            aside.take_parts()?;
            if self.order == RowOrder::Kept {
                let mut sort = DiskSort::new(exec);
                while aside.next(exec, &mut self.seen)? {
                    sort.push_saved(exec, &aside.number.to_be_bytes(), &aside.saved)?;
                }
                aside.in_order = Some(sort.finish(exec)?);
            }
        }
        if let Some(rows) = &mut aside.in_order {
            return rows.next(exec, &aside.slots);
        }
        let found = aside.next(exec, &mut self.seen)?;
        if found {
            restore(&aside.saved, &mut exec.frame, &aside.slots);
        }
        Ok(found)
    }
}

impl Aside {
    fn new(exec: &Exec<'_>, slots: Vec<SlotId>) -> Result<Aside> {
        exec.count_disk_table();
        let account = &exec.session.memory;
        let hashing = Hashing::new(account, Buffer::Table);
        Ok(Aside {
            slots,
            hashing,
            writer: Some(hashing.create(account)?),
            rows: 0,
            parts: Vec::new(),
            reader: None,
            asked_at: ASKED_EVERY_BYTES,
            in_order: None,
            is_begun: false,
            number: 0,
            saved: Vec::new(),
        })
    }

    /// Puts the current row aside.
    fn put(&mut self, exec: &Exec<'_>, key: &[u8]) -> Result<()> {
        let number = self.rows;
        self.rows += 1;
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        writer.push(self.hashing.part_of(key), |out| {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            save(&exec.frame, &self.slots, out);
        })
    }

    /// What was put aside is there to be read.
    fn take_parts(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            let deeper = self.hashing.deeper();
            let parts = filled(writer.finish()?).into_iter();
            self.parts.extend(parts.map(|part| (deeper, part)));
        }
        Ok(())
    }

    /// Finds the next row that passes.
    fn next(&mut self, exec: &Exec<'_>, seen: &mut KeyMap) -> Result<bool> {
        let account = &exec.session.memory;
        loop {
            exec.check_interrupt()?;
            let Some(reader) = &mut self.reader else {
                let Some((hashing, part)) = self.parts.pop() else {
                    return Ok(false);
                };
                (self.hashing, self.reader) = (hashing, Some(part.reader()));
                seen.clear();
                self.asked_at = ASKED_EVERY_BYTES;
                continue;
            };
            let Some(bytes) = reader.next_entry()? else {
                self.reader = None;
                self.take_parts()?;
                continue;
            };
            let Entry { number, key, saved } = split(bytes).ok_or_else(unreadable)?;
            if let Some(writer) = &mut self.writer {
                if seen.get(key).is_none() {
                    let part = self.hashing.part_of(key);
                    writer.push(part, |out| out.extend_from_slice(bytes))?;
                }
                continue;
            }
            if !seen.insert(account, key)?.1 {
                continue;
            }
            if seen.bytes() >= self.asked_at {
                self.asked_at = seen.bytes() + ASKED_EVERY_BYTES;
                if account.is_to_spill(Buffer::Table, seen.bytes()) {
                    self.writer = Some(self.hashing.create(account)?);
                }
            }
            self.number = number;
            self.saved.clear();
            self.saved.extend_from_slice(saved);
            return Ok(true);
        }
    }
}

fn split(bytes: &[u8]) -> Option<Entry<'_>> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (key, saved) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    Some(Entry {
        number: u64::from_le_bytes(*number),
        key,
        saved,
    })
}
