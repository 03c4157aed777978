//! Window functions (MySQL 8.4 manual, 14.20).
//!
//! 1. The whole input is read and sorted by partition, then order: rows that tie in both are peers.
//! 2. A partition at a time: the arguments of every function are computed for every row, then each
//!    function's results, column by column.
//! 3. Rows are yielded in sorted order, each with its results in the window's own slot.
//!
//! Rows that take more memory than they should are sorted on disk, and read a partition at a time. Of
//! a partition that is too large for memory whatever is kept for each row is a list on disk ([`store`]).
//!
//! A frame is a range of the partition's rows. An aggregate whose frame only grows takes each row
//! once; one whose frame never changes is computed once; any other starts anew where the frame
//! moves.
//!
//! ```text
//! partition   r0 r1 r2 r3 r4 r5      peers of r2: r2 r3
//! default     [────────────┤         frame of r2: from the start to its last peer
//! ROWS 1 PRECEDING  [──┤             frame of r2
//! ```

mod frames;
mod results;
mod store;

use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Buffer, Charge, Place};
use porpoise_core::sort;
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::SortKey;
use porpoise_planner::plan::{FrameBound, Window};
use porpoise_types::{KeyBuf, Value};

use crate::Exec;
use crate::eval::{Evaluate, append_key};
use crate::operator::{BoxedOperator, DiskSort, Operator, RowOrder, SortedRows, build_with};
use crate::row_buffer::{RowBuffer, RowReader, restore, save};
use crate::spill::unreadable;
use frames::has_distance;
use results::{FunctionInput, results};
use smallvec::SmallVec;
use store::Store;

pub struct WindowOperator<'p> {
    window: &'p Window,
    input: BoxedOperator<'p>,
    /// The input's rows as they came.
    rows: RowBuffer,
    /// The rows in order, with what they were sorted by.
    sorted: Vec<SortedRow>,
    keys: Arena,
    charge: Charge,
    asked_at: usize,
    /// The rows in order, if they are too many for memory.
    disk: Option<Box<RowsOnDisk>>,
    /// The results of the partition that is being yielded, by function.
    results: Vec<Store<Value>>,
    partition: Range<usize>,
    at: usize,
}

/// Sorted rows on disk.
struct RowsOnDisk {
    rows: SortedRows,
    /// The next row, which begins a partition, and its key.
    next: Option<Vec<u8>>,
    key: Vec<u8>,
    partition_bytes: usize,
    /// The rows of the partition that is being yielded.
    partition: RowBuffer,
    reader: RowReader,
}

#[derive(Clone, Copy)]
struct SortedRow {
    /// The partition's values, then the order's.
    key: Place,
    key_bytes: u32,
    /// How much of the key is the partition.
    partition_bytes: u32,
    row: usize,
}

impl SortedRow {
    fn key<'a>(&self, keys: &'a Arena) -> &'a [u8] {
        &keys.from(self.key)[..self.key_bytes as usize]
    }

    fn partition<'a>(&self, keys: &'a Arena) -> &'a [u8] {
        &keys.from(self.key)[..self.partition_bytes as usize]
    }
}

/// How many rows may be sorted without a look whether the statement is to end.
const SORT_RUN: usize = 1 << 14;

/// What the functions need to know of a partition's rows, by position in the partition.
#[derive(Default)]
struct Partition {
    len: usize,
    /// The row's peers, itself included.
    peers: Store<Range<usize>>,
    /// The single order value of each row, if some RANGE frame has a distance.
    order_values: Store<Value>,
    functions: Vec<FunctionInput>,
    /// Where the peers of the last row begin.
    peers_begin: usize,
}

/// So often rows that grow ask whether they are to go to disk.
const ASKED_EVERY_BYTES: usize = 64 << 10;

impl<'p> WindowOperator<'p> {
    pub fn new(window: &'p Window) -> WindowOperator<'p> {
        WindowOperator {
            window,
            input: build_with(&window.input, RowOrder::Free),
            rows: RowBuffer::default(),
            sorted: Vec::new(),
            keys: Arena::default(),
            charge: Charge::default(),
            asked_at: ASKED_EVERY_BYTES,
            disk: None,
            results: Vec::new(),
            partition: 0..0,
            at: 0,
        }
    }

    /// The current row's key; tells how much of it is the partition.
    fn key(&self, exec: &mut Exec<'_>, key: &mut KeyBuf) -> Result<usize> {
        key.clear();
        for expr in &self.window.partition {
            let value = expr.eval(exec)?;
            append_key(exec, &value, &expr.ty, false, key)?;
        }
        let partition_bytes = key.len();
        for SortKey { expr, descending } in &self.window.order {
            let value = expr.eval(exec)?;
            append_key(exec, &value, &expr.ty, *descending, key)?;
        }
        Ok(partition_bytes)
    }

    fn read(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            exec.check_interrupt()?;
            let partition_bytes = self.key(exec, &mut key)?;
            let account = &exec.session.memory;
            self.charge.reserve(account, &mut self.sorted, 1)?;
            self.sorted.push(SortedRow {
                key: self.keys.push(account, &key)?,
                key_bytes: key.len() as u32,
                partition_bytes: partition_bytes as u32,
                row: self.rows.len(),
            });
            self.rows.push(exec, &self.window.slots)?;
            let bytes = self.rows.bytes() + self.keys.bytes() + self.charge.bytes();
            if bytes >= self.asked_at {
                self.asked_at = bytes + ASKED_EVERY_BYTES;
                if exec.session.memory.is_to_spill(Buffer::Table, bytes) {
                    return self.go_to_disk(exec);
                }
            }
        }
        // Peers stay in the order they came in.
        let keys = &self.keys;
        let by_key =
            |a: &SortedRow, b: &SortedRow| (a.key(keys).cmp(b.key(keys))).then(a.row.cmp(&b.row));
        sort::sort(&mut self.sorted, SORT_RUN, by_key, || {
            exec.check_interrupt()
        })
    }

