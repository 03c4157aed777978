//! A connection: commands out, replies in, in the same order.
//!
//! ```text
//!  send_query ──► writer ──flush──► stream ──► reader ──► receive: head of a reply
//!      │                                                    │
//!      └─────► expected: what kind of reply is due ─────────┴─► rows …, next result …
//! ```
//!
//! Every command appends to the writer and records in `expected` what its reply will look like;
//! `receive` takes the oldest record. So pipelining works as everything else does, without waiting
//! in between.

use crate::results::{Cell, Columns, Results, Rows};
use crate::{Error, Options, TlsSession, Transport, login};
use porpoise_protocol::command::{Command, Query};
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::{Capabilities, CursorFlags, Status};
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_protocol::handshake::REUSE_REQUEST;
use porpoise_protocol::reply::ErrPacket;
use porpoise_protocol::statement::{PrepareOk, write_execute};
use porpoise_protocol::value::Value;
use porpoise_transport::{ClosedStream, Endpoint, Stream, connect_from, take_pooled};
use std::cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

mod replies;
mod statement;

pub use statement::{Outcome, Statement};

/// Gives the content of a file that a server asks for (LOAD DATA LOCAL INFILE): called with the
/// file's name and a function that takes the content piece by piece. An error ends the statement
/// and is what its caller gets.
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
enum ReadState {
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
    reading: ReadState,
    columns: Arc<Columns>,
    cells: Vec<Cell>,
    /// Statements and parameters whose values were sent as long data.
    long: Vec<(u32, usize)>,
    outcome: Outcome,
    /// After an I/O or protocol error: where the next reply begins can't be known.
    broken: bool,
    files: Option<FileSource>,
    tls: Option<TlsSession>,
    compression: Option<Algorithm>,
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

/// Readers that hold more memory than this aren't kept.
const RECYCLED_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The buffers of the connection that this thread closed last, for the next one.
    static RECYCLED_BUFFERS: cell::Cell<(PacketReader, PacketWriter)> = cell::Cell::default();
}

