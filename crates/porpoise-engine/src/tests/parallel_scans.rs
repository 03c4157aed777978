//! Large scans on more than one core do what they do on one: `innodb_parallel_read_threads` tells which.

use std::time::{Duration, Instant};

use porpoise_executor::units_of_others;

use super::altered_rows::Numbers;
use super::batches::{Answer, Expressions, answer, database, insert};
use super::database::{Db, beside};

/// All rows are read in batches, and every scan counts as a large one.
const ALL: &str = "0";

fn answer_of(db: &mut Db, threads: u32, sql: &str) -> Answer {
    db.run(&format!("SET innodb_parallel_read_threads = {threads}"));
    answer(db, ALL, sql)
}

#[track_caller]
fn is_the_same(db: &mut Db, sql: &str) -> Answer {
    let alone = answer_of(db, 1, sql);
    assert_eq!(answer_of(db, 4, sql), alone, "{sql}");
    alone
}

/// A table `t` of so many rows, most of them in the tree. `a` has few values, `d` is not exact, `m` is
/// a decimal, `v` has the same texts in several spellings.
fn many_rows(rows: u32) -> Db {
    let mut db = Db::new();
    db.run(&format!(
        "SET cte_max_recursion_depth = {rows}, sql_mode = ''"
    ));
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b BIGINT, d DOUBLE, m DECIMAL(20,4),
                         v VARCHAR(20), KEY a (a, id))",
    );
    db.run(&format!(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT i, IF(i % 13 = 0, NULL, i * 7919 % 101), i * 1000003 % 65537, SQRT(i) * POW(-1.0001, i % 4000),
                i / 7, ELT(1 + i % 5, 'abc', 'ABC', 'aBc', 'Äbc', NULL) FROM n"
    ));
    db.engine.shared.store.checkpoint().expect("written");
    db
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Whether more threads want to run than there are cores.
fn is_machine_busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next();
    load.is_some_and(|load| load.parse().is_ok_and(|load: f64| load > cores() as f64))
}

/// Other threads compute units of these statements, unless no core is idle for long.
#[track_caller]
fn others_help_with(statements: &[&str]) {
    let mut db = many_rows(60_000);
    db.run("SET batch_scan_min_rows = DEFAULT, innodb_parallel_read_threads = 4");
    let are_there = cfg!(target_os = "linux") && cores() > 1;
    let before = units_of_others();
    let deadline = Instant::now() + Duration::from_secs(30);
    while are_there && units_of_others() < before + 10 {
        for sql in statements {
            db.rows(sql);
        }
        if Instant::now() > deadline {
            assert!(is_machine_busy(), "nobody helps");
            eprintln!("no core was idle: nobody has helped");
            break;
        }
    }
}

#[test]
fn other_threads_take_part_where_a_core_is_idle() {
    others_help_with(&[
        "SELECT a, COUNT(*), SUM(b), SUM(m) FROM t WHERE v LIKE '%b%' GROUP BY a",
        "SELECT SUM(b), MAX(d) FROM t WHERE a < 50",
    ]);
}

#[test]
fn other_threads_look_at_conditions_where_rows_are_not_grouped() {
    others_help_with(&["SELECT id FROM t WHERE v LIKE '%x%' AND v LIKE '%b%y%' OR v LIKE 'q%'"]);
}

