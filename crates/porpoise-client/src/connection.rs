//! A connection: commands out, replies in, in the same order.
//!
//! ```text
//!  send_query ──► writer ──flush──► stream ──► reader ──► receive: head of a reply
//!      │                                                    │
//!      └─────► expected: what kind of reply is due ─────────┴─► rows …, next result …
//! ```
//!
//! Every command appends to the writer and notes in `expected` what its reply will look like; `receive` takes the
//! oldest note. So pipelining is not another way of working, but not waiting in between.

use crate::results::{Cell, Columns, Results, Row, Rows, Wire, lay_out};
use crate::{Error, Options, Transport, login};
use porpoise_protocol::column;
use porpoise_protocol::command::{Command, Query};
use porpoise_protocol::flags::{Capabilities, CursorFlags, Status};
use porpoise_protocol::frame::{PacketPlace, PacketReader, PacketWriter};
use porpoise_protocol::handshake::REUSE_REQUEST;
use porpoise_protocol::reply::{ErrPacket, FirstReply, OkPacket, RowReply, StateChange};
use porpoise_protocol::statement::{Prepared, write_execute};
use porpoise_protocol::value::Value;
use porpoise_transport::{ClosedStream, Endpoint, Stream, connect_from, take_pooled};
use std::cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// How a statement ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows changed; with `found_rows`, rows found.
    pub affected_rows: u64,
    /// The first value that AUTO_INCREMENT gave.
    pub last_insert_id: u64,
    /// The session's state.
    pub status: Status,
    /// The number of warnings.
    pub warnings: u16,
    /// The server's words, as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub message: String,
    state: Vec<u8>,
}

impl Outcome {
    fn set(&mut self, packet: &OkPacket<'_>) {
        self.affected_rows = packet.affected_rows;
        self.last_insert_id = packet.last_insert_id;
        self.status = packet.status;
        self.warnings = packet.warnings;
        self.message.clear();
        if !packet.message.is_empty() {
            self.message
                .push_str(&String::from_utf8_lossy(packet.message));
        }
        self.state.clear();
        self.state.extend_from_slice(packet.state);
    }

    /// What changed in the session, as far as the server tracks it.
    pub fn state_changes(&self) -> impl Iterator<Item = StateChange<'_>> {
        OkPacket {
            state: &self.state,
            ..OkPacket::default()
        }
        .state_changes()
    }
}

/// A prepared statement; of use with the connection that prepared it, until that is reset.
#[derive(Clone, Debug)]
pub struct Statement {
    id: u32,
    parameters: usize,
    parameter_columns: Arc<Columns>,
    columns: Arc<Columns>,
    warnings: u16,
}

impl Statement {
    /// The server's number for it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How many parameters it has.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// What the server knows of its parameters.
    pub fn parameter_columns(&self) -> &Columns {
        &self.parameter_columns
    }

    /// The columns of its result, as known when it was prepared.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Warnings of preparing it.
    pub fn warnings(&self) -> u16 {
        self.warnings
    }
}

/// Gives the content of a file that a server asks for (LOAD DATA LOCAL INFILE): called with the file's name and a
/// function that takes the content piece by piece. An error ends the statement and is what its caller gets.
pub type FileSource = Box<dyn FnMut(&[u8], &mut dyn FnMut(&[u8])) -> Result<(), Error> + Send>;

/// The kind of reply that is due.
#[derive(Clone, Debug)]
enum Expected {
    /// OK, ERR, or columns and rows, as text or binary.
    Results { binary: bool },
    /// Rows of a cursor, without columns before them.
    Fetched(Arc<Columns>),
    /// Column definitions up to EOF.
    FieldList,
    /// OK or EOF, or ERR.
    Acknowledgement,
}

/// What comes next of the reply being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Nothing: the reply is read.
    Nothing,
    /// A row or the end of rows.
    Rows { binary: bool },
    /// The head of another result.
    Result { binary: bool },
}

