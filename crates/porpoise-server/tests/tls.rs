//! Encrypted connections (MySQL 8.4 manual, 8.3): who gets one, what accounts require of it, and
//! clients that do what no well-behaved client does.

pub mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::test_server::{TestServer, in_memory};
use common::tls::{client_config, request};
use common::{RawClient, Reply, eventually};
use porpoise_engine::Engine;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_server::{Server, ServerOptions};
use rcgen::{
    CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, SupportedProtocolVersion};

const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

fn on_loopback() -> ServerOptions {
    ServerOptions {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        workers: 2,
        ..ServerOptions::default()
    }
}

/// A server whose certificates lie in a folder.
struct TlsServer {
    server: TestServer,
    folder: tempfile::TempDir,
}

impl TlsServer {
    fn start(variables: &[(&str, &str)]) -> TlsServer {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let variables = [variables, &[("datadir", path)]].concat();
        let setup = [
            "CREATE USER ann IDENTIFIED BY 'secret'",
            "CREATE USER bob IDENTIFIED WITH mysql_native_password BY 'two'",
            "GRANT ALL ON *.* TO ann, bob",
        ];
        TlsServer {
            server: TestServer::start(in_memory(&variables), on_loopback(), &setup),
            folder,
        }
    }

    fn client_config(&self) -> Arc<ClientConfig> {
        client_config(self.folder.path(), BOTH, false)
    }

    fn tcp(&self) -> RawClient {
        RawClient::tcp(self.server.server.tcp_addresses()[0]).unwrap()
    }

    /// A client of a plain socket.
    fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.server.server.tcp_addresses()[0]).unwrap();
        let timeout = Some(Duration::from_secs(20));
        socket.set_read_timeout(timeout).unwrap();
        socket
    }

    /// Logs in over TCP, encrypted.
    fn log_in(
        &self,
        config: &Arc<ClientConfig>,
        user: &str,
        password: &str,
    ) -> Result<RawClient, (u16, String)> {
        let mut client = self.tcp();
        client.tls = Some(config.clone());
        client.login(user, password)
    }

    fn ann(&self) -> RawClient {
        self.log_in(&self.client_config(), "ann", "secret").unwrap()
    }
}

fn status(client: &mut RawClient, name: &str) -> String {
    let reply = client.query(&format!("SHOW STATUS LIKE '{name}'"));
    reply.rows()[0][1].clone().unwrap()
}

