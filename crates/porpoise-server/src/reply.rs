//! A statement's answer, encoded straight into the connection's reply buffer.
//!
//! [`Answer`] is what the engine writes rows into: text rows for a query, binary rows for a prepared
//! statement. What ends an answer (OK, or the end of rows) carries the session's state, which the
//! engine knows when the statement is over: it is kept until [`Answer::finish`].
//!
//! ```text
//! begin_rows ─► column count, definitions [, EOF]     rows ─► … ─► beyond FLUSH_BYTES: to the socket, waiting for
//! finish     ─► end of rows or OK, with the status                  a slow reader on this thread, off the event loop
//! ```
//!
//! With a cursor the rows go to a [`Cursor`] instead, from which COM_STMT_FETCH takes them.

use std::time::Duration;

use porpoise_engine::reply::{ColumnKey, Completion, Reply, ResultColumn};
use porpoise_engine::{Error, Result};
use porpoise_protocol::codes::{self, ColumnType};
use porpoise_protocol::column::{ColumnDefinition, DECIMALS_NOT_FIXED, write_column_count};
use porpoise_protocol::flags::{Capabilities, ColumnFlags, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::reply::{OkPacket, write_eof, write_local_infile};
use porpoise_protocol::row::{
    BinaryRowState, BinaryRowWriter, PutRow, TextRowState, TextRowWriter,
};
use porpoise_protocol::value as wire;
use porpoise_types::{BlobSize, Charset, DataType, Date, DateTime, IntWidth, Time, number_text};

use crate::outlet::Outlet;
use crate::stream::Stream;

/// Rows are sent on when the reply buffer holds more than this, so that a large result needs no more memory.
const FLUSH_BYTES: usize = 256 << 10;

/// How values travel: as text, or as the column's type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Text,
    Binary,
}

enum Row {
    None,
    Text(TextRowState),
    Binary(BinaryRowState),
}

/// What a value's encoding needs to know of its column.
#[derive(Clone, Copy)]
struct Form {
    column_type: ColumnType,
    decimals: u8,
    /// Text that the client wants in another character set than utf8mb4.
    convert: bool,
}

/// What about the session an answer needs.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub encoding: Encoding,
    pub capabilities: Capabilities,
    /// The status before the statement, for what is sent before its end.
    pub status: Status,
    pub charset: Charset,
    pub read_timeout: Duration,
    pub write_timeout: Duration,
}

/// The answer to one statement.
pub(crate) struct Answer<'a> {
    writer: &'a mut PacketWriter,
    outlet: &'a mut Outlet,
    manner: Manner,
    /// Instead of to the client, rows go here.
    cursor: Option<Cursor>,
    forms: Vec<Form>,
    row: Row,
    at: usize,
    rows_begun: bool,
    /// The end of the last result, not yet written.
    end: Option<(Completion, End)>,
    converted: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ok,
    Rows,
}

/// Puts one value into the row under way, whichever kind it is.
macro_rules! put {
    ($answer:expr, $row:ident => $put:expr) => {{
        let writer = match &mut $answer.cursor {
            None => &mut *$answer.writer,
            Some(cursor) => &mut cursor.rows,
        };
        match &mut $answer.row {
            Row::Text(state) => {
                let mut $row = TextRowWriter::resume(writer, *state);
                $put;
                *state = $row.suspend();
            }
            Row::Binary(state) => {
                let mut $row = BinaryRowWriter::resume(writer, *state);
                $put;
                *state = $row.suspend();
            }
            Row::None => {}
        }
    }};
}