#[test]
fn whoever_takes_the_rows_that_pass_has_them_in_order() {
    let mut db = many_rows(30_000);
    db.run("CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, a INT, v VARCHAR(20), KEY (a))");
    db.run("UPDATE t SET d = d * 3, v = 'äBC' WHERE id % 29 = 0");
    db.run("BEGIN");
    db.run("DELETE FROM t WHERE id % 31 = 0");
    db.run("UPDATE t SET v = 'ABc', d = -d WHERE id % 37 = 0");
    for sql in [
        "SELECT * FROM t WHERE v LIKE '%B%'",
        "SELECT id, d FROM t WHERE v LIKE '%ä%' AND d > 0 OR a = 3",
        "SELECT id FROM t WHERE a > 50 LIMIT 7",
        "SELECT id FROM t WHERE a > 50 LIMIT 10000, 7",
        "SELECT id FROM t WHERE b = 77 LIMIT 1",
        "SELECT id FROM t WHERE v LIKE 'a%' ORDER BY id DESC LIMIT 3000",
        "SELECT id, a FROM t FORCE INDEX (a) WHERE a BETWEEN 20 AND 60 AND id % 3 > 0",
        "SELECT v, id FROM t WHERE d > 2 ORDER BY v, d LIMIT 500",
        "SELECT v, id FROM t WHERE d > 2 ORDER BY v, d, id",
        "SELECT DISTINCT v, a FROM t WHERE m < 4000 AND v <> 'abc'",
        "SELECT GROUP_CONCAT(id) FROM t WHERE v LIKE '%ä%'",
        "SELECT a, JSON_ARRAYAGG(id) FROM t WHERE v LIKE '%ä%' GROUP BY a",
        "SELECT a, COUNT(DISTINCT b), SUM(d) FROM t WHERE v LIKE '%b%' GROUP BY a",
        "SELECT id, SUM(b) OVER (ORDER BY id) FROM t WHERE v LIKE '%b%'",
        "SELECT x.id, y.id FROM t x JOIN t y ON x.b = y.b + 1 WHERE x.v LIKE 'a%' AND y.v LIKE '%c'",
        "SELECT x.id, y.v FROM t x LEFT JOIN t y ON x.b = y.id AND y.v LIKE 'ä%' WHERE x.a > 90",
        "SELECT STRAIGHT_JOIN x.id, y.id FROM u z JOIN t x JOIN t y ON y.id = x.b WHERE x.m > 9",
        "SELECT id FROM t WHERE v LIKE 'a%' UNION ALL SELECT b FROM t WHERE v LIKE '%c' AND a < 9",
        "SELECT COUNT(*) FROM (SELECT id FROM t WHERE v LIKE 'a%' LIMIT 9000) x",
        "SELECT id FROM t x WHERE x.d > 0 AND EXISTS (SELECT 1 FROM t y WHERE y.a = 3 AND y.v LIKE 'A%')",
        "SELECT id, (SELECT COUNT(y.v) FROM t y WHERE y.id < x.id AND y.v LIKE 'a%') FROM t x
         WHERE x.id BETWEEN 5000 AND 5005",
        // Some rows are out of the ordinary: they warn, or the statement fails at one of them.
        "SELECT id FROM t WHERE 10 % (id % 400) > 3 AND v LIKE '%b%'",
        "SELECT id FROM t WHERE 10 % (id % 400) > 3 LIMIT 20000",
        "SELECT id FROM t WHERE v LIKE '%b%' AND b * 9223372036854775807 > id",
        "SELECT id FROM t WHERE v LIKE 'a%' AND b - 1 + 9223372036854710000 > id",
        "SELECT id FROM t WHERE v LIKE 'a%' AND v + 0 = 0 AND id < 9000",
    ] {
        is_the_same(&mut db, sql);
    }
    for limit in ["tmp_table_size = 1024", "statement_memory_limit = 3000000"] {
        db.run(&format!("SET {limit}"));
        is_the_same(
            &mut db,
            "SELECT v, id FROM t WHERE v LIKE '%b%' ORDER BY v, id",
        );
    }
    db.run("SET statement_memory_limit = DEFAULT, tmp_table_size = DEFAULT");
    // What is written meanwhile, into the table that is read, too.
    for isolation in ["REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED"] {
        db.run("COMMIT");
        db.run(&format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"
        ));
        let written = [1, 4].map(|threads| {
            // Counts from 1 again.
            db.run("TRUNCATE TABLE u");
            db.run("BEGIN");
            db.run(&format!("SET innodb_parallel_read_threads = {threads}, batch_scan_min_rows = 0"));
            db.run("INSERT INTO u (a, v) SELECT a, v FROM t WHERE v LIKE '%b%'");
            db.run("INSERT INTO t SELECT id + 100000, a, b, d, m, v FROM t WHERE v LIKE '%b%'");
            db.run("INSERT INTO u (a, v) SELECT a, v FROM u WHERE a > 5 AND v LIKE 'A%'");
            db.run("UPDATE t SET a = a + 1 WHERE v LIKE 'ä%'");
            db.run("DELETE x FROM t x JOIN u y ON x.id = y.id WHERE y.v LIKE '%b%'");
            let sums = ["u ORDER BY id", "t ORDER BY id"].map(|of| {
                db.rows(&format!("SELECT GROUP_CONCAT(a, v) FROM (SELECT * FROM {of}) x"))
            });
            let counts = db.rows("SELECT COUNT(*), SUM(a), MIN(a) FROM t UNION ALL SELECT COUNT(*), SUM(a), MAX(id) - MIN(id) FROM u");
            db.run("ROLLBACK");
            (sums, counts)
        });
        assert_eq!(written[0], written[1], "{isolation}");
    }
}

