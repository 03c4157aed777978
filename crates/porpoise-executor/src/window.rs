//! Window functions (MySQL 8.4 manual, 14.20).
//!
//! 1. The whole input is read and sorted by partition, then order: rows that tie in both are peers.
//! 2. A partition at a time: the arguments of every function are computed for every row, then each
//!    function's results, column by column.
//! 3. Rows are yielded in sorted order, each with its results in the window's own slot.
//!
//! A frame is a range of the partition's rows. An aggregate whose frame only grows takes each row once; one
//! whose frame never changes is computed once; any other starts anew where the frame moves.
//!
//! ```text
//! partition   r0 r1 r2 r3 r4 r5      peers of r2: r2 r3
//! default     [────────────┤         frame of r2: from the start to its last peer
//! ROWS 1 PRECEDING  [──┤             frame of r2
//! ```

use std::ops::Range;

use porpoise_core::error::{Error, Result};
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::Accumulator;
use porpoise_expr::aggregate::{Aggregate, SortKey};
use porpoise_expr::compare;
use porpoise_expr::key;
use porpoise_expr::{Domain, Expr};
use porpoise_planner::plan::{FrameBound, Window, WindowCall, WindowKind};
use porpoise_types::{KeyBuf, Value};

use crate::Exec;
use crate::eval::Evaluate;
use crate::operator::{BoxedOperator, Operator, build};
use crate::row_buffer::RowBuffer;

pub struct WindowOperator<'p> {
    window: &'p Window,
    input: BoxedOperator<'p>,
    /// The input's rows as they came.
    rows: RowBuffer,
    /// The rows in order, with what they were sorted by.
    sorted: Vec<SortedRow>,
    /// The results of the partition that is being yielded.
    results: RowBuffer,
    partition: Range<usize>,
    at: usize,
}

struct SortedRow {
    /// The partition's values, then the order's.
    key: KeyBuf,
    /// How much of the key is the partition.
    partition_bytes: usize,
    row: usize,
}

impl SortedRow {
    fn partition(&self) -> &[u8] {
        &self.key[..self.partition_bytes]
    }
}

/// What the functions need to know of a partition's rows, by position in the partition.
struct Partition {
    len: usize,
    /// The row's peers, itself included.
    peers: Vec<Range<usize>>,
    /// The single order value of each row, if some RANGE frame has a distance.
    order_values: Vec<Value>,
    functions: Vec<FunctionInput>,
}

/// Of one function: its arguments by row, and the distances of its frame.
struct FunctionInput {
    arguments: Vec<Vec<Value>>,
    /// ROWS: one number for the partition. RANGE: by row, the order value at which the frame begins or ends.
    start: Vec<Value>,
    end: Vec<Value>,
}

impl<'p> WindowOperator<'p> {
    pub fn new(window: &'p Window) -> WindowOperator<'p> {
        WindowOperator {
            window,
            input: build(&window.input),
            rows: RowBuffer::default(),
            sorted: Vec::new(),
            results: RowBuffer::default(),
            partition: 0..0,
            at: 0,
        }
    }

    fn read(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        while self.input.next(exec)? {
            exec.check_interrupt()?;
            let mut key = KeyBuf::new();
            for expr in &self.window.partition {
                let value = expr.eval(exec)?;
                key::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
            }
            let partition_bytes = key.len();
            for SortKey { expr, descending } in &self.window.order {
                let value = expr.eval(exec)?;
                key::encode_values(std::iter::once((&value, &expr.ty, *descending)), &mut key);
            }
            self.sorted.push(SortedRow {
                key,
                partition_bytes,
                row: self.rows.len(),
            });
            self.rows.push(&exec.frame, &self.window.slots);
        }
        // Stable: peers stay in the order they came in.
        self.sorted.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(())
    }

    /// Computes the results of the partition that begins at `start`.
    fn compute(&mut self, exec: &mut Exec<'_>, start: usize) -> Result<()> {
        let key = self.sorted[start].partition();
        let len = self.sorted[start..]
            .iter()
            .take_while(|row| row.partition() == key)
            .count();
        self.partition = start..start + len;
        self.results.clear();
        let partition = self.gather(exec)?;
        let mut columns = Vec::with_capacity(self.window.functions.len());
        for (call, input) in self.window.functions.iter().zip(&partition.functions) {
            columns.push(results(exec, self.window, call, input, &partition)?.into_iter());
        }
        for _ in 0..len {
            let values: Vec<Value> = columns
                .iter_mut()
                .map(|column| column.next().unwrap_or(Value::Null))
                .collect();
            exec.fill(self.window.slot, &values)?;
            self.results.push(&exec.frame, &[self.window.slot]);
        }
        Ok(())
    }

    /// Evaluates everything that depends on the partition's rows.
    fn gather(&self, exec: &mut Exec<'_>) -> Result<Partition> {
        let rows = &self.sorted[self.partition.clone()];
        let mut peers: Vec<Range<usize>> = Vec::with_capacity(rows.len());
        for group in rows.chunk_by(|a, b| a.key == b.key) {
            let range = peers.len()..peers.len() + group.len();
            peers.extend(std::iter::repeat_n(range, group.len()));
        }
        let functions = &self.window.functions;
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
                    input.arguments.push(arguments?);
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
}

impl Operator for WindowOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.sorted.clear();
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

fn has_distance(bound: &FrameBound) -> bool {
    matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_))
}

