//! The server from outside: what a client sees, whatever the other clients do.
//!
//! `shared_memory.rs` runs the same tests with shared memory in the Unix socket's place.

pub mod common;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::test_server::{RefusedLogin, TestServer, in_memory};
use common::{CLIENTS, RawClient, Reply, eventually};
use porpoise_engine::EngineOptions;
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_server::ServerOptions;
use porpoise_storage::Location;

pub fn start() -> TestServer {
    start_with(2, Location::Memory)
}

/// A server with the accounts and the table that the tests use.
fn start_with(workers: usize, location: Location) -> TestServer {
    let engine = EngineOptions {
        location,
        ..in_memory(&[])
    };
    let options = ServerOptions {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        workers,
        ..ServerOptions::default()
    };
    let setup = [
        "CREATE USER native IDENTIFIED WITH mysql_native_password BY 'one'",
        "CREATE USER sha IDENTIFIED WITH caching_sha2_password BY 'secret'",
        "CREATE USER nopass",
        "GRANT ALL ON test.* TO native",
        "CREATE DATABASE test",
        "CREATE TABLE test.t (id INT PRIMARY KEY, v INT NOT NULL)",
        "INSERT INTO test.t VALUES (1, 0)",
    ];
    TestServer::start(engine, options, &setup)
}

/// Locks the one row, and keeps it locked.
pub const LOCK_ROW: &str = "UPDATE t SET v = v + 1 WHERE id = 1";

impl TestServer {
    /// In a transaction, on the table's database.
    pub fn in_transaction(&self) -> RawClient {
        let mut client = self.root();
        assert!(client.query("USE test").is_ok());
        assert!(client.query("BEGIN").is_ok());
        client
    }

    fn tcp(&self, user: &str, password: &str) -> Result<RawClient, RefusedLogin> {
        RawClient::tcp(self.server.tcp_addresses()[0])
            .unwrap()
            .login(user, password)
    }

    fn set(&self, name: &str, value: u64) {
        assert!(
            self.root()
                .query(&format!("SET GLOBAL {name} = {value}"))
                .is_ok()
        );
    }
}

