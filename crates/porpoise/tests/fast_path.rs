//! The TCP loopback fast path: who gets it, who doesn't, and that nobody else notices.

mod common;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use common::served::Served;
use porpoise_client::Connection;
use porpoise_client::flags::{Capabilities, Status};
use porpoise_protocol::auth;
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_protocol::handshake::{Attributes, AuthStep, Greeting, Login, put_attribute};
use porpoise_protocol::reply::{ErrPacket, OkPacket};

/// Of an account that asks for the fast path, or doesn't.
fn url(served: &Served, account: &str, asks: bool) -> String {
    served.url(account, &format!("transport=tcp&loopback_fast_path={asks}"))
}

/// Held to write by the impostor, who fills the queues of all clients of this process.
static IMPOSTOR: RwLock<()> = RwLock::new(());

fn without_impostor() -> RwLockReadGuard<'static, ()> {
    // A test that failed has left nothing behind.
    IMPOSTOR.read().unwrap_or_else(PoisonError::into_inner)
}

/// The sockets of this process, by their numbers in `/proc/net/unix`.
fn own_sockets() -> HashSet<String> {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let number = |target: PathBuf| {
        let number = target.to_str()?.strip_prefix("socket:[")?;
        Some(number.strip_suffix(']')?.to_string())
    };
    targets.filter_map(number).collect()
}

fn kind(connection: &Connection) -> &'static str {
    connection.stream().kind()
}

#[test]
fn a_client_that_asks_a_willing_server_moves_to_shared_memory() {
    let _alone = without_impostor();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let served = Served::start(address, true);
        // One account per plugin: the second is asked for its password in the clear, which nobody
        // else can read now.
        for account in ["ann:secret", "eve:whispered"] {
            let mut connection = Connection::open(&url(&served, account, true)).unwrap();
            assert_eq!(kind(&connection), "shared memory");
            let long = "x".repeat(3_000_000);
            let sql = format!("SELECT LENGTH('{long}'), USER()");
            let user = format!("{}@localhost", account.split_once(':').unwrap().0);
            assert_eq!(
                connection.rows(&sql).unwrap().to_text(),
                [["3000000".into(), user]]
            );
        }
        assert_eq!(served.moved_and_stayed(), (2, 0));
    }
}

#[test]
fn unless_both_ask_it_stays_on_tcp() {
    let _alone = without_impostor();
    for (server, client) in [(true, false), (false, true), (false, false)] {
        let served = Served::start("127.0.0.1:0", server);
        let mut connection = Connection::open(&url(&served, "ann:secret", client)).unwrap();
        assert_eq!(kind(&connection), "TCP/IP");
        connection.run("SELECT 1").unwrap();
        assert_eq!(served.moved_and_stayed(), (0, 0));
    }
}

#[test]
fn the_server_can_be_told_while_it_runs() {
    let _alone = without_impostor();
    let served = Served::start("127.0.0.1:0", false);
    let connection = served.database.connect().unwrap();
    for (value, expected) in [("ON", "shared memory"), ("OFF", "TCP/IP")] {
        connection
            .execute(&format!("SET GLOBAL loopback_fast_path = {value}"), ())
            .unwrap();
        let client = Connection::open(&url(&served, "ann:secret", true)).unwrap();
        assert_eq!(kind(&client), expected);
    }
}

#[test]
fn who_is_refused_over_tcp_is_refused_after_moving_in_the_same_words() {
    let _alone = without_impostor();
    let served = Served::start("127.0.0.1:0", true);
    // root@localhost is for whoever owns a Unix socket's other end, which a TCP client never does.
    for account in ["ann:wrong", "nobody:secret", "root"] {
        let refusal = |asks| {
            Connection::open(&url(&served, account, asks))
                .unwrap_err()
                .to_string()
        };
        assert!(refusal(true).contains("ERROR 1045 (28000)"));
        assert_eq!(refusal(true), refusal(false));
    }
}

