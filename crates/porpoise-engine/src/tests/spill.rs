//! Statements whose rows go to disk, and the same with all rows in memory.

use std::thread;
use std::time::{Duration, Instant};

use super::database::{Db, beside};

const ROWS: u32 = 20_000;

/// A table of values of all kinds, with NULLs, in no order; few and many of each.
fn database() -> Db {
    filled(Db::new())
}

fn filled(mut db: Db) -> Db {
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, few INT, some INT, many INT, c VARCHAR(80),
                         d DECIMAL(20,6), f DOUBLE, at DATETIME(3), j JSON)",
    );
    db.run("CREATE TABLE digits (d INT PRIMARY KEY)");
    db.run("INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    db.run(&format!(
        "INSERT INTO t
         SELECT n, n % 7, n % 1000, n * 7919 % {ROWS},
                IF(n % 11 = 0, NULL, CONCAT(IF(n % 2, 'Same beginning ', 'same BEGINNING '), MD5(n % 5000))),
                n * 0.123457, IF(n % 13 = 0, NULL, n / 7), TIMESTAMPADD(MINUTE, n % 3000, '2024-02-28'),
                JSON_OBJECT('n', n % 50)
         FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d AS n
               FROM digits a, digits b, digits c, digits d, digits e) AS numbers WHERE n < {ROWS}"
    ));
    db
}

fn counter(db: &mut Db, name: &str) -> u64 {
    let row = db.rows(&format!("SHOW SESSION STATUS LIKE '{name}'"));
    let value = row[0].split('|').nth(1).unwrap_or_default();
    value.parse().expect("a number")
}

/// Runs a query with enough memory, then with little, and compares. `is_ordered`: rows come in the
/// same order.
fn compare(db: &mut Db, sql: &str, is_ordered: bool) {
    let mut expected = db.rows(sql);
    assert!(expected.len() > 5, "{sql}");
    if !is_ordered {
        expected.sort();
    }
    for limit in [4 << 20, 1 << 20] {
        db.run(&format!("SET statement_memory_limit = {limit}"));
        let names = ["Created_tmp_disk_tables", "Sort_merge_passes"];
        let before: u64 = names.iter().map(|name| counter(db, name)).sum();
        let mut rows = match db.try_rows(sql) {
            Ok(rows) => rows,
            Err(error) => panic!("{sql} with {limit}: {error}"),
        };
        let after: u64 = names.iter().map(|name| counter(db, name)).sum();
        if limit == 1 << 20 {
            assert!(after > before, "nothing went to disk: {sql}");
        }
        if !is_ordered {
            rows.sort();
        }
        assert!(rows == expected, "{sql} with {limit}: {} rows", rows.len());
        assert_eq!(db.session.state.memory.used(), 0, "{sql}");
        assert_eq!(db.session.state.memory.space().used(), 0, "{sql}");
    }
    db.run("SET statement_memory_limit = DEFAULT");
}

#[test]
fn sorts_on_disk_have_the_same_order() {
    let mut db = database();
    for sql in [
        "SELECT id, c, d FROM t ORDER BY c, id",
        "SELECT id, c, j FROM t ORDER BY c DESC, f, id DESC",
        "SELECT id, many FROM t ORDER BY many",
        "SELECT id, c FROM t ORDER BY CONCAT(few, c), id",
        "SELECT id, c FROM t ORDER BY c, id LIMIT 15000 OFFSET 100",
        "SELECT id, RPAD(c, 200, 'x') AS x FROM t ORDER BY x, id LIMIT 9000",
        "SELECT DISTINCT c FROM t ORDER BY c",
        "SELECT DISTINCT c, few FROM t ORDER BY few, c",
    ] {
        compare(&mut db, sql, true);
    }
}

