//! Logging in by `caching_sha2_password`, which MariaDB hasn't: against the server's half of the
//! protocol crate.

use porpoise_client::{Connection, Error, Options};
use porpoise_protocol::auth::{
    self, AuthOutcome, Credential, Exchange, caching_sha2, public_key::ServerKey,
};
use porpoise_protocol::command::Command;
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_protocol::handshake::{FirstPacket, Greeting};
use porpoise_protocol::reply::{ErrPacket, OkPacket};
use porpoise_transport::UnixSocket;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::thread::JoinHandle;

static KEY: LazyLock<ServerKey> = LazyLock::new(|| ServerKey::generate().unwrap());

/// Serves one login and one ping; tells what the exchange gave to remember.
fn serve(
    mut stream: impl Read + Write + Send + 'static,
    credential: Credential,
    greeted_with: &'static str,
    secure: bool,
) -> JoinHandle<Option<caching_sha2::Cached>> {
    std::thread::spawn(move || {
        let nonce = auth::nonce();
        let capabilities = Capabilities::all() - Capabilities::SSL - Capabilities::QUERY_ATTRIBUTES;
        let mut reader = PacketReader::new(1 << 20);
        let mut writer = PacketWriter::new();
        Greeting {
            server_version: b"8.4.0-test",
            connection_id: 7,
            nonce,
            capabilities,
            collation: 255,
            status: Status::AUTOCOMMIT,
            auth_plugin: greeted_with.as_bytes(),
        }
        .write(&mut writer);
        let mut exchange = Exchange::new(credential, nonce, secure);
        let mut begun = false;
        let cached = loop {
            stream.write_all(writer.bytes()).unwrap();
            writer.clear();
            let place = loop {
                if let Some(place) = reader.take_packet().unwrap() {
                    break place;
                }
                let count = stream.read(reader.spare()).unwrap();
                if count == 0 {
                    return None;
                }
                reader.filled(count);
            };
            let packet = reader.packet_at(place);
            writer.set_sequence(packet.sequence.wrapping_add(1));
            let outcome = if begun {
                exchange.handle_response(packet.payload, &mut writer, || Ok(&*KEY))
            } else {
                let Ok(FirstPacket::Login(login)) = FirstPacket::parse(packet.payload) else {
                    panic!("not a login");
                };
                assert_eq!(login.user, b"swimmer");
                begun = true;
                exchange.begin(login.auth_plugin, login.auth_response, &mut writer, || {
                    Ok(&*KEY)
                })
            };
            match outcome.unwrap() {
                AuthOutcome::Continue => {}
                AuthOutcome::Accepted(cached) => break cached,
                AuthOutcome::Denied => {
                    ErrPacket {
                        number: 1045,
                        sqlstate: *b"28000",
                        message: b"Access denied",
                    }
                    .write(&mut writer, capabilities);
                    stream.write_all(writer.bytes()).unwrap();
                    return None;
                }
            }
        };
        let ok = OkPacket {
            status: Status::AUTOCOMMIT,
            ..OkPacket::default()
        };
        ok.write(&mut writer, capabilities);
        stream.write_all(writer.bytes()).unwrap();
        writer.clear();
        loop {
            if let Some(packet) = reader.next_packet().unwrap() {
                assert_eq!(
                    Command::parse(packet.payload, capabilities),
                    Ok(Command::Ping)
                );
                break;
            }
            let count = stream.read(reader.spare()).unwrap();
            reader.filled(count);
        }
        writer.set_sequence(1);
        ok.write(&mut writer, capabilities);
        stream.write_all(writer.bytes()).unwrap();
        cached
    })
}

fn options(password: &str) -> Options {
    Options {
        user: "swimmer".into(),
        password: password.into(),
        ..Options::default()
    }
}

fn credential(cached: Option<caching_sha2::Cached>) -> Credential {
    Credential::CachingSha2 {
        stored: Some(caching_sha2::Stored::of(b"secret")),
        cached,
    }
}

fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn the_first_login_over_a_unix_socket_sends_the_password_and_the_second_needs_not() {
    let (near, far) = UnixStream::pair().unwrap();
    let server = serve(far, credential(None), auth::CACHING_SHA2_PASSWORD, true);
    let mut connection =
        Connection::over(Box::new(UnixSocket::from(near)), &options("secret")).unwrap();
    connection.ping().unwrap();
    assert_eq!(
        (connection.id(), connection.server_version()),
        (7, "8.4.0-test")
    );
    let cached = server.join().unwrap();
    assert!(cached.is_some());

    let (near, far) = tcp();
    let server = serve(far, credential(cached), auth::CACHING_SHA2_PASSWORD, false);
    Connection::over(Box::new(near), &options("secret"))
        .unwrap()
        .ping()
        .unwrap();
    assert_eq!(server.join().unwrap(), None);
}

#[test]
fn the_first_login_over_tcp_sends_the_password_under_the_public_key() {
    let (near, far) = tcp();
    let server = serve(far, credential(None), auth::CACHING_SHA2_PASSWORD, false);
    Connection::over(Box::new(near), &options("secret"))
        .unwrap()
        .ping()
        .unwrap();
    assert!(server.join().unwrap().is_some());
}

#[test]
fn a_server_with_another_default_plugin_switches_the_client() {
    let (near, far) = UnixStream::pair().unwrap();
    let server = serve(far, credential(None), auth::NATIVE_PASSWORD, true);
    Connection::over(Box::new(UnixSocket::from(near)), &options("secret"))
        .unwrap()
        .ping()
        .unwrap();
    assert!(server.join().unwrap().is_some());
}

#[test]
fn a_wrong_password_is_denied_over_either_way() {
    let (near, far) = tcp();
    let server = serve(far, credential(None), auth::CACHING_SHA2_PASSWORD, false);
    let error = Connection::over(Box::new(near), &options("guess")).unwrap_err();
    assert_eq!(error.number(), Some(1045));
    server.join().unwrap();

    let (near, far) = UnixStream::pair().unwrap();
    let server = serve(far, credential(None), auth::CACHING_SHA2_PASSWORD, true);
    let error = Connection::over(Box::new(UnixSocket::from(near)), &options("")).unwrap_err();
    assert_eq!(error.number(), Some(1045));
    server.join().unwrap();
}

#[test]
fn a_server_that_hangs_up_midway_is_an_error() {
    let (near, far) = UnixStream::pair().unwrap();
    drop(far);
    assert!(matches!(
        Connection::over(Box::new(UnixSocket::from(near)), &options("secret")),
        Err(Error::Io(_))
    ));
}
