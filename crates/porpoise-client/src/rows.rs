//! Rows, whatever made them: one that is borrowed, or many that are collected, and how to read
//! them.
//!
//! ```text
//! cells  │ 1 │ 0..8 │ NULL │ 2 │ 8..16 │ 61.5 │      one a value, row after row
//! bytes  │porpoiseblobfish│                           what values borrow
//! ```
//!
//! A [`RowFormat`] defines what a cell is, and how it becomes a [`Value`]: this crate's cells are
//! ranges of the bytes that a server sent, an embedded engine's are values. All else is the same
//! for both.

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use crate::{FromValue, Value};

/// How rows are kept and read.
pub trait RowFormat: Copy + Default + Debug {
    /// What the columns are.
    type Columns: ResultColumns + Default + Debug;
    /// What is kept of a value beside the bytes.
    type Cell: Copy + Debug;
    /// How a statement ended.
    type Outcome: Default + Debug;

    /// A value, by its cell and its column's place.
    fn value<'a>(
        self,
        cell: Self::Cell,
        place: usize,
        columns: &'a Self::Columns,
        bytes: &'a [u8],
    ) -> Result<Value<'a>, ErrorOf<Self>>;
}

type ErrorOf<F> = <<F as RowFormat>::Columns as ResultColumns>::Error;

/// The columns of a result, and the errors for values that can't be had.
pub trait ResultColumns {
    /// Why a value can't be had.
    type Error: Debug;

    /// How many there are.
    fn count(&self) -> usize;
    /// Where the first column of this name is.
    fn position(&self, name: &str) -> Option<usize>;
    /// There is no column at this place.
    fn no_column_at(&self, place: usize) -> Self::Error;
    /// There is no column of this name.
    fn no_column_named(&self, name: &str) -> Self::Error;
    /// The value at this place is none of the type `wanted`.
    fn type_mismatch(&self, place: usize, value: Value<'_>, wanted: &'static str) -> Self::Error;
}

/// What names a column: its place from 0, or its name.
pub trait ColumnIndex {
    /// Its place; an error if there is none.
    fn place<C: ResultColumns>(&self, columns: &C) -> Result<usize, C::Error>;
}

impl ColumnIndex for usize {
    #[inline]
    fn place<C: ResultColumns>(&self, columns: &C) -> Result<usize, C::Error> {
        if *self < columns.count() {
            Ok(*self)
        } else {
            Err(columns.no_column_at(*self))
        }
    }
}

impl ColumnIndex for &str {
    fn place<C: ResultColumns>(&self, columns: &C) -> Result<usize, C::Error> {
        let place = columns.position(self);
        place.ok_or_else(|| columns.no_column_named(self))
    }
}

/// One row, borrowed from where it was received, made or collected.
pub struct Row<'a, F: RowFormat> {
    pub(crate) bytes: &'a [u8],
    pub(crate) cells: &'a [F::Cell],
    pub(crate) columns: &'a F::Columns,
    pub(crate) format: F,
}

impl<'a, F: RowFormat> Row<'a, F> {
    /// How many values it has.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The columns its values are of.
    pub fn columns(&self) -> &'a F::Columns {
        self.columns
    }

    /// A value as it is.
    #[inline]
    pub fn value(&self, column: impl ColumnIndex) -> Result<Value<'a>, ErrorOf<F>> {
        self.at(column.place(self.columns)?)
    }

    /// A value as a Rust type; NULL only as an `Option`. An error if it doesn't fit, or there is no
    /// such column.
    #[inline]
    pub fn get<T: FromValue<'a>>(&self, column: impl ColumnIndex) -> Result<T, ErrorOf<F>> {
        let place = column.place(self.columns)?;
        let value = self.at(place)?;
        T::from_value(value).ok_or_else(|| {
            let wanted = std::any::type_name::<T>();
            self.columns.type_mismatch(place, value, wanted)
        })
    }

    /// Each value.
    pub fn values(&self) -> impl Iterator<Item = Result<Value<'a>, ErrorOf<F>>> + use<'a, F> {
        let row = *self;
        (0..row.len()).map(move |place| row.at(place))
    }

    #[inline]
    fn at(&self, place: usize) -> Result<Value<'a>, ErrorOf<F>> {
        match self.cells.get(place) {
            Some(&cell) => self.format.value(cell, place, self.columns, self.bytes),
            None => Err(self.columns.no_column_at(place)),
        }
    }

    /// A value as text, for people.
    fn text(&self, place: usize) -> String {
        match self.get::<Option<String>>(place) {
            Ok(Some(text)) => text,
            Ok(None) => "NULL".into(),
            Err(_) => match self.at(place) {
                Ok(Value::Text(bytes) | Value::Bytes(bytes) | Value::Decimal(bytes)) => {
                    String::from_utf8_lossy(bytes).into_owned()
                }
                _ => "NULL".into(),
            },
        }
    }
}

