//! Shared memory: everything that goes over a socket goes over it, and what is its own.
//!
//! Clients that die are processes of their own: this program, started again for the one test that
//! plays the client.

#[path = "server.rs"]
mod server;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use porpoise_protocol::handshake::REUSE_REQUEST;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use server::common::test_server::TestServer;
use server::common::{CLIENTS, RawClient, eventually};
use server::{LOCK_ROW, start};

const SOCKET: &str = "PORPOISE_TEST_SOCKET";
const DEATH: &str = "PORPOISE_TEST_DEATH";

/// Not a test of its own: the client of those below, when they say where the server is.
#[test]
fn client_that_dies() {
    let Ok(socket) = std::env::var(SOCKET) else {
        return;
    };
    let mut client = RawClient::local(Path::new(&socket))
        .unwrap()
        .login("root", "")
        .unwrap();
    for sql in ["USE test", "BEGIN", LOCK_ROW] {
        assert!(client.query(sql).is_ok());
    }
    let death = std::env::var(DEATH).unwrap();
    if death == "mid-write" {
        // A query of 1000 bytes, of which 14 come.
        client
            .wire
            .write_all(b"\xE8\x03\0\0\x03SELECT 1, ")
            .unwrap();
    }
    println!("locked");
    match death.as_str() {
        "exit" => std::process::exit(0),
        "mid-write" => std::process::abort(),
        _ => std::thread::sleep(Duration::from_secs(100)),
    }
}

fn start_client(server: &TestServer, death: &str) -> Child {
    let mut client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client_that_dies", "--nocapture"])
        .env(SOCKET, server.socket())
        .env(DEATH, death)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("locked")));
    client
}

#[test]
fn a_client_that_dies_in_whatever_way_is_rolled_back_at_once() {
    let server = start();
    for death in ["exit", "mid-write", "kill"] {
        let mut client = start_client(&server, death);
        if death == "kill" {
            client.kill().unwrap();
        }
        client.wait().unwrap();
        let died = Instant::now();
        assert!(server.in_transaction().query(LOCK_ROW).is_ok(), "{death}");
        let took = died.elapsed();
        assert!(took < Duration::from_secs(1), "{death}: {took:?}");
        println!("{death}: the lock was free after {took:?}");
        let processes = || server.root().query(CLIENTS);
        eventually(
            || matches!(processes(), server::common::Reply::Rows { rows, .. } if rows.len() == 1),
        );
    }
    assert_eq!(server.root().query("SELECT v FROM test.t").value(), "0");
}

/// Open descriptors, and rings that are mapped.
fn open_resources() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    (
        fs::read_dir("/proc/self/fd").unwrap().count(),
        maps.matches("porpoise-ring").count(),
    )
}

/// The program's other tests hold connections, too: they are counted in a process of their own.
#[test]
fn thousands_of_connections_opened_and_closed_leave_nothing_behind() {
    const ALONE: &str = "PORPOISE_TEST_CONNECTIONS";
    let Ok(connections) = std::env::var(ALONE) else {
        let name = "thousands_of_connections_opened_and_closed_leave_nothing_behind";
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(ALONE, "2000")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    };
    let server = start();
    // Two ends a connection: both are in this process.
    let witness = server.root();
    eventually(|| open_resources().1 == 2);
    let before = open_resources();
    for at in 0..connections.parse().unwrap() {
        let mut client = server.root();
        if at % 3 == 0 {
            assert_eq!(client.query("SELECT 1").value(), "1");
        }
        if at % 2 == 0 {
            client.send(0, &[1]).unwrap();
        }
    }
    eventually(|| open_resources() == before);
    drop(witness);
}

/// Takes the rings without using them as one should.
fn take_rings(server: &TestServer) -> io::Result<(UnixStream, File, OwnedFd)> {
    let socket = UnixStream::connect(path_of(&server.socket(), BASE_NAME))?;
    let mut offer = [0; 24];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut offer)];
    recvmsg(&socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let [memory, doorbell]: [OwnedFd; 2] = descriptors.collect::<Vec<_>>().try_into().unwrap();
    Ok((socket, memory.into(), doorbell))
}

/// Numbers that look random and are the same every time (xorshift).
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }
}

#[test]
fn whatever_a_client_writes_into_the_memory_harms_nobody_else() {
    let server = start();
    let mut witness = server.root();
    let mut random = Xorshift(7);
    for _ in 0..200 {
        let (socket, memory, doorbell) = take_rings(&server).unwrap();
        assert!(memory.set_len(0).is_err() && memory.set_len(1 << 20).is_err());
        for _ in 0..1 + random.below(60) {
            // Its own words and the server's, small numbers and large ones; then rubbish in the
            // rings.
            let at = random.below(4) * 8 + random.below(2) * 128;
            let word = random.next() >> random.below(64);
            memory.write_all_at(&word.to_ne_bytes(), at).unwrap();
            let rubbish = [(); 50].map(|()| random.next() as u8);
            let at = 4096 + random.below((80 << 10) - 50);
            memory.write_all_at(&rubbish, at).unwrap();
            rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
        }
        if random.below(2) == 0 {
            // Speaking on the socket is not allowed.
            let _ = (&socket).write_all(b"hello");
        }
        assert_eq!(witness.query("SELECT 1").value(), "1");
    }
    // One that lies about its cursors without end is served no more than its turn.
    let (_socket, memory, doorbell) = take_rings(&server).unwrap();
    let end = Instant::now() + Duration::from_secs(1);
    let mut answers = 0;
    while Instant::now() < end {
        for sent in 0..200u64 {
            memory.write_all_at(&sent.to_ne_bytes(), 0).unwrap();
            rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
        }
        assert_eq!(witness.query("SELECT 1").value(), "1");
        answers += 1;
    }
    assert!(answers > 10, "{answers}");
}

