//! A statement's reply, encoded straight into the connection's reply buffer.
//!
//! The engine writes rows into [`ReplyWriter`]: text rows for a query, binary rows for a prepared
//! statement. The packet that ends a result (OK, or the end of rows) carries the session's state,
//! which the engine knows when the statement is over: it is written by [`ReplyWriter::finish`].
//!
//! ```text
//! begin_rows ─► column count, definitions [, EOF]     rows ─► … ─► beyond FLUSH_BYTES: to the stream, waiting for
//! finish     ─► end of rows or OK, with the status                  a slow reader on this thread, off the event loop
//! ```
//!
//! With a cursor the rows go to a [`Cursor`] instead, from which COM_STMT_FETCH takes them.

use std::sync::Arc;
use std::time::Duration;

use porpoise_engine::memory::MemoryAccount;
use porpoise_engine::reply::{Completion, Reply, ResultColumn};
use porpoise_engine::{Error, Result};
use porpoise_protocol::codes::ColumnType;
use porpoise_protocol::column::{DECIMALS_NOT_FIXED, write_column_count};
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::reply::{OkPacket, write_eof, write_local_infile};
use porpoise_protocol::row::{
    BinaryRowState, BinaryRowWriter, PutRow, TextRowState, TextRowWriter,
};
use porpoise_protocol::value as wire;
use porpoise_types::{Charset, Date, DateTime, Time, number_text};

use crate::column_definition::write_column_definition;
use crate::cursor::Cursor;
use crate::local_infile::{ReceivedFile, receive_file};
use crate::send_buffer::SendBuffer;
use crate::stream::Stream;

/// Rows are sent when the reply buffer holds more than this, so that a large result needs no more
/// memory.
pub(crate) const FLUSH_BYTES: usize = 256 << 10;

/// The same over a ring: the client takes rows while the next ones are made.
const RING_FLUSH_BYTES: usize = 64 << 10;

/// The text protocol, or the binary one of prepared statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    Text,
    Binary,
}

/// The row under way.
enum RowState {
    None,
    Text(TextRowState),
    Binary(BinaryRowState),
}

/// What encoding a value needs to know of its column.
#[derive(Clone, Copy)]
struct ColumnEncoding {
    column_type: ColumnType,
    decimals: u8,
}

/// How a connection's result sets are encoded and sent.
#[derive(Clone, Copy)]
pub(crate) struct ResultSetFormat {
    pub row_format: RowFormat,
    pub capabilities: Capabilities,
    /// The status before the statement, for packets that are sent before its end.
    pub status: Status,
    pub charset: Charset,
    pub read_timeout: Duration,
    pub write_timeout: Duration,
}

/// The reply to one statement.
pub(crate) struct ReplyWriter<'a> {
    writer: &'a mut PacketWriter,
    send_buffer: &'a mut SendBuffer,
    format: ResultSetFormat,
    /// Rows go here instead of to the client.
    cursor: Option<Cursor>,
    /// Whom the rows of a cursor are charged to.
    account: Option<Arc<MemoryAccount>>,
    encodings: Vec<ColumnEncoding>,
    row: RowState,
    /// The column of the next value.
    column: usize,
    has_rows: bool,
    /// The rows are the values of OUT parameters.
    is_out_parameters: bool,
    /// Rows are sent when the reply buffer holds more than this.
    flush_bytes: usize,
    /// The end of the last result, not yet written.
    end: Option<(Completion, EndPacket)>,
}

/// Which packet ends a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndPacket {
    Ok,
    EndOfRows,
}

/// Puts one value into the row under way, in whichever protocol.
macro_rules! put {
    ($reply:expr, $row:ident => $put:expr) => {{
        let writer = match &mut $reply.cursor {
            None => &mut *$reply.writer,
            Some(cursor) => cursor.rows_mut(),
        };
        match &mut $reply.row {
            RowState::Text(state) => {
                let mut $row = TextRowWriter::resume(writer, *state);
                $put;
                *state = $row.suspend();
            }
            RowState::Binary(state) => {
                let mut $row = BinaryRowWriter::resume(writer, *state);
                $put;
                *state = $row.suspend();
            }
            RowState::None => {}
        }
    }};
}