#[test]
fn a_transaction_whose_statements_never_end_leaves_others_their_turns() {
    let server = start_with(1, Location::Memory);
    let mut streaming = UnixStream::connect(server.socket()).unwrap();
    let mut wire = RawClient::over(Box::new(streaming.try_clone().unwrap()), true)
        .login("root", "")
        .unwrap();
    assert!(wire.query("BEGIN").is_ok());
    assert_eq!(wire.query("SELECT COUNT(*) FROM test.t").value(), "1");
    let mut writer = PacketWriter::with_buffer(Vec::new(), 0);
    writer.write(b"\x03SELECT 1");
    let statements = writer.bytes().repeat(1000);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut replies = streaming.try_clone().unwrap();
        scope.spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while replies.read(&mut bytes).is_ok_and(|count| count > 0) {}
        });
        let (sender, is_over) = (&mut streaming, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) && sender.write_all(&statements).is_ok() {}
            // The other end may have gone first.
            let _ = sender.shutdown(Shutdown::Both);
        });
        std::thread::sleep(Duration::from_millis(100));
        let mut other = server.root();
        for _ in 0..20 {
            assert_eq!(other.query("SELECT 2").value(), "2");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn transactions_left_open_hold_nobody_up() {
    let server = start_with(1, Location::Memory);
    let mut open: Vec<RawClient> = (0..40).map(|_| server.in_transaction()).collect();
    for client in &mut open {
        assert_eq!(client.query("SELECT v FROM t WHERE id = 1").value(), "0");
    }
    // As many others as there are, all at once, while the first still count as a crowd, and when
    // they no longer do.
    let mut others: Vec<RawClient> = (0..40).map(|_| server.root()).collect();
    for round in 0..3 {
        let sqls = ["BEGIN", "UPDATE test.t SET v = v WHERE id = 2", "COMMIT"];
        for sql in sqls.into_iter().chain(["SELECT 1; SELECT 2"; 5]) {
            others.iter_mut().for_each(|other| other.send_query(sql));
            for other in &mut others {
                match sql.starts_with("SELECT") {
                    true => assert_eq!(
                        (other.receive().value(), other.receive().value()),
                        ("1", "2")
                    ),
                    false => assert!(other.receive().is_ok()),
                }
            }
        }
        std::thread::sleep(Duration::from_millis(30 * round));
    }
    for client in &mut open {
        assert_eq!(client.query("SELECT v FROM t WHERE id = 1").value(), "0");
        assert!(client.query("COMMIT").is_ok());
    }
}

#[test]
fn every_kind_of_account_logs_in_over_every_way_in() {
    let server = start();
    for (user, password) in [("native", "one"), ("sha", "secret"), ("nopass", "")] {
        assert_eq!(
            server
                .local(user, password)
                .unwrap()
                .query("SELECT 1")
                .value(),
            "1",
            "{user}"
        );
        assert_eq!(
            server
                .tcp(user, password)
                .unwrap()
                .query("SELECT 1")
                .value(),
            "1",
            "{user}"
        );
    }
    assert_eq!(server.root().query("SELECT 1").value(), "1");
}

#[test]
fn a_password_seen_for_the_first_time_over_tcp_comes_under_the_public_key() {
    let server = start();
    assert_eq!(
        server
            .tcp("sha", "secret")
            .unwrap()
            .query("SELECT 1")
            .value(),
        "1"
    );
}

#[test]
fn a_wrong_password_and_an_unknown_user_are_refused_alike() {
    let server = start();
    for (user, password, using) in [
        ("sb", "wrong", "YES"),
        ("sha", "wrong", "YES"),
        ("nobody", "x", "YES"),
        ("nobody", "", "NO"),
        ("sb", "", "NO"),
    ] {
        let (number, message) = server.local(user, password).err().unwrap();
        assert_eq!(number, 1045);
        assert_eq!(
            message,
            format!("Access denied for user '{user}'@'localhost' (using password: {using})")
        );
    }
    // Root has no password yet: only the socket's owner gets in.
    assert_eq!(server.tcp("root", "").err().unwrap().0, 1045);
}

#[test]
fn statements_in_one_packet_answer_one_by_one() {
    let server = start();
    let mut client = server.root();
    let Reply::Rows { status, .. } = client.query("SELECT 1; SELECT 2") else {
        panic!()
    };
    assert!(status.contains(Status::MORE_RESULTS_EXISTS));
    let Reply::Rows { status, .. } = client.receive() else {
        panic!()
    };
    assert!(!status.contains(Status::MORE_RESULTS_EXISTS));
}

#[test]
fn commands_sent_ahead_are_answered_in_order() {
    let server = start();
    let mut client = server.root();
    for _ in 0..200 {
        client.send_query("SELECT 1");
        client.send_query("UPDATE test.t SET v = v + 1");
    }
    for _ in 0..200 {
        assert_eq!(client.receive().value(), "1");
        assert!(client.receive().is_ok());
    }
}

#[test]
fn a_packet_that_comes_byte_by_byte_is_a_packet() {
    let server = start();
    let mut client = server.root();
    for &byte in b"\x09\0\0\0\x03SELECT 1" {
        client.wire.write_all(&[byte]).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(client.receive().value(), "1");
}

#[test]
fn a_query_of_40_mib_is_a_query() {
    let server = start();
    let mut client = server.root();
    let sql = format!("SELECT 1 /* {} */", "x".repeat(40 << 20));
    assert_eq!(client.query(&sql).value(), "1");
    assert_eq!(client.query("SELECT 1").value(), "1");
}

#[test]
fn a_packet_beyond_max_allowed_packet_ends_the_connection() {
    let server = start();
    let mut client = server.root();
    client
        .send(0, &[&[3][..], &vec![b'x'; 65 << 20]].concat())
        .ok();
    match client.packet() {
        // 1153, in reply to the fifth piece.
        Ok((sequence, packet)) => {
            assert_eq!((sequence, &packet[..3]), (5, &[0xFF, 0x81, 0x04][..]));
        }
        // The server closed before everything was sent.
        Err(error) => assert!(error.kind() != std::io::ErrorKind::WouldBlock, "{error}"),
    }
    assert!(client.is_closed());
    assert_eq!(server.root().query("SELECT 1").value(), "1");
}

#[test]
fn a_statement_that_waits_stalls_nobody() {
    let server = start_with(1, Location::Memory);
    let mut holder = server.in_transaction();
    assert!(holder.query(LOCK_ROW).is_ok());
    let mut waiters: Vec<_> = (0..20).map(|_| server.in_transaction()).collect();
    for waiter in &mut waiters {
        waiter.send_query(LOCK_ROW);
    }
    let mut other = server.root();
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(other.query("SELECT 1").value(), "1");
    }
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert!(holder.query("COMMIT").is_ok());
    // Each gets the row once the one before is done.
    std::thread::scope(|scope| {
        for waiter in &mut waiters {
            scope.spawn(|| {
                assert!(waiter.receive().is_ok());
                assert!(waiter.query("COMMIT").is_ok());
            });
        }
    });
    assert_eq!(server.root().query("SELECT v FROM test.t").value(), "21");
}

#[test]
fn a_dead_client_releases_its_row_locks() {
    let server = start();
    let mut dead = server.in_transaction();
    assert!(dead.query(LOCK_ROW).is_ok());
    drop(dead);
    let began = Instant::now();
    assert!(server.in_transaction().query(LOCK_ROW).is_ok());
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(server.root().query("SELECT v FROM test.t").value(), "0");
}

#[test]
fn a_client_that_dies_while_its_statement_waits_is_rolled_back() {
    let server = start();
    let mut holder = server.in_transaction();
    assert!(holder.query(LOCK_ROW).is_ok());
    let mut dead = server.in_transaction();
    dead.send_query(LOCK_ROW);
    std::thread::sleep(Duration::from_millis(100));
    drop(dead);
    let processes = || server.root().query(CLIENTS);
    eventually(|| matches!(processes(), Reply::Rows { rows, .. } if rows.len() == 2));
    assert!(holder.query("COMMIT").is_ok());
    assert!(server.in_transaction().query(LOCK_ROW).is_ok());
    assert_eq!(server.root().query("SELECT v FROM test.t").value(), "1");
}

#[test]
fn a_client_that_reads_nothing_stalls_nobody_and_gets_everything_in_the_end() {
    let server = start_with(1, Location::Memory);
    let mut slow = server.root();
    assert!(slow.query("SET cte_max_recursion_depth = 1000000").is_ok());
    slow.send_query(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 100000) \
         SELECT REPEAT('x', 300) FROM r",
    );
    std::thread::sleep(Duration::from_millis(500));
    let mut other = server.root();
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(other.query("SELECT 1").value(), "1");
    }
    assert!(began.elapsed() < Duration::from_secs(3));
    let Reply::Rows { rows, .. } = slow.receive() else {
        panic!()
    };
    assert_eq!(rows.len(), 100_000);
    assert_eq!(slow.query("SELECT 1").value(), "1");
}

