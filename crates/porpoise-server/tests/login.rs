//! What a client that knows no password learns from a login: nothing but that it is refused.
//!
//! A *dialogue* is every packet that a server sends to a client that knows no password, nonces and
//! names masked. It is compared between accounts and users that don't exist. How long it takes is
//! measured by `login_timing` in `porpoise-e2e`.

pub mod common;

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use common::test_server::{TestServer, in_memory};
use common::{RawClient, eventually};
use porpoise_protocol::auth::{self, CACHING_SHA2_PASSWORD, NATIVE_PASSWORD};
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{AuthStep, Greeting, Login};
use porpoise_protocol::reply::ErrPacket;
use porpoise_server::ServerOptions;

fn start(accounts: &[&str]) -> TestServer {
    let options = ServerOptions {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        workers: 1,
        ..ServerOptions::default()
    };
    TestServer::start(in_memory(&[]), options, accounts)
}

/// What a client that knows no password tries.
#[derive(Clone, Copy, Debug)]
struct Guess {
    plugin: &'static str,
    /// The first response; empty for no password.
    response: &'static [u8],
    /// Requests the server's public key where the password itself is asked for.
    requests_key: bool,
}

const GUESSES: [Guess; 8] = {
    const fn guess(plugin: &'static str, response: &'static [u8], requests_key: bool) -> Guess {
        Guess {
            plugin,
            response,
            requests_key,
        }
    }
    [
        guess(CACHING_SHA2_PASSWORD, b"", false),
        guess(CACHING_SHA2_PASSWORD, &[7; 32], false),
        guess(CACHING_SHA2_PASSWORD, &[7; 32], true),
        guess(CACHING_SHA2_PASSWORD, &[7; 5], true),
        guess(NATIVE_PASSWORD, b"", false),
        guess(NATIVE_PASSWORD, &[7; 20], true),
        guess(NATIVE_PASSWORD, &[7; 33], false),
        guess("client_ed25519", b"", true),
    ]
};

impl Guess {
    fn with_password(self) -> bool {
        !self.response.is_empty()
    }

    fn respond(self, step: AuthStep<'_>) -> Vec<u8> {
        match step {
            _ if !self.with_password() => Vec::new(),
            AuthStep::Switch { plugin, .. } if plugin == NATIVE_PASSWORD.as_bytes() => vec![9; 20],
            AuthStep::Switch { .. } => vec![9; 32],
            AuthStep::More(&[4]) if self.requests_key => vec![2],
            AuthStep::More(&[4]) => b"a guess\0".to_vec(),
            AuthStep::More(_) => vec![9; 256],
        }
    }
}

const CAPABILITIES: Capabilities = common::CAPABILITIES;

fn login_packet(user: &str, guess: Guess) -> Vec<u8> {
    login_packet_in(255, user, guess)
}

fn login_packet_in(collation: u8, user: &str, guess: Guess) -> Vec<u8> {
    let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
    Login {
        capabilities: CAPABILITIES,
        max_packet_bytes: 1 << 24,
        collation,
        user: user.as_bytes(),
        auth_response: guess.response,
        database: None,
        auth_plugin: Some(guess.plugin.as_bytes()),
        attributes: Default::default(),
        zstd_level: None,
    }
    .write(&mut writer);
    writer.take()
}

fn change_user_packet(user: &str, guess: Guess) -> Vec<u8> {
    change_user_packet_in(255, user, guess)
}

fn change_user_packet_in(collation: u8, user: &str, guess: Guess) -> Vec<u8> {
    let length = [guess.response.len() as u8];
    let parts: [&[u8]; 7] = [
        &[0x11],
        user.as_bytes(),
        &[0],
        &length,
        guess.response,
        &[0, collation, 0],
        guess.plugin.as_bytes(),
    ];
    let mut writer = PacketWriter::new();
    writer.write(&[&parts.concat()[..], &[0]].concat());
    writer.take()
}

/// A packet without what differs each time, or by name.
fn masked(packet: &[u8], user: &str) -> String {
    if let Ok(Some(error)) = ErrPacket::parse(packet) {
        let message = String::from_utf8_lossy(error.message);
        return format!("{} {}", error.number, message.replace(user, "USER"));
    }
    match AuthStep::parse(packet) {
        Ok(Some(AuthStep::Switch { plugin, nonce })) => {
            format!(
                "switch to {} {}",
                String::from_utf8_lossy(plugin),
                nonce.len()
            )
        }
        Ok(Some(AuthStep::More(bytes))) => format!("more {} {:?}", bytes.len(), bytes.first()),
        other => format!("{other:?} {:?}", packet.first()),
    }
}

