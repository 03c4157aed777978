//! One connection, in the MySQL text protocol. It shares no code with Porpoise's own client and
//! server, so that a mistake which both make can't hide.
//!
//! ```text
//! greeting ─► login (mysql_native_password) ─► OK
//! COM_QUERY ─► OK | error | columns, rows   (and further results, if the server announces them)
//! ```

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use porpoise_transport::SharedMemory;
use sha1::{Digest, Sha1};

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// A port on 127.0.0.1.
    Tcp(u16),
    /// The path of the socket where shared memory is offered.
    SharedMemory(PathBuf),
}

impl Address {
    /// Connects, without logging in. Reads fail after 30 s of silence.
    ///
    /// # Errors
    /// Of the system; over shared memory also when the server offers none.
    pub fn dial(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                Box::new(stream)
            }
            Address::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SILENCE_MAX))?;
                Box::new(stream)
            }
            Address::SharedMemory(path) => {
                let socket = UnixStream::connect(path)?;
                let stream = SharedMemory::accept(socket, Some(SILENCE_MAX))?;
                porpoise_transport::Stream::set_read_timeout(&stream, Some(SILENCE_MAX))?;
                Box::new(stream)
            }
        })
    }
}

/// The result of a statement that has not failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An OK packet.
    Done {
        /// The affected rows.
        affected: u64,
    },
    /// A result set.
    Rows {
        /// Its columns.
        columns: Vec<Column>,
        /// Its rows: the bytes of each value, `None` for NULL.
        rows: Vec<Vec<Option<Vec<u8>>>>,
    },
}

/// The part of a column's definition that tests look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the result.
    pub name: String,
    /// The protocol's type byte (`MYSQL_TYPE_…`).
    pub type_code: u8,
}

/// A refusal by the server, or the connection's end.
#[derive(Debug)]
pub enum Error {
    /// An error packet.
    Server {
        /// MySQL's error number.
        number: u16,
        /// Five characters; `HY000` where the packet has none.
        sqlstate: String,
        /// The message.
        message: String,
    },
    /// The connection broke, or the server broke the protocol.
    Connection(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Server {
                number,
                sqlstate,
                message,
            } => write!(f, "ERROR {number} ({sqlstate}): {message}"),
            Error::Connection(e) => write!(f, "connection lost: {e}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        Error::Connection(e)
    }
}

/// The bytes to a server and back.
pub trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send + ?Sized> Stream for S {}

/// A logged-in connection.
pub struct Wire {
    stream: Box<dyn Stream>,
    sequence: u8,
    /// The server's id of this connection, as `CONNECTION_ID()` tells it.
    pub id: u32,
    /// It has failed: nothing more is sent on it.
    lost: bool,
}

const PACKET_MAX: usize = 0xff_ff_ff;
/// A server that sends nothing for so long hangs: the test fails instead of waiting on.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const MORE_RESULTS: u16 = 8;
const NONCE_BYTES: usize = 20;
const NATIVE_PASSWORD: &[u8] = b"mysql_native_password";
const CAPABILITIES: u32 = 0x1 // LONG_PASSWORD
    | 0x4 // LONG_FLAG
    | 0x8 // CONNECT_WITH_DB
    | 0x200 // PROTOCOL_41
    | 0x2000 // TRANSACTIONS
    | 0x8000 // SECURE_CONNECTION
    | 0x2_0000 // MULTI_RESULTS
    | 0x8_0000; // PLUGIN_AUTH

impl Wire {
    /// Logs in as `user`, whose password may be empty. `collation` is the number of the handshake's
    /// character set.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn connect(
        address: &Address,
        (user, password): (&str, &str),
        database: &str,
        collation: u8,
    ) -> Result<Wire, Error> {
        Wire::over(address.dial()?, (user, password), database, collation)
    }

