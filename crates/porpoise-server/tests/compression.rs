//! Compressed connections (MySQL 8.4 manual, 6.2.8; MySQL's protocol documentation, "Compression").

pub mod common;

use std::io::Write;
use std::time::Duration;

use common::test_server::{TestServer, in_memory};
use common::{CAPABILITIES, RawClient};
use porpoise_protocol::compressed::{Algorithm, Compressor};
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_server::ServerOptions;
use rustls::version::{TLS12, TLS13};

const ZLIB: Capabilities = Capabilities::COMPRESS;
const ZSTD: Capabilities = Capabilities::ZSTD_COMPRESSION;

struct CompressingServer {
    server: TestServer,
    folder: tempfile::TempDir,
}

impl CompressingServer {
    fn start(variables: &[(&str, &str)]) -> CompressingServer {
        let folder = tempfile::tempdir().unwrap();
        let datadir = [("datadir", folder.path().to_str().unwrap())];
        let options = ServerOptions {
            tcp: vec![([127, 0, 0, 1], 0).into()],
            workers: 2,
            ..ServerOptions::default()
        };
        let setup = ["CREATE USER ann IDENTIFIED WITH mysql_native_password BY 'one'"];
        let variables = [variables, &datadir].concat();
        CompressingServer {
            server: TestServer::start(in_memory(&variables), options, &setup),
            folder,
        }
    }

    fn log_in(
        &self,
        compression: Capabilities,
        encrypts: bool,
    ) -> Result<RawClient, (u16, String)> {
        let mut client = RawClient::tcp(self.server.server.tcp_addresses()[0]).unwrap();
        client.capabilities = CAPABILITIES | compression;
        if encrypts {
            let folder = self.folder.path();
            client.tls = Some(common::tls::client_config(folder, &[&TLS13, &TLS12], false));
        }
        client.login("ann", "one")
    }
}

#[test]
fn packets_go_in_frames_of_either_algorithm_with_tls_and_without() {
    let server = CompressingServer::start(&[]);
    for encrypts in [false, true] {
        for (compression, algorithm, level) in [
            (Capabilities::empty(), "", "0"),
            (ZLIB, "zlib", "6"),
            (ZSTD, "zstd", "3"),
            (ZLIB | ZSTD, "zlib", "6"),
        ] {
            let mut client = server.log_in(compression, encrypts).unwrap();
            assert_eq!(client.frames.is_some(), !compression.is_empty());
            let shown = client.query("SHOW STATUS LIKE 'Compression%'");
            let values: Vec<_> = shown.rows().iter().map(|row| row[1].as_deref()).collect();
            let is_on = if algorithm.is_empty() { "OFF" } else { "ON" };
            assert_eq!(values, [Some(is_on), Some(algorithm), Some(level)]);
            // Bytes that can't be compressed, more than any buffer holds, and both at once.
            let long = client.query("SELECT REPEAT(RANDOM_BYTES(1000), 1), REPEAT('x', 20000000)");
            assert_eq!(long.rows()[0][1].as_ref().unwrap().len(), 20_000_000);
            let text = "z".repeat(3_000_000);
            let length = client.query(&format!("SELECT LENGTH('{text}')"));
            assert_eq!(length.value(), "3000000");
            // A slow reader.
            client.send_query(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                 SELECT CONCAT(HEX(RANDOM_BYTES(500)), REPEAT('y', 9000)) FROM n",
            );
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(client.receive().rows().len(), 900);
        }
    }
}

#[test]
fn commands_that_come_at_once_are_answered_in_order() {
    let server = CompressingServer::start(&[]);
    for compression in [ZLIB, ZSTD] {
        let mut client = server.log_in(compression, false).unwrap();
        let command = |number: i32| {
            let mut writer = PacketWriter::new();
            writer.write(format!("\x03SELECT {number}").as_bytes());
            writer.take()
        };
        // In one frame; then in frames that hold parts of them.
        let many: Vec<u8> = (0..100).flat_map(command).collect();
        client.send_bytes(&many).unwrap();
        (0..100).for_each(|number| assert_eq!(client.receive().value(), number.to_string()));
        let (compressor, _) = client.frames.as_mut().unwrap();
        compressor.set_sequence(0);
        let mut frames = Vec::new();
        for part in many.chunks(7) {
            compressor.compress(part, &mut frames);
        }
        client.wire.write_all(&frames).unwrap();
        (0..100).for_each(|number| assert_eq!(client.receive().value(), number.to_string()));
    }
}

