//! TLS and compression against a server that is not ours: MariaDB, with certificates made here.

use porpoise_client::{
    CompressionOptions, Connection, Error, Options, Poll, TlsMode, TlsOptions, Transport,
    flags::Capabilities,
};
use porpoise_e2e::server::{Product, Server};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A folder with certificates: of a CA, and what it issued.
struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let name = &mut params.distinguished_name;
        name.push(
            DnType::CommonName,
            format!("CA of {}", folder.path().display()),
        );
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { folder, issuer };
        std::fs::write(authority.file("ca.pem"), authority.issuer.pem()).unwrap();
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes `name.pem` and `name-key.pem` for these hosts.
    fn issue(&self, name: &str, common_name: &str, hosts: &[&str], serial: u64) {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        let subject = &mut params.distinguished_name;
        subject.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.file(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.file(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }

    /// Makes a list of that name, good to the beginning of that year, which says that the
    /// certificate of this number is revoked.
    fn revoke(&self, serial: u64, name: &str, until: i32) {
        let now = rcgen::date_time_ymd(2020, 1, 1);
        let list = CertificateRevocationListParams {
            this_update: now,
            next_update: rcgen::date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: now,
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).unwrap();
        std::fs::write(self.file(name), list.pem().unwrap()).unwrap();
    }

    fn server(&self, certificate: &str) -> Server {
        let option = |name: &str, file: &str| format!("--{name}={}", self.file(file).display());
        let options = [
            option("ssl-ca", "ca.pem"),
            option("ssl-cert", &format!("{certificate}.pem")),
            option("ssl-key", &format!("{certificate}-key.pem")),
            "--local-infile=1".into(),
            "--max-allowed-packet=64M".into(),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Server::start_with(Product::MariaDb, &options)
    }
}

fn options(server: &Server, transport: Transport, host: &str, tls: TlsOptions) -> Options {
    Options {
        user: "root".into(),
        host: host.into(),
        port: server.port,
        socket: Some(server.socket.clone()),
        transport,
        read_timeout: Some(Duration::from_secs(60)),
        tls,
        ..Options::default()
    }
}

fn tcp(server: &Server, tls: TlsOptions) -> Options {
    options(server, Transport::Tcp, "127.0.0.1", tls)
}

fn mode(mode: TlsMode) -> TlsOptions {
    TlsOptions {
        mode: Some(mode),
        ..TlsOptions::default()
    }
}

/// The session's value of a status variable.
fn status(connection: &mut Connection, name: &str) -> String {
    let rows = connection.rows(format!("SHOW SESSION STATUS LIKE '{name}'"));
    rows.unwrap().to_text()[0][1].clone()
}

/// What the connection is encrypted with, as both ends say.
fn cipher(options: &Options) -> String {
    let mut connection = Connection::connect(options).expect("it connects");
    let cipher = status(&mut connection, "Ssl_cipher");
    let session = connection.tls();
    assert_eq!(session.map_or("", |session| session.cipher), cipher);
    let version = session.map_or("", |session| session.version);
    assert_eq!(version, status(&mut connection, "Ssl_version"));
    cipher
}

fn refusal(options: &Options) -> String {
    match Connection::connect(options) {
        Err(Error::Tls(words)) => words,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_connection_is_encrypted_as_its_mode_says() {
    let authority = Authority::new();
    authority.issue("server", "server", &["localhost", "127.0.0.1"], 7);
    let server = authority.server("server");
    assert_eq!(cipher(&tcp(&server, mode(TlsMode::Disabled))), "");
    for tls in [TlsOptions::default(), mode(TlsMode::Required)] {
        assert_ne!(cipher(&tcp(&server, tls)), "");
    }
    let unix = |tls| options(&server, Transport::Unix, "localhost", tls);
    assert_eq!(cipher(&unix(TlsOptions::default())), "");
    assert_ne!(cipher(&unix(mode(TlsMode::Required))), "");
    let fast = |tls| Options {
        loopback_fast_path: true,
        ..tcp(&server, tls)
    };
    assert_eq!(cipher(&fast(TlsOptions::default())), "");
    assert_ne!(cipher(&fast(mode(TlsMode::Required))), "");

    for (versions, ciphers, suites, expected) in [
        (
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            "TLSv1.2",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (
            "",
            "",
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            "TLSv1.2,TLSv1.3",
            "",
            "TLS_AES_128_GCM_SHA256",
            "TLS_AES_128_GCM_SHA256",
        ),
    ] {
        let tls = TlsOptions {
            versions: Some(versions.into()),
            cipher: Some(ciphers.into()),
            ciphersuites: Some(suites.into()),
            ..mode(TlsMode::Required)
        };
        assert_eq!(cipher(&tcp(&server, tls)), expected);
    }
    let wrong = |change: fn(&mut TlsOptions)| {
        let mut tls = mode(TlsMode::Required);
        change(&mut tls);
        refusal(&tcp(&server, tls))
    };
    let no_cipher = wrong(|tls| tls.cipher = Some("RC4-MD5".into()));
    assert_eq!(no_cipher, "Failed to set ciphers to use");
    let no_version = wrong(|tls| tls.versions = Some("TLSv1.1".into()));
    assert_eq!(no_version, "TLS version is invalid");
    let no_key = wrong(|tls| tls.key = Some("/nonexistent".into()));
    assert_eq!(no_key, "Unable to get certificate");
    let no_ca = wrong(|tls| tls.mode = Some(TlsMode::VerifyIdentity));
    assert!(no_ca.starts_with("CA certificate is required"), "{no_ca}");
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_required() {
    let server = Server::start_with(Product::MariaDb, &["--skip-ssl"]);
    assert_eq!(cipher(&tcp(&server, TlsOptions::default())), "");
    let refused = refusal(&tcp(&server, mode(TlsMode::Required)));
    assert_eq!(refused, "SSL is required but the server doesn't support it");
}

#[test]
fn a_certificate_is_verified_as_far_as_the_mode_says() {
    let authority = Authority::new();
    authority.issue("common", "localhost", &[], 8);
    authority.issue("client", "client", &[], 9);
    authority.revoke(8, "crl.pem", 2099);
    authority.revoke(99, "none.pem", 2099);
    authority.revoke(99, "outdated.pem", 2021);
    let other = Authority::new();
    let server = authority.server("common");
    let verified = |level: Option<TlsMode>, ca: &Path, host: &str| {
        let tls = TlsOptions {
            mode: level,
            ca: Some(ca.into()),
            ..TlsOptions::default()
        };
        Connection::connect(&options(&server, Transport::Tcp, host, tls)).map(drop)
    };
    let (good, bad) = (authority.file("ca.pem"), other.file("ca.pem"));
    for (level, ca, host, trusted) in [
        (Some(TlsMode::Required), &bad, "127.0.0.1", true),
        (None, &bad, "127.0.0.1", false),
        (None, &good, "127.0.0.1", true),
        (Some(TlsMode::VerifyCa), &bad, "localhost", false),
        (Some(TlsMode::VerifyCa), &good, "127.0.0.1", true),
        (Some(TlsMode::VerifyIdentity), &good, "127.0.0.1", false),
        (Some(TlsMode::VerifyIdentity), &good, "localhost", true),
        (Some(TlsMode::VerifyIdentity), &bad, "localhost", false),
    ] {
        match verified(level, ca, host) {
            Ok(()) => assert!(trusted, "{level:?} {host}"),
            Err(Error::Tls(words)) => {
                assert!(!trusted, "{level:?} {host}: {words}");
                assert!(words.contains("certificate verify failed"), "{words}");
            }
            Err(error) => panic!("{error}"),
        }
    }

    let folder = TlsOptions {
        ca_path: Some(authority.folder.path().into()),
        ..mode(TlsMode::VerifyCa)
    };
    assert_ne!(cipher(&tcp(&server, folder)), "");
    let with_list = |name: &str| TlsOptions {
        ca: Some(good.clone()),
        crl: Some(authority.file(name)),
        ..mode(TlsMode::VerifyCa)
    };
    assert_ne!(cipher(&tcp(&server, with_list("none.pem"))), "");
    // Nobody knows what has been revoked since the second one was made.
    for name in ["crl.pem", "outdated.pem"] {
        let words = refusal(&tcp(&server, with_list(name)));
        assert!(words.contains("certificate verify failed"), "{words}");
    }

    let mut root = Connection::connect(&tcp(&server, TlsOptions::default())).unwrap();
    root.run("CREATE USER shown@'%' REQUIRE SUBJECT '/CN=client'")
        .unwrap();
    let as_shown = |tls| Options {
        user: "shown".into(),
        ..tcp(&server, tls)
    };
    let anonymous = Connection::connect(&as_shown(mode(TlsMode::Required))).unwrap_err();
    assert_eq!(anonymous.number(), Some(1045));
    let shown = TlsOptions {
        cert: Some(authority.file("client.pem")),
        key: Some(authority.file("client-key.pem")),
        ..mode(TlsMode::Required)
    };
    assert_ne!(cipher(&as_shown(shown)), "");
}

#[test]
fn a_session_is_resumed_until_its_files_change() {
    let authority = Authority::new();
    authority.issue("server", "server", &["127.0.0.1"], 7);
    let server = authority.server("server");
    for version in ["TLSv1.2", "TLSv1.3"] {
        let tls = TlsOptions {
            ca: Some(authority.file("ca.pem")),
            versions: Some(version.into()),
            ..mode(TlsMode::VerifyIdentity)
        };
        let options = tcp(&server, tls);
        let resumed = || {
            let mut connection = Connection::connect(&options).unwrap();
            connection.run("DO 1").unwrap();
            connection.tls().unwrap().is_resumed
        };
        assert!(!resumed(), "{version}");
        assert!(resumed(), "{version}");
        let ca = std::fs::read(authority.file("ca.pem")).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(authority.file("ca.pem"), ca).unwrap();
        assert!(!resumed(), "{version}");
    }
}

/// What passes in each direction, in small and large pieces.
fn exercise(options: &Options, infile: &Path) {
    let mut connection = Connection::connect(options).unwrap();
    connection
        .run("CREATE OR REPLACE DATABASE wire; USE wire; CREATE TABLE t (a INT, b LONGTEXT)")
        .unwrap();
    for length in [
        0,
        1,
        49,
        51,
        16_370,
        16_384,
        16_400,
        70_000,
        (16 << 20) - 50,
        17 << 20,
    ] {
        let text = "porpoise ".repeat(length / 9 + 1);
        let text = &text[..length];
        let statement = connection.prepare("SELECT ?, LENGTH(?)").unwrap();
        let rows = connection
            .execute(&statement, &[text.into(), text.into()])
            .unwrap()
            .rows()
            .unwrap();
        assert!(
            rows.get(0).unwrap().get::<&str>(0).unwrap() == text,
            "{length}"
        );
        connection.close_statement(statement);
        let rows = connection.rows(format!("SELECT '{text}', 1")).unwrap();
        assert!(
            rows.get(0).unwrap().get::<&str>(0).unwrap() == text,
            "{length}"
        );
    }

    // Many replies are due before the last statement is sent.
    let filler = "x".repeat(5000);
    for at in 0..2000 {
        connection
            .send_query(format!("SELECT {at}, '{filler}'"))
            .unwrap();
    }
    let mut poll = Poll::default();
    for at in 0..2000 {
        if at % 100 == 0 {
            let ready = poll.wait(&mut [&mut connection], None).unwrap();
            assert_eq!(ready, [0]);
        }
        let rows = connection.receive().unwrap().rows().unwrap();
        assert_eq!(rows.get(0).unwrap().get::<i64>(0).unwrap(), at);
    }

    // More packets than a number counts, in one answer.
    let lines = 600;
    connection.set_file_source(Some(Box::new(move |_, take| {
        for line in 0..lines {
            take(format!("{line}\t{}\n", "fish ".repeat(20)).as_bytes());
        }
        Ok(())
    })));
    let load = format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE t", infile.display());
    assert_eq!(connection.run(&load).unwrap().affected_rows, lines);
    let rows = connection.rows("SELECT SUM(a), COUNT(*) FROM t").unwrap();
    assert_eq!(rows.to_text(), [["179700", "600"]]);
    connection.change_user("root", "", Some("wire")).unwrap();
    let error = connection.run("SELECT nothing").unwrap_err();
    assert_eq!(error.number(), Some(1054));
    assert_eq!(connection.rows("SELECT 7").unwrap().to_text(), [["7"]]);
    let all = "SELECT REPEAT('long and wide ', 100) FROM seq_1_to_20000";
    let mut results = connection.query(all).unwrap();
    let mut count = 0;
    while let Some(row) = results.next_row().unwrap() {
        assert_eq!(row.get::<&str>(0).unwrap().len(), 1400);
        count += 1;
    }
    assert_eq!(count, 20_000);
    connection.close().unwrap();
}

#[test]
fn encrypted_and_compressed_connections_carry_everything() {
    let authority = Authority::new();
    authority.issue("server", "server", &["127.0.0.1"], 7);
    let server = authority.server("server");
    let zlib = CompressionOptions {
        zlib: true,
        ..CompressionOptions::default()
    };
    for (transport, level, compression) in [
        (
            Transport::Tcp,
            TlsMode::Required,
            CompressionOptions::default(),
        ),
        (Transport::Tcp, TlsMode::Disabled, zlib),
        (Transport::Unix, TlsMode::Required, zlib),
    ] {
        let options = Options {
            compression,
            capabilities: Capabilities::LOCAL_FILES,
            multi_statements: true,
            ..options(&server, transport, "127.0.0.1", mode(level))
        };
        let mut connection = Connection::connect(&options).unwrap();
        let compressed = if compression.zlib { "ON" } else { "OFF" };
        assert_eq!(status(&mut connection, "Compression"), compressed);
        let algorithm = connection.compression().map(|algorithm| algorithm.name());
        assert_eq!(algorithm, compression.zlib.then_some("zlib"));
        exercise(&options, &authority.file("infile"));
    }
}

#[test]
fn what_the_server_does_not_compress_with_is_refused_unless_nothing_will_do() {
    let server = Server::start(Product::MariaDb);
    let with = |list: &str| {
        let mut options = tcp(&server, mode(TlsMode::Disabled));
        options.compression.set_algorithms(list).unwrap();
        Connection::connect(&options)
    };
    assert!(matches!(with("zstd"), Err(Error::Compression)));
    assert_eq!(with("zstd,uncompressed").unwrap().compression(), None);
    let zlib = with("zstd,zlib").unwrap().compression();
    assert_eq!(zlib.map(|algorithm| algorithm.name()), Some("zlib"));
}
