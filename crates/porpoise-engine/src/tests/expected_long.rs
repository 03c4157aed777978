//! Statements that are likely to run for long say so before they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::database::Db;

#[test]
fn the_plan_of_a_statement_that_was_seen_to_compute_is_expected_to() {
    let mut db = Db::new();
    let told = Arc::new(AtomicU32::new(0));
    let (counted, session) = (Arc::clone(&told), db.session.control().clone());
    db.engine.set_compute_hook(Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    let sql = "SELECT BENCHMARK(2000000, 1 + 1)";
    let watch = std::thread::spawn(move || {
        // Between two looks the statement may have begun, or ended.
        while session.process().sql.is_none() {
            std::thread::yield_now();
        }
        while session.process().sql.is_some() {
            crate::expect_long(&session);
        }
    });
    db.run(sql);
    watch.join().unwrap();
    assert_eq!(told.load(Ordering::Relaxed), 0);
    db.run(sql);
    assert_eq!(told.load(Ordering::Relaxed), 1);
}

#[test]
fn a_statement_that_reads_many_rows_tells_of_it_before_it_runs() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a))");
    db.run("CREATE TABLE few (id INT PRIMARY KEY)");
    db.run("INSERT INTO few VALUES (1), (2)");
    db.run(
        "INSERT INTO t WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 200)
         SELECT x.n * 1000 + y.n, x.n FROM s x, s y",
    );
    db.run("ANALYZE TABLE t, few");
    let told = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&told);
    db.engine.set_compute_hook(Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    let mut tells = |sql: &str| {
        let before = told.load(Ordering::Relaxed);
        db.run(sql);
        told.load(Ordering::Relaxed) > before
    };
    for sql in [
        "SELECT SUM(id) FROM t",
        "SELECT * FROM t ORDER BY id * 3 LIMIT 5",
        "SELECT COUNT(*) FROM t x JOIN t y USING (id)",
        "SELECT COUNT(*) FROM few, t",
        "SELECT * FROM (SELECT a, COUNT(*) FROM t GROUP BY a) d LIMIT 1",
        "UPDATE t SET id = id + 1000000 ORDER BY id DESC",
    ] {
        assert!(tells(sql), "{sql}");
    }
    for sql in [
        "SELECT * FROM t WHERE id = 1001001",
        "SELECT * FROM t LIMIT 5",
        "SELECT * FROM t ORDER BY id LIMIT 5",
        "SELECT * FROM t WHERE a = 7",
        "SELECT MAX(a) FROM t",
        "SELECT MIN(a), MAX(a) FROM t",
        "SELECT * FROM few JOIN t USING (id)",
        "UPDATE t SET a = 1 WHERE id = 5",
        "DELETE FROM t WHERE id = 5",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
    ] {
        assert!(!tells(sql), "{sql}");
    }
}
