//! What the protocol costs a prepared point select: the budget is 60 ns to decode the request, 80
//! ns to encode the row.

use divan::{Bencher, black_box};
use porpoise_protocol::codes::ColumnType;
use porpoise_protocol::command::Command;
use porpoise_protocol::flags::{Capabilities, CursorFlags, Status};
use porpoise_protocol::frame::{PacketReader, PacketWriter, split_packet};
use porpoise_protocol::reply::{OkPacket, RowPacket};
use porpoise_protocol::row::{BinaryRowWriter, PutRow, TextRow, TextRowWriter};
use porpoise_protocol::statement::{Parameters, write_execute};
use porpoise_protocol::value::Value;

const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41.union(Capabilities::DEPRECATE_EOF);
const C: &[u8] = &[b'7'; 119];

fn main() {
    divan::main();
}

fn request() -> PacketWriter {
    let mut writer = PacketWriter::new();
    write_execute(
        &mut writer,
        1,
        CursorFlags::empty(),
        &[Value::Int(42)],
        |_| false,
        CAPABILITIES,
    );
    writer
}

fn decode(payload: &[u8], parameters: &mut Parameters) -> i64 {
    let Ok(Command::StmtExecute(execute)) = Command::parse(payload, CAPABILITIES) else {
        return 0;
    };
    match parameters
        .decode(&execute.parameters)
        .map(|mut values| values.next())
    {
        Ok(Some(Ok(Value::Int(id)))) => id,
        _ => 0,
    }
}

#[divan::bench]
fn execute_with_one_int_decoded_from_a_ring(bencher: Bencher<'_, '_>) {
    let request = request();
    let mut parameters = Parameters::new(1);
    bencher.bench_local(|| {
        let (packet, _) = split_packet(black_box(request.bytes()), 1 << 20)
            .unwrap()
            .unwrap();
        decode(packet.payload, &mut parameters)
    });
}

#[divan::bench]
fn execute_with_one_int_decoded_from_a_socket(bencher: Bencher<'_, '_>) {
    let request = request();
    let mut reader = PacketReader::new(1 << 20);
    let mut parameters = Parameters::new(1);
    bencher.bench_local(|| {
        reader.feed(black_box(request.bytes()));
        let packet = reader.next_packet().unwrap().unwrap();
        decode(packet.payload, &mut parameters)
    });
}

#[divan::bench]
fn binary_row_and_end_of_rows_encoded(bencher: Bencher<'_, '_>) {
    let mut writer = PacketWriter::new();
    bencher.bench_local(|| {
        writer.clear();
        let mut row = BinaryRowWriter::begin(&mut writer, 1);
        row.put_bytes(black_box(C));
        row.finish();
        OkPacket {
            status: Status::AUTOCOMMIT,
            ..OkPacket::default()
        }
        .write_end_of_rows(&mut writer, CAPABILITIES);
        writer.len()
    });
}

#[divan::bench]
fn text_row_of_an_int_and_a_string_encoded(bencher: Bencher<'_, '_>) {
    let mut writer = PacketWriter::new();
    bencher.bench_local(|| {
        writer.clear();
        let mut row = TextRowWriter::begin(&mut writer);
        row.put_int(black_box(123_456), ColumnType::Long);
        row.put_bytes(black_box(C));
        row.finish();
        writer.len()
    });
}

#[divan::bench]
fn text_row_read_by_the_client(bencher: Bencher<'_, '_>) {
    let mut writer = PacketWriter::new();
    let mut row = TextRowWriter::begin(&mut writer);
    row.put_int(123_456, ColumnType::Long);
    row.put_bytes(C);
    row.finish();
    bencher.bench_local(|| {
        let Ok(RowPacket::Row(row)) =
            RowPacket::parse(black_box(&writer.bytes()[4..]), CAPABILITIES)
        else {
            return 0;
        };
        TextRow::new(row)
            .map(|value| value.unwrap().map_or(0, <[u8]>::len))
            .sum::<usize>()
    });
}