#[test]
fn whatever_is_asked_is_answered_as_by_one_thread() {
    for seed in 10..12 {
        let (mut db, mut numbers) = database(seed);
        for part in 0..8 {
            let from = 1000 + part * 500;
            insert(&mut db, &mut numbers, from..from + 500);
            if part == 5 {
                // What is written behind stays above the tree, and what this transaction changes.
                db.run("COMMIT");
                db.engine.shared.store.checkpoint().expect("written");
                db.run("UPDATE t SET i = i - 1, f = f * 1.1 WHERE id % 9 = 0");
                db.run("BEGIN");
                db.run("UPDATE t SET s = s + 1, v = 'Abc', g = 0.1 WHERE id % 17 = 0");
                db.run("DELETE FROM t WHERE id % 23 = 0");
            }
        }
        for number in 0..120 {
            let sql = Expressions(&mut numbers).query_of(number % 5);
            is_the_same(&mut db, &sql);
        }
    }
}

#[test]
fn sums_of_doubles_groups_and_extremes_are_those_of_the_rows_in_order() {
    let mut db = many_rows(30_000);
    db.run("UPDATE t SET d = d * 3, m = m - 1, v = 'äBC' WHERE id % 29 = 0");
    db.run("BEGIN");
    db.run("DELETE FROM t WHERE id % 31 = 0");
    db.run("UPDATE t SET v = 'ABc', d = -d WHERE id % 37 = 0");
    for sql in [
        "SELECT SUM(d), AVG(d), STDDEV_SAMP(d), VAR_POP(d), MIN(d), MAX(d) FROM t",
        "SELECT SUM(d * b), AVG(d / 3) FROM t WHERE d > -100 AND a <> 5",
        "SELECT a, SUM(d), AVG(d), STD(d), MIN(v), MAX(v), COUNT(v) FROM t GROUP BY a",
        "SELECT v, SUM(d), MIN(v), MAX(v), SUM(m), AVG(m), COUNT(*) FROM t GROUP BY v",
        "SELECT v, a, SUM(b), MIN(m), MAX(id), MIN(d) FROM t GROUP BY v, a",
        "SELECT id % 3000, SUM(d), COUNT(a) FROM t GROUP BY id % 3000",
        "SELECT id, SUM(d) FROM t GROUP BY id DIV 1, id LIMIT 100",
        "SELECT b, COUNT(*), SUM(m) FROM t GROUP BY b",
        "SELECT d * 0, COUNT(*), MIN(id) FROM t GROUP BY d * 0",
        "SELECT MIN(v), MAX(v), COUNT(*), COUNT(v), SUM(a) FROM t WHERE v LIKE '%B%' OR a IS NULL",
        "SELECT SUM(a), COUNT(*), MAX(id) FROM t FORCE INDEX (a) WHERE a > 10",
        "SELECT COUNT(*), SUM(id) FROM t WHERE id BETWEEN 2000 AND 9000 OR id > 12000",
        "SELECT COUNT(*), SUM(b) FROM t WHERE id < 0",
        "SELECT SUM(x.n) FROM (SELECT COUNT(*) AS n, a FROM t GROUP BY a HAVING n > 3) x",
        "SELECT (SELECT SUM(y.b) FROM t y WHERE y.a = x.a) FROM t x WHERE x.id < 20",
        "EXPLAIN FORMAT=TREE SELECT SUM(a) FROM t",
    ] {
        let Answer { rows, .. } = is_the_same(&mut db, sql);
        assert!(rows.is_ok_and(|rows| !rows.is_empty()), "{sql}");
    }
    // Where groups are to take no memory, and where vectors may have none.
    for limit in ["tmp_table_size = 1024", "statement_memory_limit = 3000000"] {
        db.run(&format!("SET {limit}"));
        is_the_same(
            &mut db,
            "SELECT b, COUNT(*), SUM(m) FROM t GROUP BY b ORDER BY b",
        );
        is_the_same(
            &mut db,
            "SELECT a, COUNT(*), SUM(d) FROM t GROUP BY a ORDER BY a",
        );
        is_the_same(
            &mut db,
            "SELECT COUNT(*), SUM(d), SUM(m + 1), MAX(v) FROM t",
        );
    }
}

