//! ORDER BY, and batches of rows that are put in order.
//!
//! Rows that take more memory than they should go on to a sort on disk, with their whole keys.

use std::cmp::Ordering;
use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Buffer, Charge, MemoryAccount, Place};
use porpoise_core::sort;
use porpoise_expr::EvalContext;
use porpoise_expr::SlotId;
use porpoise_expr::aggregate::SortKey;
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;
use porpoise_types::key::{KEY_HEAD_BYTES, KeyHead};

use super::disk_sort::{DiskSort, SortedRows};
use super::{BoxedOperator, Operator, RowOrder, build_with, sort_key_of};
use crate::Exec;
use crate::batch::{Batch, OrderProgram, is_whole, load_row};
use crate::eval::{Evaluate, append_key, push_text};
use crate::row_buffer::{self, RowBuffer, saved_len};

/// A row to be sorted.
#[derive(Clone, Copy)]
struct Sortable {
    /// The bits of its key's head: nearly always enough to tell two rows apart.
    bits: [u64; 2],
    row: u32,
    /// How long the key is, if the head is all of it.
    whole_len: Option<u8>,
}

impl Sortable {
    fn new(head: KeyHead, row: u32) -> Sortable {
        let mut sortable = Sortable {
            bits: [0; 2],
            row,
            whole_len: head.whole_len().map(|len| len as u8),
        };
        sortable.set_bits(head.bits());
        sortable
    }

    #[inline]
    fn bits(&self) -> u128 {
        u128::from(self.bits[0]) << 64 | u128::from(self.bits[1])
    }

    fn set_bits(&mut self, bits: u128) {
        self.bits = [(bits >> 64) as u64, bits as u64];
    }

    /// By the heads; equal ones by the order in which their rows came.
    #[inline]
    fn by_head(&self, other: &Sortable) -> Ordering {
        // The first half tells two rows apart nearly always.
        match self.bits[0].cmp(&other.bits[0]) {
            Ordering::Equal => (self.bits[1], self.row).cmp(&(other.bits[1], other.row)),
            unequal => unequal,
        }
    }
}

/// Sorts all rows, or batches of them.
///
/// ```text
/// 1. rows come in, from a scan in batches: each is kept, and the head of its key is made
/// 2. sort by these
/// 3. where they are equal, and not the whole key, make the keys and sort by what comes behind that
///    which all of them have
/// ```
///
/// So of a long text most is never looked at. Keys that are more than columns are made as the rows
/// come, unless the head is all of them: what they are computed from may change.
pub(super) struct Sort<'p> {
    input: BoxedOperator<'p>,
    distinct: bool,
    extent: Extent,
    /// The input has no more rows.
    is_read: bool,
    kept: Kept<'p>,
    at: usize,
    /// What yields the rows, where they are too many for memory, and the last one's key, if it
    /// counts.
    on_disk: Option<Box<SortedRows>>,
    last_key: Option<Vec<u8>>,
}

/// Rows that are kept to be sorted.
struct Kept<'p> {
    keys: &'p [SortKey],
    slots: &'p [SlotId],
    is_of_columns: bool,
    rows: RowBuffer,
    key_bytes: Arena,
    /// Where each row's key lies, and how long it is, if it was made.
    keys_at: Vec<Option<(Place, u32)>>,
    order: Vec<Sortable>,
    charge: Charge,
    /// Is overwritten.
    key: KeyBuf,
}

/// How much is sorted at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    All,
    /// As many rows as fit into `join_buffer_size`.
    Batches,
}

impl<'p> Sort<'p> {
    /// `order` is what the input's order counts.
    pub(super) fn new(
        input: &'p Node,
        keys: &'p [SortKey],
        distinct: bool,
        slots: &'p [SlotId],
        extent: Extent,
        order: RowOrder,
    ) -> Sort<'p> {
        Sort {
            input: build_with(input, order),
            distinct,
            extent,
            is_read: false,
            kept: Kept {
                keys,
                slots,
                is_of_columns: is_of_columns(keys),
                rows: RowBuffer::default(),
                key_bytes: Arena::default(),
                keys_at: Vec::new(),
                order: Vec::new(),
                charge: Charge::default(),
                key: KeyBuf::new(),
            },
            at: 0,
            on_disk: None,
            last_key: None,
        }
    }
}

