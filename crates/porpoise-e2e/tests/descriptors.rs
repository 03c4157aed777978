//! A server whose limit of file descriptors is lower than what its clients would take.
//!
//! ```text
//!   ulimit -n 1024,            1,500 clients dial and say nothing: those over the limit hear 1040,
//!   max_connections = 2000     storage goes on to new log segments and checkpoints
//!   the limit is lowered       accept finds no descriptor: 1040 at once, without a busy loop,
//!   while it runs              until there are some again
//! ```

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Address, Reply, Wire};
use porpoise_transport::SharedMemory;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

const LIMIT: u64 = 1024;
const CLIENTS: usize = 1_500;
const WANTED: u64 = 2_000;

/// This process holds one end of every connection.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    assert!(most > 2 * CLIENTS as u64, "{most} descriptors are too few");
}

fn one(wire: &mut Wire, sql: &str) -> String {
    match wire.query(sql).unwrap() {
        Reply::Rows { rows, .. } => {
            let value = rows[0].last().unwrap().clone().unwrap();
            String::from_utf8(value).unwrap()
        }
        other => panic!("{sql}: {other:?}"),
    }
}

fn number(wire: &mut Wire, sql: &str) -> u64 {
    one(wire, sql).parse().unwrap()
}

fn descriptors(server: &Server) -> u64 {
    let folder = format!("/proc/{}/fd", server.process());
    fs::read_dir(folder).unwrap().count() as u64
}

/// What a client is told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Greeting,
    Refused(u16),
    /// Not even rings to hear something by.
    Nothing,
}

type Client = Box<dyn Read + Send>;

/// Connects, and says nothing.
fn dial(address: &Address) -> Option<Client> {
    let patience = Some(Duration::from_secs(30));
    Some(match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).unwrap();
            stream.set_read_timeout(patience).unwrap();
            Box::new(stream)
        }
        Address::Tcp(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
            stream.set_read_timeout(patience).unwrap();
            Box::new(stream)
        }
        Address::SharedMemory(path) => {
            let socket = UnixStream::connect(path).unwrap();
            let rings = SharedMemory::accept(socket, patience).ok()?;
            porpoise_transport::Stream::set_read_timeout(&rings, patience).unwrap();
            Box::new(rings)
        }
    })
}

fn hear(client: &mut Client) -> Heard {
    let mut packet = [0; 7];
    if client.read_exact(&mut packet).is_err() {
        return Heard::Nothing;
    }
    match packet[4] {
        0xFF => Heard::Refused(u16::from_le_bytes([packet[5], packet[6]])),
        _ => Heard::Greeting,
    }
}

#[track_caller]
fn eventually(mut what: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < end, "it never came true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn silent_clients_leave_storage_its_descriptors() {
    raise_descriptor_limit();
    let wanted = format!("--max-connections={WANTED}");
    let server = Server::start_limited(
        Product::Porpoise,
        &[
            &wanted,
            "--connect-timeout=60",
            "--innodb-redo-log-capacity=8M",
        ],
        LIMIT,
    );
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    let most = number(&mut root, "SELECT @@max_connections");
    assert_eq!(number(&mut root, "SELECT @@open_files_limit"), LIMIT);
    assert!((300..LIMIT).contains(&most), "{most}");
    let warning = format!("Changed limits: max_connections: {most} (requested {WANTED})");
    assert!(server.log().contains(&warning), "{}", server.log());
    // It can't be set higher afterwards either.
    root.query(&format!("SET GLOBAL max_connections = {WANTED}"))
        .unwrap();
    assert_eq!(number(&mut root, "SELECT @@max_connections"), most);
    root.query("CREATE DATABASE d").unwrap();
    root.query("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")
        .unwrap();

    let routes = [Route::UnixSocket, Route::Tcp, Route::SharedMemory];
    let addresses = routes.map(|route| server.address(route));
    let mut clients = Vec::new();
    let mut heard = Vec::new();
    for number in 0..CLIENTS {
        match dial(&addresses[number % addresses.len()]) {
            Some(client) => clients.push(client),
            None => heard.push(Heard::Nothing),
        }
    }
    heard.extend(clients.iter_mut().map(hear));
    let count = |what: Heard| heard.iter().filter(|heard| **heard == what).count() as u64;
    // root has a place, and one is the administrator's.
    assert_eq!(count(Heard::Greeting), most);
    assert_eq!(
        count(Heard::Refused(1040)),
        CLIENTS as u64 - most,
        "{heard:?}"
    );
    assert!(descriptors(&server) < LIMIT);

    // Ten times what the log holds: new segments, and checkpoints that drop the old ones.
    for _ in 0..80 {
        root.query("INSERT INTO d.t (v) VALUES (REPEAT('x', 1000000))")
            .unwrap();
    }
    root.query("CREATE TABLE d.copy AS SELECT id FROM d.t")
        .unwrap();
    assert_eq!(number(&mut root, "SELECT COUNT(*) FROM d.copy"), 80);
    let log = server.log();
    assert!(
        !log.contains("read-only") && !log.contains("Too many open files"),
        "{log}"
    );

    drop(clients);
    eventually(|| number(&mut root, "SHOW GLOBAL STATUS LIKE 'Threads_connected'") == 1);
    for route in routes {
        let mut again = server.connect(route, "d").unwrap();
        assert_eq!(number(&mut again, "SELECT COUNT(*) FROM t"), 80);
    }
}

