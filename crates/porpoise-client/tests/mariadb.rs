//! The client against a server that is not ours: MariaDB, over a Unix socket and TCP.
//!
//! The tests share one server, which ends with the last of them.

use porpoise_client::{
    Connection, Date, DateTime, Error, Options, Time, Transport, Value, flags::Status,
};
use porpoise_e2e::server::{Product, Server};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());

fn server() -> Arc<Server> {
    let mut shared = SERVER
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Server::start(Product::MariaDb));
        *shared = Arc::downgrade(&server);
        server
    })
}

/// A connection with a database of its own.
struct Session {
    connection: Connection,
    options: Options,
    _server: Arc<Server>,
}

fn session(database: &str, transport: Transport) -> Session {
    let server = server();
    let mut options = Options {
        user: "root".into(),
        host: "127.0.0.1".into(),
        port: server.port,
        socket: Some(server.socket.clone()),
        transport,
        multi_statements: true,
        read_timeout: Some(Duration::from_secs(30)),
        ..Options::default()
    };
    let mut connection = Connection::connect(&options).expect("root logs in");
    connection
        .run(format!("CREATE OR REPLACE DATABASE {database}"))
        .expect("a database is made");
    connection.init_db(database).expect("it is used");
    options.database = Some(database.into());
    Session {
        connection,
        options,
        _server: server,
    }
}

#[test]
fn values_are_the_same_as_text_and_as_binary() {
    let mut session = session("values_db", Transport::Unix);
    let connection = &mut session.connection;
    connection
        .run(
            "CREATE TABLE t (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT, e BIGINT UNSIGNED, f FLOAT,
             g DOUBLE, h DECIMAL(10,2), i DATE, j DATETIME(6), k TIME(3), l YEAR, m VARCHAR(20), n BLOB, o BIT(9),
             p TIMESTAMP NULL)",
        )
        .unwrap();
    let insert = connection
        .prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .unwrap();
    assert_eq!(insert.parameters(), 16);
    let date = Date {
        year: 2024,
        month: 2,
        day: 29,
    };
    let datetime = DateTime {
        date,
        hour: 23,
        minute: 59,
        second: 1,
        microsecond: 250,
    };
    let time = Time {
        negative: true,
        days: 34,
        hours: 22,
        minutes: 59,
        seconds: 58,
        microseconds: 125_000,
    };
    let values: [Value<'_>; 16] = [
        (-128i8).into(),
        65535u16.into(),
        (-8_388_608i32).into(),
        i32::MIN.into(),
        u64::MAX.into(),
        1.5f32.into(),
        0.1f64.into(),
        Value::Decimal(b"-12.50"),
        date.into(),
        datetime.into(),
        time.into(),
        2024u16.into(),
        "größe".into(),
        (&[0u8, 255][..]).into(),
        257u16.into(),
        DateTime {
            microsecond: 0,
            ..datetime
        }
        .into(),
    ];
    let outcome = connection
        .execute(&insert, &values)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(outcome.affected_rows, 1);
    let nulls = [Value::Null; 16];
    connection
        .execute(&insert, &nulls)
        .unwrap()
        .finish()
        .unwrap();

    let text = connection.rows("SELECT * FROM t").unwrap();
    let select = connection.prepare("SELECT * FROM t").unwrap();
    let binary = connection.execute(&select, &[]).unwrap().rows().unwrap();
    for rows in [&text, &binary] {
        assert_eq!(rows.len(), 2);
        let row = rows.get(0).unwrap();
        assert_eq!(row.get::<i8>(0).unwrap(), -128);
        assert_eq!(row.get::<u16>(1).unwrap(), 65535);
        assert_eq!(row.get::<i32>(2).unwrap(), -8_388_608);
        assert_eq!(row.get::<i32>(3).unwrap(), i32::MIN);
        assert_eq!(row.get::<u64>(4).unwrap(), u64::MAX);
        assert_eq!(row.get::<f32>(5).unwrap(), 1.5);
        assert_eq!(row.get::<f64>(6).unwrap(), 0.1);
        assert_eq!(row.get::<&str>(7).unwrap(), "-12.50");
        assert_eq!(row.get::<Date>(8).unwrap(), date);
        assert_eq!(row.get::<DateTime>(9).unwrap(), datetime);
        assert_eq!(row.get::<Time>(10).unwrap(), time);
        assert_eq!(row.get::<u16>(11).unwrap(), 2024);
        assert_eq!(row.get::<&str>(12).unwrap(), "größe");
        assert_eq!(row.get::<&[u8]>(13).unwrap(), [0, 255]);
        assert_eq!(row.get::<&[u8]>(14).unwrap(), [1, 1]);
        assert!(row.get::<DateTime>(15).is_ok());
        let row = rows.get(1).unwrap();
        assert!(row.values().all(|value| matches!(value, Ok(Value::Null))));
        assert!(matches!(
            row.get::<i64>(0),
            Err(Error::Value { column: 0, .. })
        ));
        assert!(row.get::<i64>(16).is_err());
    }
    assert_eq!(text.columns().position("m"), Some(12));
    assert_eq!(text.columns().get(0).unwrap().org_table, b"t");
    assert_eq!(text.columns().names().last().unwrap(), "p");
}