/// A stream to the server at `endpoint`: one that an earlier connection of this process has left if
/// there is one, otherwise a new one.
///
/// A client without a password may be let in because of its operating system's user, which the
/// server learns when a stream is connected: it gets a new one.
///
/// # Errors
/// If the server can't be reached within `connect_timeout`.
pub fn connect_stream(endpoint: &Endpoint, options: &Options) -> io::Result<Box<dyn Stream>> {
    let timeout = options.connect_timeout;
    if options.reuse_streams && !options.password.is_empty() {
        let mut request = PacketWriter::new();
        request.write(REUSE_REQUEST);
        if let Some(stream) = take_pooled(endpoint, request.bytes(), timeout) {
            return Ok(stream);
        }
    }
    connect_from(endpoint, options.bind_address, timeout)
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
            match connect_stream(&endpoint, options) {
                Ok(stream) => return Self::over(stream, options),
                // The server isn't there, or refuses: the next endpoint is tried.
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal
            .unwrap_or_else(|| io::ErrorKind::NotFound.into())
            .into())
    }

    /// Logs in over a stream that is connected already.
    pub fn over(stream: Box<dyn Stream>, options: &Options) -> Result<Self, Error> {
        stream.set_read_timeout(options.connect_timeout)?;
        stream.set_write_timeout(options.write_timeout)?;
        let (mut reader, writer) = RECYCLED_BUFFERS.take();
        reader.set_max_allowed_packet(options.max_allowed_packet);
        let mut connection = Self {
            stream,
            reader,
            writer,
            server: login::Server::default(),
            options: options.clone(),
            expected: VecDeque::new(),
            reading: ReadState::Nothing,
            columns: Arc::default(),
            cells: Vec::new(),
            long: Vec::new(),
            outcome: Outcome::default(),
            broken: false,
            files: None,
            tls: None,
            compression: None,
        };
        login::log_in(&mut connection)?;
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

    /// The server's default collation, from its greeting.
    pub fn server_collation(&self) -> u8 {
        self.server.collation
    }

    /// The session's state, from the last reply.
    pub fn status(&self) -> Status {
        self.outcome.status
    }

    /// The way to the server.
    pub fn stream(&self) -> &dyn Stream {
        &*self.stream
    }

    /// What it is encrypted with; `None` if it isn't.
    pub fn tls(&self) -> Option<&TlsSession> {
        self.tls.as_ref()
    }

    /// What it is compressed with; `None` if it isn't.
    pub fn compression(&self) -> Option<Algorithm> {
        self.compression
    }

    /// How it was connected.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether an earlier error has made it unusable.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Sets where files come from that the server asks for; without it LOAD DATA LOCAL INFILE
    /// fails. The server asks only clients that have [`Capabilities::LOCAL_FILES`] among their
    /// [`Options::capabilities`].
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
        self.drain_replies()?;
        self.send_query(sql)?;
        self.receive()
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, sql: impl AsRef<[u8]>) -> Result<Statement, Error> {
        self.drain_replies()?;
        self.write_command(&Command::StmtPrepare(sql.as_ref()));
        self.flush()?;
        let packet = self.read_packet()?;
        let payload = self.reader.packet_at(packet).payload;
        if let Some(error) = Self::protocol(&mut self.broken, ErrPacket::parse(payload))? {
            return Err(Error::from_server(error));
        }
        let prepared = Self::protocol(&mut self.broken, PrepareOk::parse(payload))?;
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
        self.drain_replies()?;
        self.send_execute(statement, parameters)?;
        self.receive()
    }

    /// Executes a prepared statement with a cursor: its rows come by [`fetch`](Self::fetch).
    pub fn execute_with_cursor(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
    ) -> Result<Results<'_>, Error> {
        self.drain_replies()?;
        self.write_execute_command(statement, parameters, CursorFlags::READ_ONLY)?;
        self.receive()
    }

    /// Fetches up to `rows` rows from a statement's cursor. [`Status::LAST_ROW_SENT`] in the
    /// outcome says that there are no more.
    pub fn fetch(&mut self, statement: &Statement, rows: u32) -> Result<Results<'_>, Error> {
        self.drain_replies()?;
        self.write_command(&Command::StmtFetch {
            statement: statement.id,
            rows,
        });
        self.expected
            .push_back(Expected::Fetched(Arc::clone(&statement.columns)));
        self.receive()
    }

    /// Appends to a parameter's value, for values too long for one packet. What the next execute
    /// gives for this parameter doesn't count.
    pub fn send_long(
        &mut self,
        statement: &Statement,
        parameter: u16,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.drain_replies()?;
        self.write_command(&Command::StmtSendLongData {
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
        self.run_command(&Command::StmtReset(statement.id))
    }

    /// Tells the server to forget a statement, along with the next command.
    pub fn close_statement(&mut self, statement: Statement) {
        self.long.retain(|&(id, _)| id != statement.id);
        // No reply comes, so the order of replies is as it was.
        self.write_command(&Command::StmtClose(statement.id));
    }

    // ── pipelining ──────────────────────────────────────────────────────────────────────────────

    /// Appends a query to what is sent next. Replies come in the order of sending, one
    /// [`receive`](Self::receive) each.
    ///
    /// Any number may be under way. Replies that come while more is sent are kept in memory until
    /// they are received.
    pub fn send_query(&mut self, sql: impl AsRef<[u8]>) -> Result<(), Error> {
        self.check_open()?;
        self.write_command(&Command::Query(Query {
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
        self.write_execute_command(statement, parameters, CursorFlags::empty())
    }

    fn write_execute_command(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
        cursor: CursorFlags,
    ) -> Result<(), Error> {
        self.check_open()?;
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

    /// Whether the next reply due has begun to come, so that [`receive`](Self::receive) waits for
    /// the rest of it at most. Sends first what isn't sent, and doesn't wait. Of a connection that
    /// has ended it is true: receiving tells why.
    ///
    /// A reply is to be read to its end before it is asked for the next one. [`Poll`](crate::Poll)
    /// waits.
    pub fn has_reply(&mut self) -> Result<bool, Error> {
        self.flush()?;
        Ok(self.pending() > 0 && (self.reader.has_packet() || self.read_available()))
    }

    /// Whether a reply is due, and nothing of it is there yet.
    #[inline]
    pub(crate) fn awaits_reply(&self) -> bool {
        !self.expected.is_empty() && !self.broken && !self.reader.has_packet()
    }

    pub(crate) fn stream_mut(&mut self) -> &mut dyn Stream {
        &mut *self.stream
    }

    /// Takes in what has come; true if this is a packet, or the end of the connection.
    pub(crate) fn read_available(&mut self) -> bool {
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
        self.check_open()?;
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
        self.mark_broken_on_error(sent)
    }

    /// Sends what was appended, and takes in replies to what was sent before: a server whose
    /// replies nobody takes takes no more either.
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
                self.reading = ReadState::Result { binary };
                self.next_result()?;
            }
            Expected::Fetched(columns) => {
                self.columns = columns;
                self.reading = ReadState::Rows { binary: true };
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
        self.run_command(&Command::Ping)
    }

    /// Makes `database` the current one.
    pub fn init_db(&mut self, database: &str) -> Result<(), Error> {
        self.run_command(&Command::InitDb(database.as_bytes()))
    }

    /// Makes the session as new: no transaction, no prepared statements, variables at their
    /// defaults.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.run_command(&Command::ResetConnection)
    }

    /// Lets a query hold several statements, or not.
    pub fn set_multi_statements(&mut self, on: bool) -> Result<(), Error> {
        self.run_command(&Command::SetMultiStatements(on))
    }

    /// Kills the connection of this number.
    pub fn kill(&mut self, connection: u32) -> Result<(), Error> {
        self.run_command(&Command::ProcessKill(connection))
    }

    /// Asks the server to end.
    pub fn shut_down_server(&mut self) -> Result<(), Error> {
        self.run_command(&Command::Shutdown)
    }

    /// Has the server flush or reload what the bits (`REFRESH_…`) say.
    pub fn refresh(&mut self, what: u8) -> Result<(), Error> {
        self.run_command(&Command::Refresh(what))
    }

    /// Asks the server to write debug facts to its log.
    pub fn debug(&mut self) -> Result<(), Error> {
        self.run_command(&Command::Debug)
    }

    /// A line of the server's figures.
    pub fn statistics(&mut self) -> Result<String, Error> {
        self.drain_replies()?;
        self.write_command(&Command::Statistics);
        self.flush()?;
        let packet = self.read_packet()?;
        let payload = self.reader.packet_at(packet).payload;
        if let Some(error) = Self::protocol(&mut self.broken, ErrPacket::parse(payload))? {
            return Err(Error::from_server(error));
        }
        Ok(String::from_utf8_lossy(payload).into_owned())
    }

    /// The columns of a table whose names match a LIKE pattern, empty for all; with their defaults.
    pub fn field_list(&mut self, table: &str, pattern: &str) -> Result<Columns, Error> {
        self.drain_replies()?;
        if table.contains('\0') {
            return Err(Error::Options("a table's name holds a zero byte".into()));
        }
        self.write_command(&Command::FieldList {
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
        self.drain_replies()?;
        let mut options = self.options.clone();
        options.user = user.into();
        options.password = password.into();
        options.database = database.map(str::to_owned);
        login::change_user(self, &options)?;
        self.options = options;
        Ok(())
    }

    /// Sends COM_QUIT. A connection that is dropped does so too.
    pub fn close(mut self) -> Result<(), Error> {
        self.quit()
    }

    fn quit(&mut self) -> Result<(), Error> {
        if self.broken {
            return Ok(());
        }
        let is_settled = self.expected.is_empty() && self.reading == ReadState::Nothing;
        self.write_command(&Command::Quit);
        let sent = self.flush();
        self.broken = true;
        let stream = std::mem::replace(&mut self.stream, Box::new(ClosedStream));
        if is_settled && sent.is_ok() && self.options.reuse_streams && !self.reader.is_mid_packet()
        {
            stream.return_to_pool();
        }
        let (mut reader, mut writer) = (
            std::mem::take(&mut self.reader),
            std::mem::take(&mut self.writer),
        );
        reader.clear();
        writer.clear();
        if reader.capacity() <= RECYCLED_BYTES_MAX {
            // A thread that ends doesn't need them.
            let _ = RECYCLED_BUFFERS.try_with(|spare| spare.set((reader, writer)));
        }
        sent
    }
}

impl AsMut<Connection> for Connection {
    fn as_mut(&mut self) -> &mut Connection {
        self
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // To the server it makes no difference whether it reads COM_QUIT or sees the stream end.
        let _ = self.quit();
    }
}