    /// Logs in over a stream that is connected already.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn over(
        stream: Box<dyn Stream>,
        (user, password): (&str, &str),
        database: &str,
        collation: u8,
    ) -> Result<Wire, Error> {
        let mut wire = Wire {
            stream,
            sequence: 0,
            id: 0,
            lost: false,
        };
        let greeting = wire.receive()?;
        let mut cursor = Cursor(&greeting);
        if cursor.byte()? == 0xff {
            return Err(refusal(&greeting));
        }
        cursor.until_zero()?;
        wire.id = cursor.int(4)? as u32;
        let mut nonce = cursor.take(8)?.to_vec();
        // The end of the nonce's first part, capabilities, character set, status, the rest of the
        // capabilities, the nonce's length, reserved bytes.
        cursor.take(1 + 2 + 1 + 2 + 2 + 1 + 10)?;
        nonce.extend(cursor.take(NONCE_BYTES - 8)?);
        let response = native_password_response(password, &nonce);

        let mut login = Vec::new();
        login.extend(CAPABILITIES.to_le_bytes());
        login.extend((PACKET_MAX as u32 + 1).to_le_bytes());
        login.push(collation);
        login.extend([0; 23]);
        login.extend(user.as_bytes());
        login.extend([0, response.len() as u8]);
        login.extend(&response);
        login.extend(database.as_bytes());
        login.push(0);
        login.extend(NATIVE_PASSWORD);
        login.push(0);
        wire.send(&login)?;
        loop {
            let packet = wire.receive()?;
            match packet.first() {
                Some(0x00) => return Ok(wire),
                Some(0xfe) => {
                    let mut cursor = Cursor(&packet[1..]);
                    let plugin = cursor.until_zero()?;
                    if plugin != NATIVE_PASSWORD && !password.is_empty() {
                        return Err(
                            io::Error::other("the tests' accounts have native passwords").into(),
                        );
                    }
                    let nonce = cursor.take(NONCE_BYTES).unwrap_or_default();
                    wire.send(&native_password_response(password, nonce))?;
                }
                Some(0x01) => {}
                _ => return Err(refusal(&packet)),
            }
        }
    }

    /// Runs one text and returns the result of its first statement.
    ///
    /// # Errors
    /// The server's refusal of any of its statements, or a broken connection.
    pub fn query(&mut self, sql: &str) -> Result<Reply, Error> {
        self.query_bytes(sql.as_bytes())
    }

    /// As [`query`](Self::query), of a text in any encoding.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_bytes(&mut self, sql: &[u8]) -> Result<Reply, Error> {
        if self.lost {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        }
        let reply = self.converse(sql);
        self.lost = matches!(reply, Err(Error::Connection(_)));
        reply
    }

    /// Runs a statement, and returns the last value of its first row as text: of a SELECT of one
    /// expression its value, of SHOW STATUS or SHOW VARIABLES the value of the first line.
    ///
    /// # Panics
    /// When the statement fails, has no rows, or the value is NULL or no text.
    #[track_caller]
    pub fn value(&mut self, sql: &str) -> String {
        match self.query(sql) {
            Ok(Reply::Rows { rows, .. }) => {
                let value = rows.first().and_then(|row| row.last()?.clone());
                let value = value.unwrap_or_else(|| panic!("{sql}: no value in {rows:?}"));
                String::from_utf8(value).unwrap_or_else(|error| panic!("{sql}: {error}"))
            }
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// As [`value`](Self::value), as a number.
    ///
    /// # Panics
    /// As `value`, and when it is no number.
    #[track_caller]
    pub fn number(&mut self, sql: &str) -> u64 {
        let value = self.value(sql);
        let number = value.parse();
        number.unwrap_or_else(|error| panic!("{sql}: {value}: {error}"))
    }

    /// COM_QUIT. Returns when the server has closed its end of the connection.
    ///
    /// # Errors
    /// A broken connection, or one on which more than the end comes.
    pub fn quit(mut self) -> io::Result<()> {
        self.sequence = 0;
        self.send(&[0x01])?;
        match self.stream.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::other("the server answers COM_QUIT")),
        }
    }

    /// COM_RESET_CONNECTION.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.command(&[0x1f])
    }

    /// COM_CHANGE_USER, to a user without a password.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn change_user(&mut self, user: &str, database: &str, collation: u16) -> Result<(), Error> {
        let mut command = vec![0x11];
        command.extend(user.as_bytes());
        // The name's end, and an authentication response of no bytes.
        command.extend([0, 0]);
        command.extend(database.as_bytes());
        command.push(0);
        command.extend(collation.to_le_bytes());
        command.extend(NATIVE_PASSWORD);
        command.push(0);
        self.command(&command)
    }

    /// A command that the server answers with OK, maybe after a request for an authentication
    /// response, which is empty.
    fn command(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.sequence = 0;
        self.send(payload)?;
        loop {
            let packet = self.receive()?;
            match packet.first() {
                Some(0x00) => return Ok(()),
                Some(0xfe) => self.send(&[])?,
                Some(0x01) => {}
                _ => return Err(refusal(&packet)),
            }
        }
    }

    fn converse(&mut self, sql: &[u8]) -> Result<Reply, Error> {
        self.sequence = 0;
        let mut command = vec![3];
        command.extend(sql);
        self.send(&command)?;
        let mut first = None;
        loop {
            let (reply, status) = self.reply()?;
            first.get_or_insert(reply);
            if status & MORE_RESULTS == 0 {
                return Ok(first.expect("a reply was just kept"));
            }
        }
    }

    fn reply(&mut self) -> Result<(Reply, u16), Error> {
        let packet = self.receive()?;
        let mut cursor = Cursor(&packet);
        match packet.first() {
            Some(0x00) => {
                cursor.byte()?;
                let affected = cursor.length()?.unwrap_or(0);
                cursor.length()?;
                Ok((Reply::Done { affected }, cursor.int(2)? as u16))
            }
            Some(0xff) => Err(refusal(&packet)),
            _ => {
                let count = cursor.length()?.unwrap_or(0);
                let columns = (0..count)
                    .map(|_| self.column())
                    .collect::<Result<Vec<_>, _>>()?;
                self.receive()?; // the end of the columns
                let mut rows = Vec::new();
                loop {
                    let packet = self.receive()?;
                    match packet.first() {
                        Some(0xff) => return Err(refusal(&packet)),
                        Some(0xfe) if packet.len() < 9 => {
                            let status = Cursor(packet.get(3..).unwrap_or(&[])).int(2)?;
                            return Ok((Reply::Rows { columns, rows }, status as u16));
                        }
                        _ => {}
                    }
                    let mut cursor = Cursor(&packet);
                    rows.push(
                        (0..count)
                            .map(|_| cursor.value())
                            .collect::<Result<Vec<_>, _>>()?,
                    );
                }
            }
        }
    }

    fn column(&mut self) -> Result<Column, Error> {
        let packet = self.receive()?;
        let mut cursor = Cursor(&packet);
        for _ in 0..4 {
            cursor.value()?; // catalog, schema, table, original table
        }
        let name = cursor.value()?.unwrap_or_default();
        cursor.value()?; // original name
        cursor.length()?;
        cursor.int(6)?; // collation, display length
        let type_code = cursor.byte()?;
        Ok(Column {
            name: String::from_utf8_lossy(&name).into_owned(),
            type_code,
        })
    }

    fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut rest = payload;
        loop {
            let part = &rest[..rest.len().min(PACKET_MAX)];
            let mut packet = (part.len() as u32).to_le_bytes()[..3].to_vec();
            packet.push(self.sequence);
            packet.extend(part);
            self.stream.write_all(&packet)?;
            self.sequence = self.sequence.wrapping_add(1);
            rest = &rest[part.len()..];
            if part.len() < PACKET_MAX {
                return Ok(());
            }
        }
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            if header[3] != self.sequence {
                return Err(io::Error::other(format!(
                    "packet {} came instead of {}",
                    header[3], self.sequence
                )));
            }
            self.sequence = self.sequence.wrapping_add(1);
            let start = payload.len();
            payload.resize(start + length, 0);
            self.stream.read_exact(&mut payload[start..])?;
            if length < PACKET_MAX {
                return Ok(payload);
            }
        }
    }
}

