//! Storms: thousands of clients at once, half of which never log in.
//!
//! ```text
//!   all connect ─► half of them send nothing, or part of a login, and hang until connect_timeout
//!              └─► the others log in, send a query, and leave: each of them is served meanwhile
//! ```
//!
//! After each storm the server process has the descriptors, the sessions and the memory that it had
//! before.

use std::io::{Read, Write};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use porpoise_e2e::process::{descriptors, eventually, raise_descriptor_limit, resident_bytes};
use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Stream, Wire};

const CLIENTS: usize = 5_000;
/// This process holds one end of every connection, and some files.
const DESCRIPTORS_MIN: u64 = CLIENTS as u64 + 200;
const THREADS: usize = 50;
const STORMS: usize = 24;
/// What the heaps of the threads that stay keep differs by a few MiB from storm to storm. A leak of
/// 200 bytes a client would add 15 MiB from the first storms to the last.
const HEAPS_BYTES: u64 = 6 << 20;
const CONNECT_TIMEOUT_S: u64 = 7;

/// What clients send that never log in.
const FRAGMENTS: [&[u8]; 4] = [
    // Nothing at all.
    b"",
    // Half a header.
    b"\x55\0",
    // A header, and less than it announces.
    b"\x55\0\0\x01\x85\xa6\xff\x01",
    // The most that a login may announce, and nothing of it.
    b"\xff\x5f\0\x01",
];

fn count(wire: &mut Wire, name: &str) -> u64 {
    wire.number(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))
}

