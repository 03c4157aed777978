//! Rows, text and binary: written value by value into the reply, read without a copy.
//!
//! ```text
//! text     each value as a length-encoded string, or FB for NULL
//! binary   00 │ NULL bits, the first two unused │ each value that isn't NULL, as its column's type says
//! ```
//!
//! [`TextRowWriter`] and [`BinaryRowWriter`] are both [`PutRow`]s: code that walks a row's values
//! once, generic over it, serves both. A row that is dropped before [`finish`](PutRow::finish)
//! leaves nothing in the reply.
//!
//! ```
//! use porpoise_protocol::codes::ColumnType;
//! use porpoise_protocol::frame::PacketWriter;
//! use porpoise_protocol::row::{PutRow, TextRow, TextRowWriter};
//!
//! let mut writer = PacketWriter::new();
//! let mut row = TextRowWriter::begin(&mut writer);
//! row.put_int(-7, ColumnType::Long);
//! row.put_null();
//! row.put_bytes(b"seven");
//! row.finish();
//!
//! let values: Vec<_> = TextRow::new(&writer.bytes()[4..]).collect::<Result<_, _>>()?;
//! assert_eq!(values, [Some(&b"-7"[..]), None, Some(b"seven")]);
//! # Ok::<(), porpoise_protocol::Error>(())
//! ```

use crate::Error;
use crate::codes::ColumnType;
use crate::frame::PacketWriter;
use crate::value::{Date, DateTime, Time, Value, ValueType, put_date, put_datetime, put_time};
use crate::wire::{Fields, NULL_MARK, PutFields};

/// The values of one row, put in the order of its columns.
pub trait PutRow {
    /// NULL.
    fn put_null(&mut self);
    /// A signed integer, as wide as its column is in binary rows.
    fn put_int(&mut self, value: i64, column_type: ColumnType);
    /// An unsigned integer; YEAR too.
    fn put_uint(&mut self, value: u64, column_type: ColumnType);
    /// A FLOAT; `text` appends it as a text row shows it.
    fn put_float(&mut self, value: f32, text: impl FnOnce(&mut Vec<u8>));
    /// A DOUBLE; `text` appends it as a text row shows it.
    fn put_double(&mut self, value: f64, text: impl FnOnce(&mut Vec<u8>));
    /// A string, DECIMAL, JSON, BIT: everything that is bytes or text in both kinds of row.
    fn put_bytes(&mut self, bytes: &[u8]);
    /// A DATE.
    fn put_date(&mut self, value: Date);
    /// A DATETIME or TIMESTAMP; `decimals` are its fractional digits.
    fn put_datetime(&mut self, value: DateTime, decimals: u8);
    /// A TIME; `decimals` are its fractional digits.
    fn put_time(&mut self, value: Time, decimals: u8);
    /// A string that `write` appends, of a length not known before.
    fn put_with(&mut self, write: impl FnOnce(&mut Vec<u8>));
    /// Ends the row.
    fn finish(self);
}

/// Appends `write`'s bytes with their length before them.
#[inline]
fn put_lenenc_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length <= 0xFA {
        out[at] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(9);
        prefix.put_lenenc(length as u64);
        out.splice(at..=at, prefix);
    }
}

#[inline]
fn put_lenenc_text(out: &mut Vec<u8>, text: &str) {
    out.put_lenenc_bytes(text.as_bytes());
}

/// Writes a row of the text protocol.
#[derive(Debug)]
pub struct TextRowWriter<'w> {
    writer: &'w mut PacketWriter,
    start: usize,
    finished: bool,
}

impl<'w> TextRowWriter<'w> {
    /// Begins a row.
    #[inline]
    pub fn begin(writer: &'w mut PacketWriter) -> Self {
        let start = writer.begin();
        Self {
            writer,
            start,
            finished: false,
        }
    }
}

/// A row of the text protocol between two of its values, when its writer is needed elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct TextRowState {
    start: usize,
}

impl<'w> TextRowWriter<'w> {
    /// Lets go of the writer. The row stays open: nothing else may be written before it is resumed.
    #[inline]
    pub fn suspend(mut self) -> TextRowState {
        self.finished = true;
        TextRowState { start: self.start }
    }

    /// Goes on with a row in the writer it was begun in.
    #[inline]
    pub fn resume(writer: &'w mut PacketWriter, state: TextRowState) -> Self {
        Self {
            writer,
            start: state.start,
            finished: false,
        }
    }
}

impl Drop for TextRowWriter<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.finished {
            self.writer.abandon(self.start);
        }
    }
}

