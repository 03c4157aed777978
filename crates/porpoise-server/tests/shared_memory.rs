//! Shared memory: everything that goes over a socket goes over it, and what is its own.
//!
//! Clients that die are processes of their own: this program, started again for the one test that plays the client.

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

use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use server::common::Raw;
use server::{LOCK, Running, eventually, start};

const SOCKET: &str = "PORPOISE_TEST_SOCKET";
const DEATH: &str = "PORPOISE_TEST_DEATH";

/// Not a test of its own: the client of those below, when they say where the server is.
#[test]
fn client_that_dies() {
    let Ok(socket) = std::env::var(SOCKET) else {
        return;
    };
    let mut client = Raw::local(Path::new(&socket))
        .unwrap()
        .login("root", "")
        .unwrap();
    for sql in ["USE test", "BEGIN", LOCK] {
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

fn start_client(running: &Running, death: &str) -> Child {
    let mut client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client_that_dies", "--nocapture"])
        .env(SOCKET, running.socket())
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
    let running = start();
    for death in ["exit", "mid-write", "kill"] {
        let mut client = start_client(&running, death);
        if death == "kill" {
            client.kill().unwrap();
        }
        client.wait().unwrap();
        let died = Instant::now();
        assert!(running.worker().query(LOCK).is_ok(), "{death}");
        let took = died.elapsed();
        assert!(took < Duration::from_secs(1), "{death}: {took:?}");
        println!("{death}: the lock was free after {took:?}");
        let processes = || running.root().query("SHOW PROCESSLIST");
        eventually(
            || matches!(processes(), server::common::Answer::Rows { rows, .. } if rows.len() == 1),
        );
    }
    assert_eq!(running.root().query("SELECT v FROM test.t").one(), "0");
}

/// Open descriptors, and rings that are mapped.
fn holdings() -> (usize, usize) {
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
    let running = start();
    // Two ends a connection: both are in this process.
    let witness = running.root();
    eventually(|| holdings().1 == 2);
    let before = holdings();
    for at in 0..connections.parse().unwrap() {
        let mut client = running.root();
        if at % 3 == 0 {
            assert_eq!(client.query("SELECT 1").one(), "1");
        }
        if at % 2 == 0 {
            client.send(0, &[1]).unwrap();
        }
    }
    eventually(|| holdings() == before);
    drop(witness);
}

/// Takes the rings without using them as one should.
fn take_rings(running: &Running) -> io::Result<(UnixStream, File, OwnedFd)> {
    let socket = UnixStream::connect(path_of(&running.socket(), BASE_NAME))?;
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
struct Noise(u64);

impl Noise {
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
    let running = start();
    let mut witness = running.root();
    let mut noise = Noise(7);
    for _ in 0..200 {
        let (socket, memory, doorbell) = take_rings(&running).unwrap();
        assert!(memory.set_len(0).is_err() && memory.set_len(1 << 20).is_err());
        for _ in 0..1 + noise.below(60) {
            // Its own words and the server's, small numbers and large ones; then rubbish in the rings.
            let at = noise.below(4) * 8 + noise.below(2) * 128;
            let word = noise.next() >> noise.below(64);
            memory.write_all_at(&word.to_ne_bytes(), at).unwrap();
            let rubbish = [(); 50].map(|()| noise.next() as u8);
            let at = 4096 + noise.below((80 << 10) - 50);
            memory.write_all_at(&rubbish, at).unwrap();
            rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
        }
        if noise.below(2) == 0 {
            // Speaking on the socket is not allowed.
            let _ = (&socket).write_all(b"hello");
        }
        assert_eq!(witness.query("SELECT 1").one(), "1");
    }
    // One that lies about its cursors without end is served no more than its turn.
    let (_socket, memory, doorbell) = take_rings(&running).unwrap();
    let end = Instant::now() + Duration::from_secs(1);
    let mut answers = 0;
    while Instant::now() < end {
        for sent in 0..200u64 {
            memory.write_all_at(&sent.to_ne_bytes(), 0).unwrap();
            rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
        }
        assert_eq!(witness.query("SELECT 1").one(), "1");
        answers += 1;
    }
    assert!(answers > 10, "{answers}");
}

#[test]
fn what_rings_do_is_counted() {
    let running = start();
    let mut client = running.root();
    for _ in 0..10 {
        assert_eq!(client.query("SELECT 1").one(), "1");
        std::thread::sleep(Duration::from_millis(3));
    }
    let mut status = |name: &str| {
        let answer = client.query(&format!("SHOW GLOBAL STATUS LIKE 'Shared_memory_{name}'"));
        match answer {
            server::common::Answer::Rows { rows, .. } => {
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