#[test]
fn rows_can_be_streamed_and_left_unread() {
    let mut session = session("stream_db", Transport::Tcp);
    let connection = &mut session.connection;
    let mut results = connection
        .query("SELECT seq, REPEAT('x', seq) FROM seq_1_to_5000")
        .unwrap();
    let mut seen = 0;
    while let Some(row) = results.next_row().unwrap() {
        seen += 1;
        assert_eq!(row.get::<u64>(0).unwrap(), seen);
        assert_eq!(row.get::<&[u8]>(1).unwrap().len() as u64, seen);
    }
    assert_eq!(seen, 5000);
    let mut results = connection
        .query("SELECT seq FROM seq_1_to_5000; SELECT 2")
        .unwrap();
    results.next_row().unwrap();
    assert_eq!(
        connection.rows("SELECT 'next'").unwrap().to_text(),
        [["next"]]
    );
}

#[test]
fn every_result_of_several_statements_is_read() {
    let mut session = session("multi_db", Transport::Unix);
    let connection = &mut session.connection;
    let mut results = connection
        .query("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO t (v) VALUES (7), (8); SELECT v FROM t; NONSENSE")
        .unwrap();
    assert!(results.columns().is_empty());
    assert!(results.next_result().unwrap());
    assert_eq!(
        (
            results.outcome().affected_rows,
            results.outcome().last_insert_id
        ),
        (2, 1)
    );
    assert_eq!(
        results.outcome().message,
        "Records: 2  Duplicates: 0  Warnings: 0"
    );
    assert!(results.next_result().unwrap());
    assert_eq!(results.rows().unwrap().to_text(), [["7"], ["8"]]);
    assert_eq!(results.next_result().unwrap_err().number(), Some(1064));
    connection.ping().unwrap();
}

#[test]
fn an_error_of_the_server_leaves_the_connection_good() {
    let mut session = session("errors_db", Transport::Unix);
    let connection = &mut session.connection;
    let Error::Server {
        number,
        sqlstate,
        message,
    } = connection.run("SELECT * FROM missing").unwrap_err()
    else {
        panic!("not the server's error");
    };
    assert_eq!((number, &sqlstate), (1146, b"42S02"));
    assert_eq!(message, "Table 'errors_db.missing' doesn't exist");
    assert_eq!(
        connection.prepare("SELEC 1").unwrap_err().number(),
        Some(1064)
    );
    assert_eq!(connection.rows("SELECT 1").unwrap().to_text(), [["1"]]);
    let statement = connection.prepare("SELECT ?").unwrap();
    assert!(matches!(
        connection.execute(&statement, &[]),
        Err(Error::Options(_))
    ));
}