impl PutRow for TextRowWriter<'_> {
    #[inline]
    fn put_null(&mut self) {
        self.writer.open().push(NULL_MARK);
    }

    #[inline]
    fn put_int(&mut self, value: i64, _: ColumnType) {
        put_lenenc_text(self.writer.open(), itoa::Buffer::new().format(value));
    }

    #[inline]
    fn put_uint(&mut self, value: u64, column_type: ColumnType) {
        if column_type == ColumnType::Year {
            return self.put_with(|out| put_padded(out, value as u32, 4));
        }
        put_lenenc_text(self.writer.open(), itoa::Buffer::new().format(value));
    }

    fn put_float(&mut self, _: f32, text: impl FnOnce(&mut Vec<u8>)) {
        self.put_with(text);
    }

    fn put_double(&mut self, _: f64, text: impl FnOnce(&mut Vec<u8>)) {
        self.put_with(text);
    }

    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.writer.open().put_lenenc_bytes(bytes);
    }

    fn put_date(&mut self, value: Date) {
        self.put_with(|out| put_date_text(out, value));
    }

    fn put_datetime(&mut self, value: DateTime, decimals: u8) {
        self.put_with(|out| {
            put_date_text(out, value.date);
            out.push(b' ');
            put_clock_text(
                out,
                [
                    u32::from(value.hour),
                    value.minute.into(),
                    value.second.into(),
                ],
                value.microsecond,
                decimals,
            );
        });
    }

    fn put_time(&mut self, value: Time, decimals: u8) {
        self.put_with(|out| {
            if value.negative {
                out.push(b'-');
            }
            let hours = value
                .days
                .saturating_mul(24)
                .saturating_add(value.hours.into());
            put_clock_text(
                out,
                [hours, value.minutes.into(), value.seconds.into()],
                value.microseconds,
                decimals,
            );
        });
    }

    #[inline]
    fn put_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        put_lenenc_with(self.writer.open(), write);
    }

    #[inline]
    fn finish(mut self) {
        self.finished = true;
        self.writer.end(self.start);
    }
}

fn put_padded(out: &mut Vec<u8>, value: u32, width: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
}

fn put_date_text(out: &mut Vec<u8>, Date { year, month, day }: Date) {
    put_padded(out, year.into(), 4);
    out.push(b'-');
    put_padded(out, month.into(), 2);
    out.push(b'-');
    put_padded(out, day.into(), 2);
}

fn put_clock_text(
    out: &mut Vec<u8>,
    [hours, minutes, seconds]: [u32; 3],
    microseconds: u32,
    decimals: u8,
) {
    put_padded(out, hours, 2);
    out.push(b':');
    put_padded(out, minutes, 2);
    out.push(b':');
    put_padded(out, seconds, 2);
    if decimals > 0 {
        out.push(b'.');
        let digits = usize::from(decimals.min(6));
        put_padded(out, microseconds / 10u32.pow(6 - digits as u32), digits);
    }
}

/// Writes a row of the binary protocol.
#[derive(Debug)]
pub struct BinaryRowWriter<'w> {
    writer: &'w mut PacketWriter,
    start: usize,
    /// Where the NULL bits lie.
    nulls: usize,
    /// The bit of the next value.
    bit: usize,
    finished: bool,
}

impl<'w> BinaryRowWriter<'w> {
    /// The first bits of the NULL bits that mean nothing.
    const BIT_OFFSET: usize = 2;

    /// Begins a row of `columns` values.
    #[inline]
    pub fn begin(writer: &'w mut PacketWriter, columns: usize) -> Self {
        let start = writer.begin();
        let out = writer.open();
        out.push(0);
        let nulls = out.len();
        out.put_zeros((columns + Self::BIT_OFFSET).div_ceil(8));
        Self {
            writer,
            start,
            nulls,
            bit: Self::BIT_OFFSET,
            finished: false,
        }
    }

    #[inline]
    fn value(&mut self) -> &mut Vec<u8> {
        self.bit += 1;
        self.writer.open()
    }
}

/// A row of the binary protocol between two of its values, when its writer is needed elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct BinaryRowState {
    start: usize,
    nulls: usize,
    bit: usize,
}

impl<'w> BinaryRowWriter<'w> {
    /// Lets go of the writer. The row stays open: nothing else may be written before it is resumed.
    #[inline]
    pub fn suspend(mut self) -> BinaryRowState {
        self.finished = true;
        BinaryRowState {
            start: self.start,
            nulls: self.nulls,
            bit: self.bit,
        }
    }

    /// Goes on with a row in the writer it was begun in.
    #[inline]
    pub fn resume(writer: &'w mut PacketWriter, state: BinaryRowState) -> Self {
        Self {
            writer,
            start: state.start,
            nulls: state.nulls,
            bit: state.bit,
            finished: false,
        }
    }
}