impl<'a> Answer<'a> {
    pub fn new(writer: &'a mut PacketWriter, outlet: &'a mut Outlet, manner: Manner) -> Answer<'a> {
        Answer {
            writer,
            outlet,
            manner,
            cursor: None,
            forms: Vec::new(),
            row: Row::None,
            at: 0,
            rows_begun: false,
            end: None,
            converted: Vec::new(),
        }
    }

    /// Rows are kept for COM_STMT_FETCH.
    pub fn into_cursor(mut self) -> Answer<'a> {
        self.cursor = Some(Cursor::default());
        self
    }

    /// The statement is over: writes its end with the session's status now. Returns the cursor if one was opened.
    pub fn finish(mut self, status: Status, state: &[u8]) -> Option<Cursor> {
        let opened = self.cursor.take().filter(|_| self.rows_begun);
        let status = if opened.is_some() {
            status | Status::CURSOR_EXISTS
        } else {
            status
        };
        // A statement that answered nothing is one that has nothing to say.
        let (completion, end) = self.end.take().unwrap_or((Completion::default(), End::Ok));
        self.write_end(&completion, end, status, state);
        opened
    }

    /// The statement failed: a row under way is dropped; what was sent before it stays.
    pub fn abandon(mut self) {
        let writer = match &mut self.cursor {
            None => &mut *self.writer,
            Some(cursor) => &mut cursor.rows,
        };
        match std::mem::replace(&mut self.row, Row::None) {
            Row::Text(state) => drop(TextRowWriter::resume(writer, state)),
            Row::Binary(state) => drop(BinaryRowWriter::resume(writer, state)),
            Row::None => {}
        }
        // A commit that fails does so after the statement: the error takes the place of the end.
        self.end = None;
    }

    fn write_end(&mut self, completion: &Completion, end: End, status: Status, state: &[u8]) {
        let packet = OkPacket {
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            status,
            warnings: completion.warnings,
            message: completion.message.as_bytes(),
            state,
        };
        match end {
            End::Ok => packet.write(self.writer, self.manner.capabilities),
            End::Rows => packet.write_end_of_rows(self.writer, self.manner.capabilities),
        }
    }

    /// A statement with several results (CALL): the one before this ends here.
    fn end_previous(&mut self) {
        if let Some((completion, end)) = self.end.take() {
            self.write_end(
                &completion,
                end,
                self.manner.status | Status::MORE_RESULTS_EXISTS,
                &[],
            );
        }
    }

    /// A number that comes as the text it is shown as (ZEROFILL, DOUBLE(10,2)), for a binary row.
    fn number(&mut self, text: &[u8], column_type: ColumnType) {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let number = || text.parse::<f64>().unwrap_or_default();
        match column_type {
            ColumnType::Float => put!(self, row => row.put_float(number() as f32, |_| {})),
            ColumnType::Double => put!(self, row => row.put_double(number(), |_| {})),
            _ => match text.parse::<u64>() {
                Ok(number) => put!(self, row => row.put_uint(number, column_type)),
                Err(_) => put!(self, row => row.put_int(number() as i64, column_type)),
            },
        }
    }

    #[inline]
    fn form(&mut self) -> Form {
        let form = self.forms.get(self.at).copied();
        self.at += 1;
        form.unwrap_or(Form {
            column_type: ColumnType::VarString,
            decimals: 0,
            convert: false,
        })
    }
}

/// Types that binary rows have in so many bytes.
fn is_number(column_type: ColumnType) -> bool {
    use ColumnType as T;
    matches!(
        column_type,
        T::Tiny | T::Short | T::Int24 | T::Long | T::LongLong | T::Year | T::Float | T::Double
    )
}