/// The results of one function for every row of a partition.
fn results(
    exec: &mut Exec<'_>,
    window: &Window,
    call: &WindowCall,
    input: &FunctionInput,
    partition: &Partition,
) -> Result<Vec<Value>> {
    let len = partition.len;
    let rows = 0..len;
    let peers = |row: usize| &partition.peers[row];
    let ratio = |part: usize, whole: usize| match whole {
        0 => Value::Double(0.0),
        _ => Value::Double(part as f64 / whole as f64),
    };
    let argument = |row: usize, number: usize| {
        input
            .arguments
            .get(row)
            .and_then(|arguments| arguments.get(number))
    };
    Ok(match &call.kind {
        WindowKind::RowNumber => rows.map(|row| Value::UInt(row as u64 + 1)).collect(),
        WindowKind::Rank => rows
            .map(|row| Value::UInt(peers(row).start as u64 + 1))
            .collect(),
        WindowKind::DenseRank => {
            let mut rank = 0;
            rows.map(|row| {
                rank += u64::from(peers(row).start == row);
                Value::UInt(rank)
            })
            .collect()
        }
        WindowKind::PercentRank => rows.map(|row| ratio(peers(row).start, len - 1)).collect(),
        WindowKind::CumeDist => rows.map(|row| ratio(peers(row).end, len)).collect(),
        WindowKind::Ntile => {
            let mut out = Vec::with_capacity(len);
            for row in rows {
                out.push(match argument(row, 0) {
                    None | Some(Value::Null) => Value::Null,
                    Some(count) => match whole_number(count) {
                        Some(count) if count > 0 => Value::UInt(bucket(row, len, count)),
                        _ => return Err(Error::wrong_arguments("ntile")),
                    },
                });
            }
            out
        }
        WindowKind::Lag | WindowKind::Lead => {
            let back = matches!(call.kind, WindowKind::Lag);
            let mut out = Vec::with_capacity(len);
            for row in rows {
                let distance = match argument(row, 1) {
                    None => 1,
                    Some(distance) => whole_number(distance)
                        .ok_or_else(|| Error::wrong_arguments(if back { "lag" } else { "lead" }))?,
                };
                let distance = usize::try_from(distance).unwrap_or(usize::MAX);
                let other = if back {
                    row.checked_sub(distance)
                } else {
                    row.checked_add(distance).filter(|other| *other < len)
                };
                let value = match other {
                    Some(other) => argument(other, 0),
                    None => argument(row, 2),
                };
                out.push(value.cloned().unwrap_or(Value::Null));
            }
            out
        }
        WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            let frames = Frames::new(window, call, input, partition)?;
            let mut out = Vec::with_capacity(len);
            for row in rows {
                let frame = frames.of(row);
                let place = match &call.kind {
                    WindowKind::FirstValue => Some(frame.start),
                    WindowKind::LastValue => frame.end.checked_sub(1),
                    _ => match argument(row, 1) {
                        None | Some(Value::Null) => None,
                        Some(place) => match whole_number(place) {
                            Some(place) if place > 0 => usize::try_from(place - 1)
                                .ok()
                                .and_then(|place| frame.start.checked_add(place)),
                            _ => return Err(Error::wrong_arguments("nth_value")),
                        },
                    },
                };
                let value = place
                    .filter(|place| frame.contains(place))
                    .and_then(|place| argument(place, 0));
                out.push(value.cloned().unwrap_or(Value::Null));
            }
            out
        }
        WindowKind::Aggregate(function) => {
            let aggregate = Aggregate {
                function,
                arguments: call.arguments.clone(),
                distinct: false,
                order: Vec::new(),
                separator: None,
                ty: call.ty.clone(),
                nullable: true,
            };
            let frames = Frames::new(window, call, input, partition)?;
            aggregates(exec, &aggregate, input, &frames, len)?
        }
    })
}