#[test]
fn a_server_compresses_as_its_variable_says() {
    let server = CompressingServer::start(&[]);
    let mut root = server.server.root();
    let set = "SET GLOBAL protocol_compression_algorithms = 'zstd'";
    assert!(root.query(set).is_ok());
    assert!(server.log_in(ZSTD, false).is_ok());
    for encrypts in [false, true] {
        let plain = server.log_in(Capabilities::empty(), encrypts);
        assert_eq!(plain.err().map(|(number, _)| number), Some(3922));
    }
    // One that compresses though it wasn't offered to couldn't understand a reply.
    let unasked = server.log_in(ZLIB, false);
    assert_eq!(unasked.err().map(|(number, _)| number), Some(3922));
    let mut client = server.log_in(ZLIB | ZSTD, false).unwrap();
    let shown = client.query("SHOW STATUS LIKE 'Compression_algorithm'");
    assert_eq!(shown.rows()[0][1].as_deref(), Some("zstd"));

    for wrong in ["''", "'zlib,x'", "NULL"] {
        let set = format!("SET GLOBAL protocol_compression_algorithms = {wrong}");
        assert_eq!(root.query(&set).error_number(), 1231, "{wrong}");
    }
    let set = "SET GLOBAL protocol_compression_algorithms = 'zlib,uncompressed'";
    assert!(root.query(set).is_ok());
}

/// A frame that announces so many bytes, whatever it holds.
fn frame(uncompressed: usize, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    let [d, e, f, _] = (uncompressed as u32).to_le_bytes();
    [&[a, b, c, 0, d, e, f], payload].concat()
}

#[test]
fn frames_that_lie_end_the_connection() {
    let server = CompressingServer::start(&[]);
    for (compression, algorithm) in [
        (ZLIB, Algorithm::Zlib),
        (ZSTD, Algorithm::Zstd { level: 3 }),
    ] {
        let mut frames = Vec::new();
        Compressor::new(algorithm).compress(&[0; 100_000], &mut frames);
        let bomb = &frames[7..];
        for bytes in [
            frame(1000, bomb),
            frame(200_000, bomb),
            frame(0xFF_FFFF, b"not compressed"),
            frame(100, b""),
        ] {
            let mut client = server.log_in(compression, false).unwrap();
            client.wire.write_all(&bytes).unwrap();
            assert_eq!(client.receive().error_number(), 1157);
            assert!(client.is_closed());
        }
        // What a frame holds is held to the same limits as packets.
        let mut client = server.log_in(compression, false).unwrap();
        client.send_bytes(&[0xFF, 0xFF, 0xFF, 0]).unwrap();
        client.send_bytes(&[b'x'; 100]).unwrap();
        drop(client);
    }
    let mut root = server.server.root();
    assert!(root.query("DO 1").is_ok());
}

#[test]
fn random_frames_harm_nobody() {
    let server = CompressingServer::start(&[]);
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..200 {
        let compression = if round % 2 == 0 { ZLIB } else { ZSTD };
        let mut client = server.log_in(compression, round % 5 == 0).unwrap();
        let payload: Vec<u8> = (0..random() % 300).map(|_| random() as u8).collect();
        let announced = (random() % 0xFF_FFFF) as usize;
        let _ = client.wire.write_all(&frame(announced, &payload));
        let _ = client.wire.write_all(&payload);
    }
    let mut client = server.log_in(ZLIB, true).unwrap();
    assert_eq!(client.query("SELECT 1").value(), "1");
}