/// A session with a server.
pub struct Connection {
    stream: Box<dyn Stream>,
    reader: PacketReader,
    writer: PacketWriter,
    pub(crate) server: login::Server,
    options: Options,
    expected: VecDeque<Expected>,
    reading: Reading,
    columns: Arc<Columns>,
    cells: Vec<Cell>,
    /// Statements and parameters whose values were sent ahead.
    long: Vec<(u32, usize)>,
    outcome: Outcome,
    /// After an I/O or protocol error nothing that is still to come can be told apart.
    broken: bool,
    files: Option<FileSource>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("stream", &self.stream)
            .field("server", &self.server)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

/// A reader that holds more room than this isn't worth keeping.
const SPARE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The buffers of the connection that this thread has closed last, for the next.
    static SPARE: cell::Cell<(PacketReader, PacketWriter)> = cell::Cell::default();
}

/// A stream to the server at `endpoint`: one that an earlier connection of this process has left if there is one, otherwise
/// a new one.
///
/// A client without a password may be let in for its user's sake, whom the server was told when the stream was
/// dialled: it dials.
pub fn dial(endpoint: &Endpoint, options: &Options) -> io::Result<Box<dyn Stream>> {
    let patience = options.connect_timeout;
    if options.keeps_streams && !options.password.is_empty() {
        let mut knock = PacketWriter::new();
        knock.write(REUSE_REQUEST);
        if let Some(stream) = take_pooled(endpoint, knock.bytes(), patience) {
            return Ok(stream);
        }
    }
    connect_from(endpoint, options.bind_address, patience)
}

impl Connection {
    /// Connects to the server of a `mysql://` URL; see [`Options`].
    pub fn open(url: &str) -> Result<Self, Error> {
        Self::connect(&url.parse()?)
    }

    /// Connects and logs in.
    pub fn connect(options: &Options) -> Result<Self, Error> {
        if options.transport == Transport::Embedded {
            return Self::over(crate::embedded::open(options)?, options);
        }
        let mut refusal = None;
        for endpoint in options.endpoints()? {
            match dial(&endpoint, options) {
                Ok(stream) => return Self::over(stream, options),
                // Nobody there, or nobody who lets us in: the next way may be open.
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal
            .unwrap_or_else(|| io::ErrorKind::NotFound.into())
            .into())
    }

    /// Logs in over a stream that is there already.
    pub fn over(stream: Box<dyn Stream>, options: &Options) -> Result<Self, Error> {
        stream.set_read_timeout(options.connect_timeout)?;
        stream.set_write_timeout(options.write_timeout)?;
        let (mut reader, writer) = SPARE.take();
        reader.set_max_allowed_packet(options.max_allowed_packet);
        let mut connection = Self {
            stream,
            reader,
            writer,
            server: login::Server::default(),
            options: options.clone(),
            expected: VecDeque::new(),
            reading: Reading::Nothing,
            columns: Arc::default(),
            cells: Vec::new(),
            long: Vec::new(),
            outcome: Outcome::default(),
            broken: false,
            files: None,
        };
        login::greet(&mut connection)?;
        connection.stream.set_read_timeout(options.read_timeout)?;
        Ok(connection)
    }

    /// The server's version, as `SELECT VERSION()`.
    pub fn server_version(&self) -> &str {
        &self.server.version
    }

    /// The server's number for this connection, as `SELECT CONNECTION_ID()`.
    pub fn id(&self) -> u32 {
        self.server.connection_id
    }

    /// What both ends can do.
    pub fn capabilities(&self) -> Capabilities {
        self.server.capabilities
    }

    /// What the server can do, whether this client can or not.
    pub fn server_capabilities(&self) -> Capabilities {
        self.server.offered
    }

    /// The server's default collation, as its greeting told it.
    pub fn server_collation(&self) -> u8 {
        self.server.collation
    }

    /// The session's state, as the last reply told it.
    pub fn status(&self) -> Status {
        self.outcome.status
    }

    /// The way to the server.
    pub fn stream(&self) -> &dyn Stream {
        &*self.stream
    }

    /// How it was connected.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether an earlier error left it of no use.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Where files come from that the server asks for; without it LOAD DATA LOCAL INFILE fails. The server asks
    /// only clients that have [`Capabilities::LOCAL_FILES`] among their [`Options::capabilities`].
    pub fn set_file_source(&mut self, files: Option<FileSource>) {
        self.files = files;
    }

    /// What is being read now; a [`Results`] that was dropped goes on here.
    pub fn results(&mut self) -> Results<'_> {
        Results { connection: self }
    }

