//! How long a server takes to refuse a login: users that don't exist, wrong passwords, locked
//! accounts.
//!
//! The test `login` of `porpoise-server` compares the packets. This one measures the time, which a
//! test can't judge on a machine that runs other programs too: it prints a table for somebody to
//! read.
//!
//! ```sh
//! PORPOISE_LOGIN_TRIES=2000 PORPOISE_BIN=$PWD/target/release/porpoise \
//!     cargo test --release -p porpoise-e2e --test login_timing -- --nocapture
//! ```

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::Stream;
use porpoise_protocol::auth::public_key;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{AuthStep, Greeting, Login};
use porpoise_protocol::reply::ErrPacket;

const TRIES: usize = 5;

/// The users that are tried: kinds that no client may be able to tell apart. The first doesn't
/// exist.
const USERS: [&str; 8] = [
    "nobody", "strange", "known", "logged", "locked", "role", "counted", "twice",
];

#[derive(Clone, Copy, Debug)]
enum Method {
    /// The password as it is, over the Unix socket.
    Clear,
    /// The password under the server's key, over TCP.
    Encrypted,
    /// `mysql_native_password`'s answer: accounts with that plugin.
    Native,
    /// No password at all.
    Empty,
}

fn read_packet(stream: &mut dyn Stream) -> (u8, Vec<u8>) {
    let mut header = [0; 4];
    stream.read_exact(&mut header).unwrap();
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload).unwrap();
    (header[3], payload)
}

/// The time that the server takes for all its packets, up to the refusal.
fn refusal(server: &Server, user: &str, method: Method) -> Duration {
    let mut stream: Box<dyn Stream> = match method {
        Method::Clear | Method::Empty => Box::new(UnixStream::connect(&server.socket).unwrap()),
        Method::Encrypted | Method::Native => {
            let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            stream.set_nodelay(true).unwrap();
            Box::new(stream)
        }
    };
    let greeting = read_packet(&mut *stream).1;
    let nonce = Greeting::parse(&greeting).unwrap().nonce;
    let (plugin, answer): (&[u8], &[u8]) = match method {
        Method::Native => (b"mysql_native_password", &[7; 20]),
        Method::Empty => (b"caching_sha2_password", b""),
        Method::Clear | Method::Encrypted => (b"caching_sha2_password", &[7; 32]),
    };
    let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
    Login {
        capabilities: Capabilities::PROTOCOL_41
            | Capabilities::SECURE_CONNECTION
            | Capabilities::PLUGIN_AUTH,
        max_packet_bytes: 1 << 24,
        collation: 255,
        user: user.as_bytes(),
        auth_response: answer,
        database: None,
        auth_plugin: Some(plugin),
        attributes: Default::default(),
        zstd_level: None,
    }
    .write(&mut writer);
    let mut packet = writer.take();
    let mut took = Duration::ZERO;
    loop {
        let asked = Instant::now();
        stream.write_all(&packet).unwrap();
        let (sequence, reply) = read_packet(&mut *stream);
        took += asked.elapsed();
        if let Some(error) = ErrPacket::parse(&reply).unwrap() {
            assert_eq!(error.number, 1045);
            return took;
        }
        let answer = match (AuthStep::parse(&reply).unwrap(), method) {
            (Some(AuthStep::Switch { .. }), Method::Native) => vec![7; 20],
            (Some(AuthStep::Switch { .. }), _) => vec![],
            (Some(AuthStep::More(&[4])), Method::Clear) => b"a guess\0".to_vec(),
            (Some(AuthStep::More(&[4])), _) => vec![2],
            (Some(AuthStep::More(key)), _) => public_key::encrypt(b"a guess", &nonce, key).unwrap(),
            (None, _) => panic!("{user} was let in"),
        };
        let mut writer = PacketWriter::with_buffer(Vec::new(), sequence + 1);
        writer.write(&answer);
        packet = writer.take();
    }
}

fn quantile(sorted: &[Duration], part: f64) -> f64 {
    sorted[(sorted.len() as f64 * part) as usize].as_secs_f64() * 1e6
}

fn tries() -> usize {
    let asked = std::env::var("PORPOISE_LOGIN_TRIES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(TRIES)
}

/// Tries the users in turn, so that whatever else the machine does affects all of them.
fn measure(server: &Server, method: Method) {
    let mut times = USERS.map(|_| Vec::new());
    for round in 0..tries() + 2 {
        for (user, times) in USERS.iter().zip(&mut times) {
            let took = refusal(server, user, method);
            // In the first rounds the server makes its key and fills its caches.
            if round >= 2 {
                times.push(took);
            }
        }
    }
    println!("{method:?}, {} tries each, µs", tries());
    println!(
        "{:10} {:>10} {:>10} {:>10} {:>10}",
        "", "5 %", "median", "75 %", "95 %"
    );
    for (user, mut times) in USERS.into_iter().zip(times) {
        times.sort();
        let [a, b, c, d] = [0.05, 0.5, 0.75, 0.95].map(|part| quantile(&times, part));
        println!("{user:10} {a:10.1} {b:10.1} {c:10.1} {d:10.1}");
    }
}

fn start(plugin: &str) -> Server {
    let server = Server::start(Product::Porpoise);
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    root.query("ALTER USER root@localhost IDENTIFIED WITH auth_socket")
        .unwrap();
    for sql in [
        "CREATE USER known IDENTIFIED WITH PLUGIN BY 'secret'",
        "CREATE USER logged IDENTIFIED WITH PLUGIN BY 'secret'",
        "CREATE USER locked IDENTIFIED WITH PLUGIN BY 'secret' ACCOUNT LOCK",
        "CREATE USER role IDENTIFIED WITH PLUGIN ACCOUNT LOCK",
        "CREATE USER counted IDENTIFIED WITH PLUGIN BY 'secret' FAILED_LOGIN_ATTEMPTS 32767 PASSWORD_LOCK_TIME 1",
        "CREATE USER twice IDENTIFIED WITH PLUGIN BY 'before'",
        "ALTER USER twice IDENTIFIED BY 'secret' RETAIN CURRENT PASSWORD",
    ] {
        root.query(&sql.replace("PLUGIN", plugin)).unwrap();
    }
    // A search through all accounts would take longer for a user that doesn't exist.
    for number in 0..200 {
        let sql = format!("CREATE USER other{number} IDENTIFIED WITH {plugin}");
        root.query(&sql).unwrap();
    }
    server
}

#[test]
fn refusals_of_caching_sha2_password() {
    let server = start("caching_sha2_password");
    for method in [Method::Clear, Method::Encrypted, Method::Empty] {
        measure(&server, method);
    }
}

#[test]
fn refusals_of_mysql_native_password() {
    measure(&start("mysql_native_password"), Method::Native);
}
