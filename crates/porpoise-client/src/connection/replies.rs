//! Reading replies: packets, results one after the other, their rows.

use super::{Connection, Expected, ReadState};
use crate::results::{Columns, Row, Rows, WireFormat, locate_values};
use crate::{Error, Outcome, compression, tls};
use porpoise_protocol::column;
use porpoise_protocol::command::Command;
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::{PacketRange, PacketWriter};
use porpoise_protocol::reply::{ErrPacket, OkPacket, ReplyHead, RowPacket};
use porpoise_transport::{ClosedStream, Stream};
use std::io;
use std::sync::Arc;

impl Connection {
    pub(super) fn write_command(&mut self, command: &Command<'_>) {
        command.write(&mut self.writer, self.server.capabilities);
    }

    pub(super) fn run_command(&mut self, command: &Command<'_>) -> Result<(), Error> {
        self.drain_replies()?;
        self.write_command(command);
        self.expected.push_back(Expected::Acknowledgement);
        self.receive()?;
        Ok(())
    }

    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.broken {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Reads what is left of every reply that is due. The errors of those statements are lost: the
    /// caller didn't read their replies.
    pub(super) fn drain_replies(&mut self) -> Result<(), Error> {
        self.check_open()?;
        loop {
            let settled = if self.reading != ReadState::Nothing {
                self.next_result().map(drop)
            } else if !self.expected.is_empty() {
                self.receive().map(drop)
            } else {
                return Ok(());
            };
            match settled {
                Err(error) if error.is_fatal() => return Err(error),
                _ => {}
            }
        }
    }

    pub(super) fn mark_broken_on_error<T>(&mut self, result: io::Result<T>) -> Result<T, Error> {
        if result.is_err() {
            self.broken = true;
        }
        Ok(result?)
    }

    /// Sends and reads over another stream from now on. Returns the one so far.
    pub(crate) fn switch_stream(
        &mut self,
        stream: Box<dyn Stream>,
    ) -> Result<Box<dyn Stream>, Error> {
        stream.set_read_timeout(self.options.connect_timeout)?;
        stream.set_write_timeout(self.options.write_timeout)?;
        Ok(std::mem::replace(&mut self.stream, stream))
    }

    /// Takes the stream, to give back one over it.
    fn take_stream(&mut self) -> Box<dyn Stream> {
        std::mem::replace(&mut self.stream, Box::new(ClosedStream))
    }

    /// Encrypts what follows.
    pub(crate) fn start_tls(&mut self) -> Result<(), Error> {
        // Whoever sits between the ends could have sent it, to be taken for the server's words.
        if !self.reader.unread().is_empty() {
            return Err(Error::Tls(
                "the server sent more before the handshake".into(),
            ));
        }
        let stream = self.take_stream();
        let (stream, session) = tls::start(stream, &self.options.host, &self.options.tls)?;
        self.stream = stream;
        self.tls = Some(session);
        Ok(())
    }

    /// Compresses what follows.
    pub(crate) fn start_compression(&mut self, algorithm: Algorithm) -> Result<(), Error> {
        if !self.reader.unread().is_empty() {
            self.broken = true;
            return Err(porpoise_protocol::Error::Malformed("bytes behind the log-in").into());
        }
        let stream = self.take_stream();
        self.stream = compression::start(stream, algorithm);
        self.compression = Some(algorithm);
        Ok(())
    }

    pub(crate) fn writer(&mut self) -> &mut PacketWriter {
        &mut self.writer
    }

    pub(crate) fn packet(&self, packet: PacketRange) -> porpoise_protocol::frame::Packet<'_> {
        self.reader.packet_at(packet)
    }

