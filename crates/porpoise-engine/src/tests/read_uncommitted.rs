//! READ UNCOMMITTED beside writers: readers meet rows that there were, by the table and by every
//! index, and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::database::{Db, beside};

const ROWS: u64 = 40;
const WRITERS: u64 = 3;
const ROUNDS: u64 = 250;

fn write(mut session: Db, writer: u64) {
    let mut run = |sql: String| session.run(&sql);
    for round in 1..=ROUNDS {
        run("BEGIN".into());
        for id in (writer..ROWS).step_by(WRITERS as usize) {
            // Both columns, the text and the keys always agree.
            let v = round % 2 * 1000 + id;
            run(match (round + id) % 5 {
                0 => format!("DELETE FROM t WHERE id = {id}"),
                1 => format!("REPLACE INTO t VALUES ({id}, {v}, {v}, REPEAT('{v}', 5))"),
                _ => format!("UPDATE t SET k = {v}, u = {v}, c = REPEAT('{v}', 5) WHERE id = {id}"),
            });
        }
        run(match round % 3 {
            0 => "ROLLBACK".into(),
            _ => "COMMIT".into(),
        });
    }
}

#[test]
fn readers_beside_writers_meet_whole_rows_by_every_index() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, u INT, c TEXT, KEY (k), UNIQUE (u))");
    for id in 0..ROWS {
        db.run(&format!(
            "INSERT INTO t VALUES ({id}, {id}, {id}, REPEAT('{id}', 5))"
        ));
    }
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let session = beside(&db);
                scope.spawn(move || write(session, writer))
            })
            .collect();
        for in_transaction in [false, true] {
            let mut session = beside(&db);
            let is_done = &is_done;
            scope.spawn(move || {
                session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
                if in_transaction {
                    session.run("BEGIN");
                }
                while !is_done.load(Ordering::Relaxed) {
                    // What the ranges say nobody checks again on the rows.
                    for (low, sql) in [
                        (0, "SELECT k, u, c FROM t"),
                        (
                            1000,
                            "SELECT k, u, c FROM t FORCE INDEX (k) WHERE k >= 1000",
                        ),
                        (
                            1000,
                            "SELECT k, u, c FROM t FORCE INDEX (u) WHERE u >= 1000",
                        ),
                        (1002, "SELECT k, u, c FROM t WHERE u = 1002"),
                        (1001, "SELECT k, u, c FROM t WHERE k = 1001 OR u = 1002"),
                    ] {
                        for row in session.rows(sql) {
                            let values: Vec<&str> = row.split('|').collect();
                            let [k, u, c] = values[..] else {
                                panic!("{row}")
                            };
                            assert!(k == u && c == k.repeat(5), "{sql}: {row}");
                            assert!(k.parse::<u32>().unwrap() >= low, "{sql}: {row}");
                        }
                    }
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let all = "SELECT * FROM t ORDER BY id";
    let committed = db.rows(all);
    db.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    assert_eq!(db.rows(all), committed);
}