/// So often a sort that grows asks whether it is to go to disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;
/// How many rows may be sorted without a look whether the statement is to end: by their heads, and by
/// keys that lie elsewhere.
const HEADS_RUN: usize = 1 << 18;
const KEYS_RUN: usize = 1 << 14;
/// So many rows are fetched at once.
const FETCHED_ROWS: usize = 16;
/// So many rows are taken one by one before it is asked again whether there is a batch.
const ROWS_TO_ASK: u32 = 16;
/// So few rows are sorted by their keys as they are.
const TIED_FEW: usize = 16;

/// Whether keys are columns' values alone, which can be read again.
pub(super) fn is_of_columns(keys: &[SortKey]) -> bool {
    keys.iter().all(|key| key.expr.as_column().is_some())
}

/// The head of the current row's key, of columns.
pub(super) fn head_of_key(exec: &mut Exec<'_>, keys: &[SortKey]) -> Result<KeyHead> {
    let mut head = KeyHead::default();
    for key in keys {
        if head.is_full() {
            break;
        }
        if let Some((text, collation)) = exec.text_column(&key.expr) {
            push_text(exec, text, collation, key.descending, &mut head)?;
        } else {
            let value = key.expr.eval(exec)?;
            let mut part = KeyBuf::new();
            append_key(exec, &value, &key.expr.ty, key.descending, &mut part)?;
            head.push_part(&part);
        }
    }
    Ok(head)
}

impl<'p> Kept<'p> {
    /// Forgets all rows.
    fn clear(&mut self) {
        self.rows.clear();
        self.key_bytes.clear();
        self.keys_at = Vec::new();
        self.order = Vec::new();
        self.charge.clear();
    }

    /// How much memory the rows take, in bytes.
    fn bytes(&self) -> usize {
        self.rows.bytes() + self.key_bytes.bytes() + self.charge.bytes()
    }

    /// The number of the next row.
    fn next_row(&self) -> Result<u32> {
        u32::try_from(self.rows.len())
            .map_err(|_| crate::Error::engine_error("a sort of too many rows"))
    }

    /// Keeps the current row.
    fn add(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let row = self.next_row()?;
        let head = if self.is_of_columns {
            head_of_key(exec, self.keys)?
        } else {
            sort_key_of(exec, self.keys, &mut self.key)?;
            let head = KeyHead::of(&self.key);
            self.note_key_of(exec, row, head)?;
            head
        };
        self.place(&exec.session.memory, head, row)?;
        self.rows.push(exec, self.slots)
    }

    /// Keeps the rows of a batch.
    fn add_batch(
        &mut self,
        exec: &mut Exec<'_>,
        batch: &Batch<'_>,
        program: Option<&mut OrderProgram<'p>>,
    ) -> Result<()> {
        let layouts = exec.layouts;
        let layout = &layouts[batch.slot.0 as usize];
        let made = match program {
            Some(program) => {
                let keys = program.run(exec, &layout.layout, &batch.rows)?;
                keys.map(|keys| (program, keys))
            }
            None => None,
        };
        let Some((program, keys)) = made else {
            for row in &batch.rows {
                exec.check_interrupt()?;
                load_row(exec, batch.slot, row);
                self.add(exec)?;
            }
            return Ok(());
        };
        let first = self.next_row()?;
        for (row, head) in (first..).zip(program.heads(exec, &keys)?) {
            self.place(&exec.session.memory, *head, row)?;
        }
        let is_only_slot = self.slots == [batch.slot];
        for (place, row) in batch.rows.iter().enumerate() {
            exec.check_interrupt()?;
            let number = self.next_row()?;
            let is_head_whole = self.order[number as usize].whole_len.is_some();
            if !self.is_of_columns && !is_head_whole {
                program.key(exec, &keys, place, &mut self.key)?;
                self.note_key(exec, number)?;
            }
            if is_only_slot && is_whole(layout, row) {
                self.rows.push_row(&exec.session.memory, row)?;
            } else {
                load_row(exec, batch.slot, row);
                self.rows.push(exec, self.slots)?;
            }
        }
        Ok(())
    }

    /// Notes the head of a row's key.
    #[inline]
    fn place(&mut self, account: &Arc<MemoryAccount>, head: KeyHead, row: u32) -> Result<()> {
        self.charge.reserve(account, &mut self.order, 1)?;
        self.order.push(Sortable::new(head, row));
        Ok(())
    }

    /// What a row's key, which was made, has behind so many bytes.
    fn key_behind(&self, row: &Sortable, bytes: usize) -> &[u8] {
        self.made_key(row.row).get(bytes..).unwrap_or_default()
    }

    /// A row's key, if it was made.
    fn made_key(&self, row: u32) -> &[u8] {
        match self.keys_at.get(row as usize) {
            Some(Some((place, len))) => &self.key_bytes.from(*place)[..*len as usize],
            _ => &[],
        }
    }