impl<F: RowFormat> Clone for Row<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: RowFormat> Copy for Row<'_, F> {}

impl<F: RowFormat> Debug for Row<'_, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.values()).finish()
    }
}

/// Rows that were collected: one buffer for all of them.
#[derive(Clone, Debug)]
pub struct Rows<F: RowFormat> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cells: Vec<F::Cell>,
    pub(crate) columns: Arc<F::Columns>,
    pub(crate) format: F,
    pub(crate) count: usize,
    pub(crate) outcome: F::Outcome,
}

impl<F: RowFormat> Default for Rows<F> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            cells: Vec::new(),
            columns: Arc::default(),
            format: F::default(),
            count: 0,
            outcome: F::Outcome::default(),
        }
    }
}

impl<F: RowFormat> Rows<F> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their columns.
    pub fn columns(&self) -> &F::Columns {
        &self.columns
    }

    /// How the statement ended, if they were collected to the last.
    pub fn outcome(&self) -> &F::Outcome {
        &self.outcome
    }

    /// How the statement ended, without the rows.
    pub fn into_outcome(self) -> F::Outcome {
        self.outcome
    }

    /// One row, from 0.
    pub fn get(&self, at: usize) -> Option<Row<'_, F>> {
        if at >= self.count {
            return None;
        }
        let width = self.columns.count();
        Some(self.row(self.cells.get(at * width..(at + 1) * width)?))
    }

    /// Each row.
    pub fn iter(&self) -> RowsIter<'_, F> {
        RowsIter { rows: self, at: 0 }
    }

    /// Each row's values as text, NULL as `NULL`: for tests and for people.
    pub fn to_text(&self) -> Vec<Vec<String>> {
        let texts = |row: Row<'_, F>| (0..row.len()).map(|place| row.text(place)).collect();
        self.iter().map(texts).collect()
    }

    fn row<'a>(&'a self, cells: &'a [F::Cell]) -> Row<'a, F> {
        Row {
            bytes: &self.bytes,
            cells,
            columns: &self.columns,
            format: self.format,
        }
    }
}

/// For code that makes rows.
impl<F: RowFormat> Rows<F> {
    /// No rows yet, of these columns.
    pub fn with_columns(columns: Arc<F::Columns>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Forgets them; their memory is kept for the next. `columns` are those of no rows.
    pub fn clear(&mut self, columns: Arc<F::Columns>) {
        self.forget();
        self.columns = columns;
    }

    /// Forgets them, and the one under way, but for the columns.
    #[inline]
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        self.count = 0;
    }

    /// Their columns, to keep.
    pub fn shared_columns(&self) -> &Arc<F::Columns> {
        &self.columns
    }

    /// Adds a value to the row under way.
    #[inline]
    pub fn put(&mut self, cell: F::Cell) {
        self.cells.push(cell);
    }

    /// Adds bytes that a cell will tell the place of.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// The row that isn't complete yet.
    pub fn current_row(&self) -> Row<'_, F> {
        let width = self.columns.count();
        let cells = self.cells.get(self.count * width..);
        self.row(cells.unwrap_or_default())
    }

    /// The row under way is complete.
    #[inline]
    pub fn end_row(&mut self) {
        self.count += 1;
    }

    /// The statement has ended.
    pub fn end(&mut self, outcome: F::Outcome) {
        self.outcome = outcome;
    }
}

/// Goes over rows that were collected.
#[derive(Clone, Debug)]
pub struct RowsIter<'a, F: RowFormat> {
    rows: &'a Rows<F>,
    at: usize,
}

impl<'a, F: RowFormat> Iterator for RowsIter<'a, F> {
    type Item = Row<'a, F>;

    fn next(&mut self) -> Option<Row<'a, F>> {
        let row = self.rows.get(self.at)?;
        self.at += 1;
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rows.len() - self.at;
        (left, Some(left))
    }
}

impl<F: RowFormat> ExactSizeIterator for RowsIter<'_, F> {}

impl<'a, F: RowFormat> IntoIterator for &'a Rows<F> {
    type Item = Row<'a, F>;
    type IntoIter = RowsIter<'a, F>;

    fn into_iter(self) -> RowsIter<'a, F> {
        self.iter()
    }
}