#[test]
fn pipelined_statements_are_answered_in_order_errors_among_them() {
    let mut session = session("pipeline_db", Transport::Tcp);
    let connection = &mut session.connection;
    connection
        .run("CREATE TABLE t (id INT PRIMARY KEY)")
        .unwrap();
    let insert = connection.prepare("INSERT INTO t VALUES (?)").unwrap();
    for id in [1, 2, 2, 3] {
        connection.send_execute(&insert, &[id.into()]).unwrap();
    }
    connection.send_query("SELECT COUNT(*) FROM t").unwrap();
    assert_eq!(connection.pending(), 5);
    let mut numbers = Vec::new();
    for _ in 0..4 {
        numbers.push(
            connection
                .receive()
                .and_then(|results| results.finish())
                .err()
                .and_then(|error| error.number()),
        );
    }
    assert_eq!(numbers, [None, None, Some(1062), None]);
    assert_eq!(
        connection.receive().unwrap().rows().unwrap().to_text(),
        [["3"]]
    );
    assert!(connection.receive().is_err());
    connection.send_query("SELECT 1").unwrap();
    connection.send_query("NONSENSE").unwrap();
    assert_eq!(
        connection
            .rows("SELECT 'after what nobody read'")
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_server_that_knows_no_fast_path_is_asked_in_vain() {
    let session = session("fast_path_db", Transport::Tcp);
    let options = Options {
        loopback_fast_path: true,
        ..session.options.clone()
    };
    let mut connection = Connection::connect(&options).unwrap();
    assert_eq!(connection.stream().kind(), "TCP/IP");
    connection.run("SELECT 1").unwrap();
}

#[test]
fn a_prepared_statement_runs_again_and_again_with_other_types() {
    let mut session = session("prepared_db", Transport::Unix);
    let connection = &mut session.connection;
    let statement = connection.prepare("SELECT CONCAT(?, '')").unwrap();
    for (value, text) in [
        (Value::from(5), "5"),
        (Value::from("five"), "five"),
        (Value::from(5.5), "5.5"),
        (Value::Null, "NULL"),
    ] {
        let rows = connection
            .execute(&statement, &[value])
            .unwrap()
            .rows()
            .unwrap();
        assert_eq!(rows.to_text(), [[text]]);
    }
    connection.send_long(&statement, 0, b"long ").unwrap();
    connection.send_long(&statement, 0, b"value").unwrap();
    let rows = connection
        .execute(&statement, &[Value::Null])
        .unwrap()
        .rows()
        .unwrap();
    assert_eq!(rows.to_text(), [["long value"]]);
    connection.send_long(&statement, 0, b"forgotten").unwrap();
    connection.reset_statement(&statement).unwrap();
    let rows = connection
        .execute(&statement, &[7.into()])
        .unwrap()
        .rows()
        .unwrap();
    assert_eq!(rows.to_text(), [["7"]]);
    connection.close_statement(statement);
    connection.ping().unwrap();
}

#[test]
fn a_cursor_gives_rows_in_portions() {
    let mut session = session("cursor_db", Transport::Unix);
    let connection = &mut session.connection;
    let statement = connection.prepare("SELECT seq FROM seq_1_to_5").unwrap();
    let results = connection.execute_with_cursor(&statement, &[]).unwrap();
    assert_eq!(results.columns().len(), 1);
    results.finish().unwrap();
    let mut seen = Vec::new();
    loop {
        let mut results = connection.fetch(&statement, 2).unwrap();
        seen.push(results.rows().unwrap().len());
        if results.outcome().status.contains(Status::LAST_ROW_SENT) {
            break;
        }
    }
    assert_eq!(seen.iter().sum::<usize>(), 5);
    assert!(seen.iter().all(|&rows| rows <= 2));
    connection.ping().unwrap();
}

#[test]
fn a_password_is_answered_over_either_way() {
    let mut session = session("users_db", Transport::Unix);
    for host in ["localhost", "%"] {
        session
            .connection
            .run(format!("CREATE OR REPLACE USER swimmer@'{host}' IDENTIFIED BY 'p@ss'; GRANT ALL ON *.* TO swimmer@'{host}'"))
            .unwrap();
    }
    for transport in [Transport::Unix, Transport::Tcp] {
        let mut options = session.options.clone();
        options.transport = transport;
        options.user = "swimmer".into();
        options.password = "p@ss".into();
        let mut connection = Connection::connect(&options).unwrap();
        let user = connection
            .rows("SELECT SUBSTRING_INDEX(USER(), '@', 1), DATABASE()")
            .unwrap();
        assert_eq!(user.to_text(), [["swimmer", "users_db"]]);
        options.password = "wrong".into();
        assert_eq!(
            Connection::connect(&options).unwrap_err().number(),
            Some(1045)
        );
    }
    let connection = &mut session.connection;
    connection
        .change_user("swimmer", "p@ss", Some("users_db"))
        .unwrap();
    let user = connection
        .rows("SELECT SUBSTRING_INDEX(USER(), '@', 1), DATABASE()")
        .unwrap();
    assert_eq!(user.to_text(), [["swimmer", "users_db"]]);
    assert_eq!(
        connection
            .change_user("swimmer", "wrong", None)
            .unwrap_err()
            .number(),
        Some(1045)
    );
}

#[test]
fn the_session_is_as_new_after_a_reset() {
    let mut session = session("session_db", Transport::Unix);
    let connection = &mut session.connection;
    connection.run("SET @a = 1").unwrap();
    connection.run("BEGIN").unwrap();
    assert!(connection.status().contains(Status::IN_TRANS));
    connection.reset().unwrap();
    assert_eq!(connection.rows("SELECT @a").unwrap().to_text(), [["NULL"]]);
    assert!(!connection.status().contains(Status::IN_TRANS));
    assert!(connection.statistics().unwrap().starts_with("Uptime: "));
    connection
        .run("CREATE TABLE t (id INT DEFAULT 5, name TEXT)")
        .unwrap();
    assert_eq!(
        connection
            .field_list("t", "i%")
            .unwrap()
            .names()
            .collect::<Vec<_>>(),
        ["id"]
    );
    connection.set_multi_statements(false).unwrap();
    assert_eq!(
        connection.run("SELECT 1; SELECT 2").unwrap_err().number(),
        Some(1064)
    );
    assert_eq!(
        connection.init_db("nowhere").unwrap_err().number(),
        Some(1049)
    );
    assert!(connection.server_version().contains("MariaDB"));
}

#[test]
fn payloads_over_16_mib_go_both_ways() {
    let mut session = session("large_db", Transport::Unix);
    let connection = &mut session.connection;
    let long = "x".repeat((16 << 20) + 10);
    let rows = connection
        .rows(format!("SELECT '{long}', LENGTH('{long}')"))
        .unwrap();
    let row = rows.get(0).unwrap();
    assert_eq!(row.get::<usize>(1).unwrap(), long.len());
    assert!(row.get::<&str>(0).unwrap() == long);
    assert_eq!(connection.rows("SELECT 1").unwrap().len(), 1);
}

#[test]
fn a_killed_connection_is_of_no_use() {
    let mut session = session("kill_db", Transport::Tcp);
    let mut victim = Connection::connect(&session.options).unwrap();
    session.connection.kill(victim.id()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(victim.ping().is_err());
    let mut session_options = session.options.clone();
    session_options.read_timeout = Some(Duration::from_millis(50));
    let mut waiting = Connection::connect(&session_options).unwrap();
    assert!(matches!(waiting.run("SELECT SLEEP(5)"), Err(Error::Io(_))));
    assert!(waiting.is_broken());
    assert!(matches!(waiting.ping(), Err(Error::Closed)));
}