fn refusal(packet: &[u8]) -> Error {
    let mut cursor = Cursor(packet.get(1..).unwrap_or(&[]));
    let number = cursor.int(2).unwrap_or(0) as u16;
    let text = String::from_utf8_lossy(cursor.0).into_owned();
    match text.strip_prefix('#').and_then(|t| t.split_at_checked(5)) {
        Some((sqlstate, message)) => Error::Server {
            number,
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
        },
        None => Error::Server {
            number,
            sqlstate: "HY000".to_owned(),
            message: text,
        },
    }
}

/// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))); nothing for an empty password, whatever
/// the plugin.
fn native_password_response(password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let mask = Sha1::new()
        .chain_update(nonce)
        .chain_update(Sha1::digest(once))
        .finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// The rest of a packet.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| io::Error::other("a packet ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn int(&mut self, bytes: usize) -> io::Result<u64> {
        Ok(self
            .take(bytes)?
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn until_zero(&mut self) -> io::Result<&'a [u8]> {
        let end = self
            .0
            .iter()
            .position(|b| *b == 0)
            .ok_or_else(|| io::Error::other("a name has no end"))?;
        let name = self.take(end)?;
        self.byte()?;
        Ok(name)
    }

    /// A length-encoded integer; `None` is the byte that stands for NULL.
    fn length(&mut self) -> io::Result<Option<u64>> {
        Ok(match self.byte()? {
            0xfb => None,
            0xfc => Some(self.int(2)?),
            0xfd => Some(self.int(3)?),
            0xfe => Some(self.int(8)?),
            small => Some(u64::from(small)),
        })
    }

    fn value(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.length()? {
            None => Ok(None),
            Some(length) => Ok(Some(self.take(length as usize)?.to_vec())),
        }
    }
}
