//! From conditions on an index's parts to bounds on its storage keys.
//!
//! A plan's [`KeyRange`] holds values in the domain in which the query compares them; a key holds
//! values of the column's type. [`fit`] finds where a value stands among the column's: on one of
//! them, between two, or beyond them all; bounds move accordingly (`id < 2.5` is `id <= 2`).
//!
//! An encoded part is self-delimiting, so all keys whose first parts are given lie between that
//! prefix and its successor:
//!
//! ```text
//! k = 5            [5]            ≤ key <  succ([5])
//! k > 5            succ([5])      ≤ key <  end of the non-NULLs
//! k >= 5 AND k < 9 [5]            ≤ key <  [9]
//! ```

use std::cmp::Ordering;

use porpoise_catalog::{Index, IndexPart, Table};
use porpoise_core::error::Result;
use porpoise_expr::Expr;
use porpoise_types::{DataType, DateTime, KeyBuf, Rounding, Value, convert, successor_of_prefix};
use smallvec::SmallVec;

use crate::plan::{KeyBound, KeyRange};

/// Where the values of keys come from: a statement that runs, or what the planner knows.
pub trait KeyValues {
    /// The value of a key's part.
    ///
    /// # Errors
    /// Where it can't be computed.
    fn value(&mut self, expr: &Expr) -> Result<Value>;

    /// A local time as TIMESTAMP stores it; `None` beyond what it can hold.
    fn to_utc(&self, local: DateTime) -> Option<DateTime>;
}

/// Keys from `low` (included) up to `high` (excluded; `None`: to the end of the space).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first key.
    pub low: KeyBuf,
    /// The end.
    pub high: Option<KeyBuf>,
}

impl Bounds {
    /// Whether they leave nothing of a space out.
    pub fn is_everything(&self) -> bool {
        self.low.is_empty() && self.high.is_none()
    }
}

/// Where a value stands among a column's possible values.
#[derive(Clone, Debug, PartialEq)]
enum Fit {
    Exact(Value),
    /// Between this value of the column and the next greater one.
    Above(Value),
    BelowAll,
    AboveAll,
    Null,
}

/// Finds a value's place in a column. TIMESTAMP columns hold UTC: the session's time zone converts.
fn fit(value: Value, ty: &DataType, values: &impl KeyValues) -> Fit {
    match (&value, ty) {
        (Value::Null, _) => Fit::Null,
        (
            _,
            DataType::Int {
                width, unsigned, ..
            },
        ) => fit_integer(value, width.range(*unsigned)),
        (_, DataType::Year) => fit_integer(value, (0, 2155)),
        (_, DataType::Bit(bits)) => fit_integer(value, (0, (1i128 << bits) - 1)),
        (_, DataType::Enum(_) | DataType::Set(_)) => fit_integer(value, (0, u64::MAX as i128)),
        (_, DataType::Decimal { scale, .. }) => {
            let (decimal, _) = convert::to_decimal(&value);
            let floor = decimal.rescale(*scale, Rounding::Floor);
            if floor == decimal {
                Fit::Exact(Value::Decimal(floor))
            } else {
                Fit::Above(Value::Decimal(floor))
            }
        }
        (_, DataType::Double { .. }) => Fit::Exact(Value::Double(convert::to_double(&value).0)),
        (_, DataType::Float { .. }) => {
            let wide = convert::to_double(&value).0;
            let mut narrow = wide as f32;
            if f64::from(narrow) > wide {
                narrow = narrow.next_down();
            }
            let floor = Value::Double(f64::from(narrow));
            if f64::from(narrow) == wide {
                Fit::Exact(floor)
            } else {
                Fit::Above(floor)
            }
        }
        (Value::DateTime(moment), DataType::Date) => {
            let date = Value::Date(moment.date());
            if moment.micros_of_day() == 0 {
                Fit::Exact(date)
            } else {
                Fit::Above(date)
            }
        }
        (Value::Date(date), DataType::DateTime { .. }) => {
            Fit::Exact(Value::DateTime(date.at_midnight()))
        }
        (Value::Date(date), DataType::Timestamp { .. }) => values
            .to_utc(date.at_midnight())
            .map_or(Fit::BelowAll, |utc| Fit::Exact(Value::DateTime(utc))),
        (Value::DateTime(moment), DataType::DateTime { fsp }) => {
            let floor = moment.truncate(*fsp);
            if floor == *moment {
                Fit::Exact(value)
            } else {
                Fit::Above(Value::DateTime(floor))
            }
        }
        (Value::DateTime(moment), DataType::Timestamp { fsp }) => {
            let Some(utc) = values.to_utc(*moment) else {
                return Fit::BelowAll;
            };
            let floor = utc.truncate(*fsp);
            if floor == utc {
                Fit::Exact(Value::DateTime(utc))
            } else {
                Fit::Above(Value::DateTime(floor))
            }
        }
        (Value::Time(time), DataType::Time { fsp }) => {
            let floor = time.truncate(*fsp);
            if floor == *time {
                Fit::Exact(value)
            } else {
                Fit::Above(Value::Time(floor))
            }
        }
        _ => Fit::Exact(value),
    }
}