#[test]
fn clients_are_encrypted_over_tcp_and_unix_sockets() {
    let server = TlsServer::start(&[]);
    for (version, name, cipher) in [
        (&TLS13, "TLSv1.3", "TLS_AES_128_GCM_SHA256"),
        (&TLS12, "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ] {
        let config = client_config(server.folder.path(), &[version], false);
        for is_tcp in [true, false] {
            let mut client = match is_tcp {
                true => server.tcp(),
                false => RawClient::local(&server.server.socket()).unwrap(),
            };
            client.tls = Some(config.clone());
            // The first login sends the password itself, in the tunnel.
            let mut client = client.login("ann", "secret").unwrap();
            assert_eq!(status(&mut client, "Ssl_version"), name);
            assert_eq!(status(&mut client, "Ssl_cipher"), cipher);
        }
        assert!(server.log_in(&config, "ann", "wrong").is_err());
        assert!(server.log_in(&config, "bob", "two").is_ok());
    }
    let mut plain = server.tcp().login("ann", "secret").unwrap();
    assert_eq!(status(&mut plain, "Ssl_version"), "");
    assert_eq!(status(&mut plain, "Ssl_accepts"), "8");
    assert_eq!(status(&mut plain, "Ssl_finished_accepts"), "8");
}

#[test]
fn sessions_are_resumed_with_the_certificate_they_began_with() {
    let server = TlsServer::start(&[]);
    let setup = "CREATE USER eve IDENTIFIED BY 'x' REQUIRE X509";
    assert!(server.server.root().query(setup).is_ok());
    for version in BOTH {
        let config = client_config(server.folder.path(), &[version], true);
        let reused = server.server.count("Ssl_sessions_reused");
        let missed = server.server.count("Ssl_session_cache_misses");
        for _ in 0..3 {
            let mut client = server.log_in(&config, "eve", "x").unwrap();
            assert!(client.query("DO 1").is_ok());
        }
        assert_eq!(server.server.count("Ssl_sessions_reused"), reused + 2);
        // What was loaded anew knows no sessions of before.
        let reload = "ALTER INSTANCE RELOAD TLS";
        assert!(server.server.root().query(reload).is_ok());
        server.log_in(&config, "eve", "x").unwrap();
        assert_eq!(server.server.count("Ssl_sessions_reused"), reused + 2);
        assert_eq!(server.server.count("Ssl_session_cache_hits"), reused + 2);
        assert!(server.server.count("Ssl_session_cache_misses") > missed);
    }
}

/// Writes a list of the server's own authority, good to the beginning of that year, which revokes
/// the certificate of that number.
fn revoke(folder: &Path, serial: u64, until: i32) {
    let key = std::fs::read_to_string(folder.join("ca-key.pem")).unwrap();
    let name = format!(
        "MySQL_Server_{}_Auto_Generated_CA_Certificate",
        porpoise_server::SERVER_VERSION
    );
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::CrlSign];
    let issuer = Issuer::new(params, KeyPair::from_pem(&key).unwrap());
    let begin = rcgen::date_time_ymd(2020, 1, 1);
    let list = CertificateRevocationListParams {
        this_update: begin,
        next_update: rcgen::date_time_ymd(until, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: begin,
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&issuer).unwrap().pem().unwrap();
    std::fs::write(folder.join("crl.pem"), list).unwrap();
}

#[test]
fn a_revoked_certificate_and_a_list_that_is_out_of_date_refuse_a_client() {
    let server = TlsServer::start(&[]);
    let folder = server.folder.path();
    let without = client_config(folder, BOTH, false);
    let with = client_config(folder, BOTH, true);
    let mut root = server.server.root();
    assert!(root.query("SET GLOBAL ssl_crl = 'crl.pem'").is_ok());
    // The certificates are numbered: 1 the authority's, 2 the server's, 3 the client's.
    for (serial, until, lets_in) in [(9, 2099, true), (3, 2099, false), (9, 2021, false)] {
        revoke(folder, serial, until);
        assert!(root.query("ALTER INSTANCE RELOAD TLS").is_ok());
        let comes_in = server.log_in(&with, "ann", "secret").is_ok();
        assert_eq!(comes_in, lets_in, "{serial} revoked, until {until}");
        assert!(server.log_in(&without, "ann", "secret").is_ok());
    }
}

#[test]
fn accounts_require_what_they_say() {
    let server = TlsServer::start(&[]);
    let ca = "/CN=MySQL_Server_8.4.7-Porpoise_Auto_Generated_CA_Certificate";
    let own = "/CN=MySQL_Server_8.4.7-Porpoise_Auto_Generated_Client_Certificate";
    let cipher = "TLS_AES_128_GCM_SHA256";
    let without = client_config(server.folder.path(), BOTH, false);
    let with = client_config(server.folder.path(), BOTH, true);
    let mut root = server.server.root();
    // Who gets in: a plain client, one with TLS, and one with a certificate.
    for (requirement, expected) in [
        ("NONE".to_string(), [true, true, true]),
        ("SSL".to_string(), [false, true, true]),
        ("X509".to_string(), [false, false, true]),
        (format!("CIPHER '{cipher}'"), [false, true, true]),
        ("CIPHER 'other'".to_string(), [false; 3]),
        (format!("ISSUER '{ca}'"), [false, false, true]),
        ("ISSUER '/CN=other'".to_string(), [false; 3]),
        (
            format!("SUBJECT '{own}' AND ISSUER '{ca}' AND CIPHER '{cipher}'"),
            [false, false, true],
        ),
        (format!("SUBJECT '{ca}' AND ISSUER '{ca}'"), [false; 3]),
    ] {
        assert!(root.query("DROP USER IF EXISTS eve").is_ok());
        let create = format!("CREATE USER eve IDENTIFIED BY 'x' REQUIRE {requirement}");
        assert!(root.query(&create).is_ok(), "{create}");
        let shown = root.query("SHOW CREATE USER eve");
        let shown = shown.value();
        for word in requirement.split(" AND ") {
            assert!(shown.contains(word), "{shown}");
        }
        let outcomes = [
            server.tcp().login("eve", "x"),
            server.log_in(&without, "eve", "x"),
            server.log_in(&with, "eve", "x"),
        ];
        for (outcome, lets_in) in outcomes.into_iter().zip(expected) {
            let number = outcome.err().map(|(number, _)| number);
            assert_eq!(number, (!lets_in).then_some(1045), "{requirement}");
        }
    }
    assert!(root.query("ALTER USER eve REQUIRE NONE").is_ok());
    assert!(server.tcp().login("eve", "x").is_ok());
}

#[test]
fn a_certificate_of_somebody_else_is_refused() {
    let server = TlsServer::start(&[]);
    let other = TlsServer::start(&[]);
    // It trusts this server, and has a certificate of the other one.
    for name in ["client-cert.pem", "client-key.pem"] {
        let from = other.folder.path().join(name);
        std::fs::copy(from, server.folder.path().join(name)).unwrap();
    }
    let config = client_config(server.folder.path(), BOTH, true);
    let mut client = server.tcp();
    client.tls = Some(config);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        client.login("ann", "secret").is_ok()
    }));
    assert!(!refused.unwrap_or(false));
    assert_eq!(server.server.count("Ssl_finished_accepts"), 0);
    server.ann();
}