#[test]
fn commits_of_many_clients_are_on_disk_before_they_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(2, Location::Path(folder.path().join("data")));
    std::thread::scope(|scope| {
        for client in 0..8 {
            let mut connection = server.root();
            scope.spawn(move || {
                for n in 0..50 {
                    let id = 100 + client * 50 + n;
                    assert!(
                        connection
                            .query(&format!("INSERT INTO test.t VALUES ({id}, 1)"))
                            .is_ok()
                    );
                }
            });
        }
    });
    assert_eq!(
        server.root().query("SELECT COUNT(*) FROM test.t").value(),
        "401"
    );
}

#[test]
fn an_idle_client_is_told_and_closed_after_wait_timeout() {
    let server = start();
    let mut client = server.root();
    assert!(client.query("SET wait_timeout=1").is_ok());
    let began = Instant::now();
    let (sequence, packet) = client.packet().unwrap();
    assert_eq!((sequence, &packet[..3]), (0, &[0xFF, 0xBF, 0x0F][..])); // 4031
    assert!(began.elapsed() >= Duration::from_millis(900));
    assert!(client.is_closed());
}

#[test]
fn an_active_client_is_not_idle() {
    let server = start();
    let mut client = server.root();
    assert!(client.query("SET wait_timeout=1").is_ok());
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(client.query("SELECT 1").value(), "1");
    }
}

