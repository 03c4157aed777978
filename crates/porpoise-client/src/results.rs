//! What a statement gave: results one after another, their columns, their rows.
//!
//! Nothing is allocated for a column or a row that is read where it was received: [`Columns`] keeps the definitions as
//! they came in one buffer that is used again, a [`Row`] borrows the packet.

use crate::connection::{Connection, Outcome};
use crate::{Error, FromValue};
use porpoise_protocol::codes::ColumnType;
use porpoise_protocol::column::ColumnDefinition;
use porpoise_protocol::value::{Value, ValueType};
use porpoise_protocol::wire::Fields;
use std::sync::Arc;

/// The columns of a result.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    definitions: Vec<u8>,
    /// Where each definition ends.
    ends: Vec<usize>,
    types: Vec<ValueType>,
}

impl Columns {
    pub(crate) fn clear(&mut self) {
        self.definitions.clear();
        self.ends.clear();
        self.types.clear();
    }

    pub(crate) fn push(&mut self, payload: &[u8]) -> Result<(), Error> {
        let definition = ColumnDefinition::parse(payload)?;
        self.types.push(definition.value_type());
        self.definitions.extend_from_slice(payload);
        self.ends.push(self.definitions.len());
        Ok(())
    }

    /// How many there are; none for a statement without rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One column, from 0.
    pub fn get(&self, at: usize) -> Option<ColumnDefinition<'_>> {
        let end = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => self.ends[before],
            None => 0,
        };
        ColumnDefinition::parse(&self.definitions[start..end]).ok()
    }

    /// Each column.
    pub fn iter(&self) -> impl Iterator<Item = ColumnDefinition<'_>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.iter()
            .map(|column| String::from_utf8_lossy(column.name).into_owned())
    }

    /// The column of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.iter()
            .position(|column| column.name == name.as_bytes())
    }

    /// The definitions as they came from the server, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.definitions
    }

    /// The type of each.
    pub fn types(&self) -> &[ValueType] {
        &self.types
    }
}

/// Where one value of a row lies in the bytes of rows; NULL has no place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    start: usize,
    end: usize,
}

impl Cell {
    const NULL: Self = Self {
        start: usize::MAX,
        end: usize::MAX,
    };
}

/// Appends the places of a row's values; `payload` lies at `base`.
pub(crate) fn lay_out(
    payload: &[u8],
    base: usize,
    columns: &Columns,
    binary: bool,
    cells: &mut Vec<Cell>,
) -> Result<(), porpoise_protocol::Error> {
    let mut fields = Fields::new(payload);
    let place = |fields: &Fields<'_>| base + payload.len() - fields.rest().len();
    if !binary {
        for _ in 0..columns.len() {
            let cell = match fields.nullable_bytes()? {
                None => Cell::NULL,
                Some(bytes) => {
                    let end = place(&fields);
                    Cell {
                        start: end - bytes.len(),
                        end,
                    }
                }
            };
            cells.push(cell);
        }
        return Ok(());
    }
    if fields.u8()? != 0 {
        return Err(porpoise_protocol::Error::Malformed("not a binary row"));
    }
    let nulls = fields.bytes((columns.len() + 2).div_ceil(8))?;
    for (at, &value_type) in columns.types.iter().enumerate() {
        let bit = at + 2;
        if nulls[bit / 8] >> (bit % 8) & 1 != 0 {
            cells.push(Cell::NULL);
            continue;
        }
        let start = place(&fields);
        Value::take(&mut fields, value_type)?;
        cells.push(Cell {
            start,
            end: place(&fields),
        });
    }
    Ok(())
}

/// One row, borrowed from where it was received or collected.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) cells: &'a [Cell],
    pub(crate) columns: &'a Columns,
    pub(crate) binary: bool,
}