#[test]
fn tls_is_loaded_anew_or_turned_off_by_an_error() {
    let server = TlsServer::start(&[]);
    let config = server.client_config();
    let mut root = server.server.root();
    let mut before = server.ann();
    assert!(root.query("SET GLOBAL tls_version = 'TLSv1.2'").is_ok());
    // It holds when it is loaded.
    assert_eq!(status(&mut server.ann(), "Ssl_version"), "TLSv1.3");
    assert!(root.query("ALTER INSTANCE RELOAD TLS").is_ok());
    let mut after = server.log_in(&config, "ann", "secret").unwrap();
    assert_eq!(status(&mut after, "Ssl_version"), "TLSv1.2");
    assert_eq!(status(&mut before, "Ssl_version"), "TLSv1.3");

    assert!(root.query("SET GLOBAL ssl_key = 'ca-key.pem'").is_ok());
    let wrong = root.query("ALTER INSTANCE RELOAD TLS");
    assert_eq!(wrong.error_number(), 3888, "{wrong:?}");
    assert!(server.log_in(&config, "ann", "secret").is_ok());
    assert_eq!(root.query("SELECT @@have_ssl").value(), "YES");
    let off = "ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR";
    assert!(root.query(off).is_ok());
    assert_eq!(
        root.query("SHOW WARNINGS").rows()[0][1].as_deref(),
        Some("3888")
    );
    assert_eq!(root.query("SELECT @@have_ssl").value(), "DISABLED");
    let (_, greeting) = server.tcp().packet().unwrap();
    let greeting = porpoise_protocol::handshake::Greeting::parse(&greeting).unwrap();
    assert!(!greeting.capabilities.contains(Capabilities::SSL));
    assert!(before.query("DO 1").is_ok());

    let mut ann = server.tcp().login("ann", "secret").unwrap();
    assert!(root.query("CREATE USER low").is_ok());
    let mut low = server.tcp().login("low", "").unwrap();
    assert_eq!(low.query("ALTER INSTANCE RELOAD TLS").error_number(), 1227);
    assert!(ann.query("SET GLOBAL ssl_key = 'server-key.pem'").is_ok());
    assert!(ann.query("ALTER INSTANCE RELOAD TLS").is_ok());
    assert!(server.log_in(&config, "ann", "secret").is_ok());
    let channel = "ALTER INSTANCE RELOAD TLS FOR CHANNEL other";
    assert_eq!(ann.query(channel).error_number(), 3074);
}

#[test]
fn plain_tcp_is_refused_where_transport_has_to_be_secure() {
    let server = TlsServer::start(&[("require_secure_transport", "ON")]);
    let refusal = server.tcp().login("ann", "secret").err().unwrap();
    assert_eq!(refusal.0, 3159);
    server.ann();
    server.server.local("ann", "secret").unwrap();
}

