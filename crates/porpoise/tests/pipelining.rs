//! Many statements in flight, over every way in: each reply is its own statement's, errors in the middle included.

use porpoise::{Database, Listen};
use porpoise_client::{Connection, Options};

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

#[test]
fn every_reply_is_its_own_statements_over_every_way_in() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let database = Database::options()
        .set("loopback_fast_path", "ON")
        .set("innodb_flush_log_at_trx_commit", 0)
        .in_memory()
        .unwrap();
    let doors = Listen::unix(&socket)
        .and(Listen::shared_memory(folder.path().join("s.MYSQL")))
        .and(Listen::tcp(([127, 0, 0, 1], 0).into()));
    let listening = database.listen(doors).unwrap();
    let setup = database.connect().unwrap();
    setup.execute("CREATE DATABASE d", ()).unwrap();
    setup.execute("CREATE USER ann", ()).unwrap();
    setup.execute("GRANT ALL ON d.* TO ann", ()).unwrap();
    let port = listening.tcp_addresses()[0].port();
    for parameters in [
        "transport=unix",
        "transport=shm",
        "transport=tcp",
        "transport=tcp&loopback_fast_path=true",
    ] {
        let socket = socket.display();
        let url = format!("mysql://ann@127.0.0.1:{port}/d?{parameters}&socket={socket}");
        pipeline(Connection::open(&url).unwrap());
    }
    let options = Options {
        database: Some("d".into()),
        ..Options::default()
    };
    pipeline(Connection::over(database.stream().unwrap(), &options).unwrap());
}
