//! The fast path from where memory can't be shared: other network namespaces, proxies, processes
//! without room for it. Whoever asks there stays on TCP and isn't told of any error.
//!
//! Making a network namespace takes root and a kernel that lets it, as containers' often don't.
//! What couldn't be tried says `NOT TRIED`.

#![cfg(target_os = "linux")]

#[path = "../../porpoise/tests/common/served.rs"]
#[allow(dead_code)]
mod served;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;

use porpoise_client::Connection;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use served::Served;

fn url(address: SocketAddr) -> String {
    format!("mysql://ann:secret@{address}/?transport=tcp&loopback_fast_path=true")
}

/// Connects, talks, and says over what.
fn talk(address: SocketAddr) -> &'static str {
    let mut connection = Connection::open(&url(address)).unwrap();
    let long = "x".repeat(300_000);
    for _ in 0..3 {
        let rows = connection.rows(format!("SELECT LENGTH('{long}')"));
        assert_eq!(rows.unwrap().to_text(), [["300000"]]);
    }
    connection.stream().kind()
}

/// Passes one connection on, both ways, until both ends have said all.
fn forward(listener: &TcpListener, to: SocketAddr) {
    let (near, _) = listener.accept().unwrap();
    let far = TcpStream::connect(to).unwrap();
    let pass = |mut from: &TcpStream, mut to: &TcpStream| {
        // An end that breaks off is one that has said all.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    };
    thread::scope(|scope| {
        scope.spawn(|| pass(&near, &far));
        pass(&far, &near);
    });
}

/// A network namespace, kept by a process that sleeps in it.
struct Network {
    keeper: Child,
}

impl Network {
    /// None where the machine doesn't let us.
    fn new() -> Option<Network> {
        let mut keeper = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo up && read end",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("util-linux");
        let mut said = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap())
            .read_line(&mut said)
            .unwrap();
        let network = Network { keeper };
        if said == "up\n" {
            return Some(network);
        }
        network.not_tried()
    }

    fn not_tried<T>(mut self) -> Option<T> {
        let _ = self.keeper.kill();
        let mut why = String::new();
        let mut said = self.keeper.stderr.take().unwrap();
        said.read_to_string(&mut why).unwrap();
        not_tried(&why);
        None
    }

    fn place(&self) -> String {
        format!("/proc/{}/ns/net", self.keeper.id())
    }

    /// Runs `f` on a thread that is in this network, as are the threads that it starts.
    fn inside<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        let place = File::open(self.place()).unwrap();
        let run = || {
            move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            f()
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// Runs a command line in it; what it complains of.
    fn run(&self, command: &str) -> Result<(), String> {
        let done = Command::new("nsenter")
            .arg(format!("--net={}", self.place()))
            .args(["sh", "-c", command])
            .output()
            .expect("util-linux");
        let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
        done.status.success().then_some(()).ok_or(complaint)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Beside the harness, which keeps what tests print to itself.
fn not_tried(why: &str) {
    let words = format!("NOT TRIED, no network namespaces here: {}\n", why.trim());
    let _ = io::stderr().write_all(words.as_bytes());
}

#[test]
fn a_client_in_another_network_namespace_stays_on_tcp() {
    let Some(network) = Network::new() else {
        return;
    };
    let served = Served::start("127.0.0.1:0", true);
    assert_eq!(talk(served.address), "shared memory");
    // Both see a connection on 127.0.0.1, and each has another one in mind.
    let listener = network.inside(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let door = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| forward(&listener, served.address));
        assert_eq!(network.inside(|| talk(door)), "TCP/IP");
    });
    assert_eq!(served.moved_and_stayed(), (1, 1));
}

#[test]
fn a_client_over_a_wire_between_namespaces_stays_on_tcp() {
    let (Some(here), Some(there)) = (Network::new(), Network::new()) else {
        return;
    };
    let laid = here
        .run(&format!(
            "ip link add wire type veth peer name wire netns {} &&
             ip addr add 192.0.2.1/24 dev wire && ip link set wire up",
            there.keeper.id()
        ))
        .and_then(|()| there.run("ip addr add 192.0.2.2/24 dev wire && ip link set wire up"));
    if let Err(why) = laid {
        return not_tried(&why);
    }
    here.inside(|| {
        let served = Served::start("192.0.2.1:0", true);
        assert_eq!(there.inside(|| talk(served.address)), "TCP/IP");
        // Not even from its own side: the address is not the machine's alone.
        assert_eq!(talk(served.address), "TCP/IP");
        assert_eq!(served.moved_and_stayed().0, 0);
    });
}

#[test]
fn a_client_behind_a_proxy_stays_on_tcp() {
    let served = Served::start("127.0.0.1:0", true);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| forward(&listener, served.address));
        assert_eq!(talk(listener.local_addr().unwrap()), "TCP/IP");
    });
    assert_eq!(served.moved_and_stayed(), (0, 1));
}

/// `porpoise sql` at the end of this command line: its output, or none if it failed.
fn told(mut command: Command, url: &str) -> Option<String> {
    let done = command
        .args(["sql", url, "-N", "-e", "status\nSELECT 6 * 7"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    (done.status.success() && out.ends_with("\n42\n")).then_some(out)
}

const PORPOISE: &str = env!("CARGO_BIN_EXE_porpoise");

/// A container that has the host's network: its files, processes and users are its own.
#[test]
fn a_client_that_shares_the_network_alone_moves_to_shared_memory() {
    const OTHERS: [&str; 5] = ["--mount", "--pid", "--ipc", "--uts", "--fork"];
    let allowed = Command::new("unshare").args(OTHERS).arg("true").output();
    let allowed = allowed.expect("util-linux");
    if !allowed.status.success() {
        return not_tried(&String::from_utf8_lossy(&allowed.stderr));
    }
    let served = Served::start("127.0.0.1:0", true);
    let mut command = Command::new("unshare");
    command.args(OTHERS).arg(PORPOISE);
    let out = told(command, &url(served.address)).unwrap();
    assert!(out.contains("shared memory"), "{out}");
    assert_eq!(served.moved_and_stayed(), (1, 0));
}

/// Wherever its descriptors run out while it takes the memory: where TCP alone would have worked,
/// asking for more doesn't hurt.
#[test]
fn a_client_without_descriptors_for_the_memory_stays_on_tcp() {
    let served = Served::start("127.0.0.1:0", true);
    let asking = url(served.address);
    let plain = asking.replace("fast_path=true", "fast_path=false");
    let (mut stayed, mut moved) = (0, 0);
    for descriptors in 4..24 {
        let limited = || {
            let mut command = Command::new("sh");
            let line = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
            command.args(["-c", &line, PORPOISE]);
            command
        };
        let Some(usual) = told(limited(), &plain) else {
            continue;
        };
        assert!(usual.contains("TCP/IP"), "{usual}");
        let out = told(limited(), &asking);
        let out = out.unwrap_or_else(|| panic!("an error with {descriptors} descriptors"));
        if out.contains("TCP/IP") {
            stayed += 1;
        } else {
            moved += 1;
        }
    }
    assert!(stayed > 0 && moved > 0, "{stayed} {moved}");
}
