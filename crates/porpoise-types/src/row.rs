//! The row encoding: how the columns of a row lie in one run of bytes.
//!
//! ```text
//!  0            ⌈n/8⌉              ends_at            data_at
//!  ├─ null bits ──┼─ fixed columns ──┼─ ends ─────────────┼─ variable columns ──┤
//!  │ bit c of     │ little-endian,   │ u32 LE each: where │ bytes, one column   │
//!  │ byte c/8:    │ each at its own  │ each variable      │ after the other     │
//!  │ c is NULL    │ fixed offset     │ column ends        │                     │
//! ```
//!
//! A column's place is known from the table alone, so reading one is two loads. NULL columns keep
//! their room (zeros, or no bytes).
//!
//! Columns may be added to a table without touching its rows. The columns of one such step form an
//! [`Extension`], which lies behind what was there, as a row of its own. A row that was written
//! before ends ahead of it: then each of its columns has the value that the step gave it.
//!
//! ```text
//!  ├─ null bits ─┼─ fixed ─┼─ ends ─┼─ variable ─┼─ null bits ─┼─ fixed ─┼─ ends ─┼─ variable ─┤
//!  │ the first columns                           │ those of the first step                     │
//! ```
//!
//! Columns may be dropped and moved without touching the rows, too. A dropped one keeps its room, which
//! is NULL in rows that are written from then on; and columns lie in the order of their numbers
//! ([`StoredColumn::place`]), whatever their order in the table is.
//!
//! What a column is stored as:
//!
//! | type | stored as |
//! | --- | --- |
//! | integers | 1, 2, 4 (MEDIUMINT too) or 8 bytes |
//! | BIT, SET | u64 |
//! | ENUM, YEAR | u16 |
//! | FLOAT, DOUBLE | f32, f64 |
//! | DECIMAL(p,s) | the mantissa at scale s: 4 bytes to p = 9, 8 to 18, 16 to 38, else 32, two's complement |
//! | DATE | the packed u32 |
//! | TIME | microseconds, i64 |
//! | DATETIME, TIMESTAMP | the packed u64; TIMESTAMP in UTC |
//! | texts, byte strings | their bytes, UTF-8 |
//! | JSON | its normalised text |

mod columns;
mod kept;
mod rewrite;

pub use kept::KeptColumns;

use crate::{DataType, Date, DateTime, Decimal, IntWidth, Json, Time, TimeZone, Value, convert};
use compact_str::CompactString;

/// The longest a row can get: ends are 32-bit.
pub const ROW_BYTES_MAX: usize = u32::MAX as usize;

/// Steps in which columns may be added or dropped before the rows are to be written anew: a step of
/// added ones is walked over when a column of a later one is read, and dropped ones keep their room.
/// MySQL's limit is the same (8.4 manual, 17.12.1).
pub const ROW_VERSIONS_MAX: usize = 64;

/// Where a column lies; `null` is the number of its null bit.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Fixed {
        at: u32,
        width: u16,
        null: u16,
    },
    /// The n-th of the variable columns.
    Variable {
        n: u16,
        null: u16,
    },
    /// The n-th column of an extension.
    Added {
        extension: u16,
        n: u16,
    },
}

/// Where each column of a table lies in its rows.
#[derive(Clone, Debug)]
pub struct RowLayout {
    /// Of the columns, then of the dropped ones.
    types: Vec<DataType>,
    slots: Vec<Slot>,
    /// How many columns there are, those that were dropped left out.
    columns: usize,
    /// The columns in no extension, as they lie one behind the other.
    order: Vec<u16>,
    ends_at: u32,
    data_at: u32,
    extensions: Vec<Extension>,
}

/// Columns that were added together.
#[derive(Clone, Debug)]
struct Extension {
    /// Their positions in the table, as they lie one behind the other.
    columns: Vec<usize>,
    layout: RowLayout,
    /// What a row has that ends ahead of it.
    missing: Vec<u8>,
}

/// How a column came to a table that had rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// Columns of one step lie together; a later step has a higher number.
    pub step: u16,
    /// The value in rows that were written before; of the column's type.
    pub value: Value,
}

/// A column of rows that were there when their table was altered.
#[derive(Clone, Copy, Debug)]
pub struct StoredColumn<'a> {
    /// What its values are.
    pub ty: &'a DataType,
    /// How it came to the rows; `None` for one that all of them have.
    pub added: Option<&'a Added>,
    /// Columns lie in the order of these numbers; those of one number in the order of the table.
    pub place: u16,
}