#[test]
fn groups_on_disk_are_the_same() {
    let mut db = database();
    for sql in [
        "SELECT many, COUNT(*), SUM(d), AVG(f), MIN(c), MAX(at), MIN(j) FROM t GROUP BY many",
        "SELECT c, COUNT(*), SUM(f), GROUP_CONCAT(id ORDER BY id DESC) FROM t GROUP BY c",
        "SELECT some, COUNT(DISTINCT many), SUM(DISTINCT d), COUNT(*) FROM t GROUP BY some",
        "SELECT few, COUNT(DISTINCT c), COUNT(DISTINCT id, c), GROUP_CONCAT(DISTINCT some ORDER BY some) FROM t GROUP BY few",
        "SELECT few, COUNT(DISTINCT c), COUNT(DISTINCT some, many) FROM t GROUP BY few WITH ROLLUP",
        "SELECT d, c, f, at, j, COUNT(*) FROM t GROUP BY d, c, f, at, j",
        "SELECT many, JSON_ARRAYAGG(c), JSON_OBJECTAGG(id, j), BIT_XOR(id), STDDEV(f) FROM t GROUP BY many",
    ] {
        compare(&mut db, sql, false);
    }
    let all = "SELECT COUNT(DISTINCT c), COUNT(DISTINCT id), SUM(DISTINCT d), COUNT(DISTINCT d, f, c) FROM t";
    let expected = db.rows(all);
    db.run("SET statement_memory_limit = 1048576");
    let before = counter(&mut db, "Created_tmp_disk_tables");
    assert_eq!(db.rows(all), expected);
    assert!(counter(&mut db, "Created_tmp_disk_tables") > before);
}

#[test]
fn distinct_rows_and_set_operations_on_disk_are_the_same() {
    let mut db = database();
    for sql in [
        "SELECT DISTINCT c, d FROM t",
        "SELECT DISTINCT many, j FROM t",
        "SELECT c, many FROM t UNION SELECT c, many + few FROM t",
        "SELECT c, some FROM t INTERSECT SELECT c, some FROM t WHERE id % 3 = 0",
        "SELECT c, some FROM t INTERSECT ALL SELECT c, some FROM t WHERE id % 3 = 0",
        "SELECT c FROM t EXCEPT SELECT c FROM t WHERE many < 3000",
        "SELECT c FROM t EXCEPT ALL SELECT c FROM t WHERE many < 3000",
        "SELECT id, c FROM t EXCEPT SELECT id, c FROM t WHERE few = 1 INTERSECT SELECT id, c FROM t WHERE few < 3",
    ] {
        compare(&mut db, sql, false);
    }
    // The order of an index is kept.
    compare(
        &mut db,
        "SELECT DISTINCT id, c FROM t FORCE INDEX (PRIMARY) ORDER BY id",
        true,
    );
    compare(
        &mut db,
        "SELECT DISTINCT id DIV 2 AS half, c FROM t ORDER BY half, c",
        true,
    );
}

#[test]
fn joins_on_disk_are_the_same() {
    let mut db = database();
    for sql in [
        "SELECT a.id, b.id, b.c FROM t a JOIN t b ON a.many = b.id + 0",
        "SELECT a.id, b.id, b.d FROM t a JOIN t b ON a.c = b.c AND a.few = b.few",
        "SELECT a.id, b.c FROM t a LEFT JOIN (SELECT * FROM t WHERE id % 2 OR few > 3) b ON a.many = b.id + 0 AND a.few <> b.few",
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.f = b.f AND b.few = 3 AND a.c > 'b'",
        "SELECT a.id FROM t a WHERE EXISTS (SELECT * FROM t b WHERE b.many = a.some * 3 AND b.d > a.d)",
        "SELECT a.id FROM t a WHERE NOT EXISTS (SELECT * FROM t b WHERE b.c = a.c AND b.id > a.id)",
        "SELECT a.id, b.n FROM t a JOIN (SELECT many DIV 2 AS h, COUNT(*) AS n FROM t GROUP BY h) b ON a.id = b.h",
    ] {
        compare(&mut db, sql, false);
    }
    // Nearly all right rows have one key; all have.
    db.run("CREATE TABLE one (k INT, id INT, c VARCHAR(80))");
    db.run("INSERT INTO one SELECT IF(id % 100 = 0, id, 5), id, c FROM t");
    db.run("CREATE TABLE k (k INT, n INT)");
    db.run("INSERT INTO k VALUES (5, 1), (6, 2), (NULL, 3), (5, 4), (100, 5), (200, 6), (-5, 7)");
    for join in [
        "SELECT STRAIGHT_JOIN k.n, one.id, one.c FROM k JOIN one ON one.k = k.k",
        "SELECT STRAIGHT_JOIN k.n, one.id, one.c FROM k JOIN one ON one.k = k.k AND one.id % 1000 = k.n",
        "SELECT k.n, one.id, one.c FROM k LEFT JOIN one ON one.k = k.k AND one.id % 5000 = k.n + 3000",
        "SELECT k.n, COUNT(one.id) FROM k LEFT JOIN one ON one.k = k.k GROUP BY k.n",
    ] {
        compare(&mut db, join, false);
    }
}

