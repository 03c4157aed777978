//! The MySQL wire protocol, both ends, without I/O: bytes in, events out.
//!
//! It knows packets, not sockets; values as the wire has them, not SQL's types. The program that
//! moves the bytes (an event loop, a blocking client, a ring in shared memory) feeds a reader and
//! sends what a writer holds. Every type has both directions where both ends need them, so each is
//! tested against the other. Bytes from outside never cause a panic: what is wrong with them is an
//! [`Error`].
//!
//! In the order in which a connection meets them:
//!
//! 1. [`frame`]: [`frame::PacketReader`] cuts the stream into packets, [`frame::PacketWriter`]
//!    builds replies in place.
//! 2. [`handshake`]: the server's [`handshake::Greeting`], the client's [`handshake::Login`].
//! 3. [`auth`]: the password plugins; [`auth::Exchange`] is the server's side of a login.
//! 4. [`command`]: [`command::Command`], what a packet of a connected client asks for.
//! 5. [`statement`]: [`statement::Parameters`], the values sent with a prepared statement's
//!    execute.
//! 6. [`column`], [`row`]: a result's columns and rows; [`row::PutRow`] is text and binary rows
//!    alike.
//! 7. [`reply`]: OK, ERR and the end of rows.
//! 8. [`compressed`]: frames around packets, for connections that compress.
//!
//! [`flags`] and [`codes`] hold the protocol's tables, [`wire`] and [`value`] its smallest parts.
//!
//! One query and its reply, both ends:
//!
//! ```
//! use porpoise_protocol::codes::ColumnType;
//! use porpoise_protocol::column::{self, ColumnDefinition};
//! use porpoise_protocol::command::{Command, Query};
//! use porpoise_protocol::flags::{Capabilities, Status};
//! use porpoise_protocol::frame::{PacketReader, PacketWriter};
//! use porpoise_protocol::reply::{OkPacket, ReplyHead, RowPacket};
//! use porpoise_protocol::row::{PutRow, TextRow, TextRowWriter};
//!
//! let capabilities = Capabilities::PROTOCOL_41 | Capabilities::DEPRECATE_EOF;
//!
//! // The client asks.
//! let mut request = PacketWriter::new();
//! let query = Query { sql: b"SELECT 1", attributes: Default::default() };
//! Command::Query(query).write(&mut request, capabilities);
//!
//! // The server reads, and replies.
//! let mut reader = PacketReader::new(1 << 20);
//! reader.feed(request.bytes());
//! let packet = reader.next_packet()?.expect("a whole packet came");
//! let mut reply = PacketWriter::with_buffer(Vec::new(), packet.sequence.wrapping_add(1));
//! assert_eq!(Command::parse(packet.payload, capabilities)?, Command::Query(query));
//! column::write_column_count(&mut reply, 1);
//! ColumnDefinition { name: b"1", column_type: ColumnType::LongLong, ..Default::default() }.write(&mut reply);
//! let mut row = TextRowWriter::begin(&mut reply);
//! row.put_int(1, ColumnType::LongLong);
//! row.finish();
//! OkPacket { status: Status::AUTOCOMMIT, ..Default::default() }.write_end_of_rows(&mut reply, capabilities);
//!
//! // The client reads the reply.
//! let mut reader = PacketReader::new(1 << 20);
//! reader.feed(reply.bytes());
//! let mut next = || Ok::<_, porpoise_protocol::Error>(reader.next_packet()?.expect("it came").payload.to_vec());
//! assert_eq!(ReplyHead::parse(&next()?, capabilities)?, ReplyHead::Columns(1));
//! assert_eq!(ColumnDefinition::parse(&next()?)?.name, b"1");
//! let row = next()?;
//! assert_eq!(TextRow::new(&row).next(), Some(Ok(Some(&b"1"[..]))));
//! assert!(matches!(RowPacket::parse(&next()?, capabilities)?, RowPacket::End(_)));
//! # Ok::<(), porpoise_protocol::Error>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod auth;
pub mod byte_queue;
pub mod codes;
pub mod column;
pub mod command;
pub mod compressed;
pub mod flags;
pub mod frame;
pub mod handshake;
pub mod reply;
pub mod row;
pub mod statement;
pub mod value;
pub mod wire;

/// What the other end got wrong. The numbers are those of the errors that a MySQL server sends; the
/// server's table of errors has their texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A packet that doesn't hold what its kind must: 1835.
    Malformed(&'static str),
    /// A payload longer than `max_allowed_packet`: 1153, and the connection ends.
    PacketTooLarge,
    /// A payload of 16 MiB - 1 or more, for which [`frame::PacketReader`] is needed.
    PacketInPieces,
    /// The pieces of a packet aren't numbered one after another: 1156, and the connection ends.
    PacketsOutOfOrder,
    /// A compressed frame that doesn't hold what it announces: 1157, and the connection ends.
    Uncompress,
    /// A handshake of before MySQL 4.1: 1251.
    UnsupportedHandshake,
    /// A first byte that no command has: 1047.
    UnknownCommand(u8),
    /// COM_STMT_SEND_LONG_DATA for a parameter that the statement doesn't have: 1210.
    NoSuchParameter,
    /// A server named an authentication plugin that this client doesn't have: 2059.
    UnknownAuthPlugin,
    /// A server asked for the bare password over a channel that others can read: 2061.
    InsecureChannel,
    /// Bytes that are no public key, or a key that couldn't be generated.
    PublicKey,
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Malformed(what) => return write!(formatter, "malformed packet: {what}"),
            Self::PacketTooLarge => "a packet is larger than max_allowed_packet",
            Self::PacketInPieces => "a packet comes in pieces",
            Self::PacketsOutOfOrder => "packets are out of order",
            Self::Uncompress => "a compressed packet can't be uncompressed",
            Self::UnsupportedHandshake => "the other end speaks a protocol older than MySQL 4.1",
            Self::UnknownCommand(byte) => {
                return write!(formatter, "no command has the code {byte:#04x}");
            }
            Self::NoSuchParameter => "the statement has no such parameter",
            Self::UnknownAuthPlugin => "the server asks for an unknown authentication plugin",
            Self::InsecureChannel => {
                "the server asks for the bare password over an insecure channel"
            }
            Self::PublicKey => "the server's public key is unusable",
        })
    }
}

impl std::error::Error for Error {}
