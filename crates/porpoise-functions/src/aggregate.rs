//! The table of aggregate functions, a row each.

use std::cmp::Ordering;

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::memory::{Arena, Charge, ITEMS_MANY, Place, reclaim};
use porpoise_core::sort;
use porpoise_expr::aggregate::{Accumulator, Aggregate, AggregateFunction, Total};
use porpoise_expr::function::{ArgumentKind, Arity, at_least, exactly};
use porpoise_expr::{Domain, EvalContext, Expr, compare, key, typing};
use porpoise_types::vector::{ElementSlice, Kind, VectorSlice, text_value};
use porpoise_types::{
    BlobSize, Collation, DataType, Decimal, Json, JsonValue, KeyBuf, Value, convert,
};

/// Looks an aggregate function up by name, in any case.
pub fn find(name: &str) -> Option<&'static AggregateFunction> {
    AGGREGATES
        .iter()
        .find(|function| function.name.eq_ignore_ascii_case(name))
}

macro_rules! start {
    ($state:expr) => {
        |_| Box::new($state)
    };
}

const fn row(
    name: &'static str,
    arity: Arity,
    argument_kinds: &'static [ArgumentKind],
    returns: fn(&[Expr]) -> Result<(DataType, bool)>,
    start: fn(&Aggregate) -> Box<dyn Accumulator>,
) -> AggregateFunction {
    let collects = matches!(
        name.as_bytes(),
        b"GROUP_CONCAT" | b"JSON_ARRAYAGG" | b"JSON_OBJECTAGG"
    );
    AggregateFunction {
        name,
        arity,
        argument_kinds,
        returns,
        start,
        ordered: collects || matches!(name.as_bytes(), b"ANY_VALUE"),
        collects,
        is_silent: !collects,
    }
}

const fn variance(
    name: &'static str,
    start: fn(&Aggregate) -> Box<dyn Accumulator>,
) -> AggregateFunction {
    row(name, exactly(1), &[ArgumentKind::Double], double, start)
}

/// All aggregate functions. COUNT(*) has no argument.
pub static AGGREGATES: &[AggregateFunction] = &[
    row(
        "ANY_VALUE",
        exactly(1),
        &[ArgumentKind::Any],
        same,
        start!(AnyValue(None)),
    ),
    row(
        "AVG",
        exactly(1),
        &[ArgumentKind::Number],
        average_type,
        |call| {
            Box::new(Average {
                sum: Sum::default(),
                count: 0,
                scale: call.ty.decimals(),
            })
        },
    ),
    row(
        "BIT_AND",
        exactly(1),
        &[ArgumentKind::Integer],
        bits,
        start!(Bits {
            value: u64::MAX,
            fold: |a, b| a & b
        }),
    ),
    row(
        "BIT_OR",
        exactly(1),
        &[ArgumentKind::Integer],
        bits,
        start!(Bits {
            value: 0,
            fold: |a, b| a | b
        }),
    ),
    row(
        "BIT_XOR",
        exactly(1),
        &[ArgumentKind::Integer],
        bits,
        start!(Bits {
            value: 0,
            fold: |a, b| a ^ b
        }),
    ),
    row(
        "COUNT",
        Arity {
            min: 0,
            max: usize::MAX,
        },
        &[ArgumentKind::Any],
        |_| Ok((DataType::BIGINT, false)),
        start!(Count(0)),
    ),
    row(
        "GROUP_CONCAT",
        at_least(1),
        &[ArgumentKind::Mixed],
        concat_type,
        |call| Box::new(GroupConcat::new(call)),
    ),
    row(
        "JSON_ARRAYAGG",
        exactly(1),
        &[ArgumentKind::Any],
        |_| Ok((DataType::Json, true)),
        |call| {
            Box::new(JsonArray {
                ty: argument_type(call, 0),
                items: None,
                charge: Charge::default(),
            })
        },
    ),
    row(
        "JSON_OBJECTAGG",
        exactly(2),
        &[ArgumentKind::String, ArgumentKind::Any],
        |_| Ok((DataType::Json, true)),
        |call| {
            Box::new(JsonObject {
                ty: argument_type(call, 1),
                members: None,
                charge: Charge::default(),
            })
        },
    ),
    row("MAX", exactly(1), &[ArgumentKind::Any], same, |call| {
        Box::new(Extreme {
            best: None,
            domain: domain(call),
            wanted: Ordering::Greater,
        })
    }),
    row("MIN", exactly(1), &[ArgumentKind::Any], same, |call| {
        Box::new(Extreme {
            best: None,
            domain: domain(call),
            wanted: Ordering::Less,
        })
    }),
    variance("STD", start!(Variance::of_population().root())),
    variance("STDDEV", start!(Variance::of_population().root())),
    variance("STDDEV_POP", start!(Variance::of_population().root())),
    variance("STDDEV_SAMP", start!(Variance::of_sample().root())),
    row(
        "SUM",
        exactly(1),
        &[ArgumentKind::Number],
        sum_type,
        start!(Sum::default()),
    ),
    variance("VARIANCE", start!(Variance::of_population())),
    variance("VAR_POP", start!(Variance::of_population())),
    variance("VAR_SAMP", start!(Variance::of_sample())),
];