/// All that is said to the guess, to the refusal and the end of the connection.
fn dialogue(client: &mut RawClient, user: &str, guess: Guess) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let (sequence, packet) = client.packet().unwrap();
        heard.push(format!("{sequence}: {}", masked(&packet, user)));
        match AuthStep::parse(&packet) {
            Ok(Some(step)) => client.send(sequence + 1, &guess.respond(step)).unwrap(),
            _ => {
                if client.is_closed() {
                    heard.push("closed".to_string());
                }
                return heard;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum LoginPath {
    Unix,
    Tcp,
    ChangeUser,
}

const LOGIN_PATHS: [LoginPath; 3] = [LoginPath::Unix, LoginPath::Tcp, LoginPath::ChangeUser];

fn greeted(server: &TestServer, path: LoginPath) -> RawClient {
    let mut client = match path {
        LoginPath::Tcp => RawClient::tcp(server.server.tcp_addresses()[0]).unwrap(),
        LoginPath::Unix => RawClient::local(&server.socket()).unwrap(),
        LoginPath::ChangeUser => return server.root(),
    };
    Greeting::parse(&client.packet().unwrap().1).unwrap();
    client
}

fn guesses_at(server: &TestServer, user: &str, path: LoginPath, guess: Guess) -> Vec<String> {
    let mut client = greeted(server, path);
    let packet = match path {
        LoginPath::ChangeUser => change_user_packet(user, guess),
        LoginPath::Unix | LoginPath::Tcp => login_packet(user, guess),
    };
    client.wire.write_all(&packet).unwrap();
    dialogue(&mut client, user, guess)
}

#[test]
fn users_that_do_not_exist_and_accounts_of_all_kinds_are_refused_alike() {
    let server = start(&[
        "CREATE USER ann IDENTIFIED BY 'secret'",
        "CREATE USER cached IDENTIFIED BY 'secret'",
        "CREATE USER locked IDENTIFIED BY 'secret' ACCOUNT LOCK",
        "CREATE USER lockedout ACCOUNT LOCK",
        "CREATE USER expired IDENTIFIED BY 'secret' PASSWORD EXPIRE",
        "CREATE USER old IDENTIFIED BY 'secret' PASSWORD EXPIRE INTERVAL 1 DAY",
        "CREATE USER limited IDENTIFIED BY 'secret' WITH MAX_USER_CONNECTIONS 1",
        "CREATE USER twice IDENTIFIED BY 'before'",
        "ALTER USER twice IDENTIFIED BY 'secret' RETAIN CURRENT PASSWORD",
        "CREATE USER nopass",
        "CREATE USER elsewhere@'203.0.113.9' IDENTIFIED BY 'secret'",
        "CREATE USER daemon IDENTIFIED WITH auth_socket",
        "CREATE ROLE waiter",
    ]);
    server.local("cached", "secret").unwrap();
    let accounts = [
        "ann",
        "cached",
        "locked",
        "lockedout",
        "expired",
        "old",
        "limited",
        "twice",
        "nopass",
        "elsewhere",
        "daemon",
        "waiter",
    ];
    for path in LOGIN_PATHS {
        for guess in GUESSES {
            let stranger = guesses_at(&server, "nobody", path, guess);
            assert!(stranger.last().is_some_and(|last| last == "closed"));
            for user in accounts {
                if user == "nopass" && !guess.with_password() {
                    continue;
                }
                let heard = guesses_at(&server, user, path, guess);
                assert_eq!(heard, stranger, "{user} {path:?} {guess:?}");
            }
        }
    }
    // Over TCP the user at the other end isn't known, so root's account belongs to nobody.
    for guess in GUESSES {
        let stranger = guesses_at(&server, "nobody", LoginPath::Tcp, guess);
        assert_eq!(guesses_at(&server, "root", LoginPath::Tcp, guess), stranger);
    }
}

#[test]
fn users_that_do_not_exist_are_asked_by_any_plugin_that_accounts_have_and_always_by_the_same() {
    let server = start(&[
        "CREATE USER sha IDENTIFIED WITH caching_sha2_password BY 'secret'",
        "CREATE USER nat IDENTIFIED WITH mysql_native_password BY 'secret'",
        "CREATE USER natlocked IDENTIFIED WITH mysql_native_password BY 'secret' ACCOUNT LOCK",
        "CREATE USER natnone IDENTIFIED WITH mysql_native_password",
        "ALTER USER sha IDENTIFIED BY 'another' RETAIN CURRENT PASSWORD",
    ]);
    for path in LOGIN_PATHS {
        for guess in GUESSES {
            let at = |user: &str| guesses_at(&server, user, path, guess);
            let (sha, nat) = (at("sha"), at("nat"));
            assert_eq!(at("natlocked"), nat, "{path:?} {guess:?}");
            if guess.with_password() {
                assert_eq!(at("natnone"), nat, "{path:?} {guess:?}");
            }
            let mut as_nat = 0;
            for number in 0..24 {
                let user = format!("nobody{number}");
                let heard = at(&user);
                assert_eq!(at(&user), heard, "asked again");
                assert!(heard == sha || heard == nat, "{path:?} {guess:?} {heard:?}");
                as_nat += usize::from(heard == nat);
            }
            if sha != nat {
                assert!((1..24).contains(&as_nat), "{as_nat} of 24");
            }
        }
    }
}

#[test]
fn what_bars_an_account_is_told_to_its_owner() {
    let server = start(&[
        "CREATE USER locked IDENTIFIED BY 'secret' ACCOUNT LOCK",
        "CREATE USER natlocked IDENTIFIED WITH mysql_native_password BY 'secret' ACCOUNT LOCK",
        "CREATE USER expired IDENTIFIED BY 'secret' PASSWORD EXPIRE",
        "CREATE USER lockedout ACCOUNT LOCK",
    ]);
    let number = |user: &str, password: &str| server.local(user, password).err().unwrap().0;
    for (user, barred) in [("locked", 3118), ("natlocked", 3118), ("expired", 1862)] {
        assert_eq!(number(user, "guess"), 1045, "{user}");
        assert_eq!(number(user, ""), 1045, "{user}");
        assert_eq!(number(user, "secret"), barred, "{user}");
    }
    // An empty password proves nothing.
    assert_eq!(number("lockedout", ""), 1045);
    assert_eq!(server.count("Locked_connects"), 3);
}

#[test]
fn too_many_wrong_passwords_lock_an_account_for_everybody() {
    let server = start(&[
        "CREATE USER u IDENTIFIED BY 'secret' FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3",
        "CREATE USER v IDENTIFIED BY 'secret' FAILED_LOGIN_ATTEMPTS 2",
    ]);
    let number = |user: &str, password: &str| server.local(user, password).err().map(|e| e.0);
    assert_eq!(number("u", "guess"), Some(1045));
    // The right one in between: they have to be in a row.
    assert_eq!(number("u", "secret"), None);
    assert_eq!(number("u", "guess"), Some(1045));
    assert_eq!(number("u", "guess"), Some(3955));
    // Who goes on guessing doesn't learn which one is right.
    assert_eq!(number("u", "secret"), Some(3955));
    assert_eq!(number("u", ""), Some(3955));
    server.root().query("ALTER USER u ACCOUNT UNLOCK");
    assert_eq!(number("u", "secret"), None);
    // Without a time there is no lock.
    for _ in 0..4 {
        assert_eq!(number("v", "guess"), Some(1045));
    }
    assert_eq!(number("v", "secret"), None);
}

#[test]
fn connections_of_an_account_are_limited() {
    let server = start(&[
        "CREATE USER few IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 2",
        "CREATE USER seldom IDENTIFIED BY 'x' WITH MAX_CONNECTIONS_PER_HOUR 2",
    ]);
    let connect = |user: &str| server.local(user, "x").map_err(|error| error.0);
    let first = connect("few").unwrap();
    let _second = connect("few").unwrap();
    assert_eq!(connect("few").err(), Some(1226));
    drop(first);
    eventually(|| connect("few").is_ok());
    for _ in 0..2 {
        connect("seldom").unwrap();
    }
    assert_eq!(connect("seldom").err(), Some(1226));
    server.root().query("FLUSH USER_RESOURCES");
    connect("seldom").unwrap();
}

#[test]
fn an_account_acts_as_the_one_that_it_has_proxy_on_where_that_is_wanted() {
    let server = start(&[
        "CREATE USER worker IDENTIFIED WITH mysql_native_password BY 'x'",
        "CREATE USER boss IDENTIFIED BY 'y' ACCOUNT LOCK",
        "GRANT PROXY ON boss TO worker",
    ]);
    let who = || {
        let mut worker = server.local("worker", "x").unwrap();
        let shown = worker.query("SELECT CONCAT_WS(',', USER(), CURRENT_USER(), @@proxy_user)");
        shown.value().to_string()
    };
    assert_eq!(who(), "worker@localhost,worker@%");
    let mut root = server.root();
    assert!(root.query("SET GLOBAL check_proxy_users = ON").is_ok());
    assert_eq!(who(), "worker@localhost,worker@%");
    assert!(
        root.query("SET GLOBAL mysql_native_password_proxy_users = ON")
            .is_ok()
    );
    assert_eq!(who(), "worker@localhost,boss@%,'worker'@'%'");
    assert!(root.query("REVOKE PROXY ON boss FROM worker").is_ok());
    assert_eq!(who(), "worker@localhost,worker@%");
}

#[test]
fn both_passwords_of_an_account_let_in() {
    let server = start(&[
        "CREATE USER u IDENTIFIED BY 'one'",
        "ALTER USER u IDENTIFIED BY 'two' RETAIN CURRENT PASSWORD",
        "CREATE USER n IDENTIFIED WITH mysql_native_password BY 'one'",
        "ALTER USER n IDENTIFIED BY 'two' RETAIN CURRENT PASSWORD",
    ]);
    for user in ["u", "n"] {
        // The second time they are in the cache.
        for password in ["one", "two", "one", "two"] {
            server.local(user, password).unwrap();
        }
        assert_eq!(server.local(user, "three").err().unwrap().0, 1045);
        let discard = format!("ALTER USER {user} DISCARD OLD PASSWORD");
        assert!(server.root().query(&discard).is_ok());
        assert_eq!(server.local(user, "one").err().unwrap().0, 1045);
        server.local(user, "two").unwrap();
    }
}

#[test]
fn the_owner_of_a_peer_credential_account_is_let_in_whatever_the_client_answers() {
    let server = start(&[]);
    for path in [LoginPath::Unix, LoginPath::ChangeUser] {
        for guess in GUESSES {
            let mut client = greeted(&server, path);
            let packet = match path {
                LoginPath::ChangeUser => change_user_packet("root", guess),
                LoginPath::Unix | LoginPath::Tcp => login_packet("root", guess),
            };
            client.wire.write_all(&packet).unwrap();
            loop {
                let (sequence, packet) = client.packet().unwrap();
                match AuthStep::parse(&packet) {
                    Ok(Some(AuthStep::More(&[3]))) => {
                        assert!(guess.plugin == CACHING_SHA2_PASSWORD && guess.with_password());
                    }
                    Ok(Some(step @ AuthStep::Switch { .. })) => {
                        client.send(sequence + 1, &guess.respond(step)).unwrap();
                    }
                    Ok(None) if packet[0] == 0 => break,
                    _ => panic!("{path:?} {guess:?} {packet:?}"),
                }
            }
            assert_eq!(client.query("SELECT 1").value(), "1");
        }
    }
}

/// What a server says to bytes in place of a login: the number of the error, after which it has
/// closed the connection.
fn refusal_of(server: &TestServer, bytes: &[u8]) -> Option<u16> {
    let mut client = greeted(server, LoginPath::Unix);
    // It may have gone before all of it was said.
    let _ = client.wire.write_all(bytes);
    let error = client.packet().ok().and_then(|(_, packet)| {
        let error = ErrPacket::parse(&packet).ok().flatten();
        error.map(|error| error.number)
    });
    assert!(error.is_none() || client.is_closed());
    error
}

#[test]
fn a_client_that_would_write_statements_in_a_wide_character_set_is_refused() {
    let server = start(&["CREATE USER ann"]);
    let no_password = GUESSES[0];
    // ucs2_general_ci, utf16_general_ci, utf16le_bin, utf32_unicode_ci.
    for (collation, charset) in [(35, "ucs2"), (54, "utf16"), (62, "utf16le"), (160, "utf32")] {
        for path in LOGIN_PATHS {
            let mut client = greeted(&server, path);
            let packet = match path {
                LoginPath::ChangeUser => change_user_packet_in(collation, "ann", no_password),
                _ => login_packet_in(collation, "ann", no_password),
            };
            client.wire.write_all(&packet).unwrap();
            let heard = dialogue(&mut client, "ann", no_password);
            let refusal = format!(
                "1231 Variable 'character_set_client' can't be set to the value of '{charset}'"
            );
            let [.., error, end] = &heard[..] else {
                panic!("{path:?}: {heard:?}");
            };
            assert!(error.ends_with(&refusal), "{path:?}: {heard:?}");
            assert_eq!(end, "closed");
        }
    }
    assert!(server.root().query("DO 1").is_ok());
}

#[test]
fn bytes_that_are_no_login_are_refused_and_the_connection_ends() {
    let server = start(&["CREATE USER nat IDENTIFIED WITH mysql_native_password BY 'secret'"]);
    let guess = GUESSES[5];
    let login = login_packet("nat", guess);
    for (what, bytes, number) in [
        ("nothing at all", vec![0, 0, 0, 1], 1043),
        ("one byte", vec![1, 0, 0, 1, 0x85], 1043),
        (
            "another packet's number",
            [&login[..3], &[0], &login[4..]].concat(),
            1156,
        ),
        (
            "a number ahead",
            [&login[..3], &[2], &login[4..]].concat(),
            1156,
        ),
        (
            "the last number",
            [&login[..3], &[255], &login[4..]].concat(),
            1156,
        ),
        ("16 MiB", vec![0xFF, 0xFF, 0xFF, 1], 1153),
        ("more than a login may take", vec![1, 0, 0x10, 1], 1153),
        (
            "TLS",
            [&[32, 0, 0, 1, 0, 0x0A, 0, 0][..], &[0; 28]].concat(),
            1043,
        ),
        (
            "a login of before 4.1",
            [&[9, 0, 0, 1, 0x85, 0x24][..], &[0; 7]].concat(),
            1251,
        ),
        (
            "an answer of no plugin's length",
            login_packet("nat", GUESSES[6]),
            1043,
        ),
    ] {
        assert_eq!(refusal_of(&server, &bytes), Some(number), "{what}");
    }
    // Cut anywhere.
    for length in 0..login.len() - 4 {
        let mut cut = login[..4 + length].to_vec();
        cut[0] = length as u8;
        let number = refusal_of(&server, &cut);
        assert!(
            matches!(number, Some(1043 | 1045 | 1251) | None),
            "{length}: {number:?}"
        );
    }
    // Anything.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for round in 0..500 {
        let mut bytes = login.clone();
        for _ in 0..1 + round % 7 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = 4 + (state >> 33) as usize % (bytes.len() - 4);
            bytes[at] = (state >> 24) as u8;
        }
        let mut client = greeted(&server, LoginPath::Unix);
        client.wire.write_all(&bytes).unwrap();
        let (_, reply) = client.packet().unwrap();
        assert_ne!(reply[0], 0, "let in");
    }
    assert_eq!(server.root().query("SELECT 1").value(), "1");
}