fn fixed_width(ty: &DataType) -> Option<u32> {
    Some(match ty {
        DataType::Null => 0,
        DataType::Int { width, .. } => match width {
            IntWidth::Tiny => 1,
            IntWidth::Small => 2,
            IntWidth::Medium | IntWidth::Int => 4,
            IntWidth::Big => 8,
        },
        DataType::Bit(_) | DataType::Set(_) => 8,
        DataType::Enum(_) | DataType::Year => 2,
        DataType::Float { .. } => 4,
        DataType::Double { .. } => 8,
        DataType::Decimal { precision, .. } => match precision {
            0..=9 => 4,
            10..=18 => 8,
            19..=38 => 16,
            _ => 32,
        },
        DataType::Date => 4,
        DataType::Time { .. } | DataType::DateTime { .. } | DataType::Timestamp { .. } => 8,
        DataType::Char { .. }
        | DataType::Varchar { .. }
        | DataType::Text { .. }
        | DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob(_)
        | DataType::Json => return None,
    })
}

impl RowLayout {
    /// The layout of rows of these columns.
    pub fn new(types: &[DataType]) -> RowLayout {
        let column = |ty| StoredColumn {
            ty,
            added: None,
            place: 0,
        };
        let columns: Vec<StoredColumn<'_>> = types.iter().map(column).collect();
        RowLayout::altered(&columns, &[])
    }

    /// The layout of rows of a table that got and lost columns when rows were there.
    pub fn altered(columns: &[StoredColumn<'_>], dropped: &[StoredColumn<'_>]) -> RowLayout {
        let all: Vec<&StoredColumn<'_>> = columns.iter().chain(dropped).collect();
        let mut placed: Vec<u16> = (0..all.len() as u16).collect();
        placed.sort_by_key(|&column| all[usize::from(column)].place);
        let (added, order): (Vec<u16>, Vec<u16>) = placed
            .into_iter()
            .partition(|&column| all[usize::from(column)].added.is_some());
        let types: Vec<DataType> = all.iter().map(|column| column.ty.clone()).collect();
        let mut slots = vec![Slot::Added { extension: 0, n: 0 }; all.len()];
        let mut at = order.len().div_ceil(8) as u32;
        let mut variables = 0;
        for (null, &column) in (0..).zip(&order) {
            let column = usize::from(column);
            slots[column] = match fixed_width(&types[column]) {
                Some(width) => {
                    at += width;
                    Slot::Fixed {
                        at: at - width,
                        width: width as u16,
                        null,
                    }
                }
                None => {
                    variables += 1;
                    let n = variables - 1;
                    Slot::Variable { n, null }
                }
            };
        }
        let mut steps: Vec<(u16, Vec<usize>)> = Vec::new();
        for column in added {
            let column = usize::from(column);
            let step = all[column].added.map_or(0, |added| added.step);
            match steps.iter_mut().find(|(known, _)| *known == step) {
                Some((_, columns)) => columns.push(column),
                None => steps.push((step, vec![column])),
            }
        }
        steps.sort_unstable_by_key(|(step, _)| *step);
        let mut extensions = Vec::with_capacity(steps.len());
        for (extension, (_, columns)) in (0..).zip(steps) {
            for (n, column) in (0..).zip(&columns) {
                slots[*column] = Slot::Added { extension, n };
            }
            let added_types: Vec<_> = columns.iter().map(|&at| types[at].clone()).collect();
            let values = columns.iter().filter_map(|&at| all[at].added);
            let values: Vec<Value> = values.map(|added| added.value.clone()).collect();
            let layout = RowLayout::new(&added_types);
            let mut missing = Vec::new();
            layout.encode(&values, &mut missing);
            extensions.push(Extension {
                columns,
                layout,
                missing,
            });
        }
        RowLayout {
            types,
            slots,
            columns: columns.len(),
            order,
            ends_at: at,
            data_at: at + 4 * u32::from(variables),
            extensions,
        }
    }

    /// The columns' types.
    pub fn types(&self) -> &[DataType] {
        &self.types[..self.columns]
    }

    /// The number of steps in which columns were added.
    pub fn steps(&self) -> usize {
        self.extensions.len()
    }