/// The argument's type; a number is shown without the zeros of ZEROFILL.
fn same(arguments: &[Expr]) -> Result<(DataType, bool)> {
    let mut ty = arguments
        .first()
        .map_or(DataType::Null, |argument| argument.ty.clone());
    if let DataType::Int { zerofill, .. }
    | DataType::Decimal { zerofill, .. }
    | DataType::Float { zerofill, .. }
    | DataType::Double { zerofill, .. } = &mut ty
    {
        *zerofill = false;
    }
    Ok((ty, true))
}

fn double(_: &[Expr]) -> Result<(DataType, bool)> {
    Ok((DataType::DOUBLE, true))
}

fn bits(_: &[Expr]) -> Result<(DataType, bool)> {
    Ok((DataType::BIGINT_UNSIGNED, false))
}

fn argument_type(call: &Aggregate, position: usize) -> DataType {
    call.arguments
        .get(position)
        .map_or(DataType::Null, |argument| argument.ty.clone())
}

fn domain(call: &Aggregate) -> Domain {
    Domain::of(&argument_type(call, 0))
}

/// Digits a sum may have more than what it sums.
const SUM_EXTRA_DIGITS: u8 = 22;

fn digits_of(ty: &DataType) -> Option<(u8, u8)> {
    match ty {
        DataType::Decimal {
            precision, scale, ..
        } => Some((*precision, *scale)),
        DataType::Int {
            width, unsigned, ..
        } => Some((
            match (width.bits(), unsigned) {
                (8, _) => 3,
                (16, _) => 5,
                (24, false) => 7,
                (24, true) => 8,
                (32, _) => 10,
                (_, false) => 19,
                (_, true) => 20,
            },
            0,
        )),
        DataType::Bit(_) | DataType::Year => Some((20, 0)),
        _ => None,
    }
}

fn sum_type(arguments: &[Expr]) -> Result<(DataType, bool)> {
    let ty = arguments
        .first()
        .map_or(DataType::Null, |argument| argument.ty.clone());
    Ok(match digits_of(&ty) {
        Some((precision, scale)) => (
            DataType::decimal((precision + SUM_EXTRA_DIGITS).min(65), scale),
            true,
        ),
        None => (DataType::DOUBLE, true),
    })
}

/// `div_precision_increment`'s default.
const INCREMENT: u8 = 4;

fn average_type(arguments: &[Expr]) -> Result<(DataType, bool)> {
    let ty = arguments
        .first()
        .map_or(DataType::Null, |argument| argument.ty.clone());
    Ok(match digits_of(&ty) {
        Some((precision, scale)) => {
            let scale = (scale + INCREMENT).min(30);
            (
                DataType::decimal((precision + INCREMENT).min(65).max(scale), scale),
                true,
            )
        }
        None => (DataType::DOUBLE, true),
    })
}

fn concat_type(arguments: &[Expr]) -> Result<(DataType, bool)> {
    let first = arguments.iter().find(|argument| argument.ty.is_string());
    let default = first.map_or(Collation::UTF8MB4_0900_AI_CI, |first| first.ty.collation());
    let size = BlobSize::Normal;
    let ty = match typing::collation::mixed(arguments, "group_concat", default)? {
        Collation::BINARY => DataType::Blob(size),
        collation => DataType::Text { size, collation },
    };
    Ok((ty, true))
}

struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        self.0 += i64::from(!arguments.iter().any(Value::is_null));
        Ok(())
    }

    fn add_vector(&mut self, arguments: VectorSlice<'_>) -> Result<bool> {
        self.0 += arguments.count() as i64;
        Ok(true)
    }

    fn add_total(&mut self, total: Total) -> Result<bool> {
        self.0 += total.count as i64;
        Ok(true)
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(Value::Int(self.0))
    }
}

struct AnyValue(Option<Value>);

impl Accumulator for AnyValue {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        if self.0.is_none() {
            self.0 = arguments.first().cloned();
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(self.0.clone().unwrap_or(Value::Null))
    }
}

/// Integers are summed in 128 bits, decimals exactly, everything else as DOUBLE.
#[derive(Default)]
enum Sum {
    #[default]
    Empty,
    Integer(i128),
    Decimal(Decimal),
    Double(f64),
}

impl Sum {
    fn put(&mut self, value: &Value) -> Result<()> {
        let overflow = || Error::value_out_of_range("DECIMAL", "sum()");
        *self = match (std::mem::take(self), value) {
            (sum, Value::Null) => sum,
            (Sum::Empty, Value::Int(v)) => Sum::Integer(i128::from(*v)),
            (Sum::Empty, Value::UInt(v)) => Sum::Integer(i128::from(*v)),
            (Sum::Integer(sum), Value::Int(v)) => {
                Sum::Integer(sum.checked_add(i128::from(*v)).ok_or_else(overflow)?)
            }
            (Sum::Integer(sum), Value::UInt(v)) => {
                Sum::Integer(sum.checked_add(i128::from(*v)).ok_or_else(overflow)?)
            }
            (Sum::Empty, Value::Decimal(v)) => Sum::Decimal(v.clone()),
            (Sum::Decimal(sum), Value::Decimal(v)) => {
                Sum::Decimal(sum.checked_add(v).ok_or_else(overflow)?)
            }
            (Sum::Integer(sum), Value::Decimal(v)) => Sum::Decimal(
                Decimal::from_i128(sum, 0)
                    .checked_add(v)
                    .ok_or_else(overflow)?,
            ),
            (Sum::Decimal(sum), value @ (Value::Int(_) | Value::UInt(_))) => Sum::Decimal(
                sum.checked_add(&convert::to_decimal(value).0)
                    .ok_or_else(overflow)?,
            ),
            (Sum::Empty, value) => Sum::Double(convert::to_double(value).0),
            (Sum::Double(sum), value) => Sum::Double(sum + convert::to_double(value).0),
            (Sum::Integer(sum), value) => Sum::Double(sum as f64 + convert::to_double(value).0),
            (Sum::Decimal(sum), value) => Sum::Double(sum.to_f64() + convert::to_double(value).0),
        };
        Ok(())
    }
}

impl Sum {
    /// Takes the sum of exact numbers; `false` if it takes them one by one only.
    fn put_sum(&mut self, sum: i128, kind: Kind) -> Result<bool> {
        let overflow = || Error::value_out_of_range("DECIMAL", "sum()");
        let scale = kind.scale().unwrap_or(0);
        *self = match (std::mem::take(self), kind) {
            (Sum::Empty, Kind::Decimal(_)) => Sum::Decimal(Decimal::from_i128(sum, scale)),
            (Sum::Empty, _) => Sum::Integer(sum),
            (Sum::Integer(before), Kind::Int | Kind::UInt) => {
                Sum::Integer(before.checked_add(sum).ok_or_else(overflow)?)
            }
            (Sum::Decimal(before), _) => {
                let sum = Decimal::from_i128(sum, scale);
                Sum::Decimal(before.checked_add(&sum).ok_or_else(overflow)?)
            }
            (before, _) => {
                *self = before;
                return Ok(false);
            }
        };
        Ok(true)
    }

