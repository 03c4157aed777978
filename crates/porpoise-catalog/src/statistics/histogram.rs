//! Histograms: which part of a table's rows has a value in a column, or a smaller one.
//!
//! As in MySQL (8.4 manual, 10.9.6) there are two kinds. A column with no more distinct values than
//! buckets has a bucket for each (singleton). Otherwise a bucket stands for an interval of values
//! with about as many rows as each other has (equi-height); a value with more rows than that has a
//! bucket for itself.
//!
//! ```text
//! singleton     'cod' ▏0.50   'eel' ▏0.75   'ray' ▏0.90         + NULL 0.10
//! equi-height   [1 … 40] 10 values ▏0.25   [41 … 41] 1 ▏0.70   [44 … 90] 20 ▏1.00
//! ```
//!
//! Parts are of all rows, those with NULL included, and cumulative: the last bucket's and the part
//! of NULLs make 1.

use porpoise_expr::Domain;
use porpoise_expr::compare::compare;
use porpoise_types::{DataType, Value, convert};

/// The most buckets that a histogram may have.
pub const HISTOGRAM_BUCKETS_MAX: u64 = 1024;

/// Texts are told apart by so many characters (bytes of binary strings).
const TEXT_CHARS_MAX: usize = 42;

/// What is known of the values of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// How the values are distributed.
    pub buckets: Buckets,
    /// How values compare.
    pub domain: Domain,
    /// The part of rows with NULL.
    pub null_part: f64,
    /// `data-type`: what kind of values these are.
    pub data_type: &'static str,
    /// The number of the values' collation.
    pub collation: u16,
    /// The part of the table's rows that was read.
    pub sampling_rate: f64,
    /// How many buckets were asked for.
    pub buckets_specified: u64,
    /// Made anew whenever the table is analyzed.
    pub auto_update: bool,
    /// When it was made, in microseconds since 1970.
    pub updated_us: i64,
}

/// The buckets of a histogram, in the order of their values.
#[derive(Clone, Debug, PartialEq)]
pub enum Buckets {
    /// A value, and the part of rows with it or a smaller one.
    Singleton(Vec<(Value, f64)>),
    /// Intervals.
    EquiHeight(Vec<Bucket>),
}

/// An interval of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The smallest value.
    pub low: Value,
    /// The largest value.
    pub high: Value,
    /// The part of rows with `high` or a smaller value.
    pub up_to: f64,
    /// About how many distinct values there are, at least 1.
    pub distinct: u64,
}

/// What a histogram is made of.
pub struct HistogramSource<'a> {
    /// The column's type.
    pub ty: &'a DataType,
    /// The values that were read, NULLs among them.
    pub values: Vec<Value>,
    /// The part of the table's rows that they are.
    pub sampling_rate: f64,
    /// How many buckets there may be.
    pub buckets: u64,
    /// Whether it is to be made anew whenever the table is analyzed.
    pub auto_update: bool,
    /// Now, in microseconds since 1970.
    pub now_us: i64,
}

/// Whether columns of the type can have histograms.
pub fn can_have(ty: &DataType) -> bool {
    !matches!(ty, DataType::Json)
}

/// Rows with one value.
struct Group {
    value: Value,
    rows: u64,
}

impl Histogram {
    /// Makes a histogram of values in any order.
    pub fn build(source: HistogramSource<'_>) -> Histogram {
        let domain = Domain::of(source.ty);
        let has_rows = !source.values.is_empty();
        let all = source.values.len().max(1) as f64;
        let values = source.values.into_iter().filter(|value| !value.is_null());
        let mut values: Vec<Value> = values.map(shortened).collect();
        values.sort_unstable_by(|a, b| compare(a, b, domain));
        let null_part = match has_rows {
            true => 1.0 - values.len() as f64 / all,
            false => 0.0,
        };
        let mut groups: Vec<Group> = Vec::new();
        for value in values {
            match groups.last_mut() {
                Some(last) if compare(&last.value, &value, domain).is_eq() => last.rows += 1,
                _ => groups.push(Group { value, rows: 1 }),
            }
        }
        let buckets = match groups.len() as u64 <= source.buckets {
            true => singleton(groups, all),
            false => equi_height(groups, all, source.buckets, source.sampling_rate),
        };
        Histogram {
            buckets,
            domain,
            null_part,
            data_type: data_type(source.ty),
            collation: collation_of(source.ty),
            sampling_rate: source.sampling_rate,
            buckets_specified: source.buckets,
            auto_update: source.auto_update,
            updated_us: source.now_us,
        }
    }