#[test]
fn a_client_that_moved_and_dies_is_noticed() {
    let _alone = without_impostor();
    let served = Served::start("127.0.0.1:0", true);
    let client = Connection::open(&url(&served, "ann:secret", true)).unwrap();
    let connection = served.database.connect().unwrap();
    let others = || {
        let clients = "SELECT id FROM information_schema.processlist WHERE command <> 'Daemon'";
        let rows = connection.query(clients, ()).unwrap();
        rows.len() - 1
    };
    assert_eq!(others(), 1);
    client.stream().shutdown().unwrap();
    for _ in 0..200 {
        if others() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("its session is still there");
}

/// Offers rings to every client of this process that waits for its server's, as fast as it can.
#[test]
fn an_impostor_who_offers_memory_to_every_client_gets_none() {
    let _alone = IMPOSTOR.write().unwrap_or_else(PoisonError::into_inner);
    let served = Served::start("127.0.0.1:0", true);
    let done = AtomicBool::new(false);
    let offered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut kept = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
                let own = own_sockets();
                let is_own = |line: &&str| {
                    let number = line.split_whitespace().nth(6);
                    number.is_some_and(|number| own.contains(number))
                };
                let names = sockets
                    .lines()
                    .filter(is_own)
                    .filter_map(|line| line.split_once("@porpoise-loopback-"));
                for (_, digits) in names {
                    use std::os::linux::net::SocketAddrExt;
                    use std::os::unix::net::{SocketAddr, UnixStream};
                    let name = format!("porpoise-loopback-{digits}");
                    let address = SocketAddr::from_abstract_name(name).unwrap();
                    let Ok(mut socket) = UnixStream::connect_addr(&address) else {
                        continue;
                    };
                    if socket.write_all(&[0; 32]).is_ok()
                        && let Ok(rings) = porpoise_transport::ServerEnd::offer(socket)
                    {
                        offered.fetch_add(1, Ordering::Relaxed);
                        kept.push(rings);
                    }
                }
                kept.truncate(20);
            }
        });
        let mut client = None;
        for at in 0..2000 {
            if at >= 50 && offered.load(Ordering::Relaxed) >= 20 {
                break;
            }
            let mut connection = Connection::open(&url(&served, "ann:secret", true)).unwrap();
            assert_eq!(connection.rows("SELECT 7 * 6").unwrap().to_text(), [["42"]]);
            client = Some(connection);
        }
        done.store(true, Ordering::Relaxed);
        assert!(client.is_some());
    });
    assert!(
        offered.load(Ordering::Relaxed) > 0,
        "the impostor found nobody"
    );
    assert!(served.moved_and_stayed().0 > 0);
}

/// A client that says on the wire what it likes.
struct Raw {
    tcp: TcpStream,
    reader: PacketReader,
    /// All that the server sent, its greeting's random bytes and the connection's number made
    /// alike.
    seen: Vec<Vec<u8>>,
}

const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::TRANSACTIONS);

impl Raw {
    /// Greets, and logs in as ann with these attributes. The reply is still to be read.
    fn log_in(served: &Served, attributes: &[(&str, &str)]) -> Raw {
        let tcp = TcpStream::connect(served.address).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut raw = Raw {
            tcp,
            reader: PacketReader::new(1 << 20),
            seen: Vec::new(),
        };
        let (_, payload) = raw.packet();
        let greeting = Greeting::parse(&payload).unwrap();
        let mut alike = PacketWriter::new();
        Greeting {
            nonce: [1; 20],
            connection_id: 1,
            ..greeting
        }
        .write(&mut alike);
        *raw.seen.last_mut().unwrap() = alike.bytes().to_vec();
        let plugin = auth::NATIVE_PASSWORD.as_bytes();
        let answer = auth::respond(plugin, b"secret", &greeting.nonce, false).unwrap();
        let mut bytes = Vec::new();
        for (name, value) in attributes {
            put_attribute(&mut bytes, name, value);
        }
        let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
        Login {
            capabilities: CAPABILITIES,
            max_packet_bytes: 1 << 24,
            collation: 45,
            user: b"ann",
            auth_response: &answer,
            database: None,
            auth_plugin: Some(plugin),
            attributes: Attributes::new(&bytes),
            zstd_level: None,
        }
        .write(&mut writer);
        raw.tcp.write_all(writer.bytes()).unwrap();
        raw
    }

