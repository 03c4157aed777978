//! ORDER BY, and batches of rows that are put in order.
//!
//! Rows that take more memory than they should go on to a sort on disk, with their whole keys.

use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Buffer, Charge, Place};
use porpoise_core::sort;
use porpoise_expr::EvalContext;
use porpoise_expr::SlotId;
use porpoise_expr::aggregate::SortKey;
use porpoise_planner::plan::Node;
use porpoise_types::KeyBuf;
use porpoise_types::key::encode_text_prefix;

use super::disk_sort::{DiskSort, SortedRows};
use super::{BoxedOperator, Operator, RowOrder, build_with, sort_key_of};
use crate::Exec;
use crate::eval::{Evaluate, append_key};
use crate::row_buffer::{self, RowBuffer, saved_len};

/// A row to be sorted.
#[derive(Clone, Copy)]
struct Sortable {
    /// The key's first bytes: nearly always enough to tell two rows apart.
    prefix: u64,
    row: u32,
    /// The key is no longer than its prefix.
    is_whole: bool,
}

/// Sorts all rows, or batches of them.
///
/// ```text
/// 1. rows come in: each is kept, and the first eight bytes of its key are taken
/// 2. sort by these
/// 3. where they are equal, and not the whole key, make the keys and sort by them
/// ```
///
/// So of a long text most is never looked at. Keys that are more than columns are made as the rows
/// come: what they are computed from may change.
pub(super) struct Sort<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    distinct: bool,
    slots: &'p [SlotId],
    extent: Extent,
    /// The input has no more rows.
    is_read: bool,
    rows: RowBuffer,
    key_bytes: Arena,
    /// Where each row's key lies, and how long it is, if it was made.
    keys_at: Vec<Option<(Place, u32)>>,
    order: Vec<Sortable>,
    charge: Charge,
    at: usize,
    /// What yields the rows, where they are too many for memory, and the last one's key, if it
    /// counts.
    on_disk: Option<Box<SortedRows>>,
    last_key: Option<Vec<u8>>,
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
            keys,
            distinct,
            slots,
            extent,
            is_read: false,
            rows: RowBuffer::default(),
            key_bytes: Arena::default(),
            keys_at: Vec::new(),
            order: Vec::new(),
            charge: Charge::default(),
            at: 0,
            on_disk: None,
            last_key: None,
        }
    }
}

/// So often a sort that grows asks whether it is to go to disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;
/// How many bytes of a key are told from its columns' beginnings.
pub(super) const PREFIX_BYTES: usize = size_of::<u64>();
/// How many rows may be sorted without a look whether the statement is to end: by their prefixes,
/// and by keys that lie elsewhere.
const PREFIXES_RUN: usize = 1 << 18;
const KEYS_RUN: usize = 1 << 14;

/// Whether keys are columns' values alone, which can be read again.
pub(super) fn is_of_columns(keys: &[SortKey]) -> bool {
    keys.iter().all(|key| key.expr.as_column().is_some())
}

/// The beginning of the current row's key, of columns: as long as the prefix at least, of which no
/// byte will differ in the whole key. True if that is all.
pub(super) fn head_of_key(
    exec: &mut Exec<'_>,
    keys: &[SortKey],
    head: &mut KeyBuf,
) -> Result<bool> {
    head.clear();
    for key in keys {
        if head.len() >= PREFIX_BYTES {
            return Ok(false);
        }
        if let Some((text, collation)) = exec.text_column(&key.expr) {
            if !encode_text_prefix(text, collation, true, key.descending, head) {
                return Ok(false);
            }
        } else {
            let value = key.expr.eval(exec)?;
            append_key(exec, &value, &key.expr.ty, key.descending, head)?;
        }
    }
    Ok(true)
}

impl Sort<'_> {
    fn made_key(&self, row: u32) -> &[u8] {
        match self.keys_at.get(row as usize) {
            Some(Some((place, len))) => &self.key_bytes.from(*place)[..*len as usize],
            _ => &[],
        }
    }

    fn note_key(&mut self, exec: &Exec<'_>, row: u32, key: &[u8]) -> Result<()> {
        let account = &exec.session.memory;
        let place = self.key_bytes.push(account, key)?;
        let row = row as usize;
        if self.keys_at.len() <= row {
            let more = row + 1 - self.keys_at.len();
            self.charge.reserve(account, &mut self.keys_at, more)?;
            self.keys_at.resize(row + 1, None);
        }
        self.keys_at[row] = Some((place, key.len() as u32));
        Ok(())
    }

    /// Whether a row has the key of the one before it.
    fn is_repeated(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let (a, b) = (self.order[before], self.order[at]);
        a.prefix == b.prefix
            && (a.is_whole && b.is_whole || self.made_key(a.row) == self.made_key(b.row))
    }

    /// Puts rows whose prefixes are equal in order.
    fn settle_ties(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        let mut key = KeyBuf::new();
        let has_keys = !is_of_columns(self.keys);
        for tied in order.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            exec.check_interrupt()?;
            if tied.len() == 1 || tied.iter().all(|row| row.is_whole) {
                continue;
            }
            if !has_keys {
                for row in tied.iter() {
                    exec.check_interrupt()?;
                    self.rows
                        .restore(row.row as usize, &mut exec.frame, self.slots);
                    sort_key_of(exec, self.keys, &mut key)?;
                    self.note_key(exec, row.row, &key)?;
                }
            }
            // Equal keys keep the order in which they came.
            let by_key = |a: &Sortable, b: &Sortable| {
                (self.made_key(a.row).cmp(self.made_key(b.row))).then(a.row.cmp(&b.row))
            };
            sort::sort(tied, KEYS_RUN, by_key, || exec.check_interrupt())?;
        }
        self.order = order;
        Ok(())
    }
}

