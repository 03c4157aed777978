//! Connections that go from worker to worker: after every turn here, where otherwise what their
//! sends cost decides.
//!
//! Whatever a client does or has done to it must be the same as if its connection had stayed.

pub mod common;

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use common::RawClient;
use common::test_server::{TestServer, in_memory};
use porpoise_protocol::frame::PacketWriter;
use porpoise_server::{MigrationPolicy, ServerOptions};

fn start(workers: usize) -> TestServer {
    let options = ServerOptions {
        workers,
        migration: MigrationPolicy::AfterEveryTurn,
        ..ServerOptions::default()
    };
    let setup = [
        "CREATE DATABASE test",
        "CREATE TABLE test.t (id INT PRIMARY KEY, v INT NOT NULL)",
        "INSERT INTO test.t VALUES (1, 0)",
    ];
    TestServer::start(in_memory(&[]), options, &setup)
}

impl TestServer {
    fn migrations(&self) -> u64 {
        self.count("Moved_connections")
    }
}

/// Microseconds that differ from one call to the next.
fn pseudo_random_delay(round: u32, most: u32) -> Duration {
    Duration::from_micros(u64::from(round.wrapping_mul(2_654_435_761) >> 8) % u64::from(most))
}

#[test]
fn a_session_is_the_same_wherever_its_connection_is() {
    let server = start(3);
    let before = server.migrations();
    thread::scope(|scope| {
        for client in 0..4u32 {
            let server = &server;
            scope.spawn(move || {
                let mut wire = server.root();
                assert!(wire.query("USE test").is_ok());
                assert!(wire.query(&format!("SET @me = {client}")).is_ok());
                assert!(wire.query("CREATE TEMPORARY TABLE mine (n INT)").is_ok());
                wire.send(0, b"\x16SELECT ? + @me").unwrap();
                let (_, prepared) = wire.packet().unwrap();
                assert_eq!(prepared[0], 0);
                wire.packet().unwrap();
                wire.packet().unwrap();
                for round in 0..50i64 {
                    assert!(wire.query("BEGIN").is_ok());
                    let row = 1000 * i64::from(client) + round;
                    let insert = format!("INSERT INTO t VALUES ({row}, {round})");
                    if row != 1 {
                        assert!(wire.query(&insert).is_ok());
                    }
                    assert!(wire.query("INSERT INTO mine VALUES (1)").is_ok());
                    let execute = [
                        &[0x17],
                        &prepared[1..5],
                        &[0, 1, 0, 0, 0, 0, 1, 8, 0],
                        &round.to_le_bytes(),
                    ];
                    wire.send(0, &execute.concat()).unwrap();
                    let packets: Vec<_> = (0..4).map(|_| wire.packet().unwrap().1).collect();
                    let sum = (round + i64::from(client)).to_le_bytes();
                    assert_eq!(packets[2][2..], sum);
                    let end = if round % 2 == 0 { "COMMIT" } else { "ROLLBACK" };
                    assert!(wire.query(end).is_ok());
                }
                let kept = wire.query("SELECT COUNT(*) FROM mine");
                assert_eq!(kept.value(), "25");
                let kept = format!("SELECT COUNT(*) FROM t WHERE id DIV 1000 = {client}");
                let rows = if client == 0 { "26" } else { "25" };
                assert_eq!(wire.query(&kept).value(), rows);
            });
        }
    });
    let moves = server.migrations() - before;
    assert!(moves > 4 * 50 * 4, "only {moves} moves");
}

#[test]
fn statements_sent_ahead_are_answered_in_order() {
    let server = start(3);
    for burst in [1, 3, 40] {
        let mut wire = server.root();
        let commands: Vec<Vec<u8>> = (0..400)
            .map(|number| {
                let mut writer = PacketWriter::with_buffer(Vec::new(), 0);
                writer.write(format!("\x03SELECT {number}").as_bytes());
                writer.bytes().to_vec()
            })
            .collect();
        // The server reads them as they come: whole, in halves, several at once, on its path from
        // worker to worker.
        for (round, some) in commands.chunks(burst).enumerate() {
            let bytes = some.concat();
            let (one, other) = bytes.split_at(bytes.len() / 2);
            wire.wire.write_all(one).unwrap();
            thread::sleep(pseudo_random_delay(round as u32, 60));
            wire.wire.write_all(other).unwrap();
        }
        for number in 0..400 {
            assert_eq!(wire.receive().value(), number.to_string());
        }
    }
}

