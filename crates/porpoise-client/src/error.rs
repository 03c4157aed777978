//! Why a call failed.

use porpoise_protocol::reply::ErrPacket;
use std::fmt;
use std::io;

/// Why a call failed.
#[derive(Debug)]
pub enum Error {
    /// The server refused the statement; the connection is as good as before.
    Server {
        /// MySQL's error number.
        number: u16,
        /// SQLSTATE.
        sqlstate: [u8; 5],
        /// The server's words.
        message: String,
    },
    /// The server couldn't be reached, or the connection broke.
    Io(io::Error),
    /// The server sent what the protocol doesn't allow; the connection is of no use.
    Protocol(porpoise_protocol::Error),
    /// The connection broke in an earlier call, or was closed.
    Closed,
    /// No encrypted connection came about (MySQL's error 2026): why, in MySQL's words where it has
    /// any.
    Tls(String),
    /// The server offers no way of compressing that the options permit, or they name one that there
    /// isn't (MySQL's error 2066).
    Compression,
    /// Options or a URL that can't be.
    Options(String),
    /// A value isn't of the type asked for, or there is no such column.
    Value {
        /// The column, from 0.
        column: usize,
        /// The Rust type asked for.
        wanted: &'static str,
    },
    /// There is no column of this name.
    NoColumn(String),
    /// The server asks for something that this client doesn't do.
    Unsupported(&'static str),
}

impl Error {
    /// The server's error number, if it was the server that refused; MySQL's number for connections
    /// that can't be encrypted or compressed.
    pub fn number(&self) -> Option<u16> {
        match self {
            Self::Server { number, .. } => Some(*number),
            Self::Tls(_) => Some(2026),
            Self::Compression => Some(2066),
            _ => None,
        }
    }

    /// Whether the connection is of no use after it.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Io(_) | Self::Protocol(_) | Self::Closed | Self::Tls(_)
        )
    }

    pub(crate) fn from_server(packet: ErrPacket<'_>) -> Self {
        Self::Server {
            number: packet.number,
            sqlstate: packet.sqlstate,
            message: String::from_utf8_lossy(packet.message).into_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server {
                number,
                sqlstate,
                message,
            } => write!(
                formatter,
                "ERROR {number} ({}): {message}",
                String::from_utf8_lossy(sqlstate)
            ),
            // What a blocking socket says at the end of its timeout.
            Self::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                formatter.write_str("connection: timed out")
            }
            Self::Io(error) => write!(formatter, "connection: {error}"),
            Self::Protocol(error) => write!(formatter, "protocol: {error}"),
            Self::Closed => formatter.write_str("the connection is closed"),
            Self::Tls(why) => write!(formatter, "ERROR 2026 (HY000): SSL connection error: {why}"),
            Self::Compression => formatter.write_str(
                "ERROR 2066 (HY000): Connection failed due to wrongly configured compression algorithm",
            ),
            Self::Options(what) => write!(formatter, "options: {what}"),
            Self::Value { column, wanted } => {
                write!(formatter, "column {column} has no value of type {wanted}")
            }
            Self::NoColumn(name) => write!(formatter, "there is no column '{name}'"),
            Self::Unsupported(what) => write!(formatter, "unsupported: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Protocol(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    /// What a stream that decrypts or decompresses found wrong is told as such.
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref()) {
            return Self::Protocol(*error);
        }
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::Tls(error.to_string());
        }
        Self::Io(error)
    }
}

impl From<porpoise_protocol::Error> for Error {
    fn from(error: porpoise_protocol::Error) -> Self {
        Self::Protocol(error)
    }
}