    /// Waits for a packet.
    #[inline]
    pub(crate) fn read_packet(&mut self) -> Result<PacketRange, Error> {
        self.check_open()?;
        loop {
            match self.reader.take_packet() {
                Ok(Some(packet)) => return Ok(packet),
                Ok(None) => {}
                Err(error) => {
                    self.broken = true;
                    return Err(error.into());
                }
            }
            match self.stream.read(self.reader.spare()) {
                Ok(0) => {
                    self.broken = true;
                    return Err(Error::Io(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server closed the connection",
                    )));
                }
                Ok(count) => self.reader.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.broken = true;
                    return Err(error.into());
                }
            }
        }
    }

    /// A protocol error breaks the connection: where the next reply begins can't be known.
    pub(super) fn protocol<T>(
        broken: &mut bool,
        result: Result<T, porpoise_protocol::Error>,
    ) -> Result<T, Error> {
        if result.is_err() {
            *broken = true;
        }
        Ok(result?)
    }

    pub(super) fn clear_columns(&mut self) {
        match Arc::get_mut(&mut self.columns) {
            Some(columns) => columns.clear(),
            None => self.columns = Arc::default(),
        }
    }

    /// Reads `count` definitions into `columns`, and the EOF behind them.
    fn read_definitions_into(&mut self, columns: &mut Columns, count: usize) -> Result<(), Error> {
        for _ in 0..count {
            let packet = self.read_packet()?;
            let pushed = columns.push(self.reader.packet_at(packet).payload);
            if let Err(error) = pushed {
                self.broken = true;
                return Err(error);
            }
        }
        if count > 0 && column::has_eof_after_definitions(self.server.capabilities) {
            let packet = self.read_packet()?;
            let ended = porpoise_protocol::reply::parse_end_of_rows(
                self.reader.packet_at(packet).payload,
                self.server.capabilities,
            );
            self.outcome.status = Self::protocol(&mut self.broken, ended)?.status;
        }
        Ok(())
    }

    pub(super) fn read_definitions(&mut self, count: usize) -> Result<Columns, Error> {
        let mut columns = Columns::default();
        self.read_definitions_into(&mut columns, count)?;
        Ok(columns)
    }

    pub(super) fn read_field_list(&mut self) -> Result<(), Error> {
        let mut columns = Columns::default();
        loop {
            let packet = self.read_packet()?;
            let payload = self.reader.packet_at(packet).payload;
            let reply = RowPacket::parse(payload, self.server.capabilities);
            match Self::protocol(&mut self.broken, reply)? {
                RowPacket::Row(definition) => columns.push(definition)?,
                RowPacket::End(end) => {
                    self.outcome.set(&end);
                    self.columns = Arc::new(columns);
                    return Ok(());
                }
                RowPacket::Err(error) => return Err(Error::from_server(error)),
            }
        }
    }

    pub(super) fn read_acknowledgement(&mut self) -> Result<(), Error> {
        let packet = self.read_packet()?;
        let capabilities = self.server.capabilities;
        let payload = self.reader.packet_at(packet).payload;
        // Some acknowledgements are EOF packets, which are shorter than an OK that begins with the
        // same byte.
        let is_short = payload.len() <= 5 && payload.first() == Some(&0xFE);
        let reply = if is_short {
            porpoise_protocol::reply::parse_end_of_rows(
                payload,
                capabilities - Capabilities::DEPRECATE_EOF,
            )
            .map(Ok)
        } else {
            match ErrPacket::parse(payload) {
                Ok(Some(error)) => Ok(Err(error)),
                Ok(None) => OkPacket::parse(payload, capabilities).map(Ok),
                Err(error) => Err(error),
            }
        };
        match Self::protocol(&mut self.broken, reply)? {
            Ok(ok) => {
                self.outcome.set(&ok);
                Ok(())
            }
            Err(error) => Err(Error::from_server(error)),
        }
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub(crate) fn set_outcome(&mut self, packet: PacketRange) -> Result<(), Error> {
        let ok = OkPacket::parse(
            self.reader.packet_at(packet).payload,
            self.server.capabilities,
        );
        self.outcome.set(&Self::protocol(&mut self.broken, ok)?);
        Ok(())
    }

    fn read_further(&mut self, binary: bool) {
        self.reading = if self.outcome.status.contains(Status::MORE_RESULTS_EXISTS) {
            ReadState::Result { binary }
        } else {
            ReadState::Nothing
        };
    }

    /// Skips to the end of the result being read, then reads the head of the next one, if there is
    /// one.
    pub(crate) fn next_result(&mut self) -> Result<bool, Error> {
        while let ReadState::Rows { .. } = self.reading {
            self.take_row()?;
        }
        let ReadState::Result { binary } = self.reading else {
            return Ok(false);
        };
        self.reading = ReadState::Nothing;
        let packet = self.read_packet()?;
        let payload = self.reader.packet_at(packet).payload;
        let first = ReplyHead::parse(payload, self.server.capabilities);
        match Self::protocol(&mut self.broken, first)? {
            ReplyHead::Ok(ok) => {
                self.outcome.set(&ok);
                self.clear_columns();
                self.read_further(binary);
            }
            ReplyHead::Err(error) => return Err(Error::from_server(error)),
            ReplyHead::LocalInfile(name) => {
                let name = name.to_vec();
                let sequence = self.reader.packet_at(packet).sequence.wrapping_add(1);
                let given = self.send_file(&name, sequence);
                self.flush()?;
                let stored = self.read_acknowledgement();
                self.clear_columns();
                given?;
                stored?;
                self.read_further(binary);
            }
            ReplyHead::Columns(count) => {
                // In the memory of the last ones, unless a caller has those still.
                let last = Arc::get_mut(&mut self.columns);
                let mut columns = last.map(std::mem::take).unwrap_or_default();
                columns.clear();
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let read = self.read_definitions_into(&mut columns, count);
                match Arc::get_mut(&mut self.columns) {
                    Some(place) => *place = columns,
                    None => self.columns = Arc::new(columns),
                }
                read?;
                // With a cursor the rows wait to be fetched.
                self.reading = if self.outcome.status.contains(Status::CURSOR_EXISTS)
                    && column::has_eof_after_definitions(self.server.capabilities)
                {
                    ReadState::Nothing
                } else {
                    ReadState::Rows { binary }
                };
            }
        }
        Ok(true)
    }

    /// Sends a file piece by piece, and the empty packet that ends it. A file that couldn't be read
    /// is cut short.
    fn send_file(&mut self, name: &[u8], sequence: u8) -> Result<(), Error> {
        self.writer.set_sequence(sequence);
        let Some(mut files) = self.files.take() else {
            self.writer.write(b"");
            return Err(Error::Unsupported("LOAD DATA LOCAL INFILE"));
        };
        let mut sent = Ok(());
        let given = files(name, &mut |piece| {
            if !piece.is_empty() && sent.is_ok() {
                self.writer.write(piece);
                sent = self.flush();
            }
        });
        self.files = Some(files);
        sent?;
        self.writer.write(b"");
        given
    }

    /// Takes a packet among rows: where the row lies, or `None` at their end.
    #[inline]
    fn take_row(&mut self) -> Result<Option<PacketRange>, Error> {
        let ReadState::Rows { binary } = self.reading else {
            return Ok(None);
        };
        let packet = self.read_packet()?;
        let payload = self.reader.packet_at(packet).payload;
        let reply = RowPacket::parse(payload, self.server.capabilities);
        match Self::protocol(&mut self.broken, reply)? {
            RowPacket::Row(_) => Ok(Some(packet)),
            RowPacket::End(end) => {
                self.outcome.set(&end);
                self.read_further(binary);
                Ok(None)
            }
            RowPacket::Err(error) => {
                self.reading = ReadState::Nothing;
                Err(Error::from_server(error))
            }
        }
    }

    #[inline]
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        let ReadState::Rows { binary } = self.reading else {
            return Ok(None);
        };
        let Some(packet) = self.take_row()? else {
            return Ok(None);
        };
        let bytes = self.reader.packet_at(packet).payload;
        self.cells.clear();
        let located = locate_values(bytes, 0, &self.columns, binary, &mut self.cells);
        Self::protocol(&mut self.broken, located)?;
        Ok(Some(Row {
            bytes,
            cells: &self.cells,
            columns: &self.columns,
            format: WireFormat { binary },
        }))
    }

    pub(crate) fn collect_rows(&mut self) -> Result<Rows, Error> {
        let mut rows = Rows::default();
        self.collect_rows_into(&mut rows)?;
        Ok(rows)
    }

    pub(crate) fn collect_rows_into(&mut self, rows: &mut Rows) -> Result<(), Error> {
        self.begin_rows(rows);
        while self.append_row(rows)? {}
        Ok(())
    }

    pub(crate) fn collect_row_into(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        self.begin_rows(rows);
        self.append_row(rows)
    }

    fn begin_rows(&self, rows: &mut Rows) {
        rows.forget();
        if !Arc::ptr_eq(&rows.columns, &self.columns) {
            rows.columns = Arc::clone(&self.columns);
        }
        rows.format = WireFormat {
            binary: matches!(self.reading, ReadState::Rows { binary: true }),
        };
    }

    pub(crate) fn append_row(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        let Some(packet) = self.take_row()? else {
            rows.end(self.outcome.clone());
            return Ok(false);
        };
        let payload = self.reader.packet_at(packet).payload;
        let located = locate_values(
            payload,
            rows.bytes.len(),
            &rows.columns,
            rows.format.binary,
            &mut rows.cells,
        );
        Self::protocol(&mut self.broken, located)?;
        rows.put_bytes(payload);
        rows.end_row();
        Ok(true)
    }
}
