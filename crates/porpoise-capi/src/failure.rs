//! What went wrong, as C programs are told: a number, SQLSTATE and a message.
//!
//! Errors of the server pass through as they are. Those of this library have the numbers of
//! `errmsg.h` and the messages that programs and people know from the original, one a row of
//! [`MESSAGES`].

use porpoise_client::Error;
use std::borrow::Cow;
use std::io;

/// An error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub number: u32,
    pub sqlstate: [u8; 5],
    pub message: Cow<'static, str>,
}

pub const UNCOMPRESS: u32 = 1157;
pub const UNKNOWN: u32 = 2000;
pub const CONNECTION: u32 = 2002;
pub const UNKNOWN_HOST: u32 = 2005;
pub const SERVER_GONE: u32 = 2006;
pub const SERVER_LOST: u32 = 2013;
pub const COMMANDS_OUT_OF_SYNC: u32 = 2014;
pub const CANT_READ_CHARSET: u32 = 2019;
pub const PACKET_TOO_LARGE: u32 = 2020;
pub const SSL_CONNECTION: u32 = 2026;
pub const MALFORMED_PACKET: u32 = 2027;
pub const NO_PREPARED_STATEMENT: u32 = 2030;
pub const PARAMETERS_NOT_BOUND: u32 = 2031;
pub const INVALID_PARAMETER_NUMBER: u32 = 2034;
pub const INVALID_BUFFER_USE: u32 = 2035;
pub const UNSUPPORTED_PARAMETER_TYPE: u32 = 2036;
pub const SHARED_MEMORY: u32 = 2038;
pub const UNKNOWN_PROTOCOL: u32 = 2047;
pub const NO_DATA: u32 = 2051;
pub const NO_STATEMENT_METADATA: u32 = 2052;
pub const NOT_IMPLEMENTED: u32 = 2054;
pub const STATEMENT_CLOSED: u32 = 2056;
pub const ALREADY_CONNECTED: u32 = 2058;
pub const PLUGIN_CANNOT_LOAD: u32 = 2059;
pub const AUTHENTICATION_PLUGIN: u32 = 2061;
pub const COMPRESSION: u32 = 2066;
pub const FILE_NOT_FOUND: u32 = 5004;
pub const FILE_READ: u32 = 5005;
pub const INVALID_PARAMETER: u32 = 5009;

const MESSAGES: &[(u32, &str)] = &[
    (UNCOMPRESS, "Couldn't uncompress communication packet"),
    (UNKNOWN, "Unknown error"),
    (SERVER_GONE, "Server has gone away"),
    (SERVER_LOST, "Lost connection to server during query"),
    (
        COMMANDS_OUT_OF_SYNC,
        "Commands out of sync; you can't run this command now",
    ),
    (
        PACKET_TOO_LARGE,
        "Got packet bigger than 'max_allowed_packet' bytes",
    ),
    (MALFORMED_PACKET, "Malformed packet"),
    (NO_PREPARED_STATEMENT, "Statement is not prepared"),
    (
        PARAMETERS_NOT_BOUND,
        "No data supplied for parameters in prepared statement",
    ),
    (INVALID_PARAMETER_NUMBER, "Invalid parameter number"),
    (
        INVALID_BUFFER_USE,
        "Can't send long data for non-string or non-binary data types",
    ),
    (UNSUPPORTED_PARAMETER_TYPE, "Buffer type is not supported"),
    (NO_DATA, "Attempt to read column without prior row fetch"),
    (
        NO_STATEMENT_METADATA,
        "Prepared statement contains no metadata",
    ),
    (
        NOT_IMPLEMENTED,
        "This feature is not implemented or disabled",
    ),
    (
        STATEMENT_CLOSED,
        "The statement was closed or its connection was reset",
    ),
    (
        ALREADY_CONNECTED,
        "This handle is already connected. Use a separate handle for each connection.",
    ),
    (
        COMPRESSION,
        "Connection failed due to wrongly configured compression algorithm",
    ),
    (INVALID_PARAMETER, "Invalid parameter"),
];

pub const GENERAL: [u8; 5] = *b"HY000";

impl Failure {
    /// An error with the message of its number.
    pub fn of(number: u32) -> Failure {
        let message = MESSAGES
            .iter()
            .find(|(known, _)| *known == number)
            .map_or("Unknown error", |(_, message)| message);
        Failure {
            number,
            sqlstate: GENERAL,
            message: message.into(),
        }
    }

    pub fn new(number: u32, message: impl Into<String>) -> Failure {
        Failure {
            number,
            sqlstate: GENERAL,
            message: Cow::Owned(message.into()),
        }
    }

    /// The connection is of no use after it.
    pub fn is_lost(&self) -> bool {
        matches!(self.number, SERVER_GONE | SERVER_LOST)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Server {
                number,
                sqlstate,
                message,
            } => Failure {
                number: number.into(),
                sqlstate,
                message: message.into(),
            },
            Error::Closed => Failure::of(SERVER_GONE),
            Error::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Failure::of(SERVER_GONE)
            }
            Error::Io(_) => Failure::of(SERVER_LOST),
            Error::Protocol(porpoise_protocol::Error::PacketTooLarge) => {
                Failure::of(PACKET_TOO_LARGE)
            }
            Error::Protocol(porpoise_protocol::Error::UnknownAuthPlugin) => Failure::new(
                PLUGIN_CANNOT_LOAD,
                "Authentication plugin of the account is not known to this client",
            ),
            Error::Protocol(porpoise_protocol::Error::InsecureChannel) => Failure::new(
                AUTHENTICATION_PLUGIN,
                "Authentication requires a secure connection",
            ),
            Error::Tls(why) => Failure::new(SSL_CONNECTION, format!("TLS/SSL error: {why}")),
            Error::Compression => Failure::of(COMPRESSION),
            Error::Protocol(porpoise_protocol::Error::Uncompress) => Failure::of(UNCOMPRESS),
            Error::Protocol(_) => Failure::of(MALFORMED_PACKET),
            Error::Options(message) => Failure::new(INVALID_PARAMETER, message),
            Error::Unsupported(what) => Failure::new(
                NOT_IMPLEMENTED,
                format!("This version of Porpoise doesn't yet support '{what}'"),
            ),
            Error::Value { .. } | Error::NoColumn(_) => Failure::of(UNSUPPORTED_PARAMETER_TYPE),
        }
    }
}