#[test]
fn a_client_that_never_says_who_it_is_is_closed_after_connect_timeout() {
    let server = start();
    server.set("connect_timeout", 1);
    let mut client = RawClient::local(&server.socket()).unwrap();
    client.packet().unwrap();
    let began = Instant::now();
    assert!(client.is_closed());
    assert!(
        (900..4000).contains(&(began.elapsed().as_millis() as u64)),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn half_a_packet_is_waited_for_net_read_timeout() {
    let server = start();
    let mut client = server.root();
    assert!(client.query("SET net_read_timeout = 1").is_ok());
    client.wire.write_all(b"\x09\0\0\0\x03SELE").unwrap();
    let began = Instant::now();
    assert_eq!(client.receive().error_number(), 1159);
    assert!(
        (900..5000).contains(&(began.elapsed().as_millis() as u64)),
        "{:?}",
        began.elapsed()
    );
    assert!(client.is_closed());
}

#[test]
fn a_client_that_never_reads_is_given_up_after_net_write_timeout() {
    let server = start();
    let mut client = server.root();
    assert!(client.query("SET net_write_timeout = 1").is_ok());
    assert!(
        client
            .query("SET cte_max_recursion_depth = 1000000")
            .is_ok()
    );
    client.send_query(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 20000) \
         SELECT REPEAT('x', 1000) FROM r",
    );
    let processes = || server.root().query(CLIENTS);
    eventually(|| matches!(processes(), Reply::Rows { rows, .. } if rows.len() == 1));
    assert!(client.is_closed());
}

#[test]
fn what_goes_over_the_wire_is_counted() {
    let server = start();
    let mut client = server.root();
    let mut status = |name: &str| {
        let Reply::Rows { rows, .. } = client.query(&format!("SHOW STATUS LIKE '{name}'")) else {
            panic!()
        };
        rows[0][1].as_deref().unwrap().parse::<u64>().unwrap()
    };
    assert!(status("Bytes_sent") > 100);
    assert!(status("Bytes_received") > 100);
    let before = status("Questions");
    assert_eq!(status("Questions"), before + 1);
    assert!(status("Max_used_connections") >= 1);
}

#[test]
fn the_last_slot_is_for_an_administrator() {
    let server = start();
    server.set("max_connections", 2);
    let first = server.tcp("native", "one").unwrap();
    let second = server.tcp("native", "one").unwrap();
    assert_eq!(server.tcp("native", "one").err().unwrap().0, 1040);
    let mut admin = server.root();
    assert_eq!(server.local("root", "").err().unwrap().0, 1040);
    assert_eq!(admin.query("SELECT 1").value(), "1");
    drop((first, second, admin));
    eventually(|| server.tcp("native", "one").is_ok());
}

#[test]
fn kill_ends_an_idle_connection_and_a_waiting_statement() {
    let server = start();
    let mut idle = server.root();
    let mut busy = server.root();
    let mut killer = server.root();
    assert_eq!(idle.query("SELECT 1").value(), "1");
    busy.send_query("SELECT SLEEP(100)");
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    assert!(
        killer
            .query(&format!("KILL {}", idle.connection_id))
            .is_ok()
    );
    assert!(
        killer
            .query(&format!("KILL {}", busy.connection_id))
            .is_ok()
    );
    assert!(idle.is_closed());
    assert!(busy.is_closed());
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(killer.query("KILL 99999").error_number(), 1094);
}

#[test]
fn a_query_that_is_killed_while_its_reader_is_slow_ends_behind_a_whole_row() {
    let server = start();
    let mut slow = server.root();
    let mut killer = server.root();
    for _ in 0..3 {
        slow.send_query(
            "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 200)
             SELECT REPEAT('x', 999) FROM s a, s b",
        );
        // Until nothing more fits between them.
        std::thread::sleep(Duration::from_millis(300));
        let kill = format!("KILL QUERY {}", slow.connection_id);
        assert!(killer.query(&kill).is_ok());
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(slow.receive().error_number(), 1317);
        assert_eq!(slow.query("SELECT 3").value(), "3");
    }
}

#[test]
fn bytes_that_are_no_packets_end_only_their_own_connection() {
    let server = start();
    let mut witness = server.root();
    for garbage in [
        &b"\xFF\xFF\xFF\x00"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 64],
        &[1, 0, 0, 1, 0xFF],
        b"",
    ] {
        let mut client = RawClient::local(&server.socket()).unwrap();
        client.packet().unwrap();
        client.wire.write_all(garbage).unwrap();
        drop(client);
        assert_eq!(witness.query("SELECT 1").value(), "1");
    }
    // After login: every command byte, alone and with rubbish behind it.
    for code in 0..=255u8 {
        for tail in [&[][..], &[0xFE; 3], &[0; 30]] {
            let mut client = server.root();
            client.send(0, &[&[code], tail].concat()).unwrap();
            drop(client);
        }
    }
    let mut client = server.root();
    client.send(0, &[]).unwrap();
    assert_eq!(client.receive().error_number(), 1835);
    client.send(0, &[0x7F]).unwrap();
    assert_eq!(client.receive().error_number(), 1047);
    assert_eq!(witness.query("SELECT 1").value(), "1");
}