impl Drop for BinaryRowWriter<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.finished {
            self.writer.abandon(self.start);
        }
    }
}

/// The low bytes of an integer, as many as its column has; a column that isn't an integer gets
/// text.
#[inline]
fn put_integer(
    out: &mut Vec<u8>,
    bits: u64,
    column_type: ColumnType,
    text: impl FnOnce(&mut Vec<u8>),
) {
    use ColumnType as T;
    match column_type {
        T::LongLong => out.put_u64(bits),
        T::Long | T::Int24 => out.put_u32(bits as u32),
        T::Short | T::Year => out.put_u16(bits as u16),
        T::Tiny | T::Bool => out.push(bits as u8),
        _ => text(out),
    }
}

impl PutRow for BinaryRowWriter<'_> {
    #[inline]
    fn put_null(&mut self) {
        let bit = self.bit;
        let at = self.nulls + bit / 8;
        self.value()[at] |= 1 << (bit % 8);
    }

    #[inline]
    fn put_int(&mut self, value: i64, column_type: ColumnType) {
        put_integer(self.value(), value as u64, column_type, |out| {
            put_lenenc_text(out, itoa::Buffer::new().format(value));
        });
    }

    #[inline]
    fn put_uint(&mut self, value: u64, column_type: ColumnType) {
        put_integer(self.value(), value, column_type, |out| {
            put_lenenc_text(out, itoa::Buffer::new().format(value));
        });
    }

    #[inline]
    fn put_float(&mut self, value: f32, _: impl FnOnce(&mut Vec<u8>)) {
        self.value().put_u32(value.to_bits());
    }

    #[inline]
    fn put_double(&mut self, value: f64, _: impl FnOnce(&mut Vec<u8>)) {
        self.value().put_u64(value.to_bits());
    }

    #[inline]
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.value().put_lenenc_bytes(bytes);
    }

    #[inline]
    fn put_date(&mut self, value: Date) {
        put_date(self.value(), value);
    }

    #[inline]
    fn put_datetime(&mut self, value: DateTime, _: u8) {
        put_datetime(self.value(), value);
    }

    #[inline]
    fn put_time(&mut self, value: Time, _: u8) {
        put_time(self.value(), value);
    }

    #[inline]
    fn put_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        put_lenenc_with(self.value(), write);
    }

    #[inline]
    fn finish(mut self) {
        self.finished = true;
        self.writer.end(self.start);
    }
}

/// Reads a row of the text protocol: each value, or nothing for NULL.
#[derive(Clone, Copy, Debug)]
pub struct TextRow<'a> {
    fields: Fields<'a>,
}

impl<'a> TextRow<'a> {
    /// The row in `payload`.
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            fields: Fields::new(payload),
        }
    }
}

impl<'a> Iterator for TextRow<'a> {
    type Item = Result<Option<&'a [u8]>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.fields.is_empty() {
            return None;
        }
        let value = self.fields.nullable_bytes();
        if value.is_err() {
            self.fields = Fields::new(&[]);
        }
        Some(value)
    }
}

/// Reads a row of the binary protocol: each value, by the types of its columns.
#[derive(Clone, Debug)]
pub struct BinaryRow<'a, T> {
    fields: Fields<'a>,
    nulls: &'a [u8],
    types: T,
    bit: usize,
}

impl<'a, T: ExactSizeIterator<Item = ValueType>> BinaryRow<'a, T> {
    /// The row in `payload`, of columns of these `types`.
    #[inline]
    pub fn new(payload: &'a [u8], types: T) -> Result<Self, Error> {
        let mut fields = Fields::new(payload);
        if fields.u8()? != 0 {
            return Err(Error::Malformed("not a binary row"));
        }
        let nulls = fields.bytes((types.len() + BinaryRowWriter::BIT_OFFSET).div_ceil(8))?;
        Ok(Self {
            fields,
            nulls,
            types,
            bit: BinaryRowWriter::BIT_OFFSET,
        })
    }
}