    /// Takes many values; how many of them were not NULL, or `None` if it takes them one by one only.
    fn put_vector(&mut self, values: VectorSlice<'_>) -> Result<Option<usize>> {
        let count = values.count();
        match (values.elements, values.kind) {
            _ if count == 0 => {}
            (ElementSlice::Integers(integers), Kind::Int | Kind::UInt | Kind::Decimal(_)) => {
                let mut sum = 0;
                if values.nulls.is_empty() {
                    integers.iter().for_each(|value| sum += i128::from(*value));
                } else {
                    for (value, is_null) in integers.iter().zip(values.nulls) {
                        sum += i128::from(if *is_null { 0 } else { *value });
                    }
                }
                if !self.put_sum(sum, values.kind)? {
                    return Ok(None);
                }
            }
            (ElementSlice::Doubles(doubles), _) => {
                // A sum of doubles depends on the order: it is that of the rows.
                for (row, value) in doubles.iter().enumerate() {
                    if values.is_null(row) {
                        continue;
                    }
                    match self {
                        Sum::Double(sum) => *sum += value,
                        _ => self.put(&Value::Double(*value))?,
                    }
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(count))
    }
}

impl Accumulator for Sum {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        arguments.first().map_or(Ok(()), |value| self.put(value))
    }

    fn add_vector(&mut self, arguments: VectorSlice<'_>) -> Result<bool> {
        Ok(self.put_vector(arguments)?.is_some())
    }

    fn add_total(&mut self, total: Total) -> Result<bool> {
        if total.count > 0 && !self.put_sum(total.sum, total.kind)? {
            let scale = total.kind.scale().unwrap_or(0);
            self.put(&Value::Decimal(Decimal::from_i128(total.sum, scale)))?;
        }
        Ok(true)
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(match self {
            Sum::Empty => Value::Null,
            Sum::Integer(sum) => Value::Decimal(Decimal::from_i128(*sum, 0)),
            Sum::Decimal(sum) => Value::Decimal(sum.clone()),
            Sum::Double(sum) => Value::Double(*sum),
        })
    }
}

struct Average {
    sum: Sum,
    count: i64,
    scale: u8,
}

impl Accumulator for Average {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        if let Some(value) = arguments.first().filter(|value| !value.is_null()) {
            self.count += 1;
            self.sum.put(value)?;
        }
        Ok(())
    }

    fn add_vector(&mut self, arguments: VectorSlice<'_>) -> Result<bool> {
        let count = self.sum.put_vector(arguments)?;
        self.count += count.unwrap_or(0) as i64;
        Ok(count.is_some())
    }

    fn add_total(&mut self, total: Total) -> Result<bool> {
        let is_taken = self.sum.add_total(total)?;
        if is_taken {
            self.count += total.count as i64;
        }
        Ok(is_taken)
    }

    fn finish(&mut self, context: &mut dyn EvalContext) -> Result<Value> {
        let count = Decimal::new(self.count, 0);
        Ok(match self.sum.finish(context)? {
            Value::Decimal(sum) => {
                // The sum of quotients has more digits than their type shows, and so has its part.
                let shown = self.scale.saturating_sub(sum.scale());
                sum.quotient(&count, shown.max(INCREMENT))
                    .map_or(Value::Null, Value::Decimal)
            }
            Value::Double(sum) => Value::Double(sum / self.count as f64),
            _ => Value::Null,
        })
    }
}

struct Extreme {
    best: Option<Value>,
    domain: Domain,
    wanted: Ordering,
}