#[test]
fn a_thousand_connections_are_served() {
    let server = start();
    server.set("max_connections", 2000);
    let mut clients: Vec<_> = (0..1000).map(|_| server.root()).collect();
    for round in 0..3 {
        for client in &mut clients {
            client.send_query("SELECT 1");
        }
        for client in &mut clients {
            assert_eq!(client.receive().value(), "1", "round {round}");
        }
    }
}

#[test]
fn stopping_ends_idle_connections_and_interrupts_statements() {
    let server = start();
    let mut idle = server.root();
    let mut busy = server.root();
    busy.send_query("SELECT SLEEP(100)");
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    server.server.stop();
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert!(idle.is_closed());
    assert!(busy.is_closed());
    assert!(!server.socket().exists());
}

#[test]
fn change_user_logs_in_again_on_the_same_connection() {
    let server = start();
    let mut client = server.root();
    client
        .send(
            0,
            &[
                &[0x11][..],
                b"nopass\0",
                &[0, 0, 255, 0],
                b"caching_sha2_password\0",
            ]
            .concat(),
        )
        .unwrap();
    assert!(client.receive().is_ok());
    assert_eq!(client.query("SELECT 1").value(), "1");
    client
        .send(
            0,
            &[
                &[0x11][..],
                b"native\0",
                &[0, 0, 255, 0],
                b"mysql_native_password\0",
            ]
            .concat(),
        )
        .unwrap();
    // It may have no password, or wait for the nonce.
    let (sequence, question) = client.packet().unwrap();
    assert!(question.starts_with(b"\xFEmysql_native_password\0"));
    client.send(sequence + 1, b"").unwrap();
    assert_eq!(client.receive().error_number(), 1045);
    assert!(client.is_closed());
}

