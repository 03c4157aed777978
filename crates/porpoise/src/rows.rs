//! Rows of a result, and how their values become Rust's.
//!
//! ```text
//! slots  │ 1 │ text 0..8 │ NULL │ 2 │ text 8..16 │ 61.5 │      one a value, row after row
//! bytes  │porpoiseblobfish│                                    what texts and bytes borrow
//! ```

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_engine::reply::ResultColumn;
use porpoise_engine::{Error, Result};
use porpoise_types as types;
use porpoise_types::DataType;

use crate::connection::Outcome;
use crate::{Date, DateTime, FromValue, Time, Value};

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Bytes { start: usize, end: usize },
    Date(types::Date),
    DateTime(types::DateTime),
    Time(types::Time),
}

/// What the bytes of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bytes,
    Decimal,
    /// Up to 64 bits, seen as a number.
    Bit,
}

/// A column of a result.
#[derive(Clone, Debug)]
pub struct Column {
    name: CompactString,
    table: CompactString,
    kind: Kind,
}

impl Column {
    pub(crate) fn new(name: &str, table: &str, kind: Kind) -> Column {
        Column {
            name: name.into(),
            table: table.into(),
            kind,
        }
    }

    pub(crate) fn of(column: &ResultColumn) -> Column {
        Column::new(&column.name, &column.table, Column::kind(&column.ty))
    }

    fn kind(ty: &DataType) -> Kind {
        match ty {
            DataType::Decimal { .. } => Kind::Decimal,
            DataType::Bit(_) => Kind::Bit,
            ty if ty.is_binary_string() => Kind::Bytes,
            _ => Kind::Text,
        }
    }

    fn is_of(&self, column: &ResultColumn) -> bool {
        self.name == column.name
            && self.table == column.table
            && self.kind == Column::kind(&column.ty)
    }

    /// Its name: the alias, if it has one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table it is of, by its alias; empty for an expression.
    pub fn table(&self) -> &str {
        &self.table
    }
}

/// The columns of a result; none for a statement without rows.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<Column>);

impl Columns {
    pub(crate) fn new(columns: impl Iterator<Item = Column>) -> Columns {
        Columns(columns.collect())
    }

    pub(crate) fn are_of(&self, columns: &[ResultColumn]) -> bool {
        self.0.len() == columns.len()
            && self
                .0
                .iter()
                .zip(columns)
                .all(|(known, column)| known.is_of(column))
    }

    /// Where the first column of this name is; letters' case doesn't matter.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name))
    }
}

impl std::ops::Deref for Columns {
    type Target = [Column];

    fn deref(&self) -> &[Column] {
        &self.0
    }
}

/// What names a column: its place from 0, or its name.
pub trait ColumnIndex {
    /// Its place. Error 1054 if there is none.
    fn place(&self, columns: &Columns) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn place(&self, columns: &Columns) -> Result<usize> {
        if *self < columns.len() {
            Ok(*self)
        } else {
            Err(Error::unknown_column(self, "row"))
        }
    }
}

impl ColumnIndex for &str {
    fn place(&self, columns: &Columns) -> Result<usize> {
        columns
            .position(self)
            .ok_or_else(|| Error::unknown_column(self, "row"))
    }
}

/// One row, borrowed from where it was made or collected.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) slots: &'a [Slot],
    pub(crate) bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// The columns its values are of.
    pub fn columns(&self) -> &'a Columns {
        self.columns
    }

    /// A value as a Rust type. NULL fits only an `Option`; what doesn't fit is error 1105, an unknown column 1054.
    pub fn get<T: FromValue<'a>>(&self, column: impl ColumnIndex) -> Result<T> {
        let place = column.place(self.columns)?;
        let value = self.at(place);
        T::from_value(value).ok_or_else(|| {
            let name = self.columns.get(place).map_or("", Column::name);
            let wanted = std::any::type_name::<T>();
            Error::new(
                1105,
                "HY000",
                format!("Column '{name}' holds {value:?}, which is no {wanted}"),
            )
        })
    }

    /// A value as it is.
    pub fn value(&self, column: impl ColumnIndex) -> Result<Value<'a>> {
        Ok(self.at(column.place(self.columns)?))
    }

    fn at(&self, place: usize) -> Value<'a> {
        match self.slots.get(place) {
            None | Some(Slot::Null) => Value::Null,
            Some(Slot::Int(value)) => Value::Int(*value),
            Some(Slot::UInt(value)) => Value::UInt(*value),
            Some(Slot::Float(value)) => Value::Float(*value),
            Some(Slot::Double(value)) => Value::Double(*value),
            Some(Slot::Date(value)) => Value::Date(date(*value)),
            Some(Slot::DateTime(value)) => Value::DateTime(datetime(*value)),
            Some(Slot::Time(value)) => Value::Time(time(*value)),
            Some(&Slot::Bytes { start, end }) => {
                let bytes = self.bytes.get(start..end).unwrap_or_default();
                match self.columns.get(place).map(|column| column.kind) {
                    Some(Kind::Decimal) => Value::Decimal(bytes),
                    Some(Kind::Bytes) => Value::Bytes(bytes),
                    Some(Kind::Bit) => Value::UInt(
                        bytes
                            .iter()
                            .fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
                    ),
                    Some(Kind::Text) | None => Value::Text(bytes),
                }
            }
        }
    }
}

pub(crate) fn datetime(value: types::DateTime) -> DateTime {
    DateTime {
        date: date(value.date()),
        hour: value.hour() as u8,
        minute: value.minute() as u8,
        second: value.second() as u8,
        microsecond: value.microsecond(),
    }
}

pub(crate) fn time(value: types::Time) -> Time {
    Time {
        negative: value.is_negative(),
        days: value.hours() / 24,
        hours: (value.hours() % 24) as u8,
        minutes: value.minute() as u8,
        seconds: value.second() as u8,
        microseconds: value.microsecond(),
    }
}

pub(crate) fn date(value: types::Date) -> Date {
    Date {
        year: value.year() as u16,
        month: value.month() as u8,
        day: value.day() as u8,
    }
}

/// Rows that were collected.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(crate) columns: Arc<Columns>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: usize,
    pub(crate) outcome: Outcome,
}

impl Rows {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How the statement ended.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// One row, from 0.
    pub fn get(&self, at: usize) -> Option<Row<'_>> {
        let width = self.columns.len();
        (at < self.count).then(|| Row {
            columns: &self.columns,
            slots: self
                .slots
                .get(at * width..(at + 1) * width)
                .unwrap_or_default(),
            bytes: &self.bytes,
        })
    }

    /// Each row.
    pub fn iter(&self) -> RowsIter<'_> {
        RowsIter { rows: self, at: 0 }
    }
}

/// Goes over rows that were collected.
#[derive(Clone, Debug)]
pub struct RowsIter<'a> {
    rows: &'a Rows,
    at: usize,
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let row = self.rows.get(self.at)?;
        self.at += 1;
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rows.len() - self.at;
        (left, Some(left))
    }
}

impl ExactSizeIterator for RowsIter<'_> {}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row<'a>;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        self.iter()
    }
}