impl Reply for Answer<'_> {
    fn ok(&mut self, completion: &Completion) -> Result<()> {
        self.end_previous();
        self.end = Some((completion.clone(), End::Ok));
        Ok(())
    }

    fn begin_rows(&mut self, columns: &[ResultColumn]) -> Result<()> {
        self.end_previous();
        self.rows_begun = true;
        write_column_count(self.writer, columns.len());
        self.forms.clear();
        for column in columns {
            let definition = define(column, self.manner.charset);
            definition.write(self.writer);
            self.forms.push(Form {
                column_type: definition.column_type,
                decimals: definition.decimals,
                convert: self.manner.charset != Charset::Utf8mb4
                    && column.ty.collation().charset() != Charset::Binary,
            });
        }
        if self.cursor.is_none()
            && !self
                .manner
                .capabilities
                .contains(Capabilities::DEPRECATE_EOF)
        {
            write_eof(self.writer, 0, self.manner.status);
        }
        Ok(())
    }

    #[inline]
    fn begin_row(&mut self) {
        let writer = match &mut self.cursor {
            None => &mut *self.writer,
            Some(cursor) => cursor.begin_row(),
        };
        self.at = 0;
        self.row = match self.manner.encoding {
            Encoding::Text => Row::Text(TextRowWriter::begin(writer).suspend()),
            Encoding::Binary => {
                Row::Binary(BinaryRowWriter::begin(writer, self.forms.len()).suspend())
            }
        };
    }

    #[inline]
    fn null(&mut self) {
        self.at += 1;
        put!(self, row => row.put_null());
    }

    #[inline]
    fn int(&mut self, value: i64) {
        let form = self.form();
        put!(self, row => row.put_int(value, form.column_type));
    }

    #[inline]
    fn uint(&mut self, value: u64) {
        let form = self.form();
        put!(self, row => row.put_uint(value, form.column_type));
    }

    fn float(&mut self, value: f32) {
        let form = self.form();
        put!(self, row => row.put_float(value, |out| match form.decimals {
            DECIMALS_NOT_FIXED.. => number_text::write_float(value, out),
            decimals => number_text::write_fixed(value.into(), decimals, out),
        }));
    }

    fn double(&mut self, value: f64) {
        let form = self.form();
        put!(self, row => row.put_double(value, |out| match form.decimals {
            DECIMALS_NOT_FIXED.. => number_text::write_double(value, out),
            decimals => number_text::write_fixed(value, decimals, out),
        }));
    }

    #[inline]
    fn bytes(&mut self, value: &[u8]) {
        let form = self.form();
        if matches!(self.row, Row::Binary(_)) && is_number(form.column_type) {
            return self.number(value, form.column_type);
        }
        if form.convert
            && let Ok(text) = std::str::from_utf8(value)
        {
            let mut converted = std::mem::take(&mut self.converted);
            converted.clear();
            self.manner.charset.encode(text, &mut converted);
            put!(self, row => row.put_bytes(&converted));
            self.converted = converted;
            return;
        }
        put!(self, row => row.put_bytes(value));
    }

    fn date(&mut self, value: Date) {
        self.at += 1;
        put!(self, row => row.put_date(wire_date(value)));
    }

    fn datetime(&mut self, value: DateTime, fsp: u8) {
        self.at += 1;
        put!(self, row => row.put_datetime(wire_datetime(value), fsp));
    }

    fn time(&mut self, value: Time, fsp: u8) {
        self.at += 1;
        put!(self, row => row.put_time(wire_time(value), fsp));
    }

    #[inline]
    fn end_row(&mut self) -> Result<()> {
        let writer = match &mut self.cursor {
            None => &mut *self.writer,
            Some(cursor) => &mut cursor.rows,
        };
        match std::mem::replace(&mut self.row, Row::None) {
            Row::Text(state) => TextRowWriter::resume(writer, state).finish(),
            Row::Binary(state) => BinaryRowWriter::resume(writer, state).finish(),
            Row::None => {}
        }
        if self.writer.len() > FLUSH_BYTES {
            self.outlet
                .send_all(self.writer, self.manner.write_timeout)
                .map_err(unsent)?;
        }
        Ok(())
    }

    fn end_rows(&mut self, completion: &Completion) -> Result<()> {
        self.end = Some((completion.clone(), End::Rows));
        Ok(())
    }

    fn local_file(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        if !self.manner.capabilities.contains(Capabilities::LOCAL_FILES) {
            return Err(Error::local_data_disabled());
        }
        if let Stream::Inside(pocket) = &mut self.outlet.stream {
            return pocket.file(path).map_err(unreceived);
        }
        self.end_previous();
        write_local_infile(self.writer, path);
        self.outlet
            .send_all(self.writer, self.manner.write_timeout)
            .map_err(unsent)?;
        let (content, sequence) = self
            .outlet
            .receive_file(self.manner.read_timeout)
            .map_err(unreceived)?;
        self.writer.set_sequence(sequence.wrapping_add(1));
        Ok(content)
    }
}