fn fit_integer(value: Value, range: (i128, i128)) -> Fit {
    let (floor, exact) = match &value {
        Value::Int(v) => (i128::from(*v), true),
        Value::UInt(v) => (i128::from(*v), true),
        Value::Double(v) => {
            if v.is_nan() {
                return Fit::Null;
            }
            (v.floor() as i128, v.floor() == *v)
        }
        Value::Decimal(v) => {
            let floor = v.floor();
            let exact = floor == *v;
            match (floor.to_i64(), floor.to_u64()) {
                (Some(n), _) => (i128::from(n), exact),
                (None, Some(n)) => (i128::from(n), exact),
                (None, None) if floor.is_negative() => return Fit::BelowAll,
                (None, None) => return Fit::AboveAll,
            }
        }
        other => (i128::from(convert::to_int(other).0), true),
    };
    if floor < range.0 {
        return Fit::BelowAll;
    }
    if floor > range.1 {
        return Fit::AboveAll;
    }
    let held = if range.0 < 0 {
        Value::Int(floor as i64)
    } else {
        Value::UInt(floor as u64)
    };
    if exact {
        Fit::Exact(held)
    } else {
        Fit::Above(held)
    }
}

/// The bounds of a range of keys that have these parts, or `None` where no row can be in it.
pub fn bounds(
    values: &mut impl KeyValues,
    table: &Table,
    parts: &[IndexPart],
    range: &KeyRange,
) -> Result<Option<Bounds>> {
    let is_bounded = range.lower.is_some() || range.upper.is_some();
    bounds_of(values, table, parts, range, is_bounded)
}

/// The bounds of a range, without the keys whose part behind the fixed ones is NULL.
pub fn bounds_not_null(
    values: &mut impl KeyValues,
    table: &Table,
    parts: &[IndexPart],
    range: &KeyRange,
) -> Result<Option<Bounds>> {
    bounds_of(values, table, parts, range, true)
}

/// NULLs lie outside of bounds, open ones included.
fn bounds_of(
    values: &mut impl KeyValues,
    table: &Table,
    parts: &[IndexPart],
    range: &KeyRange,
    is_bounded: bool,
) -> Result<Option<Bounds>> {
    let mut prefix = KeyBuf::new();
    for (part, fixed) in parts.iter().zip(&range.equal) {
        let column = &table.columns[part.column];
        let value = values.value(&fixed.value)?;
        let value = match fit(value, &column.ty, values) {
            Fit::Exact(value) => value,
            Fit::Null if fixed.null_safe && column.nullable => Value::Null,
            _ => return Ok(None),
        };
        part.encode(column, &value, &mut prefix);
    }
    let mut low = prefix.clone();
    let mut high = prefix;
    let mut high_is_end = false;
    if let (Some(part), true) = (parts.get(range.equal.len()), is_bounded) {
        let column = &table.columns[part.column];
        let encode = |value: &Value, into: &mut KeyBuf| part.encode(column, value, into);
        // In terms of the column's values: the least one wanted, and the greatest.
        let least = edge(values, range.lower.as_ref(), &column.ty, true)?;
        let greatest = edge(values, range.upper.as_ref(), &column.ty, false)?;
        let (Some(least), Some(greatest)) = (least, greatest) else {
            return Ok(None);
        };
        // A prefix of a string says nothing of what follows it: both ends then take in the prefix's
        // own rows.
        let cut = part.prefix.is_some();
        let (first, last) = if part.descending {
            (greatest, least)
        } else {
            (least, greatest)
        };
        match first {
            Edge::At(value, inclusive) => {
                encode(&value, &mut low);
                if !inclusive && !cut && !successor_of_prefix(&mut low) {
                    return Ok(None);
                }
            }
            Edge::Open => {
                // Ascending keys begin with the NULLs, which no bound takes in.
                if column.nullable && !part.descending {
                    encode(&Value::Null, &mut low);
                    successor_of_prefix(&mut low);
                }
            }
        }
        match last {
            Edge::At(value, inclusive) => {
                encode(&value, &mut high);
                if inclusive || cut {
                    high_is_end = !successor_of_prefix(&mut high);
                }
            }
            Edge::Open if column.nullable && part.descending => encode(&Value::Null, &mut high),
            Edge::Open => high_is_end = !successor_of_prefix(&mut high),
        }
    } else {
        high_is_end = !successor_of_prefix(&mut high);
    }
    let high = if high_is_end || high.is_empty() {
        None
    } else {
        Some(high)
    };
    if high
        .as_ref()
        .is_some_and(|high| low.as_slice() >= high.as_slice())
    {
        return Ok(None);
    }
    Ok(Some(Bounds { low, high }))
}