/// All clients connect; every second one logs in and is served while the others hang. Returns those
/// that hang, and how long it took until the last was served.
fn storm(server: &Server) -> (Vec<Box<dyn Stream>>, Duration) {
    let routes = [
        server.address(Route::UnixSocket),
        server.address(Route::Tcp),
    ];
    let connected = Barrier::new(THREADS);
    let began = Instant::now();
    let dead = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (routes, connected) = (&routes, &connected);
                scope.spawn(move || {
                    let address = &routes[number % 2];
                    let streams: Vec<_> = (0..CLIENTS / THREADS)
                        .map(|_| address.dial().unwrap())
                        .collect();
                    connected.wait();
                    let mut dead = Vec::new();
                    let mut served = Vec::new();
                    for (number, mut stream) in streams.into_iter().enumerate() {
                        if number % 2 == 0 {
                            stream
                                .write_all(FRAGMENTS[number / 2 % FRAGMENTS.len()])
                                .unwrap();
                            dead.push(stream);
                            continue;
                        }
                        let mut wire = Wire::over(stream, ("gale", "wind"), "", 45).unwrap();
                        assert_eq!(wire.value("SELECT 6 * 7"), "42");
                        served.push(wire);
                    }
                    // The server has greeted them all: they are connected at the same time.
                    for stream in &mut dead {
                        stream.read_exact(&mut [0]).unwrap();
                    }
                    connected.wait();
                    drop(served);
                    dead
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    (dead, began.elapsed())
}

#[test]
fn a_storm_of_half_dead_clients_is_weathered_and_leaves_nothing() {
    raise_descriptor_limit(DESCRIPTORS_MIN);
    let server = Server::start_in(
        Product::Porpoise,
        &[
            "--max-connections=6000",
            "--back-log=4096",
            "--connect-timeout=7",
        ],
        // The allocator gives freed memory back at once, so that what stays is in use.
        &[("MIMALLOC_PURGE_DELAY", "0")],
    );
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    for sql in [
        "CREATE USER gale IDENTIFIED WITH mysql_native_password BY 'wind'",
        "SET SESSION wait_timeout = 600",
    ] {
        root.query(sql).unwrap();
    }
    assert_eq!(
        root.value("SELECT @@connect_timeout"),
        CONNECT_TIMEOUT_S.to_string()
    );
    let most = root.number("SELECT @@open_files_limit");
    assert!(most >= CLIENTS as u64, "{most}");
    let descriptors_before = descriptors(&server);
    let half = CLIENTS as u64 / 2;
    let mut after_each = Vec::new();
    for round in 1..=STORMS {
        let aborted = count(&mut root, "Aborted_connects");
        let (dead, took) = storm(&server);
        assert_eq!(dead.len() as u64, half);
        println!("storm {round}: all served after {took:?}");
        if round == 1 {
            // connect_timeout ends them.
            eventually(Duration::from_secs(CONNECT_TIMEOUT_S + 10), || {
                match count(&mut root, "Aborted_connects") - aborted {
                    all if all == half => Ok(()),
                    some => Err(format!("{some} of {half} were given up")),
                }
            });
            drop(dead);
            // From here on they leave before it is over, however slow the machine is: all are
            // connected at the same time.
            root.query("SET GLOBAL connect_timeout = 600").unwrap();
        } else {
            drop(dead);
        }
        // Threads that had to help out have ended, and their heaps with them.
        eventually(Duration::from_secs(10), || {
            let left = (
                count(&mut root, "Threads_connected"),
                descriptors(&server),
                count(&mut root, "Threads_cached"),
            );
            match left == (1, descriptors_before, 0) {
                true => Ok(()),
                false => Err(format!("{left:?}, not (1, {descriptors_before}, 0)")),
            }
        });
        assert_eq!(count(&mut root, "Aborted_connects") - aborted, half);
        let resident = resident_bytes(&server);
        println!("storm {round}: {} KiB resident", resident >> 10);
        after_each.push(resident);
    }
    let least = |storms: &[u64]| storms.iter().copied().min().unwrap_or_default();
    let third = STORMS / 3;
    let (early, late) = (
        least(&after_each[..third]),
        least(&after_each[STORMS - third..]),
    );
    assert!(
        late < early + HEAPS_BYTES,
        "{after_each:?} bytes after each storm"
    );
    let most = count(&mut root, "Max_used_connections");
    assert!((CLIENTS as u64..6000).contains(&most), "{most}");
    assert_eq!(count(&mut root, "Connection_errors_max_connections"), 0);
}

/// The server of the storms above gives freed memory back at once. This one has its usual settings.
#[test]
fn an_idle_server_gives_back_the_memory_that_a_storm_took() {
    raise_descriptor_limit(DESCRIPTORS_MIN);
    let server = Server::start_with(
        Product::Porpoise,
        &["--max-connections=6000", "--back-log=4096"],
    );
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    root.query("CREATE USER gale IDENTIFIED WITH mysql_native_password BY 'wind'")
        .unwrap();
    let descriptors_before = descriptors(&server);
    let resident_before = resident_bytes(&server);
    drop(storm(&server));
    // From here on no client sends anything, so that the server is idle.
    eventually(Duration::from_secs(10), || match descriptors(&server) {
        left if left == descriptors_before => Ok(()),
        left => Err(format!("{left} descriptors, not {descriptors_before}")),
    });
    let resident_after = resident_bytes(&server);
    eventually(Duration::from_secs(5), || {
        let kib = [resident_before, resident_after, resident_bytes(&server)].map(|b| b >> 10);
        let shown = format!("KiB before, right after, and idle: {kib:?}");
        println!("{shown}");
        if kib[2] < kib[0] + (8 << 10) {
            Ok(())
        } else {
            Err(shown)
        }
    });
}

#[test]
fn a_thousand_connections_over_shared_memory_are_there_at_once_and_ten_thousand_leave_nothing() {
    const AT_ONCE: usize = 1_024;
    const IN_ALL: usize = 10_000;
    raise_descriptor_limit(DESCRIPTORS_MIN);
    let server = Server::start_with(Product::Porpoise, &["--max-connections=1100"]);
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    root.query("CREATE USER gale IDENTIFIED WITH mysql_native_password BY 'wind'")
        .unwrap();
    let address = server.address(Route::SharedMemory);
    let connect = || Wire::connect(&address, ("gale", "wind"), "", 45).unwrap();
    let descriptors_before = descriptors(&server);
    let mut there: Vec<Wire> = (0..AT_ONCE).map(|_| connect()).collect();
    for wire in &mut there {
        assert_eq!(wire.value("SELECT 6 * 7"), "42");
    }
    drop(there);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..IN_ALL / 4).for_each(|_| drop(connect())));
        }
    });
    let mapped = || {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", server.process())).unwrap();
        maps.lines().filter(|line| line.contains("memfd")).count()
    };
    eventually(Duration::from_secs(10), || {
        let left = (
            count(&mut root, "Threads_connected"),
            descriptors(&server),
            mapped(),
        );
        match left == (1, descriptors_before, 0) {
            true => Ok(()),
            false => Err(format!("{left:?}, not (1, {descriptors_before}, 0)")),
        }
    });
}