#[test]
fn files_that_somebody_has_named_must_be_usable() {
    let server = TlsServer::start(&[]);
    let path = server.folder.path();
    std::fs::write(path.join("nonsense.pem"), "nonsense").unwrap();
    let start = |changed: (&str, &str)| {
        let mut variables = vec![
            ("datadir", path.to_str().unwrap()),
            ("ssl_cert", "server-cert.pem"),
            ("ssl_key", "server-key.pem"),
            ("ssl_ca", "ca.pem"),
        ];
        variables.retain(|(name, _)| *name != changed.0);
        variables.push(changed);
        let engine = Engine::open(in_memory(&variables)).unwrap();
        let started = Server::start(engine, &on_loopback());
        started.err().map(|error| error.to_string())
    };
    assert_eq!(start(("tls_version", "TLSv1.3")), None);
    for changed in [
        ("ssl_cert", "nonsense.pem"),
        ("ssl_cert", "missing.pem"),
        ("ssl_cert", ""),
        ("ssl_key", "client-key.pem"),
        ("ssl_key", "server-cert.pem"),
        ("ssl_ca", "missing.pem"),
        ("ssl_crl", "nonsense.pem"),
        ("ssl_crlpath", "missing"),
    ] {
        let error = start(changed).expect(changed.0);
        assert!(error.contains(changed.0), "{changed:?}: {error}");
    }
    assert!(start(("tls_version", "TLSv1.1")).is_some());
    assert!(start(("ssl_cipher", "RC4-MD5")).is_some());
}

#[test]
fn certificates_that_are_made_by_the_server_and_damaged_turn_tls_off() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["ca.pem", "server-cert.pem", "server-key.pem"] {
        std::fs::write(folder.path().join(name), "damaged").unwrap();
    }
    let variables = [("datadir", folder.path().to_str().unwrap())];
    let engine = Engine::open(in_memory(&variables)).unwrap();
    let server = Server::start(engine.clone(), &on_loopback()).unwrap();
    assert_eq!(engine.variables().get_text("have_ssl"), "DISABLED");
    server.stop();
}

#[test]
fn many_commands_may_come_at_once_and_long_results_go_to_slow_readers() {
    let server = TlsServer::start(&[]);
    let mut ann = server.ann();
    let mut commands = Vec::new();
    for number in 0..100 {
        let mut writer = PacketWriter::new();
        writer.write(format!("\x03SELECT {number}").as_bytes());
        commands.extend_from_slice(writer.bytes());
    }
    ann.send_bytes(&commands).unwrap();
    for number in 0..100 {
        assert_eq!(ann.receive().value(), number.to_string());
    }
    // More than any buffer between the two holds.
    let long = "SELECT REPEAT('x', 20000000)";
    ann.send_query(long);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(ann.receive().value().len(), 20_000_000);
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                SELECT REPEAT('y', 20000) FROM n";
    ann.send_query(rows);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(ann.receive().rows().len(), 900);
    let text = "z".repeat(5_000_000);
    let length = ann.query(&format!("SELECT LENGTH('{text}')"));
    assert_eq!(length.value(), "5000000");
}

#[test]
fn a_connection_that_is_killed_or_idle_ends_with_a_word() {
    let server = TlsServer::start(&[]);
    let mut ann = server.ann();
    let mut idle = server.ann();
    assert!(idle.query("SET wait_timeout = 1").is_ok());
    let kill = format!("KILL {}", ann.connection_id);
    assert!(server.server.root().query(&kill).is_ok());
    // The end is announced: an end without a word would be an error.
    assert_eq!(ann.wire.read(&mut [0; 100]).unwrap(), 0);
    let Reply::Error(number, _) = idle.receive() else {
        panic!("no error");
    };
    assert_eq!(number, 4031);
    assert_eq!(idle.wire.read(&mut [0; 100]).unwrap(), 0);
}

#[test]
fn a_stop_ends_encrypted_connections() {
    let server = TlsServer::start(&[]);
    let mut ann = server.ann();
    let half = server.socket();
    server.server.server.stop();
    assert_eq!(ann.wire.read(&mut [0; 100]).unwrap(), 0);
    drop(half);
}

// ── Clients that mean harm ───────────────────────────────────────────────────────────────────────

/// Sends bytes after a request for TLS, and returns what comes back until the end.
fn answer_to(server: &TlsServer, bytes: &[u8]) -> Vec<u8> {
    let mut client = server.tcp();
    client.packet().unwrap();
    request(&mut client);
    // The server may have closed it before all is written.
    let _ = client.wire.write_all(bytes);
    let mut answer = vec![0; 4096];
    let mut length = 0;
    while let Ok(count @ 1..) = client.wire.read(&mut answer[length..]) {
        length += count;
    }
    answer.truncate(length);
    answer
}