#[test]
fn what_rings_do_is_counted() {
    let server = start();
    let mut client = server.root();
    for _ in 0..10 {
        assert_eq!(client.query("SELECT 1").value(), "1");
        std::thread::sleep(Duration::from_millis(3));
    }
    let mut status = |name: &str| {
        let answer = client.query(&format!("SHOW GLOBAL STATUS LIKE 'Shared_memory_{name}'"));
        match answer {
            server::common::Reply::Rows { rows, .. } => {
                rows[0][1].clone().unwrap().parse::<u64>().unwrap()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status("connections"), 2);
    assert!(status("spins_won") + status("spins_lost") > 10);
    assert!(status("spins_lost") > 0);
    status("wakeups");
}

/// A client that has a password.
fn member(server: &TestServer) -> RawClient {
    let client = RawClient::local(&server.socket()).unwrap();
    client.login("member", "secret").unwrap()
}

fn start_with_member() -> TestServer {
    let server = start();
    let mut root = server.root();
    for sql in [
        "CREATE USER member@localhost IDENTIFIED BY 'secret'",
        "GRANT ALL ON *.* TO member@localhost",
        "SET GLOBAL max_connections = 500",
    ] {
        assert!(root.query(sql).is_ok(), "{sql}");
    }
    server
}

/// Takes leave and asks for a greeting over the same rings: all in one go, or one after the other.
fn reuse_rings(client: &mut RawClient, at_once: bool) {
    client.send(0, &[1]).unwrap();
    if !at_once {
        std::thread::sleep(Duration::from_millis(30));
    }
    client.send(0, REUSE_REQUEST).unwrap();
}

#[test]
fn a_client_that_comes_back_finds_nothing_of_the_connection_before() {
    let server = start_with_member();
    let mut witness = server.root();
    assert!(witness.query("USE test").is_ok());
    for at_once in [true, false] {
        let mut client = member(&server);
        let first_id = client.connection_id;
        for sql in [
            "SET @mine = 1, SESSION sort_buffer_size = 65536",
            "USE test",
            "CREATE TEMPORARY TABLE mine (id INT)",
            "BEGIN",
            LOCK_ROW,
        ] {
            assert!(client.query(sql).is_ok(), "{sql}");
        }
        reuse_rings(&mut client, at_once);
        let mut client = client.login("member", "secret").unwrap();
        assert!(client.connection_id > first_id);
        for (sql, expected) in [
            ("SELECT @mine IS NULL", "1"),
            ("SELECT DATABASE() IS NULL", "1"),
            ("SELECT @@sort_buffer_size = 65536", "0"),
            ("SELECT CONNECTION_ID() = @@pseudo_thread_id", "1"),
        ] {
            assert_eq!(client.query(sql).value(), expected, "{sql}");
        }
        assert_eq!(client.query("SELECT * FROM test.mine").error_number(), 1146);
        // Its row is free again.
        assert!(witness.query(LOCK_ROW).is_ok());
        let processes =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'";
        assert_eq!(witness.query(processes).value(), "2");
        client.send(0, &[1]).unwrap();
        // Seen by who is there anyway: another connection might still be leaving when the next
        // round counts.
        eventually(|| witness.query(processes).value() == "1");
    }
}

#[test]
fn a_client_that_comes_back_has_to_prove_who_it_is() {
    let server = start_with_member();
    let mut client = member(&server);
    reuse_rings(&mut client, true);
    let error = client.login("member", "wrong").err().unwrap();
    assert_eq!(error.0, 1045);

    // The socket's credentials count for the first connection only.
    let mut client = server.root();
    reuse_rings(&mut client, true);
    let error = client.login("root", "").err().unwrap();
    assert!(matches!(error.0, 1045 | 1698), "{error:?}");
}

#[test]
fn a_client_that_comes_back_when_all_slots_are_taken_has_to_connect_anew() {
    let server = start_with_member();
    let mut root = server.root();
    let mut client = member(&server);
    client.send(0, &[1]).unwrap();
    assert!(root.query("SET GLOBAL max_connections = 1").is_ok());
    client.send(0, REUSE_REQUEST).unwrap();
    assert!(client.is_closed());
    assert_eq!(root.query("SELECT 1").value(), "1");
}

#[test]
fn rings_are_kept_only_for_clients_that_had_logged_in_and_ask_for_them() {
    let server = start_with_member();
    // Nobody has logged in.
    let mut stranger = RawClient::local(&server.socket()).unwrap();
    stranger.packet().unwrap();
    reuse_rings(&mut stranger, true);
    assert!(stranger.is_closed());
    // Another packet than the one that asks for a greeting.
    let mut client = member(&server);
    client.send(0, &[1]).unwrap();
    client.send(0, b"\x03SELECT 1").unwrap();
    assert!(client.is_closed());
    // Too many of them.
    let mut clients: Vec<RawClient> = (0..400).map(|_| member(&server)).collect();
    for client in &mut clients {
        client.send(0, &[1]).unwrap();
    }
    // All have been seen to go before the first comes back and makes room.
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'";
    eventually(|| server.root().query(sql).value() == "1");
    let mut kept = 0;
    for mut client in clients {
        let is_back = client.send(0, REUSE_REQUEST).is_ok() && client.packet().is_ok();
        kept += usize::from(is_back);
    }
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    assert!((1..=64 * workers).contains(&kept), "{kept}");
}
