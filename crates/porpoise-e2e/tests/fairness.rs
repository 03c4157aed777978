//! Statements that compute for long, on more connections than there are workers: everybody else is
//! served meanwhile.
//!
//! ```text
//!   6 connections   a join that takes minutes ───────────────────────────── … ── KILL, or the server's end
//!   20 connections  SELECT 1, SELECT 1, …          in no more than a moment
//!   new clients     log in, ask, leave             in no more than a moment
//! ```

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use porpoise_e2e::process::eventually;
use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Error, Reply, Wire};

/// 729 million combinations of rows.
const COMPUTES_LONG: &str = "WITH RECURSIVE s(n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900) \
    SELECT COUNT(*) FROM s a, s b, s c WHERE a.n + b.n + c.n > 5";
const WORKERS: &str = "--thread-pool-size=2";
const COMPUTING: usize = 6;
const OPEN: usize = 20;

/// How long an answer may take, on a machine that is busy with other tests as well.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The same, for a statement that is interrupted.
const END_MAX: Duration = Duration::from_secs(20);

type Computing = JoinHandle<Result<Reply, Error>>;

/// Has each of the connections compute; their ids, and what they will be told.
fn begin_computing(server: &Server, route: Route, count: usize) -> Vec<(u32, Computing)> {
    let wires: Vec<Wire> = (0..count)
        .map(|_| server.connect(route, "").unwrap())
        .collect();
    wires
        .into_iter()
        .map(|mut wire| (wire.id, thread::spawn(move || wire.query(COMPUTES_LONG))))
        .collect()
}

/// All of them are in the middle of their statements.
fn wait_until_computing(root: &mut Wire, count: usize) {
    eventually(END_MAX, || {
        let sql = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE info LIKE 'WITH RECURSIVE%'";
        match root.number(sql) {
            all if all == count as u64 => Ok(()),
            some => Err(format!("{some} of {count} compute")),
        }
    });
}

fn in_time<T>(what: &str, action: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = action();
    let took = began.elapsed();
    assert!(took < ANSWER_MAX, "{what} took {took:?}");
    done
}

fn everybody_is_served_beside_statements_that_compute(route: Route) {
    let server = Server::start_with(Product::Porpoise, &[WORKERS]);
    let mut open: Vec<Wire> = (0..OPEN)
        .map(|_| server.connect(route, "").unwrap())
        .collect();
    let mut computing = begin_computing(&server, route, COMPUTING);
    let mut root = in_time("a login", || server.connect(route, "").unwrap());
    wait_until_computing(&mut root, COMPUTING);
    for round in 0..5 {
        for wire in &mut open {
            let what = format!("SELECT in round {round}");
            assert_eq!(in_time(&what, || wire.value("SELECT 6 * 7")), "42");
        }
        let mut visitor = in_time("a login", || server.connect(route, "").unwrap());
        assert_eq!(visitor.value("SELECT 1"), "1");
    }
    // One ends, the others go on.
    let (id, interrupted) = computing.remove(0);
    in_time("KILL QUERY", || {
        root.query(&format!("KILL QUERY {id}")).unwrap()
    });
    eventually(END_MAX, || match interrupted.is_finished() {
        true => Ok(()),
        false => Err("it goes on after KILL QUERY".into()),
    });
    match interrupted.join().unwrap() {
        Err(Error::Server { number: 1317, .. }) => {}
        other => panic!("{other:?}"),
    }
    wait_until_computing(&mut root, COMPUTING - 1);
    for (id, _) in &computing {
        root.query(&format!("KILL {id}")).unwrap();
    }
    for (_, killed) in computing {
        killed.join().unwrap().unwrap_err();
    }
}

#[test]
fn everybody_is_served_over_a_unix_socket() {
    everybody_is_served_beside_statements_that_compute(Route::UnixSocket);
}

#[test]
fn everybody_is_served_over_shared_memory() {
    everybody_is_served_beside_statements_that_compute(Route::SharedMemory);
}

/// A thread of its own serves a connection whose statements take long; when they are short again,
/// the event loop does.
#[test]
fn a_connection_with_long_statements_goes_on_with_short_ones() {
    let server = Server::start_with(Product::Porpoise, &[WORKERS]);
    let mut wire = server.connect(Route::UnixSocket, "").unwrap();
    for _ in 0..20 {
        let sql = "SELECT BENCHMARK(20000, SHA2('wave', 512))";
        assert_eq!(wire.value(sql), "0");
        wire.query("SET @a = 1").unwrap();
        assert_eq!(wire.value("SELECT @a + 1"), "2");
    }
}

#[test]
fn the_server_ends_when_asked_while_statements_compute() {
    let server = Server::start_with(Product::Porpoise, &[WORKERS]);
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    let computing = begin_computing(&server, Route::UnixSocket, COMPUTING);
    wait_until_computing(&mut root, COMPUTING);
    let pid = i32::try_from(server.process()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    // The idle connection is closed at once, the others when they were interrupted.
    eventually(ANSWER_MAX, || match root.query("SELECT 1") {
        Err(Error::Connection(_)) => Ok(()),
        other => Err(format!("{other:?} after SIGTERM")),
    });
    for (_, interrupted) in computing {
        interrupted.join().unwrap().unwrap_err();
    }
    let has_ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.process())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('Z')
    };
    eventually(END_MAX, || match has_ended() {
        true => Ok(()),
        false => Err("the server goes on".into()),
    });
}
