//! Servers that offer TLS and then do what they like: the client gives errors, in time, and takes
//! nothing from them that wasn't encrypted.

use porpoise_client::{Connection, Error, Options, TlsMode, TlsOptions};
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::Greeting;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connects to a server that greets, sends `behind` with the greeting, and then does as told.
fn connect(
    mode: TlsMode,
    behind: &'static [u8],
    serve: impl FnOnce(&mut TcpStream) + Send + 'static,
) -> Result<Connection, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut writer = PacketWriter::new();
        Greeting {
            server_version: b"8.4.0-test",
            connection_id: 7,
            nonce: [b'n'; 20],
            capabilities: Capabilities::all() - Capabilities::QUERY_ATTRIBUTES,
            collation: 255,
            status: Status::AUTOCOMMIT,
            auth_plugin: b"caching_sha2_password",
        }
        .write(&mut writer);
        let mut bytes = writer.take();
        bytes.extend_from_slice(behind);
        stream.write_all(&bytes).unwrap();
        serve(&mut stream);
    });
    let options = Options {
        user: "swimmer".into(),
        password: "secret".into(),
        host: "127.0.0.1".into(),
        port,
        connect_timeout: Some(Duration::from_millis(300)),
        tls: TlsOptions {
            mode: Some(mode),
            ..TlsOptions::default()
        },
        ..Options::default()
    };
    let connected = Connection::connect(&options);
    server.join().unwrap();
    connected
}

/// All that the client sends until it hangs up.
fn drain(stream: &mut TcpStream) -> Vec<u8> {
    let mut sent = Vec::new();
    let _ = stream.read_to_end(&mut sent);
    sent
}

#[test]
fn a_server_that_falls_silent_is_left_when_the_time_is_over() {
    let begun = Instant::now();
    let refused = connect(TlsMode::Preferred, b"", |stream| {
        let sent = drain(stream);
        assert!(sent.len() > 36, "it began a handshake");
        assert!(!sent.windows(7).any(|bytes| bytes == b"swimmer"));
    });
    assert!(matches!(refused, Err(Error::Io(_))), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_is_no_tls_ends_the_connection_without_a_login() {
    for garbage in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0; 64],
        &[0x16, 3, 3, 0, 2, 1, 1],
    ] {
        let refused = connect(TlsMode::Preferred, b"", |stream| {
            let _ = stream.write_all(garbage);
            let sent = drain(stream);
            assert!(!sent.windows(7).any(|bytes| bytes == b"swimmer"));
        });
        assert!(
            matches!(refused, Err(Error::Tls(_) | Error::Io(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn what_comes_before_the_handshake_is_not_taken_for_the_servers_words() {
    let refused = connect(TlsMode::Required, b"\x01\0\0\x02\0", |stream| {
        drain(stream);
    });
    match refused {
        Err(Error::Tls(words)) => assert!(words.contains("before the handshake"), "{words}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mode_that_is_disabled_asks_for_nothing() {
    let refused = connect(TlsMode::Disabled, b"", |stream| {
        let mut sent = [0; 8];
        stream.read_exact(&mut sent).unwrap();
        let capabilities = u32::from_le_bytes([sent[4], sent[5], sent[6], sent[7]]);
        assert_eq!(capabilities & Capabilities::SSL.bits(), 0);
    });
    assert!(matches!(refused, Err(Error::Io(_))), "{refused:?}");
}