impl Accumulator for Extreme {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        let Some(value) = arguments.first().filter(|value| !value.is_null()) else {
            return Ok(());
        };
        if self
            .best
            .as_ref()
            .is_none_or(|best| compare::compare(value, best, self.domain) == self.wanted)
        {
            self.best = Some(value.clone());
        }
        Ok(())
    }

    fn add_vector(&mut self, arguments: VectorSlice<'_>) -> Result<bool> {
        let wanted = self.wanted;
        let best = match (arguments.elements, self.domain) {
            (ElementSlice::Integers(v), _) => best_row(&arguments, v, |a, b| a.cmp(b) == wanted),
            (ElementSlice::Doubles(v), _) => {
                best_row(&arguments, v, |a, b| a.partial_cmp(b) == Some(wanted))
            }
            (ElementSlice::Texts(v), Domain::Text(collation)) => {
                // Most rows are not better than what other rows have had.
                let mut best = self.best.take();
                for (row, text) in v.iter().enumerate() {
                    let is_better = |best: &Value| {
                        let best = best.as_bytes().unwrap_or_default();
                        collation.compare(text, best) == wanted
                    };
                    if !arguments.is_null(row) && best.as_ref().is_none_or(is_better) {
                        best = Some(text_value(text));
                    }
                }
                self.best = best;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        if let Some(row) = best {
            let value = arguments.value(row);
            let is_better = |best| compare::compare(&value, best, self.domain) == wanted;
            if self.best.as_ref().is_none_or(is_better) {
                self.best = Some(value);
            }
        }
        Ok(true)
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(self.best.clone().unwrap_or(Value::Null))
    }
}

/// The first row whose value no other row's is better than; `None` where all are NULL.
fn best_row<T>(
    arguments: &VectorSlice<'_>,
    values: &[T],
    is_better: impl Fn(&T, &T) -> bool,
) -> Option<usize> {
    let mut best: Option<(usize, &T)> = None;
    for (row, value) in values.iter().enumerate() {
        if !arguments.is_null(row) && best.is_none_or(|(_, best)| is_better(value, best)) {
            best = Some((row, value));
        }
    }
    best.map(|(row, _)| row)
}

struct Bits {
    value: u64,
    fold: fn(u64, u64) -> u64,
}

impl Accumulator for Bits {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        match arguments.first() {
            Some(Value::Int(v)) => self.value = (self.fold)(self.value, *v as u64),
            Some(Value::UInt(v)) => self.value = (self.fold)(self.value, *v),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(Value::UInt(self.value))
    }
}

/// Welford's running variance. Of whole numbers, as long as their squares are exact, the sums are
/// kept instead: the variance then has one rounding.
#[derive(Default)]
struct Variance {
    count: u64,
    mean: f64,
    squares: f64,
    /// The sum and the sum of squares; `None` once there was a fraction or a large number.
    whole: Whole,
    sample: bool,
    root: bool,
}

/// Exact sums of whole numbers.
enum Whole {
    Sums { sum: i128, squares: i128 },
    Lost,
}

impl Default for Whole {
    fn default() -> Whole {
        Whole::Sums { sum: 0, squares: 0 }
    }
}

impl Whole {
    fn add(&mut self, value: f64) {
        /// Below this, the sums of 2^39 rows fit.
        const MAX: f64 = 16_777_216.0;
        match self {
            Whole::Sums { sum, squares } if value.fract() == 0.0 && value.abs() < MAX => {
                let value = value as i128;
                *sum += value;
                *squares += value * value;
            }
            _ => *self = Whole::Lost,
        }
    }
}

impl Variance {
    fn of_population() -> Variance {
        Variance::default()
    }

    fn of_sample() -> Variance {
        Variance {
            sample: true,
            ..Variance::default()
        }
    }

    /// The standard deviation.
    fn root(self) -> Variance {
        Variance { root: true, ..self }
    }
}

impl Accumulator for Variance {
    fn add(&mut self, _: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        let Some(Value::Double(value)) = arguments.first() else {
            return Ok(());
        };
        self.count += 1;
        self.whole.add(*value);
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        let degrees = self.count.saturating_sub(u64::from(self.sample));
        if degrees == 0 {
            return Ok(Value::Null);
        }
        let squares = match self.whole {
            Whole::Sums { sum, squares } => {
                let count = i128::from(self.count);
                (count * squares - sum * sum) as f64 / self.count as f64
            }
            Whole::Lost => self.squares,
        };
        let variance = squares / degrees as f64;
        Ok(Value::Double(if self.root {
            variance.sqrt()
        } else {
            variance
        }))
    }
}

/// GROUP_CONCAT's arguments are the expressions to join, then those of its ORDER BY.
///
/// Without an ORDER BY the result grows as rows come, and no further than it may. With one, rows
/// are kept to be sorted.
struct GroupConcat {
    types: Vec<DataType>,
    joined: usize,
    descending: Vec<bool>,
    separator: String,
    binary: bool,
    /// How many rows were taken.
    count: usize,
    text: Concatenated,
    /// Rows to be sorted: their keys, each before its text.
    rows: Vec<KeptText>,
    bytes: Arena,
    charge: Charge,
}

/// A row's sort key and text, one behind the other.
#[derive(Clone, Copy)]
struct KeptText {
    place: Place,
    key_bytes: u32,
    text_bytes: u32,
    number: usize,
}

impl KeptText {
    fn key<'a>(&self, bytes: &'a Arena) -> &'a [u8] {
        &bytes.from(self.place)[..self.key_bytes as usize]
    }

    fn text<'a>(&self, bytes: &'a Arena) -> &'a [u8] {
        &bytes.from(self.place)[self.key_bytes as usize..][..self.text_bytes as usize]
    }
}