/// An aggregate over every row's frame. A frame that runs to the partition's end shrinks from row to row: seen
/// from the last row it grows, if the order in which rows are taken doesn't matter.
fn aggregates(
    exec: &mut Exec<'_>,
    aggregate: &Aggregate,
    input: &FunctionInput,
    frames: &Frames<'_>,
    len: usize,
) -> Result<Vec<Value>> {
    let backward = !aggregate.function.ordered
        && matches!(frames.call.frame.end, FrameBound::UnboundedFollowing);
    let mut accumulator = (aggregate.function.start)(aggregate);
    let mut taken = if backward { len..len } else { 0..0 };
    let mut value = None;
    let mut out = Vec::with_capacity(len);
    let take = |exec: &mut Exec<'_>, accumulator: &mut Box<dyn Accumulator>, row: usize| {
        let arguments = input.arguments.get(row).map_or(&[][..], Vec::as_slice);
        accumulator.add(exec, arguments)
    };
    for number in 0..len {
        exec.check_interrupt()?;
        let frame = frames.of(if backward { len - 1 - number } else { number });
        let grows = match backward {
            true => frame.end == taken.end && frame.start <= taken.start,
            false => frame.start == taken.start && frame.end >= taken.end,
        };
        if !grows {
            accumulator = (aggregate.function.start)(aggregate);
            taken = if backward {
                frame.end..frame.end
            } else {
                frame.start..frame.start
            };
        }
        if !grows || taken != frame {
            value = None;
        }
        for row in (frame.start..taken.start).rev().chain(taken.end..frame.end) {
            take(exec, &mut accumulator, row)?;
        }
        taken = frame;
        let result = match value.take() {
            Some(value) => value,
            None => accumulator.finish(exec)?,
        };
        out.push(result.clone());
        value = Some(result);
    }
    if backward {
        out.reverse();
    }
    Ok(out)
}

/// Which of `buckets` equal parts a row falls in, from 1; the first parts are one larger where it doesn't come out even.
fn bucket(row: usize, len: usize, buckets: u64) -> u64 {
    let (row, len) = (row as u64, len as u64);
    let (size, larger) = (len / buckets, len % buckets);
    let in_larger = larger * (size + 1);
    match row < in_larger {
        true => row / (size + 1) + 1,
        false => larger + (row - in_larger) / size.max(1) + 1,
    }
}

/// A whole number that isn't negative.
fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(v) => u64::try_from(*v).ok(),
        Value::UInt(v) => Some(*v),
        _ => None,
    }
}

/// The frames of one function in one partition.
struct Frames<'a> {
    call: &'a WindowCall,
    input: &'a FunctionInput,
    partition: &'a Partition,
    /// ROWS: how many rows the bounds are away.
    start_rows: usize,
    end_rows: usize,
    /// RANGE: how order values compare.
    domain: Domain,
    descending: bool,
}

impl<'a> Frames<'a> {
    fn new(
        window: &'a Window,
        call: &'a WindowCall,
        input: &'a FunctionInput,
        partition: &'a Partition,
    ) -> Result<Frames<'a>> {
        let distance = |values: &[Value]| match values.first() {
            Some(value) if call.frame.rows => whole_number(value)
                .map(|distance| usize::try_from(distance).unwrap_or(usize::MAX))
                .ok_or_else(|| Error::window_frame_illegal("<unnamed window>")),
            _ => Ok(0),
        };
        let key: Option<(&Expr, bool)> =
            window.order.first().map(|key| (&key.expr, key.descending));
        Ok(Frames {
            call,
            input,
            partition,
            start_rows: distance(&input.start)?,
            end_rows: distance(&input.end)?,
            domain: key.map_or(Domain::Integer, |(expr, _)| Domain::of(&expr.ty)),
            descending: key.is_some_and(|(_, descending)| descending),
        })
    }

    /// A row's frame: a range of positions, empty where it ends before it begins.
    fn of(&self, row: usize) -> Range<usize> {
        let len = self.partition.len;
        let rows = self.call.frame.rows;
        let peers = &self.partition.peers[row];
        let start = match &self.call.frame.start {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => len,
            FrameBound::CurrentRow if rows => row,
            FrameBound::CurrentRow => peers.start,
            FrameBound::Preceding(_) if rows => row.saturating_sub(self.start_rows),
            FrameBound::Following(_) if rows => row.saturating_add(self.start_rows).min(len),
            _ => match self.input.start.get(row) {
                None | Some(Value::Null) => peers.start,
                Some(bound) => self.first_not_before(bound),
            },
        };
        let end = match &self.call.frame.end {
            FrameBound::UnboundedPreceding => 0,
            FrameBound::UnboundedFollowing => len,
            FrameBound::CurrentRow if rows => row + 1,
            FrameBound::CurrentRow => peers.end,
            FrameBound::Preceding(_) if rows => (row + 1).saturating_sub(self.end_rows),
            FrameBound::Following(_) if rows => (row + 1).saturating_add(self.end_rows).min(len),
            _ => match self.input.end.get(row) {
                None | Some(Value::Null) => peers.end,
                Some(bound) => self.first_after(bound),
            },
        };
        start..end.max(start)
    }

    /// NULLs come first, or last where the order is descending.
    fn compare(&self, value: &Value, bound: &Value) -> std::cmp::Ordering {
        let order = match value.is_null() {
            true => std::cmp::Ordering::Less,
            false => compare::compare(value, bound, self.domain),
        };
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }

    fn first_not_before(&self, bound: &Value) -> usize {
        self.partition
            .order_values
            .partition_point(|value| self.compare(value, bound).is_lt())
    }

    fn first_after(&self, bound: &Value) -> usize {
        self.partition
            .order_values
            .partition_point(|value| self.compare(value, bound).is_le())
    }
}