    /// Keeps a row's key, which was made.
    fn note_key(&mut self, exec: &Exec<'_>, row: u32) -> Result<()> {
        let account = &exec.session.memory;
        let place = self.key_bytes.push(account, &self.key)?;
        let row = row as usize;
        if self.keys_at.len() <= row {
            let more = row + 1 - self.keys_at.len();
            self.charge.reserve(account, &mut self.keys_at, more)?;
            self.keys_at.resize(row + 1, None);
        }
        self.keys_at[row] = Some((place, self.key.len() as u32));
        Ok(())
    }

    /// As [`note_key`](Self::note_key), unless the head is all of it.
    fn note_key_of(&mut self, exec: &Exec<'_>, row: u32, head: KeyHead) -> Result<()> {
        match head.whole_len() {
            Some(_) => Ok(()),
            None => self.note_key(exec, row),
        }
    }

    /// Whether a row has the key of the one before it.
    fn is_repeated(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let (a, b) = (&self.order[before], &self.order[at]);
        a.bits == b.bits
            && match (a.whole_len, b.whole_len) {
                (None, None) => self.made_key(a.row) == self.made_key(b.row),
                (a, b) => a == b,
            }
    }

    /// Puts the rows in order.
    fn sort(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        sort::sort(&mut order, HEADS_RUN, Sortable::by_head, || {
            exec.check_interrupt()
        })?;
        let tied = order.chunk_by_mut(|a, b| a.bits == b.bits);
        for (number, tied) in tied.enumerate() {
            if number % TIED_FEW == 0 {
                exec.check_interrupt()?;
            }
            if tied.len() == 1 || tied.iter().all(|row| row.whole_len.is_some()) {
                continue;
            }
            self.settle(exec, tied)?;
        }
        self.order = order;
        Ok(())
    }

    /// Puts rows in order whose heads are equal, and less than their keys.
    fn settle(&mut self, exec: &mut Exec<'_>, tied: &mut [Sortable]) -> Result<()> {
        if self.is_of_columns {
            for next in tied.chunks(FETCHED_ROWS) {
                self.rows.fetch(next.iter().map(|row| row.row as usize));
                for row in next {
                    exec.check_interrupt()?;
                    let slots = self.slots;
                    self.rows.restore(row.row as usize, &mut exec.frame, slots);
                    sort_key_of(exec, self.keys, &mut self.key)?;
                    self.note_key(exec, row.row)?;
                }
            }
        }
        if tied.len() <= TIED_FEW {
            self.settle_few(tied, KEY_HEAD_BYTES);
            return Ok(());
        }
        // So many bytes are the same of all keys.
        let mut parts = vec![(tied, KEY_HEAD_BYTES)];
        while let Some((tied, same)) = parts.pop() {
            let same = self.common(exec, tied, same)?;
            for rows in tied.chunks_mut(KEYS_RUN) {
                exec.check_interrupt()?;
                for row in rows {
                    row.set_bits(KeyHead::of(self.key_behind(row, same)).bits());
                }
            }
            sort::sort(tied, HEADS_RUN, Sortable::by_head, || {
                exec.check_interrupt()
            })?;
            let same = same + KEY_HEAD_BYTES;
            let tied = tied.chunk_by_mut(|a, b| a.bits == b.bits);
            for (number, tied) in tied.enumerate() {
                if number % KEYS_RUN == 0 {
                    exec.check_interrupt()?;
                }
                // Those of few rows are no reason for a list of them.
                if tied.len() <= TIED_FEW {
                    self.settle_few(tied, same);
                } else if self.are_longer(exec, tied, same)? {
                    parts.push((tied, same));
                }
            }
        }
        Ok(())
    }

