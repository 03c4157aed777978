//! The results of a statement, one after another: their columns, their rows.
//!
//! Nothing is allocated for a column or a row that is read where it was received: [`Columns`] keeps
//! the definitions as they came in one buffer that is reused, a [`Row`] borrows the packet. The
//! methods of rows are in [`rows`].

use crate::Error;
use crate::connection::{Connection, Outcome};
use crate::rows::{self, ResultColumns, RowFormat};
use porpoise_protocol::codes::ColumnType;
use porpoise_protocol::column::ColumnDefinition;
use porpoise_protocol::value::{Value, ValueType};
use porpoise_protocol::wire::Fields;

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

    /// The index of the first column of this name.
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

/// Where one value of a row lies in the bytes of rows; NULL lies nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    start: usize,
    end: usize,
}

impl Cell {
    const NULL: Self = Self {
        start: usize::MAX,
        end: usize::MAX,
    };
}

/// Appends where a row's values lie; `payload` lies at `base`.
pub(crate) fn locate_values(
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

/// Rows as a server sent them: in the text protocol, or the binary one.
#[derive(Clone, Copy, Debug, Default)]
pub struct WireFormat {
    pub(crate) binary: bool,
}

/// One row, borrowed from where it was received or collected. Values of a query are
/// [`Value::Text`], or [`Value::Bytes`] for blobs, whatever the column's type; those of a prepared
/// statement come as they are.
pub type Row<'a> = rows::Row<'a, WireFormat>;

/// Rows that were collected.
pub type Rows = rows::Rows<WireFormat>;

impl RowFormat for WireFormat {
    type Columns = Columns;
    type Cell = Cell;
    type Outcome = Outcome;

    #[inline]
    fn value<'a>(
        self,
        cell: Cell,
        place: usize,
        columns: &'a Columns,
        bytes: &'a [u8],
    ) -> Result<Value<'a>, Error> {
        let Some(&value_type) = columns.types.get(place) else {
            return Err(columns.no_column_at(place));
        };
        let Some(bytes) = bytes.get(cell.start..cell.end) else {
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
        Error::Value {
            column: place,
            wanted: "any",
        }
    }

    fn no_column_named(&self, name: &str) -> Error {
        Error::NoColumn(name.into())
    }

    fn type_mismatch(&self, place: usize, _value: Value<'_>, wanted: &'static str) -> Error {
        Error::Value {
            column: place,
            wanted,
        }
    }
}

impl<'a> Row<'a> {
    /// A value as the wire has it: text for a query, the binary form for a prepared statement;
    /// nothing for NULL.
    pub fn raw(&self, at: usize) -> Option<&'a [u8]> {
        let cell = self.cells.get(at)?;
        self.bytes.get(cell.start..cell.end)
    }
}

/// The results of one command, read as they come.
///
/// It stands at the first result. What isn't read when it is dropped is skipped by the connection's
/// next command.
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

    /// The next row after those that [`row_into`](Self::row_into) put there; `false` at the end.
    pub fn append_row(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        self.connection.append_row(rows)
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