    /// The stored bytes that a column has in rows from before it was added; `None` for NULL, and for
    /// a column that was there from the beginning.
    pub fn added_bytes(&self, column: usize) -> Option<&[u8]> {
        match *self.slots.get(column)? {
            Slot::Added { extension, n } => {
                let extension = &self.extensions[extension as usize];
                extension.layout.raw(&extension.missing, n as usize)
            }
            _ => None,
        }
    }

    /// Appends the row's bytes to `out`. Values must be of their columns' types, as
    /// [`store`](crate::store()) makes them; missing ones are NULL.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) {
        debug_assert!(values.len() == self.columns);
        self.encode_first(|column| values.get(column), out);
        for extension in &self.extensions {
            let value = |n: usize| values.get(extension.columns[n]);
            extension.layout.encode_first(value, out);
        }
    }

    /// Appends the columns that are in no extension.
    fn encode_first<'a>(&self, value: impl Fn(usize) -> Option<&'a Value>, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.data_at as usize, 0);
        for column in self.order.iter().map(|&column| usize::from(column)) {
            let value = value(column).unwrap_or(&Value::Null);
            let ty = &self.types[column];
            let null = match self.slots[column] {
                Slot::Fixed { at, width, null } => {
                    if !value.is_null() {
                        let at = start + at as usize;
                        write_fixed(value, ty, &mut out[at..at + width as usize]);
                    }
                    null
                }
                Slot::Variable { n, null } => {
                    write_variable(value, ty, out);
                    let end = (out.len() - start - self.data_at as usize) as u32;
                    let at = start + self.ends_at as usize + 4 * n as usize;
                    out[at..at + 4].copy_from_slice(&end.to_le_bytes());
                    null
                }
                Slot::Added { .. } => continue,
            };
            if value.is_null() {
                out[start + null as usize / 8] |= 1 << (null % 8);
            }
        }
    }

    /// The value of a column; NULL for a corrupt row.
    pub fn get(&self, row: &[u8], column: usize) -> Value {
        match (self.raw(row, column), self.types.get(column)) {
            (Some(raw), Some(ty)) => stored::value(raw, ty),
            _ => Value::Null,
        }
    }

    /// Whether a column of a row is NULL.
    #[inline]
    pub fn is_null(&self, row: &[u8], column: usize) -> bool {
        match self.slots.get(column) {
            Some(Slot::Fixed { null, .. } | Slot::Variable { null, .. }) => has_bit(row, *null),
            Some(Slot::Added { .. }) => self.raw(row, column).is_none(),
            None => true,
        }
    }

    /// The stored bytes of a column; `None` for NULL or a corrupt row.
    #[inline]
    pub fn raw<'a>(&'a self, row: &'a [u8], column: usize) -> Option<&'a [u8]> {
        match *self.slots.get(column)? {
            Slot::Fixed { at, width, null } => match has_bit(row, null) {
                true => None,
                false => row.get(at as usize..at as usize + width as usize),
            },
            Slot::Variable { n, null } => {
                if has_bit(row, null) {
                    return None;
                }
                let end_at = self.ends_at as usize + 4 * n as usize;
                let end = read_u32(row, end_at)? as usize;
                let begin = if n == 0 {
                    0
                } else {
                    read_u32(row, end_at - 4)? as usize
                };
                row.get(self.data_at as usize..)?.get(begin..end)
            }
            Slot::Added { extension, n } => self.raw_added(row, extension as usize, n as usize),
        }
    }

    #[inline(never)]
    fn raw_added<'a>(&'a self, row: &'a [u8], extension: usize, n: usize) -> Option<&'a [u8]> {
        let Extension {
            layout, missing, ..
        } = &self.extensions[extension];
        match self.extension_at(row, extension)? {
            (at, true) => layout.raw(&row[at..], n),
            (_, false) => layout.raw(missing, n),
        }
    }

    /// Where an extension of a row begins, and whether the row has it; `None` for a corrupt row.
    fn extension_at(&self, row: &[u8], extension: usize) -> Option<(usize, bool)> {
        let mut at = self.first_len(row)?;
        for before in &self.extensions[..extension] {
            if at >= row.len() {
                break;
            }
            at += before.layout.first_len(&row[at..])?;
        }
        (at <= row.len()).then_some((at, at < row.len()))
    }

    /// How long the part of a row is that holds the columns in no extension.
    fn first_len(&self, row: &[u8]) -> Option<usize> {
        let data_at = self.data_at as usize;
        let end = match self.data_at > self.ends_at {
            true => read_u32(row, data_at - 4)?,
            false => 0,
        };
        Some(data_at + end as usize)
    }

    /// Whether two rows have the same bytes in every column.
    pub fn is_same(&self, a: &[u8], b: &[u8]) -> bool {
        let is_same = |column| self.raw(a, column) == self.raw(b, column);
        let has_changed = !self.extensions.is_empty() || self.columns < self.slots.len();
        a == b || has_changed && (0..self.columns).all(is_same)
    }

    /// The first column that can't be what was stored: its bytes lie outside of the row, or are no
    /// text where one is due. Columns past the last stand for dropped ones, and for bytes that belong to
    /// none.
    pub fn first_corrupt_column(&self, row: &[u8]) -> Option<usize> {
        let mut at = match self.check_first(row) {
            Ok(len) => len,
            Err(column) => return Some(column),
        };
        for extension in &self.extensions {
            // Written before the columns were added.
            if at == row.len() {
                return None;
            }
            match extension.layout.check_first(&row[at..]) {
                Ok(len) => at += len,
                Err(column) => {
                    let column = extension.columns.get(column);
                    return Some(column.copied().unwrap_or(self.slots.len()));
                }
            }
        }
        (row.len() != at).then_some(self.slots.len())
    }

    /// How long the part of a row is that holds the columns in no extension, or the first of them
    /// that is corrupt.
    fn check_first(&self, row: &[u8]) -> std::result::Result<usize, usize> {
        let mut end = 0;
        for column in self.order.iter().map(|&column| usize::from(column)) {
            match self.slots[column] {
                Slot::Fixed { .. } => {}
                Slot::Variable { n, .. } => {
                    let next = read_u32(row, self.ends_at as usize + 4 * n as usize);
                    end = next.filter(|next| *next >= end).ok_or(column)?;
                }
                Slot::Added { .. } => continue,
            }
            let is_text = match &self.types[column] {
                DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => true,
                ty => matches!(ty, DataType::Json),
            };
            match self.raw(row, column) {
                Some(raw) if is_text && std::str::from_utf8(raw).is_err() => return Err(column),
                None if !self.is_null(row, column) => return Err(column),
                _ => {}
            }
        }
        match self.data_at as usize + end as usize {
            len if len <= row.len() => Ok(len),
            _ => Err(self.slots.len()),
        }
    }

    /// All columns, appended to `out`.
    pub fn decode(&self, row: &[u8], out: &mut Vec<Value>) {
        out.extend((0..self.columns).map(|column| self.get(row, column)));
    }
}