#[test]
fn a_large_result_reaches_a_slow_reader_whole() {
    let server = start(2);
    let mut wire = server.root();
    for round in 0..3 {
        wire.send_query(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900)
             SELECT i, REPEAT('x', 8000) FROM n",
        );
        // What follows is queued behind it.
        wire.send_query("SELECT 'next'");
        thread::sleep(Duration::from_millis(30));
        let answer = wire.receive();
        assert_eq!(answer.rows().len(), 900, "round {round}");
        for (at, row) in answer.rows().iter().enumerate() {
            assert_eq!(row[0].as_deref(), Some(&*(at + 1).to_string()));
            assert_eq!(row[1].as_ref().map(String::len), Some(8000));
        }
        assert_eq!(wire.receive().value(), "next");
    }
}

#[test]
fn kill_reaches_a_connection_on_its_way() {
    let server = start(3);
    let mut killer = server.root();
    for round in 0..150 {
        let mut victim = server.root();
        assert_eq!(victim.query("SELECT 1").value(), "1");
        victim.send_query("SELECT 2");
        // From before the answer to after the move.
        thread::sleep(pseudo_random_delay(round, 120));
        let answer = killer.query(&format!("KILL {}", victim.connection_id));
        assert!(answer.is_ok(), "{answer:?}");
        let began = Instant::now();
        assert!(victim.is_closed(), "round {round}");
        assert!(began.elapsed() < Duration::from_secs(5), "round {round}");
    }
}

#[test]
fn kill_query_ends_the_statement_and_nothing_else() {
    let server = start(3);
    let mut killer = server.root();
    let mut victim = server.root();
    assert!(victim.query("USE test").is_ok());
    for round in 0..20 {
        assert_eq!(victim.query("SELECT 1").value(), "1");
        victim.send_query("SELECT SLEEP(60) FROM t");
        thread::sleep(Duration::from_millis(20));
        let kill = format!("KILL QUERY {}", victim.connection_id);
        assert!(killer.query(&kill).is_ok());
        let began = Instant::now();
        let answer = victim.receive();
        assert!(began.elapsed() < Duration::from_secs(5), "{answer:?}");
        assert_eq!(victim.query("SELECT 3").value(), "3", "round {round}");
    }
}

#[test]
fn wait_timeout_goes_with_the_connection() {
    let server = start(3);
    let clients: Vec<RawClient> = (0..12)
        .map(|client| {
            let mut wire = server.root();
            assert!(wire.query("SET wait_timeout = 1").is_ok());
            for _ in 0..client {
                assert_eq!(wire.query("SELECT 1").value(), "1");
            }
            wire
        })
        .collect();
    let began = Instant::now();
    for mut wire in clients {
        let (_, last) = wire.packet().unwrap();
        assert_eq!(u16::from_le_bytes([last[1], last[2]]), 4031);
        assert!(wire.is_closed());
    }
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_client_that_dies_on_its_way_releases_its_locks() {
    let server = start(3);
    for round in 0..60 {
        let mut victim = server.root();
        for sql in ["USE test", "BEGIN"] {
            assert!(victim.query(sql).is_ok());
        }
        victim.send_query("UPDATE t SET v = v + 1 WHERE id = 1");
        thread::sleep(pseudo_random_delay(round, 150));
        drop(victim);
        let mut next = server.root();
        assert!(next.query("USE test").is_ok());
        assert!(next.query("SET innodb_lock_wait_timeout = 5").is_ok());
        let answer = next.query("UPDATE t SET v = 0 WHERE id = 1");
        assert!(answer.is_ok(), "round {round}: {answer:?}");
    }
}

#[test]
fn a_server_that_stops_leaves_no_connection_between_workers() {
    for round in 0..12 {
        let server = start(4);
        thread::scope(|scope| {
            for _ in 0..6 {
                let mut wire = server.root();
                scope.spawn(move || {
                    loop {
                        if wire.send(0, b"\x03SELECT 1").is_err() {
                            break;
                        }
                        match wire.packet() {
                            // Of the reply, or that the server shuts down.
                            Ok((_, packet)) if packet[0] == 1 => {
                                let rest = (0..3).try_for_each(|_| wire.packet().map(drop));
                                if rest.is_err() {
                                    break;
                                }
                            }
                            _ => break,
                        }
                    }
                    assert!(wire.is_closed());
                });
            }
            thread::sleep(Duration::from_millis(5) + pseudo_random_delay(round, 3000));
            let began = Instant::now();
            server.server.stop();
            assert!(began.elapsed() < Duration::from_secs(8), "round {round}");
        });
    }
}
