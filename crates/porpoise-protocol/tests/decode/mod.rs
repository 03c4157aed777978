//! Decodes a stream of bytes every way there is, for the fuzz targets and for the test of their
//! corpus. It tells how many packets made sense, so that a corpus that nothing reads any more is
//! noticed.

use porpoise_protocol::column::ColumnDefinition;
use porpoise_protocol::command::Command;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketReader;
use porpoise_protocol::handshake::{AuthStep, FirstPacket, Greeting};
use porpoise_protocol::reply::{ErrPacket, OkPacket, ReplyHead, RowPacket};
use porpoise_protocol::row::{BinaryRow, TextRow};
use porpoise_protocol::statement::{Parameters, PrepareOk};
use porpoise_protocol::value::ValueType;

const MAX_ALLOWED_PACKET: usize = 1 << 20;

fn each_packet(bytes: &[u8], mut decode: impl FnMut(&[u8])) {
    let mut reader = PacketReader::new(MAX_ALLOWED_PACKET);
    for chunk in bytes.chunks(61) {
        reader.feed(chunk);
        while let Ok(Some(packet)) = reader.next_packet() {
            decode(packet.payload);
        }
    }
}

/// What a client sends: a login, then commands.
pub fn to_server(bytes: &[u8]) -> usize {
    let mut capabilities = None;
    let mut parameters: Vec<_> = [0, 1, 7, 40].map(Parameters::new).into();
    let mut sensible = 0;
    each_packet(bytes, |payload| {
        let Some(capabilities) = capabilities else {
            if let Ok(FirstPacket::Login(login)) = FirstPacket::parse(payload) {
                login.attributes.iter().for_each(drop);
                sensible += 1;
            }
            capabilities = Some(match FirstPacket::parse(payload) {
                Ok(FirstPacket::Login(login)) => login.capabilities,
                _ => Capabilities::all(),
            });
            return;
        };
        for capabilities in [capabilities, capabilities ^ Capabilities::QUERY_ATTRIBUTES] {
            let Ok(command) = Command::parse(payload, capabilities) else {
                continue;
            };
            sensible += 1;
            match command {
                Command::Query(query) => query.attributes.iter().for_each(drop),
                Command::StmtExecute(execute) => {
                    for parameters in &mut parameters {
                        if let Ok(values) = parameters.decode(&execute.parameters) {
                            values.for_each(drop);
                        }
                    }
                }
                Command::StmtSendLongData {
                    parameter, bytes, ..
                } => {
                    for parameters in &mut parameters {
                        let _ = parameters.append_long(parameter, bytes, MAX_ALLOWED_PACKET);
                    }
                }
                _ => {}
            }
        }
    });
    sensible
}

/// What a server sends: a greeting, then replies, of which any packet may be anything.
pub fn to_client(bytes: &[u8]) -> usize {
    let mut types: Vec<ValueType> = Vec::new();
    let mut sensible = 0;
    each_packet(bytes, |payload| {
        for capabilities in [Capabilities::all(), Capabilities::PROTOCOL_41] {
            let _ = AuthStep::parse(payload);
            let _ = ErrPacket::parse(payload);
            let _ = PrepareOk::parse(payload);
            let _ = ReplyHead::parse(payload, capabilities);
            let _ = RowPacket::parse(payload, capabilities);
            if let Ok(ok) = OkPacket::parse(payload, capabilities) {
                ok.state_changes().for_each(drop);
                sensible += 1;
            }
        }
        sensible += usize::from(Greeting::parse(payload).is_ok());
        if let Ok(column) = ColumnDefinition::parse(payload) {
            types.push(column.value_type());
            sensible += 1;
        }
        TextRow::new(payload).for_each(drop);
        if let Ok(row) = BinaryRow::new(payload, types.iter().copied()) {
            row.for_each(drop);
        }
    });
    sensible
}