#[test]
fn answers_to_questions_are_numbered_and_have_their_length() {
    let server = start(&[
        "CREATE USER nat IDENTIFIED WITH mysql_native_password BY 'secret'",
        "CREATE USER sha IDENTIFIED WITH caching_sha2_password BY 'secret'",
    ]);
    // The user, the response, its number beyond the question's, and the error that follows.
    let cases: [(&str, &[u8], u8, u16); 9] = [
        ("nat", &[9; 20], 1, 1045),
        ("nat", &[9; 20], 0, 1156),
        ("nat", &[9; 20], 2, 1156),
        ("nat", &[9; 19], 1, 1043),
        ("nat", &[9; 4000], 1, 1043),
        ("sha", b"guess\0", 1, 1045),
        ("sha", b"guess\0", 3, 1156),
        ("sha", b"no end", 1, 1045),
        ("sha", b"", 1, 1045),
    ];
    for path in LOGIN_PATHS {
        for (user, answer, beyond, number) in cases {
            let guess = GUESSES[1];
            let mut client = greeted(&server, path);
            let packet = match path {
                LoginPath::ChangeUser => change_user_packet(user, guess),
                LoginPath::Unix | LoginPath::Tcp => login_packet(user, guess),
            };
            client.wire.write_all(&packet).unwrap();
            let (sequence, question) = client.packet().unwrap();
            assert!(AuthStep::parse(&question).unwrap().is_some());
            client.send(sequence + beyond, answer).unwrap();
            let (_, packet) = client.packet().unwrap();
            let error = ErrPacket::parse(&packet).unwrap().unwrap();
            assert_eq!(
                error.number,
                number,
                "{path:?} {user} {} {beyond}",
                answer.len()
            );
            assert!(client.is_closed());
        }
    }
}

