//! Window functions (MySQL 8.4 manual, 14.20).
//!
//! 1. The whole input is read and sorted by partition, then order: rows that tie in both are peers.
//! 2. A partition at a time: the arguments of every function are computed for every row, then each
//!    function's results, column by column.
//! 3. Rows are yielded in sorted order, each with its results in the window's own slot.
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

use std::ops::Range;

use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Charge, Place};
use porpoise_core::sort;
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::key;
use porpoise_planner::plan::{FrameBound, Window, WindowCall};
use porpoise_types::{KeyBuf, Value};

use crate::Exec;
use crate::eval::Evaluate;
use crate::operator::{BoxedOperator, Operator, build};
use crate::row_buffer::RowBuffer;
use frames::has_distance;
use results::{FunctionInput, results};

pub struct WindowOperator<'p> {
    window: &'p Window,
    input: BoxedOperator<'p>,
    /// The input's rows as they came.
    rows: RowBuffer,
    /// The rows in order, with what they were sorted by.
    sorted: Vec<SortedRow>,
    keys: Arena,
    charge: Charge,
    /// The results of the partition that is being yielded.
    results: RowBuffer,
    partition: Range<usize>,
    at: usize,
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
struct Partition {
    len: usize,
    /// The row's peers, itself included.
    peers: Vec<Range<usize>>,
    /// The single order value of each row, if some RANGE frame has a distance.
    order_values: Vec<Value>,
    functions: Vec<FunctionInput>,
    /// For what is here, and for the functions' results but their texts.
    charge: Charge,
}

impl<'p> WindowOperator<'p> {
    pub fn new(window: &'p Window) -> WindowOperator<'p> {
        WindowOperator {
            window,
            input: build(&window.input),
            rows: RowBuffer::default(),
            sorted: Vec::new(),
            keys: Arena::default(),
            charge: Charge::default(),
            results: RowBuffer::default(),
            partition: 0..0,
            at: 0,
        }
    }

    fn read(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            exec.check_interrupt()?;
            key.clear();
            for expr in &self.window.partition {
                let value = expr.eval(exec)?;
                key::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
            }
            let partition_bytes = key.len();
            for SortKey { expr, descending } in &self.window.order {
                let value = expr.eval(exec)?;
                key::encode_values(std::iter::once((&value, &expr.ty, *descending)), &mut key);
            }
            let account = &exec.session.memory;
            self.charge.reserve(account, &mut self.sorted, 1)?;
            self.sorted.push(SortedRow {
                key: self.keys.push(account, &key)?,
                key_bytes: key.len() as u32,
                partition_bytes: partition_bytes as u32,
                row: self.rows.len(),
            });
            self.rows.push(exec, &self.window.slots)?;
        }
        // Peers stay in the order they came in.
        let keys = &self.keys;
        let by_key =
            |a: &SortedRow, b: &SortedRow| (a.key(keys).cmp(b.key(keys))).then(a.row.cmp(&b.row));
        sort::sort(&mut self.sorted, SORT_RUN, by_key, || {
            exec.check_interrupt()
        })
    }

    /// Computes the results of the partition that begins at `start`.
    fn compute(&mut self, exec: &mut Exec<'_>, start: usize) -> Result<()> {
        let key = self.sorted[start].partition(&self.keys);
        let mut end = start;
        while let Some(row) = self.sorted.get(end)
            && row.partition(&self.keys) == key
        {
            exec.check_interrupt()?;
            end += 1;
        }
        self.partition = start..end;
        self.results.clear();
        let partition = self.gather(exec)?;
        let mut columns = Vec::with_capacity(self.window.functions.len());
        let mut charge = Charge::default();
        for (call, input) in self.window.functions.iter().zip(&partition.functions) {
            let results = results(exec, self.window, call, input, &partition, &mut charge)?;
            columns.push(results.into_iter());
        }
        for _ in start..end {
            exec.check_interrupt()?;
            let values: Vec<Value> = columns
                .iter_mut()
                .map(|column| column.next().unwrap_or(Value::Null))
                .collect();
            exec.fill(self.window.slot, &values)?;
            self.results.push(exec, &[self.window.slot])?;
        }
        Ok(())
    }