    /// Puts few rows in order whose keys have the same bytes at their beginning, so many.
    fn settle_few(&self, tied: &mut [Sortable], same: usize) {
        // Equal keys keep the order in which they came.
        let key = |row: &Sortable| (self.key_behind(row, same), row.row);
        tied.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Whether a key of the rows is longer than so many bytes.
    fn are_longer(&self, exec: &Exec<'_>, rows: &[Sortable], same: usize) -> Result<bool> {
        for rows in rows.chunks(KEYS_RUN) {
            exec.check_interrupt()?;
            let mut rows = rows.iter();
            if rows.any(|row| !self.key_behind(row, same).is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many bytes the keys of rows begin with that are the same: so many, or more.
    fn common(&self, exec: &Exec<'_>, rows: &[Sortable], same: usize) -> Result<usize> {
        let Some((first, others)) = rows.split_first() else {
            return Ok(same);
        };
        let mut common = self.key_behind(first, same);
        for (number, row) in others.iter().enumerate() {
            if number % KEYS_RUN == 0 {
                exec.check_interrupt()?;
            }
            let key = self.key_behind(row, same);
            if !key.starts_with(common) {
                let len = common.iter().zip(key).take_while(|(a, b)| a == b).count();
                common = &common[..len];
            }
        }
        Ok(same + common.len())
    }
}

impl Sort<'_> {
    /// Has what was read and the rest of the input sorted on disk.
    #[cold]
    fn go_to_disk(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut sort = DiskSort::new(exec);
        let kept = &mut self.kept;
        let mut key = KeyBuf::new();
        // The input goes on from its current row, which is the last one that was kept.
        for (number, row) in kept.order.iter().enumerate() {
            kept.rows.restore(number, &mut exec.frame, kept.slots);
            match row.whole_len {
                Some(len) => {
                    let head = row.bits().to_be_bytes();
                    sort.push(exec, &head[..usize::from(len)], kept.slots)?;
                }
                None if kept.is_of_columns => {
                    sort_key_of(exec, kept.keys, &mut key)?;
                    sort.push(exec, &key, kept.slots)?;
                }
                None => sort.push(exec, kept.made_key(row.row), kept.slots)?,
            }
        }
        kept.clear();
        while self.input.next(exec)? {
            sort_key_of(exec, kept.keys, &mut key)?;
            sort.push(exec, &key, kept.slots)?;
        }
        self.is_read = true;
        self.on_disk = Some(Box::new(sort.finish(exec)?));
        Ok(())
    }

    /// The next row of those on disk.
    fn next_on_disk(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(rows) = &mut self.on_disk else {
            return Ok(false);
        };
        if !self.distinct {
            return rows.next(exec, self.kept.slots);
        }
        while let Some((key, saved)) = rows.next_entry(exec)? {
            if self.last_key.as_deref() == Some(key) {
                continue;
            }
            let last = self.last_key.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            row_buffer::restore(saved, &mut exec.frame, self.kept.slots);
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads the next rows, and puts them in order.
    fn fill(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let most_bytes = match self.extent {
            Extent::All => usize::MAX,
            Extent::Batches => exec.session.join_buffer_size as usize,
        };
        // What of a scan's batch doesn't fit would have to wait.
        let takes_batches = self.extent == Extent::All && self.input.has_batches();
        let mut program = None;
        let kept = &mut self.kept;
        kept.clear();
        self.at = 0;
        let mut asked_at = ASKED_EVERY_BYTES;
        let (mut bytes, mut alone) = (0, 0);
        while bytes < most_bytes {
            if takes_batches
                && alone % ROWS_TO_ASK == 0
                && let Some(batch) = self.input.next_batch(exec)?
            {
                let new = || OrderProgram::new(exec, batch.slot, kept.keys);
                let program = program.get_or_insert_with(new);
                kept.add_batch(exec, &batch, program.as_mut())?;
            } else if self.input.next(exec)? {
                bytes += match self.extent {
                    Extent::All => 0,
                    Extent::Batches => saved_len(&exec.frame, kept.slots),
                };
                kept.add(exec)?;
                alone += 1;
            } else {
                self.is_read = true;
                break;
            }
            if kept.bytes() >= asked_at && self.extent == Extent::All {
                asked_at = kept.bytes() + ASKED_EVERY_BYTES;
                if exec.session.memory.is_to_spill(Buffer::Sort, kept.bytes()) {
                    return self.go_to_disk(exec);
                }
            }
        }
        kept.sort(exec)
    }
}

impl Operator for Sort<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.is_read = false;
        self.on_disk = None;
        self.last_key = None;
        self.input.open(exec)?;
        self.fill(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.on_disk.is_some() {
            return self.next_on_disk(exec);
        }
        loop {
            while let Some(row) = self.kept.order.get(self.at) {
                exec.check_interrupt()?;
                self.at += 1;
                if self.distinct && self.kept.is_repeated(self.at - 1) {
                    continue;
                }
                let kept = &self.kept;
                if (self.at - 1).is_multiple_of(FETCHED_ROWS) {
                    let next = kept.order[self.at - 1..].iter().take(FETCHED_ROWS);
                    kept.rows.fetch(next.map(|row| row.row as usize));
                }
                (kept.rows).restore(row.row as usize, &mut exec.frame, kept.slots);
                return Ok(true);
            }
            if self.is_read {
                return Ok(false);
            }
            self.fill(exec)?;
        }
    }
}
