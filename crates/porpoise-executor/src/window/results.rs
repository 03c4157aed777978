//! The results of one window function for all rows of a partition.

use porpoise_core::error::{Error, Result};
use porpoise_expr::EvalContext;
use porpoise_expr::aggregate::Accumulator;
use porpoise_expr::aggregate::Aggregate;
use porpoise_planner::plan::{FrameBound, Window, WindowCall, WindowKind};
use porpoise_types::Value;

use super::Partition;
use super::frames::Frames;
use crate::Exec;

/// Of one function: its arguments by row, and the distances of its frame.
pub(super) struct FunctionInput {
    pub(super) arguments: Vec<Vec<Value>>,
    /// ROWS: one number for the partition. RANGE: by row, the order value at which the frame begins or ends.
    pub(super) start: Vec<Value>,
    pub(super) end: Vec<Value>,
}

/// The results of one function for every row of a partition.
pub(super) fn results(
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
pub(super) fn aggregates(
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