    /// Has the rows that were read, and the others, sorted on disk. Before each lies how much of its
    /// key is the partition.
    #[cold]
    fn go_to_disk(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        exec.count_disk_table();
        let slots = &self.window.slots;
        let mut sort = DiskSort::new(exec);
        let mut saved = Vec::new();
        for row in &self.sorted {
            saved.clear();
            saved.extend_from_slice(&row.partition_bytes.to_le_bytes());
            saved.extend_from_slice(self.rows.saved(row.row, slots.len()));
            sort.push_saved(exec, row.key(&self.keys), &saved)?;
        }
        self.forget_rows();
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            exec.check_interrupt()?;
            let partition_bytes = self.key(exec, &mut key)? as u32;
            saved.clear();
            saved.extend_from_slice(&partition_bytes.to_le_bytes());
            save(&exec.frame, slots, &mut saved);
            sort.push_saved(exec, &key, &saved)?;
        }
        let mut disk = RowsOnDisk {
            rows: sort.finish(exec)?,
            next: None,
            key: Vec::new(),
            partition_bytes: 0,
            partition: RowBuffer::default(),
            reader: RowReader::default(),
        };
        disk.advance(exec, &mut KeyBuf::new())?;
        self.disk = Some(Box::new(disk));
        Ok(())
    }

    fn forget_rows(&mut self) {
        self.rows.clear();
        self.sorted = Vec::new();
        self.keys.clear();
        self.charge.clear();
        self.asked_at = ASKED_EVERY_BYTES;
    }

    /// Computes the results of the partition that comes next.
    fn compute(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.results.clear();
        let partition = match self.disk.take() {
            Some(mut disk) => {
                let partition = self.gather_from(exec, &mut disk)?;
                self.disk = Some(disk);
                partition
            }
            None => self.gather(exec)?,
        };
        self.partition = self.at..self.at + partition.len;
        for (call, input) in self.window.functions.iter().zip(&partition.functions) {
            let results = results(exec, self.window, call, input, &partition)?;
            self.results.push(results);
        }
        Ok(())
    }

    /// Evaluates everything that depends on the next partition's rows.
    fn gather(&self, exec: &mut Exec<'_>) -> Result<Partition> {
        let start = self.at;
        let key = self.sorted[start].partition(&self.keys);
        let mut end = start;
        while let Some(row) = self.sorted.get(end)
            && row.partition(&self.keys) == key
        {
            exec.check_interrupt()?;
            end += 1;
        }
        let rows = &self.sorted[start..end];
        let mut partition = Partition::new(exec, self.window, rows.len())?;
        let mut before = None;
        for row in rows {
            exec.check_interrupt()?;
            self.rows
                .restore(row.row, &mut exec.frame, &self.window.slots);
            let key = row.key(&self.keys);
            partition.add(exec, self.window, before.is_some_and(|other| other == key))?;
            before = Some(key);
        }
        partition.finish(exec)?;
        Ok(partition)
    }

    /// The same, of rows on disk, which are kept for when they are yielded.
    fn gather_from(&self, exec: &mut Exec<'_>, disk: &mut RowsOnDisk) -> Result<Partition> {
        let slots = &self.window.slots;
        disk.partition.clear();
        disk.reader = RowReader::default();
        let mut partition = Partition::new(exec, self.window, 0)?;
        let first = disk.key[..disk.partition_bytes].to_vec();
        let mut before = KeyBuf::new();
        let mut is_peer = false;
        while let Some(saved) = &disk.next
            && disk.key[..disk.partition_bytes] == first
        {
            exec.check_interrupt()?;
            restore(saved, &mut exec.frame, slots);
            disk.partition.put_aside(exec, slots)?;
            partition.add(exec, self.window, is_peer)?;
            is_peer = disk.advance(exec, &mut before)?;
        }
        disk.partition.finish()?;
        partition.finish(exec)?;
        Ok(partition)
    }
}