impl Sort<'_> {
    /// Forgets all rows.
    fn clear(&mut self) {
        self.rows.clear();
        self.key_bytes.clear();
        self.keys_at = Vec::new();
        self.order = Vec::new();
        self.charge.clear();
        self.at = 0;
    }

    /// How much memory the rows take, in bytes.
    fn bytes(&self) -> usize {
        self.rows.bytes() + self.key_bytes.bytes() + self.charge.bytes()
    }

    /// Has what was read and the rest of the input sorted on disk.
    #[cold]
    fn go_to_disk(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut sort = DiskSort::new(exec);
        let mut key = KeyBuf::new();
        let has_keys = !is_of_columns(self.keys);
        // The input goes on from its current row, which is the last one that was kept.
        for row in 0..self.rows.len() {
            self.rows.restore(row, &mut exec.frame, self.slots);
            match has_keys {
                true => sort.push(exec, self.made_key(row as u32), self.slots)?,
                false => {
                    sort_key_of(exec, self.keys, &mut key)?;
                    sort.push(exec, &key, self.slots)?;
                }
            }
        }
        self.clear();
        while self.input.next(exec)? {
            sort_key_of(exec, self.keys, &mut key)?;
            sort.push(exec, &key, self.slots)?;
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
            return rows.next(exec, self.slots);
        }
        while let Some((key, saved)) = rows.next_entry(exec)? {
            if self.last_key.as_deref() == Some(key) {
                continue;
            }
            let last = self.last_key.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            row_buffer::restore(saved, &mut exec.frame, self.slots);
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
        self.clear();
        let mut asked_at = ASKED_EVERY_BYTES;
        let mut bytes = 0;
        let is_of_columns = is_of_columns(self.keys);
        let mut key = KeyBuf::new();
        while bytes < most_bytes {
            if !self.input.next(exec)? {
                self.is_read = true;
                break;
            }
            bytes += match self.extent {
                Extent::All => 0,
                Extent::Batches => saved_len(&exec.frame, self.slots),
            };
            let row = u32::try_from(self.rows.len())
                .map_err(|_| crate::Error::engine_error("a sort of too many rows"))?;
            let is_all = if is_of_columns {
                head_of_key(exec, self.keys, &mut key)?
            } else {
                sort_key_of(exec, self.keys, &mut key)?;
                self.note_key(exec, row, &key)?;
                true
            };
            let mut prefix = [0; PREFIX_BYTES];
            let len = key.len().min(PREFIX_BYTES);
            prefix[..len].copy_from_slice(&key[..len]);
            self.charge
                .reserve(&exec.session.memory, &mut self.order, 1)?;
            self.order.push(Sortable {
                prefix: u64::from_be_bytes(prefix),
                row,
                is_whole: is_all && key.len() <= PREFIX_BYTES,
            });
            self.rows.push(exec, self.slots)?;
            if self.bytes() >= asked_at && self.extent == Extent::All {
                asked_at = self.bytes() + ASKED_EVERY_BYTES;
                if exec.session.memory.is_to_spill(Buffer::Sort, self.bytes()) {
                    return self.go_to_disk(exec);
                }
            }
        }
        let by_prefix = |a: &Sortable, b: &Sortable| (a.prefix, a.row).cmp(&(b.prefix, b.row));
        sort::sort(&mut self.order, PREFIXES_RUN, by_prefix, || {
            exec.check_interrupt()
        })?;
        self.settle_ties(exec)
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
            while let Some(&row) = self.order.get(self.at) {
                exec.check_interrupt()?;
                self.at += 1;
                if self.distinct && self.is_repeated(self.at - 1) {
                    continue;
                }
                self.rows
                    .restore(row.row as usize, &mut exec.frame, self.slots);
                return Ok(true);
            }
            if self.is_read {
                return Ok(false);
            }
            self.fill(exec)?;
        }
    }
}