#[test]
fn conditions_may_be_deeper_than_other_threads_have_stack() {
    let mut db = many_rows(20_000);
    for levels in [10, 450] {
        let (open, end) = ("((".repeat(levels), " AND id > 3) OR a = 7)".repeat(levels));
        let condition = format!("{open}b > 100{end}");
        is_the_same(
            &mut db,
            &format!("SELECT SUM(a), COUNT(*) FROM t WHERE {condition}"),
        );
    }
    let condition = format!("id > 5{}", " XOR a > 3".repeat(2001));
    is_the_same(
        &mut db,
        &format!("SELECT SUM(a), COUNT(*) FROM t WHERE {condition}"),
    );
}

#[test]
fn errors_and_warnings_come_of_the_rows_that_they_come_of_by_one_thread() {
    let mut db = many_rows(20_000);
    db.run("SET sql_mode = DEFAULT");
    db.run("UPDATE t SET b = 9223372036854775807 WHERE id IN (15000, 19000)");
    db.run("UPDATE t SET v = '12x' WHERE id % 1000 = 7");
    for sql in [
        "SELECT SUM(b + 1) FROM t",
        "SELECT a, SUM(b + id) FROM t GROUP BY a",
        "SELECT SUM(id) FROM t WHERE b + 5 > 3",
        "SELECT SUM(10 % (id % 400)), SUM(b - 1) FROM t",
        "SELECT SUM(10 % (id % 400)), SUM(b + 1) FROM t",
        "SELECT a, SUM(id DIV (id % 500)) FROM t WHERE id < 14000 GROUP BY a",
        "SELECT SUM(v + 0) FROM t WHERE id < 9000",
        "SELECT SUM(m * b * b) FROM t",
        "SELECT COUNT(*), SUM(EXP(d)) FROM t",
    ] {
        is_the_same(&mut db, sql);
    }
}