impl<'a> ReplyWriter<'a> {
    pub fn new(
        writer: &'a mut PacketWriter,
        send_buffer: &'a mut SendBuffer,
        format: ResultSetFormat,
    ) -> ReplyWriter<'a> {
        let flush_bytes = match send_buffer.stream.is_ring() {
            true => RING_FLUSH_BYTES,
            false => FLUSH_BYTES,
        };
        ReplyWriter {
            flush_bytes,
            writer,
            send_buffer,
            format,
            cursor: None,
            account: None,
            encodings: Vec::new(),
            row: RowState::None,
            column: 0,
            has_rows: false,
            is_out_parameters: false,
            end: None,
        }
    }

    /// Keeps the rows for COM_STMT_FETCH; the account is charged for them.
    pub fn into_cursor(mut self, account: Arc<MemoryAccount>) -> ReplyWriter<'a> {
        self.cursor = Some(Cursor::default());
        self.account = Some(account);
        self
    }

    /// How many bytes the rows of the cursor take; 0 if there is none.
    pub fn cursor_bytes(&self) -> usize {
        self.cursor.as_ref().map_or(0, Cursor::bytes)
    }

    /// The statement is over: writes its end with the session's status and state changes as they
    /// are now. Returns the cursor if one was opened.
    pub fn finish(mut self, status: Status, state: &[u8]) -> Option<Cursor> {
        let opened = self.cursor.take().filter(|_| self.has_rows);
        let status = if opened.is_some() {
            status | Status::CURSOR_EXISTS
        } else {
            status
        };
        // A statement that has replied nothing ends with an empty OK.
        let (completion, end) = self
            .end
            .take()
            .unwrap_or((Completion::default(), EndPacket::Ok));
        self.write_end(&completion, end, status, state);
        opened
    }

    /// The statement failed: drops the row under way; what was sent before it stays.
    pub fn abandon(mut self) {
        self.drop_row();
        // A commit that fails does so after the statement: the error takes the place of the end.
        self.end = None;
    }

    /// Drops the row under way.
    fn drop_row(&mut self) {
        let writer = match &mut self.cursor {
            None => &mut *self.writer,
            Some(cursor) => cursor.rows_mut(),
        };
        match std::mem::replace(&mut self.row, RowState::None) {
            RowState::Text(state) => drop(TextRowWriter::resume(writer, state)),
            RowState::Binary(state) => drop(BinaryRowWriter::resume(writer, state)),
            RowState::None => {}
        }
    }

    fn write_end(&mut self, completion: &Completion, end: EndPacket, status: Status, state: &[u8]) {
        let packet = OkPacket {
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            status,
            warnings: completion.warnings,
            message: completion.message.as_bytes(),
            state,
        };
        match end {
            EndPacket::Ok => packet.write(self.writer, self.format.capabilities),
            EndPacket::EndOfRows => packet.write_end_of_rows(self.writer, self.format.capabilities),
        }
    }

    /// A statement with several results (CALL): ends the one before this.
    fn end_previous(&mut self) {
        if let Some((completion, end)) = self.end.take() {
            let status = self.status_within() | Status::MORE_RESULTS_EXISTS;
            self.write_end(&completion, end, status, &[]);
            self.is_out_parameters = false;
        }
    }

    /// The status that packets before the statement's end tell.
    fn status_within(&self) -> Status {
        match self.is_out_parameters {
            true => self.format.status | Status::PS_OUT_PARAMS | Status::MORE_RESULTS_EXISTS,
            false => self.format.status,
        }
    }

    /// Puts a number that comes as the text it is shown as (ZEROFILL, DOUBLE(10,2)) into a binary
    /// row.
    fn put_number_text(&mut self, text: &[u8], column_type: ColumnType) {
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
    fn next_encoding(&mut self) -> ColumnEncoding {
        let encoding = self.encodings.get(self.column).copied();
        self.column += 1;
        encoding.unwrap_or(ColumnEncoding {
            column_type: ColumnType::VarString,
            decimals: 0,
        })
    }
}

/// Whether binary rows have a type as a number of fixed length.
fn is_binary_number(column_type: ColumnType) -> bool {
    use ColumnType as T;
    matches!(
        column_type,
        T::Tiny | T::Short | T::Int24 | T::Long | T::LongLong | T::Year | T::Float | T::Double
    )
}