impl<'a, T: Iterator<Item = ValueType>> Iterator for BinaryRow<'a, T> {
    type Item = Result<Value<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let value_type = self.types.next()?;
        let bit = self.bit;
        self.bit += 1;
        let null = self
            .nulls
            .get(bit / 8)
            .is_some_and(|bits| bits >> (bit % 8) & 1 != 0);
        Some(if null {
            Ok(Value::Null)
        } else {
            Value::take(&mut self.fields, value_type)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHRISTMAS: DateTime = DateTime {
        date: Date {
            year: 2024,
            month: 12,
            day: 24,
        },
        hour: 18,
        minute: 5,
        second: 9,
        microsecond: 123_456,
    };

    fn put_all(mut row: impl PutRow) {
        row.put_int(-128, ColumnType::Tiny);
        row.put_uint(65_535, ColumnType::Short);
        row.put_null();
        row.put_int(i64::MIN, ColumnType::LongLong);
        row.put_uint(24, ColumnType::Year);
        row.put_float(1.5, |out| out.extend_from_slice(b"1.5"));
        row.put_double(2.5, |out| out.extend_from_slice(b"2.50"));
        row.put_bytes(&[b'x'; 300]);
        row.put_date(CHRISTMAS.date);
        row.put_datetime(CHRISTMAS, 3);
        row.put_time(
            Time {
                negative: true,
                days: 34,
                hours: 22,
                minutes: 59,
                seconds: 59,
                microseconds: 0,
            },
            0,
        );
        row.put_with(|out| out.extend_from_slice(&[b'y'; 251]));
        row.put_int(-5, ColumnType::NewDecimal);
        row.finish();
    }

    #[test]
    fn a_text_row_shows_values_as_mysql_does() {
        let mut writer = PacketWriter::new();
        put_all(TextRowWriter::begin(&mut writer));
        let values: Vec<_> = TextRow::new(&writer.bytes()[4..])
            .map(|value| {
                value
                    .unwrap()
                    .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            })
            .collect();
        let expected = [
            Some("-128"),
            Some("65535"),
            None,
            Some("-9223372036854775808"),
            Some("0024"),
            Some("1.5"),
            Some("2.50"),
            Some(&"x".repeat(300)),
            Some("2024-12-24"),
            Some("2024-12-24 18:05:09.123"),
            Some("-838:59:59"),
            Some(&"y".repeat(251)),
            Some("-5"),
        ]
        .map(|value| value.map(str::to_owned));
        assert_eq!(values, expected);
    }

    #[test]
    fn a_binary_row_reads_as_it_was_written() {
        use ColumnType as T;
        let mut writer = PacketWriter::new();
        put_all(BinaryRowWriter::begin(&mut writer, 13));
        let types = [
            (T::Tiny, false),
            (T::Short, true),
            (T::Long, false),
            (T::LongLong, false),
            (T::Year, true),
            (T::Float, false),
            (T::Double, false),
            (T::VarString, false),
            (T::Date, false),
            (T::DateTime, false),
            (T::Time, false),
            (T::Blob, false),
            (T::NewDecimal, false),
        ]
        .map(|(column_type, unsigned)| ValueType {
            column_type,
            unsigned,
        });
        let values: Vec<_> = BinaryRow::new(&writer.bytes()[4..], types.into_iter())
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(
            values[..3],
            [Value::Int(-128), Value::UInt(65_535), Value::Null]
        );
        assert_eq!(
            values[3..7],
            [
                Value::Int(i64::MIN),
                Value::UInt(24),
                Value::Float(1.5),
                Value::Double(2.5)
            ]
        );
        assert_eq!(values[7], Value::Text(&[b'x'; 300]));
        assert_eq!(
            values[8..10],
            [Value::Date(CHRISTMAS.date), Value::DateTime(CHRISTMAS)]
        );
        assert_eq!(
            values[11..],
            [Value::Bytes(&[b'y'; 251]), Value::Decimal(b"-5")]
        );
    }

    /// "Binary Protocol Resultset" in the protocol documentation: `SELECT CONCAT('foo', 'bar')`.
    #[test]
    fn the_documented_binary_row_is_written() {
        let mut writer = PacketWriter::with_buffer(Vec::new(), 4);
        let mut row = BinaryRowWriter::begin(&mut writer, 1);
        row.put_bytes(b"foobar");
        row.finish();
        assert_eq!(writer.bytes(), b"\x09\0\0\x04\0\0\x06foobar");
    }

    #[test]
    fn a_row_dropped_midway_leaves_nothing() {
        let mut writer = PacketWriter::new();
        let mut row = TextRowWriter::begin(&mut writer);
        row.put_bytes(b"half");
        drop(row);
        let mut row = BinaryRowWriter::begin(&mut writer, 3);
        row.put_null();
        drop(row);
        assert!(writer.is_empty());
        assert_eq!(writer.sequence(), 0);
    }

    proptest::proptest! {
        #[test]
        fn random_rows_never_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            types in proptest::collection::vec(proptest::num::u8::ANY, 0..12),
        ) {
            TextRow::new(&bytes).for_each(drop);
            let types: Vec<_> = types
                .into_iter()
                .filter_map(ColumnType::from_byte)
                .map(|column_type| ValueType { column_type, unsigned: false })
                .collect();
            if let Ok(row) = BinaryRow::new(&bytes, types.iter().copied()) {
                row.for_each(drop);
            }
        }
    }
}