#[test]
fn what_is_counted_is_what_one_thread_counts() {
    let mut db = many_rows(20_000);
    for sql in [
        "EXPLAIN ANALYZE SELECT COUNT(*), SUM(b) FROM t WHERE a < 30",
        "EXPLAIN ANALYZE SELECT a, SUM(d) FROM t WHERE v LIKE 'a%' GROUP BY a",
        "EXPLAIN ANALYZE SELECT a, SUM(10 % (id % 400)) FROM t WHERE v LIKE 'a%' GROUP BY a",
        "SELECT a, SUM(d) FROM t WHERE id > 500 GROUP BY a",
        "EXPLAIN ANALYZE SELECT id FROM t WHERE v LIKE 'a%'",
        "EXPLAIN ANALYZE SELECT id FROM t WHERE v LIKE 'a%' AND 10 % (id % 400) > 3",
        "EXPLAIN ANALYZE SELECT id FROM t WHERE v LIKE 'a%' LIMIT 3000",
        "SELECT id FROM t WHERE v LIKE 'a%' ORDER BY d LIMIT 10",
        "SELECT id FROM t WHERE v LIKE 'a%' LIMIT 3000",
    ] {
        let counts = |db: &mut Db, threads: u32| {
            let Answer { rows, .. } = answer_of(db, threads, sql);
            let text = rows.expect("answered").join("\n");
            let actual = text.split("rows=").skip(1);
            let actual = actual.map(|rest| rest.split([' ', ')']).next());
            let actual: Vec<_> = actual.map(|count| count.map(str::to_string)).collect();
            (actual, db.session.state.statement.rows_examined)
        };
        assert_eq!(counts(&mut db, 4), counts(&mut db, 1), "{sql}");
    }
}

#[test]
fn it_ends_with_its_statement() {
    let mut db = Db::new();
    db.run("SET cte_max_recursion_depth = 5000");
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, v TEXT)");
    // Each row is nearly matched everywhere.
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         SELECT i, i % 10, REPEAT('a', 20000) FROM n",
    );
    db.engine.shared.store.checkpoint().expect("written");
    db.run("SET batch_scan_min_rows = 0, innodb_parallel_read_threads = 4");
    for what in ["a, COUNT(*)", "GROUP_CONCAT(id)"] {
        let text = "a".repeat(10_000);
        let grouped = if what.starts_with('a') {
            " GROUP BY a"
        } else {
            ""
        };
        let slow = format!("SELECT {what} FROM t WHERE v LIKE '%{text}b%'{grouped}");
        ends_with_its_statement(&mut db, &slow);
    }
    // Nobody is at work for it any more: the table can go, and the store be closed.
    db.run("DROP TABLE t");
    db.engine.shared.store.close().expect("closed");
}

fn ends_with_its_statement(db: &mut Db, slow: &str) {
    db.run("SET max_execution_time = 300");
    let begun = Instant::now();
    let error = db.try_rows(slow).expect_err("ended");
    assert_eq!(error.number(), 3024, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    db.run("SET max_execution_time = 0");
    let id = db.rows("SELECT CONNECTION_ID()").remove(0);
    let mut other = beside(db);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| db.try_rows(slow));
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        other.run(&format!("KILL QUERY {id}"));
        let error = asking.join().expect("no panic").expect_err("ended");
        assert_eq!(error.number(), 1317, "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn rows_that_others_change_meanwhile_are_those_of_the_snapshot() {
    let mut db = many_rows(20_000);
    let mut other = beside(&db);
    let sql = "SELECT a, COUNT(*), SUM(b), SUM(d) FROM t GROUP BY a";
    let passing = "SELECT id, a, b FROM t WHERE v LIKE '%b%' AND a <> 7";
    db.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    db.run("BEGIN");
    let before = is_the_same(&mut db, sql);
    let passed_before = is_the_same(&mut db, passing);
    let mut numbers = Numbers(5);
    for _ in 0..20 {
        let from = numbers.below(19_000);
        let to = from + numbers.below(1000);
        other.run(&format!(
            "UPDATE t SET b = b + 1, d = d + 0.1, a = a + 1 WHERE id BETWEEN {from} AND {to}"
        ));
        other.run(&format!("DELETE FROM t WHERE id = {from}"));
        if numbers.below(4) == 0 {
            db.engine.shared.store.checkpoint().expect("written");
        }
        assert_eq!(answer_of(&mut db, 4, sql), before);
        assert_eq!(answer_of(&mut db, 4, passing), passed_before);
    }
    db.run("COMMIT");
    assert_ne!(is_the_same(&mut db, sql), before);
}