#[test]
fn what_is_no_handshake_is_answered_by_an_alert() {
    const ALERT: u8 = 21;
    let server = TlsServer::start(&[]);
    let mut login = PacketWriter::with_buffer(Vec::new(), 2);
    login.write(&[0x05; 80]);
    for bytes in [login.bytes(), b"GET / HTTP/1.0\r\n\r\n", &[0xFF; 100_000]] {
        let answer = answer_to(&server, bytes);
        assert!(answer.is_empty() || answer[0] == ALERT, "{answer:?}");
    }
    // A second request for TLS in TLS.
    let mut client = server.tcp();
    client.packet().unwrap();
    let mut client = common::tls::start(client, server.client_config());
    let mut again = PacketWriter::with_buffer(Vec::new(), 2);
    porpoise_protocol::handshake::SslRequest {
        capabilities: common::CAPABILITIES | Capabilities::SSL,
        max_packet_bytes: 1 << 24,
        collation: 45,
    }
    .write(&mut again);
    client.wire.write_all(again.bytes()).unwrap();
    let (_, error) = client.packet().unwrap();
    assert_eq!(error[..3], [0xFF, 0x13, 0x04], "1043");
    server.ann();
}

#[test]
fn random_bytes_after_a_request_for_tls_harm_nobody() {
    let server = TlsServer::start(&[("connect_timeout", "2")]);
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut clients = Vec::new();
    for round in 0..300 {
        let mut bytes: Vec<u8> = (0..random() % 600).map(|_| random() as u8).collect();
        // Most look like records of a handshake.
        if round % 4 != 0 {
            let length = (random() % 500) as u16;
            let header = [22, 3, 1, (length >> 8) as u8, length as u8, 1];
            bytes.splice(0..0, header);
        }
        let mut client = server.tcp();
        client.packet().unwrap();
        request(&mut client);
        let _ = client.wire.write_all(&bytes);
        clients.push(client);
    }
    server.ann();
    for mut client in clients {
        let mut rest = Vec::new();
        let _ = client.wire.read_to_end(&mut rest);
    }
    server.ann();
}

/// The resident memory of this process, in bytes.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_thousand_half_handshakes_harm_nobody_and_are_ended() {
    const CLIENTS: usize = 1000;
    const BYTES_MAX: usize = 64 << 10;
    let server = TlsServer::start(&[("connect_timeout", "5"), ("max_connections", "2000")]);
    let mut ann = server.ann();
    let before = resident_bytes();
    let mut clients = Vec::new();
    let began = Instant::now();
    for number in 0..CLIENTS {
        let mut socket = server.socket();
        let mut greeting = [0; 4];
        socket.read_exact(&mut greeting).unwrap();
        let mut rest = vec![0; usize::from(greeting[0])];
        socket.read_exact(&mut rest).unwrap();
        let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
        porpoise_protocol::handshake::SslRequest {
            capabilities: common::CAPABILITIES | Capabilities::SSL,
            max_packet_bytes: 1 << 24,
            collation: 45,
        }
        .write(&mut writer);
        socket.write_all(writer.bytes()).unwrap();
        match number % 4 {
            // Nothing; a record that is never finished; a handshake up to the server's part.
            0 => {}
            1 => {
                let mut record = vec![22, 3, 1, 0x40, 0, 1, 0, 0x3F, 0xFC];
                record.resize(16 << 10, 0);
                socket.write_all(&record).unwrap();
            }
            2 => {
                // A handshake message in many records.
                let mut records = vec![22, 3, 1, 0x20, 0, 1, 0, 0xF0, 0];
                records.resize(5 + 0x2000, 0);
                for _ in 0..3 {
                    let _ = socket.write_all(&records);
                    records = [&[22, 3, 1, 0x20, 0][..], &[0; 0x2000]].concat();
                }
            }
            _ => {
                let name = "localhost".try_into().unwrap();
                let config = server.client_config();
                let mut tls = rustls::ClientConnection::new(config, name).unwrap();
                tls.write_tls(&mut socket).unwrap();
            }
        }
        clients.push(socket);
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < CLIENTS * BYTES_MAX, "{} a client", grown / CLIENTS);
    // Nobody else waits for them.
    let from = Instant::now();
    for _ in 0..100 {
        assert!(ann.query("DO 1").is_ok());
    }
    server.ann();
    assert!(from.elapsed() < Duration::from_secs(3));
    // None is kept longer than it may take to log in.
    for mut client in clients {
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    eventually(|| server.server.count("Threads_connected") <= 2);
    assert!(ann.query("DO 1").is_ok());
}
