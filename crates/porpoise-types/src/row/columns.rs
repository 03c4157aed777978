//! Columns of many rows at a time.
//!
//! What [`RowLayout::get`] reads of one row, [`RowLayout::read_column`] reads of each of a batch into
//! a vector: where the column lies, and how wide it is, is asked once.

use super::{RowLayout, Slot, stored};
use crate::DataType;
use crate::vector::{Elements, Kind, Vector};

impl RowLayout {
    /// The kind of vector that a column's values make; `None` for a type that has none.
    pub fn column_kind(&self, column: usize) -> Option<Kind> {
        Some(match self.types().get(column)? {
            DataType::Int {
                unsigned: false, ..
            } => Kind::Int,
            DataType::Int { .. } => Kind::UInt,
            DataType::Decimal {
                precision: ..=38,
                scale,
                ..
            } => Kind::Decimal(*scale),
            DataType::Date => Kind::Date,
            DataType::DateTime { .. } => Kind::DateTime,
            DataType::Float { .. } | DataType::Double { .. } => Kind::Double,
            DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => Kind::Text,
            _ => return None,
        })
    }

    /// A column of rows; `None` where its type makes no vector, or a value doesn't fit into one.
    pub fn read_column<'r>(&'r self, rows: &[&'r [u8]], column: usize) -> Option<Vector<'r>> {
        let kind = self.column_kind(column)?;
        let mut nulls = Nulls::default();
        let elements = match kind {
            Kind::Text => Elements::Texts(self.read_texts(rows, column, &mut nulls)),
            Kind::Double => Elements::Doubles(self.read_fixed(
                rows,
                column,
                &mut nulls,
                |raw: [u8; 4]| Some(f64::from(f32::from_le_bytes(raw))),
                |raw: [u8; 8]| Some(f64::from_le_bytes(raw)),
                |raw| Some(stored::double(raw)),
            )?),
            Kind::Date => Elements::Integers(self.read_fixed(
                rows,
                column,
                &mut nulls,
                |raw: [u8; 4]| Some(i64::from(stored::date(&raw).packed())),
                |_: [u8; 8]| None,
                |raw| Some(i64::from(stored::date(raw).packed())),
            )?),
            Kind::DateTime => Elements::Integers(self.read_fixed(
                rows,
                column,
                &mut nulls,
                |_: [u8; 4]| None,
                |raw: [u8; 8]| i64::try_from(stored::datetime(&raw).packed()).ok(),
                |raw| i64::try_from(stored::datetime(raw).packed()).ok(),
            )?),
            Kind::UInt => Elements::Integers(self.read_fixed(
                rows,
                column,
                &mut nulls,
                |raw: [u8; 4]| Some(i64::from(u32::from_le_bytes(raw))),
                |raw: [u8; 8]| i64::try_from(u64::from_le_bytes(raw)).ok(),
                |raw| i64::try_from(stored::uint(raw)).ok(),
            )?),
            _ => Elements::Integers(self.read_fixed(
                rows,
                column,
                &mut nulls,
                |raw: [u8; 4]| Some(i64::from(i32::from_le_bytes(raw))),
                |raw: [u8; 8]| Some(i64::from_le_bytes(raw)),
                |raw| match <[u8; 16]>::try_from(raw) {
                    Ok(wide) => i64::try_from(i128::from_le_bytes(wide)).ok(),
                    Err(_) => Some(stored::signed(raw)),
                },
            )?),
        };
        Some(Vector {
            kind,
            elements,
            nulls: nulls.finish(),
        })
    }

    /// Whether a column of each row is NULL; empty where none is.
    pub fn read_nulls(&self, rows: &[&[u8]], column: usize) -> Vec<bool> {
        let mut nulls = Nulls::default();
        for row in rows {
            nulls.push(self.is_null(row, column));
        }
        nulls.finish()
    }

    /// Reads a column of fixed width: most are of four or eight bytes and lie at one place in all
    /// rows.
    fn read_fixed<T: Default>(
        &self,
        rows: &[&[u8]],
        column: usize,
        nulls: &mut Nulls,
        of_four: impl Fn([u8; 4]) -> Option<T>,
        of_eight: impl Fn([u8; 8]) -> Option<T>,
        of_any: impl Fn(&[u8]) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut values = Vec::with_capacity(rows.len());
        match self.slots.get(column) {
            Some(&Slot::Fixed { at, width: 4, null }) => {
                read_at(rows, at, null, nulls, &mut values, of_four)?;
            }
            Some(&Slot::Fixed { at, width: 8, null }) => {
                read_at(rows, at, null, nulls, &mut values, of_eight)?;
            }
            _ => {
                for row in rows {
                    let raw = self.raw(row, column);
                    nulls.push(raw.is_none());
                    values.push(match raw {
                        Some(raw) => of_any(raw)?,
                        None => T::default(),
                    });
                }
            }
        }
        Some(values)
    }

    fn read_texts<'r>(
        &'r self,
        rows: &[&'r [u8]],
        column: usize,
        nulls: &mut Nulls,
    ) -> Vec<&'r [u8]> {
        let mut texts = Vec::with_capacity(rows.len());
        for row in rows {
            let raw = self.raw(row, column);
            nulls.push(raw.is_none());
            texts.push(raw.unwrap_or_default());
        }
        texts
    }
}

/// Reads what lies at one place in all rows. A row that is too short has NULL there, as a corrupt one
/// has everywhere.
#[inline]
fn read_at<const WIDTH: usize, T: Default>(
    rows: &[&[u8]],
    at: u32,
    null: u16,
    nulls: &mut Nulls,
    values: &mut Vec<T>,
    read: impl Fn([u8; WIDTH]) -> Option<T>,
) -> Option<()> {
    let (at, flags_at, bit) = (at as usize, usize::from(null / 8), 1u8 << (null % 8));
    for row in rows {
        let raw = row.get(at..at + WIDTH).and_then(|raw| raw.try_into().ok());
        let value = match (row.get(flags_at), raw) {
            (Some(flags), Some(raw)) if flags & bit == 0 => Some(read(raw)?),
            _ => None,
        };
        nulls.push(value.is_none());
        values.push(value.unwrap_or_default());
    }
    Some(())
}

/// Which rows have NULL, as they are read.
#[derive(Default)]
struct Nulls {
    rows: Vec<bool>,
    any: bool,
}

impl Nulls {
    #[inline]
    fn push(&mut self, is_null: bool) {
        self.rows.push(is_null);
        self.any |= is_null;
    }

    fn finish(self) -> Vec<bool> {
        match self.any {
            true => self.rows,
            false => Vec::new(),
        }
    }
}
