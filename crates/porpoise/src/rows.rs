//! Rows as an engine gives them: [slots](Slot), which [`porpoise_client::rows`] keeps and reads.

use compact_str::CompactString;
use porpoise_client::rows::{self, ResultColumns, RowFormat};
use porpoise_engine::reply::ResultColumn;
use porpoise_engine::{Error, Result};
use porpoise_types as types;
use porpoise_types::DataType;

use crate::connection::Outcome;
use crate::{Date, DateTime, Time, Value};

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
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

/// Rows as an engine gave them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slots;

/// One row, borrowed from where it was made or collected. What doesn't fit the type it is asked for
/// as is error 1105, an unknown column 1054.
pub type Row<'a> = rows::Row<'a, Slots>;

/// Rows that were collected.
pub type Rows = rows::Rows<Slots>;

impl RowFormat for Slots {
    type Columns = Columns;
    type Cell = Slot;
    type Outcome = Outcome;

    #[inline]
    fn value<'a>(
        self,
        slot: Slot,
        place: usize,
        columns: &'a Columns,
        bytes: &'a [u8],
    ) -> Result<Value<'a>> {
        Ok(match slot {
            Slot::Null => Value::Null,
            Slot::Int(value) => Value::Int(value),
            Slot::UInt(value) => Value::UInt(value),
            Slot::Float(value) => Value::Float(value),
            Slot::Double(value) => Value::Double(value),
            Slot::Date(value) => Value::Date(date(value)),
            Slot::DateTime(value) => Value::DateTime(datetime(value)),
            Slot::Time(value) => Value::Time(time(value)),
            Slot::Bytes { start, end } => {
                let bytes = bytes.get(start..end).unwrap_or_default();
                match columns.get(place).map(|column| column.kind) {
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
        })
    }
}

impl ResultColumns for Columns {
    type Error = Error;

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.position(name)
    }

    fn no_column_at(&self, place: usize) -> Error {
        Error::unknown_column(place, "row")
    }

    fn no_column_named(&self, name: &str) -> Error {
        Error::unknown_column(name, "row")
    }

    fn type_mismatch(&self, place: usize, value: Value<'_>, wanted: &'static str) -> Error {
        let name = self.get(place).map_or("", Column::name);
        let words = format!("Column '{name}' holds {value:?}, which is no {wanted}");
        Error::unknown_error(words)
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