#[test]
fn windows_on_disk_are_the_same() {
    let mut db = database();
    for sql in [
        "SELECT id, ROW_NUMBER() OVER w, RANK() OVER w, DENSE_RANK() OVER w, PERCENT_RANK() OVER w, CUME_DIST() OVER w, NTILE(7) OVER w
         FROM t WINDOW w AS (PARTITION BY few ORDER BY some)",
        "SELECT id, ROW_NUMBER() OVER w, RANK() OVER w, LAG(c, 2, 'none') OVER w, LEAD(d) OVER w FROM t WINDOW w AS (ORDER BY many)",
        "SELECT id, SUM(d) OVER w, COUNT(*) OVER w, MIN(c) OVER w FROM t WINDOW w AS (PARTITION BY few ORDER BY id)",
        "SELECT id, SUM(d) OVER w, FIRST_VALUE(c) OVER w, LAST_VALUE(c) OVER w, NTH_VALUE(j, 3) OVER w
         FROM t WINDOW w AS (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING)",
        "SELECT id, SUM(d) OVER w, COUNT(*) OVER w FROM t WINDOW w AS (ORDER BY many RANGE BETWEEN 5 PRECEDING AND 3 FOLLOWING)",
        "SELECT id, COUNT(*) OVER w, MAX(d) OVER w FROM t WINDOW w AS (PARTITION BY few ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "SELECT id, SUM(d) OVER (), COUNT(*) OVER (PARTITION BY c), MAX(f) OVER (PARTITION BY some ORDER BY many) FROM t",
    ] {
        compare(&mut db, sql, false);
    }
}

#[test]
fn tables_that_are_made_on_disk_are_the_same() {
    let mut db = database();
    db.run("SET cte_max_recursion_depth = 100000");
    for sql in [
        "WITH x AS (SELECT id, c, d FROM t LIMIT 19000) SELECT a.id, COUNT(*) FROM x a JOIN x b ON a.id = b.id GROUP BY a.id",
        "SELECT d.few, COUNT(*), MIN(d.c) FROM (SELECT few, c, id FROM t ORDER BY c LIMIT 18000) d GROUP BY d.few",
        "WITH RECURSIVE r AS (SELECT id, c, 0 AS level FROM t UNION ALL SELECT id, c, level + 1 FROM r WHERE level < 3 AND id % 2 = 0)
         SELECT level, few, COUNT(*), MAX(r.c) FROM r JOIN t USING (id) GROUP BY level, few",
    ] {
        compare(&mut db, sql, false);
    }
}

/// Queries that put more than some megabytes aside, each by another operator.
const LARGE: &[&str] = &[
    "SELECT a.c, b.id FROM t a, t b ORDER BY a.many * b.many",
    "SELECT a.many * b.many AS p, COUNT(*) FROM t a, t b GROUP BY p",
    "SELECT COUNT(DISTINCT a.many * b.many) FROM t a, t b",
    "SELECT DISTINCT a.many * b.many FROM t a, t b",
    "SELECT a.many * b.many FROM t a, t b UNION SELECT a.many + b.many FROM t a, t b",
    "SELECT a.many * b.many FROM t a, t b INTERSECT SELECT a.many + b.many FROM t a, t b",
    "SELECT COUNT(*) FROM (SELECT a.c, b.id FROM t a, t b LIMIT 1000000000) AS d",
    "SELECT SUM(a.many) OVER (ORDER BY b.many) FROM t a, t b",
    "SELECT COUNT(*) FROM t a JOIN (SELECT a.many * b.many AS p, b.c FROM t a, t b) AS d ON a.f = d.p + 0.5",
];