/// The processor time that the server has had.
fn processor_time(server: &Server) -> Duration {
    const TICKS_A_SECOND: u64 = 100;
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.process())).unwrap();
    // Behind the name, which may hold spaces: the 14th and 15th field of all.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(1000 * ticks / TICKS_A_SECOND)
}

fn set_limit(server: &Server, current: u64) {
    let process = Pid::from_raw(server.process() as i32);
    let before = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: Some(current),
        maximum: before.maximum,
    };
    prlimit(process, Resource::Nofile, limit).unwrap();
}

#[test]
fn who_comes_when_no_descriptor_is_left_is_told_at_once() {
    raise_descriptor_limit();
    let server = Server::start_with(Product::Porpoise, &["--connect-timeout=60"]);
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    let before = descriptors(&server);
    // Descriptors have numbers below the limit: the lowest that are free are taken.
    let numbers = fs::read_dir(format!("/proc/{}/fd", server.process())).unwrap();
    let taken: Vec<u64> = numbers
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .collect();
    let free_below =
        |limit: u64| limit - taken.iter().filter(|&&taken| taken < limit).count() as u64;
    const ROOM: u64 = 5;
    let limit = (0..).find(|&limit| free_below(limit) == ROOM).unwrap();
    set_limit(&server, limit);
    let mut clients = Vec::new();
    let mut heard = Vec::new();
    for _ in 0..40 {
        for route in [Route::UnixSocket, Route::Tcp] {
            let mut client = dial(&server.address(route)).unwrap();
            heard.push(hear(&mut client));
            clients.push(client);
        }
    }
    // Storage has one open now and then.
    let let_in = heard
        .iter()
        .filter(|heard| **heard == Heard::Greeting)
        .count() as u64;
    let refused = heard
        .iter()
        .filter(|heard| **heard == Heard::Refused(1040))
        .count() as u64;
    assert!(let_in.abs_diff(ROOM) <= 2, "{heard:?}");
    assert_eq!(let_in + refused, heard.len() as u64, "{heard:?}");
    // Who wants rings can't be told, but isn't kept waiting.
    let asked = Instant::now();
    assert!(dial(&server.address(Route::SharedMemory)).is_none());
    assert!(asked.elapsed() < Duration::from_secs(5));

    // Whoever is in is served, and the server rests otherwise.
    assert_eq!(one(&mut root, "SELECT 6 * 7"), "42");
    let busy = processor_time(&server);
    std::thread::sleep(Duration::from_secs(1));
    let busy = processor_time(&server) - busy;
    assert!(busy < Duration::from_millis(300), "{busy:?} of a second");
    let complaints = server.log().matches("Too many open files").count();
    assert!((1..=4).contains(&complaints), "{}", server.log());

    set_limit(&server, LIMIT);
    let mut late = server.connect(Route::SharedMemory, "").unwrap();
    assert_eq!(one(&mut late, "SELECT 6 * 7"), "42");
    drop((clients, late));
    eventually(|| descriptors(&server) <= before + 2);
    let refusals = number(
        &mut root,
        "SHOW GLOBAL STATUS LIKE 'Connection_errors_max_connections'",
    );
    assert_eq!(refusals, refused);
}

#[test]
fn an_option_file_in_the_home_that_cannot_be_read_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    // Not even root can read this one.
    fs::create_dir(home.path().join(".porpoise.cnf")).unwrap();
    let home = home.path().to_str().unwrap();
    let server = Server::start_in(Product::Porpoise, &[], &[("HOME", home)]);
    assert!(
        server
            .log()
            .contains(".porpoise.cnf' can't be read, and is ignored")
    );
    assert!(server.connect(Route::UnixSocket, "").is_ok());
}