impl RowsOnDisk {
    /// Reads the next row; true if it has the key of the one before it.
    fn advance(&mut self, exec: &Exec<'_>, before: &mut KeyBuf) -> Result<bool> {
        before.clear();
        before.extend_from_slice(&self.key);
        let is_first = self.next.is_none();
        let mut saved = self.next.take().unwrap_or_default();
        let Some((key, entry)) = self.rows.next_entry(exec)? else {
            return Ok(false);
        };
        let (partition_bytes, row) = entry.split_first_chunk::<4>().ok_or_else(unreadable)?;
        self.partition_bytes = u32::from_le_bytes(*partition_bytes) as usize;
        let is_same = !is_first && self.key == key;
        self.key.clear();
        self.key.extend_from_slice(key);
        saved.clear();
        saved.extend_from_slice(row);
        self.next = Some(saved);
        Ok(is_same)
    }
}

impl Partition {
    /// A partition of so many rows, if that is known.
    fn new(exec: &Exec<'_>, window: &Window, rows: usize) -> Result<Partition> {
        let mut functions = Vec::with_capacity(window.functions.len());
        for call in &window.functions {
            functions.push(FunctionInput {
                arguments: match call.arguments.len() {
                    0 => Store::default(),
                    _ => Store::with_room(exec, rows)?,
                },
                start: Store::default(),
                end: Store::default(),
            });
        }
        Ok(Partition {
            peers: Store::with_room(exec, rows)?,
            functions,
            ..Partition::default()
        })
    }

    /// Adds the current row.
    fn add(&mut self, exec: &mut Exec<'_>, window: &Window, is_peer: bool) -> Result<()> {
        if !is_peer {
            self.add_peers(exec)?;
        }
        let functions = &window.functions;
        let by_value = functions.iter().any(|call| {
            !call.frame.rows && (has_distance(&call.frame.start) || has_distance(&call.frame.end))
        });
        if by_value {
            let value = match window.order.first() {
                Some(key) => key.expr.eval(exec)?,
                None => Value::Null,
            };
            self.order_values.push(exec, value)?;
        }
        for (call, input) in functions.iter().zip(&mut self.functions) {
            if !call.arguments.is_empty() {
                let arguments: Result<Vec<Value>> = call
                    .arguments
                    .iter()
                    .map(|argument| argument.eval(exec))
                    .collect();
                input.arguments.push(exec, arguments?)?;
            }
            let bounds = [
                (&call.frame.start, &mut input.start),
                (&call.frame.end, &mut input.end),
            ];
            for (bound, values) in bounds {
                if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound
                    && (self.len == 0 || !call.frame.rows)
                {
                    let value = expr.eval(exec)?;
                    values.push(exec, value)?;
                }
            }
        }
        self.len += 1;
        Ok(())
    }

    /// The last rows' peers are known: no more come.
    fn add_peers(&mut self, exec: &Exec<'_>) -> Result<()> {
        let peers = self.peers_begin..self.len;
        for _ in peers.clone() {
            exec.check_interrupt()?;
            self.peers.push(exec, peers.clone())?;
        }
        self.peers_begin = self.len;
        Ok(())
    }

    /// All rows were added.
    fn finish(&mut self, exec: &Exec<'_>) -> Result<()> {
        self.add_peers(exec)?;
        self.peers.finish()?;
        self.order_values.finish()?;
        for input in &mut self.functions {
            input.arguments.finish()?;
            input.start.finish()?;
            input.end.finish()?;
        }
        Ok(())
    }

    /// The peers of a row.
    fn peers(&self, row: usize) -> Result<Range<usize>> {
        self.peers
            .with(row, |peers| peers.cloned().unwrap_or(row..row + 1))
    }
}

impl Operator for WindowOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.forget_rows();
        self.disk = None;
        self.results.clear();
        self.partition = 0..0;
        self.at = 0;
        self.input.open(exec)?;
        self.read(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        exec.check_interrupt()?;
        if self.at == self.partition.end {
            let has_more = match &self.disk {
                Some(disk) => disk.next.is_some(),
                None => self.at < self.sorted.len(),
            };
            if !has_more {
                return Ok(false);
            }
            self.compute(exec)?;
        }
        let row = self.at - self.partition.start;
        let mut values: SmallVec<[Value; 8]> = SmallVec::with_capacity(self.results.len());
        for results in &self.results {
            values.push(results.with(row, |value| value.cloned().unwrap_or(Value::Null))?);
        }
        match &mut self.disk {
            Some(disk) => {
                let (reader, rows) = (&mut disk.reader, &disk.partition);
                reader.next(rows, &mut exec.frame, &self.window.slots)?;
            }
            None => {
                let row = self.sorted[self.at].row;
                self.rows.restore(row, &mut exec.frame, &self.window.slots);
            }
        }
        exec.fill(self.window.slot, &values)?;
        self.at += 1;
        Ok(true)
    }
}