/// A client that doesn't send its file ends the statement.
fn unreceived(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Error::query_interrupted(),
        std::io::ErrorKind::TimedOut => Error::net_read_interrupted(),
        std::io::ErrorKind::InvalidData => Error::malformed_packet(),
        _ => Error::net_read_error(),
    }
}

/// A reply that couldn't be sent ends its statement.
fn unsent(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Error::query_interrupted(),
        _ => Error::net_error_on_write(),
    }
}

/// The rows of an open cursor, encoded, each a packet whose number is not yet right.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    rows: PacketWriter,
    /// Where each row begins in the bytes of `rows`.
    starts: Vec<usize>,
    next: usize,
}

impl Cursor {
    fn begin_row(&mut self) -> &mut PacketWriter {
        self.starts.push(self.rows.len());
        &mut self.rows
    }

    /// COM_STMT_FETCH: up to `count` more rows.
    pub fn fetch(
        &mut self,
        count: u32,
        status: Status,
        writer: &mut PacketWriter,
        outlet: &mut Outlet,
        manner: &Manner,
    ) -> Result<()> {
        let until = self
            .next
            .saturating_add(count as usize)
            .min(self.starts.len());
        for at in self.next..until {
            let from = self.starts[at];
            let to = self.starts.get(at + 1).copied().unwrap_or(self.rows.len());
            write_again(writer, &self.rows.bytes()[from..to]);
            if writer.len() > FLUSH_BYTES {
                outlet
                    .send_all(writer, manner.write_timeout)
                    .map_err(unsent)?;
            }
        }
        self.next = until;
        let more = until < self.starts.len();
        let flag = if more {
            Status::CURSOR_EXISTS
        } else {
            Status::LAST_ROW_SENT
        };
        OkPacket {
            status: status | flag,
            ..OkPacket::default()
        }
        .write_end_of_rows(writer, manner.capabilities);
        Ok(())
    }
}

/// Writes a packet that is already framed, in one piece or several, under its new number.
fn write_again(writer: &mut PacketWriter, mut framed: &[u8]) {
    writer.packet(|out| {
        while let Some((&[a, b, c, _], rest)) = framed.split_first_chunk::<4>() {
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            let (piece, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            out.extend_from_slice(piece);
            framed = rest;
        }
    });
}

// ── Columns ──────────────────────────────────────────────────────────────────────────────────

/// The column types of the wire.
pub(crate) fn column_type(ty: &DataType) -> ColumnType {
    match ty {
        DataType::Null => ColumnType::Null,
        DataType::Int { width, .. } => match width {
            IntWidth::Tiny => ColumnType::Tiny,
            IntWidth::Small => ColumnType::Short,
            IntWidth::Medium => ColumnType::Int24,
            IntWidth::Int => ColumnType::Long,
            IntWidth::Big => ColumnType::LongLong,
        },
        DataType::Bit(_) => ColumnType::Bit,
        DataType::Decimal { .. } => ColumnType::NewDecimal,
        DataType::Float { .. } => ColumnType::Float,
        DataType::Double { .. } => ColumnType::Double,
        DataType::Char { .. } | DataType::Binary(_) | DataType::Enum(_) | DataType::Set(_) => {
            ColumnType::String
        }
        DataType::Varchar { .. } | DataType::Varbinary(_) => ColumnType::VarString,
        DataType::Text { .. } | DataType::Blob(_) => ColumnType::Blob,
        DataType::Date => ColumnType::Date,
        DataType::Time { .. } => ColumnType::Time,
        DataType::DateTime { .. } => ColumnType::DateTime,
        DataType::Timestamp { .. } => ColumnType::Timestamp,
        DataType::Year => ColumnType::Year,
        DataType::Json => ColumnType::Json,
    }
}

/// A column as its definition packet describes it to a client that reads `charset`.
pub(crate) fn define(column: &ResultColumn, charset: Charset) -> ColumnDefinition<'_> {
    let ty = &column.ty;
    let text = ty.is_string() && !ty.is_binary_string();
    ColumnDefinition {
        schema: column.schema.as_bytes(),
        table: column.table.as_bytes(),
        org_table: column.original_table.as_bytes(),
        name: column.name.as_bytes(),
        org_name: column.original_name.as_bytes(),
        collation: if text {
            charset.default_collation().id()
        } else {
            codes::BINARY
        },
        length: u32::try_from(octets(ty, charset)).unwrap_or(u32::MAX),
        column_type: column_type(ty),
        flags: column_flags(column),
        decimals: ty.decimals(),
        default: None,
    }
}

