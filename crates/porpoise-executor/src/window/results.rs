//! The results of one window function for all rows of a partition.

use std::ops::Range;

use porpoise_core::error::{Error, Result};
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::Accumulator;
use porpoise_expr::aggregate::Aggregate;
use porpoise_planner::plan::{FrameBound, Window, WindowCall, WindowKind};
use porpoise_types::Value;

use super::Partition;
use super::frames::Frames;
use super::store::Store;
use crate::Exec;

/// What one function is computed from: its arguments, and the distances that bound its frame.
pub(super) struct FunctionInput {
    /// By row.
    pub(super) arguments: Store<Vec<Value>>,
    /// ROWS: one number for the partition. RANGE: by row, the order value at which the frame begins
    /// or ends.
    pub(super) start: Store<Value>,
    pub(super) end: Store<Value>,
}

impl FunctionInput {
    /// A row's argument, by its number; `None` if the call has fewer.
    fn argument(&self, row: usize, number: usize) -> Result<Option<Value>> {
        self.arguments.with(row, |arguments| {
            arguments.and_then(|arguments| arguments.get(number).cloned())
        })
    }
}

/// The results of one function for every row of a partition.
pub(super) fn results(
    exec: &mut Exec<'_>,
    window: &Window,
    call: &WindowCall,
    input: &FunctionInput,
    partition: &Partition,
) -> Result<Store<Value>> {
    let len = partition.len;
    let peers = |row: usize| partition.peers(row);
    let ratio = |part: usize, whole: usize| match whole {
        0 => Value::Double(0.0),
        _ => Value::Double(part as f64 / whole as f64),
    };
    Ok(match &call.kind {
        WindowKind::RowNumber => each_row(exec, len, |row| Ok(Value::UInt(row as u64 + 1)))?,
        WindowKind::Rank => each_row(exec, len, |row| {
            Ok(Value::UInt(peers(row)?.start as u64 + 1))
        })?,
        WindowKind::DenseRank => {
            let mut rank = 0;
            each_row(exec, len, |row| {
                rank += u64::from(peers(row)?.start == row);
                Ok(Value::UInt(rank))
            })?
        }
        WindowKind::PercentRank => {
            each_row(exec, len, |row| Ok(ratio(peers(row)?.start, len - 1)))?
        }
        WindowKind::CumeDist => each_row(exec, len, |row| Ok(ratio(peers(row)?.end, len)))?,
        WindowKind::Ntile => each_row(exec, len, |row| match input.argument(row, 0)? {
            None => Ok(Value::Null),
            Some(count) => match whole_number(&count) {
                Some(count) if count > 0 => Ok(Value::UInt(bucket(row, len, count))),
                _ => Err(Error::wrong_arguments("ntile")),
            },
        })?,
        WindowKind::Lag | WindowKind::Lead => {
            let back = matches!(call.kind, WindowKind::Lag);
            each_row(exec, len, |row| value_at_distance(input, row, len, back))?
        }
        WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            let frames = Frames::new(window, call, input, partition)?;
            each_row(exec, len, |row| {
                value_in_frame(&call.kind, input, row, frames.of(row)?)
            })?
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

/// The result of each row, one after the other.
fn each_row(
    exec: &Exec<'_>,
    len: usize,
    mut result: impl FnMut(usize) -> Result<Value>,
) -> Result<Store<Value>> {
    let mut results = Store::with_room(exec, len)?;
    for row in 0..len {
        exec.check_interrupt()?;
        results.push(exec, result(row)?)?;
    }
    results.finish()?;
    Ok(results)
}

/// LAG and LEAD: the value some rows before or behind a row, or the default where there is no such
/// row.
fn value_at_distance(input: &FunctionInput, row: usize, len: usize, back: bool) -> Result<Value> {
    let distance = match input.argument(row, 1)? {
        None => 1,
        Some(distance) => whole_number(&distance)
            .ok_or_else(|| Error::wrong_arguments(if back { "lag" } else { "lead" }))?,
    };
    let distance = usize::try_from(distance).unwrap_or(usize::MAX);
    let other = match back {
        true => row.checked_sub(distance),
        false => row.checked_add(distance).filter(|other| *other < len),
    };
    let value = match other {
        Some(other) => input.argument(other, 0)?,
        None => input.argument(row, 2)?,
    };
    Ok(value.unwrap_or(Value::Null))
}

/// FIRST_VALUE, LAST_VALUE and NTH_VALUE: the value of one row of a row's frame; NULL if the frame
/// has no such row.
fn value_in_frame(
    kind: &WindowKind,
    input: &FunctionInput,
    row: usize,
    frame: Range<usize>,
) -> Result<Value> {
    let position = match kind {
        WindowKind::FirstValue => Some(frame.start),
        WindowKind::LastValue => frame.end.checked_sub(1),
        _ => match input.argument(row, 1)? {
            None | Some(Value::Null) => None,
            Some(nth) => match whole_number(&nth) {
                Some(nth) if nth > 0 => usize::try_from(nth - 1)
                    .ok()
                    .and_then(|nth| frame.start.checked_add(nth)),
                _ => return Err(Error::wrong_arguments("nth_value")),
            },
        },
    };
    let value = match position.filter(|position| frame.contains(position)) {
        Some(position) => input.argument(position, 0)?,
        None => None,
    };
    Ok(value.unwrap_or(Value::Null))
}

/// An aggregate over every row's frame. A frame that runs to the partition's end shrinks from row
/// to row: seen from the last row it grows, if the order in which rows are taken doesn't matter.
pub(super) fn aggregates(
    exec: &mut Exec<'_>,
    aggregate: &Aggregate,
    input: &FunctionInput,
    frames: &Frames<'_>,
    len: usize,
) -> Result<Store<Value>> {
    let backward = !aggregate.function.ordered
        && matches!(frames.call.frame.end, FrameBound::UnboundedFollowing);
    let mut accumulator = (aggregate.function.start)(aggregate);
    let mut taken = if backward { len..len } else { 0..0 };
    let mut value = None;
    let mut out = Store::with_room(exec, len)?;
    let take = |exec: &mut Exec<'_>, accumulator: &mut Box<dyn Accumulator>, row: usize| {
        exec.check_interrupt()?;
        input.arguments.with(row, |arguments| {
            accumulator.add(exec, arguments.map_or(&[][..], Vec::as_slice))
        })?
    };
    for number in 0..len {
        exec.check_interrupt()?;
        let frame = frames.of(if backward { len - 1 - number } else { number })?;
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
        out.push(exec, result.clone())?;
        value = Some(result);
    }
    if backward {
        out.reverse();
    }
    out.finish()?;
    Ok(out)
}

/// Which of `buckets` equal parts a row falls in, from 1; the first parts are one larger where it
/// doesn't come out even.
pub(super) fn bucket(row: usize, len: usize, buckets: u64) -> u64 {
    let (row, len) = (row as u64, len as u64);
    let (size, larger) = (len / buckets, len % buckets);
    let in_larger = larger * (size + 1);
    match row < in_larger {
        true => row / (size + 1) + 1,
        false => larger + (row - in_larger) / size.max(1) + 1,
    }
}

/// A whole number that isn't negative.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(v) => u64::try_from(*v).ok(),
        Value::UInt(v) => Some(*v),
        _ => None,
    }
}