impl Reply for ReplyWriter<'_> {
    fn ok(&mut self, completion: &Completion) -> Result<()> {
        self.end_previous();
        self.end = Some((completion.clone(), EndPacket::Ok));
        Ok(())
    }

    fn begin_rows(&mut self, columns: &[ResultColumn]) -> Result<()> {
        self.end_previous();
        self.has_rows = true;
        write_column_count(self.writer, columns.len());
        self.encodings.clear();
        for column in columns {
            let charset = self.format.charset;
            let (column_type, decimals) =
                write_column_definition(column, charset, None, self.writer);
            self.encodings.push(ColumnEncoding {
                column_type,
                decimals,
            });
        }
        if self.cursor.is_none()
            && !self
                .format
                .capabilities
                .contains(Capabilities::DEPRECATE_EOF)
        {
            write_eof(self.writer, 0, self.status_within());
        }
        Ok(())
    }

    #[inline]
    fn begin_row(&mut self) {
        let writer = match &mut self.cursor {
            None => &mut *self.writer,
            Some(cursor) => cursor.begin_row(),
        };
        self.column = 0;
        self.row = match self.format.row_format {
            RowFormat::Text => RowState::Text(TextRowWriter::begin(writer).suspend()),
            RowFormat::Binary => {
                RowState::Binary(BinaryRowWriter::begin(writer, self.encodings.len()).suspend())
            }
        };
    }

    #[inline]
    fn null(&mut self) {
        self.column += 1;
        put!(self, row => row.put_null());
    }

    #[inline]
    fn int(&mut self, value: i64) {
        let encoding = self.next_encoding();
        put!(self, row => row.put_int(value, encoding.column_type));
    }

    #[inline]
    fn uint(&mut self, value: u64) {
        let encoding = self.next_encoding();
        put!(self, row => row.put_uint(value, encoding.column_type));
    }

    fn float(&mut self, value: f32) {
        let encoding = self.next_encoding();
        put!(self, row => row.put_float(value, |out| match encoding.decimals {
            DECIMALS_NOT_FIXED.. => number_text::write_float(value, out),
            decimals => number_text::write_fixed(value.into(), decimals, out),
        }));
    }

    fn double(&mut self, value: f64) {
        let encoding = self.next_encoding();
        put!(self, row => row.put_double(value, |out| match encoding.decimals {
            DECIMALS_NOT_FIXED.. => number_text::write_double(value, out),
            decimals => number_text::write_fixed(value, decimals, out),
        }));
    }

    #[inline]
    fn bytes(&mut self, value: &[u8]) {
        let encoding = self.next_encoding();
        if matches!(self.row, RowState::Binary(_)) && is_binary_number(encoding.column_type) {
            return self.put_number_text(value, encoding.column_type);
        }
        put!(self, row => row.put_bytes(value));
    }

    fn date(&mut self, value: Date) {
        self.column += 1;
        put!(self, row => row.put_date(wire_date(value)));
    }

    fn datetime(&mut self, value: DateTime, fsp: u8) {
        self.column += 1;
        put!(self, row => row.put_datetime(wire_datetime(value), fsp));
    }

    fn time(&mut self, value: Time, fsp: u8) {
        self.column += 1;
        put!(self, row => row.put_time(wire_time(value), fsp));
    }

    #[inline]
    fn end_row(&mut self) -> Result<()> {
        let writer = match &mut self.cursor {
            None => &mut *self.writer,
            Some(cursor) => cursor.rows_mut(),
        };
        match std::mem::replace(&mut self.row, RowState::None) {
            RowState::Text(state) => TextRowWriter::resume(writer, state).finish(),
            RowState::Binary(state) => BinaryRowWriter::resume(writer, state).finish(),
            RowState::None => {}
        }
        if let (Some(cursor), Some(account)) = (&mut self.cursor, &self.account) {
            cursor.end_row(account)?;
        }
        if self.writer.len() > self.flush_bytes {
            self.send_buffer
                .send_all(self.writer, self.format.write_timeout)
                .map_err(send_error)?;
        }
        Ok(())
    }

    fn end_rows(&mut self, completion: &Completion) -> Result<()> {
        self.end = Some((completion.clone(), EndPacket::EndOfRows));
        Ok(())
    }

    fn expect_more(&mut self) {
        self.format.status |= Status::MORE_RESULTS_EXISTS;
    }

    fn more_follows(&mut self) {
        self.end_previous();
    }

    fn begin_out_parameters(&mut self) -> bool {
        let needed = Capabilities::PS_MULTI_RESULTS;
        if !self.format.capabilities.contains(needed) {
            return false;
        }
        self.end_previous();
        self.is_out_parameters = true;
        true
    }

    fn abandon_rows(&mut self) -> Result<()> {
        self.drop_row();
        self.end_rows(&Completion::default())
    }

    fn local_file(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        if !self.format.capabilities.contains(Capabilities::LOCAL_FILES) {
            return Err(Error::local_data_disabled());
        }
        if let Stream::InProcess(pending_reply) = &mut self.send_buffer.stream {
            return pending_reply.read_file(path).map_err(receive_error);
        }
        self.end_previous();
        write_local_infile(self.writer, path);
        self.send_buffer
            .send_all(self.writer, self.format.write_timeout)
            .map_err(send_error)?;
        let file = receive_file(self.send_buffer, self.format.read_timeout);
        let ReceivedFile { content, sequence } = file.map_err(receive_error)?;
        self.writer.set_sequence(sequence.wrapping_add(1));
        Ok(content)
    }
}

/// The error of a statement whose client doesn't send its file.
fn receive_error(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Error::query_interrupted(),
        std::io::ErrorKind::TimedOut => Error::net_read_interrupted(),
        std::io::ErrorKind::InvalidData => Error::malformed_packet(),
        _ => Error::net_read_error(),
    }
}

/// The error of a statement whose reply couldn't be sent.
pub(crate) fn send_error(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Error::query_interrupted(),
        _ => Error::net_error_on_write(),
    }
}

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