/// A result that grows to `group_concat_max_len`, and to `max_allowed_packet` where that is less.
#[derive(Default)]
struct Concatenated {
    bytes: Vec<u8>,
    charge: Charge,
    /// The number of the row that didn't fit any more.
    cut: Option<usize>,
}

impl Concatenated {
    fn add(
        &mut self,
        context: &dyn EvalContext,
        number: usize,
        separator: &str,
        text: &[u8],
    ) -> Result<()> {
        if self.cut.is_some() {
            return Ok(());
        }
        let vars = context.vars();
        let most = vars.group_concat_max_len.min(vars.max_allowed_packet);
        let left = usize::try_from(most).unwrap_or(usize::MAX) - self.bytes.len();
        let separator = match number {
            0 => &b""[..],
            _ => separator.as_bytes(),
        };
        let len = separator.len() + text.len();
        // A byte more than there is room for shows where a character ends.
        let kept = len.min(left.saturating_add(1));
        let bytes = &mut self.bytes;
        self.charge.reserve(&vars.memory, bytes, kept)?;
        bytes.extend(separator.iter().chain(text).take(kept));
        if len > left {
            self.cut = Some(number + 1);
        }
        Ok(())
    }

    /// The value so far; warns if a row was cut.
    fn value(&mut self, context: &mut dyn EvalContext, is_binary: bool) -> Result<Value> {
        let mut end = self.bytes.len();
        if let Some(row) = self.cut {
            end -= 1;
            while !is_binary && end > 0 && self.bytes[end] & 0xC0 == 0x80 {
                end -= 1;
            }
            let cut = Error::group_concat_cut(row).into_condition();
            context.vars_mut().warn(Level::Warning, cut);
        }
        let mut copies = Charge::default();
        copies.add(&context.vars().memory, end)?;
        Ok(match is_binary {
            true => Value::Bytes(self.bytes[..end].to_vec()),
            false => Value::text(String::from_utf8_lossy(&self.bytes[..end])),
        })
    }
}

impl GroupConcat {
    fn new(call: &Aggregate) -> GroupConcat {
        GroupConcat {
            types: call
                .arguments
                .iter()
                .map(|argument| argument.ty.clone())
                .collect(),
            joined: call.arguments.len().saturating_sub(call.order.len()),
            descending: call.order.iter().map(|key| key.descending).collect(),
            separator: call.separator.clone().unwrap_or_else(|| ",".to_owned()),
            binary: call.ty.is_binary_string(),
            count: 0,
            text: Concatenated::default(),
            rows: Vec::new(),
            bytes: Arena::default(),
            charge: Charge::default(),
        }
    }

    /// Keeps a row to be sorted.
    fn keep(&mut self, context: &dyn EvalContext, order: &[Value], text: &[u8]) -> Result<()> {
        let mut key = KeyBuf::new();
        let typed = order
            .iter()
            .zip(&self.types[self.joined..])
            .zip(&self.descending);
        key::encode_values(
            typed.map(|((value, ty), descending)| (value, ty, *descending)),
            &mut key,
        );
        let account = &context.vars().memory;
        let (place, bytes) = self.bytes.room(account, key.len() + text.len())?;
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(text);
        self.charge.reserve(account, &mut self.rows, 1)?;
        self.rows.push(KeptText {
            place,
            key_bytes: key.len() as u32,
            text_bytes: text.len() as u32,
            number: self.count,
        });
        Ok(())
    }