#[test]
fn a_prepared_statement_runs_with_parameters_and_with_a_cursor() {
    let server = start();
    let mut client = server.root();
    client.send(0, b"\x16SELECT ?").unwrap();
    let (_, prepared) = client.packet().unwrap();
    assert_eq!(prepared[0], 0);
    let id = &prepared[1..5].to_vec();
    client.packet().unwrap();
    client.packet().unwrap();
    let execute = |cursor: u8| {
        [
            &[0x17],
            &id[..],
            &[cursor, 1, 0, 0, 0, 0, 1, 8, 0],
            &42i64.to_le_bytes(),
        ]
        .concat()
    };
    client.send(0, &execute(0)).unwrap();
    let packets: Vec<_> = (0..4).map(|_| client.packet().unwrap().1).collect();
    assert_eq!(packets[2], [&[0, 0][..], &42i64.to_le_bytes()].concat());
    client.send(0, &execute(1)).unwrap();
    let packets: Vec<_> = (0..3).map(|_| client.packet().unwrap().1).collect();
    let end =
        porpoise_protocol::reply::parse_end_of_rows(&packets[2], client.capabilities).unwrap();
    assert!(end.status.contains(Status::CURSOR_EXISTS));
    client
        .send(0, &[&[0x1C], &id[..], &[5, 0, 0, 0]].concat())
        .unwrap();
    assert_eq!(
        client.packet().unwrap().1,
        [&[0, 0][..], &42i64.to_le_bytes()].concat()
    );
    let (_, end) = client.packet().unwrap();
    let end = porpoise_protocol::reply::parse_end_of_rows(&end, client.capabilities).unwrap();
    assert!(end.status.contains(Status::LAST_ROW_SENT));
}

const TWICE: &str = "CREATE PROCEDURE test.twice(IN given BIGINT, OUT result BIGINT) \
     BEGIN SELECT given; SET result = 2 * given; END";

/// The packets of a CALL that is prepared and executed, asking for a cursor, with the numbers 21
/// and 0.
fn packets_of_prepared_call(client: &mut RawClient, count: usize) -> Vec<Vec<u8>> {
    client.send(0, b"\x16CALL test.twice(?, ?)").unwrap();
    let (_, prepared) = client.packet().unwrap();
    assert_eq!(prepared[0], 0);
    let id = prepared[1..5].to_vec();
    let has_eof = !client.capabilities.contains(Capabilities::DEPRECATE_EOF);
    for _ in 0..2 + usize::from(has_eof) {
        client.packet().unwrap();
    }
    let (types, zero) = ([0, 1, 8, 0, 8, 0], 0i64.to_le_bytes());
    let head = [&[0x17], &id[..], &[1, 1, 0, 0, 0]].concat();
    let execute = [&head[..], &types, &21i64.to_le_bytes(), &zero].concat();
    client.send(0, &execute).unwrap();
    (0..count).map(|_| client.packet().unwrap().1).collect()
}

