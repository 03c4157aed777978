//! A server whose limit of file descriptors is lower than what its clients would take.
//!
//! ```text
//!   ulimit -n 1024,            1,500 clients connect and send nothing: those over the limit get
//!   max_connections = 2000     error 1040; storage still opens log segments and checkpoints
//!   the limit is lowered       accept finds no descriptor: clients get error 1040 at once, the
//!   while it runs              server isn't busy, and recovers when there are descriptors again
//! ```

use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use porpoise_e2e::process::{descriptors, eventually, raise_descriptor_limit};
use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Address, Stream};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

const LIMIT: u64 = 1024;
const CLIENTS: usize = 1_500;
const WANTED: u64 = 2_000;

/// The first thing that a client gets from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Greeting,
    Refused(u16),
    /// Nothing: over shared memory, not even rings to read from.
    Nothing,
}

/// Connects, and sends nothing. `None`: the server closed the socket where it offers shared memory.
fn dial(address: &Address) -> Option<Box<dyn Stream>> {
    match (address.dial(), address) {
        (Ok(stream), _) => Some(stream),
        (Err(error), Address::SharedMemory(_)) => {
            let connects = !matches!(
                error.kind(),
                ErrorKind::ConnectionRefused | ErrorKind::NotFound
            );
            assert!(connects, "{error}");
            None
        }
        (Err(error), _) => panic!("{error}"),
    }
}

/// The first packet that a client gets.
fn hear(client: &mut Box<dyn Stream>) -> Heard {
    let mut packet = [0; 7];
    if client.read_exact(&mut packet).is_err() {
        return Heard::Nothing;
    }
    match packet[4] {
        0xFF => Heard::Refused(u16::from_le_bytes([packet[5], packet[6]])),
        _ => Heard::Greeting,
    }
}

/// How long the server may take to notice what has changed.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn silent_clients_leave_storage_its_descriptors() {
    raise_descriptor_limit(2 * CLIENTS as u64);
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
    let most = root.number("SELECT @@max_connections");
    assert_eq!(root.number("SELECT @@open_files_limit"), LIMIT);
    assert!((300..LIMIT).contains(&most), "{most}");
    let warning = format!("Changed limits: max_connections: {most} (requested {WANTED})");
    assert!(server.log().contains(&warning), "{}", server.log());
    // It can't be set higher afterwards either.
    root.query(&format!("SET GLOBAL max_connections = {WANTED}"))
        .unwrap();
    assert_eq!(root.number("SELECT @@max_connections"), most);
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
    // root has one connection, and one is reserved for an administrator.
    assert_eq!(count(Heard::Greeting), most);
    assert_eq!(
        count(Heard::Refused(1040)),
        CLIENTS as u64 - most,
        "{heard:?}"
    );
    assert!((descriptors(&server) as u64) < LIMIT);

    // Ten times what the log holds: storage opens new segments, and checkpoints drop old ones.
    for _ in 0..80 {
        root.query("INSERT INTO d.t (v) VALUES (REPEAT('x', 1000000))")
            .unwrap();
    }
    root.query("CREATE TABLE d.copy AS SELECT id FROM d.t")
        .unwrap();
    assert_eq!(root.number("SELECT COUNT(*) FROM d.copy"), 80);
    let log = server.log();
    assert!(
        !log.contains("read-only") && !log.contains("Too many open files"),
        "{log}"
    );

    drop(clients);
    eventually(PATIENCE, || {
        match root.number("SHOW GLOBAL STATUS LIKE 'Threads_connected'") {
            1 => Ok(()),
            more => Err(format!("{more} sessions, not 1")),
        }
    });
    for route in routes {
        let mut again = server.connect(route, "d").unwrap();
        assert_eq!(again.number("SELECT COUNT(*) FROM t"), 80);
    }
}

/// The processor time that the server has used.
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
fn a_client_that_finds_no_descriptor_left_is_refused_at_once() {
    raise_descriptor_limit(2 * CLIENTS as u64);
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
    // Storage opens a file now and then.
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
    // A client that wants shared memory can't be told, but isn't kept waiting.
    let asked = Instant::now();
    assert!(dial(&server.address(Route::SharedMemory)).is_none());
    assert!(asked.elapsed() < Duration::from_secs(5));

    // Connected clients are served, and the server is idle otherwise.
    assert_eq!(root.value("SELECT 6 * 7"), "42");
    let busy = processor_time(&server);
    std::thread::sleep(Duration::from_secs(1));
    let busy = processor_time(&server) - busy;
    assert!(busy < Duration::from_millis(300), "{busy:?} of a second");
    let complaints = server.log().matches("Too many open files").count();
    assert!((1..=4).contains(&complaints), "{}", server.log());

    set_limit(&server, LIMIT);
    let mut late = server.connect(Route::SharedMemory, "").unwrap();
    assert_eq!(late.value("SELECT 6 * 7"), "42");
    drop((clients, late));
    eventually(PATIENCE, || match descriptors(&server) {
        open if open <= before + 2 => Ok(()),
        open => Err(format!("{open} descriptors, {before} before")),
    });
    let refusals = root.number("SHOW GLOBAL STATUS LIKE 'Connection_errors_max_connections'");
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
