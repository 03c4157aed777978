//! Errors on the wire.

use porpoise_engine::Error;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::reply::ErrPacket;
use porpoise_types::Charset;

use crate::column_definition::encoded;

/// Writes an error as an ERR packet, for a client of which nothing is known yet.
pub(crate) fn write_error(writer: &mut PacketWriter, error: &Error, capabilities: Capabilities) {
    write_error_in(writer, error, capabilities, Charset::Utf8mb4);
}

/// Writes an error as an ERR packet, for a client that reads `charset`.
pub(crate) fn write_error_in(
    writer: &mut PacketWriter,
    error: &Error,
    capabilities: Capabilities,
    charset: Charset,
) {
    let mut sqlstate = ErrPacket::GENERAL;
    if let Ok(state) = <[u8; 5]>::try_from(error.sqlstate().as_bytes()) {
        sqlstate = state;
    }
    ErrPacket {
        number: error.number(),
        sqlstate,
        message: &encoded(error.message(), charset),
    }
    .write(writer, capabilities);
}

/// The error by which MySQL reports what a client got wrong in the protocol.
pub(crate) fn wire_error(error: porpoise_protocol::Error) -> Error {
    use porpoise_protocol::Error as Wire;
    match error {
        Wire::PacketTooLarge | Wire::PacketInPieces => Error::packet_too_large(),
        Wire::PacketsOutOfOrder => Error::packets_out_of_order(),
        Wire::Uncompress => Error::net_uncompress_error(),
        Wire::UnsupportedHandshake => Error::not_supported_auth_mode(),
        Wire::UnknownCommand(_) => Error::unknown_command(),
        Wire::NoSuchParameter => Error::wrong_arguments("mysqld_stmt_execute"),
        Wire::Malformed(_) | Wire::UnknownAuthPlugin | Wire::InsecureChannel | Wire::PublicKey => {
            Error::malformed_packet()
        }
    }
}