impl<'a> Row<'a> {
    /// How many values it has.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The columns its values are of.
    pub fn columns(&self) -> &'a Columns {
        self.columns
    }

    /// A value as the wire has it: text for a query, the binary form for a prepared statement; nothing for NULL.
    pub fn raw(&self, at: usize) -> Option<&'a [u8]> {
        let cell = self.cells.get(at)?;
        self.bytes.get(cell.start..cell.end)
    }

    /// A value. Those of a query are [`Value::Text`], or [`Value::Bytes`] for blobs, whatever the column's type.
    pub fn value(&self, at: usize) -> Result<Value<'a>, Error> {
        let (Some(_), Some(&value_type)) = (self.cells.get(at), self.columns.types.get(at)) else {
            return Err(Error::Value {
                column: at,
                wanted: "any",
            });
        };
        let Some(bytes) = self.raw(at) else {
            return Ok(Value::Null);
        };
        if self.binary {
            return Ok(Value::take(&mut Fields::new(bytes), value_type)?);
        }
        use ColumnType as T;
        Ok(match value_type.column_type {
            T::TinyBlob | T::Blob | T::MediumBlob | T::LongBlob | T::Bit | T::Geometry => {
                Value::Bytes(bytes)
            }
            _ => Value::Text(bytes),
        })
    }

    /// A value as a Rust type; NULL only as an `Option`.
    pub fn get<T: FromValue<'a>>(&self, at: usize) -> Result<T, Error> {
        T::from_value(self.value(at)?).ok_or(Error::Value {
            column: at,
            wanted: std::any::type_name::<T>(),
        })
    }

    /// Each value.
    pub fn values(&self) -> impl Iterator<Item = Result<Value<'a>, Error>> {
        let row = *self;
        (0..self.len()).map(move |at| row.value(at))
    }
}

/// Rows that were collected: one buffer for all of them.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) columns: Arc<Columns>,
    pub(crate) binary: bool,
    pub(crate) count: usize,
}

impl Rows {
    /// Forgets them; their memory is kept for the next. `columns` are those of no rows.
    pub fn clear(&mut self, columns: Arc<Columns>) {
        self.bytes.clear();
        self.cells.clear();
        self.count = 0;
        self.columns = columns;
    }

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

    /// One row, from 0.
    pub fn get(&self, at: usize) -> Option<Row<'_>> {
        if at >= self.count {
            return None;
        }
        let width = self.columns.len();
        Some(Row {
            bytes: &self.bytes,
            cells: self.cells.get(at * width..(at + 1) * width)?,
            columns: &self.columns,
            binary: self.binary,
        })
    }

    /// Each row.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.count).filter_map(|at| self.get(at))
    }

    /// Each row's values as text, NULL as `NULL`: for tests and for people.
    pub fn to_text(&self) -> Vec<Vec<String>> {
        self.iter()
            .map(|row| {
                (0..row.len())
                    .map(|at| match row.get::<Option<String>>(at) {
                        Ok(Some(text)) => text,
                        Ok(None) => "NULL".into(),
                        Err(_) => match row.raw(at) {
                            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                            None => "NULL".into(),
                        },
                    })
                    .collect()
            })
            .collect()
    }
}

/// The results of one command, read as they come.
///
/// It stands at the first result. What isn't read when it is dropped is skipped by the connection's next command.
#[derive(Debug)]
pub struct Results<'c> {
    pub(crate) connection: &'c mut Connection,
}

impl Results<'_> {
    /// The columns of the result it stands at; none for a statement without rows.
    pub fn columns(&self) -> &Columns {
        self.connection.columns()
    }

    /// The next row of the result it stands at.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        self.connection.next_row()
    }

    /// Goes to the next result, over rows that weren't read; `false` if there is none.
    pub fn next_result(&mut self) -> Result<bool, Error> {
        self.connection.next_result()
    }

    /// Collects what is left of the rows of the result it stands at.
    pub fn rows(&mut self) -> Result<Rows, Error> {
        self.connection.collect_rows()
    }

    /// As [`rows`](Self::rows), into the memory of rows that aren't needed any more.
    pub fn rows_into(&mut self, rows: &mut Rows) -> Result<(), Error> {
        self.connection.collect_rows_into(rows)
    }

    /// The next row alone, into the memory of rows that aren't needed any more; `false` at the end.
    pub fn row_into(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        self.connection.collect_row_into(rows)
    }

    /// How the result it stands at ended; for one with rows, once the last was read.
    pub fn outcome(&self) -> &Outcome {
        self.connection.outcome()
    }

    /// Skips what wasn't read, and tells how the last result ended.
    pub fn finish(self) -> Result<Outcome, Error> {
        while self.connection.next_result()? {}
        Ok(self.connection.outcome().clone())
    }
}