#[inline]
fn has_bit(row: &[u8], number: u16) -> bool {
    row.get(number as usize / 8)
        .is_none_or(|byte| byte >> (number % 8) & 1 == 1)
}

#[inline]
fn read_u32(row: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(row.get(at..at + 4)?.try_into().ok()?))
}

fn write_fixed(value: &Value, ty: &DataType, to: &mut [u8]) {
    let width = to.len();
    let wide: [u8; 32] = match (ty, value) {
        (DataType::Float { .. }, v) => {
            to.copy_from_slice(&(convert::to_double(v).0 as f32).to_le_bytes());
            return;
        }
        (DataType::Double { .. }, v) => {
            to.copy_from_slice(&convert::to_double(v).0.to_le_bytes());
            return;
        }
        (DataType::Decimal { scale, .. }, v) => {
            let d = convert::to_decimal(v)
                .0
                .rescale(*scale, crate::Rounding::HalfAwayFromZero);
            match d.mantissa_i128() {
                Some(m) if width <= 16 => {
                    to.copy_from_slice(&m.to_le_bytes()[..width]);
                    return;
                }
                _ => d.mantissa_le32(),
            }
        }
        (_, Value::Date(d)) => widen(&d.packed().to_le_bytes()),
        (_, Value::DateTime(d)) => widen(&d.packed().to_le_bytes()),
        (_, Value::Time(t)) => widen(&t.micros().to_le_bytes()),
        (_, Value::Int(v)) => widen(&v.to_le_bytes()),
        (_, Value::UInt(v)) => widen(&v.to_le_bytes()),
        (ty, v) if ty.is_unsigned() => widen(&convert::to_uint(v).0.to_le_bytes()),
        (_, v) => widen(&convert::to_int(v).0.to_le_bytes()),
    };
    to.copy_from_slice(&wide[..width]);
}