/// The length of a column's widest value in bytes. A TEXT's length is bytes already.
fn octets(ty: &DataType, charset: Charset) -> u64 {
    match ty {
        DataType::Text { size, .. } if *size != BlobSize::Long => {
            size.max_octets() * u64::from(charset.max_len())
        }
        _ => ty.max_octets(charset),
    }
}

fn column_flags(column: &ResultColumn) -> ColumnFlags {
    let ty = &column.ty;
    let key = match column.key {
        ColumnKey::None => ColumnFlags::empty(),
        ColumnKey::Primary => ColumnFlags::PRI_KEY | ColumnFlags::PART_KEY,
        ColumnKey::Unique => ColumnFlags::UNIQUE_KEY | ColumnFlags::PART_KEY,
        ColumnKey::Multiple => ColumnFlags::MULTIPLE_KEY | ColumnFlags::PART_KEY,
    };
    let unsigned = ty.is_unsigned() && !matches!(ty, DataType::Enum(_) | DataType::Set(_));
    let binary = ty.is_binary_string()
        || ty.is_temporal()
        || matches!(ty, DataType::Json)
        || (ty.is_string() && ty.collation().is_binary())
        || (ty.is_numeric() && column.table.is_empty());
    let number = ty.is_numeric() && !matches!(ty, DataType::Bit(_));
    [
        (ColumnFlags::NOT_NULL, !column.nullable),
        (ColumnFlags::BLOB, ty.is_blob()),
        (ColumnFlags::UNSIGNED, unsigned),
        (
            ColumnFlags::ZEROFILL,
            ty.is_zerofill() || matches!(ty, DataType::Year),
        ),
        (ColumnFlags::BINARY, binary),
        (ColumnFlags::ENUM, matches!(ty, DataType::Enum(_))),
        (ColumnFlags::SET, matches!(ty, DataType::Set(_))),
        (ColumnFlags::AUTO_INCREMENT, column.auto_increment),
        (
            ColumnFlags::TIMESTAMP,
            matches!(ty, DataType::Timestamp { .. }) && column.on_update_now,
        ),
        (ColumnFlags::ON_UPDATE_NOW, column.on_update_now),
        (ColumnFlags::NO_DEFAULT_VALUE, column.no_default),
        (ColumnFlags::NUM, number),
    ]
    .into_iter()
    .filter(|(_, is_set)| *is_set)
    .fold(key, |flags, (flag, _)| flags | flag)
}

// ── Dates and times ──────────────────────────────────────────────────────────────────────────

fn wire_date(date: Date) -> wire::Date {
    wire::Date {
        year: date.year() as u16,
        month: date.month() as u8,
        day: date.day() as u8,
    }
}

fn wire_datetime(value: DateTime) -> wire::DateTime {
    wire::DateTime {
        date: wire_date(value.date()),
        hour: value.hour() as u8,
        minute: value.minute() as u8,
        second: value.second() as u8,
        microsecond: value.microsecond(),
    }
}

fn wire_time(value: Time) -> wire::Time {
    wire::Time {
        negative: value.is_negative(),
        days: value.hours() / 24,
        hours: (value.hours() % 24) as u8,
        minutes: value.minute() as u8,
        seconds: value.second() as u8,
        microseconds: value.microsecond(),
    }
}