    fn packet(&mut self) -> (u8, Vec<u8>) {
        loop {
            if let Some(packet) = self.reader.next_packet().unwrap() {
                let found = (packet.sequence, packet.payload.to_vec());
                let mut seen = vec![packet.sequence];
                seen.extend_from_slice(packet.payload);
                self.seen.push(seen);
                return found;
            }
            let count = self.tcp.read(self.reader.spare()).unwrap();
            assert_ne!(count, 0, "the server closed the connection");
            self.reader.filled(count);
        }
    }

    fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut writer = PacketWriter::with_buffer(Vec::new(), sequence);
        writer.write(payload);
        self.tcp.write_all(writer.bytes()).unwrap();
    }

    /// Reads the reply to the login, then runs some commands: everything that the server has sent.
    fn converse(mut self) -> Vec<Vec<u8>> {
        let (_, reply) = self.packet();
        let status = OkPacket::parse(&reply, CAPABILITIES).unwrap().status;
        assert!(status.contains(Status::AUTOCOMMIT));
        self.send(0, b"\x03SELECT 1 + 1");
        for _ in 0..5 {
            self.packet();
        }
        self.send(0, b"\x03NONSENSE");
        let (_, refusal) = self.packet();
        assert!(ErrPacket::parse(&refusal).unwrap().is_some());
        self.send(0, b"\x0e");
        self.packet();
        self.seen
    }
}

#[test]
fn clients_that_do_not_ask_see_plain_tcp_byte_for_byte() {
    let _alone = without_impostor();
    let (willing, unwilling) = (
        Served::start("127.0.0.1:0", true),
        Served::start("127.0.0.1:0", false),
    );
    let plain = Raw::log_in(&unwilling, &[]).converse();
    assert_eq!(Raw::log_in(&willing, &[]).converse(), plain);
    let others = [("_os", "Linux"), ("program_name", "mysql")];
    assert_eq!(Raw::log_in(&willing, &others).converse(), plain);
    // And whoever asks a server that isn't willing is answered as if they hadn't.
    let asks = [(
        "_loopback_fast_path",
        "porpoise-loopback-0123456789abcdef0123456789abcdef",
    )];
    assert_eq!(Raw::log_in(&unwilling, &asks).converse(), plain);
    // So is one whose name nobody listens at, and one whose name is none.
    assert_eq!(Raw::log_in(&willing, &asks).converse(), plain);
    let nonsense = [("_loopback_fast_path", "/run/other.sock")];
    assert_eq!(Raw::log_in(&willing, &nonsense).converse(), plain);
    assert_eq!(willing.moved_and_stayed().1, 2);
}

#[test]
fn a_client_that_cannot_take_the_memory_goes_on_over_tcp() {
    let _alone = without_impostor();
    let served = Served::start("127.0.0.1:0", true);
    let listener = porpoise_transport::loopback::RingsListener::open().unwrap();
    let mut raw = Raw::log_in(&served, &[("_loopback_fast_path", listener.name())]);
    let (sequence, packet) = raw.packet();
    let Ok(Some(AuthStep::More(ticket))) = AuthStep::parse(&packet) else {
        panic!("no ticket: {packet:?}");
    };
    assert!(porpoise_transport::loopback::is_ticket(ticket));
    raw.send(sequence + 1, &[0]);
    raw.converse();
    assert_eq!(served.moved_and_stayed(), (0, 1));
}