    /// The parts of rows with a smaller value, and with this one.
    pub fn below_and_equal(&self, value: &Value) -> (f64, f64) {
        let value = &shortened(value.clone());
        match &self.buckets {
            Buckets::Singleton(singles) => {
                let at = singles.partition_point(|(v, _)| compare(v, value, self.domain).is_lt());
                let before = at.checked_sub(1).map_or(0.0, |before| singles[before].1);
                match singles.get(at) {
                    Some((v, up_to)) if compare(v, value, self.domain).is_eq() => {
                        (before, up_to - before)
                    }
                    _ => (before, 0.0),
                }
            }
            Buckets::EquiHeight(buckets) => {
                let at = buckets.partition_point(|b| compare(&b.high, value, self.domain).is_lt());
                let before = at
                    .checked_sub(1)
                    .map_or(0.0, |before| buckets[before].up_to);
                match buckets.get(at) {
                    Some(bucket) if compare(&bucket.low, value, self.domain).is_le() => {
                        self.within(bucket, before, value)
                    }
                    _ => (before, 0.0),
                }
            }
        }
    }

    /// The same within the bucket that holds the value, behind buckets with a part `before` of the
    /// rows.
    fn within(&self, bucket: &Bucket, before: f64, value: &Value) -> (f64, f64) {
        let part = bucket.up_to - before;
        let equal = part / bucket.distinct.max(1) as f64;
        let below = if compare(&bucket.low, value, self.domain).is_eq() {
            0.0
        } else if compare(&bucket.high, value, self.domain).is_eq() {
            part - equal
        } else {
            let place = place_between(&bucket.low, &bucket.high, value);
            (part * place).clamp(equal.min(part - equal), (part - equal).max(0.0))
        };
        (before + below.max(0.0), equal)
    }

    /// About how many distinct values the column has.
    pub fn distinct(&self) -> f64 {
        match &self.buckets {
            Buckets::Singleton(singles) => singles.len() as f64,
            Buckets::EquiHeight(buckets) => buckets.iter().map(|b| b.distinct as f64).sum(),
        }
    }

    /// How many buckets there are.
    pub fn len(&self) -> usize {
        match &self.buckets {
            Buckets::Singleton(singles) => singles.len(),
            Buckets::EquiHeight(buckets) => buckets.len(),
        }
    }

    /// Whether the column had no value but NULL.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn singleton(groups: Vec<Group>, all: f64) -> Buckets {
    let mut seen = 0;
    let singles = groups.into_iter().map(|group| {
        seen += group.rows;
        (group.value, seen as f64 / all)
    });
    Buckets::Singleton(singles.collect())
}