#[test]
fn statements_that_are_killed_leave_nothing_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of text");
    let mut db = filled(Db::with(&[("tmpdir", path)]));
    db.run("SET GLOBAL statement_memory_limit = 1048576");
    for sql in LARGE {
        let mut session = beside(&db);
        let control = session.session.control().clone();
        let memory = session.session.state.memory.clone();
        let running = thread::spawn(move || (session.try_rows(sql).map(drop), session));
        let deadline = Instant::now() + Duration::from_secs(120);
        while memory.space().used() < 2 << 20 {
            assert!(Instant::now() < deadline, "nothing on disk: {sql}");
            let names = std::fs::read_dir(folder.path()).expect("it is there");
            assert_eq!(names.count(), 0, "a file with a name: {sql}");
            thread::sleep(Duration::from_millis(1));
        }
        control.kill_query();
        let (outcome, mut session) = running.join().expect("the query");
        assert_eq!(outcome.expect_err("killed").number(), 1317, "{sql}");
        assert_eq!((memory.space().used(), memory.used()), (0, 0), "{sql}");
        assert_eq!(session.rows("SELECT COUNT(*) FROM t"), [ROWS.to_string()]);
    }
    assert_eq!(db.engine.variables().memory().space().used(), 0);
}

#[test]
fn space_on_disk_is_limited() {
    let mut db = database();
    db.run("SET statement_memory_limit = 1048576, max_tmp_session_space_usage = 1048576");
    for sql in LARGE {
        db.fails(sql, 1114);
        assert_eq!(db.session.state.memory.used(), 0, "{sql}");
        assert_eq!(db.session.state.memory.space().used(), 0, "{sql}");
    }
    db.run("SET max_tmp_session_space_usage = DEFAULT");
    db.run("SET GLOBAL max_tmp_total_space_usage = 1048576");
    db.fails(LARGE[0], 1114);
    let warning = db.try_rows(LARGE[0]).expect_err("it is full").to_string();
    assert!(warning.contains("max_tmp_total_space_usage"), "{warning}");
    assert_eq!(db.engine.variables().memory().space().used(), 0);
}

#[test]
fn a_folder_that_is_missing_ends_large_statements_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let mut db = Db::with(&[("tmpdir", missing.to_str().expect("a path of text"))]);
    db.run("CREATE TABLE t (i INT)");
    db.run("INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)");
    db.run("SET statement_memory_limit = 524288");
    let large = "SELECT a.i FROM t a, t b, t c, t d, t e ORDER BY a.i + b.i";
    let error = db.try_rows(large).expect_err("no folder");
    assert!(error.message().contains("missing"), "{error}");
    assert_eq!(db.rows("SELECT i FROM t ORDER BY i DESC LIMIT 1"), ["10"]);
}

#[test]
fn changes_of_many_rows_are_the_same() {
    let mut db = database();
    db.run("CREATE TABLE u (id INT PRIMARY KEY, c VARCHAR(80), KEY (c))");
    db.run("INSERT INTO u SELECT id, c FROM t");
    db.run("CREATE TABLE v LIKE u");
    db.run("INSERT INTO v SELECT id, c FROM t");
    db.run("UPDATE u SET c = CONCAT('x', c) ORDER BY c, id");
    db.run("SET statement_memory_limit = 33554432");
    db.run("UPDATE v SET c = CONCAT('x', c) ORDER BY c, id");
    db.run("SET statement_memory_limit = DEFAULT");
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM u JOIN v ON u.id = v.id AND u.c <=> v.c"),
        [ROWS.to_string()]
    );
}
