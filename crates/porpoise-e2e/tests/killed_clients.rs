//! Clients over shared memory that are killed (`kill -9`) at random moments under load leave
//! nothing behind.
//!
//! Their transactions move amounts between accounts, hold row locks, metadata locks and named
//! locks, read long results and write long statements. The test counts the server's descriptors,
//! its rings in memory, sessions and locks before and after; half a transaction would change the
//! accounts' sum.
//!
//! ```sh
//! PORPOISE_KILLS=1000 PORPOISE_BIN=$PWD/target/release/porpoise \
//!     cargo test -p porpoise-e2e --test killed_clients -- --nocapture
//! ```

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use porpoise_e2e::process::{open_files, resident_bytes};
use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Address, Reply, Wire};

const KILLS_DEFAULT: usize = 40;
/// Kills before the server's memory is measured for the first time.
const WARM_UP: usize = 20;
const CLIENTS_AT_ONCE: usize = 8;
/// By how much the server's memory may change under load alone.
const LOAD_KB: u64 = 30_000;
/// The memory of a client's rings.
const RINGS_KB: u64 = 80;
const ACCOUNTS: u64 = 20;
const SOCKET: &str = "PORPOISE_TEST_SOCKET";

/// What clients hold of the server, as the system and the process list show it.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    /// What each descriptor is of, in order.
    open_files: Vec<String>,
    rings: usize,
    sessions: usize,
}

fn holdings(server: &Server, witness: &mut Wire) -> Holdings {
    let maps = format!("/proc/{}/maps", server.process());
    let maps = fs::read_to_string(maps).expect("the server runs");
    Holdings {
        open_files: open_files(server),
        rings: maps.matches("porpoise-ring").count(),
        sessions: match witness.query("SHOW PROCESSLIST") {
            Ok(Reply::Rows { rows, .. }) => rows.len(),
            other => panic!("{other:?}"),
        },
    }
}

/// Not a test: where `PORPOISE_TEST_SOCKET` names a server, this is a client that works until it is
/// killed.
#[test]
fn client_to_kill() {
    let Ok(path) = std::env::var(SOCKET) else {
        return;
    };
    let address = Address::SharedMemory(path.into());
    let mut wire = Wire::connect(&address, ("root", "sesame"), "bank", 255).expect("it logs in");
    let mut random = fastrand::Rng::new();
    loop {
        let (from, to) = (random.u64(0..ACCOUNTS), random.u64(0..ACCOUNTS));
        let long = "x".repeat(random.usize(0..60_000));
        for sql in [
            format!("DO GET_LOCK('lock {from}', 0)"),
            "BEGIN".to_string(),
            format!("UPDATE account SET amount = amount - 1 WHERE id = {from}"),
            format!(
                "SELECT LENGTH('{long}'), REPEAT('y', {}) FROM account",
                random.u32(0..9000)
            ),
            format!("SELECT * FROM account WHERE id = {to} FOR UPDATE"),
            format!("UPDATE account SET amount = amount + 1 WHERE id = {to}"),
            ["COMMIT", "ROLLBACK"][random.usize(0..2)].to_string(),
        ] {
            // After a deadlock or a lock wait timeout the next transaction begins anew.
            if wire.query(&sql).is_err() {
                let _ = wire.query("ROLLBACK");
                break;
            }
        }
    }
}

fn start_client(server: &Server) -> Child {
    let Address::SharedMemory(path) = server.address(Route::SharedMemory) else {
        unreachable!("the route is shared memory");
    };
    Command::new(std::env::current_exe().expect("a running program has a path"))
        .args(["--exact", "client_to_kill"])
        .env(SOCKET, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a client starts")
}

#[test]
fn clients_killed_at_random_moments_leave_nothing_behind() {
    let kills = std::env::var("PORPOISE_KILLS").map_or(KILLS_DEFAULT, |kills| {
        kills.parse().expect("PORPOISE_KILLS is a number")
    });
    let server = Server::start(Product::Porpoise);
    let mut witness = server
        .connect(Route::SharedMemory, "")
        .expect("root logs in");
    let mut run = |sql: &str| {
        witness
            .query(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    run("CREATE DATABASE bank");
    run("CREATE TABLE bank.account (id INT PRIMARY KEY, amount INT NOT NULL)");
    for id in 0..ACCOUNTS {
        run(&format!("INSERT INTO bank.account VALUES ({id}, 0)"));
    }
    run("SET GLOBAL innodb_lock_wait_timeout = 1");
    let before = holdings(&server, &mut witness);
    let began = Instant::now();
    let mut resident = 0;
    let mut random = fastrand::Rng::with_seed(7);
    let mut clients: Vec<Child> = (0..CLIENTS_AT_ONCE)
        .map(|_| start_client(&server))
        .collect();
    for kill in 0..WARM_UP + kills {
        if kill == WARM_UP {
            resident = resident_bytes(&server) >> 10;
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..30)));
        let chosen = random.usize(0..clients.len());
        let mut client = std::mem::replace(&mut clients[chosen], start_client(&server));
        client.kill().expect("it runs");
        client.wait().expect("it is a child of this process");
    }
    for mut client in clients {
        client.kill().expect("it runs");
        client.wait().expect("it is a child of this process");
    }
    let took = began.elapsed();

    let deadline = Instant::now() + Duration::from_secs(5);
    let mut after = holdings(&server, &mut witness);
    while after != before && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        after = holdings(&server, &mut witness);
    }
    let sessions = witness.query("SHOW FULL PROCESSLIST");
    assert_eq!(after, before, "after {kills} kills: {}", shown(sessions));
    let resident_after = resident_bytes(&server) >> 10;
    println!(
        "{kills} kills in {took:.0?}: {before:?}, {resident} kB before, {resident_after} kB after"
    );
    // Changed rows stay in memory for a while. A client that leaves something leaves its rings at
    // least.
    let left_kb = kills as u64 * RINGS_KB / 2;
    assert!(
        resident_after < resident + LOAD_KB + left_kb,
        "{resident_after} kB after {resident} kB"
    );

    for id in 0..ACCOUNTS {
        let free = witness.value(&format!("SELECT IS_FREE_LOCK('lock {id}')"));
        assert_eq!(free, "1", "lock {id}");
    }
    assert_eq!(witness.value("SELECT SUM(amount) FROM bank.account"), "0");
    for sql in [
        "SELECT * FROM bank.account FOR UPDATE NOWAIT",
        "SET lock_wait_timeout = 1",
        "ALTER TABLE bank.account ADD COLUMN note INT",
    ] {
        witness
            .query(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// A result as text, for people.
fn shown(reply: Result<Reply, porpoise_e2e::wire::Error>) -> String {
    let Ok(Reply::Rows { rows, .. }) = reply else {
        return format!("{reply:?}");
    };
    let cell = |value: &Option<Vec<u8>>| match value {
        Some(bytes) => String::from_utf8_lossy(bytes).chars().take(80).collect(),
        None => "NULL".to_string(),
    };
    let line = |row: &Vec<_>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