fn equi_height(groups: Vec<Group>, all: f64, buckets_max: u64, rate: f64) -> Buckets {
    let mut left: u64 = groups.iter().map(|group| group.rows).sum();
    let mut seen = 0;
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut open: Vec<Group> = Vec::new();
    let mut close = |open: &mut Vec<Group>| {
        let rows: u64 = open.iter().map(|group| group.rows).sum();
        seen += rows;
        let distinct = distinct_of(open, rows, rate);
        let mut groups = open.drain(..).map(|group| group.value);
        let low = groups.next().unwrap_or_default();
        let high = groups.next_back().unwrap_or_else(|| low.clone());
        buckets.push(Bucket {
            low,
            high,
            up_to: seen as f64 / all,
            distinct,
        });
        rows
    };
    let mut free = buckets_max.max(1);
    let mut open_rows = 0;
    for group in groups {
        let target = left.div_ceil(free);
        if free > 1 && !open.is_empty() && open_rows + group.rows > target {
            left -= close(&mut open);
            free -= 1;
            open_rows = 0;
        }
        open_rows += group.rows;
        open.push(group);
    }
    if !open.is_empty() {
        close(&mut open);
    }
    Buckets::EquiHeight(buckets)
}

/// How many distinct values an interval has of which some rows were read: the estimator Duj1 of
/// Haas and Stokes (1998).
fn distinct_of(groups: &[Group], rows: u64, rate: f64) -> u64 {
    let found = groups.len() as f64;
    let single = groups.iter().filter(|group| group.rows == 1).count() as f64;
    let missed = (1.0 - rate).clamp(0.0, 1.0) * single / (rows as f64).max(1.0);
    (found / (1.0 - missed).max(rate.max(1e-6)))
        .round()
        .max(1.0) as u64
}

/// A value as histograms hold it: the beginning of a long text.
fn shortened(value: Value) -> Value {
    match value {
        Value::Text(text) => match text.char_indices().nth(TEXT_CHARS_MAX) {
            Some((end, _)) => Value::text(&text[..end]),
            None => Value::Text(text),
        },
        Value::Bytes(mut bytes) => {
            bytes.truncate(TEXT_CHARS_MAX);
            Value::Bytes(bytes)
        }
        value => value,
    }
}

/// Where a value lies between two others, from 0 to 1.
fn place_between(low: &Value, high: &Value, value: &Value) -> f64 {
    let (from, to, at) = match (low.as_bytes(), high.as_bytes(), value.as_bytes()) {
        (Some(low), Some(high), Some(value)) => {
            let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
            let number = |bytes: &[u8]| {
                let digits = (0..8).map(|n| bytes.get(common + n).copied().unwrap_or(0));
                digits.fold(0.0, |number, digit| number * 256.0 + f64::from(digit))
            };
            (number(low), number(high), number(value))
        }
        _ => (number_of(low), number_of(high), number_of(value)),
    };
    match to > from {
        true => ((at - from) / (to - from)).clamp(0.0, 1.0),
        false => 0.5,
    }
}

/// A number that grows with the value; distances of moments are those of time.
fn number_of(value: &Value) -> f64 {
    match value {
        Value::Date(date) => date.at_midnight().linear_micros() as f64,
        Value::DateTime(moment) => moment.linear_micros() as f64,
        Value::Time(time) => time.micros() as f64,
        value => convert::to_double(value).0,
    }
}

/// What MySQL calls the kind of a column's values.
pub(super) fn data_type(ty: &DataType) -> &'static str {
    match ty {
        DataType::Int { unsigned: true, .. } | DataType::Bit(_) | DataType::Year => "uint",
        DataType::Int { .. } => "int",
        DataType::Enum(_) => "enum",
        DataType::Set(_) => "set",
        DataType::Decimal { .. } => "decimal",
        DataType::Float { .. } | DataType::Double { .. } => "double",
        DataType::Date => "date",
        DataType::Time { .. } => "time",
        DataType::DateTime { .. } | DataType::Timestamp { .. } => "datetime",
        _ => "string",
    }
}

/// The number of the collation in which a column's values compare; numbers and moments are MySQL's
/// `latin1_swedish_ci`.
fn collation_of(ty: &DataType) -> u16 {
    const OF_NUMBERS: u16 = 8;
    match Domain::of(ty) {
        Domain::Text(collation) => collation.id(),
        Domain::Bytes => porpoise_types::Collation::BINARY.id(),
        _ => OF_NUMBERS,
    }
}