#[test]
fn a_prepared_call_returns_its_out_parameters_in_a_row_of_their_own() {
    let server = start();
    let mut admin = server.root();
    assert!(admin.query(TWICE).is_ok());
    for deprecates_eof in [true, false] {
        let mut client = RawClient::local(&server.socket()).unwrap();
        client.capabilities |= Capabilities::PS_MULTI_RESULTS;
        client
            .capabilities
            .set(Capabilities::DEPRECATE_EOF, deprecates_eof);
        let mut client = client.login("root", "").unwrap();
        // Each result: the number of columns, their definitions, rows, an end; then OK.
        let eof = usize::from(!deprecates_eof);
        let packets = packets_of_prepared_call(&mut client, 9 + 2 * eof);
        let row = |value: i64| [&[0, 0][..], &value.to_le_bytes()].concat();
        assert_eq!(packets[2 + eof], row(21));
        assert_eq!(packets[6 + 2 * eof], row(42));
        let end = |at: usize| {
            let end =
                porpoise_protocol::reply::parse_end_of_rows(&packets[at], client.capabilities);
            end.unwrap().status
        };
        let more = Status::MORE_RESULTS_EXISTS;
        assert_eq!(
            end(3 + eof) & (more | Status::PS_OUT_PARAMS | Status::CURSOR_EXISTS),
            more
        );
        assert!(end(7 + 2 * eof).contains(more | Status::PS_OUT_PARAMS));
        if !deprecates_eof {
            // libmariadb asks here, before it has read the rows, whether more results follow.
            assert!(end(2).contains(more));
            assert!(end(6 + 1).contains(more | Status::PS_OUT_PARAMS));
        }
        let ok =
            porpoise_protocol::reply::OkPacket::parse(&packets[8 + 2 * eof], client.capabilities);
        assert!(!ok.unwrap().status.intersects(more | Status::PS_OUT_PARAMS));
    }

    // A client that doesn't say that it takes them gets none.
    let mut client = server.root();
    let packets = packets_of_prepared_call(&mut client, 5);
    assert_eq!(packets[4][0], 0);
    assert_eq!(client.query("SELECT 1").value(), "1");
}

/// An execution whose parameters are cut short leaves none of them to the next.
#[test]
fn parameters_that_were_refused_are_forgotten() {
    let server = start();
    let mut client = server.root();
    client.send(0, b"\x16DO ? + ?").unwrap();
    let prepared = client.packet().unwrap().1;
    assert_eq!(prepared[0], 0);
    let has_eof = !client.capabilities.contains(Capabilities::DEPRECATE_EOF);
    for _ in 0..2 + usize::from(has_eof) {
        client.packet().unwrap();
    }
    let head = [&[0x17], &prepared[1..5], &[0, 1, 0, 0, 0, 0, 1, 8, 0, 8, 0]].concat();
    let (one, two) = (1i64.to_le_bytes(), 2i64.to_le_bytes());
    for _ in 0..2 {
        let cut = [&head[..], &one, &two[..3]].concat();
        client.send(0, &cut).unwrap();
        assert_ne!(client.receive().error_number(), 0);
        client.send(0, &[&head[..], &one, &two].concat()).unwrap();
        assert!(client.receive().is_ok());
    }
}

#[test]
fn what_begins_a_results_rows_tells_that_another_follows() {
    let server = start();
    let mut client = RawClient::local(&server.socket()).unwrap();
    client.capabilities -= Capabilities::DEPRECATE_EOF;
    let mut client = client.login("root", "").unwrap();
    assert!(client.query(TWICE).is_ok());
    let more = Status::MORE_RESULTS_EXISTS;
    // The number of columns, their definition, an end, a row, an end; OK.
    for (sql, packets, follows) in [
        ("CALL test.twice(1, @x)", 6, true),
        ("SELECT 1; DO 1", 6, true),
        ("SELECT 1; ", 5, false),
    ] {
        client.send_query(sql);
        let packets: Vec<_> = (0..packets).map(|_| client.packet().unwrap().1).collect();
        for end in [2, 4] {
            let end =
                porpoise_protocol::reply::parse_end_of_rows(&packets[end], client.capabilities);
            assert_eq!(end.unwrap().status.contains(more), follows, "{sql}");
        }
    }
}

#[test]
fn rows_of_a_procedure_that_fails_end_with_the_error() {
    let server = start();
    let client = RawClient::local(&server.socket()).unwrap();
    let mut client = client.login("root", "").unwrap();
    for sql in [
        "CREATE TABLE test.three AS SELECT 1 AS a UNION SELECT 2 UNION SELECT 3",
        "CREATE FUNCTION test.fails(a INT) RETURNS INT DETERMINISTIC \
         IF a = 2 THEN SIGNAL SQLSTATE '45000'; ELSE RETURN a; END IF",
        "CREATE PROCEDURE test.shows() SELECT test.fails(a) FROM test.three",
        "CREATE PROCEDURE test.handles() BEGIN \
         DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SELECT 'handled'; CALL test.shows(); END",
    ] {
        assert!(client.query(sql).is_ok(), "{sql}");
    }
    assert_eq!(client.query("CALL test.shows()").error_number(), 1644);
    // A handler goes on behind the rows that there were.
    assert_eq!(client.query("CALL test.handles()").value(), "1");
    assert_eq!(client.receive().value(), "handled");
    assert!(client.receive().is_ok());
}