#[test]
fn clients_that_break_off_anywhere_leave_nothing() {
    let server = start(&["CREATE USER nat IDENTIFIED WITH mysql_native_password BY 'secret'"]);
    let login = login_packet("nat", GUESSES[1]);
    let aborted = server.count("Aborted_connects");
    for length in 0..login.len() {
        let mut client = UnixStream::connect(server.socket()).unwrap();
        client.write_all(&login[..length]).unwrap();
    }
    // With the question asked, and nobody there to answer it.
    for _ in 0..20 {
        let address = server.server.tcp_addresses()[0];
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(&login).unwrap();
    }
    let all = aborted + login.len() as u64 + 20;
    eventually(|| server.count("Aborted_connects") == all);
    eventually(|| server.count("Threads_connected") == 1);
}

#[test]
fn a_nonce_is_never_given_twice() {
    let server = start(&[]);
    let nonces: std::collections::HashSet<_> = (0..100)
        .map(|_| {
            let mut client = RawClient::local(&server.socket()).unwrap();
            let (_, greeting) = client.packet().unwrap();
            Greeting::parse(&greeting).unwrap().nonce
        })
        .collect();
    assert_eq!(nonces.len(), 100);
    assert!(
        nonces
            .iter()
            .all(|nonce| nonce.len() == auth::nonce().len())
    );
}

