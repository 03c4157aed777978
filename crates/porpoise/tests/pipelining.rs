//! Many statements in flight, over every way in: each reply is its own statement's, errors in the
//! middle included. And many connections on one thread, which waits for whichever has a reply.

mod common;

use std::time::{Duration, Instant};

use common::served::{Served, WAYS};
use porpoise_client::{Connection, Options, Poll};

const STATEMENTS: i64 = 3000;

/// Every tenth statement of either kind is wrong in a way of its own.
fn is_wrong(at: i64) -> bool {
    at % 10 == 7
}

fn pipeline(mut connection: Connection) {
    connection
        .run("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)")
        .unwrap();
    connection.run("DELETE FROM t").unwrap();
    let insert = connection.prepare("INSERT INTO t VALUES (?)").unwrap();
    // Both directions together hold a small part of this: requests of 1 MB, replies of 3 MB.
    let long = "x".repeat(300);
    for at in 0..STATEMENTS {
        if is_wrong(at) {
            connection
                .send_query(format!("SELECT {at} FROM nowhere_{at}"))
                .unwrap();
            connection
                .send_execute(&insert, &[(at - 1).into()])
                .unwrap();
        } else {
            connection
                .send_query(format!("SELECT {at}, REPEAT('{long}', 4)"))
                .unwrap();
            connection.send_execute(&insert, &[at.into()]).unwrap();
        }
    }
    assert_eq!(connection.pending() as i64, 2 * STATEMENTS);
    for at in 0..STATEMENTS {
        if is_wrong(at) {
            let error = connection.receive().map(drop).unwrap_err();
            assert_eq!(error.number(), Some(1146));
            assert!(
                error.to_string().contains(&format!("nowhere_{at}'")),
                "{error}"
            );
            let error = connection.receive().map(drop).unwrap_err();
            assert_eq!(error.number(), Some(1062));
            assert!(
                error.to_string().contains(&format!("'{}'", at - 1)),
                "{error}"
            );
        } else {
            let rows = connection.receive().unwrap().rows().unwrap();
            let row = rows.get(0).unwrap();
            assert_eq!(row.get::<i64>(0).unwrap(), at);
            assert_eq!(row.get::<&str>(1).unwrap().len(), 1200);
            let outcome = connection.receive().unwrap().finish().unwrap();
            assert_eq!(outcome.affected_rows, 1);
        }
    }
    assert_eq!(connection.pending(), 0);
    let count = connection.rows("SELECT COUNT(*) FROM t").unwrap().to_text();
    assert_eq!(count, [[(STATEMENTS - STATEMENTS / 10).to_string()]]);
}

/// A database that serves over every way in, and a URL for each way.
fn start() -> (Served, [String; 4]) {
    let served = Served::with_schema("ann", "d");
    let urls = WAYS.map(|(_, way)| served.url_of_schema("ann", "d", way));
    (served, urls)
}

/// One more way: the engine in this process.
fn embedded(served: &Served) -> Connection {
    let options = Options {
        database: Some("d".into()),
        ..Options::default()
    };
    Connection::over(served.database.stream().unwrap(), &options).unwrap()
}

#[test]
fn every_reply_is_its_own_statements_over_every_way_in() {
    let (served, urls) = start();
    for url in &urls {
        pipeline(Connection::open(url).unwrap());
    }
    pipeline(embedded(&served));
}

const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

/// Keeps `depth` statements in flight on each connection, until each has answered `turns`.
fn multiplex(connections: &mut [Connection], depth: usize, turns: usize) {
    let send = |connection: &mut Connection, at: usize| match at % 10 {
        7 => connection.send_query(format!("SELECT {at} FROM nowhere_{at}")),
        _ => connection.send_query(format!("SELECT {at}")),
    };
    let mut sent = vec![depth; connections.len()];
    let mut answered = vec![0; connections.len()];
    for connection in &mut *connections {
        for at in 0..depth {
            send(connection, at).unwrap();
        }
    }
    let mut poll = Poll::default();
    while connections
        .iter()
        .any(|connection| connection.pending() > 0)
    {
        let ready = poll.wait(connections, PATIENCE).unwrap();
        assert!(!ready.is_empty());
        for &place in ready {
            let (connection, at) = (&mut connections[place], answered[place]);
            assert!(connection.has_reply().unwrap());
            match connection.receive() {
                Ok(mut results) => {
                    let rows = results.rows().unwrap().to_text();
                    assert_eq!(rows, [[at.to_string()]]);
                }
                Err(error) => {
                    assert_eq!((at % 10, error.number()), (7, Some(1146)));
                    assert!(error.to_string().contains(&format!("nowhere_{at}'")));
                }
            }
            answered[place] += 1;
            if sent[place] < turns {
                send(connection, sent[place]).unwrap();
                sent[place] += 1;
            }
        }
    }
    assert_eq!(answered, vec![turns; connections.len()]);
    assert!(poll.wait(connections, None).unwrap().is_empty());
}

#[test]
fn one_thread_has_many_connections_over_each_way_in_and_over_all_together() {
    let (served, urls) = start();
    let open = |url: &String| Connection::open(url).unwrap();
    for url in &urls {
        let mut connections: Vec<_> = (0..8).map(|_| open(url)).collect();
        for depth in [1, 5] {
            multiplex(&mut connections, depth, 300);
        }
    }
    let mut connections: Vec<_> = urls.iter().map(open).collect();
    connections.push(embedded(&served));
    for depth in [1, 5] {
        multiplex(&mut connections, depth, 300);
    }
}

#[test]
fn a_reply_that_takes_long_keeps_nobody_from_the_others() {
    let (_served, urls) = start();
    for url in &urls {
        let mut connections = [(); 2].map(|()| Connection::open(url).unwrap());
        let mut poll = Poll::default();
        connections[0].send_query("SELECT SLEEP(0.2)").unwrap();
        let began = Instant::now();
        assert!(!connections[0].has_reply().unwrap());
        let patience = Some(Duration::from_millis(20));
        assert!(poll.wait(&mut connections, patience).unwrap().is_empty());
        for _ in 0..10 {
            connections[1].send_query("SELECT 1").unwrap();
            assert_eq!(poll.wait(&mut connections, PATIENCE).unwrap(), [1]);
            connections[1].receive().unwrap().finish().unwrap();
        }
        assert_eq!(poll.wait(&mut connections, PATIENCE).unwrap(), [0]);
        assert!(began.elapsed() >= Duration::from_millis(190));
        connections[0].receive().unwrap().finish().unwrap();
        assert!(!connections[0].has_reply().unwrap());
    }
}

#[test]
fn connections_whose_server_is_gone_are_told_of() {
    let (served, urls) = start();
    let mut connections: Vec<_> = urls
        .iter()
        .map(|url| Connection::open(url).unwrap())
        .collect();
    for connection in &mut connections {
        connection.send_query("SELECT SLEEP(5)").unwrap();
    }
    let mut poll = Poll::default();
    let patience = Some(Duration::from_millis(20));
    assert!(poll.wait(&mut connections, patience).unwrap().is_empty());
    drop(served.listening);
    let mut told = 0;
    while told < connections.len() {
        let ready = poll.wait(&mut connections, PATIENCE).unwrap();
        assert!(!ready.is_empty());
        for &place in ready {
            // Interrupted, or cut off.
            let connection = &mut connections[place];
            let ended = connection.receive().and_then(|results| results.finish());
            assert!(ended.is_err() || connection.pending() == 0);
            told += 1;
        }
    }
}