#[test]
fn a_client_of_one_result_calls_no_procedure_that_has_more() {
    let server = start();
    let mut admin = server.root();
    assert!(admin.query(TWICE).is_ok());
    assert!(admin.query("CREATE PROCEDURE test.silent() DO 1").is_ok());
    let mut client = RawClient::local(&server.socket()).unwrap();
    client.capabilities -= Capabilities::MULTI_RESULTS | Capabilities::MULTI_STATEMENTS;
    let mut client = client.login("root", "").unwrap();
    assert_eq!(client.query("CALL test.twice(1, @x)").error_number(), 1312);
    assert!(client.query("CALL test.silent()").is_ok());
}

#[test]
fn a_client_sends_the_file_that_it_is_asked_for() {
    const LOAD: &str = "LOAD DATA LOCAL INFILE 'rows' INTO TABLE test.t FIELDS TERMINATED BY ','";
    let server = start();
    let mut client = RawClient::local(&server.socket()).unwrap();
    client.capabilities |= Capabilities::LOCAL_FILES;
    let mut client = client.login("root", "").unwrap();
    // The server doesn't request a file unless `local_infile` is on.
    assert!(matches!(client.query(LOAD), Reply::Error(3948, _)));
    assert!(client.query("SET GLOBAL local_infile = 1").is_ok());
    assert!(matches!(server.root().query(LOAD), Reply::Error(3948, _)));

    client.send_query(LOAD);
    let (sequence, asked) = client.packet().unwrap();
    assert_eq!((sequence, asked.as_slice()), (1, &b"\xFBrows"[..]));
    // Rows don't care where packets end; the statement waits for the last.
    client.send(2, b"2,2").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(server.root().query("SELECT 1").rows().len() == 1);
    client.send(3, b"0\n3,30\n1,no number\n4,").unwrap();
    client.send(4, b"40").unwrap();
    client.send(5, b"").unwrap();
    let (sequence, ok) = client.packet().unwrap();
    let ok = porpoise_protocol::reply::OkPacket::parse(&ok, client.capabilities).unwrap();
    assert_eq!((sequence, ok.affected_rows), (6, 3));
    let rows = client.query("SELECT SUM(v), COUNT(*) FROM test.t");
    assert_eq!(
        rows.rows(),
        [[Some("90".to_string()), Some("4".to_string())]]
    );

    // A client that vanishes with its file half sent leaves nothing.
    client.send_query(LOAD);
    client.packet().unwrap();
    client.send(2, b"9,9\n").unwrap();
    drop(client);
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut other = server.root();
    while other.query(CLIENTS).rows().len() > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(other.query("SELECT COUNT(*) FROM test.t").value(), "4");
}

#[test]
fn a_worker_is_idle_once_for_each_time_that_it_has_nothing_to_do() {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let times = || TIMES.load(Ordering::SeqCst);
    let options = ServerOptions {
        workers: 1,
        when_idle: Some(|| {
            TIMES.fetch_add(1, Ordering::SeqCst);
        }),
        ..ServerOptions::default()
    };
    let server = TestServer::start(in_memory(&[]), options, &[]);
    let mut root = server.root();
    for time in 1..=2 {
        assert_eq!(root.query("SELECT 6 * 7").value(), "42");
        assert_eq!(times(), time - 1);
        let deadline = Instant::now() + Duration::from_secs(10);
        while times() < time && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(1_500));
        assert_eq!(times(), time);
    }
}