#[test]
fn show_status_tells_the_key_that_clients_are_sent() {
    let server = start(&["CREATE USER ann IDENTIFIED WITH caching_sha2_password BY 'pw'"]);
    let key = server.status("Caching_sha2_password_rsa_public_key");
    assert!(key.starts_with("-----BEGIN PUBLIC KEY-----\n"), "{key}");
    assert_eq!(server.status("%rsa\\_public\\_key"), key);
    let mut root = server.root();
    for (condition, rows) in [
        ("LIKE 'Threads%'", 0),
        ("LIKE 'rsa%'", 1),
        ("= 'RSA_public_key'", 1),
    ] {
        let found = root.query(&format!(
            "SELECT * FROM performance_schema.global_status WHERE variable_name {condition}"
        ));
        let of_key = found
            .rows()
            .iter()
            .filter(|row| row[1].as_deref() == Some(&key));
        assert_eq!(of_key.count(), rows, "{condition}");
    }
    // What a client asks for on TCP without TLS.
    let mut client = greeted(&server, LoginPath::Tcp);
    let asks = GUESSES.iter().find(|guess| guess.requests_key).unwrap();
    client.wire.write_all(&login_packet("ann", *asks)).unwrap();
    let (sequence, packet) = client.packet().unwrap();
    assert_eq!(packet, [1, 4]);
    client.send(sequence.wrapping_add(1), &[2]).unwrap();
    let (_, packet) = client.packet().unwrap();
    assert_eq!(packet, [&[1], key.as_bytes()].concat());
    // One that has it already asks for nothing, on loopback neither.
    let mut client = RawClient::tcp(server.server.tcp_addresses()[0]).unwrap();
    let greeting = client.packet().unwrap().1;
    let nonce = Greeting::parse(&greeting).unwrap().nonce.to_vec();
    client.wire.write_all(&login_packet("ann", *asks)).unwrap();
    let (sequence, packet) = client.packet().unwrap();
    assert_eq!(packet, [1, 4]);
    let encrypted = auth::public_key::encrypt(b"pw", &nonce, key.as_bytes()).unwrap();
    client.send(sequence.wrapping_add(1), &encrypted).unwrap();
    assert_eq!(client.packet().unwrap().1[0], 0);
}