enum Edge {
    Open,
    At(Value, bool),
}

/// Where a range ends in the column's values; `None` where nothing is inside.
fn edge(
    values: &mut impl KeyValues,
    bound: Option<&KeyBound>,
    ty: &DataType,
    lower: bool,
) -> Result<Option<Edge>> {
    let Some(bound) = bound else {
        return Ok(Some(Edge::Open));
    };
    let mut value = values.value(&bound.value)?;
    let mut inclusive = bound.inclusive;
    // Doubles stand for all numbers that are nearest to them.
    if let (Value::Double(number), false) = (&mut value, ty.is_exact_in_double()) {
        *number = match lower {
            true => number.next_down(),
            false => number.next_up(),
        };
        inclusive = true;
    }
    Ok(match fit(value, ty, values) {
        Fit::Exact(value) => Some(Edge::At(value, inclusive)),
        // Nothing equals the value: above the floor is above it, up to the floor is below it.
        Fit::Above(floor) => Some(Edge::At(floor, !lower)),
        Fit::BelowAll if lower => Some(Edge::Open),
        Fit::AboveAll if !lower => Some(Edge::Open),
        Fit::Null | Fit::BelowAll | Fit::AboveAll => None,
    })
}

/// The bounds of several ranges of keys that have these parts: sorted, overlapping ones merged.
pub fn all_bounds(
    values: &mut impl KeyValues,
    table: &Table,
    parts: &[IndexPart],
    ranges: &[KeyRange],
) -> Result<SmallVec<[Bounds; 1]>> {
    let mut all: SmallVec<[Bounds; 1]> = SmallVec::new();
    for range in ranges {
        all.extend(bounds(values, table, parts, range)?);
    }
    if all.len() > 1 {
        all.sort_by(|a, b| a.low.cmp(&b.low));
        let mut merged: SmallVec<[Bounds; 1]> = SmallVec::new();
        for next in all {
            match merged.last_mut() {
                Some(last) if last.high.as_ref().is_none_or(|high| *high >= next.low) => {
                    if cmp_high(&next.high, &last.high) == Ordering::Greater {
                        last.high = next.high;
                    }
                }
                _ => merged.push(next),
            }
        }
        all = merged;
    }
    Ok(all)
}

fn cmp_high(a: &Option<KeyBuf>, b: &Option<KeyBuf>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(b),
    }
}

/// The key of a point look-up by every part of a unique index; `None` where no row can have it.
pub fn point<'p>(
    values: &mut impl KeyValues,
    table: &Table,
    index: &Index,
    key: impl Iterator<Item = &'p Expr>,
) -> Result<Option<KeyBuf>> {
    let mut out = KeyBuf::new();
    for (part, expr) in index.parts.iter().zip(key) {
        let column = &table.columns[part.column];
        let value = values.value(expr)?;
        let Fit::Exact(value) = fit(value, &column.ty, values) else {
            return Ok(None);
        };
        part.encode(column, &value, &mut out);
    }
    Ok(Some(out))
}

/// The keys of ranges that are points, in the index's order.
pub fn points(
    values: &mut impl KeyValues,
    table: &Table,
    index: &Index,
    ranges: &[KeyRange],
) -> Result<SmallVec<[KeyBuf; 1]>> {
    let mut all: SmallVec<[KeyBuf; 1]> = SmallVec::with_capacity(ranges.len());
    for range in ranges {
        let key = range.equal.iter().map(|part| &part.value);
        all.extend(point(values, table, index, key)?);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