    /// Puts the rows that were kept in order, and their texts together.
    fn concatenate(&mut self, context: &dyn EvalContext) -> Result<Concatenated> {
        /// How many rows may be sorted without a look whether the statement is to end.
        const RUN: usize = 1 << 14;
        let bytes = &self.bytes;
        let by_key = |a: &KeptText, b: &KeptText| {
            (a.key(bytes).cmp(b.key(bytes))).then(a.number.cmp(&b.number))
        };
        sort::sort(&mut self.rows, RUN, by_key, || context.check_interrupt())?;
        let mut text = Concatenated::default();
        for (number, row) in self.rows.iter().enumerate() {
            context.check_interrupt()?;
            text.add(context, number, &self.separator, row.text(bytes))?;
            if text.cut.is_some() {
                break;
            }
        }
        Ok(text)
    }
}

impl Accumulator for GroupConcat {
    fn add(&mut self, context: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        let (joined, order) = arguments.split_at(self.joined.min(arguments.len()));
        if joined.iter().any(Value::is_null) {
            return Ok(());
        }
        let mut text = Vec::new();
        for (value, ty) in joined.iter().zip(&self.types) {
            convert::write_text(value, ty, &mut text);
        }
        match self.descending.is_empty() {
            true => self.text.add(context, self.count, &self.separator, &text)?,
            false => self.keep(context, order, &text)?,
        }
        self.count += 1;
        Ok(())
    }

    fn finish(&mut self, context: &mut dyn EvalContext) -> Result<Value> {
        if self.count == 0 {
            return Ok(Value::Null);
        }
        match self.descending.is_empty() {
            true => self.text.value(context, self.binary),
            false => self.concatenate(context)?.value(context, self.binary),
        }
    }
}

fn json_of(value: &Value, ty: &DataType) -> Result<JsonValue> {
    if value.is_null() {
        return Ok(JsonValue::Null);
    }
    let json = convert::to_json(value, ty, false);
    Ok(json
        .map_err(|error| {
            Error::invalid_json_text_in_parameter(1, "json_arrayagg", error.message, error.position)
        })?
        .into_value())
}

/// A document's values lie in the accumulator and in the result.
const COPIES: usize = 2;

struct JsonArray {
    ty: DataType,
    items: Option<Vec<JsonValue>>,
    charge: Charge,
}

impl Drop for JsonArray {
    fn drop(&mut self) {
        if self
            .items
            .as_ref()
            .is_some_and(|items| items.len() > ITEMS_MANY)
        {
            reclaim(self.items.take());
        }
    }
}

impl Accumulator for JsonArray {
    fn add(&mut self, context: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        if let Some(value) = arguments.first() {
            let json = json_of(value, &self.ty)?;
            let bytes = size_of::<JsonValue>() + json.heap_bytes();
            self.charge.add(&context.vars().memory, COPIES * bytes)?;
            self.items.get_or_insert_default().push(json);
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(self.items.clone().map_or(Value::Null, |items| {
            Value::Json(Json::new(JsonValue::Array(items)))
        }))
    }
}

struct JsonObject {
    ty: DataType,
    members: Option<Vec<(porpoise_types::CompactString, JsonValue)>>,
    charge: Charge,
}

impl Drop for JsonObject {
    fn drop(&mut self) {
        let members = self.members.as_ref();
        if members.is_some_and(|members| members.len() > ITEMS_MANY) {
            reclaim(self.members.take());
        }
    }
}

impl Accumulator for JsonObject {
    fn add(&mut self, context: &mut dyn EvalContext, arguments: &[Value]) -> Result<()> {
        let [key, value] = arguments else {
            return Ok(());
        };
        let Value::Text(key) = key else {
            return Err(Error::json_null_key());
        };
        let json = json_of(value, &self.ty)?;
        let bytes = 2 * size_of::<JsonValue>() + key.len() + json.heap_bytes();
        self.charge.add(&context.vars().memory, COPIES * bytes)?;
        self.members
            .get_or_insert_default()
            .push((key.clone(), json));
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn EvalContext) -> Result<Value> {
        Ok(self.members.clone().map_or(Value::Null, |members| {
            Value::Json(Json::new(JsonValue::object(members)))
        }))
    }
}