    /// Evaluates everything that depends on the partition's rows.
    fn gather(&self, exec: &mut Exec<'_>) -> Result<Partition> {
        let rows = &self.sorted[self.partition.clone()];
        let functions = &self.window.functions;
        let mut charge = Charge::default();
        let row_bytes = functions.iter().map(bytes_a_row).sum::<usize>() + PARTITION_ROW_BYTES;
        charge.add(&exec.session.memory, rows.len().saturating_mul(row_bytes))?;
        let peers = self.peers(exec, rows)?;
        let mut partition = Partition {
            len: rows.len(),
            peers,
            order_values: Vec::new(),
            functions: functions
                .iter()
                .map(|call| FunctionInput {
                    arguments: Vec::with_capacity(match call.arguments.len() {
                        0 => 0,
                        _ => rows.len(),
                    }),
                    start: Vec::new(),
                    end: Vec::new(),
                })
                .collect(),
            charge,
        };
        let by_value = functions.iter().any(|call| {
            !call.frame.rows && (has_distance(&call.frame.start) || has_distance(&call.frame.end))
        });
        for (position, row) in rows.iter().enumerate() {
            exec.check_interrupt()?;
            self.rows
                .restore(row.row, &mut exec.frame, &self.window.slots);
            if by_value {
                let value = match self.window.order.first() {
                    Some(key) => key.expr.eval(exec)?,
                    None => Value::Null,
                };
                partition.order_values.push(value);
            }
            for (call, input) in functions.iter().zip(&mut partition.functions) {
                if !call.arguments.is_empty() {
                    let arguments: Result<Vec<Value>> = call
                        .arguments
                        .iter()
                        .map(|argument| argument.eval(exec))
                        .collect();
                    let arguments = arguments?;
                    let bytes = arguments.iter().map(Value::heap_bytes).sum();
                    partition.charge.add(&exec.session.memory, bytes)?;
                    input.arguments.push(arguments);
                }
                let bounds = [
                    (&call.frame.start, &mut input.start),
                    (&call.frame.end, &mut input.end),
                ];
                for (bound, values) in bounds {
                    if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound
                        && (position == 0 || !call.frame.rows)
                    {
                        values.push(expr.eval(exec)?);
                    }
                }
            }
        }
        Ok(partition)
    }

    /// The peers of each row of a partition.
    fn peers(&self, exec: &Exec<'_>, rows: &[SortedRow]) -> Result<Vec<Range<usize>>> {
        let mut peers: Vec<Range<usize>> = Vec::with_capacity(rows.len());
        let are_peers = |a: &SortedRow, b: &SortedRow| a.key(&self.keys) == b.key(&self.keys);
        for group in rows.chunk_by(are_peers) {
            let range = peers.len()..peers.len() + group.len();
            for _ in group {
                exec.check_interrupt()?;
                peers.push(range.clone());
            }
        }
        Ok(peers)
    }
}

/// What a partition keeps for each row whatever the functions are: its peers, and its order value.
const PARTITION_ROW_BYTES: usize = size_of::<Range<usize>>() + size_of::<Value>();

/// What is kept for each row of a partition to compute a function, beside texts: its arguments,
/// where a frame by value begins and ends, and the result.
fn bytes_a_row(call: &WindowCall) -> usize {
    let arguments = match call.arguments.len() {
        0 => 0,
        count => size_of::<Vec<Value>>() + count * size_of::<Value>(),
    };
    let bounds = [&call.frame.start, &call.frame.end];
    let by_value = |bound: &&&FrameBound| !call.frame.rows && has_distance(bound);
    arguments + (bounds.iter().filter(by_value).count() + 1) * size_of::<Value>()
}

impl Operator for WindowOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.sorted = Vec::new();
        self.keys.clear();
        self.charge.clear();
        self.results.clear();
        self.partition = 0..0;
        self.at = 0;
        self.input.open(exec)?;
        self.read(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.at == self.sorted.len() {
            return Ok(false);
        }
        exec.check_interrupt()?;
        if self.at == self.partition.end {
            self.compute(exec, self.at)?;
        }
        let row = self.sorted[self.at].row;
        self.rows.restore(row, &mut exec.frame, &self.window.slots);
        self.results.restore(
            self.at - self.partition.start,
            &mut exec.frame,
            &[self.window.slot],
        );
        self.at += 1;
        Ok(true)
    }
}