fn write_variable(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Text(s) => out.extend_from_slice(s.as_bytes()),
        Value::Bytes(b) => out.extend_from_slice(b),
        _ => convert::write_text(value, ty, out),
    }
}

fn widen(bytes: &[u8]) -> [u8; 32] {
    let mut wide = [0; 32];
    wide[..bytes.len()].copy_from_slice(bytes);
    wide
}

/// Typed readers of a column's stored bytes (what [`RowLayout::raw`] gives). Bytes of a wrong
/// length, which only a corrupt row has, read as zero.
pub mod stored {
    use super::*;

    /// Integers, BIT, YEAR, ENUM, SET: sign- or zero-extended by the type.
    #[inline]
    pub fn int(raw: &[u8], ty: &DataType) -> i64 {
        if ty.is_unsigned() {
            uint(raw) as i64
        } else {
            signed(raw)
        }
    }

    /// A signed integer of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn signed(raw: &[u8]) -> i64 {
        match *raw {
            [a] => a as i8 as i64,
            [a, b] => i16::from_le_bytes([a, b]) as i64,
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]) as i64,
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// An unsigned integer of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn uint(raw: &[u8]) -> u64 {
        match *raw {
            [a] => a as u64,
            [a, b] => u16::from_le_bytes([a, b]) as u64,
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as u64,
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// FLOAT and DOUBLE.
    #[inline]
    pub fn double(raw: &[u8]) -> f64 {
        match *raw {
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]) as f64,
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0.0,
        }
    }

    /// A DECIMAL, whose digits after the point the column's type says.
    pub fn decimal(raw: &[u8], scale: u8) -> Decimal {
        match raw.len() {
            4 | 8 => Decimal::new(signed(raw), scale),
            16 => raw.try_into().map_or(Decimal::ZERO, |b| {
                Decimal::from_i128(i128::from_le_bytes(b), scale)
            }),
            _ => Decimal::from_mantissa_le(raw, scale),
        }
    }

    /// A text column; `None` if the bytes are not UTF-8.
    #[inline]
    pub fn text(raw: &[u8]) -> Option<&str> {
        std::str::from_utf8(raw).ok()
    }

    /// A DATE; the zero date if the bytes are none.
    pub fn date(raw: &[u8]) -> Date {
        Date::from_packed(uint(raw) as u32).unwrap_or(Date::ZERO)
    }

    /// A TIME, clamped to its range.
    pub fn time(raw: &[u8]) -> Time {
        Time::from_micros_clamped(signed(raw))
    }

    /// DATETIME, and TIMESTAMP in UTC.
    pub fn datetime(raw: &[u8]) -> DateTime {
        DateTime::from_packed(uint(raw)).unwrap_or(DateTime::ZERO)
    }

    /// Any column. TIMESTAMPs are in UTC.
    pub fn value(raw: &[u8], ty: &DataType) -> Value {
        match ty {
            DataType::Null => Value::Null,
            DataType::Int {
                unsigned: false, ..
            } => Value::Int(signed(raw)),
            DataType::Int { .. }
            | DataType::Bit(_)
            | DataType::Set(_)
            | DataType::Enum(_)
            | DataType::Year => Value::UInt(uint(raw)),
            DataType::Float { .. } | DataType::Double { .. } => Value::Double(double(raw)),
            DataType::Decimal { scale, .. } => Value::Decimal(decimal(raw, *scale)),
            DataType::Date => Value::Date(date(raw)),
            DataType::Time { .. } => Value::Time(time(raw)),
            DataType::DateTime { .. } | DataType::Timestamp { .. } => {
                Value::DateTime(datetime(raw))
            }
            DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) => {
                Value::Bytes(raw.to_vec())
            }
            DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => {
                match CompactString::from_utf8(raw) {
                    Ok(s) => Value::Text(s),
                    Err(_) => Value::Bytes(raw.to_vec()),
                }
            }
            DataType::Json => match text(raw).map(Json::parse_stored) {
                Some(Ok(j)) => Value::Json(j),
                _ => {
                    debug_assert!(false, "a stored JSON document parses");
                    Value::Null
                }
            },
        }
    }

    /// The text protocol's form of a stored column; TIMESTAMPs are shown in `zone`.
    pub fn write_text(raw: &[u8], ty: &DataType, zone: &TimeZone, out: &mut Vec<u8>) {
        match ty {
            DataType::Char { .. }
            | DataType::Varchar { .. }
            | DataType::Text { .. }
            | DataType::Binary(_)
            | DataType::Varbinary(_)
            | DataType::Blob(_)
            | DataType::Json => out.extend_from_slice(raw),
            DataType::Int {
                unsigned: false, ..
            } => crate::number_text::write_int(signed(raw), out),
            DataType::Timestamp { fsp } => zone.from_utc(datetime(raw)).write_text(*fsp, out),
            _ => convert::write_text(&value(raw, ty), ty, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlobSize, Collation};
    use proptest::prelude::*;

    #[test]
    fn a_row_that_is_cut_or_has_no_text_where_one_is_due_is_at_fault() {
        let text = DataType::Varchar {
            length: 20,
            collation: Collation::UTF8MB4_0900_AI_CI,
        };
        let layout = RowLayout::new(&[DataType::BIGINT_UNSIGNED, text.clone(), text]);
        let values = [Value::UInt(7), Value::from("käse"), Value::Null];
        let mut row = Vec::new();
        layout.encode(&values, &mut row);
        assert_eq!(layout.first_corrupt_column(&row), None);
        for len in 0..row.len() {
            assert!(
                layout.first_corrupt_column(&row[..len]).is_some(),
                "{len} bytes"
            );
        }
        let longer = [&row[..], b"x"].concat();
        assert_eq!(layout.first_corrupt_column(&longer), Some(3));
        let text_at = row.len() - "käse".len();
        row[text_at + 1] = 0xFF;
        assert_eq!(layout.first_corrupt_column(&row), Some(1));
    }

    fn every_type() -> Vec<DataType> {
        let c = Collation::UTF8MB4_0900_AI_CI;
        vec![
            DataType::Int {
                width: IntWidth::Tiny,
                unsigned: false,
                zerofill: false,
                display_width: None,
            },
            DataType::BIGINT_UNSIGNED,
            DataType::Varchar {
                length: 20,
                collation: c,
            },
            DataType::decimal(5, 2),
            DataType::decimal(65, 30),
            DataType::DOUBLE,
            DataType::Blob(BlobSize::Normal),
            DataType::Date,
            DataType::Time { fsp: 6 },
            DataType::DateTime { fsp: 6 },
            DataType::Year,
            DataType::Char {
                length: 3,
                collation: c,
            },
        ]
    }

    fn example() -> Vec<Value> {
        vec![
            Value::Int(-7),
            Value::UInt(u64::MAX),
            Value::text("žluťoučký"),
            Value::Decimal("-123.45".parse().unwrap()),
            Value::Decimal(
                "-99999999999999999999999999999999999.123456789012345678901234567890"
                    .parse()
                    .unwrap(),
            ),
            Value::Double(-0.25),
            Value::Bytes(vec![0, 255, 0]),
            Value::Date(Date::new(2024, 2, 0).unwrap()),
            Value::Time(Time::MIN),
            Value::DateTime(DateTime::new(Date::MAX, 23, 59, 59, 999_999).unwrap()),
            Value::UInt(2155),
            Value::text(""),
        ]
    }

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let layout = RowLayout::new(&every_type());
        let values = example();
        let mut row = Vec::new();
        layout.encode(&values, &mut row);
        let mut back = Vec::new();
        layout.decode(&row, &mut back);
        assert_eq!(back, values);
        assert_eq!(layout.raw(&row, 2), Some("žluťoučký".as_bytes()));
    }

    /// Layouts of a table that gets columns in two steps: at its end, and among the others.
    fn steps() -> Vec<(RowLayout, Vec<usize>)> {
        let types = every_type();
        let values = example();
        let step_of = |column: usize| match column {
            1 | 2 => 2,
            5.. => 1,
            _ => 0,
        };
        (0..=2)
            .map(|now| {
                let columns: Vec<usize> =
                    (0..types.len()).filter(|&at| step_of(at) <= now).collect();
                let kept: Vec<DataType> = columns.iter().map(|&at| types[at].clone()).collect();
                let added: Vec<Option<Added>> = columns
                    .iter()
                    .map(|&at| {
                        let (step, value) = (step_of(at), values[at].clone());
                        (step > 0).then_some(Added { step, value })
                    })
                    .collect();
                let stored = kept.iter().zip(&added).map(|(ty, added)| StoredColumn {
                    ty,
                    added: added.as_ref(),
                    place: 0,
                });
                (
                    RowLayout::altered(&stored.collect::<Vec<_>>(), &[]),
                    columns,
                )
            })
            .collect()
    }

    #[test]
    fn rows_from_before_a_column_was_added_have_the_value_that_it_came_with() {
        let layouts = steps();
        let (last, _) = &layouts[2];
        for (written, columns) in &layouts {
            let values: Vec<Value> = columns.iter().map(|&at| example()[at].clone()).collect();
            let mut row = Vec::new();
            written.encode(&values, &mut row);
            assert_eq!(last.first_corrupt_column(&row), None);
            let mut back = Vec::new();
            last.decode(&row, &mut back);
            assert_eq!(back, example());
            assert!(!last.is_null(&row, 1) && !last.is_null(&row, 11));
            for len in 0..row.len() {
                let cut = &row[..len];
                let is_earlier = layouts.iter().any(|(layout, columns)| {
                    let values: Vec<Value> =
                        columns.iter().map(|&at| example()[at].clone()).collect();
                    let mut whole = Vec::new();
                    layout.encode(&values, &mut whole);
                    whole == cut
                });
                assert_eq!(
                    last.first_corrupt_column(cut).is_none(),
                    is_earlier,
                    "{len}"
                );
            }
        }
    }

    #[test]
    fn a_null_is_not_an_empty_string() {
        let layout = RowLayout::new(&[DataType::varchar(5), DataType::varchar(5)]);
        let mut row = Vec::new();
        layout.encode(&[Value::Null, Value::text("")], &mut row);
        assert_eq!(layout.raw(&row, 0), None);
        assert_eq!(layout.raw(&row, 1), Some(&b""[..]));
    }

    proptest! {
        #[test]
        fn columns_that_are_null_do_not_move_the_others(nulls in any::<u16>()) {
            let layout = RowLayout::new(&every_type());
            let values: Vec<Value> = example().into_iter().enumerate()
                .map(|(i, v)| if nulls >> i & 1 == 1 { Value::Null } else { v }).collect();
            let mut row = vec![1, 2, 3];
            layout.encode(&values, &mut row);
            let mut back = Vec::new();
            layout.decode(&row[3..], &mut back);
            prop_assert_eq!(back, values);
        }

        #[test]
        fn a_column_can_be_set_in_a_row_of_any_age(
            step in 0..3_usize,
            sets in proptest::collection::vec((0..12_usize, any::<bool>()), 0..6),
        ) {
            let layouts = steps();
            let (written, columns) = &layouts[step];
            let values: Vec<Value> = columns.iter().map(|&at| example()[at].clone()).collect();
            let mut row = Vec::new();
            written.encode(&values, &mut row);
            let before = row.clone();
            let (last, _) = &layouts[2];
            let mut expected = example();
            for (column, is_null) in sets {
                let value = if is_null { Value::Null } else { example()[column].clone() };
                last.set(&mut row, column, &value);
                expected[column] = value;
                let mut back = Vec::new();
                last.decode(&row, &mut back);
                prop_assert_eq!(&back, &expected);
                prop_assert_eq!(last.first_corrupt_column(&row), None);
                prop_assert_eq!(last.is_same(&before, &row), expected == example());
                let mut copied = Vec::new();
                let all: Vec<usize> = (0..expected.len()).collect();
                last.encode_columns(last, &row, &all, &mut copied);
                let mut encoded = Vec::new();
                last.encode(&expected, &mut encoded);
                prop_assert_eq!(copied, encoded);
            }
        }

        #[test]
        fn a_copy_has_the_columns_that_are_read(step in 0..3_usize, read in any::<u16>()) {
            let layouts = steps();
            let (written, columns) = &layouts[step];
            let values: Vec<Value> = columns.iter().map(|&at| example()[at].clone()).collect();
            let mut row = Vec::new();
            written.encode(&values, &mut row);
            let (last, _) = &layouts[2];
            let is_read = |column: usize| read >> column & 1 == 1;
            let Some(kept) = last.kept(is_read) else {
                return Ok(());
            };
            let mut copy = vec![7];
            prop_assert!(last.copy_kept(&row, &kept, &mut copy));
            prop_assert_eq!(last.first_corrupt_column(&copy), None);
            prop_assert!(copy.len() <= row.len());
            for column in (0..12).filter(|column| is_read(*column)) {
                prop_assert_eq!(last.get(&copy, column), example()[column].clone());
            }
            for len in 0..row.len() {
                let _ = last.copy_kept(&row[..len], &kept, &mut copy);
            }
        }

        #[test]
        fn columns_that_are_left_and_moved_keep_their_places(
            keys in proptest::collection::vec(any::<u8>(), 12),
            added in any::<u16>(),
            read in any::<u16>(),
        ) {
            let (types, values) = (every_type(), example());
            let step = |column: usize| (added >> column & 1 == 1).then_some(Added {
                step: 1 + column as u16 % 2,
                value: values[column].clone(),
            });
            let steps: Vec<Option<Added>> = (0..12).map(step).collect();
            let stored = |column: usize| StoredColumn {
                ty: &types[column],
                added: steps[column].as_ref(),
                place: column as u16,
            };
            let before = RowLayout::altered(&(0..12).map(stored).collect::<Vec<_>>(), &[]);
            let mut kept: Vec<usize> = (0..12).filter(|&at| !keys[at].is_multiple_of(3)).collect();
            kept.sort_by_key(|&at| keys[at]);
            let gone: Vec<_> = (0..12).filter(|at| !kept.contains(at)).map(stored).collect();
            let after: Vec<_> = kept.iter().map(|&at| stored(at)).collect();
            let after = RowLayout::altered(&after, &gone);
            let expected: Vec<Value> = kept.iter().map(|&at| values[at].clone()).collect();

            let (mut old, mut new, mut back) = (Vec::new(), Vec::new(), Vec::new());
            before.encode(&values, &mut old);
            after.encode(&expected, &mut new);
            for row in [&old, &new] {
                back.clear();
                after.decode(row, &mut back);
                prop_assert_eq!(&back, &expected);
                prop_assert_eq!(after.first_corrupt_column(row), None);
            }
            prop_assert!(after.is_same(&old, &new));
            let columns: Vec<usize> = (0..kept.len()).collect();
            let mut copied = Vec::new();
            after.encode_columns(&after, &old, &columns, &mut copied);
            prop_assert_eq!(&copied, &new);
            for (column, value) in expected.iter().enumerate() {
                after.set(&mut old, column, &Value::Null);
                prop_assert!(after.is_null(&old, column));
                after.set(&mut old, column, value);
                prop_assert!(after.is_same(&old, &new));
                prop_assert_eq!(after.first_corrupt_column(&old), None);
            }
            let is_read = |column: usize| read >> column & 1 == 1;
            if let Some(parts) = after.kept(is_read) {
                prop_assert!(after.copy_kept(&old, &parts, &mut copied));
                for column in columns.into_iter().filter(|column| is_read(*column)) {
                    prop_assert_eq!(after.get(&copied, column), expected[column].clone());
                }
            }
        }

        #[test]
        fn a_corrupt_row_with_added_columns_never_panics(
            row in proptest::collection::vec(any::<u8>(), 0..200),
            column in 0..12_usize,
        ) {
            for (layout, columns) in steps() {
                let mut row = row.clone();
                let column = column.min(columns.len() - 1);
                let _ = (layout.get(&row, column), layout.is_null(&row, column));
                let _ = layout.first_corrupt_column(&row);
                layout.set(&mut row, column, &Value::Null);
                let all: Vec<usize> = (0..columns.len()).collect();
                layout.encode_columns(&layout, &row, &all, &mut Vec::new());
            }
        }

        #[test]
        fn a_corrupt_row_never_panics(row in proptest::collection::vec(any::<u8>(), 0..200)) {
            let layout = RowLayout::new(&every_type());
            let mut out = Vec::new();
            for (c, ty) in every_type().iter().enumerate() {
                let _ = layout.get(&row, c);
                if let Some(raw) = layout.raw(&row, c) {
                    stored::write_text(raw, ty, &TimeZone::utc(), &mut out);
                }
            }
        }
    }
}