    // ── statements ──────────────────────────────────────────────────────────────────────────────

    /// Runs a statement for its effect; rows, if any, are skipped.
    pub fn run(&mut self, sql: impl AsRef<[u8]>) -> Result<Outcome, Error> {
        self.query(sql)?.finish()
    }

    /// Runs a statement and collects the rows of its first result.
    pub fn rows(&mut self, sql: impl AsRef<[u8]>) -> Result<Rows, Error> {
        let mut results = self.query(sql)?;
        let rows = results.rows()?;
        results.finish()?;
        Ok(rows)
    }

    /// Runs a statement, to read its results as they come.
    pub fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Results<'_>, Error> {
        self.settle()?;
        self.send_query(sql)?;
        self.receive()
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, sql: impl AsRef<[u8]>) -> Result<Statement, Error> {
        self.settle()?;
        self.put(&Command::StmtPrepare(sql.as_ref()));
        self.flush()?;
        let place = self.read_packet()?;
        let payload = self.reader.lent(place).payload;
        if let Some(error) = Self::protocol(&mut self.broken, ErrPacket::parse(payload))? {
            return Err(Error::from_server(error));
        }
        let prepared = Self::protocol(&mut self.broken, Prepared::parse(payload))?;
        let parameter_columns = Arc::new(self.read_definitions(prepared.parameters.into())?);
        let columns = Arc::new(self.read_definitions(prepared.columns.into())?);
        Ok(Statement {
            id: prepared.statement,
            parameters: prepared.parameters.into(),
            parameter_columns,
            columns,
            warnings: prepared.warnings,
        })
    }

    /// Executes a prepared statement.
    pub fn execute(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
    ) -> Result<Results<'_>, Error> {
        self.settle()?;
        self.send_execute(statement, parameters)?;
        self.receive()
    }

    /// Executes a prepared statement with a cursor: its rows come by [`fetch`](Self::fetch).
    pub fn execute_with_cursor(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
    ) -> Result<Results<'_>, Error> {
        self.settle()?;
        self.put_execute(statement, parameters, CursorFlags::READ_ONLY)?;
        self.receive()
    }

    /// Fetches up to `rows` rows from a statement's cursor. [`Status::LAST_ROW_SENT`] in the outcome says that
    /// there are no more.
    pub fn fetch(&mut self, statement: &Statement, rows: u32) -> Result<Results<'_>, Error> {
        self.settle()?;
        self.put(&Command::StmtFetch {
            statement: statement.id,
            rows,
        });
        self.expected
            .push_back(Expected::Fetched(Arc::clone(&statement.columns)));
        self.receive()
    }

    /// Appends to a parameter's value, for values too long for one packet. What the next execute gives for this
    /// parameter doesn't count.
    pub fn send_long(
        &mut self,
        statement: &Statement,
        parameter: u16,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.settle()?;
        self.put(&Command::StmtSendLongData {
            statement: statement.id,
            parameter,
            bytes,
        });
        let sent = (statement.id, usize::from(parameter));
        if !self.long.contains(&sent) {
            self.long.push(sent);
        }
        self.flush()
    }

    /// Closes a statement's cursor and forgets its long values.
    pub fn reset_statement(&mut self, statement: &Statement) -> Result<(), Error> {
        self.long.retain(|&(id, _)| id != statement.id);
        self.acknowledged(&Command::StmtReset(statement.id))
    }

    /// Tells the server to forget a statement, along with the next command.
    pub fn close_statement(&mut self, statement: Statement) {
        self.long.retain(|&(id, _)| id != statement.id);
        // No reply comes, so the order of replies is as it was.
        self.put(&Command::StmtClose(statement.id));
    }

    // ── pipelining ──────────────────────────────────────────────────────────────────────────────

    /// Appends a query to what is sent next. Replies come in the order of sending, one [`receive`](Self::receive) each.
    ///
    /// Any number may be under way. Replies that come while more is sent are kept in memory until they are received.
    pub fn send_query(&mut self, sql: impl AsRef<[u8]>) -> Result<(), Error> {
        self.usable()?;
        self.put(&Command::Query(Query {
            sql: sql.as_ref(),
            attributes: Default::default(),
        }));
        self.expected.push_back(Expected::Results { binary: false });
        Ok(())
    }

    /// Appends an execute to what is sent next; see [`send_query`](Self::send_query).
    pub fn send_execute(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
    ) -> Result<(), Error> {
        self.put_execute(statement, parameters, CursorFlags::empty())
    }

    fn put_execute(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
        cursor: CursorFlags,
    ) -> Result<(), Error> {
        self.usable()?;
        if parameters.len() != statement.parameters {
            return Err(Error::Options(format!(
                "{} parameters for a statement that has {}",
                parameters.len(),
                statement.parameters
            )));
        }
        let long = &self.long;
        write_execute(
            &mut self.writer,
            statement.id,
            cursor,
            parameters,
            |at| long.contains(&(statement.id, at)),
            self.server.capabilities,
        );
        self.long.retain(|&(id, _)| id != statement.id);
        self.expected.push_back(Expected::Results { binary: true });
        Ok(())
    }

    /// How many replies are still to be received.
    pub fn pending(&self) -> usize {
        self.expected.len()
    }

    /// Whether the next reply due has begun to come, so that [`receive`](Self::receive) waits for the rest of it at most. Sends first
    /// what isn't sent, and doesn't wait. Of a connection that has ended it is true: receiving tells why.
    ///
    /// A reply is to be read to its end before it is asked for the next one. [`Poll`](crate::Poll) waits.
    pub fn has_reply(&mut self) -> Result<bool, Error> {
        self.flush()?;
        Ok(self.pending() > 0 && (self.reader.has_packet() || self.take_in()))
    }

    /// Whether a reply is due, and nothing of it is there yet.
    #[inline]
    pub(crate) fn lacks_reply(&self) -> bool {
        !self.expected.is_empty() && !self.broken && !self.reader.has_packet()
    }

    pub(crate) fn stream_mut(&mut self) -> &mut dyn Stream {
        &mut *self.stream
    }

    /// Takes in what has come; true if this is a packet, or the end of the connection.
    pub(crate) fn take_in(&mut self) -> bool {
        match self.stream.try_read(self.reader.spare()) {
            Ok(count) => {
                self.reader.filled(count);
                count == 0 || self.reader.has_packet()
            }
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ),
        }
    }

    /// Sends what was appended.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.usable()?;
        if self.writer.is_empty() {
            return Ok(());
        }
        // Where one reply is due at most, the server takes everything before it answers.
        let sent = if self.expected.len() > 1 {
            self.send_while_receiving()
        } else {
            self.stream.write_all(self.writer.bytes())
        };
        let sent = sent.and_then(|()| self.stream.flush());
        self.writer.clear();
        self.broken_by(sent)
    }

    /// Sends what was appended, and takes in replies to what was sent before: a server whose replies nobody takes
    /// takes no more either.
    fn send_while_receiving(&mut self) -> io::Result<()> {
        let mut rest = self.writer.bytes();
        while !rest.is_empty() {
            let room = self.reader.spare();
            match self.stream.write_or_read(rest, room) {
                Ok((written, read)) => {
                    rest = &rest[written..];
                    self.reader.filled(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next reply due, over what wasn't read of the one before. Sends first what isn't sent.
    pub fn receive(&mut self) -> Result<Results<'_>, Error> {
        self.flush()?;
        while self.next_result()? {}
        let expected = self
            .expected
            .pop_front()
            .ok_or(Error::Unsupported("receiving a reply to nothing"))?;
        match expected {
            Expected::Results { binary } => {
                self.reading = Reading::Result { binary };
                self.next_result()?;
            }
            Expected::Fetched(columns) => {
                self.columns = columns;
                self.reading = Reading::Rows { binary: true };
            }
            Expected::FieldList => self.read_field_list()?,
            Expected::Acknowledgement => {
                self.read_acknowledgement()?;
                self.clear_columns();
            }
        }
        Ok(Results { connection: self })
    }

    // ── the session ─────────────────────────────────────────────────────────────────────────────

    /// Asks for a sign of life.
    pub fn ping(&mut self) -> Result<(), Error> {
        self.acknowledged(&Command::Ping)
    }

    /// Makes `database` the current one.
    pub fn init_db(&mut self, database: &str) -> Result<(), Error> {
        self.acknowledged(&Command::InitDb(database.as_bytes()))
    }

    /// Makes the session as new: no transaction, no prepared statements, variables at their defaults.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.acknowledged(&Command::ResetConnection)
    }

    /// Lets a query hold several statements, or not.
    pub fn set_multi_statements(&mut self, on: bool) -> Result<(), Error> {
        self.acknowledged(&Command::SetMultiStatements(on))
    }

    /// Kills the connection of this number.
    pub fn kill(&mut self, connection: u32) -> Result<(), Error> {
        self.acknowledged(&Command::ProcessKill(connection))
    }

    /// Asks the server to end.
    pub fn shut_down_server(&mut self) -> Result<(), Error> {
        self.acknowledged(&Command::Shutdown)
    }

    /// Has the server flush or reload what the bits (`REFRESH_…`) say.
    pub fn refresh(&mut self, what: u8) -> Result<(), Error> {
        self.acknowledged(&Command::Refresh(what))
    }

    /// Asks the server to write debug facts to its log.
    pub fn debug(&mut self) -> Result<(), Error> {
        self.acknowledged(&Command::Debug)
    }

    /// A line of the server's figures.
    pub fn statistics(&mut self) -> Result<String, Error> {
        self.settle()?;
        self.put(&Command::Statistics);
        self.flush()?;
        let place = self.read_packet()?;
        let payload = self.reader.lent(place).payload;
        if let Some(error) = Self::protocol(&mut self.broken, ErrPacket::parse(payload))? {
            return Err(Error::from_server(error));
        }
        Ok(String::from_utf8_lossy(payload).into_owned())
    }

    /// The columns of a table whose names match a LIKE pattern, empty for all; with their defaults.
    pub fn field_list(&mut self, table: &str, pattern: &str) -> Result<Columns, Error> {
        self.settle()?;
        if table.contains('\0') {
            return Err(Error::Options("a table's name holds a zero byte".into()));
        }
        self.put(&Command::FieldList {
            table: table.as_bytes(),
            pattern: pattern.as_bytes(),
        });
        self.expected.push_back(Expected::FieldList);
        self.receive()?;
        Ok((*self.columns).clone())
    }

    /// Logs in again, as another user or with another database; the session is as new.
    pub fn change_user(
        &mut self,
        user: &str,
        password: &str,
        database: Option<&str>,
    ) -> Result<(), Error> {
        self.settle()?;
        let mut options = self.options.clone();
        options.user = user.into();
        options.password = password.into();
        options.database = database.map(str::to_owned);
        login::change_user(self, &options)?;
        self.options = options;
        Ok(())
    }

    /// Takes leave of the server. A connection that is dropped does so too.
    pub fn close(mut self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Error> {
        if self.broken {
            return Ok(());
        }
        let is_settled = self.expected.is_empty() && self.reading == Reading::Nothing;
        self.put(&Command::Quit);
        let sent = self.flush();
        self.broken = true;
        let stream = std::mem::replace(&mut self.stream, Box::new(ClosedStream));
        if is_settled && sent.is_ok() && self.options.keeps_streams && !self.reader.is_mid_packet()
        {
            stream.return_to_pool();
        }
        let (mut reader, mut writer) = (
            std::mem::take(&mut self.reader),
            std::mem::take(&mut self.writer),
        );
        reader.clear();
        writer.clear();
        if reader.capacity() <= SPARE_BYTES_MAX {
            // A thread that ends needs them no more.
            let _ = SPARE.try_with(|spare| spare.set((reader, writer)));
        }
        sent
    }

    // ── sending and reading ─────────────────────────────────────────────────────────────────────

    fn put(&mut self, command: &Command<'_>) {
        command.write(&mut self.writer, self.server.capabilities);
    }

    fn acknowledged(&mut self, command: &Command<'_>) -> Result<(), Error> {
        self.settle()?;
        self.put(command);
        self.expected.push_back(Expected::Acknowledgement);
        self.receive()?;
        Ok(())
    }

    fn usable(&self) -> Result<(), Error> {
        if self.broken {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Reads what is left of every reply that is due, as nobody asked for it. The errors of those statements were
    /// for whoever didn't read them.
    fn settle(&mut self) -> Result<(), Error> {
        self.usable()?;
        loop {
            let settled = if self.reading != Reading::Nothing {
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

    fn broken_by<T>(&mut self, result: io::Result<T>) -> Result<T, Error> {
        if result.is_err() {
            self.broken = true;
        }
        Ok(result?)
    }

    /// Everything that is still to be sent and read goes over another stream. Returns the one so far.
    pub(crate) fn go_on_over(&mut self, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, Error> {
        stream.set_read_timeout(self.options.connect_timeout)?;
        stream.set_write_timeout(self.options.write_timeout)?;
        Ok(std::mem::replace(&mut self.stream, stream))
    }

    pub(crate) fn writer(&mut self) -> &mut PacketWriter {
        &mut self.writer
    }

    pub(crate) fn packet(&self, place: PacketPlace) -> porpoise_protocol::frame::Packet<'_> {
        self.reader.lent(place)
    }

    /// Waits for a packet.
    #[inline]
    pub(crate) fn read_packet(&mut self) -> Result<PacketPlace, Error> {
        self.usable()?;
        loop {
            match self.reader.take_packet() {
                Ok(Some(place)) => return Ok(place),
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
    fn protocol<T>(
        broken: &mut bool,
        result: Result<T, porpoise_protocol::Error>,
    ) -> Result<T, Error> {
        if result.is_err() {
            *broken = true;
        }
        Ok(result?)
    }

    fn clear_columns(&mut self) {
        match Arc::get_mut(&mut self.columns) {
            Some(columns) => columns.clear(),
            None => self.columns = Arc::default(),
        }
    }

    /// Reads `count` definitions into `columns`, and the EOF behind them.
    fn read_definitions_into(&mut self, columns: &mut Columns, count: usize) -> Result<(), Error> {
        for _ in 0..count {
            let place = self.read_packet()?;
            let pushed = columns.push(self.reader.lent(place).payload);
            if let Err(error) = pushed {
                self.broken = true;
                return Err(error);
            }
        }
        if count > 0 && column::has_eof_after_definitions(self.server.capabilities) {
            let place = self.read_packet()?;
            let ended = porpoise_protocol::reply::parse_end_of_rows(
                self.reader.lent(place).payload,
                self.server.capabilities,
            );
            self.outcome.status = Self::protocol(&mut self.broken, ended)?.status;
        }
        Ok(())
    }

    fn read_definitions(&mut self, count: usize) -> Result<Columns, Error> {
        let mut columns = Columns::default();
        self.read_definitions_into(&mut columns, count)?;
        Ok(columns)
    }

    fn read_field_list(&mut self) -> Result<(), Error> {
        let mut columns = Columns::default();
        loop {
            let place = self.read_packet()?;
            let payload = self.reader.lent(place).payload;
            let reply = RowReply::parse(payload, self.server.capabilities);
            match Self::protocol(&mut self.broken, reply)? {
                RowReply::Row(definition) => columns.push(definition)?,
                RowReply::End(end) => {
                    self.outcome.set(&end);
                    self.columns = Arc::new(columns);
                    return Ok(());
                }
                RowReply::Err(error) => return Err(Error::from_server(error)),
            }
        }
    }

    fn read_acknowledgement(&mut self) -> Result<(), Error> {
        let place = self.read_packet()?;
        let capabilities = self.server.capabilities;
        let payload = self.reader.lent(place).payload;
        // Some acknowledgements are EOF packets, which are shorter than an OK that begins with the same byte.
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

    pub(crate) fn set_outcome(&mut self, packet: PacketPlace) -> Result<(), Error> {
        let ok = OkPacket::parse(self.reader.lent(packet).payload, self.server.capabilities);
        self.outcome.set(&Self::protocol(&mut self.broken, ok)?);
        Ok(())
    }

    fn read_further(&mut self, binary: bool) {
        self.reading = if self.outcome.status.contains(Status::MORE_RESULTS_EXISTS) {
            Reading::Result { binary }
        } else {
            Reading::Nothing
        };
    }

    /// Skips to the end of the result being read, then reads the head of the next one, if there is one.
    pub(crate) fn next_result(&mut self) -> Result<bool, Error> {
        while let Reading::Rows { .. } = self.reading {
            self.take_row()?;
        }
        let Reading::Result { binary } = self.reading else {
            return Ok(false);
        };
        self.reading = Reading::Nothing;
        let place = self.read_packet()?;
        let payload = self.reader.lent(place).payload;
        let first = FirstReply::parse(payload, self.server.capabilities);
        match Self::protocol(&mut self.broken, first)? {
            FirstReply::Ok(ok) => {
                self.outcome.set(&ok);
                self.clear_columns();
                self.read_further(binary);
            }
            FirstReply::Err(error) => return Err(Error::from_server(error)),
            FirstReply::LocalInfile(name) => {
                let name = name.to_vec();
                let sequence = self.reader.lent(place).sequence.wrapping_add(1);
                let given = self.send_file(&name, sequence);
                self.flush()?;
                let stored = self.read_acknowledgement();
                self.clear_columns();
                given?;
                stored?;
                self.read_further(binary);
            }
            FirstReply::Columns(count) => {
                // In the memory of the last ones, unless somebody has those still.
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
                    Reading::Nothing
                } else {
                    Reading::Rows { binary }
                };
            }
        }
        Ok(true)
    }

    /// Sends a file piece by piece, and the empty packet that ends it. A file that couldn't be read is cut short.
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

    /// Takes a packet among rows: where the row lies, or nothing at their end.
    #[inline]
    fn take_row(&mut self) -> Result<Option<PacketPlace>, Error> {
        let Reading::Rows { binary } = self.reading else {
            return Ok(None);
        };
        let place = self.read_packet()?;
        let payload = self.reader.lent(place).payload;
        let reply = RowReply::parse(payload, self.server.capabilities);
        match Self::protocol(&mut self.broken, reply)? {
            RowReply::Row(_) => Ok(Some(place)),
            RowReply::End(end) => {
                self.outcome.set(&end);
                self.read_further(binary);
                Ok(None)
            }
            RowReply::Err(error) => {
                self.reading = Reading::Nothing;
                Err(Error::from_server(error))
            }
        }
    }

    #[inline]
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        let Reading::Rows { binary } = self.reading else {
            return Ok(None);
        };
        let Some(place) = self.take_row()? else {
            return Ok(None);
        };
        let bytes = self.reader.lent(place).payload;
        self.cells.clear();
        let laid_out = lay_out(bytes, 0, &self.columns, binary, &mut self.cells);
        Self::protocol(&mut self.broken, laid_out)?;
        Ok(Some(Row {
            bytes,
            cells: &self.cells,
            columns: &self.columns,
            form: Wire { binary },
        }))
    }

    pub(crate) fn collect_rows(&mut self) -> Result<Rows, Error> {
        let mut rows = Rows::default();
        self.collect_rows_into(&mut rows)?;
        Ok(rows)
    }

    pub(crate) fn collect_rows_into(&mut self, rows: &mut Rows) -> Result<(), Error> {
        self.begin_rows(rows);
        while self.collect_next(rows)? {}
        Ok(())
    }

    pub(crate) fn collect_row_into(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        self.begin_rows(rows);
        self.collect_next(rows)
    }

    fn begin_rows(&self, rows: &mut Rows) {
        rows.forget();
        if !Arc::ptr_eq(&rows.columns, &self.columns) {
            rows.columns = Arc::clone(&self.columns);
        }
        rows.form = Wire {
            binary: matches!(self.reading, Reading::Rows { binary: true }),
        };
    }

    fn collect_next(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        let Some(place) = self.take_row()? else {
            rows.end(self.outcome.clone());
            return Ok(false);
        };
        let payload = self.reader.lent(place).payload;
        let laid_out = lay_out(
            payload,
            rows.bytes.len(),
            &rows.columns,
            rows.form.binary,
            &mut rows.cells,
        );
        Self::protocol(&mut self.broken, laid_out)?;
        rows.put_bytes(payload);
        rows.end_row();
        Ok(true)
    }
}

impl AsMut<Connection> for Connection {
    fn as_mut(&mut self) -> &mut Connection {
        self
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Whether the server hears it or sees the stream end makes no difference to it.
        let _ = self.leave();
    }
}
